//! Fits calibrators to rows of known truth, one label at a time.
//!
//! Every kind is regularized toward the identity. So a small number of rows changes little, and a label that is
//! always or never true gets finite parameters. Without rows, each kind is the identity.

use crate::diagnostic::quoted;
use std::fmt;
use std::str::FromStr;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::data::{CalibrationData, Row};
use super::minimize::{Curvature, limited_memory_bfgs, newton};
use super::pool::pool;
use crate::calibrator::{Calibrator, Confusion, Dirichlet, Isotonic, smooth};
use crate::distribution::softmax;
use crate::error::{CalibrationProblem, Result};
use crate::log_space::log_odds;

/// The ridge penalty of slope and inverse temperature, toward 1. RIDGE/2 · (distance from 1)² is added to the sum of
/// the log losses.
pub const RIDGE: f64 = 1.0;
/// The ridge penalty of the intercept, toward 0.
pub const INTERCEPT_RIDGE: f64 = 0.3;
/// The ridge penalty of the parameters of Dirichlet calibration, toward the identity.
pub const DIRICHLET_RIDGE: f64 = 1.0;
/// The weight of the pseudo-observations of isotonic calibration: a hit at the lowest belief, a miss at the highest.
pub const ISOTONIC_ROWS: f64 = 1.0;
/// The pseudo-count of a column of a confusion matrix: half of it on the diagonal, half of it uniform.
pub const CONFUSION_ROWS: f64 = 1.0;
/// The number of folds of the cross-validation of [`CalibrationMethod::Auto`].
pub const FOLDS: usize = 5;

/// Maximum fitted temperature. The minimum is its inverse.
const MAX_TEMPERATURE: f64 = 100.0;
/// The seed of the random folds.
const SEED: u64 = 1;

/// How a calibrator is fitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CalibrationMethod {
    /// The method with the smallest log loss in cross-validation, or the identity if none is better.
    #[default]
    Auto,
    /// [`Calibrator::Temperature`], by Newton's method.
    Temperature,
    /// [`Calibrator::Platt`], by Newton's method.
    Platt,
    /// [`Calibrator::Isotonic`], by pooling adjacent violators, one category against the rest.
    Isotonic,
    /// [`Calibrator::Dirichlet`], by L-BFGS.
    Dirichlet,
    /// [`Calibrator::Confusion`], by expectation maximization.
    Confusion,
}

impl CalibrationMethod {
    /// All methods.
    pub const ALL: [CalibrationMethod; 6] = [
        CalibrationMethod::Auto,
        CalibrationMethod::Temperature,
        CalibrationMethod::Platt,
        CalibrationMethod::Isotonic,
        CalibrationMethod::Dirichlet,
        CalibrationMethod::Confusion,
    ];

    /// Its name in lower case.
    pub fn name(self) -> &'static str {
        match self {
            CalibrationMethod::Auto => "auto",
            CalibrationMethod::Temperature => "temperature",
            CalibrationMethod::Platt => "platt",
            CalibrationMethod::Isotonic => "isotonic",
            CalibrationMethod::Dirichlet => "dirichlet",
            CalibrationMethod::Confusion => "confusion",
        }
    }

    /// The method for a label of `n_categories` categories: Dirichlet if Platt scaling does not apply.
    pub fn suited_to(self, n_categories: usize) -> Self {
        if self == CalibrationMethod::Platt && n_categories != 2 {
            CalibrationMethod::Dirichlet
        } else {
            self
        }
    }
}

impl fmt::Display for CalibrationMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for CalibrationMethod {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = Self::ALL.map(Self::name);
        let found = Self::ALL.into_iter().find(|method| method.name() == text);
        found.ok_or_else(|| format!("unknown method {}, expected one of {}", quoted(text), names.join(", ")))
    }
}

impl Calibrator {
    /// Fits a calibrator to the rows of one label.
    ///
    /// The same rows always give the same calibrator. Without rows it is the identity, except for smoothing.
    ///
    /// ```
    /// use prsl::calibrate::{CalibrationData, CalibrationMethod, Calibrator};
    ///
    /// let nothing = CalibrationData::new(2, &[], &[], None)?;
    /// assert_eq!(Calibrator::fit(CalibrationMethod::Auto, &nothing)?, Calibrator::Identity);
    /// let platt = Calibrator::fit(CalibrationMethod::Platt, &nothing)?;
    /// assert_eq!(platt, Calibrator::Platt { slope: 1.0, intercept: 0.0 });
    /// # Ok::<(), prsl::Error>(())
    /// ```
    pub fn fit(method: CalibrationMethod, data: &CalibrationData<'_>) -> Result<Self> {
        match method {
            CalibrationMethod::Auto => auto(data),
            CalibrationMethod::Platt if data.n_categories != 2 => {
                Err(CalibrationProblem::TwoCategories { n: data.n_categories }.into())
            }
            CalibrationMethod::Platt => Ok(platt(&data.rows)),
            CalibrationMethod::Temperature => Ok(temperature(&data.rows)),
            CalibrationMethod::Isotonic => isotonic(data).map(Calibrator::Isotonic),
            CalibrationMethod::Dirichlet => dirichlet(data).map(Calibrator::Dirichlet),
            CalibrationMethod::Confusion => confusion(data).map(Calibrator::Confusion),
        }
    }
}

