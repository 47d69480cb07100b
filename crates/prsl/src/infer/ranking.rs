//! The n best assignments from max-marginals, for every engine that computes them.
//!
//! After Yanover and Weiss (2003): the max-marginals ("masses") of a pass give the second best assignment of a set, see
//! (1). Removing it splits the set in two, so each assignment takes about two passes.
//!
//! ```text
//! second best weight  =  max { mass of category c of label l : c is not that of the best }            (1)
//! ```
//!
//! Every other assignment differs from the best in some label, and a mass is the largest weight with its category.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};

use rayon::prelude::*;

use super::factor::States;
use super::ordered::Ordered;
use super::typical::Typical;
use crate::belief::BeliefMatrix;
use crate::label::LabelId;
use crate::model::Model;
use crate::outcome::SMALLEST;
use crate::posterior::{Engine, MostProbable, RankedAssignments};

/// The result of a sweep for one row.
pub(crate) struct Answer {
    /// The part of Z of every category (for maxima: the best weight with it), up to a factor per label.
    pub(crate) masses: Vec<f64>,
    /// ln Z, or the log weight of the best assignment.
    pub(crate) log_total: f64,
    /// The largest relative difference between sums that must be equal. It is 0 without signs.
    pub(crate) error: f64,
}

/// An engine for max-marginals: for each category, the largest weight of any assignment with it.
pub(crate) trait MaxMarginals: Sync {
    fn model(&self) -> &Model;
    fn states(&self) -> &States;
    /// The engine that answers name.
    fn engine(&self) -> Engine;
    /// The max-marginals of one row.
    fn one(&self, row: &[f64]) -> Answer;
    /// ln of the max-marginals of one row, for each label up to a constant: −∞ only for impossible categories.
    fn log_masses(&self, row: &[f64]) -> Vec<f64>;
    /// The max-marginals of all rows.
    fn batch<T: Send>(&self, rows: &BeliefMatrix, done: impl Fn(&[f64], Answer) -> T + Sync) -> Vec<T>;
}

/// Ranks the assignments of a model by their weights.
pub(crate) struct Ranking<M> {
    pub(crate) marginals: M,
    typical: Typical,
    /// For each label, the index of its independent part of the model.
    part_of_label: Vec<usize>,
}

/// Relative difference up to which two weights are tied. It is larger than rounding errors.
const TIE: f64 = 1e-9;

impl<M: MaxMarginals> Ranking<M> {
    pub(crate) fn new(marginals: M) -> Self {
        let typical = Typical::new(marginals.model());
        let part_of_label = independent_parts(marginals.model());
        Self { marginals, typical, part_of_label }
    }

    /// The most probable assignment of a row; `None` if the row is impossible.
    pub(crate) fn best_row(&self, row: &[f64]) -> Option<MostProbable> {
        let best = self.decode(row, self.marginals.one(row))?;
        self.with_combinations(row, 1, vec![best]).pop()
    }

    /// The most probable assignment of every row; `None` if the row is impossible.
    pub(crate) fn best_batch(&self, rows: &BeliefMatrix) -> Vec<Option<MostProbable>> {
        let best = |row: &[f64], answer: Answer| {
            let best = self.decode(row, answer)?;
            self.with_combinations(row, 1, vec![best]).pop()
        };
        self.marginals.batch(rows, best)
    }

    /// The `n` most probable assignments of every row.
    pub(crate) fn top_batch(&self, rows: &BeliefMatrix, n: usize) -> Vec<RankedAssignments> {
        if n == 1 {
            // Several rows run side by side.
            let complete =
                |best: Option<MostProbable>| RankedAssignments::complete(best.into_iter().collect());
            return self.best_batch(rows).into_iter().map(complete).collect();
        }
        (0..rows.n_rows()).into_par_iter().map(|row| self.top_row(rows.values_of(row), n)).collect()
    }

    pub(crate) fn top_row(&self, row: &[f64], n: usize) -> RankedAssignments {
        RankedAssignments::complete(self.with_combinations(row, n, self.ranked(row, n).0))
    }

    /// The `n` best assignments, given those without combinations. The list is empty if no assignment is possible.
    fn with_combinations(&self, row: &[f64], n: usize, found: Vec<MostProbable>) -> Vec<MostProbable> {
        let bound = Some(f64::NEG_INFINITY); // assignments outside the list weigh less than those in it
        self.typical.rerank(row, n, found, bound, self.marginals.engine())
    }

    /// The `n` best assignments by the rules, and the number of passes that they took, without those for ties.
    pub(crate) fn ranked(&self, row: &[f64], n: usize) -> (Vec<MostProbable>, usize) {
        let mut n_sweeps = 0;
        let mut found: Vec<MostProbable> = Vec::new();
        let mut parts: Vec<Part> = Vec::new();
        // The second best assignment of every set.
        let mut heap: BinaryHeap<(Ordered, Reverse<usize>, Choice)> = BinaryHeap::new();
        let mut open = vec![Part { parent: None, best: None }];
        loop {
            for mut part in open.drain(..) {
                let restricted = part.row(&parts, row, self.marginals.model());
                let answer = self.marginals.one(&restricted);
                n_sweeps += 1;
                let masses = answer.masses.clone();
                let best = match part.best {
                    Some(best) => best,
                    None => {
                        let Some(best) = self.decode(&restricted, answer) else { continue };
                        found.push(best);
                        found.len() - 1
                    }
                };
                part.best = Some(best);
                if found.len() == n {
                    break; // the list is complete
                }
                let second = self.second(&restricted, &masses, &found[best]);
                heap.extend(
                    second.map(|(log_weight, choice)| (Ordered(log_weight), Reverse(parts.len()), choice)),
                );
                parts.push(part);
            }
            let Some((_, Reverse(parent), choice)) = heap.pop().filter(|_| found.len() < n) else {
                break;
            };
            // With the choice, the set's best assignment is new. Without it, it stays the same.
            let best = parts[parent].best;
            open.push(Part { parent: Some((parent, choice, true)), best: None });
            open.push(Part { parent: Some((parent, choice, false)), best });
        }
        // Masses are rounded, so their order may differ from that of the weights.
        found.sort_by(|a, b| b.log_weight.total_cmp(&a.log_weight));
        (found, n_sweeps)
    }

