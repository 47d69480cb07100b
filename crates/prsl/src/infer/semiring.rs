//! The four semirings of sweeps: sum or maximum, each on numbers or logarithms.

use crate::log_space::log_add_exp;
use crate::outcome::Outcome;

/// The query of a sweep: marginals need sums, most probable assignments need maxima.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aim {
    Sum,
    Maximum,
}

impl Aim {
    /// The query as a noun phrase for messages.
    pub(crate) fn query(self) -> &'static str {
        match self {
            Aim::Sum => "exact inference",
            Aim::Maximum => "the exact most probable assignment",
        }
    }

    /// Advice if the treewidth of a model is too large for any memory limit.
    pub(crate) fn advice(self) -> &'static str {
        "give the rules that connect many labels fewer labels, or use loopy propagation"
    }
}

/// A value that moves into a closure, so that the closure can be called only once.
pub(crate) struct Once;

/// Evaluates an expression with AVX2 if the machine has it. Every function that it calls must be `#[inline(always)]`.
///
/// A closure that can be called repeatedly is called through a wrapper that the compiler generates. If the wrapper is
/// long, it is not inlined into the dispatched function and runs without AVX2. The token prevents the wrapper, because
/// the closure can then be called only once.
macro_rules! wide {
    ($kernel:expr) => {{
        let once = $crate::infer::semiring::Once;
        pulp::Arch::new().dispatch(
            #[inline(always)]
            || {
                let _once = once;
                $kernel
            },
        )
    }};
}
pub(crate) use wide;

/// Addition and multiplication of a sweep.
pub(crate) trait Semiring: Copy + Send + Sync + 'static {
    /// The neutral element of `add`; it means "impossible".
    const ZERO: f64;
    /// The neutral element of `mul`; it means "certain".
    const ONE: f64;
    /// Whether tables need scaling to avoid underflow.
    const SCALED: bool;
    /// Threshold below which a total may have lost digits to underflow. In logarithms, totals below it are zero.
    const FLOOR: f64;
    /// The same semiring on logarithms.
    type Log: Semiring;

    fn add(a: f64, b: f64) -> f64;
    fn mul(a: f64, b: f64) -> f64;
    /// A probability as an element.
    fn element(probability: f64) -> f64;
    /// The logarithm of an element.
    fn ln(element: f64) -> f64;
    /// The probability that an element represents.
    fn probability(element: f64) -> f64;
    /// The inverse with respect to `mul`.
    fn inverse(element: f64) -> f64;
    /// The sum of two elements, even if `add` is the maximum.
    fn plus(a: f64, b: f64) -> f64;

    /// `share · old + (1 − share) · new`. A new zero stays zero, because a zero is proven and not estimated.
    #[inline(always)]
    fn mean([keep, share]: [f64; 2], new: f64, old: f64) -> f64 {
        let mixed = Self::plus(Self::mul(keep, new), Self::mul(share, old));
        if new == Self::ZERO { Self::ZERO } else { mixed }
    }
}

/// Sums of products: marginals and Z.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SumProduct;
/// Maxima of products: most probable assignments.
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
            #[inline(always)]
            fn element(probability: f64) -> f64 {
                probability
            }
            #[inline(always)]
            fn ln(element: f64) -> f64 {
                element.ln()
            }
            #[inline(always)]
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
// Elements are never NaN. So a comparison suffices, which compiles to one instruction.
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
            #[inline(always)]
            fn element(probability: f64) -> f64 {
                probability.ln()
            }
            #[inline(always)]
            fn ln(element: f64) -> f64 {
                element
            }
            #[inline(always)]
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

impl Outcome {
    /// Silent and fired as elements of a semiring. Linear elements may underflow, see [`Self::is_exact`].
    pub(crate) fn elements<S: Semiring>(self) -> [f64; 2] {
        if S::SCALED { self.probabilities() } else { self.logarithms() }
    }

    /// w(silent) Q + w(fired) (1 − Q) as an element of a semiring. It is a sum even if the semiring takes maxima,
    /// because it is the weight of one assignment.
    pub(crate) fn weigh<S: Semiring>(self, [silent, fired]: [f64; 2]) -> f64 {
        if !S::SCALED {
            return self.log_weight([silent, fired]);
        }
        let [q_silent, q_fired] = self.probabilities();
        silent * q_silent + fired * q_fired
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silence_below_every_number_counts_in_logarithms() {
        let outcome = Outcome::new([0.0, 1.0], || -921.0);
        assert_eq!(outcome.weigh::<LogSumProduct>([1.0, 0.0]), -921.0);
        assert_eq!(outcome.weigh::<SumProduct>([1.0, 0.0]), 0.0);
        assert_eq!(outcome.elements::<LogSumProduct>(), [-921.0, 0.0]);
    }
}
