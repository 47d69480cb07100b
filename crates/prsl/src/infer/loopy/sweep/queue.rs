//! The order of turns under the residual schedule.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Which factor has most to answer.
#[derive(Default)]
pub(super) struct Queue {
    /// How much each factor's labels have changed since it last spoke.
    waiting: Vec<f64>,
    /// Those numbers' bits, which sort as they do, and the factors; outdated ones are skipped.
    heap: BinaryHeap<(u64, Reverse<usize>)>,
}

impl Queue {
    /// Nobody has spoken yet.
    pub(super) fn restart(&mut self, n: usize) {
        self.waiting.clear();
        self.waiting.resize(n, f64::INFINITY);
        self.heap = (0..n).map(|factor| (f64::INFINITY.to_bits(), Reverse(factor))).collect();
    }

    pub(super) fn raise(&mut self, factor: usize, change: f64) {
        if change > 0.0 {
            self.waiting[factor] += change;
            self.heap.push((self.waiting[factor].to_bits(), Reverse(factor)));
        }
    }

    /// The factor with most to answer, unless that is within the tolerance.
    pub(super) fn pop(&mut self, tolerance: f64) -> Option<usize> {
        let largest = self.largest();
        let &(_, Reverse(factor)) = self.heap.peek()?;
        (largest > tolerance).then(|| {
            self.heap.pop();
            self.waiting[factor] = 0.0;
            factor
        })
    }

    pub(super) fn largest(&mut self) -> f64 {
        while let Some(&(bits, Reverse(factor))) = self.heap.peek() {
            if self.waiting[factor].to_bits() == bits {
                return self.waiting[factor];
            }
            self.heap.pop();
        }
        0.0
    }
}
