//! Predictions, explanations and samples, and the choice of engines.

use std::sync::Arc;
use std::time::Duration;

use numpy::{PyArray1, PyArrayMethods};
use prsl::infer::{
    AssignmentEngine, EngineChoice, EngineSettings, LogEvidence, LoopySettings, MarginalEngine, Sampling,
    SearchLimits, Stopped,
};
use prsl::{Engines, Explainer, Limits, MostProbable, Status};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::beliefs::Rows;
use crate::errors::{Failure, Result, argument};
use crate::model::Model;
use crate::threads::detached;

/// The query and the engine.
#[derive(FromPyObject)]
pub struct Question {
    #[pyo3(item)]
    query: String,
    #[pyo3(item)]
    engine: String,
    #[pyo3(item)]
    top: Option<usize>,
    #[pyo3(item)]
    samples: usize,
    #[pyo3(item)]
    seed: u64,
    #[pyo3(item)]
    memory: Option<u64>,
    #[pyo3(item)]
    time_limit: Option<f64>,
    #[pyo3(item)]
    max_sweeps: Option<usize>,
    #[pyo3(item)]
    damping: Option<f64>,
    #[pyo3(item)]
    tolerance: Option<f64>,
    #[pyo3(item)]
    threads: Option<usize>,
}

impl Question {
    fn engine(&self) -> PyResult<EngineChoice> {
        engine_named(&self.engine)
    }

    /// Whether marginals and whether assignments are requested.
    fn wants(&self) -> PyResult<[bool; 2]> {
        match self.query.as_str() {
            "marginals" => Ok([true, false]),
            "mpe" => Ok([false, true]),
            "both" => Ok([true, true]),
            "samples" => Ok([false, false]),
            other => {
                let wanted = "`marginals`, `mpe`, `both` or `samples`";
                Err(argument(format!("unknown query `{other}`, expected {wanted}")))
            }
        }
    }

    fn is_usual(&self) -> bool {
        self.engine == "auto"
            && self.memory.is_none()
            && self.max_sweeps.is_none()
            && self.damping.is_none()
            && self.tolerance.is_none()
    }

    fn settings(&self) -> PyResult<EngineSettings> {
        let loopy = LoopySettings::default();
        let within = |seconds: f64| match Duration::try_from_secs_f64(seconds) {
            Ok(time) => Ok(SearchLimits::within(time)),
            Err(_) => Err(argument(format!("the time limit is {seconds}, expected seconds, 0 or more"))),
        };
        Ok(EngineSettings {
            limits: self.memory.map_or_else(Limits::default, |memory| Limits { memory }),
            loopy: LoopySettings {
                max_sweeps: self.max_sweeps.unwrap_or(loopy.max_sweeps),
                assignment_sweeps: self.max_sweeps.unwrap_or(loopy.assignment_sweeps),
                damping: self.damping.unwrap_or(loopy.damping),
                tolerance: self.tolerance.unwrap_or(loopy.tolerance),
                ..loopy
            },
            search: self.time_limit.map_or_else(|| Ok(SearchLimits::default()), within)?,
        })
    }

    /// The engines of a model, as chosen.
    fn engines(&self, model: &Model) -> PyResult<Engines> {
        Ok(Engines::new(model.model()).with_choice(self.engine()?).with_settings(self.settings()?))
    }

    /// The engine for marginals; that of the default choice is compiled once per model.
    fn marginals(&self, model: &Model, engines: &Engines) -> Result<Arc<MarginalEngine>> {
        Ok(if self.is_usual() { model.usual()? } else { Arc::new(engines.marginals()?) })
    }
}

/// The engine called `name`.
pub fn engine_named(name: &str) -> PyResult<EngineChoice> {
    EngineChoice::from_name(name).ok_or_else(|| {
        let wanted = "`auto`, `exact`, `junction-tree`, `circuit`, `loopy` or `enumeration`";
        argument(format!("unknown engine `{name}`, expected {wanted}"))
    })
}

/// Answers for some rows.
#[derive(Default)]
struct Answers {
    status: Vec<Status>,
    marginals: Vec<f64>,
    log_evidence: Vec<f64>,
    engine: Option<&'static str>,
    sweeps: Vec<i64>,
    residual: Vec<f64>,
    /// For each row and rank, and each label: a category, or −1.
    assignments: Vec<i64>,
    log_weight: Vec<f64>,
    log_probability: Vec<f64>,
    gap: Vec<f64>,
    best_engine: Option<&'static str>,
    n_ranks: usize,
}

/// The answers of a model: a dictionary of arrays.
#[pyfunction]
pub fn predict<'py>(
    py: Python<'py>,
    model: &Model,
    rows: &Rows,
    question: Question,
) -> PyResult<Bound<'py, PyDict>> {
    let wanted = question.wants()?;
    let answers = detached(py, question.threads, || match wanted {
        [false, false] => sample(model, rows, &question),
        _ => Asked::new(model, &question)?.answer(rows),
    })??;
    answers.into_python(py, model, rows.rows.n_rows(), wanted)
}

