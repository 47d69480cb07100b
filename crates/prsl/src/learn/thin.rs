//! The thin recipe: noisy-or rules inside the cliques of a thin tree, calibrators and typical combinations, learned together.

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::adam::{Adam, Range, State};
use super::calibration::Calibration;
use super::clique_tree::CliqueTree;
use super::examples::Examples;
use super::factor::{Probability, RuleShape, Silence};
use super::objective::{Problem, Rows};
use super::scopes::{Association, thin_tree};
use super::typical::Typical;
use crate::error::Result;
use crate::label::{CategoryId, LabelId};
use crate::model::Model;
use crate::noisy_or::{Inhibition, NoisyOr};
use crate::rule::{Body, Rule};

/// Settings of the thin recipe.
#[derive(Clone, Debug, PartialEq)]
pub struct Thin {
    /// Labels of a group, less one.
    pub width: usize,
    /// Rules learned about each group.
    pub rules_per_group: usize,
    /// Steps of the optimizer.
    pub steps: usize,
    /// Rows of a step.
    pub batch: usize,
    /// Step size for inhibition probabilities.
    pub learning_rate: f64,
    /// Step size for everything else.
    pub other_rate: f64,
    /// How dear it is that a category may fire: per 1 − q.
    pub penalty: f64,
    /// How strongly calibrators are pulled to where they started.
    pub pull: f64,
    /// The probability of learned rules.
    pub probability: f64,
    /// Whether typical combinations are learned.
    pub typical: bool,
    /// How far the weights of single combinations may stray.
    pub spread: f64,
    /// Whether calibrators are learned along.
    pub calibrate: bool,
    /// Draws where rules begin, and batches.
    pub seed: u64,
}

impl Default for Thin {
    fn default() -> Self {
        Self {
            width: 4,
            rules_per_group: 2,
            steps: 1000,
            batch: 40,
            learning_rate: 0.005,
            other_rate: 0.02,
            penalty: 0.003,
            pull: 0.02,
            probability: 0.999,
            typical: true,
            spread: 0.5,
            calibrate: true,
            seed: 1,
        }
    }
}

/// What was learned.
pub struct Learned {
    /// The model with its rules.
    pub model: Model,
    /// Step, mean joint log-likelihood of the training rows' last batches, and of the validation rows.
    pub curve: Vec<(usize, f64, f64)>,
    /// The mean joint log-likelihood of the validation rows.
    pub validation: f64,
    problem: Problem,
    parameters: Vec<f64>,
}

/// Beliefs that are to be calibrated are kept this far from 0 and 1.
const SMOOTH: f64 = 1e-3;
/// Inhibition probabilities stay above this.
const LEAST_INHIBITION: f64 = 1e-4;
/// Steps between two looks at the validation rows.
const LOOK: usize = 20;

impl Thin {
    /// Learns beside the rules of `base`, which stay as they are.
    pub fn learn(&self, base: &Model, train: &Examples, valid: &Examples) -> Result<Learned> {
        let sizes: Vec<usize> = base.labels().iter().map(|label| label.n_categories()).collect();
        let mut setup = Setup { parameters: Vec::new(), ranges: Vec::new(), anchors: Vec::new() };
        let calibrations: Vec<Calibration> =
            base.label_ids().map(|label| self.calibration(base, label, train, &mut setup)).collect();
        let association = association(base, &calibrations, &setup.parameters, train);
        let experts: Vec<Vec<usize>> =
            base.rules().iter().map(|rule| rule.scope().iter().map(|label| label.index()).collect()).collect();
        let blocks = expert_blocks(&sizes, &experts)?;
        let groups = thin_tree(&association, self.width, &blocks);
        let scopes: Vec<Vec<usize>> = experts.iter().chain(&groups).cloned().collect();
        let tree = CliqueTree::new(&sizes, &scopes)?;
        let mut rules = Vec::new();
        for (rule, scope) in base.rules().iter().zip(&experts).filter(|(_, scope)| !scope.is_empty()) {
            rules.push(expert_shape(base, rule, scope, &tree));
        }
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        for group in &groups {
            for _ in 0..self.rules_per_group {
                rules.push(self.learned_shape(group, &tree, &sizes, &mut setup, &mut rng));
            }
        }
        let mut of_clique = vec![Vec::new(); tree.cliques.len()];
        rules.iter().enumerate().for_each(|(rule, shape)| of_clique[shape.clique].push(rule));
        let counted = train.truths().iter().map(Vec::as_slice).zip(train.weights().iter().copied());
        let mut typical =
            if self.typical { Typical::count(counted, &sizes, setup.parameters.len()) } else { None };
        if let Some(typical) = &mut typical {
            typical.locate(&tree);
            let ridge = 1.0 / (2.0 * self.spread * self.spread * train.n_rows() as f64);
            setup.add(-1.0, self.other_rate, [-50.0, 50.0], 0.0);
            setup.add(0.5, self.other_rate, [0.0, 10.0], 0.0);
            typical.combinations.iter().for_each(|_| setup.add(0.0, self.other_rate, [-50.0, 50.0], ridge));
        }
        let n_parameters = setup.parameters.len();
        let problem = Problem { tree, rules, of_clique, calibrations, typical, n_parameters };
        let (parameters, curve, validation) = self.climb(&problem, setup, train, valid);
        let model = rebuilt(base, &problem, &parameters)?;
        Ok(Learned { model, curve, validation, problem, parameters })
    }

