//! Rules as tables over their labels, and what a derivative in these tables means for their numbers.

use std::borrow::Cow;

use rayon::prelude::*;

use super::clique_tree::CliqueTree;
use super::mass::Masses;
use super::objective::Problem;
use super::outer::{self, Outer};
use super::table::{Fit, dot, outer_product, weighted_sum};

/// Factors are divided by down to here; below, what they have multiplied may be lost.
const LEAST_DIVISOR: f64 = 1e-100;
/// From so many entries on, rules are looked at in parallel; fewer in tests, which see small problems only.
const LARGE: usize = if cfg!(test) { 1 << 5 } else { 1 << 12 };

/// A rule and its labels.
#[derive(Clone, Debug)]
pub(crate) struct RuleShape {
    pub(crate) labels: Vec<usize>,
    /// The clique that has all its labels. Wide rules have none, and with loopy propagation no rule has one.
    pub(crate) home: Option<Home>,
    pub(crate) silence: Silence,
    pub(crate) probability: Probability,
}

/// Where a rule is at home.
#[derive(Clone, Debug)]
pub(crate) struct Home {
    pub(crate) clique: usize,
    /// How the rule's table lies in that of the clique.
    pub(crate) fit: Fit,
}

impl Home {
    /// The smallest clique with all these labels.
    pub(crate) fn of(tree: &CliqueTree, labels: &[usize]) -> Option<Self> {
        let clique = tree.clique_of(labels)?;
        Some(Self { clique, fit: Fit::new(&tree.sizes, &tree.cliques[clique].labels, labels) })
    }
}

/// How probable it is that a rule stays silent.
#[derive(Clone, Debug)]
pub(crate) enum Silence {
    /// ∏ q, where q of the categories of each label are parameters from these places on.
    Learned(Vec<usize>),
    /// The same over all labels, without a table; the parameters from here on, in the order of the categories. They may have to stay as
    /// they are.
    Wide { start: usize, is_learned: bool },
    /// As it is, for every entry.
    Given(Vec<f64>),
}

/// How probable it is that a rule holds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Probability {
    Given(f64),
    /// The parameter with this number.
    Learned(usize),
}

/// The rules' numbers for given parameters.
#[derive(Default)]
pub(crate) struct Tables {
    /// For each rule and entry: the probability to be silent. Wide rules and outer products have no entries, here and below.
    pub(crate) silent: Vec<Vec<f64>>,
    /// For each rule and entry: f.
    pub(crate) factors: Vec<Vec<f64>>,
    /// For each rule that is large: the same as an outer product.
    outer: Vec<Option<Outer>>,
    /// For each entry of every clique: the product of its rules.
    pub(crate) potentials: Vec<f64>,
    /// The same with the factor of one rule replaced by its silence, for each rule that reaches out, unless all labels are in one
    /// clique.
    pub(crate) without: Vec<Vec<f64>>,
}

impl Problem {
    pub(crate) fn probability(&self, rule: usize, parameters: &[f64]) -> f64 {
        match self.rules[rule].probability {
            Probability::Given(p) => p,
            Probability::Learned(at) => parameters[at],
        }
    }

    /// The rules' tables and the cliques' potentials, in room that was used before.
    pub(crate) fn tables(&self, parameters: &[f64]) -> Tables {
        let mut tables = self.spare_tables.lock().expect("nobody panics with it").pop().unwrap_or_default();
        tables.silent.resize(self.rules.len(), Vec::new());
        tables.factors.resize(self.rules.len(), Vec::new());
        tables.without.clear();
        tables.outer = self.rules.iter().map(|rule| self.outer(rule, parameters)).collect();
        let outer = &tables.outer;
        let fill = |(rule, (silent, factors)): (usize, (&mut Vec<f64>, &mut Vec<f64>))| {
            if outer[rule].is_some() {
                return;
            }
            self.rules[rule].fill_silent(&self.tree.sizes, parameters, silent);
            let p = self.probability(rule, parameters);
            factors.clear();
            factors.extend(silent.iter().map(|silent| (1.0 - p) * silent + p * (1.0 - silent)));
        };
        if self.tree.n_entries >= LARGE {
            let rules = tables.silent.par_iter_mut().zip(tables.factors.par_iter_mut());
            rules.enumerate().for_each(fill);
        } else {
            tables.silent.iter_mut().zip(&mut tables.factors).enumerate().for_each(fill);
        }
        let mut potentials = std::mem::take(&mut tables.potentials);
        self.fill_potentials(&tables, None, &mut potentials);
        tables.potentials = potentials;
        tables
    }

