//! Truths out of range and rows of the wrong length are errors.

use prsl::metrics::{Evaluation, RuleEffects, joint_log_likelihoods, label_log_likelihoods};
use prsl::{
    BeliefMatrix, CategoryId, Error, Evidence, JunctionTree, LabelId, Limits, Model, Normalize, Truth,
};

#[test]
fn truths_out_of_range_are_errors() {
    let model = Model::parse("label a\nlabel weather: sun, fog, rain").expect("a model");
    let mut rows = BeliefMatrix::new(&model);
    rows.push_evidence(&Evidence::new()).expect("valid");
    let effects = RuleEffects::compile(&model, Limits::default()).expect("small");
    let engine = JunctionTree::compile(&model).expect("small");
    let posteriors = engine.infer_batch(&rows).expect("rows of the model");
    let wrong: [&[Truth]; 5] = [
        &[Truth::from_indices([Some(2), None])],
        &[Truth::from_indices([None, Some(3)])],
        &[Truth::from_indices([Some(0)])],
        &[],
        &[Truth::from_indices([Some(0), None]), Truth::from_indices([Some(0), None])],
    ];
    let mut messages = Vec::new();
    for truths in wrong {
        let infer = |rows: &BeliefMatrix| engine.infer_batch(rows);
        let error = Evaluation::of(&model, &rows, truths).expect_err("wrong truths").to_string();
        assert_eq!(effects.gains(&rows, truths).expect_err("wrong truths").to_string(), error);
        for found in [
            joint_log_likelihoods(&rows, truths, &posteriors, infer).err(),
            label_log_likelihoods(&rows, truths, &posteriors, infer).err(),
        ] {
            assert_eq!(found.expect("wrong truths").to_string(), error);
        }
        messages.push(error);
    }
    insta::assert_snapshot!(messages.join("\n"));
    let other = Model::parse("label a").expect("a model");
    let effects = RuleEffects::compile(&other, Limits::default()).expect("small");
    assert!(matches!(effects.gains(&rows, &[Truth::unknown(1)]), Err(Error::ForeignRow { .. })));
    assert!(matches!(effects.influences(&rows), Err(Error::ForeignRow { .. })));
}

#[test]
fn a_row_of_the_wrong_length_is_an_error() {
    let model = Model::parse("label a\nlabel weather: sun, fog, rain").expect("a model");
    let mut rows = BeliefMatrix::new(&model);
    let short = rows.push(&[Some(0.5)], Normalize::Never).expect_err("too few cells");
    let long =
        rows.push_with_observed(&[None; 5], &[false; 3], Normalize::Never).expect_err("too many answers");
    assert_eq!(short.to_string(), "a row has 1 cell, expected 5, one for each category");
    assert_eq!(long.to_string(), "a row has 3 answers, expected 2, one for each label");
    assert_eq!(rows.n_rows(), 0);
    rows.push(&[None; 5], Normalize::Never).expect("nothing is known");
    let [a, weather, nowhere] = [0, 1, 2].map(LabelId::new);
    assert!(matches!(rows.observe(1, a, CategoryId::new(0)), Err(Error::UnknownRow { .. })));
    assert!(matches!(rows.observe(0, nowhere, CategoryId::new(0)), Err(Error::UnknownLabel { .. })));
    assert!(matches!(rows.observe(0, weather, CategoryId::new(3)), Err(Error::UnknownCategory { .. })));
    assert_eq!(rows.observe(0, weather, CategoryId::new(2)), Ok(()));
}
