//! Rules as costs −ln φ over the categories of their labels.

mod chain;
mod group;

use std::ops::Range;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::infer::factor::{Factor, Factors, Shape, States};
use crate::infer::limits::{FREE_MEMORY, Limits, bytes};
use crate::label::LabelId;
use crate::model::Model;
use crate::rule::{Body, RuleId};

pub(crate) use chain::{Chain, Silence};

use chain::{Level, chain_size};
use group::{groups, merged, scope};

/// A model as a sum of costs, one per rule or group of rules over the same labels.
pub(crate) struct Costs {
    pub(crate) model: Model,
    pub(crate) states: Arc<States>,
    pub(crate) functions: Vec<CostFunction>,
    /// The cost of rules without labels.
    pub(crate) constant: f64,
    /// For every label, its functions and its place in each.
    pub(crate) of_label: Vec<Vec<(usize, usize)>>,
    /// Number of messages of all functions.
    pub(crate) n_messages: usize,
    /// Memory of the costs in bytes.
    pub(crate) bytes: f64,
}

/// The cost of one rule, or of several over the same labels, for every combination of categories.
pub(crate) struct CostFunction {
    pub(crate) rules: Vec<RuleId>,
    pub(crate) places: Vec<Place>,
    /// The offset of its messages among all messages. There is one message for each category of each of its labels.
    pub(crate) start: usize,
    pub(crate) messages: Vec<Message>,
    /// Whether all places have two groups.
    pub(crate) is_binary: bool,
    pub(crate) form: Form,
    /// Work of one update, in units of [`SearchLimits::work`](super::SearchLimits::work).
    pub(crate) effort: u64,
    /// Work of computing the exact cost of one assignment.
    pub(crate) price: u64,
}

/// The label and category of a message.
pub(crate) struct Message {
    pub(crate) label: usize,
    /// The position of its category among all categories.
    pub(crate) category: usize,
    /// The index of its group in the function. Categories with the same costs share a group.
    pub(crate) group: usize,
}

/// One label of a cost function.
pub(crate) struct Place {
    pub(crate) label: usize,
    /// The indices of its messages in the function.
    pub(crate) messages: Range<usize>,
    /// The indices of its groups in the function.
    pub(crate) groups: Range<usize>,
    /// The distance between the table entries of two consecutive groups.
    stride: usize,
}

/// The representation of the costs.
pub(crate) enum Form {
    /// One entry for every combination of groups, the last place fastest.
    Table(Vec<f64>),
    /// One level per label.
    Chain(Chain),
}

/// Maximum number of entries of a rule's table. Larger rules are chains.
const MAX_TABLE: f64 = 2048.0;
/// Maximum number of formula nodes and inhibition probabilities evaluated to fill tables. This many take about two
/// seconds.
const MAX_EVALUATIONS: f64 = 5e8;
/// Work of an update besides the numbers that it reads. Most of it is access to memory outside the cache.
const UPDATE_WORK: u64 = 60;

impl Costs {
    /// Builds the costs of a model. Returns an error with the memory needed if it exceeds the limits.
    pub(crate) fn new(model: &Model, factors: &Factors, limits: Limits) -> Result<Self> {
        let groups = merged(factors);
        let bytes = check(factors, &groups, limits)?;
        let mut costs = Self {
            model: model.clone(),
            states: Arc::clone(&factors.states),
            functions: Vec::new(),
            of_label: vec![Vec::new(); model.labels().len()],
            constant: 0.0,
            n_messages: 0,
            bytes,
        };
        for rules in &groups {
            let function = match as_chain(factors, rules) {
                Some(factor) => costs.chain(factors, factor)?,
                None => costs.table(&factors.states, rules),
            };
            costs.add(function);
        }
        Ok(costs)
    }

    /// The indices of a label's categories among all categories.
    pub(crate) fn categories(&self, label: usize) -> Range<usize> {
        self.model.block(LabelId::new(label))
    }

    pub(crate) fn n_categories(&self, label: usize) -> usize {
        self.categories(label).len()
    }

    /// The indices of a function's messages in an array of all categories followed by all messages.
    pub(crate) fn messages(&self, function: &CostFunction) -> Range<usize> {
        let first = self.model.n_categories() + function.start;
        first..first + function.messages.len()
    }

    /// The cost of an assignment, where `beliefs` are the costs of all categories.
    pub(crate) fn total(&self, beliefs: &[f64], assignment: &[usize]) -> f64 {
        let belief = |(label, &category): (usize, &usize)| beliefs[self.categories(label).start + category];
        let of_labels: f64 = assignment.iter().enumerate().map(belief).sum();
        let of_rules: f64 = (0..self.functions.len()).map(|function| self.cost(function, assignment)).sum();
        self.constant + of_labels + of_rules
    }

    /// Work of [`Self::total`].
    pub(crate) fn total_price(&self) -> u64 {
        self.of_label.len() as u64 + self.functions.iter().map(|function| function.price).sum::<u64>()
    }

