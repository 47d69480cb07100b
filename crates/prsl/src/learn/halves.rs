//! Sums over a clique that stands alone, for eight rows side by side.
//!
//! With neither parent nor children, all that a row adds to the potential F are beliefs, a product over labels: so a table over the
//! slower half a of the labels times one over the faster half b.
//!
//! ```text
//! Z = Σ_a π(a) u(a)            u(a) = Σ_b F(a, b) π(b)
//! P(a) = π(a) u(a) / Z         P(b) = π(b) v(b) / Z         v(b) = Σ_a F(a, b) π(a)
//! ∂ ln Z / ∂ F(a, b) = π(a) π(b) / Z
//! ```
//!
//! So nothing of the clique's size is needed for each row: of 14 binary labels, two tables of 2⁷ instead of one of 2¹⁴.

use pulp::Arch;

use super::sweep::{LANES, Lane, add_scaled, dot, multiply};
use super::table::half;

/// Room for the halves of one clique.
#[derive(Default)]
pub(crate) struct Halves {
    /// How many of its labels are the slower half.
    n_slow: usize,
    /// π.
    slow: Vec<Lane>,
    fast: Vec<Lane>,
    /// u.
    sums: Vec<Lane>,
    /// Z.
    pub(crate) total: Lane,
}

impl Halves {
    pub(crate) fn new(sizes: &[usize]) -> Self {
        Self { n_slow: half(sizes), ..Self::default() }
    }

    /// Sums up to Z, for the beliefs about its labels, one after another.
    pub(crate) fn up<'a>(&mut self, mut beliefs: impl Iterator<Item = &'a [Lane]>, potentials: &[f64]) {
        outer(beliefs.by_ref().take(self.n_slow), &mut self.slow);
        outer(beliefs, &mut self.fast);
        self.sums.clear();
        Arch::new().dispatch(
            #[inline(always)]
            || push_rows(potentials, &self.fast, &mut self.sums),
        );
        self.total = [0.0; LANES];
        for (slow, sum) in self.slow.iter().zip(&self.sums) {
            (0..LANES).for_each(|l| self.total[l] += slow[l] * sum[l]);
        }
    }

    /// After [`Halves::up`]: adds the weighted sum over the rows of what each potential multiplies in Z.
    pub(crate) fn add_derivatives(&self, weights: &Lane, derivatives: &mut [f64]) {
        Arch::new().dispatch(
            #[inline(always)]
            || add_outer(&self.slow, &self.fast, weights, derivatives),
        );
    }

    /// After [`Halves::up`]: Z P of the first labels, how many these are, and Z P of the others. The beliefs are gone then.
    pub(crate) fn marginals(&mut self, potentials: &[f64]) -> (&[Lane], usize, &[Lane]) {
        let mut sums = vec![[0.0; LANES]; self.fast.len()];
        Arch::new().dispatch(
            #[inline(always)]
            || add_columns(potentials, &self.slow, &mut sums),
        );
        self.slow.iter_mut().zip(&self.sums).for_each(|(belief, sum)| multiply(belief, sum));
        self.fast.iter_mut().zip(&sums).for_each(|(belief, sum)| multiply(belief, sum));
        (&self.slow, self.n_slow, &self.fast)
    }
}

/// u: Σ of each row of potentials, times the faster half.
#[inline(always)]
fn push_rows(potentials: &[f64], fast: &[Lane], sums: &mut Vec<Lane>) {
    for row in potentials.chunks_exact(fast.len()) {
        let mut sum = [0.0; LANES];
        fast.iter().zip(row).for_each(|(fast, &potential)| add_scaled(&mut sum, fast, potential));
        sums.push(sum);
    }
}

/// v: Σ of each column of potentials, times the slower half.
#[inline(always)]
fn add_columns(potentials: &[f64], slow: &[Lane], sums: &mut [Lane]) {
    for (slow, row) in slow.iter().zip(potentials.chunks_exact(sums.len())) {
        sums.iter_mut().zip(row).for_each(|(sum, &potential)| add_scaled(sum, slow, potential));
    }
}

/// The slower times the faster half, summed over the rows by weight.
#[inline(always)]
fn add_outer(slow: &[Lane], fast: &[Lane], weights: &Lane, sums: &mut [f64]) {
    for (slow, sums) in slow.iter().zip(sums.chunks_exact_mut(fast.len())) {
        let scaled: Lane = std::array::from_fn(|l| slow[l] * weights[l]);
        sums.iter_mut().zip(fast).for_each(|(sum, fast)| *sum += dot(fast, &scaled));
    }
}

/// The product of the beliefs about labels, one after another.
pub(crate) fn outer<'a>(beliefs: impl Iterator<Item = &'a [Lane]>, products: &mut Vec<Lane>) {
    products.clear();
    products.push([1.0; LANES]);
    for beliefs in beliefs {
        let n = products.len();
        products.resize(n * beliefs.len(), [0.0; LANES]);
        // From the end, so that nothing is overwritten that is still needed.
        for at in (0..n).rev() {
            let product = products[at];
            for (slot, belief) in products[at * beliefs.len()..].iter_mut().zip(beliefs) {
                *slot = std::array::from_fn(|l| product[l] * belief[l]);
            }
        }
    }
}
