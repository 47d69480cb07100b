//! Rules and categories that the hard rules determine.

use std::collections::{BTreeMap, HashSet};

use super::{Check, places, report_impossible};
use crate::label::CategoryId;
use crate::lint::Severity;
use crate::lint::witnesses::Witnesses;
use crate::logic::{Lit, Outcome, is_hard};
use crate::rule::RuleId;

/// Maximum number of rules in a reason that is minimized. Longer reasons stay as the SAT solver returns them: a chain
/// of a thousand rules would have a thousand of them to minimize.
const MAX_MINIMIZED: usize = 32;

impl Check<'_, '_> {
    /// Reports rules and categories that the hard rules determine.
    pub(super) fn consequences(&mut self) {
        let hard = std::mem::take(&mut self.hard);
        let Some(solution) = self.solution.take().filter(|_| !hard.is_empty()) else { return };
        let mut seen = Witnesses::new(self.report.model(), &hard);
        self.add_witness(&mut seen, solution);
        self.impossible_categories(&hard, &mut seen);
        self.decided_soft_rules(&hard, &mut seen);
        self.redundant_hard_rules(&hard, &seen);
    }

    /// Adds an assignment that satisfies the hard rules.
    fn add_witness(&mut self, seen: &mut Witnesses<'_>, assignment: Vec<usize>) {
        let (taken, budget) = self.logic.steps();
        let steps = seen.add(assignment, budget.saturating_sub(taken) / 2);
        self.logic.charge(steps);
    }

    /// Reports hard rules that follow from the others. A reported rule is removed before the next check, so the model
    /// without all reported rules is equivalent.
    fn redundant_hard_rules(&mut self, hard: &[RuleId], seen: &Witnesses<'_>) {
        let among: HashSet<RuleId> = hard.iter().copied().collect();
        let repeats = |&rule: &RuleId| {
            let first = self.same_as[rule.index()];
            first.is_some_and(|first| {
                among.contains(&first) && self.rule(first).probability() == self.rule(rule).probability()
            })
        };
        let mut kept: Vec<RuleId> = hard.iter().copied().filter(|rule| !repeats(rule)).collect();
        for position in (0..kept.len()).rev() {
            let rule = kept[position];
            if seen.needed[rule.index()] {
                continue;
            }
            if self.logic.is_spent() {
                self.open.rules.insert(rule);
                continue;
            }
            let literal = if self.rule(rule).probability() == 1.0 {
                !self.logic.certain(rule)
            } else {
                self.logic.possible(rule)
            };
            let others: Vec<RuleId> = kept.iter().copied().filter(|&other| other != rule).collect();
            match self.logic.ask(&others, &[literal]) {
                Outcome::Conflict(conflict) => {
                    kept = others;
                    self.report_decided(rule, conflict, literal);
                }
                Outcome::Assignment(_) => {}
                Outcome::Unknown => drop(self.open.rules.insert(rule)),
            }
        }
    }

    /// Reports soft rules that are always true or always false if the hard rules hold.
    fn decided_soft_rules(&mut self, hard: &[RuleId], seen: &mut Witnesses<'_>) {
        let model = self.report.model();
        let mut repeats_hard = vec![false; model.rules().len()];
        for rule in self.rule_ids() {
            if let Some(first) = self.same_as[rule.index()] {
                repeats_hard[rule.index()] |= is_hard(self.rule(first));
                repeats_hard[first.index()] |= is_hard(self.rule(rule));
            }
        }
        for rule in self.rule_ids() {
            if is_hard(self.rule(rule)) || repeats_hard[rule.index()] || !self.speaks(rule) {
                continue;
            }
            let questions = [
                (!self.logic.certain(rule), seen.uncertain[rule.index()]),
                (self.logic.possible(rule), seen.possible[rule.index()]),
            ];
            let open: Vec<Lit> = questions
                .into_iter()
                .filter(|(_, answered)| !*answered)
                .map(|(literal, _)| literal)
                .collect();
            for literal in open {
                match self.logic.ask(hard, &[literal]) {
                    Outcome::Assignment(assignment) => self.add_witness(seen, assignment),
                    Outcome::Conflict(conflict) => self.report_decided(rule, conflict, literal),
                    Outcome::Unknown => drop(self.open.rules.insert(rule)),
                }
            }
        }
    }

    /// Reports a rule that the hard rules determine. `literal` says that the rule is not certain, or that it is
    /// possible; the conflict excludes it.
    fn report_decided(&mut self, rule: RuleId, conflict: Vec<RuleId>, literal: Lit) {
        let reasons = self.minimal_reasons(conflict, literal);
        let (quoted, listed) = (self.report.quoted(rule), self.report.listed(&reasons));
        let (code, message, help) = if literal == !self.logic.certain(rule) {
            (
                "implied-rule",
                format!("rule {quoted} already follows from {listed}, so it has no effect"),
                "remove it, or make what it follows from less certain",
            )
        } else if self.rule(rule).probability() == 0.0 {
            (
                "implied-rule",
                format!("{quoted} is already excluded by {listed}, so excluding it again has no effect"),
                "remove it, or make what it follows from less certain",
            )
        } else {
            (
                "contradicted-rule",
                format!("rule {quoted} can never be true because of {listed}, so it has no effect"),
                "remove it, or make what excludes it less certain",
            )
        };
        let related = places(self.report, &reasons);
        let finding = self.report.add_rule(Severity::Warning, code, rule, message);
        finding.help = Some(help.to_owned());
        finding.related = related;
    }

    /// A minimal set of rules that exclude a literal, unless the conflict is too large.
    fn minimal_reasons(&mut self, conflict: Vec<RuleId>, literal: Lit) -> Vec<RuleId> {
        if conflict.len() > MAX_MINIMIZED { conflict } else { self.logic.minimal(conflict, &[literal]) }
    }

    /// Reports categories that are in no assignment that satisfies the hard rules.
    fn impossible_categories(&mut self, hard: &[RuleId], seen: &mut Witnesses<'_>) {
        let model = self.report.model();
        for label in model.label_ids() {
            let mut impossible: BTreeMap<Vec<RuleId>, Vec<CategoryId>> = BTreeMap::new();
            for (category, index) in model.block(label).enumerate() {
                if seen.present[index] {
                    continue;
                }
                let literal = self.logic.category(index);
                match self.logic.ask(hard, &[literal]) {
                    Outcome::Assignment(assignment) => self.add_witness(seen, assignment),
                    Outcome::Conflict(conflict) => {
                        let reasons = self.minimal_reasons(conflict, literal);
                        impossible.entry(reasons).or_default().push(CategoryId::new(category));
                        self.open.impossible.insert(index);
                    }
                    Outcome::Unknown => self.open.categories.push(index),
                }
            }
            for (reasons, categories) in impossible {
                report_impossible(self.report, label, &categories, &reasons);
            }
        }
    }
}
