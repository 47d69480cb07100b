//! Every chosen engine agrees with enumeration and gives the reason for the choice.

use proptest::prelude::*;
use prsl::infer::{
    AssignmentEngine, EngineChoice, EngineSettings, Enumeration, LoopySettings, MarginalEngine,
    MaxProductTree, SearchLimits,
};
use prsl::{BeliefMatrix, BranchAndBound, Engine, Engines, Limits, Model, Normalize, Status};
use prsl_testkit::{EXACT, close, simulated, small_model, small_tree};

/// A memory limit that no plan fits.
const TINY: Limits = Limits { memory: 1 };
/// No work beyond the first solutions.
const NOTHING: SearchLimits = SearchLimits { work: 0, time: None };

fn many(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, max_shrink_iters: 2000, failure_persistence: None, ..ProptestConfig::default() }
}

fn has_rules_between_labels(model: &Model) -> bool {
    model.rules().iter().any(|rule| rule.probability() != 0.5)
}

proptest! {
    #![proptest_config(many(300))]

    #[test]
    fn marginals_are_those_of_enumeration((model, rows) in small_model()) {
        let engine = Engines::new(&model).marginals()?;
        let (found, expected) = (engine.infer_batch(&rows).unwrap(), Enumeration::compile(&model)?.infer_batch(&rows).unwrap());
        prop_assert_eq!((engine.engine(), found.engine()), (Engine::JunctionTree, Engine::JunctionTree));
        prop_assert!(engine.reason().starts_with("junction tree: "), "{}", engine.reason());
        for row in 0..rows.n_rows() {
            prop_assert_eq!(found.is_possible(row), expected.is_possible(row));
            prop_assert!(close(found.log_evidence(row), expected.log_evidence(row), EXACT));
            for (a, b) in found.marginals(row).into_iter().flatten().zip(expected.marginals(row).into_iter().flatten()) {
                prop_assert!(close(*a, *b, EXACT));
            }
        }
    }

    #[test]
    fn explanations_are_those_of_enumeration_by_either_engine((model, rows) in small_model()) {
        let oracle = Enumeration::compile(&model)?;
        for limits in [Limits::default(), TINY] {
            let engine = Engines::new(&model).with_limits(limits).assignments()?;
            let best = engine.best_batch(&rows).unwrap();
            for (row, best) in best.into_iter().enumerate() {
                let (found, expected) = (engine.top(&rows.row(row), 3).unwrap(), oracle.top(&rows.row(row), 3).unwrap());
                prop_assert_eq!(found.len(), expected.len());
                for (found, expected) in found.iter().zip(&expected) {
                    prop_assert!(close(found.log_weight, expected.log_weight, 10.0 * EXACT));
                    prop_assert!(found.is_optimal());
                }
                let weight = best.as_ref().map(|best| best.log_weight);
                match (weight, expected.first()) {
                    (Some(a), Some(b)) => prop_assert!(close(a, b.log_weight, 10.0 * EXACT)),
                    (a, b) => prop_assert_eq!(a.is_some(), b.is_some()),
                }
            }
        }
    }

    #[test]
    fn an_explanation_that_is_not_proven_is_possible((model, rows) in small_model()) {
        let oracle = Enumeration::compile(&model)?;
        let settings = EngineSettings { limits: TINY, search: NOTHING, ..EngineSettings::default() };
        for choice in [EngineChoice::Auto, EngineChoice::Loopy] {
            let engine = Engines::new(&model).with_choice(choice).with_settings(settings).assignments()?;
            for (row, found) in engine.top_batch(&rows, 1).unwrap().into_iter().enumerate() {
                let is_possible = !oracle.top(&rows.row(row), 1).unwrap().is_empty();
                prop_assert!(found.iter().all(|best| best.log_weight > f64::NEG_INFINITY));
                prop_assert!(is_possible || found.is_empty());
                prop_assert!(!is_possible || found.status(0) != Status::Impossible);
            }
        }
    }

    #[test]
    fn the_fifty_best_are_those_of_enumeration((model, rows) in small_model()) {
        let oracle = Enumeration::compile(&model)?;
        let (tree, search) = (MaxProductTree::compile(&model)?, BranchAndBound::compile(&model)?);
        for row in (0..rows.n_rows()).map(|row| rows.row(row)) {
            let expected = oracle.top(&row, 50).unwrap();
            for found in [tree.top(&row, 50).unwrap(), search.top(&row, 50).unwrap()] {
                prop_assert_eq!(found.len(), expected.len());
                let distinct: std::collections::HashSet<_> = found.iter().map(|best| &best.assignment).collect();
                prop_assert_eq!(distinct.len(), found.len());
                for (found, expected) in found.iter().zip(&expected) {
                    prop_assert!(close(found.log_weight, expected.log_weight, 10.0 * EXACT));
                }
            }
        }
    }

    /// Without cycles, loopy propagation is exact too.
    #[test]
    fn without_memory_marginals_are_loopy((model, rows) in small_tree()) {
        let engine = Engines::new(&model).with_limits(TINY).marginals()?;
        prop_assume!(has_rules_between_labels(&model) && engine.engine() == Engine::Loopy);
        prop_assert!(engine.reason().starts_with("loopy: exact inference needs "), "{}", engine.reason());
        prop_assert!(engine.reason().ends_with("more than the limit of 1 bytes"), "{}", engine.reason());
        let (found, expected) = (engine.infer_batch(&rows).unwrap(), Enumeration::compile(&model)?.infer_batch(&rows).unwrap());
        for row in (0..rows.n_rows()).filter(|&row| expected.is_possible(row)) {
            for (a, b) in found.marginals(row).expect("possible").iter().zip(expected.marginals(row).expect("possible")) {
                prop_assert!(close(*a, *b, 1e-9));
            }
        }
    }
}

