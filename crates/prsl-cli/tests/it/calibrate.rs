//! `prsl calibrate`.

use std::fmt::Write as _;

use prsl::calibrate::Calibrator;
use prsl::{Evidence, Model};

use crate::runner::{Folder, Run};

const MODEL: &str = "\
# What a person wrote.
label hands: high, centered, low
label alarm
label fire
label tired latent

calibrate alarm temperature 3
rule 0.9: high -> alarm
";

/// Three classifiers: an overconfident one for the alarm, one that confuses two positions of the hands, and one that
/// never detects a fire.
fn tables() -> (String, String) {
    let mut beliefs = String::from("hands=high,hands=centered,hands=low,alarm,fire\n");
    let mut truths = String::from("fire,alarm,hands\n");
    for row in 0..200 {
        let (alarm, hands) = (row % 2 == 0, row % 3);
        let sure = if row % 10 < 7 { alarm } else { !alarm };
        let alarm_belief =
            if sure { 0.97 - f64::from(row % 5) / 100.0 } else { 0.02 + f64::from(row % 7) / 100.0 };
        let seen = if hands == 1 && row % 4 == 0 { 2 } else { hands };
        let hand = |category| if category == seen { 0.9 } else { 0.05 };
        let fire = f64::from(row % 9) / 20.0;
        writeln!(beliefs, "{},{},{},{alarm_belief},{fire}", hand(0), hand(1), hand(2)).expect("to memory");
        let truth = ["high", "centered", "low"][hands as usize];
        let alarm = if row % 20 == 19 {
            ""
        } else if alarm {
            "yes"
        } else {
            "no"
        };
        writeln!(truths, "0,{alarm},{truth}").expect("to memory");
    }
    (beliefs, truths)
}

fn folder() -> Folder {
    let (beliefs, truths) = tables();
    Folder::new(&[("model.prsl", MODEL), ("beliefs.csv", &beliefs), ("truth.csv", &truths)])
}

/// Checks that the run was successful, possibly with warnings.
fn successful(run: Run) -> Run {
    assert_eq!(run.code, 0, "{run}");
    run
}

fn model(folder: &Folder, name: &str) -> Model {
    Model::read(&folder.read(name)).expect("a model")
}

fn kinds(model: &Model) -> Vec<&'static str> {
    model.label_ids().map(|id| model.calibrator(id).kind()).collect()
}

#[test]
fn every_label_gets_the_best_calibrator() {
    let folder = folder();
    insta::assert_snapshot!(successful(
        folder.prsl("calibrate model.prsl beliefs.csv truth.csv --alone -o calibrated.prsl")
    ));
    assert_eq!(kinds(&model(&folder, "calibrated.prsl")), ["dirichlet", "isotonic", "platt", "identity"]);
    // Calibrators are fitted to raw beliefs, so calibrating again gives the same model.
    successful(folder.prsl("calibrate calibrated.prsl beliefs.csv truth.csv --alone -o again.prsl"));
    assert_eq!(folder.read("again.prsl"), folder.read("calibrated.prsl"));
    let run = folder.prsl("check calibrated.prsl");
    assert!(run.stdout.contains("note[calibrators]: calibrators: hands "), "{run}");
}

#[test]
fn calibrators_are_fitted_beside_the_rules() {
    let folder = folder();
    insta::assert_snapshot!(successful(
        folder.prsl("calibrate model.prsl beliefs.csv truth.csv -o calibrated.prsl")
    ));
    assert_eq!(kinds(&model(&folder, "calibrated.prsl")), ["dirichlet", "platt", "platt", "identity"]);
    successful(folder.prsl("calibrate calibrated.prsl beliefs.csv truth.csv -o again.prsl"));
    assert_eq!(folder.read("again.prsl"), folder.read("calibrated.prsl"));
    let run = folder.prsl("calibrate model.prsl beliefs.csv truth.csv --method isotonic -o isotonic.prsl");
    assert!(run.stderr.contains("`isotonic` is fitted to each label by itself"), "{run}");
    let run = folder.prsl("calibrate model.prsl beliefs.csv truth.csv --memory 1 -o alone.prsl");
    assert!(run.stderr.contains("each label is fitted by itself, as if there were no rules"), "{run}");
}

#[test]
fn every_method() {
    let folder = folder();
    for method in ["platt", "isotonic", "temperature", "dirichlet", "confusion"] {
        let arguments =
            format!("calibrate model.prsl beliefs.csv truth.csv --method {method} -o {method}.json");
        let run = successful(folder.prsl(&arguments));
        let hands = if method == "platt" { "dirichlet" } else { method };
        assert_eq!(kinds(&model(&folder, &format!("{method}.json"))), [hands, method, method, "identity"]);
        assert_eq!(run.stderr.contains("label `hands` has 3 categories"), method == "platt", "{run}");
    }
}

