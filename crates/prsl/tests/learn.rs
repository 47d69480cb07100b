//! Learning as its users see it.

use std::ops::ControlFlow;

use prsl::calibrate::{CalibrationMethod, Calibrator};
use prsl::learn::{Calibrating, Examples, Learned, Learner, Progress};
use prsl::metrics::{Evaluation, Metric};
use prsl::{BeliefMatrix, Body, CategoryId, Engines, Evidence, LabelId, Model, Normalize, Truth};
use prsl_testkit::planted::Planted;
use prsl_testkit::{sampled, with_truths};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Three labels. The third is the exclusive or of the first two, whose classifiers are good.
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

fn examples(n_rows: usize) -> (Model, Examples) {
    let (model, beliefs, truths) = parity(n_rows);
    (model, Examples::new(beliefs, truths).unwrap())
}

/// Rows with planted rules, unknown truths and weights, about labels of up to four categories.
fn mixed(n_rows: usize) -> Examples {
    let (_, rows) = Planted { n_labels: 6, n_wide: 2, n_rules: 3, n_rows, missing: 0.2, seed: 3 }.draw();
    let weights = (0..n_rows).map(|row| [1.0, 2.0, 0.5][row % 3]).collect();
    rows.with_weights(weights).unwrap()
}

fn learn(learner: &Learner, rows: &Examples) -> Learned {
    learner.learn(rows.model(), rows).unwrap()
}

#[test]
fn a_label_is_learned_from_the_others() {
    let (_, rows) = examples(400);
    for typical in [false, true] {
        let learned = learn(&Learner { typical, ..Learner::default() }, &rows);
        assert!(learned.log_likelihood > learned.base_alone + 0.3, "{learned:?}");
        let evidence =
            Evidence::new().belief("a", [0.9, 0.1]).belief("b", [0.1, 0.9]).belief("c", [0.5, 0.5]);
        let posterior = learned.model.infer(&evidence).unwrap();
        assert!(posterior.marginal(learned.model.find_label("c").unwrap())[0] > 0.8, "{posterior}");
    }
}

#[test]
fn the_exclusive_or_is_four_clauses() {
    let (_, rows) = examples(400);
    let learned = learn(&Learner { typical: false, ..Learner::default() }, &rows);
    let rules: Vec<String> = learned.model.rule_ids().map(|rule| learned.model.rule_text(rule)).collect();
    assert_eq!(rules.len(), 4, "{rules:?}");
    assert!(learned.model.rules().iter().all(|rule| rule.learned().unwrap().sure), "{}", learned.model);
    assert!(learned.model.rules().iter().all(|rule| rule.learned().unwrap().broken == 0.0));
}

/// A model that is read from its text gives the rows the likelihood that the learner reported.
#[test]
fn the_reported_likelihood_is_that_of_the_model() {
    let (_, beliefs, mut truths) = parity(300);
    truths.iter_mut().step_by(3).for_each(|truth| truth.set(LabelId::new(1), None));
    let rows = Examples::new(beliefs, truths).unwrap();
    for calibrate in [Calibrating::Joint, Calibrating::Given, Calibrating::Alone(CalibrationMethod::Isotonic)]
    {
        for typical in [false, true] {
            let learned = learn(&Learner { calibrate, typical, ..Learner::default() }, &rows);
            let read = Model::parse(&learned.model.to_string()).unwrap();
            let beliefs = rows.beliefs_for(&read).unwrap();
            let scores = Evaluation::of(&read, &beliefs, &rows.to_truths()).unwrap().scores();
            let expected = scores.get(Metric::MeanJointLogLikelihood).unwrap();
            // Combinations are fitted with a row's own occurrence left out.
            let tolerance = if learned.model.typical().is_empty() { 2e-3 } else { 2e-2 };
            let found = learned.log_likelihood;
            assert!(
                (found - expected).abs() < tolerance,
                "{calibrate:?}, {typical}: {found} is not {expected}"
            );
        }
    }
}

