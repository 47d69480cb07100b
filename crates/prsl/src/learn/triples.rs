//! Clauses of three literals as candidates.
//!
//! All sign patterns of three atoms are counted in one pass over the rows of a [`Sheet`], by inclusion and exclusion.

use rayon::prelude::*;

use super::candidates::{Candidate, Pays};
use super::feature::Feature;
use super::gain::Counts;
use super::sheet::{N_SAMPLES, Sheet};
use crate::infer::semiring::wide;

/// Maximum number of rows times triples that are counted. A pass then takes a few seconds.
const MAX_TRIPLES: usize = 1 << 32;

impl Sheet {
    /// Triples of all atoms, or as many as there is time for, those that contain the most frequent atoms first.
    pub(super) fn triples(&self, pays: &Pays<'_>) -> Vec<Candidate> {
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
