//! Large rules without large tables.
//!
//! # Derivation
//!
//! The silence of a learned rule is a product over its labels. Where they are all labels of its clique, parted into slow ones and fast
//! ones, it is an outer product,
//!
//! ```text
//! Q(s, t) = A(s) B(t)        A = ∏ q of the slow labels        B = ∏ q of the fast ones
//! ```
//!
//! and f = p (1 − Q) + (1 − p) Q takes less time to compute than to fetch. With mass(e) = ∂ objective / ∂ ln F(e), as in [`super::mass`],
//!
//! ```text
//! ∂ objective / ∂ A(s) = (1 − 2p) Σₜ B(t) mass(s, t) / f(s, t)                                     (1)
//! ∂ objective / ∂ B(t) = (1 − 2p) Σₛ A(s) mass(s, t) / f(s, t)                                     (2)
//! ```
//!
//! which either half passes on to its q. f is at least 1 − p, which is not near 0.
//! Checked in `the_gradient_is_what_differences_say`, and against tables in `outer_products_are_as_good_as_tables`.

use pulp::Arch;
use rayon::prelude::*;

use super::factor::{Probability, RuleShape, Silence};
use super::table::half;

/// A rule holds at least so improbably, and fails to: what can be divided by.
const LEAST: f64 = 1e-6;
/// Rows of the product that are looked at in one go.
const ROWS: usize = 16;

/// A rule whose silence is an outer product.
pub(crate) struct Outer {
    probability: f64,
    slow: Half,
    fast: Half,
}

/// ∏ q over some of the labels.
struct Half {
    shape: RuleShape,
    table: Vec<f64>,
}

impl Outer {
    /// Of a learned rule about all labels of its clique; `None` if it is something else.
    pub(crate) fn new(rule: &RuleShape, sizes: &[usize], parameters: &[f64]) -> Option<Self> {
        let (Silence::Learned(places), Probability::Given(probability)) = (&rule.silence, rule.probability)
        else {
            return None;
        };
        if !rule.home.as_ref()?.fit.is_whole() || !(LEAST..=1.0 - LEAST).contains(&probability) {
            return None;
        }
        let of_labels: Vec<usize> = rule.labels.iter().map(|&label| sizes[label]).collect();
        let n_slow = half(&of_labels);
        let part = |labels: &[usize], places: &[usize]| {
            let silence = Silence::Learned(places.to_vec());
            let shape =
                RuleShape { labels: labels.to_vec(), home: None, silence, probability: rule.probability };
            let mut table = Vec::new();
            shape.fill_silent(sizes, parameters, &mut table);
            Half { shape, table }
        };
        let (labels, places) = (rule.labels.split_at(n_slow), places.split_at(n_slow));
        Some(Self { probability, slow: part(labels.0, places.0), fast: part(labels.1, places.1) })
    }

    /// Adds what masses, divided by nothing yet, mean for the rule's q.
    pub(crate) fn add_gradient(
        &self,
        mass: &[f64],
        sizes: &[usize],
        parameters: &[f64],
        gradient: &mut [f64],
    ) {
        let mut of_fast = vec![0.0; self.fast.table.len()];
        let rows = mass.chunks_exact(self.fast.table.len()).zip(&self.slow.table);
        let add_row = |(mass, &slow): (&[f64], &f64)| {
            Arch::new().dispatch(
                #[inline(always)]
                || add_row(self.probability, slow, &self.fast.table, mass, &mut of_fast),
            )
        };
        let of_slow: Vec<f64> = rows.map(add_row).collect();
        let toward_silence = 1.0 - 2.0 * self.probability;
        for (half, slope) in [(&self.slow, of_slow), (&self.fast, of_fast)] {
            half.shape.add_inhibition_gradient(sizes, parameters, (&slope, toward_silence), gradient);
        }
    }
}

