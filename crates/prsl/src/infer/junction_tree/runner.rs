//! Runs a compiled plan in one semiring: from rows of beliefs to ln Z and the mass of every category.

use std::sync::Arc;

use rayon::prelude::*;

use super::network::{Leaf, Source};
use super::plan::Plan;
use super::sweep::{Back, Workspace};
use crate::belief::BeliefMatrix;
use crate::infer::account::{Account, Pool};
use crate::infer::factor::{Factors, States};
use crate::infer::limits::Cost;
use crate::infer::ranking::Answer;
use crate::infer::semiring::Semiring;
use crate::label::LabelId;
use crate::log_space::exp_positive;
use crate::model::Model;
use crate::outcome::SMALLEST;
use crate::rule::RuleId;

/// Largest workspace, in bytes, with which eight lanes are used. Above it, most of a sweep waits for memory. With
/// caches of 2 MiB per core, four lanes were faster by a fifth above 60 MiB, and slower by a tenth below 10 MiB.
pub(super) const MAX_BYTES_OF_EIGHT_LANES: u64 = 16 << 20;

/// A plan, the leaves of its tables, and pools of workspaces to run it in.
pub(crate) struct Runner<S: Semiring> {
    pub(crate) model: Model,
    pub(super) states: Arc<States>,
    pub(super) leaves: Vec<Leaf>,
    /// The leaf of each label's belief; `None` for a label that occurs in no rule.
    pub(super) belief_leaves: Vec<Option<usize>>,
    pub(super) weights: Vec<[f64; 2]>,
    /// Counts changes of `weights`. Workspaces of an older version are filled again.
    version: u64,
    pub(crate) plan: Plan,
    account: Arc<Account>,
    /// Largest relative difference between sums that must be equal. A row above it has lost digits to signs.
    max_inconsistency: f64,
    pub(super) one: Pool<Workspace<S, 1>>,
    pub(super) four: Pool<Workspace<S, 4>>,
    pub(super) eight: Pool<Workspace<S, 8>>,
    /// Workspaces in logarithms, for rows whose numbers underflow.
    pub(super) log: Pool<Workspace<LogOf<S>, 1>>,
}

type LogOf<S> = <S as Semiring>::Log;

impl<S: Semiring> Runner<S> {
    /// A runner whose workspaces borrow from `account`. The plan's permanent memory is reserved by the caller.
    pub(super) fn new(
        factors: &Factors,
        leaves: Vec<Leaf>,
        plan: Plan,
        account: &Arc<Account>,
        max_inconsistency: f64,
    ) -> Self {
        let weights: Vec<[f64; 2]> = factors.list.iter().map(|factor| factor.weights).collect();
        let [one, four, eight] = [1, 4, 8].map(|lanes| plan.workspace_bytes(weights.len(), lanes));
        let mut belief_leaves = vec![None; factors.model.labels().len()];
        for (index, leaf) in leaves.iter().enumerate() {
            if let Source::Belief(label) = leaf.source {
                belief_leaves[label.index()] = Some(index);
            }
        }
        Self {
            model: factors.model.clone(),
            states: Arc::clone(&factors.states),
            leaves,
            belief_leaves,
            weights,
            version: 0,
            plan,
            account: Arc::clone(account),
            max_inconsistency,
            one: account.pool(one),
            four: account.pool(four),
            eight: account.pool(eight),
            log: account.pool(one),
        }
    }

    pub(crate) fn cost(&self) -> Cost {
        self.plan.cost
    }

    pub(crate) fn states(&self) -> &States {
        &self.states
    }

    /// Computes every row and returns the results of `finish`, in order.
    pub(crate) fn batch<T: Send>(
        &self,
        rows: &BeliefMatrix,
        finish: impl Fn(&[f64], Answer) -> T + Sync,
    ) -> Vec<T> {
        self.batch_or(rows, |row, answer| finish(row, answer.unwrap_or_else(|| self.in_logarithms(row))))
    }

