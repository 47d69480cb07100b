//! Calibrators return distributions, fits are no worse than the identity, and gradients are right.

mod beside_rules;
mod fits;
mod models;
mod properties;

use proptest::prelude::*;
use prsl::calibrate::{
    Calibrate, CalibrationData, CalibrationMethod, Calibrator, Confusion, Dirichlet, Isotonic,
};

fn apply(calibrator: &dyn Calibrate, belief: &[f64]) -> Vec<f64> {
    let mut out = vec![f64::NAN; belief.len()];
    calibrator.calibrate(belief, &mut out);
    out
}

/// Distributions, including some with zeros and ones.
fn belief(n: usize) -> impl Strategy<Value = Vec<f64>> {
    let weight = prop_oneof![2 => Just(0.0), 1 => Just(1.0), 5 => 0.0..1.0f64, 1 => 0.0..1e-6f64];
    proptest::collection::vec(weight, n).prop_map(|mut weights| {
        let sum: f64 = weights.iter().sum();
        if sum == 0.0 {
            weights[0] = 1.0;
        } else {
            weights.iter_mut().for_each(|weight| *weight /= sum);
        }
        weights
    })
}

fn parameter() -> impl Strategy<Value = f64> {
    prop_oneof![4 => -3.0..3.0f64, 1 => Just(0.0), 1 => -1e6..1e6f64, 1 => Just(1e6), 1 => Just(-1e6)]
}

fn map() -> impl Strategy<Value = Vec<(f64, f64)>> {
    let values = || proptest::collection::vec(0.0..=1.0f64, 1..6);
    (values(), values()).prop_map(|(mut beliefs, mut values)| {
        beliefs.sort_by(f64::total_cmp);
        beliefs.dedup();
        values.sort_by(f64::total_cmp);
        beliefs.into_iter().zip(values).collect()
    })
}

/// A calibrator of any kind for three categories.
fn calibrator() -> impl Strategy<Value = Calibrator> {
    let rows = |value: BoxedStrategy<f64>| proptest::collection::vec(proptest::collection::vec(value, 3), 3);
    let count = prop_oneof![Just(0.0), 0.0..100.0f64, Just(1e12)].boxed();
    prop_oneof![
        Just(Calibrator::Identity),
        prop_oneof![1e-6..=1e6f64, 0.1..10.0f64]
            .prop_map(|temperature| Calibrator::Temperature { temperature }),
        proptest::collection::vec(map(), 3)
            .prop_map(|maps| Calibrator::Isotonic(Isotonic::new(maps).unwrap())),
        (rows(parameter().boxed()), proptest::collection::vec(parameter(), 3))
            .prop_map(|(weights, bias)| Calibrator::Dirichlet(Dirichlet::new(&weights, &bias).unwrap())),
        rows(count).prop_map(|matrix| Calibrator::Confusion(Confusion::new(matrix).unwrap())),
    ]
}

fn fitted(method: CalibrationMethod, data: &CalibrationData<'_>) -> Calibrator {
    Calibrator::fit(method, data).unwrap()
}

fn methods(n: usize) -> Vec<CalibrationMethod> {
    CalibrationMethod::ALL.into_iter().filter(|&method| method.suited_to(n) == method).collect()
}

/// The identity with clipping.
const SMOOTHED: Calibrator = Calibrator::Temperature { temperature: 1.0 };
