//! Combinations of categories that are typical: one additive factor over all labels.
//!
//! The weight of a combination s is wₛ = exp(a + b·xₛ + δₛ), where xₛ = ln(frequency of s / product of its categories'
//! frequencies) says how much more often it occurs than independent labels would have it. A row that was counted itself
//! is left out of the count: otherwise every row that is learned from looks typical.

use std::collections::BTreeMap;

use super::clique_tree::CliqueTree;
use super::objective::LogBeliefs;
use super::sweep::{LANES, Lane};

/// The combinations that were seen, and where their parameters are.
pub(crate) struct Typical {
    pub(crate) combinations: Vec<Combination>,
    /// The place of each combination.
    pub(crate) index: BTreeMap<Vec<usize>, usize>,
    /// Where a, b and all δ start among the parameters.
    pub(crate) start: usize,
    /// The most frequent category of each label, as its place among all categories.
    reference: Vec<usize>,
    /// Rows counted, by weight.
    total: f64,
}

pub(crate) struct Combination {
    pub(crate) categories: Vec<usize>,
    pub(crate) count: f64,
    /// ln w, where it stays as it is.
    pub(crate) fixed: Option<f64>,
    /// Σ ln of its categories' frequencies.
    log_independent: f64,
    /// Where it differs from the reference: the place of its category, and of the reference's.
    differences: Vec<(usize, usize)>,
    /// Its entry in each clique.
    entries: Vec<usize>,
}

impl Combination {
    /// Adds what it has in place of the reference.
    fn add_differences(&self, values: &[Lane], sum: &mut Lane) {
        for &(own, reference) in &self.differences {
            for l in 0..LANES {
                sum[l] += values[own][l] - values[reference][l];
            }
        }
    }
}

impl Typical {
    /// Counts the combinations of rows in which everything is known, beside those whose ln w stays as it is; `None` if there are none.
    pub(crate) fn count<'a>(
        rows: impl Iterator<Item = (&'a [Option<usize>], f64)>,
        fixed: &BTreeMap<Vec<usize>, f64>,
        sizes: &[usize],
        start: usize,
    ) -> Option<Self> {
        let mut counts: BTreeMap<Vec<usize>, f64> = BTreeMap::new();
        let mut total = 0.0;
        let mut blocks = Vec::with_capacity(sizes.len());
        let mut n_categories = 0;
        for size in sizes {
            blocks.push(n_categories);
            n_categories += size;
        }
        // Half a row of each category: no frequency is 0.
        let mut marginals = vec![0.5; n_categories];
        for (truths, weight) in rows {
            let Some(categories) = truths.iter().copied().collect::<Option<Vec<usize>>>() else { continue };
            categories
                .iter()
                .zip(&blocks)
                .for_each(|(category, block)| marginals[block + category] += weight);
            *counts.entry(categories).or_default() += weight;
            total += weight;
        }
        fixed.keys().for_each(|categories| _ = counts.entry(categories.clone()).or_default());
        if counts.is_empty() {
            return None;
        }
        let most = |label: usize| {
            let of = &marginals[blocks[label]..blocks[label] + sizes[label]];
            blocks[label]
                + (0..of.len()).max_by(|&a, &b| of[a].total_cmp(&of[b]).then(b.cmp(&a))).expect("two or more")
        };
        let reference: Vec<usize> = (0..sizes.len()).map(most).collect();
        let frequency = |(label, category): (usize, &usize)| {
            (marginals[blocks[label] + category] / (total + 0.5 * sizes[label] as f64)).ln()
        };
        let combination = |(categories, count): (Vec<usize>, f64)| Combination {
            count,
            fixed: fixed.get(&categories).copied(),
            log_independent: categories.iter().enumerate().map(frequency).sum(),
            differences: (categories.iter().zip(&blocks).zip(&reference))
                .map(|((category, block), &reference)| (block + category, reference))
                .filter(|(own, reference)| own != reference)
                .collect(),
            entries: Vec::new(),
            categories,
        };
        let combinations: Vec<Combination> = counts.into_iter().map(combination).collect();
        let index = combinations.iter().enumerate().map(|(at, s)| (s.categories.clone(), at)).collect();
        Some(Self { combinations, index, start, reference, total })
    }

    /// Finds the combinations in the cliques.
    pub(crate) fn locate(&mut self, tree: &CliqueTree) {
        for combination in &mut self.combinations {
            let entry = |clique| tree.entry(clique, |label| combination.categories[label]);
            combination.entries = (0..tree.cliques.len()).map(entry).collect();
        }
    }

    #[cfg(test)]
    /// a, b and a δ for each combination.
    pub(crate) fn n_parameters(&self) -> usize {
        2 + self.combinations.len()
    }

