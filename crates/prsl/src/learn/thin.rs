//! What the thin recipe learns: noisy-or rules inside the cliques of a thin tree, calibrators and typical combinations, together.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::adam::Range;
use super::calibration::{Calibration, smooth_logs};
use super::climb::{Pull, Start};
use super::clique_tree::CliqueTree;
use super::examples::Examples;
use super::factor::{Probability, RuleShape, Silence};
use super::learner::Learner;
use super::objective::{Problem, Rows};
use super::scopes::{Association, thin_tree};
use super::typical::Typical;
use crate::belief::BeliefOrigin;
use crate::calibrate::{Calibrate, CalibrationData, CalibrationMethod, Calibrator};
use crate::error::Result;
use crate::label::LabelId;
use crate::model::Model;
use crate::rule::Rule;

/// How much is learned: what the validation rows decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Size {
    /// Labels of a group that rules are learned about, less one.
    pub width: usize,
    /// Rules learned about each group.
    pub rules_per_group: usize,
}

/// Inhibition probabilities stay above this.
const LEAST_INHIBITION: f64 = 1e-4;
/// Probabilities of experts' rules, where they are learned, stay this far from 0, 1/2 and 1.
const MARGIN: f64 = 1e-4;
/// How far the logarithm of a combination's weight, and calibrators' numbers, may go.
const FAR: f64 = 60.0;

/// A problem, and where to begin.
pub(crate) struct Task {
    pub(crate) problem: Problem,
    pub(crate) start: Start,
}

impl Task {
    /// Rules of this size beside those of `base`.
    pub(crate) fn new(settings: &Learner, size: Size, base: &Model, train: &Examples) -> Result<Self> {
        let sizes: Vec<usize> = base.labels().iter().map(|label| label.n_categories()).collect();
        let mut start = Start::default();
        let mut calibrations = Vec::with_capacity(sizes.len());
        for label in base.label_ids() {
            calibrations.push(settings.calibration(base, label, train, &mut start)?);
        }
        let experts: Vec<Vec<usize>> = base
            .rules()
            .iter()
            .map(|rule| rule.scope().iter().map(|label| label.index()).collect())
            .collect();
        let blocks = expert_blocks(&sizes, &experts)?;
        let association = association(base, &calibrations, &start.parameters, train);
        let groups =
            if size.rules_per_group == 0 { Vec::new() } else { thin_tree(&association, size.width, &blocks) };
        let scopes: Vec<Vec<usize>> = experts.iter().chain(&groups).cloned().collect();
        let tree = CliqueTree::new(&sizes, &scopes)?;
        let mut rules = Vec::new();
        for (rule, scope) in base.rules().iter().zip(&experts) {
            rules.push(settings.expert(base, rule, scope, &tree, &mut start));
        }
        let mut rng = ChaCha8Rng::seed_from_u64(settings.seed);
        for group in &groups {
            for _ in 0..size.rules_per_group {
                rules.push(settings.learned(group, &tree, train, &mut start, &mut rng));
            }
        }
        let mut of_clique = vec![Vec::new(); tree.cliques.len()];
        rules.iter().enumerate().for_each(|(rule, shape)| of_clique[shape.clique].push(rule));
        let typical = if settings.typical { settings.combinations(train, &tree, &mut start) } else { None };
        let n_parameters = start.parameters.len();
        let given = base.labels().iter().map(|label| label.calibrator().clone()).collect();
        let problem = Problem { tree, rules, of_clique, calibrations, given, typical, n_parameters };
        Ok(Self { problem, start })
    }
}

impl Learner {
    /// A calibrator to be learned, which begins where it is best without rules.
    fn calibration(
        &self,
        model: &Model,
        label: LabelId,
        train: &Examples,
        start: &mut Start,
    ) -> Result<Calibration> {
        let n = model.label(label).n_categories();
        if !self.calibrate || model.label(label).classifier().is_none() {
            return Ok(Calibration::Identity);
        }
        let method = CalibrationMethod::Platt.suited_to(n);
        let fitted = CalibrationData::of_label(train.beliefs(), label, train.truths())?.fit(method)?;
        let first = start.parameters.len();
        let range = Range { learning_rate: self.other_rate, low: -FAR, high: FAR };
        for value in fitted.parameters() {
            start.add(
                value.clamp(-FAR, FAR),
                range,
                Pull { to: value, strength: self.pull / total(train), slope: 0.0 },
            );
        }
        Ok(if n == 2 { Calibration::Platt(first) } else { Calibration::Dirichlet(first) })
    }

    fn learned(
        &self,
        group: &[usize],
        tree: &CliqueTree,
        train: &Examples,
        start: &mut Start,
        rng: &mut ChaCha8Rng,
    ) -> RuleShape {
        let clique = tree.clique_of(group).expect("the tree was made for the groups");
        let shape = RuleShape {
            clique,
            labels: group.to_vec(),
            of_clique: tree.projection(clique, group),
            silence: Silence::Learned(start.parameters.len()),
            probability: Probability::Given(self.probability),
        };
        let range = Range { learning_rate: self.learning_rate, low: LEAST_INHIBITION, high: 1.0 };
        for _ in 0..shape.n_inhibitions(&tree.sizes) {
            // What lets a category fire has to be worth it.
            start.add(
                rng.random_range(0.9..1.0),
                range,
                Pull { to: 1.0, strength: 0.0, slope: -self.penalty / total(train) },
            );
        }
        shape
    }

