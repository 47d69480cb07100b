//! `prsl plot`: figures about a model and its answers.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::ValueEnum;
use clap::error::ErrorKind;
use prsl::Model;
use prsl::infer::EngineSettings;

use crate::arguments::{MemoryLimit, Question, TableOptions, usage};
use crate::evaluate::{Files, Parts};
use crate::figures::{self, Effects, INFLUENCE_ROWS};
use crate::model::ModelFile;
use crate::predict::EngineKind;
use crate::progress::Progress;
use crate::{labeled, output};

/// Draw a figure as SVG: the rules, or their effect on predictions
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  prsl plot warehouse.prsl --what graph -o rules.svg
  prsl plot warehouse.prsl beliefs.csv --what influence -o influence.svg
  prsl plot warehouse.prsl beliefs.csv truth.csv --what reliability -o reliability.svg
  prsl plot warehouse.prsl beliefs.csv truth.csv --what weights -o weights.svg

graph: labels as boxes, rules as numbered dots connected with their labels.
influence: the largest change of a probability by each rule, mean over the first 1,000 rows.
reliability: predicted probabilities against observed frequencies, with and without the rules.
weights: the gain of each rule in joint log-likelihood, mean over rows; a rule with a negative gain does harm.

Figures are self-contained, for light and dark pages. `prsl evaluate --plots DIR` draws all of them.")]
pub struct Arguments {
    /// The model, `.prsl` text or JSON; `-` is standard input
    model: PathBuf,
    /// The beliefs, as for `prsl predict`; for all figures except `graph`
    beliefs: Option<PathBuf>,
    /// The truths, as for `prsl evaluate`; for `reliability` and `weights`
    truth: Option<PathBuf>,
    /// The figure
    #[arg(long)]
    what: Figure,
    /// Write to this file; `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// The engine, for `reliability`
    #[arg(long, default_value = "auto")]
    engine: EngineKind,
    #[command(flatten)]
    tables: TableOptions,
    #[command(flatten)]
    memory: MemoryLimit,
    /// The number of threads [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

/// The figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Figure {
    /// The graph of rules and labels
    Graph,
    /// Predicted probabilities against observed frequencies
    Reliability,
    /// The effect of each rule on the posterior
    Influence,
    /// The gain of each rule on known truths
    Weights,
}

/// Number of rows read at a time.
const CHUNK: usize = 1000;

impl Arguments {
    /// Draws the figure.
    pub fn run(self) -> Result<ExitCode> {
        self.check()?;
        let inputs = [Some(&self.model), self.beliefs.as_ref(), self.truth.as_ref()];
        let inputs: Vec<&Path> = inputs.into_iter().flatten().map(PathBuf::as_path).collect();
        output::prepare(&self.output, &inputs)?;
        // No file name if the figure does not need the table.
        let (question, truth) = (self.question(), self.truth.clone().unwrap_or_default());
        let file = ModelFile::read(&self.model)?;
        let model = file.document.model();
        let svg = labeled::threads(self.threads)?.install(|| match self.what {
            Figure::Graph => Ok(figures::graph(model)),
            Figure::Reliability => self.reliability(model, &question, &truth),
            Figure::Influence => influence(model, &question),
            Figure::Weights => weights(model, &question, &truth),
        })?;
        output::write(&svg, Some(&self.output))?;
        Ok(ExitCode::SUCCESS)
    }

    fn question(&self) -> Question {
        let (model, beliefs) = (self.model.clone(), self.beliefs.clone());
        Question { model, beliefs, tables: self.tables.clone(), memory: self.memory }
    }

    /// Requires the inputs of the figure. Others are ignored, so that all figures accept the same arguments.
    fn check(&self) -> Result<()> {
        let (needs_beliefs, needs_truth) = match self.what {
            Figure::Graph => (false, false),
            Figure::Influence => (true, false),
            Figure::Reliability | Figure::Weights => (true, true),
        };
        self.tables.check_bad_rows("plot")?;
        let what = self.what.to_possible_value().expect("all figures have names");
        let checks = [
            (needs_beliefs && self.beliefs.is_none(), "BELIEFS"),
            (needs_truth && self.truth.is_none(), "TRUTH"),
        ];
        if let Some((_, table)) = checks.into_iter().find(|(missing, _)| *missing) {
            let message = format!("`--what {}` needs {table}", what.get_name());
            return Err(usage("plot", ErrorKind::MissingRequiredArgument, message));
        }
        let tables = [("BELIEFS", &self.beliefs), ("TRUTH", &self.truth)];
        let tables = tables.iter().filter_map(|(name, path)| Some((*name, path.as_deref()?)));
        labeled::check("plot", [("MODEL", self.model.as_path())].into_iter().chain(tables))
    }

    fn reliability(&self, model: &Model, question: &Question, truth: &Path) -> Result<String> {
        let settings = EngineSettings { limits: question.limits(), ..EngineSettings::default() };
        let progress = Progress::of("compiling the model and its parts", true);
        let parts = Parts::compile(model, self.engine, &settings)?;
        progress.finish();
        let mut rows = Files::new(model, &question.tables, [question.beliefs(), truth], None)?;
        let reliability = parts.score(&mut rows, |_, _| Ok(()), |_, it| figures::reliability(&it))?;
        let titled = reliability.into_iter().map(|(part, reliability)| (part.title(), reliability));
        Ok(figures::reliability_diagram(titled.collect()))
    }
}

fn influence(model: &Model, question: &Question) -> Result<String> {
    let mut beliefs = question.open_beliefs(model)?;
    let mut effects = Effects::compile(model, question.limits())?;
    let mut left = INFLUENCE_ROWS;
    let (mut n_skipped, mut n_read, mut problem) = (0, 0, None);
    while let Some(rows) = beliefs.next_chunk(left.min(CHUNK))? {
        effects.add_influences(&rows)?;
        left -= rows.n_rows();
        let first_problem = beliefs.bad_rows().first().map(|bad| bad.error().to_string());
        problem = problem.or(first_problem);
        (n_skipped, n_read) = (n_skipped + beliefs.bad_rows().len() as u64, n_read + beliefs.n_read() as u64);
        if left == 0 {
            break;
        }
    }
    labeled::tell_skipped(n_skipped, n_read, problem.as_deref());
    Ok(effects.influence())
}

fn weights(model: &Model, question: &Question, truth: &Path) -> Result<String> {
    let mut reader = labeled::open(model, &question.tables, [question.beliefs(), truth], None)?;
    let mut effects = Effects::compile(model, question.limits())?;
    while let Some((rows, truths)) = reader.next_chunk(CHUNK)? {
        effects.add_gains(&rows, &truths)?;
    }
    labeled::tell_skipped_by(&reader);
    Ok(effects.weights())
}
