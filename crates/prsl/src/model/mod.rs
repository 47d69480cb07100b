//! The model: labels, rules, typical combinations and expectations.
//!
//! [`Model::builder`](crate::Model::builder) builds a model part by part, and [`Model::parse`](crate::Model::parse)
//! reads the text format. This module has the parts that are rarely named: the nodes of a formula, the inhibitions of a
//! noisy-or, combinations and expectations.

mod builder;
mod check;
mod combinations;
mod draft;
mod transfer;

use std::ops::Range;
use std::sync::Arc;

pub use builder::ModelBuilder;

pub use crate::combination::Combination;
pub use crate::expectation::{Comparison, Condition, Expectation, Given};
pub use crate::formula::{Atom, Bound, Node, NodeId};
pub use crate::label::{Classifier, NO, YES};
pub use crate::noisy_or::Inhibition;
pub use crate::rule::LearnedNote;

use crate::assignment::Assignment;
use crate::calibrator::Calibrator;
use crate::error::Result;
use crate::label::{CategoryId, Label, LabelId};
use crate::names::Names;
use crate::notation;
use crate::rule::{Rule, RuleId};
use crate::syntax::print;
use combinations::Combinations;

/// Labels and the rules that relate them. A model never changes.
///
/// Engines compile from it. [`Model::edit`] and learning return a new one. Cloning is cheap.
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
    /// Shared with models that were edited from this one and have the same labels.
    names: Arc<Names>,
    rules: Vec<Rule>,
    typical: Combinations,
    expectations: Vec<Expectation>,
}

impl Model {
    /// An empty model to add to.
    pub fn builder() -> ModelBuilder {
        ModelBuilder::default()
    }

