//! `prsl evaluate`.

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

fn folder(truth: &str) -> Folder {
    Folder::new(&[("warehouse.prsl", WAREHOUSE), ("beliefs.csv", BELIEFS), ("truth.csv", truth)])
}

fn json(folder: &Folder, options: &str) -> Value {
    let run = folder.prsl(&format!("evaluate warehouse.prsl beliefs.csv truth.csv --format json {options}"));
    assert_eq!(run.code, 0, "{run}");
    serde_json::from_str(&run.stdout).expect("one object")
}

fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_else(|| panic!("{key} in {value}"))
}

#[test]
fn a_table_for_people() {
    let run = folder(TRUTH).prsl("evaluate warehouse.prsl beliefs.csv truth.csv").done();
    insta::assert_snapshot!(run);
}

#[test]
fn an_object_for_programs() {
    let folder = folder(TRUTH);
    let run = folder.prsl("evaluate warehouse.prsl beliefs.csv truth.csv --format json").done();
    let line = |line: &str| line.split_once("\": ").map(|(key, _)| key.trim().trim_matches('"').to_owned());
    let keys: Vec<String> =
        run.stdout.lines().filter(|line| line.starts_with("  \"")).filter_map(line).collect();
    let expected = "rows joint_accuracy joint_accuracy_marginals hamming_loss mean_joint_log_likelihood \
                    median_joint_log_likelihood mean_label_log_likelihood median_label_log_likelihood micro_f1 macro_f1 \
                    expected_calibration_error engine not_converged impossible intervals parts labels";
    assert_eq!(keys.join(" "), expected);
    let scores = json(&folder, "");
    assert_eq!((scores["rows"].as_u64(), scores["engine"].as_str()), (Some(4), Some("junction_tree")));
    let intervals = scores["intervals"].as_object().expect("an object");
    assert_eq!(intervals.len(), 10);
    for (metric, interval) in intervals {
        let (low, high) = (interval[0].as_f64().expect("low"), interval[1].as_f64().expect("high"));
        assert!(low <= high && scores[metric].is_number(), "{metric}");
    }
    // P(overhead, standing, high) of the worked example is 0.3517.
    let one = folder_of_first_row();
    assert!((number(&json(&one, ""), "mean_joint_log_likelihood").exp() - 0.3517).abs() < 5e-5);
}

fn folder_of_first_row() -> Folder {
    let first = |table: &str| table.lines().take(2).map(|line| format!("{line}\n")).collect::<String>();
    let (beliefs, truth) = (first(BELIEFS), first(TRUTH));
    Folder::new(&[("warehouse.prsl", WAREHOUSE), ("beliefs.csv", &beliefs), ("truth.csv", &truth)])
}

#[test]
fn exact_engines_agree_and_loopy_has_no_joint_likelihood() {
    let folder = folder(TRUTH);
    let auto = json(&folder, "");
    for engine in ["exact", "enumeration"] {
        let other = json(&folder, &format!("--engine {engine}"));
        for key in ["mean_joint_log_likelihood", "joint_accuracy", "hamming_loss", "macro_f1"] {
            assert!((number(&auto, key) - number(&other, key)).abs() < 1e-12, "{engine} {key}");
        }
    }
    let loopy = json(&folder, "--engine loopy");
    assert_eq!(loopy["engine"], "loopy");
    assert!(loopy["mean_joint_log_likelihood"].is_null() && loopy["median_joint_log_likelihood"].is_null());
    assert!(loopy["intervals"]["mean_joint_log_likelihood"].is_null());
    assert!(loopy["mean_label_log_likelihood"].is_number() && loopy["joint_accuracy"].is_number());
    insta::assert_snapshot!(folder.prsl("evaluate warehouse.prsl beliefs.csv truth.csv --memory 1"));
}

/// The same rows many times over.
fn long(times: usize) -> Folder {
    let repeated = |table: &str| {
        let (header, rows) = table.split_once('\n').expect("a header");
        format!("{header}\n{}", rows.repeat(times))
    };
    let (beliefs, truth) = (repeated(BELIEFS), repeated(TRUTH));
    Folder::new(&[("warehouse.prsl", WAREHOUSE), ("beliefs.csv", &beliefs), ("truth.csv", &truth)])
}

