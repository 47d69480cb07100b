//! Learning and calibration.

use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use prsl::calibrate::CalibrationMethod;
use prsl::learn::paper::{self, Evaluation, Gradients, PaperLearner, PaperProgress};
use prsl::learn::{Addition, Calibrating, Examples, Learner, Phase, Progress};
use prsl::{LabelId, Limits};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::beliefs::Rows;
use crate::errors::{Failure, Result, argument};
use crate::model::Model;
use crate::score::truths;
use crate::threads::{detached, with_threads};

/// Time between two checks for signals, and between two reports of progress. A tenth of a second feels immediate.
const INTERVAL: Duration = Duration::from_millis(100);

/// Settings of every recipe.
#[derive(FromPyObject)]
pub struct Settings {
    #[pyo3(item)]
    n_rules: Option<usize>,
    #[pyo3(item)]
    calibration: String,
    #[pyo3(item)]
    seed: u64,
    #[pyo3(item)]
    max_seconds: Option<f64>,
    #[pyo3(item)]
    threads: Option<usize>,
}

/// Settings of the recipe `clauses`.
#[derive(FromPyObject)]
pub struct ClauseSettings {
    #[pyo3(item)]
    parsimony: Parsimony,
    #[pyo3(item)]
    typical: bool,
    #[pyo3(item)]
    learn_probabilities: bool,
}

#[derive(FromPyObject)]
enum Parsimony {
    Name(String),
    Number(f64),
}

impl Parsimony {
    fn value(&self) -> PyResult<f64> {
        match self {
            Parsimony::Number(value) => Ok(*value),
            Parsimony::Name(name) => match name.as_str() {
                "predict" => Ok(Learner::PREDICT),
                "explain" => Ok(Learner::EXPLAIN),
                other => {
                    let wanted = "`predict`, `explain` or a number";
                    Err(argument(format!("unknown parsimony `{other}`, expected {wanted}")))
                }
            },
        }
    }
}

impl ClauseSettings {
    fn learner(&self, settings: &Settings) -> PyResult<Learner> {
        Ok(Learner {
            parsimony: self.parsimony.value()?,
            max_rules: settings.n_rules,
            typical: self.typical,
            calibrate: match settings.calibration.as_str() {
                "joint" => Calibrating::Joint,
                "none" => Calibrating::Given,
                other => Calibrating::Alone(method(other)?),
            },
            learn_probabilities: self.learn_probabilities,
            seed: settings.seed,
            ..Learner::default()
        })
    }
}

/// Settings of the recipe `paper`; `None` is the default.
#[derive(FromPyObject)]
pub struct PaperSettings {
    #[pyo3(item)]
    max_iter: Option<usize>,
    #[pyo3(item)]
    patience: Option<usize>,
    #[pyo3(item)]
    batch_size: Option<usize>,
    #[pyo3(item)]
    learning_rate: Option<f64>,
    #[pyo3(item)]
    betas: Option<[f64; 2]>,
    #[pyo3(item)]
    clip: Option<f64>,
    #[pyo3(item)]
    probability: Option<f64>,
    #[pyo3(item)]
    epsilon: Option<f64>,
    #[pyo3(item)]
    alpha: Option<f64>,
    #[pyo3(item)]
    labels_per_rule: Option<usize>,
    #[pyo3(item)]
    gamma_0: Option<f64>,
    #[pyo3(item)]
    gamma_1: Option<f64>,
    #[pyo3(item)]
    lam: Option<f64>,
    #[pyo3(item)]
    gradients: Option<String>,
    #[pyo3(item)]
    literal: Option<bool>,
}

