//! The inner loops of a sweep: joins, ors, weights and scaling, each over all lanes.

use super::super::plan::{At, Fan, Loops, Nest};
use super::{Lane, SUSPICIOUS};
use crate::infer::semiring::{Semiring, wide};

/// sum ⊕= x ⊗ y
#[inline(always)]
pub(super) fn add_product<S: Semiring, const L: usize>(sum: &mut Lane<L>, x: &Lane<L>, y: &Lane<L>) {
    for l in 0..L {
        sum[l] = S::add(sum[l], S::mul(x[l], y[l]));
    }
}

/// Updates the largest absolute value of each lane.
#[inline(always)]
fn widen<S: Semiring, const L: usize>(largest: &mut Lane<L>, x: &Lane<L>) {
    if S::SCALED {
        for l in 0..L {
            largest[l] = if x[l].abs() > largest[l] { x[l].abs() } else { largest[l] };
        }
    }
}

pub(super) fn largest_of<S: Semiring, const L: usize>(slots: &[Lane<L>]) -> Lane<L> {
    wide!(largest_in::<S, L>(slots))
}

#[inline(always)]
fn largest_in<S: Semiring, const L: usize>(slots: &[Lane<L>]) -> Lane<L> {
    let mut largest = [0.0; L];
    for slot in slots {
        widen::<S, L>(&mut largest, slot);
    }
    largest
}

/// Σ term(a b) over the entries of two tables.
#[inline(never)]
pub(super) fn sum_of_products<const L: usize>(
    a: &[Lane<L>],
    b: &[Lane<L>],
    term: impl Fn(f64) -> f64,
) -> Lane<L> {
    wide!({
        let mut sum = [0.0; L];
        for (a, b) in a.iter().zip(b) {
            for l in 0..L {
                sum[l] += term(a[l] * b[l]);
            }
        }
        sum
    })
}

/// out[k] = Σ_s a[k, s] b[k, s]. Returns the largest entry of each lane. The compiler unrolls short sums.
pub(super) fn join<S: Semiring, const L: usize>(
    a: &[Lane<L>],
    b: &[Lane<L>],
    out: &mut [Lane<L>],
    nest: &Nest,
) -> Lane<L> {
    match nest.across.len() {
        1 => join_across::<S, L, 1>(a, b, out, nest),
        2 => join_across::<S, L, 2>(a, b, out, nest),
        3 => join_across::<S, L, 3>(a, b, out, nest),
        4 => join_across::<S, L, 4>(a, b, out, nest),
        6 => join_across::<S, L, 6>(a, b, out, nest),
        8 => join_across::<S, L, 8>(a, b, out, nest),
        _ => wide!(join_in::<S, L>(a, b, out, &nest.along, &nest.across)),
    }
}

#[inline(never)]
fn join_across<S: Semiring, const L: usize, const N: usize>(
    a: &[Lane<L>],
    b: &[Lane<L>],
    out: &mut [Lane<L>],
    nest: &Nest,
) -> Lane<L> {
    let across: [At; N] = std::array::from_fn(|n| nest.across[n]);
    wide!(join_in::<S, L>(a, b, out, &nest.along, &across))
}

#[inline(always)]
fn join_in<S: Semiring, const L: usize>(
    a: &[Lane<L>],
    b: &[Lane<L>],
    out: &mut [Lane<L>],
    along: &Loops,
    across: &[At],
) -> Lane<L> {
    let mut largest = [0.0; L];
    for (o, slots) in along.outer().zip(out.chunks_exact_mut(along.inner.len())) {
        for (i, slot) in along.inner.iter().zip(slots) {
            let (a, b) = (&a[(o.a + i.a) as usize..], &b[(o.b + i.b) as usize..]);
            let mut sum = [S::ZERO; L];
            for p in across {
                add_product::<S, L>(&mut sum, &a[p.a as usize], &b[p.b as usize]);
            }
            widen::<S, L>(&mut largest, &sum);
            *slot = sum;
        }
    }
    largest
}

