//! Runs a plan on several rows at the same time.
//!
//! Every table entry is an array of lanes, with one value per row. Loops over the lanes are simple and of fixed length,
//! so the compiler vectorizes them. The arithmetic of a row does not depend on the rows in other lanes.

mod backward;
mod boundary;
mod kernels;

pub(crate) use boundary::boundary;

use super::network::{Leaf, Source};
use super::plan::{Plan, Step, Table};
use super::underflow::{self, Track};
use crate::infer::semiring::Semiring;
use crate::rule::RuleId;
use kernels::{add_product, extend, join, or, pairs, scale, sum_of_products, weigh};

/// One value for each of `L` rows.
pub(crate) type Lane<const L: usize> = [f64; L];

/// Smallest largest entry of a table before scaling. Below it, other entries of the table may have underflowed, and the
/// row is computed again in logarithms.
const SUSPICIOUS: f64 = 1e-60;

/// All tables of a plan and their derivatives, for `L` rows.
pub(crate) struct Workspace<S, const L: usize> {
    values: Vec<Lane<L>>,
    derivatives: Vec<Lane<L>>,
    /// The exponents by which each table and its derivatives are scaled, as powers of two.
    exponents: Vec<[[i32; L]; 2]>,
    /// The weights of each rule when silent and when fired. They are plain numbers in every semiring.
    weights: Vec<[Lane<L>; 2]>,
    /// ∂Z/∂w(silent) and ∂Z/∂w(fired) of each rule, up to a factor per rule and lane. Computed for [`Back::All`].
    masses: Vec<[Lane<L>; 2]>,
    /// Whether underflow may have affected ln Z or the marginals of a row.
    suspicious: [bool; L],
    /// Whether underflow may have affected `masses` of a row.
    suspicious_rules: [bool; L],
    /// Bounds on the errors by underflow of each table and of its derivatives.
    tracks: Vec<[Track<L>; 2]>,
    /// The product of the smallest positive entries of all leaves that are independent of the row.
    fixed_smallest: Lane<L>,
    /// Whether underflow is impossible in all rows. Then the bounds are not needed.
    calm: bool,
    /// The largest ratio of Σ |term| to |Z| of any watched table, where Z is the sum of the terms.
    magnitude: Lane<L>,
    /// The derivatives of boundary tables, with their exponents. Computed for [`Back::Boundary`].
    boundary: Vec<Lane<L>>,
    boundary_exponents: Vec<[i32; L]>,
    /// The version of the weights, see `Runner::reweigh`.
    pub(super) version: u64,
    semiring: std::marker::PhantomData<S>,
}

/// The tables whose derivatives a backward pass computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Back {
    /// Those that depend on the row. This suffices for marginals.
    Rows,
    /// Also the largest tables that do not depend on the row. Their derivatives can be added up over rows.
    Boundary,
    /// All tables. Agreement of rules needs them.
    All,
}

