//! Learning on the paper's datasets. Input is classifiers' beliefs by fold. Models are learned on training rows,
//! selected on validation rows, and scored on test rows, with one setting for all datasets.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::{Parser, ValueEnum};
use prsl::calibrate::CalibrationMethod;
use prsl::infer::{EngineChoice, Samples, Sampling};
use prsl::learn::paper::{self, PaperLearner};
use prsl::learn::{Examples, Learner, Size};
use prsl::metrics::{Evaluation, Metric, Predictions, Scores};
use prsl::simulate::Simulation;
use prsl::{BeliefMatrix, CategoryId, Engines, LabelId, Model, Normalize, Truth};
use prsl_bench::cpu_time;
use prsl_data::{Cell, TableReader};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const DATASETS: [&str; 6] = ["emotions", "yeast", "birds", "medical", "enron", "mediamill2k"];
const METRICS: [Metric; 5] = [
    Metric::JointAccuracy,
    Metric::MeanJointLogLikelihood,
    Metric::MedianJointLogLikelihood,
    Metric::MedianLabelLogLikelihood,
    Metric::HammingLoss,
];
/// Maximum number of folds for hidden labels. Hiding every label of every fold would take too long.
const HIDDEN_FOLDS: usize = 5;
/// CPU seconds of one optimizer step of the authors' code.
const STEP_OF_THE_AUTHORS: f64 = 9.8;

/// Learning on the paper's datasets.
#[derive(Parser)]
struct Arguments {
    /// The folder of the belief files.
    #[arg(long, default_value = "../shared/data/beliefs")]
    data: PathBuf,
    /// Datasets, all of them by default: `birds,yeast`.
    #[arg(long, value_delimiter = ',')]
    datasets: Option<Vec<String>>,
    /// Maximum number of folds per dataset.
    #[arg(long, default_value_t = usize::MAX)]
    folds: usize,
    /// Parts, all of them by default.
    #[arg(long, value_delimiter = ',')]
    parts: Option<Vec<Part>>,
    /// The file for the report, as Markdown.
    #[arg(long, default_value = "target/learning.md")]
    out: PathBuf,
    /// The file for the scores of the default recipe by fold, as CSV.
    #[arg(long, default_value = "target/learning.csv")]
    scores: PathBuf,
}

/// A part of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// The default recipe on all datasets.
    Default,
<<<<<<< HEAD
    /// Try.
    Clauses,
    /// The paper's recipe on its three smaller datasets.
=======
    /// The paper's recipe on all datasets.
>>>>>>> paper
    Paper,
    /// Missing training labels.
    Missing,
    /// A label whose truth is never known.
    Hidden,
    /// Recovery of simulated models.
    Found,
    /// The time of a step.
    Step,
}

/// The rows of one fold.
struct Fold {
    train: Examples,
    valid: Examples,
    test: Examples,
}

/// Rows as they are read: beliefs and truths.
type Rows = (BeliefMatrix, Vec<Truth>);

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let mut report = String::new();
    let is_there = arguments.data.is_dir();
    if !is_there {
        println!(
            "only simulated data is learned from: there are no belief files in {}; name their folder with --data",
            arguments.data.display()
        );
    }
    for part in Part::value_variants() {
        let is_wanted = arguments.parts.as_ref().is_none_or(|parts| parts.contains(part));
        let needs_data = !matches!(part, Part::Found | Part::Step);
        if !is_wanted || needs_data && !is_there {
            continue;
        }
        let mut page = Page { text: &mut report };
        match part {
            Part::Clauses => clauses(&arguments, &mut page)?,
            Part::Default => default_recipe(&arguments, &mut page)?,
            Part::Paper => papers_recipe(&arguments, &mut page)?,
            Part::Missing => missing_labels(&arguments, &mut page)?,
            Part::Hidden => hidden_label(&arguments, &mut page)?,
            Part::Found => found_again(&mut page)?,
            Part::Step => steps(&mut page)?,
        }
    }
    write(&arguments.out, &report)
}

/// Writes a file, and makes its folder.
fn write(path: &Path, text: &str) -> Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// The report, which is printed and written.
struct Page<'a> {
    text: &'a mut String,
}

