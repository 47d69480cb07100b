//! Rules as costs −ln φ over the categories of their labels: what the search adds up and bounds.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use crate::error::{Error, Result};
use crate::infer::factor::{Factor, Factors, Shape, States};
use crate::infer::junction_tree::Limits;
use crate::infer::junction_tree::plan::bytes;
use crate::infer::outcome::Outcome;
use crate::label::{CategoryId, LabelId};
use crate::model::Model;
use crate::rule::{Body, RuleId};

/// A model as a sum of costs, one per rule or group of rules over the same labels.
pub(crate) struct Costs {
    pub(crate) model: Model,
    pub(crate) states: States,
    pub(crate) functions: Vec<CostFunction>,
    /// What rules that speak about no label cost.
    pub(crate) constant: f64,
    /// For every label, the functions it is in, and its place there.
    pub(crate) of_label: Vec<Vec<(usize, usize)>>,
    /// How many messages all functions have together.
    pub(crate) n_messages: usize,
    /// What it takes, in bytes.
    pub(crate) bytes: f64,
}

/// The cost of one rule, or of several over the same labels, for every combination of its labels' categories.
pub(crate) struct CostFunction {
    pub(crate) rules: Vec<RuleId>,
    pub(crate) places: Vec<Place>,
    /// Where its messages start among all messages: one for each category of each of its labels.
    pub(crate) start: usize,
    pub(crate) messages: Vec<Message>,
    /// Whether all places have two groups.
    pub(crate) is_binary: bool,
    pub(crate) form: Form,
    /// Work of one update, in units of [`SearchLimits::work`](super::SearchLimits::work).
    pub(crate) effort: u64,
    /// Work of the exact cost of one assignment.
    pub(crate) price: u64,
}

/// What a message is about.
pub(crate) struct Message {
    pub(crate) label: usize,
    /// The position of its category among all categories.
    pub(crate) category: usize,
    /// Its group among all groups of the function: categories that cost the same share one.
    pub(crate) group: usize,
}

/// One label of a cost function.
pub(crate) struct Place {
    pub(crate) label: usize,
    /// Its messages, counted from the function's first.
    pub(crate) messages: Range<usize>,
    /// Its groups among all groups of the function.
    pub(crate) groups: Range<usize>,
    /// How far apart the table's entries for two groups are.
    stride: usize,
}

/// How the costs are kept.
pub(crate) enum Form {
    /// Every combination of groups, the last place fastest.
    Table(Vec<f64>),
    /// Decided label by label.
    Chain(Chain),
}

/// A cost that is decided label by label: from every state, each group leads to a state of the next level.
///
/// Exact for formulas. A noisy-or of many labels has too many values of Q for that; there states are united and take the
/// cheaper of their values, so that the chain's cost is never more than the rule's.
pub(crate) struct Chain {
    pub(crate) levels: Vec<Level>,
    /// The cost in each state behind the last level.
    pub(crate) last: Vec<f64>,
    /// The product that a rank-one rule comes to.
    pub(crate) silence: Option<Silence>,
}

/// w(silent) Q + w(fired) (1 − Q) with Q = ∏ q.
pub(crate) struct Silence {
    /// q of every group of every place.
    pub(crate) q: Vec<f64>,
    pub(crate) weights: [f64; 2],
}

pub(crate) struct Level {
    pub(crate) n_states: usize,
    pub(crate) n_groups: usize,
    /// The state after, at `state * n_groups + group`.
    pub(crate) next: Vec<u32>,
}

/// The largest table; wider rules are chains.
const MAX_TABLE: f64 = 2048.0;
/// Rules over fewer labels are added to the table of a wider one up to this size.
const MAX_MERGED: f64 = 512.0;
/// The most states of a noisy-or's chain.
const MAX_STATES: usize = 64;
/// The most groups that are asked whether a rule over fewer labels joins them.
const MAX_HOSTS: usize = 1000;
/// The most nodes of formulas, and inhibition probabilities, that are evaluated to fill tables: about two seconds.
const MAX_EVALUATIONS: f64 = 5e8;
/// Work of an update beside the numbers that it looks at: mostly memory that is not in the cache.
const UPDATE_WORK: u64 = 60;
/// Costs that take less memory than this are never refused, whatever the limit.
const FREE_MEMORY: f64 = (16 << 20) as f64;

