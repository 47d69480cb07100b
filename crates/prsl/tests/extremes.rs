//! Small models with extreme probabilities, from 5e-324 to 1 − 1e-16, compared with an oracle of higher precision.

use prsl::infer::{Gibbs, GibbsSettings, Sampling};
use prsl::{
    Assignment, BeliefMatrix, BranchAndBound, Engines, Evidence, JunctionTree, Loopy, Model, Normalize,
};
use prsl_testkit::{
    Checked, Extreme, Precise, check_assignments, check_circuit, check_loopy, check_marginals, check_samples,
    check_scores, check_search, extreme_model,
};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

/// Number of models. `make test-extremes` sets a larger one.
fn n_models() -> u64 {
    std::env::var("PRSL_EXTREMES").ok().and_then(|n| n.parse().ok()).unwrap_or(2000)
}

/// Checks all models, and prints the first failures.
fn all(check: fn(&Extreme) -> Checked) {
    let wrong = |seed: u64| {
        let extreme = extreme_model(&mut ChaCha8Rng::seed_from_u64(seed));
        let checked =
            std::panic::catch_unwind(|| check(&extreme)).unwrap_or_else(|_| Err("panicked".to_owned()));
        let rows = || (0..3).map(|row| format!("{:?}\n", &extreme.rows.row(row)[..])).collect::<String>();
        checked.err().map(|wrong| (seed, format!("seed {seed}: {wrong}\n{}{}", extreme.model, rows())))
    };
    let mut found: Vec<(u64, String)> = (0..n_models()).into_par_iter().filter_map(wrong).collect();
    found.sort();
    let shown: String = found.iter().take(3).map(|(_, text)| format!("{text}\n")).collect();
    assert!(found.is_empty(), "{} of {} models are answered wrongly\n{shown}", found.len(), n_models());
}

#[test]
fn marginals_are_precise() {
    all(check_marginals);
}

#[test]
fn circuits_are_precise() {
    all(check_circuit);
}

#[test]
fn explanations_are_the_best() {
    all(check_assignments);
}

#[test]
fn branch_and_bound_finds_the_best() {
    all(check_search);
}

#[test]
fn samples_are_possible_and_as_frequent_as_probable() {
    all(check_samples);
}

#[test]
fn likelihoods_of_truths_are_precise() {
    all(check_scores);
}

#[test]
fn loopy_propagation_is_exact_on_trees_and_never_undefined() {
    all(check_loopy);
}

#[test]
fn errors_that_overflow_while_tables_are_scaled_were_forgotten() {
    let extreme = extreme_model(&mut ChaCha8Rng::seed_from_u64(46_247));
    assert_eq!(check_marginals(&extreme), Ok(()));
    assert_eq!(check_scores(&extreme), Ok(()));
}

/// A model of yes/no labels, and one row of beliefs in yes.
fn yes_no(text: &str, beliefs: &[f64]) -> Extreme {
    let model = Model::parse(text).expect("valid");
    let mut rows = BeliefMatrix::new(&model);
    let cells: Vec<Option<f64>> = beliefs.iter().flat_map(|&belief| [Some(belief), None]).collect();
    // The checks require three rows.
    (0..3).for_each(|_| rows.push(&cells, Normalize::Never).expect("valid"));
    Extreme { model, rows }
}

fn check_all(extreme: &Extreme) {
    for check in [
        check_marginals,
        check_circuit,
        check_assignments,
        check_search,
        check_samples,
        check_scores,
        check_loopy,
    ] {
        check(extreme).unwrap_or_else(|wrong| panic!("{wrong}\n{}", extreme.model));
    }
}

fn assert_near(actual: f64, expected: f64) {
    assert!((actual - expected).abs() <= 1e-9 * expected.abs(), "{actual:e} instead of {expected:e}");
}

/// A group of merged rules was split if its table had entries below 1e-100, and the second half had the wrong shape.
#[test]
fn nested_rules_with_tiny_probabilities_made_loopy_propagation_panic() {
    let extreme = yes_no("label a\nlabel b\nlabel c\nrule 1e-60: a|b|c\nrule 1e-60: a|b", &[0.5, 0.5, 0.5]);
    check_all(&extreme);
    let (model, row) = (&extreme.model, extreme.rows.row(0));
    let loopy = Loopy::compile(model).unwrap().infer(&row).unwrap();
    for (actual, expected) in loopy.marginals().iter().zip(Precise::new(model).sums(&row).marginals) {
        assert_near(*actual, expected);
    }
}

