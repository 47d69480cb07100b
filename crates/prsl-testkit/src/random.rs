//! Random models, with all kinds of rules that experts might write.

use std::collections::BTreeMap;

use prsl::Assignment;
use prsl::model::{Atom, Bound, Combination, Inhibition};
use prsl::{
    BeliefMatrix, Body, CategoryId, Formula, Label, LabelId, Model, ModelBuilder, NoisyOr, Normalize, Rule,
};
use rand::seq::SliceRandom;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Settings of a random model.
#[derive(Clone, Debug)]
pub struct RandomModel {
    /// The number of labels.
    pub n_labels: usize,
    /// The number of rules.
    pub n_rules: usize,
    /// Maximum number of categories of a label; the minimum is 2.
    pub max_categories: usize,
    /// Maximum number of assignments: once reached, further labels are yes/no, then left out.
    pub max_assignments: usize,
    /// Maximum number of typical combinations; half of the models have none.
    pub max_typical: usize,
}

impl Default for RandomModel {
    fn default() -> Self {
        Self { n_labels: 5, n_rules: 5, max_categories: 5, max_assignments: 6000, max_typical: 8 }
    }
}

/// A random model, and the generator in its current state.
pub fn random_model(settings: &RandomModel, seed: u64) -> (Model, ChaCha8Rng) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut labels: Vec<Label> = Vec::new();
    let mut n_assignments = 1;
    for index in 0..settings.n_labels {
        let mut n_categories = rng.random_range(2..=settings.max_categories);
        if n_assignments * n_categories > settings.max_assignments {
            n_categories = 2;
        }
        if n_assignments * n_categories > settings.max_assignments {
            break;
        }
        n_assignments *= n_categories;
        labels.push(random_label(index, n_categories, &mut rng));
    }
    let scope: Scope = labels.iter().map(Label::n_categories).enumerate().collect();
    let mut builder = Model::builder();
    for label in labels {
        builder = builder.add_label(label);
    }
    for index in 0..settings.n_rules {
        let rule = random_rule(&scope, &mut rng);
        let rule = if rng.random_bool(0.3) { rule.named(format!("rule {index}")) } else { rule };
        builder = builder.add_rule(rule.fixed(index % 4 == 3));
    }
    builder = random_combinations(builder, &scope, settings.max_typical, seed);
    (builder.build().expect("random models are valid"), rng)
}

/// Adds typical combinations from a separate generator, so that the rest of the model does not depend on them.
fn random_combinations(
    mut builder: ModelBuilder,
    scope: &[(usize, usize)],
    max_typical: usize,
    seed: u64,
) -> ModelBuilder {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(1);
    let n = if rng.random_bool(0.5) { 0 } else { rng.random_range(0..=max_typical) };
    let mut chosen = BTreeMap::new();
    for _ in 0..n {
        let categories: Vec<usize> = scope.iter().map(|&(_, size)| rng.random_range(0..size)).collect();
        chosen.insert(categories, random_weight(&mut rng));
    }
    for (categories, weight) in chosen {
        builder = builder.add_typical(Combination::new(weight, Assignment::from_indices(categories)));
    }
    builder
}

/// A weight of a combination: none, moderate, or huge.
fn random_weight(rng: &mut impl Rng) -> f64 {
    match rng.random_range(0..8) {
        0 => 0.0,
        1 => 1e17,
        2 => 1e300 * rng.random::<f64>(),
        _ => (10.0 * (rng.random::<f64>() - 0.3)).exp(),
    }
}

