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

use std::collections::VecDeque;
use std::ops::Range;

use super::budget::Budget;
use super::cost::{Chain, CostFunction, Costs, Form};

/// Costs moved between labels and rules, and the lower bound that came out of it. All changes can be taken back.
pub(crate) struct Bound<'a> {
    pub(crate) costs: &'a Costs,
    /// −ln of every category's belief.
    pub(crate) beliefs: Vec<f64>,
    /// c of (1).
    pub(crate) constant: f64,
    /// What updates take is counted here.
    pub(crate) budget: Budget,
    /// u of every category, ∞ for those that are out, then the messages of all functions.
    values: Vec<f64>,
    /// How many categories each label has left.
    n_left: Vec<usize>,
    trail: Option<Trail>,
    agenda: Agenda,
    scratch: Scratch,
}

/// What was changed, and what it was before.
struct Trail {
    changes: Vec<Change>,
    values: Vec<f64>,
    /// The most values that are kept; beyond them the search gives up.
    limit: usize,
    /// Counts marks and returns to them: what was saved since the last one need not be saved again.
    period: u64,
    /// The period in which each label's costs and each function's messages were saved last.
    saved: Vec<u64>,
}

/// Some values that were changed.
struct Change {
    values: Range<usize>,
    /// The label whose costs they are, if they are no messages.
    label: Option<usize>,
}

/// Functions that may say more than they did.
struct Agenda {
    queue: VecDeque<usize>,
    queued: Vec<bool>,
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
    n_changes: usize,
    pub(crate) constant: f64,
}

/// A label's costs that change by less than this are not worth another look.
const NOTICEABLE: f64 = 5e-2;

impl<'a> Bound<'a> {
    /// The beliefs' costs; `None` if they exclude everything.
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

    /// Takes out all but the cheapest of the categories that no rule tells apart.
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

    /// Counts the categories that are left.
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

    /// Whether a label has one category left.
    pub(crate) fn is_decided(&self, label: usize) -> bool {
        self.n_left[label] == 1
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
        let own = &self.values[self.costs.messages(f)];
        let messages: f64 =
            f.places.iter().map(|place| own[place.messages.start + assignment[place.label]]).sum();
        self.costs.cost(function, assignment) + messages
    }

    /// From here on changes can be taken back, up to so many values of them.
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

    /// Where things stand.
    pub(crate) fn mark(&mut self) -> Mark {
        let trail = self.trail.as_mut().expect("changes are recorded before anything is marked");
        trail.period += 1;
        Mark { n_changes: trail.changes.len(), constant: self.constant }
    }

    /// Takes back everything since the mark.
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

    /// Leaves a label this category alone; its functions are to be looked at.
    pub(crate) fn decide(&mut self, label: usize, category: usize) {
        self.take_out(label, |other| other != category);
    }

    /// Takes a category out; the label's functions are to be looked at.
    pub(crate) fn exclude(&mut self, label: usize, category: usize) {
        self.take_out(label, |other| other == category);
    }

    /// Takes categories out, and moves what all others cost at least into the bound.
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

    /// Puts a function on the list of those to be updated.
    pub(crate) fn enqueue(&mut self, function: usize) {
        self.agenda.add(function);
    }

    /// Updates the functions on the list, and those that this gives reason to: as often as `times` allows, of which
    /// the first are done even if the budget is spent. `false` if nothing below `upper` is left.
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

    /// One update, see above; `false` if nothing below `upper` is left.
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
            // What is left of μ; too much of it, and the category is out.
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
    /// Remembers a label's costs.
    fn save_label(&mut self, costs: &Costs, values: &[f64], label: usize) {
        self.save(label, values, Change { values: costs.categories(label), label: Some(label) });
    }

    /// Remembers a function's messages.
    fn save_messages(&mut self, costs: &Costs, values: &[f64], function: usize) {
        let messages = costs.messages(&costs.functions[function]);
        self.save(costs.of_label.len() + function, values, Change { values: messages, label: None });
    }

    /// Remembers values unless it has since the last mark.
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

impl Scratch {
    /// (2) for every group of a function's labels.
    fn complete(&mut self, f: &CostFunction, unary: &[f64], messages: &[f64]) {
        let n_groups = f.n_groups();
        self.held.clear();
        self.held
            .extend(f.messages.iter().zip(messages).map(|(about, message)| message + unary[about.category]));
        self.least.clear();
        self.least.resize(n_groups, f64::INFINITY);
        for (about, &held) in f.messages.iter().zip(&self.held) {
            self.least[about.group] = lesser(held, self.least[about.group]);
        }
        self.completion.clear();
        self.completion.resize(n_groups, f64::INFINITY);
        match &f.form {
            Form::Table(table) if f.is_binary => match f.places.len() {
                1 => complete_binary::<1, 2>(&self.least, table, &mut self.completion),
                2 => complete_binary::<2, 4>(&self.least, table, &mut self.completion),
                3 => complete_binary::<3, 8>(&self.least, table, &mut self.completion),
                4 => complete_binary::<4, 16>(&self.least, table, &mut self.completion),
                5 => complete_binary::<5, 32>(&self.least, table, &mut self.completion),
                6 => complete_binary::<6, 64>(&self.least, table, &mut self.completion),
                _ => self.complete_table(f, table),
            },
            Form::Table(table) => self.complete_table(f, table),
            Form::Chain(chain) => self.complete_chain(f, chain),
        }
    }

