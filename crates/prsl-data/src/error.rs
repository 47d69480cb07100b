//! What can be wrong with a table, and where.

use std::io;

/// The result of everything in this crate that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong, in which file, and where in it.
///
/// Every message is complete: the cause is part of it, not of the chain of sources.
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
        /// What the system says.
        cause: io::Error,
    },
    /// The file was opened, and reading it failed.
    #[error("cannot read `{file}`: {cause}")]
    Read {
        /// The file.
        file: String,
        /// What the system says.
        cause: io::Error,
    },
    /// The compressed data end before their time.
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
        /// What the system says.
        cause: io::Error,
    },
    /// The name of the file does not tell its format.
    #[error("cannot tell the format of `{file}` from its name, expected it to end in {expected}")]
    UnknownFormat {
        /// The file.
        file: String,
        /// The endings that are known here.
        expected: &'static str,
    },
    /// Parquet was to be written to standard output.
    #[error(
        "parquet cannot be written to standard output; name a file ending in .parquet, or write csv or json lines"
    )]
    ParquetToStandardOutput,
    /// The names of the columns are not usable.
    #[error("`{file}`: {problem}")]
    Header {
        /// The file.
        file: String,
        /// What is wrong with it.
        problem: HeaderProblem,
    },
    /// A line of a CSV file cannot be understood.
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
    /// A Parquet file is damaged, cut off or of an unknown kind.
    #[error("`{file}` cannot be read as parquet: {cause}")]
    Parquet {
        /// The file.
        file: String,
        /// What the parquet library says.
        cause: String,
    },
    /// A column is of a type that has no meaning here.
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
    /// A cell does not hold what was wanted.
    #[error("`{file}`, row {row}, column `{column}`: {problem}")]
    Cell {
        /// The file.
        file: String,
        /// The row, counted from 1 without the header.
        row: u64,
        /// The column.
        column: String,
        /// What is wrong with it.
        problem: CellProblem,
    },
    /// The columns handed to a writer are not the ones it was created with, or cannot be expressed.
    #[error("cannot write `{file}`: {problem}")]
    Unwritable {
        /// The file.
        file: String,
        /// What is wrong with them.
        problem: WriteProblem,
    },
    /// A line of an ARFF file cannot be understood.
    #[error("`{file}`, line {line}: {problem}")]
    Arff {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: u64,
        /// What is wrong with it.
        problem: ArffProblem,
    },
    /// A Mulan label file cannot be understood.
    #[error("`{file}`, line {line}: {problem}")]
    Xml {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: u64,
        /// What is wrong with it.
        problem: XmlProblem,
    },
    /// A Mulan label file and an ARFF file do not fit together.
    #[error("`{file}`: {problem}")]
    Mulan {
        /// The ARFF file.
        file: String,
        /// What is wrong.
        problem: MulanProblem,
    },
}

impl Error {
    /// Whether whoever reads our output has closed it (as `head` does), which is no reason to complain.
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
}

/// What can be wrong with the names of columns.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderProblem {
    /// There is nothing in the file.
    #[error("the file is empty, expected a header with the names of the columns")]
    Empty,
    /// A column without a name.
    #[error("column {number} has no name")]
    Unnamed {
        /// The column, counted from 1.
        number: usize,
    },
    /// Two columns of one name.
    #[error("columns {first} and {second} are both named `{}`", shown(name))]
    Duplicate {
        /// The name.
        name: String,
        /// The first of them, counted from 1.
        first: usize,
        /// The second of them, counted from 1.
        second: usize,
    },
}

/// What can be wrong with a line of a CSV file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CsvProblem {
    /// A row has more or fewer cells than the header.
    #[error("{}, expected {expected} as in the header", cells(*found))]
    Ragged {
        /// Cells in this row.
        found: usize,
        /// Cells in the header.
        expected: usize,
    },
    /// A cell is not UTF-8.
    #[error("column {} is not valid UTF-8; save the file in that encoding", shown_column(column))]
    NotUtf8 {
        /// The column: its name, or its number in the header.
        column: String,
    },
    /// A quote is opened and never closed.
    #[error("a quoted cell is not closed before the end of the file (column {})", shown_column(column))]
    UnterminatedQuote {
        /// The column: its name, or its number in the header.
        column: String,
    },
    /// Something follows a closing quote within its cell.
    #[error(
        "text after the closing quote of column {}; write a quote within quotes as `\"\"`",
        shown_column(column)
    )]
    AfterQuote {
        /// The column: its name, or its number in the header.
        column: String,
    },
    /// A record is longer than we are willing to keep in memory.
    #[error("a row of more than {limit} bytes; is a quote left open?")]
    TooLong {
        /// The limit.
        limit: usize,
    },
}

