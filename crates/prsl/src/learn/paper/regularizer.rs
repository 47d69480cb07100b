//! The two regularizers of the paper: a Beta prior on soft minima, and truncation to J₀ labels per rule.
//!
//! The soft minimum of the q of one label in one rule is
//!
//! ```text
//! s = −ln(mean exp(−α q)) / α          here
//! s = −ln(sum exp(−α q)) / α           in the paper
//! ```
//!
//! With the mean, s is 1 if all q are 1, and 0 if all q are 0. With the sum, s is 1 − ln(M) / α if all M values are 1, and
//! it can be negative, where the Beta density is undefined. The literal version therefore clips it to [1e-6, 1 − 1e-6].

use statrs::function::beta::{beta, beta_reg};

use super::space::Space;
use crate::error::{Error, Result};

/// Distance of the literal soft minimum from 0 and 1. Beyond, the penalty is constant and has no gradient.
const MARGIN: f64 = 1e-6;

/// The settings of both regularizers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    /// Hardness of the soft minimum, α.
    pub(super) alpha: f64,
    /// P(S < 0.1) and P(S > 0.9) under the prior, γ₀ and γ₁.
    pub(super) tails: [f64; 2],
    /// Keeps the gradient of the penalty finite, ε.
    pub(super) epsilon: f64,
    /// Factor of the penalty from step to step, λ.
    pub(super) lambda: f64,
    /// Maximum number of labels per rule, J₀.
    pub(super) labels_per_rule: usize,
    /// Whether the soft minimum is that of the paper.
    pub(super) is_literal: bool,
}

/// The prior and the truncation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Regularizer {
    settings: Settings,
    /// The parameters of the Beta distribution.
    beta: [f64; 2],
    /// Its normalizing constant, η.
    eta: f64,
}

impl Regularizer {
    /// Checks the settings, and solves for the Beta distribution.
    pub(super) fn new(settings: Settings) -> Result<Self> {
        let Settings { alpha, tails, epsilon, lambda, labels_per_rule, .. } = settings;
        let is_positive = |x: f64| x > 0.0 && x.is_finite();
        for (setting, value, wanted, is_met) in [
            ("alpha", alpha, "a number above 0", is_positive(alpha)),
            ("epsilon", epsilon, "a number above 0", is_positive(epsilon)),
            ("lambda", lambda, "a number from 0 to 1", (0.0..=1.0).contains(&lambda)),
            ("j0", labels_per_rule as f64, "1 label or more", labels_per_rule > 0),
        ] {
            if !is_met {
                return Err(Error::Setting { setting, value, wanted });
            }
        }
        let [a, b] = beta_of_tails(tails)?;
        Ok(Self { settings, beta: [a, b], eta: beta(a, b) })
    }

    /// The soft minimum of the q of one label in one rule, not clipped.
    fn soft_minimum(&self, q: &[f64]) -> f64 {
        let alpha = self.settings.alpha;
        let least = q.iter().copied().fold(f64::INFINITY, f64::min);
        let sum: f64 = q.iter().map(|q| (alpha * (least - q)).exp()).sum();
        least - (sum / self.n_averaged(q)).ln() / alpha
    }

    /// Number of values that the sum in the soft minimum is divided by.
    fn n_averaged(&self, q: &[f64]) -> f64 {
        if self.settings.is_literal { 1.0 } else { q.len() as f64 }
    }

    /// Adds the gradient of the penalty R at one step (the paper's section on regularization):
    ///
    /// ```text
    /// ∂R/∂s = λᵗ/η ((β₁ − 1) / (s + ε) − (β₂ − 1) / (1 − s + ε))        ∂s/∂q(m) = exp(α (s − q(m)))
    /// ```
    ///
    /// with ∂s/∂q divided by M for the mean. Checked in `the_penalty_gradient_agrees_with_differences`.
    pub(super) fn add_gradient(&self, space: &Space, q: &[f64], step: usize, gradient: &mut [f64]) {
        let weight = self.settings.lambda.powf(step as f64) / self.eta;
        let n = space.n_categories();
        for (q, gradient) in q.chunks_exact(n).zip(gradient.chunks_exact_mut(n)) {
            for block in &space.blocks {
                self.add_label_gradient(&q[block.clone()], weight, &mut gradient[block.clone()]);
            }
        }
    }

    fn add_label_gradient(&self, q: &[f64], weight: f64, gradient: &mut [f64]) {
        let s = self.soft_minimum(q);
        if self.settings.is_literal && !(MARGIN..=1.0 - MARGIN).contains(&s) {
            return;
        }
        let ([a, b], epsilon) = (self.beta, self.settings.epsilon);
        let slope = weight * ((a - 1.0) / (s + epsilon) - (b - 1.0) / (1.0 - s + epsilon));
        let slope = slope / self.n_averaged(q);
        for (slot, q) in gradient.iter_mut().zip(q) {
            *slot += slope * (self.settings.alpha * (s - q)).exp();
        }
    }

    /// Sets all q of a rule to 1 except those of the J₀ labels with the smallest soft minima.
    pub(super) fn truncate(&self, space: &Space, q: &mut [f64]) {
        for q in q.chunks_exact_mut(space.n_categories()) {
            let minimum = |label: usize| self.soft_minimum(&q[space.blocks[label].clone()]);
            let minima: Vec<f64> = (0..space.n_labels()).map(minimum).collect();
            let mut labels: Vec<usize> = (0..space.n_labels()).collect();
            labels.sort_by(|&a, &b| minima[a].total_cmp(&minima[b]).then(a.cmp(&b)));
            for label in labels.into_iter().skip(self.settings.labels_per_rule) {
                q[space.blocks[label].clone()].fill(1.0);
            }
        }
    }
}