/// Fits the method with the smallest held-out log loss to all rows. Ties go to the method with fewer parameters.
///
/// With fewer rows than folds it is temperature scaling.
fn auto(data: &CalibrationData<'_>) -> Result<Calibrator> {
    if data.n_rows() == 0 {
        return Ok(Calibrator::Identity);
    }
    if data.n_rows() < FOLDS {
        return Ok(temperature(&data.rows));
    }
    let folds = folds(data);
    let mut best = (data.log_loss(&Calibrator::Identity), None);
    for method in candidates(data.n_categories) {
        let loss = held_out_loss(*method, &folds)?;
        if loss < best.0 {
            best = (loss, Some(*method));
        }
    }
    best.1.map_or(Ok(Calibrator::Identity), |method| Calibrator::fit(method, data))
}

/// The methods that are compared, by increasing number of parameters. For two categories, Dirichlet calibration is
/// equivalent to Platt scaling.
fn candidates(n_categories: usize) -> &'static [CalibrationMethod] {
    use CalibrationMethod::{Confusion, Dirichlet, Isotonic, Platt, Temperature};
    if n_categories == 2 {
        &[Temperature, Platt, Confusion, Isotonic]
    } else {
        &[Temperature, Dirichlet, Confusion, Isotonic]
    }
}

/// For each fold, the training rows and the held-out rows.
fn folds<'a>(data: &CalibrationData<'a>) -> Vec<(CalibrationData<'a>, CalibrationData<'a>)> {
    let mut rows = data.rows.clone();
    rows.shuffle(&mut ChaCha8Rng::seed_from_u64(SEED));
    let pick = |fold: usize, held_out: bool| {
        let mine = |index: usize| (index % FOLDS == fold) == held_out;
        let rows = rows.iter().enumerate().filter(|(index, _)| mine(*index)).map(|(_, row)| *row).collect();
        CalibrationData { n_categories: data.n_categories, rows }
    };
    (0..FOLDS).map(|fold| (pick(fold, false), pick(fold, true))).collect()
}

fn held_out_loss(
    method: CalibrationMethod,
    folds: &[(CalibrationData<'_>, CalibrationData<'_>)],
) -> Result<f64> {
    let weight = |data: &CalibrationData<'_>| data.rows.iter().map(|row| row.weight).sum::<f64>();
    let mut sum = 0.0;
    let mut total = 0.0;
    for (rest, held_out) in folds {
        sum += weight(held_out) * held_out.log_loss(&Calibrator::fit(method, rest)?);
        total += weight(held_out);
    }
    Ok(sum / total)
}

