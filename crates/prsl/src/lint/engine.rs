//! Exact engines, compiled when first needed.

use std::cell::{Cell, OnceCell};
use std::collections::HashSet;

use crate::error::{Error, Result};
use crate::formula::Formula;
use crate::infer::engines::exact::{Choice, Exact};
use crate::infer::{Engines, Limits, MaxProductTree};
use crate::label::Label;
use crate::model::Model;
use crate::posterior::MostProbable;
use crate::rule::{Body, Rule, RuleId};

/// Maximum multiply-adds for deciding by inference what the SAT solver left open. They take about a second.
const MAX_WORK: f64 = 5e8;

/// Multiply-adds that take about as long as compiling a model, per label and rule.
const COMPILATION: f64 = 1e4;

/// Maximum number of rules for which the model is compiled without each of them.
const MAX_COMPILED: usize = 40;

pub(super) struct Engine<'m> {
    model: &'m Model,
    engines: Engines,
    /// Multiply-adds that all questions together may still take.
    work_left: Cell<f64>,
    sum: OnceCell<Result<Choice>>,
    max: OnceCell<Result<MaxProductTree>>,
    /// An engine of the hard rules alone.
    hard: OnceCell<Result<Exact>>,
}

/// Beliefs that exclude no category.
fn uniform(model: &Model) -> Vec<f64> {
    let belief = |label: &Label| vec![1.0 / label.n_categories() as f64; label.n_categories()];
    model.labels().iter().flat_map(belief).collect()
}

impl<'m> Engine<'m> {
    pub(super) fn new(model: &'m Model, limits: Limits) -> Self {
        let engines = Engines::new(model).with_limits(limits);
        let work_left = Cell::new(f64::INFINITY);
        Self { model, engines, work_left, sum: OnceCell::new(), max: OnceCell::new(), hard: OnceCell::new() }
    }

    /// The same engine with a limit on the multiply-adds of all questions together.
    pub(super) fn with_work(self, work: f64) -> Self {
        Self { work_left: Cell::new(work), ..self }
    }

    /// Counts multiply-adds before they are done. Returns an error if fewer are left.
    fn spend(&self, work: f64) -> Result<()> {
        let left = self.work_left.get();
        if work <= left {
            self.work_left.set(left - work);
            return Ok(());
        }
        Err(Error::TooCostly {
            what: "it".to_owned(),
            needed: format!("{work:.1e} multiply-adds"),
            limit: format!("{left:.1e} that the expectations before it left"),
            advice: "remove rules or expectations, or check them without a limit on work".to_owned(),
        })
    }

    /// Multiply-adds for the probability of a formula: a row, and a model with one more rule.
    fn work_of_formula(&self) -> Result<f64> {
        let size = (self.model.labels().len() + self.model.rules().len()) as f64;
        Ok(2.0 * self.sum()?.work() + COMPILATION * size)
    }

    /// The chosen engine and the reason for the choice, as a sentence.
    pub(super) fn reason(&self) -> Result<String> {
        Ok(match self.chosen()? {
            Choice::Engine(_, reason) => reason.clone(),
            Choice::Refused(why, _) => format!("loopy: {why}"),
        })
    }

    /// The marginals of a row, one number per category in the model's order.
    pub(super) fn marginals(&self, row: &[f64]) -> Result<Vec<f64>> {
        let engine = self.sum()?;
        self.spend(engine.work())?;
        Ok(engine.infer_row(row)?.marginals().to_vec())
    }

    /// The marginals without each rule; `None` for rules without which nothing is possible, and for all if that is too costly.
    pub(super) fn marginals_without_each_rule(&self, row: &[f64]) -> Option<Vec<Option<Vec<f64>>>> {
        let engine = self.sum().ok()?;
        let work = engine.work() * self.model.rules().len() as f64;
        let is_cheap = work <= MAX_WORK && self.spend(work).is_ok();
        is_cheap.then(|| engine.without_each_rule_of(row).ok()).flatten()
    }

    /// The probability of a formula without any rule and combination.
    pub(super) fn probability_alone(&self, row: &[f64], formula: &Formula) -> Result<f64> {
        let alone = self.model.without_rules()?;
        Engine::new(&alone, self.engines.left()).probability(row, formula)
    }

