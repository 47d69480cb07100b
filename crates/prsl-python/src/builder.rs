//! The builder of models.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::{Result, argument};
use crate::model::Model;

/// A prior as a user gives it.
#[derive(FromPyObject)]
enum Prior {
    /// The probability of yes.
    Yes(f64),
    /// The probability of each category.
    Named(HashMap<String, f64>),
    /// The probabilities in the order of the categories; not for yes/no labels.
    Listed(Vec<f64>),
}

impl Prior {
    /// The probabilities in the order of the model.
    fn values(self, label: &str, categories: &[String]) -> PyResult<Vec<f64>> {
        let is_yes_no = categories == [prsl::model::YES, prsl::model::NO];
        let wrong = |problem: String| Err(argument(format!("the prior of label `{label}` {problem}")));
        match self {
            Prior::Yes(yes) if is_yes_no => Ok(vec![yes, 1.0 - yes]),
            Prior::Yes(_) => wrong("is one number; give one for each category".to_owned()),
            Prior::Listed(_) if is_yes_no => wrong(
                "is a list, whose order is not clear; give the probability of yes, or a dictionary with `yes` and `no`"
                    .to_owned(),
            ),
            Prior::Listed(values) => Ok(values),
            Prior::Named(named) => {
                if let Some(unknown) = named.keys().find(|&name| !categories.contains(name)) {
                    return wrong(format!("has an unknown category `{unknown}`"));
                }
                match categories.iter().find(|&name| !named.contains_key(name)) {
                    Some(missing) => wrong(format!("has no number for category `{missing}`")),
                    None => Ok(categories.iter().map(|name| named[name]).collect()),
                }
            }
        }
    }
}

/// Builds a model. Every method returns the builder, so that calls can be chained.
#[pyclass(frozen, module = "prsl")]
pub struct ModelBuilder {
    /// Empty during a change, and after `build`.
    builder: Mutex<Option<prsl::ModelBuilder>>,
    /// The categories of each label, in the order of the model.
    categories: Mutex<HashMap<String, Vec<String>>>,
}

impl ModelBuilder {
    /// A builder with a copy of a model.
    pub fn of(model: &prsl::Model) -> Self {
        let of = |label: &prsl::Label| (label.name().to_owned(), label.categories().to_vec());
        let categories = model.labels().iter().map(of).collect();
        Self { builder: Mutex::new(Some(model.edit())), categories: Mutex::new(categories) }
    }

    fn change(&self, change: impl FnOnce(prsl::ModelBuilder) -> prsl::ModelBuilder) -> PyResult<()> {
        let mut builder = self.builder.lock().expect("no change panics");
        let taken = builder.take().ok_or_else(|| argument("the model has been built; `edit` it again"))?;
        *builder = Some(change(taken));
        Ok(())
    }

    /// The categories of each label.
    fn known(&self) -> MutexGuard<'_, HashMap<String, Vec<String>>> {
        self.categories.lock().expect("no change panics")
    }
}

#[pymethods]
impl ModelBuilder {
    #[new]
    fn new() -> Self {
        Self { builder: Mutex::new(Some(prsl::Model::builder())), categories: Mutex::default() }
    }

