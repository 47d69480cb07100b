//! Parts of a model under construction, whose names are looked up when all labels are known.

use super::{Model, transfer};
use crate::combination::Combination;
use crate::error::Result;
use crate::expectation::Expectation;
use crate::names::Names;
use crate::noisy_or::{Inhibition, NoisyOr};
use crate::rule::{Body, LearnedNote, Rule};
use crate::syntax;

/// A rule before its names are looked up.
#[derive(Clone, Debug)]
pub(super) enum Draft {
    /// The text of a formula, which is read when all labels are known.
    Text { name: Option<String>, probability: f64, formula: String, learned: Option<LearnedNote> },
    /// A noisy-or by names.
    NoisyOr {
        name: Option<String>,
        probability: f64,
        inhibitions: Vec<(String, String, f64)>,
        learned: Option<LearnedNote>,
    },
    /// A rule with the ids of another model.
    Rule(Rule, Model),
    /// A rule with the ids of the model that is built.
    Ids(Rule),
}

/// Typical combinations before their names are looked up.
#[derive(Clone, Debug)]
pub(super) enum CombinationDraft {
    /// The text of a combination, which is read when all labels are known, and its weight.
    Text(String, f64),
    /// Combinations with the ids of another model.
    Values(Vec<Combination>, Model),
    /// A combination with the ids of the model that is built.
    Ids(Combination),
}

/// An expectation before its names are looked up.
#[derive(Clone, Debug)]
pub(super) enum ExpectationDraft {
    /// The text, which is read when all labels are known.
    Text(String),
    /// An expectation with the ids of another model.
    Value(Expectation, Model),
}

impl Draft {
    /// The name of the rule.
    pub(super) fn name(&self) -> Option<&str> {
        match self {
            Draft::Text { name, .. } | Draft::NoisyOr { name, .. } => name.as_deref(),
            Draft::Rule(rule, _) | Draft::Ids(rule) => rule.name(),
        }
    }

    /// Sets the note about how the rule was learned.
    pub(super) fn set_learned(&mut self, note: Option<LearnedNote>) {
        match self {
            Draft::Text { learned, .. } | Draft::NoisyOr { learned, .. } => *learned = note,
            Draft::Rule(rule, _) | Draft::Ids(rule) => *rule = rule.clone().with_learned(note),
        }
    }

    /// Sets the probability. If it differs, the note about how the rule was learned is removed.
    pub(super) fn set_probability(&mut self, value: f64) {
        match self {
            Draft::Text { probability, learned, .. } | Draft::NoisyOr { probability, learned, .. } => {
                *learned = learned.take().filter(|_| value == *probability);
                *probability = value;
            }
            Draft::Rule(rule, _) | Draft::Ids(rule) => *rule = rule.clone().with_probability(value),
        }
    }

    /// Looks the names up.
    pub(super) fn resolve(self, names: &Names) -> Result<Rule> {
        let rename = |rule: Rule, name: Option<String>| match name {
            Some(name) => rule.named(name),
            None => rule,
        };
        match self {
            Draft::Text { name, probability, formula, learned } => {
                let formula = syntax::formula(&formula, names)?;
                Ok(rename(Rule::new(probability, Body::Formula(formula)), name).with_learned(learned))
            }
            Draft::NoisyOr { name, probability, inhibitions, learned } => {
                let inhibitions = inhibitions
                    .into_iter()
                    .map(|(label, category, probability)| {
                        let (label, category) = names.find(&label, &category, &String::new)?;
                        Ok(Inhibition { label, category, probability })
                    })
                    .collect::<Result<Vec<_>>>()?;
                let body = Body::NoisyOr(NoisyOr::new(inhibitions));
                Ok(rename(Rule::new(probability, body), name).with_learned(learned))
            }
            Draft::Ids(rule) => Ok(rule),
            Draft::Rule(rule, origin) => transfer::rule(rule, origin.names(), names),
        }
    }
}

impl CombinationDraft {
    /// Looks the names up.
    pub(super) fn resolve(self, names: &Names) -> Result<Vec<Combination>> {
        match self {
            CombinationDraft::Text(text, weight) => {
                Ok(vec![Combination::new(weight, syntax::combination(&text, names)?)])
            }
            CombinationDraft::Values(list, origin) => transfer::combinations(list, origin.names(), names),
            CombinationDraft::Ids(combination) => Ok(vec![combination]),
        }
    }
}

impl ExpectationDraft {
    /// Looks the names up.
    pub(super) fn resolve(self, names: &Names) -> Result<Expectation> {
        match self {
            ExpectationDraft::Text(text) => syntax::expectation(&text, names),
            ExpectationDraft::Value(expectation, origin) => {
                transfer::expectation(expectation, origin.names(), names)
            }
        }
    }
}
