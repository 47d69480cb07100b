//! Exact sums by the junction tree or by a circuit, whichever is cheaper.

use std::fmt;
use std::sync::Arc;

use super::{Engines, MAX_WORK, fits, refusal};
use crate::belief::{BeliefMatrix, Instance};
use crate::error::{Error, Result};
use crate::infer::circuit::{Circuit, CircuitPlan};
use crate::infer::factor::{Factor, Shape};
use crate::infer::junction_tree::order::{Graph, Heuristic};
use crate::infer::junction_tree::{JunctionTree, JunctionTreePlan};
use crate::infer::limits::quantity;
use crate::infer::samples::{Samples, Sampling};
use crate::label::LabelId;
use crate::model::Model;
use crate::posterior::{Engine, Posterior, Posteriors};
use crate::rule::RuleId;

/// A circuit is tried before the search for a junction tree if a greedy elimination order has more table entries than
/// this. A row of such a tree takes about 20 µs.
const EXPENSIVE_ORDER: f64 = 2e4;

/// Ratio between the table entries of a greedy order and those of the best order that a search finds. It was 50 to 100 on
/// the paper's models of 40 to 60 labels.
const SEARCH_GAIN: f64 = 100.0;

/// A circuit is tried after the search for a junction tree if a row of the tree takes more multiply-adds than this: about a
/// millisecond.
const EXPENSIVE_TREE: f64 = 1e6;

/// Maximum number of edges of a circuit that is tried first. Its search takes at most some hundredths of a second.
const QUICK_EDGES: usize = 4_000;

/// Maximum number of edges of a circuit by the automatic choice. Its search takes at most about half a second.
const AUTOMATIC_EDGES: usize = 64_000;

/// Maximum number of table entries of a greedy order. An order with larger cliques takes long to find.
const MAX_ENTRIES: f64 = 1e12;

/// Rules over more labels than this do not count for the greedy order. They would connect all pairs of their labels.
const MAX_SCOPE: usize = 64;

/// An exact engine for sums: marginals, ln Z and samples.
#[derive(Clone)]
pub(crate) enum Exact {
    Tree(Arc<JunctionTree>),
    Circuit(Arc<Circuit>),
}

/// The choice of an exact engine.
pub(crate) enum Choice {
    /// An engine and the reason for it.
    Engine(Exact, String),
    /// Both engines are too costly: the reason, and the error of the junction tree.
    Refused(String, Error),
}

impl fmt::Debug for Exact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tree(engine) => engine.fmt(f),
            Self::Circuit(engine) => engine.fmt(f),
        }
    }
}

impl Exact {
    pub(crate) fn model(&self) -> &Model {
        match self {
            Self::Tree(engine) => engine.model(),
            Self::Circuit(engine) => engine.model(),
        }
    }

    pub(crate) fn engine(&self) -> Engine {
        match self {
            Self::Tree(_) => Engine::JunctionTree,
            Self::Circuit(_) => Engine::Circuit,
        }
    }

    /// Number of multiply-adds per row.
    pub(crate) fn work(&self) -> f64 {
        match self {
            Self::Tree(engine) => engine.cost().multiply_adds,
            Self::Circuit(engine) => engine.size().multiply_adds,
        }
    }

    /// The cost of a row in a few words.
    pub(crate) fn cost(&self) -> String {
        match self {
            Self::Tree(engine) => format!("junction tree: {}", engine.cost()),
            Self::Circuit(engine) => format!("circuit: {}", engine.size()),
        }
    }

    /// Whether rows that lose digits can be computed again without loss. A circuit never loses digits.
    pub(crate) fn is_careful(&self) -> bool {
        match self {
            Self::Tree(engine) => engine.is_careful(),
            Self::Circuit(_) => true,
        }
    }

    pub(crate) fn infer(&self, instance: &impl Instance) -> Result<Posterior> {
        match self {
            Self::Tree(engine) => engine.infer(instance),
            Self::Circuit(engine) => engine.infer(instance),
        }
    }

    pub(crate) fn infer_row(&self, row: &[f64]) -> Result<Posterior> {
        match self {
            Self::Tree(engine) => engine.infer_row(row),
            Self::Circuit(engine) => engine.infer_row(row),
        }
    }

    /// The posterior of a row, or the rules in conflict if it is impossible.
    pub(crate) fn infer_row_or_conflict(&self, row: &[f64]) -> Result<Posterior, Vec<RuleId>> {
        match self {
            Self::Tree(engine) => engine.infer_row_or_conflict(row),
            Self::Circuit(engine) => engine.infer_row_or_conflict(row),
        }
    }

    pub(crate) fn infer_batch(&self, rows: &BeliefMatrix) -> Result<Posteriors> {
        match self {
            Self::Tree(engine) => engine.infer_batch(rows),
            Self::Circuit(engine) => engine.infer_batch(rows),
        }
    }

