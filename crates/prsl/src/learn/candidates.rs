//! Candidates for rules, and their estimated gains.
//!
//! All sign patterns of two or three atoms are counted in one pass over the rows of a [`Sheet`].

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::chance;
use super::feature::{Feature, Literal};
use super::gain::Counts;
use super::sheet::{N_SAMPLES, Sheet};
use crate::infer::semiring::wide;

/// Number of candidates that are kept of all that pay.
const KEPT: usize = 64;
/// Number of clauses of three literals on the short list.
const SHORT_LIST: usize = 500;
/// Number of candidates that are extended by a fourth literal, or by categories.
const EXTENDED: usize = 8;
/// Maximum number of rows times triples that are counted. A pass then takes a few seconds.
const MAX_TRIPLES: usize = 1 << 32;
/// Largest number in a count rule.
const MAX_COUNT: usize = 3;
/// Minimum number of yes/no labels of a count rule. With fewer it is a clause, or nearly one.
const MIN_COUNTED: usize = 5;

/// A rule that may pay.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) feature: Feature,
    /// Estimated gain in penalized log-likelihood, in nats.
    pub(crate) gain: f64,
    /// The same without the penalty of the weight.
    gain_without_penalty: f64,
    /// The weight of that gain.
    pub(crate) weight: f64,
    /// How much smaller the variance of its violation is at that weight than without the rule.
    pub(crate) variance_ratio: f64,
    /// Description length, in nats, times the parsimony.
    pub(crate) price: f64,
}

impl Candidate {
    /// The estimated gain less the price.
    pub(crate) fn net(&self) -> f64 {
        self.gain - self.price
    }
}

/// Clauses of three literals that paid when all were last counted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ShortList {
    triples: Vec<Feature>,
    /// The net gain of the best candidate at that time.
    net_gain: f64,
    /// Number of clauses of three literals that could have paid.
    n_payable: usize,
}

impl Default for ShortList {
    /// The list before the first count.
    fn default() -> Self {
        Self { triples: Vec::new(), net_gain: f64::MAX, n_payable: 0 }
    }
}

impl ShortList {
    /// The candidates on the list that pay now.
    fn candidates(&self, pays: &Pays<'_>) -> Vec<Candidate> {
        let found = self.triples.par_iter().filter_map(|triple| pays.candidate(triple.clone())).collect();
        without_chance(found, self.n_payable)
    }
}

/// The prices of rules by shape: the logarithm of the number of candidates of that shape.
#[derive(Clone, Debug)]
pub(crate) struct Prices {
    /// ln of the number of clauses with 0, 1, 2, ... literals of single categories or their negations.
    clauses: Vec<f64>,
    /// The same for clauses with sets of categories.
    unions: Vec<f64>,
    counts: f64,
    /// ½ ln of the number of rows: the price of an inhibition probability.
    number: f64,
    sizes: Vec<usize>,
}

/// Maximum number of literals of a clause.
pub(crate) const MAX_LITERALS: usize = 4;

impl Prices {
    /// Prices for labels of these sizes. Unary rules are only about the labels in `unary`. Numbers cost ½ ln of the total
    /// weight of the rows.
    pub(crate) fn new(sizes: &[usize], unary: &[usize], total: f64) -> Self {
        let singles = |&size: &usize| if size == 2 { 2.0 } else { 2.0 * size as f64 };
        let sets = |&size: &usize| (size as f64).exp2() - 2.0;
        let mut clauses = log_symmetric(sizes.iter().map(singles));
        let mut unions = log_symmetric(sizes.iter().map(sets));
        let log_sum = |count: &dyn Fn(&usize) -> f64| {
            unary.iter().map(|&label| count(&sizes[label])).sum::<f64>().max(1.0).ln()
        };
        (clauses[1], unions[1]) = (log_sum(&singles), log_sum(&sets));
        let counts = (2.0 * MAX_COUNT as f64).ln();
        Self { clauses, unions, counts, number: 0.5 * total.max(1.0).ln(), sizes: sizes.to_vec() }
    }

