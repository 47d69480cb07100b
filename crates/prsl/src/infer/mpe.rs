//! The most probable joint explanation, and the next best ones.

use std::collections::{BinaryHeap, HashSet};

use super::junction_tree::network::Split;
use super::junction_tree::runner::{Aim, Answer, Compilation, Runner};
use super::junction_tree::{Cost, Limits};
use super::ordered::Ordered;
use super::outcome::SMALLEST;
use super::semiring::MaxProduct;
use super::typical::Typical;
use crate::belief::BeliefMatrix;
use crate::error::{Error, Result};
use crate::evidence::Evidence;
use crate::label::LabelId;
use crate::model::Model;
use crate::posterior::{Engine, MostProbable};

/// Exact joint explanations by a junction tree that takes maxima in place of sums.
///
/// ```
/// use prsl::{Evidence, MaxProductTree, Model};
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
    /// For each label the part of the model it belongs to.
    part_of_label: Vec<usize>,
}

/// A plan for [`MaxProductTree`], whose cost is known and whose tables are not laid out yet.
pub(crate) struct MaxProductPlan {
    compilation: Compilation,
}

impl MaxProductPlan {
    pub(crate) fn new(model: &Model, limits: Limits) -> Result<Self> {
        Ok(Self { compilation: Compilation::new(model, Aim::Maximum, Split::Or, limits)? })
    }

    pub(crate) fn cost(&self) -> Cost {
        self.compilation.cost()
    }

    pub(crate) fn tree(&self) -> Result<MaxProductTree> {
        let runner: Runner<MaxProduct> = self.compilation.runner_alone()?;
        let typical = Typical::new(&runner.model);
        let part_of_label = independent_parts(&runner.model);
        Ok(MaxProductTree { runner, typical, part_of_label })
    }
}

/// Two weights this close are a tie as far as rounding can tell.
const TIE: f64 = 1e-9;

impl MaxProductTree {
    /// Compiles within the default limits.
    pub fn compile(model: &Model) -> Result<Self> {
        Self::compile_within(model, Limits::default())
    }

    /// Compiles, or says what it would take if that is more than the limits allow.
    pub fn compile_within(model: &Model, limits: Limits) -> Result<Self> {
        MaxProductPlan::new(model, limits)?.tree()
    }

    /// The model it was compiled from.
    pub fn model(&self) -> &Model {
        &self.runner.model
    }

    /// What the plan takes.
    pub fn cost(&self) -> Cost {
        self.runner.cost()
    }

    /// The most probable explanation of one instance; of several equally probable ones, one of them.
    pub fn best(&self, evidence: &Evidence) -> Result<MostProbable> {
        let row = self.model().row(evidence)?;
        self.best_row(&row).ok_or_else(|| Error::Impossible {
            rules: self.runner.conflict(&row).into_iter().map(|rule| self.model().rule_name(rule)).collect(),
        })
    }

    /// The most probable explanation of a row of completed beliefs, `None` if it is impossible.
    pub fn best_row(&self, row: &[f64]) -> Option<MostProbable> {
        let best = self.best_by_rules(row)?;
        self.with_combinations(row, 1, vec![best]).pop()
    }

    /// The same without combinations.
    fn best_by_rules(&self, row: &[f64]) -> Option<MostProbable> {
        let answer = self.runner.one(row);
        self.decode(row, answer)
    }

    /// The `n` best explanations, given those without combinations, none of them if nothing is possible.
    fn with_combinations(&self, row: &[f64], n: usize, found: Vec<MostProbable>) -> Vec<MostProbable> {
        let bound = Some(f64::NEG_INFINITY); // what is not listed weighs less than what is
        self.typical.rerank(row, n, found, bound, Engine::JunctionTree)
    }

    /// The most probable explanation of every row, `None` where the evidence is impossible.
    pub fn best_batch(&self, rows: &BeliefMatrix) -> Vec<Option<MostProbable>> {
        let best = |row: &[f64], answer: Answer| {
            let best = self.decode(row, answer)?;
            self.with_combinations(row, 1, vec![best]).pop()
        };
        self.runner.batch(rows, best)
    }

    /// The `n` most probable explanations, best first; fewer if no more are possible.
    ///
    /// After Yanover and Weiss (2003): the masses of a sweep tell the second best explanation of a part of all
    /// assignments, see (1). Taking it out splits the part in two, so each explanation takes about two sweeps.
    ///
    /// ```text
    /// second best weight  =  max { mass of category c of label l : c is not that of the best }            (1)
    /// ```
    ///
    /// For whatever is not the best differs from it somewhere, and a mass is the largest weight with its category.
    pub fn top(&self, row: &[f64], n: usize) -> Vec<MostProbable> {
        self.with_combinations(row, n, self.top_by_rules(row, n))
    }

    fn top_by_rules(&self, row: &[f64], n: usize) -> Vec<MostProbable> {
        let mut found: Vec<MostProbable> = Vec::new();
        let mut parts: Vec<Part> = Vec::new();
        // The second best of every part.
        let mut heap: BinaryHeap<(Ordered, std::cmp::Reverse<usize>, Choice)> = BinaryHeap::new();
        let mut open = vec![Part { parent: None, best: None }];
        loop {
            for mut part in open.drain(..) {
                let restricted = part.row(&parts, row, self.model());
                let answer = self.runner.one(&restricted);
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
                    break; // nobody asks for what is left
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
            // With the choice it is another explanation, without it the same.
            let best = parts[parent].best;
            open.push(Part { parent: Some((parent, choice, true)), best: None });
            open.push(Part { parent: Some((parent, choice, false)), best });
        }
        // Masses are rounded, and may be in another order than the weights themselves.
        found.sort_by(|a, b| b.log_weight.total_cmp(&a.log_weight));
        found
    }

    /// The ln weight of the second best explanation of a restricted row, and a choice of it that is not of the best.
    fn second(&self, row: &[f64], masses: &[f64], best: &MostProbable) -> Option<(f64, Choice)> {
        // Tiny masses have lost digits, or are any possible mass that is too small for a number.
        let log_masses = match masses.iter().any(|&mass| mass > 0.0 && mass < SMALLEST) {
            true => self.runner.log_masses(row),
            false => masses.iter().map(|mass| mass.ln()).collect(),
        };
        self.second_of(&log_masses, best)
    }

    fn second_of(&self, log_masses: &[f64], best: &MostProbable) -> Option<(f64, Choice)> {
        let mut second: Option<(f64, Choice)> = None;
        for (label, &chosen) in self.model().label_ids().zip(&best.assignment) {
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

    /// How many sweeps the `n` most probable explanations of a row take at most, ties aside.
    pub(crate) fn sweeps(n: usize) -> f64 {
        2.0 * n as f64 - 1.0
    }

    /// The assignment behind the best weights: each label's best category, where there is no tie. Of the tied labels of
    /// each independent part of the model one is held at its first best category, and the rest is asked again.
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
                // A tie that no rule can tell is nobody else's concern: the first will do.
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

/// A label's category.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Choice {
    label: LabelId,
    category: usize,
}

/// Some of all assignments: those of another part that make a choice, or those that do not.
struct Part {
    parent: Option<(usize, Choice, bool)>,
    /// The place of its best explanation among those found, once it is known.
    best: Option<usize>,
}

impl Part {
    /// The row with only those categories left that the part allows.
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

/// Leaves a label one category.
fn hold(beliefs: &mut [f64], category: usize) {
    let belief = beliefs[category];
    beliefs.fill(0.0);
    beliefs[category] = belief;
}

/// For each label the part of the model it belongs to: no rule ties labels of two parts together.
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
