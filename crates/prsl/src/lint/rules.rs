//! What the rules make of each other: contradictions, repetitions, and categories that nothing leaves possible.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use super::logic::{Logic, Outcome, is_hard};
use super::report::{Report, decimal};
use super::solver::Lit;
use super::table::Table;
use super::witnesses::Witnesses;
use super::{Related, Severity};
use crate::diagnostic::shortened;
use crate::formula::{Clause, as_clause};
use crate::label::{CategoryId, LabelId};
use crate::model::Model;
use crate::noisy_or::NoisyOr;
use crate::rule::{Body, Rule, RuleId};

/// Reasons that are longer stay as the solver gives them: people do not read on, and models with chains of a thousand
/// rules have a thousand such reasons to minimize.
const MAX_MINIMIZED: usize = 32;
/// Categories that may be looked at to compare wide clauses by their literals; others are compared by proof.
const MAX_CLAUSE_WORK: usize = 100_000_000;
/// So many places are shown with a finding.
const MAX_RELATED: usize = 32;

/// What was found out, besides findings.
pub(super) struct Checked {
    /// Rules that are always true or never.
    pub(super) constant: Vec<bool>,
    /// The hard rules that are not.
    pub(super) hard: Vec<RuleId>,
    pub(super) open: Open,
}

/// What the search could not decide.
#[derive(Default)]
pub(super) struct Open {
    /// Whether the hard rules leave anything possible.
    pub(super) contradiction: bool,
    /// Categories, counted over all labels, that may be impossible.
    pub(super) categories: Vec<usize>,
    /// Categories that are known to be impossible, and reported.
    pub(super) impossible: HashSet<usize>,
    /// Rules that may repeat others, follow from them, or be excluded by them.
    pub(super) rules: BTreeSet<RuleId>,
    /// Steps that the search has taken.
    pub(super) steps: u64,
}

/// Runs all of these checks.
pub(super) fn check(report: &mut Report<'_>) -> Checked {
    let model = report.model();
    let mut scratch = vec![0; model.labels().len()];
    let tables: Vec<Table> = model.rules().iter().map(|rule| Table::new(model, rule, &mut scratch)).collect();
    let mut left = MAX_CLAUSE_WORK;
    let outline = |(rule, table): (&Rule, &Table)| {
        let formula = rule.formula().filter(|_| !table.complete)?;
        let work = formula.atoms().map(|atom| model.label(atom.label()).n_categories()).sum();
        left = left.checked_sub(work)?;
        Some(Outline::new(model, &clause(model, rule)?))
    };
    let mut check = Check {
        logic: Logic::new(model),
        clauses: model.rules().iter().zip(&tables).map(outline).collect(),
        tables,
        constant: vec![false; model.rules().len()],
        hard: Vec::new(),
        solution: None,
        same_as: vec![None; model.rules().len()],
        open: Open::default(),
        report,
    };
    check.constant_rules();
    let is_contradictory = check.contradictions();
    check.duplicates();
    check.consequences();
    check.too_large();
    let hard = model.rule_ids().filter(|&rule| is_hard(model.rule(rule)) && !check.constant[rule.index()]);
    let hard = hard.collect();
    let (steps, _) = check.logic.steps();
    // Where nothing is possible, nothing else is of interest.
    let open = if is_contradictory { Open::default() } else { Open { steps, ..check.open } };
    Checked { constant: check.constant, hard, open }
}

/// What rules that may say the same have in common: their labels, their signature, and what they say if they are wide clauses.
type Likeness = (Vec<LabelId>, Vec<bool>, Option<u64>);

struct Check<'r, 'd> {
    report: &'r mut Report<'d>,
    logic: Logic<'d>,
    tables: Vec<Table>,
    /// The rules that are clauses, or negations of them, and have no complete table.
    clauses: Vec<Option<Outline>>,
    /// Rules that are always true or never.
    constant: Vec<bool>,
    /// Hard rules that neither are constant nor contradict each other.
    hard: Vec<RuleId>,
    /// An assignment that satisfies these.
    solution: Option<Vec<usize>>,
    /// The first rule that says the same.
    same_as: Vec<Option<RuleId>>,
    open: Open,
}

