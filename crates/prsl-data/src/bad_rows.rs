//! Rows that are not valid, kept apart from the others.

use crate::error::Error;

/// A row that is not valid, of a table that is read with [`BeliefReader::with_bad_rows_apart`] or
/// [`TruthReader::with_bad_rows_apart`].
///
/// [`BeliefReader::with_bad_rows_apart`]: crate::BeliefReader::with_bad_rows_apart
/// [`TruthReader::with_bad_rows_apart`]: crate::TruthReader::with_bad_rows_apart
#[derive(Debug)]
pub struct BadRow {
    place: usize,
    row: u64,
    error: Error,
}

impl BadRow {
    /// The row at a place of a chunk.
    pub(crate) fn new(place: usize, row: u64, error: Error) -> BadRow {
        BadRow { place, row, error }
    }

    /// Its position among the rows that were read last, from 0.
    pub fn place(&self) -> usize {
        self.place
    }

    /// Its number in the table, counted from 1 without the header.
    pub fn row(&self) -> u64 {
        self.row
    }

    /// What is wrong with it, with file, row and column.
    pub fn error(&self) -> &Error {
        &self.error
    }

    /// The same without file and row.
    pub fn problem(&self) -> String {
        self.error.row_problem().unwrap_or_else(|| self.error.to_string())
    }
}

/// Marks the places of bad rows among `n_rows` rows.
pub(crate) fn marked(n_rows: usize, bad_rows: &[BadRow]) -> Vec<bool> {
    let mut is_bad = vec![false; n_rows];
    bad_rows.iter().for_each(|bad| is_bad[bad.place] = true);
    is_bad
}
