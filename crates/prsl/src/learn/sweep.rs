//! Sums over all assignments of a clique tree, for eight rows side by side.
//!
//! The potentials (products of rules, one table a clique) are the same for every row; what a row adds are its beliefs.
//! Up the tree come ln Z, down the tree the marginals and, for each entry of each clique, what its potential multiplies
//! in Z: the derivative that all rules of the clique share. Nothing is divided by a potential or a message, either may
//! be 0.

use std::ops::Range;

use super::clique_tree::{Clique, CliqueTree};
use super::factor::blocks;
use super::halves::{Halves, outer};

/// Rows side by side.
pub(crate) const LANES: usize = 8;
/// One number for each of them.
pub(crate) type Lane = [f64; LANES];

/// Room for the sweeps of eight rows.
pub(crate) struct Sweep {
    /// For every category, what the row says about it: the factor of the belief.
    pub(crate) beliefs: Vec<Lane>,
    /// For every category, after [`Sweep::down`]: its probability.
    pub(crate) marginals: Vec<Lane>,
    /// ln Z, −∞ for an impossible row.
    pub(crate) log_total: Lane,
    /// For each clique's separator entries: the message up, and the message down.
    up: Vec<Lane>,
    down: Vec<Lane>,
    /// Where a clique's separator starts in both.
    separators: Vec<usize>,
    /// Where a label's categories are among all.
    blocks: Vec<Range<usize>>,
    /// Per clique entry: the product of all but the potential and the message down.
    inside: Vec<Lane>,
    home: Vec<Lane>,
    scratch: Vec<Vec<Lane>>,
    /// Cliques with neither parent nor children.
    alone: Vec<Option<Halves>>,
}

impl Sweep {
    pub(crate) fn new(tree: &CliqueTree) -> Self {
        let mut separators = Vec::with_capacity(tree.cliques.len());
        let mut n_separators = 0;
        for clique in &tree.cliques {
            separators.push(n_separators);
            n_separators += clique.n_separator();
        }
        let n_categories = tree.sizes.iter().sum();
        let parents = tree.cliques.iter().filter(|clique| !clique.children.is_empty());
        let largest = parents.map(|clique| clique.size).max().unwrap_or(0);
        let halves = |clique: &Clique| {
            let sizes: Vec<usize> = clique.labels.iter().map(|&label| tree.sizes[label]).collect();
            (clique.parent.is_none() && clique.children.is_empty()).then(|| Halves::new(&sizes))
        };
        Self {
            beliefs: vec![[1.0; LANES]; n_categories],
            marginals: vec![[0.0; LANES]; n_categories],
            log_total: [0.0; LANES],
            up: vec![[0.0; LANES]; n_separators],
            down: vec![[0.0; LANES]; n_separators],
            separators,
            blocks: blocks(&tree.sizes).zip(&tree.sizes).map(|(block, size)| block..block + size).collect(),
            inside: vec![[0.0; LANES]; tree.n_entries],
            home: Vec::new(),
            scratch: vec![vec![[0.0; LANES]; largest]; tree.most_children.max(1) + 1],
            alone: tree.cliques.iter().map(halves).collect(),
        }
    }

    /// Sums up from the leaves: ln Z of every lane.
    pub(crate) fn up(&mut self, tree: &CliqueTree, potentials: &[f64]) {
        self.log_total = [0.0; LANES];
        for (index, clique) in tree.cliques.iter().enumerate() {
            let potentials = &potentials[clique.entries()];
            let beliefs = clique.homes().iter().map(|&label| &self.beliefs[self.blocks[label].clone()]);
            if let Some(halves) = &mut self.alone[index] {
                halves.up(beliefs, potentials);
                (0..LANES).for_each(|l| self.log_total[l] += halves.total[l].ln());
                continue;
            }
            outer(beliefs, &mut self.home);
            let inside = &mut self.inside[clique.entries()];
            for run in inside.chunks_exact_mut(clique.run) {
                run.copy_from_slice(&self.home);
            }
            for &child in &clique.children {
                let message = &self.up[self.separators[child]..];
                for (slot, &from) in inside.iter_mut().zip(&tree.cliques[child].of_parent) {
                    multiply(slot, &message[from as usize]);
                }
            }
            let message = &mut self.up[self.separators[index]..][..clique.n_separator()];
            let runs = inside.chunks_exact(clique.run).zip(potentials.chunks_exact(clique.run));
            for (slot, (inside, potential)) in message.iter_mut().zip(runs) {
                *slot = [0.0; LANES];
                inside.iter().zip(potential).for_each(|(x, &potential)| add_scaled(slot, x, potential));
            }
            let total = normalize(message);
            for l in 0..LANES {
                self.log_total[l] += total[l].ln();
            }
        }
    }

