//! Propagation of many rows. Each lane holds one row until it converges.

use std::sync::{Arc, OnceLock};

use rayon::prelude::*;

use super::form::Form;
use super::graph::{Graph, Node};
use super::merge::Weight;
use super::sweep::{Change, Direction, Messages, RowBeliefs};
use super::{LoopySettings, Schedule};
use crate::belief::BeliefMatrix;
use crate::error::Result;
use crate::infer::factor::{Factors, States};
use crate::infer::semiring::{Aim, Semiring};
use crate::label::LabelId;
use crate::log_space::{exp_positive, log_sum_exp, multiply_positive};
use crate::model::Model;
use crate::posterior::Stopped;

/// Number of rows that are propagated side by side.
const LANES: usize = 8;

/// Maximum number of rows in one parallel task.
const CHUNK: usize = 128;

/// Damping of the first and the second retry of a row that did not converge.
const RETRIES: [f64; 2] = [0.5, 0.8];

/// A model's factor graph in one semiring.
pub(super) struct Propagation<S> {
    model: Model,
    states: Arc<States>,
    graph: Graph,
    forms: Vec<Form>,
    /// The forms with log weights, created when the first row needs them.
    log_forms: OnceLock<Vec<Form>>,
    /// Whether all rule weights can be represented without logarithms.
    is_plain: bool,
    settings: LoopySettings,
    /// Damping of each attempt.
    dampings: Vec<f64>,
    semiring: std::marker::PhantomData<S>,
}

/// The result of one row.
pub(super) struct Answer {
    /// The marginal of every category, or its best weight under a maximum.
    pub(super) marginals: Vec<f64>,
    pub(super) log_evidence: f64,
    pub(super) stopped: Stopped,
    /// The agreement of each rule. Empty if it was not requested.
    pub(super) agreement: Vec<f64>,
}

/// The progress of one row in a lane.
struct Progress {
    row: usize,
    attempt: usize,
    sweeps: usize,
    is_running: bool,
    /// The marginals when they converged, while factor totals still change.
    converged: Option<(Vec<f64>, Stopped)>,
    /// The attempt with the smallest residual so far.
    best: Option<Answer>,
}

