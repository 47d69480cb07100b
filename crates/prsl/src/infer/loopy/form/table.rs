//! Messages of rules that are tables over a small number of labels.

use super::super::merge::Weight;
use super::Lane;
use crate::infer::semiring::Semiring;

/// A table of weights over a small number of labels.
///
/// # Derivation
///
/// Let T(x₁ … x_d) be the table and cᵢ the cavity messages. First contract the labels from the last to the first:
///
/// ```text
/// T_d = T          Tᵢ₋₁(x₁ … xᵢ₋₁) = Σ_{xᵢ} Tᵢ(x₁ … xᵢ) cᵢ(xᵢ)                      (1)
/// ```
///
/// Then multiply the cavity messages from the first to the last: P₀ = 1 and
/// Pᵢ(x₁ … xᵢ) = Pᵢ₋₁(x₁ … xᵢ₋₁) cᵢ(xᵢ)   (2). Then
///
/// ```text
/// message to i = Σ_{x₁ … xᵢ₋₁} Pᵢ₋₁(x₁ … xᵢ₋₁) Tᵢ(x₁ … xᵢ)                          (3)
/// ```
///
/// The time is linear in the number of entries, and no step divides. States of a label that the table does not
/// distinguish form one class, and sums run over classes only.
#[derive(Clone, Debug)]
pub(in crate::infer::loopy) struct Table {
    /// Number of classes of each label.
    pub(super) sizes: Vec<usize>,
    /// The class of each slot. Classes are numbered through all labels.
    pub(super) classes: Vec<usize>,
    /// The weights over classes, the last label fastest.
    pub(super) entries: Vec<f64>,
    /// The log weights. Empty once the entries are elements of a semiring.
    pub(super) logs: Vec<f64>,
    /// The smallest positive entry.
    pub(super) smallest: f64,
}

impl Table {
    /// Creates a table from its weights over the labels' states, the last label fastest.
    pub(in crate::infer::loopy) fn new(sizes: &[usize], weights: &[Weight]) -> Self {
        let entries: Vec<f64> = weights.iter().map(|weight| weight.number).collect();
        let logs = weights.iter().map(|weight| weight.log).collect();
        let smallest = entries.iter().copied().filter(|&entry| entry > 0.0).fold(1.0, f64::min);
        let mut table = Self { sizes: sizes.to_vec(), classes: Vec::new(), entries, logs, smallest };
        let mut first = 0;
        for label in 0..sizes.len() {
            let classes = table.merge(label);
            table.classes.extend(classes.iter().map(|class| first + class));
            first += table.sizes[label];
        }
        table
    }

    /// Merges the states of a label whose slices of the table are equal. Returns the class of each state.
    fn merge(&mut self, label: usize) -> Vec<usize> {
        let (n, stride) = (self.sizes[label], self.sizes[label + 1..].iter().product::<usize>());
        let slice = |state: usize| {
            let logs = &self.logs;
            logs.chunks(n * stride).flat_map(move |c| &c[state * stride..(state + 1) * stride])
        };
        let mut distinct: Vec<usize> = Vec::new();
        let mut classes = Vec::with_capacity(n);
        for state in 0..n {
            let class = distinct.iter().position(|&other| slice(other).eq(slice(state)));
            classes.push(class.unwrap_or(distinct.len()));
            if class.is_none() {
                distinct.push(state);
            }
        }
        let kept = |chunk: &[f64]| -> Vec<f64> {
            distinct.iter().flat_map(|state| chunk[state * stride..(state + 1) * stride].to_vec()).collect()
        };
        self.entries = self.entries.chunks(n * stride).flat_map(kept).collect();
        self.logs = self.logs.chunks(n * stride).flat_map(kept).collect();
        self.sizes[label] = distinct.len();
        classes
    }

    /// Number of entries.
    pub(in crate::infer::loopy) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn n_values(&self) -> usize {
        self.classes.len() + self.entries.len() + self.logs.len()
    }

    #[inline(always)]
    pub(super) fn n_scratch(&self) -> usize {
        let mut partial = 0;
        let mut size = 1;
        for &n in &self.sizes {
            partial += size;
            size *= n;
        }
        2 * self.sizes.iter().sum::<usize>() + 2 * partial
    }

