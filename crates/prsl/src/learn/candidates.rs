//! Candidates for rules, and their estimated gains.
//!
//! Samples are kept as bits: one word of 32 samples per row and atom. Known truths are words of ones or zeros. So a
//! conjunction is an AND, and its count a population count. The counts of all sign patterns of two or three atoms
//! follow from those of the positive ones by inclusion and exclusion:
//!
//! ```text
//! n(a ¬b) = n(a) − n(a b)        n(¬a ¬b) = 32 − n(a) − n(b) + n(a b)        and so on
//! ```

use std::collections::BTreeSet;

use rayon::prelude::*;

use super::feature::{Feature, Literal};
use super::gain::Counts;
use crate::infer::samples::Samples;
use crate::infer::semiring::wide;

/// Number of samples per row: the bits of a word.
pub(crate) const N_SAMPLES: usize = 32;
/// Number of candidates that are kept of all that pay.
const KEPT: usize = 64;
/// Number of candidates that are extended by a fourth literal, or by categories.
const EXTENDED: usize = 8;
/// Maximum number of rows times triples that are counted. A pass then takes a few seconds.
const MAX_TRIPLES: usize = 1 << 32;
/// Largest number in a count rule.
const MAX_COUNT: usize = 3;
/// Minimum number of yes/no labels of a count rule. With fewer it is a clause, or nearly one.
const MIN_COUNTED: usize = 5;

/// A category of a label. Of two categories only the first is an atom; the second is its negation.
#[derive(Clone, Copy, Debug)]
struct Atom {
    label: usize,
    category: usize,
}

/// A rule that may pay.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) feature: Feature,
    /// Estimated gain in penalized log-likelihood, in nats.
    pub(crate) gain: f64,
    /// The weight of that gain.
    pub(crate) weight: f64,
    /// Description length, in nats, times the parsimony.
    pub(crate) price: f64,
}

/// The prices of rules by shape: the logarithm of the number of candidates of that shape.
#[derive(Clone, Debug)]
pub(crate) struct Prices {
    /// ln of the number of clauses with 0, 1, 2, ... literals of single categories or their negations.
    clauses: Vec<f64>,
    /// The same for clauses with sets of categories.
    unions: Vec<f64>,
    counts: f64,
    sizes: Vec<usize>,
}

/// Maximum number of literals of a clause.
pub(crate) const MAX_LITERALS: usize = 4;

impl Prices {
    /// Prices for labels of these sizes. Unary rules are only about the labels in `unary`.
    pub(crate) fn new(sizes: &[usize], unary: &[usize]) -> Self {
        let singles = |&size: &usize| if size == 2 { 2.0 } else { 2.0 * size as f64 };
        let sets = |&size: &usize| (size as f64).exp2() - 2.0;
        let mut clauses = log_symmetric(sizes.iter().map(singles));
        let mut unions = log_symmetric(sizes.iter().map(sets));
        let log_sum = |count: &dyn Fn(&usize) -> f64| {
            unary.iter().map(|&label| count(&sizes[label])).sum::<f64>().max(1.0).ln()
        };
        (clauses[1], unions[1]) = (log_sum(&singles), log_sum(&sets));
        Self { clauses, unions, counts: (2.0 * MAX_COUNT as f64).ln(), sizes: sizes.to_vec() }
    }

    /// The price of a rule at parsimony 1.
    pub(crate) fn of(&self, feature: &Feature) -> f64 {
        match feature {
            Feature::Conjunction(literals) => {
                let is_single = |literal: &Literal| {
                    literal.categories.len() == 1 || literal.categories.len() + 1 == self.sizes[literal.label]
                };
                match literals.iter().all(is_single) {
                    true => self.clauses[literals.len()],
                    false => self.unions[literals.len()],
                }
            }
            Feature::Fewer(_) | Feature::More(_) => self.counts,
        }
    }
}

/// ln of the elementary symmetric polynomials of degree 0 to [`MAX_LITERALS`].
fn log_symmetric(numbers: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut sums = [0.0; MAX_LITERALS + 1];
    sums[0] = 1.0;
    for number in numbers {
        for degree in (1..=MAX_LITERALS).rev() {
            sums[degree] += number * sums[degree - 1];
        }
    }
    sums.map(|sum| f64::ln(sum.max(1.0))).to_vec()
}

/// Known truths and samples of the model as bits.
pub(crate) struct Sheet {
    atoms: Vec<Atom>,
    sizes: Vec<usize>,
    /// For each atom a word per row.
    data: Vec<Vec<u32>>,
    model: Vec<Vec<u32>>,
    /// Row weights, times the ratio of all rows to these.
    weights: Vec<f64>,
    counted: Vec<usize>,
}

