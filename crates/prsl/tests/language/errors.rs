//! Refused texts: all errors are reported at once, with short messages.

use prsl::{Document, Error, Evidence, Model, RuleId};

use crate::{LABELS, diagnostics};

#[test]
fn only_rules_can_be_fixed() {
    let text = "\
label a
fixd rule 0.8: a
fixed rul 0.8: a
fixed typical 2: a
fixed 0.8: a
fixed fixed rule 0.8: a
fixed
rule 0.8: a
rule fixed 0.8: a
fixed label b
";
    insta::assert_snapshot!(diagnostics(text).render("fixed.prsl"));
}

#[test]
fn a_misplaced_from_was_both_expected_and_found() {
    let text =
        "label a\nlabel b prior 0.1 from a\nlabel c latent from a\nlabel d from a from b\nlabel e frm a\n";
    insta::assert_snapshot!(diagnostics(text).render("order.prsl"));
}

#[test]
fn ambiguous_bare_names_are_refused() {
    let labels = "label a: x, y\nlabel b: x, z\nlabel y\nlabel c: p, q\n";
    let text = format!("{labels}rule 1: x\nrule 1: y\nrule 1: c\nrule 1: z\n");
    insta::assert_snapshot!(diagnostics(&text).render("ambiguous.prsl"));
}

