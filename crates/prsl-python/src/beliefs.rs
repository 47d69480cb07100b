//! Beliefs from NumPy arrays and Arrow tables.

use std::ops::Range;

use numpy::ndarray::{ArrayView1, ArrayView2};
use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use prsl::{BeliefMatrix, LabelId, Normalize};
use prsl_data::{BeliefOptions, BeliefReader, TableReader};
use pyo3::prelude::*;
use pyo3_arrow::PyTable;
use rayon::prelude::*;

use crate::errors::{Failure, Result, argument};
use crate::model::{Model, place};
use crate::threads::detached;

/// Rows of beliefs about the labels of a model, completed, checked and calibrated.
#[pyclass(frozen, module = "prsl._prsl")]
pub struct Rows {
    pub rows: BeliefMatrix,
}

/// The input for one label: beliefs in its categories, or observed categories.
#[derive(FromPyObject)]
enum Column<'py> {
    Beliefs(PyReadonlyArray2<'py, f64>),
    Observed(PyReadonlyArray1<'py, i64>),
}

/// Number of rows that one thread reads at a time.
const CHUNK: usize = 8192;

/// The inputs by label.
struct Arrays<'a> {
    beliefs: Vec<(usize, ArrayView2<'a, f64>)>,
    observed: Vec<(usize, ArrayView1<'a, i64>)>,
    normalize: Normalize,
}

impl Arrays<'_> {
    /// Reads a range of rows.
    fn read(&self, model: &prsl::Model, range: Range<usize>) -> Result<BeliefMatrix> {
        let mut rows = BeliefMatrix::new(model);
        let mut cells = vec![None; model.n_categories()];
        let mut is_observed = vec![false; model.labels().len()];
        for row in range {
            for (label, array) in &self.beliefs {
                let block = model.block(LabelId::new(*label));
                let is_reversed = model.label(LabelId::new(*label)).is_binary();
                for (at, belief) in array.row(row).iter().enumerate() {
                    let at = if is_reversed { 1 - at } else { at };
                    cells[block.start + at] = (!belief.is_nan()).then_some(*belief);
                }
            }
            for (label, array) in &self.observed {
                let of_label = model.label(LabelId::new(*label));
                let category = usize::try_from(array[row]).ok().and_then(|at| place(of_label, at));
                is_observed[*label] = category.is_some();
                for (at, cell) in cells[model.block(LabelId::new(*label))].iter_mut().enumerate() {
                    *cell = category.map(|category| f64::from(u8::from(category == at)));
                }
            }
            rows.push_with_observed(&cells, &is_observed, self.normalize)
                .map_err(|error| Failure::Row(row, error))?;
        }
        Ok(rows)
    }
}

#[pymethods]
impl Rows {
    /// Creates rows from one array per given label: `(label, array)`. An array of two dimensions has beliefs, NaN if
    /// they are missing. An array of one dimension has positions of observed categories, -1 if they are missing. No comes
    /// before yes.
    #[staticmethod]
    fn from_arrays(
        py: Python<'_>,
        model: &Model,
        n_rows: usize,
        columns: Vec<(usize, Bound<'_, PyAny>)>,
        normalize: bool,
        raw: bool,
    ) -> PyResult<Self> {
        let model = model.for_beliefs(raw);
        let mut beliefs = Vec::new();
        let mut observations = Vec::new();
        for (label, column) in &columns {
            match column.extract()? {
                Column::Beliefs(array) => beliefs.push((*label, array)),
                Column::Observed(array) => observations.push((*label, array)),
            }
        }
        let arrays = Arrays {
            beliefs: beliefs.iter().map(|(label, array)| (*label, array.as_array())).collect(),
            observed: observations.iter().map(|(label, array)| (*label, array.as_array())).collect(),
            normalize: if normalize { Normalize::Always } else { Normalize::Never },
        };
        let rows = detached(py, None, || -> Result<BeliefMatrix> {
            let starts: Vec<usize> = (0..n_rows).step_by(CHUNK).collect();
            let read = |&start: &usize| arrays.read(&model, start..n_rows.min(start + CHUNK));
            // Reads all chunks before reporting the first error, so that it does not depend on the threads.
            let chunks: Vec<Result<BeliefMatrix>> = starts.par_iter().map(read).collect();
            let mut rows = BeliefMatrix::new(&model);
            for chunk in chunks {
                rows.append(&chunk?)?;
            }
            Ok(rows)
        })??;
        Ok(Self { rows })
    }

    /// Creates rows from a table with columns `label=category` or `label`, as on the command line.
    #[staticmethod]
    fn from_table(
        py: Python<'_>,
        model: &Model,
        table: PyTable,
        normalize: bool,
        ignore_extra: bool,
        missing: Vec<String>,
        raw: bool,
    ) -> PyResult<Self> {
        let model = model.for_beliefs(raw);
        let (batches, schema) = table.into_inner();
        let rows = detached(py, None, || -> Result<BeliefMatrix> {
            let table = TableReader::arrow(&schema, batches, "the frame")?.with_missing(missing);
            let options = BeliefOptions { normalize, ignore_extra };
            let mut reader = BeliefReader::new(&model, table, options)?;
            let mut rows = BeliefMatrix::new(&model);
            while let Some(chunk) = reader.next_chunk(CHUNK)? {
                rows.append(&chunk)?;
            }
            Ok(rows)
        })??;
        Ok(Self { rows })
    }

    /// Creates a copy of these rows.
    fn select(&self, rows: Vec<usize>) -> PyResult<Self> {
        if let Some(row) = rows.iter().find(|&&row| row >= self.rows.n_rows()) {
            return Err(argument(format!("there are {} rows, and none is {row}", self.rows.n_rows())));
        }
        Ok(Self { rows: self.rows.select(&rows) })
    }

    fn __len__(&self) -> usize {
        self.rows.n_rows()
    }
}
