//! `prsl check`.

use prsl_testkit::limits;

use crate::runner::{Folder, WAREHOUSE};

const QUESTIONABLE: &str = "\
label weather: sun, rain
label ground: dry, wet
rule 0.9 wets: rain -> wet
rule 0.8: dry -> sun
rule 0.5: rain
expect rain => wet > 0.99
";

#[test]
fn a_sound_model() {
    let run = Folder::warehouse().prsl("check warehouse.prsl").done();
    assert!(run.stdout.lines().last().expect("a closing line").starts_with("no findings"), "{run}");
}

#[test]
fn findings() {
    let folder = Folder::new(&[("weather.prsl", QUESTIONABLE)]);
    insta::assert_snapshot!(folder.prsl("check weather.prsl"));
    insta::assert_snapshot!(folder.prsl("check weather.prsl --format json"));
    insta::assert_snapshot!(folder.prsl("check weather.prsl --verbose"));
}

#[test]
fn findings_of_the_same_kind_about_the_same_label_share_a_line() {
    let labels: String = ["a", "b", "c", "d", "e"].iter().map(|label| format!("label {label}\n")).collect();
    let rules = "rule 1: a -> b\nrule 1: b -> c\nrule 1: c -> d\nrule 1: a -> c\nrule 1: a -> d\nrule 1: a -> c | e\n\
                 rule 1: b -> d\nrule 1: b -> d\n";
    let folder = Folder::new(&[("chain.prsl", &(labels + rules))]);
    insta::assert_snapshot!(folder.prsl("check chain.prsl"));
    let json: serde_json::Value =
        serde_json::from_str(&folder.prsl("check chain.prsl --format json").stdout).expect("JSON");
    assert_eq!(json["findings"].as_array().expect("a list").len(), 5);
}

#[test]
fn typical_combinations_are_counted() {
    let text = "label anger prior 0.5\nlabel sad prior 0.5\nrule 0.9: anger -> sad\ntypical 3: anger, sad\ntypical 2: none\n";
    let run = Folder::new(&[("mood.prsl", text)]).prsl("check mood.prsl").done();
    assert!(run.stdout.contains("2 combinations are typical, the largest weight is 3"), "{run}");
}

#[test]
fn programs_get_syntax_errors_as_findings() {
    let run =
        Folder::new(&[("wrong.prsl", "label a\nrule 2: a -> b\n")]).prsl("check wrong.prsl --format json");
    assert_eq!((run.code, run.stderr.as_str()), (3, ""), "{run}");
    insta::assert_snapshot!(run);
}

#[test]
fn from_standard_input() {
    let run = Folder::new(&[]).prsl_with_input("check -", QUESTIONABLE.as_bytes());
    assert_eq!(run.code, 1);
    assert!(run.stdout.contains("standard input:4: warning[duplicate-rule]: "), "{run}");
}

#[test]
fn colors_only_where_they_are_wanted() {
    let folder = Folder::new(&[("weather.prsl", QUESTIONABLE)]);
    let colored = |variable: &str| {
        let output = folder.command("check weather.prsl").env(variable, "1").output().expect("it runs");
        output.stdout.contains(&0x1b)
    };
    assert!(!colored("NO_COLOR"));
    assert!(!colored("NO_SUCH_VARIABLE"));
    assert!(colored("CLICOLOR_FORCE"));
}

#[test]
fn json_models_are_checked_like_text() {
    let folder = Folder::new(&[("warehouse.prsl", WAREHOUSE)]);
    folder.prsl("export warehouse.prsl --to json -o warehouse.json").done();
    let run = folder.prsl("check warehouse.json").done();
    assert!(run.stdout.contains("no findings"), "{run}");
}

#[test]
fn an_undecided_question_is_a_finding() {
    let hard = limits::clauses(300, 1278, "1");
    let run = Folder::new(&[("hard.prsl", &hard)]).prsl("check hard.prsl");
    assert_eq!(run.code, 1, "{run}");
    let warning = "warning[not-decided]: whether the 1278 rules of probability 0 or 1";
    assert!(run.stdout.contains(warning), "{run}");
}

