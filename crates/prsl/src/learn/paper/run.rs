//! The optimization of one number of rules.

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::PaperLearner;
use super::adam::{Adam, Moments};
use super::objective::Objective;
use super::regularizer::Regularizer;
use super::rows::Rows;
use super::space::Space;
use crate::error::Result;
use crate::learn::watch::Watch;

/// Number of steps between two evaluations on the validation set.
pub(super) const EVALUATION_INTERVAL: usize = 20;
/// The smallest factor of the learning rate.
const LEAST_SCALE: f64 = 0.02;

/// An evaluation on the validation set.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// Number of steps made.
    pub step: usize,
    /// Mean joint log-likelihood of the batches since the last evaluation; `None` before the first step.
    pub training: Option<f64>,
    /// Mean joint log-likelihood of the validation set.
    pub validation: f64,
}

/// The state of an optimization between two steps: all that is needed to resume it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Run {
    pub(super) n_rules: usize,
    pub(super) step: usize,
    /// The inhibition probabilities, for each rule and category.
    pub(super) q: Vec<f64>,
    moments: Moments,
    /// The parameters to return: the best on the validation set, or with `literal` those of the last evaluation.
    pub(super) best: Vec<f64>,
    pub(super) best_validation: f64,
    best_step: usize,
    pub(super) curve: Vec<Evaluation>,
    /// Sum of the batches' log-likelihoods since the last evaluation.
    training: f64,
}

/// The data of an optimization.
pub(super) struct Data<'a> {
    pub(super) regularizer: &'a Regularizer,
    pub(super) train: &'a Rows,
    pub(super) valid: &'a Rows,
}

impl Run {
    /// Rules that each start on J₀ random labels with q from 0.9 to 1.
    pub(super) fn new(settings: &PaperLearner, n_rules: usize, space: &Space) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(settings.seed);
        let mut q = Vec::with_capacity(n_rules * space.n_categories());
        for _ in 0..n_rules {
            let mut labels: Vec<usize> = (0..space.n_labels()).collect();
            labels.shuffle(&mut rng);
            labels.truncate(settings.labels_per_rule);
            for (label, &size) in space.sizes.iter().enumerate() {
                let is_connected = labels.contains(&label);
                q.extend((0..size).map(|_| if is_connected { rng.random_range(0.9..1.0) } else { 1.0 }));
            }
        }
        Self {
            n_rules,
            step: 0,
            moments: Moments::new(q.len()),
            best: q.clone(),
            q,
            best_validation: f64::NEG_INFINITY,
            best_step: 0,
            curve: Vec::new(),
            training: 0.0,
        }
    }

    /// Whether all steps are made, or the validation set has not improved for too long.
    pub(super) fn is_done(&self, settings: &PaperLearner) -> bool {
        let patience = settings.patience.filter(|_| !settings.literal);
        let is_stalled = patience.is_some_and(|patience| self.step - self.best_step >= patience);
        !self.curve.is_empty() && (self.step >= settings.steps || is_stalled)
    }

    /// Whether the last step ended with an evaluation.
    pub(super) fn is_evaluated(&self) -> bool {
        self.curve.last().is_some_and(|evaluation| evaluation.step == self.step)
    }

    /// The state after the next step, or after the first evaluation; `None` if stopped.
    pub(super) fn next(
        &self,
        settings: &PaperLearner,
        objective: &mut Objective,
        data: &Data,
        watch: &mut Watch,
    ) -> Result<Option<Self>> {
        let mut next = self.clone();
        if self.curve.is_empty() {
            return Ok(next.evaluate(settings, objective, data.valid, watch).map(|()| next));
        }
        let batch = batch(settings, data.train.n_rows, self.step);
        let Some((value, mut gradient)) = objective.gradient(data.train, &batch, watch) else {
            return Ok(None);
        };
        next.training += value;
        let bounds = [settings.clip, 1.0];
        data.regularizer.add_gradient(&objective.space, &self.q, self.step, &mut gradient);
        if !settings.literal {
            remove_outward(&self.q, bounds, &mut gradient);
        }
        let adam = Adam { learning_rate: settings.learning_rate, betas: settings.betas, bounds };
        adam.step(&mut next.moments, &mut next.q, &gradient, self.scale(settings));
        data.regularizer.truncate(&objective.space, &mut next.q);
        objective.set(&next.q)?;
        next.step += 1;
        let is_due = next.step.is_multiple_of(EVALUATION_INTERVAL) || next.step >= settings.steps;
        if is_due && next.evaluate(settings, objective, data.valid, watch).is_none() {
            objective.set(&self.q)?;
            return Ok(None);
        }
        Ok(Some(next))
    }

    /// The factor of the learning rate: 1 in the first half of the steps, then it falls linearly. With `literal`, always 1.
    fn scale(&self, settings: &PaperLearner) -> f64 {
        if settings.literal {
            return 1.0;
        }
        let left = 1.0 - self.step as f64 / settings.steps as f64;
        (2.0 * left).clamp(LEAST_SCALE, 1.0)
    }

    fn evaluate(
        &mut self,
        settings: &PaperLearner,
        objective: &Objective,
        valid: &Rows,
        watch: &mut Watch,
    ) -> Option<()> {
        let validation = objective.value(valid, watch)?;
        let n_steps = self.curve.last().map(|last| self.step - last.step);
        let training = n_steps.map(|n_steps| self.training / n_steps as f64);
        self.training = 0.0;
        self.curve.push(Evaluation { step: self.step, training, validation });
        if settings.literal || validation > self.best_validation {
            (self.best_validation, self.best_step) = (validation, self.step);
            self.best.clone_from(&self.q);
        }
        Some(())
    }
}

/// Removes the parts of a gradient that point out of the bounds. ADAM would remember them.
fn remove_outward(q: &[f64], [low, high]: [f64; 2], gradient: &mut [f64]) {
    for (slope, q) in gradient.iter_mut().zip(q) {
        let is_outward = *slope > 0.0 && *q >= high || *slope < 0.0 && *q <= low;
        *slope = if is_outward { 0.0 } else { *slope };
    }
}

/// The rows of a step. Each epoch has a new order. It is a function of the step, so that a run can be resumed anywhere.
fn batch(settings: &PaperLearner, n_rows: usize, step: usize) -> Vec<usize> {
    let size = settings.batch.min(n_rows);
    let per_epoch = n_rows / size;
    let (epoch, place) = (step / per_epoch, step % per_epoch);
    let mut rows: Vec<usize> = (0..n_rows).collect();
    let mut rng = ChaCha8Rng::seed_from_u64(settings.seed);
    rng.set_stream(epoch as u64 + 1);
    rows.shuffle(&mut rng);
    rows[place * size..(place + 1) * size].to_vec()
}
