//! Coverage of bootstrap intervals, by simulation.

use prsl::metrics::{Bootstrap, Evaluation, Metric, Scores};
use prsl_testkit::sampled;
use rayon::prelude::*;

const N_SAMPLES: usize = 500;
const N_ROWS: usize = 200;

/// Of 500 samples of 200 rows, about 95 % have an interval that contains the mean of all scores.
#[test]
fn intervals_cover_the_expected_score() {
    let (model, rows) = sampled(4, 4, N_SAMPLES * N_ROWS, 5);
    let bootstrap = Bootstrap { replicates: 400, ..Bootstrap::default() };
    let score = |sample: usize| {
        let range = sample * N_ROWS..(sample + 1) * N_ROWS;
        let truths: Vec<prsl::Truth> = range.clone().map(|row| rows.truth(row)).collect();
        let beliefs = rows.beliefs_of(range);
        let evaluation = Evaluation::of(&model, &beliefs, &truths).expect("small");
        (evaluation.scores(), evaluation.intervals(&bootstrap))
    };
    let samples: Vec<_> = (0..N_SAMPLES).into_par_iter().map(score).collect();
    for metric in Metric::ALL {
        let of = |scores: &Scores| scores.get(metric).expect("every row is known");
        let expected = samples.iter().map(|(scores, _)| of(scores)).sum::<f64>() / N_SAMPLES as f64;
        let covers = |[low, high]: [f64; 2]| low <= expected && expected <= high;
        let intervals = samples.iter().map(|(_, intervals)| intervals.get(metric).expect("known"));
        let coverage = intervals.filter(|&interval| covers(interval)).count() as f64 / N_SAMPLES as f64;
        assert!((0.92..=0.97).contains(&coverage), "{metric:?}: {coverage}");
    }
}
