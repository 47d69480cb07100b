//! The Fisher information of all parameters, estimated from samples.
//!
//! # Derivation
//!
//! The log-weight of an assignment is linear in the parameters. Let φ(y) be its gradient:
//!
//! ```text
//! weight of a rule               −v(y)                    v: whether y violates the rule
//! slope of a calibrator          ln b(yⱼ)                 of two categories: the log-odds of b if yⱼ is the first, else 0
//! intercept or bias of m         [yⱼ = m]
//! ```
//!
//! The Hessian of ln Z(x) is Cov(φ | x). Its sum over rows is the Hessian of the negative log-likelihood if all truths are
//! known, and an upper bound of it otherwise. The covariance within a row is estimated from its 32 samples. Each entry of φ
//! is a bit times a number c that depends on the row. Let n be the number of samples in which a bit is set:
//!
//! ```text
//! Cov(φₐ, φ_b)  =  cₐ c_b (n_ab − nₐ n_b / 32) / 31
//! ```
//!
//! Refits use it as their first estimate of the Hessian. They then take three to five evaluations of all rows, instead of
//! 15 to 25 with the diagonal alone (yeast).

use rayon::prelude::*;

use super::data::Calibration;
use super::feature::Feature;
use super::objective::PRECISION;
use super::problem::Problem;
use super::sheet::{N_SAMPLES, Sheet};
use crate::infer::semiring::wide;

/// Maximum number of parameters. The matrix of more would take longer than the evaluations that it saves.
const MAX_PARAMETERS: usize = 1500;
/// Maximum number of rows times pairs of columns. With more, only a part of the rows is used. A matrix takes about a second.
const MAX_WORK: usize = 1 << 30;

/// One entry of φ, or a part of it.
struct Column {
    parameter: usize,
    /// A word of samples per row.
    words: Vec<u32>,
    /// Row by row: the entry if the bit is set, times the root of the row's weight.
    factors: Vec<f64>,
    /// Row by row: the number of bits.
    counts: Vec<f64>,
}

/// A symmetric positive definite matrix.
#[derive(Clone, Debug)]
pub(crate) struct Matrix {
    pub(crate) rows: Vec<Vec<f64>>,
}

/// The Fisher information at some parameters.
pub(crate) struct Fisher<'a> {
    problem: &'a Problem,
    sheet: &'a Sheet,
    /// The rows of the sheet that are used, and the ratio of all rows to them.
    used: Vec<usize>,
    scale: f64,
    columns: Vec<Column>,
    /// The matrix of all parameters, penalties included. A 0 on the diagonal: not estimated.
    matrix: Matrix,
}

/// A rule that is added to those of the samples.
pub(crate) struct Added<'a> {
    pub(crate) feature: &'a Feature,
    /// How much smaller the variance of its violation is at its weight than in the samples.
    pub(crate) variance_ratio: f64,
}

impl<'a> Fisher<'a> {
    /// Estimates the matrix for the rules that samples were drawn from; `None` if there are too many parameters.
    pub(crate) fn new(problem: &'a Problem, sheet: &'a Sheet, features: &[Feature]) -> Option<Self> {
        let n_parameters = problem.n_fixed() + features.len();
        if n_parameters > MAX_PARAMETERS {
            return None;
        }
        let stride = (sheet.n_rows() * n_parameters * n_parameters / MAX_WORK).max(1);
        let used: Vec<usize> = (0..sheet.n_rows()).step_by(stride).collect();
        let weight = |rows: &[usize]| rows.iter().map(|&row| sheet.weights[row]).sum::<f64>();
        let all: Vec<usize> = (0..sheet.n_rows()).collect();
        let scale = weight(&all) / weight(&used).max(f64::MIN_POSITIVE);
        let mut fisher = Self {
            problem,
            sheet,
            used,
            scale,
            columns: Vec::new(),
            matrix: Matrix { rows: vec![vec![0.0; n_parameters]; n_parameters] },
        };
        fisher.columns = fisher.columns_of_calibrators();
        for (place, feature) in features.iter().enumerate() {
            fisher.columns.push(fisher.column_of_rule(problem.n_fixed() + place, feature));
        }
        fisher.matrix = fisher.estimate(n_parameters);
        Some(fisher)
    }

    /// The matrix of all parameters.
    pub(crate) fn matrix(&self) -> &Matrix {
        &self.matrix
    }

