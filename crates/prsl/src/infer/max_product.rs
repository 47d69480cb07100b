//! The most probable assignments by max-product on a junction tree.

use std::collections::{BinaryHeap, HashSet};
use std::fmt;
use std::sync::Arc;

use super::junction_tree::network::Split;
use super::junction_tree::runner::{Answer, Compilation, Runner};
use rayon::prelude::*;

use super::account::Account;
use super::factor::Factors;
use super::limits::{Cost, Limits};
use super::ordered::Ordered;
use super::outcome::SMALLEST;
use super::semiring::{Aim, MaxProduct};
use super::typical::Typical;
use crate::belief::{BeliefMatrix, Instance, check_same_labels};
use crate::error::Result;
use crate::label::LabelId;
use crate::logic::impossible;
use crate::model::Model;
use crate::posterior::{Engine, MostProbable, RankedAssignments};

/// Exact most probable assignments by a junction tree with maxima instead of sums.
///
/// ```
/// use prsl::infer::MaxProductTree;
/// use prsl::{Evidence, Model};
///
/// let model = Model::parse("label weather: sun, rain\nlabel ground: dry, wet\nrule 0.95: wet <- rain")?;
/// let engine = MaxProductTree::compile(&model)?;
/// let best = engine.best(&Evidence::new().belief("weather", [0.4, 0.6]).belief("ground", [0.7, 0.3]))?;
/// assert_eq!(best.assignment, [0, 0]); // sun and dry
/// assert!((best.log_weight.exp() - 0.4 * 0.7 * 0.95).abs() < 1e-12);
/// # Ok::<(), prsl::Error>(())
/// ```
pub struct MaxProductTree {
    runner: Runner<MaxProduct>,
    typical: Typical,
    /// For each label, the index of its independent part of the model.
    part_of_label: Vec<usize>,
}

/// A plan for [`MaxProductTree`], with known cost and without tables.
pub(crate) struct MaxProductPlan {
    compilation: Compilation,
}

impl fmt::Debug for MaxProductPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MaxProductPlan").field("cost", &self.cost()).finish_non_exhaustive()
    }
}

impl MaxProductPlan {
    pub(crate) fn new(factors: &Arc<Factors>, limits: Limits) -> Result<Self> {
        Ok(Self { compilation: Compilation::new(factors, Aim::Maximum, Split::Or, limits)? })
    }

    pub(crate) fn cost(&self) -> Cost {
        self.compilation.cost()
    }

    /// Lays out the tables. Returns an error with the cost if they do not fit the account.
    pub(crate) fn tree(&self, account: &Arc<Account>) -> Result<MaxProductTree> {
        let runner: Runner<MaxProduct> = self.compilation.runner(account)?;
        let typical = Typical::new(&runner.model);
        let part_of_label = independent_parts(&runner.model);
        Ok(MaxProductTree { runner, typical, part_of_label })
    }
}

/// Relative difference up to which two weights are tied. It is larger than rounding errors.
const TIE: f64 = 1e-9;

impl fmt::Debug for MaxProductTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MaxProductTree").field("cost", &self.cost()).finish_non_exhaustive()
    }
}

impl MaxProductTree {
    /// Compiles within the default limits.
    pub fn compile(model: &Model) -> Result<Self> {
        Self::compile_within(model, Limits::default())
    }

    /// Compiles within these limits. Returns an error with the cost if it exceeds them.
    pub fn compile_within(model: &Model, limits: Limits) -> Result<Self> {
        MaxProductPlan::new(&Arc::new(Factors::new(model)), limits)?.tree(&Account::new(limits.memory))
    }

    /// The model that it was compiled from.
    pub fn model(&self) -> &Model {
        &self.runner.model
    }

    /// The cost of the plan.
    pub fn cost(&self) -> Cost {
        self.runner.cost()
    }

    /// The most probable assignment of one instance. Ties are broken arbitrarily, but always in the same way.
    pub fn best(&self, instance: &impl Instance) -> Result<MostProbable> {
        let row = instance.values(self.model())?;
        self.best_row(&row).ok_or_else(|| impossible(self.model(), &row))
    }

    /// The most probable assignment of a row of completed beliefs; `None` if the row is impossible.
    pub(crate) fn best_row(&self, row: &[f64]) -> Option<MostProbable> {
        let best = self.best_by_rules(row)?;
        self.with_combinations(row, 1, vec![best]).pop()
    }

    /// The same without typical combinations.
    fn best_by_rules(&self, row: &[f64]) -> Option<MostProbable> {
        let answer = self.runner.one(row);
        self.decode(row, answer)
    }

    /// The `n` best assignments, given those without combinations. The list is empty if no assignment is possible.
    fn with_combinations(&self, row: &[f64], n: usize, found: Vec<MostProbable>) -> Vec<MostProbable> {
        let bound = Some(f64::NEG_INFINITY); // assignments outside the list weigh less than those in it
        self.typical.rerank(row, n, found, bound, Engine::JunctionTree)
    }

    /// The most probable assignment of every row; `None` if the row is impossible.
    pub fn best_batch(&self, rows: &BeliefMatrix) -> Result<Vec<Option<MostProbable>>> {
        check_same_labels(rows.model(), self.model())?;
        let best = |row: &[f64], answer: Answer| {
            let best = self.decode(row, answer)?;
            self.with_combinations(row, 1, vec![best]).pop()
        };
        Ok(self.runner.batch(rows, best))
    }

