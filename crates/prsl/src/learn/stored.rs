//! Beliefs and truths of many rows in little memory.
//!
//! A label of two categories takes nine bytes per row: the smaller of its two beliefs, and a byte. The beliefs sum to 1 up
//! to rounding, so the larger one is 1 less the smaller one, give or take a few units in the last place. The byte has that
//! difference, which of the beliefs is smaller, where they are from, and which category is true. All bits are kept: the few
//! beliefs that differ by more are stored apart. A label of n other categories takes 8 n + 3 bytes.

use std::collections::HashMap;
use std::ops::Range;

use crate::belief::{BeliefMatrix, BeliefOrigin};
use crate::label::{CategoryId, LabelId};
use crate::model::Model;
use crate::truth::Truth;

/// Number of rows that are stored together. Memory grows by this many rows at a time instead of being doubled.
const SEGMENT_ROWS: usize = 4096;
/// The mark of an unknown truth.
const UNKNOWN: u16 = u16::MAX;
/// The difference of a belief that is stored apart.
const APART: i64 = -4;

/// Rows of beliefs and truths.
#[derive(Clone, Debug)]
pub(crate) struct StoredRows {
    model: Model,
    slots: Vec<Slot>,
    /// How many numbers and bytes a row has.
    n_numbers: usize,
    n_bytes: usize,
    segments: Vec<Segment>,
    n_rows: usize,
    /// The larger beliefs, by row and label, that do not follow from the smaller ones.
    apart: HashMap<(usize, usize), f64>,
}

/// Where a row has the numbers and bytes of a label.
#[derive(Clone, Copy, Debug)]
struct Slot {
    number: usize,
    byte: usize,
    n_categories: usize,
}

#[derive(Clone, Debug, Default)]
struct Segment {
    numbers: Vec<f64>,
    bytes: Vec<u8>,
}

impl StoredRows {
    /// No rows about the labels of a model.
    pub(crate) fn new(model: &Model) -> Self {
        let (mut slots, mut n_numbers, mut n_bytes) = (Vec::new(), 0, 0);
        for label in model.labels() {
            let n_categories = label.n_categories();
            slots.push(Slot { number: n_numbers, byte: n_bytes, n_categories });
            n_numbers += if n_categories == 2 { 1 } else { n_categories };
            n_bytes += if n_categories == 2 { 1 } else { 3 };
        }
        let (model, segments, apart) = (model.clone(), Vec::new(), HashMap::new());
        Self { model, slots, n_numbers, n_bytes, segments, n_rows: 0, apart }
    }

    pub(crate) fn model(&self) -> &Model {
        &self.model
    }

    pub(crate) fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Adds a row of a matrix with its truth, whose categories exist.
    pub(crate) fn push(&mut self, beliefs: &BeliefMatrix, row: usize, truth: &Truth) {
        if self.n_rows.is_multiple_of(SEGMENT_ROWS) {
            self.segments.push(Segment::default());
        }
        let segment = self.segments.last_mut().expect("there is a segment");
        for (label, (slot, category)) in self.slots.iter().zip(truth.categories()).enumerate() {
            let id = LabelId::new(label);
            let (belief, origin) = (beliefs.belief(row, id), beliefs.origin(row, id) as u8);
            if let &[first, second] = belief {
                let packed = Pair::new(first, second);
                if packed.difference == APART {
                    self.apart.insert((self.n_rows, label), first.max(second));
                }
                let truth = category.map_or(2, |category| category.index() as u8);
                segment.numbers.push(packed.smaller);
                segment.bytes.push(origin | truth << 2 | packed.byte() << 4);
            } else {
                let truth = category.map_or(UNKNOWN, |category| category.index() as u16);
                segment.numbers.extend_from_slice(belief);
                segment.bytes.push(origin);
                segment.bytes.extend(truth.to_le_bytes());
            }
            debug_assert_eq!(slot.n_categories, belief.len());
        }
        self.n_rows += 1;
    }

