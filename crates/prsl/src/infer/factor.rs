//! Rules as inference sees them: their shapes recognized, categories that no rule tells apart merged.

use std::sync::OnceLock;

use super::diagram::Diagram;
use super::outcome::Outcome;
use crate::error::{Error, Result};
use crate::formula::as_clause;
use crate::label::{CategoryId, LabelId};
use crate::model::Model;
use crate::rule::{Body, RuleId};

/// The groups of categories that no rule tells apart, per label.
#[derive(Clone, Debug)]
pub(crate) struct States {
    /// For every category of every label (flat), its state.
    pub(crate) of_category: Vec<Vec<usize>>,
    /// For every label, the first category of each state.
    pub(crate) representatives: Vec<Vec<CategoryId>>,
}

/// What a rule is to inference, after its shape has been recognized.
#[derive(Clone, Debug)]
pub(crate) enum Shape {
    /// Q = ∏ q: per label of the scope, q of each state.
    RankOne(Vec<(LabelId, Vec<f64>)>),
    /// Any other formula.
    Logical(Vec<LabelId>),
}

#[derive(Clone, Debug)]
pub(crate) struct Factor {
    pub(crate) rule: RuleId,
    pub(crate) shape: Shape,
    /// What the rule weighs by when it is silent and when it has fired.
    pub(crate) weights: [f64; 2],
    /// Whether "fired" means that the formula does not hold: the formula is the negation of a clause.
    flipped: bool,
    /// Entries of its full table.
    pub(crate) table_size: f64,
    /// Its decision diagram, once it was asked for; `None` inside if that is too large.
    diagram: OnceLock<Option<Diagram>>,
}

/// The model's rules with their shapes, and its labels' states.
pub(crate) struct Factors {
    pub(crate) model: Model,
    pub(crate) states: States,
    pub(crate) list: Vec<Factor>,
}

impl Factors {
    pub(crate) fn new(model: &Model) -> Self {
        Self::with_states(model, States::new(model))
    }

    /// The same with states of their own for categories that no rule tells apart.
    pub(crate) fn with_states(model: &Model, states: States) -> Self {
        let list = model.rule_ids().map(|rule| Factor::new(model, &states, rule)).collect();
        Self { model: model.clone(), states, list }
    }

    /// The labels of a rule.
    pub(crate) fn scope(&self, factor: &Factor) -> Vec<LabelId> {
        match &factor.shape {
            Shape::RankOne(q) => q.iter().map(|(label, _)| *label).collect(),
            Shape::Logical(scope) => scope.clone(),
        }
    }

    /// The rule's outcome for every combination of its labels' states, the last label fastest.
    pub(crate) fn entries(&self, factor: &Factor, scope: &[LabelId]) -> Vec<Outcome> {
        let sizes: Vec<usize> =
            scope.iter().map(|label| self.states.representatives[label.index()].len()).collect();
        let mut assignment = vec![0; self.model.labels().len()];
        for (label, representatives) in self.states.representatives.iter().enumerate() {
            assignment[label] = representatives[0].index();
        }
        let mut digits = vec![0; scope.len()];
        let mut entries = Vec::with_capacity(sizes.iter().product());
        loop {
            for (label, &digit) in scope.iter().zip(&digits) {
                assignment[label.index()] = self.states.representatives[label.index()][digit].index();
            }
            let outcome = self.model.rule(factor.rule).precise_outcome(&assignment);
            entries.push(if factor.flipped { outcome.flipped() } else { outcome });
            let Some(place) = (0..digits.len()).rev().find(|&place| digits[place] + 1 < sizes[place]) else {
                return entries;
            };
            digits[place] += 1;
            digits[place + 1..].fill(0);
        }
    }

    /// The decision diagram of a logical rule, or that it is too large.
    pub(crate) fn require_diagram<'a>(&self, factor: &'a Factor) -> Result<&'a Diagram> {
        self.diagram(factor).ok_or_else(|| Error::TooCostly {
            what: format!("rule `{}`", self.model.rule_name(factor.rule)),
            needed: "a decision diagram with more than 4096 states a level".to_owned(),
            limit: "4096".to_owned(),
            advice: "split it into several rules".to_owned(),
        })
    }

    /// The decision diagram of a logical rule, `None` if it is too large.
    pub(crate) fn diagram<'a>(&self, factor: &'a Factor) -> Option<&'a Diagram> {
        let diagram = factor.diagram.get_or_init(|| {
            let formula = self.model.rule(factor.rule).formula().expect("only formulas are logical");
            let choices: Vec<_> = self
                .scope(factor)
                .into_iter()
                .map(|label| (label, self.states.representatives[label.index()].clone()))
                .collect();
            Diagram::compile(formula, &choices)
        });
        diagram.as_ref()
    }
}