    fn calibration(&self, model: &Model, label: LabelId, train: &Examples, setup: &mut Setup) -> Calibration {
        let n = model.label(label).n_categories();
        if !self.calibrate || model.label(label).classifier().is_none() {
            return Calibration::Identity;
        }
        let start = setup.parameters.len();
        let pull = self.pull;
        if n == 2 {
            let [slope, intercept] = fit_platt(model, label, train);
            setup.add(slope, self.other_rate, [-50.0, 50.0], pull);
            setup.add(intercept, self.other_rate, [-50.0, 50.0], pull);
            return Calibration::Platt(start);
        }
        for at in 0..n * n {
            let diagonal = at / n == at % n;
            setup.add(f64::from(u8::from(diagonal)), self.other_rate, [-50.0, 50.0], pull);
        }
        (0..n).for_each(|_| setup.add(0.0, self.other_rate, [-50.0, 50.0], pull));
        Calibration::Dirichlet(start)
    }

    fn learned_shape(
        &self,
        group: &[usize],
        tree: &CliqueTree,
        sizes: &[usize],
        setup: &mut Setup,
        rng: &mut ChaCha8Rng,
    ) -> RuleShape {
        let clique = tree.clique_of(group).expect("the tree was made for the groups");
        let shape = RuleShape {
            clique,
            labels: group.to_vec(),
            of_clique: tree.projection(clique, group),
            silence: Silence::Learned(setup.parameters.len()),
            probability: Probability::Given(self.probability),
        };
        for _ in 0..shape.n_inhibitions(sizes) {
            setup.add(rng.random_range(0.9..1.0), self.learning_rate, [LEAST_INHIBITION, 1.0], 0.0);
        }
        shape
    }

    /// Steps uphill in minibatches; the parameters that were best on the validation rows.
    fn climb(
        &self,
        problem: &Problem,
        setup: Setup,
        train: &Examples,
        valid: &Examples,
    ) -> (Vec<f64>, Vec<(usize, f64, f64)>, f64) {
        let Setup { mut parameters, ranges, anchors } = setup;
        let is_inhibition: Vec<bool> = {
            let mut is_inhibition = vec![false; parameters.len()];
            for rule in &problem.rules {
                if let Silence::Learned(start) = rule.silence {
                    is_inhibition[start..start + rule.n_inhibitions(&problem.tree.sizes)].fill(true);
                }
            }
            is_inhibition
        };
        let train_rows = problem.rows(train, true);
        let valid_rows = problem.rows(valid, false);
        let all_valid: Vec<usize> = (0..valid.n_rows()).collect();
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed.wrapping_add(1));
        let mut order: Vec<usize> = (0..train.n_rows()).collect();
        let mut at = order.len();
        let mut state = State::new(parameters.len());
        let mut gradient = vec![0.0; parameters.len()];
        let mut best = (f64::NEG_INFINITY, parameters.clone());
        let mut curve = Vec::new();
        let mut recent = Vec::new();
        for step in 0..=self.steps {
            if step % LOOK == 0 || step == self.steps {
                let validation = problem.value(&parameters, &valid_rows, &all_valid);
                let mean = recent.iter().sum::<f64>() / (recent.len() as f64).max(1.0);
                curve.push((step, mean, validation));
                recent.clear();
                if validation > best.0 {
                    best = (validation, parameters.clone());
                }
            }
            if step == self.steps {
                break;
            }
            if at + self.batch > order.len() {
                order.shuffle(&mut rng);
                at = 0;
            }
            let batch = &order[at..(at + self.batch).min(order.len())];
            at += self.batch;
            gradient.fill(0.0);
            recent.push(problem.gradient(&parameters, &train_rows, batch, &mut gradient));
            for (index, slope) in gradient.iter_mut().enumerate() {
                let (anchor, strength) = anchors[index];
                *slope -= 2.0 * strength * (parameters[index] - anchor);
                if is_inhibition[index] {
                    *slope += self.penalty;
                }
            }
            let left = 1.0 - step as f64 / self.steps as f64;
            let pace = (2.0 * left).min(1.0).max(0.02);
            Adam::default().step(&mut state, &mut parameters, &gradient, &ranges, pace);
        }
        (best.1, curve, best.0)
    }
}

