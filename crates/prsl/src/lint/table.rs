//! What a rule makes of many assignments at once: all of them where its labels allow, a sample otherwise.

use super::logic::Truth;
use crate::label::LabelId;
use crate::model::Model;
use crate::rule::Rule;

/// Rules with at most as many assignments of their labels are tabulated completely, of others as many are sampled.
const MAX_ROWS: usize = 256;
/// Of rules with more parts than [`MANY_PARTS`] no more than so many assignments are tried. These are the first ones, so that
/// rules of any size can be compared by them.
const FEW_ROWS: usize = 32;
const MANY_PARTS: usize = 4096;

/// A rule's truth under some assignments, the same ones for all rules over the same labels.
pub(crate) struct Table {
    /// The labels of the rule, ascending.
    pub(crate) scope: Vec<LabelId>,
    pub(crate) rows: Vec<Truth>,
    /// Whether these are all the assignments there are.
    pub(crate) complete: bool,
}

impl Table {
    /// `assignment` is scratch space for all labels.
    pub(crate) fn new(model: &Model, rule: &Rule, assignment: &mut [usize]) -> Self {
        let mut scope = rule.scope();
        scope.sort_unstable();
        let n_categories = |&label: &LabelId| model.label(label).n_categories();
        let most = if rule.n_parts() > MANY_PARTS { FEW_ROWS } else { MAX_ROWS };
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

    /// Whether the rule is either true or false in every row.
    pub(super) fn is_logical(&self) -> bool {
        self.rows.iter().all(|truth| truth.possible == truth.certain)
    }

    /// Equal for rules that say the same, and seldom equal for others.
    pub(super) fn signature(&self) -> Vec<bool> {
        let n_rows = if self.complete { self.rows.len() } else { FEW_ROWS };
        self.rows.iter().take(n_rows).map(|truth| truth.possible).collect()
    }
}

/// A number that looks random and depends on nothing but its arguments.
fn scatter(row: usize, label: usize) -> usize {
    let row = (row as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mut x = row ^ (label as u64 + 1).wrapping_mul(0xD1B5_4A32_D192_ED03);
    for shift in [32, 29, 32] {
        x = (x ^ (x >> shift)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    }
    (x >> 16) as usize
}
