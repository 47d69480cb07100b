//! The paper's regularizer: a Beta prior on the soft minimum of the q of each label in each rule, which likes labels that are out of
//! a rule, and those that are in it for sure.
//!
//! The soft minimum here is −ln(mean exp(−α q)) / α, which is 1 where all q are 1 and 0 where all are 0. With a sum in place of the
//! mean, as the paper has it, it is 1 − ln(M) / α for M categories, and may be below 0, where the prior has no value.

use statrs::function::beta::{beta, beta_reg};

use crate::error::{Error, Result};

/// The prior and its weight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Regularizer {
    /// How hard the minimum is.
    alpha: f64,
    /// The parameters of the Beta distribution, and its normalizing constant.
    beta: [f64; 2],
    eta: f64,
    /// Keeps logarithms finite.
    epsilon: f64,
    /// By what the weight is multiplied from step to step.
    lambda: f64,
}

impl Regularizer {
    /// With `[P(S < 0.1), P(S > 0.9)]` as given.
    pub(crate) fn new(alpha: f64, tails: [f64; 2], epsilon: f64, lambda: f64) -> Result<Self> {
        let is_positive = |x: f64| x > 0.0 && x.is_finite();
        for (setting, value, wanted, is_met) in [
            ("alpha", alpha, "a number above 0", is_positive(alpha)),
            ("epsilon", epsilon, "a number above 0", is_positive(epsilon)),
            ("lambda", lambda, "a number from 0 to 1", (0.0..=1.0).contains(&lambda)),
        ] {
            if !is_met {
                return Err(Error::Setting { setting, value, wanted });
            }
        }
        let [a, b] = beta_of_tails(tails)?;
        Ok(Self { alpha, beta: [a, b], eta: beta(a, b), epsilon, lambda })
    }

    /// ∂ / ∂ s of what is added to the objective.
    fn slope(&self, s: f64, step: usize) -> f64 {
        let [a, b] = self.beta;
        let slope = (a - 1.0) / (s + self.epsilon) - (b - 1.0) / (1.0 - s + self.epsilon);
        self.lambda.powf(step as f64) / self.eta * slope
    }

    /// The soft minimum of the q of one label in one rule.
    pub(crate) fn soft_minimum(&self, q: &[f64]) -> f64 {
        let least = q.iter().copied().fold(f64::INFINITY, f64::min);
        let mean = q.iter().map(|q| (self.alpha * (least - q)).exp()).sum::<f64>() / q.len() as f64;
        least - mean.ln() / self.alpha
    }

    /// Adds the gradient for the q of one label in one rule.
    pub(crate) fn add_gradient(&self, q: &[f64], step: usize, gradient: &mut [f64]) {
        let s = self.soft_minimum(q);
        let slope = self.slope(s, step) / q.len() as f64;
        for (slot, q) in gradient.iter_mut().zip(q) {
            *slot += slope * (self.alpha * (s - q)).exp();
        }
    }
}

/// The Beta distribution with P(S < 0.1) and P(S > 0.9) as given.
fn beta_of_tails([low, high]: [f64; 2]) -> Result<[f64; 2]> {
    for (setting, value) in [("gamma0", low), ("gamma1", high)] {
        if !(value > 0.0 && value < 1.0) {
            return Err(Error::Setting { setting, value, wanted: "a probability above 0 and below 1" });
        }
    }
    let below = |a: f64, b: f64| beta_reg(a, b, 0.1);
    let above = |a: f64, b: f64| beta_reg(b, a, 0.1);
    // For each a the b that has P(S < 0.1) right; the further both grow, the less is beyond 0.9.
    let partner = |a: f64| bisect(|b| below(a, b) - low);
    let a = bisect(|a| high - above(a, partner(a)));
    let b = partner(a);
    let is_found = (below(a, b) - low).abs() < 1e-9 && (above(a, b) - high).abs() < 1e-9;
    if is_found && a < 1.0 && b < 1.0 {
        return Ok([a, b]);
    }
    let wanted = "below 1 together with gamma1, and not much smaller than 0.1 where gamma1 is small: the tails of a \
                  Beta distribution whose density rises both toward 0 and toward 1";
    Err(Error::Setting { setting: "gamma0", value: low, wanted })
}

/// Where an increasing function of the exponents is 0.
fn bisect(f: impl Fn(f64) -> f64) -> f64 {
    let [mut low, mut high] = [1e-6_f64.ln(), 1e2_f64.ln()];
    for _ in 0..80 {
        let middle = 0.5 * (low + high);
        if f(middle.exp()) < 0.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    (0.5 * (low + high)).exp()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_authors_tails_are_their_distribution() {
        let [a, b] = beta_of_tails([beta_reg(0.6, 0.15, 0.1), beta_reg(0.15, 0.6, 0.1)]).unwrap();
        assert!((a - 0.6).abs() < 1e-6 && (b - 0.15).abs() < 1e-6, "{a}, {b}");
        // The last is that of a distribution that does not like 0: its exponent is above 1.
        for tails in [[0.0, 0.5], [0.6, 0.6], [0.01, 0.01], [f64::NAN, 0.5], [0.05, 0.3]] {
            assert!(beta_of_tails(tails).is_err(), "{tails:?}");
        }
    }

    #[test]
    fn the_soft_minimum_stays_between_0_and_1() {
        let regularizer = Regularizer::new(20.0, [0.057, 0.628], 1e-4, 0.98).unwrap();
        for n in 2..6 {
            assert!((regularizer.soft_minimum(&vec![1.0; n]) - 1.0).abs() < 1e-12);
            assert!(regularizer.soft_minimum(&vec![0.0; n]).abs() < 1e-12);
        }
        assert!(regularizer.soft_minimum(&[0.2, 1.0]) < 0.25);
    }

    proptest! {
        #[test]
        fn the_gradient_is_what_differences_say(
            q in prop::collection::vec(0.02..0.98, 2..5), step in 0_usize..50, low in 0.06..0.3, high in 0.3..0.6,
        ) {
            let regularizer = Regularizer::new(20.0, [low, high], 1e-4, 0.98).unwrap();
            let [a, b] = regularizer.beta;
            let value = |q: &[f64]| {
                let s = regularizer.soft_minimum(q);
                let log = (a - 1.0) * (s + 1e-4).ln() + (b - 1.0) * (1.0 - s + 1e-4).ln();
                0.98_f64.powf(step as f64) / regularizer.eta * log
            };
            let mut gradient = vec![0.0; q.len()];
            regularizer.add_gradient(&q, step, &mut gradient);
            for (at, slope) in gradient.iter().enumerate() {
                let shifted = |by: f64| {
                    let mut q = q.clone();
                    q[at] += by;
                    value(&q)
                };
                let h = 1e-4;
                let expected = (8.0 * (shifted(h) - shifted(-h)) - (shifted(2.0 * h) - shifted(-2.0 * h))) / (12.0 * h);
                prop_assert!((slope - expected).abs() <= 1e-6 * expected.abs() + 1e-8, "{slope} is not {expected}");
            }
        }
    }
}