    /// The log weight of the second best assignment of a restricted row, and a choice in which it differs from the
    /// best.
    fn second(&self, row: &[f64], masses: &[f64], best: &MostProbable) -> Option<(f64, Choice)> {
        // Tiny masses have lost digits, or replace a mass that underflowed.
        let log_masses = match masses.iter().any(|&mass| mass > 0.0 && mass < SMALLEST) {
            true => self.marginals.log_masses(row),
            false => masses.iter().map(|mass| mass.ln()).collect(),
        };
        self.second_of(&log_masses, best)
    }

    fn second_of(&self, log_masses: &[f64], best: &MostProbable) -> Option<(f64, Choice)> {
        let mut second: Option<(f64, Choice)> = None;
        for (label, &chosen) in self.marginals.model().label_ids().zip(best.assignment.indices()) {
            let log_masses = &log_masses[self.marginals.model().block(label)];
            let largest = log_masses.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            for (category, log_mass) in log_masses.iter().enumerate().filter(|(other, _)| *other != chosen) {
                let log_weight = best.log_weight + (log_mass - largest);
                if log_weight > second.map_or(f64::NEG_INFINITY, |second| second.0) {
                    second = Some((log_weight, Choice { label, category }));
                }
            }
        }
        second
    }

    /// Whether some rule distinguishes two categories of a label.
    fn tells_apart(&self, label: LabelId, a: usize, b: usize) -> bool {
        let states = &self.marginals.states().of_category[label.index()];
        states[a] != states[b]
    }

    /// Decodes max-marginals: each label gets its best category, if there is no tie. In each independent part, one
    /// tied label is fixed at its first best category, and the pass is repeated.
    fn decode(&self, row: &[f64], answer: Answer) -> Option<MostProbable> {
        let mut row_left = row.to_vec();
        let mut answer = answer;
        loop {
            if answer.log_total == f64::NEG_INFINITY {
                return None;
            }
            let mut tied = Vec::new();
            let mut parts = HashSet::new();
            let mut assignment = Vec::with_capacity(self.marginals.model().labels().len());
            for label in self.marginals.model().label_ids() {
                let masses = &answer.masses[self.marginals.model().block(label)];
                let best = (0..masses.len())
                    .rev()
                    .max_by(|&a, &b| masses[a].total_cmp(&masses[b]))
                    .expect("two or more");
                // If no rule distinguishes tied categories, the first one is taken.
                let near = |other: usize| {
                    masses[other] >= masses[best] * (1.0 - TIE) && self.tells_apart(label, best, other)
                };
                if (0..masses.len()).any(near) && parts.insert(self.part_of_label[label.index()]) {
                    tied.push((label, best));
                }
                assignment.push(best);
            }
            if tied.is_empty() {
                let log_weight = self.marginals.model().log_weight_of_rules(row, &assignment);
                return Some(MostProbable::proven(assignment, log_weight, self.marginals.engine()));
            }
            for (label, best) in tied {
                hold(&mut row_left[self.marginals.model().block(label)], best);
            }
            answer = self.marginals.one(&row_left);
        }
    }
}

/// A category of a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Choice {
    label: LabelId,
    category: usize,
}

/// A set of assignments: those of the parent set that make a choice, or those that do not.
struct Part {
    parent: Option<(usize, Choice, bool)>,
    /// The index of its best assignment in the list, once known.
    best: Option<usize>,
}

impl Part {
    /// The row restricted to the categories that the set allows.
    fn row(&self, parts: &[Part], row: &[f64], model: &Model) -> Vec<f64> {
        let mut row = row.to_vec();
        let mut at = self;
        while let Some((parent, Choice { label, category }, made)) = at.parent {
            let beliefs = &mut row[model.block(label)];
            if made {
                hold(beliefs, category);
            } else {
                beliefs[category] = 0.0;
            }
            at = &parts[parent];
        }
        row
    }
}

/// Excludes all other categories of a label.
fn hold(beliefs: &mut [f64], category: usize) {
    let belief = beliefs[category];
    beliefs.fill(0.0);
    beliefs[category] = belief;
}

/// For each label, the index of its independent part of the model. No rule connects labels of different parts.
fn independent_parts(model: &Model) -> Vec<usize> {
    let mut parents: Vec<usize> = (0..model.labels().len()).collect();
    fn root(parents: &mut [usize], mut label: usize) -> usize {
        while parents[label] != label {
            parents[label] = parents[parents[label]];
            label = parents[label];
        }
        label
    }
    for rule in model.rules() {
        let scope = rule.scope();
        for pair in scope.windows(2) {
            let (a, b) = (root(&mut parents, pair[0].index()), root(&mut parents, pair[1].index()));
            parents[a.max(b)] = a.min(b);
        }
    }
    (0..parents.len()).map(|label| root(&mut parents, label)).collect()
}