/// Parameters as they start, and what keeps them in place.
struct Setup {
    parameters: Vec<f64>,
    ranges: Vec<Range>,
    /// Where each is pulled to, and how strongly.
    anchors: Vec<(f64, f64)>,
}

impl Setup {
    fn add(&mut self, start: f64, learning_rate: f64, [low, high]: [f64; 2], pull: f64) {
        self.parameters.push(start);
        self.ranges.push(Range { learning_rate, low, high });
        self.anchors.push((start, pull));
    }
}

impl Problem {
    /// Makes rows ready.
    pub(crate) fn rows(&self, examples: &Examples, counted: bool) -> Rows {
        let mut log_beliefs = Vec::with_capacity(examples.beliefs().values().len());
        for row in 0..examples.n_rows() {
            let beliefs = examples.beliefs().row(row);
            let mut start = 0;
            for (size, calibration) in self.tree.sizes.iter().zip(&self.calibrations) {
                let block = &beliefs[start..start + size];
                match calibration {
                    Calibration::Identity => log_beliefs.extend(block.iter().map(|belief| belief.ln())),
                    _ => log_beliefs.extend(smooth_logs(block)),
                }
                start += size;
            }
        }
        let combination = |truths: &Vec<Option<usize>>| {
            let categories: Vec<usize> = truths.iter().copied().collect::<Option<_>>()?;
            self.typical.as_ref()?.index.get(&categories).copied()
        };
        Rows {
            n_rows: examples.n_rows(),
            log_beliefs,
            truths: examples.truths().iter().flatten().copied().collect(),
            combination: examples.truths().iter().map(combination).collect(),
            weights: examples.weights().to_vec(),
            counted,
        }
    }
}

/// ln of beliefs kept away from 0 and 1.
fn smooth_logs(beliefs: &[f64]) -> impl Iterator<Item = f64> {
    let smooth = |belief: &f64| belief.clamp(SMOOTH, 1.0 - SMOOTH);
    let total: f64 = beliefs.iter().map(smooth).sum();
    beliefs.iter().map(move |belief| (smooth(belief) / total).ln())
}

/// A Platt fit by Newton's method, pulled lightly toward no change.
fn fit_platt(model: &Model, label: LabelId, train: &Examples) -> [f64; 2] {
    const RIDGE: f64 = 1.0;
    let block = model.block(label);
    let mut data = Vec::new();
    for row in 0..train.n_rows() {
        if let Some(truth) = train.truths()[row][label.index()] {
            let logs: Vec<f64> = smooth_logs(&train.beliefs().row(row)[block.clone()]).collect();
            data.push((logs[0] - logs[1], if truth == 0 { 1.0 } else { 0.0 }, train.weights()[row]));
        }
    }
    let [mut slope, mut intercept] = [1.0, 0.0];
    for _ in 0..50 {
        let (mut g, mut h) = ([-RIDGE * (slope - 1.0), -RIDGE * intercept * 0.1], [RIDGE, 0.0, RIDGE * 0.1]);
        for &(x, y, weight) in &data {
            let p = 1.0 / (1.0 + (-(slope * x + intercept)).exp());
            let (error, curvature) = (weight * (y - p), weight * p * (1.0 - p));
            g[0] += error * x;
            g[1] += error;
            h[0] += curvature * x * x;
            h[1] += curvature * x;
            h[2] += curvature;
        }
        let determinant = h[0] * h[2] - h[1] * h[1];
        let step = [(h[2] * g[0] - h[1] * g[1]) / determinant, (h[0] * g[1] - h[1] * g[0]) / determinant];
        let length = (step[0] * step[0] + step[1] * step[1]).sqrt();
        let shrink = (2.0 / length).min(1.0);
        slope += shrink * step[0];
        intercept += shrink * step[1];
        if length < 1e-9 {
            break;
        }
    }
    [slope, intercept]
}

