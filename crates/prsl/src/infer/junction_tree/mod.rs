//! The junction tree: exact marginals, ln Z and samples, by contracting small tables along a tree.
//!
//! | module | content |
//! |---|---|
//! | `network` | the model as variables and small tables |
//! | `order`, `search` | the search for an elimination order and a contraction tree |
//! | `plan` | the contraction tree as steps over tables in one buffer |
//! | `compilation` | from a model and limits to a plan that fits them |
//! | `sweep`, `underflow` | running a plan forward and backward, and bounds on what underflow removes |
//! | `runner` | rows of beliefs to ln Z and masses of categories |
//! | `sample` | joint samples, drawn backward through a plan |

pub(crate) mod compilation;
mod expectations;
pub(crate) mod network;
pub(crate) mod order;
pub(crate) mod plan;
pub(crate) mod runner;
mod sample;
mod search;
mod sweep;
mod underflow;

use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::belief::{BeliefMatrix, Instance, check_same_labels};
use crate::error::{Error, Result};
use crate::infer::account::Account;
use crate::infer::branch_and_bound::{BranchAndBound, SearchLimits};
use crate::infer::factor::Factors;
use crate::infer::limits::{Cost, Limits};
use crate::infer::ranking::Answer;
use crate::infer::semiring::{Aim, SumProduct};
use crate::infer::typical::Typical;
use crate::label::LabelId;
use crate::logic::{conflict, impossible, named};
use crate::model::Model;
use crate::posterior::{Engine, Posterior, Posteriors, SearchEnd, Stopped};
use crate::rule::RuleId;
use compilation::Compilation;
use network::Split;
use runner::Runner;
use sample::Walk;

/// Exact marginals and samples, for models of small treewidth.
///
/// The model is compiled once. The plan then runs on many rows, eight at a time, on all threads. The bits of a row's
/// answer depend neither on the other rows nor on the number of threads.
///
/// ```
/// use prsl::{Evidence, JunctionTree, Model};
///
/// // The worked example of the paper (whose printed marginals are not the right ones).
/// let model = Model::parse("
/// label activity: walking, normal, overhead
/// label feet: gait, standing
/// label hands: high, centered, low
/// rule 0.8: high & standing -> overhead
/// rule 0.9: normal -> centered | low
/// rule 1: walking <-> gait
/// ")?;
/// let engine = JunctionTree::compile(&model)?;
/// let posterior = engine.infer(
///     &Evidence::new()
///         .belief("activity", [0.1, 0.4, 0.5])
///         .belief("feet", [0.05, 0.95])
///         .belief("hands", [0.5, 0.3, 0.2]),
/// )?;
/// let shown: Vec<String> = posterior.marginals().iter().map(|p| format!("{p:.4}")).collect();
/// assert_eq!(shown, ["0.0074", "0.2892", "0.7034", "0.0074", "0.9926", "0.3632", "0.3821", "0.2547"]);
/// assert_eq!(format!("{:.4}", posterior.log_evidence().exp()), "0.4862");
/// # Ok::<(), prsl::Error>(())
/// ```
pub struct JunctionTree {
    /// The plan with signs; `None` if no rule is decomposed with signs. Its answers are checked by [`Self::is_sound`].
    quick: Option<Runner<SumProduct>>,
    /// The plan without signs, or the error if it exceeds the limits.
    careful: Result<Runner<SumProduct>>,
    /// Corrects the answers for typical combinations, which the plans do not contain.
    typical: Typical,
    /// For every category, whether the rules exclude it for any beliefs. Computed on first use.
    excluded: OnceLock<Vec<bool>>,
    /// The steps of the careful plan in reverse, for samples. Computed on first use.
    walk: OnceLock<Walk>,
    /// Decides whether a row that lost all digits is possible. Compiled on first use; `None` if it is too costly.
    search: OnceLock<Option<Box<BranchAndBound>>>,
    /// Memory that is set aside for it.
    search_account: Arc<Account>,
    factors: Arc<Factors>,
}

/// One part in `SEARCH_SHARE` of the memory is set aside for branch and bound on imprecise rows.
const SEARCH_SHARE: u64 = 4;

/// A plan for [`JunctionTree`]. Its cost is known, but its tables are not laid out yet.
pub(crate) struct JunctionTreePlan {
    factors: Arc<Factors>,
    compilation: Compilation,
    limits: Limits,
}

impl JunctionTreePlan {
    pub(crate) fn new(factors: &Arc<Factors>, limits: Limits) -> Result<Self> {
        Self::new_worth(factors, limits, f64::INFINITY)
    }

