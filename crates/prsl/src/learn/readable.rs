//! From parameters to a model that people can read: what says nothing is left out, numbers are rounded, rules come in the order
//! of what they are worth.

use super::calibration::Calibration;
use super::factor::Probability;
use super::objective::{Problem, Rows};
use super::typical::Typical;
use crate::assignment::Assignment;
use crate::calibrator::{Calibrator, Dirichlet};
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

/// The base with what was learned; `relearned` says of each of its rules whether it was.
pub(crate) fn readable(
    base: &Model,
    relearned: &[bool],
    problem: &Problem,
    parameters: &[f64],
    rows: &Rows,
) -> Result<Readable> {
    let least = problem.mean(parameters, rows) - TOLERATED;
    let parameters = rounded(problem, parameters, rows, least);
    let rules = by_worth(problem, &parameters, rows);
    let mut builder = problem.with_probabilities(base, relearned, &parameters)?.edit();
    for (label, calibration) in base.label_ids().zip(&problem.calibrations) {
        if let Some(calibrator) = calibrator(*calibration, base.label(label).n_categories(), &parameters)? {
            builder = builder.calibrator(base.label(label).name(), calibrator);
        }
    }
    for &(rule, _) in &rules {
        let p = match problem.rules[rule].probability {
            Probability::Given(p) => p,
            Probability::Learned(at) => round(parameters[at], 4),
        };
        let body = Body::NoisyOr(NoisyOr::new(problem.inhibitions(rule, &parameters)));
        builder = builder.add_rule(match base.rules().get(rule) {
            Some(known) => known.clone().with_probability(p).with_body(body),
            None => Rule::new(p, body),
        });
    }
    if let Some(typical) = &problem.typical {
        builder = builder.remove_typical();
        let stays = |combination: &&Combination| typical.stays(combination.categories());
        for combination in base.typical().iter().filter(stays) {
            builder = builder.add_typical(combination.clone());
        }
        for combination in typical.readable(&parameters) {
            builder = builder.add_typical(combination);
        }
    }
    let gains = rules.into_iter().map(|(_, gain)| gain).collect();
    Ok(Readable { model: builder.build()?, parameters, gains })
}

/// The boldest rounding that leaves the rows so much.
fn rounded(problem: &Problem, parameters: &[f64], rows: &Rows, least: f64) -> Vec<f64> {
    for digits in DIGITS {
        for silent in SILENT {
            let candidate = problem.simplified(parameters, silent, digits);
            if problem.mean(&candidate, rows) >= least {
                return candidate;
            }
        }
    }
    parameters.to_vec()
}

/// The rules that say something, and what the mean log-likelihood loses without each: those that are worth most first.
///
/// Rules that these rows could do without stay: these rows are few, and what they do not need is needed elsewhere. With such rules left
/// out, other rows of emotions lost 0.034 where these lost nothing.
fn by_worth(problem: &Problem, parameters: &[f64], rows: &Rows) -> Vec<(usize, f64)> {
    let whole = problem.mean(parameters, rows);
    let worth = |rule: usize| (rule, whole - problem.mean(&problem.without(rule, parameters), rows));
    let speaks = |rule: &usize| !problem.inhibitions(*rule, parameters).is_empty();
    let mut rules: Vec<(usize, f64)> = (0..problem.rules.len()).filter(speaks).map(worth).collect();
    rules.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    rules
}

fn round(x: f64, digits: i32) -> f64 {
    let scale = 10f64.powi(digits);
    (x * scale).round() / scale
}

impl Problem {
    /// The places of a learned rule's q among the parameters.
    fn places(&self, rule: usize) -> impl Iterator<Item = usize> {
        self.rules[rule].places(&self.tree.sizes)
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
        self.places(rule).for_each(|at| without[at] = 1.0);
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

    /// The base with the probabilities of its rules that were learned, without the rules that were learned anew.
    fn with_probabilities(&self, base: &Model, relearned: &[bool], parameters: &[f64]) -> Result<Model> {
        let mut builder = base.edit().retain_rules(|_| false);
        for ((rule, shape), _) in base.rules().iter().zip(&self.rules).zip(relearned).filter(|(_, is)| !**is)
        {
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
    /// Whether a combination of the base was left as it is.
    fn stays(&self, categories: &[usize]) -> bool {
        self.index.get(categories).is_some_and(|&at| self.combinations[at].fixed.is_some())
    }

    /// The combinations that count, the weightiest first, four digits each.
    fn readable(&self, parameters: &[f64]) -> Vec<Combination> {
        let weighed = |(at, s): (usize, &super::typical::Combination)| {
            let weight = self.log_weight(parameters, at, 0.0).exp();
            Combination::new(
                format!("{weight:.3e}").parse().expect("a number was written"),
                Assignment::from_indices(s.categories.clone()),
            )
        };
        let learned = self.combinations.iter().enumerate().filter(|(_, s)| s.fixed.is_none());
        let mut readable: Vec<Combination> = learned.map(weighed).collect();
        readable.retain(|combination| combination.weight() >= FAINT);
        readable.sort_by(|a, b| b.weight().total_cmp(&a.weight()).then(a.categories().cmp(b.categories())));
        readable
    }
}
