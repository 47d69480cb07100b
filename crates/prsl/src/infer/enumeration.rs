//! The oracle: everything by summing over all assignments. Everything else answers to it.

use crate::belief::BeliefMatrix;
use crate::error::{Error, Result};
use crate::evidence::Evidence;
use crate::label::LabelId;
use crate::log_space::log_sum_exp;
use crate::model::Model;
use crate::posterior::{Engine, MostProbable, Posterior, Posteriors, Stopped};
use crate::rule::RuleId;

/// Exact inference by enumeration: exponential, and short enough to check by eye.
///
/// ```text
/// weight(y) = ∏ⱼ πⱼ(yⱼ) ∏ₖ φₖ(y) S(y)    Z = Σ_y weight(y)      P(lⱼ = m) = Σ_{y: yⱼ = m} weight(y) / Z
/// ```
///
/// All in log space, so that no product underflows. S is the factor of typical combinations, which the rules' agreement
/// leaves out.
#[derive(Clone, Debug)]
pub struct Enumeration {
    model: Model,
    assignments: Vec<Vec<usize>>,
    /// ln φₖ(y), rules innermost.
    log_rules: Vec<f64>,
    /// ln S(y).
    log_typical: Vec<f64>,
}

impl Enumeration {
    /// The most assignments that are enumerated.
    pub const MAX_ASSIGNMENTS: usize = 1 << 20;

    /// Lists all assignments; refused where there are more than [`Self::MAX_ASSIGNMENTS`].
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
            .flat_map(|assignment| model.rules().iter().map(|rule| rule.log_weight(assignment)))
            .collect();
        let log_typical = assignments.iter().map(|assignment| model.log_typical(assignment)).collect();
        Ok(Self { model: model.clone(), assignments, log_rules, log_typical })
    }

    /// All marginals, ln Z and every rule's agreement for one instance.
    pub fn infer(&self, evidence: &Evidence) -> Result<Posterior> {
        self.infer_row(&self.model.row(evidence)?)
    }

    /// The same for a row of completed beliefs.
    pub fn infer_row(&self, row: &[f64]) -> Result<Posterior> {
        let log_weights = self.log_weights(row, None);
        let log_evidence = log_sum_exp(&log_weights);
        if log_evidence == f64::NEG_INFINITY {
            return Err(Error::Impossible { rules: self.conflict(row) });
        }
        // P(R_k | R_-k) = Z / Z without rule k, combinations left out of both.
        let log_rules = log_sum_exp(&self.log_weights_of_rules(row, None));
        let agreement = self
            .model
            .rule_ids()
            .map(|rule| (log_rules - log_sum_exp(&self.log_weights_of_rules(row, Some(rule)))).exp())
            .collect();
        let (model, engine) = (self.model.clone(), Engine::Enumeration);
        let marginals = self.marginals(&log_weights, log_evidence);
        Ok(Posterior { model, marginals, log_evidence, agreement, engine, stopped: Stopped::Exact })
    }

    /// All marginals and ln Z for many rows.
    pub fn infer_batch(&self, rows: &BeliefMatrix) -> Posteriors {
        let mut marginals = Vec::with_capacity(rows.values().len());
        let mut log_evidence = Vec::with_capacity(rows.n_rows());
        for row in 0..rows.n_rows() {
            let log_weights = self.log_weights(rows.row(row), None);
            log_evidence.push(log_sum_exp(&log_weights));
            marginals.extend(self.marginals(&log_weights, log_evidence[row]));
        }
        Posteriors {
            model: self.model.clone(),
            marginals,
            log_evidence,
            engine: Engine::Enumeration,
            stopped: Vec::new(),
        }
    }

    /// The marginals without one rule; `None` where that leaves nothing possible.
    pub fn without(&self, row: &[f64], rule: RuleId) -> Option<Vec<f64>> {
        let log_weights = self.log_weights(row, Some(rule));
        let log_evidence = log_sum_exp(&log_weights);
        (log_evidence > f64::NEG_INFINITY).then(|| self.marginals(&log_weights, log_evidence))
    }

    /// The `n` assignments of the largest weight, best first; impossible ones are left out.
    pub fn top(&self, row: &[f64], n: usize) -> Vec<MostProbable> {
        let log_weights = self.log_weights(row, None);
        let mut order: Vec<usize> =
            (0..log_weights.len()).filter(|&y| log_weights[y] > f64::NEG_INFINITY).collect();
        order.sort_by(|&a, &b| log_weights[b].total_cmp(&log_weights[a]));
        order
            .into_iter()
            .take(n)
            .map(|y| MostProbable::proven(self.assignments[y].clone(), log_weights[y], Engine::Enumeration))
            .collect()
    }

    /// ln weight(y) of every assignment y, with one rule left out if asked.
    fn log_weights(&self, row: &[f64], without: Option<RuleId>) -> Vec<f64> {
        let log_rules = self.log_weights_of_rules(row, without);
        log_rules.iter().zip(&self.log_typical).map(|(rules, typical)| rules + typical).collect()
    }

    /// The same without combinations.
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

    /// A smallest set of rules that excludes everything: leave rules out as long as it stays impossible.
    fn conflict(&self, row: &[f64]) -> Vec<String> {
        let impossible = |kept: &[RuleId]| {
            let n_rules = self.model.rules().len();
            self.assignments.iter().enumerate().all(|(y, assignment)| {
                let excluded =
                    |rule: &RuleId| self.log_rules[y * n_rules + rule.index()] == f64::NEG_INFINITY;
                kept.iter().any(excluded)
                    || assignment
                        .iter()
                        .enumerate()
                        .any(|(label, c)| row[self.model.block(LabelId::new(label)).start + c] == 0.0)
            })
        };
        let kept = minimal_subset(self.model.rule_ids().collect(), impossible);
        kept.into_iter().map(|rule| self.model.rule_name(rule)).collect()
    }
}

/// A subset that still `holds`, from which nothing can be taken away.
pub(crate) fn minimal_subset<T: Copy + PartialEq>(
    mut set: Vec<T>,
    mut holds: impl FnMut(&[T]) -> bool,
) -> Vec<T> {
    for item in set.clone() {
        let smaller: Vec<T> = set.iter().copied().filter(|&other| other != item).collect();
        if holds(&smaller) {
            set = smaller;
        }
    }
    set
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
