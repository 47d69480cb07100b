//! Gains by chance.
//!
//! Among many candidates some seem to gain even if no rule is missing. A price far below the logarithm of their number
//! lets them in. This does little harm if most gains have a reason, but it does if none has. So the number of gains is
//! compared with the number by chance, as Benjamini and Hochberg (1995) do to control the rate of false discoveries. Learned
//! rules that are surely not there by chance count as discoveries too: what matters is the share of false ones in all.

use std::f64::consts::PI;

/// Maximum share of gains by chance. Between 0.2 and 0.5 it makes little difference.
const MAX_SHARE: f64 = 0.4;

/// Whether `gains` are more than chance explains, beside `n_sure` rules. They are without the penalty, and the largest of `n`
/// candidates'.
pub(crate) fn is_exceeded(gains: impl Iterator<Item = f64>, n: usize, n_sure: usize) -> bool {
    let mut gains: Vec<f64> = gains.collect();
    gains.sort_by(|a, b| b.total_cmp(a));
    let is_rare = |gain: f64, n_rules: usize| n as f64 * probability(gain) < MAX_SHARE * n_rules as f64;
    gains.into_iter().zip(n_sure + 1..).any(|(gain, n_rules)| is_rare(gain, n_rules))
}

/// The probability of a larger gain by chance. The square root of twice the gain is about normally distributed, so it is
/// Φ(−√(2g)). This is about e⁻ᵍ / (1 + 2 √(π g)).
fn probability(gain: f64) -> f64 {
    (-gain).exp() / (1.0 + 2.0 * (PI * gain).sqrt())
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::learn::gain::Counts;

    /// The gain of a rule about 200 rows that is expected to be broken in 30 of them, if each is with probability `p`.
    fn gain(rng: &mut ChaCha8Rng, p: f64) -> f64 {
        let data = (0..200).filter(|_| rng.random_bool(p)).count() as f64;
        Counts { data, expected: 30.0, variance: 30.0 * 0.85 }.gain_without_penalty()
    }

    #[test]
    fn gains_by_chance_are_recognized() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let is_exceeded_with = |rng: &mut ChaCha8Rng, n_rules: usize| {
            let rules: Vec<f64> = (0..n_rules).map(|_| gain(rng, 0.05)).collect();
            let others: Vec<f64> = (0..500).map(|_| gain(rng, 0.15)).collect();
            is_exceeded(rules.into_iter().chain(others), 500 + n_rules, 0)
        };
        let by_chance = (0..200).filter(|_| is_exceeded_with(&mut rng, 0)).count();
        let with_rules = (0..200).filter(|_| is_exceeded_with(&mut rng, 3)).count();
        assert!(by_chance < 140 && with_rules > 195, "{by_chance} and {with_rules} of 200");
    }

    #[test]
    fn the_more_rules_are_sure_the_smaller_gains_count() {
        let gains = [3.0, 2.8];
        assert!(!is_exceeded(gains.into_iter(), 100, 0));
        assert!(is_exceeded(gains.into_iter(), 100, 20));
        assert!(!is_exceeded(gains.into_iter(), 10_000, 20));
    }

    #[test]
    fn gains_by_chance_are_as_frequent_as_probable() {
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let gains: Vec<f64> = (0..50_000).map(|_| gain(&mut rng, 0.15)).collect();
        for limit in [0.5, 1.0, 2.0, 3.0, 4.0] {
            let share = gains.iter().filter(|&&gain| gain > limit).count() as f64 / 50_000.0;
            let ratio = share / probability(limit);
            assert!((0.5..2.0).contains(&ratio), "{share} above {limit}, {ratio} times the estimate");
        }
    }
}
