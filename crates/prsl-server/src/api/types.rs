//! Requests and answers of `/api/v1` in JSON.

use std::collections::BTreeMap;

use prsl::explain::{Counterfactuals, InformationGains};
use prsl::lint::{ExpectationResult, Finding};
use prsl::{Assignment, Explanation, Model};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde::{Deserialize, Serialize as DeriveSerialize};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{AdditionalProperties, Object, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use super::beliefs::Beliefs;

/// A request for predictions: one row as `beliefs`, or several as `rows`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PredictRequest {
    /// The name of the model.
    #[schema(example = "warehouse")]
    pub(crate) model: String,
    /// The beliefs of one row.
    pub(crate) beliefs: Option<Beliefs>,
    /// The beliefs of several rows.
    pub(crate) rows: Option<Vec<Beliefs>>,
    /// The query.
    #[serde(default)]
    pub(crate) query: Query,
    /// The number of most probable assignments of each row, 1 unless it is given.
    #[schema(minimum = 1, maximum = 1000)]
    pub(crate) top: Option<usize>,
    /// Whether each belief is divided by its sum, instead of rejecting those that do not sum to 1.
    #[serde(default)]
    pub(crate) normalize: bool,
}

/// The query of a prediction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Query {
    /// The probability of each category of each label.
    #[default]
    Marginals,
    /// The most probable assignments.
    Mpe,
    /// Marginals and assignments.
    Both,
}

/// The predictions of all rows.
#[derive(Debug, DeriveSerialize, ToSchema)]
pub(crate) struct PredictResponse {
    /// The name of the model.
    pub(crate) model: String,
    /// The version of the model that answered all rows.
    pub(crate) version: String,
    /// The engine of the marginals.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) engine: Option<&'static str>,
    /// Every row, in the order of the request.
    pub(crate) rows: Vec<RowAnswer>,
}

/// The answer for one row.
#[derive(Debug, DeriveSerialize, ToSchema)]
pub(crate) struct RowAnswer {
    /// `ok`, or what is doubtful: `impossible`, `not_converged`, `imprecise`, `not_proven`, `time_limit`, `not_found`.
    pub(crate) status: &'static str,
    /// ln Z: the log probability that all rules hold, given the beliefs. Null if the row is impossible.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) log_evidence: Option<Option<f64>>,
    /// The probability of each category by label. Null if the row is impossible.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) marginals: Option<Option<Marginals>>,
    /// The most probable assignments, best first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) best: Option<Vec<BestAssignment>>,
}

/// A most probable assignment.
#[derive(Debug, DeriveSerialize, ToSchema)]
pub(crate) struct BestAssignment {
    /// The category of every label.
    pub(crate) assignment: Assigned,
    /// Its probability; null if the exact evidence is too expensive.
    pub(crate) probability: Option<f64>,
    /// ln of its probability.
    pub(crate) log_probability: Option<f64>,
    /// ln of the product of its beliefs and rule weights.
    pub(crate) log_weight: f64,
    /// Whether no other assignment is more probable, except those listed before it.
    pub(crate) proven: bool,
    /// The engine that found it.
    pub(crate) engine: &'static str,
}

/// Marginals of all labels, written as `{label: {category: probability}}` in the model's order.
#[derive(Clone, Debug)]
pub(crate) struct Marginals {
    pub(crate) model: Model,
    pub(crate) values: Vec<f64>,
}

impl Serialize for Marginals {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct Distribution<'a>(&'a [String], &'a [f64]);
        impl Serialize for Distribution<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_map(self.0.iter().zip(self.1))
            }
        }
        let mut map = serializer.serialize_map(Some(self.model.labels().len()))?;
        for (id, label) in self.model.label_ids().zip(self.model.labels()) {
            let values = &self.values[self.model.block(id)];
            map.serialize_entry(label.name(), &Distribution(label.categories(), values))?;
        }
        map.end()
    }
}

impl ToSchema for Marginals {}

impl PartialSchema for Marginals {
    fn schema() -> RefOr<Schema> {
        object_of(object_of(f64::schema()))
    }
}

/// An assignment, written as `{label: category}` in the model's order.
#[derive(Clone, Debug)]
pub(crate) struct Assigned {
    pub(crate) model: Model,
    pub(crate) assignment: Assignment,
}

impl Serialize for Assigned {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let labels = self.model.labels().iter().zip(self.assignment.categories());
        serializer.collect_map(labels.map(|(label, category)| (label.name(), label.category(category))))
    }
}

impl ToSchema for Assigned {}

impl PartialSchema for Assigned {
    fn schema() -> RefOr<Schema> {
        object_of(String::schema())
    }
}

/// The schema of an object with any keys.
fn object_of(value: RefOr<Schema>) -> RefOr<Schema> {
    let mut object = Object::with_type(Type::Object);
    object.additional_properties = Some(Box::new(AdditionalProperties::RefOr(value)));
    RefOr::T(object.into())
}

