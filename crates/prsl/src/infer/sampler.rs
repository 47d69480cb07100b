//! Joint samples from the posterior, by whichever engine a model allows.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::gibbs::{Gibbs, GibbsSettings};
use super::junction_tree::{JunctionTree, Limits};
use crate::belief::BeliefMatrix;
use crate::error::{Error, Result};
use crate::evidence::Evidence;
use crate::model::Model;
use crate::posterior::Engine;

/// Joint samples of one row: for each sample the category of every label, as positions in the labels' lists.
pub type Samples = Vec<Vec<usize>>;

/// How many samples to draw, and which.
///
/// A row's samples depend on the seed and on the row's place in its table alone. Whoever reads a table in parts
/// says with `first_row` where each part begins, and gets the same samples whatever the parts. The first samples
/// of a row are the same however many more are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampling {
    /// Samples for each row.
    pub n_samples: usize,
    /// Another seed draws other samples.
    pub seed: u64,
    /// The place of the first row in its table, from 0.
    pub first_row: u64,
}

impl Default for Sampling {
    /// One sample a row.
    fn default() -> Self {
        Self { n_samples: 1, seed: 1, first_row: 0 }
    }
}

impl Sampling {
    /// The source of randomness of a row, counted from the first: a stream of its own.
    pub(crate) fn generator(&self, row: usize) -> ChaCha8Rng {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(self.first_row.wrapping_add(row as u64));
        rng
    }
}

/// Joint samples for any model: exact where the junction tree fits the limits, by [`Gibbs`] sampling otherwise.
///
/// ```
/// use prsl::{Evidence, Limits, Model, Sampler, Sampling};
///
/// let model = Model::parse("label weather: sun, rain\nlabel ground: dry, wet\nrule 1: wet <- rain")?;
/// let sampler = Sampler::compile(&model, Limits::default())?;
/// let evidence = Evidence::new().belief("weather", [0.1, 0.9]);
/// let samples = sampler.sample(&evidence, &Sampling { n_samples: 1000, ..Sampling::default() })?;
/// assert!(!samples.contains(&vec![1, 0])); // never rain and dry
/// let rain = samples.iter().filter(|sample| sample[0] == 1).count();
/// assert!((750..880).contains(&rain)); // 0.45 / 0.55 of them, give or take
/// # Ok::<(), prsl::Error>(())
/// ```
pub struct Sampler {
    kind: Kind,
}

enum Kind {
    Exact(Box<JunctionTree>),
    Gibbs(Box<Gibbs>),
}

impl Sampler {
    /// Compiles a junction tree if that is within the limits, and prepares Gibbs sampling with its default settings
    /// if it is not.
    pub fn compile(model: &Model, limits: Limits) -> Result<Self> {
        let kind = match JunctionTree::compile_within(model, limits) {
            Ok(engine) if engine.is_careful() => Kind::Exact(Box::new(engine)),
            Ok(_) | Err(Error::TooCostly { .. }) => {
                Kind::Gibbs(Box::new(Gibbs::compile(model, GibbsSettings::default())))
            }
            Err(error) => return Err(error),
        };
        Ok(Self { kind })
    }

    /// Compiles a junction tree, or says what it would take if that is more than the limits allow.
    pub fn exact(model: &Model, limits: Limits) -> Result<Self> {
        let engine = JunctionTree::compile_within(model, limits)?;
        engine.careful()?;
        Ok(Self { kind: Kind::Exact(Box::new(engine)) })
    }

    /// The model it was compiled from.
    pub fn model(&self) -> &Model {
        match &self.kind {
            Kind::Exact(engine) => engine.model(),
            Kind::Gibbs(engine) => engine.model(),
        }
    }

    /// Which engine draws: [`Engine::JunctionTree`] or [`Engine::Gibbs`].
    pub fn engine(&self) -> Engine {
        match &self.kind {
            Kind::Exact(_) => Engine::JunctionTree,
            Kind::Gibbs(_) => Engine::Gibbs,
        }
    }

