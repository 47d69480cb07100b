//! Loopy propagation between rules and labels, for eight rows side by side: the Bethe approximation of ln Z.
//!
//! Learning with it maximizes the Bethe likelihood and exploits the errors of the approximation. It is for comparison with
//! the paper, and for models on which exact gradients are not affordable.
//!
//! # Derivation
//!
//! Let cₖⱼ be the normalized cavity message of label j to rule k, and μₖⱼ the message of rule k to label j. Then
//!
//! ```text
//! ln Z = Σₖ ln Zₖ + Σⱼ ln Σ πⱼ ∏ₖ μₖⱼ − Σₖⱼ ln Σ cₖⱼ μₖⱼ        Zₖ = Σ fₖ ∏ⱼ cₖⱼ
//! ```
//!
//! is stationary in the messages once they have converged. For a noisy-or rule with sⱼ = Σₘ qⱼ(m) cⱼ(m),
//!
//! ```text
//! Zₖ = p + (1 − 2p) ∏ⱼ sⱼ        Z[f → Q, Lⱼ = m] / Z = qⱼ(m) cⱼ(m) ∏_{i≠j} sᵢ / Zₖ        (1)
//! ```
//!
//! For a label that is not connected with the rule, c is its marginal, and the product is over all sᵢ.
//! Checked in `loopy_gradients_are_exact_on_trees` and `loopy_gradients_agree_with_differences`.

use super::engine::{Engine, Worker};
use super::lanes::{LANES, Lane, dot, multiply, normalize, sum_of_products};
use super::space::{Expert, Space, noisy_or};
use crate::error::{Error, Result};

/// Maximum number of sweeps without damping, and again with damping ½.
const MAX_SWEEPS: usize = 100;
/// Messages have converged if none changes by more.
const TOLERANCE: f64 = 1e-10;
/// Maximum number of entries of the table of a rule of the base model.
const MAX_TABLE: f64 = (1u64 << 20) as f64;
/// Typical number of sweeps, for the estimate of the work.
const TYPICAL_SWEEPS: usize = 30;

pub(super) struct Loopy {
    space: Space,
    experts: Vec<Expert>,
    probability: f64,
    /// The q of every rule for every category.
    q: Vec<f64>,
    /// The labels of each rule, those of the base model first.
    scopes: Vec<Vec<usize>>,
    /// For each rule and each of its labels, the start of its messages.
    edges: Vec<Vec<usize>>,
    /// For each label, the starts of the messages to it.
    of_label: Vec<Vec<usize>>,
    n_messages: usize,
}

/// Refuses rules of the base model whose tables are too large.
pub(super) fn check_tables(space: &Space, scopes: &[Vec<usize>]) -> Result<()> {
    for scope in scopes {
        let n_entries = space.n_entries(scope);
        if n_entries > MAX_TABLE {
            return Err(Error::TooCostly {
                what: "learning with loopy gradients".to_owned(),
                needed: format!("a rule over {} labels, {n_entries:.1e} entries", scope.len()),
                limit: format!("{MAX_TABLE:.1e} entries"),
                advice: "give the rule fewer labels".to_owned(),
            });
        }
    }
    Ok(())
}

impl Loopy {
    pub(super) fn new(space: &Space, experts: &[Expert], probability: f64) -> Self {
        let (space, experts) = (space.clone(), experts.to_vec());
        let (scopes, edges, of_label) = (Vec::new(), Vec::new(), Vec::new());
        Self { space, experts, probability, q: Vec::new(), scopes, edges, of_label, n_messages: 0 }
    }

    /// The q of a rule; `None` for a rule of the base model.
    fn q_of(&self, rule: usize) -> Option<&[f64]> {
        let n = self.space.n_categories();
        rule.checked_sub(self.experts.len()).map(|learned| &self.q[learned * n..(learned + 1) * n])
    }
}

impl Engine for Loopy {
    fn set(&mut self, q: &[f64]) -> Result<()> {
        self.q = q.to_vec();
        let learned = q.chunks_exact(self.space.n_categories()).map(|q| self.space.connected(q));
        let experts = self.experts.iter().map(|expert| expert.labels.clone());
        let scopes: Vec<Vec<usize>> = experts.chain(learned).collect();
        if scopes == self.scopes && !self.of_label.is_empty() {
            return Ok(());
        }
        self.edges.clear();
        self.of_label = vec![Vec::new(); self.space.n_labels()];
        self.n_messages = 0;
        for scope in &scopes {
            let mut edges = Vec::with_capacity(scope.len());
            for &label in scope {
                edges.push(self.n_messages);
                self.of_label[label].push(self.n_messages);
                self.n_messages += self.space.sizes[label];
            }
            self.edges.push(edges);
        }
        self.scopes = scopes;
        Ok(())
    }

