//! Calibrators: maps from a classifier's belief to a calibrated belief.
//!
//! A belief of 0.9 should be right nine times in ten. If it is not, a calibrator corrects the beliefs about one label.
//! Only classifiers' beliefs are calibrated; observed categories and priors are not. `calibrate` fits calibrators to
//! rows.

mod confusion;
mod dirichlet;
mod inverse;
mod isotonic;

pub use confusion::Confusion;
pub use dirichlet::Dirichlet;
pub(crate) use inverse::Direction;
pub use isotonic::Isotonic;

use crate::distribution::softmax;
use crate::error::{CalibrationProblem, Error, Result, within};
use crate::log_space::log_odds;

/// Beliefs are clipped to [SMOOTH, 1 − SMOOTH] before their logarithm is taken.
///
/// Many classifiers report 0 or 1 and are sometimes wrong.
pub const SMOOTH: f64 = 1e-3;

/// Maximum magnitude of a slope, weight or intercept, and of a temperature and its inverse.
pub const MAX_PARAMETER: f64 = 1e6;

/// A map from the raw belief about one label to a calibrated one. Users can implement it for their own calibrators.
///
/// [`Calibrator`] has the maps that a model can store. [`BeliefMatrix::calibrate`](crate::BeliefMatrix::calibrate)
/// applies any other map before inference.
///
/// ```
/// use prsl::calibrate::Calibrate;
/// use prsl::{BeliefMatrix, Evidence, Model};
///
/// /// The mean of the belief and the uniform distribution.
/// struct Doubt;
///
/// impl Calibrate for Doubt {
///     fn calibrate(&self, belief: &[f64], out: &mut [f64]) {
///         for (out, value) in out.iter_mut().zip(belief) {
///             *out = (value + 1.0 / belief.len() as f64) / 2.0;
///         }
///     }
/// }
///
/// let mut out = [0.0; 2];
/// Doubt.calibrate(&[1.0, 0.0], &mut out);
/// assert_eq!(out, [0.75, 0.25]);
/// # Ok::<(), prsl::Error>(())
/// ```
pub trait Calibrate {
    /// Writes the calibrated belief, a distribution over as many categories, to `out`.
    fn calibrate(&self, belief: &[f64], out: &mut [f64]);
}

/// The calibrators that a model can store.
///
/// ```
/// use prsl::calibrate::{Calibrate, Calibrator};
///
/// let sure = Calibrator::Platt { slope: 2.0, intercept: 0.0 };
/// let mut out = [0.0; 2];
/// sure.calibrate(&[0.75, 0.25], &mut out);
/// assert!((out[0] - 0.9).abs() < 1e-12); // odds of 3 become odds of 9
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Calibrator {
    /// Leaves beliefs unchanged, including 0 and 1.
    #[default]
    Identity,
    /// π(m) ∝ b(m)^(1/temperature), where b is clipped. A temperature above 1 makes beliefs less certain, and one
    /// below 1 makes them more certain.
    Temperature {
        /// The temperature, above 0.
        temperature: f64,
    },
    /// For labels of two categories: log-odds of the first = slope · log-odds of its clipped belief + intercept.
    Platt {
        /// The slope. The identity has 1. A negative slope inverts a classifier that is wrong more often than right.
        slope: f64,
        /// The intercept. The identity has 0.
        intercept: f64,
    },
    /// A nondecreasing piecewise linear map for each category.
    Isotonic(Isotonic),
    /// ln π = W ln b + bias up to normalization, where b is clipped.
    Dirichlet(Dirichlet),
    /// π = the confusion matrix times b.
    Confusion(Confusion),
}

