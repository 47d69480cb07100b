//! What the objective needs from inference: ln Z, and for each rule the expectations that make up its gradient.
//!
//! # Derivation
//!
//! A rule k has the factor f(l) = p + (1 − 2p) Q(l) with Q(l) = ∏ⱼ qⱼ(lⱼ). Let Z[f → Q] be Z with this one factor replaced
//! by Q. Because ∂Q/∂qⱼ(m) = [lⱼ = m] Q / qⱼ(m),
//!
//! ```text
//! ∂ ln Z / ∂ qⱼ(m) = (1 − 2p) / qⱼ(m) · E        E = Z[f → Q, Lⱼ = m] / Z        (1)
//! ```
//!
//! This holds for every label. A label that is not connected with the rule has q = 1 and still has a derivative, so it can
//! become connected. The division is safe, because q is never below its positive lower bound.
//!
//! An [`Engine`] computes ln Z and the expectations E for all rules, labels and categories.

use super::lanes::Lane;
use crate::error::Result;

/// Inference for the current parameters.
pub(super) trait Engine: Sync + Send {
    /// Takes new parameters: the q of every rule for every category.
    fn set(&mut self, q: &[f64]) -> Result<()>;

    /// A worker for some rows.
    fn worker(&self) -> Box<dyn Worker + '_>;

    /// Length of the sums to which workers add.
    fn n_sums(&self) -> usize;

    /// The expectations E of (1) summed over rows, for each rule and category, from the sums of all workers.
    fn expectations(&self, sums: Vec<f64>) -> Vec<f64>;

    /// Approximate number of operations for the gradient of eight rows.
    fn work(&self) -> usize;
}

/// Inference on eight rows at a time.
pub(super) trait Worker {
    /// ln Z of each row for these beliefs about all categories; −∞ if a row is impossible.
    fn log_total(&mut self, beliefs: &[Lane]) -> Lane;

    /// After [`Worker::log_total`], adds the expectations of the same rows, each times its weight. Rows of weight 0 are
    /// ignored, even if they are impossible.
    fn add_expectations(&mut self, weights: &Lane, sums: &mut [f64]);
}
