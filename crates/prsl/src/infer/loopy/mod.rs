//! Loopy belief propagation: approximate inference on the factor graph of labels and rules.

mod form;
mod frontier;
mod graph;
mod merge;
mod run;
mod sweep;

use std::fmt;

use crate::assignment::Assignment;
use crate::belief::{BeliefMatrix, Instance, check_same_labels};
use crate::error::{Error, Result};
use crate::infer::factor::Factors;
use crate::infer::limits::{FREE_MEMORY, Limits, bytes_above};
use crate::infer::semiring::{Aim, MaxProduct, SumProduct};
use crate::infer::typical::Typical;
use crate::label::LabelId;
use crate::logic::impossible;
use crate::model::Model;
use crate::posterior::{Engine, MostProbable, Posterior, Posteriors, RankedAssignments, SearchEnd, Stopped};
use run::{Answer, Propagation, Want};

/// The order in which rules send their messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Schedule {
    /// Rules one after the other, each with the newest messages. Sweeps alternate between forward and backward.
    #[default]
    Sequential,
    /// All rules at once, with the messages of the previous sweep.
    Flooding,
    /// The rule whose labels have changed most comes first. Rows run one at a time, which takes longer.
    Residual,
}

/// Settings and stopping criteria of loopy propagation.
///
/// ```
/// use prsl::infer::{LoopySettings, Schedule};
///
/// let settings = LoopySettings { max_sweeps: 1000, ..LoopySettings::default() };
/// assert_eq!(settings.schedule, Schedule::Sequential);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoopySettings {
    /// The order in which rules send their messages.
    pub schedule: Schedule,
    /// Maximum number of sweeps for marginals. Every rule sends its messages once per sweep.
    pub max_sweeps: usize,
    /// Maximum number of sweeps for an assignment. Max-product messages that do not converge soon oscillate, and more
    /// sweeps or a second run do not improve the assignment.
    pub assignment_sweeps: usize,
    /// The share of the old message in a new one, at least 0 and less than 1.
    pub damping: f64,
    /// A row has converged if no marginal changes by more than this in a sweep.
    pub tolerance: f64,
    /// Whether a rule is merged with a rule that contains all its labels. This removes the shortest cycles, on which
    /// evidence is counted more than once.
    pub merge: bool,
    /// Whether marginals of a row that does not converge are computed again, with a damping of 0.5 and then 0.8.
    pub retry: bool,
}

impl Default for LoopySettings {
    /// Sequential, up to 200 sweeps to a tolerance of 1e-6, merged, with retries; up to 30 sweeps for an assignment.
    fn default() -> Self {
        Self {
            schedule: Schedule::Sequential,
            max_sweeps: 200,
            assignment_sweeps: 30,
            damping: 0.0,
            tolerance: 1e-6,
            merge: true,
            retry: true,
        }
    }
}

impl LoopySettings {
    /// The settings of the paper's authors: flooding, up to 20 sweeps to a tolerance of 1e-5, without merging and
    /// retries.
    pub fn authors() -> Self {
        Self {
            schedule: Schedule::Flooding,
            max_sweeps: 20,
            assignment_sweeps: 20,
            damping: 0.0,
            tolerance: 1e-5,
            merge: false,
            retry: false,
        }
    }

    pub(crate) fn check(&self) -> Result<()> {
        let expect = |holds: bool, setting: &'static str, value: f64, wanted: &'static str| {
            if holds { Ok(()) } else { Err(Error::Setting { setting, value, wanted }) }
        };
        expect((0.0..1.0).contains(&self.damping), "damping", self.damping, "a number from 0 to below 1")?;
        expect(self.tolerance >= 0.0, "tolerance", self.tolerance, "a number of at least 0")?;
        for (setting, sweeps) in
            [("max_sweeps", self.max_sweeps), ("assignment_sweeps", self.assignment_sweeps)]
        {
            expect(sweeps > 0, setting, sweeps as f64, "at least 1")?;
        }
        Ok(())
    }

