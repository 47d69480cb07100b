//! The paper's recipe from outside: what it learns, threads, stopping, checkpoints and refusals.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use prsl::calibrate::CalibrationMethod;
use prsl::learn::Examples;
use prsl::learn::paper::{Calibrating, Gradients, PaperLearned, PaperLearner, PaperProgress};
use prsl::{BeliefMatrix, CategoryId, Model, Normalize, Truth};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Three yes/no labels and one of three categories. An even number of the former is yes, and the last follows the first.
fn examples(n_rows: usize, share_known: f64) -> (Model, Examples) {
    let model = Model::parse("label a\nlabel b\nlabel c\nlabel d: x, y, z\nrule 0.9: a | b").unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let (mut beliefs, mut truths) = (BeliefMatrix::new(&model), Vec::new());
    for _ in 0..n_rows {
        let [a, b] = [rng.random_range(0..2), rng.random_range(0..2)];
        let d = if a == 0 { 0 } else { rng.random_range(1..3) };
        let truth = [a, b, (a + b) % 2, d];
        let mut cells = Vec::new();
        for (label, &truth) in truth.iter().enumerate() {
            let n = if label == 3 { 3 } else { 2 };
            let sure = rng.random_range(0.35..0.7);
            cells.extend((0..n).map(|m| Some(if m == truth { sure } else { (1.0 - sure) / (n - 1) as f64 })));
        }
        beliefs.push(&cells, Normalize::Always).unwrap();
        let known = truth.map(|truth| rng.random_bool(share_known).then(|| CategoryId::new(truth)));
        truths.push(known.into_iter().collect::<Truth>());
    }
    let weights = (0..n_rows).map(|row| 1.0 + (row % 2) as f64).collect();
    (model, Examples::new(beliefs, truths).unwrap().with_weights(weights).unwrap())
}

fn quick() -> PaperLearner {
    PaperLearner {
        rules: vec![2, 4],
        steps: 150,
        learning_rate: 0.01,
        labels_per_rule: 3,
        ..PaperLearner::default()
    }
}

fn learn(learner: &PaperLearner, share_known: f64) -> PaperLearned {
    let (model, examples) = examples(300, share_known);
    let (train, valid) = examples.split(0.25, 1);
    learner.learn(&model, &train, &valid).unwrap()
}

fn kinds() -> [PaperLearner; 4] {
    [
        quick(),
        PaperLearner { literal: true, ..quick() },
        PaperLearner { gradients: Gradients::Loopy, ..quick() },
        PaperLearner { calibrate: Calibrating::Alone(CalibrationMethod::Platt), ..quick() },
    ]
}

#[test]
fn rules_improve_the_validation_set() {
    for (learner, share_known) in kinds().iter().flat_map(|learner| [(learner, 1.0), (learner, 0.7)]) {
        let learned = learn(learner, share_known);
        assert!(learned.validation > learned.base_alone + 0.02, "{learner:?}: {learned:?}");
        let rules = &learned.model.rules()[1..];
        assert!(!rules.is_empty() && rules.len() <= learned.n_rules && [2, 4].contains(&learned.n_rules));
        assert!(rules.iter().all(|rule| rule.scope().len() <= 3), "{}", learned.model);
        assert_eq!(learned.curve[0].training, None);
        if learner.literal {
            assert_eq!(
                learned.curve.last().map(|last| (last.step, last.validation)),
                Some((150, learned.validation))
            );
        }
    }
}

#[test]
fn the_number_of_threads_does_not_matter() {
    for learner in kinds() {
        let with = |n: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
            pool.install(|| learn(&learner, 0.8).model.to_string())
        };
        assert_eq!(with(1), with(2));
    }
}

