//! Dirichlet calibration: a linear map of log beliefs.

use super::{Calibrate, check_parameter, check_size, smooth};
use crate::distribution::softmax;
use crate::error::Result;

/// ln π(m) = Σₖ weights\[m\]\[k\] ln b(k) + bias\[m\] up to normalization.
///
/// This calibrates a classifier whose beliefs have a Dirichlet distribution given each true category (Kull et al.,
/// "Beyond temperature scaling", NeurIPS 2019). The identity matrix and a bias of 0 leave clipped beliefs unchanged.
///
/// ```
/// use prsl::calibrate::{Calibrate, Dirichlet};
///
/// let doubled = Dirichlet::new(&[vec![1.0, 0.0], vec![0.0, 1.0]], &[2f64.ln(), 0.0])?;
/// let mut out = [0.0; 2];
/// doubled.calibrate(&[0.5, 0.5], &mut out);
/// assert!((out[0] - 2.0 / 3.0).abs() < 1e-12);
/// # Ok::<(), prsl::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Dirichlet {
    n_categories: usize,
    /// The weights row by row, then the bias.
    parameters: Vec<f64>,
}

impl Dirichlet {
    /// Weights row by row, one row and one bias for each category.
    pub fn new(weights: &[Vec<f64>], bias: &[f64]) -> Result<Self> {
        for row in weights {
            check_size("columns", row.len(), weights.len())?;
        }
        check_size("biases", bias.len(), weights.len())?;
        Self::from_parameters(weights.iter().flatten().chain(bias).copied().collect())
    }

    /// The weights row by row, then the bias: n (n + 1) numbers for n categories.
    pub(crate) fn from_parameters(parameters: Vec<f64>) -> Result<Self> {
        let n_categories = (parameters.len() as f64).sqrt() as usize;
        check_size("numbers", parameters.len(), n_categories * (n_categories + 1))?;
        check_size("rows", n_categories, n_categories.max(2))?;
        parameters.iter().try_for_each(|&value| check_parameter("a weight or bias", value))?;
        Ok(Self { n_categories, parameters })
    }

    /// The parameters of the identity.
    pub(crate) fn identity(n_categories: usize) -> Vec<f64> {
        let mut parameters = vec![0.0; n_categories * (n_categories + 1)];
        (0..n_categories).for_each(|m| parameters[m * n_categories + m] = 1.0);
        parameters
    }

    /// The number of categories that it is for.
    pub fn n_categories(&self) -> usize {
        self.n_categories
    }

    /// The weights, row by row.
    pub fn weights(&self) -> impl Iterator<Item = &[f64]> {
        self.parameters[..self.n_categories * self.n_categories].chunks(self.n_categories)
    }

    /// The bias of each category.
    pub fn bias(&self) -> &[f64] {
        &self.parameters[self.n_categories * self.n_categories..]
    }

    /// The weights row by row, then the bias.
    pub fn parameters(&self) -> &[f64] {
        &self.parameters
    }

    /// Adds the derivatives in the parameters, given those in the log weights.
    pub(super) fn chain(&self, belief: &[f64], d_input: impl Fn(usize) -> f64, d_parameters: &mut [f64]) {
        let n = self.n_categories;
        for m in 0..n {
            let d = d_input(m);
            for k in 0..n {
                d_parameters[m * n + k] += d * smooth(belief[k]).ln();
            }
            d_parameters[n * n + m] += d;
        }
    }
}

impl Calibrate for Dirichlet {
    fn calibrate(&self, belief: &[f64], out: &mut [f64]) {
        out.copy_from_slice(self.bias());
        for (out, weights) in out.iter_mut().zip(self.weights()) {
            *out +=
                weights.iter().zip(belief).map(|(weight, &value)| weight * smooth(value).ln()).sum::<f64>();
        }
        softmax(out);
    }
}
