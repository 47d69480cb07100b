//! The loop: score candidates, add the best, refit, and keep it if it pays.

use std::collections::{BTreeSet, HashSet};

use serde::{Deserialize, Serialize};

use super::candidates::{Candidate, N_SAMPLES, Observed, Prices, Sheet};
use super::data::Known;
use super::feature::Feature;
use super::fit::{Evaluation, Memory, minimize_with};
use super::objective::{Compiled, Point, Problem};
use crate::error::{Error, Result};

/// Learning stops after this many additions in a row that did not pay.
const MAX_FAILURES: usize = 5;
/// Rules of a smaller weight are removed: p is then below 0.5125.
const MIN_WEIGHT: f64 = 0.05;
/// Maximum number of rows on which candidates are scored.
const MAX_SCORED: usize = 20_000;
/// One rule is added at a time for each this many labels. Rules that are added together are about different labels, so
/// that their estimated gains hardly change each other.
const LABELS_PER_ADDITION: usize = 5;
/// A rule is added along with the best only if its net gain is at least this share of the best one's.
const SHARE: f64 = 0.5;
/// Predicted decrease of the objective at which a refit ends while rules are added, in nats.
pub(crate) const TOLERANCE: f64 = 1e-2;
/// The same for the final parameters.
pub(crate) const FINAL_TOLERANCE: f64 = 1e-9;

impl Evaluation for Point {
    fn value(&self) -> f64 {
        self.value
    }
    fn gradient(&self) -> &[f64] {
        &self.gradient
    }
    fn curvature(&self) -> &[f64] {
        &self.curvature
    }
}

/// Learned rules with all parameters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct State {
    pub(crate) features: Vec<Feature>,
    pub(crate) broken: Vec<f64>,
    pub(crate) parameters: Vec<f64>,
    /// The objective at the parameters.
    pub(crate) value: f64,
    /// Candidates that did not pay, or that made inference too slow.
    pub(crate) tried: BTreeSet<Feature>,
    pub(crate) n_failures: usize,
    /// Number of passes, which seeds the samples.
    pub(crate) n_passes: u64,
    /// What was added when.
    pub(crate) path: Vec<Step>,
    /// Steps of the last refit, which speed up the next.
    pub(crate) memory: Memory,
}

impl State {
    /// Removes a rule, which is not tried again. `n_fixed` parameters are not weights of learned rules.
    pub(crate) fn remove(&mut self, place: usize, n_fixed: usize) {
        self.tried.insert(self.features.remove(place));
        self.broken.remove(place);
        self.parameters.remove(n_fixed + place);
        self.memory.clear();
    }
}

/// Rules that were added together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Step {
    pub(crate) added: Vec<Feature>,
    /// Gain in penalized log-likelihood after refitting, in nats.
    pub(crate) gain: f64,
    pub(crate) price: f64,
    /// The log-likelihood of all rows, in nats.
    pub(crate) log_likelihood: f64,
    /// The next candidates with their estimated gains.
    pub(crate) runners_up: Vec<(Feature, f64)>,
}

/// Number of candidates that are shown beside those that were added.
const RUNNERS_UP: usize = 3;

/// How rules are added.
pub(crate) struct Induction<'a> {
    pub(crate) problem: &'a Problem,
    pub(crate) prices: &'a Prices,
    pub(crate) parsimony: f64,
    pub(crate) max_rules: usize,
    pub(crate) unary: &'a [usize],
    pub(crate) seed: u64,
}

