//! Runs a plan on several rows side by side.
//!
//! Every number is a lane: one value per row. The loops over a lane are plain and of fixed length, so the
//! compiler turns them into vector instructions, and each row's arithmetic is the same whatever its neighbors.

mod backward;
mod kernels;

use super::network::{Leaf, Source};
use super::plan::{Plan, Step, Table};
use super::underflow::{self, Track};
use crate::infer::semiring::Semiring;
use crate::rule::RuleId;
use kernels::{add_product, extend, join, or, pairs, scale, sum_of_products, weigh};

/// One value for each of `L` rows.
pub(crate) type Lane<const L: usize> = [f64; L];

/// Below this a table's largest entry is so small that digits of other entries may be lost: the row is done
/// again in logarithms.
const SUSPICIOUS: f64 = 1e-60;

/// All tables of a plan and their derivatives, for `L` rows.
pub(crate) struct Workspace<S, const L: usize> {
    values: Vec<Lane<L>>,
    derivatives: Vec<Lane<L>>,
    /// Powers of two taken out of each table, and out of its derivatives.
    exponents: Vec<[[i32; L]; 2]>,
    /// What each rule weighs by when silent and when fired: plain numbers in every semiring.
    weights: Vec<[Lane<L>; 2]>,
    /// What each rule's weights multiply in Z, up to a factor per lane: after a sweep back to all tables.
    masses: Vec<[Lane<L>; 2]>,
    /// Rows in which something may have underflowed.
    suspicious: [bool; L],
    /// The same for what is known of the rules alone, after a sweep back to all tables.
    suspicious_rules: [bool; L],
    /// What underflow may have taken from each table, and from its derivatives.
    tracks: Vec<[Track<L>; 2]>,
    /// The product of the smallest positive entries of all leaves that do not depend on the row.
    fixed_smallest: Lane<L>,
    /// Whether nothing can underflow in any of the rows, so that nothing has to be tracked.
    calm: bool,
    /// The most that the terms of a watched table are larger than Z, which is their sum.
    magnitude: Lane<L>,
    semiring: std::marker::PhantomData<S>,
}

/// How far a sweep goes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Back {
    /// To the tables that depend on the row: enough for the marginals.
    Rows,
    /// To every table.
    All,
}

impl<S: Semiring, const L: usize> Workspace<S, L> {
    /// Memory for a plan, its fixed tables filled in.
    pub(crate) fn new(plan: &Plan, leaves: &[Leaf], weights: &[[f64; 2]]) -> Self {
        let mut workspace = Self {
            values: vec![[S::ZERO; L]; plan.size],
            derivatives: vec![[S::ZERO; L]; plan.derivatives],
            exponents: vec![[[0; L]; 2]; plan.tables.len()],
            weights: weights.iter().map(|pair| pair.map(|weight| [weight; L])).collect(),
            masses: vec![[[S::ZERO; L]; 2]; weights.len()],
            suspicious: [false; L],
            suspicious_rules: [false; L],
            tracks: vec![[Track::default(); 2]; plan.tables.len()],
            fixed_smallest: [1.0; L],
            calm: false,
            magnitude: [0.0; L],
            semiring: std::marker::PhantomData,
        };
        workspace.fill_fixed(plan, leaves);
        workspace
    }

    /// Sets one rule's weights in one lane; [`Self::fill_fixed`] makes them count.
    pub(crate) fn set_weights(&mut self, rule: RuleId, lane: usize, weights: [f64; 2]) {
        for (slot, weight) in self.weights[rule.index()].iter_mut().zip(weights) {
            slot[lane] = weight;
        }
    }

