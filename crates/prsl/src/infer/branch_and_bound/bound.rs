//! A lower bound on the cost of every assignment, made tighter by moving costs between labels and rules.
//!
//! # Derivation
//!
//! The cost of an assignment y is −ln of its weight, a sum over labels and over functions (rules). Messages m move cost
//! between them without changing the sum:
//!
//! ```text
//! cost(y) = c + Σⱼ uⱼ(yⱼ) + Σₖ θₖ(y)        θₖ(y) = costₖ(y) + Σⱼ mₖⱼ(yⱼ)                    (1)
//! ```
//!
//! As long as all u and θ are at least 0, c is a lower bound. One update takes a function k, adds what its labels hold to
//! it, and computes for every category the cheapest completion
//!
//! ```text
//! μⱼ(x) = min { θₖ(y) + Σᵢ uᵢ(yᵢ) : yⱼ = x }                                                   (2)
//! ```
//!
//! The smallest μ goes into c, and what is left of μ is shared evenly among the function's n undecided labels: θₖ stays
//! at least 0, because the μⱼ(yⱼ) of all labels together are at most n times what is left of (2) at y. No assignment with yⱼ = x costs
//! less than c + μⱼ(x): categories for which that is not below the best known cost are out.

use super::cost::{Chain, CostFunction, Costs, Form};
use crate::label::LabelId;

/// Costs moved between labels and rules, and the lower bound that came out of it. All changes can be taken back.
pub(crate) struct Bound<'a> {
    pub(crate) costs: &'a Costs,
    /// c of (1).
    pub(crate) constant: f64,
    /// u of every category, ∞ for those that are out, then the messages of all functions.
    values: Vec<f64>,
    /// What was changed since the start, and what it was before.
    trail: Vec<(usize, f64)>,
    /// Functions that may say more than they did.
    queue: std::collections::VecDeque<usize>,
    queued: Vec<bool>,
    scratch: Scratch,
}

/// Room for one update.
#[derive(Default)]
struct Scratch {
    /// Per message: what the function and the label hold together.
    held: Vec<f64>,
    /// Per group: the least held, and the cheapest completion.
    least: Vec<f64>,
    completion: Vec<f64>,
    sums: Vec<f64>,
    more_sums: Vec<f64>,
}

/// Where things stood, to be gone back to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    trail: usize,
    pub(crate) constant: f64,
}

/// A label's costs that change by less than this are not worth another look.
const NOTICEABLE: f64 = 5e-2;

impl<'a> Bound<'a> {
    /// The beliefs' costs; `None` if they exclude everything.
    pub(crate) fn new(costs: &'a Costs, row: &[f64]) -> Option<Self> {
        let mut values: Vec<f64> = row.iter().map(|belief| -belief.ln()).collect();
        values.resize(row.len() + costs.n_messages, 0.0);
        let mut bound = Self {
            costs,
            constant: costs.constant,
            values,
            trail: Vec::new(),
            queue: std::collections::VecDeque::new(),
            queued: vec![false; costs.functions.len()],
            scratch: Scratch::default(),
        };
        for label in costs.model.label_ids() {
            let block = &mut bound.values[costs.model.block(label)];
            let least = block.iter().copied().fold(f64::INFINITY, f64::min);
            if least == f64::INFINITY {
                return None;
            }
            block.iter_mut().for_each(|cost| *cost -= least);
            bound.constant += least;
        }
        (bound.constant < f64::INFINITY).then_some(bound)
    }

    /// Takes out all but the cheapest of the categories that no rule tells apart.
    pub(crate) fn drop_dominated(&mut self) {
        for label in self.costs.model.label_ids() {
            let block = self.costs.model.block(label);
            let states = &self.costs.states.of_category[label.index()];
            for (category, &state) in states.iter().enumerate() {
                let cost = self.values[block.start + category];
                let dominated = |other: usize| {
                    let rival = self.values[block.start + other];
                    states[other] == state && (rival < cost || (rival == cost && other < category))
                };
                if (0..states.len()).any(dominated) {
                    self.values[block.start + category] = f64::INFINITY;
                }
            }
        }
    }

    /// u of a label's categories.
    pub(crate) fn unary(&self, label: usize) -> &[f64] {
        &self.values[self.costs.model.block(LabelId::new(label))]
    }

    /// Whether a label has one category left.
    pub(crate) fn is_decided(&self, label: usize) -> bool {
        self.unary(label).iter().filter(|cost| **cost < f64::INFINITY).count() == 1
    }

