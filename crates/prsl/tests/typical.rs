//! With typical combinations of any weight, every engine agrees with enumeration.

use std::collections::HashMap;

use proptest::prelude::*;
use prsl::infer::{Enumeration, Gibbs, GibbsSettings, MaxProductTree, Samples, Sampling, SearchLimits};
use prsl::model::Combination;
use prsl::{
    Assignment, BeliefMatrix, BranchAndBound, Engine, Error, Evidence, Explainer, JunctionTree, Loopy, Model,
    MostProbable, Normalize, Result, Row,
};
use prsl_testkit::{close, random_row, simulated, small_model, small_tree};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Sums over combinations are rounded in another order than those of enumeration.
const ROUNDING: f64 = 1e-10;

fn many(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, max_shrink_iters: 2000, failure_persistence: None, ..ProptestConfig::default() }
}

/// Replaces the combinations of a model by up to `n` combinations of any weight.
fn with_combinations(model: &Model, n: usize, seed: u64) -> Model {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut chosen: HashMap<Vec<usize>, f64> = HashMap::new();
    for _ in 0..n {
        let categories = model.labels().iter().map(|label| rng.random_range(0..label.n_categories()));
        let categories = categories.collect();
        let weight = match rng.random_range(0..8) {
            0 => 0.0,
            1 => 1e17,
            2 => 1e300 * rng.random::<f64>(),
            _ => (10.0 * (rng.random::<f64>() - 0.3)).exp(),
        };
        chosen.insert(categories, weight);
    }
    let mut chosen: Vec<_> = chosen.into_iter().collect();
    chosen.sort_by(|a, b| a.0.cmp(&b.0));
    let builder = model.edit().remove_typical();
    let add = |builder: prsl::ModelBuilder, (categories, weight): (Vec<usize>, f64)| {
        builder.add_typical(Combination::new(weight, categories))
    };
    chosen.into_iter().fold(builder, add).build().unwrap()
}

fn same_weights(actual: &[MostProbable], expected: &[MostProbable]) {
    assert_eq!(actual.len(), expected.len());
    for (a, e) in actual.iter().zip(expected) {
        assert!(close(a.log_weight, e.log_weight, ROUNDING), "{} instead of {}", a.log_weight, e.log_weight);
    }
}

