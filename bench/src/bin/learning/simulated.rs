//! Learning on simulated data, where the truth about the rules is known.

use std::time::Instant;

use anyhow::Result;
use prsl::learn::{Examples, Learner};
use prsl::metrics::Metric;
use prsl::{Engines, LabelId, Model, Truth};
use prsl_testkit::planted::{Planted, compare};
use prsl_testkit::sampled;

use super::{Arguments, Page, beliefs_without, mean, scores, tell, with_error};

const LOG_LIKELIHOOD: [Metric; 1] = [Metric::MeanJointLogLikelihood];

/// Planted clauses, found again literally.
pub fn planted(page: &mut Page) -> Result<()> {
    let columns = ["data", "parsimony", "found literally", "unrelated", "seconds a run"];
    page.table("Six planted rules in each of ten rule bases", &columns);
    let plain = Planted::default();
    let sets = [
        ("4,000 rows", plain),
        ("1,000 rows", Planted { n_rows: 1000, ..plain }),
        ("4,000 rows, four labels of 3 and 4 categories", Planted { n_wide: 4, ..plain }),
        ("4,000 rows, 30 % of the truths missing", Planted { missing: 0.3, ..plain }),
        ("4,000 rows, both", Planted { n_wide: 4, missing: 0.3, ..plain }),
    ];
    for (name, settings) in sets {
        for (word, parsimony) in [("explain", Learner::EXPLAIN), ("predict", Learner::PREDICT)] {
            let learner = Learner { parsimony, typical: false, ..Learner::default() };
            let (mut found, mut unrelated, mut seconds) = (0, 0, Vec::new());
            for seed in 1..=10 {
                tell(name, seed as usize - 1, 10);
                let (generator, rows) = Planted { seed, ..settings }.draw();
                let start = Instant::now();
                let learned = learner.learn(rows.model(), &rows)?.model;
                seconds.push(start.elapsed().as_secs_f64());
                let (literally, others) = compare(&generator, &learned);
                found += literally;
                unrelated += others;
            }
            let cells = [format!("{found} of {}", 10 * settings.n_rules), unrelated.to_string()];
            let [found, unrelated] = cells;
            page.row(&[name.to_owned(), word.to_owned(), found, unrelated, format!("{:.2}", mean(&seconds))]);
        }
    }
    Ok(())
}

/// Few rows: the learned model beside jointly calibrated beliefs, on held-out rows.
pub fn little_data(page: &mut Page) -> Result<()> {
    page.table(
        "150 rows, 8 labels: log-likelihood of 2,000 held-out rows over calibrated beliefs, ten seeds",
        &["rules of the generator", "learned over calibrated"],
    );
    for n_rules in [0, 2, 8] {
        let mut differences = Vec::new();
        for seed in 1..=10 {
            tell("little data", seed as usize - 1, 10);
            let (generator, rows) = sampled(8, n_rules, 2150, seed);
            let train = rows.select(&(0..150).collect::<Vec<usize>>());
            let test = rows.select(&(150..2150).collect::<Vec<usize>>());
            let model = generator.without_rules()?;
            let calibrated = Learner { max_rules: Some(0), typical: false, ..Learner::default() };
            let score = |learner: Learner| -> Result<f64> {
                Ok(scores(&learner.learn(&model, &train)?.model, &test, &LOG_LIKELIHOOD)?[0])
            };
            differences.push(score(Learner::default())? - score(calibrated)?);
        }
        page.row(&[n_rules.to_string(), with_error(&differences)]);
    }
    Ok(())
}

/// Simulated models with 10 labels and 10 rules: 4,000 rows to learn from, and 1,000 test rows.
pub fn found_again(page: &mut Page) -> Result<()> {
    let columns = [
        "seed",
        "beliefs alone",
        "learned",
        "generator",
        "short of the generator",
        "gap closed",
        "rules",
        "seconds",
    ];
    page.table("Simulated noisy-or models, mean joint log-likelihood of test rows", &columns);
    for seed in 201..=208 {
        tell("simulation", seed as usize - 201, 8);
        let (generator, rows) = sampled(10, 10, 5000, seed);
        let [train, test] = [0..4000, 4000..5000].map(|range| rows.select(&range.collect::<Vec<usize>>()));
        let model = generator.without_rules()?;
        let start = Instant::now();
        let learned = Learner::default().learn(&model, &train)?;
        let seconds = start.elapsed().as_secs_f64();
        let score = |model: &Model| -> Result<f64> { Ok(scores(model, &test, &LOG_LIKELIHOOD)?[0]) };
        let [alone, found, best] = [score(&model)?, score(&learned.model)?, score(&generator)?];
        page.row(&[
            seed.to_string(),
            format!("{alone:.3}"),
            format!("{found:.3}"),
            format!("{best:.3}"),
            format!("{:.1} %", 100.0 * (best - found) / best.abs()),
            format!("{:.1} %", 100.0 * (found - alone) / (best - alone)),
            learned.model.rules().len().to_string(),
            format!("{seconds:.1}"),
        ]);
    }
    Ok(())
}

