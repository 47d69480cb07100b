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

use std::ops::Range;

use rayon::prelude::*;

use super::data::{Calibration, Known};
use super::feature::Feature;
use super::problem::{Compiled, Problem};
use super::question::Question;
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

/// Where the sums of a chunk behind the objective are in their list.
pub(crate) struct Layout {
    n_calibration: usize,
    n_free: usize,
    n_rules: usize,
}

impl Layout {
    pub(crate) fn new(problem: &Problem, n_features: usize) -> Self {
        Self {
            n_calibration: problem.data.n_calibration_parameters,
            n_free: problem.free_rules.len(),
            n_rules: problem.model.rules().len() + n_features,
        }
    }

    /// Number of numbers. The first is the log-likelihood.
    pub(crate) fn width(&self) -> usize {
        self.given().end
    }

    /// The gradient in the calibration parameters.
    fn gradient(&self) -> Range<usize> {
        1..1 + self.n_calibration
    }

    /// The curvature in the calibration parameters.
    fn curvature(&self) -> Range<usize> {
        after(self.gradient(), self.n_calibration)
    }

    /// The gradient in the weights of the base's rules, due to complete rows.
    fn free(&self) -> Range<usize> {
        after(self.curvature(), self.n_free)
    }

    /// The expected violations of all rules.
    fn expected(&self) -> Range<usize> {
        after(self.free(), self.n_rules)
    }

    /// For the rules of the base whose probability is learned, the derivative of the log-likelihood.
    pub(crate) fn derivatives(&self, rules: &[usize], sums: &[f64]) -> Vec<f64> {
        let (free, expected, given) = (&sums[self.free()], &sums[self.expected()], &sums[self.given()]);
        rules.iter().zip(free).map(|(&rule, free)| expected[rule] - free - given[rule]).collect()
    }

    /// The same given what is known, of rows that are known in part.
    fn given(&self) -> Range<usize> {
        after(self.expected(), self.n_rules)
    }
}

fn after(range: Range<usize>, n: usize) -> Range<usize> {
    range.end..range.end + n
}

impl Problem {
    /// The objective at some parameters.
    pub(crate) fn point(&self, compiled: &mut Compiled, parameters: &[f64]) -> Point {
        let (n_fixed, n_features) = (self.n_fixed(), compiled.broken.len());
        let question = Question::Gradient { rules: compiled.rules(), parameters: parameters.to_vec() };
        let sums = self.ask(Some(compiled), &question);
        let layout = Layout::new(self, n_features);
        let mut point = self.penalties(parameters);
        // Complete rows: what is known, weighed by the rules.
        for (place, &weight) in parameters[n_fixed..].iter().enumerate() {
            point.log_likelihood -= weight * compiled.broken[place];
            point.gradient[n_fixed + place] += compiled.broken[place];
        }
        point.log_likelihood += self.totals.log_base + sums[0];
        add(&mut point.gradient, &sums[layout.gradient()]);
        add(&mut point.curvature, &sums[layout.curvature()]);
        add(&mut point.gradient[self.data.n_calibration_parameters..], &sums[layout.free()]);
        self.add_counts(&sums[layout.given()], &mut point);
        let log_p: f64 = parameters[n_fixed..].iter().map(|&weight| log_sigmoid(weight)).sum();
        point.log_likelihood += self.totals.complete_weight * log_p;
        self.finish(parameters, &sums[layout.expected()], n_features, &mut point);
        point
    }

