//! Rows through lanes: seated, swept until they rest, answered.

use std::sync::{Arc, OnceLock};

use rayon::prelude::*;

use super::form::Form;
use super::graph::{Graph, Node};
use super::merge::Weight;
use super::sweep::{Change, Direction, Messages, Taken};
use super::{LoopySettings, Schedule};
use crate::belief::BeliefMatrix;
use crate::error::Result;
use crate::infer::factor::{Factors, States};
use crate::infer::semiring::{Aim, Semiring};
use crate::label::LabelId;
use crate::log_space::{exp_positive, log_sum_exp, multiply_positive};
use crate::model::Model;
use crate::posterior::Stopped;

/// How many rows run side by side.
const LANES: usize = 8;

/// The most rows that one thread takes at once.
const CHUNK: usize = 128;

/// The dampings with which a row that does not converge is tried again.
const RETRIES: [f64; 2] = [0.5, 0.8];

/// A model's factor graph in one semiring.
pub(super) struct Propagation<S> {
    model: Model,
    states: Arc<States>,
    graph: Graph,
    forms: Vec<Form>,
    /// The same in logarithms, once a row needs them.
    log_forms: OnceLock<Vec<Form>>,
    /// Whether plain numbers hold what all rules weigh by.
    is_plain: bool,
    settings: LoopySettings,
    /// The dampings to be tried, one after the other.
    dampings: Vec<f64>,
    semiring: std::marker::PhantomData<S>,
}

/// What propagation says about one row: for every category its marginal (or best weight), and ln Z.
pub(super) struct Answer {
    pub(super) masses: Vec<f64>,
    pub(super) log_evidence: f64,
    pub(super) stopped: Stopped,
    /// How far everything else agrees with each rule; empty if it was not asked for.
    pub(super) agreement: Vec<f64>,
}

/// A row on its way.
struct Seat {
    row: usize,
    attempt: usize,
    sweeps: usize,
    is_running: bool,
    /// Its masses when the marginals came to rest, while other numbers still move.
    rested: Option<(Vec<f64>, Stopped)>,
    /// The attempt that came nearest to rest.
    best: Option<Answer>,
}

/// Whether agreement is wanted beside the marginals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Want {
    Marginals,
    Agreement,
}

impl<S: Semiring> Propagation<S> {
    pub(super) fn compile(
        model: &Model,
        factors: &Factors,
        aim: Aim,
        settings: LoopySettings,
    ) -> Result<Self> {
        let graph = Graph::new(factors, aim, settings.merge)?;
        let is_plain = graph.factors.iter().all(|node| node.form.is_plain());
        let forms = graph.factors.iter().map(|node| node.form.elements::<S>()).collect();
        Ok(Self {
            model: model.clone(),
            states: Arc::clone(&factors.states),
            graph,
            forms,
            log_forms: OnceLock::new(),
            is_plain,
            dampings: std::iter::once(settings.damping)
                .chain(RETRIES.into_iter().filter(|&other| settings.retry && other > settings.damping))
                .collect(),
            settings,
            semiring: std::marker::PhantomData,
        })
    }

    /// Whether any rule treats two categories of a label differently.
    pub(super) fn tells_apart(&self, label: LabelId, a: usize, b: usize) -> bool {
        self.states.of_category[label.index()][a] != self.states.of_category[label.index()][b]
    }

    /// Labels of different components have nothing to do with each other; none for a label without rules.
    pub(super) fn component(&self, label: LabelId) -> Option<usize> {
        self.graph.labels.iter().find(|variable| variable.label == label).map(|variable| variable.component)
    }

    /// Bytes of the graph with its forms, and of the messages of one thread.
    pub(super) fn bytes(&self) -> [usize; 2] {
        // The forms are stored as they are, as elements of the semiring and, if a row underflows, as logarithms.
        let values: usize = self.graph.factors.iter().map(|node| node.form.n_values()).sum();
        [3 * values * size_of::<f64>(), Messages::<S, LANES>::bytes(&self.graph, &self.forms)]
    }

