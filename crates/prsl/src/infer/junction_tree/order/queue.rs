//! Priority queues of variables, and sorted lists of their neighbors.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A priority queue of the remaining variables, smallest score first.
///
/// Each score is multiplied by a random factor, drawn again whenever the score changes.
pub(super) struct Queue {
    /// Priority, variable, and number of updates of the variable. Entries with an old number are skipped.
    heap: BinaryHeap<Reverse<(u64, u32, u32)>>,
    /// `None` for variables that have been eliminated.
    updates: Vec<Option<u32>>,
    noise: f64,
    rng: ChaCha8Rng,
    pub(super) work: f64,
}

impl Queue {
    pub(super) fn new(scores: &[i64], noise: f64, seed: u64) -> Self {
        let rng = ChaCha8Rng::seed_from_u64(seed);
        let updates = vec![Some(0); scores.len()];
        let mut queue = Self { heap: BinaryHeap::new(), updates, noise, rng, work: 0.0 };
        let entries: Vec<_> = scores
            .iter()
            .enumerate()
            .map(|(v, &score)| Reverse((queue.priority(score), v as u32, 0)))
            .collect();
        queue.work += 20.0 * entries.len() as f64;
        queue.heap = BinaryHeap::from(entries);
        queue
    }

    /// The bits of the randomized score. Positive floats are ordered like their bits.
    fn priority(&mut self, score: i64) -> u64 {
        let factor = if self.noise > 0.0 { 1.0 + self.noise * self.rng.random::<f64>() } else { 1.0 };
        ((score as f64 + 1.0) * factor).to_bits()
    }

    pub(super) fn update(&mut self, v: usize, score: i64) {
        let Some(updates) = self.updates[v] else { return };
        self.updates[v] = Some(updates + 1);
        let entry = (self.priority(score), v as u32, updates + 1);
        self.heap.push(Reverse(entry));
        self.work += 30.0;
    }

    pub(super) fn pop(&mut self) -> Option<usize> {
        while let Some(Reverse((_, v, updates))) = self.heap.pop() {
            self.work += 30.0;
            let current = &mut self.updates[v as usize];
            if *current == Some(updates) {
                *current = None;
                return Some(v as usize);
            }
        }
        None
    }
}

/// Variables by degree, as a bucket queue.
pub(super) struct Buckets {
    /// Lists of variables. Entries with an old degree are skipped.
    of_degree: Vec<Vec<u32>>,
    degrees: Vec<Option<usize>>,
    smallest: usize,
}

impl Buckets {
    pub(super) fn new(degrees: impl Iterator<Item = usize>) -> Self {
        let degrees: Vec<Option<usize>> = degrees.map(Some).collect();
        let mut buckets = Self {
            of_degree: vec![Vec::new(); degrees.len() + 1],
            degrees: vec![None; degrees.len()],
            smallest: 0,
        };
        for (v, degree) in degrees.into_iter().enumerate() {
            buckets.set(v, degree.unwrap_or_default());
        }
        buckets
    }

    pub(super) fn set(&mut self, v: usize, degree: usize) {
        if self.degrees[v] != Some(degree) {
            self.degrees[v] = Some(degree);
            self.of_degree[degree].push(v as u32);
            self.smallest = self.smallest.min(degree);
        }
    }

    /// Removes a variable of smallest degree. Returns it with its degree.
    pub(super) fn pop_smallest(&mut self) -> Option<(usize, usize)> {
        while self.smallest < self.of_degree.len() {
            while let Some(v) = self.of_degree[self.smallest].pop() {
                if self.degrees[v as usize] == Some(self.smallest) {
                    self.degrees[v as usize] = None;
                    return Some((v as usize, self.smallest));
                }
            }
            self.smallest += 1;
        }
        None
    }
}

pub(super) fn contains(sorted: &[u32], value: u32) -> bool {
    sorted.binary_search(&value).is_ok()
}

pub(super) fn insert(sorted: &mut Vec<u32>, value: u32) {
    if let Err(place) = sorted.binary_search(&value) {
        sorted.insert(place, value);
    }
}

pub(super) fn remove(sorted: &mut Vec<u32>, value: u32) {
    if let Ok(place) = sorted.binary_search(&value) {
        sorted.remove(place);
    }
}

/// The common members of two sorted lists. Each member of the shorter list is looked up in the longer one.
pub(super) fn common<'a>(a: &'a [u32], b: &'a [u32]) -> impl Iterator<Item = u32> + 'a {
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    short.iter().copied().filter(|&member| contains(long, member))
}

/// Work of [`common`], in units of about a nanosecond.
pub(super) fn cost_of_common(a: &[u32], b: &[u32]) -> f64 {
    let (short, long) = (a.len().min(b.len()), a.len().max(b.len()));
    10.0 + short as f64 * (2.0 + (long as f64 + 1.0).log2())
}
