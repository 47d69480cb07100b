//! Runs a plan on several rows side by side.
//!
//! Every number is a lane: one value per row. The loops over a lane are plain and of fixed length, so the
//! compiler turns them into vector instructions, and each row's arithmetic is the same whatever its neighbors.

use pulp::Arch;

use super::network::{Leaf, Source};
use super::plan::{At, Loops, Nest, Plan, Step, Table};
use super::underflow::{self, Track};
use crate::infer::semiring::Semiring;
use crate::rule::RuleId;

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
            Step::Or { a, b, kept, summed, .. } => {
                self.product(plan, [(*a, VALUE), (*b, VALUE)], kept.len() * summed.len())
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
        let mut sum = [0.0; L];
        let table = &plan.tables[table];
        for (value, derivative) in self.value(table).iter().zip(self.derivative(table)) {
            for l in 0..L {
                sum[l] += term(value[l] * derivative[l]);
            }
        }
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
                return join::<S, L>(a, b, result, forward);
            }
            Step::Or { a, b, kept, summed, .. } => {
                let (a, b) = (slots(before, &plan.tables[*a]), slots(before, &plan.tables[*b]));
                or::<S, L>(a, b, result, kept, summed);
            }
            Step::Weigh { input, rule, stride, .. } => {
                let input = slots(before, &plan.tables[*input]);
                weigh::<S, L>(input, result, &self.weights[rule.index()], *stride);
            }
            Step::Extend { input, stride, .. } => {
                extend::<S, L>(slots(before, &plan.tables[*input]), result, *stride);
            }
        }
        largest_of::<S, L>(result)
    }

    /// Computes the derivatives in a step's inputs from that in its result.
    fn backward(&mut self, plan: &Plan, step: &Step, back: Back) {
        let out = &plan.tables[step.out()];
        let wanted = |table: usize| back == Back::All || !plan.tables[table].fixed;
        let room = |table: &Table| table.derivative..table.derivative + table.size;
        let exponent = self.exponents[step.out()][DERIVATIVE];
        match step {
            Step::Join { a, b, .. } | Step::Or { a, b, .. } => {
                let (t_a, t_b) = (&plan.tables[*a], &plan.tables[*b]);
                let values = [slots(&self.values, t_a), slots(&self.values, t_b)];
                let [d_out, d_a, d_b] = self
                    .derivatives
                    .get_disjoint_mut([room(out), room(t_a), room(t_b)])
                    .expect("a step's derivatives have rooms of their own");
                let wanted = [wanted(*a), wanted(*b)];
                let largest = match step {
                    Step::Join { backward, .. } => {
                        join_back::<S, L>(d_out, values, [&mut *d_a, &mut *d_b], backward, wanted)
                    }
                    Step::Or { kept, summed, .. } => {
                        or_back::<S, L>(d_out, values, [&mut *d_a, &mut *d_b], kept, summed);
                        [largest_of::<S, L>(d_a), largest_of::<S, L>(d_b)]
                    }
                    _ => unreachable!("only joins have two inputs"),
                };
                let mut scaled = [[0; L]; 2];
                for (place, (this, other, slots)) in [(*a, *b, d_a), (*b, *a, d_b)].into_iter().enumerate() {
                    if wanted[place] {
                        // The marginals do not depend on tables that are the same for every row.
                        let suspicious = match plan.tables[this].fixed {
                            true => &mut self.suspicious_rules,
                            false => &mut self.suspicious,
                        };
                        scaled[place] = scale::<S, L>(slots, largest[place], suspicious);
                        self.exponents[this][DERIVATIVE] =
                            plus(plus(exponent, self.exponents[other][VALUE]), scaled[place]);
                    }
                }
                if S::SCALED && !self.calm {
                    let n_terms = match step {
                        Step::Join { backward: Nest { along, across }, .. } => along.len() * across.len(),
                        Step::Or { kept, summed, .. } => kept.len() * summed.len(),
                        _ => unreachable!("only joins have two inputs"),
                    };
                    for (place, (this, other)) in [(*a, *b), (*b, *a)].into_iter().enumerate() {
                        if wanted[place] {
                            let lost =
                                self.product(plan, [(step.out(), DERIVATIVE), (other, VALUE)], n_terms);
                            self.keep_track(plan, (this, DERIVATIVE), lost, largest[place], scaled[place]);
                        }
                    }
                }
                for table in [*a, *b].into_iter().filter(|&table| plan.tables[table].watched) {
                    let share = self.share(plan, table, f64::abs);
                    for l in 0..L {
                        // Not a number counts as large.
                        let share = if share[l].is_nan() { f64::INFINITY } else { share[l].abs() };
                        self.magnitude[l] = self.magnitude[l].max(share);
                    }
                }
            }
            Step::Weigh { input, rule, stride, .. } => {
                if back == Back::All {
                    self.weigh_step(plan, *input, step.out(), *rule, *stride);
                }
                let [d_out, d_in] = self
                    .derivatives
                    .get_disjoint_mut([room(out), room(&plan.tables[*input])])
                    .expect("a step's derivatives have rooms of their own");
                // The matrix of the weights is symmetric: backward is forward.
                weigh::<S, L>(d_out, d_in, &self.weights[rule.index()], *stride);
                self.exponents[*input][DERIVATIVE] = exponent;
                if S::SCALED && !self.calm {
                    let largest = largest_of::<S, L>(d_in);
                    let weights = underflow::of_weights(&self.weights[rule.index()]);
                    let lost = Track::product(&self.tracks[step.out()][DERIVATIVE], &weights, 2);
                    self.keep_track(plan, (*input, DERIVATIVE), lost, largest, [0; L]);
                }
            }
            Step::Extend { input, stride, .. } => {
                let [d_out, d_in] = self
                    .derivatives
                    .get_disjoint_mut([room(out), room(&plan.tables[*input])])
                    .expect("a step's derivatives have rooms of their own");
                extend_back::<S, L>(d_out, d_in, *stride);
                self.exponents[*input][DERIVATIVE] = exponent;
                if S::SCALED && !self.calm {
                    let largest = largest_of::<S, L>(d_in);
                    let lost = self.tracks[step.out()][DERIVATIVE].times(2.0);
                    self.keep_track(plan, (*input, DERIVATIVE), lost, largest, [0; L]);
                }
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

/// sum ⊕= x ⊗ y
#[inline(always)]
fn add_product<S: Semiring, const L: usize>(sum: &mut Lane<L>, x: &Lane<L>, y: &Lane<L>) {
    for l in 0..L {
        sum[l] = S::add(sum[l], S::mul(x[l], y[l]));
    }
}

/// The larger size of each lane.
#[inline(always)]
fn widen<S: Semiring, const L: usize>(largest: &mut Lane<L>, x: &Lane<L>) {
    if S::SCALED {
        for l in 0..L {
            largest[l] = if x[l].abs() > largest[l] { x[l].abs() } else { largest[l] };
        }
    }
}

fn largest_of<S: Semiring, const L: usize>(slots: &[Lane<L>]) -> Lane<L> {
    let mut largest = [0.0; L];
    slots.iter().for_each(|slot| widen::<S, L>(&mut largest, slot));
    largest
}

/// out[k] = Σ_s a[k, s] b[k, s]; the largest entry of each lane. Short sums are written out by the compiler.
fn join<S: Semiring, const L: usize>(
    a: &[Lane<L>],
    b: &[Lane<L>],
    out: &mut [Lane<L>],
    nest: &Nest,
) -> Lane<L> {
    match nest.across.len() {
        1 => join_across::<S, L, 1>(a, b, out, nest),
        2 => join_across::<S, L, 2>(a, b, out, nest),
        3 => join_across::<S, L, 3>(a, b, out, nest),
        4 => join_across::<S, L, 4>(a, b, out, nest),
        6 => join_across::<S, L, 6>(a, b, out, nest),
        8 => join_across::<S, L, 8>(a, b, out, nest),
        _ => Arch::new().dispatch(|| join_in::<S, L>(a, b, out, &nest.along, &nest.across)),
    }
}

#[inline(never)]
fn join_across<S: Semiring, const L: usize, const N: usize>(
    a: &[Lane<L>],
    b: &[Lane<L>],
    out: &mut [Lane<L>],
    nest: &Nest,
) -> Lane<L> {
    let across: [At; N] = std::array::from_fn(|n| nest.across[n]);
    Arch::new().dispatch(|| join_in::<S, L>(a, b, out, &nest.along, &across))
}

#[inline(always)]
fn join_in<S: Semiring, const L: usize>(
    a: &[Lane<L>],
    b: &[Lane<L>],
    out: &mut [Lane<L>],
    along: &Loops,
    across: &[At],
) -> Lane<L> {
    let mut largest = [0.0; L];
    for (o, slots) in along.outer().zip(out.chunks_exact_mut(along.inner.len())) {
        for (i, slot) in along.inner.iter().zip(slots) {
            let (a, b) = (&a[(o.a + i.a) as usize..], &b[(o.b + i.b) as usize..]);
            let mut sum = [S::ZERO; L];
            for p in across {
                add_product::<S, L>(&mut sum, &a[p.a as usize], &b[p.b as usize]);
            }
            widen::<S, L>(&mut largest, &sum);
            *slot = sum;
        }
    }
    largest
}

/// The derivatives of a join, d_a[k, s] = Σ d[k] b[k, s] and the same for b, those that are wanted; the largest of
/// each. `a` is the larger table and gone through in order.
fn join_back<S: Semiring, const L: usize>(
    d: &[Lane<L>],
    values: [&[Lane<L>]; 2],
    derivatives: [&mut [Lane<L>]; 2],
    nest: &Nest,
    wanted: [bool; 2],
) -> [Lane<L>; 2] {
    match (wanted, nest.across.len()) {
        ([true, true], 1) => join_back_across::<S, L, true, true, 1>(d, values, derivatives, nest),
        ([true, true], 2) => join_back_across::<S, L, true, true, 2>(d, values, derivatives, nest),
        ([true, true], 3) => join_back_across::<S, L, true, true, 3>(d, values, derivatives, nest),
        ([true, true], 4) => join_back_across::<S, L, true, true, 4>(d, values, derivatives, nest),
        ([true, false], 1) => join_back_across::<S, L, true, false, 1>(d, values, derivatives, nest),
        ([true, false], 2) => join_back_across::<S, L, true, false, 2>(d, values, derivatives, nest),
        ([true, true], _) => join_back_any::<S, L, true, true>(d, values, derivatives, nest),
        ([true, false], _) => join_back_any::<S, L, true, false>(d, values, derivatives, nest),
        ([false, true], _) => join_back_any::<S, L, false, true>(d, values, derivatives, nest),
        ([false, false], _) => [[0.0; L]; 2],
    }
}

#[inline(never)]
fn join_back_across<S: Semiring, const L: usize, const A: bool, const B: bool, const N: usize>(
    d: &[Lane<L>],
    values: [&[Lane<L>]; 2],
    derivatives: [&mut [Lane<L>]; 2],
    nest: &Nest,
) -> [Lane<L>; 2] {
    let across: [At; N] = std::array::from_fn(|n| nest.across[n]);
    Arch::new().dispatch(|| join_back_in::<S, L, A, B>(d, values, derivatives, &nest.along, &across))
}

#[inline(never)]
fn join_back_any<S: Semiring, const L: usize, const A: bool, const B: bool>(
    d: &[Lane<L>],
    values: [&[Lane<L>]; 2],
    derivatives: [&mut [Lane<L>]; 2],
    nest: &Nest,
) -> [Lane<L>; 2] {
    Arch::new().dispatch(|| join_back_in::<S, L, A, B>(d, values, derivatives, &nest.along, &nest.across))
}

#[inline(always)]
fn join_back_in<S: Semiring, const L: usize, const A: bool, const B: bool>(
    d: &[Lane<L>],
    [a, b]: [&[Lane<L>]; 2],
    [d_a, d_b]: [&mut [Lane<L>]; 2],
    along: &Loops,
    across: &[At],
) -> [Lane<L>; 2] {
    let mut largest = [0.0; L];
    if B {
        d_b.fill([S::ZERO; L]);
    }
    let n = along.inner.len();
    for ((o, xs), d_xs) in along.outer().zip(a.chunks_exact(n)).zip(d_a.chunks_exact_mut(n)) {
        for ((i, x), d_x) in along.inner.iter().zip(xs).zip(d_xs) {
            let (at_b, at_out) = ((o.b + i.b) as usize, (o.out + i.out) as usize);
            let mut sum = [S::ZERO; L];
            for p in across {
                let d = &d[at_out + p.out as usize];
                if A {
                    add_product::<S, L>(&mut sum, d, &b[at_b + p.b as usize]);
                }
                if B {
                    add_product::<S, L>(&mut d_b[at_b + p.b as usize], d, x);
                }
            }
            if A {
                widen::<S, L>(&mut largest, &sum);
                *d_x = sum;
            }
        }
    }
    [largest, if B { largest_of::<S, L>(d_b) } else { largest }]
}

/// out[k] ⊕= a[k, s] b[k, s] where an entry of the result may be come by twice.
#[inline(never)]
fn or<S: Semiring, const L: usize>(
    a: &[Lane<L>],
    b: &[Lane<L>],
    out: &mut [Lane<L>],
    kept: &Loops,
    summed: &Loops,
) {
    out.fill([S::ZERO; L]);
    for o in kept.outer() {
        for i in &kept.inner {
            let (at_a, at_b) = ((o.a + i.a) as usize, (o.b + i.b) as usize);
            let slot = &mut out[(o.out + i.out) as usize];
            let mut sum = *slot;
            for p in summed.outer() {
                for q in &summed.inner {
                    add_product::<S, L>(
                        &mut sum,
                        &a[at_a + (p.a + q.a) as usize],
                        &b[at_b + (p.b + q.b) as usize],
                    );
                }
            }
            *slot = sum;
        }
    }
}

/// The derivatives of [`or`] in both its tables.
#[inline(never)]
fn or_back<S: Semiring, const L: usize>(
    result: &[Lane<L>],
    [a, b]: [&[Lane<L>]; 2],
    [d_a, d_b]: [&mut [Lane<L>]; 2],
    kept: &Loops,
    summed: &Loops,
) {
    d_a.fill([S::ZERO; L]);
    d_b.fill([S::ZERO; L]);
    for o in kept.outer() {
        for i in &kept.inner {
            let (at_a, at_b) = ((o.a + i.a) as usize, (o.b + i.b) as usize);
            let d = result[(o.out + i.out) as usize];
            for p in summed.outer() {
                for q in &summed.inner {
                    let (at_a, at_b) = (at_a + (p.a + q.a) as usize, at_b + (p.b + q.b) as usize);
                    add_product::<S, L>(&mut d_a[at_a], &d, &b[at_b]);
                    add_product::<S, L>(&mut d_b[at_b], &d, &a[at_a]);
                }
            }
        }
    }
}

/// Applies the weights of a fired variable; see [`Step::Weigh`].
fn weigh<S: Semiring, const L: usize>(
    input: &[Lane<L>],
    out: &mut [Lane<L>],
    weights: &[Lane<L>; 2],
    stride: usize,
) {
    let [w_silent, w_fired] = weights.map(|lane| lane.map(S::element));
    for at in pairs(input.len(), stride) {
        let (silent, fired) = (input[at], input[at + stride]);
        for l in 0..L {
            out[at][l] = S::add(S::mul(w_silent[l], silent[l]), S::mul(w_fired[l], fired[l]));
            out[at + stride][l] = S::mul(w_fired[l], S::add(silent[l], fired[l]));
        }
    }
}

/// Adds the state "either"; see [`Step::Extend`].
fn extend<S: Semiring, const L: usize>(input: &[Lane<L>], out: &mut [Lane<L>], stride: usize) {
    for (from, to) in pairs(input.len(), stride).zip(triples(out.len(), stride)) {
        let (silent, fired) = (input[from], input[from + stride]);
        out[to] = silent;
        out[to + stride] = fired;
        for l in 0..L {
            out[to + 2 * stride][l] = S::add(silent[l], fired[l]);
        }
    }
}

/// The derivative of [`extend`]: "either" counts for both states.
fn extend_back<S: Semiring, const L: usize>(result: &[Lane<L>], d_input: &mut [Lane<L>], stride: usize) {
    for (to, from) in pairs(d_input.len(), stride).zip(triples(result.len(), stride)) {
        for l in 0..L {
            let either = result[from + 2 * stride][l];
            d_input[to][l] = S::add(result[from][l], either);
            d_input[to + stride][l] = S::add(result[from + stride][l], either);
        }
    }
}

/// The entries in which a three-state variable of this stride is in its first state.
fn triples(size: usize, stride: usize) -> impl Iterator<Item = usize> {
    (0..size).step_by(3 * stride).flat_map(move |start| start..start + stride)
}

/// The entries in which a two-state variable of this stride is in its first state.
fn pairs(size: usize, stride: usize) -> impl Iterator<Item = usize> {
    (0..size).step_by(2 * stride).flat_map(move |start| start..start + stride)
}

/// Multiplies each lane by the power of two that brings its largest entry near 1, and says which. Powers of two
/// change no digit.
fn scale<S: Semiring, const L: usize>(
    slots: &mut [Lane<L>],
    largest: Lane<L>,
    suspicious: &mut [bool; L],
) -> [i32; L] {
    let mut exponents = [0; L];
    if !S::SCALED {
        return exponents;
    }
    let mut factors = [1.0; L];
    for l in 0..L {
        suspicious[l] |= largest[l] < SUSPICIOUS;
        // The exponent as the bits have it; zero stays zero.
        let exponent = ((largest[l].to_bits() >> 52) & 0x7ff) as i32 - 1023;
        if largest[l] > 0.0 && !(-40..=40).contains(&exponent) {
            exponents[l] = exponent.clamp(-1000, 1000);
            factors[l] = f64::from_bits(((1023 - exponents[l]) as u64) << 52);
        }
    }
    if exponents != [0; L] {
        for slot in slots.iter_mut() {
            for l in 0..L {
                slot[l] *= factors[l];
            }
        }
    }
    exponents
}
