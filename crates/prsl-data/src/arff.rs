//! ARFF, the format of Weka and Mulan, read row by row.

mod lexer;

use std::collections::{HashMap, HashSet};
use std::io::Read;
use std::path::Path;

use crate::cell::parse_number;
use crate::csv::MAX_RECORD_BYTES;
use crate::error::{ArffProblem, Error, Result};
use crate::source::{self, Source};
use lexer::{Lexer, Token};

/// Maximum length of a header.
const MAX_HEADER_BYTES: usize = 64 << 20;

/// An ARFF file that is read row by row, dense and sparse rows alike.
///
/// ```
/// use prsl_data::{ArffReader, ArffValue};
///
/// let text = "@relation r\n@attribute x numeric\n@attribute 'is wet' {no, yes}\n@data\n0.5, yes\n{0 2}\n";
/// let mut file = ArffReader::new(text.as_bytes(), "r.arff")?;
/// assert_eq!(file.attributes()[1].name, "is wet");
/// assert_eq!(file.next_row()?, Some(vec![ArffValue::Number(0.5), ArffValue::Nominal(1)]));
/// assert_eq!(file.next_row()?, Some(vec![ArffValue::Number(2.0), ArffValue::Nominal(0)]));
/// assert_eq!(file.next_row()?, None);
/// # Ok::<(), prsl_data::Error>(())
/// ```
pub struct ArffReader {
    lines: Lines,
    relation: String,
    attributes: Vec<Attribute>,
    /// For nominal attributes, the position of each value.
    positions: Vec<HashMap<String, usize>>,
    rows_read: u64,
}

/// A column of an ARFF file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribute {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: AttributeKind,
}

/// The type of a column of an ARFF file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AttributeKind {
    /// Numbers: `numeric`, `real` and `integer` alike.
    Numeric,
    /// One of these values.
    Nominal(Vec<String>),
    /// Text.
    Text,
    /// A date, with its format if one is given; values are text.
    Date(Option<String>),
}

/// A value of an ARFF file.
#[derive(Debug, Clone, PartialEq)]
pub enum ArffValue {
    /// Unknown, written `?`.
    Missing,
    /// A number.
    Number(f64),
    /// A value of a nominal attribute, by its place in the declaration, from 0.
    Nominal(usize),
    /// Text, or a date.
    Text(String),
}

impl ArffReader {
    /// Opens a file and reads its header; `.gz` is unpacked.
    ///
    /// ```no_run
    /// let file = prsl_data::ArffReader::open("emotions.arff".as_ref())?;
    /// println!("{} attributes", file.attributes().len());
    /// # Ok::<(), prsl_data::Error>(())
    /// ```
    pub fn open(path: &Path) -> Result<ArffReader> {
        if !source::has_extension(&source::without_gz(path), "arff") {
            let file = path.display().to_string();
            return Err(Error::UnknownFormat { file, expected: ".arff or .arff.gz" });
        }
        ArffReader::from_source(Source::open(path)?)
    }

    /// Reads the header from anything; `name` stands for it in messages.
    pub fn new(reader: impl Read + Send + 'static, name: impl Into<String>) -> Result<ArffReader> {
        ArffReader::from_source(Source::new(reader, name))
    }

    /// The name of the file in messages.
    pub fn name(&self) -> &str {
        &self.lines.source.name
    }

    /// The relation's name; empty if the file has none.
    pub fn relation(&self) -> &str {
        &self.relation
    }

    /// The columns, all of different names.
    pub fn attributes(&self) -> &[Attribute] {
        &self.attributes
    }

    /// The number of rows read so far.
    pub fn rows_read(&self) -> u64 {
        self.rows_read
    }

    /// The next row, with a value for each attribute, or `None` at the end.
    ///
    /// Attributes that a sparse row omits are 0, the first value of a nominal attribute, or an empty text.
    pub fn next_row(&mut self) -> Result<Option<Vec<ArffValue>>> {
        loop {
            let Some(line) = self.lines.next()? else { return Ok(None) };
            match parse_row(line, &self.attributes, &self.positions) {
                Ok(None) => {}
                Ok(row) => {
                    self.rows_read += 1;
                    return Ok(row);
                }
                Err(problem) => return Err(self.lines.error(problem)),
            }
        }
    }

    fn from_source(mut source: Source) -> Result<ArffReader> {
        source.skip_byte_order_mark()?;
        let mut lines = Lines { source, line: 0, bytes: Vec::new() };
        let mut header = Header::default();
        let mut n_bytes = 0;
        loop {
            let Some(line) = lines.next()? else { return Err(lines.error(ArffProblem::NoData)) };
            n_bytes += line.len();
            let parsed = match n_bytes > MAX_HEADER_BYTES {
                true => Err(ArffProblem::HeaderTooLong { limit: MAX_HEADER_BYTES }),
                false => header.line(line),
            };
            match parsed {
                Ok(Progress::Header) => {}
                Ok(Progress::Data) => break,
                Err(problem) => return Err(lines.error(problem)),
            }
        }
        let Header { relation, attributes, .. } = header;
        let positions = attributes.iter().map(|attribute| attribute.kind.positions()).collect();
        Ok(ArffReader { lines, relation, attributes, positions, rows_read: 0 })
    }
}

