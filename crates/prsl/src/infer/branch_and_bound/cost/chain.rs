//! Costs of wide rules as chains, which process one label per level.

use std::collections::HashSet;

use crate::outcome::Outcome;

/// Maximum number of states per level in the chain of a noisy-or.
const MAX_STATES: usize = 64;

/// A cost computed label by label. From each state, each group leads to a state of the next level.
///
/// Chains of formulas are exact. A noisy-or of many labels has too many values of Q for an exact chain. Its states
/// are merged at the lower cost, so the chain's cost never exceeds the rule's.
pub(crate) struct Chain {
    pub(crate) levels: Vec<Level>,
    /// The cost of each state after the last level.
    pub(crate) last: Vec<f64>,
    /// The product Q, for rank-one rules.
    pub(crate) silence: Option<Silence>,
}

/// w(silent) Q + w(fired) (1 − Q) with Q = ∏ q.
pub(crate) struct Silence {
    /// q of every group of every place.
    pub(crate) q: Vec<f64>,
    pub(crate) weights: [f64; 2],
}

pub(crate) struct Level {
    pub(crate) n_states: usize,
    pub(crate) n_groups: usize,
    /// The next state, at `state * n_groups + group`.
    pub(crate) next: Vec<u32>,
}

impl Chain {
    /// A chain for −ln(w(silent) Q + w(fired) (1 − Q)), where each label's group multiplies Q by its q.
    ///
    /// The cost is monotone in Q, and Q is monotone in each of its factors. So merging states at their lower cost
    /// never raises the cost of an assignment. Checked in `chains_never_cost_more_than_their_rules`.
    pub(super) fn noisy_or(q: &[&[f64]], weights: [f64; 2]) -> Self {
        let silence = Some(Silence { q: q.concat(), weights });
        // States are ordered by the probability of the cheaper outcome.
        let cheap = usize::from(weights[0] <= weights[1]);
        let mut levels = Vec::with_capacity(q.len());
        let mut outcomes = vec![[1.0, 0.0]];
        // ln of the largest silence of each state. The silence itself may underflow.
        let mut log_silences = vec![0.0];
        for q in q {
            let after =
                |[silent, fired]: [f64; 2]| q.iter().map(move |q| [silent * q, fired + silent * (1.0 - q)]);
            let reached: Vec<[f64; 2]> = outcomes.iter().copied().flat_map(after).collect();
            let reached_logs = log_silences.iter().flat_map(|log| q.iter().map(move |q| log + q.ln()));
            let ends = run_ends(reached.iter().map(|outcome| outcome[cheap]));
            let run = |outcome: &[f64; 2]| ends.partition_point(|&end| end < outcome[cheap]);
            levels.push(Level {
                n_states: outcomes.len(),
                n_groups: q.len(),
                next: reached.iter().map(|outcome| run(outcome) as u32).collect(),
            });
            let mut united_logs = vec![f64::NEG_INFINITY; ends.len()];
            outcomes = vec![[0.0; 2]; ends.len()];
            for (outcome, log_silence) in reached.iter().zip(reached_logs) {
                let united = &mut outcomes[run(outcome)];
                if outcome[cheap] >= united[cheap] {
                    *united = *outcome;
                }
                united_logs[run(outcome)] = log_silence.max(united_logs[run(outcome)]);
            }
            log_silences = united_logs;
        }
        let cost = |(&outcome, &log): (&[f64; 2], &f64)| -Outcome::new(outcome, || log).log_weight(weights);
        let last = outcomes.iter().zip(&log_silences).map(cost).collect();
        Self { levels, last, silence }
    }
}

/// Divides values into at most [`MAX_STATES`] runs, and returns the largest value of each run in order. Runs are
/// separated at the largest gaps.
fn run_ends(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    sorted.dedup();
    let mut gaps: Vec<f64> = sorted.windows(2).map(|pair| pair[1] - pair[0]).collect();
    gaps.sort_by(|a, b| b.total_cmp(a));
    // Gaps larger than this separate runs.
    let least = gaps.get(MAX_STATES - 1).copied().unwrap_or(0.0);
    let is_end = |at: &usize| sorted.get(at + 1).is_none_or(|next| next - sorted[*at] > least);
    (0..sorted.len()).filter(is_end).map(|at| sorted[at]).collect()
}

/// Upper bound on the number of entries in the chain of a rank-one rule: states before each label times the label's
/// own.
pub(super) fn chain_size<'a>(q: impl Iterator<Item = &'a [f64]>) -> f64 {
    let (mut size, mut n_before) = (0.0, 1);
    for q in q {
        size += n_before as f64 * q.len() as f64;
        let distinct: HashSet<u64> = q.iter().map(|q| q.to_bits()).collect();
        n_before = (n_before * distinct.len()).min(MAX_STATES);
    }
    size
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};

    #[test]
    fn chains_never_cost_more_than_their_rules() {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(1);
        for weights in [[0.0, 1.0], [0.1, 0.9], [0.8, 0.2], [1.0, 0.0], [0.5, 0.5]] {
            let q: Vec<Vec<f64>> =
                (0..30).map(|_| (0..3).map(|_| rng.random::<f64>().powf(0.1)).collect()).collect();
            let chain = Chain::noisy_or(&q.iter().map(|q| &q[..]).collect::<Vec<_>>(), weights);
            assert!(chain.levels.iter().all(|level| level.n_states <= MAX_STATES));
            for _ in 0..1000 {
                let choices: Vec<usize> = q.iter().map(|_| rng.random_range(0..3)).collect();
                let state =
                    chain.levels.iter().zip(&choices).fold(0, |state, (level, choice)| {
                        level.next[state * level.n_groups + choice] as usize
                    });
                let silent: f64 = q.iter().zip(&choices).map(|(q, &choice)| q[choice]).product();
                let cost = -(weights[0] * silent + weights[1] * (1.0 - silent)).ln();
                assert!(chain.last[state] <= cost + 1e-12, "{} is more than {cost}", chain.last[state]);
                assert!(chain.last[state] >= cost - 1.0, "{} is useless for {cost}", chain.last[state]);
            }
        }
    }
}
