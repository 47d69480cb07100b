//! Compilation: from the rules of a model and limits to a plan, and from the plan to a [`Runner`].

use std::sync::Arc;

use super::network::{Form, Leaf, Network, Split};
use super::plan::Plan;
use super::runner::Runner;
use super::search::{Best, Ceiling, search};
use crate::error::{Error, Result};
use crate::infer::account::Account;
use crate::infer::factor::{Factor, Factors, Shape};
use crate::infer::limits::{Cost, Limits, bytes, bytes_above, quantity};
use crate::infer::semiring::{Aim, Semiring};
use crate::rule::RuleId;

/// Largest number of multiply-adds of a plan per row. One row then takes some minutes on one core.
const MAX_WORK: f64 = 1e12;

/// Largest number of entries of all tables of a plan together. Offsets into the tables are 32-bit numbers.
const MAX_ENTRIES: f64 = u32::MAX as f64;

/// A rule is watched for lost digits if its weight when silent is less than this share of its weight when fired. Such
/// a rule alone can cancel nearly all of Z.
const NEARLY_HARD: f64 = 0.01;

/// Adds to a refusal that other engines take a part of the memory, if the engine alone would fit.
fn beside(refused: Error, account: &Account, needed: f64) -> Error {
    match refused {
        Error::TooCostly { what, needed: told, limit, advice } if needed <= account.limit() as f64 => {
            let others = bytes(account.reserved() as f64);
            let limit = format!("{limit}, of which other engines take {others}");
            Error::TooCostly { what, needed: told, limit, advice }
        }
        other => other,
    }
}

/// A plan for the rules of a model, before its tables are laid out.
pub(crate) struct Compilation {
    factors: Arc<Factors>,
    best: Best,
    aim: Aim,
    limits: Limits,
}

impl Compilation {
    /// Searches for a plan.
    pub(crate) fn new(factors: &Arc<Factors>, aim: Aim, split: Split, limits: Limits) -> Result<Self> {
        Self::new_worth(factors, aim, split, limits, MAX_WORK)
    }

    /// Searches for a plan of at most `max_work` multiply-adds per row. If there is none, the search ends early.
    pub(crate) fn new_worth(
        factors: &Arc<Factors>,
        aim: Aim,
        split: Split,
        limits: Limits,
        max_work: f64,
    ) -> Result<Self> {
        let ceiling = Ceiling { memory: limits.memory as f64, work: max_work.min(MAX_WORK) };
        let best = search(factors, aim, split, ceiling)?;
        Ok(Self { factors: Arc::clone(factors), best, aim, limits })
    }

    /// The cost of the plan. Its memory is estimated, because the tables are not laid out yet.
    pub(crate) fn cost(&self) -> Cost {
        self.best.outline.cost
    }

    /// Whether any rule is decomposed with signs.
    pub(crate) fn is_signed(&self) -> bool {
        let decomposed = |(factor, form): (&Factor, &Form)| {
            *form == Form::Decomposed && factor.counted.is_none() && matches!(factor.shape, Shape::RankOne(_))
        };
        self.best.split() == Split::Signed && self.factors.list.iter().zip(&self.best.forms).any(decomposed)
    }

    /// The same plan without signs.
    pub(crate) fn without_signs(self) -> Result<Self> {
        let best = self.best.with_split(&self.factors, Split::Or)?;
        Ok(Self { best, ..self })
    }

    /// Returns an error if every tree of the plan is certain to exceed the limits.
    pub(crate) fn check(&self) -> Result<()> {
        let may_fit = self.best.outlines().any(|outline| self.may_fit(&outline.cost));
        if may_fit { Ok(()) } else { Err(self.too_costly(self.best.outline.cost)) }
    }

    /// Returns an error if a row takes more multiply-adds than this.
    pub(crate) fn check_work(&self, max_work: f64) -> Result<()> {
        let work = self.cost().multiply_adds;
        if work <= max_work {
            return Ok(());
        }
        let unit = "multiply-adds a row";
        Err(Error::TooCostly {
            what: self.aim.query().to_owned(),
            needed: format!("{} {unit}", quantity(work)),
            limit: format!("{} {unit}", quantity(max_work)),
            advice: self.aim.advice().to_owned(),
        })
    }