impl std::fmt::Debug for ArffReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ArffReader")
            .field("name", &self.name())
            .field("attributes", &self.attributes)
            .field("rows_read", &self.rows_read)
            .finish()
    }
}

impl AttributeKind {
    /// The type in messages.
    pub(crate) fn describe(&self) -> &'static str {
        match self {
            AttributeKind::Numeric => "numeric",
            AttributeKind::Nominal(_) => "nominal",
            AttributeKind::Text => "string",
            AttributeKind::Date(_) => "date",
        }
    }

    fn positions(&self) -> HashMap<String, usize> {
        match self {
            AttributeKind::Nominal(values) => values.iter().cloned().zip(0..).collect(),
            _ => HashMap::new(),
        }
    }

    /// The value of an attribute that a sparse row omits.
    fn unmentioned(&self) -> ArffValue {
        match self {
            AttributeKind::Numeric => ArffValue::Number(0.0),
            AttributeKind::Nominal(_) => ArffValue::Nominal(0),
            AttributeKind::Text | AttributeKind::Date(_) => ArffValue::Text(String::new()),
        }
    }
}

/// Reads a whole ARFF file; returns the numbers of rows and attributes. For fuzzing.
///
/// ```
/// assert_eq!(prsl_data::parse_arff(b"@attribute x real\n@data\n1\n?\n")?, (2, 1));
/// # Ok::<(), prsl_data::Error>(())
/// ```
pub fn parse_arff(bytes: &[u8]) -> Result<(u64, usize)> {
    let mut file = ArffReader::new(std::io::Cursor::new(bytes.to_vec()), "arff")?;
    while file.next_row()?.is_some() {}
    Ok((file.rows_read(), file.attributes().len()))
}

type Parsed<T> = std::result::Result<T, ArffProblem>;

enum Progress {
    Header,
    Data,
}

#[derive(Default)]
struct Header {
    relation: String,
    attributes: Vec<Attribute>,
    names: HashSet<String>,
}

impl Header {
    fn line(&mut self, line: &str) -> Parsed<Progress> {
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with('%') {
            return Ok(Progress::Header);
        }
        let (keyword, rest) = line.split_at(line.find([' ', '\t']).unwrap_or(line.len()));
        match keyword.to_ascii_lowercase().as_str() {
            "@relation" => self.relation = relation(rest)?,
            "@attribute" => self.attribute(rest)?,
            "@data" if self.attributes.is_empty() => return Err(ArffProblem::NoAttributes),
            "@data" => return Lexer::new(rest).end().map(|()| Progress::Data),
            _ => return Err(ArffProblem::NotAHeader { text: line.to_owned() }),
        }
        Ok(Progress::Header)
    }

    fn attribute(&mut self, text: &str) -> Parsed<()> {
        let mut lexer = Lexer::new(text);
        let name = match lexer.next_name()? {
            Some(name) if !name.is_empty() => name,
            _ => return Err(ArffProblem::IncompleteAttribute),
        };
        let kind = match lexer.next()? {
            Some(Token::Open) => AttributeKind::Nominal(nominal_values(&mut lexer, &name)?),
            Some(Token::Bare(kind) | Token::Quoted(kind)) => named_kind(&mut lexer, &name, &kind)?,
            Some(token) => return Err(token.unexpected()),
            None => return Err(ArffProblem::IncompleteAttribute),
        };
        lexer.end()?;
        if !self.names.insert(name.clone()) {
            return Err(ArffProblem::DuplicateAttribute { attribute: name });
        }
        self.attributes.push(Attribute { name, kind });
        Ok(())
    }
}

/// The name of a relation. It may contain blanks even without quotes.
fn relation(text: &str) -> Parsed<String> {
    let text = text.trim_ascii();
    if !text.starts_with(['\'', '"']) {
        return Ok(text.to_owned());
    }
    Ok(Lexer::new(text).next_name()?.unwrap_or_default())
}

fn named_kind(lexer: &mut Lexer<'_>, attribute: &str, kind: &str) -> Parsed<AttributeKind> {
    match kind.to_ascii_lowercase().as_str() {
        "numeric" | "integer" | "real" => Ok(AttributeKind::Numeric),
        "string" => Ok(AttributeKind::Text),
        "date" => match lexer.next()? {
            Some(Token::Bare(format) | Token::Quoted(format)) => Ok(AttributeKind::Date(Some(format))),
            Some(token) => Err(token.unexpected()),
            None => Ok(AttributeKind::Date(None)),
        },
        _ => Err(ArffProblem::UnknownKind { attribute: attribute.to_owned(), kind: kind.to_owned() }),
    }
}

fn nominal_values(lexer: &mut Lexer<'_>, attribute: &str) -> Parsed<Vec<String>> {
    let bad = |what| Err(ArffProblem::BadNominal { attribute: attribute.to_owned(), what });
    let mut values = Vec::new();
    let mut seen = HashSet::new();
    loop {
        match lexer.next_value()? {
            Some(Token::Close) => break,
            Some(Token::Bare(value) | Token::Quoted(value)) => {
                if !seen.insert(value.clone()) {
                    return bad("it lists a value twice");
                }
                values.push(value);
            }
            Some(token) => return Err(token.unexpected()),
            None => return bad("its list of values is not closed with `}`"),
        }
    }
    if values.is_empty() { bad("it lists no values") } else { Ok(values) }
}

