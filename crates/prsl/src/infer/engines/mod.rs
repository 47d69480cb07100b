//! The choice of engines, by name or automatically.

mod assignments;
pub(crate) mod exact;
mod log_evidence;
mod marginals;
mod sampler;

use std::fmt;
use std::sync::{Arc, OnceLock};

pub use assignments::AssignmentEngine;
pub use log_evidence::LogEvidence;
pub use marginals::MarginalEngine;
pub use sampler::Sampler;

use super::account::Account;
use super::branch_and_bound::SearchLimits;
use super::circuit::{Circuit, CircuitPlan, MAX_EDGES};
use super::factor::Factors;
use super::junction_tree::{JunctionTree, JunctionTreePlan};
use super::limits::{Cost, Limits, bytes};
use super::loopy::{Loopy, LoopySettings};
use super::max_product::{MaxProductPlan, MaxProductTree};
use crate::error::{Error, Result};
use crate::model::Model;

/// The engine to use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EngineChoice {
    /// The automatic choice: exact inference if it is affordable.
    #[default]
    Auto,
    /// Exact inference: the cheaper of junction tree and circuit. Most probable assignments may use branch and bound.
    Exact,
    /// Exact inference by a junction tree.
    JunctionTree,
    /// Exact inference by a circuit.
    Circuit,
    /// Approximate inference by loopy propagation.
    Loopy,
    /// The sum over all assignments, for small models.
    Enumeration,
}

impl EngineChoice {
    /// All choices.
    pub const ALL: [Self; 6] =
        [Self::Auto, Self::Exact, Self::JunctionTree, Self::Circuit, Self::Loopy, Self::Enumeration];

    /// The name of the choice: `auto`, `exact`, `junction-tree`, `circuit`, `loopy` or `enumeration`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Exact => "exact",
            Self::JunctionTree => "junction-tree",
            Self::Circuit => "circuit",
            Self::Loopy => "loopy",
            Self::Enumeration => "enumeration",
        }
    }

    /// The choice called `name`, if there is one.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|choice| choice.name() == name)
    }
}

/// Limits and settings of the engines.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct EngineSettings {
    /// Limits of compiled engines.
    pub limits: Limits,
    /// Settings of loopy propagation.
    pub loopy: LoopySettings,
    /// Limits on branch and bound for one row.
    pub search: SearchLimits,
}

/// Compiles the engines of a model, by name or automatically; see the [module](crate::infer).
///
/// The memory limit holds for all engines together that one value compiles. An engine that does not fit beside those
/// before it is refused, or replaced by a smaller one, as with a smaller limit.
pub struct Engines {
    model: Model,
    choice: EngineChoice,
    settings: EngineSettings,
    factors: OnceLock<Arc<Factors>>,
    account: OnceLock<Arc<Account>>,
    /// The circuit of all queries, and the plan of a small one; see [`exact`].
    circuit: OnceLock<Result<Arc<Circuit>>>,
    quick_circuit: OnceLock<Option<Arc<CircuitPlan>>>,
    /// Table entries of a greedy elimination order.
    greedy_entries: OnceLock<f64>,
}

