//! The authors' simulation study: exact marginals and explanations of all its rows.

use prsl::JunctionTree;
use prsl::infer::MaxProductTree;
use prsl_testkit::golden;

/// Tolerance to the stored numbers, which have 15 digits and are sums of many products themselves.
const STORED: f64 = 1e-9;

fn check(prefix: &str) {
    for golden in golden(prefix) {
        let posteriors = JunctionTree::compile(&golden.model).unwrap().infer_batch(&golden.rows).unwrap();
        for (row, expected) in golden.exact_marginals.iter().enumerate() {
            let actual = posteriors.marginals(row).expect("all golden rows are possible");
            let worst = actual.iter().zip(expected).map(|(a, e)| (a - e).abs()).fold(0.0, f64::max);
            assert!(worst < STORED, "{} row {}: off by {worst:e}", golden.name, row + 1);
        }
        let best = MaxProductTree::compile(&golden.model).unwrap().best_batch(&golden.rows).unwrap();
        for (row, (best, expected)) in best.iter().zip(&golden.exact_mpe).enumerate() {
            let best = best.as_ref().expect("all golden rows are possible");
            assert_eq!(best.assignment.indices(), expected, "{} row {}", golden.name, row + 1);
        }
    }
}

#[test]
fn five_labels() {
    check("small");
}

#[test]
fn ten_labels() {
    check("medium");
}

#[test]
fn thirty_labels() {
    check("almostLarge");
}
