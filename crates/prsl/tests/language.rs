//! The rule language: accepted and refused texts, error messages, and printed models that read back unchanged.

use prsl::lint::Diagnostics;
use prsl::model::{Atom, Inhibition, LearnedNote};
use prsl::{Body, Document, Error, Evidence, Formula, Model, NoisyOr, Rule, RuleId};

const LABELS: &str = "\
label activity: walking, normal, overhead
label feet: gait, standing
label hands: high, centered, low
label alarm prior 0.1
label posture: upright, bent prior 0.9, 0.1
";

fn model(rules: &str) -> Model {
    Model::parse(&format!("{LABELS}{rules}")).unwrap_or_else(|error| panic!("{rules}: {error}"))
}

fn diagnostics(text: &str) -> Diagnostics {
    match Document::parse(text) {
        Err(Error::Text(diagnostics)) => diagnostics,
        other => panic!("expected errors for {text:?}, found {other:?}"),
    }
}

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
fn formatting_keeps_comments_and_is_idempotent() {
    let text = "\u{feff}# top\n\n\n   label a   :x,y  # one\nlabel b prior .5 # two, aligned\nlabel longer_name\r\n\n#about the rule\nrule 0.5 :\n a=x&b  #inside\n# between\n  |  longer_name\n\nexpect  a~( 0.5,0.5 )=>b=0.5+-1e-3\n#end\n\n";
    let once = Document::format(text).unwrap();
    insta::assert_snapshot!(once);
    assert_eq!(Document::format(&once).unwrap(), once);
    assert_eq!(Model::parse(&once).unwrap(), Model::parse(text).unwrap());
}

fn note() -> LearnedNote {
    LearnedNote::new(12.3, 3.0, 214.0, 41.2, true)
}

#[test]
fn notes_about_learned_rules_are_comments_that_are_read() {
    let text = "\
label a
label b

rule 0.9: a -> b                        # learned: gain 12.3, broken 3 of 214, expected 41.2, sure
fixed noisy_or 0.999 both: a 0.1, b 0.2 # learned: gain 0.5, broken 0 of 21476, expected 1e-7
rule 0.8: a                             # known for long
rule 0.7:                               # learned: gain 12.3, broken 3 of 214, expected 41.2
  a
  | b                                   # learned: gain 1, broken 0 of 2, expected 1
# learned: gain 12.3, broken 3 of 214, expected 41.2
rule 0.6: b # learned: gain 12.3, broken 215 of 214, expected 41.2
expect a => b > 0.5                     # learned: gain 12.3, broken 3 of 214, expected 41.2
";
    let document = Document::parse(text).unwrap();
    let model = document.model();
    let notes: Vec<_> = model.rules().iter().map(|rule| rule.learned().copied()).collect();
    let second = LearnedNote::new(0.5, 0.0, 21_476.0, 1e-7, false);
    let fourth = LearnedNote::new(1.0, 0.0, 2.0, 1.0, false);
    assert_eq!(notes, [Some(note()), Some(second), None, Some(fourth), None]);
    assert_eq!(&text[document.rule_span(RuleId::new(0))], "rule 0.9: a -> b");
    let printed = "\
label a
label b

rule 0.9: a -> b                         # learned: gain 12.3, broken 3 of 214, expected 41.2, sure
fixed noisy_or 0.999 both: a 0.1, b 0.2  # learned: gain 0.5, broken 0 of 21476, expected 1e-7
rule 0.8: a
rule 0.7: a | b  # learned: gain 1, broken 0 of 2, expected 1
rule 0.6: b

expect a => b > 0.5
";
    assert_eq!(model.to_string(), printed);
    assert_eq!(Document::format(printed).unwrap(), printed);
    assert_eq!(Model::parse(printed).unwrap(), *model);
    let formatted = Document::format(text).unwrap();
    assert_eq!(formatted.matches('#').count(), text.matches('#').count());
    assert!(formatted.contains("# known for long\n") && formatted.contains("broken 215 of 214"));
    assert_eq!(Model::parse(&formatted).unwrap(), *model);
}

#[test]
fn notes_stay_with_their_rules() {
    let model = Model::builder().binary_label("a").binary_label("b").rule("a -> b", 0.9).learned(note());
    let model = model.noisy_or([("a", "yes", 0.1)], 0.8).name("one").learned(note()).build().unwrap();
    let learned =
        |model: &Model| -> Vec<bool> { model.rules().iter().map(|it| it.learned().is_some()).collect() };
    assert_eq!(learned(&model), [true, true]);
    assert_eq!(model.edit().build().unwrap(), model);
    let moved = model.edit().remove_label("a").binary_label("a").build().unwrap();
    assert_eq!(learned(&moved), [true, true]);
    let fewer = model.edit().learned_at(RuleId::new(0), None).build().unwrap();
    assert_eq!(learned(&fewer), [false, true]);
    assert_ne!(fewer, model);
    let rule = model.rule(RuleId::new(0)).clone();
    assert_eq!(
        rule.clone().with_probability(0.9).with_body(rule.body().clone()).fixed(true).learned(),
        Some(&note())
    );
    // A note is about the rule that was learned, not about a changed one.
    assert_eq!(rule.clone().with_probability(0.8).learned(), None);
    assert_eq!(rule.with_body(model.rule(RuleId::new(1)).body().clone()).learned(), None);
}

