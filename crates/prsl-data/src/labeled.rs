//! Beliefs and truths, read together.

use prsl::{BeliefMatrix, Truth};

use crate::bad_rows::{BadRow, marked};
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
    /// The rows read so far, skipped ones included.
    n_rows: u64,
    /// The numbers of skipped rows, counted from 1, and what is wrong with the first one.
    skipped: Vec<u64>,
    first_problem: Option<String>,
    /// The values of the columns that identify the rows read last.
    ids: Vec<Column>,
}

/// Rows of beliefs, and as many truths.
pub type LabeledRows = (BeliefMatrix, Vec<Truth>);

/// Number of rows read at a time when rows are only counted.
const SKIPPED: usize = 1000;

impl LabeledReader {
    /// Combines the two readers.
    pub fn new(beliefs: BeliefReader, truths: TruthReader) -> LabeledReader {
        LabeledReader {
            beliefs,
            truths,
            n_rows: 0,
            skipped: Vec::new(),
            first_problem: None,
            ids: Vec::new(),
        }
    }

    /// Skips rows that are not valid in one of the tables, instead of returning an error at the first one.
    ///
    /// ```
    /// use prsl::Model;
    /// use prsl_data::{BeliefOptions, BeliefReader, LabeledReader, TableReader, TruthOptions, TruthReader};
    ///
    /// let model = Model::parse("label alarm")?;
    /// let beliefs = TableReader::csv("alarm\n0.9\nx\n0.2\n".as_bytes(), "beliefs.csv")?;
    /// let truths = TableReader::csv("alarm\nyes\nno\nmaybe\n".as_bytes(), "truth.csv")?;
    /// let mut reader = LabeledReader::new(
    ///     BeliefReader::new(&model, beliefs, BeliefOptions::default())?,
    ///     TruthReader::new(&model, truths, TruthOptions::default())?,
    /// )
    /// .skip_bad_rows();
    /// let (beliefs, truths) = reader.next_chunk(1000)?.expect("there are rows");
    /// assert_eq!((beliefs.n_rows(), truths.len()), (1, 1));
    /// assert_eq!(reader.skipped(), [2, 3]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn skip_bad_rows(self) -> LabeledReader {
        let (beliefs, truths) = (self.beliefs.with_bad_rows_apart(), self.truths.with_bad_rows_apart());
        LabeledReader { beliefs, truths, ..self }
    }

    /// The rows skipped so far, counted from 1.
    pub fn skipped(&self) -> &[u64] {
        &self.skipped
    }

    /// What is wrong with the first skipped row, with file and row.
    pub fn first_problem(&self) -> Option<&str> {
        self.first_problem.as_deref()
    }

    /// The number of rows read so far, skipped ones included.
    pub fn n_rows(&self) -> u64 {
        self.n_rows
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
        &self.ids
    }

    /// The next rows, at least one and at most `max_rows` of them, or `None` at the end of both tables. Returns an error if
    /// columns that identify the rows are in both tables and differ.
    pub fn next_chunk(&mut self, max_rows: usize) -> Result<Option<LabeledRows>> {
        loop {
            let Some(beliefs) = self.beliefs.next_chunk(max_rows)? else {
                return match self.truths.next_chunk(SKIPPED)? {
                    None => Ok(None),
                    Some(_) => Err(self.row_counts(0, self.truths.n_read())?),
                };
            };
            let n_read = self.beliefs.n_read();
            self.first_problem = self.first_problem.take().or_else(|| first(self.beliefs.bad_rows()));
            let (mut truths, mut is_known) = (Vec::new(), Vec::new());
            while is_known.len() < n_read {
                let Some(more) = self.truths.next_chunk(n_read - is_known.len())? else {
                    return Err(self.row_counts(n_read, is_known.len())?);
                };
                self.check_ids(is_known.len(), self.truths.n_read())?;
                let is_bad = marked(self.truths.n_read(), self.truths.bad_rows());
                self.first_problem = self.first_problem.take().or_else(|| first(self.truths.bad_rows()));
                is_known.extend(is_bad.into_iter().map(|is_bad| !is_bad));
                truths.extend(more);
            }
            let rows = self.valid(beliefs, truths, &is_known);
            self.n_rows += n_read as u64;
            if !rows.1.is_empty() {
                return Ok(Some(rows));
            }
        }
    }

    /// The rows that are valid in both tables.
    fn valid(&mut self, beliefs: BeliefMatrix, mut truths: Vec<Truth>, is_known: &[bool]) -> LabeledRows {
        let is_believed: Vec<bool> =
            marked(is_known.len(), self.beliefs.bad_rows()).into_iter().map(|is_bad| !is_bad).collect();
        let is_valid: Vec<bool> = is_known.iter().zip(&is_believed).map(|(a, b)| *a && *b).collect();
        if !is_valid.contains(&false) {
            self.ids = self.beliefs.ids().to_vec();
            return (beliefs, truths);
        }
        let kept: Vec<usize> = (0..is_valid.len()).filter(|&place| is_valid[place]).collect();
        self.ids = self.beliefs.ids().iter().map(|column| column.select(&kept)).collect();
        let skipped = (1..).zip(&is_valid).filter(|(_, is_valid)| !**is_valid);
        self.skipped.extend(skipped.map(|(number, _)| self.n_rows + number));
        let among = |is_given: &[bool]| -> Vec<bool> {
            is_valid.iter().zip(is_given).filter_map(|(valid, given)| given.then_some(*valid)).collect()
        };
        let of_truths = among(is_known);
        self.truths.retain_last(&of_truths);
        let mut kept = of_truths.iter();
        truths.retain(|_| *kept.next().expect("there is one for each truth"));
        let places = among(&is_believed).into_iter().enumerate();
        let places: Vec<usize> = places.filter_map(|(place, valid)| valid.then_some(place)).collect();
        (beliefs.select(&places), truths)
    }

    /// Compares the ids of the truths that were read last with those of their beliefs, which start at `first`. Rows that are
    /// not valid as text have none.
    fn check_ids(&self, first: usize, n_rows: usize) -> Result<()> {
        let is_bad = marked(n_rows, self.truths.bad_rows());
        let is_believed_bad = marked(self.beliefs.n_read(), self.beliefs.bad_rows());
        let is_valid = |row: &usize| !is_bad[*row] && !is_believed_bad[first + *row];
        for (spec, truths) in self.truths.id_columns().iter().zip(self.truths.ids()) {
            let place = self.beliefs.id_columns().iter().position(|it| it.name == spec.name);
            let Some(beliefs) = place.map(|place| &self.beliefs.ids()[place]) else { continue };
            let texts = |row: usize| [beliefs.text(first + row), truths.text(row)];
            let differs = (0..n_rows).filter(is_valid).find(|&row| texts(row)[0] != texts(row)[1]);
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
        while self.beliefs.next_chunk(SKIPPED)?.is_some() {
            n_beliefs += self.beliefs.n_read() as u64;
        }
        while self.truths.next_chunk(SKIPPED)?.is_some() {
            n_truths += self.truths.n_read() as u64;
        }
        let name = |table: &crate::TableReader| table.name().to_owned();
        let (beliefs, truths) = (name(self.beliefs.table()), name(self.truths.table()));
        Ok(Error::RowCounts { beliefs, n_beliefs, truths, n_truths })
    }
}

/// What is wrong with the first one of some rows.
fn first(bad_rows: &[BadRow]) -> Option<String> {
    bad_rows.first().map(|bad| bad.error().to_string())
}