    /// Whether each category is possible for a row; all `false` if no assignment is. `None` if only a plan with signs fits.
    pub(crate) fn possible_categories(&self, row: &[f64]) -> Option<Vec<bool>> {
        let masses = match self {
            Self::Tree(engine) => {
                let answer = engine.careful().ok()?.one(row);
                if answer.log_total == f64::NEG_INFINITY { vec![0.0; row.len()] } else { answer.masses }
            }
            Self::Circuit(engine) => match engine.infer_row_or_conflict(row) {
                Ok(posterior) => posterior.marginals().to_vec(),
                Err(_) => vec![0.0; row.len()],
            },
        };
        Some(masses.iter().map(|&mass| mass > 0.0).collect())
    }

    pub(crate) fn agreement(&self, instance: &impl Instance) -> Result<Vec<f64>> {
        self.agreement_of(&instance.values(self.model())?)
    }

    pub(crate) fn agreement_of(&self, row: &[f64]) -> Result<Vec<f64>> {
        match self {
            Self::Tree(engine) => engine.agreement_of(row),
            Self::Circuit(engine) => engine.agreement_of(row),
        }
    }

    pub(crate) fn without_each_rule_of(&self, row: &[f64]) -> Result<Vec<Option<Vec<f64>>>> {
        match self {
            Self::Tree(engine) => engine.without_each_rule_of(row),
            Self::Circuit(engine) => engine.without_each_rule_of(row),
        }
    }

    pub(crate) fn sample(&self, instance: &impl Instance, sampling: &Sampling) -> Result<Samples> {
        match self {
            Self::Tree(engine) => engine.sample(instance, sampling),
            Self::Circuit(engine) => engine.sample(instance, sampling),
        }
    }

    pub(crate) fn sample_batch(
        &self,
        rows: &BeliefMatrix,
        sampling: &Sampling,
    ) -> Result<Vec<Result<Option<Samples>>>> {
        match self {
            Self::Tree(engine) => engine.sample_batch(rows, sampling),
            Self::Circuit(engine) => engine.sample_batch(rows, sampling),
        }
    }
}

impl Engines {
    /// Chooses the cheaper of junction tree and circuit, if a row of it takes at most `max_work` multiply-adds.
    ///
    /// A circuit is compiled only where it may pay: first for rule bases that are mostly hard and whose greedy order is
    /// expensive, then for models whose junction tree is expensive or refused.
    fn exact(&self, max_work: f64, max_edges: usize) -> Result<Choice> {
        if let Some(plan) = self.quick_circuit()
            && plan.size().multiply_adds
                <= (self.greedy_entries() / SEARCH_GAIN).max(EXPENSIVE_ORDER).min(max_work)
            && let Ok(circuit) = self.shared_circuit(&plan)
        {
            let entries = match self.greedy_entries() {
                f64::INFINITY => format!("more than {}", quantity(MAX_ENTRIES)),
                entries => quantity(entries),
            };
            let reason = format!(
                "circuit: {}; a junction tree by a greedy order has {entries} table entries",
                plan.size()
            );
            return Ok(Choice::Engine(Exact::Circuit(circuit), reason));
        }
        let limits = self.settings.limits;
        let plan = JunctionTreePlan::new_worth(self.factors(), limits, max_work);
        let plan = plan.and_then(|plan| plan.check().map(|()| plan));
        let (tree_work, refused) = match &plan {
            Ok(plan) if plan.cost().multiply_adds <= max_work => (plan.cost().multiply_adds, None),
            Ok(plan) => (f64::INFINITY, Some(too_slow(plan, max_work))),
            Err(refused @ Error::TooCostly { .. }) => (f64::INFINITY, Some(refused.clone())),
            Err(error) => return Err(error.clone()),
        };
        let why_no_circuit = match self.late_circuit(tree_work, max_edges) {
            None => {
                let edges = quantity(self.most_edges(max_edges) as f64);
                format!("a circuit has more than {edges} edges")
            }
            Some(plan) if plan.size().multiply_adds < tree_work.min(max_work) => {
                match self.shared_circuit(&plan) {
                    Ok(circuit) => {
                        let tree = match &refused {
                            Some(refused) => refusal(refused)?,
                            None => {
                                format!("a junction tree takes {} multiply-adds a row", quantity(tree_work))
                            }
                        };
                        let reason = format!("circuit: {}; {tree}", plan.size());
                        return Ok(Choice::Engine(Exact::Circuit(circuit), reason));
                    }
                    Err(refused) => refusal(&refused)?,
                }
            }
            Some(plan) => format!("a circuit takes {}", plan.size()),
        };
        let refused = match refused {
            Some(refused) => refused,
            None => match plan?.tree(self.account()) {
                Ok(tree) => {
                    let reason = fits(tree.cost(), limits);
                    return Ok(Choice::Engine(Exact::Tree(Arc::new(tree)), reason));
                }
                Err(refused @ Error::TooCostly { .. }) => refused,
                Err(error) => return Err(error),
            },
        };
        let reason = format!("{}; {why_no_circuit}", refusal(&refused)?);
        Ok(Choice::Refused(reason, refused))
    }

