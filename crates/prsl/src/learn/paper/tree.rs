//! Exact inference on a clique tree, for many labels of which rules connect few at a time.
//!
//! For each rule, one more sweep with the rule's factor f replaced by its silence Q gives Z[f → Q] and the marginals of all
//! labels, and so the expectations of the rule (see [`super::engine`]). The tree is built anew when the rules connect other
//! labels.

use std::sync::Mutex;

use super::clique_tree::{CliqueTree, too_costly};
use super::engine::{Engine, Worker};
use super::lanes::{LANES, Lane, dot};
use super::space::{Expert, Space, noisy_or};
use super::sweep::{Potentials, Sweep};
use crate::error::Result;
use crate::infer::limits::bytes;

/// Maximum number of entries times sweeps. Above it, a step takes more than a few seconds.
const MAX_WORK: f64 = (1u64 << 24) as f64;

pub(super) struct Tree {
    space: Space,
    experts: Vec<Expert>,
    probability: f64,
    /// Maximum number of bytes for tables.
    memory: u64,
    tree: CliqueTree,
    /// The product of the base model's rules for each entry of every clique.
    of_experts: Vec<f64>,
    rules: Vec<Member>,
    /// The product of all rules for each entry of every clique.
    potentials: Vec<f64>,
    /// Buffer pool. Allocating for each batch takes longer than the sweep itself.
    pool: Mutex<Vec<Sweep>>,
}

/// A learned rule in its clique.
struct Member {
    labels: Vec<usize>,
    clique: usize,
    /// For each entry of the clique, the entry of the rule.
    entries: Vec<u32>,
    /// The potentials of the clique with f replaced by Q.
    replaced: Vec<f64>,
}

impl Tree {
    /// A tree for the base model's rules and these parameters.
    pub(super) fn new(
        space: &Space,
        experts: &[Expert],
        probability: f64,
        memory: u64,
        q: &[f64],
    ) -> Result<Self> {
        let mut tree = Self {
            space: space.clone(),
            experts: experts.to_vec(),
            probability,
            memory,
            tree: CliqueTree::default(),
            of_experts: Vec::new(),
            rules: Vec::new(),
            potentials: Vec::new(),
            pool: Mutex::default(),
        };
        tree.connect(q.chunks_exact(space.n_categories()).map(|q| space.connected(q)).collect())?;
        tree.set(q)?;
        Ok(tree)
    }

    /// Number of entries of all cliques.
    pub(super) fn n_entries(&self) -> usize {
        self.tree.n_entries
    }

    /// Builds the tree for rules with these labels.
    fn connect(&mut self, connected: Vec<Vec<usize>>) -> Result<()> {
        let scopes = self.experts.iter().map(|expert| &expert.labels).chain(&connected);
        self.tree = CliqueTree::new(&self.space, &scopes.cloned().collect::<Vec<_>>())?;
        self.check(connected.len())?;
        self.pool = Mutex::default();
        self.of_experts = vec![1.0; self.tree.n_entries];
        for expert in &self.experts {
            let clique = self.tree.clique_of(&expert.labels).expect("each scope has a clique");
            let clique = &self.tree.cliques[clique];
            let entries = self.space.projection(&clique.labels, &expert.labels);
            multiply(&mut self.of_experts[clique.entries()], &entries, &expert.factors);
        }
        let member = |labels: Vec<usize>| {
            let clique = self.tree.clique_of(&labels).expect("each scope has a clique");
            let entries = self.space.projection(&self.tree.cliques[clique].labels, &labels);
            Member { labels, clique, entries, replaced: Vec::new() }
        };
        self.rules = connected.into_iter().map(member).collect();
        Ok(())
    }

    /// Refuses what takes too much time or memory.
    fn check(&self, n_rules: usize) -> Result<()> {
        let n_entries = self.tree.n_entries as f64;
        let work = n_entries * (1 + n_rules) as f64;
        if work > MAX_WORK {
            return Err(too_costly(
                format!("{} sweeps over {n_entries:.1e} entries", 1 + n_rules),
                format!("{MAX_WORK:.1e} entries in all sweeps"),
            ));
        }
        // Potentials with and without the rules, and the lanes of a sweep.
        let needed = n_entries * 8.0 * (2 + LANES) as f64;
        if needed > self.memory as f64 {
            return Err(too_costly(bytes(needed), bytes(self.memory as f64)));
        }
        Ok(())
    }
}

