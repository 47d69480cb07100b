//! `prsl schema`: the JSON Schema of models.

use std::process::ExitCode;

use anyhow::Result;

use crate::output;

/// Print the JSON Schema of models in JSON
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  prsl schema > model.schema.json")]
pub struct Arguments {}

impl Arguments {
    /// Prints it.
    pub fn run(self) -> Result<ExitCode> {
        output::write(&prsl::Model::json_schema(), None)?;
        Ok(ExitCode::SUCCESS)
    }
}
