//! Errors as exceptions: each kind has its class in `prsl.errors`, with the library's message.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// An error, by its origin.
pub enum Failure {
    /// In the library.
    Prsl(prsl::Error),
    /// In the library, at a row counted from 0.
    Row(usize, prsl::Error),
    /// In a file or a table.
    Data(prsl_data::Error),
    /// In Python.
    Python(PyErr),
}

pub type Result<T> = std::result::Result<T, Failure>;

impl From<prsl::Error> for Failure {
    fn from(error: prsl::Error) -> Self {
        Failure::Prsl(error)
    }
}

impl From<prsl_data::Error> for Failure {
    fn from(error: prsl_data::Error) -> Self {
        Failure::Data(error)
    }
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Self {
        Failure::Python(error)
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> PyErr {
        match failure {
            Failure::Prsl(error) => exception(error.kind(), error.to_string()),
            Failure::Row(row, error) => {
                exception(error.kind(), format!("row {row}, counted from 0: {error}"))
            }
            Failure::Data(error) => exception(data_kind(&error), error.to_string()),
            Failure::Python(error) => error,
        }
    }
}

/// An invalid value of an argument that only Python has.
pub fn argument(message: impl Into<String>) -> PyErr {
    exception("Argument", message.into())
}

fn data_kind(error: &prsl_data::Error) -> &'static str {
    use prsl_data::Error::{Open, Read, Truncated, Write};
    match error {
        Open { .. } | Read { .. } | Truncated { .. } | Write { .. } => "File",
        _ => "Data",
    }
}

/// The exception of a kind: `UnknownLabel` is `prsl.errors.UnknownLabelError`.
fn exception(kind: &str, message: String) -> PyErr {
    Python::attach(|py| {
        let class = py.import("prsl.errors").and_then(|errors| errors.getattr(format!("{kind}Error")));
        match class.and_then(|class| class.call1((&message,))) {
            Ok(error) => PyErr::from_value(error),
            Err(_) => PyValueError::new_err(message),
        }
    })
}