    /// Whether a plan may be within the limits. Only its table entries and multiply-adds are known at this point.
    fn may_fit(&self, cost: &Cost) -> bool {
        let is_too_large = cost.entries * 8.0 > self.limits.memory as f64 || cost.entries > MAX_ENTRIES;
        !is_too_large && cost.multiply_adds <= MAX_WORK
    }

    /// Lays out the tables. Returns an error with the cost if they do not fit the account.
    pub(crate) fn runner<S: Semiring>(&self, account: &Arc<Account>) -> Result<Runner<S>> {
        self.check()?;
        let network = self.best.network(&self.factors)?;
        let (mut plan, [permanent, workspace]) = self.fitting_plan(&network, account)?;
        let is_nearly_hard = |&&(rule, _): &&(RuleId, usize)| {
            let [silent, fired] = self.factors.list[rule.index()].weights;
            silent < NEARLY_HARD * fired
        };
        plan.watch(&network.signed.iter().filter(is_nearly_hard).map(|&(_, variable)| variable).collect());
        account.reserve(permanent, workspace);
        let max_inconsistency = self.max_inconsistency(plan.cost.multiply_adds);
        Ok(Runner::new(&self.factors, network.leaves, plan, account, max_inconsistency))
    }

    /// The first tree of the plan that fits the account, and the bytes that it and its smallest workspace occupy.
    fn fitting_plan(&self, network: &Network, account: &Account) -> Result<(Plan, [u64; 2])> {
        let of_leaves = network.leaves.iter().map(Leaf::bytes).sum::<u64>();
        let mut refused = None;
        for outline in self.best.outlines().filter(|outline| self.may_fit(&outline.cost)) {
            let mut plan = outline.plan(network);
            let permanent = plan.bytes() + of_leaves;
            let workspace = plan.workspace_bytes(self.factors.list.len(), 1);
            plan.cost.bytes = (permanent + workspace) as f64;
            if account.fits(permanent, workspace) {
                return Ok((plan, [permanent, workspace]));
            }
            refused = refused.or(Some(plan.cost));
        }
        let refused = refused.unwrap_or(self.best.outline.cost);
        Err(beside(self.too_costly(refused), account, refused.bytes))
    }

    /// The largest relative difference between sums that must be equal, for a plan of this many multiply-adds per row.
    /// Rows above it are computed again without signs. The limit is stricter where that is cheap: 2e4 multiply-adds
    /// take microseconds, 1e7 milliseconds. Larger plans take seconds, and more digits are lost on the way.
    fn max_inconsistency(&self, multiply_adds: f64) -> f64 {
        match multiply_adds {
            _ if !self.is_signed() => f64::INFINITY,
            work if work < 2e4 => 1e-13,
            work if work < 1e7 => 1e-11,
            _ => 1e-8,
        }
    }

    fn too_costly(&self, cost: Cost) -> Error {
        let refuse = |needed: String, limit: String, advice: &str| Error::TooCostly {
            what: self.aim.query().to_owned(),
            needed,
            limit,
            advice: advice.to_owned(),
        };
        if cost.multiply_adds > MAX_WORK {
            let (needed, limit) = (quantity(cost.multiply_adds), quantity(MAX_WORK));
            let unit = "multiply-adds a row";
            return refuse(format!("{needed} {unit}"), format!("{limit} {unit}"), self.aim.advice());
        }
        if cost.entries > MAX_ENTRIES {
            let (needed, limit) = (quantity(cost.entries), quantity(MAX_ENTRIES));
            return refuse(
                format!("{needed} table entries"),
                format!("{limit} table entries"),
                self.aim.advice(),
            );
        }
        let [needed, limit] = bytes_above(cost.bytes, self.limits.memory as f64);
        refuse(
            format!("{needed} for tables of {:.1e} entries", cost.entries),
            limit,
            "raise the memory limit, or give the rules that tie many labels together fewer labels",
        )
    }
}
