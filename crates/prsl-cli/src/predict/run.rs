//! The run of a prediction: reads chunks of rows, answers them and writes the answers, all at the same time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use prsl::{BeliefMatrix, Model, Status};
use prsl_data::{BeliefReader, Column, TableWriter, Target};

use crate::progress::Progress;
use crate::table::{Answers, Query};
use crate::verify::Verification;

/// The checked arguments.
pub struct Prediction<'a> {
    /// The model.
    pub model: &'a Model,
    /// The query and the engines.
    pub query: Query,
    /// The beliefs.
    pub beliefs: BeliefReader,
    /// The destination of the answers.
    pub target: Target,
    /// The format of the answers.
    pub format: prsl_data::Format,
    /// The rows to be verified, if any.
    pub verification: Option<Verification>,
}

/// Statistics of a run.
#[derive(Default)]
pub struct Summary {
    /// The number of rows.
    pub rows: u64,
    /// The number of rows with each status except `ok`.
    pub not_ok: BTreeMap<Status, u64>,
    /// The first impossible row, from 1.
    pub first_impossible: Option<u64>,
    /// The rows to be verified, if any.
    pub verification: Option<Verification>,
}

/// Some rows, and the share of the table that has been read.
type Read = prsl_data::Result<(BeliefMatrix, Option<f64>)>;

/// Length of the queues of chunks. It keeps all threads busy and limits memory.
const WAITING: usize = 2;

impl Prediction<'_> {
    /// Answers all rows while more are read and the answers are written.
    pub fn run(self, mut progress: Progress) -> Result<Summary> {
        let query = self.query;
        let (fewest, most) = chunk_rows(self.model, query.work());
        let chunk_rows = Arc::new(AtomicUsize::new(fewest));
        let wanted_rows = Arc::clone(&chunk_rows);
        let beliefs = self.beliefs;
        let mut summary = Summary { verification: self.verification, ..Summary::default() };
        thread::scope(|scope| {
            let (to_infer, chunks) = sync_channel(WAITING);
            let (to_write, answers) = sync_channel(WAITING);
            scope.spawn(move || read(beliefs, &wanted_rows, &to_infer));
            // Nothing is written before the first rows have been read without an error.
            let mut chunks = chunks.into_iter().peekable();
            if let Some(Err(error)) = chunks.next_if(Result::is_err) {
                return Err(error.into());
            }
            let writer = TableWriter::create(self.target, self.format, &query.columns())?;
            let writing = scope.spawn(move || write(writer, &answers));
            for chunk in chunks {
                let (rows, part) = chunk?;
                let start = Instant::now();
                let answers = query.answer(&rows, summary.rows)?;
                let next = next_rows(chunk_rows.load(Ordering::Relaxed), start.elapsed());
                chunk_rows.store(next.clamp(fewest, most), Ordering::Relaxed);
                summary.add(&rows, &answers);
                if to_write.send(answers.columns).is_err() {
                    break; // the writer reports why it stopped
                }
                progress.update(summary.rows, part);
            }
            drop(to_write);
            let writer = writing.join().expect("writing does not panic")?;
            Ok::<_, anyhow::Error>(writer.finish()?)
        })?;
        progress.finish();
        Ok(summary)
    }
}

/// Reads until the end, an error, or a closed channel.
fn read(mut beliefs: BeliefReader, chunk_rows: &AtomicUsize, chunks: &SyncSender<Read>) {
    loop {
        let chunk = match beliefs.next_chunk(chunk_rows.load(Ordering::Relaxed)) {
            Ok(Some(rows)) => Ok((rows, beliefs.table().progress())),
            Ok(None) => break,
            Err(error) => Err(error),
        };
        let failed = chunk.is_err();
        if chunks.send(chunk).is_err() || failed {
            break;
        }
    }
}

fn write(mut writer: TableWriter, answers: &Receiver<Vec<Column>>) -> prsl_data::Result<TableWriter> {
    for columns in answers {
        writer.write(&columns)?;
    }
    Ok(writer)
}

/// Minimum and maximum number of rows in a chunk. The maximum limits memory to a few megabytes and keeps the progress
/// bar up to date.
pub fn chunk_rows(model: &Model, work: f64) -> (usize, usize) {
    const CELLS: f64 = 300_000.0;
    const WORK: f64 = 1e9;
    const AT_LEAST: f64 = 64.0; // so that all threads have rows, eight side by side
    const SLOW: f64 = 5e7; // a row of this much work is slow enough to keep a thread busy alone
    let most = (CELLS / model.n_categories().max(1) as f64).clamp(AT_LEAST, 8192.0);
    let fewest = if work >= SLOW { 16.0 } else { (WORK / work.max(1.0)).clamp(AT_LEAST, most) };
    (fewest as usize, most as usize)
}

/// Number of rows in the next chunk: more if rows are fast, fewer if they are slow.
fn next_rows(rows: usize, time: Duration) -> usize {
    match time.as_millis() {
        0..100 => rows * 2,
        100..1000 => rows,
        _ => rows / 2,
    }
}

impl Summary {
    fn add(&mut self, rows: &BeliefMatrix, answers: &Answers) {
        if let Some(verification) = &mut self.verification {
            verification.observe(rows, answers);
        }
        let first = answers.status.iter().position(|&status| status == Status::Impossible);
        self.first_impossible = self.first_impossible.or(first.map(|row| self.rows + row as u64 + 1));
        for &status in answers.status.iter().filter(|&&status| status != Status::Ok) {
            *self.not_ok.entry(status).or_default() += 1;
        }
        self.rows += rows.n_rows() as u64;
    }
}
