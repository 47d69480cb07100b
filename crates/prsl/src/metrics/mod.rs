//! Scores of predictions against known truths, with bootstrap intervals.
//!
//! A [`Truth`] is a category for each label, if it is known. Unknown truths are never imputed: a row
//! without any known truth does not count, and a partly known row counts with its known labels.
//!
//! | score | over | of |
//! |---|---|---|
//! | [`Metric::JointAccuracy`] | rows | the most probable explanation is right about every known label |
//! | [`Metric::JointAccuracyMarginals`] | rows | the most probable category is right for every known label |
//! | [`Metric::HammingLoss`] | known cells | the most probable category of the label is wrong |
//! | [`Metric::MeanJointLogLikelihood`], [`Metric::MedianJointLogLikelihood`] | rows | ln P(all known truths of the row \| beliefs, rules) |
//! | [`Metric::MeanLabelLogLikelihood`], [`Metric::MedianLabelLogLikelihood`] | rows | Σ over known labels of ln P(truth \| beliefs, rules), as in the paper |
//! | [`Metric::MicroF1`], [`Metric::MacroF1`] | classes | F1 of the most probable category of each label |
//! | [`Metric::ExpectedCalibrationError`] | classes | difference between predicted probabilities and observed frequencies |
//!
//! **Classes.** A yes/no label has one class, yes. Any other label has one class per category, against all others. With
//! counts over known cells, F1 = 2 hits / (predicted + actual). The micro average first adds the counts of all classes.
//! The macro average is the mean over the classes that were predicted or true at least once. The F1 of other classes is
//! undefined.
//!
//! **Calibration.** Each class has 15 bins of equal width. Its error is the mean over its known cells of
//! |mean probability − frequency| of the cell's bin. The score is the mean over classes with known cells. On few rows it
//! is larger than on many, because frequencies differ from probabilities by chance.
//!
//! **Weights.** Rows may have weights ([`Evaluation::add_weighted`]). A row of weight 2 counts as two rows, and one of weight
//! 0 not at all. Numbers of rows and of known truths are not weighted.
//!
//! **Intervals** are bootstrap intervals: quantiles of the scores of resampled rows, shifted so that the mean of these
//! scores is the score itself. So an interval tells how the score varies between samples of this size.
//!
//! **Probability 0.** A truth of probability 0 scores ln 1e-300 instead of −∞, and is counted in
//! [`Scores::impossible`]. Finite values are not clipped. A row in which rules and beliefs contradict each other has
//! no prediction. It counts as wrong for each known label, with probability 0, and predicts no class. The calibration
//! error ignores it.
//!
//! **Approximations.** Loopy propagation has no exact ln Z, so it gives no joint log-likelihood. A difference of two
//! Bethe values is not a log probability, and must not be compared with exact ones.

mod bootstrap;
mod cells;
mod comparison;
mod evaluation;
mod labels;
mod likelihood;
mod reliability;
mod rules;

pub use bootstrap::{Bootstrap, Intervals};
pub use comparison::{Comparison, Difference, RowDifference};
pub use evaluation::{Evaluation, Predictions};
pub use labels::{ClassScores, LabelScores};
pub use likelihood::{joint_log_likelihoods, label_log_likelihoods};
pub use reliability::{Reliability, ReliabilityBin};
pub use rules::{Average, RuleEffects};

use crate::belief::{BeliefMatrix, check_length, check_same_labels};
use crate::error::{Error, Result};
use crate::model::Model;
use crate::notation::numbered;
use crate::posterior::Engine;
use crate::truth::Truth;

/// Checks the truths: one for each row, one cell for each label, and only categories of that label.
fn check_truths(model: &Model, n_rows: usize, truths: &[Truth]) -> Result<()> {
    check_count("truths", truths.len(), n_rows)?;
    for (row, truth) in truths.iter().enumerate() {
        check_length("truth", "label", truth.n_labels(), model.labels().len())?;
        for (label, category) in model.labels().iter().zip(truth.indices()) {
            if let Some(category) = category.filter(|&category| category >= label.n_categories()) {
                let context = format!(" in the truths of row {}", row + 1);
                return Err(Error::unknown_category(label.name(), &numbered(category), context, []));
            }
        }
    }
    Ok(())
}

/// Checks that rows belong to the model.
fn check_rows(model: &Model, rows: &BeliefMatrix) -> Result<()> {
    check_same_labels(rows.model(), model)
}

fn check_count(what: &'static str, given: usize, wanted: usize) -> Result<()> {
    if given == wanted { Ok(()) } else { Err(Error::RowCount { what, given, wanted }) }
}

