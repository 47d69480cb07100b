//! Compares predictions with truths, row by row.

use super::bootstrap::{self, Orders};
use super::cells::{Cell, Cells};
use super::likelihood::{joint_log_likelihoods, label_log_likelihoods, place};
use super::{Bootstrap, IMPOSSIBLE, Intervals, Scores, check_count, check_truths, check_weights};
use crate::belief::{BeliefMatrix, check_length};
use crate::error::Result;
use crate::infer::Engines;
use crate::label::{CategoryId, LabelId};
use crate::model::Model;
use crate::posterior::{Engine, MostProbable, Posteriors};
use crate::truth::Truth;

/// Predictions for some rows.
#[derive(Clone, Copy, Debug)]
pub struct Predictions<'a> {
    /// The marginals of every row.
    pub posteriors: &'a Posteriors,
    /// The most probable explanation of every row, `None` for an impossible row; needed for the joint accuracy.
    pub best: Option<&'a [Option<MostProbable>]>,
    /// The result of [`joint_log_likelihoods`]; needed for the joint log-likelihood.
    pub joint: Option<&'a [Option<f64>]>,
    /// The result of [`label_log_likelihoods`]; without it the marginals are used, where underflow counts as 0.
    pub labels: Option<&'a [Vec<Option<f64>>]>,
}

/// Compares predictions with truths. All scores are computed from the numbers that it stores per row and class.
///
/// ```
/// use prsl::metrics::{Bootstrap, Evaluation, Metric};
/// use prsl::{BeliefMatrix, Evidence, Model, Truth};
///
/// let model = Model::parse("label weather: sun, rain\nlabel ground: dry, wet\nrule 0.95: wet <- rain")?;
/// let mut rows = BeliefMatrix::new(&model);
/// rows.push_evidence(&Evidence::new().belief("weather", [0.1, 0.9]).belief("ground", [0.7, 0.3]))?;
/// rows.push_evidence(&Evidence::new().belief("weather", [0.8, 0.2]).belief("ground", [0.7, 0.3]))?;
/// let truths = [[Some(1), Some(1)], [Some(0), None]].map(Truth::from_indices); // rain and wet; sun and unknown
/// let evaluation = Evaluation::of(&model, &rows, &truths)?;
/// assert_eq!(evaluation.scores().get(Metric::JointAccuracy), Some(1.0));
/// let alone = Evaluation::of(&model.without_rules()?, &rows, &truths)?;
/// assert_eq!(alone.scores().get(Metric::JointAccuracy), Some(0.5));
/// let [low, high] = alone.intervals(&Bootstrap::default()).get(Metric::JointAccuracy).unwrap();
/// assert!(low < 0.1 && high > 0.9); // two rows tell little
/// # Ok::<(), prsl::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Evaluation {
    model: Model,
    engine: Engine,
    /// The number of rows, those of weight 0 included.
    n_rows: usize,
    /// The number of rows of weight 0.
    n_weightless: usize,
    /// The numbers of the rows that are not among `rows`, in order.
    left_out: Vec<usize>,
    not_converged: usize,
    impossible: usize,
    /// The class of every category, if it has one.
    pub(super) class_of: Vec<Option<usize>>,
    /// The label of every class.
    pub(super) label_of: Vec<usize>,
    pub(super) n_classes: usize,
    /// The rows with a known truth and a weight above 0.
    pub(super) rows: Vec<Row>,
    /// Truths and predictions for every row and label.
    pub(super) cells: Cells,
    /// For each label, Σ weight · −ln P(truth) over rows with a known truth.
    pub(super) log_losses: Vec<f64>,
    /// The probability for every row and class. It is NaN if the truth is unknown or the row is impossible.
    pub(super) probabilities: Vec<f64>,
}

/// The contribution of a row, in 40 bytes.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) weight: f64,
    /// The joint log-likelihood, or [`Row::NO_JOINT`].
    joint: f64,
    /// The sum of the labels' log-likelihoods.
    pub(super) labels: f64,
    pub(super) n_known: u32,
    pub(super) n_wrong: u32,
    pub(super) best_is_right: Option<bool>,
}

impl Row {
    /// Stands for a missing log-likelihood. No log-likelihood is above 0. An `Option` would take 8 bytes more.
    const NO_JOINT: f64 = f64::INFINITY;

    /// The joint log-likelihood, if there is one.
    pub(super) fn joint(&self) -> Option<f64> {
        (self.joint != Self::NO_JOINT).then_some(self.joint)
    }
}

impl Evaluation {
    /// An evaluation without rows. `engine` is the engine of the marginals.
    pub fn new(model: &Model, engine: Engine) -> Self {
        let (class_of, label_of) = classes(model);
        Self {
            model: model.clone(),
            engine,
            n_rows: 0,
            n_weightless: 0,
            left_out: Vec::new(),
            not_converged: 0,
            impossible: 0,
            n_classes: label_of.len(),
            class_of,
            label_of,
            rows: Vec::new(),
            cells: Cells::new(model),
            log_losses: vec![std::iter::empty::<f64>().sum(); model.labels().len()],
            probabilities: Vec::new(),
        }
    }