proptest! {
    #![proptest_config(many(400))]

    #[test]
    fn marginals_and_ln_z_agree_with_enumeration((model, rows) in small_model(), n in 0usize..30, seed: u64) {
        let model = with_combinations(&model, n, seed);
        let oracle = Enumeration::compile(&model)?;
        let engine = JunctionTree::compile(&model)?;
        let (actual, expected) = (engine.infer_batch(&rows)?, oracle.infer_batch(&rows)?);
        for row in 0..rows.n_rows() {
            prop_assert_eq!(actual.is_possible(row), expected.is_possible(row), "row {} of\n{}", row, model);
            prop_assert!(close(actual.log_evidence(row), expected.log_evidence(row), ROUNDING));
            if let (Some(actual), Some(expected)) = (actual.marginals(row), expected.marginals(row)) {
                for (a, e) in actual.iter().zip(expected) {
                    prop_assert!(close(*a, *e, ROUNDING), "{} instead of {} in row {} of\n{}", a, e, row, model);
                    prop_assert_eq!(*a == 0.0, *e == 0.0, "{} instead of {}", a, e);
                }
            }
            match (engine.infer(&rows.row(row)), oracle.infer(&rows.row(row))) {
                (Ok(alone), Ok(_)) => {
                    prop_assert_eq!(Some(alone.marginals()), actual.marginals(row), "the same bits alone");
                    prop_assert_eq!(alone.log_evidence(), actual.log_evidence(row));
                    let (actual, expected) = (engine.agreement(&rows.row(row))?, oracle.agreement(&rows.row(row))?);
                    for (a, e) in actual.iter().zip(&expected) {
                        prop_assert!(close(*a, *e, ROUNDING));
                    }
                }
                (actual, expected) => prop_assert_eq!(actual.err(), expected.err()),
            }
        }
    }

    #[test]
    fn posteriors_without_a_rule_agree_with_enumeration((model, rows) in small_model(), n in 0usize..30, seed: u64) {
        let model = with_combinations(&model, n, seed);
        let oracle = Enumeration::compile(&model)?;
        let without = JunctionTree::compile(&model)?.without_each_rule(&rows.row(0))?;
        for rule in model.rule_ids() {
            let expected = oracle.without(&rows.row(0), rule)?;
            prop_assert_eq!(without[rule.index()].is_some(), expected.is_some());
            for (a, e) in without[rule.index()].iter().flatten().zip(expected.iter().flatten()) {
                prop_assert!(close(*a, *e, ROUNDING), "{} instead of {} without {} of\n{}", a, e, rule.index(), model);
            }
        }
    }

    #[test]
    fn the_best_explanations_agree_with_enumeration((model, rows) in small_model(), n in 0usize..30, seed: u64) {
        let model = with_combinations(&model, n, seed);
        let oracle = Enumeration::compile(&model)?;
        let (tree, search) = (MaxProductTree::compile(&model)?, BranchAndBound::compile(&model)?);
        let (trees, searches) = (tree.best_batch(&rows)?, search.best_batch(&rows)?);
        for row in 0..rows.n_rows() {
            for n in [1, 2, 5, 40] {
                let expected = oracle.top(&rows.row(row), n)?;
                for found in [tree.top(&rows.row(row), n)?, search.top(&rows.row(row), n)?] {
                    same_weights(&found, &expected);
                    for it in &found {
                        prop_assert!(it.is_optimal());
                        prop_assert_eq!(it.log_weight, model.log_weight(&rows.row(row), &it.assignment));
                    }
                    let distinct: std::collections::HashSet<_> = found.iter().map(|it| &it.assignment).collect();
                    prop_assert_eq!(distinct.len(), found.len());
                }
            }
            let best = oracle.top(&rows.row(row), 1)?;
            for found in [&trees[row], &searches[row]] {
                same_weights(found.as_slice(), &best);
            }
        }
    }

    #[test]
    fn loopy_propagation_is_exact_on_trees((model, rows) in small_tree(), n in 0usize..30, seed: u64) {
        let model = with_combinations(&model, n, seed);
        let oracle = Enumeration::compile(&model)?;
        let engine = Loopy::compile(&model)?;
        let (actual, expected) = (engine.infer_batch(&rows)?, oracle.infer_batch(&rows)?);
        for row in 0..rows.n_rows() {
            prop_assert_eq!(actual.is_possible(row), expected.is_possible(row));
            prop_assert!(close(actual.log_evidence(row), expected.log_evidence(row), 1e-9));
            for (a, e) in actual.marginals(row).into_iter().flatten().zip(expected.marginals(row).into_iter().flatten()) {
                prop_assert!(close(*a, *e, 1e-9), "{} instead of {} in row {} of\n{}", a, e, row, model);
            }
            let (best, expected) = (engine.best(&rows.row(row)), oracle.best(&rows.row(row)));
            prop_assert_eq!(best.is_ok(), expected.is_ok());
            if let (Ok(best), Ok(expected)) = (best, expected) {
                prop_assert!(close(best.log_weight, expected.log_weight, 1e-9));
                prop_assert_eq!(best.gap, None);
            }
        }
    }

    #[test]
    fn explanations_agree_with_enumeration((model, rows) in small_model(), n in 0usize..10, seed: u64) {
        let model = with_combinations(&model, n, seed);
        let oracle = Enumeration::compile(&model)?;
        let explanation = Explainer::compile(&model)?.explain(&rows.row(0))?;
        let Ok(expected) = oracle.infer(&rows.row(0)) else {
            prop_assert!(!explanation.possible);
            return Ok(());
        };
        let after = explanation.labels.iter().flat_map(|label| &label.categories).map(|it| it.after.unwrap());
        for (a, e) in after.zip(expected.marginals()) {
            prop_assert!(close(a, *e, ROUNDING));
        }
        let top = oracle.top(&rows.row(0), 2)?;
        for (joint, expected_joint) in [&explanation.best, &explanation.runner_up].into_iter().flatten().zip(&top) {
            let probability = (expected_joint.log_weight - expected.log_evidence()).exp();
            prop_assert!(close(joint.log_weight, expected_joint.log_weight, ROUNDING));
            prop_assert!(close(joint.probability, probability, ROUNDING));
        }
    }

    #[test]
    fn printed_models_read_back((model, _) in small_model(), n in 0usize..10, seed: u64) {
        let model = with_combinations(&model, n, seed);
        prop_assert_eq!(&Model::parse(&model.to_string())?, &model, "{}", model);
        prop_assert_eq!(&Model::from_json(&model.to_json())?, &model);
        prop_assert_eq!(&Model::parse(&prsl::Document::format(&model.to_string())?)?, &model);
        prop_assert_eq!(&model.edit().build()?, &model);
    }
}

