//! The model: labels, rules, and what its author expects of them.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use crate::calibrate::{CalibrationProblem, Calibrator};
use crate::combination::{self, Combination, Combinations};
use crate::diagnostic::shortened;
use crate::error::{Error, Result};
use crate::evidence::Evidence;
use crate::expectation::{Condition, Expectation, Given};
use crate::formula::{Atom, Formula, MAX_DEPTH, Node};
use crate::label::{CategoryId, Label, LabelId};
use crate::names::Names;
use crate::noisy_or::{Inhibition, NoisyOr};
use crate::rule::{Body, Rule, RuleId};
use crate::text;

/// Labels and the rules that relate them: the one source of truth, which never changes.
///
/// Engines compile from it; [`Model::edit`] and learning return a new one. Cloning is cheap.
///
/// ```
/// use prsl::Model;
///
/// let model = Model::builder()
///     .label("weather", ["sun", "rain"])
///     .label("ground", ["dry", "wet"])
///     .rule("wet <- rain", 0.95)
///     .build()?;
/// assert_eq!(model.to_string(), "\
/// label weather: sun, rain
/// label ground: dry, wet
///
/// rule 0.95: wet <- rain
/// ");
/// assert_eq!(Model::parse(&model.to_string())?, model);
/// # Ok::<(), prsl::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    parts: Arc<Parts>,
}

#[derive(Clone, Debug, PartialEq)]
struct Parts {
    labels: Vec<Label>,
    rules: Vec<Rule>,
    typical: Combinations,
    expectations: Vec<Expectation>,
    /// Where each label's categories start among all categories; one more for the end.
    offsets: Vec<usize>,
    label_ids: HashMap<String, LabelId>,
}

impl Model {
    /// An empty model to add to.
    pub fn builder() -> ModelBuilder {
        ModelBuilder::default()
    }

    /// Reads the text format; all errors of the text are reported at once.
    pub fn parse(text: &str) -> Result<Self> {
        Ok(text::Document::parse(text)?.into_model())
    }

    /// The same model to be changed: nothing happens to this one.
    ///
    /// ```
    /// use prsl::Model;
    ///
    /// let model = Model::parse("label weather: sun, rain\nlabel ground: dry, wet\nrule 0.95 wets: wet <- rain")?;
    /// let larger = model
    ///     .edit()
    ///     .binary_label("umbrella")
    ///     .rule("rain -> umbrella", 0.7)
    ///     .remove_rule("wets")
    ///     .unplug("ground")
    ///     .build()?;
    /// assert_eq!(model.labels().len(), 2);
    /// assert_eq!(larger.labels().len(), 3);
    /// assert!(larger.label(larger.find_label("ground")?).classifier().is_none());
    /// # Ok::<(), prsl::Error>(())
    /// ```
    pub fn edit(&self) -> ModelBuilder {
        ModelBuilder {
            labels: self.labels().to_vec(),
            positions: positions(self.labels()),
            rules: self.rules().iter().map(|rule| Draft::Rule(rule.clone(), self.clone())).collect(),
            typical: vec![CombinationDraft::Values(self.typical().to_vec(), self.clone())],
            expectations: self
                .expectations()
                .iter()
                .map(|expectation| ExpectationDraft::Value(expectation.clone(), self.clone()))
                .collect(),
            error: None,
        }
    }

    /// A model of these parts, each of them checked.
    pub(crate) fn from_parts(
        labels: Vec<Label>,
        rules: Vec<Rule>,
        expectations: Vec<Expectation>,
    ) -> Result<Self> {
        let mut offsets = vec![0];
        let mut label_ids = HashMap::new();
        for (index, label) in labels.iter().enumerate() {
            check_label(label)?;
            if label_ids.insert(label.name().to_owned(), LabelId::new(index)).is_some() {
                return Err(Error::DuplicateLabel { label: label.name().to_owned() });
            }
            offsets.push(offsets[index] + label.n_categories());
        }
        let mut names = HashSet::new();
        for (index, rule) in rules.iter().enumerate() {
            // Only an error needs the name, and printing every rule of a large model takes long.
            check_rule(&labels, rule, &|| rule_name(&labels, rule, index))?;
            if let Some(name) = rule.name()
                && !names.insert(name)
            {
                return Err(Error::DuplicateRule { name: name.to_owned() });
            }
        }
        let typical = Combinations::default();
        Ok(Self { parts: Arc::new(Parts { labels, rules, typical, expectations, offsets, label_ids }) })
    }

