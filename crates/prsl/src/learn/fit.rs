//! L-BFGS with bounds, and with an estimate of the Hessian to start from.

use std::collections::VecDeque;

use super::fisher::{Factor, Matrix};
use crate::calibrate::minimize::{add, difference, dot};

/// Number of steps that the approximation of the Hessian remembers.
const MEMORY: usize = 12;
/// Largest change of a parameter in one step. Where samples show no curvature, longer steps would lead to weights at which
/// probabilities underflow.
const MAX_CHANGE: f64 = 3.0;
/// The Armijo constant: the share of the linear prediction by which a step must decrease the function.
const ARMIJO: f64 = 1e-4;
/// Maximum number of halvings of a step.
const MAX_HALVINGS: usize = 20;
/// Maximum number of steps. A convex problem with a good preconditioner takes ten to fifty.
const MAX_STEPS: usize = 500;

/// A function value with gradient and an estimate of the diagonal of the Hessian.
pub(crate) trait Evaluation {
    fn value(&self) -> f64;
    fn gradient(&self) -> &[f64];
    fn curvature(&self) -> &[f64];
}

/// Minimizes a convex function over a box. Stops when the predicted decrease is below `tolerance`, or when `goes_on` says
/// so. Returns the best parameters with their evaluation. The first estimate of the Hessian is `hessian`, if there is one,
/// or else the diagonal of each evaluation.
pub(crate) fn minimize<E: Evaluation>(
    mut at: Vec<f64>,
    bounds: &[(f64, f64)],
    hessian: Option<&Matrix>,
    tolerance: f64,
    mut function: impl FnMut(&[f64]) -> E,
    mut goes_on: impl FnMut() -> bool,
) -> (Vec<f64>, E) {
    let mut memory = Memory::default();
    let mut factor: Option<(Vec<bool>, Factor)> = None;
    project(&mut at, bounds);
    let mut here = function(&at);
    for _ in 0..MAX_STEPS {
        let is_free = free(&at, here.gradient(), bounds);
        if let Some(hessian) = hessian
            && factor.as_ref().is_none_or(|(of, _)| *of != is_free)
        {
            factor = Some((is_free.clone(), hessian.factor(&is_free, here.curvature())));
        }
        let scale = |step: &mut [f64]| match &factor {
            Some((_, factor)) => factor.solve(step),
            None => step.iter_mut().zip(here.curvature()).for_each(|(step, curvature)| *step /= curvature),
        };
        let step = memory.step(here.gradient(), &is_free, scale);
        let descent = dot(&step, here.gradient());
        if descent <= 2.0 * tolerance || !goes_on() {
            break;
        }
        let largest = step.iter().fold(0.0, |largest: f64, step| largest.max(step.abs()));
        let mut length = (MAX_CHANGE / largest).min(1.0);
        let mut better = None;
        for _ in 0..MAX_HALVINGS {
            let mut next: Vec<f64> = at.iter().zip(&step).map(|(at, step)| at - length * step).collect();
            project(&mut next, bounds);
            let there = function(&next);
            let moved: f64 = next
                .iter()
                .zip(&at)
                .zip(here.gradient())
                .map(|((next, at), slope)| (at - next) * slope)
                .sum();
            if there.value() <= here.value() - ARMIJO * moved {
                better = Some((next, there));
                break;
            }
            length /= 2.0;
        }
        let Some((next, there)) = better else { break };
        memory.remember(difference(&next, &at), difference(there.gradient(), here.gradient()));
        (at, here) = (next, there);
    }
    (at, here)
}

fn project(at: &mut [f64], bounds: &[(f64, f64)]) {
    at.iter_mut().zip(bounds).for_each(|(at, (low, high))| *at = at.clamp(*low, *high));
}

/// Whether each parameter may move against the gradient.
fn free(at: &[f64], gradient: &[f64], bounds: &[(f64, f64)]) -> Vec<bool> {
    let is_free = |((at, slope), (low, high)): ((&f64, &f64), &(f64, f64))| {
        !(*at <= *low && *slope > 0.0 || *at >= *high && *slope < 0.0)
    };
    at.iter().zip(gradient).zip(bounds).map(is_free).collect()
}

/// The last steps, and the changes of the gradient that they caused.
#[derive(Default)]
struct Memory {
    pairs: VecDeque<(Vec<f64>, Vec<f64>)>,
}

impl Memory {
    fn remember(&mut self, moved: Vec<f64>, changed: Vec<f64>) {
        if dot(&moved, &changed) <= 1e-12 * dot(&moved, &moved) {
            return;
        }
        if self.pairs.len() == MEMORY {
            self.pairs.pop_front();
        }
        self.pairs.push_back((moved, changed));
    }

    /// The gradient times an estimate of the inverse Hessian (two-loop recursion; Nocedal and Wright, algorithm 7.4), over
    /// the free parameters. `scale` multiplies by the first estimate.
    fn step(&self, gradient: &[f64], is_free: &[bool], scale: impl Fn(&mut [f64])) -> Vec<f64> {
        let masked = |values: &[f64]| -> Vec<f64> {
            values.iter().zip(is_free).map(|(value, free)| if *free { *value } else { 0.0 }).collect()
        };
        let pairs: Vec<(Vec<f64>, Vec<f64>)> = self
            .pairs
            .iter()
            .map(|(moved, changed)| (masked(moved), masked(changed)))
            .filter(|(moved, changed)| dot(moved, changed) > 1e-12 * dot(moved, moved).max(f64::MIN_POSITIVE))
            .collect();
        let mut step = masked(gradient);
        let mut factors = Vec::new();
        for (moved, changed) in pairs.iter().rev() {
            let factor = dot(moved, &step) / dot(moved, changed);
            add(&mut step, -factor, changed);
            factors.push(factor);
        }
        scale(&mut step);
        for ((moved, changed), factor) in pairs.iter().zip(factors.into_iter().rev()) {
            let other = dot(changed, &step) / dot(moved, changed);
            add(&mut step, factor - other, moved);
        }
        masked(&step)
    }
}
