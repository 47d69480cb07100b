//! Models drawn as in the paper's simulation study.

use prsl::simulate::Simulation;
use prsl::{BeliefMatrix, Model};

/// A model and rows for it, as [`Simulation`] draws them.
pub fn simulated(n_labels: usize, n_rules: usize, n_rows: usize, seed: u64) -> (Model, BeliefMatrix) {
    Simulation { n_labels, n_rules, n_rows, seed }.draw().expect("tests simulate what can be")
}