    /// The same model with these combinations in place of its own, each of them checked.
    pub(crate) fn with_typical(self, list: Vec<Combination>) -> Result<Self> {
        let typical = Combinations::new(self.labels(), list)?;
        let parts = Parts { typical, ..Arc::unwrap_or_clone(self.parts) };
        Ok(Self { parts: Arc::new(parts) })
    }

    /// The same model without its combinations: labels, rules and expectations alone.
    pub(crate) fn without_typical(&self) -> Self {
        if self.typical().is_empty() {
            return self.clone();
        }
        self.clone().with_typical(Vec::new()).expect("nothing is wrong with nothing")
    }

    /// The labels, in order.
    pub fn labels(&self) -> &[Label] {
        &self.parts.labels
    }

    /// One label.
    pub fn label(&self, id: LabelId) -> &Label {
        &self.parts.labels[id.index()]
    }

    /// What the beliefs of a label's classifier go through before inference; the identity unless it was set.
    pub fn calibrator(&self, label: LabelId) -> &Calibrator {
        self.label(label).calibrator()
    }

    /// The same model without calibrators, for raw beliefs.
    ///
    /// ```
    /// use prsl::Model;
    ///
    /// let model = Model::parse("label a\nlabel b\ncalibrate a platt 2 0\ntypical 3: a, b")?;
    /// let raw = model.without_calibrators();
    /// assert_eq!(raw.typical(), model.typical());
    /// assert_ne!(raw.calibrator(raw.find_label("a")?), model.calibrator(model.find_label("a")?));
    /// # Ok::<(), prsl::Error>(())
    /// ```
    pub fn without_calibrators(&self) -> Self {
        let plain = |label: &Label| label.clone().with_calibrator(Calibrator::Identity);
        let labels = self.labels().iter().map(plain).collect();
        let (rules, expectations) = (self.rules().to_vec(), self.expectations().to_vec());
        let model = Self::from_parts(labels, rules, expectations);
        let model = model.and_then(|model| model.with_typical(self.typical().to_vec()));
        model.expect("less to check than before")
    }

    /// The ids of all labels, in order.
    pub fn label_ids(&self) -> impl Iterator<Item = LabelId> + use<> {
        (0..self.parts.labels.len()).map(LabelId::new)
    }

    /// The label called `name`; if there is none, the error suggests a similar one.
    pub fn find_label(&self, name: &str) -> Result<LabelId> {
        let known = || self.labels().iter().map(Label::name);
        self.parts.label_ids.get(name).copied().ok_or_else(|| Error::unknown_label(name, "", known()))
    }

    /// The category called `name` of a label; if there is none, the error suggests a similar one.
    pub fn find_category(&self, label: LabelId, name: &str) -> Result<CategoryId> {
        let unknown = || Error::unknown_label(&numbered(label.index()), "", []);
        let label = self.labels().get(label.index()).ok_or_else(unknown)?;
        let known = || label.categories().iter().map(String::as_str);
        label.find_category(name).ok_or_else(|| Error::unknown_category(label.name(), name, "", known()))
    }

    /// How many categories all labels have together.
    pub fn n_categories(&self) -> usize {
        self.parts.offsets[self.parts.labels.len()]
    }

    /// The positions of a label's categories among all categories.
    pub fn block(&self, label: LabelId) -> Range<usize> {
        self.parts.offsets[label.index()]..self.parts.offsets[label.index() + 1]
    }

    /// The rules, in order.
    pub fn rules(&self) -> &[Rule] {
        &self.parts.rules
    }

    /// One rule.
    pub fn rule(&self, id: RuleId) -> &Rule {
        &self.parts.rules[id.index()]
    }

    /// The ids of all rules, in order.
    pub fn rule_ids(&self) -> impl Iterator<Item = RuleId> + use<> {
        (0..self.parts.rules.len()).map(RuleId::new)
    }

