//! Messages of several rows side by side, and the sweeps in which they change.
//!
//! Every number is a lane: one value per row. Lanes never mix, so a row's messages are the same whatever its
//! neighbors, and a lane whose row is done may go on computing what nobody reads.

mod lanes;
mod queue;

use std::ops::Range;

use super::form::{Form, Lane, smallest};
use super::graph::{Edge, Graph};
use crate::infer::semiring::{Semiring, wide};
use lanes::{
    damp, dot, largest_change, lower, lower_positive, multiply, multiply_normalized, multiply_slots,
    normalize, note_small, sum,
};
use queue::Queue;

/// Which way a sequential sweep goes through the factors. The other schedules do not care.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Forward,
    Backward,
}

/// Whether the smallest positive cavities of a factor's labels are known when it speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Smallest {
    Known,
    Unknown,
}

/// How far a sweep has moved each row.
pub(super) struct Change<const L: usize> {
    /// The largest change of a marginal.
    pub(super) marginals: Lane<L>,
    /// The largest change of a factor's total, where that may still move when the marginals rest: a category that rules
    /// exclude stays at zero while what everything else says of it is on its way.
    pub(super) totals: Lane<L>,
}

/// A belief about one label, as a lane takes it in: its states' elements, and how much of each the most probable of
/// its categories has.
pub(super) struct Taken<'a> {
    pub(super) elements: &'a [f64],
    pub(super) shares: &'a [f64],
}

/// The messages of `L` rows.
///
/// # The sequential sweep
///
/// Factors speak one after the other, each with the newest messages. For label j with edges 1 … n in this order, factor
/// i needs the product of the belief and all other messages, before it the new ones and behind it the old ones:
///
/// ```text
/// cavityᵢ = (π μ₁ … μᵢ₋₁) (μᵢ₊₁ … μₙ)                                              (1)
/// ```
///
/// The left part is the label's running product. The right part was the running product when the previous sweep came
/// past, from the other side. So each edge keeps one vector, `others`: it is read as the one and left behind as the
/// other (2). A sweep costs a few operations per edge whatever the degree of the labels, and divides by no message.
///
/// # The Bethe value
///
/// With Zₖ the total of factor k under its normalized cavities, Zⱼ that of label j, and Zₑ = Σ cavity · message that of
/// an edge,
///
/// ```text
/// ln Z = Σₖ ln Zₖ + Σⱼ ln Zⱼ − Σₑ ln Zₑ                                             (3)
/// ```
///
/// A message m̂ from factor k that is not normalized has Σ cavity · m̂ = Zₖ, that is Zₑ = Zₖ / tₑ for m̂ = tₑ μ. Zⱼ is the
/// product of what the running product is divided by, edge after edge. With uₑ what it is divided by when it takes in
/// m̂ itself,
///
/// ```text
/// ln Z = Σₖ (1 − degreeₖ) ln Zₖ + Σₑ ln uₑ + Σⱼ ln vⱼ                                (4)
/// ```
///
/// where vⱼ is what is left at the end. Scaling a cavity changes nothing in (4): it cancels between Zₖ and the uₑ of the
/// factor's other edges, so cavities need not be normalized. Checked in `trees_are_exact`.
pub(super) struct Messages<'a, S, const L: usize> {
    graph: &'a Graph,
    forms: &'a [Form],
    /// The rows' beliefs, by state.
    pub(super) beliefs: Vec<Lane<L>>,
    /// How much of a state's belief its most probable category has.
    shares: Vec<Lane<L>>,
    /// What each label's product has come to.
    running: Vec<Lane<L>>,
    /// The labels' marginals (or best weights) after the last sweep, normalized.
    pub(super) marginals: Vec<Lane<L>>,
    /// From factors to labels, normalized, by slot.
    messages: Vec<Lane<L>>,
    /// From the other factors to the label, by slot.
    others: Vec<Lane<L>>,
    /// The cavities with which each factor last spoke, if they are kept.
    pub(super) cavities: Vec<Lane<L>>,
    /// What the messages were divided by when they were kept.
    message_totals: Vec<Lane<L>>,
    /// Zₖ, uₑ and vⱼ.
    factor_totals: Vec<Lane<L>>,
    edge_totals: Vec<Lane<L>>,
    label_totals: Vec<Lane<L>>,
    /// 1 − damping and damping, as elements.
    damping: [Lane<L>; 2],
    is_damped: [bool; L],
    /// The smallest total so far: below the semiring's floor the row is not to be trusted.
    lowest: Lane<L>,
    incoming: Vec<Lane<L>>,
    outgoing: Vec<Lane<L>>,
    scratch: Vec<Lane<L>>,
    /// The smallest positive cavity of each label of a factor.
    smallest: Vec<Lane<L>>,
    queue: Queue,
    semiring: std::marker::PhantomData<S>,
}

