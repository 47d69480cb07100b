//! Findings about rules of random small models agree with the list of all assignments.

use std::collections::BTreeSet;

use proptest::prelude::*;
use prsl::lint::{self, Finding, Severity};
use prsl::{Assignment, CategoryId, Document, LabelId, Model, Rule, RuleId};

use crate::models;

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
