//! Isotonic calibration: a nondecreasing map of any shape.

use super::Calibrate;
use crate::distribution::normalize;
use crate::error::{CalibrationProblem, Result, within};

/// For each category a nondecreasing map of its belief, linear between points and constant outside.
///
/// The values are divided by their sum. If all of them are 0, the result is uniform.
///
/// ```
/// use prsl::calibrate::{Calibrate, Isotonic};
///
/// let maps = Isotonic::new(vec![vec![(0.0, 0.1), (1.0, 0.7)], vec![(0.0, 0.3), (1.0, 0.9)]])?;
/// let mut out = [0.0; 2];
/// maps.calibrate(&[0.5, 0.5], &mut out);
/// assert!((out[0] - 0.4).abs() < 1e-12);
/// # Ok::<(), prsl::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Isotonic {
    maps: Vec<Vec<(f64, f64)>>,
}

impl Isotonic {
    /// Creates the maps from their points (belief, value), one map for each category. Beliefs must increase, and
    /// values must not decrease.
    pub fn new(maps: Vec<Vec<(f64, f64)>>) -> Result<Self> {
        for (category, points) in maps.iter().enumerate() {
            check(category + 1, points)?;
        }
        Ok(Self { maps })
    }

    /// The points (belief, value) of each category's map.
    pub fn maps(&self) -> &[Vec<(f64, f64)>] {
        &self.maps
    }

    /// The number of categories that it is for.
    pub fn n_categories(&self) -> usize {
        self.maps.len()
    }
}

impl Calibrate for Isotonic {
    fn calibrate(&self, belief: &[f64], out: &mut [f64]) {
        for ((out, points), &value) in out.iter_mut().zip(&self.maps).zip(belief) {
            *out = interpolate(points, value);
        }
        normalize(out);
    }
}

fn check(category: usize, points: &[(f64, f64)]) -> Result<(), CalibrationProblem> {
    if points.is_empty() {
        return Err(CalibrationProblem::NoPoints { category });
    }
    for &(belief, value) in points {
        within("a belief", belief, 0.0..=1.0)?;
        within("a value", value, 0.0..=1.0)?;
    }
    match points.windows(2).position(|pair| pair[1].0 <= pair[0].0 || pair[1].1 < pair[0].1) {
        Some(index) => Err(CalibrationProblem::Falling { category, number: index + 2 }),
        None => Ok(()),
    }
}

fn interpolate(points: &[(f64, f64)], belief: f64) -> f64 {
    let above = points.partition_point(|point| point.0 < belief);
    let Some(&(right, high)) = points.get(above) else { return points[above - 1].1 };
    let Some(&(left, low)) = above.checked_sub(1).map(|below| &points[below]) else { return high };
    let value = low + (high - low) * ((belief - left) / (right - left));
    value.clamp(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn between_points_it_is_linear_and_outside_constant() {
        let points = [(0.2, 0.1), (0.4, 0.5)];
        for (belief, value) in [(0.0, 0.1), (0.2, 0.1), (0.3, 0.3), (0.4, 0.5), (1.0, 0.5)] {
            assert!((interpolate(&points, belief) - value).abs() < 1e-12);
        }
    }
}
