//! Scores of random small models agree with their definitions.

use proptest::prelude::*;
use prsl::metrics::{Evaluation, Metric, RuleEffects, joint_log_likelihoods};
use prsl::{CategoryId, JunctionTree, LabelId, Limits, Model, MostProbable, Truth};
use prsl_testkit::{EXACT, close, small_model};

use crate::{Answers, IMPOSSIBLE, joint, random_truths};

/// Number of bins of the expected calibration error.
const CALIBRATION_BINS: usize = 15;

fn many(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, max_shrink_iters: 2000, failure_persistence: None, ..ProptestConfig::default() }
}

/// A known cell: label, truth and marginal. The marginal is all 0 if the row is impossible.
struct Known {
    label: usize,
    truth: usize,
    marginal: Option<Vec<f64>>,
}

impl Known {
    fn predicted(&self) -> Option<usize> {
        let marginal = self.marginal.as_ref()?;
        let largest = marginal.iter().copied().fold(0.0, f64::max);
        marginal.iter().position(|&probability| probability == largest)
    }
}

/// The scores by their definitions.
fn expected(model: &Model, answers: &Answers, truths: &[Truth]) -> [Option<f64>; 10] {
    let cells = |row: usize| -> Vec<Known> {
        let cell = |(label, truth): (LabelId, CategoryId)| {
            let block = model.block(label);
            let marginal = answers.posteriors.marginals(row).map(|marginals| marginals[block].to_vec());
            Known { label: label.index(), truth: truth.index(), marginal }
        };
        truths[row].known().map(cell).collect()
    };
    let rows: Vec<(usize, Vec<Known>)> =
        (0..truths.len()).map(|row| (row, cells(row))).filter(|(_, cells)| !cells.is_empty()).collect();
    let all: Vec<&Known> = rows.iter().flat_map(|(_, cells)| cells).collect();
    let explained = |(row, cells): &(usize, Vec<Known>)| {
        let right = |best: &MostProbable| {
            cells.iter().all(|cell| best.assignment.indices()[cell.label] == cell.truth)
        };
        share(answers.best[*row].as_ref().is_some_and(right))
    };
    let right = |cell: &&Known| cell.predicted() == Some(cell.truth);
    let labelled = |(_, cells): &(usize, Vec<Known>)| share(cells.iter().all(|cell| right(&cell)));
    let floor = |log: f64| if log == f64::NEG_INFINITY { IMPOSSIBLE } else { log };
    let joint = rows.iter().map(|(row, _)| floor(answers.joint[*row].expect("known")));
    let probability = |cell: &Known| cell.marginal.as_ref().map_or(0.0, |marginal| marginal[cell.truth]);
    let labels = rows.iter().map(|(_, cells)| cells.iter().map(|cell| floor(probability(cell).ln())).sum());
    let (joint, labels): (Vec<f64>, Vec<f64>) = (joint.collect(), labels.collect());
    let [micro, macro_average] = f1(model, &all);
    [
        mean(rows.iter().map(explained)),
        mean(rows.iter().map(labelled)),
        mean(all.iter().map(|cell| 1.0 - share(right(cell)))),
        mean(joint.iter().copied()),
        median(joint),
        mean(labels.iter().copied()),
        median(labels),
        micro,
        macro_average,
        calibration_error(model, &all),
    ]
}

fn classes(model: &Model) -> Vec<(usize, usize)> {
    let of = |label: usize| {
        if model.labels()[label].is_binary() { 1 } else { model.labels()[label].n_categories() }
    };
    (0..model.labels().len()).flat_map(|label| (0..of(label)).map(move |c| (label, c))).collect()
}

fn f1(model: &Model, cells: &[&Known]) -> [Option<f64>; 2] {
    let (mut all, mut scores) = ([0.0; 3], Vec::new());
    for (label, category) in classes(model) {
        let mut counts = [0.0; 3]; // true positives, false positives, false negatives
        for cell in cells.iter().filter(|cell| cell.label == label) {
            match (cell.predicted() == Some(category), cell.truth == category) {
                (true, true) => counts[0] += 1.0,
                (true, false) => counts[1] += 1.0,
                (false, true) => counts[2] += 1.0,
                (false, false) => {}
            }
        }
        scores.extend(f1_of(counts));
        all = std::array::from_fn(|index| all[index] + counts[index]);
    }
    [f1_of(all), mean(scores.into_iter())]
}

fn f1_of([hits, too_many, missed]: [f64; 3]) -> Option<f64> {
    (hits + too_many + missed > 0.0).then(|| 2.0 * hits / (2.0 * hits + too_many + missed))
}

