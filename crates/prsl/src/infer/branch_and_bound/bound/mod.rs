//! A lower bound on the cost of every assignment. Moving costs between labels and rules tightens it.
//!
//! # Derivation
//!
//! The cost of an assignment y is −ln of its weight: a sum over labels and over functions (rules). Messages m move
//! costs between them and leave the sum unchanged:
//!
//! ```text
//! cost(y) = c + Σⱼ uⱼ(yⱼ) + Σₖ θₖ(y)        θₖ(y) = costₖ(y) + Σⱼ mₖⱼ(yⱼ)                    (1)
//! ```
//!
//! While all u and θ are at least 0, c is a lower bound. One update takes a function k, adds the costs u of its
//! labels to it, and computes the cheapest completion of every category:
//!
//! ```text
//! μⱼ(x) = min { θₖ(y) + Σᵢ uᵢ(yᵢ) : yⱼ = x }                                                   (2)
//! ```
//!
//! The smallest μ moves into c. The rest of μ is divided evenly among the function's n undecided labels. θₖ stays at
//! least 0, because the sum of μⱼ(yⱼ) over the labels is at most n times the rest of (2) at y. No assignment with yⱼ
//! = x costs less than c + μⱼ(x). So a category is excluded if this is not below the best known cost.

mod completion;

use std::collections::VecDeque;
use std::ops::Range;

use super::budget::Budget;
use super::cost::Costs;

use completion::{Scratch, lesser};

/// A lower bound, with the costs moved between labels and rules. All changes can be undone.
pub(crate) struct Bound<'a> {
    pub(crate) costs: &'a Costs,
    /// −ln of every category's belief.
    pub(crate) beliefs: Vec<f64>,
    /// c of (1).
    pub(crate) constant: f64,
    /// Counts the work of updates.
    pub(crate) budget: Budget,
    /// u of every category, ∞ if the category is excluded; then the messages of all functions.
    values: Vec<f64>,
    /// Number of remaining categories of each label.
    n_left: Vec<usize>,
    trail: Option<Trail>,
    agenda: Agenda,
    scratch: Scratch,
}

/// The changes so far, with the values before them.
struct Trail {
    changes: Vec<Change>,
    values: Vec<f64>,
    /// Maximum number of recorded values. The search stops when it is reached.
    limit: usize,
    /// Number of calls of `mark` and `undo`. Values saved in the current period need not be saved again.
    period: u64,
    /// The period in which each label's costs and each function's messages were last saved.
    saved: Vec<u64>,
}

/// A range of values that changed.
struct Change {
    values: Range<usize>,
    /// The label, if the values are its costs and not messages.
    label: Option<usize>,
}

/// Queue of functions whose update may raise the bound.
struct Agenda {
    queue: VecDeque<usize>,
    queued: Vec<bool>,
}

/// A point in the trail to which changes can be undone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    n_changes: usize,
    pub(crate) constant: f64,
}

/// Minimum change of a label's costs that queues its functions again.
const NOTICEABLE: f64 = 5e-2;

impl<'a> Bound<'a> {
    /// The bound from the beliefs alone. Returns `None` if they exclude every assignment.
    pub(crate) fn new(costs: &'a Costs, row: &[f64], budget: Budget) -> Option<Self> {
        let beliefs: Vec<f64> = row.iter().map(|belief| -belief.ln()).collect();
        let mut values = Vec::with_capacity(row.len() + costs.n_messages);
        values.extend_from_slice(&beliefs);
        values.resize(row.len() + costs.n_messages, 0.0);
        let mut bound = Self {
            costs,
            beliefs,
            constant: costs.constant,
            budget,
            values,
            n_left: Vec::new(),
            trail: None,
            agenda: Agenda { queue: VecDeque::new(), queued: vec![false; costs.functions.len()] },
            scratch: Scratch::default(),
        };
        for label in 0..costs.of_label.len() {
            let block = &mut bound.values[costs.categories(label)];
            let least = block.iter().copied().fold(f64::INFINITY, lesser);
            if least == f64::INFINITY {
                return None;
            }
            block.iter_mut().for_each(|cost| *cost -= least);
            bound.constant += least;
        }
        bound.count();
        (bound.constant < f64::INFINITY).then_some(bound)
    }

