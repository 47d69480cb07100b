//! Local search: changes one label at a time while the cost decreases.

use super::budget::Budget;
use super::cost::{Chain, CostFunction, Costs, Form, Silence};
use crate::outcome::Tally;

/// Number of infinite costs (violated hard rules), and the sum of the finite ones. Compared in this order.
type Cost = (usize, f64);

/// Changes one label at a time while this lowers the cost and the budget lasts. Returns the final cost.
///
/// `beliefs` holds the costs of all categories.
pub(super) fn descend(costs: &Costs, beliefs: &[f64], assignment: &mut [usize], budget: &mut Budget) -> f64 {
    let mut descent = Descent::new(costs, beliefs, assignment, budget);
    let mut label = 0;
    let mut settled = 0;
    while settled < descent.assignment.len() && !descent.budget.is_spent() {
        let stale = std::mem::take(&mut descent.is_stale[label]);
        settled = if stale && descent.improve(label) { 0 } else { settled + 1 };
        label = (label + 1) % descent.assignment.len();
    }
    budget.spend(costs.total_price());
    costs.total(beliefs, assignment)
}

/// Offers all assignments that differ in one label from a possible assignment.
pub(super) fn neighbors(
    costs: &Costs,
    beliefs: &[f64],
    assignment: &mut [usize],
    budget: &mut Budget,
    mut offer: impl FnMut(f64, &[usize]),
) {
    let total = costs.total(beliefs, assignment);
    budget.spend(costs.total_price());
    if total == f64::INFINITY {
        return;
    }
    let mut descent = Descent::new(costs, beliefs, assignment, budget);
    for label in 0..descent.assignment.len() {
        if descent.budget.is_spent() {
            return;
        }
        descent.look_around(label);
        let present = descent.assignment[label];
        let here = descent.around[present].1;
        for category in (0..descent.around.len()).filter(|&other| other != present) {
            let (n_infinite, there) = descent.around[category];
            if n_infinite == 0 {
                descent.assignment[label] = category;
                offer(total - here + there, descent.assignment);
            }
        }
        descent.assignment[label] = present;
    }
}

/// State of the local search.
struct Descent<'a> {
    costs: &'a Costs,
    beliefs: &'a [f64],
    assignment: &'a mut [usize],
    budget: &'a mut Budget,
    /// The position of the assignment in every function.
    places: Vec<Position<'a>>,
    /// Labels whose best category may have changed.
    is_stale: Vec<bool>,
    /// For each category of the current label, the cost of the label and its functions.
    around: Vec<Cost>,
}