/// A model with engines that are compiled once, for many batches of rows.
#[pyclass(frozen, module = "prsl._prsl")]
pub struct Scorer {
    model: Py<Model>,
    asked: Asked,
    threads: Option<usize>,
}

#[pymethods]
impl Scorer {
    #[new]
    fn new(py: Python<'_>, model: Py<Model>, question: Question) -> PyResult<Self> {
        let core = model.get();
        let asked = detached(py, question.threads, || Asked::new(core, &question))??;
        Ok(Self { model, asked, threads: question.threads })
    }

    /// The same as `predict`.
    fn answer<'py>(&self, py: Python<'py>, rows: &Rows) -> PyResult<Bound<'py, PyDict>> {
        let answers = detached(py, self.threads, || self.asked.answer(rows))??;
        let wanted = [self.asked.marginals.is_some(), self.asked.best.is_some()];
        answers.into_python(py, self.model.get(), rows.rows.n_rows(), wanted)
    }
}

/// Engines for marginals, most probable assignments, or both.
struct Asked {
    model: prsl::Model,
    marginals: Option<Arc<MarginalEngine>>,
    best: Option<AssignmentEngine>,
    log_evidence: Option<LogEvidence>,
    n_ranks: usize,
}

impl Asked {
    fn new(model: &Model, question: &Question) -> Result<Self> {
        let [marginals, best] = question.wants()?;
        let engines = question.engines(model)?;
        let marginals = marginals.then(|| question.marginals(model, &engines)).transpose()?;
        let best = best.then(|| engines.assignments()).transpose()?;
        let log_evidence = match &best {
            Some(_) => engines.log_evidence(marginals.as_deref())?,
            None => None,
        };
        let (model, n_ranks) = (model.model().clone(), question.top.unwrap_or(1));
        Ok(Self { model, marginals, best, log_evidence, n_ranks })
    }

    fn answer(&self, rows: &Rows) -> Result<Answers> {
        let rows = &rows.rows;
        let mut answers = Answers { status: vec![Status::Ok; rows.n_rows()], ..Answers::default() };
        let mut exact = match &self.log_evidence {
            Some(engine) => engine.infer_batch(rows)?,
            None => None,
        };
        if let Some(engine) = &self.marginals {
            let posteriors = engine.infer_batch(rows)?;
            answers.engine = Some(engine.engine().name());
            let missing = vec![f64::NAN; self.model.n_categories()];
            for row in 0..rows.n_rows() {
                answers.status[row] = posteriors.status(row);
                answers.marginals.extend_from_slice(posteriors.marginals(row).unwrap_or(&missing));
                answers.log_evidence.push(posteriors.log_evidence(row));
            }
            if engine.engine() == prsl::Engine::Loopy {
                let stopped = |row: usize| posteriors.stopped(row);
                answers.sweeps = (0..rows.n_rows()).map(|row| stopped(row).sweeps() as i64).collect();
                answers.residual = (0..rows.n_rows()).map(|row| stopped(row).residual()).collect();
            } else {
                exact = exact.or(Some(posteriors));
            }
        }
        if let Some(engine) = &self.best {
            answers.best_engine = Some(engine.engine().name());
            answers.n_ranks = self.n_ranks;
            for (row, found) in engine.top_batch(rows, answers.n_ranks)?.iter().enumerate() {
                answers.status[row] = answers.status[row].max(found.status(0));
                let exact = exact.as_ref().filter(|it| !matches!(it.stopped(row), Stopped::Imprecise { .. }));
                for rank in 0..answers.n_ranks {
                    answers.add_assignment(
                        found.get(rank),
                        exact.map(|it| it.log_evidence(row)),
                        &self.model,
                    );
                }
            }
        }
        Ok(answers)
    }
}

