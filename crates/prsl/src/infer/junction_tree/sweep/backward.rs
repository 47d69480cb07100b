//! The backward pass: the derivatives in a step's inputs, computed from that in its result.

use super::super::plan::{Plan, Step, Table};
use super::super::underflow::{self, Track};
use super::kernels::{extend_back, join_back, largest_of, or_back, scale, weigh};
use super::{Back, DERIVATIVE, Lane, VALUE, Workspace, plus, slots};
use crate::infer::semiring::Semiring;

impl<S: Semiring, const L: usize> Workspace<S, L> {
    /// Computes the derivatives in a step's inputs from that in its result.
    pub(super) fn backward(&mut self, plan: &Plan, step: &Step, back: Back) {
        match step {
            Step::Join { a, b, .. } | Step::Or { a, b, .. } => {
                let wanted = [*a, *b].map(|table| back != Back::Rows || !plan.tables[table].fixed);
                let largest = self.join_back(plan, step, [*a, *b], wanted);
                for (place, (this, other)) in [(*a, *b), (*b, *a)].into_iter().enumerate() {
                    if wanted[place] {
                        self.keep_derivative(plan, step, [this, other], largest[place]);
                    }
                }
                for table in [*a, *b].into_iter().filter(|&table| plan.tables[table].watched) {
                    self.watch(plan, table);
                }
            }
            Step::Weigh { input, rule, stride, .. } => {
                if back != Back::Rows {
                    self.weigh_step(plan, *input, step.out(), *rule, *stride);
                }
                let [d_out, d_in] = self
                    .derivatives
                    .get_disjoint_mut([room(plan, step.out()), room(plan, *input)])
                    .expect("derivatives of one step do not overlap");
                // The matrix of the weights is symmetric, so the backward step is the forward step.
                let largest = weigh::<S, L>(d_out, d_in, &self.weights[rule.index()], *stride);
                self.exponents[*input][DERIVATIVE] = self.exponents[step.out()][DERIVATIVE];
                if S::SCALED && !self.calm {
                    let weights = underflow::of_weights(&self.weights[rule.index()]);
                    let lost = Track::product(&self.tracks[step.out()][DERIVATIVE], &weights, 2);
                    self.keep_track(plan, (*input, DERIVATIVE), lost, largest, [0; L]);
                }
            }
            Step::Extend { input, stride, .. } => {
                let [d_out, d_in] = self
                    .derivatives
                    .get_disjoint_mut([room(plan, step.out()), room(plan, *input)])
                    .expect("derivatives of one step do not overlap");
                extend_back::<S, L>(d_out, d_in, *stride);
                self.exponents[*input][DERIVATIVE] = self.exponents[step.out()][DERIVATIVE];
                if S::SCALED && !self.calm {
                    let largest = largest_of::<S, L>(d_in);
                    let lost = self.tracks[step.out()][DERIVATIVE].times(2.0);
                    self.keep_track(plan, (*input, DERIVATIVE), lost, largest, [0; L]);
                }
            }
        }
    }

    /// Computes the wanted derivatives in the two tables of a join. Returns the largest entry of each.
    fn join_back(&mut self, plan: &Plan, step: &Step, [a, b]: [usize; 2], wanted: [bool; 2]) -> [Lane<L>; 2] {
        let values = [slots(&self.values, &plan.tables[a]), slots(&self.values, &plan.tables[b])];
        let [d_out, d_a, d_b] = self
            .derivatives
            .get_disjoint_mut([room(plan, step.out()), room(plan, a), room(plan, b)])
            .expect("derivatives of one step do not overlap");
        match step {
            Step::Join { backward, .. } => join_back::<S, L>(d_out, values, [d_a, d_b], backward, wanted),
            Step::Or { backward, .. } => or_back::<S, L>(d_out, values, [d_a, d_b], backward, wanted),
            _ => unreachable!("only joins have two inputs"),
        }
    }

    /// Scales the derivatives in one of two joined tables, and computes their bounds.
    fn keep_derivative(&mut self, plan: &Plan, step: &Step, [this, other]: [usize; 2], largest: Lane<L>) {
        let exponent = self.exponents[step.out()][DERIVATIVE];
        // Derivatives in tables that are independent of the row affect agreement, but no marginal.
        let suspicious = match plan.tables[this].fixed {
            true => &mut self.suspicious_rules,
            false => &mut self.suspicious,
        };
        let scaled = scale::<S, L>(&mut self.derivatives[room(plan, this)], largest, suspicious);
        self.exponents[this][DERIVATIVE] = plus(plus(exponent, self.exponents[other][VALUE]), scaled);
        if S::SCALED && !self.calm {
            let n_terms = match step {
                Step::Join { backward, .. } => backward.along.len() * backward.across.len(),
                Step::Or { backward, .. } => backward.len(),
                _ => unreachable!("only joins have two inputs"),
            };
            let lost = self.product(plan, [(step.out(), DERIVATIVE), (other, VALUE)], n_terms);
            self.keep_track(plan, (this, DERIVATIVE), lost, largest, scaled);
        }
    }

    /// Updates the largest ratio of Σ |term| to |Z| with a watched table.
    fn watch(&mut self, plan: &Plan, table: usize) {
        let share = self.share(plan, table, f64::abs);
        for l in 0..L {
            // NaN counts as infinite.
            let share = if share[l].is_nan() { f64::INFINITY } else { share[l].abs() };
            self.magnitude[l] = self.magnitude[l].max(share);
        }
    }
}

/// The range of a table's derivatives.
fn room(plan: &Plan, table: usize) -> std::ops::Range<usize> {
    let Table { derivative, size, .. } = plan.tables[table];
    derivative..derivative + size
}