    /// The marginals of a label.
    pub(crate) fn marginals_of(&self, label: usize) -> &[Lane] {
        &self.marginals[self.blocks[label].clone()]
    }

    /// Sums down from the roots, after [`Sweep::up`]: marginals, and to `derivatives` (one per entry of every clique), where they are
    /// wanted, is added ∂ ln Z / ∂ potential, each row times its weight.
    pub(crate) fn down(
        &mut self,
        tree: &CliqueTree,
        potentials: &[f64],
        weights: &Lane,
        mut derivatives: Option<&mut [f64]>,
    ) {
        let reciprocal = |total: Lane| total.map(|total| if total > 0.0 { 1.0 / total } else { 0.0 });
        for (index, clique) in tree.cliques.iter().enumerate().rev() {
            let potentials = &potentials[clique.entries()];
            if let Some(halves) = &mut self.alone[index] {
                let share = reciprocal(halves.total);
                if let Some(derivatives) = &mut derivatives {
                    let weights = std::array::from_fn(|l| weights[l] * share[l]);
                    halves.add_derivatives(&weights, &mut derivatives[clique.entries()]);
                }
                let (slow, n_slow, fast) = halves.marginals(potentials);
                let blocks = |label: &usize| self.blocks[*label].clone();
                store(slow, &share, clique.labels[..n_slow].iter().map(blocks), &mut self.marginals);
                store(fast, &share, clique.labels[n_slow..].iter().map(blocks), &mut self.marginals);
                continue;
            }
            if clique.parent.is_none() {
                self.down[self.separators[index]] = [1.0; LANES];
            }
            let outside = &self.down[self.separators[index]..][..clique.n_separator()];
            let total =
                marginalize(&self.inside[clique.entries()], outside, potentials, clique.run, &mut self.home);
            let share = reciprocal(total);
            let factor: Lane = std::array::from_fn(|l| weights[l] * share[l]);
            let blocks = clique.homes().iter().map(|&label| self.blocks[label].clone());
            store(&self.home, &share, blocks, &mut self.marginals);
            if let Some(derivatives) = &mut derivatives {
                let inside = self.inside[clique.entries()].chunks_exact(clique.run);
                let slots = derivatives[clique.entries()].chunks_exact_mut(clique.run);
                for ((slots, inside), outside) in slots.zip(inside).zip(&self.down[self.separators[index]..])
                {
                    let scaled: Lane = std::array::from_fn(|l| outside[l] * factor[l]);
                    for (slot, inside) in slots.iter_mut().zip(inside) {
                        *slot += dot(inside, &scaled);
                    }
                }
            }
            if !clique.children.is_empty() {
                self.pass_down(tree, index, potentials);
            }
        }
    }

