//! Joint samples have the distribution of enumeration, and no sample is impossible.

use std::collections::HashMap;

use proptest::prelude::*;
use prsl::infer::{Enumeration, Gibbs, GibbsSettings, Samples, Sampling};
use prsl::{
    Assignment, BeliefMatrix, Engine, Engines, Error, Evidence, JunctionTree, Limits, Model, Normalize,
    Result, Row,
};
use prsl_testkit::{RandomModel, pigeons, random_model, random_row, simulated, small_model};

/// The probability of every possible assignment.
fn distribution(model: &Model, row: &Row<'_>) -> HashMap<Assignment, f64> {
    let all = Enumeration::compile(model).unwrap().top(row, usize::MAX).unwrap();
    let largest = all.first().map_or(0.0, |best| best.log_weight);
    let weights: Vec<f64> = all.iter().map(|y| (y.log_weight - largest).exp()).collect();
    let total: f64 = weights.iter().sum();
    all.into_iter().zip(weights).map(|(y, weight)| (y.assignment, weight / total)).collect()
}

fn counts(samples: &Samples) -> HashMap<&Assignment, f64> {
    let mut counts = HashMap::new();
    for sample in samples {
        *counts.entry(sample).or_insert(0.0) += 1.0;
    }
    counts
}

/// How many standard deviations Pearson's χ² of the samples is above its mean. Assignments that are expected fewer
/// than five times count together.
fn surprise(samples: &Samples, expected: &HashMap<Assignment, f64>) -> f64 {
    let counts = counts(samples);
    assert!(counts.keys().all(|&sample| expected.contains_key(sample)), "something impossible was drawn");
    let (mut statistic, mut n_cells, mut rare) = (0.0, 0.0, [0.0, 0.0]);
    let mut add = |count: f64, expected: f64| {
        statistic += (count - expected).powi(2) / expected;
        n_cells += 1.0;
    };
    for (assignment, probability) in expected {
        let (count, expected) =
            (counts.get(assignment).copied().unwrap_or(0.0), probability * samples.len() as f64);
        if expected < 5.0 {
            rare = [rare[0] + count, rare[1] + expected];
        } else {
            add(count, expected);
        }
    }
    if rare[1] > 0.0 {
        // At least one rare sample is expected, so that a single one is no surprise.
        add(rare[0], rare[1].max(1.0));
    }
    let freedom: f64 = f64::max(n_cells - 1.0, 1.0);
    (statistic - freedom) / (2.0 * freedom).sqrt()
}

/// Maximum surprise, which some hundred fixed seeds do not exceed. χ² has a longer tail than a normal distribution.
const SURPRISED: f64 = 8.0;

fn draws(n_samples: usize, seed: u64) -> Sampling {
    Sampling { n_samples, seed, first_row: 0 }
}

fn random(n_labels: usize, n_rules: usize, max_categories: usize, seed: u64) -> (Model, BeliefMatrix) {
    let settings = RandomModel { n_labels, n_rules, max_categories, max_assignments: 600, max_typical: 0 };
    let (model, mut rng) = random_model(&settings, seed);
    let mut rows = BeliefMatrix::new(&model);
    for _ in 0..2 {
        rows.push(&random_row(&model, &mut rng), Normalize::Always).unwrap();
    }
    (model, rows)
}

#[test]
fn samples_have_the_distribution_of_enumeration() {
    let mut n_checked = 0;
    for seed in 0..150 {
        let (model, rows) = random(1 + seed as usize % 8, seed as usize % 9, 2 + seed as usize % 4, seed);
        let engine = JunctionTree::compile(&model).unwrap();
        for (row, samples) in
            engine.sample_batch(&rows, &draws(20_000, seed)).unwrap().into_iter().enumerate()
        {
            let (samples, expected) = (samples.unwrap(), distribution(&model, &rows.row(row)));
            assert_eq!(samples.is_some(), !expected.is_empty());
            let Some(samples) = samples else { continue };
            let surprise = surprise(&samples, &expected);
            assert!(surprise < SURPRISED, "{surprise} for seed {seed}, row {row} of\n{model}");
            n_checked += 1;
        }
    }
    assert!(n_checked > 150, "{n_checked} rows are possible");
}

