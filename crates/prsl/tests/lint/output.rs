//! Notes do not count, and findings are written as JSON and point into JSON.

use std::collections::BTreeSet;

use prsl::lint::{self, Severity};
use prsl::{Document, Model};

use crate::{LABELS, codes_of, findings};

#[test]
fn notes_inform_without_counting() {
    let source = "label a\nlabel b: x, y prior 0.5, 0.5\nlabel c\nrule 0.9: a -> x\n";
    let findings = lint::check(&Document::parse(source).unwrap());
    assert!(findings.iter().all(|finding| finding.severity == Severity::Note));
    let rendered: Vec<_> = findings.iter().map(|finding| finding.render("model.prsl", source)).collect();
    insta::assert_snapshot!(rendered.join("\n"));
}

#[test]
fn findings_are_json_with_places() {
    let (_, findings) = findings("rule 1: alarm\nrule 1: !alarm\n");
    let json =
        serde_json::to_string_pretty(findings.iter().find(|finding| finding.counts()).unwrap()).unwrap();
    insta::assert_snapshot!(json);
}

#[test]
fn findings_point_into_json_too() {
    let json = Model::parse(&format!("{LABELS}rule 0.5: alarm\n")).unwrap().to_json();
    let document = Document::read(&json).unwrap();
    let finding = &lint::check(&document).into_iter().find(|finding| finding.counts()).unwrap();
    insta::assert_snapshot!(finding.render("model.json", &json));
}

#[test]
fn an_empty_model_is_worth_a_note() {
    let findings = lint::check(&Document::parse("").unwrap());
    assert_eq!(codes_of(&findings), BTreeSet::new());
    assert!(findings.iter().any(|finding| finding.code == "empty-model"), "{findings:?}");
}
