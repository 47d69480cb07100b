//! The junction tree: exact inference along a tree of small tables.

mod network;
mod order;
mod plan;
pub(crate) mod runner;
mod sample;
mod search;
mod sweep;

pub use plan::Cost;
pub use runner::Limits;

use std::sync::OnceLock;

use crate::belief::BeliefMatrix;
use crate::error::{Error, Result};
use crate::evidence::Evidence;
use crate::infer::semiring::SumProduct;
use crate::model::Model;
use crate::posterior::{Engine, Posterior, Posteriors, Stopped};
use crate::rule::RuleId;
use runner::{Aim, Answer, Runner};
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
    runner: Runner<SumProduct>,
    /// How to go back through the plan, once samples were asked for.
    walk: OnceLock<Walk>,
}

impl JunctionTree {
    /// Compiles within the default limits.
    pub fn compile(model: &Model) -> Result<Self> {
        Self::compile_within(model, Limits::default())
    }

    /// Compiles, or says what it would take if that is more than the limits allow.
    pub fn compile_within(model: &Model, limits: Limits) -> Result<Self> {
        Ok(Self { runner: Runner::compile(model, Aim::Sum, limits)?, walk: OnceLock::new() })
    }

    /// The model it was compiled from.
    pub fn model(&self) -> &Model {
        &self.runner.model
    }

    /// What the plan takes.
    pub fn cost(&self) -> Cost {
        self.runner.cost()
    }

    /// All marginals, ln Z and every rule's agreement for one instance.
    pub fn infer(&self, evidence: &Evidence) -> Result<Posterior> {
        self.infer_row(&self.model().row(evidence)?)
    }

    /// The same for a row of completed beliefs.
    pub fn infer_row(&self, row: &[f64]) -> Result<Posterior> {
        let name = |rule| self.model().rule_name(rule);
        self.infer_row_or_conflict(row)
            .map_err(|rules| Error::Impossible { rules: rules.into_iter().map(name).collect() })
    }

    /// The same, or the rules that leave nothing possible.
    pub(crate) fn infer_row_or_conflict(&self, row: &[f64]) -> Result<Posterior, Vec<RuleId>> {
        let (answer, agreement) = self.runner.one_with_agreement(row);
        if answer.log_total == f64::NEG_INFINITY {
            return Err(self.conflict(row));
        }
        Ok(Posterior {
            model: self.model().clone(),
            log_evidence: answer.log_total,
            marginals: self.normalized(answer),
            agreement,
            engine: Engine::JunctionTree,
            stopped: Stopped::Exact,
        })
    }

    /// All marginals and ln Z for many rows; a row that is impossible does not disturb the others.
    pub fn infer_batch(&self, rows: &BeliefMatrix) -> Posteriors {
        let answers = self.runner.batch(rows, |_, answer| (answer.log_total, self.normalized(answer)));
        let log_evidence = answers.iter().map(|(log_evidence, _)| *log_evidence).collect();
        let marginals = answers.into_iter().flat_map(|(_, marginals)| marginals).collect();
        let (model, engine) = (self.model().clone(), Engine::JunctionTree);
        Posteriors { model, marginals, log_evidence, engine, stopped: Vec::new() }
    }

    /// The marginals with each rule left out in turn: the cavity beliefs, and the answer to "what if this rule
    /// were not there". `None` where even that leaves nothing possible.
    pub fn without_each_rule(&self, row: &[f64]) -> Vec<Option<Vec<f64>>> {
        let answers = self.runner.without_each(row);
        let marginals =
            |answer: Answer| (answer.log_total > f64::NEG_INFINITY).then(|| self.normalized(answer));
        answers.into_iter().map(marginals).collect()
    }

    /// A smallest set of rules that together exclude everything that an impossible row allows.
    pub fn conflict(&self, row: &[f64]) -> Vec<RuleId> {
        self.runner.conflict(row)
    }

    fn normalized(&self, answer: Answer) -> Vec<f64> {
        let mut marginals = answer.masses;
        for label in self.model().label_ids() {
            let block = &mut marginals[self.model().block(label)];
            let total: f64 = block.iter().sum();
            if total > 0.0 {
                block.iter_mut().for_each(|mass| *mass /= total);
            }
        }
        marginals
    }
}