/// The wanted derivatives of a join: d_a[k, s] = Σ d[k] b[k, s], and likewise for b. Returns the largest of each. `a`
/// is the larger table, and its entries are visited in order.
pub(super) fn join_back<S: Semiring, const L: usize>(
    d: &[Lane<L>],
    values: [&[Lane<L>]; 2],
    derivatives: [&mut [Lane<L>]; 2],
    nest: &Nest,
    wanted: [bool; 2],
) -> [Lane<L>; 2] {
    match (wanted, nest.across.len()) {
        ([true, true], 1) => join_back_across::<S, L, true, true, 1>(d, values, derivatives, nest),
        ([true, true], 2) => join_back_across::<S, L, true, true, 2>(d, values, derivatives, nest),
        ([true, true], 3) => join_back_across::<S, L, true, true, 3>(d, values, derivatives, nest),
        ([true, true], 4) => join_back_across::<S, L, true, true, 4>(d, values, derivatives, nest),
        ([true, false], 1) => join_back_across::<S, L, true, false, 1>(d, values, derivatives, nest),
        ([true, false], 2) => join_back_across::<S, L, true, false, 2>(d, values, derivatives, nest),
        ([true, true], _) => join_back_any::<S, L, true, true>(d, values, derivatives, nest),
        ([true, false], _) => join_back_any::<S, L, true, false>(d, values, derivatives, nest),
        ([false, true], _) => join_back_any::<S, L, false, true>(d, values, derivatives, nest),
        ([false, false], _) => [[0.0; L]; 2],
    }
}

#[inline(never)]
fn join_back_across<S: Semiring, const L: usize, const A: bool, const B: bool, const N: usize>(
    d: &[Lane<L>],
    values: [&[Lane<L>]; 2],
    derivatives: [&mut [Lane<L>]; 2],
    nest: &Nest,
) -> [Lane<L>; 2] {
    let across: [At; N] = std::array::from_fn(|n| nest.across[n]);
    wide!(join_back_in::<S, L, A, B>(d, values, derivatives, &nest.along, &across))
}

#[inline(never)]
fn join_back_any<S: Semiring, const L: usize, const A: bool, const B: bool>(
    d: &[Lane<L>],
    values: [&[Lane<L>]; 2],
    derivatives: [&mut [Lane<L>]; 2],
    nest: &Nest,
) -> [Lane<L>; 2] {
    wide!(join_back_in::<S, L, A, B>(d, values, derivatives, &nest.along, &nest.across))
}

#[inline(always)]
fn join_back_in<S: Semiring, const L: usize, const A: bool, const B: bool>(
    d: &[Lane<L>],
    [a, b]: [&[Lane<L>]; 2],
    [d_a, d_b]: [&mut [Lane<L>]; 2],
    along: &Loops,
    across: &[At],
) -> [Lane<L>; 2] {
    let mut largest = [0.0; L];
    if B {
        d_b.fill([S::ZERO; L]);
    }
    let n = along.inner.len();
    for ((o, xs), d_xs) in along.outer().zip(a.chunks_exact(n)).zip(d_a.chunks_exact_mut(n)) {
        for ((i, x), d_x) in along.inner.iter().zip(xs).zip(d_xs) {
            let (at_b, at_out) = ((o.b + i.b) as usize, (o.out + i.out) as usize);
            let mut sum = [S::ZERO; L];
            for p in across {
                let d = &d[at_out + p.out as usize];
                if A {
                    add_product::<S, L>(&mut sum, d, &b[at_b + p.b as usize]);
                }
                if B {
                    add_product::<S, L>(&mut d_b[at_b + p.b as usize], d, x);
                }
            }
            if A {
                widen::<S, L>(&mut largest, &sum);
                *d_x = sum;
            }
        }
    }
    [largest, if B { largest_in::<S, L>(d_b) } else { largest }]
}

/// A [`join`] with shared fired variables that remain. Returns the largest entry of each lane.
#[inline(never)]
pub(super) fn or<S: Semiring, const L: usize>(
    a: &[Lane<L>],
    b: &[Lane<L>],
    out: &mut [Lane<L>],
    fan: &Fan,
) -> Lane<L> {
    if fan.is_repeated {
        out.fill([S::ZERO; L]);
    }
    wide!(or_in::<S, L>(a, b, out, fan))
}

