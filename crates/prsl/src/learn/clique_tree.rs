//! A tree of cliques over the labels: the shape on which everything about a batch of rows is exact.
//!
//! Every scope lies within a clique, and the cliques that share a label are connected. A table over a clique has its
//! separator first and the labels that are at home in it last, so that a message to the parent sums over runs of
//! neighboring entries.

use super::table::projection;
use crate::error::{Error, Result};

/// Cliques, children before their parents.
#[derive(Clone, Debug)]
pub(crate) struct CliqueTree {
    pub(crate) cliques: Vec<Clique>,
    /// For each label the number of its categories.
    pub(crate) sizes: Vec<usize>,
    /// Entries of all cliques together.
    pub(crate) n_entries: usize,
    /// The largest number of children.
    pub(crate) most_children: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct Clique {
    /// Separator first, then the labels that are at home here; the last is fastest.
    pub(crate) labels: Vec<usize>,
    /// How many of the labels are shared with the parent.
    pub(crate) n_shared: usize,
    pub(crate) parent: Option<usize>,
    pub(crate) children: Vec<usize>,
    /// Where its entries start among those of all cliques.
    pub(crate) start: usize,
    /// Entries, and how many of them in a row belong to one entry of the separator.
    pub(crate) size: usize,
    pub(crate) run: usize,
    /// For each entry of the parent, the entry of this clique's separator.
    pub(crate) of_parent: Vec<u32>,
}

/// The most entries that one clique may have.
const MAX_ENTRIES: f64 = (1u64 << 22) as f64;

impl CliqueTree {
    /// A tree for these scopes, by eliminating the label first whose clique is smallest.
    pub(crate) fn new(sizes: &[usize], scopes: &[Vec<usize>]) -> Result<Self> {
        let (order, neighbors) = eliminate(sizes, scopes);
        let entries =
            |v: usize| neighbors[v].iter().map(|&u| sizes[u] as f64).product::<f64>() * sizes[v] as f64;
        let largest = order.iter().map(|&v| entries(v)).fold(0.0, f64::max);
        if largest > MAX_ENTRIES {
            return Err(Error::TooCostly {
                what: "exact learning".to_owned(),
                needed: format!("a table of {largest:.1e} entries"),
                limit: format!("{MAX_ENTRIES:.1e} entries"),
                advice:
                    "give rules that tie many labels together fewer labels, or learn fewer or smaller rules"
                        .to_owned(),
            });
        }
        Ok(Self::from_elimination(sizes, &order, &neighbors))
    }

    /// The cliques of an elimination; a label whose later neighbors are a whole clique joins it.
    fn from_elimination(sizes: &[usize], order: &[usize], neighbors: &[Vec<usize>]) -> Self {
        let mut position = vec![0; sizes.len()];
        order.iter().enumerate().for_each(|(at, &label)| position[label] = at);
        let mut home = vec![0; sizes.len()];
        // (labels, how many are shared, parent), parents before children.
        let mut found: Vec<(Vec<usize>, usize, Option<usize>)> = Vec::new();
        for &label in order.iter().rev() {
            let separator = &neighbors[label];
            let parent = separator.iter().min_by_key(|&&other| position[other]).map(|&other| home[other]);
            if let Some(parent) = parent
                && found[parent].0.len() == separator.len()
            {
                found[parent].0.push(label);
                home[label] = parent;
                continue;
            }
            home[label] = found.len();
            found.push((separator.iter().copied().chain([label]).collect(), separator.len(), parent));
        }
        let n = found.len();
        let mut tree =
            Self { cliques: Vec::with_capacity(n), sizes: sizes.to_vec(), n_entries: 0, most_children: 0 };
        for (labels, n_shared, parent) in found.into_iter().rev() {
            let size = labels.iter().map(|&label| sizes[label]).product();
            let run = labels[n_shared..].iter().map(|&label| sizes[label]).product();
            let start = tree.n_entries;
            tree.n_entries += size;
            tree.cliques.push(Clique {
                labels,
                n_shared,
                parent: parent.map(|parent| n - 1 - parent),
                children: Vec::new(),
                start,
                size,
                run,
                of_parent: Vec::new(),
            });
        }
        tree.connect();
        tree
    }

