//! Scores of predictions.

use numpy::{PyArray1, PyReadonlyArray2};
use prsl::metrics::{self, Bootstrap, ClassScores, Evaluation, LabelScores, Metric};
use prsl::{CategoryId, JunctionTree, LabelId, Truth};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::beliefs::Rows;
use crate::errors::{Result, argument};
use crate::model::{Model, place};
use crate::threads::detached;

/// For each row, the true category of each label, if known. In the array, no comes before yes.
pub fn truths(model: &prsl::Model, n_rows: usize, array: &PyReadonlyArray2<'_, i64>) -> PyResult<Vec<Truth>> {
    let array = array.as_array();
    let wanted = (n_rows, model.labels().len());
    if array.dim() != wanted {
        let given = array.dim();
        return Err(argument(format!(
            "truths have {} rows and {} labels, expected {} and {}",
            given.0, given.1, wanted.0, wanted.1
        )));
    }
    let read = |row: usize, at: usize| {
        let label = model.label(LabelId::new(at));
        let Ok(position) = usize::try_from(array[[row, at]]) else { return Ok(None) };
        let found = place(label, position).map(CategoryId::new);
        found.map(Some).ok_or_else(|| {
            argument(format!(
                "row {row}, counted from 0: the truth of label `{}` is category {position}, expected 0 to {}",
                label.name(),
                label.n_categories() - 1
            ))
        })
    };
    (0..n_rows).map(|row| (0..wanted.1).map(|at| read(row, at)).collect()).collect()
}

/// All scores of `prsl evaluate`, and the reliability of the probabilities.
#[pyfunction]
pub fn evaluate<'py>(
    py: Python<'py>,
    model: &Model,
    rows: &Rows,
    truth: PyReadonlyArray2<'py, i64>,
    n_bins: usize,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyDict>> {
    let truths = truths(model.model(), rows.rows.n_rows(), &truth)?;
    let evaluation = detached(py, threads, || -> Result<Evaluation> {
        Ok(Evaluation::of(model.model(), &rows.rows, &truths)?)
    })??;
    let scores = evaluation.scores();
    let found = PyDict::new(py);
    found.set_item("rows", truths.len())?;
    for metric in Metric::ALL {
        found.set_item(metric.name(), scores.get(metric))?;
    }
    found.set_item("engine", scores.engine.name())?;
    found.set_item("not_converged", scores.not_converged)?;
    found.set_item("impossible", scores.impossible)?;
    let bins = evaluation.reliability(n_bins).bins;
    let bins: Vec<(usize, f64, f64)> =
        bins.iter().map(|bin| (bin.count, bin.probability, bin.frequency)).collect();
    found.set_item("reliability", bins)?;
    let labels = evaluation.label_scores();
    let labels: Vec<Bound<'py, PyDict>> =
        labels.iter().map(|scores| of_label(py, model.model(), scores)).collect::<PyResult<_>>()?;
    found.set_item("labels", labels)?;
    Ok(found)
}

/// The scores of one label.
fn of_label<'py>(py: Python<'py>, model: &prsl::Model, scores: &LabelScores) -> PyResult<Bound<'py, PyDict>> {
    let class = |scores: &ClassScores| -> PyResult<Bound<'py, PyDict>> {
        let found = PyDict::new(py);
        found.set_item("category", &scores.category)?;
        found.set_item("positives", scores.positives)?;
        found.set_item("f1", scores.f1)?;
        found.set_item("auc", scores.auc)?;
        found.set_item("sensitivity", scores.sensitivity)?;
        found.set_item("specificity", scores.specificity)?;
        Ok(found)
    };
    let found = PyDict::new(py);
    found.set_item("label", model.label(scores.label).name())?;
    found.set_item("known", scores.known)?;
    found.set_item("accuracy", scores.accuracy)?;
    found.set_item("log_loss", scores.log_loss)?;
    found.set_item("classes", scores.classes.iter().map(class).collect::<PyResult<Vec<_>>>()?)?;
    Ok(found)
}

/// Paired differences between two models' scores on the same rows: those of the second less those of the first.
#[pyfunction]
pub fn compare<'py>(
    py: Python<'py>,
    models: [PyRef<'py, Model>; 2],
    rows: [PyRef<'py, Rows>; 2],
    truth: PyReadonlyArray2<'py, i64>,
    seed: u64,
) -> PyResult<Bound<'py, PyDict>> {
    let truths = truths(models[0].model(), rows[0].rows.n_rows(), &truth)?;
    let [first, second] = [0, 1].map(|place| (models[place].model().clone(), rows[place].rows.clone()));
    let (evaluations, compared) = detached(py, None, || -> Result<_> {
        let of = |(model, rows): &(prsl::Model, prsl::BeliefMatrix)| Evaluation::of(model, rows, &truths);
        let evaluations = [of(&first)?, of(&second)?];
        let compared =
            evaluations[0].compare(&evaluations[1], &Bootstrap { seed, ..Bootstrap::default() })?;
        Ok((evaluations, compared))
    })??;
    let scores = evaluations.each_ref().map(Evaluation::scores);
    let found = PyDict::new(py);
    for metric in Metric::ALL {
        let line = PyDict::new(py);
        line.set_item("first", scores[0].get(metric))?;
        line.set_item("second", scores[1].get(metric))?;
        line.set_item("difference", compared.get(metric).map(|it| it.difference))?;
        line.set_item("interval", compared.get(metric).map(|it| (it.interval[0], it.interval[1])))?;
        found.set_item(metric.name(), line)?;
    }
    let rows: Vec<(usize, f64, f64)> =
        compared.rows.iter().map(|row| (row.row, row.log_likelihoods[0], row.log_likelihoods[1])).collect();
    found.set_item("rows", rows)?;
    Ok(found)
}

/// ln P(known truths of the row | beliefs, rules) of every row, exactly; NaN for rows without a known truth.
#[pyfunction]
pub fn joint_log_likelihoods<'py>(
    py: Python<'py>,
    model: &Model,
    rows: &Rows,
    truth: PyReadonlyArray2<'py, i64>,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let truths = truths(model.model(), rows.rows.n_rows(), &truth)?;
    let found = detached(py, threads, || -> Result<Vec<f64>> {
        let engine = JunctionTree::compile(model.model())?;
        let posteriors = engine.infer_batch(&rows.rows)?;
        let found = metrics::joint_log_likelihoods(&rows.rows, &truths, &posteriors, |rows| {
            engine.infer_batch(rows)
        })?;
        Ok(found.expect("a junction tree is exact").into_iter().map(|it| it.unwrap_or(f64::NAN)).collect())
    })??;
    Ok(PyArray1::from_vec(py, found))
}