#[test]
fn expert_rules_are_kept() {
    let (_, rows) = examples(200);
    let text =
        "label a\nlabel b\nlabel c\nrule 0.8 known: a -> !b | !c\nrule 1: !a & !b -> !c\ntypical 2: a, b";
    let base = Model::parse(text).unwrap();
    let learned = Learner::default().learn(&base, &rows).unwrap();
    assert_eq!(learned.model.rules()[..2], *base.rules());
    assert_eq!(learned.n_kept, 2);
    assert!(learned.model.typical().iter().any(|combination| combination == &base.typical()[0]));
    let learner = Learner { learn_probabilities: true, ..Learner::default() };
    let learned = learner.learn(&base, &rows).unwrap();
    let [known, hard] = [&learned.model.rules()[0], &learned.model.rules()[1]];
    assert!(known.probability() > 0.8, "it always holds");
    assert_eq!(hard.probability(), 1.0);
}

#[test]
fn rows_that_the_base_excludes_are_not_learned_from() {
    let (_, rows) = examples(40);
    let base = Model::parse("label a\nlabel b\nlabel c\nrule 1: a -> b").unwrap();
    let learned = Learner::default().learn(&base, &rows).unwrap();
    assert_eq!(learned.n_impossible, 10); // a quarter has a without b
    assert!(learned.log_likelihood.is_finite());
    let impossible = Model::parse("label a\nlabel b\nlabel c\nrule 1: a <-> !a").unwrap();
    let error = Learner::default().learn(&impossible, &rows).unwrap_err();
    assert!(error.to_string().contains("exclude"), "{error}");
}

/// The truth of a label is never known. Only its classifier, which helps to predict another label, tells about it.
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
    let learned = learn(&Learner::default(), &Examples::new(beliefs, truths).unwrap()).model;
    // Its classifier is gone, and its prior says nothing.
    let blind = learned.edit().unplug("hidden").prior("hidden", [0.5, 0.5]).build().unwrap();
    let hidden = blind.find_label("hidden").unwrap();
    for (seen, category) in [("yes", 0), ("no", 1)] {
        let posterior =
            blind.infer(&Evidence::new().observe("seen", seen).belief("other", [0.5, 0.5])).unwrap();
        let probability = posterior.marginal(hidden)[category];
        assert!(probability > 0.65, "{seen}: {probability}, nine times out of ten it is so\n{learned}");
    }
}

#[test]
fn a_label_without_a_classifier_is_learned() {
    let model = Model::parse("label seen\nlabel hidden latent").unwrap();
    let (mut beliefs, mut truths) = (BeliefMatrix::new(&model), Vec::new());
    for row in 0..200 {
        let truth = row % 2;
        let belief = if truth == 0 { 0.8 } else { 0.2 };
        beliefs.push(&[Some(belief), None, None, None], Normalize::Never).unwrap();
        truths.push(Truth::from_indices([Some(truth), Some(truth)]));
    }
    let learned =
        learn(&Learner { typical: false, ..Learner::default() }, &Examples::new(beliefs, truths).unwrap());
    let posterior = learned.model.infer(&Evidence::new().belief("seen", [0.9, 0.1])).unwrap();
    assert!(posterior.marginals()[2] > 0.8, "{}", learned.model);
}

#[test]
fn calibrators_are_fitted_where_there_is_something_to_fit() {
    let (model, beliefs, mut truths) = parity(400);
    truths.iter_mut().for_each(|truth| truth.set(LabelId::new(1), Some(CategoryId::new(0))));
    let examples = Examples::new(beliefs, truths).unwrap();
    let calibrated = examples.calibrated(&model, CalibrationMethod::Platt).unwrap();
    let calibrator = |name: &str| calibrated.label(calibrated.find_label(name).unwrap()).calibrator().clone();
    // The classifier of `a` says 0.9 and is always right, `b` is always the same.
    let is_steep = matches!(calibrator("a"), Calibrator::Platt { slope, .. } if slope > 1.0);
    assert!(is_steep, "{:?}", calibrator("a"));
    assert_eq!(calibrator("b"), Calibrator::Platt { slope: 1.0, intercept: 0.0 });
}

#[test]
fn the_same_bits_for_any_number_of_threads() {
    let rows = mixed(300);
    let with = |n: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
        pool.install(|| learn(&Learner::default(), &rows).model.to_string())
    };
    assert_eq!(with(1), with(2));
}

