//! Scores agree with their definitions, written out once more over all assignments.

use proptest::prelude::*;
use prsl::infer::{Enumeration, RankedAssignments};
use prsl::metrics::{
    Bootstrap, Evaluation, Metric, Predictions, RuleEffects, Scores, joint_log_likelihoods,
    label_log_likelihoods,
};
use prsl::{
    Assignment, BeliefMatrix, CategoryId, Engine, Error, Evidence, JunctionTree, LabelId, Limits, Loopy,
    Model, MostProbable, Normalize, Posteriors, Row, Truth,
};
use prsl_testkit::{EXACT, close, simulated, small_model};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The log-likelihood of a truth of probability 0: ln 1e-300.
const IMPOSSIBLE: f64 = -690.775_527_898_213_7;

/// Number of bins of the expected calibration error.
const CALIBRATION_BINS: usize = 15;

fn many(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, max_shrink_iters: 2000, failure_persistence: None, ..ProptestConfig::default() }
}

/// Truths with gaps: fully, partly and not known rows.
fn random_truths(model: &Model, n_rows: usize, seed: u64) -> Vec<Truth> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let row = |row: usize| {
        let known = [1.0, 0.5, 0.0, 0.8][row % 4];
        let mut cell = |n| rng.random_bool(known).then(|| CategoryId::new(rng.random_range(0..n)));
        model.labels().iter().map(|label| cell(label.n_categories())).collect()
    };
    (0..n_rows).map(row).collect()
}

/// What all assignments say about some rows.
struct Answers {
    posteriors: Posteriors,
    best: Vec<Option<MostProbable>>,
    joint: Vec<Option<f64>>,
}

impl Answers {
    fn new(model: &Model, rows: &BeliefMatrix, truths: &[Truth]) -> Self {
        let engine = Enumeration::compile(model).expect("small");
        let posteriors = engine.infer_batch(rows).expect("rows of the model");
        let top = engine.top_batch(rows, 1).expect("rows of the model");
        let best = top.into_iter().map(RankedAssignments::into_best).collect();
        let joint = (0..rows.n_rows()).map(|row| joint(model, &rows.row(row), &truths[row])).collect();
        Self { posteriors, best, joint }
    }

    fn predictions(&self) -> Predictions<'_> {
        let (best, joint) = (Some(&self.best[..]), Some(&self.joint[..]));
        Predictions { posteriors: &self.posteriors, best, joint, labels: None }
    }

    fn evaluate(&self, model: &Model, truths: &[Truth]) -> Evaluation {
        let mut evaluation = Evaluation::new(model, Engine::Enumeration);
        evaluation.add(self.predictions(), truths).expect("truths of the model");
        evaluation
    }
}

/// ln of the share of the weight of the assignments that agree with what is known.
fn joint(model: &Model, row: &Row<'_>, truth: &Truth) -> Option<f64> {
    let sizes: Vec<usize> = model.labels().iter().map(|label| label.n_categories()).collect();
    let assignments = (0..sizes.iter().product()).map(|mut index: usize| {
        let digit = |&size: &usize| {
            let digit = index % size;
            index /= size;
            digit
        };
        Assignment::from_indices(sizes.iter().map(digit).collect::<Vec<_>>())
    });
    let agrees = |(known, category): (&Option<usize>, &usize)| known.is_none_or(|it| it == *category);
    let (mut all, mut agreeing) = (Vec::new(), Vec::new());
    for assignment in assignments {
        all.push(model.log_weight(row, &assignment));
        if truth.indices().iter().zip(assignment.indices()).all(agrees) {
            agreeing.push(*all.last().expect("just pushed"));
        }
    }
    let (all, agreeing) = (log_sum_exp(&all), log_sum_exp(&agreeing));
    let known = truth.n_known() > 0;
    known.then_some(if agreeing == f64::NEG_INFINITY { agreeing } else { agreeing - all })
}

/// ln Σ eˣ, −∞ if all terms are −∞ or there are none.
fn log_sum_exp(terms: &[f64]) -> f64 {
    let largest = terms.iter().copied().fold(f64::MIN, f64::max);
    largest + terms.iter().map(|term| (term - largest).exp()).sum::<f64>().ln()
}

/// A known cell: label, truth, marginal (of zeros where nothing is possible).
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