const WEATHER: &str = "label weather: sun, rain\nlabel ground: dry, wet\nrule 0.95: wet <- rain";

#[test]
fn reasons_are_sentences_for_people() {
    let model = Model::parse(WEATHER).expect("a model");
    let marginals = |limits| {
        let engine = Engines::new(&model).with_limits(limits).marginals().expect("any engine");
        engine.reason().to_owned()
    };
    let explanations = |limits| {
        let engine = Engines::new(&model).with_limits(limits).assignments().expect("any engine");
        engine.reason().to_owned()
    };
    let reasons =
        [marginals(Limits::default()), marginals(TINY), explanations(Limits::default()), explanations(TINY)];
    insta::assert_snapshot!(reasons.join("\n"));
}

#[test]
fn settings_are_checked_even_where_they_are_not_used() {
    let model = Model::parse(WEATHER).expect("a model");
    let loopy = LoopySettings { damping: 1.5, ..LoopySettings::default() };
    let settings = EngineSettings { loopy, ..EngineSettings::default() };
    let error = Engines::new(&model).with_settings(settings).marginals().expect_err("refused");
    assert!(matches!(error, prsl::Error::Setting { setting: "damping", .. }));
}

#[test]
fn loopy_propagation_stays_within_the_memory_limit() {
    let labels: String = (0..40_000).map(|label| format!("label l{label}\n")).collect();
    let rules: String = (1..40_000).map(|label| format!("rule 0.9: l{} -> l{label}\n", label - 1)).collect();
    let model = Model::parse(&format!("{labels}{rules}")).expect("a model");
    let engines = |memory| {
        Engines::new(&model).with_choice(EngineChoice::Loopy).with_limits(Limits { memory }).marginals()
    };
    match engines(1).expect_err("refused") {
        prsl::Error::TooCostly { what, advice, .. } => {
            assert_eq!(what, "loopy propagation");
            assert!(advice.starts_with("raise the memory limit"), "{advice}");
        }
        error => panic!("{error}"),
    }
    assert_eq!(engines(4 << 30).expect("it fits").engine(), Engine::Loopy);
}