#[test]
fn wide_rules_that_are_taken_apart_are_sampled_too() {
    for seed in 0..12 {
        let (model, rows) = wide(seed);
        let expected = distribution(&model, &rows.row(0));
        let samples =
            JunctionTree::compile(&model).unwrap().sample(&rows.row(0), &draws(100_000, seed)).unwrap();
        let surprise = surprise(&samples, &expected);
        assert!(surprise < SURPRISED, "{surprise} for seed {seed} of\n{model}");
    }
}

/// Nine labels and noisy-or rules, clauses and counts over most of them.
fn wide(seed: u64) -> (Model, BeliefMatrix) {
    let (model, rows) = simulated(9, 2, 1, seed);
    let first = |label: usize| model.labels()[label].categories()[0].clone();
    let inhibitions = |step: usize| -> Vec<(String, String, f64)> {
        (0..9).map(|l| (format!("L{l}"), first(l), 0.2 + 0.07 * ((l * step) % 10) as f64)).collect()
    };
    let names = |skip: usize| (0..9).filter(|l| l % 4 != skip).map(first).collect::<Vec<_>>();
    let mut builder = model.edit();
    for (step, probability) in [(1, 1.0), (3, 0.2), (7, 0.9)] {
        let inhibitions = inhibitions(step);
        let borrowed = inhibitions.iter().map(|(label, category, q)| (label.as_str(), category.as_str(), *q));
        builder = builder.noisy_or(borrowed, probability);
    }
    let model = builder
        .rule(names(0).join(" | "), 0.7)
        .rule(format!("{} -> {}", names(1).join(" & "), first(1)), 1.0)
        .rule(format!("at_most 4 of {{{}}}", names(2).join(", ")), 0.8)
        .build()
        .unwrap();
    let mut matrix = BeliefMatrix::new(&model);
    let cells: Vec<_> = rows.row(0).iter().copied().map(Some).collect();
    matrix.push(&cells, Normalize::Always).unwrap();
    (model, matrix)
}

#[test]
fn the_test_detects_a_wrong_distribution() {
    let model = Model::parse("label a: x, y\nlabel b: x, y\nlabel c: x, y\nrule 0.6: a=x <-> b=x").unwrap();
    let row = model.row(&Evidence::new()).unwrap();
    let expected = distribution(&model, &row);
    let other = model.edit().retain_rules(|_| false).rule("a=x <-> b=x", 0.56).build().unwrap();
    let samples = JunctionTree::compile(&other).unwrap().sample(&row, &draws(20_000, 1)).unwrap();
    assert!(surprise(&samples, &expected) > 2.0 * SURPRISED);
}

#[test]
fn rows_whose_numbers_underflow_are_sampled_in_logarithms() {
    let model = Model::parse(
        "label a: x, y, z\nlabel b: x, y, z\nlabel c: x, y\nlabel free: u, v\nrule 1: !a=z & !b=z\nrule 0.8: a=x -> c=y",
    )
    .unwrap();
    let evidence = Evidence::new()
        .belief("a", [1e-200, 3e-200, 1.0])
        .belief("b", [2e-200, 1e-200, 1.0])
        .belief("c", [0.5, 0.5])
        .belief("free", [0.9, 0.1]);
    let row = model.row(&evidence).unwrap();
    let samples = JunctionTree::compile(&model).unwrap().sample(&row, &draws(50_000, 3)).unwrap();
    assert!(surprise(&samples, &distribution(&model, &row)) < SURPRISED);
}

