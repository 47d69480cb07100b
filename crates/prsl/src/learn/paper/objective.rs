//! The joint log-likelihood of rows, and its gradient in the inhibition probabilities.
//!
//! A row with the known labels L′ = l′ has the log-likelihood
//!
//! ```text
//! ln Z(x, L′ = l′) − ln Z(x)        Z = Σ_l ∏ⱼ πⱼ(lⱼ) ∏ₖ fₖ(l)
//! ```
//!
//! The gradient of ln Z is derived in [`super::engine`]. If all labels are known, the first term is the logarithm of a
//! product. If some are known, it takes a second pass with the beliefs of all other categories set to 0. If none is known,
//! the row does not count. Checked in `the_gradient_agrees_with_differences` and `the_value_agrees_with_enumeration`.

use rayon::prelude::*;

use super::engine::{Engine, Worker};
use super::joint::Joint;
use super::lanes::{LANES, Lane};
use super::loopy::{Loopy, check_tables};
use super::rows::{Known, Rows};
use super::space::{Expert, Space, noisy_or};
use super::tree::Tree;
use super::{Gradients, PaperLearner};
use crate::error::Result;
use crate::label::LabelId;
use crate::learn::watch::Watch;
use crate::metrics::IMPOSSIBLE;
use crate::model::Model;

/// Maximum number of assignments for one table over all labels: 19 yes/no labels, as birds has.
const MAX_JOINT: f64 = (1u64 << 19) as f64;
/// Number of rows whose sums one task adds up, unless inference is expensive. It must not depend on the number of threads.
const CHUNK: usize = 3 * LANES;
/// From this number of operations on, eight rows are one task.
const EXPENSIVE: usize = 1 << 19;
/// Number of tasks between two questions whether to stop.
const TASKS: usize = 16;

/// The log-likelihood as a function of the inhibition probabilities.
pub(super) struct Objective {
    pub(super) space: Space,
    pub(super) experts: Vec<Expert>,
    probability: f64,
    q: Vec<f64>,
    /// The labels of each learned rule.
    connected: Vec<Vec<usize>>,
    engine: Box<dyn Engine>,
}

/// The sums of some rows.
#[derive(Default)]
struct Sums {
    objective: f64,
    weight: f64,
    /// The sums of the engine, from ln Z.
    of_engine: Vec<f64>,
    /// The expectations of rows with all truths known.
    of_truths: Vec<f64>,
}

impl Objective {
    /// The objective of rules with these q beside the rules of a base model.
    pub(super) fn new(settings: &PaperLearner, base: &Model, q: &[f64]) -> Result<Self> {
        let space = Space::new(base.labels().iter().map(|label| label.n_categories()).collect());
        let scope = |rule: &crate::rule::Rule| rule.scope().into_iter().map(LabelId::index).collect();
        let scopes: Vec<Vec<usize>> = base.rules().iter().map(scope).collect();
        // Tables are made only after their sizes are checked.
        match settings.gradients {
            Gradients::Loopy => check_tables(&space, &scopes)?,
            Gradients::Exact => {
                super::clique_tree::CliqueTree::new(&space, &scopes)?;
            }
        }
        let experts: Vec<Expert> = base.rules().iter().map(|rule| Expert::new(base, &space, rule)).collect();
        let engine: Box<dyn Engine> = match settings.gradients {
            Gradients::Loopy => Box::new(Loopy::new(&space, &experts, settings.probability)),
            Gradients::Exact => exact(settings, &space, &experts, q)?,
        };
        Self::with_engine(space, experts, settings.probability, engine, q)
    }

    pub(super) fn with_engine(
        space: Space,
        experts: Vec<Expert>,
        probability: f64,
        engine: Box<dyn Engine>,
        q: &[f64],
    ) -> Result<Self> {
        let (own, connected) = (Vec::new(), Vec::new());
        let mut objective = Self { space, experts, probability, q: own, connected, engine };
        objective.set(q)?;
        Ok(objective)
    }

    /// Takes new parameters.
    pub(super) fn set(&mut self, q: &[f64]) -> Result<()> {
        self.engine.set(q)?;
        self.q = q.to_vec();
        self.connected = q.chunks_exact(self.space.n_categories()).map(|q| self.space.connected(q)).collect();
        Ok(())
    }

