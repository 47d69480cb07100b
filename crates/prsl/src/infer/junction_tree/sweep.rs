//! Runs a plan on several rows side by side.
//!
//! Every number is a lane: one value per row. The loops over a lane are plain and of fixed length, so the
//! compiler turns them into vector instructions, and each row's arithmetic is the same whatever its neighbors.

use super::network::{Leaf, Source};
use super::plan::{At, Loops, Plan, Step, Table};
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
    /// What each rule weighs by when silent and when fired: plain numbers in every semiring.
    weights: Vec<[Lane<L>; 2]>,
    /// Powers of two taken out of the tables so far.
    exponents: [i64; L],
    /// Rows in which something may have underflowed.
    suspicious: [bool; L],
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
            derivatives: vec![[S::ZERO; L]; plan.size],
            weights: weights.iter().map(|pair| pair.map(|weight| [weight; L])).collect(),
            exponents: [0; L],
            suspicious: [false; L],
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
        for (leaf, table) in leaves.iter().zip(&plan.tables) {
            let slots = &mut self.values[table.offset..table.offset + table.size];
            match &leaf.source {
                Source::Belief(_) => {}
                Source::Fixed(numbers) => {
                    for (slot, &number) in slots.iter_mut().zip(numbers) {
                        *slot = [S::element(number); L];
                    }
                }
                Source::Rule(rule, outcomes) => {
                    let [silent, fired] = self.weights[rule.index()];
                    // A sum also where the sweep takes maxima: it is the weight of one assignment.
                    for (slot, [q_silent, q_fired]) in slots.iter_mut().zip(outcomes) {
                        for l in 0..L {
                            slot[l] = S::element(silent[l] * q_silent + fired[l] * q_fired);
                        }
                    }
                }
            }
        }
        // Fixed tables are products of probabilities of a few rules: they are not scaled, so that they stay the
        // same for whichever rows come.
        for step in plan.steps.iter().filter(|step| plan.tables[step.out()].fixed) {
            self.forward(plan, step);
        }
    }

    /// The slots of a leaf that depends on the row.
    pub(crate) fn leaf_mut(&mut self, table: &Table) -> &mut [Lane<L>] {
        &mut self.values[table.offset..table.offset + table.size]
    }

    /// The values of a table.
    pub(crate) fn value(&self, table: &Table) -> &[Lane<L>] {
        &self.values[table.offset..table.offset + table.size]
    }

    /// The derivatives of Z in a table's entries, up to a factor per lane.
    pub(crate) fn derivative(&self, table: &Table) -> &[Lane<L>] {
        &self.derivatives[table.offset..table.offset + table.size]
    }

    /// Whether a row has to be done again in logarithms.
    pub(crate) fn is_suspicious(&self, lane: usize) -> bool {
        self.suspicious[lane]
    }

    /// Runs all steps that depend on the rows; ln Z of each lane.
    pub(crate) fn collect(&mut self, plan: &Plan) -> [f64; L] {
        self.exponents = [0; L];
        self.suspicious = [false; L];
        for step in plan.steps.iter().filter(|step| !plan.tables[step.out()].fixed) {
            self.forward(plan, step);
            let table = &plan.tables[step.out()];
            let slots = &mut self.values[table.offset..table.offset + table.size];
            scale::<S, L>(slots, &mut self.exponents, &mut self.suspicious);
        }
        let mut log_evidence = self.exponents.map(|exponent| exponent as f64 * std::f64::consts::LN_2);
        for &root in &plan.roots {
            for l in 0..L {
                log_evidence[l] += S::ln(self.values[plan.tables[root].offset][l]);
            }
        }
        log_evidence
    }

    /// Runs the steps backward: the derivative of Z in every table, up to a factor per table and lane.
    pub(crate) fn distribute(&mut self, plan: &Plan, back: Back) {
        for &root in &plan.roots {
            self.derivatives[plan.tables[root].offset] = [S::ONE; L];
        }
        for step in plan.steps.iter().rev() {
            let table = &plan.tables[step.out()];
            if table.fixed && back == Back::Rows {
                continue;
            }
            let slots = &mut self.derivatives[table.offset..table.offset + table.size];
            scale::<S, L>(slots, &mut [0; L], &mut self.suspicious);
            self.backward(plan, step, back);
        }
    }

    /// The masses that a rule's weights multiply in Z: Σ over silent and over fired, up to a factor per lane.
    /// Needs a full [`Self::distribute`].
    pub(crate) fn masses(&self, plan: &Plan, leaves: &[Leaf], rule: RuleId) -> [Lane<L>; 2] {
        let mut masses = [[S::ZERO; L]; 2];
        let mut gather = |mass: usize, a: Lane<L>, b: Lane<L>| {
            for l in 0..L {
                masses[mass][l] = S::add(masses[mass][l], S::mul(a[l], b[l]));
            }
        };
        for (leaf, table) in leaves.iter().zip(&plan.tables) {
            if let Source::Rule(of, outcomes) = &leaf.source
                && *of == rule
            {
                for (outcome, &derivative) in outcomes.iter().zip(self.derivative(table)) {
                    gather(0, [S::element(outcome[0]); L], derivative);
                    gather(1, [S::element(outcome[1]); L], derivative);
                }
                return masses;
            }
        }
        for step in &plan.steps {
            if let Step::Weigh { input, out, rule: of, stride } = step
                && *of == rule
            {
                let values = self.value(&plan.tables[*input]);
                let derivatives = self.derivative(&plan.tables[*out]);
                for silent in pairs(values.len(), *stride) {
                    let fired = silent + stride;
                    gather(0, values[silent], derivatives[silent]);
                    gather(1, values[fired], derivatives[silent]);
                    gather(1, values[silent], derivatives[fired]);
                    gather(1, values[fired], derivatives[fired]);
                }
                return masses;
            }
        }
        unreachable!("every rule has a table or is weighed")
    }

    fn forward(&mut self, plan: &Plan, step: &Step) {
        let out = &plan.tables[step.out()];
        let (before, after) = self.values.split_at_mut(out.offset);
        let result = &mut after[..out.size];
        match step {
            Step::Join { a, b, kept, summed, .. } => {
                let (a, b) = (slots(before, &plan.tables[*a]), slots(before, &plan.tables[*b]));
                join::<S, L>(a, b, result, kept, summed);
            }
            Step::Weigh { input, rule, stride, .. } => {
                let input = slots(before, &plan.tables[*input]);
                weigh::<S, L>(input, result, &self.weights[rule.index()], *stride);
            }
            Step::Extend { input, stride, .. } => {
                extend::<S, L>(slots(before, &plan.tables[*input]), result, *stride);
            }
        }
    }

    fn backward(&mut self, plan: &Plan, step: &Step, back: Back) {
        let out = &plan.tables[step.out()];
        let (before, after) = self.derivatives.split_at_mut(out.offset);
        let result = &after[..out.size];
        match step {
            Step::Join { a, b, kept, summed, .. } => {
                let (a, b) = (&plan.tables[*a], &plan.tables[*b]);
                let values =
                    [&self.values[a.offset..a.offset + a.size], &self.values[b.offset..b.offset + b.size]];
                let (d_a, d_b) = two_slots(before, a, b);
                let wanted = |table: &Table| back == Back::All || !table.fixed;
                match (wanted(a), wanted(b)) {
                    (true, true) => join_back_both::<S, L>(result, values, [d_a, d_b], kept, summed),
                    (true, false) => {
                        join_back_one::<S, L>(result, values[1], d_a, [kept, summed], |at| at.a, |at| at.b);
                    }
                    (false, true) => {
                        join_back_one::<S, L>(result, values[0], d_b, [kept, summed], |at| at.b, |at| at.a);
                    }
                    (false, false) => {}
                }
            }
            Step::Weigh { input, rule, stride, .. } => {
                // The matrix of the weights is symmetric: backward is forward.
                let input = &plan.tables[*input];
                let slots = &mut before[input.offset..input.offset + input.size];
                weigh::<S, L>(result, slots, &self.weights[rule.index()], *stride);
            }
            Step::Extend { input, stride, .. } => {
                let input = &plan.tables[*input];
                extend_back::<S, L>(result, &mut before[input.offset..input.offset + input.size], *stride);
            }
        }
    }
}

