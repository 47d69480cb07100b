//! Tables as true categories of the labels of a model.

use std::cmp::Ordering;
use std::fmt;

use prsl::{CategoryId, Label, Model, Truth};

use crate::bad_rows::{BadRow, marked};
use crate::cell::Cell;
use crate::columns::{Columns, Meaning, Names, check_missing, find_category, not_a_category};
use crate::error::{CellProblem, ColumnsProblem, Error, Result};
use crate::ids::Ids;
use crate::table::{Chunk, TableReader};
use crate::writer::{Column, ColumnSpec};

/// Options of a [`TruthReader`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TruthOptions {
    /// Skip columns that are not labels of the model, instead of rejecting them.
    pub ignore_extra: bool,
}

/// Reads a table as true categories: one column per label with names of categories; empty cells are unknown.
///
/// For labels with the categories yes and no, `1` and `true` are yes, `0` and `false` no. A missing column is a
/// column of empty cells.
///
/// ```
/// use prsl::Model;
/// use prsl_data::{TableReader, TruthOptions, TruthReader};
///
/// let model = Model::parse("label hands: high, centered, low\nlabel alarm")?;
/// let table = TableReader::csv("alarm,hands\n1,low\nno,\n".as_bytes(), "truth.csv")?;
/// let mut truths = TruthReader::new(&model, table, TruthOptions::default())?;
/// let rows = truths.next_chunk(1000)?.expect("there are rows");
/// assert_eq!(rows, [[Some(2), Some(0)], [None, Some(1)]]);
/// assert!(truths.next_chunk(1000)?.is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TruthReader {
    model: Model,
    table: TableReader,
    columns: Columns,
    /// The column of weights, and the weights read so far.
    weights: Option<(usize, Vec<f64>)>,
    /// The column of keys, and the keys read so far.
    keys: Option<(usize, Vec<Key>)>,
    ids: Ids,
    /// The rows read last, those that are not valid included, and these.
    n_read: usize,
    bad_rows: Vec<BadRow>,
}

/// Columns of a table of truths that are about the rows instead of the labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct RowColumns<'a> {
    /// The column of row weights: numbers of 0 or more.
    pub weights: Option<&'a str>,
    /// The column of keys, which order the rows.
    pub key: Option<&'a str>,
    /// Columns that identify the rows, where the table has them.
    pub ids: &'a [String],
}

impl<'a> RowColumns<'a> {
    /// A column of weights and a column of keys, if there are such columns.
    pub fn new(weights: Option<&'a str>, key: Option<&'a str>) -> Self {
        Self { weights, key, ids: &[] }
    }

    /// The same with columns that identify the rows.
    pub fn with_ids(self, ids: &'a [String]) -> Self {
        Self { ids, ..self }
    }
}

/// The key of a row. Numbers come before texts.
#[derive(Debug, Clone, PartialEq)]
pub enum Key {
    /// A number, or a text that is one.
    Number(f64),
    /// Any other text.
    Text(String),
}

/// Integers beyond this are not numbers of their own in double precision.
const MAX_INTEGER: f64 = 9_007_199_254_740_992.0;

impl From<&str> for Key {
    /// A number if the text is one, except for integers that a number would round: two of them are different keys.
    ///
    /// ```
    /// use prsl_data::Key;
    ///
    /// assert_eq!(Key::from("17"), Key::Number(17.0));
    /// assert_ne!(Key::from("9007199254740993"), Key::from("9007199254740992"));
    /// ```
    fn from(text: &str) -> Self {
        match text.parse::<f64>() {
            Ok(number) if number.abs() < MAX_INTEGER => Key::Number(number),
            _ => Key::Text(text.to_owned()),
        }
    }
}

impl Eq for Key {}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Number(a), Self::Number(b)) => a.total_cmp(b),
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
            (Self::Number(_), Self::Text(_)) => Ordering::Less,
            (Self::Text(_), Self::Number(_)) => Ordering::Greater,
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

impl TruthReader {
    /// Finds the labels among the columns.
    pub fn new(model: &Model, table: TableReader, options: TruthOptions) -> Result<TruthReader> {
        Self::with_columns(model, table, options, RowColumns::default())
    }

