//! Truths and predictions of many rows in little memory.

use std::ops::RangeInclusive;

use crate::label::LabelId;
use crate::model::Model;

/// The truth and the prediction for one label of a row, as positions among all categories of the model; both `None` if the
/// truth is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) truth: Option<u32>,
    pub(super) predicted: Option<u32>,
}

/// The cells of all rows. Truth and prediction of a label with n categories take as many bits as n + 1 values need: a cell
/// of a yes/no label has four bits.
#[derive(Clone, Debug)]
pub(super) struct Cells {
    places: Vec<Place>,
    bytes_per_row: usize,
    bytes: Vec<u8>,
}

/// Where the cell of a label is.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// The position of the label's first category.
    start: u32,
    /// The position of the cell in its row, in bits.
    bit: usize,
    /// Number of bits of the truth, and of the prediction.
    width: u32,
}

impl Place {
    /// Stands for an unknown truth, or no prediction. It is at least the number of categories.
    fn none(self) -> u64 {
        (1 << self.width) - 1
    }

    /// The bytes of a row that the cell is in.
    fn bytes(self) -> RangeInclusive<usize> {
        self.bit / 8..=(self.bit + 2 * self.width as usize - 1) / 8
    }

    /// The position of its first bit in its first byte.
    fn shift(self) -> usize {
        self.bit % 8
    }
}

impl Cells {
    /// No rows about the labels of a model.
    pub(super) fn new(model: &Model) -> Self {
        let mut end = 0;
        let place = |label: LabelId| {
            let (block, bit) = (model.block(label), end);
            let width = usize::BITS - block.len().leading_zeros();
            end += 2 * width as usize;
            Place { start: block.start as u32, bit, width }
        };
        let places = model.label_ids().map(place).collect();
        Self { places, bytes_per_row: end.div_ceil(8), bytes: Vec::new() }
    }

    /// Adds the cells of a row.
    pub(super) fn push_row(&mut self, cells: &[Cell]) {
        let first = self.bytes.len();
        self.bytes.resize(first + self.bytes_per_row, 0);
        let row = &mut self.bytes[first..];
        for (cell, place) in cells.iter().zip(&self.places) {
            let code =
                |position: Option<u32>| position.map_or(place.none(), |it| u64::from(it - place.start));
            let bits = (code(cell.truth) | code(cell.predicted) << place.width) << place.shift();
            for (byte, bits) in row[place.bytes()].iter_mut().zip(bits.to_le_bytes()) {
                *byte |= bits;
            }
        }
    }

    /// The cell of a row and a label.
    pub(super) fn get(&self, row: usize, label: usize) -> Cell {
        self.decode(row, self.places[label])
    }

    /// The cells of a row.
    pub(super) fn row(&self, row: usize) -> impl Iterator<Item = Cell> + '_ {
        self.places.iter().map(move |&place| self.decode(row, place))
    }

    fn decode(&self, row: usize, place: Place) -> Cell {
        let bytes = &self.bytes[row * self.bytes_per_row..][place.bytes()];
        let bits = bytes.iter().rev().fold(0, |bits, &byte| bits << 8 | u64::from(byte)) >> place.shift();
        let position = |code: u64| (code != place.none()).then(|| place.start + code as u32);
        Cell { truth: position(bits & place.none()), predicted: position(bits >> place.width & place.none()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_read_as_they_were_added() {
        for n_categories in [2, 3, 7, 15, 16, 300, 70_000] {
            let names: Vec<String> = (0..n_categories).map(|category| format!("c{category}")).collect();
            let text = format!("label a\nlabel b: {}\nlabel c", names.join(", "));
            let mut cells = Cells::new(&Model::parse(&text).unwrap());
            let last = n_categories as u32 + 1;
            let cell = |truth, predicted| Cell { truth: Some(truth), predicted };
            let rows = [
                [cell(0, Some(1)), cell(last, Some(2)), cell(last + 1, Some(last + 2))],
                [Cell::default(), cell(2, None), cell(last + 2, None)],
                [cell(1, Some(0)), cell(last, Some(last)), Cell::default()],
            ];
            rows.iter().for_each(|row| cells.push_row(row));
            for (index, row) in rows.iter().enumerate() {
                assert_eq!(cells.row(index).collect::<Vec<_>>(), row);
                assert!(row.iter().enumerate().all(|(label, cell)| cells.get(index, label) == *cell));
            }
        }
    }

    #[test]
    fn a_yes_no_label_takes_four_bits() {
        let text = (0..9).map(|label| format!("label l{label}\n")).collect::<String>();
        assert_eq!(Cells::new(&Model::parse(&text).unwrap()).bytes_per_row, 5);
    }
}
