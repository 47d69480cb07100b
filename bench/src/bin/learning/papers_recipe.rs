//! The recipe of the paper on its datasets.

use std::time::{Duration, Instant};

use anyhow::Result;
use prsl::calibrate::CalibrationMethod;
use prsl::infer::EngineChoice;
use prsl::learn::Examples;
use prsl::learn::paper::{self, PaperLearner};
use prsl::metrics::{Evaluation, Predictions, Scores};
use prsl::{BeliefMatrix, CategoryId, Engines, Model, Normalize};
use prsl_bench::cpu_time;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{Arguments, DATASETS, Fold, METRICS, Page, beliefs_without, mean, tell, with_error};

/// CPU seconds of one optimizer step of the authors' code.
const STEP_OF_THE_AUTHORS: f64 = 9.8;

/// The paper's recipe, with exact gradients where they are affordable. The accuracies are those of the paper.
pub fn papers_recipe(arguments: &Arguments, page: &mut Page) -> Result<()> {
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
        return Ok(Evaluation::of(model, &beliefs, &rows.to_truths())?.scores());
    }
    let engines = Engines::new(model).with_choice(choice);
    let engine = engines.marginals()?;
    let (posteriors, best) = (engine.infer_batch(&beliefs)?, engines.assignments()?.best_batch(&beliefs)?);
    let mut evaluation = Evaluation::new(model, engine.engine());
    let predictions = Predictions { posteriors: &posteriors, best: Some(&best), joint: None, labels: None };
    evaluation.add(predictions, &rows.to_truths())?;
    Ok(evaluation.scores())
}

/// CPU time of one step: a batch of 20 rows, 14 labels, 20 rules of 5 labels.
pub fn steps(page: &mut Page) -> Result<()> {
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
    let paper = |gradients: paper::Gradients, steps: usize| {
        let rules = vec![20];
        PaperLearner { rules, steps, gradients, patience: None, ..PaperLearner::default() }
    };
    for (name, gradients) in [
        ("paper's recipe, exact", paper::Gradients::Exact),
        ("paper's recipe, loopy", paper::Gradients::Loopy),
    ] {
        let time = |steps: usize| -> Result<Duration> {
            let start = cpu_time();
            paper(gradients, steps).learn(&model, &rows, &one)?;
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
