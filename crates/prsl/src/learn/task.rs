//! What is learned: noisy-or rules beside those that are there, calibrators and typical combinations, together.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Mutex;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::adam::Range;
use super::calibration::{Calibration, smooth_logs};
use super::climb::{Pull, Start};
use super::clique_tree::CliqueTree;
use super::examples::Examples;
use super::factor::{Probability, RuleShape, Silence};
use super::learner::{Calibrating, Gradients, Learner};
use super::objective::{Problem, Rows};
use super::old_paper::{Few, loopy_tree};
use super::scopes::{Association, thin_tree};
use super::sweep::LANES;
use super::typical::Typical;
use super::watch::Watch;
use crate::belief::BeliefOrigin;
use crate::calibrator::{Calibrate, Calibrator};
use crate::error::{Error, Result};
use crate::infer::limits::bytes;
use crate::label::{CategoryId, LabelId};
use crate::model::Model;
use crate::rule::{Body, Rule};
use crate::truth::Truth;

/// How much is learned, and how: what the validation rows decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Size {
    /// Rules about groups of labels that hang together as a thin tree: exact at any number of labels.
    Thin {
        /// Labels of a group, less one.
        width: usize,
        /// Rules about each group.
        rules_per_group: usize,
        /// Rules about all labels. Each doubles the time.
        wide: usize,
    },
    /// Rules about any labels, as the paper has them.
    Paper {
        /// How many.
        rules: usize,
    },
}

impl Size {
    /// Nothing new: only what is there already is learned.
    pub const NOTHING: Self = Self::Thin { width: 0, rules_per_group: 0, wide: 0 };

    /// How many inhibition probabilities it has, about; the paper's recipe sees to it that most of them are 1.
    pub(crate) fn n_parameters(self, model: &Model) -> Option<usize> {
        let (n_labels, n_categories) = (model.labels().len().max(1), model.n_categories());
        match self {
            Self::Thin { width, rules_per_group, wide } => {
                let n_groups = n_labels.saturating_sub(width).max(1);
                let of_group = (width + 1) * n_categories / n_labels;
                Some(n_groups * rules_per_group * of_group + wide * n_categories)
            }
            Self::Paper { .. } => None,
        }
    }

    /// How many entries the tables of its groups have, at most; the paper's recipe grows its own as it needs them.
    pub(crate) fn n_entries(self, model: &Model) -> f64 {
        let Self::Thin { width, .. } = self else { return 0.0 };
        let mut sizes: Vec<usize> = model.labels().iter().map(|label| label.n_categories()).collect();
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        let n_groups = sizes.len().saturating_sub(width).max(1);
        n_groups as f64 * sizes.iter().take(width + 1).map(|&size| size as f64).product::<f64>()
    }

    /// Whether it has rules about groups of labels.
    pub(crate) fn has_groups(self) -> bool {
        matches!(self, Self::Thin { rules_per_group: 1.., .. })
    }

    /// Whether it has rules about all labels.
    pub(crate) fn is_wide(self) -> bool {
        matches!(self, Self::Thin { wide: 1.., .. })
    }

    /// The same with one rule about all labels, where no group is about all of them anyway.
    pub(crate) fn widened(self, n_labels: usize) -> Option<Self> {
        match self {
            Self::Thin { width, rules_per_group, wide: 0 }
                if rules_per_group == 0 || width + 1 < n_labels =>
            {
                Some(Self::Thin { width, rules_per_group, wide: 1 })
            }
            _ => None,
        }
    }

    /// The same where there are no more labels than this.
    pub(crate) fn at_most(self, n_labels: usize) -> Self {
        match self {
            Self::Thin { width, rules_per_group, wide } => {
                Self::Thin { width: width.min(n_labels.saturating_sub(1)), rules_per_group, wide }
            }
            Self::Paper { .. } => self,
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |n: usize| if n == 1 { "" } else { "s" };
        match *self {
            Size::NOTHING => f.write_str("no new rules"),
            Size::Thin { rules_per_group: 0, wide: n, .. } => {
                write!(f, "{n} rule{} about all labels", plural(n))
            }
            Size::Thin { width, rules_per_group: n, wide } => {
                write!(
                    f,
                    "{n} rule{} about each group of {} label{}",
                    plural(n),
                    width + 1,
                    plural(width + 1)
                )?;
                if wide > 0 { write!(f, ", {wide} about all of them") } else { Ok(()) }
            }
            Size::Paper { rules: n } => write!(f, "{n} rule{}", plural(n)),
        }
    }
}

/// What the validation rows choose from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Candidate {
    pub(crate) size: Size,
    /// Whether typical combinations are learned.
    pub(crate) typical: bool,
    /// Whether beliefs are calibrated, or taken as they are given.
    pub(crate) calibrated: bool,
}

