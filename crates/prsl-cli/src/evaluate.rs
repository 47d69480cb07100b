//! `prsl evaluate`: how good the answers are, and what the rules gain.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use prsl::infer::{AssignmentEngine, EngineSettings, MarginalEngine};
use prsl::metrics::{
    Bootstrap, Evaluation, Intervals, Metric, Predictions, Scores, joint_log_likelihoods,
    label_log_likelihoods,
};
use prsl::{BeliefMatrix, Engine, Engines, Error, Limits, Model, Truth};
use prsl_data::LabeledReader;
use serde::{Serialize, Serializer};

use crate::arguments::Question;
use crate::check::Format;
use crate::figures::{self, Effects};
use crate::model::ModelFile;
use crate::predict::{EngineKind, chunk_rows};
use crate::progress::{Progress, grouped};
use crate::style::{self, styled};
use crate::{labeled, output};

/// Score predictions against known truths, with and without the rules
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  prsl evaluate warehouse.prsl beliefs.csv truth.csv
  prsl evaluate warehouse.prsl beliefs.parquet truth.parquet --format json
  prsl evaluate warehouse.prsl beliefs.csv truth.csv --plots figures
  prsl evaluate large.prsl beliefs.csv truth.csv --engine loopy --threads 4

TRUTH has a column for each label, in any order, with the names of categories (for yes/no labels also 1 and 0, true and \
false), and a row for each row of BELIEFS. Empty cells and missing columns are unknown. A row counts with its known labels.

Joint accuracy: the share of rows in which the most probable assignment is right for all known labels. Label by label: \
the same with the most probable category of each label. Hamming loss: the share of known labels whose most probable \
category is wrong. Joint log-likelihood: ln of the joint probability of all known labels of a row. Label by label: the \
sum of the labels' log probabilities. F1 is that of yes for yes/no labels, and of each category for other labels. \
Calibration error: the mean difference between probabilities and frequencies, in 15 bins per category. A truth of \
probability 0 scores ln 1e-300 and is counted as impossible. Intervals are 95 % bootstrap intervals (1,000 resamples).

The joint log-likelihood needs exact inference; with loopy propagation it is missing (null).")]
pub struct Arguments {
    #[command(flatten)]
    question: Question,
    /// The truths, `.csv`, `.csv.gz` or `.parquet`; `-` is CSV on standard input
    truth: PathBuf,
    /// The output format
    #[arg(long, default_value = "text")]
    format: Format,
    /// The engine
    #[arg(long, default_value = "auto")]
    engine: EngineKind,
    /// Seed of the bootstrap intervals
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Draw figures into this folder: graph.svg, reliability.svg, influence.svg, weights.svg
    #[arg(long, value_name = "DIR")]
    plots: Option<PathBuf>,
    /// The number of threads [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

/// The figures of `--plots`.
const FIGURES: [&str; 4] = ["graph.svg", "reliability.svg", "influence.svg", "weights.svg"];

impl Arguments {
    /// Predicts all rows, and scores the predictions.
    pub fn run(self) -> Result<ExitCode> {
        let question = &self.question;
        let (model, beliefs) = (question.model.as_path(), question.beliefs());
        labeled::check("evaluate", [("MODEL", model), ("BELIEFS", beliefs), ("TRUTH", &self.truth)])?;
        if let Some(folder) = &self.plots {
            let figures = FIGURES.map(|name| folder.join(name));
            output::spare(&[model, beliefs, &self.truth], &figures.each_ref().map(PathBuf::as_path))?;
        }
        let file = ModelFile::read(&question.model)?;
        let reader = labeled::open(file.document.model(), question, &self.truth)?;
        let settings = EngineSettings { limits: question.limits(), ..EngineSettings::default() };
        let mut comparison = Comparison::compile(file.document.model(), self.engine, &settings)?;
        comparison.with.tell_doubts(self.engine);
        let text = labeled::threads(self.threads)?.install(|| {
            match &self.plots {
                None => comparison.read(reader, |_, _| Ok(()))?,
                Some(folder) => draw(&mut comparison, reader, settings.limits, folder)?,
            }
            Ok::<_, anyhow::Error>(self.report(&comparison))
        })?;
        match self.format {
            Format::Text => output::print(&text)?,
            Format::Json => output::write(&text, None)?,
        }
        Ok(ExitCode::SUCCESS)
    }

