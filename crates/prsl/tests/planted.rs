//! Rules that were planted in data are found again, literally.

use prsl::learn::Learner;
use prsl_testkit::planted::{Planted, compare};

/// Numbers of rules found literally and of unrelated ones, over ten seeds.
fn found(settings: Planted) -> (usize, usize) {
    let learner = Learner { parsimony: Learner::EXPLAIN, typical: false, ..Learner::default() };
    let one = |seed: u64| {
        let (generator, rows) = Planted { seed, ..settings }.draw();
        let learned = learner.learn(rows.model(), &rows).unwrap();
        compare(&generator, &learned.model)
    };
    (1..=10).map(one).fold((0, 0), |sum, (found, unrelated)| (sum.0 + found, sum.1 + unrelated))
}

#[test]
fn rules_are_found_in_4000_rows() {
    let (found, unrelated) = found(Planted::default());
    assert!(found >= 54 && unrelated <= 2, "{found} of 60 found, {unrelated} unrelated");
}

#[test]
fn rules_are_found_in_1000_rows() {
    let (found, unrelated) = found(Planted { n_rows: 1000, ..Planted::default() });
    assert!(found >= 45 && unrelated <= 2, "{found} of 60 found, {unrelated} unrelated");
}

#[test]
fn rules_about_labels_with_more_categories_are_found_with_missing_truths() {
    let (found, unrelated) = found(Planted { n_wide: 4, missing: 0.3, ..Planted::default() });
    assert!(found >= 48 && unrelated <= 4, "{found} of 60 found, {unrelated} unrelated");
}
