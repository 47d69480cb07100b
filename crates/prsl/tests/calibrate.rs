//! Calibrators return distributions, fits are no worse than the identity, and gradients are right.

use proptest::prelude::*;
use prsl::calibrate::{
    BeliefOrigin, Calibrate, CalibrationData, CalibrationMethod, Calibrator, Confusion, Dirichlet, Isotonic,
};
use prsl::{BeliefMatrix, CategoryId, Document, Error, Evidence, Model, Truth, lint};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Beliefs are clipped to [SMOOTH, 1 − SMOOTH] before their logarithm is taken.
const SMOOTH: f64 = 1e-3;
/// The ridge penalty of Dirichlet calibration.
const DIRICHLET_RIDGE: f64 = 1.0;

fn apply(calibrator: &dyn Calibrate, belief: &[f64]) -> Vec<f64> {
    let mut out = vec![f64::NAN; belief.len()];
    calibrator.calibrate(belief, &mut out);
    out
}

#[track_caller]
fn assert_distribution(values: &[f64]) {
    assert!(values.iter().all(|value| (0.0..=1.0 + 1e-12).contains(value)), "{values:?}");
    assert!((values.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{values:?}");
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

fn fitted(method: CalibrationMethod, data: &CalibrationData<'_>) -> Calibrator {
    Calibrator::fit(method, data).unwrap()
}

fn methods(n: usize) -> Vec<CalibrationMethod> {
    CalibrationMethod::ALL.into_iter().filter(|&method| method.suited_to(n) == method).collect()
}

/// The identity with clipping.
const SMOOTHED: Calibrator = Calibrator::Temperature { temperature: 1.0 };

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

fn model_with(calibrator: Calibrator) -> Model {
    Model::builder()
        .label("odd name", ["a", "b", "c"])
        .binary_label("alarm")
        .rule("a -> alarm", 0.9)
        .calibrator("odd name", calibrator)
        .calibrator("alarm", Calibrator::Platt { slope: -0.1, intercept: 1.0 / 3.0 })
        .build()
        .unwrap()
}

proptest! {
    #[test]
    fn models_with_calibrators_survive_text_and_json(calibrator in calibrator()) {
        let model = model_with(calibrator);
        let text = model.to_string();
        prop_assert_eq!(&Model::parse(&text).unwrap(), &model);
        prop_assert_eq!(&Document::format(&text).unwrap(), &text);
        let json = model.to_json();
        prop_assert_eq!(&Model::from_json(&json).unwrap(), &model);
        prop_assert_eq!(Model::from_json(&json).unwrap().to_json(), json);
        prop_assert_eq!(&model.edit().build().unwrap(), &model);
    }

    #[test]
    fn a_row_is_completed_then_calibrated_once(calibrator in calibrator(), belief in belief(3), x in 0.0..=1.0f64) {
        let model = model_with(calibrator.clone());
        let id = model.find_label("odd name").unwrap();
        let row = |evidence: Evidence| model.row(&evidence).unwrap()[..3].to_vec();
        let given = row(Evidence::new().belief("odd name", belief.clone()));
        let raw = model.without_calibrators().row(&Evidence::new().belief("odd name", belief)).unwrap();
        prop_assert_eq!(&given, &apply(&calibrator, &raw[..3]));
        let partly = row(Evidence::new().partial_belief("odd name", [Some(x), None, None]));
        let completed = model.without_calibrators().row(&Evidence::new().partial_belief("odd name", [Some(x), None, None])).unwrap();
        prop_assert_eq!(&partly, &apply(&calibrator, &completed[..3]));
        prop_assert_eq!(row(Evidence::new().observe("odd name", "b")), [0.0, 1.0, 0.0]);
        prop_assert_eq!(row(Evidence::new()), [1.0 / 3.0; 3]);
        prop_assert_eq!(model.calibrator(id), &calibrator);
    }
}

#[test]
fn calibrators_read_as_they_are_written() {
    let text = "\
label hands: high, centered, low
label alarm
label fire

calibrate hands confusion [8 1 0; 1 7.5 2; 0 0 9]
calibrate alarm platt 1.2 -0.3
calibrate fire isotonic [0:0.01 0.3:0.2 1:0.9; 0:0.1 1:0.99]
";
    let model = Model::parse(text).unwrap();
    assert_eq!(model.to_string(), text);
    let loose = text.replace("; ", ";\n  ").replace(':', " : ").replace("hands :", "hands:");
    assert_eq!(Document::format(&Model::parse(&loose).unwrap().to_string()).unwrap(), text);
    assert!(Document::format(&loose).unwrap().contains("[0:0.01 0.3:0.2 1:0.9;\n    0:0.1 1:0.99]"));
    insta::assert_snapshot!(model.to_json());
    let document = Document::parse(&text.replace("1.2 -0.3", "-1 0")).unwrap();
    let notes: Vec<String> =
        lint::check(&document).iter().map(|finding| finding.render("m.prsl", document.source())).collect();
    insta::assert_snapshot!(notes.join("\n"));
}

#[test]
fn a_calibrator_goes_with_its_classifier() {
    let model = model_with(Calibrator::Temperature { temperature: 2.0 });
    let id = model.find_label("odd name").unwrap();
    let calibrator = |model: Model| model.calibrator(id).kind();
    assert_eq!(calibrator(model.edit().unplug("odd name").build().unwrap()), "identity");
    assert_eq!(calibrator(model.edit().plug("odd name", "camera").build().unwrap()), "identity");
    assert_eq!(calibrator(model.edit().plug("odd name", "odd name").build().unwrap()), "temperature");
    assert_eq!(calibrator(model.edit().plug("alarm", "siren").build().unwrap()), "temperature");
    let platt = Calibrator::Platt { slope: 1.0, intercept: 0.0 };
    let error = model.edit().calibrator("odd name", platt.clone()).build().unwrap_err();
    insta::assert_snapshot!(error, @"calibrator of label `odd name`: `platt` is for labels of two categories, and this one has 3; use `dirichlet`");
    let error = model.edit().unplug("alarm").calibrator("alarm", platt).build().unwrap_err();
    insta::assert_snapshot!(error, @"calibrator of label `alarm`: the label is latent, so there are no beliefs to calibrate; remove `latent` or the calibrator");
}

#[test]
fn errors_in_texts_have_a_position() {
    let text = "\
label hands: high, centered, low
label alarm
label tired latent
calibrate alarm platt 1 0
calibrate alarm temperature 2
calibrate alram platt 1 0
calibrate hands platt 1 0
calibrate hands plat 1 0
calibrate hands sigmoid
calibrate hands
calibrate hands temperature 0
calibrate hands temperature 1 2
calibrate alarm platt 1
calibrate alarm platt nan 0
calibrate hands confusion [1 0; 0 1]
calibrate hands confusion [1 0 0; 0 1; 0 0 1]
calibrate hands confusion [1 0 0; 0 -1 0; 0 0 1]
calibrate hands dirichlet [1 0 0; 0 1 0; 0 0 1]
calibrate hands dirichlet [1 0 0; 0 1 0; 0 0 1] [0 0]
calibrate hands dirichlet [1 0 0; 0 1 0; 0 0 1] [0 0 0; 0]
calibrate hands isotonic [0:0 1:1; 0:0 1:1; 0:1 1:0]
calibrate hands isotonic [0:0 1:1; 0:0 1; 0:1 1:1]
calibrate hands isotonic [0:0 1:1; ; 0:1 1:1]
calibrate hands isotonic [0:0 1:1
calibrate tired platt 1 0
calibrate
";
    let Err(Error::Text(diagnostics)) = Model::parse(text) else { panic!("expected errors") };
    insta::assert_snapshot!(diagnostics.render("m.prsl"));
    let json = |calibrator: &str| {
        let label = format!(r#"{{"name": "a", "categories": ["x", "y"], "calibrator": {calibrator}}}"#);
        Model::from_json(&format!(r#"{{"format": "prsl", "version": 2, "labels": [{label}]}}"#))
            .unwrap_err()
            .to_string()
    };
    let messages = [
        json("null"),
        json(r#"["platt", 1, 0]"#),
        json(r#"{"kind": "plat", "slope": 1, "intercept": 0}"#),
        json(r#"{"kind": "platt", "slope": 1}"#),
        json(r#"{"kind": "platt", "slope": 1, "intercept": 0, "more": 1}"#),
        json(r#"{"kind": "temperature", "temperature": -1}"#),
        json(r#"{"kind": "confusion", "matrix": [[1, 0], [0]]}"#),
        json(r#"{"kind": "isotonic", "maps": [[[0, 0.1]]]}"#),
    ];
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

#[test]
fn the_output_of_a_custom_calibrator_is_checked() {
    struct Broken;
    impl Calibrate for Broken {
        fn calibrate(&self, _: &[f64], out: &mut [f64]) {
            out.fill(f64::NAN);
        }
    }
    let model = Model::parse("label alarm").unwrap();
    let mut rows = BeliefMatrix::new(&model);
    rows.push_evidence(&Evidence::new()).unwrap();
    rows.push_evidence(&Evidence::new().belief("alarm", [0.3])).unwrap();
    let error = rows.calibrate(model.find_label("alarm").unwrap(), &Broken).unwrap_err();
    insta::assert_snapshot!(error, @"cannot calibrate: calibrated belief of row 2 is no distribution over the categories");
}
