//! Reads a model from JSON.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};

use super::entries::{
    CalibratorEntry, CombinationEntry, File, InhibitionEntry, LabelEntry, LearnedEntry, Object, RuleEntry,
};
use super::spans::elements;
use super::{FORMAT, VERSION};
use crate::calibrator::{Calibrator, Confusion, Dirichlet, Isotonic};
use crate::combination::{Combination, check_size};
use crate::diagnostic::{position, quoted};
use crate::error::{Error, Result};
use crate::label::Label;
use crate::model::Model;
use crate::names::Names;
use crate::noisy_or::{Inhibition, NoisyOr};
use crate::rule::{Body, LearnedNote, Rule};
use crate::syntax;
use crate::text::{Document, MAX_BYTES};

/// Reads a model from JSON, with the spans of its parts.
pub(super) fn document(source: &str) -> Result<Document> {
    if source.len() > MAX_BYTES {
        return Err(Error::TooLarge { bytes: source.len(), limit: MAX_BYTES });
    }
    let mark = source.len() - source.strip_prefix('\u{feff}').unwrap_or(source).len();
    let json = &source[mark..];
    let file = file(json)?;
    let spans = |key: &str| -> Vec<Range<usize>> {
        elements(json, key).map(|span| span.start + mark..span.end + mark).collect()
    };
    let places = Places { json, mark };

    let label_spans = spans("labels");
    let names = Arc::new(Names::new(labels(file.labels, &label_spans, &places)?)?);
    let rule_spans = spans("rules");
    let rules = rules(file.rules, &rule_spans, &places, &names)?;
    let expectation_spans = spans("expectations");
    let mut expectations = Vec::new();
    for (index, text) in file.expectations.iter().enumerate() {
        let wrong = |error: Error| {
            places.error(
                &expectation_spans[index],
                format!("expectation {} {}", index + 1, reason(text, error)),
            )
        };
        expectations.push(syntax::expectation(text, &names).map_err(wrong)?);
    }
    let typical_spans = spans("typical");
    check_size(names.labels(), file.typical.len())?;
    let mut typical = Vec::new();
    for (entry, span) in file.typical.iter().zip(&typical_spans) {
        let number = typical.len() + 1;
        let wrong = |message: String| places.error(span, format!("combination {number} {message}"));
        typical.push(entry.to_combination(&names).map_err(wrong)?);
    }
    let model = Model::of_names(names, rules, expectations)?.with_typical(typical)?;
    let document = Document::from_parts(source.to_owned(), model, label_spans, rule_spans, expectation_spans);
    Ok(document.with_typical_spans(typical_spans))
}

/// The entries of a model of the right format and version.
fn file(json: &str) -> Result<File<'_>> {
    probe(json)?;
    let Object(file): Object<File<'_>> =
        serde_json::from_str(json).map_err(|error| unreadable(json, &error))?;
    if file.format != FORMAT {
        return Err(foreign(&file.format));
    }
    if !(1..=VERSION).contains(&file.version) {
        let message = format!("the format version is {}, expected 1 to {VERSION}", file.version);
        return Err(Error::Json { message, line: 0, column: 0 });
    }
    Ok(file)
}

fn labels(entries: Vec<LabelEntry<'_>>, spans: &[Range<usize>], places: &Places<'_>) -> Result<Vec<Label>> {
    let label = |(index, entry): (usize, LabelEntry<'_>)| {
        let called = format!("label {} ({})", index + 1, quoted(&entry.name));
        entry.into_label().map_err(|error| places.error(&spans[index], format!("{called}: {error}")))
    };
    entries.into_iter().enumerate().map(label).collect()
}

fn rules(
    entries: Vec<RuleEntry<'_>>,
    spans: &[Range<usize>],
    places: &Places<'_>,
    names: &Names,
) -> Result<Vec<Rule>> {
    let rule = |(index, entry): (usize, RuleEntry<'_>)| {
        let called = entry.name.as_ref().map_or_else(String::new, |name| format!(" ({})", quoted(name)));
        let wrong =
            |message: String| places.error(&spans[index], format!("rule {}{called}: {message}", index + 1));
        entry.into_rule(names).map_err(wrong)
    };
    entries.into_iter().enumerate().map(rule).collect()
}

/// Finds lines and columns of a JSON text that follows a byte order mark of `mark` bytes.
struct Places<'j> {
    json: &'j str,
    mark: usize,
}

impl Places<'_> {
    /// An error at the start of a span of the whole source.
    fn error(&self, span: &Range<usize>, message: String) -> Error {
        let (line, column) = position(self.json, span.start - self.mark);
        Error::Json { message, line, column }
    }
}

/// A text of the rule language and its errors.
fn reason(text: &str, error: Error) -> String {
    let text = quoted(text);
    let Error::Text(diagnostics) = error else { return format!("{text}: {error}") };
    let sentences: Vec<_> = diagnostics
        .list()
        .iter()
        .map(|d| d.help.as_ref().map_or(d.message.clone(), |help| format!("{}; {help}", d.message)))
        .collect();
    format!("{text}: {}", sentences.join("; "))
}

