//! `prsl demo`
use std::process::ExitCode;
use anyhow::Result;
/// Show on a small example what rules do, and leave its files to play with
#[derive(Debug, clap::Args)]
pub struct Arguments {}
impl Arguments {
    /// Shows it.
    pub fn run(self) -> Result<ExitCode> { Ok(ExitCode::SUCCESS) }
}
