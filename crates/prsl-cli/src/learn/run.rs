//! Runs the learners, with a progress bar, until they are done or stopped.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Result;
use prsl::Model;
use prsl::learn::paper::{PaperLearned, PaperProgress};
use prsl::learn::{Calibrating, Examples, Learned, Learner, Phase, Progress, TimeLimit};

use super::settings::Recipe;
use super::warnings::warn;
use super::{Arguments, Learning, Outcome, Validated};
use crate::progress::{Spinner, StepBar, counted};

/// The time limit, and the user's request to stop.
pub(super) struct Clock {
    limit: TimeLimit,
    stop: &'static AtomicBool,
}

impl Clock {
    /// Starts now.
    pub(super) fn new(most: Option<Duration>) -> Clock {
        Clock { limit: TimeLimit::new(most), stop: stop_on_interrupt() }
    }

    /// The time since the start.
    pub(super) fn elapsed(&self) -> Duration {
        self.limit.elapsed()
    }

    fn goes_on(&mut self) -> ControlFlow<()> {
        if self.limit.allows_a_step() && !self.stop.load(Ordering::Relaxed) {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    }
}

impl Arguments {
    /// Learns by the chosen recipe.
    pub(super) fn learn(
        &self,
        clock: &mut Clock,
        base: &Model,
        train: &Examples,
        valid: Option<&Examples>,
    ) -> Result<Learning> {
        match (self.recipe, valid) {
            (Recipe::Paper, Some(valid)) => {
                Ok(Learning::Paper(self.learn_paper(clock, base, [train, valid])?))
            }
            _ => Ok(Learning::Clauses(self.learn_clauses(clock, base, train)?)),
        }
    }

    /// Writes a checkpoint at first, and then whenever there are more rules.
    fn learn_clauses(&self, clock: &mut Clock, base: &Model, train: &Examples) -> Result<Learned> {
        let saved: Option<Progress> = self.progress("clauses")?;
        let mut checkpoints = self.checkpoints("clauses");
        let mut n_saved = saved.as_ref().map(Progress::n_rules);
        let spinner = Spinner::new("compiling the base");
        let mut observe = |progress: &Progress| {
            spinner.tell(describe(progress));
            if n_saved.is_none_or(|n_saved| progress.n_rules() > n_saved) {
                n_saved = Some(progress.n_rules());
                checkpoints.write(progress);
            }
            clock.goes_on()
        };
        let learned = self.learner().learn_observed(base, train, saved.unwrap_or_default(), &mut observe);
        spinner.finish();
        Ok(learned?)
    }

    /// Writes a checkpoint at first, and after each evaluation.
    fn learn_paper(
        &self,
        clock: &mut Clock,
        base: &Model,
        [train, valid]: [&Examples; 2],
    ) -> Result<PaperLearned> {
        let learner = self.paper_learner();
        let progress: PaperProgress = self.progress("paper")?.unwrap_or_default();
        let mut checkpoints = self.checkpoints("paper");
        let mut last_saved = None;
        let mut bar = StepBar::new("preparing", learner.steps.saturating_mul(learner.rules.len()) as u64);
        let learned = learner.learn_observed(base, train, valid, progress, &mut |progress| {
            let done = progress.n_done().saturating_mul(learner.steps).saturating_add(progress.step());
            bar.update(done as u64, &describe_paper(progress));
            let evaluation = progress.last();
            let state = Some((progress.n_done(), progress.n_rules(), evaluation.map(|it| it.step)));
            // A run without an evaluation has no best parameters yet.
            if last_saved != state && (evaluation.is_some() || progress.n_rules().is_none()) {
                last_saved = state;
                checkpoints.write(progress);
            }
            clock.goes_on()
        });
        bar.finish();
        Ok(learned?)
    }

    /// Cross-validates, if that was asked for and there are enough rows and time.
    pub(super) fn cross_validate(
        &self,
        clock: &mut Clock,
        learning: &Learning,
        base: &Model,
        train: &Examples,
    ) -> Validated {
        let n_folds = self.n_folds();
        let is_used = |row: &usize| train.weights()[*row] > 0.0 && train.n_known(*row) > 0;
        let n_known = (0..train.n_rows()).filter(is_used).count();
        if n_folds == 0 {
            return Validated::NotWanted;
        }
        if n_known < 2 * n_folds {
            let rows = counted(n_known as u64, "row");
            return Validated::Skipped(format!("{n_folds} folds are too many for {rows} with known truths"));
        }
        if learning.is_stopped() || clock.goes_on().is_break() {
            return Validated::Skipped("no time was left".to_owned());
        }
        let spinner = Spinner::new("cross-validation");
        let mut observe = |n_done: usize, progress: &Progress| {
            let fold = format!("cross-validation, fold {} of {n_folds}", n_done + 1);
            spinner.tell(format!("{fold}: {}", describe(progress)));
            clock.goes_on()
        };
        let validated = self.learner().cross_validate(base, train, n_folds, &mut observe);
        spinner.finish();
        match validated {
            Ok(scores) => Validated::Done(scores),
            Err(error) => {
                // The model is already written, so this is not fatal.
                warn(&format!("cross-validation failed: {error}"));
                Validated::Skipped("it failed".to_owned())
            }
        }
    }

    /// The base with everything but new rules and combinations. `None` if it says the same as the beliefs alone, or if
    /// there is no time to calibrate it.
    pub(super) fn baseline(&self, outcome: &Outcome<'_>) -> Result<Option<Model>> {
        let base = outcome.base;
        if outcome.base_name().is_none() {
            return Ok(None);
        }
        if self.recipe == Recipe::Paper {
            let method = self.paper_learner().calibrate;
            return Ok(Some(match method {
                prsl::learn::paper::Calibrating::Alone(method) => outcome.train.calibrated(base, method)?,
                prsl::learn::paper::Calibrating::Given => base.clone(),
            }));
        }
        let learner = Learner { max_rules: Some(0), typical: false, ..self.learner() };
        if learner.calibrate == Calibrating::Given && !learner.learn_probabilities {
            return Ok(Some(base.clone()));
        }
        let is_stopped = outcome.learning.is_stopped();
        Ok(if is_stopped { None } else { Some(learner.learn(base, outcome.train)?.model) })
    }
}

fn describe(progress: &Progress) -> String {
    let n_rules = progress.n_rules();
    match (progress.phase(), progress.last_gain()) {
        (Phase::Calibrating, _) => "fitting calibrators".to_owned(),
        (Phase::Judging(place), _) => format!("judging rule {} of {n_rules}", place + 1),
        (_, Some(gain)) => {
            format!("adding rules: {n_rules} so far, the last gained {gain:.1} nats")
        }
        (_, None) => "looking for the first rule".to_owned(),
    }
}

fn describe_paper(progress: &PaperProgress) -> String {
    let Some(evaluation) = progress.last() else { return "preparing".to_owned() };
    let training = evaluation.training.map_or(String::new(), |training| format!("training {training:.3}, "));
    let n_rules = progress.n_rules().map_or(String::new(), |n| format!("{}: ", counted(n as u64, "rule")));
    format!("{n_rules}{training}validation {:.3}", evaluation.validation)
}

/// Becomes true when the user presses Ctrl-C; a second time ends the program at once.
fn stop_on_interrupt() -> &'static AtomicBool {
    static STOP: AtomicBool = AtomicBool::new(false);
    // Only one handler can be installed; a second call finds it.
    let _ = ctrlc::set_handler(|| {
        if STOP.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    });
    &STOP
}