    /// Searches for a plan of at most `max_work` multiply-adds per row. If there is none, the search ends early.
    pub(crate) fn new_worth(factors: &Arc<Factors>, limits: Limits, max_work: f64) -> Result<Self> {
        let compilation = Compilation::new_worth(factors, Aim::Sum, Split::Signed, limits, max_work)?;
        Ok(Self { factors: Arc::clone(factors), compilation, limits })
    }

    pub(crate) fn cost(&self) -> Cost {
        self.compilation.cost()
    }

    /// Returns an error if the plan is certain to exceed the limits.
    pub(crate) fn check(&self) -> Result<()> {
        self.compilation.check()
    }

    /// Lays out the tables, with signs and without. Returns an error with the cost if they do not fit the account.
    pub(crate) fn tree(self, account: &Arc<Account>) -> Result<JunctionTree> {
        let Self { factors, compilation, limits } = self;
        let runner = compilation.runner(account)?;
        let (quick, careful) = if compilation.is_signed() {
            // The same plan without signs is tried first. If it exceeds the limits, another plan may fit.
            let same = compilation.without_signs().and_then(|compilation| compilation.runner(account));
            let careful = same.or_else(|_| {
                Compilation::new(&factors, Aim::Sum, Split::Or, limits)
                    .and_then(|compilation| compilation.runner(account))
            });
            (Some(runner), careful)
        } else {
            (None, Ok(runner))
        };
        let (typical, excluded) = (Typical::new(&factors.model), OnceLock::new());
        let (walk, search) = (OnceLock::new(), OnceLock::new());
        let search_account =
            if careful.is_ok() { Account::new(limits.memory) } else { account.set_aside(SEARCH_SHARE) };
        Ok(JunctionTree { quick, careful, typical, excluded, walk, search, search_account, factors })
    }
}

/// Smallest ratio of posterior to belief that a plan with signs may report. Smaller marginals may be rounding
/// errors. The value is about 5,000 times the machine epsilon.
const MIN_RATIO: f64 = 1e-12;

/// Ratio of posterior to belief above which a small marginal is not trusted either. The terms of such a category are
/// this much larger than those of Z, so their rounding errors do not show in sums that equal Z.
const MAX_RATIO: f64 = 1e3;

/// Largest relative error of a marginal of a small plan, see [`SMALL_PLAN`].
const MAX_ERROR: f64 = 2e-10;

/// Number of multiply-adds per row below which [`MAX_ERROR`] is enforced. Computing a row of such a plan again without
/// signs takes milliseconds.
const SMALL_PLAN: f64 = 1e7;

/// Relative error of Z above which a second engine decides whether a row is possible.
const USELESS_ERROR: f64 = 1e-3;

impl fmt::Debug for JunctionTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JunctionTree").field("cost", &self.cost()).finish_non_exhaustive()
    }
}

impl JunctionTree {
    /// Compiles within the default limits.
    pub fn compile(model: &Model) -> Result<Self> {
        Self::compile_within(model, Limits::default())
    }

    /// Compiles within these limits. Returns an error with the cost if the plan exceeds them.
    pub fn compile_within(model: &Model, limits: Limits) -> Result<Self> {
        JunctionTreePlan::new(&Arc::new(Factors::new(model)), limits)?.tree(&Account::new(limits.memory))
    }

    /// Compiles a plan of at most `max_work` multiply-adds per row, without signs. Its weights can be changed.
    pub(crate) fn without_signs(
        factors: &Arc<Factors>,
        limits: Limits,
        max_work: f64,
        account: &Arc<Account>,
    ) -> Result<Self> {
        let compilation = Compilation::new_worth(factors, Aim::Sum, Split::Or, limits, max_work)?;
        compilation.check_work(max_work)?;
        let careful = Ok(compilation.runner(account)?);
        Ok(Self {
            quick: None,
            careful,
            typical: Typical::new(&factors.model),
            excluded: OnceLock::new(),
            walk: OnceLock::new(),
            search: OnceLock::new(),
            search_account: Account::new(limits.memory),
            factors: Arc::clone(factors),
        })
    }

    /// The model that it was compiled from.
    pub fn model(&self) -> &Model {
        &self.any().model
    }

    /// The cost of the plan: table entries, memory, and multiply-adds per row.
    pub fn cost(&self) -> Cost {
        self.any().cost()
    }

    /// Whether the plan without signs fits the limits. If not, rows that lose digits are answered as
    /// [`Stopped::Imprecise`].
    pub fn is_careful(&self) -> bool {
        self.careful.is_ok()
    }

    /// The runner that is tried first.
    fn any(&self) -> &Runner<SumProduct> {
        let careful = || self.careful.as_ref().expect("one of the two exists");
        self.quick.as_ref().unwrap_or_else(careful)
    }