impl Costs {
    /// The costs of a model, or what they would take if that is more than the limits allow.
    pub(crate) fn new(model: &Model, limits: Limits) -> Result<Self> {
        let factors = Factors::new(model);
        let groups = merged(&factors);
        let bytes = check(&factors, &groups, limits)?;
        let mut costs = Self {
            model: model.clone(),
            states: States { of_category: Vec::new(), representatives: Vec::new() },
            functions: Vec::new(),
            of_label: vec![Vec::new(); model.labels().len()],
            constant: 0.0,
            n_messages: 0,
            bytes,
        };
        for rules in &groups {
            let function = match as_chain(&factors, rules) {
                Some(factor) => costs.chain(&factors, factor)?,
                None => costs.table(&factors.states, rules),
            };
            costs.add(function);
        }
        costs.states = factors.states;
        Ok(costs)
    }

    /// A label's categories among all categories.
    pub(crate) fn categories(&self, label: usize) -> Range<usize> {
        self.model.block(LabelId::new(label))
    }

    pub(crate) fn n_categories(&self, label: usize) -> usize {
        self.categories(label).len()
    }

    /// A function's messages, where those of all functions follow the categories.
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

    /// The cost of an assignment under one function, exactly.
    pub(crate) fn cost(&self, function: usize, assignment: &[usize]) -> f64 {
        let function = &self.functions[function];
        match &function.form {
            Form::Table(table) => table[function.entry(assignment)],
            Form::Chain(_) => {
                let cost = |rule: &RuleId| -self.model.rule(*rule).log_weight(assignment);
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

    /// A function without its costs; `group_of` gives each category of a label its group.
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
            let cost = |rule: &RuleId| -self.model.rule(*rule).log_weight(&assignment);
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

/// The factor of a rule that is too large for a table.
fn as_chain<'a>(factors: &'a Factors, rules: &[RuleId]) -> Option<&'a Factor> {
    let [rule] = rules else { return None };
    Some(&factors.list[rule.index()]).filter(|factor| factor.table_size > MAX_TABLE)
}

/// Bytes that the costs take, or a refusal: counted before any of them is there.
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

/// The most entries that the chain of a rank-one rule has: the states before a label times the label's own.
fn chain_size<'a>(q: impl Iterator<Item = &'a [f64]>) -> f64 {
    let (mut size, mut n_before) = (0.0, 1);
    for q in q {
        size += n_before as f64 * q.len() as f64;
        let distinct: HashSet<u64> = q.iter().map(|q| q.to_bits()).collect();
        n_before = (n_before * distinct.len()).min(MAX_STATES);
    }
    size
}

/// How many nodes a formula has, or inhibition probabilities a noisy-or.
fn rule_size(model: &Model, rule: RuleId) -> usize {
    match model.rule(rule).body() {
        Body::Formula(formula) => formula.nodes().len(),
        Body::NoisyOr(noisy_or) => noisy_or.inhibitions().len(),
    }
}

/// The group of each of a label's states, given by their representatives: two share one if these rules treat them alike.
fn groups(model: &Model, rules: &[RuleId], label: LabelId, states: &[CategoryId]) -> Vec<usize> {
    let mut groups = vec![0; states.len()];
    let mut refine = |told: &dyn Fn(CategoryId) -> u64| {
        let mut ids = HashMap::new();
        for (group, &category) in groups.iter_mut().zip(states) {
            let n = ids.len();
            *group = *ids.entry((*group, told(category))).or_insert(n);
        }
    };
    for &rule in rules {
        match model.rule(rule).body() {
            Body::Formula(formula) => {
                for atom in formula.atoms().filter(|atom| atom.label() == label) {
                    refine(&|category| u64::from(atom.contains(category)));
                }
            }
            Body::NoisyOr(noisy_or) => {
                refine(&|category| noisy_or.inhibition(label, category).to_bits());
            }
        }
    }
    groups
}

impl CostFunction {
    /// The group of an assignment's category at a place, among all groups of the function.
    pub(crate) fn group(&self, place: usize, assignment: &[usize]) -> usize {
        let place = &self.places[place];
        self.messages[place.messages.start + assignment[place.label]].group
    }

