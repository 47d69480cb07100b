//! Exact answers by summing over every assignment of a small model.

use crate::error::{Error, Result};
use crate::model::Model;

/// Larger models are refused.
const MAX_ASSIGNMENTS: usize = 1 << 18;

pub(super) struct Engine<'m> {
    model: &'m Model,
}

pub(super) struct MostProbable {
    pub(super) assignment: Vec<usize>,
    pub(super) log_weight: f64,
}

impl<'m> Engine<'m> {
    pub(super) fn new(model: &'m Model) -> Self {
        Self { model }
    }

    /// What the marginals of a row take, in words; an error if that is too much.
    pub(super) fn cost(&self) -> Result<String> {
        let sizes = self.model.labels().iter().map(crate::Label::n_categories);
        let n = sizes.clone().try_fold(1, usize::checked_mul).filter(|&n| n <= MAX_ASSIGNMENTS);
        n.map(|n| format!("{n} assignments a row")).ok_or_else(|| Error::TooCostly {
            what: "exact inference".to_owned(),
            needed: format!("{:.1e} assignments a row", sizes.map(|n| n as f64).product::<f64>()),
            limit: MAX_ASSIGNMENTS.to_string(),
            advice: "use loopy propagation".to_owned(),
        })
    }

    /// The marginals of a row: a number per category, in the model's order.
    pub(super) fn marginals(&self, row: &[f64]) -> Result<Vec<f64>> {
        let mut marginals = vec![0.0; row.len()];
        self.each(|assignment| {
            let weight = self.model.log_weight(row, assignment).exp();
            for (label, category) in self.model.label_ids().zip(assignment) {
                marginals[self.model.block(label).start + category] += weight;
            }
        })?;
        for label in self.model.label_ids() {
            let block = &mut marginals[self.model.block(label)];
            let total: f64 = block.iter().sum();
            if total <= 0.0 {
                return Err(Error::Impossible { rules: Vec::new() });
            }
            block.iter_mut().for_each(|x| *x /= total);
        }
        Ok(marginals)
    }

    /// A most probable explanation of a row.
    pub(super) fn best(&self, row: &[f64]) -> Result<MostProbable> {
        let mut best = MostProbable { assignment: Vec::new(), log_weight: f64::NEG_INFINITY };
        self.each(|assignment| {
            let log_weight = self.model.log_weight(row, assignment);
            if log_weight > best.log_weight {
                best = MostProbable { assignment: assignment.to_vec(), log_weight };
            }
        })?;
        if best.assignment.is_empty() { Err(Error::Impossible { rules: Vec::new() }) } else { Ok(best) }
    }

    fn each(&self, mut visit: impl FnMut(&[usize])) -> Result<()> {
        self.cost()?;
        let labels = self.model.labels();
        let mut assignment = vec![0; labels.len()];
        loop {
            visit(&assignment);
            let mut label = 0;
            while label < labels.len() {
                assignment[label] += 1;
                if assignment[label] < labels[label].n_categories() {
                    break;
                }
                assignment[label] = 0;
                label += 1;
            }
            if label == labels.len() {
                return Ok(());
            }
        }
    }
}
