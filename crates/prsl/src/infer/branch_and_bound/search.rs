//! Depth-first branch and bound, one independent part of the model at a time.

use std::time::Instant;

use super::bound::{Bound, Mark};
use super::cost::Costs;
use super::local::descend;

/// Costs this close (relative to their size above 1) are the same as far as rounding can tell.
const SAME: f64 = 1e-11;
/// The bound of the whole model is tightened until a round gains less than this.
const GAIN: f64 = 0.1;
/// Updates of a function in one round, on average.
const ROUND: usize = 3;
const MAX_ROUNDS: usize = 50;

/// How far a search may go.
pub(super) struct Budget {
    pub(super) nodes: u64,
    pub(super) deadline: Option<Instant>,
}

impl Budget {
    /// Takes one node; `false` if there is none left or time is up.
    fn take(&mut self) -> bool {
        // The clock is slow: it is looked at now and then.
        let late = self.nodes.is_multiple_of(16) && self.deadline.is_some_and(|end| Instant::now() >= end);
        self.nodes = if late { 0 } else { self.nodes };
        let taken = self.nodes > 0;
        self.nodes -= u64::from(taken);
        taken
    }
}

/// The cheapest assignments found, cheapest first.
pub(super) struct Found {
    pub(super) assignments: Vec<(f64, Vec<usize>)>,
    /// Every assignment that is not listed costs at least this, or at least as much as the last of a full list.
    pub(super) others: f64,
}

/// The `n` cheapest assignments of some labels.
struct Best {
    n: usize,
    list: Vec<(f64, Vec<usize>)>,
    /// Nothing from here on is of interest anyway.
    limit: f64,
}

impl Best {
    fn new(n: usize, limit: f64) -> Self {
        Self { n, list: Vec::new(), limit }
    }

    /// What an assignment must cost less than to be of interest.
    fn upper(&self) -> f64 {
        match self.list.get(self.n - 1) {
            Some((cost, _)) => self.limit.min(cost - SAME * cost.abs().max(1.0)),
            None => self.limit,
        }
    }

    fn offer(&mut self, cost: f64, assignment: &[usize]) {
        if cost < self.upper() && self.list.iter().all(|(_, other)| other != assignment) {
            let place = self.list.partition_point(|(other, _)| *other <= cost);
            self.list.insert(place, (cost, assignment.to_vec()));
            self.list.truncate(self.n);
        }
    }
}

/// The `n` cheapest assignments, none if none is possible.
///
/// `guess` is asked for an assignment to start from when the bound alone does not settle the matter.
pub(super) fn cheapest(
    mut bound: Bound<'_>,
    n: usize,
    guess: impl FnOnce() -> Option<Vec<usize>>,
    budget: &mut Budget,
) -> Found {
    let mut best = Best::new(n, f64::INFINITY);
    let mut open = tighten(&mut bound, &mut best);
    if open && let Some(mut assignment) = guess() {
        let cost = descend(bound.costs, &bound.beliefs, &mut assignment);
        best.offer(cost, &assignment);
        open = tighten(&mut bound, &mut best);
    }
    if !open {
        return Found { assignments: best.list, others: f64::INFINITY };
    }
    let (parts, rest) = parts(&bound);
    if rest == f64::INFINITY {
        return Found { assignments: best.list, others: f64::INFINITY };
    }
    let decided = (bound.constant + rest, fixed(&bound));
    let mut found = Found { assignments: vec![decided], others: f64::INFINITY };
    let start = best.list.first().map(|(_, assignment)| assignment.clone());
    for part in parts {
        let limit = best.upper() - bound.constant - rest;
        let mut search = Search::new(&mut bound, part, Best::new(n, limit));
        if let Some(start) = &start {
            search.offer(start);
        }
        let others = search.run(budget);
        found.add(&search.labels, &search.best.list, others, n);
    }
    // What is better than the best before, and that.
    for (cost, assignment) in std::mem::take(&mut found.assignments) {
        best.offer(cost, &assignment);
    }
    Found { assignments: best.list, ..found }
}

