//! The paper's way: rules that may be about any labels, each about few of them at a time.
//!
//! A rule has a q for every category of every label. After each step only the labels with the smallest soft minima stay
//! connected with it, the q of the others are set to 1; still they have a derivative there, and get in when one that is in
//! has nothing to say.

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::adam::Range;
use super::climb::{Pull, Start};
use super::clique_tree::CliqueTree;
use super::factor::{Probability, RuleShape, Silence, blocks};
use super::objective::{Problem, Reach};
use super::regularizer::Regularizer;
use crate::error::{Error, Result};

/// What the paper's recipe adds to the settings. The defaults are the authors'.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Paper {
    /// The most labels that a rule is connected with, J₀.
    pub labels_per_rule: usize,
    /// How hard the minimum over the q of a label is, α.
    pub alpha: f64,
    /// How probable the prior has it that this minimum is below 0.1, γ₀: that the label is in the rule.
    pub gamma_0: f64,
    /// How probable the prior has it that it is above 0.9, γ₁: that the label is out of the rule.
    pub gamma_1: f64,
    /// By what the weight of the prior is multiplied from step to step, λ.
    pub lambda: f64,
    /// Keeps the prior finite, ε.
    pub epsilon: f64,
}

impl Default for Paper {
    fn default() -> Self {
        Self { labels_per_rule: 5, alpha: 20.0, gamma_0: 0.057, gamma_1: 0.628, lambda: 0.98, epsilon: 1e-4 }
    }
}

/// Up to so many assignments of all labels, one clique may have them all, and no tree is made for the rules.
const MAX_JOINT: usize = 1 << 19;
/// The most entries of a rule's own table.
const MAX_TABLE: usize = 1 << 20;

/// What keeps the rules of the paper's recipe in shape.
pub(crate) struct Few {
    /// The first of them among the problem's rules.
    first: usize,
    /// Where the q of each start: for every category of every label.
    starts: Vec<usize>,
    labels_per_rule: usize,
    regularizer: Regularizer,
    /// Whether one clique has all labels, whatever the rules are connected with.
    is_joint: bool,
    /// For each rule the labels it is connected with.
    connected: Vec<Vec<usize>>,
}

impl Few {
    /// Adds so many rules to a problem, which is arranged for them.
    pub(crate) fn add(
        settings: &Paper,
        n_rules: usize,
        [probability, learning_rate]: [f64; 2],
        seed: u64,
        problem: &mut Problem,
        start: &mut Start,
    ) -> Result<Self> {
        let Paper { labels_per_rule, alpha, gamma_0, gamma_1, epsilon, lambda } = *settings;
        if labels_per_rule == 0 {
            return Err(Error::Setting { setting: "j0", value: 0.0, wanted: "1 label or more" });
        }
        let regularizer = Regularizer::new(alpha, [gamma_0, gamma_1], epsilon, lambda)?;
        let sizes = problem.tree.sizes.clone();
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let first = problem.rules.len();
        let range = Range { learning_rate, low: super::task::LEAST_INHIBITION, high: 1.0 };
        let mut starts = Vec::with_capacity(n_rules);
        for _ in 0..n_rules {
            let mut labels: Vec<usize> = (0..sizes.len()).collect();
            labels.shuffle(&mut rng);
            labels.truncate(labels_per_rule);
            starts.push(start.parameters.len());
            for (label, &size) in sizes.iter().enumerate() {
                for _ in 0..size {
                    let q = if labels.contains(&label) { rng.random_range(0.9..1.0) } else { 1.0 };
                    start.add(q, range, Pull::NONE);
                }
            }
            problem.rules.push(RuleShape {
                labels: Vec::new(),
                home: None,
                silence: Silence::Learned(Vec::new()),
                probability: Probability::Given(probability),
            });
        }
        let n_assignments = sizes.iter().fold(1_usize, |product, &size| product.saturating_mul(size));
        let mut few =
            Self { first, starts, labels_per_rule, regularizer, is_joint: false, connected: Vec::new() };
        few.connect(problem, &start.parameters)?;
        // A tree takes one more sweep for each rule that reaches out, and twice as long for an entry.
        let of_sweeps = 2 * problem.tree.n_entries * (1 + problem.reaches.len());
        few.is_joint = !problem.is_loopy && n_assignments <= MAX_JOINT.min(of_sweeps);
        if few.is_joint {
            problem.arrange(CliqueTree::new(&sizes, &[(0..sizes.len()).collect()])?);
        }
        Ok(few)
    }

