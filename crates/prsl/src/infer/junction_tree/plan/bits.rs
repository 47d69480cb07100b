//! Scopes of tables as bits, which price a possible join without merging lists of variables.

use super::super::network::{Kind, Network, Variable};

/// Maximum number of 64-bit words of a scope. Longer scopes are mostly zeros, and merging their lists is faster.
const MAX_WORDS: usize = 8;

/// The scopes of all tables of an outline.
pub(super) struct Bits {
    n_words: usize,
    /// The scope of each table, one after the other.
    scopes: Vec<u64>,
    /// Variables of exactly one table.
    once: Vec<u64>,
    /// Variables of exactly two tables.
    twice: Vec<u64>,
    /// Variables that are silent or fired; empty if there are none.
    fired: Vec<u64>,
    /// The variables of each number of states, and the powers of that number.
    sizes: Vec<(Vec<u64>, Vec<f64>)>,
    /// Powers of 3/2: a fired variable that two tables share takes three products instead of two.
    repeated: Vec<f64>,
}

impl Bits {
    /// No tables yet; `None` if the network has too many variables.
    pub(super) fn new(network: &Network) -> Option<Self> {
        let n = network.variables.len();
        let n_words = n.div_ceil(64).max(1);
        if n_words > MAX_WORDS {
            return None;
        }
        let set = |select: &dyn Fn(&Variable) -> bool| {
            let mut bits = vec![0; n_words];
            let selected = (0..n).filter(|&variable| select(&network.variables[variable]));
            selected.for_each(|variable| bits[variable / 64] |= 1 << (variable % 64));
            bits
        };
        let powers = |base: f64| {
            let next = |power: &f64| Some(power * base);
            std::iter::successors(Some(1.0), next).take(n + 1).collect::<Vec<f64>>()
        };
        let mut states: Vec<usize> = network.variables.iter().map(|variable| variable.n_states).collect();
        states.sort_unstable();
        states.dedup();
        let sizes = states.iter().filter(|&&states| states > 1);
        let sizes = sizes.map(|&states| (set(&|v| v.n_states == states), powers(states as f64))).collect();
        let fired = set(&|variable| matches!(variable.kind, Kind::Fired(_)));
        let has_fired = fired.iter().any(|&word| word != 0);
        Some(Self {
            n_words,
            scopes: Vec::with_capacity(2 * n_words * network.leaves.len()),
            once: vec![0; n_words],
            twice: vec![0; n_words],
            fired: if has_fired { fired } else { Vec::new() },
            sizes,
            repeated: if has_fired { powers(1.5) } else { Vec::new() },
        })
    }

    /// Adds the next table. `counts` are the numbers of tables that have each variable, this one included.
    pub(super) fn add(&mut self, variables: &[u32], counts: &[u32]) {
        let start = self.scopes.len();
        self.scopes.resize(start + self.n_words, 0);
        for &variable in variables {
            self.scopes[start + variable as usize / 64] |= 1 << (variable % 64);
        }
        self.count(variables, counts);
    }

    /// Updates the numbers of tables that have these variables.
    pub(super) fn count(&mut self, variables: &[u32], counts: &[u32]) {
        for &variable in variables {
            let (word, bit, n) = (variable as usize / 64, variable % 64, counts[variable as usize]);
            self.once[word] = self.once[word] & !(1 << bit) | u64::from(n == 1) << bit;
            self.twice[word] = self.twice[word] & !(1 << bit) | u64::from(n == 2) << bit;
        }
    }

    /// The size of the table that two tables are joined into, and the number of products.
    #[inline(always)]
    pub(super) fn joined(&self, a: usize, b: usize) -> (f64, f64) {
        match self.n_words {
            1 => self.joined_in::<1>(a, b),
            2 => self.joined_in::<2>(a, b),
            3 => self.joined_in::<3>(a, b),
            4 => self.joined_in::<4>(a, b),
            5 => self.joined_in::<5>(a, b),
            6 => self.joined_in::<6>(a, b),
            7 => self.joined_in::<7>(a, b),
            _ => self.joined_in::<MAX_WORDS>(a, b),
        }
    }

    /// The same for a number of words that the compiler knows, so that it unrolls the loops.
    #[inline(always)]
    fn joined_in<const W: usize>(&self, a: usize, b: usize) -> (f64, f64) {
        let [a, b] = [a, b].map(|table| words::<W>(&self.scopes[table * W..]));
        let (once, twice) = (words::<W>(&self.once), words::<W>(&self.twice));
        let [mut either, mut kept, mut repeated] = [[0; W]; 3];
        for word in 0..W {
            let shared = a[word] & b[word];
            either[word] = a[word] | b[word];
            kept[word] = either[word] & !(shared & twice[word] | !shared & once[word]);
            repeated[word] = shared & kept[word];
        }
        let (mut size, mut work) = (1.0, 1.0);
        for (with, powers) in &self.sizes {
            size *= powers[n_both(&kept, words(with))];
            work *= powers[n_both(&either, words(with))];
        }
        if !self.fired.is_empty() {
            work *= self.repeated[n_both(&repeated, words(&self.fired))];
        }
        (size, work)
    }
}

/// The first `W` words.
#[inline(always)]
fn words<const W: usize>(bits: &[u64]) -> &[u64; W] {
    bits.first_chunk().expect("all scopes have the same number of words")
}

/// The number of bits that both sets have.
#[inline(always)]
fn n_both<const W: usize>(a: &[u64; W], b: &[u64; W]) -> usize {
    let mut n = 0;
    for word in 0..W {
        n += (a[word] & b[word]).count_ones();
    }
    n as usize
}
