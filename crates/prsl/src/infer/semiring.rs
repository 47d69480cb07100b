//! Sum or maximum, numbers or their logarithms: one sweep serves all four.

use crate::log_space::log_add_exp;

/// What a sweep adds and multiplies with.
pub(crate) trait Semiring: Copy + Send + Sync + 'static {
    /// The neutral element of `add`: impossible.
    const ZERO: f64;
    /// The neutral element of `mul`: certain.
    const ONE: f64;
    /// Whether tables have to be kept from underflowing.
    const SCALED: bool;
    /// A total below this may have lost digits to underflow; in logarithms, it is zero.
    const FLOOR: f64;
    /// The same semiring on logarithms.
    type Log: Semiring;

    fn add(a: f64, b: f64) -> f64;
    fn mul(a: f64, b: f64) -> f64;
    /// A probability as an element.
    fn element(probability: f64) -> f64;
    /// The logarithm of an element.
    fn ln(element: f64) -> f64;
    /// The probability that an element stands for.
    fn probability(element: f64) -> f64;
    /// What an element is multiplied with to give `ONE`.
    fn inverse(element: f64) -> f64;
    /// The sum of two elements, also where `add` is the maximum.
    fn plus(a: f64, b: f64) -> f64;

    /// `share · old + (1 − share) · new`, except that a new zero stays one: it is a proof, not an estimate.
    #[inline(always)]
    fn mean([keep, share]: [f64; 2], new: f64, old: f64) -> f64 {
        let mixed = Self::plus(Self::mul(keep, new), Self::mul(share, old));
        if new == Self::ZERO { Self::ZERO } else { mixed }
    }
}

/// Sums of products: marginals and Z.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SumProduct;
/// Maxima of products: the most probable explanation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MaxProduct;
/// [`SumProduct`] on logarithms, for rows whose products underflow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogSumProduct;
/// [`MaxProduct`] on logarithms, for rows whose products underflow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogMaxProduct;

macro_rules! linear {
    ($name:ident, $log:ident, $add:expr) => {
        impl Semiring for $name {
            const ZERO: f64 = 0.0;
            const ONE: f64 = 1.0;
            const SCALED: bool = true;
            const FLOOR: f64 = 1e-60;
            type Log = $log;
            #[inline(always)]
            fn add(a: f64, b: f64) -> f64 {
                $add(a, b)
            }
            #[inline(always)]
            fn mul(a: f64, b: f64) -> f64 {
                a * b
            }
            fn element(probability: f64) -> f64 {
                probability
            }
            fn ln(element: f64) -> f64 {
                element.ln()
            }
            fn probability(element: f64) -> f64 {
                element
            }
            #[inline(always)]
            fn inverse(element: f64) -> f64 {
                1.0 / element
            }
            #[inline(always)]
            fn plus(a: f64, b: f64) -> f64 {
                a + b
            }
        }
    };
}
linear!(SumProduct, LogSumProduct, |a: f64, b: f64| a + b);
// Elements are never NaN, so the comparison that compiles to one instruction will do.
linear!(MaxProduct, LogMaxProduct, |a: f64, b: f64| if a > b { a } else { b });

macro_rules! logarithmic {
    ($name:ident, $add:expr) => {
        impl Semiring for $name {
            const ZERO: f64 = f64::NEG_INFINITY;
            const ONE: f64 = 0.0;
            const SCALED: bool = false;
            const FLOOR: f64 = f64::MIN;
            type Log = $name;
            #[inline(always)]
            fn add(a: f64, b: f64) -> f64 {
                $add(a, b)
            }
            #[inline(always)]
            fn mul(a: f64, b: f64) -> f64 {
                a + b
            }
            fn element(probability: f64) -> f64 {
                probability.ln()
            }
            fn ln(element: f64) -> f64 {
                element
            }
            fn probability(element: f64) -> f64 {
                element.exp()
            }
            #[inline(always)]
            fn inverse(element: f64) -> f64 {
                -element
            }
            #[inline(always)]
            fn plus(a: f64, b: f64) -> f64 {
                log_add_exp(a, b)
            }
        }
    };
}
logarithmic!(LogSumProduct, log_add_exp);
logarithmic!(LogMaxProduct, |a: f64, b: f64| if a > b { a } else { b });
