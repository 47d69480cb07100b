//! The run of a prediction: reads chunks of rows, answers them and writes the answers, all at the same time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use prsl::{BeliefMatrix, Model, Status};
use prsl_data::{BadRow, BeliefReader, Column, ColumnKind, ColumnSpec, TableWriter, Target};

use super::bad_rows::{Lines, Places};
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
    /// Whether rows that are not valid are in the output, too.
    pub marks: bool,
}

/// Statistics of a run.
#[derive(Default)]
pub struct Summary {
    /// The number of valid rows.
    pub rows: u64,
    /// The number of rows that are not valid.
    pub bad_rows: u64,
    /// What is wrong with the first one, with file and row.
    pub first_problem: Option<String>,
    /// The number of rows with each status except `ok`.
    pub not_ok: BTreeMap<Status, u64>,
    /// The first impossible row of the table, from 1.
    pub first_impossible: Option<u64>,
    /// The rows to be verified, if any.
    pub verification: Option<Verification>,
    /// A note about the table for people.
    pub note: Option<String>,
}

/// Some rows.
struct Rows {
    /// The valid ones.
    beliefs: BeliefMatrix,
    places: Places,
    /// What is wrong with the first row that is not valid.
    first_problem: Option<String>,
    /// The columns that identify all of them.
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
        let specs = query.columns(&ids, self.marks);
        let mut sink = Some(Sink::new(self.model, query, specs, ids.len(), self.format, self.digits));
        let layout = Layout {
            is_numbered,
            has_row_numbers: query.has_row_numbers(),
            marks: self.marks,
            // A table for people rounds by itself.
            digits: self.digits.filter(|_| self.format.is_some()),
        };
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
                let numbers: Vec<u64> =
                    rows.places.valid().into_iter().map(|place| rows.places.number(place)).collect();
                let answers = query.answer(&rows.beliefs, summary.rows, &numbers)?;
                let next = next_rows(chunk_rows.load(Ordering::Relaxed), start.elapsed());
                chunk_rows.store(next.clamp(fewest, most), Ordering::Relaxed);
                summary.add(&rows, &answers, &numbers);
                if to_write.send(layout.columns(&rows, answers)).is_err() {
                    break; // the writer reports why it stopped
                }
                progress.update(summary.rows + summary.bad_rows, rows.part);
            }
            drop(to_write);
            writing.join().expect("writing does not panic")?.finish()
        })?;
        progress.finish();
        Ok(summary)
    }
}

/// What the columns of the output are.
struct Layout {
    /// Whether the number of the row identifies it, instead of columns of the table.
    is_numbered: bool,
    /// Whether the answers begin with the number of the row.
    has_row_numbers: bool,
    /// Whether rows that are not valid have lines, too.
    marks: bool,
    digits: Option<usize>,
}

impl Layout {
    /// The columns for some rows.
    fn columns(&self, rows: &Rows, answers: Answers) -> Vec<Column> {
        let lines = Lines::new(&rows.places, &answers, self.marks);
        let places = lines.places();
        let numbered =
            || Column::Integer(places.iter().map(|&place| Some(rows.places.number(place) as i64)).collect());
        let mut columns: Vec<Column> = match self.is_numbered {
            true => vec![numbered()],
            false => rows.ids.iter().map(|column| column.select(&places)).collect(),
        };
        let first = columns.len();
        columns.extend(answers.columns.into_iter().map(|column| lines.spread(rounded(column, self.digits))));
        if self.marks {
            if self.has_row_numbers {
                columns[first] = numbered();
            }
            let status = columns.pop().expect("the status is the last column");
            columns.extend([lines.with_invalid(status), lines.problems(&rows.places)]);
        }
        columns
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
        specs: Vec<ColumnSpec>,
        n_ids: usize,
        format: Option<prsl_data::Format>,
        digits: Option<usize>,
    ) -> Sink {
        let starts = query.starts();
        match format {
            Some(format) => Sink::Closed(format, specs),
            None => Sink::People(PeopleTable::new(model, &specs, n_ids, starts, digits, terminal_width())),
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
    let mut n_read = 0;
    loop {
        let chunk = match beliefs.next_chunk(chunk_rows.load(Ordering::Relaxed)) {
            Ok(Some(rows)) => {
                let (ids, part) = (beliefs.ids().to_vec(), beliefs.table().progress());
                let places = Places::new(n_read + 1, beliefs.n_read(), beliefs.bad_rows());
                let first_problem = beliefs.bad_rows().first().map(|bad: &BadRow| bad.error().to_string());
                n_read += beliefs.n_read() as u64;
                Ok(Rows { beliefs: rows, places, first_problem, ids, part })
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
    fn add(&mut self, rows: &Rows, answers: &Answers, numbers: &[u64]) {
        if let Some(verification) = &mut self.verification {
            verification.observe(&rows.beliefs, answers, numbers);
        }
        let first = answers.status.iter().position(|&status| status == Status::Impossible);
        self.first_impossible = self.first_impossible.or(first.map(|row| numbers[row]));
        self.bad_rows += (rows.places.problems.len() - numbers.len()) as u64;
        if self.first_problem.is_none() {
            self.first_problem.clone_from(&rows.first_problem);
        }
        for &status in answers.status.iter().filter(|&&status| status != Status::Ok) {
            *self.not_ok.entry(status).or_default() += 1;
        }
        self.rows += numbers.len() as u64;
    }
}