    /// Computes every table that does not depend on the row.
    pub(crate) fn fill_fixed(&mut self, plan: &Plan, leaves: &[Leaf]) {
        self.fixed_smallest = [1.0; L];
        for (index, (leaf, table)) in leaves.iter().zip(&plan.tables).enumerate() {
            let slots = &mut self.values[table.offset..table.offset + table.size];
            let mut is_exact = [true; L];
            match &leaf.source {
                Source::Belief(_) => continue,
                Source::Fixed(numbers) => {
                    for (slot, &number) in slots.iter_mut().zip(numbers) {
                        *slot = [S::element(number); L];
                    }
                }
                Source::Rule(rule, outcomes) => {
                    let [silent, fired] = self.weights[rule.index()];
                    for (slot, outcome) in slots.iter_mut().zip(outcomes) {
                        for l in 0..L {
                            slot[l] = outcome.weigh::<S>([silent[l], fired[l]]);
                            is_exact[l] &= outcome.is_exact([silent[l], fired[l]]);
                        }
                    }
                }
            }
            if S::SCALED {
                self.tracks[index][VALUE] = Track::of_leaf(slots, is_exact);
                self.tracks[index][VALUE].shrink(&mut self.fixed_smallest);
            }
        }
        self.calm = false;
        for step in &plan.steps {
            if let (Step::Weigh { rule, .. }, true) = (step, S::SCALED) {
                underflow::of_weights(&self.weights[rule.index()]).shrink(&mut self.fixed_smallest);
            }
            if plan.tables[step.out()].fixed {
                self.run_forward(plan, step);
            }
        }
    }

    /// Notes how small the beliefs are; to be called when they are in place.
    fn track_beliefs(&mut self, plan: &Plan, belief_leaves: impl Iterator<Item = usize>) {
        if !S::SCALED {
            return;
        }
        let mut smallest = self.fixed_smallest;
        for leaf in belief_leaves {
            let track = Track::of_leaf(slots(&self.values, &plan.tables[leaf]), [true; L]);
            self.tracks[leaf][VALUE] = track;
            track.shrink(&mut smallest);
        }
        self.calm = smallest.iter().all(|&smallest| smallest >= underflow::CALM);
    }

    /// Computes a step's table, and scales it.
    fn run_forward(&mut self, plan: &Plan, step: &Step) {
        let largest = self.forward(plan, step);
        let table = &plan.tables[step.out()];
        let slots = &mut self.values[table.offset..table.offset + table.size];
        let scaled = scale::<S, L>(slots, largest, &mut self.suspicious);
        self.exponents[step.out()][VALUE] =
            step.inputs().fold(scaled, |sum, input| plus(sum, self.exponents[input][VALUE]));
        if S::SCALED && !self.calm {
            self.track_forward(plan, step, largest, scaled);
        }
    }

    /// What underflow may have taken from the result of a step.
    fn track_forward(&mut self, plan: &Plan, step: &Step, largest: Lane<L>, scaled: [i32; L]) {
        let lost = match step {
            Step::Join { a, b, forward, .. } => {
                self.product(plan, [(*a, VALUE), (*b, VALUE)], forward.across.len())
            }
            Step::Or { a, b, forward, .. } => {
                self.product(plan, [(*a, VALUE), (*b, VALUE)], forward.terms.len())
            }
            Step::Weigh { input, rule, .. } => Track::product(
                &self.tracks[*input][VALUE],
                &underflow::of_weights(&self.weights[rule.index()]),
                2,
            ),
            Step::Extend { input, .. } => self.tracks[*input][VALUE].times(2.0),
        };
        self.keep_track(plan, (step.out(), VALUE), lost, largest, scaled);
    }

    /// What underflow may have taken from sums of `n` products of the entries of two tables, or of their derivatives.
    fn product(&self, plan: &Plan, inputs: [(usize, usize); 2], n: usize) -> Track<L> {
        let mut tracks = inputs.map(|(table, kind)| self.tracks[table][kind]);
        let product = Track::product(&tracks[0], &tracks[1], n);
        if !product.loses().contains(&true) {
            return product;
        }
        // The smallest entries are known by a bound, which may be too low.
        for (track, (table, kind)) in tracks.iter_mut().zip(inputs) {
            track.raise(&product.loses(), &underflow::smallest_of(self.entries(plan, table, kind)));
        }
        Track::product(&tracks[0], &tracks[1], n)
    }

    fn keep_track(
        &mut self,
        plan: &Plan,
        (table, kind): (usize, usize),
        track: Track<L>,
        largest: Lane<L>,
        scaled: [i32; L],
    ) {
        let track = track.scaled(largest, scaled);
        let is_low = track.is_low();
        self.tracks[table][kind] = track;
        if is_low.contains(&true) {
            let smallest = underflow::smallest_of(self.entries(plan, table, kind));
            self.tracks[table][kind].raise(&is_low, &smallest);
        }
    }

    /// A table's values or derivatives.
    fn entries(&self, plan: &Plan, table: usize, kind: usize) -> &[Lane<L>] {
        let table = &plan.tables[table];
        if kind == VALUE { self.value(table) } else { self.derivative(table) }
    }

