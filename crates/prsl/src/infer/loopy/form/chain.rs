//! Messages of logical rules by their decision diagrams.

use super::{Lane, smallest};
use crate::infer::diagram::Diagram;
use crate::infer::semiring::Semiring;

/// A logical rule as the levels of its decision diagram.
///
/// The forward pass computes α(state): the ⊕ over all paths to a state of the products of their cavity messages. The
/// backward pass computes β(state): the same for all paths from the state to an end, times the end's weight. State m of
/// a label then gets
///
/// ```text
/// message(m) = Σ_state α(state) β(next(state, m))
/// ```
///
/// This takes linear time in the size of the diagram, for sums and maxima.
#[derive(Clone, Debug)]
pub(in crate::infer::loopy) struct Chain {
    pub(super) levels: Vec<Level>,
    /// The rule's weight in each state after the last level.
    pub(super) ends: Vec<f64>,
}

/// The transitions of one label.
#[derive(Clone, Debug)]
pub(super) struct Level {
    pub(super) n_states: usize,
    n_choices: usize,
    next: Vec<u32>,
}

impl Chain {
    pub(in crate::infer::loopy) fn new(diagram: &Diagram, [silent, fired]: [f64; 2]) -> Self {
        let level = |level: &crate::infer::diagram::Level| Level {
            n_states: level.n_states,
            n_choices: level.n_choices,
            next: level.next.iter().map(|&state| state as u32).collect(),
        };
        let ends = diagram.accepts.iter().map(|&accepts| if accepts { fired } else { silent }).collect();
        Self { levels: diagram.levels.iter().map(level).collect(), ends }
    }

    /// Number of stored values, about 8 bytes each.
    pub(super) fn n_values(&self) -> usize {
        self.ends.len() + self.levels.iter().map(|level| level.next.len() / 2).sum::<usize>()
    }

    /// See [`Form::smallest_product`](super::Form::smallest_product). Each α and β is a sum of products of two
    /// factors: an earlier α or β, and a cavity message.
    #[inline(always)]
    pub(super) fn smallest_product<const L: usize>(
        &self,
        cavities: &[Lane<L>],
        scratch: &[Lane<L>],
    ) -> Lane<L> {
        let n = self.levels.iter().map(|level| level.n_states).sum::<usize>() + self.ends.len();
        let (alpha, beta) = scratch.split_at(scratch.len() / 2);
        let [alpha, beta] = [alpha, beta].map(|sums| smallest(&sums[..n]));
        let mut least: Lane<L> = std::array::from_fn(|l| alpha[l].min(beta[l]));
        for cavity in cavities {
            (0..L).for_each(|l| least[l] = least[l].min(cavity[l]));
        }
        least.map(|least| least * least)
    }

    /// Number of transitions.
    pub(in crate::infer::loopy) fn len(&self) -> usize {
        self.levels.iter().map(|level| level.next.len()).sum()
    }

    #[inline(always)]
    pub(super) fn send<S: Semiring, const L: usize>(
        &self,
        incoming: &[Lane<L>],
        outgoing: &mut [Lane<L>],
        scratch: &mut [Lane<L>],
    ) {
        let (alpha, beta) = scratch.split_at_mut(scratch.len() / 2);
        alpha[0] = [S::ONE; L];
        let (mut start, mut first) = (0, 0);
        for (index, level) in self.levels.iter().enumerate() {
            let n_after = self.levels.get(index + 1).map_or(self.ends.len(), |level| level.n_states);
            let (before, after) = alpha.split_at_mut(start + level.n_states);
            let cavity = &incoming[first..first + level.n_choices];
            level.forward::<S, L>(&before[start..], cavity, &mut after[..n_after]);
            start += level.n_states;
            first += level.n_choices;
        }
        let ends = &mut beta[start..start + self.ends.len()];
        for (slot, &weight) in ends.iter_mut().zip(&self.ends) {
            *slot = [weight; L];
        }
        for level in self.levels.iter().rev() {
            let (before, after) = beta.split_at_mut(start);
            start -= level.n_states;
            first -= level.n_choices;
            let slots = first..first + level.n_choices;
            level.send_one::<S, L>(&alpha[start..], after, &mut outgoing[slots.clone()]);
            level.backward::<S, L>(after, &incoming[slots], &mut before[start..]);
        }
    }
}

impl Level {
    fn steps(&self) -> impl Iterator<Item = (usize, &[u32])> {
        self.next.chunks_exact(self.n_choices).enumerate()
    }

    #[inline(always)]
    fn forward<S: Semiring, const L: usize>(
        &self,
        alpha: &[Lane<L>],
        cavity: &[Lane<L>],
        after: &mut [Lane<L>],
    ) {
        after.fill([S::ZERO; L]);
        for (state, next) in self.steps() {
            for (&next, c) in next.iter().zip(cavity) {
                let slot = &mut after[next as usize];
                for l in 0..L {
                    slot[l] = S::add(slot[l], S::mul(alpha[state][l], c[l]));
                }
            }
        }
    }

    #[inline(always)]
    fn backward<S: Semiring, const L: usize>(
        &self,
        after: &[Lane<L>],
        cavity: &[Lane<L>],
        beta: &mut [Lane<L>],
    ) {
        for (state, next) in self.steps() {
            let mut sum = [S::ZERO; L];
            for (&next, c) in next.iter().zip(cavity) {
                for l in 0..L {
                    sum[l] = S::add(sum[l], S::mul(after[next as usize][l], c[l]));
                }
            }
            beta[state] = sum;
        }
    }

    #[inline(always)]
    fn send_one<S: Semiring, const L: usize>(
        &self,
        alpha: &[Lane<L>],
        after: &[Lane<L>],
        message: &mut [Lane<L>],
    ) {
        message.fill([S::ZERO; L]);
        for (state, next) in self.steps() {
            for (&next, slot) in next.iter().zip(message.iter_mut()) {
                for l in 0..L {
                    slot[l] = S::add(slot[l], S::mul(alpha[state][l], after[next as usize][l]));
                }
            }
        }
    }
}