/// The values of a line, `None` if it is empty.
fn parse_row(
    line: &str,
    attributes: &[Attribute],
    positions: &[HashMap<String, usize>],
) -> Parsed<Option<Vec<ArffValue>>> {
    let mut lexer = Lexer::new(line);
    match lexer.next_value()? {
        None => Ok(None),
        Some(Token::Open) => parse_sparse(lexer, attributes, positions).map(Some),
        Some(first) => parse_dense(first, lexer, attributes, positions).map(Some),
    }
}

fn parse_dense(
    first: Token,
    mut lexer: Lexer<'_>,
    attributes: &[Attribute],
    positions: &[HashMap<String, usize>],
) -> Parsed<Vec<ArffValue>> {
    let mut values = Vec::with_capacity(attributes.len());
    let mut found = 0;
    let mut next = Some(first);
    while let Some(token) = next {
        if let Some(attribute) = attributes.get(found) {
            values.push(value(token, attribute, &positions[found])?);
        }
        found += 1;
        next = lexer.next_value()?;
    }
    match found == attributes.len() {
        true => Ok(values),
        false => Err(ArffProblem::Ragged { found, expected: attributes.len() }),
    }
}

fn parse_sparse(
    mut lexer: Lexer<'_>,
    attributes: &[Attribute],
    positions: &[HashMap<String, usize>],
) -> Parsed<Vec<ArffValue>> {
    let mut values: Vec<_> = attributes.iter().map(|attribute| attribute.kind.unmentioned()).collect();
    let mut previous = None;
    loop {
        let index = match lexer.next_value()? {
            Some(Token::Close) => break,
            Some(Token::Bare(text)) => sparse_index(&text, attributes.len(), previous)?,
            Some(token) => return Err(token.unexpected()),
            None => return Err(ArffProblem::UnterminatedRow),
        };
        let token = lexer.next()?.ok_or(ArffProblem::UnterminatedRow)?;
        values[index] = value(token, &attributes[index], &positions[index])?;
        previous = Some(index);
    }
    lexer.end()?;
    Ok(values)
}

fn sparse_index(text: &str, n: usize, previous: Option<usize>) -> Parsed<usize> {
    let index = match text.parse::<usize>() {
        Ok(index) if index < n => index,
        _ => return Err(ArffProblem::BadIndex { text: text.to_owned(), last: n - 1 }),
    };
    match previous {
        Some(previous) if index <= previous => Err(ArffProblem::Unordered { index, previous }),
        _ => Ok(index),
    }
}

fn value(token: Token, attribute: &Attribute, positions: &HashMap<String, usize>) -> Parsed<ArffValue> {
    let text = match token {
        Token::Bare(text) if text == "?" => return Ok(ArffValue::Missing),
        Token::Bare(text) | Token::Quoted(text) => text,
        token => return Err(token.unexpected()),
    };
    let bad = |text, expected| ArffProblem::BadValue { attribute: attribute.name.clone(), text, expected };
    match &attribute.kind {
        AttributeKind::Numeric => match parse_number(&text) {
            Ok(number) => Ok(ArffValue::Number(number)),
            Err(_) => Err(bad(text, "a number")),
        },
        AttributeKind::Nominal(_) => match positions.get(&text) {
            Some(&index) => Ok(ArffValue::Nominal(index)),
            None => Err(bad(text, "one of its values")),
        },
        AttributeKind::Text | AttributeKind::Date(_) => Ok(ArffValue::Text(text)),
    }
}

/// The lines of a source, limited in length.
struct Lines {
    source: Source,
    line: u64,
    bytes: Vec<u8>,
}

impl Lines {
    /// The next line without its end, `None` at the end of the file.
    fn next(&mut self) -> Result<Option<&str>> {
        self.bytes.clear();
        self.line += 1;
        loop {
            let buffer = self.source.fill()?;
            if buffer.is_empty() {
                break;
            }
            let end = buffer.iter().position(|&byte| byte == b'\n');
            let length = end.unwrap_or(buffer.len());
            self.bytes.extend_from_slice(&buffer[..length]);
            self.source.consume(length + usize::from(end.is_some()));
            if self.bytes.len() > MAX_RECORD_BYTES {
                return Err(self.error(ArffProblem::TooLong { limit: MAX_RECORD_BYTES }));
            }
            if end.is_some() {
                return self.text().map(Some);
            }
        }
        if self.bytes.is_empty() { Ok(None) } else { self.text().map(Some) }
    }

    fn text(&self) -> Result<&str> {
        std::str::from_utf8(&self.bytes).map_err(|_| self.error(ArffProblem::NotUtf8))
    }

    fn error(&self, problem: ArffProblem) -> Error {
        Error::Arff { file: self.source.name.clone(), line: self.line, problem }
    }
}
