//! The problems of files other than tables: ARFF files and Mulan label files.

use super::wording::{did_you_mean, shown};

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