#[test]
fn models_without_labels_are_sampled() {
    let empty = Model::builder().build().unwrap();
    let nothing = Evidence::new();
    let engine = JunctionTree::compile(&empty).unwrap();
    assert_eq!(engine.sample(&nothing, &draws(2, 1)).unwrap(), [[], []]);
    assert_eq!(engine.sample(&nothing, &draws(0, 1)), Ok(vec![]));
    let gibbs = Gibbs::compile(&empty, GibbsSettings::default());
    assert_eq!(gibbs.sample(&nothing, &draws(2, 1)).unwrap(), [[], []]);
    let never = Model::builder().rule("false", 1.0).build().unwrap();
    let impossible = Err(Error::Impossible { rules: vec!["false".to_owned()] });
    assert_eq!(JunctionTree::compile(&never).unwrap().sample(&nothing, &draws(2, 1)), impossible);
    let gibbs = Gibbs::compile(&never, GibbsSettings::default());
    assert_eq!(gibbs.sample(&nothing, &draws(2, 1)), impossible);
}

/// The samples of a row as a batch has them: `None` if the row is impossible.
fn as_in_batch(samples: Result<Samples>) -> Result<Option<Samples>> {
    match samples {
        Err(Error::Impossible { .. }) => Ok(None),
        samples => samples.map(Some),
    }
}

fn many(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, max_shrink_iters: 2000, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(many(1000))]

    #[test]
    fn every_sample_is_possible((model, rows) in small_model(), seed: u64) {
        let oracle = Enumeration::compile(&model).unwrap().infer_batch(&rows).unwrap();
        let exact = JunctionTree::compile(&model).unwrap().sample_batch(&rows, &draws(10, seed)).unwrap();
        let settings = GibbsSettings { burn_in: 3, thin: 1, ..GibbsSettings::default() };
        let gibbs = Gibbs::compile(&model, settings).sample_batch(&rows, &draws(10, seed)).unwrap();
        for (row, (exact, gibbs)) in exact.into_iter().zip(gibbs).enumerate() {
            let (exact, gibbs) = (exact?, gibbs?);
            prop_assert_eq!(exact.is_some(), oracle.is_possible(row));
            prop_assert_eq!(gibbs.is_some(), oracle.is_possible(row), "{}", model);
            for sample in exact.iter().chain(&gibbs).flatten() {
                let row = rows.row(row);
                let log_weight = model.log_weight(&row, sample);
                prop_assert!(log_weight > f64::NEG_INFINITY, "{:?} in row {:?} of\n{}", sample, &row[..], model);
            }
        }
    }
}

proptest! {
    #![proptest_config(many(200))]

    #[test]
    fn samples_do_not_depend_on_parts_or_threads((model, rows) in small_model(), seed: u64, n in 0usize..12) {
        let mut repeated = BeliefMatrix::new(&model);
        for row in [0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1] {
            let cells: Vec<Option<f64>> = rows.row(row).iter().copied().map(Some).collect();
            repeated.push(&cells, Normalize::Never).unwrap();
        }
        let threads = |n| rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
        let settings = GibbsSettings { burn_in: 1, thin: 1, ..GibbsSettings::default() };
        let (exact, gibbs) = (JunctionTree::compile(&model).unwrap(), Gibbs::compile(&model, settings));
        let whole = threads(2).install(|| exact.sample_batch(&repeated, &draws(n, seed)))?;
        prop_assert_eq!(&whole, &threads(1).install(|| exact.sample_batch(&repeated, &draws(n, seed)))?);
        let whole_gibbs = threads(2).install(|| gibbs.sample_batch(&repeated, &draws(n, seed)))?;
        for chunk in [1, 3, 5] {
            for first in (0..repeated.n_rows()).step_by(chunk) {
                let part = first..repeated.n_rows().min(first + chunk);
                let sampling = Sampling { first_row: first as u64, ..draws(n, seed) };
                prop_assert_eq!(&whole[part.clone()], exact.sample_batch(&repeated.slice(part.clone()), &sampling)?);
                prop_assert_eq!(&whole[first], &as_in_batch(exact.sample(&repeated.row(first), &sampling)));
                prop_assert_eq!(&whole_gibbs[part.clone()], gibbs.sample_batch(&repeated.slice(part), &sampling)?);
            }
        }
        // The first samples do not depend on the number of samples.
        let more = exact.sample(&repeated.row(0), &draws(n + 20, seed)).map(|samples| samples[..n].to_vec());
        prop_assert_eq!(&whole[0], &as_in_batch(more));
    }
}