    /// The exact cost of an assignment under one function.
    pub(crate) fn cost(&self, function: usize, assignment: &[usize]) -> f64 {
        let function = &self.functions[function];
        match &function.form {
            Form::Table(table) => table[function.entry(assignment)],
            Form::Chain(_) => {
                let cost = |rule: &RuleId| -self.model.rule(*rule).log_weight_at(assignment);
                function.rules.iter().map(cost).sum()
            }
        }
    }

    fn add(&mut self, function: CostFunction) {
        if let (Form::Table(table), []) = (&function.form, &function.places[..]) {
            self.constant += table[0];
            return;
        }
        for (index, place) in function.places.iter().enumerate() {
            self.of_label[place.label].push((self.functions.len(), index));
        }
        self.n_messages += function.messages.len();
        self.functions.push(function);
    }

    /// A function without its costs. `group_of` returns the group of each category of a label.
    fn frame(
        &self,
        rules: &[RuleId],
        labels: &[usize],
        group_of: impl Fn(usize) -> Vec<usize>,
    ) -> CostFunction {
        let mut function = CostFunction {
            rules: rules.to_vec(),
            places: Vec::new(),
            start: self.n_messages,
            messages: Vec::new(),
            is_binary: true,
            form: Form::Table(Vec::new()),
            effort: 0,
            price: 0,
        };
        let mut n_groups = 0;
        for &label in labels {
            let of_category = group_of(label);
            let first = function.messages.len();
            let more = of_category.iter().max().expect("labels have categories") + 1;
            let messages = self.categories(label).zip(&of_category);
            function.messages.extend(messages.map(|(category, group)| Message {
                label,
                category,
                group: n_groups + group,
            }));
            function.places.push(Place {
                label,
                messages: first..function.messages.len(),
                groups: n_groups..n_groups + more,
                stride: 1,
            });
            n_groups += more;
            function.is_binary &= more == 2;
        }
        let mut stride = 1usize;
        for place in function.places.iter_mut().rev() {
            place.stride = stride;
            stride = stride.wrapping_mul(place.groups.len());
        }
        function
    }

    fn table(&self, states: &States, rules: &[RuleId]) -> CostFunction {
        let widest = rules
            .iter()
            .map(|&rule| scope(&self.model, rule))
            .max_by_key(Vec::len)
            .expect("there is at least one rule");
        let mut function = self.frame(rules, &widest, |label| {
            let groups = groups(&self.model, rules, LabelId::new(label), &states.representatives[label]);
            states.of_category[label].iter().map(|&state| groups[state]).collect()
        });
        // The first category of each group of each place.
        let representatives: Vec<Vec<usize>> = function
            .places
            .iter()
            .map(|place| {
                let mut first = vec![usize::MAX; place.groups.len()];
                for (category, message) in function.messages[place.messages.clone()].iter().enumerate() {
                    let slot = &mut first[message.group - place.groups.start];
                    *slot = category.min(*slot);
                }
                first
            })
            .collect();
        let mut assignment = vec![0; self.model.labels().len()];
        let mut table = Vec::with_capacity(representatives.iter().map(Vec::len).product());
        let mut digits = vec![0; representatives.len()];
        loop {
            for (place, (digit, of_group)) in function.places.iter().zip(digits.iter().zip(&representatives))
            {
                assignment[place.label] = of_group[*digit];
            }
            let cost = |rule: &RuleId| -self.model.rule(*rule).log_weight_at(&assignment);
            table.push(rules.iter().map(cost).sum::<f64>());
            let last = |&place: &usize| digits[place] + 1 < representatives[place].len();
            let Some(place) = (0..digits.len()).rev().find(last) else { break };
            digits[place] += 1;
            digits[place + 1..].fill(0);
        }
        function.effort = (2 * table.len() + 4 * function.messages.len()) as u64 + UPDATE_WORK;
        function.price = function.places.len() as u64;
        function.form = Form::Table(table);
        function
    }

    fn chain(&self, factors: &Factors, factor: &Factor) -> Result<CostFunction> {
        let labels: Vec<usize> = factors.scope(factor).iter().map(|label| label.index()).collect();
        let mut function =
            self.frame(&[factor.rule], &labels, |label| factors.states.of_category[label].clone());
        let chain = match &factor.shape {
            Shape::RankOne(q) => {
                let q: Vec<&[f64]> = q.iter().map(|(_, q)| &q[..]).collect();
                Chain::noisy_or(&q, factor.weights)
            }
            Shape::Logical(_) => {
                let diagram = factors.require_diagram(factor)?;
                let level = |level: &crate::infer::diagram::Level| Level {
                    n_states: level.n_states,
                    n_groups: level.n_choices,
                    next: level.next.iter().map(|&state| state as u32).collect(),
                };
                let [silent, fired] = factor.weights;
                Chain {
                    levels: diagram.levels.iter().map(level).collect(),
                    last: diagram
                        .accepts
                        .iter()
                        .map(|&yes| -(if yes { fired } else { silent }).ln())
                        .collect(),
                    silence: None,
                }
            }
        };
        let n_steps: usize = chain.levels.iter().map(|level| level.next.len()).sum();
        function.effort = (4 * n_steps + 4 * function.messages.len()) as u64 + UPDATE_WORK;
        function.price = rule_size(&self.model, factor.rule) as u64;
        function.form = Form::Chain(chain);
        Ok(function)
    }
}

