//! `prsl demo`.

use crate::runner::{Folder, WAREHOUSE};

#[test]
fn shows_what_rules_do() {
    let folder = Folder::new(&[]);
    insta::assert_snapshot!(folder.prsl("demo").done());
    assert_eq!(folder.read("demo/warehouse.prsl"), WAREHOUSE);
    insta::assert_snapshot!("demo_beliefs", folder.read("demo/beliefs.csv"));
    // The shown commands give the shown output.
    let run = folder.prsl("predict demo/warehouse.prsl demo/beliefs.csv");
    assert_eq!(run.stdout, folder.read("demo/predictions.csv"));
    assert!(run.stderr.starts_with("1 of 12 rows is impossible"), "{run}");
}

/// The files that it leaves.
const FILES: [&str; 10] = [
    "warehouse.prsl",
    "beliefs.csv",
    "predictions.csv",
    "shifts-beliefs.csv",
    "shifts-truth.csv",
    "tomorrow-beliefs.csv",
    "tomorrow-truth.csv",
    "tomorrow-without-camera.csv",
    "learned.prsl",
    "strain.prsl",
];

#[test]
fn output_is_reproducible() {
    let folder = Folder::new(&[]);
    let contents = |at: &str| FILES.map(|name| folder.read(&format!("{at}/{name}")));
    let shown = folder.prsl("demo").done().stdout;
    let before = contents("demo");
    assert_eq!(folder.prsl("demo").done().stdout, shown);
    assert_eq!(contents("demo"), before);
    let elsewhere = folder.prsl("demo some/where/else").done().stdout;
    assert_eq!(elsewhere.replace("some/where/else", "demo"), shown);
    assert_eq!(contents("some/where/else"), before);
}

/// The shown commands, without the name of the program. A backslash at the end of a line continues it.
fn commands(shown: &str) -> Vec<String> {
    let shown = shown.replace("\\\n", " ");
    let command = |line: &str| line.trim_start_matches(['$', ' ']).strip_prefix("prsl ").map(str::to_owned);
    shown.lines().filter_map(command).collect()
}

#[test]
fn every_command_that_it_shows_works() {
    let folder = Folder::new(&[]);
    let shown = folder.prsl("demo").done().stdout;
    let commands = commands(&shown);
    assert_eq!(commands.len(), 11, "{commands:?}");
    for command in commands {
        let run = folder.prsl(&command);
        // Only the impossible row causes a message.
        let is_fine = run.code == 0 || run.stderr.starts_with("1 of 12 rows is impossible");
        assert!(is_fine, "{run}");
    }
}

#[test]
fn the_command_for_learning_gives_the_learned_model() {
    let folder = Folder::new(&[]);
    let shown = folder.prsl("demo").done().stdout;
    let learn =
        commands(&shown).into_iter().find(|command| command.starts_with("learn ")).expect("it is shown");
    let typed = learn.replace("-o demo/learned.prsl", "-o typed.prsl");
    assert_ne!(typed, learn);
    // The expectations of the paper's example do not hold with calibrated sensors.
    let run = folder.prsl(&typed);
    assert_eq!(run.code, 0, "{run}");
    assert!(run.stderr.lines().all(|line| line.contains("in the learned model")), "{run}");
    assert_eq!(folder.read("typed.prsl"), folder.read("demo/learned.prsl"));
}

fn log_likelihood(folder: &Folder, model: &str) -> f64 {
    let tables = "demo/tomorrow-beliefs.csv demo/tomorrow-truth.csv";
    let run = folder.prsl(&format!("evaluate {model} {tables} --format json")).done();
    let scores: serde_json::Value = serde_json::from_str(&run.stdout).expect("an object");
    assert_eq!(scores["impossible"], 0, "{run}");
    scores["mean_joint_log_likelihood"].as_f64().expect("a number")
}