    fn report(&self, comparison: &Comparison) -> String {
        let bootstrap = Bootstrap { seed: self.seed, ..Bootstrap::default() };
        let with = Scored::new(&comparison.with.evaluation, &bootstrap);
        match self.format {
            Format::Json => {
                serde_json::to_string_pretty(&with).expect("writing to memory does not fail") + "\n"
            }
            Format::Text => text(&with, &Scored::new(&comparison.alone.evaluation, &bootstrap)),
        }
    }
}

/// Predicts all rows, and draws the figures.
fn draw(comparison: &mut Comparison, reader: LabeledReader, limits: Limits, folder: &Path) -> Result<()> {
    let model = comparison.with.marginals.model().clone();
    let mut effects = match Effects::compile(&model, limits) {
        Err(error @ Error::TooCostly { .. }) => {
            let note = styled(style::NOTE, "note");
            output::complain(&format!("{note}: influence and weights of rules are not drawn: {error}\n"));
            None
        }
        effects => Some(effects?),
    };
    comparison.read(reader, |rows, truths| match &mut effects {
        None => Ok(()),
        Some(effects) => effects.add_influences(rows).and_then(|()| effects.add_gains(rows, truths)),
    })?;
    fs::create_dir_all(folder).with_context(|| format!("cannot make folder `{}`", folder.display()))?;
    let [graph, reliability, influence, weights] = FIGURES.map(|name| folder.join(name));
    output::write(&figures::graph(&model), Some(&graph))?;
    output::write(&figures::reliability(&comparison.evaluations()), Some(&reliability))?;
    if let Some(effects) = effects {
        output::write(&effects.influence(), Some(&influence))?;
        output::write(&effects.weights(), Some(&weights))?;
    }
    Ok(())
}

/// Evaluations with the rules, and of the beliefs alone.
pub struct Comparison {
    /// With the rules.
    pub with: Scorer,
    /// Without them.
    pub alone: Scorer,
}

impl Comparison {
    /// Compiles both.
    pub fn compile(model: &Model, engine: EngineKind, settings: &EngineSettings) -> Result<Comparison> {
        let with = Scorer::compile(model, engine, settings)?;
        // Without rules, exact inference costs almost nothing.
        let alone = Scorer::compile(&model.without_rules()?, EngineKind::Exact, &EngineSettings::default())?;
        Ok(Comparison { with, alone })
    }

    /// The evaluations with their names.
    pub fn evaluations(&self) -> [(&'static str, &Evaluation); 2] {
        [("with the rules", &self.with.evaluation), ("beliefs alone", &self.alone.evaluation)]
    }

    /// Predicts all rows of both tables, and passes them to a callback.
    pub fn read(
        &mut self,
        mut reader: LabeledReader,
        mut observe: impl FnMut(&BeliefMatrix, &[Truth]) -> Result<()>,
    ) -> Result<()> {
        let (mut progress, mut rows) = (Progress::new(true), 0);
        let (_, most) = chunk_rows(self.with.marginals.model(), self.with.work());
        while let Some((beliefs, truths)) = reader.next_chunk(most)? {
            self.with.add(&beliefs, &truths)?;
            self.alone.add(&beliefs, &truths)?;
            observe(&beliefs, &truths)?;
            rows += truths.len() as u64;
            progress.update(rows, reader.progress());
        }
        progress.finish();
        Ok(())
    }
}

/// Predicts rows and accumulates their scores.
pub struct Scorer {
    marginals: MarginalEngine,
    /// `None` if the most probable assignment is too expensive.
    assignments: Option<AssignmentEngine>,
    /// The evaluation so far.
    pub evaluation: Evaluation,
}

impl Scorer {
    /// Predicts all rows, and returns the evaluation.
    pub fn score(model: &Model, rows: &BeliefMatrix, truths: &[Truth], limits: Limits) -> Result<Evaluation> {
        let settings = EngineSettings { limits, ..EngineSettings::default() };
        let mut scorer = Self::compile(model, EngineKind::Auto, &settings)?;
        let (_, most) = chunk_rows(model, scorer.work());
        for start in (0..rows.n_rows()).step_by(most) {
            let chunk = start..rows.n_rows().min(start + most);
            scorer.add(&rows.slice(chunk.clone()), &truths[chunk])?;
        }
        Ok(scorer.evaluation)
    }

