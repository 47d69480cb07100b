//! Tables over labels, the last label fastest: smaller ones in larger ones.
//!
//! A rule's table is a part of its clique's: the clique's is multiplied by it, and summed over the labels that it does not have.
//! Both go label by label, products from the fastest on and sums from the slowest on, so that they run along neighboring entries
//! while tables are large.

use std::borrow::Cow;

use pulp::Arch;

/// A label of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axis {
    pub(crate) size: usize,
    /// Whether the smaller table has it, too.
    pub(crate) is_kept: bool,
}

/// How a smaller table lies in a larger one.
#[derive(Clone, Debug)]
pub(crate) struct Fit {
    axes: Vec<Axis>,
    /// The first label that is kept.
    pub(crate) first: usize,
    /// Whether it is the larger one itself.
    is_whole: bool,
    /// For each entry of a table over the labels that are kept, in the order of the larger one: that of the smaller one.
    entries: Vec<u32>,
    /// The same for each entry of the larger one from the first label that is kept on; empty if it is large, where going label by
    /// label is faster.
    direct: Vec<u32>,
}

/// Up to so many entries, each is looked up.
const SMALL: usize = 1 << 10;

impl Fit {
    /// A table over `own` labels in one over `labels`.
    pub(crate) fn new(sizes: &[usize], labels: &[usize], own: &[usize]) -> Self {
        let axes = axes(sizes, labels, |label| own.contains(&label));
        let kept: Vec<usize> = labels.iter().copied().filter(|label| own.contains(label)).collect();
        let first = axes.iter().position(|axis| axis.is_kept).unwrap_or(axes.len());
        let n_entries = axes[first..].iter().fold(1_usize, |product, axis| product.saturating_mul(axis.size));
        let direct = if n_entries <= SMALL { projection(sizes, &labels[first..], own) } else { Vec::new() };
        Self { axes, first, is_whole: labels == own, entries: projection(sizes, &kept, own), direct }
    }

    /// Whether the smaller table has all labels, in the same order.
    pub(crate) fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Multiplies a table over the larger one's labels, all of them or from the first that is kept on.
    pub(crate) fn multiply(&self, product: &mut [f64], factors: &[f64]) {
        if self.is_whole {
            Arch::new().dispatch(
                #[inline(always)]
                || multiply_blocks(product, factors, factors.len(), &[0]),
            );
            return;
        }
        if !self.direct.is_empty() {
            for run in product.chunks_exact_mut(self.direct.len()) {
                run.iter_mut().zip(&self.direct).for_each(|(slot, &entry)| *slot *= factors[entry as usize]);
            }
            return;
        }
        let in_order: Vec<f64> = self.entries.iter().map(|&entry| factors[entry as usize]).collect();
        multiply(product, &self.axes[self.first..], &in_order);
    }

    /// The sums of a larger table by entry of the smaller one.
    pub(crate) fn sum_out<'a>(&self, table: &'a [f64]) -> Cow<'a, [f64]> {
        if self.is_whole {
            return Cow::Borrowed(table);
        }
        let mut sums = vec![0.0; self.entries.len()];
        if !self.direct.is_empty() {
            for run in table.chunks_exact(self.direct.len()) {
                run.iter().zip(&self.direct).for_each(|(x, &entry)| sums[entry as usize] += x);
            }
            return Cow::Owned(sums);
        }
        let in_order = sum_out(table, &self.axes);
        self.entries.iter().zip(in_order).for_each(|(&entry, sum)| sums[entry as usize] = sum);
        Cow::Owned(sums)
    }

    /// The sums of a larger table over the labels of the smaller one.
    pub(crate) fn sum_over(&self, table: &[f64]) -> Vec<f64> {
        let others = self.axes.iter().map(|axis| Axis { is_kept: !axis.is_kept, ..*axis });
        sum_out(table, &others.collect::<Vec<Axis>>())
    }
}

/// A table, and what is left of it when its slowest labels are summed out, one after another.
pub(crate) struct Cascade {
    tables: Vec<Vec<f64>>,
}

impl Cascade {
    /// Down to the table that begins with the label at `depth`.
    pub(crate) fn new(table: Vec<f64>, sizes: impl Iterator<Item = usize>, depth: usize) -> Self {
        let mut tables = vec![table];
        for size in sizes.take(depth) {
            let table = tables.last().expect("there is one");
            tables.push(fold(table, size, table.len() / size));
        }
        Self { tables }
    }

