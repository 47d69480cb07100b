//! Errors of tables, with their location.

mod files;
mod problems;
mod wording;

use std::io;

pub use files::{ArffProblem, ImportProblem, MulanProblem, XmlProblem};
pub use problems::{CellProblem, ColumnsProblem, CsvProblem, HeaderProblem, RowProblem, WriteProblem};
pub(crate) use wording::{is_missing_code, listed, nearest, shown};

/// The result of everything in this crate that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// An error in a file, with its location.
///
/// Every message is complete: it contains its cause, and there is no chain of sources.
///
/// ```
/// let mut table = prsl_data::TableReader::csv("sun,rain\n0.1\n".as_bytes(), "b.csv")?;
/// let error = table.read_chunk(10).unwrap_err();
/// assert_eq!(error.to_string(), "`b.csv`, line 2 (row 1): 1 cell, expected 2 as in the header");
/// # Ok::<(), prsl_data::Error>(())
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file cannot be opened.
    #[error("cannot open `{file}`: {cause}")]
    Open {
        /// The file.
        file: String,
        /// The error of the operating system.
        cause: io::Error,
    },
    /// The file was opened, and reading it failed.
    #[error("cannot read `{file}`: {cause}")]
    Read {
        /// The file.
        file: String,
        /// The error of the operating system.
        cause: io::Error,
    },
    /// The compressed data end too early.
    #[error("`{file}` is cut off: its compressed data end too early")]
    Truncated {
        /// The file.
        file: String,
    },
    /// The file cannot be created or written; see [`Error::is_broken_pipe`].
    #[error("cannot write `{file}`: {cause}")]
    Write {
        /// The file, or `standard output`.
        file: String,
        /// The error of the operating system.
        cause: io::Error,
    },
    /// The name of the file does not determine its format.
    #[error("cannot tell the format of `{file}` from its name, expected it to end in {expected}")]
    UnknownFormat {
        /// The file.
        file: String,
        /// The known endings.
        expected: &'static str,
    },
    /// Parquet was to be written to standard output.
    #[error(
        "parquet cannot be written to standard output; name a file ending in .parquet, or write csv or json lines"
    )]
    ParquetToStandardOutput,
    /// The header is not usable.
    #[error("`{file}`: {problem}")]
    Header {
        /// The file.
        file: String,
        /// What is wrong with it.
        problem: HeaderProblem,
    },
    /// A line of a CSV file is not valid.
    #[error("`{file}`, line {line}{}: {problem}", in_row(*row))]
    Csv {
        /// The file.
        file: String,
        /// The line on which the record begins, counted from 1.
        line: u64,
        /// The row, counted from 1 without the header; 0 for the header itself.
        row: u64,
        /// What is wrong with it.
        problem: CsvProblem,
    },
    /// A Parquet file is damaged, truncated or of an unknown kind.
    #[error("`{file}` cannot be read as parquet: {cause}")]
    Parquet {
        /// The file.
        file: String,
        /// The error of the parquet library.
        cause: String,
    },
    /// A table in memory is not valid.
    #[error("{name} cannot be read: {cause}")]
    Arrow {
        /// The name of the table in messages.
        name: String,
        /// What is wrong with it.
        cause: &'static str,
    },
    /// A column has an unsupported type.
    #[error(
        "`{file}`, column `{column}`: values of type {kind} are not supported, expected numbers, booleans or text"
    )]
    UnsupportedColumn {
        /// The file.
        file: String,
        /// The column.
        column: String,
        /// Its type.
        kind: String,
    },
    /// A cell has an unexpected value.
    #[error("`{file}`, row {row}, column `{column}`: {problem}")]
    Cell {
        /// The file.
        file: String,
        /// The row, counted from 1 without the header.
        row: u64,
        /// The column.
        column: String,
        /// What is wrong with it.
        problem: Box<CellProblem>,
    },
    /// The columns given to a writer differ from those it was created with, or cannot be written in its format.
    #[error("cannot write `{file}`: {problem}")]
    Unwritable {
        /// The file.
        file: String,
        /// What is wrong with them.
        problem: WriteProblem,
    },
    /// The columns of a table do not match the model.
    #[error("`{file}`: {problem}")]
    Columns {
        /// The file.
        file: String,
        /// What is wrong.
        problem: ColumnsProblem,
    },
    /// The beliefs of a row are not usable.
    #[error("`{file}`, row {row}: {problem}")]
    Row {
        /// The file.
        file: String,
        /// The row, counted from 1 without the header.
        row: u64,
        /// What is wrong.
        problem: RowProblem,
    },
    /// Beliefs and truths have different numbers of rows.
    #[error(
        "`{beliefs}` has {} and `{truths}` has {n_truths}; each row of beliefs needs its row of truths, in the same order",
        counted(*n_beliefs)
    )]
    RowCounts {
        /// The file of beliefs.
        beliefs: String,
        /// Its rows.
        n_beliefs: u64,
        /// The file of truths.
        truths: String,
        /// Its rows.
        n_truths: u64,
    },
    /// A column that identifies the rows differs between beliefs and truths.
    #[error(
        "row {row}: column `{}` is `{}` in `{}` and `{}` in `{}`; each row of beliefs needs its row of truths, in the same order",
        shown(column), shown(&texts[0]), files[0], shown(&texts[1]), files[1]
    )]
    Ids {
        /// The row, counted from 1 without the header.
        row: u64,
        /// The column.
        column: String,
        /// The files of beliefs and of truths.
        files: Box<[String; 2]>,
        /// The texts in both files.
        texts: Box<[String; 2]>,
    },
    /// A delimiter and a decimal sign that do not go together.
    #[error(
        "columns cannot be separated by `{}` with the decimal sign `{decimal}`, expected a tab or a punctuation character such as \
         `;`, and the decimal sign `.` or `,`",
        delimiter.escape_default()
    )]
    Dialect {
        /// The delimiter.
        delimiter: char,
        /// The decimal sign.
        decimal: char,
    },
    /// A line of an ARFF file is not valid.
    #[error("`{file}`, line {line}: {problem}")]
    Arff {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: u64,
        /// What is wrong with it.
        problem: ArffProblem,
    },
    /// Rules of another program are not valid.
    #[error("`{file}`, line {line}, column {column}: {problem}")]
    Import {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: u64,
        /// The column in characters, counted from 1.
        column: u64,
        /// What is wrong.
        problem: Box<ImportProblem>,
    },
    /// Rules of another program are no model.
    #[error("`{file}`: {cause}")]
    Model {
        /// The file.
        file: String,
        /// The error of the library.
        cause: Box<prsl::Error>,
    },
    /// A Mulan label file is not valid.
    #[error("`{file}`, line {line}, column {column}: {problem}")]
    Xml {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: u64,
        /// The column in characters, counted from 1.
        column: u64,
        /// What is wrong with it.
        problem: XmlProblem,
    },
    /// A Mulan label file and an ARFF file do not match.
    #[error("`{file}`: {problem}")]
    Mulan {
        /// The ARFF file.
        file: String,
        /// What is wrong.
        problem: MulanProblem,
    },
}

