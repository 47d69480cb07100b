//! Base and rows, with what does not depend on the parameters.

use rayon::prelude::*;

use super::data::{Calibration, Data, Known};
use super::feature::{Feature, yes_no_labels};
use super::fit::minimize;
use super::induction::FINAL_TOLERANCE;
use super::objective::{PRECISION, sigmoid};
use crate::error::Result;
use crate::infer::expectations::{CHUNK, Rows};
use crate::infer::limits::Limits;
use crate::infer::weighted::Weighted;
use crate::log_space::log_odds;
use crate::model::Model;
use crate::rule::Rule;

/// Strength of the ridge penalty that keeps slopes near those of calibration alone.
pub(crate) const SLOPE_RIDGE: f64 = 4.0;
/// The same for intercepts and biases.
pub(crate) const INTERCEPT_RIDGE: f64 = 1.0;
/// The same before there are rules: toward a slope of 1.
const FIRST_SLOPE_RIDGE: f64 = 1.0;
/// The same before there are rules: toward an intercept of 0.
const FIRST_INTERCEPT_RIDGE: f64 = 0.1;

/// A ridge penalty.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ridge {
    pub(crate) center: f64,
    pub(crate) strength: f64,
}

/// Base and rows, with everything that does not depend on the parameters.
///
/// The parameters are those of the calibrators, the weights of the base's rules whose probability is learned, and the
/// weights of the learned rules, in this order.
pub(crate) struct Problem {
    /// The base. Its calibrators apply where none are learned; its combinations are ignored.
    pub(crate) model: Model,
    pub(crate) data: Data,
    /// The base's rules whose probability is learned.
    pub(crate) free_rules: Vec<usize>,
    /// The labels of count rules.
    pub(crate) counted: Vec<usize>,
    pub(crate) limits: Limits,
    /// For each base rule whose probability is learned, its silence in every complete row.
    pub(super) silences: Vec<Vec<f64>>,
    /// Σ ω ln φ of the base's other rules over complete rows.
    pub(super) log_base: f64,
    /// Multiply-adds per row of the base alone.
    base_work: f64,
    /// For each parameter except the weights of learned rules.
    pub(crate) ridges: Vec<Ridge>,
}

/// Rules with a compiled engine, and how often complete rows violate them.
pub(crate) struct Compiled {
    pub(crate) engine: Weighted,
    pub(crate) features: Vec<Feature>,
    pub(crate) broken: Vec<f64>,
}

/// Maximum number of multiply-adds per row. Learning takes hundreds of passes over all rows, and a pass of this many takes
/// about 10 µs a row.
const MAX_WORK: f64 = 3e4;
/// The same, as a multiple of what the base takes.
const GROWTH: f64 = 4.0;

/// Number of rows that are calibrated and evaluated at a time. It limits the memory of one evaluation.
pub(crate) const BLOCK: usize = 128 * CHUNK;

impl Problem {
    /// Rows without those that the base excludes.
    pub(crate) fn new(model: &Model, rows: Data, free_rules: Vec<usize>, limits: Limits) -> Result<Self> {
        let mut problem = Self {
            model: model.clone(),
            data: rows,
            free_rules,
            counted: yes_no_labels(model),
            limits,
            silences: Vec::new(),
            log_base: 0.0,
            base_work: 0.0,
            ridges: Vec::new(),
        };
        problem.remove_impossible_rows()?;
        problem.evaluate_base();
        problem.ridges = problem.first_ridges();
        Ok(problem)
    }

    fn remove_impossible_rows(&mut self) -> Result<()> {
        let mut compiled = self.compile(&[], &[])?;
        self.base_work = compiled.engine.work();
        let parameters = [self.data.identity(), self.free_weights()].concat();
        self.reweigh(&mut compiled.engine, &parameters);
        let mut is_possible = vec![true; self.data.n_rows()];
        for start in (0..self.data.n_rows()).step_by(BLOCK) {
            let rows: Vec<usize> = (start..self.data.n_rows().min(start + BLOCK)).collect();
            let values = self.clamped(&self.values(&parameters, &rows), &rows);
            let weights = vec![1.0; rows.len()];
            let found = compiled.engine.expectations(&self.rows(&values, &weights));
            for (row, log) in rows.into_iter().zip(found.log_evidence) {
                is_possible[row] = log > f64::NEG_INFINITY;
            }
        }
        if is_possible.contains(&false) {
            let kept: Vec<usize> = (0..is_possible.len()).filter(|&row| is_possible[row]).collect();
            self.data = self.data.select(&kept);
        }
        Ok(())
    }