    /// The same with columns of row weights and keys.
    ///
    /// ```
    /// use prsl::Model;
    /// use prsl_data::{RowColumns, TableReader, TruthOptions, TruthReader};
    ///
    /// let model = Model::parse("label alarm")?;
    /// let table = TableReader::csv("alarm,weight\n1,2.5\nno,0\n".as_bytes(), "truth.csv")?;
    /// let columns = RowColumns::new(Some("weight"), None);
    /// let mut truths = TruthReader::with_columns(&model, table, TruthOptions::default(), columns)?;
    /// truths.next_chunk(1000)?;
    /// assert_eq!(truths.weights(), Some(&[2.5, 0.0][..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_columns(
        model: &Model,
        mut table: TableReader,
        options: TruthOptions,
        wanted: RowColumns<'_>,
    ) -> Result<TruthReader> {
        check_missing(model, &table)?;
        let place = |column: Option<&str>, problem: fn(String) -> ColumnsProblem| {
            let Some(column) = column else { return Ok(None) };
            let place = table.columns().iter().position(|name| name == column);
            let missing =
                || Error::Columns { file: table.name().to_owned(), problem: problem(column.to_owned()) };
            place.map(Some).ok_or_else(missing)
        };
        let weights = place(wanted.weights, |column| ColumnsProblem::NoWeights { column })?;
        let key = place(wanted.key, |column| ColumnsProblem::NoKey { column })?;
        let ids = Ids::among(&table, wanted.ids);
        let of_rows: Vec<usize> = weights.into_iter().chain(key).collect();
        let aside = [&of_rows, ids.places()].concat();
        let columns = Names::of_labels(model).resolve(&table, &aside, options.ignore_extra)?;
        let places: Vec<usize> = columns.iter().map(|(column, _)| *column).chain(of_rows).collect();
        table.select_with_ids(&places, ids.places())?;
        Ok(TruthReader {
            model: model.clone(),
            table,
            columns,
            weights: weights.map(|column| (column, Vec::new())),
            keys: key.map(|column| (column, Vec::new())),
            ids,
            n_read: 0,
            bad_rows: Vec::new(),
        })
    }

    /// Keeps rows that are not valid apart ([`TruthReader::bad_rows`]), instead of returning an error at the first one.
    ///
    /// ```
    /// use prsl::Model;
    /// use prsl_data::{TableReader, TruthOptions, TruthReader};
    ///
    /// let model = Model::parse("label alarm")?;
    /// let table = TableReader::csv("alarm\nyes\nmaybe\nno\n".as_bytes(), "truth.csv")?;
    /// let mut truths = TruthReader::new(&model, table, TruthOptions::default())?.with_bad_rows_apart();
    /// assert_eq!(truths.next_chunk(1000)?.expect("there are rows"), [[Some(0)], [Some(1)]]);
    /// assert_eq!(truths.bad_rows()[0].row(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_bad_rows_apart(mut self) -> TruthReader {
        self.table.keep_bad_rows();
        self
    }

    /// The rows among those read last that are not valid, in order, if they are kept apart.
    pub fn bad_rows(&self) -> &[BadRow] {
        &self.bad_rows
    }

    /// The number of rows read last, those that are not valid included.
    pub(crate) fn n_read(&self) -> usize {
        self.n_read
    }

    /// Forgets weights and keys of rows among the last `is_kept.len()` valid ones.
    pub(crate) fn retain_last(&mut self, is_kept: &[bool]) {
        if let Some((_, weights)) = &mut self.weights {
            retain_last(weights, is_kept);
        }
        if let Some((_, keys)) = &mut self.keys {
            retain_last(keys, is_kept);
        }
    }

    /// The weights of all rows read so far, if there is a column of weights.
    pub fn weights(&self) -> Option<&[f64]> {
        self.weights.as_ref().map(|(_, weights)| &weights[..])
    }

    /// The keys of all rows read so far, if there is a column of keys.
    pub fn keys(&self) -> Option<&[Key]> {
        self.keys.as_ref().map(|(_, keys)| &keys[..])
    }

    /// The columns that identify the rows.
    pub(crate) fn id_columns(&self) -> &[ColumnSpec] {
        self.ids.specs()
    }

    /// The values of these columns in the rows that were read last.
    pub(crate) fn ids(&self) -> &[Column] {
        self.ids.values()
    }

    /// The table, for its name and progress.
    pub fn table(&self) -> &TableReader {
        &self.table
    }

    /// The next rows, at least one and at most `max_rows` of them, or `None` at the end.
    pub fn next_chunk(&mut self, max_rows: usize) -> Result<Option<Vec<Truth>>> {
        let Some(mut chunk) = self.table.read_chunk(max_rows)? else { return Ok(None) };
        self.ids.read(&chunk);
        self.n_read = chunk.n_rows();
        self.bad_rows = chunk.take_bad_rows();
        let is_bad = marked(self.n_read, &self.bad_rows);
        let mut rows = Vec::with_capacity(self.n_read);
        for index in (0..self.n_read).filter(|&index| !is_bad[index]) {
            match self.read_row(&chunk, index) {
                Ok((truth, weight, key)) => {
                    rows.push(truth);
                    self.weights.iter_mut().for_each(|(_, weights)| weights.extend(weight));
                    self.keys.iter_mut().for_each(|(_, keys)| keys.extend(key.clone()));
                }
                Err(error) if self.table.keeps_bad_rows() => {
                    self.bad_rows.push(BadRow::new(index, chunk.first_row() + index as u64, error));
                }
                Err(error) => return Err(error),
            }
        }
        self.bad_rows.sort_by_key(BadRow::place);
        Ok(Some(rows))
    }

    /// The truth of a row, and its weight and key if there are such columns.
    fn read_row(&self, chunk: &Chunk, index: usize) -> Result<(Truth, Option<f64>, Option<Key>)> {
        let decimal = self.table.decimal();
        let wrong = |column: usize, problem: CellProblem| Error::Cell {
            file: self.table.name().to_owned(),
            row: chunk.first_row() + index as u64,
            column: self.table.columns()[column].clone(),
            problem: Box::new(problem),
        };
        let mut row = Truth::unknown(self.model.labels().len());
        for &(column, meaning) in &self.columns {
            let Meaning::Label(label) = meaning else { continue };
            let truth = category(self.model.label(label), chunk.cell(index, column), decimal);
            row.set(label, truth.map_err(|problem| wrong(column, problem))?);
        }
        let weight = self.weights.as_ref().map(|(column, _)| {
            weight(chunk.cell(index, *column), decimal).map_err(|problem| wrong(*column, problem))
        });
        let key = self
            .keys
            .as_ref()
            .map(|(column, _)| key(chunk, index, *column).map_err(|problem| wrong(*column, problem)));
        Ok((row, weight.transpose()?, key.transpose()?))
    }
}