impl PaperSettings {
    fn learner(&self, settings: &Settings) -> PyResult<PaperLearner> {
        let default = PaperLearner::default();
        let gradients = match self.gradients.as_deref() {
            None | Some("exact") => Gradients::Exact,
            Some("loopy") => Gradients::Loopy,
            Some(other) => {
                return Err(argument(format!("unknown gradients `{other}`, expected `exact` or `loopy`")));
            }
        };
        let calibrate = match settings.calibration.as_str() {
            "joint" => {
                let problem =
                    "the recipe `paper` does not calibrate jointly; use calibration `none` or `platt`";
                return Err(argument(problem));
            }
            "none" => paper::Calibrating::Given,
            other => paper::Calibrating::Alone(method(other)?),
        };
        Ok(PaperLearner {
            rules: settings.n_rules.map_or(default.rules, |n_rules| vec![n_rules]),
            steps: self.max_iter.unwrap_or(default.steps),
            patience: self.patience.or(default.patience),
            batch: self.batch_size.unwrap_or(default.batch),
            learning_rate: self.learning_rate.unwrap_or(default.learning_rate),
            betas: self.betas.unwrap_or(default.betas),
            clip: self.clip.unwrap_or(default.clip),
            probability: self.probability.unwrap_or(default.probability),
            epsilon: self.epsilon.unwrap_or(default.epsilon),
            alpha: self.alpha.unwrap_or(default.alpha),
            labels_per_rule: self.labels_per_rule.unwrap_or(default.labels_per_rule),
            gamma_0: self.gamma_0.unwrap_or(default.gamma_0),
            gamma_1: self.gamma_1.unwrap_or(default.gamma_1),
            lambda: self.lam.unwrap_or(default.lambda),
            gradients,
            calibrate,
            literal: self.literal.unwrap_or(default.literal),
            memory: default.memory,
            seed: settings.seed,
        })
    }
}

fn method(name: &str) -> PyResult<CalibrationMethod> {
    let found = CalibrationMethod::ALL.into_iter().find(|method| method.name() == name);
    found.ok_or_else(|| {
        let known: Vec<&str> = CalibrationMethod::ALL.iter().map(|method| method.name()).collect();
        argument(format!("unknown calibration `{name}`, expected one of {}", known.join(", ")))
    })
}

/// Rows to learn from: raw beliefs, truths and row weights.
type Data<'py> = (PyRef<'py, Rows>, PyReadonlyArray2<'py, i64>, Option<PyReadonlyArray1<'py, f64>>);

fn examples(data: &Data<'_>) -> Result<Examples> {
    let (rows, truth, weights) = data;
    let truths = truths(rows.rows.model(), rows.rows.n_rows(), truth)?;
    let examples = Examples::new(rows.rows.clone(), truths)?;
    Ok(match weights {
        Some(weights) => examples.with_weights(weights.as_array().to_vec())?,
        None => examples,
    })
}

/// Learns clauses in addition to the rules of `base`. Returns a dictionary. `observe` is called several times a second
/// with the phase, the number of rules, the number of passes and the last gain. If it returns `False`, learning ends with
/// the best model so far.
#[pyfunction]
pub fn learn<'py>(
    py: Python<'py>,
    base: &Model,
    train: Data<'_>,
    settings: Settings,
    clauses: ClauseSettings,
    observe: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let learner = clauses.learner(&settings)?;
    let train = examples(&train)?;
    let (learned, n_passes) = watched(py, &settings, observe.as_ref(), |tell| {
        let mut last = Report::clauses(&Progress::default());
        let mut observe = |progress: &Progress| {
            // During refits there is no state, and so no number of rules.
            let is_known = progress.n_passes() >= last.n_passes();
            last = if is_known { Report::clauses(progress) } else { last.in_phase(progress.phase()) };
            tell(last)
        };
        let learned = learner.learn_observed(base.model(), &train, Progress::default(), &mut observe)?;
        Ok((learned, last.n_passes()))
    })?;
    let path = learned.path.into_iter().map(
        |Addition { rules, gain, price, log_likelihood, runners_up, .. }| {
            (rules, gain, price, log_likelihood, runners_up)
        },
    );
    let found = PyDict::new(py);
    found.set_item("model", Model::of(&learned.model)?.into_python(py)?)?;
    found.set_item("n_iter", n_passes.max(1))?;
    found.set_item("path", path.collect::<Vec<_>>())?;
    found.set_item("beliefs_alone", learned.beliefs_alone)?;
    found.set_item("base_alone", learned.base_alone)?;
    found.set_item("log_likelihood", learned.log_likelihood)?;
    found.set_item("n_impossible", learned.n_impossible)?;
    found.set_item("interrupted", learned.is_stopped)?;
    Ok(found)
}

