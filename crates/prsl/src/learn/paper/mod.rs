//! The recipe of the paper: noisy-or rules by projected ADAM (Kirchhof, Schmid, Reining, ten Hompel and Pauly, UAI 2021).
//!
//! A rule has an inhibition probability q for every category of every label. After each step it keeps only the J₀ labels
//! with the smallest soft minima, and the q of all other labels are set to 1. The objective is the joint log-likelihood of
//! a batch plus a Beta prior on the soft minima. [`PaperLearner::literal`] selects the method as printed.

mod adam;
mod clique_tree;
mod engine;
mod joint;
mod lanes;
mod learner;
mod loopy;
mod objective;
mod regularizer;
mod rows;
mod run;
mod space;
mod sweep;
#[cfg(test)]
mod tests;
mod tree;

pub use learner::{PaperLearned, PaperProgress};
pub use run::Evaluation;

use crate::calibrate::CalibrationMethod;
use crate::infer::Limits;

/// The settings of the recipe. The defaults are those of the paper and its code, with the changes that
/// [`PaperLearner::literal`] undoes.
///
/// ```
/// use prsl::learn::Examples;
/// use prsl::learn::paper::PaperLearner;
/// use prsl::{BeliefMatrix, Model, Normalize, Truth};
///
/// // Two labels that are always equal. The classifier of the second knows nothing.
/// let model = Model::parse("label left\nlabel right")?;
/// let mut beliefs = BeliefMatrix::new(&model);
/// let mut truths = Vec::new();
/// for row in 0..200 {
///     let truth = row % 2;
///     let belief = if truth == 0 { 0.6 } else { 0.4 };
///     beliefs.push(&[Some(belief), None, Some(0.5), None], Normalize::Never)?;
///     truths.push(Truth::from_indices([Some(truth), Some(truth)]));
/// }
/// let (train, valid) = Examples::new(beliefs, truths)?.split(0.2, 1);
/// let learner = PaperLearner { rules: vec![5], learning_rate: 0.01, ..PaperLearner::default() };
/// let learned = learner.learn(&model, &train, &valid)?;
/// assert!(learned.validation > learned.beliefs_alone);
/// # Ok::<(), prsl::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct PaperLearner {
    /// The numbers of rules to try, K. The one with the best validation log-likelihood is returned.
    pub rules: Vec<usize>,
    /// Maximum number of steps.
    pub steps: usize,
    /// Early stopping: maximum number of steps without an improvement on the validation set. `None`: never.
    pub patience: Option<usize>,
    /// Number of rows in a batch.
    pub batch: usize,
    /// The learning rate of ADAM.
    pub learning_rate: f64,
    /// Decay rates of ADAM's moments.
    pub betas: [f64; 2],
    /// Lower bound of the inhibition probabilities.
    pub clip: f64,
    /// The probability p of the learned rules. It is below 1, so that no row becomes impossible.
    pub probability: f64,
    /// Keeps the gradient of the prior finite, ε.
    pub epsilon: f64,
    /// Hardness of the soft minimum, α.
    pub alpha: f64,
    /// Maximum number of labels per rule, J₀.
    pub labels_per_rule: usize,
    /// P(S < 0.1) under the prior on a soft minimum S, γ₀: roughly, the probability that a label is in a rule.
    pub gamma_0: f64,
    /// P(S > 0.9), γ₁: roughly, the probability that a label is not in a rule.
    pub gamma_1: f64,
    /// Factor of the prior's weight from step to step, λ.
    pub lambda: f64,
    /// Exact gradients, or those of loopy propagation.
    pub gradients: Gradients,
    /// Calibration of the beliefs.
    pub calibrate: Calibrating,
    /// Whether the method is that of the paper, without changes. Then the soft minimum is a sum and not a mean, clipped to
    /// [1e-6, 1 − 1e-6]. The learning rate is constant. The parameters of the last step are returned, without early
    /// stopping. Gradients that point beyond q = 1 reach ADAM.
    pub literal: bool,
    /// Maximum number of bytes for tables.
    pub memory: u64,
    /// The seed of the initial rules and of the batches.
    pub seed: u64,
}

impl Default for PaperLearner {
    fn default() -> Self {
        Self {
            rules: vec![5, 10, 20],
            steps: 1000,
            patience: Some(400),
            batch: 20,
            learning_rate: 0.001,
            betas: [0.9, 0.999],
            clip: 1e-5,
            probability: 0.999,
            epsilon: 1e-4,
            alpha: 20.0,
            labels_per_rule: 5,
            gamma_0: 0.057,
            gamma_1: 0.628,
            lambda: 0.98,
            gradients: Gradients::Exact,
            calibrate: Calibrating::Given,
            literal: false,
            memory: Limits::default().memory,
            seed: 1,
        }
    }
}

/// The computation of gradients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gradients {
    /// Exact. Learning is refused if this is too costly.
    Exact,
    /// Those of the Bethe likelihood, by loopy propagation. Learning exploits the errors of this approximation.
    Loopy,
}

/// The calibration of beliefs before learning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calibrating {
    /// The calibrators of the base model, if it has any.
    Given,
    /// Calibrators that are fitted to the training rows first, each label by itself.
    Alone(CalibrationMethod),
}
