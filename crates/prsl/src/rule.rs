//! Rules: a formula or a noisy-or, with the probability that it holds.

use crate::assignment::Assignment;
use crate::formula::Formula;
use crate::label::{LabelId, index_newtype};
use crate::noisy_or::NoisyOr;
use crate::notation::significant;
use crate::outcome::Outcome;

/// The position of a rule in its model, from 0. Messages count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleId(u32);
index_newtype!(RuleId);

/// The statement of a rule.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Body {
    /// True or false for every assignment.
    Formula(Formula),
    /// True with a probability that depends on the assignment.
    NoisyOr(NoisyOr),
}

/// A statement about labels, with the probability p that it holds.
///
/// A rule multiplies the weight of an assignment y by
///
/// ```text
/// φ(y) = p (1 − Q(y)) + (1 − p) Q(y)
/// ```
///
/// Q(y) is the silence: the probability that the assignment does not make the rule true. It is ∏ q for a noisy-or.
/// For a formula it is 0 if the formula holds and 1 if not.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    name: Option<String>,
    probability: f64,
    body: Body,
    is_fixed: bool,
    learned: Option<LearnedNote>,
}

impl Rule {
    /// A rule of this probability.
    pub fn new(probability: f64, body: Body) -> Self {
        Self { name: None, probability, body, is_fixed: false, learned: None }
    }

    /// The same rule, named.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// The same rule with another probability. If it differs, the note about learning is removed.
    pub fn with_probability(mut self, probability: f64) -> Self {
        self.learned = self.learned.filter(|_| probability == self.probability);
        self.probability = probability;
        self
    }

    /// The same rule with another body. If it differs, the note about learning is removed.
    pub fn with_body(mut self, body: Body) -> Self {
        self.learned = self.learned.filter(|_| body == self.body);
        self.body = body;
        self
    }

    /// The same rule with a note about how it was learned, or without one. The numbers are rounded as in
    /// [`LearnedNote::new`].
    pub fn with_learned(mut self, note: impl Into<Option<LearnedNote>>) -> Self {
        self.learned = note.into().map(LearnedNote::rounded);
        self
    }

    /// The same rule, fixed or not. Learning does not change fixed rules.
    pub fn fixed(mut self, is_fixed: bool) -> Self {
        self.is_fixed = is_fixed;
        self
    }

    /// Whether learning keeps the rule unchanged, even if it replaces the other rules.
    pub fn is_fixed(&self) -> bool {
        self.is_fixed
    }

    /// The note about how it was learned, if it has one. Inference does not use it.
    pub fn learned(&self) -> Option<&LearnedNote> {
        self.learned.as_ref()
    }

    /// Its name, if it has one.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The probability p that it holds.
    pub fn probability(&self) -> f64 {
        self.probability
    }

    /// The statement.
    pub fn body(&self) -> &Body {
        &self.body
    }

    /// The formula; `None` for a noisy-or.
    pub fn formula(&self) -> Option<&Formula> {
        match &self.body {
            Body::Formula(formula) => Some(formula),
            Body::NoisyOr(_) => None,
        }
    }

    /// The labels that it is about, each once, in order of appearance.
    pub fn scope(&self) -> Vec<LabelId> {
        match &self.body {
            Body::Formula(formula) => formula.scope(),
            Body::NoisyOr(noisy_or) => noisy_or.scope(),
        }
    }

    /// Number of nodes or categories evaluated per assignment.
    pub(crate) fn n_parts(&self) -> usize {
        match &self.body {
            Body::Formula(formula) => formula.nodes().len(),
            Body::NoisyOr(noisy_or) => noisy_or.inhibitions().len(),
        }
    }

    /// The probabilities that the rule is silent, Q(y), and that it has fired, 1 − Q(y), under an assignment.
    pub fn outcome(&self, assignment: &Assignment) -> [f64; 2] {
        self.outcome_at(assignment.indices())
    }

    pub(crate) fn outcome_at(&self, assignment: &[usize]) -> [f64; 2] {
        match &self.body {
            Body::Formula(formula) if formula.holds_at(assignment) => [0.0, 1.0],
            Body::Formula(_) => [1.0, 0.0],
            Body::NoisyOr(noisy_or) => noisy_or.outcome_at(assignment),
        }
    }

    /// φ(y): the factor of the weight of an assignment.
    pub fn weight(&self, assignment: &Assignment) -> f64 {
        self.weight_at(assignment.indices())
    }

    pub(crate) fn weight_at(&self, assignment: &[usize]) -> f64 {
        let [silent, fired] = self.outcome_at(assignment);
        self.probability * fired + (1.0 - self.probability) * silent
    }

