//! Findings about rules and typical combinations: contradictions, repetitions, consequences and rules that say nothing.

use prsl::{Document, Model, lint};

use crate::{LABELS, findings, rendered};

fn codes(rules: &str) -> Vec<&'static str> {
    findings(rules).1.iter().filter(|finding| finding.counts()).map(|finding| finding.code).collect()
}

#[test]
fn a_good_model_has_no_findings() {
    assert_eq!(
        codes(
            "rule 0.8: high & standing -> overhead\nrule 0.9: normal -> centered | low\nrule 1: walking <-> gait\n\
             noisy_or 0.999: overhead 0.07, high 0.2\n"
        ),
        [""; 0]
    );
}

#[test]
fn combinations_that_never_count_are_found() {
    let text = "\
rule 1 panic: alarm -> walking
typical 3: normal, gait, high, alarm
typical 0: walking, gait, low
typical 2.5: overhead, standing, high
";
    let notes = findings(text).1.into_iter().filter(|finding| finding.code == "typical-combinations");
    assert_eq!(
        notes.map(|note| note.message).collect::<Vec<_>>(),
        ["3 combinations are typical, the largest weight is 3"]
    );
    insta::assert_snapshot!(rendered(text));
}

#[test]
fn combinations_that_speak_against_a_label_are_found() {
    let new = "label hurried latent\nrule 0.9: hurried -> walking\n";
    let notes = |typical: &str| {
        let (_, findings) = findings(&format!("{new}{typical}"));
        findings
            .into_iter()
            .filter(|finding| finding.code == "never-typical")
            .map(|finding| finding.message)
            .collect::<Vec<_>>()
    };
    assert_eq!(notes(""), [""; 0]);
    assert_eq!(notes("typical 3: walking, gait, low, hurried\n"), [""; 0]);
    let found = notes("typical 3: walking, gait, low\n");
    assert_eq!(
        found,
        ["no typical combination names label `hurried`, so that all of them speak for its being `no`"]
    );
}

#[test]
fn contradictions_name_a_minimal_set() {
    insta::assert_snapshot!(rendered(
        "\
rule 1: alarm -> high
rule 1: walking -> gait
rule 1 up: alarm
rule 0.7: low
rule 0: high
noisy_or 1: walking 0.2, normal 0.5
rule 1: overhead
"
    ));
}

#[test]
fn rules_that_say_nothing_are_found() {
    insta::assert_snapshot!(rendered(
        "\
rule 0.9: walking | normal | overhead
rule 0.9 both: high & low
rule 1: walking & normal
rule 0: alarm | !alarm
rule 0.5: alarm
noisy_or 0.9: walking 1, gait 1
noisy_or 0.8: gait 0, standing 0
"
    ));
}

#[test]
fn repetitions_are_found() {
    insta::assert_snapshot!(rendered(
        "\
rule 0.8: high & standing -> overhead
rule 0.9 again: !(high & standing & !overhead)
rule 1: walking -> gait
rule 1: walking -> gait
noisy_or 0.99: overhead 0.1, high 0.2, gait 1
noisy_or 0.9: high 0.2, overhead 0.1
rule 0.7: alarm | high
noisy_or 0.7: alarm 0, high 0
"
    ));
}

#[test]
fn consequences_of_hard_rules_are_found() {
    insta::assert_snapshot!(rendered(
        "\
rule 1: walking -> gait
rule 1: gait -> high
rule 1: walking -> high
rule 0.8: walking -> hands in {high, low}
rule 0.9: walking & low
rule 0: walking & standing
rule 1: !normal
rule 1: alarm
"
    ));
}

#[test]
fn improbable_rules_are_shown_the_other_way_round() {
    insta::assert_snapshot!(rendered(
        "\
rule 0.2: high & standing -> overhead
rule 0.1: !alarm
rule 0.3: !(low | centered)
rule 0: walking
noisy_or 0.4: overhead 0.1, high 0.2
"
    ));
}

#[test]
fn categories_of_one_label_that_are_to_hold_together_are_found() {
    insta::assert_snapshot!(rendered(
        "\
rule 0.9: alarm -> walking & overhead
rule 0.9: alarm -> hands!=high & hands in {high, low} & hands!=low
rule 0.9: alarm -> hands!=high & hands in {high, low}
rule 0.9: alarm & standing -> !(activity in {walking, normal} & overhead & low)
"
    ));
}

#[test]
fn opposite_rules_are_found() {
    insta::assert_snapshot!(rendered(
        "\
rule 0.9: alarm
rule 0.9: !alarm
rule 0.8: high -> standing
rule 0.7: high & gait
rule 1: walking -> standing
rule 0.7: walking & gait
"
    ));
}

#[test]
fn chained_implications_are_told_how_they_are_read() {
    let notes = |rules: &str| {
        let (source, findings) = findings(rules);
        let chained = findings.iter().filter(|finding| finding.code == "chained-implication");
        chained.map(|finding| finding.render("model.prsl", &source)).collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!(notes(
        "\
rule 0.9: alarm -> high -> standing
rule 0.9: alarm <- high & low <- standing | gait
rule 0.9: alarm -> (high -> standing)
rule 0.9: alarm -> high <-> standing -> overhead
rule 0.9: low & (alarm -> high -> standing)
rule 0.9: at_least 1 of {alarm -> high, high -> alarm}
"
    ));
    let json = Model::parse(&format!("{LABELS}rule 0.9: alarm -> high -> standing")).unwrap().to_json();
    let findings = lint::check_rules(&Document::read(&json).unwrap());
    assert!(findings.iter().any(|finding| finding.code == "chained-implication"));
}
