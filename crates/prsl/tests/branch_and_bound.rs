//! Branch and bound agrees with enumeration and the junction tree, and its proofs are right.

use proptest::prelude::*;
use prsl::infer::{Enumeration, MaxProductTree, SearchEnd, SearchLimits};
use prsl::{BranchAndBound, Model, Status};
use prsl_testkit::{EXACT, RandomModel, close, golden, random_model, random_row, simulated, small_model};
use rand::{RngExt, SeedableRng};

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
                let (found, expected) = (engine.top(&row, n).unwrap(), oracle.top(&row, n).unwrap());
                prop_assert_eq!(found.len(), expected.len());
                for (found, expected) in found.iter().zip(&expected) {
                    // With ties, assignments may differ but weights do not.
                    prop_assert!(close(found.log_weight, expected.log_weight, 10.0 * EXACT));
                    prop_assert!(close(found.log_weight, model.log_weight(&row, &found.assignment), EXACT));
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

    /// With fourteen labels, wide noisy-or rules, clauses and counts do not fit into small tables.
    #[test]
    fn wide_rules_are_searched_exactly(seed in any::<u64>(), n_rules in 1usize..12) {
        let settings = RandomModel { n_labels: 14, n_rules, max_categories: 2, max_assignments: 1 << 14, max_typical: 9 };
        let (model, mut rng) = random_model(&settings, seed);
        let everywhere = model.label_ids().map(|label| prsl::model::Inhibition {
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
            let (found, expected) = (engine.top(&rows.row(0), n).unwrap(), oracle.top(&rows.row(0), n).unwrap());
            prop_assert_eq!(found.len(), expected.len());
            for (found, expected) in found.iter().zip(&expected) {
                prop_assert!(close(found.log_weight, expected.log_weight, 10.0 * EXACT));
                prop_assert!(found.is_optimal());
            }
        }
    }

    /// For any limit, no assignment exceeds the result by more than the gap.
    #[test]
    fn a_stopped_search_returns_a_valid_gap((model, rows) in small_model(), work in 0u64..20_000) {
        let limits = SearchLimits { work, ..SearchLimits::default() };
        let (engine, oracle) = (BranchAndBound::compile_with(&model, limits)?, Enumeration::compile(&model)?);
        for row in (0..rows.n_rows()).map(|row| rows.row(row)) {
            for n in [1, 3] {
                let (found, expected) = (engine.top(&row, n).unwrap(), oracle.top(&row, n).unwrap());
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
        let found = engine.best_batch(&golden.rows).unwrap();
        for (row, (found, expected)) in found.iter().zip(&golden.exact_mpe).enumerate() {
            let found = found.as_ref().expect("golden rows are possible");
            assert!(found.is_optimal(), "{} row {row}", golden.name);
            assert_eq!(found.assignment.indices(), expected, "{} row {row}", golden.name);
        }
    }
}

#[test]
fn a_hundred_labels_are_proven_and_beat_every_neighbor() {
    let (model, rows) = simulated(100, 100, 20, 3);
    let engine = BranchAndBound::compile(&model).expect("a hundred labels are searched");
    for (row, found) in engine.best_batch(&rows).unwrap().into_iter().enumerate() {
        let found = found.expect("simulated rows are possible");
        assert!(found.is_optimal());
        for label in model.label_ids() {
            for category in 0..model.label(label).n_categories() {
                let mut other = found.assignment.indices().to_vec();
                other[label.index()] = category;
                assert!(model.log_weight(&rows.row(row), &other.into()) <= found.log_weight + 1e-9);
            }
        }
    }
}

/// Each pair of labels has its own gap. In a single search, the work of the pairs would multiply.
#[test]
fn independent_parts_are_searched_separately() {
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
        .best(&rows.row(0))
        .expect("possible");
    let expected = MaxProductTree::compile(&model).expect("it is thin").best(&rows.row(0)).expect("possible");
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
        pool.install(|| engine.best_batch(&rows).unwrap())
    };
    assert_eq!(with(1), with(2));
}

/// Hard clauses over three labels each, close to the number at which no assignment is possible.
fn hard_clauses(n_labels: usize, seed: u64) -> Model {
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
    let mut builder =
        (0..n_labels).fold(Model::builder(), |builder, label| builder.binary_label(format!("l{label}")));
    for _ in 0..n_labels * 4 {
        let literal = |rng: &mut rand_chacha::ChaCha8Rng| {
            let sign = if rng.random::<bool>() { "!" } else { "" };
            format!("{sign}l{}", rng.random_range(0..n_labels))
        };
        let clause = [literal(&mut rng), literal(&mut rng), literal(&mut rng)].join(" | ");
        builder = builder.rule(clause, 1.0);
    }
    builder.build().expect("clauses are rules")
}

fn undecided_row(model: &Model) -> prsl::BeliefMatrix {
    let mut rows = prsl::BeliefMatrix::new(model);
    rows.push_evidence(&prsl::Evidence::new()).expect("nothing is known");
    rows
}

#[test]
fn a_search_without_work_still_finds_a_possible_assignment() {
    for seed in 0..10 {
        let model = hard_clauses(60, seed);
        let rows = undecided_row(&model);
        let limits = SearchLimits { work: 0, ..SearchLimits::default() };
        let found =
            BranchAndBound::compile_with(&model, limits).expect("it compiles").top(&rows.row(0), 1).unwrap();
        let complete = BranchAndBound::compile(&model).expect("it compiles").top(&rows.row(0), 1).unwrap();
        assert_eq!(found.is_empty(), complete.is_empty(), "seed {seed}: {found:?}");
        assert!(found.iter().all(|best| best.log_weight.is_finite()));
        assert_eq!(found.status(0) == Status::Impossible, complete.status(0) == Status::Impossible);
    }
}

/// Ten pigeons in nine holes.
fn pigeons() -> Model {
    let name = |pigeon: usize, hole: usize| format!("p{pigeon}_{hole}");
    let mut builder = Model::builder();
    for (pigeon, hole) in (0..10).flat_map(|pigeon| (0..9).map(move |hole| (pigeon, hole))) {
        builder = builder.binary_label(name(pigeon, hole));
    }
    for pigeon in 0..10 {
        builder = builder.rule((0..9).map(|hole| name(pigeon, hole)).collect::<Vec<_>>().join(" | "), 1.0);
    }
    for (hole, b) in (0..9).flat_map(|hole| (0..10).map(move |b| (hole, b))) {
        for a in 0..b {
            builder = builder.rule(format!("!{} | !{}", name(a, hole), name(b, hole)), 1.0);
        }
    }
    builder.build().expect("clauses are rules")
}

#[test]
fn a_search_without_a_result_returns_no_assignment() {
    let model = pigeons();
    let rows = undecided_row(&model);
    let limits = SearchLimits { work: 0, ..SearchLimits::default() };
    let engine = BranchAndBound::compile_with(&model, limits).expect("it compiles");
    let found = engine.top(&rows.row(0), 1).unwrap();
    assert_eq!((found.len(), found.end(), found.status(0)), (0, SearchEnd::WorkLimit, Status::NotFound));
    assert_eq!(engine.best(&rows.row(0)).ok(), None);
    let error = engine.best(&prsl::Evidence::new()).expect_err("nothing was found");
    assert!(matches!(error, prsl::Error::NoAssignment), "{error}");
}

#[test]
fn the_limit_is_work_and_not_time() {
    let model = hard_soft(30);
    let rows = undecided_row(&model);
    let with = |limits| {
        BranchAndBound::compile_with(&model, limits).expect("it compiles").top(&rows.row(0), 1).unwrap()
    };
    let work = SearchLimits { work: 3_000_000, time: None };
    let found = with(work);
    assert_eq!((found.end(), found.status(0)), (SearchEnd::WorkLimit, Status::NotProven));
    assert_eq!(found, with(work));
    let late = with(SearchLimits { work: u64::MAX, time: Some(std::time::Duration::from_nanos(1)) });
    assert_eq!((late.end(), late.status(0)), (SearchEnd::TimeLimit, Status::TimeLimit));
    assert!(late[0].log_weight <= found[0].log_weight + found[0].gap.expect("known") + 1e-9);
}

/// Every two labels should differ, so even the best assignment violates many rules.
fn hard_soft(n_labels: usize) -> Model {
    let mut builder =
        (0..n_labels).fold(Model::builder(), |builder, label| builder.binary_label(format!("l{label}")));
    for b in 0..n_labels {
        for a in 0..b {
            builder =
                builder.rule(format!("l{a} xor l{b}"), 0.6 + 0.3 * ((a * 31 + b * 17) % 10) as f64 / 10.0);
        }
    }
    builder.build().expect("rules")
}

/// Compiling a search without each rule in turn took minutes.
#[test]
fn a_conflict_among_thousands_of_rules_is_named() {
    let mut builder =
        (0..3000).fold(Model::builder(), |builder, label| builder.binary_label(format!("l{label}")));
    for label in 0..2999 {
        builder = builder.rule(format!("l{label} -> l{}", label + 1), 1.0).name(format!("r{label}"));
    }
    let model = builder.build().expect("implications");
    let engine = BranchAndBound::compile(&model).expect("it compiles");
    let evidence = prsl::Evidence::new().observe("l7", "yes").observe("l10", "no");
    let error = engine.best(&evidence).expect_err("impossible").to_string();
    assert_eq!(
        error,
        "no assignment is possible: rules `r7`, `r8`, `r9` together exclude everything that the evidence allows"
    );
}

#[test]
fn costs_are_refused_before_they_are_built() {
    let refusal = |model: &Model| {
        let limits = prsl::Limits { memory: 1 };
        let search = BranchAndBound::compile_within(model, limits, SearchLimits::default());
        search.expect_err("more than 16 MiB").to_string()
    };
    // A thousand rules send a message to each of a thousand categories.
    let mut builder = Model::builder().label("big", (0..1000).map(|category| format!("k{category}")));
    for other in 0..1000 {
        builder = builder.binary_label(format!("l{other}")).rule(format!("k0 -> l{other}"), 0.9);
    }
    let messages = refusal(&builder.build().expect("a model"));
    // A table of 2,048 entries, each of which takes 300,000 steps to compute.
    let labels: String = (0..11).map(|label| format!("label l{label}\n")).collect();
    let term = |index: usize| format!("l{} & !l{}", index % 11, (index / 11) % 11);
    let terms: Vec<String> = (0..75_000).map(term).collect();
    let model = Model::parse(&format!("{labels}rule 0.9: {}", terms.join(" | "))).expect("a model");
    let steps = refusal(&model);
    insta::assert_snapshot!(format!("{messages}\n{steps}"));
}