    #[inline(always)]
    pub(super) fn send<S: Semiring, const L: usize>(
        &self,
        incoming: &[Lane<L>],
        outgoing: &mut [Lane<L>],
        scratch: &mut [Lane<L>],
    ) {
        let n_classes = self.sizes.iter().sum::<usize>();
        let (cavities, scratch) = scratch.split_at_mut(n_classes);
        let (messages, scratch) = scratch.split_at_mut(n_classes);
        cavities.fill([S::ZERO; L]);
        for (&class, cavity) in self.classes.iter().zip(incoming) {
            for l in 0..L {
                cavities[class][l] = S::add(cavities[class][l], cavity[l]);
            }
        }
        self.send_to_classes::<S, L>(cavities, messages, scratch);
        for (&class, slot) in self.classes.iter().zip(outgoing) {
            *slot = messages[class];
        }
    }

    #[inline(always)]
    fn send_to_classes<S: Semiring, const L: usize>(
        &self,
        cavities: &[Lane<L>],
        messages: &mut [Lane<L>],
        scratch: &mut [Lane<L>],
    ) {
        // `scratch` holds T₀ … T_d₋₁, then P₀ … P_d₋₁. Tᵢ and Pᵢ have the same size.
        let (contracted, products) = scratch.split_at_mut(self.n_scratch() / 2 - cavities.len());
        let last = self.sizes.len() - 1;
        let (mut size, mut start, mut first) = (self.entries.len(), contracted.len(), cavities.len());
        for label in (0..=last).rev() {
            let n = self.sizes[label];
            size /= n;
            first -= n;
            let (below, above) = contracted.split_at_mut(start);
            let (out, cavity) = (&mut below[start - size..], &cavities[first..first + n]);
            if label == last {
                contract::<S, L, _>(&self.entries, |entry| [*entry; L], cavity, out); // (1)
            } else {
                contract::<S, L, _>(&above[..size * n], |lane| *lane, cavity, out); // (1)
            }
            start -= size;
        }
        products[0] = [S::ONE; L];
        let (mut size, mut start, mut first) = (1, 0, 0);
        for label in 0..=last {
            let n = self.sizes[label];
            let (below, above) = products.split_at_mut(start + size);
            let out = &mut messages[first..first + n];
            if label == last {
                gather::<S, L, _>(&below[start..], &self.entries, |entry| [*entry; L], out); // (3)
                return;
            }
            let table = &contracted[start + size..start + size + size * n];
            gather::<S, L, _>(&below[start..], table, |lane| *lane, out); // (3)
            multiply::<S, L>(&below[start..], &cavities[first..first + n], &mut above[..size * n]); // (2)
            start += size;
            size *= n;
            first += n;
        }
    }
}

/// out[x] = Σ_m table[x, m] cavity[m]
#[inline(always)]
fn contract<S: Semiring, const L: usize, T>(
    table: &[T],
    lane: impl Fn(&T) -> Lane<L>,
    cavity: &[Lane<L>],
    out: &mut [Lane<L>],
) {
    for (slot, row) in out.iter_mut().zip(table.chunks_exact(cavity.len())) {
        let mut sum = [S::ZERO; L];
        for (entry, c) in row.iter().zip(cavity) {
            let entry = lane(entry);
            for l in 0..L {
                sum[l] = S::add(sum[l], S::mul(entry[l], c[l]));
            }
        }
        *slot = sum;
    }
}

/// message[m] = Σ_x product[x] table[x, m]
#[inline(always)]
fn gather<S: Semiring, const L: usize, T>(
    products: &[Lane<L>],
    table: &[T],
    lane: impl Fn(&T) -> Lane<L>,
    message: &mut [Lane<L>],
) {
    message.fill([S::ZERO; L]);
    for (product, row) in products.iter().zip(table.chunks_exact(message.len())) {
        for (entry, slot) in row.iter().zip(message.iter_mut()) {
            let entry = lane(entry);
            for l in 0..L {
                slot[l] = S::add(slot[l], S::mul(product[l], entry[l]));
            }
        }
    }
}

/// out[x, m] = product[x] cavity[m]
#[inline(always)]
fn multiply<S: Semiring, const L: usize>(products: &[Lane<L>], cavity: &[Lane<L>], out: &mut [Lane<L>]) {
    for (product, row) in products.iter().zip(out.chunks_exact_mut(cavity.len())) {
        for (slot, c) in row.iter_mut().zip(cavity) {
            for l in 0..L {
                slot[l] = S::mul(product[l], c[l]);
            }
        }
    }
}
