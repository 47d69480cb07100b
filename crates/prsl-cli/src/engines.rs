//! The engines behind `prsl predict`: those that were asked for, or those that suit the model.

use prsl::{
    BeliefMatrix, Engine, Enumeration, Error, ExplanationEngine, JunctionTree, Limits, Loopy, LoopySettings,
    MarginalEngine, Model, MostProbable, Posteriors, Sampler, SearchLimits,
};
use rayon::prelude::*;

use crate::predict::EngineKind;

/// What engines may take, and how they run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Settings {
    /// What exact inference may take.
    pub limits: Limits,
    /// How loopy propagation runs.
    pub loopy: LoopySettings,
    /// How long branch and bound may take for a row.
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
    pub fn compile(model: &Model, engine: EngineKind, settings: &Settings) -> prsl::Result<Marginals> {
        let (limits, loopy) = (settings.limits, settings.loopy);
        Ok(match engine {
            EngineKind::Auto => Marginals::Auto(MarginalEngine::compile(model, limits, loopy)?),
            EngineKind::Exact => {
                let tree = JunctionTree::compile_within(model, limits).map_err(or_loopy)?;
                Marginals::Exact(Box::new(tree))
            }
            EngineKind::Loopy => Marginals::Loopy(Box::new(Loopy::compile_with(model, loopy)?)),
            EngineKind::Enumeration => Marginals::Enumeration(model.clone(), Enumeration::compile(model)?),
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
            Marginals::Loopy(engine) => format!("loopy: as asked for, {}", loopy_cost(engine)),
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
    pub fn compile(model: &Model, engine: EngineKind, settings: &Settings) -> prsl::Result<Explanations> {
        Ok(match engine {
            EngineKind::Auto | EngineKind::Exact => {
                Explanations::Exact(ExplanationEngine::compile(model, settings.limits, settings.search)?)
            }
            EngineKind::Loopy => Explanations::Loopy(Box::new(Loopy::compile_with(model, settings.loopy)?)),
            EngineKind::Enumeration => Explanations::Enumeration(model.clone(), Enumeration::compile(model)?),
        })
    }

    /// The `n` most probable explanations of every row, none where it is impossible.
    pub fn top_batch(&self, rows: &BeliefMatrix, n: usize) -> Vec<Vec<MostProbable>> {
        let each = |top: &(dyn Fn(&[f64]) -> Vec<MostProbable> + Sync)| -> Vec<Vec<MostProbable>> {
            (0..rows.n_rows()).into_par_iter().map(|row| top(rows.row(row))).collect()
        };
        match self {
            Explanations::Exact(engine) if n == 1 => {
                engine.best_batch(rows).into_iter().map(|best| best.into_iter().collect()).collect()
            }
            Explanations::Exact(engine) => each(&|row| engine.top(row, n)),
            Explanations::Loopy(engine) => {
                let best = |decoded: Option<prsl::Decoded>| decoded.map(|it| it.best).into_iter().collect();
                engine.best_batch(rows).into_iter().map(best).collect()
            }
            Explanations::Enumeration(_, engine) => each(&|row| engine.top(row, n)),
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
            Explanations::Loopy(engine) => format!("loopy: as asked for, {}", loopy_cost(engine)),
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
pub fn sampler(model: &Model, engine: EngineKind, limits: Limits) -> prsl::Result<Sampler> {
    let sampler = Sampler::compile(model, limits)?;
    if engine == EngineKind::Exact && sampler.engine() == Engine::Gibbs {
        JunctionTree::compile_within(model, limits)?;
        return Err(Error::TooCostly {
            what: "exact sampling".to_owned(),
            needed: "tables without signs that are larger".to_owned(),
            limit: format!("{} bytes", limits.memory),
            advice: "raise the memory limit".to_owned(),
        });
    }
    Ok(sampler)
}

/// The junction tree behind ln Z, where it is affordable.
pub fn exact_sum(model: &Model, settings: &Settings) -> Option<MarginalEngine> {
    let engine = MarginalEngine::compile(model, settings.limits, settings.loopy).ok()?;
    (engine.engine() == Engine::JunctionTree).then_some(engine)
}

/// The refusal of exact marginals also names the way out that `predict` has.
fn or_loopy(error: Error) -> Error {
    match error {
        Error::TooCostly { what, needed, limit, .. } => {
            let advice = "raise the memory limit, or use loopy propagation".to_owned();
            Error::TooCostly { what, needed, limit, advice }
        }
        other => other,
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

fn loopy_cost(engine: &Loopy) -> String {
    format!("at most {} sweeps over {} rules", engine.settings().max_sweeps, engine.model().rules().len())
}

/// A few dozen sweeps, with a few operations for each category.
fn loopy_work(model: &Model) -> f64 {
    300.0 * (model.n_categories() + 10 * model.rules().len()) as f64
}
