//! The command line: all subcommands, and the arguments that several of them share.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};
use prsl::{Limits, Model};
use prsl_data::{BeliefOptions, BeliefReader, RowColumns, TableReader, TruthOptions, TruthReader};

use crate::memory::Memory;
use crate::{
    calibrate, check, compare, completions, demo, evaluate, explain, export, fmt, learn, plot, predict,
    schema, serve, simulate, style,
};

const EXAMPLES: &str = "\
Examples:
  prsl demo                                    a tour, with files for experiments
  prsl check warehouse.prsl                    check the rules
  prsl predict warehouse.prsl beliefs.csv      the posterior of every row
  prsl explain warehouse.prsl beliefs.csv --row 7
  prsl evaluate warehouse.prsl beliefs.csv truth.csv

Exit codes: 0 done, 1 `check` has findings or `fmt --check` a difference, 2 wrong usage,
3 the model or the data cannot be used.";

/// Exact inference with classifiers and probabilistic rules.
///
/// Each classifier gives probabilities for the categories of one label. Rules relate the labels, such as
///
///   rule 0.8: high & standing -> overhead
///
/// prsl computes the posterior of every label, and explains which rule changed what.
#[derive(Debug, Parser)]
#[command(name = "prsl", bin_name = "prsl", version, after_help = EXAMPLES, styles = style::HELP, max_term_width = 100)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Check(check::Arguments),
    Fmt(fmt::Arguments),
    Predict(predict::Arguments),
    Explain(explain::Arguments),
    Evaluate(evaluate::Arguments),
    Compare(compare::Arguments),
    Calibrate(calibrate::Arguments),
    Learn(Box<learn::Arguments>),
    Plot(plot::Arguments),
    Export(export::Arguments),
    Demo(demo::Arguments),
    Simulate(simulate::Arguments),
    Serve(serve::Arguments),
    Schema(schema::Arguments),
    Completions(completions::Arguments),
}

impl Arguments {
    /// Runs the subcommand.
    pub fn run(self) -> Result<ExitCode> {
        match self.command {
            Command::Check(arguments) => arguments.run(),
            Command::Fmt(arguments) => arguments.run(),
            Command::Predict(arguments) => arguments.run(),
            Command::Explain(arguments) => arguments.run(),
            Command::Evaluate(arguments) => arguments.run(),
            Command::Compare(arguments) => arguments.run(),
            Command::Calibrate(arguments) => arguments.run(),
            Command::Learn(arguments) => arguments.run(),
            Command::Plot(arguments) => arguments.run(),
            Command::Export(arguments) => arguments.run(),
            Command::Demo(arguments) => arguments.run(),
            Command::Simulate(arguments) => arguments.run(),
            Command::Serve(arguments) => arguments.run(),
            Command::Schema(arguments) => arguments.run(),
            Command::Completions(arguments) => arguments.run(),
        }
    }
}

/// A model, a table of beliefs, and options for reading it.
#[derive(Debug, clap::Args)]
pub struct Question {
    /// The model, `.prsl` text or JSON; `-` is standard input
    pub model: PathBuf,
    /// The beliefs, `.csv`, `.csv.gz` or `.parquet`; `-` is CSV on standard input
    ///
    /// Columns are named `label=category`, or `category` if only one label has it. A column named `label` has
    /// observed categories, or the probability of yes. Empty cells of a label share the remaining probability. A
    /// label without any cell takes its prior.
    #[arg(required = true)]
    pub beliefs: Option<PathBuf>,
    #[command(flatten)]
    pub tables: TableOptions,
    #[command(flatten)]
    pub memory: MemoryLimit,
}

/// Options for reading tables of beliefs and truths.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct TableOptions {
    /// Divide each belief by its sum, instead of rejecting those that do not sum to 1
    #[arg(long)]
    pub normalize: bool,
    /// Skip columns that the model does not know, instead of rejecting them
    #[arg(long)]
    pub ignore_extra: bool,
    /// Texts that mean a missing value, like an empty cell, separated by commas; for example NA,?
    #[arg(long, value_name = "TEXTS", value_delimiter = ',', allow_hyphen_values = true)]
    pub missing: Vec<String>,
}

impl TableOptions {
    /// Opens a table.
    pub fn open(&self, path: &Path) -> prsl_data::Result<TableReader> {
        Ok(TableReader::open(path)?.with_missing(&self.missing))
    }

    /// Opens a table as beliefs about a model.
    pub fn open_beliefs(&self, model: &Model, path: &Path) -> prsl_data::Result<BeliefReader> {
        let options = BeliefOptions { normalize: self.normalize, ignore_extra: self.ignore_extra };
        BeliefReader::new(model, self.open(path)?, options)
    }

    /// Opens a table as truths about a model, optionally with columns of weights and keys.
    pub fn open_truths(
        &self,
        model: &Model,
        path: &Path,
        columns: RowColumns<'_>,
    ) -> prsl_data::Result<TruthReader> {
        let options = TruthOptions { ignore_extra: self.ignore_extra };
        TruthReader::with_columns(model, self.open(path)?, options, columns)
    }
}

/// Limits of a command.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct MemoryLimit {
    /// Memory limit for tables, in bytes or with a unit: 512MiB, 2GiB, 500MB. Above it, inference is approximate if
    /// possible, else refused
    #[arg(long, value_name = "SIZE", default_value = "1GiB")]
    pub memory: Memory,
}

impl MemoryLimit {
    /// The same for the library.
    pub fn limits(self) -> Limits {
        Limits { memory: self.memory.bytes }
    }
}

impl Question {
    /// Refuses to read both from standard input.
    pub fn check(&self, subcommand: &str) -> Result<()> {
        let standard_input = Path::new("-");
        if self.model == standard_input && self.beliefs.as_deref() == Some(standard_input) {
            let message = "MODEL and BELIEFS cannot both be `-`; name a file for one of them";
            return Err(usage(subcommand, ErrorKind::ArgumentConflict, message));
        }
        Ok(())
    }

    /// The file of beliefs.
    pub fn beliefs(&self) -> &Path {
        self.beliefs.as_deref().expect("commands that read beliefs require them")
    }

    /// Opens the beliefs.
    pub fn open_beliefs(&self, model: &Model) -> prsl_data::Result<BeliefReader> {
        self.tables.open_beliefs(model, self.beliefs())
    }

    /// The limits of inference.
    pub fn limits(&self) -> Limits {
        self.memory.limits()
    }
}

/// A usage error of a subcommand.
pub fn usage(subcommand: &str, kind: ErrorKind, message: impl std::fmt::Display) -> anyhow::Error {
    let mut command = Arguments::command();
    command.build();
    let command = command.find_subcommand_mut(subcommand).expect("only subcommands complain");
    command.error(kind, message).into()
}

/// Parses a time in seconds.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let wanted = "expected a number of seconds, as in 0.5 or 30";
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.ok_or_else(|| wanted.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Arguments::command().debug_assert();
    }
}
