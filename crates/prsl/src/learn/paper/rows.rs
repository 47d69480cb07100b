//! Rows prepared for learning: calibrated beliefs, truths and weights.

use super::space::{Expert, Space};
use crate::belief::BeliefOrigin;
use crate::calibrator::{Calibrate, Calibrator};
use crate::label::LabelId;
use crate::learn::examples::Examples;
use crate::model::Model;

/// How many truths of a row are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    Nothing,
    Some,
    All,
}

/// Rows prepared for learning.
pub(super) struct Rows {
    pub(super) n_rows: usize,
    /// The calibrated beliefs about all categories, row by row.
    pub(super) beliefs: Vec<f64>,
    /// The truths of all labels, row by row.
    pub(super) truths: Vec<Option<usize>>,
    pub(super) known: Vec<Known>,
    /// For a row with all truths known, ln of its beliefs and of the base model's rules at the truths; else 0.
    pub(super) log_base: Vec<f64>,
    pub(super) weights: Vec<f64>,
}

impl Rows {
    /// Rows with the beliefs that the calibrators of a model make of those given.
    pub(super) fn new(model: &Model, space: &Space, experts: &[Expert], examples: &Examples) -> Self {
        let mut beliefs = Vec::with_capacity(examples.n_rows() * space.n_categories());
        let mut given = vec![0.0; space.n_categories()];
        for row in 0..examples.n_rows() {
            examples.stored().values_into(row, &mut given);
            let start = beliefs.len();
            beliefs.extend_from_slice(&given);
            for (label, block) in space.blocks.iter().enumerate() {
                let id = LabelId::new(label);
                let calibrator = model.label(id).calibrator();
                let is_given = examples.origin(row, id) == BeliefOrigin::Classifier;
                if is_given && *calibrator != Calibrator::Identity {
                    calibrator.calibrate(&given[block.clone()], &mut beliefs[start..][block.clone()]);
                }
            }
        }
        let truths = examples.truths().flat_map(|truth| truth.indices().to_vec()).collect();
        Self::from_parts(space, experts, beliefs, truths, examples.weights().to_vec())
    }

    pub(super) fn from_parts(
        space: &Space,
        experts: &[Expert],
        beliefs: Vec<f64>,
        truths: Vec<Option<usize>>,
        weights: Vec<f64>,
    ) -> Self {
        let (n, n_rows) = (space.n_labels(), weights.len());
        let known = |row: usize| match truths[row * n..(row + 1) * n].iter().flatten().count() {
            0 => Known::Nothing,
            known if known == n => Known::All,
            _ => Known::Some,
        };
        let known: Vec<Known> = (0..n_rows).map(known).collect();
        let log_base = |row: usize| {
            if known[row] != Known::All {
                return 0.0;
            }
            let truth = |label: usize| truths[row * n + label].expect("all truths are known");
            let belief = |(label, block): (usize, &std::ops::Range<usize>)| {
                beliefs[row * space.n_categories() + block.start + truth(label)].ln()
            };
            let factor = |expert: &Expert| expert.factors[space.entry(&expert.labels, truth)].ln();
            let beliefs: f64 = space.blocks.iter().enumerate().map(belief).sum();
            beliefs + experts.iter().map(factor).sum::<f64>()
        };
        let log_base = (0..n_rows).map(log_base).collect();
        Self { n_rows, beliefs, truths, known, log_base, weights }
    }
}