    /// The q of every label of a rule: where they are.
    fn places(&self, rule: usize, sizes: &[usize]) -> Vec<std::ops::Range<usize>> {
        let start = self.starts[rule];
        blocks(sizes).zip(sizes).map(|(block, size)| start + block..start + block + size).collect()
    }

    /// Adds the gradient of the prior, and leaves out what leads beyond the ranges.
    pub(crate) fn add_gradient(
        &self,
        sizes: &[usize],
        parameters: &[f64],
        ranges: &[Range],
        step: usize,
        gradient: &mut [f64],
    ) {
        for rule in 0..self.starts.len() {
            for places in self.places(rule, sizes) {
                self.regularizer.add_gradient(
                    &parameters[places.clone()],
                    step,
                    &mut gradient[places.clone()],
                );
                for at in places {
                    let leads_out = gradient[at] > 0.0 && parameters[at] >= ranges[at].high
                        || gradient[at] < 0.0 && parameters[at] <= ranges[at].low;
                    gradient[at] = if leads_out { 0.0 } else { gradient[at] };
                }
            }
        }
    }

    /// Leaves each rule the labels with the smallest soft minima.
    pub(crate) fn truncate(&self, sizes: &[usize], parameters: &mut [f64]) {
        for rule in 0..self.starts.len() {
            let mut labels = self.places(rule, sizes);
            let minimum =
                |places: &std::ops::Range<usize>| self.regularizer.soft_minimum(&parameters[places.clone()]);
            labels.sort_by(|a, b| minimum(a).total_cmp(&minimum(b)).then(a.start.cmp(&b.start)));
            for places in labels.into_iter().skip(self.labels_per_rule) {
                parameters[places].fill(1.0);
            }
        }
    }

    /// Arranges a problem for the labels that the rules are connected with, if they have changed.
    pub(crate) fn connect(&mut self, problem: &mut Problem, parameters: &[f64]) -> Result<()> {
        let sizes = problem.tree.sizes.clone();
        let is_in = |places: &std::ops::Range<usize>| parameters[places.clone()].iter().any(|q| *q < 1.0);
        let labels_of = |rule: usize| -> Vec<usize> {
            let places = self.places(rule, &sizes);
            (0..sizes.len()).filter(|&label| is_in(&places[label])).collect()
        };
        let connected: Vec<Vec<usize>> = (0..self.starts.len()).map(labels_of).collect();
        if connected == self.connected {
            return Ok(());
        }
        problem.reaches.clear();
        for (rule, labels) in connected.iter().enumerate() {
            let places = self.places(rule, &sizes);
            let shape = &mut problem.rules[self.first + rule];
            shape.labels.clone_from(labels);
            shape.silence = Silence::Learned(labels.iter().map(|&label| places[label].start).collect());
            let others = (0..sizes.len()).filter(|label| !labels.contains(label));
            let labels: Vec<(usize, usize)> = others.map(|label| (label, places[label].start)).collect();
            if !labels.is_empty() {
                problem.reaches.push(Reach { rule: self.first + rule, labels });
            }
        }
        self.connected = connected;
        if self.is_joint {
            problem.bring_home();
            return Ok(());
        }
        let scopes: Vec<Vec<usize>> = problem.rules.iter().map(|rule| rule.labels.clone()).collect();
        let tree =
            if problem.is_loopy { loopy_tree(&sizes, &scopes)? } else { CliqueTree::new(&sizes, &scopes)? };
        problem.arrange(tree);
        Ok(())
    }
}

