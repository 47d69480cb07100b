//! What typical combinations add to the answers of the rules alone.
//!
//! Let Z₀ and P₀ be the sum and the marginals of a row without combinations, score(s) = ∏ⱼ πⱼ(sⱼ) ∏ₖ φₖ(s) the weight of
//! a combination, and S(y) = 1 + Σₛ wₛ [y = s] the factor of all of them. Multiplying S out,
//!
//! ```text
//! Z          = Z₀ + Σₛ wₛ score(s)                                        (1)
//! P(lⱼ = m)  = (Z₀ P₀(lⱼ = m) + Σ_{s: sⱼ = m} wₛ score(s)) / Z             (2)
//! ```
//!
//! A posterior is thus a mixture of that of the rules and of single combinations, and so are its samples. The n best
//! assignments are among the n best without combinations and the combinations themselves:
//!
//! ```text
//! y neither of them  ⇒  n assignments weigh at least as much as y without S, and S ≥ 1 takes nothing from them    (3)
//! ```
//!
//! Every engine answers without combinations; what is here makes it the answer with them. `Enumeration` does without.
//! Checked in `tests/typical.rs`.

use std::ops::Range;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::sampler::{draw, exponentiate};
use crate::label::LabelId;
use crate::log_space::log_sum_exp;
use crate::model::Model;
use crate::posterior::{Engine, MostProbable};
use crate::rule::RuleId;

/// What is left of a sum after so much was taken away has lost digits, and is summed again.
const CANCELED: f64 = 1e-3;

/// A model's combinations, ready to be weighed for many rows.
///
/// They are kept as differences to the usual category of each label, the one that most of them have, so that
/// weighing one for a row takes as long as it has unusual categories.
pub(crate) struct Typical {
    model: Model,
    /// The position of each label's usual category among all categories.
    usual: Vec<usize>,
    entries: Vec<Entry>,
    /// Positions of an unusual category and of the usual one in its place.
    unusual: Vec<[usize; 2]>,
}

/// A combination of positive weight.
struct Entry {
    /// Its place among the model's combinations.
    place: usize,
    /// ln ∏ₖ φₖ(s).
    rules: LogProduct,
    unusual: Range<usize>,
}

/// A row's posterior as a mixture of that of the rules alone and of single combinations.
pub(crate) struct Mixture {
    /// ln Z.
    pub(crate) log_evidence: f64,
    /// Z₀ / Z.
    rest: f64,
    /// wₛ score(s) / Z; empty if there are no combinations.
    shares: Vec<f64>,
}

/// A product as a sum of logarithms that factors of 0 can be taken out of again.
#[derive(Clone, Copy, Debug, Default)]
struct LogProduct {
    log: f64,
    n_zero: usize,
}

impl LogProduct {
    fn multiply(&mut self, log_factor: f64) {
        if log_factor == f64::NEG_INFINITY {
            self.n_zero += 1;
        } else {
            self.log += log_factor;
        }
    }

    fn divide(&mut self, log_factor: f64) {
        if log_factor == f64::NEG_INFINITY {
            self.n_zero -= 1;
        } else {
            self.log -= log_factor;
        }
    }

    fn ln(&self) -> f64 {
        if self.n_zero > 0 { f64::NEG_INFINITY } else { self.log }
    }
}

impl Typical {
    pub(crate) fn new(model: &Model) -> Self {
        let usual = usual(model);
        let (mut entries, mut unusual) = (Vec::new(), Vec::new());
        for (place, combination) in model.typical().iter().enumerate() {
            if combination.weight() == 0.0 {
                continue;
            }
            let start = unusual.len();
            for (label, &category) in model.label_ids().zip(combination.categories()) {
                let (position, usual) = (model.block(label).start + category, usual[label.index()]);
                unusual.extend((position != usual).then_some([position, usual]));
            }
            let mut rules = LogProduct::default();
            model.rules().iter().for_each(|rule| rules.multiply(rule.weight(combination.categories()).ln()));
            entries.push(Entry { place, rules, unusual: start..unusual.len() });
        }
        Self { model: model.clone(), usual, entries, unusual }
    }

    /// The posterior of a row, of which the rules alone say that ln Z₀ is `log_rest`.
    pub(crate) fn mixture(&self, row: &[f64], log_rest: f64) -> Mixture {
        self.mixture_without(row, log_rest, None)
    }

    /// The same where one rule is left out.
    pub(crate) fn mixture_without(&self, row: &[f64], log_rest: f64, rule: Option<RuleId>) -> Mixture {
        if self.entries.is_empty() || log_rest == f64::NEG_INFINITY {
            return Mixture { log_evidence: log_rest, rest: 1.0, shares: Vec::new() };
        }
        let mut log_shares = self.log_scores(row, rule);
        for (share, entry) in log_shares.iter_mut().zip(&self.entries) {
            *share += self.model.typical()[entry.place].weight().ln();
        }
        log_shares.push(log_rest);
        let log_evidence = log_sum_exp(&log_shares); // (1)
        log_shares.iter_mut().for_each(|share| *share = (*share - log_evidence).exp());
        let rest = log_shares.pop().expect("just added");
        Mixture { log_evidence, rest, shares: log_shares }
    }

