//! Rows for learning, and what engines answer about them.

use crate::model::Model;

/// Number of rows whose sums are added up in one go: eight lanes, eight times.
pub(crate) const CHUNK: usize = 64;

/// Rows of calibrated beliefs with their weights.
pub(crate) struct Rows<'a> {
    /// All rows one after the other.
    pub(crate) values: &'a [f64],
    /// Number of categories of all labels.
    pub(crate) width: usize,
    pub(crate) weights: &'a [f64],
}

impl Rows<'_> {
    pub(crate) fn n_rows(&self) -> usize {
        self.weights.len()
    }

    pub(crate) fn values_of(&self, row: usize) -> &[f64] {
        &self.values[row * self.width..(row + 1) * self.width]
    }
}

/// The answers for some rows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Expectations {
    /// ln Z of each row; −∞ if it is impossible.
    pub(crate) log_evidence: Vec<f64>,
    /// The marginals, row by row.
    pub(crate) marginals: Vec<f64>,
    /// For each rule, the sum over possible rows of weight · P(the rule is violated | row).
    pub(crate) violated: Vec<f64>,
}

/// Adds the marginals of a row, given the masses of its categories.
pub(crate) fn push_marginals(model: &Model, masses: &[f64], marginals: &mut Vec<f64>) {
    let start = marginals.len();
    marginals.extend(masses);
    for label in model.label_ids() {
        let block = model.block(label);
        let masses = &mut marginals[start + block.start..start + block.end];
        let total: f64 = masses.iter().sum();
        if total > 0.0 {
            masses.iter_mut().for_each(|mass| *mass /= total);
        }
    }
}
