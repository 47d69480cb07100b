//! The model as a network of variables and small tables. The search orders its variables; the plan contracts its
//! tables.

use std::collections::HashMap;

use crate::diagnostic::quoted;
use crate::error::{Error, Result};
use crate::infer::counter::{Counter, Item};
use crate::infer::factor::{Factor, Factors, Shape};
use crate::infer::limits::quantity;
use crate::infer::semiring::Aim;
use crate::label::LabelId;
use crate::outcome::Outcome;
use crate::rule::RuleId;

/// The meaning of a variable of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A label, a state of a decision diagram, or the auxiliary variable of a rule with signs. Tables that share it are
    /// multiplied entry by entry.
    Plain,
    /// The auxiliary variable of a rule without signs: silent (0) or fired (1). Tables that share it combine as an or:
    /// the result is "fired" if either side is. The rule's two weights are applied when it is eliminated.
    Fired(RuleId),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Variable {
    pub(crate) n_states: usize,
    pub(crate) kind: Kind,
}

/// The origin of a leaf's numbers.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// The row's belief about a label.
    Belief(LabelId),
    /// Constants.
    Fixed(Vec<f64>),
    /// The outcome of a rule for each entry. The rule's two weights turn it into a number.
    Rule(RuleId, Vec<Outcome>),
}

/// A table of the network, before any contraction.
#[derive(Clone, Debug)]
pub(crate) struct Leaf {
    /// Its variables. The state of the last one changes fastest.
    pub(crate) variables: Vec<usize>,
    pub(crate) source: Source,
}

impl Leaf {
    /// Its memory.
    pub(crate) fn bytes(&self) -> u64 {
        let of_source = match &self.source {
            Source::Belief(_) => 0,
            Source::Fixed(numbers) => size_of_val(&numbers[..]),
            Source::Rule(_, entries) => size_of_val(&entries[..]),
        };
        (size_of::<Self>() + size_of_val(&self.variables[..]) + of_source) as u64
    }
}

/// Whether the leaves of a network hold numbers. The search needs their shapes only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Filled {
    No,
    Yes,
}

/// The form of a rule in the network: one table, or several small tables with auxiliary variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Table,
    Decomposed,
}

/// The decomposition of rank-one rules. See the section on the junction tree in ARCHITECTURE.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Split {
    /// The auxiliary variable is silent or fired. No entry is negative. A join of two tables that share the variable
    /// takes three products.
    Or,
    /// The states of the auxiliary variable are "any" and "silent". A join takes two products, but "fired" is a
    /// difference, which may lose digits. For sums only.
    Signed,
}

/// Largest number of entries of a rule's table: 32 MiB. Larger rules must be decomposed.
const MAX_TABLE: f64 = (1u64 << 22) as f64;