    /// What messages call a rule: its name, or else what it says, cut where it is longer than a line.
    /// [`Self::rule_text`] is never cut.
    pub fn rule_name(&self, id: RuleId) -> String {
        rule_name(self.labels(), self.rule(id), id.index())
    }

    /// The body of a rule as it is written in a model file: `high & standing -> overhead`.
    pub fn rule_text(&self, id: RuleId) -> String {
        text::print::body(&Names::new(self.labels()), self.rule(id).body())
    }

    /// The atom as it is written in a model file: `overhead`, or `hands=high` where the category is not unique.
    pub fn atom_text(&self, atom: &Atom) -> String {
        text::print::atom(&Names::new(self.labels()), atom)
    }

    /// The combinations that are typical: together one factor that multiplies the weight of each by 1 + its weight.
    ///
    /// ```
    /// use prsl::{Evidence, Model};
    ///
    /// let model = Model::parse("label anger\nlabel sad\ntypical 3: anger, sad")?;
    /// let posterior = model.infer(&Evidence::new())?;
    /// let both = (1.0 + 3.0) / (4.0 + 3.0); // of four assignments one counts four times
    /// let one = 1.0 / (4.0 + 3.0);
    /// assert!((posterior.marginals()[0] - (both + one)).abs() < 1e-12);
    /// # Ok::<(), prsl::Error>(())
    /// ```
    pub fn typical(&self) -> &[Combination] {
        self.parts.typical.list()
    }

    /// The place of the combination that an assignment is, if it is a typical one.
    pub fn find_typical(&self, assignment: &[usize]) -> Option<usize> {
        self.parts.typical.find(assignment)
    }

    /// What is combined, as it is written in a model file: `walking, gait, alarm`.
    pub fn combination_text(&self, combination: &Combination) -> String {
        text::print::combination(&Names::new(self.labels()), combination.categories())
    }

    /// What its author expects of it.
    pub fn expectations(&self) -> &[Expectation] {
        &self.parts.expectations
    }

    /// The evidence of an expectation.
    pub fn expectation_evidence(&self, expectation: &Expectation) -> Evidence {
        expectation.given.iter().fold(Evidence::new(), |evidence, given| match given {
            Given::Observed(label, category) => {
                let label = self.label(*label);
                evidence.observe(label.name(), label.category(*category))
            }
            Given::Belief(label, belief) => {
                evidence.belief(self.label(*label).name(), belief.iter().copied())
            }
        })
    }

    /// The same labels without any rules and typical combinations: what is left is the classifiers' beliefs alone, calibrated.
    ///
    /// ```
    /// use prsl::{Evidence, Model};
    ///
    /// let model = Model::parse("label a\nlabel b\nrule 0.9: a -> b\ntypical 3: a, b")?.without_rules()?;
    /// let posterior = model.infer(&Evidence::new().belief("a", [0.8]))?;
    /// assert_eq!(posterior.marginals(), [0.8, 1.0 - 0.8, 0.5, 0.5]);
    /// # Ok::<(), prsl::Error>(())
    /// ```
    pub fn without_rules(&self) -> Result<Self> {
        self.edit().retain_rules(|_| false).remove_typical().build()
    }

    /// One instance's evidence as completed, normalized, calibrated beliefs: a number per category, in the model's order.
    pub fn row(&self, evidence: &Evidence) -> Result<Vec<f64>> {
        let mut matrix = crate::BeliefMatrix::new(self);
        matrix.push_evidence(evidence)?;
        Ok(matrix.row(0).to_vec())
    }

    /// ln of the product of beliefs, rule weights and the factor of combinations of one assignment, −∞ if it is
    /// impossible.
    pub fn log_weight(&self, row: &[f64], assignment: &[usize]) -> f64 {
        self.log_weight_of_rules(row, assignment) + self.log_typical(assignment)
    }

    /// ln S of an assignment: 0 unless it is a typical combination.
    pub(crate) fn log_typical(&self, assignment: &[usize]) -> f64 {
        self.find_typical(assignment).map_or(0.0, |place| self.typical()[place].log_factor())
    }

