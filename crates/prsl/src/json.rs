//! Models as JSON: the form for programs, with formulas and expectations in the rule language.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::ser::Formatter;

use crate::calibrate::{Calibrator, Confusion, Dirichlet, Isotonic};
use crate::combination::{self, Combination};
use crate::diagnostic::{position, shortened};
use crate::error::{Error, Result};
use crate::label::Label;
use crate::model::Model;
use crate::names::Names;
use crate::noisy_or::{Inhibition, NoisyOr};
use crate::rule::{Body, Rule};
use crate::text::{self, Document, MAX_BYTES};

/// What the field `format` has to say.
const FORMAT: &str = "prsl";
/// The newest version of the format that is read, and the one that is written.
const VERSION: u64 = 1;

impl Model {
    /// The model as JSON, one label, rule or expectation a line; it reads back as the same model, floats included.
    ///
    /// ```
    /// use prsl::Model;
    ///
    /// let model = Model::parse("label weather: sun, rain\nlabel ground: dry, wet latent\nrule 0.95: wet <- rain")?;
    /// assert_eq!(model.to_json(), r#"{
    ///   "format": "prsl",
    ///   "version": 1,
    ///   "labels": [
    ///     {"name": "weather", "categories": ["sun", "rain"]},
    ///     {"name": "ground", "categories": ["dry", "wet"], "classifier": null}
    ///   ],
    ///   "rules": [
    ///     {"probability": 0.95, "formula": "wet <- rain"}
    ///   ],
    ///   "expectations": []
    /// }
    /// "#);
    /// assert_eq!(Model::from_json(&model.to_json())?, model);
    /// # Ok::<(), prsl::Error>(())
    /// ```
    pub fn to_json(&self) -> String {
        let mut bytes = Vec::new();
        let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, Lines::default());
        File::of_model(self).serialize(&mut serializer).expect("writing to memory does not fail");
        bytes.push(b'\n');
        String::from_utf8(bytes).expect("JSON is UTF-8")
    }

    /// Reads a model from JSON; [`json_schema`] describes it.
    ///
    /// ```
    /// use prsl::{Error, Model};
    ///
    /// let json = r#"{"format": "prsl", "version": 2, "what": ["comes", "next"]}"#;
    /// assert!(matches!(Model::from_json(json), Err(Error::Version { found: 2, known: 1 })));
    /// ```
    pub fn from_json(json: &str) -> Result<Self> {
        Ok(document(json)?.into_model())
    }

    /// Reads a model from either form: JSON if the text begins with `{`, else the text format.
    ///
    /// ```
    /// use prsl::Model;
    ///
    /// let model = Model::parse("label a\nlabel b\nrule 0.9: a -> b")?;
    /// assert_eq!(Model::read(&model.to_string())?, model);
    /// assert_eq!(Model::read(&model.to_json())?, model);
    /// # Ok::<(), prsl::Error>(())
    /// ```
    pub fn read(text: &str) -> Result<Self> {
        Ok(Document::read(text)?.into_model())
    }
}

impl Document {
    /// Reads a document from either form: JSON if the text begins with `{`, else the text format. Labels, rules
    /// and expectations keep their place in the text they were read from.
    ///
    /// ```
    /// use prsl::{Document, RuleId};
    ///
    /// let json = r#"{"format": "prsl", "version": 1, "labels": [{"name": "a", "categories": ["yes", "no"]}],
    ///     "rules": [{"probability": 0.9, "formula": "a"}]}"#;
    /// let document = Document::read(json)?;
    /// assert_eq!(&json[document.rule_span(RuleId::new(0))], r#"{"probability": 0.9, "formula": "a"}"#);
    /// # Ok::<(), prsl::Error>(())
    /// ```
    pub fn read(text: &str) -> Result<Self> {
        let unmarked = text.strip_prefix('\u{feff}').unwrap_or(text);
        if unmarked.trim_start().starts_with('{') { document(text) } else { Self::parse(text) }
    }
}