/// The definitions, literally.
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
    fn engines_that_suit_the_model_score_like_enumeration((model, rows) in small_model(), seed in any::<u64>()) {
        let truths = random_truths(&model, rows.n_rows(), seed);
        let answers = Answers::new(&model, &rows, &truths).evaluate(&model, &truths).scores();
        let scores = Evaluation::of(&model, &rows, &truths)?.scores();
        // Where probabilities tie, engines may choose differently, and marginals agree to 1e-12 but not their logarithms.
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
fn intervals_hold_what_theory_says_and_repeat() {
    let (model, rows) = simulated(5, 5, 400, 3);
    let truths = random_truths(&model, 400, 3);
    let evaluation = Evaluation::of(&model, &rows, &truths).expect("small");
    let (scores, intervals) = (evaluation.scores(), evaluation.intervals(&Bootstrap::default()));
    assert_eq!(intervals, evaluation.intervals(&Bootstrap::default()));
    assert_ne!(intervals, evaluation.intervals(&Bootstrap { seed: 2, ..Bootstrap::default() }));
    let one_thread = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread");
    assert_eq!(one_thread.install(|| evaluation.intervals(&Bootstrap::default())), intervals);
    for metric in Metric::ALL.into_iter().filter(|&it| it != Metric::ExpectedCalibrationError) {
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
fn rows_come_in_any_number_of_parts() {
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
fn truths_out_of_range_are_errors() {
    let model = Model::parse("label a\nlabel weather: sun, fog, rain").expect("a model");
    let mut rows = BeliefMatrix::new(&model);
    rows.push_evidence(&Evidence::new()).expect("valid");
    let effects = RuleEffects::compile(&model, Limits::default()).expect("small");
    let engine = JunctionTree::compile(&model).expect("small");
    let posteriors = engine.infer_batch(&rows).expect("rows of the model");
    let wrong: [&[Truth]; 5] = [
        &[Truth::from_indices([Some(2), None])],
        &[Truth::from_indices([None, Some(3)])],
        &[Truth::from_indices([Some(0)])],
        &[],
        &[Truth::from_indices([Some(0), None]), Truth::from_indices([Some(0), None])],
    ];
    let mut messages = Vec::new();
    for truths in wrong {
        let infer = |rows: &BeliefMatrix| engine.infer_batch(rows);
        let error = Evaluation::of(&model, &rows, truths).expect_err("wrong truths").to_string();
        assert_eq!(effects.gains(&rows, truths).expect_err("wrong truths").to_string(), error);
        for found in [
            joint_log_likelihoods(&rows, truths, &posteriors, infer).err(),
            label_log_likelihoods(&rows, truths, &posteriors, infer).err(),
        ] {
            assert_eq!(found.expect("wrong truths").to_string(), error);
        }
        messages.push(error);
    }
    insta::assert_snapshot!(messages.join("\n"));
    let other = Model::parse("label a").expect("a model");
    let effects = RuleEffects::compile(&other, Limits::default()).expect("small");
    assert!(matches!(effects.gains(&rows, &[Truth::unknown(1)]), Err(Error::ForeignRow { .. })));
    assert!(matches!(effects.influences(&rows), Err(Error::ForeignRow { .. })));
}

#[test]
fn a_row_of_the_wrong_length_is_an_error() {
    let model = Model::parse("label a\nlabel weather: sun, fog, rain").expect("a model");
    let mut rows = BeliefMatrix::new(&model);
    let short = rows.push(&[Some(0.5)], Normalize::Never).expect_err("too few cells");
    let long =
        rows.push_with_observed(&[None; 5], &[false; 3], Normalize::Never).expect_err("too many answers");
    assert_eq!(short.to_string(), "a row has 1 cell, expected 5, one for each category");
    assert_eq!(long.to_string(), "a row has 3 answers, expected 2, one for each label");
    assert_eq!(rows.n_rows(), 0);
    rows.push(&[None; 5], Normalize::Never).expect("nothing is known");
    let [a, weather, nowhere] = [0, 1, 2].map(LabelId::new);
    assert!(matches!(rows.observe(1, a, CategoryId::new(0)), Err(Error::UnknownRow { .. })));
    assert!(matches!(rows.observe(0, nowhere, CategoryId::new(0)), Err(Error::UnknownLabel { .. })));
    assert!(matches!(rows.observe(0, weather, CategoryId::new(3)), Err(Error::UnknownCategory { .. })));
    assert_eq!(rows.observe(0, weather, CategoryId::new(2)), Ok(()));
}

#[test]
fn label_wise_log_likelihoods_do_not_underflow() {
    let model = Model::parse("label a\nlabel b\nrule 1e-200: a\nrule 0.9: a -> b").expect("a model");
    let mut rows = BeliefMatrix::new(&model);
    rows.push_evidence(&Evidence::new().belief("a", [1e-200]).belief("b", [0.5])).expect("valid");
    let scores =
        Evaluation::of(&model, &rows, &[Truth::from_indices([Some(0), Some(0)])]).expect("small").scores();
    // Without the factor 1e-400, P(a, b) has 0.9 · 0.5 and all of Z is 0.9, of b = yes half of it.
    let label = -400.0 * 10_f64.ln() + (0.5_f64 / 0.9).ln() + 0.5_f64.ln();
    let joint = -400.0 * 10_f64.ln() + 0.5_f64.ln();
    let found = [Metric::MeanLabelLogLikelihood, Metric::MeanJointLogLikelihood]
        .map(|it| scores.get(it).expect("known"));
    assert!((found[0] - label).abs() < 1e-9, "{found:?} {label}");
    assert!((found[1] - joint).abs() < 1e-9, "{found:?} {joint}");
    assert_eq!(scores.impossible, 0);
}