/// What is known of a row.
pub(crate) enum Observed<'a> {
    /// The category of every label.
    Complete(Vec<usize>),
    /// Samples given the known labels.
    Sampled(&'a Samples),
}

impl Sheet {
    pub(crate) fn new(sizes: &[usize], counted: &[usize], weights: Vec<f64>) -> Self {
        let categories = |(label, &size): (usize, &usize)| {
            let n = if size == 2 { 1 } else { size };
            (0..n).map(move |category| Atom { label, category })
        };
        let atoms: Vec<Atom> = sizes.iter().enumerate().flat_map(categories).collect();
        let empty = vec![vec![0; weights.len()]; atoms.len()];
        Self {
            sizes: sizes.to_vec(),
            data: empty.clone(),
            model: empty,
            atoms,
            weights,
            counted: counted.to_vec(),
        }
    }

    /// Sets the words of a row.
    pub(crate) fn set(&mut self, row: usize, observed: &Observed<'_>, samples: &Samples) {
        for (place, atom) in self.atoms.iter().enumerate() {
            self.data[place][row] = match observed {
                Observed::Complete(truth) if truth[atom.label] == atom.category => u32::MAX,
                Observed::Complete(_) => 0,
                Observed::Sampled(samples) => word(samples, atom),
            };
            self.model[place][row] = word(samples, atom);
        }
    }

    fn n_rows(&self) -> usize {
        self.weights.len()
    }

    /// The candidates that pay at this parsimony, by gain less price, without those that were tried.
    pub(crate) fn candidates(
        &self,
        prices: &Prices,
        parsimony: f64,
        unary: &[usize],
        tried: &BTreeSet<Feature>,
    ) -> Vec<Candidate> {
        let pays = Pays { sheet: self, prices, parsimony, tried };
        let mut found = self.pairs(&pays);
        found.extend(self.triples(&pays));
        found.extend(self.unary(&pays, unary));
        found.extend(self.counts(&pays));
        sort(&mut found);
        found.truncate(KEPT);
        let longer: Vec<Candidate> =
            found.par_iter().take(EXTENDED).flat_map(|candidate| self.extensions(&pays, candidate)).collect();
        found.extend(longer);
        sort(&mut found);
        found.dedup_by(|a, b| a.feature == b.feature);
        found
    }

    fn literal(&self, place: usize, is_positive: bool) -> Literal {
        let Atom { label, category } = self.atoms[place];
        let categories = match is_positive {
            true => vec![category],
            false => (0..self.sizes[label]).filter(|&other| other != category).collect(),
        };
        Literal { label, categories }
    }

    fn unary(&self, pays: &Pays<'_>, labels: &[usize]) -> Vec<Candidate> {
        let places = (0..self.atoms.len()).filter(|&place| labels.contains(&self.atoms[place].label));
        let literals = places.flat_map(|place| [true, false].map(|sign| self.literal(place, sign)));
        literals.filter_map(|literal| pays.candidate(Feature::Conjunction(vec![literal]))).collect()
    }

    /// Count rules, where there are enough yes/no labels.
    fn counts(&self, pays: &Pays<'_>) -> Vec<Candidate> {
        if self.counted.len() < MIN_COUNTED {
            return Vec::new();
        }
        let features = (1..=MAX_COUNT).flat_map(|n| [Feature::Fewer(n), Feature::More(n)]);
        features.filter_map(|feature| pays.candidate(feature)).collect()
    }

    /// Candidates with one literal or category more.
    fn extensions(&self, pays: &Pays<'_>, candidate: &Candidate) -> Vec<Candidate> {
        let Feature::Conjunction(literals) = &candidate.feature else { return Vec::new() };
        let mut features = Vec::new();
        if literals.len() == MAX_LITERALS - 1 {
            let others = (0..self.atoms.len())
                .filter(|&place| literals.iter().all(|literal| literal.label != self.atoms[place].label));
            for literal in others.flat_map(|place| [true, false].map(|sign| self.literal(place, sign))) {
                features.push([&literals[..], &[literal]].concat());
            }
        }
        for (place, literal) in literals.iter().enumerate() {
            let n = self.sizes[literal.label];
            for category in (0..n).filter(|&category| !literal.holds(category)) {
                let mut categories = [&literal.categories[..], &[category]].concat();
                categories.sort_unstable();
                if categories.len() < n {
                    let mut wider = literals.clone();
                    wider[place].categories = categories;
                    features.push(wider);
                }
            }
        }
        let sorted = |mut literals: Vec<Literal>| {
            literals.sort();
            Feature::Conjunction(literals)
        };
        features.into_iter().filter_map(|literals| pays.candidate(sorted(literals))).collect()
    }

