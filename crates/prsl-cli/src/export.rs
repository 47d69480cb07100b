//! `prsl export`: models for other programs.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::ValueEnum;
use prsl::export::ExportFormat;
use prsl::{Evidence, Limits, Model};

use crate::arguments::MemoryLimit;
use crate::model::{self, ModelFile};
use crate::output;

/// Export a model to other programs
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  prsl export warehouse.prsl --to json -o warehouse.json
  prsl export warehouse.json --to prsl
  prsl export warehouse.prsl --to dot | dot -Tsvg > warehouse.svg

`--memory` limits the tables of `uai` and `bif`; no other format has any.")]
pub struct Arguments {
    /// The model, `.prsl` text or JSON; `-` is standard input
    model: PathBuf,
    /// The format
    #[arg(long, value_name = "FORMAT")]
    to: Language,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    memory: MemoryLimit,
}

/// The format.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Language {
    /// The model in JSON, as `prsl` reads it (its schema: `prsl schema`)
    Json,
    /// The model as text, as `prsl` reads it
    Prsl,
    /// A Markov network in the format of the UAI competitions
    Uai,
    /// The names behind the numbers of the UAI format, tab-separated
    UaiNames,
    /// A Bayesian network in the Interchange Format; each rule is a node to be observed as `true`
    Bif,
    /// A ProbLog program
    Problog,
    /// A graph for Graphviz
    Dot,
}

impl Language {
    fn write(self, model: &Model, limits: Limits) -> prsl::Result<String> {
        let export = |format| model.export_within(&Evidence::new(), format, limits);
        match self {
            Language::Json => Ok(model.to_json()),
            Language::Prsl => Ok(model.to_string()),
            Language::Uai => export(ExportFormat::Uai),
            Language::UaiNames => model.export_uai_names(),
            Language::Bif => export(ExportFormat::Bif),
            Language::Problog => export(ExportFormat::ProbLog),
            Language::Dot => export(ExportFormat::Dot),
        }
    }
}

impl Arguments {
    /// Writes the model.
    pub fn run(self) -> Result<ExitCode> {
        if let Some(file) = &self.output {
            output::prepare(file, &[&self.model])?;
        }
        let file = ModelFile::read(&self.model)?;
        let text = model::valid(self.to.write(file.document.model(), self.memory.limits()), &file.name)?;
        output::write(&text, self.output.as_deref())?;
        Ok(ExitCode::SUCCESS)
    }
}
