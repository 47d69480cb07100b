//! What underflow may have taken from the tables of a sweep.
//!
//! Tables are scaled so that their largest entry is near 1, but entries may lie as far apart as beliefs and rules make
//! them, and a product of two small ones may be too small for a number. That is harmless as long as larger entries
//! decide, and all that counts where hard rules exclude these later. So each table has a bound on the error of its entries:
//!
//! ```text
//! out = Σ a b    error(out) ≤ n (error(a) largest(b) + largest(a) error(b) + error(a) error(b) + u)             (1)
//! ```
//!
//! with n terms in a sum and u the smallest normal number, which counts only where the product of the smallest positive
//! entries of both tables is below it: otherwise nothing underflows, and a zero is a proof. An answer that is not much
//! larger than its error is computed again in logarithms. The smallest entry of a result is at least the product of those of the
//! inputs; where that bound becomes low, the entries are looked at.

use super::sweep::Lane;
use crate::infer::semiring::wide;

/// A row in which the product of the smallest positive entries of all leaves is above this cannot underflow anywhere; the
/// distance to the smallest number is for tables whose sums are scaled down.
pub(super) const CALM: f64 = 1e-270;

/// Products below this lose digits: u of (1).
const SMALLEST: f64 = f64::MIN_POSITIVE;

/// A bound on the smallest entry below this is replaced by the smallest entry.
const LOW: f64 = 1e-100;

/// The largest share of a number that underflow may have taken from it.
const SHARE: f64 = 1e-12;

/// Bounds on the entries of one table, for each lane.
#[derive(Clone, Copy, Debug)]
pub(super) struct Track<const L: usize> {
    largest: Lane<L>,
    /// At most the smallest positive entry; infinite if there is none.
    smallest: Lane<L>,
    /// The most that an entry may differ from what it should be because of underflow.
    lost: Lane<L>,
}

impl<const L: usize> Default for Track<L> {
    /// A table of ones.
    fn default() -> Self {
        Self { largest: [1.0; L], smallest: [1.0; L], lost: [0.0; L] }
    }
}

impl<const L: usize> Track<L> {
    /// A table that is given, exactly or not.
    pub(super) fn of_leaf(slots: &[Lane<L>], is_exact: [bool; L]) -> Self {
        let mut largest = [0.0; L];
        for slot in slots {
            (0..L).for_each(|l| largest[l] = slot[l].abs().max(largest[l]));
        }
        let lost = is_exact.map(|is_exact| if is_exact { 0.0 } else { SMALLEST });
        Self { largest, smallest: smallest_of(slots), lost }
    }

    /// (1)
    pub(super) fn product(a: &Self, b: &Self, n: usize) -> Self {
        let mut product = Self::default();
        let n = n as f64;
        for l in 0..L {
            product.smallest[l] = a.smallest[l] * b.smallest[l];
            let inherited = a.lost[l] * b.largest[l] + b.lost[l] * a.largest[l] + a.lost[l] * b.lost[l];
            let is_touched = product.smallest[l] < SMALLEST || a.lost[l] > 0.0 || b.lost[l] > 0.0;
            // The bound itself must not underflow.
            product.lost[l] = if is_touched { n * (inherited + SMALLEST) } else { 0.0 };
        }
        product
    }

    /// Sums of so many entries.
    pub(super) fn times(mut self, n: f64) -> Self {
        self.lost.iter_mut().for_each(|lost| *lost *= n);
        self
    }

    /// In which lanes products may lose digits.
    pub(super) fn loses(&self) -> [bool; L] {
        self.smallest.map(|smallest| smallest < SMALLEST)
    }

    /// In which lanes the smallest entry should be looked at.
    pub(super) fn is_low(&self) -> [bool; L] {
        self.smallest.map(|smallest| smallest < LOW)
    }

    /// Takes the smallest entries, now known, in some lanes.
    pub(super) fn raise(&mut self, lanes: &[bool; L], smallest: &Lane<L>) {
        for l in 0..L {
            if lanes[l] {
                self.smallest[l] = smallest[l];
            }
        }
    }

    /// The same table divided by powers of two, where it had these largest entries before.
    pub(super) fn scaled(mut self, largest: Lane<L>, exponents: [i32; L]) -> Self {
        for l in 0..L {
            // 2 to the power of minus the exponent, which is at most 1000 in size.
            let factor = f64::from_bits(((1023 - exponents[l]) as u64) << 52);
            self.largest[l] = largest[l] * factor;
            self.smallest[l] *= factor;
            self.lost[l] *= factor;
        }
        self
    }

    /// Multiplies by the smallest positive entries; by 0 where digits are lost already.
    pub(super) fn shrink(&self, product: &mut Lane<L>) {
        for l in 0..L {
            product[l] *= if self.lost[l] > 0.0 { 0.0 } else { self.smallest[l].min(1.0) };
        }
    }

    pub(super) fn lost(&self, lane: usize) -> f64 {
        self.lost[lane]
    }
}

/// The two weights of a rule as a table.
pub(super) fn of_weights<const L: usize>(weights: &[Lane<L>; 2]) -> Track<L> {
    Track::of_leaf(weights, [true; L])
}

/// The smallest positive size of an entry, infinite if there is none.
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

/// Whether underflow has left a number its digits, if it may have taken `lost`. Where it took nothing, zero is a number like
/// any other; not a number has no digits.
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
    fn errors_do_not_underflow_themselves() {
        let (lossy, small) = (Track::of_leaf(&[[1e-300]], [false]), Track::of_leaf(&[[1e-300]], [true]));
        assert!(Track::product(&lossy, &small, 1).lost(0) > 0.0);
    }
}