    /// The `n` most probable assignments of every row.
    pub fn top_batch(&self, rows: &BeliefMatrix, n: usize) -> Result<Vec<RankedAssignments>> {
        if n == 1 {
            // Several rows run side by side.
            let complete =
                |best: Option<MostProbable>| RankedAssignments::complete(best.into_iter().collect());
            return Ok(self.best_batch(rows)?.into_iter().map(complete).collect());
        }
        check_same_labels(rows.model(), self.model())?;
        Ok((0..rows.n_rows()).into_par_iter().map(|row| self.top_row(rows.values_of(row), n)).collect())
    }

    /// The `n` most probable assignments, best first. The list is shorter if fewer are possible.
    ///
    /// After Yanover and Weiss (2003): the max-marginals ("masses") of a pass give the second best assignment of a
    /// set, see (1). Removing it splits the set in two, so each assignment takes about two passes.
    ///
    /// ```text
    /// second best weight  =  max { mass of category c of label l : c is not that of the best }            (1)
    /// ```
    ///
    /// Every other assignment differs from the best in some label, and a mass is the largest weight with its
    /// category.
    pub fn top(&self, instance: &impl Instance, n: usize) -> Result<RankedAssignments> {
        Ok(self.top_row(&instance.values(self.model())?, n))
    }

    pub(crate) fn top_row(&self, row: &[f64], n: usize) -> RankedAssignments {
        RankedAssignments::complete(self.with_combinations(row, n, self.top_by_rules(row, n)))
    }

    fn top_by_rules(&self, row: &[f64], n: usize) -> Vec<MostProbable> {
        self.ranked(row, n).0
    }

    /// The `n` best assignments by the rules, and the number of passes that they took, without those for ties.
    fn ranked(&self, row: &[f64], n: usize) -> (Vec<MostProbable>, usize) {
        let mut n_sweeps = 0;
        let mut found: Vec<MostProbable> = Vec::new();
        let mut parts: Vec<Part> = Vec::new();
        // The second best assignment of every set.
        let mut heap: BinaryHeap<(Ordered, std::cmp::Reverse<usize>, Choice)> = BinaryHeap::new();
        let mut open = vec![Part { parent: None, best: None }];
        loop {
            for mut part in open.drain(..) {
                let restricted = part.row(&parts, row, self.model());
                let answer = self.runner.one(&restricted);
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
                heap.extend(second.map(|(log_weight, choice)| {
                    (Ordered(log_weight), std::cmp::Reverse(parts.len()), choice)
                }));
                parts.push(part);
            }
            let Some((_, std::cmp::Reverse(parent), choice)) = heap.pop().filter(|_| found.len() < n) else {
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
            true => self.runner.log_masses(row),
            false => masses.iter().map(|mass| mass.ln()).collect(),
        };
        self.second_of(&log_masses, best)
    }

    fn second_of(&self, log_masses: &[f64], best: &MostProbable) -> Option<(f64, Choice)> {
        let mut second: Option<(f64, Choice)> = None;
        for (label, &chosen) in self.model().label_ids().zip(best.assignment.indices()) {
            let log_masses = &log_masses[self.model().block(label)];
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

    /// Maximum number of passes for the `n` most probable assignments of a row, without those for ties.
    pub(crate) fn sweeps(n: usize) -> f64 {
        2.0 * n as f64 - 1.0
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
            let mut assignment = Vec::with_capacity(self.model().labels().len());
            for label in self.model().label_ids() {
                let masses = &answer.masses[self.model().block(label)];
                let best = (0..masses.len())
                    .rev()
                    .max_by(|&a, &b| masses[a].total_cmp(&masses[b]))
                    .expect("two or more");
                // If no rule distinguishes tied categories, the first one is taken.
                let near = |other: usize| {
                    masses[other] >= masses[best] * (1.0 - TIE) && self.runner.tells_apart(label, best, other)
                };
                if (0..masses.len()).any(near) && parts.insert(self.part_of_label[label.index()]) {
                    tied.push((label, best));
                }
                assignment.push(best);
            }
            if tied.is_empty() {
                let log_weight = self.model().log_weight_of_rules(row, &assignment);
                return Some(MostProbable::proven(assignment, log_weight, Engine::JunctionTree));
            }
            for (label, best) in tied {
                hold(&mut row_left[self.model().block(label)], best);
            }
            answer = self.runner.one(&row_left);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Normalize;

    /// One pass for each label and assignment took minutes for thousands of assignments.
    #[test]
    fn the_work_for_the_next_best_grows_with_their_number_alone() {
        let text: String = (0..40).map(|label| format!("label l{label}\n")).collect();
        let model = Model::parse(&text).expect("a model");
        let belief = |label: usize| 0.5 + 0.49 * ((label * 7919 % 101) as f64 / 101.0);
        let cells: Vec<_> = (0..40).flat_map(|label| [Some(belief(label)), None]).collect();
        let mut rows = BeliefMatrix::new(&model);
        rows.push(&cells, Normalize::Never).expect("a row");
        let tree = MaxProductTree::compile(&model).expect("a small tree");
        for n in [1, 10, 5000] {
            let (found, n_sweeps) = tree.ranked(rows.values_of(0), n);
            assert_eq!(found.len(), n);
            assert!(n_sweeps as f64 <= MaxProductTree::sweeps(n), "{n_sweeps} sweeps for {n}");
        }
    }
}