#[test]
fn learned_rules_improve_scores_on_test_rows() {
    let folder = Folder::new(&[]);
    let shown = folder.prsl("demo").done().stdout;
    let [rules, learned] =
        ["demo/warehouse.prsl", "demo/learned.prsl"].map(|model| log_likelihood(&folder, model));
    assert!(learned > rules + 0.2, "{learned} with what was learned, {rules} with the three rules");
    // The demo shows these numbers.
    for (line, value) in [("  with the three rules", rules), ("  with the learned rules", learned)] {
        let line = shown.lines().find(|shown| shown.starts_with(line)).expect("a line");
        assert!(line.ends_with(&format!("{value:.3}")), "{line}: {value}");
    }
    assert!(folder.read("demo/learned.prsl").contains("# learned: gain "));
}

#[test]
fn a_fifth_of_the_truths_to_learn_from_is_missing() {
    let folder = Folder::new(&[]);
    folder.prsl("demo").done();
    let share = |name: &str| {
        let table = folder.read(name);
        let cells: Vec<&str> = table.lines().skip(1).flat_map(|line| line.split(',')).collect();
        cells.iter().filter(|cell| cell.is_empty()).count() as f64 / cells.len() as f64
    };
    let missing = share("demo/shifts-truth.csv");
    assert!((0.19..0.21).contains(&missing), "{missing}");
    assert_eq!(share("demo/tomorrow-truth.csv"), 0.0);
}

#[test]
fn a_new_label_is_predicted_and_rules_compensate_a_missing_camera() {
    let folder = Folder::new(&[]);
    let shown = folder.prsl("demo").done().stdout;
    assert!(folder.read("demo/strain.prsl").contains("rule 0.95: strain <-> overhead & high | normal & low"));
    let share = |line: &str| -> f64 {
        let line = shown.lines().find(|shown| shown.starts_with(line)).expect("a line");
        let number = line.split(" %").next().and_then(|begin| begin.rsplit(' ').next());
        number.and_then(|number| number.parse().ok()).expect("a share")
    };
    assert!(share("The prediction agrees with") > share("always answering `no`") + 5.0, "{shown}");
    assert!(share("  no camera, learned rules") > share("  no camera, no rules") + 20.0, "{shown}");
    assert!(share("  camera, learned rules") > share("  no camera, learned rules"), "{shown}");
    // The columns of the camera are missing.
    assert!(folder.read("demo/tomorrow-without-camera.csv").starts_with("feet=gait,"));
}

#[test]
fn changed_files_are_not_overwritten() {
    for name in FILES {
        let folder = Folder::new(&[]);
        folder.prsl("demo").done();
        std::fs::write(folder.path("demo").join(name), "mine").expect("a file");
        let run = folder.prsl("demo");
        assert_eq!(run.code, 3, "{run}");
        let complaint = format!(
            "error: `demo/{name}` is there already and differs from the demo's; name another folder, as in `prsl demo demo2`\n"
        );
        assert_eq!(run.stderr, complaint);
        assert_eq!(folder.read(&format!("demo/{name}")), "mine");
    }
}

#[test]
fn the_suggested_rule_helps_in_the_stated_rows() {
    let folder = Folder::new(&[]);
    let shown = folder.prsl("demo").done().stdout;
    let rule = shown.lines().find(|line| line.starts_with("  rule 0.9 hands_up")).expect("a suggested rule");
    let rows = shown.lines().find(|line| line.ends_with("the hands are not high.")).expect("rows");
    let rows = rows.trim_start_matches("In rows ").split(" of ").next().expect("numbers");
    std::fs::write(folder.path("demo/warehouse.prsl"), format!("{WAREHOUSE}{rule}\n")).expect("written");
    // The rule is consistent with the others. Only the expectations from the paper no longer hold.
    let check = folder.prsl("check demo/warehouse.prsl");
    let findings = check.stdout.lines().filter(|line| line.contains('[') && !line.contains(": note["));
    assert!(findings.clone().count() > 0, "{check}");
    assert!(findings.clone().all(|line| line.contains(": error[failed-expectation]")), "{check}");
    let run = folder.prsl("predict demo/warehouse.prsl demo/beliefs.csv --query mpe");
    for row in rows.split(", ") {
        assert_ne!(run.cell(row.parse().expect("a number"), "activity"), "overhead", "{run}");
    }
}
