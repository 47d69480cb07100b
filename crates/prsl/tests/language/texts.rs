//! Texts are read as they are meant, and printed or formatted texts read back unchanged.

use prsl::{Document, Model, Rule, RuleId};

use crate::{diagnostics, model};

/// Checks that both texts are the same formula, node for node.
#[track_caller]
fn same(a: &str, b: &str) {
    assert_eq!(model(&format!("rule 0.7: {a}")), model(&format!("rule 0.7: {b}")), "{a}  /  {b}");
}

#[test]
fn the_example_of_the_documentation_is_read_and_printed() {
    let text = "\
# Human activity recognition in a warehouse
label activity: walking, normal, overhead
label feet: gait, standing
label hands: high, centered, low
label alarm prior 0.1                         # binary
label posture: upright, bent prior 0.9, 0.1   # a prior

rule 0.8: high & standing -> overhead
rule 0.9 reach: normal -> hands in {centered, low}
rule 1: walking <-> gait
rule 0.95: at_most 1 of {alarm, posture=bent, overhead}
noisy_or 0.999 lifts: overhead 0.07, hands=high 0.2, feet=gait 0.9

typical 3.5: walking, gait, centered, upright # of such combinations there are more than the rules say

expect standing, high => overhead > 0.6       # a unit test of the rule base
";
    let model = Model::parse(text).unwrap();
    let printed = model.to_string();
    insta::assert_snapshot!(printed);
    assert_eq!(Model::parse(&printed).unwrap(), model);
}

#[test]
fn fixed_rules_are_printed_as_fixed() {
    let text = "\
label a
label \"fixed\"

fixed rule 0.8 firm: a -> \"fixed\"
rule 0.8: a
fixed noisy_or 0.9: a 0.1, \"fixed\"=no 0.2
";
    let model = Model::parse(text).unwrap();
    assert_eq!(model.to_string(), text);
    assert_eq!(Document::format(text).unwrap(), text);
    assert_eq!(
        Document::format("label a\n  fixed  rule 0.5 :\na").unwrap(),
        "label a\nfixed rule 0.5:\n    a\n"
    );
    let is_fixed = |model: &Model| model.rules().iter().map(Rule::is_fixed).collect::<Vec<_>>();
    assert_eq!(is_fixed(&model), [true, false, true]);
    // Rules stay fixed if labels are added or removed.
    let edited = model.edit().binary_label("new").rule("new", 0.6).build().unwrap();
    assert_eq!(is_fixed(&edited), [true, false, true, false]);
    assert_eq!(is_fixed(&model.without_calibrators()), [true, false, true]);
    let span = Document::parse(text).unwrap().rule_span(RuleId::new(0));
    assert_eq!(&text[span], "fixed rule 0.8 firm: a -> \"fixed\"");
}

#[test]
fn operators_bind_from_tight_to_loose() {
    same(
        "!walking & gait | high xor alarm -> bent <-> low",
        "((((((!walking) & gait) | high) xor alarm) -> bent) <-> low)",
    );
    same("walking -> gait -> high", "walking -> (gait -> high)");
    same("walking <- gait <- high", "(walking <- gait) <- high");
    same("not walking and gait or high", "((!walking) & gait) | high");
    same("¬walking ∧ gait ∨ high ⊕ alarm → bent", "!walking & gait | high xor alarm -> bent");
    same("walking ↔ gait", "walking <-> gait");
    same("walking ← gait", "walking <- gait");
    same("hands!=high", "!hands=high");
    same("hands in {high}", "hands=high");
    same("alarm", "alarm=yes");
    same("\"hands\"=\"high\"", "high");
    assert_ne!(model("rule 0.7: (walking & gait) & high"), model("rule 0.7: walking & gait & high"));
    assert_ne!(model("rule 0.7: walking <- gait"), model("rule 0.7: gait -> walking"));
}