impl Error {
    /// Whether the reader of our output has closed it, as `head` does. This is not reported as an error.
    ///
    /// ```
    /// use std::io;
    ///
    /// let cause = io::Error::from(io::ErrorKind::BrokenPipe);
    /// assert!(prsl_data::Error::Write { file: "standard output".into(), cause }.is_broken_pipe());
    /// ```
    pub fn is_broken_pipe(&self) -> bool {
        matches!(self, Error::Write { cause, .. } if cause.kind() == io::ErrorKind::BrokenPipe)
    }

    /// What is wrong with a row, without its file and its number; `None` if the error is not about a single row.
    ///
    /// A quote that is never closed is an error of the file: it makes one row of all rows that follow.
    ///
    /// ```
    /// let mut table = prsl_data::TableReader::csv("sun,rain\n0.1\n".as_bytes(), "b.csv")?;
    /// let error = table.read_chunk(10).unwrap_err();
    /// assert_eq!(error.row_problem().as_deref(), Some("line 2: 1 cell, expected 2 as in the header"));
    /// # Ok::<(), prsl_data::Error>(())
    /// ```
    pub fn row_problem(&self) -> Option<String> {
        match self {
            Error::Csv { row: 0, .. } => None,
            Error::Csv {
                problem: CsvProblem::UnterminatedQuote { .. } | CsvProblem::TooLong { .. }, ..
            } => None,
            Error::Csv { line, problem, .. } => Some(format!("line {line}: {problem}")),
            Error::Cell { column, problem, .. } => Some(format!("column `{column}`: {problem}")),
            Error::Row { problem, .. } => Some(problem.to_string()),
            _ => None,
        }
    }
}

fn counted(rows: u64) -> String {
    if rows == 1 { "1 row".to_owned() } else { format!("{rows} rows") }
}

fn in_row(row: u64) -> String {
    if row == 0 { " (header)".to_owned() } else { format!(" (row {row})") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_stay_small_enough_to_return() {
        assert!(size_of::<Error>() <= 128, "{}", size_of::<Error>());
    }
}
