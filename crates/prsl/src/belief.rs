//! Beliefs: distributions over the categories of one label. They are completed, checked, normalized and calibrated.

mod complete;

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::Serialize;

use crate::assignment::Assignment;
use crate::calibrator::{Calibrate, Calibrator};
use crate::distribution::is_distribution;
use crate::error::{CalibrationProblem, Error, Result};
use crate::evidence::Evidence;
use crate::label::{CategoryId, Label, LabelId};
use crate::model::Model;
use crate::notation::numbered;
pub use complete::Normalize;
use complete::complete;

/// The origin of a row's belief about a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum BeliefOrigin {
    /// Nothing was given, so it is the label's prior.
    Prior,
    /// A classifier gave at least a part of it. The label's calibrator has been applied.
    Classifier,
    /// The category is known.
    Observed,
}

/// Rows of completed, normalized and calibrated beliefs: one number per row and category, in the model's order.
///
/// All beliefs pass through here on their way from a classifier to inference. A partial belief is completed first,
/// then divided by its sum, then calibrated. Priors and observed categories are never calibrated. For raw beliefs,
/// use a matrix of [`Model::without_calibrators`].
///
/// ```
/// use prsl::{BeliefMatrix, Model, Normalize};
///
/// let model = Model::parse("label hands: high, centered, low\nlabel alarm prior 0.1")?;
/// let mut rows = BeliefMatrix::new(&model);
/// rows.push(&[Some(0.5), None, None, None, None], Normalize::Never)?;
/// assert_eq!(rows.row(0)[..], [0.5, 0.25, 0.25, 0.1, 0.9]);
/// # Ok::<(), prsl::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct BeliefMatrix {
    model: Model,
    values: Vec<f64>,
    /// The origin of the belief for each row and label.
    origins: Vec<BeliefOrigin>,
    n_rows: usize,
}

impl BeliefMatrix {
    /// An empty matrix for a model.
    pub fn new(model: &Model) -> Self {
        Self { model: model.clone(), values: Vec::new(), origins: Vec::new(), n_rows: 0 }
    }

    /// Rows of completed beliefs with their origins; `None` if there are too many or too few numbers, or no distributions.
    pub(crate) fn from_parts(model: &Model, values: Vec<f64>, origins: Vec<BeliefOrigin>) -> Option<Self> {
        let (width, n_labels) = (model.n_categories(), model.labels().len());
        let n_rows = origins.len() / n_labels.max(1);
        let rows = Self { model: model.clone(), values, origins, n_rows };
        let is_complete = rows.values.len() == n_rows * width && rows.origins.len() == n_rows * n_labels;
        let is_valid = |row: usize| model.label_ids().all(|label| is_distribution(rows.belief(row, label)));
        (is_complete && (0..n_rows).all(is_valid)).then_some(rows)
    }

    /// Adds a row with one cell per category. Empty cells of a partial belief share the remaining probability
    /// equally. A label without any cells gets its prior. All given cells are beliefs of classifiers.
    pub fn push(&mut self, cells: &[Option<f64>], normalize: Normalize) -> Result<()> {
        self.push_with_observed(cells, &vec![false; self.model.labels().len()], normalize)
    }

    /// Adds a row in which some labels are observed: their cells hold a one among zeros instead of a belief.
    ///
    /// ```
    /// use prsl::calibrate::BeliefOrigin;
    /// use prsl::{BeliefMatrix, LabelId, Model, Normalize};
    ///
    /// let model = Model::parse("label alarm\nlabel fire\ncalibrate alarm platt 1 0\ncalibrate fire platt 1 0")?;
    /// let mut rows = BeliefMatrix::new(&model);
    /// let cells = [Some(1.0), Some(0.0), Some(1.0), Some(0.0)];
    /// rows.push_with_observed(&cells, &[false, true], Normalize::Never)?;
    /// assert!((rows.row(0)[0] - 0.999).abs() < 1e-12); // beliefs are calibrated, observations are not
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

