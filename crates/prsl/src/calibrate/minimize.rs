//! Minimizes smooth convex functions: Newton's method for one or two variables, L-BFGS for many.

/// Maximum number of halvings of a step in the line search.
const MAX_HALVINGS: usize = 40;
/// The Armijo constant: the share of the linear prediction by which a step must decrease the function.
const ARMIJO: f64 = 1e-4;

/// A value with its first and second derivatives.
pub(super) struct Curvature<const N: usize> {
    pub(super) value: f64,
    pub(super) gradient: [f64; N],
    pub(super) hessian: [[f64; N]; N],
}

/// The minimizer of a strongly convex function. Its value is never above that of the start.
pub(super) fn newton<const N: usize>(
    start: [f64; N],
    function: impl Fn(&[f64; N]) -> Curvature<N>,
) -> [f64; N] {
    const MAX_STEPS: usize = 100;
    let mut at = start;
    let mut here = function(&at);
    for _ in 0..MAX_STEPS {
        let step = solve(here.hessian, here.gradient);
        let descent = dot(&step, &here.gradient);
        let better = halvings().find_map(|length| {
            let next = std::array::from_fn(|i| at[i] - length * step[i]);
            let there = function(&next);
            (there.value <= here.value - ARMIJO * length * descent).then_some((next, there))
        });
        let Some((next, there)) = better else { break };
        (at, here) = (next, there);
        if descent <= 1e-14 * (1.0 + here.value.abs()) {
            break;
        }
    }
    at
}

/// The solution of A x = b for a positive definite A, by elimination.
fn solve<const N: usize>(mut a: [[f64; N]; N], mut b: [f64; N]) -> [f64; N] {
    for pivot in 0..N {
        for row in pivot + 1..N {
            let factor = a[row][pivot] / a[pivot][pivot];
            for column in pivot..N {
                a[row][column] -= factor * a[pivot][column];
            }
            b[row] -= factor * b[pivot];
        }
    }
    for row in (0..N).rev() {
        let known: f64 = (row + 1..N).map(|column| a[row][column] * b[column]).sum();
        b[row] = (b[row] - known) / a[row][row];
    }
    b
}

/// The minimizer of a convex function of many variables. Its value is never above that of the start.
///
/// `function` writes the gradient and returns the value. The search stops when all derivatives are within
/// `tolerance`, or when a step does not decrease the value.
pub(super) fn limited_memory_bfgs(
    mut at: Vec<f64>,
    tolerance: f64,
    function: impl Fn(&[f64], &mut [f64]) -> f64,
) -> Vec<f64> {
    const MAX_STEPS: usize = 1000;
    let n = at.len();
    let mut gradient = vec![0.0; n];
    let mut value = function(&at, &mut gradient);
    let mut memory = Memory::default();
    for _ in 0..MAX_STEPS {
        if gradient.iter().all(|derivative| derivative.abs() <= tolerance) {
            break;
        }
        let step = memory.step(&gradient);
        let descent = dot(&step, &gradient);
        let mut next_gradient = vec![0.0; n];
        let better = halvings().find_map(|length| {
            let next: Vec<f64> = (0..n).map(|i| at[i] - length * step[i]).collect();
            let next_value = function(&next, &mut next_gradient);
            (next_value <= value - ARMIJO * length * descent).then_some((next, next_value))
        });
        let Some((next, next_value)) = better else { break };
        memory.remember(difference(&next, &at), difference(&next_gradient, &gradient));
        let settled = value - next_value <= 1e-14 * (1.0 + value.abs());
        (at, value, gradient) = (next, next_value, next_gradient);
        if settled {
            break;
        }
    }
    at
}

/// The last steps, and the changes of the gradient that they caused.
#[derive(Default)]
struct Memory {
    pairs: std::collections::VecDeque<(Vec<f64>, Vec<f64>)>,
}

impl Memory {
    const LENGTH: usize = 10;

    fn remember(&mut self, moved: Vec<f64>, changed: Vec<f64>) {
        if dot(&moved, &changed) <= 1e-300 {
            return;
        }
        if self.pairs.len() == Self::LENGTH {
            self.pairs.pop_front();
        }
        self.pairs.push_back((moved, changed));
    }

    /// The gradient times an estimate of the inverse Hessian (two-loop recursion; Nocedal and Wright, algorithm 7.4).
    fn step(&self, gradient: &[f64]) -> Vec<f64> {
        let mut step = gradient.to_vec();
        let mut factors = Vec::new();
        for (moved, changed) in self.pairs.iter().rev() {
            let factor = dot(moved, &step) / dot(moved, changed);
            add(&mut step, -factor, changed);
            factors.push(factor);
        }
        let scale = match self.pairs.back() {
            Some((moved, changed)) => dot(moved, changed) / dot(changed, changed),
            None => 1.0 / dot(gradient, gradient).sqrt().max(1.0),
        };
        step.iter_mut().for_each(|value| *value *= scale);
        for ((moved, changed), factor) in self.pairs.iter().zip(factors.into_iter().rev()) {
            let other = dot(changed, &step) / dot(moved, changed);
            add(&mut step, factor - other, moved);
        }
        step
    }
}

fn halvings() -> impl Iterator<Item = f64> {
    (0..MAX_HALVINGS).map(|halvings| 0.5f64.powi(halvings as i32))
}

pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

pub(crate) fn difference(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

pub(crate) fn add(to: &mut [f64], factor: f64, what: &[f64]) {
    to.iter_mut().zip(what).for_each(|(to, what)| *to += factor * what);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newton_finds_the_minimum() {
        let found = newton([0.0, 0.0], |&[x, y]| Curvature {
            value: x.exp() - x + (y - x).powi(2),
            gradient: [x.exp() - 1.0 - 2.0 * (y - x), 2.0 * (y - x)],
            hessian: [[x.exp() + 2.0, -2.0], [-2.0, 2.0]],
        });
        assert!(found.iter().all(|value| value.abs() < 1e-7), "{found:?}");
    }

    #[test]
    fn limited_memory_finds_the_minimum_of_a_long_valley() {
        let scales: Vec<f64> = (0..30).map(|i| 1.3f64.powi(i)).collect();
        let found = limited_memory_bfgs(vec![1.0; 30], 1e-9, |x, gradient| {
            (0..30).for_each(|i| gradient[i] = scales[i] * (x[i] - 0.5));
            (0..30).map(|i| scales[i] * (x[i] - 0.5).powi(2) / 2.0).sum()
        });
        assert!(found.iter().all(|value| (value - 0.5).abs() < 1e-6), "{found:?}");
    }
}
