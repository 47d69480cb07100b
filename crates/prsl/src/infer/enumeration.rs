//! Inference by summing over all assignments. It is the reference for all other engines.

use rayon::prelude::*;

use crate::belief::{BeliefMatrix, Instance, check_same_labels};
use crate::error::{Error, Result};
use crate::label::LabelId;
use crate::log_space::log_sum_exp;
use crate::logic::impossible;
use crate::model::Model;
use crate::posterior::{Engine, MostProbable, Posterior, Posteriors, RankedAssignments, Stopped};
use crate::rule::RuleId;

/// Exact inference by enumeration. It is exponential, and simple enough to verify by reading.
///
/// ```text
/// weight(y) = ∏ⱼ πⱼ(yⱼ) ∏ₖ φₖ(y) S(y)    Z = Σ_y weight(y)      P(lⱼ = m) = Σ_{y: yⱼ = m} weight(y) / Z
/// ```
///
/// Everything is computed in log space, so no product underflows. S is the factor of typical combinations. The rules'
/// agreement ignores it.
#[derive(Clone, Debug)]
pub struct Enumeration {
    model: Model,
    assignments: Vec<Vec<usize>>,
    /// ln φₖ(y); the rule index varies fastest.
    log_rules: Vec<f64>,
    /// ln S(y).
    log_typical: Vec<f64>,
}

impl Enumeration {
    /// Maximum number of assignments.
    pub const MAX_ASSIGNMENTS: usize = 1 << 20;

    /// Lists all assignments. Returns an error if there are more than [`Self::MAX_ASSIGNMENTS`].
    pub fn compile(model: &Model) -> Result<Self> {
        let sizes: Vec<usize> = model.labels().iter().map(|label| label.n_categories()).collect();
        let n: f64 = sizes.iter().map(|&size| size as f64).product();
        if n > Self::MAX_ASSIGNMENTS as f64 {
            return Err(Error::TooCostly {
                what: "enumeration".to_owned(),
                needed: format!("a sum over {n:.1e} assignments"),
                limit: format!("{}", Self::MAX_ASSIGNMENTS),
                advice: "use the junction tree, which is exact too".to_owned(),
            });
        }
        let assignments: Vec<Vec<usize>> = (0..n as usize).map(|index| digits(index, &sizes)).collect();
        let log_rules = assignments
            .iter()
            .flat_map(|assignment| model.rules().iter().map(|rule| rule.log_weight_at(assignment)))
            .collect();
        let log_typical = assignments.iter().map(|assignment| model.log_typical(assignment)).collect();
        Ok(Self { model: model.clone(), assignments, log_rules, log_typical })
    }

    /// The model that it was compiled from.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The assignment of the largest weight.
    pub fn best(&self, instance: &impl Instance) -> Result<MostProbable> {
        let row = instance.values(&self.model)?;
        self.top_row(&row, 1).best_or_error(&self.model, &row)
    }

    /// All marginals and ln Z for one instance.
    pub fn infer(&self, instance: &impl Instance) -> Result<Posterior> {
        self.infer_row(&instance.values(&self.model)?)
    }

    pub(crate) fn infer_row(&self, row: &[f64]) -> Result<Posterior> {
        let log_weights = self.log_weights(row, None);
        let log_evidence = log_sum_exp(&log_weights);
        if log_evidence == f64::NEG_INFINITY {
            return Err(impossible(&self.model, row));
        }
        let (model, engine) = (self.model.clone(), Engine::Enumeration);
        let marginals = self.marginals(&log_weights, log_evidence);
        Ok(Posterior { model, marginals, log_evidence, engine, stopped: Stopped::Exact })
    }

    /// The agreement of every rule, in the order of the rules: P(rule holds | all other rules hold, evidence), which is
    /// Z divided by Z without the rule. Typical combinations are ignored.
    pub fn agreement(&self, instance: &impl Instance) -> Result<Vec<f64>> {
        let row = &instance.values(&self.model)?[..];
        let log_sum = log_sum_exp(&self.log_weights_of_rules(row, None));
        if log_sum == f64::NEG_INFINITY {
            return Err(impossible(&self.model, row));
        }
        let agreement = |rule| (log_sum - log_sum_exp(&self.log_weights_of_rules(row, Some(rule)))).exp();
        Ok(self.model.rule_ids().map(agreement).collect())
    }

