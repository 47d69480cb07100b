//! Elimination orders by randomized greedy heuristics, and a lower bound on the treewidth.

mod queue;

use super::network::Network;
use queue::{Buckets, Queue, common, contains, cost_of_common, insert, remove};

/// The variable that is eliminated next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heuristic {
    /// The one with the smallest clique.
    MinWeight,
    /// The one that connects the fewest pairs of variables.
    MinFill,
    /// The one that connects pairs of the smallest total weight.
    WeightedFill,
}

pub(crate) const HEURISTICS: [Heuristic; 3] =
    [Heuristic::MinFill, Heuristic::MinWeight, Heuristic::WeightedFill];

/// The interaction graph: variables are neighbors if they occur in the same table. Lists of neighbors are sorted.
#[derive(Clone)]
pub(crate) struct Graph {
    neighbors: Vec<Vec<u32>>,
    /// log₂ of the number of states in units of 1/1024, rounded down. Whole numbers keep incremental sums exact.
    sizes: Vec<i64>,
}

/// One bit in the units of [`Graph::sizes`].
const BIT: f64 = 1024.0;

/// An elimination order and the size of its cliques.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    pub(crate) variables: Vec<usize>,
    /// Number of entries of all cliques together.
    pub(crate) clique_entries: f64,
}

impl Order {
    /// Moves the variable at one position to another.
    pub(crate) fn relocate(&mut self, from: usize, to: usize) {
        match from < to {
            true => self.variables[from..=to].rotate_left(1),
            false => self.variables[to..=from].rotate_right(1),
        }
    }
}

impl Graph {
    pub(crate) fn new(network: &Network) -> Self {
        let sizes: Vec<i64> =
            network.variables.iter().map(|v| ((v.n_states as f64).log2() * BIT) as i64).collect();
        Self::of_cliques(sizes, network.leaves.iter().map(|leaf| leaf.variables.as_slice()))
    }

    /// The graph in which the variables of each clique are connected with each other.
    pub(crate) fn of_cliques<'a>(sizes: Vec<i64>, cliques: impl Iterator<Item = &'a [usize]>) -> Self {
        let mut neighbors: Vec<Vec<u32>> = vec![Vec::new(); sizes.len()];
        for clique in cliques {
            for &a in clique {
                neighbors[a].extend(clique.iter().filter(|&&b| b != a).map(|&b| b as u32));
            }
        }
        for list in &mut neighbors {
            list.sort_unstable();
            list.dedup();
        }
        Self { neighbors, sizes }
    }

    /// Returns a greedy order; `None` if its cliques together have more than `limit` entries.
    ///
    /// The running time is added to `work`, in units of about a nanosecond.
    pub(crate) fn eliminate(
        &self,
        heuristic: Heuristic,
        noise: f64,
        seed: u64,
        limit: f64,
        work: &mut f64,
    ) -> Option<Order> {
        let mut elimination = Elimination::new(self, heuristic);
        let mut queue = Queue::new(&elimination.scores, noise, seed);
        let mut order = Order { variables: Vec::with_capacity(self.sizes.len()), clique_entries: 0.0 };
        while let Some(v) = queue.pop() {
            order.variables.push(v);
            order.clique_entries += (elimination.clique_size(v) as f64 / BIT).exp2();
            if order.clique_entries > limit {
                *work += elimination.work + queue.work;
                return None;
            }
            elimination.remove(v);
            for u in elimination.touched.drain(..) {
                elimination.is_touched[u as usize] = false;
                queue.update(u as usize, elimination.scores[u as usize]);
            }
        }
        *work += elimination.work + queue.work;
        Some(order)
    }

    /// Returns a lower bound on the treewidth: the largest minimum degree of the minors that it visits.
    ///
    /// Minor-min-width contracts a variable of smallest degree with the neighbor that shares the fewest neighbors with
    /// it (Gogate and Dechter 2004). Every minor gives a valid bound. So the contraction stops once the bound reaches
    /// `enough`, or its work exceeds `budget`.
    pub(crate) fn treewidth_at_least(&self, enough: usize, budget: f64) -> usize {
        let mut neighbors = self.neighbors.clone();
        let mut buckets = Buckets::new(neighbors.iter().map(Vec::len));
        let (mut bound, mut work) = (0, 0.0);
        while let Some((v, degree)) = buckets.pop_smallest() {
            bound = bound.max(degree);
            if bound >= enough || work > budget {
                break;
            }
            let own = std::mem::take(&mut neighbors[v]);
            let n_common = |&u: &u32| common(&own, &neighbors[u as usize]).count();
            let Some(&host) = own.iter().min_by_key(|u| (n_common(u), **u)) else { continue };
            work += own.iter().map(|&u| cost_of_common(&own, &neighbors[u as usize])).sum::<f64>();
            for &u in &own {
                work += 20.0 + neighbors[u as usize].len() as f64 / 4.0;
                remove(&mut neighbors[u as usize], v as u32);
                if u != host {
                    insert(&mut neighbors[u as usize], host);
                    insert(&mut neighbors[host as usize], u);
                }
            }
            for &u in &own {
                buckets.set(u as usize, neighbors[u as usize].len());
            }
        }
        bound
    }
}

