//! Every exact engine agrees with enumeration on random small models.

use proptest::prelude::*;
use prsl::infer::{Enumeration, MaxProductTree, Stopped};
use prsl::{BeliefMatrix, JunctionTree, Limits, Model, Normalize};
use prsl_testkit::{EXACT, close, nearly_silent, small_model};

fn many(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, max_shrink_iters: 2000, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(many(2500))]

    #[test]
    fn junction_tree_agrees_with_enumeration((model, rows) in small_model()) {
        let oracle = Enumeration::compile(&model).unwrap();
        let engine = JunctionTree::compile(&model).unwrap();
        let expected = oracle.infer_batch(&rows).unwrap();
        let actual = engine.infer_batch(&rows).unwrap();
        for row in 0..rows.n_rows() {
            prop_assert_eq!(actual.is_possible(row), expected.is_possible(row), "row {} of\n{}", row, model);
            prop_assert!(
                close(actual.log_evidence(row), expected.log_evidence(row), EXACT),
                "log Z {} instead of {} in row {:?} of\n{}",
                actual.log_evidence(row), expected.log_evidence(row), rows.row(row), model
            );
            let both = actual.marginals(row).into_iter().flatten().zip(expected.marginals(row).into_iter().flatten());
            for (a, e) in both {
                prop_assert!(close(*a, *e, EXACT), "{} instead of {} in row {:?} of\n{}", a, e, rows.row(row), model);
            }
        }
    }

    #[test]
    fn agreement_and_cavities_agree_with_enumeration((model, rows) in small_model()) {
        let oracle = Enumeration::compile(&model).unwrap();
        let engine = JunctionTree::compile(&model).unwrap();
        let without = engine.without_each_rule(&rows.row(0))?;
        for rule in model.rule_ids() {
            match (&without[rule.index()], oracle.without(&rows.row(0), rule)?) {
                (Some(actual), Some(expected)) => {
                    for (a, e) in actual.iter().zip(&expected) {
                        prop_assert!(close(*a, *e, EXACT), "{} instead of {} without {} of\n{}", a, e, rule.index(), model);
                    }
                }
                (actual, expected) => prop_assert_eq!(actual.is_some(), expected.is_some()),
            }
        }
        match (engine.agreement(&rows.row(0)), oracle.agreement(&rows.row(0))) {
            (Ok(actual), Ok(expected)) => {
                for rule in model.rule_ids() {
                    let (a, e) = (actual[rule.index()], expected[rule.index()]);
                    prop_assert!(close(a, e, EXACT), "{} instead of {} for rule {} of\n{}", a, e, rule.index(), model);
                }
            }
            (Err(actual), Err(expected)) => prop_assert_eq!(actual, expected, "{}", model),
            (actual, expected) => prop_assert!(false, "{:?} instead of {:?}", actual.is_ok(), expected.is_ok()),
        }
    }

    #[test]
    fn most_probable_explanations_agree_with_enumeration((model, rows) in small_model()) {
        let oracle = Enumeration::compile(&model).unwrap();
        let engine = MaxProductTree::compile(&model).unwrap();
        for (row, best) in engine.best_batch(&rows).unwrap().into_iter().enumerate() {
            let expected = oracle.top(&rows.row(row), 1).unwrap().into_best();
            prop_assert_eq!(best.is_some(), expected.is_some());
            if let (Some(best), Some(expected)) = (best, expected) {
                prop_assert!(
                    close(best.log_weight, expected.log_weight, EXACT),
                    "{:?} instead of {:?} in row {:?} of\n{}", best, expected, rows.row(row), model
                );
            }
        }
        let (top, expected) = (engine.top(&rows.row(0), 4).unwrap(), oracle.top(&rows.row(0), 4).unwrap());
        prop_assert_eq!(top.len(), expected.len());
        for (best, expected) in top.iter().zip(&expected) {
            prop_assert!(close(best.log_weight, expected.log_weight, EXACT), "{:?} {:?}\n{}", best, expected, model);
        }
    }

    #[test]
    fn a_printed_model_reads_back_as_itself((model, _) in small_model()) {
        let printed = model.to_string();
        prop_assert_eq!(&Model::parse(&printed).unwrap(), &model, "{}", printed);
        let formatted = prsl::Document::format(&printed).unwrap();
        prop_assert_eq!(&prsl::Document::format(&formatted).unwrap(), &formatted);
        prop_assert_eq!(&Model::parse(&formatted).unwrap(), &model);
    }

}

