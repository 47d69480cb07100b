//! The oracle for extreme numbers: enumeration with more digits and a wider range than `f64` has.

use std::cmp::Ordering;

use prsl::{Assignment, Body, LabelId, Model, Rule, Truth};

/// A number (high + low) · 2^exponent: double-double arithmetic with a separate exponent.
///
/// Sums and products of probabilities have about 104 bits. Products of a few hundred numbers stay within the range, so
/// neither digits nor small numbers are lost. Double-double logarithms would have the range too. But every sum of them
/// would need double-double exponentials, and ln x loses digits of x if |ln x| is large. Only the results are
/// logarithms, in `f64`.
#[derive(Clone, Copy, Debug)]
struct Wide {
    high: f64,
    low: f64,
    exponent: i64,
}

impl Wide {
    const ZERO: Self = Self { high: 0.0, low: 0.0, exponent: 0 };
    const ONE: Self = Self { high: 1.0, low: 0.0, exponent: 0 };

    /// Converts a number exactly.
    fn new(x: f64) -> Self {
        // Denormal numbers are normalized first.
        let shift = if x < 1.0 { 100 } else { 0 };
        Self { high: x * 2f64.powi(shift), low: 0.0, exponent: -i64::from(shift) }.normalized()
    }

    /// 1 − x for 0 ≤ x ≤ 1, exact if a double-double number can represent it.
    fn one_minus(x: f64) -> Self {
        let (high, low) = two_sum(1.0, -x);
        Self { high, low, exponent: 0 }.normalized()
    }

    /// The same number with `high` from 1 to below 2.
    fn normalized(self) -> Self {
        let Self { high, low, exponent } = self;
        if high == 0.0 {
            return Self::ZERO;
        }
        let shift = (high.to_bits() >> 52 & 0x7ff) as i64 - 1023;
        let scale = scale(-shift);
        Self { high: high * scale[0] * scale[1], low: low * scale[0] * scale[1], exponent: exponent + shift }
    }

    fn times(self, other: Self) -> Self {
        let product = self.high * other.high;
        let error = self.high.mul_add(other.high, -product) + (self.high * other.low + self.low * other.high);
        let (high, low) = two_sum(product, error);
        Self { high, low, exponent: self.exponent + other.exponent }.normalized()
    }

    fn plus(self, other: Self) -> Self {
        let (large, small) = if self.cmp(&other) == Ordering::Less { (other, self) } else { (self, other) };
        if small.high == 0.0 || large.exponent - small.exponent > 1000 {
            return large;
        }
        let scale = ((small.exponent - large.exponent) as f64).exp2();
        let (sum, error) = two_sum(large.high, small.high * scale);
        let (high, low) = two_sum(sum, error + (large.low + small.low * scale));
        Self { high, low, exponent: large.exponent }.normalized()
    }

    /// Compares two non-negative numbers.
    fn cmp(&self, other: &Self) -> Ordering {
        let is_zero = |x: &Self| x.high == 0.0;
        is_zero(other).cmp(&is_zero(self)).then(
            self.exponent
                .cmp(&other.exponent)
                .then(self.high.total_cmp(&other.high))
                .then(self.low.total_cmp(&other.low)),
        )
    }

    /// ln x, −∞ for 0.
    fn ln(self) -> f64 {
        if self.high == 0.0 {
            return f64::NEG_INFINITY;
        }
        self.high.ln() + self.low / self.high + self.exponent as f64 * std::f64::consts::LN_2
    }

    /// self / other as an `f64`.
    fn over(self, other: Self) -> f64 {
        if self.high == 0.0 {
            return 0.0;
        }
        let scale = scale((self.exponent - other.exponent).clamp(-1200, 1200));
        (self.high + self.low) / (other.high + other.low) * scale[0] * scale[1]
    }
}

/// 2^exponent as two factors, because it may be out of the range of one.
fn scale(exponent: i64) -> [f64; 2] {
    [exponent / 2, exponent - exponent / 2].map(|part| 2f64.powi(part as i32))
}

/// a + b and its rounding error.
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let part = sum - a;
    (sum, (a - (sum - part)) + (b - part))
}

