//! `prsl demo`: a warehouse example that shows rules and learning, and leaves files for experiments.

mod camera;
mod files;
mod first_act;
mod picture;
mod second_act;
mod shift;
mod strain;
mod warehouse;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;

use crate::output;
use camera::Camera;
use files::Files;
use first_act::FirstAct;
use second_act::SecondAct;
use strain::Strain;

/// Show on a small example what rules do, and leave its files for experiments
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  prsl demo
  prsl demo ~/warehouse

First a shift of twelve rows with three rules: check, predict, explain. Then thousands of rows for learning and \
testing. Last a label without any trained classifier, and a camera that breaks.

Writes warehouse.prsl, learned.prsl, strain.prsl and tables. Never overwrites files that have been changed.")]
pub struct Arguments {
    /// The folder for the files; created if necessary
    #[arg(value_name = "DIR", default_value = "demo")]
    folder: PathBuf,
}

impl Arguments {
    /// Writes the files, and shows the output of the subcommands.
    pub fn run(self) -> Result<ExitCode> {
        let files = Files::new(&self.folder);
        let first = FirstAct::set_up(&files)?;
        let second = SecondAct::set_up(&files)?;
        let strain = Strain::set_up(&files, &second)?;
        let camera = Camera::set_up(&files, &second)?;
        let strained = strain.shown().first().copied().unwrap_or(0);
        let acts = [first.show()?, second.show()?, strain.show()?, camera.show()?];
        output::print(&(acts.concat() + &first.invite(strained)?))?;
        Ok(ExitCode::SUCCESS)
    }
}
