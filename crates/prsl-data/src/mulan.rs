//! Multi-label data in the two files of Mulan: an ARFF file, and an XML file that names the labels in it.

use std::collections::{HashMap, HashSet};
use std::io::Read;
use std::path::Path;

use quick_xml::XmlVersion;
use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;

use crate::arff::{ArffReader, ArffValue, Attribute, AttributeKind};
use crate::error::{Error, MulanProblem, Result, XmlProblem, nearest};
use crate::source::Source;

/// Maximum length of a label file.
const MAX_XML_BYTES: usize = 16 << 20;

/// The labels of a Mulan label file, in its order.
///
/// ```
/// let xml = r#"<labels><label name="music"><label name="sad &amp; slow"/></label></labels>"#;
/// let labels = prsl_data::MulanLabels::new(xml.as_bytes(), "music.xml")?;
/// assert_eq!(labels.labels()[1].name, "sad & slow");
/// assert_eq!(labels.labels()[1].parent, Some(0));
/// # Ok::<(), prsl_data::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MulanLabels {
    labels: Vec<MulanLabel>,
}

/// A label, and the label it is nested in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MulanLabel {
    /// Its name.
    pub name: String,
    /// The position of its parent in the same list.
    pub parent: Option<usize>,
}

/// A multi-label dataset that is read row by row.
///
/// ```
/// use prsl_data::{ArffReader, MulanDataset, MulanLabels};
///
/// let arff = "@attribute wet {0,1}\n@attribute x numeric\n@data\n1,0.5\n";
/// let xml = r#"<labels><label name="wet"/></labels>"#;
/// let mut dataset = MulanDataset::new(
///     ArffReader::new(arff.as_bytes(), "weather.arff")?,
///     &MulanLabels::new(xml.as_bytes(), "weather.xml")?,
/// )?;
/// assert_eq!(dataset.labels()[0].name, "wet");
/// let row = dataset.next_row()?.expect("there is a row");
/// assert_eq!(row.labels, [Some(true)]);
/// assert_eq!(row.features.len(), 1);
/// # Ok::<(), prsl_data::Error>(())
/// ```
#[derive(Debug)]
pub struct MulanDataset {
    arff: ArffReader,
    labels: Vec<MulanLabel>,
    /// For each attribute, its role.
    roles: Vec<Role>,
}

/// A row of a multi-label dataset.
#[derive(Debug, Clone, PartialEq)]
pub struct MulanRow {
    /// The values of the attributes that are not labels, in the order of the ARFF file.
    pub features: Vec<ArffValue>,
    /// The labels in the order of the ARFF file, `None` where unknown.
    pub labels: Vec<Option<bool>>,
}

/// Opens a dataset: an ARFF file (`.arff`, `.arff.gz`) and its label file.
///
/// ```no_run
/// let mut dataset = prsl_data::read_mulan("emotions.arff".as_ref(), "emotions.xml".as_ref())?;
/// while let Some(row) = dataset.next_row()? {
///     println!("{:?}", row.labels);
/// }
/// # Ok::<(), prsl_data::Error>(())
/// ```
pub fn read_mulan(arff: &Path, xml: &Path) -> Result<MulanDataset> {
    MulanDataset::new(ArffReader::open(arff)?, &MulanLabels::open(xml)?)
}

/// Reads a label file. For fuzzing.
///
/// ```
/// let labels = prsl_data::parse_mulan_labels(br#"<labels><label name="rain"/></labels>"#)?;
/// assert_eq!(labels.labels().len(), 1);
/// # Ok::<(), prsl_data::Error>(())
/// ```
pub fn parse_mulan_labels(bytes: &[u8]) -> Result<MulanLabels> {
    labels_from(bytes, "xml")
}

impl MulanLabels {
    /// Reads a label file.
    ///
    /// ```no_run
    /// let labels = prsl_data::MulanLabels::open("emotions.xml".as_ref())?;
    /// println!("{} labels", labels.labels().len());
    /// # Ok::<(), prsl_data::Error>(())
    /// ```
    pub fn open(path: &Path) -> Result<MulanLabels> {
        MulanLabels::from_source(Source::open(path)?)
    }

    /// Reads a label file from anything; `name` stands for it in messages.
    pub fn new(reader: impl Read + Send + 'static, name: impl Into<String>) -> Result<MulanLabels> {
        MulanLabels::from_source(Source::new(reader, name))
    }

    /// The labels in the order of the file.
    pub fn labels(&self) -> &[MulanLabel] {
        &self.labels
    }

