//! Sums of derivatives over rows.
//!
//! A boundary table does not depend on the row, but the step that it enters does. The derivatives of Σ ω ln Z in the
//! entries of boundary tables are sums over rows. One backward pass then takes them to the rules, however many rows
//! there are.

use super::super::network::Leaf;
use super::super::plan::Plan;
use super::{Back, DERIVATIVE, VALUE, Workspace};
use crate::infer::semiring::Semiring;

/// The boundary tables of a plan.
pub(crate) fn boundary(plan: &Plan) -> Vec<usize> {
    let enters = plan.steps.iter().filter(|step| !plan.tables[step.out()].fixed).flat_map(|step| step.inputs());
    let mut tables: Vec<usize> =
        enters.chain(plan.roots.iter().copied()).filter(|&table| plan.tables[table].fixed).collect();
    tables.sort_unstable();
    tables
}

impl<S: Semiring, const L: usize> Workspace<S, L> {
    /// Adds ω ∂ ln Z / ∂ entry of all boundary tables, after a backward pass with [`Back::Boundary`]. Lanes of weight 0 are
    /// skipped.
    pub(crate) fn add_boundary(&self, plan: &Plan, tables: &[usize], weights: &[f64; L], sums: &mut [f64]) {
        let mut rest = sums;
        for &table in tables {
            let root = plan.root_of[table];
            let total = self.values[plan.tables[root].offset];
            let factors: [f64; L] = std::array::from_fn(|l| {
                let exponent =
                    self.exponents[table][DERIVATIVE][l] + self.exponents[table][VALUE][l] - self.exponents[root][VALUE][l];
                if weights[l] == 0.0 { 0.0 } else { weights[l] * f64::from(exponent).exp2() / total[l] }
            });
            let derivatives = self.derivative(&plan.tables[table]);
            let (own, others) = rest.split_at_mut(derivatives.len());
            for (sum, derivative) in own.iter_mut().zip(derivatives) {
                *sum += (0..L).map(|l| factors[l] * derivative[l]).sum::<f64>();
            }
            rest = others;
        }
    }
}

impl<S: Semiring> Workspace<S, 1> {
    /// Takes the sums of [`Self::add_boundary`] to the masses of the rules below the boundary.
    pub(crate) fn distribute_boundary(&mut self, plan: &Plan, leaves: &[Leaf], tables: &[usize], sums: &[f64]) {
        self.calm = true;
        let mut rest = sums;
        for &table in tables {
            let (place, size) = (plan.tables[table].derivative, plan.tables[table].size);
            let (own, others) = rest.split_at(size);
            for (slot, &sum) in self.derivatives[place..place + size].iter_mut().zip(own) {
                *slot = [sum];
            }
            self.exponents[table][DERIVATIVE] = [0];
            rest = others;
        }
        for step in plan.steps.iter().rev().filter(|step| plan.tables[step.out()].fixed) {
            self.backward(plan, step, Back::All);
        }
        self.weigh_tables(plan, leaves);
    }
}
