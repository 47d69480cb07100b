//! The most probable explanations by branch and bound, with proof.

mod bound;
mod cost;
mod local;
mod search;

use std::time::{Duration, Instant};

use rayon::prelude::*;

use super::enumeration::minimal_subset;
use super::loopy::{Loopy, LoopySettings};
use super::typical::Typical;
use crate::belief::BeliefMatrix;
use crate::error::{Error, Result};
use crate::evidence::Evidence;
use crate::model::Model;
use crate::posterior::{Engine, MostProbable};
use crate::rule::RuleId;
use bound::Bound;
use cost::Costs;
use search::{Budget, cheapest};

/// How long the search for one row's explanations may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchLimits {
    /// Nodes of the search tree.
    pub nodes: u64,
    /// Time on the clock.
    pub time: Duration,
}

impl Default for SearchLimits {
    /// Ten seconds, and as many nodes as that allows.
    fn default() -> Self {
        Self { nodes: u64::MAX, time: Duration::from_secs(10) }
    }
}

impl SearchLimits {
    /// So much time on the clock. No time at all is no node at all, so that the answer does not depend on the clock.
    pub fn within(time: Duration) -> Self {
        Self { nodes: if time.is_zero() { 0 } else { u64::MAX }, time }
    }
}

/// Most probable explanations with proof, for models of any width.
///
/// A lower bound on the cost (−ln weight) of everything not yet looked at is made tight by moving costs between rules and
/// labels; where it does not settle the matter, the search branches. It can be stopped at any time: the best
/// explanation so far is then returned with what is missing to the proof.
///
/// ```
/// use prsl::{BranchAndBound, Evidence, Model};
///
/// let model = Model::parse("label weather: sun, rain\nlabel ground: dry, wet\nrule 0.95: wet <- rain")?;
/// let engine = BranchAndBound::compile(&model)?;
/// let best = engine.best(&Evidence::new().belief("weather", [0.4, 0.6]).belief("ground", [0.7, 0.3]))?;
/// assert_eq!(best.assignment, [0, 0]); // sun and dry
/// assert!(best.is_optimal());
/// # Ok::<(), prsl::Error>(())
/// ```
pub struct BranchAndBound {
    costs: Costs,
    /// Guesses an explanation to begin with.
    loopy: Loopy,
    typical: Typical,
    limits: SearchLimits,
}

impl BranchAndBound {
    /// Compiles with the default limits.
    pub fn compile(model: &Model) -> Result<Self> {
        Self::compile_with(model, SearchLimits::default())
    }

    /// Compiles with these limits for every row.
    pub fn compile_with(model: &Model, limits: SearchLimits) -> Result<Self> {
        // A guess: not worth a second try.
        let settings = LoopySettings { max_sweeps: 5, retry: false, ..LoopySettings::default() };
        let loopy = Loopy::compile_with(&model.without_typical(), settings)?;
        Ok(Self { costs: Costs::new(model)?, loopy, typical: Typical::new(model), limits })
    }

    /// The model it was compiled from.
    pub fn model(&self) -> &Model {
        &self.costs.model
    }

    /// How long the search for one row may take.
    pub fn limits(&self) -> SearchLimits {
        self.limits
    }

    /// The most probable explanation of one instance; of several equally probable ones, one of them.
    pub fn best(&self, evidence: &Evidence) -> Result<MostProbable> {
        let row = self.model().row(evidence)?;
        self.best_row(&row).ok_or_else(|| {
            let rules = self.conflict(&row).into_iter().map(|rule| self.model().rule_name(rule)).collect();
            Error::Impossible { rules }
        })
    }

    /// The most probable explanation of a row of completed beliefs, `None` if it is impossible.
    ///
    /// Where the limits end the search before anything possible was found, the explanation has the weight 0 and an
    /// infinite gap.
    pub fn best_row(&self, row: &[f64]) -> Option<MostProbable> {
        self.top(row, 1).into_iter().next()
    }

    /// The most probable explanation of every row, `None` where the evidence is impossible.
    pub fn best_batch(&self, rows: &BeliefMatrix) -> Vec<Option<MostProbable>> {
        (0..rows.n_rows()).into_par_iter().map(|row| self.best_row(rows.row(row))).collect()
    }

    /// The `n` most probable explanations, best first; fewer if no more are possible.
    pub fn top(&self, row: &[f64], n: usize) -> Vec<MostProbable> {
        let limits = self.limits;
        let mut budget = Budget { nodes: limits.nodes, deadline: Instant::now().checked_add(limits.time) };
        let Some(mut bound) = Bound::new(&self.costs, row).filter(|_| n > 0) else { return Vec::new() };
        if n == 1 {
            bound.drop_dominated();
        }
        let guess = || self.loopy.best_row(row).map(|guess| guess.assignment);
        let found = cheapest(bound, n, guess, &mut budget);
        let explain = |(cost, assignment): (f64, Vec<usize>)| MostProbable {
            log_weight: self.model().log_weight_of_rules(row, &assignment),
            assignment,
            gap: Some((cost - found.others).max(0.0)),
            engine: Engine::BranchAndBound,
        };
        let by_rules = found.assignments.into_iter().map(explain).collect();
        let best = self.typical.rerank(row, n, by_rules, Some(-found.others), Engine::BranchAndBound);
        if best.is_empty() && found.others < f64::INFINITY { vec![self.nothing_found(row)] } else { best }
    }

    /// Any assignment, of which nothing is known.
    fn nothing_found(&self, row: &[f64]) -> MostProbable {
        let assignment = vec![0; self.model().labels().len()];
        MostProbable {
            log_weight: self.model().log_weight(row, &assignment),
            assignment,
            gap: Some(f64::INFINITY),
            engine: Engine::BranchAndBound,
        }
    }

    /// A smallest set of rules that together exclude everything that an impossible row allows.
    pub(crate) fn conflict(&self, row: &[f64]) -> Vec<RuleId> {
        let model = self.model().without_typical();
        minimal_subset(model.rule_ids().collect(), |kept| {
            let rest = model.edit().retain_rules(|rule| kept.contains(&rule)).build();
            let engine = rest.and_then(|model| Self::compile_with(&model, self.limits));
            engine.is_ok_and(|engine| engine.best_row(row).is_none())
        })
    }
}