    /// The settings for max-product propagation.
    fn for_assignments(self) -> Self {
        Self { max_sweeps: self.assignment_sweeps, retry: false, ..self }
    }
}

/// Approximate marginals and most probable assignments for models of any size.
///
/// Rules send messages to their labels until the messages converge. If rules and labels form no cycle, the answers
/// are exact. Otherwise they are usually close, and sometimes wrong. Every answer tells whether the messages
/// converged; convergence does not prove that the answer is right. `log_evidence` is the Bethe approximation of ln Z,
/// which may be too small or too large. The shares of typical combinations depend on it, so they are approximate too.
///
/// ```
/// use prsl::{Evidence, Loopy, Model};
///
/// let model = Model::parse("label weather: sun, rain\nlabel ground: dry, wet\nrule 0.95: wet <- rain")?;
/// let engine = Loopy::compile(&model)?;
/// let posterior = engine.infer(&Evidence::new().belief("weather", [0.1, 0.9]).belief("ground", [0.7, 0.3]))?;
/// assert!(posterior.stopped().is_final());
/// assert_eq!(posterior.to_string(), "\
/// weather  sun 0.248  rain 0.752
/// ground   dry 0.256  wet 0.744
/// ");
/// # Ok::<(), prsl::Error>(())
/// ```
pub struct Loopy {
    model: Model,
    settings: LoopySettings,
    sum: Propagation<SumProduct>,
    max: Propagation<MaxProduct>,
    typical: Typical,
}

/// An assignment decoded from max-product propagation, and whether the messages converged.
///
/// ```
/// use prsl::{Evidence, Loopy, Model};
///
/// let model = Model::parse("label weather: sun, rain\nlabel ground: dry, wet\nrule 0.95: wet <- rain")?;
/// let evidence = Evidence::new().belief("weather", [0.4, 0.6]).belief("ground", [0.7, 0.3]);
/// let decoded = Loopy::compile(&model)?.decode(&evidence)?;
/// assert_eq!(decoded.best.expect("a possible assignment").assignment, [0, 0]); // sun and dry
/// assert!(decoded.stopped.is_final());
/// # Ok::<(), prsl::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Decoded {
    /// The assignment, without proof. `None` if propagation led to an impossible assignment.
    pub best: Option<MostProbable>,
    /// Whether the messages converged.
    pub stopped: Stopped,
}

/// Relative difference up to which two weights are tied. It is larger than rounding errors.
const TIE: f64 = 1e-9;
/// Maximum number of propagation runs of a guess. Each run decides one tied label per component.
const MAX_GUESSES: usize = 4;