/// If branch and bound may not visit any node, the tree provides the proofs.
#[test]
fn the_tree_proves_rows_that_branch_and_bound_leaves_open() {
    let (model, rows) = simulated(20, 28, 12, 1);
    let settings = EngineSettings { search: NOTHING, ..EngineSettings::default() };
    let engine = Engines::new(&model).with_settings(settings).assignments().expect("an engine");
    assert_eq!(engine.engine(), Engine::BranchAndBound, "{}", engine.reason());
    let best = engine.best_batch(&rows).unwrap();
    assert!(best.iter().flatten().all(prsl::MostProbable::is_optimal));
    let by_tree = best.iter().flatten().filter(|best| best.engine == Engine::JunctionTree).count();
    assert!(by_tree > 0, "all {} rows were proven without a node", best.len());
    let row = best.iter().flatten().position(|best| best.engine == Engine::JunctionTree).expect("one row");
    let few = engine.top(&rows.row(row), 2).unwrap();
    assert!(few.iter().all(|best| best.is_optimal() && best.engine == Engine::JunctionTree));
    // The tree would take minutes for a hundred thousand of them.
    let many = engine.top(&rows.row(row), 100_000).unwrap();
    assert!(many.iter().all(|best| !best.is_optimal() && best.engine == Engine::BranchAndBound));
    let settings = EngineSettings { limits: TINY, ..settings };
    let alone = Engines::new(&model).with_settings(settings).assignments().expect("an engine");
    assert!(alone.best_batch(&rows).unwrap().iter().flatten().any(|best| !best.is_optimal()));
}

#[test]
fn engines_are_shared_by_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<MarginalEngine>();
    shared::<AssignmentEngine>();
}

/// One run per label and assignment, each with a copy of the row, took minutes and gigabytes.
#[test]
fn thousands_of_explanations_of_independent_labels() {
    let labels: String = (0..40).map(|label| format!("label l{label}\n")).collect();
    for rules in ["", "label p\nlabel q\nrule 0.9: p -> q\n"] {
        let model = Model::parse(&format!("{labels}{rules}")).expect("a model");
        let mut rows = BeliefMatrix::new(&model);
        let belief = |label: usize| 0.5 + 0.49 * ((label * 7919 % 101) as f64 / 101.0);
        let cells: Vec<_> = (0..model.labels().len()).flat_map(|label| [Some(belief(label)), None]).collect();
        rows.push(&cells, Normalize::Never).expect("a row");
        for limits in [Limits::default(), TINY] {
            let engine = Engines::new(&model).with_limits(limits).assignments().expect("an engine");
            let found = engine.top(&rows.row(0), 5000).unwrap();
            let expected = best_weights(&model, &rows.row(0), 5000);
            assert_eq!((found.len(), found.status(4999)), (5000, Status::Ok), "{}", engine.reason());
            for (found, expected) in found.iter().zip(expected) {
                assert!(close(found.log_weight, expected, 1e-9), "{} and {expected}", found.log_weight);
            }
        }
    }
}

/// The largest log weights, computed label by label. Rules connect only the last two labels.
fn best_weights(model: &Model, row: &[f64], n: usize) -> Vec<f64> {
    let mut weights = vec![0.0];
    let n_independent = 40;
    let mut add = |choices: &[f64]| {
        let mut sums: Vec<f64> =
            weights.iter().flat_map(|sum| choices.iter().map(move |c| sum + c)).collect();
        sums.sort_by(|a, b| b.total_cmp(a));
        sums.truncate(n);
        weights = sums;
    };
    row[..2 * n_independent].chunks(2).for_each(|belief| add(&[belief[0].ln(), belief[1].ln()]));
    if model.labels().len() > n_independent {
        let [p, q] = [&row[80..82], &row[82..84]];
        let pairs = [(0, 0, 0.9), (0, 1, 0.1), (1, 0, 0.9), (1, 1, 0.9)];
        add(&pairs.map(|(a, b, weight): (usize, usize, f64)| (p[a] * q[b] * weight).ln()));
    }
    weights
}

#[test]
fn a_second_best_assignment_is_found_even_if_its_probability_underflows() {
    for (rule, n) in [("", 4), ("rule 1: a <-> b", 2)] {
        let model = Model::parse(&format!("label a\nlabel b\nrule 1e-300: a\n{rule}")).expect("a model");
        let mut rows = BeliefMatrix::new(&model);
        rows.push(&[Some(1e-200), Some(1.0), None, None], Normalize::Always).expect("a row");
        let expected = Enumeration::compile(&model).expect("small").top(&rows.row(0), 5).unwrap();
        for found in [
            MaxProductTree::compile(&model).expect("small").top(&rows.row(0), 5).unwrap(),
            BranchAndBound::compile(&model).expect("small").top(&rows.row(0), 5).unwrap(),
        ] {
            assert_eq!((found.len(), expected.len()), (n, n));
            assert!(close(found[n - 1].log_weight, expected[n - 1].log_weight, 1e-9));
        }
    }
}
