//! `prsl completions`: shell completion.

use std::process::ExitCode;

use anyhow::Result;
use clap::CommandFactory;
use clap_complete::Shell;

use crate::output;

/// Print a script that completes `prsl` commands in a shell
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  prsl completions bash > ~/.local/share/bash-completion/completions/prsl
  prsl completions fish > ~/.config/fish/completions/prsl.fish")]
pub struct Arguments {
    /// The shell
    shell: Shell,
}

impl Arguments {
    /// Prints the script.
    pub fn run(self) -> Result<ExitCode> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut crate::arguments::Arguments::command(), "prsl", &mut script);
        output::write(&String::from_utf8_lossy(&script), None)?;
        Ok(ExitCode::SUCCESS)
    }
}