proptest! {
    #![proptest_config(many(500))]

    #[test]
    fn bits_do_not_depend_on_the_batch_or_threads((model, rows) in small_model()) {
        let engine = JunctionTree::compile(&model).unwrap();
        let mut repeated = BeliefMatrix::new(&model);
        for row in [0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1] {
            let cells: Vec<Option<f64>> = rows.row(row).iter().copied().map(Some).collect();
            repeated.push(&cells, Normalize::Never).unwrap();
        }
        let two = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        let together = two.install(|| engine.infer_batch(&repeated).unwrap());
        let again = JunctionTree::compile(&model).unwrap();
        for row in 0..repeated.n_rows() {
            let alone = again.infer_batch(&repeated.slice(row..row + 1)).unwrap();
            prop_assert_eq!(together.log_evidence(row).to_bits(), alone.log_evidence(0).to_bits());
            let bits = |marginals: Option<&[f64]>| marginals.map(|m| m.iter().map(|p| p.to_bits()).collect::<Vec<_>>());
            prop_assert_eq!(bits(together.marginals(row)), bits(alone.marginals(0)), "{}", model);
        }
    }

    #[test]
    fn marginals_sum_to_one_and_a_rule_of_one_half_changes_nothing((model, rows) in small_model()) {
        let engine = JunctionTree::compile(&model).unwrap();
        let vague = model.edit().rule("true", 0.5);
        let vague = match model.labels().first() {
            Some(label) => vague.noisy_or([(label.name(), label.categories()[0].as_str(), 0.25)], 0.5),
            None => vague,
        };
        let vague = JunctionTree::compile(&vague.build().unwrap()).unwrap();
        let (before, after) = (engine.infer_batch(&rows).unwrap(), vague.infer_batch(&rows).unwrap());
        for row in 0..rows.n_rows() {
            prop_assert_eq!(before.is_possible(row), after.is_possible(row));
            let Some(marginals) = before.marginals(row) else { continue };
            for label in model.label_ids() {
                prop_assert!(close(marginals[model.block(label)].iter().sum(), 1.0, EXACT));
            }
            for (a, b) in marginals.iter().zip(after.marginals(row).unwrap()) {
                prop_assert!(close(*a, *b, EXACT));
            }
        }
    }

    #[test]
    fn the_order_of_rules_does_not_matter((model, rows) in small_model()) {
        let mut builder = Model::builder();
        for label in model.labels() {
            builder = builder.add_label(label.clone());
        }
        for rule in model.rules().iter().rev() {
            builder = builder.add_rule(rule.clone());
        }
        for combination in model.typical().iter().rev() {
            builder = builder.add_typical(combination.clone());
        }
        let reversed = JunctionTree::compile(&builder.build().unwrap()).unwrap().infer_batch(&rows).unwrap();
        let posteriors = JunctionTree::compile(&model).unwrap().infer_batch(&rows).unwrap();
        for row in 0..rows.n_rows() {
            prop_assert_eq!(posteriors.is_possible(row), reversed.is_possible(row));
            for (a, b) in posteriors.marginals(row).into_iter().flatten().zip(reversed.marginals(row).into_iter().flatten()) {
                prop_assert!(close(*a, *b, EXACT));
            }
        }
    }
}

