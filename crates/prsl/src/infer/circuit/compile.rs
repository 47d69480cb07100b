//! The search: exhaustive branching with propagation, components and a cache, as in D4 and sharpSAT.
//!
//! Its trace is the circuit. A decision is a sum over the states of a variable, independent components are a product, and
//! a component that was seen before is shared. Lagniez and Marquis (2017) call the result a decision-DNNF.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::domains::Domains;
use super::problem::{Problem, SlotId, VariableId};
use super::residual::{Component, Reducer, Residual};

pub(super) type NodeId = u32;

/// A product: weights, states of labels, labels that are free, and nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Edge {
    pub(super) slots: Vec<SlotId>,
    pub(super) terms: Vec<(VariableId, usize)>,
    /// Labels that may have any of their states.
    pub(super) free: Vec<VariableId>,
    pub(super) children: Vec<NodeId>,
}

/// A circuit: nodes are sums of edges. Children come before their parents.
#[derive(Debug)]
pub(super) struct Graph {
    pub(super) nodes: Vec<Vec<Edge>>,
    /// The value of the circuit; `None` if no assignment is possible.
    pub(super) root: Option<Edge>,
}

impl Graph {
    pub(super) fn n_edges(&self) -> usize {
        self.nodes.iter().map(Vec::len).sum::<usize>() + 1
    }
}

/// Limits on one compilation. They are counted, so the same model always gives the same circuit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    pub(super) max_edges: usize,
    /// Work in units of about a nanosecond.
    pub(super) max_work: f64,
    /// Words of all keys in the cache, and of all components that are being compiled.
    pub(super) max_words: usize,
}

/// The variable to branch on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Branching {
    /// The variable with the most open constraints; ties are broken by the static order.
    MostConstrained,
    /// The first variable of the static order.
    Static,
}

/// The search exceeded its budget.
#[derive(Debug)]
pub(super) struct OutOfBudget;

/// Multiplies and rotates words. Keys are numbers of the program itself, so nobody can choose them to collide.
#[derive(Default)]
pub(super) struct WordHasher(u64);

impl Hasher for WordHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

type Map<K, V> = HashMap<K, V, BuildHasherDefault<WordHasher>>;

/// A component that is being compiled.
struct Frame {
    component: Component,
    variable: VariableId,
    /// States that have not been tried, the next one last.
    states: Vec<usize>,
    mark: usize,
    edges: Vec<Edge>,
    /// The edge of the current state, and the components that it still needs.
    edge: Edge,
    pending: Vec<Component>,
}

struct Search<'p> {
    problem: &'p Problem,
    domains: Domains<'p>,
    reducer: Reducer<'p>,
    /// Position of each variable in the static order.
    ranks: &'p [u32],
    branching: Branching,
    nodes: Vec<Vec<Edge>>,
    n_edges: usize,
    n_words: usize,
    /// Words of the components on the stack. Their keys move to the cache when they are finished.
    stack_words: usize,
    unique: Map<Vec<Edge>, NodeId>,
    /// The node of each component that was compiled; `None` if it is impossible.
    cache: Map<Vec<u64>, Option<NodeId>>,
    stack: Vec<Frame>,
    budget: Budget,
}

/// Compiles a problem. Variables are branched on in the order of `ranks`, or of their open constraints.
pub(super) fn compile(
    problem: &Problem,
    ranks: &[u32],
    branching: Branching,
    budget: Budget,
) -> Result<Graph, OutOfBudget> {
    let impossible = Graph { nodes: Vec::new(), root: None };
    let Ok(domains) = Domains::new(problem) else { return Ok(impossible) };
    let search = Search {
        problem,
        domains,
        reducer: Reducer::new(problem),
        ranks,
        branching,
        nodes: Vec::new(),
        n_edges: 0,
        n_words: 0,
        stack_words: 0,
        unique: Map::default(),
        cache: Map::default(),
        stack: Vec::new(),
        budget,
    };
    search.run()
}