    /// For every label its cheapest category.
    pub(crate) fn candidate(&self, assignment: &mut [usize]) {
        for (label, category) in assignment.iter_mut().enumerate() {
            *category = self.cheapest(label);
        }
    }

    /// The cheapest category of a label, the first of several.
    pub(crate) fn cheapest(&self, label: usize) -> usize {
        let costs = self.unary(label);
        (0..costs.len()).min_by(|&a, &b| costs[a].total_cmp(&costs[b])).expect("two or more")
    }

    /// θ of a function for an assignment.
    pub(crate) fn slack(&self, function: usize, assignment: &[usize]) -> f64 {
        let f = &self.costs.functions[function];
        let first = self.costs.model.n_categories() + f.start;
        let messages: f64 = f
            .places
            .iter()
            .map(|place| self.values[first + place.messages.start + assignment[place.label]])
            .sum();
        self.costs.cost(function, assignment) + messages
    }

    pub(crate) fn mark(&self) -> Mark {
        Mark { trail: self.trail.len(), constant: self.constant }
    }

    /// Forgets the way here: it cannot be gone back any more.
    pub(crate) fn settle(&mut self) {
        self.trail.clear();
    }

    /// Takes back everything since the mark.
    pub(crate) fn undo(&mut self, mark: Mark) {
        for (at, value) in self.trail.drain(mark.trail..).rev() {
            self.values[at] = value;
        }
        self.constant = mark.constant;
    }

    fn set(&mut self, at: usize, value: f64) {
        self.trail.push((at, self.values[at]));
        self.values[at] = value;
    }

    /// Leaves a label this category alone; its functions are to be looked at.
    pub(crate) fn decide(&mut self, label: usize, category: usize) {
        let block = self.costs.model.block(LabelId::new(label));
        for at in block.clone() {
            if at != block.start + category && self.values[at] < f64::INFINITY {
                self.set(at, f64::INFINITY);
            }
        }
        self.lift(label);
    }

    /// Takes a category out; the label's functions are to be looked at.
    pub(crate) fn exclude(&mut self, label: usize, category: usize) {
        let block = self.costs.model.block(LabelId::new(label));
        self.set(block.start + category, f64::INFINITY);
        self.lift(label);
    }

    /// Moves what all categories of a label cost at least into the bound.
    fn lift(&mut self, label: usize) {
        let block = self.costs.model.block(LabelId::new(label));
        let least = self.values[block.clone()].iter().copied().fold(f64::INFINITY, f64::min);
        self.constant += least;
        if least > 0.0 && least < f64::INFINITY {
            for at in block {
                if self.values[at] < f64::INFINITY {
                    self.set(at, self.values[at] - least);
                }
            }
        }
        self.look_at(label);
    }

    /// Puts the functions of a label on the list.
    fn look_at(&mut self, label: usize) {
        for &function in &self.costs.of_label[label] {
            self.enqueue(function);
        }
    }

    pub(crate) fn enqueue(&mut self, function: usize) {
        if !std::mem::replace(&mut self.queued[function], true) {
            self.queue.push_back(function);
        }
    }

    /// Updates the functions on the list, and those that this gives reason to, at most `budget` times. `false` if nothing
    /// below `upper` is left.
    pub(crate) fn propagate(&mut self, upper: f64, budget: usize) -> bool {
        let mut left = budget;
        let mut alive = self.constant < upper;
        while alive && left > 0 {
            let Some(function) = self.queue.pop_front() else { break };
            self.queued[function] = false;
            alive = self.update(function, upper);
            left -= 1;
        }
        while let Some(function) = self.queue.pop_front() {
            self.queued[function] = false;
        }
        alive
    }

    /// One update, see above; `false` if nothing below `upper` is left.
    fn update(&mut self, function: usize, upper: f64) -> bool {
        let f = &self.costs.functions[function];
        let first = self.costs.model.n_categories() + f.start;
        self.scratch.complete(f, &self.values, first);
        let least = self.scratch.completion.iter().copied().fold(f64::INFINITY, f64::min);
        self.constant += least;
        if self.constant >= upper {
            return false;
        }
        // What is left of μ, in place of what was held; ∞ for what is out.
        let n_open = f.places.iter().filter(|place| self.scratch.is_open(place.messages.clone())).count();
        let share = 1.0 / n_open.max(1) as f64;
        for (index, place) in f.places.iter().enumerate() {
            let (mut noticed, mut possible) = (false, false);
            for message in place.messages.clone() {
                let held = self.scratch.held[message];
                if held == f64::INFINITY {
                    continue;
                }
                let group = f.groups[message];
                let left = held - self.scratch.least[group] + self.scratch.completion[group] - least;
                let category = f.categories[message];
                let before = self.values[category];
                if self.constant + left >= upper {
                    self.set(category, f64::INFINITY);
                    noticed = true;
                    continue;
                }
                possible = true;
                let now = left.max(0.0) * share;
                noticed |= (now - before).abs() > NOTICEABLE;
                self.set(category, now);
                let taken = if index == 0 { least } else { 0.0 };
                self.set(first + message, held - now - taken);
            }
            if !possible {
                return false;
            }
            if noticed {
                for &other in &self.costs.of_label[place.label] {
                    if other != function {
                        self.enqueue(other);
                    }
                }
            }
        }
        true
    }
}