    /// Adds a row of other rows about the same labels.
    pub(crate) fn push_from(&mut self, other: &Self, row: usize) {
        if self.n_rows.is_multiple_of(SEGMENT_ROWS) {
            self.segments.push(Segment::default());
        }
        let segment = self.segments.last_mut().expect("there is a segment");
        segment.numbers.extend_from_slice(other.numbers(row));
        segment.bytes.extend_from_slice(other.bytes(row));
        if !other.apart.is_empty() {
            for label in 0..self.slots.len() {
                if let Some(&larger) = other.apart.get(&(row, label)) {
                    self.apart.insert((self.n_rows, label), larger);
                }
            }
        }
        self.n_rows += 1;
    }

    /// Writes the belief of a row about a label.
    pub(crate) fn belief_into(&self, row: usize, label: usize, out: &mut [f64]) {
        let slot = self.slots[label];
        let numbers = &self.numbers(row)[slot.number..];
        if slot.n_categories != 2 {
            out.copy_from_slice(&numbers[..slot.n_categories]);
            return;
        }
        let packed = Pair::from_byte(numbers[0], self.bytes(row)[slot.byte] >> 4);
        let larger = match packed.difference {
            APART => self.apart[&(row, label)],
            _ => packed.larger(),
        };
        let (first, second) =
            if packed.first_is_smaller { (packed.smaller, larger) } else { (larger, packed.smaller) };
        (out[0], out[1]) = (first, second);
    }

    /// Where the belief of a row about a label is from.
    pub(crate) fn origin(&self, row: usize, label: usize) -> BeliefOrigin {
        match self.bytes(row)[self.slots[label].byte] & 3 {
            0 => BeliefOrigin::Prior,
            1 => BeliefOrigin::Classifier,
            _ => BeliefOrigin::Observed,
        }
    }

    /// The position of the true category of a label, if it is known.
    pub(crate) fn truth(&self, row: usize, label: usize) -> Option<usize> {
        let slot = self.slots[label];
        let bytes = &self.bytes(row)[slot.byte..];
        if slot.n_categories == 2 {
            let truth = usize::from(bytes[0] >> 2 & 3);
            return (truth < 2).then_some(truth);
        }
        let truth = u16::from_le_bytes([bytes[1], bytes[2]]);
        (truth != UNKNOWN).then_some(usize::from(truth))
    }

    /// The truths of a row.
    pub(crate) fn truth_of(&self, row: usize) -> Truth {
        (0..self.slots.len()).map(|label| self.truth(row, label).map(CategoryId::new)).collect()
    }

    /// How many truths of a row are known.
    pub(crate) fn n_known(&self, row: usize) -> usize {
        (0..self.slots.len()).filter(|&label| self.truth(row, label).is_some()).count()
    }

    /// The beliefs of some rows.
    pub(crate) fn matrix(&self, rows: Range<usize>) -> BeliefMatrix {
        let mut matrix = BeliefMatrix::new(&self.model);
        let mut values = vec![0.0; self.model.n_categories()];
        for row in rows {
            let origins = (0..self.slots.len()).map(|label| self.origin(row, label));
            self.values_into(row, &mut values);
            matrix.push_completed(&values, origins);
        }
        matrix
    }

    /// Writes the beliefs of a row about all labels.
    pub(crate) fn values_into(&self, row: usize, out: &mut [f64]) {
        for label in 0..self.slots.len() {
            self.belief_into(row, label, &mut out[self.model.block(LabelId::new(label))]);
        }
    }

    fn numbers(&self, row: usize) -> &[f64] {
        let at = row % SEGMENT_ROWS * self.n_numbers;
        &self.segments[row / SEGMENT_ROWS].numbers[at..at + self.n_numbers]
    }

    fn bytes(&self, row: usize) -> &[u8] {
        let at = row % SEGMENT_ROWS * self.n_bytes;
        &self.segments[row / SEGMENT_ROWS].bytes[at..at + self.n_bytes]
    }
}

/// Two beliefs that sum to 1 up to rounding.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Pair {
    smaller: f64,
    first_is_smaller: bool,
    /// The larger belief less what it should be, in units in the last place, or [`APART`].
    difference: i64,
}

