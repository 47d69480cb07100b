//! The command line: all subcommands, and the arguments that several of them share.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand, ValueEnum};
use prsl::{Limits, Model};
use prsl_data::{
    BeliefOptions, BeliefReader, CsvDialect, RowColumns, TableReader, TruthOptions, TruthReader,
};

use crate::memory::Memory;
use crate::{
    calibrate, check, compare, completions, demo, evaluate, explain, export, fmt, import, learn, lsp, output,
    plot, predict, schema, serve, simulate, style,
};

const EXAMPLES: &str = "\
Examples:
  prsl demo                                    a tour, with files for experiments
  prsl check warehouse.prsl                    check the rules
  prsl predict warehouse.prsl beliefs.csv      the posterior of every row
  prsl explain warehouse.prsl beliefs.csv --row 7
  prsl evaluate warehouse.prsl beliefs.csv truth.csv

Exit codes: 0 done, 1 `check` has findings or `fmt --check` a difference, 2 wrong usage,
3 the model or the data cannot be used, 4 a row has a status that `predict --fail-on` names.";

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
    Import(import::Arguments),
    Demo(demo::Arguments),
    Simulate(simulate::Arguments),
    Serve(serve::Arguments),
    Lsp(lsp::Arguments),
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
            Command::Import(arguments) => arguments.run(),
            Command::Demo(arguments) => arguments.run(),
            Command::Simulate(arguments) => arguments.run(),
            Command::Serve(arguments) => arguments.run(),
            Command::Lsp(arguments) => arguments.run(),
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
    /// Columns of BELIEFS that identify the rows, separated by commas; for example --id image,frame. They are copied to the
    /// output where it lists rows, and compared with the columns of the same names in TRUTH
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    pub id: Vec<String>,
    /// The character between the columns of CSV files: `,`, `;`, `|` or `tab` [default: `,`, or `;` with `--decimal ,`]
    #[arg(long, value_name = "CHARACTER", value_parser = character)]
    pub delimiter: Option<char>,
    /// The decimal sign of numbers in CSV files, `.` or `,` [default: .]
    #[arg(long, value_name = "CHARACTER", value_parser = character)]
    pub decimal: Option<char>,
    /// What to do with a row that is not valid, for example with a cell that is no number or a belief that does not sum
    /// to 1. A file that is damaged or cut off is always an error
    #[arg(long, value_name = "WHAT", default_value = "error")]
    pub on_bad_row: OnBadRow,
}

/// What to do with a row that is not valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum OnBadRow {
    /// Stop with an error that names file and row
    #[default]
    Error,
    /// Leave it out, and say how many there were
    Skip,
    /// `predict` only: answer it with the status `invalid`, and say why in the column `problem`
    Mark,
}

impl TableOptions {
    /// Opens a table. Notes that the index of a data frame is ignored.
    pub fn open(&self, path: &Path) -> prsl_data::Result<TableReader> {
        let table = TableReader::open_as(path, self.dialect()?)?.with_missing(&self.missing);
        if table.index_columns().iter().any(|column| !self.id.contains(column)) {
            let note = style::styled(style::NOTE, "note");
            output::complain_once(format!(
                "{note}: the first column of `{}` has no name; it is ignored, as the index of a data frame\n",
                table.name()
            ));
        }
        Ok(table)
    }

    /// The options that were given, as they are typed in a shell.
    pub fn as_typed(&self) -> String {
        let quoted = |text: &str| style::shell(Path::new(text));
        let listed = |name: &str, texts: &[String]| match texts {
            [] => String::new(),
            texts => format!(" {name} {}", quoted(&texts.join(","))),
        };
        let flag = |name: &str, is_given: bool| if is_given { format!(" {name}") } else { String::new() };
        let character = |name: &str, character: Option<char>| match character {
            None => String::new(),
            Some('\t') => format!(" {name} tab"),
            Some(character) => format!(" {name} {}", quoted(&character.to_string())),
        };
        [
            flag("--normalize", self.normalize),
            flag("--ignore-extra", self.ignore_extra),
            listed("--missing", &self.missing),
            listed("--id", &self.id),
            character("--delimiter", self.delimiter),
            character("--decimal", self.decimal),
            flag("--on-bad-row skip", self.on_bad_row != OnBadRow::Error),
        ]
        .concat()
    }

    /// The delimiter and the decimal sign.
    fn dialect(&self) -> prsl_data::Result<CsvDialect> {
        let decimal = self.decimal.unwrap_or('.');
        let usual = if decimal == ',' { ';' } else { ',' };
        CsvDialect::new(self.delimiter.unwrap_or(usual), decimal)
    }

    /// Opens a table as beliefs about a model.
    pub fn open_beliefs(&self, model: &Model, path: &Path) -> prsl_data::Result<BeliefReader> {
        let options = BeliefOptions { normalize: self.normalize, ignore_extra: self.ignore_extra };
        let reader = BeliefReader::with_ids(model, self.open(path)?, options, &self.id)?;
        Ok(if self.on_bad_row == OnBadRow::Error { reader } else { reader.with_bad_rows_apart() })
    }

    /// Rejects `--on-bad-row mark` for commands that do not list all rows.
    pub fn check_bad_rows(&self, subcommand: &str) -> Result<()> {
        if self.on_bad_row == OnBadRow::Mark {
            let message = "`--on-bad-row mark` is for `prsl predict`; use `skip` or `error`";
            return Err(usage(subcommand, ErrorKind::ArgumentConflict, message));
        }
        Ok(())
    }

    /// Opens a table as truths about a model, optionally with columns of weights and keys.
    pub fn open_truths(
        &self,
        model: &Model,
        path: &Path,
        columns: RowColumns<'_>,
    ) -> prsl_data::Result<TruthReader> {
        let options = TruthOptions { ignore_extra: self.ignore_extra };
        TruthReader::with_columns(model, self.open(path)?, options, columns.with_ids(&self.id))
    }
}

/// Parses a single character, or the word `tab`.
pub fn character(text: &str) -> Result<char, String> {
    let mut characters = text.chars();
    match (text, characters.next(), characters.next()) {
        ("tab" | "\\t", ..) => Ok('\t'),
        (_, Some(character), None) => Ok(character),
        _ => Err("expected one character, or `tab`".to_owned()),
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
    fn options_of_tables_can_be_typed_again() {
        let text = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
        let options = TableOptions {
            normalize: true,
            missing: text(&["NA", "?"]),
            id: text(&["image"]),
            delimiter: Some(';'),
            decimal: Some(','),
            on_bad_row: OnBadRow::Mark,
            ..TableOptions::default()
        };
        let expected =
            " --normalize --missing 'NA,?' --id image --delimiter ';' --decimal , --on-bad-row skip";
        assert_eq!(options.as_typed(), expected);
        assert_eq!(TableOptions::default().as_typed(), "");
    }

    #[test]
    fn the_arguments_are_consistent() {
        Arguments::command().debug_assert();
    }
}
