//! Whether anything is possible under the hard rules: by logic alone, for engines that search.

use crate::lint::logic::{Logic, Outcome, is_hard};
use crate::model::Model;
use crate::rule::RuleId;

/// Conflicts of more rules are left as the solver gives them: to leave out one after the other would take long.
const MAX_MINIMIZED: usize = 200;

/// What the SAT solver says about a row.
pub(crate) enum Possible {
    /// This assignment satisfies all hard rules that are small enough for the solver.
    Yes(Vec<usize>),
    /// These rules together exclude everything that the row allows.
    No(Vec<RuleId>),
    /// It was given up.
    Unknown,
}

impl Possible {
    /// Asks about a row of beliefs.
    pub(crate) fn of(model: &Model, row: &[f64]) -> Self {
        let mut logic = Logic::new(model);
        let is_known_and_hard = |&rule: &RuleId| is_hard(model.rule(rule)) && logic.knows(rule);
        let hard: Vec<RuleId> = model.rule_ids().filter(is_known_and_hard).collect();
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