/// The JSON Schema of [`Model::to_json`], as published in `schema/model-v1.schema.json`.
///
/// ```
/// let schema = prsl::json_schema();
/// assert!(schema.contains("\"title\": \"prsl model\""));
/// ```
pub fn json_schema() -> String {
    let schema = schemars::schema_for!(File);
    serde_json::to_string_pretty(&schema).expect("a schema is JSON") + "\n"
}

/// A model: labels, the probabilistic rules that relate them, and what its author expects of them.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "prsl model")]
struct File<'a> {
    /// Always `prsl`.
    #[schemars(extend("const" = FORMAT))]
    format: Cow<'a, str>,
    /// The version of the format: 1.
    #[schemars(extend("const" = VERSION))]
    version: u64,
    /// The labels, each of them one question with two or more mutually exclusive categories.
    #[serde(deserialize_with = "objects")]
    labels: Vec<LabelEntry<'a>>,
    /// The rules, all of them observed true.
    #[serde(default, deserialize_with = "objects")]
    rules: Vec<RuleEntry<'a>>,
    /// Combinations of categories that weigh more than the rules alone say.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "objects")]
    typical: Vec<CombinationEntry>,
    /// Unit tests of the rules in the rule language, such as `standing, high => overhead > 0.6`.
    #[serde(default)]
    expectations: Vec<String>,
}

/// One question and the categories that may answer it.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "Label")]
struct LabelEntry<'a> {
    /// The name, unique among the labels.
    #[schemars(length(min = 1))]
    name: Cow<'a, str>,
    /// The categories; `["yes", "no"]` makes the bare label stand for `yes` in formulas.
    #[schemars(length(min = 2))]
    categories: Cow<'a, [String]>,
    /// The prior probability of each category; uniform if absent.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    #[schemars(with = "Vec<f64>", inner(range(min = 0, max = 1)))]
    prior: Option<Cow<'a, [f64]>>,
    /// The classifier whose beliefs speak about the label; named like the label if absent, none if null.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    #[schemars(with = "Option<String>")]
    classifier: Option<Option<Cow<'a, str>>>,
    /// What the classifier's beliefs go through before inference; nothing if absent.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present_object")]
    #[schemars(with = "CalibratorEntry")]
    calibrator: Option<CalibratorEntry>,
}

/// A map from what a classifier says to what can be believed.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "Calibrator", tag = "kind", rename_all = "lowercase")]
enum CalibratorEntry {
    /// The belief to the power of 1/temperature, divided by the sum.
    Temperature {
        /// Above 1 less sure, below 1 surer.
        #[schemars(range(min = 1e-6, max = 1e6))]
        temperature: f64,
    },
    /// Of two categories: log-odds of the first = slope times log-odds of its belief + intercept.
    Platt {
        /// 1 changes nothing.
        #[schemars(range(min = -1e6, max = 1e6))]
        slope: f64,
        /// 0 changes nothing.
        #[schemars(range(min = -1e6, max = 1e6))]
        intercept: f64,
    },
    /// A nondecreasing map for each category, linear between points, divided by the sum.
    Isotonic {
        /// For each category points of belief and value, both from 0 to 1.
        maps: Vec<Vec<(f64, f64)>>,
    },
    /// Log belief = weights times log belief + bias, up to normalization.
    Dirichlet {
        /// A row for each category.
        weights: Vec<Vec<f64>>,
        /// One for each category.
        bias: Vec<f64>,
    },
    /// The matrix times the belief.
    Confusion {
        /// Counts or probabilities: rows are truths, columns what the classifier says; columns are divided by their sums.
        matrix: Vec<Vec<f64>>,
    },
}

