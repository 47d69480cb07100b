//! Files of multi-label datasets.

use std::path::PathBuf;

use numpy::{PyArray1, PyArrayMethods};
use prsl_data::{ArffValue, AttributeKind};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::{Result, argument};

/// Reads an ARFF file with its Mulan label file. Returns features row by row (NaN if missing, nominal values by
/// position), labels row by row (-1 if unknown), and the names.
#[pyfunction]
pub fn read_mulan<'py>(py: Python<'py>, arff: PathBuf, xml: PathBuf) -> PyResult<Bound<'py, PyDict>> {
    let mut features = Vec::new();
    let mut labels = Vec::new();
    let mut text_at = None;
    let dataset = py.detach(|| -> Result<_> {
        let mut dataset = prsl_data::read_mulan(&arff, &xml)?;
        while let Some(row) = dataset.next_row()? {
            for (at, value) in row.features.into_iter().enumerate() {
                features.push(match value {
                    ArffValue::Number(number) => number,
                    ArffValue::Nominal(place) => place as f64,
                    ArffValue::Missing => f64::NAN,
                    ArffValue::Text(_) => {
                        text_at.get_or_insert(at);
                        f64::NAN
                    }
                });
            }
            labels.extend(row.labels.iter().map(|label| label.map_or(-1_i8, i8::from)));
        }
        Ok(dataset)
    })?;
    let attributes: Vec<_> = dataset.features().collect();
    if let Some(at) = text_at {
        let name = &attributes[at].name;
        return Err(argument(format!(
            "`{}`: attribute `{name}` holds text, which is no feature; leave it out",
            arff.display()
        )));
    }
    let found = PyDict::new(py);
    let n_rows = labels.len() / dataset.labels().len().max(1);
    found.set_item("features", PyArray1::from_vec(py, features).reshape([n_rows, attributes.len()])?)?;
    found.set_item("labels", PyArray1::from_vec(py, labels).reshape([n_rows, dataset.labels().len()])?)?;
    let names: Vec<&str> = attributes.iter().map(|attribute| attribute.name.as_str()).collect();
    found.set_item("feature_names", names)?;
    let nominal = PyDict::new(py);
    for attribute in &attributes {
        if let AttributeKind::Nominal(values) = &attribute.kind {
            nominal.set_item(&attribute.name, values)?;
        }
    }
    found.set_item("nominal", nominal)?;
    let names: Vec<&str> = dataset.labels().iter().map(|label| label.name.as_str()).collect();
    found.set_item("label_names", names)?;
    let parents: Vec<Option<usize>> = dataset.labels().iter().map(|label| label.parent).collect();
    found.set_item("parents", parents)?;
    Ok(found)
}