    /// Sums over the labels that are not kept.
    pub(crate) fn sum_out(&self, axes: &[Axis]) -> Vec<f64> {
        let free = axes.iter().take_while(|axis| !axis.is_kept).count().min(self.tables.len() - 1);
        sum_out(&self.tables[free], &axes[free..])
    }
}

/// The labels of a table, and which of them are kept.
pub(crate) fn axes(sizes: &[usize], labels: &[usize], is_kept: impl Fn(usize) -> bool) -> Vec<Axis> {
    labels.iter().map(|&label| Axis { size: sizes[label], is_kept: is_kept(label) }).collect()
}

/// For each entry of a table over some labels, the entry of a table over some of these.
pub(crate) fn projection(sizes: &[usize], labels: &[usize], own: &[usize]) -> Vec<u32> {
    let mut strides = vec![0; labels.len()];
    let mut stride = 1;
    for label in own.iter().rev() {
        let place = labels.iter().position(|other| other == label).expect("the larger table has the label");
        strides[place] = stride;
        stride *= sizes[*label];
    }
    offsets(labels.iter().map(|&label| sizes[label]).zip(strides))
}

/// Where entries are, for sizes and strides of labels.
fn offsets(axes: impl DoubleEndedIterator<Item = (usize, usize)>) -> Vec<u32> {
    let mut offsets = vec![0];
    for (size, stride) in axes.rev() {
        let n = offsets.len();
        for category in 1..size {
            offsets.extend_from_within(..n);
            offsets[category * n..].iter_mut().for_each(|offset| *offset += (stride * category) as u32);
        }
    }
    offsets
}

/// Entries side by side that are worth a loop of their own.
const BLOCK: usize = 64;

/// Multiplies a table by one over the labels that are kept.
fn multiply(product: &mut [f64], axes: &[Axis], factors: &[f64]) {
    let mut stride = 1;
    let mut strides = vec![(0, 0); axes.len()];
    let (mut block, mut n_slow, mut row) = (1, axes.len(), 1);
    for (at, axis) in axes.iter().enumerate().rev() {
        strides[at] = (axis.size, if axis.is_kept { stride } else { 0 });
        stride *= if axis.is_kept { axis.size } else { 1 };
        if block < BLOCK {
            (block, n_slow, row) = (block * axis.size, at, stride);
        }
    }
    // The factors of the fastest labels, in blocks as the product has them.
    let (slow, fast) = strides.split_at(n_slow);
    let within = offsets(fast.iter().copied());
    let mut blocks = Vec::with_capacity(factors.len() / row * block);
    for row in factors.chunks_exact(row) {
        blocks.extend(within.iter().map(|&at| row[at as usize]));
    }
    let starts = offsets(slow.iter().map(|(size, stride)| (*size, stride / row * block)));
    Arch::new().dispatch(
        #[inline(always)]
        || multiply_blocks(product, &blocks, block, &starts),
    );
}

/// Multiplies block by block, each by the factors that start somewhere, over and over.
#[inline(always)]
fn multiply_blocks(product: &mut [f64], factors: &[f64], block: usize, starts: &[u32]) {
    for (run, &start) in product.chunks_exact_mut(block).zip(starts.iter().cycle()) {
        let factors = &factors[start as usize..][..block];
        run.iter_mut().zip(factors).for_each(|(slot, factor)| *slot *= factor);
    }
}

/// Sums a table over the labels that are not kept.
pub(crate) fn sum_out(table: &[f64], axes: &[Axis]) -> Vec<f64> {
    let mut sums: Option<Vec<f64>> = None;
    let mut run = table.len();
    for axis in axes {
        run /= axis.size;
        if !axis.is_kept {
            sums = Some(fold(sums.as_deref().unwrap_or(table), axis.size, run));
        }
    }
    sums.unwrap_or_else(|| table.to_vec())
}

/// A table with one more label, which is the slowest: everything times each of its numbers.
pub(crate) fn outer_product(numbers: &[f64], table: &[f64], product: &mut Vec<f64>) {
    product.clear();
    Arch::new().dispatch(
        #[inline(always)]
        || numbers.iter().for_each(|number| product.extend(table.iter().map(|x| x * number))),
    );
}

/// The sum of the runs of a table, each times its weight.
pub(crate) fn weighted_sum(weights: &[f64], table: &[f64], run: usize) -> Vec<f64> {
    let mut sums = vec![0.0; run];
    Arch::new().dispatch(
        #[inline(always)]
        || {
            for (weight, run) in weights.iter().zip(table.chunks_exact(run)) {
                sums.iter_mut().zip(run).for_each(|(sum, x)| *sum += weight * x);
            }
        },
    );
    sums
}

