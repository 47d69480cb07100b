//! Groups of rules that share a table, and groups of categories that these rules do not distinguish.

use std::collections::{BTreeMap, HashMap};

use crate::infer::factor::Factors;
use crate::label::{CategoryId, LabelId};
use crate::model::Model;
use crate::rule::{Body, RuleId};

/// Maximum size of a table that rules over subsets of its labels join.
const MAX_MERGED: f64 = 512.0;
/// Maximum number of tables that are tried as a host for one set of labels.
const MAX_HOSTS: usize = 1000;

/// Groups of rules that share a table: rules over the same labels, and rules over a subset of them.
pub(super) fn merged(factors: &Factors) -> Vec<Vec<RuleId>> {
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

pub(super) fn scope(model: &Model, rule: RuleId) -> Vec<usize> {
    let mut scope: Vec<usize> = model.rule(rule).scope().iter().map(|label| label.index()).collect();
    scope.sort_unstable();
    scope
}

/// The group of each state of a label, where `states` holds a representative of each. Two states share a group if
/// none of these rules distinguishes them.
pub(super) fn groups(model: &Model, rules: &[RuleId], label: LabelId, states: &[CategoryId]) -> Vec<usize> {
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
