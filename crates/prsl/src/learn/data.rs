//! Rows in the form that learning needs, and the calibration of their beliefs.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde::{Deserialize, Serialize};

use super::chunks::Chunk;
use super::examples::Examples;
use super::priors::rounded;
use crate::calibrate::BeliefOrigin;
use crate::calibrator::{Calibrator, Dirichlet, SMOOTH};
use crate::distribution::softmax;
use crate::error::Result;
use crate::label::LabelId;
use crate::model::Model;

/// How the belief about a label depends on the parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Calibration {
    /// It does not.
    Given,
    /// Two categories: the log-odds are slope · log-odds + intercept. The two parameters start here.
    Platt(usize),
    /// ln π(m) = slope · ln b(m) + bias(m), up to normalization. The slope and the biases start here.
    Scaled(usize),
    /// ln π(m) = bias(m), up to normalization, for a label without a classifier. The biases start here.
    Biased(usize),
    /// ln π(m) = slope · ln b(m), up to normalization. The slope, the inverse of a temperature, is here.
    Tempered(usize),
    /// ln π(m) = Σₖ w(m, k) ln b(k) + bias(m), up to normalization. The weights start here, row by row, then the biases.
    Mixed(usize),
}

/// Which parameters the calibrator of a label has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Fitted {
    /// None.
    No,
    /// Slope and intercept of two categories, slope and biases of more, biases of a label without a classifier.
    Usual,
    /// A temperature.
    Temperature,
    /// A matrix and biases.
    Dirichlet,
}

impl Fitted {
    /// The usual parameters if a label is to be fitted.
    pub(crate) fn usual_if(is_fitted: bool) -> Self {
        if is_fitted { Self::Usual } else { Self::No }
    }
}

impl Calibration {
    /// Number of parameters.
    pub(crate) fn n_parameters(self, n_categories: usize) -> usize {
        match self {
            Self::Given => 0,
            Self::Platt(_) => 2,
            Self::Scaled(_) => 1 + n_categories,
            Self::Biased(_) => n_categories,
            Self::Tempered(_) => 1,
            Self::Mixed(_) => n_categories * (n_categories + 1),
        }
    }

    /// The place of the slope, if there is one.
    pub(crate) fn slope(self) -> Option<usize> {
        match self {
            Self::Platt(at) | Self::Scaled(at) | Self::Tempered(at) => Some(at),
            Self::Given | Self::Biased(_) | Self::Mixed(_) => None,
        }
    }
}

/// How much of a row is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    Some,
    All,
}

/// Rows to learn from: those of positive weight of which something is known.
pub(crate) struct Data {
    /// The range of each label's categories.
    pub(crate) blocks: Vec<std::ops::Range<usize>>,
    pub(crate) width: usize,
    /// Row by row and category by category: ln of the smoothed belief where it is calibrated by parameters, else the
    /// calibrated belief itself.
    cells: Vec<f64>,
    /// Row by row and label by label: whether the belief is calibrated by parameters.
    is_free: Vec<bool>,
    /// Row by row and label by label: the true category, or `UNKNOWN`.
    truths: Vec<u16>,
    pub(crate) known: Vec<Known>,
    pub(crate) weights: Vec<f64>,
    /// A hash of the contents of each row. Its samples depend on it, not on the row's position.
    pub(crate) hashes: Vec<u64>,
    /// The number of each row among the rows that were given.
    pub(crate) sources: Vec<usize>,
    /// The chunks of rows that are left of those given, and how many rows of each could be used.
    pub(crate) chunks: Vec<(Chunk, usize)>,
    pub(crate) calibrations: Vec<Calibration>,
    pub(crate) n_calibration_parameters: usize,
}

/// The mark of a truth that is not known.
const UNKNOWN: u16 = u16::MAX;

impl Data {
    /// Rows for a model. Some labels are calibrated by parameters, the others by the model's calibrators.
    pub(crate) fn new(model: &Model, rows: &Examples, fitted: &[Fitted]) -> Result<Self> {
        let blocks: Vec<_> = model.label_ids().map(|label| model.block(label)).collect();
        let mut calibrations = Vec::new();
        let mut n_parameters = 0;
        for (label, &fitted) in model.labels().iter().zip(fitted) {
            let calibration = match (fitted, label.classifier().is_some(), label.n_categories()) {
                (Fitted::No, ..) => Calibration::Given,
                (_, false, _) => Calibration::Biased(n_parameters),
                (Fitted::Usual, true, 2) => Calibration::Platt(n_parameters),
                (Fitted::Usual, true, _) => Calibration::Scaled(n_parameters),
                (Fitted::Temperature, true, _) => Calibration::Tempered(n_parameters),
                (Fitted::Dirichlet, true, _) => Calibration::Mixed(n_parameters),
            };
            n_parameters += calibration.n_parameters(label.n_categories());
            calibrations.push(calibration);
        }
        let mut data = Self {
            width: model.n_categories(),
            blocks,
            cells: Vec::new(),
            is_free: Vec::new(),
            truths: Vec::new(),
            known: Vec::new(),
            weights: Vec::new(),
            hashes: Vec::new(),
            sources: Vec::new(),
            chunks: Vec::new(),
            calibrations,
            n_calibration_parameters: n_parameters,
        };
        let calibrated = rows.beliefs().calibrated_by(model)?;
        for chunk in rows.chunks() {
            let start = data.n_rows();
            for row in chunk.rows.clone().filter(|&row| rows.is_used(row)) {
                data.push(rows, row, calibrated.row(row).as_ref());
            }
            let rows = start..data.n_rows();
            data.chunks.push((Chunk { number: chunk.number, rows: rows.clone() }, rows.len()));
        }
        Ok(data)
    }

