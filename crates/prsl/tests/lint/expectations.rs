//! Findings about expectations that the model does not meet.

use prsl::{Document, lint};

use crate::rendered;

#[test]
fn failed_expectations_tell_what_was_found() {
    insta::assert_snapshot!(rendered(
        "\
rule 0.8: high & standing -> overhead
rule 0.9: normal -> centered | low
rule 1: walking <-> gait
expect standing, high => overhead > 0.6
expect standing, high => overhead < 0.6
expect activity ~ (0.1, 0.4, 0.5), feet ~ (0.05, 0.95), hands ~ (0.5, 0.3, 0.2) => overhead = 0.7034 +- 0.00005
expect activity ~ (0.1, 0.4, 0.5), feet ~ (0.05, 0.95), hands ~ (0.5, 0.3, 0.2) => overhead = 0.7034 +- 0.000001
expect activity ~ (0.1, 0.4, 0.5), feet ~ (0.05, 0.95), hands ~ (0.5, 0.3, 0.2) => mpe overhead, standing
expect => mpe overhead, low, alarm
expect => hands in {centered, low} <= 0.5
expect walking, standing => alarm >= 0
expect walking, standing => mpe alarm=no
"
    ));
}

#[test]
fn any_of_several_equally_probable_explanations_may_be_expected() {
    let text = "label a\nlabel b\nrule 0.9: a <-> b\nexpect => mpe a, b\nexpect => mpe a=no\nexpect => mpe a, b=no\n";
    let findings = lint::check(&Document::parse(text).unwrap());
    let counting: Vec<_> = findings.iter().filter(|finding| finding.counts()).collect();
    assert_eq!(counting.len(), 1);
    assert_eq!(counting[0].line, 6);
}

#[test]
fn formulas_are_expected_like_categories() {
    insta::assert_snapshot!(rendered(
        "\
rule 0.8: high & standing -> overhead
expect standing => (high & overhead) > 0.5
expect standing => high & overhead < 0.5
expect => walking | !alarm = 0.92 +- 0.001
expect walking => overhead & alarm <= 0
expect gait => !gait | high -> high >= 0.99
"
    ));
}