    /// How often a rule is violated.
    pub(crate) fn counts_of(&self, feature: &Feature) -> Counts {
        let mut counts = Counts::default();
        for row in 0..self.n_rows() {
            let n = |words: &[Vec<u32>]| self.violations(feature, words, row).count_ones();
            counts.add(self.weights[row], n(&self.data), n(&self.model));
        }
        counts
    }

    fn violations(&self, feature: &Feature, words: &[Vec<u32>], row: usize) -> u32 {
        let place = |label: usize, category: usize| {
            self.atoms.partition_point(|atom| (atom.label, atom.category) < (label, category))
        };
        let of_category = |label: usize, category: usize| match (self.sizes[label], category) {
            (2, 1) => !words[place(label, 0)][row],
            _ => words[place(label, category)][row],
        };
        match feature {
            Feature::Conjunction(literals) => literals.iter().fold(u32::MAX, |all, literal| {
                all & literal.categories.iter().fold(0, |any, &c| any | of_category(literal.label, c))
            }),
            Feature::Fewer(n) => !at_least(*n, self.counted.iter().map(|&label| of_category(label, 0))),
            Feature::More(n) => at_least(*n + 1, self.counted.iter().map(|&label| of_category(label, 0))),
        }
    }

    fn pairs(&self, pays: &Pays<'_>) -> Vec<Candidate> {
        let one = |a: usize| -> Vec<Candidate> {
            let partners = (a + 1..self.atoms.len()).filter(|&b| self.atoms[a].label != self.atoms[b].label);
            partners.flat_map(|b| self.pair(pays, a, b)).collect()
        };
        (0..self.atoms.len()).into_par_iter().flat_map_iter(one).collect()
    }

    fn pair(&self, pays: &Pays<'_>, a: usize, b: usize) -> Vec<Candidate> {
        let words = |set: &'_ [Vec<u32>], row: usize| [set[a][row], set[b][row]];
        let mut patterns = [Counts::default(); 4];
        for row in 0..self.n_rows() {
            let [data, model] = [&self.data, &self.model].map(|set| {
                let [a, b] = words(set, row);
                [(!a & !b), (a & !b), (!a & b), (a & b)].map(u32::count_ones)
            });
            for (pattern, (data, model)) in patterns.iter_mut().zip(data.into_iter().zip(model)) {
                pattern.add(self.weights[row], data, model);
            }
        }
        let feature = |signs: usize| {
            Feature::Conjunction(vec![self.literal(a, signs & 1 > 0), self.literal(b, signs & 2 > 0)])
        };
        (0..4).filter_map(|signs| pays.judge(patterns[signs], 2, || feature(signs))).collect()
    }

    /// Triples of all atoms, or as many as there is time for, those that contain the most frequent atoms first.
    fn triples(&self, pays: &Pays<'_>) -> Vec<Candidate> {
        let n = self.atoms.len();
        let affordable = MAX_TRIPLES / self.n_rows().max(1);
        let mut n_atoms = n;
        while n_atoms > 2 && n_atoms * (n_atoms - 1) * (n_atoms - 2) / 6 > affordable {
            n_atoms -= 1;
        }
        let atoms = self.most_uncertain(n_atoms);
        let pairs: Vec<(usize, usize)> =
            (0..atoms.len()).flat_map(|i| (i + 1..atoms.len()).map(move |j| (i, j))).collect();
        let one = |&(i, j): &(usize, usize)| -> Vec<Candidate> {
            let (a, b) = (atoms[i], atoms[j]);
            if self.atoms[a].label == self.atoms[b].label {
                return Vec::new();
            }
            let others = atoms[j + 1..].iter().copied();
            let labels = [self.atoms[a].label, self.atoms[b].label];
            let pair = Pair::new(self, a, b);
            others
                .filter(|&c| !labels.contains(&self.atoms[c].label))
                .flat_map(|c| self.triple(pays, &pair, c))
                .collect()
        };
        pairs.par_iter().flat_map_iter(one).collect()
    }

    /// The atoms with the largest variance, in their order.
    fn most_uncertain(&self, n: usize) -> Vec<usize> {
        let variance = |place: usize| -> f64 {
            let share = |row: usize| f64::from(self.model[place][row].count_ones()) / N_SAMPLES as f64;
            (0..self.n_rows()).map(|row| self.weights[row] * share(row) * (1.0 - share(row))).sum()
        };
        let mut places: Vec<(f64, usize)> =
            (0..self.atoms.len()).map(|place| (variance(place), place)).collect();
        places.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let mut places: Vec<usize> = places.into_iter().take(n).map(|(_, place)| place).collect();
        places.sort_unstable();
        places
    }

