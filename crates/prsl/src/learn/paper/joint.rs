//! Exact inference with one table over all labels, for few labels.
//!
//! The labels are split into a slow and a fast half, so that an assignment is a pair (s, t). Beliefs are a product
//! π(s) π(t) of two small tables. With F = ∏ f, the product of all rules,
//!
//! ```text
//! Z = Σₛ π(s) u(s)        u(s) = Σₜ F(s, t) π(t)
//! ```
//!
//! so no row needs a table over all labels. For the expectations, mass(s, t) = F(s, t) Σ π(s) π(t) / Z is summed over the
//! rows of a batch. Then each rule needs the sums of mass · Q / f by label, once per batch, and f ≥ min(p, 1 − p) > 0.
//!
//! The factor of a rule depends on the slow half only through the rule's own slow labels. So a rule has few distinct rows
//! of factors, one for each combination of these labels.

use pulp::Arch;
use rayon::prelude::*;

use super::engine::{Engine, Worker};
use super::lanes::{LANES, Lane, add_scaled, dot, outer, reciprocal};
use super::space::{Expert, Space, noisy_or};
use crate::error::Result;

/// Tables of at least this many entries are processed in parallel. Tests use a smaller value, because their models are small.
const LARGE: usize = if cfg!(test) { 1 << 5 } else { 1 << 12 };
/// Number of slow entries per parallel task.
const ROWS: usize = 16;

pub(super) struct Joint {
    space: Space,
    probability: f64,
    /// Number of labels in the slow half.
    n_slow: usize,
    /// Numbers of entries of both halves.
    lengths: [usize; 2],
    /// The product of the base model's rules; empty if there are none.
    experts: Vec<f64>,
    rules: Vec<Rows>,
    /// F, the product of all rules.
    potentials: Vec<f64>,
}

/// The distinct rows of one rule.
#[derive(Default)]
struct Rows {
    /// For each slow entry its row.
    of_slow: Vec<u32>,
    /// f for each row and fast entry.
    factors: Vec<f64>,
    /// Q / f for each row and fast entry.
    ratios: Vec<f64>,
}

impl Joint {
    pub(super) fn new(space: &Space, experts: &[Expert], probability: f64) -> Self {
        let n_slow = half(&space.sizes);
        let length = |sizes: &[usize]| sizes.iter().product::<usize>();
        let lengths = [length(&space.sizes[..n_slow]), length(&space.sizes[n_slow..])];
        let all: Vec<usize> = (0..space.n_labels()).collect();
        let mut table = if experts.is_empty() { Vec::new() } else { vec![1.0; lengths[0] * lengths[1]] };
        for expert in experts {
            let entries = space.projection(&all, &expert.labels);
            table.iter_mut().zip(entries).for_each(|(slot, entry)| *slot *= expert.factors[entry as usize]);
        }
        let (rules, potentials) = (Vec::new(), vec![1.0; lengths[0] * lengths[1]]);
        Self { space: space.clone(), probability, n_slow, lengths, experts: table, rules, potentials }
    }

    fn rows(&self, q: &[f64]) -> Rows {
        let slow: Vec<usize> = (0..self.n_slow).collect();
        let fast: Vec<usize> = (self.n_slow..self.space.n_labels()).collect();
        let own: Vec<usize> =
            self.space.connected(q).into_iter().filter(|label| *label < self.n_slow).collect();
        let fast = self.space.silence(&fast, q);
        let silence: Vec<f64> = self
            .space
            .silence(&own, q)
            .iter()
            .flat_map(|slow| fast.iter().map(move |fast| slow * fast))
            .collect();
        let factors: Vec<f64> = silence.iter().map(|silence| noisy_or(self.probability, *silence)).collect();
        let ratios = silence.iter().zip(&factors).map(|(silence, factor)| silence / factor).collect();
        Rows { of_slow: self.space.projection(&slow, &own), factors, ratios }
    }

    /// Multiplies the rules into F.
    fn fill_potentials(&mut self) {
        let [_, n_fast] = self.lengths;
        let (experts, rules) = (&self.experts, &self.rules);
        let fill = |(chunk, slots): (usize, &mut [f64])| {
            for (at, slots) in slots.chunks_exact_mut(n_fast).enumerate() {
                let slow = chunk * ROWS + at;
                match experts.get(slow * n_fast..(slow + 1) * n_fast) {
                    Some(experts) => slots.copy_from_slice(experts),
                    None => slots.fill(1.0),
                }
                for rule in rules {
                    let factors = rule.row(&rule.factors, slow, n_fast);
                    Arch::new().dispatch(
                        #[inline(always)]
                        || slots.iter_mut().zip(factors).for_each(|(slot, factor)| *slot *= factor),
                    );
                }
            }
        };
        if self.potentials.len() >= LARGE {
            self.potentials.par_chunks_mut(ROWS * n_fast).enumerate().for_each(fill);
        } else {
            self.potentials.chunks_mut(ROWS * n_fast).enumerate().for_each(fill);
        }
    }

    /// The sums of mass · Q / f by category, for one rule.
    fn expectations_of(&self, rule: &Rows, mass: &[f64]) -> Vec<f64> {
        let [n_slow, n_fast] = self.lengths;
        let (mut of_slow, mut of_fast) = (Vec::with_capacity(n_slow), vec![0.0; n_fast]);
        for (slow, mass) in mass.chunks_exact(n_fast).enumerate() {
            let ratios = rule.row(&rule.ratios, slow, n_fast);
            of_slow.push(Arch::new().dispatch(
                #[inline(always)]
                || add_row(mass, ratios, &mut of_fast),
            ));
        }
        let mut expectations = vec![0.0; self.space.n_categories()];
        let (slow, fast) = self.space.blocks.split_at(self.n_slow);
        for (table, blocks) in [(of_slow, slow), (of_fast, fast)] {
            let mut run = table.len();
            for block in blocks {
                let sums = &mut expectations[block.clone()];
                run /= sums.len();
                for runs in table.chunks_exact(run * sums.len()) {
                    for (sum, run) in sums.iter_mut().zip(runs.chunks_exact(run)) {
                        *sum += run.iter().sum::<f64>();
                    }
                }
            }
        }
        expectations
    }
}

