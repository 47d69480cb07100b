//! Learning as its users see it.

use std::ops::ControlFlow;

use prsl::calibrate::{CalibrationMethod, Calibrator};
use prsl::infer::Sampling;
use prsl::learn::{Calibrating, Examples, Gradients, Learned, Learner, Paper, Progress, Size};
use prsl::metrics::{Evaluation, Metric};
use prsl::simulate::Simulation;
use prsl::{BeliefMatrix, CategoryId, Engines, Evidence, LabelId, Model, Normalize, Truth};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Three labels of which the third is the exclusive or of the first two, and classifiers that know the first two well.
fn parity(n_rows: usize) -> (Model, BeliefMatrix, Vec<Truth>) {
    let model = Model::parse("label a\nlabel b\nlabel c").unwrap();
    let mut beliefs = BeliefMatrix::new(&model);
    let mut truths = Vec::new();
    for row in 0..n_rows {
        let (a, b) = (row % 2, row / 2 % 2);
        let c = usize::from(a == b);
        let sure = |category: usize| Some(if category == 0 { 0.9 } else { 0.1 });
        beliefs.push(&[sure(a), None, sure(b), None, Some(0.5), None], Normalize::Never).unwrap();
        truths.push(Truth::from_indices([Some(a), Some(b), Some(c)]));
    }
    (model, beliefs, truths)
}

fn quick() -> Learner {
    let size = |width: usize, rules_per_group: usize| Size::Thin { width, rules_per_group, wide: 0 };
    let sizes = vec![size(1, 1), size(2, 3)];
    Learner { sizes, steps: Some(300), learning_rate: 0.02, ..Learner::default() }
}

fn quick_paper() -> Learner {
    Learner {
        sizes: vec![Size::Paper { rules: 3 }],
        steps: Some(300),
        learning_rate: 0.02,
        ..Learner::paper()
    }
}

fn learn(learner: &Learner, base: &Model, examples: &Examples) -> Learned {
    let (train, valid) = examples.split(0.25, 1);
    learner.learn(base, &train, &valid).unwrap()
}

#[test]
fn a_label_is_learned_from_the_others() {
    let (model, beliefs, truths) = parity(400);
    let examples = Examples::new(beliefs, truths).unwrap();
    for typical in [false, true] {
        let learned = learn(&Learner { typical, ..quick() }, &model, &examples);
        assert!(
            learned.validation > learned.base_alone + 0.3,
            "{} and {}",
            learned.validation,
            learned.base_alone
        );
        assert_eq!(learned.gains.len(), learned.model.rules().len());
        assert!(learned.gains.is_sorted_by(|a, b| a >= b));
        let evidence =
            Evidence::new().belief("a", [0.9, 0.1]).belief("b", [0.1, 0.9]).belief("c", [0.5, 0.5]);
        let posterior = learned.model.infer(&evidence).unwrap();
        assert!(posterior.marginal(learned.model.find_label("c").unwrap())[0] > 0.8, "{posterior}");
    }
}

#[test]
fn what_the_learner_says_is_what_the_model_does() {
    let (model, beliefs, mut truths) = parity(300);
    truths.iter_mut().step_by(3).for_each(|truth| truth.set(LabelId::new(1), None));
    let (train, valid) = Examples::new(beliefs, truths).unwrap().split(0.25, 1);
    let wide = vec![Size::Thin { width: 1, rules_per_group: 1, wide: 2 }];
    let alone = Calibrating::Alone(CalibrationMethod::Isotonic);
    let platt = Calibrating::Alone(CalibrationMethod::Platt);
    let weighed = model.edit().typical("a, b", 2.0).build().unwrap();
    for (base, learner) in [
        (&model, quick()),
        (&model, Learner { sizes: wide, ..quick() }),
        (&model, Learner { calibrate: alone, ..quick() }),
        (&weighed, quick()),
        (&weighed, Learner { relearn: true, ..quick() }),
        (&weighed, quick_paper()),
        (&model, Learner { calibrate: Calibrating::Joint, ..quick_paper() }),
        (&model, Learner { calibrate: platt, ..quick_paper() }),
    ] {
        check(&learner.learn(base, &train, &valid).unwrap(), &valid);
    }
}

