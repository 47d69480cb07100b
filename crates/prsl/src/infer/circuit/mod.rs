//! Exact inference by a circuit: for models whose hard rules leave few assignments possible.
//!
//! The junction tree takes no advantage of hard rules: its tables have an entry for every combination of categories. A
//! circuit has only what is possible. The compiler decides labels one by one (`compile`), propagates the hard rules
//! (`domains`), splits what is left into independent components (`residual`), and shares components that occur again. The
//! result is a decision-DNNF: sums over the states of a label, and products of independent parts. Beliefs and weights
//! of rules are parameters, so one circuit serves all rows.
//!
//! ```text
//! model ──problem──▶ variables, constraints ──compile──▶ graph ──layout──▶ flat lists ──sweep──▶ Z, masses
//! ```

mod chart;
mod compile;
mod domains;
mod evaluator;
mod expectations;
mod gradient;
mod layout;
mod order;
mod problem;
mod residual;
mod sample;
mod sweep;

use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::belief::{BeliefMatrix, Instance, check_same_labels};
use crate::error::{Error, Result};
use crate::infer::account::Account;
use crate::infer::factor::{Factors, States};
use crate::infer::limits::{Limits, bytes, bytes_above, quantity};
use crate::infer::ranking::{Answer, MaxMarginals, Ranking};
use crate::infer::semiring::{Aim, MaxProduct, Semiring, SumProduct};
use crate::infer::typical::Typical;
use crate::log_space::log_add_exp;
use crate::logic::{conflict, impossible, named};
use crate::model::Model;
use crate::posterior::{Engine, MostProbable, Posterior, Posteriors, RankedAssignments, Stopped};
use crate::rule::RuleId;
use compile::{Branching, Budget, Graph, compile};
use evaluator::Evaluator;
pub use gradient::Gradient;
use layout::Layout;
use problem::{Problem, has_causes};

/// Maximum number of edges of a circuit. A row of such a circuit takes about 0.2 ms.
pub(crate) const MAX_EDGES: usize = 256_000;

/// Numbers of edges that are tried in turn. A search that fails costs a fraction of the next one.
const STAGES: [usize; 4] = [4_000, 16_000, 64_000, MAX_EDGES];

/// Maximum number of edges up to which both orders of branching are tried. The static order was never the smaller one for
/// larger circuits.
const MAX_RACE: usize = 16_000;

/// Maximum work of a search per edge that it may have, in units of about a nanosecond. Searches that succeeded took 2,000
/// to 5,000 on the rule bases that were tried.
const WORK_PER_EDGE: f64 = 1e4;

/// Maximum number of words of all keys in the cache, per edge. The largest cache takes 130 MB.
const WORDS_PER_EDGE: usize = 64;

/// Exact inference by a circuit, for models with many hard rules.
///
/// A circuit has a sum for every decision and a product for independent parts. If hard rules exclude most assignments, it
/// is small where the tables of a [`JunctionTree`](crate::JunctionTree) are too large.
///
/// ```
/// use prsl::infer::Circuit;
/// use prsl::{Evidence, Model};
///
/// // A permutation: each row and each column of a 3 × 3 square has exactly one yes.
/// let mut text = String::new();
/// for cell in 0..9 {
///     text += &format!("label c{cell}\n");
/// }
/// for line in 0..3 {
///     text += &format!("rule 1: exactly 1 of {{c{}, c{}, c{}}}\n", 3 * line, 3 * line + 1, 3 * line + 2);
///     text += &format!("rule 1: exactly 1 of {{c{}, c{}, c{}}}\n", line, line + 3, line + 6);
/// }
/// let model = Model::parse(&text)?;
/// let circuit = Circuit::compile(&model)?;
/// let posterior = circuit.infer(&Evidence::new().observe("c0", "yes"))?;
/// assert!((posterior.marginals()[8] - 0.5).abs() < 1e-12); // c4, in one of the two permutations that are left
/// # Ok::<(), prsl::Error>(())
/// ```
pub struct Circuit {
    factors: Arc<Factors>,
    sums: Evaluator<SumProduct>,
    typical: Typical,
    /// The circuit for maxima, compiled when it is first needed.
    maxima: OnceLock<Result<Box<Ranking<Evaluator<MaxProduct>>>>>,
    /// For each hard rule, the circuit without it, compiled when it is first needed.
    without: Vec<OnceLock<Result<Box<Evaluator<SumProduct>>>>>,
    /// Memory for circuits that are compiled when they are first needed.
    aside: Arc<Account>,
}

/// One part in `ASIDE_SHARE` of the memory is set aside for circuits without a rule and for maxima.
const ASIDE_SHARE: u64 = 4;

