//! Builds a model part by part, or from another model.

use std::sync::Arc;

use super::Model;
use super::draft::{CombinationDraft, Draft, ExpectationDraft};
use crate::calibrator::Calibrator;
use crate::combination::Combination;
use crate::diagnostic::nearest;
use crate::error::{Error, Result};
use crate::expectation::Expectation;
use crate::label::Label;
use crate::names::Names;
use crate::notation::numbered;
use crate::rule::{LearnedNote, Rule, RuleId};

/// Collects the parts of a model. [`ModelBuilder::build`] checks them.
#[derive(Clone, Debug, Default)]
pub struct ModelBuilder {
    /// Shared with the model that is edited until a label changes.
    names: Arc<Names>,
    /// The labels of the model that is edited, which need no more checks.
    checked: Option<Arc<Names>>,
    rules: Vec<Draft>,
    typical: Vec<CombinationDraft>,
    expectations: Vec<ExpectationDraft>,
    /// The first error, which `build` returns.
    error: Option<Error>,
}

impl ModelBuilder {
    /// A builder with all parts of a model.
    pub(super) fn of_model(model: &Model) -> Self {
        let value = |it: &Expectation| ExpectationDraft::Value(it.clone(), model.clone());
        Self {
            names: Arc::clone(&model.parts.names),
            checked: Some(Arc::clone(&model.parts.names)),
            rules: model.rules().iter().map(|rule| Draft::Rule(rule.clone(), model.clone())).collect(),
            typical: vec![CombinationDraft::Values(model.typical().to_vec(), model.clone())],
            expectations: model.expectations().iter().map(value).collect(),
            error: None,
        }
    }

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
        Arc::make_mut(&mut self.names).push(label);
        self
    }

    /// Removes a label. Rules and expectations that use it must be removed too.
    pub fn remove_label(mut self, name: &str) -> Self {
        match self.names.find_label(name, &String::new) {
            Ok(id) => {
                let mut labels = self.names.labels().to_vec();
                labels.remove(id.index());
                self.names = Arc::new(Names::unchecked(labels));
            }
            Err(error) => self.fail(error),
        }
        self
    }

    /// Sets a label's prior, used for rows that hold no belief about it.
    pub fn prior(self, label: &str, prior: impl Into<Vec<f64>>) -> Self {
        self.change_label(label, |label| label.with_prior(prior))
    }

    /// Plugs a classifier into a label. A calibrator that was fitted to another classifier is removed.
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

    /// Sets the map that is applied to the beliefs of a label's classifier before inference.
    ///
    /// ```
    /// use prsl::calibrate::Calibrator;
    /// use prsl::{Evidence, Model};
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

    /// Removes the classifier of a label and its calibrator. The label becomes latent.
    pub fn unplug(self, label: &str) -> Self {
        self.change_label(label, Label::latent)
    }

    /// Adds a rule: a formula in the rule language, and the probability that it holds.
    pub fn rule(mut self, formula: impl Into<String>, probability: f64) -> Self {
        self.rules.push(Draft::Text { name: None, probability, formula: formula.into(), learned: None });
        self
    }

    /// Adds a rule with a name.
    pub fn named_rule(
        mut self,
        name: impl Into<String>,
        formula: impl Into<String>,
        probability: f64,
    ) -> Self {
        let (name, formula) = (Some(name.into()), formula.into());
        self.rules.push(Draft::Text { name, probability, formula, learned: None });
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
        self.rules.push(Draft::NoisyOr { name: None, probability, inhibitions, learned: None });
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

    /// Sets the note about how the rule added last was learned, or removes it.
    ///
    /// ```
    /// use prsl::model::LearnedNote;
    /// use prsl::{Model, RuleId};
    ///
    /// let model = Model::builder()
    ///     .binary_label("rain")
    ///     .binary_label("wet")
    ///     .rule("rain -> wet", 0.95)
    ///     .learned(LearnedNote::new(12.3, 3.0, 214.0, 41.2, true))
    ///     .build()?;
    /// assert!(model.rule(RuleId::new(0)).learned().is_some_and(|note| note.sure));
    ///
    /// let without = model.edit().learned_at(RuleId::new(0), None).build()?;
    /// assert_eq!(without.rule(RuleId::new(0)).learned(), None);
    /// # Ok::<(), prsl::Error>(())
    /// ```
    pub fn learned(self, note: impl Into<Option<LearnedNote>>) -> Self {
        let last = self.rules.len().saturating_sub(1);
        self.learned_at(RuleId::new(last), note)
    }

    /// Sets the note about how a rule was learned, or removes it. The id is the rule's position among the rules so far.
    pub fn learned_at(mut self, rule: RuleId, note: impl Into<Option<LearnedNote>>) -> Self {
        match self.rules.get_mut(rule.index()) {
            Some(draft) => draft.set_learned(note.into()),
            None => self.fail(Error::UnknownRule { rule: numbered(rule.index()), suggestion: None }),
        }
        self
    }

    /// Sets the probability of a rule. The id is the rule's position among the rules so far. If the probability differs,
    /// the note about how the rule was learned is removed.
    ///
    /// ```
    /// use prsl::{Model, RuleId};
    ///
    /// let model = Model::parse("label a\nlabel b\nrule 0.9: a -> b")?;
    /// let edited = model.edit().probability_at(RuleId::new(0), 0.7).build()?;
    /// assert_eq!(edited.rule(RuleId::new(0)).probability(), 0.7);
    /// assert!(model.edit().probability_at(RuleId::new(1), 0.7).build().is_err());
    /// # Ok::<(), prsl::Error>(())
    /// ```
    pub fn probability_at(mut self, rule: RuleId, probability: f64) -> Self {
        match self.rules.get_mut(rule.index()) {
            Some(draft) => draft.set_probability(probability),
            None => self.fail(Error::UnknownRule { rule: numbered(rule.index()), suggestion: None }),
        }
        self
    }

    /// Removes the rule of this name.
    pub fn remove_rule(mut self, name: &str) -> Self {
        match self.rules.iter().position(|draft| draft.name() == Some(name)) {
            Some(index) => drop(self.rules.remove(index)),
            None => {
                let known = self.rules.iter().filter_map(Draft::name);
                let suggestion = nearest(name, known).map(str::to_owned);
                self.fail(Error::UnknownRule { rule: name.to_owned(), suggestion });
            }
        }
        self
    }

    /// Keeps the rules for which `keep` returns true, given their positions among the rules so far.
    pub fn retain_rules(mut self, mut keep: impl FnMut(RuleId) -> bool) -> Self {
        let mut index = 0;
        self.rules.retain(|_| {
            index += 1;
            keep(RuleId::new(index - 1))
        });
        self
    }

    /// Adds a typical combination in the rule language: `walking, gait, alarm`. It counts 1 + `weight` times.
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

    /// Adds a typical combination whose category ids are those of the labels added so far.
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

    /// Checks all parts and returns the model.
    pub fn build(self) -> Result<Model> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let names = self.names;
        if self.checked.is_none_or(|checked| !Arc::ptr_eq(&checked, &names)) {
            names.check()?;
        }
        let rules = self.rules.into_iter().map(|draft| draft.resolve(&names)).collect::<Result<_>>()?;
        let expectations =
            self.expectations.into_iter().map(|draft| draft.resolve(&names)).collect::<Result<_>>()?;
        let mut typical = Vec::new();
        for draft in self.typical {
            typical.extend(draft.resolve(&names)?);
        }
        Model::of_names(names, rules, expectations)?.with_typical(typical)
    }

    /// Changes settings of a label other than its name and categories.
    fn change_label(mut self, name: &str, change: impl FnOnce(Label) -> Label) -> Self {
        match self.names.find_label(name, &String::new) {
            Ok(id) => {
                let label = change(self.names.labels()[id.index()].clone());
                Arc::make_mut(&mut self.names).replace(id, label);
            }
            Err(error) => self.fail(error),
        }
        self
    }

    fn fail(&mut self, error: Error) {
        self.error.get_or_insert(error);
    }
}
