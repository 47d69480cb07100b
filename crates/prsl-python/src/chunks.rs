//! Rows in chunks, for learning and scoring on a cluster.

use std::collections::HashMap;
use std::ops::{ControlFlow, Range};
use std::sync::{Arc, Mutex};

use prsl::learn::{Examples, Progress, RemoteRows, ScoreSum};
use prsl::{BeliefMatrix, Limits};
use prsl_data::{BeliefOptions, BeliefReader, Error, Key, TableReader, TruthOptions, TruthReader};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use pyo3_arrow::{PyRecordBatch, PyTable};

use crate::beliefs::Rows;
use crate::errors::{Failure, Result, argument};
use crate::learn::{ClauseSettings, Settings, learned_dictionary};
use crate::model::Model;
use crate::threads::{detached, with_threads};
use crate::watch::{Report, watched};

/// The name of a table in messages.
const FRAME: &str = "the data frame";

/// The number of chunks of this many rows.
#[pyfunction]
pub fn n_chunks(n_rows: u64) -> u32 {
    prsl::learn::n_chunks(n_rows)
}

/// The chunk of each row, by the text of its key.
#[pyfunction]
pub fn chunk_numbers(keys: Vec<String>, n_chunks: u32) -> Vec<u32> {
    keys.iter().map(|key| prsl::learn::chunk_of(&Key::from(key.as_str()).to_string(), n_chunks)).collect()
}

/// Rows of raw beliefs as a chunk: its bytes, or else what is wrong with a row. `names` are those of the
/// columns with beliefs and with truths, for messages.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
pub fn encode_chunk<'py>(
    py: Python<'py>,
    model: &Model,
    beliefs: PyTable,
    truths: PyTable,
    keys: Vec<String>,
    weights: Option<Vec<f64>>,
    chunk: u32,
    normalize: bool,
    names: (HashMap<String, String>, HashMap<String, String>),
) -> PyResult<(Option<Bound<'py, PyBytes>>, Option<String>)> {
    let model = model.for_beliefs(true);
    let (batches, schema) = beliefs.into_inner();
    let (truth_batches, truth_schema) = truths.into_inner();
    let encoded = detached(py, None, || -> Result<std::result::Result<Vec<u8>, String>> {
        let of_keys: Vec<Key> = keys.iter().map(|key| Key::from(key.as_str())).collect();
        let mut order: Vec<usize> = (0..keys.len()).collect();
        order.sort_by(|&a, &b| of_keys[a].cmp(&of_keys[b]));
        if let Some(&[first, _]) = order.windows(2).find(|pair| of_keys[pair[0]] == of_keys[pair[1]]) {
            return Ok(Err(format!(
                "two rows have the key `{}`; each row needs a key of its own",
                keys[first]
            )));
        }
        let read_beliefs = || -> Result<BeliefMatrix> {
            let table = TableReader::arrow(&schema, batches, FRAME)?;
            let options = BeliefOptions { normalize, ignore_extra: false };
            let mut reader = BeliefReader::new(&model, table, options)?;
            let mut rows = BeliefMatrix::new(&model);
            while let Some(part) = reader.next_chunk(keys.len().max(1))? {
                rows.append(&part)?;
            }
            Ok(rows)
        };
        let read_truths = || -> Result<Vec<prsl::Truth>> {
            let table = TableReader::arrow(&truth_schema, truth_batches, FRAME)?;
            let mut reader = TruthReader::new(&model, table, TruthOptions::default())?;
            let mut truths = Vec::new();
            while let Some(part) = reader.next_chunk(keys.len().max(1))? {
                truths.extend(part);
            }
            Ok(truths)
        };
        let told = |error: Failure, names: &HashMap<String, String>| {
            let (row, problem) = problem_of_row(error, names)?;
            Ok(Err(format!("row with key `{}`: {problem}", keys[row])))
        };
        let beliefs = match read_beliefs() {
            Ok(beliefs) => beliefs,
            Err(error) => return told(error, &names.0),
        };
        let truths = match read_truths() {
            Ok(truths) => truths,
            Err(error) => return told(error, &names.1),
        };
        let mut rows = Examples::new(beliefs, truths)?;
        if let Some(weights) = weights {
            let is_wrong = |weight: &f64| !(*weight >= 0.0 && weight.is_finite());
            if let Some(row) = weights.iter().position(is_wrong) {
                let problem = "expected a weight of 0 or more";
                return Ok(Err(format!(
                    "row with key `{}`: {} is no weight, {problem}",
                    keys[row], weights[row]
                )));
            }
            rows = rows.with_weights_of_part(weights)?;
        }
        Ok(Ok(rows.select(&order).to_bytes(chunk)))
    })??;
    Ok(match encoded {
        Ok(bytes) => (Some(PyBytes::new(py, &bytes)), None),
        Err(problem) => (None, Some(problem)),
    })
}

