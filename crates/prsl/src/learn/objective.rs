//! The penalized likelihood of rows, and its gradient.
//!
//! # Derivation
//!
//! With w = ln(p / (1 − p)), a rule multiplies an assignment by p exp(−w s), where s is 1 if the rule is violated. For a
//! noisy-or, s stands for its silence. A row with the known labels l′ has the log-likelihood
//!
//! ```text
//! ln Z(x, L′ = l′) − ln Z(x)
//! ```
//!
//! and p cancels. So, with the expectations of both terms,
//!
//! ```text
//! ∂/∂wₖ = E[sₖ | x] − E[sₖ | x, l′]        ∂/∂ln πⱼ(m) = P(lⱼ = m | x, l′) − P(lⱼ = m | x)
//! ```
//!
//! If all labels are known, the first term is a product, and its expectations are what is known. Checked against central
//! differences in `tests`.

use rayon::prelude::*;

use super::data::{Calibration, Known};
use super::feature::Feature;
use super::problem::{BLOCK, Compiled, Problem};
use crate::infer::expectations::CHUNK;
use crate::infer::weighted::Weighted;

/// Rate of the exponential prior of rule weights: a rule must be violated at least once less than expected.
pub(crate) const RATE: f64 = 1.0;
/// Precision of the normal prior of rule weights: a standard deviation of 3, so weights above 7 (p = 0.999) are rare.
pub(crate) const PRECISION: f64 = 1.0 / 9.0;
/// The value of the objective, and its gradient.
#[derive(Clone, Debug)]
pub(crate) struct Point {
    /// Negative penalized log-likelihood.
    pub(crate) value: f64,
    pub(crate) gradient: Vec<f64>,
    /// Diagonal of the Fisher information with the penalties.
    pub(crate) curvature: Vec<f64>,
    /// The log-likelihood without penalties.
    pub(crate) log_likelihood: f64,
    /// The expected number of violations of each learned rule.
    pub(crate) expected: Vec<f64>,
}

impl Problem {
    /// The objective at some parameters.
    pub(crate) fn point(&self, compiled: &mut Compiled, parameters: &[f64]) -> Point {
        self.reweigh(&mut compiled.engine, parameters);
        let n_fixed = self.n_fixed();
        let mut point = self.penalties(parameters);
        // Complete rows: what is known, weighed by the rules.
        for (place, &weight) in parameters[n_fixed..].iter().enumerate() {
            point.log_likelihood -= weight * compiled.broken[place];
            point.gradient[n_fixed + place] += compiled.broken[place];
        }
        self.add_free_rules(parameters, &mut point);
        point.log_likelihood += self.log_base;
        let n_base = self.model.rules().len();
        let mut expected = vec![0.0; n_base + compiled.broken.len()];
        for start in (0..self.data.n_rows()).step_by(BLOCK) {
            let rows: Vec<usize> = (start..self.data.n_rows().min(start + BLOCK)).collect();
            self.add_block(&compiled.engine, parameters, &rows, &mut point, &mut expected);
        }
        let log_p: f64 = parameters[n_fixed..].iter().map(|&weight| log_sigmoid(weight)).sum();
        point.log_likelihood += self.complete_weight() * log_p;
        self.finish(parameters, &expected, compiled.broken.len(), &mut point);
        point
    }

    /// The penalties, with their gradient and curvature.
    fn penalties(&self, parameters: &[f64]) -> Point {
        let (fixed, weights) = parameters.split_at(self.n_fixed());
        let mut point = Point {
            value: 0.0,
            gradient: Vec::with_capacity(parameters.len()),
            curvature: Vec::with_capacity(parameters.len()),
            log_likelihood: 0.0,
            expected: Vec::new(),
        };
        for (&parameter, ridge) in fixed.iter().zip(&self.ridges) {
            let distance = parameter - ridge.center;
            point.value += ridge.strength / 2.0 * distance * distance;
            point.gradient.push(ridge.strength * distance);
            point.curvature.push(ridge.strength);
        }
        for &weight in weights {
            point.value += RATE * weight + PRECISION / 2.0 * weight * weight;
            point.gradient.push(RATE + PRECISION * weight);
            point.curvature.push(PRECISION);
        }
        point
    }

    /// Adds the base rules whose probability is learned, for complete rows.
    fn add_free_rules(&self, parameters: &[f64], point: &mut Point) {
        for (place, silences) in self.silences.iter().enumerate() {
            let at = self.data.n_calibration_parameters + place;
            let p = sigmoid(parameters[at]);
            for (row, &silence) in self.complete().zip(silences) {
                let (silent, fired) = ((1.0 - p) * silence, p * (1.0 - silence));
                point.log_likelihood += self.data.weights[row] * (silent + fired).ln();
                point.gradient[at] += self.data.weights[row] * silent / (silent + fired);
            }
        }
    }