/// Exact answers for a small model by summing over all assignments.
pub struct Precise {
    model: Model,
    assignments: Vec<Vec<usize>>,
    /// ∏ₖ φₖ(y) S(y) of every assignment.
    weights: Vec<Wide>,
}

/// The sums of one row.
pub struct Sums {
    /// ln Z, −∞ if the row is impossible.
    pub log_evidence: f64,
    /// P(label = category) in the model's order, 0 if it underflows.
    pub marginals: Vec<f64>,
    /// The same as logarithms.
    pub log_marginals: Vec<f64>,
    /// ln of the weights of all possible assignments, the largest first.
    pub log_weights: Vec<f64>,
}

impl Precise {
    /// Computes the weight of all assignments under the model's rules.
    pub fn new(model: &Model) -> Self {
        let mut assignments = vec![Vec::new()];
        for label in model.labels() {
            let with = |y: &Vec<usize>, category| [&y[..], &[category]].concat();
            let n = label.n_categories();
            assignments = assignments.iter().flat_map(|y| (0..n).map(move |c| with(y, c))).collect();
        }
        let weights = assignments.iter().map(|y| weight(model, y)).collect();
        Self { model: model.clone(), assignments, weights }
    }

    /// The weights of all assignments with a row of completed beliefs.
    fn with_beliefs(&self, row: &[f64]) -> Vec<Wide> {
        let beliefs: Vec<Wide> = row.iter().map(|&belief| Wide::new(belief)).collect();
        let weigh = |(y, &weight): (&Vec<usize>, &Wide)| {
            y.iter().enumerate().fold(weight, |product, (label, &category)| {
                product.times(beliefs[self.position(label, category)])
            })
        };
        self.assignments.iter().zip(&self.weights).map(weigh).collect()
    }

    fn position(&self, label: usize, category: usize) -> usize {
        self.model.block(LabelId::new(label)).start + category
    }

    /// All sums for a row of completed beliefs.
    pub fn sums(&self, row: &[f64]) -> Sums {
        let weights = self.with_beliefs(row);
        let total = weights.iter().fold(Wide::ZERO, |sum, &weight| sum.plus(weight));
        let mut masses = vec![Wide::ZERO; row.len()];
        for (y, &weight) in self.assignments.iter().zip(&weights) {
            for (label, &category) in y.iter().enumerate() {
                let mass = &mut masses[self.position(label, category)];
                *mass = mass.plus(weight);
            }
        }
        let mut possible: Vec<Wide> = weights.into_iter().filter(|weight| weight.high > 0.0).collect();
        possible.sort_by(|a, b| b.cmp(a));
        Sums {
            log_evidence: total.ln(),
            marginals: masses.iter().map(|mass| mass.over(total)).collect(),
            log_marginals: masses.iter().map(|mass| mass.ln() - total.ln()).collect(),
            log_weights: possible.into_iter().map(Wide::ln).collect(),
        }
    }

    /// ln P(all known truths | row), −∞ if that is impossible.
    pub fn log_likelihood(&self, row: &[f64], truth: &Truth) -> f64 {
        let agrees =
            |y: &Vec<usize>| truth.known().all(|(label, category)| y[label.index()] == category.index());
        let weights = self.with_beliefs(row);
        let total = weights.iter().fold(Wide::ZERO, |sum, &weight| sum.plus(weight));
        let known = self.assignments.iter().zip(weights).filter(|(y, _)| agrees(y));
        known.fold(Wide::ZERO, |sum, (_, weight)| sum.plus(weight)).ln() - total.ln()
    }

    /// ln weight of one assignment.
    pub fn log_weight(&self, row: &[f64], assignment: &[usize]) -> f64 {
        let place =
            self.assignments.iter().position(|y| y == assignment).expect("an assignment of the model");
        self.with_beliefs(row)[place].ln()
    }

    /// All assignments, in the order of [`Self::probabilities`].
    pub fn assignments(&self) -> &[Vec<usize>] {
        &self.assignments
    }

    /// The probability of every assignment.
    pub fn probabilities(&self, row: &[f64]) -> Vec<f64> {
        let weights = self.with_beliefs(row);
        let total = weights.iter().fold(Wide::ZERO, |sum, &weight| sum.plus(weight));
        weights.iter().map(|weight| weight.over(total)).collect()
    }
}

