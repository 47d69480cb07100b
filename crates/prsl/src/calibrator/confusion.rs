//! The confusion matrix as a calibrator.

use super::{Calibrate, check_size};
use crate::distribution::normalize;
use crate::error::{CalibrationProblem, Result, within};

/// Maximum accepted count.
const MAX_COUNT: f64 = 1e12;

/// A confusion matrix. Rows are true categories, and columns are the classifier's categories.
///
/// In the paper's network the classifier's node C is the parent of the label's node L, so π(m) = Σ_c P(L = m | C = c)
/// b(c). Column c of the matrix is P(L | C = c). Columns are divided by their sums, so counts are accepted too. A
/// column without counts is uniform.
///
/// ```
/// use prsl::calibrate::{Calibrate, Confusion};
///
/// // The classifier reported the first category 10 times, of which 8 were right. It never reported the third.
/// let counts = Confusion::new(vec![vec![8.0, 1.0, 0.0], vec![2.0, 3.0, 0.0], vec![0.0, 0.0, 0.0]])?;
/// let mut out = [0.0; 3];
/// counts.calibrate(&[1.0, 0.0, 0.0], &mut out);
/// assert_eq!(out, [0.8, 0.2, 0.0]);
/// # Ok::<(), prsl::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Confusion {
    matrix: Vec<Vec<f64>>,
    /// P(L | C = c) for each c.
    columns: Vec<Vec<f64>>,
}

impl Confusion {
    /// A square matrix of counts or probabilities, row by row.
    pub fn new(matrix: Vec<Vec<f64>>) -> Result<Self> {
        let n = matrix.len();
        for row in &matrix {
            check_size("columns", row.len(), n)?;
            row.iter().try_for_each(|&count| within("a count", count, 0.0..=MAX_COUNT))?;
        }
        if n < 2 {
            return Err(CalibrationProblem::Size { what: "rows", given: n, wanted: 2 }.into());
        }
        let column = |c: usize| {
            let mut column: Vec<f64> = matrix.iter().map(|row| row[c]).collect();
            normalize(&mut column);
            column
        };
        let columns = (0..n).map(column).collect();
        Ok(Self { matrix, columns })
    }

    /// The matrix as given.
    pub fn matrix(&self) -> &[Vec<f64>] {
        &self.matrix
    }

    /// The number of categories that it is for.
    pub fn n_categories(&self) -> usize {
        self.matrix.len()
    }

    /// P(L = truth | C = reported).
    pub(crate) fn probability(&self, truth: usize, reported: usize) -> f64 {
        self.columns[reported][truth]
    }
}

impl Calibrate for Confusion {
    fn calibrate(&self, belief: &[f64], out: &mut [f64]) {
        out.fill(0.0);
        for (column, &value) in self.columns.iter().zip(belief) {
            for (out, probability) in out.iter_mut().zip(column) {
                *out += probability * value;
            }
        }
        normalize(out);
    }
}