    /// Adds a block of rows, except for the factors of rules in complete rows. `expected` gets the violations of all rules.
    fn add_block(
        &self,
        engine: &Weighted,
        parameters: &[f64],
        rows: &[usize],
        point: &mut Point,
        expected: &mut [f64],
    ) {
        let width = self.data.width;
        let values = self.values(parameters, rows);
        let weights = &self.data.weights[rows[0]..rows[0] + rows.len()];
        let free = engine.expectations(&self.rows(&values, weights));
        expected.iter_mut().zip(&free.violated).for_each(|(sum, count)| *sum += count);
        // The second pass of rows that are known in part.
        let partial: Vec<usize> =
            (0..rows.len()).filter(|&at| self.data.known[rows[at]] == Known::Some).collect();
        let of_partial: Vec<f64> =
            partial.iter().flat_map(|at| &values[at * width..(at + 1) * width]).copied().collect();
        let numbers: Vec<usize> = partial.iter().map(|&at| rows[at]).collect();
        let clamped = self.clamped(&of_partial, &numbers);
        let of_weights: Vec<f64> = numbers.iter().map(|&row| self.data.weights[row]).collect();
        let given = engine.expectations(&self.rows(&clamped, &of_weights));
        self.add_counts(&given.violated, point);
        let mut place_of = vec![usize::MAX; rows.len()];
        partial.iter().enumerate().for_each(|(place, &at)| place_of[at] = place);
        let chunks: Vec<Sums> = (0..rows.len())
            .into_par_iter()
            .step_by(CHUNK)
            .map(|start| {
                let mut sums = Sums::new(self.data.n_calibration_parameters);
                for at in start..rows.len().min(start + CHUNK) {
                    let values = &values[at * width..(at + 1) * width];
                    let marginals = &free.marginals[at * width..(at + 1) * width];
                    let (log_given, known) = match place_of[at] {
                        usize::MAX => (self.log_belief(rows[at], values), None),
                        place => {
                            let marginals = &given.marginals[place * width..(place + 1) * width];
                            (given.log_evidence[place], Some(marginals))
                        }
                    };
                    sums.log_likelihood += weights[at] * (log_given - free.log_evidence[at]);
                    self.add_row(rows[at], values, marginals, known, &mut sums);
                }
                sums
            })
            .collect();
        for sums in chunks {
            point.log_likelihood += sums.log_likelihood;
            point.gradient.iter_mut().zip(sums.gradient).for_each(|(sum, part)| *sum += part);
            point.curvature.iter_mut().zip(sums.curvature).for_each(|(sum, part)| *sum += part);
        }
    }

    /// Adds the expected violations of rows that are known in part, given what is known.
    fn add_counts(&self, violated: &[f64], point: &mut Point) {
        let n_base = self.model.rules().len();
        for (place, &rule) in self.free_rules.iter().enumerate() {
            point.gradient[self.data.n_calibration_parameters + place] += violated[rule];
        }
        let n_fixed = self.n_fixed();
        for (slot, count) in point.gradient[n_fixed..].iter_mut().zip(&violated[n_base..]) {
            *slot += count;
        }
    }

    /// ln of the belief in the truth of a complete row.
    fn log_belief(&self, row: usize, values: &[f64]) -> f64 {
        let truth = |(label, block): (usize, &std::ops::Range<usize>)| {
            values[block.start + self.data.truth(row, label).expect("the row is complete")].ln()
        };
        self.data.blocks.iter().enumerate().map(truth).sum()
    }

    /// Adds one row's derivatives in the calibration parameters, and their curvature.
    fn add_row(&self, row: usize, values: &[f64], marginals: &[f64], known: Option<&[f64]>, sums: &mut Sums) {
        let weight = self.data.weights[row];
        let mut slopes: Vec<f64> = marginals.iter().map(|marginal| weight * marginal).collect();
        for (label, block) in self.data.blocks.iter().enumerate() {
            match (known, self.data.truth(row, label)) {
                (_, Some(truth)) => slopes[block.start + truth] -= weight,
                (Some(known), None) => block.clone().for_each(|at| slopes[at] -= weight * known[at]),
                (None, None) => unreachable!("the row is complete"),
            }
        }
        self.data.add_gradient(row, &slopes, &mut sums.gradient);
        for (label, block) in self.data.blocks.iter().enumerate() {
            let Some(logs) = self.data.log_of(row, label) else { continue };
            let logs = &*logs;
            let values = &values[block.clone()];
            match self.data.calibrations[label] {
                Calibration::Given => {}
                Calibration::Platt(at) => {
                    let variance = weight * values[0] * values[1];
                    sums.curvature[at] += variance * (logs[0] - logs[1]).powi(2);
                    sums.curvature[at + 1] += variance;
                }
                Calibration::Scaled(at) => {
                    sums.curvature[at] += weight * variance(values, logs);
                    add_variances(values, weight, &mut sums.curvature[at + 1..]);
                }
                Calibration::Biased(at) => add_variances(values, weight, &mut sums.curvature[at..]),
                Calibration::Tempered(at) => sums.curvature[at] += weight * variance(values, logs),
                Calibration::Mixed(at) => {
                    let n = values.len();
                    for (category, p) in values.iter().enumerate() {
                        let row = &mut sums.curvature[at + category * n..at + (category + 1) * n];
                        let of_category = weight * p * (1.0 - p);
                        row.iter_mut().zip(logs).for_each(|(slot, log)| *slot += of_category * log * log);
                    }
                    add_variances(values, weight, &mut sums.curvature[at + n * n..]);
                }
            }
        }
    }