    /// The sums of a chunk behind [`Self::point`].
    pub(super) fn gradient_of_chunk(
        &self,
        engine: &Weighted,
        parameters: &[f64],
        rows: Range<usize>,
    ) -> Vec<f64> {
        let n_features = parameters.len() - self.n_fixed();
        let layout = Layout::new(self, n_features);
        let mut sums = vec![0.0; layout.width()];
        self.add_free_rules(parameters, &rows, &layout, &mut sums);
        self.add_rows(engine, parameters, rows, &layout, &mut sums);
        sums
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
    fn add_free_rules(&self, parameters: &[f64], rows: &Range<usize>, layout: &Layout, sums: &mut [f64]) {
        for (place, silences) in self.silences.iter().enumerate() {
            let p = sigmoid(parameters[self.data.n_calibration_parameters + place]);
            for row in self.complete_in(rows.clone()) {
                let (silent, fired) = ((1.0 - p) * silences[row], p * (1.0 - silences[row]));
                sums[0] += self.data.weights[row] * (silent + fired).ln();
                sums[layout.free().start + place] += self.data.weights[row] * silent / (silent + fired);
            }
        }
    }

    /// Adds rows, except for the factors of rules in complete rows.
    fn add_rows(
        &self,
        engine: &Weighted,
        parameters: &[f64],
        rows: Range<usize>,
        layout: &Layout,
        sums: &mut [f64],
    ) {
        let width = self.data.width;
        let rows: Vec<usize> = rows.collect();
        let values = self.values(parameters, &rows);
        let weights: Vec<f64> = rows.iter().map(|&row| self.data.weights[row]).collect();
        let free = engine.expectations(&self.rows(&values, &weights));
        add(&mut sums[layout.expected()], &free.violated);
        // The second pass of rows that are known in part.
        let partial: Vec<usize> =
            (0..rows.len()).filter(|&at| self.data.known[rows[at]] == Known::Some).collect();
        let of_partial: Vec<f64> =
            partial.iter().flat_map(|at| &values[at * width..(at + 1) * width]).copied().collect();
        let numbers: Vec<usize> = partial.iter().map(|&at| rows[at]).collect();
        let clamped = self.clamped(&of_partial, &numbers);
        let of_weights: Vec<f64> = numbers.iter().map(|&row| self.data.weights[row]).collect();
        let given = engine.expectations(&self.rows(&clamped, &of_weights));
        add(&mut sums[layout.given()], &given.violated);
        let mut place_of = vec![usize::MAX; rows.len()];
        partial.iter().enumerate().for_each(|(place, &at)| place_of[at] = place);
        let parts: Vec<Sums> = (0..rows.len())
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
        for part in parts {
            sums[0] += part.log_likelihood;
            add(&mut sums[layout.gradient()], &part.gradient);
            add(&mut sums[layout.curvature()], &part.curvature);
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
        let truth = |(label, block): (usize, &Range<usize>)| {
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
        let (n_base, n_rows) = (self.model.rules().len(), self.weight().max(f64::MIN_POSITIVE));
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
        let sums = self.ask(None, &Question::Independent { parameters: parameters.to_vec() });
        let n = self.data.n_calibration_parameters;
        let mut point = self.penalties(parameters);
        point.log_likelihood += sums[0];
        add(&mut point.gradient, &sums[1..1 + n]);
        add(&mut point.curvature, &sums[1 + n..]);
        point.value -= point.log_likelihood;
        point
    }

    /// The sums of a chunk behind [`Self::independent_point`]: log-likelihood, gradient, curvature.
    pub(super) fn independent_of_chunk(&self, parameters: &[f64], rows: Range<usize>) -> Vec<f64> {
        let mut sums = Sums::new(self.data.n_calibration_parameters);
        let rows: Vec<usize> = rows.collect();
        let values = self.values(parameters, &rows);
        for (values, &row) in values.chunks(self.data.width).zip(&rows) {
            for (label, block) in self.data.blocks.iter().enumerate() {
                if let Some(truth) = self.data.truth(row, label) {
                    sums.log_likelihood += self.data.weights[row] * values[block.start + truth].ln();
                }
            }
            // Labels of unknown truth have no part in the gradient.
            self.add_row(row, values, values, Some(values), &mut sums);
        }
        [vec![sums.log_likelihood], sums.gradient, sums.curvature].concat()
    }
}

/// Adds numbers one by one.
fn add(sums: &mut [f64], parts: &[f64]) {
    sums.iter_mut().zip(parts).for_each(|(sum, part)| *sum += part);
}

/// Sums over a few rows.
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
