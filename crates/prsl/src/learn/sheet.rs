//! Known truths and samples of the model as bits.
//!
//! One word of 32 samples per row and atom. Known truths are words of ones or zeros. So a conjunction is an AND, and its
//! count a population count.

use super::chunks::splitmix;
use super::data::Known;
use super::feature::{Feature, Literal};
use super::gain::Counts;
use super::problem::{Compiled, Problem};
use crate::infer::samples::Samples;

/// Number of samples per row: the bits of a word.
pub(crate) const N_SAMPLES: usize = 32;
/// Maximum number of rows on which candidates are scored.
const MAX_SCORED: usize = 20_000;
/// Number of rows whose samples are in memory at a time. Samples are 64 times as large as their bits.
const SAMPLED_AT_ONCE: usize = 1024;

/// A category of a label. Of two categories only the first is an atom; the second is its negation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Atom {
    pub(crate) label: usize,
    pub(crate) category: usize,
}

/// Known truths and samples of the model as bits.
pub(crate) struct Sheet {
    pub(crate) atoms: Vec<Atom>,
    /// The first atom of each label.
    first_atoms: Vec<usize>,
    pub(crate) sizes: Vec<usize>,
    /// For each atom a word per row.
    pub(crate) data: Vec<Vec<u32>>,
    pub(crate) model: Vec<Vec<u32>>,
    /// The number of each row among the rows that are learned from.
    pub(crate) rows: Vec<usize>,
    /// Row weights, times the ratio of all rows to these.
    pub(crate) weights: Vec<f64>,
    pub(crate) counted: Vec<usize>,
}

/// What is known of a row.
enum Observed<'a> {
    /// The category of every label.
    Complete(Vec<usize>),
    /// Samples given the known labels.
    Sampled(&'a Samples),
}

impl Sheet {
    /// Draws samples of rows from the present model, and compares them with what is known. `stream` makes the samples of
    /// different passes independent.
    pub(crate) fn draw(
        problem: &Problem,
        compiled: &mut Compiled,
        parameters: &[f64],
        seed: u64,
        stream: u64,
    ) -> Self {
        let data = &problem.data;
        problem.reweigh(&mut compiled.engine, parameters);
        let rows = problem.rows_to_score(seed);
        let seed_of = |row: &usize, part: u64| {
            splitmix(data.hashes[*row] ^ splitmix(seed ^ splitmix(2 * stream + part)))
        };
        let samples = |values: &[f64], rows: &[usize], part: u64| {
            let seeds: Vec<u64> = rows.iter().map(|row| seed_of(row, part)).collect();
            compiled.engine.samples(&problem.rows(values, &vec![1.0; rows.len()]), &seeds, N_SAMPLES)
        };
        let mut sheet = Self::new(problem, rows.clone());
        for (place, rows) in rows.chunks(SAMPLED_AT_ONCE).enumerate() {
            let free = samples(&problem.values(parameters, rows), rows, 0);
            let partial: Vec<usize> =
                rows.iter().copied().filter(|&row| data.known[row] == Known::Some).collect();
            let clamped = problem.clamped(&problem.values(parameters, &partial), &partial);
            let mut given = samples(&clamped, &partial, 1).into_iter();
            for (at, (&row, samples)) in rows.iter().zip(&free).enumerate() {
                let known = match data.known[row] {
                    Known::All => None,
                    Known::Some => given.next().flatten(),
                };
                let Some(samples) = samples else { continue };
                let observed = match &known {
                    Some(samples) => Observed::Sampled(samples),
                    None => Observed::Complete(
                        (0..data.n_labels()).filter_map(|label| data.truth(row, label)).collect(),
                    ),
                };
                sheet.set(place * SAMPLED_AT_ONCE + at, &observed, samples);
            }
        }
        sheet
    }

    fn new(problem: &Problem, rows: Vec<usize>) -> Self {
        let data = &problem.data;
        let sizes: Vec<usize> = data.blocks.iter().map(|block| block.len()).collect();
        let weights: Vec<f64> = rows.iter().map(|&row| data.weights[row]).collect();
        let scale = problem.weight() / weights.iter().sum::<f64>();
        let categories = |(label, &size): (usize, &usize)| {
            let n = if size == 2 { 1 } else { size };
            (0..n).map(move |category| Atom { label, category })
        };
        let atoms: Vec<Atom> = sizes.iter().enumerate().flat_map(categories).collect();
        let first = |label: usize| atoms.partition_point(|atom| atom.label < label);
        let empty = vec![vec![0; rows.len()]; atoms.len()];
        Self {
            first_atoms: (0..sizes.len()).map(first).collect(),
            sizes,
            data: empty.clone(),
            model: empty,
            atoms,
            rows,
            weights: weights.iter().map(|weight| scale * weight).collect(),
            counted: problem.counted.clone(),
        }
    }

    /// Sets the words of a row.
    fn set(&mut self, row: usize, observed: &Observed<'_>, samples: &Samples) {
        for (place, atom) in self.atoms.iter().enumerate() {
            self.data[place][row] = match observed {
                Observed::Complete(truth) if truth[atom.label] == atom.category => u32::MAX,
                Observed::Complete(_) => 0,
                Observed::Sampled(samples) => word(samples, atom),
            };
            self.model[place][row] = word(samples, atom);
        }
    }

