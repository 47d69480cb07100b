//! The rule bases in `examples/` and their data.

use std::fs;
use std::path::{Path, PathBuf};

use crate::runner::{Folder, Run};

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// The names of the rule bases.
fn names() -> Vec<String> {
    let files = fs::read_dir(examples()).expect("the folder").map(|entry| entry.expect("readable").path());
    let models = files.filter(|path| path.extension().is_some_and(|extension| extension == "prsl"));
    let mut names: Vec<_> =
        models.map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned()).collect();
    names.sort();
    assert!(names.len() >= 6, "{names:?}");
    names
}

/// A folder with all rule bases and their data.
fn gallery() -> Folder {
    let folder = Folder::new(&[]);
    for name in names() {
        fs::create_dir(folder.path(&name)).expect("a folder");
        for file in [format!("{name}.prsl"), format!("{name}/beliefs.csv"), format!("{name}/truth.csv")] {
            fs::copy(examples().join(&file), folder.path(&file)).unwrap_or_else(|_| panic!("no `{file}`"));
        }
    }
    folder
}

#[test]
fn rule_bases_pass_their_tests_and_are_formatted() {
    let folder = gallery();
    for name in names() {
        let run = folder.prsl(&format!("check {name}.prsl"));
        assert!(run.code == 0 && run.stdout.contains("no findings"), "{run}");
        folder.prsl(&format!("fmt --check {name}.prsl")).done();
        let text = folder.read(&format!("{name}.prsl"));
        let n_expectations = text.lines().filter(|line| line.starts_with("expect ")).count();
        assert!(n_expectations >= 5 && text.starts_with("# "), "{name} has too few tests or no comment");
    }
}

#[test]
fn every_row_is_answered_and_can_be_explained() {
    let folder = gallery();
    for name in names() {
        let run = folder.prsl(&format!("predict {name}.prsl {name}/beliefs.csv")).done();
        assert_eq!(run.stdout.lines().count(), 61, "{run}");
        assert!(run.stdout.lines().skip(1).all(|line| line.ends_with(",ok")), "{run}");
        for row in [1, 30, 60] {
            let run = folder.prsl(&format!("explain {name}.prsl {name}/beliefs.csv --row {row}")).done();
            assert!(run.stdout.contains("rules, the most influential first"), "{run}");
        }
    }
}

/// On rows that follow the rules, the rules help.
#[test]
fn rules_improve_the_log_likelihood_of_their_data() {
    let folder = gallery();
    for name in names() {
        let score = |model: &str| -> f64 {
            let tables = format!("{name}/beliefs.csv {name}/truth.csv");
            let run: Run =
                folder.prsl(&format!("evaluate {model} {tables} --format json --no-intervals")).done();
            let scores: serde_json::Value = serde_json::from_str(&run.stdout).expect("an object");
            scores["mean_joint_log_likelihood"].as_f64().expect("a number")
        };
        let text = folder.read(&format!("{name}.prsl"));
        let is_label = |line: &&str| line.starts_with("label ");
        let labels: String = text.lines().filter(is_label).map(|line| format!("{line}\n")).collect();
        fs::write(folder.path("labels.prsl"), labels).expect("a file");
        let (with, without) = (score(&format!("{name}.prsl")), score("labels.prsl"));
        assert!(with > without + 0.5, "{name}: {with} with rules, {without} without");
    }
}

/// `make examples` writes them.
#[cfg(unix)]
#[test]
fn data_are_those_that_the_script_generates() {
    let folder = Folder::new(&[]);
    let mut generate = std::process::Command::new("bash");
    generate.arg(examples().join("generate")).arg(env!("CARGO_BIN_EXE_prsl")).arg(folder.path(""));
    let output = generate.output().expect("bash runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for name in names() {
        for file in [format!("{name}/beliefs.csv"), format!("{name}/truth.csv")] {
            let committed = fs::read_to_string(examples().join(&file)).expect("a file");
            assert_eq!(folder.read(&file), committed, "{file} differs; run `make examples`");
        }
    }
}
