//! Rule bases of the kinds that people compile into circuits, with answers that do not use prsl's engines.
//!
//! All labels are yes/no. The answers are sums over the structure that a base was generated from, not over its text:
//! forward and backward sums along a chain of layers, or upward and downward sums in a tree.

use std::fmt::Write;

use prsl::{BeliefMatrix, Model, Normalize};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

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

/// A permutation: `n` × `n` labels, `exactly 1 of` each row and each column. It has answers for `n` up to 6, because they
/// take 6ⁿ steps for each row.
pub fn permutations(n: usize, softness: Softness, seed: u64) -> RuleBase {
    let mut rules = Rules::new(2 * n, softness, seed);
    let name = |row: usize, column: usize| format!("x{row}_{column}");
    let cells = || (0..n * n).map(|cell| name(cell / n, cell % n));
    let rows: Vec<f64> =
        (0..n).map(|row| rules.push(&count("exactly 1", (0..n).map(|column| name(row, column))))).collect();
    let columns: Vec<f64> =
        (0..n).map(|column| rules.push(&count("exactly 1", (0..n).map(|row| name(row, column))))).collect();
    // The state of a layer is the number of yes in each column so far, from 0 to 2 or more, as digits in base 3.
    let layer = |row: usize| {
        let mut steps = Vec::new();
        for from in 0..3usize.pow(n as u32) {
            let before: Vec<usize> = (0..n).map(|column| from / 3usize.pow(column as u32) % 3).collect();
            for yes in 0..1u64 << n {
                let after: Vec<usize> =
                    (0..n).map(|column| (before[column] + (yes >> column & 1) as usize).min(2)).collect();
                let mut weight = weight(rows[row], yes.count_ones() == 1);
                let mut to = (0..n).map(|column| after[column] * 3usize.pow(column as u32)).sum();
                if row + 1 == n {
                    weight *= (0..n).map(|it| self::weight(columns[it], after[it] == 1)).product::<f64>();
                    to = 0;
                }
                steps.push(Step { from, to, yes, weight });
            }
        }
        Layer::new((row * n..(row + 1) * n).collect(), steps)
    };
    let structure = (n <= 6).then(|| Structure::Chain((0..n).map(layer).collect()));
    RuleBase { text: rules.text(cells()), structure }
}

/// A path between opposite corners of a grid of `width` × `height` points, and possibly cycles beside it. The labels
/// are the edges of the grid.
///
/// One rule for each point says that it is on one edge if it is one of the corners, and on none or two otherwise.
pub fn grid_paths(width: usize, height: usize, softness: Softness, seed: u64) -> RuleBase {
    let mut rules = Rules::new(width * height, softness, seed);
    let across = |row: usize, column: usize| format!("h{row}_{column}");
    let down = |row: usize, column: usize| format!("v{row}_{column}");
    let is_end =
        |row: usize, column: usize| (row, column) == (0, 0) || (row + 1, column + 1) == (height, width);
    let mut points = Vec::new();
    let mut names = Vec::new();
    for row in 0..height {
        names.extend((0..width - 1).map(|column| across(row, column)));
        if row + 1 < height {
            names.extend((0..width).map(|column| down(row, column)));
        }
        for column in 0..width {
            let mut edges = Vec::new();
            edges.extend((row > 0).then(|| down(row - 1, column)));
            edges.extend((column > 0).then(|| across(row, column - 1)));
            edges.extend((column + 1 < width).then(|| across(row, column)));
            edges.extend((row + 1 < height).then(|| down(row, column)));
            let of = |bound: &str| count(bound, edges.iter().cloned());
            let formula = match is_end(row, column) {
                true => of("exactly 1"),
                false => format!("{} | {}", of("exactly 0"), of("exactly 2")),
            };
            points.push(rules.push(&formula));
        }
    }
    // The state of a layer is the set of edges that lead down from a row.
    let mut n_labels = 0;
    let layer = |row: usize| {
        let (n_across, n_down) = (width - 1, if row + 1 < height { width } else { 0 });
        let mut steps = Vec::new();
        for from in 0..if row == 0 { 1 } else { 1usize << width } {
            for yes in 0..1u64 << (n_across + n_down) {
                let (across, to) = ((yes & ((1 << n_across) - 1)) << 1, (yes >> n_across) as usize);
                let degree = |column: usize| {
                    (from >> column & 1) + (to >> column & 1) + (across >> column & 3).count_ones() as usize
                };
                let holds = |column: usize| match is_end(row, column) {
                    true => degree(column) == 1,
                    false => degree(column) == 0 || degree(column) == 2,
                };
                let weights = (0..width).map(|column| weight(points[row * width + column], holds(column)));
                steps.push(Step { from, to, yes, weight: weights.product() });
            }
        }
        n_labels += n_across + n_down;
        Layer::new((n_labels - n_across - n_down..n_labels).collect(), steps)
    };
    let layers = (0..height).map(layer).collect();
    RuleBase { text: rules.text(names), structure: Some(Structure::Chain(layers)) }
}

