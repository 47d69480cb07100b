//! Projected ADAM: steps along a smoothed gradient, each parameter kept in its range.

use serde::{Deserialize, Serialize};

/// Settings of the optimizer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Adam {
    /// How fast the mean of the gradient follows, and that of its square.
    pub(crate) decay: [f64; 2],
    pub(crate) epsilon: f64,
}

impl Default for Adam {
    fn default() -> Self {
        Self { decay: [0.9, 0.999], epsilon: 1e-8 }
    }
}

/// One parameter's step size and range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Range {
    pub(crate) learning_rate: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// What the optimizer remembers between steps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Memory {
    mean: Vec<f64>,
    square: Vec<f64>,
    n_steps: i32,
}

impl Memory {
    pub(crate) fn new(n_parameters: usize) -> Self {
        Self { mean: vec![0.0; n_parameters], square: vec![0.0; n_parameters], n_steps: 0 }
    }
}

impl Adam {
    /// Goes one step uphill.
    pub(crate) fn step(
        &self,
        memory: &mut Memory,
        parameters: &mut [f64],
        gradient: &[f64],
        ranges: &[Range],
        pace: f64,
    ) {
        memory.n_steps += 1;
        let [first, second] = self.decay;
        let [unbiased, unbiased_square] = self.decay.map(|decay| 1.0 / (1.0 - decay.powi(memory.n_steps)));
        let means = memory.mean.iter_mut().zip(&mut memory.square);
        for (((parameter, gradient), range), (mean, square)) in
            parameters.iter_mut().zip(gradient).zip(ranges).zip(means)
        {
            *mean = first * *mean + (1.0 - first) * gradient;
            *square = second * *square + (1.0 - second) * gradient * gradient;
            let direction = *mean * unbiased / ((*square * unbiased_square).sqrt() + self.epsilon);
            *parameter = (*parameter + pace * range.learning_rate * direction).clamp(range.low, range.high);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn climbs_to_the_top_or_to_the_edge() {
        let ranges = [
            Range { learning_rate: 0.05, low: -10.0, high: 10.0 },
            Range { learning_rate: 0.05, low: 0.0, high: 1.0 },
        ];
        let (mut parameters, mut memory) = (vec![0.0, 0.5], Memory::new(2));
        for _ in 0..2000 {
            let gradient = [-2.0 * (parameters[0] - 3.0), -2.0 * (parameters[1] - 3.0)];
            Adam::default().step(&mut memory, &mut parameters, &gradient, &ranges, 1.0);
        }
        assert!((parameters[0] - 3.0).abs() < 1e-3);
        assert_eq!(parameters[1], 1.0);
    }
}
