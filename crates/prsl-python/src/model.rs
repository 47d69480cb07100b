//! Models: labels, rules and combinations.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use prsl::Engines;
use prsl::infer::MarginalEngine;
use prsl::{Body, Document, RuleId, lint};
use prsl_data::Target;
use prsl_plot::RuleGraph;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::builder::ModelBuilder;
use crate::errors::Result;
use crate::threads::detached;

/// The position of a category in the model, from its position in Python's arrays; also the inverse. Python's arrays
/// have no before yes, like scikit-learn. `None` if there is no such category.
pub fn place(label: &prsl::Label, position: usize) -> Option<usize> {
    match position < label.n_categories() {
        true if label.is_binary() => Some(1 - position),
        true => Some(position),
        false => None,
    }
}

/// Values of the categories of a label, in the order of Python's arrays.
fn in_array_order<T: Clone>(label: &prsl::Label, values: &[T]) -> Vec<T> {
    let mut values = values.to_vec();
    if label.is_binary() {
        values.reverse();
    }
    values
}

/// The compiled part of `prsl.Model`.
#[pyclass(frozen, module = "prsl._prsl")]
pub struct Model {
    document: Document,
    /// The default engine, compiled once.
    usual: OnceLock<Arc<MarginalEngine>>,
}

impl Model {
    pub fn of(model: &prsl::Model) -> Result<Self> {
        Ok(Self::from(Document::of_model(model)?))
    }

    pub fn model(&self) -> &prsl::Model {
        self.document.model()
    }

    /// The model whose calibrators apply to beliefs; without calibrators if raw beliefs are requested.
    pub fn for_beliefs(&self, raw: bool) -> prsl::Model {
        if raw { self.model().without_calibrators() } else { self.model().clone() }
    }

    /// The public `prsl.Model` object.
    pub fn into_python(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        py.import("prsl._model")?.getattr("Model")?.call_method1("_of", (self,))
    }

    /// The default engine for marginals.
    pub fn usual(&self) -> prsl::Result<Arc<MarginalEngine>> {
        if let Some(engine) = self.usual.get() {
            return Ok(Arc::clone(engine));
        }
        let engine = Engines::new(self.model()).marginals()?;
        Ok(Arc::clone(self.usual.get_or_init(|| Arc::new(engine))))
    }
}

impl From<Document> for Model {
    fn from(document: Document) -> Self {
        Self { document, usual: OnceLock::new() }
    }
}

#[pymethods]
impl Model {
    /// Reads a model in the rule language, or in JSON.
    #[staticmethod]
    fn _parse(text: &str) -> PyResult<Self> {
        let read = || -> Result<Self> { Ok(Document::read(text)?.into()) };
        Ok(read()?)
    }

    /// Writes a file; after an error there is no incomplete file.
    fn _write(&self, path: PathBuf, text: &str) -> PyResult<()> {
        let write = || -> Result<()> { Ok(Target::from(path.as_path()).write_all(text.as_bytes())?) };
        Ok(write()?)
    }

    /// The model in the rule language.
    #[getter]
    fn text(&self) -> String {
        self.model().to_string()
    }

    /// The text that the model was read from.
    #[getter]
    fn source(&self) -> &str {
        self.document.source()
    }

    /// The model as JSON.
    fn to_json(&self) -> String {
        self.model().to_json()
    }

    /// The labels, in order.
    #[getter]
    fn labels(&self) -> Vec<Label> {
        self.model().labels().iter().map(Label::of).collect()
    }

    /// The rules, in order.
    #[getter]
    fn rules(&self, py: Python<'_>) -> PyResult<Vec<Rule>> {
        self.model().rule_ids().map(|id| Rule::of(py, self.model(), id)).collect()
    }

    /// The typical combinations, in order.
    #[getter]
    fn typical(&self) -> Vec<Combination> {
        let of = |combination: &prsl::model::Combination| Combination {
            text: self.model().combination_text(combination),
            weight: combination.weight(),
            sentence: self.model().combination_sentence(combination),
        };
        self.model().typical().iter().map(of).collect()
    }

    /// A builder with a copy of the model: add and remove labels and rules, then `build`.
    fn edit(&self) -> ModelBuilder {
        ModelBuilder::of(self.model())
    }

