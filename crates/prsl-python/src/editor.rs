//! What definitions of the syntax for editors need.

use std::collections::BTreeMap;

use prsl::editor::{KEYWORDS, signs};
use pyo3::prelude::*;

/// The words of the text format by their role, and the spellings of its signs.
#[pyfunction]
pub fn keywords() -> BTreeMap<&'static str, Vec<&'static str>> {
    BTreeMap::from([
        ("statements", KEYWORDS.statements.to_vec()),
        ("reserved", KEYWORDS.reserved.to_vec()),
        ("calibrators", KEYWORDS.calibrators.to_vec()),
        ("contextual", KEYWORDS.contextual.to_vec()),
        ("signs", signs().collect()),
    ])
}