/// Σ ab, eight sums side by side.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    Arch::new().dispatch(
        #[inline(always)]
        || {
            let ([a, b], [rest_a, rest_b]) = {
                let (a, b) = (a.as_chunks::<8>(), b.as_chunks::<8>());
                ([a.0, b.0], [a.1, b.1])
            };
            let mut sums = [0.0; 8];
            for (a, b) in a.iter().zip(b) {
                (0..8).for_each(|l| sums[l] += a[l] * b[l]);
            }
            let rest: f64 = rest_a.iter().zip(rest_b).map(|(a, b)| a * b).sum();
            sums.iter().sum::<f64>() + rest
        },
    )
}

/// Sums over a label: as many runs as it has categories, again and again, become one.
fn fold(table: &[f64], size: usize, run: usize) -> Vec<f64> {
    let mut sums = Vec::with_capacity(table.len() / size);
    Arch::new().dispatch(
        #[inline(always)]
        || push_folded(table, size, run, &mut sums),
    );
    sums
}

#[inline(always)]
fn push_folded(table: &[f64], size: usize, run: usize, sums: &mut Vec<f64>) {
    for runs in table.chunks_exact(size * run) {
        let (first, others) = runs.split_at(run);
        let start = sums.len();
        match others.split_at_checked(run) {
            None => sums.extend_from_slice(first),
            Some((second, others)) => {
                sums.extend(first.iter().zip(second).map(|(a, b)| a + b));
                for other in others.chunks_exact(run) {
                    sums[start..].iter_mut().zip(other).for_each(|(sum, x)| *sum += x);
                }
            }
        }
    }
}

/// Adds the sums by category of a label, of which entries come in runs.
pub(crate) fn add_by_category(table: &[f64], run: usize, sums: &mut [f64]) {
    for runs in table.chunks_exact(run * sums.len()) {
        for (sum, run) in sums.iter_mut().zip(runs.chunks_exact(run)) {
            *sum += run.iter().sum::<f64>();
        }
    }
}

/// Rows of this length become columns.
pub(crate) fn transpose(table: &[f64], n_columns: usize) -> Vec<f64> {
    let mut transposed = Vec::with_capacity(table.len());
    for column in 0..n_columns {
        transposed.extend(table.chunks_exact(n_columns).map(|row| row[column]));
    }
    transposed
}

/// Where to part labels in two, so that the tables over both parts are small.
pub(crate) fn half(sizes: &[usize]) -> usize {
    let entries = |sizes: &[usize]| sizes.iter().fold(1_usize, |product, &size| product.saturating_mul(size));
    let cost = |&at: &usize| entries(&sizes[..at]).saturating_add(entries(&sizes[at..]));
    (0..=sizes.len()).min_by_key(cost).expect("there is one")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::seq::SliceRandom;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    #[test]
    fn products_and_sums_are_those_of_the_entries() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for _ in 0..200 {
            let n = rng.random_range(1..9);
            let sizes: Vec<usize> = (0..n).map(|_| rng.random_range(2..4)).collect();
            let mut labels: Vec<usize> = (0..n).collect();
            labels.shuffle(&mut rng);
            let mut own = labels.clone();
            own.shuffle(&mut rng);
            own.truncate(rng.random_range(0..=n.min(5)));
            let mut numbers = |labels: &[usize]| -> Vec<f64> {
                (0..labels.iter().map(|&label| sizes[label]).product()).map(|_| rng.random()).collect()
            };
            let (table, factors) = (numbers(&labels), numbers(&own));
            let (entries, fit) = (projection(&sizes, &labels, &own), Fit::new(&sizes, &labels, &own));
            let mut product = table.clone();
            fit.multiply(&mut product, &factors);
            let mut expected = vec![0.0; factors.len()];
            for ((product, x), entry) in product.iter().zip(&table).zip(entries) {
                assert_eq!(*product, x * factors[entry as usize]);
                expected[entry as usize] += x;
            }
            let sums = fit.sum_out(&table);
            assert!(sums.iter().zip(&expected).all(|(sum, expected)| (sum - expected).abs() < 1e-9));
            for depth in [0, fit.first, n] {
                let cascade = Cascade::new(table.clone(), labels.iter().map(|&label| sizes[label]), depth);
                assert_eq!(cascade.sum_out(&fit.axes), sum_out(&table, &fit.axes));
            }
        }
    }
}