impl Search<'_> {
    fn run(mut self) -> Result<Graph, OutOfBudget> {
        let variables: Vec<VariableId> = (0..self.problem.n_states.len() as VariableId).collect();
        let constraints: Vec<u32> = (0..self.problem.constraints.len() as u32).collect();
        let Some(mut residual) = self.reducer.reduce(&mut self.domains, &variables, &constraints) else {
            return Ok(Graph { nodes: Vec::new(), root: None });
        };
        residual.slots.extend(&self.problem.always);
        let mut root = self.edge(&mut residual);
        for component in residual.components {
            match self.node(component)? {
                Some(node) => self.multiply(&mut root, node),
                None => return Ok(Graph { nodes: Vec::new(), root: None }),
            }
        }
        root.normalize();
        Ok(reachable(self.nodes, root))
    }

    /// Compiles a component with its own stack, because components may be nested as deep as there are labels.
    fn node(&mut self, component: Component) -> Result<Option<NodeId>, OutOfBudget> {
        if let Some(&node) = self.cache.get(&component.key) {
            return Ok(node);
        }
        self.push(component);
        loop {
            let frame = self.stack.last_mut().expect("the stack is not empty");
            if let Some(component) = frame.pending.pop() {
                match self.cache.get(&component.key) {
                    Some(&node) => self.deliver(node),
                    None => self.push(component),
                }
            } else if let Some(state) = frame.states.pop() {
                self.branch(state);
                self.check()?;
            } else {
                let frame = self.stack.pop().expect("the stack is not empty");
                let node = self.finish(frame);
                self.check()?;
                if self.stack.is_empty() {
                    return Ok(node);
                }
                self.deliver(node);
            }
        }
    }

    /// Starts to compile a component.
    fn push(&mut self, component: Component) {
        self.stack_words += component.n_words();
        let frame = self.frame(component);
        self.stack.push(frame);
    }

    /// Returns an error if the search exceeds its budget.
    fn check(&self) -> Result<(), OutOfBudget> {
        let Budget { max_edges, max_work, max_words } = self.budget;
        let is_within = self.n_edges <= max_edges
            && self.domains.work <= max_work
            && self.n_words + self.stack_words <= max_words;
        if is_within { Ok(()) } else { Err(OutOfBudget) }
    }

    fn frame(&self, component: Component) -> Frame {
        let rank = |place: usize| self.ranks[component.variables[place] as usize];
        let places = 0..component.variables.len();
        let place = match self.branching {
            Branching::MostConstrained => {
                places.min_by_key(|&place| (std::cmp::Reverse(component.n_open[place]), rank(place)))
            }
            Branching::Static => places.min_by_key(|&place| rank(place)),
        };
        let variable = component.variables[place.expect("a component has variables")];
        let mut states: Vec<usize> = self.domains.states(variable).collect();
        states.reverse();
        let (edge, edges, pending) = (Edge::default(), Vec::new(), Vec::new());
        Frame { component, variable, states, mark: self.domains.mark(), edges, edge, pending }
    }

    /// Decides the variable of the top frame.
    fn branch(&mut self, state: usize) {
        let frame = self.stack.last_mut().expect("the stack is not empty");
        let is_possible = self.domains.decide(frame.variable, state).is_ok();
        let residual = if is_possible {
            let Component { variables, constraints, .. } = &frame.component;
            self.reducer.reduce(&mut self.domains, variables, constraints)
        } else {
            None
        };
        let Some(mut residual) = residual else {
            self.domains.undo(self.stack.last().expect("the stack is not empty").mark);
            return;
        };
        let edge = self.edge(&mut residual);
        let frame = self.stack.last_mut().expect("the stack is not empty");
        frame.edge = edge;
        // The smallest component first: a contradiction there makes the others unnecessary.
        residual.components.sort_by_key(|component| std::cmp::Reverse(component.variables.len()));
        frame.pending = residual.components;
        self.complete();
    }

    /// Multiplies the edge of the top frame by a node.
    fn deliver(&mut self, node: Option<NodeId>) {
        let mut frame = self.stack.pop().expect("the stack is not empty");
        match node {
            Some(node) => self.multiply(&mut frame.edge, node),
            None => {
                frame.pending.clear();
                self.domains.undo(frame.mark);
                self.stack.push(frame);
                return;
            }
        }
        self.stack.push(frame);
        self.complete();
    }

    /// Keeps the edge of the top frame if it needs no more components.
    fn complete(&mut self) {
        let frame = self.stack.last_mut().expect("the stack is not empty");
        if frame.pending.is_empty() {
            let mut edge = std::mem::take(&mut frame.edge);
            edge.normalize();
            frame.edges.push(edge);
            self.domains.undo(frame.mark);
        }
    }

    /// Stores the node of a finished component.
    fn finish(&mut self, frame: Frame) -> Option<NodeId> {
        let node = if frame.edges.is_empty() { None } else { Some(self.unique(frame.edges)) };
        self.stack_words -= frame.component.n_words();
        self.domains.work += 20.0 * frame.component.key.len() as f64;
        self.n_words += frame.component.key.len();
        self.cache.insert(frame.component.key, node);
        node
    }

    fn unique(&mut self, edges: Vec<Edge>) -> NodeId {
        if let Some(&node) = self.unique.get(&edges) {
            return node;
        }
        let node = self.nodes.len() as NodeId;
        self.n_edges += edges.len();
        self.nodes.push(edges.clone());
        self.unique.insert(edges, node);
        node
    }

    /// The edge of a branch without its components. A free label with some states left is a sum over them.
    fn edge(&mut self, residual: &mut Residual) -> Edge {
        let mut edge = Edge {
            slots: std::mem::take(&mut residual.slots),
            terms: std::mem::take(&mut residual.terms),
            ..Edge::default()
        };
        for variable in residual.free.drain(..) {
            if self.domains.is_full(variable) {
                edge.free.push(variable);
                continue;
            }
            let states: Vec<usize> = self.domains.states(variable).collect();
            let term = |state: usize| Edge { terms: vec![(variable, state)], ..Edge::default() };
            let node = self.unique(states.into_iter().map(term).collect());
            edge.children.push(node);
        }
        edge
    }

    /// Multiplies an edge by a node. A node with a single edge is a product itself, and becomes part of the edge.
    fn multiply(&self, edge: &mut Edge, node: NodeId) {
        match &self.nodes[node as usize][..] {
            [only] => {
                edge.slots.extend(&only.slots);
                edge.terms.extend(&only.terms);
                edge.free.extend(&only.free);
                edge.children.extend(&only.children);
            }
            _ => edge.children.push(node),
        }
    }
}

impl Edge {
    fn normalize(&mut self) {
        self.slots.sort_unstable();
        self.terms.sort_unstable();
        self.free.sort_unstable();
        self.children.sort_unstable();
    }
}

/// Removes nodes that the root does not use. The order stays the same.
fn reachable(nodes: Vec<Vec<Edge>>, mut root: Edge) -> Graph {
    let mut is_used = vec![false; nodes.len()];
    root.children.iter().for_each(|&child| is_used[child as usize] = true);
    for node in (0..nodes.len()).rev() {
        if is_used[node] {
            for child in nodes[node].iter().flat_map(|edge| &edge.children) {
                is_used[*child as usize] = true;
            }
        }
    }
    let mut numbers = vec![NodeId::MAX; nodes.len()];
    let mut kept = Vec::new();
    for (node, mut edges) in nodes.into_iter().enumerate().filter(|(node, _)| is_used[*node]) {
        numbers[node] = kept.len() as NodeId;
        for child in edges.iter_mut().flat_map(|edge| &mut edge.children) {
            *child = numbers[*child as usize];
        }
        kept.push(edges);
    }
    root.children.iter_mut().for_each(|child| *child = numbers[*child as usize]);
    Graph { nodes: kept, root: Some(root) }
}
