//! Tables in memory in Arrow's format, and the cells of Arrow arrays.

use std::collections::VecDeque;
use std::fmt::Display;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, downcast_integer_array};
use arrow::datatypes::{
    DataType, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, DecimalType, Float16Type,
    Float32Type, Float64Type, Schema,
};
use arrow::util::display::{ArrayFormatter, FormatOptions};

use crate::cell::Cell;
use crate::error::{Error, Result};
use crate::table::check_columns;
use crate::writer::{Column, ColumnKind};

/// Batches of rows, partly read.
pub(crate) struct ArrowTable {
    kinds: Vec<(String, DataType)>,
    selected: Vec<usize>,
    /// Columns that identify rows, of any type.
    ids: Vec<usize>,
    batches: VecDeque<RecordBatch>,
}

impl ArrowTable {
    /// The names of the columns, and the table.
    pub(crate) fn new(
        schema: &Schema,
        batches: impl IntoIterator<Item = RecordBatch>,
        name: &str,
    ) -> Result<(Vec<String>, ArrowTable)> {
        let kinds: Vec<_> =
            schema.fields().iter().map(|field| (field.name().clone(), field.data_type().clone())).collect();
        let columns: Vec<_> = kinds.iter().map(|(name, _)| name.clone()).collect();
        check_columns(name, &columns)?;
        let selected = (0..columns.len()).collect();
        Ok((columns, ArrowTable { kinds, selected, ids: Vec::new(), batches: batches.into_iter().collect() }))
    }

    /// Keeps only these columns, and those that identify rows.
    pub(crate) fn select(&mut self, columns: &[usize], ids: &[usize]) {
        self.selected = columns.to_vec();
        self.ids = ids.to_vec();
    }

    /// The next rows, at most `max_rows` of them.
    pub(crate) fn read_chunk(&mut self, max_rows: usize, name: &str) -> Result<Option<ArrowChunk>> {
        for &column in &self.selected {
            let (column, kind) = &self.kinds[column];
            check_kind(name, column, kind)?;
        }
        while self.batches.front().is_some_and(|batch| batch.num_rows() == 0) {
            self.batches.pop_front();
        }
        let Some(batch) = self.batches.front_mut() else { return Ok(None) };
        let n_rows = max_rows.min(batch.num_rows());
        let rows = batch.slice(0, n_rows);
        *batch = batch.slice(n_rows, batch.num_rows() - n_rows);
        let selected = |index: usize| self.selected.contains(&index) || self.ids.contains(&index);
        let names = self.kinds.iter().enumerate();
        let names = names.map(|(index, (name, _))| if selected(index) { name.as_str() } else { "" });
        let chunk =
            ArrowChunk::new(&rows, names).map_err(|cause| Error::Arrow { name: name.to_owned(), cause })?;
        Ok(Some(ArrowChunk { nan_is_missing: true, ..chunk }))
    }

    /// The type of a column.
    pub(crate) fn kind(&self, column: usize) -> &DataType {
        &self.kinds[column].1
    }

    /// The number of unread rows.
    pub(crate) fn n_rows_left(&self) -> u64 {
        self.batches.iter().map(|batch| batch.num_rows() as u64).sum()
    }
}

/// Rows of a table.
#[derive(Debug)]
pub(crate) struct ArrowChunk {
    /// The values of each column, where it is selected.
    values: Vec<Option<Values>>,
    /// All columns unchanged, where the table has them.
    arrays: Vec<Option<ArrayRef>>,
    pub(crate) n_rows: usize,
    /// Libraries for data in memory use NaN for missing values; in a file NaN is an error.
    nan_is_missing: bool,
}

impl ArrowChunk {
    /// The columns of these names; names without a column are missing.
    pub(crate) fn new<'a>(
        rows: &RecordBatch,
        names: impl Iterator<Item = &'a str>,
    ) -> std::result::Result<Self, &'static str> {
        let arrays: Vec<_> = names.map(|name| rows.column_by_name(name).cloned()).collect();
        let values = arrays.iter().map(|array| array.as_ref().map(Values::new).transpose());
        Ok(Self {
            values: values.collect::<std::result::Result<_, _>>()?,
            arrays,
            n_rows: rows.num_rows(),
            nan_is_missing: false,
        })
    }

    pub(crate) fn cell(&self, row: usize, column: usize) -> Cell<'_> {
        match self.values[column].as_ref().map_or(Cell::Missing, |values| values.cell(row)) {
            Cell::Number(number) if number.is_nan() && self.nan_is_missing => Cell::Missing,
            cell => cell,
        }
    }
}

impl ArrowChunk {
    /// The text of a number or a boolean, as Apache Spark casts it to a string. Integers and decimals have all their digits.
    pub(crate) fn number_text(&self, row: usize, column: usize) -> Option<String> {
        let array = self.arrays[column].as_ref()?.slice(row, 1);
        let mut kind = array.data_type();
        while let DataType::Dictionary(_, values) = kind {
            kind = values;
        }
        let text = match (kind, self.cell(row, column)) {
            (DataType::Float32, Cell::Number(number)) => format!("{:E}", number as f32),
            (kind, Cell::Number(number)) if kind.is_floating() => format!("{number:E}"),
            _ => return texts(&array).pop().flatten(),
        };
        // Rust writes 1E20 and inf, Java 1.0E20 and Infinity.
        Some(match text.split_once('E') {
            Some((digits, exponent)) if !digits.contains('.') => format!("{digits}.0E{exponent}"),
            _ => text.replace("inf", "Infinity"),
        })
    }