    fn connect(&mut self) {
        for child in 0..self.cliques.len() {
            let Some(parent) = self.cliques[child].parent else { continue };
            self.cliques[parent].children.push(child);
            let shared = self.cliques[child].labels[..self.cliques[child].n_shared].to_vec();
            self.cliques[child].of_parent = projection(&self.sizes, &self.cliques[parent].labels, &shared);
        }
        self.most_children = self.cliques.iter().map(|clique| clique.children.len()).max().unwrap_or(0);
    }

    /// The smallest clique that has all these labels.
    pub(crate) fn clique_of(&self, labels: &[usize]) -> Option<usize> {
        let has_all =
            |clique: &&usize| labels.iter().all(|label| self.cliques[**clique].labels.contains(label));
        (0..self.cliques.len())
            .filter(|clique| has_all(&clique))
            .min_by_key(|&clique| self.cliques[clique].size)
    }

    /// Labels that share a clique, in the order in which it has them: tables over all of its labels need not be rearranged.
    pub(crate) fn in_order(&self, labels: &[usize]) -> Vec<usize> {
        let clique = self.clique_of(labels).expect("they share a clique");
        self.cliques[clique].labels.iter().copied().filter(|label| labels.contains(label)).collect()
    }

    /// The entry of a clique, among those of all cliques, where labels have the categories of an assignment.
    pub(crate) fn entry(&self, clique: usize, assignment: impl Fn(usize) -> usize) -> usize {
        let clique = &self.cliques[clique];
        let within =
            clique.labels.iter().fold(0, |entry, &label| entry * self.sizes[label] + assignment(label));
        clique.start + within
    }
}

impl Clique {
    /// Its entries among those of all cliques.
    pub(crate) fn entries(&self) -> std::ops::Range<usize> {
        self.start..self.start + self.size
    }

    /// The labels that are in no clique closer to the root.
    pub(crate) fn homes(&self) -> &[usize] {
        &self.labels[self.n_shared..]
    }

    /// Entries of its separator.
    pub(crate) fn n_separator(&self) -> usize {
        self.size / self.run
    }
}

/// An order of elimination, and for each label its neighbors when it is eliminated, sorted.
fn eliminate(sizes: &[usize], scopes: &[Vec<usize>]) -> (Vec<usize>, Vec<Vec<usize>>) {
    let n = sizes.len();
    let mut neighbors: Vec<std::collections::BTreeSet<usize>> = vec![Default::default(); n];
    for scope in scopes {
        for &a in scope {
            neighbors[a].extend(scope.iter().filter(|&&b| b != a));
        }
    }
    let mut left: Vec<usize> = (0..n).collect();
    let mut order = Vec::with_capacity(n);
    while !left.is_empty() {
        let entries =
            |v: usize| neighbors[v].iter().map(|&u| sizes[u] as f64).product::<f64>() * sizes[v] as f64;
        let (at, &label) = left
            .iter()
            .enumerate()
            .min_by(|a, b| entries(*a.1).total_cmp(&entries(*b.1)))
            .expect("some are left");
        left.swap_remove(at);
        left.sort_unstable();
        order.push(label);
        let around: Vec<usize> = neighbors[label].iter().copied().collect();
        for &a in &around {
            neighbors[a].extend(around.iter().filter(|&&b| b != a));
            neighbors[a].remove(&label);
        }
    }
    (order, neighbors.into_iter().map(|set| set.into_iter().collect()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_lie_in_cliques_and_labels_are_at_home_once() {
        let sizes = [2, 3, 2, 2, 4, 2];
        let scopes = vec![vec![0, 1, 2], vec![2, 3], vec![1, 3], vec![4, 0]];
        let tree = CliqueTree::new(&sizes, &scopes).unwrap();
        assert!(scopes.iter().all(|scope| tree.clique_of(scope).is_some()));
        let mut homes: Vec<usize> = tree.cliques.iter().flat_map(|clique| clique.homes().to_vec()).collect();
        homes.sort_unstable();
        assert_eq!(homes, [0, 1, 2, 3, 4, 5]);
        for (index, clique) in tree.cliques.iter().enumerate() {
            assert!(clique.parent.is_none_or(|parent| parent > index));
            let shared = &clique.labels[..clique.n_shared];
            assert!(
                clique
                    .parent
                    .is_none_or(|parent| shared.iter().all(|l| tree.cliques[parent].labels.contains(l)))
            );
        }
    }
}
