//! `prsl fmt`.

use crate::runner::Folder;

const UNTIDY: &str = "label a\nlabel b   # why\n\n\n\nrule 0.9 :a   ->b";
const TIDY: &str = "label a\nlabel b  # why\n\nrule 0.9: a -> b\n";

#[test]
fn prints_by_default() {
    let folder = Folder::new(&[("m.prsl", UNTIDY)]);
    assert_eq!(folder.prsl("fmt m.prsl").done().stdout, TIDY);
    assert_eq!(folder.read("m.prsl"), UNTIDY);
    assert_eq!(folder.prsl_with_input("fmt -", UNTIDY.as_bytes()).done().stdout, TIDY);
}

#[test]
fn writes_when_asked() {
    let folder = Folder::new(&[("m.prsl", UNTIDY)]);
    assert_eq!(folder.prsl("fmt --write m.prsl").done().stdout, "");
    assert_eq!(folder.read("m.prsl"), TIDY);
    assert_eq!(folder.prsl("fmt --write m.prsl").done().stdout, "");
    assert_eq!(folder.files(), ["m.prsl"]);
}

#[test]
fn checks_when_asked() {
    let folder = Folder::new(&[("m.prsl", UNTIDY), ("tidy.prsl", TIDY)]);
    insta::assert_snapshot!(folder.prsl("fmt --check m.prsl"));
    assert_eq!(folder.prsl("fmt --check tidy.prsl").done().stdout, "");
}

#[test]
fn wrong_uses() {
    let folder = Folder::new(&[("m.prsl", UNTIDY), ("m.json", "{}"), ("wrong.prsl", "rule 2: a -> b\n")]);
    insta::assert_snapshot!(folder.prsl("fmt --check --write m.prsl"));
    insta::assert_snapshot!(folder.prsl("fmt --write -"));
    insta::assert_snapshot!(folder.prsl("fmt m.json"));
    insta::assert_snapshot!(folder.prsl("fmt --write wrong.prsl"));
    assert_eq!(folder.read("wrong.prsl"), "rule 2: a -> b\n");
}