    pub(crate) fn careful(&self) -> Result<&Runner<SumProduct>> {
        self.careful.as_ref().map_err(Error::clone)
    }

    /// All marginals and ln Z for one instance.
    pub fn infer(&self, instance: &impl Instance) -> Result<Posterior> {
        self.infer_row(&instance.values(self.model())?)
    }

    pub(crate) fn infer_row(&self, row: &[f64]) -> Result<Posterior> {
        self.infer_row_or_conflict(row).map_err(|rules| named(self.model(), rules))
    }

    /// Like [`Self::infer_row`]. If the row is impossible, the error is the rules in conflict.
    pub(crate) fn infer_row_or_conflict(&self, row: &[f64]) -> Result<Posterior, Vec<RuleId>> {
        // The same decisions as in `infer_batch`, so that the bits are the same.
        let quick = self.quick.as_ref().and_then(|quick| quick.one_or(row));
        let quick = quick.filter(|quick| self.is_sound(row, quick));
        let (answer, stopped) = match (quick, &self.careful) {
            (Some(answer), _) => (answer, Stopped::Exact),
            (None, Ok(careful)) => (careful.one(row), Stopped::Exact),
            (None, Err(_)) => self.imprecise(row),
        };
        if answer.log_total == f64::NEG_INFINITY {
            return Err(conflict(self.model(), row));
        }
        let (log_evidence, marginals) = self.finished(row, answer);
        Ok(Posterior {
            model: self.model().clone(),
            log_evidence,
            marginals,
            engine: Engine::JunctionTree,
            stopped,
        })
    }

    /// The agreement of every rule, in the order of the rules: P(rule holds | all other rules hold, evidence). It is
    /// small if the evidence and the other rules contradict the rule. Typical combinations are ignored.
    ///
    /// One pass computes the agreement of all rules. [`Explainer`](crate::Explainer) marks the rules in conflict.
    pub fn agreement(&self, instance: &impl Instance) -> Result<Vec<f64>> {
        self.agreement_of(&instance.values(self.model())?)
    }

    pub(crate) fn agreement_of(&self, row: &[f64]) -> Result<Vec<f64>> {
        let (log_total, agreement) = match &self.careful {
            Ok(careful) => careful.one_with_agreement(row),
            Err(_) => (self.imprecise(row).0.log_total, self.any().imprecise_agreement(row)),
        };
        match log_total > f64::NEG_INFINITY {
            true => Ok(agreement),
            false => Err(impossible(self.model(), row)),
        }
    }

    /// All marginals and ln Z for many rows. An impossible row does not affect the others.
    pub fn infer_batch(&self, rows: &BeliefMatrix) -> Result<Posteriors> {
        check_same_labels(rows.model(), self.model())?;
        let answers = match &self.quick {
            None => self.any().batch(rows, |row, answer| (self.finished(row, answer), Stopped::Exact)),
            Some(quick) => {
                let sound = |row: &[f64], answer: Answer| {
                    self.is_sound(row, &answer).then(|| (self.finished(row, answer), Stopped::Exact))
                };
                let answers =
                    quick.batch_or(rows, |row, answer| answer.and_then(|answer| sound(row, answer)));
                let left: Vec<usize> = (0..answers.len()).filter(|&row| answers[row].is_none()).collect();
                let mut again = self.again(&rows.select(&left)).into_iter();
                let done = |answer: Option<_>| {
                    answer.or_else(|| again.next()).expect("every row that lost digits is computed again")
                };
                answers.into_iter().map(done).collect()
            }
        };
        let log_evidence = answers.iter().map(|((log_evidence, _), _)| *log_evidence).collect();
        let stopped = answers.iter().map(|(_, stopped)| *stopped).collect();
        let marginals = answers.into_iter().flat_map(|((_, marginals), _)| marginals).collect();
        let (model, engine) = (self.model().clone(), Engine::JunctionTree);
        Ok(Posteriors { model, marginals, log_evidence, engine, stopped })
    }

    /// Computes rows that lost digits again: without signs if that plan fits, else with their error.
    fn again(&self, rows: &BeliefMatrix) -> Vec<((f64, Vec<f64>), Stopped)> {
        match &self.careful {
            Ok(careful) => careful.batch(rows, |row, answer| (self.finished(row, answer), Stopped::Exact)),
            Err(_) => (0..rows.n_rows())
                .map(|row| {
                    let (answer, stopped) = self.imprecise(rows.values_of(row));
                    (self.finished(rows.values_of(row), answer), stopped)
                })
                .collect(),
        }
    }

