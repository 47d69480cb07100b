//! Branch and bound answers to enumeration and to the junction tree, and proves what it says.

use proptest::prelude::*;
use prsl::{BranchAndBound, Enumeration, MaxProductTree, Model, SearchLimits, Status};
use prsl_testkit::{EXACT, RandomModel, close, golden, random_model, random_row, simulated, small_model};

fn many(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, max_shrink_iters: 2000, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(many(2500))]

    #[test]
    fn the_best_and_the_next_best_are_those_of_enumeration((model, rows) in small_model()) {
        let (engine, oracle) = (BranchAndBound::compile(&model)?, Enumeration::compile(&model)?);
        for row in (0..rows.n_rows()).map(|row| rows.row(row)) {
            for n in [1, 4] {
                let (found, expected) = (engine.top(row, n), oracle.top(row, n));
                prop_assert_eq!(found.len(), expected.len());
                for (found, expected) in found.iter().zip(&expected) {
                    // Ties make assignments differ, not weights.
                    prop_assert!(close(found.log_weight, expected.log_weight, 10.0 * EXACT));
                    prop_assert!(close(found.log_weight, model.log_weight(row, &found.assignment), EXACT));
                    prop_assert!(found.is_optimal());
                }
                let mut assignments: Vec<_> = found.iter().map(|found| &found.assignment).collect();
                assignments.sort();
                assignments.dedup();
                prop_assert_eq!(assignments.len(), found.len(), "each is listed once");
            }
        }
    }
}

proptest! {
    #![proptest_config(many(200))]

    /// Fourteen labels: wide noisy-or rules, clauses and counts no longer fit into small tables.
    #[test]
    fn wide_rules_are_searched_exactly(seed in any::<u64>(), n_rules in 1usize..12) {
        let settings = RandomModel { n_labels: 14, n_rules, max_categories: 2, max_assignments: 1 << 14, max_typical: 9 };
        let (model, mut rng) = random_model(&settings, seed);
        let everywhere = model.label_ids().map(|label| prsl::Inhibition {
            label,
            category: prsl::CategoryId::new(label.index() % 2),
            probability: 1.0 - 0.3 / (1.0 + label.index() as f64),
        });
        let wide = prsl::Body::NoisyOr(prsl::NoisyOr::new(everywhere));
        let model = [0.97, 0.2].into_iter().fold(model.edit(), |model, p| model.add_rule(prsl::Rule::new(p, wide.clone())));
        let model = model.build()?;
        let (engine, oracle) = (BranchAndBound::compile(&model)?, Enumeration::compile(&model)?);
        let mut rows = prsl::BeliefMatrix::new(&model);
        rows.push(&random_row(&model, &mut rng), prsl::Normalize::Always)?;
        for n in [1, 3] {
            let (found, expected) = (engine.top(rows.row(0), n), oracle.top(rows.row(0), n));
            prop_assert_eq!(found.len(), expected.len());
            for (found, expected) in found.iter().zip(&expected) {
                prop_assert!(close(found.log_weight, expected.log_weight, 10.0 * EXACT));
                prop_assert!(found.is_optimal());
            }
        }
    }

    /// Whatever the limit, nothing is better than the gap says.
    #[test]
    fn a_search_that_is_stopped_is_honest_about_its_gap((model, rows) in small_model(), work in 0u64..20_000) {
        let limits = SearchLimits { work, ..SearchLimits::default() };
        let (engine, oracle) = (BranchAndBound::compile_with(&model, limits)?, Enumeration::compile(&model)?);
        for row in (0..rows.n_rows()).map(|row| rows.row(row)) {
            for n in [1, 3] {
                let (found, expected) = (engine.top(row, n), oracle.top(row, n));
                if found.is_empty() {
                    prop_assert!(expected.is_empty() || found.status(0) == Status::NotFound);
                }
                for (found, expected) in found.iter().zip(&expected) {
                    prop_assert!(found.log_weight > f64::NEG_INFINITY);
                    let gap = found.gap.expect("the search knows its gap");
                    prop_assert!(found.log_weight + gap >= expected.log_weight - 1e-9);
                }
            }
        }
    }
}

