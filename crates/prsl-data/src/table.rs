//! Tables as streams of chunks of cells, for all file formats.

use std::collections::HashMap;
use std::fmt;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;

use crate::arrays::{self, ArrowChunk, ArrowTable};
use crate::bad_rows::BadRow;
use crate::cell::{Cell, Code};
use crate::csv::{CsvChunk, CsvTable};
use crate::dialect::{self, CsvDialect};
use crate::error::{Error, HeaderProblem, Result};
use crate::parquet::ParquetTable;
use crate::source::{self, Source};
use crate::writer::{Column, ColumnKind};

/// A table that is read chunk by chunk.
///
/// ```
/// use prsl_data::{Cell, TableReader};
///
/// let mut table = TableReader::csv("id,rain\na, 0.25\nb,\n".as_bytes(), "beliefs.csv")?;
/// let chunk = table.read_chunk(1000)?.expect("there are rows");
/// assert_eq!(chunk.n_rows(), 2);
/// assert_eq!(chunk.cell(0, 1), Cell::Text("0.25"));
/// assert_eq!(chunk.cell(1, 1), Cell::Missing);
/// assert!(table.read_chunk(1000)?.is_none());
/// # Ok::<(), prsl_data::Error>(())
/// ```
#[derive(Debug)]
pub struct TableReader {
    name: String,
    columns: Vec<String>,
    rows_read: u64,
    missing: Arc<[Code]>,
    /// The decimal sign of numbers in text.
    decimal: u8,
    /// How many of the first columns are the index of a data frame.
    n_index: usize,
    /// Whether rows that are not valid are kept apart.
    keeps_bad_rows: bool,
    kind: Kind,
}

/// Some consecutive rows of a table.
///
/// ```
/// let mut table = prsl_data::TableReader::csv("rain\n0.1\n0.2\n0.3\n".as_bytes(), "beliefs.csv")?;
/// table.read_chunk(2)?;
/// let chunk = table.read_chunk(2)?.expect("one row is left");
/// assert_eq!((chunk.n_rows(), chunk.first_row()), (1, 3));
/// # Ok::<(), prsl_data::Error>(())
/// ```
#[derive(Debug)]
pub struct Chunk {
    first_row: u64,
    n_columns: usize,
    missing: Arc<[Code]>,
    cells: Cells,
}

impl TableReader {
    /// Opens `.csv`, `.csv.gz`, `.parquet` or `.pq`; the path `-` is CSV on standard input.
    ///
    /// ```no_run
    /// let table = prsl_data::TableReader::open("beliefs.parquet".as_ref())?;
    /// println!("{:?}", table.columns());
    /// # Ok::<(), prsl_data::Error>(())
    /// ```
    pub fn open(path: &Path) -> Result<TableReader> {
        TableReader::open_as(path, CsvDialect::default())
    }

    /// The same, with the delimiter and the decimal sign of CSV.
    pub fn open_as(path: &Path, dialect: CsvDialect) -> Result<TableReader> {
        if path == Path::new("-") {
            return TableReader::csv_as(io::stdin(), "standard input", dialect);
        }
        if source::has_extension(path, "parquet") || source::has_extension(path, "pq") {
            let name = path.display().to_string();
            let (columns, table) = ParquetTable::open_file(source::open_file(path)?, &name)?;
            return Ok(TableReader::new(name, columns, Kind::Parquet(table)));
        }
        if source::has_extension(&source::without_gz(path), "csv") {
            return TableReader::from_csv(Source::open(path)?, dialect);
        }
        let expected = ".csv, .csv.gz, .parquet or .pq";
        Err(Error::UnknownFormat { file: path.display().to_string(), expected })
    }

    /// Reads CSV from anything; `name` stands for it in messages.
    ///
    /// The first record is the header. Cells may be quoted, with `""` for a quote; white space around a cell is
    /// dropped, and an empty cell is missing. Empty lines are skipped.
    ///
    /// ```
    /// let table = prsl_data::TableReader::csv("sun,\"rain, heavy\"\n".as_bytes(), "beliefs.csv")?;
    /// assert_eq!(table.columns(), ["sun", "rain, heavy"]);
    /// # Ok::<(), prsl_data::Error>(())
    /// ```
    pub fn csv(reader: impl Read + Send + 'static, name: impl Into<String>) -> Result<TableReader> {
        TableReader::csv_as(reader, name, CsvDialect::default())
    }

    /// The same with a delimiter and a decimal sign.
    pub fn csv_as(
        reader: impl Read + Send + 'static,
        name: impl Into<String>,
        dialect: CsvDialect,
    ) -> Result<TableReader> {
        TableReader::from_csv(Source::new(reader, name), dialect)
    }

