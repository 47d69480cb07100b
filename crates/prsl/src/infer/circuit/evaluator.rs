//! A compiled circuit for one query: rows in, ln Z and masses of categories out.

use std::sync::Arc;

use rayon::prelude::*;

use super::layout::{Constants, LabelStates, Layout};
use super::sweep::Workspace;
use crate::belief::BeliefMatrix;
use crate::infer::account::{Account, Pool};
use crate::infer::factor::States;
use crate::infer::ranking::Answer;
use crate::infer::semiring::{Aim, LogSumProduct, Semiring, SumProduct};
use crate::label::LabelId;
use crate::log_space::{divide_positive, exp_positive, log_add_exp};
use crate::model::Model;
use crate::outcome::SMALLEST;
use crate::rule::RuleId;

/// A circuit with the weights of a model's rules, for sums or for maxima.
pub(super) struct Evaluator<S: Semiring> {
    pub(super) model: Model,
    pub(super) states: Arc<States>,
    pub(super) layout: Arc<Layout>,
    pub(super) constants: Constants,
    /// The weights of all rules when they are silent and when they have fired.
    pub(super) weights: Vec<[f64; 2]>,
    aim: Aim,
    /// Labels that no rule names.
    outside: Vec<LabelId>,
    /// For each label of the circuit, whether every state is a single category.
    is_plain: Vec<bool>,
    account: Arc<Account>,
    pub(super) one: Pool<Workspace<S, 1>>,
    four: Pool<Workspace<S, 4>>,
    pub(super) eight: Pool<Workspace<S, 8>>,
    /// Workspaces in logarithms, for rows whose numbers underflow.
    log: Pool<Workspace<S::Log, 1>>,
}

/// Maximum bytes of a workspace of eight rows. Larger ones leave the second-level cache, and run with fewer rows.
const MAX_BYTES_OF_EIGHT: u64 = 1 << 20;

/// Number of groups of rows that a thread runs with one workspace.
const GROUPS: usize = 16;

impl<S: Semiring> Evaluator<S> {
    /// An evaluator whose workspaces borrow from `account`. The circuit itself is reserved by the caller.
    pub(super) fn new(
        model: &Model,
        states: &Arc<States>,
        layout: Arc<Layout>,
        weights: Vec<[f64; 2]>,
        aim: Aim,
        account: &Arc<Account>,
    ) -> Self {
        let constants = layout.constants(&weights);
        let is_outside = |label: &LabelId| layout.labels.binary_search_by_key(label, |it| it.label).is_err();
        let outside = model.label_ids().filter(is_outside).collect();
        let is_plain = |it: &LabelStates| states.of_category[it.label.index()].len() == it.states.len();
        let bytes = layout.workspace_bytes();
        Self {
            model: model.clone(),
            states: Arc::clone(states),
            is_plain: layout.labels.iter().map(is_plain).collect(),
            layout,
            constants,
            weights,
            aim,
            outside,
            account: Arc::clone(account),
            one: account.pool(bytes),
            four: account.pool(4 * bytes),
            eight: account.pool(8 * bytes),
            log: account.pool(bytes),
        }
    }

    /// One row's answer.
    pub(super) fn one(&self, row: &[f64]) -> Answer {
        self.one_with(row, &self.constants)
    }

    /// One row's answer with other constants.
    pub(super) fn one_with(&self, row: &[f64], constants: &Constants) -> Answer {
        let answer = self.one.with(
            || Workspace::new(&self.layout),
            |workspace| self.answers(workspace, &[row], constants).pop().flatten(),
        );
        answer.unwrap_or_else(|| self.in_logarithms(row, constants))
    }

    pub(super) fn in_logarithms(&self, row: &[f64], constants: &Constants) -> Answer {
        let answer = self.log.with(
            || Workspace::new(&self.layout),
            |workspace| self.answers(workspace, &[row], constants).pop().flatten(),
        );
        answer.expect("logarithms do not underflow")
    }

