//! Loopy propagation: exact on trees, sound and reproducible elsewhere, the authors' numbers with the authors' settings.

use proptest::prelude::*;
use prsl::{
    BeliefMatrix, Decoded, Engine, Enumeration, Error, Evidence, JunctionTree, Loopy, LoopySettings, Model,
    Normalize, Posteriors, Schedule, Stopped,
};
use prsl_testkit::{EXACT, close, golden, simulated, small_model, small_tree};

fn many(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, max_shrink_iters: 2000, failure_persistence: None, ..ProptestConfig::default() }
}

/// Until nothing moves but the last bits.
fn to_the_end(schedule: Schedule, merge: bool) -> LoopySettings {
    LoopySettings { schedule, merge, tolerance: 1e-14, max_sweeps: 100, ..LoopySettings::default() }
}

/// Of categories within 1e-9 of the best the first is taken, label by label.
const TIES: f64 = 1e-8;

const SCHEDULES: [Schedule; 3] = [Schedule::Sequential, Schedule::Flooding, Schedule::Residual];

fn repeated(model: &Model, rows: &BeliefMatrix, order: &[usize]) -> BeliefMatrix {
    let mut repeated = BeliefMatrix::new(model);
    for &row in order {
        let cells: Vec<Option<f64>> = rows.row(row).iter().copied().map(Some).collect();
        repeated.push(&cells, Normalize::Never).unwrap();
    }
    repeated
}

fn bits(marginals: Option<&[f64]>) -> Option<Vec<u64>> {
    marginals.map(|marginals| marginals.iter().map(|p| p.to_bits()).collect())
}

fn mean_error(posteriors: &Posteriors, expected: &[Vec<f64>]) -> f64 {
    let errors: Vec<f64> = expected
        .iter()
        .enumerate()
        .flat_map(|(row, expected)| {
            let actual = posteriors.marginals(row).expect("all golden rows are possible");
            actual.iter().zip(expected).map(|(a, e)| (a - e).abs())
        })
        .collect();
    errors.iter().sum::<f64>() / errors.len() as f64
}

