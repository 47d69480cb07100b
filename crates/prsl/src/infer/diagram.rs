//! Logical rules as multi-valued decision diagrams: one level per label, states that remember only what matters.

use std::collections::HashMap;

use crate::formula::{Formula, Node};
use crate::label::{CategoryId, LabelId};

/// A formula decided label by label: from every state, each category leads to a state of the next level.
///
/// `at_most 2 of {40 labels}` has at most four states a level: none, one, two, too many.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Diagram {
    /// One per label of the scope, in order; the first starts in its only state.
    pub(crate) levels: Vec<Level>,
    /// Whether the formula holds in each state behind the last level.
    pub(crate) accepts: Vec<bool>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Level {
    pub(crate) label: LabelId,
    /// How many states there are before the label is decided.
    pub(crate) n_states: usize,
    /// How many choices the label has.
    pub(crate) n_choices: usize,
    /// The state after, at `state * n_choices + choice`.
    pub(crate) next: Vec<usize>,
}

/// The most states that a level may have.
const MAX_STATES: usize = 1 << 12;

/// What is known of a node of the formula when some labels are decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Status {
    /// Its value no longer matters, or its parent has taken it into account.
    Settled,
    False,
    True,
    /// Not yet decided; with how many children counted true so far.
    Open(u32),
}

impl Diagram {
    /// The diagram of a formula over the labels of `scope`, in this order. A label's choices are given by one
    /// representative category each. `None` if a level would need too many states.
    pub(crate) fn compile(formula: &Formula, scope: &[(LabelId, Vec<CategoryId>)]) -> Option<Self> {
        let mut start = vec![Status::Open(0); formula.nodes().len()];
        advance(formula, &mut start, None);
        let mut states = vec![start];
        let mut levels = Vec::new();
        for (label, choices) in scope {
            let mut ids: HashMap<Vec<Status>, usize> = HashMap::new();
            let mut after: Vec<Vec<Status>> = Vec::new();
            let mut next = Vec::with_capacity(states.len() * choices.len());
            for state in &states {
                for &choice in choices {
                    let mut status = state.clone();
                    advance(formula, &mut status, Some((*label, choice)));
                    let id = *ids.entry(status).or_insert_with_key(|status| {
                        after.push(status.clone());
                        after.len() - 1
                    });
                    next.push(id);
                }
            }
            if after.len() > MAX_STATES {
                return None;
            }
            levels.push(Level { label: *label, n_states: states.len(), n_choices: choices.len(), next });
            states = after;
        }
        let accepts = states.iter().map(|state| state[state.len() - 1] == Status::True).collect();
        Some(Self { levels, accepts }.reduced())
    }

    /// Merges states from which everything goes the same way, last level first.
    fn reduced(mut self) -> Self {
        let mut classes: Vec<usize> = self.accepts.iter().map(|&accepts| usize::from(accepts)).collect();
        let both = self.accepts.contains(&true) && self.accepts.contains(&false);
        if !both {
            classes.fill(0);
        }
        self.accepts = if both { vec![false, true] } else { self.accepts[..1].to_vec() };
        for level in self.levels.iter_mut().rev() {
            let mut ids: HashMap<Vec<usize>, usize> = HashMap::new();
            let mut next = Vec::new();
            let mut merged = Vec::with_capacity(level.n_states);
            for row in level.next.chunks(level.n_choices) {
                let row: Vec<usize> = row.iter().map(|&state| classes[state]).collect();
                let fresh = ids.len();
                let id = *ids.entry(row).or_insert_with_key(|row| {
                    next.extend_from_slice(row);
                    fresh
                });
                merged.push(id);
            }
            level.n_states = ids.len();
            level.next = next;
            classes = merged;
        }
        self
    }
}

/// Decides what one more label decides, then forgets what no longer matters.
fn advance(formula: &Formula, status: &mut [Status], decided: Option<(LabelId, CategoryId)>) {
    for (index, node) in formula.nodes().iter().enumerate() {
        if let Status::Open(counted) = status[index] {
            status[index] = decide(node, counted, status, decided);
        }
    }
    let mut relevant = vec![false; status.len()];
    relevant[status.len() - 1] = true;
    for (index, node) in formula.nodes().iter().enumerate().rev() {
        if !relevant[index] {
            status[index] = Status::Settled;
        }
        if !matches!(status[index], Status::Open(_)) {
            continue;
        }
        match node {
            Node::And(children) | Node::Or(children) | Node::Xor(children) | Node::Count(_, _, children) => {
                // Decided children are counted by now, and only the open ones still matter.
                for child in children {
                    relevant[child.index()] = matches!(status[child.index()], Status::Open(_));
                }
            }
            Node::Not(child) => relevant[child.index()] = true,
            Node::Implies(a, b) | Node::ImpliedBy(a, b) | Node::Iff(a, b) => {
                relevant[a.index()] = true;
                relevant[b.index()] = true;
            }
            Node::Constant(_) | Node::Atom(_) => {}
        }
    }
}

fn decide(node: &Node, counted: u32, status: &[Status], decided: Option<(LabelId, CategoryId)>) -> Status {
    let of = |id: &crate::formula::NodeId| status[id.index()];
    let known = |value: bool| if value { Status::True } else { Status::False };
    let count = |children: &[crate::formula::NodeId]| {
        let yes = children.iter().filter(|&id| of(id) == Status::True).count() as u32;
        let open = children.iter().filter(|&id| matches!(of(id), Status::Open(_))).count() as u32;
        (counted + yes, open)
    };
    match node {
        Node::Constant(value) => known(*value),
        Node::Atom(atom) => match decided {
            Some((label, category)) if label == atom.label() => known(atom.contains(category)),
            _ => Status::Open(0),
        },
        Node::Not(child) => match of(child) {
            Status::True => Status::False,
            Status::False => Status::True,
            _ => Status::Open(0),
        },
        Node::And(children) => match count(children) {
            _ if children.iter().any(|id| of(id) == Status::False) => Status::False,
            (_, 0) => Status::True,
            _ => Status::Open(0),
        },
        Node::Or(children) => match count(children) {
            _ if children.iter().any(|id| of(id) == Status::True) => Status::True,
            (_, 0) => Status::False,
            _ => Status::Open(0),
        },
        Node::Xor(children) => match count(children) {
            (yes, 0) => known(yes % 2 == 1),
            (yes, _) => Status::Open(yes % 2),
        },
        Node::Implies(condition, then) | Node::ImpliedBy(then, condition) => {
            match (of(condition), of(then)) {
                (Status::False, _) | (_, Status::True) => Status::True,
                (Status::True, Status::False) => Status::False,
                _ => Status::Open(0),
            }
        }
        Node::Iff(a, b) => match (of(a), of(b)) {
            (Status::Open(_), _) | (_, Status::Open(_)) => Status::Open(0),
            (a, b) => known(a == b),
        },
        Node::Count(bound, n, children) => {
            let (yes, open) = count(children);
            let admits = |total: u32| bound.admits(total as usize, *n);
            let (fewest, most) = (admits(yes), admits(yes + open));
            let outcome = match bound {
                // Monotone bounds are decided by their ends, an exact number only when it is out of reach.
                crate::formula::Bound::Exactly if yes as usize > *n || ((yes + open) as usize) < *n => {
                    Some(false)
                }
                crate::formula::Bound::Exactly if open > 0 => None,
                _ if fewest == most => Some(fewest),
                _ => None,
            };
            outcome.map_or(Status::Open(yes), known)
        }
    }
}