/// A formula or a noisy-or, and the probability that it holds.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "Rule")]
#[schemars(extend("oneOf" = [{"required": ["formula"]}, {"required": ["noisy_or"]}]))]
struct RuleEntry<'a> {
    /// The name, unique among the rules.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    #[schemars(with = "String", length(min = 1))]
    name: Option<Cow<'a, str>>,
    /// The probability that the rule holds.
    #[schemars(range(min = 0, max = 1))]
    probability: f64,
    /// Whether learning leaves the rule as it is, even where rules are learned anew; false if absent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    fixed: bool,
    /// A formula in the rule language, such as `high & standing -> overhead`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    #[schemars(with = "String")]
    formula: Option<String>,
    /// The categories that may make a noisy-or rule true.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present_objects")]
    #[schemars(with = "Vec<InhibitionEntry<'_>>", length(min = 1))]
    noisy_or: Option<Vec<InhibitionEntry<'a>>>,
}

/// A category for every label, and how much more such an assignment weighs.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "Combination")]
struct CombinationEntry {
    /// The weight w: the combination counts 1 + w times.
    #[schemars(range(min = 0))]
    weight: f64,
    /// The categories in the rule language, such as `walking, gait, alarm`; yes/no labels that are not named are `no`,
    /// and `none` names none of them.
    categories: String,
}

/// One category of a noisy-or.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "Inhibition")]
struct InhibitionEntry<'a> {
    /// The label.
    label: Cow<'a, str>,
    /// Its category.
    category: Cow<'a, str>,
    /// The probability that the category, when present, fails to make the rule true.
    #[schemars(range(min = 0, max = 1))]
    inhibition: f64,
}

/// A structure that is written as an object: derived ones would take an array of their fields too.
struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = Object<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<Self::Value, M::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Object)
    }
}

fn objects<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    let objects = Vec::<Object<T>>::deserialize(deserializer)?;
    Ok(objects.into_iter().map(|Object(value)| value).collect())
}

fn present_objects<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<Vec<T>>, D::Error> {
    objects(deserializer).map(Some)
}

fn present_object<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    Object::deserialize(deserializer).map(|Object(value)| Some(value))
}

/// A field that is there has a value: `null` is refused unless the type takes it.
fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

impl<'a> File<'a> {
    fn of_model(model: &'a Model) -> Self {
        let names = Names::new(model.labels());
        File {
            format: FORMAT.into(),
            version: VERSION,
            labels: model.labels().iter().map(LabelEntry::of_label).collect(),
            rules: model.rules().iter().map(|rule| RuleEntry::of_rule(model, &names, rule)).collect(),
            typical: model.typical().iter().map(|it| CombinationEntry::of_combination(&names, it)).collect(),
            expectations: model
                .expectations()
                .iter()
                .map(|expectation| text::print::expectation(&names, expectation))
                .collect(),
        }
    }
}

impl<'a> LabelEntry<'a> {
    fn of_label(label: &'a Label) -> Self {
        let classifier = match label.classifier() {
            None => Some(None),
            Some(classifier) if classifier.name() == label.name() => None,
            Some(classifier) => Some(Some(classifier.name().into())),
        };
        LabelEntry {
            name: label.name().into(),
            categories: label.categories().into(),
            prior: label.prior().map(Cow::from),
            classifier,
            calibrator: CalibratorEntry::of_calibrator(label.calibrator()),
        }
    }

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
    fn of_calibrator(calibrator: &Calibrator) -> Option<Self> {
        Some(match calibrator {
            Calibrator::Identity => return None,
            &Calibrator::Temperature { temperature } => CalibratorEntry::Temperature { temperature },
            &Calibrator::Platt { slope, intercept } => CalibratorEntry::Platt { slope, intercept },
            Calibrator::Isotonic(isotonic) => CalibratorEntry::Isotonic { maps: isotonic.maps().to_vec() },
            Calibrator::Dirichlet(dirichlet) => CalibratorEntry::Dirichlet {
                weights: dirichlet.weights().map(<[f64]>::to_vec).collect(),
                bias: dirichlet.bias().to_vec(),
            },
            Calibrator::Confusion(confusion) => {
                CalibratorEntry::Confusion { matrix: confusion.matrix().to_vec() }
            }
        })
    }

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

impl<'a> RuleEntry<'a> {
    fn of_rule(model: &'a Model, names: &Names<'_>, rule: &'a Rule) -> Self {
        let (formula, noisy_or) = match rule.body() {
            Body::Formula(formula) => (Some(text::print::formula(names, formula)), None),
            Body::NoisyOr(noisy_or) => (None, Some(InhibitionEntry::of_noisy_or(model, noisy_or))),
        };
        let name = rule.name().map(Cow::from);
        RuleEntry { name, probability: rule.probability(), fixed: rule.is_fixed(), formula, noisy_or }
    }

