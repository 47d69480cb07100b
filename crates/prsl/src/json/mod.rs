//! Models as JSON: the form for programs, with formulas and expectations in the rule language.

mod entries;
mod read;
mod spans;
mod write;

use std::borrow::Cow;

use crate::error::Result;
use crate::model::Model;
use crate::text::Document;
use entries::{File, RuleEntry};

/// The value of the field `format`.
const FORMAT: &str = "prsl";
/// The newest version of the format that is read, and the one that is written. Version 1 has no notes about learned
/// rules, and is read too.
const VERSION: u64 = 2;

impl Model {
    /// The model as JSON, with one label, rule or expectation per line. It reads back as the same model, floats
    /// included.
    ///
    /// ```
    /// use prsl::Model;
    ///
    /// let model = Model::parse("label weather: sun, rain\nlabel ground: dry, wet latent\nrule 0.95: wet <- rain")?;
    /// assert_eq!(model.to_json(), r#"{
    ///   "format": "prsl",
    ///   "version": 2,
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
        write::json(self)
    }

    /// Reads a model from JSON; [`Self::json_schema`] describes it.
    ///
    /// ```
    /// use prsl::{Error, Model};
    ///
    /// let json = r#"{"format": "prsl", "version": 3, "what": ["comes", "next"]}"#;
    /// assert!(matches!(Model::from_json(json), Err(Error::Version { found: 3, known: 2 })));
    /// ```
    pub fn from_json(json: &str) -> Result<Self> {
        Ok(read::document(json)?.into_model())
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
    /// Reads a document from either form: JSON if the text begins with `{`, else the text format.
    ///
    /// The spans of labels, rules and expectations are those in this text.
    ///
    /// ```
    /// use prsl::{Document, RuleId};
    ///
    /// let json = r#"{"format": "prsl", "version": 2, "labels": [{"name": "a", "categories": ["yes", "no"]}],
    ///     "rules": [{"probability": 0.9, "formula": "a"}]}"#;
    /// let document = Document::read(json)?;
    /// assert_eq!(&json[document.rule_span(RuleId::new(0))], r#"{"probability": 0.9, "formula": "a"}"#);
    /// # Ok::<(), prsl::Error>(())
    /// ```
    pub fn read(text: &str) -> Result<Self> {
        let unmarked = text.strip_prefix('\u{feff}').unwrap_or(text);
        if unmarked.trim_start().starts_with('{') { read::document(text) } else { Self::parse(text) }
    }
}

impl Model {
    /// The JSON Schema of [`Self::to_json`], as published in `schema/model-v2.schema.json`.
    ///
    /// ```
    /// let schema = prsl::Model::json_schema();
    /// assert!(schema.contains("\"title\": \"prsl model\""));
    /// ```
    pub fn json_schema() -> String {
        let schema = schemars::schema_for!(File);
        serde_json::to_string_pretty(&schema).expect("a schema is JSON") + "\n"
    }
}

/// The formula of a rule as its author wrote it, given the source of the rule in a text or JSON document.
pub(crate) fn formula_source(rule: &str) -> Cow<'_, str> {
    let entry: Option<RuleEntry<'_>> =
        if rule.starts_with('{') { serde_json::from_str(rule).ok() } else { None };
    entry.and_then(|entry| entry.formula).map_or(Cow::Borrowed(rule), Cow::Owned)
}