    /// Reads a Parquet file that is in memory; `name` stands for it in messages.
    ///
    /// ```
    /// let error = prsl_data::TableReader::parquet(b"PAR1".to_vec(), "upload").unwrap_err();
    /// assert!(error.to_string().starts_with("`upload` cannot be read as parquet: "));
    /// ```
    pub fn parquet(bytes: impl Into<Vec<u8>>, name: impl Into<String>) -> Result<TableReader> {
        let name = name.into();
        let (columns, table) = ParquetTable::open_bytes(bytes.into(), &name)?;
        Ok(TableReader::new(name, columns, Kind::Parquet(table)))
    }

    /// A table in memory; `name` stands for it in messages. NaN counts as missing, as null does.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use arrow::array::{ArrayRef, Float64Array, RecordBatch};
    ///
    /// let rain: ArrayRef = Arc::new(Float64Array::from(vec![0.25, f64::NAN]));
    /// let batch = RecordBatch::try_from_iter([("rain", rain)])?;
    /// let mut table = prsl_data::TableReader::arrow(&batch.schema(), [batch.clone()], "the frame")?;
    /// let chunk = table.read_chunk(1000)?.expect("there are rows");
    /// assert_eq!(chunk.cell(0, 0), prsl_data::Cell::Number(0.25));
    /// assert_eq!(chunk.cell(1, 0), prsl_data::Cell::Missing);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn arrow(
        schema: &Schema,
        batches: impl IntoIterator<Item = RecordBatch>,
        name: impl Into<String>,
    ) -> Result<TableReader> {
        let name = name.into();
        let (columns, table) = ArrowTable::new(schema, batches, &name)?;
        Ok(TableReader::new(name, columns, Kind::Arrow(table)))
    }

    fn new(name: String, columns: Vec<String>, kind: Kind) -> TableReader {
        TableReader {
            name,
            columns,
            rows_read: 0,
            missing: Arc::default(),
            decimal: b'.',
            n_index: 0,
            keeps_bad_rows: false,
            kind,
        }
    }

    /// The same table, in which these texts stand for missing values as empty cells do. Numbers that are written like
    /// one of them are missing, too; so is NaN, if `NaN` is among them.
    ///
    /// ```
    /// use prsl_data::{Cell, TableReader};
    ///
    /// let table = TableReader::csv("rain,sun\nNA,0.3\n?,na\n".as_bytes(), "beliefs.csv")?;
    /// let mut table = table.with_missing(["NA", "?"]);
    /// let chunk = table.read_chunk(1000)?.expect("there are rows");
    /// assert_eq!([chunk.cell(0, 0), chunk.cell(1, 0)], [Cell::Missing; 2]);
    /// assert_eq!(chunk.cell(1, 1), Cell::Text("na"));
    /// # Ok::<(), prsl_data::Error>(())
    /// ```
    pub fn with_missing(self, codes: impl IntoIterator<Item = impl AsRef<str>>) -> TableReader {
        let missing = codes.into_iter().map(|code| Code::new(code.as_ref())).collect();
        TableReader { missing, ..self }
    }

    /// The texts that stand for missing values.
    pub(crate) fn missing(&self) -> impl Iterator<Item = &str> {
        self.missing.iter().map(|code| code.text.as_str())
    }

    /// Keeps rows that are not valid apart from now on, instead of returning an error at the first one.
    pub(crate) fn keep_bad_rows(&mut self) {
        self.keeps_bad_rows = true;
        if let Kind::Csv(table) = &mut self.kind {
            table.keeps_bad_rows = true;
        }
    }

    /// Whether rows that are not valid are kept apart.
    pub(crate) fn keeps_bad_rows(&self) -> bool {
        self.keeps_bad_rows
    }

    /// The name of the table in messages: its path, or `standard input`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The names of the columns, all different and none of them empty.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// The first columns of a CSV file that have no name, or are named `Unnamed: 0` as by pandas: the index of a data
    /// frame. Readers of beliefs and truths skip them.
    ///
    /// ```
    /// let table = prsl_data::TableReader::csv(",rain\n0,0.25\n".as_bytes(), "beliefs.csv")?;
    /// assert_eq!(table.index_columns(), ["Unnamed: 0"]);
    /// assert_eq!(table.columns(), ["Unnamed: 0", "rain"]);
    /// # Ok::<(), prsl_data::Error>(())
    /// ```
    pub fn index_columns(&self) -> &[String] {
        &self.columns[..self.n_index]
    }

    /// The delimiter that a CSV file with only one column seems to have.
    ///
    /// ```
    /// let table = prsl_data::TableReader::csv("sun;rain\n0,3;0,7\n".as_bytes(), "beliefs.csv")?;
    /// assert_eq!(table.other_delimiter(), Some(';'));
    /// # Ok::<(), prsl_data::Error>(())
    /// ```
    pub fn other_delimiter(&self) -> Option<char> {
        match self.kind {
            Kind::Csv(_) => dialect::other_delimiter(&self.columns),
            Kind::Parquet(_) | Kind::Arrow(_) => None,
        }
    }

    /// The decimal sign of numbers in text.
    pub(crate) fn decimal(&self) -> u8 {
        self.decimal
    }

    /// Reads only these columns from now on; cells of the others are [`Cell::Missing`].
    ///
    /// Saves memory, and allows columns of unsupported types as long as they are not selected.
    /// Fails if such a column *is* selected, or if rows of a Parquet file have been read already.
    ///
    /// ```
    /// use prsl_data::{Cell, TableReader};
    ///
    /// let mut table = TableReader::csv("id,rain\na,0.25\n".as_bytes(), "beliefs.csv")?;
    /// table.select(&[1])?;
    /// let chunk = table.read_chunk(1000)?.expect("there are rows");
    /// assert_eq!(chunk.cell(0, 0), Cell::Missing);
    /// assert_eq!(chunk.cell(0, 1), Cell::Text("0.25"));
    /// # Ok::<(), prsl_data::Error>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If there is no such column.
    pub fn select(&mut self, columns: &[usize]) -> Result<()> {
        self.select_with_ids(columns, &[])
    }

    /// The same, with columns of any type that identify the rows ([`Chunk::id_column`]).
    pub(crate) fn select_with_ids(&mut self, columns: &[usize], ids: &[usize]) -> Result<()> {
        if let Some(column) = columns.iter().find(|&&column| column >= self.columns.len()) {
            panic!("column {column} of a table with {} columns", self.columns.len());
        }
        match &mut self.kind {
            Kind::Csv(table) => {
                table.select(&[columns, ids].concat());
                Ok(())
            }
            Kind::Parquet(table) => table.select(columns, ids, &self.name),
            Kind::Arrow(table) => {
                table.select(columns, ids);
                Ok(())
            }
        }
    }

    /// The type of a column that identifies rows.
    pub(crate) fn id_kind(&self, column: usize) -> ColumnKind {
        match &self.kind {
            Kind::Csv(_) => ColumnKind::Text,
            Kind::Parquet(table) => arrays::id_kind(table.kind(column)),
            Kind::Arrow(table) => arrays::id_kind(table.kind(column)),
        }
    }

    /// The next rows, at least one and at most `max_rows` of them (0 counts as 1), or `None` at the end.
    ///
    /// There may be fewer than `max_rows` even before the end: if rows are very long, and between the row groups of a
    /// Parquet file.
    pub fn read_chunk(&mut self, max_rows: usize) -> Result<Option<Chunk>> {
        let max_rows = max_rows.max(1);
        let cells = match &mut self.kind {
            Kind::Csv(table) => table.read_chunk(max_rows, &self.columns)?.map(Cells::Csv),
            Kind::Parquet(table) => table.read_chunk(max_rows, &self.name, self.rows_read)?.map(Cells::Arrow),
            Kind::Arrow(table) => table.read_chunk(max_rows, &self.name)?.map(Cells::Arrow),
        };
        Ok(cells.map(|cells| {
            let (first_row, n_columns) = (self.rows_read + 1, self.columns.len());
            let chunk = Chunk { first_row, n_columns, missing: Arc::clone(&self.missing), cells };
            self.rows_read += chunk.n_rows() as u64;
            chunk
        }))
    }

    /// The number of rows, if it is known in advance (not for CSV).
    pub fn rows_hint(&self) -> Option<u64> {
        match &self.kind {
            Kind::Csv(_) => None,
            Kind::Parquet(table) => Some(table.n_rows()),
            Kind::Arrow(table) => Some(self.rows_read + table.n_rows_left()),
        }
    }

    /// The share of the table that has been read, 0 to 1, if its size is known (not for standard input).
    ///
    /// ```
    /// let table = prsl_data::TableReader::csv("rain\n0.1\n".as_bytes(), "beliefs.csv")?;
    /// assert_eq!(table.progress(), None);
    /// # Ok::<(), prsl_data::Error>(())
    /// ```
    pub fn progress(&self) -> Option<f64> {
        match &self.kind {
            Kind::Csv(table) => table.progress(),
            Kind::Parquet(_) | Kind::Arrow(_) => {
                let n_rows = self.rows_hint().unwrap_or(0);
                Some(self.rows_read as f64 / n_rows.max(self.rows_read).max(1) as f64)
            }
        }
    }

    fn from_csv(source: Source, dialect: CsvDialect) -> Result<TableReader> {
        let name = source.name.clone();
        let (header, table) = CsvTable::open(source, dialect)?;
        let (decimal, n_index) = (dialect.decimal, header.n_index);
        Ok(TableReader { decimal, n_index, ..TableReader::new(name, header.columns, Kind::Csv(table)) })
    }
}