impl LabelEntry<'_> {
    fn into_label(self) -> Result<Label> {
        let calibrator =
            self.calibrator.map_or(Ok(Calibrator::Identity), CalibratorEntry::into_calibrator)?;
        let label = Label::new(self.name, self.categories.into_owned());
        let label = match self.classifier {
            None => label,
            Some(None) => label.latent(),
            Some(Some(classifier)) => label.from_classifier(classifier),
        };
        let label = label.with_calibrator(calibrator);
        Ok(match self.prior {
            Some(prior) => label.with_prior(prior),
            None => label,
        })
    }
}

impl CalibratorEntry {
    fn into_calibrator(self) -> Result<Calibrator> {
        Ok(match self {
            CalibratorEntry::Temperature { temperature } => Calibrator::Temperature { temperature },
            CalibratorEntry::Platt { slope, intercept } => Calibrator::Platt { slope, intercept },
            CalibratorEntry::Isotonic { maps } => Calibrator::Isotonic(Isotonic::new(maps)?),
            CalibratorEntry::Dirichlet { weights, bias } => {
                Calibrator::Dirichlet(Dirichlet::new(&weights, &bias)?)
            }
            CalibratorEntry::Confusion { matrix } => Calibrator::Confusion(Confusion::new(matrix)?),
        })
    }
}

impl RuleEntry<'_> {
    fn into_rule(self, names: &Names) -> Result<Rule, String> {
        let body = match (self.formula, self.noisy_or) {
            (Some(formula), None) => {
                Body::Formula(syntax::formula(&formula, names).map_err(|error| error.to_string())?)
            }
            (None, Some(entries)) => {
                let inhibitions: Result<Vec<_>> =
                    entries.iter().map(|entry| entry.to_inhibition(names)).collect();
                Body::NoisyOr(NoisyOr::new(inhibitions.map_err(|error| error.to_string())?))
            }
            (Some(_), Some(_)) => return Err("both `formula` and `noisy_or` are given; keep one".to_owned()),
            (None, None) => return Err("neither `formula` nor `noisy_or` is given; add one".to_owned()),
        };
        let learned = self.learned.map(|LearnedEntry { gain, broken, known, expected, sure }| {
            LearnedNote::new(gain, broken, known, expected, sure)
        });
        let rule = Rule::new(self.probability, body).fixed(self.fixed).with_learned(learned);
        Ok(match self.name {
            Some(name) => rule.named(name),
            None => rule,
        })
    }
}

impl CombinationEntry {
    fn to_combination(&self, names: &Names) -> Result<Combination, String> {
        let categories =
            syntax::combination(&self.categories, names).map_err(|error| reason(&self.categories, error))?;
        Ok(Combination::new(self.weight, categories))
    }
}

impl InhibitionEntry<'_> {
    fn to_inhibition(&self, names: &Names) -> Result<Inhibition> {
        let (label, category) = names.find(&self.label, &self.category, &String::new)?;
        Ok(Inhibition { label, category, probability: self.inhibition })
    }
}

/// Checks the format and the version first, so that a model of a newer prsl is recognized even if nothing else can be
/// read.
fn probe(json: &str) -> Result<()> {
    let mut head = Head::default();
    // Errors are reported when the whole text is read.
    let _ = serde_json::Deserializer::from_str(json).deserialize_map(HeadVisitor(&mut head));
    match (head.format, head.version) {
        (Some(serde_json::Value::String(format)), _) if format != FORMAT => Err(foreign(&format)),
        (_, Some(found)) if found > VERSION => Err(Error::Version { found, known: VERSION }),
        _ => Ok(()),
    }
}

#[derive(Default)]
struct Head {
    format: Option<serde_json::Value>,
    version: Option<u64>,
}

struct HeadVisitor<'a>(&'a mut Head);

impl<'de> Visitor<'de> for HeadVisitor<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a model")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "format" => self.0.format = Some(map.next_value()?),
                "version" => self.0.version = map.next_value::<serde_json::Value>()?.as_u64(),
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

fn foreign(format: &str) -> Error {
    let message = format!("the field `format` is {format}, expected `{FORMAT}`", format = quoted(format));
    Error::Json { message, line: 0, column: 0 }
}

/// An error of serde_json in the terms of JSON, with line and column apart.
fn unreadable(json: &str, error: &serde_json::Error) -> Error {
    let (line, column) = (error.line(), error.column());
    let text = error.to_string();
    let message = text.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&text);
    let message = match error.classify() {
        serde_json::error::Category::Eof => "the text ends too early; is the file truncated?".to_owned(),
        serde_json::error::Category::Syntax => {
            let rest =
                json.lines().nth(line.saturating_sub(1)).and_then(|l| l.get(column.saturating_sub(1)..));
            let rest = rest.unwrap_or("").trim_start_matches('-');
            match ["NaN", "Infinity", "inf"].into_iter().find(|word| rest.starts_with(word)) {
                Some(word) => format!("`{word}` is not a number in JSON; give a finite number"),
                None => message.to_owned(),
            }
        }
        _ => TERMS.iter().fold(message.to_owned(), |message, (theirs, ours)| message.replace(theirs, ours)),
    };
    Error::Json { message, line, column }
}

/// Terms of serde, and the terms of JSON for them.
const TERMS: [(&str, &str); 3] = [
    ("expected f64", "expected a number"),
    ("expected u64", "expected a whole number"),
    ("expected a sequence", "expected an array"),
];
