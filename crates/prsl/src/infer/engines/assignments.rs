//! Most probable assignments by the engine that was chosen.

use std::sync::Arc;

use super::{
    EngineChoice, Engines, MAX_WORK, enumeration_reason, enumeration_work, fits, loopy_reason, loopy_work,
    refusal,
};
use crate::belief::{BeliefMatrix, Instance};
use crate::error::{Error, Result};
use crate::infer::branch_and_bound::BranchAndBound;
use crate::infer::circuit::Circuit;
use crate::infer::enumeration::Enumeration;
use crate::infer::limits::{Cost, Limits, bytes, quantity};
use crate::infer::loopy::Loopy;
use crate::infer::max_product::{MaxProductPlan, MaxProductTree};
use crate::model::Model;
use crate::posterior::{Engine, MostProbable, RankedAssignments, SearchEnd};

/// Maximum multiply-adds per row for a junction tree by the automatic choice. Above it, branch and bound is faster:
/// it takes 0.1 to 0.3 ms per row for a model of 30 labels.
const MAX_TREE_WORK: f64 = 2e4;

/// An engine for most probable assignments. They are proven to be optimal if the limits allow it.
///
/// The automatic choice is a small [`Circuit`] if most rules are hard. Otherwise it is a junction tree if its tables fit
/// the memory and a row takes at most 20,000 multiply-adds, and else [`BranchAndBound`]. Rows that branch and bound leaves without a proof go to a junction tree, if it
/// fits the memory and takes at most 2e9 multiply-adds. Loopy propagation gives no proof and is used only if it is
/// requested.
///
/// ```
/// use prsl::infer::Engines;
/// use prsl::{Evidence, Model};
///
/// let model = Model::parse("label weather: sun, rain\nlabel ground: dry, wet\nrule 0.95: wet <- rain")?;
/// let engine = Engines::new(&model).assignments()?;
/// let best = engine.best(&Evidence::new().belief("weather", [0.4, 0.6]).belief("ground", [0.7, 0.3]))?;
/// assert_eq!(best.assignment, [0, 0]); // sun and dry
/// assert!(best.is_optimal());
/// # Ok::<(), prsl::Error>(())
/// ```
#[derive(Debug)]
pub struct AssignmentEngine {
    kind: Kind,
    reason: String,
}

#[derive(Debug)]
enum Kind {
    Tree(Box<MaxProductTree>),
    Circuit(Arc<Circuit>),
    Search(Box<Search>),
    Loopy(Box<Loopy>),
    Enumeration(Enumeration),
}

/// Branch and bound, and a junction tree for rows without a proof.
#[derive(Debug)]
struct Search {
    search: BranchAndBound,
    /// `None` if it is too expensive.
    tree: Option<MaxProductTree>,
}

impl AssignmentEngine {
    pub(super) fn compile(engines: &Engines) -> Result<Self> {
        let (kind, reason) = match engines.choice {
            EngineChoice::Auto | EngineChoice::Exact => automatic(engines)?,
            EngineChoice::JunctionTree => {
                let tree = engines.max_product_tree()?;
                let reason = format!("junction tree: as asked for, {}", tree.cost());
                (Kind::Tree(Box::new(tree)), reason)
            }
            EngineChoice::Circuit => {
                let circuit = engines.named_circuit()?;
                circuit.check_maxima()?;
                let reason = format!("circuit: as asked for, {}", circuit.size());
                (Kind::Circuit(circuit), reason)
            }
            EngineChoice::Loopy => {
                let loopy = engines.loopy()?;
                let reason = loopy_reason(&loopy, loopy.settings().assignment_sweeps);
                (Kind::Loopy(loopy), reason)
            }
            EngineChoice::Enumeration => {
                let engine = Enumeration::compile(engines.model())?;
                (Kind::Enumeration(engine), enumeration_reason(engines.model()))
            }
        };
        Ok(Self { kind, reason })
    }

    /// The model that it was compiled from.
    pub fn model(&self) -> &Model {
        match &self.kind {
            Kind::Tree(engine) => engine.model(),
            Kind::Circuit(engine) => engine.model(),
            Kind::Search(engine) => engine.search.model(),
            Kind::Loopy(engine) => engine.model(),
            Kind::Enumeration(engine) => engine.model(),
        }
    }

    /// The engine that answers first.
    pub fn engine(&self) -> Engine {
        match &self.kind {
            Kind::Tree(_) => Engine::JunctionTree,
            Kind::Circuit(_) => Engine::Circuit,
            Kind::Search(_) => Engine::BranchAndBound,
            Kind::Loopy(_) => Engine::Loopy,
            Kind::Enumeration(_) => Engine::Enumeration,
        }
    }

    /// The chosen engine and the reason for the choice, as a sentence.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// The cost of a row with a junction tree; `None` for other engines.
    pub fn cost(&self) -> Option<Cost> {
        match &self.kind {
            Kind::Tree(engine) => Some(engine.cost()),
            _ => None,
        }
    }

    /// An estimate of the number of multiplications per row.
    pub fn work(&self) -> f64 {
        match &self.kind {
            Kind::Tree(engine) => engine.cost().multiply_adds,
            Kind::Circuit(engine) => engine.size().multiply_adds,
            // Unknown in advance. A large estimate makes progress visible early.
            Kind::Search(_) => 1e8,
            Kind::Loopy(engine) => loopy_work(engine.model()),
            Kind::Enumeration(engine) => enumeration_work(engine.model()),
        }
    }

