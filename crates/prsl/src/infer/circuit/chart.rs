//! Decision diagrams restricted to the domains of their variables.

use std::collections::HashMap;

use super::domains::Domains;
use super::problem::{Chart, Effect, VariableId, n_words};

/// For each level, the states of its variable that lead to a possible result, as bit sets.
pub(super) fn support(chart: &Chart, domains: &mut Domains) -> Vec<Box<[u64]>> {
    let layers = reached(chart, domains);
    let mut is_possible: Vec<bool> = layers[chart.levels.len()]
        .states
        .iter()
        .map(|&state| effect(chart, state) != Effect::Forbidden)
        .collect();
    let mut supported: Vec<Box<[u64]>> = Vec::with_capacity(chart.levels.len());
    for (depth, level) in chart.levels.iter().enumerate().rev() {
        let places = &layers[depth + 1].places;
        let mut words = vec![0; n_words(level.n_choices)].into_boxed_slice();
        is_possible = layers[depth]
            .states
            .iter()
            .map(|&state| {
                let mut any = false;
                for choice in domains.states(level.variable) {
                    if is_possible[places[level.next[state * level.n_choices + choice]]] {
                        words[choice / 64] |= 1 << (choice % 64);
                        any = true;
                    }
                }
                any
            })
            .collect();
        supported.push(words);
    }
    supported.reverse();
    supported
}

/// A restricted diagram in canonical form.
pub(super) enum Restricted {
    /// All remaining assignments have the same effect.
    Decided(Effect),
    /// The variables that the effect depends on.
    Open(Vec<VariableId>),
}

/// Restricts a diagram, and appends a canonical description of it to `key`.
///
/// Levels whose variable is decided or irrelevant are left out. States are numbered in the order of their first visit
/// from the top, so two diagrams have the same description exactly if they have the same levels and results.
pub(super) fn restrict(chart: &Chart, domains: &mut Domains, key: &mut Vec<u64>) -> Restricted {
    let layers = reached(chart, domains);
    let last = &layers[chart.levels.len()].states;
    let first = effect(chart, last[0]);
    if last.iter().all(|&state| effect(chart, state) == first) {
        return Restricted::Decided(first);
    }
    // Equivalent states of a layer have the same class.
    let mut classes: Vec<usize> = last.iter().map(|&state| chart.results[state]).collect();
    let mut kept: Vec<(VariableId, Vec<Vec<usize>>)> = Vec::new();
    for (depth, level) in chart.levels.iter().enumerate().rev() {
        let places = &layers[depth + 1].places;
        let choices: Vec<usize> = domains.states(level.variable).collect();
        let rows: Vec<Vec<usize>> = layers[depth]
            .states
            .iter()
            .map(|&state| {
                let class = |&choice: &usize| classes[places[level.next[state * level.n_choices + choice]]];
                choices.iter().map(class).collect()
            })
            .collect();
        if rows.iter().all(|row| row.iter().all(|class| *class == row[0])) {
            classes = rows.into_iter().map(|row| row[0]).collect();
            continue;
        }
        let mut ids: HashMap<Vec<usize>, usize> = HashMap::new();
        let mut distinct = Vec::new();
        classes = rows
            .into_iter()
            .map(|row| {
                let fresh = ids.len();
                *ids.entry(row).or_insert_with_key(|row| {
                    distinct.push(row.clone());
                    fresh
                })
            })
            .collect();
        kept.push((level.variable, distinct));
    }
    kept.reverse();
    describe(chart, &kept, classes[0], key);
    Restricted::Open(kept.into_iter().map(|(variable, _)| variable).collect())
}

/// Appends the levels from the top, with states numbered in the order of their first visit.
fn describe(chart: &Chart, kept: &[(VariableId, Vec<Vec<usize>>)], top: usize, key: &mut Vec<u64>) {
    key.push(kept.len() as u64);
    let mut states = vec![top];
    for (depth, (variable, rows)) in kept.iter().enumerate() {
        key.extend([u64::from(*variable), states.len() as u64]);
        let is_last = depth + 1 == kept.len();
        let mut numbers: HashMap<usize, usize> = HashMap::new();
        let mut next = Vec::new();
        for &state in &states {
            for &class in &rows[state] {
                if is_last {
                    key.push(match chart.effects[class] {
                        Effect::Forbidden => 0,
                        Effect::None => 1,
                        Effect::Weight(slot) => 2 + u64::from(slot),
                    });
                    continue;
                }
                let fresh = numbers.len();
                key.push(*numbers.entry(class).or_insert_with(|| {
                    next.push(class);
                    fresh
                }) as u64);
            }
        }
        states = next;
    }
}

/// The states of a level that the remaining choices reach.
struct Layer {
    /// In the order of their first visit.
    states: Vec<usize>,
    /// The position of each state in `states`.
    places: Vec<usize>,
}

/// The reached states before each level, and after the last.
fn reached(chart: &Chart, domains: &mut Domains) -> Vec<Layer> {
    let mut layers = vec![Layer { states: vec![0], places: vec![0] }];
    let mut work = 0;
    for (depth, level) in chart.levels.iter().enumerate() {
        let n_after = chart.levels.get(depth + 1).map_or(chart.results.len(), |next| next.n_states);
        let mut layer = Layer { states: Vec::new(), places: vec![usize::MAX; n_after] };
        for &state in &layers[depth].states {
            for choice in domains.states(level.variable) {
                let after = level.next[state * level.n_choices + choice];
                if layer.places[after] == usize::MAX {
                    layer.places[after] = layer.states.len();
                    layer.states.push(after);
                }
            }
        }
        work += n_after + layers[depth].states.len() * level.n_choices;
        layers.push(layer);
    }
    domains.work += 10.0 * work as f64;
    layers
}

fn effect(chart: &Chart, state: usize) -> Effect {
    chart.effects[chart.results[state]]
}
