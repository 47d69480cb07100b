//! Evaluations with approximate engines, with intervals, and of rows that are added in parts.

use prsl::metrics::{Bootstrap, Evaluation, Metric, Predictions, joint_log_likelihoods};
use prsl::{Engine, Loopy};
use prsl_testkit::simulated;

use crate::{Answers, random_truths};

#[test]
fn loopy_propagation_has_no_joint_log_likelihood() {
    let (model, rows) = simulated(6, 6, 20, 1);
    let truths = random_truths(&model, 20, 1);
    let engine = Loopy::compile(&model).expect("any model");
    let posteriors = engine.infer_batch(&rows).expect("rows of the model");
    let joint = joint_log_likelihoods(&rows, &truths, &posteriors, |rows| engine.infer_batch(rows));
    assert_eq!(joint, Ok(None));
    let mut evaluation = Evaluation::new(&model, Engine::Loopy);
    let predictions = Predictions { posteriors: &posteriors, best: None, joint: None, labels: None };
    evaluation.add(predictions, &truths).expect("truths of the model");
    let scores = evaluation.scores();
    assert_eq!(scores.get(Metric::MeanJointLogLikelihood), None);
    assert_eq!(scores.get(Metric::JointAccuracy), None);
    assert!(scores.get(Metric::MeanLabelLogLikelihood).is_some());
    assert_eq!(evaluation.intervals(&Bootstrap::default()).get(Metric::JointAccuracy), None);
}

#[test]
fn bootstrap_intervals_agree_with_theory_and_are_reproducible() {
    let (model, rows) = simulated(5, 5, 400, 3);
    let truths = random_truths(&model, 400, 3);
    let evaluation = Evaluation::of(&model, &rows, &truths).expect("small");
    let (scores, intervals) = (evaluation.scores(), evaluation.intervals(&Bootstrap::default()));
    assert_eq!(intervals, evaluation.intervals(&Bootstrap::default()));
    assert_ne!(intervals, evaluation.intervals(&Bootstrap { seed: 2, ..Bootstrap::default() }));
    let one_thread = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread");
    assert_eq!(one_thread.install(|| evaluation.intervals(&Bootstrap::default())), intervals);
    for metric in Metric::ALL {
        let (score, [low, high]) =
            (scores.get(metric).expect("known"), intervals.get(metric).expect("known"));
        assert!(low <= score && score <= high, "{metric:?}: {low} {score} {high}");
    }
    // A share of n rows has the standard error √(p (1 − p) / n), 1.96 of them on each side.
    let score = scores.get(Metric::JointAccuracyMarginals).expect("known");
    let [low, high] = intervals.get(Metric::JointAccuracyMarginals).expect("known");
    let width = 2.0 * 1.96 * (score * (1.0 - score) / scores.scored_rows as f64).sqrt();
    assert!(((high - low) / width - 1.0).abs() < 0.15, "{} for {width}", high - low);
}

#[test]
fn rows_can_be_added_in_parts() {
    let (model, rows) = simulated(5, 5, 30, 4);
    let truths = random_truths(&model, 30, 4);
    let whole = Evaluation::of(&model, &rows, &truths).expect("small").scores();
    let answers = Answers::new(&model, &rows, &truths);
    let all = answers.evaluate(&model, &truths);
    let mut parts = Evaluation::new(&model, Engine::Enumeration);
    for (start, end) in [(0, 1), (1, 17), (17, 30)] {
        let part = Answers::new(&model, &rows.slice(start..end), &truths[start..end]);
        parts.add(part.predictions(), &truths[start..end]).expect("truths of the model");
    }
    assert_eq!(parts.scores(), all.scores());
    assert_eq!(whole.get(Metric::HammingLoss), all.scores().get(Metric::HammingLoss));
}
