//! The default recipe on the paper's datasets.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use prsl::learn::{Examples, Learner};
use prsl::metrics::Metric;
use prsl::{CategoryId, LabelId, Model};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{
    Arguments, DATASETS, METRICS, Page, beliefs_without, mean, scores, scores_of, tell, with_error,
    with_truths, write,
};

/// The scores by fold of the recipe that this one replaced.
const OLD_SCORES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/scores/thin.csv");
/// Maximum number of folds for hidden labels. Hiding every label of every fold would take too long.
const HIDDEN_FOLDS: usize = 5;

/// Scores, sizes and time of a model, fold by fold.
#[derive(Default)]
struct ByFold {
    accuracy: Vec<f64>,
    log_likelihood: Vec<f64>,
    sizes: [Vec<f64>; 2],
    seconds: Vec<f64>,
}

impl ByFold {
    fn push(&mut self, scores: &[f64], (model, seconds): &(Model, f64)) {
        self.accuracy.push(scores[0]);
        self.log_likelihood.push(scores[1]);
        self.sizes[0].push(model.rules().len() as f64);
        self.sizes[1].push(model.typical().len() as f64);
        self.seconds.push(*seconds);
    }

    /// Joint accuracy and log-likelihood.
    fn scores(&self) -> String {
        format!("{:.3} / {:.3}", mean(&self.accuracy), mean(&self.log_likelihood))
    }

    /// Rules and combinations.
    fn sizes(&self) -> String {
        let [rules, combinations] = self.sizes.each_ref().map(|sizes| mean(sizes));
        format!("{rules:.0} / {combinations:.0}")
    }
}

/// A model learned by the default recipe, and the seconds it took.
fn timed(model: &Model, rows: &Examples) -> Result<(Model, f64)> {
    let start = Instant::now();
    let learned = Learner::default().learn(model, rows)?.model;
    Ok((learned, start.elapsed().as_secs_f64()))
}

/// The lines of the table. Constants of the learner are chosen by the scores on validation rows.
const LINES: [&str; 7] = [
    "`thin` (removed)",
    "`clauses`, training and validation rows",
    "`clauses`, training rows alone",
    "the same, scored on validation rows",
    "log-likelihood over `thin`, by fold",
    "rules / combinations",
    "seconds a fold",
];

/// The default recipe on every dataset, learned from training and validation rows, and from training rows alone.
pub fn default_recipe(arguments: &Arguments, page: &mut Page) -> Result<()> {
    let old = old_scores(Path::new(OLD_SCORES))?;
    let mut lines: Vec<Vec<String>> = LINES.iter().map(|&line| vec![line.to_owned()]).collect();
    let mut columns = vec![""];
    let mut by_fold = format!("dataset,rows,fold,{}\n", METRICS.map(Metric::name).join(","));
    for name in DATASETS {
        let Some((model, folds)) = arguments.folds(name)? else { continue };
        let mut found: [ByFold; 3] = Default::default();
        for (index, fold) in folds.iter().enumerate() {
            tell(name, index, folds.len());
            let both = joined(&fold.train, &fold.valid)?;
            let (from_both, from_train) = (timed(&model, &both)?, timed(&model, &fold.train)?);
            let scored = [(&from_both, &fold.test), (&from_train, &fold.test), (&from_train, &fold.valid)];
            let sources = ["train+val", "train", "train (validation rows)"];
            for ((source, found), (learned, rows)) in sources.iter().zip(&mut found).zip(scored) {
                let scores = scores(&learned.0, rows, &METRICS)?;
                let shown: Vec<String> = scores.iter().map(|score| format!("{score:.6}")).collect();
                let _ = writeln!(by_fold, "{name},{source},{index},{}", shown.join(","));
                found.push(&scores, learned);
            }
        }
        write(&arguments.scores, &by_fold)?;
        let [both, train, valid] = &found;
        let of_old = |fold: usize| old.get(&(name.to_owned(), fold)).copied().unwrap_or([f64::NAN; 2]);
        let thin: Vec<[f64; 2]> = (0..folds.len()).map(of_old).collect();
        let [accuracy, log_likelihood] =
            [0, 1].map(|score| thin.iter().map(|it| it[score]).collect::<Vec<_>>());
        let gains = both.log_likelihood.iter().zip(&log_likelihood).map(|(new, old)| new - old);
        let cells = [
            format!("{:.3} / {:.3}", mean(&accuracy), mean(&log_likelihood)),
            both.scores(),
            train.scores(),
            valid.scores(),
            with_error(&gains.collect::<Vec<_>>()),
            both.sizes(),
            format!("{:.1}", mean(&both.seconds)),
        ];
        println!("{name}: {}", cells.join(" | "));
        lines.iter_mut().zip(cells).for_each(|(line, cell)| line.push(cell));
        columns.push(name);
    }
    page.table(
        "Joint accuracy and mean joint log-likelihood on test rows, one setting for all datasets",
        &columns,
    );
    lines.iter().for_each(|line| page.row(line));
    Ok(())
}

/// Joint accuracy and mean joint log-likelihood by dataset and fold.
fn old_scores(path: &Path) -> Result<HashMap<(String, usize), [f64; 2]>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let line = |line: &str| -> Result<((String, usize), [f64; 2])> {
        let cells: Vec<&str> = line.split(',').collect();
        Ok(((cells[0].to_owned(), cells[1].parse()?), [cells[2].parse()?, cells[3].parse()?]))
    };
    text.lines().skip(1).map(line).collect()
}

/// The effect of missing training labels.
pub fn missing_labels(arguments: &Arguments, page: &mut Page) -> Result<()> {
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
            let rows = joined(&fold.train, &fold.valid)?;
            let train = with_truths(&rows, |_, truth| truth.filter(|_| !rng.random_bool(share)))?;
            let learned = Learner::default().learn(&model, &train)?;
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
pub fn hidden_label(arguments: &Arguments, page: &mut Page) -> Result<()> {
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
            let train = with_truths(&joined(&fold.train, &fold.valid)?, hide)?;
            let learned = Learner::default().learn(&model, &train)?.model;
            // The mean belief of its classifier is the only information about its base rate.
            let block = model.block(label);
            let sums = (0..train.n_rows()).fold(vec![0.0; block.len()], |sums: Vec<f64>, row| {
                sums.iter()
                    .zip(&train.beliefs_of(row..row + 1).row(0)[block.clone()])
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

/// All rows of two sets.
fn joined(a: &Examples, b: &Examples) -> Result<Examples> {
    let mut all = a.clone();
    all.append(b)?;
    Ok(all)
}
