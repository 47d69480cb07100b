//! Taxonomies, as trees and as directed acyclic graphs, and the answers of trees.

use rand::RngExt;

use super::{Answer, RuleBase, Rules, Softness, Structure, count, rescale, structure_generator, weight};

/// A tree of `n_labels` labels, at most `depth` below the root: each implies its parent, and `at_most 1 of` the children
/// of a label holds.
pub fn taxonomy_tree(n_labels: usize, depth: usize, softness: Softness, seed: u64) -> RuleBase {
    let mut rng = structure_generator(seed);
    let mut depths = vec![0];
    let mut parents = vec![0];
    let mut children = vec![Vec::new(); n_labels];
    let mut inner = vec![0];
    for label in 1..n_labels {
        let parent: usize = inner[rng.random_range(0..inner.len())];
        parents.push(parent);
        children[parent].push(label);
        depths.push(depths[parent] + 1);
        if depths[label] < depth {
            inner.push(label);
        }
    }
    let n_exclusions = children.iter().filter(|children| children.len() > 1).count();
    let mut rules = Rules::new(n_labels - 1 + n_exclusions, softness, seed);
    let name = |label: usize| format!("t{label}");
    let implications = (0..n_labels)
        .map(|label| match label {
            0 => 1.0,
            _ => rules.push(&format!("{} -> {}", name(label), name(parents[label]))),
        })
        .collect();
    let exclusions = children
        .iter()
        .map(|children| match children.len() {
            // No rule is needed: more than one child cannot hold.
            0 | 1 => 1.0,
            _ => rules.push(&count("at_most 1", children.iter().map(|&child| name(child)))),
        })
        .collect();
    let tree = Tree { children, implications, exclusions };
    RuleBase { text: rules.text((0..n_labels).map(name)), structure: Some(Structure::Tree(tree)) }
}

/// A directed acyclic taxonomy: labels on `n_levels` levels, each with one to three parents on the level above. Each
/// implies its parents, as in the Gene Ontology. It has no answers.
pub fn taxonomy_dag(n_labels: usize, n_levels: usize, softness: Softness, seed: u64) -> RuleBase {
    let mut rng = structure_generator(seed);
    // The first level is a single root; the others are equally large.
    let level = |label: usize| if label == 0 { 0 } else { 1 + (label - 1) * (n_levels - 1) / (n_labels - 1) };
    let mut levels = vec![Vec::new(); n_levels];
    (0..n_labels).for_each(|label| levels[level(label)].push(label));
    let mut implications = Vec::new();
    for label in 1..n_labels {
        let above = &levels[level(label) - 1];
        let mut parents: Vec<usize> =
            (0..rng.random_range(1..=3)).map(|_| above[rng.random_range(0..above.len())]).collect();
        parents.sort_unstable();
        parents.dedup();
        implications.extend(parents.into_iter().map(|parent| (label, parent)));
    }
    let mut rules = Rules::new(implications.len(), softness, seed);
    for (label, parent) in implications {
        rules.push(&format!("d{label} -> d{parent}"));
    }
    RuleBase { text: rules.text((0..n_labels).map(|label| format!("d{label}"))), structure: None }
}

/// A taxonomy: children come after their parents.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    children: Vec<Vec<usize>>,
    /// The probability that a label implies its parent.
    implications: Vec<f64>,
    /// The probability that at most one child of a label holds.
    exclusions: Vec<f64>,
}

/// The weights of a label's categories: no and yes.
type Pair = [f64; 2];

impl Tree {
    /// Sums upward to the root, then downward. Each pair is divided by its larger number.
    pub(super) fn answer(&self, beliefs: &[f64]) -> Answer {
        let n = self.children.len();
        let mut log_evidence = 0.0;
        // For each label, the weights of its subtree.
        let mut up: Vec<Pair> = vec![[0.0; 2]; n];
        for label in (0..n).rev() {
            let own = [1.0 - beliefs[label], beliefs[label]];
            up[label] = [0, 1].map(|state| own[state] * self.of_children(label, state, &up, None)[0]);
            log_evidence += rescale(&mut up[label]).ln();
        }
        log_evidence += (up[0][0] + up[0][1]).ln();
        // For each label, the weights of everything but its subtree.
        let mut down: Vec<Pair> = vec![[1.0; 2]; n];
        let mut marginals = vec![0.0; n];
        for label in 0..n {
            let masses = [0, 1].map(|state| up[label][state] * down[label][state]);
            marginals[label] = masses[1] / (masses[0] + masses[1]);
            let own = [1.0 - beliefs[label], beliefs[label]];
            for &child in &self.children[label] {
                let mut sums = [0.0; 2];
                for state in [0, 1] {
                    let others = self.of_children(label, state, &up, Some(child));
                    for (child_state, sum) in sums.iter_mut().enumerate() {
                        *sum += down[label][state]
                            * own[state]
                            * others[child_state]
                            * self.implied(child, child_state, state);
                    }
                }
                rescale(&mut sums);
                down[child] = sums;
            }
        }
        Answer { log_evidence, marginals }
    }

    /// The weight of the rule that a child implies its parent.
    fn implied(&self, child: usize, child_state: usize, parent_state: usize) -> f64 {
        weight(self.implications[child], child_state <= parent_state)
    }

    /// The total weight of the subtrees of a label's children, given the label. With one child left out, the totals for
    /// its two states, without its own weights.
    fn of_children(&self, label: usize, state: usize, up: &[Pair], left_out: Option<usize>) -> Pair {
        // The total weight with no child, one child, and more children that hold.
        let mut totals = [1.0, 0.0, 0.0];
        for &child in self.children[label].iter().filter(|child| Some(**child) != left_out) {
            let [no, yes] = [0, 1].map(|it| up[child][it] * self.implied(child, it, state));
            totals =
                [totals[0] * no, totals[1] * no + totals[0] * yes, totals[2] * (no + yes) + totals[1] * yes];
        }
        let [few, many] = [true, false].map(|holds| weight(self.exclusions[label], holds));
        let with = |n_more: usize| {
            let weight = |n: usize| if n + n_more <= 1 { few } else { many };
            (0..3).map(|n| totals[n] * weight(n)).sum()
        };
        [with(0), with(1)]
    }
}
