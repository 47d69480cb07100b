//! Checks that the rules of a model are well formed.

use std::collections::HashSet;

use crate::diagnostic::{quoted, shortened};
use crate::error::{Error, Result};
use crate::formula::{Formula, MAX_DEPTH, Node};
use crate::label::{CategoryId, Label, LabelId};
use crate::names::Names;
use crate::noisy_or::NoisyOr;
use crate::notation::numbered;
use crate::rule::{Body, LearnedNote, Rule};
use crate::syntax::print;

/// Checks every rule, and that no two have the same name.
pub(super) fn rules(names: &Names, rules: &[Rule]) -> Result<()> {
    let mut seen = HashSet::new();
    for (index, rule) in rules.iter().enumerate() {
        // The name is created only for an error. Printing every rule of a large model is slow.
        check_rule(names.labels(), rule, &|| rule_name(names, rule, index))?;
        if let Some(name) = rule.name()
            && !seen.insert(name)
        {
            return Err(Error::DuplicateRule { name: name.to_owned() });
        }
    }
    Ok(())
}

/// The rule in messages: its name, or its text if it has none.
///
/// A rule with unknown ids cannot be printed, so messages refer to it by its number.
pub(super) fn rule_name(names: &Names, rule: &Rule, index: usize) -> String {
    let is_known = |label: LabelId, categories: &[CategoryId]| {
        let known = names.labels().get(label.index());
        known.is_some_and(|known| categories.iter().all(|category| category.index() < known.n_categories()))
    };
    let is_printable = || match rule.body() {
        Body::Formula(formula) => formula.atoms().all(|atom| is_known(atom.label(), atom.categories())),
        Body::NoisyOr(noisy_or) => noisy_or.inhibitions().iter().all(|i| is_known(i.label, &[i.category])),
    };
    match rule.name() {
        Some(name) => shortened(name),
        None if is_printable() => shortened(&print::body(names, rule.body())),
        None => format!("rule {}", index + 1),
    }
}

fn check_rule(labels: &[Label], rule: &Rule, name: &dyn Fn() -> String) -> Result<()> {
    if rule.name() == Some("") {
        return Err(Error::EmptyName { what: "a rule".to_owned() });
    }
    if !(0.0..=1.0).contains(&rule.probability()) {
        return Err(Error::RuleProbability { rule: name(), value: rule.probability() });
    }
    if let Some((what, value, wanted)) = rule.learned().and_then(LearnedNote::problem) {
        return Err(Error::LearnedNote { rule: name(), what, value, wanted });
    }
    match rule.body() {
        Body::Formula(formula) => check_formula(labels, formula, name),
        Body::NoisyOr(noisy_or) => check_noisy_or(labels, noisy_or, name),
    }
}

fn check_formula(labels: &[Label], formula: &Formula, name: &dyn Fn() -> String) -> Result<()> {
    if formula.depth() > MAX_DEPTH {
        return Err(Error::TooDeep { rule: name(), depth: formula.depth(), limit: MAX_DEPTH });
    }
    for node in formula.nodes() {
        match node {
            Node::Atom(atom) => {
                check_ids(labels, atom.label(), atom.categories(), name)?;
                if atom.categories().is_empty() {
                    let label = labels[atom.label().index()].name().to_owned();
                    return Err(Error::EmptyAtom { rule: name(), label });
                }
            }
            Node::Count(_, n, members) if *n > members.len() => {
                return Err(Error::Count { rule: name(), n: *n, members: members.len() });
            }
            _ => {}
        }
    }
    Ok(())
}

fn check_noisy_or(labels: &[Label], noisy_or: &NoisyOr, name: &dyn Fn() -> String) -> Result<()> {
    let mut seen = HashSet::new();
    if noisy_or.inhibitions().is_empty() {
        return Err(Error::EmptyNoisyOr { rule: name() });
    }
    for inhibition in noisy_or.inhibitions() {
        check_ids(labels, inhibition.label, &[inhibition.category], name)?;
        let label = &labels[inhibition.label.index()];
        let atom = || format!("{}={}", label.name(), label.category(inhibition.category));
        let value = inhibition.probability;
        if !(0.0..=1.0).contains(&value) {
            return Err(Error::InhibitionProbability { rule: name(), atom: atom(), value });
        }
        if !seen.insert((inhibition.label, inhibition.category)) {
            return Err(Error::RepeatedInhibition { rule: name(), atom: atom() });
        }
    }
    Ok(())
}

fn check_ids(
    labels: &[Label],
    label: LabelId,
    categories: &[CategoryId],
    rule: &dyn Fn() -> String,
) -> Result<()> {
    let context = || format!(" in rule {}", quoted(rule()));
    let Some(known) = labels.get(label.index()) else {
        return Err(Error::unknown_label(&numbered(label.index()), context(), []));
    };
    match categories.iter().find(|category| category.index() >= known.n_categories()) {
        Some(category) => {
            Err(Error::unknown_category(known.name(), &numbered(category.index()), context(), []))
        }
        None => Ok(()),
    }
}
