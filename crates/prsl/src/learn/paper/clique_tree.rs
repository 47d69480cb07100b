//! A tree of cliques over the labels, on which inference is exact.
//!
//! Every scope lies within a clique, and the cliques that share a label are connected. The table of a clique has the labels
//! of its separator first and all others last. So a message to the parent sums over runs of neighboring entries.

use std::collections::BTreeSet;

use super::space::Space;
use crate::error::{Error, Result};

/// Cliques, children before their parents.
#[derive(Clone, Debug, Default)]
pub(super) struct CliqueTree {
    pub(super) cliques: Vec<Clique>,
    /// Number of entries of all cliques.
    pub(super) n_entries: usize,
    /// The largest number of children.
    pub(super) most_children: usize,
}

#[derive(Clone, Debug)]
pub(super) struct Clique {
    /// The separator first, then the own labels; the last is fastest.
    pub(super) labels: Vec<usize>,
    /// Number of labels in the separator.
    n_shared: usize,
    pub(super) parent: Option<usize>,
    pub(super) children: Vec<usize>,
    /// The first of its entries among those of all cliques.
    start: usize,
    /// Number of entries.
    pub(super) size: usize,
    /// Number of entries per entry of the separator.
    pub(super) run: usize,
    /// For each entry of the parent, the entry of this clique's separator.
    pub(super) of_parent: Vec<u32>,
}

/// Maximum number of entries of one clique. A sweep over 4 million entries takes about 0.2 s for eight rows.
const MAX_ENTRIES: f64 = (1u64 << 22) as f64;

impl CliqueTree {
    /// A tree for these scopes. The label with the smallest clique is eliminated first.
    pub(super) fn new(space: &Space, scopes: &[Vec<usize>]) -> Result<Self> {
        let (order, neighbors) = eliminate(space, scopes);
        let entries = |label: usize| space.n_entries(&neighbors[label]) * space.sizes[label] as f64;
        let largest = order.iter().map(|&label| entries(label)).fold(0.0, f64::max);
        if largest > MAX_ENTRIES {
            return Err(too_costly(
                format!("a table of {largest:.1e} entries"),
                format!("{MAX_ENTRIES:.1e} entries"),
            ));
        }
        Ok(Self::from_elimination(space, &order, &neighbors))
    }

    /// The cliques of an elimination. A label whose later neighbors are a whole clique joins this clique.
    fn from_elimination(space: &Space, order: &[usize], neighbors: &[Vec<usize>]) -> Self {
        let mut position = vec![0; space.n_labels()];
        order.iter().enumerate().for_each(|(at, &label)| position[label] = at);
        let mut clique_of = vec![0; space.n_labels()];
        // (labels, size of the separator, parent), parents before children.
        let mut found: Vec<(Vec<usize>, usize, Option<usize>)> = Vec::new();
        for &label in order.iter().rev() {
            let separator = &neighbors[label];
            let parent = separator.iter().min_by_key(|&&other| position[other]);
            let parent = parent.map(|&other| clique_of[other]);
            if let Some(parent) = parent
                && found[parent].0.len() == separator.len()
            {
                found[parent].0.push(label);
                clique_of[label] = parent;
                continue;
            }
            clique_of[label] = found.len();
            found.push((separator.iter().copied().chain([label]).collect(), separator.len(), parent));
        }
        let n = found.len();
        let mut tree = Self { cliques: Vec::with_capacity(n), n_entries: 0, most_children: 0 };
        let length = |labels: &[usize]| labels.iter().map(|&label| space.sizes[label]).product::<usize>();
        for (labels, n_shared, parent) in found.into_iter().rev() {
            let (size, run) = (length(&labels), length(&labels[n_shared..]));
            let start = tree.n_entries;
            tree.n_entries += size;
            let parent = parent.map(|parent| n - 1 - parent);
            let (children, of_parent) = (Vec::new(), Vec::new());
            tree.cliques.push(Clique { labels, n_shared, parent, children, start, size, run, of_parent });
        }
        tree.connect(space);
        tree
    }

    fn connect(&mut self, space: &Space) {
        for child in 0..self.cliques.len() {
            let Some(parent) = self.cliques[child].parent else { continue };
            self.cliques[parent].children.push(child);
            let shared = &self.cliques[child].labels[..self.cliques[child].n_shared];
            self.cliques[child].of_parent = space.projection(&self.cliques[parent].labels, shared);
        }
        self.most_children = self.cliques.iter().map(|clique| clique.children.len()).max().unwrap_or(0);
    }

