//! Local search: from an assignment downhill, one label at a time.

use super::cost::{CostFunction, Costs, Form};

/// How many costs are infinite, and the sum of the others: broken hard rules count first.
type Cost = (usize, f64);

/// Changes one label at a time as long as that makes the assignment cheaper; the cost at the end.
///
/// `beliefs` are the costs of all categories.
pub(super) fn descend(costs: &Costs, beliefs: &[f64], assignment: &mut [usize]) -> f64 {
    let mut descent = Descent::new(costs, beliefs, assignment);
    let mut label = 0;
    let mut settled = 0;
    while settled < descent.assignment.len() {
        let stale = std::mem::take(&mut descent.is_stale[label]);
        settled = if stale && descent.improve(label) { 0 } else { settled + 1 };
        label = (label + 1) % descent.assignment.len();
    }
    costs.total(beliefs, assignment)
}

/// An assignment on its way down.
struct Descent<'a> {
    costs: &'a Costs,
    beliefs: &'a [f64],
    assignment: &'a mut [usize],
    /// Where the assignment is found in the table of every function that has one.
    entries: Vec<usize>,
    /// Labels that may have reason to change.
    is_stale: Vec<bool>,
    /// What a label and its functions cost, by its category.
    around: Vec<Cost>,
}

impl<'a> Descent<'a> {
    fn new(costs: &'a Costs, beliefs: &'a [f64], assignment: &'a mut [usize]) -> Self {
        let entry = |f: &CostFunction| if f.is_table() { f.entry(assignment) } else { 0 };
        let entries = costs.functions.iter().map(entry).collect();
        let is_stale = vec![true; assignment.len()];
        Self { costs, beliefs, assignment, entries, is_stale, around: Vec::new() }
    }

    /// Gives a label its cheapest category; `false` if it has it.
    fn improve(&mut self, label: usize) -> bool {
        /// Smaller gains are rounding, for whose sake one could go on forever.
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
        self.around.clear();
        self.around
            .extend(self.beliefs[self.costs.categories(label)].iter().map(|&cost| add((0, 0.0), cost)));
        for &(function, place) in &self.costs.of_label[label] {
            let f = &self.costs.functions[function];
            match &f.form {
                Form::Table(table) => {
                    let entries = f.entries(self.entries[function], place, present);
                    self.around
                        .iter_mut()
                        .zip(entries)
                        .for_each(|(sum, entry)| *sum = add(*sum, table[entry]));
                }
                Form::Chain(_) => {
                    for (category, sum) in self.around.iter_mut().enumerate() {
                        self.assignment[label] = category;
                        *sum = add(*sum, self.costs.cost(function, self.assignment));
                    }
                    self.assignment[label] = present;
                }
            }
        }
    }

    fn change(&mut self, label: usize, category: usize) {
        let present = std::mem::replace(&mut self.assignment[label], category);
        for &(function, place) in &self.costs.of_label[label] {
            let f = &self.costs.functions[function];
            if f.is_table() {
                let mut entries = f.entries(self.entries[function], place, present);
                self.entries[function] = entries.nth(category).expect("an entry for every category");
            }
            f.places.iter().for_each(|place| self.is_stale[place.label] = true);
        }
    }
}

fn add(sum: Cost, cost: f64) -> Cost {
    if cost == f64::INFINITY { (sum.0 + 1, sum.1) } else { (sum.0, sum.1 + cost) }
}