    /// Number of rows that run side by side, if all threads have a workspace. The bits do not depend on it.
    pub(super) fn n_lanes(&self) -> u64 {
        let (bytes, threads) = (self.layout.workspace_bytes(), rayon::current_num_threads() as u64);
        let fits = |lanes: u64| self.account.fits(0, lanes * bytes * threads);
        match 8 * bytes <= MAX_BYTES_OF_EIGHT && fits(8) {
            true => 8,
            false if fits(4) => 4,
            false => 1,
        }
    }

    /// Runs all rows, several side by side.
    pub(super) fn batch<T: Send>(
        &self,
        rows: &BeliefMatrix,
        done: impl Fn(&[f64], Answer) -> T + Sync,
    ) -> Vec<T> {
        let answers = match self.n_lanes() {
            8 => self.batch_in(&self.eight, rows, done),
            4 => self.batch_in(&self.four, rows, done),
            _ => self.batch_in(&self.one, rows, done),
        };
        self.account.rest();
        answers
    }

    fn batch_in<T: Send, const L: usize>(
        &self,
        pool: &Pool<Workspace<S, L>>,
        rows: &BeliefMatrix,
        done: impl Fn(&[f64], Answer) -> T + Sync,
    ) -> Vec<T> {
        let part = |start: usize| {
            let part: Vec<&[f64]> =
                (start..rows.n_rows().min(start + GROUPS * L)).map(|row| rows.values_of(row)).collect();
            let answers: Vec<Option<Answer>> = pool.with(
                || Workspace::new(&self.layout),
                |workspace| {
                    part.chunks(L).flat_map(|group| self.answers(workspace, group, &self.constants)).collect()
                },
            );
            let finished = |(answer, &row): (Option<Answer>, &&[f64])| {
                done(row, answer.unwrap_or_else(|| self.in_logarithms(row, &self.constants)))
            };
            answers.into_iter().zip(&part).map(finished).collect::<Vec<T>>()
        };
        let starts: Vec<usize> = (0..rows.n_rows()).step_by(GROUPS * L).collect();
        let parts: Vec<Vec<T>> = starts.into_par_iter().map(part).collect();
        parts.into_iter().flatten().collect()
    }

    /// The answers of up to `L` rows; `None` if underflow may have changed one.
    pub(super) fn answers<R: Semiring, const L: usize>(
        &self,
        workspace: &mut Workspace<R, L>,
        rows: &[&[f64]],
        constants: &Constants,
    ) -> Vec<Option<Answer>> {
        if R::SCALED && !constants.is_precise {
            return rows.iter().map(|_| None).collect();
        }
        let log_scales = self.fill(workspace, rows);
        workspace.collect(&self.layout, constants);
        workspace.distribute(&self.layout, constants);
        let totals = workspace.total();
        let answer = |(lane, row): (usize, &&[f64])| {
            let log_total = R::ln(totals[lane]) + log_scales[lane] + self.log_outside::<R>(row);
            let (masses, smallest) = self.masses(workspace, row, lane);
            // Masses that are not tiny have lost nothing: all factors are at most 1, so a product that underflowed
            // changes no mass by more than the smallest number.
            let is_exact = !R::SCALED || smallest >= SMALLEST || self.has_normal_products(row, constants);
            is_exact.then_some(Answer { masses, log_total, error: 0.0 })
        };
        rows.iter().enumerate().map(answer).collect()
    }

    /// Whether no number of the circuit can underflow for a row.
    pub(super) fn cannot_underflow(&self, row: &[f64]) -> bool {
        self.constants.is_precise && self.has_normal_products(row, &self.constants)
    }

    /// Whether even the product of all smallest factors of a row is a normal number.
    fn has_normal_products(&self, row: &[f64], constants: &Constants) -> bool {
        let positive = |belief: &f64| if *belief > 0.0 { *belief } else { 1.0 };
        let smallest = |product: f64, label: &LabelStates| {
            product * row[self.model.block(label.label)].iter().map(positive).fold(1.0, f64::min)
        };
        self.layout.labels.iter().fold(constants.smallest, smallest) >= SMALLEST
    }

