//! Elimination orders: greedy, randomized, many; the cheapest wins.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::network::Network;

/// Which variable goes next.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Heuristic {
    /// The one whose clique is smallest.
    MinWeight,
    /// The one that connects the fewest strangers.
    MinFill,
    /// The one that connects the least weight of strangers.
    WeightedFill,
}

pub(crate) const HEURISTICS: [Heuristic; 3] =
    [Heuristic::MinFill, Heuristic::MinWeight, Heuristic::WeightedFill];

/// Which variables meet in a table, as bit sets, and the logarithm of their sizes.
#[derive(Clone)]
pub(crate) struct Graph {
    n: usize,
    words: usize,
    neighbors: Vec<u64>,
    log_sizes: Vec<f64>,
}

/// An elimination order and what its cliques cost.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    pub(crate) variables: Vec<usize>,
    /// Entries of all cliques together.
    pub(crate) clique_entries: f64,
}

impl Order {
    /// Moves the variable at one place to another.
    pub(crate) fn relocate(&mut self, from: usize, to: usize) {
        let variable = self.variables.remove(from);
        self.variables.insert(to, variable);
    }
}

impl Graph {
    pub(crate) fn new(network: &Network) -> Self {
        let n = network.variables.len();
        let words = n.div_ceil(64).max(1);
        let log_sizes = network.variables.iter().map(|v| (v.n_states as f64).log2()).collect();
        let mut graph = Self { n, words, neighbors: vec![0; n * words], log_sizes };
        for leaf in &network.leaves {
            for &a in &leaf.variables {
                for &b in &leaf.variables {
                    if a != b {
                        graph.connect(a, b);
                    }
                }
            }
        }
        graph
    }

    /// A greedy order, each score shaken by up to `noise`; `None` as soon as it costs more than `limit`. `work`
    /// counts what the search has done.
    pub(crate) fn eliminate(
        &self,
        heuristic: Heuristic,
        noise: f64,
        seed: u64,
        limit: f64,
        work: &mut f64,
    ) -> Option<Order> {
        let mut graph = self.clone();
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut left: Vec<usize> = (0..self.n).collect();
        let mut scores: Vec<f64> = left.iter().map(|&v| graph.score(heuristic, v, work)).collect();
        let mut order = Order { variables: Vec::with_capacity(self.n), clique_entries: 0.0 };
        let mut stale = vec![false; self.n];
        while !left.is_empty() {
            let mut best = (f64::INFINITY, 0);
            for (place, &v) in left.iter().enumerate() {
                if std::mem::take(&mut stale[v]) {
                    scores[v] = graph.score(heuristic, v, work);
                }
                let shaken = if noise > 0.0 {
                    (scores[v] + 1.0) * (1.0 + noise * rng.random::<f64>())
                } else {
                    scores[v]
                };
                if shaken < best.0 {
                    best = (shaken, place);
                }
            }
            *work += left.len() as f64;
            let v = left.swap_remove(best.1);
            order.variables.push(v);
            order.clique_entries += (graph.log_sizes[v] + graph.neighbor_weight(v)).exp2();
            if order.clique_entries > limit {
                return None;
            }
            graph.remove(v, &mut stale, work);
        }
        Some(order)
    }

    fn row(&self, v: usize) -> &[u64] {
        &self.neighbors[v * self.words..(v + 1) * self.words]
    }

    fn connect(&mut self, a: usize, b: usize) {
        self.neighbors[a * self.words + b / 64] |= 1 << (b % 64);
    }

    fn neighbors(&self, v: usize) -> impl Iterator<Item = usize> + '_ {
        bits(self.row(v))
    }

    fn neighbor_weight(&self, v: usize) -> f64 {
        self.neighbors(v).map(|u| self.log_sizes[u]).sum()
    }

    fn score(&self, heuristic: Heuristic, v: usize, work: &mut f64) -> f64 {
        match heuristic {
            Heuristic::MinWeight => {
                *work += self.words as f64;
                self.log_sizes[v] + self.neighbor_weight(v)
            }
            Heuristic::MinFill | Heuristic::WeightedFill => {
                let mut missing = 0.0;
                for u in self.neighbors(v) {
                    *work += self.words as f64;
                    let strangers = (0..self.words).map(|w| self.row(v)[w] & !self.row(u)[w]);
                    match heuristic {
                        Heuristic::MinFill => {
                            missing += strangers.map(u64::count_ones).sum::<u32>() as f64 - 1.0;
                        }
                        _ => {
                            let strangers: Vec<u64> = strangers.collect();
                            let weight: f64 = bits(&strangers).map(|s| self.log_sizes[s]).sum();
                            missing += self.log_sizes[u] * (weight - self.log_sizes[u]);
                        }
                    }
                }
                missing
            }
        }
    }

    /// Connects the neighbors of `v` with each other and takes it out; marks whose scores change.
    fn remove(&mut self, v: usize, stale: &mut [bool], work: &mut f64) {
        let clique = self.row(v).to_vec();
        let members: Vec<usize> = bits(&clique).collect();
        for &u in &members {
            for w in 0..self.words {
                self.neighbors[u * self.words + w] |= clique[w];
            }
            self.neighbors[u * self.words + u / 64] &= !(1 << (u % 64));
            self.neighbors[u * self.words + v / 64] &= !(1 << (v % 64));
            *work += self.words as f64;
        }
        for &u in &members {
            stale[u] = true;
            for second in bits(&self.neighbors[u * self.words..(u + 1) * self.words]) {
                stale[second] = true;
            }
        }
    }
}

/// The members of a bit set, ascending.
pub(super) fn bits(words: &[u64]) -> impl Iterator<Item = usize> + '_ {
    words.iter().enumerate().flat_map(|(index, &word)| {
        std::iter::successors((word != 0).then_some(word), |rest| {
            let rest = rest & (rest - 1);
            (rest != 0).then_some(rest)
        })
        .map(move |rest| index * 64 + rest.trailing_zeros() as usize)
    })
}
