//! Depth-first branch and bound. Independent parts of the model are searched one after the other.

use std::collections::{BTreeMap, BinaryHeap, HashSet};
use std::rc::Rc;

use super::bound::{Bound, Mark};
use super::local::{descend, neighbors};
use crate::infer::ordered::Ordered;
use crate::logic::Possible;

/// Relative difference (absolute below 1) up to which two costs are equal. It is larger than rounding errors.
const SAME: f64 = 1e-11;
/// The bound of the whole model is tightened until a round raises it by less than this.
const GAIN: f64 = 0.1;
/// Average number of updates per function in one round.
const ROUND: usize = 3;
/// Maximum number of rounds.
const MAX_ROUNDS: usize = 50;

/// The cheapest assignments found, cheapest first.
pub(super) struct Found {
    pub(super) assignments: Vec<(f64, Vec<usize>)>,
    /// Lower bound on the cost of every assignment not in the list. A full list may also exclude assignments that
    /// cost at least as much as its last one.
    pub(super) others: f64,
}

impl Found {
    /// A complete result: the list has all possible assignments, or the requested number.
    fn complete(best: Best) -> Self {
        Self { assignments: best.into_list(), others: f64::INFINITY }
    }
}

/// Provides first solutions if the bound alone does not prove optimality.
pub(super) trait Guess {
    /// An assignment that is probably cheap.
    fn likely(&self, bound: &mut Bound<'_>) -> Option<Vec<usize>>;

    /// Any possible assignment.
    fn possible(&self, bound: &mut Bound<'_>) -> Possible;
}

/// The `n` cheapest assignments of some labels.
struct Best {
    n: usize,
    /// Ordered by cost; ties in the order of the offers.
    list: BTreeMap<(Ordered, usize), Rc<[usize]>>,
    known: HashSet<Rc<[usize]>>,
    n_offers: usize,
    /// Assignments of this cost or more are ignored.
    limit: f64,
}

impl Best {
    fn new(n: usize, limit: f64) -> Self {
        Self { n, list: BTreeMap::new(), known: HashSet::new(), n_offers: 0, limit }
    }

    /// The cost below which an assignment enters the list.
    fn upper(&self) -> f64 {
        match self.list.last_key_value() {
            Some(((Ordered(cost), _), _)) if self.list.len() == self.n => {
                self.limit.min(cost - SAME * cost.abs().max(1.0))
            }
            _ => self.limit,
        }
    }

    fn offer(&mut self, cost: f64, assignment: &[usize]) {
        if cost < self.upper() && !self.known.contains(assignment) {
            let assignment: Rc<[usize]> = assignment.into();
            self.known.insert(Rc::clone(&assignment));
            self.list.insert((Ordered(cost), self.n_offers), assignment);
            self.n_offers += 1;
            if self.list.len() > self.n
                && let Some((_, dropped)) = self.list.pop_last()
            {
                self.known.remove(&dropped);
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    fn first(&self) -> Option<&[usize]> {
        self.list.first_key_value().map(|(_, assignment)| &assignment[..])
    }

    fn into_list(self) -> Vec<(f64, Vec<usize>)> {
        self.list.into_iter().map(|((Ordered(cost), _), assignment)| (cost, assignment.to_vec())).collect()
    }
}

/// The `n` cheapest assignments; none if none is possible. The trail holds at most `trail` values.
pub(super) fn cheapest<'a>(
    mut bound: Bound<'a>,
    n: usize,
    trail: usize,
    guess: &impl Guess,
) -> (Found, Bound<'a>) {
    let mut best = Best::new(n, f64::INFINITY);
    let mut open = tighten(&mut bound, &mut best);
    if open && let Some(assignment) = guess.likely(&mut bound) {
        open = start_from(assignment, &mut bound, &mut best);
    }
    if open && best.is_empty() {
        match guess.possible(&mut bound) {
            Possible::Yes(assignment) => open = start_from(assignment, &mut bound, &mut best),
            Possible::No(_) => return (Found::complete(best), bound),
            Possible::Unknown => {}
        }
    }
    if !open {
        return (Found::complete(best), bound);
    }
    bound.budget.start_search();
    let (parts, rest) = parts(&bound);
    if rest == f64::INFINITY {
        return (Found::complete(best), bound);
    }
    bound.start_recording(trail);
    let decided = fixed(&bound);
    let mut sums = Sums::new(n, bound.constant + rest);
    let start: Option<Vec<usize>> = best.first().map(<[usize]>::to_vec);
    let mut search = Search::new(&mut bound, &decided, Best::new(n, f64::INFINITY));
    for part in parts {
        search.enter(part, Best::new(n, best.upper() - search.bound.constant - rest));
        if let Some(start) = &start {
            search.offer(start);
        }
        let others = search.run();
        let list = std::mem::replace(&mut search.best, Best::new(n, f64::INFINITY)).into_list();
        sums.add(std::mem::take(&mut search.labels), list, others);
    }
    // The combined assignments improve the list of first solutions.
    let others = sums.others;
    for (cost, assignment) in sums.assignments(decided) {
        best.offer(cost, &assignment);
    }
    (Found { assignments: best.into_list(), others }, bound)
}

/// Runs a local search from an assignment, and tightens the bound with its cost. Returns `false` if no better
/// assignment can exist.
fn start_from(mut assignment: Vec<usize>, bound: &mut Bound<'_>, best: &mut Best) -> bool {
    let Bound { costs, beliefs, budget, .. } = bound;
    let cost = descend(costs, beliefs, &mut assignment, budget);
    best.offer(cost, &assignment);
    tighten(bound, best)
}

/// The cheapest sums over independent parts of the model. Parts are added one by one.
struct Sums {
    n: usize,
    /// The cheapest sums so far: cost, index of the previous sum, and index of the last part's assignment.
    sums: Vec<(f64, usize, usize)>,
    /// Lower bound on all sums not in the list.
    others: f64,
    parts: Vec<Summed>,
}

/// A part of the model that the sums contain.
struct Summed {
    labels: Vec<usize>,
    /// Costs of the part's assignments, and the categories of its labels.
    list: Vec<(f64, Vec<usize>)>,
    /// The sums before this part was added: index of the previous sum, and index of the previous part's assignment.
    before: Vec<(usize, usize)>,
}

impl Sums {
    fn new(n: usize, cost: f64) -> Self {
        Self { n, sums: vec![(cost, 0, 0)], others: f64::INFINITY, parts: Vec::new() }
    }

    /// Combines the sums so far with the assignments of another part, cheapest first.
    ///
    /// A pair enters the heap only after its predecessor in one of the two lists was taken, which costs no more. So
    /// each of the `n` sums takes a constant number of heap operations.
    fn add(&mut self, labels: Vec<usize>, list: Vec<(f64, Vec<usize>)>, others: f64) {
        let cheapest = |first: Option<f64>, others: f64| first.unwrap_or(f64::INFINITY).min(others);
        let mine = cheapest(self.sums.first().map(|sum| sum.0), self.others);
        let theirs = cheapest(list.first().map(|one| one.0), others);
        self.others = (self.others + theirs).min(others + mine);
        let cost = |sum: usize, one: usize| Some(self.sums.get(sum)?.0 + list.get(one)?.0);
        let mut heap = BinaryHeap::new();
        let look = |heap: &mut BinaryHeap<_>, sum, one| {
            heap.extend(cost(sum, one).map(|cost| std::cmp::Reverse((Ordered(cost), sum, one))));
        };
        look(&mut heap, 0, 0);
        let mut combined = Vec::new();
        while combined.len() < self.n
            && let Some(std::cmp::Reverse((Ordered(cost), sum, one))) = heap.pop()
        {
            combined.push((cost, sum, one));
            look(&mut heap, sum, one + 1);
            if one == 0 {
                look(&mut heap, sum + 1, 0);
            }
        }
        let before = std::mem::replace(&mut self.sums, combined);
        let before = before.into_iter().map(|(_, sum, one)| (sum, one)).collect();
        self.parts.push(Summed { labels, list, before });
    }

    /// The assignments of the sums. Labels outside all parts have their category in `decided`.
    fn assignments(self, decided: Vec<usize>) -> impl Iterator<Item = (f64, Vec<usize>)> {
        self.sums.into_iter().map(move |(cost, mut sum, mut one)| {
            let mut assignment = decided.clone();
            for Summed { labels, list, before } in self.parts.iter().rev() {
                labels.iter().zip(&list[one].1).for_each(|(&label, &category)| assignment[label] = category);
                (sum, one) = before[sum];
            }
            (cost, assignment)
        })
    }
}

/// Raises the bound of the whole model while this is fast, and runs local searches from its candidates. Returns
/// `false` if no better assignment can exist.
fn tighten(bound: &mut Bound<'_>, best: &mut Best) -> bool {
    let costs = bound.costs;
    let n_functions = costs.functions.len();
    let mut candidate = vec![0; costs.model.labels().len()];
    let mut tried = Vec::new();
    for round in 0..MAX_ROUNDS {
        let before = bound.constant;
        (0..n_functions).for_each(|function| bound.enqueue(function));
        // Every function is updated once, whatever the budget.
        let least = if round == 0 { n_functions } else { 0 };
        if !bound.propagate(best.upper(), least..ROUND * n_functions) {
            return false;
        }
        bound.candidate(&mut candidate);
        if candidate != tried {
            tried.clone_from(&candidate);
            let Bound { beliefs, budget, .. } = bound;
            let cost = descend(costs, beliefs, &mut candidate, budget);
            best.offer(cost, &candidate);
            if best.n > 1 {
                // Provides up to `n` first solutions.
                neighbors(costs, beliefs, &mut candidate, budget, |cost, other| best.offer(cost, other));
            }
        }
        if bound.constant >= best.upper() {
            return false;
        }
        if bound.constant - before < GAIN || bound.budget.is_spent() {
            break;
        }
    }
    true
}

/// The categories of the decided labels, and arbitrary ones for the others.
fn fixed(bound: &Bound<'_>) -> Vec<usize> {
    let mut assignment = vec![0; bound.costs.model.labels().len()];
    bound.candidate(&mut assignment);
    assignment
}

/// The independent parts of the undecided labels, with their functions. Also returns the cost beyond the bound of
/// functions whose labels are all decided.
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

/// Undecided labels that functions connect.
struct Part {
    labels: Vec<usize>,
    functions: Vec<usize>,
}

/// The search in one part after the other. Costs are relative to the bound of the whole model.
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
    /// Work of a node besides its updates.
    price: u64,
}

/// A decision: first the label has the category, then the category is excluded.
struct Branch {
    label: usize,
    category: usize,
    mark: Mark,
}

impl<'a, 'b> Search<'a, 'b> {
    fn new(bound: &'a mut Bound<'b>, decided: &[usize], best: Best) -> Self {
        let slack = vec![0.0; bound.costs.functions.len()];
        let (start, candidate) = (bound.mark(), decided.to_vec());
        let (labels, functions) = (Vec::new(), Vec::new());
        Self { bound, start, labels, functions, best, candidate, slack, price: 0 }
    }

    /// Starts the search in another part.
    fn enter(&mut self, part: Part, best: Best) {
        let costs = self.bound.costs;
        let of_label = |&label: &usize| (costs.n_categories(label) + costs.of_label[label].len()) as u64;
        let of_function = |&function: &usize| 4 + costs.functions[function].price;
        self.price = 100 + part.labels.iter().map(of_label).sum::<u64>();
        self.price += part.functions.iter().map(of_function).sum::<u64>();
        self.start = self.bound.mark();
        (self.labels, self.functions, self.best) = (part.labels, part.functions, best);
    }

    /// Offers the categories of this part's labels in a complete assignment.
    fn offer(&mut self, assignment: &[usize]) {
        let mine: Vec<usize> = self.labels.iter().map(|&label| assignment[label]).collect();
        self.labels.iter().zip(&mine).for_each(|(&label, &category)| self.candidate[label] = category);
        let labels =
            self.labels.iter().zip(&mine).map(|(&label, &category)| self.bound.unary(label)[category]);
        let functions = self.functions.iter().map(|&function| self.bound.slack(function, &self.candidate));
        let cost = labels.chain(functions).sum();
        self.best.offer(cost, &mine);
    }

    /// The cost below which an assignment enters the list, on the scale of the bound.
    fn upper(&self) -> f64 {
        self.start.constant + self.best.upper()
    }

    /// Searches until the part is complete or the budget is spent. Returns a lower bound on unexplored assignments.
    fn run(&mut self) -> f64 {
        let effort = 4 * self.functions.len() + 16;
        let mut open: Vec<Branch> = Vec::new();
        self.functions.iter().for_each(|&function| self.bound.enqueue(function));
        let others = loop {
            let alive = self.bound.propagate(self.upper(), 0..effort);
            if alive && self.bound.budget.is_spent() {
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

    /// Backtracks to the last decision with an open alternative and excludes its category. Returns `false` if there
    /// is none.
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

    /// Builds a candidate from each label's cheapest category, and chooses where to branch: at the label whose
    /// functions exceed the bound most. Returns `None` if no better assignment is left.
    fn choose(&mut self) -> Option<(usize, usize)> {
        self.bound.budget.spend(self.price);
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

    /// The cost beyond the bound of a label's functions. A violated hard rule counts as a large finite cost.
    fn score(&self, label: usize) -> f64 {
        const BROKEN: f64 = 1e3;
        self.bound.costs.of_label[label].iter().map(|&(function, _)| self.slack[function].min(BROKEN)).sum()
    }
}
