//! Cross-validation of the learner.

use std::ops::ControlFlow;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::examples::Examples;
use super::learner::{Learner, Progress};
use crate::belief::{BeliefMatrix, BeliefOrigin, Normalize};
use crate::error::{Error, Result};
use crate::infer::{EngineSettings, Engines, Limits};
use crate::label::LabelId;
use crate::metrics::{Evaluation, Metric, Predictions, joint_log_likelihoods};
use crate::model::Model;

/// The scores of held-out rows.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct CrossValidation {
    /// Number of folds that were asked for.
    pub n_folds: usize,
    /// The folds that were finished.
    pub folds: Vec<Fold>,
    /// Whether it was stopped early. The fold that was stopped is not counted.
    pub is_stopped: bool,
}

/// The scores of one held-out fold. Row weights do not count.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Fold {
    /// Number of held-out rows.
    pub n_rows: usize,
    /// Number of rules learned from the other rows.
    pub n_rules: usize,
    /// Mean joint log-likelihood of the known truths. `None` if exact inference is too costly.
    pub log_likelihood: Option<f64>,
    /// Share of rows whose most probable assignment is right. `None` if it is too costly.
    pub joint_accuracy: Option<f64>,
    /// Number of rows whose truth has probability 0. Their log-likelihood is ln 1e-300.
    pub n_impossible: usize,
}

/// A mean over folds.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// The standard deviation of the folds, divided by the square root of their number. `None` for one fold.
    pub standard_error: Option<f64>,
}

impl CrossValidation {
    /// Mean joint log-likelihood of a held-out row. `None` without any fold, or if it is unknown for some fold.
    pub fn log_likelihood(&self) -> Option<Estimate> {
        estimate(self.folds.iter().map(|fold| fold.log_likelihood))
    }

    /// Joint accuracy on held-out rows. `None` without any fold, or if it is unknown for some fold.
    pub fn joint_accuracy(&self) -> Option<Estimate> {
        estimate(self.folds.iter().map(|fold| fold.joint_accuracy))
    }

    /// Number of held-out rows whose truth has probability 0.
    pub fn n_impossible(&self) -> usize {
        self.folds.iter().map(|fold| fold.n_impossible).sum()
    }
}

fn estimate(values: impl Iterator<Item = Option<f64>>) -> Option<Estimate> {
    let values = values.collect::<Option<Vec<f64>>>().filter(|values| !values.is_empty())?;
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let standard_error = (values.len() > 1).then(|| (squares / (n - 1.0) / n).sqrt());
    Some(Estimate { mean, standard_error })
}

impl Learner {
    /// Cross-validates the whole procedure: learns from the rows outside each fold, and scores the fold.
    ///
    /// The rows with known truths are dealt to the folds in an order drawn by [`Self::seed`]. `observe` gets the number
    /// of finished folds and the progress of the current one. With `Break` the finished folds are returned.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// use prsl::learn::{Examples, Learner};
    /// use prsl::{BeliefMatrix, Model, Normalize, Truth};
    ///
    /// let model = Model::parse("label left\nlabel right")?;
    /// let mut beliefs = BeliefMatrix::new(&model);
    /// let mut truths = Vec::new();
    /// for row in 0..100 {
    ///     beliefs.push(&[Some(0.5), None, Some(0.5), None], Normalize::Never)?;
    ///     truths.push(Truth::from_indices([Some(row % 2), Some(row % 2)]));
    /// }
    /// let rows = Examples::new(beliefs, truths)?;
    /// let scores = Learner::default().cross_validate(&model, &rows, 2, &mut |_, _| ControlFlow::Continue(()))?;
    /// assert_eq!(scores.folds.len(), 2);
    /// // The labels are always equal, so that a row has one bit of information instead of two.
    /// let score = scores.log_likelihood().expect("exact");
    /// assert!((score.mean + 2f64.ln()).abs() < 0.1);
    /// # Ok::<(), prsl::Error>(())
    /// ```
    pub fn cross_validate(
        &self,
        base: &Model,
        rows: &Examples,
        n_folds: usize,
        observe: &mut dyn FnMut(usize, &Progress) -> ControlFlow<()>,
    ) -> Result<CrossValidation> {
        let folds = folds(rows, n_folds, self.seed)?;
        let mut result = CrossValidation { n_folds, folds: Vec::new(), is_stopped: false };
        for (n_done, held_out) in folds.iter().enumerate() {
            let mut is_rest = vec![true; rows.n_rows()];
            held_out.iter().for_each(|&row| is_rest[row] = false);
            let rest: Vec<usize> = (0..rows.n_rows()).filter(|&row| is_rest[row]).collect();
            let mut observe_fold = |progress: &Progress| observe(n_done, progress);
            let learned =
                self.learn_observed(base, &rows.select(&rest), Progress::default(), &mut observe_fold)?;
            if learned.is_stopped {
                result.is_stopped = true;
                break;
            }
            let n_rules = learned.model.rules().len() - learned.n_kept;
            result.folds.push(self.score(&learned.model, &rows.select(held_out), n_rules)?);
        }
        Ok(result)
    }

