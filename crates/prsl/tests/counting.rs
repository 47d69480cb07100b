//! Rules that count many labels share a counter. Every exact answer agrees with enumeration.

use prsl::infer::{Enumeration, MaxProductTree, Sampling};
use prsl::{BeliefMatrix, JunctionTree, Model, Normalize};
use prsl_testkit::{EXACT, close};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// 13 labels, of which one has three categories, clauses between some of them, and rules that count all of them.
fn random_model(rng: &mut ChaCha8Rng) -> Model {
    let mut text: String = (0..12).map(|label| format!("label l{label}\n")).collect();
    text += "label wide: x, y, z\n";
    let mut literals: Vec<String> = (0..12)
        .map(|label| if rng.random_bool(0.2) { format!("!l{label}") } else { format!("l{label}") })
        .collect();
    literals.push("wide in {x, y}".to_owned());
    for _ in 0..rng.random_range(0..8) {
        let mut draw = || literals[rng.random_range(0..13)].clone();
        text += &format!("rule 0.9: {} & {} -> {}\n", draw(), draw(), draw());
    }
    for _ in 0..rng.random_range(1..4) {
        // The order of the literals does not matter.
        literals.shuffle(rng);
        let list = literals.join(", ");
        let n = rng.random_range(1..5);
        text += &match rng.random_range(0..5) {
            0 => format!("rule 0.8: at_least {n} of {{{list}}}\n"),
            1 => format!("rule 0.7: at_most {n} of {{{list}}}\n"),
            2 => format!("rule 0.9: exactly {n} of {{{list}}}\n"),
            3 => format!("rule 0.6: {}\n", literals.join(" xor ")),
            _ => format!("rule 1: at_least 1 of {{{list}}}\n"),
        };
    }
    Model::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn random_rows(model: &Model, rng: &mut ChaCha8Rng) -> BeliefMatrix {
    let mut rows = BeliefMatrix::new(model);
    for _ in 0..3 {
        let mut cells = Vec::new();
        for label in model.labels() {
            let is_known = rng.random_bool(0.9);
            cells.extend((0..label.n_categories()).map(|_| is_known.then(|| rng.random_range(0.0..1.0))));
        }
        rows.push(&cells, Normalize::Always).unwrap();
    }
    rows
}

#[test]
fn counters_agree_with_enumeration() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for _ in 0..60 {
        let model = random_model(&mut rng);
        let rows = random_rows(&model, &mut rng);
        let oracle = Enumeration::compile(&model).unwrap();
        let tree = JunctionTree::compile(&model).unwrap();
        let maxima = MaxProductTree::compile(&model).unwrap();
        let (actual, expected) = (tree.infer_batch(&rows).unwrap(), oracle.infer_batch(&rows).unwrap());
        for row in 0..rows.n_rows() {
            let instance = rows.row(row);
            assert!(close(actual.log_evidence(row), expected.log_evidence(row), EXACT), "{model}");
            let both = actual.marginals(row).unwrap().iter().zip(expected.marginals(row).unwrap());
            assert!(both.clone().all(|(a, e)| close(*a, *e, EXACT)), "row {row} of\n{model}");
            let (actual, expected) =
                (tree.agreement(&instance).unwrap(), oracle.agreement(&instance).unwrap());
            assert!(actual.iter().zip(&expected).all(|(a, e)| close(*a, *e, EXACT)), "{model}");
            let (actual, expected) = (maxima.best(&instance).unwrap(), oracle.best(&instance).unwrap());
            assert!(close(actual.log_weight, expected.log_weight, EXACT), "{model}");
        }
        let samples = tree.sample_batch(&rows, &Sampling { n_samples: 20, ..Sampling::default() }).unwrap();
        for samples in samples {
            let samples = samples.unwrap().expect("the row is possible");
            for sample in &samples {
                assert!(model.rules().iter().all(|rule| rule.weight(sample) > 0.0), "{model}");
            }
        }
    }
}

/// Each rule had a chain of its own, in the order of its labels. Rules between distant labels then multiplied the cost.
#[test]
fn clauses_beside_counts_are_cheap() {
    let mut text: String = (0..60).map(|label| format!("label l{label}\n")).collect();
    for label in 0..30 {
        text += &format!("rule 0.9: l{label} -> l{}\n", 59 - label);
    }
    let names: Vec<String> = (0..60).map(|label| format!("l{label}")).collect();
    text += &format!("rule 0.8: at_least 2 of {{{}}}\n", names.join(", "));
    text += &format!("rule 0.9: at_most 4 of {{{}}}\n", names.join(", "));
    let cost = JunctionTree::compile(&Model::parse(&text).unwrap()).unwrap().cost();
    assert!(cost.multiply_adds < 30_000.0, "{cost:?}");
}
