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
fn the_suggested_rule_is_a_rule() {
    let model = format!("{WAREHOUSE}rule 0.95 relaxed: low -> !overhead\n");
    prsl::Model::parse(&model).expect("a valid model");
}
