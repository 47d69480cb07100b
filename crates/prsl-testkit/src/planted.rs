//! Data with planted rules, and the comparison of learned rules with them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use prsl::infer::{Sampler, Sampling};
use prsl::learn::Examples;
use prsl::{Assignment, BeliefMatrix, Body, CategoryId, Engines, LabelId, Model, Normalize, Rule, Truth};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// How data with planted rules are drawn.
#[derive(Clone, Copy, Debug)]
pub struct Planted {
    /// Number of labels; the rest are yes/no labels.
    pub n_labels: usize,
    /// Number of labels with three or four categories.
    pub n_wide: usize,
    /// Number of clauses of two or three literals, of which no two share more than one label.
    pub n_rules: usize,
    /// Number of rows.
    pub n_rows: usize,
    /// Share of the truths that are unknown.
    pub missing: f64,
    /// Seed of all random numbers.
    pub seed: u64,
}

impl Default for Planted {
    /// Ten yes/no labels, six rules and 4,000 complete rows.
    fn default() -> Self {
        Self { n_labels: 10, n_wide: 0, n_rules: 6, n_rows: 4000, missing: 0.0, seed: 1 }
    }
}

/// What violates a clause: the categories of each of its labels.
pub type Literals = BTreeMap<LabelId, BTreeSet<usize>>;

impl Planted {
    /// The model with its rules, and rows. Base rates are from 0.25 to 0.6, p from 0.8 to 0.99, truths are exact samples, and
    /// a belief's log-odds are 2 (±1 + N(0, 1)).
    pub fn draw(&self) -> (Model, Examples) {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        let generator = self.generator(&mut rng);
        let sampler = Engines::new(&generator).sampler().expect("a small model");
        let rows = self.rows(&sampler, 0..self.n_rows, &mut rng);
        (generator, rows)
    }

    /// The same model, and other rows in parts of `n` rows, for tables that do not fit the memory.
    pub fn parts(&self, n: usize) -> (Model, impl Iterator<Item = Examples>) {
        let generator = self.generator(&mut ChaCha8Rng::seed_from_u64(self.seed));
        let sampler = Engines::new(&generator).sampler().expect("a small model");
        let planted = *self;
        let parts = (0..self.n_rows).step_by(n).enumerate().map(move |(part, start)| {
            let mut rng = ChaCha8Rng::seed_from_u64(planted.seed);
            rng.set_stream(1 + part as u64);
            planted.rows(&sampler, start..planted.n_rows.min(start + n), &mut rng)
        });
        (generator, parts)
    }

    fn rows(&self, sampler: &Sampler, rows: Range<usize>, rng: &mut ChaCha8Rng) -> Examples {
        let generator = sampler.model();
        let mut none = BeliefMatrix::new(generator);
        let empty = vec![None; generator.n_categories()];
        rows.clone().for_each(|_| none.push(&empty, Normalize::Never).expect("an empty row"));
        let sampling = Sampling { n_samples: 1, seed: self.seed, first_row: rows.start as u64 };
        let samples = sampler.sample_batch(&none, &sampling).expect("rows of the model");
        let plain = generator.labels().iter().map(|label| label.clone().without_prior());
        let labels =
            plain.fold(Model::builder(), prsl::model::ModelBuilder::add_label).build().expect("labels alone");
        let (mut beliefs, mut truths) = (BeliefMatrix::new(&labels), Vec::new());
        for sample in samples {
            let sample = sample.expect("a small model").expect("a possible row").remove(0);
            beliefs.push(&self.beliefs(&labels, &sample, rng), Normalize::Always).expect("beliefs");
            let known = |label: LabelId| (!rng.random_bool(self.missing)).then(|| sample.category(label));
            truths.push(labels.label_ids().map(known).collect::<Truth>());
        }
        Examples::new(beliefs, truths).expect("a truth for each row")
    }

