//! Bounds on the errors that underflow causes in the tables of a sweep.
//!
//! Tables are scaled so that their largest entry is near 1. Their other entries may be arbitrarily small, and a product
//! of two small entries may underflow. This matters only if hard rules exclude the larger entries later. So each table
//! has a bound on the error of its entries:
//!
//! ```text
//! out = Σ a b    error(out) ≤ n (error(a) largest(b) + largest(a) error(b) + error(a) error(b) + u)             (1)
//! ```
//!
//! Here n is the number of terms of a sum, and u the smallest normal number. The term u is omitted if the product of
//! the smallest positive entries of both tables is at least u. Then nothing underflows, and a zero proves
//! impossibility. An answer that is not much larger than its error is computed again in logarithms. The smallest entry
//! of a result is at least the product of the smallest entries of the inputs. If this bound becomes low, the smallest
//! entry is determined.

use super::sweep::Lane;
use crate::infer::semiring::wide;

/// Smallest product of the smallest positive entries of all leaves with which underflow is impossible. The distance to
/// the smallest normal number, 2e-308, is a margin for sums that are scaled down.
pub(super) const CALM: f64 = 1e-270;

/// The smallest product with full precision: u of (1).
const SMALLEST: f64 = f64::MIN_POSITIVE;

/// Smallest bound on the smallest entry that is used. Below it, the smallest entry itself is determined.
const LOW: f64 = 1e-100;

/// Largest relative error by underflow of an accurate number.
const SHARE: f64 = 1e-12;

/// Bounds on the entries of one table, for each lane.
#[derive(Clone, Copy, Debug)]
pub(super) struct Track<const L: usize> {
    largest: Lane<L>,
    /// At most the smallest positive entry; infinite if there is none.
    smallest: Lane<L>,
    /// Bound on the error of an entry by underflow. It is finite, so that its products are not NaN.
    lost: Lane<L>,
}

impl<const L: usize> Default for Track<L> {
    /// A table of ones.
    fn default() -> Self {
        Self { largest: [1.0; L], smallest: [1.0; L], lost: [0.0; L] }
    }
}

impl<const L: usize> Track<L> {
    /// The bounds of a leaf. Entries that are not exact have underflowed already.
    pub(super) fn of_leaf(slots: &[Lane<L>], is_exact: [bool; L]) -> Self {
        let mut largest = [0.0; L];
        for slot in slots {
            (0..L).for_each(|l| largest[l] = slot[l].abs().max(largest[l]));
        }
        let lost = is_exact.map(|is_exact| if is_exact { 0.0 } else { SMALLEST });
        Self { largest, smallest: smallest_of(slots), lost }
    }

    /// The bounds of sums of `n` products, by (1).
    pub(super) fn product(a: &Self, b: &Self, n: usize) -> Self {
        let mut product = Self::default();
        let n = n as f64;
        for l in 0..L {
            product.smallest[l] = a.smallest[l] * b.smallest[l];
            let inherited = a.lost[l] * b.largest[l] + b.lost[l] * a.largest[l] + a.lost[l] * b.lost[l];
            let is_touched = product.smallest[l] < SMALLEST || a.lost[l] > 0.0 || b.lost[l] > 0.0;
            // `SMALLEST` is added so that the bound itself does not underflow to 0.
            product.lost[l] = if is_touched { (n * (inherited + SMALLEST)).min(f64::MAX) } else { 0.0 };
        }
        product
    }

    /// The bounds of sums of `n` entries.
    pub(super) fn times(mut self, n: f64) -> Self {
        self.lost.iter_mut().for_each(|lost| *lost = (*lost * n).min(f64::MAX));
        self
    }

    /// The lanes in which products may underflow.
    pub(super) fn loses(&self) -> [bool; L] {
        self.smallest.map(|smallest| smallest < SMALLEST)
    }

    /// The lanes in which the smallest entry should be determined.
    pub(super) fn is_low(&self) -> [bool; L] {
        self.smallest.map(|smallest| smallest < LOW)
    }

