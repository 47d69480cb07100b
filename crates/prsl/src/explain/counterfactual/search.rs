//! The smallest changes of one label.

use std::cmp::Reverse;

use super::weights::ScaledWeights;
use super::{BeliefChange, CategoryBelief, LabelCounterfactual, ObservationChange, UnobservedChange, size};
use crate::belief::{BeliefMatrix, BeliefOrigin};
use crate::calibrator::{Calibrator, Direction};
use crate::label::{Label, LabelId};

/// The row whose answer is to change, and the target.
pub(super) struct Search<'a> {
    /// One row.
    pub row: &'a BeliefMatrix,
    /// The same before calibration, if it is known.
    pub raw: Option<&'a [f64]>,
    /// The marginals now; `None` if the row is impossible.
    pub now: Option<&'a [f64]>,
    pub label: LabelId,
    pub target: usize,
}

/// A threshold on the line of one category.
struct Threshold {
    category: usize,
    needed: f64,
    range: [f64; 2],
    direction: Direction,
}

impl Search<'_> {
    /// The changes of a label that make the target the most probable category; `None` if there are none.
    pub fn changes_of(&self, id: LabelId, weights: &ScaledWeights) -> Option<LabelCounterfactual> {
        let label = self.row.model().label(id);
        let before = self.row.belief(0, id);
        let origin = self.row.origin(0, id);
        let is_observed = origin == BeliefOrigin::Observed;
        let observed = before.iter().position(|&belief| belief == 1.0).filter(|_| is_observed);
        let belief = match label.classifier() {
            Some(_) if !is_observed => self.belief_change(id, weights),
            _ => None,
        };
        let unobserved = observed.and_then(|observed| unobserved(label, observed, weights));
        // To observe the target itself is no answer, unless it corrects another observation.
        let observations = match id == self.label && !is_observed {
            true => Vec::new(),
            false => self.observations(id, weights),
        };
        let distances = belief.iter().map(|change| change.distance);
        let distances = distances.chain(observations.iter().map(|change| change.distance));
        let distance = distances.chain(unobserved.iter().map(|change| change.distance)).reduce(f64::min)?;
        Some(LabelCounterfactual {
            label: label.name().to_owned(),
            origin,
            observed: observed.map(|category| label.categories()[category].clone()),
            distance,
            belief,
            observations,
            unobserved,
        })
    }

    /// The observations that suffice, by decreasing belief.
    fn observations(&self, id: LabelId, weights: &ScaledWeights) -> Vec<ObservationChange> {
        let model = self.row.model();
        let (label, before) = (model.label(id), self.row.belief(0, id));
        let chances = self.now.map(|now| &now[model.block(id)]);
        let observation = |category: usize| {
            Some(ObservationChange {
                category: label.categories()[category].clone(),
                distance: 1.0 - before[category],
                chance: chances.map(|chances| chances[category]),
                probability: weights.wins_if_observed(category)?,
            })
        };
        let mut found: Vec<ObservationChange> = (0..before.len()).filter_map(observation).collect();
        found.sort_by_key(|observation| size(observation.distance));
        found
    }

    /// The smallest change of the belief that suffices. For the target's own label, only the target's line counts.
    fn belief_change(&self, id: LabelId, weights: &ScaledWeights) -> Option<BeliefChange> {
        let label = self.row.model().label(id);
        let before = self.row.belief(0, id);
        let categories = match before.len() {
            2 => 0..1, // the line of the other category is the same
            _ if id == self.label => self.target..self.target + 1,
            n => 0..n,
        };
        let thresholds = categories.filter_map(|category| threshold(label, before, weights, category));
        // Of equal changes, an increase comes first.
        let key = |found: &Threshold| {
            (Reverse(size(found.needed - before[found.category])), found.direction == Direction::Up)
        };
        let smallest = thresholds.rev().max_by_key(key)?;
        Some(self.as_change(id, smallest))
    }

    /// The change to a threshold, with raw beliefs if there is a calibrator.
    fn as_change(&self, id: LabelId, found: Threshold) -> BeliefChange {
        let model = self.row.model();
        let (label, before) = (model.label(id), self.row.belief(0, id));
        let Threshold { mut category, mut needed, mut range, direction } = found;
        let distance = (needed - before[category]).abs();
        let calibrated = believed_at(before, category, needed);
        let is_calibrated = *label.calibrator() != Calibrator::Identity;
        let raw = match before.len() {
            _ if !is_calibrated => None,
            2 => label.calibrator().raw_of_two(needed, direction).map(|raw| vec![raw, 1.0 - raw]),
            _ => label.calibrator().raw_of_many(&calibrated),
        };
        // Of two categories other than yes and no, the one that rises is named.
        if before.len() == 2 && direction == Direction::Down && !label.is_binary() {
            category = 1 - category;
            needed = 1.0 - needed;
            range = [1.0 - range[1], 1.0 - range[0]];
        }
        let given = self.raw.filter(|_| is_calibrated && self.row.origin(0, id) == BeliefOrigin::Classifier);
        BeliefChange {
            category: label.categories()[category].clone(),
            before: before[category],
            needed,
            range,
            distance,
            calibrated: is_calibrated,
            given: given.map(|raw| raw[model.block(id)][category]),
            needed_given: raw.as_ref().map(|raw| raw[category]),
            belief: label.categories().iter().zip(raw.unwrap_or(calibrated)).map(named).collect(),
        }
    }
}

fn named((category, belief): (&String, f64)) -> CategoryBelief {
    CategoryBelief { category: category.clone(), belief }
}

/// The nearest threshold on the line of a category, if the target wins anywhere on the line.
fn threshold(label: &Label, before: &[f64], weights: &ScaledWeights, category: usize) -> Option<Threshold> {
    let others = believed_at(before, category, 0.0);
    if others.iter().sum::<f64>() == 0.0 {
        return None;
    }
    let range = weights.winning_interval(category, &others)?;
    let [mut low, mut high] = range;
    if before.len() == 2
        && let Some([least, most]) = label.calibrator().range_of_two()
    {
        // Beliefs that the calibrator never reaches do not count.
        (low, high) = (low.max(least), high.min(most));
    }
    if low > high {
        return None;
    }
    let now = before[category];
    let (needed, direction) = match now <= 0.5 * (low + high) {
        true => (low.max(now), Direction::Up),
        false => (high.min(now), Direction::Down),
    };
    Some(Threshold { category, needed, range, direction })
}

/// The belief with `value` in one category, where the others keep their proportions; all 0 if they have none.
fn believed_at(before: &[f64], category: usize, value: f64) -> Vec<f64> {
    let rest: f64 = (0..before.len()).filter(|&other| other != category).map(|other| before[other]).sum();
    let share = |other: usize| match before.len() {
        _ if other == category => value,
        2 => 1.0 - value,
        _ if rest > 0.0 => (1.0 - value) * (before[other] / rest),
        _ => 0.0,
    };
    (0..before.len()).map(share).collect()
}

/// The result of replacing an observation by the prior, if that suffices.
fn unobserved(label: &Label, observed: usize, weights: &ScaledWeights) -> Option<UnobservedChange> {
    let prior = label.prior_or_uniform();
    let probability = weights.wins_if_believed(&prior)?;
    Some(UnobservedChange { distance: 1.0 - prior[observed], probability })
}