impl Rows {
    fn row<'a>(&self, table: &'a [f64], slow: usize, n_fast: usize) -> &'a [f64] {
        &table[self.of_slow[slow] as usize * n_fast..][..n_fast]
    }
}

impl Engine for Joint {
    fn set(&mut self, q: &[f64]) -> Result<()> {
        self.rules = q.chunks_exact(self.space.n_categories()).map(|q| self.rows(q)).collect();
        self.fill_potentials();
        Ok(())
    }

    fn worker(&self) -> Box<dyn Worker + '_> {
        let (slow, fast, sums) = (Vec::new(), Vec::new(), Vec::new());
        Box::new(Halves { joint: self, slow, fast, sums, total: [0.0; LANES] })
    }

    fn n_sums(&self) -> usize {
        self.potentials.len()
    }

    fn expectations(&self, sums: Vec<f64>) -> Vec<f64> {
        let mut mass = sums;
        mass.iter_mut().zip(&self.potentials).for_each(|(mass, potential)| *mass *= potential);
        let of_rule = |rule: &Rows| self.expectations_of(rule, &mass);
        let expectations: Vec<Vec<f64>> = if mass.len() >= LARGE {
            self.rules.par_iter().map(of_rule).collect()
        } else {
            self.rules.iter().map(of_rule).collect()
        };
        expectations.concat()
    }

    fn work(&self) -> usize {
        self.potentials.len() * (2 * LANES + 2 * self.rules.len())
    }
}

/// The beliefs of eight rows about both halves.
struct Halves<'a> {
    joint: &'a Joint,
    slow: Vec<Lane>,
    fast: Vec<Lane>,
    /// u(s).
    sums: Vec<Lane>,
    total: Lane,
}

impl Worker for Halves<'_> {
    fn log_total(&mut self, beliefs: &[Lane]) -> Lane {
        let (slow, fast) = self.joint.space.blocks.split_at(self.joint.n_slow);
        outer(slow.iter().map(|block| &beliefs[block.clone()]), &mut self.slow);
        outer(fast.iter().map(|block| &beliefs[block.clone()]), &mut self.fast);
        self.sums.clear();
        Arch::new().dispatch(
            #[inline(always)]
            || push_rows(&self.joint.potentials, &self.fast, &mut self.sums),
        );
        self.total = [0.0; LANES];
        for (slow, sum) in self.slow.iter().zip(&self.sums) {
            (0..LANES).for_each(|l| self.total[l] += slow[l] * sum[l]);
        }
        self.total.map(f64::ln)
    }

    fn add_expectations(&mut self, weights: &Lane, sums: &mut [f64]) {
        let share = reciprocal(self.total);
        let weights = std::array::from_fn(|l| weights[l] * share[l]);
        Arch::new().dispatch(
            #[inline(always)]
            || add_outer(&self.slow, &self.fast, &weights, sums),
        );
    }
}

/// u: the sum of each row of potentials, weighted by the fast half.
#[inline(always)]
fn push_rows(potentials: &[f64], fast: &[Lane], sums: &mut Vec<Lane>) {
    for row in potentials.chunks_exact(fast.len()) {
        let mut sum = [0.0; LANES];
        fast.iter().zip(row).for_each(|(fast, &potential)| add_scaled(&mut sum, fast, potential));
        sums.push(sum);
    }
}

/// Adds the outer product of both halves, summed over the rows by weight.
#[inline(always)]
fn add_outer(slow: &[Lane], fast: &[Lane], weights: &Lane, sums: &mut [f64]) {
    for (slow, sums) in slow.iter().zip(sums.chunks_exact_mut(fast.len())) {
        let scaled: Lane = std::array::from_fn(|l| slow[l] * weights[l]);
        sums.iter_mut().zip(fast).for_each(|(sum, fast)| *sum += dot(fast, &scaled));
    }
}

/// Adds mass · ratio to the fast entries, and returns its sum.
#[inline(always)]
fn add_row(mass: &[f64], ratios: &[f64], of_fast: &mut [f64]) -> f64 {
    let (mass, mass_rest) = mass.as_chunks::<LANES>();
    let (ratios, ratios_rest) = ratios.as_chunks::<LANES>();
    let (of_fast, of_fast_rest) = of_fast.as_chunks_mut::<LANES>();
    let mut sums = [0.0; LANES];
    for ((mass, ratios), of_fast) in mass.iter().zip(ratios).zip(of_fast) {
        for l in 0..LANES {
            let product = mass[l] * ratios[l];
            sums[l] += product;
            of_fast[l] += product;
        }
    }
    let mut sum = sums.iter().sum::<f64>();
    for ((mass, ratio), of_fast) in mass_rest.iter().zip(ratios_rest).zip(of_fast_rest) {
        sum += mass * ratio;
        *of_fast += mass * ratio;
    }
    sum
}

/// The number of labels in the slow half, so that the tables over both halves are small.
fn half(sizes: &[usize]) -> usize {
    let entries = |sizes: &[usize]| sizes.iter().fold(1_usize, |product, &size| product.saturating_mul(size));
    let cost = |&at: &usize| entries(&sizes[..at]).saturating_add(entries(&sizes[at..]));
    (0..=sizes.len()).min_by_key(cost).expect("0 is one of them")
}
