//! Facts that satisfying assignments prove without the SAT solver: possible categories, undecided rules, and
//! necessary hard rules.

use crate::label::LabelId;
use crate::logic::{Truth, evaluation_steps, excludes};
use crate::model::Model;
use crate::rule::RuleId;

pub(super) struct Witnesses<'m> {
    model: &'m Model,
    /// Whether a rule is one of the hard rules that all assignments satisfy.
    is_hard: Vec<bool>,
    /// The rules about each label.
    rules_of: Vec<Vec<RuleId>>,
    /// Rules that are not certain in some assignment.
    pub(super) uncertain: Vec<bool>,
    /// Rules that are possible in some assignment.
    pub(super) possible: Vec<bool>,
    /// Categories, by their index among all labels, that are present in some assignment.
    pub(super) present: Vec<bool>,
    /// Hard rules that are necessary: without them, more assignments are possible.
    pub(super) needed: Vec<bool>,
    /// Number of steps taken.
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

    /// Adds an assignment that satisfies the hard rules, and others reached from it by changing one label at a time.
    /// Returns the number of steps, which is at most about `left`.
    pub(super) fn add(&mut self, mut assignment: Vec<usize>, left: u64) -> u64 {
        self.steps = 0;
        for (label, &category) in assignment.iter().enumerate() {
            let place = self.place(label, category);
            self.present[place] = true;
        }
        for rule in self.model.rule_ids() {
            self.observe(rule, &assignment);
        }
        // Both directions, so that chains of implications are followed either way.
        let n_labels = assignment.len();
        for label in (0..n_labels).chain((0..n_labels).rev()) {
            if self.steps > left {
                break;
            }
            self.vary(label, &mut assignment);
        }
        self.steps
    }

    /// Tries the other categories of a label. Keeps the last one that is new and violates no rule.
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
                        self.observe(self.rules_of[label][index], assignment);
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

    /// Evaluates a rule under an assignment, unless the result is already known.
    fn observe(&mut self, rule: RuleId, assignment: &[usize]) {
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