impl Page<'_> {
    fn line(&mut self, line: &str) {
        println!("{line}");
        let _ = writeln!(self.text, "{line}");
    }

    fn table(&mut self, title: &str, columns: &[&str]) {
        self.line(&format!("\n### {title}\n"));
        self.line(&format!("| {} |", columns.join(" | ")));
        self.line(&format!("|{}", "---|".repeat(columns.len())));
    }

    fn row(&mut self, cells: &[String]) {
        self.line(&format!("| {} |", cells.join(" | ")));
    }
}

impl Arguments {
    /// The folds of a dataset; empty if it is not requested.
    fn folds(&self, name: &str) -> Result<Option<(Model, Vec<Fold>)>> {
        let is_wanted = self.datasets.as_ref().is_none_or(|only| only.iter().any(|other| other == name));
        if !is_wanted {
            return Ok(None);
        }
        let (model, mut folds) = read(&self.data.join(format!("{name}.parquet")))?;
        folds.truncate(self.folds);
        Ok(Some((model, folds)))
    }
}

/// The default recipe on every dataset.
fn default_recipe(arguments: &Arguments, page: &mut Page) -> Result<()> {
    let names = METRICS.map(|metric| metric.name().replace('_', " "));
    let mut columns = vec!["dataset"];
    columns.extend(names.iter().map(String::as_str));
    columns.extend(["validation: mean joint log likelihood", "seconds a fold"]);
    page.table("One setting for all datasets, test rows", &columns);
    let mut by_fold = format!("dataset,fold,{}\n", METRICS.map(Metric::name).join(","));
    for name in DATASETS {
        let Some((model, folds)) = arguments.folds(name)? else { continue };
        let mut columns = vec![Vec::new(); METRICS.len() + 2];
        for (index, fold) in folds.iter().enumerate() {
            tell(name, index, folds.len());
            let start = Instant::now();
            let learned = Learner::default().learn(&model, &fold.train, &fold.valid)?;
            let seconds = start.elapsed().as_secs_f64();
            let scores = scores(&learned.model, &fold.test, &METRICS)?;
            let shown: Vec<String> = scores.iter().map(|score| format!("{score:.6}")).collect();
            let _ = writeln!(by_fold, "{name},{index},{}", shown.join(","));
            let cells = scores.into_iter().chain([learned.validation, seconds]);
            columns.iter_mut().zip(cells).for_each(|(column, cell)| column.push(cell));
        }
        let mut cells = vec![name.to_owned()];
        cells.extend(columns[..METRICS.len() + 1].iter().map(|column| with_error(column)));
        cells.push(format!("{:.1}", mean(&columns[METRICS.len() + 1])));
        page.row(&cells);
        write(&arguments.scores, &by_fold)?;
    }
    Ok(())
}

<<<<<<< HEAD
fn clauses(arguments: &Arguments, page: &mut Page) -> Result<()> {
    let names = METRICS.map(|metric| metric.name().replace('_', " "));
    let mut columns = vec!["dataset"];
    columns.extend(names.iter().map(String::as_str));
    columns.extend(["rules", "combinations", "seconds a fold"]);
    page.table("One setting for all datasets, test rows", &columns);
    for name in DATASETS {
        let Some((model, folds)) = arguments.folds(name)? else { continue };
        let mut columns = vec![Vec::new(); METRICS.len() + 3];
        for (index, fold) in folds.iter().enumerate() {
            tell(name, index, folds.len());
            let start = Instant::now();
            let mut rows = fold.train.clone();
            rows.append(&fold.valid)?;
            let learned = prsl::learn::ClauseLearner::default().learn(&model, &rows)?;
            let seconds = start.elapsed().as_secs_f64();
            let scores = scores(&learned.model, &fold.test, &METRICS)?;
            let cells = scores.into_iter().chain([learned.n_rules as f64, learned.model.typical().len() as f64, seconds]);
            columns.iter_mut().zip(cells).for_each(|(column, cell)| column.push(cell));
            if index == 0 { println!("{}", learned.model); }
        }
        let mut cells = vec![name.to_owned()];
        cells.extend(columns[..METRICS.len() + 2].iter().map(|column| with_error(column)));
        cells.push(format!("{:.1}", mean(&columns[METRICS.len() + 2])));
        page.row(&cells);
    }
    Ok(())
}

