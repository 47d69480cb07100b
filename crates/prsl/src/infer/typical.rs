//! Corrections of answers for typical combinations.
//!
//! Z₀ and P₀ are the sum and the marginals of a row without combinations. score(s) = ∏ⱼ πⱼ(sⱼ) ∏ₖ φₖ(s) is the weight
//! of a combination, and S(y) = 1 + Σₛ wₛ [y = s] is the factor of all combinations. Expanding S gives
//!
//! ```text
//! Z          = Z₀ + Σₛ wₛ score(s)                                        (1)
//! P(lⱼ = m)  = (Z₀ P₀(lⱼ = m) + Σ_{s: sⱼ = m} wₛ score(s)) / Z             (2)
//! ```
//!
//! So a posterior is a mixture of the rules' posterior and of single combinations, and so are its samples. The n best
//! assignments are among the n best without combinations and the combinations themselves:
//!
//! ```text
//! y neither of them  ⇒  n assignments weigh at least as much as y without S, and S ≥ 1 does not lower their weights (3)
//! ```
//!
//! Engines answer without combinations, and this module corrects the answers. `Enumeration` does not use it. Checked
//! in `tests/typical.rs`.

use std::ops::Range;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::samples::{draw, exponentiate};
use crate::assignment::Assignment;
use crate::label::LabelId;
use crate::log_space::{divide_positive, multiply_positive};
use crate::model::Model;
use crate::posterior::{Engine, MostProbable};
use crate::rule::RuleId;

/// If a difference is below this share of its minuend, it has lost digits and is computed as a sum instead.
const CANCELED: f64 = 1e-3;

/// A model's combinations, prepared for many rows.
///
/// The usual category of a label is the one that most combinations have. Combinations are stored as differences to
/// it, so a combination takes time proportional to its number of unusual categories.
pub(crate) struct Typical {
    model: Model,
    /// The index of each label's usual category among all categories.
    usual: Vec<usize>,
    entries: Vec<Entry>,
    /// The indices of the unusual categories of all entries.
    unusual: Vec<usize>,
    /// For each label, the entries with an unusual category of it, in order.
    of_label: Vec<Vec<usize>>,
}

/// A combination of positive weight.
struct Entry {
    /// Its position among the model's combinations.
    place: usize,
    /// ln w and ln (1 + w).
    log_weight: f64,
    log_factor: f64,
    /// ln ∏ₖ φₖ(s).
    rules: LogProduct,
    unusual: Range<usize>,
}

/// A row's posterior as a mixture of the rules' posterior and of single combinations.
pub(crate) struct Mixture {
    /// ln Z.
    pub(crate) log_evidence: f64,
    /// Z₀ / Z.
    rest: f64,
    /// wₛ score(s) / Z; empty if there are no combinations.
    shares: Vec<f64>,
}

/// A product as a sum of logarithms. Factors of 0 are counted, so that they can be removed again.
#[derive(Clone, Copy, Debug, Default)]
struct LogProduct {
    log: f64,
    n_zero: i32,
}

impl LogProduct {
    /// A product of one factor.
    fn new(log_factor: f64) -> Self {
        let is_zero = log_factor == f64::NEG_INFINITY;
        Self { log: if is_zero { 0.0 } else { log_factor }, n_zero: i32::from(is_zero) }
    }

    fn times(self, other: Self) -> Self {
        Self { log: self.log + other.log, n_zero: self.n_zero + other.n_zero }
    }

    fn over(self, other: Self) -> Self {
        Self { log: self.log - other.log, n_zero: self.n_zero - other.n_zero }
    }

    fn ln(self) -> f64 {
        if self.n_zero > 0 { f64::NEG_INFINITY } else { self.log }
    }
}

impl Typical {
    pub(crate) fn new(model: &Model) -> Self {
        let usual = usual(model);
        let (mut entries, mut unusual) = (Vec::new(), Vec::new());
        let mut of_label = vec![Vec::new(); usual.len()];
        for (place, combination) in model.typical().iter().enumerate() {
            if combination.weight() == 0.0 {
                continue;
            }
            let start = unusual.len();
            for (label, &category) in model.label_ids().zip(combination.categories()) {
                let position = model.block(label).start + category;
                if position != usual[label.index()] {
                    unusual.push(position);
                    of_label[label.index()].push(entries.len());
                }
            }
            let log_weights = model.rules().iter().map(|rule| rule.log_weight_at(combination.categories()));
            entries.push(Entry {
                place,
                log_weight: combination.weight().ln(),
                log_factor: combination.log_factor(),
                rules: log_weights.map(LogProduct::new).fold(LogProduct::default(), LogProduct::times),
                unusual: start..unusual.len(),
            });
        }
        Self { model: model.clone(), usual, entries, unusual, of_label }
    }

