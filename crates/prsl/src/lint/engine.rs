//! The exact engines, compiled when they are first needed.

use std::cell::OnceCell;
use std::collections::HashSet;

use crate::error::{Error, Result};
use crate::formula::Formula;
use crate::infer::choice::marginal_reason;
use crate::infer::{JunctionTree, Limits, MaxProductTree};
use crate::label::Label;
use crate::model::Model;
use crate::posterior::MostProbable;
use crate::rule::{Body, Rule, RuleId};

/// Multiply-adds up to which inference decides what the search for contradictions left open: about a second.
const MAX_WORK: f64 = 5e8;
/// Multiply-adds of all runs, one for each rule, that it takes to tell which rules contradict each other. They run in logarithms,
/// which take about twenty times as long.
const MAX_CONFLICT_WORK: f64 = 5e7;

pub(super) struct Engine<'m> {
    model: &'m Model,
    limits: Limits,
    sum: OnceCell<Result<JunctionTree>>,
    max: OnceCell<Result<MaxProductTree>>,
    /// Of the hard rules alone.
    hard: OnceCell<Result<JunctionTree>>,
}

/// Beliefs that exclude nothing.
fn uniform(model: &Model) -> Vec<f64> {
    let belief = |label: &Label| vec![1.0 / label.n_categories() as f64; label.n_categories()];
    model.labels().iter().flat_map(belief).collect()
}

impl<'m> Engine<'m> {
    pub(super) fn new(model: &'m Model, limits: Limits) -> Self {
        Self { model, limits, sum: OnceCell::new(), max: OnceCell::new(), hard: OnceCell::new() }
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

    /// The probability of a formula: the share of Z that is left with the formula as one more rule, without exceptions.
    pub(super) fn probability(&self, row: &[f64], formula: &Formula) -> Result<f64> {
        let log_sum = self.sum()?.infer_row(row)?.log_evidence();
        let rule = Rule::new(1.0, Body::Formula(formula.clone()));
        let with = JunctionTree::compile(&self.model.edit().add_rule(rule).build()?)?;
        match with.infer_row(row) {
            Ok(with) => Ok((with.log_evidence() - log_sum).exp().min(1.0)),
            Err(Error::Impossible { .. }) => Ok(0.0),
            Err(error) => Err(error),
        }
    }

    /// A most probable explanation of a row.
    pub(super) fn best(&self, row: &[f64]) -> Result<MostProbable> {
        let engine = self.max()?;
        engine.best_row(row).ok_or_else(|| match self.sum() {
            Ok(engine) => engine.infer_row(row).err().unwrap_or(Error::Impossible { rules: Vec::new() }),
            Err(_) => Error::Impossible { rules: Vec::new() },
        })
    }

    /// For every category whether some hard rules leave it possible; all are impossible if nothing is possible. `None` if that is
    /// too costly.
    pub(super) fn possibilities(&self, hard: &[RuleId]) -> Option<Vec<bool>> {
        let tree = self.hard_tree(hard)?;
        if tree.cost().multiply_adds > MAX_WORK {
            return None;
        }
        let answer = tree.careful().ok()?.one(&uniform(self.model));
        let is_possible = answer.log_total > f64::NEG_INFINITY;
        Some(answer.masses.iter().map(|&mass| is_possible && mass > 0.0).collect())
    }

    /// Some of the hard rules, which leave nothing possible, that already do so; `None` if that is too costly.
    pub(super) fn conflict(&self, hard: &[RuleId]) -> Option<Vec<RuleId>> {
        let tree = self.hard_tree(hard)?;
        if tree.cost().multiply_adds * hard.len() as f64 > MAX_CONFLICT_WORK {
            return None;
        }
        let own = tree.conflict(&uniform(self.model));
        // Rules are counted without the others.
        let is_same = tree.model().rules().len() == self.model.rules().len();
        Some(if is_same { own } else { own.into_iter().map(|rule| hard[rule.index()]).collect() })
    }

    /// A tree of these rules alone, so that nothing soft can be so small that it looks impossible.
    fn hard_tree(&self, hard: &[RuleId]) -> Option<&JunctionTree> {
        if hard.len() == self.model.rules().len() {
            return self.sum().ok();
        }
        let compile = || {
            let among: HashSet<RuleId> = hard.iter().copied().collect();
            let edited = self.model.edit().retain_rules(|rule| among.contains(&rule)).remove_typical();
            JunctionTree::compile_within(&edited.build()?, self.limits)
        };
        self.hard.get_or_init(compile).as_ref().ok()
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
