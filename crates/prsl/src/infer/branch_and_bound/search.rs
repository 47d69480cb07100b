//! Depth-first branch and bound, one independent part of the model at a time.

use std::collections::{BTreeMap, BinaryHeap, HashSet};
use std::rc::Rc;

use super::bound::{Bound, Mark};
use super::local::{descend, neighbors};
use crate::infer::ordered::Ordered;
use crate::infer::possible::Possible;

/// Costs this close (relative to their size above 1) are the same as far as rounding can tell.
const SAME: f64 = 1e-11;
/// The bound of the whole model is tightened until a round gains less than this.
const GAIN: f64 = 0.1;
/// Updates of a function in one round, on average.
const ROUND: usize = 3;
const MAX_ROUNDS: usize = 50;

/// The cheapest assignments found, cheapest first.
pub(super) struct Found {
    pub(super) assignments: Vec<(f64, Vec<usize>)>,
    /// Every assignment that is not listed costs at least this, or at least as much as the last of a full list.
    pub(super) others: f64,
}

impl Found {
    /// Everything that is possible is listed, or as much as was asked for.
    fn complete(best: Best) -> Self {
        Self { assignments: best.into_list(), others: f64::INFINITY }
    }
}

/// Whoever is asked for an assignment to start from where the bound alone does not settle the matter.
pub(super) trait Guess {
    /// One that is likely to be cheap.
    fn likely(&self, bound: &mut Bound<'_>) -> Option<Vec<usize>>;

    /// Any that is possible.
    fn possible(&self, bound: &mut Bound<'_>) -> Possible;
}

/// The `n` cheapest assignments of some labels.
struct Best {
    n: usize,
    /// By cost; of equal ones the first that was offered comes first.
    list: BTreeMap<(Ordered, usize), Rc<[usize]>>,
    known: HashSet<Rc<[usize]>>,
    n_offers: usize,
    /// Nothing from here on is of interest anyway.
    limit: f64,
}

impl Best {
    fn new(n: usize, limit: f64) -> Self {
        Self { n, list: BTreeMap::new(), known: HashSet::new(), n_offers: 0, limit }
    }

    /// What an assignment must cost less than to be of interest.
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

/// The `n` cheapest assignments, none if none is possible. The search keeps at most `trail` values that it may go back to.
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
    // What is better than the best before, and that.
    let others = sums.others;
    for (cost, assignment) in sums.assignments(decided) {
        best.offer(cost, &assignment);
    }
    (Found { assignments: best.into_list(), others }, bound)
}

/// Goes downhill from an assignment and tightens the bound with what it costs; `false` if nothing better can be left.
fn start_from(mut assignment: Vec<usize>, bound: &mut Bound<'_>, best: &mut Best) -> bool {
    let Bound { costs, beliefs, budget, .. } = bound;
    let cost = descend(costs, beliefs, &mut assignment, budget);
    best.offer(cost, &assignment);
    tighten(bound, best)
}

/// The cheapest sums of what was found for one part of the model after the other.
struct Sums {
    n: usize,
    /// The cheapest sums so far: the cost, which of the sums before, and which assignment of the last part.
    sums: Vec<(f64, usize, usize)>,
    /// Every sum that is not listed is at least this.
    others: f64,
    parts: Vec<Summed>,
}

/// A part of the model that is in the sums.
struct Summed {
    labels: Vec<usize>,
    /// What was found for the part: costs, and categories of its labels.
    list: Vec<(f64, Vec<usize>)>,
    /// The sums before the part: which of the sums before that, and which assignment of the part before.
    before: Vec<(usize, usize)>,
}

impl Sums {
    fn new(n: usize, cost: f64) -> Self {
        Self { n, sums: vec![(cost, 0, 0)], others: f64::INFINITY, parts: Vec::new() }
    }

    /// Combines the sums so far with what was found for more labels, cheapest first.
    ///
    /// A sum is only looked at when one that is no dearer, before it in one of the two lists, has been taken: so it
    /// takes no more than a few steps for each of the `n` sums.
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

    /// The assignments behind the sums; labels outside of all parts are as in `decided`.
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

/// Raises the bound of the whole model as far as it goes easily, and looks for good assignments on the way. `false` if
/// nothing better than these can be left.
fn tighten(bound: &mut Bound<'_>, best: &mut Best) -> bool {
    let costs = bound.costs;
    let n_functions = costs.functions.len();
    let mut candidate = vec![0; costs.model.labels().len()];
    let mut tried = Vec::new();
    for round in 0..MAX_ROUNDS {
        let before = bound.constant;
        (0..n_functions).for_each(|function| bound.enqueue(function));
        // Every function is looked at once, whatever the budget.
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
                // So that there are `n` of them to begin with.
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

/// The search in one part of the model after the other. Costs are counted from the bound of the whole model.
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
    /// Work of a node beside the updates.
    price: u64,
}

/// A decision: the label takes the category, and after that it does not.
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

    /// Goes on with another part.
    fn enter(&mut self, part: Part, best: Best) {
        let costs = self.bound.costs;
        let of_label = |&label: &usize| (costs.n_categories(label) + costs.of_label[label].len()) as u64;
        let of_function = |&function: &usize| 4 + costs.functions[function].price;
        self.price = 100 + part.labels.iter().map(of_label).sum::<u64>();
        self.price += part.functions.iter().map(of_function).sum::<u64>();
        self.start = self.bound.mark();
        (self.labels, self.functions, self.best) = (part.labels, part.functions, best);
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

    /// Searches until nothing is left or the budget is spent; a lower bound on what was not looked at.
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

    /// What a label's functions cost beyond the bound; a broken hard rule counts like many costs.
    fn score(&self, label: usize) -> f64 {
        const BROKEN: f64 = 1e3;
        self.bound.costs.of_label[label].iter().map(|&(function, _)| self.slack[function].min(BROKEN)).sum()
    }
}
