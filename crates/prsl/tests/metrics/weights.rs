//! Weighted rows score like repeated rows.

use proptest::prelude::*;
use prsl::metrics::{Bootstrap, ClassScores, Evaluation, LabelScores, Metric};
use prsl::{BeliefMatrix, Model, Truth};
use prsl_testkit::{EXACT, close, simulated, small_model};

use crate::random_truths;

/// Every row as often as its weight says.
fn repeated(rows: &BeliefMatrix, truths: &[Truth], weights: &[usize]) -> (BeliefMatrix, Vec<Truth>) {
    let order: Vec<usize> = (0..truths.len()).flat_map(|row| vec![row; weights[row]]).collect();
    (rows.select(&order), order.iter().map(|&row| truths[row].clone()).collect())
}

fn agree(a: Option<f64>, b: Option<f64>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => close(a, b, EXACT),
        (a, b) => a == b,
    }
}

fn class_numbers(class: &ClassScores) -> [Option<f64>; 4] {
    [class.f1, class.auc, class.sensitivity, class.specificity]
}

/// All scores of a label, one after the other.
fn numbers(label: &LabelScores) -> Vec<Option<f64>> {
    let classes = label.classes.iter().flat_map(class_numbers);
    [label.accuracy, label.log_loss].into_iter().chain(classes).collect()
}

fn as_numbers(weights: &[usize], factor: f64) -> Vec<f64> {
    weights.iter().map(|&weight| factor * weight as f64).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_weight_of_two_is_a_row_twice(
        (model, rows) in small_model(),
        seed in any::<u64>(),
        weights in prop::collection::vec(0_usize..4, 9),
        factor in prop::sample::select(vec![1.0, 0.5, 3.0]),
    ) {
        let rows = rows.select(&[0, 1, 2, 0, 1, 2, 0, 1, 2]);
        let truths = random_truths(&model, rows.n_rows(), seed);
        let (all_rows, all_truths) = repeated(&rows, &truths, &weights);
        let expected = Evaluation::of(&model, &all_rows, &all_truths)?;
        let weighted = Evaluation::of_weighted(&model, &rows, &truths, &as_numbers(&weights, factor))?;
        for metric in Metric::ALL {
            let [found, expected] = [&weighted, &expected].map(|it| it.scores().get(metric));
            prop_assert!(agree(found, expected), "{metric:?}: {found:?} for {expected:?}");
        }
        for (found, expected) in weighted.label_scores().iter().zip(expected.label_scores()) {
            for (found, expected) in numbers(found).into_iter().zip(numbers(&expected)) {
                prop_assert!(agree(found, expected), "{found:?} for {expected:?}");
            }
        }
        for (found, expected) in weighted.reliability(5).bins.iter().zip(expected.reliability(5).bins) {
            prop_assert!(agree(Some(found.probability), Some(expected.probability)));
            prop_assert!(agree(Some(found.frequency), Some(expected.frequency)));
        }
    }
}

fn example() -> (Model, BeliefMatrix, Vec<Truth>) {
    let (model, rows) = simulated(5, 5, 120, 3);
    let truths = random_truths(&model, 120, 3);
    (model, rows, truths)
}

#[test]
fn a_weight_of_zero_deletes_the_row_everywhere() {
    let (model, rows, truths) = example();
    let weights: Vec<usize> = (0..120).map(|row| usize::from(row % 3 != 0)).collect();
    let (kept_rows, kept_truths) = repeated(&rows, &truths, &weights);
    let kept = Evaluation::of(&model, &kept_rows, &kept_truths).unwrap();
    let weighted = Evaluation::of_weighted(&model, &rows, &truths, &as_numbers(&weights, 1.0)).unwrap();
    assert_eq!(weighted.scores(), kept.scores());
    assert_eq!(weighted.label_scores(), kept.label_scores());
    assert_eq!(weighted.intervals(&Bootstrap::default()), kept.intervals(&Bootstrap::default()));
    let alone = model.without_rules().unwrap();
    let others = Evaluation::of_weighted(&alone, &rows, &truths, &as_numbers(&weights, 1.0)).unwrap();
    let compared = others.compare(&weighted, &Bootstrap::default()).unwrap();
    // Rows keep their position among all rows.
    assert!(compared.rows.iter().all(|row| row.row % 3 != 0));
    let unweighted = Evaluation::of(&alone, &rows, &truths).unwrap();
    assert!(unweighted.compare(&weighted, &Bootstrap::default()).is_err());
}

#[test]
fn differences_of_weighted_rows_are_differences_of_weighted_scores() {
    let (model, rows, truths) = example();
    let weights: Vec<f64> = (0..120).map(|row| f64::from(row % 5) / 2.0).collect();
    let score = |model: &Model| Evaluation::of_weighted(model, &rows, &truths, &weights).unwrap();
    let (with, alone) = (score(&model), score(&model.without_rules().unwrap()));
    let compared = alone.compare(&with, &Bootstrap::default()).unwrap();
    let metric = Metric::MeanJointLogLikelihood;
    let (mut sum, mut total) = (0.0, 0.0);
    for row in &compared.rows {
        sum += weights[row.row] * row.difference();
        total += weights[row.row];
    }
    let difference = compared.get(metric).unwrap();
    assert!(close(difference.difference, sum / total, EXACT));
    let [low, high] = difference.interval;
    assert!(low <= difference.difference && difference.difference <= high);
}

#[test]
fn wrong_weights_are_refused() {
    let (model, rows, truths) = example();
    for weight in [-1.0, 1e16, f64::NAN, f64::INFINITY] {
        let mut weights = vec![1.0; 120];
        weights[6] = weight;
        let error = Evaluation::of_weighted(&model, &rows, &truths, &weights).unwrap_err().to_string();
        assert!(error.contains("row 7 has weight"), "{error}");
    }
    assert!(Evaluation::of_weighted(&model, &rows, &truths, &[1.0]).is_err());
}

#[test]
fn the_bootstrap_tells_its_progress() {
    let (model, rows, truths) = example();
    let evaluation = Evaluation::of(&model, &rows, &truths).unwrap();
    let shares = std::sync::Mutex::new(Vec::new());
    let settings = Bootstrap::default();
    let observed = evaluation.intervals_observed(&settings, &|share| shares.lock().unwrap().push(share));
    assert_eq!(observed, evaluation.intervals(&settings));
    let mut shares = shares.into_inner().unwrap();
    shares.sort_by(f64::total_cmp);
    assert!(shares.len() > 10 && shares[0] > 0.0 && shares[0] < 0.1);
    assert_eq!(shares.last(), Some(&1.0));
}
