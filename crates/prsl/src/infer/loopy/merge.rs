//! Merging of rules over the same labels.
//!
//! Loopy propagation counts evidence more than once on cycles. The shortest cycles are two rules that share two
//! labels, such as `a -> b` and `b -> a`. Merged into one table, they form no cycle.

use std::collections::HashMap;

use crate::infer::factor::{Factor, Factors, Shape};
use crate::infer::semiring::SumProduct;
use crate::label::LabelId;
use crate::outcome::Outcome;

/// Maximum number of entries of a table of merged rules.
pub(super) const MAX_TABLE: f64 = 4096.0;

/// Size up to which a rule's table is cheaper than any other form.
pub(super) const SMALL_TABLE: f64 = 32.0;

/// The weight that rules give one combination of states.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Weight {
    /// The weight as a number. It may underflow if several rules are merged.
    pub(super) number: f64,
    pub(super) log: f64,
}

impl Weight {
    pub(super) const ONE: Self = Self { number: 1.0, log: 0.0 };

    pub(super) fn times(self, other: Self) -> Self {
        Self { number: self.number * other.number, log: self.log + other.log }
    }
}

/// Rules that share one table, or a single rule.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Group {
    /// Positions in the model.
    pub(super) rules: Vec<usize>,
    pub(super) scope: Vec<LabelId>,
    /// The weights of each rule for every combination of states, the last label fastest; empty for a single rule.
    pub(super) weights: Vec<Vec<Weight>>,
}

/// One group per rule.
pub(super) fn unmerged(factors: &Factors) -> Vec<Group> {
    let alone = |factor: &Factor| Group {
        rules: vec![factor.rule.index()],
        scope: factors.scope(factor),
        weights: Vec::new(),
    };
    factors.list.iter().map(alone).collect()
}

/// Merges each rule with a rule that contains all its labels, if the table stays small.
pub(super) fn merged(factors: &Factors) -> Vec<Group> {
    let mut widest_first = unmerged(factors);
    widest_first.sort_by_key(|group| std::cmp::Reverse(group.scope.len()));
    let mut groups: Vec<Group> = Vec::new();
    let mut hosts =
        Hosts { same: HashMap::new(), wider: vec![Vec::new(); factors.model.labels().len()], n_wider: 0 };
    for group in widest_first {
        match hosts.find(factors, &groups, &group) {
            Some(host) => groups[host].rules.extend(group.rules),
            None => {
                hosts.same.insert(sorted(&group.scope), groups.len());
                groups.push(group);
            }
        }
    }
    groups.into_iter().map(|group| with_tables(factors, group)).collect()
}

/// An index of the groups that a rule may join. Rules are visited in order of decreasing width.
struct Hosts {
    /// The group over exactly these labels, in ascending order.
    same: HashMap<Vec<LabelId>, usize>,
    /// For each label, its groups with more labels than the current rules.
    wider: Vec<Vec<usize>>,
    /// Number of groups in `wider`.
    n_wider: usize,
}

impl Hosts {
    /// The group with the smallest table among those that contain all labels of a rule.
    ///
    /// A rule about one label closes no cycle. It joins existing tables, but does not turn another rule into a table.
    fn find(&mut self, factors: &Factors, groups: &[Group], rule: &Group) -> Option<usize> {
        let is_wider = |group: &&Group| group.scope.len() > rule.scope.len();
        for group in groups[self.n_wider..].iter().take_while(is_wider) {
            group.scope.iter().for_each(|label| self.wider[label.index()].push(self.n_wider));
            self.n_wider += 1;
        }
        let has_table = |index: &usize| size(factors, &groups[*index]) <= MAX_TABLE;
        if let Some(&same) = self.same.get(&sorted(&rule.scope)).filter(|index| has_table(index)) {
            return Some(same);
        }
        let is_table = |group: &Group| {
            let is_logical = matches!(factors.list[group.rules[0]].shape, Shape::Logical(_));
            group.rules.len() > 1 || is_logical && size(factors, group) <= SMALL_TABLE
        };
        let fits = |&&index: &&usize| {
            let group = &groups[index];
            has_table(&index)
                && (rule.scope.len() > 1 || is_table(group))
                && rule.scope.iter().all(|label| group.scope.contains(label))
        };
        let smallest = |&&a: &&usize, &&b: &&usize| {
            size(factors, &groups[a]).total_cmp(&size(factors, &groups[b])).then(a.cmp(&b))
        };
        let rarest = rule.scope.iter().min_by_key(|label| self.wider[label.index()].len())?;
        self.wider[rarest.index()].iter().filter(fits).min_by(smallest).copied()
    }
}

fn sorted(scope: &[LabelId]) -> Vec<LabelId> {
    let mut scope = scope.to_vec();
    scope.sort_unstable();
    scope
}

fn size(factors: &Factors, group: &Group) -> f64 {
    group.scope.iter().map(|label| factors.states.representatives[label.index()].len() as f64).product()
}

/// Adds the rules' tables to a group of several rules.
fn with_tables(factors: &Factors, mut group: Group) -> Group {
    if group.rules.len() > 1 {
        let table = |&rule: &usize| weights(factors, &factors.list[rule], &group.scope);
        group.weights = group.rules.iter().map(table).collect();
    }
    group
}

/// φ(y) for every combination of the states of `scope`, the last label fastest.
pub(super) fn weights(factors: &Factors, factor: &Factor, scope: &[LabelId]) -> Vec<Weight> {
    let weight = |outcome: Outcome| Weight {
        number: outcome.weigh::<SumProduct>(factor.weights),
        log: outcome.log_weight(factor.weights),
    };
    factors.entries(factor, scope).into_iter().map(weight).collect()
}
