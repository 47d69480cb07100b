//! The way uphill: projected ADAM on minibatches, with an eye on rows that are not learned from.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::adam::{Adam, Memory, Range};
use super::objective::Rows;
use super::task::{Candidate, Task};
use crate::error::Result;

/// Parameters as they start, and what keeps them in place.
#[derive(Default)]
pub(crate) struct Start {
    pub(crate) parameters: Vec<f64>,
    pub(crate) ranges: Vec<Range>,
    pub(crate) pulls: Vec<Pull>,
}

/// What is taken from the objective for a parameter: strength · (x − to)² + slope · x.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pull {
    pub(crate) to: f64,
    pub(crate) strength: f64,
    pub(crate) slope: f64,
}

impl Pull {
    pub(crate) const NONE: Self = Self { to: 0.0, strength: 0.0, slope: 0.0 };
}

impl Start {
    /// Adds a parameter; its number.
    pub(crate) fn add(&mut self, value: f64, range: Range, pull: Pull) -> usize {
        self.parameters.push(value);
        self.ranges.push(range);
        self.pulls.push(pull);
        self.parameters.len() - 1
    }
}

/// How far and how fast.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    pub(crate) steps: usize,
    pub(crate) batch: usize,
    pub(crate) seed: u64,
    /// The climb ends when the validation rows have not gained for so many steps.
    pub(crate) patience: usize,
}

/// Steps between two looks at the validation rows.
pub const LOOK: usize = 20;

/// One look at the validation rows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Look {
    /// Steps taken.
    pub step: usize,
    /// The mean joint log-likelihood of the training rows since the look before.
    pub training: Option<f64>,
    /// The mean joint log-likelihood of the validation rows.
    pub validation: f64,
}

/// How far a climb has come: all that is needed to go on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Climb {
    pub(crate) candidate: Candidate,
    pub(crate) step: usize,
    pub(crate) parameters: Vec<f64>,
    memory: Memory,
    /// The parameters that were best on the validation rows, and how good they were.
    pub(crate) best: Vec<f64>,
    pub(crate) best_validation: f64,
    best_step: usize,
    pub(crate) curve: Vec<Look>,
}

impl Climb {
    pub(crate) fn new(candidate: Candidate, start: &Start) -> Self {
        Self {
            candidate,
            step: 0,
            parameters: start.parameters.clone(),
            memory: Memory::new(start.parameters.len()),
            best: start.parameters.clone(),
            best_validation: f64::NEG_INFINITY,
            best_step: 0,
            curve: Vec::new(),
        }
    }

    /// Goes on to the next look at the validation rows; `false` if there is no further to go.
    pub(crate) fn go_on(&mut self, task: &mut Task, pace: Pace, [train, valid]: [&Rows; 2]) -> Result<bool> {
        task.settle(&mut self.parameters)?;
        if self.curve.is_empty() {
            self.look(task, valid, None);
        }
        if self.is_done(pace) {
            return Ok(false);
        }
        let mut gradient = vec![0.0; self.parameters.len()];
        let (mut sum, mut n_steps) = (0.0, 0.0);
        let end = (self.step + LOOK).min(pace.steps);
        while self.step < end {
            let batch = batch(train.n_rows, pace, self.step);
            gradient.fill(0.0);
            sum += task.gradient(&self.parameters, self.step, train, &batch, &mut gradient);
            n_steps += 1.0;
            // Full pace in the first half, then slower and slower.
            let left = 1.0 - self.step as f64 / pace.steps as f64;
            let pace = (2.0 * left).clamp(0.02, 1.0);
            Adam::default().step(&mut self.memory, &mut self.parameters, &gradient, &task.start.ranges, pace);
            task.settle(&mut self.parameters)?;
            self.step += 1;
        }
        self.look(task, valid, Some(sum / n_steps));
        Ok(!self.is_done(pace))
    }

    fn is_done(&self, pace: Pace) -> bool {
        self.step >= pace.steps || self.step - self.best_step >= pace.patience
    }

    /// Looks at the validation rows.
    pub(crate) fn look(&mut self, task: &Task, valid: &Rows, training: Option<f64>) {
        let validation = task.problem.mean(&self.parameters, valid);
        self.curve.push(Look { step: self.step, training, validation });
        if validation > self.best_validation {
            (self.best_validation, self.best_step) = (validation, self.step);
            self.best.clone_from(&self.parameters);
        }
    }
}

/// The rows of a step: all rows in turn, in a new order each time around. A function of the step alone, so that a climb can be
/// taken up again anywhere.
fn batch(n_rows: usize, pace: Pace, step: usize) -> Vec<usize> {
    let size = pace.batch.min(n_rows);
    let per_round = n_rows / size;
    let (round, place) = (step / per_round, step % per_round);
    let mut rows: Vec<usize> = (0..n_rows).collect();
    let mut rng = ChaCha8Rng::seed_from_u64(pace.seed);
    rng.set_stream(round as u64 + 1);
    rows.shuffle(&mut rng);
    rows[place * size..(place + 1) * size].to_vec()
}
