//! The problems that an error reports, without their location.

use super::wording::{
    cells, did_you_mean, is_missing_code, missing_advice, only, shown, shown_column, unknown,
};

/// Problems of a header.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderProblem {
    /// The file is empty.
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

/// Problems of a line of a CSV file.
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
    /// A record exceeds the maximum length.
    #[error("a row of more than {limit} bytes; is a quote left open?")]
    TooLong {
        /// The limit.
        limit: usize,
    },
}

/// Problems of a cell.
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
    /// The weight of a row is not valid.
    #[error("a weight of {value}, expected a number of 0 or more")]
    NotAWeight {
        /// The given value.
        value: String,
    },
    /// A row without a key.
    #[error("no key; each row needs a number or a text of its own")]
    NoKey,
    /// A belief about a label without a classifier.
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
        /// What is allowed.
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

/// Mismatches between the columns of a table and a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ColumnsProblem {
    /// Columns that the model does not know, each with the most similar known name.
    #[error(
        "the model does not know {}; correct the names, or ask to ignore extra columns",
        unknown(columns)
    )]
    Unknown {
        /// The columns with suggestions.
        columns: Vec<(String, Option<String>)>,
    },
    /// The model knows no column; each is given with the most similar known name.
    #[error(
        "the model knows none of the columns{}; correct their names, or take another table",
        only(columns)
    )]
    NoneKnown {
        /// The columns with suggestions.
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
    /// The column of weights is missing.
    #[error("there is no column `{}` with weights", shown(column))]
    NoWeights {
        /// Its name.
        column: String,
    },
    /// The column of keys is missing.
    #[error("there is no column `{}` with keys", shown(column))]
    NoKey {
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
        /// Its possible meanings.
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

/// Problems of the beliefs of a row.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RowProblem {
    /// A label with both an observed category and a belief.
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
    /// Beliefs that are not a distribution.
    #[error("{0}")]
    Belief(Box<prsl::Error>),
}

/// Problems of columns to be written.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum WriteProblem {
    /// The number of columns differs from the announced one.
    #[error("{found} columns given, expected {expected}")]
    Columns {
        /// Columns given.
        found: usize,
        /// Columns announced.
        expected: usize,
    },
    /// A column's type differs from the announced one.
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

/// Problems of a line of an ARFF file.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ArffProblem {
    /// A line exceeds the maximum length.
    #[error("a line of more than {limit} bytes")]
    TooLong {
        /// The limit.
        limit: usize,
    },
    /// A header exceeds the maximum length.
    #[error("a header of more than {limit} bytes")]
    HeaderTooLong {
        /// The limit.
        limit: usize,
    },
    /// Bytes that are not UTF-8.
    #[error("the line is not valid UTF-8; save the file in that encoding")]
    NotUtf8,
    /// A line of the header is not a declaration.
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
        /// The problem.
        what: &'static str,
    },
    /// A quote is opened and not closed on the line.
    #[error("a quote is not closed on its line")]
    UnterminatedQuote,
    /// Two commas in a row, or one at the end.
    #[error("a value is missing next to a comma; write `?` for an unknown value")]
    EmptyValue,
    /// Unexpected text.
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
    /// A value that its attribute does not allow.
    #[error("attribute `{}`: `{}` is not {expected}", shown(attribute), shown(text))]
    BadValue {
        /// The attribute.
        attribute: String,
        /// The value.
        text: String,
        /// What is allowed.
        expected: &'static str,
    },
}

/// Problems of a Mulan label file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum XmlProblem {
    /// Not well-formed XML.
    #[error("{0}")]
    Malformed(String),
    /// Bytes that are not UTF-8.
    #[error("the file is not valid UTF-8; save it in that encoding")]
    NotUtf8,
    /// The file exceeds the maximum length.
    #[error("a label file of more than {limit} bytes")]
    TooLong {
        /// The limit.
        limit: usize,
    },
    /// A document type; not allowed because it can define entities.
    #[error("a label file has no document type")]
    DocumentType,
    /// An unexpected element.
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

/// Mismatches between a Mulan label file and an ARFF file.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MulanProblem {
    /// A label without an attribute.
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