proptest! {
    #![proptest_config(many(150))]

    /// Wide rules are decomposed with signs. If it is almost certain that no rule fires, differences of almost equal
    /// numbers cancel. The plan without signs must then provide all digits.
    #[test]
    fn rows_that_cancel_with_signs_keep_their_digits(seed in any::<u64>(), size in 1i32..14) {
        let (model, rows) = nearly_silent(seed, size);
        let (engine, oracle) = (JunctionTree::compile(&model)?, Enumeration::compile(&model)?);
        prop_assert!(engine.is_careful());
        let (actual, expected) = (engine.infer_batch(&rows).unwrap(), oracle.infer_batch(&rows).unwrap());
        for row in 0..rows.n_rows() {
            prop_assert!(close(actual.log_evidence(row), expected.log_evidence(row), 10.0 * EXACT));
            for (a, b) in actual.marginals(row).unwrap().iter().zip(expected.marginals(row).unwrap()) {
                prop_assert!(close(*a, *b, EXACT), "{a} {b}");
            }
        }
    }
}

proptest! {
    #![proptest_config(many(2500))]

    /// If only a small number of labels is undecided and one of them hardly ever makes a hard rule true, Z cancels to
    /// its last bits. Then the sums over different labels agree although all are wrong.
    #[test]
    fn cancellation_is_detected_even_if_all_sums_agree(
        q in prop::array::uniform6(0.0..1.0f64),
        size in 6i32..15,
        beliefs in prop::array::uniform6(prop_oneof![4 => Just(0.0), 1 => Just(1e-200), 1 => 0.0..1.0f64]),
    ) {
        let silent = 1.0 - q[0] * 0.1f64.powi(size);
        let model = Model::parse(&format!(
            "label a\nlabel b\nlabel c\nlabel d\nlabel e\nlabel f\n\
             noisy_or 1: a {silent}, b {}, c {}, d {}, e {}, f {}\nrule 0.7: a -> b | c\nrule 0.8: d & e -> f",
            q[1], q[2], q[3], q[4], q[5],
        ))?;
        let mut rows = BeliefMatrix::new(&model);
        for surely in [1.0, beliefs[0]] {
            let beliefs = [surely, beliefs[1], beliefs[2], beliefs[3], beliefs[4], beliefs[5]];
            rows.push(&beliefs.map(|belief| [Some(belief), None]).concat(), Normalize::Never)?;
        }
        let (engine, oracle) = (JunctionTree::compile(&model)?, Enumeration::compile(&model)?);
        let (actual, expected) = (engine.infer_batch(&rows).unwrap(), oracle.infer_batch(&rows).unwrap());
        for row in 0..rows.n_rows() {
            prop_assert_eq!(actual.is_possible(row), expected.is_possible(row));
            let (a, e) = (actual.log_evidence(row), expected.log_evidence(row));
            prop_assert!(close(a, e, EXACT), "log Z {a} instead of {e} in row {:?} of\n{model}", rows.row(row));
        }
    }
}

/// The memory limit allows the plan with signs only.
#[test]
fn imprecise_rows_report_their_error() {
    let mut n_imprecise = 0;
    for (seed, size) in (0..20).zip([1, 3, 5, 7].into_iter().cycle()) {
        let (model, rows) = nearly_silent(seed, size);
        let memory = JunctionTree::compile(&model).unwrap().cost().bytes as u64;
        let engine = JunctionTree::compile_within(&model, Limits { memory }).unwrap();
        if engine.is_careful() {
            continue;
        }
        let expected = Enumeration::compile(&model).unwrap().infer_batch(&rows).unwrap();
        let actual = engine.infer_batch(&rows).unwrap();
        for row in 0..rows.n_rows() {
            assert!(actual.is_possible(row));
            let alone = engine.infer(&rows.row(row)).unwrap();
            assert_eq!(alone.stopped(), actual.stopped(row));
            let Stopped::Imprecise { error } = actual.stopped(row) else { continue };
            n_imprecise += 1;
            assert!(!actual.stopped(row).is_final() && actual.stopped(row).residual() == 0.0);
            let pairs = actual.marginals(row).unwrap().iter().zip(expected.marginals(row).unwrap());
            let worst = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            // The reported error is an estimate of its magnitude.
            assert!(worst < 10.0 * error, "off by {worst:e}, not {error:e}, in row {row} of\n{model}");
        }
    }
    assert!(n_imprecise > 20, "{n_imprecise} rows are imprecise");
}
