//! Arithmetic on eight rows side by side.
//!
//! A [`Lane`] holds one number for each of eight rows. Loops over lanes have a fixed length, so the compiler vectorizes
//! them.

/// Number of rows side by side.
pub(super) const LANES: usize = 8;
/// One number for each row.
pub(super) type Lane = [f64; LANES];

#[inline(always)]
pub(super) fn multiply(slot: &mut Lane, by: &Lane) {
    for l in 0..LANES {
        slot[l] *= by[l];
    }
}

#[inline(always)]
pub(super) fn add_scaled(slot: &mut Lane, x: &Lane, factor: f64) {
    for l in 0..LANES {
        slot[l] += x[l] * factor;
    }
}

#[inline(always)]
pub(super) fn dot(a: &Lane, b: &Lane) -> f64 {
    let products: Lane = std::array::from_fn(|l| a[l] * b[l]);
    ((products[0] + products[4]) + (products[2] + products[6]))
        + ((products[1] + products[5]) + (products[3] + products[7]))
}

/// Σ ab for each row.
pub(super) fn sum_of_products(a: &[Lane], b: &[Lane]) -> Lane {
    let mut sum = [0.0; LANES];
    for (a, b) in a.iter().zip(b) {
        for l in 0..LANES {
            sum[l] += a[l] * b[l];
        }
    }
    sum
}

/// Divides a message by its sum and returns the sum. A message whose sum is 0 stays as it is.
pub(super) fn normalize(message: &mut [Lane]) -> Lane {
    let mut total = [0.0; LANES];
    message.iter().for_each(|x| add_scaled(&mut total, x, 1.0));
    let factor: Lane = std::array::from_fn(|l| if total[l] > 0.0 { 1.0 / total[l] } else { 1.0 });
    message.iter_mut().for_each(|x| multiply(x, &factor));
    total
}

/// 1/x for each row, and 0 for x = 0.
pub(super) fn reciprocal(x: Lane) -> Lane {
    x.map(|x| if x > 0.0 { 1.0 / x } else { 0.0 })
}

/// The outer product of beliefs about several labels, the last label fastest.
pub(super) fn outer<'a>(beliefs: impl Iterator<Item = &'a [Lane]>, products: &mut Vec<Lane>) {
    products.clear();
    products.push([1.0; LANES]);
    for beliefs in beliefs {
        let n = products.len();
        products.resize(n * beliefs.len(), [0.0; LANES]);
        // From the end, so that no product is overwritten before it is used.
        for at in (0..n).rev() {
            let product = products[at];
            for (slot, belief) in products[at * beliefs.len()..].iter_mut().zip(beliefs) {
                *slot = std::array::from_fn(|l| product[l] * belief[l]);
            }
        }
    }
}
