//! A compiled circuit for one query: rows in, ln Z and masses of categories out.

use std::sync::Arc;

use rayon::prelude::*;

use super::CircuitSize;
use super::layout::{Constants, Layout};
use super::sweep::Workspace;
use crate::belief::BeliefMatrix;
use crate::infer::factor::States;
use crate::infer::ranking::Answer;
use crate::infer::semiring::{Aim, LogSumProduct, Semiring};
use crate::log_space::{exp_positive, log_add_exp};
use crate::model::Model;
use crate::outcome::SMALLEST;
use crate::rule::RuleId;

/// A circuit with the weights of a model's rules.
pub(super) struct Evaluator {
    pub(super) model: Model,
    pub(super) states: Arc<States>,
    pub(super) layout: Arc<Layout>,
    pub(super) constants: Constants,
    /// The weights of all rules when they are silent and when they have fired.
    pub(super) weights: Vec<[f64; 2]>,
    pub(super) aim: Aim,
    /// For each label, whether the circuit contains it.
    is_inside: Vec<bool>,
    /// For each label of the circuit, whether every state is a single category.
    is_plain: Vec<bool>,
}

/// Maximum bytes of a workspace of eight rows. Larger ones leave the second-level cache, and run with fewer rows.
const MAX_BYTES_OF_EIGHT: usize = 1 << 20;

impl Evaluator {
    pub(super) fn new(
        model: &Model,
        states: &Arc<States>,
        layout: Arc<Layout>,
        weights: Vec<[f64; 2]>,
        aim: Aim,
    ) -> Self {
        let constants = layout.constants(&weights);
        let mut is_inside = vec![false; model.labels().len()];
        layout.labels.iter().for_each(|it| is_inside[it.label.index()] = true);
        let is_plain = layout
            .labels
            .iter()
            .map(|it| states.of_category[it.label.index()].len() == it.states.len())
            .collect();
        let (model, states) = (model.clone(), Arc::clone(states));
        Self { model, states, layout, constants, weights, aim, is_inside, is_plain }
    }

    pub(super) fn size(&self) -> CircuitSize {
        CircuitSize {
            nodes: self.layout.nodes.len(),
            edges: self.layout.edges.len(),
            bytes: self.layout.bytes() as f64 + self.workspace_bytes() as f64,
            multiply_adds: self.layout.work(),
        }
    }

    /// Bytes of a workspace with one row.
    pub(super) fn workspace_bytes(&self) -> usize {
        8 * self.layout.n_values()
    }

    /// One row's answer.
    pub(super) fn one<S: Semiring>(&self, row: &[f64]) -> Answer {
        self.one_with::<S>(row, &self.constants)
    }

    /// One row's answer with other constants.
    pub(super) fn one_with<S: Semiring>(&self, row: &[f64], constants: &Constants) -> Answer {
        let mut workspace: Workspace<S, 1> = Workspace::new(&self.layout);
        let answer = self.answers(&mut workspace, &[row], constants).pop().flatten();
        answer.unwrap_or_else(|| self.in_logarithms::<S>(row, constants))
    }

    /// For each rule, ln of its share of Z when it is silent and when it has fired; −∞ for hard rules, whose weights are
    /// not in the circuit.
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

    /// ln of every category's mass, for each label up to a constant: −∞ only if the category is impossible.
    pub(super) fn log_masses<S: Semiring>(&self, row: &[f64]) -> Vec<f64> {
        let mut workspace: Workspace<S::Log, 1> = Workspace::new(&self.layout);
        self.fill(&mut workspace, &[row]);
        workspace.collect(&self.layout, &self.constants);
        workspace.distribute(&self.layout, &self.constants);
        let mut log_masses: Vec<f64> = row.iter().map(|belief| belief.ln()).collect();
        for label in &self.layout.labels {
            let start = self.model.block(label.label).start;
            for (category, &state) in self.states.of_category[label.label.index()].iter().enumerate() {
                let state = label.states.start + state;
                let share =
                    share::<S::Log>(row[start + category], self.state_belief::<S::Log>(row, label, state));
                log_masses[start + category] = S::Log::mul(workspace.masses[state][0], share);
            }
        }
        log_masses
    }

