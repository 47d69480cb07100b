//! Sums and products of probabilities in log space, where the probabilities themselves might underflow.

/// ln(eᵃ + eᵇ), exact at −∞.
pub fn log_add_exp(a: f64, b: f64) -> f64 {
    let (small, large) = if a < b { (a, b) } else { (b, a) };
    if small == f64::NEG_INFINITY {
        return large;
    }
    large + (small - large).exp().ln_1p()
}

/// ln Σ eˣ; −∞ for no terms.
pub fn log_sum_exp(terms: &[f64]) -> f64 {
    let largest = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if largest == f64::NEG_INFINITY {
        return largest;
    }
    largest + terms.iter().map(|term| (term - largest).exp()).sum::<f64>().ln()
}

/// ln p − ln(1 − p), the log-odds of a probability; ±∞ at 1 and 0.
pub fn log_odds(probability: f64) -> f64 {
    probability.ln() - (-probability).ln_1p()
}

/// eˣ, or the smallest positive number if it underflows. So possible values are never rounded to impossible ones.
pub(crate) fn exp_positive(x: f64) -> f64 {
    if x == f64::NEG_INFINITY { 0.0 } else { x.exp().max(SMALLEST) }
}

/// The quotient, or the smallest positive number if it underflows.
pub(crate) fn divide_positive(a: f64, b: f64) -> f64 {
    if a > 0.0 { (a / b).max(SMALLEST) } else { a / b }
}

/// The product of non-negative numbers, or the smallest positive number if it underflows.
pub(crate) fn multiply_positive(a: f64, b: f64) -> f64 {
    if a > 0.0 && b > 0.0 { (a * b).max(SMALLEST) } else { 0.0 }
}

/// The smallest positive number.
const SMALLEST: f64 = f64::from_bits(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_right_at_0_and_infinity() {
        assert_eq!(log_add_exp(f64::NEG_INFINITY, f64::NEG_INFINITY), f64::NEG_INFINITY);
        assert_eq!(log_add_exp(0.0, f64::NEG_INFINITY), 0.0);
        assert_eq!(log_add_exp(f64::NEG_INFINITY, 0.0), 0.0);
        assert_eq!(log_sum_exp(&[f64::NEG_INFINITY, -2.0]), -2.0);
        assert!((log_add_exp(-800.0, -801.0) - log_sum_exp(&[-800.0, -801.0])).abs() < 1e-12);
        assert!((log_odds(1e-300) - 1e-300f64.ln()).abs() < 1e-9);
        assert_eq!(log_odds(0.0), f64::NEG_INFINITY);
        assert_eq!((log_odds(0.5), log_odds(1.0)), (0.0, f64::INFINITY));
        assert!((log_add_exp(-1000.0, -1000.0) - (-1000.0 + 2f64.ln())).abs() < 1e-12);
        assert_eq!(log_sum_exp(&[]), f64::NEG_INFINITY);
        assert!((log_sum_exp(&[0.25f64.ln(), 0.75f64.ln()])).abs() < 1e-15);
    }

    #[test]
    fn possible_values_are_not_rounded_to_zero() {
        assert_eq!(exp_positive(f64::NEG_INFINITY), 0.0);
        assert_eq!((exp_positive(-1e9), exp_positive(0.0)), (5e-324, 1.0));
        assert_eq!((divide_positive(5e-324, 4.0), divide_positive(0.0, 4.0)), (5e-324, 0.0));
    }
}
