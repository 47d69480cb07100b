//! A compiled model in one semiring: rows in, ln Z and label masses out.

use std::sync::Arc;

use rayon::prelude::*;

use super::network::{Form, Leaf, Source, Split};
use super::plan::Plan;
use super::search::{Best, Ceiling, search};
use super::sweep::{Back, Workspace};
use crate::belief::BeliefMatrix;
use crate::error::{Error, Result};
use crate::infer::account::{Account, Pool};
use crate::infer::factor::{Factor, Factors, Shape, States};
use crate::infer::limits::{Cost, Limits, bytes, bytes_above, quantity};
use crate::infer::outcome::SMALLEST;
use crate::infer::semiring::{Aim, Semiring};
use crate::label::LabelId;
use crate::log_space::exp_positive;
use crate::model::Model;
use crate::rule::RuleId;

/// A rule that weighs less than this when silent, compared with fired, can take away nearly all of Z by itself.
const NEARLY_HARD: f64 = 0.01;

/// The largest workspace, in bytes, with which eight lanes are used. Beyond it, most of a sweep waits for memory and four
/// lanes were faster: with caches of 2 MiB a core, by a fifth from 60 MiB on, and slower by a tenth below 10 MiB.
const MOST_OF_EIGHT_LANES: u64 = 16 << 20;

/// A plan with everything needed to run it.
pub(crate) struct Runner<S: Semiring> {
    pub(crate) model: Model,
    pub(super) states: Arc<States>,
    leaves: Vec<Leaf>,
    /// The leaf of each label's belief, none for a label that no rule speaks about.
    pub(super) belief_leaves: Vec<Option<usize>>,
    pub(super) weights: Vec<[f64; 2]>,
    pub(crate) plan: Plan,
    account: Arc<Account>,
    /// A row whose sums over different labels differ by more than this has lost digits to signs.
    consistent: f64,
    pub(super) one: Pool<Workspace<S, 1>>,
    four: Pool<Workspace<S, 4>>,
    pub(super) eight: Pool<Workspace<S, 8>>,
    /// For rows whose numbers underflow.
    pub(super) log: Pool<Workspace<LogOf<S>, 1>>,
}

type LogOf<S> = <S as Semiring>::Log;

/// What a sweep says about one row: for every category its share of Z (or the best weight with it), up to a
/// common factor, and ln Z (or the best ln weight).
pub(crate) struct Answer {
    pub(crate) masses: Vec<f64>,
    pub(crate) log_total: f64,
    /// How far sums that should be equal differ, relative to them: where there are signs.
    pub(crate) error: f64,
}

/// Adds to a refusal that other engines take a part of the memory, if the engine alone would fit.
fn beside(refused: Error, account: &Account, needed: f64) -> Error {
    match refused {
        Error::TooCostly { what, needed: told, limit, advice } if needed <= account.limit() as f64 => {
            let others = bytes(account.reserved() as f64);
            let limit = format!("{limit}, of which other engines take {others}");
            Error::TooCostly { what, needed: told, limit, advice }
        }
        other => other,
    }
}

/// The most multiply-adds a row that a plan may take: some minutes on one core.
const MAX_WORK: f64 = 1e12;

/// The most entries of all tables of a plan: their offsets are 32-bit numbers.
const MAX_ENTRIES: f64 = u32::MAX as f64;

/// How a model is to be compiled: the rules, the best plan for them, and what it may take.
pub(crate) struct Compilation {
    model: Model,
    factors: Arc<Factors>,
    best: Best,
    aim: Aim,
    limits: Limits,
}

impl Compilation {
    pub(crate) fn new(factors: &Arc<Factors>, aim: Aim, split: Split, limits: Limits) -> Result<Self> {
        Self::new_worth(factors, aim, split, limits, MAX_WORK)
    }

    /// The same where a plan of more than `max_work` multiply-adds a row is of no use.
    pub(crate) fn new_worth(
        factors: &Arc<Factors>,
        aim: Aim,
        split: Split,
        limits: Limits,
        max_work: f64,
    ) -> Result<Self> {
        let ceiling = Ceiling { memory: limits.memory as f64, work: max_work.min(MAX_WORK) };
        let best = search(factors, aim, split, ceiling)?;
        Ok(Self { model: factors.model.clone(), factors: Arc::clone(factors), best, aim, limits })
    }

