//! How a rule comes out under one assignment: silent, or fired.

use super::semiring::Semiring;
use crate::log_space::log_add_exp;

/// Products below this are near the end of what a number can hold: digits of them may be lost.
pub(crate) const SMALLEST: f64 = 1e-290;

/// The probabilities that a rule stays silent and that it fires under one assignment.
///
/// A noisy-or of many labels may be silent with a probability too small for a number, which decides everything where the
/// rule weighs by 0 when it has fired. A silence below [`SMALLEST`] is kept as its logarithm, which is negative.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Outcome {
    /// A probability, or the logarithm of one.
    silent: f64,
    fired: f64,
}

impl Outcome {
    /// The first minus the second of "fired" and "silent": the weights of a rule that is taken apart with signs.
    pub(crate) const DIFFERENCE: Self = Self { silent: 1.0, fired: -1.0 };

    /// An outcome, where `log_silence` is asked for the logarithm of a silence that may have underflowed.
    pub(crate) fn new([silent, fired]: [f64; 2], log_silence: impl FnOnce() -> f64) -> Self {
        if silent >= SMALLEST {
            return Self { silent, fired };
        }
        let log_silent = log_silence();
        Self { silent: if log_silent == f64::NEG_INFINITY { 0.0 } else { log_silent }, fired }
    }

    /// The outcome of a rule that has fired for sure, or not.
    pub(crate) fn of(fired: bool) -> Self {
        if fired { Self { silent: 0.0, fired: 1.0 } } else { Self { silent: 1.0, fired: 0.0 } }
    }

    /// Silent and fired as elements of a semiring. Linear ones may underflow: see [`Self::is_exact`].
    pub(crate) fn elements<S: Semiring>(self) -> [f64; 2] {
        let silent = match self.silent {
            log if log < 0.0 && S::SCALED => log.exp(),
            log if log < 0.0 => log,
            silent => S::element(silent),
        };
        [silent, S::element(self.fired)]
    }

    /// w(silent) Q + w(fired) (1 − Q) as an element of a semiring: a sum also where the semiring takes maxima, because it is
    /// the weight of one assignment.
    pub(crate) fn weigh<S: Semiring>(self, [silent, fired]: [f64; 2]) -> f64 {
        if !S::SCALED {
            return self.log_weight([silent, fired]);
        }
        let [q_silent, q_fired] = self.elements::<S>();
        silent * q_silent + fired * q_fired
    }

    /// ln (w(silent) Q + w(fired) (1 − Q)).
    pub(crate) fn log_weight(self, weights: [f64; 2]) -> f64 {
        if self.is_exact(weights) {
            return (weights[0] * self.silent + weights[1] * self.fired).ln();
        }
        let log_silent = if self.silent < 0.0 { self.silent } else { self.silent.ln() };
        log_add_exp(weights[0].ln() + log_silent, weights[1].ln() + self.fired.ln())
    }

    /// Whether plain numbers hold all digits of [`Self::weigh`] with these weights.
    pub(crate) fn is_exact(self, weights: [f64; 2]) -> bool {
        let is_safe = |weight: f64, q: f64| weight == 0.0 || q == 0.0 || (weight * q).abs() >= SMALLEST;
        if self.silent < 0.0 && weights[0] > 0.0 {
            return false;
        }
        (self.silent < 0.0 || is_safe(weights[0], self.silent)) && is_safe(weights[1], self.fired)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::infer::semiring::{LogSumProduct, SumProduct};

    #[test]
    fn a_silence_below_every_number_keeps_its_logarithm() {
        let outcome = Outcome::new([0.0, 1.0], || -921.0);
        assert_eq!(outcome.log_weight([1.0, 0.0]), -921.0);
        assert_eq!(outcome.weigh::<LogSumProduct>([1.0, 0.0]), -921.0);
        assert_eq!(outcome.weigh::<SumProduct>([1.0, 0.0]), 0.0);
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