    /// The same as [`Self::log_weight`] without the factor of combinations.
    pub(crate) fn log_weight_of_rules(&self, row: &[f64], assignment: &[usize]) -> f64 {
        let beliefs: f64 =
            (0..assignment.len()).map(|label| row[self.parts.offsets[label] + assignment[label]].ln()).sum();
        let rules: f64 = self.rules().iter().map(|rule| rule.log_weight(assignment)).sum();
        beliefs + rules
    }
}

/// Collects what a model is to be made of; [`ModelBuilder::build`] checks it.
#[derive(Clone, Debug, Default)]
pub struct ModelBuilder {
    labels: Vec<Label>,
    /// Where the first label of each name stands.
    positions: HashMap<String, usize>,
    rules: Vec<Draft>,
    typical: Vec<CombinationDraft>,
    expectations: Vec<ExpectationDraft>,
    /// The first thing that went wrong, told by `build`.
    error: Option<Error>,
}

#[derive(Clone, Debug)]
enum Draft {
    /// Text of a formula, to be read once all labels are known.
    Text { name: Option<String>, probability: f64, formula: String },
    /// A noisy-or by names.
    NoisyOr { name: Option<String>, probability: f64, inhibitions: Vec<(String, String, f64)> },
    /// A rule whose ids are those of another model.
    Rule(Rule, Model),
    /// A rule whose ids are those of the model to be.
    Ids(Rule),
}

#[derive(Clone, Debug)]
enum CombinationDraft {
    /// What is combined, to be read once all labels are known, and its weight.
    Text(String, f64),
    /// Combinations whose categories are those of another model's labels.
    Values(Vec<Combination>, Model),
    /// A combination of the labels of the model to be.
    Ids(Combination),
}

#[derive(Clone, Debug)]
enum ExpectationDraft {
    Text(String),
    Value(Expectation, Model),
}

impl ModelBuilder {
    /// Adds a label with these categories.
    pub fn label<C: Into<String>>(
        self,
        name: impl Into<String>,
        categories: impl IntoIterator<Item = C>,
    ) -> Self {
        self.add_label(Label::new(name, categories))
    }

    /// Adds a label with the categories `yes` and `no`.
    pub fn binary_label(self, name: impl Into<String>) -> Self {
        self.add_label(Label::binary(name))
    }

    /// Adds a label with all its settings.
    pub fn add_label(mut self, label: Label) -> Self {
        self.positions.entry(label.name().to_owned()).or_insert(self.labels.len());
        self.labels.push(label);
        self
    }

    /// Removes a label; rules and expectations that use it must go too.
    pub fn remove_label(mut self, name: &str) -> Self {
        match self.position(name) {
            Ok(index) => {
                self.labels.remove(index);
                self.positions = positions(&self.labels);
            }
            Err(error) => self.fail(error),
        }
        self
    }

    /// Sets a label's prior, used for rows that hold no belief about it.
    pub fn prior(self, label: &str, prior: impl Into<Vec<f64>>) -> Self {
        self.change_label(label, |label| label.with_prior(prior))
    }

    /// Plugs a classifier into a label. A calibrator that was fitted to another one goes.
    pub fn plug(self, label: &str, classifier: impl Into<String>) -> Self {
        self.change_label(label, |label| {
            let before = label.classifier().cloned();
            let label = label.from_classifier(classifier);
            if label.classifier() == before.as_ref() {
                label
            } else {
                label.with_calibrator(Calibrator::Identity)
            }
        })
    }

    /// Sets what the beliefs of a label's classifier go through before inference.
    ///
    /// ```
    /// use prsl::{Calibrator, Evidence, Model};
    ///
    /// let model = Model::builder()
    ///     .binary_label("alarm")
    ///     .calibrator("alarm", Calibrator::Platt { slope: 2.0, intercept: 0.0 })
    ///     .build()?;
    /// let row = model.row(&Evidence::new().belief("alarm", [0.75]))?;
    /// assert!((row[0] - 0.9).abs() < 1e-12);
    /// # Ok::<(), prsl::Error>(())
    /// ```
    pub fn calibrator(self, label: &str, calibrator: Calibrator) -> Self {
        self.change_label(label, |label| label.with_calibrator(calibrator))
    }

