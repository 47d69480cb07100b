//! Scores of small examples are those computed by hand.

use prsl::metrics::{Evaluation, Metric, Scores};
use prsl::{BeliefMatrix, Evidence, Model, Truth};

use crate::IMPOSSIBLE;

const RAIN: &str = "label weather: sun, rain\nlabel ground: dry, wet\nlabel alarm\n";

fn rain(rules: &str, beliefs: &[[f64; 3]]) -> (Model, BeliefMatrix) {
    let model = Model::parse(&format!("{RAIN}{rules}")).expect("a model");
    let mut rows = BeliefMatrix::new(&model);
    for &[sun, dry, alarm] in beliefs {
        let evidence = Evidence::new()
            .belief("weather", [sun, 1.0 - sun])
            .belief("ground", [dry, 1.0 - dry])
            .belief("alarm", [alarm]);
        rows.push_evidence(&evidence).expect("beliefs");
    }
    (model, rows)
}

fn shown(scores: &Scores, metric: Metric) -> String {
    scores.get(metric).map_or("none".to_owned(), |score| format!("{score:.4}"))
}

#[test]
fn scores_by_hand() {
    let (model, rows) = rain("", &[[0.8, 0.6, 0.3], [0.3, 0.9, 0.6]]);
    // Right, right, right; right, wrong, unknown.
    let truths = [[Some(0), Some(0), Some(1)], [Some(1), Some(1), None]].map(Truth::from_indices);
    let scores = Evaluation::of(&model, &rows, &truths).expect("small").scores();
    assert_eq!(shown(&scores, Metric::JointAccuracy), "0.5000");
    assert_eq!(shown(&scores, Metric::JointAccuracyMarginals), "0.5000");
    assert_eq!(shown(&scores, Metric::HammingLoss), "0.2000");
    // ln(0.8 · 0.6 · 0.7) = −1.09064 and ln(0.7 · 0.1) = −2.65926
    assert_eq!(shown(&scores, Metric::MeanJointLogLikelihood), "-1.8750");
    assert_eq!(shown(&scores, Metric::MedianLabelLogLikelihood), "-1.8750");
    // sun, rain and dry: 1 hit each; dry is predicted twice, wet actual once; alarm neither.
    assert_eq!(shown(&scores, Metric::MicroF1), "0.7500");
    assert_eq!(shown(&scores, Metric::MacroF1), "0.6667"); // (1 + 1 + 2/3 + 0) / 4
    // sun (0.2 + 0.3) / 2, rain the same, dry (0.4 + 0.9) / 2, wet the same, alarm 0.3
    assert_eq!(shown(&scores, Metric::ExpectedCalibrationError), "0.4200");
    assert_eq!((scores.rows, scores.scored_rows, scores.impossible), (2, 2, 0));
}

#[test]
fn a_truth_that_a_hard_rule_excludes_is_impossible() {
    let (model, rows) = rain("rule 1: rain -> wet\n", &[[0.5, 0.5, 0.5], [0.5, 0.5, 0.5]]);
    let truths = [[Some(1), Some(0), None], [Some(1), Some(1), None]].map(Truth::from_indices);
    let scores = Evaluation::of(&model, &rows, &truths).expect("small").scores();
    assert_eq!(scores.impossible, 1);
    let expected = (IMPOSSIBLE + (1.0f64 / 3.0).ln()) / 2.0;
    assert!((scores.get(Metric::MeanJointLogLikelihood).expect("exact") - expected).abs() < 1e-9);
    // Each by itself is possible: 1/3 · 1/3 and 1/3 · 2/3.
    let expected = ((1.0f64 / 9.0).ln() + (2.0f64 / 9.0).ln()) / 2.0;
    assert!((scores.get(Metric::MeanLabelLogLikelihood).expect("known") - expected).abs() < 1e-12);
}

#[test]
fn a_contradictory_row_is_wrong_and_impossible() {
    let (model, rows) = rain("rule 1: rain -> wet\n", &[[0.0, 1.0, 0.5]]);
    let scores = Evaluation::of(&model, &rows, &[Truth::from_indices([Some(0), None, Some(0)])])
        .expect("small")
        .scores();
    let expected = ["0.0000", "0.0000", "1.0000", "-690.7755", "-690.7755", "-1381.5511", "-1381.5511"];
    assert_eq!(Metric::ALL.map(|metric| shown(&scores, metric))[..7], expected);
    assert_eq!(shown(&scores, Metric::MicroF1), "0.0000");
    assert_eq!(scores.get(Metric::ExpectedCalibrationError), None);
    assert_eq!((scores.impossible, scores.scored_rows), (1, 1));
    let unknown = Evaluation::of(&model, &rows, &[Truth::unknown(3)]).expect("small").scores();
    assert_eq!((unknown.impossible, unknown.scored_rows, unknown.rows), (1, 0, 1));
    assert!(Metric::ALL.into_iter().all(|metric| unknown.get(metric).is_none()));
}

#[test]
fn nothing_to_score() {
    let model = Model::parse("label a").expect("a model");
    let scores = Evaluation::of(&model, &BeliefMatrix::new(&model), &[]).expect("small").scores();
    assert!(Metric::ALL.into_iter().all(|metric| scores.get(metric).is_none()));
    let empty = Model::parse("").expect("a model");
    let mut rows = BeliefMatrix::new(&empty);
    rows.push_evidence(&Evidence::new()).expect("a row");
    let scores = Evaluation::of(&empty, &rows, &[Truth::unknown(0)]).expect("small").scores();
    assert_eq!((scores.rows, scores.scored_rows), (1, 0));
}

#[test]
fn label_wise_log_likelihoods_do_not_underflow() {
    let model = Model::parse("label a\nlabel b\nrule 1e-200: a\nrule 0.9: a -> b").expect("a model");
    let mut rows = BeliefMatrix::new(&model);
    rows.push_evidence(&Evidence::new().belief("a", [1e-200]).belief("b", [0.5])).expect("valid");
    let scores =
        Evaluation::of(&model, &rows, &[Truth::from_indices([Some(0), Some(0)])]).expect("small").scores();
    // Without the factor 1e-400, P(a, b) is 0.9 · 0.5, Z is 0.9, and half of Z has b = yes.
    let label = -400.0 * 10_f64.ln() + (0.5_f64 / 0.9).ln() + 0.5_f64.ln();
    let joint = -400.0 * 10_f64.ln() + 0.5_f64.ln();
    let found = [Metric::MeanLabelLogLikelihood, Metric::MeanJointLogLikelihood]
        .map(|it| scores.get(it).expect("known"));
    assert!((found[0] - label).abs() < 1e-9, "{found:?} {label}");
    assert!((found[1] - joint).abs() < 1e-9, "{found:?} {joint}");
    assert_eq!(scores.impossible, 0);
}