/// The paper's recipe where the paper reports joint accuracy 0.348, 0.236 and 0.507.
=======
/// The paper's recipe, with exact gradients where they are affordable. The accuracies are those of the paper.
>>>>>>> paper
fn papers_recipe(arguments: &Arguments, page: &mut Page) -> Result<()> {
    let names = METRICS.map(|metric| metric.name().replace('_', " "));
    let mut columns = vec!["dataset", "beliefs", "gradients and queries", "accuracy in the paper", "rows"];
    columns.extend(names.iter().map(String::as_str));
    columns.push("seconds a fold");
    page.table("The paper's recipe", &columns);
    let platt = paper::Calibrating::Alone(CalibrationMethod::Platt);
    for (name, accuracy) in DATASETS.into_iter().zip(["0.348", "0.236", "0.507", "0.491", "0.153", "0.149"]) {
        let Some((model, folds)) = arguments.folds(name)? else { continue };
        for (kind, calibrate) in [("raw", paper::Calibrating::Given), ("Platt", platt)] {
            let learner = PaperLearner { calibrate, ..PaperLearner::default() };
            let (means, how) = match papers_folds(name, &learner, &model, &folds) {
                Err(error) if matches!(error.downcast_ref(), Some(prsl::Error::TooCostly { .. })) => {
                    let learner = PaperLearner { gradients: paper::Gradients::Loopy, ..learner };
                    (papers_folds(name, &learner, &model, &folds)?, "loopy (exact is too costly)")
                }
                means => (means?, "exact"),
            };
            for (rows, scores) in ["training", "validation", "test"].iter().zip(means) {
                let mut cells = [name, kind, how, accuracy, rows].map(str::to_owned).to_vec();
                cells.extend(scores);
                page.row(&cells);
            }
        }
    }
    Ok(())
}

/// The scores of training, validation and test rows over all folds, and the seconds that a fold took.
fn papers_folds(
    name: &str,
    learner: &PaperLearner,
    model: &Model,
    folds: &[Fold],
) -> Result<[Vec<String>; 3]> {
    let choice = match learner.gradients {
        paper::Gradients::Exact => EngineChoice::Auto,
        paper::Gradients::Loopy => EngineChoice::Loopy,
    };
    let mut columns: [Vec<Vec<f64>>; 3] = std::array::from_fn(|_| vec![Vec::new(); METRICS.len()]);
    let mut seconds = Vec::new();
    for (index, fold) in folds.iter().enumerate() {
        tell(name, index, folds.len());
        let start = Instant::now();
        let learned = learner.learn(model, &fold.train, &fold.valid)?.model;
        seconds.push(start.elapsed().as_secs_f64());
        for (columns, rows) in columns.iter_mut().zip([&fold.train, &fold.valid, &fold.test]) {
            let scores = scores_by(choice, &learned, rows)?;
            // Loopy queries give no joint log-likelihood.
            let found = columns.iter_mut().zip(METRICS.map(|metric| scores.get(metric)));
            found.for_each(|(column, score)| column.extend(score));
        }
    }
    let shown = |column: &Vec<f64>| if column.is_empty() { "none".to_owned() } else { with_error(column) };
    Ok(columns.map(|columns| {
        columns.iter().map(shown).chain([format!("{:.1}", mean(&seconds))]).collect::<Vec<String>>()
    }))
}

/// The scores of rows by a choice of engines.
fn scores_by(choice: EngineChoice, model: &Model, rows: &Examples) -> Result<Scores> {
    let beliefs = beliefs_without(model, rows, usize::MAX)?;
    if choice == EngineChoice::Auto {
        return Ok(Evaluation::of(model, &beliefs, rows.truths())?.scores());
    }
    let engines = Engines::new(model).with_choice(choice);
    let engine = engines.marginals()?;
    let (posteriors, best) = (engine.infer_batch(&beliefs)?, engines.assignments()?.best_batch(&beliefs)?);
    let mut evaluation = Evaluation::new(model, engine.engine());
    let predictions = Predictions { posteriors: &posteriors, best: Some(&best), joint: None, labels: None };
    evaluation.add(predictions, rows.truths())?;
    Ok(evaluation.scores())
}