/// Removes some of the last values.
fn retain_last<T>(values: &mut Vec<T>, is_kept: &[bool]) {
    let last = values.split_off(values.len() - is_kept.len());
    values.extend(last.into_iter().zip(is_kept).filter_map(|(value, kept)| kept.then_some(value)));
}

/// The weight of a row.
fn weight(cell: Cell<'_>, decimal: u8) -> std::result::Result<f64, CellProblem> {
    match cell.number_with(decimal)? {
        Some(weight) if weight >= 0.0 => Ok(weight),
        Some(weight) => Err(CellProblem::NotAWeight { value: weight.to_string() }),
        None => Err(CellProblem::NotAWeight { value: "nothing".to_owned() }),
    }
}

/// The key of a row. A number has the key of its text, as on Spark: an `f64` would round large integers.
fn key(chunk: &Chunk, row: usize, column: usize) -> std::result::Result<Key, CellProblem> {
    match chunk.cell(row, column) {
        Cell::Missing => Err(CellProblem::NoKey),
        Cell::Number(number) => {
            let text = chunk.number_text(row, column);
            Ok(text.map_or(Key::Number(number), |text| Key::from(text.as_str())))
        }
        Cell::Text(text) => Ok(Key::from(text)),
    }
}

/// The category that a cell names.
fn category(
    label: &Label,
    cell: Cell<'_>,
    decimal: u8,
) -> std::result::Result<Option<CategoryId>, CellProblem> {
    let (yes, no) = (CategoryId::new(0), CategoryId::new(1));
    if cell == Cell::Missing {
        return Ok(None);
    }
    if let Some(category) = find_category(label, cell) {
        return Ok(Some(category));
    }
    if !label.is_binary() {
        return Err(not_a_category(label, cell, ""));
    }
    match cell {
        Cell::Text(text) if text.eq_ignore_ascii_case("true") => Ok(Some(yes)),
        Cell::Text(text) if text.eq_ignore_ascii_case("false") => Ok(Some(no)),
        cell => match cell.number_with(decimal) {
            Ok(Some(1.0)) => Ok(Some(yes)),
            Ok(Some(0.0)) => Ok(Some(no)),
            _ => Err(not_a_category(label, cell, ", 1 or 0, true or false")),
        },
    }
}