#[test]
fn merged_rules_with_small_products_were_propagated_as_a_cycle() {
    let mut text = "label a\nlabel b\n".to_owned();
    text += &"rule 0.999999999999999: a | b\n".repeat(6);
    text += "noisy_or 0.999999999999999: b 0.9, a 0.0001\n";
    let extreme = yes_no(&text, &[0.5, 0.5]);
    check_all(&extreme);
    let posterior = Loopy::compile(&extreme.model).unwrap().infer(&extreme.rows.row(0)).unwrap();
    let expected = Precise::new(&extreme.model).sums(&extreme.rows.row(0)).marginals;
    assert!((expected[0] - 0.952).abs() < 1e-3 && (expected[2] - 0.524).abs() < 1e-3);
    posterior.marginals().iter().zip(expected).for_each(|(actual, expected)| assert_near(*actual, expected));
}

#[test]
fn a_silence_too_small_for_a_number_was_called_impossible() {
    let text = "label s0\nlabel s1\nlabel h\nnoisy_or 0: s0 1e-200, s1 1e-200\nrule 0.7: s0 -> h";
    let extreme = yes_no(text, &[1.0, 1.0, 0.5]);
    check_all(&extreme);
    let posterior = JunctionTree::compile(&extreme.model).unwrap().infer(&extreme.rows.row(0)).unwrap();
    assert!((posterior.log_evidence() - (400.0 * 0.1f64.ln() + 0.5f64.ln())).abs() < 1e-9);
    assert_near(posterior.marginals()[4], 0.7);
}

#[test]
fn marginals_and_explanations_of_a_wide_silence_contradicted_each_other() {
    let labels: Vec<String> = (0..200).map(|label| format!("s{label}")).collect();
    let declared: String = labels.iter().map(|label| format!("label {label}\n")).collect();
    let text = format!("{declared}label h\nnoisy_or 0: {} 0.01\nrule 0.7: s0 -> h", labels.join(" 0.01, "));
    let model = Model::parse(&text).unwrap();
    let evidence = labels.iter().fold(Evidence::new(), |evidence, label| evidence.observe(label, "yes"));
    let log_weight = 200.0 * 0.01f64.ln() + 0.5f64.ln();
    let posterior = JunctionTree::compile(&model).unwrap().infer(&evidence).unwrap();
    assert!((posterior.log_evidence() - log_weight).abs() < 1e-9);
    assert_near(posterior.marginals()[400], 0.7);
    let row = model.row(&evidence).unwrap();
    let explained = [
        BranchAndBound::compile(&model).unwrap().best(&row),
        Engines::new(&model).assignments().unwrap().best(&row),
        Loopy::compile(&model).unwrap().best(&row),
    ];
    for best in explained {
        assert!((best.expect("possible").log_weight - log_weight - 0.7f64.ln()).abs() < 1e-9);
    }
    let loopy = Loopy::compile(&model).unwrap().infer(&evidence).unwrap();
    assert!((loopy.log_evidence() - log_weight).abs() < 1e-9);
    let sampler = Engines::new(&model).sampler().unwrap();
    assert_eq!(sampler.sample(&evidence, &Sampling::default()).unwrap()[0].indices()[..200], [0; 200]);
}

/// Thirteen labels `b` are equal, and twelve labels `a` are their opposite. All `b` yes has probability 1e-29.
#[test]
fn samples_along_a_chain_of_hard_rules_were_affected_by_underflow() {
    let names: Vec<String> =
        (0..13).map(|b| format!("b{b}")).chain((0..12).map(|a| format!("a{a}"))).collect();
    let mut text: String = names.iter().map(|name| format!("label {name}\n")).collect();
    for (place, pair) in names.windows(2).enumerate() {
        text += &format!("rule 1: {} <-> {}{}\n", pair[0], if place == 12 { "!" } else { "" }, pair[1]);
    }
    let extreme = yes_no(&text, &[1e-29; 25]);
    let posterior = JunctionTree::compile(&extreme.model).unwrap().infer(&extreme.rows.row(0)).unwrap();
    assert_near(posterior.marginals()[0], 1e-29);
    let sampler = Engines::new(&extreme.model).sampler().unwrap();
    let expected = Assignment::from_indices([[1; 13].as_slice(), &[0; 12]].concat());
    for n_samples in [4, 100] {
        let sampling = Sampling { n_samples, ..Sampling::default() };
        for samples in sampler.sample_batch(&extreme.rows.select(&[0; 8]), &sampling).unwrap() {
            assert!(samples.unwrap().unwrap().iter().all(|sample| *sample == expected));
        }
    }
}