    /// The most that underflow may have taken from a product of entries of two tables: 0 where nothing did.
    pub(crate) fn lost(&self, [a, b]: [usize; 2], lane: usize) -> f64 {
        if self.calm || !S::SCALED {
            return 0.0;
        }
        Track::product(&self.tracks[a][VALUE], &self.tracks[b][VALUE], 1).lost(lane)
    }

    /// The same of an entry of a table times a weight.
    pub(crate) fn lost_by_weight(&self, table: usize, weights: [f64; 2], lane: usize) -> f64 {
        if self.calm || !S::SCALED {
            return 0.0;
        }
        let weights = underflow::of_weights(&weights.map(|weight| [weight; L]));
        Track::product(&self.tracks[table][VALUE], &weights, 1).lost(lane)
    }

    /// Whether nothing can have underflowed in any lane.
    pub(crate) fn is_calm(&self) -> bool {
        self.calm
    }

    /// Whether underflow has left a derivative of a leaf its digits.
    pub(crate) fn keeps_derivative(&self, leaf: usize, lane: usize, derivative: f64) -> bool {
        underflow::is_kept(derivative, self.tracks[leaf][DERIVATIVE].lost(lane))
    }

    /// The slots of a leaf that depends on the row.
    pub(crate) fn leaf_mut(&mut self, table: &Table) -> &mut [Lane<L>] {
        &mut self.values[table.offset..table.offset + table.size]
    }

    /// The values of a table.
    pub(crate) fn value(&self, table: &Table) -> &[Lane<L>] {
        slots(&self.values, table)
    }

    /// The derivatives of Z in a leaf's entries, up to a factor per lane.
    pub(crate) fn derivative(&self, table: &Table) -> &[Lane<L>] {
        &self.derivatives[table.derivative..table.derivative + table.size]
    }

    /// What each rule's weights multiply in Z: the sum over silent and over fired, up to a factor per lane.
    pub(crate) fn masses(&self, rule: RuleId) -> [Lane<L>; 2] {
        self.masses[rule.index()]
    }

    /// Whether a row has to be done again in logarithms.
    pub(crate) fn is_suspicious(&self, lane: usize) -> bool {
        self.suspicious[lane]
    }

    /// Whether what each rule's weights multiply has to be found in logarithms.
    pub(crate) fn is_suspicious_of_rules(&self, lane: usize) -> bool {
        self.suspicious_rules[lane]
    }

    /// The most by which the terms of a watched table are larger than Z, which is their sum.
    pub(crate) fn magnitude(&self) -> Lane<L> {
        self.magnitude
    }

    /// Runs all steps that depend on the rows; ln Z of each lane.
    pub(crate) fn collect(&mut self, plan: &Plan, belief_leaves: impl Iterator<Item = usize>) -> [f64; L] {
        self.suspicious = [false; L];
        self.track_beliefs(plan, belief_leaves);
        for step in plan.steps.iter().filter(|step| !plan.tables[step.out()].fixed) {
            self.run_forward(plan, step);
        }
        let mut log_evidence = [0.0; L];
        for &root in &plan.roots {
            let value = self.values[plan.tables[root].offset];
            for l in 0..L {
                let exponent = f64::from(self.exponents[root][VALUE][l]);
                log_evidence[l] += S::ln(value[l]) + exponent * std::f64::consts::LN_2;
                if S::SCALED && !self.calm {
                    self.suspicious[l] |=
                        !underflow::is_kept(value[l].abs(), self.tracks[root][VALUE].lost(l));
                }
            }
        }
        log_evidence
    }

    /// Runs the steps backward: the derivative of Z in every table, up to a power of two per table and lane.
    pub(crate) fn distribute(&mut self, plan: &Plan, leaves: &[Leaf], back: Back) {
        self.magnitude = [1.0; L];
        self.suspicious_rules = [false; L];
        for &root in &plan.roots {
            self.derivatives[plan.tables[root].derivative] = [S::ONE; L];
            self.exponents[root][DERIVATIVE] = [0; L];
            self.tracks[root][DERIVATIVE] = Track::default();
        }
        for step in plan.steps.iter().rev() {
            if back == Back::All || !plan.tables[step.out()].fixed {
                self.backward(plan, step, back);
            }
        }
        if back == Back::All {
            self.weigh_tables(plan, leaves);
        }
    }

