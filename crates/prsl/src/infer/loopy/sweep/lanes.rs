//! Arithmetic on the lanes of messages.

use std::ops::Range;

use super::super::form::{LEAST, Lane, smallest};
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

/// Divides some slots by their total, and returns it.
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
    lower::<L>(lowest, &total);
    for slot in slots.clone() {
        multiply::<S, L>(&mut lanes[slot], &inverse);
    }
    if S::SCALED {
        note_small(lowest, &smallest(&lanes[slots]));
    }
    total
}

/// a[slots] = a[slots] b[first …], divided by their total, which it returns: [`multiply_slots`] and [`normalize`] in one.
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
            lower_positive(&mut smallest, product);
        }
    }
    let mut inverse = [S::ONE; L];
    for l in 0..L {
        inverse[l] = S::inverse(total[l]);
    }
    lower::<L>(lowest, &total);
    for slot in slots {
        multiply::<S, L>(&mut a[slot], &inverse);
    }
    if S::SCALED {
        // Division keeps the order of numbers, so the smallest one stays the smallest.
        for l in 0..L {
            smallest[l] *= inverse[l];
        }
        note_small(lowest, &smallest);
    }
    total
}

/// Lowers each lane to a number if that is positive.
#[inline(always)]
pub(super) fn lower_positive<const L: usize>(smallest: &mut Lane<L>, number: &Lane<L>) {
    for l in 0..L {
        let positive = if number[l] > 0.0 { number[l] } else { f64::INFINITY };
        smallest[l] = if positive < smallest[l] { positive } else { smallest[l] };
    }
}

/// Lets a lane's lowest total be 0 where a positive number has come too near to 0.
#[inline(always)]
pub(super) fn note_small<const L: usize>(lowest: &mut Lane<L>, smallest: &Lane<L>) {
    for l in 0..L {
        lowest[l] = if smallest[l] < LEAST { 0.0 } else { lowest[l] };
    }
}

#[inline(always)]
pub(super) fn lower<const L: usize>(lowest: &mut Lane<L>, total: &Lane<L>) {
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

/// (1 − damping) · new + damping · old, where `old` is normalized and `new` gets back its total. With a damping of 0
/// not a bit changes.
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
    fn multiplied_and_normalized_is_the_same_in_one() {
        let numbers = [[0.1, 0.0, 1e-150, 0.3], [0.9, 1.0, 1.0, 1e-30], [5.0; 4]];
        let factors = [[7.0; 4], [0.2, 0.5, 0.1, 1e-40], [0.8, 0.5, 0.9, 0.3]];
        is_the_same_in_one::<SumProduct>(numbers, factors);
        let ln = |lanes: [[f64; 4]; 3]| lanes.map(|lane| lane.map(f64::ln));
        is_the_same_in_one::<LogSumProduct>(ln(numbers), ln(factors));
    }
}
