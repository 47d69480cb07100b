//! The most probable assignments by branch and bound, with a proof of optimality.

mod bound;
mod budget;
mod cost;
mod local;
mod search;

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rayon::prelude::*;

use super::account::{Account, Pool};
use super::factor::Factors;
use super::limits::{FREE_MEMORY, Limits};
use super::loopy::{Loopy, LoopySettings};
use super::typical::Typical;
use crate::assignment::Assignment;
use crate::belief::{BeliefMatrix, Instance, check_same_labels};
use crate::error::Result;
use crate::logic::Possible;
use crate::model::Model;
use crate::posterior::{Engine, MostProbable, RankedAssignments, SearchEnd};
use bound::Bound;
use budget::Budget;
use cost::Costs;
use search::{Guess, cheapest};

/// Limits on the search for one row's most probable assignments.
///
/// By default only work is limited, not time. So the same model and row get the same answer on every machine.
///
/// ```
/// use std::time::Duration;
///
/// use prsl::infer::SearchLimits;
///
/// assert_eq!(SearchLimits::default().time, None);
/// let hour = SearchLimits::within(Duration::from_secs(3600));
/// assert_eq!((hour.work, hour.time), (u64::MAX, Some(Duration::from_secs(3600))));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchLimits {
    /// Maximum work. A unit is one number read from the tables of the rules and takes about a nanosecond. The first
    /// bound and the first solutions are computed even if they exceed it.
    pub work: u64,
    /// Time limit, if any. Answers that it cuts short may differ between runs, and have the status
    /// [`Status::TimeLimit`](crate::Status::TimeLimit).
    pub time: Option<Duration>,
}

impl Default for SearchLimits {
    /// 3 · 10⁹ units of work, which take at most ten seconds on one core, and no time limit.
    fn default() -> Self {
        Self { work: 3_000_000_000, time: None }
    }
}

impl SearchLimits {
    /// A time limit, with unlimited work. A limit of zero allows no work beyond the first solutions, so that the
    /// answer does not depend on the clock.
    pub fn within(time: Duration) -> Self {
        if time.is_zero() {
            return Self { work: 0, time: None };
        }
        Self { work: u64::MAX, time: Some(time) }
    }
}

/// Maximum size of the trail of one row in bytes. The trail records changes, so that the search can undo them.
const MAX_TRAIL: u64 = 64 << 20;
/// The trail takes at most one part in `TRAIL_SHARE` of the memory limit.
const TRAIL_SHARE: u64 = 4;
/// One part in `LOOPY_SHARE` of the memory is set aside for loopy propagation, which provides first solutions.
const LOOPY_SHARE: u64 = 8;
/// Minimum size of the trail in bytes, for any memory limit.
const MIN_TRAIL: u64 = 1 << 20;

/// Finds most probable assignments with a proof of optimality, for models of any treewidth.
///
/// The cost of an assignment is −ln of its weight. Moving costs between rules and labels raises a lower bound on the
/// cost of all unexplored assignments. If the bound does not prove optimality, the search branches. A stopped search
/// returns the best assignment so far and the gap to the bound.
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
    factors: Arc<Factors>,
    /// Provides a first assignment. Compiled when a row first needs it; `None` if that is too costly.
    loopy: OnceLock<Option<(Loopy, Pool<()>)>>,
    /// Memory that is set aside for it. Its pool limits the number of rows that propagate at the same time.
    loopy_account: Arc<Account>,
    typical: Typical,
    limits: SearchLimits,
    /// Maximum number of values in the trail of one row.
    trail: usize,
    /// Limits the number of rows searched at the same time to those that fit the memory.
    seats: Pool<()>,
}