    /// The values of a row, and ln Z.
    pub(super) fn upward<S: Semiring>(&self, row: &[f64]) -> (Workspace<S, 1>, f64) {
        let mut workspace: Workspace<S, 1> = Workspace::new(&self.layout);
        let [log_scale] = self.fill(&mut workspace, &[row]);
        workspace.collect(&self.layout, &self.constants);
        let log_total = S::ln(workspace.total()[0]) + log_scale + self.log_outside::<S>(row);
        (workspace, log_total)
    }

    /// ln of the sum (or the maximum) of the beliefs about all labels outside the circuit.
    fn log_outside<S: Semiring>(&self, row: &[f64]) -> f64 {
        let outside = self.model.label_ids().filter(|label| !self.is_inside[label.index()]);
        let total = |label| {
            let beliefs = row[self.model.block(label)].iter();
            beliefs.fold(S::ZERO, |sum, &belief| S::add(sum, S::element(belief)))
        };
        outside.map(|label| S::ln(total(label))).sum()
    }

    /// Runs all rows, several side by side.
    pub(super) fn batch<S: Semiring, T: Send>(
        &self,
        rows: &BeliefMatrix,
        done: impl Fn(&[f64], Answer) -> T + Sync,
    ) -> Vec<T> {
        if 8 * self.workspace_bytes() <= MAX_BYTES_OF_EIGHT {
            self.batch_in::<S, T, 8>(rows, done)
        } else {
            self.batch_in::<S, T, 4>(rows, done)
        }
    }

    fn batch_in<S: Semiring, T: Send, const L: usize>(
        &self,
        rows: &BeliefMatrix,
        done: impl Fn(&[f64], Answer) -> T + Sync,
    ) -> Vec<T> {
        let group = |workspace: &mut Workspace<S, L>, start: usize| -> Vec<T> {
            let group: Vec<&[f64]> =
                (start..rows.n_rows().min(start + L)).map(|row| rows.values_of(row)).collect();
            let answers = self.answers(workspace, &group, &self.constants);
            let finished = |(answer, &row): (Option<Answer>, &&[f64])| {
                done(row, answer.unwrap_or_else(|| self.in_logarithms::<S>(row, &self.constants)))
            };
            answers.into_iter().zip(&group).map(finished).collect()
        };
        let starts: Vec<usize> = (0..rows.n_rows()).step_by(L).collect();
        let groups: Vec<Vec<T>> = starts
            .into_par_iter()
            .with_min_len(16)
            .map_init(|| Workspace::new(&self.layout), |workspace, start| group(workspace, start))
            .collect();
        groups.into_iter().flatten().collect()
    }

    fn in_logarithms<S: Semiring>(&self, row: &[f64], constants: &Constants) -> Answer {
        let mut workspace: Workspace<S::Log, 1> = Workspace::new(&self.layout);
        let answer = self.answers(&mut workspace, &[row], constants).pop().flatten();
        answer.expect("logarithms do not underflow")
    }