    /// The answer of the plan with signs, however imprecise. Branch and bound decides whether the row is possible,
    /// because a cancelled Z does not.
    fn imprecise(&self, row: &[f64]) -> (Answer, Stopped) {
        let quick = self.quick.as_ref().expect("a tree without a careful plan has a quick one");
        let mut answer = quick.one_imprecise(row);
        let error = answer.error;
        let precise = quick.is_consistent(error) && self.is_sound(row, &answer);
        let useless = !(answer.log_total.is_finite() && error < USELESS_ERROR);
        if useless && !precise {
            let best = self.search().map(|search| search.top_row(row, 1));
            match best.as_ref().map(|best| (best.first(), best.end())) {
                Some((None, SearchEnd::Complete)) => answer.log_total = f64::NEG_INFINITY,
                // Z is at least the weight of any one assignment.
                Some((Some(best), _)) => answer.log_total = best.log_weight.max(answer.log_total),
                _ => {}
            }
        }
        answer.masses.iter_mut().for_each(|mass| *mass = mass.max(0.0));
        (answer, if precise { Stopped::Exact } else { Stopped::Imprecise { error } })
    }

    /// The marginals without each rule in turn, in the order of the rules. They answer the question "what if this rule
    /// were absent?". An entry is `None` if the row is impossible even without that rule.
    pub fn without_each_rule(&self, instance: &impl Instance) -> Result<Vec<Option<Vec<f64>>>> {
        self.without_each_rule_of(&instance.values(self.model())?)
    }

    pub(crate) fn without_each_rule_of(&self, row: &[f64]) -> Result<Vec<Option<Vec<f64>>>> {
        let answers = self.careful()?.without_each(row);
        let marginals = |(rule, answer): (RuleId, Answer)| {
            let mixture = self.typical.mixture_without(row, answer.log_total, Some(rule));
            (answer.log_total > f64::NEG_INFINITY).then(|| self.typical.mixed(&mixture, answer.masses))
        };
        Ok(self.model().rule_ids().zip(answers).map(marginals).collect())
    }

    /// Branch and bound for the model without typical combinations, which are added to the answer later.
    fn search(&self) -> Option<&BranchAndBound> {
        let compile = || {
            let rules = self.model().without_typical();
            BranchAndBound::new(&rules, &self.factors, &self.search_account, SearchLimits::default())
                .ok()
                .map(Box::new)
        };
        self.search.get_or_init(compile).as_deref()
    }

    /// Whether an answer of the plan with signs has enough digits in every marginal, and its zeros are proven.
    fn is_sound(&self, row: &[f64], answer: &Answer) -> bool {
        // Sums may agree to the last digit by chance.
        let error = answer.error.max(2.0 * f64::EPSILON);
        let is_small = self.cost().multiply_adds < SMALL_PLAN;
        let min_ratio = if is_small { MIN_RATIO.max(error / MAX_ERROR) } else { MIN_RATIO };
        answer.log_total.is_finite()
            && self.model().label_ids().all(|label| {
                let block = self.model().block(label);
                let total: f64 = answer.masses[block.clone()].iter().sum();
                block.into_iter().all(|category| {
                    let (belief, mass) = (row[category], answer.masses[category]);
                    let is_hidden = mass > MAX_RATIO * belief * total && mass < min_ratio * total;
                    belief == 0.0
                        || (mass > min_ratio * belief * total && !is_hidden)
                        || (mass == 0.0 && self.excluded()[category])
                })
            })
    }

    /// Whether each category has probability 0 even with uniform beliefs: the rules alone exclude it.
    fn excluded(&self) -> &[bool] {
        self.excluded.get_or_init(|| {
            let share = |label: LabelId| 1.0 / self.model().label(label).n_categories() as f64;
            let ids = self.model().label_ids();
            let row: Vec<f64> =
                ids.flat_map(|label| self.model().block(label).map(move |_| share(label))).collect();
            let masses = self.careful.as_ref().map(|careful| careful.one(&row).masses);
            masses.map_or_else(
                |_| vec![false; row.len()],
                |masses| masses.iter().map(|&mass| mass == 0.0).collect(),
            )
        })
    }

    /// ln Z and the marginals of a row, corrected for typical combinations.
    fn finished(&self, row: &[f64], answer: Answer) -> (f64, Vec<f64>) {
        let mixture = self.typical.mixture(row, answer.log_total);
        (mixture.log_evidence, self.typical.mixed(&mixture, answer.masses))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_need_a_second_opinion_share_one_search() {
        let model = Model::parse("label a\nlabel b\nrule 0.9: a -> b").expect("a model");
        let tree = JunctionTree::compile(&model).expect("a small tree");
        let search = || tree.search().expect("a small search");
        assert!(std::ptr::eq(search(), search()));
    }
}