impl<S: Semiring, const L: usize> Workspace<S, L> {
    /// A workspace for a plan, with the tables computed that are independent of the row.
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
            boundary: Vec::new(),
            boundary_exponents: Vec::new(),
            version: 0,
            semiring: std::marker::PhantomData,
        };
        workspace.fill_fixed(plan, leaves);
        workspace
    }

    /// Sets one rule's weights in one lane. They take effect with the next [`Self::fill_fixed`].
    pub(crate) fn set_weights(&mut self, rule: RuleId, lane: usize, weights: [f64; 2]) {
        for (slot, weight) in self.weights[rule.index()].iter_mut().zip(weights) {
            slot[lane] = weight;
        }
    }

    /// Computes every table that is independent of the row.
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

    /// Computes the bounds of the belief leaves, and whether underflow is impossible.
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

    /// Computes the bounds of a step's result.
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

    /// The bounds of sums of `n` products of the entries of two tables, or of their derivatives.
    fn product(&self, plan: &Plan, inputs: [(usize, usize); 2], n: usize) -> Track<L> {
        let mut tracks = inputs.map(|(table, kind)| self.tracks[table][kind]);
        let product = Track::product(&tracks[0], &tracks[1], n);
        if !product.loses().contains(&true) {
            return product;
        }
        // The bounds on the smallest entries may be too low, so these are determined.
        for (track, (table, kind)) in tracks.iter_mut().zip(inputs) {
            track.raise(&product.loses(), &underflow::smallest_of(self.entries(plan, table, kind)));
        }
        Track::product(&tracks[0], &tracks[1], n)
    }

    /// Stores the bounds of a table or of its derivatives, after scaling.
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

    /// Bound on the error by underflow of a product of entries of two tables.
    pub(crate) fn lost(&self, [a, b]: [usize; 2], lane: usize) -> f64 {
        if self.calm || !S::SCALED {
            return 0.0;
        }
        Track::product(&self.tracks[a][VALUE], &self.tracks[b][VALUE], 1).lost(lane)
    }

    /// Bound on the error by underflow of an entry of a table times a weight.
    pub(crate) fn lost_by_weight(&self, table: usize, weights: [f64; 2], lane: usize) -> f64 {
        if self.calm || !S::SCALED {
            return 0.0;
        }
        let weights = underflow::of_weights(&weights.map(|weight| [weight; L]));
        Track::product(&self.tracks[table][VALUE], &weights, 1).lost(lane)
    }

    /// Whether underflow is impossible in all lanes.
    pub(crate) fn is_calm(&self) -> bool {
        self.calm
    }

    /// Whether a derivative of a leaf is accurate in spite of underflow.
    pub(crate) fn keeps_derivative(&self, leaf: usize, lane: usize, derivative: f64) -> bool {
        underflow::is_kept(derivative, self.tracks[leaf][DERIVATIVE].lost(lane))
    }

    /// The entries of a belief leaf, to be filled.
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

    /// ∂Z/∂w(silent) and ∂Z/∂w(fired) of a rule, up to a factor per lane.
    pub(crate) fn masses(&self, rule: RuleId) -> [Lane<L>; 2] {
        self.masses[rule.index()]
    }

    /// Whether a row must be computed again in logarithms.
    pub(crate) fn is_suspicious(&self, lane: usize) -> bool {
        self.suspicious[lane]
    }

    /// Whether the result of [`Self::masses`] must be computed again in logarithms.
    pub(crate) fn is_suspicious_of_rules(&self, lane: usize) -> bool {
        self.suspicious_rules[lane]
    }

    /// The largest ratio of Σ |term| to |Z| of any watched table.
    pub(crate) fn magnitude(&self) -> Lane<L> {
        self.magnitude
    }

    /// Runs all steps that depend on the rows. Returns ln Z of each lane.
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

    /// Runs the steps backward. Computes the derivative of Z in every table, up to a power of two per table and lane.
    pub(crate) fn distribute(&mut self, plan: &Plan, leaves: &[Leaf], back: Back) {
        self.magnitude = [1.0; L];
        self.suspicious_rules = [false; L];
        for &root in &plan.roots {
            self.derivatives[plan.tables[root].derivative] = [S::ONE; L];
            self.exponents[root][DERIVATIVE] = [0; L];
            self.tracks[root][DERIVATIVE] = Track::default();
        }
        self.boundary.clear();
        self.boundary_exponents.clear();
        if back == Back::Boundary {
            plan.roots
                .iter()
                .filter(|&&root| plan.tables[root].fixed)
                .for_each(|&root| self.keep_boundary(plan, root));
        }
        for step in plan.steps.iter().rev() {
            if back == Back::All || !plan.tables[step.out()].fixed {
                self.backward(plan, step, back);
                if back == Back::Boundary {
                    let fixed = step.inputs().filter(|&input| plan.tables[input].fixed);
                    fixed.for_each(|input| self.keep_boundary(plan, input));
                }
            }
        }
        if back == Back::All {
            self.weigh_tables(plan, leaves);
        }
    }

    /// The relative difference between Z and a label's sum Σ belief · derivative. Without rounding it would be 0.
    pub(crate) fn inconsistency(&self, plan: &Plan, leaf: usize) -> Lane<L> {
        self.share(plan, leaf, |term| term).map(|share| (share - 1.0).abs())
    }

    /// Σ term(value · derivative) over a table's entries, divided by Z.
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

    /// Computes `masses` of the rules that are tables of the network.
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

    /// Computes `masses` of a rule whose weights are applied by [`Step::Weigh`].
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

    /// Computes a step's table. Returns the largest entry of each lane.
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

/// Positions of a table's values and of its derivatives in `exponents` and `tracks`.
const VALUE: usize = 0;
const DERIVATIVE: usize = 1;

fn plus<const L: usize>(a: [i32; L], b: [i32; L]) -> [i32; L] {
    std::array::from_fn(|l| a[l] + b[l])
}

fn slots<'a, const L: usize>(values: &'a [Lane<L>], table: &Table) -> &'a [Lane<L>] {
    &values[table.offset..table.offset + table.size]
}
