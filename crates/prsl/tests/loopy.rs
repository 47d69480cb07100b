//! Loopy propagation is exact on trees and reproducible everywhere. The authors' settings give the authors' numbers.

use proptest::prelude::*;
use prsl::infer::{Decoded, Enumeration, LoopySettings, Schedule, Stopped};
use prsl::{
    Assignment, BeliefMatrix, Engine, Error, Evidence, JunctionTree, Loopy, Model, Normalize, Posteriors,
};
use prsl_testkit::{EXACT, close, golden, simulated, small_model, small_tree};

fn many(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, max_shrink_iters: 2000, failure_persistence: None, ..ProptestConfig::default() }
}

/// Settings that run until only the last bits change.
fn to_the_end(schedule: Schedule, merge: bool) -> LoopySettings {
    LoopySettings { schedule, merge, tolerance: 1e-14, max_sweeps: 100, ..LoopySettings::default() }
}

/// Tolerance of log weights. Each label takes the first category within 1e-9 of its best one.
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
        let expected = Enumeration::compile(&model).unwrap().infer_batch(&rows).unwrap();
        for (schedule, merge) in SCHEDULES.into_iter().flat_map(|schedule| [(schedule, true), (schedule, false)]) {
            let actual = Loopy::compile_with(&model, to_the_end(schedule, merge)).unwrap().infer_batch(&rows).unwrap();
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
            match (engine.agreement(&rows.row(0)), oracle.agreement(&rows.row(0))) {
                (Ok(actual), Ok(expected)) => {
                    for rule in model.rule_ids() {
                        let (a, e) = (actual[rule.index()], expected[rule.index()]);
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
            for (row, decoded) in engine.decode_batch(&rows).unwrap().into_iter().enumerate() {
                let expected = oracle.top(&rows.row(row), 1).unwrap().into_best();
                prop_assert_eq!(decoded.is_some(), expected.is_some());
                if let (Some(Decoded { best, .. }), Some(expected)) = (decoded, expected) {
                    let best = best.expect("nothing misleads on a tree");
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
        let exact = Enumeration::compile(&model).unwrap().infer_batch(&rows).unwrap();
        for schedule in SCHEDULES {
            let settings = LoopySettings { schedule, max_sweeps: 30, ..LoopySettings::default() };
            let posteriors = Loopy::compile_with(&model, settings).unwrap().infer_batch(&rows).unwrap();
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
    fn bits_do_not_depend_on_the_batch_or_threads((model, rows) in small_model()) {
        let order = [0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 1, 1, 2, 0, 0, 2];
        let rows = repeated(&model, &rows, &order);
        let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let two = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        for schedule in SCHEDULES {
            let settings = LoopySettings { schedule, max_sweeps: 7, ..LoopySettings::default() };
            let engine = Loopy::compile_with(&model, settings).unwrap();
            let (sums, maxima) = (two.install(|| engine.infer_batch(&rows).unwrap()), two.install(|| engine.decode_batch(&rows).unwrap()));
            prop_assert_eq!(&one.install(|| engine.decode_batch(&rows).unwrap()), &maxima);
            let again = one.install(|| engine.infer_batch(&rows).unwrap());
            for row in 0..rows.n_rows() {
                let alone = engine.infer_batch(&rows.slice(row..row + 1)).unwrap();
                for other in [(&again, row), (&alone, 0)] {
                    prop_assert_eq!(sums.log_evidence(row).to_bits(), other.0.log_evidence(other.1).to_bits(), "{:?} {}", schedule, model);
                    prop_assert_eq!(bits(sums.marginals(row)), bits(other.0.marginals(other.1)), "{:?} {}", schedule, model);
                    prop_assert_eq!(sums.stopped(row), other.0.stopped(other.1));
                }
                let best = engine.best(&rows.row(row)).ok();
                prop_assert_eq!(maxima[row].as_ref().and_then(|decoded| decoded.best.as_ref()), best.as_ref());
                if let Ok(posterior) = engine.infer(&rows.row(row)) {
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
        let posteriors = engine.infer_batch(&golden.rows).unwrap();
        for (row, expected) in golden.approx_marginals.iter().enumerate() {
            let actual = posteriors.marginals(row).expect("all golden rows are possible");
            let worst = actual.iter().zip(expected).map(|(a, e)| (a - e).abs()).fold(0.0, f64::max);
            assert!(worst < 1e-8, "{} row {}: off by {worst:e}", golden.name, row + 1);
        }
        let best = engine.decode_batch(&golden.rows).unwrap();
        for (row, expected) in golden.approx_mpe.iter().flatten().enumerate() {
            if !golden.approx_mpe_unstable_rows.contains(&row) {
                let decoded = best[row].as_ref().expect("all golden rows are possible");
                match &decoded.best {
                    Some(best) => {
                        assert_eq!(best.assignment.indices(), expected, "{} row {}", golden.name, row + 1)
                    }
                    None => {
                        let log_weight = golden
                            .model
                            .log_weight(&golden.rows.row(row), &Assignment::from_indices(&expected[..]));
                        assert_eq!(log_weight, f64::NEG_INFINITY, "{} row {}", golden.name, row + 1);
                    }
                }
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
fn default_settings_are_more_accurate_than_the_authors() {
    for prefix in ["small", "medium", "almostLarge"] {
        let (mut ours, mut theirs) = (0.0, 0.0);
        for golden in golden(prefix) {
            let posteriors = Loopy::compile(&golden.model).unwrap().infer_batch(&golden.rows).unwrap();
            ours += mean_error(&posteriors, &golden.exact_marginals);
            let authors = Loopy::compile_with(&golden.model, LoopySettings::authors()).unwrap();
            theirs += mean_error(&authors.infer_batch(&golden.rows).unwrap(), &golden.exact_marginals);
        }
        assert!(ours <= theirs, "{prefix}: {ours} instead of {theirs}");
    }
}

fn marginal(posterior: &prsl::Posterior, label: &str, model: &Model) -> Vec<f64> {
    posterior.marginal(model.find_label(label).unwrap()).to_vec()
}

fn assert_agreement_is_exact(model: &Model, evidence: &Evidence) {
    let exact = Enumeration::compile(model).unwrap().agreement(evidence).unwrap();
    let actual = Loopy::compile(model).unwrap().agreement(evidence).unwrap();
    assert_eq!(actual.len(), model.rules().len());
    assert!(actual.iter().zip(&exact).all(|(a, e)| close(*a, *e, EXACT)), "{actual:?} instead of {exact:?}");
}

#[test]
fn merged_implications_form_no_cycle() {
    let ring = Model::parse("label a\nlabel b\nrule 1: a -> b\nrule 1: b -> a").unwrap();
    let both = Model::parse("label a\nlabel b\nrule 1: a <-> b").unwrap();
    let evidence = Evidence::new().belief("a", [0.4, 0.6]).belief("b", [0.4, 0.6]);
    let merged = Loopy::compile(&ring).unwrap().infer(&evidence).unwrap();
    let as_one = Loopy::compile(&both).unwrap().infer(&evidence).unwrap();
    for (label, model) in [("a", &ring), ("b", &ring)] {
        let yes = marginal(&merged, label, model)[1];
        assert!(close(yes, 0.36 / 0.52, EXACT), "{yes}");
        assert!(close(yes, marginal(&as_one, label, &both)[1], EXACT));
    }
    assert!(close(merged.log_evidence(), 0.52f64.ln(), EXACT));
    assert_agreement_is_exact(&ring, &evidence);
    let unmerged = LoopySettings { merge: false, ..LoopySettings::default() };
    let cyclic = Loopy::compile_with(&ring, unmerged).unwrap().infer(&evidence).unwrap();
    assert!(
        marginal(&cyclic, "a", &ring)[1] > 0.9,
        "without merging, the cycle counts evidence more than once"
    );
}

#[test]
fn a_rule_joins_the_rule_that_contains_all_its_labels() {
    let text = "label a\nlabel b\nlabel c\nrule 0.9: exactly 1 of {a, b, c}\nrule 0.8: a -> b\nrule 0.7: c\nrule 0.6: b <-> c";
    let model = Model::parse(text).unwrap();
    let evidence = Evidence::new().belief("a", [0.3, 0.7]).belief("b", [0.6, 0.4]);
    let exact = Enumeration::compile(&model).unwrap().infer(&evidence).unwrap();
    let merged = Loopy::compile(&model).unwrap().infer(&evidence).unwrap();
    for (a, e) in merged.marginals().iter().zip(exact.marginals()) {
        assert!(close(*a, *e, EXACT));
    }
    assert_agreement_is_exact(&model, &evidence);
}

#[test]
fn a_thousand_rules_on_one_label() {
    let mut text = "label a: x, y, z\nlabel b\n".to_owned();
    for index in 0..1000 {
        text += &format!("rule {}: {}\n", [0.9, 0.2, 0.6][index % 3], ["x", "y", "z | b", "!x"][index % 4]);
    }
    let model = Model::parse(&text).unwrap();
    let mut rows = BeliefMatrix::new(&model);
    rows.push(&[Some(0.2), Some(0.3), Some(0.5), Some(0.5), Some(0.5)], Normalize::Never).unwrap();
    let exact = Enumeration::compile(&model).unwrap().infer_batch(&rows).unwrap();
    // Rules over the same two labels form cycles unless they are merged.
    let tree = Model::parse(&text.replace("z | b", "z")).unwrap();
    let exact_tree = Enumeration::compile(&tree).unwrap().infer_batch(&rows).unwrap();
    for schedule in SCHEDULES {
        for (model, exact, merge) in
            [(&tree, &exact_tree, true), (&tree, &exact_tree, false), (&model, &exact, true)]
        {
            let settings = LoopySettings { schedule, merge, ..LoopySettings::default() };
            let actual = Loopy::compile_with(model, settings).unwrap().infer_batch(&rows).unwrap();
            assert!(actual.log_evidence(0).is_finite());
            if model == &tree {
                assert!(close(actual.log_evidence(0), exact.log_evidence(0), 1e-9), "{schedule:?}");
                for (a, e) in actual.marginals(0).unwrap().iter().zip(exact.marginals(0).unwrap()) {
                    assert!(close(*a, *e, 1e-9), "{schedule:?}: {a} instead of {e}");
                }
            }
        }
    }
}

#[test]
fn wide_rules_are_cheap() {
    let mut builder = Model::builder();
    let names: Vec<String> = (0..100).map(|index| format!("l{index}")).collect();
    for name in &names {
        builder = builder.binary_label(name);
    }
    let model = builder
        .rule(names.join(" | "), 0.99)
        .rule(format!("at_most 2 of {{{}}}", names[..40].join(", ")), 0.95)
        .build()
        .unwrap();
    let mut rows = BeliefMatrix::new(&model);
    for row in 0..20 {
        let cells: Vec<Option<f64>> =
            (0..100).flat_map(|l| [None, Some(0.02 + 0.01 * f64::from((l * 7 + row) % 5))]).collect();
        rows.push(&cells, Normalize::Never).unwrap();
    }
    // The two rules share forty labels, which forms cycles.
    let exact = JunctionTree::compile(&model).unwrap().infer_batch(&rows).unwrap();
    let engine = Loopy::compile(&model).unwrap();
    let actual = engine.infer_batch(&rows).unwrap();
    for row in 0..rows.n_rows() {
        assert!(actual.stopped(row).is_final());
        for (a, e) in actual.marginals(row).unwrap().iter().zip(exact.marginals(row).unwrap()) {
            assert!((a - e).abs() < 0.01, "{a} instead of {e}");
        }
    }
    assert!(
        engine
            .decode_batch(&rows)
            .unwrap()
            .iter()
            .all(|best| best.as_ref().is_some_and(|b| b.best.is_some()))
    );
}

#[test]
fn wide_noisy_or_rules_find_the_best_explanation() {
    for seed in 0..40u32 {
        let names: Vec<String> = (0..14).map(|index| format!("l{index}")).collect();
        let mut builder = Model::builder();
        for name in &names {
            builder = builder.binary_label(name);
        }
        let number = |index: u32| f64::from((index * 7919 + seed * 104_729 + 13) % 1009) / 1009.0;
        let q: Vec<f64> = (0..14).map(number).collect();
        let probability = [1.0, 0.0, 0.9, 0.2][seed as usize % 4];
        let inhibitions = names.iter().zip(&q).map(|(name, &q)| (name.as_str(), "yes", q));
        let model = builder.noisy_or(inhibitions, probability).build().unwrap();
        let mut rows = BeliefMatrix::new(&model);
        let cells: Vec<Option<f64>> = (0..14).flat_map(|l| [None, Some(number(100 + l) * 0.6)]).collect();
        rows.push(&cells, Normalize::Never).unwrap();
        let expected = Enumeration::compile(&model).unwrap().best(&rows.row(0)).unwrap();
        let best = Loopy::compile(&model).unwrap().best(&rows.row(0)).unwrap();
        assert!(close(best.log_weight, expected.log_weight, TIES), "{best:?} instead of {expected:?}");
        assert_eq!((best.engine, best.gap), (Engine::Loopy, None));
    }
}

#[test]
fn tiny_beliefs_do_not_underflow() {
    // The rows contradict the rules so strongly that weights underflow.
    let mut text = "label a\n".to_owned();
    for index in 0..6 {
        text += &format!("label b{index}\nrule 1: a <-> b{index}\n");
    }
    let model = Model::parse(&text).unwrap();
    let mut rows = BeliefMatrix::new(&model);
    for tiny in [1e-300, 0.25] {
        let mut cells = vec![Some(1.0), Some(tiny)];
        (0..6).for_each(|_| cells.extend([Some(tiny), Some(1.0)]));
        rows.push(&cells, Normalize::Always).unwrap();
    }
    let exact = Enumeration::compile(&model).unwrap().infer_batch(&rows).unwrap();
    for schedule in SCHEDULES {
        let settings = LoopySettings { schedule, ..LoopySettings::default() };
        let engine = Loopy::compile_with(&model, settings).unwrap();
        let actual = engine.infer_batch(&rows).unwrap();
        for row in 0..2 {
            assert!(close(actual.log_evidence(row), exact.log_evidence(row), 1e-9), "{schedule:?}");
            for (a, e) in actual.marginals(row).unwrap().iter().zip(exact.marginals(row).unwrap()) {
                assert!(close(*a, *e, 1e-9), "{schedule:?}: {a} instead of {e}");
            }
            assert_eq!(engine.best(&rows.row(row)).unwrap().assignment, [1; 7]);
        }
    }
}

#[test]
fn an_impossible_row_is_an_answer_for_that_row_alone() {
    let text = "label a\nlabel b\nlabel c\nrule 1 first: a -> b\nrule 0.7 soft: c\nrule 1 second: b -> c";
    let model = Model::parse(text).unwrap();
    let mut rows = BeliefMatrix::new(&model);
    let possible = Evidence::new().observe("a", "yes");
    let impossible = Evidence::new().observe("a", "yes").observe("c", "no");
    for evidence in [&possible, &impossible, &possible] {
        rows.push_evidence(evidence).unwrap();
    }
    for schedule in SCHEDULES {
        let engine =
            Loopy::compile_with(&model, LoopySettings { schedule, ..LoopySettings::default() }).unwrap();
        let posteriors = engine.infer_batch(&rows).unwrap();
        assert_eq!([0, 1, 2].map(|row| posteriors.is_possible(row)), [true, false, true]);
        assert_eq!(
            engine.decode_batch(&rows).unwrap().iter().map(Option::is_some).collect::<Vec<_>>(),
            [true, false, true]
        );
        let error = Error::Impossible { rules: vec!["first".to_owned(), "second".to_owned()] };
        assert_eq!(engine.infer(&impossible).unwrap_err(), error);
        assert_eq!(engine.best(&impossible).unwrap_err(), error);
        assert_eq!(engine.best(&rows.row(1)).ok(), None);
    }
}

#[test]
fn rows_that_do_not_converge_are_retried_and_reported() {
    let (model, rows) = simulated(30, 30, 200, 7);
    let short = LoopySettings { max_sweeps: 6, ..LoopySettings::default() };
    let engine = Loopy::compile_with(&model, short).unwrap();
    let once = Loopy::compile_with(&model, LoopySettings { retry: false, ..short }).unwrap();
    let (posteriors, single) = (engine.infer_batch(&rows).unwrap(), once.infer_batch(&rows).unwrap());
    let mut n_limited = 0;
    for row in 0..rows.n_rows() {
        match posteriors.stopped(row) {
            Stopped::Converged { sweeps, residual } => assert!(sweeps <= 6 && residual <= 1e-6),
            Stopped::NotConverged { sweeps, residual } => {
                n_limited += 1;
                assert!(sweeps == 6 && residual > 1e-6 && residual <= single.stopped(row).residual());
            }
            stopped => panic!("{stopped:?}"),
        }
    }
    assert!(n_limited > 0);
    let damped = LoopySettings { damping: 0.9, max_sweeps: 2000, ..LoopySettings::default() };
    let damped = Loopy::compile_with(&model, damped).unwrap().infer_batch(&rows).unwrap();
    let default = Loopy::compile(&model).unwrap().infer_batch(&rows).unwrap();
    for row in
        (0..rows.n_rows()).filter(|&row| default.stopped(row).is_final() && damped.stopped(row).is_final())
    {
        for (a, b) in damped.marginals(row).unwrap().iter().zip(default.marginals(row).unwrap()) {
            assert!((a - b).abs() < 1e-3, "a fixed point stays one under damping");
        }
    }
}

#[test]
fn assignments_have_their_own_sweep_limit() {
    let (model, rows) = simulated(30, 30, 100, 7);
    let compile = |assignment_sweeps| {
        Loopy::compile_with(&model, LoopySettings { assignment_sweeps, ..LoopySettings::default() }).unwrap()
    };
    let [short, default] = [3, LoopySettings::default().assignment_sweeps].map(|sweeps| {
        let engine = compile(sweeps);
        let stopped =
            engine.decode_batch(&rows).unwrap().into_iter().map(|decoded| decoded.expect("possible").stopped);
        let limited =
            stopped.filter(|stopped| !stopped.is_final()).inspect(|it| assert_eq!(it.sweeps(), sweeps));
        (limited.count(), engine.infer_batch(&rows).unwrap())
    });
    assert!(short.0 > default.0 && default.0 > 0, "{} and {} rows do not rest", short.0, default.0);
    assert_eq!(short.1, default.1);
}

#[test]
fn settings_out_of_range_are_refused() {
    let model = Model::parse("label a").unwrap();
    let refused =
        |settings: LoopySettings| Loopy::compile_with(&model, settings).err().map(|error| error.to_string());
    let default = LoopySettings::default();
    assert_eq!(
        refused(LoopySettings { damping: 1.0, ..default }).unwrap(),
        "setting `damping` is 1, expected a number from 0 to below 1"
    );
    assert_eq!(
        refused(LoopySettings { tolerance: f64::NAN, ..default }).unwrap(),
        "setting `tolerance` is NaN, expected a number of at least 0"
    );
    assert_eq!(
        refused(LoopySettings { max_sweeps: 0, ..default }).unwrap(),
        "setting `max_sweeps` is 0, expected at least 1"
    );
    assert_eq!(
        refused(LoopySettings { assignment_sweeps: 0, ..default }).unwrap(),
        "setting `assignment_sweeps` is 0, expected at least 1"
    );
    assert_eq!(refused(default), None);
}

#[test]
fn models_without_rules_or_labels_keep_their_beliefs() {
    for text in ["", "label a: x, y, z", "label a\nrule 0.3: true\nrule 0.6: a | !a"] {
        let model = Model::parse(text).unwrap();
        let exact = Enumeration::compile(&model).unwrap().infer(&Evidence::new()).unwrap();
        let actual = Loopy::compile(&model).unwrap().infer(&Evidence::new()).unwrap();
        for (a, e) in actual.marginals().iter().zip(exact.marginals()) {
            assert!(close(*a, *e, EXACT), "{text}");
        }
        assert!(close(actual.log_evidence(), exact.log_evidence(), EXACT), "{text}");
        assert_agreement_is_exact(&model, &Evidence::new());
    }
    let never = Loopy::compile(&Model::parse("label a\nrule 1 never: false").unwrap()).unwrap();
    let error = Error::Impossible { rules: vec!["never".to_owned()] };
    assert_eq!(never.infer(&Evidence::new()).unwrap_err(), error);
}
