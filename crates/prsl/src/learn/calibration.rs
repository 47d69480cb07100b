//! Calibrators whose numbers are learned together with the rules.

use crate::calibrator::SMOOTH;

/// How one label's beliefs become trustworthy, in terms of the parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Calibration {
    /// As they are.
    Identity,
    /// Two categories: logit = slope · logit + intercept, parameters from here on.
    Platt(usize),
    /// ln belief = weights · ln belief + bias up to normalization: the matrix row by row, then the bias.
    Dirichlet(usize),
}

impl Calibration {
    #[cfg(test)]
    /// How many parameters it has for a label of this many categories.
    pub(crate) fn n_parameters(self, n_categories: usize) -> usize {
        match self {
            Calibration::Identity => 0,
            Calibration::Platt(_) => 2,
            Calibration::Dirichlet(_) => n_categories * (n_categories + 1),
        }
    }

    /// Calls `put` with ln π for each category.
    pub(crate) fn apply(self, parameters: &[f64], log_beliefs: &[f64], mut put: impl FnMut(usize, f64)) {
        match self {
            Calibration::Identity => log_beliefs.iter().enumerate().for_each(|(m, &log)| put(m, log)),
            Calibration::Platt(at) => {
                let logit = parameters[at] * (log_beliefs[0] - log_beliefs[1]) + parameters[at + 1];
                put(0, -softplus(-logit));
                put(1, -softplus(logit));
            }
            Calibration::Dirichlet(at) => {
                let n = log_beliefs.len();
                let (weights, bias) = parameters[at..at + n * (n + 1)].split_at(n * n);
                let row = |m: usize| bias[m] + dot(&weights[m * n..(m + 1) * n], log_beliefs);
                let logs: Vec<f64> = (0..n).map(row).collect();
                let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let total = largest + logs.iter().map(|log| (log - largest).exp()).sum::<f64>().ln();
                logs.iter().enumerate().for_each(|(m, log)| put(m, log - total));
            }
        }
    }

    /// Adds the gradient in the parameters; `of` gives ln π and the derivative in ln π of a category.
    pub(crate) fn add_gradient(
        self,
        log_beliefs: &[f64],
        of: impl Fn(usize) -> (f64, f64),
        gradient: &mut [f64],
    ) {
        let total = || (0..log_beliefs.len()).map(|m| of(m).1).sum::<f64>();
        match self {
            Calibration::Identity => {}
            Calibration::Platt(at) => {
                let (log_belief, slope) = of(0);
                let of_logit = slope - log_belief.exp() * total();
                gradient[at] += of_logit * (log_beliefs[0] - log_beliefs[1]);
                gradient[at + 1] += of_logit;
            }
            Calibration::Dirichlet(at) => {
                let (n, total) = (log_beliefs.len(), total());
                for m in 0..n {
                    let (log_belief, slope) = of(m);
                    let of_log = slope - log_belief.exp() * total;
                    for (other, log) in log_beliefs.iter().enumerate() {
                        gradient[at + m * n + other] += of_log * log;
                    }
                    gradient[at + n * n + m] += of_log;
                }
            }
        }
    }
}

/// ln of beliefs kept away from 0 and 1, as calibrators take it.
pub(crate) fn smooth_logs(beliefs: &[f64]) -> impl Iterator<Item = f64> {
    beliefs.iter().map(|belief| belief.clamp(SMOOTH, 1.0 - SMOOTH).ln())
}

/// ln(1 + eˣ) without overflow.
fn softplus(x: f64) -> f64 {
    if x > 0.0 { x + (-x).exp().ln_1p() } else { x.exp().ln_1p() }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