    fn worker(&self) -> Box<dyn Worker + '_> {
        Box::new(Messages {
            loopy: self,
            marginals: vec![[0.0; LANES]; self.space.n_categories()],
            messages: vec![[1.0; LANES]; self.n_messages],
            cavities: vec![[1.0; LANES]; self.n_messages],
            totals: vec![[0.0; LANES]; self.scopes.len()],
            fresh: Vec::new(),
        })
    }

    fn n_sums(&self) -> usize {
        self.q.len()
    }

    fn expectations(&self, sums: Vec<f64>) -> Vec<f64> {
        sums
    }

    fn work(&self) -> usize {
        let tables: usize = self.experts.iter().map(|expert| expert.factors.len()).sum();
        TYPICAL_SWEEPS * LANES * (4 * self.n_messages + 4 * tables) + LANES * self.q.len()
    }
}

/// The messages of eight rows.
struct Messages<'a> {
    loopy: &'a Loopy,
    marginals: Vec<Lane>,
    /// The messages of the rules to the labels.
    messages: Vec<Lane>,
    /// The messages of the labels to the rules.
    cavities: Vec<Lane>,
    /// Zₖ of each rule.
    totals: Vec<Lane>,
    fresh: Vec<Lane>,
}

impl Worker for Messages<'_> {
    fn log_total(&mut self, beliefs: &[Lane]) -> Lane {
        self.messages.fill([1.0; LANES]);
        for sweep in 0..2 * MAX_SWEEPS {
            let step = if sweep < MAX_SWEEPS { 1.0 } else { 0.5 };
            let changes = (0..self.loopy.scopes.len()).map(|rule| self.send(rule, beliefs, step));
            if changes.fold(0.0, f64::max) <= TOLERANCE {
                break;
            }
        }
        self.summarize(beliefs)
    }

    fn add_expectations(&mut self, weights: &Lane, sums: &mut [f64]) {
        let loopy = self.loopy;
        let n_experts = loopy.experts.len();
        for (learned, sums) in sums.chunks_exact_mut(loopy.space.n_categories()).enumerate() {
            let rule = n_experts + learned;
            let q = loopy.q_of(rule).expect("it is learned");
            let total = &self.totals[rule];
            let share = |l: usize| if weights[l] == 0.0 { 0.0 } else { weights[l] / total[l] };
            let shares: Lane = std::array::from_fn(share);
            let silences = self.silences(rule, q);
            let silence = product(&silences);
            for (label, block) in loopy.space.blocks.iter().enumerate() {
                let place = loopy.scopes[rule].iter().position(|other| *other == label);
                let (beliefs, others) = match place {
                    Some(place) => {
                        let edge = loopy.edges[rule][place];
                        let own = &silences[place];
                        (&self.cavities[edge..], std::array::from_fn(|l| silence[l] / own[l]))
                    }
                    None => (&self.marginals[block.clone()], silence),
                };
                let others: Lane = std::array::from_fn(|l| if shares[l] == 0.0 { 0.0 } else { others[l] });
                let shares: Lane = std::array::from_fn(|l| shares[l] * others[l]);
                for ((sum, q), belief) in sums[block.clone()].iter_mut().zip(&q[block.clone()]).zip(beliefs) {
                    *sum += q * dot(belief, &shares); // (1)
                }
            }
        }
    }
}