    /// A large rule as an outer product, if it is one, and nobody asks for labels that it is not connected with.
    fn outer(&self, rule: &RuleShape, parameters: &[f64]) -> Option<Outer> {
        let is_large = self.tree.cliques[rule.home.as_ref()?.clique].size >= LARGE;
        let is_alone = is_large && self.reaches.is_empty();
        is_alone.then(|| Outer::new(rule, &self.tree.sizes, parameters)).flatten()
    }

    /// Tables that are no longer needed: to ask for new room in each step takes longer than to fill it.
    pub(crate) fn put_back(&self, tables: Tables) {
        self.spare_tables.lock().expect("nobody panics with it").push(tables);
    }

    /// The same, with what the labels need that rules are not connected with.
    pub(crate) fn reaching_tables(&self, parameters: &[f64]) -> Tables {
        let mut tables = self.tables(parameters);
        let reaching = self.reaches.iter().filter(|_| !self.is_loopy && !self.is_joint());
        let without = |rule: usize| {
            let mut potentials = Vec::new();
            self.fill_potentials(&tables, Some((rule, &tables.silent[rule])), &mut potentials);
            potentials
        };
        tables.without = reaching.map(|reach| without(reach.rule)).collect();
        tables
    }

    /// The product of the rules of every clique, the factors of one of them replaced.
    fn fill_potentials(&self, tables: &Tables, replaced: Option<(usize, &[f64])>, potentials: &mut Vec<f64>) {
        potentials.clear();
        potentials.resize(self.tree.n_entries, 1.0);
        for (index, clique) in self.tree.cliques.iter().enumerate() {
            self.multiply_rules(index, tables, replaced, &mut potentials[clique.entries()]);
        }
    }

    /// The product of the rules of a clique, in place of ones.
    fn multiply_rules(
        &self,
        clique: usize,
        tables: &Tables,
        replaced: Option<(usize, &[f64])>,
        product: &mut [f64],
    ) {
        // A table over the fastest labels, which grows label by label: a rule joins in when all its labels are there.
        let labels = &self.tree.cliques[clique].labels;
        let mut n_entries = 1;
        for at in (0..=labels.len()).rev() {
            if let Some(&label) = labels.get(at) {
                let size = self.tree.sizes[label];
                (1..size).for_each(|category| product.copy_within(..n_entries, category * n_entries));
                n_entries *= size;
            }
            for &rule in &self.of_clique[clique] {
                let factors = match replaced {
                    Some((other, factors)) if other == rule => factors,
                    _ => &tables.factors[rule],
                };
                if let Some(home) = &self.rules[rule].home
                    && home.fit.first == at
                    && tables.outer[rule].is_none()
                {
                    home.fit.multiply(&mut product[..n_entries], factors);
                }
            }
        }
        let outer: Vec<&Outer> =
            self.of_clique[clique].iter().filter_map(|&rule| tables.outer[rule].as_ref()).collect();
        outer::multiply(product, &outer);
    }