impl Chunk {
    /// The number of rows, at least one.
    pub fn n_rows(&self) -> usize {
        match &self.cells {
            Cells::Csv(chunk) => chunk.n_rows,
            Cells::Arrow(chunk) => chunk.n_rows,
        }
    }

    /// The number of the first row in the table, counted from 1 without the header.
    pub fn first_row(&self) -> u64 {
        self.first_row
    }

    /// The cell in a row of this chunk (from 0) and a column of the table (from 0).
    ///
    /// # Panics
    ///
    /// If there is no such row or column.
    pub fn cell(&self, row: usize, column: usize) -> Cell<'_> {
        assert!(row < self.n_rows(), "row {row} of a chunk with {} rows", self.n_rows());
        assert!(column < self.n_columns, "column {column} of a table with {} columns", self.n_columns);
        let cell = match &self.cells {
            Cells::Csv(chunk) => Cell::verbatim(chunk.cell(row, column)),
            Cells::Arrow(chunk) => chunk.cell(row, column),
        };
        if self.missing.iter().any(|code| code.is(cell)) { Cell::Missing } else { cell }
    }

    /// Takes the rows that are not valid as text, if they are kept apart. All their cells are missing.
    pub(crate) fn take_bad_rows(&mut self) -> Vec<BadRow> {
        match &mut self.cells {
            Cells::Csv(chunk) => std::mem::take(&mut chunk.bad_rows),
            Cells::Arrow(_) => Vec::new(),
        }
    }

    /// The text of a number or a boolean of a Parquet file or of Arrow, as Apache Spark casts it to a string.
    pub(crate) fn number_text(&self, row: usize, column: usize) -> Option<String> {
        match &self.cells {
            Cells::Csv(_) => None,
            Cells::Arrow(chunk) => chunk.number_text(row, column),
        }
    }

    /// The values of a column that identifies rows, unchanged.
    pub(crate) fn id_column(&self, column: usize, kind: ColumnKind) -> Column {
        match &self.cells {
            Cells::Csv(chunk) => {
                let text = |row: usize| Some(chunk.cell(row, column).to_owned()).filter(|it| !it.is_empty());
                Column::Text((0..self.n_rows()).map(text).collect())
            }
            Cells::Arrow(chunk) => chunk.id_column(column, kind),
        }
    }
}