/// A compiled circuit before its workspaces are reserved.
pub(crate) struct CircuitPlan {
    factors: Arc<Factors>,
    layout: Arc<Layout>,
}

impl CircuitPlan {
    /// Compiles a circuit of at most `max_edges` edges.
    pub(crate) fn new(factors: &Arc<Factors>, max_edges: usize) -> Result<Self> {
        let layout = Arc::new(layout(factors, Aim::Sum, None, max_edges)?);
        Ok(Self { factors: Arc::clone(factors), layout })
    }

    pub(crate) fn size(&self) -> CircuitSize {
        self.layout.size()
    }

    /// Reserves the memory. Returns an error if the circuit does not fit the account.
    pub(crate) fn circuit(&self, account: &Arc<Account>) -> Result<Circuit> {
        let sums = evaluator(&self.factors, &self.layout, Aim::Sum, account)?;
        let typical = Typical::new(&self.factors.model);
        let without = self.factors.list.iter().map(|_| OnceLock::new()).collect();
        let aside = account.set_aside(ASIDE_SHARE);
        let factors = Arc::clone(&self.factors);
        Ok(Circuit { factors, sums, typical, maxima: OnceLock::new(), without, aside })
    }
}

/// The size of a circuit.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct CircuitSize {
    /// Number of sums.
    pub nodes: usize,
    /// Number of products.
    pub edges: usize,
    /// Bytes of the circuit, and of the values of one row.
    pub bytes: f64,
    /// Number of multiplications and additions for the marginals of one row.
    pub multiply_adds: f64,
}

impl fmt::Display for CircuitSize {
    /// `1,234 edges (20.0 KiB), 5,678 multiply-adds a row`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (edges, work) = (quantity(self.edges as f64), quantity(self.multiply_adds));
        write!(f, "{edges} edges ({}), {work} multiply-adds a row", bytes(self.bytes))
    }
}

impl fmt::Debug for Circuit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Circuit").field("size", &self.size()).finish_non_exhaustive()
    }
}

impl Circuit {
    /// Compiles within the default limits.
    pub fn compile(model: &Model) -> Result<Self> {
        Self::compile_within(model, Limits::default())
    }

    /// Compiles within these limits. Returns an error if the circuit has more than 256,000 edges, or its search takes too
    /// much work.
    pub fn compile_within(model: &Model, limits: Limits) -> Result<Self> {
        CircuitPlan::new(&Arc::new(Factors::new(model)), MAX_EDGES)?.circuit(&Account::new(limits.memory))
    }

    /// The model that it was compiled from.
    pub fn model(&self) -> &Model {
        &self.sums.model
    }

    /// The size of the circuit.
    pub fn size(&self) -> CircuitSize {
        self.sums.layout.size()
    }

    /// All marginals and ln Z for one instance.
    pub fn infer(&self, instance: &impl Instance) -> Result<Posterior> {
        self.infer_row(&instance.values(self.model())?)
    }

    pub(crate) fn infer_row(&self, row: &[f64]) -> Result<Posterior> {
        self.infer_row_or_conflict(row).map_err(|rules| named(self.model(), rules))
    }

    /// The posterior, or the rules in conflict if the row is impossible.
    pub(crate) fn infer_row_or_conflict(&self, row: &[f64]) -> Result<Posterior, Vec<RuleId>> {
        let answer = self.sums.one(row);
        if answer.log_total == f64::NEG_INFINITY {
            return Err(conflict(self.model(), row));
        }
        let (log_evidence, marginals) = self.finished(row, answer);
        let (model, engine) = (self.model().clone(), Engine::Circuit);
        Ok(Posterior { model, log_evidence, marginals, engine, stopped: Stopped::Exact })
    }

    /// All marginals and ln Z for many rows. An impossible row does not affect the others.
    pub fn infer_batch(&self, rows: &BeliefMatrix) -> Result<Posteriors> {
        check_same_labels(rows.model(), self.model())?;
        let is_plain = self.typical.is_empty() && self.sums.is_plain() && self.model().n_categories() > 0;
        let (marginals, log_evidence) = match is_plain {
            true => self.marginals(rows),
            false => self.mixtures(rows),
        };
        let (model, engine) = (self.model().clone(), Engine::Circuit);
        Ok(Posteriors {
            model,
            marginals,
            log_evidence,
            engine,
            stopped: vec![Stopped::Exact; rows.n_rows()],
        })
    }