    /// Every row's answer, made into whatever `finish` makes of it, in order.
    pub(super) fn batch<T: Send>(
        &self,
        rows: &BeliefMatrix,
        finish: impl Fn(&[f64], Answer) -> T + Sync,
    ) -> Vec<T> {
        // Which factor speaks next depends on the row, so rows with a schedule of their own run alone.
        if self.settings.schedule == Schedule::Residual || rows.n_rows() == 1 {
            self.batch_in::<T, 1>(rows, finish)
        } else {
            self.batch_in::<T, LANES>(rows, finish)
        }
    }

    fn batch_in<T: Send, const L: usize>(
        &self,
        rows: &BeliefMatrix,
        finish: impl Fn(&[f64], Answer) -> T + Sync,
    ) -> Vec<T> {
        let share = rows.n_rows().div_ceil(4 * rayon::current_num_threads());
        let chunk = share.next_multiple_of(L).clamp(L, CHUNK);
        let starts: Vec<usize> = (0..rows.n_rows()).step_by(chunk).collect();
        let answer = |messages: &mut Messages<'_, S, L>, start: usize| -> Vec<T> {
            let rows: Vec<&[f64]> =
                (start..rows.n_rows().min(start + chunk)).map(|row| rows.values_of(row)).collect();
            let answers = self.run_plain(messages, &rows);
            rows.iter()
                .zip(answers)
                .map(|(row, answer)| {
                    finish(row, answer.unwrap_or_else(|| self.in_logarithms(row, Want::Marginals)))
                })
                .collect()
        };
        let create = || Messages::new(&self.graph, &self.forms, false);
        let parts: Vec<Vec<T>> = starts.into_par_iter().map_init(create, answer).collect();
        parts.into_iter().flatten().collect()
    }

    /// One row's answer.
    pub(super) fn one(&self, row: &[f64], want: Want) -> Answer {
        let mut messages = Messages::<S, 1>::new(&self.graph, &self.forms, want == Want::Agreement);
        let answer = self.run_plain(&mut messages, &[row]).pop().flatten();
        answer.unwrap_or_else(|| self.in_logarithms(row, want))
    }

    /// The answers with plain numbers, `None` where these do not do.
    fn run_plain<const L: usize>(
        &self,
        messages: &mut Messages<'_, S, L>,
        rows: &[&[f64]],
    ) -> Vec<Option<Answer>> {
        if self.is_plain { self.run(messages, rows) } else { rows.iter().map(|_| None).collect() }
    }

    fn in_logarithms(&self, row: &[f64], want: Want) -> Answer {
        let elements = || self.graph.factors.iter().map(|node| node.form.elements::<S::Log>()).collect();
        let forms = self.log_forms.get_or_init(elements);
        let mut messages = Messages::<S::Log, 1>::new(&self.graph, forms, want == Want::Agreement);
        let answer = self.run(&mut messages, &[row]).pop().flatten();
        // In logarithms only a true zero is not to be trusted further: nothing is possible.
        answer.unwrap_or_else(|| Answer {
            masses: vec![0.0; row.len()],
            log_evidence: f64::NEG_INFINITY,
            stopped: Stopped::Exact,
            agreement: vec![0.0; self.model.rules().len()],
        })
    }

    /// The answers of all rows, as many at a time as there are lanes; `None` where something may have underflowed.
    ///
    /// A row leaves its lane when it has come to rest, and the next one takes its seat before the next forward sweep.
    fn run<R: Semiring, const L: usize>(
        &self,
        messages: &mut Messages<'_, R, L>,
        rows: &[&[f64]],
    ) -> Vec<Option<Answer>> {
        let mut answers: Vec<Option<Answer>> = rows.iter().map(|_| None).collect();
        let mut waiting = 0..rows.len();
        let mut seats: [Option<Seat>; L] = std::array::from_fn(|_| None);
        let mut taken = Beliefs::default();
        for lane in rows.len()..L {
            // A lane without a row repeats the first.
            messages.seat(lane, &taken.take::<R>(&self.graph, &self.model, &self.states, rows[0]), 0.0);
        }
        loop {
            for (lane, seat) in seats.iter_mut().enumerate() {
                if seat.is_none() {
                    *seat = waiting.next().map(Seat::new);
                }
                if let Some(seat) = seat
                    && !seat.is_running
                {
                    let row = taken.take::<R>(&self.graph, &self.model, &self.states, rows[seat.row]);
                    messages.seat(lane, &row, self.dampings[seat.attempt]);
                    seat.is_running = true;
                }
            }
            if seats.iter().all(Option::is_none) {
                return answers;
            }
            for direction in [Direction::Forward, Direction::Backward] {
                let change = match self.settings.schedule {
                    Schedule::Sequential => messages.sequential(direction),
                    Schedule::Flooding => messages.flooding(),
                    Schedule::Residual => messages.residual(self.settings.tolerance),
                };
                for (lane, slot) in seats.iter_mut().enumerate() {
                    let Some(seat) = slot.as_mut().filter(|seat| seat.is_running) else { continue };
                    if self.is_done(messages, lane, &change, seat, rows[seat.row]) {
                        answers[seat.row] = seat.best.take();
                        *slot = None;
                    }
                }
            }
        }
    }

    /// Looks at a row after a sweep. It is done when it has come to rest, when all attempts have failed, or when it
    /// cannot be trusted: then without an answer.
    fn is_done<R: Semiring, const L: usize>(
        &self,
        messages: &Messages<'_, R, L>,
        lane: usize,
        change: &Change<L>,
        seat: &mut Seat,
        row: &[f64],
    ) -> bool {
        seat.sweeps += 1;
        if !messages.is_sound(lane) {
            seat.best = None;
            return true;
        }
        let (sweeps, residual) = (seat.sweeps, change.marginals[lane]);
        let LoopySettings { schedule, tolerance, max_sweeps, .. } = self.settings;
        // A sweep forward alone has not told the first factors what the last ones know.
        let is_told = sweeps > 1 || schedule != Schedule::Sequential;
        if seat.rested.is_none() && residual <= tolerance && is_told {
            seat.rested = Some((self.masses(messages, lane, row), Stopped::Converged { sweeps, residual }));
        }
        let is_over = sweeps == max_sweeps;
        if let Some((masses, stopped)) = seat.rested.take_if(|_| change.totals[lane] <= tolerance || is_over)
        {
            seat.best = Some(self.answer(messages, lane, masses, stopped));
            return true;
        }
        if !is_over {
            return false;
        }
        if seat.best.as_ref().is_none_or(|best| residual < best.stopped.residual()) {
            let masses = self.masses(messages, lane, row);
            seat.best = Some(self.answer(messages, lane, masses, Stopped::NotConverged { sweeps, residual }));
        }
        seat.attempt += 1;
        seat.sweeps = 0;
        seat.is_running = false;
        seat.attempt == self.dampings.len()
    }

    fn answer<R: Semiring, const L: usize>(
        &self,
        messages: &Messages<'_, R, L>,
        lane: usize,
        masses: Vec<f64>,
        stopped: Stopped,
    ) -> Answer {
        Answer {
            masses,
            log_evidence: messages.log_evidence(lane),
            stopped,
            agreement: self.agreement(messages, lane),
        }
    }

    /// For every category its state's marginal times its share of the state's belief. A label that no rule speaks
    /// about keeps its belief.
    fn masses<R: Semiring, const L: usize>(
        &self,
        messages: &Messages<'_, R, L>,
        lane: usize,
        row: &[f64],
    ) -> Vec<f64> {
        let mut masses = row.to_vec();
        for variable in &self.graph.labels {
            let of_category = &self.states.of_category[variable.label.index()];
            for (&state, mass) in of_category.iter().zip(&mut masses[self.model.block(variable.label)]) {
                let state = variable.states.start + state;
                let (marginal, belief) = (messages.marginals[state][lane], messages.beliefs[state][lane]);
                *mass = match *mass {
                    // A belief of 0 in a state of belief 0 would be 0 / 0.
                    0.0 => 0.0,
                    mass if R::SCALED => multiply_positive(marginal, mass / belief),
                    mass => exp_positive(marginal + (mass.ln() - belief)),
                };
            }
        }
        masses
    }

    /// P(R_k | R_-k) under the cavities of the factor that the rule is in.
    fn agreement<R: Semiring, const L: usize>(&self, messages: &Messages<'_, R, L>, lane: usize) -> Vec<f64> {
        if messages.cavities.is_empty() && !self.graph.factors.is_empty() {
            return Vec::new();
        }
        let mut agreement = vec![1.0; self.model.rules().len()];
        for &(rule, weight) in &self.graph.constants {
            agreement[rule.index()] = weight;
        }
        for (factor, node) in self.graph.factors.iter().enumerate() {
            if let [rule] = node.rules[..] {
                agreement[rule.index()] = R::probability(messages.factor_total(factor, lane));
                continue;
            }
            for (rule, agrees) in
                node.rules.iter().zip(agreement_within(&self.cavities(messages, node, lane), node))
            {
                agreement[rule.index()] = agrees;
            }
        }
        agreement
    }

    /// ln of the probability of every combination of a factor's labels' states under its cavities, the last label fastest.
    fn cavities<R: Semiring, const L: usize>(
        &self,
        messages: &Messages<'_, R, L>,
        node: &Node,
        lane: usize,
    ) -> Vec<f64> {
        let mut joint = vec![0.0];
        for edge in &self.graph.edges[node.edges.clone()] {
            let cavity = &messages.cavities[edge.slots.clone()];
            let total = R::inverse(cavity.iter().fold(R::ZERO, |total, c| R::add(total, c[lane])));
            let cavity: Vec<f64> = cavity.iter().map(|c| R::ln(R::mul(c[lane], total))).collect();
            joint = joint.iter().flat_map(|a| cavity.iter().map(move |b| a + b)).collect();
        }
        joint
    }
}

