//! Notes about learned rules are comments that are read, printed and kept with their rules.

use prsl::model::LearnedNote;
use prsl::{Document, Model, RuleId};

use crate::note;

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
