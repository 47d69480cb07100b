//! Noisy-or rules over many labels under the maximum.

use super::form::Lane;
use crate::infer::semiring::Semiring;

/// The most points that are kept of a set; beyond it every other one is dropped, and messages are estimates.
const MAX_POINTS: usize = 32;

/// The best weights that some labels reach together: (product of cavities · Q, product of cavities · (1 − Q)).
type Point = [f64; 2];

/// A wide noisy-or with general q, under the maximum.
///
/// # Derivation
///
/// Under a sum the pair (silent, fired) of a group of labels is one pair of numbers. Under a maximum every choice of
/// states has a pair (u, v) of its own: its cavities' product times Q, and times 1 − Q. Pairs of two groups combine by
/// ∨ as sums do, and whatever the other labels do, the weight is
///
/// ```text
/// α u + w(fired) v          min(w) ≤ α ≤ max(w)
/// ```
///
/// linear in (u, v) with coefficients ≥ 0. Only the corners of the upper right hull of all pairs can be the largest, so
/// label by label only those are kept: exact as long as they are few. Checked in
/// `wide_noisy_or_rules_find_the_best_explanation`.
#[derive(Clone, Debug)]
pub(super) struct Frontier {
    pub(super) sizes: Vec<usize>,
    /// q of each slot.
    pub(super) q: Vec<f64>,
    /// When silent and when fired.
    pub(super) weights: [f64; 2],
}

impl Frontier {
    pub(super) fn send<S: Semiring, const L: usize>(&self, incoming: &[Lane<L>], outgoing: &mut [Lane<L>]) {
        let mut cavities = vec![0.0; incoming.len()];
        let mut messages = vec![0.0; incoming.len()];
        for lane in 0..L {
            self.plain_cavities::<S, L>(incoming, lane, &mut cavities);
            self.send_plain(&cavities, &mut messages);
            for (slot, &message) in outgoing.iter_mut().zip(&messages) {
                slot[lane] = S::element(message);
            }
        }
    }

    /// The cavities of one lane as plain numbers, the largest of each label 1. What is positive stays so, even where
    /// only its logarithm could be held.
    fn plain_cavities<S: Semiring, const L: usize>(
        &self,
        incoming: &[Lane<L>],
        lane: usize,
        cavities: &mut [f64],
    ) {
        let least = if S::SCALED { 0.0 } else { 10f64.powf(-300.0 / self.sizes.len() as f64) };
        let mut first = 0;
        for &n in &self.sizes {
            let slots = first..first + n;
            first = slots.end;
            let largest = incoming[slots.clone()]
                .iter()
                .fold(S::ZERO, |max, c| if c[lane] > max { c[lane] } else { max });
            for slot in slots {
                let c = incoming[slot][lane];
                let plain = S::probability(S::mul(c, S::inverse(largest)));
                cavities[slot] = if c > S::ZERO { plain.max(least) } else { 0.0 };
            }
        }
    }

    fn send_plain(&self, cavities: &[f64], messages: &mut [f64]) {
        let mut before: Vec<Vec<Point>> = vec![vec![[1.0, 0.0]]];
        let mut first = 0;
        for &n in &self.sizes {
            let slots = first..first + n;
            first = slots.end;
            before.push(combine(
                &before[before.len() - 1],
                &self.points(&cavities[slots.clone()], &self.q[slots]),
            ));
        }
        let mut behind: Vec<Point> = vec![[1.0, 0.0]];
        for (label, &n) in self.sizes.iter().enumerate().rev() {
            let slots = first - n..first;
            first = slots.start;
            self.answer(
                &combine(&before[label], &behind),
                &self.q[slots.clone()],
                &mut messages[slots.clone()],
            );
            behind = combine(&behind, &self.points(&cavities[slots.clone()], &self.q[slots]));
        }
    }

    fn points(&self, cavities: &[f64], q: &[f64]) -> Vec<Point> {
        cavities.iter().zip(q).map(|(c, q)| [c * q, c * (1.0 - q)]).collect()
    }

    /// The best weight of each state, given what all other labels reach.
    fn answer(&self, others: &[Point], q: &[f64], messages: &mut [f64]) {
        let [w_silent, w_fired] = self.weights;
        messages.fill(0.0);
        for [silent, fired] in others {
            let (a, b) = (w_silent * silent + w_fired * fired, w_fired * (silent + fired));
            for (message, q) in messages.iter_mut().zip(q) {
                *message = message.max(q * a + (1.0 - q) * b);
            }
        }
    }
}

/// All ways to take one point of each set, those kept that can be best.
fn combine(a: &[Point], b: &[Point]) -> Vec<Point> {
    let or = |[s1, f1]: &Point, [s2, f2]: &Point| [s1 * s2, f1 * (s2 + f2) + s1 * f2];
    hull(a.iter().flat_map(|x| b.iter().map(move |y| or(x, y))).collect())
}

/// The corners of the upper right hull, from the largest u to the largest v.
fn hull(mut points: Vec<Point>) -> Vec<Point> {
    points.sort_by(|a, b| b[0].total_cmp(&a[0]).then(b[1].total_cmp(&a[1])));
    let mut kept: Vec<Point> = Vec::new();
    for point in points {
        if kept.last().is_some_and(|last| last[1] >= point[1]) {
            continue;
        }
        while let [.., a, b] = kept[..]
            && is_inside(a, b, point)
        {
            kept.pop();
        }
        kept.push(point);
    }
    while kept.len() > MAX_POINTS {
        let last = kept.len() - 1;
        let mut index = 0..=last;
        kept.retain(|_| index.next().is_some_and(|index| index % 2 == 0 || index == last));
    }
    kept
}

/// Whether b lies on or below the line from a to c, where u falls and v rises from a to c.
fn is_inside(a: Point, b: Point, c: Point) -> bool {
    (a[0] - b[0]) * (c[1] - b[1]) >= (b[1] - a[1]) * (b[0] - c[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hull_keeps_the_corners_alone() {
        let corners = [[4.0, 0.0], [3.0, 3.0], [0.0, 4.0]];
        let inside = [[2.0, 2.0], [3.5, 1.4], [1.0, 3.1], [0.0, 0.0]];
        assert_eq!(hull([&corners[..], &inside[..]].concat()), corners);
    }

    #[test]
    fn a_long_hull_is_thinned_and_keeps_its_ends() {
        let circle: Vec<Point> =
            (0..1000).map(|i| f64::from(i) / 999.0 * 1.57).map(|t| [t.cos(), t.sin()]).collect();
        let kept = hull(circle.clone());
        assert!(kept.len() <= MAX_POINTS);
        assert_eq!((kept[0], kept[kept.len() - 1]), (circle[0], circle[999]));
    }
}