    /// All marginals and ln Z for many rows.
    pub fn infer_batch(&self, rows: &BeliefMatrix) -> Result<Posteriors> {
        check_same_labels(rows.model(), &self.model)?;
        let mut marginals = Vec::with_capacity(rows.values().len());
        let mut log_evidence = Vec::with_capacity(rows.n_rows());
        for row in 0..rows.n_rows() {
            let log_weights = self.log_weights(rows.values_of(row), None);
            log_evidence.push(log_sum_exp(&log_weights));
            marginals.extend(self.marginals(&log_weights, log_evidence[row]));
        }
        let (model, engine) = (self.model.clone(), Engine::Enumeration);
        Ok(Posteriors { model, marginals, log_evidence, engine, stopped: Vec::new() })
    }

    /// The marginals without one rule; `None` if the row is impossible without it.
    pub fn without(&self, instance: &impl Instance, rule: RuleId) -> Result<Option<Vec<f64>>> {
        let log_weights = self.log_weights(&instance.values(&self.model)?, Some(rule));
        let log_evidence = log_sum_exp(&log_weights);
        Ok((log_evidence > f64::NEG_INFINITY).then(|| self.marginals(&log_weights, log_evidence)))
    }

    /// The `n` assignments of largest weight, best first. Impossible assignments are omitted.
    pub fn top(&self, instance: &impl Instance, n: usize) -> Result<RankedAssignments> {
        Ok(self.top_row(&instance.values(&self.model)?, n))
    }

    /// The `n` best assignments of every row.
    pub fn top_batch(&self, rows: &BeliefMatrix, n: usize) -> Result<Vec<RankedAssignments>> {
        check_same_labels(rows.model(), &self.model)?;
        Ok((0..rows.n_rows()).into_par_iter().map(|row| self.top_row(rows.values_of(row), n)).collect())
    }

    pub(crate) fn top_row(&self, row: &[f64], n: usize) -> RankedAssignments {
        let log_weights = self.log_weights(row, None);
        let mut order: Vec<usize> =
            (0..log_weights.len()).filter(|&y| log_weights[y] > f64::NEG_INFINITY).collect();
        order.sort_by(|&a, &b| log_weights[b].total_cmp(&log_weights[a]));
        let proven =
            |y: usize| MostProbable::proven(self.assignments[y].clone(), log_weights[y], Engine::Enumeration);
        RankedAssignments::complete(order.into_iter().take(n).map(proven).collect())
    }

    /// ln weight(y) of every assignment y, optionally without one rule.
    fn log_weights(&self, row: &[f64], without: Option<RuleId>) -> Vec<f64> {
        let log_rules = self.log_weights_of_rules(row, without);
        log_rules.iter().zip(&self.log_typical).map(|(rules, typical)| rules + typical).collect()
    }

    /// The same without typical combinations.
    fn log_weights_of_rules(&self, row: &[f64], without: Option<RuleId>) -> Vec<f64> {
        let n_rules = self.model.rules().len();
        let log_row: Vec<f64> = row.iter().map(|belief| belief.ln()).collect();
        let weigh = |(y, assignment): (usize, &Vec<usize>)| {
            let beliefs: f64 = self
                .model
                .label_ids()
                .map(|label| log_row[self.model.block(label).start + assignment[label.index()]])
                .sum();
            let rules: f64 = (0..n_rules)
                .filter(|&k| without != Some(RuleId::new(k)))
                .map(|k| self.log_rules[y * n_rules + k])
                .sum();
            beliefs + rules
        };
        self.assignments.iter().enumerate().map(weigh).collect()
    }

    fn marginals(&self, log_weights: &[f64], log_evidence: f64) -> Vec<f64> {
        let mut marginals = vec![0.0; self.model.n_categories()];
        for (assignment, log_weight) in self.assignments.iter().zip(log_weights) {
            for (label, &category) in assignment.iter().enumerate() {
                marginals[self.model.block(LabelId::new(label)).start + category] +=
                    (log_weight - log_evidence).exp();
            }
        }
        marginals
    }
}

/// The mixed-radix digits of `index`, last label fastest.
fn digits(mut index: usize, sizes: &[usize]) -> Vec<usize> {
    let mut digits = vec![0; sizes.len()];
    for label in (0..sizes.len()).rev() {
        digits[label] = index % sizes[label];
        index /= sizes[label];
    }
    digits
}
