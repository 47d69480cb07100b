use super::*;
use crate::infer::enumeration::Enumeration;
use crate::infer::junction_tree::JunctionTree;
use crate::infer::junction_tree::compilation::Compilation;
use crate::infer::junction_tree::network::Split;
use crate::infer::limits::Limits;
use crate::infer::semiring::{Aim, SumProduct};
use crate::simulate::Simulation;

fn simulated(n_labels: usize, seed: u64) -> (Model, BeliefMatrix) {
    Simulation { n_labels, n_rules: n_labels, n_rows: 13, seed }.draw().expect("a model")
}

#[test]
fn a_row_has_the_same_bits_in_one_four_and_eight_lanes() {
    for (n_labels, seed) in [(6, 1), (12, 2), (20, 3)] {
        let (model, rows) = simulated(n_labels, seed);
        for split in [Split::Signed, Split::Or] {
            let compilation =
                Compilation::new(&Arc::new(Factors::new(&model)), Aim::Sum, split, Limits::default())
                    .expect("a plan");
            let runner: Runner<SumProduct> = compilation.runner(&Account::new(1 << 30)).expect("it fits");
            let bits = |_: &[f64], answer: Option<Answer>| {
                let numbers = |answer: Answer| answer.masses.into_iter().chain([answer.log_total]);
                answer.map(|answer| numbers(answer).map(f64::to_bits).collect::<Vec<u64>>())
            };
            let one = runner.batch_in(&runner.one, &rows, bits);
            assert_eq!(one, runner.batch_in(&runner.four, &rows, bits), "{n_labels} labels, four lanes");
            assert_eq!(one, runner.batch_in(&runner.eight, &rows, bits), "{n_labels} labels, eight lanes");
        }
    }
}

#[test]
fn reconfigured_plans_agree_with_enumeration() {
    for seed in 1..=6 {
        let (model, rows) = simulated(7, seed);
        let compilation =
            Compilation::new(&Arc::new(Factors::new(&model)), Aim::Sum, Split::Or, Limits::default())
                .expect("a plan");
        let runner: Runner<SumProduct> = compilation.runner(&Account::new(1 << 30)).expect("it fits");
        let (tree, oracle) =
            (JunctionTree::compile(&model).expect("a tree"), Enumeration::compile(&model).expect("small"));
        for row in (0..rows.n_rows()).map(|row| rows.row(row)) {
            let expected = oracle.infer(&row).expect("possible");
            let actual = tree.infer(&row).expect("possible");
            let log_total = runner.one(&row).log_total + runner.log_unspoken(&row);
            assert!((log_total - expected.log_evidence()).abs() < 1e-11, "seed {seed}");
            for (actual, expected) in actual.marginals().iter().zip(expected.marginals()) {
                assert!((actual - expected).abs() < 1e-11, "seed {seed}: {actual}, {expected}");
            }
        }
    }
}