    fn compile(model: &Model, engine: EngineKind, settings: &EngineSettings) -> Result<Scorer> {
        let engines = Engines::new(model).with_choice(engine.into()).with_settings(*settings);
        let marginals = engines.marginals()?;
        let assignments = match engines.assignments() {
            Err(Error::TooCostly { .. }) if engine == EngineKind::Auto => None,
            assignments => Some(assignments?),
        };
        let evaluation = Evaluation::new(model, marginals.engine());
        Ok(Scorer { marginals, assignments, evaluation })
    }

    fn work(&self) -> f64 {
        self.marginals.work() + self.assignments.as_ref().map_or(0.0, AssignmentEngine::work)
    }

    fn add(&mut self, rows: &BeliefMatrix, truths: &[Truth]) -> Result<()> {
        let posteriors = self.marginals.infer_batch(rows)?;
        let best = self.assignments.as_ref().map(|engine| engine.best_batch(rows)).transpose()?;
        let infer = |rows: &BeliefMatrix| self.marginals.infer_batch(rows);
        let joint = joint_log_likelihoods(rows, truths, &posteriors, infer)?;
        let labels = label_log_likelihoods(rows, truths, &posteriors, infer)?;
        let predictions = Predictions {
            posteriors: &posteriors,
            best: best.as_deref(),
            joint: joint.as_deref(),
            labels: Some(&labels),
        };
        Ok(self.evaluation.add(predictions, truths)?)
    }

    /// Notes that answers are approximate.
    fn tell_doubts(&self, engine: EngineKind) {
        let note = styled(style::NOTE, "note");
        if engine == EngineKind::Auto && self.marginals.engine() == Engine::Loopy {
            output::complain(&format!("{note}: marginals are approximate, {}\n", self.marginals.reason()));
        }
        if self.assignments.is_none() {
            output::complain(&format!(
                "{note}: the most probable assignment is too expensive for this model, so the joint accuracy is missing\n"
            ));
        }
    }
}

/// Scores with their intervals.
pub struct Scored {
    scores: Scores,
    intervals: Intervals,
}

impl Scored {
    /// The scores of these answers.
    pub fn new(evaluation: &Evaluation, bootstrap: &Bootstrap) -> Scored {
        Scored { scores: evaluation.scores(), intervals: evaluation.intervals(bootstrap) }
    }

    /// `0.6200 [0.5200, 0.7100]`, or `-`.
    pub fn shown(&self, metric: Metric) -> [String; 2] {
        let score = self.scores.get(metric).map_or("-".to_owned(), |score| format!("{score:.4}"));
        let interval = self.intervals.get(metric);
        [score, interval.map_or(String::new(), |[low, high]| format!("[{low:.4}, {high:.4}]"))]
    }

    /// Whether a score is better than the other one.
    pub fn is_better_than(&self, other: &Scored, metric: Metric) -> bool {
        match (self.scores.get(metric), other.scores.get(metric)) {
            (Some(score), Some(other)) if metric.higher_is_better() => score > other,
            (Some(score), Some(other)) => score < other,
            _ => false,
        }
    }
}

impl Serialize for Scored {
    /// One object; undefined scores are null.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        let scores = &self.scores;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("rows", &scores.rows)?;
        for metric in Metric::ALL {
            map.serialize_entry(metric.name(), &scores.get(metric))?;
        }
        map.serialize_entry("engine", scores.engine.name())?;
        map.serialize_entry("not_converged", &scores.not_converged)?;
        map.serialize_entry("impossible", &scores.impossible)?;
        map.serialize_entry("intervals", &ByName(&self.intervals))?;
        map.end()
    }
}

struct ByName<'a>(&'a Intervals);