    /// How far the label's own sum Σ belief · derivative is from Z, relative to it: nothing but rounding.
    pub(crate) fn inconsistency(&self, plan: &Plan, leaf: usize) -> Lane<L> {
        self.share(plan, leaf, |term| term).map(|share| (share - 1.0).abs())
    }

    /// Σ value · derivative of a table's entries in terms of Z, each made into whatever `term` makes of it.
    fn share(&self, plan: &Plan, table: usize, term: impl Fn(f64) -> f64) -> Lane<L> {
        let (root, [value, derivative]) = (plan.root_of[table], self.exponents[table]);
        let table = &plan.tables[table];
        let sum = sum_of_products(self.value(table), self.derivative(table), term);
        let total = self.values[plan.tables[root].offset];
        std::array::from_fn(|l| {
            let exponent = value[l] + derivative[l] - self.exponents[root][VALUE][l];
            sum[l] * f64::from(exponent).exp2() / total[l]
        })
    }

    /// The masses of the rules that are given as tables.
    fn weigh_tables(&mut self, plan: &Plan, leaves: &[Leaf]) {
        for (leaf, table) in leaves.iter().zip(&plan.tables) {
            let Source::Rule(rule, outcomes) = &leaf.source else { continue };
            let derivatives = &self.derivatives[table.derivative..table.derivative + table.size];
            let masses = &mut self.masses[rule.index()];
            *masses = [[S::ZERO; L]; 2];
            for (outcome, derivative) in outcomes.iter().zip(derivatives) {
                for (mass, q) in masses.iter_mut().zip(outcome.elements::<S>()) {
                    add_product::<S, L>(mass, &[q; L], derivative);
                }
            }
        }
    }

    /// The masses of a rule whose weights are applied in a step of their own.
    fn weigh_step(&mut self, plan: &Plan, input: usize, out: usize, rule: RuleId, stride: usize) {
        let values = slots(&self.values, &plan.tables[input]);
        let out = &plan.tables[out];
        let derivatives = &self.derivatives[out.derivative..out.derivative + out.size];
        let [silent_mass, fired_mass] = &mut self.masses[rule.index()];
        (*silent_mass, *fired_mass) = ([S::ZERO; L], [S::ZERO; L]);
        for silent in pairs(values.len(), stride) {
            let fired = silent + stride;
            add_product::<S, L>(silent_mass, &values[silent], &derivatives[silent]);
            add_product::<S, L>(fired_mass, &values[fired], &derivatives[silent]);
            add_product::<S, L>(fired_mass, &values[silent], &derivatives[fired]);
            add_product::<S, L>(fired_mass, &values[fired], &derivatives[fired]);
        }
    }

    /// Computes a step's table; the largest entry of each lane.
    fn forward(&mut self, plan: &Plan, step: &Step) -> Lane<L> {
        let out = &plan.tables[step.out()];
        let (before, after) = self.values.split_at_mut(out.offset);
        let result = &mut after[..out.size];
        match step {
            Step::Join { a, b, forward, .. } => {
                let (a, b) = (slots(before, &plan.tables[*a]), slots(before, &plan.tables[*b]));
                join::<S, L>(a, b, result, forward)
            }
            Step::Or { a, b, forward, .. } => {
                let (a, b) = (slots(before, &plan.tables[*a]), slots(before, &plan.tables[*b]));
                or::<S, L>(a, b, result, forward)
            }
            Step::Weigh { input, rule, stride, .. } => {
                let input = slots(before, &plan.tables[*input]);
                weigh::<S, L>(input, result, &self.weights[rule.index()], *stride)
            }
            Step::Extend { input, stride, .. } => {
                extend::<S, L>(slots(before, &plan.tables[*input]), result, *stride)
            }
        }
    }
}

/// The place of a table's exponents, and of its derivatives'.
const VALUE: usize = 0;
const DERIVATIVE: usize = 1;

fn plus<const L: usize>(a: [i32; L], b: [i32; L]) -> [i32; L] {
    std::array::from_fn(|l| a[l] + b[l])
}

fn slots<'a, const L: usize>(values: &'a [Lane<L>], table: &Table) -> &'a [Lane<L>] {
    &values[table.offset..table.offset + table.size]
}
