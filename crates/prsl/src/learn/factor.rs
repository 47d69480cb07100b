//! Rules as tables over their labels, and what a derivative in these tables means for their numbers.

use super::objective::Problem;

/// A rule over labels that share a clique.
#[derive(Clone, Debug)]
pub(crate) struct RuleShape {
    pub(crate) clique: usize,
    pub(crate) labels: Vec<usize>,
    /// For each entry of the clique, the entry of the rule's table: the last label fastest.
    pub(crate) of_clique: Vec<u32>,
    pub(crate) silence: Silence,
    pub(crate) probability: Probability,
}

/// How probable it is that a rule stays silent.
#[derive(Clone, Debug)]
pub(crate) enum Silence {
    /// ∏ q, where q of each category of each label are parameters from here on.
    Learned(usize),
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
pub(crate) struct Tables {
    /// For each rule and entry: the probability to be silent.
    silent: Vec<Vec<f64>>,
    /// For each rule and entry: f.
    factors: Vec<Vec<f64>>,
    /// For each entry of every clique: the product of its rules.
    pub(crate) potentials: Vec<f64>,
}

impl Problem {
    fn probability(&self, rule: usize, parameters: &[f64]) -> f64 {
        match self.rules[rule].probability {
            Probability::Given(p) => p,
            Probability::Learned(at) => parameters[at],
        }
    }

    /// The rules' tables and the cliques' potentials.
    pub(crate) fn tables(&self, parameters: &[f64]) -> Tables {
        let silent: Vec<Vec<f64>> =
            self.rules.iter().map(|rule| rule.silent(&self.tree.sizes, parameters)).collect();
        let factor = |(rule, silent): (usize, &Vec<f64>)| {
            let p = self.probability(rule, parameters);
            silent.iter().map(|silent| (1.0 - p) * silent + p * (1.0 - silent)).collect()
        };
        let factors: Vec<Vec<f64>> = silent.iter().enumerate().map(factor).collect();
        let mut potentials = vec![1.0; self.tree.n_entries];
        for (clique, rules) in self.tree.cliques.iter().zip(&self.of_clique) {
            for &rule in rules {
                let entries = potentials[clique.entries()].iter_mut().zip(&self.rules[rule].of_clique);
                entries.for_each(|(potential, &entry)| *potential *= factors[rule][entry as usize]);
            }
        }
        Tables { silent, factors, potentials }
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
        let mut others = Vec::new();
        for (clique, rules) in self.tree.cliques.iter().zip(&self.of_clique) {
            for &rule in rules {
                self.product_of_others(rules, rule, tables, clique.size, &mut others);
                let shape = &self.rules[rule];
                let factors = &tables.factors[rule];
                let mut slope = vec![0.0; factors.len()];
                let entries = derivatives[clique.entries()].iter().zip(&counts[clique.entries()]);
                for (((derivative, count), others), &entry) in entries.zip(&others).zip(&shape.of_clique) {
                    slope[entry as usize] += derivative * others;
                    if *count != 0.0 {
                        slope[entry as usize] += count / factors[entry as usize];
                    }
                }
                self.add_rule_gradient(rule, parameters, &tables.silent[rule], &slope, gradient);
            }
        }
    }

    /// The product of a clique's rules but one, for each of its entries.
    fn product_of_others(
        &self,
        rules: &[usize],
        but: usize,
        tables: &Tables,
        size: usize,
        out: &mut Vec<f64>,
    ) {
        out.clear();
        out.resize(size, 1.0);
        for &rule in rules.iter().filter(|&&rule| rule != but) {
            let factors = &tables.factors[rule];
            let entries = out.iter_mut().zip(&self.rules[rule].of_clique);
            entries.for_each(|(product, &entry)| *product *= factors[entry as usize]);
        }
    }

    /// From ∂ / ∂ f for each entry of a rule to its parameters.
    fn add_rule_gradient(
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
        if let Silence::Learned(start) = shape.silence {
            let toward_silence = 1.0 - 2.0 * self.probability(rule, parameters);
            let slope: Vec<f64> = slope.iter().map(|slope| slope * toward_silence).collect();
            shape.add_inhibition_gradient(start, &self.tree.sizes, parameters, &slope, gradient);
        }
    }
}

impl RuleShape {
    /// How many parameters its q are.
    pub(crate) fn n_inhibitions(&self, sizes: &[usize]) -> usize {
        self.labels.iter().map(|&label| sizes[label]).sum()
    }

    /// The probability to be silent, for each entry.
    fn silent(&self, sizes: &[usize], parameters: &[f64]) -> Vec<f64> {
        match &self.silence {
            Silence::Given(silent) => silent.clone(),
            Silence::Learned(start) => {
                let mut products = vec![1.0];
                let mut start = *start;
                for &label in &self.labels {
                    let q = &parameters[start..start + sizes[label]];
                    products =
                        products.iter().flat_map(|product| q.iter().map(move |q| product * q)).collect();
                    start += sizes[label];
                }
                products
            }
        }
    }

    /// From ∂ / ∂ Q for each entry to q: ∂Q/∂qⱼ(m) is the product of the other labels' q where Lⱼ = m.
    fn add_inhibition_gradient(
        &self,
        start: usize,
        sizes: &[usize],
        parameters: &[f64],
        slope: &[f64],
        gradient: &mut [f64],
    ) {
        // From the last label on: `rest` is ∂ / ∂ (product up to this label), the labels behind it summed out.
        let mut rest = slope.to_vec();
        let mut end = start + self.n_inhibitions(sizes);
        for (place, &label) in self.labels.iter().enumerate().rev() {
            let first = end - sizes[label];
            let before = self.products_before(place, start, sizes, parameters);
            for (product, run) in before.iter().zip(rest.chunks_exact(sizes[label])) {
                gradient[first..end].iter_mut().zip(run).for_each(|(slot, slope)| *slot += product * slope);
            }
            let q = &parameters[first..end];
            rest = rest
                .chunks_exact(sizes[label])
                .map(|run| run.iter().zip(q).map(|(slope, q)| slope * q).sum())
                .collect();
            end = first;
        }
    }

    /// ∏ q of the labels before a place, for each combination of their categories.
    fn products_before(
        &self,
        place: usize,
        mut start: usize,
        sizes: &[usize],
        parameters: &[f64],
    ) -> Vec<f64> {
        let mut products = vec![1.0];
        for &label in &self.labels[..place] {
            let q = &parameters[start..start + sizes[label]];
            products = products.iter().flat_map(|product| q.iter().map(move |q| product * q)).collect();
            start += sizes[label];
        }
        products
    }
}
