//! What would change the answer for a row, and what should be asked next.

use std::sync::Arc;

use prsl::Engines;
use prsl::infer::{EngineChoice, MarginalEngine};
use pyo3::prelude::*;

use crate::ask::engine_named;
use crate::beliefs::Rows;
use crate::errors::Result;
use crate::model::Model;
use crate::threads::detached;

/// The changes that make a category the most probable one for the first of these rows of raw beliefs: as JSON, and in
/// words.
#[pyfunction]
pub fn counterfactuals(
    py: Python<'_>,
    model: &Model,
    rows: &Rows,
    target: [String; 2],
    engine: &str,
    threads: Option<usize>,
) -> PyResult<(String, String)> {
    let choice = engine_named(engine)?;
    let found = detached(py, threads, || -> Result<_> {
        let [label, category] = &target;
        let label = model.model().find_label(label)?;
        let target = model.model().find_category(label, category)?;
        Ok(marginals(model, choice)?.counterfactuals_raw(&rows.rows, 0, label, target)?)
    })??;
    Ok((found.to_json(), found.to_string()))
}

/// The expected gain from observing each label for the first of these rows, about one label or about all: as JSON, and in
/// words.
#[pyfunction]
pub fn information_gains(
    py: Python<'_>,
    model: &Model,
    rows: &Rows,
    label: Option<String>,
    engine: &str,
    threads: Option<usize>,
) -> PyResult<(String, String)> {
    let choice = engine_named(engine)?;
    let found = detached(py, threads, || -> Result<_> {
        let about = label.map(|label| model.model().find_label(&label)).transpose()?;
        Ok(marginals(model, choice)?.information_gains(&rows.rows.row(0), about)?)
    })??;
    Ok((found.to_json(), found.to_string()))
}

fn marginals(model: &Model, choice: EngineChoice) -> prsl::Result<Arc<MarginalEngine>> {
    match choice {
        EngineChoice::Auto => model.usual(),
        choice => Ok(Arc::new(Engines::new(model.model()).with_choice(choice).marginals()?)),
    }
}