    /// What the plan takes, before all is laid out.
    pub(crate) fn cost(&self) -> Cost {
        self.best.outline.cost
    }

    /// Whether any rule is taken apart with signs.
    pub(crate) fn is_signed(&self) -> bool {
        let apart = |(factor, form): (&Factor, &Form)| {
            *form == Form::Apart && matches!(factor.shape, Shape::RankOne(_))
        };
        self.best.split() == Split::Signed && self.factors.list.iter().zip(&self.best.forms).any(apart)
    }

    /// The same plan without signs.
    pub(crate) fn without_signs(self) -> Result<Self> {
        let best = self.best.with_split(&self.factors, Split::Or)?;
        Ok(Self { best, ..self })
    }

    /// Refuses what is known to be too large before all is laid out.
    pub(crate) fn check(&self) -> Result<()> {
        let may_fit = self.best.outlines().any(|outline| self.may_fit(&outline.cost));
        if may_fit { Ok(()) } else { Err(self.too_costly(self.best.outline.cost)) }
    }

    /// Whether a plan is within the limits as far as that is known before all is laid out: by its values alone.
    fn may_fit(&self, cost: &Cost) -> bool {
        let is_too_large = cost.entries * 8.0 > self.limits.memory as f64 || cost.entries > MAX_ENTRIES;
        !is_too_large && cost.multiply_adds <= MAX_WORK
    }

    /// Lays out the tables. Returns an error with the cost if they do not fit the account.
    pub(crate) fn runner<S: Semiring>(&self, account: &Arc<Account>) -> Result<Runner<S>> {
        self.check()?;
        let network = self.best.network(&self.factors)?;
        let of_leaves = network.leaves.iter().map(Leaf::bytes).sum::<u64>();
        let n_rules = self.factors.list.len();
        let mut refused = None;
        let fitting =
            self.best.outlines().filter(|outline| self.may_fit(&outline.cost)).find_map(|outline| {
                let mut plan = outline.plan(&network);
                let (fixed, one) = (plan.bytes() + of_leaves, plan.workspace_bytes(n_rules, 1));
                plan.cost.bytes = (fixed + one) as f64;
                let fits = account.fits(fixed, one);
                refused = refused.or(Some(plan.cost));
                fits.then_some((plan, fixed))
            });
        let Some((mut plan, fixed)) = fitting else {
            let refused = refused.unwrap_or(self.best.outline.cost);
            return Err(beside(self.too_costly(refused), account, refused.bytes));
        };
        let is_nearly_hard = |&&(rule, _): &&(RuleId, usize)| {
            let [silent, fired] = self.factors.list[rule.index()].weights;
            silent < NEARLY_HARD * fired
        };
        plan.watch(&network.signed.iter().filter(is_nearly_hard).map(|&(_, variable)| variable).collect());
        let [one, four, eight] = [1, 4, 8].map(|lanes| plan.workspace_bytes(n_rules, lanes));
        account.reserve(fixed, one);
        let work = plan.cost.multiply_adds;
        let mut belief_leaves = vec![None; self.model.labels().len()];
        for (index, leaf) in network.leaves.iter().enumerate() {
            if let Source::Belief(label) = leaf.source {
                belief_leaves[label.index()] = Some(index);
            }
        }
        Ok(Runner {
            model: self.model.clone(),
            states: Arc::clone(&self.factors.states),
            weights: self.factors.list.iter().map(|factor| factor.weights).collect(),
            belief_leaves,
            one: account.pool(one),
            four: account.pool(four),
            eight: account.pool(eight),
            log: account.pool(one),
            leaves: network.leaves,
            plan,
            account: account.clone(),
            consistent: match self.is_signed() {
                false => f64::INFINITY,
                // Doing a row again costs nothing to speak of.
                true if work < 2e4 => 1e-13,
                true if work < 1e7 => 1e-11,
                // Here it costs seconds, and more digits are lost on the way.
                true => 1e-8,
            },
        })
    }

