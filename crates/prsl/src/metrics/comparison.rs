//! Two models on the same rows.

use super::bootstrap::{self, Bootstrap};
use super::evaluation::{Evaluation, Row};
use super::{Metric, N_METRICS, check_count};
use crate::error::{Error, Result};
use crate::model::Model;

/// Paired differences between two models' scores: those of the second less those of the first.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Comparison {
    /// Every row with a known truth and a weight above 0, the largest difference first.
    pub rows: Vec<RowDifference>,
    values: [Option<Difference>; N_METRICS],
}

/// The difference of one score, with its bootstrap interval.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Difference {
    /// The second score less the first.
    pub difference: f64,
    /// Lower and upper end. Both models are scored on the same resampled rows.
    pub interval: [f64; 2],
}

/// The log-likelihood of one row's known truths by both models: that of all labels together, or the sum over labels if a model
/// has none.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct RowDifference {
    /// The row, counted from 0, rows without a known truth included.
    pub row: usize,
    /// By both models.
    pub log_likelihoods: [f64; 2],
}

impl RowDifference {
    /// The second log-likelihood less the first.
    pub fn difference(&self) -> f64 {
        self.log_likelihoods[1] - self.log_likelihoods[0]
    }
}

impl Comparison {
    /// The difference of a score; `None` if a model does not have it.
    pub fn get(&self, metric: Metric) -> Option<Difference> {
        self.values[metric as usize]
    }
}

impl Evaluation {
    /// Compares another model's predictions of the same rows with these. Returns an error if the models have different labels,
    /// or if the number of rows or their weights differ.
    ///
    /// ```
    /// use prsl::metrics::{Bootstrap, Evaluation, Metric};
    /// use prsl::{BeliefMatrix, Evidence, Model, Truth};
    ///
    /// let model = Model::parse("label weather: sun, rain\nlabel ground: dry, wet\nrule 0.95: wet <- rain")?;
    /// let mut rows = BeliefMatrix::new(&model);
    /// rows.push_evidence(&Evidence::new().belief("weather", [0.1, 0.9]).belief("ground", [0.7, 0.3]))?;
    /// let truths = [Truth::from_indices([Some(1), Some(1)])]; // rain and wet
    /// let alone = Evaluation::of(&model.without_rules()?, &rows, &truths)?;
    /// let compared = alone.compare(&Evaluation::of(&model, &rows, &truths)?, &Bootstrap::default())?;
    /// assert_eq!(compared.get(Metric::JointAccuracy).unwrap().difference, 1.0);
    /// assert_eq!(compared.rows[0].row, 0);
    /// # Ok::<(), prsl::Error>(())
    /// ```
    pub fn compare(&self, other: &Evaluation, settings: &Bootstrap) -> Result<Comparison> {
        self.compare_observed(other, settings, &|_| ())
    }

    /// The same. `observe` is called from any thread with the share of the work that is done, 0 to 1.
    pub fn compare_observed(
        &self,
        other: &Evaluation,
        settings: &Bootstrap,
        observe: &(dyn Fn(f64) + Sync),
    ) -> Result<Comparison> {
        check_comparable(other.model(), self.model())?;
        check_count("rows of the other evaluation", other.n_rows(), self.n_rows())?;
        check_count("known rows of the other evaluation", other.rows.len(), self.rows.len())?;
        let [a, b] = [self, other].map(|it| it.numbers().zip(it.rows.iter().map(|row| row.weight)));
        let same = a.zip(b).filter(|(a, b)| a == b);
        check_count("rows of the same weight in the other evaluation", same.count(), self.rows.len())?;
        let first = bootstrap::replicates(self, settings, &|share| observe(share / 2.0));
        let second = bootstrap::replicates(other, settings, &|share| observe((1.0 + share) / 2.0));
        let [a, b] = [self.scores(), other.scores()];
        let difference = |metric: Metric| {
            let difference = b.get(metric)? - a.get(metric)?;
            let at = metric as usize;
            let pairs = first.iter().zip(&second).filter_map(|(a, b)| Some(b[at]? - a[at]?));
            let interval = bootstrap::interval(pairs.collect(), difference, settings.confidence)?;
            Some(Difference { difference, interval })
        };
        let has_joint = self.rows.iter().chain(&other.rows).all(|row| row.joint().is_some());
        let value = |row: &Row| row.joint().filter(|_| has_joint).unwrap_or(row.labels);
        let pairs = self.rows.iter().zip(&other.rows);
        let row =
            |(row, (a, b)): (usize, (&Row, &Row))| RowDifference { row, log_likelihoods: [a, b].map(value) };
        let mut rows: Vec<RowDifference> = self.numbers().zip(pairs).map(row).collect();
        rows.sort_by(|a, b| b.difference().abs().total_cmp(&a.difference().abs()).then(a.row.cmp(&b.row)));
        Ok(Comparison { rows, values: Metric::ALL.map(difference) })
    }
}

/// Returns an error if labels or categories differ. Calibrators, priors and classifiers may.
fn check_comparable(of: &Model, wanted: &Model) -> Result<()> {
    let [labels, others] = [of.labels(), wanted.labels()];
    let differs =
        labels.iter().zip(others).find(|(a, b)| a.name() != b.name() || a.categories() != b.categories());
    if labels.len() == others.len() && differs.is_none() {
        return Ok(());
    }
    let label = differs.map(|(label, _)| label.name().to_owned());
    Err(Error::ForeignRow { given: labels.len(), wanted: others.len(), label })
}