    fn expert(
        &self,
        model: &Model,
        rule: &Rule,
        scope: &[usize],
        tree: &CliqueTree,
        start: &mut Start,
    ) -> RuleShape {
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
        let silence = Silence::Given(silent.collect());
        let p = rule.probability();
        // A hard rule stays hard, and a rule that says nothing stays so.
        let is_learned = self.learn_probabilities && p > 0.0 && p < 1.0 && p != 0.5;
        let probability = if is_learned {
            let [low, high] = if p > 0.5 { [0.5 + MARGIN, 1.0 - MARGIN] } else { [MARGIN, 0.5 - MARGIN] };
            let range = Range { learning_rate: self.learning_rate, low, high };
            Probability::Learned(start.add(
                p.clamp(low, high),
                range,
                Pull { to: p, strength: 0.0, slope: 0.0 },
            ))
        } else {
            Probability::Given(p)
        };
        let of_clique = tree.projection(clique, scope);
        RuleShape { clique, labels: scope.to_vec(), of_clique, silence, probability }
    }

    fn combinations(&self, train: &Examples, tree: &CliqueTree, start: &mut Start) -> Option<Typical> {
        let counted = train.truths().iter().map(Vec::as_slice).zip(train.weights().iter().copied());
        let mut typical = Typical::count(counted, &tree.sizes, start.parameters.len())?;
        typical.locate(tree);
        let range = |low: f64| Range { learning_rate: self.other_rate, low, high: FAR };
        let free = |to: f64| Pull { to, strength: 0.0, slope: 0.0 };
        // A normal distribution of standard deviation `spread` around the form of two numbers.
        let strength = 1.0 / (2.0 * self.spread * self.spread * total(train));
        start.add(-1.0, range(-FAR), free(-1.0));
        start.add(0.5, range(0.0), free(0.5));
        for _ in &typical.combinations {
            start.add(0.0, range(-FAR), Pull { to: 0.0, strength, slope: 0.0 });
        }
        Some(typical)
    }
}

impl Problem {
    /// Makes rows ready; `counted` if the combinations were counted in them.
    pub(crate) fn rows(&self, examples: &Examples, counted: bool) -> Rows {
        let (mut log_beliefs, mut is_learned) = (Vec::new(), Vec::new());
        let mut calibrated = Vec::new();
        for row in 0..examples.n_rows() {
            let mut beliefs = examples.beliefs().row(row);
            for (label, size) in self.tree.sizes.iter().enumerate() {
                let block = beliefs.split_off(..*size).expect("a belief for every category");
                let from_classifier =
                    examples.beliefs().origin(row, LabelId::new(label)) == BeliefOrigin::Classifier;
                is_learned.push(from_classifier && self.calibrations[label] != Calibration::Identity);
                if is_learned.last() == Some(&true) {
                    log_beliefs.extend(smooth_logs(block));
                    continue;
                }
                calibrated.clear();
                calibrated.extend_from_slice(block);
                if from_classifier && self.given[label] != Calibrator::Identity {
                    self.given[label].calibrate(block, &mut calibrated);
                }
                log_beliefs.extend(calibrated.iter().map(|belief| belief.ln()));
            }
        }
        let combination = |truths: &Vec<Option<usize>>| {
            let categories: Vec<usize> = truths.iter().copied().collect::<Option<_>>()?;
            self.typical.as_ref()?.index.get(&categories).copied()
        };
        Rows {
            n_rows: examples.n_rows(),
            log_beliefs,
            is_learned,
            truths: examples.truths().iter().flatten().copied().collect(),
            combination: examples.truths().iter().map(combination).collect(),
            weights: examples.weights().to_vec(),
            counted,
        }
    }
}

/// How much all rows count: what is taken from the sum over rows is taken from the mean divided by it.
fn total(examples: &Examples) -> f64 {
    examples.weights().iter().sum::<f64>().max(1.0)
}

/// How far labels go together beyond what the calibrated beliefs know.
fn association(
    model: &Model,
    calibrations: &[Calibration],
    parameters: &[f64],
    train: &Examples,
) -> Association {
    let blocks: Vec<std::ops::Range<usize>> = model.label_ids().map(|label| model.block(label)).collect();
    let of_category: Vec<(usize, usize)> = blocks
        .iter()
        .enumerate()
        .flat_map(|(label, block)| (0..block.len()).map(move |category| (label, category)))
        .collect();
    let n_categories = of_category.len();
    let mut beliefs = vec![0.0; train.n_rows() * n_categories];
    for row in 0..train.n_rows() {
        for (label, block) in blocks.iter().enumerate() {
            let given = &train.beliefs().row(row)[block.clone()];
            let logs: Vec<f64> = match calibrations[label] {
                Calibration::Identity => given.iter().map(|belief| belief.ln()).collect(),
                _ => smooth_logs(given).collect(),
            };
            let first = row * n_categories + block.start;
            calibrations[label]
                .apply(parameters, &logs, |category, log| beliefs[first + category] = log.exp());
        }
    }
    Association::new(train.n_rows(), &blocks, |row, at| {
        let (label, category) = of_category[at];
        let truth = train.truths()[row][label]?;
        Some(f64::from(u8::from(truth == category)) - beliefs[row * n_categories + at])
    })
}

/// The cliques of the experts' rules, by connected part.
fn expert_blocks(sizes: &[usize], experts: &[Vec<usize>]) -> Result<Vec<Vec<Vec<usize>>>> {
    let tree = CliqueTree::new(sizes, experts)?;
    let mut blocks: std::collections::BTreeMap<usize, Vec<Vec<usize>>> = Default::default();
    for (index, clique) in tree.cliques.iter().enumerate().filter(|(_, clique)| clique.labels.len() > 1) {
        let root = std::iter::successors(Some(index), |&at| tree.cliques[at].parent)
            .last()
            .expect("itself at least");
        blocks.entry(root).or_default().push(clique.labels.clone());
    }
    Ok(blocks.into_values().collect())
}