    /// The smallest clique that contains all these labels.
    pub(super) fn clique_of(&self, labels: &[usize]) -> Option<usize> {
        let has_all =
            |clique: &&usize| labels.iter().all(|label| self.cliques[**clique].labels.contains(label));
        (0..self.cliques.len())
            .filter(|clique| has_all(&clique))
            .min_by_key(|&clique| self.cliques[clique].size)
    }
}

impl Clique {
    /// Its entries among those of all cliques.
    pub(super) fn entries(&self) -> std::ops::Range<usize> {
        self.start..self.start + self.size
    }

    /// The labels that are in no clique closer to the root.
    pub(super) fn own_labels(&self) -> &[usize] {
        &self.labels[self.n_shared..]
    }

    /// Number of entries of its separator.
    pub(super) fn n_separator(&self) -> usize {
        self.size / self.run
    }
}

/// The error for exact gradients that are not affordable.
pub(super) fn too_costly(needed: String, limit: String) -> Error {
    Error::TooCostly {
        what: "learning with exact gradients".to_owned(),
        needed,
        limit,
        advice: "learn fewer rules, allow fewer labels per rule, or use loopy gradients".to_owned(),
    }
}

/// An elimination order, and for each label its neighbors at its elimination, sorted.
fn eliminate(space: &Space, scopes: &[Vec<usize>]) -> (Vec<usize>, Vec<Vec<usize>>) {
    let mut neighbors: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); space.n_labels()];
    for scope in scopes {
        for &a in scope {
            neighbors[a].extend(scope.iter().filter(|&&b| b != a));
        }
    }
    let entries = |label: usize, neighbors: &BTreeSet<usize>| {
        neighbors.iter().map(|&other| space.sizes[other] as f64).product::<f64>() * space.sizes[label] as f64
    };
    // Labels without neighbors need no search.
    let (mut order, mut left): (Vec<usize>, Vec<usize>) =
        (0..space.n_labels()).partition(|&label| neighbors[label].is_empty());
    let mut costs: Vec<f64> =
        neighbors.iter().enumerate().map(|(label, neighbors)| entries(label, neighbors)).collect();
    while !left.is_empty() {
        let cheapest = (0..left.len()).min_by(|&a, &b| costs[left[a]].total_cmp(&costs[left[b]]));
        let label = left.remove(cheapest.expect("some are left"));
        order.push(label);
        let around: Vec<usize> = neighbors[label].iter().copied().collect();
        for &a in &around {
            neighbors[a].extend(around.iter().filter(|&&b| b != a));
            neighbors[a].remove(&label);
            costs[a] = entries(a, &neighbors[a]);
        }
    }
    (order, neighbors.into_iter().map(|set| set.into_iter().collect()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_lie_in_cliques_and_each_label_has_one_clique_of_its_own() {
        let space = Space::new(vec![2, 3, 2, 2, 4, 2]);
        let scopes = vec![vec![0, 1, 2], vec![2, 3], vec![1, 3], vec![4, 0]];
        let tree = CliqueTree::new(&space, &scopes).unwrap();
        assert!(scopes.iter().all(|scope| tree.clique_of(scope).is_some()));
        let mut own: Vec<usize> = tree.cliques.iter().flat_map(|c| c.own_labels().to_vec()).collect();
        own.sort_unstable();
        assert_eq!(own, [0, 1, 2, 3, 4, 5]);
        for (index, clique) in tree.cliques.iter().enumerate() {
            assert!(clique.parent.is_none_or(|parent| parent > index));
            let is_shared = |parent: usize| {
                clique.labels[..clique.n_shared].iter().all(|l| tree.cliques[parent].labels.contains(l))
            };
            assert!(clique.parent.is_none_or(is_shared));
        }
    }

    #[test]
    fn a_clique_that_is_too_large_is_refused() {
        let space = Space::new(vec![2; 30]);
        let error = CliqueTree::new(&space, &[(0..30).collect()]).unwrap_err();
        assert!(error.to_string().contains("use loopy gradients"), "{error}");
    }
}
