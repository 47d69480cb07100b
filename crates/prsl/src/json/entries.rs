//! The structure of a model in JSON, from which the schema is made.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

use super::{FORMAT, VERSION};

/// A model: labels, probabilistic rules that relate them, typical combinations, and expectations that test the rules.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "prsl model")]
pub(super) struct File<'a> {
    /// Always `prsl`.
    #[schemars(extend("const" = FORMAT))]
    pub(super) format: Cow<'a, str>,
    /// The version of the format: 2.
    #[schemars(extend("const" = VERSION))]
    pub(super) version: u64,
    /// The labels. Each is a question with two or more mutually exclusive categories as answers.
    #[serde(deserialize_with = "objects")]
    pub(super) labels: Vec<LabelEntry<'a>>,
    /// The rules. All of them are observed to be true.
    #[serde(default, deserialize_with = "objects")]
    pub(super) rules: Vec<RuleEntry<'a>>,
    /// Typical combinations: assignments with a larger weight than the rules give them.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "objects")]
    pub(super) typical: Vec<CombinationEntry>,
    /// Unit tests of the rules in the rule language, such as `standing, high => overhead > 0.6`.
    #[serde(default)]
    pub(super) expectations: Vec<String>,
}

/// One question and the categories that may answer it.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "Label")]
pub(super) struct LabelEntry<'a> {
    /// The name, unique among the labels.
    #[schemars(length(min = 1))]
    pub(super) name: Cow<'a, str>,
    /// The categories. If they are `["yes", "no"]`, the name of the label means `yes` in formulas.
    #[schemars(length(min = 2))]
    pub(super) categories: Cow<'a, [String]>,
    /// The prior probability of each category; uniform if absent.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    #[schemars(with = "Vec<f64>", inner(range(min = 0, max = 1)))]
    pub(super) prior: Option<Cow<'a, [f64]>>,
    /// The classifier that gives the beliefs about the label. If absent, it is named like the label. If null, there
    /// is none.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    #[schemars(with = "Option<String>")]
    pub(super) classifier: Option<Option<Cow<'a, str>>>,
    /// The map that is applied to the classifier's beliefs before inference; the identity if absent.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present_object")]
    #[schemars(with = "CalibratorEntry")]
    pub(super) calibrator: Option<CalibratorEntry>,
}

/// A map from a classifier's belief to a calibrated belief.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "Calibrator", tag = "kind", rename_all = "lowercase")]
pub(super) enum CalibratorEntry {
    /// The belief to the power of 1/temperature, normalized.
    Temperature {
        /// A temperature above 1 makes beliefs less certain, and one below 1 makes them more certain.
        #[schemars(range(min = 1e-6, max = 1e6))]
        temperature: f64,
    },
    /// For two categories: log-odds of the first = slope times log-odds of its belief + intercept.
    Platt {
        /// The slope. The identity has 1.
        #[schemars(range(min = -1e6, max = 1e6))]
        slope: f64,
        /// The intercept. The identity has 0.
        #[schemars(range(min = -1e6, max = 1e6))]
        intercept: f64,
    },
    /// A nondecreasing map for each category, linear between points. The values are divided by their sum.
    Isotonic {
        /// The points (belief, value) of each category's map, both from 0 to 1.
        maps: Vec<Vec<(f64, f64)>>,
    },
    /// Log belief = weights times log belief + bias, up to normalization.
    Dirichlet {
        /// The weights: a row for each category.
        weights: Vec<Vec<f64>>,
        /// The bias of each category.
        bias: Vec<f64>,
    },
    /// The matrix times the belief.
    Confusion {
        /// Counts or probabilities. Rows are true categories, and columns are the classifier's categories. Columns
        /// are divided by their sums.
        matrix: Vec<Vec<f64>>,
    },
}

/// A formula or a noisy-or, and the probability that it holds.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "Rule")]
#[schemars(extend("oneOf" = [{"required": ["formula"]}, {"required": ["noisy_or"]}]))]
pub(super) struct RuleEntry<'a> {
    /// The name, unique among the rules.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    #[schemars(with = "String", length(min = 1))]
    pub(super) name: Option<Cow<'a, str>>,
    /// The probability that the rule holds.
    #[schemars(range(min = 0, max = 1))]
    pub(super) probability: f64,
    /// Whether learning leaves the rule unchanged, even if all other rules are replaced; false if absent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) fixed: bool,
    /// A formula in the rule language, such as `high & standing -> overhead`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    #[schemars(with = "String")]
    pub(super) formula: Option<String>,
    /// The categories that may make a noisy-or rule true.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present_objects")]
    #[schemars(with = "Vec<InhibitionEntry<'_>>", length(min = 1))]
    pub(super) noisy_or: Option<Vec<InhibitionEntry<'a>>>,
    /// How the rule was learned, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present_object")]
    #[schemars(with = "LearnedEntry")]
    pub(super) learned: Option<LearnedEntry>,
}

/// The evidence for a learned rule in the training rows. Known rows are those in which the condition of the rule holds
/// and all its labels are known. Numbers are rounded to four significant digits, and from 1000 to whole numbers.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "Learned")]
pub(super) struct LearnedEntry {
    /// Log-likelihood of the training rows, in nats, that is lost if the rule is removed and the others are refitted.
    #[schemars(range(min = 0))]
    pub(super) gain: f64,
    /// Weight of the known rows that break the rule, at most `known`.
    #[schemars(range(min = 0))]
    pub(super) broken: f64,
    /// Weight of the known rows.
    #[schemars(range(min = 0))]
    pub(super) known: f64,
    /// Weight of the known rows that break the rule, as the model without the rule expects it.
    #[schemars(range(min = 0))]
    pub(super) expected: f64,
    /// Whether the gain exceeds the price of the rule at parsimony 1.
    pub(super) sure: bool,
}

/// A category for every label, and the weight that this assignment has in addition.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "Combination")]
pub(super) struct CombinationEntry {
    /// The weight w. The weight of the assignment is multiplied by 1 + w.
    #[schemars(range(min = 0))]
    pub(super) weight: f64,
    /// The categories in the rule language, such as `walking, gait, alarm`. Yes/no labels that are not named are
    /// `no`. If all labels are, the text is `none`.
    pub(super) categories: String,
}

/// One category of a noisy-or.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "Inhibition")]
pub(super) struct InhibitionEntry<'a> {
    /// The label.
    pub(super) label: Cow<'a, str>,
    /// Its category.
    pub(super) category: Cow<'a, str>,
    /// The probability that the category does not make the rule true when it is present.
    #[schemars(range(min = 0, max = 1))]
    pub(super) inhibition: f64,
}

/// A structure that is read from an object only. A derived `Deserialize` also accepts an array of the fields.
pub(super) struct Object<T>(pub(super) T);

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

/// Reads a field that may be absent. `null` is an error unless the type accepts it.
fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}