    /// Evaluates the base's rules on complete rows.
    fn evaluate_base(&mut self) {
        let rules = self.model.rules();
        let mut silences = vec![Vec::new(); self.free_rules.len()];
        let mut log_base = 0.0;
        for row in self.complete() {
            let truth = self.assignment(row);
            for (slot, &rule) in silences.iter_mut().zip(&self.free_rules) {
                slot.push(rules[rule].outcome_at(&truth)[0]);
            }
            let others = (0..rules.len()).filter(|rule| !self.free_rules.contains(rule));
            let log: f64 = others.map(|rule| rules[rule].log_weight_at(&truth)).sum();
            log_base += self.data.weights[row] * log;
        }
        (self.silences, self.log_base) = (silences, log_base);
    }

    /// The rows in which all labels are known.
    pub(crate) fn complete(&self) -> impl Iterator<Item = usize> + use<'_> {
        (0..self.data.n_rows()).filter(|&row| self.data.known[row] == Known::All)
    }

    fn assignment(&self, row: usize) -> Vec<usize> {
        (0..self.data.n_labels())
            .map(|label| self.data.truth(row, label).expect("the row is complete"))
            .collect()
    }

    /// How often complete rows violate a rule.
    pub(crate) fn broken(&self, feature: &Feature) -> f64 {
        let truth =
            |row: usize| move |label: usize| self.data.truth(row, label).expect("the row is complete");
        self.complete()
            .filter(|&row| feature.is_violated(truth(row), &self.counted))
            .map(|row| self.data.weights[row])
            .sum()
    }

    /// Compiles the base with more rules than before. Returns an error if a row takes too long.
    pub(crate) fn compile_larger(&self, features: &[Feature], broken: &[f64]) -> Result<Compiled> {
        self.compile_within(features, broken, MAX_WORK.max(GROWTH * self.base_work))
    }

    /// Compiles the base with learned rules that are known to be affordable. The plan of fewer rules may take longer than
    /// that of more, because it is found by a heuristic search; so there is no limit on the time of a row.
    pub(crate) fn compile(&self, features: &[Feature], broken: &[f64]) -> Result<Compiled> {
        self.compile_within(features, broken, f64::INFINITY)
    }

    /// Compiles within a number of multiply-adds per row.
    pub(crate) fn compile_within(
        &self,
        features: &[Feature],
        broken: &[f64],
        max_work: f64,
    ) -> Result<Compiled> {
        let mut builder = self.model.without_calibrators().edit().remove_typical();
        for feature in features {
            builder = builder.add_rule(feature.rule(&self.model, &self.counted, 0.5));
        }
        let engine = Weighted::compile(&builder.build()?, self.limits, max_work)?;
        Ok(Compiled { engine, features: features.to_vec(), broken: broken.to_vec() })
    }

    /// The weights of the base's rules whose probability is learned, as the base has them.
    pub(crate) fn free_weights(&self) -> Vec<f64> {
        self.free_rules.iter().map(|&rule| log_odds(self.model.rules()[rule].probability())).collect()
    }

    /// Bounds of all parameters: weights are not negative, and rules of the base stay on their side of 0.5.
    pub(crate) fn bounds(&self, n_features: usize) -> Vec<(f64, f64)> {
        let free = |weight: f64| if weight < 0.0 { (f64::NEG_INFINITY, 0.0) } else { (0.0, f64::INFINITY) };
        let calibrators = vec![(f64::NEG_INFINITY, f64::INFINITY); self.data.n_calibration_parameters];
        let rules = self.free_weights().into_iter().map(free);
        calibrators
            .into_iter()
            .chain(rules)
            .chain(std::iter::repeat_n((0.0, f64::INFINITY), n_features))
            .collect()
    }

    /// Number of parameters except the weights of learned rules.
    pub(crate) fn n_fixed(&self) -> usize {
        self.data.n_calibration_parameters + self.free_rules.len()
    }

    fn first_ridges(&self) -> Vec<Ridge> {
        let start = [self.data.identity(), self.free_weights()].concat();
        let mut ridges: Vec<Ridge> =
            start.iter().map(|&center| Ridge { center, strength: FIRST_INTERCEPT_RIDGE }).collect();
        for (calibration, block) in self.data.calibrations.iter().zip(&self.data.blocks) {
            if let Some(at) = calibration.slope() {
                ridges[at].strength = FIRST_SLOPE_RIDGE;
            }
            if let Calibration::Mixed(at) = *calibration {
                let parameters = &mut ridges[at..at + calibration.n_parameters(block.len())];
                parameters.iter_mut().for_each(|ridge| ridge.strength = FIRST_SLOPE_RIDGE);
            }
        }
        ridges[self.data.n_calibration_parameters..].iter_mut().for_each(|ridge| ridge.strength = PRECISION);
        ridges
    }

    /// The parameters of calibrators that are fitted to each label by itself, and then all together beside the rules of the
    /// base. Rules shift beliefs, so calibrators that are right without them may be wrong beside them.
    pub(crate) fn calibrated(
        &self,
        beside: Option<&mut Compiled>,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Vec<f64> {
        let start = [self.data.identity(), self.free_weights()].concat();
        let bounds = self.bounds(0);
        let alone = |at: &[f64]| self.independent_point(at);
        let (start, _) = minimize(start, &bounds, None, FINAL_TOLERANCE, alone, &mut *goes_on);
        let Some(compiled) = beside else { return start };
        let together = |at: &[f64]| self.point(compiled, at);
        minimize(start, &bounds, None, FINAL_TOLERANCE, together, goes_on).0
    }

    /// Keeps calibrators near these parameters from now on.
    pub(crate) fn center(&mut self, parameters: &[f64]) {
        for (ridge, &center) in
            self.ridges.iter_mut().zip(parameters).take(self.data.n_calibration_parameters)
        {
            *ridge = Ridge { center, strength: INTERCEPT_RIDGE };
        }
        for calibration in &self.data.calibrations {
            if let Some(at) = calibration.slope() {
                self.ridges[at].strength = SLOPE_RIDGE;
            }
        }
    }

    /// Calibrated beliefs of some rows.
    pub(crate) fn values(&self, parameters: &[f64], rows: &[usize]) -> Vec<f64> {
        let width = self.data.width;
        let mut values = vec![0.0; rows.len() * width];
        let chunks = values.par_chunks_mut(CHUNK * width).zip(rows.par_chunks(CHUNK));
        chunks.for_each(|(values, rows)| {
            for (out, &row) in values.chunks_mut(width).zip(rows) {
                self.data.calibrate(parameters, row, out);
            }
        });
        values
    }

    /// Beliefs of rows with all categories removed that are known to be wrong.
    pub(crate) fn clamped(&self, values: &[f64], rows: &[usize]) -> Vec<f64> {
        let mut clamped = values.to_vec();
        for (values, &row) in clamped.chunks_mut(self.data.width).zip(rows) {
            for (label, block) in self.data.blocks.iter().enumerate() {
                if let Some(truth) = self.data.truth(row, label) {
                    for (category, value) in values[block.clone()].iter_mut().enumerate() {
                        *value = if category == truth { *value } else { 0.0 };
                    }
                }
            }
        }
        clamped
    }

    pub(crate) fn rows<'a>(&self, values: &'a [f64], weights: &'a [f64]) -> Rows<'a> {
        Rows { values, width: self.data.width, weights }
    }

    /// Sets the probabilities of all rules.
    pub(crate) fn reweigh(&self, engine: &mut Weighted, parameters: &[f64]) {
        let (fixed, weights) = parameters.split_at(self.n_fixed());
        let mut probabilities: Vec<f64> = self.model.rules().iter().map(Rule::probability).collect();
        for (&rule, &weight) in self.free_rules.iter().zip(&fixed[self.data.n_calibration_parameters..]) {
            probabilities[rule] = sigmoid(weight);
        }
        probabilities.extend(weights.iter().map(|&weight| sigmoid(weight)));
        engine.reweigh(&probabilities);
    }
}
