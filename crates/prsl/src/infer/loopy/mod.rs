//! Loopy belief propagation: approximate inference along the rules themselves.

mod form;
mod frontier;
mod graph;
mod merge;
mod run;
mod sweep;

use crate::belief::BeliefMatrix;
use crate::error::{Error, Result};
use crate::evidence::Evidence;
use crate::infer::enumeration::minimal_subset;
use crate::infer::junction_tree::runner::Aim;
use crate::infer::semiring::{MaxProduct, SumProduct};
use crate::infer::typical::Typical;
use crate::label::LabelId;
use crate::log_space::divide_positive;
use crate::model::Model;
use crate::posterior::{Engine, MostProbable, Posterior, Posteriors, Stopped};
use crate::rule::RuleId;
use run::{Answer, Propagation, Want};

/// In which order rules send their messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Schedule {
    /// One rule after the other, forward and backward in turn, each with the newest messages.
    #[default]
    Sequential,
    /// All rules at once, with the messages of the sweep before.
    Flooding,
    /// The rule whose labels have changed most comes first. One row at a time, which takes longer.
    Residual,
}

/// How loopy propagation runs and when it stops.
///
/// ```
/// use prsl::{LoopySettings, Schedule};
///
/// let settings = LoopySettings { max_sweeps: 1000, ..LoopySettings::default() };
/// assert_eq!(settings.schedule, Schedule::Sequential);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoopySettings {
    /// In which order rules send their messages.
    pub schedule: Schedule,
    /// How often every rule speaks at most.
    pub max_sweeps: usize,
    /// The same on the way to an explanation. Messages of maxima that are not at rest soon go round in circles, and
    /// the explanation gets no better by waiting, nor by trying again.
    pub explanation_sweeps: usize,
    /// The share of the old message in a new one, from 0 to below 1.
    pub damping: f64,
    /// A row has come to rest when no marginal changes by more than this in a sweep.
    pub tolerance: f64,
    /// Whether rules are taken together with a rule that speaks about all their labels, so that evidence does not go
    /// round in a circle between them.
    pub merge: bool,
    /// Whether the marginals of a row that does not come to rest are tried again from the start, with a damping of 0.5
    /// and then 0.8.
    pub retry: bool,
}

impl Default for LoopySettings {
    /// Sequential, up to 200 sweeps to a tolerance of 1e-6, merged, with retries; up to 30 sweeps for an explanation.
    fn default() -> Self {
        Self {
            schedule: Schedule::Sequential,
            max_sweeps: 200,
            explanation_sweeps: 30,
            damping: 0.0,
            tolerance: 1e-6,
            merge: true,
            retry: true,
        }
    }
}

impl LoopySettings {
    /// What the paper's authors used: flooding, up to 20 sweeps to a tolerance of 1e-5, nothing else.
    pub fn authors() -> Self {
        Self {
            schedule: Schedule::Flooding,
            max_sweeps: 20,
            explanation_sweeps: 20,
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
            [("max_sweeps", self.max_sweeps), ("explanation_sweeps", self.explanation_sweeps)]
        {
            expect(sweeps > 0, setting, sweeps as f64, "at least 1")?;
        }
        Ok(())
    }

    /// How maxima are propagated.
    fn for_explanations(self) -> Self {
        Self { max_sweeps: self.explanation_sweeps, retry: false, ..self }
    }
}

/// Approximate marginals and joint explanations for models of any size.
///
/// Rules send messages to their labels until the messages come to rest. Where the rules and labels form no circle the
/// answers are exact; elsewhere they are usually close, and sometimes far off: every answer says whether the messages
/// came to rest, which is a good sign and no proof. `log_evidence` is the Bethe value, which may be too small or
/// too large; typical combinations are weighed against it, so that their share is approximate too.
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

/// A joint explanation by loopy propagation, and how it came about.
///
/// ```
/// use prsl::{BeliefMatrix, Evidence, Loopy, Model};
///
/// let model = Model::parse("label weather: sun, rain\nlabel ground: dry, wet\nrule 0.95: wet <- rain")?;
/// let mut rows = BeliefMatrix::new(&model);
/// rows.push_evidence(&Evidence::new().belief("weather", [0.4, 0.6]).belief("ground", [0.7, 0.3]))?;
/// let decoded = Loopy::compile(&model)?.best_batch(&rows).remove(0).expect("possible");
/// assert_eq!(decoded.best.expect("not misled").assignment, [0, 0]); // sun and dry
/// assert!(decoded.stopped.is_final());
/// # Ok::<(), prsl::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    /// The explanation; nothing is known about better ones. `None` where propagation was misled to an impossible one.
    pub best: Option<MostProbable>,
    /// Whether the messages came to rest.
    pub stopped: Stopped,
}

