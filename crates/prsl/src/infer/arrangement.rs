//! How the labels of a symmetric rule are counted.
//!
//! A rule such as `at_most 2 of {40 labels}` counts its labels one by one, in any order. If another rule connects two labels,
//! inference keeps track of one of them until the other is counted. So labels that other rules connect should be counted
//! together: along the elimination tree of those rules, in which each label follows the labels that only it separates from
//! the rest.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

/// Rules of more labels do not decide the tree: they are counted themselves, or have an auxiliary variable.
const MAX_SCOPE: usize = 12;
/// Maximum number of pairs of labels that are connected while labels are eliminated: less than a second.
const MAX_PAIRS: usize = 1 << 20;

/// The elimination tree of some rules.
#[derive(Debug)]
pub(super) struct Arrangement {
    /// All labels, with each label behind its children.
    pub(super) order: Vec<usize>,
    /// For each label, the label that follows it in the tree; `None` for a root.
    pub(super) parents: Vec<Option<usize>>,
}

impl Arrangement {
    /// The tree of rules with these scopes; `None` if no two labels are connected, or if too many are.
    pub(super) fn new<'a>(n_labels: usize, scopes: impl Iterator<Item = &'a [usize]>) -> Option<Self> {
        let mut neighbors = vec![BTreeSet::new(); n_labels];
        let mut n_pairs = 0;
        for scope in scopes.filter(|scope| scope.len() <= MAX_SCOPE) {
            n_pairs += connect(&mut neighbors, scope);
        }
        if n_pairs == 0 {
            return None;
        }
        let parents = elimination_tree(neighbors, n_pairs)?;
        Some(Self { order: walk(&parents), parents })
    }
}

/// Connects all labels of a set. Returns the number of pairs.
fn connect(neighbors: &mut [BTreeSet<usize>], labels: &[usize]) -> usize {
    for &a in labels {
        neighbors[a].extend(labels.iter().filter(|&&b| a != b));
    }
    labels.len() * labels.len().saturating_sub(1) / 2
}

/// Eliminates the labels by least degree. The parent of a label is its neighbor that is eliminated next.
fn elimination_tree(mut neighbors: Vec<BTreeSet<usize>>, mut n_pairs: usize) -> Option<Vec<Option<usize>>> {
    let n = neighbors.len();
    let mut position = vec![usize::MAX; n];
    let mut heap: BinaryHeap<Reverse<(usize, usize)>> =
        (0..n).map(|label| Reverse((neighbors[label].len(), label))).collect();
    let mut order = Vec::new();
    while let Some(Reverse((degree, label))) = heap.pop() {
        if position[label] != usize::MAX || degree != neighbors[label].len() {
            continue;
        }
        position[label] = order.len();
        order.push(label);
        let around: Vec<usize> = neighbors[label].iter().copied().collect();
        n_pairs += connect(&mut neighbors, &around);
        if n_pairs > MAX_PAIRS {
            return None;
        }
        for other in around {
            neighbors[other].remove(&label);
            heap.push(Reverse((neighbors[other].len(), other)));
        }
    }
    // What is left in `neighbors[label]` was eliminated after the label.
    let parent = |label: usize| neighbors[label].iter().copied().min_by_key(|&other| position[other]);
    Some((0..n).map(parent).collect())
}

/// The labels in a walk that visits subtrees before their roots, the largest subtree first.
fn walk(parents: &[Option<usize>]) -> Vec<usize> {
    let n = parents.len();
    let mut children = vec![Vec::new(); n];
    let mut roots = Vec::new();
    for (label, parent) in parents.iter().enumerate() {
        match parent {
            Some(parent) => children[*parent].push(label),
            None => roots.push(label),
        }
    }
    // Parents before their children.
    let mut order = roots.clone();
    let mut next = 0;
    while next < order.len() {
        order.extend(&children[order[next]]);
        next += 1;
    }
    let mut sizes = vec![1; n];
    for &label in order.iter().rev() {
        if let Some(parent) = parents[label] {
            sizes[parent] += sizes[label];
        }
    }
    // The reverse of a walk that visits roots first, and their smallest subtrees next.
    let mut stack = roots;
    let mut reversed = Vec::new();
    while let Some(label) = stack.pop() {
        reversed.push(label);
        children[label].sort_by_key(|&child| (Reverse(sizes[child]), child));
        stack.extend(&children[label]);
    }
    reversed.reverse();
    reversed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn positions(n_labels: usize, scopes: &[Vec<usize>]) -> Vec<usize> {
        let order = Arrangement::new(n_labels, scopes.iter().map(Vec::as_slice)).unwrap().order;
        (0..n_labels).map(|label| order.iter().position(|&other| other == label).unwrap()).collect()
    }

    /// The largest number of rules that cross a gap between neighbors.
    fn width(position: &[usize], scopes: &[Vec<usize>]) -> usize {
        let crosses = |gap: usize, scope: &Vec<usize>| {
            let places = || scope.iter().map(|&label| position[label]);
            places().min() <= Some(gap) && places().max() > Some(gap)
        };
        (0..position.len())
            .map(|gap| scopes.iter().filter(|scope| crosses(gap, scope)).count())
            .max()
            .unwrap()
    }

    #[test]
    fn every_label_has_a_position() {
        let scopes = [vec![0, 6], vec![2, 4, 6], vec![1, 5]];
        let found = Arrangement::new(7, scopes.iter().map(Vec::as_slice)).unwrap();
        let mut sorted = found.order.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, [0, 1, 2, 3, 4, 5, 6]);
        let position = positions(7, &scopes);
        for (label, parent) in found.parents.iter().enumerate() {
            assert!(parent.is_none_or(|parent| position[parent] > position[label]));
        }
    }

    #[test]
    fn connected_labels_are_neighbors() {
        // Pairs (0, 20), (1, 21), ... are connected, and a path 40, 42, 41, 43.
        let mut scopes: Vec<Vec<usize>> = (0..20).map(|label| vec![label, label + 20]).collect();
        scopes.extend([vec![40, 42], vec![42, 41], vec![41, 43]]);
        let position = positions(44, &scopes);
        assert_eq!(width(&position, &scopes), 1);
    }

    #[test]
    fn a_binary_tree_has_a_small_width() {
        let scopes: Vec<Vec<usize>> = (1..63).map(|label| vec![label, (label - 1) / 2]).collect();
        assert!(width(&positions(63, &scopes), &scopes) <= 6);
    }

    #[test]
    fn unconnected_labels_have_no_tree() {
        assert!(Arrangement::new(3, [&[0][..], &[1], &[2]].into_iter()).is_none());
    }
}