    /// Adds the belief about the next label of a row.
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

    /// Applies the caller's own calibrator to a classifier's beliefs about a label, after the label's calibrator in
    /// the model, if any.
    ///
    /// ```
    /// use prsl::calibrate::Calibrate;
    /// use prsl::{BeliefMatrix, Evidence, LabelId, Model};
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
    /// assert_eq!(rows.row(0)[..], [0.8, 0.2]);
    /// assert_eq!(rows.row(1)[..], [1.0, 0.0]);
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

    /// Raw beliefs, calibrated by a model that has the same labels with calibrators.
    ///
    /// ```
    /// use prsl::{BeliefMatrix, Evidence, Model};
    ///
    /// let model = Model::parse("label alarm\ncalibrate alarm platt 2 0")?;
    /// let mut raw = BeliefMatrix::new(&model.without_calibrators());
    /// raw.push_evidence(&Evidence::new().belief("alarm", [0.8]))?;
    /// let rows = raw.calibrated_by(&model)?;
    /// assert_eq!(rows.row(0), model.row(&Evidence::new().belief("alarm", [0.8]))?);
    /// assert!(rows.calibrated_by(&model).is_err()); // they are calibrated already
    /// # Ok::<(), prsl::Error>(())
    /// ```
    pub fn calibrated_by(&self, model: &Model) -> Result<Self> {
        check_same_labels(&self.model, &model.without_calibrators())?;
        let mut rows = Self { model: model.clone(), ..self.clone() };
        for label in model.label_ids() {
            rows.calibrate(label, model.calibrator(label))?;
        }
        Ok(rows)
    }

    /// The origin of a row's belief about a label.
    ///
    /// # Panics
    ///
    /// If there is no such row or label. All methods that return a part of the matrix panic in this case, like
    /// indexing a slice.
    pub fn origin(&self, row: usize, label: LabelId) -> BeliefOrigin {
        self.origins[row * self.model.labels().len() + label.index()]
    }

    /// The beliefs of a row about a label.
    pub fn belief(&self, row: usize, label: LabelId) -> &[f64] {
        &self.values_of(row)[self.model.block(label)]
    }

    /// Adds the row of one instance's evidence.
    pub fn push_evidence(&mut self, evidence: &Evidence) -> Result<()> {
        self.push_evidence_with(evidence, Normalize::Never)
    }

    /// The same with a treatment of beliefs that do not sum to 1.
    ///
    /// ```
    /// use prsl::{BeliefMatrix, Evidence, Model, Normalize};
    ///
    /// let mut rows = BeliefMatrix::new(&Model::parse("label hands: high, low")?);
    /// let evidence = Evidence::new().belief("hands", [3.0, 1.0]);
    /// assert!(rows.push_evidence(&evidence).is_err());
    /// rows.push_evidence_with(&evidence, Normalize::Always)?;
    /// assert_eq!(rows.row(0)[..], [0.75, 0.25]);
    /// # Ok::<(), prsl::Error>(())
    /// ```
    pub fn push_evidence_with(&mut self, evidence: &Evidence, normalize: Normalize) -> Result<()> {
        let (cells, observed) = evidence.cells(&self.model)?;
        self.push_with_observed(&cells, &observed, normalize)
    }

    /// The model whose labels it has.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Makes a label of a row observed: this category gets probability 1.
    ///
    /// ```
    /// use prsl::{BeliefMatrix, Evidence, Model};
    ///
    /// let model = Model::parse("label hands: high, centered, low\nlabel alarm")?;
    /// let mut rows = BeliefMatrix::new(&model);
    /// rows.push_evidence(&Evidence::new())?;
    /// let hands = model.find_label("hands")?;
    /// rows.observe(0, hands, model.find_category(hands, "low")?)?;
    /// assert_eq!(rows.row(0)[..], [0.0, 0.0, 1.0, 0.5, 0.5]);
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