/// Two weights this close are a tie as far as rounding can tell.
const TIE: f64 = 1e-9;
/// How often a guess asks again where labels are tied.
const MAX_GUESSES: usize = 4;

impl Loopy {
    /// Compiles with the default settings.
    pub fn compile(model: &Model) -> Result<Self> {
        Self::compile_with(model, LoopySettings::default())
    }

    /// Compiles with these settings; refused where a setting is out of its range, or a rule's decision diagram too
    /// large.
    pub fn compile_with(model: &Model, settings: LoopySettings) -> Result<Self> {
        settings.check()?;
        Ok(Self {
            model: model.clone(),
            settings,
            sum: Propagation::compile(model, Aim::Sum, settings)?,
            max: Propagation::compile(model, Aim::Maximum, settings.for_explanations())?,
            typical: Typical::new(model),
        })
    }

    /// The model it was compiled from.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// How it runs.
    pub fn settings(&self) -> LoopySettings {
        self.settings
    }

    /// All marginals, the Bethe value of ln Z and every rule's agreement for one instance.
    pub fn infer(&self, evidence: &Evidence) -> Result<Posterior> {
        self.infer_row(&self.model.row(evidence)?)
    }

    /// The same for a row of completed beliefs.
    ///
    /// A rule's agreement is taken under the messages of everything else: P(rule holds | all other rules hold), if its
    /// labels were independent without it. An error says that nothing is possible, which is then proven; propagation does
    /// not notice every contradiction.
    pub fn infer_row(&self, row: &[f64]) -> Result<Posterior> {
        let answer = self.sum.one(row, Want::Agreement);
        if answer.log_evidence == f64::NEG_INFINITY {
            return Err(self.impossible(row));
        }
        let (stopped, agreement) = (answer.stopped, answer.agreement.clone());
        let (log_evidence, marginals) = self.finished(row, answer);
        let (model, engine) = (self.model.clone(), Engine::Loopy);
        Ok(Posterior { model, marginals, log_evidence, agreement, engine, stopped })
    }

    /// All marginals and ln Z for many rows; a row that is impossible does not disturb the others.
    pub fn infer_batch(&self, rows: &BeliefMatrix) -> Posteriors {
        let finish = |row: &[f64], answer: Answer| (answer.stopped, self.finished(row, answer));
        let answers = self.sum.batch(rows, finish);
        Posteriors {
            model: self.model.clone(),
            log_evidence: answers.iter().map(|(_, (log_evidence, _))| *log_evidence).collect(),
            stopped: answers.iter().map(|(stopped, _)| *stopped).collect(),
            marginals: answers.into_iter().flat_map(|(_, (_, marginals))| marginals).collect(),
            engine: Engine::Loopy,
        }
    }

    /// A joint explanation of one instance: each label's best category by max-product propagation.
    pub fn best(&self, evidence: &Evidence) -> Result<Decoded> {
        let row = self.model.row(evidence)?;
        self.decode(&row, self.max.one(&row, Want::Marginals)).ok_or_else(|| self.impossible(&row))
    }

    /// The same for a row of completed beliefs, `None` if it is impossible or propagation was misled.
    pub fn best_row(&self, row: &[f64]) -> Option<MostProbable> {
        self.decode(row, self.max.one(row, Want::Marginals))?.best
    }

    /// An assignment to start a search from: it may be impossible, and takes a few runs of propagation at most.
    pub(crate) fn guess(&self, row: &[f64]) -> Option<Vec<usize>> {
        let answer = self.max.one(row, Want::Marginals);
        Some(self.assignment(row, answer, MAX_GUESSES)?.0)
    }

