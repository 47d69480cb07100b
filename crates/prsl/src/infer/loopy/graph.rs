//! The factor graph: labels, factors and the edges that carry messages.

use std::ops::Range;

use super::form::{Chain, Form, RankOne, Table};
use super::frontier::Frontier;
use super::merge::{self, Group, MAX_TABLE, SMALL_TABLE, Weight};
use crate::error::Result;
use crate::infer::factor::{Factors, Shape};
use crate::infer::semiring::Aim;
use crate::label::LabelId;
use crate::rule::RuleId;

/// Maximum number of labels of a factor without normalized cavity messages. The product of more of them might
/// underflow.
const WIDE: usize = 8;

/// The factor graph, with factors in the order of their updates.
pub(super) struct Graph {
    /// The labels of any rule.
    pub(super) labels: Vec<Variable>,
    pub(super) factors: Vec<Node>,
    pub(super) edges: Vec<Edge>,
    /// Rules without labels, and their weights.
    pub(super) constants: Vec<(RuleId, f64)>,
}

/// A label of any rule.
pub(super) struct Variable {
    pub(super) label: LabelId,
    /// The indices of its states among those of all labels.
    pub(super) states: Range<usize>,
    /// Its edges, in the order of the factors.
    pub(super) edges: Vec<usize>,
    /// The index of its connected component.
    pub(super) component: usize,
}

/// One rule, or several merged into one table.
pub(super) struct Node {
    pub(super) rules: Vec<RuleId>,
    /// The weights of each merged rule for every combination of states; empty for a single rule.
    pub(super) weights: Vec<Vec<Weight>>,
    pub(super) edges: Range<usize>,
    /// The slots of all its edges, which are consecutive.
    pub(super) slots: Range<usize>,
    pub(super) form: Form,
    pub(super) is_wide: bool,
}

/// An edge between a factor and one of its labels.
pub(super) struct Edge {
    pub(super) factor: usize,
    /// Position in [`Graph::labels`].
    pub(super) variable: usize,
    /// The indices of the label's states.
    pub(super) states: Range<usize>,
    /// The slots of its messages, one per state.
    pub(super) slots: Range<usize>,
}

impl Graph {
    pub(super) fn new(factors: &Factors, aim: Aim, merge: bool) -> Result<Self> {
        let groups = if merge { merge::merged(factors) } else { merge::unmerged(factors) };
        let mut graph =
            Graph { labels: Vec::new(), factors: Vec::new(), edges: Vec::new(), constants: Vec::new() };
        let (constant, connected): (Vec<Group>, Vec<Group>) =
            groups.into_iter().partition(|group| group.scope.is_empty());
        for &rule in constant.iter().flat_map(|group| &group.rules) {
            let weight = merge::weights(factors, &factors.list[rule], &[])[0];
            graph.constants.push((RuleId::new(rule), weight.number));
        }
        let variables = graph.add_labels(factors, &connected);
        let (order, components) = order(&connected, &variables);
        for (variable, component) in graph.labels.iter_mut().zip(components) {
            variable.component = component;
        }
        let mut connected: Vec<Option<Group>> = connected.into_iter().map(Some).collect();
        for index in order {
            let group = connected[index].take().expect("each group comes once");
            let form = form(factors, &group, aim)?;
            graph.add_factor(group, form, &variables);
        }
        Ok(graph)
    }

    /// Number of states of all labels.
    pub(super) fn n_states(&self) -> usize {
        self.labels.last().map_or(0, |variable| variable.states.end)
    }

    /// Number of slots of all edges.
    pub(super) fn n_slots(&self) -> usize {
        self.factors.last().map_or(0, |node| node.slots.end)
    }

    /// Adds the labels of all rules. Returns their indices by the labels' positions in the model.
    fn add_labels(&mut self, factors: &Factors, groups: &[Group]) -> Vec<Option<usize>> {
        let mut variables = vec![None; factors.model.labels().len()];
        for label in groups.iter().flat_map(|group| &group.scope) {
            variables[label.index()] = Some(0);
        }
        for (index, variable) in variables.iter_mut().enumerate() {
            if variable.is_none() {
                continue;
            }
            let first = self.n_states();
            let states = first..first + factors.states.representatives[index].len();
            *variable = Some(self.labels.len());
            let label = LabelId::new(index);
            self.labels.push(Variable { label, states, edges: Vec::new(), component: 0 });
        }
        variables
    }

