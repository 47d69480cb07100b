//! Local search: from an assignment downhill, one label at a time.

use super::cost::Costs;
use crate::label::LabelId;

/// How many costs are infinite, and the sum of the others: broken hard rules count first.
type Cost = (usize, f64);

/// Changes one label at a time as long as that makes the assignment cheaper; the cost at the end.
pub(super) fn descend(costs: &Costs, row: &[f64], assignment: &mut [usize]) -> f64 {
    /// Smaller gains are rounding, for whose sake one could go on forever.
    const GAIN: f64 = 1e-9;
    let mut changed = true;
    while changed {
        changed = false;
        for label in 0..assignment.len() {
            let present = assignment[label];
            let (mut best, mut to) = (around(costs, row, assignment, label), present);
            for category in 0..costs.model.label(LabelId::new(label)).n_categories() {
                assignment[label] = category;
                let now = around(costs, row, assignment, label);
                if (now.0, now.1 + GAIN) < best {
                    (best, to) = (now, category);
                }
            }
            assignment[label] = to;
            changed |= to != present;
        }
    }
    costs.total(row, assignment)
}

/// What a label and its functions cost.
fn around(costs: &Costs, row: &[f64], assignment: &[usize], label: usize) -> Cost {
    let belief = -row[costs.model.block(LabelId::new(label)).start + assignment[label]].ln();
    let functions = costs.of_label[label].iter().map(|&function| costs.cost(function, assignment));
    functions.chain([belief]).fold((0, 0.0), |(broken, sum), cost| {
        if cost == f64::INFINITY { (broken + 1, sum) } else { (broken, sum + cost) }
    })
}