impl Step {
    /// The table that the step computes.
    pub(crate) fn out(&self) -> usize {
        match self {
            Step::Join { out, .. } | Step::Weigh { out, .. } | Step::Extend { out, .. } => *out,
        }
    }
}

fn slots<'a, const L: usize>(values: &'a [Lane<L>], table: &Table) -> &'a [Lane<L>] {
    &values[table.offset..table.offset + table.size]
}

fn two_slots<'a, const L: usize>(
    values: &'a mut [Lane<L>],
    a: &Table,
    b: &Table,
) -> (&'a mut [Lane<L>], &'a mut [Lane<L>]) {
    if a.offset < b.offset {
        let (low, high) = values.split_at_mut(b.offset);
        (&mut low[a.offset..a.offset + a.size], &mut high[..b.size])
    } else {
        let (low, high) = values.split_at_mut(a.offset);
        (&mut high[..a.size], &mut low[b.offset..b.offset + b.size])
    }
}

/// out[k] = Σ_s a[k, s] b[k, s]
#[inline(never)]
fn join<S: Semiring, const L: usize>(
    a: &[Lane<L>],
    b: &[Lane<L>],
    out: &mut [Lane<L>],
    kept: &Loops,
    summed: &Loops,
) {
    out.fill([S::ZERO; L]);
    for o in &kept.outer {
        for i in &kept.inner {
            let (at_a, at_b) = ((o.a + i.a) as usize, (o.b + i.b) as usize);
            let slot = &mut out[(o.out + i.out) as usize];
            let mut sum = *slot;
            for p in &summed.outer {
                for q in &summed.inner {
                    let x = &a[at_a + (p.a + q.a) as usize];
                    let y = &b[at_b + (p.b + q.b) as usize];
                    for l in 0..L {
                        sum[l] = S::add(sum[l], S::mul(x[l], y[l]));
                    }
                }
            }
            *slot = sum;
        }
    }
}