/// What is learned beside, as it is given and as it is calibrated.
pub(crate) struct Bases {
    pub(crate) given: Model,
    pub(crate) calibrated: Model,
    groups: RefCell<Groups>,
}

/// What has been found out about labels that go together: the same for all candidates.
#[derive(Default)]
struct Groups {
    association: Option<Association>,
    of_width: BTreeMap<usize, Vec<Vec<usize>>>,
}

impl Bases {
    pub(crate) fn new(given: Model, calibrated: Model) -> Self {
        Self { given, calibrated, groups: RefCell::default() }
    }

    /// The groups of labels that rules of this width are learned about; `None` if the watch says to stop.
    fn groups(
        &self,
        width: usize,
        blocks: &[Vec<Vec<usize>>],
        train: &Examples,
        watch: &mut Watch,
    ) -> Option<Vec<Vec<usize>>> {
        let mut known = self.groups.borrow_mut();
        if let Some(groups) = known.of_width.get(&width) {
            return Some(groups.clone());
        }
        if known.association.is_none() {
            known.association = Some(association(&self.calibrated, train, watch)?);
        }
        let groups = thin_tree(known.association.as_ref()?, width, blocks, watch)?;
        known.of_width.insert(width, groups.clone());
        Some(groups)
    }

    /// The base of a candidate.
    pub(crate) fn of(&self, candidate: Candidate) -> &Model {
        if candidate.calibrated { &self.calibrated } else { &self.given }
    }
}

/// Inhibition probabilities stay above this.
pub(crate) const LEAST_INHIBITION: f64 = 1e-4;
/// Probabilities of experts' rules, where they are learned, stay this far from 0, 1/2 and 1.
const MARGIN: f64 = 1e-4;
/// A noisy-or rule of the base has a table of up to so many entries.
const MAX_EXPERT_ENTRIES: f64 = (1u64 << 16) as f64;
/// So many rules without a table, at most.
const MAX_WIDE: usize = 10;
/// How far the logarithm of a combination's weight, and calibrators' numbers, may go.
const FAR: f64 = 60.0;
/// Where the two numbers begin that the weights of all combinations have in common.
const COMMON: [f64; 2] = [-1.0, 0.5];

/// A problem, and where to begin.
pub(crate) struct Task {
    pub(crate) problem: Problem,
    pub(crate) start: Start,
    /// What keeps the paper's rules in shape.
    pub(crate) few: Option<Few>,
}

