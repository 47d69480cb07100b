//! Rows in the form that learning needs, and the calibration of their beliefs.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::chunks::Chunk;
use super::examples::Examples;
use super::priors::rounded;
use super::stored::StoredRows;
use crate::belief::check_same_labels;
use crate::calibrate::BeliefOrigin;
use crate::calibrator::{Calibrate, Calibrator, Dirichlet, SMOOTH};
use crate::distribution::{is_distribution, softmax};
use crate::error::{CalibrationProblem, Result};
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
    /// The model, for the calibrators that are given.
    model: Model,
    /// The rows as they are given, shared, and the places of these rows among them, if they are not all.
    stored: Arc<StoredRows>,
    places: Option<Vec<u32>>,
    /// What is computed from the rows, if there are not too many.
    unpacked: Option<Unpacked>,
    pub(crate) known: Vec<Known>,
    pub(crate) weights: Arc<Vec<f64>>,
    /// A hash of the contents of each row. Its samples depend on it, not on the row's position.
    pub(crate) hashes: Vec<u64>,
    /// The chunks of rows that are left of those given, and how many rows of each could be used.
    pub(crate) chunks: Vec<(Chunk, usize)>,
    pub(crate) calibrations: Vec<Calibration>,
    pub(crate) n_calibration_parameters: usize,
}

/// What is computed from the rows, row by row.
struct Unpacked {
    /// The result of [`Data::cells_into`].
    cells: Vec<f64>,
    /// Whether the belief about each label is calibrated by parameters.
    is_free: Vec<bool>,
    /// The true category of each label, or `UNKNOWN`.
    truths: Vec<u16>,
}