    /// Takes the classifier and its calibrator out of a label: it becomes latent.
    pub fn unplug(self, label: &str) -> Self {
        self.change_label(label, Label::latent)
    }

    /// Adds a rule: a formula in the rule language, and the probability that it holds.
    pub fn rule(mut self, formula: impl Into<String>, probability: f64) -> Self {
        self.rules.push(Draft::Text { name: None, probability, formula: formula.into() });
        self
    }

    /// Adds a rule with a name.
    pub fn named_rule(
        mut self,
        name: impl Into<String>,
        formula: impl Into<String>,
        probability: f64,
    ) -> Self {
        self.rules.push(Draft::Text { name: Some(name.into()), probability, formula: formula.into() });
        self
    }

    /// Adds a noisy-or rule of (label, category, inhibition probability).
    pub fn noisy_or<'a>(
        mut self,
        inhibitions: impl IntoIterator<Item = (&'a str, &'a str, f64)>,
        probability: f64,
    ) -> Self {
        let inhibitions =
            inhibitions.into_iter().map(|(label, category, q)| (label.into(), category.into(), q)).collect();
        self.rules.push(Draft::NoisyOr { name: None, probability, inhibitions });
        self
    }

    /// Adds a rule whose label and category ids are those of the labels added so far.
    pub fn add_rule(mut self, rule: Rule) -> Self {
        self.rules.push(Draft::Ids(rule));
        self
    }

    /// Gives the rule added last a name.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        match self.rules.last_mut() {
            Some(Draft::Text { name: slot, .. } | Draft::NoisyOr { name: slot, .. }) => {
                *slot = Some(name.into());
            }
            Some(Draft::Rule(rule, _) | Draft::Ids(rule)) => *rule = rule.clone().named(name),
            None => self.fail(Error::UnknownRule { rule: name.into(), suggestion: None }),
        }
        self
    }

    /// Removes the rule of this name.
    pub fn remove_rule(mut self, name: &str) -> Self {
        match self.rules.iter().position(|draft| draft.name() == Some(name)) {
            Some(index) => drop(self.rules.remove(index)),
            None => {
                let known = self.rules.iter().filter_map(Draft::name);
                let suggestion = crate::diagnostic::nearest(name, known).map(str::to_owned);
                self.fail(Error::UnknownRule { rule: name.to_owned(), suggestion });
            }
        }
        self
    }

    /// Keeps the rules for which `keep` holds, given their position among the rules so far.
    pub fn retain_rules(mut self, mut keep: impl FnMut(RuleId) -> bool) -> Self {
        let mut index = 0;
        self.rules.retain(|_| {
            index += 1;
            keep(RuleId::new(index - 1))
        });
        self
    }

    /// Adds a typical combination in the rule language, which then counts 1 + `weight` times: `walking, gait, alarm`.
    ///
    /// ```
    /// use prsl::Model;
    ///
    /// let model = Model::builder()
    ///     .binary_label("anger")
    ///     .binary_label("joy")
    ///     .typical("anger", 2.5)
    ///     .typical("none", 1.0) // neither
    ///     .build()?;
    /// let calm = model.edit().remove_typical().typical("!anger, joy", 4.0).build()?;
    /// assert_eq!(model.typical().len(), 2);
    /// assert_eq!(calm.to_string(), "label anger\nlabel joy\n\ntypical 4: joy\n");
    /// # Ok::<(), prsl::Error>(())
    /// ```
    pub fn typical(mut self, categories: impl Into<String>, weight: f64) -> Self {
        self.typical.push(CombinationDraft::Text(categories.into(), weight));
        self
    }

    /// Adds a combination of categories of the labels added so far, by their positions.
    pub fn add_typical(mut self, combination: Combination) -> Self {
        self.typical.push(CombinationDraft::Ids(combination));
        self
    }

    /// Removes all combinations added so far.
    pub fn remove_typical(mut self) -> Self {
        self.typical.clear();
        self
    }

    /// Adds an expectation in the rule language: `standing, high => overhead > 0.6`.
    pub fn expect(mut self, text: impl Into<String>) -> Self {
        self.expectations.push(ExpectationDraft::Text(text.into()));
        self
    }

    /// Checks everything and makes the model.
    pub fn build(self) -> Result<Model> {
        if let Some(error) = self.error {
            return Err(error);
        }
        // Names first: texts are read against the labels.
        let labels = Model::from_parts(self.labels, Vec::new(), Vec::new())?;
        let names = Names::new(labels.labels());
        let rules: Vec<Rule> =
            self.rules.into_iter().map(|draft| draft.resolve(&names)).collect::<Result<_>>()?;
        let expectations = self
            .expectations
            .into_iter()
            .map(|draft| match draft {
                ExpectationDraft::Text(text) => text::parse::expectation(&text, &names),
                ExpectationDraft::Value(expectation, origin) => rename(&expectation, &origin, &names),
            })
            .collect::<Result<_>>()?;
        let mut typical = Vec::new();
        for draft in self.typical {
            typical.extend(draft.resolve(labels.labels(), &names)?);
        }
        Model::from_parts(labels.labels().to_vec(), rules, expectations)?.with_typical(typical)
    }

    fn position(&self, name: &str) -> Result<usize> {
        let known = || self.labels.iter().map(Label::name);
        self.positions.get(name).copied().ok_or_else(|| Error::unknown_label(name, "", known()))
    }

    fn change_label(mut self, name: &str, change: impl FnOnce(Label) -> Label) -> Self {
        match self.position(name) {
            Ok(index) => self.labels[index] = change(self.labels[index].clone()),
            Err(error) => self.fail(error),
        }
        self
    }

    fn fail(&mut self, error: Error) {
        self.error.get_or_insert(error);
    }
}

