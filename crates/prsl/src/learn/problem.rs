//! Base and rows, with what does not depend on the parameters.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rayon::prelude::*;

use super::chunks::Chunk;
use super::data::{Calibration, Data, Known};
use super::feature::{Feature, yes_no_labels};
use super::fit::minimize;
use super::induction::FINAL_TOLERANCE;
use super::objective::{PRECISION, sigmoid};
use super::question::{Question, Rules};
use super::remote::Remote;
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
    /// For each base rule whose probability is learned, its silence in every complete row, and 0 in others.
    pub(super) silences: Vec<Vec<f64>>,
    pub(crate) totals: Totals,
    /// Where the rows are, if those of `data` are only a sample of them.
    pub(super) remote: Option<Remote>,
    /// Multiply-adds per row of the base alone.
    base_work: f64,
    /// For each parameter except the weights of learned rules.
    pub(crate) ridges: Vec<Ridge>,
}

/// Sums over all rows that do not depend on the parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Totals {
    /// Number of rows with weight and known truths, and how many of them the base does not exclude.
    pub(crate) n_used: usize,
    pub(crate) n_rows: usize,
    pub(crate) weight: f64,
    pub(crate) complete_weight: f64,
    /// Σ ω ln φ of the base's rules whose probability is not learned, over complete rows.
    pub(crate) log_base: f64,
}

impl Totals {
    /// Number of sums.
    pub(crate) const WIDTH: usize = 5;

    /// From the sums of [`Question::Totals`].
    pub(crate) fn of(sums: &[f64]) -> Self {
        Self {
            n_used: sums[0] as usize,
            n_rows: sums[1] as usize,
            weight: sums[2],
            complete_weight: sums[3],
            log_base: sums[4],
        }
    }
}

/// Rules with a compiled engine, and how often complete rows violate them.
pub(crate) struct Compiled {
    pub(crate) engine: Weighted,
    pub(crate) features: Vec<Feature>,
    pub(crate) broken: Vec<f64>,
    /// The limit within which the engine was compiled.
    max_work: f64,
}

impl Compiled {
    /// The rules, as part of a question.
    pub(crate) fn rules(&self) -> Rules {
        let max_work = self.max_work.is_finite().then_some(self.max_work);
        Rules { features: self.features.clone(), max_work }
    }

    /// Whether it is compiled from these rules.
    pub(crate) fn has(&self, rules: &Rules) -> bool {
        self.features == rules.features && self.max_work == rules.max_work.unwrap_or(f64::INFINITY)
    }

    /// Whether it has no learned rules, and was compiled without a limit.
    pub(crate) fn is_base(&self) -> bool {
        self.features.is_empty() && self.max_work == f64::INFINITY
    }
}

/// Maximum number of multiply-adds per row. Learning takes hundreds of passes over all rows, and a pass of this many takes
/// about 10 µs a row.
const MAX_WORK: f64 = 3e4;
/// The same, as a multiple of what the base takes.
const GROWTH: f64 = 4.0;

impl Problem {
    /// Rows without those that the base excludes.
    pub(crate) fn new(model: &Model, rows: Data, free_rules: Vec<usize>, limits: Limits) -> Result<Self> {
        let problem = Self::of(model, rows, free_rules, limits);
        let mut base = problem.compile(&[], &[])?;
        Ok(problem.prepared(&mut base))
    }

    /// A sample of rows that are elsewhere.
    pub(crate) fn of_sample(
        model: &Model,
        sample: Data,
        free_rules: Vec<usize>,
        limits: Limits,
        (remote, totals): (Remote, Totals),
    ) -> Result<Self> {
        let mut problem = Self::of(model, sample, free_rules, limits);
        problem.base_work = problem.compile(&[], &[])?.engine.work();
        (problem.remote, problem.totals) = (Some(remote), totals);
        problem.ridges = problem.first_ridges();
        Ok(problem)
    }

    /// Rows before they are prepared.
    pub(super) fn of(model: &Model, rows: Data, free_rules: Vec<usize>, limits: Limits) -> Self {
        Self {
            model: model.clone(),
            data: rows,
            free_rules,
            counted: yes_no_labels(model),
            limits,
            silences: Vec::new(),
            totals: Totals::default(),
            remote: None,
            base_work: 0.0,
            ridges: Vec::new(),
        }
    }

    /// Removes impossible rows, and evaluates what does not depend on the parameters.
    pub(super) fn prepared(mut self, base: &mut Compiled) -> Self {
        self.base_work = base.engine.work();
        self.remove_impossible_rows(base);
        self.evaluate_silences();
        let sums = self.ask(None, &Question::Totals);
        self.totals = Totals::of(&sums);
        self.ridges = self.first_ridges();
        self
    }

    fn remove_impossible_rows(&mut self, base: &mut Compiled) {
        let parameters = [self.data.identity(), self.free_weights()].concat();
        self.reweigh(&mut base.engine, &parameters);
        let mut kept = Vec::with_capacity(self.data.n_rows());
        for (chunk, _) in &self.data.chunks {
            let rows: Vec<usize> = chunk.rows.clone().collect();
            let values = self.clamped(&self.values(&parameters, &rows), &rows);
            let weights = vec![1.0; rows.len()];
            let found = base.engine.expectations(&self.rows(&values, &weights));
            let possible =
                rows.into_iter().zip(found.log_evidence).filter(|(_, log)| *log > f64::NEG_INFINITY);
            kept.extend(possible.map(|(row, _)| row));
        }
        if kept.len() < self.data.n_rows() {
            self.data = self.data.select(&kept);
        }
    }