    /// ln φ(y), even if φ(y) underflows. It is −∞ only if the rule excludes the assignment.
    ///
    /// ```
    /// use prsl::{Assignment, Model, RuleId};
    ///
    /// let model = Model::parse("label a\nlabel b\nnoisy_or 0: a 1e-200, b 1e-200")?;
    /// let rule = model.rule(RuleId::new(0));
    /// let both = Assignment::from_indices([0, 0]);
    /// assert_eq!(rule.weight(&both), 0.0); // 1e-400
    /// assert!((rule.log_weight(&both) - 2.0 * 1e-200f64.ln()).abs() < 1e-9);
    /// # Ok::<(), prsl::Error>(())
    /// ```
    pub fn log_weight(&self, assignment: &Assignment) -> f64 {
        self.log_weight_at(assignment.indices())
    }

    pub(crate) fn log_weight_at(&self, assignment: &[usize]) -> f64 {
        self.precise_outcome(assignment).log_weight([1.0 - self.probability, self.probability])
    }

    /// Like [`Self::outcome`], without underflow.
    pub(crate) fn precise_outcome(&self, assignment: &[usize]) -> Outcome {
        let log_silence = || match &self.body {
            Body::Formula(_) => f64::NEG_INFINITY,
            Body::NoisyOr(noisy_or) => noisy_or.log_silence(assignment),
        };
        Outcome::new(self.outcome_at(assignment), log_silence)
    }
}

/// Significant digits of the numbers of a note.
const NOTE_DIGITS: usize = 4;

/// A note about how a rule was learned: its evidence in the training rows.
///
/// Inference does not use it. Every format of a model keeps it, and models with different notes are different. In the
/// text format it is a comment behind the rule:
///
/// ```
/// use prsl::model::LearnedNote;
/// use prsl::{Model, RuleId};
///
/// let text = "\
/// label sunset
/// label urban
///
/// rule 0.94: sunset -> !urban  # learned: gain 12.3, broken 3 of 214, expected 41.2, sure
/// ";
/// let model = Model::parse(text)?;
/// let note = LearnedNote::new(12.3, 3.0, 214.0, 41.2, true);
/// assert_eq!(model.rule(RuleId::new(0)).learned(), Some(&note));
/// assert_eq!(model.to_string(), text);
/// # Ok::<(), prsl::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct LearnedNote {
    /// Log-likelihood of the training rows, in nats, that is lost if the rule is removed and the others are refitted.
    pub gain: f64,
    /// Weight of the known rows that break the rule.
    pub broken: f64,
    /// Weight of the known rows: those in which the condition of the rule holds and all its labels are known.
    pub known: f64,
    /// Weight of the known rows that break the rule, as the model without the rule expects it.
    pub expected: f64,
    /// Whether the gain exceeds the price of the rule at parsimony 1.
    pub sure: bool,
}

impl LearnedNote {
    /// A note with these numbers, rounded to four significant digits. Numbers from 1000 are rounded to whole numbers,
    /// so counts of rows stay exact.
    ///
    /// ```
    /// use prsl::model::LearnedNote;
    ///
    /// let note = LearnedNote::new(12.345678, 3.0, 21_476.0, 41.2, true);
    /// assert_eq!((note.gain, note.known), (12.35, 21_476.0));
    /// ```
    pub fn new(gain: f64, broken: f64, known: f64, expected: f64, sure: bool) -> Self {
        Self { gain, broken, known, expected, sure }.rounded()
    }

    /// The note with rounded numbers. Rounding twice changes nothing, and keeps the order of two numbers.
    fn rounded(self) -> Self {
        let round = |number: f64| significant(number, NOTE_DIGITS);
        Self {
            gain: round(self.gain),
            broken: round(self.broken),
            known: round(self.known),
            expected: round(self.expected),
            sure: self.sure,
        }
    }

    /// The first number that is impossible: its name, its value and what was expected.
    pub(crate) fn problem(&self) -> Option<(&'static str, f64, String)> {
        let numbers = [
            ("gain", self.gain),
            ("known", self.known),
            ("expected", self.expected),
            ("broken", self.broken),
        ];
        let is_possible = |value: f64| value.is_finite() && value >= 0.0;
        if let Some((what, value)) = numbers.into_iter().find(|(_, value)| !is_possible(*value)) {
            return Some((what, value, "a finite number of at least 0".to_owned()));
        }
        (self.broken > self.known)
            .then(|| ("broken", self.broken, format!("at most {}, the number of known rows", self.known)))
    }
}
