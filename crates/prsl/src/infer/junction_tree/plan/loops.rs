//! Loops over the entries of joined tables, as lists of offsets.

use std::ops::Range;

/// Offsets into the two tables that are joined and into their result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct At {
    pub(crate) a: u32,
    pub(crate) b: u32,
    pub(crate) out: u32,
}

/// The offsets of a loop over several variables. Each is a sum of one offset of each list; one list of all sums would
/// be long.
#[derive(Clone, Debug)]
pub(crate) struct Loops {
    outermost: Vec<At>,
    outer: Vec<At>,
    pub(crate) inner: Vec<At>,
}

/// A loop over the entries of one table (`along`), and for each of them over the variables that it lacks (`across`).
#[derive(Clone, Debug)]
pub(crate) struct Nest {
    pub(crate) along: Loops,
    pub(crate) across: Vec<At>,
}

/// A loop over the entries of one table of an or. The terms of an entry depend on the states of the shared fired
/// variables.
///
/// A silent variable gives one term, a fired one two. The terms of each combination of these states are listed once,
/// and `along` is the loop over all other variables.
#[derive(Clone, Debug)]
pub(crate) struct Fan {
    pub(crate) along: Loops,
    pub(crate) cases: Vec<Case>,
    /// The terms of all cases, one case after the other.
    pub(crate) terms: Vec<At>,
    /// Whether `along` visits entries repeatedly, so that their sums accumulate.
    pub(crate) is_repeated: bool,
}

/// One combination of states of fired variables: its offset in the table, and its terms.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) at: u32,
    pub(crate) terms: Range<usize>,
}

impl Loops {
    /// Number of stored offsets.
    pub(super) fn n_offsets(&self) -> usize {
        self.outermost.len() + self.outer.len() + self.inner.len()
    }

    /// Number of offsets that it visits.
    pub(crate) fn len(&self) -> usize {
        self.outermost.len() * self.outer.len() * self.inner.len()
    }

    /// The sums of the two outer parts of the offsets, in order.
    #[inline]
    pub(crate) fn outer(&self) -> impl Iterator<Item = At> + '_ {
        self.outermost.iter().flat_map(|x| self.outer.iter().map(move |y| x.plus(y)))
    }

    /// The loop over all combinations of the digits. The last digit changes fastest.
    pub(super) fn new(digits: &[Vec<At>]) -> Self {
        const INNER: usize = 256;
        const OUTER: usize = 4096;
        let start = |end: usize, most: usize| {
            let (mut start, mut size) = (end, 1);
            while start > 0 && size * digits[start - 1].len() <= most {
                start -= 1;
                size *= digits[start].len();
            }
            start
        };
        let inner = start(digits.len(), INNER);
        let outer = start(inner, OUTER);
        Self {
            outermost: combinations(&digits[..outer]),
            outer: combinations(&digits[outer..inner]),
            inner: combinations(&digits[inner..]),
        }
    }
}

impl Fan {
    /// The loop over a table's entries. `fired` holds the terms of each shared fired variable, `across` the variables
    /// that the table lacks. `target` selects the offset in the table itself.
    pub(super) fn new(
        along: Vec<Vec<At>>,
        fired: &[Vec<At>],
        across: Vec<At>,
        target: fn(&At) -> u32,
    ) -> Self {
        /// Largest number of fired variables whose states are listed as cases, with up to 3⁴ terms for each of
        /// `across`. The lists grow faster than the tables, so other variables are looped over.
        const MOST_CASED: usize = 4;
        let (looped, cased) = fired.split_at(fired.len().saturating_sub(MOST_CASED));
        let mut cases = vec![(0, across)];
        for digit in cased {
            let mut targets: Vec<u32> = digit.iter().map(target).collect();
            targets.dedup();
            cases = cases
                .iter()
                .flat_map(|(at, terms)| targets.iter().map(move |other| (at, terms, *other)))
                .map(|(at, terms, other)| {
                    let transitions = digit.iter().filter(|step| target(step) == other);
                    (at + other, transitions.flat_map(|x| terms.iter().map(|y| x.plus(y))).collect())
                })
                .collect();
        }
        let mut fan = Self {
            along: Loops::new(&looped.iter().cloned().chain(along).collect::<Vec<_>>()),
            cases: Vec::with_capacity(cases.len()),
            terms: Vec::new(),
            is_repeated: !looped.is_empty(),
        };
        for (at, terms) in cases {
            let start = fan.terms.len();
            fan.terms.extend(terms);
            fan.cases.push(Case { at, terms: start..fan.terms.len() });
        }
        fan
    }

    /// Upper bound on the number of terms of all entries together.
    pub(crate) fn len(&self) -> usize {
        self.along.len() * self.terms.len()
    }

    /// Memory of this loop, in units of one offset.
    pub(super) fn n_offsets(&self) -> usize {
        let itself = size_of::<Self>() + size_of_val(&self.cases[..]);
        self.along.n_offsets() + self.terms.len() + itself.div_ceil(size_of::<At>())
    }
}

impl At {
    #[inline]
    fn plus(&self, other: &At) -> At {
        At { a: self.a + other.a, b: self.b + other.b, out: self.out + other.out }
    }
}

pub(super) fn combinations(digits: &[Vec<At>]) -> Vec<At> {
    digits.iter().fold(vec![At { a: 0, b: 0, out: 0 }], |all, digit| {
        all.iter().flat_map(|x| digit.iter().map(|y| x.plus(y))).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The terms of a fired variable in an or: silent and silent, silent and fired, fired and either.
    fn transitions(a: u32, b: u32, out: u32) -> Vec<At> {
        vec![At::default(), At { a: 0, b, out }, At { a, b: 2 * b, out }]
    }

    #[test]
    fn a_fan_has_every_term_once_whether_its_variables_are_cases_or_looped_over() {
        for n_fired in 1..=6 {
            let fired: Vec<Vec<At>> =
                (0..n_fired).map(|k| transitions(1 << k, 3u32.pow(k), 1 << k)).collect();
            let plain = vec![vec![At::default(), At { a: 64, b: 729, out: 64 }]];
            let across = vec![At::default(), At { a: 128, b: 1458, out: 0 }];
            let target: fn(&At) -> u32 = |at| at.out;
            let fan = Fan::new(plain.clone(), &fired, across.clone(), target);
            let mut terms: Vec<(u32, u32, u32)> = Vec::new();
            for (o, i) in fan.along.outer().flat_map(|o| fan.along.inner.iter().map(move |i| (o, i))) {
                for case in &fan.cases {
                    let at_out = o.out + i.out + case.at;
                    terms.extend(
                        fan.terms[case.terms.clone()]
                            .iter()
                            .map(|p| (o.a + i.a + p.a, o.b + i.b + p.b, at_out)),
                    );
                }
            }
            let digits: Vec<Vec<At>> = fired.into_iter().chain(plain).chain([across]).collect();
            let mut expected: Vec<(u32, u32, u32)> =
                combinations(&digits).into_iter().map(|at| (at.a, at.b, at.out)).collect();
            terms.sort_unstable();
            expected.sort_unstable();
            assert_eq!(terms, expected, "{n_fired} fired variables");
            assert_eq!(fan.is_repeated, n_fired > 4);
        }
    }
}