/// How many standard deviations Pearson's χ² of samples is above its mean; rare assignments count together.
fn surprise(model: &Model, row: &Row<'_>, samples: &[Assignment]) -> f64 {
    let oracle = Enumeration::compile(model).unwrap();
    let log_evidence = oracle.infer(row).unwrap().log_evidence();
    let (mut statistic, mut n_cells, mut rare) = (0.0, 0.0, [0.0, 1e-9]);
    let n = samples.len() as f64;
    for it in oracle.top(row, usize::MAX).unwrap() {
        let expected = n * (it.log_weight - log_evidence).exp();
        let count = samples.iter().filter(|sample| **sample == it.assignment).count() as f64;
        if expected < 5.0 {
            rare = [rare[0] + count, rare[1] + expected];
        } else {
            statistic += (count - expected).powi(2) / expected;
            n_cells += 1.0;
        }
    }
    statistic += (rare[0] - rare[1]).powi(2) / f64::max(rare[1], 1.0);
    (statistic - n_cells) / f64::sqrt(2.0 * f64::max(n_cells, 1.0))
}

/// A random model of a few labels with moderate combinations, and rows for it.
fn sampled(seed: u64) -> (Model, BeliefMatrix) {
    let (model, mut rng) = prsl_testkit::random_model(
        &prsl_testkit::RandomModel {
            n_labels: 4,
            n_rules: 2,
            max_categories: 3,
            max_assignments: 100,
            max_typical: 0,
        },
        seed,
    );
    let mut builder = model.edit().remove_typical();
    let mut stated = std::collections::HashSet::new();
    for _ in 0..5 {
        let sizes = model.labels().iter().map(|label| label.n_categories());
        let categories: Vec<usize> = sizes.map(|n| rng.random_range(0..n)).collect();
        if stated.insert(categories.clone()) {
            builder = builder.add_typical(Combination::new(4.0 * rng.random::<f64>(), categories));
        }
    }
    let model = builder.build().unwrap();
    let mut rows = BeliefMatrix::new(&model);
    for _ in 0..5 {
        rows.push(&random_row(&model, &mut rng), Normalize::Always).unwrap();
    }
    (model, rows)
}

#[test]
fn samples_have_the_distribution_of_enumeration() {
    for seed in 0..25 {
        let (model, rows) = sampled(seed);
        let engine = JunctionTree::compile(&model).unwrap();
        let sampling = Sampling { n_samples: 4000, seed, first_row: 0 };
        for (row, samples) in engine.sample_batch(&rows, &sampling).unwrap().into_iter().enumerate() {
            let Some(samples) = samples.unwrap() else { continue };
            let surprise = surprise(&model, &rows.row(row), &samples);
            assert!(surprise < 8.0, "{surprise} for seed {seed}, row {row} of\n{model}");
        }
    }
}

#[test]
fn gibbs_samples_come_near_the_distribution_of_enumeration() {
    for seed in 0..8 {
        let (model, rows) = sampled(100 + seed);
        let soft = model.edit().retain_rules(|rule| {
            let p = model.rule(rule).probability();
            p > 0.1 && p < 0.9
        });
        let soft = soft.build().unwrap();
        let settings = GibbsSettings { burn_in: 50, thin: 3, ..GibbsSettings::default() };
        let gibbs = Gibbs::compile(&soft, settings);
        let oracle = Enumeration::compile(&soft).unwrap();
        let sampling = Sampling { n_samples: 20_000, seed, first_row: 0 };
        let samples = gibbs.sample(&rows.row(0), &sampling).unwrap();
        let posterior = oracle.infer(&rows.row(0)).unwrap();
        for it in oracle.top(&rows.row(0), 3).unwrap() {
            let expected = (it.log_weight - posterior.log_evidence()).exp();
            let count = samples.iter().filter(|sample| **sample == it.assignment).count() as f64;
            let actual = count / samples.len() as f64;
            assert!(
                (actual - expected).abs() < 0.04,
                "{actual} instead of {expected}, seed {seed} of\n{soft}"
            );
        }
    }
}

/// The samples of a row as a batch has them: `None` if the row is impossible.
fn as_in_batch(samples: Result<Samples>) -> Result<Option<Samples>> {
    match samples {
        Err(Error::Impossible { .. }) => Ok(None),
        samples => samples.map(Some),
    }
}

#[test]
fn samples_are_the_same_alone_in_parts_and_on_any_number_of_threads() {
    let (model, rows) = sampled(3);
    let engine = JunctionTree::compile(&model).unwrap();
    let sampling = Sampling { n_samples: 6, seed: 11, first_row: 0 };
    let all = engine.sample_batch(&rows, &sampling).unwrap();
    for (row, expected) in all.iter().enumerate() {
        let sampling = Sampling { first_row: row as u64, ..sampling };
        assert_eq!(&as_in_batch(engine.sample(&rows.row(row), &sampling)), expected);
    }
    let one_thread = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    assert_eq!(one_thread.install(|| engine.sample_batch(&rows, &sampling).unwrap()), all);
    let answers = engine.infer_batch(&rows).unwrap();
    assert_eq!(one_thread.install(|| engine.infer_batch(&rows).unwrap()), answers);
}

