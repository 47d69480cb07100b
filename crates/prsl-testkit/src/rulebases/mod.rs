//! Rule bases of the kinds that people compile into circuits, with answers that do not use prsl's engines.
//!
//! All labels are yes/no. The answers are sums over the structure that a base was generated from, not over its text:
//! forward and backward sums along a chain of layers, or upward and downward sums in a tree.

mod chain;
mod exclusive_groups;
mod grid_paths;
mod permutations;
mod taxonomies;

pub use exclusive_groups::exclusive_groups;
pub use grid_paths::grid_paths;
pub use permutations::permutations;
pub use taxonomies::{taxonomy_dag, taxonomy_tree};

use std::fmt::Write;

use prsl::{BeliefMatrix, Model, Normalize};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use chain::{Layer, chain_answer};
use taxonomies::Tree;

/// A rule base as the text of a model.
#[derive(Clone, Debug)]
pub struct RuleBase {
    /// The text of the model.
    pub text: String,
    /// The structure that answers are computed from, if there is one.
    structure: Option<Structure>,
}

/// Which rules of a generated base are soft.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Softness {
    /// All rules have probability 1.
    Hard,
    /// A third of the rules has different probabilities below 1.
    ThirdSoft,
}

/// The answer for one row.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// ln Z.
    pub log_evidence: f64,
    /// P(yes) of every label.
    pub marginals: Vec<f64>,
}

#[derive(Clone, Debug)]
enum Structure {
    Chain(Vec<Layer>),
    Tree(Tree),
}

impl RuleBase {
    /// The model of the text.
    pub fn model(&self) -> Model {
        Model::parse(&self.text).expect("generated bases are valid")
    }

    /// The answer for beliefs in yes, one per label; `None` if the base has no answers.
    pub fn answer(&self, beliefs: &[f64]) -> Option<Answer> {
        match self.structure.as_ref()? {
            Structure::Chain(layers) => Some(chain_answer(layers, beliefs)),
            Structure::Tree(tree) => Some(tree.answer(beliefs)),
        }
    }
}

/// Random beliefs in yes for yes/no labels, and the same as rows of the model.
pub fn yes_no_rows(model: &Model, n_rows: usize, seed: u64) -> (Vec<Vec<f64>>, BeliefMatrix) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut rows = BeliefMatrix::new(model);
    let mut row = |_| {
        let beliefs: Vec<f64> = model.labels().iter().map(|_| rng.random_range(0.02..0.98)).collect();
        let cells: Vec<Option<f64>> = beliefs.iter().flat_map(|&belief| [Some(belief), None]).collect();
        rows.push(&cells, Normalize::Never).expect("all labels are yes/no");
        beliefs
    };
    let beliefs = (0..n_rows).map(&mut row).collect();
    (beliefs, rows)
}

/// Makes `n` of the rules of probability 1 soft, with different probabilities from 0.7 to 0.99.
///
/// Such a rule is a line that starts with `rule 1:`. The text has at least `n` of them.
pub fn road_soft(text: &str, n: usize, seed: u64) -> String {
    let is_rule = |line: &&str| line.starts_with("rule 1:");
    let mut chosen = probabilities(text.lines().filter(is_rule).count(), n, seed).into_iter();
    let mut written = String::with_capacity(text.len() + 20 * n);
    for line in text.lines() {
        match line.strip_prefix("rule 1:") {
            Some(formula) => {
                let probability = chosen.next().expect("one probability for each rule");
                writeln!(written, "rule {probability}:{formula}")
            }
            None => writeln!(written, "{line}"),
        }
        .expect("a string takes all");
    }
    written
}

/// Probabilities of `n` rules: `n_soft` of them are different numbers from 0.7 to 0.99, the others 1.
fn probabilities(n: usize, n_soft: usize, seed: u64) -> Vec<f64> {
    assert!(n_soft <= n, "{n_soft} of {n} rules cannot be soft");
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let soft = |rule: usize| 0.7 + 0.29 * rule as f64 / (n_soft - 1).max(1) as f64;
    let mut probabilities: Vec<f64> =
        (0..n).map(|rule| if rule < n_soft { soft(rule) } else { 1.0 }).collect();
    probabilities.shuffle(&mut rng);
    probabilities
}

/// A generator for the structure of a base. The probabilities of its rules are drawn from another one.
fn structure_generator(seed: u64) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(1);
    rng
}

/// `exactly 1 of {a, b}`
fn count(bound: &str, labels: impl IntoIterator<Item = String>) -> String {
    format!("{bound} of {{{}}}", labels.into_iter().collect::<Vec<_>>().join(", "))
}

/// The weight of a rule.
fn weight(probability: f64, holds: bool) -> f64 {
    if holds { probability } else { 1.0 - probability }
}

/// The rules of a base as text.
struct Rules {
    /// The probabilities of the rules that are not written yet, the next one last.
    probabilities: Vec<f64>,
    lines: String,
}

impl Rules {
    fn new(n: usize, softness: Softness, seed: u64) -> Self {
        let n_soft = match softness {
            Softness::Hard => 0,
            Softness::ThirdSoft => n / 3,
        };
        Self { probabilities: probabilities(n, n_soft, seed), lines: String::new() }
    }

    /// Adds a rule. Returns its probability.
    fn push(&mut self, formula: &str) -> f64 {
        let probability = self.probabilities.pop().expect("the number of rules is known");
        writeln!(self.lines, "rule {probability}: {formula}").expect("a string takes all");
        probability
    }

