//! Checks of rules against each other: contradictions, duplicates and impossible categories.

mod consequences;
mod duplicates;

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::diagnostic::{quoted, shortened};
use crate::label::{CategoryId, LabelId};
use crate::lint::report::Report;
use crate::lint::table::Table;
use crate::lint::{Related, Severity};
use crate::logic::{Lit, Logic, Outcome, is_hard};
use crate::model::Model;
use crate::noisy_or::NoisyOr;
use crate::rule::{Body, Rule, RuleId};

use duplicates::{Outline, clause};

/// Maximum number of categories in clauses that are compared by their literals. Other clauses are compared by the SAT
/// solver.
const MAX_CLAUSE_WORK: usize = 100_000_000;
/// Maximum number of places shown with a finding.
const MAX_RELATED: usize = 32;

/// Results of the checks, besides findings.
pub(super) struct Checked {
    /// Rules that are always true or always false.
    pub(super) constant: Vec<bool>,
    /// Hard rules that are not constant.
    pub(super) hard: Vec<RuleId>,
    pub(super) open: Open,
}

/// Questions that the SAT solver left open.
#[derive(Default)]
pub(super) struct Open {
    /// Whether it is open if the hard rules contradict each other.
    pub(super) contradiction: bool,
    /// Categories, by their index among all labels, that may be impossible.
    pub(super) categories: Vec<usize>,
    /// Categories that have been reported as impossible.
    pub(super) impossible: HashSet<usize>,
    /// Rules that may be duplicates, consequences or excluded.
    pub(super) rules: BTreeSet<RuleId>,
    /// Number of steps of the SAT solver.
    pub(super) steps: u64,
}

/// Runs all checks of this module.
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
    // After a contradiction, other open questions are irrelevant.
    let open = if is_contradictory { Open::default() } else { Open { steps, ..check.open } };
    Checked { constant: check.constant, hard, open }
}

struct Check<'r, 'd> {
    report: &'r mut Report<'d>,
    logic: Logic<'d>,
    tables: Vec<Table>,
    /// Clauses, or negations of clauses, without a complete table.
    clauses: Vec<Option<Outline>>,
    /// Rules that are always true or always false.
    constant: Vec<bool>,
    /// Hard rules that are not constant and do not contradict each other.
    hard: Vec<RuleId>,
    /// An assignment that satisfies these rules.
    solution: Option<Vec<usize>>,
    /// The first equivalent rule.
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

    /// Whether no assignment satisfies a literal. If this is undecided, the rule is added to the open ones.
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

    /// Reports rules that are always true or always false, whatever the other rules are.
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

    /// Whether a rule that is constant in a sample is always so.
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

    /// Reports sets of hard rules that no assignment satisfies, until the rest is satisfiable. Returns whether there
    /// are any.
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

    /// Whether a rule is compared with others.
    fn speaks(&self, rule: RuleId) -> bool {
        !self.constant[rule.index()] && self.logic.knows(rule) && self.rule(rule).probability() != 0.5
    }

    /// Reports rules that were too large to be encoded.
    fn too_large(&mut self) {
        for rule in self.rule_ids() {
            if !self.logic.knows(rule) {
                let message =
                    format!("rule {} is too large to be compared with the others", self.report.quoted(rule));
                let finding = self.report.add_rule(Severity::Warning, "not-checked", rule, message);
                finding.help = Some("split it into several rules".to_owned());
            }
        }
    }
}

/// Reports hard rules that no assignment satisfies.
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

/// Reports categories of a label that `rules` exclude. `rules` may be all hard rules if the reason is unknown.
pub(super) fn report_impossible(
    report: &mut Report<'_>,
    label: LabelId,
    categories: &[CategoryId],
    rules: &[RuleId],
) {
    let declared = report.model().label(label);
    let names: Vec<_> = categories.iter().map(|&category| quoted(declared.category(category))).collect();
    let (noun, verb) = if names.len() == 1 { ("category", "is") } else { ("categories", "are") };
    let (listed, exclude) = (report.listed(rules), if rules.len() == 1 { "excludes" } else { "exclude" });
    let pronoun = if names.len() == 1 { "it" } else { "them" };
    let message = format!(
        "{noun} {} of label {} {verb} impossible: {listed} {exclude} {pronoun}",
        shortened(&names.join(", ")),
        quoted(declared.name())
    );
    let related = places(report, rules);
    let span = report.document().label_span(label);
    let finding = report.add(Severity::Warning, "impossible-category", span, message);
    finding.help = Some("correct a rule, make it less certain, or remove what is impossible".to_owned());
    finding.related = related;
}

/// The places of the rules that cause a finding.
fn places(report: &Report<'_>, rules: &[RuleId]) -> Vec<Related> {
    let reason = |&rule: &RuleId| {
        let stated = report.model().rule(rule);
        let message = format!("this {} (probability {})", demand(stated), stated.probability());
        report.related(rule, message)
    };
    rules.iter().take(MAX_RELATED).map(reason).collect()
}

/// Whether a noisy-or has a label whose categories all have q = 0.
fn always_fires(model: &Model, noisy_or: &NoisyOr) -> bool {
    let mut n_certain: HashMap<LabelId, usize> = HashMap::new();
    for i in noisy_or.inhibitions().iter().filter(|i| i.probability == 0.0) {
        *n_certain.entry(i.label).or_default() += 1;
    }
    n_certain.into_iter().any(|(label, n)| n == model.label(label).n_categories())
}

/// The requirement of a hard rule, as a phrase after its name.
fn demand(rule: &Rule) -> &'static str {
    match (rule.body(), rule.probability() == 1.0) {
        (Body::Formula(_), true) => "must hold",
        (Body::Formula(_), false) => "must not hold",
        (Body::NoisyOr(_), true) => "must have one of its categories present",
        (Body::NoisyOr(_), false) => "must have no category of inhibition 0 present",
    }
}