    fn too_costly(&self, cost: Cost) -> Error {
        let refuse = |needed: String, limit: String, advice: &str| Error::TooCostly {
            what: self.aim.query().to_owned(),
            needed,
            limit,
            advice: advice.to_owned(),
        };
        if cost.multiply_adds > MAX_WORK {
            let (needed, limit) = (quantity(cost.multiply_adds), quantity(MAX_WORK));
            let unit = "multiply-adds a row";
            return refuse(format!("{needed} {unit}"), format!("{limit} {unit}"), self.aim.advice());
        }
        if cost.entries > MAX_ENTRIES {
            let (needed, limit) = (quantity(cost.entries), quantity(MAX_ENTRIES));
            return refuse(
                format!("{needed} table entries"),
                format!("{limit} table entries"),
                self.aim.advice(),
            );
        }
        let [needed, limit] = bytes_above(cost.bytes, self.limits.memory as f64);
        refuse(
            format!("{needed} for tables of {:.1e} entries", cost.entries),
            limit,
            "raise the memory limit, or give the rules that tie many labels together fewer labels",
        )
    }
}

impl<S: Semiring> Runner<S> {
    pub(crate) fn cost(&self) -> Cost {
        self.plan.cost
    }

    /// Whether any rule treats two categories of a label differently.
    pub(crate) fn tells_apart(&self, label: LabelId, a: usize, b: usize) -> bool {
        self.states.of_category[label.index()][a] != self.states.of_category[label.index()][b]
    }

    /// Every row's answer, made into whatever `finish` makes of it, in order.
    pub(crate) fn batch<T: Send>(
        &self,
        rows: &BeliefMatrix,
        finish: impl Fn(&[f64], Answer) -> T + Sync,
    ) -> Vec<T> {
        self.batch_or(rows, |row, answer| finish(row, answer.unwrap_or_else(|| self.in_logarithms(row))))
    }

