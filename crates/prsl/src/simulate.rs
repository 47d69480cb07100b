//! Random models and beliefs of any size, and random rows for a given model.

mod rows;

use rand::seq::SliceRandom;
use rand::seq::index::sample;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::belief::{BeliefMatrix, Normalize};
use crate::error::{Error, Result};
use crate::label::{CategoryId, Label, LabelId};
use crate::model::Model;
use crate::noisy_or::{Inhibition, NoisyOr};
use crate::rule::{Body, Rule};
pub use rows::RowSimulation;

/// The simulation study of the paper: its distributions and sizes.
///
/// ```text
/// labels    2, 3 or 4 categories each
/// rules     noisy-ors of probability 1 over 2 to 5 categories, drawn from those of all labels without replacement;
///           inhibition probabilities with the density 2(1 − x)
/// beliefs   Dirichlet(1, …, 1): uniform among all distributions
/// ```
///
/// The same settings always draw the same model and the same rows.
///
/// ```
/// use prsl::simulate::Simulation;
///
/// let (model, rows) = Simulation { n_labels: 30, n_rules: 30, ..Simulation::default() }.draw()?;
/// assert_eq!((model.labels().len(), model.rules().len(), rows.n_rows()), (30, 30, 100));
/// # Ok::<(), prsl::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Simulation {
    /// Number of labels.
    pub n_labels: usize,
    /// Number of rules.
    pub n_rules: usize,
    /// Number of rows of beliefs.
    pub n_rows: usize,
    /// Seed of the random numbers.
    pub seed: u64,
}

impl Default for Simulation {
    /// Ten labels, ten rules, a hundred rows.
    fn default() -> Self {
        Self { n_labels: 10, n_rules: 10, n_rows: 100, seed: 1 }
    }
}

/// Minimum and maximum number of categories of a label.
const CATEGORIES: std::ops::RangeInclusive<usize> = 2..=4;
/// Minimum and maximum number of categories that a rule names, if there are enough.
const NAMED: std::ops::RangeInclusive<usize> = 2..=5;
/// Maximum product of categories and rules for which each rule shuffles all categories. This takes a few seconds.
/// Larger models are drawn by another method; changing the method for smaller ones would change their models.
const MAX_SHUFFLED: f64 = 4e8;
/// Maximum numbers of labels, of rules, and of values in all rows.
const LIMITS: [f64; 3] = [1e6, 1e6, 1e9];

impl Simulation {
    /// Draws a model and rows of beliefs for it.
    pub fn draw(&self) -> Result<(Model, BeliefMatrix)> {
        self.check()?;
        self.draw_from(&mut ChaCha8Rng::seed_from_u64(self.seed))
    }

    fn draw_from(&self, rng: &mut ChaCha8Rng) -> Result<(Model, BeliefMatrix)> {
        let sizes: Vec<usize> = (0..self.n_labels).map(|_| rng.random_range(CATEGORIES)).collect();
        let all: Vec<(usize, usize)> =
            sizes.iter().enumerate().flat_map(|(label, &size)| (0..size).map(move |c| (label, c))).collect();
        let is_large = all.len() as f64 * self.n_rules as f64 > MAX_SHUFFLED;
        let mut builder = Model::builder();
        for (label, &size) in sizes.iter().enumerate() {
            let categories = (0..size).map(|category| format!("L{label}_{category}"));
            builder = builder.add_label(Label::new(format!("L{label}"), categories));
        }
        for _ in 0..self.n_rules {
            let body = Body::NoisyOr(noisy_or(&all, is_large, rng));
            builder = builder.add_rule(Rule::new(1.0, body));
        }
        let model = builder.build()?;
        let mut rows = BeliefMatrix::new(&model);
        for _ in 0..self.n_rows {
            // Exponential variables divided by their sum are uniform on the simplex.
            let cells: Vec<_> = all.iter().map(|_| Some(-(1.0 - rng.random::<f64>()).ln())).collect();
            rows.push(&cells, Normalize::Always)?;
        }
        Ok((model, rows))
    }

    /// Maximum memory of the rows, in bytes.
    pub fn max_bytes(&self) -> f64 {
        self.n_rows as f64 * self.n_labels as f64 * (*CATEGORIES.end() * size_of::<f64>()) as f64
    }

    fn check(&self) -> Result<()> {
        if self.n_labels == 0 && self.n_rules > 0 {
            return Err(Error::NothingToSimulate { n_rules: self.n_rules });
        }
        let numbers = self.n_rows as f64 * self.n_labels as f64 * *CATEGORIES.end() as f64;
        let wanted = [
            (self.n_labels as f64, "labels"),
            (self.n_rules as f64, "rules"),
            (numbers, "numbers in its rows"),
        ];
        match wanted.into_iter().zip(LIMITS).find(|((n, _), limit)| n > limit) {
            None => Ok(()),
            Some(((n, what), limit)) => Err(Error::TooCostly {
                what: "the simulation".to_owned(),
                needed: format!("up to {n:.1e} {what}"),
                limit: format!("{limit:.0e}"),
                advice: "ask for fewer".to_owned(),
            }),
        }
    }
}

/// A noisy-or over random categories. The density 2(1 − x) is that of 1 − √u for uniform u.
fn noisy_or(categories: &[(usize, usize)], is_large: bool, rng: &mut ChaCha8Rng) -> NoisyOr {
    let drawn = if is_large { sample_distinct(categories, rng) } else { first_shuffled(categories, rng) };
    let mut inhibitions = Vec::with_capacity(drawn.len());
    for (label, category) in drawn {
        inhibitions.push(Inhibition {
            label: LabelId::new(label),
            category: CategoryId::new(category),
            probability: 1.0 - rng.random::<f64>().sqrt(),
        });
    }
    NoisyOr::new(inhibitions)
}

/// Random categories, taken from a shuffled list of all.
fn first_shuffled(categories: &[(usize, usize)], rng: &mut ChaCha8Rng) -> Vec<(usize, usize)> {
    let mut drawn = categories.to_vec();
    drawn.shuffle(rng);
    drawn.truncate(rng.random_range(NAMED));
    drawn
}

/// Random categories, in time that does not depend on the number of all categories.
fn sample_distinct(categories: &[(usize, usize)], rng: &mut ChaCha8Rng) -> Vec<(usize, usize)> {
    let n = rng.random_range(NAMED).min(categories.len());
    sample(rng, categories.len(), n).into_iter().map(|place| categories[place]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shuffling all categories for every rule took time proportional to labels times rules.
    #[test]
    fn the_work_of_drawing_is_bounded() {
        let n_words = |n: usize| {
            let mut rng = ChaCha8Rng::seed_from_u64(1);
            let simulation = Simulation { n_labels: n, n_rules: n, n_rows: 2, seed: 1 };
            simulation.draw_from(&mut rng).expect("it can be drawn");
            rng.get_word_pos() as f64
        };
        // A number takes two words. Rows have up to four categories per label, and rules up to five numbers.
        assert!(n_words(5000) <= 2.0 * MAX_SHUFFLED, "{}", n_words(5000));
        assert!(n_words(20_000) <= 50.0 * 20_000.0, "{}", n_words(20_000));
    }
}