/// A random model whose factor graph is a forest, and the generator in its current state. Every rule shares at most one
/// label with earlier rules.
pub fn random_tree(n_rules: usize, seed: u64) -> (Model, ChaCha8Rng) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let max_assignments = 6000;
    let mut sizes: Vec<usize> = vec![rng.random_range(2..=4)];
    let mut rules = Vec::new();
    for _ in 0..n_rules {
        let shared = rng.random_range(0..sizes.len());
        let mut scope: Scope = Vec::new();
        if rng.random_bool(0.9) {
            scope.push((shared, sizes[shared]));
        }
        // Sometimes a wide rule of yes/no labels.
        let (n_new, most) = if rng.random_bool(0.15) { (9, 2) } else { (rng.random_range(0..=3), 4) };
        for _ in 0..n_new {
            let size = rng.random_range(2..=most);
            if sizes.iter().product::<usize>() * size <= max_assignments {
                scope.push((sizes.len(), size));
                sizes.push(size);
            }
        }
        if !scope.is_empty() {
            scope.shuffle(&mut rng);
            rules.push(random_rule(&scope, &mut rng));
        }
    }
    let mut builder = Model::builder();
    for (index, &size) in sizes.iter().enumerate() {
        builder = builder.add_label(random_label(index, size, &mut rng));
    }
    for rule in rules {
        builder = builder.add_rule(rule);
    }
    let scope: Scope = sizes.into_iter().enumerate().collect();
    builder = random_combinations(builder, &scope, 8, seed);
    (builder.build().expect("random models are valid"), rng)
}

/// The labels that a rule may use, each with its number of categories.
pub(crate) type Scope = Vec<(usize, usize)>;

fn random_label(index: usize, n_categories: usize, rng: &mut impl Rng) -> Label {
    let name = if rng.random_bool(0.1) { format!("odd \"name\" {index}") } else { format!("l{index}") };
    let label = match n_categories {
        2 if rng.random_bool(0.5) => Label::binary(name),
        // Sometimes shared category names, so that bare names are ambiguous.
        _ => Label::new(
            name,
            (0..n_categories)
                .map(|c| if index.is_multiple_of(3) { format!("c{c}") } else { format!("l{index}c{c}") }),
        ),
    };
    let label = match rng.random_range(0..4) {
        0 => label.with_prior(random_distribution(n_categories, rng)),
        _ => label,
    };
    match rng.random_range(0..10) {
        0 => label.latent(),
        1 => label.from_classifier("some camera"),
        _ => label,
    }
}

/// A distribution whose written numbers sum to 1 within rounding; sometimes with zeros.
fn random_distribution(n: usize, rng: &mut impl Rng) -> Vec<f64> {
    let mut weights: Vec<f64> =
        (0..n).map(|_| if rng.random_bool(0.1) { 0.0 } else { -rng.random::<f64>().ln() }).collect();
    if weights.iter().all(|&w| w == 0.0) {
        weights[0] = 1.0;
    }
    let sum: f64 = weights.iter().sum();
    weights.iter().map(|w| w / sum).collect()
}

fn random_probability(rng: &mut impl Rng) -> f64 {
    match rng.random_range(0..8) {
        0 => 0.0,
        1 | 2 => 1.0,
        3 => 0.5,
        _ => rng.random(),
    }
}

fn random_rule(scope: &[(usize, usize)], rng: &mut impl Rng) -> Rule {
    let probability = random_probability(rng);
    let body = match rng.random_range(0..10) {
        0..3 if !scope.is_empty() => Body::NoisyOr(random_noisy_or(scope, rng)),
        3..6 => Body::Formula(random_clause(scope, rng)),
        _ => Body::Formula(random_formula(scope, 3, rng)),
    };
    Rule::new(probability, body)
}

fn random_noisy_or(scope: &[(usize, usize)], rng: &mut impl Rng) -> NoisyOr {
    let mut all: Vec<(usize, usize)> =
        scope.iter().flat_map(|&(label, n)| (0..n).map(move |category| (label, category))).collect();
    all.shuffle(rng);
    let n = rng.random_range(1..=all.len().min(8));
    NoisyOr::new(all[..n].iter().map(|&(label, category)| Inhibition {
        label: LabelId::new(label),
        category: CategoryId::new(category),
        probability: match rng.random_range(0..6) {
            0 => 0.0,
            1 => 1.0,
            2 => 1.0 - 1e-9 * rng.random::<f64>(),
            _ => rng.random(),
        },
    }))
}

pub(crate) fn random_atom(scope: &[(usize, usize)], rng: &mut impl Rng) -> Formula {
    if scope.is_empty() || rng.random_bool(0.03) {
        return Formula::constant(rng.random());
    }
    let (label, size) = scope[rng.random_range(0..scope.len())];
    let n = if rng.random_bool(0.8) { 1 } else { rng.random_range(1..=size) };
    let categories = (0..n).map(|_| CategoryId::new(rng.random_range(0..size))).collect::<Vec<_>>();
    Formula::atom(Atom::one_of(LabelId::new(label), categories))
}

