//! The most probable assignments by max-product on a junction tree.

use std::fmt;
use std::sync::Arc;

use super::junction_tree::compilation::Compilation;
use super::junction_tree::network::Split;
use super::junction_tree::runner::Runner;

use super::account::Account;
use super::factor::{Factors, States};
use super::limits::{Cost, Limits};
use super::ranking::{Answer, MaxMarginals, Ranking};
use super::semiring::{Aim, MaxProduct};
use crate::belief::{BeliefMatrix, Instance, check_same_labels};
use crate::error::Result;
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
    ranking: Ranking<Runner<MaxProduct>>,
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
        Ok(MaxProductTree { ranking: Ranking::new(self.compilation.runner(account)?) })
    }
}

impl MaxMarginals for Runner<MaxProduct> {
    fn model(&self) -> &Model {
        &self.model
    }

    fn states(&self) -> &States {
        self.states()
    }

    fn engine(&self) -> Engine {
        Engine::JunctionTree
    }

    fn one(&self, row: &[f64]) -> Answer {
        self.one(row)
    }

    fn log_masses(&self, row: &[f64]) -> Vec<f64> {
        self.log_masses(row)
    }

    fn batch<T: Send>(&self, rows: &BeliefMatrix, done: impl Fn(&[f64], Answer) -> T + Sync) -> Vec<T> {
        self.batch(rows, done)
    }
}

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
        &self.ranking.marginals.model
    }

    /// The cost of the plan.
    pub fn cost(&self) -> Cost {
        self.ranking.marginals.cost()
    }

    /// The most probable assignment of one instance. Ties are broken arbitrarily, but always in the same way.
    pub fn best(&self, instance: &impl Instance) -> Result<MostProbable> {
        let row = instance.values(self.model())?;
        self.best_row(&row).ok_or_else(|| impossible(self.model(), &row))
    }

    /// The most probable assignment of every row; `None` if the row is impossible.
    pub fn best_batch(&self, rows: &BeliefMatrix) -> Result<Vec<Option<MostProbable>>> {
        check_same_labels(rows.model(), self.model())?;
        Ok(self.ranking.best_batch(rows))
    }

    /// The `n` most probable assignments of every row.
    pub fn top_batch(&self, rows: &BeliefMatrix, n: usize) -> Result<Vec<RankedAssignments>> {
        check_same_labels(rows.model(), self.model())?;
        Ok(self.ranking.top_batch(rows, n))
    }

    /// The `n` most probable assignments, best first. The list is shorter if fewer are possible.
    pub fn top(&self, instance: &impl Instance, n: usize) -> Result<RankedAssignments> {
        Ok(self.top_row(&instance.values(self.model())?, n))
    }

    /// The most probable assignment of a row of completed beliefs; `None` if the row is impossible.
    pub(crate) fn best_row(&self, row: &[f64]) -> Option<MostProbable> {
        self.ranking.best_row(row)
    }

    pub(crate) fn top_row(&self, row: &[f64], n: usize) -> RankedAssignments {
        self.ranking.top_row(row, n)
    }

    /// Maximum number of passes for the `n` most probable assignments of a row, without those for ties.
    pub(crate) fn sweeps(n: usize) -> f64 {
        2.0 * n as f64 - 1.0
    }
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
            let (found, n_sweeps) = tree.ranking.ranked(rows.values_of(0), n);
            assert_eq!(found.len(), n);
            assert!(n_sweeps as f64 <= MaxProductTree::sweeps(n), "{n_sweeps} sweeps for {n}");
        }
    }
}