impl Scratch {
    /// Whether a label has several categories left.
    fn is_open(&self, messages: std::ops::Range<usize>) -> bool {
        self.held[messages].iter().filter(|held| **held < f64::INFINITY).count() > 1
    }

    /// (2) for every group of a function's labels.
    fn complete(&mut self, f: &CostFunction, values: &[f64], first: usize) {
        let n_groups = f.n_groups();
        self.held.clear();
        self.least.clear();
        self.least.resize(n_groups, f64::INFINITY);
        for (message, &category) in f.categories.iter().enumerate() {
            let held = values[first + message] + values[category];
            self.held.push(held);
            let least = &mut self.least[f.groups[message]];
            *least = if held < *least { held } else { *least };
        }
        self.completion.clear();
        self.completion.resize(n_groups, f64::INFINITY);
        match &f.form {
            Form::Table(table) => self.complete_table(f, table),
            Form::Chain(chain) => self.complete_chain(f, chain),
        }
    }

    fn complete_table(&mut self, f: &CostFunction, table: &[f64]) {
        // Σ of what is held, for every combination of groups, the last place fastest.
        let (sums, more) = (&mut self.sums, &mut self.more_sums);
        sums.clear();
        sums.push(0.0);
        for place in &f.places {
            more.clear();
            for &sum in sums.iter() {
                more.extend(self.least[place.groups.clone()].iter().map(|least| sum + least));
            }
            std::mem::swap(sums, more);
        }
        for (sum, cost) in sums.iter_mut().zip(table) {
            *sum += cost;
        }
        // Place by place from the last: its groups' minima, then the minimum over it.
        for place in f.places.iter().rev() {
            let n = place.groups.len();
            let completion = &mut self.completion[place.groups.clone()];
            more.clear();
            for row in sums.chunks_exact(n) {
                let mut least = f64::INFINITY;
                for (slot, &sum) in completion.iter_mut().zip(row) {
                    *slot = if sum < *slot { sum } else { *slot };
                    least = if sum < least { sum } else { least };
                }
                more.push(least);
            }
            std::mem::swap(sums, more);
        }
    }

    fn complete_chain(&mut self, f: &CostFunction, chain: &Chain) {
        // The cheapest way to every state, forward level by level.
        let (before, after) = (&mut self.sums, &mut self.more_sums);
        before.clear();
        before.push(0.0);
        let mut start = 0;
        let width = |level: usize| chain.levels.get(level).map_or(chain.last.len(), |level| level.n_states);
        for (level, place) in f.places.iter().enumerate() {
            let Step { n_groups, next } = Step::of(chain, level);
            let end = before.len();
            before.resize(end + width(level + 1), f64::INFINITY);
            for state in 0..end - start {
                for group in 0..n_groups {
                    let sum = before[start + state] + self.least[place.groups.start + group];
                    let slot = &mut before[end + next[state * n_groups + group]];
                    *slot = if sum < *slot { sum } else { *slot };
                }
            }
            start = end;
        }
        // And from every state to the end, backward.
        after.clear();
        after.extend_from_slice(&chain.last);
        for (level, place) in f.places.iter().enumerate().rev() {
            let Step { n_groups, next } = Step::of(chain, level);
            start -= width(level);
            let mut onward = vec![f64::INFINITY; width(level)];
            for state in 0..width(level) {
                for group in 0..n_groups {
                    let rest = self.least[place.groups.start + group] + after[next[state * n_groups + group]];
                    let slot = &mut self.completion[place.groups.start + group];
                    *slot = slot.min(before[start + state] + rest);
                    onward[state] = onward[state].min(rest);
                }
            }
            *after = onward;
        }
    }
}

/// One level of a chain.
struct Step<'a> {
    n_groups: usize,
    next: &'a [usize],
}

impl<'a> Step<'a> {
    fn of(chain: &'a Chain, level: usize) -> Self {
        let level = &chain.levels[level];
        Self { n_groups: level.n_groups, next: &level.next }
    }
}