impl Factors {
    /// The possible forms of a rule, the table first. Returns an error if there is none.
    ///
    /// For maxima, a noisy-or with q other than 0 and 1 has no decomposition: the maximum of a sum is not the sum of
    /// maxima.
    pub(crate) fn forms(&self, factor: &Factor, aim: Aim) -> Result<Vec<Form>> {
        if factor.counted.is_some() {
            return Ok(vec![Form::Decomposed]);
        }
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
            forms.push(Form::Decomposed);
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

    /// Whether the decomposed rule connects all its labels.
    pub(crate) fn is_connected(&self, factor: &Factor) -> bool {
        match &factor.shape {
            Shape::RankOne(_) => true,
            Shape::Logical(_) => self
                .diagram(factor)
                .is_some_and(|diagram| diagram.levels[1..].iter().all(|level| level.n_states > 1)),
        }
    }

    /// The network for these forms of the rules.
    pub(crate) fn network(&self, forms: &[Form], split: Split, filled: Filled) -> Result<Network> {
        let mut network =
            Network { variables: Vec::new(), leaves: Vec::new(), of_label: Vec::new(), signed: Vec::new() };
        for label in self.model.label_ids() {
            let n_states = self.states.representatives[label.index()].len();
            // A label that occurs in no rule keeps its belief, so it has no variable.
            let variable = (n_states > 1).then(|| {
                let variable = network.add(n_states, Kind::Plain);
                network.leaves.push(Leaf { variables: vec![variable], source: Source::Belief(label) });
                variable
            });
            network.of_label.push(variable);
        }
        // The sums of rules that count, by the first rule of each counter.
        let mut totals: HashMap<usize, usize> = HashMap::new();
        for (factor, form) in self.list.iter().zip(forms) {
            // The auxiliary variables are numbered even if the rule is a table. So an elimination order is valid for
            // every choice of forms.
            let first = network.variables.len();
            network.variables.extend(vec![UNUSED; factor.n_variables()]);
            if let Some(counted) = &factor.counted {
                if counted.first == factor.rule.index() {
                    self.add_counter(&mut network, first, &counted.counter, filled);
                }
                totals.entry(counted.first).or_insert(first + counted.counter.additions.len() - 1);
                let outcomes = counted.holds.iter().map(|&holds| Outcome::of(holds)).collect();
                let variables = vec![totals[&counted.first]];
                network.leaves.push(Leaf { variables, source: Source::Rule(factor.rule, outcomes) });
                continue;
            }
            match (form, &factor.shape) {
                (Form::Table, _) => self.add_table(&mut network, factor, filled),
                (Form::Decomposed, Shape::RankOne(q)) => match split {
                    Split::Or => add_fired(&mut network, first, factor.rule, q),
                    Split::Signed => add_signed(&mut network, first, factor.rule, q),
                },
                (Form::Decomposed, Shape::Logical(_)) => {
                    self.add_chain(&mut network, first, factor, filled)?
                }
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

    /// Adds a table for each addition, with an auxiliary variable for its sum.
    fn add_counter(&self, network: &mut Network, first: usize, counter: &Counter, filled: Filled) {
        // The number that each state of an item adds to a sum.
        let numbers = |item: Item| -> Vec<usize> {
            match item {
                Item::Literal(place) => {
                    let literal = &counter.literals[place];
                    let categories = self.states.representatives[literal.label().index()].iter();
                    categories.map(|&category| usize::from(literal.holds(category))).collect()
                }
                Item::Sum(place) => (0..counter.n_states(place)).collect(),
            }
        };
        for (place, &items) in counter.additions.iter().enumerate() {
            let variable = |item: Item| match item {
                Item::Literal(place) => network.of_label[counter.literals[place].label().index()],
                Item::Sum(place) => Some(first + place),
            };
            let variables = items.into_iter().filter_map(variable).chain([first + place]).collect();
            let n_states = counter.n_states(place);
            network.variables[first + place] = Variable { n_states, kind: Kind::Plain };
            let mut table = Vec::new();
            if filled == Filled::Yes {
                let [a, b] = items.map(numbers);
                let sums = a.iter().flat_map(|&a| b.iter().map(move |&b| counter.sum(a, b)));
                table.resize(a.len() * b.len() * n_states, 0.0);
                table.chunks_mut(n_states).zip(sums).for_each(|(row, sum)| row[sum] = 1.0);
            }
            network.leaves.push(Leaf { variables, source: Source::Fixed(table) });
        }
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

/// Decomposes a rank-one rule without signs: one auxiliary variable, and the table (q, 1 − q) per label.
fn add_fired(network: &mut Network, fired: usize, rule: RuleId, q: &[(LabelId, Vec<f64>)]) {
    network.variables[fired] = Variable { n_states: 2, kind: Kind::Fired(rule) };
    for (label, q) in q {
        let table = q.iter().flat_map(|&q| [q, 1.0 - q]).collect();
        let variables = network.of_label[label.index()].into_iter().chain([fired]).collect();
        network.leaves.push(Leaf { variables, source: Source::Fixed(table) });
    }
}

/// Decomposes a rank-one rule with signs: the table (1, q) per label, and the weights (w(fired), w(silent) − w(fired)).
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

/// An auxiliary variable that occurs in no table.
const UNUSED: Variable = Variable { n_states: 1, kind: Kind::Plain };

impl Factor {
    /// Number of auxiliary variables of the decomposed rule. It is 0 for a rule of at most two labels, which stays a
    /// table, and for a rule that uses the sum of another.
    pub(crate) fn n_variables(&self) -> usize {
        match (&self.counted, &self.shape) {
            (Some(_), _) if self.shares_counter() => 0,
            (Some(counted), _) => counted.counter.additions.len(),
            (None, Shape::RankOne(q)) if q.len() > 2 => 1,
            (None, Shape::Logical(scope)) if scope.len() > 2 => scope.len() - 1,
            _ => 0,
        }
    }
}

/// Variables and the tables over them.
pub(crate) struct Network {
    pub(crate) variables: Vec<Variable>,
    pub(crate) leaves: Vec<Leaf>,
    /// The variable of each label; `None` for a label of one state.
    pub(crate) of_label: Vec<Option<usize>>,
    /// The rules decomposed with signs, and their auxiliary variables.
    pub(crate) signed: Vec<(RuleId, usize)>,
}

impl Network {
    fn add(&mut self, n_states: usize, kind: Kind) -> usize {
        self.variables.push(Variable { n_states, kind });
        self.variables.len() - 1
    }
}