    fn push(&mut self, rows: &Examples, row: usize, calibrated: &[f64]) {
        let raw = rows.beliefs().row(row);
        let truth = &rows.truths()[row];
        let mut hasher = DefaultHasher::new();
        for (label, block) in self.blocks.iter().enumerate() {
            let id = LabelId::new(label);
            let origin = rows.beliefs().origin(row, id);
            let is_free = match self.calibrations[label] {
                Calibration::Given => false,
                Calibration::Biased(_) => origin == BeliefOrigin::Prior,
                _ => origin == BeliefOrigin::Classifier,
            };
            for at in block.clone() {
                let cell = if is_free { raw[at].clamp(SMOOTH, 1.0 - SMOOTH).ln() } else { calibrated[at] };
                self.cells.push(cell);
                raw[at].to_bits().hash(&mut hasher);
            }
            self.is_free.push(is_free);
            let category = truth.category(id).map_or(UNKNOWN, |category| category.index() as u16);
            self.truths.push(category);
            category.hash(&mut hasher);
        }
        let is_complete = truth.n_known() == self.blocks.len();
        self.known.push(if is_complete { Known::All } else { Known::Some });
        self.weights.push(rows.weights()[row]);
        self.hashes.push(hasher.finish());
        self.sources.push(row);
    }

    pub(crate) fn n_rows(&self) -> usize {
        self.weights.len()
    }

    pub(crate) fn n_labels(&self) -> usize {
        self.blocks.len()
    }

    pub(crate) fn truth(&self, row: usize, label: usize) -> Option<usize> {
        let category = self.truths[row * self.n_labels() + label];
        (category != UNKNOWN).then_some(usize::from(category))
    }

    /// Only some of the rows, in their order.
    pub(crate) fn select(&self, rows: &[usize]) -> Self {
        let place = |row: usize| rows.partition_point(|&kept| kept < row);
        let chunk = |(chunk, n_used): &(Chunk, usize)| {
            let left = place(chunk.rows.start)..place(chunk.rows.end);
            (Chunk { number: chunk.number, rows: left }, *n_used)
        };
        let part = |values: &[f64], width: usize| -> Vec<f64> {
            rows.iter().flat_map(|row| &values[row * width..(row + 1) * width]).copied().collect()
        };
        let n = self.n_labels();
        Self {
            blocks: self.blocks.clone(),
            width: self.width,
            cells: part(&self.cells, self.width),
            is_free: rows.iter().flat_map(|row| &self.is_free[row * n..(row + 1) * n]).copied().collect(),
            truths: rows.iter().flat_map(|row| &self.truths[row * n..(row + 1) * n]).copied().collect(),
            known: rows.iter().map(|&row| self.known[row]).collect(),
            weights: part(&self.weights, 1),
            hashes: rows.iter().map(|&row| self.hashes[row]).collect(),
            sources: rows.iter().map(|&row| self.sources[row]).collect(),
            chunks: self.chunks.iter().map(chunk).collect(),
            calibrations: self.calibrations.clone(),
            n_calibration_parameters: self.n_calibration_parameters,
        }
    }

    /// The parameters that leave smoothed beliefs as they are.
    pub(crate) fn identity(&self) -> Vec<f64> {
        let mut parameters = vec![0.0; self.n_calibration_parameters];
        for (calibration, block) in self.calibrations.iter().zip(&self.blocks) {
            if let Some(at) = calibration.slope() {
                parameters[at] = 1.0;
            }
            if let Calibration::Mixed(at) = *calibration {
                let n = block.len();
                (0..n).for_each(|category| parameters[at + category * (n + 1)] = 1.0);
            }
        }
        parameters
    }

    /// The calibrated beliefs of a row.
    pub(crate) fn calibrate(&self, parameters: &[f64], row: usize, out: &mut [f64]) {
        let cells = &self.cells[row * self.width..(row + 1) * self.width];
        for (label, block) in self.blocks.iter().enumerate() {
            let out = &mut out[block.clone()];
            out.copy_from_slice(&cells[block.clone()]);
            if !self.is_free[row * self.n_labels() + label] {
                continue;
            }
            match self.calibrations[label] {
                Calibration::Given => unreachable!("given beliefs are not calibrated"),
                Calibration::Platt(at) => {
                    out[0] = parameters[at] * (out[0] - out[1]) + parameters[at + 1];
                    out[1] = 0.0;
                }
                Calibration::Scaled(at) => {
                    let biases = &parameters[at + 1..];
                    out.iter_mut().zip(biases).for_each(|(out, bias)| *out = parameters[at] * *out + bias);
                }
                Calibration::Biased(at) => out.copy_from_slice(&parameters[at..at + block.len()]),
                Calibration::Tempered(at) => out.iter_mut().for_each(|out| *out *= parameters[at]),
                Calibration::Mixed(at) => {
                    let (logs, n) = (&cells[block.clone()], block.len());
                    for (category, out) in out.iter_mut().enumerate() {
                        let weights = &parameters[at + category * n..at + (category + 1) * n];
                        let mixed: f64 = weights.iter().zip(logs).map(|(weight, log)| weight * log).sum();
                        *out = mixed + parameters[at + n * n + category];
                    }
                }
            }
            softmax(out);
        }
    }

