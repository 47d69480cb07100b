//! Circuits of the rule bases that people compile into circuits, compared with sums over the structure of each base.

use prsl::infer::Circuit;
use prsl::{Engine, Engines, Error, Posteriors};
use prsl_testkit::close;
use prsl_testkit::rulebases::{
    Answer, RuleBase, Softness, exclusive_groups, grid_paths, permutations, taxonomy_dag, taxonomy_tree,
    yes_no_rows,
};

/// Maximum error of a marginal and of ln Z. Sums of some thousand terms have an error below 1e-12.
const TOLERANCE: f64 = 1e-9;

/// Compares the circuit and the chosen engine with the answers of three rows.
fn assert_exact(base: fn(Softness, u64) -> RuleBase) {
    for (softness, seed) in [(Softness::Hard, 1), (Softness::ThirdSoft, 1), (Softness::ThirdSoft, 2)] {
        let base = base(softness, seed);
        let model = base.model();
        let (beliefs, rows) = yes_no_rows(&model, 3, seed);
        let answers: Vec<Answer> =
            beliefs.iter().map(|row| base.answer(row).expect("the base has answers")).collect();
        let circuit = Circuit::compile(&model).expect("a small circuit");
        assert_answers("circuit", &circuit.infer_batch(&rows).expect("its rows"), &answers);
        let chosen = Engines::new(&model).marginals().expect("an engine");
        assert_ne!(chosen.engine(), Engine::Loopy, "{}", chosen.reason());
        assert_answers(chosen.reason(), &chosen.infer_batch(&rows).expect("its rows"), &answers);
    }
}

fn assert_answers(who: &str, posteriors: &Posteriors, answers: &[Answer]) {
    for (row, answer) in answers.iter().enumerate() {
        let (actual, expected) = (posteriors.log_evidence(row), answer.log_evidence);
        assert!(close(actual, expected, TOLERANCE), "{who}, row {row}: ln Z {actual} instead of {expected}");
        let marginals = posteriors.marginals(row).expect("possible").iter().step_by(2);
        for (label, (actual, expected)) in marginals.zip(&answer.marginals).enumerate() {
            assert!(
                (actual - expected).abs() <= TOLERANCE,
                "{who}, row {row}, label {label}: {actual} instead of {expected}"
            );
        }
    }
}

#[test]
fn permutations_are_exact() {
    assert_exact(|softness, seed| permutations(6, softness, seed));
}

#[test]
fn paths_in_a_grid_are_exact() {
    assert_exact(|softness, seed| grid_paths(4, 4, softness, seed));
}

#[test]
fn exclusive_groups_with_implications_are_exact() {
    assert_exact(|softness, seed| exclusive_groups(40, 5, softness, seed));
}

#[test]
fn a_taxonomy_tree_is_exact() {
    assert_exact(|softness, seed| taxonomy_tree(500, 6, softness, seed));
}

/// The search counts its work, so it ends although the circuit would be too large. The automatic choice is approximate.
#[test]
fn a_taxonomy_with_several_parents_is_refused() {
    let model = taxonomy_dag(4000, 12, Softness::Hard, 1).model();
    assert!(matches!(Circuit::compile(&model), Err(Error::TooCostly { .. })));
    for softness in [Softness::Hard, Softness::ThirdSoft] {
        let model = taxonomy_dag(4000, 12, softness, 1).model();
        let chosen = Engines::new(&model).marginals().expect("an engine");
        assert_eq!(chosen.engine(), Engine::Loopy, "{}", chosen.reason());
    }
}
