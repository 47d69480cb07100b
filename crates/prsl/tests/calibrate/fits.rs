//! Calibrators that are fitted to rows are no worse than the identity, and invalid rows are refused.

use prsl::calibrate::{
    BeliefOrigin, CalibrationData, CalibrationMethod, Calibrator, Confusion, Dirichlet, Isotonic,
};
use prsl::{BeliefMatrix, CategoryId, Error, Evidence, Model, Truth};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::{SMOOTHED, apply, fitted, methods};

/// The ridge penalty of Dirichlet calibration.
const DIRICHLET_RIDGE: f64 = 1.0;

/// An overconfident classifier with a bias toward the first category. If `n_true` is less than `n`, some categories
/// never occur.
fn sample(n: usize, n_true: usize, n_rows: usize, seed: u64) -> (Vec<f64>, Vec<Option<CategoryId>>) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut beliefs = Vec::new();
    let mut truths = Vec::new();
    for _ in 0..n_rows {
        let truth = rng.random_range(0..n_true);
        let mut row: Vec<f64> = (0..n)
            .map(|m| {
                let signal = f64::from(u8::from(m == truth)) + 0.7 * f64::from(u8::from(m == 0));
                (3.0 * (signal + rng.random_range(-1.0..1.0f64))).exp()
            })
            .collect();
        let sum: f64 = row.iter().sum();
        row.iter_mut().for_each(|value| *value /= sum);
        if rng.random_bool(0.1) {
            let reported = rng.random_range(0..n);
            row = (0..n).map(|m| f64::from(u8::from(m == reported))).collect();
        }
        beliefs.extend(row);
        truths.push(if rng.random_bool(0.05) { None } else { Some(CategoryId::new(truth)) });
    }
    (beliefs, truths)
}

#[test]
fn fits_are_no_worse_than_the_identity() {
    for n in [2, 3, 6] {
        for seed in 0..5 {
            let (beliefs, truths) = sample(n, n, 400, seed);
            let data = CalibrationData::new(n, &beliefs, &truths, None).unwrap();
            for method in methods(n) {
                let calibrator = fitted(method, &data);
                let (before, after) = (data.log_loss(&SMOOTHED), data.log_loss(&calibrator));
                assert!(after <= before + 1e-12, "{method} of {n}: {before} -> {after}");
            }
        }
    }
}

#[test]
fn the_gradient_at_a_fit_is_zero() {
    let (beliefs, truths) = sample(3, 3, 300, 7);
    let data = CalibrationData::new(3, &beliefs, &truths, None).unwrap();
    let dirichlet = fitted(CalibrationMethod::Dirichlet, &data);
    let mut gradient = vec![0.0; 12];
    for (belief, truth) in beliefs.chunks(3).zip(&truths) {
        let Some(truth) = truth else { continue };
        let mut d = [0.0; 3];
        d[truth.index()] = -1.0;
        dirichlet.gradient(belief, &d, &mut gradient);
    }
    for (i, (slope, parameter)) in gradient.iter().zip(dirichlet.parameters()).enumerate() {
        let identity = f64::from(u8::from(i < 9 && i % 4 == 0));
        let slope = slope + DIRICHLET_RIDGE * (parameter - identity);
        assert!(slope.abs() < 1e-4, "{i}: {slope}");
    }
}

#[test]
fn overconfidence_is_corrected() {
    let (beliefs, truths) = sample(2, 2, 4000, 3);
    let data = CalibrationData::new(2, &beliefs, &truths, None).unwrap();
    let Calibrator::Platt { slope, intercept } = fitted(CalibrationMethod::Platt, &data) else { panic!() };
    assert!(slope < 0.8 && intercept < 0.0, "{slope} {intercept}");
    let Calibrator::Temperature { temperature } = fitted(CalibrationMethod::Temperature, &data) else {
        panic!()
    };
    assert!(temperature > 1.1, "{temperature}");
    for method in methods(2) {
        let calibrator = fitted(method, &data);
        let (before, after) = (data.calibration_error(&SMOOTHED), data.calibration_error(&calibrator));
        assert!(after < before, "{method}: {before} -> {after}");
    }
}