/// That a model read from its text gives the rows the likelihood that the learner reported.
fn check(learned: &Learned, valid: &Examples) {
    // Through the text, and through beliefs that the model calibrates.
    let read = Model::parse(&learned.model.to_string()).unwrap();
    let mut rows = BeliefMatrix::new(&read);
    for row in 0..valid.n_rows() {
        let cells: Vec<Option<f64>> = valid.beliefs().row(row).iter().copied().map(Some).collect();
        rows.push(&cells, Normalize::Never).unwrap();
    }
    let scores = Evaluation::of(&read, &rows, valid.truths()).unwrap().scores();
    let expected = scores.get(Metric::MeanJointLogLikelihood).unwrap();
    assert!((learned.validation - expected).abs() < 2e-3, "{} is not {expected}", learned.validation);
}

#[test]
fn rules_of_experts_are_kept() {
    let (_, beliefs, truths) = parity(200);
    let base = Model::parse("label a\nlabel b\nlabel c\nrule 0.8 known: a -> !b | !c\nrule 1: !a & !b -> !c")
        .unwrap();
    let examples = Examples::new(beliefs, truths).unwrap();
    let learned = learn(&quick(), &base, &examples);
    assert_eq!(learned.model.rules()[..2], *base.rules());
    let learned = learn(&Learner { learn_probabilities: true, ..quick() }, &base, &examples);
    let [known, hard] = [&learned.model.rules()[0], &learned.model.rules()[1]];
    assert!(known.probability() > 0.8, "it always holds");
    assert_eq!(hard.probability(), 1.0);
}

#[test]
fn what_was_learned_before_is_where_learning_anew_begins() {
    let (model, beliefs, truths) = parity(400);
    let examples = Examples::new(beliefs, truths).unwrap();
    let learner = Learner { typical: false, calibrate: Calibrating::Given, ..quick() };
    let first = learn(&learner, &model, &examples);
    let none = Learner { sizes: vec![Size::NOTHING], ..learner };
    // Without a step to take, everything stays as it was.
    let again = learn(&Learner { relearn: true, steps: Some(0), ..none.clone() }, &first.model, &examples);
    assert_eq!(again.model.to_string(), first.model.to_string());
    // A rule that is fixed stays as it is, the others gain.
    let rough = first.model.edit().retain_rules(|_| false);
    let dull = |at: usize, rule: &prsl::Rule| match rule.body() {
        prsl::Body::NoisyOr(body) => {
            let duller = body
                .inhibitions()
                .iter()
                .map(|i| prsl::model::Inhibition { probability: i.probability.sqrt(), ..*i });
            rule.clone().with_body(prsl::Body::NoisyOr(prsl::NoisyOr::new(duller))).fixed(at == 0)
        }
        _ => rule.clone(),
    };
    let rules = first.model.rules().iter().enumerate();
    let rough = rules.fold(rough, |builder, (at, rule)| builder.add_rule(dull(at, rule))).build().unwrap();
    let kept = learn(&none, &rough, &examples);
    let anew = learn(&Learner { relearn: true, ..none }, &rough, &examples);
    assert!(anew.validation > kept.validation + 0.001, "{} and {}", anew.validation, kept.validation);
    assert_eq!(anew.model.rules()[0], rough.rules()[0]);
    assert!(anew.model.rules().iter().skip(1).all(|rule| !rough.rules().contains(rule)));
}

#[test]
fn combinations_of_experts_are_kept() {
    let (model, beliefs, truths) = parity(200);
    let base = model.edit().typical("a, b, c", 7.0).typical("a, c", 2.0).build().unwrap();
    let examples = Examples::new(beliefs, truths).unwrap();
    let learned = learn(&quick(), &base, &examples);
    for combination in base.typical() {
        assert!(learned.model.typical().contains(combination));
    }
    // The first never occurs, and so nothing is known about it.
    let learned = learn(&Learner { relearn: true, ..quick() }, &base, &examples);
    assert!(learned.model.typical().contains(&base.typical()[0]));
    assert!(!learned.model.typical().contains(&base.typical()[1]));
}

#[test]
fn rules_of_the_papers_recipe_are_about_few_labels() {
    let (model, beliefs, mut truths) = parity(400);
    // Whatever a is, the others are.
    truths.iter_mut().for_each(|truth| *truth = Truth::from_indices([truth.indices()[0]; 3]));
    let examples = Examples::new(beliefs, truths).unwrap();
    for gradients in [Gradients::Exact, Gradients::Loopy] {
        let learned = learn(&Learner { gradients, steps: Some(600), ..quick_paper() }, &model, &examples);
        assert!(!learned.model.rules().is_empty());
        assert!(learned.model.typical().is_empty());
        assert!(learned.validation > learned.beliefs_alone + 0.1, "{gradients:?} {}", learned.validation);
        let paper = Paper { labels_per_rule: 2, ..Paper::default() };
        let learned = learn(&Learner { gradients, paper, ..quick_paper() }, &model, &examples);
        assert!(learned.model.rules().iter().all(|rule| rule.scope().len() <= 2));
    }
}