/// A tree that ties nothing together, if the rules' own tables are affordable.
pub(crate) fn loopy_tree(sizes: &[usize], scopes: &[Vec<usize>]) -> Result<CliqueTree> {
    for scope in scopes {
        let entries = scope.iter().fold(1_usize, |product, &label| product.saturating_mul(sizes[label]));
        if entries > MAX_TABLE {
            return Err(Error::TooCostly {
                what: "learning with loopy gradients".to_owned(),
                needed: format!("a rule over {} labels, {entries} entries", scope.len()),
                limit: format!("{MAX_TABLE} entries"),
                advice: "give the rule fewer labels".to_owned(),
            });
        }
    }
    CliqueTree::new(sizes, &[])
}

#[cfg(test)]
mod tests {
    use super::super::climb::{Climb, Pace};
    use super::super::task::{Bases, Candidate, Size, Task};
    use super::super::watch::{Watch, never};
    use super::super::{Examples, Learner};
    use super::*;
    use crate::{BeliefMatrix, Model, Normalize, Truth};

    /// Labels of two and three categories, an expert's rule beside, and labels that are missing.
    #[test]
    fn one_clique_learns_what_a_tree_learns() {
        let builder = (0..6).fold(Model::builder(), |builder, at| builder.binary_label(format!("l{at}")));
        let model = builder.label("c", ["x", "y", "z"]).rule("l1 <- l0", 0.9).build().unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let (mut beliefs, mut truths) = (BeliefMatrix::new(&model), Vec::new());
        for _ in 0..60 {
            let mut cells: Vec<Option<f64>> =
                (0..6).flat_map(|_| [Some(rng.random_range(0.05..0.95)), None]).collect();
            let rest = rng.random_range(0.1..0.4);
            cells.extend([Some(0.5), Some(0.5 - rest), Some(rest)]);
            beliefs.push(&cells, Normalize::Never).unwrap();
            let sizes = [2, 2, 2, 2, 2, 2, 3];
            let truth = sizes.map(|size| rng.random_bool(0.9).then(|| rng.random_range(0..size)));
            truths.push(Truth::from_indices(truth));
        }
        let examples = Examples::new(beliefs, truths).unwrap();
        let candidate = Candidate { size: Size::Paper { rules: 8 }, typical: false, calibrated: true };
        let bases = Bases::new(model.clone(), model);
        let climb = |is_joint: bool| {
            let settings =
                Learner { paper: Paper { labels_per_rule: 3, ..Paper::default() }, ..Learner::paper() };
            let mut watch = never();
            let task = Task::new(&settings, candidate, &bases, &examples, &mut Watch::new(&mut watch));
            let mut task = task.unwrap().unwrap();
            let few = task.few.as_mut().unwrap();
            assert!(few.is_joint);
            if !is_joint {
                few.is_joint = false;
                few.connected.clear();
                few.connect(&mut task.problem, &task.start.parameters).unwrap();
            }
            let rows = [&task.problem.rows(&examples, true), &task.problem.rows(&examples, false)];
            let mut climb = Climb::new(candidate, &task.start);
            let pace = Pace { steps: 60, batch: 20, seed: 1, patience: usize::MAX };
            while climb.go_on(&mut task, pace, rows).unwrap() {}
            assert_eq!(task.problem.is_joint(), is_joint);
            climb
        };
        let [joint, tree] = [climb(true), climb(false)];
        for (joint, tree) in joint.curve.iter().zip(&tree.curve) {
            assert!((joint.validation - tree.validation).abs() < 1e-9, "{joint:?} is not {tree:?}");
        }
        for (joint, tree) in joint.parameters.iter().zip(&tree.parameters) {
            assert!((joint - tree).abs() < 1e-7, "{joint} is not {tree}");
        }
    }
}
