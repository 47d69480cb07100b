//! Beliefs: distributions over the categories of one label, completed, checked, normalized and calibrated.

use std::ops::Range;

use crate::calibrate::{Calibrate, CalibrationProblem, Calibrator, is_distribution};
use crate::error::{Error, Result};
use crate::label::{CategoryId, Label, LabelId};
use crate::model::{Model, numbered};

/// How far the sum of a belief may be from 1.
pub const SUM_TOLERANCE: f64 = 1e-6;

/// Whether a belief that does not sum to 1 is an error or divided by its sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Normalize {
    /// A sum off by more than [`SUM_TOLERANCE`] is an error.
    #[default]
    Never,
    /// Every belief is divided by its sum; one above 1 in the only category that is given is an error.
    Always,
}

/// Where a row's belief about a label is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BeliefOrigin {
    /// Nothing was given: it is the label's prior.
    Prior,
    /// A classifier gave it, at least in part; it has gone through the label's calibrator.
    Classifier,
    /// The category is known.
    Observed,
}

/// Many rows of completed, normalized, calibrated beliefs: one number per row and category, in the model's order.
///
/// This is the one place where what a classifier says becomes what inference takes: a partly given belief is completed first,
/// then divided by its sum, then calibrated. Priors and observed categories are never calibrated. For raw
/// beliefs, use a matrix of [`Model::without_calibrators`].
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
    /// For each row and label.
    origins: Vec<BeliefOrigin>,
    n_rows: usize,
}

impl BeliefMatrix {
    /// No rows yet, for a model.
    pub fn new(model: &Model) -> Self {
        Self { model: model.clone(), values: Vec::new(), origins: Vec::new(), n_rows: 0 }
    }

    /// Adds a row of one cell per category: empty cells of a partly given label share the remaining mass
    /// equally, a wholly empty label takes its prior. All cells given are beliefs of classifiers.
    pub fn push(&mut self, cells: &[Option<f64>], normalize: Normalize) -> Result<()> {
        self.push_with_observed(cells, &vec![false; self.model.labels().len()], normalize)
    }

    /// Adds a row in which the cells of some labels are no beliefs but hold an observed category: a one among zeros.
    ///
    /// ```
    /// use prsl::{BeliefMatrix, BeliefOrigin, LabelId, Model, Normalize};
    ///
    /// let model = Model::parse("label alarm\nlabel fire\ncalibrate alarm platt 1 0\ncalibrate fire platt 1 0")?;
    /// let mut rows = BeliefMatrix::new(&model);
    /// let cells = [Some(1.0), Some(0.0), Some(1.0), Some(0.0)];
    /// rows.push_with_observed(&cells, &[false, true], Normalize::Never)?;
    /// assert!((rows.row(0)[0] - 0.999).abs() < 1e-12); // a belief is smoothed, and what is known is known
    /// assert_eq!(rows.row(0)[2], 1.0);
    /// assert_eq!(rows.origin(0, LabelId::new(1)), BeliefOrigin::Observed);
    /// # Ok::<(), prsl::Error>(())
    /// ```
    pub fn push_with_observed(
        &mut self,
        cells: &[Option<f64>],
        observed: &[bool],
        normalize: Normalize,
    ) -> Result<()> {
        let (n_categories, n_labels) = (self.model.n_categories(), self.model.labels().len());
        check_length("cell", "category", cells.len(), n_categories)?;
        check_length("answer", "label", observed.len(), n_labels)?;
        let (start, first) = (self.values.len(), self.origins.len());
        for (index, &observed) in observed.iter().enumerate() {
            let cells = &cells[self.model.block(LabelId::new(index))];
            if let Err(error) = self.push_label(LabelId::new(index), cells, observed, normalize) {
                self.values.truncate(start);
                self.origins.truncate(first);
                return Err(error);
            }
        }
        self.n_rows += 1;
        Ok(())
    }

    /// Adds what is known of the next label of a row.
    fn push_label(
        &mut self,
        id: LabelId,
        cells: &[Option<f64>],
        observed: bool,
        normalize: Normalize,
    ) -> Result<()> {
        let label = self.model.label(id);
        let start = self.values.len();
        complete(label, cells, normalize, &mut self.values)?;
        let origin = match (observed, cells.iter().all(Option::is_none)) {
            (true, _) => BeliefOrigin::Observed,
            (false, true) => BeliefOrigin::Prior,
            (false, false) => BeliefOrigin::Classifier,
        };
        if origin == BeliefOrigin::Classifier && *label.calibrator() != Calibrator::Identity {
            calibrate(label.calibrator(), &mut self.values[start..]);
        }
        self.origins.push(origin);
        Ok(())
    }

    /// Puts the beliefs that a classifier gave about a label through a calibrator of the caller's own, after the one that the model has
    /// for the label, if any.
    ///
    /// ```
    /// use prsl::{BeliefMatrix, Calibrate, Evidence, LabelId, Model};
    ///
    /// struct Opposite;
    ///
    /// impl Calibrate for Opposite {
    ///     fn calibrate(&self, belief: &[f64], out: &mut [f64]) {
    ///         out.copy_from_slice(&[belief[1], belief[0]]);
    ///     }
    /// }
    ///
    /// let mut rows = BeliefMatrix::new(&Model::parse("label alarm")?);
    /// rows.push_evidence(&Evidence::new().belief("alarm", [0.2]))?;
    /// rows.push_evidence(&Evidence::new().observe("alarm", "yes"))?;
    /// rows.calibrate(LabelId::new(0), &Opposite)?;
    /// assert_eq!(rows.row(0), [0.8, 0.2]);
    /// assert_eq!(rows.row(1), [1.0, 0.0]);
    /// # Ok::<(), prsl::Error>(())
    /// ```
    pub fn calibrate(&mut self, label: LabelId, calibrator: &dyn Calibrate) -> Result<()> {
        self.check_label(label)?;
        let (width, block) = (self.model.n_categories(), self.model.block(label));
        for row in 0..self.n_rows {
            if self.origin(row, label) != BeliefOrigin::Classifier {
                continue;
            }
            let belief = &mut self.values[row * width..][block.clone()];
            calibrate(calibrator, belief);
            if !is_distribution(belief) {
                return Err(
                    CalibrationProblem::NoDistribution { what: "calibrated belief", row: row + 1 }.into()
                );
            }
        }
        Ok(())
    }