    /// The price of an inhibition probability at parsimony 1.
    pub(crate) fn number(&self) -> f64 {
        self.number
    }

    pub(crate) fn sizes(&self) -> &[usize] {
        &self.sizes
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

impl Sheet {
    /// The candidates that pay at this parsimony, by gain less price, without those that were tried.
    ///
    /// Counting all clauses of three literals takes most of the time. So those that paid are put on the short list, and
    /// later calls count only the list. All clauses are counted again when the best net gain has fallen to half of what it
    /// was at the last full count. Shapes with no more gains than by chance have no candidates.
    pub(crate) fn candidates(
        &self,
        prices: &Prices,
        parsimony: f64,
        unary: &[usize],
        learned: &[Feature],
        tried: &BTreeSet<Feature>,
        short_list: &mut ShortList,
    ) -> Vec<Candidate> {
        let pays = || Pays::new(self, prices, parsimony, tried);
        let mut found = pays().beyond_chance(|pays| self.pairs(pays)).0;
        found.extend(pays().beyond_chance(|pays| self.unary(pays, unary)).0);
        found.extend(pays().beyond_chance(|pays| self.counts(pays)).0);
        let listed = short_list.candidates(&pays());
        let best = found.iter().chain(&listed).map(Candidate::net).fold(0.0, f64::max);
        if best > short_list.net_gain / 2.0 {
            found.extend(listed);
        } else {
            let (mut triples, n_payable) = pays().beyond_chance(|pays| self.triples(pays));
            sort(&mut triples);
            triples.truncate(SHORT_LIST);
            short_list.n_payable = n_payable;
            short_list.triples = triples.iter().map(|triple| triple.feature.clone()).collect();
            found.extend(triples);
            short_list.net_gain = found.iter().map(Candidate::net).fold(0.0, f64::max);
        }
        sort(&mut found);
        found.truncate(KEPT);
        let longer: Vec<Candidate> = found
            .par_iter()
            .take(EXTENDED)
            .flat_map(|candidate| self.extensions(&pays(), candidate))
            .collect();
        found.extend(longer);
        let softer = pays().beyond_chance(|pays| self.softenings(pays, learned)).0;
        found.retain(|candidate| softer.iter().all(|it| it.feature != candidate.feature));
        found.extend(softer);
        sort(&mut found);
        found.dedup_by(|a, b| a.feature == b.feature);
        found
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

    /// Clauses that soften learned ones.
    fn softenings(&self, pays: &Pays<'_>, learned: &[Feature]) -> Vec<Candidate> {
        let price = pays.parsimony * pays.prices.number();
        let all = pays.prices.softenings(learned, &self.sizes).into_iter();
        all.filter_map(|feature| pays.at_price(feature, price)).collect()
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
        let singles = Singles::new(self, &atoms);
        let pairs: Vec<(usize, usize)> =
            (0..atoms.len()).flat_map(|i| (i + 1..atoms.len()).map(move |j| (i, j))).collect();
        let one = |&(i, j): &(usize, usize)| -> Vec<Candidate> {
            let (a, b) = (atoms[i], atoms[j]);
            if self.atoms[a].label == self.atoms[b].label {
                return Vec::new();
            }
            let others = atoms[j + 1..].iter().copied();
            let labels = [self.atoms[a].label, self.atoms[b].label];
            let pair = Pair::new(self, &singles, a, b);
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
    singles: &'s Singles,
    a: usize,
    b: usize,
    /// Row by row: the number of samples with both, and their bits.
    n_ab: Vec<f64>,
    model: Vec<u32>,
    data: Vec<u32>,
}

/// The number of samples with each atom, row by row, and how often the data have one or two atoms.
struct Singles {
    counts: Vec<Vec<f64>>,
    data: Vec<f64>,
    /// For a < b: how often the data have both.
    pairs: Vec<Vec<f64>>,
}

impl Singles {
    fn new(sheet: &Sheet, atoms: &[usize]) -> Self {
        let count = |words: &Vec<u32>| words.iter().map(|word| f64::from(word.count_ones())).collect();
        let n = sheet.atoms.len();
        let of_data = |a: usize, b: usize| -> f64 {
            let words = sheet.data[a].iter().zip(&sheet.data[b]).zip(&sheet.weights);
            words.map(|((a, b), weight)| weight * f64::from((a & b).count_ones())).sum()
        };
        let pairs = |a: usize| -> Vec<f64> {
            let is_wanted = |b: usize| a <= b && atoms.binary_search(&a).is_ok();
            (0..n).map(|b| if is_wanted(b) { of_data(a, b) } else { 0.0 }).collect()
        };
        let pairs: Vec<Vec<f64>> = (0..n).into_par_iter().map(pairs).collect();
        Self {
            counts: sheet.model.iter().map(count).collect(),
            data: (0..n).map(|a| pairs[a][a]).collect(),
            pairs,
        }
    }
}

impl<'s> Pair<'s> {
    fn new(sheet: &'s Sheet, singles: &'s Singles, a: usize, b: usize) -> Self {
        let both = |set: &[Vec<u32>]| set[a].iter().zip(&set[b]).map(|(a, b)| a & b).collect::<Vec<u32>>();
        let (model, data) = (both(&sheet.model), both(&sheet.data));
        let n_ab = model.iter().map(|word| f64::from(word.count_ones())).collect();
        Self { sheet, singles, a, b, n_ab, model, data }
    }

    /// The counts of all sign patterns with a third atom, c > b > a. Bit i of a pattern is set if its i-th atom is positive.
    fn patterns(&self, c: usize) -> [Counts; 8] {
        let (sums, squares) = self.moments(c);
        let data = self.data(c);
        let scale = N_SAMPLES as f64;
        std::array::from_fn(|signs| {
            let (sum, square) = (sums[signs], squares[signs]);
            Counts {
                data: data[signs].max(0.0) / scale,
                expected: sum / scale,
                variance: (scale * sum - square) / (scale * (scale - 1.0)),
            }
        })
    }

    /// Σ ω n over rows, for the number n of the data's bits with each sign pattern.
    fn data(&self, c: usize) -> [f64; 8] {
        let (sheet, of) = (self.sheet, self.singles);
        let rows = self.data.iter().zip(&sheet.data[c]).zip(&sheet.weights);
        let abc = rows.map(|((ab, c), weight)| weight * f64::from((ab & c).count_ones())).sum();
        let all = N_SAMPLES as f64 * sheet.weights.iter().sum::<f64>();
        let singles = [self.a, self.b, c].map(|atom| of.data[atom]);
        patterns(all, singles, [of.pairs[self.a][self.b], of.pairs[self.a][c], of.pairs[self.b][c]], abc)
    }

    /// Σ ω n and Σ ω n² over rows, for the number n of samples with each sign pattern.
    fn moments(&self, c: usize) -> ([f64; 8], [f64; 8]) {
        let n = self.sheet.n_rows();
        let [a, b, c_bits] = [self.a, self.b, c].map(|atom| &self.sheet.model[atom][..n]);
        let [n_a, n_b, n_c] = [self.a, self.b, c].map(|atom| &self.singles.counts[atom][..n]);
        let (ab, n_ab, weights) = (&self.model[..n], &self.n_ab[..n], &self.sheet.weights[..n]);
        wide!({
            let (mut sums, mut squares) = ([0.0; 8], [0.0; 8]);
            for row in 0..n {
                let c = c_bits[row];
                let [n_ac, n_bc, n_abc] =
                    [a[row] & c, b[row] & c, ab[row] & c].map(|word| f64::from(word.count_ones()));
                let singles = [n_a[row], n_b[row], n_c[row]];
                let counts = patterns(N_SAMPLES as f64, singles, [n_ab[row], n_ac, n_bc], n_abc);
                for signs in 0..8 {
                    let weighted = weights[row] * counts[signs];
                    sums[signs] += weighted;
                    squares[signs] += weighted * counts[signs];
                }
            }
            (sums, squares)
        })
    }
}

/// The counts of all sign patterns of three atoms from those of the positive ones, by inclusion and exclusion. The pairs
/// are ab, ac and bc.
#[inline(always)]
fn patterns(all: f64, [a, b, c]: [f64; 3], [ab, ac, bc]: [f64; 3], abc: f64) -> [f64; 8] {
    [
        all - a - b - c + ab + ac + bc - abc,
        a - ab - ac + abc,
        b - ab - bc + abc,
        ab - abc,
        c - ac - bc + abc,
        ac - abc,
        bc - abc,
        abc,
    ]
}

/// Decides whether a candidate pays.
struct Pays<'a> {
    sheet: &'a Sheet,
    prices: &'a Prices,
    parsimony: f64,
    tried: &'a BTreeSet<Feature>,
    /// The smallest expected number of violations with which a clause of this many literals can pay.
    least_expected: [f64; MAX_LITERALS + 1],
    /// Number of rules that could pay, of those that were judged.
    n_payable: AtomicUsize,
}

impl<'a> Pays<'a> {
    fn new(sheet: &'a Sheet, prices: &'a Prices, parsimony: f64, tried: &'a BTreeSet<Feature>) -> Self {
        let least_expected = std::array::from_fn(|n| Counts::least_expected(parsimony * prices.clauses[n]));
        Self { sheet, prices, parsimony, tried, least_expected, n_payable: AtomicUsize::new(0) }
    }

    /// The candidates of one shape, or none if as many would pay by chance; and the number that could pay.
    fn beyond_chance(&self, find: impl FnOnce(&Self) -> Vec<Candidate>) -> (Vec<Candidate>, usize) {
        let found = find(self);
        let n_payable = self.n_payable.load(Ordering::Relaxed);
        (without_chance(found, n_payable), n_payable)
    }

    fn candidate(&self, feature: Feature) -> Option<Candidate> {
        let price = self.parsimony * self.prices.of(&feature);
        self.at_price(feature, price)
    }

    fn at_price(&self, feature: Feature, price: f64) -> Option<Candidate> {
        self.n_payable.fetch_add(1, Ordering::Relaxed);
        self.priced(self.sheet.counts_of(&feature), feature, price)
    }

    /// Like [`Self::candidate`], for a clause that is only named if it may pay.
    fn judge(&self, counts: Counts, n_literals: usize, feature: impl Fn() -> Feature) -> Option<Candidate> {
        if counts.expected >= self.least_expected[n_literals] {
            self.n_payable.fetch_add(1, Ordering::Relaxed);
        }
        let may_pay = counts.bound() > self.parsimony * self.prices.clauses[n_literals];
        let price = self.parsimony * self.prices.clauses[n_literals];
        (may_pay && counts.gain() > price).then(|| self.priced(counts, feature(), price)).flatten()
    }

    fn priced(&self, counts: Counts, feature: Feature, price: f64) -> Option<Candidate> {
        let (weight, gain) = counts.best();
        let variance_ratio = counts.variance_ratio(weight);
        (gain > price && !self.tried.contains(&feature)).then_some(Candidate {
            feature,
            gain,
            gain_without_penalty: counts.gain_without_penalty(),
            weight,
            variance_ratio,
            price,
        })
    }
}

/// The candidates, or none if as many of `n_payable` would pay by chance.
fn without_chance(found: Vec<Candidate>, n_payable: usize) -> Vec<Candidate> {
    let gains = found.iter().map(|candidate| candidate.gain_without_penalty);
    if chance::is_exceeded(gains, n_payable) { found } else { Vec::new() }
}

/// Sorts candidates by gain less price, the best first.
fn sort(candidates: &mut [Candidate]) {
    candidates.sort_by(|a, b| b.net().total_cmp(&a.net()).then_with(|| a.feature.cmp(&b.feature)));
}