    /// The exact engine, or the error of the junction tree.
    pub(crate) fn require_exact(&self) -> Result<(Exact, String)> {
        match self.exact(f64::INFINITY, super::MAX_EDGES)? {
            Choice::Engine(engine, reason) => Ok((engine, reason)),
            Choice::Refused(_, error) => Err(error),
        }
    }

    /// The exact engine of the automatic choice.
    pub(crate) fn affordable_exact(&self) -> Result<Choice> {
        self.exact(MAX_WORK, AUTOMATIC_EDGES)
    }

    /// The exact engine if a row takes at most `max_work` multiply-adds, with circuits as in the automatic choice.
    pub(super) fn exact_within(&self, max_work: f64) -> Result<Choice> {
        self.exact(max_work, AUTOMATIC_EDGES)
    }

    /// The circuit of a plan, compiled once for all queries.
    pub(super) fn shared_circuit(&self, plan: &CircuitPlan) -> Result<Arc<Circuit>> {
        let circuit = self.circuit.get_or_init(|| plan.circuit(self.account()).map(Arc::new));
        circuit.clone()
    }

    /// A small circuit, if most rules are hard and a greedy elimination order is expensive.
    pub(crate) fn quick_circuit(&self) -> Option<Arc<CircuitPlan>> {
        let compile = || {
            let is_mostly_hard = 2 * self.n_hard() >= self.factors().list.len();
            if !is_mostly_hard || self.greedy_entries() <= EXPENSIVE_ORDER {
                return None;
            }
            CircuitPlan::new(self.factors(), QUICK_EDGES).ok().map(Arc::new)
        };
        self.quick_circuit.get_or_init(compile).clone()
    }

    /// A circuit in place of an expensive junction tree.
    fn late_circuit(&self, tree_work: f64, max_edges: usize) -> Option<Arc<CircuitPlan>> {
        if let Some(plan) = self.quick_circuit() {
            return Some(plan);
        }
        if tree_work <= EXPENSIVE_TREE || (tree_work.is_finite() && self.n_hard() == 0) {
            return None;
        }
        // A circuit with more edges than this is not cheaper than the tree.
        let most = self.most_edges(max_edges).min((tree_work / 4.0) as usize);
        CircuitPlan::new(self.factors(), most).ok().map(Arc::new)
    }

    /// Without hard rules, circuits are rarely small, so only a quick search is made.
    fn most_edges(&self, max_edges: usize) -> usize {
        if self.n_hard() == 0 { QUICK_EDGES } else { max_edges }
    }

    /// Number of formulas of probability 0 or 1 about several labels. A noisy-or of probability 1 excludes no combination
    /// of categories, unless its inhibition probabilities are 0 and 1.
    pub(crate) fn n_hard(&self) -> usize {
        let excludes = |factor: &&Factor| {
            let is_crisp = match &factor.shape {
                Shape::RankOne(q) => q.iter().all(|(_, q)| q.iter().all(|&q| q == 0.0 || q == 1.0)),
                Shape::Logical(_) => true,
            };
            is_crisp && factor.weights.contains(&0.0) && self.factors().scope(factor).len() > 1
        };
        self.factors().list.iter().filter(excludes).count()
    }

    /// Number of table entries of a greedy elimination order, if each rule is a table over its labels. It is infinite above
    /// [`MAX_ENTRIES`].
    fn greedy_entries(&self) -> f64 {
        *self.greedy_entries.get_or_init(|| {
            let factors = self.factors();
            let scopes: Vec<Vec<usize>> = factors
                .list
                .iter()
                .map(|factor| factors.scope(factor).into_iter().map(LabelId::index).collect::<Vec<_>>())
                .filter(|scope| scope.len() <= MAX_SCOPE)
                .collect();
            let bits = |states: &Vec<_>| ((states.len() as f64).log2() * 1024.0) as i64;
            let sizes = factors.states.representatives.iter().map(bits).collect();
            let graph = Graph::of_cliques(sizes, scopes.iter().map(Vec::as_slice));
            let order = graph.eliminate(Heuristic::MinFill, 0.0, 0, MAX_ENTRIES, &mut 0.0);
            order.map_or(f64::INFINITY, |order| order.clique_entries)
        })
    }
}

/// The refusal of a plan that takes too many multiply-adds per row.
fn too_slow(plan: &JunctionTreePlan, max_work: f64) -> Error {
    let unit = "multiply-adds a row";
    Error::TooCostly {
        what: "exact inference".to_owned(),
        needed: format!("{} {unit}", quantity(plan.cost().multiply_adds)),
        limit: format!("{} {unit}", quantity(max_work)),
        advice: "use loopy propagation".to_owned(),
    }
}