    /// A builder that starts with the contents of this model. This model does not change.
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
        ModelBuilder::of_model(self)
    }

    /// A model of labels that are known to be well formed. Returns an error if a rule is not.
    pub(crate) fn of_names(
        names: Arc<Names>,
        rules: Vec<Rule>,
        expectations: Vec<Expectation>,
    ) -> Result<Self> {
        check::rules(&names, &rules)?;
        let typical = Combinations::default();
        Ok(Self { parts: Arc::new(Parts { names, rules, typical, expectations }) })
    }

    /// The same model with other typical combinations. Returns an error if one of them is malformed.
    pub(crate) fn with_typical(self, list: Vec<Combination>) -> Result<Self> {
        let typical = Combinations::new(self.names(), list)?;
        let parts = Parts { typical, ..Arc::unwrap_or_clone(self.parts) };
        Ok(Self { parts: Arc::new(parts) })
    }

    /// The same model without typical combinations.
    pub(crate) fn without_typical(&self) -> Self {
        if self.typical().is_empty() {
            return self.clone();
        }
        self.clone().with_typical(Vec::new()).expect("no combination is malformed")
    }

    /// The labels with the table of their names.
    pub(crate) fn names(&self) -> &Names {
        &self.parts.names
    }

    /// Whether two models have the same labels, calibrators and priors included.
    ///
    /// This takes constant time for models that share their labels, such as one that was edited from the other.
    pub(crate) fn same_labels(&self, other: &Model) -> bool {
        self.names() == other.names()
    }

    /// The labels, in order.
    pub fn labels(&self) -> &[Label] {
        self.names().labels()
    }

    /// One label.
    pub fn label(&self, id: LabelId) -> &Label {
        &self.labels()[id.index()]
    }

    /// The map that is applied to the beliefs of a label's classifier before inference; the identity unless it was set.
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
        let mut names = Arc::clone(&self.parts.names);
        for (id, label) in self.label_ids().zip(self.labels()) {
            if *label.calibrator() != Calibrator::Identity {
                Arc::make_mut(&mut names).set_calibrator(id, Calibrator::Identity);
            }
        }
        Self { parts: Arc::new(Parts { names, ..Parts::clone(&self.parts) }) }
    }

    /// The ids of all labels, in order.
    pub fn label_ids(&self) -> impl Iterator<Item = LabelId> + use<> {
        (0..self.labels().len()).map(LabelId::new)
    }

    /// The label called `name`; if there is none, the error suggests a similar one.
    pub fn find_label(&self, name: &str) -> Result<LabelId> {
        self.names().find_label(name, &String::new)
    }

    /// The category called `name` of a label; if there is none, the error suggests a similar one.
    pub fn find_category(&self, label: LabelId, name: &str) -> Result<CategoryId> {
        self.names().find_category(label, name, &String::new)
    }

    /// The number of categories of all labels together.
    pub fn n_categories(&self) -> usize {
        self.names().n_categories()
    }

    /// The positions of a label's categories among all categories.
    pub fn block(&self, label: LabelId) -> Range<usize> {
        self.names().block(label)
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

    /// The name of a rule in messages: its own name, or else its text, shortened to about one line.
    ///
    /// [`Self::rule_text`] is never shortened.
    pub fn rule_name(&self, id: RuleId) -> String {
        check::rule_name(self.names(), self.rule(id), id.index())
    }

    /// The body of a rule as it is written in a model file: `high & standing -> overhead`.
    pub fn rule_text(&self, id: RuleId) -> String {
        print::body(self.names(), self.rule(id).body())
    }

    /// The atom as it is written in a model file: `overhead`, or `hands=high` where the category is not unique.
    pub fn atom_text(&self, atom: &Atom) -> String {
        print::atom(self.names(), atom)
    }

    /// The typical combinations. Together they are one factor, which multiplies an assignment's weight by 1 + w.
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

    /// The position of the typical combination that equals an assignment.
    pub fn find_typical(&self, assignment: &Assignment) -> Option<usize> {
        self.find_typical_at(assignment.indices())
    }

    pub(crate) fn find_typical_at(&self, assignment: &[usize]) -> Option<usize> {
        self.parts.typical.find(assignment)
    }

    /// The categories of a combination as they are written in a model file: `walking, gait, alarm`.
    pub fn combination_text(&self, combination: &Combination) -> String {
        print::combination(self.names(), combination.categories())
    }

    /// An assignment as `label=category` pairs: `weather=rain, ground=wet`.
    pub fn assignment_text(&self, assignment: &Assignment) -> String {
        let pair = |(label, category): (&Label, CategoryId)| {
            format!("{}={}", notation::name(label.name()), notation::name(label.category(category)))
        };
        self.labels().iter().zip(assignment.categories()).map(pair).collect::<Vec<_>>().join(", ")
    }

    /// The expectations of the model's author, which [`lint::check`](crate::lint::check) tests.
    pub fn expectations(&self) -> &[Expectation] {
        &self.parts.expectations
    }

    /// The same labels without rules and typical combinations: the posterior is the calibrated beliefs.
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

    /// The log weight of one assignment: beliefs, rules and typical combinations. It is −∞ if the assignment is
    /// impossible.
    pub(crate) fn log_weight_at(&self, row: &[f64], assignment: &[usize]) -> f64 {
        self.log_weight_of_rules(row, assignment) + self.log_typical(assignment)
    }

    /// ln S of an assignment: 0 unless it is a typical combination.
    pub(crate) fn log_typical(&self, assignment: &[usize]) -> f64 {
        self.find_typical_at(assignment).map_or(0.0, |place| self.typical()[place].log_factor())
    }

    /// The same as [`Self::log_weight_at`] without the factor of typical combinations.
    pub(crate) fn log_weight_of_rules(&self, row: &[f64], assignment: &[usize]) -> f64 {
        let belief = |(id, &category): (LabelId, &usize)| row[self.block(id)][category].ln();
        let beliefs: f64 = self.label_ids().zip(assignment).map(belief).sum();
        let rules: f64 = self.rules().iter().map(|rule| rule.log_weight_at(assignment)).sum();
        beliefs + rules
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model() -> Model {
        Model::parse("label a\nlabel b: c, d\ncalibrate a platt 2 0\nrule 0.9 r: a -> c\ntypical 2: a, d\nexpect a => c > 0.5")
            .expect("a model")
    }

    fn shares_labels(one: &Model, other: &Model) -> bool {
        Arc::ptr_eq(&one.parts.names, &other.parts.names)
    }

    #[test]
    fn edited_models_share_their_labels_while_these_do_not_change() {
        let model = model();
        let edited = model.edit().rule("b=d -> a", 0.7).remove_typical().build().expect("a model");
        assert!(shares_labels(&model, &edited) && model.same_labels(&edited));
        assert!(shares_labels(&model, &model.without_rules().expect("a model")));
        let equal = Model::parse(&model.to_string()).expect("a model");
        assert!(!shares_labels(&model, &equal) && model.same_labels(&equal));
        let raw = model.without_calibrators();
        assert!(!model.same_labels(&raw));
        assert!(shares_labels(&raw, &raw.without_calibrators()));
        assert!(!model.same_labels(&model.edit().prior("a", [0.1, 0.9]).build().expect("a model")));
    }

    #[test]
    fn parts_move_to_other_ids_with_their_names() {
        let moved = model().edit().remove_label("a").add_label(Label::binary("a")).build().expect("a model");
        assert_eq!(
            moved.to_string(),
            "label b: c, d\nlabel a\n\nrule 0.9 r: a -> c\n\ntypical 2: d, a\n\nexpect a => c > 0.5\n"
        );
        assert_eq!(moved.find_label("a").expect("a label"), LabelId::new(1));
        let unknown = model().edit().remove_label("a").build().expect_err("rules use it");
        assert_eq!(unknown.to_string(), "unknown label `a` in rule `r`");
    }
}