/// The effect of missing training labels.
fn missing_labels(arguments: &Arguments, page: &mut Page) -> Result<()> {
    const WANTED: [Metric; 2] = [Metric::JointAccuracy, Metric::MeanJointLogLikelihood];
    page.table(
        "Training labels that are missing, test rows",
        &["dataset", "missing", "accuracy", "log likelihood"],
    );
    let Some((model, folds)) = arguments.folds("yeast")? else { return Ok(()) };
    for share in [0.0, 0.3] {
        let mut columns = vec![Vec::new(); WANTED.len()];
        for (index, fold) in folds.iter().enumerate() {
            tell("yeast", index, folds.len());
            let mut rng = ChaCha8Rng::seed_from_u64(index as u64);
            let train = with_truths(&fold.train, |_, truth| truth.filter(|_| !rng.random_bool(share)))?;
            let learned = Learner::default().learn(&model, &train, &fold.valid)?;
            let scores = scores(&learned.model, &fold.test, &WANTED)?;
            columns.iter_mut().zip(scores).for_each(|(column, score)| column.push(score));
        }
        let mut cells = vec!["yeast".to_owned(), format!("{:.0} %", 100.0 * share)];
        cells.extend(columns.iter().map(|column| with_error(column)));
        page.row(&cells);
    }
    Ok(())
}

/// Predicts a label by rules. Its truth is never known in training, and its classifier is removed afterward.
fn hidden_label(arguments: &Arguments, page: &mut Page) -> Result<()> {
    let columns = [
        "dataset",
        "hidden label",
        "from rules: log likelihood",
        "from its prior",
        "accuracy",
        "of its prior",
    ];
    page.table(
        "A label whose truth is hidden in training, and its classifier taken away in the test",
        &columns,
    );
    for dataset in ["emotions", "yeast"] {
        hidden_labels_of(arguments, dataset, page)?;
    }
    Ok(())
}

fn hidden_labels_of(arguments: &Arguments, dataset: &str, page: &mut Page) -> Result<()> {
    let Some((model, mut folds)) = arguments.folds(dataset)? else { return Ok(()) };
    folds.truncate(HIDDEN_FOLDS);
    for label in model.label_ids() {
        let name = model.label(label).name();
        let mut columns = vec![Vec::new(); 4];
        for (index, fold) in folds.iter().enumerate() {
            tell(name, index, folds.len());
            let hide = |at: LabelId, truth: Option<CategoryId>| truth.filter(|_| at != label);
            let [train, valid] = [with_truths(&fold.train, hide)?, with_truths(&fold.valid, hide)?];
            let learned = Learner::default().learn(&model, &train, &valid)?.model;
            // The mean belief of its classifier is the only information about its base rate.
            let block = model.block(label);
            let sums = (0..train.n_rows()).fold(vec![0.0; block.len()], |sums: Vec<f64>, row| {
                sums.iter()
                    .zip(&train.beliefs().row(row)[block.clone()])
                    .map(|(sum, belief)| sum + belief)
                    .collect()
            });
            let prior: Vec<f64> = sums.iter().map(|sum| sum / train.n_rows() as f64).collect();
            let learned = learned.edit().unplug(name).prior(name, prior).build()?;
            let only = with_truths(&fold.test, |at, truth| truth.filter(|_| at == label))?;
            let alone = learned.without_rules()?;
            for (at, model) in [&learned, &alone].into_iter().enumerate() {
                let wanted = [Metric::MeanJointLogLikelihood, Metric::JointAccuracyMarginals];
                let found = scores_of(model, &beliefs_without(model, &only, label.index())?, &only, &wanted)?;
                columns[at].push(found[0]);
                columns[2 + at].push(found[1]);
            }
        }
        let mut cells = vec![dataset.to_owned(), name.to_owned()];
        cells.extend(columns.iter().map(|column| with_error(column)));
        page.row(&cells);
    }
    Ok(())
}