    /// The values of a column that identifies rows.
    pub(crate) fn id_column(&self, column: usize, kind: ColumnKind) -> Column {
        let cells = || (0..self.n_rows).map(|row| self.cell(row, column));
        match kind {
            ColumnKind::Number => Column::Number(cells().map(|cell| cell.number().ok().flatten()).collect()),
            ColumnKind::Boolean => Column::Boolean(
                cells().map(|cell| cell.number().ok().flatten().map(|it| it != 0.0)).collect(),
            ),
            ColumnKind::Integer => Column::Integer(
                self.arrays[column].as_ref().map_or_else(|| vec![None; self.n_rows], whole_numbers),
            ),
            ColumnKind::Text => {
                Column::Text(self.arrays[column].as_ref().map_or_else(|| vec![None; self.n_rows], texts))
            }
        }
    }
}

/// The type in which a column that identifies rows is written. Types without a counterpart become text.
pub(crate) fn id_kind(kind: &DataType) -> ColumnKind {
    match kind {
        DataType::Boolean => ColumnKind::Boolean,
        DataType::UInt64 => ColumnKind::Text,
        kind if kind.is_integer() => ColumnKind::Integer,
        kind if kind.is_floating() => ColumnKind::Number,
        _ => ColumnKind::Text,
    }
}

/// Integers that fit 64 bits with a sign; columns of others are text ([`id_kind`]).
#[allow(clippy::unnecessary_cast, reason = "the code is repeated for integers of every width")]
fn whole_numbers(array: &ArrayRef) -> Vec<Option<i64>> {
    let array: &dyn Array = array;
    downcast_integer_array!(
        array => array.iter().map(|value| value.map(|value| value as i64)).collect(),
        _ => vec![None; array.len()],
    )
}

/// Any values as text.
fn texts(array: &ArrayRef) -> Vec<Option<String>> {
    let options = FormatOptions::default();
    let Ok(format) = ArrayFormatter::try_new(array, &options) else { return vec![None; array.len()] };
    let text = |row: usize| format.value(row).try_to_string().ok().filter(|text| !text.is_empty());
    (0..array.len()).map(|row| text(row).filter(|_| !array.is_null(row))).collect()
}

/// Rejects a column of an unsupported type.
pub(crate) fn check_kind(file: &str, column: &str, kind: &DataType) -> Result<()> {
    if is_supported(kind) {
        return Ok(());
    }
    Err(Error::UnsupportedColumn { file: file.to_owned(), column: column.to_owned(), kind: kind.to_string() })
}

fn is_supported(kind: &DataType) -> bool {
    match kind {
        DataType::Dictionary(_, values) => is_supported(values),
        DataType::Null | DataType::Boolean => true,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        kind => kind.is_numeric(),
    }
}

/// The values of a column, one for each row.
#[derive(Debug)]
enum Values {
    Missing,
    Numbers(Vec<Option<f64>>),
    Text(ArrayRef),
    /// For each row, the position of its value among the values.
    Dictionary(Vec<Option<usize>>, Box<Values>),
}

impl Values {
    fn new(array: &ArrayRef) -> std::result::Result<Values, &'static str> {
        Ok(match array.data_type() {
            DataType::Boolean => numbers(array.as_boolean().iter()),
            DataType::Float16 => numbers(array.as_primitive::<Float16Type>()),
            DataType::Float32 => numbers(array.as_primitive::<Float32Type>()),
            DataType::Float64 => numbers(array.as_primitive::<Float64Type>()),
            DataType::Decimal32(..) => decimals::<Decimal32Type>(array),
            DataType::Decimal64(..) => decimals::<Decimal64Type>(array),
            DataType::Decimal128(..) => decimals::<Decimal128Type>(array),
            DataType::Decimal256(..) => decimals::<Decimal256Type>(array),
            kind if kind.is_integer() => Values::Numbers(integers(array)),
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Values::Text(array.clone()),
            DataType::Dictionary(_, _) => {
                let dictionary = array.as_any_dictionary();
                let n_values = dictionary.values().len() as f64;
                let keys = integers(dictionary.keys());
                if keys.iter().flatten().any(|&key| key < 0.0 || key >= n_values) {
                    return Err("a key of a dictionary has no value");
                }
                let keys = keys.into_iter().map(|key| key.map(|key| key as usize)).collect();
                Values::Dictionary(keys, Box::new(Values::new(dictionary.values())?))
            }
            _ => Values::Missing,
        })
    }

    fn cell(&self, row: usize) -> Cell<'_> {
        match self {
            Values::Missing => Cell::Missing,
            Values::Numbers(values) => values[row].map_or(Cell::Missing, Cell::Number),
            Values::Text(array) if array.is_null(row) => Cell::Missing,
            Values::Text(array) => Cell::from_text(match array.data_type() {
                DataType::Utf8 => array.as_string::<i32>().value(row),
                DataType::LargeUtf8 => array.as_string::<i64>().value(row),
                _ => array.as_string_view().value(row),
            }),
            Values::Dictionary(keys, values) => keys[row].map_or(Cell::Missing, |key| values.cell(key)),
        }
    }
}

fn numbers<T: Into<f64>>(values: impl IntoIterator<Item = Option<T>>) -> Values {
    Values::Numbers(values.into_iter().map(|value| value.map(Into::into)).collect())
}

/// Decimals, rounded to the nearest `f64`.
fn decimals<T: DecimalType<Native: Display>>(array: &ArrayRef) -> Values {
    let array = array.as_primitive::<T>();
    let scale = i32::from(array.scale());
    let number = |digits| format!("{digits}e{}", -scale).parse::<f64>().ok();
    Values::Numbers(array.iter().map(|digits| digits.and_then(number)).collect())
}

/// Integers of any width as numbers.
fn integers(array: &dyn Array) -> Vec<Option<f64>> {
    downcast_integer_array!(
        array => array.iter().map(|value| value.map(|value| value as f64)).collect(),
        _ => vec![None; array.len()],
    )
}
