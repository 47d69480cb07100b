//! Runs the optimization for each number of rules, and returns the best model.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use super::objective::Objective;
use super::regularizer::{Regularizer, Settings};
use super::rows::Rows;
use super::run::{Data, Evaluation, Run};
use super::{Calibrating, PaperLearner};
use crate::error::{Error, Result};
use crate::label::{CategoryId, Label, LabelId};
use crate::learn::examples::Examples;
use crate::learn::watch::{Watch, never};
use crate::model::Model;
use crate::noisy_or::{Inhibition, NoisyOr};
use crate::rule::{Body, Rule};

/// Maximum number of rules. A hundred silent rules multiply a weight by (1 − p)¹⁰⁰ = 1e-300; more would underflow.
const MAX_RULES: usize = 100;

/// The result of learning.
#[derive(Clone, Debug)]
pub struct PaperLearned {
    /// The base model with the learned rules and calibrators.
    pub model: Model,
    /// The number of rules that was chosen, K. Rules without any q below 1 are left out of the model.
    pub n_rules: usize,
    /// The evaluations of the chosen number of rules.
    pub curve: Vec<Evaluation>,
    /// Mean joint log-likelihood of the validation set under the model.
    pub validation: f64,
    /// The same without rules and calibrators.
    pub beliefs_alone: f64,
    /// The same with the calibrators and the rules of the base model.
    pub base_alone: f64,
    /// Whether it was stopped. The model is then the best so far.
    pub is_stopped: bool,
}

/// The state of learning, for progress bars and checkpoints.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PaperProgress {
    /// A hash of the settings, the base model and the rows; `None` before the start.
    fingerprint: Option<u64>,
    /// The optimizations that are finished.
    done: Vec<Run>,
    /// The optimization that is running.
    current: Option<Run>,
}

impl PaperProgress {
    /// The state before the start.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many numbers of rules are finished.
    pub fn n_done(&self) -> usize {
        self.done.len()
    }

    /// Number of steps made with the current number of rules.
    pub fn step(&self) -> usize {
        self.current.as_ref().map_or(0, |run| run.step)
    }

    /// The current number of rules, or the last one that was finished.
    pub fn n_rules(&self) -> Option<usize> {
        self.last_run().map(|run| run.n_rules)
    }

    /// The last evaluation.
    pub fn last(&self) -> Option<Evaluation> {
        self.last_run().and_then(|run| run.curve.last().copied())
    }

    fn last_run(&self) -> Option<&Run> {
        self.current.as_ref().or(self.done.last())
    }

    /// The best optimization, the first of equals.
    fn best(&self) -> Option<&Run> {
        let runs = self.done.iter().chain(&self.current).filter(|run| !run.curve.is_empty());
        runs.reduce(|best, run| if run.best_validation > best.best_validation { run } else { best })
    }
}

impl PaperLearner {
    /// Learns rules beside those of `base`, which stay as they are.
    pub fn learn(&self, base: &Model, train: &Examples, valid: &Examples) -> Result<PaperLearned> {
        self.learn_observed(base, train, valid, PaperProgress::new(), &mut |_| ControlFlow::Continue(()))
    }

