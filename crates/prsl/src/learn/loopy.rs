//! Loopy propagation between rules and labels, for eight rows side by side: Bethe's ln Z and its gradient.
//!
//! Climbing Bethe's likelihood exploits its errors. It is here for rules that tie so many labels together that nothing exact is
//! affordable, and for comparison with what others have done.
//!
//! # Derivation
//!
//! Let cₖⱼ be the belief in label j without rule k, normalized, and μₖⱼ the message of rule k about label j. Then
//!
//! ```text
//! ln Z = Σₖ ln Σ fₖ ∏ⱼ cₖⱼ + Σⱼ ln Σ πⱼ ∏ₖ μₖⱼ − Σₖⱼ ln Σ cₖⱼ μₖⱼ
//! ```
//!
//! is stationary in the messages where they have settled, so that ∂ ln Z / ∂ fₖ(e) = ∏ⱼ cₖⱼ(e) / Σ fₖ ∏ c.

use super::factor::{RuleShape, Tables};
use super::objective::Problem;
use super::sweep::{LANES, Lane, dot, multiply, normalize};

/// Sweeps at full length, and then as many with messages half way between the old and the new.
const SWEEPS: usize = 100;
/// Messages have settled when none changes by more.
const SETTLED: f64 = 1e-10;

/// Room for the messages of eight rows.
pub(crate) struct Loopy {
    /// Bethe's ln Z.
    pub(crate) log_total: Lane,
    /// For every category its probability.
    pub(crate) marginals: Vec<Lane>,
    /// Where the entries of each rule start among those of all.
    pub(crate) starts: Vec<usize>,
    pub(crate) n_entries: usize,
    /// For each rule and each of its labels: where its messages start.
    edges: Vec<Vec<usize>>,
    /// For each label, its categories among all, and the messages about it.
    labels: Vec<(std::ops::Range<usize>, Vec<usize>)>,
    messages: Vec<Lane>,
    cavities: Vec<Lane>,
    /// For each rule: Σ f ∏ c.
    totals: Vec<Lane>,
}

impl Loopy {
    pub(crate) fn new(problem: &Problem) -> Self {
        let sizes = &problem.tree.sizes;
        let mut labels: Vec<(std::ops::Range<usize>, Vec<usize>)> = Vec::with_capacity(sizes.len());
        let mut n_categories = 0;
        for size in sizes {
            labels.push((n_categories..n_categories + size, Vec::new()));
            n_categories += size;
        }
        let (mut edges, mut starts) = (Vec::new(), Vec::new());
        let (mut n_messages, mut n_entries) = (0, 0);
        for rule in &problem.rules {
            let mut own = Vec::with_capacity(rule.labels.len());
            for &label in &rule.labels {
                own.push(n_messages);
                labels[label].1.push(n_messages);
                n_messages += sizes[label];
            }
            edges.push(own);
            starts.push(n_entries);
            n_entries += rule.labels.iter().map(|&label| sizes[label]).product::<usize>();
        }
        Self {
            log_total: [0.0; LANES],
            marginals: vec![[0.0; LANES]; n_categories],
            starts,
            n_entries,
            edges,
            labels,
            messages: vec![[1.0; LANES]; n_messages],
            cavities: vec![[1.0; LANES]; n_messages],
            totals: vec![[0.0; LANES]; problem.rules.len()],
        }
    }

    /// Sends messages until they have settled, or for as long as there is patience.
    pub(crate) fn propagate(&mut self, problem: &Problem, tables: &Tables, beliefs: &[Lane]) {
        self.messages.fill([1.0; LANES]);
        for sweep in 0..2 * SWEEPS {
            let pace = if sweep < SWEEPS { 1.0 } else { 0.5 };
            let mut change = 0.0_f64;
            for (rule, shape) in problem.rules.iter().enumerate() {
                change = change.max(self.send(rule, shape, &tables.factors[rule], beliefs, pace));
            }
            if change <= SETTLED {
                break;
            }
        }
        self.take_stock(problem, tables, beliefs);
    }

    /// Renews the messages of a rule; how much they changed.
    fn send(&mut self, rule: usize, shape: &RuleShape, factors: &[f64], beliefs: &[Lane], pace: f64) -> f64 {
        self.listen(rule, shape, beliefs);
        let mut change = 0.0_f64;
        // From the last label on: `rest` is f with the labels behind summed out.
        let mut rest: Vec<Lane> = factors.iter().map(|&factor| [factor; LANES]).collect();
        for (at, &edge) in self.edges[rule].iter().enumerate().rev() {
            let size = self.labels[shape.labels[at]].0.len();
            let mut fresh = vec![[0.0; LANES]; size];
            for (product, run) in self.products(rule, shape, at).iter().zip(rest.chunks_exact(size)) {
                for (slot, rest) in fresh.iter_mut().zip(run) {
                    *slot = std::array::from_fn(|l| slot[l] + product[l] * rest[l]);
                }
            }
            normalize(&mut fresh);
            let cavity = &self.cavities[edge..edge + size];
            rest = rest.chunks_exact(size).map(|run| sum_of_products(run, cavity)).collect();
            for (message, fresh) in self.messages[edge..edge + size].iter_mut().zip(&fresh) {
                for l in 0..LANES {
                    let step = pace * (fresh[l] - message[l]);
                    message[l] += step;
                    change = change.max(step.abs());
                }
            }
        }
        change
    }

