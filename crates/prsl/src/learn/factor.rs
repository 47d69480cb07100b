//! Rules as tables over their labels, and what a derivative in these tables means for their numbers.

use super::clique_tree::CliqueTree;
use super::objective::Problem;

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
    /// For each entry of the clique, the entry of the rule's table: the last label fastest.
    pub(crate) of_clique: Vec<u32>,
}

impl Home {
    /// The smallest clique with all these labels.
    pub(crate) fn of(tree: &CliqueTree, labels: &[usize]) -> Option<Self> {
        let clique = tree.clique_of(labels)?;
        Some(Self { clique, of_clique: tree.projection(clique, labels) })
    }
}

/// How probable it is that a rule stays silent.
#[derive(Clone, Debug)]
pub(crate) enum Silence {
    /// ∏ q, where q of the categories of each label are parameters from these places on.
    Learned(Vec<usize>),
    /// The same over all labels, without a table; the parameters from here on, in the order of the categories.
    Wide(usize),
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
    /// For each rule and entry: the probability to be silent. Wide rules have no entries, here and below.
    pub(crate) silent: Vec<Vec<f64>>,
    /// For each rule and entry: f.
    pub(crate) factors: Vec<Vec<f64>>,
    /// For each entry of every clique: the product of its rules.
    pub(crate) potentials: Vec<f64>,
    /// The same with the factor of one rule replaced by its silence, for each rule that reaches out.
    pub(crate) without: Vec<Vec<f64>>,
}

impl Problem {
    pub(crate) fn probability(&self, rule: usize, parameters: &[f64]) -> f64 {
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
        let mut tables = Tables { silent, factors, potentials: Vec::new(), without: Vec::new() };
        tables.potentials = self.potentials(&tables, None);
        tables
    }

    /// The same, with what the labels need that rules are not connected with.
    pub(crate) fn reaching_tables(&self, parameters: &[f64]) -> Tables {
        let mut tables = self.tables(parameters);
        let reaching = self.reaches.iter().filter(|_| !self.is_loopy);
        tables.without = reaching.map(|reach| self.potentials(&tables, Some(reach.rule))).collect();
        tables
    }

    /// The product of the rules of every clique, the factor of `silenced` replaced by its silence.
    fn potentials(&self, tables: &Tables, silenced: Option<usize>) -> Vec<f64> {
        let mut potentials = vec![1.0; self.tree.n_entries];
        for (rule, shape) in self.rules.iter().enumerate() {
            let Some(home) = &shape.home else { continue };
            let factors = if silenced == Some(rule) { &tables.silent[rule] } else { &tables.factors[rule] };
            let entries =
                potentials[self.tree.cliques[home.clique].entries()].iter_mut().zip(&home.of_clique);
            entries.for_each(|(potential, &entry)| *potential *= factors[entry as usize]);
        }
        potentials
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
        for (clique, rules) in self.tree.cliques.iter().zip(&self.of_clique) {
            // The product of all rules but one: those before it times those behind it.
            let mut behind = vec![vec![1.0; clique.size]];
            for &rule in rules.iter().skip(1).rev() {
                let mut product = behind.last().expect("there is one").clone();
                self.multiply(rule, tables, &mut product);
                behind.push(product);
            }
            let mut before = vec![1.0; clique.size];
            for &rule in rules {
                let shape = &self.rules[rule];
                let Some(home) = &shape.home else { continue };
                let behind = behind.pop().expect("one for each rule");
                let factors = &tables.factors[rule];
                let mut slope = vec![0.0; factors.len()];
                let others = before.iter().zip(&behind).map(|(before, behind)| before * behind);
                let entries = derivatives[clique.entries()].iter().zip(&counts[clique.entries()]);
                for (((derivative, count), others), &entry) in entries.zip(others).zip(&home.of_clique) {
                    slope[entry as usize] += derivative * others;
                    if *count != 0.0 {
                        slope[entry as usize] += count / factors[entry as usize];
                    }
                }
                self.add_rule_gradient(rule, parameters, &tables.silent[rule], &slope, gradient);
                self.multiply(rule, tables, &mut before);
            }
        }
    }

    /// Multiplies the entries of a rule's clique by its factor.
    fn multiply(&self, rule: usize, tables: &Tables, product: &mut [f64]) {
        let Some(home) = &self.rules[rule].home else { return };
        let entries = product.iter_mut().zip(&home.of_clique);
        entries.for_each(|(product, &entry)| *product *= tables.factors[rule][entry as usize]);
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
        if let Silence::Learned(places) = &shape.silence {
            let toward_silence = 1.0 - 2.0 * self.probability(rule, parameters);
            let slope: Vec<f64> = slope.iter().map(|slope| slope * toward_silence).collect();
            shape.add_inhibition_gradient(places, &self.tree.sizes, parameters, &slope, gradient);
        }
    }
}

impl RuleShape {
    /// The entry of its table for an assignment.
    pub(crate) fn entry(&self, sizes: &[usize], assignment: impl Fn(usize) -> usize) -> usize {
        self.labels.iter().fold(0, |entry, &label| entry * sizes[label] + assignment(label))
    }

    /// The places of its q among the parameters, label by label.
    pub(crate) fn places(&self, sizes: &[usize]) -> impl Iterator<Item = usize> {
        let places: Vec<usize> = match &self.silence {
            Silence::Given(_) => Vec::new(),
            Silence::Learned(places) => places.clone(),
            Silence::Wide(start) => blocks(sizes).map(|block| start + block).collect(),
        };
        places.into_iter().zip(&self.labels).flat_map(|(place, &label)| place..place + sizes[label])
    }

    /// The probability to be silent, for each entry.
    fn silent(&self, sizes: &[usize], parameters: &[f64]) -> Vec<f64> {
        match &self.silence {
            Silence::Given(silent) => silent.clone(),
            Silence::Learned(places) => self.products(places, sizes, parameters),
            Silence::Wide(_) => Vec::new(),
        }
    }

    /// ∏ q of the first labels, as many as there are places, for each combination of their categories.
    fn products(&self, places: &[usize], sizes: &[usize], parameters: &[f64]) -> Vec<f64> {
        let mut products = vec![1.0];
        for (&place, &label) in places.iter().zip(&self.labels) {
            let q = &parameters[place..place + sizes[label]];
            products = products.iter().flat_map(|product| q.iter().map(move |q| product * q)).collect();
        }
        products
    }

    /// From ∂ / ∂ Q for each entry to q: ∂Q/∂qⱼ(m) is the product of the other labels' q where Lⱼ = m.
    fn add_inhibition_gradient(
        &self,
        places: &[usize],
        sizes: &[usize],
        parameters: &[f64],
        slope: &[f64],
        gradient: &mut [f64],
    ) {
        // From the last label on: `rest` is ∂ / ∂ (product up to this label), the labels behind it summed out.
        let mut rest = slope.to_vec();
        for (at, (&place, &label)) in places.iter().zip(&self.labels).enumerate().rev() {
            let own = place..place + sizes[label];
            let before = self.products(&places[..at], sizes, parameters);
            for (product, run) in before.iter().zip(rest.chunks_exact(sizes[label])) {
                gradient[own.clone()].iter_mut().zip(run).for_each(|(slot, slope)| *slot += product * slope);
            }
            let q = &parameters[own];
            rest = rest
                .chunks_exact(sizes[label])
                .map(|run| run.iter().zip(q).map(|(slope, q)| slope * q).sum())
                .collect();
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
