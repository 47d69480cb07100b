//! Tables written chunk by chunk.

mod text;

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use crate::error::{Error, Result, WriteProblem};
use crate::output::{Output, Target};
use crate::source::{has_extension, without_gz};
use text::{end_csv_line, push_csv_cell, push_csv_text, push_json_text, push_json_value, separate};

/// Maximum size of a row group in bytes. A row group stays in memory until it is complete, which matters for tables
/// with very many columns.
const ROW_GROUP_ROWS: usize = 1 << 17;
const ROW_GROUP_BYTES: usize = 64 << 20;

/// The format of a written table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Comma-separated values; a missing value is an empty cell.
    Csv,
    /// One JSON object per line, keys in the order of the columns; a missing value is `null`.
    JsonLines,
    /// Parquet, compressed with zstd.
    Parquet,
}

/// The type of a column; every value may be missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// Numbers.
    Number,
    /// Whole numbers, such as row numbers.
    Integer,
    /// Text.
    Text,
    /// Yes or no, written `true` and `false`.
    Boolean,
}

/// The name and type of a column.
///
/// ```
/// use prsl_data::{ColumnKind, ColumnSpec};
///
/// let column = ColumnSpec::new("weather=rain", ColumnKind::Number);
/// assert_eq!(column.name, "weather=rain");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnSpec {
    /// The name.
    pub name: String,
    /// What it holds.
    pub kind: ColumnKind,
}

/// The values of one column in some consecutive rows.
#[derive(Debug, Clone, PartialEq)]
pub enum Column {
    /// Numbers.
    Number(Vec<Option<f64>>),
    /// Whole numbers.
    Integer(Vec<Option<i64>>),
    /// Text.
    Text(Vec<Option<String>>),
    /// Yes or no.
    Boolean(Vec<Option<bool>>),
}

/// A table that is written chunk by chunk.
///
/// Numbers are written with as many digits as it takes to read the same number again. CSV and JSON have no way to
/// write infinities and NaN; these are errors.
///
/// ```
/// use prsl_data::{Column, ColumnKind, ColumnSpec, Format, TableReader, TableWriter, Target};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("posterior.csv");
/// let columns = [ColumnSpec::new("id", ColumnKind::Text), ColumnSpec::new("rain", ColumnKind::Number)];
///
/// let mut table = TableWriter::create(Target::File(path.clone()), Format::from_path(&path)?, &columns)?;
/// table.write(&[Column::Text(vec![Some("a".into()), None]), Column::Number(vec![Some(0.7034), Some(1e-300)])])?;
/// assert!(!path.exists());
/// table.finish()?;
/// assert_eq!(std::fs::read_to_string(&path)?, "id,rain\na,0.7034\n,1e-300\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TableWriter {
    name: String,
    columns: Vec<ColumnSpec>,
    rows_written: u64,
    sink: Sink,
}

impl Format {
    /// The format by the ending of the name: `.csv`, `.jsonl` or `.ndjson`, `.parquet` or `.pq`. Names of CSV and JSON files
    /// may also end in `.gz`, and are then compressed.
    ///
    /// ```
    /// use prsl_data::Format;
    ///
    /// assert_eq!(Format::from_path("posterior.jsonl".as_ref())?, Format::JsonLines);
    /// assert_eq!(Format::from_path("posterior.csv.gz".as_ref())?, Format::Csv);
    /// assert!(Format::from_path("posterior.xls".as_ref()).is_err());
    /// # Ok::<(), prsl_data::Error>(())
    /// ```
    pub fn from_path(path: &Path) -> Result<Format> {
        let any = |path: &Path, extensions: &[&str]| extensions.iter().any(|it| has_extension(path, it));
        let unpacked = without_gz(path);
        if any(&unpacked, &["csv"]) {
            Ok(Format::Csv)
        } else if any(&unpacked, &["jsonl", "ndjson"]) {
            Ok(Format::JsonLines)
        } else if any(path, &["parquet", "pq"]) {
            Ok(Format::Parquet)
        } else {
            let expected = ".csv, .csv.gz, .jsonl, .jsonl.gz, .ndjson, .parquet or .pq";
            Err(Error::UnknownFormat { file: path.display().to_string(), expected })
        }
    }
}

impl ColumnSpec {
    /// A column.
    pub fn new(name: impl Into<String>, kind: ColumnKind) -> ColumnSpec {
        ColumnSpec { name: name.into(), kind }
    }
}