    /// Findings about the model: contradictions, rules without effect, failed expectations.
    fn check(&self, py: Python<'_>) -> PyResult<Vec<Finding>> {
        let findings = detached(py, None, || lint::check(&self.document))?;
        Ok(findings.iter().map(|finding| Finding::of(finding, self.document.source())).collect())
    }

    /// The same model without its calibrators, for raw beliefs.
    fn without_calibrators(&self) -> Result<Self> {
        Self::of(&self.model().without_calibrators())
    }

    /// The same model, where these labels have the calibrators of another model.
    fn _with_calibrators_of(&self, other: &Model, labels: Vec<String>) -> Result<Self> {
        let mut builder = self.model().edit();
        for label in
            other.model().labels().iter().filter(|label| labels.iter().any(|name| name == label.name()))
        {
            builder = builder.calibrator(label.name(), label.calibrator().clone());
        }
        Self::of(&builder.build()?)
    }

    /// The graph of rules and labels as SVG.
    fn graph(&self) -> String {
        RuleGraph { model: self.model(), title: "Rules and their labels".to_owned() }.to_svg()
    }

    fn __str__(&self) -> String {
        self.text()
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| self.model() == other.get().model())
    }

    fn __hash__(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        self.text().hash(&mut hasher);
        hasher.finish()
    }
}

/// What `__reduce__` returns: a function and its arguments.
type Reduced<'py> = (Bound<'py, PyAny>, (&'static str, &'static str, Bound<'py, PyAny>));

/// A pickle of an object: its class, the version of the package, and its fields.
fn reduced<'py>(
    py: Python<'py>,
    class: &'static str,
    fields: impl IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>, Error = PyErr>,
) -> PyResult<Reduced<'py>> {
    let restore = py.import("prsl._pickles")?.getattr("restore")?;
    Ok((restore, (class, env!("CARGO_PKG_VERSION"), fields.into_pyobject(py)?.into_any())))
}

/// A question with finitely many answers.
#[pyclass(frozen, get_all, module = "prsl")]
pub struct Label {
    /// Its name.
    name: String,
    /// Its categories, in the order of arrays: no before yes.
    categories: Vec<String>,
    /// The prior in the same order, if one is set.
    prior: Option<Vec<f64>>,
    /// The name of its classifier, `None` if it is latent.
    classifier: Option<String>,
    /// The kind of its calibrator, such as `platt`; `None` without one.
    calibrator: Option<String>,
}

impl Label {
    fn of(label: &prsl::Label) -> Self {
        let calibrator = label.calibrator();
        Self {
            name: label.name().to_owned(),
            categories: in_array_order(label, label.categories()),
            prior: label.prior().map(|prior| in_array_order(label, prior)),
            classifier: label.classifier().map(|classifier| classifier.name().to_owned()),
            calibrator: (*calibrator != prsl::calibrate::Calibrator::Identity)
                .then(|| calibrator.kind().to_owned()),
        }
    }
}

#[pymethods]
impl Label {
    fn __repr__(&self) -> String {
        format!("<Label {}: {}>", self.name, self.categories.join(", "))
    }

    #[staticmethod]
    fn _restore(
        name: String,
        categories: Vec<String>,
        prior: Option<Vec<f64>>,
        classifier: Option<String>,
        calibrator: Option<String>,
    ) -> Self {
        Self { name, categories, prior, classifier, calibrator }
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        let fields = (&self.name, &self.categories, &self.prior, &self.classifier, &self.calibrator);
        reduced(py, "Label", fields)
    }
}

/// A formula or a noisy-or, and the probability that it holds.
#[pyclass(frozen, get_all, module = "prsl")]
pub struct Rule {
    /// Its position among the rules, from 0.
    index: usize,
    /// Its name, if it has one.
    name: Option<String>,
    /// `rule` or `noisy_or`.
    kind: String,
    /// Its text, as in a model file.
    text: String,
    /// The probability that it holds.
    probability: f64,
    /// Its meaning as a sentence.
    sentence: String,
    /// The labels that it is about.
    labels: Vec<String>,
    /// Whether learning must not change it.
    fixed: bool,
    /// How it was learned, a `prsl.LearnedNote`; `None` without a note.
    learned: Option<Py<PyAny>>,
}

