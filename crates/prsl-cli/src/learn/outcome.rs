//! The learned model with its scores, for the summary and the report.

use anyhow::Result;
use prsl::calibrate::Calibrator;
use prsl::learn::paper::PaperLearned;
use prsl::learn::{CrossValidation, Estimate, Examples, Learned};
use prsl::metrics::{Bootstrap, Metric, Reliability};
use prsl::{Label, Limits, Model, RuleId};

use crate::evaluate::{Scored, Scorer};
use crate::figures;
use crate::progress::counted;

/// The result of either recipe.
#[derive(Debug)]
pub enum Learning {
    /// Rule induction.
    Clauses(Learned),
    /// The recipe of the paper.
    Paper(PaperLearned),
}

impl Learning {
    /// The learned model.
    pub fn model(&self) -> &Model {
        match self {
            Learning::Clauses(learned) => &learned.model,
            Learning::Paper(learned) => &learned.model,
        }
    }

    /// Whether learning was stopped early.
    pub fn is_stopped(&self) -> bool {
        match self {
            Learning::Clauses(learned) => learned.is_stopped,
            Learning::Paper(learned) => learned.is_stopped,
        }
    }

    /// Number of rows that rules of probability 0 or 1 exclude.
    pub fn n_impossible(&self) -> usize {
        match self {
            Learning::Clauses(learned) => learned.n_impossible,
            Learning::Paper(_) => 0,
        }
    }
}

/// Cross-validation, or why there is none.
#[derive(Debug)]
pub enum Validated {
    /// It was not asked for.
    NotWanted,
    /// It was skipped for this reason.
    Skipped(String),
    /// Its scores.
    Done(CrossValidation),
}

impl Validated {
    /// What it found, in words; `None` if it was not asked for.
    pub fn sentence(&self) -> Option<String> {
        let scores = match self {
            Validated::NotWanted => return None,
            Validated::Skipped(reason) => return Some(format!("cross-validation was skipped: {reason}")),
            Validated::Done(scores) => scores,
        };
        let n_folds = scores.n_folds;
        let name = format!("{n_folds}-fold cross-validation");
        let cut = match scores.folds.len() {
            0 => return Some(format!("{name} was stopped before its first fold was finished")),
            n if n < n_folds => format!(" (cut short: {n} of {n_folds} folds)"),
            _ => String::new(),
        };
        let mut parts = Vec::new();
        if let Some(found) = scores.log_likelihood() {
            parts.push(format!("log-likelihood {}", shown(found, 4)));
        }
        if let Some(Estimate { mean, standard_error, .. }) = scores.joint_accuracy() {
            let error = standard_error.map_or(String::new(), |error| format!(" ± {:.1}", 100.0 * error));
            parts.push(format!("joint accuracy {:.1}{error} %", 100.0 * mean));
        }
        if parts.is_empty() {
            parts.push("no scores, because exact inference is too expensive".to_owned());
        }
        let excluded = match scores.n_impossible() {
            0 => String::new(),
            n => format!("; {} of probability 0 scored as ln 1e-300", counted(n as u64, "row")),
        };
        Some(format!("{name}{cut}: {}{excluded}", parts.join(", ")))
    }
}

/// `-0.1234 ± 0.0100`.
fn shown(found: Estimate, digits: usize) -> String {
    let error = found.standard_error.map_or(String::new(), |error| format!(" ± {error:.digits$}"));
    format!("{:.digits$}{error}", found.mean)
}

/// Mean joint log-likelihoods of one model.
pub struct Likelihood {
    /// The name of the model.
    pub name: &'static str,
    /// Of the training set, if known.
    pub training: Option<f64>,
    /// Of the validation set, if known.
    pub validation: Option<f64>,
}

/// The names of two models; the base is named by [`Outcome::base_name`].
const ALONE: &str = "beliefs alone";
const LEARNED: &str = "learned";

/// The scores of one model.
pub struct Evaluated {
    /// The name of the model.
    pub name: &'static str,
    /// Its scores, with intervals if there will be a report.
    pub scored: Scored,
    /// Its reliability.
    pub reliability: Reliability,
}

/// The learned model with its scores.
pub struct Outcome<'a> {
    /// The base model.
    pub base: &'a Model,
    /// The result of the recipe.
    pub learning: Learning,
    /// The training set.
    pub train: &'a Examples,
    /// The validation set, if there is one.
    pub valid: Option<&'a Examples>,
    /// Whether the base has no calibrators, and none were learned.
    pub is_raw: bool,
    /// Models with their scores on the validation set, or without one on the training set.
    pub evaluated: Vec<Evaluated>,
    /// The cross-validation.
    pub validated: Validated,
}

