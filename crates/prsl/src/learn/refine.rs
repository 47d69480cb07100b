//! Corrects earlier additions when no candidate pays any more: simpler rules in place of others, and fewer of them.
//!
//! A rule that was added early may stand for several that came later. Each move decreases the objective plus all prices,
//! so that the moves end.

use super::feature::Feature;
use super::fisher::{Added, Fisher};
use super::induction::{Induction, State, TOLERANCE};
use super::problem::Compiled;
use crate::error::{Error, Result};

/// A rule is suspected not to pay if its loss without refitting is below this multiple of its price. Refitting the
/// others makes up for a part of the loss.
const SUSPICIOUS: f64 = 10.0;
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
        let mut suspects = self.suspects(state, compiled, goes_on);
        if suspects.is_empty() {
            return Ok(false);
        }
        let sheet = self.draw(state, compiled);
        let fisher = Fisher::new(self.problem, &sheet, &state.features);
        let mut hessian = fisher.map(|fisher| fisher.matrix().clone());
        while let Some(feature) = suspects.pop().filter(|_| goes_on()) {
            let place = state.features.iter().position(|other| *other == feature).expect("it is learned");
            let (mut parameters, point) = self.without(state, compiled, hessian.as_ref(), place, goes_on);
            if point.value - state.value < self.parsimony * self.price(&feature) {
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

    /// Learned rules that may not pay, the weakest last. The loss without refitting is an upper bound of the loss.
    fn suspects(
        &self,
        state: &State,
        compiled: &mut Compiled,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Vec<Feature> {
        let n_fixed = self.problem.n_fixed();
        let mut losses = Vec::new();
        for (place, feature) in state.features.iter().enumerate().take_while(|_| goes_on()) {
            let mut parameters = state.parameters.clone();
            parameters[n_fixed + place] = 0.0;
            let loss = self.problem.point(compiled, &parameters).value - state.value;
            if loss < SUSPICIOUS * self.parsimony * self.price(feature) {
                losses.push((loss, feature.clone()));
            }
        }
        losses.sort_by(|a, b| b.0.total_cmp(&a.0));
        losses.into_iter().map(|(_, feature)| feature).collect()
    }

    /// Replaces rules by one or two simpler ones, each without one of their literals. Returns whether any was replaced.
    pub(crate) fn simplify(
        &self,
        state: &mut State,
        compiled: &mut Compiled,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<bool> {
        let each = EVALUATIONS * self.problem.data.n_rows() as f64 * compiled.engine.work();
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
            let prices = simpler.iter().map(|it| self.price(it)).sum::<f64>();
            let saved = self.parsimony * (self.price(feature) - prices);
            if point.value - saved < state.value - TOLERANCE {
                (next.parameters, next.value) = (parameters, point.value);
                *state = next;
                return Ok(Some(compiled));
            }
        }
        Ok(None)
    }
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