    fn into_rule(self, names: &Names<'_>) -> Result<Rule, String> {
        let body = match (self.formula, self.noisy_or) {
            (Some(formula), None) => {
                Body::Formula(text::parse::formula(&formula, names).map_err(|error| error.to_string())?)
            }
            (None, Some(entries)) => {
                let inhibitions: Result<Vec<_>> =
                    entries.iter().map(|entry| entry.to_inhibition(names)).collect();
                Body::NoisyOr(NoisyOr::new(inhibitions.map_err(|error| error.to_string())?))
            }
            (Some(_), Some(_)) => return Err("both `formula` and `noisy_or` are given; keep one".to_owned()),
            (None, None) => return Err("neither `formula` nor `noisy_or` is given; add one".to_owned()),
        };
        let rule = Rule::new(self.probability, body).fixed(self.fixed);
        Ok(match self.name {
            Some(name) => rule.named(name),
            None => rule,
        })
    }
}

impl CombinationEntry {
    fn of_combination(names: &Names<'_>, combination: &Combination) -> Self {
        let categories = text::print::combination(names, combination.categories());
        Self { weight: combination.weight(), categories }
    }

    fn to_combination(&self, names: &Names<'_>) -> Result<Combination, String> {
        let categories = text::parse::combination(&self.categories, names)
            .map_err(|error| reason(&self.categories, error))?;
        Ok(Combination::new(self.weight, categories))
    }
}

impl<'a> InhibitionEntry<'a> {
    fn of_noisy_or(model: &'a Model, noisy_or: &NoisyOr) -> Vec<Self> {
        let entry = |i: &Inhibition| {
            let label = model.label(i.label);
            let category = label.category(i.category).into();
            InhibitionEntry { label: label.name().into(), category, inhibition: i.probability }
        };
        noisy_or.inhibitions().iter().map(entry).collect()
    }

    fn to_inhibition(&self, names: &Names<'_>) -> Result<Inhibition> {
        let (label, category) = names.find(&self.label, &self.category, &String::new)?;
        Ok(Inhibition { label, category, probability: self.inhibition })
    }
}

/// The formula of a rule as its author wrote it, given the place of the rule in a document of either form.
pub(crate) fn formula_source(rule: &str) -> Cow<'_, str> {
    let entry: Option<RuleEntry<'_>> =
        if rule.starts_with('{') { serde_json::from_str(rule).ok() } else { None };
    entry.and_then(|entry| entry.formula).map_or(Cow::Borrowed(rule), Cow::Owned)
}

