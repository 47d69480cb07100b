//! Log-likelihoods of complete or partial truths: joint, and label-wise.

use super::{check_count, check_rows, check_truths};
use crate::belief::BeliefMatrix;
use crate::error::Result;
use crate::label::{CategoryId, LabelId};
use crate::model::Model;
use crate::posterior::{Engine, Posteriors};
use crate::truth::Truth;

/// ln P(known truths of the row | beliefs, rules) of every row: −∞ if impossible, `None` for rows without a known
/// truth. Returns `None` if the posteriors are approximate.
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
/// use prsl::{BeliefMatrix, Evidence, JunctionTree, Model, Truth};
///
/// let model = Model::parse("label weather: sun, rain\nlabel ground: dry, wet\nrule 0.95: wet <- rain")?;
/// let mut rows = BeliefMatrix::new(&model);
/// rows.push_evidence(&Evidence::new().belief("weather", [0.1, 0.9]).belief("ground", [0.7, 0.3]))?;
/// let engine = JunctionTree::compile(&model)?;
/// let (posteriors, rainy) = (engine.infer_batch(&rows)?, Truth::from_indices([Some(1), None]));
/// let found = joint_log_likelihoods(&rows, &[rainy], &posteriors, |rows| engine.infer_batch(rows))?;
/// let rain = found.expect("exact")[0].expect("a truth");
/// assert!((rain - posteriors.marginals(0).expect("possible")[1].ln()).abs() < 1e-12);
/// # Ok::<(), prsl::Error>(())
/// ```
pub fn joint_log_likelihoods(
    rows: &BeliefMatrix,
    truths: &[Truth],
    posteriors: &Posteriors,
    infer: impl Fn(&BeliefMatrix) -> Result<Posteriors>,
) -> Result<Option<Vec<Option<f64>>>> {
    check(rows, truths, posteriors)?;
    if posteriors.engine() == Engine::Loopy {
        return Ok(None);
    }
    let model = &posteriors.model; // not that of the rows, which may have other rules
    let open = |row: &usize| is_partly_known(&truths[*row]) && posteriors.is_possible(*row);
    let partly: Vec<usize> = (0..truths.len()).filter(open).collect();
    let clamped = infer(&clamped(rows, truths, &partly)?)?;
    let mut log_clamped = vec![f64::NEG_INFINITY; truths.len()];
    for (index, &row) in partly.iter().enumerate() {
        log_clamped[row] =
            clamped.log_evidence(index) + log_beliefs(model, rows.values_of(row), &truths[row]); // (1)
    }
    let likelihood = |row: usize| {
        if truths[row].n_known() == 0 {
            return None;
        }
        if !posteriors.is_possible(row) {
            return Some(f64::NEG_INFINITY);
        }
        let log_weight = match truths[row].assignment() {
            Some(assignment) => model.log_weight_at(rows.values_of(row), assignment.indices()), // (2)
            None => log_clamped[row],
        };
        // Rounding may give a probability slightly above 1.
        Some((log_weight - posteriors.log_evidence(row)).min(0.0))
    };
    Ok(Some((0..truths.len()).map(likelihood).collect()))
}

/// Probabilities below this may have lost digits or underflowed to 0. They are computed from ln Z instead.
const TINY: f64 = 1e-200;