/// The Beta distribution with the given P(S < 0.1) and P(S > 0.9).
fn beta_of_tails([low, high]: [f64; 2]) -> Result<[f64; 2]> {
    for (setting, value) in [("gamma0", low), ("gamma1", high)] {
        if !(value > 0.0 && value < 1.0) {
            return Err(Error::Setting { setting, value, wanted: "a probability above 0 and below 1" });
        }
    }
    let below = |a: f64, b: f64| beta_reg(a, b, 0.1);
    let above = |a: f64, b: f64| beta_reg(b, a, 0.1);
    // `partner(a)` is the b with the given P(S < 0.1). As both grow, P(S > 0.9) falls.
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

/// The root of an increasing function of an exponent of the Beta distribution, from 1e-6 to 100.
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

    fn regularizer(tails: [f64; 2], is_literal: bool) -> Regularizer {
        let settings =
            Settings { alpha: 20.0, tails, epsilon: 1e-4, lambda: 0.98, labels_per_rule: 2, is_literal };
        Regularizer::new(settings).unwrap()
    }

    #[test]
    fn the_tails_of_the_authors_give_their_distribution() {
        let [a, b] = beta_of_tails([beta_reg(0.6, 0.15, 0.1), beta_reg(0.15, 0.6, 0.1)]).unwrap();
        assert!((a - 0.6).abs() < 1e-6 && (b - 0.15).abs() < 1e-6, "{a}, {b}");
        // The last pair belongs to a density that falls toward 0: its exponent is above 1.
        for tails in [[0.0, 0.5], [0.6, 0.6], [0.01, 0.01], [f64::NAN, 0.5], [0.05, 0.3]] {
            assert!(beta_of_tails(tails).is_err(), "{tails:?}");
        }
    }

    #[test]
    fn the_soft_minimum_stays_between_0_and_1() {
        let regularizer = regularizer([0.057, 0.628], false);
        for n in 2..6 {
            assert!((regularizer.soft_minimum(&vec![1.0; n]) - 1.0).abs() < 1e-12);
            assert!(regularizer.soft_minimum(&vec![0.0; n]).abs() < 1e-12);
        }
        assert!(regularizer.soft_minimum(&[0.2, 1.0]) < 0.25);
    }

    #[test]
    fn the_literal_penalty_stays_defined() {
        let regularizer = regularizer([0.057, 0.628], true);
        assert!((regularizer.soft_minimum(&[1.0; 2]) - (1.0 - 2_f64.ln() / 20.0)).abs() < 1e-12);
        for q in [[1e-5; 3], [0.03; 3], [0.06; 3], [1.0; 3], [1e-5, 1.0, 1.0]] {
            let mut gradient = [0.0; 3];
            regularizer.add_label_gradient(&q, 1.0, &mut gradient);
            assert!(gradient.iter().all(|slope| slope.is_finite()), "{gradient:?}");
        }
        let mut gradient = [0.0; 3];
        regularizer.add_label_gradient(&[1e-5; 3], 1.0, &mut gradient);
        assert_eq!(gradient, [0.0; 3], "s is below 0");
    }

    #[test]
    fn truncation_keeps_the_labels_with_the_smallest_soft_minima() {
        let space = Space::new(vec![2, 3, 2]);
        let mut q = vec![0.9, 1.0, 0.95, 0.95, 0.95, 0.2, 1.0];
        regularizer([0.057, 0.628], false).truncate(&space, &mut q);
        assert_eq!(q, [0.9, 1.0, 1.0, 1.0, 1.0, 0.2, 1.0]);
    }

    proptest! {
        #[test]
        fn the_penalty_gradient_agrees_with_differences(
            q in prop::collection::vec(0.0..0.98, 2..5), low in 0.06..0.3, high in 0.3..0.6,
            step in 0_usize..50, is_literal in any::<bool>(),
        ) {
            let regularizer = regularizer([low, high], is_literal);
            let [a, b] = regularizer.beta;
            let value = |q: &[f64]| {
                let s = regularizer.soft_minimum(q);
                let s = if is_literal { s.clamp(MARGIN, 1.0 - MARGIN) } else { s };
                let log = (a - 1.0) * (s + 1e-4).ln() + (b - 1.0) * (1.0 - s + 1e-4).ln();
                0.98_f64.powf(step as f64) / regularizer.eta * log
            };
            // Near the clipping point the penalty has a kink.
            prop_assume!((regularizer.soft_minimum(&q) - MARGIN).abs() > 1e-2);
            let mut gradient = vec![0.0; q.len()];
            let space = Space::new(vec![q.len()]);
            regularizer.add_gradient(&space, &q, step, &mut gradient);
            for (at, slope) in gradient.iter().enumerate() {
                let shifted = |by: f64| {
                    let mut q = q.clone();
                    q[at] += by;
                    value(&q)
                };
                let h = 1e-4;
                let expected = (8.0 * (shifted(h) - shifted(-h)) - (shifted(2.0 * h) - shifted(-2.0 * h))) / (12.0 * h);
                prop_assert!((slope - expected).abs() <= 1e-5 * expected.abs() + 1e-7, "{slope} is not {expected}");
            }
        }
    }
}