    /// The position of an assignment in the table.
    pub(crate) fn entry(&self, assignment: &[usize]) -> usize {
        self.places.iter().fold(0, |entry, place| {
            let message = place.messages.start + assignment[place.label];
            entry * place.groups.len() + self.messages[message].group - place.groups.start
        })
    }

    /// The positions in the table around an assignment's entry: one for each category of the label at a place, which
    /// has the category `present`.
    pub(crate) fn entries(&self, entry: usize, place: usize, present: usize) -> impl Iterator<Item = usize> {
        let place = &self.places[place];
        let messages = &self.messages[place.messages.clone()];
        let first = entry - (messages[present].group - place.groups.start) * place.stride;
        messages.iter().map(move |message| first + (message.group - place.groups.start) * place.stride)
    }

    /// The number of groups of all places together.
    pub(crate) fn n_groups(&self) -> usize {
        self.places.last().map_or(0, |place| place.groups.end)
    }
}

impl Chain {
    /// −ln(w(silent) Q + w(fired) (1 − Q)), where each label's group multiplies Q by its q.
    ///
    /// The cost is monotone in Q, and Q in every factor of it: uniting states at the cheaper end of their values
    /// never makes anything dearer. Checked in `chains_never_cost_more_than_their_rules`.
    fn noisy_or(q: &[&[f64]], weights: [f64; 2]) -> Self {
        let silence = Some(Silence { q: q.concat(), weights });
        // Ordered by the probability of the outcome that is cheap.
        let cheap = usize::from(weights[0] <= weights[1]);
        let mut levels = Vec::with_capacity(q.len());
        let mut outcomes = vec![[1.0, 0.0]];
        // ln of the largest silence of each state, which may be too small for a number.
        let mut log_silences = vec![0.0];
        for q in q {
            let after =
                |[silent, fired]: [f64; 2]| q.iter().map(move |q| [silent * q, fired + silent * (1.0 - q)]);
            let reached: Vec<[f64; 2]> = outcomes.iter().copied().flat_map(after).collect();
            let reached_logs = log_silences.iter().flat_map(|log| q.iter().map(move |q| log + q.ln()));
            let ends = run_ends(reached.iter().map(|outcome| outcome[cheap]));
            let run = |outcome: &[f64; 2]| ends.partition_point(|&end| end < outcome[cheap]);
            levels.push(Level {
                n_states: outcomes.len(),
                n_groups: q.len(),
                next: reached.iter().map(|outcome| run(outcome) as u32).collect(),
            });
            let mut united_logs = vec![f64::NEG_INFINITY; ends.len()];
            outcomes = vec![[0.0; 2]; ends.len()];
            for (outcome, log_silence) in reached.iter().zip(reached_logs) {
                let united = &mut outcomes[run(outcome)];
                if outcome[cheap] >= united[cheap] {
                    *united = *outcome;
                }
                united_logs[run(outcome)] = log_silence.max(united_logs[run(outcome)]);
            }
            log_silences = united_logs;
        }
        let cost = |(&outcome, &log): (&[f64; 2], &f64)| -Outcome::new(outcome, || log).log_weight(weights);
        let last = outcomes.iter().zip(&log_silences).map(cost).collect();
        Self { levels, last, silence }
    }
}

/// The largest values of at most [`MAX_STATES`] runs that cover all values, in order; the closest values share one.
fn run_ends(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    sorted.dedup();
    let mut gaps: Vec<f64> = sorted.windows(2).map(|pair| pair[1] - pair[0]).collect();
    gaps.sort_by(|a, b| b.total_cmp(a));
    // Values further apart than this are in different runs.
    let least = gaps.get(MAX_STATES - 1).copied().unwrap_or(0.0);
    let is_end = |at: &usize| sorted.get(at + 1).is_none_or(|next| next - sorted[*at] > least);
    (0..sorted.len()).filter(is_end).map(|at| sorted[at]).collect()
}

/// The rules in groups that share a table: those over the same labels, and those over some of another's labels.
fn merged(factors: &Factors) -> Vec<Vec<RuleId>> {
    let model = &factors.model;
    let mut by_scope: BTreeMap<Vec<usize>, Vec<RuleId>> = BTreeMap::new();
    for factor in &factors.list {
        by_scope.entry(scope(model, factor.rule)).or_default().push(factor.rule);
    }
    let size = |scope: &[usize]| -> f64 {
        scope.iter().map(|&label| factors.states.representatives[label].len() as f64).product()
    };
    let mut scopes: Vec<(Vec<usize>, Vec<RuleId>)> = by_scope.into_iter().collect();
    scopes.sort_by(|a, b| b.0.len().cmp(&a.0.len()).then(a.0.cmp(&b.0)));
    let mut groups: Vec<(Vec<usize>, Vec<RuleId>)> = Vec::new();
    let mut users: Vec<Vec<usize>> = vec![Vec::new(); model.labels().len()];
    for (scope, rules) in scopes {
        if size(&scope) > MAX_MERGED {
            groups.extend(rules.into_iter().map(|rule| (Vec::new(), vec![rule])));
            continue;
        }
        let rarest = scope.iter().copied().min_by_key(|&label| users[label].len());
        let host = rarest.and_then(|label| {
            let is_host =
                |&group: &usize| scope.iter().all(|label| groups[group].0.binary_search(label).is_ok());
            users[label].iter().take(MAX_HOSTS).copied().find(is_host)
        });
        match host {
            Some(group) => groups[group].1.extend(rules),
            None => {
                scope.iter().for_each(|&label| users[label].push(groups.len()));
                groups.push((scope, rules));
            }
        }
    }
    groups.into_iter().map(|(_, rules)| rules).collect()
}

fn scope(model: &Model, rule: RuleId) -> Vec<usize> {
    let mut scope: Vec<usize> = model.rule(rule).scope().iter().map(|label| label.index()).collect();
    scope.sort_unstable();
    scope
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};

