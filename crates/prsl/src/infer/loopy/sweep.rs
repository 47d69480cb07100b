//! Messages of several rows side by side, and the sweeps that update them.
//!
//! Every quantity is a lane: one value per row. Lanes never mix, so a row's messages do not depend on the other rows.
//! A lane whose row is done continues to compute, but its values are not read.

mod lanes;
mod queue;

use std::ops::Range;

use super::form::{Form, Lane, smallest};
use super::graph::{Edge, Graph};
use crate::infer::semiring::{Semiring, wide};
use lanes::{
    damp, dot, largest_change, mark_underflow, multiply, multiply_normalized, multiply_slots, normalize, sum,
    update_minimum, update_positive_minimum,
};
use queue::Queue;

/// The direction of a sequential sweep through the factors. The other schedules have no direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Forward,
    Backward,
}

/// Whether `Messages::smallest` already holds the smallest positive cavity messages of a factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Smallest {
    Known,
    Unknown,
}

/// How much a sweep has changed each row.
pub(super) struct Change<const L: usize> {
    /// The largest change of a marginal.
    pub(super) marginals: Lane<L>,
    /// The largest change of a factor's total, if it may change after the marginals have converged. A marginal of an
    /// excluded category stays at 0 while its cavity messages still change.
    pub(super) totals: Lane<L>,
}

/// The beliefs of one row, by state.
pub(super) struct RowBeliefs<'a> {
    /// The beliefs as elements of the semiring.
    pub(super) elements: &'a [f64],
    /// The share of each state's most probable category in the state's belief.
    pub(super) shares: &'a [f64],
}

/// The messages of `L` rows.
///
/// # The sequential sweep
///
/// Factors are updated one after the other, each with the newest messages. Let label j have edges 1 … n in this order.
/// Factor i needs the product of the belief and all other messages. Those before it are new, those after it are old:
///
/// ```text
/// cavityᵢ = (π μ₁ … μᵢ₋₁) (μᵢ₊₁ … μₙ)                                              (1)
/// ```
///
/// The left part is the label's running product. The right part is the running product at this edge in the previous
/// sweep, which had the opposite direction. So each edge stores one vector, `others`: a sweep reads the right part from
/// it, and then stores the left part in it (2). The cost per edge does not depend on the degree of the labels, and no
/// step divides by a message.
///
/// # The Bethe value
///
/// Let Zₖ be the total of factor k under its normalized cavity messages, Zⱼ the total of label j, and
/// Zₑ = Σ cavity · message the total of edge e. Then
///
/// ```text
/// ln Z = Σₖ ln Zₖ + Σⱼ ln Zⱼ − Σₑ ln Zₑ                                             (3)
/// ```
///
/// An unnormalized message m̂ = tₑ μ from factor k has Σ cavity · m̂ = Zₖ, so Zₑ = Zₖ / tₑ. Zⱼ is the product of the
/// normalizing constants of the running product, edge after edge. Let uₑ be the constant when the running product is
/// multiplied by m̂ itself. Then
///
/// ```text
/// ln Z = Σₖ (1 − degreeₖ) ln Zₖ + Σₑ ln uₑ + Σⱼ ln vⱼ                                (4)
/// ```
///
/// where vⱼ is the last normalizing constant. Scaling a cavity message does not change (4): the scale cancels between
/// Zₖ and the uₑ of the factor's other edges. So cavity messages need not be normalized. Checked in
/// `trees_are_exact`.
pub(super) struct Messages<'a, S, const L: usize> {
    graph: &'a Graph,
    forms: &'a [Form],
    /// The rows' beliefs, by state.
    pub(super) beliefs: Vec<Lane<L>>,
    /// The share of each state's most probable category in the state's belief.
    shares: Vec<Lane<L>>,
    /// The running product of each label.
    running: Vec<Lane<L>>,
    /// The labels' marginals (or best weights) after the last sweep, normalized.
    pub(super) marginals: Vec<Lane<L>>,
    /// Normalized messages from factors to labels, by slot.
    messages: Vec<Lane<L>>,
    /// Products of the messages of other factors to the label, by slot: see (1) and (2).
    others: Vec<Lane<L>>,
    /// The cavity messages of each factor's last update. Empty unless they are requested.
    pub(super) cavities: Vec<Lane<L>>,
    /// The normalizing constants of `messages`.
    message_totals: Vec<Lane<L>>,
    /// Zₖ. `edge_totals` has uₑ, and `label_totals` has vⱼ.
    factor_totals: Vec<Lane<L>>,
    edge_totals: Vec<Lane<L>>,
    label_totals: Vec<Lane<L>>,
    /// 1 − damping and damping, as elements.
    damping: [Lane<L>; 2],
    is_damped: [bool; L],
    /// The smallest total so far. Below the semiring's floor, a product may have underflowed.
    lowest: Lane<L>,
    incoming: Vec<Lane<L>>,
    outgoing: Vec<Lane<L>>,
    scratch: Vec<Lane<L>>,
    /// The smallest positive cavity message of each label of a factor.
    smallest: Vec<Lane<L>>,
    queue: Queue,
    semiring: std::marker::PhantomData<S>,
}