    /// Evaluates the base's rules whose probability is learned, on complete rows.
    fn evaluate_silences(&mut self) {
        let rules = self.model.rules();
        let mut silences = vec![vec![0.0; self.data.n_rows()]; self.free_rules.len()];
        if !silences.is_empty() {
            for row in self.complete() {
                let truth = self.assignment(row);
                for (slot, &rule) in silences.iter_mut().zip(&self.free_rules) {
                    slot[row] = rules[rule].outcome_at(&truth)[0];
                }
            }
        }
        self.silences = silences;
    }

    /// The sums of a chunk behind [`Totals`].
    pub(super) fn totals_of_chunk(&self, chunk: &Chunk, n_used: usize) -> Vec<f64> {
        let rules = self.model.rules();
        let others: Vec<usize> = (0..rules.len()).filter(|rule| !self.free_rules.contains(rule)).collect();
        let (mut complete_weight, mut log_base) = (0.0, 0.0);
        for row in self.complete_in(chunk.rows.clone()) {
            let weight = self.data.weights[row];
            complete_weight += weight;
            if !others.is_empty() {
                let truth = self.assignment(row);
                log_base +=
                    weight * others.iter().map(|&rule| rules[rule].log_weight_at(&truth)).sum::<f64>();
            }
        }
        let weight = self.data.weights[chunk.rows.clone()].iter().sum();
        vec![n_used as f64, chunk.rows.len() as f64, weight, complete_weight, log_base]
    }

    /// The sums over all rows that a question asks for, added in the order of their chunks.
    ///
    /// If the rows are elsewhere and cannot be asked, the answer is zeros, and [`Self::failure`] says why.
    pub(crate) fn ask(&self, mut compiled: Option<&mut Compiled>, question: &Question) -> Vec<f64> {
        let width = question.width(self);
        if let Some(remote) = &self.remote {
            return remote.ask(question, width).unwrap_or_else(|| vec![0.0; width]);
        }
        if let (Some(compiled), Some((_, parameters))) = (compiled.as_deref_mut(), question.engine()) {
            self.reweigh(&mut compiled.engine, parameters);
        }
        let engine = compiled.map(|compiled| &compiled.engine);
        let mut total = vec![0.0; width];
        for place in 0..self.data.chunks.len() {
            let part = self.answer(question, engine, place);
            total.iter_mut().zip(part).for_each(|(sum, value)| *sum += value);
        }
        total
    }

    /// Why rows that are elsewhere could not be asked.
    pub(crate) fn failure(&self) -> Result<()> {
        self.remote.as_ref().map_or(Ok(()), Remote::failure)
    }

    /// A flag that is set when rows that are elsewhere cannot be asked any more.
    pub(crate) fn failed_flag(&self) -> Arc<AtomicBool> {
        self.remote.as_ref().map(Remote::failed_flag).unwrap_or_default()
    }

    /// Number of rows that are learned from.
    pub(crate) fn n_rows(&self) -> usize {
        self.totals.n_rows
    }

    /// The sum of their weights.
    pub(crate) fn weight(&self) -> f64 {
        self.totals.weight
    }

    /// The rows at hand in which all labels are known.
    pub(crate) fn complete(&self) -> impl Iterator<Item = usize> + use<'_> {
        self.complete_in(0..self.data.n_rows())
    }

    /// The same among some rows.
    pub(crate) fn complete_in(&self, rows: Range<usize>) -> impl Iterator<Item = usize> + use<'_> {
        rows.filter(|&row| self.data.known[row] == Known::All)
    }

    fn assignment(&self, row: usize) -> Vec<usize> {
        (0..self.data.n_labels())
            .map(|label| self.data.truth(row, label).expect("the row is complete"))
            .collect()
    }

    /// How often complete rows violate a rule.
    pub(crate) fn broken(&self, feature: &Feature) -> f64 {
        let known = self.remote.as_ref().and_then(|remote| remote.known_count(feature));
        known.unwrap_or_else(|| self.count_broken(std::slice::from_ref(feature))[0])
    }

    /// Counts how often complete rows violate some rules, if they are elsewhere: all at once, for later [`Self::broken`].
    pub(crate) fn expect_broken<'f>(&self, features: impl Iterator<Item = &'f Feature>) {
        if let Some(remote) = &self.remote {
            let features: Vec<Feature> =
                features.filter(|feature| remote.known_count(feature).is_none()).cloned().collect();
            if !features.is_empty() {
                self.count_broken(&features);
            }
        }
    }

    fn count_broken(&self, features: &[Feature]) -> Vec<f64> {
        let counts = self.ask(None, &Question::Broken { features: features.to_vec() });
        if let Some(remote) = &self.remote {
            remote.remember_counts(features, &counts);
        }
        counts
    }

    /// How often complete rows of a chunk violate some rules.
    pub(super) fn broken_of_chunk(&self, features: &[Feature], rows: Range<usize>) -> Vec<f64> {
        let mut counts = vec![0.0; features.len()];
        for row in self.complete_in(rows) {
            let truth = |label: usize| self.data.truth(row, label).expect("the row is complete");
            for (count, feature) in counts.iter_mut().zip(features) {
                if feature.is_violated(truth, &self.counted) {
                    *count += self.data.weights[row];
                }
            }
        }
        counts
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

    /// Compiles the rules of a question.
    pub(crate) fn compile_rules(&self, rules: &Rules) -> Result<Compiled> {
        self.compile_within(&rules.features, &[], rules.max_work.unwrap_or(f64::INFINITY))
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
        Ok(Compiled { engine, features: features.to_vec(), broken: broken.to_vec(), max_work })
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