    /// Whether no combination has a positive weight.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The posterior of a row, where `log_rest` is ln Z₀.
    pub(crate) fn mixture(&self, row: &[f64], log_rest: f64) -> Mixture {
        self.mixture_without(row, log_rest, None)
    }

    /// The same without one rule.
    pub(crate) fn mixture_without(&self, row: &[f64], log_rest: f64, rule: Option<RuleId>) -> Mixture {
        if self.entries.is_empty() || log_rest == f64::NEG_INFINITY {
            return Mixture { log_evidence: log_rest, rest: 1.0, shares: Vec::new() };
        }
        let scores = self.log_scores(row, rule);
        let mut shares: Vec<f64> =
            scores.zip(&self.entries).map(|(score, entry)| score + entry.log_weight).collect();
        let largest = shares.iter().copied().fold(log_rest, f64::max);
        shares.iter_mut().for_each(|share| *share = (*share - largest).exp());
        let rest = (log_rest - largest).exp();
        let total = rest + shares.iter().sum::<f64>(); // (1), divided by the largest
        shares.iter_mut().for_each(|share| *share /= total);
        Mixture { log_evidence: largest + total.ln(), rest: rest / total, shares }
    }

    /// Returns the marginals of the mixture, given the masses of the rules, which need not be normalized.
    pub(crate) fn mixed(&self, mixture: &Mixture, masses: Vec<f64>) -> Vec<f64> {
        let mut marginals = masses;
        for label in self.model.label_ids() {
            let block = &mut marginals[self.model.block(label)];
            let total: f64 = block.iter().sum();
            if total > 0.0 {
                block.iter_mut().for_each(|mass| *mass = divide_positive(*mass, total));
            }
        }
        self.mix(mixture, &mut marginals);
        marginals
    }

    /// Converts the marginals of the rules into those of the mixture, in place.
    fn mix(&self, mixture: &Mixture, marginals: &mut [f64]) {
        if mixture.shares.is_empty() {
            return;
        }
        let masses = self.masses(&mixture.shares);
        for (marginal, mass) in marginals.iter_mut().zip(masses) {
            // Categories that the rules allow stay possible, however large the weights of combinations are.
            *marginal = multiply_positive(mixture.rest.max(f64::MIN_POSITIVE), *marginal) + mass; // (2)
        }
        // Certain categories have exactly 1.
        for label in self.model.label_ids() {
            let block = &mut marginals[self.model.block(label)];
            let total: f64 = block.iter().sum();
            if total > 0.0 {
                block.iter_mut().for_each(|marginal| *marginal = divide_positive(*marginal, total));
            }
        }
    }

    /// The sum of the shares of each category.
    fn masses(&self, shares: &[f64]) -> Vec<f64> {
        let mut masses = vec![0.0; self.model.n_categories()];
        for (entry, share) in self.entries.iter().zip(shares) {
            for &position in &self.unusual[entry.unusual.clone()] {
                masses[position] += share;
            }
        }
        let total: f64 = shares.iter().sum();
        for label in self.model.label_ids() {
            let others: f64 = masses[self.model.block(label)].iter().sum();
            let left = total - others;
            let canceled = left < CANCELED * total;
            masses[self.usual[label.index()]] = if canceled { self.usual_mass(label, shares) } else { left };
        }
        masses
    }

    /// The sum of the shares of a label's usual category, computed without a difference.
    fn usual_mass(&self, label: LabelId, shares: &[f64]) -> f64 {
        let mut start = 0;
        let mut mass = 0.0;
        for &unusual in &self.of_label[label.index()] {
            mass += shares[start..unusual].iter().sum::<f64>();
            start = unusual + 1;
        }
        mass + shares[start..].iter().sum::<f64>()
    }

    /// ln score(s) of every entry, optionally without one rule.
    fn log_scores(&self, row: &[f64], without: Option<RuleId>) -> impl Iterator<Item = f64> {
        // The factor by which each category changes the product of the usual categories.
        let mut changes: Vec<LogProduct> = row.iter().map(|belief| LogProduct::new(belief.ln())).collect();
        let mut usual = LogProduct::default();
        for label in self.model.label_ids() {
            let replaced = changes[self.usual[label.index()]];
            usual = usual.times(replaced);
            changes[self.model.block(label)].iter_mut().for_each(|change| *change = change.over(replaced));
        }
        self.entries.iter().map(move |entry| {
            let unusual = self.unusual[entry.unusual.clone()].iter();
            let score =
                unusual.fold(usual.times(entry.rules), |score, &position| score.times(changes[position]));
            without.map_or(score, |rule| score.over(self.log_rule(entry, rule))).ln()
        })
    }

