//! Exact engines, compiled when first needed.

use std::cell::OnceCell;
use std::collections::HashSet;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::formula::Formula;
use crate::infer::account::Account;
use crate::infer::engines::marginal_reason;
use crate::infer::factor::Factors;
use crate::infer::junction_tree::JunctionTreePlan;
use crate::infer::max_product::MaxProductPlan;
use crate::infer::{JunctionTree, Limits, MaxProductTree};
use crate::label::Label;
use crate::model::Model;
use crate::posterior::MostProbable;
use crate::rule::{Body, Rule, RuleId};

/// Maximum multiply-adds for deciding by inference what the SAT solver left open. They take about a second.
const MAX_WORK: f64 = 5e8;

pub(super) struct Engine<'m> {
    model: &'m Model,
    limits: Limits,
    /// The memory of all engines.
    account: Arc<Account>,
    sum: OnceCell<Result<JunctionTree>>,
    max: OnceCell<Result<MaxProductTree>>,
    /// A junction tree of the hard rules alone.
    hard: OnceCell<Result<JunctionTree>>,
}

/// Beliefs that exclude no category.
fn uniform(model: &Model) -> Vec<f64> {
    let belief = |label: &Label| vec![1.0 / label.n_categories() as f64; label.n_categories()];
    model.labels().iter().flat_map(belief).collect()
}

impl<'m> Engine<'m> {
    pub(super) fn new(model: &'m Model, limits: Limits) -> Self {
        let account = Account::new(limits.memory);
        Self { model, limits, account, sum: OnceCell::new(), max: OnceCell::new(), hard: OnceCell::new() }
    }

    /// The chosen engine and the reason for the choice, as a sentence.
    pub(super) fn reason(&self) -> Result<String> {
        let sum = self.sum();
        marginal_reason(sum.as_ref().map(|sum| sum.cost()), self.limits)
    }

    /// The marginals of a row, one number per category in the model's order.
    pub(super) fn marginals(&self, row: &[f64]) -> Result<Vec<f64>> {
        Ok(self.sum()?.infer_row(row)?.marginals().to_vec())
    }

    /// The probability of a formula: Z with the formula as an additional hard rule, divided by Z.
    pub(super) fn probability(&self, row: &[f64], formula: &Formula) -> Result<f64> {
        let log_sum = self.sum()?.infer_row(row)?.log_evidence();
        let rule = Rule::new(1.0, Body::Formula(formula.clone()));
        let limits = Limits { memory: self.account.left() };
        let with = JunctionTree::compile_within(&self.model.edit().add_rule(rule).build()?, limits)?;
        match with.infer_row(row) {
            Ok(with) => Ok((with.log_evidence() - log_sum).exp().min(1.0)),
            Err(Error::Impossible { .. }) => Ok(0.0),
            Err(error) => Err(error),
        }
    }

    /// A most probable assignment of a row.
    pub(super) fn best(&self, row: &[f64]) -> Result<MostProbable> {
        let engine = self.max()?;
        engine.best_row(row).ok_or_else(|| match self.sum() {
            Ok(engine) => engine.infer_row(row).err().unwrap_or(Error::Impossible { rules: Vec::new() }),
            Err(_) => Error::Impossible { rules: Vec::new() },
        })
    }

    /// Whether these hard rules allow each category; all `false` if they contradict each other. `None` if that is too
    /// costly.
    pub(super) fn possibilities(&self, hard: &[RuleId]) -> Option<Vec<bool>> {
        let tree = self.hard_tree(hard)?;
        if tree.cost().multiply_adds > MAX_WORK {
            return None;
        }
        let answer = tree.careful().ok()?.one(&uniform(self.model));
        let is_possible = answer.log_total > f64::NEG_INFINITY;
        Some(answer.masses.iter().map(|&mass| is_possible && mass > 0.0).collect())
    }

    /// A junction tree of these rules alone. Without soft rules, small weights cannot underflow to 0.
    fn hard_tree(&self, hard: &[RuleId]) -> Option<&JunctionTree> {
        if hard.len() == self.model.rules().len() {
            return self.sum().ok();
        }
        let compile = || {
            let among: HashSet<RuleId> = hard.iter().copied().collect();
            let edited = self.model.edit().retain_rules(|rule| among.contains(&rule)).remove_typical();
            self.tree(&edited.build()?)
        };
        self.hard.get_or_init(compile).as_ref().ok()
    }

    /// A junction tree with the memory that the account has left.
    fn tree(&self, model: &Model) -> Result<JunctionTree> {
        JunctionTreePlan::new(&Arc::new(Factors::new(model)), self.limits)?.tree(&self.account)
    }

    fn sum(&self) -> Result<&JunctionTree> {
        let compile = || self.tree(self.model);
        self.sum.get_or_init(compile).as_ref().map_err(Clone::clone)
    }

    fn max(&self) -> Result<&MaxProductTree> {
        let factors = || Arc::new(Factors::new(self.model));
        let compile = || MaxProductPlan::new(&factors(), self.limits)?.tree(&self.account);
        self.max.get_or_init(compile).as_ref().map_err(Clone::clone)
    }
}