#[test]
fn redundancy_that_is_not_decided_is_a_finding() {
    let run = Folder::new(&[("open.prsl", &limits::redundant_pigeonhole(12))]).prsl("check open.prsl");
    assert_eq!(run.code, 1, "{run}");
    let warning =
        "whether 1 of 739 rules repeat others, follow from them or are excluded by them was not decided in";
    assert!(run.stdout.contains(&format!("warning[not-decided]: {warning}")), "{run}");
    assert!(run.stdout.contains("1 finding"), "{run}");
}

#[test]
fn inference_decides_where_the_solver_does_not() {
    let run = Folder::new(&[("pigeons.prsl", &limits::pigeonhole(12))]).prsl("check pigeons.prsl");
    assert_eq!(run.code, 1, "{run}");
    assert!(run.stdout.contains("error[contradiction]: 738 rules contradict each other"), "{run}");
}

#[test]
fn an_empty_model_is_no_finding() {
    let run = Folder::new(&[("empty.prsl", "# nothing yet\n")]).prsl("check empty.prsl").done();
    assert!(run.stdout.contains("note[empty-model]: the model has no labels"), "{run}");
}

#[test]
fn more_memory_is_recommended_only_if_it_helps() {
    let labels: Vec<String> = (0..30).map(|label| format!("l{label}")).collect();
    let declared: String = labels.iter().map(|label| format!("label {label}\n")).collect();
    let pairs = labels.iter().enumerate().flat_map(|(index, a)| labels[..index].iter().map(move |b| (a, b)));
    let dense: String = pairs.map(|(a, b)| format!("rule 0.9: {a} xor {b}\n")).collect();
    let header = labels.join(",");
    let row = vec!["0.5"; labels.len()].join(",");
    let folder = Folder::new(&[
        ("dense.prsl", &format!("{declared}{dense}")),
        ("b.csv", &format!("{header}\n{row}\n")),
    ]);
    let run = folder.prsl("predict dense.prsl b.csv --engine enumeration");
    assert_eq!(run.code, 3, "{run}");
    assert!(!run.stderr.contains("--memory"), "{run}");
    let run = folder.prsl("predict dense.prsl b.csv --engine exact --memory 1MiB");
    assert!(run.stderr.contains("`--memory 8GiB`, for example, raises the limit"), "{run}");
}

#[test]
fn implied_probabilities_are_shown_if_asked_for() {
    let model = "label a prior 0.02\nlabel b prior 0.5\nrule 0.97: b -> a\nnoisy_or 0.8: a 0.5, b 0.1\n";
    let folder = Folder::new(&[("model.prsl", model)]);
    insta::assert_snapshot!(folder.prsl("check --implied model.prsl").done());
    let run = folder.prsl("check --implied --format json model.prsl").done();
    let report: serde_json::Value = serde_json::from_str(&run.stdout).expect("one object");
    assert_eq!(report["implied"][0]["condition"], "b");
    assert!(
        (report["implied"][0]["with"].as_f64().expect("a number") - 0.397_540_98).abs() < 1e-6,
        "{report}"
    );
    assert!(!folder.prsl("check model.prsl").done().stdout.contains("by itself"));
}

#[test]
fn a_failed_expectation_says_why_in_two_lines() {
    let text = "label a prior 0.3\nlabel b prior 0.2\nrule 0.9 implies: a -> b\nexpect a => b < 0.5\n";
    let folder = Folder::new(&[("m.prsl", text)]);
    let run = folder.prsl("check m.prsl");
    assert_eq!(run.code, 1, "{run}");
    insta::assert_snapshot!(run);
    let run = folder.prsl("check m.prsl --format json");
    let report: serde_json::Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!(report["findings"][0]["why"].as_array().map(Vec::len), Some(2));
}