impl fmt::Debug for Loopy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loopy").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Loopy {
    /// Compiles with the default settings.
    pub fn compile(model: &Model) -> Result<Self> {
        Self::compile_with(model, LoopySettings::default())
    }

    /// Compiles with these settings. Returns an error if a setting is out of range, or if a rule's decision diagram
    /// is too large.
    pub fn compile_with(model: &Model, settings: LoopySettings) -> Result<Self> {
        Self::new(model, &Factors::new(model), settings)
    }

    /// Compiles from the factors of the model's rules.
    pub(crate) fn new(model: &Model, factors: &Factors, settings: LoopySettings) -> Result<Self> {
        settings.check()?;
        Ok(Self {
            model: model.clone(),
            settings,
            sum: Propagation::compile(model, factors, Aim::Sum, settings)?,
            max: Propagation::compile(model, factors, Aim::Maximum, settings.for_assignments())?,
            typical: Typical::new(model),
        })
    }

    /// Refuses an engine whose graphs and messages on this number of threads take more memory than the limits allow.
    pub(crate) fn check_memory(&self, limits: Limits, n_threads: usize) -> Result<()> {
        let ([sum, sum_messages], [max, max_messages]) = (self.sum.bytes(), self.max.bytes());
        let needed = (sum + max) as f64 + (n_threads * sum_messages.max(max_messages)) as f64;
        if needed <= FREE_MEMORY.max(limits.memory as f64) {
            return Ok(());
        }
        let [needed, limit] = bytes_above(needed, limits.memory as f64);
        Err(Error::TooCostly {
            what: "loopy propagation".to_owned(),
            needed: format!("{needed} on {n_threads} threads"),
            limit,
            advice: "raise the memory limit, or use fewer threads".to_owned(),
        })
    }

    /// The model that it was compiled from.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The settings.
    pub fn settings(&self) -> LoopySettings {
        self.settings
    }

    /// All marginals and the Bethe approximation of ln Z for one instance.
    ///
    /// An error means that the row is impossible, with proof. Propagation does not detect every contradiction.
    pub fn infer(&self, instance: &impl Instance) -> Result<Posterior> {
        let row = &instance.values(&self.model)?[..];
        let answer = self.possible(row, Want::Marginals)?;
        let stopped = answer.stopped;
        let (log_evidence, marginals) = self.finished(row, answer);
        let (model, engine) = (self.model.clone(), Engine::Loopy);
        Ok(Posterior { model, marginals, log_evidence, engine, stopped })
    }

    /// The approximate agreement of every rule, in the order of the rules: P(rule holds | all other rules hold,
    /// evidence).
    ///
    /// It is computed from cavity messages, as if the rule's labels were independent without the rule. On trees it is
    /// exact. Typical combinations are ignored.
    pub fn agreement(&self, instance: &impl Instance) -> Result<Vec<f64>> {
        Ok(self.possible(&instance.values(&self.model)?, Want::Agreement)?.agreement)
    }

    /// The answer to one row, or an error if it is impossible.
    fn possible(&self, row: &[f64], want: Want) -> Result<Answer> {
        let answer = self.sum.one(row, want);
        if answer.log_evidence == f64::NEG_INFINITY {
            return Err(impossible(&self.model, row));
        }
        Ok(answer)
    }

    /// All marginals and ln Z for many rows. An impossible row does not affect the others.
    pub fn infer_batch(&self, rows: &BeliefMatrix) -> Result<Posteriors> {
        check_same_labels(rows.model(), &self.model)?;
        let finish = |row: &[f64], answer: Answer| (answer.stopped, self.finished(row, answer));
        let answers = self.sum.batch(rows, finish);
        Ok(Posteriors {
            model: self.model.clone(),
            log_evidence: answers.iter().map(|(_, (log_evidence, _))| *log_evidence).collect(),
            stopped: answers.iter().map(|(stopped, _)| *stopped).collect(),
            marginals: answers.into_iter().flat_map(|(_, (_, marginals))| marginals).collect(),
            engine: Engine::Loopy,
        })
    }

    /// A probable assignment of one instance: each label's best category by max-product propagation.
    pub fn best(&self, instance: &impl Instance) -> Result<MostProbable> {
        self.decode(instance)?.best.ok_or(Error::NoAssignment)
    }

    /// The same as a list of at most one assignment.
    pub fn top(&self, instance: &impl Instance, n: usize) -> Result<RankedAssignments> {
        Ok(self.top_row(&instance.values(&self.model)?, n))
    }

    /// The same for every row.
    pub fn top_batch(&self, rows: &BeliefMatrix, n: usize) -> Result<Vec<RankedAssignments>> {
        Ok(self.decode_batch(rows)?.into_iter().map(|decoded| ranked(decoded, n)).collect())
    }

    pub(crate) fn top_row(&self, row: &[f64], n: usize) -> RankedAssignments {
        ranked(self.decoded(row, self.max.one(row, Want::Marginals)), n)
    }

    /// A probable assignment of one instance, and whether the messages converged.
    pub fn decode(&self, instance: &impl Instance) -> Result<Decoded> {
        let row = &instance.values(&self.model)?[..];
        self.decoded(row, self.max.one(row, Want::Marginals)).ok_or_else(|| impossible(&self.model, row))
    }

    /// The same for every row; `None` if the row is impossible.
    pub fn decode_batch(&self, rows: &BeliefMatrix) -> Result<Vec<Option<Decoded>>> {
        check_same_labels(rows.model(), &self.model)?;
        Ok(self.max.batch(rows, |row, answer| self.decoded(row, answer)))
    }

    /// A first assignment for a search. It may be impossible, and takes at most [`MAX_GUESSES`] runs of propagation.
    pub(crate) fn guess(&self, row: &[f64]) -> Option<Vec<usize>> {
        let answer = self.max.one(row, Want::Marginals);
        Some(self.assignment(row, answer, MAX_GUESSES)?.0)
    }

    /// The assignment decoded from max-marginals, or a typical combination of larger weight.
    fn decoded(&self, row: &[f64], answer: Answer) -> Option<Decoded> {
        let (assignment, stopped) = self.assignment(row, answer, usize::MAX)?;
        let log_weight = self.model.log_weight_of_rules(row, &assignment);
        let assignment = Assignment::from_indices(assignment);
        let best = MostProbable { assignment, log_weight, gap: None, engine: Engine::Loopy };
        let possible = Some(best).filter(|best| best.log_weight > f64::NEG_INFINITY);
        let best = self.typical.rerank(row, 1, possible.into_iter().collect(), None, Engine::Loopy).pop();
        Some(Decoded { best, stopped })
    }

    /// Decodes max-marginals: each label gets its best category, the first of equal ones. If rules distinguish tied
    /// categories, the best categories of other labels depend on the choice. So one is fixed and propagation runs
    /// again, at most `times` times.
    fn assignment(&self, row: &[f64], answer: Answer, times: usize) -> Option<(Vec<usize>, Stopped)> {
        if answer.log_evidence == f64::NEG_INFINITY {
            return None;
        }
        let stopped = answer.stopped;
        let mut masses = answer.masses;
        let mut held = row.to_vec();
        for _ in 0..times {
            let ties = self.tied(&masses);
            for &(label, first) in &ties {
                let block = self.model.block(label);
                let belief = held[block.start + first];
                held[block.clone()].fill(0.0);
                held[block.start + first] = belief;
            }
            if ties.is_empty() {
                break;
            }
            let answer = self.max.one(&held, Want::Marginals);
            if answer.log_evidence == f64::NEG_INFINITY {
                // On a cycle, even fixing a tied category may lead to an impossible row. The previous categories are
                // kept.
                break;
            }
            masses = answer.masses;
        }
        let first = |label| first_best(&masses[self.model.block(label)]);
        Some((self.model.label_ids().map(first).collect(), stopped))
    }

    /// Labels with several best categories that rules distinguish, with the first of these. There is one label per
    /// component.
    fn tied(&self, masses: &[f64]) -> Vec<(LabelId, usize)> {
        let mut parts = std::collections::HashSet::new();
        let mut ties = Vec::new();
        for label in self.model.label_ids() {
            let masses = &masses[self.model.block(label)];
            let first = first_best(masses);
            let is_tied = (first + 1..masses.len())
                .any(|other| is_tie(masses, other) && self.max.tells_apart(label, first, other));
            if is_tied && parts.insert(self.max.component(label)) {
                ties.push((label, first));
            }
        }
        ties
    }

    /// ln Z and the marginals of a row, including typical combinations.
    fn finished(&self, row: &[f64], answer: Answer) -> (f64, Vec<f64>) {
        let mixture = self.typical.mixture(row, answer.log_evidence);
        (mixture.log_evidence, self.typical.mixed(&mixture, answer.masses))
    }
}

/// A list of at most one assignment, without proof.
fn ranked(decoded: Option<Decoded>, n: usize) -> RankedAssignments {
    match decoded {
        None => RankedAssignments::complete(Vec::new()),
        Some(it) => RankedAssignments::new(it.best.into_iter().take(n).collect(), SearchEnd::Proposed),
    }
}

/// Whether a category is as good as the best one, up to rounding.
fn is_tie(masses: &[f64], category: usize) -> bool {
    let largest = masses.iter().copied().fold(0.0, f64::max);
    masses[category] >= largest * (1.0 - TIE)
}

fn first_best(masses: &[f64]) -> usize {
    (0..masses.len()).find(|&category| is_tie(masses, category)).unwrap_or(0)
}