    /// Like [`Self::batch`], but `finish` gets `None` for rows that lost digits to underflow or signs.
    pub(crate) fn batch_or<T: Send>(
        &self,
        rows: &BeliefMatrix,
        finish: impl Fn(&[f64], Option<Answer>) -> T + Sync,
    ) -> Vec<T> {
        // Eight lanes are used if the workspaces of all threads fit the memory, and one workspace the cache.
        let fits = |lanes: usize| self.fits(lanes, rayon::current_num_threads());
        let is_cached = self.plan.workspace_bytes(self.weights.len(), 8) <= MAX_BYTES_OF_EIGHT_LANES;
        if rows.n_rows() >= 4 && is_cached && fits(8) {
            self.batch_in(&self.eight, rows, finish)
        } else if rows.n_rows() >= 2 && fits(4) {
            self.batch_in(&self.four, rows, finish)
        } else {
            self.batch_in(&self.one, rows, finish)
        }
    }

    fn batch_in<T: Send, const L: usize>(
        &self,
        pool: &Pool<Workspace<S, L>>,
        rows: &BeliefMatrix,
        finish: impl Fn(&[f64], Option<Answer>) -> T + Sync,
    ) -> Vec<T> {
        let group = |start: usize| {
            let group: Vec<&[f64]> =
                (start..rows.n_rows().min(start + L)).map(|row| rows.values_of(row)).collect();
            let answers = self.with(pool, |workspace| self.sweep(workspace, &group));
            group.iter().zip(answers).map(|(row, answer)| finish(row, answer)).collect::<Vec<T>>()
        };
        let starts: Vec<usize> = (0..rows.n_rows()).step_by(L).collect();
        let parts: Vec<Vec<T>> = starts.into_par_iter().with_min_len(4).map(group).collect();
        self.rest();
        parts.into_iter().flatten().collect()
    }

    /// Computes one row, in logarithms if its numbers underflow.
    pub(crate) fn one(&self, row: &[f64]) -> Answer {
        self.one_or(row).unwrap_or_else(|| self.in_logarithms(row))
    }

    /// Computes one row; `None` if it lost digits to underflow or signs.
    pub(crate) fn one_or(&self, row: &[f64]) -> Option<Answer> {
        let answer = self.with(&self.one, |workspace| self.sweep(workspace, &[row]));
        answer.into_iter().next().flatten()
    }

    /// Computes one row, however many digits are lost. [`Answer::error`] tells how many.
    pub(crate) fn one_imprecise(&self, row: &[f64]) -> Answer {
        self.with(&self.one, |workspace| {
            let [mut log_total] = self.collect(workspace, &[row]);
            workspace.distribute(&self.plan, &self.leaves, Back::Rows);
            let masses = self.masses(workspace, row, 0, &mut log_total);
            let [error] = self.inconsistency(workspace);
            Answer { masses, log_total, error }
        })
    }

    /// The agreement of every rule, however many digits are lost.
    pub(crate) fn imprecise_agreement(&self, row: &[f64]) -> Vec<f64> {
        self.with(&self.one, |workspace| {
            self.collect(workspace, &[row]);
            workspace.distribute(&self.plan, &self.leaves, Back::All);
            self.agreement(workspace)
        })
    }

    /// Whether sums with this relative difference count as equal.
    pub(crate) fn is_consistent(&self, error: f64) -> bool {
        error <= self.max_inconsistency
    }

    /// ln Z of one row, and the agreement of every rule. Underflow is excluded.
    pub(crate) fn one_with_agreement(&self, row: &[f64]) -> (f64, Vec<f64>) {
        let plain = self.with(&self.one, |workspace| {
            let answer = self.sweep_back(workspace, &[row], Back::All).pop().flatten();
            let answer = answer.filter(|_| !workspace.is_suspicious_of_rules(0));
            answer.map(|answer| (answer.log_total, self.agreement(workspace)))
        });
        let in_logarithms = || {
            self.with(&self.log, |workspace| {
                let answer = self.sweep_back(workspace, &[row], Back::All).pop().flatten();
                let answer = answer.expect("logarithms do not underflow");
                (answer.log_total, self.agreement(workspace))
            })
        };
        plain.unwrap_or_else(in_logarithms)
    }

    /// Computes one row as often as there are rules, each time without one of them.
    pub(crate) fn without_each(&self, row: &[f64]) -> Vec<Answer> {
        match self.fits(4, 1) {
            true => self.without_each_in(&self.four, row),
            false => self.without_each_in(&self.one, row),
        }
    }

