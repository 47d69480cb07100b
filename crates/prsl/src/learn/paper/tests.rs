//! The objective against enumeration, its gradient against differences, and engines against each other.

use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::joint::Joint;
use super::loopy::Loopy;
use super::objective::Objective;
use super::rows::Rows;
use super::space::{Expert, Space, noisy_or};
use super::tree::Tree;
use crate::learn::watch::{Watch, never};
use crate::metrics::IMPOSSIBLE;

/// A random problem, and rows for it.
struct Case {
    space: Space,
    experts: Vec<Expert>,
    probability: f64,
    /// The inhibition probabilities: below 1 for some labels of each rule.
    q: Vec<f64>,
    rows: Rows,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Joint,
    Tree,
    Loopy,
}

fn case(seed: u64) -> Case {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let n_labels = rng.random_range(2..6);
    let space = Space::new((0..n_labels).map(|_| rng.random_range(2..4)).collect());
    let scope = |rng: &mut ChaCha8Rng| -> Vec<usize> {
        let share = if rng.random_bool(0.2) { 1.0 } else { 0.5 };
        (0..n_labels).filter(|_| rng.random_bool(share)).collect()
    };
    let mut experts = Vec::new();
    for _ in 0..rng.random_range(0..3) {
        let labels = scope(&mut rng);
        let n_entries = labels.iter().map(|&label| space.sizes[label]).product();
        // Hard rules, and soft ones.
        let failed = if rng.random_bool(0.3) { 0.0 } else { 0.1 };
        let factor = |_| if rng.random_bool(0.6) { 1.0 - failed } else { failed };
        experts.push(Expert { labels, factors: (0..n_entries).map(factor).collect() });
    }
    let mut q = Vec::new();
    for _ in 0..rng.random_range(1..4) {
        let labels = scope(&mut rng);
        for (label, &size) in space.sizes.iter().enumerate() {
            let is_connected = labels.contains(&label);
            q.extend((0..size).map(|_| if is_connected { rng.random_range(0.1..1.0) } else { 1.0 }));
        }
    }
    let probability = [0.999, 0.9, 0.2][rng.random_range(0..3)];
    let rows = rows(&space, &experts, &mut rng);
    Case { space, experts, probability, q, rows }
}

/// Rows of which all, some or no truths are known. Some beliefs are certain.
fn rows(space: &Space, experts: &[Expert], rng: &mut ChaCha8Rng) -> Rows {
    let n_rows = rng.random_range(1..40);
    let known = rng.random_range(0..3);
    let (mut beliefs, mut truths) = (Vec::new(), Vec::new());
    for &size in (0..n_rows).flat_map(|_| &space.sizes) {
        let is_certain = rng.random_bool(0.1);
        let certain = rng.random_range(0..size);
        let raw: Vec<f64> = (0..size)
            .map(|m| if is_certain { f64::from(u8::from(m == certain)) } else { rng.random_range(0.05..1.0) })
            .collect();
        beliefs.extend(raw.iter().map(|x| x / raw.iter().sum::<f64>()));
        let is_known = known == 2 || known == 1 && rng.random_bool(0.6);
        truths.push(is_known.then(|| rng.random_range(0..size)));
    }
    let weights = (0..n_rows).map(|_| f64::from(rng.random_range(0..3))).collect();
    Rows::from_parts(space, experts, beliefs, truths, weights)
}

impl Case {
    fn objective(&self, kind: Kind, q: &[f64]) -> Objective {
        let (space, experts, p) = (&self.space, &self.experts, self.probability);
        let engine: Box<dyn super::engine::Engine> = match kind {
            Kind::Joint => Box::new(Joint::new(space, experts, p)),
            Kind::Tree => Box::new(Tree::new(space, experts, p, 1 << 30, q).unwrap()),
            Kind::Loopy => Box::new(Loopy::new(space, experts, p)),
        };
        Objective::with_engine(space.clone(), experts.clone(), p, engine, q).unwrap()
    }

    fn value(&self, kind: Kind, q: &[f64]) -> f64 {
        let mut never = never();
        self.objective(kind, q).value(&self.rows, &mut Watch::new(&mut never)).unwrap()
    }