impl Found {
    /// Combines what was found so far with what was found for more labels.
    fn add(&mut self, labels: &[usize], list: &[(f64, Vec<usize>)], others: f64, n: usize) {
        let cheapest = |list: &[(f64, Vec<usize>)], others: f64| {
            list.first().map_or(f64::INFINITY, |(cost, _)| *cost).min(others)
        };
        let (mine, theirs) = (cheapest(&self.assignments, self.others), cheapest(list, others));
        self.others = (self.others + theirs).min(others + mine);
        let mut combined = Vec::with_capacity(self.assignments.len() * list.len());
        for (cost, assignment) in &self.assignments {
            for (more, categories) in list {
                let mut assignment = assignment.clone();
                labels.iter().zip(categories).for_each(|(&label, &category)| assignment[label] = category);
                combined.push((cost + more, assignment));
            }
        }
        combined.sort_by(|a, b| a.0.total_cmp(&b.0));
        combined.truncate(n);
        self.assignments = combined;
    }
}

/// Raises the bound of the whole model as far as it goes easily, and looks for good assignments on the way. `false` if
/// nothing better than these can be left.
fn tighten(bound: &mut Bound<'_>, best: &mut Best) -> bool {
    let costs = bound.costs;
    let mut candidate = vec![0; costs.model.labels().len()];
    let mut tried = Vec::new();
    for _ in 0..MAX_ROUNDS {
        let before = bound.constant;
        (0..costs.functions.len()).for_each(|function| bound.enqueue(function));
        if !bound.propagate(best.upper(), ROUND * costs.functions.len()) {
            return false;
        }
        bound.candidate(&mut candidate);
        if candidate != tried {
            tried.clone_from(&candidate);
            let cost = descend(costs, &bound.beliefs, &mut candidate);
            best.offer(cost, &candidate);
            if best.n > 1 {
                neighbors(costs, &bound.beliefs, &mut candidate, best);
            }
        }
        if bound.constant >= best.upper() {
            return false;
        }
        if bound.constant - before < GAIN {
            break;
        }
    }
    true
}

/// Offers all assignments that differ in one label: so that there are `n` of them to begin with.
fn neighbors(costs: &Costs, beliefs: &[f64], assignment: &mut [usize], best: &mut Best) {
    for label in 0..assignment.len() {
        let present = assignment[label];
        for category in (0..costs.n_categories(label)).filter(|&other| other != present) {
            assignment[label] = category;
            best.offer(costs.total(beliefs, assignment), assignment);
        }
        assignment[label] = present;
    }
}

/// The decided labels' categories; anything for the others.
fn fixed(bound: &Bound<'_>) -> Vec<usize> {
    let mut assignment = vec![0; bound.costs.model.labels().len()];
    bound.candidate(&mut assignment);
    assignment
}

/// The undecided labels in parts that no function ties together, with their functions, and what the functions of decided
/// labels alone cost beyond the bound.
fn parts(bound: &Bound<'_>) -> (Vec<Part>, f64) {
    let costs = bound.costs;
    let mut of_label = vec![None; costs.model.labels().len()];
    let mut parts: Vec<Part> = Vec::new();
    let mut taken = vec![false; costs.functions.len()];
    for label in (0..of_label.len()).filter(|&label| !bound.is_decided(label)) {
        if of_label[label].is_some() {
            continue;
        }
        let mut part = Part { labels: Vec::new(), functions: Vec::new() };
        let mut stack = vec![label];
        of_label[label] = Some(parts.len());
        while let Some(label) = stack.pop() {
            part.labels.push(label);
            for &(function, _) in &costs.of_label[label] {
                if std::mem::replace(&mut taken[function], true) {
                    continue;
                }
                part.functions.push(function);
                for place in &costs.functions[function].places {
                    if of_label[place.label].is_none() && !bound.is_decided(place.label) {
                        of_label[place.label] = Some(parts.len());
                        stack.push(place.label);
                    }
                }
            }
        }
        part.labels.sort_unstable();
        parts.push(part);
    }
    let decided = fixed(bound);
    let rest = (0..taken.len()).filter(|&function| !taken[function]);
    (parts, rest.map(|function| bound.slack(function, &decided)).sum())
}

/// Labels that functions tie together.
struct Part {
    labels: Vec<usize>,
    functions: Vec<usize>,
}

