//! `prsl simulate`.

use prsl::infer::Sampling;
use prsl::simulate::Simulation;
use prsl::{BeliefMatrix, JunctionTree, Model};
use prsl_data::{BeliefOptions, BeliefReader, TableReader, TruthOptions, TruthReader};

use crate::runner::Folder;

fn model(folder: &Folder, name: &str) -> Model {
    Model::parse(&folder.read(&format!("{name}/model.prsl"))).expect("a model")
}

fn beliefs(folder: &Folder, name: &str, model: &Model) -> BeliefMatrix {
    let table = TableReader::open(&folder.path(&format!("{name}/beliefs.csv"))).expect("a table");
    let mut reader =
        BeliefReader::new(model, table, BeliefOptions::default()).expect("beliefs about the model");
    reader.next_chunk(10_000).expect("valid").expect("rows")
}

fn truth(folder: &Folder, name: &str, model: &Model) -> Vec<prsl::Truth> {
    let table = TableReader::open(&folder.path(&format!("{name}/truth.csv"))).expect("a table");
    let mut reader = TruthReader::new(model, table, TruthOptions::default()).expect("labels of the model");
    reader.next_chunk(10_000).expect("valid").expect("rows")
}

#[test]
fn a_folder_is_all_it_takes() {
    let folder = Folder::new(&[]);
    let run = folder.prsl("simulate -o simulated").done();
    insta::assert_snapshot!(run);
    // The suggested commands work.
    for command in run.stdout.lines().filter_map(|line| line.strip_prefix("  prsl ")) {
        folder.prsl(command).done();
    }
    let (expected, rows) = Simulation::default().draw().expect("the defaults can be");
    let model = model(&folder, "simulated");
    assert_eq!(model, expected);
    // Numbers are equal up to rounding, because a reader divides beliefs by their sum.
    for (read, drawn) in beliefs(&folder, "simulated", &model).values().iter().zip(rows.values()) {
        assert!((read - drawn).abs() <= f64::EPSILON, "{read} {drawn}");
    }
    let first = folder.read("simulated/beliefs.csv").lines().nth(1).expect("a row").to_owned();
    let first: Vec<f64> = first.split(',').map(|cell| cell.parse().expect("a number")).collect();
    assert_eq!(first, *rows.row(0));
}

#[test]
fn truths_are_samples_of_the_posterior() {
    let folder = Folder::new(&[]);
    let arguments = "simulate --labels 6 --rules 4 --rows 50 --seed 9 --sample -o study";
    insta::assert_snapshot!(folder.prsl(arguments).done());
    let (model, rows) =
        Simulation { n_labels: 6, n_rules: 4, n_rows: 50, seed: 9 }.draw().expect("it can be drawn");
    let sampling = Sampling { n_samples: 1, seed: 9, first_row: 0 };
    let samples =
        JunctionTree::compile(&model).expect("small").sample_batch(&rows, &sampling).expect("careful");
    let truth = truth(&folder, "study", &model);
    assert_eq!(truth.len(), 50);
    for (truth, samples) in truth.into_iter().zip(samples) {
        let sample = samples.expect("drawn").expect("possible").swap_remove(0);
        assert_eq!(truth.assignment(), Some(sample));
    }
    // A second run in another folder gives the same files.
    folder.prsl(&arguments.replace("study", "again")).done();
    for file in ["model.prsl", "beliefs.csv", "truth.csv"] {
        assert_eq!(folder.read(&format!("study/{file}")), folder.read(&format!("again/{file}")));
    }
}

#[test]
fn samples_are_approximate_where_memory_is_short() {
    let folder = Folder::new(&[]);
    insta::assert_snapshot!(folder.prsl("simulate --rows 3 --sample --memory 1 -o short").done());
    let model = model(&folder, "short");
    assert!(truth(&folder, "short", &model).iter().all(|truth| truth.assignment().is_some()));
}

