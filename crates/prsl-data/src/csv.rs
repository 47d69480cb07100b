//! Comma-separated values, read record by record.
//!
//! This reader is not a library's, because existing readers do not limit the length of a record. They accept a quote
//! that is never closed as one very long cell, so a missing quote would include the rest of the file without an
//! error.

use crate::bad_rows::BadRow;
use crate::dialect::{self, CsvDialect};
use crate::error::{CsvProblem, Error, HeaderProblem, Result};
use crate::source::Source;

/// Maximum length of a CSV row and of an ARFF line in bytes: 16 MiB.
pub const MAX_RECORD_BYTES: usize = 16 << 20;

/// Maximum size of a chunk's text. A chunk that reaches it has fewer rows than requested.
const CHUNK_BYTES: usize = 32 << 20;

/// A CSV file after its header.
pub(crate) struct CsvTable {
    records: Records,
    /// Whether the column is selected.
    selected: Vec<bool>,
    /// The column's position among the selected ones.
    slots: Vec<Option<usize>>,
    rows_read: u64,
    /// Whether rows that are not valid are kept apart.
    pub(crate) keeps_bad_rows: bool,
}

/// The names of the columns.
pub(crate) struct Header {
    pub(crate) columns: Vec<String>,
    /// How many of the first columns are the index of a data frame.
    pub(crate) n_index: usize,
}

/// Rows of a CSV file: the selected cells one after the other. Cells without quotes are trimmed.
#[derive(Debug)]
pub(crate) struct CsvChunk {
    text: String,
    ends: Vec<usize>,
    slots: Vec<Option<usize>>,
    n_selected: usize,
    pub(crate) n_rows: usize,
    /// Rows that are not valid, if they are kept apart. All their cells are empty.
    pub(crate) bad_rows: Vec<BadRow>,
}

impl CsvTable {
    /// Reads the header. Returns the names of the columns and the table.
    pub(crate) fn open(mut source: Source, dialect: CsvDialect) -> Result<(Header, CsvTable)> {
        source.skip_byte_order_mark()?;
        let mut records = Records::new(source, dialect);
        if !records.next(0, &[])? {
            return Err(Error::Header { file: records.source.name.clone(), problem: HeaderProblem::Empty });
        }
        let mut columns = Vec::with_capacity(records.record.ends.len());
        for index in 0..records.record.ends.len() {
            columns.push(records.cell(index, 0, &[])?.to_owned());
        }
        let n_index = name_index(&mut columns);
        crate::table::check_columns(&records.source.name, &columns)?;
        let n = columns.len();
        let table = CsvTable {
            records,
            selected: vec![true; n],
            slots: (0..n).map(Some).collect(),
            rows_read: 0,
            keeps_bad_rows: false,
        };
        Ok((Header { columns, n_index }, table))
    }

    /// Keeps only these columns.
    pub(crate) fn select(&mut self, columns: &[usize]) {
        self.selected.fill(false);
        for &column in columns {
            self.selected[column] = true;
        }
        let mut next = 0..;
        self.slots = self.selected.iter().map(|&selected| selected.then(|| next.next()).flatten()).collect();
    }