#[test]
fn all_errors_of_a_file_are_reported_at_once() {
    let text = "\
label activity: walking, normal, overhead
label feet: gait, standing
label feet: left, right
label hands: high, centered, low prior 0.5, 0.5
label only: one
label twice: a, a
label bad prior 1.5
rul 0.8: high
rule 0.8: high & standing -> overhed & hgih
rule 1.8: high
rule: high
rule 0.8 high
rule 0.8 x: high &
rule 0.8 x: high -> low <- high
rule 0.8 y: walking
rule 0.8 y: walking <-> gait <-> high
rule 0.8: (high & low
rule 0.8: at_least 3 of {high, low}
rule 0.8: at_least 1.5 of {high}
rule 0.8: hands in {high, high}
rule 0.8: hands=hgih | feets=gait
rule 0.8: high ? low
rule 0.8: 3rd
rule 0.8: \"open
rule 0.8: 1e999
noisy_or 0.9: overhead
noisy_or 0.9: overhead 0.07, activity=overhead 0.1
noisy_or 0.9: overhead 1.07
expect standing => overhead
expect standing => overhead = 0.7
expect standing, gait => overhead > 0.7
expect hands != high => overhead > 0.7
expect feet ~ (0.5, 0.6) => overhead > 0.7
expect feet ~ (0.5, 0.3, 0.2) => overhead > 0.7
expect standing overhead > 0.6
";
    insta::assert_snapshot!(diagnostics(text).render("wrong.prsl"));
}

#[test]
fn notation_of_other_languages_gets_advice() {
    let text = "\
label a
label b
label c prior 10%
label d: x, y prior 0,7, 0,3
rule 90%: a -> b
rule 0.07%: a -> b
rule 0,7: a -> b
rule 0,07 named: a -> b
rule 0.9: a => b
rule 0.9: if a then b
rule 0.9: if a and b then c
rule 0.9: b <- a, c
rule 0.9: a, b <- c
noisy_or 0.9: a 0,07, b 0,2
typical 3,5: a, b
expect a => b > 60%
expect a => b > 0,6
expect a => b => c > 0.5
";
    insta::assert_snapshot!(diagnostics(text).render("stumbled.prsl"));
    // These are names, if a label has them.
    assert!(Model::parse("label if\nlabel then\nrule 0.9: if -> then\n").is_ok());
}

#[test]
fn depth_is_limited_without_recursion() {
    let deep = |n: usize| format!("{LABELS}rule 1: {}alarm{}", "(".repeat(n), ")".repeat(n));
    assert!(Model::parse(&deep(256)).is_ok());
    assert_eq!(diagnostics(&deep(257)).list().len(), 1);
    for n in [300, 200_000] {
        let negations = format!("{LABELS}rule 1: {}alarm", "!".repeat(n));
        assert!(diagnostics(&negations).list()[0].message.contains("256"));
        let arrows = format!("{LABELS}rule 1: {}alarm", "alarm -> ".repeat(n));
        assert!(diagnostics(&arrows).list()[0].message.contains("256"));
        let open = format!("{LABELS}rule 1: {}", "at_most 1 of {".repeat(n));
        assert!(diagnostics(&open).list()[0].message.contains("256"));
    }
    // A wide formula is not deep.
    let wide = format!("{LABELS}rule 1: {}alarm", "alarm & ".repeat(100_000));
    assert!(Model::parse(&wide).is_ok());
}

#[test]
fn oversized_texts_are_refused() {
    let text = " ".repeat(Document::MAX_BYTES + 1);
    assert!(matches!(Model::parse(&text), Err(Error::TooLarge { .. })));
}

#[test]
fn messages_quote_at_most_a_line_of_a_rule() {
    let many: Vec<String> = (0..5000).map(|label| format!("l{label}")).collect();
    let labels = many.iter().fold(Model::builder(), |builder, name| builder.binary_label(name));
    let rule = many.join(" & ");
    let misspelt = format!("{rule} & lx");
    let wrong = [
        labels.clone().rule(rule.clone(), 2.0).build().unwrap_err(),
        labels.clone().rule(misspelt.clone(), 0.9).build().unwrap_err(),
        labels
            .clone()
            .rule(rule.clone(), 0.9)
            .build()
            .unwrap()
            .edit()
            .remove_label("l4")
            .build()
            .unwrap_err(),
    ];
    for error in wrong {
        assert!(error.to_string().len() < 400, "{error}");
    }
    let model = labels.clone().rule(rule.clone(), 0.9).build().unwrap();
    assert_eq!(model.rule_name(RuleId::new(0)).chars().count(), 80);
    assert_eq!(model.rule_text(RuleId::new(0)), rule);
    let text =
        format!("{}rule 0.9: {misspelt}\n", many.iter().map(|l| format!("label {l}\n")).collect::<String>());
    let shown = diagnostics(&text).render("model.prsl");
    assert!(shown.lines().all(|line| line.len() < 200), "{shown}");
    let text = text.replace(" & lx", "").replace("rule 0.9", "rule 0.5");
    let document = Document::parse(&text).unwrap();
    for finding in prsl::lint::check_rules(&document) {
        let shown = finding.render("model.prsl", &text);
        assert!(shown.lines().all(|line| line.len() < 250), "{shown}");
    }
}

#[test]
fn long_names_were_quoted_whole_in_messages() {
    let (long, other) = ("l".repeat(39_000), format!("{}x", "l".repeat(39_000)));
    let builder = || Model::builder().label(&long, ["a", "b"]);
    let model = builder().build().unwrap();
    let errors = [
        builder().label(&long, ["a", "b"]).build().unwrap_err(),
        Model::builder().label(&long, ["a"]).build().unwrap_err(),
        Model::builder().label("l", [&long, &long]).build().unwrap_err(),
        builder().rule(&other, 0.9).build().unwrap_err(),
        model.find_label(&other).unwrap_err(),
        model.infer(&Evidence::new().belief(&long, [0.5, 0.6])).unwrap_err(),
        model.infer(&Evidence::new().belief(&other, [0.5, 0.5])).unwrap_err(),
        model.infer(&Evidence::new().observe(&long, &other)).unwrap_err(),
        Model::parse(&format!("label {long}\nlabel {long}\n")).unwrap_err(),
        Model::parse(&format!("label {long}\nrule 0.9: {other}\n")).unwrap_err(),
        Model::parse(&format!("label l: {long}, {long}\n")).unwrap_err(),
        Model::parse(&format!("label l: a, b\nrule 0.9: l={long}\n")).unwrap_err(),
    ];
    for error in errors {
        let message = error.to_string();
        assert!(message.len() < 300, "{message}");
        assert!(message.contains("lll ... lll"), "{message}");
    }
    let document = Document::parse(&format!("label {long}\nlabel b\nrule 1: {long}\nrule 0.9: b\n")).unwrap();
    for finding in prsl::lint::check(&document) {
        assert!(finding.message.len() < 500, "{}", finding.message);
    }
}