proptest! {
    #![proptest_config(many(1500))]

    #[test]
    fn trees_are_exact((model, rows) in small_tree()) {
        let expected = Enumeration::compile(&model).unwrap().infer_batch(&rows);
        for (schedule, merge) in SCHEDULES.into_iter().flat_map(|schedule| [(schedule, true), (schedule, false)]) {
            let actual = Loopy::compile_with(&model, to_the_end(schedule, merge)).unwrap().infer_batch(&rows);
            for row in 0..rows.n_rows() {
                prop_assert_eq!(actual.is_possible(row), expected.is_possible(row), "{:?} in row {:?} of\n{}", schedule, rows.row(row), model);
                prop_assert!(
                    close(actual.log_evidence(row), expected.log_evidence(row), EXACT),
                    "{:?}: log Z {} instead of {} in row {:?} of\n{}",
                    schedule, actual.log_evidence(row), expected.log_evidence(row), rows.row(row), model
                );
                let both = actual.marginals(row).into_iter().flatten().zip(expected.marginals(row).into_iter().flatten());
                for (a, e) in both {
                    prop_assert!(close(*a, *e, EXACT), "{:?}: {} instead of {} in row {:?} of\n{}", schedule, a, e, rows.row(row), model);
                }
            }
        }
    }

    #[test]
    fn agreement_is_exact_on_trees((model, rows) in small_tree()) {
        let oracle = Enumeration::compile(&model).unwrap();
        for (schedule, merge) in SCHEDULES.into_iter().flat_map(|schedule| [(schedule, true), (schedule, false)]) {
            let engine = Loopy::compile_with(&model, to_the_end(schedule, merge)).unwrap();
            match (engine.infer_row(rows.row(0)), oracle.infer_row(rows.row(0))) {
                (Ok(actual), Ok(expected)) => {
                    for rule in model.rule_ids() {
                        let (a, e) = (actual.agreement(rule), expected.agreement(rule));
                        prop_assert!(close(a, e, EXACT), "{:?}: {} instead of {} for rule {} of\n{}", schedule, a, e, rule.index(), model);
                    }
                }
                (Err(Error::Impossible { .. }), Err(Error::Impossible { .. })) => {}
                (actual, expected) => prop_assert!(false, "{:?} instead of {:?}", actual, expected),
            }
        }
    }

    #[test]
    fn explanations_are_exact_on_trees((model, rows) in small_tree()) {
        let oracle = Enumeration::compile(&model).unwrap();
        for schedule in SCHEDULES {
            let engine = Loopy::compile_with(&model, to_the_end(schedule, true)).unwrap();
            for (row, decoded) in engine.best_batch(&rows).into_iter().enumerate() {
                let expected = oracle.top(rows.row(row), 1).pop();
                prop_assert_eq!(decoded.is_some(), expected.is_some());
                if let (Some(Decoded { best, .. }), Some(expected)) = (decoded, expected) {
                    prop_assert!(
                        close(best.log_weight, expected.log_weight, TIES),
                        "{:?}: {:?} instead of {:?} in row {:?} of\n{}", schedule, best, expected, rows.row(row), model
                    );
                }
            }
        }
    }

    #[test]
    fn answers_are_distributions_and_zeros_are_proofs((model, rows) in small_model()) {
        let exact = Enumeration::compile(&model).unwrap().infer_batch(&rows);
        for schedule in SCHEDULES {
            let settings = LoopySettings { schedule, max_sweeps: 30, ..LoopySettings::default() };
            let posteriors = Loopy::compile_with(&model, settings).unwrap().infer_batch(&rows);
            for row in 0..rows.n_rows() {
                prop_assert!(!posteriors.log_evidence(row).is_nan(), "{:?} in row {:?} of\n{}", schedule, rows.row(row), model);
                let Some(marginals) = posteriors.marginals(row) else {
                    prop_assert!(!exact.is_possible(row), "row {:?} is possible in\n{}", rows.row(row), model);
                    continue;
                };
                prop_assert!(posteriors.log_evidence(row).is_finite());
                for label in model.label_ids() {
                    let block = &marginals[model.block(label)];
                    prop_assert!(close(block.iter().sum(), 1.0, EXACT), "{:?} in\n{}", block, model);
                }
                for (approximate, exact) in marginals.iter().zip(exact.marginals(row).into_iter().flatten()) {
                    prop_assert!(*approximate > 0.0 || *exact == 0.0, "{} instead of {} in\n{}", approximate, exact, model);
                }
            }
        }
    }

    #[test]
    fn the_same_bits_whatever_the_neighbors_and_threads((model, rows) in small_model()) {
        let order = [0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 1, 1, 2, 0, 0, 2];
        let rows = repeated(&model, &rows, &order);
        let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let two = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        for schedule in SCHEDULES {
            let settings = LoopySettings { schedule, max_sweeps: 7, ..LoopySettings::default() };
            let engine = Loopy::compile_with(&model, settings).unwrap();
            let (sums, maxima) = (two.install(|| engine.infer_batch(&rows)), two.install(|| engine.best_batch(&rows)));
            prop_assert_eq!(&one.install(|| engine.best_batch(&rows)), &maxima);
            let again = one.install(|| engine.infer_batch(&rows));
            for row in 0..rows.n_rows() {
                let alone = engine.infer_batch(&rows.slice(row..row + 1));
                for other in [(&again, row), (&alone, 0)] {
                    prop_assert_eq!(sums.log_evidence(row).to_bits(), other.0.log_evidence(other.1).to_bits(), "{:?} {}", schedule, model);
                    prop_assert_eq!(bits(sums.marginals(row)), bits(other.0.marginals(other.1)), "{:?} {}", schedule, model);
                    prop_assert_eq!(sums.stopped(row), other.0.stopped(other.1));
                }
                let best = engine.best_row(rows.row(row));
                prop_assert_eq!(maxima[row].as_ref().map(|decoded| &decoded.best), best.as_ref());
                if let Ok(posterior) = engine.infer_row(rows.row(row)) {
                    prop_assert_eq!(bits(sums.marginals(row)), bits(Some(posterior.marginals())));
                    prop_assert_eq!(sums.stopped(row), posterior.stopped());
                }
            }
        }
    }
}

fn check_golden(prefix: &str) {
    for golden in golden(prefix) {
        let engine = Loopy::compile_with(&golden.model, LoopySettings::authors()).unwrap();
        let posteriors = engine.infer_batch(&golden.rows);
        for (row, expected) in golden.approx_marginals.iter().enumerate() {
            let actual = posteriors.marginals(row).expect("all golden rows are possible");
            let worst = actual.iter().zip(expected).map(|(a, e)| (a - e).abs()).fold(0.0, f64::max);
            assert!(worst < 1e-8, "{} row {}: off by {worst:e}", golden.name, row + 1);
        }
        let best = engine.best_batch(&golden.rows);
        for (row, expected) in golden.approx_mpe.iter().flatten().enumerate() {
            if !golden.approx_mpe_unstable_rows.contains(&row) {
                let decoded = best[row].as_ref().expect("all golden rows are possible");
                assert_eq!(&decoded.best.assignment, expected, "{} row {}", golden.name, row + 1);
            }
        }
    }
}

#[test]
fn the_authors_settings_give_the_authors_numbers() {
    for prefix in ["small", "medium", "almostLarge"] {
        check_golden(prefix);
    }
}

#[test]
fn the_default_settings_are_nearer_to_the_truth_than_the_authors() {
    for prefix in ["small", "medium", "almostLarge"] {
        let (mut ours, mut theirs) = (0.0, 0.0);
        for golden in golden(prefix) {
            let posteriors = Loopy::compile(&golden.model).unwrap().infer_batch(&golden.rows);
            ours += mean_error(&posteriors, &golden.exact_marginals);
            let authors = Loopy::compile_with(&golden.model, LoopySettings::authors()).unwrap();
            theirs += mean_error(&authors.infer_batch(&golden.rows), &golden.exact_marginals);
        }
        assert!(ours <= theirs, "{prefix}: {ours} instead of {theirs}");
    }
}
