//! The circuit engine against enumeration.

use proptest::prelude::*;
use prsl::infer::{Circuit, Enumeration, Sampling};
use prsl::{BeliefMatrix, Engine, Engines, Evidence, JunctionTree, Model};
use prsl_testkit::{close, shared, small_model};

/// Differences of a few units in the last place, in sums of some thousand terms.
const EXACT: f64 = 1e-12;

fn same(actual: &[f64], expected: &[f64]) -> bool {
    actual.len() == expected.len() && actual.iter().zip(expected).all(|(a, e)| close(*a, *e, EXACT))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn circuits_agree_with_enumeration((model, rows) in small_model()) {
        let circuit = Circuit::compile(&model).unwrap();
        let oracle = Enumeration::compile(&model).unwrap();
        let (actual, expected) = (circuit.infer_batch(&rows).unwrap(), oracle.infer_batch(&rows).unwrap());
        for row in 0..rows.n_rows() {
            prop_assert_eq!(actual.is_possible(row), expected.is_possible(row));
            let instance = rows.row(row);
            if !expected.is_possible(row) {
                let (actual, expected) = (circuit.infer(&instance).unwrap_err(), oracle.infer(&instance).unwrap_err());
                prop_assert_eq!(actual.to_string(), expected.to_string());
                prop_assert!(circuit.best(&instance).is_err() && circuit.agreement(&instance).is_err());
                continue;
            }
            prop_assert!(close(actual.log_evidence(row), expected.log_evidence(row), EXACT));
            prop_assert!(same(actual.marginals(row).unwrap(), expected.marginals(row).unwrap()));
            // A row alone has the same bits as in a batch.
            let alone = circuit.infer(&instance).unwrap();
            prop_assert_eq!(alone.marginals(), actual.marginals(row).unwrap());
            prop_assert_eq!(alone.log_evidence(), actual.log_evidence(row));
            let (agreement, by_definition) = (circuit.agreement(&instance).unwrap(), oracle.agreement(&instance).unwrap());
            prop_assert!(same(&agreement, &by_definition), "{:?} instead of {:?}", agreement, by_definition);
            for (rule, without) in model.rule_ids().zip(circuit.without_each_rule(&instance).unwrap()) {
                let expected = oracle.without(&instance, rule).unwrap().unwrap();
                prop_assert!(same(&without.unwrap(), &expected));
            }
        }
    }

    #[test]
    fn the_best_assignments_are_those_of_enumeration((model, rows) in small_model(), n in 1usize..8) {
        let circuit = Circuit::compile(&model).unwrap();
        let oracle = Enumeration::compile(&model).unwrap();
        let lists = circuit.top_batch(&rows, n).unwrap();
        for (row, list) in lists.iter().enumerate() {
            let expected = oracle.top(&rows.row(row), n).unwrap();
            prop_assert_eq!(list.len(), expected.len());
            for (actual, expected) in list.iter().zip(expected.iter()) {
                // Ties make assignments differ, but not their weights.
                prop_assert!(close(actual.log_weight, expected.log_weight, 1e-9));
                prop_assert!(actual.is_optimal());
            }
        }
    }

    #[test]
    fn gradients_agree_with_central_differences((model, rows) in small_model()) {
        let circuit = Circuit::compile(&model).unwrap();
        let probabilities: Vec<f64> = model.rules().iter().map(|rule| rule.probability()).collect();
        for row in 0..rows.n_rows() {
            let instance = rows.row(row);
            let Ok(gradient) = circuit.gradient(&instance, &probabilities) else {
                prop_assert!(circuit.infer(&instance).is_err());
                continue;
            };
            for (rule, derivative) in gradient.probabilities.iter().enumerate() {
                let p = probabilities[rule];
                let Some(derivative) = derivative else {
                    prop_assert!(p == 0.0 || p == 1.0);
                    continue;
                };
                let step = 1e-5 * p.min(1.0 - p);
                let moved = |by: f64| {
                    let mut probabilities = probabilities.clone();
                    probabilities[rule] += by;
                    circuit.gradient(&instance, &probabilities).unwrap().log_evidence
                };
                let difference = (moved(step) - moved(-step)) / (2.0 * step);
                let scale = 1.0 / p.min(1.0 - p);
                prop_assert!((derivative - difference).abs() < 1e-5 * scale, "{} {}", derivative, difference);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn bits_do_not_depend_on_threads_batches_and_runs((model, rows) in small_model()) {
        // More rows than a thread takes at once.
        let places: Vec<usize> = (0..300).map(|place| place % rows.n_rows()).collect();
        let many = rows.select(&places);
        let infer = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let circuit = Circuit::compile(&model).unwrap();
            pool.install(|| circuit.infer_batch(&many)).unwrap()
        };
        let (one, three) = (infer(1), infer(3));
        prop_assert_eq!(&one, &three);
        let few = Circuit::compile(&model).unwrap().infer_batch(&rows).unwrap();
        for (row, &place) in places.iter().enumerate() {
            prop_assert_eq!(one.marginals(row), few.marginals(place));
        }
    }
}

/// χ² of the samples' frequencies, with few expected in a cell merged into one.
#[test]
fn samples_have_the_distribution_of_enumeration() {
    let n_samples = 4000;
    for seed in 0..40 {
        let (model, mut rng) = prsl_testkit::random_model(&prsl_testkit::RandomModel::default(), seed);
        let mut rows = BeliefMatrix::new(&model);
        rows.push(&prsl_testkit::random_row(&model, &mut rng), prsl::Normalize::Never).unwrap();
        let Ok(samples) = Circuit::compile(&model)
            .unwrap()
            .sample(&rows.row(0), &Sampling { n_samples, seed, ..Sampling::default() })
        else {
            continue;
        };
        let oracle = Enumeration::compile(&model).unwrap();
        let log_evidence = oracle.infer(&rows.row(0)).unwrap().log_evidence();
        let all = oracle.top(&rows.row(0), usize::MAX).unwrap();
        let (mut chi_square, mut n_cells, mut rest) = (0.0, 0, [0.0, 0.0]);
        for assignment in all.iter() {
            let expected = n_samples as f64 * (assignment.log_weight - log_evidence).exp();
            let observed = samples.iter().filter(|sample| **sample == assignment.assignment).count() as f64;
            if expected < 5.0 {
                rest = [rest[0] + expected, rest[1] + observed];
                continue;
            }
            chi_square += (observed - expected).powi(2) / expected;
            n_cells += 1;
        }
        if rest[0] > 0.0 {
            chi_square += (rest[1] - rest[0]).powi(2) / rest[0].max(1.0);
            n_cells += 1;
        }
        // Six standard deviations above the mean of a χ² distribution.
        let degrees = f64::from(n_cells);
        assert!(
            chi_square < degrees + 6.0 * (2.0 * degrees).sqrt() + 6.0,
            "seed {seed}: {chi_square} for {degrees}"
        );
    }
}

#[test]
fn rule_bases_that_people_wrote_have_their_exact_answers() {
    for name in ["road-r", "road-soft24"] {
        let Some(folder) = shared("rulebases") else { return };
        let model =
            Model::parse(&std::fs::read_to_string(folder.join(format!("{name}.prsl"))).unwrap()).unwrap();
        let read = |file: String| -> Vec<Vec<f64>> {
            let text = std::fs::read_to_string(folder.join(file)).unwrap();
            let numbers = |line: &str| line.split(',').map(|cell| cell.trim().parse().unwrap()).collect();
            text.lines().skip(1).map(numbers).collect()
        };
        let mut rows = BeliefMatrix::new(&model);
        for row in read(format!("{name}-beliefs.csv")) {
            let cells: Vec<Option<f64>> = row.iter().flat_map(|&p| [Some(p), None]).collect();
            rows.push(&cells, prsl::Normalize::Never).unwrap();
        }
        let engine = Engines::new(&model).marginals().unwrap();
        assert_eq!(engine.engine(), Engine::Circuit, "{}", engine.reason());
        let posteriors = engine.infer_batch(&rows).unwrap();
        for (row, expected) in read(format!("{name}-marginals.csv")).iter().enumerate() {
            let (log_evidence, marginals) = expected.split_last().unwrap();
            assert!((posteriors.log_evidence(row) - log_evidence).abs() < 1e-9);
            let actual = posteriors.marginals(row).unwrap().iter().step_by(2);
            for (label, (actual, expected)) in actual.zip(marginals).enumerate() {
                assert!(
                    (actual - expected).abs() < 1e-9,
                    "{name}, row {row}, label {label}: {actual} {expected}"
                );
            }
        }
    }
}

#[test]
fn many_categories_and_wide_counts_are_compiled() {
    // 130 categories take three words of a bit set.
    let categories = |label: char| (0..130).map(|c| format!("{label}{c}")).collect::<Vec<_>>().join(", ");
    let pairs: String = (0..130).map(|c| format!("rule 1: a{c} <-> b{c}\n")).collect();
    let model = Model::parse(&format!("label a: {}\nlabel b: {}\n{pairs}", categories('a'), categories('b')))
        .unwrap();
    let evidence = Evidence::new().observe("a", "a77");
    let posterior = Circuit::compile(&model).unwrap().infer(&evidence).unwrap();
    assert_eq!(posterior.marginals()[130 + 77], 1.0);

    let labels: String = (0..60).map(|label| format!("label l{label}\n")).collect();
    let names: Vec<String> = (0..60).map(|label| format!("l{label}")).collect();
    let text = format!("{labels}rule 1: exactly 7 of {{{}}}\nrule 0.8: l0 <-> l59\n", names.join(", "));
    let model = Model::parse(&text).unwrap();
    let evidence = Evidence::new().observe("l3", "yes");
    let actual = Circuit::compile(&model).unwrap().infer(&evidence).unwrap();
    let expected = JunctionTree::compile(&model).unwrap().infer(&evidence).unwrap();
    assert!(close(actual.log_evidence(), expected.log_evidence(), 1e-9));
    assert!(actual.marginals().iter().zip(expected.marginals()).all(|(a, e)| close(*a, *e, 1e-9)));
}

/// Long chains used up the memory, or took minutes: the budget was checked only when a component was finished.
#[test]
fn long_chains_are_refused_within_the_budget() {
    let soft = prsl_testkit::limits::chain(16_000);
    let hard = soft.replace("rule 0.9:", "rule 1:");
    assert_ne!(soft, hard);
    for text in [soft, hard] {
        let refused = Circuit::compile(&Model::parse(&text).unwrap());
        assert!(matches!(refused, Err(prsl::Error::TooCostly { .. })), "{refused:?}");
    }
}

/// The weights of two rules underflowed to 0 when they were multiplied, and the row was called impossible.
#[test]
fn constants_that_underflow_when_multiplied_are_possible() {
    let model = Model::parse("label a\nrule 1e-218: a | !a\nrule 1e-218: true").unwrap();
    let circuit = Circuit::compile(&model).unwrap();
    let evidence = Evidence::new().belief("a", [0.3, 0.7]);
    let best = circuit.best(&evidence).unwrap();
    assert_eq!(best.assignment.indices(), [1]);
    let log_evidence = circuit.infer(&evidence).unwrap().log_evidence();
    assert!(close(log_evidence, 2.0 * 1e-218_f64.ln(), 1e-12), "{log_evidence}");
}
