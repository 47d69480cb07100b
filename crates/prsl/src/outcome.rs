//! The outcome of a rule under one assignment: silent or fired.

use crate::log_space::log_add_exp;

/// Products below this may have lost digits: they are close to the smallest normal number, 2e-308.
pub(crate) const SMALLEST: f64 = 1e-290;

/// The probabilities that a rule is silent and that it has fired, under one assignment.
///
/// The silence of a noisy-or of many labels may underflow. It still decides the result if the rule's weight for
/// "fired" is 0. So a silence below [`SMALLEST`] is stored as its logarithm, which is negative.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Outcome {
    /// A probability, or its (negative) logarithm.
    silent: f64,
    fired: f64,
}

impl Outcome {
    /// "silent" minus "fired": the weights of the decomposition with signs.
    pub(crate) const DIFFERENCE: Self = Self { silent: 1.0, fired: -1.0 };

    /// Creates an outcome. `log_silence` computes the logarithm of a silence that may have underflowed.
    pub(crate) fn new([silent, fired]: [f64; 2], log_silence: impl FnOnce() -> f64) -> Self {
        if silent >= SMALLEST {
            return Self { silent, fired };
        }
        let log_silent = log_silence();
        Self { silent: if log_silent == f64::NEG_INFINITY { 0.0 } else { log_silent }, fired }
    }

    /// The outcome of a rule that has certainly fired, or certainly not.
    pub(crate) fn of(fired: bool) -> Self {
        if fired { Self { silent: 0.0, fired: 1.0 } } else { Self { silent: 1.0, fired: 0.0 } }
    }

    /// The bits of both numbers, as a key.
    pub(crate) fn bits(self) -> [u64; 2] {
        [self.silent.to_bits(), self.fired.to_bits()]
    }

    /// Silent and fired as probabilities. A small silence may underflow, see [`Self::is_exact`].
    pub(crate) fn probabilities(self) -> [f64; 2] {
        [if self.silent < 0.0 { self.silent.exp() } else { self.silent }, self.fired]
    }

    /// The logarithms of silent and fired, without underflow.
    pub(crate) fn logarithms(self) -> [f64; 2] {
        [if self.silent < 0.0 { self.silent } else { self.silent.ln() }, self.fired.ln()]
    }

    /// ln (w(silent) Q + w(fired) (1 − Q)).
    pub(crate) fn log_weight(self, weights: [f64; 2]) -> f64 {
        if self.is_exact(weights) {
            return (weights[0] * self.silent + weights[1] * self.fired).ln();
        }
        let [log_silent, log_fired] = self.logarithms();
        log_add_exp(weights[0].ln() + log_silent, weights[1].ln() + log_fired)
    }

    /// Whether the weight in plain numbers loses no digits to underflow with these weights.
    pub(crate) fn is_exact(self, weights: [f64; 2]) -> bool {
        let is_safe = |weight: f64, q: f64| weight == 0.0 || q == 0.0 || (weight * q).abs() >= SMALLEST;
        if self.silent < 0.0 && weights[0] > 0.0 {
            return false;
        }
        (self.silent < 0.0 || is_safe(weights[0], self.silent)) && is_safe(weights[1], self.fired)
    }
}

/// ∏ q of a rank-one rule, stored as a sum of logarithms. Factors of 0 are counted separately and factors of 1
/// skipped, so that rounding errors never affect certain outcomes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    n_zero: usize,
    n_between: usize,
    log_q: f64,
}

impl Tally {
    pub(crate) fn add(&mut self, q: f64) {
        self.n_zero += usize::from(q == 0.0);
        if q > 0.0 && q < 1.0 {
            self.n_between += 1;
            self.log_q += q.ln();
        }
    }

    pub(crate) fn remove(&mut self, q: f64) {
        self.n_zero -= usize::from(q == 0.0);
        if q > 0.0 && q < 1.0 {
            self.n_between -= 1;
            self.log_q = if self.n_between == 0 { 0.0 } else { (self.log_q - q.ln()).min(0.0) };
        }
    }

    /// The probabilities that the rule is silent and that it has fired.
    pub(crate) fn outcome(&self) -> [f64; 2] {
        if self.n_zero > 0 { [0.0, 1.0] } else { [self.log_q.exp(), -self.log_q.exp_m1()] }
    }

    /// ln of the probability that the rule is silent.
    pub(crate) fn log_silence(&self) -> f64 {
        if self.n_zero > 0 { f64::NEG_INFINITY } else { self.log_q }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silence_below_every_number_keeps_its_logarithm() {
        let outcome = Outcome::new([0.0, 1.0], || -921.0);
        assert_eq!(outcome.log_weight([1.0, 0.0]), -921.0);
        assert_eq!(outcome.probabilities(), [0.0, 1.0]);
        assert!(!outcome.is_exact([1.0, 0.0]) && !outcome.is_exact([1.0, 1.0]));
        assert!(outcome.is_exact([0.0, 1.0]));
        assert_eq!(Outcome::new([0.0, 1.0], || f64::NEG_INFINITY), Outcome::of(true));
    }

    #[test]
    fn products_of_small_weights_and_small_outcomes_keep_their_digits() {
        let outcome = Outcome::new([1e-200, 1.0], || 1e-200f64.ln());
        let expected = 1e-200f64.ln() + 1e-150f64.ln();
        assert!((outcome.log_weight([1e-150, 0.0]) - expected).abs() < 1e-12);
        assert_eq!(Outcome::of(true).log_weight([0.5, 0.25]), 0.25f64.ln());
        assert_eq!(Outcome::of(false).log_weight([0.0, 1.0]), f64::NEG_INFINITY);
    }
}
