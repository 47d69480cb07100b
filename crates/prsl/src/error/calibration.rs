//! Errors of calibrators and of the rows that they are fitted to.

use std::ops::RangeInclusive;

use super::Error;
use crate::notation::number;

/// Why a calibrator is not valid or cannot be fitted.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CalibrationProblem {
    /// Too few or too many numbers.
    #[error("the number of parameters is {given}, expected {wanted}")]
    Numbers {
        /// How many were given.
        given: usize,
        /// How many it takes.
        wanted: usize,
    },
    /// A matrix or list of maps of the wrong size.
    #[error("the number of {what} is {given}, expected {wanted}, one for each category")]
    Size {
        /// "rows", "columns" or "maps".
        what: &'static str,
        /// How many were given.
        given: usize,
        /// How many categories there are.
        wanted: usize,
    },
    /// A number out of its range.
    #[error("{what} is {value}, expected a number from {} to {}", number(*.low), number(*.high))]
    Range {
        /// Which number.
        what: &'static str,
        /// The number.
        value: f64,
        /// The smallest allowed.
        low: f64,
        /// The largest allowed.
        high: f64,
    },
    /// Platt scaling of a label with more than two categories.
    #[error("`platt` is for labels of two categories, and this one has {n}; use `dirichlet`")]
    TwoCategories {
        /// How many it has.
        n: usize,
    },
    /// A method that cannot be fitted beside rules.
    #[error(
        "`{method}` cannot be fitted beside rules; fit it alone, or use `platt`, `temperature` or `dirichlet`"
    )]
    AloneOnly {
        /// Its name.
        method: &'static str,
    },
    /// A map without points.
    #[error("map {category} has no points, expected at least one such as 0.5:0.3")]
    NoPoints {
        /// The category's number, from 1.
        category: usize,
    },
    /// A map that decreases.
    #[error(
        "in map {category}, point {number} lies left of or below the one before it; beliefs rise and their values do not fall"
    )]
    Falling {
        /// The category's number, from 1.
        category: usize,
        /// The point's number, from 1.
        number: usize,
    },
    /// A calibrator of a label without a classifier.
    #[error("the label is latent, so there are no beliefs to calibrate; remove `latent` or the calibrator")]
    Latent,
    /// Beliefs, truths and weights of different numbers of rows.
    #[error("the number of {what} is {given}, expected {wanted}")]
    Rows {
        /// "beliefs", "truths" or "weights".
        what: &'static str,
        /// How many were given.
        given: usize,
        /// How many it takes.
        wanted: usize,
    },
    /// A belief before or after calibration that is not a distribution.
    #[error("{what} of row {row} is no distribution over the categories")]
    NoDistribution {
        /// "belief" or "calibrated belief".
        what: &'static str,
        /// The row, from 1.
        row: usize,
    },
    /// A true category that the label does not have.
    #[error("the truth of row {row} is category {} of {n}", .category + 1)]
    Truth {
        /// The row, from 1.
        row: usize,
        /// Its category, from 0.
        category: usize,
        /// How many categories there are.
        n: usize,
    },
    /// A weight that is negative or not finite.
    #[error("the weight of row {row} is {value}, expected 0 or more")]
    Weight {
        /// The row, from 1.
        row: usize,
        /// The weight.
        value: f64,
    },
}

impl From<CalibrationProblem> for Error {
    fn from(problem: CalibrationProblem) -> Self {
        Error::Calibration(problem)
    }
}

/// Returns an error for a number out of range. NaN is never in range.
pub(crate) fn within(
    what: &'static str,
    value: f64,
    range: RangeInclusive<f64>,
) -> Result<(), CalibrationProblem> {
    if range.contains(&value) {
        return Ok(());
    }
    Err(CalibrationProblem::Range { what, value, low: *range.start(), high: *range.end() })
}
