//! `prsl check`: findings about the rules.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::ValueEnum;
use prsl::lint::Diagnostic;
use prsl::lint::{self, Finding, Implied};
use prsl::{Body, Limits};
use serde::Serialize;

use crate::arguments::MemoryLimit;
use crate::failure::{FINDINGS, InvalidText, UNUSABLE};
use crate::model::ModelFile;
use crate::output;
use crate::progress::counted;
use crate::style::{self, styled};

/// Check the rules of a model: contradictions, redundant rules, failed expectations
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  prsl check warehouse.prsl
  prsl check --verbose warehouse.prsl
  prsl check --implied warehouse.prsl
  prsl check --format json warehouse.prsl

The text has one line per finding. Three or more findings of the same kind about the same label have one line \
together. `--verbose` and JSON have every finding with its place, the rules that it follows from, and advice.

A rule `0.97: b -> a` does not make P(a | b) = 0.97, unless `a` is as likely as not without it. `--implied` shows for each rule the \
probability of its conclusion if its condition holds, with this rule alone and without it.

`expect` lines of the model are run as its tests. Below a failed one are the reasons in two lines: how far the rules move the \
probability, and what it would be without those that matter most:
  expect standing, high => overhead > 0.6

The note `inference-cost` names the engine that `prsl predict` uses for the model, and the reason; in JSON it is also \
the field `inference`.

The finding `not-decided` names questions that were not decided within the limit on counted steps; `not-checked` names \
rules and expectations that were too large to check. Both count as findings.

Exits with 1 if there are findings (notes do not count), and with 3 if the text is not a model. In JSON its \
errors are findings with the code `syntax`.")]
pub struct Arguments {
    /// The model, `.prsl` text or JSON; `-` is standard input
    model: PathBuf,
    /// The output format
    #[arg(long, default_value = "text")]
    format: Format,
    /// Show each finding with its place, the rules that it follows from, and advice
    #[arg(long, short)]
    verbose: bool,
    /// Also show what each rule makes of its conclusion by itself, at the labels' priors
    #[arg(long)]
    implied: bool,
    #[command(flatten)]
    memory: MemoryLimit,
}

/// The output format of findings and explanations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    Text,
    /// For programs
    Json,
}

impl Arguments {
    /// Checks, and prints the findings.
    pub fn run(self) -> Result<ExitCode> {
        let file = match ModelFile::read(&self.model) {
            Err(error) if self.format == Format::Json => return errors_in_json(error),
            file => file?,
        };
        let mut report = Report::new(&file, self.memory.limits());
        if self.implied {
            report.implied = Some(lint::implied(file.document.model()));
        }
        match self.format {
            Format::Text if self.verbose => output::print(&report.details(&file))?,
            Format::Text => output::print(&report.text(&file))?,
            Format::Json => report.print_json()?,
        }
        Ok(if report.findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(FINDINGS) })
    }
}

/// In JSON, errors of a text are findings; other errors have no position in the text.
fn errors_in_json(error: anyhow::Error) -> Result<ExitCode> {
    let invalid = error.downcast::<InvalidText>()?;
    Report::of_errors(&invalid).print_json()?;
    Ok(ExitCode::from(UNUSABLE))
}

/// The findings and notes about a model.
#[derive(Debug, Serialize)]
pub struct Report {
    file: String,
    /// The engine and the reason; `None` if the text is not a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    inference: Option<String>,
    /// The findings that require action.
    findings: Vec<Finding>,
    notes: Vec<Finding>,
    /// With `--implied`.
    #[serde(skip_serializing_if = "Option::is_none")]
    implied: Option<Vec<Implied>>,
}

impl Report {
    /// Checks a model.
    pub fn new(file: &ModelFile, limits: Limits) -> Report {
        let (findings, notes): (Vec<_>, Vec<_>) =
            lint::check_within(&file.document, limits).into_iter().partition(Finding::counts);
        let cost = notes.iter().find(|note| note.code == "inference-cost");
        let inference = cost.and_then(|note| note.message.strip_prefix("inference: ")).map(str::to_owned);
        Report { file: file.name.clone(), inference, findings, notes, implied: None }
    }

    /// The errors of a text that is not a model.
    fn of_errors(invalid: &InvalidText) -> Report {
        let finding = |error: &Diagnostic| Finding::of_syntax_error(error, invalid.diagnostics.source());
        let findings = invalid.diagnostics.list().iter().map(finding).collect();
        Report { file: invalid.file.clone(), inference: None, findings, notes: Vec::new(), implied: None }
    }

    fn print_json(&self) -> Result<()> {
        output::write(&(serde_json::to_string_pretty(self)? + "\n"), None)
    }

    /// For people, with colors: one line per finding, or for several of the same kind.
    pub fn text(&self, file: &ModelFile) -> String {
        let mut text = String::new();
        for list in [&self.findings, &self.notes] {
            for summary in lint::summarize(&file.document, list) {
                text.push_str(&style::summary(&summary.render(&self.file)));
                text.push('\n');
                summary.why.iter().for_each(|why| text.push_str(&format!("    {why}\n")));
            }
        }
        let more = if self.findings.is_empty() { "" } else { "; `--verbose` shows their places and reasons" };
        format!("{text}{}{}{more}\n", self.implications(file), self.closing())
    }

    /// For people, with colors: every finding with its place, reasons and advice.
    fn details(&self, file: &ModelFile) -> String {
        let mut text = String::new();
        for finding in self.findings.iter().chain(&self.notes) {
            text.push_str(&style::diagnostics(&finding.render(&self.file, file.document.source())));
            text.push('\n');
        }
        text + &self.implications(file) + &self.closing() + "\n"
    }

    /// What each rule makes of its conclusion: `if b then a: 0.395 instead of 0.020`.
    fn implications(&self, file: &ModelFile) -> String {
        let Some(implied) = &self.implied else { return String::new() };
        let model = file.document.model();
        let mut text = styled(style::STRONG, "each rule by itself, at the labels' priors") + "\n";
        for it in implied {
            let rule = model.rule_text(prsl::RuleId::new(it.rule - 1));
            let statement = match &it.condition {
                Some(condition) => format!("if {condition} then {}", it.conclusion),
                None => it.conclusion.clone(),
            };
            let stated = &model.rules()[it.rule - 1];
            let (kind, statement) = match stated.body() {
                Body::NoisyOr(_) => ("noisy_or", "it fires".to_owned()),
                _ => ("rule", statement),
            };
            let _ = writeln!(text, "{:>3}  {kind} {}: {rule}", it.rule, stated.probability());
            let _ = writeln!(text, "     {statement}: {:.3} instead of {:.3}", it.with, it.without);
        }
        let n_left = model.rules().len() - implied.len();
        if n_left > 0 {
            let _ = writeln!(
                text,
                "     {} too large, or with an impossible condition",
                counted(n_left as u64, "rule")
            );
        }
        text + "\n"
    }

    /// `2 findings, 3 notes` or `no findings (1 note)`.
    fn closing(&self) -> String {
        let notes = counted(self.notes.len() as u64, "note");
        match (self.findings.len(), self.notes.len()) {
            (0, 0) => styled(style::GOOD, "no findings"),
            (0, _) => format!("{} ({notes})", styled(style::GOOD, "no findings")),
            (n, 0) => styled(style::ERROR, counted(n as u64, "finding")),
            (n, _) => format!("{}, {notes}", styled(style::ERROR, counted(n as u64, "finding"))),
        }
    }
}
