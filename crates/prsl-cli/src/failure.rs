//! Errors: messages for people, and exit codes for programs.

use std::borrow::Cow;
use std::path::Path;
use std::process::ExitCode;

use prsl::lint::Diagnostics;
use prsl::{Loopy, Model};
use prsl_data::{ColumnsProblem, CsvProblem, RowProblem};

use crate::output;
use crate::style::{self, shell, styled};

/// `check` has findings, or `fmt --check` a difference.
pub const FINDINGS: u8 = 1;
/// Wrong usage of the command.
pub const USAGE: u8 = 2;
/// The model or the data cannot be used.
pub const UNUSABLE: u8 = 3;

/// A row has a status that `predict --fail-on` names.
pub const FAILED_ROWS: u8 = 4;

/// A model text with errors, and the file it is from.
#[derive(Debug)]
pub struct InvalidText {
    /// The file.
    pub file: String,
    /// All its errors.
    pub diagnostics: Diagnostics,
}

impl std::fmt::Display for InvalidText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.diagnostics.render(&self.file))
    }
}

impl std::error::Error for InvalidText {}

/// A query that is too costly, and the options that help.
#[derive(Debug)]
pub struct Refusal {
    cause: prsl::Error,
    ways_out: Vec<&'static str>,
}

/// The advice if memory is the limit.
const MORE_MEMORY: &str = "`--memory 8GiB`, for example, raises the limit";

impl Refusal {
    /// Adds advice to an error about cost: another engine, if one can handle the model, and more memory, if
    /// that is the limit.
    pub fn of(error: prsl::Error, model: &Model, other_engine: Option<&'static str>) -> anyhow::Error {
        if !matches!(error, prsl::Error::TooCostly { .. }) {
            return error.into();
        }
        // No engine can handle such a rule, so there is no advice.
        let other_engine = other_engine.filter(|_| Loopy::compile(model).is_ok());
        let more_memory = error.yields_to_memory().then_some(MORE_MEMORY);
        let ways_out: Vec<&str> = other_engine.into_iter().chain(more_memory).collect();
        if ways_out.is_empty() { error.into() } else { Refusal { cause: error, ways_out }.into() }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.cause.fmt(f)
    }
}

impl std::error::Error for Refusal {}

/// Prints the error, and returns the exit code.
pub fn report(error: &anyhow::Error) -> ExitCode {
    if output::is_broken_pipe(error) {
        return ExitCode::SUCCESS;
    }
    if let Some(error) = error.downcast_ref::<clap::Error>() {
        let _ = error.print(); // if standard error is closed, nothing can be reported
        return ExitCode::from(USAGE);
    }
    if let Some(invalid) = error.downcast_ref::<InvalidText>() {
        output::complain(&style::diagnostics(&invalid.to_string()));
        return ExitCode::from(UNUSABLE);
    }
    let message = format!("{error:#}");
    let mut text = format!("{}: {}\n", styled(style::ERROR, "error"), without_number(&message));
    if let Some(advice) = advice(error) {
        text.push_str(&format!("  {} {advice}\n", styled(style::STRONG, "help:")));
    }
    output::complain(&text);
    let is_usage = matches!(error.downcast_ref(), Some(prsl_data::Error::Dialect { .. }));
    ExitCode::from(if is_usage { USAGE } else { UNUSABLE })
}

/// The options that help, if any.
fn advice(error: &anyhow::Error) -> Option<Cow<'static, str>> {
    if let Some(refusal) = error.downcast_ref::<Refusal>() {
        return Some(refusal.ways_out.join("; ").into());
    }
    if let Some(prsl::Error::NoStart { .. }) = error.downcast_ref() {
        return Some(MORE_MEMORY.into());
    }
    match error.downcast_ref()? {
        prsl_data::Error::Columns { problem: ColumnsProblem::OtherDelimiter { delimiter }, .. }
        | prsl_data::Error::Csv { problem: CsvProblem::OtherDelimiter { delimiter, .. }, .. } => {
            let name = match delimiter {
                '\t' => "tab".to_owned(),
                other => shell(Path::new(&other.to_string())),
            };
            Some(format!("`--delimiter {name}` reads it; for beliefs such as 0,7 add `--decimal ,`").into())
        }
        prsl_data::Error::Columns { problem: ColumnsProblem::Unknown { .. }, .. } => {
            let skips = "`--ignore-extra` skips columns that the model does not know";
            Some(format!("{skips}; `--id COLUMNS` copies those that name the rows").into())
        }
        prsl_data::Error::Row { problem: RowProblem::Belief(cause), .. }
            if matches!(**cause, prsl::Error::Sum { .. }) =>
        {
            Some("`--normalize` divides each belief by its sum".into())
        }
        prsl_data::Error::Cell { problem, .. } if problem.decimal_sign().is_some() => {
            Some(match problem.decimal_sign() {
                Some(',') => "`--decimal ,` reads numbers as 0,7".into(),
                _ => "without `--decimal ,`, numbers are read as 0.7".into(),
            })
        }
        prsl_data::Error::Cell { problem, .. } => {
            let code = problem.missing_code()?;
            Some(format!("`--missing {}` takes it for an empty cell", shell(Path::new(&code))).into())
        }
        _ => None,
    }
}

/// The message without the number of the operating system's error.
fn without_number(message: &str) -> &str {
    match message.rfind(" (os error ") {
        Some(end) if message.ends_with(')') => &message[..end],
        _ => message,
    }
}