    /// Excludes all but the cheapest of the categories that no rule distinguishes.
    pub(crate) fn drop_dominated(&mut self) {
        for (label, states) in self.costs.states.of_category.iter().enumerate() {
            let costs = &mut self.values[self.costs.categories(label)];
            let mut cheapest: Vec<Option<usize>> = vec![None; states.len()];
            for (category, &state) in states.iter().enumerate() {
                let best = &mut cheapest[state];
                if best.is_none_or(|best| costs[category] < costs[best]) {
                    *best = Some(category);
                }
            }
            for (category, &state) in states.iter().enumerate() {
                if cheapest[state] != Some(category) {
                    costs[category] = f64::INFINITY;
                }
            }
        }
        self.count();
    }

    /// Counts the remaining categories of each label.
    fn count(&mut self) {
        self.n_left = (0..self.costs.of_label.len()).map(|label| self.count_left(label)).collect();
    }

    fn count_left(&self, label: usize) -> usize {
        self.unary(label).iter().filter(|cost| **cost < f64::INFINITY).count()
    }

    /// u of a label's categories.
    pub(crate) fn unary(&self, label: usize) -> &[f64] {
        &self.values[self.costs.categories(label)]
    }

    /// Whether a label has one remaining category.
    pub(crate) fn is_decided(&self, label: usize) -> bool {
        self.n_left[label] == 1
    }

    /// Writes the cheapest category of every label.
    pub(crate) fn candidate(&self, assignment: &mut [usize]) {
        for (label, category) in assignment.iter_mut().enumerate() {
            *category = self.cheapest(label);
        }
    }

    /// The cheapest category of a label; ties go to the first.
    pub(crate) fn cheapest(&self, label: usize) -> usize {
        let costs = self.unary(label);
        (0..costs.len()).min_by(|&a, &b| costs[a].total_cmp(&costs[b])).expect("two or more")
    }

    /// θ of a function for an assignment.
    pub(crate) fn slack(&self, function: usize, assignment: &[usize]) -> f64 {
        let f = &self.costs.functions[function];
        let own = &self.values[self.costs.messages(f)];
        let messages: f64 =
            f.places.iter().map(|place| own[place.messages.start + assignment[place.label]]).sum();
        self.costs.cost(function, assignment) + messages
    }

    /// Records changes from now on, up to this number of values.
    pub(crate) fn start_recording(&mut self, limit: usize) {
        let n_saved = self.costs.of_label.len() + self.costs.functions.len();
        self.trail.get_or_insert_with(|| Trail {
            changes: Vec::new(),
            values: Vec::new(),
            limit,
            period: 1,
            saved: vec![0; n_saved],
        });
    }

    /// Marks the current point in the trail.
    pub(crate) fn mark(&mut self) -> Mark {
        let trail = self.trail.as_mut().expect("changes are recorded before anything is marked");
        trail.period += 1;
        Mark { n_changes: trail.changes.len(), constant: self.constant }
    }

    /// Undoes all changes since the mark.
    pub(crate) fn undo(&mut self, mark: Mark) {
        let mut trail = self.trail.take().expect("changes are recorded before anything is marked");
        trail.period += 1;
        for Change { values, label } in trail.changes.drain(mark.n_changes..).rev() {
            let saved = trail.values.len() - values.len();
            self.budget.spend(values.len() as u64);
            self.values[values].copy_from_slice(&trail.values[saved..]);
            trail.values.truncate(saved);
            if let Some(label) = label {
                self.n_left[label] = self.count_left(label);
            }
        }
        self.trail = Some(trail);
        self.constant = mark.constant;
    }

    /// Excludes all other categories of a label. The caller enqueues its functions.
    pub(crate) fn decide(&mut self, label: usize, category: usize) {
        self.take_out(label, |other| other != category);
    }

    /// Excludes a category. The caller enqueues the label's functions.
    pub(crate) fn exclude(&mut self, label: usize, category: usize) {
        self.take_out(label, |other| other == category);
    }

    /// Excludes categories, and moves the smallest remaining cost of the label into the bound.
    fn take_out(&mut self, label: usize, out: impl Fn(usize) -> bool) {
        let block = self.costs.categories(label);
        if let Some(trail) = &mut self.trail {
            trail.save_label(self.costs, &self.values, label);
        }
        let costs = &mut self.values[block];
        costs.iter_mut().enumerate().filter(|(at, _)| out(*at)).for_each(|(_, cost)| *cost = f64::INFINITY);
        self.n_left[label] = costs.iter().filter(|cost| **cost < f64::INFINITY).count();
        let least = costs.iter().copied().fold(f64::INFINITY, lesser);
        self.constant += least;
        if least > 0.0 && least < f64::INFINITY {
            costs.iter_mut().for_each(|cost| *cost -= least);
        }
        for &(function, _) in &self.costs.of_label[label] {
            self.agenda.add(function);
        }
    }