    /// Sets the smallest entries of some lanes.
    pub(super) fn raise(&mut self, lanes: &[bool; L], smallest: &Lane<L>) {
        for l in 0..L {
            if lanes[l] {
                self.smallest[l] = smallest[l];
            }
        }
    }

    /// The bounds of a table with these largest entries, divided by powers of two.
    pub(super) fn scaled(mut self, largest: Lane<L>, exponents: [i32; L]) -> Self {
        for l in 0..L {
            // 2^−exponent. Exponents are between −1000 and 1000.
            let factor = f64::from_bits(((1023 - exponents[l]) as u64) << 52);
            self.largest[l] = largest[l] * factor;
            self.smallest[l] *= factor;
            self.lost[l] = (self.lost[l] * factor).min(f64::MAX);
        }
        self
    }

    /// Multiplies `product` by the smallest positive entries, or by 0 in lanes with underflow.
    pub(super) fn shrink(&self, product: &mut Lane<L>) {
        for l in 0..L {
            product[l] *= if self.lost[l] > 0.0 { 0.0 } else { self.smallest[l].min(1.0) };
        }
    }

    pub(super) fn lost(&self, lane: usize) -> f64 {
        self.lost[lane]
    }
}

/// The bounds of the two weights of a rule.
pub(super) fn of_weights<const L: usize>(weights: &[Lane<L>; 2]) -> Track<L> {
    Track::of_leaf(weights, [true; L])
}

/// The smallest positive absolute value of an entry; infinite if there is none.
pub(super) fn smallest_of<const L: usize>(slots: &[Lane<L>]) -> Lane<L> {
    wide!(smallest_in(slots))
}

#[inline(always)]
fn smallest_in<const L: usize>(slots: &[Lane<L>]) -> Lane<L> {
    let mut smallest = [f64::INFINITY; L];
    for slot in slots {
        for l in 0..L {
            let size = if slot[l] == 0.0 { f64::INFINITY } else { slot[l].abs() };
            smallest[l] = if size < smallest[l] { size } else { smallest[l] };
        }
    }
    smallest
}

/// Whether a number is accurate, if `lost` bounds its error by underflow. Zero is accurate only if `lost` is 0. NaN is
/// not accurate unless `lost` is 0.
pub(super) fn is_kept(number: f64, lost: f64) -> bool {
    lost == 0.0 || SHARE * number >= lost
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zero_is_a_proof_only_where_nothing_underflows() {
        let table = Track::of_leaf(&[[0.0], [1e-200]], [true]);
        let other = Track::of_leaf(&[[1e-90], [1.0]], [true]);
        assert!(is_kept(0.0, Track::product(&table, &other, 2).lost(0)));
        let lost = Track::product(&table, &table, 2).lost(0);
        assert!(!is_kept(0.0, lost) && is_kept(1e-280, lost));
    }

    #[test]
    fn what_is_lost_grows_with_the_scale() {
        let table = Track::of_leaf(&[[1.0], [1e-200]], [true]);
        let lost = Track::product(&table, &table, 1).scaled([1e-150], [-500]).lost(0);
        assert!(is_kept(1.0, lost) && !is_kept(1e-150, lost));
    }

    #[test]
    fn errors_do_not_overflow() {
        let mut lossy = Track::of_leaf(&[[1e-300]], [false]);
        let one = Track::default();
        for _ in 0..3 {
            lossy = Track::product(&lossy.scaled([1.0], [-1000]), &one, 2);
        }
        assert!(!is_kept(1.0, lossy.lost(0)));
    }

    #[test]
    fn errors_do_not_underflow_themselves() {
        let (lossy, small) = (Track::of_leaf(&[[1e-300]], [false]), Track::of_leaf(&[[1e-300]], [true]));
        assert!(Track::product(&lossy, &small, 1).lost(0) > 0.0);
    }
}
