//! The inverse of calibrators: the raw belief that becomes a given calibrated one.

use super::{Calibrate, Calibrator};
use crate::distribution::softmax;

/// Maximum number of halvings of an interval of beliefs. Fifty-three reach the last bit of a belief near 1.
const HALVINGS: usize = 80;

/// Maximum difference between a wanted belief and the calibrated raw belief that is returned for it.
const TOLERANCE: f64 = 1e-9;

/// Minimum change of a calibrated belief that counts as a jump. It is above the steps of the steepest continuous maps.
const JUMP: f64 = 1e-6;

/// The direction in which a calibrated belief leaves its threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Up,
    Down,
}

impl Calibrator {
    /// The smallest and the largest calibrated belief in the first of two categories; `None` if the calibrator is not
    /// monotone. Clipping and plateaus keep calibrated beliefs away from 0 and 1.
    pub(crate) fn range_of_two(&self) -> Option<[f64; 2]> {
        let [a, b] = [self.first_of_two(0.0), self.first_of_two(1.0)];
        self.is_monotone_for_two().then_some([a.min(b), a.max(b)])
    }

    /// The raw belief in the first of two categories beyond which the calibrated one is above or below `wanted`.
    ///
    /// A monotone map is inverted by bisection. On a plateau at `wanted`, this is the end where the map leaves it.
    /// Returns `None` if the map is not monotone, jumps over `wanted`, or never goes beyond it.
    pub(crate) fn raw_of_two(&self, wanted: f64, direction: Direction) -> Option<f64> {
        if *self == Calibrator::Identity {
            return Some(wanted);
        }
        if !self.is_monotone_for_two() {
            return None;
        }
        let is_beyond = |raw: f64| match direction {
            Direction::Up => self.first_of_two(raw) > wanted,
            Direction::Down => self.first_of_two(raw) < wanted,
        };
        let (mut short, mut beyond) = match [is_beyond(0.0), is_beyond(1.0)] {
            [false, true] => (0.0, 1.0),
            [true, false] => (1.0, 0.0),
            _ => return None,
        };
        for _ in 0..HALVINGS {
            let middle = 0.5 * (short + beyond);
            *(if is_beyond(middle) { &mut beyond } else { &mut short }) = middle;
        }
        ((self.first_of_two(beyond) - wanted).abs() < JUMP).then_some(short)
    }

    /// The raw belief that becomes `wanted`, for any number of categories.
    ///
    /// For a temperature T, b ∝ π^T unless a belief would be clipped. Other kinds may map many beliefs to one, or none.
    /// They return `None`.
    pub(crate) fn raw_of_many(&self, wanted: &[f64]) -> Option<Vec<f64>> {
        let Calibrator::Temperature { temperature } = self else {
            return (*self == Calibrator::Identity).then(|| wanted.to_vec());
        };
        let mut raw: Vec<f64> = wanted.iter().map(|value| temperature * value.ln()).collect();
        softmax(&mut raw);
        let mut found = vec![0.0; wanted.len()];
        self.calibrate(&raw, &mut found);
        let is_near = found.iter().zip(wanted).all(|(found, wanted)| (found - wanted).abs() <= TOLERANCE);
        is_near.then_some(raw)
    }

    fn first_of_two(&self, raw: f64) -> f64 {
        let mut out = [0.0; 2];
        self.calibrate(&[raw, 1.0 - raw], &mut out);
        out[0]
    }

    /// Whether the calibrated belief in the first of two categories is monotone in the raw one.
    ///
    /// The log-odds of a Dirichlet calibrator are u ln b + v ln(1 − b) + constant, where u and v are the differences of
    /// its two rows of weights. They rise if u ≥ 0 ≥ v and fall if u ≤ 0 ≤ v. All other kinds are monotone: a ratio of an
    /// isotonic map that rises and one that falls, a linear map, and linear maps of log-odds.
    fn is_monotone_for_two(&self) -> bool {
        let Calibrator::Dirichlet(dirichlet) = self else { return true };
        let rows: Vec<&[f64]> = dirichlet.weights().collect();
        let [u, v] = [rows[0][0] - rows[1][0], rows[0][1] - rows[1][1]];
        u * v <= 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Confusion, Dirichlet, Isotonic};
    use super::*;

    fn kinds() -> Vec<Calibrator> {
        let dirichlet = Dirichlet::new(&[vec![1.5, 0.0], vec![0.2, 0.7]], &[0.3, 0.0]).unwrap();
        let confusion = Confusion::new(vec![vec![8.0, 1.0], vec![2.0, 9.0]]).unwrap();
        let inverted = Confusion::new(vec![vec![2.0, 9.0], vec![8.0, 1.0]]).unwrap();
        let points = vec![(0.0, 0.1), (0.3, 0.4), (0.6, 0.4), (1.0, 0.95)];
        let opposite = points.iter().rev().map(|&(b, value)| (1.0 - b, 1.0 - value)).collect();
        vec![
            Calibrator::Identity,
            Calibrator::Temperature { temperature: 2.5 },
            Calibrator::Platt { slope: 1.7, intercept: -0.4 },
            Calibrator::Platt { slope: -0.6, intercept: 0.2 },
            Calibrator::Isotonic(Isotonic::new(vec![points, opposite]).unwrap()),
            Calibrator::Dirichlet(dirichlet),
            Calibrator::Confusion(confusion),
            Calibrator::Confusion(inverted),
        ]
    }

    #[test]
    fn the_calibrated_belief_crosses_the_threshold_at_the_raw_one() {
        for calibrator in kinds() {
            let [low, high] = calibrator.range_of_two().unwrap();
            for part in 1..20 {
                let wanted = low + (high - low) * f64::from(part) / 20.0;
                for direction in [Direction::Up, Direction::Down] {
                    let raw = calibrator.raw_of_two(wanted, direction).unwrap();
                    let near = [raw - 1e-6, raw + 1e-6].map(|raw| calibrator.first_of_two(raw) - wanted);
                    let beyond = near.map(|difference| match direction {
                        Direction::Up => difference > 0.0,
                        Direction::Down => difference < 0.0,
                    });
                    assert!(beyond[0] != beyond[1], "{calibrator:?} {wanted} {raw} {near:?}");
                }
            }
        }
    }

    #[test]
    fn beliefs_that_calibration_never_reaches_have_no_inverse() {
        let platt = Calibrator::Platt { slope: 1.0, intercept: 0.0 };
        assert_eq!(platt.raw_of_two(0.9995, Direction::Up), None); // raw beliefs are clipped to 0.999
        let bent = Dirichlet::new(&[vec![2.0, 2.0], vec![0.0, 0.0]], &[0.0, 0.0]).unwrap();
        assert_eq!(Calibrator::Dirichlet(bent).range_of_two(), None); // it rises, then falls
    }

    #[test]
    fn a_temperature_is_inverted_for_any_number_of_categories() {
        let calibrator = Calibrator::Temperature { temperature: 2.0 };
        let mut wanted = [0.0; 3];
        calibrator.calibrate(&[0.7, 0.2, 0.1], &mut wanted);
        let raw = calibrator.raw_of_many(&wanted).unwrap();
        assert!(raw.iter().zip([0.7, 0.2, 0.1]).all(|(a, b)| (a - b).abs() < 1e-12), "{raw:?}");
        assert_eq!(calibrator.raw_of_many(&[1.0, 0.0, 0.0]), None); // clipped
    }
}
