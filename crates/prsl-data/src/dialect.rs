//! How a CSV file is written: its delimiter and its decimal sign.

use crate::error::{Error, Result};

/// The delimiter and the decimal sign of a CSV file. By default they are a comma and a point.
///
/// ```
/// use prsl_data::{CsvDialect, TableReader};
///
/// let dialect = CsvDialect::new(';', ',')?;
/// let table = TableReader::csv_as("sun;rain\n0,3;0,7\n".as_bytes(), "beliefs.csv", dialect)?;
/// assert_eq!(table.columns(), ["sun", "rain"]);
/// assert!(CsvDialect::new(',', ',').is_err());
/// # Ok::<(), prsl_data::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CsvDialect {
    pub(crate) delimiter: u8,
    pub(crate) decimal: u8,
}

impl Default for CsvDialect {
    fn default() -> CsvDialect {
        CsvDialect { delimiter: b',', decimal: b'.' }
    }
}

impl CsvDialect {
    /// A delimiter, which is a tab or a punctuation character of ASCII, and a decimal sign, which is `.` or `,`. The delimiter
    /// cannot be a character of numbers, of quotes, or of the names `label=category`.
    pub fn new(delimiter: char, decimal: char) -> Result<CsvDialect> {
        let is_punctuation = delimiter == '\t' || delimiter.is_ascii_punctuation();
        let is_used = ['"', '\'', '.', '+', '-', '=', '_', decimal].contains(&delimiter);
        match (u8::try_from(delimiter), u8::try_from(decimal)) {
            (Ok(delimiter), Ok(decimal @ (b'.' | b','))) if is_punctuation && !is_used => {
                Ok(CsvDialect { delimiter, decimal })
            }
            _ => Err(Error::Dialect { delimiter, decimal }),
        }
    }
}

/// Delimiters that a file may have instead of the one it was read with.
const DELIMITERS: [char; 4] = [';', '\t', '|', ','];

/// The delimiter that the only column of a header seems to contain.
pub(crate) fn other_delimiter(columns: &[String]) -> Option<char> {
    match columns {
        [only] => DELIMITERS.into_iter().find(|&delimiter| only.contains(delimiter)),
        _ => None,
    }
}

/// Whether a byte is a usual delimiter.
pub(crate) fn is_usual(byte: u8) -> bool {
    DELIMITERS.contains(&char::from(byte))
}
