//! What the rules make of each other: contradictions, repetitions, and categories that nothing leaves possible.

use std::collections::{BTreeMap, HashMap};

use super::logic::{Logic, Outcome, Truth, is_hard};
use super::report::{Report, decimal};
use super::solver::Lit;
use super::table::Table;
use super::{Related, Severity};
use crate::label::{CategoryId, LabelId};
use crate::noisy_or::NoisyOr;
use crate::rule::{Body, Rule, RuleId};

/// Reasons that are longer stay as the solver gives them: people do not read on, and models with chains of a thousand
/// rules have a thousand such reasons to minimize.
const MAX_MINIMIZED: usize = 32;
/// So many places are shown with a finding.
const MAX_RELATED: usize = 32;

/// Runs all of these checks; tells which rules are always true or never.
pub(super) fn check(report: &mut Report<'_>) -> Vec<bool> {
    let model = report.model();
    let mut scratch = vec![0; model.labels().len()];
    let mut check = Check {
        logic: Logic::new(model),
        tables: model.rules().iter().map(|rule| Table::new(model, rule, &mut scratch)).collect(),
        constant: vec![false; model.rules().len()],
        hard: Vec::new(),
        same_as: vec![None; model.rules().len()],
        report,
    };
    check.constant_rules();
    check.contradictions();
    check.duplicates();
    check.consequences();
    check.limits();
    check.constant
}

struct Check<'r, 'd> {
    report: &'r mut Report<'d>,
    logic: Logic<'d>,
    tables: Vec<Table>,
    /// Rules that are always true or never.
    constant: Vec<bool>,
    /// Hard rules that neither are constant nor contradict each other.
    hard: Vec<RuleId>,
    /// The first rule that says the same.
    same_as: Vec<Option<RuleId>>,
}