impl Task {
    /// What a candidate adds to its base, which has calibrators already where they are to be learned; `None` if the watch says
    /// to stop.
    pub(crate) fn new(
        settings: &Learner,
        candidate: Candidate,
        bases: &Bases,
        train: &Examples,
        watch: &mut Watch,
    ) -> Result<Option<Self>> {
        let Candidate { size, typical, calibrated } = candidate;
        let base = bases.of(candidate);
        let sizes: Vec<usize> = base.labels().iter().map(|label| label.n_categories()).collect();
        let mut start = Start::default();
        let mut calibrations = Vec::with_capacity(sizes.len());
        for label in base.label_ids() {
            calibrations.push(match calibrated {
                true => settings.calibration(base, label, train, &mut start),
                false => Calibration::Identity,
            });
        }
        let is_loopy = settings.gradients == Gradients::Loopy;
        let experts: Vec<Vec<usize>> = base
            .rules()
            .iter()
            .map(|rule| rule.scope().iter().map(|label| label.index()).collect())
            .collect();
        let is_wide: Vec<bool> = match size {
            Size::Thin { .. } => base.rules().iter().map(|rule| is_wide(rule, &sizes)).collect(),
            Size::Paper { .. } => vec![false; experts.len()],
        };
        let narrow = experts.iter().zip(&is_wide).filter(|(_, is_wide)| !**is_wide);
        let narrow: Vec<Vec<usize>> = narrow.map(|(scope, _)| scope.clone()).collect();
        // Refuses scopes that are too much, before tables are made for them.
        check_wide(is_wide.iter().filter(|is_wide| **is_wide).count())?;
        let of_experts =
            if is_loopy { loopy_tree(&sizes, &narrow)? } else { CliqueTree::new(&sizes, &narrow)? };
        let mut rules = Vec::new();
        for ((rule, scope), is_wide) in base.rules().iter().zip(&experts).zip(is_wide) {
            rules.push(match is_wide {
                true => settings.wide_expert(base, rule, train, &mut start),
                false => settings.expert(base, rule, scope, train, &mut start),
            });
        }
        let mut tree = of_experts.clone();
        if let Size::Thin { width, rules_per_group, wide } = size {
            let mut rng = ChaCha8Rng::seed_from_u64(settings.seed);
            if rules_per_group > 0 {
                settings.check_pairs(sizes.len())?;
                let blocks = expert_blocks(&of_experts);
                let Some(groups) = bases.groups(width, &blocks, train, watch) else { return Ok(None) };
                let groups = known_parts(groups, train);
                let scopes: Vec<Vec<usize>> = narrow.iter().chain(&groups).cloned().collect();
                tree = CliqueTree::new(&sizes, &scopes)?;
                settings.check_tables(&tree)?;
                for group in &groups {
                    let group = tree.in_order(group);
                    for _ in 0..rules_per_group {
                        rules.push(settings.learned(&group, &sizes, train, &mut start, &mut rng));
                    }
                }
            }
            for _ in 0..wide {
                rules.push(settings.wide(&sizes, train, &mut start, &mut rng));
            }
        }
        let typical = settings.combinations(typical, base, train, &sizes, &mut start);
        let given = base.labels().iter().map(|label| label.calibrator().clone()).collect();
        let (of_clique, reaches) = (Vec::new(), Vec::new());
        let mut problem = Problem {
            tree,
            rules,
            of_clique,
            calibrations,
            given,
            typical,
            reaches,
            is_loopy,
            n_parameters: 0,
            spare: Mutex::default(),
            spare_tables: Mutex::default(),
        };
        let few = match size {
            Size::Thin { .. } => {
                let tree = problem.tree.clone();
                problem.arrange(tree);
                None
            }
            Size::Paper { rules } => {
                let numbers = [settings.probability, settings.learning_rate];
                Some(Few::add(&settings.paper, rules, numbers, settings.seed, &mut problem, &mut start)?)
            }
        };
        problem.n_parameters = start.parameters.len();
        Ok(Some(Self { problem, start, few }))
    }

    /// The mean log-likelihood of some rows; the gradient of what is climbed at this step is added.
    pub(crate) fn gradient(
        &self,
        parameters: &[f64],
        step: usize,
        train: &Rows,
        rows: &[usize],
        gradient: &mut [f64],
    ) -> f64 {
        let value = self.problem.gradient(parameters, train, rows, gradient);
        for ((slope, pull), parameter) in gradient.iter_mut().zip(&self.start.pulls).zip(parameters) {
            *slope -= 2.0 * pull.strength * (parameter - pull.to) + pull.slope;
        }
        if let Some(few) = &self.few {
            few.add_gradient(&self.problem.tree.sizes, parameters, &self.start.ranges, step, gradient);
        }
        value
    }

    /// Brings parameters where they may be, and the problem where they are.
    pub(crate) fn settle(&mut self, parameters: &mut [f64]) -> Result<()> {
        if let Some(few) = &mut self.few {
            few.truncate(&self.problem.tree.sizes, parameters);
            few.connect(&mut self.problem, parameters)?;
        }
        Ok(())
    }
}

/// Whether a rule of the base gets no table: a noisy-or rule about many labels, such as learning finds, too.
fn is_wide(rule: &Rule, sizes: &[usize]) -> bool {
    let n_entries = rule.scope().iter().map(|label| sizes[label.index()] as f64).product::<f64>();
    matches!(rule.body(), Body::NoisyOr(_)) && n_entries > MAX_EXPERT_ENTRIES
}

