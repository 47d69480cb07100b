//! Priors for labels whose classifier is silent.
//!
//! Base rates live in the calibrators, which do not apply to empty cells. So a learned model has a prior for every label
//! with a classifier, such that the mean posterior of the label without its belief is the base rate of the label.
//!
//! # Derivation
//!
//! Z is linear in the belief of one label. So with the belief π(m) replaced by a prior u(m), the posterior is
//! proportional to u(m) C(m), where C(m) = P(m | x) / π(m) is the cavity message. One pass gives the messages of all
//! labels and rows. The prior solves mean(u C / Σ u C) = base rate by iterative scaling.

use super::examples::Examples;
use crate::belief::BeliefMatrix;
use crate::error::Result;
use crate::infer::Engines;
use crate::label::LabelId;
use crate::model::Model;

/// Maximum number of iterations. Each divides the error by a factor that depends on how strong the rules are.
const MAX_ITERATIONS: usize = 500;
/// Largest difference between mean posterior and base rate at which the iteration ends.
const TOLERANCE: f64 = 1e-5;
/// Maximum number of rows. The mean of 20,000 posteriors is accurate to 0.004.
const MAX_ROWS: usize = 20_000;
/// Weight of one further row with all categories equally probable, so that no prior is 0.
const SMOOTHING: f64 = 1.0;

/// The model with fitted priors of labels that have a classifier, or no prior, in the base.
pub(crate) fn with_priors(base: &Model, model: &Model, rows: &Examples) -> Result<Model> {
    let used: Vec<usize> =
        (0..rows.n_rows()).filter(|&row| rows.weights()[row] > 0.0).take(MAX_ROWS).collect();
    let beliefs = rows.select(&used).beliefs_for(model)?;
    let marginals = Engines::new(model).marginals()?.infer_batch(&beliefs)?;
    let mut builder = model.edit();
    for label in model.label_ids() {
        let declared = base.label(label);
        if declared.prior().is_some() || declared.classifier().is_none() {
            continue;
        }
        let rows_of_label = Label::new(rows, &used, label, &beliefs, |row| marginals.marginals(row));
        if let Some(prior) = rows_of_label.prior() {
            builder = builder.prior(declared.name(), prior);
        }
    }
    builder.build()
}

/// The cavity messages and truths about one label.
struct Label {
    n_categories: usize,
    /// Row by row.
    messages: Vec<f64>,
    weights: Vec<f64>,
    base_rate: Vec<f64>,
}

impl Label {
    fn new<'a>(
        rows: &Examples,
        used: &[usize],
        label: LabelId,
        beliefs: &BeliefMatrix,
        marginals: impl Fn(usize) -> Option<&'a [f64]>,
    ) -> Self {
        let block = beliefs.model().block(label);
        let n = block.len();
        let (mut messages, mut weights) = (Vec::new(), Vec::new());
        let mut base_rate = vec![SMOOTHING / n as f64; n];
        for (at, &row) in used.iter().enumerate() {
            let Some(truth) = rows.category(row, label) else { continue };
            let Some(marginals) = marginals(at) else { continue };
            let belief = beliefs.belief(at, label);
            if belief.contains(&0.0) {
                continue; // its message is unknown
            }
            messages.extend(marginals[block.clone()].iter().zip(belief).map(|(p, belief)| p / belief));
            weights.push(rows.weights()[row]);
            base_rate[truth.index()] += rows.weights()[row];
        }
        let total: f64 = base_rate.iter().sum();
        base_rate.iter_mut().for_each(|rate| *rate /= total);
        Self { n_categories: n, messages, weights, base_rate }
    }

    /// The prior, rounded to four digits; `None` if nothing is known about the label.
    fn prior(&self) -> Option<Vec<f64>> {
        if self.weights.is_empty() {
            return None;
        }
        let mut prior = self.base_rate.clone();
        for _ in 0..MAX_ITERATIONS {
            let mean = self.mean_posterior(&prior);
            let error =
                mean.iter().zip(&self.base_rate).map(|(mean, rate)| (mean - rate).abs()).fold(0.0, f64::max);
            if error < TOLERANCE {
                break;
            }
            for ((prior, mean), rate) in prior.iter_mut().zip(&mean).zip(&self.base_rate) {
                *prior *= rate / mean.max(f64::MIN_POSITIVE);
            }
            let total: f64 = prior.iter().sum();
            prior.iter_mut().for_each(|value| *value = (*value / total).max(1e-9));
        }
        Some(rounded(&prior))
    }

    fn mean_posterior(&self, prior: &[f64]) -> Vec<f64> {
        let mut mean = vec![0.0; self.n_categories];
        for (messages, weight) in self.messages.chunks(self.n_categories).zip(&self.weights) {
            let total: f64 = messages.iter().zip(prior).map(|(message, prior)| message * prior).sum();
            for ((slot, message), prior) in mean.iter_mut().zip(messages).zip(prior) {
                *slot += weight * message * prior / total;
            }
        }
        let total: f64 = self.weights.iter().sum();
        mean.iter().map(|value| value / total).collect()
    }
}

/// A distribution with four significant digits, except for the largest probability.
pub(crate) fn rounded(values: &[f64]) -> Vec<f64> {
    let largest = (0..values.len()).max_by(|&a, &b| values[a].total_cmp(&values[b])).unwrap_or(0);
    let mut rounded: Vec<f64> = values.iter().map(|value| significant(*value, 4)).collect();
    let others: f64 = (0..values.len()).filter(|&place| place != largest).map(|place| rounded[place]).sum();
    rounded[largest] = significant(1.0 - others, 12);
    rounded
}

/// A number rounded to some significant digits.
pub(crate) fn significant(value: f64, digits: usize) -> f64 {
    format!("{value:.*e}", digits - 1).parse().expect("a printed number is a number")
}