#[inline(always)]
fn or_in<S: Semiring, const L: usize>(
    a: &[Lane<L>],
    b: &[Lane<L>],
    out: &mut [Lane<L>],
    fan: &Fan,
) -> Lane<L> {
    let mut largest = [0.0; L];
    for o in fan.along.outer() {
        for i in &fan.along.inner {
            let (a, b) = (&a[(o.a + i.a) as usize..], &b[(o.b + i.b) as usize..]);
            let at_out = o.out + i.out;
            for case in &fan.cases {
                let slot = &mut out[(at_out + case.at) as usize];
                let mut sum = if fan.is_repeated { *slot } else { [S::ZERO; L] };
                for p in &fan.terms[case.terms.clone()] {
                    add_product::<S, L>(&mut sum, &a[p.a as usize], &b[p.b as usize]);
                }
                // No term is negative, so the last partial sum is the largest.
                widen::<S, L>(&mut largest, &sum);
                *slot = sum;
            }
        }
    }
    largest
}

/// The wanted derivatives of [`or`]. Returns the largest of each.
pub(super) fn or_back<S: Semiring, const L: usize>(
    d: &[Lane<L>],
    values: [&[Lane<L>]; 2],
    derivatives: [&mut [Lane<L>]; 2],
    fan: &Fan,
    wanted: [bool; 2],
) -> [Lane<L>; 2] {
    match wanted {
        [true, true] => or_back_in::<S, L, true, true>(d, values, derivatives, fan),
        [true, false] => or_back_in::<S, L, true, false>(d, values, derivatives, fan),
        [false, true] => or_back_in::<S, L, false, true>(d, values, derivatives, fan),
        [false, false] => [[0.0; L]; 2],
    }
}

#[inline(never)]
fn or_back_in<S: Semiring, const L: usize, const A: bool, const B: bool>(
    d: &[Lane<L>],
    values: [&[Lane<L>]; 2],
    [d_a, d_b]: [&mut [Lane<L>]; 2],
    fan: &Fan,
) -> [Lane<L>; 2] {
    if A && fan.is_repeated {
        d_a.fill([S::ZERO; L]);
    }
    if B {
        d_b.fill([S::ZERO; L]);
    }
    wide!(or_back_loop::<S, L, A, B>(d, values, [&mut *d_a, &mut *d_b], fan))
}

#[inline(always)]
fn or_back_loop<S: Semiring, const L: usize, const A: bool, const B: bool>(
    d: &[Lane<L>],
    [a, b]: [&[Lane<L>]; 2],
    [d_a, d_b]: [&mut [Lane<L>]; 2],
    fan: &Fan,
) -> [Lane<L>; 2] {
    let mut largest = [0.0; L];
    for o in fan.along.outer() {
        for i in &fan.along.inner {
            let (d, at_b) = (&d[(o.out + i.out) as usize..], (o.b + i.b) as usize);
            for case in &fan.cases {
                let at_a = (o.a + i.a + case.at) as usize;
                let x = &a[at_a];
                let mut sum = if A && fan.is_repeated { d_a[at_a] } else { [S::ZERO; L] };
                for p in &fan.terms[case.terms.clone()] {
                    let d = &d[p.out as usize];
                    if A {
                        add_product::<S, L>(&mut sum, d, &b[at_b + p.b as usize]);
                    }
                    if B {
                        add_product::<S, L>(&mut d_b[at_b + p.b as usize], d, x);
                    }
                }
                if A {
                    widen::<S, L>(&mut largest, &sum);
                    d_a[at_a] = sum;
                }
            }
        }
    }
    [largest, if B { largest_in::<S, L>(d_b) } else { largest }]
}

/// Applies the weights of a fired variable, see [`Step::Weigh`](super::Step::Weigh). Returns the largest entry of each
/// lane.
#[inline(never)]
pub(super) fn weigh<S: Semiring, const L: usize>(
    input: &[Lane<L>],
    out: &mut [Lane<L>],
    weights: &[Lane<L>; 2],
    stride: usize,
) -> Lane<L> {
    let weights = weights.map(|lane| lane.map(S::element));
    wide!(weigh_in::<S, L>(input, out, &weights, stride))
}