    pub(crate) fn n_rows(&self) -> usize {
        self.weights.len()
    }

    pub(crate) fn literal(&self, place: usize, is_positive: bool) -> Literal {
        let Atom { label, category } = self.atoms[place];
        let categories = match is_positive {
            true => vec![category],
            false => (0..self.sizes[label]).filter(|&other| other != category).collect(),
        };
        Literal { label, categories }
    }

    /// How often a rule is violated.
    pub(crate) fn counts_of(&self, feature: &Feature) -> Counts {
        let mut counts = Counts::default();
        let [data, model] = [&self.data, &self.model].map(|words| self.violations_of(feature, words));
        for (&weight, (data, model)) in self.weights.iter().zip(data.into_iter().zip(model)) {
            counts.add(weight, data.count_ones(), model.count_ones());
        }
        counts
    }

    /// The samples of each row that violate a rule. Clauses are computed atom by atom, several rows at a time.
    fn violations_of(&self, feature: &Feature, words: &[Vec<u32>]) -> Vec<u32> {
        let Feature::Conjunction(literals) = feature else {
            return (0..self.n_rows()).map(|row| self.violations(feature, words, row)).collect();
        };
        let mut all = vec![u32::MAX; self.n_rows()];
        for literal in literals {
            let mut any = vec![0; self.n_rows()];
            for &category in &literal.categories {
                let (place, flip) = self.atom_of(literal.label, category);
                any.iter_mut().zip(&words[place]).for_each(|(any, word)| *any |= word ^ flip);
            }
            all.iter_mut().zip(any).for_each(|(all, any)| *all &= any);
        }
        all
    }

    /// The model's samples of a row in which a label has a category.
    pub(crate) fn category(&self, label: usize, category: usize, row: usize) -> u32 {
        self.category_in(&self.model, label, category, row)
    }

    fn category_in(&self, words: &[Vec<u32>], label: usize, category: usize, row: usize) -> u32 {
        let (place, flip) = self.atom_of(label, category);
        words[place][row] ^ flip
    }

    /// The place of a category's atom, and the bits to flip: all of them for the second of two categories.
    fn atom_of(&self, label: usize, category: usize) -> (usize, u32) {
        match (self.sizes[label], category) {
            (2, 1) => (self.first_atoms[label], u32::MAX),
            _ => (self.first_atoms[label] + category, 0),
        }
    }

    /// The samples of a row that violate a rule.
    pub(crate) fn violations(&self, feature: &Feature, words: &[Vec<u32>], row: usize) -> u32 {
        let of_category = |label: usize, category: usize| self.category_in(words, label, category, row);
        match feature {
            Feature::Conjunction(literals) => literals.iter().fold(u32::MAX, |all, literal| {
                all & literal.categories.iter().fold(0, |any, &c| any | of_category(literal.label, c))
            }),
            Feature::Fewer(n) => !at_least(*n, self.counted.iter().map(|&label| of_category(label, 0))),
            Feature::More(n) => at_least(*n + 1, self.counted.iter().map(|&label| of_category(label, 0))),
        }
    }
}

impl Counts {
    /// Adds a row with `data` and `model` of its samples.
    pub(crate) fn add(&mut self, weight: f64, data: u32, model: u32) {
        let (n, scale) = (f64::from(model), N_SAMPLES as f64);
        self.data += weight * f64::from(data) / scale;
        self.expected += weight * n / scale;
        self.variance += weight * n * (scale - n) / (scale * (scale - 1.0));
    }
}

/// The bits of an atom in samples.
fn word(samples: &Samples, atom: &Atom) -> u32 {
    samples
        .iter()
        .enumerate()
        .fold(0, |word, (bit, sample)| word | u32::from(sample.indices()[atom.label] == atom.category) << bit)
}

/// The bits that are set in at least `n` words.
fn at_least(n: usize, words: impl Iterator<Item = u32>) -> u32 {
    // reached[k]: the bits that were set in at least k + 1 words so far.
    let mut reached = vec![0; n];
    for word in words {
        for k in (1..n).rev() {
            reached[k] |= reached[k - 1] & word;
        }
        reached[0] |= word;
    }
    reached[n - 1]
}

/// The largest scattered hash of the rows on which candidates are scored; `None` if they are scored on all rows.
pub(crate) fn hash_limit(n_rows: usize) -> Option<u64> {
    let share = MAX_SCORED as f64 / n_rows as f64;
    (n_rows > MAX_SCORED).then_some((share * u64::MAX as f64) as u64)
}

impl Problem {
    /// The rows on which candidates are scored: all, or those with the smallest hashes.
    pub(crate) fn rows_to_score(&self, seed: u64) -> Vec<usize> {
        self.rows_within(hash_limit(self.n_rows()), seed)
    }

    /// The rows at hand whose scattered hash is within a limit.
    pub(crate) fn rows_within(&self, limit: Option<u64>, seed: u64) -> Vec<usize> {
        let is_within =
            |row: &usize| limit.is_none_or(|limit| splitmix(self.data.hashes[*row] ^ seed) <= limit);
        (0..self.data.n_rows()).filter(is_within).collect()
    }
}
