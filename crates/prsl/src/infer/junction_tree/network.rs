//! A model as variables and small tables: what the elimination order is searched on and the plan is made of.

use crate::diagnostic::quoted;
use crate::error::{Error, Result};
use crate::infer::factor::{Factor, Factors, Shape};
use crate::infer::limits::quantity;
use crate::infer::outcome::Outcome;
use crate::infer::semiring::Aim;
use crate::label::LabelId;
use crate::rule::RuleId;

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
    Rule(RuleId, Vec<Outcome>),
}

/// A table that is given, not computed.
#[derive(Clone, Debug)]
pub(crate) struct Leaf {
    /// Last variable fastest.
    pub(crate) variables: Vec<usize>,
    pub(crate) source: Source,
}

impl Leaf {
    /// The memory that it takes.
    pub(crate) fn bytes(&self) -> u64 {
        let of_source = match &self.source {
            Source::Belief(_) => 0,
            Source::Fixed(numbers) => size_of_val(&numbers[..]),
            Source::Rule(_, entries) => size_of_val(&entries[..]),
        };
        (size_of::<Self>() + size_of_val(&self.variables[..]) + of_source) as u64
    }
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

/// How a rank-one rule is taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Split {
    /// By a variable that is silent or fired: nothing negative, three products where two tables share it.
    Or,
    /// By a variable whose states are "whether or not it fires" and "silent": two products, but what fires is a
    /// difference, which may lose digits. For sums alone.
    Signed,
}

/// The largest table that a rule may become.
const MAX_TABLE: f64 = (1u64 << 22) as f64;

impl Factors {
    /// The forms that a rule may take, the table first; an error if there is none.
    ///
    /// Under the maximum a noisy-or with a general q cannot be taken apart: the maximum of a sum is not the sum of maxima.
    pub(crate) fn forms(&self, factor: &Factor, aim: Aim) -> Result<Vec<Form>> {
        let mut forms = Vec::new();
        if self.has_table(factor, MAX_TABLE) {
            forms.push(Form::Table);
        }
        let splits = match &factor.shape {
            Shape::RankOne(q) => {
                aim == Aim::Sum || q.iter().flat_map(|(_, q)| q).all(|&q| q == 0.0 || q == 1.0)
            }
            Shape::Logical(_) => self.diagram(factor).is_some(),
        };
        if splits && factor.n_variables() > 0 {
            forms.push(Form::Apart);
        }
        if forms.is_empty() && matches!(factor.shape, Shape::Logical(_)) {
            self.require_diagram(factor)?;
        }
        match forms[..] {
            [] => Err(Error::TooCostly {
                what: format!("{} under rule {}", aim.query(), quoted(self.model.rule_name(factor.rule))),
                needed: format!("a table of {} entries", quantity(factor.table_size)),
                limit: format!("{} entries", quantity(MAX_TABLE)),
                advice: "give the rule fewer labels, or ask for marginals".to_owned(),
            }),
            _ => Ok(forms),
        }
    }

    /// Whether the rule connects all its labels when it is taken apart.
    pub(crate) fn is_connected(&self, factor: &Factor) -> bool {
        match &factor.shape {
            Shape::RankOne(_) => true,
            Shape::Logical(_) => self
                .diagram(factor)
                .is_some_and(|diagram| diagram.levels[1..].iter().all(|level| level.n_states > 1)),
        }
    }

    /// The network for these forms of the rules: its shape alone, or with the numbers of its tables.
    pub(crate) fn network(&self, forms: &[Form], split: Split, filled: Filled) -> Result<Network> {
        let mut network =
            Network { variables: Vec::new(), leaves: Vec::new(), of_label: Vec::new(), signed: Vec::new() };
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
                (Form::Apart, Shape::RankOne(q)) => match split {
                    Split::Or => add_fired(&mut network, first, factor.rule, q),
                    Split::Signed => add_signed(&mut network, first, factor.rule, q),
                },
                (Form::Apart, Shape::Logical(_)) => self.add_chain(&mut network, first, factor, filled)?,
            }
        }
        Ok(network)
    }

    fn add_table(&self, network: &mut Network, factor: &Factor, filled: Filled) {
        let scope = self.scope(factor);
        let variables = scope.iter().filter_map(|label| network.of_label[label.index()]).collect();
        let entries = if filled == Filled::Yes { self.entries(factor, &scope) } else { Vec::new() };
        network.leaves.push(Leaf { variables, source: Source::Rule(factor.rule, entries) });
    }

    fn add_chain(&self, network: &mut Network, first: usize, factor: &Factor, filled: Filled) -> Result<()> {
        let rule = factor.rule;
        let diagram = self.require_diagram(factor)?;
        let mut before: Option<usize> = None;
        let last = diagram.levels.len() - 1;
        for (index, level) in diagram.levels.iter().enumerate() {
            let label = network.of_label[level.label.index()];
            let mut variables: Vec<usize> = before.into_iter().chain(label).collect();
            if index == last {
                let outcome = |&state: &usize| Outcome::of(diagram.accepts[state]);
                let entries = match filled {
                    Filled::Yes => level.next.iter().map(outcome).collect(),
                    Filled::No => Vec::new(),
                };
                network.leaves.push(Leaf { variables, source: Source::Rule(rule, entries) });
                break;
            }
            let n_after = diagram.levels[index + 1].n_states;
            let mut table = Vec::new();
            if filled == Filled::Yes {
                table.resize(level.next.len() * n_after, 0.0);
                table.chunks_mut(n_after).zip(&level.next).for_each(|(row, &state)| row[state] = 1.0);
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

/// The same with signs: per label the table (1, q), and the weights (w(fired), w(silent) − w(fired)).
///
/// ```text
/// w(silent) Q + w(fired) (1 − Q) = w(fired) + (w(silent) − w(fired)) Q
/// ```
fn add_signed(network: &mut Network, split: usize, rule: RuleId, q: &[(LabelId, Vec<f64>)]) {
    network.variables[split] = Variable { n_states: 2, kind: Kind::Plain };
    network.signed.push((rule, split));
    for (label, q) in q {
        let table = q.iter().flat_map(|&q| [1.0, q]).collect();
        let variables = network.of_label[label.index()].into_iter().chain([split]).collect();
        network.leaves.push(Leaf { variables, source: Source::Fixed(table) });
    }
    let weights = vec![Outcome::of(true), Outcome::DIFFERENCE];
    network.leaves.push(Leaf { variables: vec![split], source: Source::Rule(rule, weights) });
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
}

/// Variables and the tables over them.
pub(crate) struct Network {
    pub(crate) variables: Vec<Variable>,
    pub(crate) leaves: Vec<Leaf>,
    /// The variable of each label, none for a label of one state.
    pub(crate) of_label: Vec<Option<usize>>,
    /// The rules that are taken apart with signs, and their variables.
    pub(crate) signed: Vec<(RuleId, usize)>,
}

impl Network {
    fn add(&mut self, n_states: usize, kind: Kind) -> usize {
        self.variables.push(Variable { n_states, kind });
        self.variables.len() - 1
    }
}