/// What can be wrong with a cell.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CellProblem {
    /// The text is not a number.
    #[error("`{}` is not a number", shown(text))]
    NotANumber {
        /// The text.
        text: String,
    },
    /// The number is infinite or NaN.
    #[error("{value} is not a finite number")]
    NotFinite {
        /// The value.
        value: f64,
    },
}

/// What can be wrong with columns that are to be written.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum WriteProblem {
    /// Not the number of columns announced.
    #[error("{found} columns given, expected {expected}")]
    Columns {
        /// Columns given.
        found: usize,
        /// Columns announced.
        expected: usize,
    },
    /// A column of another type than announced.
    #[error("column `{column}` holds {found}, expected {expected}")]
    Kind {
        /// The column.
        column: String,
        /// What was given.
        found: &'static str,
        /// What was announced.
        expected: &'static str,
    },
    /// Columns of different lengths.
    #[error("column `{column}` has {found} rows, expected {expected} as in the first column")]
    Rows {
        /// The column.
        column: String,
        /// Its rows.
        found: usize,
        /// Rows of the first column.
        expected: usize,
    },
    /// A number that the format cannot express.
    #[error("row {row}, column `{column}`: {format} has no way to write {value}")]
    NotFinite {
        /// The row, counted from 1.
        row: u64,
        /// The column.
        column: String,
        /// The value.
        value: f64,
        /// The format.
        format: &'static str,
    },
    /// The library that writes the format refuses.
    #[error("{0}")]
    Library(String),
}

/// What can be wrong with a line of an ARFF file.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ArffProblem {
    /// A line longer than we are willing to keep in memory.
    #[error("a line of more than {limit} bytes")]
    TooLong {
        /// The limit.
        limit: usize,
    },
    /// A header longer than we are willing to keep in memory.
    #[error("a header of more than {limit} bytes")]
    HeaderTooLong {
        /// The limit.
        limit: usize,
    },
    /// Bytes that are not UTF-8.
    #[error("the line is not valid UTF-8; save the file in that encoding")]
    NotUtf8,
    /// A header line that is none.
    #[error("`{}` is not a header line, expected @relation, @attribute or @data", shown(text))]
    NotAHeader {
        /// The line.
        text: String,
    },
    /// The file ends before the data begin.
    #[error("the file ends without @data")]
    NoData,
    /// Data without attributes.
    #[error("@data without any @attribute before it")]
    NoAttributes,
    /// An attribute without name or type.
    #[error("@attribute needs a name and a type")]
    IncompleteAttribute,
    /// An attribute of unknown type.
    #[error(
        "attribute `{}` is of type `{}`, expected numeric, integer, real, string, date or {{values}}",
        shown(attribute),
        shown(kind)
    )]
    UnknownKind {
        /// The attribute.
        attribute: String,
        /// Its type.
        kind: String,
    },
    /// Two attributes of one name.
    #[error("attribute `{}` is declared twice", shown(attribute))]
    DuplicateAttribute {
        /// The attribute.
        attribute: String,
    },
    /// A nominal attribute that lists a value twice, or none.
    #[error("attribute `{}`: {what}", shown(attribute))]
    BadNominal {
        /// The attribute.
        attribute: String,
        /// What is wrong.
        what: &'static str,
    },
    /// A quote is opened and not closed on the line.
    #[error("a quote is not closed on its line")]
    UnterminatedQuote,
    /// Two commas in a row, or one at the end.
    #[error("a value is missing next to a comma; write `?` for an unknown value")]
    EmptyValue,
    /// Something that does not belong there.
    #[error("unexpected `{}`", shown(text))]
    Unexpected {
        /// The text.
        text: String,
    },
    /// A sparse row without its closing brace.
    #[error("a sparse row is not closed with `}}`")]
    UnterminatedRow,
    /// A row with too many or too few values.
    #[error("{found} values, expected {expected}, one for each attribute")]
    Ragged {
        /// Values in this row.
        found: usize,
        /// Attributes.
        expected: usize,
    },
    /// A sparse row names an attribute that does not exist.
    #[error("`{}` is not the number of an attribute, expected 0 to {last}", shown(text))]
    BadIndex {
        /// What was given.
        text: String,
        /// The last attribute.
        last: usize,
    },
    /// A sparse row gives an attribute twice or out of order.
    #[error("attribute number {index} is given after {previous}, expected rising numbers")]
    Unordered {
        /// The attribute.
        index: usize,
        /// The one before it.
        previous: usize,
    },
    /// A value that its attribute does not admit.
    #[error("attribute `{}`: `{}` is not {expected}", shown(attribute), shown(text))]
    BadValue {
        /// The attribute.
        attribute: String,
        /// The value.
        text: String,
        /// What would be fine.
        expected: &'static str,
    },
}