/// For each rule of a merged table Z with it, divided by Z without it, from the logarithms of the cavities: the products of the
/// rules before and behind it are at hand, so nothing is divided by a weight of 0.
fn agreement_within(log_cavities: &[f64], node: &Node) -> Vec<f64> {
    let multiply =
        |a: &[f64], b: &[Weight]| -> Vec<f64> { a.iter().zip(b).map(|(a, b)| a + b.log).collect() };
    let mut behind = vec![vec![0.0; log_cavities.len()]];
    for weights in node.weights.iter().rev() {
        behind.push(multiply(&behind[behind.len() - 1], weights));
    }
    let mut before = log_cavities.to_vec();
    let mut agreement = Vec::with_capacity(node.rules.len());
    behind.pop();
    for weights in &node.weights {
        let behind = behind.pop().expect("one for each rule");
        let others: Vec<f64> = before.iter().zip(&behind).map(|(a, b)| a + b).collect();
        let without = log_sum_exp(&others);
        let with = log_sum_exp(&multiply(&others, weights));
        agreement.push(if without > f64::NEG_INFINITY { (with - without).exp() } else { 0.0 });
        before = multiply(&before, weights);
    }
    agreement
}

impl Seat {
    fn new(row: usize) -> Self {
        Self { row, attempt: 0, sweeps: 0, is_running: false, rested: None, best: None }
    }
}

/// A row's beliefs by state.
#[derive(Default)]
struct Beliefs {
    elements: Vec<f64>,
    shares: Vec<f64>,
}

impl Beliefs {
    /// Adds up the beliefs of the categories that no rule tells apart (or takes their maximum).
    fn take<R: Semiring>(&mut self, graph: &Graph, model: &Model, states: &States, row: &[f64]) -> Taken<'_> {
        self.elements.clear();
        self.elements.resize(graph.n_states(), R::ZERO);
        self.shares.clear();
        self.shares.resize(graph.n_states(), 0.0);
        for variable in &graph.labels {
            let of_category = &states.of_category[variable.label.index()];
            for (&state, &belief) in of_category.iter().zip(&row[model.block(variable.label)]) {
                let state = variable.states.start + state;
                self.elements[state] = R::add(self.elements[state], R::element(belief));
                self.shares[state] = self.shares[state].max(belief);
            }
        }
        for (share, &element) in self.shares.iter_mut().zip(&self.elements) {
            *share = if *share > 0.0 { *share / R::probability(element) } else { 1.0 };
        }
        Taken { elements: &self.elements, shares: &self.shares }
    }
}
