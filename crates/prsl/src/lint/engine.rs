//! The exact engines, compiled when they are first needed.

use std::cell::OnceCell;

use crate::error::{Error, Result};
use crate::infer::choice::marginal_reason;
use crate::infer::{JunctionTree, Limits, MaxProductTree};
use crate::model::Model;
use crate::posterior::MostProbable;

pub(super) struct Engine<'m> {
    model: &'m Model,
    limits: Limits,
    sum: OnceCell<Result<JunctionTree>>,
    max: OnceCell<Result<MaxProductTree>>,
}

impl<'m> Engine<'m> {
    pub(super) fn new(model: &'m Model, limits: Limits) -> Self {
        Self { model, limits, sum: OnceCell::new(), max: OnceCell::new() }
    }

    /// Which engine suits the model and why, in words.
    pub(super) fn reason(&self) -> Result<String> {
        let sum = self.sum();
        marginal_reason(sum.as_ref().map(|sum| sum.cost()), self.limits)
    }

    /// The marginals of a row: a number per category, in the model's order.
    pub(super) fn marginals(&self, row: &[f64]) -> Result<Vec<f64>> {
        Ok(self.sum()?.infer_row(row)?.marginals().to_vec())
    }

    /// A most probable explanation of a row.
    pub(super) fn best(&self, row: &[f64]) -> Result<MostProbable> {
        let engine = self.max()?;
        engine.best_row(row).ok_or_else(|| match self.sum() {
            Ok(engine) => engine.infer_row(row).err().unwrap_or(Error::Impossible { rules: Vec::new() }),
            Err(_) => Error::Impossible { rules: Vec::new() },
        })
    }

    fn sum(&self) -> Result<&JunctionTree> {
        let compile = || JunctionTree::compile_within(self.model, self.limits);
        self.sum.get_or_init(compile).as_ref().map_err(Clone::clone)
    }

    fn max(&self) -> Result<&MaxProductTree> {
        let compile = || MaxProductTree::compile_within(self.model, self.limits);
        self.max.get_or_init(compile).as_ref().map_err(Clone::clone)
    }
}
