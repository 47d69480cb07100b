//! Scores by label, and differences between models, against their definitions.

use proptest::prelude::*;
use prsl::metrics::{Bootstrap, Evaluation, Metric};
use prsl::{Engines, Model, Truth};
use prsl_testkit::{simulated, small_model};

use crate::random_truths;

/// The posterior, the truth and the prediction of a class in one row; `None` for an impossible row.
type Forecast = (Option<(f64, bool)>, bool);

/// The forecasts of a class in all rows whose truth is known, straight from the posteriors.
fn forecasts(model: &Model, posteriors: &prsl::Posteriors, truths: &[Truth], place: usize) -> Vec<Forecast> {
    let label = model.label_ids().find(|&label| model.block(label).contains(&place)).expect("a label");
    let block = model.block(label);
    let known = truths.iter().enumerate().filter_map(|(row, truth)| Some((row, truth.category(label)?)));
    known
        .map(|(row, category)| {
            let posterior = posteriors.marginals(row).map(|marginals| {
                let best = block.clone().rev().max_by(|&a, &b| marginals[a].total_cmp(&marginals[b]));
                (marginals[place], best == Some(place))
            });
            (posterior, block.start + category.index() == place)
        })
        .collect()
}

fn ratio(part: f64, all: f64) -> Option<f64> {
    (all > 0.0).then(|| part / all)
}

fn count(forecasts: &[Forecast], is_counted: impl Fn(&Forecast) -> bool) -> f64 {
    forecasts.iter().filter(|forecast| is_counted(forecast)).count() as f64
}

fn is_near(a: Option<f64>, b: Option<f64>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => (a - b).abs() < 1e-9 * (1.0 + a.abs()),
        (a, b) => a == b,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn label_scores_agree_with_their_definitions((model, rows) in small_model(), seed in any::<u64>()) {
        let truths = random_truths(&model, rows.n_rows(), seed);
        let posteriors = Engines::new(&model).marginals().unwrap().infer_batch(&rows).unwrap();
        let scores = Evaluation::of(&model, &rows, &truths).unwrap().label_scores();
        prop_assert_eq!(scores.len(), model.labels().len());
        for scores in scores {
            let block = model.block(scores.label);
            let losses: Vec<f64> = (0..rows.n_rows()).filter_map(|row| {
                let truth = block.start + truths[row].category(scores.label)?.index();
                let p = posteriors.marginals(row).map_or(0.0, |marginals| marginals[truth]);
                Some(-if p == 0.0 { 1e-300 } else { p }.ln())
            }).collect();
            prop_assert_eq!(scores.known, losses.len());
            let mean = ratio(losses.iter().sum(), losses.len() as f64);
            prop_assert!(is_near(scores.log_loss, mean), "{:?} {:?}", scores.log_loss, mean);
            for class in &scores.classes {
                let label = model.label(scores.label);
                let category = label.categories().iter().position(|name| *name == class.category).unwrap();
                let forecasts = forecasts(&model, &posteriors, &truths, block.start + category);
                let hits = count(&forecasts, |it| it.1 && it.0.is_some_and(|(_, predicted)| predicted));
                let predicted = count(&forecasts, |it| it.0.is_some_and(|(_, predicted)| predicted));
                let positives = count(&forecasts, |it| it.1);
                let spared = count(&forecasts, |it| !it.1 && it.0.is_some_and(|(_, predicted)| !predicted));
                prop_assert_eq!(class.positives as f64, positives);
                prop_assert_eq!(class.f1, ratio(2.0 * hits, predicted + positives));
                prop_assert_eq!(class.sensitivity, ratio(hits, positives));
                prop_assert_eq!(class.specificity, ratio(spared, forecasts.len() as f64 - positives));
                let of = |wanted: bool| forecasts.iter()
                    .filter(move |it| it.1 == wanted).filter_map(|it| Some(it.0?.0)).collect::<Vec<f64>>();
                let [yes, no] = [of(true), of(false)];
                let pairs = yes.iter().flat_map(|yes| no.iter().map(move |no| (yes, no)));
                let wins = pairs.map(|(yes, no)| match yes.total_cmp(no) {
                    std::cmp::Ordering::Greater => 1.0,
                    std::cmp::Ordering::Equal => 0.5,
                    std::cmp::Ordering::Less => 0.0,
                });
                let auc = ratio(wins.sum(), (yes.len() * no.len()) as f64);
                prop_assert!(is_near(class.auc, auc), "{:?} {:?}", class.auc, auc);
            }
        }
    }
}

#[test]
fn differences_are_paired() {
    let (model, rows) = simulated(5, 5, 200, 7);
    let truths = random_truths(&model, 200, 7);
    let with = Evaluation::of(&model, &rows, &truths).unwrap();
    let alone = Evaluation::of(&model.without_rules().unwrap(), &rows, &truths).unwrap();
    let compared = alone.compare(&with, &Bootstrap::default()).unwrap();
    let apart = |metric: Metric| {
        let widths = [&with, &alone].map(|it| it.intervals(&Bootstrap::default()).get(metric).unwrap());
        widths.map(|[low, high]| high - low)
    };
    for metric in Metric::ALL {
        let difference = compared.get(metric).unwrap();
        let [a, b] = [&alone, &with].map(|evaluation| evaluation.scores().get(metric).unwrap());
        assert_eq!(difference.difference, b - a, "{metric:?}");
        let [low, high] = difference.interval;
        assert!(low <= b - a && b - a <= high, "{metric:?}: {low} {} {high}", b - a);
    }
    // Both models see the same rows, so the difference varies less than the scores together.
    let metric = Metric::MeanJointLogLikelihood;
    let ([first, second], [low, high]) = (apart(metric), compared.get(metric).unwrap().interval);
    assert!(high - low < first + second, "{} for {first} and {second}", high - low);
    let sum: f64 = compared.rows.iter().map(|row| row.difference()).sum();
    let mean = sum / compared.rows.len() as f64;
    assert!((mean - compared.get(metric).unwrap().difference).abs() < 1e-12);
    assert!(compared.rows.windows(2).all(|rows| rows[0].difference().abs() >= rows[1].difference().abs()));
    // The same model does not differ from itself.
    let same = with.compare(&with, &Bootstrap::default()).unwrap();
    assert!(Metric::ALL.iter().all(|&metric| same.get(metric).unwrap().interval == [0.0, 0.0]));
}

#[test]
fn other_labels_and_other_rows_are_refused() {
    let (model, rows) = simulated(5, 5, 10, 7);
    let truths = random_truths(&model, 10, 7);
    let evaluation = Evaluation::of(&model, &rows, &truths).unwrap();
    let fewer = Evaluation::of(&model, &rows.slice(0..9), &truths[..9]).unwrap();
    assert!(evaluation.compare(&fewer, &Bootstrap::default()).is_err());
    let (other, rows) = simulated(4, 4, 10, 7);
    let foreign = Evaluation::of(&other, &rows, &random_truths(&other, 10, 7)).unwrap();
    assert!(evaluation.compare(&foreign, &Bootstrap::default()).is_err());
}