/// Each rule without a table doubles the time.
fn check_wide(n: usize) -> Result<()> {
    if n <= MAX_WIDE {
        return Ok(());
    }
    Err(Error::TooCostly {
        what: "learning".to_owned(),
        needed: format!("{n} rules about many labels, each of which doubles the time"),
        limit: format!("{MAX_WIDE} of them"),
        advice: "give the rules fewer labels".to_owned(),
    })
}

/// What each entry of a clique's table takes in bytes: its potential, and eight rows side by side, beside their derivatives.
const ENTRY_BYTES: f64 = 8.0 * (2 + LANES) as f64;
/// What each pair of labels takes in bytes, where groups of labels are looked for.
const PAIR_BYTES: f64 = 8.0;

impl Learner {
    /// Whether groups of labels fit the memory: how far each two labels go together, and the tables of the groups.
    pub(crate) fn fits(&self, n_labels: usize, n_entries: f64) -> bool {
        let pairs = n_labels as f64 * n_labels as f64 * PAIR_BYTES;
        pairs.max(n_entries * ENTRY_BYTES) <= self.memory as f64
    }

    fn check_pairs(&self, n_labels: usize) -> Result<()> {
        if self.fits(n_labels, 0.0) {
            return Ok(());
        }
        let needed = n_labels as f64 * n_labels as f64 * PAIR_BYTES;
        Err(self.too_large(needed, &format!("the pairs of {n_labels} labels")))
    }

    fn check_tables(&self, tree: &CliqueTree) -> Result<()> {
        if self.fits(0, tree.n_entries as f64) {
            return Ok(());
        }
        let needed = tree.n_entries as f64 * ENTRY_BYTES;
        Err(self.too_large(needed, &format!("tables of {} entries", tree.n_entries)))
    }

    fn too_large(&self, needed: f64, what: &str) -> Error {
        Error::TooCostly {
            what: "learning rules about groups of labels".to_owned(),
            needed: format!("{} for {what}", bytes(needed)),
            limit: bytes(self.memory as f64),
            advice: "raise the memory limit, or learn about fewer labels, or smaller groups of them"
                .to_owned(),
        }
    }

    /// A calibrator to be learned, which begins where it is best without rules: where the model has it.
    fn calibration(&self, model: &Model, label: LabelId, train: &Examples, start: &mut Start) -> Calibration {
        let is_settled = train.n_seen(label) < 2;
        let label = model.label(label);
        if self.calibrate != Calibrating::Joint || label.classifier().is_none() || is_settled {
            return Calibration::Identity;
        }
        let first = start.parameters.len();
        let range = Range { learning_rate: self.other_rate, low: -FAR, high: FAR };
        for value in label.calibrator().parameters() {
            let pull = Pull { to: value, strength: self.pull / total(train), slope: 0.0 };
            start.add(value.clamp(-FAR, FAR), range, pull);
        }
        match label.calibrator() {
            Calibrator::Platt { .. } => Calibration::Platt(first),
            Calibrator::Dirichlet(_) => Calibration::Dirichlet(first),
            _ => Calibration::Identity,
        }
    }

    /// A rule about these labels, to be learned from scratch.
    fn learned(
        &self,
        labels: &[usize],
        sizes: &[usize],
        train: &Examples,
        start: &mut Start,
        rng: &mut ChaCha8Rng,
    ) -> RuleShape {
        let places = labels.iter().map(|&label| {
            let place = start.parameters.len();
            (0..sizes[label]).for_each(|_| self.inhibition(rng.random_range(0.9..1.0), train, start));
            place
        });
        let silence = Silence::Learned(places.collect());
        RuleShape {
            labels: labels.to_vec(),
            home: None,
            silence,
            probability: Probability::Given(self.probability),
        }
    }

    /// The same about all labels.
    fn wide(&self, sizes: &[usize], train: &Examples, start: &mut Start, rng: &mut ChaCha8Rng) -> RuleShape {
        let silence = Silence::Wide { start: start.parameters.len(), is_learned: true };
        let n_categories: usize = sizes.iter().sum();
        (0..n_categories).for_each(|_| self.inhibition(rng.random_range(0.9..1.0), train, start));
        let labels = (0..sizes.len()).collect();
        RuleShape { labels, home: None, silence, probability: Probability::Given(self.probability) }
    }

