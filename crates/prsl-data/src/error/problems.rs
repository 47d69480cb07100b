//! The problems that an error reports, without their location.

use super::wording::{
    cells, decimal_advice, decimal_sign, did_you_mean, is_missing_code, listed_few, missing_advice, only,
    shown, shown_column, unknown,
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
    /// Another delimiter follows a closing quote.
    #[error(
        "`{}` after the closing quote of column {}; if it separates the columns, ask for this delimiter",
        delimiter.escape_default(),
        shown_column(column)
    )]
    OtherDelimiter {
        /// The column: its name, or its number in the header.
        column: String,
        /// The character.
        delimiter: char,
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
    #[error("`{}` is not a number{}{}", shown(text), missing_advice(text), decimal_advice(text))]
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
    /// A row of a taxonomy without a child.
    #[error("no name; each row needs a child, and its parent if it has one")]
    NoName,
    /// A child that is its own parent.
    #[error("`{}` is its own parent; leave the cell empty if it has none", shown(name))]
    OwnParent {
        /// The name.
        name: String,
    },
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

    /// The sign that the number was probably written with, if it is not the expected decimal sign.
    ///
    /// ```
    /// use prsl_data::Cell;
    ///
    /// assert_eq!(Cell::Text("0,7").number().unwrap_err().decimal_sign(), Some(','));
    /// assert_eq!(Cell::Text("seven").number().unwrap_err().decimal_sign(), None);
    /// ```
    pub fn decimal_sign(&self) -> Option<char> {
        match self {
            CellProblem::NotANumber { text } | CellProblem::NotACategory { text, .. } => decimal_sign(text),
            _ => None,
        }
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
    /// A column that is to identify rows is missing.
    #[error("there is no column `{}` to identify the rows{}", shown(column), did_you_mean(suggestion.as_deref()))]
    NoId {
        /// Its name.
        column: String,
        /// A column of a similar name.
        suggestion: Option<String>,
    },
    /// A column that is to identify rows has beliefs.
    #[error(
        "column `{}` has beliefs of the model, so it cannot identify the rows; name another column",
        shown(column)
    )]
    IdIsLabel {
        /// Its name.
        column: String,
    },
    /// The only column seems to contain several, with another delimiter.
    #[error(
        "the columns seem to be separated by `{}`; ask for this delimiter",
        delimiter.escape_default()
    )]
    OtherDelimiter {
        /// The delimiter.
        delimiter: char,
    },
    /// A table that has no columns for children and parents.
    #[error("expected the columns `child` and `parent`, found {}; add a header", listed_few(columns, ", "))]
    NotATaxonomy {
        /// The columns.
        columns: Vec<String>,
    },
    /// Names that are above themselves.
    #[error(
        "the parents form a cycle: {}; remove one of these rows",
        listed_few(&names.iter().chain(names.first()).cloned().collect::<Vec<_>>(), " above ")
    )]
    Cycle {
        /// The names, each the parent of the next one, and the last of the first.
        names: Vec<String>,
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
