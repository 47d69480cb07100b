//! Expectations: evidence, and the answer that a model has to give.

use crate::formula::{Atom, Formula};
use crate::label::{CategoryId, LabelId};

/// `expect EVIDENCE => CONDITION`. Labels that the evidence does not mention have their prior.
#[derive(Clone, Debug, PartialEq)]
pub struct Expectation {
    /// The evidence.
    pub given: Vec<Given>,
    /// The required answer.
    pub condition: Condition,
}

/// One part of an expectation's evidence.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Given {
    /// The label is observed to have this category.
    Observed(LabelId, CategoryId),
    /// A belief over the label's categories.
    Belief(LabelId, Vec<f64>),
}

impl Given {
    /// The label that it is about.
    pub fn label(&self) -> LabelId {
        match self {
            Given::Observed(label, _) | Given::Belief(label, _) => *label,
        }
    }
}

/// The condition of an expectation.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Condition {
    /// A comparison of the marginal probability of an atom.
    Marginal(Atom, Comparison),
    /// A comparison of the probability of a formula.
    Formula(Formula, Comparison),
    /// The most probable assignment satisfies all of these atoms.
    Mpe(Vec<Atom>),
}

/// A comparison of a probability with a number.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Comparison {
    /// `> x`
    Greater(f64),
    /// `>= x`
    GreaterOrEqual(f64),
    /// `< x`
    Less(f64),
    /// `<= x`
    LessOrEqual(f64),
    /// `= x +- tolerance`
    Near {
        /// The number.
        value: f64,
        /// Maximum distance from the number.
        tolerance: f64,
    },
}

impl Comparison {
    /// Whether `probability` satisfies the comparison.
    pub fn admits(self, probability: f64) -> bool {
        match self {
            Comparison::Greater(x) => probability > x,
            Comparison::GreaterOrEqual(x) => probability >= x,
            Comparison::Less(x) => probability < x,
            Comparison::LessOrEqual(x) => probability <= x,
            Comparison::Near { value, tolerance } => (probability - value).abs() <= tolerance,
        }
    }
}