/// The largest weight of a row. Beside a larger one, rows of weight 1 are lost to rounding.
pub(crate) const MAX_WEIGHT: f64 = 1e15;

/// Checks the weights of rows: numbers from 0 to [`MAX_WEIGHT`].
fn check_weights(n_rows: usize, weights: &[f64]) -> Result<()> {
    check_count("weights", weights.len(), n_rows)?;
    match weights.iter().position(|weight| !(0.0..=MAX_WEIGHT).contains(weight)) {
        None => Ok(()),
        Some(row) => {
            let weight = weights[row];
            let problem =
                format!("row {} has weight {weight}, expected a number from 0 to {MAX_WEIGHT:e}", row + 1);
            Err(Error::Examples { problem })
        }
    }
}

/// The log-likelihood of a truth of probability 0: ln 1e-300.
pub(crate) const IMPOSSIBLE: f64 = -690.775_527_898_213_7;

/// Number of bins of the expected calibration error, of equal width from 0 to 1.
const CALIBRATION_BINS: usize = 15;

/// A score of predictions; the [module](self) defines them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Metric {
    /// Share of rows in which the most probable explanation is right.
    JointAccuracy,
    /// Share of rows in which the most probable category of every label is right.
    JointAccuracyMarginals,
    /// Share of known labels whose most probable category is wrong.
    HammingLoss,
    /// The mean over rows of the log probability of all known truths together.
    MeanJointLogLikelihood,
    /// The median of the same.
    MedianJointLogLikelihood,
    /// The mean over rows of the sum of the log probabilities of the known truths.
    MeanLabelLogLikelihood,
    /// The median of the same.
    MedianLabelLogLikelihood,
    /// F1 of all classes together.
    MicroF1,
    /// The mean of the classes' F1.
    MacroF1,
    /// Mean difference between predicted probabilities and observed frequencies.
    ExpectedCalibrationError,
}

const N_METRICS: usize = Metric::ALL.len();

impl Metric {
    /// All metrics, in order.
    pub const ALL: [Metric; 10] = [
        Metric::JointAccuracy,
        Metric::JointAccuracyMarginals,
        Metric::HammingLoss,
        Metric::MeanJointLogLikelihood,
        Metric::MedianJointLogLikelihood,
        Metric::MeanLabelLogLikelihood,
        Metric::MedianLabelLogLikelihood,
        Metric::MicroF1,
        Metric::MacroF1,
        Metric::ExpectedCalibrationError,
    ];

    /// The name for programs: `joint_accuracy`.
    pub fn name(self) -> &'static str {
        match self {
            Metric::JointAccuracy => "joint_accuracy",
            Metric::JointAccuracyMarginals => "joint_accuracy_marginals",
            Metric::HammingLoss => "hamming_loss",
            Metric::MeanJointLogLikelihood => "mean_joint_log_likelihood",
            Metric::MedianJointLogLikelihood => "median_joint_log_likelihood",
            Metric::MeanLabelLogLikelihood => "mean_label_log_likelihood",
            Metric::MedianLabelLogLikelihood => "median_label_log_likelihood",
            Metric::MicroF1 => "micro_f1",
            Metric::MacroF1 => "macro_f1",
            Metric::ExpectedCalibrationError => "expected_calibration_error",
        }
    }

    /// The smallest and the largest possible score.
    pub(crate) fn range(self) -> [f64; 2] {
        match self {
            Metric::MeanJointLogLikelihood
            | Metric::MedianJointLogLikelihood
            | Metric::MeanLabelLogLikelihood
            | Metric::MedianLabelLogLikelihood => [f64::NEG_INFINITY, 0.0],
            _ => [0.0, 1.0],
        }
    }

    /// Whether higher is better.
    pub fn higher_is_better(self) -> bool {
        !matches!(self, Metric::HammingLoss | Metric::ExpectedCalibrationError)
    }
}

/// The scores of an [`Evaluation`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Scores {
    /// The number of rows of a weight above 0.
    pub rows: usize,
    /// The number of rows with at least one known truth.
    pub scored_rows: usize,
    /// The engine of the marginals.
    pub engine: Engine,
    /// The number of rows that did not converge, or lost digits.
    pub not_converged: usize,
    /// The number of rows whose known truths have probability 0, or in which beliefs and rules contradict each other.
    pub impossible: usize,
    values: [Option<f64>; N_METRICS],
}

impl Scores {
    /// A score; `None` if it is undefined.
    pub fn get(&self, metric: Metric) -> Option<f64> {
        self.values[metric as usize]
    }
}