/// The total variation distance between the samples and the expected distribution.
fn distance(samples: &Samples, expected: &HashMap<Assignment, f64>) -> f64 {
    let counts = counts(samples);
    let share =
        |assignment: &Assignment| counts.get(assignment).copied().unwrap_or(0.0) / samples.len() as f64;
    expected.iter().map(|(assignment, probability)| (share(assignment) - probability).max(0.0)).sum()
}

/// Maximum distance of Gibbs samples. Independent samples would have a distance of about √(cells / 2π n), which is
/// 0.04 for 200 cells and 20,000 samples. Samples of a chain are dependent, so their effective number is smaller.
const GIBBS: f64 = 0.08;

fn gibbs_distance(model: &Model, row: &Row<'_>, seed: u64) -> f64 {
    let samples = Gibbs::compile(model, GibbsSettings::default()).sample(row, &draws(20_000, seed)).unwrap();
    distance(&samples, &distribution(model, row))
}

#[test]
fn gibbs_samples_have_the_distribution_of_enumeration() {
    for seed in 0..12 {
        let settings =
            RandomModel { n_labels: 4, n_rules: 5, max_categories: 4, max_assignments: 200, max_typical: 0 };
        let (model, mut rng) = random_model(&settings, seed);
        let mut soft = model.edit().retain_rules(|_| false);
        for rule in model.rules() {
            soft = soft.add_rule(rule.clone().with_probability(rule.probability().clamp(0.05, 0.95)));
        }
        let soft = soft.build().unwrap();
        let mut rows = BeliefMatrix::new(&soft);
        rows.push(&random_row(&soft, &mut rng), Normalize::Always).unwrap();
        let distance = gibbs_distance(&soft, &rows.row(0), seed);
        assert!(distance < GIBBS, "off by {distance} for seed {seed} of\n{soft}");
    }
}

#[test]
fn gibbs_crosses_hard_rules_between_small_groups_of_labels() {
    let labels = "label a prior 0.3\nlabel b prior 0.6\nlabel c prior 0.8\nlabel d: x, y, z prior 0.2, 0.3, 0.5\nlabel e\n";
    for rules in [
        "rule 1: a <-> b",
        "rule 1: a <-> b\nrule 1: b <-> c\nrule 1: c <-> d=x\nrule 0.7: d=x -> e",
        "rule 1: exactly 1 of {a, b, c, d=x, e}",
        "rule 1: a xor b xor c xor e\nrule 0: a & c",
        "rule 1: at_least 3 of {a, b, c, d=z, e}\nrule 0.1: b",
        "noisy_or 1: a=yes 0.5, b=no 0.2, d=y 0.9\nrule 1: a -> b & c",
    ] {
        let model = Model::parse(&format!("{labels}{rules}")).unwrap();
        let row = model.row(&Evidence::new()).unwrap();
        let distance = gibbs_distance(&model, &row, 1);
        assert!(distance < GIBBS, "off by {distance} with\n{rules}");
    }
}

#[test]
fn gibbs_samples_of_the_simulation_study_have_the_right_marginals() {
    let (model, rows) = simulated(30, 30, 3, 5);
    let exact = JunctionTree::compile(&model).unwrap().infer_batch(&rows).unwrap();
    let gibbs = Gibbs::compile(&model, GibbsSettings::default());
    for (row, samples) in gibbs.sample_batch(&rows, &draws(4000, 1)).unwrap().into_iter().enumerate() {
        let mut shares = vec![0.0; model.n_categories()];
        for sample in samples.unwrap().unwrap() {
            for (label, category) in model.label_ids().zip(sample.categories()) {
                shares[model.block(label).start + category.index()] += 1.0 / 4000.0;
            }
        }
        let worst =
            shares.iter().zip(exact.marginals(row).unwrap()).map(|(a, e)| (a - e).abs()).fold(0.0, f64::max);
        // The standard error would be 0.008 for independent samples. This is the worst of a hundred marginals.
        assert!(worst < 0.05, "off by {worst} in row {row}");
    }
}

