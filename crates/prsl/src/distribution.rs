//! Probability distributions over the categories of one label.

/// How far the sum of a belief or prior may be from 1.
pub const SUM_TOLERANCE: f64 = 1e-6;

/// Whether these are probabilities that sum to 1.
pub(crate) fn is_distribution(values: &[f64]) -> bool {
    let sum: f64 = values.iter().sum();
    values.iter().all(|&value| value >= 0.0) && (sum - 1.0).abs() <= SUM_TOLERANCE
}

/// Divides weights by their sum. Weights that are all 0 become uniform.
pub(crate) fn normalize(values: &mut [f64]) {
    let sum: f64 = values.iter().sum();
    if sum > 0.0 {
        values.iter_mut().for_each(|value| *value /= sum);
    } else {
        values.fill(1.0 / values.len() as f64);
    }
}

/// Turns log weights into a distribution.
pub(crate) fn softmax(values: &mut [f64]) {
    let largest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    values.iter_mut().for_each(|value| *value = (*value - largest).exp());
    normalize(values);
}
