//! Joint log-likelihoods of truths, all known or some.

use super::Truth;
use crate::belief::BeliefMatrix;
use crate::label::{CategoryId, LabelId};
use crate::model::Model;
use crate::posterior::{Engine, Posteriors};

/// ln P(known truths of the row | beliefs, rules) of every row, −∞ where that is impossible, `None` for rows without a known
/// truth. `None` altogether if the posteriors are approximate.
///
/// With the labels K known to be t, and Z(K) the sum over the assignments that agree with them,
///
/// ```text
/// ln P(t) = ln Z(K) − ln Z = ln Z' + Σ_{l ∈ K} ln π_l(t_l) − ln Z                  (1)
/// ```
///
/// where Z' has a belief of 1 in t_l in place of π_l. If all labels are known, Z(K) is the weight of one assignment (2); only rows of
/// which some labels are known take another run of `infer`, which is the engine that gave the posteriors.
///
/// ```
/// use prsl::metrics::joint_log_likelihoods;
/// use prsl::{BeliefMatrix, Evidence, JunctionTree, Model};
///
/// let model = Model::parse("label weather: sun, rain\nlabel ground: dry, wet\nrule 0.95: wet <- rain")?;
/// let mut rows = BeliefMatrix::new(&model);
/// rows.push_evidence(&Evidence::new().belief("weather", [0.1, 0.9]).belief("ground", [0.7, 0.3]))?;
/// let engine = JunctionTree::compile(&model)?;
/// let (posteriors, rainy) = (engine.infer_batch(&rows), vec![Some(1), None]);
/// let found = joint_log_likelihoods(&rows, &[rainy], &posteriors, |rows| engine.infer_batch(rows));
/// let rain = found.expect("exact")[0].expect("a truth");
/// assert!((rain - posteriors.marginals(0).expect("possible")[1].ln()).abs() < 1e-12);
/// # Ok::<(), prsl::Error>(())
/// ```
///
/// # Panics
///
/// If rows, truths and posteriors are not equally many, or a truth is not of the model.
pub fn joint_log_likelihoods(
    rows: &BeliefMatrix,
    truths: &[Truth],
    posteriors: &Posteriors,
    infer: impl Fn(&BeliefMatrix) -> Posteriors,
) -> Option<Vec<Option<f64>>> {
    assert_eq!((rows.n_rows(), posteriors.n_rows()), (truths.len(), truths.len()), "a truth for each row");
    if posteriors.engine() == Engine::Loopy {
        return None;
    }
    let model = &posteriors.model; // not that of the rows, which may have other rules
    let open = |row: &usize| is_partly_known(&truths[*row]) && posteriors.is_possible(*row);
    let partly: Vec<usize> = (0..truths.len()).filter(open).collect();
    let clamped = infer(&clamped(rows, truths, &partly));
    let mut log_clamped = vec![f64::NEG_INFINITY; truths.len()];
    for (index, &row) in partly.iter().enumerate() {
        log_clamped[row] = clamped.log_evidence(index) + log_beliefs(model, rows.row(row), &truths[row]); // (1)
    }
    let likelihood = |row: usize| {
        if truths[row].iter().all(Option::is_none) {
            return None;
        }
        if !posteriors.is_possible(row) {
            return Some(f64::NEG_INFINITY);
        }
        let log_weight = match truths[row].iter().copied().collect::<Option<Vec<usize>>>() {
            Some(assignment) => model.log_weight(rows.row(row), &assignment), // (2)
            None => log_clamped[row],
        };
        // No probability is above 1, whatever rounding says.
        Some((log_weight - posteriors.log_evidence(row)).min(0.0))
    };
    Some((0..truths.len()).map(likelihood).collect())
}

fn is_partly_known(truth: &Truth) -> bool {
    truth.iter().any(Option::is_some) && truth.iter().any(Option::is_none)
}

/// These rows, with what is known of them observed.
pub(super) fn clamped(rows: &BeliefMatrix, truths: &[Truth], selected: &[usize]) -> BeliefMatrix {
    let mut clamped = rows.select(selected);
    for (index, &row) in selected.iter().enumerate() {
        for (label, category) in known(&truths[row]) {
            clamped.observe(index, LabelId::new(label), CategoryId::new(category));
        }
    }
    clamped
}

pub(super) fn log_beliefs(model: &Model, row: &[f64], truth: &Truth) -> f64 {
    let belief = |(label, category)| row[model.block(LabelId::new(label)).start + category];
    known(truth).map(|cell| belief(cell).ln()).sum()
}

/// The labels with a known truth, and it.
pub(super) fn known(truth: &Truth) -> impl Iterator<Item = (usize, usize)> {
    truth.iter().enumerate().filter_map(|(label, category)| Some((label, (*category)?)))
}