    fn without_each_in<const L: usize>(&self, pool: &Pool<Workspace<S, L>>, row: &[f64]) -> Vec<Answer> {
        let rules: Vec<RuleId> = self.model.rule_ids().collect();
        let without = |group: &[RuleId]| {
            self.with(pool, |workspace| {
                self.weigh_all(workspace);
                for (lane, &rule) in group.iter().enumerate() {
                    workspace.set_weights(rule, lane, [1.0, 1.0]);
                }
                workspace.fill_fixed(&self.plan, &self.leaves);
                let answers = self.sweep(workspace, &vec![row; group.len()]);
                self.weigh_all(workspace);
                workspace.fill_fixed(&self.plan, &self.leaves);
                answers
            })
        };
        let done = |(answer, rule): (Option<Answer>, &RuleId)| {
            answer.unwrap_or_else(|| self.in_logarithms_without(row, &[*rule]))
        };
        let answers =
            rules.chunks(L).flat_map(|group| without(group).into_iter().zip(group).map(done)).collect();
        self.rest();
        answers
    }

    /// Changes the weights of all rules, silent and fired. The plan does not depend on them.
    pub(super) fn reweigh(&mut self, weights: Vec<[f64; 2]>) {
        debug_assert_eq!(weights.len(), self.weights.len());
        self.weights = weights;
        self.version += 1;
    }

    /// Lends a workspace that has the present weights.
    pub(super) fn with<R: Semiring, T, const L: usize>(
        &self,
        pool: &Pool<Workspace<R, L>>,
        run: impl FnOnce(&mut Workspace<R, L>) -> T,
    ) -> T {
        let run = |workspace: &mut Workspace<R, L>| {
            if workspace.version != self.version {
                workspace.version = self.version;
                self.weigh_all(workspace);
                workspace.fill_fixed(&self.plan, &self.leaves);
            }
            run(workspace)
        };
        pool.with(|| self.workspace(), run)
    }

    /// Frees idle workspaces, except for a small part of the memory limit.
    pub(super) fn rest(&self) {
        self.account.rest();
    }

    /// Sets the weights of every rule in every lane to those of the model.
    fn weigh_all<R: Semiring, const L: usize>(&self, workspace: &mut Workspace<R, L>) {
        for (rule, &weights) in self.model.rule_ids().zip(&self.weights) {
            (0..L).for_each(|lane| workspace.set_weights(rule, lane, weights));
        }
    }

    /// Whether a number of workspaces fits the memory limit.
    pub(super) fn fits(&self, lanes: usize, workspaces: usize) -> bool {
        let bytes = self.plan.workspace_bytes(self.weights.len(), lanes);
        self.account.fits(0, bytes.saturating_mul(workspaces as u64))
    }

    pub(super) fn workspace<R: Semiring, const L: usize>(&self) -> Workspace<R, L> {
        let mut workspace = Workspace::new(&self.plan, &self.leaves, &self.weights);
        workspace.version = self.version;
        workspace
    }

    fn in_logarithms(&self, row: &[f64]) -> Answer {
        self.in_logarithms_without(row, &[])
    }

    fn in_logarithms_without(&self, row: &[f64], rules: &[RuleId]) -> Answer {
        let answers = self.with(&self.log, |workspace| {
            for &rule in rules {
                workspace.set_weights(rule, 0, [1.0, 1.0]);
            }
            if !rules.is_empty() {
                workspace.fill_fixed(&self.plan, &self.leaves);
            }
            let answers = self.sweep(workspace, &[row]);
            if !rules.is_empty() {
                self.weigh_all(workspace);
                workspace.fill_fixed(&self.plan, &self.leaves);
            }
            answers
        });
        answers.into_iter().next().flatten().expect("logarithms do not underflow")
    }