    /// The mean log-likelihood of all rows; `None` if stopped.
    pub(super) fn value(&self, data: &Rows, watch: &mut Watch) -> Option<f64> {
        let rows: Vec<usize> = (0..data.n_rows).collect();
        let sums = self.sums(data, &rows, false, watch)?;
        Some(if sums.weight > 0.0 { sums.objective / sums.weight } else { 0.0 })
    }

    /// The mean log-likelihood of some rows, and its gradient; `None` if stopped.
    pub(super) fn gradient(&self, data: &Rows, rows: &[usize], watch: &mut Watch) -> Option<(f64, Vec<f64>)> {
        let sums = self.sums(data, rows, true, watch)?;
        if sums.weight == 0.0 {
            return Some((0.0, vec![0.0; self.q.len()]));
        }
        let scale = (1.0 - 2.0 * self.probability) / sums.weight;
        let expectations = self.engine.expectations(sums.of_engine);
        let slope = |((total, truth), q): ((f64, f64), &f64)| scale * (truth + total) / q;
        let gradient = expectations.into_iter().zip(sums.of_truths).zip(&self.q).map(slope);
        Some((sums.objective / sums.weight, gradient.collect()))
    }

    /// Adds up rows in chunks, in the order of the chunks, whatever the number of threads.
    fn sums(&self, data: &Rows, rows: &[usize], with_gradient: bool, watch: &mut Watch) -> Option<Sums> {
        let work = self.engine.work();
        let chunk = if work >= EXPENSIVE { LANES } else { CHUNK };
        let of_chunk = |rows: &[usize]| {
            let mut pass = Pass::new(self, data, with_gradient);
            rows.chunks(LANES).for_each(|group| pass.add(group));
            pass.sums
        };
        let mut sums: Option<Sums> = None;
        for rows in rows.chunks(chunk * TASKS) {
            let parts: Vec<Sums> = if rows.len() <= chunk {
                vec![of_chunk(rows)]
            } else {
                rows.par_chunks(chunk).map(of_chunk).collect()
            };
            sums = sums.into_iter().chain(parts).reduce(Sums::plus);
            if !watch.goes_on(work.saturating_mul(rows.len().div_ceil(LANES))) {
                return None;
            }
        }
        Some(sums.unwrap_or_default())
    }
}

/// Exact inference: one table over all labels if that is cheaper than one sweep over a tree for each rule.
fn exact(settings: &PaperLearner, space: &Space, experts: &[Expert], q: &[f64]) -> Result<Box<dyn Engine>> {
    let p = settings.probability;
    let all: Vec<usize> = (0..space.n_labels()).collect();
    let n_assignments = space.n_entries(&all);
    let n_rules = q.len() / space.n_categories().max(1);
    let fits = n_assignments <= MAX_JOINT && 32.0 * n_assignments <= settings.memory as f64;
    match Tree::new(space, experts, p, settings.memory, q) {
        // An entry of a tree takes about twice as long as an entry of one table.
        Ok(tree) if !fits || n_assignments > (2 * tree.n_entries() * (1 + n_rules)) as f64 => {
            Ok(Box::new(tree))
        }
        Err(error) if !fits => Err(error),
        _ => Ok(Box::new(Joint::new(space, experts, p))),
    }
}

impl Sums {
    fn plus(mut self, other: Self) -> Self {
        let add =
            |to: &mut Vec<f64>, from: Vec<f64>| to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
        self.objective += other.objective;
        self.weight += other.weight;
        add(&mut self.of_engine, other.of_engine);
        add(&mut self.of_truths, other.of_truths);
        self
    }
}

/// One pass over a chunk of rows.
struct Pass<'a> {
    objective: &'a Objective,
    data: &'a Rows,
    with_gradient: bool,
    worker: Box<dyn Worker + 'a>,
    /// The beliefs of eight rows.
    beliefs: Vec<Lane>,
    sums: Sums,
}

impl<'a> Pass<'a> {
    fn new(objective: &'a Objective, data: &'a Rows, with_gradient: bool) -> Self {
        let zeros = |n: usize| vec![0.0; if with_gradient { n } else { 0 }];
        let (of_engine, of_truths) = (zeros(objective.engine.n_sums()), zeros(objective.q.len()));
        Self {
            objective,
            data,
            with_gradient,
            worker: objective.engine.worker(),
            beliefs: vec![[0.0; LANES]; objective.space.n_categories()],
            sums: Sums { of_engine, of_truths, ..Sums::default() },
        }
    }

    fn truth(&self, row: usize, label: usize) -> Option<usize> {
        self.data.truths[row * self.objective.space.n_labels() + label]
    }