/// More labels than one table holds, so that rules are in a tree that is made anew when they change their labels.
#[test]
fn the_papers_recipe_is_exact_where_one_table_is_not_affordable() {
    let simulation = Simulation { n_labels: 20, n_rules: 4, n_rows: 120, seed: 1 };
    let (generator, beliefs) = simulation.draw().unwrap();
    let truths = sampled(&generator, &beliefs);
    let (train, valid) = Examples::new(beliefs, truths).unwrap().split(0.25, 1);
    let base = generator.without_rules().unwrap();
    let learner = Learner {
        sizes: vec![Size::Paper { rules: 3 }],
        paper: Paper { labels_per_rule: 3, lambda: 0.5, ..Paper::default() },
        steps: Some(60),
        learning_rate: 0.05,
        ..Learner::paper()
    };
    check(&learner.learn(&base, &train, &valid).unwrap(), &valid);
}

/// The truth of a label is never known; only that its classifier helps to predict another label tells that they go together.
#[test]
fn a_label_whose_truth_is_hidden_is_told_by_the_others() {
    let model = Model::parse("label seen\nlabel hidden\nlabel other").unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let (mut beliefs, mut truths) = (BeliefMatrix::new(&model), Vec::new());
    for _ in 0..600 {
        let seen = rng.random_range(0..2);
        // Nine times out of ten they are the same.
        let hidden = if rng.random_bool(0.9) { seen } else { 1 - seen };
        let belief = |category: usize, sure: f64| Some(if category == 0 { sure } else { 1.0 - sure });
        let cells = [belief(seen, 0.55), None, belief(hidden, 0.85), None, Some(0.5), None];
        beliefs.push(&cells, Normalize::Never).unwrap();
        truths.push(Truth::from_indices([Some(seen), None, Some(rng.random_range(0..2))]));
    }
    let examples = Examples::new(beliefs, truths).unwrap();
    let learned = learn(&quick(), &model, &examples).model;
    // Its classifier is gone; its prior says nothing.
    let blind = learned.edit().unplug("hidden").prior("hidden", [0.5, 0.5]).build().unwrap();
    let hidden = blind.find_label("hidden").unwrap();
    for (seen, category) in [("yes", 0), ("no", 1)] {
        let posterior =
            blind.infer(&Evidence::new().observe("seen", seen).belief("other", [0.5, 0.5])).unwrap();
        let probability = posterior.marginal(hidden)[category];
        assert!(probability > 0.65, "{seen}: {probability}, nine times out of ten it is so");
    }
}

#[test]
fn calibrators_are_fitted_where_there_is_something_to_fit() {
    let (model, beliefs, mut truths) = parity(400);
    truths.iter_mut().for_each(|truth| truth.set(LabelId::new(1), Some(CategoryId::new(0))));
    let examples = Examples::new(beliefs, truths).unwrap();
    let calibrated = examples.calibrated(&model, CalibrationMethod::Platt).unwrap();
    let calibrator = |name: &str| calibrated.label(calibrated.find_label(name).unwrap()).calibrator().clone();
    // The classifier of `a` says 0.9 and is always right, `b` is always the same.
    assert!(
        matches!(calibrator("a"), Calibrator::Platt { slope, .. } if slope > 1.0),
        "{:?}",
        calibrator("a")
    );
    assert_eq!(calibrator("b"), Calibrator::Platt { slope: 1.0, intercept: 0.0 });
}

#[test]
fn the_same_bits_for_any_number_of_threads() {
    let (model, beliefs, truths) = parity(200);
    let examples = Examples::new(beliefs, truths).unwrap();
    for learner in [quick(), quick_paper(), Learner { gradients: Gradients::Loopy, ..quick_paper() }] {
        let with = |n: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
            pool.install(|| learn(&learner, &model, &examples).model.to_string())
        };
        assert_eq!(with(1), with(2));
    }
}