impl<'a, S: Semiring, const L: usize> Messages<'a, S, L> {
    /// Bytes of the messages of a graph, without stored cavity messages.
    pub(super) fn bytes(graph: &Graph, forms: &[Form]) -> usize {
        let largest = graph.factors.iter().map(|node| node.slots.len()).max().unwrap_or(0);
        let scratch = forms.iter().map(Form::n_scratch).max().unwrap_or(0);
        let (n_edges, n_nodes) = (graph.edges.len(), graph.factors.len() + graph.labels.len());
        let n_lanes =
            4 * graph.n_states() + 2 * graph.n_slots() + 2 * n_edges + n_nodes + 2 * largest + scratch;
        n_lanes * size_of::<Lane<L>>()
    }

    /// Allocates the messages of a graph. With `keep_cavities`, each factor's last cavity messages are stored.
    pub(super) fn new(graph: &'a Graph, forms: &'a [Form], keep_cavities: bool) -> Self {
        let one = |n: usize| vec![[S::ONE; L]; n];
        let largest = graph.factors.iter().map(|node| node.slots.len()).max().unwrap_or(0);
        Self {
            graph,
            forms,
            beliefs: one(graph.n_states()),
            shares: one(graph.n_states()),
            running: one(graph.n_states()),
            marginals: one(graph.n_states()),
            messages: one(graph.n_slots()),
            others: one(graph.n_slots()),
            cavities: one(if keep_cavities { graph.n_slots() } else { 0 }),
            message_totals: one(graph.edges.len()),
            factor_totals: one(graph.factors.len()),
            edge_totals: one(graph.edges.len()),
            label_totals: one(graph.labels.len()),
            damping: [[S::ONE; L], [S::ZERO; L]],
            is_damped: [false; L],
            lowest: [f64::INFINITY; L],
            incoming: one(largest),
            outgoing: one(largest),
            scratch: one(forms.iter().map(Form::n_scratch).max().unwrap_or(0)),
            smallest: one(graph.factors.iter().map(|node| node.edges.len()).max().unwrap_or(0)),
            queue: Queue::default(),
            semiring: std::marker::PhantomData,
        }
    }

    /// Starts a row in a lane, with its beliefs and uniform messages.
    pub(super) fn start(&mut self, lane: usize, row: &RowBeliefs<'_>, damping: f64) {
        for state in 0..self.beliefs.len() {
            self.beliefs[state][lane] = row.elements[state];
            self.shares[state][lane] = row.shares[state];
            self.marginals[state][lane] = row.elements[state];
        }
        let graph = self.graph;
        for edge in &graph.edges {
            // A normalized uniform message: its ⊕ over the states is one.
            let total = (0..edge.slots.len()).fold(S::ZERO, |total, _| S::add(total, S::ONE));
            for slot in edge.slots.clone() {
                self.messages[slot][lane] = S::inverse(total);
                self.others[slot][lane] = S::ONE;
            }
        }
        for total in &mut self.factor_totals {
            total[lane] = f64::INFINITY;
        }
        self.damping[0][lane] = S::element(1.0 - damping);
        self.damping[1][lane] = S::element(damping);
        self.is_damped[lane] = damping > 0.0;
        self.lowest[lane] = f64::INFINITY;
        self.queue.restart(graph.factors.len());
    }

