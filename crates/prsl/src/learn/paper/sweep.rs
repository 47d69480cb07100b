//! Sum-product on a clique tree, for eight rows side by side.
//!
//! The potentials are the same for all rows, and the beliefs differ. A sweep up the tree gives ln Z, and a sweep down gives
//! the marginals. Nothing is divided by a potential or a message, so either may be 0.

use std::ops::Range;

use super::clique_tree::{Clique, CliqueTree};
use super::lanes::{LANES, Lane, add_scaled, multiply, normalize, outer, reciprocal};
use super::space::Space;

/// The products of rules for each entry of every clique, with those of one clique replaced.
pub(super) struct Potentials<'a> {
    pub(super) all: &'a [f64],
    pub(super) replaced: Option<(usize, &'a [f64])>,
}

impl<'a> Potentials<'a> {
    fn of(&self, index: usize, clique: &Clique) -> &'a [f64] {
        match self.replaced {
            Some((replaced, potentials)) if replaced == index => potentials,
            _ => &self.all[clique.entries()],
        }
    }
}

/// Buffers for the sweeps of eight rows.
pub(super) struct Sweep {
    /// The beliefs about each category.
    pub(super) beliefs: Vec<Lane>,
    /// After [`Sweep::down`], the probability of each category.
    pub(super) marginals: Vec<Lane>,
    /// The messages up and down, for the separator entries of each clique.
    up: Vec<Lane>,
    down: Vec<Lane>,
    /// The first separator entry of each clique in both.
    separators: Vec<usize>,
    /// The categories of each label.
    blocks: Vec<Range<usize>>,
    /// For each clique entry, the product of the own beliefs and the children's messages.
    inside: Vec<Lane>,
    /// A table over the own labels of the current clique.
    own: Vec<Lane>,
    scratch: Vec<Vec<Lane>>,
}

impl Sweep {
    pub(super) fn new(space: &Space, tree: &CliqueTree) -> Self {
        let mut separators = Vec::with_capacity(tree.cliques.len());
        let mut n_separators = 0;
        for clique in &tree.cliques {
            separators.push(n_separators);
            n_separators += clique.n_separator();
        }
        let n_categories = space.n_categories();
        let parents = tree.cliques.iter().filter(|clique| !clique.children.is_empty());
        let largest = parents.map(|clique| clique.size).max().unwrap_or(0);
        Self {
            beliefs: vec![[1.0; LANES]; n_categories],
            marginals: vec![[0.0; LANES]; n_categories],
            up: vec![[0.0; LANES]; n_separators],
            down: vec![[0.0; LANES]; n_separators],
            separators,
            blocks: space.blocks.clone(),
            inside: vec![[0.0; LANES]; tree.n_entries],
            own: Vec::new(),
            scratch: vec![vec![[0.0; LANES]; largest]; tree.most_children.max(1) + 1],
        }
    }

    /// Sends messages from the leaves to the roots. Returns ln Z, −∞ for an impossible row.
    pub(super) fn up(&mut self, tree: &CliqueTree, potentials: &Potentials) -> Lane {
        let mut log_total = [0.0; LANES];
        for (index, clique) in tree.cliques.iter().enumerate() {
            self.fill_own(clique);
            let inside = &mut self.inside[clique.entries()];
            for run in inside.chunks_exact_mut(clique.run) {
                run.copy_from_slice(&self.own);
            }
            for &child in &clique.children {
                let message = &self.up[self.separators[child]..];
                for (slot, &from) in inside.iter_mut().zip(&tree.cliques[child].of_parent) {
                    multiply(slot, &message[from as usize]);
                }
            }
            let message = &mut self.up[self.separators[index]..][..clique.n_separator()];
            let runs = potentials.of(index, clique).chunks_exact(clique.run);
            for (slot, (inside, potential)) in
                message.iter_mut().zip(inside.chunks_exact(clique.run).zip(runs))
            {
                *slot = [0.0; LANES];
                inside.iter().zip(potential).for_each(|(x, &potential)| add_scaled(slot, x, potential));
            }
            let total = normalize(message);
            (0..LANES).for_each(|l| log_total[l] += total[l].ln());
        }
        log_total
    }

