//! `prsl compare`.

use serde_json::Value;

use crate::runner::{Folder, WAREHOUSE};

const BELIEFS: &str = "\
activity=walking,activity=normal,activity=overhead,feet=gait,feet=standing,hands=high,hands=centered,hands=low
0.1,0.4,0.5,0.05,0.95,0.5,0.3,0.2
0.6,0.3,0.1,0.4,0.6,0.2,0.5,0.3
0.1,0.7,0.2,0.1,0.9,0.6,0.2,0.2
0.3,0.3,0.4,0.2,0.8,0.1,0.6,0.3
";
const TRUTH: &str = "\
activity,feet,hands
overhead,standing,high
walking,gait,centered
normal,standing,
,,
";

fn folder() -> Folder {
    let alone: String =
        WAREHOUSE.lines().filter(|line| line.starts_with("label")).map(|line| format!("{line}\n")).collect();
    Folder::new(&[
        ("alone.prsl", alone.as_str()),
        ("warehouse.prsl", WAREHOUSE),
        ("other.prsl", "label other"),
        ("beliefs.csv", BELIEFS),
        ("truth.csv", TRUTH),
    ])
}

#[test]
fn a_table_for_people() {
    insta::assert_snapshot!(folder().prsl("compare alone.prsl warehouse.prsl beliefs.csv truth.csv").done());
}

#[test]
fn differences_are_those_of_two_evaluations() {
    let folder = folder();
    let object = |command: &str| -> Value {
        serde_json::from_str(
            &folder.prsl(&format!("{command} beliefs.csv truth.csv --format json")).done().stdout,
        )
        .unwrap()
    };
    let compared = object("compare alone.prsl warehouse.prsl");
    let [alone, whole] = [object("evaluate alone.prsl"), object("evaluate warehouse.prsl")];
    assert_eq!(whole["parts"]["beliefs"]["joint_accuracy"], alone["joint_accuracy"]);
    for line in compared["differences"].as_array().unwrap() {
        let score = line["score"].as_str().unwrap();
        assert_eq!((&line["first"], &line["second"]), (&alone[score], &whole[score]), "{score}");
        let of = |value: &Value| value.as_f64().unwrap();
        assert_eq!(of(&line["difference"]), of(&line["second"]) - of(&line["first"]), "{score}");
        assert!(of(&line["interval"][0]) <= of(&line["interval"][1]), "{score}");
    }
    assert_eq!(compared["largest"].as_array().unwrap().len(), 3);
}

#[test]
fn models_about_other_labels_are_refused() {
    let run = folder().prsl("compare other.prsl warehouse.prsl beliefs.csv truth.csv --ignore-extra");
    assert_eq!(run.code, 3, "{run}");
    let run = folder().prsl("compare alone.prsl warehouse.prsl - truth.csv");
    assert!(run.code != 0 && run.stderr.contains("BELIEFS cannot be `-`"), "{run}");
}