/// A request for an explanation of one row.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExplainRequest {
    /// The name of the model.
    #[schema(example = "warehouse")]
    pub(crate) model: String,
    /// The beliefs of the row.
    #[serde(default)]
    pub(crate) beliefs: Beliefs,
    /// The effects on this label only.
    pub(crate) label: Option<String>,
}

/// An explanation: what `prsl explain --format json` prints.
#[derive(Debug, DeriveSerialize, ToSchema)]
pub(crate) struct ExplainResponse {
    /// The name of the model.
    pub(crate) model: String,
    /// The version of the model.
    pub(crate) version: String,
    /// The explanation.
    #[serde(flatten)]
    pub(crate) explanation: Explanation,
}

/// A question for the smallest changes that make a category the most probable one.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FlipRequest {
    /// The name of the model.
    #[schema(example = "warehouse")]
    pub(crate) model: String,
    /// The beliefs of the row.
    #[serde(default)]
    pub(crate) beliefs: Beliefs,
    /// The label whose answer is to change.
    #[schema(example = "activity")]
    pub(crate) label: String,
    /// The category that is to become the most probable one.
    #[schema(example = "normal")]
    pub(crate) category: String,
}

/// What would change the answer: what `prsl explain --flip` prints as JSON.
#[derive(Debug, DeriveSerialize, ToSchema)]
pub(crate) struct FlipResponse {
    /// The name of the model.
    pub(crate) model: String,
    /// The version of the model.
    pub(crate) version: String,
    /// The changes.
    #[serde(flatten)]
    pub(crate) counterfactuals: Counterfactuals,
}

/// A question for the label to observe next.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NextRequest {
    /// The name of the model.
    #[schema(example = "warehouse")]
    pub(crate) model: String,
    /// The beliefs of the row.
    #[serde(default)]
    pub(crate) beliefs: Beliefs,
    /// The label of interest; all labels unless it is given.
    pub(crate) label: Option<String>,
}

/// What should be asked next: what `prsl explain --next` prints as JSON.
#[derive(Debug, DeriveSerialize, ToSchema)]
pub(crate) struct NextResponse {
    /// The name of the model.
    pub(crate) model: String,
    /// The version of the model.
    pub(crate) version: String,
    /// The expected gains.
    #[serde(flatten)]
    pub(crate) gains: InformationGains,
}

/// A question about a model with changed rules. Nothing is stored.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WhatIfRequest {
    /// The name of the model. Give either this or `text`.
    #[schema(example = "warehouse")]
    pub(crate) model: Option<String>,
    /// The text of a model.
    pub(crate) text: Option<String>,
    /// The beliefs of the row.
    #[serde(default)]
    pub(crate) beliefs: Beliefs,
    /// Changed rules by number, from 1: `off`, or another probability.
    #[serde(default)]
    #[schema(example = json!({"1": "off", "2": 0.7}))]
    pub(crate) rules: BTreeMap<usize, RuleEdit>,
    /// The label to explain. Without it there is no explanation, and the answer is faster.
    pub(crate) label: Option<String>,
    /// Whether to explain all labels, also if `label` is given.
    #[serde(default)]
    pub(crate) explain: bool,
    /// A category of `label`: what would make it the most probable one.
    pub(crate) flip: Option<String>,
    /// Whether to tell which label should be asked next, to learn about `label` or about all labels.
    #[serde(default)]
    pub(crate) next: bool,
    /// Further rows, of which only the posterior is wanted.
    #[serde(default)]
    pub(crate) rows: Vec<Beliefs>,
}

/// A change of one rule.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum RuleEdit {
    /// Another probability.
    Probability(f64),
    /// `"off"`: without the rule.
    Off(Off),
}

/// The word for a rule that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Off {
    /// The rule is left out.
    Off,
}

/// The answer of a model with changed rules.
#[derive(Debug, DeriveSerialize, ToSchema)]
pub(crate) struct WhatIfResponse {
    /// The engine of the marginals.
    pub(crate) engine: &'static str,
    /// The posterior, and the two most probable assignments.
    #[serde(flatten)]
    pub(crate) answer: RowAnswer,
    /// The rules that exclude the row, as a sentence, if it is impossible.
    pub(crate) conflict: Option<String>,
    /// The reason why most probable assignments are missing, if they are too costly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) best_refused: Option<String>,
    /// The effect of each rule on the label that was asked for. Rules keep their numbers if others are off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) explanation: Option<Explanation>,
    /// What would change the answer, if `flip` is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) flip: Option<Counterfactuals>,
    /// What should be asked next, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<InformationGains>,
    /// The posterior of each further row.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) rows: Vec<RowAnswer>,
}

/// A request for checks of a model.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CheckRequest {
    /// The text of the model, in the rule language or JSON. Give either this or `model`.
    #[schema(example = "label rain\nlabel wet\nrule 0.95: rain -> wet\nexpect rain => wet > 0.5\n")]
    pub(crate) text: Option<String>,
    /// The name of a model that is served.
    pub(crate) model: Option<String>,
}

