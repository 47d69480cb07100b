//! Joint samples from the posterior, by the engine that fits the model.

use std::sync::Arc;

use super::exact::{Choice, Exact};
use super::{EngineChoice, Engines};
use crate::belief::{BeliefMatrix, Instance};
use crate::error::Result;
use crate::infer::gibbs::{Gibbs, GibbsSettings};
use crate::infer::samples::{Samples, Sampling};
use crate::model::Model;
use crate::posterior::Engine;

/// Joint samples for any model: exact if a junction tree or a circuit fits the limits, and by [`Gibbs`] sampling otherwise.
///
/// ```
/// use prsl::infer::Engines;
/// use prsl::infer::Sampling;
/// use prsl::{Evidence, Model};
///
/// let model = Model::parse("label weather: sun, rain\nlabel ground: dry, wet\nrule 1: wet <- rain")?;
/// let sampler = Engines::new(&model).sampler()?;
/// let evidence = Evidence::new().belief("weather", [0.1, 0.9]);
/// let samples = sampler.sample(&evidence, &Sampling { n_samples: 1000, ..Sampling::default() })?;
/// assert!(samples.iter().all(|sample| *sample != [1, 0])); // never rain and dry
/// let weather = model.find_label("weather")?;
/// let rain = samples.iter().filter(|sample| sample.category(weather).index() == 1).count();
/// assert!((750..880).contains(&rain)); // the expected share is 0.45 / 0.55
/// # Ok::<(), prsl::Error>(())
/// ```
#[derive(Debug)]
pub struct Sampler {
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Exact(Exact),
    Gibbs(Box<Gibbs>),
}

impl Sampler {
    pub(super) fn compile(engines: &Engines) -> Result<Self> {
        let kind = match engines.choice {
            EngineChoice::Exact => Kind::Exact(careful(engines.require_exact()?.0)?),
            EngineChoice::JunctionTree => Kind::Exact(careful(Exact::Tree(Arc::new(engines.tree()?)))?),
            EngineChoice::Circuit => Kind::Exact(Exact::Circuit(engines.named_circuit()?)),
            EngineChoice::Auto | EngineChoice::Loopy | EngineChoice::Enumeration => {
                match engines.exact_within(f64::INFINITY)? {
                    Choice::Engine(engine, _) if engine.is_careful() => Kind::Exact(engine),
                    _ => {
                        let (model, settings) = (engines.model(), GibbsSettings::default());
                        Kind::Gibbs(Box::new(Gibbs::new(model, engines.factors(), settings)))
                    }
                }
            }
        };
        Ok(Self { kind })
    }

    /// The model that it was compiled from.
    pub fn model(&self) -> &Model {
        match &self.kind {
            Kind::Exact(engine) => engine.model(),
            Kind::Gibbs(engine) => engine.model(),
        }
    }

    /// The engine that draws: [`Engine::JunctionTree`], [`Engine::Circuit`] or [`Engine::Gibbs`].
    pub fn engine(&self) -> Engine {
        match &self.kind {
            Kind::Exact(engine) => engine.engine(),
            Kind::Gibbs(_) => Engine::Gibbs,
        }
    }

    /// Samples for one instance. An impossible instance is an error that names the rules in conflict.
    pub fn sample(&self, instance: &impl Instance, sampling: &Sampling) -> Result<Samples> {
        match &self.kind {
            Kind::Exact(engine) => engine.sample(instance, sampling),
            Kind::Gibbs(engine) => engine.sample(instance, sampling),
        }
    }

    /// Samples for every row: `None` if the row is impossible, an error if this could not be decided.
    pub fn sample_batch(
        &self,
        rows: &BeliefMatrix,
        sampling: &Sampling,
    ) -> Result<Vec<Result<Option<Samples>>>> {
        match &self.kind {
            Kind::Exact(engine) => engine.sample_batch(rows, sampling),
            Kind::Gibbs(engine) => engine.sample_batch(rows, sampling),
        }
    }
}

/// Refuses a junction tree that has only a plan with signs.
fn careful(engine: Exact) -> Result<Exact> {
    if let Exact::Tree(tree) = &engine {
        tree.careful()?;
    }
    Ok(engine)
}
