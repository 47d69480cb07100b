//! Learning from rows that are elsewhere, such as on the executors of a cluster.
//!
//! Learning asks for sums over all rows, and for a sample of at most about 20,000 rows. A chunk of rows answers with its own
//! sums ([`ChunkWorker`]). [`RemoteRows`] brings a question to all chunks, and their answers back. The answers are merged by
//! [`ChunkSums`], so the learned model has the same bits as with all rows at hand, if the rows have the same keys.

mod learning;
mod rows;
mod survey;
mod worker;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use super::data::Fitted;
use super::examples::Examples;
use super::feature::Feature;
use super::problem::Totals;
use super::question::Question;
use super::sums::ChunkSums;
use crate::error::{Error, Result};
use crate::infer::Limits;
use crate::model::Model;
pub(crate) use survey::Survey;
pub use worker::ChunkWorker;

/// Rows that are elsewhere, in chunks.
pub trait RemoteRows: Send {
    /// The answers of [`ChunkWorker::answer`] for all chunks, in any order, each once.
    fn ask(&mut self, question: &[u8]) -> Result<Vec<Vec<u8>>>;
}

/// A question with what a worker needs to answer it.
#[derive(Serialize, Deserialize)]
struct Request {
    setup: Setup,
    ask: Ask,
}

/// The base and the parameters of a run. A problem about any rows follows from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Setup {
    /// The base as text.
    pub(super) model: String,
    pub(super) fitted: Vec<Fitted>,
    pub(super) free_rules: Vec<usize>,
    pub(super) memory: u64,
}

/// What is asked of all rows.
#[derive(Serialize, Deserialize)]
enum Ask {
    /// What must be known before the setup.
    Survey,
    /// The rows whose scattered hash is within a limit, as bytes.
    Sample { limit: Option<u64>, seed: u64 },
    /// Sums of a problem.
    Sums(Question),
    /// Scores of the model of the setup.
    Scores,
}

/// The remote rows of a run.
pub(crate) struct Remote {
    rows: Mutex<Box<dyn RemoteRows>>,
    setup: Setup,
    /// The chunks that have to answer.
    chunks: Vec<u32>,
    failure: Mutex<Option<Error>>,
    has_failed: Arc<AtomicBool>,
    /// Counts that were asked for in advance.
    counts: Mutex<HashMap<Feature, f64>>,
}

impl Remote {
    pub(super) fn new(
        rows: Box<dyn RemoteRows>,
        base: &Model,
        fitted: &[Fitted],
        free_rules: &[usize],
        limits: Limits,
        chunks: Vec<u32>,
    ) -> Self {
        let setup = Setup {
            model: base.to_string(),
            fitted: fitted.to_vec(),
            free_rules: free_rules.to_vec(),
            memory: limits.memory,
        };
        let rows = Mutex::new(rows);
        Self {
            rows,
            setup,
            chunks,
            failure: Mutex::default(),
            has_failed: Arc::default(),
            counts: Mutex::default(),
        }
    }

    /// What does not depend on the parameters.
    pub(crate) fn totals(&self) -> Result<Totals> {
        let total = self.sums(&Question::Totals)?.total();
        let problem = || format!("the answer has {} numbers, expected {}", total.len(), Totals::WIDTH);
        if total.len() == Totals::WIDTH {
            Ok(Totals::of(&total))
        } else {
            Err(Error::Sums { problem: problem() })
        }
    }

    /// The sums of all chunks; `None` after a failure.
    pub(crate) fn ask(&self, question: &Question, width: usize) -> Option<Vec<f64>> {
        if self.has_failed.load(Ordering::Relaxed) {
            return None;
        }
        let answer = self.sums(question).and_then(|sums| {
            let total = sums.total();
            let problem = || format!("the answer has {} numbers, expected {width}", total.len());
            if total.len() == width { Ok(total) } else { Err(Error::Sums { problem: problem() }) }
        });
        let fail = |error: Error| {
            *locked(&self.failure) = Some(error);
            self.has_failed.store(true, Ordering::Relaxed);
        };
        answer.map_err(fail).ok()
    }

    fn sums(&self, question: &Question) -> Result<ChunkSums> {
        let answers = self.send(Ask::Sums(question.clone()))?;
        let sums = merged(&answers)?;
        check_chunks(&sums, &self.chunks)?;
        Ok(sums)
    }

    /// The sampled rows of all chunks, in the order of the chunks.
    pub(crate) fn sample(&self, model: &Model, limit: Option<u64>, seed: u64) -> Result<Examples> {
        let mut parts: Vec<(u32, Examples)> = Vec::new();
        for answer in self.send(Ask::Sample { limit, seed })? {
            parts.push(rows::decode(&answer, model)?);
        }
        parts.sort_by_key(|(chunk, _)| *chunk);
        if !parts.iter().map(|(chunk, _)| *chunk).eq(self.chunks.iter().copied()) {
            return Err(Error::Sums { problem: "the samples are not those of all chunks".to_owned() });
        }
        rows::concatenated(model, parts.into_iter().map(|(_, part)| part))
    }

    fn send(&self, ask: Ask) -> Result<Vec<Vec<u8>>> {
        locked(&self.rows).ask(&Request { setup: self.setup.clone(), ask }.to_bytes())
    }

    pub(crate) fn failed_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.has_failed)
    }

    /// The first failure.
    pub(crate) fn failure(&self) -> Result<()> {
        locked(&self.failure).clone().map_or(Ok(()), Err)
    }

    pub(crate) fn known_count(&self, feature: &Feature) -> Option<f64> {
        locked(&self.counts).get(feature).copied()
    }

    pub(crate) fn remember_counts(&self, features: &[Feature], counts: &[f64]) {
        locked(&self.counts).extend(features.iter().cloned().zip(counts.iter().copied()));
    }
}

impl Request {
    fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("writing to memory does not fail")
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self> {
        serde_json::from_slice(bytes).map_err(|_| Error::Sums {
            problem: "the question is not of this version of prsl; install the same version everywhere"
                .to_owned(),
        })
    }
}

/// The sums behind the scores of a model.
pub(super) fn ask_for_scores(model: &Model, rows: &mut dyn RemoteRows, limits: Limits) -> Result<ChunkSums> {
    let (model, memory) = (model.to_string(), limits.memory);
    let setup = Setup { model, fitted: Vec::new(), free_rules: Vec::new(), memory };
    merged(&rows.ask(&Request { setup, ask: Ask::Scores }.to_bytes())?)
}

/// The sums of all answers.
fn merged(answers: &[Vec<u8>]) -> Result<ChunkSums> {
    let mut parts = answers.iter().map(|answer| ChunkSums::from_bytes(answer));
    let mut sums = parts.next().unwrap_or_else(|| Ok(ChunkSums::new(0)))?;
    for part in parts {
        sums.merge(part?)?;
    }
    Ok(sums)
}

/// Returns an error if not all chunks have answered, or others.
fn check_chunks(sums: &ChunkSums, chunks: &[u32]) -> Result<()> {
    match sums.chunks().eq(chunks.iter().copied()) {
        true => Ok(()),
        false => {
            let n = sums.chunks().count();
            let problem =
                format!("{n} chunks of rows have answered, expected the same {} as before", chunks.len());
            Err(Error::Sums { problem })
        }
    }
}

fn locked<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