fn association(model: &Model, calibrations: &[Calibration], parameters: &[f64], train: &Examples) -> Association {
    let blocks: Vec<std::ops::Range<usize>> = model.label_ids().map(|label| model.block(label)).collect();
    let mut beliefs = vec![0.0; train.beliefs().values().len()];
    let mut label_of = vec![(0, 0); model.n_categories()];
    for (label, block) in blocks.iter().enumerate() {
        block.clone().enumerate().for_each(|(category, at)| label_of[at] = (label, category));
    }
    for row in 0..train.n_rows() {
        for (label, block) in blocks.iter().enumerate() {
            let given = &train.beliefs().row(row)[block.clone()];
            let logs: Vec<f64> = match calibrations[label] {
                Calibration::Identity => given.iter().map(|belief| belief.ln()).collect(),
                _ => smooth_logs(given).collect(),
            };
            let first = row * model.n_categories() + block.start;
            calibrations[label].apply(parameters, &logs, |category, log| beliefs[first + category] = log.exp());
        }
    }
    Association::new(train.n_rows(), &blocks, |row, at| {
        let (label, category) = label_of[at];
        let truth = train.truths()[row][label]?;
        Some(f64::from(u8::from(truth == category)) - beliefs[row * model.n_categories() + at])
    })
}

/// The cliques of the experts' rules, by connected part.
fn expert_blocks(sizes: &[usize], experts: &[Vec<usize>]) -> Result<Vec<Vec<Vec<usize>>>> {
    let tree = CliqueTree::new(sizes, experts)?;
    let mut blocks: std::collections::BTreeMap<usize, Vec<Vec<usize>>> = Default::default();
    let root = |mut clique: usize| {
        while let Some(parent) = tree.cliques[clique].parent {
            clique = parent;
        }
        clique
    };
    for (index, clique) in tree.cliques.iter().enumerate() {
        if clique.labels.len() > 1 {
            blocks.entry(root(index)).or_default().push(clique.labels.clone());
        }
    }
    Ok(blocks.into_values().collect())
}

fn expert_shape(model: &Model, rule: &Rule, scope: &[usize], tree: &CliqueTree) -> RuleShape {
    let clique = tree.clique_of(scope).expect("the tree was made for the rules");
    let mut assignment = vec![0; model.labels().len()];
    let size: usize = scope.iter().map(|&label| tree.sizes[label]).product();
    let silent = (0..size).map(|mut entry| {
        for &label in scope.iter().rev() {
            assignment[label] = entry % tree.sizes[label];
            entry /= tree.sizes[label];
        }
        rule.outcome(&assignment)[0]
    });
    let silent = silent.collect();
    RuleShape {
        clique,
        labels: scope.to_vec(),
        of_clique: tree.projection(clique, scope),
        silence: Silence::Given(silent),
        probability: Probability::Given(rule.probability()),
    }
}

/// The base with the learned rules.
fn rebuilt(base: &Model, problem: &Problem, parameters: &[f64]) -> Result<Model> {
    let mut builder = base.edit();
    for rule in &problem.rules {
        let (Silence::Learned(start), Probability::Given(p)) = (&rule.silence, rule.probability) else { continue };
        let mut at = *start;
        let mut inhibitions = Vec::new();
        for &label in &rule.labels {
            for category in 0..problem.tree.sizes[label] {
                if parameters[at] < 1.0 {
                    inhibitions.push(Inhibition {
                        label: LabelId::new(label),
                        category: CategoryId::new(category),
                        probability: parameters[at],
                    });
                }
                at += 1;
            }
        }
        builder = builder.add_rule(Rule::new(p, Body::NoisyOr(NoisyOr::new(inhibitions))));
    }
    builder.build()
}

impl Learned {
    /// Beliefs calibrated as was learned.
    pub fn calibrated(&self, examples: &Examples) -> Result<crate::BeliefMatrix> {
        let rows = self.problem.rows(examples, false);
        let n_categories = self.model.n_categories();
        let mut matrix = crate::BeliefMatrix::new(&self.model);
        let mut cells = vec![None; n_categories];
        for row in 0..rows.n_rows {
            let mut start = 0;
            for (size, calibration) in self.problem.tree.sizes.iter().zip(&self.problem.calibrations) {
                let logs = &rows.log_beliefs[row * n_categories + start..][..*size];
                calibration.apply(&self.parameters, logs, |category, log| cells[start + category] = Some(log.exp()));
                start += size;
            }
            matrix.push(&cells, crate::Normalize::Always)?;
        }
        Ok(matrix)
    }

    /// The typical combinations with ln w.
    pub fn combinations(&self) -> Vec<(&[usize], f64)> {
        let Some(typical) = &self.problem.typical else { return Vec::new() };
        let weight = |at: usize| typical.log_weight(&self.parameters, at, 0.0);
        typical.combinations.iter().enumerate().map(|(at, s)| (&s.categories[..], weight(at))).collect()
    }

    /// The mean joint log-likelihood of some rows.
    pub fn mean_log_likelihood(&self, examples: &Examples) -> f64 {
        let rows = self.problem.rows(examples, false);
        self.problem.value(&self.parameters, &rows, &(0..rows.n_rows).collect::<Vec<_>>())
    }
}
