//! Sums of derivatives over rows.
//!
//! A boundary table does not depend on the row, but the step that it enters does. The derivatives of Σ ω ln Z in the
//! entries of boundary tables are sums over rows. One backward pass then takes them to the rules, however many rows
//! there are.

use super::super::network::Leaf;
use super::super::plan::{Plan, Step};
use super::{Back, DERIVATIVE, VALUE, Workspace};
use crate::infer::semiring::Semiring;

/// The boundary tables of a plan, in the order of the backward pass.
pub(crate) fn boundary(plan: &Plan) -> Vec<usize> {
    let steps = plan.steps.iter().rev().filter(|step| !plan.tables[step.out()].fixed);
    let roots = plan.roots.iter().copied();
    roots.chain(steps.flat_map(Step::inputs)).filter(|&table| plan.tables[table].fixed).collect()
}

impl<S: Semiring, const L: usize> Workspace<S, L> {
    /// Keeps the derivatives of a boundary table. Their place is used again by later steps.
    pub(super) fn keep_boundary(&mut self, plan: &Plan, table: usize) {
        let (table, exponents) = (&plan.tables[table], self.exponents[table][DERIVATIVE]);
        let derivatives = &self.derivatives[table.derivative..table.derivative + table.size];
        self.boundary.extend_from_slice(derivatives);
        self.boundary_exponents.push(exponents);
    }

    /// Adds ω ∂ ln Z / ∂ entry of all boundary tables, after a backward pass with [`Back::Boundary`]. Lanes of weight 0 are
    /// skipped.
    pub(crate) fn add_boundary(&self, plan: &Plan, tables: &[usize], weights: &[f64; L], sums: &mut [f64]) {
        let mut start = 0;
        for (&table, exponents) in tables.iter().zip(&self.boundary_exponents) {
            let root = plan.root_of[table];
            let total = self.values[plan.tables[root].offset];
            let factors: [f64; L] = std::array::from_fn(|l| {
                let exponent =
                    exponents[l] + self.exponents[table][VALUE][l] - self.exponents[root][VALUE][l];
                if weights[l] == 0.0 { 0.0 } else { weights[l] * f64::from(exponent).exp2() / total[l] }
            });
            let own = start..start + plan.tables[table].size;
            for (sum, derivative) in sums[own.clone()].iter_mut().zip(&self.boundary[own.clone()]) {
                *sum += (0..L).map(|l| factors[l] * derivative[l]).sum::<f64>();
            }
            start = own.end;
        }
    }
}

impl<S: Semiring> Workspace<S, 1> {
    /// Takes the sums of [`Self::add_boundary`] to the masses of the rules below the boundary.
    pub(crate) fn distribute_boundary(
        &mut self,
        plan: &Plan,
        leaves: &[Leaf],
        tables: &[usize],
        sums: &[f64],
    ) {
        self.calm = true;
        let mut tables = tables.iter().copied().peekable();
        let mut rest = sums;
        let mut fill = |workspace: &mut Self, table: usize| {
            let (place, size) = (plan.tables[table].derivative, plan.tables[table].size);
            let (own, others) = rest.split_at(size);
            for (slot, &sum) in workspace.derivatives[place..place + size].iter_mut().zip(own) {
                *slot = [sum];
            }
            workspace.exponents[table][DERIVATIVE] = [0];
            rest = others;
        };
        while let Some(root) = tables.next_if(|table| plan.roots.contains(table)) {
            fill(self, root);
        }
        // In the order of a whole backward pass, because tables share the places of their derivatives.
        for step in plan.steps.iter().rev() {
            if plan.tables[step.out()].fixed {
                self.backward(plan, step, Back::All);
                continue;
            }
            for input in step.inputs() {
                if tables.next_if_eq(&input).is_some() {
                    fill(self, input);
                }
            }
        }
        self.weigh_tables(plan, leaves);
    }
}