/// The mean posterior of a label whose columns are removed, beside its base rate.
pub fn silent_classifiers(arguments: &Arguments, page: &mut Page) -> Result<()> {
    let columns = ["data", "largest difference between mean posterior and base rate of a label"];
    page.table("Labels without their columns, test rows", &columns);
    // A base rate in 24,000 test rows has a standard error of 0.003.
    let (_, rows) = Planted { n_rows: 28_000, ..Planted::default() }.draw();
    let [train, test] = [0..4000, 4000..28_000].map(|range| rows.select(&range.collect::<Vec<usize>>()));
    let model = rows.model().clone();
    page.row(&["planted rules".to_owned(), format!("{:.3}", largest_difference(&model, &train, &test)?)]);
    if let Some((model, folds)) = arguments.folds("emotions")? {
        let mut differences = Vec::new();
        for fold in &folds {
            let mut train = fold.train.clone();
            train.append(&fold.valid)?;
            differences.push(differences_of(&model, &train, &fold.test)?);
        }
        // A fold has few test rows, so the mean of each label is over all folds.
        let n = differences[0].len();
        let of_label =
            |label: usize| mean(&differences.iter().map(|of| of[label]).collect::<Vec<f64>>()).abs();
        let largest = (0..n).map(of_label).fold(0.0, f64::max);
        page.row(&["emotions, all folds".to_owned(), format!("{largest:.3}")]);
    }
    Ok(())
}

fn largest_difference(model: &Model, train: &Examples, test: &Examples) -> Result<f64> {
    Ok(differences_of(model, train, test)?.iter().fold(0.0, |largest: f64, it| largest.max(it.abs())))
}

/// For each label, the mean posterior of its first category less its base rate in the test rows.
fn differences_of(model: &Model, train: &Examples, test: &Examples) -> Result<Vec<f64>> {
    let learned = Learner::default().learn(model, train)?.model;
    let engine = Engines::new(&learned).marginals()?;
    let one = |label: LabelId| -> Result<f64> {
        let answers = engine.infer_batch(&beliefs_without(&learned, test, label.index())?)?;
        let at = learned.block(label).start;
        let posterior: f64 =
            (0..test.n_rows()).filter_map(|row| answers.marginals(row)).map(|row| row[at]).sum();
        let is_first = |truth: &Truth| truth.category(label).is_some_and(|category| category.index() == 0);
        let base_rate = test.truths().filter(is_first).count() as f64;
        Ok((posterior - base_rate) / test.n_rows() as f64)
    };
    learned.label_ids().map(one).collect()
}

/// Time by number of rows, 14 labels.
pub fn scale(page: &mut Page) -> Result<()> {
    page.table(
        "Time by rows, 14 labels",
        &["rows", "rules", "seconds", "milliseconds per rule and 1,000 rows"],
    );
    for (n_rows, max_rules) in [(10_000, None), (100_000, None), (1_000_000, Some(1))] {
        let (_, rows) = Planted { n_labels: 14, n_rules: 8, n_rows, ..Planted::default() }.draw();
        let start = Instant::now();
        let learner = Learner { max_rules, typical: false, ..Learner::default() };
        let learned = learner.learn(rows.model(), &rows)?;
        let seconds = start.elapsed().as_secs_f64();
        let n_rules = learned.model.rules().len();
        let each = 1e6 * seconds / (n_rules.max(1) * n_rows) as f64;
        page.row(&[n_rows.to_string(), n_rules.to_string(), format!("{seconds:.1}"), format!("{each:.2}")]);
    }
    Ok(())
}
