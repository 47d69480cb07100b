//! The gain of one candidate rule, estimated with all other parameters fixed.

use super::objective::{PRECISION, RATE};

/// How often a conjunction occurs: in the data, and in samples from the model.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Counts {
    /// D: how often the data has it.
    pub(crate) data: f64,
    /// E: how often the model expects it.
    pub(crate) expected: f64,
    /// V: its variance within rows under the model.
    pub(crate) variance: f64,
}

/// Largest weight that is considered. The prior makes larger ones worthless.
const MAX_WEIGHT: f64 = 20.0;
/// Number of bisections. The weight is then accurate to 20 / 2³⁰.
const BISECTIONS: usize = 30;

impl Counts {
    /// The largest gain in penalized log-likelihood of a rule with these violations:
    ///
    /// ```text
    /// max over w >= 0 of −w D − n ln(1 − p + p e⁻ʷ) − prior(w)        p = 1 − V/E,  n = E/p
    /// ```
    pub(crate) fn gain(&self) -> f64 {
        self.best().1
    }

    /// The weight of the largest gain, and the gain.
    pub(crate) fn best(&self) -> (f64, f64) {
        if self.expected - self.data <= RATE {
            return (0.0, 0.0);
        }
        let p = self.share();
        let n = self.expected / p;
        let slope = |w: f64| {
            let e = (-w).exp();
            -self.data + n * p * e / (1.0 - p + p * e) - RATE - PRECISION * w
        };
        let (mut low, mut high) = (0.0, MAX_WEIGHT);
        for _ in 0..BISECTIONS {
            let middle = (low + high) / 2.0;
            if slope(middle) > 0.0 { low = middle } else { high = middle }
        }
        let w = (low + high) / 2.0;
        let gain = -w * self.data - n * (p * (-w).exp_m1()).ln_1p() - RATE * w - PRECISION / 2.0 * w * w;
        (w, gain)
    }

    /// The ratio of the variances within rows at a weight and at 0: e⁻ʷ / (1 − p + p e⁻ʷ)².
    pub(crate) fn variance_ratio(&self, weight: f64) -> f64 {
        let (p, e) = (self.share(), (-weight).exp());
        e / (1.0 - p + p * e).powi(2)
    }

    /// The largest gain in log-likelihood, without the penalty: D ln(D/E) + (n − D) ln((n − D)/(n − E)).
    pub(crate) fn gain_without_penalty(&self) -> f64 {
        if self.data >= self.expected {
            return 0.0;
        }
        let n = self.expected / self.share();
        let term = |k: f64, expected: f64| if k > 0.0 { k * (k / expected).ln() } else { 0.0 };
        term(self.data, self.expected) + term(n - self.data, n - self.expected)
    }

    /// The smallest expected number of violations with which a rare violation that the data never have gains this much.
    pub(crate) fn least_expected(gain: f64) -> f64 {
        let (mut low, mut high) = (0.0, 1e6);
        for _ in 0..BISECTIONS {
            let middle = f64::midpoint(low, high);
            let counts = Self { data: 0.0, expected: middle, variance: middle };
            if counts.gain() > gain { high = middle } else { low = middle }
        }
        high
    }

    /// p: the probability of the conjunction where it is possible.
    fn share(&self) -> f64 {
        (1.0 - self.variance / self.expected).clamp(1e-9, 1.0 - 1e-9)
    }

    /// An upper bound of the gain that needs no search: the function is below w (E − D − 1) − w²/18.
    pub(crate) fn bound(&self) -> f64 {
        let excess = self.expected - self.data - RATE;
        if excess <= 0.0 { 0.0 } else { excess * excess / (2.0 * PRECISION) }
    }
}
