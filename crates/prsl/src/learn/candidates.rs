//! Candidates for rules, and their estimated gains.
//!
//! All sign patterns of two atoms are counted in one pass over the rows of a [`Sheet`]; `triples` counts those of three.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::chance;
use super::feature::{Feature, Literal};
use super::gain::Counts;
use super::prices::{MAX_COUNT, MAX_LITERALS, Prices};
use super::sheet::Sheet;

/// Number of candidates that are kept of all that pay.
const KEPT: usize = 64;
/// Number of clauses of three literals on the short list.
const SHORT_LIST: usize = 500;
/// A literal is dropped from a clause if the shorter clause has at least this share of the net gain. Third and fourth
/// literals cost little at low parsimony, but they make rules hard to read and inference slow.
const ENOUGH: f64 = 0.8;
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
        pays.without_chance(found, self.n_payable)
    }
}

/// What rules are looked for.
pub(crate) struct Search<'a> {
    pub(crate) prices: &'a Prices,
    pub(crate) parsimony: f64,
    /// The labels that unary rules may be about.
    pub(crate) unary: &'a [usize],
    pub(crate) learned: &'a [Feature],
    /// Rules that are not looked for.
    pub(crate) tried: &'a BTreeSet<Feature>,
    /// Number of learned rules that are surely not there by chance.
    pub(crate) n_sure: usize,
}

impl Sheet {
    /// The candidates that pay, by gain less price, without those that were tried.
    ///
    /// Counting all clauses of three literals takes most of the time. So those that paid are put on the short list, and
    /// later calls count only the list. All clauses are counted again when the best net gain has fallen to half of what it
    /// was at the last full count. Shapes with no more gains than by chance have no candidates. The best candidates are
    /// also extended by a fourth literal or by categories, and literals that add little are dropped.
    pub(crate) fn candidates(&self, search: &Search<'_>, short_list: &mut ShortList) -> Vec<Candidate> {
        let pays = || Pays::new(self, search);
        let mut found = pays().beyond_chance(|pays| self.pairs(pays)).0;
        found.extend(pays().beyond_chance(|pays| self.unary(pays, search.unary)).0);
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
        let pays_now = pays();
        let longer = found.par_iter().flat_map(|candidate| self.extensions(&pays_now, candidate));
        let both = found.par_iter().cloned().chain(longer);
        found = both.map(|candidate| self.simplest(&pays_now, candidate)).collect();
        let softer = pays().beyond_chance(|pays| self.softenings(pays, search.learned)).0;
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
        let price = pays.search.parsimony * pays.search.prices.number();
        let all = pays.search.prices.softenings(learned, &self.sizes).into_iter();
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

    /// The candidate without literals that add little.
    fn simplest(&self, pays: &Pays<'_>, mut candidate: Candidate) -> Candidate {
        while let Some(shorter) = self.shorter(pays, &candidate) {
            candidate = shorter;
        }
        candidate
    }

    /// The best clause with one literal less, of two or more, if the literal adds little.
    fn shorter(&self, pays: &Pays<'_>, candidate: &Candidate) -> Option<Candidate> {
        let Feature::Conjunction(literals) = &candidate.feature else { return None };
        if literals.len() < 3 {
            return None;
        }
        let without =
            |place: usize| Feature::Conjunction([&literals[..place], &literals[place + 1..]].concat());
        (0..literals.len())
            .filter_map(|place| pays.candidate(without(place)))
            .max_by(|a, b| a.net().total_cmp(&b.net()))
            .filter(|shorter| shorter.net() >= ENOUGH * candidate.net())
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
}

/// Decides whether a candidate pays.
pub(super) struct Pays<'a> {
    sheet: &'a Sheet,
    search: &'a Search<'a>,
    /// The smallest expected number of violations with which a clause of this many literals can pay.
    least_expected: [f64; MAX_LITERALS + 1],
    /// Number of rules that could pay, of those that were judged.
    n_payable: AtomicUsize,
}

impl<'a> Pays<'a> {
    fn new(sheet: &'a Sheet, search: &'a Search<'a>) -> Self {
        let price = |n: usize| search.parsimony * search.prices.clauses[n];
        let least_expected = std::array::from_fn(|n| Counts::least_expected(price(n)));
        Self { sheet, search, least_expected, n_payable: AtomicUsize::new(0) }
    }

    /// The candidates of one shape, or none if as many would pay by chance; and the number that could pay.
    fn beyond_chance(&self, find: impl FnOnce(&Self) -> Vec<Candidate>) -> (Vec<Candidate>, usize) {
        let found = find(self);
        let n_payable = self.n_payable.load(Ordering::Relaxed);
        (self.without_chance(found, n_payable), n_payable)
    }

    /// The candidates, or none if as many of `n_payable` would pay by chance.
    fn without_chance(&self, found: Vec<Candidate>, n_payable: usize) -> Vec<Candidate> {
        let gains = found.iter().map(|candidate| candidate.gain_without_penalty);
        if chance::is_exceeded(gains, n_payable, self.search.n_sure) { found } else { Vec::new() }
    }

    fn candidate(&self, feature: Feature) -> Option<Candidate> {
        let price = self.search.parsimony * self.search.prices.of(&feature);
        self.at_price(feature, price)
    }

    fn at_price(&self, feature: Feature, price: f64) -> Option<Candidate> {
        self.n_payable.fetch_add(1, Ordering::Relaxed);
        self.priced(self.sheet.counts_of(&feature), feature, price)
    }

    /// Like [`Self::candidate`], for a clause that is only named if it may pay.
    pub(super) fn judge(
        &self,
        counts: Counts,
        n_literals: usize,
        feature: impl Fn() -> Feature,
    ) -> Option<Candidate> {
        if counts.expected >= self.least_expected[n_literals] {
            self.n_payable.fetch_add(1, Ordering::Relaxed);
        }
        let price = self.search.parsimony * self.search.prices.clauses[n_literals];
        let may_pay = counts.bound() > price && counts.gain() > price;
        may_pay.then(|| self.priced(counts, feature(), price)).flatten()
    }

    fn priced(&self, counts: Counts, feature: Feature, price: f64) -> Option<Candidate> {
        if counts.bound() <= price {
            return None;
        }
        let (weight, gain) = counts.best();
        let variance_ratio = counts.variance_ratio(weight);
        (gain > price && !self.search.tried.contains(&feature)).then_some(Candidate {
            feature,
            gain,
            gain_without_penalty: counts.gain_without_penalty(),
            weight,
            variance_ratio,
            price,
        })
    }
}

/// Sorts candidates by gain less price, the best first.
fn sort(candidates: &mut [Candidate]) {
    candidates.sort_by(|a, b| b.net().total_cmp(&a.net()).then_with(|| a.feature.cmp(&b.feature)));
}
