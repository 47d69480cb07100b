//! Findings of the checks and their wording. Brute force agrees with all of them.

mod models;

use std::collections::BTreeSet;

use proptest::prelude::*;
use prsl::lint::{self, Finding, Severity};
use prsl::{Assignment, CategoryId, Document, LabelId, Model, Rule, RuleId};
use prsl_testkit::pigeons;

const LABELS: &str = "\
label activity: walking, normal, overhead prior 0.2, 0.5, 0.3
label feet: gait, standing prior 0.5, 0.5
label hands: high, centered, low prior 0.2, 0.4, 0.4
label alarm prior 0.1
";

fn findings(rules: &str) -> (String, Vec<Finding>) {
    let source = format!("{LABELS}{rules}");
    let document = Document::parse(&source).unwrap_or_else(|error| panic!("{error}"));
    (source.clone(), lint::check(&document))
}

/// All findings that count, as people see them.
fn rendered(rules: &str) -> String {
    let (source, findings) = findings(rules);
    let rendered: Vec<_> = findings
        .iter()
        .filter(|finding| finding.counts())
        .map(|finding| finding.render("model.prsl", &source))
        .collect();
    rendered.join("\n")
}

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
fn notes_inform_without_counting() {
    let source = "label a\nlabel b: x, y prior 0.5, 0.5\nlabel c\nrule 0.9: a -> x\n";
    let findings = lint::check(&Document::parse(source).unwrap());
    assert!(findings.iter().all(|finding| finding.severity == Severity::Note));
    let rendered: Vec<_> = findings.iter().map(|finding| finding.render("model.prsl", source)).collect();
    insta::assert_snapshot!(rendered.join("\n"));
}

#[test]
fn findings_are_json_with_places() {
    let (_, findings) = findings("rule 1: alarm\nrule 1: !alarm\n");
    let json =
        serde_json::to_string_pretty(findings.iter().find(|finding| finding.counts()).unwrap()).unwrap();
    insta::assert_snapshot!(json);
}

#[test]
fn findings_point_into_json_too() {
    let json = Model::parse(&format!("{LABELS}rule 0.5: alarm\n")).unwrap().to_json();
    let document = Document::read(&json).unwrap();
    let finding = &lint::check(&document).into_iter().find(|finding| finding.counts()).unwrap();
    insta::assert_snapshot!(finding.render("model.json", &json));
}

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

fn codes_of(findings: &[Finding]) -> BTreeSet<&'static str> {
    findings.iter().filter(|finding| finding.counts()).map(|finding| finding.code).collect()
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

#[test]
fn an_empty_model_is_worth_a_note() {
    let findings = lint::check(&Document::parse("").unwrap());
    assert_eq!(codes_of(&findings), BTreeSet::new());
    assert!(findings.iter().any(|finding| finding.code == "empty-model"), "{findings:?}");
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
fn consequences_of_many_rules_are_seen_without_questions() {
    // A question for each of these categories or rules would take the square of their number.
    let n = 20_000;
    let mut text: String = (0..n).map(|label| format!("label l{label}\n")).collect();
    for rule in 1..n {
        text.push_str(&format!("rule 1: l{rule} -> l{}\n", rule - 1));
    }
    assert_eq!(codes_of(&lint::check_rules(&Document::parse(&text).unwrap())), BTreeSet::new());
}

/// The model's assignments, all of them.
fn assignments(model: &Model) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for label in model.labels() {
        let extend = |start: Vec<usize>| {
            (0..label.n_categories()).map(move |category| [start.clone(), vec![category]].concat())
        };
        all = all.into_iter().flat_map(extend).collect();
    }
    all
}

struct Oracle<'a> {
    document: &'a Document,
    all: Vec<Vec<usize>>,
    findings: Vec<Finding>,
}

impl Oracle<'_> {
    fn model(&self) -> &Model {
        self.document.model()
    }

    fn rule_at(&self, span: &std::ops::Range<usize>) -> RuleId {
        let model = self.model();
        model.rule_ids().find(|&rule| self.document.rule_span(rule) == *span).expect("a rule's span")
    }

    fn coded(&self, code: &str) -> Vec<&Finding> {
        self.findings.iter().filter(|finding| finding.code == code).collect()
    }

    fn rules(&self, code: &str) -> BTreeSet<RuleId> {
        self.coded(code).iter().map(|finding| self.rule_at(&finding.span)).collect()
    }

    fn related(&self, finding: &Finding) -> BTreeSet<RuleId> {
        finding.related.iter().map(|related| self.rule_at(&related.span)).collect()
    }

    /// The assignments that none of these rules excludes.
    fn allowed(&self, rules: &BTreeSet<RuleId>) -> Vec<&Vec<usize>> {
        self.all.iter().filter(|y| rules.iter().all(|&rule| !excludes(self.model().rule(rule), y))).collect()
    }

    /// Whether the set has the property and no proper subset has it; the property is monotone.
    fn is_minimal(&self, set: &BTreeSet<RuleId>, property: impl Fn(&[&Vec<usize>]) -> bool) -> bool {
        property(&self.allowed(set))
            && set.iter().all(|rule| {
                let mut smaller = set.clone();
                smaller.remove(rule);
                !property(&self.allowed(&smaller))
            })
    }
}