#[test]
fn categories_that_never_or_always_occur_stay_possible() {
    for (n, n_true) in [(2, 1), (3, 1), (4, 2)] {
        let (beliefs, truths) = sample(n, n_true, 50, 11);
        let data = CalibrationData::new(n, &beliefs, &truths, None).unwrap();
        for method in methods(n).into_iter().filter(|&method| method != CalibrationMethod::Auto) {
            let calibrator = fitted(method, &data);
            let out = apply(&calibrator, &vec![1.0 / n as f64; n]);
            assert!(out.iter().all(|&value| value > 0.0 && value < 1.0), "{method}: {out:?}");
        }
    }
}

#[test]
fn without_rows_a_fit_is_the_identity() {
    let data = CalibrationData::new(3, &[0.2, 0.3, 0.5], &[None], None).unwrap();
    assert_eq!((data.n_rows(), data.log_loss(&SMOOTHED), data.calibration_error(&SMOOTHED)), (0, 0.0, 0.0));
    for method in methods(3).into_iter().filter(|&method| method != CalibrationMethod::Confusion) {
        for (out, value) in apply(&fitted(method, &data), &[0.2, 0.3, 0.5]).iter().zip([0.2, 0.3, 0.5]) {
            assert!((out - value).abs() < 1e-12, "{method}");
        }
    }
}

#[test]
fn weights_count_like_repeated_rows() {
    let (beliefs, truths) = sample(3, 3, 40, 5);
    let weights: Vec<f64> = (0..40).map(|row| f64::from(row % 3)).collect();
    let data = CalibrationData::new(3, &beliefs, &truths, Some(&weights)).unwrap();
    let repeat: Vec<usize> = (0..40).flat_map(|row| std::iter::repeat_n(row, row % 3)).collect();
    let more: Vec<f64> = repeat.iter().flat_map(|row| beliefs[row * 3..row * 3 + 3].to_vec()).collect();
    let known: Vec<Option<CategoryId>> = repeat.iter().map(|&row| truths[row]).collect();
    let repeated = CalibrationData::new(3, &more, &known, None).unwrap();
    for method in methods(3).into_iter().filter(|&method| method != CalibrationMethod::Auto) {
        let (a, b) = (fitted(method, &data), fitted(method, &repeated));
        for (a, b) in apply(&a, &[0.2, 0.3, 0.5]).iter().zip(apply(&b, &[0.2, 0.3, 0.5])) {
            assert!((a - b).abs() < 1e-5, "{method}: {a} {b}");
        }
    }
}

#[test]
fn auto_selects_the_best_method_deterministically() {
    let (beliefs, truths) = sample(2, 2, 1000, 9);
    let data = CalibrationData::new(2, &beliefs, &truths, None).unwrap();
    let auto = fitted(CalibrationMethod::Auto, &data);
    assert_eq!(auto, fitted(CalibrationMethod::Auto, &data));
    assert!(data.log_loss(&auto) < data.log_loss(&SMOOTHED));
    // Calibrated beliefs need no calibrator.
    let honest: Vec<f64> = (0..200).flat_map(|_| [0.7, 0.3]).collect();
    let truths: Vec<Option<CategoryId>> =
        (0..200).map(|row| Some(CategoryId::new(usize::from(row % 10 >= 7)))).collect();
    let data = CalibrationData::new(2, &honest, &truths, None).unwrap();
    assert_eq!(fitted(CalibrationMethod::Auto, &data), Calibrator::Identity);
}

#[test]
fn a_confusion_matrix_is_the_truth_given_the_classifier() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let (mut beliefs, mut truths) = (Vec::new(), Vec::new());
    for _ in 0..4000 {
        // One time in four, it reports the first category instead of the second.
        let truth = rng.random_range(0..2);
        let reported = if truth == 1 && rng.random_bool(0.25) { 0 } else { truth };
        beliefs.extend([f64::from(u8::from(reported == 0)), f64::from(u8::from(reported == 1))]);
        truths.push(Some(CategoryId::new(truth)));
    }
    let data = CalibrationData::new(2, &beliefs, &truths, None).unwrap();
    let confusion = fitted(CalibrationMethod::Confusion, &data);
    assert!((apply(&confusion, &[1.0, 0.0])[0] - 0.8).abs() < 0.02);
    assert!(apply(&confusion, &[0.0, 1.0])[1] > 0.99);
}