/// A graph from which variables are eliminated, and the scores of the remaining ones.
///
/// # Derivation
///
/// The fill of v is Σ wₐ w_b over the pairs of its neighbors that are not connected. A change affects only scores
/// nearby. With S(a) = Σ w over the neighbors of a, and C the common neighbors of a and b, connecting a and b means
///
/// ```text
/// fill(c) −= wₐ w_b for c in C        fill(a) += w_b (S(a) − Σ_C w)        S(a) += w_b        (1)
/// ```
///
/// and likewise for b. Once all neighbors of v are connected, removing v takes from each neighbor u the pairs of v with
/// neighbors of u that are not neighbors of v:
///
/// ```text
/// fill(u) −= w_v (S(u) − w_v − (S(v) − w_u))        S(u) −= w_v                              (2)
/// ```
///
/// Checked in `scores_are_kept_up_to_date`.
struct Elimination<'a> {
    sizes: &'a [i64],
    heuristic: Heuristic,
    /// Sorted lists. Eliminated variables are removed when they are more than half of a list.
    neighbors: Vec<Vec<u32>>,
    degrees: Vec<usize>,
    is_left: Vec<bool>,
    /// S, with the sizes as weights.
    neighbor_sizes: Vec<i64>,
    /// Fill, or the size of the clique.
    scores: Vec<i64>,
    /// The variables whose scores have changed.
    touched: Vec<u32>,
    is_touched: Vec<bool>,
    work: f64,
}

impl<'a> Elimination<'a> {
    fn new(graph: &'a Graph, heuristic: Heuristic) -> Self {
        let n = graph.sizes.len();
        let sum = |list: &Vec<u32>| list.iter().map(|&u| graph.sizes[u as usize]).sum();
        let mut elimination = Self {
            sizes: &graph.sizes,
            heuristic,
            neighbors: graph.neighbors.clone(),
            degrees: graph.neighbors.iter().map(Vec::len).collect(),
            is_left: vec![true; n],
            neighbor_sizes: graph.neighbors.iter().map(sum).collect(),
            scores: vec![0; n],
            touched: Vec::new(),
            is_touched: vec![false; n],
            work: 100.0 * n as f64,
        };
        elimination.score_all();
        elimination
    }

    /// The weight of a variable in a fill.
    fn weight(&self, v: usize) -> i64 {
        if self.heuristic == Heuristic::WeightedFill { self.sizes[v] } else { 1 }
    }

    /// S(v) with the weights of the fill.
    fn neighbor_weight(&self, v: usize) -> i64 {
        match self.heuristic {
            Heuristic::WeightedFill => self.neighbor_sizes[v],
            _ => self.degrees[v] as i64,
        }
    }

    fn clique_size(&self, v: usize) -> i64 {
        self.sizes[v] + self.neighbor_sizes[v]
    }

