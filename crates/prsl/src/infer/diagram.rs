//! Logical rules as multi-valued decision diagrams with one level per label.

use std::collections::HashMap;

use crate::formula::{Bound, Formula, Node, NodeId};
use crate::label::{CategoryId, LabelId};

/// A formula evaluated label by label. From each state, each category leads to a state of the next level.
///
/// For example, `at_most 2 of {40 labels}` has at most four states per level: none, one, two, more than two.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Diagram {
    /// One level per label of the scope, in order. The first level has a single state.
    pub(crate) levels: Vec<Level>,
    /// Whether the formula holds in each state after the last level.
    pub(crate) accepts: Vec<bool>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Level {
    pub(crate) label: LabelId,
    /// Number of states before the label.
    pub(crate) n_states: usize,
    /// Number of choices of the label.
    pub(crate) n_choices: usize,
    /// The next state, at `state * n_choices + choice`.
    pub(crate) next: Vec<usize>,
}

impl Level {
    /// The next state after a choice.
    pub(crate) fn after(&self, state: usize, choice: usize) -> usize {
        self.next[state * self.n_choices + choice]
    }
}

/// Maximum number of states per level.
pub(crate) const MAX_STATES: usize = 1 << 12;

/// Maximum number of statuses stored for all states of a level. They take 32 MiB.
const MAX_STATUSES: usize = 1 << 22;

/// The reason why a diagram was not compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TooLarge {
    /// A level has more than [`MAX_STATES`] states, or more than [`MAX_STATUSES`] statuses.
    States {
        /// The label of the level.
        label: LabelId,
    },
    /// Compilation takes more work than allowed.
    Work,
}

/// The knowledge about a formula's node after some labels are decided, encoded as one number. States are lists of
/// statuses, which are compared and hashed.
type Status = u64;

/// The node's value is irrelevant, or its parent has already used it.
const SETTLED: Status = u64::MAX;
const FALSE: Status = u64::MAX - 1;
const TRUE: Status = u64::MAX - 2;
const UNTOUCHED: Status = open(0, 0);

/// An undecided node. `decided` of its children are decided, and `yes` of these are true. For an operator with two
/// sides, both are bit sets: 1 for the left side, 2 for the right side.
const fn open(decided: u32, yes: u32) -> Status {
    (decided as u64) << 32 | yes as u64
}

const fn is_open(status: Status) -> bool {
    status < TRUE
}

impl Diagram {
    /// Compiles the diagram of a formula over the labels of `scope`, in this order. Each choice of a label is given
    /// by a representative category. `max_work` is in units of about a nanosecond.
    pub(crate) fn compile(
        formula: &Formula,
        scope: &[(LabelId, Vec<CategoryId>)],
        max_work: f64,
    ) -> Result<Self, TooLarge> {
        let order: Vec<LabelId> = scope.iter().map(|(label, _)| *label).collect();
        let mut tree = Tree::new(formula, &order);
        let mut states = vec![vec![tree.start[tree.root()]]];
        let mut frontier = vec![tree.root()];
        let mut levels = Vec::new();
        let mut work = 0.0;
        for (depth, (label, choices)) in scope.iter().enumerate() {
            let after = tree.frontier_after(depth, &frontier);
            let mut ids: HashMap<Vec<Status>, usize> = HashMap::new();
            let mut next = Vec::with_capacity(states.len() * choices.len());
            let step =
                100.0 + 2.0 * (frontier.len() + 4 * after.len() + 2 * tree.affected[depth].len()) as f64;
            for state in &states {
                for &choice in choices {
                    work += step;
                    let status = tree.advance(&frontier, state, depth, choice, &after);
                    let fresh = ids.len();
                    next.push(*ids.entry(status).or_insert(fresh));
                }
                if ids.len() > MAX_STATES || ids.len() * after.len() > MAX_STATUSES {
                    return Err(TooLarge::States { label: *label });
                }
                if work > max_work {
                    return Err(TooLarge::Work);
                }
            }
            levels.push(Level { label: *label, n_states: states.len(), n_choices: choices.len(), next });
            states = vec![Vec::new(); ids.len()];
            ids.into_iter().for_each(|(status, id)| states[id] = status);
            frontier = after;
        }
        let accepts = states.iter().map(|state| state[0] == TRUE).collect();
        Ok(Self { levels, accepts }.reduced())
    }

    /// Merges equivalent states, from the last level to the first.
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

/// A formula's nodes, and the nodes that each label affects.
///
/// States of a level differ only in the *frontier*: the nodes with both decided and undecided labels below them. All
/// other nodes still have their initial status, or their parents have already used their values.
struct Tree<'a> {
    nodes: &'a [Node],
    parents: Vec<Option<usize>>,
    /// The status of each node before any label is decided. Constants are decided.
    start: Vec<Status>,
    /// For each level, the nodes with atoms of its label below them, children first.
    affected: Vec<Vec<usize>>,
    /// For each node, the last level that affects it.
    last: Vec<usize>,
    /// The status of each node while a state is advanced.
    current: Vec<Status>,
}

