//! `prsl explain`: the effect of each rule on one row.

mod instance;

use std::process::ExitCode;

use anyhow::{Result, bail};
use prsl::{Engines, Explainer, Explanation};
use prsl_data::BeliefReader;

use self::instance::{Instance, with_ids};
use crate::arguments::Question;
use crate::check::Format;
use crate::failure::Refusal;
use crate::model::{self, ModelFile};
use crate::predict::EngineKind;
use crate::progress::counted;
use crate::{output, style};

/// Explain the answer for one row: the posterior with and without each rule
#[derive(Debug, clap::Args)]
#[command(mut_arg("beliefs", |beliefs| beliefs.required(false).required_unless_present("given")))]
#[command(override_usage = "\
prsl explain [OPTIONS] <MODEL> <BELIEFS> --row <N>
       prsl explain [OPTIONS] <MODEL> --given <EVIDENCE>")]
#[command(after_help = "\
Examples:
  prsl explain warehouse.prsl beliefs.csv --row 7
  prsl explain warehouse.prsl --given 'standing, high' --given 'activity ~ (0.1, 0.4, 0.5)'
  prsl explain warehouse.prsl beliefs.csv --row 7 --id image --format json
  prsl explain large.prsl beliefs.csv --row 7 --engine loopy

`--given` asks without a file. It has categories that are observed, and beliefs `label ~ (p1, p2, ...)`, as `expect` lines do; \
labels that it does not name have their priors.

The text shows the labels, categories and rules that changed most, so that it fits on a screen; `--all` shows all of them. For \
a label with a calibrator, it shows the belief as it was given, the calibrated belief that the rules start from, and the posterior.

Engines: `auto` explains exactly if a junction tree or a circuit fits the memory and takes at most 2e9 multiply-adds per row. \
Otherwise it uses loopy propagation on the model with and without each rule, and the output says that it is approximate. `exact` \
fails if exact marginals do not fit.")]
pub struct Arguments {
    #[command(flatten)]
    question: Question,
    /// The row, counted from 1 without the header
    #[arg(long, value_name = "N", value_parser = row_number, required_unless_present = "given")]
    row: Option<u64>,
    /// Evidence instead of a row of a file, separated by commas; may be given several times
    #[arg(long, value_name = "EVIDENCE", conflicts_with_all = ["beliefs", "row"])]
    given: Vec<String>,
    /// The engine
    #[arg(long, default_value = "auto")]
    engine: EngineKind,
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
        let instance = match self.row {
            Some(row) => {
                Instance::Row(Box::new(self.question.open_beliefs(&model.without_calibrators())?), row)
            }
            None => Instance::Given(model::valid(model.parse_evidence(&self.given.join(", ")), "--given")?),
        };
        let engines = Engines::new(model).with_limits(self.question.limits()).with_choice(self.engine.into());
        let other = (self.engine == EngineKind::Exact).then_some("`--engine loopy` approximates at any size");
        let explainer =
            Explainer::compile_with(&engines).map_err(|error| Refusal::of(error, model, other))?;
        let (explanation, ids) = instance.explain(&explainer)?;
        let named = ids.iter().map(|(name, value)| format!("{name} {value}\n")).collect::<String>();
        match self.format {
            Format::Text if self.all => {
                output::print(&(named + &style::explanation(&format!("{explanation:#}"))))?;
            }
            Format::Text => output::print(&(named + &style::explanation(&explanation.to_string())))?,
            Format::Json => output::write(&(with_ids(&explanation.to_json(), &ids)? + "\n"), None)?,
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
pub fn explain(explainer: &Explainer, beliefs: &mut BeliefReader, row: u64) -> Result<Explanation> {
    const CHUNK: u64 = 1000;
    let mut before = 0;
    // Does not read beyond the requested row, so that errors there do not matter.
    while let Some(chunk) = beliefs.next_chunk((row - before).min(CHUNK) as usize)? {
        before += chunk.n_rows() as u64;
        if before == row {
            return Ok(explainer.explain_raw(&chunk, chunk.n_rows() - 1)?);
        }
    }
    bail!("there is no row {row}: `{}` has {}", beliefs.table().name(), counted(before, "row"))
}