/// Simulated models with 10 labels and 10 rules, learned from samples: 3,500 training rows, 500 validation rows and
/// 1,000 test rows.
fn found_again(page: &mut Page) -> Result<()> {
    let columns = [
        "simulation",
        "beliefs alone",
        "learned",
        "generator",
        "short of the generator",
        "gap closed",
        "size",
        "seconds",
    ];
    page.table("Simulated models found again, mean joint log likelihood of test rows", &columns);
    for seed in 1..=5 {
        tell("simulation", seed as usize - 1, 5);
        let (generator, beliefs) = Simulation { n_labels: 10, n_rules: 10, n_rows: 5000, seed }.draw()?;
        let sampler = Engines::new(&generator).sampler()?;
        let samples =
            sampler.sample_batch(&beliefs, &Sampling { n_samples: 1, seed, ..Sampling::default() })?;
        let truth = |sample: prsl::Result<Option<Samples>>| -> Result<Truth> {
            let sample = sample?.context("a row is impossible")?;
            Ok(Truth::from(&sample[0]))
        };
        let truths = samples.into_iter().map(truth).collect::<Result<_>>()?;
        let rows = Examples::new(beliefs, truths)?;
        let [train, valid, test] =
            [0..3500, 3500..4000, 4000..5000].map(|range| rows.select(&range.collect::<Vec<usize>>()));
        let model = generator.without_rules()?;
        let start = Instant::now();
        let learned = Learner::default().learn(&model, &train, &valid)?;
        let seconds = start.elapsed().as_secs_f64();
        let score = |model: &Model| {
            Ok::<f64, anyhow::Error>(scores(model, &test, &[Metric::MeanJointLogLikelihood])?[0])
        };
        let [alone, found, best] = [score(&model)?, score(&learned.model)?, score(&generator)?];
        page.row(&[
            seed.to_string(),
            format!("{alone:.3}"),
            format!("{found:.3}"),
            format!("{best:.3}"),
            format!("{:.1} %", 100.0 * (best - found) / best.abs()),
            format!("{:.1} %", 100.0 * (found - alone) / (best - alone)),
            learned.size.to_string(),
            format!("{seconds:.1}"),
        ]);
    }
    Ok(())
}

/// CPU time of one step: a batch of 20 rows, 14 labels, 20 rules of 5 labels.
fn steps(page: &mut Page) -> Result<()> {
    page.table(
        "One step: 20 rows, 14 labels, 20 rules of 5 labels, CPU time",
        &["", "a step", "times less than 9.8 s"],
    );
    let model =
        (0..14).fold(Model::builder(), |builder, at| builder.binary_label(format!("l{at}"))).build()?;
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let (mut beliefs, mut truths) = (BeliefMatrix::new(&model), Vec::new());
    for _ in 0..400 {
        let cells: Vec<Option<f64>> =
            (0..14).flat_map(|_| [Some(rng.random_range(0.05..0.95)), None]).collect();
        beliefs.push(&cells, Normalize::Never)?;
        truths.push((0..14).map(|_| Some(CategoryId::new(rng.random_range(0..2)))).collect());
    }
    let rows = Examples::new(beliefs, truths)?;
    let one = rows.select(&[0]);
    let thin = Size::Thin { width: 4, rules_per_group: 2, wide: 0 };
    let thin = Learner { sizes: vec![thin], patience: Some(usize::MAX), ..Learner::paper() };
    let paper = |gradients: paper::Gradients, steps: usize| {
        let rules = vec![20];
        PaperLearner { rules, steps, gradients, patience: None, ..PaperLearner::default() }
    };
    for (name, gradients) in [
        ("thin recipe, exact", None),
        ("paper's recipe, exact", Some(paper::Gradients::Exact)),
        ("paper's recipe, loopy", Some(paper::Gradients::Loopy)),
    ] {
        let time = |steps: usize| -> Result<Duration> {
            let start = cpu_time();
            if let Some(gradients) = gradients {
                paper(gradients, steps).learn(&model, &rows, &one)?;
            } else {
                Learner { steps: Some(steps), ..thin.clone() }.learn(&model, &rows, &one)?;
            }
            Ok(cpu_time().saturating_sub(start))
        };
        let [few, many] = [time(100)?, time(500)?];
        let step = many.saturating_sub(few).as_secs_f64() / 400.0;
        let cells =
            [name.to_owned(), format!("{:.0} µs", 1e6 * step), format!("{:.0}", STEP_OF_THE_AUTHORS / step)];
        page.row(&cells);
    }
    Ok(())
}