/// The rows of a batch that can be read, the positions of the others, and what is wrong with each of them. `names` are the
/// columns' names for messages.
#[pyfunction]
pub fn readable_rows(
    py: Python<'_>,
    model: &Model,
    batch: PyRecordBatch,
    normalize: bool,
    names: HashMap<String, String>,
) -> PyResult<(Rows, Vec<usize>, Vec<String>)> {
    let model = model.for_beliefs(false);
    let batch = batch.into_inner();
    let (rows, problems) = detached(py, None, || -> Result<_> {
        let read = |range: Range<usize>| -> Result<BeliefMatrix> {
            let part = vec![batch.slice(range.start, range.len())];
            let table = TableReader::arrow(&batch.schema(), part, FRAME)?;
            let options = BeliefOptions { normalize, ignore_extra: false };
            let mut reader = BeliefReader::new(&model, table, options)?;
            let mut rows = BeliefMatrix::new(&model);
            while let Some(part) = reader.next_chunk(range.len().max(1))? {
                rows.append(&part)?;
            }
            Ok(rows)
        };
        let (mut rows, mut problems) = (BeliefMatrix::new(&model), Vec::new());
        let mut start = 0;
        loop {
            match read(start..batch.num_rows()) {
                Ok(rest) => {
                    rows.append(&rest)?;
                    return Ok((rows, problems));
                }
                Err(error) => {
                    let (row, problem) = problem_of_row(error, &names)?;
                    rows.append(&read(start..start + row)?)?;
                    problems.push((start + row, problem));
                    start += row + 1;
                }
            }
        }
    })??;
    let (places, messages) = problems.into_iter().unzip();
    Ok((Rows { rows }, places, messages))
}

/// The position of an invalid row and what is wrong with it, with the column's name. Returns other errors as they are.
fn problem_of_row(error: Failure, columns: &HashMap<String, String>) -> Result<(usize, String)> {
    match error {
        Failure::Data(Error::Cell { row, column, problem, .. }) => {
            let column = columns.get(&column).unwrap_or(&column);
            Ok((row as usize - 1, format!("column `{column}`: {problem}")))
        }
        Failure::Data(Error::Row { row, problem, .. }) => Ok((row as usize - 1, problem.to_string())),
        other => Err(other),
    }
}

/// Answers questions about chunks of rows, and keeps what the next question needs again.
#[pyclass(module = "prsl._prsl")]
pub struct ChunkWorker {
    worker: Mutex<prsl::learn::ChunkWorker>,
}

#[pymethods]
impl ChunkWorker {
    #[new]
    fn new(max_bytes: usize) -> Self {
        Self { worker: Mutex::new(prsl::learn::ChunkWorker::new(max_bytes)) }
    }

    fn answer<'py>(&self, py: Python<'py>, question: &[u8], rows: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        let answer = detached(py, None, || {
            let mut worker = self.worker.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            worker.answer(question, rows).map_err(Failure::from)
        })??;
        Ok(PyBytes::new(py, &answer))
    }
}