/// The derivatives of a join in both its tables: d_a[k, s] += d[k] b[k, s], and the same for b.
#[inline(never)]
fn join_back_both<S: Semiring, const L: usize>(
    result: &[Lane<L>],
    [a, b]: [&[Lane<L>]; 2],
    [d_a, d_b]: [&mut [Lane<L>]; 2],
    kept: &Loops,
    summed: &Loops,
) {
    d_a.fill([S::ZERO; L]);
    d_b.fill([S::ZERO; L]);
    for o in &kept.outer {
        for i in &kept.inner {
            let (at_a, at_b) = ((o.a + i.a) as usize, (o.b + i.b) as usize);
            let d = result[(o.out + i.out) as usize];
            for p in &summed.outer {
                for q in &summed.inner {
                    let (at_a, at_b) = (at_a + (p.a + q.a) as usize, at_b + (p.b + q.b) as usize);
                    let (x, y) = (&a[at_a], &b[at_b]);
                    let (d_x, d_y) = (&mut d_a[at_a], &mut d_b[at_b]);
                    for l in 0..L {
                        d_x[l] = S::add(d_x[l], S::mul(d[l], y[l]));
                        d_y[l] = S::add(d_y[l], S::mul(d[l], x[l]));
                    }
                }
            }
        }
    }
}

/// The derivative of a join in one of its tables; `own` and `of_other` pick that table's offset and the other's.
#[inline(always)]
fn join_back_one<S: Semiring, const L: usize>(
    result: &[Lane<L>],
    other: &[Lane<L>],
    d_own: &mut [Lane<L>],
    [kept, summed]: [&Loops; 2],
    own: impl Fn(&At) -> u32,
    of_other: impl Fn(&At) -> u32,
) {
    d_own.fill([S::ZERO; L]);
    for o in &kept.outer {
        for i in &kept.inner {
            let d = result[(o.out + i.out) as usize];
            for p in &summed.outer {
                for q in &summed.inner {
                    let y = &other[(of_other(o) + of_other(i) + of_other(p) + of_other(q)) as usize];
                    let d_x = &mut d_own[(own(o) + own(i) + own(p) + own(q)) as usize];
                    for l in 0..L {
                        d_x[l] = S::add(d_x[l], S::mul(d[l], y[l]));
                    }
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

/// Multiplies each lane by the power of two that brings its largest entry near 1. Powers of two change no digit.
fn scale<S: Semiring, const L: usize>(
    slots: &mut [Lane<L>],
    exponents: &mut [i64; L],
    suspicious: &mut [bool; L],
) {
    if !S::SCALED {
        return;
    }
    let mut largest = [0.0f64; L];
    for slot in slots.iter() {
        for l in 0..L {
            largest[l] = if slot[l] > largest[l] { slot[l] } else { largest[l] };
        }
    }
    let mut factors = [1.0; L];
    let mut needed = false;
    for l in 0..L {
        suspicious[l] |= largest[l] < SUSPICIOUS;
        // The exponent as the bits have it; zero stays zero.
        let exponent = ((largest[l].to_bits() >> 52) & 0x7ff) as i64 - 1023;
        if largest[l] > 0.0 && !(-40..=40).contains(&exponent) {
            factors[l] = f64::from_bits(((1023 - exponent.clamp(-1000, 1000)) as u64) << 52);
            exponents[l] += exponent.clamp(-1000, 1000);
            needed = true;
        }
    }
    if needed {
        for slot in slots.iter_mut() {
            for l in 0..L {
                slot[l] *= factors[l];
            }
        }
    }
}