    /// Whether no product of a lane can have underflowed.
    pub(super) fn is_sound(&self, lane: usize) -> bool {
        self.lowest[lane] >= S::FLOOR
    }

    /// The Bethe value of ln Z, by (4).
    pub(super) fn log_evidence(&self, lane: usize) -> f64 {
        let ln = |lanes: &[Lane<L>]| -> f64 { lanes.iter().map(|total| S::ln(total[lane])).sum() };
        let factors: f64 = self
            .graph
            .factors
            .iter()
            .zip(&self.factor_totals)
            .filter(|(node, _)| node.edges.len() != 1)
            .map(|(node, total)| (1.0 - node.edges.len() as f64) * S::ln(total[lane]))
            .sum();
        let constants: f64 = self.graph.constants.iter().map(|(_, weight)| weight.ln()).sum();
        constants + factors + ln(&self.edge_totals) + ln(&self.label_totals)
    }

    /// Zₖ of one factor. The cavity messages must have been stored.
    pub(super) fn factor_total(&self, factor: usize, lane: usize) -> f64 {
        let edges = &self.graph.edges[self.graph.factors[factor].edges.clone()];
        edges.iter().fold(self.factor_totals[factor][lane], |total, edge| {
            let cavity = sum::<S, L>(&self.cavities, edge.slots.clone())[lane];
            S::mul(total, S::inverse(cavity))
        })
    }

    /// Updates every factor once, in order or from the last to the first.
    pub(super) fn sequential(&mut self, direction: Direction) -> Change<L> {
        wide!(self.sequential_in(direction))
    }

    #[inline(always)]
    fn sequential_in(&mut self, direction: Direction) -> Change<L> {
        match direction {
            Direction::Forward => self.running.copy_from_slice(&self.beliefs),
            Direction::Backward => self.running.fill([S::ONE; L]),
        }
        let n = self.graph.factors.len();
        for turn in 0..n {
            let factor = if direction == Direction::Forward { turn } else { n - 1 - turn };
            self.update_in_turn(factor);
        }
        if direction == Direction::Backward {
            multiply_slots::<S, L>(&mut self.running, 0..self.beliefs.len(), &self.beliefs, 0);
        }
        Change { marginals: self.finish_sweep_in(), totals: [0.0; L] }
    }

    #[inline(always)]
    fn update_in_turn(&mut self, factor: usize) {
        let graph = self.graph;
        let node = &graph.factors[factor];
        let edges = &graph.edges[node.edges.clone()];
        let (running, others) = (&self.running[..], &mut self.others[..]);
        let incoming = &mut self.incoming[..node.slots.len()];
        for (edge, least) in edges.iter().zip(&mut self.smallest) {
            let mut smallest = [f64::INFINITY; L];
            for (state, slot) in edge.states.clone().zip(edge.slots.clone()) {
                let (running, others) = (&running[state], &mut others[slot]);
                let mut cavity = [S::ZERO; L];
                for l in 0..L {
                    cavity[l] = S::mul(running[l], others[l]); // (1)
                }
                *others = *running; // (2)
                if S::SCALED {
                    update_positive_minimum(&mut smallest, &cavity);
                }
                incoming[slot - node.slots.start] = cavity;
            }
            *least = smallest;
        }
        self.compute_in(factor, Smallest::Known);
        let mut lowest = self.lowest;
        for (edge, total) in edges.iter().zip(&mut self.edge_totals[node.edges.clone()]) {
            let (states, first) = (edge.states.clone(), edge.slots.start - node.slots.start);
            *total =
                multiply_normalized::<S, L>(&mut self.running, states, &self.outgoing, first, &mut lowest);
        }
        self.lowest = lowest;
        if self.is_damped.contains(&true) {
            self.store(factor);
        }
    }