    #[test]
    fn chains_never_cost_more_than_their_rules() {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(1);
        for weights in [[0.0, 1.0], [0.1, 0.9], [0.8, 0.2], [1.0, 0.0], [0.5, 0.5]] {
            let q: Vec<Vec<f64>> =
                (0..30).map(|_| (0..3).map(|_| rng.random::<f64>().powf(0.1)).collect()).collect();
            let chain = Chain::noisy_or(&q.iter().map(|q| &q[..]).collect::<Vec<_>>(), weights);
            assert!(chain.levels.iter().all(|level| level.n_states <= MAX_STATES));
            for _ in 0..1000 {
                let choices: Vec<usize> = q.iter().map(|_| rng.random_range(0..3)).collect();
                let state =
                    chain.levels.iter().zip(&choices).fold(0, |state, (level, choice)| {
                        level.next[state * level.n_groups + choice] as usize
                    });
                let silent: f64 = q.iter().zip(&choices).map(|(q, &choice)| q[choice]).product();
                let cost = -(weights[0] * silent + weights[1] * (1.0 - silent)).ln();
                assert!(chain.last[state] <= cost + 1e-12, "{} is more than {cost}", chain.last[state]);
                assert!(chain.last[state] >= cost - 1.0, "{} is useless for {cost}", chain.last[state]);
            }
        }
    }
}