    /// The same for every row, `None` where the evidence is impossible.
    pub fn best_batch(&self, rows: &BeliefMatrix) -> Vec<Option<Decoded>> {
        self.max.batch(rows, |row, answer| self.decode(row, answer))
    }

    /// What propagation makes of the best weights, or a combination that weighs more.
    fn decode(&self, row: &[f64], answer: Answer) -> Option<Decoded> {
        let (assignment, stopped) = self.assignment(row, answer, usize::MAX)?;
        let log_weight = self.model.log_weight_of_rules(row, &assignment);
        let best = MostProbable { assignment, log_weight, gap: None, engine: Engine::Loopy };
        let possible = Some(best).filter(|best| best.log_weight > f64::NEG_INFINITY);
        let best = self.typical.rerank(row, 1, possible.into_iter().collect(), None, Engine::Loopy).pop();
        Some(Decoded { best, stopped })
    }

    /// The assignment behind the best weights: each label's best category, the first of equal ones. Where rules tell
    /// equal ones apart, what is best for other labels depends on which is taken: it is held, and the rest asked again,
    /// so often at most.
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
                // On a circle even a tie may mislead; what was known before has to do.
                break;
            }
            masses = answer.masses;
        }
        let first = |label| first_best(&masses[self.model.block(label)]);
        Some((self.model.label_ids().map(first).collect(), stopped))
    }

    /// Labels with several best categories that rules tell apart, and the first of these: one label of each part of the
    /// model that has nothing to do with the others.
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

    /// ln Z and the marginals of a row, combinations included.
    fn finished(&self, row: &[f64], answer: Answer) -> (f64, Vec<f64>) {
        let mixture = self.typical.mixture(row, answer.log_evidence);
        let mut marginals = self.normalized(answer);
        self.typical.mix(&mixture, &mut marginals);
        (mixture.log_evidence, marginals)
    }

    fn normalized(&self, answer: Answer) -> Vec<f64> {
        let mut marginals = answer.masses;
        for label in self.model.label_ids() {
            let block = &mut marginals[self.model.block(label)];
            let total: f64 = block.iter().sum();
            if total > 0.0 {
                block.iter_mut().for_each(|mass| *mass = divide_positive(*mass, total));
            }
        }
        marginals
    }

    fn impossible(&self, row: &[f64]) -> Error {
        let rules = self.conflict(row);
        Error::Impossible { rules: rules.into_iter().map(|rule| self.model.rule_name(rule)).collect() }
    }

    /// A small set of rules through which propagation sees that a row is impossible; from it no rule can be left out.
    fn conflict(&self, row: &[f64]) -> Vec<RuleId> {
        let is_impossible = |kept: &[RuleId]| {
            let rules = kept.iter().map(|&rule| self.model.rule(rule).clone()).collect();
            Model::from_parts(self.model.labels().to_vec(), rules, Vec::new())
                .and_then(|model| Propagation::<SumProduct>::compile(&model, Aim::Sum, self.settings))
                .is_ok_and(|part| part.one(row, Want::Marginals).log_evidence == f64::NEG_INFINITY)
        };
        let mut rules: Vec<RuleId> = self.model.rule_ids().collect();
        // Whole stretches first: a conflict is mostly between few of many rules.
        let mut stretch = rules.len() / 2;
        while stretch > 1 {
            for start in (0..rules.len()).step_by(stretch).rev() {
                let mut fewer = rules.clone();
                fewer.drain(start..rules.len().min(start + stretch));
                if is_impossible(&fewer) {
                    rules = fewer;
                }
            }
            stretch /= 2;
        }
        minimal_subset(rules, is_impossible)
    }
}

/// Whether a category is as good as the best, up to rounding.
fn is_tie(masses: &[f64], category: usize) -> bool {
    let largest = masses.iter().copied().fold(0.0, f64::max);
    masses[category] >= largest * (1.0 - TIE)
}

fn first_best(masses: &[f64]) -> usize {
    (0..masses.len()).find(|&category| is_tie(masses, category)).unwrap_or(0)
}
