//! Joint samples: settings, and functions that draw.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::assignment::Assignment;

/// Joint samples of one row.
pub type Samples = Vec<Assignment>;

/// Number of samples, and their seed.
///
/// A row's samples depend only on the seed and on the row's position in its table. If a table is read in parts,
/// `first_row` is the position of each part; the samples do not depend on the division. The first samples of a row do
/// not depend on the number of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampling {
    /// Number of samples for each row.
    pub n_samples: usize,
    /// Seed of the random numbers.
    pub seed: u64,
    /// The position of the first row in its table, from 0.
    pub first_row: u64,
}

impl Default for Sampling {
    /// One sample per row.
    fn default() -> Self {
        Self { n_samples: 1, seed: 1, first_row: 0 }
    }
}

impl Sampling {
    /// The random number generator of a row, counted from `first_row`. Each row has its own stream.
    pub(crate) fn generator(&self, row: usize) -> ChaCha8Rng {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(self.first_row.wrapping_add(row as u64));
        rng
    }
}

/// Draws an index in proportion to the weights. Returns `None` if no weight is positive.
pub(crate) fn draw(weights: &[f64], rng: &mut ChaCha8Rng) -> Option<usize> {
    let total: f64 = weights.iter().sum();
    let mut left = rng.random::<f64>() * total;
    let mut drawn = None;
    for (place, &weight) in weights.iter().enumerate() {
        // If rounding leaves a positive rest, the last index of positive weight is drawn.
        if weight > 0.0 {
            drawn = Some(place);
            left -= weight;
            if left < 0.0 {
                break;
            }
        }
    }
    drawn
}

/// Converts log weights into weights, scaled so that the largest is 1.
pub(crate) fn exponentiate(log_weights: &mut [f64]) {
    let largest = log_weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if largest > f64::NEG_INFINITY {
        log_weights.iter_mut().for_each(|weight| *weight = (*weight - largest).exp());
    } else {
        log_weights.fill(0.0);
    }
}

/// Draws a category of a label in proportion to the beliefs, among the categories of its state.
pub(crate) fn draw_category(
    beliefs: &[f64],
    of_category: &[usize],
    state: usize,
    rng: &mut ChaCha8Rng,
) -> usize {
    let belief = |(&belief, &of): (&f64, &usize)| if of == state { belief } else { 0.0 };
    let weights: Vec<f64> = beliefs.iter().zip(of_category).map(belief).collect();
    draw(&weights, rng).expect("a state is drawn for the belief in its categories")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_of_weight_0_are_never_drawn() {
        let mut rng = Sampling::default().generator(0);
        assert_eq!(draw(&[], &mut rng), None);
        assert_eq!(draw(&[0.0, 0.0], &mut rng), None);
        for _ in 0..1000 {
            assert_eq!(draw(&[0.0, 5e-324, 0.0], &mut rng), Some(1));
        }
        let mut log_weights = [f64::NEG_INFINITY, -1000.0, -1000.0];
        exponentiate(&mut log_weights);
        assert_eq!(log_weights, [0.0, 1.0, 1.0]);
        let ones = (0..10_000).filter(|_| draw(&log_weights, &mut rng) == Some(1)).count();
        assert!((4700..5300).contains(&ones), "{ones}"); // six standard deviations
    }
}
