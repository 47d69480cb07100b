//! The problems of files other than tables: ARFF files, Mulan label files, and rules of other programs.

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

/// Problems of rules of another program.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ImportProblem {
    /// The file exceeds the maximum length.
    #[error("a file of more than {limit} bytes")]
    TooLong {
        /// The limit.
        limit: usize,
    },
    /// Bytes that are not UTF-8.
    #[error("the file is not valid UTF-8; save it in that encoding")]
    NotUtf8,
    /// A rule without an arrow.
    #[error("the rule has no `<-`; write `A, B <- C, D`, where either side may be empty")]
    NoArrow,
    /// A rule with two arrows.
    #[error("a second `<-` in one rule; write one rule per line")]
    SecondArrow,
    /// A rule about nothing.
    #[error("both sides of `<-` are empty; name at least one category")]
    EmptyRule,
    /// A comma without a name.
    #[error("a name is missing; names are separated by commas")]
    NoName,
    /// A quote is opened and not closed.
    #[error("a quote is not closed on its line")]
    OpenQuote,
    /// Text that is not a probability.
    #[error("`{}` is not a probability, expected a number from 0 to 1", shown(text))]
    NotAProbability {
        /// The text.
        text: String,
    },
    /// A name that the base does not have.
    #[error("unknown category `{}`{}", shown(name), did_you_mean(suggestion.as_deref()))]
    UnknownName {
        /// The name.
        name: String,
        /// A similar name.
        suggestion: Option<String>,
    },
    /// A name with several meanings.
    #[error("`{}` could mean {}; write one of them", shown(name), meanings.join(" or "))]
    Ambiguous {
        /// The name.
        name: String,
        /// Its meanings.
        meanings: Vec<String>,
    },
    /// Clauses without a header before them.
    #[error("expected the header `p cnf VARIABLES CLAUSES` first")]
    NoHeader,
    /// A header that is not one of conjunctive normal form.
    #[error("a header has the form `p cnf VARIABLES CLAUSES`")]
    BadHeader,
    /// Two headers.
    #[error("a second header; keep one of them")]
    SecondHeader,
    /// Text that is not a whole number.
    #[error("`{}` is not a whole number", shown(text))]
    NotAWholeNumber {
        /// The text.
        text: String,
    },
    /// More variables than can be read.
    #[error("more than {limit} variables")]
    TooManyVariables {
        /// The limit.
        limit: usize,
    },
    /// A literal of a variable that the header does not announce.
    #[error(
        "literal {} has no variable, expected a number from 1 to {n_variables} or its negative",
        shown(text)
    )]
    NoVariable {
        /// The literal.
        text: String,
        /// The number of variables in the header.
        n_variables: usize,
    },
    /// The last clause is not complete.
    #[error("the last clause does not end in 0")]
    OpenClause,
    /// The number of clauses differs from the header.
    #[error("the file has {found} clauses, expected {expected} as in its header")]
    ClauseCount {
        /// Clauses in the file.
        found: usize,
        /// Clauses in the header.
        expected: usize,
    },
}