impl Column {
    /// The number of rows.
    pub fn len(&self) -> usize {
        match self {
            Column::Number(values) => values.len(),
            Column::Integer(values) => values.len(),
            Column::Text(values) => values.len(),
            Column::Boolean(values) => values.len(),
        }
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value in a row (from 0) as text; `None` where it is missing.
    ///
    /// ```
    /// use prsl_data::Column;
    ///
    /// assert_eq!(Column::Integer(vec![Some(7), None]).text(0).as_deref(), Some("7"));
    /// assert_eq!(Column::Number(vec![Some(7.0)]).text(0).as_deref(), Some("7"));
    /// ```
    pub fn text(&self, row: usize) -> Option<String> {
        match self {
            Column::Number(values) => values[row].map(|value| value.to_string()),
            Column::Integer(values) => values[row].map(|value| value.to_string()),
            Column::Text(values) => values[row].clone(),
            Column::Boolean(values) => values[row].map(|value| value.to_string()),
        }
    }

    /// The values of these rows (from 0), one after the other.
    ///
    /// ```
    /// use prsl_data::Column;
    ///
    /// assert_eq!(Column::Integer(vec![Some(7), None]).select(&[1, 0, 0]), Column::Integer(vec![None, Some(7), Some(7)]));
    /// ```
    pub fn select(&self, rows: &[usize]) -> Column {
        match self {
            Column::Number(values) => Column::Number(rows.iter().map(|&row| values[row]).collect()),
            Column::Integer(values) => Column::Integer(rows.iter().map(|&row| values[row]).collect()),
            Column::Text(values) => Column::Text(rows.iter().map(|&row| values[row].clone()).collect()),
            Column::Boolean(values) => Column::Boolean(rows.iter().map(|&row| values[row]).collect()),
        }
    }

    /// What the column holds.
    pub fn kind(&self) -> ColumnKind {
        match self {
            Column::Number(_) => ColumnKind::Number,
            Column::Integer(_) => ColumnKind::Integer,
            Column::Text(_) => ColumnKind::Text,
            Column::Boolean(_) => ColumnKind::Boolean,
        }
    }
}

impl ColumnKind {
    fn describe(self) -> &'static str {
        match self {
            ColumnKind::Number => "numbers",
            ColumnKind::Integer => "whole numbers",
            ColumnKind::Text => "text",
            ColumnKind::Boolean => "booleans",
        }
    }
}

impl TableWriter {
    /// Begins a table with these columns. Their names must be different and not empty.
    ///
    /// Parquet cannot go to standard output. CSV and JSON are compressed if the name of the file ends in `.gz`.
    pub fn create(target: Target, format: Format, columns: &[ColumnSpec]) -> Result<TableWriter> {
        if matches!((&target, format), (Target::StandardOutput, Format::Parquet)) {
            return Err(Error::ParquetToStandardOutput);
        }
        let output = match format {
            Format::Csv | Format::JsonLines => Output::create_packed(target)?,
            Format::Parquet => Output::create(target)?, // it is compressed already
        };
        let name = output.name().to_owned();
        let names: Vec<_> = columns.iter().map(|column| column.name.clone()).collect();
        crate::table::check_columns(&name, &names)?;
        let sink = match format {
            Format::Csv => Sink::csv(output, &names),
            Format::JsonLines => Ok(Sink::json_lines(output, &names)),
            Format::Parquet => Sink::parquet(output, columns),
        };
        let sink = sink.map_err(|failure| failure.in_file(&name))?;
        Ok(TableWriter { name, columns: columns.to_vec(), rows_written: 0, sink })
    }

    /// Appends rows: for each column of the table its values, all of the same length.
    pub fn write(&mut self, columns: &[Column]) -> Result<()> {
        let n_rows = columns.first().map_or(0, Column::len);
        let written = match self.check(columns) {
            Ok(()) => self.sink.write(&self.columns, columns, n_rows, self.rows_written + 1),
            Err(problem) => Err(Failure::Problem(problem)),
        };
        written.map_err(|failure| failure.in_file(&self.name))?;
        self.rows_written += n_rows as u64;
        Ok(())
    }

    /// Completes the table and makes it visible.
    ///
    /// If a writer is dropped without this call, no file remains.
    pub fn finish(self) -> Result<()> {
        let output = self.sink.finish().map_err(|failure| failure.in_file(&self.name))?;
        output.finish()
    }

    fn check(&self, columns: &[Column]) -> std::result::Result<(), WriteProblem> {
        if columns.len() != self.columns.len() {
            return Err(WriteProblem::Columns { found: columns.len(), expected: self.columns.len() });
        }
        for (spec, column) in self.columns.iter().zip(columns) {
            let (found, expected) = (column.len(), columns[0].len());
            if found != expected {
                return Err(WriteProblem::Rows { column: spec.name.clone(), found, expected });
            }
            let (found, expected) = (column.kind(), spec.kind);
            if found != expected {
                let (found, expected) = (found.describe(), expected.describe());
                return Err(WriteProblem::Kind { column: spec.name.clone(), found, expected });
            }
        }
        Ok(())
    }
}

impl std::fmt::Debug for TableWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TableWriter").field("name", &self.name).field("columns", &self.columns).finish()
    }
}

