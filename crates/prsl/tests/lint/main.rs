//! Findings of the checks and their wording. Brute force agrees with all of them.

mod brute_force;
mod expectations;
mod large;
#[path = "../models/mod.rs"]
mod models;
mod output;
mod rules;

use std::collections::BTreeSet;

use prsl::Document;
use prsl::lint::{self, Finding};

const LABELS: &str = "\
label activity: walking, normal, overhead prior 0.2, 0.5, 0.3
label feet: gait, standing prior 0.5, 0.5
label hands: high, centered, low prior 0.2, 0.4, 0.4
label alarm prior 0.1
";

fn findings(rules: &str) -> (String, Vec<Finding>) {
    let source = format!("{LABELS}{rules}");
    let document = Document::parse(&source).unwrap_or_else(|error| panic!("{error}"));
    (source.clone(), lint::check(&document))
}

/// All findings that count, as people see them.
fn rendered(rules: &str) -> String {
    let (source, findings) = findings(rules);
    let rendered: Vec<_> = findings
        .iter()
        .filter(|finding| finding.counts())
        .map(|finding| finding.render("model.prsl", &source))
        .collect();
    rendered.join("\n")
}

fn codes_of(findings: &[Finding]) -> BTreeSet<&'static str> {
    findings.iter().filter(|finding| finding.counts()).map(|finding| finding.code).collect()
}