    /// Samples for one instance.
    pub fn sample(&self, evidence: &Evidence, sampling: &Sampling) -> Result<Samples> {
        self.sample_row(&self.model().row(evidence)?, sampling)
    }

    /// The same for a row of completed beliefs; an impossible row is an error that names the rules in conflict.
    pub fn sample_row(&self, row: &[f64], sampling: &Sampling) -> Result<Samples> {
        match &self.kind {
            Kind::Exact(engine) => engine.sample_row(row, sampling)?.ok_or_else(|| {
                let name = |rule| self.model().rule_name(rule);
                Error::Impossible { rules: engine.conflict(row).into_iter().map(name).collect() }
            }),
            Kind::Gibbs(engine) => engine.sample_row(row, sampling),
        }
    }

    /// Samples for every row: `None` where the row is impossible, an error where not even that could be found out.
    pub fn sample_batch(&self, rows: &BeliefMatrix, sampling: &Sampling) -> Vec<Result<Option<Samples>>> {
        let possible = |samples: Result<Samples>| match samples {
            Ok(samples) => Ok(Some(samples)),
            Err(Error::Impossible { .. }) => Ok(None),
            Err(error) => Err(error),
        };
        match &self.kind {
            Kind::Exact(engine) => {
                let samples = engine.sample_batch(rows, sampling).expect("it was compiled to be careful");
                samples.into_iter().map(Ok).collect()
            }
            Kind::Gibbs(engine) => engine.sample_batch(rows, sampling).into_iter().map(possible).collect(),
        }
    }
}

/// The place of one of the weights, drawn in proportion to them; `None` if none is positive.
pub(crate) fn draw(weights: &[f64], rng: &mut ChaCha8Rng) -> Option<usize> {
    let total: f64 = weights.iter().sum();
    let mut left = rng.random::<f64>() * total;
    let mut drawn = None;
    for (place, &weight) in weights.iter().enumerate() {
        // Rounding may leave a rest: then it is the last one that can be.
        if weight > 0.0 {
            drawn = Some(place);
            left -= weight;
            if left < 0.0 {
                break;
            }
        }
    }
    drawn
}

/// Turns ln weights into weights, the largest 1.
pub(crate) fn exponentiate(log_weights: &mut [f64]) {
    let largest = log_weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if largest > f64::NEG_INFINITY {
        log_weights.iter_mut().for_each(|weight| *weight = (*weight - largest).exp());
    } else {
        log_weights.fill(0.0);
    }
}

/// The category of a label that is in a state, drawn in proportion to its belief.
pub(crate) fn draw_category(
    beliefs: &[f64],
    of_category: &[usize],
    state: usize,
    rng: &mut ChaCha8Rng,
) -> usize {
    let belief = |(&belief, &of): (&f64, &usize)| if of == state { belief } else { 0.0 };
    let weights: Vec<f64> = beliefs.iter().zip(of_category).map(belief).collect();
    draw(&weights, rng).expect("a state is drawn for the belief in its categories")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_weight_is_never_drawn() {
        let mut rng = Sampling::default().generator(0);
        assert_eq!(draw(&[], &mut rng), None);
        assert_eq!(draw(&[0.0, 0.0], &mut rng), None);
        for _ in 0..1000 {
            assert_eq!(draw(&[0.0, 5e-324, 0.0], &mut rng), Some(1));
        }
        let mut log_weights = [f64::NEG_INFINITY, -1000.0, -1000.0];
        exponentiate(&mut log_weights);
        assert_eq!(log_weights, [0.0, 1.0, 1.0]);
        let ones = (0..10_000).filter(|_| draw(&log_weights, &mut rng) == Some(1)).count();
        assert!((4700..5300).contains(&ones), "{ones}"); // six standard deviations
    }
}