    fn score_all(&mut self) {
        for v in 0..self.scores.len() {
            self.scores[v] = match self.heuristic {
                Heuristic::MinWeight => self.clique_size(v),
                _ => {
                    let sum = self.neighbor_weight(v);
                    let square = |&u: &u32| self.weight(u as usize).pow(2);
                    (sum * sum - self.neighbors[v].iter().map(square).sum::<i64>()) / 2
                }
            };
        }
        if self.heuristic == Heuristic::MinWeight {
            return;
        }
        for a in 0..self.scores.len() {
            for &b in self.neighbors[a].iter().filter(|&&b| a < b as usize) {
                let (list, other) = (&self.neighbors[a], &self.neighbors[b as usize]);
                self.work += cost_of_common(list, other);
                let pair = self.weight(a) * self.weight(b as usize);
                for c in common(list, other) {
                    self.scores[c as usize] -= pair;
                }
            }
        }
    }

    /// Eliminates `v`: connects its neighbors with each other and removes it.
    fn remove(&mut self, v: usize) {
        let mut members = std::mem::take(&mut self.neighbors[v]);
        members.retain(|&u| self.is_left[u as usize]);
        let is_clique = self.heuristic != Heuristic::MinWeight && self.scores[v] == 0;
        if !is_clique {
            for (index, &a) in members.iter().enumerate() {
                self.work += 5.0 * (members.len() - index) as f64;
                for &b in &members[index + 1..] {
                    if !contains(&self.neighbors[a as usize], b) {
                        self.connect(a as usize, b as usize);
                    }
                }
            }
        }
        for &u in &members {
            self.forget(v, u as usize);
        }
        self.work += 20.0 * members.len() as f64;
        self.is_left[v] = false;
    }

    /// Equation (1).
    fn connect(&mut self, a: usize, b: usize) {
        if self.heuristic != Heuristic::MinWeight {
            let (list, other) = (&self.neighbors[a], &self.neighbors[b]);
            self.work += cost_of_common(list, other);
            let shared: Vec<u32> = common(list, other).filter(|&c| self.is_left[c as usize]).collect();
            let shared_weight: i64 = shared.iter().map(|&c| self.weight(c as usize)).sum();
            let pair = self.weight(a) * self.weight(b);
            for c in shared {
                self.scores[c as usize] -= pair;
                self.touch(c as usize);
            }
            self.scores[a] += self.weight(b) * (self.neighbor_weight(a) - shared_weight);
            self.scores[b] += self.weight(a) * (self.neighbor_weight(b) - shared_weight);
        }
        for (u, other) in [(a, b), (b, a)] {
            insert(&mut self.neighbors[u], other as u32);
            self.work += self.neighbors[u].len() as f64 / 8.0;
            self.neighbor_sizes[u] += self.sizes[other];
            self.degrees[u] += 1;
        }
    }

    /// Equation (2).
    fn forget(&mut self, v: usize, u: usize) {
        if self.heuristic != Heuristic::MinWeight {
            let strangers =
                self.neighbor_weight(u) - self.weight(v) - (self.neighbor_weight(v) - self.weight(u));
            self.scores[u] -= self.weight(v) * strangers;
        }
        self.neighbor_sizes[u] -= self.sizes[v];
        self.degrees[u] -= 1;
        if self.heuristic == Heuristic::MinWeight {
            self.scores[u] = self.clique_size(u);
        }
        self.touch(u);
        if self.neighbors[u].len() > 2 * self.degrees[u] + 8 {
            self.work += self.neighbors[u].len() as f64;
            let is_left = &self.is_left;
            self.neighbors[u].retain(|&other| other as usize != v && is_left[other as usize]);
        }
    }