impl Draft {
    fn name(&self) -> Option<&str> {
        match self {
            Draft::Text { name, .. } | Draft::NoisyOr { name, .. } => name.as_deref(),
            Draft::Rule(rule, _) | Draft::Ids(rule) => rule.name(),
        }
    }

    fn resolve(self, names: &Names<'_>) -> Result<Rule> {
        let rename = |rule: Rule, name: Option<String>| match name {
            Some(name) => rule.named(name),
            None => rule,
        };
        match self {
            Draft::Text { name, probability, formula } => {
                let formula = text::parse::formula(&formula, names)?;
                Ok(rename(Rule::new(probability, Body::Formula(formula)), name))
            }
            Draft::NoisyOr { name, probability, inhibitions } => {
                let inhibitions = inhibitions
                    .into_iter()
                    .map(|(label, category, probability)| {
                        let (label, category) = names.find(&label, &category, &String::new)?;
                        Ok(Inhibition { label, category, probability })
                    })
                    .collect::<Result<Vec<_>>>()?;
                Ok(rename(Rule::new(probability, Body::NoisyOr(NoisyOr::new(inhibitions))), name))
            }
            Draft::Ids(rule) => Ok(rule),
            Draft::Rule(rule, origin) => transfer_rule(rule, &origin, names),
        }
    }
}

impl CombinationDraft {
    fn resolve(self, labels: &[Label], names: &Names<'_>) -> Result<Vec<Combination>> {
        match self {
            CombinationDraft::Text(text, weight) => {
                Ok(vec![Combination::new(weight, text::parse::combination(&text, names)?)])
            }
            CombinationDraft::Values(list, origin) => combination::transfer(list, origin.labels(), labels),
            CombinationDraft::Ids(combination) => Ok(vec![combination]),
        }
    }
}

/// The rule of one model with the ids of another, found by name.
fn transfer_rule(rule: Rule, origin: &Model, target: &Names<'_>) -> Result<Rule> {
    // Only an error needs the name, and printing every rule of a large model takes long.
    let context = || {
        let text = || text::print::body(&Names::new(origin.labels()), rule.body());
        let name = rule.name().map_or_else(text, str::to_owned);
        format!(" in rule `{}`", shortened(&name))
    };
    let body = match rule.body() {
        Body::Formula(formula) => {
            Body::Formula(formula.try_map_atoms(|atom| transfer_atom(atom, origin, target, &context))?)
        }
        Body::NoisyOr(noisy_or) => {
            let inhibitions = noisy_or
                .inhibitions()
                .iter()
                .map(|i| {
                    let atom = transfer_atom(&Atom::new(i.label, i.category), origin, target, &context)?;
                    let category = atom.single().expect("one category stays one");
                    Ok(Inhibition { label: atom.label(), category, probability: i.probability })
                })
                .collect::<Result<Vec<_>>>()?;
            Body::NoisyOr(NoisyOr::new(inhibitions))
        }
    };
    Ok(rule.with_body(body))
}

