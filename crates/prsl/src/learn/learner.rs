//! The learner: calibrators, then rules, then combinations, notes and priors.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};

use super::combinations::{self, Combinations};
use super::data::{Calibration, Data, Fitted};
use super::examples::Examples;
use super::feature::Feature;
use super::fisher::Fisher;
use super::induction::{FINAL_TOLERANCE, Induction, State};
use super::notes::Note;
use super::objective::{Point, sigmoid};
use super::prices::Prices;
use super::priors::{significant, with_priors};
use super::problem::{Compiled, Problem};
use super::remote::Survey;
use super::softening;
use crate::calibrate::CalibrationMethod;
use crate::error::{Error, Result};
use crate::infer::Limits;
use crate::label::LabelId;
use crate::model::{Combination, LearnedNote, Model};
use crate::rule::Rule;

/// How rules are learned. The defaults suit most data.
///
/// ```
/// use prsl::learn::{Examples, Learner};
/// use prsl::{BeliefMatrix, Model, Normalize, Truth};
///
/// // Two classifiers that know little, of labels that are always equal.
/// let model = Model::parse("label left\nlabel right")?;
/// let mut beliefs = BeliefMatrix::new(&model);
/// let mut truths = Vec::new();
/// for row in 0..200 {
///     let truth = row % 2;
///     let belief = if truth == 0 { 0.6 } else { 0.4 };
///     beliefs.push(&[Some(belief), None, Some(0.5), None], Normalize::Never)?;
///     truths.push(Truth::from_indices([Some(truth), Some(truth)]));
/// }
/// let learned = Learner { typical: false, ..Learner::default() }.learn(&model, &Examples::new(beliefs, truths)?)?;
/// assert_eq!(learned.path.len(), 2); // left -> right, and right -> left
/// # Ok::<(), prsl::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Learner {
    /// The price of a rule, as a multiple γ of its description length in nats. A rule is added only if it gains more.
    pub parsimony: f64,
    /// Maximum number of learned rules.
    pub max_rules: Option<usize>,
    /// Whether typical combinations are learned, if they pay.
    pub typical: bool,
    /// How beliefs are calibrated.
    pub calibrate: Calibrating,
    /// Whether the probabilities of the base's rules are learned, except those of 0, 0.5 and 1, and of fixed rules.
    pub learn_probabilities: bool,
    /// Maximum bytes of the tables of inference.
    pub memory: u64,
    /// Seed of the samples on which candidates are scored.
    pub seed: u64,
}

impl Learner {
    /// The parsimony that predicts best.
    pub const PREDICT: f64 = 0.25;
    /// The parsimony that adds only rules that are surely there.
    pub const EXPLAIN: f64 = 1.0;
}

impl Default for Learner {
    fn default() -> Self {
        Self {
            parsimony: Self::PREDICT,
            max_rules: None,
            typical: true,
            calibrate: Calibrating::Joint,
            learn_probabilities: false,
            memory: Limits::default().memory,
            seed: 1,
        }
    }
}

/// How beliefs are calibrated while rules are learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Calibrating {
    /// By the calibrators of the base, if any.
    Given,
    /// By calibrators that are fitted first, without rules.
    Alone(CalibrationMethod),
    /// By calibrators that are fitted first, and then together with the rules.
    Joint,
}

/// The result of learning. Log-likelihoods are those of the known truths, per row, on the rows learned from.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Learned {
    /// The base with learned rules, calibrators, combinations and priors.
    pub model: Model,
    /// Number of rules of the base. The learned rules follow them.
    pub n_kept: usize,
    /// The additions, in order.
    pub path: Vec<Addition>,
    /// Mean log-likelihood of the beliefs as they are given, without rules.
    pub beliefs_alone: f64,
    /// Mean log-likelihood of calibrated beliefs with the base's rules.
    pub base_alone: f64,
    /// Mean log-likelihood of the learned model.
    pub log_likelihood: f64,
    /// Number of rows whose truth the base excludes. They are not learned from.
    pub n_impossible: usize,
    /// Whether learning was stopped early.
    pub is_stopped: bool,
}

/// Rules that were added together.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Addition {
    /// The rules as text, without their probability.
    pub rules: Vec<String>,
    /// Gain in penalized log-likelihood after refitting, in nats.
    pub gain: f64,
    /// What they cost, in nats.
    pub price: f64,
    /// Mean log-likelihood afterward, per row.
    pub log_likelihood: f64,
    /// The next candidates as text, with their estimated gains.
    pub runners_up: Vec<(String, f64)>,
}