    /// Copies the beliefs of up to `L` rows. For maxima, each label's largest belief becomes 1; returns the logarithm of
    /// the product of these scales. Lanes without a row repeat the first.
    fn fill<R: Semiring, const L: usize>(
        &self,
        workspace: &mut Workspace<R, L>,
        rows: &[&[f64]],
    ) -> [f64; L] {
        let mut log_scales = [0.0; L];
        for (label, &is_plain) in self.layout.labels.iter().zip(&self.is_plain) {
            let block = self.model.block(label.label);
            let beliefs = &mut workspace.beliefs[label.states.clone()];
            let of_lane = |lane: usize| &rows.get(lane).unwrap_or(&rows[0])[block.clone()];
            if is_plain {
                for lane in 0..L {
                    for (state, &belief) in beliefs.iter_mut().zip(of_lane(lane)) {
                        state[lane] = R::element(belief);
                    }
                }
            } else {
                beliefs.fill([R::ZERO; L]);
                for lane in 0..L {
                    for (&belief, &state) in of_lane(lane).iter().zip(self.of_category(label)) {
                        beliefs[state][lane] = R::add(beliefs[state][lane], R::element(belief));
                    }
                }
            }
            if self.aim == Aim::Maximum {
                for (lane, log_scale) in log_scales.iter_mut().enumerate() {
                    let largest = beliefs.iter().fold(R::ZERO, |most, it| R::add(most, it[lane]));
                    *log_scale += R::ln(largest);
                    if largest > R::ZERO {
                        beliefs.iter_mut().for_each(|it| it[lane] = quotient::<R>(it[lane], largest));
                    }
                }
            }
        }
        log_scales
    }

    /// The state of each category of a label.
    fn of_category(&self, label: &LabelStates) -> &[usize] {
        &self.states.of_category[label.label.index()]
    }

    /// For every category its share of Z, or the largest weight with it, and the smallest of them that is possible. In
    /// logarithms, they are divided by the largest of the label.
    fn masses<R: Semiring, const L: usize>(
        &self,
        workspace: &Workspace<R, L>,
        row: &[f64],
        lane: usize,
    ) -> (Vec<f64>, f64) {
        let mut masses = row.to_vec();
        let mut smallest = f64::INFINITY;
        for (label, &is_plain) in self.layout.labels.iter().zip(&self.is_plain) {
            let slots = &mut masses[self.model.block(label.label)];
            let of_states = &workspace.masses[label.states.clone()];
            let is_possible = &self.layout.is_possible[label.states.clone()];
            if R::SCALED && is_plain {
                for ((slot, mass), &is_possible) in slots.iter_mut().zip(of_states).zip(is_possible) {
                    smallest = if *slot > 0.0 && is_possible { smallest.min(mass[lane]) } else { smallest };
                    *slot = mass[lane];
                }
                continue;
            }
            let totals = self.state_beliefs::<R>(row, label);
            let mass =
                |state: usize, belief: f64| R::mul(of_states[state][lane], share::<R>(belief, totals[state]));
            let states = self.of_category(label).iter();
            if R::SCALED {
                for (slot, &state) in slots.iter_mut().zip(states) {
                    let mass = mass(state, *slot);
                    smallest = if *slot > 0.0 && is_possible[state] { smallest.min(mass) } else { smallest };
                    *slot = mass;
                }
                continue;
            }
            let logs: Vec<f64> =
                slots.iter().zip(states).map(|(&belief, &state)| mass(state, belief)).collect();
            let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            for (slot, log) in slots.iter_mut().zip(logs) {
                *slot = if largest == f64::NEG_INFINITY { 0.0 } else { exp_positive(log - largest) };
            }
        }
        (masses, smallest)
    }