impl Calibrate for Calibrator {
    fn calibrate(&self, belief: &[f64], out: &mut [f64]) {
        match self {
            Calibrator::Identity => out.copy_from_slice(belief),
            Calibrator::Isotonic(isotonic) => isotonic.calibrate(belief, out),
            Calibrator::Confusion(confusion) => confusion.calibrate(belief, out),
            Calibrator::Dirichlet(dirichlet) => dirichlet.calibrate(belief, out),
            Calibrator::Temperature { temperature } => {
                for (out, &value) in out.iter_mut().zip(belief) {
                    *out = smooth(value).ln() / temperature;
                }
                softmax(out);
            }
            Calibrator::Platt { slope, intercept } => {
                out[0] = slope * log_odds(smooth(belief[0])) + intercept;
                out[1] = 0.0;
                softmax(out);
            }
        }
    }
}

impl Calibrator {
    /// The keyword of its kind in a model file: `platt`.
    pub fn kind(&self) -> &'static str {
        match self {
            Calibrator::Identity => "identity",
            Calibrator::Temperature { .. } => "temperature",
            Calibrator::Platt { .. } => "platt",
            Calibrator::Isotonic(_) => "isotonic",
            Calibrator::Dirichlet(_) => "dirichlet",
            Calibrator::Confusion(_) => "confusion",
        }
    }

    /// Checks that its numbers are in range and that it is for labels of `n_categories` categories.
    ///
    /// A calibrator that passes maps every belief to a distribution.
    ///
    /// ```
    /// use prsl::calibrate::Calibrator;
    ///
    /// let error = Calibrator::Platt { slope: 1.0, intercept: 0.0 }.check(3).unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "cannot calibrate: `platt` is for labels of two categories, and this one has 3; use `dirichlet`"
    /// );
    /// ```
    pub fn check(&self, n_categories: usize) -> Result<()> {
        self.find_problem(n_categories).map_err(Error::Calibration)
    }

    /// The same as [`Self::check`], with the problem alone as its error.
    pub(crate) fn find_problem(&self, n_categories: usize) -> Result<(), CalibrationProblem> {
        match self {
            Calibrator::Identity => Ok(()),
            Calibrator::Temperature { temperature } => check_temperature(*temperature),
            Calibrator::Platt { .. } if n_categories != 2 => {
                Err(CalibrationProblem::TwoCategories { n: n_categories })
            }
            Calibrator::Platt { slope, intercept } => {
                check_parameter("slope", *slope).and_then(|()| check_parameter("intercept", *intercept))
            }
            Calibrator::Isotonic(isotonic) => check_size("maps", isotonic.n_categories(), n_categories),
            Calibrator::Dirichlet(dirichlet) => check_size("rows", dirichlet.n_categories(), n_categories),
            Calibrator::Confusion(confusion) => check_size("rows", confusion.n_categories(), n_categories),
        }
    }

    /// The learnable parameters: the temperature; slope and intercept; or weights row by row, then the bias.
    ///
    /// Other kinds have none.
    pub fn parameters(&self) -> Vec<f64> {
        match self {
            Calibrator::Temperature { temperature } => vec![*temperature],
            Calibrator::Platt { slope, intercept } => vec![*slope, *intercept],
            Calibrator::Dirichlet(dirichlet) => dirichlet.parameters().to_vec(),
            Calibrator::Identity | Calibrator::Isotonic(_) | Calibrator::Confusion(_) => Vec::new(),
        }
    }

    /// The same kind of calibrator with other [`parameters`](Self::parameters), of the same number.
    ///
    /// ```
    /// use prsl::calibrate::Calibrator;
    ///
    /// let platt = Calibrator::Platt { slope: 1.0, intercept: 0.0 };
    /// let steeper = platt.with_parameters(&[2.0, -0.5])?;
    /// assert_eq!(steeper, Calibrator::Platt { slope: 2.0, intercept: -0.5 });
    /// assert!(platt.with_parameters(&[2.0]).is_err());
    /// # Ok::<(), prsl::Error>(())
    /// ```
    pub fn with_parameters(&self, parameters: &[f64]) -> Result<Self> {
        let wanted = self.parameters().len();
        if parameters.len() != wanted {
            return Err(CalibrationProblem::Numbers { given: parameters.len(), wanted }.into());
        }
        let changed = match (self, parameters) {
            (Calibrator::Temperature { .. }, &[temperature]) => Calibrator::Temperature { temperature },
            (Calibrator::Platt { .. }, &[slope, intercept]) => Calibrator::Platt { slope, intercept },
            (Calibrator::Dirichlet(_), _) => {
                Calibrator::Dirichlet(Dirichlet::from_parameters(parameters.to_vec())?)
            }
            _ => self.clone(),
        };
        changed.check(self.n_categories().unwrap_or(2))?;
        Ok(changed)
    }

    /// Adds the derivatives of Σₘ d_log_output\[m\] · ln π(m) in the parameters to `d_parameters`.
    ///
    /// # Derivation
    ///
    /// The three kinds with parameters θ are π = softmax(u(θ)). With D = Σₘ d_log_output\[m\],
    ///
    /// ```text
    /// ∂(Σₖ dₖ ln πₖ)/∂uₘ = dₘ − πₘ D                                              (1)
    /// temperature:  uₘ = ln bₘ / T              ∂uₘ/∂T = −ln bₘ / T²               (2)
    /// platt:        u₀ = slope · x + intercept  ∂u₀ = (x, 1),  u₁ = 0              (3)
    /// dirichlet:    uₘ = Σₖ Wₘₖ ln bₖ + biasₘ   ∂uₘ/∂Wₘₖ = ln bₖ,  ∂uₘ/∂biasₘ = 1  (4)
    /// ```
    ///
    /// Domain: any belief, since b is clipped. Checked in `gradients_agree_with_central_differences`.
    pub fn gradient(&self, belief: &[f64], d_log_output: &[f64], d_parameters: &mut [f64]) {
        if !self.has_parameters() {
            return;
        }
        let total: f64 = d_log_output.iter().sum();
        let mut output = vec![0.0; belief.len()];
        self.calibrate(belief, &mut output);
        let d_input = |m: usize| d_log_output[m] - output[m] * total; // (1)
        match self {
            Calibrator::Temperature { temperature } => {
                let sum: f64 = (0..belief.len()).map(|m| d_input(m) * smooth(belief[m]).ln()).sum();
                d_parameters[0] -= sum / (temperature * temperature); // (2)
            }
            Calibrator::Platt { .. } => {
                d_parameters[0] += d_input(0) * log_odds(smooth(belief[0])); // (3)
                d_parameters[1] += d_input(0);
            }
            Calibrator::Dirichlet(dirichlet) => dirichlet.chain(belief, d_input, d_parameters), // (4)
            Calibrator::Identity | Calibrator::Isotonic(_) | Calibrator::Confusion(_) => {}
        }
    }

    fn has_parameters(&self) -> bool {
        matches!(self, Calibrator::Temperature { .. } | Calibrator::Platt { .. } | Calibrator::Dirichlet(_))
    }

    /// The number of categories of the labels that it suits, if it is limited to one number.
    fn n_categories(&self) -> Option<usize> {
        match self {
            Calibrator::Identity | Calibrator::Temperature { .. } => None,
            Calibrator::Platt { .. } => Some(2),
            Calibrator::Isotonic(isotonic) => Some(isotonic.n_categories()),
            Calibrator::Dirichlet(dirichlet) => Some(dirichlet.n_categories()),
            Calibrator::Confusion(confusion) => Some(confusion.n_categories()),
        }
    }
}

fn check_temperature(temperature: f64) -> Result<(), CalibrationProblem> {
    within("temperature", temperature, 1.0 / MAX_PARAMETER..=MAX_PARAMETER)
}

fn check_parameter(what: &'static str, value: f64) -> Result<(), CalibrationProblem> {
    within(what, value, -MAX_PARAMETER..=MAX_PARAMETER)
}

fn check_size(what: &'static str, given: usize, wanted: usize) -> Result<(), CalibrationProblem> {
    if given == wanted { Ok(()) } else { Err(CalibrationProblem::Size { what, given, wanted }) }
}

/// Clips a belief to [SMOOTH, 1 − SMOOTH], so that its logarithm is finite.
pub(crate) fn smooth(value: f64) -> f64 {
    value.clamp(SMOOTH, 1.0 - SMOOTH)
}