impl fmt::Debug for BranchAndBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BranchAndBound").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl BranchAndBound {
    /// Compiles with the default limits.
    pub fn compile(model: &Model) -> Result<Self> {
        Self::compile_with(model, SearchLimits::default())
    }

    /// Compiles with these limits on the search for each row, and the default memory limit.
    pub fn compile_with(model: &Model, search: SearchLimits) -> Result<Self> {
        Self::compile_within(model, Limits::default(), search)
    }

    /// Compiles with these limits on the search for each row. Returns an error with the memory needed if it exceeds
    /// the limit.
    ///
    /// Models that need less than 16 MiB are always compiled.
    pub fn compile_within(model: &Model, limits: Limits, search: SearchLimits) -> Result<Self> {
        Self::new(model, &Arc::new(Factors::new(model)), &Account::new(limits.memory), search)
    }

    /// Compiles from the factors of the model's rules, with the memory that the account has left.
    pub(crate) fn new(
        model: &Model,
        factors: &Arc<Factors>,
        account: &Arc<Account>,
        search: SearchLimits,
    ) -> Result<Self> {
        let limits = Limits { memory: account.left() };
        let costs = Costs::new(model, factors, limits)?;
        let trail = (limits.memory / TRAIL_SHARE).clamp(MIN_TRAIL, MAX_TRAIL);
        let row = 8 * (2 * model.n_categories() + costs.n_messages) as u64 + trail;
        // Below the free memory a search is never refused, so it keeps nothing from other engines either.
        let is_limited = limits.memory as f64 > FREE_MEMORY;
        account.reserve(costs.bytes as u64, if is_limited { row } else { 0 });
        Ok(Self {
            costs,
            factors: Arc::clone(factors),
            loopy: OnceLock::new(),
            loopy_account: account.set_aside(LOOPY_SHARE),
            typical: Typical::new(model),
            limits: search,
            trail: trail as usize / size_of::<f64>(),
            seats: account.pool(row),
        })
    }

    /// The model that it was compiled from.
    pub fn model(&self) -> &Model {
        &self.costs.model
    }

    /// The limits on the search for one row.
    pub fn limits(&self) -> SearchLimits {
        self.limits
    }

    /// The most probable assignment of one instance. Ties are broken arbitrarily, but always in the same way.
    pub fn best(&self, instance: &impl Instance) -> Result<MostProbable> {
        let row = instance.values(self.model())?;
        self.top_row(&row, 1).best_or_error(self.model(), &row)
    }

    /// The `n` most probable assignments, best first. The list is shorter if fewer are possible or were found.
    pub fn top(&self, instance: &impl Instance, n: usize) -> Result<RankedAssignments> {
        Ok(self.top_row(&instance.values(self.model())?, n))
    }

    /// The most probable assignment of every row. It is `None` if the row is impossible, or if no possible assignment
    /// was found within the limits. [`Self::top_batch`] distinguishes the two.
    pub fn best_batch(&self, rows: &BeliefMatrix) -> Result<Vec<Option<MostProbable>>> {
        Ok(self.top_batch(rows, 1)?.into_iter().map(RankedAssignments::into_best).collect())
    }

    /// The `n` most probable assignments of every row.
    pub fn top_batch(&self, rows: &BeliefMatrix, n: usize) -> Result<Vec<RankedAssignments>> {
        check_same_labels(rows.model(), self.model())?;
        Ok((0..rows.n_rows()).into_par_iter().map(|row| self.top_row(rows.values_of(row), n)).collect())
    }

    pub(crate) fn top_row(&self, row: &[f64], n: usize) -> RankedAssignments {
        self.seats.with(|| (), |()| self.search(row, n))
    }

    fn search(&self, row: &[f64], n: usize) -> RankedAssignments {
        let budget = Budget::first(self.limits);
        let Some(mut bound) = Bound::new(&self.costs, row, budget).filter(|_| n > 0) else {
            return RankedAssignments::complete(Vec::new());
        };
        if n == 1 {
            bound.drop_dominated();
        }
        let (found, bound) = cheapest(bound, n, self.trail, &Guesser { engine: self, row });
        let end = if found.others < f64::INFINITY { bound.budget.end() } else { SearchEnd::Complete };
        let explain = |(cost, assignment): (f64, Vec<usize>)| MostProbable {
            log_weight: self.model().log_weight_of_rules(row, &assignment),
            assignment: Assignment::from_indices(assignment),
            gap: Some((cost - found.others).max(0.0)),
            engine: Engine::BranchAndBound,
        };
        let by_rules = found.assignments.into_iter().map(explain).collect();
        let best = self.typical.rerank(row, n, by_rules, Some(-found.others), Engine::BranchAndBound);
        RankedAssignments::new(best, end)
    }

    fn loopy(&self) -> Option<&(Loopy, Pool<()>)> {
        let compile = || {
            // A first solution need not be good, so there is no second run with more damping.
            let settings = LoopySettings { retry: false, ..LoopySettings::default() };
            let loopy = Loopy::new(&self.model().without_typical(), &self.factors, settings).ok()?;
            loopy.reserve(&self.loopy_account, 1).ok()?;
            let pool = self.loopy_account.pool(loopy.messages_bytes());
            Some((loopy, pool))
        };
        self.loopy.get_or_init(compile).as_ref()
    }
}

/// Provides first solutions for one row.
struct Guesser<'a> {
    engine: &'a BranchAndBound,
    row: &'a [f64],
}

/// Work charged for loopy propagation, per message of the rules.
const LOOPY_WORK: u64 = 200;
/// Work charged for encoding the rules for the SAT solver, per node of a rule.
const NODE_WORK: u64 = 200;
/// Work charged for the search of the SAT solver.
const SAT_WORK: u64 = 50_000_000;

impl Guess for Guesser<'_> {
    fn likely(&self, bound: &mut Bound<'_>) -> Option<Vec<usize>> {
        if bound.budget.is_spent() {
            return None;
        }
        bound.budget.spend(LOOPY_WORK * bound.costs.n_messages as u64);
        let (loopy, pool) = self.engine.loopy()?;
        pool.with(|| (), |()| loopy.guess(self.row))
    }

    fn possible(&self, bound: &mut Bound<'_>) -> Possible {
        bound.budget.spend(NODE_WORK * bound.costs.total_price() + SAT_WORK);
        Possible::of(self.engine.model(), self.row)
    }
}
