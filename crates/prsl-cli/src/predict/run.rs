//! The run of a prediction: reads chunks of rows, answers them and writes the answers, all at the same time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use prsl::{BeliefMatrix, Model, Status};
use prsl_data::{BeliefReader, Column, ColumnKind, ColumnSpec, TableWriter, Target};

use super::people::{PeopleTable, terminal_width};
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
    /// The format of the answers; `None` for a table for people on standard output.
    pub format: Option<prsl_data::Format>,
    /// The number of digits after the decimal point, if numbers are rounded.
    pub digits: Option<usize>,
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
    /// A note about the table for people.
    pub note: Option<String>,
}

/// Some rows.
struct Rows {
    beliefs: BeliefMatrix,
    /// The columns that identify them.
    ids: Vec<Column>,
    /// The share of the table that has been read.
    part: Option<f64>,
}

/// Some rows, or why they cannot be read.
type Read = prsl_data::Result<Rows>;

/// Length of the queues of chunks. It keeps all threads busy and limits memory.
const WAITING: usize = 2;

impl Prediction<'_> {
    /// Answers all rows while more are read and the answers are written.
    pub fn run(self, mut progress: Progress) -> Result<Summary> {
        let query = &self.query;
        let (fewest, most) = chunk_rows(self.model, query.work());
        let chunk_rows = Arc::new(AtomicUsize::new(fewest));
        let wanted_rows = Arc::clone(&chunk_rows);
        // People need the number of a row, if nothing else identifies it.
        let is_numbered = self.format.is_none() && self.beliefs.id_columns().is_empty();
        let is_numbered = is_numbered && !query.has_row_numbers();
        let ids = match is_numbered {
            true => vec![ColumnSpec::new("row", ColumnKind::Integer)],
            false => self.beliefs.id_columns().to_vec(),
        };
        let mut sink = Some(Sink::new(self.model, query, &ids, self.format, self.digits));
        // A table for people rounds by itself.
        let digits = self.digits.filter(|_| self.format.is_some());
        let (beliefs, target) = (self.beliefs, self.target);
        let mut summary = Summary { verification: self.verification, ..Summary::default() };
        summary.note = thread::scope(|scope| {
            let (to_infer, chunks) = sync_channel(WAITING);
            let (to_write, answers) = sync_channel(WAITING);
            scope.spawn(move || read(beliefs, &wanted_rows, &to_infer));
            // Nothing is written before the first rows have been read without an error.
            let mut chunks = chunks.into_iter().peekable();
            if let Some(Err(error)) = chunks.next_if(Result::is_err) {
                return Err(error.into());
            }
            let sink = sink.take().expect("it is taken once").open(target)?;
            let writing = scope.spawn(move || write(sink, &answers));
            for chunk in chunks {
                let rows = chunk?;
                let start = Instant::now();
                let answers = query.answer(&rows.beliefs, summary.rows)?;
                let next = next_rows(chunk_rows.load(Ordering::Relaxed), start.elapsed());
                chunk_rows.store(next.clamp(fewest, most), Ordering::Relaxed);
                let number = |row: &usize| Some(summary.rows as i64 + *row as i64 + 1);
                let mut columns: Vec<Column> = match is_numbered {
                    true => vec![Column::Integer(answers.rows.iter().map(number).collect())],
                    false => rows.ids.iter().map(|column| selected(column, &answers.rows)).collect(),
                };
                summary.add(&rows.beliefs, &answers);
                columns.extend(answers.columns.into_iter().map(|column| rounded(column, digits)));
                if to_write.send(columns).is_err() {
                    break; // the writer reports why it stopped
                }
                progress.update(summary.rows, rows.part);
            }
            drop(to_write);
            writing.join().expect("writing does not panic")?.finish()
        })?;
        progress.finish();
        Ok(summary)
    }
}

/// The values of these rows, one after the other.
fn selected(column: &Column, rows: &[usize]) -> Column {
    match column {
        Column::Number(values) => Column::Number(rows.iter().map(|&row| values[row]).collect()),
        Column::Integer(values) => Column::Integer(rows.iter().map(|&row| values[row]).collect()),
        Column::Text(values) => Column::Text(rows.iter().map(|&row| values[row].clone()).collect()),
        Column::Boolean(values) => Column::Boolean(rows.iter().map(|&row| values[row]).collect()),
    }
}

/// Numbers with this many digits after the decimal point.
fn rounded(column: Column, digits: Option<usize>) -> Column {
    let round = |value: f64, digits: usize| {
        let rounded: f64 = format!("{value:.digits$}").parse().expect("a printed number can be read");
        rounded + 0.0 // turns -0 into 0
    };
    match (column, digits) {
        (Column::Number(values), Some(digits)) => {
            Column::Number(values.into_iter().map(|value| value.map(|value| round(value, digits))).collect())
        }
        (column, _) => column,
    }
}

/// The destination of answers.
enum Sink {
    /// A table that is not yet open.
    Closed(prsl_data::Format, Vec<ColumnSpec>),
    Table(TableWriter),
    People(PeopleTable),
}

impl Sink {
    fn new(
        model: &Model,
        query: &Query,
        ids: &[ColumnSpec],
        format: Option<prsl_data::Format>,
        digits: Option<usize>,
    ) -> Sink {
        let specs = query.columns(ids);
        let starts = query.starts();
        match format {
            Some(format) => Sink::Closed(format, specs),
            None => {
                Sink::People(PeopleTable::new(model, &specs, ids.len(), starts, digits, terminal_width()))
            }
        }
    }

    fn open(self, target: Target) -> prsl_data::Result<Sink> {
        match self {
            Sink::Closed(format, specs) => Ok(Sink::Table(TableWriter::create(target, format, &specs)?)),
            open => Ok(open),
        }
    }

    /// Completes the output. Returns a note, if there is one.
    fn finish(self) -> Result<Option<String>> {
        match self {
            Sink::Table(writer) => writer.finish().map(|()| None).map_err(Into::into),
            Sink::People(people) => Ok(people.note()),
            Sink::Closed(..) => Ok(None),
        }
    }
}

/// Reads until the end, an error, or a closed channel.
fn read(mut beliefs: BeliefReader, chunk_rows: &AtomicUsize, chunks: &SyncSender<Read>) {
    loop {
        let chunk = match beliefs.next_chunk(chunk_rows.load(Ordering::Relaxed)) {
            Ok(Some(rows)) => {
                let (ids, part) = (beliefs.ids().to_vec(), beliefs.table().progress());
                Ok(Rows { beliefs: rows, ids, part })
            }
            Ok(None) => break,
            Err(error) => Err(error),
        };
        let failed = chunk.is_err();
        if chunks.send(chunk).is_err() || failed {
            break;
        }
    }
}

fn write(mut sink: Sink, answers: &Receiver<Vec<Column>>) -> Result<Sink> {
    for columns in answers {
        match &mut sink {
            Sink::Table(writer) => writer.write(&columns)?,
            Sink::People(people) => people.print(&columns)?,
            Sink::Closed(..) => {}
        }
    }
    Ok(sink)
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
pub fn next_rows(rows: usize, time: Duration) -> usize {
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
