//! Explanations name the rules that conflict with the evidence, and no others.

use prsl::Evidence;
use prsl_testkit::{EXACT, close};

use crate::explain;

#[test]
fn a_conflict_is_reported() {
    let model = "
label smoke from detector
label fire latent prior 0.01
label alarm
rule 0.95: fire -> smoke
rule 0.9 causes: smoke -> fire
rule 1: fire -> alarm
";
    let evidence = Evidence::new().belief("smoke", [0.97]).belief("alarm", [0.02]);
    insta::assert_snapshot!(explain(model, evidence));
}

#[test]
fn impossible_evidence_is_explained_by_its_rules() {
    let model = "
label a
label b
label c
rule 0.7: a -> c
rule 1: a -> b
rule 1 never: !(a & b)
rule 1: c | b
";
    insta::assert_snapshot!(explain(model, Evidence::new().observe("a", "yes").belief("b", [0.25])));
}

#[test]
fn one_rule_excludes_everything_and_another_pair_does_too() {
    let model = "label a\nlabel b\nrule 0: a\nrule 1: a -> b\nrule 1: b -> !a";
    let explanation = explain(model, Evidence::new().observe("a", "yes"));
    assert!(explanation.conflicts().count() > 0);
    assert!(explanation.rules.iter().all(|rule| !rule.possible_without));
    insta::assert_snapshot!(explanation);
}

#[test]
fn a_violated_soft_rule_conflicts_even_where_it_moves_nothing() {
    let observed = Evidence::new().observe("a", "yes").observe("b", "no");
    let explanation = explain("label a\nlabel b\nrule 0.8: a -> b\nrule 0.2: a & !b\nrule 0.5: b", observed);
    let conflicts: Vec<bool> = explanation.rules.iter().map(|rule| rule.conflict).collect();
    assert_eq!(conflicts, [true, true, false]);
    assert!(close(explanation.rules[0].agreement.unwrap(), 0.2, EXACT));
    assert_eq!(explanation.rules[0].largest_change, Some(0.0));
    assert!(explanation.to_string().contains("CONFLICT"));
}

#[test]
fn undecided_evidence_is_no_conflict() {
    let explanation =
        explain("label a\nlabel b: x, y, z, w\nrule 0.9: a\nrule 0.1: b in {x, y}", Evidence::new());
    assert_eq!(explanation.conflicts().count(), 0);
}

#[test]
fn a_noisy_or_whose_causes_all_hold_is_no_conflict() {
    let model = "label a\nlabel b\nnoisy_or 0.999: a 0.77, b=no 0.77\n";
    let rule =
        |a: &str, b: &str| explain(model, Evidence::new().observe("a", a).observe("b", b)).rules.remove(0);
    let agrees = rule("yes", "no");
    assert!(close(agrees.agreement_range[1], agrees.agreement.unwrap(), EXACT), "{agrees:?}");
    assert!(close(agrees.agreement_range[0], 0.001, EXACT), "{agrees:?}");
    assert!(!agrees.conflict);
    // With one of two causes, the agreement is slightly above the middle of its range. With none, it is the minimum.
    assert!(!rule("yes", "yes").conflict);
    assert!(rule("no", "yes").conflict);
    let shown = explain(model, Evidence::new().observe("a", "no").observe("b", "yes")).to_string();
    assert!(shown.contains("(agrees 0.001 of at most 0.407)"), "{shown}");
}

#[test]
fn a_rule_that_is_always_true_never_conflicts() {
    let rules = "rule 0.2: a | !a\nrule 0.9: a & !a\nrule 0.9: a\nnoisy_or 0.1: a 0.9, a=no 0.9\nrule 0.5: b";
    let explanation = explain(&format!("label a\nlabel b\n{rules}"), Evidence::new().observe("a", "no"));
    let conflicts: Vec<usize> = explanation.conflicts().map(|rule| rule.number).collect();
    assert_eq!(conflicts, [3]);
}