impl<'d> Check<'_, 'd> {
    fn rule(&self, rule: RuleId) -> &'d Rule {
        self.report.model().rule(rule)
    }

    fn rule_ids(&self) -> impl Iterator<Item = RuleId> + use<> {
        self.report.model().rule_ids()
    }

    /// Whether no assignment at all has these literals.
    fn excluded(&mut self, literals: &[Lit]) -> bool {
        matches!(self.logic.ask(&[], literals), Outcome::Conflict(_))
    }

    /// Rules that are always true or never, whatever the other rules say.
    fn constant_rules(&mut self) {
        for rule in self.rule_ids() {
            let table = &self.tables[rule.index()];
            let mut always = table.rows.iter().all(|truth| truth.certain);
            let mut never = table.rows.iter().all(|truth| !truth.possible);
            if !table.complete && (always || never) {
                let proven = self.logic.knows(rule) && {
                    let counterexample =
                        if always { !self.logic.certain(rule) } else { self.logic.possible(rule) };
                    self.excluded(&[counterexample])
                };
                (always, never) = (always && proven, never && proven);
            }
            if always || never {
                self.constant[rule.index()] = true;
                self.report_constant(rule, always);
            }
        }
    }

    fn report_constant(&mut self, rule: RuleId, always: bool) {
        let probability = self.rule(rule).probability();
        let quoted = self.report.quoted(rule);
        let (code, truth) = if always { ("always-true", "always") } else { ("never-true", "never") };
        let fatal = if always { probability == 0.0 } else { probability == 1.0 };
        if fatal {
            let message = format!(
                "rule {quoted} is {truth} true, yet has probability {probability}: no assignment is possible"
            );
            let finding = self.report.add_rule(Severity::Error, code, rule, message);
            finding.help = Some("correct or remove it".to_owned());
        } else {
            let message = format!("rule {quoted} is {truth} true, so it has no effect");
            let finding = self.report.add_rule(Severity::Warning, code, rule, message);
            finding.help = Some("say what it should exclude, or remove it".to_owned());
        }
    }

    /// Sets of hard rules that no assignment satisfies, until what is left can be satisfied.
    fn contradictions(&mut self) {
        let eligible = |&rule: &RuleId| {
            is_hard(self.rule(rule)) && self.logic.knows(rule) && !self.constant[rule.index()]
        };
        let mut hard: Vec<RuleId> = self.rule_ids().filter(eligible).collect();
        while let Outcome::Conflict(conflict) = self.logic.ask(&hard, &[]) {
            let rules = self.logic.minimal(conflict, &[]);
            hard.retain(|rule| !rules.contains(rule));
            self.report_contradiction(&rules);
        }
        self.hard = hard;
    }

    fn report_contradiction(&mut self, rules: &[RuleId]) {
        let (&last, others) = rules.split_last().expect("a rule that contradicts itself is constant");
        let mut message = format!("{} rules contradict each other", rules.len());
        if rules.len() <= 4 {
            let stated = |&rule: &RuleId| format!("{} {}", self.report.quoted(rule), demand(self.rule(rule)));
            let others: Vec<String> = others.iter().map(stated).collect();
            message.push_str(&format!(": {}, and {}", others.join(", "), stated(&last)));
        }
        let related = self.reasons(others);
        let finding = self.report.add_rule(Severity::Error, "contradiction", last, message);
        finding.help = Some("correct or remove one of them, or make it less certain".to_owned());
        finding.related = related;
    }

    /// Whether a rule is worth comparing with others.
    fn speaks(&self, rule: RuleId) -> bool {
        !self.constant[rule.index()] && self.logic.knows(rule) && self.rule(rule).probability() != 0.5
    }

    /// Rules over the same labels that say the same.
    fn duplicates(&mut self) {
        let mut formulas: HashMap<(Vec<LabelId>, Vec<bool>), Vec<RuleId>> = HashMap::new();
        let mut noisy_ors: HashMap<Vec<(LabelId, CategoryId, u64)>, RuleId> = HashMap::new();
        for rule in self.rule_ids() {
            if !self.speaks(rule) {
                continue;
            }
            let table = &self.tables[rule.index()];
            match self.rule(rule).body() {
                Body::NoisyOr(noisy_or) if !deterministic(noisy_or) => {
                    let first = *noisy_ors.entry(canonical(noisy_or)).or_insert(rule);
                    self.same_as[rule.index()] = Some(first).filter(|&first| first != rule);
                }
                _ => {
                    let distinct = formulas.entry((table.scope.clone(), table.signature())).or_default();
                    let complete = table.complete;
                    let same = distinct.iter().copied().find(|&first| {
                        complete || {
                            let differ = self.logic.differ(first, rule);
                            matches!(self.logic.ask(&[], &[differ]), Outcome::Conflict(_))
                        }
                    });
                    match same {
                        Some(first) => self.same_as[rule.index()] = Some(first),
                        None => distinct.push(rule),
                    }
                }
            }
            if let Some(first) = self.same_as[rule.index()] {
                self.report_duplicate(rule, first);
            }
        }
    }

    fn report_duplicate(&mut self, rule: RuleId, first: RuleId) {
        let (p, q) = (self.rule(rule).probability(), self.rule(first).probability());
        if (p - q).abs() == 1.0 {
            return; // A contradiction, and reported as one.
        }
        let (quoted, original) = (self.report.quoted(rule), self.report.quoted(first));
        let differing = if p == q {
            String::new()
        } else {
            format!(", with probability {} instead of {}", decimal(p), decimal(q))
        };
        let message = if quoted == original {
            format!("rule {quoted} is stated twice{differing}")
        } else {
            format!("rule {quoted} says the same as rule {original}{differing}")
        };
        let related = self.report.related(first, "first stated here");
        let finding = self.report.add_rule(Severity::Warning, "duplicate-rule", rule, message);
        let formula = self.tables[rule.index()].is_logical();
        finding.help = Some(if formula && p > 0.0 && p < 1.0 && q > 0.0 && q < 1.0 {
            let both = p * q / (p * q + (1.0 - p) * (1.0 - q));
            format!("keep one of them; both together count like one of probability {both:.4}")
        } else {
            "keep one of them".to_owned()
        });
        finding.related = vec![related];
    }

    /// Rules and categories that the hard rules decide.
    fn consequences(&mut self) {
        let hard = std::mem::take(&mut self.hard);
        if hard.is_empty() {
            return;
        }
        let mut seen = Seen::new(self.report.model());
        if let Outcome::Assignment(assignment) = self.logic.ask(&hard, &[]) {
            seen.add(self.report.model(), &assignment);
            self.redundant_hard_rules(hard.clone());
            self.decided_soft_rules(&hard, &mut seen);
            self.impossible_categories(&hard, &mut seen);
        }
        self.hard = hard;
    }

    /// Hard rules that follow from the other ones. Whatever is reported is left out from then on, so that without
    /// all reported rules the model still means the same.
    fn redundant_hard_rules(&mut self, hard: Vec<RuleId>) {
        let repeats = |&rule: &RuleId| {
            let first = self.same_as[rule.index()];
            first.is_some_and(|first| {
                hard.contains(&first) && self.rule(first).probability() == self.rule(rule).probability()
            })
        };
        let mut kept: Vec<RuleId> = hard.iter().copied().filter(|rule| !repeats(rule)).collect();
        for position in (0..kept.len()).rev() {
            let rule = kept.remove(position);
            let literal = if self.rule(rule).probability() == 1.0 {
                !self.logic.certain(rule)
            } else {
                self.logic.possible(rule)
            };
            match self.logic.ask(&kept, &[literal]) {
                Outcome::Conflict(conflict) => self.report_decided(rule, conflict, literal),
                _ => kept.insert(position, rule),
            }
        }
    }

    /// Soft rules that are always true, or never, where the hard rules are satisfied.
    fn decided_soft_rules(&mut self, hard: &[RuleId], seen: &mut Seen) {
        let model = self.report.model();
        let mut repeats_hard = vec![false; model.rules().len()];
        for rule in self.rule_ids() {
            if let Some(first) = self.same_as[rule.index()] {
                repeats_hard[rule.index()] |= is_hard(self.rule(first));
                repeats_hard[first.index()] |= is_hard(self.rule(rule));
            }
        }
        for rule in self.rule_ids() {
            if is_hard(self.rule(rule)) || repeats_hard[rule.index()] || !self.speaks(rule) {
                continue;
            }
            let questions = [
                (!self.logic.certain(rule), seen.uncertain[rule.index()]),
                (self.logic.possible(rule), seen.possible[rule.index()]),
            ];
            let open: Vec<Lit> = questions
                .into_iter()
                .filter(|(_, answered)| !*answered)
                .map(|(literal, _)| literal)
                .collect();
            for literal in open {
                match self.logic.ask(hard, &[literal]) {
                    Outcome::Assignment(assignment) => seen.add(model, &assignment),
                    Outcome::Conflict(conflict) => self.report_decided(rule, conflict, literal),
                    Outcome::Unknown => {}
                }
            }
        }
    }

    /// `literal` says that the rule is not certain, or that it is possible; the conflict excludes it.
    fn report_decided(&mut self, rule: RuleId, conflict: Vec<RuleId>, literal: Lit) {
        let reasons = self.minimal_reasons(conflict, literal);
        let (quoted, listed) = (self.report.quoted(rule), self.report.listed(&reasons));
        let (code, message, help) = if literal == !self.logic.certain(rule) {
            (
                "implied-rule",
                format!("rule {quoted} already follows from {listed}, so it has no effect"),
                "remove it, or make what it follows from less certain",
            )
        } else if self.rule(rule).probability() == 0.0 {
            (
                "implied-rule",
                format!("{quoted} is already excluded by {listed}, so excluding it again has no effect"),
                "remove it, or make what it follows from less certain",
            )
        } else {
            (
                "contradicted-rule",
                format!("rule {quoted} can never be true because of {listed}, so it has no effect"),
                "remove it, or make what excludes it less certain",
            )
        };
        let related = self.reasons(&reasons);
        let finding = self.report.add_rule(Severity::Warning, code, rule, message);
        finding.help = Some(help.to_owned());
        finding.related = related;
    }

    /// Why a literal is excluded, by as few rules as possible.
    fn minimal_reasons(&mut self, conflict: Vec<RuleId>, literal: Lit) -> Vec<RuleId> {
        if conflict.len() > MAX_MINIMIZED { conflict } else { self.logic.minimal(conflict, &[literal]) }
    }

    fn reasons(&self, rules: &[RuleId]) -> Vec<Related> {
        let reason = |&rule: &RuleId| {
            let stated = self.rule(rule);
            let message = format!("this {} (probability {})", demand(stated), stated.probability());
            self.report.related(rule, message)
        };
        rules.iter().take(MAX_RELATED).map(reason).collect()
    }

    /// Categories that no assignment with the hard rules satisfied has.
    fn impossible_categories(&mut self, hard: &[RuleId], seen: &mut Seen) {
        let model = self.report.model();
        for label in model.label_ids() {
            let mut impossible: BTreeMap<Vec<RuleId>, Vec<CategoryId>> = BTreeMap::new();
            for (category, index) in model.block(label).enumerate() {
                if seen.present[index] {
                    continue;
                }
                let literal = self.logic.category(index);
                match self.logic.ask(hard, &[literal]) {
                    Outcome::Assignment(assignment) => seen.add(model, &assignment),
                    Outcome::Conflict(conflict) => {
                        let reasons = self.minimal_reasons(conflict, literal);
                        impossible.entry(reasons).or_default().push(CategoryId::new(category));
                    }
                    Outcome::Unknown => {}
                }
            }
            for (reasons, categories) in impossible {
                self.report_impossible(label, &categories, &reasons);
            }
        }
    }

    fn report_impossible(&mut self, label: LabelId, categories: &[CategoryId], reasons: &[RuleId]) {
        let declared = self.report.model().label(label);
        let names: Vec<_> =
            categories.iter().map(|&category| format!("`{}`", declared.category(category))).collect();
        let (noun, verb) = if names.len() == 1 { ("category", "is") } else { ("categories", "are") };
        let (listed, exclude) =
            (self.report.listed(reasons), if reasons.len() == 1 { "excludes" } else { "exclude" });
        let pronoun = if names.len() == 1 { "it" } else { "them" };
        let message = format!(
            "{noun} {} of label `{}` {verb} impossible: {listed} {exclude} {pronoun}",
            names.join(", "),
            declared.name()
        );
        let related = self.reasons(reasons);
        let span = self.report.document().label_span(label);
        let finding = self.report.add(Severity::Warning, "impossible-category", span, message);
        finding.help = Some("correct a rule, make it less certain, or remove what is impossible".to_owned());
        finding.related = related;
    }

    /// What could not be looked at.
    fn limits(&mut self) {
        for rule in self.rule_ids() {
            if !self.logic.knows(rule) {
                let message =
                    format!("rule {} is too large to be compared with the others", self.report.quoted(rule));
                self.report.add_rule(Severity::Note, "not-checked", rule, message);
            }
        }
        if self.logic.gave_up() {
            let message = "the rules are too intricate for all checks; some contradictions or repetitions may have \
                           been missed";
            self.report.add(Severity::Note, "not-checked", 0..0, message.to_owned());
        }
    }
}