impl fmt::Debug for Engines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Engines");
        debug.field("choice", &self.choice).field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Engines {
    /// The automatic choice with default settings.
    pub fn new(model: &Model) -> Self {
        let (choice, settings) = (EngineChoice::default(), EngineSettings::default());
        Self {
            model: model.clone(),
            choice,
            settings,
            factors: OnceLock::new(),
            account: OnceLock::new(),
            circuit: OnceLock::new(),
            quick_circuit: OnceLock::new(),
            greedy_entries: OnceLock::new(),
        }
    }

    /// Sets the engine to use.
    pub fn with_choice(self, choice: EngineChoice) -> Self {
        Self { choice, ..self }
    }

    /// Sets all limits and settings.
    pub fn with_settings(self, settings: EngineSettings) -> Self {
        Self { settings, account: OnceLock::new(), circuit: OnceLock::new(), ..self }
    }

    /// Sets the limits of compiled engines.
    pub fn with_limits(self, limits: Limits) -> Self {
        let settings = EngineSettings { limits, ..self.settings };
        self.with_settings(settings)
    }

    /// The same choice and settings for another model.
    pub(crate) fn of(&self, model: &Model) -> Self {
        Self::new(model).with_settings(self.settings).with_choice(self.choice)
    }

    /// The engine to use.
    pub fn choice(&self) -> EngineChoice {
        self.choice
    }

    /// The model that engines are compiled from.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Compiles the engine for marginals.
    pub fn marginals(&self) -> Result<MarginalEngine> {
        MarginalEngine::compile(self)
    }

    /// Compiles the engine for most probable assignments.
    pub fn assignments(&self) -> Result<AssignmentEngine> {
        AssignmentEngine::compile(self)
    }

    /// Compiles the engine for joint samples. [`EngineChoice::Exact`] returns an error if only Gibbs sampling fits
    /// the memory.
    pub fn sampler(&self) -> Result<Sampler> {
        Sampler::compile(self)
    }

    /// Compiles an engine for ln Z, which the probabilities of assignments need. Returns `None` if the marginals have
    /// ln Z.
    pub fn log_evidence(&self, marginals: Option<&MarginalEngine>) -> Result<Option<LogEvidence>> {
        LogEvidence::beside(self, marginals)
    }

    /// Bytes of memory that the engines compiled so far hold, as counted for the limit.
    ///
    /// ```
    /// use prsl::{Engines, Model};
    ///
    /// let engines = Engines::new(&Model::parse("label a\nlabel b\nrule 0.9: a -> b")?);
    /// assert_eq!(engines.memory(), 0);
    /// let engine = engines.marginals()?;
    /// assert!(engines.memory() > 0);
    /// # Ok::<(), prsl::Error>(())
    /// ```
    pub fn memory(&self) -> u64 {
        self.account.get().map_or(0, |account| account.held())
    }

    pub(crate) fn factors(&self) -> &Arc<Factors> {
        self.factors.get_or_init(|| Arc::new(Factors::new(&self.model)))
    }

    /// The memory of all engines.
    fn account(&self) -> &Arc<Account> {
        self.account.get_or_init(|| Account::new(self.settings.limits.memory))
    }

    /// Compiles the junction tree. Returns an error if it exceeds the limits.
    pub(crate) fn tree(&self) -> Result<JunctionTree> {
        JunctionTreePlan::new(self.factors(), self.settings.limits)?.tree(self.account())
    }

    /// Compiles the max-product tree. Returns an error if it exceeds the limits.
    pub(crate) fn max_product_tree(&self) -> Result<MaxProductTree> {
        MaxProductPlan::new(self.factors(), self.settings.limits)?.tree(self.account())
    }

    /// The memory that the engines so far have left.
    pub(crate) fn left(&self) -> Limits {
        Limits { memory: self.account().left() }
    }

    /// Compiles the circuit.
    pub(crate) fn named_circuit(&self) -> Result<Arc<Circuit>> {
        self.shared_circuit(&CircuitPlan::new(self.factors(), MAX_EDGES)?)
    }

    /// Compiles loopy propagation.
    fn loopy(&self) -> Result<Box<Loopy>> {
        let loopy = Loopy::new(&self.model, self.factors(), self.settings.loopy)?;
        loopy.reserve(self.account(), rayon::current_num_threads())?;
        Ok(Box::new(loopy))
    }

    /// Compiles loopy propagation, with memory for a second engine of the same size.
    pub(crate) fn two_loopy(&self) -> Result<Box<Loopy>> {
        let loopy = self.loopy()?;
        loopy.reserve(self.account(), 1)?;
        Ok(loopy)
    }
}

/// Maximum multiply-adds per row for exact marginals by the automatic choice. They take a few seconds on one core.
const MAX_WORK: f64 = 2e9;

/// The reason if a junction tree fits the memory.
fn fits(cost: Cost, limits: Limits) -> String {
    format!("junction tree: {cost}, fits the limit of {}", bytes(limits.memory as f64))
}

/// The reason for a refusal, without its advice, which the automatic choice follows. Returns other errors unchanged.
fn refusal(error: &Error) -> Result<String> {
    match error {
        Error::TooCostly { what, needed, limit, .. } => {
            Ok(format!("{what} needs {needed}, more than the limit of {limit}"))
        }
        other => Err(other.clone()),
    }
}

fn n_assignments(model: &Model) -> f64 {
    model.labels().iter().map(|label| label.n_categories() as f64).product()
}

fn enumeration_reason(model: &Model) -> String {
    format!("enumeration: as asked for, {} assignments", n_assignments(model))
}

fn enumeration_work(model: &Model) -> f64 {
    n_assignments(model) * (model.labels().len() + model.rules().len()) as f64
}

fn loopy_reason(engine: &Loopy, max_sweeps: usize) -> String {
    let n_rules = engine.model().rules().len();
    format!("loopy: as asked for, at most {max_sweeps} sweeps over {n_rules} rules")
}

/// Estimates the multiplications of a row: about thirty sweeps, with ten operations for each category.
fn loopy_work(model: &Model) -> f64 {
    300.0 * (model.n_categories() + 10 * model.rules().len()) as f64
}