    /// The matrix with the rules of the samples and further ones, whose variance shrinks by a known ratio.
    pub(crate) fn with(&self, added: &[Added<'_>]) -> Matrix {
        let n = self.matrix.rows.len();
        let mut rows = self.matrix.rows.clone();
        rows.iter_mut().for_each(|row| row.resize(n + added.len(), 0.0));
        rows.resize(n + added.len(), vec![0.0; n + added.len()]);
        let columns: Vec<Column> = added
            .iter()
            .enumerate()
            .map(|(place, added)| self.column_of_rule(n + place, added.feature))
            .collect();
        for (place, (column, it)) in columns.iter().zip(added).enumerate() {
            // With D the diagonal matrix of ratios, D C D + diag(ρ (1 − ρ) C) is positive definite.
            let others = self.columns.par_iter().map(|other| it.variance_ratio * covariance(column, other));
            for (other, value) in self.columns.iter().zip(others.collect::<Vec<f64>>()) {
                rows[n + place][other.parameter] += value;
                rows[other.parameter][n + place] += value;
            }
            for (earlier, (other, of_other)) in columns.iter().zip(added).enumerate().take(place) {
                let value = it.variance_ratio * of_other.variance_ratio * covariance(column, other);
                rows[n + place][n + earlier] = value;
                rows[n + earlier][n + place] = value;
            }
            rows[n + place][n + place] = it.variance_ratio * covariance(column, column) + PRECISION;
        }
        Matrix { rows }
    }

    fn columns_of_calibrators(&self) -> Vec<Column> {
        let data = &self.problem.data;
        let mut columns = Vec::new();
        for (label, calibration) in data.calibrations.iter().enumerate() {
            let words = |category: usize| self.words(|row| self.sheet.category(label, category, row));
            let logs = |row: usize| data.log_of(self.sheet.rows[row], label);
            let one = |row: usize| if logs(row).is_some() { 1.0 } else { 0.0 };
            let n = data.blocks[label].len();
            match *calibration {
                Calibration::Given => {}
                Calibration::Platt(at) => {
                    let log_odds = |row: usize| logs(row).map_or(0.0, |logs| logs[0] - logs[1]);
                    columns.push(self.column(at, words(0), log_odds));
                    columns.push(self.column(at + 1, words(0), one));
                }
                Calibration::Scaled(at) => {
                    for category in 0..n {
                        let log = |row: usize| logs(row).map_or(0.0, |logs| logs[category]);
                        columns.push(self.column(at, words(category), log));
                        columns.push(self.column(at + 1 + category, words(category), one));
                    }
                }
                Calibration::Tempered(at) => {
                    for category in 0..n {
                        let log = |row: usize| logs(row).map_or(0.0, |logs| logs[category]);
                        columns.push(self.column(at, words(category), log));
                    }
                }
                Calibration::Mixed(at) => {
                    for (category, other) in (0..n).flat_map(|category| (0..n).map(move |k| (category, k))) {
                        let log = |row: usize| logs(row).map_or(0.0, |logs| logs[other]);
                        columns.push(self.column(at + category * n + other, words(category), log));
                    }
                    let bias = |category: usize| self.column(at + n * n + category, words(category), one);
                    columns.extend((0..n).map(bias));
                }
                Calibration::Biased(at) => {
                    (0..n)
                        .for_each(|category| columns.push(self.column(at + category, words(category), one)));
                }
            }
        }
        columns
    }

    fn column_of_rule(&self, parameter: usize, feature: &Feature) -> Column {
        let words = self.words(|row| self.sheet.violations(feature, &self.sheet.model, row));
        self.column(parameter, words, |_| -1.0)
    }

    fn words(&self, word: impl Fn(usize) -> u32) -> Vec<u32> {
        self.used.iter().map(|&row| word(row)).collect()
    }

    fn column(&self, parameter: usize, words: Vec<u32>, factor: impl Fn(usize) -> f64) -> Column {
        let scale = self.scale / (N_SAMPLES - 1) as f64;
        let factors = self.used.iter().map(|&row| factor(row) * (scale * self.sheet.weights[row]).sqrt());
        let counts = words.iter().map(|word| f64::from(word.count_ones()));
        Column { parameter, factors: factors.collect(), counts: counts.collect(), words }
    }

    fn estimate(&self, n_parameters: usize) -> Matrix {
        let columns = &self.columns;
        let of_column = |place: usize| -> Vec<f64> {
            columns[..=place].iter().map(|other| covariance(&columns[place], other)).collect()
        };
        let found: Vec<Vec<f64>> = (0..columns.len()).into_par_iter().map(of_column).collect();
        let mut rows = vec![vec![0.0; n_parameters]; n_parameters];
        for (place, values) in found.iter().enumerate() {
            for (other, &value) in values.iter().enumerate() {
                let [a, b] = [columns[place].parameter, columns[other].parameter];
                rows[a][b] += value;
                if place != other {
                    rows[b][a] += value;
                }
            }
        }
        let ridges = self.problem.ridges.iter().map(|ridge| ridge.strength);
        let penalties = ridges.chain(std::iter::repeat(PRECISION)).take(n_parameters);
        let n_calibration = self.problem.data.n_calibration_parameters;
        for (place, penalty) in penalties.enumerate() {
            // Weights of the base's rules have no column: their violations are not known from the samples.
            if !(n_calibration..self.problem.n_fixed()).contains(&place) {
                rows[place][place] += penalty;
            }
        }
        Matrix { rows }
    }
}

fn covariance(a: &Column, b: &Column) -> f64 {
    let n = a.words.len();
    let (words, factors, counts) = (
        [&a.words[..n], &b.words[..n]],
        [&a.factors[..n], &b.factors[..n]],
        [&a.counts[..n], &b.counts[..n]],
    );
    wide!({
        let mut sum = 0.0;
        for row in 0..n {
            let both = f64::from((words[0][row] & words[1][row]).count_ones());
            let excess = both - counts[0][row] * counts[1][row] / N_SAMPLES as f64;
            sum += factors[0][row] * factors[1][row] * excess;
        }
        sum
    })
}

/// The Cholesky factor of a part of a matrix.
pub(crate) struct Factor {
    /// The rows and columns of the matrix that it is about.
    places: Vec<usize>,
    lower: Vec<Vec<f64>>,
}

impl Matrix {
    /// The matrix without a row and the column of the same number.
    pub(crate) fn without(mut self, place: usize) -> Self {
        self.rows.remove(place);
        for row in &mut self.rows {
            row.remove(place);
        }
        self
    }