    /// The probability of a formula without each rule; `None` for rules without which nothing is possible, and for all if
    /// there are many.
    pub(super) fn probabilities_without_each_rule(
        &self,
        row: &[f64],
        formula: &Formula,
    ) -> Option<Vec<Option<f64>>> {
        let n_rules = self.model.rules().len();
        if n_rules > MAX_COMPILED || self.spend(n_rules as f64 * self.work_of_formula().ok()?).is_err() {
            return None;
        }
        let without = |rule: RuleId| {
            let model = self.model.edit().retain_rules(|other| other != rule).build().ok()?;
            Engine::new(&model, self.engines.left()).probability(row, formula).ok()
        };
        Some(self.model.rule_ids().map(without).collect())
    }

    /// The probability of a formula: Z with the formula as an additional hard rule, divided by Z.
    pub(super) fn probability(&self, row: &[f64], formula: &Formula) -> Result<f64> {
        self.spend(self.work_of_formula()?)?;
        let log_sum = self.sum()?.infer_row(row)?.log_evidence();
        let rule = Rule::new(1.0, Body::Formula(formula.clone()));
        let model = self.model.edit().add_rule(rule).build()?;
        let (with, _) = Engines::new(&model).with_limits(self.engines.left()).require_exact()?;
        self.spend((with.work() - self.sum()?.work()).max(0.0))?;
        match with.infer_row(row) {
            Ok(with) => Ok((with.log_evidence() - log_sum).exp().min(1.0)),
            Err(Error::Impossible { .. }) => Ok(0.0),
            Err(error) => Err(error),
        }
    }

    /// A most probable assignment of a row.
    pub(super) fn best(&self, row: &[f64]) -> Result<MostProbable> {
        let best = match self.sum() {
            Ok(engine @ Exact::Circuit(circuit)) if circuit.check_maxima().is_ok() => {
                self.spend(engine.work())?;
                circuit.top_row(row, 1).into_best()
            }
            _ => {
                let tree = self.max()?;
                self.spend(tree.cost().multiply_adds)?;
                tree.best_row(row)
            }
        };
        best.ok_or_else(|| match self.sum() {
            Ok(engine) => engine.infer_row(row).err().unwrap_or(Error::Impossible { rules: Vec::new() }),
            Err(_) => Error::Impossible { rules: Vec::new() },
        })
    }

    /// Whether these hard rules allow each category; all `false` if they contradict each other. `None` if that is too
    /// costly.
    pub(super) fn possibilities(&self, hard: &[RuleId]) -> Option<Vec<bool>> {
        let engine = self.hard_engine(hard)?;
        if engine.work() > MAX_WORK {
            return None;
        }
        engine.possible_categories(&uniform(self.model))
    }

    /// An exact engine of these rules alone. Without soft rules, small weights cannot underflow to 0.
    fn hard_engine(&self, hard: &[RuleId]) -> Option<&Exact> {
        if hard.len() == self.model.rules().len() {
            return self.sum().ok();
        }
        let compile = || {
            let among: HashSet<RuleId> = hard.iter().copied().collect();
            let edited = self.model.edit().retain_rules(|rule| among.contains(&rule)).remove_typical();
            let (engine, _) =
                Engines::new(&edited.build()?).with_limits(self.engines.left()).require_exact()?;
            Ok(engine)
        };
        self.hard.get_or_init(compile).as_ref().ok()
    }

    /// The exact engine for sums.
    fn sum(&self) -> Result<&Exact> {
        match self.chosen()? {
            Choice::Engine(engine, _) => Ok(engine),
            Choice::Refused(_, error) => Err(error.clone()),
        }
    }

    fn chosen(&self) -> Result<&Choice> {
        self.sum.get_or_init(|| self.engines.affordable_exact()).as_ref().map_err(Clone::clone)
    }

    fn max(&self) -> Result<&MaxProductTree> {
        let compile = || self.engines.max_product_tree();
        self.max.get_or_init(compile).as_ref().map_err(Clone::clone)
    }
}
