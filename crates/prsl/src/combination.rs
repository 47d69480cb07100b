//! Typical combinations: assignments with a larger weight than the rules give them.

use crate::assignment::Assignment;
use crate::error::{Error, Result};
use crate::label::{CategoryId, Label, LabelId};

/// Maximum number of categories in all combinations of a model together: labels times combinations.
pub(crate) const MAX_CATEGORIES: usize = 1 << 24;

/// The category `no` of a yes/no label, which the text of a combination leaves out.
const NO: usize = 1;

/// One category for every label, and the weight that this assignment has in addition.
///
/// All combinations of a model together are one factor
///
/// ```text
/// S(y) = 1 + Σₛ wₛ [y = s]
/// ```
///
/// which multiplies the weight of the combination s by 1 + wₛ. Other assignments keep their weights.
///
/// ```
/// use prsl::Model;
///
/// let model = Model::parse("label anger\nlabel joy\nlabel sad\ntypical 3: anger, sad")?;
/// let combination = &model.typical()[0];
/// assert_eq!(combination.weight(), 3.0);
/// assert_eq!(*combination.assignment(), [0, 1, 0]); // yes, no, yes
/// # Ok::<(), prsl::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Combination {
    weight: f64,
    assignment: Assignment,
}

impl Combination {
    /// A combination with its weight w ≥ 0.
    pub fn new(weight: f64, assignment: impl Into<Assignment>) -> Self {
        Self { weight, assignment: assignment.into() }
    }

    /// The weight w: the combination counts 1 + w times.
    pub fn weight(&self) -> f64 {
        self.weight
    }

    /// The category of every label.
    pub fn assignment(&self) -> &Assignment {
        &self.assignment
    }

    /// The positions of the categories in the labels' lists.
    pub(crate) fn categories(&self) -> &[usize] {
        self.assignment.indices()
    }

    /// ln (1 + w).
    pub fn log_factor(&self) -> f64 {
        self.weight.ln_1p()
    }
}

/// Checks that a model may have `n_combinations` combinations.
pub(crate) fn check_size(labels: &[Label], n_combinations: usize) -> Result<()> {
    if labels.len().saturating_mul(n_combinations) <= MAX_CATEGORIES {
        return Ok(());
    }
    Err(Error::TooCostly {
        what: format!("a model of {n_combinations} combinations"),
        needed: format!("a category of {} labels for each", labels.len()),
        limit: format!("{MAX_CATEGORIES} categories in all"),
        advice: "keep those of the largest weights".to_owned(),
    })
}

/// The labels and categories that the text of a combination names: all but the `no` of yes/no labels.
pub(crate) fn named(labels: &[Label], categories: &[usize]) -> Vec<(LabelId, CategoryId)> {
    let is_named = |&label: &usize| !(labels[label].is_binary() && categories[label] == NO);
    let named = (0..labels.len()).filter(is_named);
    named.map(|label| (LabelId::new(label), CategoryId::new(categories[label]))).collect()
}

/// Completes the categories of a combination: yes/no labels without one are `no`.
///
/// The error is the first other label without a category.
pub(crate) fn completed(labels: &[Label], given: &[Option<usize>]) -> Result<Vec<usize>, LabelId> {
    let complete = |(index, label): (usize, &Label)| match given[index] {
        Some(category) => Ok(category),
        None if label.is_binary() => Ok(NO),
        None => Err(LabelId::new(index)),
    };
    labels.iter().enumerate().map(complete).collect()
}