fn calibration_error(model: &Model, cells: &[&Known]) -> Option<f64> {
    let error = |(label, category): (usize, usize)| {
        let known = cells.iter().filter(|cell| cell.label == label);
        let forecasts: Vec<(f64, bool)> = known
            .filter_map(|cell| Some((cell.marginal.as_ref()?[category], cell.truth == category)))
            .collect();
        let bin = |bin: usize| {
            let n = CALIBRATION_BINS;
            let members =
                forecasts.iter().filter(|(p, _)| ((p * n as f64).floor() as usize).min(n - 1) == bin);
            let (mut probability, mut frequency, mut count) = (0.0, 0.0, 0.0);
            for &(p, hit) in members {
                (probability, frequency, count) = (probability + p, frequency + share(hit), count + 1.0);
            }
            if count == 0.0 { 0.0 } else { (probability / count - frequency / count).abs() * count }
        };
        let error: f64 = (0..CALIBRATION_BINS).map(bin).sum();
        (!forecasts.is_empty()).then(|| error / forecasts.len() as f64)
    };
    mean(classes(model).into_iter().filter_map(error))
}

fn share(hit: bool) -> f64 {
    f64::from(u8::from(hit))
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let n = values.len();
    (n > 0).then(|| (values[(n - 1) / 2] + values[n / 2]) / 2.0)
}

fn agree(a: Option<f64>, b: Option<f64>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => close(a, b, EXACT),
        (a, b) => a == b,
    }
}

proptest! {
    #![proptest_config(many(400))]

    #[test]
    fn scores_agree_with_their_definitions((model, rows) in small_model(), seed in any::<u64>()) {
        let rows = rows.select(&[0, 1, 2, 0, 1, 2, 0, 1, 2]);
        let truths = random_truths(&model, rows.n_rows(), seed);
        let answers = Answers::new(&model, &rows, &truths);
        let scores = answers.evaluate(&model, &truths).scores();
        for (metric, expected) in Metric::ALL.into_iter().zip(expected(&model, &answers, &truths)) {
            prop_assert!(agree(scores.get(metric), expected), "{metric:?}: {:?} for {expected:?}", scores.get(metric));
        }
        let impossible = |row: &usize| {
            answers.joint[*row] == Some(f64::NEG_INFINITY) || !answers.posteriors.is_possible(*row)
        };
        prop_assert_eq!(scores.impossible, (0..truths.len()).filter(impossible).count());
        prop_assert_eq!((scores.rows, scores.not_converged), (9, 0));
    }

    #[test]
    fn joint_log_likelihoods_agree_with_enumeration((model, rows) in small_model(), seed in any::<u64>()) {
        let rows = rows.select(&[0, 1, 2, 0, 1, 2, 0]);
        let truths = random_truths(&model, rows.n_rows(), seed);
        let engine = JunctionTree::compile(&model)?;
        let posteriors = engine.infer_batch(&rows)?;
        let found = joint_log_likelihoods(&rows, &truths, &posteriors, |rows| engine.infer_batch(rows))?;
        for (row, found) in found.expect("exact").into_iter().enumerate() {
            let expected = joint(&model, &rows.row(row), &truths[row]);
            prop_assert!(agree(found, expected), "row {row}: {found:?} for {expected:?}");
        }
    }

    #[test]
    fn chosen_engines_score_like_enumeration((model, rows) in small_model(), seed in any::<u64>()) {
        let truths = random_truths(&model, rows.n_rows(), seed);
        let answers = Answers::new(&model, &rows, &truths).evaluate(&model, &truths).scores();
        let scores = Evaluation::of(&model, &rows, &truths)?.scores();
        // With ties, engines may choose differently. Marginals agree to 1e-12, but their logarithms may not.
        for metric in [Metric::MeanJointLogLikelihood, Metric::MedianJointLogLikelihood] {
            prop_assert!(agree(scores.get(metric), answers.get(metric)), "{metric:?}");
        }
        prop_assert_eq!(scores.impossible, answers.impossible);
    }
}

proptest! {
    #![proptest_config(many(200))]

    #[test]
    fn effects_of_rules_are_differences_of_models((model, rows) in small_model(), seed in any::<u64>()) {
        let truths = random_truths(&model, rows.n_rows(), seed);
        let effects = RuleEffects::compile(&model, Limits::default())?;
        let (influences, gains) = (effects.influences(&rows)?, effects.gains(&rows, &truths)?);
        let with = Answers::new(&model, &rows, &truths);
        for rule in model.rule_ids() {
            let other = model.edit().retain_rules(|it| it != rule).build()?;
            let without = Answers::new(&other, &rows, &truths);
            let changes = (0..rows.n_rows()).filter_map(|row| {
                let both = with.posteriors.marginals(row)?.iter().zip(without.posteriors.marginals(row)?);
                Some(both.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max))
            });
            let influence = influences[rule.index()].mean();
            prop_assert!(agree(influence, mean(changes)), "influence of {}", model.rule_name(rule));
            let floor = |log: f64| if log == f64::NEG_INFINITY { IMPOSSIBLE } else { log };
            let differences = with.joint.iter().zip(&without.joint);
            let expected = mean(differences.filter_map(|(a, b)| Some(floor((*a)?) - floor((*b)?))));
            let gain = gains[rule.index()].mean();
            prop_assert!(agree(gain, expected), "gain of {}: {gain:?} {expected:?}", model.rule_name(rule));
        }
    }
}
