//! How much of the objective passes through each entry of a clique, and what rules have of it.
//!
//! # Derivation
//!
//! The objective depends on a rule through the potential F = ∏ f of its clique. With mass(e) = ∂ objective / ∂ ln F(e), summed over
//! the rows of a batch,
//!
//! ```text
//! ∂ objective / ∂ f(r) = Σ_{e: e agrees with r} mass(e) / f(r)                                     (1)
//! ```
//!
//! for each entry r of the rule's table. If the clique has all labels j, then this is the case also for labels that the rule is not
//! connected with, where its silence Q is multiplied by qⱼ = 1:
//!
//! ```text
//! ∂ objective / ∂ qⱼ(m) = (1 − 2p) Σ_{e: eⱼ = m} mass(e) Q(e) / f(e)                               (2)
//! ```
//!
//! Q and f depend on the rule's labels alone, so that mass is summed first: over one half of the labels, those of the rule
//! excepted, for the labels of the other half. Summing goes fast over the slower labels, and so there are two tables, either half
//! being the slower one in one of them.
//!
//! Where f is 0, or near, mass comes without it, as ∂ objective / ∂ F times the product of the other rules.
//! Checked in `one_clique_is_as_good_as_a_tree`.

use super::clique_tree::Clique;
use super::objective::{Problem, Reach};
use super::table::{Cascade, Fit, add_by_category, axes, half, transpose};

/// Mass by entry of a clique.
pub(crate) struct Masses {
    mass: Vec<f64>,
    /// Where labels out of reach are asked for: in the order of the clique's labels, and with its halves swapped.
    orders: Vec<Order>,
}

struct Order {
    labels: Vec<usize>,
    /// How many of them are summed out, those of a rule excepted: the slower half.
    n_slow: usize,
    cascade: Cascade,
}

/// What is left of a table for a rule: its labels and the faster half.
struct Part {
    labels: Vec<usize>,
    table: Vec<f64>,
    /// How the rule's table lies in it.
    fit: Fit,
}

impl Masses {
    /// By entry, in the order of the clique's labels.
    pub(crate) fn mass(&self) -> &[f64] {
        &self.mass
    }

    /// Of a clique.
    pub(crate) fn new(problem: &Problem, clique: &Clique, mass: Vec<f64>) -> Self {
        if problem.reaches.is_empty() || !problem.is_joint() {
            return Self { mass, orders: Vec::new() };
        }
        let sizes: Vec<usize> = clique.labels.iter().map(|&label| problem.tree.sizes[label]).collect();
        let n_slow = half(&sizes);
        let (slow, fast) = sizes.split_at(n_slow);
        let mut swapped = clique.labels.clone();
        swapped.rotate_left(n_slow);
        let order = |labels: Vec<usize>, table: Vec<f64>, slow: &[usize], fast: &[usize]| Order {
            labels,
            n_slow: slow.len(),
            cascade: Cascade::new(table, slow.iter().chain(fast).copied(), slow.len()),
        };
        let transposed = transpose(&mass, fast.iter().product());
        let own = order(clique.labels.clone(), mass.clone(), slow, fast);
        let orders = vec![own, order(swapped, transposed, fast, slow)];
        Self { mass, orders }
    }
}

impl Order {
    fn part(&self, sizes: &[usize], own: &[usize]) -> Part {
        let (_, fast) = self.labels.split_at(self.n_slow);
        let is_kept = |label: usize| fast.contains(&label) || own.contains(&label);
        let table = self.cascade.sum_out(&axes(sizes, &self.labels, is_kept));
        let labels: Vec<usize> = self.labels.iter().copied().filter(|&label| is_kept(label)).collect();
        let fit = Fit::new(sizes, &labels, own);
        Part { labels, table, fit }
    }
}

impl Part {
    /// Adds (2), where `ratios` is all that the sum has beside mass.
    fn add_reach(mut self, sizes: &[usize], reach: &Reach, ratios: &[f64], gradient: &mut [f64]) {
        self.fit.multiply(&mut self.table, ratios);
        let table = self.fit.sum_over(&self.table);
        let mut run = table.len();
        for &label in &self.labels {
            if let Some((_, place)) = reach.labels.iter().find(|(other, _)| *other == label) {
                run /= sizes[label];
                add_by_category(&table, run, &mut gradient[*place..][..sizes[label]]);
            }
        }
    }
}

impl Problem {
    /// Adds what masses mean for a rule's parameters; `divisors` is f, unless there is none of it in the masses.
    pub(crate) fn add_mass_gradient(
        &self,
        rule: usize,
        parameters: &[f64],
        silent: &[f64],
        (masses, divisors): (&Masses, &[f64]),
        gradient: &mut [f64],
    ) {
        let sizes = &self.tree.sizes;
        let reach = self.reaches.iter().find(|reach| reach.rule == rule && self.is_joint());
        let orders = if reach.is_some() { &masses.orders[..] } else { &[] };
        let parts: Vec<Part> =
            orders.iter().map(|order| order.part(sizes, &self.rules[rule].labels)).collect();
        let sums = match (parts.first(), &self.rules[rule].home) {
            (Some(part), _) => part.fit.sum_out(&part.table),
            (None, Some(home)) => home.fit.sum_out(&masses.mass),
            (None, None) => return,
        };
        let slope: Vec<f64> = sums.iter().zip(divisors).map(|(mass, divisor)| mass / divisor).collect(); // (1)
        self.add_rule_gradient(rule, parameters, silent, &slope, gradient);
        if let Some(reach) = reach {
            let toward_silence = 1.0 - 2.0 * self.probability(rule, parameters);
            let ratio = |(silent, divisor): (&f64, &f64)| toward_silence * silent / divisor;
            let ratios: Vec<f64> = silent.iter().zip(divisors).map(ratio).collect();
            parts.into_iter().for_each(|part| part.add_reach(sizes, reach, &ratios, gradient));
        }
    }
}
