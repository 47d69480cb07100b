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

#[test]
fn failed_expectations_tell_why() {
    let text = "\
label a prior 0.3
label b prior 0.2
label c prior 0.6
rule 0.9: a -> b
rule 0.8 never: !(b & c)
rule 1 hard: c -> a
expect a => b < 0.5
expect => b & c > 0.4
expect a => mpe c
expect b, c => mpe a=no
expect b, c, !a => b > 0.5
expect => a > 0.99
";
    let document = Document::parse(text).unwrap();
    let failed: Vec<String> = lint::check(&document)
        .iter()
        .filter(|finding| finding.code == "failed-expectation")
        .map(|finding| finding.render("why.prsl", text))
        .collect();
    insta::assert_snapshot!(failed.join("\n"));
}

/// The reasons agree with models from which the rules are taken away.
#[test]
fn reasons_are_differences_of_models() {
    let labels = "label a prior 0.3\nlabel b prior 0.2\nlabel c prior 0.6\n";
    let [first, second] = ["rule 0.9: a -> b\n", "rule 0.8: !(b & c)\n"];
    let expect = "expect a, c ~ (0.7) => b > 0.999\n";
    let of = |rules: &str| {
        let model = prsl::Model::parse(&format!("{labels}{rules}")).unwrap();
        let posterior = model.infer(&model.parse_evidence("a, c ~ (0.7)").unwrap()).unwrap();
        format!("{:.3}", posterior.marginal(model.find_label("b").unwrap())[0])
    };
    let findings = lint::check(&Document::parse(&format!("{labels}{first}{second}{expect}")).unwrap());
    let why = &findings.iter().find(|finding| finding.code == "failed-expectation").unwrap().why;
    let [neither, only_second, only_first, both] = ["", second, first, &format!("{first}{second}")].map(of);
    assert_eq!(why[0], format!("the rules move `b` from {neither} to {both}"));
    assert!(why[1].contains(&format!("without `a -> b` it would be {only_second}")), "{why:?}");
    assert!(why[1].contains(&format!("without `!(b & c)` it would be {only_first}")), "{why:?}");
}