    /// ln of every category's mass, up to a constant per label. It is −∞ only if the category is impossible.
    pub(crate) fn log_masses(&self, row: &[f64]) -> Vec<f64> {
        self.with(&self.log, |workspace| {
            self.collect(workspace, &[row]);
            workspace.distribute(&self.plan, &self.leaves, Back::Rows);
            let mut log_masses: Vec<f64> = row.iter().map(|belief| belief.ln()).collect();
            for (label, leaf) in self.belief_leaves.iter().enumerate() {
                let Some(leaf) = leaf else { continue };
                let derivative = workspace.derivative(&self.plan.tables[*leaf]);
                let block = self.model.block(LabelId::new(label));
                for (log_mass, &state) in log_masses[block].iter_mut().zip(&self.states.of_category[label]) {
                    *log_mass += S::Log::ln(derivative[state][0]);
                }
            }
            log_masses
        })
    }

    /// The answers of up to `L` rows; `None` for a row that may have lost digits to underflow or signs.
    fn sweep<R: Semiring, const L: usize>(
        &self,
        workspace: &mut Workspace<R, L>,
        rows: &[&[f64]],
    ) -> Vec<Option<Answer>> {
        self.sweep_back(workspace, rows, Back::Rows)
    }

    pub(super) fn sweep_back<R: Semiring, const L: usize>(
        &self,
        workspace: &mut Workspace<R, L>,
        rows: &[&[f64]],
        back: Back,
    ) -> Vec<Option<Answer>> {
        let log_totals = self.collect(workspace, rows);
        workspace.distribute(&self.plan, &self.leaves, back);
        let inconsistency =
            if self.max_inconsistency < f64::INFINITY { self.inconsistency(workspace) } else { [0.0; L] };
        rows.iter()
            .enumerate()
            .map(|(lane, row)| {
                let mut log_total = log_totals[lane];
                if workspace.is_suspicious(lane) || !self.is_consistent(inconsistency[lane]) {
                    return None;
                }
                let masses = self.masses(workspace, row, lane, &mut log_total);
                let error = inconsistency[lane];
                self.has_digits(workspace, row, &masses, lane).then_some(Answer { masses, log_total, error })
            })
            .collect()
    }

    /// Whether the masses of all categories are free of errors from underflow.
    fn has_digits<R: Semiring, const L: usize>(
        &self,
        workspace: &Workspace<R, L>,
        row: &[f64],
        masses: &[f64],
        lane: usize,
    ) -> bool {
        let leaves =
            self.belief_leaves.iter().enumerate().filter_map(|(label, leaf)| Some((label, (*leaf)?)));
        !R::SCALED
            || leaves.into_iter().all(|(label, leaf)| {
                let block = self.model.block(LabelId::new(label));
                are_normal(&masses[block.clone()])
                    && (workspace.is_calm() || {
                        let derivatives = workspace.derivative(&self.plan.tables[leaf]);
                        row[block].iter().zip(&self.states.of_category[label]).all(|(&belief, &state)| {
                            belief == 0.0
                                || workspace.keeps_derivative(leaf, lane, derivatives[state][lane].abs())
                        })
                    })
            })
    }

    /// Runs the plan forward on up to `L` rows. Returns ln Z of each, without the labels that occur in no rule.
    pub(super) fn collect<R: Semiring, const L: usize>(
        &self,
        workspace: &mut Workspace<R, L>,
        rows: &[&[f64]],
    ) -> [f64; L] {
        // Lanes without a row repeat the first row.
        for (label, leaf) in self.belief_leaves.iter().enumerate() {
            let Some(leaf) = leaf else { continue };
            let start = self.model.block(LabelId::new(label)).start;
            let slots = workspace.leaf_mut(&self.plan.tables[*leaf]);
            slots.fill([R::ZERO; L]);
            for (category, &state) in self.states.of_category[label].iter().enumerate() {
                for lane in 0..L {
                    let belief = R::element(rows.get(lane).unwrap_or(&rows[0])[start + category]);
                    slots[state][lane] = R::add(slots[state][lane], belief);
                }
            }
        }
        workspace.collect(&self.plan, self.belief_leaves.iter().flatten().copied())
    }

    /// The share of ln Z of the labels that occur in no rule. It is 0 up to rounding.
    pub(super) fn log_unspoken(&self, row: &[f64]) -> f64 {
        let unspoken = self.model.label_ids().filter(|label| self.belief_leaves[label.index()].is_none());
        unspoken.map(|label| row[self.model.block(label)].iter().sum::<f64>().ln()).sum()
    }