/// Whether a rule gives an assignment the weight 0. In these tests, no silence rounds to 0 or 1.
fn excludes(rule: &Rule, assignment: &[usize]) -> bool {
    (rule.probability() == 0.0 || rule.probability() == 1.0)
        && rule.weight(&Assignment::from_indices(assignment)) == 0.0
}

fn is_hard(rule: &Rule) -> bool {
    rule.probability() == 0.0 || rule.probability() == 1.0
}

/// Q(y), the silence of a rule.
fn silence(rule: &Rule, assignment: &[usize]) -> f64 {
    rule.clone().with_probability(0.0).weight(&Assignment::from_indices(assignment))
}

fn certain(rule: &Rule, among: &[&Vec<usize>]) -> bool {
    among.iter().all(|y| silence(rule, y) == 0.0)
}

fn hopeless(rule: &Rule, among: &[&Vec<usize>]) -> bool {
    among.iter().all(|y| silence(rule, y) == 1.0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn brute_force_agrees(model in models::model(7)) {
        agrees_with_brute_force(model)?;
    }

    #[test]
    fn brute_force_agrees_on_many_hard_rules(model in models::hard_model(14)) {
        agrees_with_brute_force(model)?;
    }
}

fn agrees_with_brute_force(model: Model) -> Result<(), TestCaseError> {
    let document = Document::of_model(&model).expect("a small model");
    let oracle =
        Oracle { all: assignments(&model), findings: lint::check_rules(&document), document: &document };
    let everything: Vec<&Vec<usize>> = oracle.all.iter().collect();

    // Rules by themselves.
    let always: BTreeSet<RuleId> =
        model.rule_ids().filter(|&rule| certain(model.rule(rule), &everything)).collect();
    let never: BTreeSet<RuleId> =
        model.rule_ids().filter(|&rule| hopeless(model.rule(rule), &everything)).collect();
    prop_assert_eq!(oracle.rules("always-true"), always.clone());
    prop_assert_eq!(oracle.rules("never-true"), never.clone());
    let constant: BTreeSet<RuleId> = always.union(&never).copied().collect();
    let fatal = constant.iter().any(|&rule| hopeless_alone(model.rule(rule), &everything));

    // Contradictions: found exactly when there are any, each a minimal set, and nothing left without them.
    let mut hard: BTreeSet<RuleId> =
        model.rule_ids().filter(|rule| is_hard(model.rule(*rule)) && !constant.contains(rule)).collect();
    prop_assert_eq!(oracle.allowed(&hard).is_empty(), !oracle.coded("contradiction").is_empty());
    let all_hard: BTreeSet<RuleId> = model.rule_ids().filter(|&rule| is_hard(model.rule(rule))).collect();
    prop_assert_eq!(oracle.allowed(&all_hard).is_empty(), fatal || !oracle.coded("contradiction").is_empty());
    prop_assert!(!fatal || oracle.findings.iter().any(|finding| finding.severity == Severity::Error));
    for finding in oracle.coded("contradiction") {
        let mut set = oracle.related(finding);
        set.insert(oracle.rule_at(&finding.span));
        prop_assert!(set.is_subset(&hard));
        prop_assert!(oracle.is_minimal(&set, |allowed| allowed.is_empty()), "{:?}", finding);
        hard.retain(|rule| !set.contains(rule));
    }
    let allowed = oracle.allowed(&hard);
    prop_assert!(!allowed.is_empty());

    // Repetitions: exactly the rules over the same labels that are silent in the same cases.
    let scope = |rule: RuleId| model.rule(rule).scope().into_iter().collect::<BTreeSet<_>>();
    let speaks = |rule: &RuleId| !constant.contains(rule) && model.rule(*rule).probability() != 0.5;
    let same = |a: RuleId, b: RuleId| {
        everything.iter().all(|y| silence(model.rule(a), y) == silence(model.rule(b), y))
    };
    let logical =
        |rule: RuleId| everything.iter().all(|y| [0.0, 1.0].contains(&silence(model.rule(rule), y)));
    let opposite =
        |a: RuleId, b: RuleId| (model.rule(a).probability() - model.rule(b).probability()).abs() == 1.0;
    let mut repeated = BTreeSet::new();
    for rule in model.rule_ids().filter(&speaks) {
        let first = model.rule_ids().filter(&speaks).find(|&first| {
            scope(first) == scope(rule) && logical(rule) && logical(first) && same(first, rule)
        });
        if first.is_some_and(|first| first != rule && !opposite(first, rule)) {
            repeated.insert(rule);
        }
    }
    let reported = oracle.rules("duplicate-rule");
    prop_assert!(repeated.is_subset(&reported), "{:?} {:?}", repeated, reported);
    for finding in oracle.coded("duplicate-rule") {
        let first = *oracle.related(finding).first().expect("the first one is related");
        prop_assert!(same(first, oracle.rule_at(&finding.span)));
    }

    // Hard rules that follow from others: each reported one does, and without all of them nothing follows.
    let mut kept = hard.clone();
    for code in ["implied-rule", "contradicted-rule"] {
        for finding in oracle.coded(code) {
            let rule = oracle.rule_at(&finding.span);
            let stated = model.rule(rule);
            let reasons = oracle.related(finding);
            prop_assert!(reasons.is_subset(&hard) && !reasons.contains(&rule));
            let false_here = code == "contradicted-rule" || stated.probability() == 0.0;
            prop_assert!(
                oracle.is_minimal(&reasons, |allowed| {
                    if false_here { hopeless(stated, allowed) } else { certain(stated, allowed) }
                }),
                "{:?}",
                finding
            );
            kept.remove(&rule);
        }
    }
    kept.retain(|rule| {
        !(reported.contains(rule) && hard.iter().any(|&first| first < *rule && same(first, *rule)))
    });
    prop_assert_eq!(oracle.allowed(&kept), allowed.clone());
    for &rule in &kept {
        let mut others = kept.clone();
        others.remove(&rule);
        let among = oracle.allowed(&others);
        prop_assert!(!certain(model.rule(rule), &among) && !hopeless(model.rule(rule), &among));
    }

    // Soft rules that the hard ones decide.
    let hard_repeats = |rule: RuleId| {
        model.rule_ids().any(|other| {
            other != rule && is_hard(model.rule(other)) && scope(rule) == scope(other) && same(rule, other)
        })
    };
    for rule in model.rule_ids().filter(speaks).filter(|&rule| !is_hard(model.rule(rule))) {
        let implied = oracle.rules("implied-rule").contains(&rule);
        let contradicted = oracle.rules("contradicted-rule").contains(&rule);
        if !hard_repeats(rule) {
            prop_assert_eq!(implied, certain(model.rule(rule), &allowed));
            prop_assert_eq!(contradicted, hopeless(model.rule(rule), &allowed));
        }
    }

    // Categories that the hard rules exclude.
    for label in model.label_ids() {
        let span = document.label_span(label);
        let mut reported = BTreeSet::new();
        for finding in oracle.coded("impossible-category").into_iter().filter(|finding| finding.span == span)
        {
            let named = named_categories(&model, label, &finding.message);
            for &category in &named {
                let absent = |allowed: &[&Vec<usize>]| allowed.iter().all(|y| y[label.index()] != category);
                prop_assert!(oracle.is_minimal(&oracle.related(finding), absent), "{:?}", finding);
            }
            reported.extend(named);
        }
        let impossible: BTreeSet<usize> = (0..model.label(label).n_categories())
            .filter(|&category| allowed.iter().all(|y| y[label.index()] != category))
            .collect();
        prop_assert_eq!(reported, impossible);
    }
    Ok(())
}

/// Whether a constant rule excludes everything.
fn hopeless_alone(rule: &Rule, everything: &[&Vec<usize>]) -> bool {
    everything.iter().all(|y| excludes(rule, y))
}

/// The categories that the beginning of a message lists.
fn named_categories(model: &Model, label: LabelId, message: &str) -> Vec<usize> {
    let listed = message.split(" of label ").next().unwrap_or("");
    let is_listed = |category: &usize| {
        listed.contains(&format!("`{}`", model.label(label).category(CategoryId::new(*category))))
    };
    (0..model.label(label).n_categories()).filter(is_listed).collect()
}
