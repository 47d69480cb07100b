//! Unit tests of a rule base: evidence, and what must follow from it.

use crate::formula::{Atom, Formula};
use crate::label::{CategoryId, LabelId};

/// `expect EVIDENCE => CONDITION`: everything the evidence does not mention stays at its prior.
#[derive(Clone, Debug, PartialEq)]
pub struct Expectation {
    /// What is given.
    pub given: Vec<Given>,
    /// What must follow.
    pub condition: Condition,
}

/// One piece of an expectation's evidence.
#[derive(Clone, Debug, PartialEq)]
pub enum Given {
    /// The label is observed to take this category.
    Observed(LabelId, CategoryId),
    /// A belief over the label's categories.
    Belief(LabelId, Vec<f64>),
}

impl Given {
    /// The label it speaks about.
    pub fn label(&self) -> LabelId {
        match self {
            Given::Observed(label, _) | Given::Belief(label, _) => *label,
        }
    }
}

/// What an expectation demands.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// The marginal probability of an atom compares like this.
    Marginal(Atom, Comparison),
    /// The probability of a formula compares like this.
    Formula(Formula, Comparison),
    /// The most probable joint explanation agrees with all of these.
    Mpe(Vec<Atom>),
}

/// How a probability compares with a number.
#[derive(Clone, Copy, Debug, PartialEq)]
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
        /// How far the probability may be from it.
        tolerance: f64,
    },
}

impl Comparison {
    /// Whether `probability` passes.
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