impl Messages<'_> {
    /// Renews the messages of a rule, and returns their largest change.
    fn send(&mut self, rule: usize, beliefs: &[Lane], step: f64) -> f64 {
        self.fill_cavities(rule, beliefs);
        match self.loopy.q_of(rule) {
            Some(q) => self.fill_noisy_or(rule, q),
            None => self.fill_table(rule),
        }
        let mut change = 0.0_f64;
        let first = self.loopy.edges[rule].first().copied().unwrap_or(0);
        for (message, fresh) in self.messages[first..].iter_mut().zip(&self.fresh) {
            for l in 0..LANES {
                let difference = step * (fresh[l] - message[l]);
                message[l] += difference;
                change = change.max(difference.abs());
            }
        }
        change
    }

    /// The cavity messages of the labels of a rule.
    fn fill_cavities(&mut self, rule: usize, beliefs: &[Lane]) {
        let loopy = self.loopy;
        for (&label, &edge) in loopy.scopes[rule].iter().zip(&loopy.edges[rule]) {
            let block = loopy.space.blocks[label].clone();
            let cavity = &mut self.cavities[edge..edge + block.len()];
            cavity.copy_from_slice(&beliefs[block]);
            for &other in loopy.of_label[label].iter().filter(|&&other| other != edge) {
                cavity.iter_mut().zip(&self.messages[other..]).for_each(|(slot, by)| multiply(slot, by));
            }
            normalize(cavity);
        }
    }

    /// sⱼ for each label of a learned rule.
    fn silences(&self, rule: usize, q: &[f64]) -> Vec<Lane> {
        let of_label = |(&label, &edge): (&usize, &usize)| {
            let mut sum = [0.0; LANES];
            for (q, cavity) in q[self.loopy.space.blocks[label].clone()].iter().zip(&self.cavities[edge..]) {
                (0..LANES).for_each(|l| sum[l] += q * cavity[l]);
            }
            sum
        };
        self.loopy.scopes[rule].iter().zip(&self.loopy.edges[rule]).map(of_label).collect()
    }

    /// New messages of a learned rule: p + (1 − 2p) qⱼ(m) ∏_{i≠j} sᵢ.
    fn fill_noisy_or(&mut self, rule: usize, q: &[f64]) {
        let silences = self.silences(rule, q);
        let silence = product(&silences);
        self.fresh.clear();
        for (&label, own) in self.loopy.scopes[rule].iter().zip(&silences) {
            let start = self.fresh.len();
            for q in &q[self.loopy.space.blocks[label].clone()] {
                // An impossible row has a silence of 0.
                let rest = |l: usize| if own[l] > 0.0 { silence[l] / own[l] } else { 0.0 };
                self.fresh.push(std::array::from_fn(|l| noisy_or(self.loopy.probability, q * rest(l))));
            }
            normalize(&mut self.fresh[start..]);
        }
    }

    /// New messages of a rule of the base model.
    fn fill_table(&mut self, rule: usize) {
        let loopy = self.loopy;
        let n_messages: usize = loopy.scopes[rule].iter().map(|&label| loopy.space.sizes[label]).sum();
        self.fresh.clear();
        self.fresh.resize(n_messages, [0.0; LANES]);
        // From the last label on. `rest` is f with the labels behind summed out.
        let mut rest: Vec<Lane> = loopy.experts[rule].factors.iter().map(|&factor| [factor; LANES]).collect();
        let mut end = n_messages;
        for (place, &edge) in loopy.edges[rule].iter().enumerate().rev() {
            let size = loopy.space.sizes[loopy.scopes[rule][place]];
            let slots = &mut self.fresh[end - size..end];
            end -= size;
            let before = products(loopy, rule, place, &self.cavities);
            for (product, run) in before.iter().zip(rest.chunks_exact(size)) {
                for (slot, rest) in slots.iter_mut().zip(run) {
                    (0..LANES).for_each(|l| slot[l] += product[l] * rest[l]);
                }
            }
            normalize(slots);
            let cavity = &self.cavities[edge..edge + size];
            rest = rest.chunks_exact(size).map(|run| sum_of_products(run, cavity)).collect();
        }
    }

    /// ln Z, the marginals and Zₖ, from converged messages.
    fn summarize(&mut self, beliefs: &[Lane]) -> Lane {
        let loopy = self.loopy;
        let mut log_total = [0.0; LANES];
        let mut add = |sign: f64, sum: &Lane| (0..LANES).for_each(|l| log_total[l] += sign * sum[l].ln());
        for (block, messages) in loopy.space.blocks.iter().zip(&loopy.of_label) {
            let marginals = &mut self.marginals[block.clone()];
            marginals.copy_from_slice(&beliefs[block.clone()]);
            for &message in messages {
                marginals.iter_mut().zip(&self.messages[message..]).for_each(|(slot, by)| multiply(slot, by));
            }
            add(1.0, &normalize(marginals));
        }
        for (rule, scope) in loopy.scopes.iter().enumerate() {
            self.fill_cavities(rule, beliefs);
            self.totals[rule] = match loopy.q_of(rule) {
                Some(q) => product(&self.silences(rule, q)).map(|x| noisy_or(loopy.probability, x)),
                None => {
                    let factors = loopy.experts[rule].factors.iter().map(|&factor| [factor; LANES]);
                    let products = products(loopy, rule, scope.len(), &self.cavities);
                    sum_of_products(&products, &factors.collect::<Vec<Lane>>())
                }
            };
            add(1.0, &self.totals[rule]);
            for (&label, &edge) in scope.iter().zip(&loopy.edges[rule]) {
                let own = edge..edge + loopy.space.sizes[label];
                add(-1.0, &sum_of_products(&self.cavities[own.clone()], &self.messages[own]));
            }
        }
        // An impossible row has several zeros, and their logarithms cancel to NaN.
        log_total.map(|log| if log.is_nan() { f64::NEG_INFINITY } else { log })
    }
}

/// ∏ c of the first `n` labels of a rule, for each combination of their categories.
fn products(loopy: &Loopy, rule: usize, n: usize, cavities: &[Lane]) -> Vec<Lane> {
    let mut products = vec![[1.0; LANES]];
    for (&label, &edge) in loopy.scopes[rule].iter().zip(&loopy.edges[rule]).take(n) {
        let cavity = &cavities[edge..edge + loopy.space.sizes[label]];
        let times = |product: &Lane| {
            let product = *product;
            cavity.iter().map(move |c| std::array::from_fn(|l| product[l] * c[l]))
        };
        products = products.iter().flat_map(times).collect();
    }
    products
}

fn product(factors: &[Lane]) -> Lane {
    factors.iter().fold([1.0; LANES], |mut product, factor| {
        multiply(&mut product, factor);
        product
    })
}