pub(crate) fn random_clause(scope: &[(usize, usize)], rng: &mut impl Rng) -> Formula {
    let mut literals = |n: usize| -> Vec<Formula> { (0..n).map(|_| random_atom(scope, rng)).collect() };
    let (body, head) = (literals(1 + scope.len() / 2), literals(2));
    match body.len() % 3 {
        0 => Formula::and(body).implies(Formula::or(head)),
        1 => Formula::or(head).implied_by(Formula::and(body)),
        _ => Formula::and(body).not(),
    }
}

pub(crate) fn random_formula(scope: &[(usize, usize)], depth: usize, rng: &mut impl Rng) -> Formula {
    if depth == 0 {
        return random_atom(scope, rng);
    }
    let n = rng.random_range(2..=3);
    let mut members = |n: usize| -> Vec<Formula> {
        (0..n)
            .map(|_| {
                let depth = rng.random_range(0..depth);
                random_formula(scope, depth, rng)
            })
            .collect()
    };
    let mut two = members(2);
    let (a, b) = (two.pop().expect("two"), two.pop().expect("two"));
    let many = members(n);
    match rng.random_range(0..9) {
        0 => a.not(),
        1 => Formula::and(many),
        2 => Formula::or(many),
        3 => Formula::xor(many),
        4 => a.implies(b),
        5 => a.implied_by(b),
        6 => a.iff(b),
        _ => {
            let bound = [Bound::AtLeast, Bound::AtMost, Bound::Exactly][rng.random_range(0..3)];
            let wide: Vec<Formula> =
                many.into_iter().chain((0..scope.len()).map(|_| random_atom(scope, rng))).collect();
            Formula::count(bound, rng.random_range(0..=wide.len()), wide)
        }
    }
}

/// A row of cells: distributions, observed categories, missing values.
pub fn random_row(model: &Model, rng: &mut impl Rng) -> Vec<Option<f64>> {
    let mut cells = Vec::new();
    for label in model.labels() {
        let n = label.n_categories();
        match rng.random_range(0..6) {
            0 => cells.extend(vec![None; n]),
            1 => {
                let observed = rng.random_range(0..n);
                cells.extend((0..n).map(|category| Some(f64::from(category == observed))));
            }
            2 => {
                let share = rng.random::<f64>();
                cells.push(Some(share));
                cells.extend(vec![None; n - 1]);
            }
            _ => cells.extend(random_distribution(n, rng).into_iter().map(Some)),
        }
    }
    cells
}

/// Twelve labels with eight wide noisy-or rules, and rows with beliefs of about 0.1 to the power `size` in the
/// categories that make the rules fire. Computing the probability of firing as a difference loses digits.
pub fn nearly_silent(seed: u64, size: i32) -> (Model, BeliefMatrix) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut builder = (0..12).fold(Model::builder(), |model, label| model.binary_label(format!("l{label}")));
    for _ in 0..8 {
        let start = rng.random_range(0..12);
        let inhibitions = (0..6).map(|step| Inhibition {
            label: LabelId::new((start + step * step) % 12),
            category: CategoryId::new(0),
            probability: if rng.random_bool(0.3) { 0.0 } else { 1.0 - rng.random::<f64>().powi(8) },
        });
        let mut inhibitions: Vec<_> = inhibitions.collect();
        inhibitions.sort_by_key(|inhibition| inhibition.label);
        inhibitions.dedup_by_key(|inhibition| inhibition.label);
        builder = builder.add_rule(Rule::new(1.0, Body::NoisyOr(NoisyOr::new(inhibitions))));
    }
    let model = builder.build().expect("the rules are valid");
    let mut rows = BeliefMatrix::new(&model);
    for _ in 0..9 {
        let mut cell = || Some(rng.random::<f64>() * 0.1f64.powi(size));
        let cells: Vec<Option<f64>> = (0..12).flat_map(|_| [cell(), None]).collect();
        rows.push(&cells, Normalize::Never).expect("the rows are valid");
    }
    (model, rows)
}
