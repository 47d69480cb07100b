//! prsl for Python: converts between `python/prsl` and the library. Each function converts its arguments, calls the
//! library with the interpreter's lock released, and converts the result. Users import `python/prsl`.

mod answers;
mod ask;
mod beliefs;
mod builder;
mod chunks;
mod data;
mod editor;
mod errors;
mod learn;
mod model;
mod score;
mod threads;
mod watch;

use pyo3::prelude::*;

/// The compiled part of the package.
#[pymodule]
mod _prsl {
    #[pymodule_export]
    use super::answers::{counterfactuals, information_gains};
    #[pymodule_export]
    use super::ask::{Scorer, explain, plan, predict};
    #[pymodule_export]
    use super::beliefs::Rows;
    #[pymodule_export]
    use super::builder::ModelBuilder;
    #[pymodule_export]
    use super::chunks::{
        ChunkWorker, chunk_numbers, encode_chunk, learn_remote, n_chunks, readable_rows, score_remote,
    };
    #[pymodule_export]
    use super::data::read_mulan;
    #[pymodule_export]
    use super::editor::keywords;
    #[pymodule_export]
    use super::learn::{calibrate, learn, learn_paper, learning_defaults, split_rows};
    #[pymodule_export]
    use super::model::{Combination, Finding, Label, Model, Rule};
    #[pymodule_export]
    use super::score::{compare, evaluate, joint_log_likelihoods};

    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        threads::remember_process();
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
