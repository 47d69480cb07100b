//! Noisy-or rules: each category may make the rule true, each may fail to.

use crate::label::{CategoryId, LabelId};

/// The probability that one category, when present, fails to make the rule true.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Inhibition {
    /// The label.
    pub label: LabelId,
    /// Its category.
    pub category: CategoryId,
    /// The inhibition probability q, from 0 (always fires) to 1 (never fires).
    pub probability: f64,
}

/// A noisy-or over categories: silent with probability ∏ q, fired otherwise. Categories not named have q = 1.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct NoisyOr {
    inhibitions: Vec<Inhibition>,
}

impl NoisyOr {
    /// The noisy-or of these inhibitions, in the order given.
    pub fn new(inhibitions: impl IntoIterator<Item = Inhibition>) -> Self {
        Self { inhibitions: inhibitions.into_iter().collect() }
    }

    /// What was named, in the order given.
    pub fn inhibitions(&self) -> &[Inhibition] {
        &self.inhibitions
    }

    /// q of one category, 1 if it is not named.
    pub fn inhibition(&self, label: LabelId, category: CategoryId) -> f64 {
        let named = |i: &&Inhibition| i.label == label && i.category == category;
        self.inhibitions.iter().find(named).map_or(1.0, |i| i.probability)
    }

    /// The labels it speaks about, each once, in order of appearance.
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

    /// The probabilities that nothing fires (Q = ∏ q) and that something does (1 − Q) when label `l` takes the
    /// category `assignment[l]`.
    ///
    /// "Something fires" is summed up term by term, because 1 − Q would lose all its digits where every q is
    /// near 1.
    pub fn outcome(&self, assignment: &[usize]) -> [f64; 2] {
        let present = self.inhibitions.iter().filter(|i| assignment[i.label.index()] == i.category.index());
        present.fold([1.0, 0.0], |[silent, fired], i| {
            [silent * i.probability, fired + silent * (1.0 - i.probability)]
        })
    }

    /// ln Q, where Q itself may underflow; −∞ where a category that always fires is present.
    pub(crate) fn log_silence(&self, assignment: &[usize]) -> f64 {
        let present = self.inhibitions.iter().filter(|i| assignment[i.label.index()] == i.category.index());
        present.map(|i| i.probability.ln()).sum()
    }
}