#[test]
fn possible_categories_of_tiny_probability_had_probability_zero() {
    let text = "label a\nlabel b\nrule 0.9: a -> b";
    for belief in [5e-324, 1e-310, 1e-300, 1e-260, 1e-218] {
        let extreme = yes_no(text, &[belief, 0.3]);
        check_all(&extreme);
        let posterior = JunctionTree::compile(&extreme.model).unwrap().infer(&extreme.rows.row(0)).unwrap();
        assert!(posterior.marginals()[0] > 0.0);
    }
    for size in [-10, -80, -140, -200, -280] {
        let tiny = 10f64.powi(size);
        check_all(&yes_no(
            "label a\nlabel b\nlabel c\nrule 1: a <-> b\nrule 1: b <-> c\nrule 0.3: a",
            &[tiny; 3],
        ));
        check_all(&yes_no(&format!("label a\nlabel b\nrule {tiny}: a\nrule 0.9: a -> b"), &[1e-20, 0.5]));
        check_all(&yes_no(
            &format!("label a\nlabel b\nrule {tiny}: a\nrule {tiny}: b\nrule 1: a | b"),
            &[tiny; 2],
        ));
    }
}

/// A combination of weight 1e233 made the probabilities of all other assignments underflow.
#[test]
fn a_combination_of_great_weight_made_everything_else_impossible() {
    let extreme = yes_no("label a\nlabel b\nrule 0.9: a -> b\ntypical 1e233: b", &[1e-222, 0.5]);
    check_all(&extreme);
}

/// A noisy-or decomposed with signs: 1 minus almost 1, for a category of probability 1e-12.
#[test]
fn small_marginals_lost_digits_to_signs() {
    let model = Model::parse(
        "label l0: c0, c1\nlabel l1: c0, c1, c2\nlabel l2: c0, c1, c2\nlabel l3: c0, c1, c2, c3\n\
         rule 0.06967506313084781: l0=c0 <-> l1=c1\nrule 0.06967506313084781: l1=c0 <-> l2=c0\n\
         rule 0.06967506313084781: l2=c0 -> l3=c1\n\
         noisy_or 0.999999999999936: l0=c1 3.0180108259525814e-7, l1=c1 0.5, l2=c0 0.6585790899747567, \
         l3=c2 0.46793538986121064, l3=c3 2.43e-321",
    )
    .unwrap();
    let (rare, usual) = (8.326672684688674e-16, 0.9999999999999983);
    let cells = [0.5, 0.5, usual, rare, rare, rare, usual, rare, usual, rare, rare, rare].map(Some);
    let mut rows = BeliefMatrix::new(&model);
    (0..3).for_each(|_| rows.push(&cells, Normalize::Always).unwrap());
    check_all(&Extreme { model, rows });
}

/// The rule about `b` makes `c=no` 1e43 times as probable as its belief, but it remains very improbable. So the error
/// of a difference of almost equal numbers is not visible in Z.
#[test]
fn cancellation_errors_were_hidden_by_beliefs_near_zero() {
    let model = Model::parse(
        "label a: c0, c1, c2, c3\nlabel b\nlabel c\nlabel d\n\
         rule 1.4007038800335502e-56: b -> c\n\
         noisy_or 0.9999999999999999: c 1.4423924501480248e-6, a=c0 0.8236922566741213, \
         a=c2 0.9999999999999999, a=c3 0.999999999998685, d 0.9999999999986009, b 0.9999999999999999",
    )
    .unwrap();
    let (tiny, third) = (6.7630228914146e-278, 0.3333333333333333);
    let cells = [tiny, third, third, third, 1.0, tiny, 1.0, tiny, 0.5, 0.5].map(Some);
    let mut rows = BeliefMatrix::new(&model);
    (0..3).for_each(|_| rows.push(&cells, Normalize::Always).unwrap());
    check_all(&Extreme { model, rows });
}

#[test]
fn gibbs_sampling_found_no_start_in_a_silence_too_small_for_a_number() {
    let extreme = yes_no("label a\nlabel b\nnoisy_or 0: a 1e-200, b 1e-200", &[1.0, 1.0]);
    let gibbs = Gibbs::compile(&extreme.model, GibbsSettings::default());
    assert_eq!(gibbs.sample(&extreme.rows.row(0), &Sampling::default()).unwrap(), [[0, 0]]);
}

/// Thirteen labels are too many for a table, so their best weights are computed label by label.
#[test]
fn the_best_of_a_wide_noisy_or_with_tiny_inhibitions_is_possible() {
    let declared: String = (0..13).map(|label| format!("label l{label}\n")).collect();
    for p in ["0", "1e-300", "0.3"] {
        let inhibitions: Vec<String> = (0..13).map(|label| format!("l{label} 1e-{}", 100 + label)).collect();
        let extreme =
            yes_no(&format!("{declared}noisy_or {p}: {}", inhibitions.join(", ")), &[1.0 - 1e-16; 13]);
        let expected = Precise::new(&extreme.model).sums(&extreme.rows.row(0)).log_weights[0];
        let best = Loopy::compile(&extreme.model).unwrap().best(&extreme.rows.row(0)).expect("possible");
        assert!(
            (best.log_weight - expected).abs() <= 1e-9 * expected.abs(),
            "{best:?} instead of {expected}"
        );
        check_search(&extreme).unwrap_or_else(|wrong| panic!("{wrong} at {p}"));
    }
}