    /// Learns from a saved state on. It calls `observe` with its state after each evaluation, and in between several times a
    /// second. `Break` ends learning with the best model so far. A state that `observe` has seen can be resumed, and then
    /// leads to the same model.
    pub fn learn_observed(
        &self,
        base: &Model,
        train: &Examples,
        valid: &Examples,
        mut progress: PaperProgress,
        observe: &mut dyn FnMut(&PaperProgress) -> ControlFlow<()>,
    ) -> Result<PaperLearned> {
        let regularizer = self.check(base, train, valid)?;
        let fingerprint = self.fingerprint(base, [train, valid]);
        if *progress.fingerprint.get_or_insert(fingerprint) != fingerprint {
            return Err(other_run());
        }
        let mut ask = || observe(&progress);
        let mut watch = Watch::new(&mut ask);
        let base = &match self.calibrate {
            Calibrating::Given => base.clone(),
            Calibrating::Alone(method) => train.calibrated_while(base, method, &mut watch)?,
        };
        let mut is_stopped = watch.is_over();
        let alone = Objective::new(self, base, &[])?;
        let rows = |examples: &Examples| Rows::new(base, &alone.space, &alone.experts, examples);
        // Refuses what is too costly before the first step. Later the rules may connect more labels at once, and fail.
        let most = self.rules.iter().copied().max().unwrap_or(0);
        Objective::new(self, base, &Run::new(self, most, &alone.space).q)?;
        let data = Data { regularizer: &regularizer, train: &rows(train), valid: &rows(valid) };
        for &n_rules in self.rules.iter().skip(progress.done.len()) {
            if is_stopped {
                break;
            }
            let start = || Run::new(self, n_rules, &alone.space);
            let run = progress.current.get_or_insert_with(start);
            if run.n_rules != n_rules || run.q.len() != n_rules * alone.space.n_categories() {
                return Err(other_run());
            }
            is_stopped = self.optimize(base, &data, &mut progress, observe)?.is_break();
            if !is_stopped {
                progress.done.extend(progress.current.take());
            }
        }
        self.finish(base, valid, &alone, &data, &progress, is_stopped)
    }