#[test]
fn some_labels_only() {
    let folder = folder();
    let run =
        folder.prsl("calibrate model.prsl beliefs.csv truth.csv --method platt --labels fire -o model.prsl");
    insta::assert_snapshot!(successful(run));
    let model = model(&folder, "model.prsl");
    assert_eq!(kinds(&model), ["identity", "temperature", "platt", "identity"]);
}

#[test]
fn labels_without_truths_keep_their_calibrators() {
    let folder = folder();
    let truths: String = std::iter::once("fire\n").chain(std::iter::repeat_n("no\n", 200)).collect();
    std::fs::write(folder.path("truth.csv"), truths).expect("a file");
    insta::assert_snapshot!(successful(
        folder.prsl("calibrate model.prsl beliefs.csv truth.csv --labels alarm,tired -o out.prsl")
    ));
    assert_eq!(kinds(&model(&folder, "out.prsl")), ["identity", "temperature", "identity", "identity"]);
}

#[test]
fn predictions_use_the_calibrators_of_the_model() {
    let folder = folder();
    successful(
        folder.prsl("calibrate model.prsl beliefs.csv truth.csv --method dirichlet -o calibrated.prsl"),
    );
    let header = "hands=high,hands=centered,hands=low,alarm,fire\n";
    let row = "0.2,0.3,0.5,0.9,0.4\n";
    std::fs::write(folder.path("one.csv"), format!("{header}{row}")).expect("a file");
    let run = folder.prsl("predict calibrated.prsl one.csv").done();
    let answers = run.stdout.lines().nth(1).expect("a row");
    let answers: Vec<f64> = answers.split(',').take(9).map(|cell| cell.parse().expect("a number")).collect();
    let model = model(&folder, "calibrated.prsl");
    let evidence =
        Evidence::new().belief("hands", [0.2, 0.3, 0.5]).belief("alarm", [0.9]).belief("fire", [0.4]);
    assert_eq!(answers, model.infer(&evidence).expect("possible").marginals());
    assert_ne!(answers, model.without_calibrators().infer(&evidence).expect("possible").marginals());
}

#[test]
fn calibrated_beliefs_score_better() {
    let folder = folder();
    successful(folder.prsl("calibrate model.prsl beliefs.csv truth.csv --labels alarm -o calibrated.prsl"));
    let score = |model: &str| {
        let run = folder.prsl(&format!("evaluate {model} beliefs.csv truth.csv --format json"));
        let (_, after) = run.stdout.split_once("\"mean_label_log_likelihood\"").expect("a score");
        let number =
            after.split(|c: char| !(c == '-' || c == '.' || c.is_ascii_digit())).find(|s| !s.is_empty());
        number.expect("a number").parse::<f64>().expect("a number")
    };
    let raw = model(&folder, "model.prsl").without_calibrators();
    std::fs::write(folder.path("raw.prsl"), raw.to_string()).expect("a file");
    assert!(score("calibrated.prsl") > score("raw.prsl"));
}

#[test]
fn wrong_uses() {
    let folder = folder();
    insta::assert_snapshot!(
        folder.prsl("calibrate model.prsl beliefs.csv truth.csv --labels alram -o out.prsl")
    );
    insta::assert_snapshot!(folder.prsl("calibrate model.prsl - - -o out.prsl"));
    insta::assert_snapshot!(folder.prsl("calibrate model.prsl beliefs.csv truth.csv"));
    insta::assert_snapshot!(
        folder.prsl("calibrate model.prsl beliefs.csv truth.csv -o out.prsl --method sigmoid")
    );
    std::fs::write(folder.path("short.csv"), "alarm\nyes\nno\n").expect("a file");
    insta::assert_snapshot!(folder.prsl("calibrate model.prsl beliefs.csv short.csv -o out.prsl"));
    insta::assert_snapshot!(folder.prsl("calibrate model.prsl beliefs.csv truth.csv -o nowhere/out.prsl"));
    assert!(!folder.path("out.prsl").exists());
}

#[test]
fn platt_calibrators_are_finite_where_a_label_never_occurs() {
    let folder = folder();
    successful(folder.prsl("calibrate model.prsl beliefs.csv truth.csv --method platt -o out.prsl"));
    let model = model(&folder, "out.prsl");
    let fire = model.find_label("fire").expect("a label");
    assert!(
        matches!(model.calibrator(fire), Calibrator::Platt { slope, intercept } if slope.is_finite() && *intercept < 0.0)
    );
}
