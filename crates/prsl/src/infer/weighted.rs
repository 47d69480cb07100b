//! Exact engines whose rules can change their probabilities without compiling again.
//!
//! Learning needs, for many settings of the same rules and all rows, ln Z, the marginals, and how often each rule is
//! expected to be violated. The last is added up over rows: a rule's part of the backward pass is then done once for all
//! rows of a junction tree.

use std::sync::Arc;

use rayon::prelude::*;

use super::account::Account;
use super::circuit::{Circuit, CircuitPlan};
use super::engines::Engines;
use super::expectations::{Expectations, Rows};
use super::factor::{Factor, Factors};
use super::junction_tree::JunctionTree;
use super::limits::Limits;
use super::samples::{Samples, Sampling};
use crate::error::Result;
use crate::model::Model;

/// Maximum number of edges of a circuit. One of this size takes about as long as a junction tree of 2e5 multiply-adds.
const MAX_EDGES: usize = 64_000;

/// An exact engine with weights of its own.
pub(crate) struct Weighted {
    engine: Engine,
    factors: Arc<Factors>,
}

enum Engine {
    Tree(Box<JunctionTree>),
    Circuit(Box<Circuit>),
}

impl Weighted {
    /// Compiles a model, if a row takes at most `max_work` multiply-adds. Otherwise the error says what it takes. Typical
    /// combinations are ignored.
    pub(crate) fn compile(model: &Model, limits: Limits, max_work: f64) -> Result<Self> {
        let model = model.edit().remove_typical().build()?;
        let engines = Engines::new(&model).with_limits(limits);
        let factors = Arc::clone(engines.factors());
        let account = Account::new(limits.memory);
        if let Some(plan) = engines.quick_circuit().filter(|plan| plan.size().multiply_adds <= max_work) {
            let engine = Engine::Circuit(Box::new(plan.circuit(&account)?));
            return Ok(Self { engine, factors });
        }
        let engine = match JunctionTree::without_signs(&factors, limits, max_work, &account) {
            Ok(tree) => Engine::Tree(Box::new(tree)),
            Err(refused) if engines.n_hard() > 0 => match CircuitPlan::new(&factors, MAX_EDGES) {
                Ok(plan) => Engine::Circuit(Box::new(plan.circuit(&account)?)),
                Err(_) => return Err(refused),
            },
            Err(refused) => return Err(refused),
        };
        Ok(Self { engine, factors })
    }

    /// Changes the probabilities of all rules. Rules of probability 0 and 1 keep theirs.
    pub(crate) fn reweigh(&mut self, probabilities: &[f64]) {
        let weights = |(factor, &p): (&Factor, &f64)| match factor.is_negated {
            true => [p, 1.0 - p],
            false => [1.0 - p, p],
        };
        let weights: Vec<[f64; 2]> = self.factors.list.iter().zip(probabilities).map(weights).collect();
        match &mut self.engine {
            Engine::Tree(tree) => tree.reweigh(weights),
            Engine::Circuit(circuit) => circuit.reweigh(weights),
        }
    }

    /// ln Z, marginals, and the expected number of violations of every rule.
    pub(crate) fn expectations(&self, rows: &Rows<'_>) -> Expectations {
        let mut answer = match &self.engine {
            Engine::Tree(tree) => tree.expectations(rows),
            Engine::Circuit(circuit) => circuit.expectations(rows),
        };
        let possible = answer.log_evidence.iter().zip(rows.weights);
        let total: f64 = possible.filter(|(log, _)| **log > f64::NEG_INFINITY).map(|(_, weight)| weight).sum();
        for (count, factor) in answer.violated.iter_mut().zip(&self.factors.list) {
            // The engines count how often a rule has fired: how often it holds, unless it is the negation of a clause.
            *count = if factor.is_negated { *count } else { (total - *count).max(0.0) };
        }
        answer
    }

    /// Joint samples of every row; `None` if it is impossible. The random numbers of a row depend on its seed alone.
    pub(crate) fn samples(&self, rows: &Rows<'_>, seeds: &[u64], n_samples: usize) -> Vec<Option<Samples>> {
        let sample = |(row, &seed): (usize, &u64)| {
            let sampling = Sampling { n_samples, seed, first_row: 0 };
            match &self.engine {
                Engine::Tree(tree) => tree.samples_of(rows.values_of(row), &sampling),
                Engine::Circuit(circuit) => circuit.samples_of(rows.values_of(row), &sampling),
            }
        };
        seeds.par_iter().enumerate().map(|(row, seed)| sample((row, seed))).collect()
    }

    /// Number of multiply-adds per row.
    pub(crate) fn work(&self) -> f64 {
        match &self.engine {
            Engine::Tree(tree) => tree.cost().multiply_adds,
            Engine::Circuit(circuit) => circuit.size().multiply_adds,
        }
    }
}
