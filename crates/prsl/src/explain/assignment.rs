//! The most probable assignments in an explanation.

use serde::Serialize;

use crate::infer::AssignmentEngine;
use crate::label::CategoryId;
use crate::model::Model;
use crate::posterior::{MostProbable, Posterior};

/// A most probable assignment by names, with its probability.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct NamedAssignment {
    /// P(these categories | rules, evidence).
    pub probability: f64,
    /// ln of the product of its beliefs and rule weights, and of 1 + its weight as a typical combination.
    pub log_weight: f64,
    /// Whether it is proven that no other assignment is more probable. For the runner-up, the best one is excepted.
    pub proven: bool,
    /// Its weight as a typical combination, if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub typical: Option<f64>,
    /// The category of every label, in the model's order.
    pub choices: Vec<Choice>,
}

/// The category of one label.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct Choice {
    /// The label.
    pub label: String,
    /// Its category.
    pub category: String,
}

impl NamedAssignment {
    fn new(model: &Model, found: MostProbable, log_evidence: f64) -> Self {
        let choice = |(label, category): (&crate::Label, CategoryId)| Choice {
            label: label.name().to_owned(),
            category: label.category(category).to_owned(),
        };
        Self {
            probability: (found.log_weight - log_evidence).exp().min(1.0),
            log_weight: found.log_weight,
            proven: found.is_optimal(),
            typical: model.find_typical(&found.assignment).map(|place| model.typical()[place].weight()),
            choices: model.labels().iter().zip(found.assignment.categories()).map(choice).collect(),
        }
    }
}

/// The best and the second best assignment. A search that stopped before it found a possible one returns none.
pub(super) fn best_assignments(
    engine: &AssignmentEngine,
    row: &[f64],
    posterior: &Posterior,
) -> Vec<NamedAssignment> {
    let found = engine.top_row(row, 2).into_iter().filter(|found| found.log_weight.is_finite());
    found.map(|found| NamedAssignment::new(engine.model(), found, posterior.log_evidence)).collect()
}