    fn gradient(&self, kind: Kind) -> (f64, Vec<f64>) {
        let rows: Vec<usize> = (0..self.rows.n_rows).collect();
        let mut never = never();
        let watch = &mut Watch::new(&mut never);
        self.objective(kind, &self.q).gradient(&self.rows, &rows, watch).unwrap()
    }

    /// The derivative in one parameter, from values at five points. A q of 1 is also moved above 1, where the objective is
    /// still smooth, so all labels are connected.
    fn difference(&self, kind: Kind, at: usize, h: f64) -> Option<f64> {
        let shifted = |by: f64| {
            let mut q = self.q.clone();
            q[at] += by;
            self.value(kind, &q)
        };
        let [a, b, c, d] = [-2.0 * h, -h, h, 2.0 * h].map(shifted);
        // A row that becomes impossible makes a jump.
        let is_smooth = [a, b, c, d].iter().all(|x| (x - a).abs() < 1.0);
        is_smooth.then(|| (8.0 * (c - b) - (d - a)) / (12.0 * h))
    }

    /// The objective by enumeration of all assignments.
    fn enumerated(&self) -> f64 {
        let n = self.space.n_labels();
        let (mut sum, mut weight) = (0.0, 0.0);
        for row in 0..self.rows.n_rows {
            let truths = &self.rows.truths[row * n..(row + 1) * n];
            if truths.iter().all(Option::is_none) || self.rows.weights[row] == 0.0 {
                continue;
            }
            let score = self.log_total(row, truths) - self.log_total(row, &vec![None; n]);
            sum += self.rows.weights[row] * if score.is_finite() { score } else { IMPOSSIBLE };
            weight += self.rows.weights[row];
        }
        if weight > 0.0 { sum / weight } else { 0.0 }
    }

    fn log_total(&self, row: usize, truths: &[Option<usize>]) -> f64 {
        let space = &self.space;
        let beliefs = &self.rows.beliefs[row * space.n_categories()..];
        let mut total = 0.0;
        for mut number in 0..space.sizes.iter().product::<usize>() {
            let mut assignment = vec![0; space.n_labels()];
            for (category, size) in assignment.iter_mut().zip(&space.sizes) {
                (*category, number) = (number % size, number / size);
            }
            let is_known = |(truth, category): (&Option<usize>, &usize)| truth.is_none_or(|t| t == *category);
            if !truths.iter().zip(&assignment).all(is_known) {
                continue;
            }
            let at = |label: usize| space.blocks[label].start + assignment[label];
            let mut weight: f64 = (0..space.n_labels()).map(|label| beliefs[at(label)]).product();
            for expert in &self.experts {
                weight *= expert.factors[space.entry(&expert.labels, |label| assignment[label])];
            }
            for q in self.q.chunks_exact(space.n_categories()) {
                let silence = (0..space.n_labels()).map(|label| q[at(label)]).product();
                weight *= noisy_or(self.probability, silence);
            }
            total += weight;
        }
        total.ln()
    }

    /// Keeps rules, of both kinds, that form a forest with the labels. Loopy propagation is exact on it.
    fn forest(mut self) -> Self {
        let mut part: Vec<usize> = (0..self.space.n_labels()).collect();
        let mut joins = |labels: &[usize]| {
            let parts: std::collections::BTreeSet<usize> = labels.iter().map(|&label| part[label]).collect();
            let is_forest = parts.len() == labels.len();
            if let (true, Some(&first)) = (is_forest, parts.first()) {
                part.iter_mut().filter(|part| parts.contains(part)).for_each(|part| *part = first);
            }
            is_forest
        };
        self.experts.retain(|expert| joins(&expert.labels));
        for q in self.q.chunks_exact_mut(self.space.n_categories()) {
            if !joins(&self.space.connected(q)) {
                q.fill(1.0);
            }
        }
        self.prepared_again()
    }