    /// Adds a function to the queue of updates.
    pub(crate) fn enqueue(&mut self, function: usize) {
        self.agenda.add(function);
    }

    /// Updates the queued functions, and functions queued by these updates. The number of updates is at most
    /// `times.end`; the first `times.start` updates ignore the budget. Returns `false` if no assignment below `upper`
    /// is left.
    pub(crate) fn propagate(&mut self, upper: f64, times: Range<usize>) -> bool {
        let mut n_updates = 0;
        let mut alive = self.constant < upper;
        while alive && n_updates < times.end && (n_updates < times.start || !self.budget.is_spent()) {
            let Some(function) = self.agenda.next() else { break };
            alive = self.update(function, upper);
            n_updates += 1;
        }
        while self.agenda.next().is_some() {}
        alive
    }

    /// One update, as derived above. Returns `false` if no assignment below `upper` is left.
    fn update(&mut self, function: usize, upper: f64) -> bool {
        let Self { costs, values, n_left, scratch, trail, agenda, budget, .. } = self;
        let f = &costs.functions[function];
        budget.spend(f.effort);
        if let Some(trail) = trail {
            trail.save_messages(costs, values, function);
            f.places.iter().for_each(|place| trail.save_label(costs, values, place.label));
            if trail.values.len() > trail.limit {
                budget.give_up();
            }
        }
        let (unary, messages) = values.split_at_mut(costs.model.n_categories());
        let messages = &mut messages[f.start..][..f.messages.len()];
        scratch.complete(f, unary, messages);
        let least = scratch.take_least(f);
        self.constant += least;
        if self.constant >= upper {
            return false;
        }
        let room = upper - self.constant;
        let n_open = f.places.iter().filter(|place| n_left[place.label] > 1).count();
        let share = 1.0 / n_open.max(1) as f64;
        let mut last_noticed = None;
        for ((about, &held), message) in f.messages.iter().zip(&scratch.held).zip(messages) {
            if held == f64::INFINITY {
                continue;
            }
            // The rest of μ. If it is too large, the category is excluded.
            let left = held + scratch.completion[about.group];
            let cost = &mut unary[about.category];
            let before = *cost;
            if left < room {
                *cost = left.max(0.0) * share;
                *message = held - *cost - if about.label == f.places[0].label { least } else { 0.0 };
            } else {
                *cost = f64::INFINITY;
                n_left[about.label] -= 1;
                if n_left[about.label] == 0 {
                    return false;
                }
            }
            if (*cost - before).abs() > NOTICEABLE && last_noticed != Some(about.label) {
                last_noticed = Some(about.label);
                let others = costs.of_label[about.label].iter().filter(|(other, _)| *other != function);
                others.for_each(|&(other, _)| agenda.add(other));
            }
        }
        true
    }
}

impl Trail {
    /// Saves a label's costs.
    fn save_label(&mut self, costs: &Costs, values: &[f64], label: usize) {
        self.save(label, values, Change { values: costs.categories(label), label: Some(label) });
    }

    /// Saves a function's messages.
    fn save_messages(&mut self, costs: &Costs, values: &[f64], function: usize) {
        let messages = costs.messages(&costs.functions[function]);
        self.save(costs.of_label.len() + function, values, Change { values: messages, label: None });
    }

    /// Saves values, unless they were saved since the last mark.
    fn save(&mut self, slot: usize, values: &[f64], change: Change) {
        if std::mem::replace(&mut self.saved[slot], self.period) != self.period {
            self.values.extend_from_slice(&values[change.values.clone()]);
            self.changes.push(change);
        }
    }
}

impl Agenda {
    fn add(&mut self, function: usize) {
        if !std::mem::replace(&mut self.queued[function], true) {
            self.queue.push_back(function);
        }
    }

    fn next(&mut self) -> Option<usize> {
        let function = self.queue.pop_front()?;
        self.queued[function] = false;
        Some(function)
    }
}
