//! Learning and calibration.

use std::ops::ControlFlow;

use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use prsl::calibrate::CalibrationMethod;
use prsl::learn::{Calibrating, Examples, Gradients, Learner, Paper, Progress};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::ask::with_threads;
use crate::beliefs::Rows;
use crate::errors::{Result, argument};
use crate::model::Model;
use crate::score::truths;

/// Settings of learning; `None` is the recipe's default.
#[derive(FromPyObject)]
pub struct Settings {
    #[pyo3(item)]
    recipe: String,
    #[pyo3(item)]
    rules: Option<usize>,
    #[pyo3(item)]
    width: Option<usize>,
    #[pyo3(item)]
    wide: Option<usize>,
    #[pyo3(item)]
    typical: bool,
    #[pyo3(item)]
    calibration: String,
    #[pyo3(item)]
    gradients: String,
    #[pyo3(item)]
    learn_probabilities: bool,
    #[pyo3(item)]
    relearn: bool,
    #[pyo3(item)]
    steps: Option<usize>,
    #[pyo3(item)]
    patience: Option<usize>,
    #[pyo3(item)]
    batch: Option<usize>,
    #[pyo3(item)]
    learning_rate: Option<f64>,
    #[pyo3(item)]
    paper: [Option<f64>; 5],
    #[pyo3(item)]
    seed: u64,
    #[pyo3(item)]
    threads: Option<usize>,
}

impl Settings {
    fn learner(&self) -> PyResult<Learner> {
        let default = match self.recipe.as_str() {
            "thin" => Learner::default(),
            "paper" => Learner::paper(),
            other => return Err(argument(format!("unknown recipe `{other}`, expected `thin` or `paper`"))),
        };
        let default = Learner { relearn: self.relearn, ..default }.sized(self.rules, self.width, self.wide);
        let calibrate = match self.calibration.as_str() {
            "joint" => Calibrating::Joint,
            "none" => Calibrating::Given,
            other => Calibrating::Alone(method(other)?),
        };
        let gradients = match self.gradients.as_str() {
            "exact" => Gradients::Exact,
            "loopy" => Gradients::Loopy,
            other => {
                return Err(argument(format!("unknown gradients `{other}`, expected `exact` or `loopy`")));
            }
        };
        let [labels_per_rule, alpha, gamma_0, gamma_1, lambda] = self.paper;
        let paper = Paper {
            labels_per_rule: labels_per_rule.map_or(default.paper.labels_per_rule, |n| n as usize),
            alpha: alpha.unwrap_or(default.paper.alpha),
            gamma_0: gamma_0.unwrap_or(default.paper.gamma_0),
            gamma_1: gamma_1.unwrap_or(default.paper.gamma_1),
            lambda: lambda.unwrap_or(default.paper.lambda),
            ..default.paper
        };
        Ok(Learner {
            steps: self.steps.or(default.steps),
            patience: self.patience.or(default.patience),
            batch: self.batch.unwrap_or(default.batch),
            learning_rate: self.learning_rate.unwrap_or(default.learning_rate),
            typical: default.typical && self.typical,
            calibrate,
            learn_probabilities: self.learn_probabilities,
            gradients,
            paper,
            seed: self.seed,
            ..default
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

/// Learns in addition to the rules of `base`. Returns a dictionary. `observe` is called regularly with the number of
/// complete candidates, the current size and step, and the last evaluation. If it returns `False`, learning ends with the
/// best model so far.
#[pyfunction]
pub fn learn<'py>(
    py: Python<'py>,
    base: &Model,
    train: Data<'_>,
    valid: Data<'_>,
    settings: Settings,
    observe: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let learner = settings.learner()?;
    let (train, valid) = (examples(&train)?, examples(&valid)?);
    let mut stopped = None;
    let (mut n_steps, mut interrupted) = (0, false);
    let mut told = |progress: &Progress| -> ControlFlow<()> {
        n_steps += prsl::learn::LOOK;
        let goes_on = Python::attach(|py| -> PyResult<bool> {
            py.check_signals()?;
            let Some(observe) = &observe else { return Ok(true) };
            let look = progress.last_look();
            let training = look.and_then(|look| look.training);
            let validation = look.map(|look| look.validation);
            let size = progress.size().map(|size| size.to_string());
            observe.call1(py, (progress.n_done(), size, progress.step(), training, validation))?.is_truthy(py)
        });
        match goes_on {
            Ok(true) => ControlFlow::Continue(()),
            Ok(false) => {
                interrupted = true;
                ControlFlow::Break(())
            }
            Err(error) => {
                stopped = Some(error);
                ControlFlow::Break(())
            }
        }
    };
    let learned = py.detach(|| {
        with_threads(settings.threads, || -> Result<_> {
            Ok(learner.learn_observed(base.model(), &train, &valid, Progress::new(), &mut told)?)
        })
    })??;
    if let Some(error) = stopped {
        return Err(error);
    }
    let curve = learned.curve.iter();
    let curve = curve.map(|look| (look.step, look.training, look.validation));
    let found = PyDict::new(py);
    found.set_item("model", Model::of(&learned.model)?.into_python(py)?)?;
    found.set_item("size", learned.size.to_string())?;
    found.set_item("n_steps", n_steps)?;
    found.set_item("curve", curve.collect::<Vec<_>>())?;
    found.set_item("validation", learned.validation)?;
    found.set_item("beliefs_alone", learned.beliefs_alone)?;
    found.set_item("base_alone", learned.base_alone)?;
    found.set_item("gains", learned.gains)?;
    found.set_item("interrupted", interrupted)?;
    Ok(found)
}

/// The model with calibrators fitted label by label to rows with known truths.
#[pyfunction]
pub fn calibrate(py: Python<'_>, model: &Model, train: Data<'_>, method_name: &str) -> PyResult<Model> {
    let method = method(method_name)?;
    let examples = examples(&train)?;
    let fitted = py.detach(|| -> Result<prsl::Model> { Ok(examples.calibrated(model.model(), method)?) })?;
    Ok(Model::of(&fitted)?)
}