impl<'a, S: Semiring, const L: usize> Messages<'a, S, L> {
    /// Bytes that the messages of a graph take without cavities.
    pub(super) fn bytes(graph: &Graph, forms: &[Form]) -> usize {
        let largest = graph.factors.iter().map(|node| node.slots.len()).max().unwrap_or(0);
        let scratch = forms.iter().map(Form::n_scratch).max().unwrap_or(0);
        let (n_edges, n_nodes) = (graph.edges.len(), graph.factors.len() + graph.labels.len());
        let n_lanes =
            4 * graph.n_states() + 2 * graph.n_slots() + 2 * n_edges + n_nodes + 2 * largest + scratch;
        n_lanes * size_of::<Lane<L>>()
    }

    /// Memory for a graph; with `keep_cavities` every factor's cavities can be read afterwards.
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

    /// Seats a row in a lane: its beliefs, and messages that say nothing yet.
    pub(super) fn seat(&mut self, lane: usize, row: &Taken<'_>, damping: f64) {
        for state in 0..self.beliefs.len() {
            self.beliefs[state][lane] = row.elements[state];
            self.shares[state][lane] = row.shares[state];
            self.marginals[state][lane] = row.elements[state];
        }
        let graph = self.graph;
        for edge in &graph.edges {
            // ⊕ over the states is one: the normalized message that says nothing.
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

    /// Whether a lane's numbers can be trusted: nothing has come near zero.
    pub(super) fn is_sound(&self, lane: usize) -> bool {
        self.lowest[lane] >= S::FLOOR
    }

    /// (4)
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

    /// Zₖ of one factor; its cavities must have been kept.
    pub(super) fn factor_total(&self, factor: usize, lane: usize) -> f64 {
        let edges = &self.graph.edges[self.graph.factors[factor].edges.clone()];
        edges.iter().fold(self.factor_totals[factor][lane], |total, edge| {
            let cavity = sum::<S, L>(&self.cavities, edge.slots.clone())[lane];
            S::mul(total, S::inverse(cavity))
        })
    }

    /// Every factor speaks once, in order or from the last to the first.
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
            self.speak_in_turn(factor);
        }
        if direction == Direction::Backward {
            multiply_slots::<S, L>(&mut self.running, 0..self.beliefs.len(), &self.beliefs, 0);
        }
        Change { marginals: self.settle_in(), totals: [0.0; L] }
    }