    /// What the labels of a rule say without it.
    fn listen(&mut self, rule: usize, shape: &RuleShape, beliefs: &[Lane]) {
        for (&label, &edge) in shape.labels.iter().zip(&self.edges[rule]) {
            let (block, messages) = &self.labels[label];
            let cavity = &mut self.cavities[edge..edge + block.len()];
            cavity.copy_from_slice(&beliefs[block.clone()]);
            for &other in messages.iter().filter(|&&other| other != edge) {
                cavity.iter_mut().zip(&self.messages[other..]).for_each(|(slot, by)| multiply(slot, by));
            }
            normalize(cavity);
        }
    }

    /// ∏ c of the first labels of a rule, for each combination of their categories.
    fn products(&self, rule: usize, shape: &RuleShape, n: usize) -> Vec<Lane> {
        let mut products = vec![[1.0; LANES]];
        for (&label, &edge) in shape.labels.iter().zip(&self.edges[rule]).take(n) {
            let cavity = &self.cavities[edge..edge + self.labels[label].0.len()];
            let times = |product: &Lane| {
                let product = *product;
                cavity.iter().map(move |c| std::array::from_fn(|l| product[l] * c[l]))
            };
            products = products.iter().flat_map(times).collect();
        }
        products
    }

    /// ln Z, marginals and what the gradient needs, from messages that have settled.
    fn take_stock(&mut self, problem: &Problem, tables: &Tables, beliefs: &[Lane]) {
        let mut log_total = [0.0; LANES];
        let mut add = |sign: f64, sum: &Lane| {
            for l in 0..LANES {
                log_total[l] += sign * sum[l].ln();
            }
        };
        for (block, messages) in &self.labels {
            let marginals = &mut self.marginals[block.clone()];
            marginals.copy_from_slice(&beliefs[block.clone()]);
            for &message in messages {
                marginals.iter_mut().zip(&self.messages[message..]).for_each(|(slot, by)| multiply(slot, by));
            }
            add(1.0, &normalize(marginals));
        }
        for (rule, shape) in problem.rules.iter().enumerate() {
            self.listen(rule, shape, beliefs);
            let products = self.products(rule, shape, shape.labels.len());
            let factors: Vec<Lane> = tables.factors[rule].iter().map(|&factor| [factor; LANES]).collect();
            self.totals[rule] = sum_of_products(&products, &factors);
            add(1.0, &self.totals[rule]);
            for (&label, &edge) in shape.labels.iter().zip(&self.edges[rule]) {
                let own = edge..edge + self.labels[label].0.len();
                add(-1.0, &sum_of_products(&self.cavities[own.clone()], &self.messages[own]));
            }
        }
        // What is impossible is 0 in more than one place.
        self.log_total = log_total.map(|log| if log.is_nan() { f64::NEG_INFINITY } else { log });
    }

    /// Adds ∂ ln Z / ∂ f of every entry, and ∂ ln Z / ∂ q of labels that rules are not connected with, each row times its share.
    pub(crate) fn add_gradient(
        &self,
        problem: &Problem,
        parameters: &[f64],
        tables: &Tables,
        share: &Lane,
        [derivatives, gradient]: [&mut [f64]; 2],
    ) {
        let shares = |rule: usize| -> Lane {
            let total = &self.totals[rule];
            std::array::from_fn(|l| if share[l] == 0.0 { 0.0 } else { share[l] / total[l] })
        };
        for (rule, shape) in problem.rules.iter().enumerate() {
            let shares = shares(rule);
            let products = self.products(rule, shape, shape.labels.len());
            let slots = &mut derivatives[self.starts[rule]..];
            slots.iter_mut().zip(&products).for_each(|(slot, product)| *slot += dot(product, &shares));
        }
        for reach in &problem.reaches {
            let shape = &problem.rules[reach.rule];
            let products = self.products(reach.rule, shape, shape.labels.len());
            let silent: Vec<Lane> = tables.silent[reach.rule].iter().map(|&silent| [silent; LANES]).collect();
            let silent = sum_of_products(&products, &silent);
            let toward_silence = 1.0 - 2.0 * problem.probability(reach.rule, parameters);
            let shares = shares(reach.rule);
            let shares: Lane = std::array::from_fn(|l| toward_silence * shares[l] * silent[l]);
            for &(label, place) in &reach.labels {
                let marginals = &self.marginals[self.labels[label].0.clone()];
                for (slot, marginal) in gradient[place..].iter_mut().zip(marginals) {
                    *slot += dot(marginal, &shares);
                }
            }
        }
    }
}

impl Problem {
    /// Adds what derivatives in the rules' factors, and counts of their logarithms, mean for their parameters.
    pub(crate) fn loopy_gradient(
        &self,
        parameters: &[f64],
        tables: &Tables,
        derivatives: &[f64],
        counts: &[f64],
        gradient: &mut [f64],
    ) {
        let mut start = 0;
        for (rule, factors) in tables.factors.iter().enumerate() {
            let own = start..start + factors.len();
            let entries = derivatives[own.clone()].iter().zip(&counts[own]).zip(factors);
            let slope: Vec<f64> = entries
                .map(|((slope, count), factor)| slope + if *count == 0.0 { 0.0 } else { count / factor })
                .collect();
            self.add_rule_gradient(rule, parameters, &tables.silent[rule], &slope, gradient);
            start += factors.len();
        }
    }
}

fn sum_of_products(a: &[Lane], b: &[Lane]) -> Lane {
    let mut sum = [0.0; LANES];
    for (a, b) in a.iter().zip(b) {
        for l in 0..LANES {
            sum[l] += a[l] * b[l];
        }
    }
    sum
}