#[test]
fn formulas_are_printed_with_the_parentheses_they_need() {
    let formulas = [
        "(walking & gait) & high",
        "walking & (gait | high)",
        "walking -> (gait -> high) -> low",
        "(walking -> gait) -> high",
        "(walking <- gait) -> high",
        "walking <- (gait <- high)",
        "(walking <-> gait) <-> high",
        "!(walking & gait)",
        "!!walking",
        "!(hands in {high, low})",
        "(walking xor gait) xor high",
        "at_least 2 of {walking & gait, high -> low, !alarm, true}",
        "exactly 0 of {false}",
        "at_most 0 of {}",
    ];
    for formula in formulas {
        let first = model(&format!("rule 1: {formula}"));
        let printed = first.rule_text(RuleId::new(0));
        assert_eq!(printed, formula);
        assert_eq!(Model::parse(&first.to_string()).unwrap(), first, "{printed}");
    }
}

#[test]
fn rules_may_run_over_several_lines() {
    let one = model("rule 0.5: walking & gait");
    let many = model("rule 0.5:\n    walking  # first\n  # second\n    & gait\n");
    assert_eq!(one, many);
}

#[test]
fn awkward_names_survive() {
    let text = r#"
label "amazed-suprised" from "the \"camera\""
label "label": "rule", "expect", "1st", "a=b", "\u{1F600}", "tab\there" latent
label größe: klein, groß
rule 1e-3 "in": "amazed-suprised" & "label"="rule" -> groß
noisy_or 1: "1st" 0.5, "a=b" 1e-300, "amazed-suprised"=no 0
expect "amazed-suprised" ~ (0.25) => "label" in {"1st", "a=b"} <= 0.5
expect => mpe klein, "tab\there"
"#;
    let model = Model::parse(text).unwrap();
    let printed = model.to_string();
    assert_eq!(Model::parse(&printed).unwrap(), model, "{printed}");
    assert_eq!(Model::parse(&Document::format(text).unwrap()).unwrap(), model);
}

#[test]
fn formatting_keeps_comments_and_is_idempotent() {
    let text = "\u{feff}# top\n\n\n   label a   :x,y  # one\nlabel b prior .5 # two, aligned\nlabel longer_name\r\n\n#about the rule\nrule 0.5 :\n a=x&b  #inside\n# between\n  |  longer_name\n\nexpect  a~( 0.5,0.5 )=>b=0.5+-1e-3\n#end\n\n";
    let once = Document::format(text).unwrap();
    insta::assert_snapshot!(once);
    assert_eq!(Document::format(&once).unwrap(), once);
    assert_eq!(Model::parse(&once).unwrap(), Model::parse(text).unwrap());
}

#[test]
fn expectations_accept_formulas() {
    let text = "\
expect alarm => (alarm & bent) > 0.5
expect => alarm & bent | !gait <= 0.25
expect gait => walking <-> gait = 0.9 +- 0.1
expect => !alarm > 0.5
expect => hands!=high > 0.5
expect => (alarm) < 0.5
";
    let model = model(text);
    let printed = model.to_string();
    let expectations: Vec<&str> = printed.lines().filter(|line| line.starts_with("expect")).collect();
    insta::assert_snapshot!(expectations.join("\n"));
    assert_eq!(Model::parse(&printed).unwrap(), model);
    assert_eq!(Model::from_json(&model.to_json()).unwrap(), model);
    assert_eq!(model.edit().build().unwrap(), model);
}

#[test]
fn a_continued_line_may_begin_with_a_name_like_a_keyword() {
    let labels = "label rule3\nlabel labels\nlabel a\n";
    let rules = [
        "rule 0.9: a and\n  rule3=yes",
        "rule 0.9: a or not\n  rule3",
        "rule 0.9: a &\n  labels=no",
        "rule 0.9: a and\n  labels -> a",
        "expect a => mpe rule3, \n  labels",
    ];
    for rule in rules {
        Model::parse(&format!("{labels}{rule}\n")).unwrap_or_else(|error| panic!("{rule}: {error}"));
    }
    let misspelt = diagnostics("label a\nlabel b\nrule 0.9: a\nrul 0.8: b\nlable c\n");
    assert_eq!(misspelt.list().len(), 2, "{misspelt}");
}
