//! Max-product messages of noisy-or rules over many labels.

use super::form::Lane;
use crate::infer::semiring::Semiring;
use crate::log_space::log_add_exp;

/// Maximum number of points of a set. Above it, every other point is dropped and messages become approximate.
const MAX_POINTS: usize = 32;

/// Two weights of one choice of states: (product of cavity messages · Q, product of cavity messages · (1 − Q)).
type Point = [f64; 2];

/// A noisy-or over many labels under max-product, with any q from 0 to 1.
///
/// # Derivation
///
/// Under a sum, a group of labels has one pair (silent, fired). Under a maximum, every choice of states has its own
/// pair (u, v): the product of its cavity messages times Q, and times 1 − Q. Pairs of two groups combine by ∨, as for
/// sums. For any states of the other labels, the weight is
///
/// ```text
/// α u + w(fired) v          min(w) ≤ α ≤ max(w)
/// ```
///
/// which is linear in (u, v) with coefficients ≥ 0. Its maximum is at a corner of the upper right convex hull of all
/// pairs. So only the corners are kept after each label, which is exact up to [`MAX_POINTS`] corners. Scaling u and v
/// separately preserves corners, so neither underflows if it is much smaller than the other. Checked in
/// `wide_noisy_or_rules_find_the_best_explanation`.
#[derive(Clone, Debug)]
pub(super) struct Frontier {
    pub(super) sizes: Vec<usize>,
    /// q of each slot.
    pub(super) q: Vec<f64>,
    /// w(silent) and w(fired).
    pub(super) weights: [f64; 2],
}

/// Points, scaled so that the largest u and the largest v are 1, and the logarithms of the two scales.
#[derive(Clone, Debug, PartialEq)]
struct Corners {
    points: Vec<Point>,
    log_scale: [f64; 2],
}

impl Frontier {
    pub(super) fn send<S: Semiring, const L: usize>(&self, incoming: &[Lane<L>], outgoing: &mut [Lane<L>]) {
        let mut messages = vec![0.0; incoming.len()];
        for lane in 0..L {
            let log_cavities: Vec<f64> = incoming.iter().map(|cavity| S::ln(cavity[lane])).collect();
            self.send_logs(&log_cavities, &mut messages);
            let largest = messages.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            for (slot, &message) in outgoing.iter_mut().zip(&messages) {
                slot[lane] = match message {
                    f64::NEG_INFINITY => S::ZERO,
                    message if S::SCALED => (message - largest).exp(),
                    message => message - largest,
                };
            }
        }
    }

    /// Computes the log messages from the log cavity messages.
    fn send_logs(&self, log_cavities: &[f64], log_messages: &mut [f64]) {
        let mut before: Vec<Corners> = vec![Corners::empty()];
        let mut first = 0;
        for &n in &self.sizes {
            let slots = first..first + n;
            first = slots.end;
            let own = Corners::of_label(&log_cavities[slots.clone()], &self.q[slots]);
            before.push(before[before.len() - 1].or(&own));
        }
        let mut after = Corners::empty();
        for (label, &n) in self.sizes.iter().enumerate().rev() {
            let slots = first - n..first;
            first = slots.start;
            let others = before[label].or(&after);
            self.send_one(&others, &self.q[slots.clone()], &mut log_messages[slots.clone()]);
            after = after.or(&Corners::of_label(&log_cavities[slots.clone()], &self.q[slots]));
        }
    }

    /// Computes the log of the best weight of each state, given the points of all other labels.
    fn send_one(&self, others: &Corners, q: &[f64], log_messages: &mut [f64]) {
        let [w_silent, w_fired] = self.weights.map(f64::ln);
        log_messages.fill(f64::NEG_INFINITY);
        for point in &others.points {
            let [silent, fired] = [0, 1].map(|axis| point[axis].ln() + others.log_scale[axis]);
            let a = log_add_exp(w_silent + silent, w_fired + fired);
            let b = w_fired + log_add_exp(silent, fired);
            for (message, q) in log_messages.iter_mut().zip(q) {
                *message = message.max(log_add_exp(q.ln() + a, (1.0 - q).ln() + b));
            }
        }
    }
}

impl Corners {
    /// The pair of an empty group of labels, which is always silent.
    fn empty() -> Self {
        Self { points: vec![[1.0, 0.0]], log_scale: [0.0, f64::NEG_INFINITY] }
    }

    fn of_label(log_cavities: &[f64], q: &[f64]) -> Self {
        let logs: Vec<Point> =
            log_cavities.iter().zip(q).map(|(c, q)| [c + q.ln(), c + (1.0 - q).ln()]).collect();
        let log_scale =
            [0, 1].map(|axis| logs.iter().map(|point| point[axis]).fold(f64::NEG_INFINITY, f64::max));
        let points =
            logs.iter().map(|point| [0, 1].map(|axis| ratio(point[axis], log_scale[axis]))).collect();
        Self { points: hull(points), log_scale }
    }

    /// The corners of all combinations of one point of each set.
    fn or(&self, other: &Self) -> Self {
        let ([s1, f1], [s2, f2]) = (self.log_scale, other.log_scale);
        let terms = [f1 + s2, f1 + f2, s1 + f2];
        let fired = terms.into_iter().fold(f64::NEG_INFINITY, f64::max);
        let [first, both, second] = terms.map(|term| ratio(term, fired));
        let or = |[s1, f1]: &Point, [s2, f2]: &Point| {
            [s1 * s2, first * (f1 * s2) + both * (f1 * f2) + second * (s1 * f2)]
        };
        let all = self.points.iter().flat_map(|x| other.points.iter().map(move |y| or(x, y))).collect();
        Self { points: hull(all), log_scale: [s1 + s2, fired] }.scaled()
    }

    /// Rescales the points so that the largest u and the largest v are 1.
    fn scaled(mut self) -> Self {
        for axis in [0, 1] {
            let largest = self.points.iter().map(|point| point[axis]).fold(0.0, f64::max);
            if largest > 0.0 {
                self.points.iter_mut().for_each(|point| point[axis] /= largest);
                self.log_scale[axis] += largest.ln();
            } else {
                self.log_scale[axis] = f64::NEG_INFINITY;
            }
        }
        self
    }
}

/// exp(log − log_scale), and 0 if `log` is −∞.
fn ratio(log: f64, log_scale: f64) -> f64 {
    if log == f64::NEG_INFINITY { 0.0 } else { (log - log_scale).exp() }
}

/// The corners of the upper right convex hull, from the largest u to the largest v.
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

/// Whether b lies on or below the line from a to c. From a to c, u decreases and v increases.
fn is_inside(a: Point, b: Point, c: Point) -> bool {
    (a[0] - b[0]) * (c[1] - b[1]) >= (b[1] - a[1]) * (b[0] - c[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hull_keeps_only_the_corners() {
        let corners = [[4.0, 0.0], [3.0, 3.0], [0.0, 4.0]];
        let inside = [[2.0, 2.0], [3.5, 1.4], [1.0, 3.1], [0.0, 0.0]];
        assert_eq!(hull([&corners[..], &inside[..]].concat()), corners);
    }

    #[test]
    fn a_hull_with_too_many_corners_is_thinned_and_keeps_its_ends() {
        let circle: Vec<Point> =
            (0..1000).map(|i| f64::from(i) / 999.0 * 1.57).map(|t| [t.cos(), t.sin()]).collect();
        let kept = hull(circle.clone());
        assert!(kept.len() <= MAX_POINTS);
        assert_eq!((kept[0], kept[kept.len() - 1]), (circle[0], circle[999]));
    }
}