    /// The next rows, at most `max_rows` of them.
    pub(crate) fn read_chunk(&mut self, max_rows: usize, columns: &[String]) -> Result<Option<CsvChunk>> {
        let n_selected = self.selected.iter().filter(|&&selected| selected).count();
        let mut chunk = CsvChunk {
            text: String::new(),
            ends: Vec::new(),
            slots: self.slots.clone(),
            n_selected,
            n_rows: 0,
            bad_rows: Vec::new(),
        };
        while chunk.n_rows < max_rows && chunk.text.len() < CHUNK_BYTES {
            let row = self.rows_read + 1;
            match self.read_row(row, columns, &mut chunk) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) if self.keeps_bad_rows && error.row_problem().is_some() => {
                    self.records.skip_rest()?;
                    chunk.empty_last();
                    chunk.bad_rows.push(BadRow::new(chunk.n_rows, row, error));
                }
                Err(error) => return Err(error),
            }
            chunk.n_rows += 1;
            self.rows_read = row;
        }
        Ok((chunk.n_rows > 0).then_some(chunk))
    }

    /// Appends the cells of the next row; `false` at the end of the file.
    fn read_row(&mut self, row: u64, columns: &[String], chunk: &mut CsvChunk) -> Result<bool> {
        if !self.records.next(row, columns)? {
            return Ok(false);
        }
        self.check_length(row, columns.len())?;
        for column in (0..columns.len()).filter(|&column| self.selected[column]) {
            chunk.text.push_str(self.records.cell(column, row, columns)?);
            chunk.ends.push(chunk.text.len());
        }
        Ok(true)
    }

    /// The share of the file that has been read, 0 to 1, if its size is known.
    pub(crate) fn progress(&self) -> Option<f64> {
        self.records.source.progress()
    }

    fn check_length(&self, row: u64, expected: usize) -> Result<()> {
        let found = self.records.record.ends.len();
        if found == expected {
            return Ok(());
        }
        Err(self.records.error(row, CsvProblem::Ragged { found, expected }))
    }
}

impl CsvChunk {
    /// Replaces what has been read of the last row by empty cells.
    fn empty_last(&mut self) {
        let first = self.n_rows * self.n_selected;
        self.ends.truncate(first);
        let end = self.ends.last().copied().unwrap_or(0);
        self.text.truncate(end);
        self.ends.resize(first + self.n_selected, end);
    }

    /// The text of a cell; empty where it is missing or not selected.
    pub(crate) fn cell(&self, row: usize, column: usize) -> &str {
        let Some(slot) = self.slots[column] else { return "" };
        let index = row * self.n_selected + slot;
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.text[start..self.ends[index]]
    }
}

/// The name that pandas gives to columns without one.
const UNNAMED: &str = "Unnamed: ";

/// The number of columns at the start that are the index of a data frame: without a name, or named as pandas names such
/// columns. Gives them names.
fn name_index(columns: &mut [String]) -> usize {
    let is_index = |name: &String| {
        let number = name.strip_prefix(UNNAMED);
        name.is_empty() || number.is_some_and(|it| it.chars().all(|c| c.is_ascii_digit() || c == '.'))
    };
    let n_index = columns.iter().take_while(|name| is_index(name)).count();
    if n_index == columns.len() {
        return 0;
    }
    // Only the index itself has no name.
    if columns[0].is_empty() {
        let name = |n: usize| if n == 0 { format!("{UNNAMED}0") } else { format!("{UNNAMED}0.{n}") };
        let free = (0..=columns.len()).map(name).find(|name| !columns.contains(name));
        columns[0] = free.expect("there are more names than columns");
    }
    n_index
}

/// The records of a source, one at a time.
struct Records {
    source: Source,
    record: Record,
    /// The line on which the next record begins.
    next_line: u64,
    /// The line on which this record begins.
    line: u64,
    /// Whether the last record ended with a carriage return. A line feed then belongs to the same line end.
    skip_line_feed: bool,
    /// Whether the last record ended in the middle of a line, because it is not valid.
    is_open: bool,
}

impl Records {
    fn new(source: Source, dialect: CsvDialect) -> Records {
        let record = Record { delimiter: dialect.delimiter, ..Record::default() };
        Records { source, record, next_line: 1, line: 1, skip_line_feed: false, is_open: false }
    }