    fn triple(&self, pays: &Pays<'_>, pair: &Pair<'_>, c: usize) -> Vec<Candidate> {
        let patterns = pair.patterns(c);
        let feature = |signs: usize| {
            let places = [pair.a, pair.b, c];
            Feature::Conjunction((0..3).map(|i| self.literal(places[i], signs >> i & 1 > 0)).collect())
        };
        (0..8).filter_map(|signs| pays.judge(patterns[signs], 3, || feature(signs))).collect()
    }
}

/// Two atoms, to be combined with all others.
struct Pair<'s> {
    sheet: &'s Sheet,
    a: usize,
    b: usize,
}

impl<'s> Pair<'s> {
    fn new(sheet: &'s Sheet, a: usize, b: usize) -> Self {
        Self { sheet, a, b }
    }

    /// The counts of all sign patterns with a third atom. Bit i of a pattern is set if its i-th atom is positive.
    fn patterns(&self, c: usize) -> [Counts; 8] {
        let sheet = self.sheet;
        let words = |set: &'s [Vec<u32>]| [&set[self.a][..], &set[self.b][..], &set[c][..]];
        let (data, model) = (words(&sheet.data), words(&sheet.model));
        let (data, _) = moments(data, &sheet.weights, false);
        let (linear, squares) = moments(model, &sheet.weights, true);
        let scale = N_SAMPLES as f64;
        std::array::from_fn(|signs| {
            let (sum, square) = (linear[signs], squares[signs]);
            Counts {
                data: data[signs] / scale,
                expected: sum / scale,
                variance: (scale * sum - square) / (scale * (scale - 1.0)),
            }
        })
    }
}

/// Σ ω n and Σ ω n² over rows, for the number n of bits with each sign pattern of three words.
fn moments(words: [&[u32]; 3], weights: &[f64], with_squares: bool) -> ([f64; 8], [f64; 8]) {
    let [a, b, c] = words;
    let n = weights.len();
    let (a, b, c) = (&a[..n], &b[..n], &c[..n]);
    wide!({
        let (mut sums, mut squares) = ([0.0; 8], [0.0; 8]);
        for row in 0..n {
            let (x, y, z) = (a[row], b[row], c[row]);
            let (xy, weight) = (x & y, weights[row]);
            let counts = [
                (!(x | y | z)).count_ones(),
                (x & !(y | z)).count_ones(),
                (y & !(x | z)).count_ones(),
                (xy & !z).count_ones(),
                (z & !(x | y)).count_ones(),
                (x & z & !y).count_ones(),
                (y & z & !x).count_ones(),
                (xy & z).count_ones(),
            ];
            for signs in 0..8 {
                let count = f64::from(counts[signs]);
                sums[signs] += weight * count;
                if with_squares {
                    squares[signs] += weight * count * count;
                }
            }
        }
        (sums, squares)
    })
}

impl Counts {
    /// Adds a row with `data` and `model` of its samples.
    fn add(&mut self, weight: f64, data: u32, model: u32) {
        let (n, scale) = (f64::from(model), N_SAMPLES as f64);
        self.data += weight * f64::from(data) / scale;
        self.expected += weight * n / scale;
        self.variance += weight * n * (scale - n) / (scale * (scale - 1.0));
    }
}

/// Decides whether a candidate pays.
struct Pays<'a> {
    sheet: &'a Sheet,
    prices: &'a Prices,
    parsimony: f64,
    tried: &'a BTreeSet<Feature>,
}

impl Pays<'_> {
    fn candidate(&self, feature: Feature) -> Option<Candidate> {
        self.priced(self.sheet.counts_of(&feature), feature)
    }

    /// Like [`Self::candidate`], for a clause that is only named if it may pay.
    fn judge(&self, counts: Counts, n_literals: usize, feature: impl Fn() -> Feature) -> Option<Candidate> {
        let may_pay = counts.bound() > self.parsimony * self.prices.clauses[n_literals];
        (may_pay && counts.gain() > self.parsimony * self.prices.clauses[n_literals])
            .then(|| self.priced(counts, feature()))
            .flatten()
    }

    fn priced(&self, counts: Counts, feature: Feature) -> Option<Candidate> {
        let ((weight, gain), price) = (counts.best(), self.parsimony * self.prices.of(&feature));
        (gain > price && !self.tried.contains(&feature)).then_some(Candidate { feature, gain, weight, price })
    }
}

/// Sorts candidates by gain less price, the best first.
fn sort(candidates: &mut [Candidate]) {
    let net = |candidate: &Candidate| candidate.gain - candidate.price;
    candidates.sort_by(|a, b| net(b).total_cmp(&net(a)).then_with(|| a.feature.cmp(&b.feature)));
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