    /// Adds what derivatives in the potentials, and counts of their logarithms, mean for the rules' parameters.
    pub(crate) fn rule_gradient(
        &self,
        parameters: &[f64],
        tables: &Tables,
        derivatives: &[f64],
        counts: &[f64],
        gradient: &mut [f64],
    ) {
        for (index, (clique, rules)) in self.tree.cliques.iter().zip(&self.of_clique).enumerate() {
            let [derivatives, counts, potentials] =
                [derivatives, counts, &tables.potentials].map(|all| &all[clique.entries()]);
            let mut mass = counts.to_vec();
            add_products(derivatives, potentials, &mut mass);
            let shared = Masses::new(self, clique, mass);
            let add = |rule: usize, gradient: &mut [f64]| {
                let Some(home) = &self.rules[rule].home else { return };
                if let Some(outer) = &tables.outer[rule] {
                    outer.add_gradient(shared.mass(), &self.tree.sizes, parameters, gradient);
                    return;
                }
                let (silent, factors) = (&tables.silent[rule], &tables.factors[rule]);
                if factors.iter().all(|factor| *factor >= LEAST_DIVISOR) {
                    self.add_mass_gradient(rule, parameters, silent, (&shared, factors), gradient);
                    return;
                }
                // The same, with nothing that has been multiplied by the factor. Where it is 0 there are no counts.
                let inverse = factors.iter().map(|f| if *f > 0.0 { 1.0 / f } else { 0.0 });
                let mut mass = counts.to_vec();
                home.fit.multiply(&mut mass, &inverse.collect::<Vec<f64>>());
                let ones = vec![1.0; factors.len()];
                let mut others = vec![1.0; clique.size];
                self.multiply_rules(index, tables, Some((rule, &ones)), &mut others);
                add_products(derivatives, &others, &mut mass);
                let own = Masses::new(self, clique, mass);
                self.add_mass_gradient(rule, parameters, silent, (&own, &ones), gradient);
            };
            let learned = rules.iter().copied().filter(|&rule| self.rules[rule].is_learned());
            if clique.size < LARGE {
                learned.for_each(|rule| add(rule, gradient));
                continue;
            }
            let learned: Vec<usize> = learned.collect();
            let of_rule = |&rule: &usize| {
                let mut gradient = vec![0.0; gradient.len()];
                add(rule, &mut gradient);
                gradient
            };
            let gradients: Vec<Vec<f64>> = learned.par_iter().map(of_rule).collect();
            for own in gradients {
                gradient.iter_mut().zip(own).for_each(|(slot, own)| *slot += own);
            }
        }
    }

    /// Adds the gradient of ln ∏ f of an assignment, so many times, in the q of labels that rules are not connected with: unless
    /// they have their part of the masses.
    pub(crate) fn add_log_reach(
        &self,
        parameters: &[f64],
        tables: &Tables,
        assignment: impl Fn(usize) -> usize + Copy,
        times: f64,
        gradient: &mut [f64],
    ) {
        if times == 0.0 || self.is_joint() {
            return;
        }
        for reach in &self.reaches {
            let entry = self.rules[reach.rule].entry(&self.tree.sizes, assignment);
            let toward_silence = 1.0 - 2.0 * self.probability(reach.rule, parameters);
            let slope =
                times * toward_silence * tables.silent[reach.rule][entry] / tables.factors[reach.rule][entry];
            reach.labels.iter().for_each(|&(label, place)| gradient[place + assignment(label)] += slope);
        }
    }

    /// From ∂ / ∂ f for each entry of a rule to its parameters.
    pub(crate) fn add_rule_gradient(
        &self,
        rule: usize,
        parameters: &[f64],
        silent: &[f64],
        slope: &[f64],
        gradient: &mut [f64],
    ) {
        let shape = &self.rules[rule];
        if let Probability::Learned(at) = shape.probability {
            gradient[at] +=
                silent.iter().zip(slope).map(|(silent, slope)| slope * (1.0 - 2.0 * silent)).sum::<f64>();
        }
        let toward_silence = 1.0 - 2.0 * self.probability(rule, parameters);
        shape.add_inhibition_gradient(&self.tree.sizes, parameters, (slope, toward_silence), gradient);
    }
}