impl<'a> Tree<'a> {
    fn new(formula: &'a Formula, order: &[LabelId]) -> Self {
        let nodes = formula.nodes();
        let mut parents = vec![None; nodes.len()];
        for (index, node) in nodes.iter().enumerate() {
            node.children().iter().for_each(|child| parents[child.index()] = Some(index));
        }
        let levels: HashMap<LabelId, usize> =
            order.iter().enumerate().map(|(level, &label)| (label, level)).collect();
        let mut affected = vec![Vec::new(); order.len()];
        for (index, node) in nodes.iter().enumerate() {
            if let Node::Atom(atom) = node {
                affected[levels[&atom.label()]].push(index);
            }
        }
        let mut last = vec![usize::MAX; nodes.len()];
        for (level, list) in affected.iter_mut().enumerate() {
            let mut place = 0;
            while let Some(&node) = list.get(place) {
                last[node] = level;
                list.extend(
                    parents[node].filter(|&parent| std::mem::replace(&mut last[parent], level) != level),
                );
                place += 1;
            }
            list.sort_unstable();
        }
        let start = vec![UNTOUCHED; nodes.len()];
        let mut tree = Self { nodes, parents, current: start.clone(), start, affected, last };
        for (index, node) in nodes.iter().enumerate() {
            let value = match node {
                Node::Constant(value) => Some(*value),
                Node::Count(bound, n, children) => bound.outcome(*n, 0, children.len()),
                _ => None,
            };
            value.into_iter().for_each(|value| tree.decide(index, value));
        }
        // Nodes that are decided from the start have updated their parents.
        tree.start = tree.current.clone();
        let root = tree.root();
        for status in &mut tree.start[..root] {
            if !is_open(*status) {
                *status = SETTLED;
            }
        }
        tree
    }

    fn root(&self) -> usize {
        self.nodes.len() - 1
    }

    /// The frontier after a level, parents first: the root, and the nodes that a later level affects too.
    fn frontier_after(&self, level: usize, before: &[usize]) -> Vec<usize> {
        let is_inner = |&node: &usize| node != self.root() && self.last[node] > level;
        let mut after: Vec<usize> =
            before.iter().chain(&self.affected[level]).copied().filter(is_inner).collect();
        after.push(self.root());
        after.sort_unstable_by(|a, b| b.cmp(a));
        after.dedup();
        after
    }

    /// The next state after `choice` at a level: the statuses of the frontier `after`.
    fn advance(
        &mut self,
        frontier: &[usize],
        state: &[Status],
        level: usize,
        choice: CategoryId,
        after: &[usize],
    ) -> Vec<Status> {
        for &node in &self.affected[level] {
            self.current[node] = self.start[node];
        }
        for (&node, &status) in frontier.iter().zip(state) {
            self.current[node] = status;
        }
        for place in 0..self.affected[level].len() {
            let index = self.affected[level][place];
            if let Node::Atom(atom) = &self.nodes[index] {
                self.decide(index, atom.contains(choice));
            }
        }
        // Parents come first, so nodes below a settled node are settled too.
        for &node in after {
            if self.parents[node]
                .is_some_and(|parent| !is_open(self.current[parent]) || !is_open(self.current[node]))
            {
                self.current[node] = SETTLED;
            }
        }
        after.iter().map(|&node| self.current[node]).collect()
    }

    /// Decides a node, and all ancestors that this decides.
    fn decide(&mut self, node: usize, value: bool) {
        let (mut node, mut value) = (node, value);
        loop {
            if !is_open(self.current[node]) {
                return;
            }
            self.current[node] = if value { TRUE } else { FALSE };
            let Some(parent) = self.parents[node].filter(|&parent| is_open(self.current[parent])) else {
                return;
            };
            let (status, outcome) = count(&self.nodes[parent], node, value, self.current[parent]);
            self.current[parent] = status;
            let Some(outcome) = outcome else { return };
            (node, value) = (parent, outcome);
        }
    }
}

/// The status of a node after one more of its children is decided, and its value if this decides it.
fn count(node: &Node, child: usize, value: bool, status: Status) -> (Status, Option<bool>) {
    let (decided, yes) = ((status >> 32) as u32, status as u32);
    let side = |left: NodeId| if left.index() == child { 1 } else { 2 };
    let (decided, yes) = match node {
        Node::Implies(left, _) | Node::ImpliedBy(left, _) | Node::Iff(left, _) => {
            (decided | side(*left), if value { yes | side(*left) } else { yes })
        }
        Node::Xor(_) => (decided + 1, (yes + u32::from(value)) % 2),
        _ => (decided + 1, yes + u32::from(value)),
    };
    let all = |children: &[NodeId]| decided as usize == children.len();
    let implies = |condition: u32, then: u32| match (decided, yes) {
        _ if decided & condition != 0 && yes & condition == 0 => Some(true),
        _ if yes & then != 0 => Some(true),
        (3, _) => Some(false),
        _ => None,
    };
    let outcome = match node {
        Node::Constant(_) | Node::Atom(_) => unreachable!("they have no children"),
        Node::Not(_) => Some(!value),
        Node::And(_) if !value => Some(false),
        Node::And(children) => all(children).then_some(true),
        Node::Or(_) if value => Some(true),
        Node::Or(children) => all(children).then_some(false),
        Node::Xor(children) => all(children).then_some(yes == 1),
        Node::Implies(..) => implies(1, 2),
        Node::ImpliedBy(..) => implies(2, 1),
        Node::Iff(..) => (decided == 3).then_some(yes == 0 || yes == 3),
        Node::Count(bound, n, children) => bound.outcome(*n, yes as usize, children.len() - decided as usize),
    };
    (open(decided, yes), outcome)
}

