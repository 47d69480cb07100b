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
        let total: f64 =
            possible.filter(|(log, _)| **log > f64::NEG_INFINITY).map(|(_, weight)| weight).sum();
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

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::infer::enumeration::Enumeration;
    use crate::label::LabelId;

    /// Labels of two and three categories, clauses, other formulas, a noisy-or and a count rule.
    fn random_model(rng: &mut ChaCha8Rng, is_hard: bool) -> Model {
        let mut text = "label a\nlabel b\nlabel c\nlabel d\nlabel e: x, y, z\nlabel f: u, v, w\n".to_owned();
        let atoms = ["a", "b", "c", "d", "e=x", "e=y", "f=u", "f!=w", "!a", "!c"];
        for _ in 0..8 {
            let mut draw = || atoms[rng.random_range(0..atoms.len())];
            let [first, second, third] = [draw(), draw(), draw()];
            text += &match rng.random_range(0..4) {
                0 => format!("rule 0.9: {first} -> {second}\n"),
                1 => format!("rule 0.7: {first} & {second} -> {third}\n"),
                2 => format!("rule 0.8: {first} <-> {second} | {third}\n"),
                _ => "rule 0.6: at_least 2 of {a, b, c, d}\n".to_owned(),
            };
        }
        text += "noisy_or 0.9: a 0.3, e=x 0.2, f=u 0.6\n";
        if is_hard {
            text += "rule 1: a -> b\nrule 1: exactly 1 of {c, d}\nrule 1: b -> e=x\n";
        }
        Model::parse(&text).expect("the text is a model")
    }

    fn check(model: &Model, mut engine: Weighted, rng: &mut ChaCha8Rng) {
        let is_hard = |p: f64| p == 0.0 || p == 1.0;
        let probabilities: Vec<f64> =
            model
                .rules()
                .iter()
                .map(|rule| {
                    if is_hard(rule.probability()) {
                        rule.probability()
                    } else {
                        rng.random_range(0.05..0.99)
                    }
                })
                .collect();
        let mut builder = model.edit().retain_rules(|_| false);
        for (rule, &probability) in model.rules().iter().zip(&probabilities) {
            builder = builder.add_rule(rule.clone().with_probability(probability));
        }
        let changed = builder.build().expect("the same rules");
        engine.reweigh(&probabilities);
        let n_rows = 70; // more than a chunk, and no multiple of the lanes
        let (mut values, mut weights) = (Vec::new(), Vec::new());
        for row in 0..n_rows {
            for label in model.labels() {
                let mut belief: Vec<f64> =
                    (0..label.n_categories()).map(|_| rng.random_range(0.01..1.0)).collect();
                if row % 5 == 0 && rng.random_bool(0.3) {
                    belief.fill(0.0);
                    belief[0] = 1.0;
                }
                if row % 7 == 0 {
                    belief.iter_mut().for_each(|belief| *belief *= 1e-80);
                }
                let total: f64 = belief.iter().sum();
                values.extend(belief.iter().map(|belief| belief / total));
            }
            weights.push(if row % 3 == 0 { 2.5 } else { 1.0 });
        }
        let found =
            engine.expectations(&Rows { values: &values, width: model.n_categories(), weights: &weights });
        let oracle = Enumeration::compile(&changed).expect("a small model");
        let mut expected = vec![0.0; model.rules().len()];
        for (row, values) in values.chunks(model.n_categories()).enumerate() {
            let Ok(answer) = oracle.infer_row(values) else {
                assert_eq!(found.log_evidence[row], f64::NEG_INFINITY);
                continue;
            };
            assert!((found.log_evidence[row] - answer.log_evidence()).abs() < 1e-9);
            let marginals = &found.marginals[row * model.n_categories()..];
            for (found, expected) in marginals.iter().zip(answer.marginals()) {
                assert!((found - expected).abs() < 1e-10, "{found} is not {expected}");
            }
            add_violations(&changed, values, weights[row], &mut expected);
        }
        for (rule, (found, expected)) in found.violated.iter().zip(&expected).enumerate() {
            assert!((found - expected).abs() < 1e-8, "rule {rule}: {found} is not {expected}\n{changed}");
        }
    }

    /// Adds weight · P(rule is violated) of every rule, by enumeration.
    fn add_violations(model: &Model, values: &[f64], weight: f64, sums: &mut [f64]) {
        let sizes: Vec<usize> = model.labels().iter().map(|label| label.n_categories()).collect();
        let (mut total, mut silent) = (0.0, vec![0.0; sums.len()]);
        for number in 0..sizes.iter().product::<usize>() {
            let mut rest = number;
            let categories: Vec<usize> = sizes.iter().map(|size| (rest % size, rest /= size).0).collect();
            let block = |label: usize| model.block(LabelId::new(label)).start;
            let belief: f64 =
                categories.iter().enumerate().map(|(label, c)| values[block(label) + c]).product();
            let mass = belief * model.rules().iter().map(|rule| rule.weight_at(&categories)).product::<f64>();
            total += mass;
            for (slot, rule) in silent.iter_mut().zip(model.rules()) {
                let of_silent = (1.0 - rule.probability()) * rule.outcome_at(&categories)[0];
                *slot += if mass == 0.0 { 0.0 } else { mass * of_silent / rule.weight_at(&categories) };
            }
        }
        sums.iter_mut().zip(silent).for_each(|(sum, silent)| *sum += weight * silent / total);
    }

    #[test]
    fn expectations_agree_with_enumeration() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for round in 0..60 {
            let model = random_model(&mut rng, round % 2 == 0);
            let engine = Weighted::compile(&model, Limits::default(), f64::INFINITY).expect("a small model");
            check(&model, engine, &mut rng);
            let factors = Arc::new(Factors::new(&model));
            let circuit =
                CircuitPlan::new(&factors, MAX_EDGES).and_then(|plan| plan.circuit(&Account::new(1 << 30)));
            let engine = Engine::Circuit(Box::new(circuit.expect("a small circuit")));
            check(&model, Weighted { engine, factors }, &mut rng);
        }
    }
}