fn transfer_atom(
    atom: &Atom,
    origin: &Model,
    target: &Names<'_>,
    context: &dyn Fn() -> String,
) -> Result<Atom> {
    let label = origin.label(atom.label());
    let mut id = None;
    let mut categories = Vec::with_capacity(atom.categories().len());
    for &category in atom.categories() {
        let (label, category) = target.find(label.name(), label.category(category), context)?;
        id = Some(label);
        categories.push(category);
    }
    Ok(Atom::one_of(id.expect("an atom of a model has categories"), categories))
}

/// The expectation of one model with the ids of another, found by name.
fn rename(expectation: &Expectation, origin: &Model, target: &Names<'_>) -> Result<Expectation> {
    let context = || " in an expectation".to_owned();
    let transfer = |atom: &Atom| transfer_atom(atom, origin, target, &context);
    let given = expectation
        .given
        .iter()
        .map(|given| match given {
            Given::Observed(label, category) => {
                let atom = transfer(&Atom::new(*label, *category))?;
                Ok(Given::Observed(atom.label(), atom.single().expect("one category stays one")))
            }
            Given::Belief(label, belief) => {
                let atom = transfer(&Atom::new(*label, CategoryId::new(0)))?;
                Ok(Given::Belief(atom.label(), belief.clone()))
            }
        })
        .collect::<Result<_>>()?;
    let condition = match &expectation.condition {
        Condition::Marginal(atom, comparison) => Condition::Marginal(transfer(atom)?, *comparison),
        Condition::Formula(formula, comparison) => {
            Condition::Formula(formula.try_map_atoms(transfer)?, *comparison)
        }
        Condition::Mpe(atoms) => Condition::Mpe(atoms.iter().map(transfer).collect::<Result<_>>()?),
    };
    Ok(Expectation { given, condition })
}

/// A rule whose ids are not all those of the labels has no text: it goes by its number.
fn rule_name(labels: &[Label], rule: &Rule, index: usize) -> String {
    let is_known = |label: LabelId, categories: &[CategoryId]| {
        let known = labels.get(label.index());
        known.is_some_and(|known| categories.iter().all(|category| category.index() < known.n_categories()))
    };
    let is_printable = || match rule.body() {
        Body::Formula(formula) => formula.atoms().all(|atom| is_known(atom.label(), atom.categories())),
        Body::NoisyOr(noisy_or) => noisy_or.inhibitions().iter().all(|i| is_known(i.label, &[i.category])),
    };
    match rule.name() {
        Some(name) => shortened(name),
        None if is_printable() => shortened(&text::print::body(&Names::new(labels), rule.body())),
        None => format!("rule {}", index + 1),
    }
}

/// What messages call a label or a category that there is not.
pub(crate) fn numbered(index: usize) -> String {
    format!("number {}", index + 1)
}

fn positions(labels: &[Label]) -> HashMap<String, usize> {
    let mut positions = HashMap::new();
    for (index, label) in labels.iter().enumerate() {
        positions.entry(label.name().to_owned()).or_insert(index);
    }
    positions
}