/// Learns noisy-or rules by the recipe of the paper, in addition to the rules of `base`. Returns a dictionary. `observe`
/// is called several times a second with how many numbers of rules are finished, the current number of rules and step,
/// and the last evaluation. If it returns `False`, learning ends with the best model so far.
#[pyfunction]
pub fn learn_paper<'py>(
    py: Python<'py>,
    base: &Model,
    train: Data<'_>,
    valid: Data<'_>,
    settings: Settings,
    paper: PaperSettings,
    observe: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let learner = paper.learner(&settings)?;
    let (train, valid) = (examples(&train)?, examples(&valid)?);
    let learned = watched(py, &settings, observe.as_ref(), |tell| {
        let mut observe = |progress: &PaperProgress| tell(Report::paper(progress));
        learner.learn_observed(base.model(), &train, &valid, PaperProgress::new(), &mut observe)
    })?;
    let curve = learned.curve.iter();
    let curve = curve.map(|evaluation| (evaluation.step, evaluation.training, evaluation.validation));
    let found = PyDict::new(py);
    found.set_item("model", Model::of(&learned.model)?.into_python(py)?)?;
    found.set_item("n_iter", learned.curve.last().map_or(0, |evaluation| evaluation.step).max(1))?;
    found.set_item("curve", curve.collect::<Vec<_>>())?;
    found.set_item("validation", learned.validation)?;
    found.set_item("beliefs_alone", learned.beliefs_alone)?;
    found.set_item("base_alone", learned.base_alone)?;
    found.set_item("interrupted", learned.is_stopped)?;
    Ok(found)
}

/// What the observer in Python is told.
#[derive(Clone, Copy)]
enum Report {
    Clauses { phase: &'static str, n_rules: usize, n_passes: u64, gain: Option<f64> },
    Paper { n_done: usize, n_rules: Option<usize>, step: usize, last: Option<Evaluation> },
}

impl Report {
    fn clauses(progress: &Progress) -> Self {
        Report::Clauses {
            phase: phase_name(progress.phase()),
            n_rules: progress.n_rules(),
            n_passes: progress.n_passes(),
            gain: progress.last_gain(),
        }
    }

    fn paper(progress: &PaperProgress) -> Self {
        Report::Paper {
            n_done: progress.n_done(),
            n_rules: progress.n_rules(),
            step: progress.step(),
            last: progress.last(),
        }
    }

    fn n_passes(&self) -> u64 {
        match self {
            Report::Clauses { n_passes, .. } => *n_passes,
            Report::Paper { .. } => 0,
        }
    }

    fn in_phase(self, phase: Phase) -> Self {
        match self {
            Report::Clauses { n_rules, n_passes, gain, .. } => {
                Report::Clauses { phase: phase_name(phase), n_rules, n_passes, gain }
            }
            Report::Paper { .. } => self,
        }
    }

    /// Calls the observer. Returns whether to go on.
    fn show(&self, py: Python<'_>, observe: &Py<PyAny>) -> PyResult<bool> {
        let answer = match *self {
            Report::Clauses { phase, n_rules, n_passes, gain } => {
                observe.call1(py, (phase, n_rules, n_passes, gain))
            }
            Report::Paper { n_done, n_rules, step, last } => {
                let training = last.and_then(|evaluation| evaluation.training);
                let validation = last.map(|evaluation| evaluation.validation);
                observe.call1(py, (n_done, n_rules, step, training, validation))
            }
        };
        answer?.is_truthy(py)
    }
}

fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Calibrating => "calibrating",
        Phase::Adding => "adding rules",
        Phase::Judging(_) => "judging rules",
        _ => "learning",
    }
}

/// Receives reports from the learner, and answers whether to go on.
type Tell<'a> = dyn FnMut(Report) -> ControlFlow<()> + Send + 'a;