impl Serialize for ByName<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(Metric::ALL.map(|metric| (metric.name(), self.0.get(metric))))
    }
}

/// The name of a score for people.
pub fn title(metric: Metric) -> &'static str {
    match metric {
        Metric::JointAccuracy => "joint accuracy",
        Metric::JointAccuracyMarginals => "joint accuracy, label by label",
        Metric::HammingLoss => "Hamming loss (lower is better)",
        Metric::MeanJointLogLikelihood => "joint log-likelihood, mean",
        Metric::MedianJointLogLikelihood => "joint log-likelihood, median",
        Metric::MeanLabelLogLikelihood => "log-likelihood, label by label, mean",
        Metric::MedianLabelLogLikelihood => "log-likelihood, label by label, median",
        Metric::MicroF1 => "micro F1",
        Metric::MacroF1 => "macro F1",
        Metric::ExpectedCalibrationError => "calibration error (lower is better)",
        other => other.name(),
    }
}

/// A table: every score with and without the rules, the better one highlighted.
fn text(with: &Scored, alone: &Scored) -> String {
    let mut text = format!("{}\n\n", heading(&with.scores));
    let column = |scored: &Scored| Metric::ALL.map(|metric| scored.shown(metric));
    let (left, right) = (column(with), column(alone));
    let width = |cells: &[[String; 2]], part: usize| cells.iter().map(|it| it[part].len()).max().unwrap_or(0);
    let name = Metric::ALL.iter().map(|&metric| title(metric).len()).max().unwrap_or(0);
    let widths = [width(&left, 0), width(&left, 1), width(&right, 0), width(&right, 1)];
    let first = widths[0] + 2 + widths[1];
    let _ = writeln!(text, "{:name$}  {:first$}  beliefs alone", "", "with the rules");
    for (index, metric) in Metric::ALL.into_iter().enumerate() {
        let [score, interval] = &left[index];
        let score = emphasized(format!("{score:>0$}", widths[0]), with.is_better_than(alone, metric));
        let _ = write!(text, "{:name$}  {score}  {interval:>1$}", title(metric), widths[1]);
        let [score, interval] = &right[index];
        let score = emphasized(format!("{score:>0$}", widths[2]), alone.is_better_than(with, metric));
        let line = format!("  {score}  {interval:>0$}", widths[3]);
        let _ = writeln!(text, "{}", line.trim_end());
    }
    let _ = write!(
        text,
        "\nIn brackets: 95 % bootstrap intervals (1,000 resamples of the rows).\n{}",
        remarks(&with.scores)
    );
    text
}

fn emphasized(text: String, is_better: bool) -> String {
    if is_better { styled(style::GOOD, text) } else { text }
}

fn heading(scores: &Scores) -> String {
    let rows = counted(scores.rows);
    let unknown = match scores.rows - scores.scored_rows {
        0 => String::new(),
        n => format!(", {} of them without any known truth", grouped(n as u64)),
    };
    let engine = scores.engine.name().replace('_', " ");
    styled(style::STRONG, format_args!("{rows}{unknown}; {engine}"))
}

/// Notes below the table.
fn remarks(scores: &Scores) -> String {
    let mut text = String::new();
    let mut tell = |n: usize, what: &str| {
        if n > 0 {
            let _ = writeln!(text, "{} {what}", styled(style::WARNING, counted(n)));
        }
    };
    tell(
        scores.impossible,
        "impossible: the truth has probability 0, or rules and beliefs contradict each other",
    );
    tell(scores.not_converged, "not converged, or imprecise");
    if scores.engine == Engine::Loopy {
        let note = styled(style::NOTE, "note");
        let _ = writeln!(text, "{note}: no joint log-likelihood, which takes exact inference");
    }
    text
}

fn counted(rows: usize) -> String {
    if rows == 1 { "1 row".to_owned() } else { format!("{} rows", grouped(rows as u64)) }
}