#[test]
fn a_resumed_run_ends_like_one_that_was_not_stopped() {
    let rows = mixed(200);
    let model = rows.model();
    let learner = Learner::default();
    let whole = learner.learn(model, &rows).unwrap().model.to_string();
    let mut n_reports = 0;
    learner
        .learn_observed(model, &rows, Progress::default(), &mut |_| {
            n_reports += 1;
            ControlFlow::Continue(())
        })
        .unwrap();
    for stop_after in [1, n_reports / 3, n_reports / 2, n_reports - 3] {
        let (mut saved, mut n) = (String::new(), 0);
        let observe = &mut |progress: &Progress| {
            n += 1;
            saved = serde_json::to_string(progress).unwrap();
            if n == stop_after { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let stopped = learner.learn_observed(model, &rows, Progress::default(), observe).unwrap();
        assert!(stopped.is_stopped && stopped.log_likelihood.is_finite());
        let progress = serde_json::from_str(&saved).unwrap();
        let resumed =
            learner.learn_observed(model, &rows, progress, &mut |_| ControlFlow::Continue(())).unwrap();
        assert_eq!(resumed.model.to_string(), whole, "stopped after {stop_after} of {n_reports}");
    }
    let progress = Progress::default();
    let mut last = progress.clone();
    let observe = &mut |progress: &Progress| {
        last = progress.clone();
        ControlFlow::Break(())
    };
    learner.learn_observed(model, &rows, progress, observe).unwrap();
    let other = Learner { seed: 2, ..learner };
    let error = other.learn_observed(model, &rows, last, &mut |_| ControlFlow::Continue(())).unwrap_err();
    assert!(error.to_string().contains("checkpoint"), "{error}");
}

/// Weight 0 is a deleted row, and weight 2 is a row twice.
#[test]
fn weights_count_rows() {
    let rows = mixed(300);
    let plain = rows.clone().with_weights(vec![1.0; 300]).unwrap();
    let mut weights = vec![1.0; 300];
    weights[10..60].fill(2.0);
    weights[100..130].fill(0.0);
    let weighted = rows.clone().with_weights(weights.clone()).unwrap();
    let times = |row: usize| std::iter::repeat_n(row, weights[row] as usize);
    let repeated = plain.select(&(0..300).flat_map(times).collect::<Vec<usize>>());
    let [a, b] = [&weighted, &repeated].map(|rows| learn(&Learner::default(), rows).model);
    assert_eq!(a.rules().len(), b.rules().len());
    for rule in a.rule_ids() {
        assert_eq!(a.rule_text(rule), b.rule_text(rule));
        assert!((a.rule(rule).probability() - b.rule(rule).probability()).abs() < 1e-6);
    }
    for label in a.label_ids() {
        let (a, b) = (format!("{:?}", a.label(label)), format!("{:?}", b.label(label)));
        let numbers = |text: &str| -> Vec<f64> {
            text.split(|c: char| !c.is_ascii_digit() && !".-e".contains(c))
                .filter_map(|n| n.parse().ok())
                .collect()
        };
        for (a, b) in numbers(&a).into_iter().zip(numbers(&b)) {
            assert!((a - b).abs() < 2e-5, "{a} is not {b}"); // calibrators are written with five decimals
        }
    }
}

#[test]
fn rows_without_a_known_truth_are_refused() {
    let (model, beliefs, truths) = parity(8);
    let unknown = Examples::new(beliefs.clone(), vec![Truth::unknown(3); 8]).unwrap();
    let error = Learner::default().learn(&model, &unknown).unwrap_err();
    assert_eq!(error.to_string(), "no truth is known in any row; there is nothing to learn from");
    let rows = Examples::new(beliefs.clone(), truths.clone()).unwrap();
    let error = Learner::default().learn(&Model::parse("label x").unwrap(), &rows).unwrap_err();
    assert_eq!(error.to_string(), "the rows are about other labels than the base");
    let error = Learner { parsimony: f64::NAN, ..Learner::default() }.learn(&model, &rows).unwrap_err();
    assert_eq!(error.to_string(), "parsimony is NaN, expected a number of at least 0");
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
    let (_, rows) = examples(40);
    let weighted = |weight: f64| rows.clone().with_weights(vec![weight; 40]);
    let message = "row 1 has weight 1e308, more than 1e15; divide all weights by the same number";
    assert_eq!(weighted(1e308).unwrap_err().to_string(), message);
    let message = "all rows have weight 0, so that none of them counts; give some a weight above 0";
    assert_eq!(weighted(0.0).unwrap_err().to_string(), message);
    // The largest, beside rows that do not count.
    let mut weights = vec![0.0; 40];
    weights[3..9].fill(1e15);
    let learned = learn(&Learner::default(), &rows.clone().with_weights(weights).unwrap());
    assert!(learned.log_likelihood.is_finite() && learned.base_alone.is_finite());
}

#[test]
fn one_row_and_one_class_have_answers() {
    let (_, one) = examples(1);
    let learned = learn(&Learner::default(), &one);
    assert!(learned.log_likelihood.is_finite() && learned.model.rules().is_empty());
}

#[test]
fn the_number_of_rules_is_limited() {
    let (_, rows) = examples(400);
    let learned = learn(&Learner { max_rules: Some(1), ..Learner::default() }, &rows);
    assert_eq!(learned.model.rules().len(), 1);
}

/// With the columns of a label removed, its mean posterior is its base rate.
#[test]
fn priors_are_right_where_a_classifier_is_silent() {
    let (_, rows) = Planted { n_rows: 2000, ..Planted::default() }.draw();
    let learned = learn(&Learner::default(), &rows).model;
    let engine = Engines::new(&learned).marginals().unwrap();
    let given = rows.to_beliefs();
    for label in learned.label_ids() {
        let mut beliefs = BeliefMatrix::new(&learned);
        for row in 0..rows.n_rows() {
            let of = |at: usize| (!learned.block(label).contains(&at)).then(|| given.row(row)[at]);
            beliefs
                .push(&(0..learned.n_categories()).map(of).collect::<Vec<_>>(), Normalize::Always)
                .unwrap();
        }
        let answers = engine.infer_batch(&beliefs).unwrap();
        let at = learned.block(label).start;
        let posterior: f64 = (0..rows.n_rows()).map(|row| answers.marginals(row).unwrap()[at]).sum();
        let yes = |truth: &Truth| truth.category(label) == Some(CategoryId::new(0));
        let base_rate = rows.truths().filter(yes).count() as f64;
        let difference = (posterior - base_rate) / rows.n_rows() as f64;
        assert!(difference.abs() < 0.01, "{}: {difference}", learned.label(label).name());
    }
}

/// Mean joint log-likelihood of rows.
fn log_likelihood(model: &Model, rows: &Examples) -> f64 {
    let beliefs = rows.beliefs_for(model).unwrap();
    let scores = Evaluation::of(model, &beliefs, &rows.to_truths()).unwrap().scores();
    scores.get(Metric::MeanJointLogLikelihood).unwrap()
}

/// Few rows are not overfitted: 150 to learn from, 8 labels, 2,000 held-out rows.
#[test]
fn little_data_do_no_harm() {
    let gain = |n_rules: usize, seed: u64| {
        let (generator, rows) = sampled(8, n_rules, 2150, seed);
        let [train, test] = [0..150, 150..2150].map(|range| rows.select(&range.collect::<Vec<usize>>()));
        let model = generator.without_rules().unwrap();
        let calibrated = Learner { max_rules: Some(0), typical: false, ..Learner::default() };
        let [calibrated, learned] = [calibrated, Learner::default()]
            .map(|learner| log_likelihood(&learner.learn(&model, &train).unwrap().model, &test));
        learned - calibrated
    };
    let mean = |n_rules: usize| (1..=10).map(|seed| gain(n_rules, seed)).sum::<f64>() / 10.0;
    let [none, two, eight] = [0, 2, 8].map(mean);
    assert!(none > -0.01 && two > -0.01 && eight > 0.3, "{none}, {two} and {eight} nats a row gained");
}

/// Of many combinations of six labels, some are more frequent than expected by chance. They were chosen by the rows that they
/// then explained, so 131 combinations were learned where the labels are independent.
#[test]
fn combinations_gained_from_the_rows_that_chose_them() {
    let (model, rows) = sampled(6, 0, 1000, 3);
    let learned = Learner::default().learn(&model, &rows).unwrap().model;
    assert_eq!(learned.typical().len(), 0);
}

/// Combinations that were seen in two or three complete rows got weights of up to 3e12.
#[test]
fn combinations_of_few_complete_rows_were_trusted() {
    for seed in 1..=6 {
        let settings = Planted { n_labels: 6, n_wide: 0, n_rules: 3, n_rows: 400, missing: 0.6, seed };
        let (generator, rows) = settings.draw();
        let (_, held_out) = Planted { missing: 0.0, n_rows: 1000, ..settings }.draw();
        let score = |typical: bool| {
            let learned = learn(&Learner { typical, ..Learner::default() }, &rows);
            log_likelihood(&learned.model, &held_out)
        };
        assert!(score(true) > score(false) - 0.02, "{} and {} by {generator}", score(true), score(false));
    }
}

/// Noisy-or rules of the paper's simulation, sampled: two models, or as many as `PRSL_SIMULATIONS` says.
#[test]
fn simulated_models_are_found_again() {
    let n_models = std::env::var("PRSL_SIMULATIONS").map_or(2, |n| n.parse().unwrap());
    for seed in [208, 203, 206, 204, 202, 205, 207, 201].into_iter().take(n_models) {
        let (generator, rows) = sampled(10, 10, 5000, seed);
        let [train, test] = [0..4000, 4000..5000].map(|range| rows.select(&range.collect::<Vec<usize>>()));
        let learned = Learner::default().learn(&generator.without_rules().unwrap(), &train).unwrap().model;
        let (found, best) = (log_likelihood(&learned, &test), log_likelihood(&generator, &test));
        assert!((best - found) / best.abs() < 0.02, "seed {seed}: {found}, and {best} is best");
    }
}

/// Only a circuit makes these 243 hard rules exact.
#[test]
fn rules_are_learned_beside_many_hard_ones() {
    let Some(folder) = prsl_testkit::shared("rulebases") else { return };
    let text = std::fs::read_to_string(folder.join("road-r.prsl")).unwrap();
    let base = Model::parse(&text).unwrap();
    // A soft rule that the base does not have.
    let generator = base.edit().rule("Jun -> TurRht", 0.95).build().unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut beliefs = BeliefMatrix::new(&base);
    for _ in 0..300 {
        let cells: Vec<Option<f64>> =
            base.labels().iter().flat_map(|_| [Some(rng.random_range(0.1..0.9)), None]).collect();
        beliefs.push(&cells, Normalize::Never).unwrap();
    }
    let rows = with_truths(&generator, beliefs, 1);
    let learned = Learner { max_rules: Some(2), ..Learner::default() }.learn(&base, &rows).unwrap();
    assert_eq!(learned.n_impossible, 0);
    assert_eq!(learned.model.rules()[..base.rules().len()], *base.rules());
    assert_eq!(learned.path[0].rules, ["Jun -> TurRht"]);
    assert!(learned.log_likelihood > learned.base_alone);
    assert!(learned.log_likelihood > learned.beliefs_alone + 1.0);
}

/// A clause over three labels, of which one literal only sometimes makes it true.
#[test]
fn a_clause_is_softened_where_it_pays() {
    let names: Vec<String> = (0..12).map(|label| format!("label l{label}\n")).collect();
    let text = names.concat();
    let generator = Model::parse(&format!("{text}noisy_or 0.98: l0=no 0, l1=no 0, l2 0.6")).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut beliefs = BeliefMatrix::new(&generator);
    for _ in 0..4000 {
        let cells: Vec<Option<f64>> =
            (0..12).flat_map(|_| [Some(rng.random_range(0.2..0.8)), None]).collect();
        beliefs.push(&cells, Normalize::Never).unwrap();
    }
    let rows = with_truths(&generator, beliefs, 1);
    let base = Model::parse(&text).unwrap();
    let learner = Learner { typical: false, parsimony: Learner::EXPLAIN, ..Learner::default() };
    let learned = learner.learn(&base, &rows).unwrap().model;
    let [rule] = learned.rules() else { panic!("{learned}") };
    let Body::NoisyOr(noisy_or) = rule.body() else { panic!("{learned}") };
    let q =
        |label: usize, category: usize| noisy_or.inhibition(LabelId::new(label), CategoryId::new(category));
    assert_eq!([q(0, 0), q(0, 1), q(1, 0), q(1, 1), q(2, 1)], [1.0, 0.0, 1.0, 0.0, 1.0], "{learned}");
    assert!((q(2, 0) - 0.6).abs() < 0.15, "{learned}");
    let note = rule.learned().unwrap();
    assert!(note.sure && note.expected > note.broken, "{learned}");
    assert_eq!(Model::parse(&learned.to_string()).unwrap(), learned);
    assert_eq!(Model::from_json(&learned.to_json()).unwrap(), learned);
}
