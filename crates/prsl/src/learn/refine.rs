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

    /// Replaces rules by one or two simpler ones, each without one of their literals. Returns whether any was replaced.
    pub(crate) fn simplify(
        &self,
        state: &mut State,
        compiled: &mut Compiled,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<bool> {
        let mut is_changed = false;
        let each = EVALUATIONS * self.problem.data.n_rows() as f64 * compiled.engine.work();
        let mut n_left = (MAX_WORK / each.max(1.0)) as usize;
        for place in 0..state.features.len() {
            for simpler in simpler(&state.features[place]) {
                if !goes_on() {
                    return Ok(is_changed);
                }
                if simpler.iter().any(|it| state.features.contains(it) || state.tried.contains(it)) {
                    continue;
                }
                if n_left == 0 {
                    return Ok(is_changed);
                }
                n_left -= 1;
                if let Some(replaced) = self.replace(state, place, simpler, goes_on)? {
                    *compiled = replaced;
                    is_changed = true;
                    break;
                }
            }
        }
        Ok(is_changed)
    }

    /// Replaces a rule by others if objective and prices decrease.
    fn replace(
        &self,
        state: &mut State,
        place: usize,
        simpler: Vec<Feature>,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Compiled>> {
        let (mut features, mut broken) = (state.features.clone(), state.broken.clone());
        let mut start = state.parameters.clone();
        let weight = start[self.problem.n_fixed() + place];
        let saved = self.price(&features[place]) - simpler.iter().map(|it| self.price(it)).sum::<f64>();
        let saved = self.parsimony * saved;
        for (number, simpler) in simpler.into_iter().enumerate() {
            let count = self.problem.broken(&simpler);
            if number == 0 {
                (features[place], broken[place]) = (simpler, count);
                start[self.problem.n_fixed() + place] = weight / 2.0;
            } else {
                features.push(simpler);
                broken.push(count);
                start.push(weight / 2.0);
            }
        }
        let mut compiled = match self.problem.compile_larger(&features, &broken) {
            Ok(compiled) => compiled,
            Err(Error::TooCostly { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut memory = state.memory.clone();
        let (parameters, point) = self.refit(&mut compiled, &mut memory, start, TOLERANCE, goes_on);
        if point.value - saved >= state.value - TOLERANCE {
            return Ok(None);
        }
        state.tried.insert(state.features[place].clone());
        state.features = features;
        (state.broken, state.parameters, state.value, state.memory) =
            (broken, parameters, point.value, memory);
        Ok(Some(compiled))
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