    /// ln φₖ(s) of one rule.
    fn log_rule(&self, entry: &Entry, rule: RuleId) -> LogProduct {
        LogProduct::new(self.model.rule(rule).log_weight_at(self.model.typical()[entry.place].categories()))
    }

    /// The `n` best assignments with combinations. The arguments are the `n` best without combinations and, if known,
    /// an upper bound on the log weight of all others without combinations.
    pub(crate) fn rerank(
        &self,
        row: &[f64],
        n: usize,
        found: Vec<MostProbable>,
        bound: Option<f64>,
        engine: Engine,
    ) -> Vec<MostProbable> {
        if self.entries.is_empty() {
            return found;
        }
        let mut all: Vec<MostProbable> = found.into_iter().map(|it| self.with_factor(row, it)).collect();
        let n_found = all.len();
        for place in self.best(row, n) {
            let assignment = self.model.typical()[place].categories();
            if all[..n_found].iter().all(|it| it.assignment.indices() != assignment) {
                let log_weight = self.model.log_weight_at(row, assignment);
                let gap = bound.map(|bound| (bound - log_weight).max(0.0));
                all.push(MostProbable {
                    assignment: Assignment::from_indices(assignment),
                    log_weight,
                    gap,
                    engine,
                });
            }
        }
        // Of equal weights, assignments found without combinations come first.
        all.sort_by(|a, b| b.log_weight.total_cmp(&a.log_weight));
        all.truncate(n); // (3)
        all
    }

    /// Multiplies the weight of an assignment by the factor of combinations.
    fn with_factor(&self, row: &[f64], found: MostProbable) -> MostProbable {
        let log_factor = self.model.log_typical(found.assignment.indices());
        let log_weight = self.model.log_weight_at(row, found.assignment.indices());
        let gap = found.gap.map(|gap| (gap - log_factor).max(0.0));
        MostProbable { log_weight, gap, ..found }
    }

    /// The positions of the `n` combinations of largest weight, best first. Impossible ones are omitted.
    fn best(&self, row: &[f64], n: usize) -> Vec<usize> {
        let mut weighed: Vec<(f64, usize)> = self
            .log_scores(row, None)
            .zip(&self.entries)
            .filter(|(score, _)| *score > f64::NEG_INFINITY)
            .map(|(score, entry)| (score + entry.log_factor, entry.place))
            .collect();
        let better = |a: &(f64, usize), b: &(f64, usize)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
        if n > 0 && n < weighed.len() {
            weighed.select_nth_unstable_by(n - 1, better);
        }
        weighed.truncate(n);
        weighed.sort_by(better);
        weighed.into_iter().map(|(_, place)| place).collect()
    }

    /// wₛ score(s) of every combination of the model, scaled so that the largest is 1; all 0 if none is possible.
    pub(crate) fn weights(&self, row: &[f64]) -> Vec<f64> {
        let mut log_weights = vec![f64::NEG_INFINITY; self.model.typical().len()];
        for (entry, score) in self.entries.iter().zip(self.log_scores(row, None)) {
            log_weights[entry.place] = score + entry.log_weight;
        }
        exponentiate(&mut log_weights);
        log_weights
    }

    /// Draws from the mixture: a combination, or `None` if the sample is to be drawn from the rules' posterior.
    pub(crate) fn sample(&self, mixture: &Mixture, rng: &mut ChaCha8Rng) -> Option<Vec<usize>> {
        // Models without combinations must not consume random numbers here.
        let is_rest = mixture.shares.is_empty() || rng.random::<f64>() >= 1.0 - mixture.rest;
        let entry = if is_rest { None } else { draw(&mixture.shares, rng) }?;
        Some(self.model.typical()[self.entries[entry].place].categories().to_vec())
    }
}

/// For each label, the index of the category that most combinations have.
fn usual(model: &Model) -> Vec<usize> {
    let mut counts = vec![0; model.n_categories()];
    for combination in model.typical() {
        for (label, &category) in model.label_ids().zip(combination.categories()) {
            counts[model.block(label).start + category] += 1;
        }
    }
    let most = |label| model.block(label).rev().max_by_key(|&position| counts[position]);
    model.label_ids().map(|label| most(label).expect("labels have categories")).collect()
}
