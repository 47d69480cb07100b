//! Small models with extreme numbers, and rows for them.

use std::collections::BTreeMap;

use prsl::Assignment;
use prsl::model::{Atom, Combination, Inhibition};
use prsl::{BeliefMatrix, Body, CategoryId, Formula, Label, LabelId, Model, NoisyOr, Normalize, Rule};
use rand::{Rng, RngExt};

use crate::random::{Scope, random_atom, random_clause, random_formula};

/// A model, and rows for it.
#[derive(Clone, Debug)]
pub struct Extreme {
    /// The model.
    pub model: Model,
    /// Beliefs, observed categories and missing values.
    pub rows: BeliefMatrix,
}

/// A random number generator that returns given bytes, then zeros. So a fuzzer determines the random numbers.
pub struct Bytes<'a>(pub &'a [u8]);

impl rand::rand_core::TryRng for Bytes<'_> {
    type Error = std::convert::Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        Ok(self.try_next_u64()? as u32)
    }

    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        let (taken, left) = self.0.split_at(self.0.len().min(4));
        self.0 = left;
        let mut bytes = [0; 4];
        bytes[..taken.len()].copy_from_slice(taken);
        // Callers use mostly the leading bits, or the trailing ones.
        let half = u64::from(u32::from_le_bytes(bytes));
        Ok(half << 32 | half)
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Self::Error> {
        bytes.fill_with(|| self.try_next_u64().unwrap_or(0) as u8);
        Ok(())
    }
}

/// Maximum number of assignments of a model.
const MAX_ASSIGNMENTS: usize = 300;

/// A model of 1 to 7 labels with probabilities of any size, with three rows.
///
/// Rules are of all kinds: noisy-or rules, clauses, nested formulas and counts. Their scopes have one to many labels,
/// and may be nested or form chains. Sometimes so many rules share their labels that products underflow. Some models
/// have typical combinations.
pub fn extreme_model(rng: &mut impl Rng) -> Extreme {
    let scope = random_scope(rng);
    let mut builder = scope.iter().fold(Model::builder(), |model, &(label, size)| {
        let label = Label::new(format!("l{label}"), (0..size).map(|category| format!("c{category}")));
        model.add_label(if rng.random_bool(0.2) { label.with_prior(belief(size, rng)) } else { label })
    });
    for rule in random_rules(&scope, rng) {
        builder = builder.add_rule(rule);
    }
    if rng.random_bool(0.25) {
        let categories = |rng: &mut _| scope.iter().map(|&(_, n)| below(n, rng)).collect::<Vec<usize>>();
        let chosen: BTreeMap<Vec<usize>, f64> =
            (0..1 + below(4, rng)).map(|_| (categories(rng), combination_weight(rng))).collect();
        for (categories, weight) in chosen {
            builder = builder.add_typical(Combination::new(weight, Assignment::from_indices(categories)));
        }
    }
    let model = builder.build().expect("extreme models are valid");
    let mut rows = BeliefMatrix::new(&model);
    for _ in 0..3 {
        let cells = random_cells(&scope, rng);
        rows.push(&cells, Normalize::Always).expect("extreme rows are valid");
    }
    Extreme { model, rows }
}

/// Whether a model's factor graph is a forest, so that loopy propagation is exact.
pub fn is_tree(model: &Model) -> bool {
    let mut component: Vec<usize> = (0..model.labels().len()).collect();
    model.rules().iter().all(|rule| {
        let mut of_scope: Vec<usize> = rule.scope().iter().map(|label| component[label.index()]).collect();
        of_scope.sort_unstable();
        let n = of_scope.len();
        of_scope.dedup();
        let first = of_scope.first().copied();
        component.iter_mut().filter(|c| of_scope.contains(c)).for_each(|c| *c = first.unwrap_or(*c));
        of_scope.len() == n
    })
}

fn below(n: usize, rng: &mut impl Rng) -> usize {
    rng.random_range(0..n)
}

fn random_scope(rng: &mut impl Rng) -> Scope {
    let mut scope = Vec::new();
    let mut n_assignments = 1;
    for label in 0..1 + below(7, rng) {
        let size = [2, 2, 2, 3, 4][below(5, rng)];
        if n_assignments * size > MAX_ASSIGNMENTS {
            break;
        }
        n_assignments *= size;
        scope.push((label, size));
    }
    scope
}

/// A probability: ordinary, certain, almost certain, or extremely small.
fn probability(rng: &mut impl Rng) -> f64 {
    match below(12, rng) {
        0 => 0.0,
        1 => 1.0,
        2 => 0.5,
        3 => 1.0 - 1e-16,
        4 => 1.0 - 10f64.powf(-16.0 * rng.random::<f64>()),
        5 => 10f64.powf(-300.0 * rng.random::<f64>()),
        6 => 10f64.powf(-60.0 * rng.random::<f64>()),
        7 => 5e-324 * (1.0 + 1e4 * rng.random::<f64>().powi(4)).floor(),
        8 => 10f64.powf(-10.0 * rng.random::<f64>()),
        _ => rng.random(),
    }
}

/// A distribution with such probabilities; one category has the rest.
fn belief(size: usize, rng: &mut impl Rng) -> Vec<f64> {
    let rest = below(size, rng);
    let mut left = 1.0;
    let mut belief = vec![0.0; size];
    for category in (0..size).filter(|&category| category != rest) {
        belief[category] = probability(rng) * left;
        left -= belief[category];
    }
    belief[rest] = left.max(0.0);
    belief
}

