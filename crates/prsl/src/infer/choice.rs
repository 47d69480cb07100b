//! The engine that suits a model, chosen by what each would take.

use std::sync::OnceLock;

use rayon::prelude::*;

use super::branch_and_bound::{BranchAndBound, SearchLimits};
use super::junction_tree::plan::{bytes, quantity};
use super::junction_tree::{Cost, JunctionTree, JunctionTreePlan, Limits};
use super::loopy::{Loopy, LoopySettings};
use super::mpe::{MaxProductPlan, MaxProductTree};
use crate::belief::BeliefMatrix;
use crate::error::{Error, Result};
use crate::evidence::Evidence;
use crate::model::Model;
use crate::posterior::{Engine, MostProbable, Posterior, Posteriors, RankedExplanations, SearchEnd};

/// Multiply-adds a row up to which exact marginals are worth waiting for: a few seconds on one core.
pub const MAX_WORK: f64 = 2e9;
/// Multiply-adds a row up to which a junction tree explains faster than branch and bound, which takes 0.1 to 0.3 ms for
/// a model of 30 labels.
pub const MAX_EXPLANATION_WORK: f64 = 2e4;

/// Marginals of any model: exact where the junction tree fits the limits, by [`Loopy`] propagation otherwise.
///
/// The junction tree is taken if its tables fit the memory and a row takes no more than [`MAX_WORK`] multiply-adds.
/// [`Self::reason`] says in a sentence what was chosen, and why.
///
/// ```
/// use prsl::{Engine, Evidence, Limits, LoopySettings, MarginalEngine, Model};
///
/// let model = Model::parse("label weather: sun, rain\nlabel ground: dry, wet\nrule 0.95: wet <- rain")?;
/// let engine = MarginalEngine::compile(&model, Limits::default(), LoopySettings::default())?;
/// assert_eq!(engine.engine(), Engine::JunctionTree);
/// let posterior = engine.infer(&Evidence::new().belief("weather", [0.1, 0.9]).belief("ground", [0.7, 0.3]))?;
/// assert_eq!(posterior.to_string(), "\
/// weather  sun 0.248  rain 0.752
/// ground   dry 0.256  wet 0.744
/// ");
/// # Ok::<(), prsl::Error>(())
/// ```
pub struct MarginalEngine {
    kind: MarginalKind,
    reason: String,
}

enum MarginalKind {
    Tree(Box<JunctionTree>),
    Loopy(Box<Loopy>),
}

impl MarginalEngine {
    /// Compiles the junction tree if that is within the limits, and loopy propagation with these settings if not.
    pub fn compile(model: &Model, limits: Limits, settings: LoopySettings) -> Result<Self> {
        settings.check()?;
        let (tree, reason) = match affordable_tree(model, limits, MAX_WORK) {
            Ok(Affordable::Yes(tree)) => {
                let reason = marginal_reason(Ok(tree.cost()), limits)?;
                (Some(tree), reason)
            }
            Ok(Affordable::No(cost)) => (None, marginal_reason(Ok(cost), limits)?),
            Err(error) => (None, marginal_reason(Err(&error), limits)?),
        };
        let kind = match tree {
            Some(tree) => MarginalKind::Tree(tree),
            None => MarginalKind::Loopy(Box::new(Loopy::compile_with(model, settings)?)),
        };
        Ok(Self { kind, reason })
    }

    /// The model it was compiled from.
    pub fn model(&self) -> &Model {
        match &self.kind {
            MarginalKind::Tree(engine) => engine.model(),
            MarginalKind::Loopy(engine) => engine.model(),
        }
    }

    /// Which engine was chosen: [`Engine::JunctionTree`] or [`Engine::Loopy`].
    pub fn engine(&self) -> Engine {
        match &self.kind {
            MarginalKind::Tree(_) => Engine::JunctionTree,
            MarginalKind::Loopy(_) => Engine::Loopy,
        }
    }

    /// Which engine was chosen and why, for people.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// What a row takes; unknown for loopy propagation, which ends when its messages come to rest.
    pub fn cost(&self) -> Option<Cost> {
        match &self.kind {
            MarginalKind::Tree(engine) => Some(engine.cost()),
            MarginalKind::Loopy(_) => None,
        }
    }

    /// The marginals of one instance.
    pub fn infer(&self, evidence: &Evidence) -> Result<Posterior> {
        match &self.kind {
            MarginalKind::Tree(engine) => engine.infer(evidence),
            MarginalKind::Loopy(engine) => engine.infer(evidence),
        }
    }

    /// All marginals and ln Z for many rows; a row that is impossible does not disturb the others.
    pub fn infer_batch(&self, rows: &BeliefMatrix) -> Posteriors {
        match &self.kind {
            MarginalKind::Tree(engine) => engine.infer_batch(rows),
            MarginalKind::Loopy(engine) => engine.infer_batch(rows),
        }
    }
}

