//! Rules that count many labels, as trees of additions.
//!
//! Rules about the same literals, such as `at_least 1 of {...}` and `at_most 3 of {...}`, share a tree: all of them are
//! functions of one sum.

use super::arrangement::Arrangement;
use crate::formula::{Atom, Bound, Formula, Node, NodeId};
use crate::label::{CategoryId, LabelId};

/// Minimum number of labels. A rule of fewer is a table or a chain, whichever is cheaper.
pub(super) const MIN_LABELS: usize = 13;
/// Largest number that is told apart. Larger ones would make tables of more than a thousand entries.
const MAX_CAP: usize = 8;

/// The sum of some literals.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Counter {
    pub(crate) literals: Vec<Literal>,
    /// Sums of two earlier items. The last one is the sum of all literals.
    pub(crate) additions: Vec<[Item; 2]>,
    sum: Sum,
    /// Number of literals below each addition.
    n_below: Vec<usize>,
}

/// A category of a label, or its negation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Literal {
    atom: Atom,
    is_negated: bool,
}

/// What is added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    Literal(usize),
    /// The result of an earlier addition.
    Sum(usize),
}

/// The numbers that are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sum {
    /// Those below this number. All others are one state.
    Below(usize),
    /// Odd and even ones.
    Parity,
}

/// Rules that count the same literals.
#[derive(Debug)]
pub(super) struct Tally {
    /// The literals, by label.
    literals: Vec<Literal>,
    sum: Sum,
}

impl Tally {
    /// What a rule counts; `None` if it does not count, or only few labels, or to a large number.
    pub(super) fn new(formula: &Formula) -> Option<Self> {
        let root = &formula.nodes()[formula.root().index()];
        let sum = match root {
            _ if !formula.is_symmetric() => return None,
            Node::Xor(_) => Sum::Parity,
            Node::Count(Bound::AtLeast, n, _) => Sum::Below(*n),
            Node::Count(_, n, _) => Sum::Below(n + 1),
            _ => return None,
        };
        let literal = |id: NodeId| match &formula.nodes()[id.index()] {
            Node::Atom(atom) => Some(Literal { atom: atom.clone(), is_negated: false }),
            Node::Not(child) => match &formula.nodes()[child.index()] {
                Node::Atom(atom) => Some(Literal { atom: atom.clone(), is_negated: true }),
                _ => None,
            },
            _ => None,
        };
        let mut literals: Vec<Literal> = root.children().into_iter().filter_map(literal).collect();
        literals.sort_by_key(Literal::label);
        let is_small = match sum {
            Sum::Below(cap) => (1..=MAX_CAP).contains(&cap),
            Sum::Parity => true,
        };
        (literals.len() >= MIN_LABELS && is_small).then_some(Self { literals, sum })
    }

    /// One tally for two rules; `None` if they count differently.
    pub(super) fn join(&self, other: &Self) -> Option<Self> {
        let sum = match (self.sum, other.sum) {
            (Sum::Below(a), Sum::Below(b)) => Sum::Below(a.max(b)),
            (Sum::Parity, Sum::Parity) => Sum::Parity,
            _ => return None,
        };
        (self.literals == other.literals).then(|| Self { literals: self.literals.clone(), sum })
    }
}

impl Counter {
    /// Adds literals along a tree of labels, or one by one.
    pub(super) fn new(tally: Tally, tree: Option<&Arrangement>) -> Self {
        let mut counter =
            Self { literals: tally.literals, additions: Vec::new(), sum: tally.sum, n_below: Vec::new() };
        match tree {
            Some(tree) => counter.add_along(tree),
            None => {
                let literals = (0..counter.literals.len()).map(Item::Literal);
                literals.reduce(|sum, literal| counter.add(sum, literal));
            }
        }
        counter
    }

    fn add_along(&mut self, tree: &Arrangement) {
        // For each label, the sum of the literals at and below it. The sum of the roots comes last.
        let mut totals: Vec<Option<Item>> = vec![None; tree.parents.len()];
        for (place, literal) in self.literals.iter().enumerate() {
            totals[literal.label().index()] = Some(Item::Literal(place));
        }
        let mut of_roots: Option<Item> = None;
        for &label in &tree.order {
            let Some(total) = totals[label] else { continue };
            let slot = tree.parents[label].map_or(of_roots, |parent| totals[parent]);
            let sum = Some(slot.map_or(total, |slot| self.add(total, slot)));
            match tree.parents[label] {
                Some(parent) => totals[parent] = sum,
                None => of_roots = sum,
            }
        }
    }

    fn add(&mut self, a: Item, b: Item) -> Item {
        let below = |item: Item| match item {
            Item::Literal(_) => 1,
            Item::Sum(place) => self.n_below[place],
        };
        self.n_below.push(below(a) + below(b));
        self.additions.push([a, b]);
        Item::Sum(self.additions.len() - 1)
    }

    /// Number of states of a sum.
    pub(crate) fn n_states(&self, addition: usize) -> usize {
        match self.sum {
            Sum::Below(cap) => cap.min(self.n_below[addition]) + 1,
            Sum::Parity => 2,
        }
    }

    /// The state of the sum of two numbers.
    pub(crate) fn sum(&self, a: usize, b: usize) -> usize {
        match self.sum {
            Sum::Below(cap) => (a + b).min(cap),
            Sum::Parity => (a + b) % 2,
        }
    }
}

/// Whether a rule that counts holds if the sum of its literals is in this state.
pub(crate) fn admits(formula: &Formula, state: usize) -> bool {
    match &formula.nodes()[formula.root().index()] {
        Node::Count(bound, n, _) => bound.admits(state, *n),
        _ => state == 1,
    }
}

impl Literal {
    pub(crate) fn label(&self) -> LabelId {
        self.atom.label()
    }

    /// Whether it is true for a category of its label.
    pub(crate) fn holds(&self, category: CategoryId) -> bool {
        self.atom.contains(category) != self.is_negated
    }
}