impl Induction<'_> {
    /// Bounds of all parameters: weights are not negative, and rules of the base stay on their side of 0.5.
    pub(crate) fn bounds(&self, n_features: usize) -> Vec<(f64, f64)> {
        let free = |weight: f64| if weight < 0.0 { (f64::NEG_INFINITY, 0.0) } else { (0.0, f64::INFINITY) };
        let calibrators =
            vec![(f64::NEG_INFINITY, f64::INFINITY); self.problem.data.n_calibration_parameters];
        let rules = self.problem.free_weights().into_iter().map(free);
        calibrators
            .into_iter()
            .chain(rules)
            .chain(std::iter::repeat_n((0.0, f64::INFINITY), n_features))
            .collect()
    }

    /// Refits all parameters.
    pub(crate) fn refit(
        &self,
        compiled: &mut Compiled,
        memory: &mut Memory,
        start: Vec<f64>,
        tolerance: f64,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> (Vec<f64>, Point) {
        let bounds = self.bounds(compiled.broken.len());
        minimize_with(memory, start, &bounds, tolerance, |at| self.problem.point(compiled, at), goes_on)
    }

    /// One pass: scores candidates and adds the best. Returns the compiled rules, and whether to go on.
    pub(crate) fn pass(
        &self,
        state: &mut State,
        mut compiled: Compiled,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<(Compiled, bool)> {
        if state.features.len() >= self.max_rules || state.n_failures >= MAX_FAILURES {
            return Ok((compiled, false));
        }
        let mut found = self.score(state, &mut compiled);
        state.n_passes += 1;
        loop {
            let batch = self.batch(state, &found);
            if batch.is_empty() {
                return Ok((compiled, false));
            }
            match self.attempt(state, &batch, goes_on)? {
                Some((added, mut step)) => {
                    let others = found.iter().filter(|other| !step.added.contains(&other.feature));
                    let shown = others.take(RUNNERS_UP).map(|other| (other.feature.clone(), other.gain));
                    step.runners_up = shown.collect();
                    state.path.push(step);
                    state.n_failures = 0;
                    return Ok((added, true));
                }
                None if !goes_on() => return Ok((compiled, false)),
                None if batch.len() > 1 => found.truncate(1),
                None => {
                    state.tried.insert(batch[0].feature.clone());
                    state.n_failures += 1;
                    found.retain(|candidate| !state.tried.contains(&candidate.feature));
                    if state.n_failures >= MAX_FAILURES || found.is_empty() {
                        return Ok((compiled, !found.is_empty() || state.n_failures < MAX_FAILURES));
                    }
                }
            }
        }
    }

    /// The best candidate, with others about other labels.
    fn batch(&self, state: &State, found: &[Candidate]) -> Vec<Candidate> {
        let net = |candidate: &Candidate| candidate.gain - candidate.price;
        let most = (self.problem.data.n_labels() / LABELS_PER_ADDITION).max(1);
        let most = most.min(self.max_rules - state.features.len());
        let mut batch: Vec<Candidate> = Vec::new();
        let mut labels: HashSet<usize> = HashSet::new();
        for candidate in found.iter().filter(|candidate| !state.tried.contains(&candidate.feature)) {
            let own = candidate.feature.labels(&self.problem.counted);
            let is_apart = own.iter().all(|label| !labels.contains(label));
            let is_good = batch.first().is_none_or(|best| net(candidate) >= SHARE * net(best));
            if batch.len() < most && is_apart && is_good {
                labels.extend(own);
                batch.push(candidate.clone());
            }
        }
        batch
    }

    /// Adds a batch and refits. Returns `None`, without a change, if it does not pay or takes too long.
    fn attempt(
        &self,
        state: &mut State,
        batch: &[Candidate],
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<Option<(Compiled, Step)>> {
        let mut features = state.features.clone();
        let mut broken = state.broken.clone();
        let mut parameters = state.parameters.clone();
        for candidate in batch {
            broken.push(self.problem.broken(&candidate.feature));
            features.push(candidate.feature.clone());
            parameters.push(candidate.weight);
        }
        let mut compiled = match self.problem.compile_larger(&features, &broken) {
            Ok(compiled) => compiled,
            Err(Error::TooCostly { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut memory = state.memory.clone();
        let (parameters, point) = self.refit(&mut compiled, &mut memory, parameters, TOLERANCE, goes_on);
        let price: f64 = batch.iter().map(|candidate| candidate.price).sum();
        if state.value - point.value <= price {
            return Ok(None);
        }
        let step = Step {
            added: batch.iter().map(|candidate| candidate.feature.clone()).collect(),
            gain: state.value - point.value,
            price,
            log_likelihood: point.log_likelihood,
            runners_up: Vec::new(),
        };
        (state.features, state.broken) = (features, broken);
        (state.parameters, state.value, state.memory) = (parameters, point.value, memory);
        if self.remove_weak(state) {
            compiled = self.problem.compile(&state.features, &state.broken)?;
            state.value = self.problem.point(&mut compiled, &state.parameters).value;
        }
        Ok(Some((compiled, step)))
    }

    /// Removes rules of a tiny weight. Returns whether there were any.
    fn remove_weak(&self, state: &mut State) -> bool {
        let n_fixed = self.problem.n_fixed();
        let kept: Vec<usize> =
            (0..state.features.len()).filter(|&at| state.parameters[n_fixed + at] >= MIN_WEIGHT).collect();
        if kept.len() == state.features.len() {
            return false;
        }
        for at in (0..state.features.len()).rev().filter(|at| !kept.contains(at)) {
            state.remove(at, n_fixed);
        }
        true
    }

    /// Draws samples and scores all candidates.
    fn score(&self, state: &State, compiled: &mut Compiled) -> Vec<Candidate> {
        let problem = self.problem;
        problem.reweigh(&mut compiled.engine, &state.parameters);
        let rows = self.scored_rows();
        let values = problem.values(&state.parameters, &rows);
        let weights: Vec<f64> = rows.iter().map(|&row| problem.data.weights[row]).collect();
        let scale = problem.data.weight() / weights.iter().sum::<f64>();
        let mixed = |row: &usize, stream: u64| {
            splitmix(problem.data.hashes[*row] ^ splitmix(self.seed ^ splitmix(2 * state.n_passes + stream)))
        };
        let seeds: Vec<u64> = rows.iter().map(|row| mixed(row, 0)).collect();
        let samples = compiled.engine.samples(&problem.rows(&values, &weights), &seeds, N_SAMPLES);
        let partial: Vec<usize> =
            (0..rows.len()).filter(|&at| problem.data.known[rows[at]] == Known::Some).collect();
        let numbers: Vec<usize> = partial.iter().map(|&at| rows[at]).collect();
        let clamped = problem.clamped(&problem.values(&state.parameters, &numbers), &numbers);
        let seeds: Vec<u64> = numbers.iter().map(|row| mixed(row, 1)).collect();
        let of_weights = vec![1.0; numbers.len()];
        let given = compiled.engine.samples(&problem.rows(&clamped, &of_weights), &seeds, N_SAMPLES);
        let sizes: Vec<usize> = problem.data.blocks.iter().map(|block| block.len()).collect();
        let scaled = weights.iter().map(|weight| scale * weight).collect();
        let mut sheet = Sheet::new(&sizes, &problem.counted, scaled);
        let mut given = given.into_iter();
        for (at, (&row, samples)) in rows.iter().zip(&samples).enumerate() {
            let known = match problem.data.known[row] {
                Known::All => None,
                Known::Some => given.next().flatten(),
            };
            let Some(samples) = samples else { continue };
            let observed = match &known {
                Some(samples) => Observed::Sampled(samples),
                None => Observed::Complete(
                    (0..sizes.len()).filter_map(|label| problem.data.truth(row, label)).collect(),
                ),
            };
            sheet.set(at, &observed, samples);
        }
        let mut tried = state.tried.clone();
        tried.extend(state.features.iter().cloned());
        sheet.candidates(self.prices, self.parsimony, self.unary, &tried)
    }

    /// The rows on which candidates are scored: all, or those with the smallest hashes.
    fn scored_rows(&self) -> Vec<usize> {
        let data = &self.problem.data;
        if data.n_rows() <= MAX_SCORED {
            return (0..data.n_rows()).collect();
        }
        let share = MAX_SCORED as f64 / data.n_rows() as f64;
        let limit = (share * u64::MAX as f64) as u64;
        (0..data.n_rows()).filter(|&row| splitmix(data.hashes[row] ^ self.seed) <= limit).collect()
    }
}

/// A bijection that scatters its input (the finalizer of SplitMix64).
fn splitmix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
