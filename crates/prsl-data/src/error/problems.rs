//! What can be wrong, without where it is.

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
    #[error("`{}` is not a number{}", shown(text), missing_advice(text))]
    NotANumber {
        /// The text.
        text: String,
    },
    /// The number is infinite or NaN.
    #[error("{value} is not a finite number{}", missing_advice(&value.to_string()))]
    NotFinite {
        /// The value.
        value: f64,
    },
    /// The number is negative.
    #[error("a belief of {value}, expected a number from 0 to 1")]
    Negative {
        /// The value.
        value: f64,
    },
    /// No weight of a row.
    #[error("a weight of {value}, expected a number of 0 or more")]
    NotAWeight {
        /// What is there.
        value: String,
    },
    /// A belief about a label that no classifier speaks about.
    #[error("{0}")]
    Latent(Box<prsl::Error>),
    /// The text is not a category of the label.
    #[error(
        "`{}` is not a category of label `{}`, expected {expected}{}{}",
        shown(text), shown(label), did_you_mean(suggestion.as_deref()), missing_advice(text)
    )]
    NotACategory {
        /// What was given.
        text: String,
        /// The label.
        label: String,
        /// What would be fine.
        expected: String,
        /// A category of a similar name.
        suggestion: Option<String>,
    },
}

impl CellProblem {
    /// The text of the cell, if it is one that often stands for a missing value, such as `NA`.
    ///
    /// ```
    /// use prsl_data::Cell;
    ///
    /// assert_eq!(Cell::Text("NA").number().unwrap_err().missing_code().as_deref(), Some("NA"));
    /// assert_eq!(Cell::Text("o.5").number().unwrap_err().missing_code(), None);
    /// ```
    pub fn missing_code(&self) -> Option<String> {
        let text = match self {
            CellProblem::NotANumber { text } | CellProblem::NotACategory { text, .. } => text.clone(),
            CellProblem::NotFinite { value } => value.to_string(),
            _ => return None,
        };
        is_missing_code(&text).then_some(text)
    }
}

/// How the columns of a table can fail to fit to a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ColumnsProblem {
    /// Columns that the model does not know, each with a similar name that it knows.
    #[error(
        "the model does not know {}; correct the names, or ask to ignore extra columns",
        unknown(columns)
    )]
    Unknown {
        /// The columns, and what may be meant.
        columns: Vec<(String, Option<String>)>,
    },
    /// Not one column that the model knows, each with a similar name that it knows.
    #[error(
        "the model knows none of the columns{}; correct their names, or take another table",
        only(columns)
    )]
    NoneKnown {
        /// The columns, and what may be meant.
        columns: Vec<(String, Option<String>)>,
    },
    /// A text that stands for a missing value is also the name of a category.
    #[error(
        "`{}` cannot stand for a missing value, as it is a category of label `{}`; rename the category, or leave such cells empty",
        shown(code),
        shown(label)
    )]
    MissingIsCategory {
        /// The text.
        code: String,
        /// The label.
        label: String,
    },
    /// The column of weights is not there.
    #[error("there is no column `{}` with weights", shown(column))]
    NoWeights {
        /// Its name.
        column: String,
    },
    /// A column that can mean several things.
    #[error(
        "column `{}` can mean {}; write `label=category`, or rename one of them",
        shown(column), meanings.join(" or ")
    )]
    Ambiguous {
        /// The column.
        column: String,
        /// What it can mean.
        meanings: Vec<String>,
    },
    /// Two columns that mean the same.
    #[error("columns `{}` and `{}` mean the same; keep one of them", shown(first), shown(second))]
    Same {
        /// One of them.
        first: String,
        /// The other.
        second: String,
    },
}

/// What can be wrong with the beliefs of a row.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RowProblem {
    /// A label that is both observed and believed.
    #[error(
        "column `{}` gives an observed category of label `{}` and column `{}` a belief; leave one of them empty",
        shown(observed),
        shown(label),
        shown(believed)
    )]
    ObservedAndBelieved {
        /// The label.
        label: String,
        /// The column with the category.
        observed: String,
        /// The column with the belief.
        believed: String,
    },
    /// Beliefs that are no distribution.
    #[error("{0}")]
    Belief(Box<prsl::Error>),
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
    const LONGEST: usize = 100; // comparing takes time quadratic in the length
    if name.len() > LONGEST {
        return None;
    }
    prsl::nearest(name, candidates.into_iter().filter(|candidate| candidate.len() <= LONGEST))
}

/// `; did you mean ...?`, or nothing.
pub(crate) fn did_you_mean(suggestion: Option<&str>) -> String {
    suggestion.map(|name| format!("; did you mean `{}`?", shown(name))).unwrap_or_default()
}

/// Texts by which other programs say that a value is missing, in lower case.
const MISSING_CODES: [&str; 13] =
    ["na", "n/a", "#n/a", "nan", "null", "none", "nil", "?", "-", "--", ".", "missing", "unknown"];

/// Whether a text probably stands for a missing value.
pub(crate) fn is_missing_code(text: &str) -> bool {
    MISSING_CODES.iter().any(|code| text.eq_ignore_ascii_case(code))
}

fn missing_advice(text: &str) -> &'static str {
    if is_missing_code(text) {
        "; if it stands for a missing value, leave the cell empty or list it as such"
    } else {
        ""
    }
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

/// Names in backticks, one after the other.
pub(crate) fn listed(names: &[String], separator: &str) -> String {
    names.iter().map(|name| format!("`{}`", shown(name))).collect::<Vec<_>>().join(separator)
}

/// Columns with what may be meant, the first ones if they are many.
fn suggested(columns: &[(String, Option<String>)]) -> String {
    const MOST: usize = 20;
    let one = |(name, suggestion): &(String, Option<String>)| match suggestion {
        Some(suggestion) => format!("`{}` (did you mean `{}`?)", shown(name), shown(suggestion)),
        None => format!("`{}`", shown(name)),
    };
    let names = columns.iter().take(MOST).map(one).collect::<Vec<_>>().join(", ");
    match columns.len().saturating_sub(MOST) {
        0 => names,
        more => format!("{names} and {more} more"),
    }
}

fn unknown(columns: &[(String, Option<String>)]) -> String {
    format!("{} {}", if columns.len() == 1 { "column" } else { "columns" }, suggested(columns))
}

fn only(columns: &[(String, Option<String>)]) -> String {
    if columns.is_empty() { String::new() } else { format!(", which are {}", suggested(columns)) }
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
}
