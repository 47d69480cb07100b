//! `prsl import`: rules of other programs.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use clap::error::ErrorKind;
use prsl::{Document, Model};
use prsl_data::{CsvDialect, MulanLabels, TableReader};

use crate::arguments::{character, usage};
use crate::model::{self, ModelFile};
use crate::progress::counted;
use crate::style::{self, styled};
use crate::{calibrate, output};

/// Import rules of other programs as a model
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  prsl import r rules.txt -o rules.prsl
  prsl import r rules.txt --base labels.prsl --probability 0.9 -o rules.prsl
  prsl import mulan emotions.xml -o emotions.prsl
  prsl import dimacs requirements.cnf -o requirements.prsl
  prsl import taxonomy animals.csv -o animals.prsl

r: rule strings of the R package, one per line. `A, B <- !C, D` means `!C & D -> A | B`, and either side may be empty. A line may \
begin with a probability, as in `0.9: A <- B`. `#` begins a comment. The names are categories of the labels of `--base`; without \
it, each name becomes a yes/no label.

mulan: an XML file of labels. Each label that is nested in another implies it: `child -> parent`.

dimacs: a formula in conjunctive normal form, as hard rules about yes/no labels `x1`, `x2` and so on.

taxonomy: a CSV file with the columns `child` and `parent`. Each child implies its parents. A row without a parent is a root.

Imported rules are hard, except those of r with a probability. The model is written as text, or as JSON if the name of the output \
ends in .json. `prsl check` then tells what follows from it.")]
pub struct Arguments {
    /// The format
    format: Language,
    /// The file; `-` is standard input
    file: PathBuf,
    /// The file for the model
    #[arg(short, long, value_name = "MODEL")]
    output: PathBuf,
    /// r: a model with the labels that the rules are about; its rules are kept
    #[arg(long, value_name = "MODEL")]
    base: Option<PathBuf>,
    /// r: the probability of rules without one [default: 1]
    #[arg(long, value_name = "P", value_parser = probability)]
    probability: Option<f64>,
    /// taxonomy: the character between the columns: `,`, `;`, `|` or `tab` [default: ,]
    #[arg(long, value_name = "CHARACTER", value_parser = character)]
    delimiter: Option<char>,
}

/// The format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Language {
    /// Rule strings of the R package
    R,
    /// A Mulan label file
    Mulan,
    /// Conjunctive normal form
    Dimacs,
    /// A table of children and parents
    Taxonomy,
}

impl Arguments {
    /// Reads the rules, and writes the model.
    pub fn run(self) -> Result<ExitCode> {
        self.check_options()?;
        let inputs: Vec<&Path> = std::iter::once(self.file.as_path()).chain(self.base.as_deref()).collect();
        output::prepare(&self.output, &inputs)?;
        let model = self.read()?;
        let text = calibrate::text(&model, &self.output);
        ensure!(
            text.len() <= Document::MAX_BYTES,
            "the model would have {} bytes, more than the limit of {}; import a part of the rules",
            text.len(),
            Document::MAX_BYTES
        );
        output::write(&text, Some(&self.output))?;
        let labels = counted(model.labels().len() as u64, "label");
        let rules = counted(model.rules().len() as u64, "rule");
        let wrote = styled(style::GOOD, "wrote");
        let text = format!("{wrote} {}: {labels}, {rules}\n", output::name(&self.output));
        output::print_beside(&self.output, &text)?;
        Ok(ExitCode::SUCCESS)
    }

    fn read(&self) -> Result<Model> {
        let name = model::name(&self.file);
        Ok(match self.format {
            Language::R => {
                let base = self.base.as_deref().map(ModelFile::read).transpose()?;
                let base = base.as_ref().map(|file| file.document.model());
                prsl_data::import::r(self.open()?, &name, base, self.probability.unwrap_or(1.0))?
            }
            Language::Mulan => prsl_data::import::mulan(&MulanLabels::new(self.open()?, name)?)?,
            Language::Dimacs => prsl_data::import::dimacs(self.open()?, &name)?,
            Language::Taxonomy => {
                let dialect = CsvDialect::new(self.delimiter.unwrap_or(','), '.')?;
                prsl_data::import::taxonomy(TableReader::csv_as(self.open()?, name, dialect)?)?
            }
        })
    }

    fn open(&self) -> Result<Box<dyn Read + Send>> {
        if self.file == Path::new("-") {
            return Ok(Box::new(io::stdin()));
        }
        let file =
            File::open(&self.file).with_context(|| format!("cannot open `{}`", self.file.display()))?;
        Ok(Box::new(file))
    }

    /// Rejects options that would have no effect.
    fn check_options(&self) -> Result<()> {
        let is = |format: Language| self.format == format;
        let checks = [
            (self.base.is_some() && !is(Language::R), "`--base` is for `r`"),
            (self.probability.is_some() && !is(Language::R), "`--probability` is for `r`"),
            (self.delimiter.is_some() && !is(Language::Taxonomy), "`--delimiter` is for `taxonomy`"),
            (
                self.base.as_deref() == Some(Path::new("-")) && self.file == Path::new("-"),
                "FILE and --base cannot both be `-`; name a file for one of them",
            ),
        ];
        match checks.into_iter().find(|(is_wrong, _)| *is_wrong) {
            Some((_, message)) => Err(usage("import", ErrorKind::ArgumentConflict, message)),
            None => Ok(()),
        }
    }
}

/// Parses a probability.
fn probability(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| (0.0..=1.0).contains(number));
    number.ok_or_else(|| "expected a number from 0 to 1".to_owned())
}