    /// Predicts with the engines chosen for the model, and compares with the truths.
    pub fn of(model: &Model, rows: &BeliefMatrix, truths: &[Truth]) -> Result<Self> {
        Self::of_weighted(model, rows, truths, &vec![1.0; truths.len()])
    }

    /// The same with a weight for each row: a row of weight 2 counts as two rows, and one of weight 0 not at all.
    ///
    /// ```
    /// use prsl::metrics::{Evaluation, Metric};
    /// use prsl::{BeliefMatrix, Evidence, Model, Truth};
    ///
    /// let model = Model::parse("label fire")?;
    /// let mut rows = BeliefMatrix::new(&model);
    /// for belief in [0.9, 0.8, 0.7] {
    ///     rows.push_evidence(&Evidence::new().belief("fire", [belief]))?;
    /// }
    /// let truths = [0, 1, 1].map(|truth| Truth::from_indices([Some(truth)])); // fire in the first row
    /// let evaluation = Evaluation::of_weighted(&model, &rows, &truths, &[3.0, 1.0, 0.0])?;
    /// assert_eq!(evaluation.scores().get(Metric::JointAccuracy), Some(0.75));
    /// assert_eq!(evaluation.scores().rows, 2);
    /// # Ok::<(), prsl::Error>(())
    /// ```
    pub fn of_weighted(
        model: &Model,
        rows: &BeliefMatrix,
        truths: &[Truth],
        weights: &[f64],
    ) -> Result<Self> {
        let engines = Engines::new(model);
        let engine = engines.marginals()?;
        let best = engines.assignments()?.best_batch(rows)?;
        let posteriors = engine.infer_batch(rows)?;
        let infer = |rows: &BeliefMatrix| engine.infer_batch(rows);
        let joint = joint_log_likelihoods(rows, truths, &posteriors, infer)?;
        let labels = label_log_likelihoods(rows, truths, &posteriors, infer)?;
        let mut evaluation = Self::new(model, engine.engine());
        let (best, joint, labels) = (Some(&best[..]), joint.as_deref(), Some(&labels[..]));
        let predictions = Predictions { posteriors: &posteriors, best, joint, labels };
        evaluation.add_weighted(predictions, truths, weights)?;
        Ok(evaluation)
    }

    /// Adds rows. Adds none if the inputs have different lengths, or if a truth is not a category of its label.
    pub fn add(&mut self, predictions: Predictions<'_>, truths: &[Truth]) -> Result<()> {
        self.add_weighted(predictions, truths, &vec![1.0; truths.len()])
    }

    /// The same with a weight for each row: a number from 0 to 1e15. Scores are those of rows that are repeated as
    /// often as their weights say; rows of weight 0 do not count. Intervals resample rows, and not their repetitions.
    pub fn add_weighted(
        &mut self,
        predictions: Predictions<'_>,
        truths: &[Truth],
        weights: &[f64],
    ) -> Result<()> {
        let Predictions { posteriors, best, joint, labels } = predictions;
        let n_rows = posteriors.n_rows();
        check_truths(&self.model, n_rows, truths)?;
        let (n_categories, wanted) = (posteriors.model.n_categories(), self.model.n_categories());
        check_length("marginal", "category", n_categories, wanted)?;
        check_count("explanations", best.map_or(n_rows, <[_]>::len), n_rows)?;
        check_count("joint log-likelihoods", joint.map_or(n_rows, <[_]>::len), n_rows)?;
        check_count("log-likelihoods of labels", labels.map_or(n_rows, <[_]>::len), n_rows)?;
        for row in labels.into_iter().flatten() {
            check_length("log-likelihood", "label", row.len(), self.n_labels())?;
        }
        check_weights(n_rows, weights)?;
        for (row, (truth, &weight)) in truths.iter().zip(weights).enumerate() {
            if weight > 0.0 {
                self.add_row(predictions, row, truth, weight);
            } else {
                self.left_out.push(self.n_rows);
                (self.n_rows, self.n_weightless) = (self.n_rows + 1, self.n_weightless + 1);
            }
        }
        Ok(())
    }

    /// The scores of all rows so far.
    pub fn scores(&self) -> Scores {
        let weights = |row: usize| [self.rows[row].weight];
        let [values] = bootstrap::values(self, &Orders::new(self), &weights);
        Scores {
            rows: self.n_rows - self.n_weightless,
            scored_rows: self.rows.len(),
            engine: self.engine,
            not_converged: self.not_converged,
            impossible: self.impossible,
            values,
        }
    }

    /// Bootstrap intervals of the scores.
    pub fn intervals(&self, settings: &Bootstrap) -> Intervals {
        self.intervals_observed(settings, &|_| ())
    }

    /// The same. `observe` is called from any thread with the share of the work that is done, 0 to 1.
    pub fn intervals_observed(&self, settings: &Bootstrap, observe: &(dyn Fn(f64) + Sync)) -> Intervals {
        bootstrap::intervals(self, settings, observe)
    }

