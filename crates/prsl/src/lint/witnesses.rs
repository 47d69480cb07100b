//! What assignments that satisfy the hard rules show, so that nobody has to ask: which categories are possible, which rules are
//! open, and which hard rules exclude something that no other one does.

use super::logic::{Truth, evaluation_steps, excludes};
use crate::label::LabelId;
use crate::model::Model;
use crate::rule::RuleId;

pub(super) struct Witnesses<'m> {
    model: &'m Model,
    /// Whether a rule is one of the hard rules that all assignments satisfy.
    is_hard: Vec<bool>,
    /// The rules that speak about each label.
    rules_of: Vec<Vec<RuleId>>,
    /// Rules that need not be true.
    pub(super) uncertain: Vec<bool>,
    /// Rules that may be true.
    pub(super) possible: Vec<bool>,
    /// Categories, counted over all labels, that are present in one of the assignments.
    pub(super) present: Vec<bool>,
    /// Hard rules without which more would be possible.
    pub(super) needed: Vec<bool>,
    /// Steps that looking has taken.
    steps: u64,
}

impl<'m> Witnesses<'m> {
    pub(super) fn new(model: &'m Model, hard: &[RuleId]) -> Self {
        let none = vec![false; model.rules().len()];
        let mut is_hard = none.clone();
        hard.iter().for_each(|rule| is_hard[rule.index()] = true);
        let mut rules_of = vec![Vec::new(); model.labels().len()];
        for rule in model.rule_ids() {
            for label in model.rule(rule).scope() {
                rules_of[label.index()].push(rule);
            }
        }
        Self {
            model,
            is_hard,
            rules_of,
            uncertain: none.clone(),
            possible: none.clone(),
            present: vec![false; model.n_categories()],
            needed: none,
            steps: 0,
        }
    }

    /// Takes an assignment that satisfies the hard rules, and others that differ from it step by step. Returns the steps that this
    /// took, at most about as many as are left.
    pub(super) fn add(&mut self, mut assignment: Vec<usize>, left: u64) -> u64 {
        self.steps = 0;
        for (label, &category) in assignment.iter().enumerate() {
            let place = self.place(label, category);
            self.present[place] = true;
        }
        for rule in self.model.rule_ids() {
            self.look(rule, &assignment);
        }
        // Chains of implications are followed in one direction or the other.
        let n_labels = assignment.len();
        for label in (0..n_labels).chain((0..n_labels).rev()) {
            if self.steps > left {
                break;
            }
            self.vary(label, &mut assignment);
        }
        self.steps
    }

    /// Tries the other categories of a label, and keeps the last of them that is new and breaks no rule.
    fn vary(&mut self, label: usize, assignment: &mut [usize]) {
        let before = assignment[label];
        let mut kept = before;
        for category in 0..self.model.label(LabelId::new(label)).n_categories() {
            let place = self.place(label, category);
            let is_open = |&rule: &RuleId| self.is_hard[rule.index()] && !self.needed[rule.index()];
            if category == before || (self.present[place] && !self.rules_of[label].iter().any(is_open)) {
                continue;
            }
            assignment[label] = category;
            match self.broken(label, assignment)[..] {
                [] => {
                    if !self.present[place] {
                        self.present[place] = true;
                        kept = category;
                    }
                    for index in 0..self.rules_of[label].len() {
                        self.look(self.rules_of[label][index], assignment);
                    }
                }
                [rule] => self.needed[rule.index()] = true,
                _ => {}
            }
        }
        assignment[label] = kept;
    }

    /// Up to two hard rules about a label that exclude an assignment.
    fn broken(&mut self, label: usize, assignment: &[usize]) -> Vec<RuleId> {
        let mut broken = Vec::new();
        for &rule in &self.rules_of[label] {
            if !self.is_hard[rule.index()] {
                continue;
            }
            self.steps += evaluation_steps(self.model.rule(rule));
            if excludes(self.model.rule(rule), assignment) {
                broken.push(rule);
                if broken.len() == 2 {
                    break;
                }
            }
        }
        broken
    }

    /// What an assignment makes of a rule, unless that is known.
    fn look(&mut self, rule: RuleId, assignment: &[usize]) {
        let index = rule.index();
        if self.uncertain[index] && self.possible[index] {
            return;
        }
        self.steps += evaluation_steps(self.model.rule(rule));
        let truth = Truth::of(self.model.rule(rule), assignment);
        self.uncertain[index] |= !truth.certain;
        self.possible[index] |= truth.possible;
    }

    fn place(&self, label: usize, category: usize) -> usize {
        self.model.block(LabelId::new(label)).start + category
    }
}