impl Bound {
    /// Whether the bound `n` holds if `yes` members are true and `open` are undecided; `None` if that is open.
    fn outcome(self, n: usize, yes: usize, open: usize) -> Option<bool> {
        let ends = [self.admits(yes, n), self.admits(yes + open, n)];
        match self {
            // Monotone bounds are decided by their extremes. An exact number is decided early only if it is
            // unattainable.
            Bound::Exactly if yes > n || yes + open < n => Some(false),
            Bound::Exactly if open > 0 => None,
            _ => (ends[0] == ends[1]).then_some(ends[0]),
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::{Rng, RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::formula::Atom;

    const SIZES: [usize; 5] = [2, 3, 2, 4, 2];

    fn atom(label: usize, category: usize) -> Formula {
        Formula::atom(Atom::new(LabelId::new(label), CategoryId::new(category)))
    }

    fn random_formula(rng: &mut impl Rng, depth: usize) -> Formula {
        let operator = if depth == 0 { rng.random_range(0..2) } else { rng.random_range(0..12) };
        let mut part = || random_formula(rng, depth - 1);
        match operator {
            0 => Formula::constant(rng.random()),
            1 | 2 => {
                let label = rng.random_range(0..SIZES.len());
                atom(label, rng.random_range(0..SIZES[label]))
            }
            3 => part().not(),
            4 => Formula::and([part(), part(), part()]),
            5 => Formula::or([part(), part()]),
            6 => Formula::xor([part(), part(), part()]),
            7 => part().implies(part()),
            8 => part().implied_by(part()),
            9 => part().iff(part()),
            _ => {
                let parts = [part(), part(), part(), part()];
                let bound = [Bound::AtLeast, Bound::AtMost, Bound::Exactly][rng.random_range(0..3)];
                let n_parts = rng.random_range(0..=4);
                Formula::count(bound, rng.random_range(0..=5), parts.into_iter().take(n_parts))
            }
        }
    }

    fn compile(formula: &Formula, max_work: f64) -> Result<Diagram, TooLarge> {
        let choices = |label: LabelId| {
            let n = SIZES.get(label.index()).copied().unwrap_or(2);
            (label, (0..n).map(CategoryId::new).collect())
        };
        let scope: Vec<_> = formula.scope().into_iter().map(choices).collect();
        Diagram::compile(formula, &scope, max_work)
    }

    #[test]
    fn diagrams_agree_with_their_formulas() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for _ in 0..3000 {
            let depth = rng.random_range(0..4);
            let formula = random_formula(&mut rng, depth);
            let diagram = compile(&formula, 1e9).expect("small formulas have small diagrams");
            for index in 0..SIZES.iter().product::<usize>() {
                let mut rest = index;
                let assignment: Vec<usize> = SIZES.map(|n| (rest % n, rest /= n).0).to_vec();
                let walk = |state, level: &Level| level.after(state, assignment[level.label.index()]);
                let state = diagram.levels.iter().fold(0, walk);
                assert_eq!(
                    diagram.accepts[state],
                    formula.holds_at(&assignment),
                    "{formula:?} {assignment:?}"
                );
            }
        }
    }

    #[test]
    fn counts_of_many_labels_take_work_in_proportion_to_their_states() {
        let many = |n: usize| (0..n).map(|label| atom(label + SIZES.len(), 0));
        let at_most = Formula::count(Bound::AtMost, 2, many(4000));
        let diagram = compile(&at_most, 4000.0 * 4.0 * 2.0 * 200.0).expect("four states a level");
        assert!(diagram.levels.iter().all(|level| level.n_states <= 4));
        let at_least = Formula::count(Bound::AtLeast, 500, many(1000));
        let diagram = compile(&at_least, 1000.0 * 500.0 * 2.0 * 200.0).expect("at most 501 states a level");
        assert_eq!(diagram.levels.iter().map(|level| level.n_states).max(), Some(501));
    }

    #[test]
    fn diagrams_that_are_too_large_are_refused() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut pair = || Formula::and([0, 0].map(|_| atom(rng.random_range(5..1005), 0)));
        let pairs = Formula::or((0..50_000).map(|_| pair()).collect::<Vec<_>>());
        assert!(matches!(compile(&pairs, 1e12), Err(TooLarge::States { .. })));
        assert_eq!(compile(&pairs, 1e6), Err(TooLarge::Work));
    }
}