/// Reads a model from JSON, with the place of each of its parts.
fn document(source: &str) -> Result<Document> {
    if source.len() > MAX_BYTES {
        return Err(Error::TooLarge { bytes: source.len(), limit: MAX_BYTES });
    }
    let mark = source.len() - source.strip_prefix('\u{feff}').unwrap_or(source).len();
    let json = &source[mark..];
    probe(json)?;
    let Object(file): Object<File<'_>> =
        serde_json::from_str(json).map_err(|error| unreadable(json, &error))?;
    if file.format != FORMAT {
        return Err(foreign(&file.format));
    }
    if file.version != VERSION {
        let message = format!("the format version is {}, expected {VERSION}", file.version);
        return Err(Error::Json { message, line: 0, column: 0 });
    }
    let shift = |span: Range<usize>| span.start + mark..span.end + mark;
    let [label_spans, rule_spans, expectation_spans] =
        ["labels", "rules", "expectations"].map(|key| elements(json, key).map(shift).collect::<Vec<_>>());
    let at = |span: &Range<usize>, message: String| {
        let (line, column) = position(json, span.start - mark);
        Error::Json { message, line, column }
    };

    let label = |(index, entry): (usize, LabelEntry<'_>)| {
        let called = format!("label {} (`{}`)", index + 1, entry.name);
        entry.into_label().map_err(|error| at(&label_spans[index], format!("{called}: {error}")))
    };
    let labels = file.labels.into_iter().enumerate().map(label).collect::<Result<_>>()?;
    let labels = Model::from_parts(labels, Vec::new(), Vec::new())?;
    let names = Names::new(labels.labels());
    let mut rules = Vec::new();
    for (index, entry) in file.rules.into_iter().enumerate() {
        let called = entry.name.as_ref().map_or_else(String::new, |name| format!(" (`{name}`)"));
        rules.push(
            entry.into_rule(&names).map_err(|message| {
                at(&rule_spans[index], format!("rule {}{called}: {message}", index + 1))
            })?,
        );
    }
    let mut expectations = Vec::new();
    for (index, expectation) in file.expectations.iter().enumerate() {
        expectations.push(text::parse::expectation(expectation, &names).map_err(|error| {
            at(&expectation_spans[index], format!("expectation {} {}", index + 1, reason(expectation, error)))
        })?);
    }
    let typical_spans: Vec<Range<usize>> = elements(json, "typical").map(shift).collect();
    combination::check_size(labels.labels(), file.typical.len())?;
    let mut typical = Vec::new();
    for (entry, span) in file.typical.iter().zip(&typical_spans) {
        let number = typical.len() + 1;
        let wrong = |message: String| at(span, format!("combination {number} {message}"));
        typical.push(entry.to_combination(&names).map_err(wrong)?);
    }
    let model = Model::from_parts(labels.labels().to_vec(), rules, expectations)?.with_typical(typical)?;
    let document = Document::from_parts(source.to_owned(), model, label_spans, rule_spans, expectation_spans);
    Ok(document.with_typical_spans(typical_spans))
}

/// An expectation and what is wrong with it.
fn reason(expectation: &str, error: Error) -> String {
    let expectation = shortened(expectation);
    let Error::Text(diagnostics) = error else { return format!("`{expectation}`: {error}") };
    let sentences: Vec<_> = diagnostics
        .list()
        .iter()
        .map(|d| d.help.as_ref().map_or(d.message.clone(), |help| format!("{}; {help}", d.message)))
        .collect();
    format!("`{expectation}`: {}", sentences.join("; "))
}

/// Looks for the format and the version first, so that a model of a newer prsl is recognized even where nothing
/// else can be read.
fn probe(json: &str) -> Result<()> {
    let mut head = Head::default();
    // An error is reported by whoever reads the whole.
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
    let message = format!("the field `format` is `{format}`, expected `{FORMAT}`");
    Error::Json { message, line: 0, column: 0 }
}

/// What serde_json says, in our words and with the place apart.
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
                Some(word) => format!("`{word}` is not a number in JSON; give a number from 0 to 1"),
                None => message.to_owned(),
            }
        }
        _ => TERMS.iter().fold(message.to_owned(), |message, (theirs, ours)| message.replace(theirs, ours)),
    };
    Error::Json { message, line, column }
}

/// What serde calls things, and what readers of JSON call them.
const TERMS: [(&str, &str); 3] = [
    ("expected f64", "expected a number"),
    ("expected u64", "expected a whole number"),
    ("expected a sequence", "expected an array"),
];

