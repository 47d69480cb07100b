//! Rows for a given model: truths that follow its rules, and beliefs of simulated classifiers.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::LIMITS;
use crate::assignment::Assignment;
use crate::belief::{BeliefMatrix, Normalize};
use crate::calibrator::Calibrator;
use crate::error::{Error, Result};
use crate::evidence::Evidence;
use crate::infer::{Sampler, Sampling};
use crate::label::Label;
use crate::model::Model;

/// Truths and beliefs for a given model, such as a rule base that has no data yet.
///
/// # Derivation
///
/// A truth y is a joint sample of the model without beliefs. The classifier of label j sees one number per category,
/// where d is the strength, and ε is standard normal noise:
///
/// ```text
/// x(m) = d² [m = yⱼ] + d ε(m)        P(x | yⱼ = m) ∝ exp(x(m))                   (1)
/// b(m) ∝ prior(m) exp(x(m))          so b is P(yⱼ = m | x), without the rules     (2)
/// ```
///
/// The posterior of the model given all b is P(y | all x), so no program can predict these rows better than the model
/// itself. Checked in `simulated_rows_are_calibrated`.
///
/// Beliefs are rounded to three digits, and more for labels with many categories, such that they sum to 1. The same
/// settings always draw the same rows, and the first rows do not depend on the number of rows.
///
/// ```
/// use prsl::simulate::RowSimulation;
/// use prsl::{Engines, Model};
///
/// let model = Model::parse("label rain prior 0.2\nlabel wet prior 0.2\nrule 1: rain -> wet")?;
/// let sampler = Engines::new(&model).sampler()?;
/// let (truths, beliefs) = RowSimulation::default().draw(&sampler)?;
/// assert_eq!((truths.len(), beliefs.n_rows()), (100, 100));
/// assert!(truths.iter().all(|truth| *truth != [0, 1])); // never rain without wet
/// # Ok::<(), prsl::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowSimulation {
    /// Number of rows.
    pub n_rows: usize,
    /// Strength d of the classifiers: 0 knows the prior only. A yes/no label with an even prior is predicted right with
    /// probability Φ(d / √2): 0.76 for 1, 0.86 for 1.5, 0.92 for 2.
    pub strength: f64,
    /// The share of beliefs that are missing.
    pub missing: f64,
    /// Seed of the random numbers.
    pub seed: u64,
}

impl Default for RowSimulation {
    /// A hundred rows of classifiers that are right about six times in seven, without missing beliefs.
    fn default() -> Self {
        Self { n_rows: 100, strength: 1.5, missing: 0.0, seed: 1 }
    }
}

/// Largest strength. Above it, classifiers are always right in double precision.
const MAX_STRENGTH: f64 = 100.0;
/// Beliefs are multiples of 1 / `MIN_RESOLUTION`, or of a smaller power of ten for labels with many categories.
const MIN_RESOLUTION: usize = 1000;

impl RowSimulation {
    /// Draws truths by the sampler, and beliefs about the labels that have a classifier.
    ///
    /// Models with calibrators are refused, because the beliefs would have to be miscalibrated first. A model that leaves
    /// nothing possible is an error that names the rules in conflict.
    pub fn draw(&self, sampler: &Sampler) -> Result<(Vec<Assignment>, BeliefMatrix)> {
        let model = sampler.model();
        self.check(model)?;
        let sampling = Sampling { n_samples: self.n_rows, seed: self.seed, first_row: 0 };
        let truths = sampler.sample(&Evidence::new(), &sampling)?;
        let mut beliefs = BeliefMatrix::new(model);
        for (row, truth) in truths.iter().enumerate() {
            // Truths use the stream of row 0.
            let mut rng = sampling.generator(row + 1);
            beliefs.push(&self.cells(model, truth, &mut rng), Normalize::Never)?;
        }
        Ok((truths, beliefs))
    }