#[test]
fn fields_of_a_note_that_are_changed_are_rounded_too() {
    let mut changed = note();
    changed.gain = 1.0 / 3.0;
    let model = Model::builder().binary_label("a").rule("a", 0.9).learned(changed).build().unwrap();
    assert_eq!(model.rules()[0].learned().unwrap().gain, 0.3333);
    assert_eq!(Model::parse(&model.to_string()).unwrap(), model);
}

#[test]
fn notes_behind_very_wide_rules_are_not_aligned() {
    let labels: Vec<String> = (0..100).map(|i| format!("label{i}")).collect();
    let wide = labels.join(" | ");
    let declared: String = labels.iter().map(|label| format!("label {label}\n")).collect();
    let comment = "# learned: gain 12.3, broken 3 of 214, expected 41.2, sure";
    let rules = format!(
        "rule 0.9: label0           {comment}\nrule 0.9: {wide}  {comment}\nrule 0.9: label1 | label2  {comment}\n"
    );
    let text = format!("{declared}\n{rules}");
    assert_eq!(Model::parse(&text).unwrap().to_string(), text);
    assert_eq!(Document::format(&text).unwrap(), text);
}

#[test]
fn the_builder_reports_errors() {
    let base = || Model::builder().label("weather", ["sun", "rain"]).label("ground", ["dry", "wet"]);
    let wrong = [
        base().rule("wet <- rian", 0.9).build(),
        base().rule("wet <-", 0.9).build(),
        base().rule("wet <- rain", 1.5).build(),
        base().rule("wet <- rain", f64::NAN).build(),
        base().label("weather", ["a", "b"]).build(),
        base().label("empty", Vec::<String>::new()).build(),
        base().label("", ["a", "b"]).build(),
        base().label("twice", ["a", "a"]).build(),
        base().prior("weather", [0.5, 0.6]).build(),
        base().prior("weather", [0.5]).build(),
        base().prior("weather", [-0.5, 1.5]).build(),
        base().prior("whether", [0.5, 0.5]).build(),
        base().noisy_or([("weather", "rian", 0.5)], 1.0).build(),
        base().noisy_or([("weather", "rain", 2.0)], 1.0).build(),
        base().noisy_or([("weather", "rain", 0.5), ("weather", "rain", 0.2)], 1.0).build(),
        base().noisy_or([], 1.0).build(),
        base().named_rule("wets", "wet", 1.0).named_rule("wets", "wet", 1.0).build(),
        base().named_rule("wets", "wet", 1.0).remove_rule("wet").build(),
        base().rule("wet", 1.0).build().unwrap().edit().remove_label("ground").build(),
        base().expect("rain => wet > 2").build(),
        base().learned(note()).build(),
        base().rule("wet", 1.0).learned_at(RuleId::new(1), note()).build(),
        base().rule("wet", 1.0).learned(LearnedNote::new(-1.0, 0.0, 0.0, 0.0, true)).build(),
        base().rule("wet", 1.0).learned(LearnedNote::new(1.0, 0.0, f64::INFINITY, 0.0, true)).build(),
        base().named_rule("wets", "wet", 1.0).learned(LearnedNote::new(1.0, 4.0, 3.0, 0.0, true)).build(),
        base().rule("wet", 1.0).learned(LearnedNote::new(1.0, 4.0, 5.0, f64::NAN, true)).build(),
    ];
    let messages: Vec<String> = wrong.into_iter().map(|result| result.unwrap_err().to_string()).collect();
    insta::assert_snapshot!(messages.join("\n"));
}

#[test]
fn a_rule_with_an_unknown_category_is_an_error() {
    let [label, nowhere] = [0, 7].map(prsl::LabelId::new);
    let category = prsl::CategoryId::new(5);
    let base = || Model::builder().label("weather", ["sun", "rain"]);
    let formula = |atom: Atom| Rule::new(0.9, Body::Formula(Formula::atom(atom)));
    let noisy_or = |label, category| {
        Rule::new(0.9, Body::NoisyOr(NoisyOr::new([Inhibition { label, category, probability: 0.5 }])))
    };
    let wrong = [
        formula(Atom::new(label, category)),
        formula(Atom::new(nowhere, category)),
        formula(Atom::one_of(label, [])),
        formula(Atom::new(label, category)).with_probability(2.0),
        noisy_or(label, category),
        noisy_or(nowhere, category),
        formula(Atom::new(label, category)).named("wets"),
    ];
    let messages: Vec<String> =
        wrong.into_iter().map(|rule| base().add_rule(rule).build().unwrap_err().to_string()).collect();
    insta::assert_snapshot!(messages.join("\n"));
    let model = base().build().unwrap();
    assert!(matches!(model.find_category(nowhere, "sun"), Err(Error::UnknownLabel { .. })));
}

#[test]
fn a_model_that_prints_as_too_large_a_text_is_an_error() {
    let name = "n".repeat(9 << 20);
    let model = Model::builder().label("a", [name, "other".to_owned()]).build().unwrap();
    let model = model.edit().rule("!a=other", 0.9).rule("a=other", 0.9).build().unwrap();
    assert!(model.to_string().len() < Document::MAX_BYTES);
    let larger = model.edit().label("b", ["m".repeat(9 << 20), "rest".to_owned()]).build().unwrap();
    assert!(Document::of_model(&model).is_ok());
    assert!(matches!(Document::of_model(&larger), Err(Error::TooLarge { .. })));
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