/// The position of an assignment in a function.
enum Position<'a> {
    /// An entry of the table.
    Table(&'a [f64], usize),
    /// The product Q of a rank-one rule.
    Product(&'a Silence, Tally),
    Chain(Walk<'a>),
}

impl<'a> Descent<'a> {
    fn new(
        costs: &'a Costs,
        beliefs: &'a [f64],
        assignment: &'a mut [usize],
        budget: &'a mut Budget,
    ) -> Self {
        let position = |f: &'a CostFunction| match &f.form {
            Form::Table(table) => Position::Table(table, f.entry(assignment)),
            Form::Chain(Chain { silence: Some(silence), .. }) => {
                let mut tally = Tally::default();
                (0..f.places.len()).for_each(|place| tally.add(silence.q[f.group(place, assignment)]));
                Position::Product(silence, tally)
            }
            Form::Chain(chain) => Position::Chain(Walk::new(chain)),
        };
        let places = costs.functions.iter().map(position).collect();
        budget.spend(2 * costs.n_messages as u64);
        let is_stale = vec![true; assignment.len()];
        Self { costs, beliefs, assignment, budget, places, is_stale, around: Vec::new() }
    }

    /// Gives a label its cheapest category. Returns `false` if the label already has it.
    fn improve(&mut self, label: usize) -> bool {
        /// Minimum gain of a change. Smaller gains may be rounding errors, and the search might never end.
        const GAIN: f64 = 1e-9;
        self.look_around(label);
        let present = self.assignment[label];
        let mut best = present;
        for (category, cost) in self.around.iter().enumerate() {
            if (cost.0, cost.1 + GAIN) < self.around[best] {
                best = category;
            }
        }
        if best != present {
            self.change(label, best);
        }
        best != present
    }

    fn look_around(&mut self, label: usize) {
        let present = self.assignment[label];
        let around = &mut self.around;
        around.clear();
        around.extend(self.beliefs[self.costs.categories(label)].iter().map(|&cost| add((0, 0.0), cost)));
        let n_functions = self.costs.of_label[label].len();
        self.budget.spend(((1 + n_functions) * around.len()) as u64 + 10);
        for &(function, place) in &self.costs.of_label[label] {
            let f = &self.costs.functions[function];
            match &mut self.places[function] {
                Position::Table(table, entry) => {
                    let entries = f.entries(*entry, place, present);
                    around.iter_mut().zip(entries).for_each(|(sum, entry)| *sum = add(*sum, table[entry]));
                }
                Position::Product(silence, tally) => {
                    let mut others = *tally;
                    others.remove(silence.q[f.group(place, self.assignment)]);
                    for (sum, about) in around.iter_mut().zip(&f.messages[f.places[place].messages.clone()]) {
                        let mut all = others;
                        all.add(silence.q[about.group]);
                        let ([silent, fired], [if_silent, if_fired]) = (all.outcome(), silence.weights);
                        *sum = add(*sum, -(if_silent * silent + if_fired * fired).ln());
                    }
                }
                Position::Chain(walk) => {
                    self.budget.spend(walk.follow(f, place, self.assignment));
                    for (sum, about) in around.iter_mut().zip(&f.messages[f.places[place].messages.clone()]) {
                        *sum = add(*sum, walk.cost(place, about.group - f.places[place].groups.start));
                    }
                }
            }
        }
    }

    fn change(&mut self, label: usize, category: usize) {
        let present = std::mem::replace(&mut self.assignment[label], category);
        for &(function, place) in &self.costs.of_label[label] {
            let f = &self.costs.functions[function];
            match &mut self.places[function] {
                Position::Table(_, entry) => {
                    let mut entries = f.entries(*entry, place, present);
                    *entry = entries.nth(category).expect("an entry for every category");
                }
                Position::Product(silence, tally) => {
                    let group = |category: usize| f.messages[f.places[place].messages.start + category].group;
                    tally.remove(silence.q[group(present)]);
                    tally.add(silence.q[group(category)]);
                }
                Position::Chain(walk) => walk.change(place),
            }
            f.places.iter().for_each(|place| self.is_stale[place.label] = true);
            self.budget.spend(f.places.len() as u64);
        }
    }
}

/// The states of an assignment in a chain.
///
/// Labels are mostly visited in the order of the levels. So the states before and after a level are cached until the
/// assignment changes there.
struct Walk<'a> {
    chain: &'a Chain,
    /// The state before each level, up to the last level computed.
    before: Vec<usize>,
    /// For each state of a level, the final cost if all later labels keep their categories. The last level comes
    /// first.
    behind: Vec<Vec<f64>>,
}

impl<'a> Walk<'a> {
    fn new(chain: &'a Chain) -> Self {
        Self { chain, before: vec![0], behind: vec![chain.last.clone()] }
    }

    /// Computes the states before a place and the costs after it. Returns the work.
    fn follow(&mut self, f: &CostFunction, place: usize, assignment: &[usize]) -> u64 {
        let mut work = 0;
        let n_levels = self.chain.levels.len();
        let choice = |at: usize| f.group(at, assignment) - f.places[at].groups.start;
        while self.before.len() <= place {
            let at = self.before.len() - 1;
            let level = &self.chain.levels[at];
            self.before.push(level.next[self.before[at] * level.n_groups + choice(at)] as usize);
            work += 1;
        }
        // The levels from `place + 1` on, and the final costs.
        while self.behind.len() < n_levels - place {
            let at = n_levels - self.behind.len();
            let (level, choice) = (&self.chain.levels[at], choice(at));
            let after = &self.behind[self.behind.len() - 1];
            let from = |state: usize| after[level.next[state * level.n_groups + choice] as usize];
            self.behind.push((0..level.n_states).map(from).collect());
            work += level.n_states as u64;
        }
        work
    }

    /// The cost with another choice at a place, after `follow`.
    fn cost(&self, place: usize, choice: usize) -> f64 {
        let level = &self.chain.levels[place];
        let after = level.next[self.before[place] * level.n_groups + choice] as usize;
        self.behind[self.chain.levels.len() - 1 - place][after]
    }

    /// Invalidates everything that depends on the choice at a place.
    fn change(&mut self, place: usize) {
        self.before.truncate(place + 1);
        self.behind.truncate(self.chain.levels.len() - place);
    }
}

fn add(sum: Cost, cost: f64) -> Cost {
    if cost == f64::INFINITY { (sum.0 + 1, sum.1) } else { (sum.0, sum.1 + cost) }
}