    fn score(&self, model: &Model, rows: &Examples, n_rules: usize) -> Result<Fold> {
        let limits = Limits { memory: self.memory };
        let settings = EngineSettings { limits, ..EngineSettings::default() };
        let engines = Engines::new(model).with_settings(settings);
        let beliefs = rows.beliefs_for(model)?;
        let marginals = engines.marginals()?;
        let best = match engines.assignments() {
            Err(Error::TooCostly { .. }) => None,
            engine => Some(engine?.best_batch(&beliefs)?),
        };
        let posteriors = marginals.infer_batch(&beliefs)?;
        let infer = |rows: &BeliefMatrix| marginals.infer_batch(rows);
        let truths = rows.to_truths();
        let joint = joint_log_likelihoods(&beliefs, &truths, &posteriors, infer)?;
        let mut evaluation = Evaluation::new(model, marginals.engine());
        let (best, joint) = (best.as_deref(), joint.as_deref());
        evaluation.add(Predictions { posteriors: &posteriors, best, joint, labels: None }, &truths)?;
        let scores = evaluation.scores();
        Ok(Fold {
            n_rows: rows.n_rows(),
            n_rules,
            log_likelihood: scores.get(Metric::MeanJointLogLikelihood),
            joint_accuracy: scores.get(Metric::JointAccuracy),
            n_impossible: scores.impossible,
        })
    }
}

impl Examples {
    /// The beliefs as a learned model reads them: with its calibrators, and its priors where nothing was given.
    ///
    /// ```
    /// use prsl::learn::Examples;
    /// use prsl::{BeliefMatrix, Evidence, Model, Truth};
    ///
    /// let base = Model::parse("label alarm")?;
    /// let mut beliefs = BeliefMatrix::new(&base);
    /// beliefs.push_evidence(&Evidence::new())?;
    /// let examples = Examples::new(beliefs, vec![Truth::unknown(1)])?;
    /// let learned = Model::parse("label alarm prior 0.1")?;
    /// assert_eq!(examples.beliefs_for(&learned)?.row(0)[..], [0.1, 0.9]);
    /// # Ok::<(), prsl::Error>(())
    /// ```
    pub fn beliefs_for(&self, model: &Model) -> Result<BeliefMatrix> {
        let given = self.model();
        let mut rows = BeliefMatrix::new(model);
        let mut values = vec![0.0; given.n_categories()];
        for row in 0..self.n_rows() {
            let origin = |label: LabelId| self.origin(row, label);
            self.stored().values_into(row, &mut values);
            let cells: Vec<Option<f64>> = given
                .label_ids()
                .flat_map(|label| {
                    let is_given = origin(label) != BeliefOrigin::Prior;
                    values[given.block(label)].iter().map(move |belief| is_given.then_some(*belief))
                })
                .collect();
            let observed: Vec<bool> =
                given.label_ids().map(|label| origin(label) == BeliefOrigin::Observed).collect();
            rows.push_with_observed(&cells, &observed, Normalize::Never)?;
        }
        Ok(rows)
    }
}

/// The rows of each fold, in order. Rows without a known truth or weight are in no fold.
fn folds(rows: &Examples, n_folds: usize, seed: u64) -> Result<Vec<Vec<usize>>> {
    let mut known: Vec<usize> = rows.used().collect();
    if n_folds < 2 || known.len() < n_folds {
        let n_known = known.len();
        let problem = format!(
            "{n_folds} folds for {n_known} rows with a known truth, expected from 2 folds to one for each row"
        );
        return Err(Error::Examples { problem });
    }
    known.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
    let fold = |first: usize| {
        let mut fold: Vec<usize> = known.iter().copied().skip(first).step_by(n_folds).collect();
        fold.sort_unstable();
        fold
    };
    Ok((0..n_folds).map(fold).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::truth::Truth;

    fn twins(n_rows: usize) -> (Model, Examples) {
        let model = Model::parse("label left\nlabel right").unwrap();
        let mut beliefs = BeliefMatrix::new(&model);
        let mut truths = Vec::new();
        for row in 0..n_rows {
            beliefs.push(&[Some(0.5), None, Some(0.5), None], Normalize::Never).unwrap();
            truths.push(Truth::from_indices([Some(row % 2), Some(row % 2)]));
        }
        truths[0] = Truth::unknown(2);
        (model, Examples::new(beliefs, truths).unwrap())
    }

    #[test]
    fn every_known_row_is_held_out_once() {
        let (_, rows) = twins(23);
        let folds = folds(&rows, 4, 7).unwrap();
        let sizes: Vec<usize> = folds.iter().map(Vec::len).collect();
        assert_eq!(sizes, [6, 6, 5, 5]);
        let mut all = folds.concat();
        all.sort_unstable();
        assert_eq!(all, (1..23).collect::<Vec<_>>());
        assert!(super::folds(&rows, 1, 7).is_err() && super::folds(&rows, 23, 7).is_err());
    }

    #[test]
    fn a_stopped_fold_is_not_counted() {
        let (model, rows) = twins(60);
        let mut observe = |n_done: usize, _: &Progress| match n_done {
            0 => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        };
        let scores = Learner::default().cross_validate(&model, &rows, 3, &mut observe).unwrap();
        assert!(scores.is_stopped);
        assert_eq!(scores.folds.len(), 1);
        assert_eq!(scores.log_likelihood().unwrap().standard_error, None);
    }

    #[test]
    fn the_standard_error_is_that_of_the_folds() {
        let found = estimate([Some(1.0), Some(2.0), Some(3.0)].into_iter()).unwrap();
        assert_eq!(found, Estimate { mean: 2.0, standard_error: Some((1.0f64 / 3.0).sqrt()) });
        assert_eq!(estimate([Some(1.0), None].into_iter()), None);
    }
}