    /// The answers of up to `L` rows; `None` if underflow may have changed one.
    fn answers<S: Semiring, const L: usize>(
        &self,
        workspace: &mut Workspace<S, L>,
        rows: &[&[f64]],
        constants: &Constants,
    ) -> Vec<Option<Answer>> {
        if S::SCALED && !constants.is_precise {
            return rows.iter().map(|_| None).collect();
        }
        let log_scales = self.fill(workspace, rows);
        workspace.collect(&self.layout, constants);
        workspace.distribute(&self.layout, constants);
        let totals = workspace.total();
        let answer = |(lane, row): (usize, &&[f64])| {
            let log_total = S::ln(totals[lane]) + log_scales[lane] + self.log_outside::<S>(row);
            let (masses, smallest) = self.masses(workspace, row, lane);
            let is_exact = !S::SCALED || smallest >= SMALLEST || self.has_normal_products(row, constants);
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
        let smallest = |labels: f64, label: &super::layout::LabelStates| {
            let beliefs = row[self.model.block(label.label)].iter();
            labels * beliefs.map(positive).fold(1.0, f64::min)
        };
        self.layout.labels.iter().fold(constants.smallest, smallest) >= SMALLEST
    }

    /// Copies the beliefs of up to `L` rows. For maxima, each label's largest belief becomes 1; returns the logarithm of
    /// the product of these scales. Lanes without a row repeat the first.
    fn fill<S: Semiring, const L: usize>(
        &self,
        workspace: &mut Workspace<S, L>,
        rows: &[&[f64]],
    ) -> [f64; L] {
        let mut log_scales = [0.0; L];
        for (label, &is_plain) in self.layout.labels.iter().zip(&self.is_plain) {
            let block = self.model.block(label.label);
            let beliefs = &mut workspace.beliefs[label.states.clone()];
            if is_plain {
                for lane in 0..L {
                    let row = rows.get(lane).unwrap_or(&rows[0]);
                    for (state, &belief) in beliefs.iter_mut().zip(&row[block.clone()]) {
                        state[lane] = S::element(belief);
                    }
                }
            } else {
                beliefs.fill([S::ZERO; L]);
                for (category, &state) in self.states.of_category[label.label.index()].iter().enumerate() {
                    for lane in 0..L {
                        let belief = S::element(rows.get(lane).unwrap_or(&rows[0])[block.start + category]);
                        beliefs[state][lane] = S::add(beliefs[state][lane], belief);
                    }
                }
            }
            if self.aim == Aim::Maximum {
                for lane in 0..L {
                    let largest = beliefs.iter().fold(S::ZERO, |most, it| S::add(most, it[lane]));
                    log_scales[lane] += S::ln(largest);
                    if largest > S::ZERO {
                        beliefs.iter_mut().for_each(|it| it[lane] = quotient::<S>(it[lane], largest));
                    }
                }
            }
        }
        log_scales
    }

    /// For every category its share of Z, or the largest weight with it, and the smallest of them. In logarithms they
    /// are divided by the largest of the label.
    fn masses<S: Semiring, const L: usize>(
        &self,
        workspace: &Workspace<S, L>,
        row: &[f64],
        lane: usize,
    ) -> (Vec<f64>, f64) {
        let mut masses = row.to_vec();
        let mut smallest = f64::INFINITY;
        for (label, &is_plain) in self.layout.labels.iter().zip(&self.is_plain) {
            let block = self.model.block(label.label);
            let of_category = &self.states.of_category[label.label.index()];
            let slots = &mut masses[block.clone()];
            if is_plain && S::SCALED {
                let states = label.states.clone();
                for ((slot, mass), &is_possible) in slots
                    .iter_mut()
                    .zip(&workspace.masses[states.clone()])
                    .zip(&self.layout.is_possible[states])
                {
                    if *slot > 0.0 && is_possible {
                        smallest = smallest.min(mass[lane]);
                    }
                    *slot = mass[lane];
                }
                continue;
            }
            let mass = |category: usize, belief: f64| {
                let state = label.states.start + of_category[category];
                let share = share::<S>(belief, self.state_belief::<S>(row, label, state));
                (S::mul(workspace.masses[state][lane], share), self.layout.is_possible[state])
            };
            if S::SCALED {
                for (category, slot) in slots.iter_mut().enumerate() {
                    let (mass, is_possible) = mass(category, *slot);
                    if *slot > 0.0 && is_possible {
                        smallest = smallest.min(mass);
                    }
                    *slot = mass;
                }
            } else {
                let logs: Vec<f64> =
                    slots.iter().enumerate().map(|(category, &belief)| mass(category, belief).0).collect();
                let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                for (slot, log) in slots.iter_mut().zip(logs) {
                    *slot = if largest == f64::NEG_INFINITY { 0.0 } else { exp_positive(log - largest) };
                }
            }
        }
        (masses, smallest)
    }

    /// The belief in a state: the sum (or the maximum) over its categories.
    fn state_belief<S: Semiring>(
        &self,
        row: &[f64],
        label: &super::layout::LabelStates,
        state: usize,
    ) -> f64 {
        let start = self.model.block(label.label).start;
        let of_category = &self.states.of_category[label.label.index()];
        let categories = (0..of_category.len()).filter(|&it| of_category[it] == state - label.states.start);
        categories.fold(S::ZERO, |sum, category| S::add(sum, S::element(row[start + category])))
    }

    /// The constants without some rules: their weights are 1.
    pub(super) fn constants_without(&self, rule: RuleId) -> Constants {
        let mut weights = self.weights.clone();
        weights[rule.index()] = [1.0, 1.0];
        self.layout.constants(&weights)
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