/// The factor of a single rule that is too large for a table.
fn as_chain<'a>(factors: &'a Factors, rules: &[RuleId]) -> Option<&'a Factor> {
    let [rule] = rules else { return None };
    Some(&factors.list[rule.index()]).filter(|factor| factor.table_size > MAX_TABLE)
}

/// Memory of the costs in bytes, computed before they are built; an error if it exceeds the limits.
fn check(factors: &Factors, groups: &[Vec<RuleId>], limits: Limits) -> Result<f64> {
    let model = &factors.model;
    let (mut n_messages, mut n_entries, mut evaluations) = (0.0, 0.0, 0.0);
    for rules in groups {
        let widest = rules.iter().map(|&rule| &factors.list[rule.index()]).max_by(|a, b| {
            let n_labels = |factor: &Factor| factors.scope(factor).len();
            n_labels(a).cmp(&n_labels(b))
        });
        let Some(widest) = widest else { continue };
        let scope = factors.scope(widest);
        n_messages += scope.iter().map(|&label| model.label(label).n_categories() as f64).sum::<f64>();
        let n_states = |label: &LabelId| factors.states.representatives[label.index()].len() as f64;
        match as_chain(factors, rules) {
            Some(factor) => {
                let n_next: f64 = match &factor.shape {
                    Shape::RankOne(q) => chain_size(q.iter().map(|(_, q)| &q[..])),
                    Shape::Logical(_) => {
                        let levels = &factors.require_diagram(factor)?.levels;
                        levels.iter().map(|level| level.next.len() as f64).sum()
                    }
                };
                n_entries += n_next / 2.0; // four bytes each
            }
            None => {
                let size: f64 = scope.iter().map(n_states).product();
                n_entries += size;
                evaluations += size * rules.iter().map(|&rule| rule_size(model, rule) as f64).sum::<f64>();
            }
        }
    }
    let needed = 8.0 * n_entries + size_of::<Message>() as f64 * n_messages;
    let refuse = |needed: String, limit: String, advice: &str| {
        let (what, advice) = ("branch and bound".to_owned(), advice.to_owned());
        Err(Error::TooCostly { what, needed, limit, advice })
    };
    if evaluations > MAX_EVALUATIONS {
        let needed = format!("{evaluations:.1e} steps to fill the tables of its rules");
        return refuse(needed, format!("{MAX_EVALUATIONS:.1e}"), "split rules of many terms into several");
    }
    let limit = (limits.memory as f64).max(FREE_MEMORY);
    if needed > limit {
        let advice = "raise the memory limit, or give the rules that tie many labels together fewer labels";
        return refuse(format!("{} for the costs of its rules", bytes(needed)), bytes(limit), advice);
    }
    Ok(needed)
}

/// Number of nodes of a formula, or of inhibition probabilities of a noisy-or.
fn rule_size(model: &Model, rule: RuleId) -> usize {
    match model.rule(rule).body() {
        Body::Formula(formula) => formula.nodes().len(),
        Body::NoisyOr(noisy_or) => noisy_or.inhibitions().len(),
    }
}

impl CostFunction {
    /// The group of an assignment's category at a place, as an index in the function.
    pub(crate) fn group(&self, place: usize, assignment: &[usize]) -> usize {
        let place = &self.places[place];
        self.messages[place.messages.start + assignment[place.label]].group
    }

    /// The index of an assignment in the table.
    pub(crate) fn entry(&self, assignment: &[usize]) -> usize {
        self.places.iter().fold(0, |entry, place| {
            let message = place.messages.start + assignment[place.label];
            entry * place.groups.len() + self.messages[message].group - place.groups.start
        })
    }

    /// The indices of the table entries next to an assignment's entry: one for each category of the label at a place.
    /// The label's category in the assignment is `present`.
    pub(crate) fn entries(&self, entry: usize, place: usize, present: usize) -> impl Iterator<Item = usize> {
        let place = &self.places[place];
        let messages = &self.messages[place.messages.clone()];
        let first = entry - (messages[present].group - place.groups.start) * place.stride;
        messages.iter().map(move |message| first + (message.group - place.groups.start) * place.stride)
    }

    /// Number of groups of all places.
    pub(crate) fn n_groups(&self) -> usize {
        self.places.last().map_or(0, |place| place.groups.end)
    }
}