    /// One row of beliefs.
    fn cells(&self, model: &Model, truth: &Assignment, rng: &mut ChaCha8Rng) -> Vec<Option<f64>> {
        let mut cells = Vec::with_capacity(model.n_categories());
        for (id, label) in model.label_ids().zip(model.labels()) {
            let belief = self.belief(label, truth.category(id).index(), rng);
            let is_missing = rng.random::<f64>() < self.missing;
            let is_given = label.classifier().is_some() && !is_missing;
            cells.extend(belief.into_iter().map(|number| is_given.then_some(number)));
        }
        cells
    }

    /// The belief of a label's classifier, by (1) and (2).
    fn belief(&self, label: &Label, truth: usize, rng: &mut ChaCha8Rng) -> Vec<f64> {
        let d = self.strength;
        let seen = |category: usize| if category == truth { d * d } else { 0.0 } + d * normal(rng); // (1)
        let seen: Vec<f64> = (0..label.n_categories()).map(seen).collect();
        let largest = seen.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let prior = label.prior_or_uniform();
        let weights = prior.iter().zip(&seen).map(|(prior, seen)| prior * (seen - largest).exp()); // (2)
        rounded(&weights.collect::<Vec<_>>(), &prior)
    }

    fn check(&self, model: &Model) -> Result<()> {
        let setting = |setting, value, wanted| Err(Error::Setting { setting, value, wanted });
        if !(0.0..=MAX_STRENGTH).contains(&self.strength) {
            return setting("strength", self.strength, "a number from 0 to 100");
        }
        if !(0.0..=1.0).contains(&self.missing) {
            return setting("missing", self.missing, "a number from 0 to 1");
        }
        let numbers = self.n_rows as f64 * model.n_categories() as f64;
        if numbers > LIMITS[2] {
            return Err(Error::TooCostly {
                what: "the simulation".to_owned(),
                needed: format!("{numbers:.1e} numbers in its rows"),
                limit: format!("{:.0e}", LIMITS[2]),
                advice: "ask for fewer".to_owned(),
            });
        }
        match model.labels().iter().find(|label| *label.calibrator() != Calibrator::Identity) {
            None => Ok(()),
            Some(label) => Err(Error::Examples {
                problem: format!(
                    "label `{}` has a calibrator, and beliefs are drawn for models without; remove its `calibrate` line",
                    label.name()
                ),
            }),
        }
    }
}

/// A standard normal number (Box and Muller, 1958).
fn normal(rng: &mut ChaCha8Rng) -> f64 {
    let radius = (-2.0 * (1.0 - rng.random::<f64>()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.random::<f64>()).cos()
}

/// The weights, normalized and rounded. Categories of positive prior stay positive, and the sum is 1.
fn rounded(weights: &[f64], prior: &[f64]) -> Vec<f64> {
    // The largest of n weights has at least 10 n units, so that it can give up one unit for each of the others.
    let mut resolution = MIN_RESOLUTION;
    while resolution < 10 * weights.len() * weights.len() {
        resolution *= 10;
    }
    let sum: f64 = weights.iter().sum();
    let units = |(weight, prior): (&f64, &f64)| match *prior > 0.0 {
        true => ((weight / sum * resolution as f64).round() as usize).max(1),
        false => 0,
    };
    let mut units: Vec<usize> = weights.iter().zip(prior).map(units).collect();
    let largest = (0..units.len()).max_by_key(|&category| units[category]).expect("two categories or more");
    let others: usize = units.iter().sum::<usize>() - units[largest];
    units[largest] = resolution - others;
    units.into_iter().map(|units| units as f64 / resolution as f64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounded_beliefs_sum_to_1_and_keep_what_is_possible() {
        assert_eq!(rounded(&[1.0, 1.0, 1.0], &[0.3, 0.3, 0.4]), [0.333, 0.333, 0.334]);
        assert_eq!(rounded(&[1.0, 0.0, 1e-9], &[0.5, 0.0, 0.5]), [0.999, 0.0, 0.001]);
        let many = rounded(&[1e-300; 40].map(|tiny: f64| tiny), &[0.025; 40]);
        assert!(many.iter().all(|&belief| belief > 0.0));
        assert!((many.iter().sum::<f64>() - 1.0).abs() < 1e-9);
    }
}
