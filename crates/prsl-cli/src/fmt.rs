//! `prsl fmt`: uniform spacing.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::error::ErrorKind;
use prsl_data::Target;

use crate::arguments::usage;
use crate::failure::FINDINGS;
use crate::{model, output};

/// Format a model: changes white space only
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  prsl fmt warehouse.prsl             print it formatted
  prsl fmt --write warehouse.prsl     format the file itself
  prsl fmt --check warehouse.prsl     exit with 1 if that would change it

`--write` replaces the file by a new one. It refuses a file with several hard links or another owner, because \
replacing it would break the links or change the owner.")]
pub struct Arguments {
    /// Change the file instead of printing it
    #[arg(long)]
    write: bool,
    /// Print nothing, and exit with 1 if formatting would change the file
    #[arg(long, conflicts_with = "write")]
    check: bool,
    /// The model, `.prsl` text; `-` is standard input
    model: PathBuf,
}

impl Arguments {
    /// Formats.
    pub fn run(self) -> Result<ExitCode> {
        if self.write && self.model == Path::new("-") {
            let message = "--write needs a file to write to; without it, the formatted text is printed";
            return Err(usage("fmt", ErrorKind::ArgumentConflict, message));
        }
        let name = model::name(&self.model);
        let text = model::read_text(&self.model)?;
        if text.trim_start_matches('\u{feff}').trim_start().starts_with('{') {
            bail!(
                "`{name}` is JSON, and `prsl fmt` formats model text; `prsl export --to prsl` turns one into the other"
            );
        }
        let formatted = model::valid(prsl::Document::format(&text), &name)?;
        let changed = formatted != text;
        match self {
            Arguments { check: true, .. } if changed => {
                output::complain(&format!("{name} is not formatted; prsl fmt --write {name} does it\n"));
                return Ok(ExitCode::from(FINDINGS));
            }
            Arguments { check: true, .. } => {}
            Arguments { write: true, model, .. } if changed => {
                Target::from(model.as_path()).rewrite(formatted.as_bytes())?;
            }
            Arguments { write: true, .. } => {}
            _ => output::write(&formatted, None)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}