/// What the assignments found so far, all of which satisfy the hard rules, have shown.
struct Seen {
    /// Rules that need not be true.
    uncertain: Vec<bool>,
    /// Rules that may be true.
    possible: Vec<bool>,
    /// Categories that are present in one of them.
    present: Vec<bool>,
}

impl Seen {
    fn new(model: &crate::Model) -> Self {
        let rules = vec![false; model.rules().len()];
        Self { uncertain: rules.clone(), possible: rules, present: vec![false; model.n_categories()] }
    }

    fn add(&mut self, model: &crate::Model, assignment: &[usize]) {
        for (label, &category) in assignment.iter().enumerate() {
            self.present[model.block(LabelId::new(label)).start + category] = true;
        }
        for (index, rule) in model.rules().iter().enumerate() {
            if !(self.uncertain[index] && self.possible[index]) {
                let truth = Truth::of(rule, assignment);
                self.uncertain[index] |= !truth.certain;
                self.possible[index] |= truth.possible;
            }
        }
    }
}

/// What a hard rule asks for, after its name.
fn demand(rule: &Rule) -> &'static str {
    match (rule.body(), rule.probability() == 1.0) {
        (Body::Formula(_), true) => "must hold",
        (Body::Formula(_), false) => "must not hold",
        (Body::NoisyOr(_), true) => "must have one of its categories present",
        (Body::NoisyOr(_), false) => "must have no category of inhibition 0 present",
    }
}

/// Whether a noisy-or leaves nothing to chance.
fn deterministic(noisy_or: &NoisyOr) -> bool {
    noisy_or.inhibitions().iter().all(|i| i.probability == 0.0 || i.probability == 1.0)
}

/// A noisy-or without order and without what never fires.
fn canonical(noisy_or: &NoisyOr) -> Vec<(LabelId, CategoryId, u64)> {
    let fires = noisy_or.inhibitions().iter().filter(|i| i.probability < 1.0);
    let mut terms: Vec<_> = fires.map(|i| (i.label, i.category, i.probability.abs().to_bits())).collect();
    terms.sort_unstable();
    terms
}