    /// The marginals and ln Z of rows without typical combinations.
    fn marginals(&self, rows: &BeliefMatrix) -> (Vec<f64>, Vec<f64>) {
        let (mut marginals, mut log_evidence, open) = self.sums.marginals(rows);
        let n_categories = self.model().n_categories();
        for row in open {
            let values = rows.values_of(row);
            let answer = self.sums.in_logarithms(values, &self.sums.constants);
            let (log_total, of_row) = self.finished(values, answer);
            log_evidence[row] = log_total;
            marginals[row * n_categories..(row + 1) * n_categories].copy_from_slice(&of_row);
        }
        (marginals, log_evidence)
    }

    /// The marginals and ln Z of any rows.
    fn mixtures(&self, rows: &BeliefMatrix) -> (Vec<f64>, Vec<f64>) {
        let answers = self.sums.batch(rows, |row, answer| self.finished(row, answer));
        let (log_evidence, parts): (Vec<f64>, Vec<Vec<f64>>) = answers.into_iter().unzip();
        (parts.concat(), log_evidence)
    }

    /// The agreement of every rule, in the order of the rules: P(rule holds | all other rules hold, evidence). It is
    /// small if the evidence and the other rules contradict the rule. Typical combinations are ignored.
    ///
    /// One pass computes the agreement of all soft rules. A hard rule takes a circuit of its own, without the rule.
    pub fn agreement(&self, instance: &impl Instance) -> Result<Vec<f64>> {
        self.agreement_of(&instance.values(self.model())?)
    }

    pub(crate) fn agreement_of(&self, row: &[f64]) -> Result<Vec<f64>> {
        let log_sum = self.sums.one(row).log_total;
        if log_sum == f64::NEG_INFINITY {
            return Err(impossible(self.model(), row));
        }
        let masses = self.sums.log_masses_of_rules(row, &self.sums.constants);
        let agreement = |rule: RuleId| {
            if self.is_hard(rule) {
                let without = self.without(rule)?.one(row).log_total;
                return Ok((log_sum - without).exp().min(1.0));
            }
            // Z / (S / w(silent) + F / w(fired)), where S and F are the parts of Z in which the rule is silent, or fired.
            let ([silent, fired], weights) = (masses[rule.index()], self.sums.weights[rule.index()]);
            let log_without = log_add_exp(silent - weights[0].ln(), fired - weights[1].ln());
            Ok((log_add_exp(silent, fired) - log_without).exp())
        };
        self.model().rule_ids().map(agreement).collect()
    }

    /// The marginals without each rule in turn, in the order of the rules; `None` if no assignment is possible without it.
    ///
    /// A soft rule is left out by its weights. A hard rule takes a circuit of its own, without the rule.
    pub fn without_each_rule(&self, instance: &impl Instance) -> Result<Vec<Option<Vec<f64>>>> {
        self.without_each_rule_of(&instance.values(self.model())?)
    }

    pub(crate) fn without_each_rule_of(&self, row: &[f64]) -> Result<Vec<Option<Vec<f64>>>> {
        let without = |rule: RuleId| {
            let answer = match self.is_hard(rule) {
                true => self.without(rule)?.one(row),
                false => self.sums.one_with(row, &self.sums.constants_without(rule)),
            };
            let mixture = self.typical.mixture_without(row, answer.log_total, Some(rule));
            let is_possible = answer.log_total > f64::NEG_INFINITY;
            Ok(is_possible.then(|| self.typical.mixed(&mixture, answer.masses)))
        };
        self.model().rule_ids().map(without).collect()
    }

    /// The most probable assignment of one instance. Ties are broken arbitrarily, but always in the same way.
    pub fn best(&self, instance: &impl Instance) -> Result<MostProbable> {
        let row = instance.values(self.model())?;
        self.maxima()?.best_row(&row).ok_or_else(|| impossible(self.model(), &row))
    }

    /// The most probable assignment of every row; `None` if the row is impossible.
    pub fn best_batch(&self, rows: &BeliefMatrix) -> Result<Vec<Option<MostProbable>>> {
        check_same_labels(rows.model(), self.model())?;
        Ok(self.maxima()?.best_batch(rows))
    }

    /// The `n` most probable assignments, best first. The list is shorter if fewer are possible.
    pub fn top(&self, instance: &impl Instance, n: usize) -> Result<RankedAssignments> {
        Ok(self.maxima()?.top_row(&instance.values(self.model())?, n))
    }

    /// The `n` most probable assignments of every row.
    pub fn top_batch(&self, rows: &BeliefMatrix, n: usize) -> Result<Vec<RankedAssignments>> {
        check_same_labels(rows.model(), self.model())?;
        Ok(self.maxima()?.top_batch(rows, n))
    }

    /// Whether a rule has probability 0 or 1. The circuit then has no weight for it.
    fn is_hard(&self, rule: RuleId) -> bool {
        self.factors.list[rule.index()].weights.contains(&0.0)
    }

