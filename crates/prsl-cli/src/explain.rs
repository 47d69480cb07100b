//! `prsl explain`: the effect of each rule on one row, what would change the answer, and what should be asked next.

mod answers;

use std::process::ExitCode;

use anyhow::{Result, bail};
use prsl::{BeliefMatrix, Engines, Explainer, Explanation};
use prsl_data::BeliefReader;

use crate::arguments::Question;
use crate::check::Format;
use crate::failure::Refusal;
use crate::model::ModelFile;
use crate::predict::EngineKind;
use crate::progress::counted;
use crate::{output, style};
use answers::Asked;

/// Explain the answer for one row: the posterior with and without each rule
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  prsl explain warehouse.prsl beliefs.csv --row 7
  prsl explain warehouse.prsl beliefs.csv --row 7 --format json
  prsl explain large.prsl beliefs.csv --row 7 --engine loopy
  prsl explain warehouse.prsl beliefs.csv --row 7 --flip hands=high
  prsl explain warehouse.prsl beliefs.csv --row 7 --next activity
  prsl explain warehouse.prsl beliefs.csv --row 7 --next all

The text shows the labels, categories and rules that changed most, so that it fits on a screen; `--all` shows all of them. For \
a label with a calibrator, it shows the belief as it was given, the calibrated belief that the rules start from, and the posterior.

`--flip` lists, for each label, the smallest change of its belief and the observations that make the category the most probable \
one, each alone. The distance is the total variation of the calibrated belief. An observed label can be observed otherwise or not be \
observed. `--next` lists the expected gain in information from observing each label, in bits: about one label, or the sum over all.

Engines: `auto` explains exactly if a junction tree or a circuit fits the memory and takes at most 2e9 multiply-adds per row. \
Otherwise it uses loopy propagation on the model with and without each rule, and the output says that it is approximate. `exact` \
fails if exact marginals do not fit.")]
pub struct Arguments {
    #[command(flatten)]
    question: Question,
    /// The row, counted from 1 without the header
    #[arg(long, value_name = "N", value_parser = row_number)]
    row: u64,
    /// The engine
    #[arg(long, default_value = "auto")]
    engine: EngineKind,
    #[command(flatten)]
    asked: Asked,
    /// Show all labels, categories and rules, not only those that matter
    #[arg(long)]
    all: bool,
    /// The output format
    #[arg(long, default_value = "text")]
    format: Format,
}

impl Arguments {
    /// Explains, and prints the explanation.
    pub fn run(self) -> Result<ExitCode> {
        self.question.check("explain")?;
        let file = ModelFile::read(&self.question.model)?;
        let model = file.document.model();
        let beliefs = self.question.open_beliefs(&model.without_calibrators())?;
        let engines = Engines::new(model).with_limits(self.question.limits()).with_choice(self.engine.into());
        let other = (self.engine == EngineKind::Exact).then_some("`--engine loopy` approximates at any size");
        let refused = |error| Refusal::of(error, model, other);
        if let Some(question) = self.asked.question(model)? {
            let engine = engines.marginals().map_err(refused)?;
            let rows = find_row(beliefs, self.row)?;
            question.answer(&engine, &rows, rows.n_rows() - 1, self.format, self.all)?;
            return Ok(ExitCode::SUCCESS);
        }
        let explainer = Explainer::compile_with(&engines).map_err(refused)?;
        let explanation = explain(&explainer, beliefs, self.row)?;
        match self.format {
            Format::Text if self.all => output::print(&style::explanation(&format!("{explanation:#}")))?,
            Format::Text => output::print(&style::explanation(&explanation.to_string()))?,
            Format::Json => output::write(&(explanation.to_json() + "\n"), None)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn row_number(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(0) => Err("rows count from 1".to_owned()),
        Ok(row) => Ok(row),
        Err(_) => Err("expected a whole number, 1 or more".to_owned()),
    }
}

/// Explains a row of a table of raw beliefs.
pub fn explain(explainer: &Explainer, beliefs: BeliefReader, row: u64) -> Result<Explanation> {
    let rows = find_row(beliefs, row)?;
    Ok(explainer.explain_raw(&rows, rows.n_rows() - 1)?)
}

/// Reads up to a row. It is the last one of the rows that are returned.
fn find_row(mut beliefs: BeliefReader, row: u64) -> Result<BeliefMatrix> {
    const CHUNK: u64 = 1000;
    let mut before = 0;
    // Does not read beyond the requested row, so that errors there do not matter.
    while let Some(chunk) = beliefs.next_chunk((row - before).min(CHUNK) as usize)? {
        before += chunk.n_rows() as u64;
        if before == row {
            return Ok(chunk);
        }
    }
    bail!("there is no row {row}: `{}` has {}", beliefs.table().name(), counted(before, "row"))
}