    fn from_source(mut source: Source) -> Result<MulanLabels> {
        let mut bytes = Vec::new();
        loop {
            let buffer = source.fill()?;
            if buffer.is_empty() {
                return labels_from(&bytes, &source.name);
            }
            let length = buffer.len();
            bytes.extend_from_slice(buffer);
            source.consume(length);
            if bytes.len() > MAX_XML_BYTES {
                let problem = XmlProblem::TooLong { limit: MAX_XML_BYTES };
                return Err(Error::Xml { file: source.name, line: 1, column: 1, problem });
            }
        }
    }
}

impl MulanDataset {
    /// Finds the labels among the attributes.
    pub fn new(arff: ArffReader, labels: &MulanLabels) -> Result<MulanDataset> {
        let error = |problem| Error::Mulan { file: arff.name().to_owned(), problem };
        let places: HashMap<_, _> =
            arff.attributes().iter().map(|attribute| attribute.name.as_str()).zip(0..).collect();
        let mut roles = vec![Role::Feature; arff.attributes().len()];
        let mut label_at = HashMap::new();
        for (index, label) in labels.labels.iter().enumerate() {
            let Some(&place) = places.get(label.name.as_str()) else {
                let suggestion = nearest(&label.name, places.keys().copied()).map(str::to_owned);
                return Err(error(MulanProblem::MissingLabel { label: label.name.clone(), suggestion }));
            };
            roles[place] = role(&arff.attributes()[place]).map_err(error)?;
            label_at.insert(place, index);
        }
        // The labels in the order of the attributes, with their parents renumbered.
        let order: Vec<usize> = (0..roles.len()).filter_map(|place| label_at.get(&place).copied()).collect();
        let new_index: HashMap<usize, usize> = order.iter().copied().zip(0..).collect();
        let renumbered = |index: &usize| {
            let label = &labels.labels[*index];
            MulanLabel { name: label.name.clone(), parent: label.parent.map(|parent| new_index[&parent]) }
        };
        let labels = order.iter().map(renumbered).collect();
        Ok(MulanDataset { arff, labels, roles })
    }

    /// The labels in the order of the ARFF file.
    pub fn labels(&self) -> &[MulanLabel] {
        &self.labels
    }

    /// The attributes that are not labels, in the order of the ARFF file.
    pub fn features(&self) -> impl Iterator<Item = &Attribute> {
        self.arff
            .attributes()
            .iter()
            .zip(&self.roles)
            .filter(|(_, role)| **role == Role::Feature)
            .map(|(a, _)| a)
    }

    /// All attributes, features and labels.
    pub fn attributes(&self) -> &[Attribute] {
        self.arff.attributes()
    }

    /// For each label, the position of its attribute.
    pub fn label_columns(&self) -> Vec<usize> {
        (0..self.roles.len()).filter(|&index| self.roles[index] != Role::Feature).collect()
    }

    /// The next row, or `None` at the end.
    pub fn next_row(&mut self) -> Result<Option<MulanRow>> {
        let Some(values) = self.arff.next_row()? else { return Ok(None) };
        let mut row = MulanRow { features: Vec::new(), labels: Vec::with_capacity(self.labels.len()) };
        for (value, role) in values.into_iter().zip(&self.roles) {
            match (role, value) {
                (Role::Feature, value) => row.features.push(value),
                (_, ArffValue::Missing) => row.labels.push(None),
                (Role::Nominal { yes }, value) => row.labels.push(Some(value == ArffValue::Nominal(*yes))),
                (Role::Numeric, ArffValue::Number(0.0)) => row.labels.push(Some(false)),
                (Role::Numeric, ArffValue::Number(1.0)) => row.labels.push(Some(true)),
                (Role::Numeric, value) => {
                    let value = if let ArffValue::Number(number) = value { number } else { f64::NAN };
                    let label = self.labels[row.labels.len()].name.clone();
                    let problem = MulanProblem::BadValue { row: self.arff.rows_read(), label, value };
                    return Err(Error::Mulan { file: self.arff.name().to_owned(), problem });
                }
            }
        }
        Ok(Some(row))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Feature,
    /// A label with the values 0 and 1.
    Numeric,
    /// A label with two values, of which this one is `1`.
    Nominal {
        yes: usize,
    },
}

/// How an attribute represents 0 and 1.
fn role(attribute: &Attribute) -> std::result::Result<Role, MulanProblem> {
    if let AttributeKind::Nominal(values) = &attribute.kind {
        let values: Vec<_> = values.iter().map(String::as_str).collect();
        match values[..] {
            ["0", "1"] => return Ok(Role::Nominal { yes: 1 }),
            ["1", "0"] | ["1"] => return Ok(Role::Nominal { yes: 0 }),
            ["0"] => return Ok(Role::Nominal { yes: usize::MAX }),
            _ => {}
        }
    }
    if attribute.kind == AttributeKind::Numeric {
        return Ok(Role::Numeric);
    }
    Err(MulanProblem::BadKind { label: attribute.name.clone(), kind: attribute.kind.describe() })
}

fn labels_from(bytes: &[u8], file: &str) -> Result<MulanLabels> {
    let bytes = bytes.strip_prefix("\u{FEFF}".as_bytes()).unwrap_or(bytes);
    let error = |offset: usize, problem| {
        let before = &bytes[..offset.min(bytes.len())];
        let line = 1 + before.iter().filter(|&&byte| byte == b'\n').count() as u64;
        let start = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |newline| newline + 1);
        let column = 1 + String::from_utf8_lossy(&before[start..]).chars().count() as u64;
        Error::Xml { file: file.to_owned(), line, column, problem }
    };
    let text = std::str::from_utf8(bytes).map_err(|e| error(e.valid_up_to(), XmlProblem::NotUtf8))?;
    let mut reader = Reader::from_str(text);
    reader.config_mut().check_end_names = true;
    let mut tree = Tree::default();
    loop {
        let start = reader.buffer_position() as usize;
        let event = reader
            .read_event()
            .map_err(|e| error(reader.error_position() as usize, XmlProblem::Malformed(e.to_string())))?;
        if event == Event::Eof {
            break;
        }
        tree.event(event).map_err(|problem| error(start, problem))?;
    }
    tree.finish().map_err(|problem| error(bytes.len(), problem)).map(|labels| MulanLabels { labels })
}

