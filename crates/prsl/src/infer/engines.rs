//! The engines that were asked for, or those that suit the model: what every way to ask for a prediction has in common.
//!
//! ```
//! use prsl::engines::{EngineChoice, Marginals, Settings};
//! use prsl::{BeliefMatrix, Evidence, Model};
//!
//! let model = Model::parse("label weather: sun, rain\nlabel ground: dry, wet\nrule 0.95: wet <- rain")?;
//! let mut rows = BeliefMatrix::new(&model);
//! rows.push_evidence(&Evidence::new().belief("weather", [0.1, 0.9]).belief("ground", [0.7, 0.3]))?;
//! let engine = Marginals::compile(&model, EngineChoice::Auto, &Settings::default())?;
//! let posteriors = engine.infer_batch(&rows);
//! assert!((posteriors.marginals(0).expect("possible")[1] - 0.752).abs() < 5e-4);
//! # Ok::<(), prsl::Error>(())
//! ```

use rayon::prelude::*;

use super::choice::{Affordable, affordable_tree};
use super::{
    Decoded, Enumeration, ExplanationEngine, JunctionTree, Limits, Loopy, LoopySettings, MAX_WORK,
    MarginalEngine, Sampler, SearchLimits,
};
use crate::belief::BeliefMatrix;
use crate::error::{Error, Result};
use crate::model::Model;
use crate::posterior::{Engine, Posteriors, RankedExplanations, SearchEnd};

/// Which engine to ask.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EngineChoice {
    /// The best for the model: exact where that is affordable.
    #[default]
    Auto,
    /// Exactly: along a junction tree, or by branch and bound.
    Exact,
    /// Approximately, by loopy propagation.
    Loopy,
    /// By going through all assignments: only for small models.
    Enumeration,
}

/// What engines may take, and how they run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Settings {
    /// What exact inference may take.
    pub limits: Limits,
    /// How loopy propagation runs.
    pub loopy: LoopySettings,
    /// What branch and bound may take for a row.
    pub search: SearchLimits,
}

/// Whatever answers with marginals.
pub enum Marginals {
    /// What suits the model.
    Auto(MarginalEngine),
    /// The junction tree.
    Exact(Box<JunctionTree>),
    /// Loopy propagation.
    Loopy(Box<Loopy>),
    /// The sum over all assignments.
    Enumeration(Model, Enumeration),
}

impl Marginals {
    /// Compiles the engine.
    pub fn compile(model: &Model, engine: EngineChoice, settings: &Settings) -> Result<Marginals> {
        let (limits, loopy) = (settings.limits, settings.loopy);
        Ok(match engine {
            EngineChoice::Auto => Marginals::Auto(MarginalEngine::compile(model, limits, loopy)?),
            EngineChoice::Exact => {
                let tree = JunctionTree::compile_within(model, limits)?;
                Marginals::Exact(Box::new(tree))
            }
            EngineChoice::Loopy => Marginals::Loopy(Box::new(Loopy::compile_with(model, loopy)?)),
            EngineChoice::Enumeration => Marginals::Enumeration(model.clone(), Enumeration::compile(model)?),
        })
    }

    /// The model it was compiled from.
    pub fn model(&self) -> &Model {
        match self {
            Marginals::Auto(engine) => engine.model(),
            Marginals::Exact(engine) => engine.model(),
            Marginals::Loopy(engine) => engine.model(),
            Marginals::Enumeration(model, _) => model,
        }
    }

    /// The marginals of every row.
    pub fn infer_batch(&self, rows: &BeliefMatrix) -> Posteriors {
        match self {
            Marginals::Auto(engine) => engine.infer_batch(rows),
            Marginals::Exact(engine) => engine.infer_batch(rows),
            Marginals::Loopy(engine) => engine.infer_batch(rows),
            Marginals::Enumeration(_, engine) => engine.infer_batch(rows),
        }
    }

    /// Which engine answers.
    pub fn engine(&self) -> Engine {
        match self {
            Marginals::Auto(engine) => engine.engine(),
            Marginals::Exact(_) => Engine::JunctionTree,
            Marginals::Loopy(_) => Engine::Loopy,
            Marginals::Enumeration(..) => Engine::Enumeration,
        }
    }

