//! A circuit as flat lists, in the order of evaluation.

use std::collections::HashMap;
use std::ops::Range;

use super::CircuitSize;
use super::compile::{Edge, Graph};
use super::problem::{Problem, Slot, SlotId};
use crate::label::LabelId;
use crate::outcome::SMALLEST;
use crate::rule::RuleId;

/// A prefix tree of sets. Edges with equal subsets share the products over them, and the sums of their masses.
///
/// Entry 0 is the empty set. Each other entry adds one item to its parent, which comes before it.
#[derive(Debug, Default)]
pub(super) struct Trie {
    pub(super) parents: Vec<u32>,
    pub(super) items: Vec<u32>,
}

impl Trie {
    /// Builds the tree of these sets. Returns it with the entry of each set. Frequent items come first, so that long
    /// prefixes are shared.
    fn new(n_items: usize, sets: &[Vec<u32>]) -> (Self, Vec<u32>) {
        let mut n_uses = vec![0usize; n_items];
        sets.iter().flatten().for_each(|&item| n_uses[item as usize] += 1);
        let mut trie = Self { parents: vec![0], items: vec![0] };
        let mut children: HashMap<(u32, u32), u32> = HashMap::new();
        let entry_of = |set: &Vec<u32>| {
            let mut set = set.clone();
            set.sort_unstable_by_key(|&item| (std::cmp::Reverse(n_uses[item as usize]), item));
            let step = |at: u32, item: u32| {
                *children.entry((at, item)).or_insert_with(|| {
                    trie.parents.push(at);
                    trie.items.push(item);
                    (trie.parents.len() - 1) as u32
                })
            };
            set.into_iter().fold(0, step)
        };
        let entries = sets.iter().map(entry_of).collect();
        (trie, entries)
    }

    pub(super) fn len(&self) -> usize {
        self.parents.len()
    }
}

/// Maximum number of children of an edge. The derivatives of an edge take time quadratic in it.
const MAX_CHILDREN: usize = 3;

/// A label of the circuit.
#[derive(Debug)]
pub(super) struct LabelStates {
    pub(super) label: LabelId,
    /// The positions of its states among the states of all labels.
    pub(super) states: Range<usize>,
}

#[derive(Debug)]
pub(super) struct FlatEdge {
    /// Entries of [`Layout::terms`] and [`Layout::free`].
    pub(super) terms: u32,
    pub(super) free: u32,
    /// Ranges of [`Layout::children`] and [`Layout::slots`].
    pub(super) children: Range<u32>,
    pub(super) slots: Range<u32>,
}

/// The nodes of a circuit, children first. The last node is the root; it has one edge, or none if no assignment is possible.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) labels: Vec<LabelStates>,
    pub(super) n_states: usize,
    /// Sets of decided states.
    pub(super) terms: Trie,
    /// Sets of free labels, by their positions in `labels`.
    pub(super) free: Trie,
    /// For each node, the range of its edges.
    pub(super) nodes: Vec<Range<u32>>,
    pub(super) edges: Vec<FlatEdge>,
    pub(super) children: Vec<u32>,
    pub(super) slots: Vec<SlotId>,
    /// For each state, whether some assignment of positive weight has it.
    pub(super) is_possible: Vec<bool>,
    weights: Vec<Slot>,
}

impl Layout {
    pub(super) fn new(problem: &Problem, graph: &Graph) -> Self {
        let mut labels = Vec::new();
        let mut of_variable = vec![(u32::MAX, 0); problem.n_states.len()];
        let mut n_states = 0;
        for (variable, label) in problem.labels.iter().enumerate() {
            let Some(label) = *label else { continue };
            of_variable[variable] = (labels.len() as u32, n_states);
            labels.push(LabelStates { label, states: n_states..n_states + problem.n_states[variable] });
            n_states += problem.n_states[variable];
        }
        let root: Vec<Edge> = graph.root.iter().cloned().collect();
        let nodes = || graph.nodes.iter().chain(std::iter::once(&root));
        let edges = || nodes().flatten();
        let term_sets: Vec<Vec<u32>> = edges()
            .map(|edge| {
                let position = |&(variable, state): &(u32, usize)| of_variable[variable as usize].1 + state;
                edge.terms.iter().map(|term| position(term) as u32).collect()
            })
            .collect();
        let free_sets: Vec<Vec<u32>> =
            edges().map(|edge| edge.free.iter().map(|&it| of_variable[it as usize].0).collect()).collect();
        let mut is_possible = vec![false; n_states];
        term_sets.iter().flatten().for_each(|&state| is_possible[state as usize] = true);
        for &label in free_sets.iter().flatten() {
            is_possible[labels[label as usize].states.clone()].fill(true);
        }
        let (terms, term_entries) = Trie::new(n_states, &term_sets);
        let (free, free_entries) = Trie::new(labels.len(), &free_sets);
        let mut layout = Self {
            labels,
            n_states,
            terms,
            free,
            nodes: Vec::new(),
            edges: Vec::new(),
            children: Vec::new(),
            slots: Vec::new(),
            is_possible,
            weights: problem.slots.clone(),
        };
        layout.add_nodes(nodes(), term_entries.into_iter().zip(free_entries));
        layout
    }

