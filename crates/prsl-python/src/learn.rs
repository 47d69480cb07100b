//! Learning and calibration.

use std::time::Duration;

use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use prsl::calibrate::CalibrationMethod;
use prsl::learn::paper::{self, Gradients, PaperLearner, PaperProgress};
use prsl::learn::{Addition, Calibrating, Examples, Learned, Learner, Progress, TimeLimit};
use prsl::{LabelId, Limits};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::beliefs::Rows;
use crate::errors::{Result, argument};
use crate::model::Model;
use crate::score::truths;
use crate::threads::detached;
use crate::watch::{Report, watched};

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
    #[pyo3(item)]
    memory: Option<u64>,
}

impl Settings {
    fn memory(&self) -> u64 {
        self.memory.unwrap_or(Limits::default().memory)
    }

    /// The time limit, which starts now, and the number of threads.
    pub fn limits(&self) -> PyResult<(TimeLimit, Option<usize>)> {
        let time = |seconds: f64| {
            Duration::try_from_secs_f64(seconds)
                .map_err(|_| argument(format!("max_seconds is {seconds}, expected seconds, 0 or more")))
        };
        Ok((TimeLimit::new(self.max_seconds.map(time).transpose()?), self.threads))
    }
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
    pub fn learner(&self, settings: &Settings) -> PyResult<Learner> {
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
            memory: settings.memory(),
            seed: settings.seed,
        })
    }
}

/// Settings of the recipe `paper`; `None` is the default.
#[derive(FromPyObject)]
pub struct PaperSettings {
    #[pyo3(item)]
    max_iter: Option<usize>,
    #[pyo3(item)]
    n_iter_no_change: Option<usize>,
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
            patience: self.n_iter_no_change.or(default.patience),
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
            memory: settings.memory(),
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
    let ((learned, n_passes), is_interrupted) = watched(py, settings.limits()?, observe.as_ref(), |tell| {
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
    learned_dictionary(py, learned, n_passes, is_interrupted)
}

/// What was learned, as a dictionary.
pub fn learned_dictionary(
    py: Python<'_>,
    learned: Learned,
    n_passes: u64,
    is_interrupted: bool,
) -> PyResult<Bound<'_, PyDict>> {
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
    found.set_item("by_user", is_interrupted)?;
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
    let (learned, is_interrupted) = watched(py, settings.limits()?, observe.as_ref(), |tell| {
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
    found.set_item("by_user", is_interrupted)?;
    Ok(found)
}

/// The defaults of the learners, by the names of Python's settings.
#[pyfunction]
pub fn learning_defaults(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let (clauses, paper) = (Learner::default(), PaperLearner::default());
    let found = PyDict::new(py);
    found.set_item("parsimony", clauses.parsimony)?;
    found.set_item("typical", clauses.typical)?;
    found.set_item("learn_probabilities", clauses.learn_probabilities)?;
    found.set_item("memory", clauses.memory)?;
    found.set_item("random_state", clauses.seed)?;
    found.set_item("max_iter", paper.steps)?;
    found.set_item("n_iter_no_change", paper.patience)?;
    found.set_item("batch_size", paper.batch)?;
    found.set_item("learning_rate", paper.learning_rate)?;
    found.set_item("betas", (paper.betas[0], paper.betas[1]))?;
    found.set_item("clip", paper.clip)?;
    found.set_item("probability", paper.probability)?;
    found.set_item("epsilon", paper.epsilon)?;
    found.set_item("alpha", paper.alpha)?;
    found.set_item("labels_per_rule", paper.labels_per_rule)?;
    found.set_item("gamma_0", paper.gamma_0)?;
    found.set_item("gamma_1", paper.gamma_1)?;
    found.set_item("lam", paper.lambda)?;
    found.set_item("gradients", if paper.gradients == Gradients::Exact { "exact" } else { "loopy" })?;
    found.set_item("literal", paper.literal)?;
    Ok(found)
}

/// The rows to learn from and those of the validation set, drawn at random as on the command line.
#[pyfunction]
pub fn split_rows(n_rows: usize, share: f64, seed: u64) -> (Vec<usize>, Vec<usize>) {
    Examples::split_rows(n_rows, share, seed)
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