/// How far learning has come, for progress bars and for continuing after a stop.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// A hash of settings, base and rows; `None` before the first pass.
    fingerprint: Option<u64>,
    state: Option<State>,
    phase: Phase,
}

/// What the learner is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Phase {
    /// It fits calibrators.
    #[default]
    Calibrating,
    /// It scores candidates and adds rules.
    Adding,
    /// It judges each rule by taking it out. The number counts those that are done.
    Judging(usize),
}

impl Progress {
    /// What the learner is doing.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Number of rules added so far.
    pub fn n_rules(&self) -> usize {
        self.state.as_ref().map_or(0, |state| state.features.len())
    }

    /// Number of passes over the candidates.
    pub fn n_passes(&self) -> u64 {
        self.state.as_ref().map_or(0, |state| state.n_passes)
    }

    /// Gain of the last addition, in nats.
    pub fn last_gain(&self) -> Option<f64> {
        self.state.as_ref().and_then(|state| state.path.last()).map(|step| step.gain)
    }
}

impl Learner {
    /// Learns beside the rules of `base`, which stay as they are (or their probabilities, if that is asked for).
    pub fn learn(&self, base: &Model, rows: &Examples) -> Result<Learned> {
        self.learn_observed(base, rows, Progress::default(), &mut |_| ControlFlow::Continue(()))
    }