    /// Subtracts what the model expects, and adds the curvature of the weights.
    fn finish(&self, parameters: &[f64], expected: &[f64], n_features: usize, point: &mut Point) {
        let (n_base, n_rows) = (self.model.rules().len(), self.data.weight().max(f64::MIN_POSITIVE));
        let first = self.data.n_calibration_parameters;
        let rules = self.free_rules.iter().copied().chain(n_base..n_base + n_features);
        for (place, rule) in rules.enumerate() {
            let count = expected[rule];
            point.gradient[first + place] -= count;
            point.curvature[first + place] += (count * (1.0 - count / n_rows)).max(0.0);
        }
        point.expected = expected[n_base..].to_vec();
        point.value -= point.log_likelihood;
        debug_assert_eq!(parameters.len(), point.gradient.len());
    }

    /// ln of the product of all rules' factors for an assignment.
    pub(crate) fn log_rules(&self, features: &[Feature], parameters: &[f64], assignment: &[usize]) -> f64 {
        let (fixed, weights) = parameters.split_at(self.n_fixed());
        let free = |rule: usize| self.free_rules.iter().position(|&free| free == rule);
        let base = self.model.rules().iter().enumerate().map(|(rule, body)| match free(rule) {
            None => body.log_weight_at(assignment),
            Some(place) => {
                let p = sigmoid(fixed[self.data.n_calibration_parameters + place]);
                body.clone().with_probability(p).log_weight_at(assignment)
            }
        });
        let learned = features.iter().zip(weights).map(|(feature, &weight)| {
            let is_violated = feature.is_violated(|label| assignment[label], &self.counted);
            log_sigmoid(if is_violated { -weight } else { weight })
        });
        base.sum::<f64>() + learned.sum::<f64>()
    }

    /// The objective of independent labels, without rules.
    pub(crate) fn independent_point(&self, parameters: &[f64]) -> Point {
        let mut point = self.penalties(parameters);
        let width = self.data.width;
        for start in (0..self.data.n_rows()).step_by(BLOCK) {
            let rows: Vec<usize> = (start..self.data.n_rows().min(start + BLOCK)).collect();
            let values = self.values(parameters, &rows);
            for (values, &row) in values.chunks(width).zip(&rows) {
                let mut sums = Sums::new(self.data.n_calibration_parameters);
                for (label, block) in self.data.blocks.iter().enumerate() {
                    if let Some(truth) = self.data.truth(row, label) {
                        point.log_likelihood += self.data.weights[row] * values[block.start + truth].ln();
                    }
                }
                // Labels of unknown truth have no part in the gradient.
                self.add_row(row, values, values, Some(values), &mut sums);
                point.gradient.iter_mut().zip(sums.gradient).for_each(|(sum, part)| *sum += part);
                point.curvature.iter_mut().zip(sums.curvature).for_each(|(sum, part)| *sum += part);
            }
        }
        point.value -= point.log_likelihood;
        point
    }

    fn complete_weight(&self) -> f64 {
        self.complete().map(|row| self.data.weights[row]).sum()
    }
}

/// Sums over a chunk of rows.
struct Sums {
    log_likelihood: f64,
    gradient: Vec<f64>,
    curvature: Vec<f64>,
}

impl Sums {
    fn new(n: usize) -> Self {
        Self { log_likelihood: 0.0, gradient: vec![0.0; n], curvature: vec![0.0; n] }
    }
}

/// The variance of logs under probabilities.
fn variance(probabilities: &[f64], logs: &[f64]) -> f64 {
    let mean: f64 = probabilities.iter().zip(logs).map(|(p, log)| p * log).sum();
    probabilities.iter().zip(logs).map(|(p, log)| p * (log - mean).powi(2)).sum()
}

fn add_variances(values: &[f64], weight: f64, curvature: &mut [f64]) {
    curvature.iter_mut().zip(values).for_each(|(slot, p)| *slot += weight * p * (1.0 - p));
}

/// 1 / (1 + e⁻ˣ).
pub(crate) fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// ln of [`sigmoid`], without overflow.
fn log_sigmoid(x: f64) -> f64 {
    if x > 0.0 { -(-x).exp().ln_1p() } else { x - x.exp().ln_1p() }
}