    /// Estimates the relative error of Z.
    ///
    /// For every label, a sum over its categories must equal Z. The estimate is the largest relative difference. If one
    /// rule cancels Z to its last bits, these sums may agree by chance. So the estimate is at least the rounding error
    /// of the largest terms that were subtracted.
    fn inconsistency<R: Semiring, const L: usize>(&self, workspace: &Workspace<R, L>) -> [f64; L] {
        let mut worst = workspace.magnitude().map(|magnitude| magnitude * f64::EPSILON);
        for &leaf in self.belief_leaves.iter().flatten() {
            let difference = workspace.inconsistency(&self.plan, leaf);
            for l in 0..L {
                // NaN counts as a difference.
                worst[l] = if difference[l] <= worst[l] { worst[l] } else { difference[l] };
            }
        }
        worst.map(|worst| if worst.is_nan() { f64::INFINITY } else { worst })
    }

    /// The mass of every category: its belief times the derivative of the total. In logarithms, the masses of a label
    /// are divided by the largest.
    ///
    /// The masses of a label that occurs in no rule are its beliefs. Their sum (or maximum) is added to `log_total`.
    fn masses<R: Semiring, const L: usize>(
        &self,
        workspace: &Workspace<R, L>,
        row: &[f64],
        lane: usize,
        log_total: &mut f64,
    ) -> Vec<f64> {
        let mut masses = row.to_vec();
        for (label, leaf) in self.belief_leaves.iter().enumerate() {
            let block = self.model.block(LabelId::new(label));
            let Some(leaf) = leaf else {
                // ⊕ over the label's beliefs: their sum, which is 1, or their maximum.
                let total = row[block].iter().fold(R::ZERO, |sum, &belief| R::add(sum, R::element(belief)));
                *log_total += R::ln(total);
                continue;
            };
            let derivative = workspace.derivative(&self.plan.tables[*leaf]);
            let states = &self.states.of_category[label];
            let mass = |category: usize| {
                R::mul(R::element(row[block.start + category]), derivative[states[category]][lane])
            };
            let log_masses = (0..states.len()).map(|category| R::ln(mass(category)));
            let largest = log_masses.clone().fold(f64::NEG_INFINITY, f64::max);
            if largest == f64::NEG_INFINITY {
                masses[block.clone()].fill(0.0);
                continue;
            }
            if R::SCALED {
                for category in 0..states.len() {
                    let (belief, mass) = (row[block.start + category], mass(category));
                    // A possible category keeps a positive mass.
                    let is_lost = mass == 0.0 && belief > 0.0 && derivative[states[category]][lane] > 0.0;
                    masses[block.start + category] = if is_lost { f64::from_bits(1) } else { mass };
                }
            } else {
                for (slot, log_mass) in masses[block.clone()].iter_mut().zip(log_masses) {
                    *slot = exp_positive(log_mass - largest);
                }
            }
        }
        masses
    }

    /// P(R_k | R_-k) = (w(silent) S + w(fired) F) / (S + F), where S = ∂Z/∂w(silent) and F = ∂Z/∂w(fired).
    fn agreement<R: Semiring>(&self, workspace: &Workspace<R, 1>) -> Vec<f64> {
        self.model
            .rule_ids()
            .map(|rule| {
                let [silent, fired] = workspace.masses(rule).map(|mass| R::ln(mass[0]));
                let largest = silent.max(fired);
                if largest == f64::NEG_INFINITY {
                    return 0.0;
                }
                let (silent, fired) = ((silent - largest).exp(), (fired - largest).exp());
                let [w_silent, w_fired] = self.weights[rule.index()];
                (w_silent * silent + w_fired * fired) / (silent + fired)
            })
            .collect()
    }
}

/// Whether the masses of a label give accurate shares: none of those that matter is subnormal.
fn are_normal(masses: &[f64]) -> bool {
    /// Above this total, a mass below [`SMALLEST`] is a share below 1e-283. Such a share may be inaccurate.
    const LARGE: f64 = 1e-7;
    masses.iter().sum::<f64>() >= LARGE || masses.iter().all(|&mass| mass == 0.0 || mass.abs() >= SMALLEST)
}

#[cfg(test)]
mod tests;