fn random_cells(scope: &Scope, rng: &mut impl Rng) -> Vec<Option<f64>> {
    // Sometimes all beliefs of a row are of one kind, so that products of many small numbers occur.
    let same = rng.random_bool(0.3).then(|| probability(rng)).filter(|&p| p > 0.0);
    let mut cells = Vec::new();
    for &(_, size) in scope {
        match (below(8, rng), same) {
            (0, _) => cells.extend(vec![None; size]),
            (1, _) => {
                let observed = below(size, rng);
                cells.extend((0..size).map(|category| Some(f64::from(category == observed))));
            }
            (2.., Some(p)) => {
                let place = below(2, rng);
                let rest = (1.0 - p) / (size - 1) as f64;
                cells.extend((0..size).map(|category| Some(if category == place { p } else { rest })));
            }
            _ => cells.extend(belief(size, rng).into_iter().map(Some)),
        }
    }
    cells
}

fn combination_weight(rng: &mut impl Rng) -> f64 {
    match below(5, rng) {
        0 => 0.0,
        1 => 10f64.powf(600.0 * (rng.random::<f64>() - 0.5)),
        2 => 5e-324,
        _ => 10f64.powf(10.0 * (rng.random::<f64>() - 0.5)),
    }
}

fn random_rules(scope: &Scope, rng: &mut impl Rng) -> Vec<Rule> {
    let mut rules: Vec<Rule> = Vec::new();
    match below(6, rng) {
        // A chain of hard or soft equivalences and implications.
        0 => {
            let same = rng.random_bool(0.5).then(|| probability(rng));
            for pair in scope.windows(2) {
                let rule = same.unwrap_or_else(|| probability(rng));
                rules.push(Rule::new(rule, Body::Formula(link(pair, rng))));
            }
        }
        // Many rules about the same labels.
        1 => {
            let (part, p) = (part_of(scope, rng), probability(rng));
            let rule = random_rule(&part, rng);
            for _ in 0..2 + below(12, rng) {
                rules.push(rule.clone().with_probability(p));
            }
        }
        // Rules nested in each other's scopes.
        2 => {
            for end in (1..=scope.len()).rev() {
                rules.push(random_rule(&scope[..end], rng));
            }
        }
        _ => {}
    }
    for _ in 0..below(5, rng) {
        let part = if rng.random_bool(0.3) { scope.clone() } else { part_of(scope, rng) };
        rules.push(random_rule(&part, rng));
    }
    rules
}

/// Some labels, in order.
fn part_of(scope: &Scope, rng: &mut impl Rng) -> Scope {
    let part: Scope = scope.iter().copied().filter(|_| rng.random_bool(0.4)).collect();
    if part.is_empty() { vec![scope[below(scope.len(), rng)]] } else { part }
}

fn link(pair: &[(usize, usize)], rng: &mut impl Rng) -> Formula {
    let atom = |(label, _): (usize, usize), category: usize| {
        Formula::atom(Atom::one_of(LabelId::new(label), [CategoryId::new(category)]))
    };
    let (a, b) = (atom(pair[0], 0), atom(pair[1], below(2, rng)));
    if rng.random_bool(0.6) { a.iff(b) } else { a.implies(b) }
}

fn random_rule(scope: &[(usize, usize)], rng: &mut impl Rng) -> Rule {
    let body = match below(10, rng) {
        0..4 => Body::NoisyOr(random_noisy_or(scope, rng)),
        4..6 => Body::Formula(random_clause(scope, rng)),
        6 => Body::Formula(random_atom(scope, rng)),
        _ => Body::Formula(random_formula(scope, 3, rng)),
    };
    Rule::new(probability(rng), body)
}

/// Inhibition probabilities for about half of the categories, different or all equal.
fn random_noisy_or(scope: &[(usize, usize)], rng: &mut impl Rng) -> NoisyOr {
    let same = rng.random_bool(0.3).then(|| probability(rng));
    let mut inhibitions = Vec::new();
    for &(label, size) in scope {
        let first = below(size, rng);
        for category in 0..size {
            if category == first || rng.random_bool(0.3) {
                inhibitions.push(Inhibition {
                    label: LabelId::new(label),
                    category: CategoryId::new(category),
                    probability: same.unwrap_or_else(|| probability(rng)),
                });
            }
        }
    }
    NoisyOr::new(inhibitions)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    #[test]
    fn any_bytes_make_a_model() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for length in (0..400).step_by(7) {
            let bytes: Vec<u8> = (0..length).map(|_| rng.random()).collect();
            for bytes in [&bytes[..], &vec![0; length], &vec![255; length]] {
                assert_eq!(extreme_model(&mut Bytes(bytes)).rows.n_rows(), 3);
            }
        }
    }

    #[test]
    fn trees_are_distinguished_from_cycles() {
        let is_tree = |rules: &str| {
            is_tree(&Model::parse(&format!("label a\nlabel b\nlabel c\nlabel d\n{rules}")).expect("valid"))
        };
        assert!(is_tree("rule 1: a -> b\nrule 1: b -> c\nrule 1: d -> b\nrule 0.9: a"));
        assert!(!is_tree("rule 1: a -> b\nrule 1: b -> c\nrule 1: a -> c"));
        assert!(!is_tree("rule 1: a -> b\nrule 1: b | c | a"));
    }

    #[test]
    fn models_are_diverse() {
        let models: Vec<Extreme> =
            (0..200).map(|seed| extreme_model(&mut ChaCha8Rng::seed_from_u64(seed))).collect();
        let count = |has: fn(&Extreme) -> bool| models.iter().filter(|extreme| has(extreme)).count();
        assert!(count(|it| is_tree(&it.model)) > 20);
        assert!(count(|it| !it.model.typical().is_empty()) > 20);
        assert!(count(|it| it.model.rules().len() > 6) > 20);
        assert!(count(|it| it.rows.values().iter().any(|&b| b > 0.0 && b < f64::MIN_POSITIVE)) > 20);
    }
}