/// The search in one part of the model. Costs are counted from the bound of the whole model.
struct Search<'a, 'b> {
    bound: &'a mut Bound<'b>,
    start: Mark,
    labels: Vec<usize>,
    functions: Vec<usize>,
    best: Best,
    /// A category for every label of the model.
    candidate: Vec<usize>,
    /// θ of every function of the model for the candidate.
    slack: Vec<f64>,
}

/// A decision: the label takes the category, and after that it does not.
struct Branch {
    label: usize,
    category: usize,
    mark: Mark,
}

impl<'a, 'b> Search<'a, 'b> {
    fn new(bound: &'a mut Bound<'b>, part: Part, best: Best) -> Self {
        let candidate = fixed(bound);
        let slack = vec![0.0; bound.costs.functions.len()];
        let start = bound.start_recording();
        Self { bound, start, labels: part.labels, functions: part.functions, best, candidate, slack }
    }

    /// Offers this part's labels as an assignment of all labels has them.
    fn offer(&mut self, assignment: &[usize]) {
        let mine: Vec<usize> = self.labels.iter().map(|&label| assignment[label]).collect();
        self.labels.iter().zip(&mine).for_each(|(&label, &category)| self.candidate[label] = category);
        let labels =
            self.labels.iter().zip(&mine).map(|(&label, &category)| self.bound.unary(label)[category]);
        let functions = self.functions.iter().map(|&function| self.bound.slack(function, &self.candidate));
        let cost = labels.chain(functions).sum();
        self.best.offer(cost, &mine);
    }

    /// The cost below which assignments are of interest, as the bound counts.
    fn upper(&self) -> f64 {
        self.start.constant + self.best.upper()
    }

    /// Searches until nothing is left or the budget is used up; a lower bound on what was not looked at.
    fn run(&mut self, budget: &mut Budget) -> f64 {
        let effort = 4 * self.functions.len() + 16;
        let mut open: Vec<Branch> = Vec::new();
        self.functions.iter().for_each(|&function| self.bound.enqueue(function));
        let others = loop {
            let alive = self.bound.propagate(self.upper(), effort);
            if alive && !budget.take() {
                let left = open.iter().map(|branch| branch.mark.constant);
                break left.fold(self.bound.constant, f64::min) - self.start.constant;
            }
            let choice = if alive { self.choose() } else { None };
            if let Some((label, category)) = choice {
                open.push(Branch { label, category, mark: self.bound.mark() });
                self.bound.decide(label, category);
            } else if !self.go_back(&mut open) {
                break f64::INFINITY;
            }
        };
        self.bound.undo(self.start);
        others
    }

    /// To the last decision that leaves something to try: its category is out. `false` if there is none.
    fn go_back(&mut self, open: &mut Vec<Branch>) -> bool {
        while let Some(Branch { label, category, mark }) = open.pop() {
            self.bound.undo(mark);
            self.bound.exclude(label, category);
            if self.bound.constant < self.upper() {
                return true;
            }
        }
        false
    }

    /// Looks at the cheapest category of every label, and says where to branch: at the label whose functions cost
    /// most beyond the bound. `None` if nothing better than the best is left.
    fn choose(&mut self) -> Option<(usize, usize)> {
        for &label in &self.labels {
            self.candidate[label] = self.bound.cheapest(label);
        }
        let mut cost = self.bound.constant - self.start.constant;
        for &function in &self.functions {
            self.slack[function] = self.bound.slack(function, &self.candidate);
            cost += self.slack[function];
        }
        if cost < self.best.upper() {
            let mine: Vec<usize> = self.labels.iter().map(|&label| self.candidate[label]).collect();
            self.best.offer(cost, &mine);
            if self.bound.constant >= self.upper() {
                return None;
            }
        }
        let open = self.labels.iter().copied().filter(|&label| !self.bound.is_decided(label));
        let label = open.max_by(|&a, &b| self.score(a).total_cmp(&self.score(b)).then(b.cmp(&a)))?;
        Some((label, self.candidate[label]))
    }

    /// What a label's functions cost beyond the bound; a broken hard rule counts like many costs.
    fn score(&self, label: usize) -> f64 {
        const BROKEN: f64 = 1e3;
        self.bound.costs.of_label[label].iter().map(|&(function, _)| self.slack[function].min(BROKEN)).sum()
    }
}
