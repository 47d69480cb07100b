//! The posterior of a row with each category of other labels observed.

use crate::belief::BeliefMatrix;
use crate::error::Result;
use crate::infer::{MarginalEngine, Stopped};
use crate::label::{CategoryId, LabelId};

/// Maximum number of marginals in memory at a time, 32 MB.
const MAX_MARGINALS: usize = 1 << 22;

/// Minimum number of rows per batch: as many as lanes.
const MIN_ROWS: usize = 8;

/// The posterior with one category of one label observed.
pub(super) struct Conditional<'a> {
    pub label: LabelId,
    pub category: CategoryId,
    /// ln Z with the category observed, so without its belief; −∞ if it is impossible.
    pub log_evidence: f64,
    /// All marginals; `None` if the category is impossible.
    pub marginals: Option<&'a [f64]>,
}

/// Observes each of `observations` in the one row of `row`, and passes the answers to `visit`, in order. Returns
/// whether all answers are exact.
pub(super) fn observe_each(
    engine: &MarginalEngine,
    row: &BeliefMatrix,
    observations: &[(LabelId, CategoryId)],
    mut visit: impl FnMut(Conditional<'_>),
) -> Result<bool> {
    let n_rows = (MAX_MARGINALS / row.model().n_categories().max(1)).max(MIN_ROWS);
    let mut is_exact = true;
    for chunk in observations.chunks(n_rows) {
        let mut rows = row.select(&vec![0; chunk.len()]);
        for (index, &(label, category)) in chunk.iter().enumerate() {
            rows.observe(index, label, category)?;
        }
        let answers = engine.infer_batch(&rows)?;
        for (index, &(label, category)) in chunk.iter().enumerate() {
            is_exact &= answers.stopped(index) == Stopped::Exact;
            let log_evidence = answers.log_evidence(index);
            visit(Conditional { label, category, log_evidence, marginals: answers.marginals(index) });
        }
    }
    Ok(is_exact)
}

/// Every category of a label, to be observed.
pub(super) fn categories_of(row: &BeliefMatrix, label: LabelId) -> Vec<(LabelId, CategoryId)> {
    let n_categories = row.model().label(label).n_categories();
    (0..n_categories).map(|category| (label, CategoryId::new(category))).collect()
}