    pub(super) fn model(&self) -> &Model {
        &self.model
    }

    /// The number of rows, those without a known truth and those of weight 0 included.
    pub(super) fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// The position of each of `rows` among all rows.
    pub(super) fn numbers(&self) -> impl Iterator<Item = usize> {
        let mut left_out = self.left_out.iter().peekable();
        (0..self.n_rows).filter(move |number| left_out.next_if_eq(&number).is_none())
    }

    /// The number of labels.
    pub(super) fn n_labels(&self) -> usize {
        self.model.labels().len()
    }

    fn add_row(&mut self, predictions: Predictions<'_>, row: usize, truth: &Truth, weight: f64) {
        self.n_rows += 1;
        self.not_converged += usize::from(!predictions.posteriors.stopped(row).is_final());
        let marginals = predictions.posteriors.marginals(row);
        let joint = predictions.joint.and_then(|joint| joint[row]);
        let labels = predictions.labels.map(|labels| &labels[row]);
        let log_likelihoods = labels.map_or_else(|| self.log_marginals(marginals, truth), Vec::clone);
        let is_zero = |log_likelihood: &f64| *log_likelihood == f64::NEG_INFINITY;
        let is_impossible =
            marginals.is_none() || joint.iter().chain(log_likelihoods.iter().flatten()).any(is_zero);
        self.impossible += usize::from(is_impossible);
        if truth.n_known() == 0 {
            self.left_out.push(self.n_rows - 1);
            return;
        }
        let cells = self.row_cells(marginals, truth);
        let log_likelihoods: Vec<f64> =
            log_likelihoods.into_iter().map(|log_likelihood| log_likelihood.map_or(0.0, scored)).collect();
        for (label, _) in truth.known() {
            self.log_losses[label.index()] += weight * -log_likelihoods[label.index()];
        }
        let is_right = |best: &MostProbable| {
            let found = best.assignment.indices();
            truth.known().all(|(label, c)| found.get(label.index()) == Some(&c.index()))
        };
        let n_known = truth.n_known();
        let n_right =
            cells.iter().filter(|cell| cell.truth.is_some() && cell.truth == cell.predicted).count();
        self.rows.push(Row {
            weight,
            joint: joint.map_or(Row::NO_JOINT, scored),
            labels: log_likelihoods.iter().sum(),
            n_known: n_known as u32,
            n_wrong: (n_known - n_right) as u32,
            best_is_right: predictions.best.map(|best| best[row].as_ref().is_some_and(is_right)),
        });
        self.cells.push_row(&cells);
        self.add_probabilities(marginals, truth);
    }

    fn row_cells(&self, marginals: Option<&[f64]>, truth: &Truth) -> Vec<Cell> {
        let cell = |(label, category): (LabelId, Option<CategoryId>)| {
            let Some(category) = category else { return Cell::default() };
            let block = self.model.block(label);
            let predicted = marginals.map(|marginals| block.start + most_probable(&marginals[block.clone()]));
            let truth = Some(place(&self.model, (label, category)) as u32);
            Cell { truth, predicted: predicted.map(|place| place as u32) }
        };
        self.model.label_ids().zip(truth.categories()).map(cell).collect()
    }

    /// ln of the marginals of known truths.
    fn log_marginals(&self, marginals: Option<&[f64]>, truth: &Truth) -> Vec<Option<f64>> {
        let probability = |cell| marginals.map_or(0.0, |marginals| marginals[place(&self.model, cell)]);
        let log = |(label, category): (LabelId, Option<CategoryId>)| {
            category.map(|category| probability((label, category)).ln().min(0.0))
        };
        self.model.label_ids().zip(truth.categories()).map(log).collect()
    }

    fn add_probabilities(&mut self, marginals: Option<&[f64]>, truth: &Truth) {
        for (label, category) in self.model.label_ids().zip(truth.categories()) {
            for place in self.model.block(label) {
                if self.class_of[place].is_some() {
                    let known = marginals.filter(|_| category.is_some());
                    self.probabilities.push(known.map_or(f64::NAN, |marginals| marginals[place]));
                }
            }
        }
    }
}

/// The classes: `yes` of each yes/no label, and every category of other labels. Returns the class of every category and
/// the label of every class.
fn classes(model: &Model) -> (Vec<Option<usize>>, Vec<usize>) {
    let (mut class_of, mut label_of) = (Vec::new(), Vec::new());
    for (index, label) in model.labels().iter().enumerate() {
        for category in 0..label.n_categories() {
            let is_class = category == 0 || !label.is_binary();
            class_of.push(is_class.then_some(label_of.len()));
            label_of.extend(is_class.then_some(index));
        }
    }
    (class_of, label_of)
}

/// The position of the first maximum.
fn most_probable(marginal: &[f64]) -> usize {
    (1..marginal.len())
        .fold(0, |best, category| if marginal[category] > marginal[best] { category } else { best })
}

fn scored(log_likelihood: f64) -> f64 {
    if log_likelihood == f64::NEG_INFINITY { IMPOSSIBLE } else { log_likelihood }
}