impl Engine for Tree {
    fn set(&mut self, q: &[f64]) -> Result<()> {
        let q: Vec<&[f64]> = q.chunks_exact(self.space.n_categories()).collect();
        let connected: Vec<Vec<usize>> = q.iter().map(|q| self.space.connected(q)).collect();
        if !self.rules.iter().map(|rule| &rule.labels).eq(&connected) {
            self.connect(connected)?;
        }
        self.potentials.clone_from(&self.of_experts);
        let mut ratios = Vec::with_capacity(self.rules.len());
        for (rule, q) in self.rules.iter().zip(q) {
            let silence = self.space.silence(&rule.labels, q);
            let factors: Vec<f64> = silence.iter().map(|x| noisy_or(self.probability, *x)).collect();
            let own = self.tree.cliques[rule.clique].entries();
            multiply(&mut self.potentials[own], &rule.entries, &factors);
            ratios.push(silence.iter().zip(&factors).map(|(x, factor)| x / factor).collect::<Vec<f64>>());
        }
        for (rule, ratios) in self.rules.iter_mut().zip(ratios) {
            let own = self.tree.cliques[rule.clique].entries();
            rule.replaced.clear();
            rule.replaced.extend_from_slice(&self.potentials[own]);
            multiply(&mut rule.replaced, &rule.entries, &ratios);
        }
        Ok(())
    }

    fn worker(&self) -> Box<dyn Worker + '_> {
        let pooled = self.pool.lock().expect("no sweep panics").pop();
        let sweep = pooled.unwrap_or_else(|| Sweep::new(&self.space, &self.tree));
        Box::new(Sweeper { tree: self, sweep: Some(sweep), log_total: [0.0; LANES] })
    }

    fn n_sums(&self) -> usize {
        self.rules.len() * self.space.n_categories()
    }

    fn expectations(&self, sums: Vec<f64>) -> Vec<f64> {
        sums
    }

    fn work(&self) -> usize {
        8 * LANES * self.tree.n_entries * (1 + self.rules.len())
    }
}

/// Multiplies the table of a clique by that of a rule.
fn multiply(table: &mut [f64], entries: &[u32], factors: &[f64]) {
    table.iter_mut().zip(entries).for_each(|(slot, &entry)| *slot *= factors[entry as usize]);
}

/// Sweeps over the tree for eight rows.
struct Sweeper<'a> {
    tree: &'a Tree,
    /// `None` only while it is dropped.
    sweep: Option<Sweep>,
    log_total: Lane,
}

impl Worker for Sweeper<'_> {
    fn log_total(&mut self, beliefs: &[Lane]) -> Lane {
        let sweep = self.sweep.as_mut().expect("it is not dropped yet");
        sweep.beliefs.copy_from_slice(beliefs);
        let potentials = Potentials { all: &self.tree.potentials, replaced: None };
        self.log_total = sweep.up(&self.tree.tree, &potentials);
        self.log_total
    }

    fn add_expectations(&mut self, weights: &Lane, sums: &mut [f64]) {
        let sweep = self.sweep.as_mut().expect("it is not dropped yet");
        let n_categories = self.tree.space.n_categories();
        for (rule, sums) in self.tree.rules.iter().zip(sums.chunks_exact_mut(n_categories)) {
            let potentials =
                Potentials { all: &self.tree.potentials, replaced: Some((rule.clique, &rule.replaced)) };
            let log_total = sweep.up(&self.tree.tree, &potentials);
            sweep.down(&self.tree.tree, &potentials);
            let share = |l: usize| match weights[l] {
                0.0 => 0.0,
                weight => weight * (log_total[l] - self.log_total[l]).exp(),
            };
            let shares: Lane = std::array::from_fn(share);
            for (sum, marginal) in sums.iter_mut().zip(&sweep.marginals) {
                *sum += dot(marginal, &shares);
            }
        }
    }
}

impl Drop for Sweeper<'_> {
    fn drop(&mut self) {
        if let (Some(sweep), Ok(mut pool)) = (self.sweep.take(), self.tree.pool.lock()) {
            pool.push(sweep);
        }
    }
}