    /// Like [`Self::learn`]. It continues from `progress`, and reports it after every evaluation of all rows. With `Break`
    /// it ends with the best model so far.
    pub fn learn_observed(
        &self,
        base: &Model,
        rows: &Examples,
        progress: Progress,
        observe: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Learned> {
        self.check()?;
        if !base.without_calibrators().same_labels(&rows.model().without_calibrators()) {
            let problem = "the rows are about other labels than the base".to_owned();
            return Err(Error::Examples { problem });
        }
        let survey = Survey::of(rows);
        let problem = || {
            let prepared = match self.calibrate {
                Calibrating::Alone(method) => rows.calibrated(base, method)?,
                Calibrating::Given | Calibrating::Joint => survey.cautious(base)?,
            };
            let (fitted, free_rules, limits) = self.parts(&prepared, &survey);
            let data = Data::new(&prepared, rows, &fitted)?;
            Problem::new(&prepared, data, free_rules, limits)
        };
        let sample = |problem: &Problem| {
            let sources = problem.rows_to_score(self.seed).into_iter().map(|row| problem.data.place(row));
            rows.select(&sources.collect::<Vec<usize>>())
        };
        self.run(base, &survey, progress, observe, problem, sample)
    }

    /// Learns from a problem. `sample` are the rows on which candidates are scored.
    pub(super) fn run(
        &self,
        base: &Model,
        survey: &Survey,
        mut progress: Progress,
        observe: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
        problem: impl FnOnce() -> Result<Problem>,
        sample: impl FnOnce(&Problem) -> Examples,
    ) -> Result<Learned> {
        if survey.n_used == 0 {
            let problem = "no truth is known in any row; there is nothing to learn from".to_owned();
            return Err(Error::Examples { problem });
        }
        let fingerprint = self.fingerprint(base, survey);
        if *progress.fingerprint.get_or_insert(fingerprint) != fingerprint {
            let problem = "the checkpoint belongs to other rows, another base or other settings; start again without it";
            return Err(Error::Examples { problem: problem.to_owned() });
        }
        let mut problem = problem()?;
        let mut run = Run { progress, observe, is_over: false, has_failed: problem.failed_flag() };
        if problem.n_rows() == 0 {
            let problem =
                "the rules of the base exclude the truths of all rows; `prsl check` finds contradictions";
            return Err(Error::Examples { problem: problem.to_owned() });
        }
        let start = self.start(&mut problem, &mut run)?;
        let sizes: Vec<usize> = problem.data.blocks.iter().map(|block| block.len()).collect();
        // Unary rules are for labels whose truth is known, and whose base rate no calibrator can learn.
        let is_unary = |&label: &usize| {
            problem.data.calibrations[label] == Calibration::Given && survey.n_seen[label] > 0
        };
        let unary: Vec<usize> = (0..sizes.len()).filter(is_unary).collect();
        let prices = Prices::new(&sizes, &unary, problem.weight());
        let induction = Induction {
            problem: &problem,
            prices: &prices,
            parsimony: self.parsimony,
            max_rules: self.max_rules.unwrap_or(usize::MAX),
            unary: &unary,
            seed: self.seed,
        };
        let added = self.add_rules(&induction, start, &mut run);
        problem.failure()?;
        let (base_alone, mut compiled) = added?;
        let (state, point) = self.finished(&induction, &mut compiled, &mut run);
        let notes = induction.notes(&state, &mut compiled, &mut |place| run.judges(place));
        let found = match self.typical && !run.is_over {
            true => combinations::learn(&problem, &mut compiled, &state.parameters, self.seed),
            false => Combinations::default(),
        };
        problem.failure()?;
        let model = model_of(&problem, &compiled, &state.parameters, &notes, &found)?;
        let model = with_priors(base, &model, &sample(&problem))?;
        let total = problem.weight().max(f64::MIN_POSITIVE);
        let learned = Learned {
            n_kept: base.rules().len(),
            path: state.path.iter().map(|step| addition(&problem, step, total)).collect(),
            beliefs_alone: problem
                .independent_point(&[problem.data.identity(), problem.free_weights()].concat())
                .log_likelihood
                / total,
            base_alone: base_alone / total,
            log_likelihood: (point.log_likelihood + found.gain) / total,
            n_impossible: problem.totals.n_used - problem.n_rows(),
            is_stopped: run.is_over,
            model,
        };
        problem.failure()?;
        Ok(learned)
    }

    /// The learned rules after a precise refit, and the objective. A run that judges its rules was refitted before.
    fn finished(
        &self,
        induction: &Induction<'_>,
        compiled: &mut Compiled,
        run: &mut Run<'_>,
    ) -> (State, Point) {
        let mut state = run.progress.state.take().expect("rules have been added");
        let mut point = induction.problem.point(compiled, &state.parameters);
        if !run.is_over && run.progress.phase == Phase::Adding {
            let sheet = induction.draw(&state, compiled);
            let fisher = Fisher::new(induction.problem, &sheet, &state.features);
            (state.parameters, point) = induction.refit(
                compiled,
                fisher.as_ref().map(Fisher::matrix),
                state.parameters.clone(),
                FINAL_TOLERANCE,
                &mut || run.goes_on(),
            );
            state.value = point.value;
        }
        run.progress.state = Some(state.clone());
        (state, point)
    }

    pub(super) fn check(&self) -> Result<()> {
        if !(self.parsimony >= 0.0 && self.parsimony.is_finite()) {
            let problem = format!("parsimony is {}, expected a number of at least 0", self.parsimony);
            return Err(Error::Examples { problem });
        }
        Ok(())
    }

    /// A hash of everything that determines the result.
    fn fingerprint(&self, base: &Model, survey: &Survey) -> u64 {
        let mut hasher = DefaultHasher::new();
        format!("{self:?}").hash(&mut hasher);
        base.to_string().hash(&mut hasher);
        survey.hash.hash(&mut hasher);
        hasher.finish()
    }

    /// For each label which parameters its calibrator has; the base's rules whose probability is learned; and the limits.
    pub(super) fn parts(&self, base: &Model, survey: &Survey) -> (Vec<Fitted>, Vec<usize>, Limits) {
        let is_free = |label: LabelId| {
            let declared = base.label(label);
            let has_fixed_prior = declared.classifier().is_none() && declared.prior().is_some();
            self.calibrate == Calibrating::Joint && survey.n_seen[label.index()] > 0 && !has_fixed_prior
        };
        let fitted: Vec<Fitted> = base.label_ids().map(|label| Fitted::usual_if(is_free(label))).collect();
        let is_learned = |rule: &Rule| {
            self.learn_probabilities && !rule.is_fixed() && ![0.0, 0.5, 1.0].contains(&rule.probability())
        };
        let rules = base.rules().iter().enumerate();
        let free_rules = rules.filter(|(_, rule)| is_learned(rule)).map(|(place, _)| place).collect();
        (fitted, free_rules, Limits { memory: self.memory })
    }

    /// Fits calibrators, and keeps them near these from now on.
    fn start(&self, problem: &mut Problem, run: &mut Run<'_>) -> Result<Vec<f64>> {
        let has_rules = !problem.model.rules().is_empty();
        let mut compiled = has_rules.then(|| problem.compile(&[], &[])).transpose()?;
        let start = problem.calibrated(compiled.as_mut(), &mut || run.goes_on());
        problem.center(&start);
        Ok(start)
    }

    /// Adds rules until none pays. Returns the log-likelihood of the base, and the compiled rules.
    fn add_rules(
        &self,
        induction: &Induction<'_>,
        start: Vec<f64>,
        run: &mut Run<'_>,
    ) -> Result<(f64, Compiled)> {
        let problem = induction.problem;
        let mut compiled = problem.compile(&[], &[])?;
        let (parameters, point) =
            induction.refit(&mut compiled, None, start, FINAL_TOLERANCE, &mut || run.goes_on());
        let first = State { parameters, value: point.value, ..State::default() };
        let mut state = run.progress.state.take().unwrap_or(first);
        if !state.features.is_empty() {
            compiled = problem.compile(&state.features, &state.broken)?;
        }
        // A run that was stopped while it judged its rules has added them all.
        let mut pays = !matches!(run.progress.phase, Phase::Judging(_));
        if pays {
            run.progress.phase = Phase::Adding;
        }
        while pays && !run.is_over {
            run.progress.state = Some(state.clone());
            run.goes_on();
            (compiled, pays) = induction.pass(&mut state, compiled, &mut || run.goes_on())?;
            if !pays && !run.is_over {
                let simpler = induction.simplify(&mut state, &mut compiled, &mut || run.goes_on())?;
                let fewer = induction.prune(&mut state, &mut compiled, &mut || run.goes_on())?;
                let shorter = induction.relax(&mut state, &mut compiled, &mut || run.goes_on())?;
                if simpler || fewer || shorter {
                    pays = true;
                    (state.n_failures, state.n_refusals) = (0, 0);
                }
            }
        }
        run.progress.state = Some(state);
        Ok((point.log_likelihood, compiled))
    }
}

/// A run of the learner, with its observer.
struct Run<'a> {
    progress: Progress,
    observe: &'a mut dyn FnMut(&Progress) -> ControlFlow<()>,
    is_over: bool,
    /// Set when rows that are elsewhere cannot be asked any more.
    has_failed: Arc<AtomicBool>,
}

