//! Rules that are equivalent to another rule, or to its negation.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::Check;
use crate::formula::{Clause, as_clause};
use crate::label::{CategoryId, LabelId};
use crate::lint::Severity;
use crate::lint::report::decimal;
use crate::logic::is_hard;
use crate::model::Model;
use crate::noisy_or::NoisyOr;
use crate::rule::{Body, Rule, RuleId};

/// Properties that equivalent rules share: labels, signature and, for wide clauses, the hash of their literals.
type Likeness = (Vec<LabelId>, Vec<bool>, Option<u64>);

impl Check<'_, '_> {
    /// Reports rules over the same labels that are equivalent, or negations of each other.
    pub(super) fn duplicates(&mut self) {
        // Rules with equal samples. Wide clauses are also separated by their hash, because many may have equal
        // samples.
        let mut formulas: HashMap<Likeness, Vec<RuleId>> = HashMap::new();
        let mut noisy_ors: HashMap<Vec<(LabelId, CategoryId, u64)>, RuleId> = HashMap::new();
        for rule in self.rule_ids() {
            if !self.speaks(rule) {
                continue;
            }
            match self.rule(rule).body() {
                Body::NoisyOr(noisy_or) if !deterministic(noisy_or) => {
                    let first = *noisy_ors.entry(canonical(noisy_or)).or_insert(rule);
                    self.same_as[rule.index()] = Some(first).filter(|&first| first != rule);
                }
                _ => {
                    let table = &self.tables[rule.index()];
                    let (scope, signature) = (table.scope.clone(), table.signature());
                    let negated: Vec<bool> = signature.iter().map(|possible| !possible).collect();
                    let hash = self.clauses[rule.index()].as_ref().map(|outline| outline.hash);
                    let opposite = formulas.get(&(scope.clone(), negated, hash));
                    let opposite = self.first_that(rule, opposite.map_or(&[], Vec::as_slice), false);
                    let distinct = formulas.entry((scope, signature, hash)).or_default();
                    match self.first_that(rule, distinct, true) {
                        Some(first) => self.same_as[rule.index()] = Some(first),
                        None => {
                            distinct.push(rule);
                            opposite.into_iter().for_each(|first| self.report_opposite(rule, first));
                        }
                    }
                }
            }
            if let Some(first) = self.same_as[rule.index()] {
                self.report_duplicate(rule, first);
            }
        }
    }

    /// The first of `others` that is equivalent to a rule, or to its negation. All of them have the same sample.
    fn first_that(&mut self, rule: RuleId, others: &[RuleId], agrees: bool) -> Option<RuleId> {
        others.iter().copied().find(|&other| {
            if self.tables[rule.index()].complete {
                return true;
            }
            if self.clauses[rule.index()].is_some() {
                let [a, b] = [rule, other].map(|id| clause(self.report.model(), self.rule(id)));
                let is_same = |(a, b): (Clause, Clause)| {
                    a.literals == b.literals && (a.positive == b.positive) == agrees
                };
                return a.zip(b).is_some_and(is_same);
            }
            if self.logic.is_spent() {
                self.open.rules.insert(rule);
                return false;
            }
            let differ = self.logic.differ(other, rule);
            self.is_excluded(rule, if agrees { differ } else { !differ })
        })
    }

    fn report_opposite(&mut self, rule: RuleId, first: RuleId) {
        if is_hard(self.rule(rule)) || is_hard(self.rule(first)) {
            return; // Reported as a contradiction or a consequence.
        }
        let (p, q) = (self.rule(rule).probability(), self.rule(first).probability());
        let (quoted, original) = (self.report.quoted(rule), self.report.quoted(first));
        let message = format!("rule {quoted} says the opposite of rule {original}");
        let related = self.report.related(first, "first stated here");
        let finding = self.report.add_rule(Severity::Warning, "opposite-rule", rule, message);
        let both = q * (1.0 - p) / (q * (1.0 - p) + (1.0 - q) * p);
        let both = format!("both together count like {original} with probability {both:.4}");
        finding.help = Some(format!("keep one of them; {both}"));
        finding.related = vec![related];
    }

    fn report_duplicate(&mut self, rule: RuleId, first: RuleId) {
        let (p, q) = (self.rule(rule).probability(), self.rule(first).probability());
        if (p - q).abs() == 1.0 {
            return; // Reported as a contradiction.
        }
        let (quoted, original) = (self.report.quoted(rule), self.report.quoted(first));
        let differing = if p == q {
            String::new()
        } else {
            format!(", with probability {} instead of {}", decimal(p), decimal(q))
        };
        let message = if quoted == original {
            format!("rule {quoted} is stated twice{differing}")
        } else {
            format!("rule {quoted} says the same as rule {original}{differing}")
        };
        let related = self.report.related(first, "first stated here");
        let finding = self.report.add_rule(Severity::Warning, "duplicate-rule", rule, message);
        let formula = self.tables[rule.index()].is_logical();
        finding.help = Some(if formula && p > 0.0 && p < 1.0 && q > 0.0 && q < 1.0 {
            let both = p * q / (p * q + (1.0 - p) * (1.0 - q));
            format!("keep one of them; both together count like one of probability {both:.4}")
        } else {
            "keep one of them".to_owned()
        });
        finding.related = vec![related];
    }
}

/// The formula of a rule as a clause, if it is a clause or the negation of one.
pub(super) fn clause(model: &Model, rule: &Rule) -> Option<Clause> {
    as_clause(rule.formula()?, |label| model.label(label).n_categories())
}

/// Summary of a clause about labels of many categories.
pub(super) struct Outline {
    /// Hash of the literals, which is equal for equivalent clauses.
    pub(super) hash: u64,
    /// Whether the formula, which is the clause or its negation, is always true, or always false.
    pub(super) is_always_true: bool,
    pub(super) is_never_true: bool,
}

impl Outline {
    pub(super) fn new(model: &Model, clause: &Clause) -> Self {
        // A clause is always true if all categories of a label fire, and always false if none fires.
        let n_categories = |label: LabelId| model.label(label).n_categories();
        let is_full = clause.literals.iter().any(|(&label, fires)| fires.len() == n_categories(label));
        let is_empty = clause.literals.values().all(Vec::is_empty);
        let (always, never) = (clause.always || is_full, !clause.always && is_empty);
        let (is_always_true, is_never_true) = if clause.positive { (always, never) } else { (never, always) };
        let mut hasher = DefaultHasher::new();
        clause.literals.hash(&mut hasher);
        Self { hash: hasher.finish(), is_always_true, is_never_true }
    }
}

/// Whether all inhibition probabilities of a noisy-or are 0 or 1.
fn deterministic(noisy_or: &NoisyOr) -> bool {
    noisy_or.inhibitions().iter().all(|i| i.probability == 0.0 || i.probability == 1.0)
}

/// A noisy-or in canonical order, without categories that never fire.
fn canonical(noisy_or: &NoisyOr) -> Vec<(LabelId, CategoryId, u64)> {
    let fires = noisy_or.inhibitions().iter().filter(|i| i.probability < 1.0);
    let mut terms: Vec<_> = fires.map(|i| (i.label, i.category, i.probability.abs().to_bits())).collect();
    terms.sort_unstable();
    terms
}