/// `n_groups` groups of `size` labels, `exactly 1 of` each group, and two implications between members of any two
/// neighboring groups.
pub fn exclusive_groups(n_groups: usize, size: usize, softness: Softness, seed: u64) -> RuleBase {
    let mut rng = structure_generator(seed);
    let mut rules = Rules::new(3 * n_groups - 2, softness, seed);
    let name = |group: usize, member: usize| format!("g{group}_{member}");
    let layer = |group: usize| {
        let exclusive = rules.push(&count("exactly 1", (0..size).map(|member| name(group, member))));
        let mut implications = Vec::new();
        // Implications start from different members, so that the hard base excludes no member.
        let mut sources: Vec<usize> = (0..size).collect();
        sources.shuffle(&mut rng);
        for &source in sources.iter().take(if group == 0 { 0 } else { 2 }) {
            let target = rng.random_range(0..size);
            let formula = format!("{} -> {}", name(group - 1, source), name(group, target));
            implications.push((source, target, rules.push(&formula)));
        }
        let mut steps = Vec::new();
        for from in 0..if group == 0 { 1 } else { 1usize << size } {
            for yes in 0..1u64 << size {
                let implied = implications.iter().map(|&(source, target, probability)| {
                    weight(probability, from >> source & 1 == 0 || yes >> target & 1 == 1)
                });
                let weight = weight(exclusive, yes.count_ones() == 1) * implied.product::<f64>();
                steps.push(Step { from, to: yes as usize, yes, weight });
            }
        }
        Layer::new((group * size..(group + 1) * size).collect(), steps)
    };
    let layers = (0..n_groups).map(layer).collect();
    let names = (0..n_groups * size).map(|label| name(label / size, label % size));
    RuleBase { text: rules.text(names), structure: Some(Structure::Chain(layers)) }
}

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

/// Some labels of a chain, and all their assignments with the states before and after them.
#[derive(Clone, Debug)]
struct Layer {
    labels: Vec<usize>,
    steps: Vec<Step>,
    n_from: usize,
    n_to: usize,
}

#[derive(Clone, Copy, Debug)]
struct Step {
    from: usize,
    to: usize,
    /// The labels of the layer that are yes, as a bit set.
    yes: u64,
    /// The product of the weights of rules.
    weight: f64,
}

impl Layer {
    fn new(labels: Vec<usize>, mut steps: Vec<Step>) -> Self {
        steps.retain(|step| step.weight > 0.0);
        let n = |state: fn(&Step) -> usize| steps.iter().map(state).max().map_or(0, |last| last + 1);
        let (n_from, n_to) = (n(|step| step.from), n(|step| step.to));
        Self { labels, steps, n_from, n_to }
    }

    /// The product of the beliefs in each assignment of the labels.
    fn beliefs(&self, beliefs: &[f64]) -> Vec<f64> {
        let belief = |yes: u64, place: usize| match yes >> place & 1 {
            1 => beliefs[self.labels[place]],
            _ => 1.0 - beliefs[self.labels[place]],
        };
        let product = |yes: u64| (0..self.labels.len()).map(|place| belief(yes, place)).product();
        (0..1u64 << self.labels.len()).map(product).collect()
    }
}

/// Sums over all sequences of steps, forward and backward.
fn chain_answer(layers: &[Layer], beliefs: &[f64]) -> Answer {
    let mut log_evidence = 0.0;
    let mut forward = vec![vec![1.0]];
    for layer in layers {
        let (before, beliefs) = (&forward[forward.len() - 1], layer.beliefs(beliefs));
        let mut after = vec![0.0; layer.n_to];
        for step in &layer.steps {
            // A hard rule may exclude all steps to a state.
            let weight_before = before.get(step.from).copied().unwrap_or(0.0);
            after[step.to] += weight_before * step.weight * beliefs[step.yes as usize];
        }
        log_evidence += rescale(&mut after).ln();
        forward.push(after);
    }
    let last = &forward[forward.len() - 1];
    log_evidence += last.iter().sum::<f64>().ln();
    let mut marginals = vec![0.0; beliefs.len()];
    let mut after = vec![1.0; last.len()];
    for (layer, before) in layers.iter().zip(&forward).rev() {
        let belief_of = layer.beliefs(beliefs);
        let mut backward = vec![0.0; layer.n_from.max(before.len())];
        let mut masses = vec![0.0; belief_of.len()];
        for step in &layer.steps {
            let weight_after = after.get(step.to).copied().unwrap_or(0.0);
            let weight = step.weight * belief_of[step.yes as usize] * weight_after;
            backward[step.from] += weight;
            masses[step.yes as usize] += before.get(step.from).copied().unwrap_or(0.0) * weight;
        }
        let total: f64 = masses.iter().sum();
        for (place, &label) in layer.labels.iter().enumerate() {
            let yes = masses.iter().enumerate().filter(|(yes, _)| yes >> place & 1 == 1);
            marginals[label] = yes.map(|(_, mass)| mass).sum::<f64>() / total;
        }
        rescale(&mut backward);
        after = backward;
    }
    Answer { log_evidence, marginals }
}

/// Divides weights by the largest of them, and returns it.
fn rescale(weights: &mut [f64]) -> f64 {
    let largest = weights.iter().copied().fold(0.0, f64::max);
    weights.iter_mut().for_each(|weight| *weight /= largest);
    largest
}

/// A taxonomy: children come after their parents.
#[derive(Clone, Debug)]
struct Tree {
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
    fn answer(&self, beliefs: &[f64]) -> Answer {
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