    /// Adds the derivatives in the calibration parameters of a row, given those in ln π, whose sum is 0 for each label.
    pub(crate) fn add_gradient(&self, row: usize, slopes: &[f64], gradient: &mut [f64]) {
        let cells = &self.cells[row * self.width..(row + 1) * self.width];
        for (label, block) in self.blocks.iter().enumerate() {
            if !self.is_free[row * self.n_labels() + label] {
                continue;
            }
            let (slopes, logs) = (&slopes[block.clone()], &cells[block.clone()]);
            match self.calibrations[label] {
                Calibration::Given => {}
                Calibration::Platt(at) => {
                    gradient[at] += slopes[0] * (logs[0] - logs[1]);
                    gradient[at + 1] += slopes[0];
                }
                Calibration::Scaled(at) => {
                    gradient[at] += slopes.iter().zip(logs).map(|(slope, log)| slope * log).sum::<f64>();
                    gradient[at + 1..].iter_mut().zip(slopes).for_each(|(slot, slope)| *slot += slope);
                }
                Calibration::Biased(at) => {
                    gradient[at..].iter_mut().zip(slopes).for_each(|(slot, slope)| *slot += slope);
                }
                Calibration::Tempered(at) => {
                    gradient[at] += slopes.iter().zip(logs).map(|(slope, log)| slope * log).sum::<f64>();
                }
                Calibration::Mixed(at) => {
                    let n = block.len();
                    let rows = gradient[at..at + n * n].chunks_mut(n).zip(slopes);
                    rows.for_each(|(row, slope)| {
                        row.iter_mut().zip(logs).for_each(|(slot, log)| *slot += slope * log);
                    });
                    gradient[at + n * n..].iter_mut().zip(slopes).for_each(|(slot, slope)| *slot += slope);
                }
            }
        }
    }

    /// The log of each free label's smoothed belief in a row, for the Fisher information.
    pub(crate) fn log_of(&self, row: usize, label: usize) -> Option<&[f64]> {
        let block = self.blocks[label].clone();
        self.is_free[row * self.n_labels() + label]
            .then(|| &self.cells[row * self.width + block.start..row * self.width + block.end])
    }

    /// The prior of a label without a classifier; `None` if it has no parameters.
    pub(crate) fn prior(&self, label: usize, parameters: &[f64]) -> Option<Vec<f64>> {
        let Calibration::Biased(at) = self.calibrations[label] else { return None };
        let mut prior = parameters[at..at + self.blocks[label].len()].to_vec();
        softmax(&mut prior);
        Some(rounded(&prior))
    }

    /// The calibrator of a label; `None` if it has no parameters, or is a prior.
    pub(crate) fn calibrator(&self, label: usize, parameters: &[f64]) -> Result<Option<Calibrator>> {
        let n = self.blocks[label].len();
        Ok(match self.calibrations[label] {
            Calibration::Given | Calibration::Biased(_) => None,
            Calibration::Platt(at) => {
                let [slope, intercept] = [parameters[at], parameters[at + 1]].map(short);
                Some(Calibrator::Platt { slope, intercept })
            }
            Calibration::Scaled(at) => {
                let weights: Vec<Vec<f64>> = (0..n)
                    .map(|m| (0..n).map(|k| if m == k { short(parameters[at]) } else { 0.0 }).collect())
                    .collect();
                let biases: Vec<f64> =
                    parameters[at + 1..at + 1 + n].iter().map(|&bias| short(bias)).collect();
                Some(Calibrator::Dirichlet(Dirichlet::new(&weights, &biases)?))
            }
            Calibration::Tempered(at) => {
                Some(Calibrator::Temperature { temperature: short(1.0 / parameters[at]) })
            }
            Calibration::Mixed(at) => {
                let numbers: Vec<f64> =
                    parameters[at..at + n * (n + 1)].iter().map(|&it| short(it)).collect();
                let (weights, biases) = numbers.split_at(n * n);
                let weights: Vec<Vec<f64>> = weights.chunks(n).map(<[f64]>::to_vec).collect();
                Some(Calibrator::Dirichlet(Dirichlet::new(&weights, biases)?))
            }
        })
    }
}

/// A parameter with five decimals. More digits are noise, and hard to read.
fn short(parameter: f64) -> f64 {
    (parameter * 1e5).round() / 1e5
}