    /// Adds the nodes of a graph, children first. `entries` has the sets of each edge.
    fn add_nodes<'g>(
        &mut self,
        nodes: impl Iterator<Item = &'g Vec<Edge>>,
        mut entries: impl Iterator<Item = (u32, u32)>,
    ) {
        let mut products: HashMap<Vec<u32>, u32> = HashMap::new();
        let mut numbers: Vec<u32> = Vec::new();
        for edges in nodes {
            let children: Vec<Vec<u32>> = edges
                .iter()
                .map(|edge| {
                    let children = edge.children.iter().map(|&child| numbers[child as usize]).collect();
                    self.grouped(children, &mut products)
                })
                .collect();
            let start = self.edges.len() as u32;
            for (edge, children) in edges.iter().zip(children) {
                let (terms, free) = entries.next().expect("one entry for each edge");
                let children = extend(&mut self.children, &children);
                let slots = extend(&mut self.slots, &edge.slots);
                self.edges.push(FlatEdge { terms, free, children, slots });
            }
            numbers.push(self.nodes.len() as u32);
            self.nodes.push(start..self.edges.len() as u32);
        }
    }

    /// Replaces many children by nodes that are products of at most [`MAX_CHILDREN`]. Equal products are shared.
    fn grouped(&mut self, mut children: Vec<u32>, products: &mut HashMap<Vec<u32>, u32>) -> Vec<u32> {
        while children.len() > MAX_CHILDREN {
            children = children
                .chunks(MAX_CHILDREN)
                .map(|group| match group {
                    [only] => *only,
                    _ => *products.entry(group.to_vec()).or_insert_with(|| {
                        let start = self.edges.len() as u32;
                        let children = extend(&mut self.children, group);
                        self.edges.push(FlatEdge { terms: 0, free: 0, children, slots: 0..0 });
                        self.nodes.push(start..start + 1);
                        (self.nodes.len() - 1) as u32
                    }),
                })
                .collect();
        }
        children
    }

    /// The constants of all edges for these weights of the rules.
    pub(super) fn constants(&self, rules: &[[f64; 2]]) -> Constants {
        let logs: Vec<f64> = self
            .weights
            .iter()
            .map(|slot| match *slot {
                Slot::Rule { rule, fired } => rules[rule.index()][usize::from(fired)].ln(),
                Slot::Outcome { rule, outcome } => outcome.log_weight(rules[rule.index()]),
                Slot::Fixed(weight) => weight.ln(),
            })
            .collect();
        let values: Vec<f64> = self
            .weights
            .iter()
            .zip(&logs)
            .map(|(slot, log)| match *slot {
                Slot::Rule { rule, fired } => rules[rule.index()][usize::from(fired)],
                Slot::Outcome { .. } => log.exp(),
                Slot::Fixed(weight) => weight,
            })
            .collect();
        let of = |edge: &FlatEdge| self.slots[edge.slots.start as usize..edge.slots.end as usize].iter();
        let linear: Vec<f64> =
            self.edges.iter().map(|edge| of(edge).map(|&slot| values[slot as usize]).product()).collect();
        let log: Vec<f64> =
            self.edges.iter().map(|edge| of(edge).map(|&slot| logs[slot as usize]).sum()).collect();
        // Every assignment uses each weight at most once.
        let smallest = values.iter().filter(|&&value| value > 0.0).map(|value| value.min(1.0)).product();
        let is_precise =
            linear.iter().zip(&log).all(|(constant, log)| *constant >= SMALLEST || *log == f64::NEG_INFINITY);
        Constants { linear, log, smallest, is_precise }
    }

    /// The label and the state at a position among the states of all labels.
    pub(super) fn label_of_state(&self, position: usize) -> (LabelId, usize) {
        let place = self.labels.partition_point(|label| label.states.end <= position);
        (self.labels[place].label, position - self.labels[place].states.start)
    }

    /// The rules whose weights an edge contains, with whether they have fired.
    pub(super) fn rules(&self, edge: usize) -> impl Iterator<Item = (RuleId, bool)> {
        let slots = self.edges[edge].slots.clone();
        let slots = &self.slots[slots.start as usize..slots.end as usize];
        slots.iter().filter_map(|&slot| match self.weights[slot as usize] {
            Slot::Rule { rule, fired } => Some((rule, fired)),
            Slot::Outcome { .. } | Slot::Fixed(_) => None,
        })
    }

    /// Number of multiplications and additions for the marginals of one row.
    fn work(&self) -> f64 {
        let n_children = self.children.len();
        (2 * self.terms.len() + self.free.len() + 6 * self.edges.len() + 3 * n_children + 2 * self.n_states)
            as f64
    }

    pub(super) fn size(&self) -> CircuitSize {
        CircuitSize {
            nodes: self.nodes.len(),
            edges: self.edges.len(),
            bytes: (self.bytes() + self.workspace_bytes()) as f64,
            multiply_adds: self.work(),
        }
    }

    /// Bytes of a workspace with one row.
    pub(super) fn workspace_bytes(&self) -> u64 {
        8 * self.n_values() as u64
    }

    /// Number of values of one row.
    fn n_values(&self) -> usize {
        2 * self.terms.len()
            + self.free.len()
            + self.labels.len()
            + self.edges.len()
            + 2 * self.nodes.len()
            + 2 * self.n_states
    }

    /// Bytes of the circuit itself.
    pub(super) fn bytes(&self) -> u64 {
        let per_edge = size_of::<FlatEdge>() + 16;
        (self.edges.len() * per_edge
            + 8 * (self.terms.len() + self.free.len() + self.nodes.len())
            + 4 * (self.children.len() + self.slots.len())) as u64
    }
}

fn extend(list: &mut Vec<u32>, items: &[u32]) -> Range<u32> {
    let start = list.len() as u32;
    list.extend_from_slice(items);
    start..list.len() as u32
}

/// The product of the weights of each edge.
#[derive(Debug)]
pub(super) struct Constants {
    pub(super) linear: Vec<f64>,
    pub(super) log: Vec<f64>,
    /// A lower bound on the product of the weights of any assignment.
    pub(super) smallest: f64,
    /// Whether no constant has lost digits to underflow.
    pub(super) is_precise: bool,
}
