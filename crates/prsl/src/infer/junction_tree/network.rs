//! A model as variables and small tables: what the elimination order is searched on and the plan is made of.

use std::cell::OnceCell;

use super::diagram::Diagram;
use crate::error::{Error, Result};
use crate::formula::as_clause;
use crate::label::{CategoryId, LabelId};
use crate::model::Model;
use crate::rule::{Body, RuleId};

/// What a variable of the network stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A label or a state of a decision diagram: tables multiply entry by entry.
    Plain,
    /// Silent (0) or fired (1): tables combine as an or, "fired" if either side fired, and the rule's two
    /// weights enter where the variable is eliminated.
    Fired(RuleId),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Variable {
    pub(crate) n_states: usize,
    pub(crate) kind: Kind,
}

/// Where the numbers of a leaf come from.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// The row's belief about a label.
    Belief(LabelId),
    /// Always the same.
    Fixed(Vec<f64>),
    /// For each entry the probabilities that the rule stays silent and that it fires, to be weighed by the
    /// rule's two weights.
    Rule(RuleId, Vec<[f64; 2]>),
}

/// A table that is given, not computed.
#[derive(Clone, Debug)]
pub(crate) struct Leaf {
    /// Last variable fastest.
    pub(crate) variables: Vec<usize>,
    pub(crate) source: Source,
}

/// The groups of categories that no rule tells apart, per label.
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
    diagram: OnceCell<Option<Diagram>>,
}

/// Whether a network holds its numbers, or its shape alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Filled {
    No,
    Yes,
}

/// Whether a rule enters as its full table or taken apart (by a fired variable, or along its diagram).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Table,
    Apart,
}

/// The largest table that a rule may become.
const MAX_TABLE: f64 = (1u64 << 22) as f64;

/// The model's rules with their shapes, and its labels' states.
pub(crate) struct Factors {
    model: Model,
    pub(crate) states: States,
    pub(crate) list: Vec<Factor>,
}

impl Factors {
    pub(crate) fn new(model: &Model) -> Self {
        let states = States::new(model);
        let list = model.rule_ids().map(|rule| Factor::new(model, &states, rule)).collect();
        Self { model: model.clone(), states, list }
    }

    /// The forms that a rule may take, the table first. Under the maximum a noisy-or with a general q cannot be
    /// taken apart: the maximum of a sum is not the sum of maxima.
    pub(crate) fn forms(&self, factor: &Factor, maximum: bool) -> Vec<Form> {
        let mut forms = Vec::new();
        if factor.table_size <= MAX_TABLE {
            forms.push(Form::Table);
        }
        let splits = match &factor.shape {
            Shape::RankOne(q) => !(maximum && q.iter().flat_map(|(_, q)| q).any(|&q| q != 0.0 && q != 1.0)),
            Shape::Logical(_) => true,
        };
        if splits && factor.n_variables() > 0 {
            forms.push(Form::Apart);
        }
        forms
    }

    /// The network for these forms of the rules: its shape alone, or with the numbers of its tables.
    pub(crate) fn network(&self, forms: &[Form], filled: Filled) -> Result<Network> {
        let mut network = Network { variables: Vec::new(), leaves: Vec::new(), of_label: Vec::new() };
        for label in self.model.label_ids() {
            let n_states = self.states.representatives[label.index()].len();
            // A label that no rule speaks about keeps its belief: nothing to infer.
            let variable = (n_states > 1).then(|| {
                let variable = network.add(n_states, Kind::Plain);
                network.leaves.push(Leaf { variables: vec![variable], source: Source::Belief(label) });
                variable
            });
            network.of_label.push(variable);
        }
        for (factor, form) in self.list.iter().zip(forms) {
            // Room for the variables of a rule that is taken apart, whether it is or not: an elimination order
            // then fits every choice of forms.
            let first = network.variables.len();
            network.variables.extend(vec![UNUSED; factor.n_variables()]);
            match (form, &factor.shape) {
                (Form::Table, _) => self.add_table(&mut network, factor, filled),
                (Form::Apart, Shape::RankOne(q)) => add_fired(&mut network, first, factor.rule, q),
                (Form::Apart, Shape::Logical(scope)) => self.add_chain(&mut network, first, factor, scope)?,
            }
        }
        Ok(network)
    }

    fn scope(&self, factor: &Factor) -> Vec<LabelId> {
        match &factor.shape {
            Shape::RankOne(q) => q.iter().map(|(label, _)| *label).collect(),
            Shape::Logical(scope) => scope.clone(),
        }
    }

    fn add_table(&self, network: &mut Network, factor: &Factor, filled: Filled) {
        let scope = self.scope(factor);
        let variables = scope.iter().filter_map(|label| network.of_label[label.index()]).collect();
        let entries = if filled == Filled::Yes { self.entries(factor, &scope) } else { Vec::new() };
        network.leaves.push(Leaf { variables, source: Source::Rule(factor.rule, entries) });
    }