    #[inline(always)]
    fn speak_in_turn(&mut self, factor: usize) {
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
                    lower_positive(&mut smallest, &cavity);
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

    /// All labels speak at once, then all factors.
    pub(super) fn flooding(&mut self) -> Change<L> {
        let graph = self.graph;
        let mut totals = [0.0f64; L];
        self.fill_cavities();
        for (factor, node) in graph.factors.iter().enumerate() {
            self.incoming[..node.slots.len()].copy_from_slice(&self.others[node.slots.clone()]);
            let before = self.factor_totals[factor];
            self.compute(factor);
            self.store(factor);
            let change = largest_change::<S, L>(&[self.factor_totals[factor]], &[before]);
            (0..L).for_each(|l| totals[l] = totals[l].max(change[l]));
        }
        self.multiply_up();
        Change { marginals: self.settle(), totals }
    }

    /// The product of each label's belief and all messages but one, for every edge: those before it times those
    /// behind it.
    fn fill_cavities(&mut self) {
        wide!(self.fill_cavities_in());
    }

    #[inline(always)]
    fn fill_cavities_in(&mut self) {
        let graph = self.graph;
        self.running.copy_from_slice(&self.beliefs);
        for edge in graph.labels.iter().flat_map(|label| &label.edges).map(|&edge| &graph.edges[edge]) {
            self.others[edge.slots.clone()].copy_from_slice(&self.running[edge.states.clone()]);
            self.take_in(edge);
        }
        self.running.fill([S::ONE; L]);
        for edge in
            graph.labels.iter().flat_map(|label| label.edges.iter().rev()).map(|&edge| &graph.edges[edge])
        {
            multiply_slots::<S, L>(&mut self.others, edge.slots.clone(), &self.running, edge.states.start);
            normalize::<S, L>(&mut self.others, edge.slots.clone(), &mut self.lowest);
            self.take_in(edge);
        }
    }

    /// The label's running product takes in the message of an edge; what it was divided by.
    #[inline(always)]
    fn take_in(&mut self, edge: &Edge) -> Lane<L> {
        let (states, first) = (edge.states.clone(), edge.slots.start);
        multiply_normalized::<S, L>(&mut self.running, states, &self.messages, first, &mut self.lowest)
    }

    /// The products of beliefs and all messages.
    fn multiply_up(&mut self) {
        wide!(self.multiply_up_in());
    }

    #[inline(always)]
    fn multiply_up_in(&mut self) {
        let graph = self.graph;
        self.running.copy_from_slice(&self.beliefs);
        for (index, edge) in graph.edges.iter().enumerate() {
            self.edge_totals[index] = self.take_in(edge);
            multiply::<S, L>(&mut self.edge_totals[index], &self.message_totals[index]);
        }
    }

    /// The factors whose labels have changed most speak first, as many times as there are factors. What is still to be
    /// heard counts as a change if it is above the tolerance. One row at a time.
    ///
    /// How far a factor's messages would change is not computed but estimated by how far the messages to its labels
    /// have, after Sutton and McCallum, "Improved dynamic schedules for belief propagation" (UAI 2007).
    pub(super) fn residual(&mut self, tolerance: f64) -> Change<L> {
        for _ in 0..self.graph.factors.len() {
            let Some(factor) = self.queue.pop(tolerance) else { break };
            self.speak_alone(factor);
        }
        self.multiply_up();
        let waiting = self.queue.largest();
        let heard = |change: f64| if waiting > tolerance { change.max(waiting) } else { change };
        Change { marginals: self.settle().map(heard), totals: [0.0; L] }
    }

    fn speak_alone(&mut self, factor: usize) {
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

    /// A factor's messages, given its cavities: from `incoming` to `outgoing`, damped if the row asks for it.
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
            note_small(&mut self.lowest, &self.forms[factor].least(&self.smallest[..edges.len()], scratch));
        }
        let first = graph.edges[node.edges.start].slots.len();
        self.factor_totals[factor] = dot::<S, L>(&incoming[..first], &outgoing[..first]);
        lower::<L>(&mut self.lowest, &self.factor_totals[factor]);
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

    /// Keeps what a factor has said, normalized; what it said before is left in `outgoing`.
    #[inline(always)]
    fn store(&mut self, factor: usize) {
        let graph = self.graph;
        let node = &graph.factors[factor];
        for (index, edge) in node.edges.clone().zip(&graph.edges[node.edges.clone()]) {
            let message = within(node.slots.start, edge);
            // No total of a message is below its factor's, which has been looked at.
            self.message_totals[index] =
                normalize::<S, L>(&mut self.outgoing, message.clone(), &mut [f64::INFINITY; L]);
            self.messages[edge.slots.clone()].swap_with_slice(&mut self.outgoing[message]);
        }
    }

    /// The running products become the marginals; the largest change of a category's.
    fn settle(&mut self) -> Lane<L> {
        wide!(self.settle_in())
    }

    #[inline(always)]
    fn settle_in(&mut self) -> Lane<L> {
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

/// Where an edge's slots are among those of its factor.
#[inline(always)]
fn within(first: usize, edge: &Edge) -> Range<usize> {
    edge.slots.start - first..edge.slots.end - first
}