impl Pair {
    fn new(first: f64, second: f64) -> Self {
        let first_is_smaller = first < second;
        let (smaller, larger) = if first_is_smaller { (first, second) } else { (second, first) };
        let difference = (larger.to_bits() as i64).wrapping_sub((1.0 - smaller).to_bits() as i64);
        let is_small = difference.abs() < APART.abs();
        Self { smaller, first_is_smaller, difference: if is_small { difference } else { APART } }
    }

    fn larger(&self) -> f64 {
        f64::from_bits((1.0 - self.smaller).to_bits().wrapping_add_signed(self.difference))
    }

    /// Four bits.
    fn byte(&self) -> u8 {
        (self.difference - APART) as u8 | u8::from(self.first_is_smaller) << 3
    }

    fn from_byte(smaller: f64, byte: u8) -> Self {
        Self { smaller, first_is_smaller: byte >> 3 == 1, difference: i64::from(byte & 7) + APART }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::belief::Normalize;

    fn unpacked(first: f64, second: f64) -> Option<(f64, f64)> {
        let packed = Pair::new(first, second);
        let read = Pair::from_byte(packed.smaller, packed.byte());
        assert_eq!(read, packed);
        let both = [read.smaller, read.larger()];
        let [first, second] = if read.first_is_smaller { both } else { [both[1], both[0]] };
        (read.difference != APART).then_some((first, second))
    }

    #[test]
    fn pairs_at_the_ends() {
        for (first, second) in
            [(0.0, 1.0), (1.0, 0.0), (0.5, 0.5), (-0.0, 1.0), (1e-300, 1.0), (0.7, 0.3), (0.3, 0.7)]
        {
            let (a, b) = unpacked(first, second).expect("they are stored together");
            assert_eq!([a.to_bits(), b.to_bits()], [first, second].map(f64::to_bits));
        }
        assert_eq!(unpacked(0.3, 0.6), None);
    }

    proptest! {
        #[test]
        fn completed_beliefs_are_stored_together(first in 0.0..=1.0, share in 0.0..1e3_f64, scale in 1e-3..1e3_f64) {
            let model = Model::parse("label a\nlabel b: x, y, z\nlabel c").unwrap();
            let mut matrix = BeliefMatrix::new(&model);
            let cells = [Some(first * scale), Some((1.0 - first) * scale), Some(share), Some(1.0), None];
            let cells = [&cells[..], &[Some(first), None]].concat();
            matrix.push_with_observed(&cells, &[false; 3], Normalize::Always).unwrap();
            let truth = Truth::from_indices([Some(1), Some(2), None]);
            let mut rows = StoredRows::new(&model);
            rows.push(&matrix, 0, &truth);
            let mut more = StoredRows::new(&model);
            more.push_from(&rows, 0);
            for rows in [rows, more] {
                prop_assert!(rows.apart.is_empty());
                let read = rows.matrix(0..1);
                prop_assert_eq!(&read, &matrix);
                let bits = |matrix: &BeliefMatrix| matrix.values().iter().map(|it| it.to_bits()).collect::<Vec<_>>();
                prop_assert_eq!(bits(&read), bits(&matrix));
                prop_assert_eq!(rows.truth_of(0), truth.clone());
                prop_assert_eq!(rows.n_known(0), 2);
            }
        }
    }

    #[test]
    fn rows_in_many_segments() {
        let model = Model::parse("label a\nlabel b: x, y, z").unwrap();
        let mut matrix = BeliefMatrix::new(&model);
        let mut truths = Vec::new();
        for row in 0..2 * SEGMENT_ROWS + 5 {
            let belief = row as f64 / (3 * SEGMENT_ROWS) as f64;
            let cells = [(row % 3 > 0).then_some(belief), None, Some(belief), None, None];
            matrix.push(&cells, Normalize::Never).unwrap();
            truths.push(Truth::from_indices([
                (row % 5 > 0).then_some(row % 2),
                (row % 7 > 0).then_some(row % 3),
            ]));
        }
        let mut rows = StoredRows::new(&model);
        (0..truths.len()).for_each(|row| rows.push(&matrix, row, &truths[row]));
        assert_eq!(rows.matrix(0..truths.len()), matrix);
        assert!((0..truths.len()).all(|row| rows.truth_of(row) == truths[row]));
    }
}
