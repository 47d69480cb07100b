//! From parameters to a model that people can read: what says nothing is left out, numbers are rounded, rules come in the order
//! of what they are worth.

use super::calibration::Calibration;
use super::factor::{Probability, Silence};
use super::objective::{Problem, Rows};
use super::typical::Typical;
use crate::calibrate::{Calibrator, Dirichlet};
use crate::combination::Combination;
use crate::error::Result;
use crate::label::{CategoryId, LabelId};
use crate::model::Model;
use crate::noisy_or::{Inhibition, NoisyOr};
use crate::rule::{Body, Rule};

/// A model, its numbers as parameters, and what each learned rule is worth.
pub(crate) struct Readable {
    pub(crate) model: Model,
    pub(crate) parameters: Vec<f64>,
    /// For each learned rule of the model, in its order: what the mean log-likelihood loses without it.
    pub(crate) gains: Vec<f64>,
}

/// What leaving out and rounding may take from the mean log-likelihood.
const TOLERATED: f64 = 2e-3;
/// Inhibition probabilities from here on say nothing; the boldest that is tolerated is taken.
const SILENT: [f64; 6] = [0.9, 0.95, 0.98, 0.99, 0.995, 0.999];
/// Digits behind the point of inhibition probabilities.
const DIGITS: [i32; 3] = [2, 3, 4];

pub(crate) fn readable(base: &Model, problem: &Problem, parameters: &[f64], rows: &Rows) -> Result<Readable> {
    let parameters = rounded(problem, parameters, rows);
    let whole = problem.mean(&parameters, rows);
    let worth = |rule: usize| (rule, whole - problem.mean(&problem.without(rule, &parameters), rows));
    let speaks = |rule: &usize| !problem.inhibitions(*rule, &parameters).is_empty();
    let mut rules: Vec<(usize, f64)> = (0..problem.rules.len()).filter(speaks).map(worth).collect();
    rules.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let mut builder = problem.with_probabilities(base, &parameters)?.edit();
    for (label, calibration) in base.label_ids().zip(&problem.calibrations) {
        if let Some(calibrator) = calibrator(*calibration, base.label(label).n_categories(), &parameters)? {
            builder = builder.calibrator(base.label(label).name(), calibrator);
        }
    }
    for &(rule, _) in &rules {
        let Probability::Given(p) = problem.rules[rule].probability else { continue };
        builder = builder
            .add_rule(Rule::new(p, Body::NoisyOr(NoisyOr::new(problem.inhibitions(rule, &parameters)))));
    }
    if let Some(typical) = &problem.typical {
        for combination in typical.readable(&parameters) {
            builder = builder.add_typical(combination);
        }
    }
    let gains = rules.into_iter().map(|(_, gain)| gain).collect();
    Ok(Readable { model: builder.build()?, parameters, gains })
}

/// The boldest rounding that the rows do not mind.
fn rounded(problem: &Problem, parameters: &[f64], rows: &Rows) -> Vec<f64> {
    let before = problem.mean(parameters, rows);
    for digits in DIGITS {
        for silent in SILENT {
            let candidate = problem.simplified(parameters, silent, digits);
            if before - problem.mean(&candidate, rows) <= TOLERATED {
                return candidate;
            }
        }
    }
    parameters.to_vec()
}

fn round(x: f64, digits: i32) -> f64 {
    let scale = 10f64.powi(digits);
    (x * scale).round() / scale
}

impl Problem {
    /// The places of a learned rule's q among the parameters.
    fn places(&self, rule: usize) -> std::ops::Range<usize> {
        match self.rules[rule].silence {
            Silence::Learned(start) => start..start + self.rules[rule].n_inhibitions(&self.tree.sizes),
            Silence::Given(_) => 0..0,
        }
    }

    fn simplified(&self, parameters: &[f64], silent: f64, digits: i32) -> Vec<f64> {
        let mut simplified: Vec<f64> = parameters.iter().map(|x| round(*x, 6)).collect();
        for rule in 0..self.rules.len() {
            for at in self.places(rule) {
                simplified[at] = if parameters[at] >= silent { 1.0 } else { round(parameters[at], digits) };
            }
        }
        simplified
    }

    /// The parameters with one learned rule saying nothing.
    fn without(&self, rule: usize, parameters: &[f64]) -> Vec<f64> {
        let mut without = parameters.to_vec();
        without[self.places(rule)].fill(1.0);
        without
    }

    /// What a learned rule says.
    fn inhibitions(&self, rule: usize, parameters: &[f64]) -> Vec<Inhibition> {
        let labels = self.rules[rule].labels.iter();
        let categories =
            labels.flat_map(|&label| (0..self.tree.sizes[label]).map(move |category| (label, category)));
        let inhibition = |((label, category), at): ((usize, usize), usize)| Inhibition {
            label: LabelId::new(label),
            category: CategoryId::new(category),
            probability: parameters[at],
        };
        categories.zip(self.places(rule)).map(inhibition).filter(|i| i.probability < 1.0).collect()
    }

    /// The base with the probabilities of its rules that were learned.
    fn with_probabilities(&self, base: &Model, parameters: &[f64]) -> Result<Model> {
        let mut builder = base.edit().retain_rules(|_| false);
        for (rule, shape) in base.rules().iter().zip(&self.rules) {
            builder = builder.add_rule(match shape.probability {
                Probability::Given(_) => rule.clone(),
                Probability::Learned(at) => rule.clone().with_probability(round(parameters[at], 4)),
            });
        }
        builder.build()
    }
}

/// A learned calibrator.
fn calibrator(calibration: Calibration, n: usize, parameters: &[f64]) -> Result<Option<Calibrator>> {
    Ok(match calibration {
        Calibration::Identity => None,
        Calibration::Platt(at) => {
            Some(Calibrator::Platt { slope: parameters[at], intercept: parameters[at + 1] })
        }
        Calibration::Dirichlet(at) => {
            let (weights, bias) = parameters[at..at + n * (n + 1)].split_at(n * n);
            let rows: Vec<Vec<f64>> = weights.chunks(n).map(<[f64]>::to_vec).collect();
            Some(Calibrator::Dirichlet(Dirichlet::new(&rows, bias)?))
        }
    })
}

/// A combination that counts less than this more often than it would anyway is left out.
const FAINT: f64 = 1e-3;

impl Typical {
    /// The combinations that count, the weightiest first, four digits each.
    fn readable(&self, parameters: &[f64]) -> Vec<Combination> {
        let weighed = |(at, s): (usize, &super::typical::Combination)| {
            let weight = self.log_weight(parameters, at, 0.0).exp();
            Combination::new(
                format!("{weight:.3e}").parse().expect("a number was written"),
                s.categories.clone(),
            )
        };
        let mut readable: Vec<Combination> = self.combinations.iter().enumerate().map(weighed).collect();
        readable.retain(|combination| combination.weight() >= FAINT);
        readable.sort_by(|a, b| b.weight().total_cmp(&a.weight()).then(a.categories().cmp(b.categories())));
        readable
    }
}
