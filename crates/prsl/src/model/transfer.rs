//! Moves rules, expectations and combinations from one model to another whose labels may have other ids.
//!
//! Models that share their labels have the same ids, and need no lookup.

use crate::combination::{Combination, completed, named};
use crate::diagnostic::quoted;
use crate::error::{Error, Result};
use crate::expectation::{Condition, Expectation, Given};
use crate::formula::Atom;
use crate::label::{CategoryId, LabelId};
use crate::names::Names;
use crate::noisy_or::{Inhibition, NoisyOr};
use crate::rule::{Body, Rule};
use crate::syntax::print;

/// A rule of one model with the ids of another, found by name.
pub(super) fn rule(rule: Rule, origin: &Names, target: &Names) -> Result<Rule> {
    if std::ptr::eq(origin, target) {
        return Ok(rule);
    }
    let context = || {
        let text = || print::body(origin, rule.body());
        let name = rule.name().map_or_else(text, str::to_owned);
        format!(" in rule {}", quoted(&name))
    };
    let body = match rule.body() {
        Body::Formula(formula) => {
            Body::Formula(formula.try_map_atoms(|atom| transfer_atom(atom, origin, target, &context))?)
        }
        Body::NoisyOr(noisy_or) => {
            let inhibitions = noisy_or
                .inhibitions()
                .iter()
                .map(|i| {
                    let atom = transfer_atom(&Atom::new(i.label, i.category), origin, target, &context)?;
                    let category = atom.single().expect("one category stays one");
                    Ok(Inhibition { label: atom.label(), category, probability: i.probability })
                })
                .collect::<Result<Vec<_>>>()?;
            Body::NoisyOr(NoisyOr::new(inhibitions))
        }
    };
    // The body says the same with other ids, so the note stays.
    let learned = rule.learned().copied();
    Ok(rule.with_body(body).with_learned(learned))
}

fn transfer_atom(atom: &Atom, origin: &Names, target: &Names, context: &dyn Fn() -> String) -> Result<Atom> {
    let label = &origin.labels()[atom.label().index()];
    let mut id = None;
    let mut categories = Vec::with_capacity(atom.categories().len());
    for &category in atom.categories() {
        let (label, category) = target.find(label.name(), label.category(category), context)?;
        id = Some(label);
        categories.push(category);
    }
    Ok(Atom::one_of(id.expect("an atom of a model has categories"), categories))
}

/// An expectation of one model with the ids of another, found by name.
pub(super) fn expectation(expectation: Expectation, origin: &Names, target: &Names) -> Result<Expectation> {
    if std::ptr::eq(origin, target) {
        return Ok(expectation);
    }
    let context = || " in an expectation".to_owned();
    let transfer = |atom: &Atom| transfer_atom(atom, origin, target, &context);
    let given = expectation
        .given
        .iter()
        .map(|given| match given {
            Given::Observed(label, category) => {
                let atom = transfer(&Atom::new(*label, *category))?;
                Ok(Given::Observed(atom.label(), atom.single().expect("one category stays one")))
            }
            Given::Belief(label, belief) => {
                let atom = transfer(&Atom::new(*label, CategoryId::new(0)))?;
                Ok(Given::Belief(atom.label(), belief.clone()))
            }
        })
        .collect::<Result<_>>()?;
    let condition = match &expectation.condition {
        Condition::Marginal(atom, comparison) => Condition::Marginal(transfer(atom)?, *comparison),
        Condition::Formula(formula, comparison) => {
            Condition::Formula(formula.try_map_atoms(transfer)?, *comparison)
        }
        Condition::Mpe(atoms) => Condition::Mpe(atoms.iter().map(transfer).collect::<Result<_>>()?),
    };
    Ok(Expectation { given, condition })
}

/// Combinations of one model with the ids of another, found by name.
pub(super) fn combinations(
    list: Vec<Combination>,
    origin: &Names,
    target: &Names,
) -> Result<Vec<Combination>> {
    if std::ptr::eq(origin, target) {
        return Ok(list);
    }
    list.into_iter().map(|combination| transfer_combination(&combination, origin, target)).collect()
}

fn transfer_combination(combination: &Combination, origin: &Names, target: &Names) -> Result<Combination> {
    let context = || {
        let text = print::combination(origin, combination.categories());
        format!(" in combination {}", quoted(&text))
    };
    let mut given = vec![None; target.labels().len()];
    for (label, category) in named(origin.labels(), combination.categories()) {
        let label = &origin.labels()[label.index()];
        let (label, category) = target.find(label.name(), label.category(category), &context)?;
        given[label.index()] = Some(category.index());
    }
    let incomplete = |label: LabelId| Error::IncompleteCombination {
        label: target.labels()[label.index()].name().to_owned(),
    };
    Ok(Combination::new(combination.weight(), completed(target.labels(), &given).map_err(incomplete)?))
}