    /// The belief in each state of a label: the sum (or the maximum) over its categories.
    fn state_beliefs<R: Semiring>(&self, row: &[f64], label: &LabelStates) -> Vec<f64> {
        let mut totals = vec![R::ZERO; label.states.len()];
        for (&belief, &state) in row[self.model.block(label.label)].iter().zip(self.of_category(label)) {
            totals[state] = R::add(totals[state], R::element(belief));
        }
        totals
    }

    /// ln of the sum (or the maximum) of the beliefs about all labels outside the circuit.
    fn log_outside<R: Semiring>(&self, row: &[f64]) -> f64 {
        let total = |&label: &LabelId| {
            let beliefs = row[self.model.block(label)].iter();
            R::ln(beliefs.fold(R::ZERO, |sum, &belief| R::add(sum, R::element(belief))))
        };
        self.outside.iter().map(total).sum()
    }

    /// ln of every category's mass, for each label up to a constant: −∞ only if the category is impossible.
    pub(super) fn log_masses(&self, row: &[f64]) -> Vec<f64> {
        self.log.with(
            || Workspace::new(&self.layout),
            |workspace| {
                self.fill(workspace, &[row]);
                workspace.collect(&self.layout, &self.constants);
                workspace.distribute(&self.layout, &self.constants);
                let mut log_masses: Vec<f64> = row.iter().map(|belief| belief.ln()).collect();
                for label in &self.layout.labels {
                    let totals = self.state_beliefs::<S::Log>(row, label);
                    let block = self.model.block(label.label);
                    for (category, &state) in block.zip(self.of_category(label)) {
                        let [mass] = workspace.masses[label.states.start + state];
                        log_masses[category] =
                            S::Log::mul(mass, share::<S::Log>(row[category], totals[state]));
                    }
                }
                log_masses
            },
        )
    }

    /// The values of a row on their way up, and ln Z.
    pub(super) fn upward<R: Semiring>(&self, row: &[f64]) -> (Workspace<R, 1>, f64) {
        let mut workspace: Workspace<R, 1> = Workspace::new(&self.layout);
        let [log_scale] = self.fill(&mut workspace, &[row]);
        workspace.collect(&self.layout, &self.constants);
        let log_total = R::ln(workspace.total()[0]) + log_scale + self.log_outside::<R>(row);
        (workspace, log_total)
    }

    /// For each rule, ln of its share of Z when it is silent and when it has fired; −∞ for hard rules, whose weights
    /// are not in the circuit.
    pub(super) fn log_masses_of_rules(&self, row: &[f64], constants: &Constants) -> Vec<[f64; 2]> {
        let mut workspace: Workspace<LogSumProduct, 1> = Workspace::new(&self.layout);
        self.fill(&mut workspace, &[row]);
        workspace.collect(&self.layout, constants);
        workspace.distribute(&self.layout, constants);
        let mut masses = vec![[f64::NEG_INFINITY; 2]; self.weights.len()];
        for (node, range) in self.layout.nodes.iter().enumerate() {
            for edge in range.start as usize..range.end as usize {
                let mass = workspace.derivatives[node][0] + workspace.edges[edge][0];
                for (rule, fired) in self.layout.rules(edge) {
                    let slot = &mut masses[rule.index()][usize::from(fired)];
                    *slot = log_add_exp(*slot, mass);
                }
            }
        }
        masses
    }

    /// The constants without a soft rule: its weights are 1.
    pub(super) fn constants_without(&self, rule: RuleId) -> Constants {
        let mut weights = self.weights.clone();
        weights[rule.index()] = [1.0, 1.0];
        self.layout.constants(&weights)
    }
}

impl Evaluator<SumProduct> {
    /// Whether all states of the circuit are single categories.
    pub(super) fn is_plain(&self) -> bool {
        self.is_plain.iter().all(|&is_plain| is_plain)
    }

