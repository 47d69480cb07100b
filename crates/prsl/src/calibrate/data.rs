//! Beliefs about one label with its true categories, to fit and to evaluate calibrators.

use super::CalibrationMethod;
use crate::belief::{BeliefMatrix, BeliefOrigin};
use crate::calibrator::{Calibrate, Calibrator};
use crate::distribution::is_distribution;
use crate::error::{CalibrationProblem, Result};
use crate::label::{CategoryId, LabelId};
use crate::truth::Truth;

/// The number of bins of [`CalibrationData::calibration_error`], which have equal width.
pub const CALIBRATION_ERROR_BINS: usize = 15;

/// Smaller probabilities of a true category count as this one in the log loss.
const IMPOSSIBLE: f64 = 1e-300;

/// One row whose truth is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row<'a> {
    pub(super) belief: &'a [f64],
    pub(super) truth: usize,
    pub(super) weight: f64,
}

/// Raw beliefs about one label with its true categories. Rows of unknown truth or of weight 0 are left out.
///
/// ```
/// use prsl::CategoryId;
/// use prsl::calibrate::{CalibrationData, CalibrationMethod, Calibrator};
///
/// let beliefs = [0.9, 0.1, 0.8, 0.2, 0.9, 0.1, 0.2, 0.8];
/// let truths = [Some(0), Some(1), Some(1), None].map(|truth| truth.map(CategoryId::new));
/// let data = CalibrationData::new(2, &beliefs, &truths, None)?;
/// assert_eq!(data.counts(), [1, 2]);
/// let platt = data.fit(CalibrationMethod::Platt)?;
/// assert!(data.log_loss(&platt) < data.log_loss(&Calibrator::Identity));
/// # Ok::<(), prsl::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct CalibrationData<'a> {
    pub(super) n_categories: usize,
    pub(super) rows: Vec<Row<'a>>,
}

impl<'a> CalibrationData<'a> {
    /// The beliefs of all rows one after the other, with a truth and optionally a weight for each row.
    pub fn new(
        n_categories: usize,
        beliefs: &'a [f64],
        truths: &[Option<CategoryId>],
        weights: Option<&[f64]>,
    ) -> Result<Self> {
        check_rows("beliefs", beliefs.len(), truths.len() * n_categories)?;
        check_rows("weights", weights.map_or(truths.len(), <[f64]>::len), truths.len())?;
        let mut rows = Vec::new();
        for (index, truth) in truths.iter().enumerate() {
            let belief = &beliefs[index * n_categories..(index + 1) * n_categories];
            let Some(truth) = truth.map(CategoryId::index) else { continue };
            let row = Row { belief, truth, weight: weights.map_or(1.0, |weights| weights[index]) };
            check_row(index + 1, &row)?;
            rows.push(row);
        }
        rows.retain(|row| row.weight > 0.0);
        Ok(Self { n_categories, rows })
    }

    /// The beliefs of classifiers about one label, with the true categories and optionally a weight for each row.
    ///
    /// Priors and observed categories are left out.
    ///
    /// The matrix should hold raw beliefs, that is, be one of [`Model::without_calibrators`](crate::Model::without_calibrators).
    pub fn of_label(
        rows: &'a BeliefMatrix,
        label: LabelId,
        truths: &[Truth],
        weights: Option<&[f64]>,
    ) -> Result<Self> {
        check_rows("truths", truths.len(), rows.n_rows())?;
        check_rows("weights", weights.map_or(truths.len(), <[f64]>::len), truths.len())?;
        let believed = |row: &usize| rows.origin(*row, label) == BeliefOrigin::Classifier;
        let known = (0..rows.n_rows()).filter(believed).filter_map(|row| {
            let truth = truths[row].category(label)?.index();
            let weight = weights.map_or(1.0, |weights| weights[row]);
            Some((row, Row { belief: rows.belief(row, label), truth, weight }))
        });
        let known: Vec<(usize, Row<'a>)> = known.collect();
        known.iter().try_for_each(|(row, known)| check_row(row + 1, known))?;
        let rows_known = known.into_iter().map(|(_, known)| known).filter(|row| row.weight > 0.0).collect();
        Ok(Self { n_categories: rows.model().label(label).n_categories(), rows: rows_known })
    }

    /// Fits a calibrator: [`Calibrator::fit`].
    pub fn fit(&self, method: CalibrationMethod) -> Result<Calibrator> {
        Calibrator::fit(method, self)
    }

    /// The number of rows that are not left out.
    pub fn n_rows(&self) -> usize {
        self.rows.len()
    }

    /// The number of rows in which each category is true.
    pub fn counts(&self) -> Vec<usize> {
        let mut counts = vec![0; self.n_categories];
        self.rows.iter().for_each(|row| counts[row.truth] += 1);
        counts
    }

    /// The weighted mean log loss, 0 without rows. The probability of a true category counts as 1e-300 at least.
    pub fn log_loss(&self, calibrator: &dyn Calibrate) -> f64 {
        let mut out = vec![0.0; self.n_categories];
        let mut loss = 0.0;
        for row in &self.rows {
            calibrator.calibrate(row.belief, &mut out);
            loss -= row.weight * out[row.truth].max(IMPOSSIBLE).ln();
        }
        loss / self.weight().max(f64::MIN_POSITIVE)
    }

    /// The expected calibration error: the weighted mean of |mean belief − frequency| over bins, averaged over categories.
    ///
    /// For labels of two categories it is that of the first category.
    pub fn calibration_error(&self, calibrator: &dyn Calibrate) -> f64 {
        let n_counted = if self.n_categories == 2 { 1 } else { self.n_categories };
        let mut gaps = vec![[0.0; CALIBRATION_ERROR_BINS]; n_counted];
        let mut out = vec![0.0; self.n_categories];
        for row in &self.rows {
            calibrator.calibrate(row.belief, &mut out);
            for (category, gaps) in gaps.iter_mut().enumerate() {
                let hit = f64::from(u8::from(row.truth == category));
                gaps[bin(out[category])] += row.weight * (out[category] - hit);
            }
        }
        let sum: f64 = gaps.iter().flatten().map(|gap| gap.abs()).sum();
        sum / (n_counted as f64 * self.weight().max(f64::MIN_POSITIVE))
    }

    fn weight(&self) -> f64 {
        self.rows.iter().map(|row| row.weight).sum()
    }
}

fn bin(probability: f64) -> usize {
    ((probability * CALIBRATION_ERROR_BINS as f64) as usize).min(CALIBRATION_ERROR_BINS - 1)
}

fn check_rows(what: &'static str, given: usize, wanted: usize) -> Result<(), CalibrationProblem> {
    if given == wanted { Ok(()) } else { Err(CalibrationProblem::Rows { what, given, wanted }) }
}

fn check_row(number: usize, row: &Row<'_>) -> Result<(), CalibrationProblem> {
    if !is_distribution(row.belief) {
        return Err(CalibrationProblem::NoDistribution { what: "belief", row: number });
    }
    if row.truth >= row.belief.len() {
        let n = row.belief.len();
        return Err(CalibrationProblem::Truth { row: number, category: row.truth, n });
    }
    if !(row.weight >= 0.0 && row.weight.is_finite()) {
        return Err(CalibrationProblem::Weight { row: number, value: row.weight });
    }
    Ok(())
}
