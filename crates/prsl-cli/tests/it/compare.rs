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

/// Beliefs and truths with ids and weights; as often as the weights say, and without rows of weight 0.
fn weighted() -> Folder {
    let folder = folder();
    let beliefs: Vec<&str> = BELIEFS.lines().collect();
    let truths: Vec<&str> = TRUTH.lines().collect();
    let weights = [2, 0, 1, 3];
    let [mut marked_beliefs, mut marked_truths] =
        [format!("image,{}\n", beliefs[0]), format!("image,w,{}\n", truths[0])];
    let [mut more_beliefs, mut more_truths] = [format!("{}\n", beliefs[0]), format!("{}\n", truths[0])];
    for (row, weight) in weights.into_iter().enumerate() {
        marked_beliefs += &format!("{row}.jpg,{}\n", beliefs[row + 1]);
        marked_truths += &format!("{row}.jpg,{weight},{}\n", truths[row + 1]);
        more_beliefs += &format!("{}\n", beliefs[row + 1]).repeat(weight);
        more_truths += &format!("{}\n", truths[row + 1]).repeat(weight);
    }
    for (name, text) in [
        ("marked.csv", marked_beliefs),
        ("marked-truth.csv", marked_truths),
        ("more.csv", more_beliefs),
        ("more-truth.csv", more_truths),
    ] {
        std::fs::write(folder.path(name), text).expect("a file");
    }
    folder
}

#[test]
fn a_weight_of_two_is_a_row_twice() {
    let folder = weighted();
    let object =
        |command: &str| -> Value { serde_json::from_str(&folder.prsl(command).done().stdout).expect("JSON") };
    let options = "--id image --weights w --format json";
    let compared =
        object(&format!("compare alone.prsl warehouse.prsl marked.csv marked-truth.csv {options}"));
    let repeated = object("compare alone.prsl warehouse.prsl more.csv more-truth.csv --format json");
    let is_near = |a: &Value, b: &Value| match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => (a - b).abs() < 1e-12,
        (a, b) => a == b,
    };
    let lines = |object: &Value| object["differences"].as_array().expect("scores").clone();
    for (line, expected) in lines(&compared).iter().zip(lines(&repeated)) {
        for field in ["first", "second", "difference"] {
            assert!(is_near(&line[field], &expected[field]), "{line} {expected}");
        }
    }
    // The second row has no weight, and the last one no truth.
    let largest: Vec<_> =
        compared["largest"].as_array().expect("rows").iter().map(|row| &row["id"]["image"]).collect();
    assert_eq!(largest.len(), 2);
    assert!(!largest.contains(&&Value::from("1.jpg")), "{compared}");
    let evaluated = object(&format!("evaluate warehouse.prsl marked.csv marked-truth.csv {options}"));
    let repeated = object("evaluate warehouse.prsl more.csv more-truth.csv --format json");
    for (score, value) in repeated.as_object().expect("scores").iter().filter(|(_, value)| value.is_f64()) {
        assert!(is_near(&evaluated[score], value), "{score}: {} for {value}", evaluated[score]);
    }
    assert!(is_near(&evaluated["labels"][0]["log_loss"], &repeated["labels"][0]["log_loss"]));
    assert!(is_near(&evaluated["parts"]["beliefs"]["micro_f1"], &repeated["parts"]["beliefs"]["micro_f1"]));
}

#[test]
fn ids_stand_beside_the_rows_that_differ_most() {
    let folder = weighted();
    let files = "alone.prsl warehouse.prsl marked.csv marked-truth.csv";
    insta::assert_snapshot!(
        folder.prsl(&format!("compare {files} --id image --weights w --digits 2")).done()
    );
    let swapped = folder.read("marked-truth.csv").replace("0.jpg", "7.jpg");
    std::fs::write(folder.path("marked-truth.csv"), swapped).expect("a file");
    let run = folder.prsl(&format!("compare {files} --id image --weights w"));
    assert_eq!(run.code, 3, "{run}");
    assert!(run.stderr.contains("row 1: column `image` is `0.jpg` in `marked.csv` and `7.jpg`"), "{run}");
}

#[test]
fn weights_are_checked_as_in_learning() {
    let folder = weighted();
    for (weight, complaint) in
        [("0", "all rows have weight 0"), ("-1", "a weight of -1"), ("1e16", "weight 10000000000000000")]
    {
        let truth: String = TRUTH.lines().skip(1).map(|line| format!("{weight},{line}\n")).collect();
        std::fs::write(folder.path("wrong.csv"), format!("w,activity,feet,hands\n{truth}")).expect("a file");
        for command in ["evaluate warehouse.prsl", "compare alone.prsl warehouse.prsl"] {
            let run = folder.prsl(&format!("{command} beliefs.csv wrong.csv --weights w"));
            assert_eq!(run.code, 3, "{run}");
            assert!(run.stderr.contains(complaint), "{run}");
        }
    }
}