#[test]
fn a_run_taken_up_again_ends_like_one_that_was_not_stopped() {
    let (model, beliefs, truths) = parity(200);
    let (train, valid) = Examples::new(beliefs, truths).unwrap().split(0.25, 1);
    for (learner, stop_after) in [(quick(), 1), (quick(), 7), (quick(), 18), (quick_paper(), 5)] {
        let whole = learner.learn(&model, &train, &valid).unwrap();
        let mut saved = String::new();
        let mut looks = 0;
        let observe = &mut |progress: &Progress| {
            looks += 1;
            if looks == stop_after {
                saved = serde_json::to_string(progress).unwrap();
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        };
        learner.learn_observed(&model, &train, &valid, Progress::new(), observe).unwrap();
        let progress = serde_json::from_str(&saved).unwrap();
        let resumed = learner
            .learn_observed(&model, &train, &valid, progress, &mut |_| ControlFlow::Continue(()))
            .unwrap();
        assert_eq!(resumed.model.to_string(), whole.model.to_string());
    }
}

#[test]
fn rows_that_say_nothing_are_refused() {
    let (model, beliefs, truths) = parity(8);
    let unknown = Examples::new(beliefs.clone(), vec![Truth::unknown(3); 8]).unwrap();
    let examples = Examples::new(beliefs.clone(), truths.clone()).unwrap();
    let error = quick().learn(&model, &unknown, &examples).unwrap_err();
    assert_eq!(error.to_string(), "there are no rows with a known truth to learn from");
    let error = quick().learn(&model, &examples, &unknown).unwrap_err();
    assert_eq!(
        error.to_string(),
        "there are no rows with a known truth to validate on; more rows are needed, or some to validate on"
    );
    let error = quick().learn(&Model::parse("label x").unwrap(), &examples, &examples).unwrap_err();
    assert_eq!(error.to_string(), "the rows to learn from are about other labels than the model");
    let loopy = Learner { gradients: Gradients::Loopy, ..quick() };
    let error = loopy.learn(&model, &examples, &examples).unwrap_err();
    assert_eq!(
        error.to_string(),
        "rules about thin groups are learned with exact gradients, not with loopy ones"
    );
    for (paper, complaint) in [
        (Paper { labels_per_rule: 0, ..Paper::default() }, "setting `j0` is 0, expected 1 label or more"),
        (Paper { alpha: -1.0, ..Paper::default() }, "setting `alpha` is -1, expected a number above 0"),
        (Paper { lambda: 1.5, ..Paper::default() }, "setting `lambda` is 1.5, expected a number from 0 to 1"),
    ] {
        let error = Learner { paper, ..Learner::paper() }.learn(&model, &examples, &examples).unwrap_err();
        assert_eq!(error.to_string(), complaint);
    }
    for (learner, complaint) in [
        (
            Learner { learning_rate: f64::NAN, ..quick() },
            "setting `learning_rate` is NaN, expected a number above 0",
        ),
        (Learner { pull: -1.0, ..quick() }, "setting `pull` is -1, expected a number of 0 or more"),
        (
            Learner { probability: 1.0, ..quick() },
            "setting `probability` is 1, expected a number above 0 and below 1",
        ),
        (
            Learner::default().sized(Some(101), None, None),
            "setting `rules` is 101, expected 100 at most, about each group or in all",
        ),
    ] {
        assert_eq!(learner.learn(&model, &examples, &examples).unwrap_err().to_string(), complaint);
    }
    let error = Examples::new(beliefs.clone(), vec![Truth::unknown(2); 8]).unwrap_err();
    assert_eq!(error.to_string(), "row 1 has 2 truths for 3 labels");
    let error = Examples::new(beliefs.clone(), truths[1..].to_vec()).unwrap_err();
    assert_eq!(error.to_string(), "7 rows of truths for 8 rows of beliefs");
    let mut wrong = truths;
    wrong[2].set(LabelId::new(1), Some(CategoryId::new(2)));
    let error = Examples::new(beliefs, wrong).unwrap_err();
    assert_eq!(error.to_string(), "the truth of row 3 is no category of label `b`");
}

#[test]
fn weights_beyond_all_numbers_gave_nan_and_zeros_passed_without_a_word() {
    let (model, beliefs, truths) = parity(40);
    let examples = Examples::new(beliefs, truths).unwrap();
    let weighted = |weight: f64| examples.clone().with_weights(vec![weight; 40]);
    assert_eq!(
        weighted(1e308).unwrap_err().to_string(),
        "row 1 has weight 1e308, more than 1e15; divide all weights by the same number"
    );
    assert_eq!(
        weighted(0.0).unwrap_err().to_string(),
        "all rows have weight 0, so that none of them counts; give some a weight above 0"
    );
    // The largest, beside rows that do not count.
    let mut weights = vec![0.0; 40];
    weights[3..9].fill(1e15);
    let some = examples.clone().with_weights(weights).unwrap();
    let learned = quick().learn(&model, &some, &some).unwrap();
    assert!(learned.validation.is_finite() && learned.base_alone.is_finite());
    // Of the rows apart, none counts.
    let none = some.select(&[0, 1, 2]);
    let error = quick().learn(&model, &some, &none).unwrap_err().to_string();
    assert!(error.starts_with("all rows with a known truth to validate on have weight 0;"), "{error}");
}

#[test]
fn one_row_one_class_and_contradictions_have_answers() {
    let (model, beliefs, truths) = parity(1);
    let one = Examples::new(beliefs, truths).unwrap();
    let learned = quick().learn(&model, &one, &one).unwrap();
    assert!(learned.validation.is_finite());
    // Every row contradicts the rule: it counts as nearly impossible, and nothing is learned from it.
    let (_, beliefs, truths) = parity(40);
    let base = Model::parse("label a\nlabel b\nlabel c\nrule 1: a <-> !a").unwrap();
    let examples = Examples::new(beliefs, truths).unwrap();
    let learned = learn(&quick(), &base, &examples);
    assert!(learned.validation < -600.0);
}

/// A truth for each row, drawn from what a model says about it.
fn sampled(model: &Model, beliefs: &BeliefMatrix) -> Vec<Truth> {
    let sampler = Engines::new(model).sampler().unwrap();
    let samples =
        sampler.sample_batch(beliefs, &Sampling { n_samples: 1, seed: 7, ..Sampling::default() }).unwrap();
    samples.into_iter().map(|samples| Truth::from(&samples.unwrap().unwrap()[0])).collect()
}

/// A simulated model with 10 labels and 10 rules, and samples of it: is it found again?
fn check_found_again(seed: u64, learner: &Learner) {
    let simulation = Simulation { n_labels: 10, n_rules: 10, n_rows: 5000, seed };
    let (generator, beliefs) = simulation.draw().unwrap();
    let truths = sampled(&generator, &beliefs);
    let model = generator.without_rules().unwrap();
    let examples = Examples::new(beliefs.clone(), truths.clone()).unwrap();
    let rows: Vec<usize> = (0..5000).collect();
    let (train, valid, test) =
        (examples.select(&rows[..3500]), examples.select(&rows[3500..4000]), &rows[4000..]);
    let learned = learner.learn(&model, &train, &valid).unwrap();
    let score = |model: &Model| {
        let mut matrix = BeliefMatrix::new(model);
        for &row in test {
            let cells: Vec<Option<f64>> = beliefs.row(row).iter().copied().map(Some).collect();
            matrix.push(&cells, Normalize::Always).unwrap();
        }
        let truths = truths[4000..].to_vec();
        Evaluation::of(model, &matrix, &truths).unwrap().scores().get(Metric::MeanJointLogLikelihood).unwrap()
    };
    let [beliefs_alone, learned, best] = [score(&model), score(&learned.model), score(&generator)];
    assert!((best - learned) / best.abs() <= 0.02, "{learned} is not near {best}");
    assert!((learned - beliefs_alone) / (best - beliefs_alone) >= 0.95, "{beliefs_alone} {learned} {best}");
}

#[test]
fn a_simulated_model_is_found_again() {
    let sizes = vec![Size::Thin { width: 8, rules_per_group: 8, wide: 0 }];
    let (typical, calibrate, learning_rate) = (false, Calibrating::Given, 0.01);
    let learner =
        Learner { sizes, typical, calibrate, learning_rate, steps: Some(1000), ..Learner::default() };
    check_found_again(3, &learner);
}

#[test]
#[ignore = "takes minutes: `make test-all` runs it"]
fn simulated_models_are_found_again_by_default() {
    (1..=3).for_each(|seed| check_found_again(seed, &Learner::default()));
}

/// Something is always the case, whatever the classifiers say: no group of few labels can tell.
#[test]
fn a_rule_about_all_labels_is_found_where_it_helps() {
    let names: Vec<String> = (0..14).map(|at| format!("l{at}")).collect();
    let labels = names.iter().fold(Model::builder(), |builder, name| builder.binary_label(name.clone()));
    let model = labels.build().unwrap();
    let truth = model.edit().rule(names.join(" | "), 0.999).build().unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let mut beliefs = BeliefMatrix::new(&model);
    for _ in 0..1500 {
        let cells: Vec<Option<f64>> =
            (0..14).flat_map(|_| [Some(rng.random_range(0.0..0.25)), None]).collect();
        beliefs.push(&cells, Normalize::Never).unwrap();
    }
    let truths = sampled(&truth, &beliefs);
    let examples = Examples::new(beliefs, truths).unwrap();
    let is_wide = |size: Size| matches!(size, Size::Thin { wide: 1, .. });
    let sizes = Learner::default().sizes[..2].to_vec();
    let learner = Learner { sizes, ..Learner::default() };
    let learned = learn(&learner, &model, &examples);
    assert!(is_wide(learned.size), "{}", learned.size);
    let without = learn(&Learner { wide: false, ..learner }, &model, &examples);
    assert!(!is_wide(without.size));
    assert!(learned.validation > without.validation + 0.02, "{} {}", learned.validation, without.validation);
}

/// A table of such a rule would have 2³⁰ entries.
#[test]
fn rules_about_very_many_labels_are_learned_beside_and_anew() {
    let names: Vec<String> = (0..30).map(|at| format!("l{at}")).collect();
    let labels = names.iter().fold(Model::builder(), |builder, name| builder.binary_label(name.clone()));
    let inhibitions = names.iter().enumerate().map(|(at, name)| format!("{name} {}", (at % 5) as f64 / 10.0));
    let text = inhibitions.collect::<Vec<String>>().join(", ");
    let model = labels.build().unwrap();
    let truth = Model::parse(&format!("{model}\nnoisy_or 0.9 any: {text}\nrule 0.8: l0 -> l1")).unwrap();
    // Not the truth, so that learning anew has something to gain.
    let text = names.iter().map(|name| format!("{name} 0.3")).collect::<Vec<String>>().join(", ");
    let base = Model::parse(&format!("{model}\nnoisy_or 0.7 any: {text}\nrule 0.8: l0 -> l1")).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let mut beliefs = BeliefMatrix::new(&model);
    for _ in 0..600 {
        let cells: Vec<Option<f64>> =
            (0..30).flat_map(|_| [Some(rng.random_range(0.0..0.1)), None]).collect();
        beliefs.push(&cells, Normalize::Never).unwrap();
    }
    let truths = sampled(&truth, &beliefs);
    let (train, valid) = Examples::new(beliefs, truths).unwrap().split(0.25, 1);
    for relearn in [false, true] {
        let learner = Learner { relearn, steps: Some(60), ..quick() };
        let learned = learner.learn(&base, &train, &valid).unwrap();
        check(&learned, &valid);
        let named = |model: &Model| model.rules().iter().find(|rule| rule.name() == Some("any")).cloned();
        assert_eq!(named(&learned.model) == named(&base), !relearn, "{}", learned.model);
        assert_eq!(learned.model.rules().iter().filter(|rule| rule.name() == Some("any")).count(), 1);
    }
    let another = |at: usize| base.rules()[0].clone().named(format!("any{at}"));
    let many = (0..11).fold(base.edit(), |builder, at| builder.add_rule(another(at)));
    let error = quick().learn(&many.build().unwrap(), &train, &valid).unwrap_err();
    assert!(
        error.to_string().contains("12 rules about many labels, each of which doubles the time"),
        "{error}"
    );
}

#[test]
fn calibrators_are_left_out_where_beliefs_are_right_as_they_are() {
    let simulation = Simulation { n_labels: 5, n_rules: 4, n_rows: 3000, seed: 2 };
    let (generator, beliefs) = simulation.draw().unwrap();
    let truths = sampled(&generator, &beliefs);
    let model = generator.without_rules().unwrap();
    let sizes = vec![Size::Thin { width: 4, rules_per_group: 6, wide: 0 }];
    let learner =
        Learner { sizes, typical: false, steps: Some(600), learning_rate: 0.02, ..Learner::default() };
    let is_calibrated = |power: f64| {
        let mut matrix = BeliefMatrix::new(&model);
        for row in 0..beliefs.n_rows() {
            let cells: Vec<Option<f64>> =
                beliefs.row(row).iter().map(|belief| Some(belief.powf(power))).collect();
            matrix.push(&cells, Normalize::Always).unwrap();
        }
        let examples = Examples::new(matrix, truths.clone()).unwrap();
        let learned = learn(&learner, &model, &examples);
        check(&learned, &examples.split(0.25, 1).1);
        learned.model.labels().iter().any(|label| *label.calibrator() != Calibrator::Identity)
    };
    assert!(!is_calibrated(1.0));
    // Classifiers that are far too sure.
    assert!(is_calibrated(3.0));
}