    /// Which engine answers, and why.
    pub fn reason(&self) -> String {
        match self {
            Marginals::Auto(engine) => engine.reason().to_owned(),
            Marginals::Exact(engine) => format!("junction tree: as asked for, {}", engine.cost()),
            Marginals::Loopy(engine) => loopy_reason(engine, engine.settings().max_sweeps),
            Marginals::Enumeration(model, _) => format!("enumeration: as asked for, {}", assignments(model)),
        }
    }

    /// About how many multiplications a row takes.
    pub fn work(&self) -> f64 {
        match self {
            Marginals::Auto(engine) => {
                engine.cost().map_or_else(|| loopy_work(engine.model()), |cost| cost.multiply_adds)
            }
            Marginals::Exact(engine) => engine.cost().multiply_adds,
            Marginals::Loopy(engine) => loopy_work(engine.model()),
            Marginals::Enumeration(model, _) => enumeration_work(model),
        }
    }
}

/// Whatever answers with most probable explanations.
pub enum Explanations {
    /// What suits the model: exact, unless a limit is reached.
    Exact(ExplanationEngine),
    /// Loopy propagation, which proves nothing.
    Loopy(Box<Loopy>),
    /// All assignments.
    Enumeration(Model, Enumeration),
}

impl Explanations {
    /// Compiles the engine.
    pub fn compile(model: &Model, engine: EngineChoice, settings: &Settings) -> Result<Explanations> {
        Ok(match engine {
            EngineChoice::Auto | EngineChoice::Exact => {
                Explanations::Exact(ExplanationEngine::compile(model, settings.limits, settings.search)?)
            }
            EngineChoice::Loopy => Explanations::Loopy(Box::new(Loopy::compile_with(model, settings.loopy)?)),
            EngineChoice::Enumeration => {
                Explanations::Enumeration(model.clone(), Enumeration::compile(model)?)
            }
        })
    }

    /// The `n` most probable explanations of every row; where there are none, why.
    pub fn top_batch(&self, rows: &BeliefMatrix, n: usize) -> Vec<RankedExplanations> {
        match self {
            Explanations::Exact(engine) => engine.top_batch(rows, n),
            Explanations::Loopy(engine) => {
                let best = |decoded: Option<Decoded>| match decoded {
                    None => RankedExplanations::complete(Vec::new()),
                    Some(it) => RankedExplanations::new(it.best.into_iter().collect(), SearchEnd::Proposed),
                };
                engine.best_batch(rows).into_iter().map(best).collect()
            }
            Explanations::Enumeration(_, engine) => {
                let top = |row: usize| RankedExplanations::complete(engine.top(rows.row(row), n));
                (0..rows.n_rows()).into_par_iter().map(top).collect()
            }
        }
    }

    /// Which engine answers first.
    pub fn engine(&self) -> Engine {
        match self {
            Explanations::Exact(engine) => engine.engine(),
            Explanations::Loopy(_) => Engine::Loopy,
            Explanations::Enumeration(..) => Engine::Enumeration,
        }
    }

    /// Which engine answers, and why.
    pub fn reason(&self) -> String {
        match self {
            Explanations::Exact(engine) => engine.reason().to_owned(),
            Explanations::Loopy(engine) => loopy_reason(engine, engine.settings().explanation_sweeps),
            Explanations::Enumeration(model, _) => {
                format!("enumeration: as asked for, {}", assignments(model))
            }
        }
    }

    /// About how many multiplications a row takes.
    pub fn work(&self) -> f64 {
        match self {
            // Nobody knows; a sign of life should come soon.
            Explanations::Exact(engine) => engine.cost().map_or(1e8, |cost| cost.multiply_adds),
            Explanations::Loopy(engine) => loopy_work(engine.model()),
            Explanations::Enumeration(model, _) => enumeration_work(model),
        }
    }
}

/// The engine for samples; with `exact` a refusal where only approximate ones are affordable.
pub fn sampler(model: &Model, engine: EngineChoice, limits: Limits) -> Result<Sampler> {
    if engine == EngineChoice::Exact {
        Sampler::exact(model, limits)
    } else {
        Sampler::compile(model, limits)
    }
}

/// Multiply-adds a row up to which ln Z comes with an explanation for nothing: a fraction of a millisecond, as branch and
/// bound takes anyway.
const MAX_SUM_WORK: f64 = 1e6;

/// Whatever answers with ln Z where no exact marginals do, for the probability of explanations.
pub struct LogEvidence {
    tree: Option<Box<JunctionTree>>,
    reason: String,
}