/// Reads a whole CSV table; returns the numbers of rows and columns. For fuzzing.
///
/// ```
/// assert_eq!(prsl_data::parse_csv(b"sun,rain\n0.1,0.9\n")?, (1, 2));
/// # Ok::<(), prsl_data::Error>(())
/// ```
pub fn parse_csv(bytes: &[u8]) -> Result<(u64, usize)> {
    count_rows(TableReader::csv(io::Cursor::new(bytes.to_vec()), "csv")?)
}

/// Reads a whole Parquet table; returns the numbers of rows and columns. For fuzzing.
///
/// ```
/// assert!(prsl_data::parse_parquet(b"PAR1PAR1").is_err());
/// ```
pub fn parse_parquet(bytes: &[u8]) -> Result<(u64, usize)> {
    count_rows(TableReader::parquet(bytes, "parquet")?)
}

/// Rejects columns without a name and duplicate names.
pub(crate) fn check_columns(file: &str, columns: &[String]) -> Result<()> {
    let error = |problem| Err(Error::Header { file: file.to_owned(), problem });
    let mut seen = HashMap::new();
    for (index, name) in columns.iter().enumerate() {
        if name.is_empty() {
            return error(HeaderProblem::Unnamed { number: index + 1 });
        }
        if let Some(first) = seen.insert(name, index) {
            return error(HeaderProblem::Duplicate {
                name: name.clone(),
                first: first + 1,
                second: index + 1,
            });
        }
    }
    Ok(())
}

enum Kind {
    Csv(CsvTable),
    Parquet(ParquetTable),
    Arrow(ArrowTable),
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Csv(_) => "Csv",
            Kind::Parquet(_) => "Parquet",
            Kind::Arrow(_) => "Arrow",
        })
    }
}

#[derive(Debug)]
enum Cells {
    Csv(CsvChunk),
    Arrow(ArrowChunk),
}

fn count_rows(mut table: TableReader) -> Result<(u64, usize)> {
    let mut rows = 0;
    while let Some(chunk) = table.read_chunk(1000)? {
        rows += chunk.n_rows() as u64;
    }
    Ok((rows, table.columns().len()))
}
