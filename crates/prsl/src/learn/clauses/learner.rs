//! The learner: calibrators, then rules, then combinations, priors and notes.

use std::collections::HashSet;
use std::ops::ControlFlow;

use super::candidates::Prices;
use super::combinations::{self, Combinations};
use super::data::Data;
use super::fit::minimize;
use super::induction::{FINAL_TOLERANCE, Induction, State};
use super::objective::{Compiled, Problem, sigmoid};
use crate::error::Result;
use crate::infer::Limits;
use crate::learn::Examples;
use crate::model::{Combination, Model};

/// How rules are learned. The defaults suit most data.
#[derive(Clone, Debug, PartialEq)]
pub struct ClauseLearner {
    /// Price of a rule's description, per nat: 0.25 predicts best, 1 keeps only rules that are surely there.
    pub parsimony: f64,
    /// Maximum number of learned rules.
    pub max_rules: Option<usize>,
    /// Whether typical combinations are learned, if they pay.
    pub typical: bool,
    /// Whether probabilities of the base's rules are learned.
    pub learn_probabilities: bool,
    /// Maximum bytes of tables.
    pub memory: u64,
    /// Seed of the samples.
    pub seed: u64,
}

impl Default for ClauseLearner {
    fn default() -> Self {
        Self {
            parsimony: 0.25,
            max_rules: None,
            typical: true,
            learn_probabilities: false,
            memory: Limits::default().memory,
            seed: 1,
        }
    }
}

/// The result of learning.
#[derive(Clone, Debug)]
pub struct ClauseLearned {
    /// The base with learned rules, calibrators and combinations.
    pub model: Model,
    /// Number of learned rules.
    pub n_rules: usize,
}

impl ClauseLearner {
    /// Learns rules beside those of a base.
    pub fn learn(&self, base: &Model, rows: &Examples) -> Result<ClauseLearned> {
        self.learn_observed(base, rows, &mut |_| ControlFlow::Continue(()))
    }

    /// The same, with progress after each pass.
    pub fn learn_observed(
        &self,
        base: &Model,
        rows: &Examples,
        observe: &mut dyn FnMut(usize) -> ControlFlow<()>,
    ) -> Result<ClauseLearned> {
        let base = rows.cautious(base)?;
        let is_seen = |label| rows.n_seen(label) > 0;
        let free: Vec<bool> = base.label_ids().map(is_seen).collect();
        let data = Data::new(&base, rows, &free)?;
        let limits = Limits { memory: self.memory, ..Limits::default() };
        let free_rules = Vec::new();
        let mut problem = Problem::new(&base, data, free_rules, limits)?;
        let start = [problem.data.identity(), problem.free_weights()].concat();
        let bounds = vec![(f64::NEG_INFINITY, f64::INFINITY); start.len()];
        let (start, _) = minimize(start, &bounds, 1e-6, |at| problem.independent_point(at), || true);
        problem.center(&start);
        let sizes: Vec<usize> = problem.data.blocks.iter().map(|block| block.len()).collect();
        let unary: Vec<usize> = (0..sizes.len()).filter(|&label| !free[label]).collect();
        let prices = Prices::new(&sizes, unary.len());
        let induction = Induction {
            problem: &problem,
            prices: &prices,
            parsimony: self.parsimony,
            max_rules: self.max_rules.unwrap_or(usize::MAX),
            unary: &unary,
            seed: self.seed,
        };
        let mut compiled = problem.compile(&[], &[])?;
        let (parameters, point) = induction.refit(&mut compiled, start, 1e-2);
        let mut state =
            State { parameters, value: point.value, tried: HashSet::new(), ..State::default() };
        let mut goes_on = true;
        while goes_on && observe(state.features.len()).is_continue() {
            (compiled, goes_on) = induction.pass(&mut state, compiled)?;
        }
        let (parameters, _) = induction.refit(&mut compiled, state.parameters.clone(), FINAL_TOLERANCE);
        state.parameters = parameters;
        let found = match self.typical {
            true => combinations::learn(&problem, &mut compiled, &state.parameters),
            false => Combinations::default(),
        };
        let model = model_of(&problem, &compiled, &state.parameters, &found)?;
        Ok(ClauseLearned { model, n_rules: state.features.len() })
    }
}

fn model_of(problem: &Problem, compiled: &Compiled, parameters: &[f64], found: &Combinations) -> Result<Model> {
    let mut builder = problem.model.edit();
    for label in problem.model.label_ids() {
        if let Some(calibrator) = problem.data.calibrator(label.index(), parameters)? {
            builder = builder.calibrator(problem.model.label(label).name(), calibrator);
        }
    }
    for (feature, &weight) in compiled.features.iter().zip(&parameters[problem.n_fixed()..]) {
        builder = builder.add_rule(feature.rule(&problem.model, &problem.counted, sigmoid(weight)));
    }
    for (categories, weight) in &found.list {
        if *weight > 0.0 {
            builder = builder.add_typical(Combination::new(*weight, categories.clone()));
        }
    }
    builder.build()
}