    /// Makes the marginals of the rules alone those of the mixture.
    pub(crate) fn mix(&self, mixture: &Mixture, marginals: &mut [f64]) {
        if mixture.shares.is_empty() {
            return;
        }
        let masses = self.masses(&mixture.shares);
        for (marginal, mass) in marginals.iter_mut().zip(masses) {
            *marginal = mixture.rest * *marginal + mass; // (2)
        }
        // What is certain is exactly 1.
        for label in self.model.label_ids() {
            let block = &mut marginals[self.model.block(label)];
            let total: f64 = block.iter().sum();
            if total > 0.0 {
                block.iter_mut().for_each(|marginal| *marginal /= total);
            }
        }
    }

    /// How much of the shares each category has.
    fn masses(&self, shares: &[f64]) -> Vec<f64> {
        let mut masses = vec![0.0; self.model.n_categories()];
        for (entry, share) in self.entries.iter().zip(shares) {
            for [position, _] in &self.unusual[entry.unusual.clone()] {
                masses[*position] += share;
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

    /// How much of the shares the usual category of a label has, without a difference.
    fn usual_mass(&self, label: LabelId, shares: &[f64]) -> f64 {
        let usual = self.usual[label.index()] - self.model.block(label).start;
        let has_usual =
            |entry: &Entry| self.model.typical()[entry.place].categories()[label.index()] == usual;
        let both = self.entries.iter().zip(shares);
        both.filter(|(entry, _)| has_usual(entry)).map(|(_, share)| share).sum()
    }

    /// ln score(s) of every entry, with one rule left out if asked.
    fn log_scores(&self, row: &[f64], without: Option<RuleId>) -> Vec<f64> {
        let log_row: Vec<f64> = row.iter().map(|belief| belief.ln()).collect();
        let mut usual = LogProduct::default();
        self.usual.iter().for_each(|&position| usual.multiply(log_row[position]));
        let score = |entry: &Entry| {
            let mut beliefs = usual;
            for &[position, usual] in &self.unusual[entry.unusual.clone()] {
                beliefs.divide(log_row[usual]);
                beliefs.multiply(log_row[position]);
            }
            beliefs.ln() + self.log_rules(entry, without)
        };
        self.entries.iter().map(score).collect()
    }

    fn log_rules(&self, entry: &Entry, without: Option<RuleId>) -> f64 {
        let mut rules = entry.rules;
        if let Some(rule) = without {
            let categories = self.model.typical()[entry.place].categories();
            rules.divide(self.model.rule(rule).weight(categories).ln());
        }
        rules.ln()
    }

    /// The `n` best explanations, given the `n` best without combinations, and the ln weight that none of the others
    /// exceeds without combinations, if that is known.
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
            if all[..n_found].iter().all(|it| it.assignment != assignment) {
                let log_weight = self.model.log_weight(row, assignment);
                let gap = bound.map(|bound| (bound - log_weight).max(0.0));
                all.push(MostProbable { assignment: assignment.to_vec(), log_weight, gap, engine });
            }
        }
        // Of equal ones those that were found without combinations come first.
        all.sort_by(|a, b| b.log_weight.total_cmp(&a.log_weight));
        all.truncate(n); // (3)
        all
    }

    /// An explanation whose weight is that of the rules alone, with the factor of combinations.
    fn with_factor(&self, row: &[f64], found: MostProbable) -> MostProbable {
        let log_factor = self.model.log_typical(&found.assignment);
        let log_weight = self.model.log_weight(row, &found.assignment);
        let gap = found.gap.map(|gap| (gap - log_factor).max(0.0));
        MostProbable { log_weight, gap, ..found }
    }

    /// The places of the `n` combinations of the largest weight, best first; impossible ones are left out.
    fn best(&self, row: &[f64], n: usize) -> Vec<usize> {
        let log_factor = |entry: &Entry| self.model.typical()[entry.place].log_factor();
        let scores = self.log_scores(row, None);
        let mut weighed: Vec<(f64, usize)> = scores
            .iter()
            .zip(&self.entries)
            .filter(|(score, _)| **score > f64::NEG_INFINITY)
            .map(|(score, entry)| (score + log_factor(entry), entry.place))
            .collect();
        let better = |a: &(f64, usize), b: &(f64, usize)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
        if n > 0 && n < weighed.len() {
            weighed.select_nth_unstable_by(n - 1, better);
        }
        weighed.truncate(n);
        weighed.sort_by(better);
        weighed.into_iter().map(|(_, place)| place).collect()
    }

    /// wₛ score(s) of every combination of the model, the largest 1; all 0 if none is possible.
    pub(crate) fn weights(&self, row: &[f64]) -> Vec<f64> {
        let mut log_weights = vec![f64::NEG_INFINITY; self.model.typical().len()];
        for (entry, score) in self.entries.iter().zip(self.log_scores(row, None)) {
            log_weights[entry.place] = score + self.model.typical()[entry.place].weight().ln();
        }
        exponentiate(&mut log_weights);
        log_weights
    }

    /// A combination as a sample of the mixture; `None` if the rules alone are to draw it.
    pub(crate) fn sample(&self, mixture: &Mixture, rng: &mut ChaCha8Rng) -> Option<Vec<usize>> {
        // Models without combinations draw as if there were none to be had.
        let is_rest = mixture.shares.is_empty() || rng.random::<f64>() >= 1.0 - mixture.rest;
        let entry = if is_rest { None } else { draw(&mixture.shares, rng) }?;
        Some(self.model.typical()[self.entries[entry].place].categories().to_vec())
    }
}

/// The position of the category that most combinations have, for each label.
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