impl LogEvidence {
    /// Compiles the junction tree if a row costs next to nothing; with `exact` if a row costs what exact marginals may.
    fn compile(model: &Model, engine: EngineChoice, limits: Limits) -> Result<LogEvidence> {
        Self::compile_within(
            model,
            limits,
            if engine == EngineChoice::Exact { MAX_WORK } else { MAX_SUM_WORK },
        )
    }

    /// What is needed for the probability of explanations beside these marginals, if any: `None` where they have ln Z themselves.
    pub fn beside(
        marginals: Option<&Marginals>,
        model: &Model,
        engine: EngineChoice,
        limits: Limits,
    ) -> Result<Option<LogEvidence>> {
        Ok(match marginals {
            Some(marginals) if marginals.engine() != Engine::Loopy => None,
            Some(Marginals::Auto(_)) => Some(Self::none("the marginals are not exact")),
            _ => Some(Self::compile(model, engine, limits)?),
        })
    }

    fn compile_within(model: &Model, limits: Limits, work: f64) -> Result<LogEvidence> {
        let cost = match affordable_tree(model, limits, work) {
            Err(refused @ Error::TooCostly { .. }) => return Ok(Self::none(refused)),
            Err(error) => return Err(error),
            Ok(Affordable::Yes(tree)) => {
                let reason = format!("junction tree: {}", tree.cost());
                return Ok(LogEvidence { tree: Some(tree), reason });
            }
            Ok(Affordable::No(cost)) => cost,
        };
        let advice = if work < MAX_WORK {
            "; the exact engine, or asking for marginals too, waits for it"
        } else {
            ""
        };
        Ok(Self::none(format_args!("exact inference takes {cost}, more than the limit of {work:e}{advice}")))
    }

    /// No ln Z, for this reason.
    fn none(reason: impl std::fmt::Display) -> LogEvidence {
        LogEvidence { tree: None, reason: format!("none: {reason}") }
    }

    /// ln Z of every row, where it is to be had.
    pub fn infer_batch(&self, rows: &BeliefMatrix) -> Option<Posteriors> {
        self.tree.as_ref().map(|tree| tree.infer_batch(rows))
    }

    /// Which engine answers, and why, or why none does.
    pub fn reason(&self) -> String {
        self.reason.clone()
    }

    /// About how many multiplications a row takes.
    pub fn work(&self) -> f64 {
        self.tree.as_ref().map_or(0.0, |tree| tree.cost().multiply_adds)
    }
}

fn n_assignments(model: &Model) -> f64 {
    model.labels().iter().map(|label| label.n_categories() as f64).product()
}

fn assignments(model: &Model) -> String {
    format!("{} assignments", n_assignments(model))
}

fn enumeration_work(model: &Model) -> f64 {
    n_assignments(model) * (model.labels().len() + model.rules().len()) as f64
}

fn loopy_reason(engine: &Loopy, max_sweeps: usize) -> String {
    let n_rules = engine.model().rules().len();
    format!("loopy: as asked for, at most {max_sweeps} sweeps over {n_rules} rules")
}

/// A few dozen sweeps, with a few operations for each category.
fn loopy_work(model: &Model) -> f64 {
    300.0 * (model.n_categories() + 10 * model.rules().len()) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_probability_of_an_explanation_is_waited_for_where_it_is_cheap_or_asked_for() {
        let model = Model::parse("label a\nlabel b\nrule 0.9: a -> b").expect("a model");
        let mut rows = BeliefMatrix::new(&model);
        rows.push_evidence(&crate::Evidence::new()).expect("a row");
        let within =
            |work| LogEvidence::compile_within(&model, Limits::default(), work).expect("a small tree");
        let cheap = within(MAX_SUM_WORK);
        assert!(cheap.reason().starts_with("junction tree: "), "{}", cheap.reason());
        assert!(cheap.infer_batch(&rows).is_some() && cheap.work() > 1.0);
        let slow = within(1.0);
        assert!(slow.infer_batch(&rows).is_none() && slow.work() == 0.0);
        let reason = slow.reason();
        assert!(reason.starts_with("none: exact inference takes "), "{reason}");
        assert!(
            reason.ends_with("limit of 1e0; the exact engine, or asking for marginals too, waits for it"),
            "{reason}"
        );
    }
}
