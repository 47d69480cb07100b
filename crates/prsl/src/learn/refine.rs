//! Corrects earlier additions when no candidate pays any more: simpler rules in place of others, and fewer of them.
//!
//! A rule that was added early may stand for several that came later. Each move decreases the objective plus all prices,
//! so that the moves end.

use super::feature::Feature;
use super::induction::{Induction, State, TOLERANCE};
use super::objective::Compiled;
use crate::error::{Error, Result};

/// A rule is suspected not to pay if its loss without refitting is below this multiple of its price. Refitting the
/// others makes up for a part of the loss.
const SUSPICIOUS: f64 = 10.0;
/// A replacement is refitted only if, without refitting, it loses less than this share of what taking the rule out loses.
const PROMISING: f64 = 1.0;

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
        while let Some(feature) = suspects.pop().filter(|_| goes_on()) {
            let place = state.features.iter().position(|other| *other == feature).expect("it is learned");
            let without = self.without(state, compiled, place, goes_on);
            if without.1.value - state.value < self.parsimony * self.price(&feature) {
                state.remove(place, self.problem.n_fixed());
                *compiled = self.problem.compile(&state.features, &state.broken)?;
                let mut parameters = without.0;
                parameters.remove(self.problem.n_fixed() + place);
                state.value = without.1.value;
                state.parameters = parameters;
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

    /// Replaces rules by simpler ones, without one of their literals. Returns whether any was replaced.
    pub(crate) fn simplify(
        &self,
        state: &mut State,
        compiled: &mut Compiled,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<bool> {
        let mut is_changed = false;
        for place in 0..state.features.len() {
            let mut parameters = state.parameters.clone();
            parameters[self.problem.n_fixed() + place] = 0.0;
            let loss = self.problem.point(compiled, &parameters).value - state.value;
            for simpler in simpler(&state.features[place]) {
                if !goes_on() {
                    return Ok(is_changed);
                }
                if state.features.contains(&simpler) || state.tried.contains(&simpler) {
                    continue;
                }
                if let Some(replaced) = self.replace(state, place, simpler, loss, goes_on)? {
                    *compiled = replaced;
                    is_changed = true;
                    break;
                }
            }
        }
        Ok(is_changed)
    }

    /// Replaces a rule if objective and price decrease. `loss` is that of taking the rule out.
    fn replace(
        &self,
        state: &mut State,
        place: usize,
        simpler: Feature,
        loss: f64,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Compiled>> {
        let (mut features, mut broken) = (state.features.clone(), state.broken.clone());
        broken[place] = self.problem.broken(&simpler);
        let saved = self.parsimony * (self.price(&features[place]) - self.price(&simpler));
        features[place] = simpler;
        let mut compiled = match self.problem.compile(&features, &broken) {
            Ok(compiled) => compiled,
            Err(Error::TooCostly { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let first = self.problem.point(&mut compiled, &state.parameters);
        if first.value - state.value > PROMISING * loss {
            return Ok(None);
        }
        let mut memory = state.memory.clone();
        let (parameters, point) =
            self.refit(&mut compiled, &mut memory, state.parameters.clone(), TOLERANCE, goes_on);
        if point.value - saved >= state.value - TOLERANCE {
            return Ok(None);
        }
        state.tried.insert(std::mem::replace(&mut state.features[place], features[place].clone()));
        (state.broken, state.parameters, state.value, state.memory) = (broken, parameters, point.value, memory);
        Ok(Some(compiled))
    }
}

/// The clauses with one literal less, at least two.
fn simpler(feature: &Feature) -> Vec<Feature> {
    let Feature::Conjunction(literals) = feature else { return Vec::new() };
    if literals.len() < 3 {
        return Vec::new();
    }
    let without = |place: usize| {
        let mut fewer = literals.clone();
        fewer.remove(place);
        Feature::Conjunction(fewer)
    };
    (0..literals.len()).map(without).collect()
}