    /// The marginals and ln Z of all rows, without typical combinations, if all states are single categories. Also returns
    /// the rows that underflow may have changed.
    ///
    /// It gives the same bits as [`Self::batch`], and saves the memory of an answer for each row: half of the time of a
    /// small circuit.
    pub(super) fn marginals(&self, rows: &BeliefMatrix) -> (Vec<f64>, Vec<f64>, Vec<usize>) {
        let answers = match self.n_lanes() {
            8 => self.marginals_in(&self.eight, rows),
            4 => self.marginals_in(&self.four, rows),
            _ => self.marginals_in(&self.one, rows),
        };
        self.account.rest();
        answers
    }

    fn marginals_in<const L: usize>(
        &self,
        pool: &Pool<Workspace<SumProduct, L>>,
        rows: &BeliefMatrix,
    ) -> (Vec<f64>, Vec<f64>, Vec<usize>) {
        let n_categories = self.model.n_categories();
        let mut marginals = vec![0.0; rows.values().len()];
        let mut log_totals = vec![0.0; rows.n_rows()];
        let part = |(part, (marginals, log_totals)): (usize, (&mut [f64], &mut [f64]))| {
            let first = part * GROUPS * L;
            let mut open = Vec::new();
            pool.with(
                || Workspace::new(&self.layout),
                |workspace| {
                    let groups = marginals.chunks_mut(L * n_categories).zip(log_totals.chunks_mut(L));
                    for (group, (marginals, log_totals)) in groups.enumerate() {
                        let start = first + group * L;
                        let group: Vec<&[f64]> =
                            (start..start + log_totals.len()).map(|row| rows.values_of(row)).collect();
                        let is_exact = self.marginals_of(workspace, &group, marginals, log_totals);
                        open.extend(
                            (0..group.len()).filter(|&lane| !is_exact[lane]).map(|lane| start + lane),
                        );
                    }
                },
            );
            open
        };
        let open = marginals
            .par_chunks_mut((GROUPS * L * n_categories).max(1))
            .zip(log_totals.par_chunks_mut(GROUPS * L))
            .enumerate()
            .map(part)
            .collect::<Vec<_>>();
        (marginals, log_totals, open.into_iter().flatten().collect())
    }

    /// Writes the marginals and ln Z of up to `L` rows. Returns which of them are exact.
    fn marginals_of<const L: usize>(
        &self,
        workspace: &mut Workspace<SumProduct, L>,
        rows: &[&[f64]],
        marginals: &mut [f64],
        log_totals: &mut [f64],
    ) -> [bool; L] {
        if !self.constants.is_precise {
            return [false; L];
        }
        self.fill(workspace, rows);
        workspace.collect(&self.layout, &self.constants);
        workspace.distribute(&self.layout, &self.constants);
        let (totals, smallest) = (workspace.total(), workspace.normalize(&self.layout));
        let mut is_exact = [false; L];
        for (lane, (row, marginals)) in
            rows.iter().zip(marginals.chunks_mut(self.model.n_categories())).enumerate()
        {
            for label in &self.layout.labels {
                let slots = &mut marginals[self.model.block(label.label)];
                for (slot, mass) in slots.iter_mut().zip(&workspace.masses[label.states.clone()]) {
                    *slot = mass[lane];
                }
            }
            for &label in &self.outside {
                let block = self.model.block(label);
                let total: f64 = row[block.clone()].iter().sum();
                for (slot, &belief) in marginals[block.clone()].iter_mut().zip(&row[block]) {
                    *slot = divide_positive(belief, total);
                }
            }
            log_totals[lane] = totals[lane].ln() + self.log_outside::<SumProduct>(row);
            is_exact[lane] = smallest[lane] >= SMALLEST || self.has_normal_products(row, &self.constants);
        }
        is_exact
    }
}

/// The part of a state's belief that belongs to one of its categories.
fn share<S: Semiring>(belief: f64, state: f64) -> f64 {
    let belief = S::element(belief);
    if belief == S::ZERO { S::ZERO } else { quotient::<S>(belief, state) }
}

#[inline(always)]
fn quotient<S: Semiring>(a: f64, b: f64) -> f64 {
    if S::SCALED { a / b } else { a - b }
}
