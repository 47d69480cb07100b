//! `prsl demo`.

use crate::runner::{Folder, WAREHOUSE};

#[test]
fn shows_what_rules_do() {
    let folder = Folder::new(&[]);
    insta::assert_snapshot!(folder.prsl("demo").done());
    assert_eq!(folder.read("demo/warehouse.prsl"), WAREHOUSE);
    insta::assert_snapshot!("demo_beliefs", folder.read("demo/beliefs.csv"));
    // The commands that it shows do what it shows.
    let run = folder.prsl("predict demo/warehouse.prsl demo/beliefs.csv");
    assert_eq!(run.stdout, folder.read("demo/predictions.csv"));
    assert!(run.stderr.starts_with("1 of 12 rows is impossible"), "{run}");
    // A second time, and in another folder.
    folder.prsl("demo").done();
    folder.prsl("demo some/where/else").done();
}

#[test]
fn does_not_write_over_changed_files() {
    for name in ["warehouse.prsl", "beliefs.csv", "predictions.csv"] {
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
fn the_suggested_rule_helps_where_it_is_said_to() {
    let folder = Folder::new(&[]);
    let shown = folder.prsl("demo").done().stdout;
    let rule = shown.lines().find(|line| line.starts_with("  rule 0.9 hands_up")).expect("a suggested rule");
    let rows = shown.lines().find(|line| line.ends_with("nobody has written")).expect("rows");
    let rows = rows.trim_start_matches("Rows ").split(" say ").next().expect("numbers");
    std::fs::write(folder.path("demo/warehouse.prsl"), format!("{WAREHOUSE}{rule}\n")).expect("written");
    // It goes with the other rules; only the answers of the paper are not the same any more.
    let check = folder.prsl("check demo/warehouse.prsl");
    let findings = check.stdout.lines().filter(|line| line.contains('[') && !line.starts_with("note["));
    assert!(findings.clone().count() > 0, "{check}");
    assert!(findings.clone().all(|line| line.starts_with("error[failed-expectation]")), "{check}");
    let run = folder.prsl("predict demo/warehouse.prsl demo/beliefs.csv --query mpe");
    for row in rows.split(", ") {
        assert_ne!(run.cell(row.parse().expect("a number"), "activity"), "overhead", "{run}");
    }
}
