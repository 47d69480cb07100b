//! How good predictions are: scores against known truths, with intervals.
//!
//! A truth is a category for each label, or `None` where it is not known. Nothing is guessed about unknown truths: a row
//! without any counts in no score, and a partly known row counts by what is known of it.
//!
//! | score | over | of |
//! |---|---|---|
//! | [`Metric::JointAccuracy`] | rows | the most probable explanation is right about every known label |
//! | [`Metric::JointAccuracyMarginals`] | rows | the most probable category of each label by itself is right about every known label |
//! | [`Metric::HammingLoss`] | known cells | the most probable category of the label by itself is wrong |
//! | [`Metric::MeanJointLogLikelihood`], [`Metric::MedianJointLogLikelihood`] | rows | ln P(all known truths of the row \| beliefs, rules) |
//! | [`Metric::MeanLabelLogLikelihood`], [`Metric::MedianLabelLogLikelihood`] | rows | Σ over known labels of ln P(truth \| beliefs, rules), as in the paper |
//! | [`Metric::MicroF1`], [`Metric::MacroF1`] | classes | F1 of the most probable category of each label by itself |
//! | [`Metric::ExpectedCalibrationError`] | classes | how far probabilities are from frequencies |
//!
//! **Classes.** A yes/no label has one class, yes; any other label has one for each of its categories, against all others. With
//! counts over known cells, F1 = 2 hits / (predicted + actual). The micro average adds the counts of all classes first, the macro
//! average is the mean over the classes that were predicted or actually there at least once; a class that never was, has nothing to be
//! right or wrong about and is left out.
//!
//! **Calibration.** Each class has [`CALIBRATION_BINS`] bins of equal width. Its error is the mean over its known cells of
//! |mean probability − frequency| of the bin that the cell is in, and the score the mean over classes with known cells. Resampled
//! rows are never calibrated better than the rows themselves, so the interval of this score tends to lie above it.
//!
//! **Probability 0.** A truth of probability 0 scores ln 1e-300 ([`IMPOSSIBLE`]) instead of −∞, and is counted in [`Scores::impossible`];
//! finite values are taken as they are, however small. A row in which rules and beliefs contradict each other has no prediction:
//! it is wrong about each known label, of probability 0, and predicts no class. Calibration leaves it out.
//!
//! **Approximations.** Loopy propagation has no exact ln Z, so there is no joint log-likelihood with it: a difference of
//! two Bethe values is no log probability and would be compared with ones that are.

mod bootstrap;
mod evaluation;
mod likelihood;
mod reliability;
mod rules;

pub use bootstrap::{Bootstrap, Intervals};
pub use evaluation::{Evaluation, Predictions};
pub use likelihood::{joint_log_likelihoods, label_log_likelihoods};
pub use reliability::{Reliability, ReliabilityBin};
pub use rules::{Average, RuleEffects};

use crate::belief::{BeliefMatrix, check_length};
use crate::error::{Error, Result};
use crate::model::{Model, numbered};
use crate::posterior::Engine;

/// What is known to be true of a row: a category for each label, as its place in the label's list.
pub type Truth = Vec<Option<usize>>;

/// That there is a truth for each row, a cell in it for each label, and in the cell a category that there is.
fn check_truths(model: &Model, n_rows: usize, truths: &[Truth]) -> Result<()> {
    check_count("truths", truths.len(), n_rows)?;
    for (row, truth) in truths.iter().enumerate() {
        check_length("truth", "label", truth.len(), model.labels().len())?;
        for (label, category) in model.labels().iter().zip(truth) {
            if let Some(category) = category.filter(|&category| category >= label.n_categories()) {
                let context = format!(" in the truths of row {}", row + 1);
                return Err(Error::unknown_category(label.name(), &numbered(category), context, []));
            }
        }
    }
    Ok(())
}

/// That rows have a belief for each category of the model.
fn check_rows(model: &Model, rows: &BeliefMatrix) -> Result<()> {
    check_length("belief", "category", rows.model().n_categories(), model.n_categories())
}

fn check_count(what: &'static str, given: usize, wanted: usize) -> Result<()> {
    if given == wanted { Ok(()) } else { Err(Error::RowCount { what, given, wanted }) }
}

/// The log-likelihood of what is impossible: ln 1e-300.
pub const IMPOSSIBLE: f64 = -690.775_527_898_213_7;

/// The bins of the expected calibration error, of equal width from 0 to 1.
pub const CALIBRATION_BINS: usize = 15;

/// A score of predictions; the [module](self) defines them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Metric {
    /// How often the most probable explanation is right.
    JointAccuracy,
    /// How often the most probable categories of all labels, each by itself, are right together.
    JointAccuracyMarginals,
    /// How often the most probable category of a label by itself is wrong.
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
    /// How far probabilities are from frequencies.
    ExpectedCalibrationError,
}

const N_METRICS: usize = Metric::ALL.len();

impl Metric {
    /// All of them, in order.
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

    /// Whether more of it is better.
    pub fn higher_is_better(self) -> bool {
        !matches!(self, Metric::HammingLoss | Metric::ExpectedCalibrationError)
    }
}

/// The scores of an [`Evaluation`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Scores {
    /// How many rows there are.
    pub rows: usize,
    /// How many of them have at least one known truth: those that count.
    pub scored_rows: usize,
    /// Which engine gave the marginals.
    pub engine: Engine,
    /// How many rows an approximation had not come to rest for, or have lost digits.
    pub not_converged: usize,
    /// In how many rows the known truths have probability 0, or beliefs and rules contradict each other.
    pub impossible: usize,
    values: [Option<f64>; N_METRICS],
}

impl Scores {
    /// A score; `None` where there is nothing to compute it from.
    pub fn get(&self, metric: Metric) -> Option<f64> {
        self.values[metric as usize]
    }
}