    /// The most probable assignment of one instance. Ties are broken arbitrarily, but always in the same way.
    pub fn best(&self, instance: &impl Instance) -> Result<MostProbable> {
        let row = instance.values(self.model())?;
        self.top_row(&row, 1).best_or_error(self.model(), &row)
    }

    /// The `n` most probable assignments of one instance, best first. The list is shorter if fewer are possible, or
    /// were found within the limits.
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
        match &self.kind {
            Kind::Tree(engine) => engine.top_batch(rows, n),
            Kind::Circuit(engine) => engine.top_batch(rows, n),
            Kind::Search(engine) => engine.top_batch(rows, n),
            Kind::Loopy(engine) => engine.top_batch(rows, n),
            Kind::Enumeration(engine) => engine.top_batch(rows, n),
        }
    }

    pub(crate) fn top_row(&self, row: &[f64], n: usize) -> RankedAssignments {
        match &self.kind {
            Kind::Tree(engine) => engine.top_row(row, n),
            Kind::Circuit(engine) => engine.top_row(row, n),
            Kind::Search(engine) => engine.top_row(row, n),
            Kind::Loopy(engine) => engine.top_row(row, n),
            Kind::Enumeration(engine) => engine.top_row(row, n),
        }
    }
}

/// Chooses a small circuit if most rules are hard, the junction tree if a row takes at most [`MAX_TREE_WORK`] multiply-adds,
/// and branch and bound otherwise.
fn automatic(engines: &Engines) -> Result<(Kind, String)> {
    let limits = engines.settings.limits;
    // For rule bases that are mostly hard, a small circuit is the fastest proof.
    if let Some(plan) = engines.quick_circuit()
        && let Ok(circuit) = engines.shared_circuit(&plan)
        && circuit.check_maxima().is_ok()
    {
        let reason = format!("circuit: {}", circuit.size());
        return Ok((Kind::Circuit(circuit), reason));
    }
    let plan = MaxProductPlan::new(engines.factors(), limits);
    let tree = plan.as_ref().map_err(Error::clone).and_then(|plan| match plan.cost().multiply_adds {
        work if work <= MAX_TREE_WORK => plan.tree(engines.account()).map(Some),
        _ => Ok(None),
    });
    let why = match (tree, &plan) {
        (Ok(Some(tree)), _) => {
            let reason = fits(tree.cost(), limits);
            return Ok((Kind::Tree(Box::new(tree)), reason));
        }
        (Ok(None), Ok(plan)) => slower(plan, limits),
        (_, Err(error)) => refusal(error)?,
        (Err(error), _) => refusal(&error)?,
    };
    match BranchAndBound::new(engines.model(), engines.factors(), engines.account(), engines.settings.search)
    {
        Ok(search) => {
            let plan = plan.ok().filter(|plan| plan.cost().multiply_adds <= MAX_WORK);
            let tree = plan.and_then(|plan| plan.tree(engines.account()).ok());
            let search = Search { search, tree };
            Ok((Kind::Search(Box::new(search)), format!("branch and bound: {why}")))
        }
        // Branch and bound needs too much memory, so a slow junction tree is better than an error.
        Err(refused @ Error::TooCostly { .. }) => {
            let tree = plan.and_then(|plan| plan.tree(engines.account())).map_err(|_| refused)?;
            let reason = fits(tree.cost(), limits);
            Ok((Kind::Tree(Box::new(tree)), reason))
        }
        Err(error) => Err(error),
    }
}

/// The reason for not using a plan: it does not fit, or branch and bound is faster.
fn slower(plan: &MaxProductPlan, limits: Limits) -> String {
    let cost = plan.cost();
    if cost.bytes > limits.memory as f64 {
        let (needed, limit) = (bytes(cost.bytes), bytes(limits.memory as f64));
        return format!("a junction tree needs {needed}, more than the limit of {limit}");
    }
    let limit = quantity(MAX_TREE_WORK);
    format!("faster than a junction tree, which takes {cost}, more than {limit} of them")
}

impl Search {
    fn top_batch(&self, rows: &BeliefMatrix, n: usize) -> Result<Vec<RankedAssignments>> {
        let mut found = self.search.top_batch(rows, n)?;
        let open: Vec<usize> = (0..found.len()).filter(|&row| is_open(&found[row], n)).collect();
        if !open.is_empty()
            && let Some(tree) = self.tree(n)
        {
            let finished = tree.top_batch(&rows.select(&open), n)?;
            for (row, best) in open.into_iter().zip(finished) {
                found[row] = best;
            }
        }
        Ok(found)
    }

    fn top_row(&self, row: &[f64], n: usize) -> RankedAssignments {
        let found = self.search.top_row(row, n);
        if !is_open(&found, n) {
            return found;
        }
        self.tree(n).map_or(found, |tree| tree.top_row(row, n))
    }

    /// The tree, if the `n` best assignments of a row take at most [`MAX_WORK`] multiply-adds.
    fn tree(&self, n: usize) -> Option<&MaxProductTree> {
        let n_sweeps = MaxProductTree::sweeps(n);
        self.tree.as_ref().filter(|tree| tree.cost().multiply_adds * n_sweeps <= MAX_WORK)
    }
}

/// Whether a better assignment than those found may exist, or more of them.
fn is_open(found: &RankedAssignments, n: usize) -> bool {
    let is_proven = found.len() == n && found.iter().all(MostProbable::is_optimal);
    found.end() != SearchEnd::Complete && !is_proven
}
