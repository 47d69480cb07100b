//! The order of updates under the residual schedule.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A priority queue of factors, by the change of their labels.
#[derive(Default)]
pub(super) struct Queue {
    /// How much each factor's labels have changed since its last update.
    pending: Vec<f64>,
    /// The bits of these changes, which sort like the numbers, and the factors. Outdated entries are skipped.
    heap: BinaryHeap<(u64, Reverse<usize>)>,
}

impl Queue {
    /// Marks all `n` factors as not updated yet.
    pub(super) fn restart(&mut self, n: usize) {
        self.pending.clear();
        self.pending.resize(n, f64::INFINITY);
        self.heap = (0..n).map(|factor| (f64::INFINITY.to_bits(), Reverse(factor))).collect();
    }

    /// Adds a change of one of a factor's labels.
    pub(super) fn raise(&mut self, factor: usize, change: f64) {
        if change > 0.0 {
            self.pending[factor] += change;
            self.heap.push((self.pending[factor].to_bits(), Reverse(factor)));
        }
    }

    /// Removes the factor with the largest pending change, if that exceeds the tolerance.
    pub(super) fn pop(&mut self, tolerance: f64) -> Option<usize> {
        let largest = self.largest();
        let &(_, Reverse(factor)) = self.heap.peek()?;
        (largest > tolerance).then(|| {
            self.heap.pop();
            self.pending[factor] = 0.0;
            factor
        })
    }

    /// The largest pending change.
    pub(super) fn largest(&mut self) -> f64 {
        while let Some(&(bits, Reverse(factor))) = self.heap.peek() {
            if self.pending[factor].to_bits() == bits {
                return self.pending[factor];
            }
            self.heap.pop();
        }
        0.0
    }
}
