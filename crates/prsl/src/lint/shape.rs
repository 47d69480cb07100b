//! Checks of a formula's syntax: conjunctions of categories of one label, and chained implications.

use std::collections::HashMap;

use super::Severity;
use super::report::Report;
use crate::diagnostic::{quoted, shortened};
use crate::formula::{Atom, Formula, Node, NodeId};
use crate::label::{CategoryId, LabelId};
use crate::rule::RuleId;
use crate::syntax::{self, print};

/// Runs these checks. Constant rules are skipped, because they have been reported already.
pub(super) fn check(report: &mut Report<'_>, constant: &[bool]) {
    let model = report.model();
    for rule in model.rule_ids() {
        let Some(formula) = model.rule(rule).formula() else { continue };
        if !constant[rule.index()] {
            exclusive_categories(report, rule, formula);
        }
        chained_implications(report, rule, formula);
    }
}

/// `half -> parked & driving`: a conjunction that never holds, because a label has one category at a time.
fn exclusive_categories(report: &mut Report<'_>, rule: RuleId, formula: &Formula) {
    let conjunctions = formula.nodes().iter().filter_map(|node| match node {
        Node::And(children) => Some(children),
        _ => None,
    });
    let found = conjunctions.into_iter().find_map(|children| exclusive(report, formula, children));
    let Some((label, literals)) = found else { return };
    let label = report.model().label(label).name();
    let literals: Vec<String> =
        literals.into_iter().map(|id| print::formula(report.names(), &formula.part(id))).collect();
    let message = format!(
        "{} in rule {} never holds: label {} has one category at a time",
        quoted(literals.join(" & ")),
        report.quoted(rule),
        quoted(label)
    );
    let either = quoted(literals.join(" | "));
    let finding = report.add_rule(Severity::Warning, "exclusive-categories", rule, message);
    finding.help = Some(format!("write {either} if either is meant, or remove what excludes the others"));
}

/// The literals of a conjunction that exclude all categories of a label.
fn exclusive(report: &Report<'_>, formula: &Formula, children: &[NodeId]) -> Option<(LabelId, Vec<NodeId>)> {
    // For each label, the literals about it and the remaining categories.
    let mut left: HashMap<LabelId, (Vec<NodeId>, Vec<CategoryId>)> = HashMap::new();
    for &id in children {
        let Some((atom, holds)) = literal(formula, id) else { continue };
        let n_categories = report.model().label(atom.label()).n_categories();
        let all = || (Vec::new(), (0..n_categories).map(CategoryId::new).collect());
        let (literals, categories) = left.entry(atom.label()).or_insert_with(all);
        literals.push(id);
        categories.retain(|&category| atom.contains(category) == holds);
        if categories.is_empty() && literals.len() > 1 {
            return Some((atom.label(), std::mem::take(literals)));
        }
    }
    None
}

/// The atom of a literal, and whether it is positive.
fn literal(formula: &Formula, id: NodeId) -> Option<(&Atom, bool)> {
    match &formula.nodes()[id.index()] {
        Node::Atom(atom) => Some((atom, true)),
        Node::Not(child) => match &formula.nodes()[child.index()] {
            Node::Atom(atom) => Some((atom, false)),
            _ => None,
        },
        _ => None,
    }
}

/// `a -> b -> c` means `a -> (b -> c)`, but `(a -> b) -> c` may be intended.
fn chained_implications(report: &mut Report<'_>, rule: RuleId, formula: &Formula) {
    let nodes = formula.nodes();
    let is_chain = |node: &&Node| match node {
        Node::Implies(_, then) => matches!(nodes[then.index()], Node::Implies(..)),
        Node::ImpliedBy(then, _) => matches!(nodes[then.index()], Node::ImpliedBy(..)),
        _ => false,
    };
    let Some(chain) = nodes.iter().rev().find(is_chain) else { return };
    let source = &report.document().source()[report.document().rule_span(rule)];
    if !syntax::chains_implications(&crate::json::formula_source(source)) {
        return;
    }
    let part = |id: NodeId| {
        let text = print::formula(report.names(), &formula.part(id));
        let is_whole = matches!(nodes[id.index()], Node::Atom(_) | Node::Constant(_) | Node::Count(..));
        shortened(&if is_whole { text } else { format!("({text})") })
    };
    let [read, other] = match chain {
        Node::Implies(a, then) => match &nodes[then.index()] {
            Node::Implies(b, c) => {
                let [a, b, c] = [a, b, c].map(|&id| part(id));
                [format!("{a} -> ({b} -> {c})"), format!("({a} -> {b}) -> {c}")]
            }
            _ => return,
        },
        Node::ImpliedBy(then, c) => match &nodes[then.index()] {
            Node::ImpliedBy(a, b) => {
                let [a, b, c] = [a, b, c].map(|&id| part(id));
                [format!("({a} <- {b}) <- {c}"), format!("{a} <- ({b} <- {c})")]
            }
            _ => return,
        },
        _ => return,
    };
    let message = format!("the implications of rule {} are read as {}", report.quoted(rule), quoted(&read));
    let finding = report.add_rule(Severity::Note, "chained-implication", rule, message);
    finding.help = Some(format!("write these parentheses, or {} if that is meant", quoted(&other)));
}
