//! Rules: a formula or a noisy-or, with the probability that it holds.

use crate::formula::Formula;
use crate::infer::outcome::Outcome;
use crate::label::{LabelId, index_newtype};
use crate::noisy_or::NoisyOr;

/// Position of a rule in its model, from 0; people count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleId(u32);
index_newtype!(RuleId);

/// What a rule says.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// True or false for every assignment.
    Formula(Formula),
    /// True with a probability that depends on the assignment.
    NoisyOr(NoisyOr),
}

/// A statement about the labels, and how sure we are of it.
///
/// A rule weighs an assignment y by
///
/// ```text
/// φ(y) = p (1 − Q(y)) + (1 − p) Q(y)
/// ```
///
/// where Q(y) is the probability that the rule stays silent: ∏ q for a noisy-or; for a formula 0 if it holds and
/// 1 if it does not.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    name: Option<String>,
    probability: f64,
    body: Body,
    is_fixed: bool,
}

impl Rule {
    /// A rule of this probability.
    pub fn new(probability: f64, body: Body) -> Self {
        Self { name: None, probability, body, is_fixed: false }
    }

    /// The same rule, named.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// The same rule with another probability.
    pub fn with_probability(mut self, probability: f64) -> Self {
        self.probability = probability;
        self
    }

    /// The same rule with another body.
    pub fn with_body(mut self, body: Body) -> Self {
        self.body = body;
        self
    }

    /// The same rule, which learning leaves as it is, or not.
    pub fn fixed(mut self, is_fixed: bool) -> Self {
        self.is_fixed = is_fixed;
        self
    }

    /// Whether learning leaves it as it is, even where rules are learned anew.
    pub fn is_fixed(&self) -> bool {
        self.is_fixed
    }

    /// Its name, if it has one.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The probability p that it holds.
    pub fn probability(&self) -> f64 {
        self.probability
    }

    /// What it says.
    pub fn body(&self) -> &Body {
        &self.body
    }

    /// The formula, unless it is a noisy-or.
    pub fn formula(&self) -> Option<&Formula> {
        match &self.body {
            Body::Formula(formula) => Some(formula),
            Body::NoisyOr(_) => None,
        }
    }

    /// The labels it speaks about, each once, in order of appearance.
    pub fn scope(&self) -> Vec<LabelId> {
        match &self.body {
            Body::Formula(formula) => formula.scope(),
            Body::NoisyOr(noisy_or) => noisy_or.scope(),
        }
    }

    /// How many nodes or categories are looked at to weigh an assignment.
    pub(crate) fn n_parts(&self) -> usize {
        match &self.body {
            Body::Formula(formula) => formula.nodes().len(),
            Body::NoisyOr(noisy_or) => noisy_or.inhibitions().len(),
        }
    }

    /// The probabilities Q(y) that the rule stays silent under an assignment, and 1 − Q(y) that it fires.
    pub fn outcome(&self, assignment: &[usize]) -> [f64; 2] {
        match &self.body {
            Body::Formula(formula) if formula.holds(assignment) => [0.0, 1.0],
            Body::Formula(_) => [1.0, 0.0],
            Body::NoisyOr(noisy_or) => noisy_or.outcome(assignment),
        }
    }

    /// φ(y): what the rule multiplies the weight of an assignment by.
    pub fn weight(&self, assignment: &[usize]) -> f64 {
        let [silent, fired] = self.outcome(assignment);
        self.probability * fired + (1.0 - self.probability) * silent
    }

    /// ln φ(y), also where φ(y) is too small for a number; −∞ only where the rule excludes the assignment.
    ///
    /// ```
    /// use prsl::{Model, RuleId};
    ///
    /// let model = Model::parse("label a\nlabel b\nnoisy_or 0: a 1e-200, b 1e-200")?;
    /// let rule = model.rule(RuleId::new(0));
    /// assert_eq!(rule.weight(&[0, 0]), 0.0); // 1e-400
    /// assert!((rule.log_weight(&[0, 0]) - 2.0 * 1e-200f64.ln()).abs() < 1e-9);
    /// # Ok::<(), prsl::Error>(())
    /// ```
    pub fn log_weight(&self, assignment: &[usize]) -> f64 {
        self.precise_outcome(assignment).log_weight([1.0 - self.probability, self.probability])
    }

    /// The same as [`Self::outcome`], without underflow.
    pub(crate) fn precise_outcome(&self, assignment: &[usize]) -> Outcome {
        let log_silence = || match &self.body {
            Body::Formula(_) => f64::NEG_INFINITY,
            Body::NoisyOr(noisy_or) => noisy_or.log_silence(assignment),
        };
        Outcome::new(self.outcome(assignment), log_silence)
    }
}
