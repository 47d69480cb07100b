//! The junction tree: exact inference along a tree of small tables.

pub(crate) mod network;
mod order;
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
use crate::infer::semiring::{Aim, SumProduct};
use crate::infer::typical::Typical;
use crate::label::LabelId;
use crate::logic::{conflict, named};
use crate::model::Model;
use crate::posterior::{Engine, Posterior, Posteriors, SearchEnd, Stopped};
use crate::rule::RuleId;
use network::Split;
use runner::{Answer, Compilation, Runner};
use sample::Walk;

/// Exact marginals for models whose rules do not tie too many labels together at once.
///
/// The model is compiled once; the plan then runs on many rows, eight side by side, spread over threads. A row's
/// answer has the same bits whatever its neighbors and however many threads.
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
    /// With signs, where that is faster: its answers are checked.
    quick: Option<Runner<SumProduct>>,
    /// Without signs, or what that would take.
    careful: Result<Runner<SumProduct>>,
    /// What combinations add to the answers of the plans, which know nothing of them.
    typical: Typical,
    /// For every category whether the rules exclude it whatever the beliefs, once that was asked.
    excluded: OnceLock<Vec<bool>>,
    /// How to go back through the careful plan, once samples were asked for.
    walk: OnceLock<Walk>,
    /// A second opinion on rows that lost all digits, once one was asked for; `None` if it is too costly.
    search: OnceLock<Option<Box<BranchAndBound>>>,
    /// Memory that is set aside for it.
    search_account: Arc<Account>,
    factors: Arc<Factors>,
}

/// One part in `SEARCH_SHARE` of the memory is set aside for branch and bound on imprecise rows.
const SEARCH_SHARE: u64 = 4;

/// A plan for [`JunctionTree`], whose cost is known and whose tables are not laid out yet.
pub(crate) struct JunctionTreePlan {
    factors: Arc<Factors>,
    compilation: Compilation,
    limits: Limits,
}

impl JunctionTreePlan {
    pub(crate) fn new(factors: &Arc<Factors>, limits: Limits) -> Result<Self> {
        Self::new_worth(factors, limits, f64::INFINITY)
    }

    /// The same where a row of more than `max_work` multiply-adds is of no use.
    pub(crate) fn new_worth(factors: &Arc<Factors>, limits: Limits, max_work: f64) -> Result<Self> {
        let compilation = Compilation::new_worth(factors, Aim::Sum, Split::Signed, limits, max_work)?;
        Ok(Self { factors: Arc::clone(factors), compilation, limits })
    }

    pub(crate) fn cost(&self) -> Cost {
        self.compilation.cost()
    }

    /// Refuses tables that are known to be too large before they are laid out.
    pub(crate) fn check(&self) -> Result<()> {
        self.compilation.check()
    }