#[test]
fn a_huge_weight_keeps_the_digits_of_other_assignments() {
    let text =
        "label a\nlabel b\nlabel c: x, y, z\nrule 0.9: a -> b\ntypical 1e17: a, b, x\ntypical 1e17: none";
    assert!(Model::parse(text).is_err()); // c must be named
    let model = Model::parse(&text.replace("none", "z")).unwrap();
    let evidence = Evidence::new().belief("a", [0.999, 0.001]).belief("c", [0.5, 0.25, 0.25]);
    let (oracle, tree) = (Enumeration::compile(&model).unwrap(), JunctionTree::compile(&model).unwrap());
    let (expected, actual) = (oracle.infer(&evidence).unwrap(), tree.infer(&evidence).unwrap());
    for (a, e) in actual.marginals().iter().zip(expected.marginals()) {
        assert!((a / e - 1.0).abs() < 1e-12, "{a} instead of {e}");
    }
    assert!(actual.marginals()[5] < 1e-17, "{}", actual.marginals()[5]); // y is in neither of them
    assert!(actual.marginals()[5] > 0.0);
}

#[test]
fn weights_of_zero_change_no_bit_of_the_weights() {
    let (model, rows) = simulated(8, 6, 4, 1);
    let idle = with_zeros(&model);
    let (with, without) = (JunctionTree::compile(&idle).unwrap(), JunctionTree::compile(&model).unwrap());
    let (with, without) = (with.infer_batch(&rows).unwrap(), without.infer_batch(&rows).unwrap());
    for row in 0..rows.n_rows() {
        assert_eq!(with.marginals(row), without.marginals(row));
        assert_eq!(with.log_evidence(row), without.log_evidence(row));
    }
}

fn with_zeros(model: &Model) -> Model {
    let n = model.labels().len();
    model.edit().add_typical(Combination::new(0.0, vec![0; n])).build().unwrap()
}

#[test]
fn combinations_do_not_make_the_impossible_possible() {
    let text = "label a\nlabel b\nrule 1 both: a & b\nrule 1 not_both: !(a & b)\ntypical 1e9: a, b\ntypical 1e9: none";
    let model = Model::parse(text).unwrap();
    let evidence = Evidence::new();
    let impossible =
        |error: Error| matches!(error, Error::Impossible { rules } if rules == ["both", "not_both"]);
    assert!(impossible(JunctionTree::compile(&model).unwrap().infer(&evidence).unwrap_err()));
    assert!(impossible(MaxProductTree::compile(&model).unwrap().best(&evidence).unwrap_err()));
    assert!(impossible(BranchAndBound::compile(&model).unwrap().best(&evidence).unwrap_err()));
    assert!(impossible(Enumeration::compile(&model).unwrap().infer(&evidence).unwrap_err()));
    // One rule excludes it, so the result is as if the combination were absent.
    let one = model.edit().remove_rule("both").build().unwrap();
    let posterior = one.infer(&Evidence::new().belief("a", [0.6, 0.4])).unwrap();
    assert!(close(posterior.log_evidence(), (0.5 * 0.4 + 0.5 + 1e9 * 0.4 * 0.5f64).ln(), 1e-9));
    // Observations exclude combinations as well.
    let posterior = one.infer(&Evidence::new().observe("a", "yes")).unwrap();
    assert_eq!(posterior.marginals(), [1.0, 0.0, 0.0, 1.0]);
}

#[test]
fn a_stopped_search_with_combinations_returns_a_valid_gap() {
    let (model, rows) = simulated(30, 60, 3, 5);
    let all = vec![0; model.labels().len()];
    let model = model.edit().add_typical(Combination::new(1e30, all.clone())).build().unwrap();
    let limits = SearchLimits { work: 1, ..SearchLimits::default() };
    let (stopped, search) =
        (BranchAndBound::compile_with(&model, limits).unwrap(), BranchAndBound::compile(&model).unwrap());
    for row in 0..rows.n_rows() {
        let (early, best) = (stopped.best(&rows.row(row)).unwrap(), search.best(&rows.row(row)).unwrap());
        assert!(best.is_optimal());
        assert_eq!(best.engine, Engine::BranchAndBound);
        assert!(best.log_weight <= early.log_weight + early.gap.unwrap() + 1e-9);
        assert!(best.log_weight >= early.log_weight - 1e-9);
    }
}