/// A junction tree, or what a row would take if that is too much.
pub(crate) enum Affordable {
    Yes(Box<JunctionTree>),
    No(Cost),
}

/// The junction tree, if a row takes no more than so many multiply-adds. It is laid out only then.
pub(crate) fn affordable_tree(model: &Model, limits: Limits, work: f64) -> Result<Affordable> {
    let plan = JunctionTreePlan::new_worth(model, limits, work)?;
    plan.check()?;
    match plan.cost() {
        cost if cost.multiply_adds > work => Ok(Affordable::No(cost)),
        _ => Ok(Affordable::Yes(Box::new(plan.tree()?))),
    }
}

/// Which engine [`MarginalEngine`] takes and why, given what the junction tree takes.
pub(crate) fn marginal_reason(cost: Result<Cost, &Error>, limits: Limits) -> Result<String> {
    match cost {
        Ok(cost) if cost.multiply_adds <= MAX_WORK => Ok(fits(cost, limits)),
        Ok(cost) => Ok(format!(
            "loopy: exact inference takes {cost}, more than the limit of {} multiply-adds",
            quantity(MAX_WORK)
        )),
        Err(error) => Ok(format!("loopy: {}", refusal(error)?)),
    }
}

fn fits(cost: Cost, limits: Limits) -> String {
    format!("junction tree: {cost}, fits the limit of {}", bytes(limits.memory as f64))
}

/// What is too much, without the advice to do what is done anyway; other errors remain.
fn refusal(error: &Error) -> Result<String> {
    match error {
        Error::TooCostly { what, needed, limit, .. } => {
            Ok(format!("{what} needs {needed}, more than the limit of {limit}"))
        }
        other => Err(other.clone()),
    }
}

/// Most probable explanations of any model, proven wherever the limits allow.
///
/// A junction tree is taken if its tables fit the memory and a row takes no more than [`MAX_EXPLANATION_WORK`]
/// multiply-adds, [`BranchAndBound`] otherwise. Where that reaches its limit without proof, and a junction tree fits the
/// memory and answers with at most [`MAX_WORK`] multiply-adds, the junction tree finishes the row; the next best
/// explanations take it a run for each label. Loopy propagation, which proves nothing, is never taken.
///
/// ```
/// use prsl::{BeliefMatrix, Evidence, ExplanationEngine, Limits, Model, SearchLimits};
///
/// let model = Model::parse("label weather: sun, rain\nlabel ground: dry, wet\nrule 0.95: wet <- rain")?;
/// let mut rows = BeliefMatrix::new(&model);
/// rows.push_evidence(&Evidence::new().belief("weather", [0.4, 0.6]).belief("ground", [0.7, 0.3]))?;
/// let engine = ExplanationEngine::compile(&model, Limits::default(), SearchLimits::default())?;
/// let best = engine.best_batch(&rows).remove(0).expect("possible");
/// assert_eq!(best.assignment, [0, 0]); // sun and dry
/// assert!(best.is_optimal());
/// # Ok::<(), prsl::Error>(())
/// ```
pub struct ExplanationEngine {
    kind: ExplanationKind,
    reason: String,
}

enum ExplanationKind {
    Tree(Box<MaxProductTree>),
    Search(Box<Search>),
}

/// Branch and bound, and how to finish what it does not.
struct Search {
    search: BranchAndBound,
    plan: Option<MaxProductPlan>,
    /// Laid out when a row first needs it; `None` if it does not fit after all.
    tree: OnceLock<Option<MaxProductTree>>,
}

impl ExplanationEngine {
    /// Chooses between the junction tree and branch and bound with these limits for every row.
    pub fn compile(model: &Model, limits: Limits, search_limits: SearchLimits) -> Result<Self> {
        let plan = MaxProductPlan::new(model, limits);
        let tree = plan.as_ref().map_err(Error::clone).and_then(|plan| match plan.cost().multiply_adds {
            work if work <= MAX_EXPLANATION_WORK => plan.tree().map(Some),
            _ => Ok(None),
        });
        let why = match (tree, &plan) {
            (Ok(Some(tree)), _) => {
                let reason = fits(tree.cost(), limits);
                return Ok(Self { kind: ExplanationKind::Tree(Box::new(tree)), reason });
            }
            (Ok(None), Ok(plan)) => slower(plan, limits),
            (_, Err(error)) => refusal(error)?,
            (Err(error), _) => refusal(&error)?,
        };
        let reason = format!("branch and bound: {why}");
        match BranchAndBound::compile_within(model, limits, search_limits) {
            Ok(search) => {
                let search = Search { search, plan: plan.ok(), tree: OnceLock::new() };
                Ok(Self { kind: ExplanationKind::Search(Box::new(search)), reason })
            }
            // Slow is better than nothing.
            Err(refused @ Error::TooCostly { .. }) => {
                let tree = plan.and_then(|plan| plan.tree()).map_err(|_| refused)?;
                let reason = fits(tree.cost(), limits);
                Ok(Self { kind: ExplanationKind::Tree(Box::new(tree)), reason })
            }
            Err(error) => Err(error),
        }
    }