/// The requested results.
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
    pub(super) fn distinguishes(&self, label: LabelId, a: usize, b: usize) -> bool {
        self.states.of_category[label.index()][a] != self.states.of_category[label.index()][b]
    }

    /// The connected component of a label, or `None` for a label without rules. Components are independent.
    pub(super) fn component(&self, label: LabelId) -> Option<usize> {
        self.graph.labels.iter().find(|variable| variable.label == label).map(|variable| variable.component)
    }

    /// Bytes of the graph with its forms, and of the messages of one thread.
    pub(super) fn bytes(&self) -> [usize; 2] {
        // Each form is stored up to three times: with plain numbers, as elements of the semiring and, once a row
        // underflows, as logarithms.
        let values: usize = self.graph.factors.iter().map(|node| node.form.n_values()).sum();
        [3 * values * size_of::<f64>(), Messages::<S, LANES>::bytes(&self.graph, &self.forms)]
    }

    /// Propagates all rows and applies `finish` to each result. Results are in the order of the rows.
    pub(super) fn batch<T: Send>(
        &self,
        rows: &BeliefMatrix,
        finish: impl Fn(&[f64], Answer) -> T + Sync,
    ) -> Vec<T> {
        // Under the residual schedule the order of factors depends on the row, so each row runs alone.
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

    /// Propagates one row.
    pub(super) fn one(&self, row: &[f64], want: Want) -> Answer {
        let mut messages = Messages::<S, 1>::new(&self.graph, &self.forms, want == Want::Agreement);
        let answer = self.run_plain(&mut messages, &[row]).pop().flatten();
        answer.unwrap_or_else(|| self.in_logarithms(row, want))
    }

    /// Propagates rows without logarithms. The result is `None` for a row that needs logarithms.
    fn run_plain<const L: usize>(
        &self,
        messages: &mut Messages<'_, S, L>,
        rows: &[&[f64]],
    ) -> Vec<Option<Answer>> {
        if self.is_plain { self.run(messages, rows) } else { rows.iter().map(|_| None).collect() }
    }

    /// Propagates one row in logarithms.
    fn in_logarithms(&self, row: &[f64], want: Want) -> Answer {
        let elements = || self.graph.factors.iter().map(|node| node.form.elements::<S::Log>()).collect();
        let forms = self.log_forms.get_or_init(elements);
        let mut messages = Messages::<S::Log, 1>::new(&self.graph, forms, want == Want::Agreement);
        let answer = self.run(&mut messages, &[row]).pop().flatten();
        // Logarithms do not underflow, so only an exact zero stops this run: the row is impossible.
        answer.unwrap_or_else(|| Answer {
            marginals: vec![0.0; row.len()],
            log_evidence: f64::NEG_INFINITY,
            stopped: Stopped::Exact,
            agreement: vec![0.0; self.model.rules().len()],
        })
    }

    /// Propagates rows, at most `L` at a time. The result is `None` for a row in which a product may have underflowed.
    ///
    /// A row that has converged leaves its lane. The next row enters the lane before the next forward sweep.
    fn run<R: Semiring, const L: usize>(
        &self,
        messages: &mut Messages<'_, R, L>,
        rows: &[&[f64]],
    ) -> Vec<Option<Answer>> {
        let mut answers: Vec<Option<Answer>> = rows.iter().map(|_| None).collect();
        let mut remaining = 0..rows.len();
        let mut lanes: [Option<Progress>; L] = std::array::from_fn(|_| None);
        let mut beliefs = Beliefs::default();
        for lane in rows.len()..L {
            // An unused lane repeats the first row.
            messages.start(lane, &beliefs.load::<R>(&self.graph, &self.model, &self.states, rows[0]), 0.0);
        }
        loop {
            for (lane, progress) in lanes.iter_mut().enumerate() {
                if progress.is_none() {
                    *progress = remaining.next().map(Progress::new);
                }
                if let Some(progress) = progress
                    && !progress.is_running
                {
                    let row = beliefs.load::<R>(&self.graph, &self.model, &self.states, rows[progress.row]);
                    messages.start(lane, &row, self.dampings[progress.attempt]);
                    progress.is_running = true;
                }
            }
            if lanes.iter().all(Option::is_none) {
                return answers;
            }
            for direction in [Direction::Forward, Direction::Backward] {
                let change = match self.settings.schedule {
                    Schedule::Sequential => messages.sequential(direction),
                    Schedule::Flooding => messages.flooding(),
                    Schedule::Residual => messages.residual(self.settings.tolerance),
                };
                for (lane, slot) in lanes.iter_mut().enumerate() {
                    let Some(progress) = slot.as_mut().filter(|progress| progress.is_running) else {
                        continue;
                    };
                    if self.is_done(messages, lane, &change, progress, rows[progress.row]) {
                        answers[progress.row] = progress.best.take();
                        *slot = None;
                    }
                }
            }
        }
    }

    /// Updates a row's progress after a sweep, and returns whether the row is done. It is done if it has converged, if
    /// all attempts have failed, or if a product may have underflowed. In the last case it has no result.
    fn is_done<R: Semiring, const L: usize>(
        &self,
        messages: &Messages<'_, R, L>,
        lane: usize,
        change: &Change<L>,
        progress: &mut Progress,
        row: &[f64],
    ) -> bool {
        progress.sweeps += 1;
        if !messages.is_sound(lane) {
            progress.best = None;
            return true;
        }
        let (sweeps, residual) = (progress.sweeps, change.marginals[lane]);
        let LoopySettings { schedule, tolerance, max_sweeps, .. } = self.settings;
        // After a single forward sweep, no message of the last factors has arrived at the first ones.
        let has_both_directions = sweeps > 1 || schedule != Schedule::Sequential;
        if progress.converged.is_none() && residual <= tolerance && has_both_directions {
            progress.converged =
                Some((self.category_marginals(messages, lane, row), Stopped::Converged { sweeps, residual }));
        }
        let is_last_sweep = sweeps == max_sweeps;
        if let Some((marginals, stopped)) =
            progress.converged.take_if(|_| change.totals[lane] <= tolerance || is_last_sweep)
        {
            progress.best = Some(self.answer(messages, lane, marginals, stopped));
            return true;
        }
        if !is_last_sweep {
            return false;
        }
        if progress.best.as_ref().is_none_or(|best| residual < best.stopped.residual()) {
            let marginals = self.category_marginals(messages, lane, row);
            progress.best =
                Some(self.answer(messages, lane, marginals, Stopped::NotConverged { sweeps, residual }));
        }
        progress.attempt += 1;
        progress.sweeps = 0;
        progress.is_running = false;
        progress.attempt == self.dampings.len()
    }

    fn answer<R: Semiring, const L: usize>(
        &self,
        messages: &Messages<'_, R, L>,
        lane: usize,
        marginals: Vec<f64>,
        stopped: Stopped,
    ) -> Answer {
        Answer {
            marginals,
            log_evidence: messages.log_evidence(lane),
            stopped,
            agreement: self.agreement(messages, lane),
        }
    }

    /// The marginal of every category: that of its state, times the category's share of the state's belief. A label
    /// without rules keeps its belief.
    fn category_marginals<R: Semiring, const L: usize>(
        &self,
        messages: &Messages<'_, R, L>,
        lane: usize,
        row: &[f64],
    ) -> Vec<f64> {
        let mut marginals = row.to_vec();
        for variable in &self.graph.labels {
            let of_category = &self.states.of_category[variable.label.index()];
            for (&state, value) in of_category.iter().zip(&mut marginals[self.model.block(variable.label)]) {
                let state = variable.states.start + state;
                let (marginal, belief) = (messages.marginals[state][lane], messages.beliefs[state][lane]);
                *value = match *value {
                    // If the state's belief is 0 too, the share would be 0 / 0.
                    0.0 => 0.0,
                    value if R::SCALED => multiply_positive(marginal, value / belief),
                    value => exp_positive(marginal + (value.ln() - belief)),
                };
            }
        }
        marginals
    }

    /// The agreement of every rule, P(R_k = 1 | R_-k = 1), under the cavity messages to its factor.
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
            for (rule, value) in
                node.rules.iter().zip(agreement_within(&self.cavities(messages, node, lane), node))
            {
                agreement[rule.index()] = value;
            }
        }
        agreement
    }

    /// The log probability of every combination of states of a factor's labels, under its normalized cavity messages.
    /// The last label varies fastest.
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