/// The mark of a truth that is not known.
const UNKNOWN: u16 = u16::MAX;
/// Maximum number of cells that are stored: 64 MiB. Without them a pass takes about a third longer, but the rows are in
/// memory only once.
const MAX_CELLS: usize = 1 << 23;

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
            model: model.clone(),
            stored: Arc::clone(rows.stored()),
            places: None,
            unpacked: None,
            known: Vec::new(),
            weights: Arc::clone(rows.shared_weights()),
            hashes: Vec::new(),
            chunks: Vec::new(),
            calibrations,
            n_calibration_parameters: n_parameters,
        };
        check_same_labels(rows.model(), &model.without_calibrators())?;
        data.check_calibrators()?;
        let mut n_used = 0;
        for chunk in rows.chunks() {
            let start = n_used;
            n_used += chunk.rows.clone().filter(|&row| rows.is_used(row)).count();
            data.chunks.push((Chunk { number: chunk.number, rows: start..n_used }, n_used - start));
        }
        (data.known, data.hashes) = (Vec::with_capacity(n_used), Vec::with_capacity(n_used));
        if n_used < rows.n_rows() {
            data.places = Some(rows.used().map(|row| row as u32).collect());
            data.weights = Arc::new(rows.used().map(|row| rows.weights()[row]).collect());
        }
        rows.used().for_each(|row| data.push(row));
        data.unpack();
        Ok(data)
    }

    /// Returns an error if a calibrator of the model does not give a distribution for some row.
    fn check_calibrators(&self) -> Result<()> {
        for label in 0..self.n_labels() {
            let calibrator = self.model.calibrator(LabelId::new(label));
            let mut raw = vec![0.0; self.blocks[label].len()];
            let mut out = raw.clone();
            for row in 0..self.stored.n_rows() {
                if self.stored.origin(row, label) != BeliefOrigin::Classifier {
                    continue;
                }
                self.stored.belief_into(row, label, &mut raw);
                calibrator.calibrate(&raw, &mut out);
                if !is_distribution(&out) {
                    let row = row + 1;
                    return Err(CalibrationProblem::NoDistribution { what: "calibrated belief", row }.into());
                }
            }
        }
        Ok(())
    }

    /// Adds what is stored for a row beside the row itself.
    fn push(&mut self, place: usize) {
        let mut hasher = DefaultHasher::new();
        let mut raw = vec![0.0; self.width];
        self.stored.values_into(place, &mut raw);
        for (label, block) in self.blocks.iter().enumerate() {
            raw[block.clone()].iter().for_each(|belief| belief.to_bits().hash(&mut hasher));
            self.stored.truth(place, label).map_or(UNKNOWN, |truth| truth as u16).hash(&mut hasher);
        }
        let is_complete = self.stored.n_known(place) == self.blocks.len();
        self.known.push(if is_complete { Known::All } else { Known::Some });
        self.hashes.push(hasher.finish());
    }

    /// Stores what is computed from the rows, if they are not too many.
    fn unpack(&mut self) {
        self.unpacked = None;
        if self.n_rows() * self.width > MAX_CELLS {
            return;
        }
        let (mut is_free, mut truths) = (Vec::new(), Vec::new());
        let mut cells = vec![0.0; self.n_rows() * self.width];
        for (row, cells) in cells.chunks_mut(self.width.max(1)).enumerate() {
            for (label, block) in self.blocks.iter().enumerate() {
                self.compute_cells(row, label, &mut cells[block.clone()]);
                is_free.push(self.is_free(row, label));
                truths.push(self.truth(row, label).map_or(UNKNOWN, |truth| truth as u16));
            }
        }
        self.unpacked = Some(Unpacked { cells, is_free, truths });
    }

    /// The number of a row among those that were given.
    pub(crate) fn place(&self, row: usize) -> usize {
        self.places.as_ref().map_or(row, |places| places[row] as usize)
    }

    /// Whether a belief is calibrated by parameters.
    fn is_free(&self, row: usize, label: usize) -> bool {
        if let Some(unpacked) = &self.unpacked {
            return unpacked.is_free[row * self.n_labels() + label];
        }
        let origin = || self.stored.origin(self.place(row), label);
        match self.calibrations[label] {
            Calibration::Given => false,
            Calibration::Biased(_) => origin() == BeliefOrigin::Prior,
            _ => origin() == BeliefOrigin::Classifier,
        }
    }

    /// Writes, for each category of a label, ln of the smoothed belief where it is calibrated by parameters, else the
    /// calibrated belief itself.
    fn cells_into(&self, row: usize, label: usize, out: &mut [f64]) {
        let block = &self.blocks[label];
        match &self.unpacked {
            Some(unpacked) => {
                let start = row * self.width;
                out.copy_from_slice(&unpacked.cells[start + block.start..start + block.end]);
            }
            None => self.compute_cells(row, label, out),
        }
    }

    fn compute_cells(&self, row: usize, label: usize, out: &mut [f64]) {
        let place = self.place(row);
        self.stored.belief_into(place, label, out);
        if self.is_free(row, label) {
            out.iter_mut().for_each(|cell| *cell = cell.clamp(SMOOTH, 1.0 - SMOOTH).ln());
        } else if self.stored.origin(place, label) == BeliefOrigin::Classifier {
            let raw = out.to_vec();
            self.model.calibrator(LabelId::new(label)).calibrate(&raw, out);
        }
    }

    pub(crate) fn n_rows(&self) -> usize {
        self.hashes.len()
    }

    pub(crate) fn n_labels(&self) -> usize {
        self.blocks.len()
    }

    pub(crate) fn truth(&self, row: usize, label: usize) -> Option<usize> {
        match &self.unpacked {
            Some(unpacked) => {
                let truth = unpacked.truths[row * self.n_labels() + label];
                (truth != UNKNOWN).then_some(usize::from(truth))
            }
            None => self.stored.truth(self.place(row), label),
        }
    }

    /// Only some of the rows, in their order.
    pub(crate) fn select(&self, rows: &[usize]) -> Self {
        let left_before = |row: usize| rows.partition_point(|&kept| kept < row);
        let chunk = |(chunk, n_used): &(Chunk, usize)| {
            let left = left_before(chunk.rows.start)..left_before(chunk.rows.end);
            (Chunk { number: chunk.number, rows: left }, *n_used)
        };
        let mut data = Self {
            blocks: self.blocks.clone(),
            width: self.width,
            model: self.model.clone(),
            stored: Arc::clone(&self.stored),
            places: Some(rows.iter().map(|&row| self.place(row) as u32).collect()),
            unpacked: None,
            known: rows.iter().map(|&row| self.known[row]).collect(),
            weights: Arc::new(rows.iter().map(|&row| self.weights[row]).collect()),
            hashes: rows.iter().map(|&row| self.hashes[row]).collect(),
            chunks: self.chunks.iter().map(chunk).collect(),
            calibrations: self.calibrations.clone(),
            n_calibration_parameters: self.n_calibration_parameters,
        };
        data.unpack();
        data
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
        for (label, block) in self.blocks.iter().enumerate() {
            let out = &mut out[block.clone()];
            self.cells_into(row, label, out);
            if !self.is_free(row, label) {
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
                    let (logs, n) = (out.to_vec(), block.len());
                    for (category, out) in out.iter_mut().enumerate() {
                        let weights = &parameters[at + category * n..at + (category + 1) * n];
                        let mixed: f64 = weights.iter().zip(&logs).map(|(weight, log)| weight * log).sum();
                        *out = mixed + parameters[at + n * n + category];
                    }
                }
            }
            softmax(out);
        }
    }

    /// Adds the derivatives in the calibration parameters of a row, given those in ln π, whose sum is 0 for each label.
    pub(crate) fn add_gradient(&self, row: usize, slopes: &[f64], gradient: &mut [f64]) {
        for (label, block) in self.blocks.iter().enumerate() {
            let Some(logs) = self.log_of(row, label) else { continue };
            let (slopes, logs) = (&slopes[block.clone()], &*logs);
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
    pub(crate) fn log_of(&self, row: usize, label: usize) -> Option<Logs> {
        self.is_free(row, label).then(|| {
            let mut logs = Logs::new(self.blocks[label].len());
            self.cells_into(row, label, logs.as_mut());
            logs
        })
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

/// A number for each category of a label. Two of them need no memory of their own.
pub(crate) enum Logs {
    Two([f64; 2]),
    Many(Vec<f64>),
}

impl Logs {
    fn new(n: usize) -> Self {
        if n == 2 { Self::Two([0.0; 2]) } else { Self::Many(vec![0.0; n]) }
    }

    fn as_mut(&mut self) -> &mut [f64] {
        match self {
            Self::Two(logs) => logs,
            Self::Many(logs) => logs,
        }
    }
}

impl Deref for Logs {
    type Target = [f64];

    fn deref(&self) -> &[f64] {
        match self {
            Self::Two(logs) => logs,
            Self::Many(logs) => logs,
        }
    }
}

/// A parameter with five decimals. More digits are noise, and hard to read.
fn short(parameter: f64) -> f64 {
    (parameter * 1e5).round() / 1e5
}