/// Multiplies a table by some rules about all its labels.
pub(crate) fn multiply(product: &mut [f64], rules: &[&Outer]) {
    let Some(first) = rules.first() else { return };
    let n_fast = first.fast.table.len();
    product.par_chunks_mut(ROWS * n_fast).enumerate().for_each(|(chunk, rows)| {
        for (at, row) in rows.chunks_exact_mut(n_fast).enumerate() {
            for rule in rules {
                let slow = rule.slow.table[chunk * ROWS + at];
                Arch::new().dispatch(
                    #[inline(always)]
                    || multiply_row(rule.probability, slow, &rule.fast.table, row),
                );
            }
        }
    });
}

/// f where the rule is silent so probably.
#[inline(always)]
fn factor(p: f64, silent: f64) -> f64 {
    (1.0 - p) * silent + p * (1.0 - silent)
}

#[inline(always)]
fn multiply_row(p: f64, slow: f64, fast: &[f64], row: &mut [f64]) {
    row.iter_mut().zip(fast).for_each(|(slot, fast)| *slot *= factor(p, slow * fast));
}

/// The sum of (1) for one s; the summands of (2) are added.
#[inline(always)]
fn add_row(p: f64, slow: f64, fast: &[f64], mass: &[f64], of_fast: &mut [f64]) -> f64 {
    const LANES: usize = 8;
    let (fast, fast_rest) = fast.as_chunks::<LANES>();
    let (mass, mass_rest) = mass.as_chunks::<LANES>();
    let (of_fast, of_fast_rest) = of_fast.as_chunks_mut::<LANES>();
    let mut sums = [0.0; LANES];
    for ((fast, mass), of_fast) in fast.iter().zip(mass).zip(of_fast) {
        for l in 0..LANES {
            let slope = mass[l] / factor(p, slow * fast[l]);
            sums[l] += fast[l] * slope; // (1)
            of_fast[l] += slow * slope; // (2)
        }
    }
    let mut sum = sums.iter().sum::<f64>();
    for ((fast, mass), of_fast) in fast_rest.iter().zip(mass_rest).zip(of_fast_rest) {
        let slope = mass / factor(p, slow * fast);
        sum += fast * slope;
        *of_fast += slow * slope;
    }
    sum
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::super::clique_tree::CliqueTree;
    use super::super::factor::Home;
    use super::*;

    #[test]
    fn outer_products_are_as_good_as_tables() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for n_labels in 1..8 {
            let sizes: Vec<usize> = (0..n_labels).map(|_| rng.random_range(2..5)).collect();
            let all: Vec<usize> = (0..n_labels).collect();
            let tree = CliqueTree::new(&sizes, std::slice::from_ref(&all)).unwrap();
            let labels = tree.in_order(&all);
            let mut parameters = Vec::new();
            let places = labels.iter().map(|&label| {
                parameters.extend((0..sizes[label]).map(|_| rng.random_range(-0.2..1.0_f64).max(0.0)));
                parameters.len() - sizes[label]
            });
            let silence = Silence::Learned(places.collect());
            let home = Home::of(&tree, &labels);
            let p = [0.999, 0.2][n_labels % 2];
            let rule = RuleShape { labels, home, silence, probability: Probability::Given(p) };
            let outer = Outer::new(&rule, &sizes, &parameters).unwrap();
            let mut silent = Vec::new();
            rule.fill_silent(&sizes, &parameters, &mut silent);
            let mut product = vec![1.0; silent.len()];
            multiply(&mut product, &[&outer, &outer]);
            let mass: Vec<f64> = silent.iter().map(|_| rng.random_range(-1.0..1.0)).collect();
            let slope: Vec<f64> =
                silent.iter().zip(&mass).map(|(silent, mass)| mass / factor(p, *silent)).collect();
            for (product, silent) in product.iter().zip(&silent) {
                assert!((product - factor(p, *silent).powi(2)).abs() < 1e-12);
            }
            let [mut actual, mut expected] = [vec![0.0; parameters.len()], vec![0.0; parameters.len()]];
            outer.add_gradient(&mass, &sizes, &parameters, &mut actual);
            rule.add_inhibition_gradient(&sizes, &parameters, (&slope, 1.0 - 2.0 * p), &mut expected);
            for (actual, expected) in actual.iter().zip(&expected) {
                assert!(
                    (actual - expected).abs() < 1e-9 * (1.0 + expected.abs()),
                    "{actual} is not {expected}"
                );
            }
        }
    }
}