    /// The rule's outcome for every combination of its labels' states, the last label fastest.
    fn entries(&self, factor: &Factor, scope: &[LabelId]) -> Vec<[f64; 2]> {
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
            let [silent, fired] = self.model.rule(factor.rule).outcome(&assignment);
            entries.push(if factor.flipped { [fired, silent] } else { [silent, fired] });
            let Some(place) = (0..digits.len()).rev().find(|&place| digits[place] + 1 < sizes[place]) else {
                return entries;
            };
            digits[place] += 1;
            digits[place + 1..].fill(0);
        }
    }

    fn add_chain(
        &self,
        network: &mut Network,
        first: usize,
        factor: &Factor,
        scope: &[LabelId],
    ) -> Result<()> {
        let rule = factor.rule;
        let diagram = factor.diagram.get_or_init(|| {
            let formula = self.model.rule(rule).formula().expect("only formulas are logical");
            let choices: Vec<_> = scope
                .iter()
                .map(|&label| (label, self.states.representatives[label.index()].clone()))
                .collect();
            Diagram::compile(formula, &choices)
        });
        let diagram = diagram.as_ref().ok_or_else(|| Error::TooCostly {
            what: format!("rule `{}`", self.model.rule_name(rule)),
            needed: "a decision diagram with more than 4096 states a level".to_owned(),
            limit: "4096".to_owned(),
            advice: "split it into several rules".to_owned(),
        })?;
        let mut before: Option<usize> = None;
        let last = diagram.levels.len() - 1;
        for (index, level) in diagram.levels.iter().enumerate() {
            let label = network.of_label[level.label.index()];
            let mut variables: Vec<usize> = before.into_iter().chain(label).collect();
            if index == last {
                let outcome = |&state: &usize| if diagram.accepts[state] { [0.0, 1.0] } else { [1.0, 0.0] };
                let entries = level.next.iter().map(outcome).collect();
                network.leaves.push(Leaf { variables, source: Source::Rule(rule, entries) });
                break;
            }
            let n_after = diagram.levels[index + 1].n_states;
            let mut table = Vec::with_capacity(level.next.len() * n_after);
            for &state in &level.next {
                table.extend((0..n_after).map(|after| f64::from(after == state)));
            }
            if n_after > 1 {
                let after = first + index;
                network.variables[after] = Variable { n_states: n_after, kind: Kind::Plain };
                variables.push(after);
                before = Some(after);
            } else {
                before = None;
            }
            network.leaves.push(Leaf { variables, source: Source::Fixed(table) });
        }
        Ok(())
    }
}

/// A rank-one rule taken apart: a fired variable, and per label the table (q, 1 − q).
fn add_fired(network: &mut Network, fired: usize, rule: RuleId, q: &[(LabelId, Vec<f64>)]) {
    network.variables[fired] = Variable { n_states: 2, kind: Kind::Fired(rule) };
    for (label, q) in q {
        let table = q.iter().flat_map(|&q| [q, 1.0 - q]).collect();
        let variables = network.of_label[label.index()].into_iter().chain([fired]).collect();
        network.leaves.push(Leaf { variables, source: Source::Fixed(table) });
    }
}

/// A variable that no table has.
const UNUSED: Variable = Variable { n_states: 1, kind: Kind::Plain };

impl Factor {
    /// How many variables it takes when it is taken apart; none if it is small enough as it is.
    pub(crate) fn n_variables(&self) -> usize {
        match &self.shape {
            Shape::RankOne(q) if q.len() > 2 => 1,
            Shape::Logical(scope) if scope.len() > 2 => scope.len() - 1,
            _ => 0,
        }
    }

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
        Self { rule: id, shape, weights, flipped, table_size, diagram: OnceCell::new() }
    }
}

impl States {
    /// Two categories share a state if every rule treats them alike.
    fn new(model: &Model) -> Self {
        let mut signatures: Vec<Vec<Vec<u64>>> =
            model.labels().iter().map(|label| vec![Vec::new(); label.n_categories()]).collect();
        for rule in model.rules() {
            match rule.body() {
                Body::Formula(formula) => {
                    for atom in formula.atoms() {
                        for (category, signature) in signatures[atom.label().index()].iter_mut().enumerate() {
                            signature.push(u64::from(atom.contains(CategoryId::new(category))));
                        }
                    }
                }
                Body::NoisyOr(noisy_or) => {
                    for label in noisy_or.scope() {
                        for (category, signature) in signatures[label.index()].iter_mut().enumerate() {
                            signature.push(noisy_or.inhibition(label, CategoryId::new(category)).to_bits());
                        }
                    }
                }
            }
        }
        let mut states = States { of_category: Vec::new(), representatives: Vec::new() };
        for signatures in signatures {
            let mut ids = std::collections::HashMap::new();
            let mut representatives = Vec::new();
            let of_category = signatures
                .into_iter()
                .enumerate()
                .map(|(category, signature)| {
                    *ids.entry(signature).or_insert_with(|| {
                        representatives.push(CategoryId::new(category));
                        representatives.len() - 1
                    })
                })
                .collect();
            states.of_category.push(of_category);
            states.representatives.push(representatives);
        }
        states
    }
}

/// Variables and the tables over them.
pub(crate) struct Network {
    pub(crate) variables: Vec<Variable>,
    pub(crate) leaves: Vec<Leaf>,
    /// The variable of each label, none for a label of one state.
    pub(crate) of_label: Vec<Option<usize>>,
}

impl Network {
    fn add(&mut self, n_states: usize, kind: Kind) -> usize {
        self.variables.push(Variable { n_states, kind });
        self.variables.len() - 1
    }
}
