//! Labels: the questions, and the categories that may answer them.

use std::collections::HashSet;

use crate::calibrator::Calibrator;
use crate::diagnostic::quoted;
use crate::distribution::SUM_TOLERANCE;
use crate::error::{CalibrationProblem, Error, Result};

/// Position of a label in its model, from 0.
///
/// Ids are like indices into a slice. Functions that return a part of a model panic if the model does not have the
/// id. Functions that return a [`Result`](crate::Result) return an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LabelId(u32);

/// Position of a category in its label, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CategoryId(u32);

macro_rules! index_newtype {
    ($name:ident) => {
        impl $name {
            /// The id at `index`.
            pub fn new(index: usize) -> Self {
                Self(u32::try_from(index).expect("models have fewer than 2^32 parts"))
            }

            /// The id as an index into a slice.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}
pub(crate) use index_newtype;
index_newtype!(LabelId);
index_newtype!(CategoryId);

/// The source of beliefs about one label: a camera model, a shoe sensor, a text classifier.
///
/// prsl neither trains nor runs it. Its name tells the source of the beliefs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classifier {
    name: String,
}

impl Classifier {
    /// A classifier called `name`.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into() }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// One question with two or more mutually exclusive answers.
///
/// ```
/// use prsl::Label;
///
/// let feet = Label::new("feet", ["gait", "standing"]).from_classifier("shoe");
/// assert_eq!(feet.n_categories(), 2);
/// assert_eq!(feet.classifier().unwrap().name(), "shoe");
///
/// let alarm = Label::binary("alarm").with_prior([0.1, 0.9]);
/// assert!(alarm.is_binary());
/// assert_eq!(alarm.categories(), ["yes", "no"]);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Label {
    name: String,
    categories: Vec<String>,
    prior: Option<Vec<f64>>,
    classifier: Option<Classifier>,
    calibrator: Calibrator,
}

/// The first category of a label declared by its name alone.
pub const YES: &str = "yes";
/// The second category of a label declared by its name alone.
pub const NO: &str = "no";

impl Label {
    /// A label with the given categories, a uniform prior, and a classifier named like the label.
    pub fn new<C: Into<String>>(name: impl Into<String>, categories: impl IntoIterator<Item = C>) -> Self {
        let name = name.into();
        let classifier = Some(Classifier::new(name.clone()));
        let categories = categories.into_iter().map(Into::into).collect();
        Self { name, categories, prior: None, classifier, calibrator: Calibrator::Identity }
    }

    /// A label with the categories `yes` and `no`.
    pub fn binary(name: impl Into<String>) -> Self {
        Self::new(name, [YES, NO])
    }

    /// The same label with a prior, used for rows that hold no belief about it.
    pub fn with_prior(mut self, prior: impl Into<Vec<f64>>) -> Self {
        self.prior = Some(prior.into());
        self
    }

    /// The same label with a uniform prior.
    pub fn without_prior(mut self) -> Self {
        self.prior = None;
        self
    }

    /// The same label with beliefs from the classifier `name`.
    pub fn from_classifier(mut self, name: impl Into<String>) -> Self {
        self.classifier = Some(Classifier::new(name));
        self
    }

    /// The same label whose classifier's beliefs are calibrated.
    pub fn with_calibrator(mut self, calibrator: Calibrator) -> Self {
        self.calibrator = calibrator;
        self
    }

    /// The same label without a classifier and calibrator: its belief is always its prior.
    pub fn latent(mut self) -> Self {
        self.classifier = None;
        self.calibrator = Calibrator::Identity;
        self
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its categories, in order.
    pub fn categories(&self) -> &[String] {
        &self.categories
    }

    /// The name of one category.
    pub fn category(&self, category: CategoryId) -> &str {
        &self.categories[category.index()]
    }

    /// The category called `name`.
    pub fn find_category(&self, name: &str) -> Option<CategoryId> {
        self.categories.iter().position(|category| category == name).map(CategoryId::new)
    }

    /// The number of categories, at least 2.
    pub fn n_categories(&self) -> usize {
        self.categories.len()
    }

    /// Whether the categories are `yes` and `no`, so that the bare label stands for `yes`.
    pub fn is_binary(&self) -> bool {
        self.categories.len() == 2 && self.categories[0] == YES && self.categories[1] == NO
    }

    /// The prior that was set, `None` if it is uniform.
    pub fn prior(&self) -> Option<&[f64]> {
        self.prior.as_deref()
    }

    /// The prior that inference uses: the one that was set, or uniform.
    pub fn prior_or_uniform(&self) -> Vec<f64> {
        match &self.prior {
            Some(prior) => prior.clone(),
            None => vec![1.0 / self.n_categories() as f64; self.n_categories()],
        }
    }

    /// The source of its beliefs; `None` for a latent label.
    pub fn classifier(&self) -> Option<&Classifier> {
        self.classifier.as_ref()
    }

    /// The map that is applied to its classifier's beliefs before inference.
    pub fn calibrator(&self) -> &Calibrator {
        &self.calibrator
    }

    /// Checks that the label is well formed: names, number of categories, calibrator, prior.
    pub(crate) fn check(&self) -> Result<()> {
        let name = || self.name.clone();
        if self.name.is_empty() {
            return Err(Error::EmptyName { what: "a label".to_owned() });
        }
        if self.n_categories() < 2 {
            return Err(Error::TooFewCategories { label: name(), n: self.n_categories() });
        }
        let mut seen = HashSet::new();
        for category in &self.categories {
            if category.is_empty() {
                return Err(Error::EmptyName { what: format!("a category of label {}", quoted(&self.name)) });
            }
            if !seen.insert(category) {
                return Err(Error::DuplicateCategory { label: name(), category: category.clone() });
            }
        }
        if self.classifier.as_ref().is_some_and(|classifier| classifier.name().is_empty()) {
            return Err(Error::EmptyName { what: format!("the classifier of label {}", quoted(&self.name)) });
        }
        self.check_calibrator().map_err(|problem| Error::Calibrator { label: name(), problem })?;
        self.prior.as_ref().map_or(Ok(()), |prior| self.check_distribution("prior", prior))
    }

    /// Checks that the calibrator suits the label.
    pub(crate) fn check_calibrator(&self) -> Result<(), CalibrationProblem> {
        if self.classifier.is_none() && self.calibrator != Calibrator::Identity {
            return Err(CalibrationProblem::Latent);
        }
        self.calibrator.find_problem(self.n_categories())
    }

    /// Checks that a "prior" or "belief" is a distribution over the categories.
    pub(crate) fn check_distribution(&self, what: &'static str, values: &[f64]) -> Result<()> {
        let label = || self.name.clone();
        if values.len() != self.n_categories() {
            let wanted = self.n_categories();
            return Err(Error::Length { what, label: label(), given: values.len(), wanted });
        }
        for (category, &value) in self.categories.iter().zip(values) {
            if !(0.0..=1.0).contains(&value) {
                return Err(Error::NotAProbability {
                    what,
                    label: label(),
                    category: category.clone(),
                    value,
                });
            }
        }
        let sum: f64 = values.iter().sum();
        if (sum - 1.0).abs() > SUM_TOLERANCE {
            return Err(Error::Sum { what, label: label(), sum });
        }
        Ok(())
    }
}
