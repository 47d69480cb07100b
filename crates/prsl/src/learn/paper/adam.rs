//! Projected ADAM (Kingma and Ba 2015): ascent along a smoothed gradient, with each parameter clipped to its bounds.

use serde::{Deserialize, Serialize};

/// Keeps the division by the root mean square finite.
const EPSILON: f64 = 1e-8;

/// The settings of the optimizer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Adam {
    pub(super) learning_rate: f64,
    /// Decay rates of the mean of the gradient and of the mean of its square.
    pub(super) betas: [f64; 2],
    /// Bounds of every parameter.
    pub(super) bounds: [f64; 2],
}

/// The state of the optimizer between steps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Moments {
    mean: Vec<f64>,
    square: Vec<f64>,
    n_steps: i32,
}

impl Moments {
    pub(super) fn new(n_parameters: usize) -> Self {
        Self { mean: vec![0.0; n_parameters], square: vec![0.0; n_parameters], n_steps: 0 }
    }
}

impl Adam {
    /// Makes one step of ascent, with the learning rate multiplied by `scale`.
    pub(super) fn step(&self, moments: &mut Moments, parameters: &mut [f64], gradient: &[f64], scale: f64) {
        moments.n_steps += 1;
        let [first, second] = self.betas;
        let [unbiased, unbiased_square] = self.betas.map(|beta| 1.0 / (1.0 - beta.powi(moments.n_steps)));
        let [low, high] = self.bounds;
        let means = moments.mean.iter_mut().zip(&mut moments.square);
        for ((parameter, slope), (mean, square)) in parameters.iter_mut().zip(gradient).zip(means) {
            *mean = first * *mean + (1.0 - first) * slope;
            *square = second * *square + (1.0 - second) * slope * slope;
            let direction = *mean * unbiased / ((*square * unbiased_square).sqrt() + EPSILON);
            *parameter = (*parameter + scale * self.learning_rate * direction).clamp(low, high);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn converges_to_the_maximum_or_to_the_bound() {
        for (maximum, expected) in [(0.7, 0.7), (3.0, 1.0)] {
            let adam = Adam { learning_rate: 0.01, betas: [0.9, 0.999], bounds: [0.0, 1.0] };
            let (mut parameters, mut moments) = ([0.5], Moments::new(1));
            for _ in 0..3000 {
                let gradient = [-2.0 * (parameters[0] - maximum)];
                adam.step(&mut moments, &mut parameters, &gradient, 1.0);
            }
            assert!((parameters[0] - expected).abs() < 1e-3, "{} is not {expected}", parameters[0]);
        }
    }
}