impl Outcome<'_> {
    /// The learned model.
    pub fn model(&self) -> &Model {
        self.learning.model()
    }

    /// The rules of the base in the learned model.
    pub fn kept(&self) -> impl ExactSizeIterator<Item = RuleId> + use<> {
        (0..self.base.rules().len()).map(RuleId::new)
    }

    /// The learned rules, those of the largest gain first. The rules of the paper's recipe have no gain.
    pub fn learned(&self) -> Vec<RuleId> {
        let mut rules: Vec<RuleId> = self.model().rule_ids().skip(self.base.rules().len()).collect();
        rules.sort_by(|a, b| self.gain(*b).total_cmp(&self.gain(*a)));
        rules
    }

    /// The gain of a learned rule, in nats.
    pub fn gain(&self, rule: RuleId) -> f64 {
        self.model().rule(rule).learned().map_or(0.0, |note| note.gain)
    }

    /// Number of labels with a calibrator.
    pub fn n_calibrators(&self) -> usize {
        let is_calibrated = |label: &&Label| *label.calibrator() != Calibrator::Identity;
        self.model().labels().iter().filter(is_calibrated).count()
    }

    /// `2 rules (1 of them sure), no typical combinations, 2 calibrators`.
    pub fn sizes(&self) -> String {
        let rules = self.learned();
        let is_sure = |rule: &&RuleId| self.model().rule(**rule).learned().is_some_and(|note| note.sure);
        let sure = match &self.learning {
            Learning::Clauses(_) if rules.is_empty() => String::new(),
            Learning::Clauses(_) => format!(" ({} sure)", rules.iter().filter(is_sure).count()),
            Learning::Paper(learned) => format!(" (K = {})", learned.n_rules),
        };
        let n_typical = self.model().typical().len() - self.base.typical().len();
        format!(
            "{}{sure}, {}, {}",
            counted(rules.len() as u64, "rule"),
            counted(n_typical as u64, "typical combination"),
            counted(self.n_calibrators() as u64, "calibrator"),
        )
    }

    /// The name of the base as a baseline; `None` if it is the same as the beliefs alone.
    pub fn base_name(&self) -> Option<&'static str> {
        match (self.is_raw, self.base.rules().is_empty()) {
            (true, true) => None,
            (true, false) => Some("your rules"),
            (false, true) => Some("calibrated beliefs"),
            (false, false) => Some("calibrated beliefs, your rules"),
        }
    }

    /// The rows of the evaluations.
    pub fn evaluated_rows(&self) -> &Examples {
        self.valid.unwrap_or(self.train)
    }

    /// Evaluates the raw beliefs, the baseline and the learned model, one after another, so that only one evaluation is in
    /// memory. Intervals are for the report only.
    pub fn evaluate(
        &mut self,
        baseline: Option<&Model>,
        limits: Limits,
        bootstrap: Option<Bootstrap>,
    ) -> Result<()> {
        let raw = self.base.without_rules()?.without_calibrators();
        let base = self.base_name().zip(baseline);
        let models = [Some((ALONE, &raw)), base, Some((LEARNED, self.model()))];
        let rows = self.evaluated_rows();
        let score = |(name, model): (&'static str, &Model)| {
            let evaluation = Scorer::score(model, rows, limits, |rows| rows.beliefs_for(model))?;
            let intervals = bootstrap.map(|settings| evaluation.intervals(&settings));
            let scored = Scored::new(&evaluation, intervals);
            Ok(Evaluated { name, scored, reliability: figures::reliability(&evaluation) })
        };
        self.evaluated = models.into_iter().flatten().map(score).collect::<Result<_>>()?;
        Ok(())
    }

    /// The mean joint log-likelihoods of the beliefs alone, the base and the learned model.
    pub fn likelihoods(&self) -> Vec<Likelihood> {
        let evaluated = |name: &str| {
            let of_name = self.evaluated.iter().find(|other| other.name == name)?;
            self.valid.and(of_name.scored.get(Metric::MeanJointLogLikelihood))
        };
        let (training, validation) = match &self.learning {
            Learning::Clauses(it) => (
                [Some(it.beliefs_alone), Some(it.base_alone), Some(it.log_likelihood)],
                [evaluated(ALONE), self.base_name().and_then(evaluated), evaluated(LEARNED)],
            ),
            Learning::Paper(it) => {
                ([None; 3], [Some(it.beliefs_alone), Some(it.base_alone), Some(it.validation)])
            }
        };
        let names = [Some(ALONE), self.base_name(), Some(LEARNED)];
        let likelihood = |place: usize| {
            let (training, validation) = (training[place], validation[place]);
            Some(Likelihood { name: names[place]?, training, validation })
        };
        (0..3).filter_map(likelihood).collect()
    }
}
