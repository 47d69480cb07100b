//! The loop: score candidates, add the best, refit, and keep it if it pays.

use std::collections::{BTreeSet, HashSet};

use serde::{Deserialize, Serialize};

use super::candidates::{Candidate, Search, ShortList};
use super::feature::Feature;
use super::fisher::{Added, Fisher, Matrix};
use super::fit::{Evaluation, minimize};
use super::objective::Point;
use super::prices::Prices;
use super::problem::{Compiled, Problem};
use super::sheet::Sheet;
use crate::error::{Error, Result};

/// Learning stops after this many additions in a row that did not pay.
const MAX_FAILURES: usize = 5;
/// Learning also stops after this many additions in a row that would have made inference too slow.
const MAX_REFUSALS: usize = 20;
/// Rules of a smaller weight are removed: p is then below 0.5125.
const MIN_WEIGHT: f64 = 0.05;
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
    pub(crate) n_refusals: usize,
    pub(crate) short_list: ShortList,
    /// Number of passes, which seeds the samples.
    pub(crate) n_passes: u64,
    /// What was added when.
    pub(crate) path: Vec<Step>,
}

impl State {
    /// Removes a rule, which is not tried again. `n_fixed` parameters are not weights of learned rules.
    pub(crate) fn remove(&mut self, place: usize, n_fixed: usize) {
        self.tried.insert(self.features.remove(place));
        self.broken.remove(place);
        self.parameters.remove(n_fixed + place);
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

/// What became of rules that were tried.
enum Attempt {
    /// They are added.
    Pays(Box<Compiled>, Step),
    /// They gain less than their price.
    Fails,
    /// Exact inference would take too long.
    TooCostly,
}

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
    /// Refits all parameters, with an estimate of the Hessian to start from.
    pub(crate) fn refit(
        &self,
        compiled: &mut Compiled,
        hessian: Option<&Matrix>,
        start: Vec<f64>,
        tolerance: f64,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> (Vec<f64>, Point) {
        let bounds = self.problem.bounds(compiled.broken.len());
        minimize(start, &bounds, hessian, tolerance, |at| self.problem.point(compiled, at), goes_on)
    }

    /// One pass: scores candidates and adds the best. Returns the compiled rules, and whether to go on.
    pub(crate) fn pass(
        &self,
        state: &mut State,
        mut compiled: Compiled,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<(Compiled, bool)> {
        if state.features.len() >= self.max_rules {
            return Ok((compiled, false));
        }
        let sheet = self.draw(state, &mut compiled);
        let fisher = Fisher::new(self.problem, &sheet, &state.features);
        let n_tried = state.tried.len();
        let found = self.score(state, &sheet);
        self.problem.expect_broken(found.iter().map(|candidate| &candidate.feature));
        state.n_passes += 1;
        let mut most = (self.problem.data.n_labels() / LABELS_PER_ADDITION).max(1);
        while state.n_failures < MAX_FAILURES && state.n_refusals < MAX_REFUSALS && goes_on() {
            let batch = self.batch(state, &found, most);
            let Some(best) = batch.first() else { return Ok((compiled, state.tried.len() > n_tried)) };
            match self.attempt(state, &batch, fisher.as_ref(), goes_on)? {
                Attempt::Pays(added, mut step) => {
                    let others = found.iter().filter(|other| !step.added.contains(&other.feature));
                    let shown = others.take(RUNNERS_UP).map(|other| (other.feature.clone(), other.gain));
                    step.runners_up = shown.collect();
                    state.path.push(step);
                    (state.n_failures, state.n_refusals) = (0, 0);
                    return Ok((*added, true));
                }
                _ if batch.len() > 1 => most = 1,
                other => {
                    match other {
                        Attempt::TooCostly => state.n_refusals += 1,
                        _ => state.n_failures += 1,
                    }
                    state.tried.insert(best.feature.clone());
                }
            }
        }
        Ok((compiled, false))
    }

    /// The best candidate, with others about other labels, `most` in all.
    fn batch(&self, state: &State, found: &[Candidate], most: usize) -> Vec<Candidate> {
        let most = most.min(self.max_rules - state.features.len());
        let mut batch: Vec<Candidate> = Vec::new();
        let mut labels: HashSet<usize> = HashSet::new();
        for candidate in found.iter().filter(|candidate| !state.tried.contains(&candidate.feature)) {
            let own = candidate.feature.labels(&self.problem.counted);
            let is_apart = own.iter().all(|label| !labels.contains(label));
            let is_good = batch.first().is_none_or(|best| candidate.net() >= SHARE * best.net());
            if batch.len() < most && is_apart && is_good {
                labels.extend(own);
                batch.push(candidate.clone());
            }
        }
        batch
    }

    /// Adds a batch and refits. The state changes only if the batch pays.
    fn attempt(
        &self,
        state: &mut State,
        batch: &[Candidate],
        fisher: Option<&Fisher<'_>>,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<Attempt> {
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
            Err(Error::TooCostly { .. }) => return Ok(Attempt::TooCostly),
            Err(error) => return Err(error),
        };
        let added: Vec<Added<'_>> = batch
            .iter()
            .map(|it| Added { feature: &it.feature, variance_ratio: it.variance_ratio })
            .collect();
        let hessian = fisher.map(|fisher| fisher.with(&added));
        let (parameters, point) = self.refit(&mut compiled, hessian.as_ref(), parameters, TOLERANCE, goes_on);
        let price: f64 = batch.iter().map(|candidate| candidate.price).sum();
        if state.value - point.value <= price {
            return Ok(Attempt::Fails);
        }
        let step = Step {
            added: batch.iter().map(|candidate| candidate.feature.clone()).collect(),
            gain: state.value - point.value,
            price,
            log_likelihood: point.log_likelihood,
            runners_up: Vec::new(),
        };
        (state.features, state.broken) = (features, broken);
        (state.parameters, state.value) = (parameters, point.value);
        if self.remove_weak(state) {
            compiled = self.problem.compile(&state.features, &state.broken)?;
            state.value = self.problem.point(&mut compiled, &state.parameters).value;
        }
        Ok(Attempt::Pays(Box::new(compiled), step))
    }

    /// Removes rules of a tiny weight. Returns whether there were any.
    pub(crate) fn remove_weak(&self, state: &mut State) -> bool {
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

    /// Draws samples from the model with the present rules.
    pub(crate) fn draw(&self, state: &State, compiled: &mut Compiled) -> Sheet {
        Sheet::draw(self.problem, compiled, &state.parameters, self.seed, state.n_passes)
    }

    fn score(&self, state: &mut State, sheet: &Sheet) -> Vec<Candidate> {
        let mut tried = state.tried.clone();
        tried.extend(state.features.iter().cloned());
        let search = Search {
            prices: self.prices,
            parsimony: self.parsimony,
            unary: self.unary,
            learned: &state.features,
            tried: &tried,
            n_sure: self.n_sure(state),
        };
        sheet.candidates(&search, &mut state.short_list)
    }

    /// Number of learned rules that gained more than their full price, which is far above what chance gains.
    fn n_sure(&self, state: &State) -> usize {
        let price = |step: &Step| step.added.iter().map(|rule| self.prices.of(rule)).sum::<f64>();
        let sure = state.path.iter().filter(|step| step.gain > price(step)).flat_map(|step| &step.added);
        let sure: BTreeSet<&Feature> = sure.collect();
        state.features.iter().filter(|rule| sure.contains(rule)).count()
    }
}
