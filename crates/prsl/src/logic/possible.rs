//! Whether a row of beliefs leaves anything possible, decided by logic alone.

use super::{Logic, Outcome, is_hard};
use crate::error::Error;
use crate::model::Model;
use crate::rule::RuleId;

/// Maximum size of a conflict that is minimized. Minimizing takes one query of the solver per rule.
const MAX_MINIMIZED: usize = 200;

/// The SAT solver's answer about a row.
pub(crate) enum Possible {
    /// This assignment satisfies every hard rule that was small enough to encode.
    Yes(Vec<usize>),
    /// These rules together exclude every assignment that the row allows.
    No(Vec<RuleId>),
    /// The solver reached its step limit.
    Unknown,
}

impl Possible {
    /// Asks the solver about a row of beliefs.
    pub(crate) fn of(model: &Model, row: &[f64]) -> Self {
        let mut logic = Logic::new(model);
        let hard: Vec<RuleId> = hard_rules(model).filter(|&rule| logic.knows(rule)).collect();
        let excluded: Vec<_> =
            (0..row.len()).filter(|&category| row[category] == 0.0).map(|c| !logic.category(c)).collect();
        match logic.ask(&hard, &excluded) {
            Outcome::Assignment(assignment) => Possible::Yes(assignment),
            Outcome::Conflict(rules) if rules.len() > MAX_MINIMIZED => Possible::No(rules),
            Outcome::Conflict(rules) => {
                let mut rules = logic.minimal(rules, &excluded);
                rules.sort_unstable();
                Possible::No(rules)
            }
            Outcome::Unknown => Possible::Unknown,
        }
    }
}

/// Returns rules that together exclude everything that an impossible row allows. The set is minimal where the solver
/// decides within its step limit; otherwise it is the set of all hard rules.
pub(crate) fn conflict(model: &Model, row: &[f64]) -> Vec<RuleId> {
    match Possible::of(model, row) {
        Possible::No(rules) => rules,
        Possible::Yes(_) | Possible::Unknown => hard_rules(model).collect(),
    }
}

/// Returns the error that says which rules make a row impossible.
pub(crate) fn impossible(model: &Model, row: &[f64]) -> Error {
    named(model, conflict(model, row))
}

/// Returns the same error for a conflict that is known.
pub(crate) fn named(model: &Model, conflict: Vec<RuleId>) -> Error {
    Error::Impossible { rules: conflict.into_iter().map(|rule| model.rule_name(rule)).collect() }
}

fn hard_rules(model: &Model) -> impl Iterator<Item = RuleId> + '_ {
    model.rule_ids().filter(|&rule| is_hard(model.rule(rule)))
}
