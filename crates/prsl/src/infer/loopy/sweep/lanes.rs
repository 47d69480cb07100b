//! Arithmetic on the lanes of messages.

use std::ops::Range;

use super::super::form::{Lane, MIN_POSITIVE, smallest};
use crate::infer::semiring::Semiring;

#[inline(always)]
pub(super) fn multiply<S: Semiring, const L: usize>(a: &mut Lane<L>, b: &Lane<L>) {
    for l in 0..L {
        a[l] = S::mul(a[l], b[l]);
    }
}

/// a[slots] = a[slots] b[first …]
#[inline(always)]
pub(super) fn multiply_slots<S: Semiring, const L: usize>(
    a: &mut [Lane<L>],
    slots: Range<usize>,
    b: &[Lane<L>],
    first: usize,
) {
    for (slot, from) in slots.zip(first..) {
        multiply::<S, L>(&mut a[slot], &b[from]);
    }
}

#[inline(always)]
pub(super) fn sum<S: Semiring, const L: usize>(lanes: &[Lane<L>], slots: Range<usize>) -> Lane<L> {
    let mut total = [S::ZERO; L];
    for slot in slots {
        let lane = &lanes[slot];
        for l in 0..L {
            total[l] = S::add(total[l], lane[l]);
        }
    }
    total
}

/// Divides a range of slots by their total, and returns the total.
#[inline(always)]
pub(super) fn normalize<S: Semiring, const L: usize>(
    lanes: &mut [Lane<L>],
    slots: Range<usize>,
    lowest: &mut Lane<L>,
) -> Lane<L> {
    let total = sum::<S, L>(lanes, slots.clone());
    let mut inverse = [S::ONE; L];
    for l in 0..L {
        inverse[l] = S::inverse(total[l]);
    }
    update_minimum::<L>(lowest, &total);
    for slot in slots.clone() {
        multiply::<S, L>(&mut lanes[slot], &inverse);
    }
    if S::SCALED {
        mark_underflow(lowest, &smallest(&lanes[slots]));
    }
    total
}

/// [`multiply_slots`] and [`normalize`] in one pass: a[slots] = a[slots] b[first …] / total. Returns the total.
#[inline(always)]
pub(super) fn multiply_normalized<S: Semiring, const L: usize>(
    a: &mut [Lane<L>],
    slots: Range<usize>,
    b: &[Lane<L>],
    first: usize,
    lowest: &mut Lane<L>,
) -> Lane<L> {
    let (mut total, mut smallest) = ([S::ZERO; L], [f64::INFINITY; L]);
    for (slot, from) in slots.clone().zip(first..) {
        let product = &mut a[slot];
        multiply::<S, L>(product, &b[from]);
        for l in 0..L {
            total[l] = S::add(total[l], product[l]);
        }
        if S::SCALED {
            update_positive_minimum(&mut smallest, product);
        }
    }
    let mut inverse = [S::ONE; L];
    for l in 0..L {
        inverse[l] = S::inverse(total[l]);
    }
    update_minimum::<L>(lowest, &total);
    for slot in slots {
        multiply::<S, L>(&mut a[slot], &inverse);
    }
    if S::SCALED {
        // Division preserves the order, so the smallest value remains the smallest.
        for l in 0..L {
            smallest[l] *= inverse[l];
        }
        mark_underflow(lowest, &smallest);
    }
    total
}

/// Updates the minimum of the positive values of each lane.
#[inline(always)]
pub(super) fn update_positive_minimum<const L: usize>(smallest: &mut Lane<L>, number: &Lane<L>) {
    for l in 0..L {
        let positive = if number[l] > 0.0 { number[l] } else { f64::INFINITY };
        smallest[l] = if positive < smallest[l] { positive } else { smallest[l] };
    }
}

/// Sets a lane's lowest total to 0 if a positive value is below [`MIN_POSITIVE`].
#[inline(always)]
pub(super) fn mark_underflow<const L: usize>(lowest: &mut Lane<L>, smallest: &Lane<L>) {
    for l in 0..L {
        lowest[l] = if smallest[l] < MIN_POSITIVE { 0.0 } else { lowest[l] };
    }
}

/// Updates the minimum of the totals of each lane.
#[inline(always)]
pub(super) fn update_minimum<const L: usize>(lowest: &mut Lane<L>, total: &Lane<L>) {
    for l in 0..L {
        lowest[l] = if total[l] < lowest[l] { total[l] } else { lowest[l] };
    }
}

/// ⊕ a b
#[inline(always)]
pub(super) fn dot<S: Semiring, const L: usize>(a: &[Lane<L>], b: &[Lane<L>]) -> Lane<L> {
    let mut total = [S::ZERO; L];
    for (a, b) in a.iter().zip(b) {
        for l in 0..L {
            total[l] = S::add(total[l], S::mul(a[l], b[l]));
        }
    }
    total
}

/// Replaces `new` by (1 − damping) · new + damping · old. `old` is normalized, and is scaled to the total of `new`. A
/// damping of 0 leaves all bits of `new` unchanged.
#[inline(always)]
pub(super) fn damp<S: Semiring, const L: usize>(
    new: &mut [Lane<L>],
    old: &[Lane<L>],
    [keep, share]: &[Lane<L>; 2],
) {
    let total = sum::<S, L>(new, 0..new.len());
    for (new, old) in new.iter_mut().zip(old) {
        for l in 0..L {
            new[l] = S::mean([keep[l], S::mul(share[l], total[l])], new[l], old[l]);
        }
    }
}

/// The largest absolute difference of two messages, in each lane.
pub(super) fn largest_change<S: Semiring, const L: usize>(a: &[Lane<L>], b: &[Lane<L>]) -> Lane<L> {
    let mut largest = [0.0f64; L];
    for (a, b) in a.iter().zip(b) {
        for l in 0..L {
            largest[l] = largest[l].max((S::probability(a[l]) - S::probability(b[l])).abs());
        }
    }
    largest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::infer::semiring::{LogSumProduct, SumProduct};

    fn is_the_same_in_one<S: Semiring>(numbers: [[f64; 4]; 3], factors: [[f64; 4]; 3]) {
        let (mut apart, mut in_one) = (numbers, numbers);
        let (mut lowest, mut lowest_in_one) = ([f64::INFINITY; 4], [f64::INFINITY; 4]);
        multiply_slots::<S, 4>(&mut apart, 0..2, &factors, 1);
        let total = normalize::<S, 4>(&mut apart, 0..2, &mut lowest);
        let total_in_one = multiply_normalized::<S, 4>(&mut in_one, 0..2, &factors, 1, &mut lowest_in_one);
        let bits = |lane: [f64; 4]| lane.map(f64::to_bits);
        assert_eq!((bits(total), bits(lowest)), (bits(total_in_one), bits(lowest_in_one)));
        assert_eq!(apart.map(bits), in_one.map(bits));
    }

    #[test]
    fn one_pass_gives_the_same_bits_as_two() {
        let numbers = [[0.1, 0.0, 1e-150, 0.3], [0.9, 1.0, 1.0, 1e-30], [5.0; 4]];
        let factors = [[7.0; 4], [0.2, 0.5, 0.1, 1e-40], [0.8, 0.5, 0.9, 0.3]];
        is_the_same_in_one::<SumProduct>(numbers, factors);
        let ln = |lanes: [[f64; 4]; 3]| lanes.map(|lane| lane.map(f64::ln));
        is_the_same_in_one::<LogSumProduct>(ln(numbers), ln(factors));
    }
}