    /// The model it was compiled from.
    pub fn model(&self) -> &Model {
        match &self.kind {
            ExplanationKind::Tree(engine) => engine.model(),
            ExplanationKind::Search(engine) => engine.search.model(),
        }
    }

    /// Which engine was chosen: [`Engine::JunctionTree`] or [`Engine::BranchAndBound`].
    pub fn engine(&self) -> Engine {
        match &self.kind {
            ExplanationKind::Tree(_) => Engine::JunctionTree,
            ExplanationKind::Search(_) => Engine::BranchAndBound,
        }
    }

    /// Which engine was chosen and why, for people.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// What a row takes; unknown for branch and bound, which ends when it has a proof.
    pub fn cost(&self) -> Option<Cost> {
        match &self.kind {
            ExplanationKind::Tree(engine) => Some(engine.cost()),
            ExplanationKind::Search(_) => None,
        }
    }

    /// The most probable explanation of every row. `None` where the evidence is impossible, or nothing possible was
    /// found within the limits: [`Self::top_batch`] tells which.
    pub fn best_batch(&self, rows: &BeliefMatrix) -> Vec<Option<MostProbable>> {
        self.top_batch(rows, 1).into_iter().map(RankedExplanations::into_best).collect()
    }

    /// The `n` most probable explanations of every row.
    pub fn top_batch(&self, rows: &BeliefMatrix, n: usize) -> Vec<RankedExplanations> {
        match &self.kind {
            ExplanationKind::Tree(engine) => in_tree(engine, rows, n),
            ExplanationKind::Search(engine) => engine.top_batch(rows, n),
        }
    }

    /// The `n` most probable explanations of a row of completed beliefs, best first; fewer if no more are possible, or no
    /// more were found within the limits.
    pub fn top(&self, row: &[f64], n: usize) -> RankedExplanations {
        match &self.kind {
            ExplanationKind::Tree(engine) => RankedExplanations::complete(engine.top(row, n)),
            ExplanationKind::Search(engine) => engine.top(row, n),
        }
    }
}

/// The `n` best of every row along a tree; one of each is found for several rows side by side.
fn in_tree(tree: &MaxProductTree, rows: &BeliefMatrix, n: usize) -> Vec<RankedExplanations> {
    if n == 1 {
        let complete = |best: Option<MostProbable>| RankedExplanations::complete(best.into_iter().collect());
        return tree.best_batch(rows).into_iter().map(complete).collect();
    }
    let top = |row: usize| RankedExplanations::complete(tree.top(rows.row(row), n));
    (0..rows.n_rows()).into_par_iter().map(top).collect()
}

/// Why a plan is left alone: it does not fit, or it fits and takes long.
fn slower(plan: &MaxProductPlan, limits: Limits) -> String {
    let cost = plan.cost();
    if cost.bytes > limits.memory as f64 {
        let (needed, limit) = (bytes(cost.bytes), bytes(limits.memory as f64));
        return format!("a junction tree needs {needed}, more than the limit of {limit}");
    }
    let limit = quantity(MAX_EXPLANATION_WORK);
    format!("faster than a junction tree, which takes {cost}, more than {limit} of them")
}

impl Search {
    fn top_batch(&self, rows: &BeliefMatrix, n: usize) -> Vec<RankedExplanations> {
        let mut found = self.search.top_batch(rows, n);
        let open: Vec<usize> = (0..found.len()).filter(|&row| is_open(&found[row], n)).collect();
        if !open.is_empty()
            && let Some(tree) = self.tree(n)
        {
            let finished = in_tree(tree, &rows.select(&open), n);
            for (row, best) in open.into_iter().zip(finished) {
                found[row] = best;
            }
        }
        found
    }

    fn top(&self, row: &[f64], n: usize) -> RankedExplanations {
        let found = self.search.top(row, n);
        if !is_open(&found, n) {
            return found;
        }
        self.tree(n).map_or(found, |tree| RankedExplanations::complete(tree.top(row, n)))
    }

    /// The tree, if a row's `n` best explanations take no more than [`MAX_WORK`].
    fn tree(&self, n: usize) -> Option<&MaxProductTree> {
        let n_sweeps = MaxProductTree::sweeps(n);
        let plan = self.plan.as_ref().filter(|plan| plan.cost().multiply_adds * n_sweeps <= MAX_WORK)?;
        self.tree.get_or_init(|| plan.tree().ok()).as_ref()
    }
}

/// Whether something better may exist than was found, or more of it.
fn is_open(found: &RankedExplanations, n: usize) -> bool {
    let is_proven = found.len() == n && found.iter().all(MostProbable::is_optimal);
    found.end() != SearchEnd::Complete && !is_proven
}
