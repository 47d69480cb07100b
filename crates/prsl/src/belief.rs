//! Beliefs: distributions over the categories of one label, completed, checked and normalized.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::label::{CategoryId, Label, LabelId};
use crate::model::Model;

/// How far the sum of a belief may be from 1.
pub const SUM_TOLERANCE: f64 = 1e-6;

/// Whether a belief that does not sum to 1 is an error or divided by its sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Normalize {
    /// A sum off by more than [`SUM_TOLERANCE`] is an error.
    #[default]
    Never,
    /// Every belief is divided by its sum.
    Always,
}

/// Many rows of completed, normalized beliefs: one number per row and category, in the model's order.
///
/// ```
/// use prsl::{BeliefMatrix, Model, Normalize};
///
/// let model = Model::parse("label hands: high, centered, low\nlabel alarm prior 0.1")?;
/// let mut rows = BeliefMatrix::new(&model);
/// rows.push(&[Some(0.5), None, None, None, None], Normalize::Never)?;
/// assert_eq!(rows.row(0), [0.5, 0.25, 0.25, 0.1, 0.9]);
/// # Ok::<(), prsl::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct BeliefMatrix {
    model: Model,
    values: Vec<f64>,
    n_rows: usize,
}

impl BeliefMatrix {
    /// No rows yet, for a model.
    pub fn new(model: &Model) -> Self {
        Self { model: model.clone(), values: Vec::new(), n_rows: 0 }
    }

    /// Adds a row of one cell per category: empty cells of a partly given label share the remaining mass
    /// equally, a wholly empty label takes its prior.
    pub fn push(&mut self, cells: &[Option<f64>], normalize: Normalize) -> Result<()> {
        assert_eq!(cells.len(), self.model.n_categories(), "one cell per category");
        let start = self.values.len();
        for (index, label) in self.model.labels().iter().enumerate() {
            let block = self.model.block(LabelId::new(index));
            if let Err(error) = complete(label, &cells[block], normalize, &mut self.values) {
                self.values.truncate(start);
                return Err(error);
            }
        }
        self.n_rows += 1;
        Ok(())
    }

    /// Adds the row of one instance's evidence.
    pub fn push_evidence(&mut self, evidence: &crate::Evidence) -> Result<()> {
        let cells = evidence.cells(&self.model)?;
        self.push(&cells, Normalize::Never)
    }

    /// The model whose labels it is about.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Takes a label of a row as known: all belief goes to this category.
    ///
    /// ```
    /// use prsl::{BeliefMatrix, Evidence, Model};
    ///
    /// let model = Model::parse("label hands: high, centered, low\nlabel alarm")?;
    /// let mut rows = BeliefMatrix::new(&model);
    /// rows.push_evidence(&Evidence::new())?;
    /// let hands = model.find_label("hands")?;
    /// rows.observe(0, hands, model.find_category(hands, "low")?);
    /// assert_eq!(rows.row(0), [0.0, 0.0, 1.0, 0.5, 0.5]);
    /// # Ok::<(), prsl::Error>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If there is no such row, label or category.
    pub fn observe(&mut self, row: usize, label: LabelId, category: CategoryId) {
        let start = row * self.model.n_categories();
        let block = self.model.block(label);
        let belief = &mut self.values[start + block.start..start + block.end];
        belief.fill(0.0);
        belief[category.index()] = 1.0;
    }

    /// How many rows there are.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// One row: a number per category, in the model's order.
    pub fn row(&self, row: usize) -> &[f64] {
        let width = self.model.n_categories();
        &self.values[row * width..(row + 1) * width]
    }

    /// All rows one after the other.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Removes all rows, keeping the memory.
    pub fn clear(&mut self) {
        self.values.clear();
        self.n_rows = 0;
    }

    /// The same matrix with these rows only, in this order.
    pub fn select(&self, rows: &[usize]) -> Self {
        let values = rows.iter().flat_map(|&row| self.row(row)).copied().collect();
        Self { model: self.model.clone(), values, n_rows: rows.len() }
    }

    /// The same matrix with a range of rows only.
    pub fn slice(&self, rows: Range<usize>) -> Self {
        let width = self.model.n_categories();
        let values = self.values[rows.start * width..rows.end * width].to_vec();
        Self { model: self.model.clone(), values, n_rows: rows.len() }
    }
}

/// Appends one label's belief to `out`, completed and divided by its sum.
fn complete(label: &Label, cells: &[Option<f64>], normalize: Normalize, out: &mut Vec<f64>) -> Result<()> {
    for (category, value) in label.categories().iter().zip(cells) {
        if let Some(value) = *value
            && !(value >= 0.0 && value.is_finite())
        {
            return Err(Error::NotAProbability {
                what: "belief",
                label: label.name().to_owned(),
                category: category.clone(),
                value,
            });
        }
    }
    let start = out.len();
    let n_missing = cells.iter().filter(|cell| cell.is_none()).count();
    if n_missing == cells.len() {
        out.extend(label.prior_or_uniform());
    } else {
        let given: f64 = cells.iter().flatten().sum();
        let rest = 1.0 - given;
        if n_missing > 0 && rest < -SUM_TOLERANCE && normalize == Normalize::Never {
            return Err(Error::Sum { what: "belief", label: label.name().to_owned(), sum: given });
        }
        let share = rest.max(0.0) / n_missing as f64;
        out.extend(cells.iter().map(|cell| cell.unwrap_or(share)));
    }
    let block = &mut out[start..];
    let sum: f64 = block.iter().sum();
    if sum == 0.0 {
        return Err(Error::ZeroBelief { label: label.name().to_owned() });
    }
    if normalize == Normalize::Never && (sum - 1.0).abs() > SUM_TOLERANCE {
        return Err(Error::Sum { what: "belief", label: label.name().to_owned(), sum });
    }
    if !sum.is_finite() {
        let largest = block.iter().copied().fold(0.0, f64::max);
        block.iter_mut().for_each(|value| *value /= largest);
    }
    let sum: f64 = block.iter().sum();
    if sum != 1.0 {
        block.iter_mut().for_each(|value| *value /= sum);
    }
    Ok(())
}