/// Where the elements of the array under a key of the outermost object stand, in JSON that is known to be valid.
fn elements(json: &str, wanted: &str) -> impl Iterator<Item = Range<usize>> {
    let mut spans = Vec::new();
    let mut depth = 0;
    // The key that was read last in the outermost object, and where the current element of its array began.
    let mut key: Option<Range<usize>> = None;
    let mut start: Option<usize> = None;
    let mut at = 0;
    let bytes = json.as_bytes();
    let is_wanted = |key: &Option<Range<usize>>| {
        let text = key.clone().map(|span| &json[span]);
        text.and_then(|text| serde_json::from_str::<String>(text).ok()).is_some_and(|key| key == wanted)
    };
    while at < bytes.len() {
        let end = if bytes[at] == b'"' { string_end(bytes, at) } else { at + 1 };
        let closes = matches!(bytes[at], b']' | b',') && depth == 2;
        if closes && let Some(start) = start.take() {
            spans.push(start..at);
        }
        match bytes[at] {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            b'"' if depth == 1 => key = Some(at..end),
            _ => {}
        }
        // An element begins behind the array's bracket or a comma of its own.
        if depth == 2 && matches!(bytes[at], b'[' | b',') && is_wanted(&key) {
            let blank = bytes[at + 1..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            start = Some(at + 1 + blank).filter(|&start| bytes.get(start) != Some(&b']'));
        }
        at = end;
    }
    spans.into_iter().map(move |span: Range<usize>| span.start..span.start + json[span].trim_end().len())
}

/// Behind the closing quote of the string that begins at `at`.
fn string_end(bytes: &[u8], at: usize) -> usize {
    let mut end = at + 1;
    while end < bytes.len() && bytes[end] != b'"' {
        end += if bytes[end] == b'\\' { 2 } else { 1 };
    }
    end + 1
}

/// The layout of the file: the outer two levels on lines of their own, everything below them on one line.
#[derive(Default)]
struct Lines {
    depth: usize,
    empty: bool,
}

impl Lines {
    fn open(&mut self) {
        self.depth += 1;
        self.empty = true;
    }

    fn close<W: ?Sized + std::io::Write>(&mut self, writer: &mut W, bracket: &[u8]) -> std::io::Result<()> {
        let spread = self.depth <= 2 && !self.empty;
        self.depth -= 1;
        self.empty = false;
        if spread {
            self.newline(writer)?;
        }
        writer.write_all(bracket)
    }

    fn newline<W: ?Sized + std::io::Write>(&self, writer: &mut W) -> std::io::Result<()> {
        writer.write_all(b"\n")?;
        writer.write_all("  ".repeat(self.depth).as_bytes())
    }

    fn separate<W: ?Sized + std::io::Write>(&mut self, writer: &mut W, first: bool) -> std::io::Result<()> {
        self.empty = false;
        match (first, self.depth <= 2) {
            (true, true) => self.newline(writer),
            (true, false) => Ok(()),
            (false, true) => writer.write_all(b",").and_then(|()| self.newline(writer)),
            (false, false) => writer.write_all(b", "),
        }
    }
}

impl Formatter for Lines {
    fn begin_array<W: ?Sized + std::io::Write>(&mut self, writer: &mut W) -> std::io::Result<()> {
        self.open();
        writer.write_all(b"[")
    }

    fn end_array<W: ?Sized + std::io::Write>(&mut self, writer: &mut W) -> std::io::Result<()> {
        self.close(writer, b"]")
    }

    fn begin_array_value<W: ?Sized + std::io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> std::io::Result<()> {
        self.separate(writer, first)
    }

    fn begin_object<W: ?Sized + std::io::Write>(&mut self, writer: &mut W) -> std::io::Result<()> {
        self.open();
        writer.write_all(b"{")
    }

    fn end_object<W: ?Sized + std::io::Write>(&mut self, writer: &mut W) -> std::io::Result<()> {
        self.close(writer, b"}")
    }

    fn begin_object_key<W: ?Sized + std::io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> std::io::Result<()> {
        self.separate(writer, first)
    }

    fn begin_object_value<W: ?Sized + std::io::Write>(&mut self, writer: &mut W) -> std::io::Result<()> {
        writer.write_all(b": ")
    }
}
