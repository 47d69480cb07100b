//! Isotonic calibration: whatever shape the data have, as long as it goes up.

use super::problem::{CalibrationProblem, within};
use super::{Calibrate, normalize};
use crate::error::Result;

/// For each category a nondecreasing map of its belief, linear between points and constant outside; the values are then
/// divided by their sum. If all of them are 0, the answer is uniform.
///
/// ```
/// use prsl::{Calibrate, Isotonic};
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
    /// Maps given by their points (belief, value), one map for each category: beliefs rise, values do not fall.
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

    /// How many categories it is for.
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

/// A sum of observations with nearly the same belief.
#[derive(Clone, Copy)]
struct Block {
    first: f64,
    last: f64,
    hits: f64,
    weight: f64,
}

impl Block {
    fn value(&self) -> f64 {
        self.hits / self.weight
    }

    fn join(&mut self, other: &Block) {
        self.last = other.last;
        self.hits += other.hits;
        self.weight += other.weight;
    }
}

/// The nondecreasing map nearest to the observations (belief, whether it came true, weight), as points.
///
/// Pool adjacent violators: neighbors whose means fall are joined until none do. `extra` made-up observations, a hit at the lowest
/// belief and a miss at the highest, keep every value away from 0 and 1.
pub(super) fn pool(mut observations: Vec<(f64, bool, f64)>, extra: f64) -> Vec<(f64, f64)> {
    observations.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (Some(&lowest), Some(&highest)) = (observations.first(), observations.last()) else {
        return vec![(0.0, 0.0), (1.0, 1.0)];
    };
    observations.insert(0, (lowest.0, true, extra));
    observations.push((highest.0, false, extra));
    let mut blocks: Vec<Block> = Vec::new();
    for block in ties(&observations) {
        blocks.push(block);
        while let [.., before, last] = &mut blocks[..]
            && before.value() >= last.value()
        {
            before.join(&last.clone());
            blocks.pop();
        }
    }
    blocks.iter().flat_map(points).collect()
}

/// Observations of equal belief together, in order.
fn ties(observations: &[(f64, bool, f64)]) -> Vec<Block> {
    let same = observations.chunk_by(|a, b| a.0 == b.0);
    let block = |tied: &[(f64, bool, f64)]| Block {
        first: tied[0].0,
        last: tied[0].0,
        hits: tied.iter().filter(|observation| observation.1).map(|observation| observation.2).sum(),
        weight: tied.iter().map(|observation| observation.2).sum(),
    };
    same.map(block).collect()
}

fn points(block: &Block) -> Vec<(f64, f64)> {
    let value = block.value().clamp(0.0, 1.0);
    if block.first == block.last {
        vec![(block.first, value)]
    } else {
        vec![(block.first, value), (block.last, value)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn falling_neighbors_are_pooled() {
        let seen = |belief, hit| (belief, hit, 1.0);
        let rows =
            vec![seen(0.1, false), seen(0.2, true), seen(0.3, false), seen(0.9, true), seen(0.9, true)];
        let points = pool(rows, 1e-9);
        let expected = [(0.1, 0.0), (0.2, 0.5), (0.3, 0.5), (0.9, 1.0)];
        assert_eq!(points.len(), expected.len());
        for (point, expected) in points.iter().zip(expected) {
            assert_eq!(point.0, expected.0);
            assert!((point.1 - expected.1).abs() < 1e-8);
        }
    }

    #[test]
    fn made_up_rows_keep_values_inside() {
        assert_eq!(pool(vec![(0.5, false, 8.0)], 1.0), [(0.5, 0.1)]);
        assert_eq!(pool(vec![(0.2, false, 1.0), (0.8, true, 3.0)], 1.0), [(0.2, 0.5), (0.8, 0.75)]);
        assert_eq!(pool(Vec::new(), 1.0), [(0.0, 0.0), (1.0, 1.0)]);
    }

    #[test]
    fn between_points_it_is_linear_and_outside_constant() {
        let points = [(0.2, 0.1), (0.4, 0.5)];
        for (belief, value) in [(0.0, 0.1), (0.2, 0.1), (0.3, 0.3), (0.4, 0.5), (1.0, 0.5)] {
            assert!((interpolate(&points, belief) - value).abs() < 1e-12);
        }
    }
}
