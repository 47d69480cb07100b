//! Calibrators that are fitted beside rules.

use prsl::calibrate::{CalibrationMethod, Calibrator};
use prsl::learn::Examples;
use prsl::metrics::{Evaluation, Metric};
use prsl::{BeliefMatrix, LabelId, Limits, Model, Normalize};
use prsl_testkit::with_truths;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A taxonomy: what is below is also above, and siblings exclude each other.
const TAXONOMY: &str = "
label vehicle
label car
label truck
label taxi
label van
rule 1: car -> vehicle
rule 1: truck -> vehicle
rule 1: !(car & truck)
rule 1: taxi -> car
rule 1: van -> car
rule 1: !(taxi & van)
";

/// Rows whose truths are drawn with right beliefs, and whose given beliefs are too bold about some labels and too timid about
/// others.
fn miscalibrated(n_rows: usize, seed: u64) -> (Model, Examples) {
    let model = Model::parse(TAXONOMY).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let [mut right, mut given] = [BeliefMatrix::new(&model), BeliefMatrix::new(&model)];
    for _ in 0..n_rows {
        let mut log_odds = || (0..12).map(|_| rng.random_range(-0.5..0.5)).sum::<f64>() * 2.0 + 1.0;
        let right_odds: Vec<f64> = (0..5).map(|_| log_odds()).collect();
        let cells = |slopes: [f64; 5]| -> Vec<Option<f64>> {
            let belief = |(odds, slope): (&f64, f64)| 1.0 / (1.0 + (-slope * odds).exp());
            right_odds.iter().zip(slopes).flat_map(|it| [Some(belief(it)), None]).collect()
        };
        right.push(&cells([1.0; 5]), Normalize::Never).unwrap();
        given.push(&cells([0.6, 1.0, 1.2, 1.5, 1.0]), Normalize::Never).unwrap();
    }
    let rows = with_truths(&model, right, seed);
    (model, Examples::new(given, rows.to_truths()).unwrap())
}

fn scores(model: &Model, rows: &Examples) -> [f64; 2] {
    let scores =
        Evaluation::of(model, &rows.beliefs_for(model).unwrap(), &rows.to_truths()).unwrap().scores();
    [Metric::JointAccuracy, Metric::MeanJointLogLikelihood].map(|metric| scores.get(metric).unwrap())
}

#[test]
fn alone_they_make_a_model_with_hard_rules_worse() {
    let (model, rows) = miscalibrated(6000, 1);
    let [train, test] = [0..2000, 2000..6000].map(|range| rows.select(&range.collect::<Vec<usize>>()));
    let labels: Vec<LabelId> = model.label_ids().collect();
    let alone = train.calibrated(&model, CalibrationMethod::Platt).unwrap();
    let [raw, alone] = [&model, &alone].map(|model| scores(model, &test));
    for method in [CalibrationMethod::Auto, CalibrationMethod::Platt, CalibrationMethod::Dirichlet] {
        let fitted = train.calibrated_beside_rules(&model, method, &labels, Limits::default()).unwrap();
        let together = scores(&fitted.model, &test);
        assert!(alone[0] < raw[0] && raw[0] < together[0], "{raw:?}, {alone:?}, {together:?}");
        assert!(alone[1] < raw[1] && raw[1] < together[1], "{raw:?}, {alone:?}, {together:?}");
        assert_eq!(fitted.n_impossible, 0);
    }
}

#[test]
fn temperatures_are_found_again() {
    let (model, rows) = miscalibrated(4000, 2);
    let labels: Vec<LabelId> = model.label_ids().collect();
    let fitted =
        rows.calibrated_beside_rules(&model, CalibrationMethod::Temperature, &labels, Limits::default());
    let fitted = fitted.unwrap().model;
    for (label, slope) in labels.into_iter().zip([0.6, 1.0, 1.2, 1.5, 1.0]) {
        let Calibrator::Temperature { temperature } = fitted.calibrator(label) else { panic!("{fitted}") };
        assert!((temperature / slope - 1.0).abs() < 0.2, "{temperature} is not {slope}\n{fitted}");
    }
}

#[test]
fn other_labels_keep_their_calibrators() {
    let (model, rows) = miscalibrated(300, 3);
    let car = model.find_label("car").unwrap();
    let fitted = rows
        .calibrated_beside_rules(&model, CalibrationMethod::Auto, &[car], Limits::default())
        .unwrap()
        .model;
    for label in fitted.label_ids() {
        assert_eq!(*fitted.calibrator(label) == Calibrator::Identity, label != car);
    }
    let refused =
        rows.calibrated_beside_rules(&model, CalibrationMethod::Isotonic, &[car], Limits::default());
    assert!(refused.unwrap_err().to_string().contains("fit it alone"));
}