    /// The circuit without a rule.
    fn without(&self, rule: RuleId) -> Result<&Evaluator<SumProduct>> {
        let compile = || {
            let layout = Arc::new(layout(&self.factors, Aim::Sum, Some(rule), MAX_EDGES)?);
            evaluator(&self.factors, &layout, Aim::Sum, &self.aside).map(Box::new)
        };
        let without = self.without[rule.index()].get_or_init(compile);
        without.as_deref().map_err(Error::clone)
    }

    /// The circuit for maxima. It is the circuit for sums if noisy-or rules need no variables of their own.
    fn maxima(&self) -> Result<&Ranking<Evaluator<MaxProduct>>> {
        let compile = || {
            let layout = match has_causes(&self.factors) {
                true => Arc::new(layout(&self.factors, Aim::Maximum, None, MAX_EDGES)?),
                false => Arc::clone(&self.sums.layout),
            };
            let evaluator = evaluator(&self.factors, &layout, Aim::Maximum, &self.aside)?;
            Ok(Box::new(Ranking::new(evaluator)))
        };
        self.maxima.get_or_init(compile).as_deref().map_err(Error::clone)
    }

    /// Returns an error if there is no circuit for maxima within the limits.
    pub(crate) fn check_maxima(&self) -> Result<()> {
        self.maxima().map(|_| ())
    }

    /// The `n` most probable assignments of a row, after [`Self::check_maxima`].
    pub(crate) fn top_row(&self, row: &[f64], n: usize) -> RankedAssignments {
        self.maxima().expect("the circuit for maxima was compiled").top_row(row, n)
    }

    /// ln Z and the marginals of a row, with combinations.
    fn finished(&self, row: &[f64], answer: Answer) -> (f64, Vec<f64>) {
        let mixture = self.typical.mixture(row, answer.log_total);
        (mixture.log_evidence, self.typical.mixed(&mixture, answer.masses))
    }
}

impl MaxMarginals for Evaluator<MaxProduct> {
    fn model(&self) -> &Model {
        &self.model
    }

    fn states(&self) -> &States {
        &self.states
    }

    fn engine(&self) -> Engine {
        Engine::Circuit
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

/// Compiles the circuit for a query.
fn layout(factors: &Factors, aim: Aim, without: Option<RuleId>, max_edges: usize) -> Result<Layout> {
    let problem = Problem::new(factors, aim, without)?;
    let graph = smallest(&problem, max_edges).ok_or_else(|| {
        let most = quantity(max_edges as f64);
        Error::TooCostly {
            what: "a circuit".to_owned(),
            needed: format!("more than {most} edges, or too many steps of search for them"),
            limit: format!("{most} edges"),
            advice: aim.advice().to_owned(),
        }
    })?;
    Ok(Layout::new(&problem, &graph))
}

/// Reserves the memory of a circuit. Returns an error if it does not fit the account.
fn evaluator<S: Semiring>(
    factors: &Factors,
    layout: &Arc<Layout>,
    aim: Aim,
    account: &Arc<Account>,
) -> Result<Evaluator<S>> {
    let (fixed, lent) = (layout.bytes(), layout.workspace_bytes());
    if !account.fits(fixed, lent) {
        let [needed, limit] = bytes_above((fixed + lent) as f64, account.left() as f64);
        return Err(Error::TooCostly {
            what: "a circuit".to_owned(),
            needed: format!("{needed} for {} edges", quantity(layout.edges.len() as f64)),
            limit,
            advice: "raise the memory limit".to_owned(),
        });
    }
    account.reserve(fixed, lent);
    let weights = factors.list.iter().map(|factor| factor.weights).collect();
    Ok(Evaluator::new(&factors.model, &factors.states, Arc::clone(layout), weights, aim, account))
}

/// The smaller circuit of the two orders of branching, by the smallest budget that suffices for one of them.
fn smallest(problem: &Problem, max_edges: usize) -> Option<Graph> {
    let ranks = order::ranks(problem);
    for stage in STAGES.into_iter().filter(|&stage| stage <= max_edges) {
        let within = |branching: Branching, max_edges: usize| {
            let budget = Budget {
                max_edges,
                max_work: WORK_PER_EDGE * max_edges as f64,
                max_words: WORDS_PER_EDGE * max_edges,
            };
            compile(problem, &ranks, branching, budget).ok()
        };
        let dynamic = within(Branching::MostConstrained, stage);
        let n_edges = dynamic.as_ref().map_or(stage, Graph::n_edges);
        let race = || within(Branching::Static, n_edges).filter(|other| other.n_edges() < n_edges);
        let smaller = if stage <= MAX_RACE { race() } else { None };
        if let Some(graph) = smaller.or(dynamic) {
            return Some(graph);
        }
    }
    None
}