/// The labels seen so far, and the elements that are open.
#[derive(Default)]
struct Tree {
    labels: Vec<MulanLabel>,
    names: HashSet<String>,
    /// `None` for the element `labels`.
    open: Vec<Option<usize>>,
    /// The element `labels` has been seen.
    started: bool,
}

impl Tree {
    fn event(&mut self, event: Event<'_>) -> std::result::Result<(), XmlProblem> {
        match event {
            Event::Start(element) => {
                let index = self.element(&element)?;
                self.open.push(index);
            }
            Event::Empty(element) => {
                self.element(&element)?;
            }
            Event::End(_) => {
                self.open.pop();
            }
            Event::DocType(_) => return Err(XmlProblem::DocumentType),
            Event::Text(text) if text.trim_ascii().is_empty() => {}
            Event::Text(text) => {
                return Err(XmlProblem::UnexpectedText { text: text.trim_ascii().to_owned() });
            }
            Event::CData(text) => return Err(XmlProblem::UnexpectedText { text: text.to_string() }),
            Event::GeneralRef(text) => {
                return Err(XmlProblem::UnexpectedText { text: format!("&{};", &*text) });
            }
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::Eof => {}
        }
        Ok(())
    }

    /// Records an element; returns its label.
    fn element(&mut self, element: &BytesStart<'_>) -> std::result::Result<Option<usize>, XmlProblem> {
        let unexpected = || XmlProblem::UnexpectedElement { name: element.name().as_ref().to_owned() };
        match (element.local_name().as_ref(), self.open.last()) {
            ("labels", None) if !self.started => {
                self.started = true;
                Ok(None)
            }
            ("label", Some(&parent)) => {
                let name = label_name(element)?;
                if !self.names.insert(name.clone()) {
                    return Err(XmlProblem::Duplicate { name });
                }
                self.labels.push(MulanLabel { name, parent });
                Ok(Some(self.labels.len() - 1))
            }
            _ => Err(unexpected()),
        }
    }

    fn finish(self) -> std::result::Result<Vec<MulanLabel>, XmlProblem> {
        if !self.open.is_empty() {
            return Err(XmlProblem::Malformed("the file ends before its elements are closed".to_owned()));
        }
        if self.labels.is_empty() { Err(XmlProblem::NoLabels) } else { Ok(self.labels) }
    }
}

/// The attribute `name`. Only predefined XML entities and character references are resolved, so a document cannot
/// expand to a large text.
fn label_name(element: &BytesStart<'_>) -> std::result::Result<String, XmlProblem> {
    let malformed = |error: quick_xml::Error| XmlProblem::Malformed(error.to_string());
    for attribute in element.attributes() {
        let attribute = attribute.map_err(|error| malformed(error.into()))?;
        if attribute.key.as_ref() == "name" {
            let name = attribute.normalized_value(XmlVersion::Implicit1_0).map_err(malformed)?.into_owned();
            return if name.is_empty() { Err(XmlProblem::Unnamed) } else { Ok(name) };
        }
    }
    Err(XmlProblem::Unnamed)
}
