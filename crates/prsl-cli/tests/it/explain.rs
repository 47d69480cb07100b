//! `prsl explain`.

use crate::runner::{BELIEFS, Folder, WAREHOUSE};

#[test]
fn the_worked_example() {
    let folder = Folder::warehouse();
    insta::assert_snapshot!(folder.prsl("explain warehouse.prsl beliefs.csv --row 1").done());
}

#[test]
fn the_worked_example_in_json_to_four_digits() {
    let run = Folder::warehouse().prsl("explain warehouse.prsl beliefs.csv --row 1 --format json").done();
    let explanation: serde_json::Value = serde_json::from_str(&run.stdout).expect("JSON");
    let after: Vec<String> = explanation["labels"]
        .as_array()
        .expect("labels")
        .iter()
        .flat_map(|label| label["categories"].as_array().expect("categories"))
        .map(|category| format!("{:.4}", category["after"].as_f64().expect("a number")))
        .collect();
    assert_eq!(after, ["0.0074", "0.2892", "0.7034", "0.0074", "0.9926", "0.3632", "0.3821", "0.2547"]);
    let log_evidence = explanation["log_evidence"].as_f64().expect("a number");
    assert_eq!(format!("{:.4}", log_evidence.exp()), "0.4862");
}

#[test]
fn where_exact_inference_does_not_fit_the_explanation_is_approximate() {
    let folder = Folder::warehouse();
    insta::assert_snapshot!(folder.prsl("explain warehouse.prsl beliefs.csv --row 1 --engine loopy").done());
    let run = folder.prsl("explain warehouse.prsl beliefs.csv --row 1 --memory 1").done();
    assert!(run.stdout.starts_with("approximate: "), "{run}");
    let run = folder.prsl("explain warehouse.prsl beliefs.csv --row 1 --memory 1 --format json").done();
    assert!(run.stdout.contains("\"approximate\": true"), "{run}");
}

#[test]
fn an_impossible_row_says_which_rule_excludes_it() {
    let beliefs = "activity,feet\nwalking,gait\nwalking,standing\n";
    let folder = Folder::new(&[("warehouse.prsl", WAREHOUSE), ("observed.csv", beliefs)]);
    insta::assert_snapshot!(folder.prsl("explain warehouse.prsl observed.csv --row 2").done());
}

#[test]
fn rows_that_do_not_exist() {
    let folder = Folder::warehouse();
    insta::assert_snapshot!(folder.prsl("explain warehouse.prsl beliefs.csv --row 2"));
    insta::assert_snapshot!(folder.prsl("explain warehouse.prsl beliefs.csv --row 0"));
    insta::assert_snapshot!(folder.prsl("explain warehouse.prsl beliefs.csv"));
}

#[test]
fn errors_after_the_row_are_ignored() {
    let beliefs = format!("{BELIEFS}0.1,0.4,0.5,0.05,0.95,oops,0.3,0.2\n");
    let folder = Folder::new(&[("warehouse.prsl", WAREHOUSE), ("beliefs.csv", &beliefs)]);
    folder.prsl("explain warehouse.prsl beliefs.csv --row 1").done();
    let run = folder.prsl("explain warehouse.prsl beliefs.csv --row 2");
    assert_eq!(run.code, 3);
}

#[test]
fn what_would_change_the_answer() {
    let folder = Folder::warehouse();
    let explain = "explain warehouse.prsl beliefs.csv --row 1";
    insta::assert_snapshot!(folder.prsl(&format!("{explain} --flip hands=high")).done());
    insta::assert_snapshot!(folder.prsl(&format!("{explain} --flip activity=overhead")).done());
    let run = folder.prsl(&format!("{explain} --flip hands=high --format json")).done();
    let found: serde_json::Value = serde_json::from_str(&run.stdout).expect("JSON");
    let change = &found["changes"][0];
    assert_eq!((&change["label"], &change["origin"]), (&"activity".into(), &"classifier".into()));
    let needed = change["belief"]["needed"].as_f64().expect("a number");
    assert_eq!(
        (&change["belief"]["category"], format!("{needed:.3}")),
        (&"normal".into(), "0.371".to_owned())
    );
}

#[test]
fn the_raw_belief_beyond_which_the_answer_changes() {
    let model = "label alarm\nlabel fire\ncalibrate alarm platt 1 -1\nrule 0.9: alarm <-> fire\n";
    let folder = Folder::new(&[("fire.prsl", model), ("beliefs.csv", "alarm\n0.5\n0.7\n0.76\n")]);
    insta::assert_snapshot!(folder.prsl("explain fire.prsl beliefs.csv --row 2 --flip fire=yes").done());
    let run = folder.prsl("explain fire.prsl beliefs.csv --row 3 --flip fire=yes").done();
    assert!(run.stdout.contains("already"), "{run}");
}

#[test]
fn what_to_ask_next() {
    let folder = Folder::warehouse();
    let explain = "explain warehouse.prsl beliefs.csv --row 1";
    insta::assert_snapshot!(folder.prsl(&format!("{explain} --next activity")).done());
    insta::assert_snapshot!(folder.prsl(&format!("{explain} --next all")).done());
    let run = folder.prsl(&format!("{explain} --next all --format json --engine loopy")).done();
    let found: serde_json::Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!((&found["approximate"], &found["label"]), (&true.into(), &serde_json::Value::Null));
    assert!(found["gains"][0]["gain"].as_f64().expect("bits") > 0.0);
}

#[test]
fn questions_that_cannot_be_answered() {
    let folder = Folder::warehouse();
    for options in [
        "--flip hand=high",
        "--flip hands=hgih",
        "--flip hands",
        "--next foot",
        "--flip hands=high --next all",
    ] {
        let run = folder.prsl(&format!("explain warehouse.prsl beliefs.csv --row 1 {options}"));
        insta::assert_snapshot!(run);
    }
}