/// Rows that a function in Python asks. An exception that it raises is kept.
struct Asked {
    ask: Py<PyAny>,
    raised: Arc<Mutex<Option<PyErr>>>,
}

impl RemoteRows for Asked {
    fn ask(&mut self, question: &[u8]) -> prsl::Result<Vec<Vec<u8>>> {
        Python::attach(|py| {
            let answers = self.ask.call1(py, (PyBytes::new(py, question),));
            answers.and_then(|answers| answers.extract::<Vec<Vec<u8>>>(py))
        })
        .map_err(|error| {
            let problem = format!("the rows could not be asked: {error}");
            *self.raised.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(error);
            prsl::Error::Examples { problem }
        })
    }
}

/// Learns clauses from rows that `ask` asks: it gets a question and returns the answers of all chunks. `save` gets the state
/// to continue from, as text, at first and whenever there are more rules. `observe` is as in `learn`.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
pub fn learn_remote<'py>(
    py: Python<'py>,
    base: &Model,
    settings: Settings,
    clauses: ClauseSettings,
    ask: Py<PyAny>,
    progress: Option<String>,
    save: Option<Py<PyAny>>,
    observe: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let learner = clauses.learner(&settings)?;
    let unreadable = |_| argument("the checkpoint is not one of prsl, or it is incomplete");
    let start: Progress = match progress {
        Some(text) => serde_json::from_str(&text).map_err(unreadable)?,
        None => Progress::default(),
    };
    let raised = Arc::new(Mutex::new(None));
    let rows = Box::new(Asked { ask, raised: Arc::clone(&raised) });
    let mut n_saved = (start != Progress::default()).then(|| start.n_rules());
    let of_save = Arc::clone(&raised);
    let found = watched(py, settings.limits()?, observe.as_ref(), |tell| {
        let mut last = Report::clauses(&start);
        let mut observe = |progress: &Progress| {
            if n_saved.is_none_or(|n_saved| progress.n_rules() > n_saved) {
                n_saved = Some(progress.n_rules());
                let text = serde_json::to_string(progress).expect("writing to memory does not fail");
                let saved = Python::attach(|py| {
                    save.as_ref().map_or(Ok(()), |save| save.call1(py, (text,)).map(drop))
                });
                if let Err(error) = saved {
                    *of_save.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(error);
                    return ControlFlow::Break(());
                }
            }
            let is_known = progress.n_passes() >= last.n_passes();
            last = if is_known { Report::clauses(progress) } else { last.in_phase(progress.phase()) };
            tell(last)
        };
        let learned = learner.learn_remote(base.model(), rows, start, &mut observe)?;
        Ok((learned, last.n_passes()))
    });
    if let Some(error) = raised.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take() {
        return Err(error);
    }
    let ((learned, n_passes), is_interrupted) = found?;
    learned_dictionary(py, learned, n_passes, is_interrupted)
}

/// The scores of a model on rows that `ask` asks.
#[pyfunction]
pub fn score_remote<'py>(
    py: Python<'py>,
    model: &Model,
    ask: Py<PyAny>,
    memory: Option<u64>,
) -> PyResult<Bound<'py, PyDict>> {
    let raised = Arc::new(Mutex::new(None));
    let mut rows = Asked { ask, raised: Arc::clone(&raised) };
    let limits = memory.map_or_else(Limits::default, |memory| Limits { memory });
    let scores = py.detach(|| with_threads(None, || ScoreSum::ask(model.model(), &mut rows, limits)))?;
    if let Some(error) = raised.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take() {
        return Err(error);
    }
    let scores = scores.map_err(Failure::from)?;
    let found = PyDict::new(py);
    found.set_item("rows", scores.n_rows())?;
    found.set_item("mean_joint_log_likelihood", scores.log_likelihood())?;
    found.set_item("joint_accuracy", scores.joint_accuracy())?;
    found.set_item("impossible", scores.n_impossible())?;
    Ok(found)
}