    pub(crate) fn check_label(&self, label: LabelId) -> Result<()> {
        match label.index() < self.model.labels().len() {
            true => Ok(()),
            false => Err(Error::unknown_label(&numbered(label.index()), "", [])),
        }
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// One row: one number per category, in the model's order.
    pub fn row(&self, row: usize) -> Row<'_> {
        let n_labels = self.model.labels().len();
        let origins = Cow::Borrowed(&self.origins[row * n_labels..][..n_labels]);
        Row { model: self.model.clone(), values: Cow::Borrowed(self.values_of(row)), origins }
    }

    /// The numbers of one row.
    pub(crate) fn values_of(&self, row: usize) -> &[f64] {
        let width = self.model.n_categories();
        &self.values[row * width..(row + 1) * width]
    }

    /// All rows one after the other.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Removes all rows and keeps the memory.
    pub fn clear(&mut self) {
        self.values.clear();
        self.origins.clear();
        self.n_rows = 0;
    }

    /// Adds the rows of another matrix. Returns an error if its model has other labels.
    pub fn append(&mut self, other: &Self) -> Result<()> {
        check_same_labels(&other.model, &self.model)?;
        self.values.extend_from_slice(&other.values);
        self.origins.extend_from_slice(&other.origins);
        self.n_rows += other.n_rows;
        Ok(())
    }

    /// A matrix of these rows, in this order.
    pub fn select(&self, rows: &[usize]) -> Self {
        let n_labels = self.model.labels().len();
        let values = rows.iter().flat_map(|&row| self.values_of(row)).copied().collect();
        let origins =
            rows.iter().flat_map(|row| &self.origins[row * n_labels..][..n_labels]).copied().collect();
        Self { model: self.model.clone(), values, origins, n_rows: rows.len() }
    }

    /// A matrix of a range of rows.
    pub fn slice(&self, rows: Range<usize>) -> Self {
        let (width, n_labels) = (self.model.n_categories(), self.model.labels().len());
        let values = self.values[rows.start * width..rows.end * width].to_vec();
        let origins = self.origins[rows.start * n_labels..rows.end * n_labels].to_vec();
        Self { model: self.model.clone(), values, origins, n_rows: rows.len() }
    }
}

/// A row of completed, normalized and calibrated beliefs that belongs to a model.
///
/// It dereferences to a slice of one number per category, in the model's order. Engines return an error for a row of
/// a model with other labels, calibrators or priors.
///
/// ```
/// use prsl::{Evidence, JunctionTree, Model};
///
/// let model = Model::parse("label weather: sun, rain\nlabel ground: dry, wet\nrule 0.95: wet <- rain")?;
/// let row = model.row(&Evidence::new().belief("weather", [0.1, 0.9]))?;
/// assert_eq!(row[..], [0.1, 0.9, 0.5, 0.5]);
/// let engine = JunctionTree::compile(&model)?;
/// assert_eq!(engine.infer(&row)?, engine.infer(&Evidence::new().belief("weather", [0.1, 0.9]))?);
///
/// let other = Model::parse("label rain\nlabel wet")?;
/// assert!(engine.infer(&other.row(&Evidence::new())?).is_err());
/// # Ok::<(), prsl::Error>(())
/// ```
#[derive(Clone)]
pub struct Row<'a> {
    model: Model,
    values: Cow<'a, [f64]>,
    /// The origin of the belief for each label.
    origins: Cow<'a, [BeliefOrigin]>,
}

impl Row<'_> {
    /// The model that it belongs to.
    pub fn model(&self) -> &Model {
        &self.model
    }
}

impl PartialEq for Row<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.values == other.values && self.model.same_labels(&other.model)
    }
}

impl fmt::Debug for Row<'_> {
    /// The numbers alone, without the model.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.values.fmt(f)
    }
}

impl std::ops::Deref for Row<'_> {
    type Target = [f64];

    fn deref(&self) -> &[f64] {
        &self.values
    }
}