    /// The text of the model with these labels.
    fn text(self, labels: impl IntoIterator<Item = String>) -> String {
        assert!(self.probabilities.is_empty(), "all rules are written");
        let labels: String = labels.into_iter().map(|label| format!("label {label}\n")).collect();
        labels + &self.lines
    }
}

/// Divides weights by the largest of them, and returns it.
fn rescale(weights: &mut [f64]) -> f64 {
    let largest = weights.iter().copied().fold(0.0, f64::max);
    weights.iter_mut().for_each(|weight| *weight /= largest);
    largest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Precise, close};

    /// Small bases of every kind with answers. All assignments can be listed.
    fn small(softness: Softness, seed: u64) -> [RuleBase; 5] {
        [
            permutations(3, softness, seed),
            grid_paths(3, 2, softness, seed),
            grid_paths(2, 3, softness, seed),
            exclusive_groups(3, 3, softness, seed),
            taxonomy_tree(10, 3, softness, seed),
        ]
    }

    #[test]
    fn answers_are_sums_over_all_assignments() {
        for (softness, seed) in [(Softness::Hard, 1), (Softness::ThirdSoft, 1), (Softness::ThirdSoft, 2)] {
            for base in small(softness, seed) {
                let model = base.model();
                let precise = Precise::new(&model);
                let (beliefs, rows) = yes_no_rows(&model, 2, seed);
                for (row, beliefs) in beliefs.iter().enumerate() {
                    let (answer, sums) = (base.answer(beliefs).unwrap(), precise.sums(&rows.row(row)));
                    assert!(close(answer.log_evidence, sums.log_evidence, 1e-12), "{}", base.text);
                    for (actual, expected) in answer.marginals.iter().zip(sums.marginals.iter().step_by(2)) {
                        assert!(close(*actual, *expected, 1e-12), "{actual} {expected}\n{}", base.text);
                    }
                }
            }
        }
    }

    /// The number of assignments that a hard base allows.
    fn n_possible(base: &RuleBase) -> f64 {
        let n_labels = base.model().labels().len();
        let answer = base.answer(&vec![0.5; n_labels]).unwrap();
        (answer.log_evidence + n_labels as f64 * 2f64.ln()).exp()
    }

    #[test]
    fn hard_bases_allow_known_numbers_of_assignments() {
        assert!(close(n_possible(&permutations(6, Softness::Hard, 1)), 720.0, 1e-9));
        // The square has two paths and no room for a cycle beside them.
        assert!(close(n_possible(&grid_paths(2, 2, Softness::Hard, 1)), 2.0, 1e-9));
        // 184 paths, and those with cycles beside them.
        assert!(close(n_possible(&grid_paths(4, 4, Softness::Hard, 1)), paths_and_cycles(4, 4), 1e-9));
    }

    /// The number of sets of edges that are a path between opposite corners and cycles beside it. Decides edge by edge
    /// and stops if a point has too many.
    fn paths_and_cycles(width: usize, height: usize) -> f64 {
        let mut edges = Vec::new();
        for point in 0..width * height {
            edges.extend((point % width + 1 < width).then_some([point, point + 1]));
            edges.extend((point + width < width * height).then_some([point, point + width]));
        }
        fn extend(edges: &[[usize; 2]], degrees: &mut [usize]) -> f64 {
            let last = degrees.len() - 1;
            let Some(([a, b], rest)) = edges.split_first() else {
                let is_right = |(point, &degree): (usize, &usize)| match point == 0 || point == last {
                    true => degree == 1,
                    false => degree == 0 || degree == 2,
                };
                return f64::from(u8::from(degrees.iter().enumerate().all(is_right)));
            };
            let mut n = extend(rest, degrees);
            if degrees[*a] < 2 && degrees[*b] < 2 {
                degrees[*a] += 1;
                degrees[*b] += 1;
                n += extend(rest, degrees);
                degrees[*a] -= 1;
                degrees[*b] -= 1;
            }
            n
        }
        extend(&edges, &mut vec![0; width * height])
    }

    #[test]
    fn soft_rules_have_different_probabilities() {
        let text = "label a\nrule 1: a\nrule 0.5: a\nrule 1: !a\nnoisy_or 1: a 0.1\n";
        let soft = road_soft(text, 2, 7);
        let mut rules: Vec<&str> = soft.lines().filter(|line| line.starts_with("rule ")).collect();
        assert_eq!(rules.remove(1), "rule 0.5: a");
        assert!(rules.contains(&"rule 0.7: a") != rules.contains(&"rule 0.99: a"), "{soft}");
        assert!(Model::parse(&soft).is_ok());
        assert_eq!(road_soft(text, 0, 7), text);
    }

    #[test]
    fn a_third_of_the_rules_is_soft() {
        let model = taxonomy_dag(400, 8, Softness::ThirdSoft, 3).model();
        let mut soft: Vec<f64> =
            model.rules().iter().map(|rule| rule.probability()).filter(|p| *p < 1.0).collect();
        assert_eq!(soft.len(), model.rules().len() / 3);
        soft.sort_by(f64::total_cmp);
        soft.dedup();
        assert_eq!(soft.len(), model.rules().len() / 3);
        assert!((0.7..=0.99).contains(&soft[0]) && (0.7..=0.99).contains(&soft[soft.len() - 1]));
    }
}
