//! Features: the violation of a rule, as a property of assignments.

use serde::{Deserialize, Serialize};

use crate::formula::{Atom, Bound, Formula};
use crate::label::{CategoryId, LabelId};
use crate::model::Model;
use crate::rule::{Body, Rule};

/// "The category of a label is one of these", one part of a conjunction.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Literal {
    /// The label.
    pub(crate) label: usize,
    /// The categories, in ascending order: at least one, and not all.
    pub(crate) categories: Vec<usize>,
}

/// What a learned rule forbids, more or less.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Feature {
    /// All literals hold. The rule is the clause of their negations. The labels are distinct and in ascending order.
    Conjunction(Vec<Literal>),
    /// Fewer than `n` of the yes/no labels are yes. The rule is `at_least n of`.
    Fewer(usize),
    /// More than `n` of the yes/no labels are yes. The rule is `at_most n of`.
    More(usize),
}

/// The labels that count rules are about: those with the categories yes and no.
pub(crate) fn yes_no_labels(model: &Model) -> Vec<usize> {
    model.label_ids().filter(|&label| model.label(label).is_binary()).map(LabelId::index).collect()
}

impl Literal {
    pub(crate) fn holds(&self, category: usize) -> bool {
        self.categories.binary_search(&category).is_ok()
    }

    /// The other categories of the label.
    pub(crate) fn negated(&self, n_categories: usize) -> Vec<usize> {
        (0..n_categories).filter(|&category| !self.holds(category)).collect()
    }
}

impl Feature {
    /// The labels that it is about.
    pub(crate) fn labels(&self, counted: &[usize]) -> Vec<usize> {
        match self {
            Self::Conjunction(literals) => literals.iter().map(|literal| literal.label).collect(),
            Self::Fewer(_) | Self::More(_) => counted.to_vec(),
        }
    }

    /// Whether an assignment violates the rule. `counted` are the labels of count rules, whose category yes is the first.
    pub(crate) fn is_violated(&self, category: impl Fn(usize) -> usize, counted: &[usize]) -> bool {
        let n_yes = || counted.iter().filter(|&&label| category(label) == 0).count();
        match self {
            Self::Conjunction(literals) => {
                literals.iter().all(|literal| literal.holds(category(literal.label)))
            }
            Self::Fewer(n) => n_yes() < *n,
            Self::More(n) => n_yes() > *n,
        }
    }

    /// The rule of a probability.
    ///
    /// A clause is written as a person would: an implication whose condition is what is asserted of the labels, and
    /// whose conclusion is one literal, a positive one if there is one.
    pub(crate) fn rule(&self, model: &Model, counted: &[usize], probability: f64) -> Rule {
        let formula = match self {
            Self::Conjunction(literals) => clause(model, literals),
            Self::Fewer(n) => count(model, counted, Bound::AtLeast, *n),
            Self::More(n) => count(model, counted, Bound::AtMost, *n),
        };
        Rule::new(probability, Body::Formula(formula))
    }

    /// The rule as text, without its probability.
    pub(crate) fn text(&self, model: &Model, counted: &[usize]) -> String {
        let rule = self.rule(model, counted, 0.9);
        let alone = model.edit().retain_rules(|_| false).add_rule(rule).build();
        alone.map_or_else(|_| String::new(), |model| model.rule_text(crate::rule::RuleId::new(0)))
    }

    /// The literal of a conjunction that becomes the conclusion of the rule; `None` for other rules.
    pub(crate) fn conclusion(&self, model: &Model) -> Option<usize> {
        let Self::Conjunction(literals) = self else { return None };
        let size = |literal: &Literal| model.labels()[literal.label].n_categories();
        // "if a and b then c": c is the literal that the violation denies. A denied `yes` is preferred, then a denial of few
        // categories.
        let score = |&place: &usize| {
            let literal = &literals[place];
            let asserted = literal.negated(size(literal));
            (
                !(is_yes_no(model, literal.label) && asserted == [0]),
                asserted.len() > 1,
                std::cmp::Reverse(place),
            )
        };
        (0..literals.len()).min_by_key(score)
    }
}

fn is_yes_no(model: &Model, label: usize) -> bool {
    model.label(LabelId::new(label)).is_binary()
}

fn clause(model: &Model, literals: &[Literal]) -> Formula {
    let conclusion =
        Feature::Conjunction(literals.to_vec()).conclusion(model).expect("a clause has literals");
    let denied = &literals[conclusion];
    let then =
        literal_formula(model, denied.label, &denied.negated(model.labels()[denied.label].n_categories()));
    let mut conditions: Vec<Formula> = (0..literals.len())
        .filter(|&place| place != conclusion)
        .map(|place| literal_formula(model, literals[place].label, &literals[place].categories))
        .collect();
    match conditions.len() {
        0 => then,
        1 => conditions.remove(0).implies(then),
        _ => Formula::and(conditions).implies(then),
    }
}

/// A literal as an atom, or as the negation of one where that is shorter.
fn literal_formula(model: &Model, label: usize, categories: &[usize]) -> Formula {
    let n_categories = model.labels()[label].n_categories();
    let rest: Vec<usize> = (0..n_categories).filter(|category| !categories.contains(category)).collect();
    let is_no = is_yes_no(model, label) && categories == [1];
    let atom = |categories: &[usize]| {
        let categories = categories.iter().map(|&category| CategoryId::new(category));
        Formula::atom(Atom::one_of(LabelId::new(label), categories))
    };
    match is_no || (n_categories > 2 && rest.len() < categories.len()) {
        true => atom(&rest).not(),
        false => atom(categories),
    }
}

fn count(model: &Model, counted: &[usize], bound: Bound, n: usize) -> Formula {
    Formula::count(bound, n, counted.iter().map(|&label| literal_formula(model, label, &[0])))
}