    /// xₛ when part of its count is left out.
    pub(crate) fn surplus(&self, combination: usize, left_out: f64) -> f64 {
        let combination = &self.combinations[combination];
        // Weights that sum up to the count may leave a trace of rounding.
        let count = combination.count - left_out;
        let count = if count < 1e-9 * combination.count { 0.0 } else { count };
        (count / self.total).ln() - combination.log_independent
    }

    /// ln w of a combination, −∞ if nothing is left of its count.
    pub(crate) fn log_weight(&self, parameters: &[f64], combination: usize, left_out: f64) -> f64 {
        if let Some(fixed) = self.combinations[combination].fixed {
            return fixed;
        }
        let [a, b] = [parameters[self.start], parameters[self.start + 1]];
        match self.surplus(combination, left_out) {
            f64::NEG_INFINITY => f64::NEG_INFINITY,
            surplus => a + b * surplus + parameters[self.start + 2 + combination],
        }
    }

    /// ln w + ln ∏ f of every combination.
    pub(crate) fn log_weights(&self, parameters: &[f64], potentials: &[f64]) -> Vec<f64> {
        let log_potentials: Vec<f64> = potentials.iter().map(|potential| potential.ln()).collect();
        let rules = |s: &Combination| s.entries.iter().map(|&entry| log_potentials[entry]).sum::<f64>();
        let weigh = |(at, s): (usize, &Combination)| self.log_weight(parameters, at, 0.0) + rules(s);
        self.combinations.iter().enumerate().map(weigh).collect()
    }

    /// ln(w · score) of every combination for eight rows.
    pub(crate) fn scores(&self, log_beliefs: &LogBeliefs, log_weights: &[f64], scores: &mut [Lane]) {
        let base = self.sum_of_reference(&log_beliefs.finite);
        for ((score, combination), log_weight) in scores.iter_mut().zip(&self.combinations).zip(log_weights) {
            *score = base.map(|base| base + log_weight);
            combination.add_differences(&log_beliefs.finite, score);
        }
        if log_beliefs.has_zeros {
            let base = self.sum_of_reference(&log_beliefs.zeros);
            for (score, combination) in scores.iter_mut().zip(&self.combinations) {
                let mut n_zeros = base;
                combination.add_differences(&log_beliefs.zeros, &mut n_zeros);
                for l in 0..LANES {
                    score[l] = if n_zeros[l] > 0.0 { f64::NEG_INFINITY } else { score[l] };
                }
            }
        }
    }

    fn sum_of_reference(&self, values: &[Lane]) -> Lane {
        let mut sum = [0.0; LANES];
        for &reference in &self.reference {
            for l in 0..LANES {
                sum[l] += values[reference][l];
            }
        }
        sum
    }

    /// Adds masses of combinations to the categories they have.
    pub(crate) fn add_slopes(&self, masses: &[Lane], slopes: &mut [Lane]) {
        let mut total = [0.0; LANES];
        for (mass, combination) in masses.iter().zip(&self.combinations) {
            for l in 0..LANES {
                total[l] += mass[l];
            }
            for &(own, reference) in &combination.differences {
                for l in 0..LANES {
                    slopes[own][l] += mass[l];
                    slopes[reference][l] -= mass[l];
                }
            }
        }
        for &reference in &self.reference {
            for l in 0..LANES {
                slopes[reference][l] += total[l];
            }
        }
    }

    /// Adds masses (derivatives in ln w) of all combinations to the gradient in a, b and δ.
    pub(crate) fn add_gradient(&self, masses: &[Lane], gradient: &mut [f64]) {
        for (at, mass) in masses.iter().enumerate() {
            self.add_mass(at, 0.0, mass.iter().sum(), gradient);
        }
    }

    /// The same for one combination, part of whose count is left out.
    pub(crate) fn add_mass(&self, combination: usize, left_out: f64, mass: f64, gradient: &mut [f64]) {
        if mass != 0.0 && self.combinations[combination].fixed.is_none() {
            gradient[self.start] += mass;
            gradient[self.start + 1] += mass * self.surplus(combination, left_out);
            gradient[self.start + 2 + combination] += mass;
        }
    }

    /// Corrects [`Typical::add_gradient`] for a mass whose count was partly left out.
    pub(crate) fn correct_gradient(
        &self,
        combination: usize,
        left_out: f64,
        mass: f64,
        gradient: &mut [f64],
    ) {
        if mass != 0.0 && self.combinations[combination].fixed.is_none() {
            let difference = self.surplus(combination, left_out) - self.surplus(combination, 0.0);
            gradient[self.start + 1] += mass * difference;
        }
    }

    /// Adds masses of combinations to the clique entries they run through.
    pub(crate) fn spread(&self, masses: &[f64], counts: &mut [f64]) {
        for (mass, combination) in masses.iter().zip(&self.combinations) {
            combination.entries.iter().for_each(|&entry| counts[entry] += mass);
        }
    }
}