/// Minimizes Σ w · −ln σ(± (slope · x + intercept)) + RIDGE/2 (slope − 1)² + INTERCEPT_RIDGE/2 intercept². Here x is
/// the log-odds of the smoothed belief.
fn platt(rows: &[Row<'_>]) -> Calibrator {
    let odds: Vec<f64> = rows.iter().map(|row| log_odds(smooth(row.belief[0]))).collect();
    let [slope, intercept] = newton([1.0, 0.0], |&[slope, intercept]| {
        let mut sum = Curvature {
            value: RIDGE / 2.0 * (slope - 1.0).powi(2) + INTERCEPT_RIDGE / 2.0 * intercept.powi(2),
            gradient: [RIDGE * (slope - 1.0), INTERCEPT_RIDGE * intercept],
            hessian: [[RIDGE, 0.0], [0.0, INTERCEPT_RIDGE]],
        };
        for (row, &x) in rows.iter().zip(&odds) {
            let mut out = [slope * x + intercept, 0.0];
            softmax(&mut out);
            let hit = f64::from(u8::from(row.truth == 0));
            sum.value -= row.weight * out[row.truth].max(f64::MIN_POSITIVE).ln();
            let (first, second) = (row.weight * (out[0] - hit), row.weight * out[0] * out[1]);
            sum.gradient[0] += first * x;
            sum.gradient[1] += first;
            sum.hessian[0][0] += second * x * x;
            sum.hessian[0][1] += second * x;
            sum.hessian[1][1] += second;
        }
        sum.hessian[1][0] = sum.hessian[0][1];
        sum
    });
    Calibrator::Platt { slope, intercept }
}

/// Minimizes Σ w · −ln softmax(s ln b) + RIDGE/2 (s − 1)² over the inverse temperature s. This is convex in s: the
/// second derivative of a row's log loss is the variance of ln b under the softmax.
fn temperature(rows: &[Row<'_>]) -> Calibrator {
    let logs: Vec<Vec<f64>> =
        rows.iter().map(|row| row.belief.iter().map(|&value| smooth(value).ln()).collect()).collect();
    let [inverse] = newton([1.0], |&[inverse]| {
        let mut value = RIDGE / 2.0 * (inverse - 1.0).powi(2);
        let mut gradient = RIDGE * (inverse - 1.0);
        let mut hessian = RIDGE;
        for (row, logs) in rows.iter().zip(&logs) {
            let mut out: Vec<f64> = logs.iter().map(|log| inverse * log).collect();
            softmax(&mut out);
            let mean: f64 = out.iter().zip(logs).map(|(p, log)| p * log).sum();
            let square: f64 = out.iter().zip(logs).map(|(p, log)| p * (log - mean).powi(2)).sum();
            value -= row.weight * out[row.truth].max(f64::MIN_POSITIVE).ln();
            gradient += row.weight * (mean - logs[row.truth]);
            hessian += row.weight * square;
        }
        Curvature { value, gradient: [gradient], hessian: [[hessian]] }
    });
    // The loss is convex. So if the minimum is outside the range, the nearest end of the range is best.
    Calibrator::Temperature { temperature: 1.0 / inverse.clamp(1.0 / MAX_TEMPERATURE, MAX_TEMPERATURE) }
}

fn isotonic(data: &CalibrationData<'_>) -> Result<Isotonic> {
    let map = |category: usize| {
        let observation =
            |row: &Row<'_>| (row.belief[category].clamp(0.0, 1.0), row.truth == category, row.weight);
        pool(data.rows.iter().map(observation).collect(), ISOTONIC_ROWS)
    };
    Isotonic::new((0..data.n_categories).map(map).collect())
}

/// Minimizes Σ w · −ln softmax(W ln b + bias) + DIRICHLET_RIDGE/2 (‖W − I‖² + ‖bias‖²).
fn dirichlet(data: &CalibrationData<'_>) -> Result<Dirichlet> {
    let n = data.n_categories;
    let identity = Dirichlet::identity(n);
    let logs: Vec<f64> =
        data.rows.iter().flat_map(|row| row.belief.iter().map(|&value| smooth(value).ln())).collect();
    let tolerance = 1e-7 * (1.0 + data.rows.iter().map(|row| row.weight).sum::<f64>());
    let parameters = limited_memory_bfgs(identity.clone(), tolerance, |at, gradient| {
        let mut value = 0.0;
        for i in 0..at.len() {
            gradient[i] = DIRICHLET_RIDGE * (at[i] - identity[i]);
            value += gradient[i] * (at[i] - identity[i]) / 2.0;
        }
        let mut out = vec![0.0; n];
        for (row, logs) in data.rows.iter().zip(logs.chunks(n)) {
            value += row.weight * dirichlet_row(at, logs, row.truth, &mut out);
            for m in 0..n {
                let d = row.weight * (out[m] - f64::from(u8::from(m == row.truth)));
                (0..n).for_each(|k| gradient[m * n + k] += d * logs[k]);
                gradient[n * n + m] += d;
            }
        }
        value
    });
    Dirichlet::from_parameters(parameters)
}

/// Returns the log loss of one row and writes its distribution to `out`.
fn dirichlet_row(parameters: &[f64], logs: &[f64], truth: usize, out: &mut [f64]) -> f64 {
    let n = logs.len();
    for m in 0..n {
        let weights = &parameters[m * n..(m + 1) * n];
        out[m] = parameters[n * n + m] + weights.iter().zip(logs).map(|(w, log)| w * log).sum::<f64>();
    }
    let log_truth = out[truth];
    let log_sum = crate::log_space::log_sum_exp(out);
    out.iter_mut().for_each(|value| *value = (*value - log_sum).exp());
    log_sum - log_truth
}

/// The maximum a posteriori P(L | C) in the paper's network, where C is drawn from the belief and not observed.
///
/// It is fitted by expectation maximization. A row of truth m counts for column c in proportion to P(L = m | C = c)
/// b(c). The first iteration starts from a uniform matrix, so it counts truths weighted by beliefs. The likelihood is
/// concave, so the result is the maximum.
fn confusion(data: &CalibrationData<'_>) -> Result<Confusion> {
    const MAX_ROUNDS: usize = 200;
    const TOLERANCE: f64 = 1e-6;
    let n = data.n_categories;
    let mut matrix = Confusion::new(vec![vec![1.0; n]; n])?;
    for _ in 0..MAX_ROUNDS {
        let next = Confusion::new(expected_counts(data, &matrix))?;
        let change = |m: usize, c: usize| (next.probability(m, c) - matrix.probability(m, c)).abs();
        let settled = (0..n * n).all(|i| change(i / n, i % n) <= TOLERANCE);
        matrix = next;
        if settled {
            break;
        }
    }
    Ok(matrix)
}

fn expected_counts(data: &CalibrationData<'_>, matrix: &Confusion) -> Vec<Vec<f64>> {
    let n = data.n_categories;
    let mut counts = vec![vec![CONFUSION_ROWS / 2.0 / n as f64; n]; n];
    (0..n).for_each(|m| counts[m][m] += CONFUSION_ROWS / 2.0);
    for row in &data.rows {
        let share: Vec<f64> = (0..n).map(|c| matrix.probability(row.truth, c) * row.belief[c]).collect();
        let sum: f64 = share.iter().sum();
        for (count, share) in counts[row.truth].iter_mut().zip(&share) {
            *count += row.weight * if sum > 0.0 { share / sum } else { 1.0 / n as f64 };
        }
    }
    counts
}