    /// After [`Sweep::up`], sends messages from the roots to the leaves, and computes the marginals.
    pub(super) fn down(&mut self, tree: &CliqueTree, potentials: &Potentials) {
        for (index, clique) in tree.cliques.iter().enumerate().rev() {
            let potentials = potentials.of(index, clique);
            if clique.parent.is_none() {
                self.down[self.separators[index]] = [1.0; LANES];
            }
            let outside = &self.down[self.separators[index]..][..clique.n_separator()];
            let inside = &self.inside[clique.entries()];
            let share = reciprocal(marginalize(inside, outside, potentials, clique.run, &mut self.own));
            self.store(clique, &share);
            if !clique.children.is_empty() {
                self.pass_down(tree, index, potentials);
            }
        }
    }

    /// The product of the beliefs about the own labels of a clique.
    fn fill_own(&mut self, clique: &Clique) {
        let beliefs = clique.own_labels().iter().map(|&label| &self.beliefs[self.blocks[label].clone()]);
        outer(beliefs, &mut self.own);
    }

    /// Stores the marginals of the own labels of a clique, from the sums over its own entries.
    fn store(&mut self, clique: &Clique, share: &Lane) {
        let mut run = self.own.len();
        for &label in clique.own_labels() {
            let slots = &mut self.marginals[self.blocks[label].clone()];
            slots.fill([0.0; LANES]);
            run /= slots.len();
            for runs in self.own.chunks_exact(run * slots.len()) {
                for (slot, run) in slots.iter_mut().zip(runs.chunks_exact(run)) {
                    run.iter().for_each(|sum| add_scaled(slot, sum, 1.0));
                }
            }
            slots.iter_mut().for_each(|slot| multiply(slot, share));
        }
    }

    /// Sends a clique's messages to its children: the product of all but what came from the child.
    fn pass_down(&mut self, tree: &CliqueTree, index: usize, potentials: &[f64]) {
        let clique = &tree.cliques[index];
        self.fill_own(clique);
        // products[c]: beliefs, potential, message down, and the messages of the children before c.
        let n_children = clique.children.len();
        let mut products = std::mem::take(&mut self.scratch);
        let outside = &self.down[self.separators[index]..];
        let runs =
            products[0][..clique.size].chunks_exact_mut(clique.run).zip(potentials.chunks_exact(clique.run));
        for ((slots, potentials), outside) in runs.zip(outside) {
            for ((slot, &potential), own) in slots.iter_mut().zip(potentials).zip(&self.own) {
                *slot = std::array::from_fn(|l| potential * own[l] * outside[l]);
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
        // From the last child back. `rest` is the product of the messages of the children behind.
        let mut rest = products.pop().expect("one buffer more than children");
        rest[..clique.size].fill([1.0; LANES]);
        for (place, &child) in clique.children.iter().enumerate().rev() {
            let target = &tree.cliques[child];
            let message = &mut self.down[self.separators[child]..][..target.n_separator()];
            message.fill([0.0; LANES]);
            for ((product, rest), &to) in products[place].iter().zip(&rest).zip(&target.of_parent) {
                let slot = &mut message[to as usize];
                (0..LANES).for_each(|l| slot[l] += product[l] * rest[l]);
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

/// Fills `own` with Σ inside · outside · potential for each own entry, and returns the total.
fn marginalize(
    inside: &[Lane],
    outside: &[Lane],
    potentials: &[f64],
    run: usize,
    own: &mut Vec<Lane>,
) -> Lane {
    own.clear();
    own.resize(run, [0.0; LANES]);
    let runs = inside.chunks_exact(run).zip(potentials.chunks_exact(run));
    for ((inside, potentials), outside) in runs.zip(outside) {
        for ((slot, inside), &potential) in own.iter_mut().zip(inside).zip(potentials) {
            for l in 0..LANES {
                slot[l] += inside[l] * outside[l] * potential;
            }
        }
    }
    let mut total = [0.0; LANES];
    own.iter().for_each(|sum| add_scaled(&mut total, sum, 1.0));
    total
}