    /// Where the belief of a row about a label is from.
    ///
    /// # Panics
    ///
    /// If there is no such row or label, as when an element of a slice is asked for that it does not have. So do all functions here
    /// that return a part of the matrix.
    pub fn origin(&self, row: usize, label: LabelId) -> BeliefOrigin {
        self.origins[row * self.model.labels().len() + label.index()]
    }

    /// The beliefs of a row about a label.
    pub fn belief(&self, row: usize, label: LabelId) -> &[f64] {
        &self.row(row)[self.model.block(label)]
    }

    /// Adds the row of one instance's evidence.
    pub fn push_evidence(&mut self, evidence: &crate::Evidence) -> Result<()> {
        let (cells, observed) = evidence.cells(&self.model)?;
        self.push_with_observed(&cells, &observed, Normalize::Never)
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
    /// rows.observe(0, hands, model.find_category(hands, "low")?)?;
    /// assert_eq!(rows.row(0), [0.0, 0.0, 1.0, 0.5, 0.5]);
    /// # Ok::<(), prsl::Error>(())
    /// ```
    pub fn observe(&mut self, row: usize, label: LabelId, category: CategoryId) -> Result<()> {
        if row >= self.n_rows {
            return Err(Error::UnknownRow { row, n_rows: self.n_rows });
        }
        self.check_label(label)?;
        let declared = self.model.label(label);
        if category.index() >= declared.n_categories() {
            return Err(Error::unknown_category(declared.name(), &numbered(category.index()), "", []));
        }
        let start = row * self.model.n_categories();
        let block = self.model.block(label);
        let belief = &mut self.values[start + block.start..start + block.end];
        belief.fill(0.0);
        belief[category.index()] = 1.0;
        self.origins[row * self.model.labels().len() + label.index()] = BeliefOrigin::Observed;
        Ok(())
    }

    fn check_label(&self, label: LabelId) -> Result<()> {
        match label.index() < self.model.labels().len() {
            true => Ok(()),
            false => Err(Error::unknown_label(&numbered(label.index()), "", [])),
        }
    }

    /// Puts a prior in place of what a classifier said.
    pub(crate) fn replace(&mut self, row: usize, label: LabelId, prior: &[f64]) {
        let start = row * self.model.n_categories() + self.model.block(label).start;
        self.values[start..start + prior.len()].copy_from_slice(prior);
        self.origins[row * self.model.labels().len() + label.index()] = BeliefOrigin::Prior;
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
        self.origins.clear();
        self.n_rows = 0;
    }

    /// Adds the rows of another matrix of the same model.
    ///
    /// # Panics
    ///
    /// If the models have different labels.
    pub fn append(&mut self, other: &Self) {
        assert_eq!(self.model.labels(), other.model.labels(), "rows about the same labels");
        self.values.extend_from_slice(&other.values);
        self.origins.extend_from_slice(&other.origins);
        self.n_rows += other.n_rows;
    }

    /// The same matrix with these rows only, in this order.
    pub fn select(&self, rows: &[usize]) -> Self {
        let n_labels = self.model.labels().len();
        let values = rows.iter().flat_map(|&row| self.row(row)).copied().collect();
        let origins =
            rows.iter().flat_map(|row| &self.origins[row * n_labels..][..n_labels]).copied().collect();
        Self { model: self.model.clone(), values, origins, n_rows: rows.len() }
    }

    /// The same matrix with a range of rows only.
    pub fn slice(&self, rows: Range<usize>) -> Self {
        let (width, n_labels) = (self.model.n_categories(), self.model.labels().len());
        let values = self.values[rows.start * width..rows.end * width].to_vec();
        let origins = self.origins[rows.start * n_labels..rows.end * n_labels].to_vec();
        Self { model: self.model.clone(), values, origins, n_rows: rows.len() }
    }
}

/// That a row has one of something for each category or label.
pub(crate) fn check_length(
    what: &'static str,
    each: &'static str,
    given: usize,
    wanted: usize,
) -> Result<()> {
    if given == wanted { Ok(()) } else { Err(Error::RowLength { what, each, given, wanted }) }
}

fn calibrate(calibrator: &dyn Calibrate, belief: &mut [f64]) {
    let raw = belief.to_vec();
    calibrator.calibrate(&raw, belief);
}

/// Refuses a belief above 1 in the only category that is given: divided by its sum, it would be 1 whatever it was.
fn refuse_lone_excess(label: &Label, cells: &[Option<f64>]) -> Result<()> {
    let mut given = label.categories().iter().zip(cells).filter_map(|(name, cell)| Some((name, (*cell)?)));
    match (given.next(), given.next()) {
        (Some((category, value)), None) if value > 1.0 + SUM_TOLERANCE => Err(Error::NotAProbability {
            what: "belief",
            label: label.name().to_owned(),
            category: category.clone(),
            value,
        }),
        _ => Ok(()),
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
    refuse_lone_excess(label, cells)?;
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