#[inline(always)]
fn weigh_in<S: Semiring, const L: usize>(
    input: &[Lane<L>],
    out: &mut [Lane<L>],
    [w_silent, w_fired]: &[Lane<L>; 2],
    stride: usize,
) -> Lane<L> {
    let mut largest = [0.0; L];
    for (input, out) in input.chunks_exact(2 * stride).zip(out.chunks_exact_mut(2 * stride)) {
        let (silent, fired) = input.split_at(stride);
        let (out_silent, out_fired) = out.split_at_mut(stride);
        for k in 0..stride {
            let [mut x, mut y] = [[S::ZERO; L]; 2];
            for l in 0..L {
                x[l] = S::add(S::mul(w_silent[l], silent[k][l]), S::mul(w_fired[l], fired[k][l]));
                y[l] = S::mul(w_fired[l], S::add(silent[k][l], fired[k][l]));
            }
            widen::<S, L>(&mut largest, &x);
            widen::<S, L>(&mut largest, &y);
            (out_silent[k], out_fired[k]) = (x, y);
        }
    }
    largest
}

/// Adds the state "either", see [`Step::Extend`](super::Step::Extend). Returns the largest entry of each lane.
#[inline(never)]
pub(super) fn extend<S: Semiring, const L: usize>(
    input: &[Lane<L>],
    out: &mut [Lane<L>],
    stride: usize,
) -> Lane<L> {
    wide!(extend_in::<S, L>(input, out, stride))
}

#[inline(always)]
fn extend_in<S: Semiring, const L: usize>(input: &[Lane<L>], out: &mut [Lane<L>], stride: usize) -> Lane<L> {
    let mut largest = [0.0; L];
    for (input, out) in input.chunks_exact(2 * stride).zip(out.chunks_exact_mut(3 * stride)) {
        let (silent, fired) = input.split_at(stride);
        let (given, either) = out.split_at_mut(2 * stride);
        given.copy_from_slice(input);
        for k in 0..stride {
            let mut sum = [S::ZERO; L];
            for l in 0..L {
                sum[l] = S::add(silent[k][l], fired[k][l]);
            }
            widen::<S, L>(&mut largest, &silent[k]);
            widen::<S, L>(&mut largest, &fired[k]);
            widen::<S, L>(&mut largest, &sum);
            either[k] = sum;
        }
    }
    largest
}

/// The derivative of [`extend`]. That of "either" is added to both states.
#[inline(never)]
pub(super) fn extend_back<S: Semiring, const L: usize>(
    result: &[Lane<L>],
    d_input: &mut [Lane<L>],
    stride: usize,
) {
    wide!(extend_back_in::<S, L>(result, d_input, stride));
}

#[inline(always)]
fn extend_back_in<S: Semiring, const L: usize>(result: &[Lane<L>], d_input: &mut [Lane<L>], stride: usize) {
    for (result, d_input) in result.chunks_exact(3 * stride).zip(d_input.chunks_exact_mut(2 * stride)) {
        let (given, either) = result.split_at(2 * stride);
        for k in 0..2 * stride {
            let either = &either[k % stride];
            for l in 0..L {
                d_input[k][l] = S::add(given[k][l], either[l]);
            }
        }
    }
}

/// The entries in which a two-state variable of this stride is in its first state.
pub(super) fn pairs(size: usize, stride: usize) -> impl Iterator<Item = usize> {
    (0..size).step_by(2 * stride).flat_map(move |start| start..start + stride)
}

/// Multiplies each lane by the power of two that brings its largest entry near 1, and returns the exponents. Powers of
/// two cause no rounding.
pub(super) fn scale<S: Semiring, const L: usize>(
    slots: &mut [Lane<L>],
    largest: Lane<L>,
    suspicious: &mut [bool; L],
) -> [i32; L] {
    let mut exponents = [0; L];
    if !S::SCALED {
        return exponents;
    }
    let mut factors = [1.0; L];
    for l in 0..L {
        suspicious[l] |= largest[l] < SUSPICIOUS;
        // The exponent field of the float. Zero stays zero.
        let exponent = ((largest[l].to_bits() >> 52) & 0x7ff) as i32 - 1023;
        if largest[l] > 0.0 && !(-40..=40).contains(&exponent) {
            exponents[l] = exponent.clamp(-1000, 1000);
            factors[l] = f64::from_bits(((1023 - exponents[l]) as u64) << 52);
        }
    }
    if exponents != [0; L] {
        wide!(multiply_in(slots, &factors));
    }
    exponents
}

#[inline(always)]
fn multiply_in<const L: usize>(slots: &mut [Lane<L>], factors: &Lane<L>) {
    for slot in slots.iter_mut() {
        for l in 0..L {
            slot[l] *= factors[l];
        }
    }
}