    /// The same, with `None` for rows that have to be done in another way.
    pub(crate) fn batch_or<T: Send>(
        &self,
        rows: &BeliefMatrix,
        finish: impl Fn(&[f64], Option<Answer>) -> T + Sync,
    ) -> Vec<T> {
        // Eight rows side by side unless that takes too much memory for all threads together, or too much cache.
        let fits = |lanes: usize| self.fits(lanes, rayon::current_num_threads());
        let is_cached = self.plan.workspace_bytes(self.weights.len(), 8) <= MOST_OF_EIGHT_LANES;
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
            let answers = pool.with(|| self.workspace(), |workspace| self.sweep(workspace, &group));
            group.iter().zip(answers).map(|(row, answer)| finish(row, answer)).collect::<Vec<T>>()
        };
        let starts: Vec<usize> = (0..rows.n_rows()).step_by(L).collect();
        let parts: Vec<Vec<T>> = starts.into_par_iter().with_min_len(4).map(group).collect();
        self.rest();
        parts.into_iter().flatten().collect()
    }

    /// One row's answer.
    pub(crate) fn one(&self, row: &[f64]) -> Answer {
        self.one_or(row).unwrap_or_else(|| self.in_logarithms(row))
    }

    /// The same, or `None` if it has to be found in another way.
    pub(crate) fn one_or(&self, row: &[f64]) -> Option<Answer> {
        let answer = self.one.with(|| self.workspace(), |workspace| self.sweep(workspace, &[row]));
        answer.into_iter().next().flatten()
    }

    /// One row's answer whatever it lost, each rule's agreement, and how far sums that should be equal differ.
    pub(crate) fn one_imprecise(&self, row: &[f64]) -> (Answer, Vec<f64>, f64) {
        self.one.with(
            || self.workspace(),
            |workspace| {
                let [mut log_total] = self.collect(workspace, &[row]);
                workspace.distribute(&self.plan, &self.leaves, Back::All);
                let masses = self.masses(workspace, row, 0, &mut log_total);
                let [error] = self.inconsistency(workspace);
                (Answer { masses, log_total, error }, self.agreement(workspace), error)
            },
        )
    }

    /// Whether sums that differ by this much count as equal.
    pub(crate) fn is_consistent(&self, error: f64) -> bool {
        error <= self.consistent
    }

    /// One row's answer, and for each rule the probability that it holds given everything else.
    pub(crate) fn one_with_agreement(&self, row: &[f64]) -> (Answer, Vec<f64>) {
        let linear = self.one.with(
            || self.workspace(),
            |workspace| {
                let answer = self.sweep_back(workspace, &[row], Back::All).into_iter().next().flatten();
                answer.map(|answer| {
                    (answer, (!workspace.is_suspicious_of_rules(0)).then(|| self.agreement(workspace)))
                })
            },
        );
        let in_logarithms = || {
            self.log.with(
                || self.workspace(),
                |workspace| {
                    let answers = self.sweep_back(workspace, &[row], Back::All);
                    let answer = answers.into_iter().next().flatten().expect("logarithms do not underflow");
                    (answer, self.agreement(workspace))
                },
            )
        };
        match linear {
            Some((answer, Some(agreement))) => (answer, agreement),
            // The same bits as without agreement.
            Some((answer, None)) => (answer, in_logarithms().1),
            None => in_logarithms(),
        }
    }

    /// The row's answers with each rule left out in turn.
    pub(crate) fn without_each(&self, row: &[f64]) -> Vec<Answer> {
        match self.fits(4, 1) {
            true => self.without_each_in(&self.four, row),
            false => self.without_each_in(&self.one, row),
        }
    }

    fn without_each_in<const L: usize>(&self, pool: &Pool<Workspace<S, L>>, row: &[f64]) -> Vec<Answer> {
        let rules: Vec<RuleId> = self.model.rule_ids().collect();
        let without = |group: &[RuleId]| {
            pool.with(
                || self.workspace(),
                |workspace| {
                    self.weigh_all(workspace);
                    for (lane, &rule) in group.iter().enumerate() {
                        workspace.set_weights(rule, lane, [1.0, 1.0]);
                    }
                    workspace.fill_fixed(&self.plan, &self.leaves);
                    let answers = self.sweep(workspace, &vec![row; group.len()]);
                    self.weigh_all(workspace);
                    workspace.fill_fixed(&self.plan, &self.leaves);
                    answers
                },
            )
        };
        let done = |(answer, rule): (Option<Answer>, &RuleId)| {
            answer.unwrap_or_else(|| self.in_logarithms_without(row, &[*rule]))
        };
        let answers =
            rules.chunks(L).flat_map(|group| without(group).into_iter().zip(group).map(done)).collect();
        self.rest();
        answers
    }

    /// Gives back the memory of idle workspaces, but for a small part.
    pub(super) fn rest(&self) {
        self.account.rest();
    }

    /// Gives every rule its own weights in every lane.
    fn weigh_all<R: Semiring, const L: usize>(&self, workspace: &mut Workspace<R, L>) {
        for (rule, &weights) in self.model.rule_ids().zip(&self.weights) {
            (0..L).for_each(|lane| workspace.set_weights(rule, lane, weights));
        }
    }

    /// Whether this many workspaces of this many lanes are within the limit.
    pub(super) fn fits(&self, lanes: usize, workspaces: usize) -> bool {
        let bytes = self.plan.workspace_bytes(self.weights.len(), lanes);
        self.account.fits(0, bytes.saturating_mul(workspaces as u64))
    }

    pub(super) fn workspace<R: Semiring, const L: usize>(&self) -> Workspace<R, L> {
        Workspace::new(&self.plan, &self.leaves, &self.weights)
    }

    fn in_logarithms(&self, row: &[f64]) -> Answer {
        self.in_logarithms_without(row, &[])
    }

    fn in_logarithms_without(&self, row: &[f64], rules: &[RuleId]) -> Answer {
        let answers = self.log.with(
            || self.workspace(),
            |workspace| {
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
            },
        );
        answers.into_iter().next().flatten().expect("logarithms do not underflow")
    }

    /// ln of every category's mass, for each label up to a constant: −∞ only where the category is impossible.
    pub(crate) fn log_masses(&self, row: &[f64]) -> Vec<f64> {
        self.log.with(
            || self.workspace(),
            |workspace| {
                self.collect(workspace, &[row]);
                workspace.distribute(&self.plan, &self.leaves, Back::Rows);
                let mut log_masses: Vec<f64> = row.iter().map(|belief| belief.ln()).collect();
                for (label, leaf) in self.belief_leaves.iter().enumerate() {
                    let Some(leaf) = leaf else { continue };
                    let derivative = workspace.derivative(&self.plan.tables[*leaf]);
                    let block = self.model.block(LabelId::new(label));
                    for (log_mass, &state) in
                        log_masses[block].iter_mut().zip(&self.states.of_category[label])
                    {
                        *log_mass += S::Log::ln(derivative[state][0]);
                    }
                }
                log_masses
            },
        )
    }

    /// The answers of up to `L` rows; `None` where something may have underflowed.
    fn sweep<R: Semiring, const L: usize>(
        &self,
        workspace: &mut Workspace<R, L>,
        rows: &[&[f64]],
    ) -> Vec<Option<Answer>> {
        self.sweep_back(workspace, rows, Back::Rows)
    }

    fn sweep_back<R: Semiring, const L: usize>(
        &self,
        workspace: &mut Workspace<R, L>,
        rows: &[&[f64]],
        back: Back,
    ) -> Vec<Option<Answer>> {
        let log_totals = self.collect(workspace, rows);
        workspace.distribute(&self.plan, &self.leaves, back);
        let inconsistency =
            if self.consistent < f64::INFINITY { self.inconsistency(workspace) } else { [0.0; L] };
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

    /// Whether underflow has left the masses of all categories their digits.
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

    /// Runs the plan forward on up to `L` rows; ln Z of each, without the labels that no rule speaks about.
    pub(super) fn collect<R: Semiring, const L: usize>(
        &self,
        workspace: &mut Workspace<R, L>,
        rows: &[&[f64]],
    ) -> [f64; L] {
        // Lanes without a row repeat the first.
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

    /// ln of what the labels that no rule speaks about contribute to Z: 0 but for rounding.
    pub(super) fn log_unspoken(&self, row: &[f64]) -> f64 {
        let unspoken = self.model.label_ids().filter(|label| self.belief_leaves[label.index()].is_none());
        unspoken.map(|label| row[self.model.block(label)].iter().sum::<f64>().ln()).sum()
    }

    /// How far Z may be off, relative to it.
    ///
    /// That is the largest difference to the sum over a label's categories that it equals. Where a single rule leaves but a few
    /// units in the last place, these sums may agree by chance: what they are differences of tells.
    fn inconsistency<R: Semiring, const L: usize>(&self, workspace: &Workspace<R, L>) -> [f64; L] {
        let mut worst = workspace.magnitude().map(|magnitude| magnitude * f64::EPSILON);
        for &leaf in self.belief_leaves.iter().flatten() {
            let difference = workspace.inconsistency(&self.plan, leaf);
            for l in 0..L {
                // Not a number counts as different.
                worst[l] = if difference[l] <= worst[l] { worst[l] } else { difference[l] };
            }
        }
        worst.map(|worst| if worst.is_nan() { f64::INFINITY } else { worst })
    }

    /// For every category its belief times the derivative of the total, per label divided by the largest.
    ///
    /// Labels that no rule speaks about have their beliefs; under a maximum the total lacks their best one.
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
                    // What is possible stays possible.
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

    /// P(R_k | R_-k) = (w(silent) S + w(fired) F) / (S + F), where S and F are what the two weights multiply in Z.
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

/// Whether the shares of these masses have all digits that a number of their size has.
fn are_normal(masses: &[f64]) -> bool {
    /// Above this, masses that are too small for all digits are shares that are.
    const LARGE: f64 = 1e-7;
    masses.iter().sum::<f64>() >= LARGE || masses.iter().all(|&mass| mass == 0.0 || mass.abs() >= SMALLEST)
}

#[cfg(test)]
mod tests;