    /// Lays out the tables. Returns an error with the cost if they do not fit the account.
    pub(crate) fn tree(self, account: &Arc<Account>) -> Result<JunctionTree> {
        let Self { factors, compilation, limits } = self;
        let runner = compilation.runner(account)?;
        let (quick, careful) = if compilation.is_signed() {
            // The same plan without signs; if that is too large, perhaps another one is not.
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

/// Where there are signs, less than this share of a label's mass may be nothing but rounding.
const TINY: f64 = 1e-12;

/// The same for a category that everything else favors by more than this: its terms are larger than those of Z.
const LARGE: f64 = 1e3;

/// The largest relative error of a marginal, where doing a row again without signs is no great matter.
const MAX_ERROR: f64 = 2e-10;

/// Multiply-adds from which on it is.
const MAX_AGAIN: f64 = 1e7;

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

    /// Compiles, or says what it would take if that is more than the limits allow.
    pub fn compile_within(model: &Model, limits: Limits) -> Result<Self> {
        JunctionTreePlan::new(&Arc::new(Factors::new(model)), limits)?.tree(&Account::new(limits.memory))
    }

    /// The model it was compiled from.
    pub fn model(&self) -> &Model {
        &self.any().model
    }

    /// What the plan takes.
    pub fn cost(&self) -> Cost {
        self.any().cost()
    }

    /// Whether rows that lose digits can be done again without signs; if not, their answers say how far they are off.
    pub fn is_careful(&self) -> bool {
        self.careful.is_ok()
    }

    fn any(&self) -> &Runner<SumProduct> {
        let careful = || self.careful.as_ref().expect("there is one of the two");
        self.quick.as_ref().unwrap_or_else(careful)
    }

    pub(crate) fn careful(&self) -> Result<&Runner<SumProduct>> {
        self.careful.as_ref().map_err(Error::clone)
    }

    /// All marginals, ln Z and every rule's agreement for one instance.
    pub fn infer(&self, instance: &impl Instance) -> Result<Posterior> {
        self.infer_row(&instance.values(self.model())?)
    }

    pub(crate) fn infer_row(&self, row: &[f64]) -> Result<Posterior> {
        self.infer_row_or_conflict(row).map_err(|rules| named(self.model(), rules))
    }

    /// The same, or the rules that leave nothing possible.
    pub(crate) fn infer_row_or_conflict(&self, row: &[f64]) -> Result<Posterior, Vec<RuleId>> {
        // The same bits as in a batch.
        let quick = self.quick.as_ref().and_then(|quick| quick.one_or(row));
        let quick = quick.filter(|quick| self.is_sound(row, quick));
        let (answer, agreement, stopped) = match &self.careful {
            Ok(careful) => {
                let (answer, agreement) = careful.one_with_agreement(row);
                (quick.unwrap_or(answer), agreement, Stopped::Exact)
            }
            Err(_) => self.imprecise_with_agreement(row),
        };
        if answer.log_total == f64::NEG_INFINITY {
            return Err(conflict(self.model(), row));
        }
        let (log_evidence, marginals) = self.finished(row, answer);
        Ok(Posterior {
            model: self.model().clone(),
            log_evidence,
            marginals,
            agreement,
            engine: Engine::JunctionTree,
            stopped,
        })
    }

    /// All marginals and ln Z for many rows; a row that is impossible does not disturb the others.
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
                let done = |answer: Option<_>| answer.or_else(|| again.next()).expect("every row is done");
                answers.into_iter().map(done).collect()
            }
        };
        let log_evidence = answers.iter().map(|((log_evidence, _), _)| *log_evidence).collect();
        let stopped = answers.iter().map(|(_, stopped)| *stopped).collect();
        let marginals = answers.into_iter().flat_map(|((_, marginals), _)| marginals).collect();
        let (model, engine) = (self.model().clone(), Engine::JunctionTree);
        Ok(Posteriors { model, marginals, log_evidence, engine, stopped })
    }

    /// Rows that lost digits: without signs where that fits, else as good as it gets.
    fn again(&self, rows: &BeliefMatrix) -> Vec<((f64, Vec<f64>), Stopped)> {
        match &self.careful {
            Ok(careful) => careful.batch(rows, |row, answer| (self.finished(row, answer), Stopped::Exact)),
            Err(_) => (0..rows.n_rows())
                .map(|row| {
                    let (answer, _, stopped) = self.imprecise_with_agreement(rows.values_of(row));
                    (self.finished(rows.values_of(row), answer), stopped)
                })
                .collect(),
        }
    }

    /// The answer with signs, whatever it is worth. Whether the row is possible at all, signs do not decide.
    fn imprecise_with_agreement(&self, row: &[f64]) -> (Answer, Vec<f64>, Stopped) {
        let quick = self.quick.as_ref().expect("without signs it is careful");
        let (mut answer, agreement, error) = quick.one_imprecise(row);
        let precise = quick.is_consistent(error) && self.is_sound(row, &answer);
        let useless = !(answer.log_total.is_finite() && error < 1e-3);
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
        (answer, agreement, if precise { Stopped::Exact } else { Stopped::Imprecise { error } })
    }

    /// The marginals with each rule left out in turn: the cavity beliefs, and the answer to "what if this rule
    /// were not there". `None` where even that leaves nothing possible.
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

    /// Branch and bound for the rules alone: combinations are left out where their sum is in doubt.
    fn search(&self) -> Option<&BranchAndBound> {
        let compile = || {
            let rules = self.model().without_typical();
            BranchAndBound::new(&rules, &self.factors, &self.search_account, SearchLimits::default())
                .ok()
                .map(Box::new)
        };
        self.search.get_or_init(compile).as_deref()
    }

    /// Whether signs leave no doubt which categories are possible.
    fn is_sound(&self, row: &[f64], answer: &Answer) -> bool {
        // Where sums agree to the last digit, that may be by chance.
        let error = answer.error.max(2.0 * f64::EPSILON);
        let tiny = if self.cost().multiply_adds < MAX_AGAIN { TINY.max(error / MAX_ERROR) } else { TINY };
        answer.log_total.is_finite()
            && self.model().label_ids().all(|label| {
                let block = self.model().block(label);
                let total: f64 = answer.masses[block.clone()].iter().sum();
                block.into_iter().all(|category| {
                    let (belief, mass) = (row[category], answer.masses[category]);
                    // Terms far larger than those of Z have errors that do not show in sums that equal Z.
                    let is_hidden = mass > LARGE * belief * total && mass < tiny * total;
                    belief == 0.0
                        || (mass > tiny * belief * total && !is_hidden)
                        || (mass == 0.0 && self.excluded()[category])
                })
            })
    }

    /// The categories that have no mass even where nothing is known.
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

    /// ln Z and the marginals of a row, combinations included.
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
