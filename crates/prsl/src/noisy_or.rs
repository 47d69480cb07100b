//! Noisy-or rules: each category may make the rule true, and may also fail to.

use crate::assignment::Assignment;
use crate::label::{CategoryId, LabelId};

/// The probability that a category does not make the rule true although it is present.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Inhibition {
    /// The label.
    pub label: LabelId,
    /// Its category.
    pub category: CategoryId,
    /// The inhibition probability q, from 0 (always fires) to 1 (never fires).
    pub probability: f64,
}

/// A noisy-or over categories: silent with probability Q = ∏ q, fired otherwise. Categories that are not named have q
/// = 1.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct NoisyOr {
    inhibitions: Vec<Inhibition>,
}

impl NoisyOr {
    /// A noisy-or with these inhibitions, in this order.
    pub fn new(inhibitions: impl IntoIterator<Item = Inhibition>) -> Self {
        Self { inhibitions: inhibitions.into_iter().collect() }
    }

    /// The inhibitions, in the order given.
    pub fn inhibitions(&self) -> &[Inhibition] {
        &self.inhibitions
    }

    /// q of one category; 1 if it is not named.
    pub fn inhibition(&self, label: LabelId, category: CategoryId) -> f64 {
        let named = |i: &&Inhibition| i.label == label && i.category == category;
        self.inhibitions.iter().find(named).map_or(1.0, |i| i.probability)
    }

    /// The labels that it is about, each once, in order of appearance.
    pub fn scope(&self) -> Vec<LabelId> {
        let mut scope = Vec::new();
        let mut seen = std::collections::HashSet::new();
        for inhibition in &self.inhibitions {
            if seen.insert(inhibition.label) {
                scope.push(inhibition.label);
            }
        }
        scope
    }

    /// The probabilities that the rule is silent (Q = ∏ q) and that it has fired (1 − Q) under an assignment.
    ///
    /// 1 − Q is computed as a sum. The difference would lose its digits if every q is close to 1.
    pub fn outcome(&self, assignment: &Assignment) -> [f64; 2] {
        self.outcome_at(assignment.indices())
    }

    pub(crate) fn outcome_at(&self, assignment: &[usize]) -> [f64; 2] {
        let present = self.inhibitions.iter().filter(|i| assignment[i.label.index()] == i.category.index());
        present.fold([1.0, 0.0], |[silent, fired], i| {
            [silent * i.probability, fired + silent * (1.0 - i.probability)]
        })
    }

    /// ln Q, even if Q underflows; −∞ if a category with q = 0 is present.
    pub(crate) fn log_silence(&self, assignment: &[usize]) -> f64 {
        let present = self.inhibitions.iter().filter(|i| assignment[i.label.index()] == i.category.index());
        present.map(|i| i.probability.ln()).sum()
    }
}