    /// A category's q in a rule: what lets it fire has to be worth it.
    fn inhibition(&self, q: f64, train: &Examples, start: &mut Start) {
        let range = Range { learning_rate: self.learning_rate, low: LEAST_INHIBITION, high: 1.0 };
        start.add(q, range, Pull { slope: -self.penalty / total(train), ..Pull::NONE });
    }

    /// A rule that is there already: it stays as it is, or is where learning begins.
    fn expert(
        &self,
        model: &Model,
        rule: &Rule,
        scope: &[usize],
        train: &Examples,
        start: &mut Start,
    ) -> RuleShape {
        let silence = match rule.body() {
            Body::NoisyOr(body) if self.relearns(rule) => {
                let places = scope.iter().map(|&label| {
                    let place = start.parameters.len();
                    for category in 0..model.label(LabelId::new(label)).n_categories() {
                        let q = body.inhibition(LabelId::new(label), CategoryId::new(category));
                        self.inhibition(q.max(LEAST_INHIBITION), train, start);
                    }
                    place
                });
                Silence::Learned(places.collect())
            }
            _ => Silence::Given(silent(model, rule, scope)),
        };
        let p = rule.probability();
        // A hard rule stays hard, and a rule that says nothing stays so.
        let is_learned = self.learn_probabilities && !rule.is_fixed() && p > 0.0 && p < 1.0 && p != 0.5;
        let probability = if is_learned {
            let [low, high] = if p > 0.5 { [0.5 + MARGIN, 1.0 - MARGIN] } else { [MARGIN, 0.5 - MARGIN] };
            let range = Range { learning_rate: self.learning_rate, low, high };
            Probability::Learned(start.add(p.clamp(low, high), range, Pull::NONE))
        } else {
            Probability::Given(p)
        };
        RuleShape { labels: scope.to_vec(), home: None, silence, probability }
    }

    /// A noisy-or rule that is there already, about so many labels that it gets no table. Its probability stays as it is.
    fn wide_expert(&self, model: &Model, rule: &Rule, train: &Examples, start: &mut Start) -> RuleShape {
        let Body::NoisyOr(body) = rule.body() else { unreachable!("only noisy-or rules are wide") };
        let is_learned = self.relearns(rule);
        let silence = Silence::Wide { start: start.parameters.len(), is_learned };
        for label in model.label_ids() {
            for category in 0..model.label(label).n_categories() {
                let q = body.inhibition(label, CategoryId::new(category));
                if is_learned {
                    self.inhibition(q.max(LEAST_INHIBITION), train, start);
                } else {
                    start.add(q, Range { learning_rate: self.learning_rate, low: q, high: q }, Pull::NONE);
                }
            }
        }
        let labels = (0..model.labels().len()).collect();
        RuleShape { labels, home: None, silence, probability: Probability::Given(rule.probability()) }
    }

    /// Whether what a rule says is learned anew.
    pub(crate) fn relearns(&self, rule: &Rule) -> bool {
        self.relearn && !rule.is_fixed() && matches!(rule.body(), Body::NoisyOr(_))
    }

    /// Combinations: those of the base stay as they are unless they are to be learned anew and occur, then they begin there.
    fn combinations(
        &self,
        are_learned: bool,
        base: &Model,
        train: &Examples,
        sizes: &[usize],
        start: &mut Start,
    ) -> Option<Typical> {
        let given: BTreeMap<Vec<usize>, f64> = base
            .typical()
            .iter()
            .map(|combination| (combination.categories().to_vec(), combination.weight().ln()))
            .collect();
        let counted = train.truths().iter().map(Truth::indices).zip(train.weights().iter().copied());
        let counted = counted.filter(|_| are_learned);
        let occurs = |categories: &Vec<usize>| {
            let is_it = |truth: &Truth| truth.indices().iter().zip(categories).all(|(t, c)| *t == Some(*c));
            train.truths().iter().zip(train.weights()).any(|(truth, weight)| *weight > 0.0 && is_it(truth))
        };
        let stays =
            |(categories, _): &(&Vec<usize>, &f64)| !(self.relearn && are_learned && occurs(categories));
        let fixed = given.iter().filter(stays).map(|(categories, log)| (categories.clone(), *log)).collect();
        let typical = Typical::count(counted, &fixed, sizes, start.parameters.len())?;
        let range = |low: f64| Range { learning_rate: self.other_rate, low, high: FAR };
        // A normal distribution of standard deviation `spread` around the form of two numbers.
        let strength = 1.0 / (2.0 * self.spread * self.spread * total(train));
        let [a, b] = COMMON;
        start.add(a, range(-FAR), Pull::NONE);
        start.add(b, range(0.0), Pull::NONE);
        for (at, combination) in typical.combinations.iter().enumerate() {
            let learned_before = given.get(&combination.categories).filter(|_| combination.fixed.is_none());
            let own = learned_before.map_or(0.0, |log| log - a - b * typical.surplus(at, 0.0));
            start.add(own.clamp(-FAR, FAR), range(-FAR), Pull { strength, ..Pull::NONE });
        }
        Some(typical)
    }
}

