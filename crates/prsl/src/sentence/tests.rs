use super::*;

const LABELS: &str = "\
label a
label b
label c
label feet: gait, standing
label hands: high, centered, low
label pose: high, bent, flat, odd, \"two words\"
label \"if\"
";

fn sentence(rule: &str) -> String {
    Model::parse(&format!("{LABELS}{rule}")).expect(rule).rule_sentence(RuleId::new(0))
}

#[track_caller]
fn reads(rule: &str, expected: &str) {
    assert_eq!(sentence(rule), expected, "{rule}");
}

#[test]
fn a_learned_implication_reads_as_one() {
    reads("noisy_or 0.999: a=no 0.05, b 0.07", "if a then b, 0.999");
    reads("noisy_or 0.999: b 0.07, a=no 0.05", "if a then b, 0.999");
    reads("noisy_or 0.9: a 0.01, b=no 0.2", "if b then a, 0.9");
    reads("noisy_or 0.9: a=no 0.001, b=no 0.002", "if a then not b, 0.9");
    reads("noisy_or 0.9: a 0, b 0", "if not a then b, 0.9");
    reads("noisy_or 0.9: a=no 0, b=no 0, c 0", "if a and b then c, 0.9");
    // The consequence is a negation, because it is much more certain than a positive statement.
    reads("noisy_or 0.9: a=no 0.1, b 0.6", "if not b then not a, 0.89");
}

#[test]
fn conditions_on_labels_of_more_categories_name_the_remaining_categories() {
    reads("noisy_or 0.9: gait 0.1, a 0", "if standing then a, 0.9");
    reads("noisy_or 0.9: centered 0.1, a 0", "if hands is high or low then a, 0.9");
    reads("noisy_or 0.9: hands=high 0.1, a 0", "if centered or low then a, 0.9");
    reads("noisy_or 0.9: hands=high 0.1, gait 0.1, a 0", "if (centered or low) and standing then a, 0.9");
    reads("noisy_or 0.9: centered 0.1, low 0.3, a 0", "if hands is high then a, 0.9");
    reads("noisy_or 0.9: bent 0.1, a 0", "if not bent then a, 0.9");
    reads("noisy_or 0.9: bent 0.1, odd 0.1, a 0", "if neither bent nor odd then a, 0.9");
    reads("noisy_or 0.9: pose=high 0.1, odd 0.1, a 0", "if pose is neither high nor odd then a, 0.9");
}

#[test]
fn a_consequence_may_be_several_categories() {
    reads("noisy_or 0.9: a=no 0.3, centered 0.02, low 0.1", "if a then centered or low, 0.9");
    reads("noisy_or 0.93: \"two words\" 0.04", "\"two words\", 0.93");
    reads("noisy_or 0.93: a=no 0", "not a, 0.93");
    reads("noisy_or 0.93: bent 0, flat 0, odd 0, pose=high 0", "not \"two words\", 0.93");
    reads("noisy_or 0.93: \"if\" 0, a=no 0", "if a then \"if\", 0.93");
}

#[test]
fn many_causes_are_listed() {
    reads(
        "noisy_or 0.99: a 0.8, b 0.7, c 0.9, gait 0.85, centered 0.75, bent 0.6, flat 0.65, \"if\" 0.95",
        "one of bent, flat, b, centered, a or 3 more, 0.99",
    );
}

#[test]
fn only_differences_between_categories_of_a_label_are_stated() {
    reads("noisy_or 0.9: a 1, b 1", "says nothing");
    reads("noisy_or 0.9: a 0.2, a=no 0.2", "one of a or not a makes it true, 0.9");
    reads(
        "noisy_or 0.9: a 0.2, a=no 0.2, gait 0, standing 0",
        "one of a, not a, gait or standing makes it true, 0.9",
    );
    reads("noisy_or 0.9: a 0.1, a=no 0.2", "a, 0.53");
    // The categories of the last label hardly differ, so it is not the consequence, although the strengths are close.
    reads("noisy_or 0.9: a 0.95, a=no 0.97, gait 0.922, standing 0.9225", "a, 0.52");
    reads("noisy_or 0.9: a 0.1, a=no 0.2, b 0.3", "if not a then b, 0.54");
    reads("noisy_or 0.9: a 0.2, a=no 0.2, b 0.3", "b, 0.54");
    // A learned rule, in which some of the numbers have almost no effect.
    reads(
        "noisy_or 0.999: a 0.997, a=no 0.274, b 0.975, b=no 0.975, c 0.723, c=no 0.991",
        "if not c then not a, 0.95",
    );
    reads(
        "noisy_or 0.999: gait 0.999, standing 0.432, centered 0.471, low 0.46, a 0.993, a=no 0.999",
        "if gait then centered or low, 0.99",
    );
}

