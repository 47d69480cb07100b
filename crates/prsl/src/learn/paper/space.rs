//! The labels, and tables over some of them.

use std::ops::Range;

use crate::label::LabelId;
use crate::model::Model;
use crate::rule::Rule;

/// The numbers of categories of the labels.
#[derive(Clone, Debug)]
pub(super) struct Space {
    pub(super) sizes: Vec<usize>,
    /// The categories of each label among all categories.
    pub(super) blocks: Vec<Range<usize>>,
}

impl Space {
    pub(super) fn new(sizes: Vec<usize>) -> Self {
        let mut end = 0;
        let mut blocks = Vec::with_capacity(sizes.len());
        for size in &sizes {
            blocks.push(end..end + size);
            end += size;
        }
        Self { sizes, blocks }
    }

    pub(super) fn n_labels(&self) -> usize {
        self.sizes.len()
    }

    pub(super) fn n_categories(&self) -> usize {
        self.blocks.last().map_or(0, |block| block.end)
    }

    /// Number of entries of a table over some labels; `f64`, because it may be huge.
    pub(super) fn n_entries(&self, labels: &[usize]) -> f64 {
        labels.iter().map(|&label| self.sizes[label] as f64).product()
    }

    /// The entry of a table over some labels for an assignment. The last label is fastest.
    pub(super) fn entry(&self, labels: &[usize], assignment: impl Fn(usize) -> usize) -> usize {
        labels.iter().fold(0, |entry, &label| entry * self.sizes[label] + assignment(label))
    }

    /// For each entry of a table over `labels`, the entry of a table over `own`, which are some of them.
    pub(super) fn projection(&self, labels: &[usize], own: &[usize]) -> Vec<u32> {
        let mut strides = vec![0; labels.len()];
        let mut stride = 1;
        for label in own.iter().rev() {
            let place =
                labels.iter().position(|other| other == label).expect("the larger table has the label");
            strides[place] = stride;
            stride *= self.sizes[*label];
        }
        let mut entries = vec![0];
        for (&label, stride) in labels.iter().zip(strides).rev() {
            let n = entries.len();
            for category in 1..self.sizes[label] {
                entries.extend_from_within(..n);
                entries[category * n..].iter_mut().for_each(|entry| *entry += (stride * category) as u32);
            }
        }
        entries
    }

    /// Q = ∏ q of one rule for each entry of a table over some labels.
    pub(super) fn silence(&self, labels: &[usize], q: &[f64]) -> Vec<f64> {
        let mut products = vec![1.0];
        for &label in labels {
            let q = &q[self.blocks[label].clone()];
            products = products.iter().flat_map(|product| q.iter().map(move |q| product * q)).collect();
        }
        products
    }

    /// The labels that a rule with these q is connected with: those with a q other than 1.
    pub(super) fn connected(&self, q: &[f64]) -> Vec<usize> {
        let is_connected = |&label: &usize| q[self.blocks[label].clone()].iter().any(|q| *q != 1.0);
        (0..self.n_labels()).filter(is_connected).collect()
    }
}

/// f = p (1 − Q) + (1 − p) Q, the factor of a noisy-or rule.
#[inline(always)]
pub(super) fn noisy_or(probability: f64, silence: f64) -> f64 {
    (1.0 - probability) * silence + probability * (1.0 - silence)
}

/// A rule of the base model, as a table over its labels. It is not learned.
#[derive(Clone, Debug)]
pub(super) struct Expert {
    pub(super) labels: Vec<usize>,
    pub(super) factors: Vec<f64>,
}

impl Expert {
    /// The table of a rule, whose size must have been checked.
    pub(super) fn new(model: &Model, space: &Space, rule: &Rule) -> Self {
        let labels: Vec<usize> = rule.scope().into_iter().map(LabelId::index).collect();
        let n_entries: usize = labels.iter().map(|&label| space.sizes[label]).product();
        let mut assignment = vec![0; model.labels().len()];
        let factors = (0..n_entries).map(|mut entry| {
            for &label in labels.iter().rev() {
                assignment[label] = entry % space.sizes[label];
                entry /= space.sizes[label];
            }
            rule.weight_at(&assignment)
        });
        let factors = factors.collect();
        Self { labels, factors }
    }
}