#[test]
fn invalid_data_and_parameters_are_refused() {
    let data = CalibrationData::new;
    let [first, second, third] = [0, 1, 2].map(|category| Some(CategoryId::new(category)));
    let messages: Vec<String> = [
        data(2, &[0.5], &[first], None).unwrap_err(),
        data(2, &[0.5, 0.4], &[first], None).unwrap_err(),
        data(2, &[0.5, f64::NAN], &[first], None).unwrap_err(),
        data(2, &[0.5, 0.5], &[third], None).unwrap_err(),
        data(2, &[0.5, 0.5], &[second], Some(&[-1.0])).unwrap_err(),
        data(2, &[0.5, 0.5], &[second], Some(&[])).unwrap_err(),
        data(3, &[], &[], None).unwrap().fit(CalibrationMethod::Platt).unwrap_err(),
        Calibrator::Temperature { temperature: 0.0 }.check(2).unwrap_err(),
        Calibrator::Platt { slope: f64::NAN, intercept: 0.0 }.check(2).unwrap_err(),
        Calibrator::Platt { slope: 1.0, intercept: 0.0 }.with_parameters(&[1.0, f64::INFINITY]).unwrap_err(),
        Isotonic::new(vec![vec![], vec![]]).unwrap_err(),
        Isotonic::new(vec![vec![(0.5, 0.2), (0.6, 0.1)]]).unwrap_err(),
        Isotonic::new(vec![vec![(0.5, 1.2)]]).unwrap_err(),
        Dirichlet::new(&[vec![1.0, 0.0], vec![0.0]], &[0.0, 0.0]).unwrap_err(),
        Dirichlet::new(&[vec![1.0, 0.0], vec![0.0, 1.0]], &[0.0]).unwrap_err(),
        Confusion::new(vec![vec![1.0, -1.0], vec![0.0, 1.0]]).unwrap_err(),
        Confusion::new(vec![]).unwrap_err(),
    ]
    .iter()
    .map(Error::to_string)
    .collect();
    insta::assert_snapshot!(messages.join("\n"));
}

#[test]
fn priors_and_observed_categories_are_not_fitted() {
    let model = Model::parse("label alarm prior 0.1\nlabel fire").unwrap();
    let mut rows = BeliefMatrix::new(&model);
    for evidence in [
        Evidence::new().belief("alarm", [0.3]),
        Evidence::new().belief("fire", [0.4]),
        Evidence::new().observe("alarm", "yes"),
        Evidence::new().belief("alarm", [0.6]),
    ] {
        rows.push_evidence(&evidence).unwrap();
    }
    let alarm = model.find_label("alarm").unwrap();
    let origins: Vec<BeliefOrigin> = (0..4).map(|row| rows.origin(row, alarm)).collect();
    use BeliefOrigin::{Classifier, Observed, Prior};
    assert_eq!(origins, [Classifier, Prior, Observed, Classifier]);
    assert_eq!(rows.select(&[2, 0]).origin(0, alarm), Observed);
    assert_eq!(rows.slice(1..3).origin(1, alarm), Observed);
    let truths = vec![Truth::from_indices([Some(0), None]); 4];
    assert_eq!(CalibrationData::of_label(&rows, alarm, &truths, None).unwrap().counts(), [2, 0]);
    assert!(CalibrationData::of_label(&rows, alarm, &truths[..3], None).is_err());
    let mut weights = vec![1.0; truths.len()];
    assert!(CalibrationData::of_label(&rows, alarm, &truths, Some(&weights[1..])).is_err());
    weights.fill(0.0);
    assert_eq!(CalibrationData::of_label(&rows, alarm, &truths, Some(&weights)).unwrap().counts(), [0, 0]);
}
