//! Corrects earlier additions when no candidate pays any more: simpler rules in place of others, and fewer of them.
//!
//! A rule that was added early may stand for several that came later. Each move decreases the objective plus all prices,
//! so that the moves end.

use std::collections::BTreeSet;

use super::feature::Feature;
use super::fisher::{Added, Fisher, Matrix};
use super::induction::{Induction, State, TOLERANCE};
use super::problem::Compiled;
use crate::error::{Error, Result};

/// A rule is suspected not to pay if its estimated loss is below this multiple of its price.
const SUSPICIOUS: f64 = 3.0;
/// Maximum work of replacements, in multiply-adds: about a second.
const MAX_WORK: f64 = 2e9;
/// Number of evaluations of a refit, about.
const EVALUATIONS: f64 = 10.0;

impl Induction<'_> {
    /// Removes rules that no longer pay, one at a time, the weakest first. Rules that were added early may be superseded by
    /// later ones. Returns whether any was removed.
    pub(crate) fn prune(
        &self,
        state: &mut State,
        compiled: &mut Compiled,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<bool> {
        let mut is_changed = false;
        let sheet = self.draw(state, compiled);
        let fisher = Fisher::new(self.problem, &sheet, &state.features);
        let mut hessian = fisher.map(|fisher| fisher.matrix().clone());
        let mut suspects = self.suspects(state, hessian.as_ref());
        while let Some(feature) = suspects.pop().filter(|_| goes_on()) {
            let place = state.features.iter().position(|other| *other == feature).expect("it is learned");
            let (mut parameters, point) = self.without(state, compiled, hessian.as_ref(), &[place], goes_on);
            if point.value - state.value < self.price(&state.features, &[place]) {
                let parameter = self.problem.n_fixed() + place;
                state.remove(place, self.problem.n_fixed());
                *compiled = self.problem.compile(&state.features, &state.broken)?;
                parameters.remove(parameter);
                hessian = hessian.map(|hessian| hessian.without(parameter));
                (state.value, state.parameters) = (point.value, parameters);
                is_changed = true;
            }
        }
        Ok(is_changed)
    }

    /// Learned rules that may not pay, the weakest last; all of them if there is no estimate of the Hessian.
    ///
    /// Without a rule of weight w, and with the others refitted, a quadratic objective with the Hessian H increases by
    /// w² / (2 (H⁻¹)ₖₖ) (Hassibi and Stork, "Optimal brain surgeon", 1992).
    fn suspects(&self, state: &State, hessian: Option<&Matrix>) -> Vec<Feature> {
        let n_fixed = self.problem.n_fixed();
        let n = state.parameters.len();
        let factor = hessian.map(|hessian| hessian.factor(&vec![true; n], &vec![1.0; n]));
        let loss = |place: usize| -> f64 {
            let Some(factor) = &factor else { return 0.0 };
            let mut column = vec![0.0; n];
            column[n_fixed + place] = 1.0;
            factor.solve(&mut column);
            state.parameters[n_fixed + place].powi(2) / (2.0 * column[n_fixed + place])
        };
        let losses = (0..state.features.len()).map(|place| (loss(place), place));
        let may_fail =
            |&(loss, place): &(f64, usize)| loss < SUSPICIOUS * self.price(&state.features, &[place]);
        let mut losses: Vec<(f64, usize)> = losses.filter(may_fail).collect();
        losses.sort_by(|a, b| b.0.total_cmp(&a.0));
        losses.into_iter().map(|(_, place)| state.features[place].clone()).collect()
    }

    /// Adds all shorter clauses within the learned ones at once, refits, and removes what does not pay. A set of long clauses
    /// may stand for as many short ones, which cannot be reached by replacing one rule at a time. Returns whether objective
    /// and prices decrease together.
    pub(crate) fn relax(
        &self,
        state: &mut State,
        compiled: &mut Compiled,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<bool> {
        let shorter = shorter_clauses(&state.features);
        let each = EVALUATIONS * self.problem.n_rows() as f64 * compiled.engine.work();
        if shorter.is_empty() || each * shorter.len() as f64 > MAX_WORK || !goes_on() {
            return Ok(false);
        }
        let mut next = state.clone();
        self.problem.expect_broken(shorter.iter());
        for feature in shorter {
            next.broken.push(self.problem.broken(&feature));
            next.features.push(feature);
            next.parameters.push(0.0);
        }
        let mut relaxed = match self.problem.compile_larger(&next.features, &next.broken) {
            Ok(relaxed) => relaxed,
            Err(Error::TooCostly { .. }) => return Ok(false),
            Err(error) => return Err(error),
        };
        let start = std::mem::take(&mut next.parameters);
        let (parameters, point) = self.refit(&mut relaxed, None, start, TOLERANCE, goes_on);
        (next.parameters, next.value) = (parameters, point.value);
        if self.remove_weak(&mut next) {
            relaxed = self.problem.compile(&next.features, &next.broken)?;
            next.value = self.problem.point(&mut relaxed, &next.parameters).value;
        }
        while self.prune(&mut next, &mut relaxed, goes_on)? {}
        let is_better = self.total(&next) < self.total(state) - TOLERANCE;
        if is_better {
            (*state, *compiled) = (next, relaxed);
        }
        Ok(is_better)
    }

    /// The objective with the prices of all learned rules.
    fn total(&self, state: &State) -> f64 {
        state.value + self.parsimony * self.prices.of_all(&state.features)
    }

    /// Replaces rules by one or two simpler ones, each without one of their literals. Returns whether any was replaced.
    pub(crate) fn simplify(
        &self,
        state: &mut State,
        compiled: &mut Compiled,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<bool> {
        let each = EVALUATIONS * self.problem.n_rows() as f64 * compiled.engine.work();
        let mut n_left = (MAX_WORK / each.max(1.0)) as usize;
        let mut is_changed = false;
        let mut rest = state.features.clone().into_iter().peekable();
        while rest.peek().is_some() {
            let sheet = self.draw(state, compiled);
            let fisher = Fisher::new(self.problem, &sheet, &state.features);
            for feature in rest.by_ref() {
                let mut alternatives = simpler(&feature);
                let is_known = |it: &Feature| state.features.contains(it) || state.tried.contains(it);
                alternatives.retain(|rules| !rules.iter().any(is_known));
                alternatives.truncate(n_left);
                n_left -= alternatives.len();
                self.problem.expect_broken(alternatives.iter().flatten());
                let replaced = self.replace(state, fisher.as_ref(), &feature, &alternatives, goes_on)?;
                if let Some(replaced) = replaced {
                    *compiled = replaced;
                    is_changed = true;
                    break; // the samples are those of the rules before
                }
            }
        }
        Ok(is_changed)
    }

    /// Replaces a rule by the first alternative with which objective and prices decrease.
    fn replace(
        &self,
        state: &mut State,
        fisher: Option<&Fisher<'_>>,
        feature: &Feature,
        alternatives: &[Vec<Feature>],
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Compiled>> {
        let place = state.features.iter().position(|other| other == feature).expect("it is learned");
        let mut without = state.clone();
        without.remove(place, self.problem.n_fixed());
        let weight = state.parameters[self.problem.n_fixed() + place];
        for simpler in alternatives {
            if !goes_on() {
                return Ok(None);
            }
            let mut next = without.clone();
            for simpler in simpler {
                next.broken.push(self.problem.broken(simpler));
                next.features.push(simpler.clone());
                next.parameters.push(weight / 2.0);
            }
            let mut compiled = match self.problem.compile_larger(&next.features, &next.broken) {
                Ok(compiled) => compiled,
                Err(Error::TooCostly { .. }) => continue,
                Err(error) => return Err(error),
            };
            let added: Vec<Added<'_>> =
                simpler.iter().map(|feature| Added { feature, variance_ratio: 1.0 }).collect();
            let parameter = self.problem.n_fixed() + place;
            let hessian = fisher.map(|fisher| fisher.with(&added).without(parameter));
            let start = std::mem::take(&mut next.parameters);
            let (parameters, point) = self.refit(&mut compiled, hessian.as_ref(), start, TOLERANCE, goes_on);
            (next.parameters, next.value) = (parameters, point.value);
            if self.total(&next) < self.total(state) - TOLERANCE {
                *state = next;
                return Ok(Some(compiled));
            }
        }
        Ok(None)
    }
}

/// All clauses of two and more literals within longer ones that are not learned themselves.
fn shorter_clauses(features: &[Feature]) -> BTreeSet<Feature> {
    let mut shorter = BTreeSet::new();
    for feature in features {
        let Feature::Conjunction(literals) = feature else { continue };
        for subset in 1..(1_usize << literals.len()) - 1 {
            if subset.count_ones() > 1 {
                let is_in = |place: &usize| subset >> place & 1 == 1;
                let part = (0..literals.len()).filter(is_in).map(|place| literals[place].clone());
                shorter.insert(Feature::Conjunction(part.collect()));
            }
        }
    }
    shorter.retain(|feature| !features.contains(feature));
    shorter
}

/// The clauses with one literal less, at least two, alone and two at a time. The converse of a clause is no alternative: the
/// likelihood alone does not tell the direction, and planted rules were reversed.
fn simpler(feature: &Feature) -> Vec<Vec<Feature>> {
    let Feature::Conjunction(literals) = feature else { return Vec::new() };
    let n = literals.len();
    if n < 3 {
        return Vec::new();
    }
    let without = |place: usize| {
        let mut fewer = literals.clone();
        fewer.remove(place);
        Feature::Conjunction(fewer)
    };
    let singles = (0..n).map(|place| vec![without(place)]);
    let pairs =
        (0..n).flat_map(|a| (a + 1..n).map(move |b| (a, b))).map(|(a, b)| vec![without(a), without(b)]);
    singles.chain(pairs).collect()
}