    /// Optimizes the current run until it is finished or stopped.
    fn optimize(
        &self,
        base: &Model,
        data: &Data,
        progress: &mut PaperProgress,
        observe: &mut dyn FnMut(&PaperProgress) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        let current = |progress: &PaperProgress| progress.current.clone().expect("a run was started");
        let mut objective = Objective::new(self, base, &current(progress).q)?;
        loop {
            let run = current(progress);
            if run.is_done(self) {
                return Ok(ControlFlow::Continue(()));
            }
            let mut ask = || observe(progress);
            let Some(next) = run.next(self, &mut objective, data, &mut Watch::new(&mut ask))? else {
                return Ok(ControlFlow::Break(()));
            };
            let is_evaluated = next.is_evaluated();
            progress.current = Some(next);
            if is_evaluated && observe(progress).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
    }

    fn finish(
        &self,
        base: &Model,
        valid: &Examples,
        alone: &Objective,
        data: &Data,
        progress: &PaperProgress,
        is_stopped: bool,
    ) -> Result<PaperLearned> {
        let mut never = never();
        let mut watch = Watch::new(&mut never);
        let mut value = |objective: &Objective, rows: &Rows| {
            objective.value(rows, &mut watch).expect("it is never stopped")
        };
        let base_alone = value(alone, data.valid);
        let plain = base.without_rules()?.without_calibrators();
        let beliefs = Objective::new(self, &plain, &[])?;
        let beliefs_alone = value(&beliefs, &Rows::new(&plain, &beliefs.space, &[], valid));
        let Some(run) = progress.best() else {
            let (model, curve) = (base.clone(), Vec::new());
            let (n_rules, validation) = (0, base_alone);
            return Ok(PaperLearned {
                model,
                n_rules,
                curve,
                validation,
                beliefs_alone,
                base_alone,
                is_stopped,
            });
        };
        Ok(PaperLearned {
            model: with_rules(base, self.probability, &run.best)?,
            n_rules: run.n_rules,
            curve: run.curve.clone(),
            validation: run.best_validation,
            beliefs_alone,
            base_alone,
            is_stopped,
        })
    }

    /// Checks the rows and the settings.
    fn check(&self, base: &Model, train: &Examples, valid: &Examples) -> Result<Regularizer> {
        let refuse = |problem: String| Err(Error::Examples { problem });
        let advice = "; more rows are needed, or some to validate on";
        for (examples, which, advice) in [(train, "to learn from", ""), (valid, "to validate on", advice)] {
            let known = examples.truths().zip(examples.weights());
            let mut known = known.filter(|(truths, _)| truths.n_known() > 0).peekable();
            if known.peek().is_none() {
                return refuse(format!("there are no rows with a known truth {which}{advice}"));
            }
            if known.all(|(_, weight)| *weight == 0.0) {
                return refuse(format!("all rows with a known truth {which} have weight 0{advice}"));
            }
            if !has_same_labels(examples.model(), base) {
                return refuse(format!("the rows {which} are about other labels than the model"));
            }
        }
        if !base.typical().is_empty() {
            return refuse(
                "the paper's recipe cannot learn beside typical combinations; remove them".to_owned(),
            );
        }
        if self.rules.is_empty() || self.batch == 0 {
            return refuse("learning needs a number of rules to try and rows in a batch".to_owned());
        }
        self.check_settings()?;
        Regularizer::new(Settings {
            alpha: self.alpha,
            tails: [self.gamma_0, self.gamma_1],
            epsilon: self.epsilon,
            lambda: self.lambda,
            labels_per_rule: self.labels_per_rule,
            is_literal: self.literal,
        })
    }

    fn check_settings(&self) -> Result<()> {
        let is_between = |x: f64| x > 0.0 && x < 1.0;
        let between = "a number above 0 and below 1";
        let is_beta = |beta: f64| (0.0..1.0).contains(&beta);
        let beta = "a number from 0 to below 1";
        let is_rate = self.learning_rate > 0.0 && self.learning_rate.is_finite();
        let most = self.rules.iter().copied().max().unwrap_or(0);
        for (setting, value, wanted, is_met) in [
            ("learning_rate", self.learning_rate, "a number above 0", is_rate),
            ("beta1", self.betas[0], beta, is_beta(self.betas[0])),
            ("beta2", self.betas[1], beta, is_beta(self.betas[1])),
            ("clip", self.clip, between, is_between(self.clip)),
            ("probability", self.probability, between, is_between(self.probability)),
            ("rules", most as f64, "100 at most", most <= MAX_RULES),
        ] {
            if !is_met {
                return Err(Error::Setting { setting, value, wanted });
            }
        }
        Ok(())
    }

    /// A hash that tells runs apart whose checkpoints cannot be mixed.
    fn fingerprint(&self, base: &Model, rows: [&Examples; 2]) -> u64 {
        let mut hasher = DefaultHasher::new();
        (env!("CARGO_PKG_VERSION"), format!("{self:?}"), base.to_string()).hash(&mut hasher);
        for examples in rows {
            examples.hash_rows(&mut hasher);
            examples.weights().iter().for_each(|weight| weight.to_bits().hash(&mut hasher));
        }
        hasher.finish()
    }
}

fn other_run() -> Error {
    let problem = "the checkpoint belongs to other rows, another model or other settings; start again";
    Error::Examples { problem: problem.to_owned() }
}

/// The base model with the learned rules. A rule without any q below 1 changes nothing and is left out.
fn with_rules(base: &Model, probability: f64, q: &[f64]) -> Result<Model> {
    let mut builder = base.edit();
    for q in q.chunks_exact(base.n_categories()) {
        let inhibitions: Vec<Inhibition> = base
            .label_ids()
            .flat_map(|label| base.block(label).enumerate().map(move |(category, at)| (label, category, at)))
            .filter(|&(_, _, at)| q[at] < 1.0)
            .map(|(label, category, at)| inhibition(label, category, q[at]))
            .collect();
        if !inhibitions.is_empty() {
            builder = builder.add_rule(Rule::new(probability, Body::NoisyOr(NoisyOr::new(inhibitions))));
        }
    }
    builder.build()
}

fn inhibition(label: LabelId, category: usize, probability: f64) -> Inhibition {
    Inhibition { label, category: CategoryId::new(category), probability }
}

/// Whether two models have the same labels and categories.
fn has_same_labels(a: &Model, b: &Model) -> bool {
    let same = |(a, b): (&Label, &Label)| a.name() == b.name() && a.categories() == b.categories();
    a.labels().len() == b.labels().len() && a.labels().iter().zip(b.labels()).all(same)
}