/// ∏ₖ φₖ(y) S(y)
fn weight(model: &Model, y: &[usize]) -> Wide {
    let product = model.rules().iter().fold(Wide::ONE, |product, rule| product.times(factor(rule, y)));
    let typical = model.typical().iter().find(|combination| combination.assignment().indices() == y);
    typical.map_or(product, |it| product.times(Wide::ONE.plus(Wide::new(it.weight()))))
}

/// φ(y) = p (1 − Q) + (1 − p) Q
fn factor(rule: &Rule, y: &[usize]) -> Wide {
    let (p, not_p) = (Wide::new(rule.probability()), Wide::one_minus(rule.probability()));
    match rule.body() {
        Body::Formula(formula) if formula.holds(&Assignment::from_indices(y)) => p,
        Body::Formula(_) => not_p,
        Body::NoisyOr(noisy_or) => {
            let present = noisy_or.inhibitions().iter().filter(|i| y[i.label.index()] == i.category.index());
            // 1 − Q as a sum of non-negative terms, without cancellation.
            let (silent, fired) = present.fold((Wide::ONE, Wide::ZERO), |(silent, fired), i| {
                let q = i.probability;
                (silent.times(Wide::new(q)), fired.plus(silent.times(Wide::one_minus(q))))
            });
            p.times(fired).plus(not_p.times(silent))
        }
        other => unreachable!("rules are formulas or noisy-ors: {other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_numbers_represent_values_beyond_the_range_of_f64() {
        let tiny = Wide::new(5e-324);
        assert_eq!(tiny.times(tiny).over(tiny), 5e-324);
        assert_eq!(Wide::one_minus(1e-30).plus(Wide::new(1e-30)).over(Wide::ONE), 1.0);
        assert_eq!(Wide::one_minus(1.0 - 1e-16).ln(), (1.0 - (1.0 - 1e-16f64)).ln());
        assert_eq!(Wide::one_minus(1.0).ln(), f64::NEG_INFINITY);
        assert!((tiny.times(tiny).ln() - 2.0 * 5e-324f64.ln()).abs() < 1e-12);
        let third = Wide::new(0.1).times(Wide::new(0.1)).plus(Wide::new(0.0)).over(Wide::new(0.1));
        assert!((third - 0.1).abs() < 2e-17);
        assert_eq!(Wide::new(1e300).plus(Wide::new(1e-300)).over(Wide::new(1e300)), 1.0);
        assert_eq!(Wide::ZERO.cmp(&tiny), Ordering::Less);
        assert_eq!(Wide::new(0.75).over(Wide::new(0.5)), 1.5);
    }

    #[test]
    fn small_differences_are_not_lost() {
        // (1 + 1e-20) − 1 would be 0 in one number.
        let sum = Wide::ONE.plus(Wide::new(1e-20));
        assert!(sum.cmp(&Wide::ONE) == Ordering::Greater);
        let product = Wide::new(1.0 + 2f64.powi(-30)).times(Wide::new(1.0 - 2f64.powi(-30)));
        assert!(product.cmp(&Wide::ONE) == Ordering::Less && product.low != 0.0);
    }

    #[test]
    fn the_worked_example_of_the_paper() {
        let model = Model::parse(
            "label activity: walking, normal, overhead\nlabel feet: gait, standing\nlabel hands: high, centered, low\n\
             rule 0.8: high & standing -> overhead\nrule 0.9: normal -> centered | low\nrule 1: walking <-> gait\n",
        )
        .expect("valid");
        let row = [0.1, 0.4, 0.5, 0.05, 0.95, 0.5, 0.3, 0.2];
        let precise = Precise::new(&model);
        let sums = precise.sums(&row);
        assert!((sums.log_evidence.exp() - 0.4862).abs() < 5e-5);
        let shown: Vec<String> = sums.marginals.iter().map(|p| format!("{p:.4}")).collect();
        assert_eq!(shown, ["0.0074", "0.2892", "0.7034", "0.0074", "0.9926", "0.3632", "0.3821", "0.2547"]);
        assert_eq!(precise.log_weight(&row, &[2, 1, 0]), sums.log_weights[0]);
        let truth = Truth::from_indices([Some(2), None, None]);
        assert!((precise.log_likelihood(&row, &truth) - sums.log_marginals[2]).abs() < 1e-12);
    }
}
