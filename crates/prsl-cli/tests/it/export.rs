//! `prsl export`.

use crate::runner::Folder;

#[test]
fn every_language() {
    let folder = Folder::warehouse();
    for (language, part) in [
        ("json", "\"format\": \"prsl\""),
        ("prsl", "rule 0.8 overhead_work: high & standing -> overhead"),
        ("uai", "MARKOV"),
        ("uai-names", "label\t0\t0\tactivity\twalking"),
        ("bif", "network"),
        ("problog", "evidence("),
        ("dot", "graph"),
    ] {
        let printed = folder.prsl(&format!("export warehouse.prsl --to {language}")).done().stdout;
        assert!(printed.contains(part), "{language}: {printed}");
        folder.prsl(&format!("export warehouse.prsl --to {language} -o model.{language}")).done();
        assert_eq!(folder.read(&format!("model.{language}")), printed);
    }
}

#[test]
fn json_and_text_turn_into_each_other() {
    let folder = Folder::warehouse();
    folder.prsl("export warehouse.prsl --to json -o one.json").done();
    folder.prsl("export one.json --to prsl -o two.prsl").done();
    folder.prsl("export two.prsl --to json -o three.json").done();
    assert_eq!(folder.read("one.json"), folder.read("three.json"));
}

#[test]
fn wrong_uses() {
    let folder = Folder::warehouse();
    insta::assert_snapshot!(folder.prsl("export warehouse.prsl"));
    insta::assert_snapshot!(folder.prsl("export warehouse.prsl --to jsn"));
    insta::assert_snapshot!(folder.prsl("export warehouse.prsl --to json -o nowhere/model.json"));
}