#[test]
fn extreme_probabilities_are_not_rounded_to_0_or_1() {
    reads("noisy_or 1: a=no 0, b 0", "if a then b, 1");
    reads("noisy_or 0: a=no 0, b 0", "if a then b, 0");
    reads("noisy_or 0.999999: a=no 0, b 0", "if a then b, 0.999999");
    reads("noisy_or 0.5: a=no 0, b 0.004", "if a then b, 0.5");
    reads("noisy_or 0: a 0, a=no 0, b 0", "b");
}

#[test]
fn formulas_in_words() {
    reads("rule 0.8: standing & a -> b", "if standing and a then b, 0.8");
    reads("rule 0.8: b <- standing | a", "if standing or a then b, 0.8");
    reads("rule 1: a <-> !b", "a if and only if not b, 1");
    reads("rule 0.9: a -> hands in {centered, low}", "if a then centered or low, 0.9");
    reads("rule 0.9: a & hands!=high", "a and hands is not high, 0.9");
    reads(
        "rule 0.9: a & centered | !(hands in {high, low})",
        "(a and centered) or hands is neither high nor low, 0.9",
    );
    reads("rule 0.9: a & (b | c)", "a and (b or c), 0.9");
    reads("rule 0.9: a & hands in {centered, low}", "a and (centered or low), 0.9");
    reads("rule 0.9: !(a & b)", "not (a and b), 0.9");
    reads("rule 0.9: !!a", "not (not a), 0.9");
    reads("rule 0.9: a xor b", "either a or b but not both, 0.9");
    reads("rule 0.9: a xor b xor !c", "an odd number of a, b and not c, 0.9");
    reads("rule 0.95: at_most 1 of {a, bent, b & c}", "at most 1 of a, bent and (b and c), 0.95");
    reads("rule 0.95: exactly 0 of {}", "exactly 0 of nothing, 0.95");
    reads("rule 0.7: (a -> b) -> c", "if (if a then b) then c, 0.7");
    reads("rule 0.7: true", "true, 0.7");
}

#[test]
fn notes_about_learning_tell_how_many_rows_break_a_rule() {
    let reads =
        |rule: &str, note: &str, expected: &str| reads(&format!("{rule} # learned: {note}"), expected);
    let note = "gain 12.3, broken 3 of 214, expected 41.2, sure";
    let rows = "3 of 214 rows break it, 41 expected without the rule";
    reads("rule 0.94: a -> !b", note, &format!("if a then not b (0.94; {rows})"));
    reads("noisy_or 0.999: a=no 0.05, b 0.07", note, &format!("if a then b (0.999; {rows})"));
    reads("noisy_or 0.9: a 0.2, a=no 0.2", note, &format!("one of a or not a makes it true (0.9; {rows})"));
    reads("noisy_or 0.9: a 1, b 1", note, &format!("says nothing ({rows})"));
    reads("noisy_or 0: a 0, a=no 0, b 0", note, &format!("b ({rows})"));
    reads(
        "rule 0.9: a",
        "gain 0, broken 1 of 12345, expected 0.1234",
        "a (0.9; 1 of 12345 rows breaks it, 0.12 expected without the rule)",
    );
    reads(
        "rule 0.9: a",
        "gain 0, broken 0 of 1, expected 0",
        "a (0.9; 0 of 1 row breaks it, 0 expected without the rule)",
    );
    reads(
        "rule 0.9: a",
        "gain 0, broken 3.457 of 98.76, expected 9.876",
        "a (0.9; 3.5 of 99 rows break it, 9.9 expected without the rule)",
    );
}

#[test]
fn combinations_in_words() {
    let model =
        Model::parse("label a\nlabel feet: gait, standing\ntypical 2.5: a, gait\ntypical 1e17: standing");
    let model = model.expect("a model");
    let sentences: Vec<String> =
        model.typical().iter().map(|combination| model.combination_sentence(combination)).collect();
    assert_eq!(sentences, ["a and gait, 3.5 times", "standing, nothing else, 1.00e17 times"]);
}
