//! Marginals by the chosen engine.

use std::sync::Arc;

use super::exact::{Choice, Exact};
use super::{EngineChoice, Engines, enumeration_reason, enumeration_work, loopy_reason, loopy_work};
use crate::belief::{BeliefMatrix, Instance};
use crate::error::Result;
use crate::infer::enumeration::Enumeration;
use crate::infer::limits::Cost;
use crate::infer::loopy::Loopy;
use crate::model::Model;
use crate::posterior::{Engine, Posterior, Posteriors};

/// An engine for marginals. The automatic choice is exact if that is affordable, and [`Loopy`] propagation otherwise.
///
/// [`Self::reason`] names the engine and the reason for the choice in a sentence.
///
/// ```
/// use prsl::infer::Engines;
/// use prsl::{Engine, Evidence, Model};
///
/// let model = Model::parse("label weather: sun, rain\nlabel ground: dry, wet\nrule 0.95: wet <- rain")?;
/// let engine = Engines::new(&model).marginals()?;
/// assert_eq!(engine.engine(), Engine::JunctionTree);
/// let posterior = engine.infer(&Evidence::new().belief("weather", [0.1, 0.9]).belief("ground", [0.7, 0.3]))?;
/// assert_eq!(posterior.to_string(), "\
/// weather  sun 0.248  rain 0.752
/// ground   dry 0.256  wet 0.744
/// ");
/// # Ok::<(), prsl::Error>(())
/// ```
#[derive(Debug)]
pub struct MarginalEngine {
    kind: Kind,
    reason: String,
    is_automatic: bool,
}

#[derive(Debug)]
enum Kind {
    Exact(Exact),
    Loopy(Box<Loopy>),
    Enumeration(Enumeration),
}

impl MarginalEngine {
    pub(super) fn compile(engines: &Engines) -> Result<Self> {
        let (kind, reason) = match engines.choice {
            EngineChoice::Auto => automatic(engines)?,
            EngineChoice::Exact => {
                let (engine, _) = engines.require_exact()?;
                let reason = as_asked_for(&engine);
                (Kind::Exact(engine), reason)
            }
            EngineChoice::JunctionTree => {
                let engine = Exact::Tree(Arc::new(engines.tree()?));
                let reason = as_asked_for(&engine);
                (Kind::Exact(engine), reason)
            }
            EngineChoice::Circuit => {
                let engine = Exact::Circuit(engines.named_circuit()?);
                let reason = as_asked_for(&engine);
                (Kind::Exact(engine), reason)
            }
            EngineChoice::Loopy => {
                let loopy = engines.loopy()?;
                let reason = loopy_reason(&loopy, loopy.settings().max_sweeps);
                (Kind::Loopy(loopy), reason)
            }
            EngineChoice::Enumeration => {
                let engine = Enumeration::compile(engines.model())?;
                (Kind::Enumeration(engine), enumeration_reason(engines.model()))
            }
        };
        Ok(Self { kind, reason, is_automatic: engines.choice == EngineChoice::Auto })
    }

    /// The model that it was compiled from.
    pub fn model(&self) -> &Model {
        match &self.kind {
            Kind::Exact(engine) => engine.model(),
            Kind::Loopy(engine) => engine.model(),
            Kind::Enumeration(engine) => engine.model(),
        }
    }

    /// The chosen engine.
    pub fn engine(&self) -> Engine {
        match &self.kind {
            Kind::Exact(engine) => engine.engine(),
            Kind::Loopy(_) => Engine::Loopy,
            Kind::Enumeration(_) => Engine::Enumeration,
        }
    }

    /// The chosen engine and the reason for the choice, as a sentence.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// Whether the engine was chosen automatically.
    pub(super) fn is_automatic(&self) -> bool {
        self.is_automatic
    }

    /// The cost of a row with a junction tree; `None` for other engines.
    pub fn cost(&self) -> Option<Cost> {
        match &self.kind {
            Kind::Exact(Exact::Tree(engine)) => Some(engine.cost()),
            Kind::Exact(Exact::Circuit(_)) | Kind::Loopy(_) | Kind::Enumeration(_) => None,
        }
    }

    /// An estimate of the number of multiplications per row.
    pub fn work(&self) -> f64 {
        match &self.kind {
            Kind::Exact(engine) => engine.work(),
            Kind::Loopy(engine) => loopy_work(engine.model()),
            Kind::Enumeration(engine) => enumeration_work(engine.model()),
        }
    }

    /// The marginals of one instance.
    pub fn infer(&self, instance: &impl Instance) -> Result<Posterior> {
        match &self.kind {
            Kind::Exact(engine) => engine.infer(instance),
            Kind::Loopy(engine) => engine.infer(instance),
            Kind::Enumeration(engine) => engine.infer(instance),
        }
    }

    /// The agreement of every rule, in the order of the rules: P(rule holds | all other rules hold, evidence). It is
    /// small if the evidence and the other rules contradict the rule. Typical combinations are ignored.
    ///
    /// ```
    /// use prsl::{Engines, Evidence, Model};
    ///
    /// let model = Model::parse("label weather: sun, rain\nlabel ground: dry, wet\nrule 0.95: wet <- rain")?;
    /// let evidence = Evidence::new().belief("weather", [0.1, 0.9]).belief("ground", [0.7, 0.3]);
    /// let agreement = Engines::new(&model).marginals()?.agreement(&evidence)?;
    /// assert!((agreement[0] - 0.383).abs() < 1e-9); // 0.95 × 0.37 + 0.05 × 0.63
    /// # Ok::<(), prsl::Error>(())
    /// ```
    pub fn agreement(&self, instance: &impl Instance) -> Result<Vec<f64>> {
        match &self.kind {
            Kind::Exact(engine) => engine.agreement(instance),
            Kind::Loopy(engine) => engine.agreement(instance),
            Kind::Enumeration(engine) => engine.agreement(instance),
        }
    }

    /// The marginals and ln Z of many rows. An impossible row does not affect the others.
    pub fn infer_batch(&self, rows: &BeliefMatrix) -> Result<Posteriors> {
        match &self.kind {
            Kind::Exact(engine) => engine.infer_batch(rows),
            Kind::Loopy(engine) => engine.infer_batch(rows),
            Kind::Enumeration(engine) => engine.infer_batch(rows),
        }
    }
}

/// Chooses the cheaper of junction tree and circuit if a row takes at most 2e9 multiply-adds, and loopy propagation otherwise.
fn automatic(engines: &Engines) -> Result<(Kind, String)> {
    engines.settings.loopy.check()?;
    match engines.affordable_exact()? {
        Choice::Engine(engine, reason) => Ok((Kind::Exact(engine), reason)),
        Choice::Refused(why, _) => Ok((Kind::Loopy(engines.loopy()?), format!("loopy: {why}"))),
    }
}

/// The reason if an exact engine was named: `junction tree: as asked for, 11 table entries ...`
fn as_asked_for(engine: &Exact) -> String {
    engine.cost().replacen(": ", ": as asked for, ", 1)
}
