//! The most probable joint explanation, and the next best ones.

use super::junction_tree::network::Split;
use super::junction_tree::runner::{Aim, Answer, Compilation, Runner};
use super::junction_tree::{Cost, Limits};
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
        Ok(MaxProductTree { runner, typical })
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
    /// After Lawler: what is left when an explanation is taken out falls into one part per label, in which the
    /// labels before it agree with that explanation and it does not.
    pub fn top(&self, row: &[f64], n: usize) -> Vec<MostProbable> {
        self.with_combinations(row, n, self.top_by_rules(row, n))
    }

    fn top_by_rules(&self, row: &[f64], n: usize) -> Vec<MostProbable> {
        let mut found: Vec<MostProbable> = Vec::new();
        // Each part: how many labels are settled, the row that describes it, and its best explanation.
        let mut parts: Vec<(usize, Vec<f64>, MostProbable)> =
            self.best_by_rules(row).map(|best| (0, row.to_vec(), best)).into_iter().collect();
        while found.len() < n {
            let better = |a: &usize, b: &usize| {
                parts[*a].2.log_weight.total_cmp(&parts[*b].2.log_weight).then(b.cmp(a))
            };
            let Some(next) = (0..parts.len()).max_by(better) else { break };
            let (settled, mut part, best) = parts.swap_remove(next);
            if found.len() + 1 == n {
                found.push(best);
                break; // nobody asks for what is left
            }
            for label in settled..self.model().labels().len() {
                let block = self.model().block(LabelId::new(label));
                let chosen = block.start + best.assignment[label];
                let mut other = part.clone();
                other[chosen] = 0.0;
                if let Some(best) = self.best_by_rules(&other) {
                    parts.push((label, other, best));
                }
                let belief = part[chosen];
                part[block].fill(0.0);
                part[chosen] = belief;
            }
            found.push(best);
        }
        found
    }

    /// How many sweeps the `n` most probable explanations of a row take at most, ties aside.
    pub(crate) fn sweeps(n_labels: usize, n: usize) -> f64 {
        1.0 + (n.saturating_sub(1) as f64) * n_labels as f64
    }

    /// The assignment behind the best weights: each label's best category, where there is no tie. A tied label is
    /// held at its first best category, and the rest is asked again.
    fn decode(&self, row: &[f64], answer: Answer) -> Option<MostProbable> {
        let mut row_left = row.to_vec();
        let mut answer = answer;
        loop {
            if answer.log_total == f64::NEG_INFINITY {
                return None;
            }
            let mut tied = None;
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
                if tied.is_none() && (0..masses.len()).any(near) {
                    tied = Some((label, best));
                }
                assignment.push(best);
            }
            let Some((label, best)) = tied else {
                let log_weight = self.model().log_weight_of_rules(row, &assignment);
                return Some(MostProbable::proven(assignment, log_weight, Engine::JunctionTree));
            };
            let block = self.model().block(label);
            let belief = row_left[block.start + best];
            row_left[block.clone()].fill(0.0);
            row_left[block.start + best] = belief;
            answer = self.runner.one(&row_left);
        }
    }
}
