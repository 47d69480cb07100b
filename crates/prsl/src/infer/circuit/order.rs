//! Static orders of the variables, from elimination orders of the constraint graph.

use super::problem::Problem;
use crate::infer::junction_tree::order::{Graph, Heuristic};

/// The rank of each variable: the one that a min-fill order eliminates last is branched on first, because it separates
/// the others. If there are very many constraints, or the cliques of that order are too large, variables keep their order
/// in the model.
pub(super) fn ranks(problem: &Problem) -> Vec<u32> {
    let n = problem.n_states.len();
    let scopes: Vec<Vec<usize>> = problem
        .constraints
        .iter()
        .map(|constraint| constraint.variables().into_iter().map(|variable| variable as usize).collect())
        .collect();
    // A wide constraint would connect all pairs of its variables. It says little about their order.
    let narrow = || scopes.iter().map(Vec::as_slice).filter(|scope| scope.len() <= MAX_SCOPE);
    let sizes = problem.n_states.iter().map(|&n| ((n as f64).log2() * 1024.0) as i64).collect();
    let order = if narrow().count() <= MAX_DENSITY * n {
        Graph::of_cliques(sizes, narrow()).eliminate(Heuristic::MinFill, 0.0, 0, MAX_ENTRIES, &mut 0.0)
    } else {
        None
    };
    let mut ranks: Vec<u32> = (0..n as u32).collect();
    if let Some(order) = order {
        for (place, variable) in order.variables.into_iter().enumerate() {
            ranks[variable] = (n - 1 - place) as u32;
        }
    }
    ranks
}

/// Maximum number of table entries of all cliques of the order. Larger cliques take long to eliminate: a minute for 5,000
/// labels and 10,000 clauses.
const MAX_ENTRIES: f64 = 1e12;

/// Maximum number of constraints per variable. Among 460 labels with a rule for each pair, the order took longer than the
/// search.
const MAX_DENSITY: usize = 32;

/// Maximum number of variables of a constraint that the order takes into account.
const MAX_SCOPE: usize = 64;