#[test]
fn golden_explanations_are_found_and_proven() {
    for golden in golden("") {
        let engine = BranchAndBound::compile(&golden.model).expect("golden models are searched");
        let found = engine.best_batch(&golden.rows);
        for (row, (found, expected)) in found.iter().zip(&golden.exact_mpe).enumerate() {
            let found = found.as_ref().expect("golden rows are possible");
            assert!(found.is_optimal(), "{} row {row}", golden.name);
            assert_eq!(&found.assignment, expected, "{} row {row}", golden.name);
        }
    }
}

#[test]
fn a_hundred_labels_are_proven_and_beat_every_neighbor() {
    let (model, rows) = simulated(100, 100, 20, 3);
    let engine = BranchAndBound::compile(&model).expect("a hundred labels are searched");
    for (row, found) in engine.best_batch(&rows).into_iter().enumerate() {
        let found = found.expect("simulated rows are possible");
        assert!(found.is_optimal());
        for label in model.label_ids() {
            for category in 0..model.label(label).n_categories() {
                let mut other = found.assignment.clone();
                other[label.index()] = category;
                assert!(model.log_weight(rows.row(row), &other) <= found.log_weight + 1e-9);
            }
        }
    }
}

/// Each pair of labels has a gap of its own: as one search the gaps would multiply.
#[test]
fn independent_parts_are_searched_one_by_one() {
    let mut builder = Model::builder();
    for cluster in 0..40 {
        let names = [0, 1, 2].map(|label| format!("l{cluster}_{label}"));
        for name in &names {
            builder = builder.binary_label(name);
        }
        let [a, b, c] = &names;
        builder = builder.rule(format!("{a} xor {b}"), 0.9).rule(format!("{b} xor {c}"), 0.9);
        builder = builder.rule(format!("{a} xor {c}"), 0.9);
    }
    let model = builder.build().expect("the model is valid");
    let mut rows = prsl::BeliefMatrix::new(&model);
    let cells: Vec<Option<f64>> =
        (0..model.labels().len()).flat_map(|l| [Some(0.5 + 0.001 * (l % 7) as f64), None]).collect();
    rows.push(&cells, prsl::Normalize::Always).expect("the row is valid");
    let limits = SearchLimits { work: 2_000_000, ..SearchLimits::default() };
    let found = BranchAndBound::compile_with(&model, limits)
        .expect("it compiles")
        .best_row(rows.row(0))
        .expect("possible");
    let expected =
        MaxProductTree::compile(&model).expect("it is thin").best_row(rows.row(0)).expect("possible");
    assert!(found.is_optimal());
    assert!(close(found.log_weight, expected.log_weight, EXACT));
}

#[test]
fn an_impossible_row_names_the_rules_in_conflict() {
    let model = Model::parse("label a\nlabel b\nlabel c\nrule 1: a -> b\nrule 1: b -> c\nrule 0.7: c -> a")
        .expect("valid");
    let engine = BranchAndBound::compile(&model).expect("it compiles");
    let evidence = prsl::Evidence::new().observe("a", "yes").observe("c", "no");
    let error = engine.best(&evidence).expect_err("a excludes not c");
    assert_eq!(
        error.to_string(),
        "no assignment is possible: rules `a -> b`, `b -> c` together exclude everything that the evidence allows"
    );
}

#[test]
fn the_same_answer_with_one_thread_and_two() {
    let (model, rows) = simulated(40, 40, 40, 5);
    let engine = BranchAndBound::compile(&model).expect("it compiles");
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads can be had");
        pool.install(|| engine.best_batch(&rows))
    };
    assert_eq!(with(1), with(2));
}