    /// Turns the completions into what is to be added to what is held, so that it becomes what is left of μ: the
    /// smallest μ is taken, and returned.
    fn take_least(&mut self, f: &CostFunction) -> f64 {
        let smallest =
            self.completion[f.places[0].groups.clone()].iter().copied().fold(f64::INFINITY, lesser);
        for (completion, least) in self.completion.iter_mut().zip(&self.least) {
            *completion -= least + smallest;
        }
        smallest
    }

    fn complete_table(&mut self, f: &CostFunction, table: &[f64]) {
        // Σ of what is held, for every combination of groups, the last place fastest: from the last place on, and in
        // place, so that all loops run along memory.
        let sums = &mut self.sums;
        sums.clear();
        sums.resize(table.len(), 0.0);
        let mut size = 1;
        for place in f.places.iter().rev() {
            let held = &self.least[place.groups.clone()];
            let (first, others) = sums.split_at_mut(size);
            for (other, held) in others.chunks_exact_mut(size).zip(&held[1..]) {
                other.iter_mut().zip(&*first).for_each(|(sum, first)| *sum = first + held);
            }
            first.iter_mut().for_each(|sum| *sum += held[0]);
            size *= held.len();
        }
        sums.iter_mut().zip(table).for_each(|(sum, cost)| *sum += cost);
        // From the first place on: its groups' minima, then the minimum over it.
        for place in &f.places {
            size /= place.groups.len();
            let (first, others) = sums.split_at_mut(size);
            let completion = &mut self.completion[place.groups.clone()];
            completion[0] = least(first);
            for (completion, other) in completion[1..].iter_mut().zip(others.chunks_exact(size)) {
                *completion = least(other);
                first.iter_mut().zip(other).for_each(|(first, other)| *first = lesser(*first, *other));
            }
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
                    let slot = &mut before[end + next[state * n_groups + group] as usize];
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
                    let rest = self.least[place.groups.start + group]
                        + after[next[state * n_groups + group] as usize];
                    let slot = &mut self.completion[place.groups.start + group];
                    *slot = slot.min(before[start + state] + rest);
                    onward[state] = onward[state].min(rest);
                }
            }
            *after = onward;
        }
    }
}

/// [`Scratch::complete_table`] for places of two groups each, in registers: most rules name one category a label.
fn complete_binary<const PLACES: usize, const SIZE: usize>(
    held: &[f64],
    table: &[f64],
    completion: &mut [f64],
) {
    let table: &[f64; SIZE] = table.try_into().expect("two groups a place");
    let mut sums = [0.0; SIZE];
    for place in (0..PLACES).rev() {
        let size = 1 << (PLACES - 1 - place);
        for at in 0..size {
            sums[size + at] = sums[at] + held[2 * place + 1];
            sums[at] += held[2 * place];
        }
    }
    for at in 0..SIZE {
        sums[at] += table[at];
    }
    for place in 0..PLACES {
        let size = 1 << (PLACES - 1 - place);
        completion[2 * place] = least(&sums[..size]);
        completion[2 * place + 1] = least(&sums[size..2 * size]);
        for at in 0..size {
            sums[at] = lesser(sums[at], sums[size + at]);
        }
    }
}

/// The smaller of two; unlike [`f64::min`] a single instruction.
fn lesser(a: f64, b: f64) -> f64 {
    if a < b { a } else { b }
}

/// The smallest value, four at a time.
#[inline(always)]
fn least(values: &[f64]) -> f64 {
    let mut four = [f64::INFINITY; 4];
    let chunks = values.chunks_exact(4);
    let rest = chunks.remainder().iter().copied().fold(f64::INFINITY, lesser);
    for chunk in chunks {
        four.iter_mut().zip(chunk).for_each(|(least, value)| *least = lesser(*least, *value));
    }
    lesser(rest, lesser(lesser(four[0], four[2]), lesser(four[1], four[3])))
}

/// One level of a chain.
struct Step<'a> {
    n_groups: usize,
    next: &'a [u32],
}

impl<'a> Step<'a> {
    fn of(chain: &'a Chain, level: usize) -> Self {
        let level = &chain.levels[level];
        Self { n_groups: level.n_groups, next: &level.next }
    }
}
