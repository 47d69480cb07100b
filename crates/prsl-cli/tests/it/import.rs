//! `prsl import`.

use crate::runner::{Folder, WAREHOUSE};

fn folder() -> Folder {
    Folder::new(&[
        ("rules.txt", "0.8: overhead <- high, standing\ncentered, low <- normal\n<- walking, standing\n"),
        ("labels.xml", "<labels><label name=\"music\"><label name=\"jazz\"/></label></labels>"),
        ("rules.cnf", "p cnf 2 2\n1 -2 0\n-1 2 0\n"),
        ("tree.csv", "child,parent\nanimal,\ndog,animal\n"),
        ("german.csv", "child;parent\nanimal;\ndog;animal\n"),
        ("warehouse.prsl", WAREHOUSE),
    ])
}

#[test]
fn every_format_becomes_a_model_that_is_valid() {
    let folder = folder();
    for (format, file, text) in [
        ("mulan", "labels.xml", "label music\nlabel jazz\n\nrule 1: jazz -> music\n"),
        ("dimacs", "rules.cnf", "label x1\nlabel x2\n\nrule 1: x1 | !x2\nrule 1: !x1 | x2\n"),
        ("taxonomy", "tree.csv", "label animal\nlabel dog\n\nrule 1: dog -> animal\n"),
    ] {
        let run = folder.prsl(&format!("import {format} {file} -o {format}.prsl")).done();
        assert!(run.stdout.starts_with(&format!("wrote {format}.prsl: 2 labels, ")), "{run}");
        assert_eq!(folder.read(&format!("{format}.prsl")), text);
        folder.prsl(&format!("fmt --check {format}.prsl")).done();
        let run = folder.prsl(&format!("check {format}.prsl"));
        assert!(run.code < 2, "{run}");
    }
    let run = folder.prsl_with(&["import", "taxonomy", "german.csv", "--delimiter", ";", "-o", "-"]);
    assert_eq!(run.stdout, "label animal\nlabel dog\n\nrule 1: dog -> animal\n");
    folder.prsl("import dimacs rules.cnf -o cnf.json").done();
    folder.prsl("export cnf.json --to prsl -o cnf.prsl").done();
    assert_eq!(folder.read("cnf.prsl"), folder.read("dimacs.prsl"));
}

#[test]
fn rules_of_r_are_added_to_a_base() {
    let folder = folder();
    folder.prsl("import r rules.txt --base warehouse.prsl --probability 0.9 -o both.prsl").done();
    let text = folder.read("both.prsl");
    for rule in [
        "rule 0.8: high & standing -> overhead",
        "rule 0.9: normal -> centered | low",
        "rule 0.9: !(walking & standing)",
        "rule 1 gait_is_walking: walking <-> gait",
    ] {
        assert!(text.lines().any(|line| line == rule), "{rule} in {text}");
    }
    folder.prsl("import r rules.txt -o alone.prsl").done();
    assert!(folder.read("alone.prsl").starts_with("label overhead\nlabel high\nlabel standing\n"));
}

#[test]
fn wrong_uses() {
    let folder = folder();
    for (name, arguments) in [
        ("import_of_r_with_an_unknown_name", "import r rules.txt --base labels.prsl -o m.prsl"),
        ("import_of_a_wrong_file", "import dimacs rules.txt -o m.prsl"),
        ("import_with_semicolons", "import taxonomy german.csv -o m.prsl"),
        ("import_with_a_useless_option", "import dimacs rules.cnf --probability 0.5 -o m.prsl"),
        ("import_over_its_input", "import dimacs rules.cnf -o rules.cnf"),
    ] {
        std::fs::write(folder.path("labels.prsl"), "label activity: walking, normal, overhed\n")
            .expect("a file");
        let run = folder.prsl(arguments);
        assert!(run.code >= 2, "{run}");
        insta::assert_snapshot!(name, run);
    }
    assert!(!folder.files().contains(&"m.prsl".to_owned()));
}

#[test]
fn a_model_that_could_not_be_read_is_not_written() {
    let long = "n".repeat(3 << 20);
    let rows: String = (0..6).map(|child| format!("c{child},{long}\n")).collect();
    let folder = Folder::new(&[("long.csv", &format!("child,parent\n{rows}"))]);
    let run = folder.prsl("import taxonomy long.csv -o m.prsl");
    assert_eq!(run.code, 3);
    assert!(run.stderr.contains("more than the limit of 16777216"), "{}", run.stderr);
    assert_eq!(folder.files(), ["long.csv"]);
}