    /// Reads the next record; `false` at the end of the file. Row and columns are for messages only.
    fn next(&mut self, row: u64, columns: &[String]) -> Result<bool> {
        self.record.clear();
        self.is_open = false;
        self.line = self.next_line;
        loop {
            let buffer = self.source.fill()?;
            if buffer.is_empty() {
                return self.finish(row, columns);
            }
            if self.record.state == State::RecordStart
                && let Some(length) = blank_line(buffer[0], &mut self.skip_line_feed, &mut self.next_line)
            {
                self.line = self.next_line;
                self.source.consume(length);
                continue;
            }
            let fed = self.record.feed(buffer);
            self.source.consume(fed.used);
            if let Some(problem) = fed.problem {
                self.is_open = true;
                return Err(self.error(row, self.named(problem, columns)));
            }
            if fed.complete {
                self.skip_line_feed = fed.carriage_return;
                self.next_line += self.record.line_feeds + 1;
                return Ok(true);
            }
        }
    }

    /// Skips the rest of a line that ends in the middle of a record that is not valid.
    fn skip_rest(&mut self) -> Result<()> {
        if self.is_open {
            self.next_line += self.record.line_feeds;
        }
        while self.is_open {
            let buffer = self.source.fill()?;
            let end = buffer.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let used = end.map_or(buffer.len(), |end| end + 1);
            self.skip_line_feed = end.is_some_and(|end| buffer[end] == b'\r');
            self.is_open = end.is_none() && used > 0;
            self.source.consume(used);
            self.next_line += u64::from(end.is_some());
        }
        Ok(())
    }

    /// The end of the file ends the last record, too.
    fn finish(&mut self, row: u64, columns: &[String]) -> Result<bool> {
        match self.record.state {
            State::RecordStart => Ok(false),
            State::Quoted => {
                let problem = CsvProblem::UnterminatedQuote { column: String::new() };
                Err(self.error(row, self.named(problem, columns)))
            }
            State::CellStart | State::Bare | State::AfterQuote => {
                self.record.end_cell();
                self.record.state = State::RecordStart;
                Ok(true)
            }
        }
    }

    /// A cell of the record; trimmed, unless it is quoted.
    fn cell(&self, index: usize, row: u64, columns: &[String]) -> Result<&str> {
        std::str::from_utf8(self.record.cell(index))
            .map_err(|_| self.error(row, CsvProblem::NotUtf8 { column: column_name(index, columns) }))
    }

    fn error(&self, row: u64, problem: CsvProblem) -> Error {
        Error::Csv { file: self.source.name.clone(), line: self.line, row, problem }
    }

    /// Adds the current column to an error.
    fn named(&self, problem: CsvProblem, columns: &[String]) -> CsvProblem {
        let column = column_name(self.record.ends.len(), columns);
        match problem {
            CsvProblem::UnterminatedQuote { .. } => CsvProblem::UnterminatedQuote { column },
            CsvProblem::AfterQuote { .. } => CsvProblem::AfterQuote { column },
            CsvProblem::OtherDelimiter { delimiter, .. } => CsvProblem::OtherDelimiter { column, delimiter },
            other => other,
        }
    }
}

fn column_name(index: usize, columns: &[String]) -> String {
    columns.get(index).cloned().unwrap_or_else(|| (index + 1).to_string())
}

/// Skips the rest of a line end, or an empty line; each is one byte.
fn blank_line(byte: u8, skip_line_feed: &mut bool, line: &mut u64) -> Option<usize> {
    let continues = std::mem::take(skip_line_feed) && byte == b'\n';
    if continues {
        return Some(1);
    }
    if byte == b'\n' || byte == b'\r' {
        *line += 1;
        *skip_line_feed = byte == b'\r';
        return Some(1);
    }
    None
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    /// Nothing of the record has been seen.
    #[default]
    RecordStart,
    /// Only blanks of the cell have been seen.
    CellStart,
    /// In a cell without quotes.
    Bare,
    /// In a quoted cell.
    Quoted,
    /// After a quote in a quoted cell: the end of the cell, or the first of two quotes.
    AfterQuote,
}