impl Factor {
    fn new(model: &Model, states: &States, id: RuleId) -> Self {
        let rule = model.rule(id);
        let p = rule.probability();
        let of_states = |label: LabelId, q: &dyn Fn(CategoryId) -> f64| -> (LabelId, Vec<f64>) {
            (label, states.representatives[label.index()].iter().map(|&category| q(category)).collect())
        };
        let (shape, flipped) = match rule.body() {
            Body::NoisyOr(noisy_or) => {
                let q = noisy_or
                    .scope()
                    .into_iter()
                    .map(|label| of_states(label, &|category| noisy_or.inhibition(label, category)))
                    .collect();
                (Shape::RankOne(q), false)
            }
            Body::Formula(formula) => match as_clause(formula, |label| model.label(label).n_categories()) {
                Some(clause) if !clause.always => {
                    let q = clause
                        .literals
                        .iter()
                        .map(|(&label, fires)| {
                            of_states(label, &|category| if fires.contains(&category) { 0.0 } else { 1.0 })
                        })
                        .collect();
                    (Shape::RankOne(q), !clause.positive)
                }
                _ => (Shape::Logical(formula.scope()), false),
            },
        };
        let scope: Vec<LabelId> = match &shape {
            Shape::RankOne(q) => q.iter().map(|(label, _)| *label).collect(),
            Shape::Logical(scope) => scope.clone(),
        };
        let table_size = scope.iter().map(|l| states.representatives[l.index()].len() as f64).product();
        let weights = if flipped { [p, 1.0 - p] } else { [1.0 - p, p] };
        Self { rule: id, shape, weights, flipped, table_size, diagram: OnceLock::new() }
    }
}

impl States {
    /// Two categories share a state if every rule treats them alike.
    fn new(model: &Model) -> Self {
        let mut rules_of: Vec<Vec<RuleId>> = vec![Vec::new(); model.labels().len()];
        for rule in model.rule_ids() {
            model.rule(rule).scope().into_iter().for_each(|label| rules_of[label.index()].push(rule));
        }
        let (of_category, representatives) =
            model.label_ids().map(|label| Self::of_label(model, &rules_of[label.index()], label)).unzip();
        Self { of_category, representatives }
    }

    /// A state for every category, whatever the rules say.
    pub(crate) fn of_categories(model: &Model) -> Self {
        let sizes = || model.labels().iter().map(|label| label.n_categories());
        Self {
            of_category: sizes().map(|n| (0..n).collect()).collect(),
            representatives: sizes().map(|n| (0..n).map(CategoryId::new).collect()).collect(),
        }
    }

    /// Of one label and some rules: the state of each category, and the first category of each state.
    pub(crate) fn of_label(model: &Model, rules: &[RuleId], label: LabelId) -> (Vec<usize>, Vec<CategoryId>) {
        let categories = || (0..model.label(label).n_categories()).map(CategoryId::new);
        let mut signatures: Vec<Vec<u64>> = categories().map(|_| Vec::new()).collect();
        for &rule in rules {
            match model.rule(rule).body() {
                Body::Formula(formula) => {
                    for atom in formula.atoms().filter(|atom| atom.label() == label) {
                        for category in categories() {
                            signatures[category.index()].push(u64::from(atom.contains(category)));
                        }
                    }
                }
                Body::NoisyOr(noisy_or) => {
                    for category in categories() {
                        signatures[category.index()].push(noisy_or.inhibition(label, category).to_bits());
                    }
                }
            }
        }
        let mut ids = std::collections::HashMap::new();
        let mut representatives = Vec::new();
        let of_category = signatures.into_iter().zip(categories()).map(|(signature, category)| {
            *ids.entry(signature).or_insert_with(|| {
                representatives.push(category);
                representatives.len() - 1
            })
        });
        (of_category.collect(), representatives)
    }
}