#[test]
fn editing_keeps_replaces_and_refuses() {
    let model = Model::parse("label a\nlabel b\nlabel c: x, y\ntypical 2: a, x\ntypical 3: y").unwrap();
    let larger = model.edit().binary_label("d").build().unwrap();
    assert_eq!(*larger.typical()[0].assignment(), [0, 1, 0, 1]);
    let smaller = model.edit().remove_label("b").build().unwrap();
    assert_eq!(*smaller.typical()[1].assignment(), [1, 1]);
    let message = |builder: prsl::ModelBuilder| builder.build().unwrap_err().to_string();
    insta::assert_snapshot!(
        [
            message(model.edit().label("d", ["p", "q"])),
            message(model.edit().remove_label("a")),
            message(model.edit().typical("a, x", 1.0)),
            message(model.edit().typical("b, x", -1.0)),
            message(model.edit().typical("b, x", f64::NAN)),
            message(model.edit().typical("b, x", f64::INFINITY)),
            message(model.edit().typical("b", 1.0)),
            message(model.edit().typical("b, z", 1.0)),
            message(model.edit().add_typical(Combination::new(1.0, vec![0]))),
            message(model.edit().add_typical(Combination::new(1.0, vec![0, 0, 0, 0]))),
            message(model.edit().add_typical(Combination::new(1.0, vec![0, 0, 2]))),
        ]
        .join("\n")
    );
    let replaced = model.edit().remove_typical().typical("a, b, y", 1.0).build().unwrap();
    assert_eq!(replaced.typical(), [Combination::new(1.0, vec![0, 0, 1])]);
    assert_eq!(replaced.combination_text(&replaced.typical()[0]), "a, b, y");
    assert_eq!(replaced.find_typical(&Assignment::from_indices([0, 0, 1])), Some(0));
    assert_eq!(replaced.find_typical(&Assignment::from_indices([0, 0, 0])), None);
}

#[test]
fn errors_in_combinations_are_reported() {
    let text = "\
label anger
label joy
label hands: high, centered, low
label feet: gait, standing
typical 3.5: anger, high, gait
typical 2: high, !anger, gait, not joy
typical 1: joy, hands=low, feet!=gait
typical 2.5: high, gait, anger=yes, joy=no
typical -1: joy, high, gait
typical nan: joy, high, gait
typical inf: joy, high, gait
typical 1e999: joy, high, gait
typical: joy, high, gait
typical 2 joy, high, gait
typical 2: joy, gait
typical 2: joy, high, low, gait
typical 2: joy, !high, gait
typical 2: joy, high, giat
typical 2: joy & high, gait
typical 2:
typical 2: none
typical 2: none, joy
typicla 2: joy, high, gait
";
    let Err(Error::Text(diagnostics)) = Model::parse(text) else { panic!("wrong") };
    insta::assert_snapshot!(diagnostics.render("wrong.prsl"));
}

#[test]
fn combinations_that_would_fill_the_memory_are_refused() {
    let labels: String = (0..100_000).map(|label| format!("label l{label}\n")).collect();
    let typical = |n: usize| (0..n).map(|label| format!("typical 1: l{label}\n")).collect::<String>();
    let Err(Error::Text(diagnostics)) = Model::parse(&(labels + &typical(200))) else { panic!("too large") };
    let messages: Vec<&str> = diagnostics.list().iter().map(|it| it.message.as_str()).collect();
    assert_eq!(messages, ["more combinations than fit a model of 100000 labels"; 200 - 167]);
}

#[test]
fn the_combination_of_only_no_is_called_none() {
    let model = Model::parse("label a\nlabel b\ntypical 2: none").unwrap();
    assert_eq!(model.typical(), [Combination::new(2.0, vec![1, 1])]);
    assert_eq!(model.to_string(), "label a\nlabel b\n\ntypical 2: none\n");
    // If a label is called `none`, the word means the label.
    let model = Model::parse("label a\nlabel none\ntypical 2: none\ntypical 3: a=no").unwrap();
    assert_eq!(model.typical(), [Combination::new(2.0, vec![1, 0]), Combination::new(3.0, vec![1, 1])]);
    assert_eq!(Model::parse(&model.to_string()).unwrap(), model, "{model}");
    let nothing = Model::parse("typical 2: none").unwrap();
    assert!(close(nothing.infer(&Evidence::new()).unwrap().log_evidence(), 3f64.ln(), 1e-12));
    assert_eq!(Model::parse(&nothing.to_string()).unwrap(), nothing);
}