/// Whether a label is well formed; also what the parser asks, so that both say the same.
pub(crate) fn check_label(label: &Label) -> Result<()> {
    let name = || label.name().to_owned();
    if label.name().is_empty() {
        return Err(Error::EmptyName { what: "a label".to_owned() });
    }
    if label.n_categories() < 2 {
        return Err(Error::TooFewCategories { label: name(), n: label.n_categories() });
    }
    let mut seen = HashSet::new();
    for category in label.categories() {
        if category.is_empty() {
            return Err(Error::EmptyName { what: format!("a category of label `{}`", label.name()) });
        }
        if !seen.insert(category) {
            return Err(Error::DuplicateCategory { label: name(), category: category.clone() });
        }
    }
    if label.classifier().is_some_and(|classifier| classifier.name().is_empty()) {
        return Err(Error::EmptyName { what: format!("the classifier of label `{}`", label.name()) });
    }
    check_calibrator(label).map_err(|problem| Error::Calibrator { label: name(), problem })?;
    let Some(prior) = label.prior() else { return Ok(()) };
    if prior.len() != label.n_categories() {
        let wanted = label.n_categories();
        return Err(Error::Length { what: "prior", label: name(), given: prior.len(), wanted });
    }
    for (category, &value) in label.categories().iter().zip(prior) {
        if !(0.0..=1.0).contains(&value) {
            let category = category.clone();
            return Err(Error::NotAProbability { what: "prior", label: name(), category, value });
        }
    }
    let sum: f64 = prior.iter().sum();
    if (sum - 1.0).abs() > crate::belief::SUM_TOLERANCE {
        return Err(Error::Sum { what: "prior", label: name(), sum });
    }
    Ok(())
}

/// Whether the calibrator of a label fits it.
pub(crate) fn check_calibrator(label: &Label) -> Result<(), CalibrationProblem> {
    if label.classifier().is_none() && *label.calibrator() != Calibrator::Identity {
        return Err(CalibrationProblem::Latent);
    }
    label.calibrator().find_problem(label.n_categories())
}

fn check_rule(labels: &[Label], rule: &Rule, name: &dyn Fn() -> String) -> Result<()> {
    if rule.name() == Some("") {
        return Err(Error::EmptyName { what: "a rule".to_owned() });
    }
    if !(0.0..=1.0).contains(&rule.probability()) {
        return Err(Error::RuleProbability { rule: name(), value: rule.probability() });
    }
    match rule.body() {
        Body::Formula(formula) => check_formula(labels, formula, name),
        Body::NoisyOr(noisy_or) => check_noisy_or(labels, noisy_or, name),
    }
}

fn check_formula(labels: &[Label], formula: &Formula, name: &dyn Fn() -> String) -> Result<()> {
    if formula.depth() > MAX_DEPTH {
        return Err(Error::TooDeep { rule: name(), depth: formula.depth(), limit: MAX_DEPTH });
    }
    for node in formula.nodes() {
        match node {
            Node::Atom(atom) => {
                check_ids(labels, atom.label(), atom.categories(), name)?;
                if atom.categories().is_empty() {
                    let label = labels[atom.label().index()].name().to_owned();
                    return Err(Error::EmptyAtom { rule: name(), label });
                }
            }
            Node::Count(_, n, members) if *n > members.len() => {
                return Err(Error::Count { rule: name(), n: *n, members: members.len() });
            }
            _ => {}
        }
    }
    Ok(())
}

fn check_noisy_or(labels: &[Label], noisy_or: &NoisyOr, name: &dyn Fn() -> String) -> Result<()> {
    let mut seen = HashSet::new();
    if noisy_or.inhibitions().is_empty() {
        return Err(Error::EmptyNoisyOr { rule: name() });
    }
    for inhibition in noisy_or.inhibitions() {
        check_ids(labels, inhibition.label, &[inhibition.category], name)?;
        let label = &labels[inhibition.label.index()];
        let atom = || format!("{}={}", label.name(), label.category(inhibition.category));
        let value = inhibition.probability;
        if !(0.0..=1.0).contains(&value) {
            return Err(Error::InhibitionProbability { rule: name(), atom: atom(), value });
        }
        if !seen.insert((inhibition.label, inhibition.category)) {
            return Err(Error::RepeatedInhibition { rule: name(), atom: atom() });
        }
    }
    Ok(())
}

fn check_ids(
    labels: &[Label],
    label: LabelId,
    categories: &[CategoryId],
    rule: &dyn Fn() -> String,
) -> Result<()> {
    let context = || format!(" in rule `{}`", rule());
    let Some(known) = labels.get(label.index()) else {
        return Err(Error::unknown_label(&numbered(label.index()), context(), []));
    };
    match categories.iter().find(|category| category.index() >= known.n_categories()) {
        Some(category) => {
            Err(Error::unknown_category(known.name(), &numbered(category.index()), context(), []))
        }
        None => Ok(()),
    }
}