/// What can be wrong with a Mulan label file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum XmlProblem {
    /// Not well-formed XML.
    #[error("{0}")]
    Malformed(String),
    /// Bytes that are not UTF-8.
    #[error("the file is not valid UTF-8; save it in that encoding")]
    NotUtf8,
    /// More than any label file needs.
    #[error("a label file of more than {limit} bytes")]
    TooLong {
        /// The limit.
        limit: usize,
    },
    /// A document type, which can define entities.
    #[error("a label file has no document type")]
    DocumentType,
    /// An element that does not belong there.
    #[error("unexpected element `{}`, expected `labels` with `label` elements in it", shown(name))]
    UnexpectedElement {
        /// The element.
        name: String,
    },
    /// Text between the labels.
    #[error("unexpected text `{}` between the labels", shown(text))]
    UnexpectedText {
        /// The text.
        text: String,
    },
    /// A label without a name.
    #[error("a `label` without the attribute `name`")]
    Unnamed,
    /// Two labels of one name.
    #[error("label `{}` is given twice", shown(name))]
    Duplicate {
        /// The name.
        name: String,
    },
    /// No label at all.
    #[error("no label found, expected `labels` with `label` elements in it")]
    NoLabels,
}

/// How a Mulan label file and an ARFF file can fail to fit together.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MulanProblem {
    /// A label that is no attribute.
    #[error("no attribute for label `{}`{}", shown(label), did_you_mean(suggestion.as_deref()))]
    MissingLabel {
        /// The label.
        label: String,
        /// An attribute of a similar name.
        suggestion: Option<String>,
    },
    /// A label whose attribute cannot hold 0 and 1.
    #[error("label `{}` is of type {kind}, expected numeric or {{0,1}}", shown(label))]
    BadKind {
        /// The label.
        label: String,
        /// The type of its attribute.
        kind: &'static str,
    },
    /// A label that is neither 0 nor 1.
    #[error("row {row}, label `{}`: {value} is neither 0 nor 1", shown(label))]
    BadValue {
        /// The row, counted from 1.
        row: u64,
        /// The label.
        label: String,
        /// What was given.
        value: f64,
    },
}

/// The candidate most like `name`, if one is like it at all.
pub(crate) fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const LONGEST: usize = 100; // the distance takes time quadratic in the length
    let name = name.to_lowercase();
    let allowed = (name.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .filter(|candidate| name.len() <= LONGEST && candidate.len() <= LONGEST)
        .map(|candidate| (strsim::osa_distance(&name, &candidate.to_lowercase()), candidate))
        .filter(|(distance, candidate)| *distance <= allowed && *distance < candidate.chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// `; did you mean ...?`, or nothing.
pub(crate) fn did_you_mean(suggestion: Option<&str>) -> String {
    suggestion.map(|name| format!("; did you mean `{}`?", shown(name))).unwrap_or_default()
}

/// The text on one line, shortened so that a message stays one.
pub(crate) fn shown(text: &str) -> String {
    const LONGEST: usize = 60;
    let mut short: String = text.chars().take(LONGEST).flat_map(char::escape_debug).collect();
    if text.chars().nth(LONGEST).is_some() {
        short.push('…');
    }
    short.replace("\\'", "'").replace("\\\"", "\"")
}

fn in_row(row: u64) -> String {
    if row == 0 { " (header)".to_owned() } else { format!(" (row {row})") }
}

fn cells(n: usize) -> String {
    if n == 1 { "1 cell".to_owned() } else { format!("{n} cells") }
}

/// A number as it is, a name in backticks.
fn shown_column(column: &str) -> String {
    if column.bytes().all(|byte| byte.is_ascii_digit()) {
        format!("number {column}")
    } else {
        format!("`{}`", shown(column))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_finds_typos_and_nothing_else() {
        assert_eq!(nearest("rian", ["sun", "rain"]), Some("rain"));
        assert_eq!(nearest("Rain", ["sun", "rain"]), Some("rain"));
        assert_eq!(nearest("snow", ["sun", "rain"]), None);
        assert_eq!(nearest("x", ["y"]), None);
    }

    #[test]
    fn shown_text_stays_on_one_line_and_short() {
        assert_eq!(shown("it's \"a\"\nb"), "it's \"a\"\\nb");
        assert_eq!(shown(&"x".repeat(1000)).chars().count(), 61);
    }

    #[test]
    fn errors_stay_small_enough_to_return() {
        assert!(size_of::<Error>() <= 128, "{}", size_of::<Error>());
    }
}