    /// Updates all messages from labels at once, then all messages from factors.
    pub(super) fn flooding(&mut self) -> Change<L> {
        let graph = self.graph;
        let mut totals = [0.0f64; L];
        self.compute_cavities();
        for (factor, node) in graph.factors.iter().enumerate() {
            self.incoming[..node.slots.len()].copy_from_slice(&self.others[node.slots.clone()]);
            let before = self.factor_totals[factor];
            self.compute(factor);
            self.store(factor);
            let change = largest_change::<S, L>(&[self.factor_totals[factor]], &[before]);
            (0..L).for_each(|l| totals[l] = totals[l].max(change[l]));
        }
        self.multiply_messages();
        Change { marginals: self.finish_sweep(), totals }
    }

    /// Computes the cavity message of every edge: the label's belief times the messages of the edges before it and
    /// those after it.
    fn compute_cavities(&mut self) {
        wide!(self.compute_cavities_in());
    }

    #[inline(always)]
    fn compute_cavities_in(&mut self) {
        let graph = self.graph;
        self.running.copy_from_slice(&self.beliefs);
        for edge in graph.labels.iter().flat_map(|label| &label.edges).map(|&edge| &graph.edges[edge]) {
            self.others[edge.slots.clone()].copy_from_slice(&self.running[edge.states.clone()]);
            self.multiply_message(edge);
        }
        self.running.fill([S::ONE; L]);
        for edge in
            graph.labels.iter().flat_map(|label| label.edges.iter().rev()).map(|&edge| &graph.edges[edge])
        {
            multiply_slots::<S, L>(&mut self.others, edge.slots.clone(), &self.running, edge.states.start);
            normalize::<S, L>(&mut self.others, edge.slots.clone(), &mut self.lowest);
            self.multiply_message(edge);
        }
    }

    /// Multiplies the label's running product by the message of an edge. Returns the normalizing constant.
    #[inline(always)]
    fn multiply_message(&mut self, edge: &Edge) -> Lane<L> {
        let (states, first) = (edge.states.clone(), edge.slots.start);
        multiply_normalized::<S, L>(&mut self.running, states, &self.messages, first, &mut self.lowest)
    }

    /// Multiplies each label's belief by all its messages.
    fn multiply_messages(&mut self) {
        wide!(self.multiply_messages_in());
    }

    #[inline(always)]
    fn multiply_messages_in(&mut self) {
        let graph = self.graph;
        self.running.copy_from_slice(&self.beliefs);
        for (index, edge) in graph.edges.iter().enumerate() {
            self.edge_totals[index] = self.multiply_message(edge);
            multiply::<S, L>(&mut self.edge_totals[index], &self.message_totals[index]);
        }
    }

    /// Updates the factors whose labels have changed most, one update per factor of the graph. A pending change above
    /// the tolerance counts as a change of the marginals. This schedule runs one row at a time.
    ///
    /// The change of a factor's messages is not computed in advance. It is estimated by the change of the messages to
    /// its labels, as in Sutton and McCallum, "Improved dynamic schedules for belief propagation" (UAI 2007).
    pub(super) fn residual(&mut self, tolerance: f64) -> Change<L> {
        for _ in 0..self.graph.factors.len() {
            let Some(factor) = self.queue.pop(tolerance) else { break };
            self.update_alone(factor);
        }
        self.multiply_messages();
        let pending = self.queue.largest();
        let with_pending = |change: f64| if pending > tolerance { change.max(pending) } else { change };
        Change { marginals: self.finish_sweep().map(with_pending), totals: [0.0; L] }
    }

    fn update_alone(&mut self, factor: usize) {
        let graph = self.graph;
        let node = &graph.factors[factor];
        for edge in &graph.edges[node.edges.clone()] {
            let cavity = within(node.slots.start, edge);
            self.incoming[cavity.clone()].copy_from_slice(&self.beliefs[edge.states.clone()]);
            let all = graph.labels[edge.variable].edges.iter().map(|&edge| &graph.edges[edge]);
            for other in all.filter(|other| other.factor != factor) {
                multiply_slots::<S, L>(&mut self.incoming, cavity.clone(), &self.messages, other.slots.start);
                normalize::<S, L>(&mut self.incoming, cavity.clone(), &mut self.lowest);
            }
        }
        self.compute(factor);
        self.store(factor);
        for edge in &graph.edges[node.edges.clone()] {
            let before = &self.outgoing[within(node.slots.start, edge)];
            let change = largest_change::<S, L>(&self.messages[edge.slots.clone()], before)[0];
            for &other in graph.labels[edge.variable].edges.iter() {
                if graph.edges[other].factor != factor {
                    self.queue.raise(graph.edges[other].factor, change);
                }
            }
        }
    }