#[test]
fn a_resumed_run_ends_with_the_same_model() {
    let (model, examples) = examples(300, 0.9);
    let (train, valid) = examples.split(0.25, 1);
    for (learner, stop_after) in
        kinds().iter().flat_map(|learner| [(learner, 1), (learner, 4), (learner, 11)])
    {
        let whole = learner.learn(&model, &train, &valid).unwrap();
        let (mut saved, mut n_calls) = (String::new(), 0);
        let observe = &mut |progress: &PaperProgress| {
            n_calls += 1;
            if n_calls == stop_after {
                saved = serde_json::to_string(progress).unwrap();
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        };
        let stopped = learner.learn_observed(&model, &train, &valid, PaperProgress::new(), observe).unwrap();
        assert!(stopped.is_stopped && !whole.is_stopped);
        let progress: PaperProgress = serde_json::from_str(&saved).unwrap();
        assert_eq!(progress.n_done(), usize::from(stop_after == 11));
        assert!(progress.last().is_some() && progress.n_rules().is_some());
        let go_on = &mut |_: &PaperProgress| ControlFlow::Continue(());
        let resumed = learner.learn_observed(&model, &train, &valid, progress.clone(), go_on).unwrap();
        assert_eq!(resumed.model.to_string(), whole.model.to_string());
        assert_eq!(resumed.curve, whole.curve);
        let other = PaperLearner { seed: 2, ..learner.clone() };
        let error = other.learn_observed(&model, &train, &valid, progress, go_on).unwrap_err();
        assert!(error.to_string().starts_with("the checkpoint belongs to other rows"), "{error}");
    }
}

/// Many labels, of which the truth of one is never known. A table over all of them is not affordable.
#[test]
fn many_labels_are_learned_exactly_and_stopped_quickly() {
    let text: Vec<String> = (0..40).map(|label| format!("label l{label}")).collect();
    let model = Model::parse(&text.join("\n")).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let (mut beliefs, mut truths) = (BeliefMatrix::new(&model), Vec::new());
    for _ in 0..100 {
        let cells: Vec<Option<f64>> =
            (0..40).flat_map(|_| [Some(rng.random_range(0.2..0.8)), None]).collect();
        beliefs.push(&cells, Normalize::Never).unwrap();
        let truth: Vec<Option<usize>> = (0..40).map(|l| (l != 7).then(|| usize::from(l >= 20))).collect();
        truths.push(Truth::from_indices(truth));
    }
    let (train, valid) = Examples::new(beliefs, truths).unwrap().split(0.3, 1);
    let learner = PaperLearner { rules: vec![3], steps: 60, learning_rate: 0.02, ..PaperLearner::default() };
    let learned = learner.learn(&model, &train, &valid).unwrap();
    assert!(learned.validation > learned.base_alone, "{learned:?}");
    let costly = PaperLearner { rules: vec![60], labels_per_rule: 8, ..learner };
    let error = costly.learn(&model, &train, &valid).unwrap_err();
    assert!(error.to_string().contains("loopy gradients"), "{error}");
    let loopy = PaperLearner { gradients: Gradients::Loopy, ..costly };
    let start = Instant::now();
    let stop = &mut |_: &PaperProgress| ControlFlow::Break(());
    let stopped = loopy.learn_observed(&model, &train, &valid, PaperProgress::new(), stop).unwrap();
    assert!(stopped.is_stopped && start.elapsed() < Duration::from_secs(5));
}

#[test]
fn wrong_settings_and_rows_are_refused() {
    let (model, examples) = examples(20, 1.0);
    let of = |learner: PaperLearner| learner.learn(&model, &examples, &examples).unwrap_err().to_string();
    let plain = PaperLearner::default;
    for (learner, complaint) in [
        (PaperLearner { labels_per_rule: 0, ..plain() }, "setting `j0` is 0, expected 1 label or more"),
        (PaperLearner { alpha: -1.0, ..plain() }, "setting `alpha` is -1, expected a number above 0"),
        (PaperLearner { lambda: 1.5, ..plain() }, "setting `lambda` is 1.5, expected a number from 0 to 1"),
        (PaperLearner { clip: 0.0, ..plain() }, "setting `clip` is 0, expected a number above 0 and below 1"),
        (
            PaperLearner { probability: 1.0, ..plain() },
            "setting `probability` is 1, expected a number above 0 and below 1",
        ),
        (
            PaperLearner { betas: [0.9, 1.0], ..plain() },
            "setting `beta2` is 1, expected a number from 0 to below 1",
        ),
        (PaperLearner { rules: vec![101], ..plain() }, "setting `rules` is 101, expected 100 at most"),
        (
            PaperLearner { rules: vec![], ..plain() },
            "learning needs a number of rules to try and rows in a batch",
        ),
    ] {
        assert_eq!(of(learner), complaint);
    }
    let unknown = Examples::new(examples.to_beliefs(), vec![Truth::unknown(4); 20]).unwrap();
    let error = quick().learn(&model, &unknown, &examples).unwrap_err();
    assert_eq!(error.to_string(), "there are no rows with a known truth to learn from");
    let typical = model.edit().typical("a, b, c, x", 2.0).build().unwrap();
    let error = quick().learn(&typical, &examples, &examples).unwrap_err();
    assert!(error.to_string().contains("typical combinations"), "{error}");
}