    fn generator(&self, rng: &mut ChaCha8Rng) -> Model {
        let mut builder = Model::builder();
        for label in 0..self.n_labels {
            let name = format!("l{label}");
            builder = if label < self.n_wide {
                let n = 3 + label % 2;
                let rates: Vec<f64> = (0..n).map(|_| rng.random_range(0.25..0.6)).collect();
                let total: f64 = rates.iter().sum();
                let prior: Vec<f64> = rates.iter().map(|rate| rate / total).collect();
                builder.label(name.clone(), ["a", "b", "c", "d"].into_iter().take(n)).prior(&name, prior)
            } else {
                let rate = rng.random_range(0.25..0.6);
                builder.binary_label(name.clone()).prior(&name, vec![rate, 1.0 - rate])
            };
        }
        let mut scopes: Vec<BTreeSet<usize>> = Vec::new();
        while scopes.len() < self.n_rules {
            let n = rng.random_range(2..=3);
            let mut scope = BTreeSet::new();
            while scope.len() < n {
                scope.insert(rng.random_range(0..self.n_labels));
            }
            if scopes.iter().all(|other| other.intersection(&scope).count() <= 1) {
                let literal = |&label: &usize| self.literal(label, rng);
                let text: Vec<String> = scope.iter().map(literal).collect();
                let probability = (rng.random_range(0.8..0.99_f64) * 1000.0).round() / 1000.0;
                builder = builder.rule(text.join(" | "), probability);
                scopes.push(scope);
            }
        }
        builder.build().expect("rules about the labels")
    }

    fn literal(&self, label: usize, rng: &mut ChaCha8Rng) -> String {
        let is_positive = rng.random_bool(0.5);
        if label >= self.n_wide {
            return if is_positive { format!("l{label}") } else { format!("!l{label}") };
        }
        let category = ["a", "b", "c", "d"][rng.random_range(0..3 + label % 2)];
        format!("l{label}{}{category}", if is_positive { "=" } else { "!=" })
    }

    fn beliefs(&self, model: &Model, truth: &Assignment, rng: &mut ChaCha8Rng) -> Vec<Option<f64>> {
        let mut cells = Vec::new();
        for label in model.label_ids() {
            let n = model.label(label).n_categories();
            let is_true = |category: usize| truth.category(label) == CategoryId::new(category);
            if n == 2 {
                let odds = 2.0 * (if is_true(0) { 1.0 } else { -1.0 } + normal(rng));
                let yes = 1.0 / (1.0 + (-odds).exp());
                cells.extend([Some(yes), Some(1.0 - yes)]);
            } else {
                let scores: Vec<f64> = (0..n)
                    .map(|category| (if is_true(category) { 2.0 } else { 0.0 } + normal(rng)).exp())
                    .collect();
                let total: f64 = scores.iter().sum();
                cells.extend(scores.iter().map(|score| Some(score / total)));
            }
        }
        cells
    }
}

/// A standard normal number (Box and Muller).
fn normal(rng: &mut ChaCha8Rng) -> f64 {
    let (u, v): (f64, f64) = (rng.random::<f64>().max(f64::MIN_POSITIVE), rng.random());
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

/// What violates a clause, crisp or softened; `None` for a rule that is none.
pub fn literals(model: &Model, rule: &Rule) -> Option<Literals> {
    let scope = rule.scope();
    if let Body::NoisyOr(noisy_or) = rule.body() {
        let silent = |label: LabelId| -> BTreeSet<usize> {
            let is_silent = |&c: &usize| noisy_or.inhibition(label, CategoryId::new(c)) == 1.0;
            (0..model.label(label).n_categories()).filter(is_silent).collect()
        };
        return Some(scope.into_iter().map(|label| (label, silent(label))).collect());
    }
    let formula = rule.formula()?;
    let sizes: Vec<usize> = scope.iter().map(|&label| model.label(label).n_categories()).collect();
    let mut found: Literals = BTreeMap::new();
    let mut n_violating = 0;
    for number in 0..sizes.iter().product::<usize>() {
        let mut rest = number;
        let mut categories = vec![0; model.labels().len()];
        for (&label, size) in scope.iter().zip(&sizes) {
            categories[label.index()] = rest % size;
            rest /= size;
        }
        if !formula.holds(&Assignment::from_indices(categories.clone())) {
            n_violating += 1;
            scope.iter().for_each(|&label| {
                found.entry(label).or_default().insert(categories[label.index()]);
            });
        }
    }
    let is_clause = found.values().map(BTreeSet::len).product::<usize>() == n_violating && n_violating > 0;
    is_clause.then_some(found)
}

/// Number of planted rules that were found literally, and of found rules that are unrelated to all planted ones.
pub fn compare(generator: &Model, learned: &Model) -> (usize, usize) {
    let all = |model: &Model| -> Vec<Literals> {
        model.rules().iter().filter_map(|rule| literals(model, rule)).collect()
    };
    let (planted, found) = (all(generator), all(learned));
    let contains = |a: &Literals, b: &Literals| b.iter().all(|literal| a.get(literal.0) == Some(literal.1));
    let n_found = planted.iter().filter(|rule| found.contains(rule)).count();
    let is_unrelated =
        |rule: &&Literals| planted.iter().all(|other| !contains(rule, other) && !contains(other, rule));
    (n_found, found.iter().filter(is_unrelated).count())
}
