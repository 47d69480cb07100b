//! Calibrators with random parameters return distributions, keep the order of beliefs, and have the right gradients.

use proptest::prelude::*;
use prsl::CategoryId;
use prsl::calibrate::{Calibrate, CalibrationData, Calibrator, Dirichlet, Isotonic};

use crate::{SMOOTHED, apply, belief, calibrator, fitted, map, methods, parameter};

/// Beliefs are clipped to [SMOOTH, 1 − SMOOTH] before their logarithm is taken.
const SMOOTH: f64 = 1e-3;

#[track_caller]
fn assert_distribution(values: &[f64]) {
    assert!(values.iter().all(|value| (0.0..=1.0 + 1e-12).contains(value)), "{values:?}");
    assert!((values.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{values:?}");
}

proptest! {
    #[test]
    fn answers_are_distributions(calibrator in calibrator(), belief in belief(3)) {
        calibrator.check(3).unwrap();
        let out = apply(&calibrator, &belief);
        prop_assert!(out.iter().all(|value| (0.0..=1.0 + 1e-12).contains(value)), "{out:?}");
        prop_assert!((out.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{out:?}");
    }

    #[test]
    fn platt_answers_are_distributions_and_monotone(
        slope in parameter(), intercept in parameter(), a in 0.0..=1.0f64, b in 0.0..=1.0f64,
    ) {
        let platt = Calibrator::Platt { slope, intercept };
        let yes = |x: f64| { let out = apply(&platt, &[x, 1.0 - x]); assert_distribution(&out); out[0] };
        let (low, high) = if (a < b) == (slope >= 0.0) { (a, b) } else { (b, a) };
        prop_assert!(yes(low) <= yes(high) + 1e-15);
    }

    #[test]
    fn identity_parameters_leave_beliefs_unchanged(x in SMOOTH..1.0 - SMOOTH, y in 0.1..0.9f64) {
        let two = [x, 1.0 - x];
        let three = [y * 0.6, y * 0.4, 1.0 - y];
        let one = Calibrator::Dirichlet(Dirichlet::new(
            &[vec![1.0, 0.0, 0.0], vec![0.0, 1.0, 0.0], vec![0.0, 0.0, 1.0]], &[0.0; 3]).unwrap());
        for (calibrator, belief) in [
            (Calibrator::Platt { slope: 1.0, intercept: 0.0 }, &two[..]),
            (SMOOTHED, &two[..]), (SMOOTHED, &three[..]), (one, &three[..]), (Calibrator::Identity, &three[..]),
        ] {
            for (out, value) in apply(&calibrator, belief).iter().zip(belief) {
                prop_assert!((out - value).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn calibrated_beliefs_increase_with_beliefs(
        maps in proptest::collection::vec(map(), 3), t in 0.05..20.0f64, a in 0.0..=1.0f64, b in 0.0..=1.0f64,
    ) {
        let (low, high) = if a < b { (a, b) } else { (b, a) };
        let belief = |x: f64| [x, (1.0 - x) * 0.3, (1.0 - x) * 0.7];
        let positive = |maps: Vec<Vec<(f64, f64)>>| maps.into_iter()
            .map(|map| map.into_iter().map(|(x, y)| (x, y.max(1e-3))).collect()).collect();
        let isotonic = Isotonic::new(positive(maps)).unwrap();
        let temperature = Calibrator::Temperature { temperature: t };
        let calibrators: [&dyn Calibrate; 2] = [&isotonic, &temperature];
        for calibrator in calibrators {
            prop_assert!(apply(calibrator, &belief(low))[0] <= apply(calibrator, &belief(high))[0] + 1e-12);
        }
    }

    #[test]
    fn gradients_agree_with_central_differences(
        weights in proptest::collection::vec(-2.0..2.0f64, 12), t in 0.3..3.0f64,
        three in belief(3), two in belief(2), d in proptest::collection::vec(-2.0..2.0f64, 3),
    ) {
        let rows: Vec<Vec<f64>> = weights[..9].chunks(3).map(<[f64]>::to_vec).collect();
        let calibrators = [
            (Calibrator::Temperature { temperature: t }, &three),
            (Calibrator::Platt { slope: weights[0], intercept: weights[1] }, &two),
            (Calibrator::Dirichlet(Dirichlet::new(&rows, &weights[9..]).unwrap()), &three),
        ];
        for (calibrator, belief) in calibrators {
            let parameters = calibrator.parameters();
            let mut gradient = vec![0.25; parameters.len()];
            calibrator.gradient(belief, &d[..belief.len()], &mut gradient);
            let value = |parameters: &[f64]| -> f64 {
                let out = apply(&calibrator.with_parameters(parameters).unwrap(), belief);
                out.iter().zip(&d).map(|(out, d)| d * out.ln()).sum()
            };
            for i in 0..parameters.len() {
                let step = 1e-5;
                let moved = |by: f64| { let mut p = parameters.clone(); p[i] += by; value(&p) };
                let expected = (moved(step) - moved(-step)) / (2.0 * step);
                let actual = gradient[i] - 0.25; // gradients are added
                prop_assert!((actual - expected).abs() < 1e-5 * (1.0 + expected.abs()), "{actual} {expected}");
            }
        }
    }

    #[test]
    fn fits_to_any_rows_are_valid(
        rows in proptest::collection::vec((belief(3), proptest::option::of(0..3usize), 0.0..3.0f64), 0..12), probe in belief(3),
    ) {
        let beliefs: Vec<f64> = rows.iter().flat_map(|row| row.0.clone()).collect();
        let truths: Vec<Option<CategoryId>> = rows.iter().map(|row| row.1.map(CategoryId::new)).collect();
        let weights: Vec<f64> = rows.iter().map(|row| row.2).collect();
        let data = CalibrationData::new(3, &beliefs, &truths, Some(&weights)).unwrap();
        for method in methods(3) {
            let calibrator = fitted(method, &data);
            calibrator.check(3).unwrap();
            assert_distribution(&apply(&calibrator, &probe));
        }
    }
}
