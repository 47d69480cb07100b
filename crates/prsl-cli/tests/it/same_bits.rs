//! The command gives the same bits as the library. `python/tests/test_same_bits.py` says the same of Python.

use std::path::{Path, PathBuf};

use prsl::learn::{Examples, Learner};
use prsl::metrics::{Evaluation, Metric};
use prsl::{BeliefMatrix, Engines, Model, Truth};
use prsl_data::{
    BeliefOptions, BeliefReader, LabeledReader, RowColumns, TableReader, TruthOptions, TruthReader,
};
use serde_json::Value;

use crate::runner::Folder;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/same_bits").join(name)
}

fn folder() -> Folder {
    let read = |name: &str| std::fs::read_to_string(file(name)).expect("a file of tests/same_bits");
    Folder::new(&[
        ("base.prsl", &read("base.prsl")),
        ("beliefs.csv", &read("beliefs.csv")),
        ("truth.csv", &read("truth.csv")),
    ])
}

/// The model, and the beliefs and truths as the library reads them.
fn rows() -> (Model, BeliefMatrix, Vec<Truth>) {
    let text = std::fs::read_to_string(file("base.prsl")).expect("the model");
    let model = Model::parse(&text).expect("a valid model");
    let open = |name: &str| TableReader::open(&file(name)).expect("a table");
    let beliefs = BeliefReader::new(&model, open("beliefs.csv"), BeliefOptions::default());
    let truths =
        TruthReader::with_columns(&model, open("truth.csv"), TruthOptions::default(), RowColumns::default());
    let mut reader = LabeledReader::new(beliefs.expect("beliefs"), truths.expect("truths"));
    let (beliefs, truths) = reader.next_chunk(1000).expect("valid rows").expect("some rows");
    (model, beliefs, truths)
}

#[test]
fn predict_gives_the_bits_of_the_library() {
    let (model, beliefs, _) = rows();
    let run = folder().prsl("predict base.prsl beliefs.csv");
    let posteriors =
        Engines::new(&model).marginals().expect("an engine").infer_batch(&beliefs).expect("rows");
    let lines: Vec<&str> = run.stdout.lines().skip(1).collect();
    assert_eq!(lines.len(), beliefs.n_rows());
    for (row, line) in lines.into_iter().enumerate() {
        let cells = line.split(',').take(model.n_categories());
        let told: Vec<u64> = cells.map(|cell| cell.parse::<f64>().expect("a number").to_bits()).collect();
        let found = posteriors.marginals(row).expect("a possible row");
        let found: Vec<u64> = found.iter().map(|value| value.to_bits()).collect();
        assert_eq!(told, found, "row {row}");
    }
}

#[test]
fn evaluate_gives_the_bits_of_the_library() {
    let (model, beliefs, truths) = rows();
    let run = folder().prsl("evaluate base.prsl beliefs.csv truth.csv --no-intervals --format json");
    let told: Value = serde_json::from_str(&run.stdout).expect("one object");
    let scores = Evaluation::of(&model, &beliefs, &truths).expect("scores").scores();
    for metric in Metric::ALL {
        assert_eq!(told[metric.name()].as_f64(), scores.get(metric), "{}", metric.name());
    }
}

#[test]
fn learn_gives_the_bits_of_the_library() {
    let (model, beliefs, truths) = rows();
    let folder = folder();
    folder.prsl("learn beliefs.csv truth.csv --base base.prsl --cv 0 --seed 7 -o learned.prsl");
    let examples = Examples::new(beliefs, truths).expect("examples");
    let learner = Learner { seed: 7, ..Learner::default() };
    let learned = learner.learn(&model, &examples).expect("a model").model;
    assert_eq!(Model::parse(&folder.read("learned.prsl")).expect("a valid model"), learned);
}