impl Run<'_> {
    /// Reports progress. Returns whether to go on.
    fn goes_on(&mut self) -> bool {
        self.is_over = self.is_over
            || self.has_failed.load(Ordering::Relaxed)
            || (self.observe)(&self.progress).is_break();
        !self.is_over
    }

    fn judges(&mut self, place: usize) -> bool {
        self.progress.phase = Phase::Judging(place);
        self.goes_on()
    }
}

fn addition(problem: &Problem, step: &super::induction::Step, total: f64) -> Addition {
    let text = |feature: &Feature| feature.text(&problem.model, &problem.counted);
    Addition {
        rules: step.added.iter().map(text).collect(),
        gain: step.gain,
        price: step.price,
        log_likelihood: step.log_likelihood / total,
        runners_up: step.runners_up.iter().map(|(feature, gain)| (text(feature), *gain)).collect(),
    }
}

/// The base with everything that was learned.
fn model_of(
    problem: &Problem,
    compiled: &Compiled,
    parameters: &[f64],
    notes: &[Note],
    found: &Combinations,
) -> Result<Model> {
    let (fixed, weights) = parameters.split_at(problem.n_fixed());
    let mut builder = problem.model.edit().retain_rules(|_| false);
    for label in problem.model.label_ids() {
        let name = problem.model.label(label).name();
        if let Some(calibrator) = problem.data.calibrator(label.index(), fixed)? {
            builder = builder.calibrator(name, calibrator);
        }
        if let Some(prior) = problem.data.prior(label.index(), fixed) {
            builder = builder.prior(name, prior);
        }
    }
    for (index, rule) in problem.model.rules().iter().enumerate() {
        let place = problem.free_rules.iter().position(|&free| free == index);
        let weight = place.map(|place| fixed[problem.data.n_calibration_parameters + place]);
        let rule = rule.clone();
        builder = builder.add_rule(match weight {
            Some(weight) => rule.with_probability(rounded(weight)),
            None => rule,
        });
    }
    for note in notes {
        let (place, weight) = (note.rule.rule, weights[note.rule.rule]);
        let feature = &compiled.features[place];
        let rule = match note.rule.softening {
            None => feature.rule(&problem.model, &problem.counted, 0.5),
            Some(other) => softening::noisy_or(
                &problem.model,
                [feature, &compiled.features[other]],
                [weight, weights[other]],
            ),
        };
        let learned =
            LearnedNote::new(note.gain.max(0.0), note.broken, note.known, note.expected.max(0.0), note.sure);
        builder = builder.add_rule(rule.with_probability(rounded(weight)).with_learned(learned));
    }
    for (categories, weight) in found.list.iter().filter(|(_, weight)| *weight > 0.0) {
        builder = builder.add_typical(Combination::new(significant(*weight, 4), categories.clone()));
    }
    builder.build()
}

/// The probability of a rule, with three significant digits of the smaller of p and 1 − p.
fn rounded(weight: f64) -> f64 {
    let small = significant(sigmoid(-weight.abs()), 3);
    significant(if weight < 0.0 { small } else { 1.0 - small }, 12)
}
