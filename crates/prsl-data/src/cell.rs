//! Cells of tables, and the numbers in them.

use crate::error::CellProblem;

/// The value of one cell.
///
/// CSV has only text. Callers that expect a number use [`Cell::number`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cell<'a> {
    /// Missing: an empty cell of a CSV file, a null of a Parquet file or of Arrow, or a text for missing values
    /// ([`TableReader::with_missing`](crate::TableReader::with_missing)).
    Missing,
    /// A number, or a boolean as 0 or 1, of a Parquet file or of Arrow. Integers beyond 2^53 are rounded.
    Number(f64),
    /// Text, without the white space around it.
    Text(&'a str),
}

impl<'a> Cell<'a> {
    /// The cell as a finite number, `None` where it is missing.
    ///
    /// Text has to be a decimal number, with or without exponent; `nan`, `inf` and hexadecimal numbers are refused.
    ///
    /// ```
    /// use prsl_data::Cell;
    ///
    /// assert_eq!(Cell::Text("2.5e-1").number(), Ok(Some(0.25)));
    /// assert_eq!(Cell::Missing.number(), Ok(None));
    /// assert!(Cell::Text("nan").number().is_err());
    /// assert_eq!(Cell::Number(f64::INFINITY).number().unwrap_err().to_string(), "inf is not a finite number");
    /// ```
    pub fn number(self) -> Result<Option<f64>, CellProblem> {
        self.number_with(b'.')
    }

    /// The same with another decimal sign of text.
    pub(crate) fn number_with(self, decimal: u8) -> Result<Option<f64>, CellProblem> {
        match self {
            Cell::Missing => Ok(None),
            Cell::Number(value) if value.is_finite() => Ok(Some(value)),
            Cell::Number(value) => Err(CellProblem::NotFinite { value }),
            Cell::Text(text) if decimal == b',' => parse_with_comma(text).map(Some),
            Cell::Text(text) => parse_number(text).map(Some),
        }
    }

    /// Text without the white space around it; missing if it is empty.
    pub(crate) fn from_text(text: &'a str) -> Cell<'a> {
        Cell::verbatim(text.trim_ascii())
    }

    /// Text with the white space around it; missing if it is blank.
    pub(crate) fn verbatim(text: &'a str) -> Cell<'a> {
        if text.trim_ascii().is_empty() { Cell::Missing } else { Cell::Text(text) }
    }
}

/// A finite decimal number.
pub(crate) fn parse_number(text: &str) -> Result<f64, CellProblem> {
    let text = text.trim_ascii();
    let decimal = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'));
    match text.parse::<f64>() {
        Ok(value) if decimal && value.is_finite() => Ok(value),
        _ => Err(CellProblem::NotANumber { text: text.to_owned() }),
    }
}

/// A finite number with a decimal comma. A point is refused, because it may separate thousands.
fn parse_with_comma(text: &str) -> Result<f64, CellProblem> {
    match text.contains('.') {
        true => Err(CellProblem::NotANumber { text: text.trim_ascii().to_owned() }),
        false => parse_number(&text.replace(',', "."))
            .map_err(|_| CellProblem::NotANumber { text: text.trim_ascii().to_owned() }),
    }
}

/// A text for missing values, and its value as a number if it is one.
#[derive(Debug)]
pub(crate) struct Code {
    pub(crate) text: String,
    number: Option<f64>,
}

impl Code {
    pub(crate) fn new(text: &str) -> Code {
        let text = text.trim_ascii().to_owned();
        Code { number: text.parse().ok(), text }
    }

    pub(crate) fn is(&self, cell: Cell<'_>) -> bool {
        match cell {
            Cell::Missing => true,
            Cell::Text(text) => text.trim_ascii() == self.text,
            Cell::Number(value) => {
                self.number.is_some_and(|code| code == value || code.is_nan() && value.is_nan())
            }
        }
    }
}