#[test]
fn seeds_and_threads() {
    let folder = long(10);
    let one = json(&folder, "--threads 1");
    assert_eq!(one, json(&folder, "--threads 3"));
    assert_eq!(one, json(&folder, "--seed 1"));
    let other = json(&folder, "--seed 2");
    assert_eq!(one["joint_accuracy"], other["joint_accuracy"]);
    assert_ne!(one["intervals"], other["intervals"]);
}

#[test]
fn columns_go_by_name_and_may_be_missing() {
    let expected = json(&folder(TRUTH), "");
    let shuffled =
        "hands,feet,activity\nhigh,standing,overhead\ncentered,gait,walking\n,standing,normal\n,,\n";
    assert_eq!(json(&folder(shuffled), ""), expected);
    let extra = "id,activity,feet,hands\n1,overhead,standing,high\n2,walking,gait,centered\n3,normal,standing,\n4,,,\n";
    assert_eq!(json(&folder(extra), "--ignore-extra"), expected);
    let fewer = json(&folder("feet\nstanding\ngait\nstanding\nstanding\n"), "");
    assert!(
        (number(&fewer, "mean_joint_log_likelihood") - number(&fewer, "mean_label_log_likelihood")).abs()
            < 1e-12
    );
}

#[test]
fn truths_that_rules_exclude_are_counted() {
    let excluded = TRUTH.replace("walking,gait,centered", "walking,standing,centered");
    let folder = folder(&excluded);
    let scores = json(&folder, "");
    assert_eq!(scores["impossible"].as_u64(), Some(1));
    assert!(number(&scores, "mean_joint_log_likelihood") < -200.0);
    insta::assert_snapshot!(folder.prsl("evaluate warehouse.prsl beliefs.csv truth.csv").done());
}

#[test]
fn rows_that_contradict_the_rules_are_counted() {
    let beliefs = "activity,feet,hands=high\nwalking,standing,0.5\nnormal,standing,0.5\n";
    let truth = "activity,feet\nwalking,standing\nnormal,standing\n";
    let files = [("warehouse.prsl", WAREHOUSE), ("beliefs.csv", beliefs), ("truth.csv", truth)];
    let scores = json(&Folder::new(&files), "");
    assert_eq!((scores["impossible"].as_u64(), scores["joint_accuracy"].as_f64()), (Some(1), Some(0.5)));
}

#[test]
fn nothing_to_score_is_null() {
    let unknown = json(&folder("activity,feet\n,\n,\n,\n,\n"), "");
    let empty =
        Folder::new(&[("warehouse.prsl", WAREHOUSE), ("beliefs.csv", "feet\n"), ("truth.csv", "feet\n")]);
    for (scores, rows) in [(unknown, 4), (json(&empty, ""), 0)] {
        assert_eq!(scores["rows"].as_u64(), Some(rows));
        assert!(scores["joint_accuracy"].is_null() && scores["macro_f1"].is_null());
    }
    insta::assert_snapshot!(empty.prsl("evaluate warehouse.prsl beliefs.csv truth.csv").done());
}

#[test]
fn tables_that_do_not_fit() {
    let told = |name: &str, truth: &str| {
        let run = folder(truth).prsl("evaluate warehouse.prsl beliefs.csv truth.csv");
        assert_eq!((run.code, run.stdout.as_str()), (3, ""), "{run}");
        insta::assert_snapshot!(name, run);
    };
    told("too_few_truths", "feet\ngait\ngait\n");
    told("too_many_truths", "feet\ngait\ngait\ngait\ngait\ngait\n");
    told("unknown_truth", "feet,hands\ngait,low\nstanding,hihg\n");
    told("unknown_label", "feet,hand\ngait,low\n");
    let folder = folder(TRUTH);
    insta::assert_snapshot!("truth_missing", folder.prsl("evaluate warehouse.prsl beliefs.csv"));
    insta::assert_snapshot!("standard_input_three_times", folder.prsl("evaluate - beliefs.csv -"));
}

#[test]
fn long_tables_are_read_in_step() {
    let (long, short) = (json(&long(5000), ""), json(&folder(TRUTH), ""));
    assert_eq!(long["rows"].as_u64(), Some(20_000));
    for key in ["joint_accuracy", "hamming_loss", "median_joint_log_likelihood", "macro_f1"] {
        assert!((number(&long, key) - number(&short, key)).abs() < 1e-9, "{key}");
    }
}