    /// Factors the rows and columns in `is_free`. Zeros on the diagonal are replaced by `diagonal`.
    pub(crate) fn factor(&self, is_free: &[bool], diagonal: &[f64]) -> Factor {
        let places: Vec<usize> = (0..is_free.len()).filter(|&place| is_free[place]).collect();
        let mut lower: Vec<Vec<f64>> = Vec::with_capacity(places.len());
        for (i, &row) in places.iter().enumerate() {
            let mut line = Vec::with_capacity(i + 1);
            for (j, &column) in places[..i].iter().enumerate() {
                let known: f64 = line[..j].iter().zip(&lower[j][..j]).map(|(a, b): (&f64, &f64)| a * b).sum();
                line.push((self.rows[row][column] - known) / lower[j][j]);
            }
            let own = if self.rows[row][row] == 0.0 { diagonal[row] } else { self.rows[row][row] };
            let known: f64 = line.iter().map(|value| value * value).sum();
            line.push((own - known).max(1e-12 * own).max(f64::MIN_POSITIVE).sqrt());
            lower.push(line);
        }
        Factor { places, lower }
    }
}

impl Factor {
    /// Solves A x = b for the part of the matrix, in place. Other entries of `b` become 0.
    pub(crate) fn solve(&self, b: &mut [f64]) {
        let mut x: Vec<f64> = self.places.iter().map(|&place| b[place]).collect();
        for i in 0..x.len() {
            let known: f64 = self.lower[i][..i].iter().zip(&x[..i]).map(|(a, x)| a * x).sum();
            x[i] = (x[i] - known) / self.lower[i][i];
        }
        for i in (0..x.len()).rev() {
            x[i] /= self.lower[i][i];
            let value = x[i];
            x[..i].iter_mut().zip(&self.lower[i][..i]).for_each(|(x, a)| *x -= a * value);
        }
        b.fill(0.0);
        self.places.iter().zip(x).for_each(|(&place, x)| b[place] = x);
    }
}