enum Sink {
    Csv(Output),
    /// With the keys as JSON strings.
    JsonLines(Output, Vec<String>),
    Parquet(Box<ArrowWriter<Output>>, Arc<Schema>),
}

enum Failure {
    Io(io::Error),
    Problem(WriteProblem),
}

impl Failure {
    fn in_file(self, file: &str) -> Error {
        let file = file.to_owned();
        match self {
            Failure::Io(cause) => Error::Write { file, cause },
            Failure::Problem(problem) => Error::Unwritable { file, problem },
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Io(error)
    }
}

impl From<ParquetError> for Failure {
    fn from(error: ParquetError) -> Failure {
        match error {
            ParquetError::External(cause) => match cause.downcast::<io::Error>() {
                Ok(cause) => Failure::Io(*cause),
                Err(cause) => Failure::Problem(WriteProblem::Library(cause.to_string())),
            },
            error => Failure::Problem(WriteProblem::Library(error.to_string())),
        }
    }
}

impl Sink {
    fn csv(mut output: Output, names: &[String]) -> std::result::Result<Sink, Failure> {
        let mut line = String::new();
        for (index, name) in names.iter().enumerate() {
            separate(&mut line, index);
            push_csv_text(&mut line, name);
        }
        end_csv_line(&mut line);
        output.write_all(line.as_bytes())?;
        Ok(Sink::Csv(output))
    }

    fn json_lines(output: Output, names: &[String]) -> Sink {
        let key = |name: &String| {
            let mut key = String::new();
            push_json_text(&mut key, name);
            key
        };
        Sink::JsonLines(output, names.iter().map(key).collect())
    }

    fn parquet(output: Output, columns: &[ColumnSpec]) -> std::result::Result<Sink, Failure> {
        let field = |column: &ColumnSpec| {
            let kind = match column.kind {
                ColumnKind::Number => DataType::Float64,
                ColumnKind::Integer => DataType::Int64,
                ColumnKind::Text => DataType::Utf8,
                ColumnKind::Boolean => DataType::Boolean,
            };
            Field::new(&column.name, kind, true)
        };
        let schema = Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()));
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
            .set_max_row_group_bytes(Some(ROW_GROUP_BYTES))
            .build();
        let writer = ArrowWriter::try_new(output, Arc::clone(&schema), Some(properties))?;
        Ok(Sink::Parquet(Box::new(writer), schema))
    }

    fn write(
        &mut self,
        specs: &[ColumnSpec],
        columns: &[Column],
        n_rows: usize,
        first_row: u64,
    ) -> std::result::Result<(), Failure> {
        let not_finite = |row: usize, column: usize, value: f64, format: &'static str| {
            let (row, column) = (first_row + row as u64, specs[column].name.clone());
            Failure::Problem(WriteProblem::NotFinite { row, column, value, format })
        };
        let mut line = String::new();
        match self {
            Sink::Csv(output) => {
                for row in 0..n_rows {
                    line.clear();
                    for (index, column) in columns.iter().enumerate() {
                        separate(&mut line, index);
                        push_csv_cell(&mut line, column, row)
                            .map_err(|value| not_finite(row, index, value, "csv"))?;
                    }
                    end_csv_line(&mut line);
                    output.write_all(line.as_bytes())?;
                }
                Ok(())
            }
            Sink::JsonLines(output, keys) => {
                for row in 0..n_rows {
                    line.clear();
                    line.push('{');
                    for (index, (key, column)) in keys.iter().zip(columns).enumerate() {
                        separate(&mut line, index);
                        line.push_str(key);
                        line.push(':');
                        push_json_value(&mut line, column, row)
                            .map_err(|value| not_finite(row, index, value, "json"))?;
                    }
                    line.push_str("}\n");
                    output.write_all(line.as_bytes())?;
                }
                Ok(())
            }
            Sink::Parquet(_, _) if n_rows == 0 => Ok(()),
            Sink::Parquet(writer, schema) => {
                let batch = RecordBatch::try_new(Arc::clone(schema), columns.iter().map(array).collect())
                    .map_err(|error| Failure::Problem(WriteProblem::Library(error.to_string())))?;
                Ok(writer.write(&batch)?)
            }
        }
    }

    fn finish(self) -> std::result::Result<Output, Failure> {
        match self {
            Sink::Csv(output) | Sink::JsonLines(output, _) => Ok(output),
            Sink::Parquet(writer, _) => Ok(writer.into_inner()?),
        }
    }
}

fn array(column: &Column) -> ArrayRef {
    match column {
        Column::Number(values) => Arc::new(values.iter().copied().collect::<Float64Array>()),
        Column::Integer(values) => Arc::new(values.iter().copied().collect::<Int64Array>()),
        Column::Text(values) => Arc::new(values.iter().map(Option::as_deref).collect::<StringArray>()),
        Column::Boolean(values) => Arc::new(values.iter().copied().collect::<BooleanArray>()),
    }
}