impl RuleShape {
    /// Whether any of its numbers is a parameter.
    fn is_learned(&self) -> bool {
        matches!(self.silence, Silence::Learned(_)) || matches!(self.probability, Probability::Learned(_))
    }

    /// The entry of its table for an assignment.
    pub(crate) fn entry(&self, sizes: &[usize], assignment: impl Fn(usize) -> usize) -> usize {
        self.labels.iter().fold(0, |entry, &label| entry * sizes[label] + assignment(label))
    }

    /// The places of its q among the parameters, label by label, where they are learned.
    pub(crate) fn places(&self, sizes: &[usize]) -> impl Iterator<Item = usize> {
        let places: Vec<usize> = match &self.silence {
            Silence::Given(_) | Silence::Wide { is_learned: false, .. } => Vec::new(),
            Silence::Learned(places) => places.clone(),
            Silence::Wide { start, .. } => blocks(sizes).map(|block| start + block).collect(),
        };
        places.into_iter().zip(&self.labels).flat_map(|(place, &label)| place..place + sizes[label])
    }

    /// The probability to be silent, for each entry.
    pub(crate) fn fill_silent(&self, sizes: &[usize], parameters: &[f64], silent: &mut Vec<f64>) {
        match &self.silence {
            Silence::Given(given) => silent.clone_from(given),
            Silence::Learned(places) => match places.first() {
                None => *silent = vec![1.0],
                Some(&first) => {
                    let behind = self.products(places, sizes, parameters, places.len() - 1);
                    let q = &parameters[first..first + sizes[self.labels[0]]];
                    outer_product(q, behind.last().expect("that of no label at least"), silent);
                }
            },
            Silence::Wide { .. } => silent.clear(),
        }
    }

    /// ∏ q of the last labels for each combination of their categories: of none, of the last one, and so on, of so many at most.
    fn products(&self, places: &[usize], sizes: &[usize], parameters: &[f64], most: usize) -> Vec<Vec<f64>> {
        let mut products = vec![vec![1.0]];
        for (&place, &label) in places.iter().zip(&self.labels).rev().take(most) {
            let behind = &products[products.len() - 1];
            let mut product = Vec::with_capacity(behind.len() * sizes[label]);
            outer_product(&parameters[place..place + sizes[label]], behind, &mut product);
            products.push(product);
        }
        products
    }

    /// From ∂ / ∂ Q for each entry, so many times, to q, where they are learned: ∂Q/∂qⱼ(m) is the product of the other labels' q where
    /// Lⱼ = m.
    pub(crate) fn add_inhibition_gradient(
        &self,
        sizes: &[usize],
        parameters: &[f64],
        (slope, times): (&[f64], f64),
        gradient: &mut [f64],
    ) {
        let Silence::Learned(places) = &self.silence else { return };
        // From the first label on: `rest` is ∂ / ∂ (product from this label on), the labels before it summed out.
        let mut rest = Cow::Borrowed(slope);
        let mut products = self.products(places, sizes, parameters, places.len().saturating_sub(1));
        for (&place, &label) in places.iter().zip(&self.labels) {
            let own = place..place + sizes[label];
            let behind = products.pop().expect("one for each label");
            for (slot, run) in gradient[own.clone()].iter_mut().zip(rest.chunks_exact(behind.len())) {
                *slot += times * dot(run, &behind);
            }
            rest = Cow::Owned(weighted_sum(&parameters[own], &rest, behind.len()));
        }
    }
}

/// Where each label's categories start among those of all.
pub(crate) fn blocks(sizes: &[usize]) -> impl Iterator<Item = usize> {
    sizes.iter().scan(0, |end, size| {
        *end += size;
        Some(*end - size)
    })
}

fn add_products(a: &[f64], b: &[f64], sums: &mut [f64]) {
    sums.iter_mut().zip(a.iter().zip(b)).for_each(|(sum, (a, b))| *sum += a * b);
}