/// The findings of the checks.
#[derive(Debug, DeriveSerialize, ToSchema)]
pub(crate) struct CheckResponse {
    /// Whether the text is a model.
    pub(crate) valid: bool,
    /// The engine for marginals and the reason; null if the text is not a model.
    pub(crate) inference: Option<String>,
    /// Everything that requires action. Syntax errors have the code `syntax`.
    pub(crate) findings: Vec<Finding>,
    /// Information.
    pub(crate) notes: Vec<Finding>,
    /// The outcome of every `expect` line.
    pub(crate) expectations: Vec<ExpectationResult>,
    /// The labels, in the model's order; none if the text is not a model.
    pub(crate) labels: Vec<LabelDetails>,
    /// The rules, in the model's order; none if the text is not a model.
    pub(crate) rules: Vec<RuleDetails>,
}

/// The models that are served.
#[derive(Debug, DeriveSerialize, ToSchema)]
pub(crate) struct ModelList {
    /// Every model, by name.
    pub(crate) models: Vec<ModelSummary>,
    /// Whether models can be written and deleted.
    pub(crate) writable: bool,
}

/// A model in a list.
#[derive(Debug, DeriveSerialize, ToSchema)]
pub(crate) struct ModelSummary {
    /// Its name.
    pub(crate) name: String,
    /// A digest of its text.
    pub(crate) version: String,
    /// The number of labels.
    pub(crate) n_labels: usize,
    /// The number of rules.
    pub(crate) n_rules: usize,
    /// The engine for marginals, and the reason.
    pub(crate) inference: String,
}

/// A model with its parts.
#[derive(Debug, DeriveSerialize, ToSchema)]
pub(crate) struct ModelDetails {
    /// Its name.
    pub(crate) name: String,
    /// A digest of its text, also the `ETag`.
    pub(crate) version: String,
    /// Its text.
    pub(crate) text: String,
    /// The engine for marginals, and the reason.
    pub(crate) inference: String,
    /// The labels, in the model's order.
    pub(crate) labels: Vec<LabelDetails>,
    /// The rules, in the model's order.
    pub(crate) rules: Vec<RuleDetails>,
    /// The number of typical combinations.
    pub(crate) n_typical: usize,
    /// The number of `expect` lines.
    pub(crate) n_expectations: usize,
}

/// A label.
#[derive(Debug, DeriveSerialize, ToSchema)]
pub(crate) struct LabelDetails {
    /// Its position, from 0.
    pub(crate) index: usize,
    /// Its name.
    pub(crate) name: String,
    /// Its categories, in order.
    pub(crate) categories: Vec<String>,
    /// Its prior; uniform unless the model states it.
    pub(crate) prior: Vec<f64>,
    /// Whether the model states the prior.
    pub(crate) has_prior: bool,
    /// The classifier that beliefs come from; null for a latent label, which takes no beliefs.
    pub(crate) classifier: Option<String>,
    /// The kind of calibrator, such as `platt`; null if beliefs are used as they are.
    pub(crate) calibrator: Option<String>,
}

/// A rule.
#[derive(Debug, DeriveSerialize, ToSchema)]
pub(crate) struct RuleDetails {
    /// Its number, from 1, as in explanations and `whatif`.
    pub(crate) number: usize,
    /// Its name, if it has one.
    pub(crate) name: Option<String>,
    /// `rule` or `noisy_or`.
    pub(crate) kind: prsl::explain::RuleKind,
    /// Its statement, as in a model file.
    pub(crate) text: String,
    /// Its statement as a sentence, with its probability.
    pub(crate) sentence: String,
    /// The probability that it holds.
    pub(crate) probability: f64,
    /// The labels that it is about.
    pub(crate) labels: Vec<String>,
    /// Whether learning never changes it.
    pub(crate) fixed: bool,
    /// Whether it was learned.
    pub(crate) learned: bool,
    /// Byte range of the rule in the text.
    pub(crate) start: usize,
    /// The byte after the rule in the text.
    pub(crate) end: usize,
}

/// A model to be written.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PutRequest {
    /// The text of the model, in the rule language or JSON.
    pub(crate) text: String,
}

/// The state of the service.
#[derive(Debug, DeriveSerialize, ToSchema)]
pub(crate) struct Ready {
    /// `ready`, `degraded` (a file cannot be served, and its old version is) or `draining`.
    pub(crate) status: &'static str,
    /// Every model. Absent without the token, if one is needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) models: Option<Vec<ModelReady>>,
}

/// The state of one model.
#[derive(Debug, DeriveSerialize, ToSchema)]
pub(crate) struct ModelReady {
    /// Its name.
    pub(crate) name: String,
    /// Whether a version is served.
    pub(crate) ready: bool,
    /// The version that is served.
    pub(crate) version: Option<String>,
    /// Why the newest file is not served.
    pub(crate) failure: Option<String>,
}
