//! `prsl explain`: the effect of each rule on one row, what would change the answer, and what should be asked next.

mod answers;
mod instance;

use std::process::ExitCode;

use anyhow::Result;
use prsl::{Engines, Explainer, Explanation};
use prsl_data::BeliefReader;

use self::instance::{Ids, Instance, ids_of_last_row, read_row, with_ids};
use crate::arguments::Question;
use crate::check::Format;
use crate::failure::Refusal;
use crate::model::{self, ModelFile};
use crate::predict::EngineKind;
use crate::{output, style};
use answers::Asked;

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
  prsl explain warehouse.prsl beliefs.csv --row 7 --flip hands=high
  prsl explain warehouse.prsl beliefs.csv --row 7 --next activity
  prsl explain warehouse.prsl beliefs.csv --row 7 --next all

`--given` asks without a file. It has categories that are observed, and beliefs `label ~ (p1, p2, ...)`, as `expect` lines do; \
labels that it does not name have their priors.

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
    #[arg(long, value_name = "N", value_parser = row_number, required_unless_present = "given")]
    row: Option<u64>,
    /// Evidence instead of a row of a file, separated by commas; may be given several times
    #[arg(long, value_name = "EVIDENCE", conflicts_with_all = ["beliefs", "row"])]
    given: Vec<String>,
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
        self.question.tables.check_bad_rows("explain")?;
        let file = ModelFile::read(&self.question.model)?;
        let model = file.document.model();
        let (instance, ids) = match self.row {
            Some(row) => {
                let mut beliefs = self.question.open_beliefs(&model.without_calibrators())?;
                (read_row(&mut beliefs, row)?, ids_of_last_row(&beliefs))
            }
            None => {
                let evidence = model::valid(model.parse_evidence(&self.given.join(", ")), "--given")?;
                (Instance::Given(evidence), Ids::new())
            }
        };
        let engines = Engines::new(model).with_limits(self.question.limits()).with_choice(self.engine.into());
        let other = (self.engine == EngineKind::Exact).then_some("`--engine loopy` approximates at any size");
        let refused = |error| Refusal::of(error, model, other);
        if let Some(question) = self.asked.question(model)? {
            let engine = engines.marginals().map_err(refused)?;
            let answer = question.answer(&engine, &instance)?;
            return self.print(answer.text(self.all), &answer.json, &ids);
        }
        let explainer = Explainer::compile_with(&engines).map_err(refused)?;
        let explanation = instance.explain(&explainer)?;
        let text = if self.all { format!("{explanation:#}") } else { explanation.to_string() };
        self.print(&text, &explanation.to_json(), &ids)
    }

    /// Prints an answer, with what identifies its row.
    fn print(&self, text: &str, json: &str, ids: &Ids) -> Result<ExitCode> {
        match self.format {
            Format::Text => {
                let named: String = ids.iter().map(|(name, value)| format!("{name} {value}\n")).collect();
                output::print(&(named + &style::explanation(text)))?;
            }
            Format::Json => output::write(&(with_ids(json, ids)? + "\n"), None)?,
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
    read_row(beliefs, row)?.explain(explainer)
}
