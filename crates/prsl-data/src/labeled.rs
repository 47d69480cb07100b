//! Beliefs and truths, read together.

use prsl::{BeliefMatrix, Truth};

use crate::beliefs::BeliefReader;
use crate::error::{Error, Result};
use crate::truths::{Key, TruthReader};
use crate::writer::{Column, ColumnSpec};

/// Reads beliefs and truths together, row by row.
///
/// ```
/// use prsl::Model;
/// use prsl_data::{BeliefOptions, BeliefReader, LabeledReader, TableReader, TruthOptions, TruthReader};
///
/// let model = Model::parse("label alarm")?;
/// let beliefs = TableReader::csv("alarm\n0.9\n0.2\n".as_bytes(), "beliefs.csv")?;
/// let truths = TableReader::csv("alarm\nyes\n".as_bytes(), "truth.csv")?;
/// let mut reader = LabeledReader::new(
///     BeliefReader::new(&model, beliefs, BeliefOptions::default())?,
///     TruthReader::new(&model, truths, TruthOptions::default())?,
/// );
/// let error = reader.next_chunk(1000).unwrap_err();
/// assert!(error.to_string().starts_with("`beliefs.csv` has 2 rows and `truth.csv` has 1"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct LabeledReader {
    beliefs: BeliefReader,
    truths: TruthReader,
    n_rows: u64,
}

/// Rows of beliefs, and as many truths.
pub type LabeledRows = (BeliefMatrix, Vec<Truth>);

/// Number of rows read at a time when rows are only counted.
const SKIPPED: usize = 1000;

impl LabeledReader {
    /// Combines the two readers.
    pub fn new(beliefs: BeliefReader, truths: TruthReader) -> LabeledReader {
        LabeledReader { beliefs, truths, n_rows: 0 }
    }

    /// The share of the table of beliefs that has been read, if known.
    pub fn progress(&self) -> Option<f64> {
        self.beliefs.table().progress()
    }

    /// The weights of all rows read so far, if the table of truths has a column of them.
    pub fn weights(&self) -> Option<&[f64]> {
        self.truths.weights()
    }

    /// The keys of all rows read so far, if the table of truths has a column of them.
    pub fn keys(&self) -> Option<&[Key]> {
        self.truths.keys()
    }

    /// The columns that identify the rows of beliefs.
    pub fn id_columns(&self) -> &[ColumnSpec] {
        self.beliefs.id_columns()
    }

    /// The values of these columns in the rows that were read last.
    pub fn ids(&self) -> &[Column] {
        self.beliefs.ids()
    }

    /// The next rows, at least one and at most `max_rows` of them, or `None` at the end of both tables. Returns an error if
    /// columns that identify the rows are in both tables and differ.
    pub fn next_chunk(&mut self, max_rows: usize) -> Result<Option<LabeledRows>> {
        let Some(beliefs) = self.beliefs.next_chunk(max_rows)? else {
            return match self.truths.next_chunk(SKIPPED)? {
                None => Ok(None),
                Some(more) => Err(self.row_counts(0, more.len())?),
            };
        };
        let mut truths = Vec::new();
        while truths.len() < beliefs.n_rows() {
            match self.truths.next_chunk(beliefs.n_rows() - truths.len())? {
                Some(more) => {
                    self.check_ids(truths.len(), more.len())?;
                    truths.extend(more);
                }
                None => return Err(self.row_counts(beliefs.n_rows(), truths.len())?),
            }
        }
        self.n_rows += beliefs.n_rows() as u64;
        Ok(Some((beliefs, truths)))
    }

    /// Compares the ids of the truths that were read last with those of their beliefs, which start at `first`.
    fn check_ids(&self, first: usize, n_rows: usize) -> Result<()> {
        for (spec, truths) in self.truths.id_columns().iter().zip(self.truths.ids()) {
            let place = self.beliefs.id_columns().iter().position(|it| it.name == spec.name);
            let Some(beliefs) = place.map(|place| &self.beliefs.ids()[place]) else { continue };
            let texts = |row: usize| [beliefs.text(first + row), truths.text(row)];
            let differs = (0..n_rows).find(|&row| texts(row)[0] != texts(row)[1]);
            if let Some(row) = differs {
                return Err(Error::Ids {
                    row: self.n_rows + (first + row) as u64 + 1,
                    column: spec.name.clone(),
                    files: [self.beliefs.table(), self.truths.table()]
                        .map(|table| table.name().to_owned())
                        .into(),
                    texts: texts(row).map(Option::unwrap_or_default).into(),
                });
            }
        }
        Ok(())
    }

    /// The error that the tables have different lengths. Reads both to the end, to report their numbers of rows.
    fn row_counts(&mut self, beliefs: usize, truths: usize) -> Result<Error> {
        let (mut n_beliefs, mut n_truths) = (self.n_rows + beliefs as u64, self.n_rows + truths as u64);
        while let Some(more) = self.beliefs.next_chunk(SKIPPED)? {
            n_beliefs += more.n_rows() as u64;
        }
        while let Some(more) = self.truths.next_chunk(SKIPPED)? {
            n_truths += more.len() as u64;
        }
        let name = |table: &crate::TableReader| table.name().to_owned();
        let (beliefs, truths) = (name(self.beliefs.table()), name(self.truths.table()));
        Ok(Error::RowCounts { beliefs, n_beliefs, truths, n_truths })
    }
}
