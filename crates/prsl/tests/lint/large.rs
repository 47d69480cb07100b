//! Wide rules, large models and hard questions are checked too, or reported as not decided.

use std::collections::BTreeSet;

use prsl::Document;
use prsl::lint::{self, Finding, Severity};
use prsl_testkit::pigeons;

use crate::codes_of;

#[test]
fn wide_rules_are_compared_by_proof() {
    let n = 14;
    let names: Vec<String> = (0..n).map(|label| format!("l{label}")).collect();
    let labels: String = names.iter().map(|name| format!("label {name}: a, b, c\n")).collect();
    let join = |category: &str, operator: &str| {
        names.iter().map(|name| format!("{name}={category}")).collect::<Vec<_>>().join(operator)
    };
    let (all, any_other) =
        (join("a", " & "), names.iter().map(|name| format!("{name}!=a")).collect::<Vec<_>>());
    let any_other = any_other.join(" | ");
    let rules = [
        format!("rule 0.9: {all}"),
        format!("rule 0.9: !({any_other})"), // says the same
        format!("rule 0.9: {all} & l0=a"),   // says the same
        format!("rule 0.9: at_least {n} of {{{}}}", join("a", ", ")), // says the same
        format!("rule 0.9: at_least {} of {{{}}}", n - 1, join("a", ", ")), // differs where no sample looks
        format!("rule 0.9: ({all}) | ({any_other})"), // always true
        format!("rule 0.9: ({all}) & ({any_other})"), // never true
        format!("rule 0.9: ({all}) & ({}) | l0=b & l0=c & l1=a", join("b", " | ")), // never true
        format!("rule 0.8: {}", join("b", " xor ")),
        format!("rule 0.8: !({}) xor l0=b", join("b", " xor ")), // not the same: parity of the others, negated
        format!("rule 0.8: !(!({}))", join("b", " xor ")),       // says the same
    ];
    let source = format!("{labels}{}", rules.join("\n"));
    let found: Vec<_> = lint::check_rules(&Document::parse(&source).unwrap())
        .into_iter()
        .filter(Finding::counts)
        .map(|finding| (finding.line - n, finding.code))
        .collect();
    assert_eq!(
        found,
        [
            (2, "duplicate-rule"),
            (3, "duplicate-rule"),
            (4, "duplicate-rule"),
            (6, "always-true"),
            (7, "never-true"),
            (8, "never-true"),
            (11, "duplicate-rule"),
        ]
    );
}

#[test]
fn long_chains_of_consequences_are_followed() {
    let n = 1000;
    let mut text: String = (0..n).map(|label| format!("label l{label}\n")).collect();
    for rule in 1..n {
        text.push_str(&format!("rule 1: l{} -> l{rule}\n", rule - 1));
    }
    text.push_str("rule 1: l0\n");
    let document = Document::parse(&text).unwrap();
    let findings = lint::check_rules(&document);
    let impossible = findings.iter().filter(|finding| finding.code == "impossible-category").count();
    assert_eq!(impossible, n);
}

#[test]
fn large_models_are_checked() {
    let mut text = String::new();
    for label in 0..1000 {
        text.push_str(&format!("label l{label}: a, b, c\n"));
    }
    for rule in 0..2000_usize {
        let [x, y, z] = [7919, 104_729, 1_299_709].map(|prime| (rule * prime + rule / 1000 * 31) % 1000);
        let p = if rule % 2 == 0 { "1" } else { "0.9" };
        text.push_str(&format!("rule {p}: l{x}=a & l{y}=b -> l{z} in {{a, c}}\n"));
    }
    let document = Document::parse(&text).unwrap();
    let findings = lint::check_rules(&document);
    assert!(findings.iter().any(Finding::counts), "some of so many rules repeat each other");
}

/// Parities of neighbors on a ladder. An odd number of them must be odd, which is impossible.
fn contradictory_parities(n_rungs: usize, n_rails: usize) -> String {
    let across = |rung: usize, rail: usize| format!("a{rung}_{rail}");
    let along = |rung: usize, rail: usize| format!("b{rung}_{rail}");
    let mut text = String::new();
    for rung in 0..n_rungs {
        (0..n_rails - 1).for_each(|rail| text.push_str(&format!("label {}\n", across(rung, rail))));
        if rung + 1 < n_rungs {
            (0..n_rails).for_each(|rail| text.push_str(&format!("label {}\n", along(rung, rail))));
        }
    }
    for rung in 0..n_rungs {
        for rail in 0..n_rails {
            let mut edges = Vec::new();
            edges.extend((rail > 0).then(|| across(rung, rail - 1)));
            edges.extend((rail + 1 < n_rails).then(|| across(rung, rail)));
            edges.extend((rung > 0).then(|| along(rung - 1, rail)));
            edges.extend((rung + 1 < n_rungs).then(|| along(rung, rail)));
            // Every edge has two ends, so the sum of all parities is even.
            let not = if (rung, rail) == (0, 0) { "" } else { "!" };
            text.push_str(&format!("rule 1: {not}({})\n", edges.join(" xor ")));
        }
    }
    text
}

#[test]
fn a_model_that_is_not_decided_is_a_finding() {
    let document = Document::parse(&pigeons(11)).unwrap();
    let findings = lint::check_rules(&document);
    assert_eq!(codes_of(&findings), BTreeSet::from(["not-decided"]));
    let found = findings.iter().find(|finding| finding.counts()).unwrap();
    assert_eq!(found.severity, Severity::Warning);
    let message = found.message.split_once(" in ").unwrap().0;
    assert_eq!(message, "whether the 11 rules of probability 0 or 1 contradict each other was not decided");
    // Counted, not timed.
    assert_eq!(lint::check_rules(&document), findings);
}

#[test]
fn inference_proves_what_the_search_cannot() {
    let document = Document::parse(&contradictory_parities(40, 8)).unwrap();
    assert_eq!(codes_of(&lint::check_rules(&document)), BTreeSet::from(["not-decided"]));
    assert!(codes_of(&lint::check(&document)).contains("contradiction"));
}

#[test]
fn consequences_of_many_rules_are_seen_without_questions() {
    // A question for each of these categories or rules would take the square of their number.
    let n = 20_000;
    let mut text: String = (0..n).map(|label| format!("label l{label}\n")).collect();
    for rule in 1..n {
        text.push_str(&format!("rule 1: l{rule} -> l{}\n", rule - 1));
    }
    assert_eq!(codes_of(&lint::check_rules(&Document::parse(&text).unwrap())), BTreeSet::new());
}