/// Clauses over three labels each, all of them true for a hidden assignment.
fn planted(n_labels: usize, n_clauses: usize, seed: u64) -> Model {
    use rand::seq::SliceRandom;
    use rand::{RngExt, SeedableRng};
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
    let secret: Vec<bool> = (0..n_labels).map(|_| rng.random()).collect();
    let mut builder =
        (0..n_labels).fold(Model::builder(), |builder, l| builder.binary_label(format!("l{l}")));
    let mut labels: Vec<usize> = (0..n_labels).collect();
    for _ in 0..n_clauses {
        labels.shuffle(&mut rng);
        let mut signs: Vec<bool> = (0..3).map(|_| rng.random()).collect();
        if (0..3).all(|i| signs[i] != secret[labels[i]]) {
            signs[0] = !signs[0];
        }
        let literal = |i: usize| format!("{}l{}", if signs[i] { "" } else { "!" }, labels[i]);
        builder = builder.rule(format!("{} | {} | {}", literal(0), literal(1), literal(2)), 1.0);
    }
    builder.build().unwrap()
}

#[test]
fn gibbs_finds_an_initial_assignment_under_many_hard_rules() {
    for seed in 0..20 {
        let model = planted(50, 210, seed);
        let row = model.row(&Evidence::new()).unwrap();
        let settings = GibbsSettings { burn_in: 5, ..GibbsSettings::default() };
        let samples = Gibbs::compile(&model, settings).sample(&row, &draws(8, seed)).unwrap();
        assert!(samples.iter().all(|sample| model.log_weight(&row, sample) > f64::NEG_INFINITY));
    }
}

#[test]
fn an_undecided_initial_assignment_is_an_error() {
    let model = Model::parse(&pigeons(11)).unwrap();
    let row = model.row(&Evidence::new()).unwrap();
    let gibbs = Gibbs::compile(&model, GibbsSettings::default());
    assert!(matches!(gibbs.sample(&row, &draws(1, 1)), Err(Error::NoStart { .. })));
}

#[test]
fn impossible_rows_name_the_rules() {
    let model =
        Model::parse("label a\nlabel b\nlabel c\nrule 1: a -> b\nrule 1: b -> c\nrule 0.9: c").unwrap();
    let row = model.row(&Evidence::new().observe("a", "yes").observe("c", "no")).unwrap();
    let expected = Error::Impossible { rules: vec!["a -> b".to_owned(), "b -> c".to_owned()] };
    let gibbs = Gibbs::compile(&model, GibbsSettings::default());
    assert_eq!(gibbs.sample(&row, &draws(3, 1)), Err(expected.clone()));
    let exact = Engines::new(&model).sampler().unwrap();
    assert_eq!(exact.sample(&row, &draws(3, 1)), Err(expected));
}

#[test]
fn the_sampler_uses_the_tree_where_it_fits() {
    let (model, rows) = simulated(12, 12, 3, 2);
    let exact = Engines::new(&model).sampler().unwrap();
    let gibbs = Engines::new(&model).with_limits(Limits { memory: 1 }).sampler().unwrap();
    assert_eq!((exact.engine(), gibbs.engine()), (Engine::JunctionTree, Engine::Gibbs));
    assert_eq!(gibbs.model(), &model);
    for sampler in [exact, gibbs] {
        for (row, samples) in sampler.sample_batch(&rows, &draws(5, 1)).unwrap().into_iter().enumerate() {
            let samples = samples.unwrap().unwrap();
            assert_eq!(samples.len(), 5);
            let sampling = Sampling { first_row: row as u64, ..draws(5, 1) };
            assert_eq!(sampler.sample(&rows.row(row), &sampling), Ok(samples));
        }
    }
}