/// The probability that a rule stays silent, for each entry of its table.
fn silent(model: &Model, rule: &Rule, scope: &[usize]) -> Vec<f64> {
    let size = |label: usize| model.label(LabelId::new(label)).n_categories();
    let n_entries: usize = scope.iter().map(|&label| size(label)).product();
    let mut assignment = vec![0; model.labels().len()];
    let silent = (0..n_entries).map(|mut entry| {
        for &label in scope.iter().rev() {
            assignment[label] = entry % size(label);
            entry /= size(label);
        }
        rule.outcome_at(&assignment)[0]
    });
    silent.collect()
}

impl Problem {
    /// Makes rows ready; `counted` if the combinations were counted in them.
    pub(crate) fn rows(&self, examples: &Examples, counted: bool) -> Rows {
        let (mut log_beliefs, mut is_learned) = (Vec::new(), Vec::new());
        let mut calibrated = Vec::new();
        for row in 0..examples.n_rows() {
            let mut beliefs = examples.beliefs().values_of(row);
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
        let combination = |truth: &Truth| {
            let categories: Vec<usize> = truth.indices().iter().copied().collect::<Option<_>>()?;
            self.typical.as_ref()?.index.get(&categories).copied()
        };
        Rows {
            n_rows: examples.n_rows(),
            log_beliefs,
            is_learned,
            truths: examples.truths().iter().flat_map(Truth::indices).copied().collect(),
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
fn association(model: &Model, train: &Examples, watch: &mut Watch) -> Option<Association> {
    let blocks: Vec<std::ops::Range<usize>> = model.label_ids().map(|label| model.block(label)).collect();
    let of_category: Vec<(usize, usize)> = blocks
        .iter()
        .enumerate()
        .flat_map(|(label, block)| (0..block.len()).map(move |category| (label, category)))
        .collect();
    let n_categories = of_category.len();
    let mut beliefs = Vec::with_capacity(train.n_rows() * n_categories);
    for row in 0..train.n_rows() {
        for label in model.label_ids() {
            let given = train.beliefs().belief(row, label);
            let first = beliefs.len();
            beliefs.extend_from_slice(given);
            if train.beliefs().origin(row, label) == BeliefOrigin::Classifier {
                model.label(label).calibrator().calibrate(given, &mut beliefs[first..]);
            }
        }
    }
    let residual = |row: usize, at: usize| {
        let (label, category) = of_category[at];
        let truth = train.truths()[row].indices()[label]?;
        Some(f64::from(u8::from(truth == category)) - beliefs[row * n_categories + at])
    };
    Association::new(train.n_rows(), &blocks, residual, watch)
}

/// Groups without labels of which nothing is ever known: what they mean is for the experts' rules to say.
fn known_parts(mut groups: Vec<Vec<usize>>, train: &Examples) -> Vec<Vec<usize>> {
    groups.iter_mut().for_each(|group| group.retain(|&label| train.n_seen(LabelId::new(label)) > 0));
    groups.retain(|group| group.len() > 1);
    groups
}

/// The cliques of the experts' rules, by connected part.
fn expert_blocks(tree: &CliqueTree) -> Vec<Vec<Vec<usize>>> {
    let mut blocks: BTreeMap<usize, Vec<Vec<usize>>> = BTreeMap::new();
    for (index, clique) in tree.cliques.iter().enumerate().filter(|(_, clique)| clique.labels.len() > 1) {
        let root = std::iter::successors(Some(index), |&at| tree.cliques[at].parent)
            .last()
            .expect("itself at least");
        blocks.entry(root).or_default().push(clique.labels.clone());
    }
    blocks.into_values().collect()
}