fn tell(name: &str, fold: usize, folds: usize) {
    eprint!("\r{name}: fold {} of {folds}          \r", fold + 1);
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The mean over folds, with its standard error.
fn with_error(values: &[f64]) -> String {
    let (n, mean) = (values.len() as f64, mean(values));
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    format!("{mean:.3} ± {:.3}", (squares / (n - 1.0).max(1.0) / n).sqrt())
}

/// The same rows with other truths.
fn with_truths(
    rows: &Examples,
    mut change: impl FnMut(LabelId, Option<CategoryId>) -> Option<CategoryId>,
) -> Result<Examples> {
    let labels = || rows.beliefs().model().label_ids();
    let mut changed = |truth: &Truth| -> Truth {
        labels().zip(truth.categories()).map(|(label, category)| change(label, category)).collect()
    };
    let truths = rows.truths().iter().map(&mut changed).collect();
    Ok(Examples::new(rows.beliefs().clone(), truths)?)
}

/// The beliefs of rows, calibrated by a model, without those about one label.
fn beliefs_without(model: &Model, rows: &Examples, without: usize) -> Result<BeliefMatrix> {
    let blocks: Vec<_> = model.label_ids().map(|label| (label.index(), model.block(label))).collect();
    let mut beliefs = BeliefMatrix::new(model);
    for row in 0..rows.n_rows() {
        let given = rows.beliefs().row(row);
        let cell = |(label, at): (usize, usize)| (label != without).then_some(given[at]);
        let cells: Vec<Option<f64>> =
            blocks.iter().flat_map(|(label, block)| block.clone().map(|at| (*label, at))).map(cell).collect();
        beliefs.push(&cells, Normalize::Always)?;
    }
    Ok(beliefs)
}

fn scores(model: &Model, rows: &Examples, wanted: &[Metric]) -> Result<Vec<f64>> {
    scores_of(model, &beliefs_without(model, rows, usize::MAX)?, rows, wanted)
}

fn scores_of(model: &Model, beliefs: &BeliefMatrix, rows: &Examples, wanted: &[Metric]) -> Result<Vec<f64>> {
    let scores = Evaluation::of(model, beliefs, rows.truths())?.scores();
    wanted.iter().map(|metric| scores.get(*metric).context("a score is missing")).collect()
}

fn read(path: &Path) -> Result<(Model, Vec<Fold>)> {
    let mut table = TableReader::open(path)?;
    let columns = table.columns().to_vec();
    let names: Vec<&str> = columns.iter().filter_map(|column| column.strip_prefix("belief_")).collect();
    let builder = names.iter().fold(Model::builder(), |builder, name| builder.binary_label(*name));
    let model = builder.build()?;
    let column = |name: &str| {
        columns
            .iter()
            .position(|column| column == name)
            .with_context(|| format!("{} has no column {name}", path.display()))
    };
    let (fold, split) = (column("fold")?, column("split")?);
    let beliefs: Vec<usize> =
        names.iter().map(|name| column(&format!("belief_{name}"))).collect::<Result<_>>()?;
    let truths: Vec<usize> =
        names.iter().map(|name| column(&format!("true_{name}"))).collect::<Result<_>>()?;
    let mut parts: Vec<[Rows; 3]> = Vec::new();
    while let Some(chunk) = table.read_chunk(1000)? {
        for row in 0..chunk.n_rows() {
            let number = |column: usize| -> Result<f64> {
                chunk.cell(row, column).number()?.context("a number is missing")
            };
            let fold = number(fold)? as usize;
            while parts.len() <= fold {
                parts.push(std::array::from_fn(|_| (BeliefMatrix::new(&model), Vec::new())));
            }
            let split = match chunk.cell(row, split) {
                Cell::Text("train") => 0,
                Cell::Text("val") => 1,
                _ => 2,
            };
            let yes: Vec<f64> = beliefs.iter().map(|&column| number(column)).collect::<Result<_>>()?;
            let cells: Vec<Option<f64>> =
                yes.into_iter().flat_map(|yes| [Some(yes), Some(1.0 - yes)]).collect();
            let category = |&column: &usize| -> Result<Option<CategoryId>> {
                Ok(Some(CategoryId::new(usize::from(number(column)? < 0.5)))) // yes is the first category
            };
            let (rows, known) = &mut parts[fold][split];
            rows.push(&cells, Normalize::Always)?;
            known.push(truths.iter().map(category).collect::<Result<_>>()?);
        }
    }
    let folds = parts.into_iter().filter(|[train, ..]| train.0.n_rows() > 0).map(|parts| {
        let [train, valid, test] = parts.map(|(beliefs, truths)| Examples::new(beliefs, truths));
        Ok(Fold { train: train?, valid: valid?, test: test? })
    });
    Ok((model, folds.collect::<Result<_>>()?))
}
