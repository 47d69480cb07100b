//! The most probable explanations by branch and bound, with proof.

mod bound;
mod budget;
mod cost;
mod local;
mod search;

use std::sync::OnceLock;
use std::time::Duration;

use rayon::prelude::*;

use super::junction_tree::Limits;
use super::junction_tree::account::{Account, Pool};
use super::loopy::{Loopy, LoopySettings};
use super::possible::Possible;
use super::typical::Typical;
use crate::belief::BeliefMatrix;
use crate::error::{Error, Result};
use crate::evidence::Evidence;
use crate::model::Model;
use crate::posterior::{Engine, MostProbable, RankedExplanations, SearchEnd};
use crate::rule::RuleId;
use bound::Bound;
use budget::Budget;
use cost::Costs;
use search::{Guess, cheapest};

/// What the search for one row's explanations may take.
///
/// By default work is counted and the clock is left alone, so that the same model and row get the same answer on every
/// machine.
///
/// ```
/// use std::time::Duration;
///
/// use prsl::SearchLimits;
///
/// assert_eq!(SearchLimits::default().time, None);
/// let hour = SearchLimits::within(Duration::from_secs(3600));
/// assert_eq!((hour.work, hour.time), (u64::MAX, Some(Duration::from_secs(3600))));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchLimits {
    /// Work, counted in numbers that are looked at in the tables of the rules: about a nanosecond each. The first bound
    /// and the first guesses are made even if they take more.
    pub work: u64,
    /// Time on the clock, if that is to end the search too. Answers that it cuts short may differ from run to run, and
    /// have the status [`Status::TimeLimit`](crate::Status::TimeLimit).
    pub time: Option<Duration>,
}

impl Default for SearchLimits {
    /// 3 · 10⁹ units of work, which take ten seconds or less on one core, and no limit on time.
    fn default() -> Self {
        Self { work: 3_000_000_000, time: None }
    }
}

impl SearchLimits {
    /// So much time on the clock, and as much work as that allows. No time at all is no work beyond the first guesses,
    /// so that the answer does not depend on the clock.
    pub fn within(time: Duration) -> Self {
        if time.is_zero() {
            return Self { work: 0, time: None };
        }
        Self { work: u64::MAX, time: Some(time) }
    }
}

/// The most that the search for one row keeps to go back to, in bytes, and the share of the memory limit that it may be.
const MAX_TRAIL: u64 = 64 << 20;
const TRAIL_SHARE: u64 = 4;
const MIN_TRAIL: u64 = 1 << 20;

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
    /// Guesses an explanation to begin with; compiled when a row first needs it, `None` if that is too costly.
    loopy: OnceLock<Option<Loopy>>,
    typical: Typical,
    limits: SearchLimits,
    /// The most values that the search for one row keeps to go back to.
    trail: usize,
    /// As many rows are searched at a time as fit the memory.
    seats: Pool<()>,
}

impl BranchAndBound {
    /// Compiles with the default limits.
    pub fn compile(model: &Model) -> Result<Self> {
        Self::compile_with(model, SearchLimits::default())
    }

    /// Compiles with these limits for every row, and the default limit on memory.
    pub fn compile_with(model: &Model, search: SearchLimits) -> Result<Self> {
        Self::compile_within(model, Limits::default(), search)
    }

    /// Compiles with these limits for every row, or says what it would take if that is more memory than is allowed.
    ///
    /// What takes less than 16 MiB is never refused.
    pub fn compile_within(model: &Model, limits: Limits, search: SearchLimits) -> Result<Self> {
        let costs = Costs::new(model, limits)?;
        let trail = (limits.memory / TRAIL_SHARE).clamp(MIN_TRAIL, MAX_TRAIL);
        let row = 8 * (2 * model.n_categories() + costs.n_messages) as u64 + trail;
        let account = Account::new(limits.memory);
        account.reserve(costs.bytes as u64);
        Ok(Self {
            costs,
            loopy: OnceLock::new(),
            typical: Typical::new(model),
            limits: search,
            trail: trail as usize / size_of::<f64>(),
            seats: account.pool(row),
        })
    }

    /// The model it was compiled from.
    pub fn model(&self) -> &Model {
        &self.costs.model
    }

    /// What the search for one row may take.
    pub fn limits(&self) -> SearchLimits {
        self.limits
    }