    /// Adds up to eight rows.
    fn add(&mut self, rows: &[usize]) {
        let known: Vec<Known> = rows.iter().map(|&row| self.data.known[row]).collect();
        if known.iter().all(|known| *known == Known::Nothing) {
            return;
        }
        let weight = |lane: usize| match known.get(lane) {
            None | Some(Known::Nothing) => 0.0,
            Some(_) => self.data.weights[rows[lane]],
        };
        let mut weights: Lane = std::array::from_fn(weight);
        self.load(rows);
        let given = self.log_given(rows, &known);
        let total = self.worker.log_total(&self.beliefs);
        for l in 0..LANES {
            if weights[l] == 0.0 {
                continue;
            }
            let log_likelihood = given[l] - total[l];
            let is_possible = log_likelihood.is_finite();
            self.sums.objective += weights[l] * if is_possible { log_likelihood } else { IMPOSSIBLE };
            self.sums.weight += weights[l];
            // An impossible row has no gradient.
            weights[l] = if is_possible { weights[l] } else { 0.0 };
        }
        if self.with_gradient {
            self.worker.add_expectations(&weights.map(|weight| -weight), &mut self.sums.of_engine);
            self.add_given(rows, &known, &weights);
        }
    }

    /// Copies the beliefs of the rows into lanes.
    fn load(&mut self, rows: &[usize]) {
        let n = self.beliefs.len();
        for lane in 0..LANES {
            // Lanes without a row repeat the last one, with weight 0.
            let row = rows[lane.min(rows.len() - 1)];
            let given = &self.data.beliefs[row * n..(row + 1) * n];
            self.beliefs.iter_mut().zip(given).for_each(|(slot, belief)| slot[lane] = *belief);
        }
    }

    /// The first term of the objective.
    fn log_given(&mut self, rows: &[usize], known: &[Known]) -> Lane {
        let mut given = [0.0; LANES];
        if known.contains(&Known::Some) {
            let clamped = self.clamped(rows);
            given = self.worker.log_total(&clamped);
        }
        for (lane, &row) in rows.iter().enumerate() {
            if known[lane] == Known::All {
                let rules = (0..self.objective.connected.len()).map(|rule| self.outcome(rule, row)[1].ln());
                given[lane] = self.data.log_base[row] + rules.sum::<f64>();
            }
        }
        given
    }

    /// Q and f of a learned rule at the truths of a row, all of which are known.
    fn outcome(&self, rule: usize, row: usize) -> [f64; 2] {
        let Objective { space, q, connected, probability, .. } = self.objective;
        let q = &q[rule * space.n_categories()..];
        let of_label = |&label: &usize| {
            q[space.blocks[label].start + self.truth(row, label).expect("all truths are known")]
        };
        let silence: f64 = connected[rule].iter().map(of_label).product();
        [silence, noisy_or(*probability, silence)]
    }

    /// The beliefs with those in the other categories of known labels set to 0.
    fn clamped(&self, rows: &[usize]) -> Vec<Lane> {
        let mut beliefs = self.beliefs.clone();
        for (label, block) in self.objective.space.blocks.iter().enumerate() {
            for (lane, &row) in rows.iter().enumerate() {
                let Some(truth) = self.truth(row, label) else { continue };
                let others = block.clone().filter(|&category| category != block.start + truth);
                others.for_each(|category| beliefs[category][lane] = 0.0);
            }
        }
        beliefs
    }

    /// Adds the expectations of the first term.
    fn add_given(&mut self, rows: &[usize], known: &[Known], weights: &Lane) {
        if known.contains(&Known::Some) {
            let only_some = |l: usize| if known.get(l) == Some(&Known::Some) { weights[l] } else { 0.0 };
            let clamped = self.clamped(rows);
            self.worker.log_total(&clamped);
            self.worker.add_expectations(&std::array::from_fn(only_some), &mut self.sums.of_engine);
        }
        let n_categories = self.beliefs.len();
        for (lane, &row) in rows.iter().enumerate() {
            if known[lane] != Known::All || weights[lane] == 0.0 {
                continue;
            }
            for rule in 0..self.objective.connected.len() {
                let [silence, factor] = self.outcome(rule, row);
                let share = weights[lane] * silence / factor;
                for (label, block) in self.objective.space.blocks.iter().enumerate() {
                    let truth = self.truth(row, label).expect("all truths are known");
                    self.sums.of_truths[rule * n_categories + block.start + truth] += share;
                }
            }
        }
    }
}