impl Rule {
    fn of(py: Python<'_>, model: &prsl::Model, id: RuleId) -> PyResult<Self> {
        let rule = model.rule(id);
        Ok(Self {
            index: id.index(),
            name: rule.name().map(str::to_owned),
            kind: if matches!(rule.body(), Body::NoisyOr(_)) { "noisy_or" } else { "rule" }.to_owned(),
            text: model.rule_text(id),
            probability: rule.probability(),
            sentence: model.rule_sentence(id),
            labels: rule.scope().into_iter().map(|label| model.label(label).name().to_owned()).collect(),
            fixed: rule.is_fixed(),
            learned: rule.learned().map(|note| learned_note(py, note)).transpose()?,
        })
    }
}

/// A note as `prsl.LearnedNote`.
fn learned_note(py: Python<'_>, note: &prsl::model::LearnedNote) -> PyResult<Py<PyAny>> {
    let fields = (note.gain, note.broken, note.known, note.expected, note.sure);
    Ok(py.import("prsl.rules")?.getattr("LearnedNote")?.call1(fields)?.unbind())
}

#[pymethods]
impl Rule {
    fn __repr__(&self) -> String {
        format!("<Rule {}: {}>", self.probability, self.text)
    }

    #[staticmethod]
    #[expect(clippy::too_many_arguments, reason = "one argument for each field")]
    fn _restore(
        index: usize,
        name: Option<String>,
        kind: String,
        text: String,
        probability: f64,
        sentence: String,
        labels: Vec<String>,
        fixed: bool,
        learned: Option<Py<PyAny>>,
    ) -> Self {
        Self { index, name, kind, text, probability, sentence, labels, fixed, learned }
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        let what = (self.index, &self.name, &self.kind, &self.text, self.probability);
        let (index, name, kind, text, probability) = what;
        let fields =
            (index, name, kind, text, probability, &self.sentence, &self.labels, self.fixed, &self.learned);
        reduced(py, "Rule", fields)
    }
}

/// A combination of categories that is more frequent than rules and beliefs predict.
#[pyclass(frozen, get_all, module = "prsl")]
pub struct Combination {
    /// Its categories, as in a model file.
    text: String,
    /// Its probability weight is multiplied by 1 + `weight`.
    weight: f64,
    /// Its meaning as a sentence.
    sentence: String,
}

#[pymethods]
impl Combination {
    fn __repr__(&self) -> String {
        format!("<Combination {}: {}>", self.weight, self.text)
    }

    #[staticmethod]
    fn _restore(text: String, weight: f64, sentence: String) -> Self {
        Self { text, weight, sentence }
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        reduced(py, "Combination", (&self.text, self.weight, &self.sentence))
    }
}

/// A finding about a model.
#[pyclass(frozen, get_all, module = "prsl")]
pub struct Finding {
    /// `error`, `warning` or `note`.
    severity: String,
    /// The kind of finding, such as `duplicate-rule`.
    code: String,
    /// The message.
    message: String,
    /// Advice.
    help: Option<String>,
    /// The line of the model's text, from 1.
    line: usize,
    /// The column, from 1.
    column: usize,
    /// The finding with its lines, as compilers show it.
    text: String,
}

impl Finding {
    fn of(finding: &lint::Finding, source: &str) -> Self {
        Self {
            severity: finding.severity.name().to_owned(),
            code: finding.code.to_owned(),
            message: finding.message.clone(),
            help: finding.help.clone(),
            line: finding.line,
            column: finding.column,
            text: finding.render("model", source),
        }
    }
}

#[pymethods]
impl Finding {
    fn __str__(&self) -> &str {
        &self.text
    }

    fn __repr__(&self) -> String {
        format!("<Finding {} {}: {}>", self.severity, self.code, self.message)
    }

    #[staticmethod]
    fn _restore(
        severity: String,
        code: String,
        message: String,
        help: Option<String>,
        line: usize,
        column: usize,
        text: String,
    ) -> Self {
        Self { severity, code, message, help, line, column, text }
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        let fields =
            (&self.severity, &self.code, &self.message, &self.help, self.line, self.column, &self.text);
        reduced(py, "Finding", fields)
    }
}
