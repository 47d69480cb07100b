//! Calibrators that are fitted beside rules.

use super::data::{Data, Fitted};
use super::examples::Examples;
use super::problem::Problem;
use crate::calibrate::CalibrationMethod;
use crate::error::{CalibrationProblem, Result};
use crate::infer::Limits;
use crate::label::LabelId;
use crate::model::Model;

/// Maximum number of multiply-adds per row. A fit takes about 50 passes over all rows, and a pass of this many takes about
/// 0.3 ms a row.
const MAX_WORK: f64 = 1e6;

/// A model with calibrators that were fitted beside its rules.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Calibrated {
    /// The model with the calibrators.
    pub model: Model,
    /// Mean log-likelihood of the known truths, per row, by the rules with raw and with calibrated beliefs.
    pub log_likelihood: [f64; 2],
    /// Number of rows whose truth the rules exclude. They are not fitted to.
    pub n_impossible: usize,
}

impl Examples {
    /// Fits the calibrators of some labels together, so that the model with its rules explains the known truths best.
    ///
    /// A rule shifts the belief about each of its labels. Calibrators that are right by themselves are then wrong beside it:
    /// what two labels have in common counts twice. Methods are Platt, temperature and Dirichlet calibration;
    /// [`CalibrationMethod::Auto`] is Platt scaling for two categories, and a slope with a bias per category for more. Typical
    /// combinations are ignored. Labels whose truth is never known keep their calibrators.
    ///
    /// Returns an error for other methods, and if exact inference is too costly.
    ///
    /// ```
    /// use prsl::calibrate::CalibrationMethod;
    /// use prsl::learn::Examples;
    /// use prsl::{BeliefMatrix, Limits, Model, Normalize, Truth};
    ///
    /// // Two classifiers that are right in 80 % of the rows, about labels that are always equal.
    /// let model = Model::parse("label left\nlabel right\nrule 1: left <-> right")?;
    /// let (mut beliefs, mut truths) = (BeliefMatrix::new(&model), Vec::new());
    /// for row in 0..500 {
    ///     let says = |is_right: bool| if is_right == (row % 2 == 0) { 0.8 } else { 0.2 };
    ///     let [left, right] = [row % 5 > 0, row % 5 > 0 || row % 3 > 0].map(says); // wrong together
    ///     beliefs.push(&[Some(left), None, Some(right), None], Normalize::Never)?;
    ///     truths.push(Truth::from_indices([Some(row % 2); 2]));
    /// }
    /// let rows = Examples::new(beliefs, truths)?;
    /// let labels: Vec<_> = model.label_ids().collect();
    /// let fitted = rows.calibrated_beside_rules(&model, CalibrationMethod::Auto, &labels, Limits::default())?;
    /// let [raw, calibrated] = fitted.log_likelihood;
    /// assert!(calibrated > raw);
    /// # Ok::<(), prsl::Error>(())
    /// ```
    pub fn calibrated_beside_rules(
        &self,
        model: &Model,
        method: CalibrationMethod,
        labels: &[LabelId],
        limits: Limits,
    ) -> Result<Calibrated> {
        let fitted = match method {
            CalibrationMethod::Auto | CalibrationMethod::Platt => Fitted::Usual,
            CalibrationMethod::Temperature => Fitted::Temperature,
            CalibrationMethod::Dirichlet => Fitted::Dirichlet,
            CalibrationMethod::Isotonic | CalibrationMethod::Confusion => {
                return Err(CalibrationProblem::AloneOnly { method: method.name() }.into());
            }
        };
        let of_label = |label: LabelId| {
            let is_fitted = labels.contains(&label)
                && model.label(label).classifier().is_some()
                && self.n_seen(label) > 0;
            let n_categories = model.label(label).n_categories();
            match method.suited_to(n_categories) {
                _ if !is_fitted => Fitted::No,
                CalibrationMethod::Dirichlet => Fitted::Dirichlet,
                _ => fitted,
            }
        };
        let kinds: Vec<Fitted> = model.label_ids().map(of_label).collect();
        let data = Data::new(model, self, &kinds)?;
        let problem = Problem::new(model, data, Vec::new(), limits)?;
        let mut compiled = problem.compile_within(&[], &[], MAX_WORK)?;
        let total = problem.weight().max(f64::MIN_POSITIVE);
        let before = problem.point(&mut compiled, &problem.data.identity()).log_likelihood / total;
        let parameters = problem.calibrated(Some(&mut compiled), &mut || true);
        let after = problem.point(&mut compiled, &parameters).log_likelihood / total;
        let mut builder = model.edit();
        for label in model.label_ids() {
            if let Some(calibrator) = problem.data.calibrator(label.index(), &parameters)? {
                builder = builder.calibrator(model.label(label).name(), calibrator);
            }
        }
        let n_impossible = problem.totals.n_used - problem.n_rows();
        Ok(Calibrated { model: builder.build()?, log_likelihood: [before, after], n_impossible })
    }
}