/// ln P(truth of the label | beliefs, rules) of every known cell: −∞ if impossible, `None` if the truth is unknown.
///
/// It is the logarithm of the marginal. If that underflows, it is (1) of [`joint_log_likelihoods`] with this label
/// alone known, which takes another run of `infer`. Marginals of loopy propagation are used unchanged.
///
/// ```
/// use prsl::metrics::label_log_likelihoods;
/// use prsl::{BeliefMatrix, Evidence, JunctionTree, Model, Truth};
///
/// let model = Model::parse("label a\nrule 1e-200: a")?;
/// let mut rows = BeliefMatrix::new(&model);
/// rows.push_evidence(&Evidence::new().belief("a", [1e-200]))?;
/// let engine = JunctionTree::compile(&model)?;
/// let (posteriors, truth) = (engine.infer_batch(&rows)?, Truth::from_indices([Some(0)]));
/// let found = label_log_likelihoods(&rows, &[truth], &posteriors, |rows| engine.infer_batch(rows))?;
/// assert!((found[0][0].expect("a truth") + 400.0 * 10_f64.ln()).abs() < 1e-9); // no number is as small as 1e-400
/// # Ok::<(), prsl::Error>(())
/// ```
pub fn label_log_likelihoods(
    rows: &BeliefMatrix,
    truths: &[Truth],
    posteriors: &Posteriors,
    infer: impl Fn(&BeliefMatrix) -> Result<Posteriors>,
) -> Result<Vec<Vec<Option<f64>>>> {
    check(rows, truths, posteriors)?;
    let model = &posteriors.model;
    let marginal = |row: usize, cell| posteriors.marginals(row).map_or(0.0, |it| it[place(model, cell)]);
    let of_row = |(row, truth): (usize, &Truth)| {
        let log = |(label, category): (LabelId, Option<CategoryId>)| {
            category.map(|category| marginal(row, (label, category)).ln().min(0.0))
        };
        model.label_ids().zip(truth.categories()).map(log).collect()
    };
    let mut found: Vec<Vec<Option<f64>>> = truths.iter().enumerate().map(of_row).collect();
    if posteriors.engine() == Engine::Loopy {
        return Ok(found);
    }
    let is_tiny = |row: usize, cell: (LabelId, CategoryId)| {
        posteriors.is_possible(row)
            && marginal(row, cell) < TINY
            && rows.values_of(row)[place(model, cell)] > 0.0
    };
    let cells = |row: usize| truths[row].known().map(move |cell| (row, cell));
    let tiny: Vec<_> = (0..truths.len()).flat_map(cells).filter(|&(row, cell)| is_tiny(row, cell)).collect();
    let mut alone = rows.select(&tiny.iter().map(|&(row, _)| row).collect::<Vec<_>>());
    for (index, &(_, (label, category))) in tiny.iter().enumerate() {
        alone.observe(index, label, category)?;
    }
    let alone = infer(&alone)?;
    for (index, (row, cell)) in tiny.into_iter().enumerate() {
        let log_sum = alone.log_evidence(index) + rows.values_of(row)[place(model, cell)].ln(); // (1)
        found[row][cell.0.index()] = Some((log_sum - posteriors.log_evidence(row)).min(0.0));
    }
    Ok(found)
}

fn check(rows: &BeliefMatrix, truths: &[Truth], posteriors: &Posteriors) -> Result<()> {
    check_rows(&posteriors.model, rows)?;
    check_count("posteriors", posteriors.n_rows(), rows.n_rows())?;
    check_truths(&posteriors.model, rows.n_rows(), truths)
}

fn is_partly_known(truth: &Truth) -> bool {
    (1..truth.n_labels()).contains(&truth.n_known())
}

/// These rows, with their known truths as observed categories.
pub(super) fn clamped(rows: &BeliefMatrix, truths: &[Truth], selected: &[usize]) -> Result<BeliefMatrix> {
    let mut clamped = rows.select(selected);
    for (index, &row) in selected.iter().enumerate() {
        for (label, category) in truths[row].known() {
            clamped.observe(index, label, category)?;
        }
    }
    Ok(clamped)
}

/// Σ ln π(truth) over the known labels.
pub(super) fn log_beliefs(model: &Model, row: &[f64], truth: &Truth) -> f64 {
    truth.known().map(|cell| row[place(model, cell)].ln()).sum()
}

/// The position of a label's category among all categories of the model.
pub(super) fn place(model: &Model, (label, category): (LabelId, CategoryId)) -> usize {
    model.block(label).start + category.index()
}
