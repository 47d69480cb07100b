//! Truth tables of rules: complete for small rules, a sample of assignments otherwise.

use crate::label::LabelId;
use crate::logic::Truth;
use crate::model::Model;
use crate::rule::Rule;

/// Maximum number of rows. Rules with more assignments are sampled.
const MAX_ROWS: usize = 256;
/// Maximum number of rows for rules with more than [`MANY_PARTS`] parts. The rows are the first ones of the sample,
/// so that rules of all sizes can be compared.
const MAX_ROWS_OF_LARGE: usize = 32;
/// Number of parts above which a rule is large.
const MANY_PARTS: usize = 4096;

/// A rule's truth under some assignments. Rules over the same labels use the same assignments.
pub(crate) struct Table {
    /// The labels of the rule, ascending.
    pub(crate) scope: Vec<LabelId>,
    pub(crate) rows: Vec<Truth>,
    /// Whether the rows are all assignments of the labels.
    pub(crate) complete: bool,
}

impl Table {
    /// Builds the table. `assignment` is a buffer with a slot for every label.
    pub(crate) fn new(model: &Model, rule: &Rule, assignment: &mut [usize]) -> Self {
        let mut scope = rule.scope();
        scope.sort_unstable();
        let n_categories = |&label: &LabelId| model.label(label).n_categories();
        let most = if rule.n_parts() > MANY_PARTS { MAX_ROWS_OF_LARGE } else { MAX_ROWS };
        let n_rows = scope.iter().map(n_categories).try_fold(1, usize::checked_mul).filter(|&n| n <= most);
        let rows = (0..n_rows.unwrap_or(most))
            .map(|row| {
                let mut rest = row;
                for label in &scope {
                    let n = n_categories(label);
                    let choice = if n_rows.is_some() { rest } else { scatter(row, label.index()) };
                    assignment[label.index()] = choice % n;
                    rest /= n;
                }
                Truth::of(rule, assignment)
            })
            .collect();
        Table { scope, rows, complete: n_rows.is_some() }
    }

    /// Whether the rule is either true or false in every row, and not uncertain.
    pub(super) fn is_logical(&self) -> bool {
        self.rows.iter().all(|truth| truth.possible == truth.certain)
    }

    /// A signature that is equal for equivalent rules, and rarely equal for others.
    pub(super) fn signature(&self) -> Vec<bool> {
        let n_rows = if self.complete { self.rows.len() } else { MAX_ROWS_OF_LARGE };
        self.rows.iter().take(n_rows).map(|truth| truth.possible).collect()
    }
}

/// A pseudo-random number that depends only on its arguments.
fn scatter(row: usize, label: usize) -> usize {
    let row = (row as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mut x = row ^ (label as u64 + 1).wrapping_mul(0xD1B5_4A32_D192_ED03);
    for shift in [32, 29, 32] {
        x = (x ^ (x >> shift)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    }
    (x >> 16) as usize
}