    /// Computes a factor's messages in `outgoing` from its cavity messages in `incoming`, with the row's damping.
    fn compute(&mut self, factor: usize) {
        wide!(self.compute_in(factor, Smallest::Unknown));
    }

    #[inline(always)]
    fn compute_in(&mut self, factor: usize, known: Smallest) {
        let graph = self.graph;
        let node = &graph.factors[factor];
        let (incoming, outgoing) =
            (&mut self.incoming[..node.slots.len()], &mut self.outgoing[..node.slots.len()]);
        if node.is_wide {
            for edge in &graph.edges[node.edges.clone()] {
                normalize::<S, L>(incoming, within(node.slots.start, edge), &mut self.lowest);
            }
        }
        let scratch = &mut self.scratch[..self.forms[factor].n_scratch()];
        self.forms[factor].send::<S, L>(incoming, outgoing, scratch);
        if S::SCALED {
            let edges = &graph.edges[node.edges.clone()];
            if known == Smallest::Unknown || node.is_wide {
                for (slot, edge) in self.smallest.iter_mut().zip(edges) {
                    *slot = smallest(&incoming[within(node.slots.start, edge)]);
                }
            }
            mark_underflow(
                &mut self.lowest,
                &self.forms[factor].smallest_product(&self.smallest[..edges.len()], scratch),
            );
        }
        let first = graph.edges[node.edges.start].slots.len();
        self.factor_totals[factor] = dot::<S, L>(&incoming[..first], &outgoing[..first]);
        update_minimum::<L>(&mut self.lowest, &self.factor_totals[factor]);
        if !self.cavities.is_empty() {
            self.cavities[node.slots.clone()].copy_from_slice(incoming);
        }
        if self.is_damped.contains(&true) {
            for edge in &graph.edges[node.edges.clone()] {
                let message = &mut outgoing[within(node.slots.start, edge)];
                damp::<S, L>(message, &self.messages[edge.slots.clone()], &self.damping);
            }
        }
    }

    /// Stores a factor's normalized messages. The previous messages are left in `outgoing`.
    #[inline(always)]
    fn store(&mut self, factor: usize) {
        let graph = self.graph;
        let node = &graph.factors[factor];
        for (index, edge) in node.edges.clone().zip(&graph.edges[node.edges.clone()]) {
            let message = within(node.slots.start, edge);
            // No total of a message is below its factor's total, which has been checked.
            self.message_totals[index] =
                normalize::<S, L>(&mut self.outgoing, message.clone(), &mut [f64::INFINITY; L]);
            self.messages[edge.slots.clone()].swap_with_slice(&mut self.outgoing[message]);
        }
    }

    /// Turns the running products into marginals. Returns the largest change of a category's marginal.
    fn finish_sweep(&mut self) -> Lane<L> {
        wide!(self.finish_sweep_in())
    }

    #[inline(always)]
    fn finish_sweep_in(&mut self) -> Lane<L> {
        let graph = self.graph;
        let mut largest = [0.0f64; L];
        for (index, label) in graph.labels.iter().enumerate() {
            self.label_totals[index] =
                normalize::<S, L>(&mut self.running, label.states.clone(), &mut self.lowest);
            for state in label.states.clone() {
                let running = &self.running[state];
                let (before, share) = (&mut self.marginals[state], &self.shares[state]);
                for l in 0..L {
                    let change = (S::probability(running[l]) - S::probability(before[l])).abs() * share[l];
                    largest[l] = if change > largest[l] { change } else { largest[l] };
                }
                *before = *running;
            }
        }
        largest
    }
}

/// The positions of an edge's slots among those of its factor.
#[inline(always)]
fn within(first: usize, edge: &Edge) -> Range<usize> {
    edge.slots.start - first..edge.slots.end - first
}