    /// Adds a label, with the categories yes and no unless others are given. The prior is a dictionary of categories, a
    /// list in the order of the categories, or the probability of yes. It is no list for a yes/no label.
    #[pyo3(signature = (name, categories=None, *, prior=None, classifier=None, latent=false))]
    fn label<'a>(
        this: Bound<'a, Self>,
        name: &str,
        categories: Option<Vec<String>>,
        prior: Option<Prior>,
        classifier: Option<String>,
        latent: bool,
    ) -> PyResult<Bound<'a, Self>> {
        let mut label = match categories {
            // The order of `Label.categories`.
            Some(categories) if categories == [prsl::model::NO, prsl::model::YES] => {
                prsl::Label::binary(name)
            }
            Some(categories) => prsl::Label::new(name, categories),
            None => prsl::Label::binary(name),
        };
        let categories = label.categories().to_vec();
        if let Some(prior) = prior {
            label = label.with_prior(prior.values(name, &categories)?);
        }
        this.get().known().insert(name.to_owned(), categories);
        if let Some(classifier) = classifier {
            label = label.from_classifier(classifier);
        }
        if latent {
            label = label.latent();
        }
        this.get().change(|builder| builder.add_label(label))?;
        Ok(this)
    }

    /// Removes a label. Rules that use it must be removed too.
    fn remove_label<'a>(this: Bound<'a, Self>, name: &str) -> PyResult<Bound<'a, Self>> {
        this.get().change(|builder| builder.remove_label(name))?;
        Ok(this)
    }

    /// Sets the prior of a label, in one of the forms of `label`.
    fn prior<'a>(this: Bound<'a, Self>, label: &str, prior: Prior) -> PyResult<Bound<'a, Self>> {
        let categories = this.get().known().get(label).cloned();
        // The library reports unknown labels.
        let prior = categories.map_or(Ok(vec![]), |categories| prior.values(label, &categories))?;
        this.get().change(|builder| builder.prior(label, prior))?;
        Ok(this)
    }

    /// Gives a label a classifier.
    fn plug<'a>(this: Bound<'a, Self>, label: &str, classifier: &str) -> PyResult<Bound<'a, Self>> {
        this.get().change(|builder| builder.plug(label, classifier))?;
        Ok(this)
    }

    /// Removes the classifier of a label, which becomes latent.
    fn unplug<'a>(this: Bound<'a, Self>, label: &str) -> PyResult<Bound<'a, Self>> {
        this.get().change(|builder| builder.unplug(label))?;
        Ok(this)
    }

    /// Adds a rule: a formula in the rule language, and the probability that it holds.
    #[pyo3(signature = (formula, probability, *, name=None))]
    fn rule<'a>(
        this: Bound<'a, Self>,
        formula: &str,
        probability: f64,
        name: Option<String>,
    ) -> PyResult<Bound<'a, Self>> {
        this.get().change(|builder| match name {
            Some(name) => builder.named_rule(name, formula, probability),
            None => builder.rule(formula, probability),
        })?;
        Ok(this)
    }

    /// Adds a noisy-or rule: for each label and category the probability that it does *not* make the rule true.
    #[pyo3(signature = (inhibitions, probability, *, name=None))]
    fn noisy_or<'a>(
        this: Bound<'a, Self>,
        inhibitions: &Bound<'_, PyDict>,
        probability: f64,
        name: Option<String>,
    ) -> PyResult<Bound<'a, Self>> {
        let mut list: Vec<(String, String, f64)> = Vec::new();
        for (label, categories) in inhibitions {
            for (category, q) in categories.cast::<PyDict>()? {
                list.push((label.extract()?, category.extract()?, q.extract()?));
            }
        }
        let list = list.iter().map(|(label, category, q)| (label.as_str(), category.as_str(), *q));
        this.get().change(|builder| {
            let builder = builder.noisy_or(list, probability);
            if let Some(name) = name { builder.name(name) } else { builder }
        })?;
        Ok(this)
    }

    /// Removes the rule of this name, or at this position.
    fn remove_rule<'a>(this: Bound<'a, Self>, rule: &Bound<'_, PyAny>) -> PyResult<Bound<'a, Self>> {
        if let Ok(name) = rule.extract::<String>() {
            this.get().change(|builder| builder.remove_rule(&name))?;
        } else {
            let index: usize = rule.extract()?;
            this.get().change(|builder| builder.retain_rules(|id| id.index() != index))?;
        }
        Ok(this)
    }

    /// Adds a typical combination, whose probability weight is multiplied by 1 + `weight`.
    fn typical<'a>(this: Bound<'a, Self>, categories: &str, weight: f64) -> PyResult<Bound<'a, Self>> {
        this.get().change(|builder| builder.typical(categories, weight))?;
        Ok(this)
    }

    /// Removes all typical combinations.
    fn remove_typical(this: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        this.get().change(prsl::ModelBuilder::remove_typical)?;
        Ok(this)
    }

    /// Adds an expectation, which `check` tests: `standing, high => overhead > 0.6`.
    fn expect<'a>(this: Bound<'a, Self>, text: &str) -> PyResult<Bound<'a, Self>> {
        this.get().change(|builder| builder.expect(text))?;
        Ok(this)
    }

    /// Validates and builds the model.
    fn build<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let builder = self.builder.lock().expect("no change panics").take();
        let builder = builder.ok_or_else(|| argument("the model has been built; `edit` it again"))?;
        let build = || -> Result<Model> { Model::of(&builder.build()?) };
        build()?.into_python(py)
    }
}