    /// The most probable explanation of one instance; of several equally probable ones, one of them.
    pub fn best(&self, evidence: &Evidence) -> Result<MostProbable> {
        let row = self.model().row(evidence)?;
        let found = self.top(&row, 1);
        let end = found.end();
        found.into_best().ok_or_else(|| match end {
            SearchEnd::Complete => {
                let rules = self.conflict(&row).into_iter().map(|rule| self.model().rule_name(rule));
                Error::Impossible { rules: rules.collect() }
            }
            _ => Error::NoExplanation,
        })
    }

    /// The most probable explanation of a row of completed beliefs. `None` if it is impossible, or if nothing possible
    /// was found within the limits: [`Self::top`] tells which.
    pub fn best_row(&self, row: &[f64]) -> Option<MostProbable> {
        self.top(row, 1).into_best()
    }

    /// The same for every row.
    pub fn best_batch(&self, rows: &BeliefMatrix) -> Vec<Option<MostProbable>> {
        self.top_batch(rows, 1).into_iter().map(RankedExplanations::into_best).collect()
    }

    /// The `n` most probable explanations of every row.
    pub fn top_batch(&self, rows: &BeliefMatrix, n: usize) -> Vec<RankedExplanations> {
        (0..rows.n_rows()).into_par_iter().map(|row| self.top(rows.row(row), n)).collect()
    }

    /// The `n` most probable explanations, best first; fewer if no more are possible, or no more were found.
    pub fn top(&self, row: &[f64], n: usize) -> RankedExplanations {
        self.seats.with(|| (), |()| self.search(row, n))
    }

    fn search(&self, row: &[f64], n: usize) -> RankedExplanations {
        let budget = Budget::first(self.limits);
        let Some(mut bound) = Bound::new(&self.costs, row, budget).filter(|_| n > 0) else {
            return RankedExplanations::complete(Vec::new());
        };
        if n == 1 {
            bound.drop_dominated();
        }
        let (found, bound) = cheapest(bound, n, self.trail, &Guesser { engine: self, row });
        let end = if found.others < f64::INFINITY { bound.budget.end() } else { SearchEnd::Complete };
        let explain = |(cost, assignment): (f64, Vec<usize>)| MostProbable {
            log_weight: self.model().log_weight_of_rules(row, &assignment),
            assignment,
            gap: Some((cost - found.others).max(0.0)),
            engine: Engine::BranchAndBound,
        };
        let by_rules = found.assignments.into_iter().map(explain).collect();
        let best = self.typical.rerank(row, n, by_rules, Some(-found.others), Engine::BranchAndBound);
        RankedExplanations::new(best, end)
    }

    fn loopy(&self) -> Option<&Loopy> {
        let compile = || {
            // A guess: not worth a second try.
            let settings = LoopySettings { retry: false, ..LoopySettings::default() };
            Loopy::compile_with(&self.model().without_typical(), settings).ok()
        };
        self.loopy.get_or_init(compile).as_ref()
    }

    /// A smallest set of rules that together exclude everything that an impossible row allows; none where that is too
    /// hard to find out.
    pub(crate) fn conflict(&self, row: &[f64]) -> Vec<RuleId> {
        match Possible::of(self.model(), row) {
            Possible::No(rules) => rules,
            _ => Vec::new(),
        }
    }
}

/// Where the search for a row begins.
struct Guesser<'a> {
    engine: &'a BranchAndBound,
    row: &'a [f64],
}

/// Work of a guess by loopy propagation, for each message of the rules, and of a question to the SAT solver, for each node
/// of a rule and for the search.
const LOOPY_WORK: u64 = 200;
const NODE_WORK: u64 = 200;
const SAT_WORK: u64 = 50_000_000;

impl Guess for Guesser<'_> {
    fn likely(&self, bound: &mut Bound<'_>) -> Option<Vec<usize>> {
        if bound.budget.is_spent() {
            return None;
        }
        bound.budget.spend(LOOPY_WORK * bound.costs.n_messages as u64);
        self.engine.loopy()?.guess(self.row)
    }

    fn possible(&self, bound: &mut Bound<'_>) -> Possible {
        bound.budget.spend(NODE_WORK * bound.costs.total_price() + SAT_WORK);
        Possible::of(self.engine.model(), self.row)
    }
}