    /// Makes all rules weak, so that loopy propagation converges.
    fn gentle(mut self) -> Self {
        self.q.iter_mut().for_each(|q| *q = 0.7 + 0.3 * *q);
        self.probability = self.probability.clamp(0.2, 0.9);
        for expert in &mut self.experts {
            expert.factors.iter_mut().for_each(|factor| *factor = 0.4 + 0.3 * *factor);
        }
        self.prepared_again()
    }

    /// The rows depend on the base model's rules.
    fn prepared_again(mut self) -> Self {
        let Rows { beliefs, truths, weights, .. } = self.rows;
        self.rows = Rows::from_parts(&self.space, &self.experts, beliefs, truths, weights);
        self
    }
}

fn is_close(a: f64, b: f64, tolerance: f64) -> bool {
    (a - b).abs() <= tolerance * b.abs().max(1.0)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn the_value_agrees_with_enumeration(seed in any::<u64>()) {
        let case = case(seed);
        let expected = case.enumerated();
        for kind in [Kind::Joint, Kind::Tree] {
            let value = case.value(kind, &case.q);
            prop_assert!(is_close(value, expected, 1e-9), "{kind:?}: {value} is not {expected}");
        }
    }

    #[test]
    fn the_gradient_agrees_with_differences(seed in any::<u64>()) {
        let case = case(seed);
        for kind in [Kind::Joint, Kind::Tree] {
            let (value, gradient) = case.gradient(kind);
            prop_assert_eq!(value, case.value(kind, &case.q));
            for (at, &slope) in gradient.iter().enumerate() {
                // Short steps where the objective is steep. With p = 0.999 its curvature is up to 1/(1 − p)², and terms of
                // this size may cancel.
                let h = 1e-5 / (1.0 + slope.abs());
                let Some(expected) = case.difference(kind, at, h) else { continue };
                prop_assert!(is_close(slope, expected, 1e-6), "{kind:?} {at}: {slope} is not {expected}");
            }
        }
    }

    #[test]
    fn one_table_agrees_with_a_tree(seed in any::<u64>()) {
        let case = case(seed);
        let [(value, gradient), (expected, slopes)] = [Kind::Joint, Kind::Tree].map(|kind| case.gradient(kind));
        prop_assert!(is_close(value, expected, 1e-10), "{value} is not {expected}");
        for (slope, expected) in gradient.iter().zip(&slopes) {
            prop_assert!(is_close(*slope, *expected, 1e-9), "{slope} is not {expected}");
        }
    }

    /// Only for connected labels: connecting another one makes a loop.
    #[test]
    fn loopy_gradients_are_exact_on_trees(seed in any::<u64>()) {
        let case = case(seed).forest();
        let [(value, gradient), (expected, slopes)] = [Kind::Loopy, Kind::Joint].map(|kind| case.gradient(kind));
        prop_assert!(is_close(value, expected, 1e-8), "{value} is not {expected}");
        for ((slope, expected), _) in gradient.iter().zip(&slopes).zip(&case.q).filter(|(_, q)| **q < 1.0) {
            prop_assert!(is_close(*slope, *expected, 1e-6), "{slope} is not {expected}");
        }
    }

    #[test]
    fn loopy_gradients_agree_with_differences(seed in any::<u64>()) {
        let case = case(seed).gentle();
        let (_, gradient) = case.gradient(Kind::Loopy);
        for (at, &slope) in gradient.iter().enumerate() {
            let Some(expected) = case.difference(Kind::Loopy, at, 1e-4) else { continue };
            prop_assert!(is_close(slope, expected, 1e-5), "{at}: {slope} is not {expected}");
        }
    }

    /// The engines keep nothing of earlier parameters.
    #[test]
    fn new_parameters_replace_the_old_ones(seed in any::<u64>()) {
        let case = case(seed);
        let other: Vec<f64> = case.q.iter().rev().copied().collect();
        for kind in [Kind::Joint, Kind::Tree, Kind::Loopy] {
            let mut objective = case.objective(kind, &other);
            objective.set(&case.q).unwrap();
            let mut never = never();
            let value = objective.value(&case.rows, &mut Watch::new(&mut never)).unwrap();
            prop_assert_eq!(value, case.value(kind, &case.q));
        }
    }
}
