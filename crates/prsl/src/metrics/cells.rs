//! Truths and predictions of many rows in little memory.

use crate::label::LabelId;
use crate::model::Model;

/// The truth and the prediction for one label of a row, as positions among all categories of the model; both `None` if the
/// truth is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) truth: Option<u32>,
    pub(super) predicted: Option<u32>,
}

/// The cells of all rows. A cell takes one byte if no label has more than 15 categories, else four.
#[derive(Clone, Debug)]
pub(super) struct Cells {
    /// The position of each label's first category.
    starts: Vec<u32>,
    codes: Codes,
}

/// Two positions within a label, the truth in the lower half of the bits. The largest number stands for none.
#[derive(Clone, Debug)]
enum Codes {
    Small(Vec<u8>),
    Large(Vec<u32>),
}

impl Cells {
    /// No rows about the labels of a model.
    pub(super) fn new(model: &Model) -> Self {
        let starts = (0..model.labels().len()).map(|label| model.block(LabelId::new(label)).start as u32);
        let most = model.labels().iter().map(|label| label.n_categories()).max().unwrap_or(0);
        let codes = if most < 16 { Codes::Small(Vec::new()) } else { Codes::Large(Vec::new()) };
        Self { starts: starts.collect(), codes }
    }

    /// Adds the cells of a row.
    pub(super) fn push_row(&mut self, cells: &[Cell]) {
        let halves = |none: u32, (cell, start): (&Cell, &u32)| {
            [cell.truth, cell.predicted].map(|place| place.map_or(none, |place| place - start))
        };
        let cells = cells.iter().zip(&self.starts);
        match &mut self.codes {
            Codes::Small(codes) => codes.extend(cells.map(|cell| {
                let [truth, predicted] = halves(0xf, cell);
                (truth | predicted << 4) as u8
            })),
            Codes::Large(codes) => codes.extend(cells.map(|cell| {
                let [truth, predicted] = halves(0xffff, cell);
                truth | predicted << 16
            })),
        }
    }

    /// The cell of a row and a label.
    pub(super) fn get(&self, row: usize, label: usize) -> Cell {
        let (at, start) = (row * self.starts.len() + label, self.starts[label]);
        let place = |code: u32, none: u32| (code != none).then(|| start + code);
        match &self.codes {
            Codes::Small(codes) => {
                let code = u32::from(codes[at]);
                Cell { truth: place(code & 0xf, 0xf), predicted: place(code >> 4, 0xf) }
            }
            Codes::Large(codes) => {
                let code = codes[at];
                Cell { truth: place(code & 0xffff, 0xffff), predicted: place(code >> 16, 0xffff) }
            }
        }
    }

    /// The cells of a row.
    pub(super) fn row(&self, row: usize) -> impl Iterator<Item = Cell> + '_ {
        (0..self.starts.len()).map(move |label| self.get(row, label))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_read_as_they_were_added() {
        for n_categories in [2, 15, 16, 300] {
            let names: Vec<String> = (0..n_categories).map(|category| format!("c{category}")).collect();
            let model = Model::parse(&format!("label a\nlabel b: {}", names.join(", "))).unwrap();
            let mut cells = Cells::new(&model);
            let last = n_categories as u32 + 1;
            let rows = [
                [Cell { truth: Some(0), predicted: Some(1) }, Cell { truth: Some(last), predicted: Some(2) }],
                [Cell::default(), Cell { truth: Some(2), predicted: None }],
            ];
            rows.iter().for_each(|row| cells.push_row(row));
            for (index, row) in rows.iter().enumerate() {
                assert_eq!(cells.row(index).collect::<Vec<_>>(), row);
            }
        }
    }
}