/// One record, with quotes removed.
#[derive(Default)]
struct Record {
    delimiter: u8,
    bytes: Vec<u8>,
    ends: Vec<usize>,
    state: State,
    /// Start of the current cell in `bytes`, and whether the cell is quoted.
    start: usize,
    is_quoted: bool,
    /// Bytes of the file in this record.
    length: usize,
    /// Line feeds within quotes.
    line_feeds: u64,
    /// After blanks that follow the closing quote. Another quote does not reopen the cell.
    closed: bool,
}

/// The result of consuming some bytes.
struct Fed {
    used: usize,
    complete: bool,
    carriage_return: bool,
    problem: Option<CsvProblem>,
}

impl Record {
    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        (self.start, self.is_quoted) = (0, false);
        self.state = State::RecordStart;
        self.length = 0;
        self.line_feeds = 0;
    }

    fn cell(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.bytes[start..self.ends[index]]
    }

    fn end_cell(&mut self) {
        if !self.is_quoted {
            // Blanks before the cell are never stored.
            let length = self.bytes[self.start..].trim_ascii_end().len();
            self.bytes.truncate(self.start + length);
        }
        self.ends.push(self.bytes.len());
        (self.start, self.is_quoted) = (self.bytes.len(), false);
        self.state = State::CellStart;
    }

    /// Takes bytes up to the end of the record, or all of them.
    fn feed(&mut self, buffer: &[u8]) -> Fed {
        let mut fed = Fed { used: 0, complete: false, carriage_return: false, problem: None };
        if self.state == State::RecordStart {
            self.state = State::CellStart;
        }
        while fed.used < buffer.len() && !fed.complete && fed.problem.is_none() {
            let rest = &buffer[fed.used..];
            let plain = self.plain(rest);
            self.bytes.extend_from_slice(&rest[..plain]);
            fed.used += plain;
            self.length += plain;
            if let Some(&byte) = rest.get(plain) {
                fed.used += 1;
                self.length += 1;
                self.step(byte, &mut fed);
            }
            if self.length > MAX_RECORD_BYTES {
                fed.problem = Some(CsvProblem::TooLong { limit: MAX_RECORD_BYTES });
            }
        }
        fed
    }

    /// The number of bytes that belong to the cell and do not change the state.
    fn plain(&self, bytes: &[u8]) -> usize {
        let stop = match self.state {
            State::Bare => {
                bytes.iter().position(|&byte| byte == self.delimiter || matches!(byte, b'\n' | b'\r'))
            }
            State::Quoted => bytes.iter().position(|byte| matches!(byte, b'"' | b'\n')),
            _ => return 0,
        };
        stop.unwrap_or(bytes.len())
    }

    fn step(&mut self, byte: u8, fed: &mut Fed) {
        match (self.state, byte) {
            (State::Quoted, b'"') => (self.state, self.closed) = (State::AfterQuote, false),
            (State::Quoted, _) => {
                self.line_feeds += u64::from(byte == b'\n');
                self.bytes.push(byte);
            }
            (State::AfterQuote, b'"') if !self.closed => {
                self.bytes.push(byte);
                self.state = State::Quoted;
            }
            (_, byte) if byte == self.delimiter => self.end_cell(),
            (_, b'\n' | b'\r') => {
                self.end_cell();
                fed.complete = true;
                fed.carriage_return = byte == b'\r';
            }
            (State::AfterQuote, b' ' | b'\t') => self.closed = true,
            (State::AfterQuote, byte) if !self.closed && dialect::is_usual(byte) => {
                let (column, delimiter) = (String::new(), char::from(byte));
                fed.problem = Some(CsvProblem::OtherDelimiter { column, delimiter });
            }
            (State::AfterQuote, _) => fed.problem = Some(CsvProblem::AfterQuote { column: String::new() }),
            (State::CellStart, b' ' | b'\t') => {}
            (State::CellStart, b'"') => (self.state, self.is_quoted) = (State::Quoted, true),
            (State::RecordStart | State::CellStart | State::Bare, _) => {
                self.bytes.push(byte);
                self.state = State::Bare;
            }
        }
    }
}