    fn touch(&mut self, v: usize) {
        if !std::mem::replace(&mut self.is_touched[v], true) {
            self.touched.push(v as u32);
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    fn random_graph(seed: u64) -> Graph {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let n = rng.random_range(1..14);
        let sizes = (0..n).map(|_| ((rng.random_range(2..6) as f64).log2() * BIT) as i64).collect();
        let n_cliques = rng.random_range(0..12);
        let cliques: Vec<Vec<usize>> = (0..n_cliques)
            .map(|_| (0..rng.random_range(1..4)).map(|_| rng.random_range(0..n)).collect())
            .collect();
        Graph::of_cliques(sizes, cliques.iter().map(Vec::as_slice))
    }

    /// The fill of a variable by its definition.
    fn fill(elimination: &Elimination<'_>, v: usize) -> i64 {
        let left: Vec<u32> =
            elimination.neighbors[v].iter().copied().filter(|&u| elimination.is_left[u as usize]).collect();
        let mut sum = 0;
        for (index, &a) in left.iter().enumerate() {
            for &b in &left[index + 1..] {
                if !contains(&elimination.neighbors[a as usize], b) {
                    sum += elimination.weight(a as usize) * elimination.weight(b as usize);
                }
            }
        }
        sum
    }

    #[test]
    fn scores_are_kept_up_to_date() {
        for seed in 0..300 {
            let graph = random_graph(seed);
            for heuristic in HEURISTICS {
                let mut elimination = Elimination::new(&graph, heuristic);
                for v in 0..graph.sizes.len() {
                    elimination.remove(v);
                    for u in v + 1..graph.sizes.len() {
                        let expected = match heuristic {
                            Heuristic::MinWeight => elimination.clique_size(u),
                            _ => fill(&elimination, u),
                        };
                        assert_eq!(
                            elimination.scores[u], expected,
                            "seed {seed}, {heuristic:?}, {u} after {v}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn every_variable_is_eliminated_once() {
        for seed in 0..100 {
            let graph = random_graph(seed);
            for (heuristic, noise) in HEURISTICS.into_iter().zip([0.0, 0.3, 1.0]) {
                let order = graph.eliminate(heuristic, noise, seed, f64::INFINITY, &mut 0.0);
                let mut variables = order.expect("nothing is above infinity").variables;
                variables.sort_unstable();
                assert_eq!(variables, (0..graph.sizes.len()).collect::<Vec<_>>());
            }
        }
    }

    /// The treewidth, by dynamic programming over sets of eliminated variables.
    fn treewidth(graph: &Graph) -> usize {
        let n = graph.sizes.len();
        let mut best = vec![usize::MAX; 1 << n];
        best[0] = 0;
        for eliminated in 0..1usize << n {
            for v in (0..n).filter(|v| eliminated >> v & 1 == 0) {
                // The neighbors of v are those that it reaches through eliminated variables.
                let (mut seen, mut stack, mut degree) = (vec![false; n], vec![v], 0);
                seen[v] = true;
                while let Some(u) = stack.pop() {
                    for &w in &graph.neighbors[u] {
                        let w = w as usize;
                        if !std::mem::replace(&mut seen[w], true) {
                            match eliminated >> w & 1 {
                                1 => stack.push(w),
                                _ => degree += 1,
                            }
                        }
                    }
                }
                let after = eliminated | 1 << v;
                best[after] = best[after].min(best[eliminated].max(degree));
            }
        }
        best[(1 << n) - 1]
    }

    #[test]
    fn the_lower_bound_is_never_above_the_treewidth() {
        let mut tight = 0;
        for seed in 0..100 {
            let graph = random_graph(seed);
            let (bound, treewidth) = (graph.treewidth_at_least(usize::MAX, f64::INFINITY), treewidth(&graph));
            assert!(bound <= treewidth, "seed {seed}: {bound} is above {treewidth}");
            tight += usize::from(bound == treewidth);
        }
        assert!(tight > 80, "the bound is the treewidth of only {tight} of 100 graphs");
    }

    #[test]
    fn chains_and_stars_are_ordered_in_near_linear_work() {
        for (name, cliques) in [
            ("chain", (1..50_000).map(|v| vec![v - 1, v]).collect::<Vec<_>>()),
            ("star", (1..50_000).map(|v| vec![0, v]).collect()),
        ] {
            let graph = Graph::of_cliques(vec![BIT as i64; 50_000], cliques.iter().map(Vec::as_slice));
            for heuristic in HEURISTICS {
                let mut work = 0.0;
                let order = graph.eliminate(heuristic, 0.0, 0, f64::INFINITY, &mut work).expect("no limit");
                assert!(order.clique_entries < 4.0 * 50_000.0, "{name}: {} entries", order.clique_entries);
                assert!(work < 1000.0 * 50_000.0, "{name}, {heuristic:?}: {work:e}");
            }
        }
    }
}