/// Learns on a thread of its own. The calling thread handles signals and calls the observer: Python handles signals only
/// on its main thread, and the learner calls its observer on any thread of its pool.
fn watched<T: Send>(
    py: Python<'_>,
    settings: &Settings,
    observe: Option<&Py<PyAny>>,
    learn: impl FnOnce(&mut Tell<'_>) -> prsl::Result<T> + Send,
) -> PyResult<T> {
    let deadline = deadline(settings.max_seconds)?;
    let threads = settings.threads;
    let is_over = AtomicBool::new(false);
    let is_over = &is_over;
    let learned = py.detach(|| {
        let (sender, reports) = channel();
        thread::scope(|scope| {
            let worker = scope.spawn(move || {
                let mut shown: Option<Instant> = None;
                let mut tell = move |report: Report| {
                    if shown.is_none_or(|time| time.elapsed() >= INTERVAL) {
                        shown = Some(Instant::now());
                        // It fails only if nobody listens any more.
                        let _ = sender.send(report);
                    }
                    let is_late = deadline.is_some_and(|deadline| Instant::now() >= deadline);
                    if is_late || is_over.load(Ordering::Relaxed) {
                        ControlFlow::Break(())
                    } else {
                        ControlFlow::Continue(())
                    }
                };
                with_threads(threads, move || learn(&mut tell))
            });
            let mut error = None;
            loop {
                let report = match reports.recv_timeout(INTERVAL) {
                    Ok(report) => Some(report),
                    Err(RecvTimeoutError::Timeout) => None,
                    Err(RecvTimeoutError::Disconnected) => break,
                };
                if error.is_some() {
                    continue;
                }
                match Python::attach(|py| goes_on(py, report, observe)) {
                    Ok(true) => {}
                    Ok(false) => is_over.store(true, Ordering::Relaxed),
                    Err(raised) => {
                        is_over.store(true, Ordering::Relaxed);
                        error = Some(raised);
                    }
                }
            }
            let learned = worker.join().unwrap_or_else(|panic| resume_unwind(panic));
            error.map_or(learned, Err)
        })
    })?;
    Ok(learned.map_err(Failure::from)?)
}

fn goes_on(py: Python<'_>, report: Option<Report>, observe: Option<&Py<PyAny>>) -> PyResult<bool> {
    py.check_signals()?;
    match (report, observe) {
        (Some(report), Some(observe)) => report.show(py, observe),
        _ => Ok(true),
    }
}

fn deadline(max_seconds: Option<f64>) -> PyResult<Option<Instant>> {
    let Some(seconds) = max_seconds else { return Ok(None) };
    let time = Duration::try_from_secs_f64(seconds)
        .map_err(|_| argument(format!("max_seconds is {seconds}, expected seconds, 0 or more")))?;
    Ok(Instant::now().checked_add(time))
}

/// The model with calibrators fitted to rows with known truths: beside its rules where that is possible and not refused, else
/// label by label. Returns also the reason why they were fitted label by label, if exact inference is too costly.
#[pyfunction]
pub fn calibrate(
    py: Python<'_>,
    model: &Model,
    train: Data<'_>,
    method_name: &str,
    alone: bool,
) -> PyResult<(Model, Option<String>)> {
    let method = method(method_name)?;
    let examples = examples(&train)?;
    let is_smooth = !matches!(method, CalibrationMethod::Isotonic | CalibrationMethod::Confusion);
    let beside = !alone && is_smooth && !model.model().rules().is_empty();
    let (fitted, refused) = detached(py, None, || -> Result<(prsl::Model, Option<String>)> {
        let mut refused = None;
        if beside {
            let labels: Vec<LabelId> = model.model().label_ids().collect();
            match examples.calibrated_beside_rules(model.model(), method, &labels, Limits::default()) {
                Ok(fitted) => return Ok((fitted.model, None)),
                Err(error @ prsl::Error::TooCostly { .. }) => refused = Some(error.to_string()),
                Err(error) => return Err(error.into()),
            }
        }
        Ok((examples.calibrated(model.model(), method)?, refused))
    })??;
    Ok((Model::of(&fitted)?, refused))
}