impl<'d> Check<'_, 'd> {
    fn rule(&self, rule: RuleId) -> &'d Rule {
        self.report.model().rule(rule)
    }

    fn rule_ids(&self) -> impl Iterator<Item = RuleId> + use<> {
        self.report.model().rule_ids()
    }

    /// Whether no assignment at all has a literal; if that is not decided, the rule is left open.
    fn is_excluded(&mut self, rule: RuleId, literal: Lit) -> bool {
        match self.logic.ask(&[], &[literal]) {
            Outcome::Conflict(_) => true,
            Outcome::Assignment(_) => false,
            Outcome::Unknown => {
                self.open.rules.insert(rule);
                false
            }
        }
    }

    /// Rules that are always true or never, whatever the other rules say.
    fn constant_rules(&mut self) {
        for rule in self.rule_ids() {
            let table = &self.tables[rule.index()];
            let mut always = table.rows.iter().all(|truth| truth.certain);
            let mut never = table.rows.iter().all(|truth| !truth.possible);
            if !table.complete && (always || never) {
                let proven = self.is_proven_constant(rule, always);
                (always, never) = (always && proven, never && proven);
            }
            if always || never {
                self.constant[rule.index()] = true;
                self.report_constant(rule, always);
            }
        }
    }

    /// Whether a rule that a sample shows to be always true, or never, really is.
    fn is_proven_constant(&mut self, rule: RuleId, always: bool) -> bool {
        let model = self.report.model();
        if let Some(outline) = &self.clauses[rule.index()] {
            return if always { outline.is_always_true } else { outline.is_never_true };
        }
        if let Body::NoisyOr(noisy_or) = self.rule(rule).body() {
            return match always {
                true => always_fires(model, noisy_or),
                false => noisy_or.inhibitions().iter().all(|i| i.probability == 1.0),
            };
        }
        self.logic.knows(rule) && {
            let counterexample = if always { !self.logic.certain(rule) } else { self.logic.possible(rule) };
            self.is_excluded(rule, counterexample)
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

    /// Sets of hard rules that no assignment satisfies, until what is left can be satisfied; whether there are any.
    fn contradictions(&mut self) -> bool {
        let is_eligible = |&rule: &RuleId| is_hard(self.rule(rule)) && !self.constant[rule.index()];
        let all: Vec<RuleId> = self.rule_ids().filter(is_eligible).collect();
        let mut hard: Vec<RuleId> = all.iter().copied().filter(|&rule| self.logic.knows(rule)).collect();
        self.open.contradiction = hard.len() < all.len();
        let mut is_contradictory = false;
        loop {
            match self.logic.ask(&hard, &[]) {
                Outcome::Conflict(conflict) => {
                    is_contradictory = true;
                    let rules = self.logic.minimal(conflict, &[]);
                    let found: HashSet<RuleId> = rules.iter().copied().collect();
                    hard.retain(|rule| !found.contains(rule));
                    report_contradiction(self.report, &rules);
                }
                Outcome::Assignment(assignment) => {
                    self.solution = Some(assignment);
                    break;
                }
                Outcome::Unknown => {
                    self.open.contradiction = true;
                    break;
                }
            }
        }
        self.hard = hard;
        is_contradictory
    }

    /// Whether a rule is worth comparing with others.
    fn speaks(&self, rule: RuleId) -> bool {
        !self.constant[rule.index()] && self.logic.knows(rule) && self.rule(rule).probability() != 0.5
    }

    /// Rules over the same labels that say the same, or the opposite.
    fn duplicates(&mut self) {
        // Rules that a sample cannot tell apart; wide clauses are also kept apart by what they say, of which there may be very many.
        let mut formulas: HashMap<Likeness, Vec<RuleId>> = HashMap::new();
        let mut noisy_ors: HashMap<Vec<(LabelId, CategoryId, u64)>, RuleId> = HashMap::new();
        for rule in self.rule_ids() {
            if !self.speaks(rule) {
                continue;
            }
            match self.rule(rule).body() {
                Body::NoisyOr(noisy_or) if !deterministic(noisy_or) => {
                    let first = *noisy_ors.entry(canonical(noisy_or)).or_insert(rule);
                    self.same_as[rule.index()] = Some(first).filter(|&first| first != rule);
                }
                _ => {
                    let table = &self.tables[rule.index()];
                    let (scope, signature) = (table.scope.clone(), table.signature());
                    let negated: Vec<bool> = signature.iter().map(|possible| !possible).collect();
                    let hash = self.clauses[rule.index()].as_ref().map(|outline| outline.hash);
                    let opposite = formulas.get(&(scope.clone(), negated, hash));
                    let opposite = self.first_that(rule, opposite.map_or(&[], Vec::as_slice), false);
                    let distinct = formulas.entry((scope, signature, hash)).or_default();
                    match self.first_that(rule, distinct, true) {
                        Some(first) => self.same_as[rule.index()] = Some(first),
                        None => {
                            distinct.push(rule);
                            opposite.into_iter().for_each(|first| self.report_opposite(rule, first));
                        }
                    }
                }
            }
            if let Some(first) = self.same_as[rule.index()] {
                self.report_duplicate(rule, first);
            }
        }
    }

    /// The first of some rules, which a sample cannot tell from it, that says the same as a rule, or the opposite.
    fn first_that(&mut self, rule: RuleId, others: &[RuleId], agrees: bool) -> Option<RuleId> {
        others.iter().copied().find(|&other| {
            if self.tables[rule.index()].complete {
                return true;
            }
            if self.clauses[rule.index()].is_some() {
                let [a, b] = [rule, other].map(|id| clause(self.report.model(), self.rule(id)));
                let is_same = |(a, b): (Clause, Clause)| {
                    a.literals == b.literals && (a.positive == b.positive) == agrees
                };
                return a.zip(b).is_some_and(is_same);
            }
            if self.logic.is_spent() {
                self.open.rules.insert(rule);
                return false;
            }
            let differ = self.logic.differ(other, rule);
            self.is_excluded(rule, if agrees { differ } else { !differ })
        })
    }

    fn report_opposite(&mut self, rule: RuleId, first: RuleId) {
        if is_hard(self.rule(rule)) || is_hard(self.rule(first)) {
            return; // A contradiction or a consequence, and reported as one.
        }
        let (p, q) = (self.rule(rule).probability(), self.rule(first).probability());
        let (quoted, original) = (self.report.quoted(rule), self.report.quoted(first));
        let message = format!("rule {quoted} says the opposite of rule {original}");
        let related = self.report.related(first, "first stated here");
        let finding = self.report.add_rule(Severity::Warning, "opposite-rule", rule, message);
        let both = q * (1.0 - p) / (q * (1.0 - p) + (1.0 - q) * p);
        let both = format!("both together count like {original} with probability {both:.4}");
        finding.help = Some(format!("keep one of them; {both}"));
        finding.related = vec![related];
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
        let Some(solution) = self.solution.take().filter(|_| !hard.is_empty()) else { return };
        let mut seen = Witnesses::new(self.report.model(), &hard);
        self.learn(&mut seen, solution);
        self.impossible_categories(&hard, &mut seen);
        self.decided_soft_rules(&hard, &mut seen);
        self.redundant_hard_rules(&hard, &seen);
    }

    /// Takes note of an assignment that satisfies the hard rules.
    fn learn(&mut self, seen: &mut Witnesses<'_>, assignment: Vec<usize>) {
        let (taken, budget) = self.logic.steps();
        let steps = seen.add(assignment, budget.saturating_sub(taken) / 2);
        self.logic.charge(steps);
    }

    /// Hard rules that follow from the other ones. Whatever is reported is left out from then on, so that without
    /// all reported rules the model still means the same.
    fn redundant_hard_rules(&mut self, hard: &[RuleId], seen: &Witnesses<'_>) {
        let among: HashSet<RuleId> = hard.iter().copied().collect();
        let repeats = |&rule: &RuleId| {
            let first = self.same_as[rule.index()];
            first.is_some_and(|first| {
                among.contains(&first) && self.rule(first).probability() == self.rule(rule).probability()
            })
        };
        let mut kept: Vec<RuleId> = hard.iter().copied().filter(|rule| !repeats(rule)).collect();
        for position in (0..kept.len()).rev() {
            let rule = kept[position];
            if seen.needed[rule.index()] {
                continue;
            }
            if self.logic.is_spent() {
                self.open.rules.insert(rule);
                continue;
            }
            let literal = if self.rule(rule).probability() == 1.0 {
                !self.logic.certain(rule)
            } else {
                self.logic.possible(rule)
            };
            let others: Vec<RuleId> = kept.iter().copied().filter(|&other| other != rule).collect();
            match self.logic.ask(&others, &[literal]) {
                Outcome::Conflict(conflict) => {
                    kept = others;
                    self.report_decided(rule, conflict, literal);
                }
                Outcome::Assignment(_) => {}
                Outcome::Unknown => drop(self.open.rules.insert(rule)),
            }
        }
    }

    /// Soft rules that are always true, or never, where the hard rules are satisfied.
    fn decided_soft_rules(&mut self, hard: &[RuleId], seen: &mut Witnesses<'_>) {
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
                    Outcome::Assignment(assignment) => self.learn(seen, assignment),
                    Outcome::Conflict(conflict) => self.report_decided(rule, conflict, literal),
                    Outcome::Unknown => drop(self.open.rules.insert(rule)),
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
        let related = places(self.report, &reasons);
        let finding = self.report.add_rule(Severity::Warning, code, rule, message);
        finding.help = Some(help.to_owned());
        finding.related = related;
    }

    /// Why a literal is excluded, by as few rules as possible.
    fn minimal_reasons(&mut self, conflict: Vec<RuleId>, literal: Lit) -> Vec<RuleId> {
        if conflict.len() > MAX_MINIMIZED { conflict } else { self.logic.minimal(conflict, &[literal]) }
    }

    /// Categories that no assignment with the hard rules satisfied has.
    fn impossible_categories(&mut self, hard: &[RuleId], seen: &mut Witnesses<'_>) {
        let model = self.report.model();
        for label in model.label_ids() {
            let mut impossible: BTreeMap<Vec<RuleId>, Vec<CategoryId>> = BTreeMap::new();
            for (category, index) in model.block(label).enumerate() {
                if seen.present[index] {
                    continue;
                }
                let literal = self.logic.category(index);
                match self.logic.ask(hard, &[literal]) {
                    Outcome::Assignment(assignment) => self.learn(seen, assignment),
                    Outcome::Conflict(conflict) => {
                        let reasons = self.minimal_reasons(conflict, literal);
                        impossible.entry(reasons).or_default().push(CategoryId::new(category));
                        self.open.impossible.insert(index);
                    }
                    Outcome::Unknown => self.open.categories.push(index),
                }
            }
            for (reasons, categories) in impossible {
                report_impossible(self.report, label, &categories, &reasons);
            }
        }
    }

    /// Rules that could not be looked at.
    fn too_large(&mut self) {
        for rule in self.rule_ids() {
            if !self.logic.knows(rule) {
                let message =
                    format!("rule {} is too large to be compared with the others", self.report.quoted(rule));
                let finding = self.report.add_rule(Severity::Note, "not-checked", rule, message);
                finding.help = Some("split it into several rules".to_owned());
            }
        }
    }
}

/// Hard rules that no assignment satisfies.
pub(super) fn report_contradiction(report: &mut Report<'_>, rules: &[RuleId]) {
    let model = report.model();
    let (&last, others) = rules.split_last().expect("a rule that contradicts itself is constant");
    let mut message = format!("{} rules contradict each other", rules.len());
    if rules.len() <= 4 {
        let stated = |&rule: &RuleId| format!("{} {}", report.quoted(rule), demand(model.rule(rule)));
        let others: Vec<String> = others.iter().map(stated).collect();
        message.push_str(&format!(": {}, and {}", others.join(", "), stated(&last)));
    }
    let related = places(report, others);
    let finding = report.add_rule(Severity::Error, "contradiction", last, message);
    finding.help = Some("correct or remove one of them, or make it less certain".to_owned());
    finding.related = related;
}

/// Categories of a label that some rules exclude; some of the hard rules, if it is not known which.
pub(super) fn report_impossible(
    report: &mut Report<'_>,
    label: LabelId,
    categories: &[CategoryId],
    rules: &[RuleId],
) {
    let declared = report.model().label(label);
    let names: Vec<_> =
        categories.iter().map(|&category| format!("`{}`", declared.category(category))).collect();
    let (noun, verb) = if names.len() == 1 { ("category", "is") } else { ("categories", "are") };
    let (listed, exclude) = (report.listed(rules), if rules.len() == 1 { "excludes" } else { "exclude" });
    let pronoun = if names.len() == 1 { "it" } else { "them" };
    let message = format!(
        "{noun} {} of label `{}` {verb} impossible: {listed} {exclude} {pronoun}",
        shortened(&names.join(", ")),
        declared.name()
    );
    let related = places(report, rules);
    let span = report.document().label_span(label);
    let finding = report.add(Severity::Warning, "impossible-category", span, message);
    finding.help = Some("correct a rule, make it less certain, or remove what is impossible".to_owned());
    finding.related = related;
}

/// The places of rules that are the reason of a finding.
fn places(report: &Report<'_>, rules: &[RuleId]) -> Vec<Related> {
    let reason = |&rule: &RuleId| {
        let stated = report.model().rule(rule);
        let message = format!("this {} (probability {})", demand(stated), stated.probability());
        report.related(rule, message)
    };
    rules.iter().take(MAX_RELATED).map(reason).collect()
}

/// Whether there is a label of which every category makes a noisy-or certainly true.
fn always_fires(model: &Model, noisy_or: &NoisyOr) -> bool {
    let mut n_certain: HashMap<LabelId, usize> = HashMap::new();
    for i in noisy_or.inhibitions().iter().filter(|i| i.probability == 0.0) {
        *n_certain.entry(i.label).or_default() += 1;
    }
    n_certain.into_iter().any(|(label, n)| n == model.label(label).n_categories())
}

/// The formula of a rule as a clause, if it is one or the negation of one.
fn clause(model: &Model, rule: &Rule) -> Option<Clause> {
    as_clause(rule.formula()?, |label| model.label(label).n_categories())
}

/// What is worth remembering of a clause about labels of very many categories.
struct Outline {
    /// Of the literals: the same for clauses that say the same.
    hash: u64,
    /// Whether the formula, which is the clause or its negation, is always true, or never.
    is_always_true: bool,
    is_never_true: bool,
}

impl Outline {
    fn new(model: &Model, clause: &Clause) -> Self {
        // A clause is true for some assignment unless nothing fires, and false for some unless a label cannot but fire.
        let n_categories = |label: LabelId| model.label(label).n_categories();
        let is_full = clause.literals.iter().any(|(&label, fires)| fires.len() == n_categories(label));
        let is_empty = clause.literals.values().all(Vec::is_empty);
        let (always, never) = (clause.always || is_full, !clause.always && is_empty);
        let (is_always_true, is_never_true) = if clause.positive { (always, never) } else { (never, always) };
        let mut hasher = DefaultHasher::new();
        clause.literals.hash(&mut hasher);
        Self { hash: hasher.finish(), is_always_true, is_never_true }
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