impl Answers {
    /// A dictionary of arrays, as far as marginals and assignments are wanted. Samples are assignments.
    fn into_python<'py>(
        mut self,
        py: Python<'py>,
        model: &Model,
        n_rows: usize,
        [marginals, best]: [bool; 2],
    ) -> PyResult<Bound<'py, PyDict>> {
        self.put_no_first(model.model());
        let found = PyDict::new(py);
        // Each row has a position in a list of names. Creating the names of a million rows would take longer than
        // inference.
        let names = Status::ALL.map(Status::name);
        found.set_item("statuses", names)?;
        let position =
            |status: &Status| Status::ALL.iter().position(|other| other == status).unwrap_or(0) as u8;
        found.set_item("status", PyArray1::from_vec(py, self.status.iter().map(position).collect()))?;
        if marginals {
            let values = PyArray1::from_vec(py, self.marginals);
            found.set_item("marginals", values.reshape([n_rows, model.model().n_categories()])?)?;
            found.set_item("log_evidence", PyArray1::from_vec(py, self.log_evidence))?;
            found.set_item("engine", self.engine)?;
            if !self.sweeps.is_empty() {
                found.set_item("sweeps", PyArray1::from_vec(py, self.sweeps))?;
                found.set_item("residual", PyArray1::from_vec(py, self.residual))?;
            }
        }
        if !marginals || best {
            let shape = [n_rows, self.n_ranks, model.model().labels().len()];
            found.set_item("assignments", PyArray1::from_vec(py, self.assignments).reshape(shape)?)?;
            found.set_item("best_engine", self.best_engine)?;
        }
        if best {
            let table = |values: Vec<f64>| PyArray1::from_vec(py, values).reshape([n_rows, self.n_ranks]);
            found.set_item("log_weight", table(self.log_weight)?)?;
            found.set_item("log_probability", table(self.log_probability)?)?;
            found.set_item("gap", table(self.gap)?)?;
        }
        Ok(found)
    }

    /// Converts to the order of Python's arrays: no before yes.
    fn put_no_first(&mut self, model: &prsl::Model) {
        let labels = || model.label_ids().filter(|&id| model.label(id).is_binary());
        let starts: Vec<usize> = labels().map(|id| model.block(id).start).collect();
        for row in self.marginals.chunks_mut(model.n_categories().max(1)) {
            for &start in &starts {
                row.swap(start, start + 1);
            }
        }
        let columns: Vec<usize> = labels().map(|id| id.index()).collect();
        for assignment in self.assignments.chunks_mut(model.labels().len().max(1)) {
            for &column in &columns {
                // A missing assignment has -1.
                assignment[column] = if assignment[column] < 0 { -1 } else { 1 - assignment[column] };
            }
        }
    }

    fn add_assignment(
        &mut self,
        best: Option<&MostProbable>,
        log_evidence: Option<f64>,
        model: &prsl::Model,
    ) {
        match best {
            Some(best) => {
                self.assignments.extend(best.assignment.indices().iter().map(|&category| category as i64))
            }
            None => self.assignments.extend(model.labels().iter().map(|_| -1)),
        }
        let log_weight = best.map_or(f64::NAN, |best| best.log_weight);
        self.log_weight.push(log_weight);
        // Rounding may give a probability slightly above 1.
        let log_probability = log_weight - log_evidence.unwrap_or(f64::NAN);
        self.log_probability.push(if log_probability > 0.0 { 0.0 } else { log_probability });
        self.gap.push(best.and_then(|best| best.gap).unwrap_or(f64::NAN));
    }
}

/// Joint samples.
fn sample(model: &Model, rows: &Rows, question: &Question) -> Result<Answers> {
    let sampler = question.engines(model)?.sampler()?;
    let sampling = Sampling { n_samples: question.samples, seed: question.seed, first_row: 0 };
    let mut answers = Answers {
        n_ranks: question.samples,
        best_engine: Some(sampler.engine().name()),
        ..Answers::default()
    };
    for (row, samples) in sampler.sample_batch(&rows.rows, &sampling)?.into_iter().enumerate() {
        match samples.map_err(|error| Failure::Row(row, error))? {
            Some(samples) => {
                answers.status.push(Status::Ok);
                for sample in samples {
                    answers.assignments.extend(sample.indices().iter().map(|&category| category as i64));
                }
            }
            None => {
                answers.status.push(Status::Impossible);
                let n = question.samples * model.model().labels().len();
                answers.assignments.extend(std::iter::repeat_n(-1, n));
            }
        }
    }
    Ok(answers)
}

/// The chosen engines and the reasons.
#[pyfunction]
pub fn plan(py: Python<'_>, model: &Model, question: Question) -> PyResult<Vec<(&'static str, String)>> {
    let [marginals, best] = question.wants()?;
    let found = detached(py, question.threads, || -> Result<_> {
        let mut found = Vec::new();
        let engines = question.engines(model)?;
        let marginals = marginals.then(|| question.marginals(model, &engines)).transpose()?;
        found.extend(marginals.iter().map(|engine| ("marginals", engine.reason().to_owned())));
        if best {
            found.push(("mpe", engines.assignments()?.reason().to_owned()));
            let log_evidence = engines.log_evidence(marginals.as_deref())?;
            found.extend(log_evidence.iter().map(|engine| ("log_probability", engine.reason().to_owned())));
        }
        if found.is_empty() {
            found.push(("samples", engines.sampler()?.engine().name().to_owned()));
        }
        Ok(found)
    })??;
    Ok(found)
}

/// The explanations of rows of raw beliefs: as JSON, in words, and in words with everything.
#[pyfunction]
pub fn explain(
    py: Python<'_>,
    model: &Model,
    rows: &Rows,
    engine: &str,
    threads: Option<usize>,
) -> PyResult<Vec<[String; 3]>> {
    let choice = engine_named(engine)?;
    let found = detached(py, threads, || -> Result<_> {
        let explainer = Explainer::compile_with(&Engines::new(model.model()).with_choice(choice))?;
        let explain = |row: usize| -> Result<[String; 3]> {
            let explanation =
                explainer.explain_raw(&rows.rows, row).map_err(|error| Failure::Row(row, error))?;
            Ok([explanation.to_json(), explanation.to_string(), format!("{explanation:#}")])
        };
        (0..rows.rows.n_rows()).map(explain).collect::<Result<Vec<_>>>()
    })??;
    Ok(found)
}