    fn add_factor(&mut self, group: Group, form: Form, variables: &[Option<usize>]) {
        let (first_edge, first_slot, factor) = (self.edges.len(), self.n_slots(), self.factors.len());
        let mut slot = first_slot;
        for label in &group.scope {
            let variable = variables[label.index()].expect("the label has a rule");
            let states = self.labels[variable].states.clone();
            self.labels[variable].edges.push(self.edges.len());
            let slots = slot..slot + states.len();
            slot = slots.end;
            self.edges.push(Edge { factor, variable, states, slots });
        }
        self.factors.push(Node {
            rules: group.rules.iter().copied().map(RuleId::new).collect(),
            weights: group.weights,
            edges: first_edge..self.edges.len(),
            slots: first_slot..slot,
            form,
            is_wide: group.scope.len() > WIDE,
        });
    }
}

/// The order of the factors, and the component of each label.
///
/// It is the reverse of a breadth-first order from the label of highest degree in each component. In a tree, every
/// factor then comes after the factors below it. So one forward and one backward sweep propagate all messages.
fn order(groups: &[Group], variables: &[Option<usize>]) -> (Vec<usize>, Vec<usize>) {
    let scope = |group: usize| groups[group].scope.iter().filter_map(|label| variables[label.index()]);
    let n_labels = variables.iter().flatten().count();
    let mut groups_of: Vec<Vec<usize>> = vec![Vec::new(); n_labels];
    for group in 0..groups.len() {
        scope(group).for_each(|label| groups_of[label].push(group));
    }
    let mut roots: Vec<usize> = (0..n_labels).collect();
    roots.sort_by_key(|&label| std::cmp::Reverse(groups_of[label].len()));
    let mut component = vec![usize::MAX; n_labels];
    let mut placed = vec![false; groups.len()];
    let mut order = Vec::with_capacity(groups.len());
    for root in roots {
        if component[root] != usize::MAX {
            continue;
        }
        component[root] = root;
        let mut queue = std::collections::VecDeque::from([root]);
        while let Some(label) = queue.pop_front() {
            for &group in &groups_of[label] {
                if std::mem::replace(&mut placed[group], true) {
                    continue;
                }
                order.push(group);
                for other in scope(group) {
                    if std::mem::replace(&mut component[other], root) == usize::MAX {
                        queue.push_back(other);
                    }
                }
            }
        }
    }
    order.reverse();
    (order, component)
}

/// The cheapest form of a group's messages.
fn form(factors: &Factors, group: &Group, aim: Aim) -> Result<Form> {
    let sizes: Vec<usize> =
        group.scope.iter().map(|label| factors.states.representatives[label.index()].len()).collect();
    if group.rules.len() > 1 {
        let mut joint = vec![Weight::ONE; sizes.iter().product()];
        for weights in &group.weights {
            joint.iter_mut().zip(weights).for_each(|(entry, weight)| *entry = entry.times(*weight));
        }
        return Ok(Form::Table(Table::new(&sizes, &joint)));
    }
    let factor = &factors.list[group.rules[0]];
    let table = || Table::new(&sizes, &merge::weights(factors, factor, &group.scope));
    let weights = factor.weights;
    match &factor.shape {
        Shape::RankOne(q) => {
            let q: Vec<f64> = q.iter().flat_map(|(_, q)| q.iter().copied()).collect();
            if aim == Aim::Sum || q.iter().all(|&q| q == 0.0 || q == 1.0) {
                Ok(Form::RankOne(RankOne::new(sizes, q, weights)))
            } else if factor.table_size <= MAX_TABLE {
                Ok(Form::Table(table()))
            } else {
                Ok(Form::Frontier(Frontier { sizes, q, weights }))
            }
        }
        Shape::Logical(_) if factor.table_size <= SMALL_TABLE => Ok(Form::Table(table())),
        Shape::Logical(_) => {
            if factor.table_size <= MAX_TABLE {
                let table = table();
                match factors.diagram(factor) {
                    Some(diagram) if Chain::new(diagram, weights).len() < table.len() => {}
                    _ => return Ok(Form::Table(table)),
                }
            }
            Ok(Form::Chain(Chain::new(factors.require_diagram(factor)?, weights)))
        }
    }
}
