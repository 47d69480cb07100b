//! The statistics of the study: correlation, quantiles, bootstrap intervals.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The mean; `None` without values.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// A quantile with linear interpolation; `None` without values.
pub fn quantile(values: &[f64], share: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let position = share * sorted.len().checked_sub(1)? as f64;
    let (below, above) = (sorted[position.floor() as usize], sorted[position.ceil() as usize]);
    Some(below + (above - below) * position.fract())
}

/// Pearson's correlation of pairs; `None` if one side is constant.
pub fn correlation(pairs: &[(f64, f64)]) -> Option<f64> {
    let n = pairs.len() as f64;
    let sum = |of: &dyn Fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>();
    let (a, b) = (sum(&|pair| pair.0) / n, sum(&|pair| pair.1) / n);
    let product = sum(&|pair| (pair.0 - a) * (pair.1 - b));
    let squares = sum(&|pair| (pair.0 - a).powi(2)) * sum(&|pair| (pair.1 - b).powi(2));
    (squares > 0.0).then(|| product / squares.sqrt())
}

/// A mean with its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// The interval's lower end.
    pub low: f64,
    /// The interval's upper end.
    pub high: f64,
}

/// Number of bootstrap replicates.
const RESAMPLES: usize = 2000;

/// The mean with its bootstrap percentile interval, reproducible by the seed; `None` without values.
pub fn bootstrap(values: &[f64], seed: u64) -> Option<Estimate> {
    let center = mean(values)?;
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let n = values.len();
    let mut resample = || (0..n).map(|_| values[rng.random_range(0..n)]).sum::<f64>() / n as f64;
    let means: Vec<f64> = (0..RESAMPLES).map(|_| resample()).collect();
    let end = |share| quantile(&means, share).expect("there are resamples");
    Some(Estimate { mean: center, low: end(0.025), high: end(0.975) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_between_values() {
        let values = [4.0, 1.0, 3.0, 2.0];
        assert_eq!(quantile(&values, 0.0), Some(1.0));
        assert_eq!(quantile(&values, 0.25), Some(1.75));
        assert_eq!(quantile(&values, 0.5), Some(2.5));
        assert_eq!(quantile(&values, 1.0), Some(4.0));
        assert_eq!(quantile(&[], 0.5), None);
    }

    #[test]
    fn correlation_of_lines_and_constants() {
        let line: Vec<(f64, f64)> = (0..5).map(|x| (f64::from(x), 1.0 - 2.0 * f64::from(x))).collect();
        assert!((correlation(&line).unwrap() + 1.0).abs() < 1e-12);
        assert_eq!(correlation(&[(1.0, 0.0), (1.0, 2.0)]), None);
        assert_eq!(correlation(&[]), None);
        let some = [(1.0, 2.0), (2.0, 1.0), (3.0, 3.0)];
        assert!((correlation(&some).unwrap() - 0.5).abs() < 1e-12);
    }

    #[test]
    fn bootstrap_intervals_hold_the_mean_and_repeat() {
        let values: Vec<f64> = (0..10).map(f64::from).collect();
        let estimate = bootstrap(&values, 1).unwrap();
        assert_eq!(estimate.mean, 4.5);
        // The standard error is √(8.25 / 10) = 0.91; 1.96 of them on each side.
        assert!((2.4..3.1).contains(&estimate.low) && (5.9..6.6).contains(&estimate.high), "{estimate:?}");
        assert_eq!(bootstrap(&values, 1), bootstrap(&values, 1));
        assert_eq!(bootstrap(&[2.0], 1), Some(Estimate { mean: 2.0, low: 2.0, high: 2.0 }));
        assert_eq!(bootstrap(&[], 1), None);
    }
}