/// The agreement of each rule of a merged table: Z with the rule, divided by Z without it.
///
/// `log_cavities` has the log probability of every combination of states. Z without a rule uses the products of the
/// rules before it and after it, so no step divides by a weight of 0.
fn agreement_within(log_cavities: &[f64], node: &Node) -> Vec<f64> {
    let multiply =
        |a: &[f64], b: &[Weight]| -> Vec<f64> { a.iter().zip(b).map(|(a, b)| a + b.log).collect() };
    let mut after = vec![vec![0.0; log_cavities.len()]];
    for weights in node.weights.iter().rev() {
        after.push(multiply(&after[after.len() - 1], weights));
    }
    let mut before = log_cavities.to_vec();
    let mut agreement = Vec::with_capacity(node.rules.len());
    after.pop();
    for weights in &node.weights {
        let after = after.pop().expect("one for each rule");
        let others: Vec<f64> = before.iter().zip(&after).map(|(a, b)| a + b).collect();
        let without = log_sum_exp(&others);
        let with = log_sum_exp(&multiply(&others, weights));
        agreement.push(if without > f64::NEG_INFINITY { (with - without).exp() } else { 0.0 });
        before = multiply(&before, weights);
    }
    agreement
}

impl Progress {
    fn new(row: usize) -> Self {
        Self { row, attempt: 0, sweeps: 0, is_running: false, converged: None, best: None }
    }
}

/// Buffers for a row's beliefs by state.
#[derive(Default)]
struct Beliefs {
    elements: Vec<f64>,
    shares: Vec<f64>,
}

impl Beliefs {
    /// Combines the beliefs of categories that no rule distinguishes: their sum, or their maximum under max-product.
    fn load<R: Semiring>(
        &mut self,
        graph: &Graph,
        model: &Model,
        states: &States,
        row: &[f64],
    ) -> RowBeliefs<'_> {
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
        RowBeliefs { elements: &self.elements, shares: &self.shares }
    }
}
