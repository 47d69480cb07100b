//! Search for the first assignment of a chain: one that no hard rule excludes.

use rand::RngExt;

use super::chain::Chain;
use crate::infer::samples::draw;
use crate::outcome::Outcome;

/// Maximum number of changes of one local search, per label.
const CHANGES_PER_LABEL: usize = 20;
/// Probability that a search step changes a random label instead of the best one. It lets the search leave local
/// minima.
const RANDOM_CHANGE: f64 = 0.2;

impl Chain<'_> {
    /// Searches for a possible assignment. Each step changes one label of a violated rule. The search starts at the
    /// largest beliefs, or at a sample of the beliefs.
    pub(super) fn search(&mut self, from_largest: bool) -> bool {
        let beliefs = self.beliefs;
        let largest =
            |belief: &Vec<f64>| (0..belief.len()).rev().max_by(|&a, &b| belief[a].total_cmp(&belief[b]));
        let start = beliefs.iter().map(|belief| {
            let state = if from_largest { largest(belief) } else { draw(belief, &mut self.rng) };
            state.unwrap_or(0)
        });
        let start = start.collect();
        self.move_to(start);
        for _ in 0..CHANGES_PER_LABEL * (1 + self.states.len()) {
            let broken = self.broken();
            if broken.is_empty() {
                return true;
            }
            let rule = broken[self.rng.random_range(0..broken.len())];
            let Some((label, state)) = self.repair(rule) else { return false };
            self.change(label, state);
        }
        self.broken().is_empty()
    }

    /// Chooses a new state for one label of a violated rule: mostly the change that leaves the fewest violated rules.
    fn repair(&mut self, rule: usize) -> Option<(usize, usize)> {
        let is_random = self.rng.random_bool(RANDOM_CHANGE);
        let mut best = None;
        let mut lowest = (isize::MAX, 0.0);
        for &label in &self.gibbs.rules[rule].scope {
            let now = self.states[label];
            for state in (0..self.beliefs[label].len()).filter(|&state| state != now) {
                if self.beliefs[label][state] == 0.0 {
                    continue;
                }
                let n_broken = if is_random { 0 } else { self.broken_by(label, state) };
                // Ties are broken at random.
                let price = (n_broken, self.rng.random::<f64>());
                if price < lowest {
                    (best, lowest) = (Some((label, state)), price);
                }
            }
        }
        best
    }

    /// The increase in the number of violated rules if a label changes.
    fn broken_by(&mut self, label: usize, state: usize) -> isize {
        let before = self.states[label];
        let n_before = self.n_broken_around(label);
        self.change(label, state);
        let n_after = self.n_broken_around(label);
        self.change(label, before);
        n_after - n_before
    }

    fn n_broken_around(&self, label: usize) -> isize {
        self.gibbs.of_label[label].iter().filter(|(rule, _)| self.is_broken(*rule)).count() as isize
    }

    /// The rules that exclude the assignment.
    pub(super) fn broken(&self) -> Vec<usize> {
        (0..self.gibbs.rules.len()).filter(|&rule| self.is_broken(rule)).collect()
    }

    fn is_broken(&self, rule: usize) -> bool {
        let constraint = &self.gibbs.rules[rule];
        if !constraint.weights.contains(&0.0) {
            return false;
        }
        let tally = &self.tallies[rule];
        let outcome = match &constraint.q {
            Some(_) => Outcome::new(tally.outcome(), || tally.log_silence()),
            None => self.gibbs.model.rule(constraint.rule).precise_outcome(&self.categories),
        };
        constraint.log_weight(outcome) == f64::NEG_INFINITY
    }
}
