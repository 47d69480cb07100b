//! Cheapest completions of one function, equation (2) of the bound.

use crate::infer::branch_and_bound::cost::{Chain, CostFunction, Form};

/// Buffers of one update.
#[derive(Default)]
pub(super) struct Scratch {
    /// For each message, the sum of the function's message and the label's cost.
    pub(super) held: Vec<f64>,
    /// For each group, the smallest entry of `held`; below it, the cheapest completion.
    least: Vec<f64>,
    pub(super) completion: Vec<f64>,
    sums: Vec<f64>,
    more_sums: Vec<f64>,
}

impl Scratch {
    /// Computes (2) for every group of a function's labels.
    pub(super) fn complete(&mut self, f: &CostFunction, unary: &[f64], messages: &[f64]) {
        let n_groups = f.n_groups();
        self.held.clear();
        self.held
            .extend(f.messages.iter().zip(messages).map(|(about, message)| message + unary[about.category]));
        self.least.clear();
        self.least.resize(n_groups, f64::INFINITY);
        for (about, &held) in f.messages.iter().zip(&self.held) {
            self.least[about.group] = lesser(held, self.least[about.group]);
        }
        self.completion.clear();
        self.completion.resize(n_groups, f64::INFINITY);
        match &f.form {
            Form::Table(table) if f.is_binary => match f.places.len() {
                1 => complete_binary::<1, 2>(&self.least, table, &mut self.completion),
                2 => complete_binary::<2, 4>(&self.least, table, &mut self.completion),
                3 => complete_binary::<3, 8>(&self.least, table, &mut self.completion),
                4 => complete_binary::<4, 16>(&self.least, table, &mut self.completion),
                5 => complete_binary::<5, 32>(&self.least, table, &mut self.completion),
                6 => complete_binary::<6, 64>(&self.least, table, &mut self.completion),
                _ => self.complete_table(f, table),
            },
            Form::Table(table) => self.complete_table(f, table),
            Form::Chain(chain) => self.complete_chain(f, chain),
        }
    }

    /// Moves the smallest μ into the bound and returns it. Afterwards `held` + `completion` is the rest of μ.
    pub(super) fn take_least(&mut self, f: &CostFunction) -> f64 {
        let smallest =
            self.completion[f.places[0].groups.clone()].iter().copied().fold(f64::INFINITY, lesser);
        for (completion, least) in self.completion.iter_mut().zip(&self.least) {
            *completion -= least + smallest;
        }
        smallest
    }

    fn complete_table(&mut self, f: &CostFunction, table: &[f64]) {
        // Σ of `least` for every combination of groups, the last place fastest. It is built in place from the last
        // place on, so that all loops access contiguous memory.
        let sums = &mut self.sums;
        sums.clear();
        sums.resize(table.len(), 0.0);
        let mut size = 1;
        for place in f.places.iter().rev() {
            let held = &self.least[place.groups.clone()];
            let (first, others) = sums.split_at_mut(size);
            for (other, held) in others.chunks_exact_mut(size).zip(&held[1..]) {
                other.iter_mut().zip(&*first).for_each(|(sum, first)| *sum = first + held);
            }
            first.iter_mut().for_each(|sum| *sum += held[0]);
            size *= held.len();
        }
        sums.iter_mut().zip(table).for_each(|(sum, cost)| *sum += cost);
        // From the first place on: the minimum of each of its groups, then the minimum over the place.
        for place in &f.places {
            size /= place.groups.len();
            let (first, others) = sums.split_at_mut(size);
            let completion = &mut self.completion[place.groups.clone()];
            completion[0] = least(first);
            for (completion, other) in completion[1..].iter_mut().zip(others.chunks_exact(size)) {
                *completion = least(other);
                first.iter_mut().zip(other).for_each(|(first, other)| *first = lesser(*first, *other));
            }
        }
    }

    fn complete_chain(&mut self, f: &CostFunction, chain: &Chain) {
        // The cheapest path to every state, forward level by level.
        let (before, after) = (&mut self.sums, &mut self.more_sums);
        before.clear();
        before.push(0.0);
        let mut start = 0;
        let width = |level: usize| chain.levels.get(level).map_or(chain.last.len(), |level| level.n_states);
        for (level, place) in f.places.iter().enumerate() {
            let Step { n_groups, next } = Step::of(chain, level);
            let end = before.len();
            before.resize(end + width(level + 1), f64::INFINITY);
            for state in 0..end - start {
                for group in 0..n_groups {
                    let sum = before[start + state] + self.least[place.groups.start + group];
                    let slot = &mut before[end + next[state * n_groups + group] as usize];
                    *slot = if sum < *slot { sum } else { *slot };
                }
            }
            start = end;
        }
        // The cheapest path from every state to the end, backward.
        after.clear();
        after.extend_from_slice(&chain.last);
        for (level, place) in f.places.iter().enumerate().rev() {
            let Step { n_groups, next } = Step::of(chain, level);
            start -= width(level);
            let mut onward = vec![f64::INFINITY; width(level)];
            for state in 0..width(level) {
                for group in 0..n_groups {
                    let rest = self.least[place.groups.start + group]
                        + after[next[state * n_groups + group] as usize];
                    let slot = &mut self.completion[place.groups.start + group];
                    *slot = slot.min(before[start + state] + rest);
                    onward[state] = onward[state].min(rest);
                }
            }
            *after = onward;
        }
    }
}

/// [`Scratch::complete_table`] in registers, for places of two groups each. Most rules name one category per label,
/// so most tables have this form.
fn complete_binary<const PLACES: usize, const SIZE: usize>(
    held: &[f64],
    table: &[f64],
    completion: &mut [f64],
) {
    let table: &[f64; SIZE] = table.try_into().expect("two groups a place");
    let mut sums = [0.0; SIZE];
    for place in (0..PLACES).rev() {
        let size = 1 << (PLACES - 1 - place);
        for at in 0..size {
            sums[size + at] = sums[at] + held[2 * place + 1];
            sums[at] += held[2 * place];
        }
    }
    for at in 0..SIZE {
        sums[at] += table[at];
    }
    for place in 0..PLACES {
        let size = 1 << (PLACES - 1 - place);
        completion[2 * place] = least(&sums[..size]);
        completion[2 * place + 1] = least(&sums[size..2 * size]);
        for at in 0..size {
            sums[at] = lesser(sums[at], sums[size + at]);
        }
    }
}

/// The smaller of two numbers. Unlike [`f64::min`], it compiles to a single instruction.
pub(super) fn lesser(a: f64, b: f64) -> f64 {
    if a < b { a } else { b }
}

/// The smallest value, computed four at a time.
#[inline(always)]
fn least(values: &[f64]) -> f64 {
    let mut four = [f64::INFINITY; 4];
    let chunks = values.chunks_exact(4);
    let rest = chunks.remainder().iter().copied().fold(f64::INFINITY, lesser);
    for chunk in chunks {
        four.iter_mut().zip(chunk).for_each(|(least, value)| *least = lesser(*least, *value));
    }
    lesser(rest, lesser(lesser(four[0], four[2]), lesser(four[1], four[3])))
}

/// One level of a chain.
struct Step<'a> {
    n_groups: usize,
    next: &'a [u32],
}

impl<'a> Step<'a> {
    fn of(chain: &'a Chain, level: usize) -> Self {
        let level = &chain.levels[level];
        Self { n_groups: level.n_groups, next: &level.next }
    }
}