    /// The messages to a clique's children: everything but what came from the child.
    fn pass_down(&mut self, tree: &CliqueTree, index: usize, potentials: &[f64]) {
        let clique = &tree.cliques[index];
        let beliefs = clique.homes().iter().map(|&label| &self.beliefs[self.blocks[label].clone()]);
        outer(beliefs, &mut self.home);
        // products[c]: beliefs, potential, message down, and the messages of the children before c.
        let n_children = clique.children.len();
        let mut products = std::mem::take(&mut self.scratch);
        let outside = &self.down[self.separators[index]..];
        let runs =
            products[0][..clique.size].chunks_exact_mut(clique.run).zip(potentials.chunks_exact(clique.run));
        for ((slots, potentials), outside) in runs.zip(outside) {
            for ((slot, &potential), home) in slots.iter_mut().zip(potentials).zip(&self.home) {
                *slot = std::array::from_fn(|l| potential * home[l] * outside[l]);
            }
        }
        for (place, &child) in clique.children[..n_children - 1].iter().enumerate() {
            let (before, after) = products.split_at_mut(place + 1);
            let message = &self.up[self.separators[child]..];
            let from = &tree.cliques[child].of_parent;
            for ((slot, product), &from) in after[0].iter_mut().zip(&before[place]).zip(from) {
                let message = &message[from as usize];
                *slot = std::array::from_fn(|l| product[l] * message[l]);
            }
        }
        // From the last child back; `rest` holds the messages of the children behind.
        let mut rest = products.pop().expect("there is room for one more");
        rest[..clique.size].fill([1.0; LANES]);
        for (place, &child) in clique.children.iter().enumerate().rev() {
            let target = &tree.cliques[child];
            let message = &mut self.down[self.separators[child]..][..target.n_separator()];
            message.fill([0.0; LANES]);
            for ((product, rest), &to) in products[place].iter().zip(&rest).zip(&target.of_parent) {
                let slot = &mut message[to as usize];
                for l in 0..LANES {
                    slot[l] += product[l] * rest[l];
                }
            }
            normalize(message);
            if place > 0 {
                let message = &self.up[self.separators[child]..];
                for (slot, &from) in rest.iter_mut().zip(&target.of_parent) {
                    multiply(slot, &message[from as usize]);
                }
            }
        }
        products.push(rest);
        self.scratch = products;
    }
}

/// Takes sums by entry of a table, times each row's share, as the marginals of its labels: where these go, label by label.
fn store(sums: &[Lane], share: &Lane, blocks: impl Iterator<Item = Range<usize>>, marginals: &mut [Lane]) {
    let mut run = sums.len();
    for block in blocks {
        let slots = &mut marginals[block];
        slots.fill([0.0; LANES]);
        run /= slots.len();
        for runs in sums.chunks_exact(run * slots.len()) {
            for (slot, run) in slots.iter_mut().zip(runs.chunks_exact(run)) {
                run.iter().for_each(|sum| add_scaled(slot, sum, 1.0));
            }
        }
        slots.iter_mut().for_each(|slot| multiply(slot, share));
    }
}

/// Σ inside · outside · potential by home entry into `home`; their sum.
fn marginalize(
    inside: &[Lane],
    outside: &[Lane],
    potentials: &[f64],
    run: usize,
    home: &mut Vec<Lane>,
) -> Lane {
    home.clear();
    home.resize(run, [0.0; LANES]);
    let runs = inside.chunks_exact(run).zip(potentials.chunks_exact(run));
    for ((inside, potentials), outside) in runs.zip(outside) {
        for ((slot, inside), &potential) in home.iter_mut().zip(inside).zip(potentials) {
            for l in 0..LANES {
                slot[l] += inside[l] * outside[l] * potential;
            }
        }
    }
    let mut total = [0.0; LANES];
    home.iter().for_each(|sum| add_scaled(&mut total, sum, 1.0));
    total
}

#[inline(always)]
pub(crate) fn multiply(slot: &mut Lane, by: &Lane) {
    for l in 0..LANES {
        slot[l] *= by[l];
    }
}

#[inline(always)]
pub(crate) fn add_scaled(slot: &mut Lane, x: &Lane, factor: f64) {
    for l in 0..LANES {
        slot[l] += x[l] * factor;
    }
}

#[inline(always)]
pub(crate) fn dot(a: &Lane, b: &Lane) -> f64 {
    let products: Lane = std::array::from_fn(|l| a[l] * b[l]);
    ((products[0] + products[4]) + (products[2] + products[6]))
        + ((products[1] + products[5]) + (products[3] + products[7]))
}

/// Divides a message by its sum, which is returned; a sum of 0 leaves it as it is.
pub(crate) fn normalize(message: &mut [Lane]) -> Lane {
    let mut total = [0.0; LANES];
    message.iter().for_each(|x| add_scaled(&mut total, x, 1.0));
    let factor: Lane = std::array::from_fn(|l| if total[l] > 0.0 { 1.0 / total[l] } else { 1.0 });
    message.iter_mut().for_each(|x| multiply(x, &factor));
    total
}