/// An instance in a form that engines accept: [`Evidence`] by name, or a [`Row`] of a matrix.
pub trait Instance: sealed::Instance {}

impl Instance for Evidence {}
impl Instance for Row<'_> {}

impl<'a> Row<'a> {
    /// A row of a model from its completed beliefs. They count as beliefs of classifiers.
    pub(crate) fn of(model: &Model, values: &'a [f64]) -> Self {
        let origins = Cow::Owned(vec![BeliefOrigin::Classifier; model.labels().len()]);
        Self { model: model.clone(), values: Cow::Borrowed(values), origins }
    }
}

mod sealed {
    use std::borrow::Cow;

    use super::{BeliefMatrix, Evidence, Model, Result, Row, check_same_labels};

    pub trait Instance {
        /// Returns the completed beliefs of the instance, or an error if it does not belong to the model.
        fn values(&self, model: &Model) -> Result<Cow<'_, [f64]>>;

        /// The same before calibration; `None` if it is not known.
        fn raw_values(&self, model: &Model) -> Result<Option<Vec<f64>>>;

        /// The instance as a matrix of one row, which has the origins of the beliefs.
        fn matrix(&self, model: &Model) -> Result<BeliefMatrix>;
    }

    impl Instance for Evidence {
        fn values(&self, model: &Model) -> Result<Cow<'_, [f64]>> {
            Ok(Cow::Owned(model.row(self)?.values.into_owned()))
        }

        fn raw_values(&self, model: &Model) -> Result<Option<Vec<f64>>> {
            Ok(Some(model.without_calibrators().row(self)?.values.into_owned()))
        }

        fn matrix(&self, model: &Model) -> Result<BeliefMatrix> {
            let mut rows = BeliefMatrix::new(model);
            rows.push_evidence(self)?;
            Ok(rows)
        }
    }

    impl Instance for Row<'_> {
        fn values(&self, model: &Model) -> Result<Cow<'_, [f64]>> {
            check_same_labels(&self.model, model)?;
            Ok(Cow::Borrowed(&self.values))
        }

        fn raw_values(&self, _: &Model) -> Result<Option<Vec<f64>>> {
            Ok(None)
        }

        fn matrix(&self, model: &Model) -> Result<BeliefMatrix> {
            let values = self.values(model)?.into_owned();
            Ok(BeliefMatrix { model: model.clone(), values, origins: self.origins.to_vec(), n_rows: 1 })
        }
    }
}

/// Returns an error if two models have different labels.
pub(crate) fn check_same_labels(of: &Model, wanted: &Model) -> Result<()> {
    if of.same_labels(wanted) {
        return Ok(());
    }
    let differs = |(a, b): &(&Label, &Label)| a != b;
    let first = of.labels().iter().zip(wanted.labels()).find(differs);
    let label = first.map(|(label, _)| label.name().to_owned());
    Err(Error::ForeignRow { given: of.labels().len(), wanted: wanted.labels().len(), label })
}

impl Model {
    /// The evidence of one instance as completed, normalized and calibrated beliefs: one number per category, in the
    /// model's order.
    pub fn row(&self, evidence: &Evidence) -> Result<Row<'static>> {
        let mut matrix = BeliefMatrix::new(self);
        matrix.push_evidence(evidence)?;
        let (values, origins) = (Cow::Owned(matrix.values), Cow::Owned(matrix.origins));
        Ok(Row { model: matrix.model, values, origins })
    }

    /// The log weight of one assignment: beliefs, rules and typical combinations. It is −∞ if the assignment is
    /// impossible.
    ///
    /// # Panics
    ///
    /// If the row or the assignment is of a model with other labels.
    pub fn log_weight(&self, row: &Row<'_>, assignment: &Assignment) -> f64 {
        self.log_weight_at(row, assignment.indices())
    }
}

/// Returns an error unless a row has one item for each category or label.
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