#[test]
fn rows_that_the_rules_exclude_have_no_truth() {
    let folder = Folder::new(&[]);
    insta::assert_snapshot!(
        folder.prsl("simulate --labels 1 --rules 9 --rows 2 --seed 4 --sample -o strict").done()
    );
    let model = model(&folder, "strict");
    assert_eq!(truth(&folder, "strict", &model), [[None], [None]]);
}

#[test]
fn existing_files_are_not_overwritten() {
    let folder = Folder::new(&[]);
    folder.prsl("simulate --rows 2 --sample -o here").done();
    let before = folder.read("here/beliefs.csv");
    insta::assert_snapshot!(folder.prsl("simulate --rows 2 --seed 2 --sample -o here"));
    insta::assert_snapshot!(folder.prsl("simulate --rows 2 --seed 2 --force -o here"));
    assert_eq!(folder.read("here/beliefs.csv"), before);
    folder.prsl("simulate --rows 2 --seed 2 --sample --force -o here").done();
    assert_ne!(folder.read("here/beliefs.csv"), before);
}

#[test]
fn rows_are_drawn_for_a_given_model() {
    let folder = Folder::warehouse();
    let arguments = "simulate warehouse.prsl --rows 50 --missing-share 0.2 --seed 3 -o shifts";
    let run = folder.prsl(arguments).done();
    insta::assert_snapshot!(run);
    for command in run.stdout.lines().filter_map(|line| line.strip_prefix("  prsl ")) {
        folder.prsl(command).done();
    }
    assert_eq!(folder.prsl("evaluate warehouse.prsl shifts/beliefs.csv shifts/truth.csv").code, 0);
    let head = |name: &str| folder.read(name).lines().take(4).collect::<Vec<_>>().join("\n");
    insta::assert_snapshot!(format!("{}\n\n{}", head("shifts/beliefs.csv"), head("shifts/truth.csv")));
    // The hard rule holds in every row.
    for truth in folder.read("shifts/truth.csv").lines().skip(1) {
        assert_eq!(truth.starts_with("walking,"), truth.contains(",gait,"), "{truth}");
    }
    // Nothing is overwritten, unless told so.
    assert_eq!(folder.prsl(arguments).code, 3);
    folder.prsl(&format!("{arguments} --force")).done();
}

#[test]
fn yes_no_labels_have_one_column_and_latent_labels_none() {
    let folder = Folder::new(&[("fire.prsl", "label fire latent\nlabel alarm\nrule 0.9: alarm <-> fire\n")]);
    folder.prsl("simulate fire.prsl --rows 3 -o drawn").done();
    assert_eq!(folder.read("drawn/beliefs.csv").lines().next(), Some("alarm"));
    assert_eq!(folder.read("drawn/truth.csv").lines().next(), Some("fire,alarm"));
}

#[test]
fn wrong_uses_with_a_given_model() {
    let impossible = "label a\nrule 1 yes: a\nrule 1 no: !a\n";
    let folder = Folder::new(&[("impossible.prsl", impossible), ("a.prsl", "label a\n")]);
    insta::assert_snapshot!(folder.prsl("simulate impossible.prsl -o none"));
    insta::assert_snapshot!(folder.prsl("simulate a.prsl --strength -1 -o none"));
    insta::assert_snapshot!(folder.prsl("simulate a.prsl --labels 5 -o none"));
    insta::assert_snapshot!(folder.prsl("simulate --missing-share 0.5 -o none"));
    insta::assert_snapshot!(folder.prsl("simulate absent.prsl -o none"));
    assert_eq!(folder.files(), ["a.prsl", "impossible.prsl"]);
}

#[test]
fn wrong_uses() {
    let folder = Folder::new(&[("file", "")]);
    insta::assert_snapshot!(folder.prsl("simulate"));
    insta::assert_snapshot!(folder.prsl("simulate --labels 0 -o none"));
    insta::assert_snapshot!(folder.prsl("simulate --labels 4000000 -o many"));
    insta::assert_snapshot!(folder.prsl("simulate -o file"));
    assert_eq!(folder.files(), ["file"]);
}
