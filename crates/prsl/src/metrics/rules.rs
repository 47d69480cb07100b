//! The mean effect of each rule on the posterior and on the likelihood.

use std::sync::OnceLock;

use rayon::prelude::*;

use super::likelihood::{clamped, log_beliefs};
use super::{IMPOSSIBLE, check_rows, check_truths};
use crate::assignment::Assignment;
use crate::belief::BeliefMatrix;
use crate::error::Result;
use crate::infer::typical::Typical;
use crate::infer::{JunctionTree, Limits};
use crate::logic::conflict;
use crate::model::Model;
use crate::rule::RuleId;
use crate::truth::Truth;

/// A running mean.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Average {
    sum: f64,
    count: usize,
}

impl Average {
    /// Adds a value.
    pub fn add(&mut self, value: f64) {
        self.sum += value;
        self.count += 1;
    }

    /// Adds all values of another mean.
    pub fn merge(&mut self, other: Average) {
        self.sum += other.sum;
        self.count += other.count;
    }

    /// The mean; `None` without values.
    pub fn mean(self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }
}

/// Compares posteriors with and without each rule. Inference is exact, and models above the limits are refused.
///
/// ```
/// use prsl::metrics::RuleEffects;
/// use prsl::{BeliefMatrix, Evidence, Limits, Model, Truth};
///
/// let model = Model::parse("label weather: sun, rain\nlabel ground: dry, wet\nrule 0.95: wet <- rain")?;
/// let mut rows = BeliefMatrix::new(&model);
/// rows.push_evidence(&Evidence::new().belief("weather", [0.1, 0.9]).belief("ground", [0.7, 0.3]))?;
/// let effects = RuleEffects::compile(&model, Limits::default())?;
/// // P(wet) is 0.300 without the rule and 0.744 with it.
/// assert_eq!(format!("{:.3}", effects.influences(&rows)?[0].mean().unwrap()), "0.444");
/// // P(rain, wet) is 0.9 · 0.3 without the rule, and 0.9 · 0.3 · 0.95 / 0.383 with it.
/// let gains = effects.gains(&rows, &[Truth::from_indices([Some(1), Some(1)])])?;
/// assert_eq!(format!("{:.3}", gains[0].mean().unwrap()), "0.908");
/// # Ok::<(), prsl::Error>(())
/// ```
pub struct RuleEffects {
    tree: JunctionTree,
    /// The junction tree of the model without typical combinations, if there are any.
    without_typical: Option<JunctionTree>,
    typical: Typical,
    limits: Limits,
    /// The junction tree without each rule. It is compiled when a row is impossible with the rule.
    without: Vec<OnceLock<Result<JunctionTree>>>,
}

impl RuleEffects {
    /// Compiles the model. Returns an error with the cost if it exceeds the limits.
    pub fn compile(model: &Model, limits: Limits) -> Result<Self> {
        let tree = JunctionTree::compile_within(model, limits)?;
        let has_typical = !model.typical().is_empty();
        let without_typical = has_typical
            .then(|| JunctionTree::compile_within(&model.without_typical(), limits))
            .transpose()?;
        let without = model.rule_ids().map(|_| OnceLock::new()).collect();
        Ok(Self { tree, without_typical, typical: Typical::new(model), limits, without })
    }

    /// The compiled model.
    pub fn model(&self) -> &Model {
        self.tree.model()
    }

    /// The influence of each rule: the mean over rows of the largest change of any category's probability, compared
    /// with the posterior without the rule. Rows that are impossible with or without it are ignored.
    pub fn influences(&self, rows: &BeliefMatrix) -> Result<Vec<Average>> {
        check_rows(self.model(), rows)?;
        let posteriors = self.tree.infer_batch(rows)?;
        let influence = |row: usize| {
            let Some(with) = posteriors.marginals(row) else { return Ok(Vec::new()) };
            let without = self.tree.without_each_rule_of(rows.values_of(row))?;
            Ok(without.iter().map(|without| Some(largest_change(with, without.as_ref()?))).collect())
        };
        let found: Result<Vec<Vec<Option<f64>>>> =
            (0..rows.n_rows()).into_par_iter().map(influence).collect();
        Ok(self.averages(found?))
    }

    /// The gain of each rule: ln P(known truths) with the rule minus without it, mean over rows with a known truth.
    ///
    /// Let K be the known labels, Z(K) the sum over the assignments that agree with them, and Z₋ₖ the sums without
    /// rule k. Then
    ///
    /// ```text
    /// gain = (ln Z(K) − ln Z) − (ln Z₋ₖ(K) − ln Z₋ₖ)                    (1)
    /// Z₋ₖ = Z / P(rule k holds | all other rules hold)                  (2)
    /// ```
    ///
    /// So a row takes one run for any number of rules. (2) holds without typical combinations, which are added to
    /// each sum. If Z = 0, (2) is undefined, and the rules of the conflict are left out one by one. A probability of
    /// 0 counts as in [`Metric::MeanJointLogLikelihood`](super::Metric::MeanJointLogLikelihood): the gain of a rule
    /// that makes a truth impossible is as low as −690.
    pub fn gains(&self, rows: &BeliefMatrix, truths: &[Truth]) -> Result<Vec<Average>> {
        check_rows(self.model(), rows)?;
        check_truths(self.model(), rows.n_rows(), truths)?;
        let gain = |row: usize| {
            if truths[row].n_known() == 0 {
                return Ok(Vec::new());
            }
            let (all, agreeing) = (self.sums(rows.values_of(row))?, self.agreeing_sums(rows, truths, row)?);
            let with = log_share(agreeing.log_sum, all.log_sum);
            let without =
                agreeing.without.iter().zip(&all.without).map(|(agreeing, all)| log_share(*agreeing, *all));
            Ok(without.map(|without| Some(with - without)).collect()) // (1)
        };
        let found: Result<Vec<Vec<Option<f64>>>> = (0..rows.n_rows()).into_par_iter().map(gain).collect();
        Ok(self.averages(found?))
    }

    fn averages(&self, rows: Vec<Vec<Option<f64>>>) -> Vec<Average> {
        let mut averages = vec![Average::default(); self.model().rules().len()];
        for row in rows {
            for (average, value) in averages.iter_mut().zip(row) {
                value.into_iter().for_each(|value| average.add(value));
            }
        }
        averages
    }

    /// ln Z of a row, with all rules and without each.
    fn sums(&self, row: &[f64]) -> Result<Sums> {
        let tree = self.without_typical.as_ref().unwrap_or(&self.tree);
        if let (Ok(posterior), Ok(agreement)) = (tree.infer_row(row), tree.agreement_of(row)) {
            let mixed = |log_sum: f64, rule| self.typical.mixture_without(row, log_sum, rule).log_evidence;
            let log_sum_without = |rule: RuleId| {
                posterior.log_evidence() - agreement[rule.index()].max(f64::MIN_POSITIVE).ln() // (2)
            };
            let without = |rule| mixed(log_sum_without(rule), Some(rule));
            return Ok(Sums {
                log_sum: mixed(posterior.log_evidence(), None),
                without: self.model().rule_ids().map(without).collect(),
            });
        }
        let mut without = vec![f64::NEG_INFINITY; self.model().rules().len()];
        // If other rules alone exclude everything, leaving this one out changes nothing.
        for rule in conflict(self.model(), row) {
            let posterior = self.tree_without(rule)?.infer_row(row);
            without[rule.index()] = posterior.map_or(f64::NEG_INFINITY, |it| it.log_evidence());
        }
        Ok(Sums { log_sum: f64::NEG_INFINITY, without })
    }

    /// ln Z over the assignments that agree with the known truths, with all rules and without each.
    fn agreeing_sums(&self, rows: &BeliefMatrix, truths: &[Truth], row: usize) -> Result<Sums> {
        if let Some(assignment) = truths[row].assignment() {
            return Ok(self.weights(rows.values_of(row), &assignment));
        }
        let log_beliefs = log_beliefs(self.model(), rows.values_of(row), &truths[row]);
        let sums = self.sums(clamped(rows, truths, &[row])?.values_of(0))?;
        let without = sums.without.iter().map(|log_sum| log_sum + log_beliefs).collect();
        Ok(Sums { log_sum: sums.log_sum + log_beliefs, without })
    }

    /// The log weight of a single assignment, with all rules and without each.
    fn weights(&self, row: &[f64], assignment: &Assignment) -> Sums {
        let log_beliefs = log_beliefs(self.model(), row, &assignment.into())
            + self.model().log_typical(assignment.indices());
        let log_rules: Vec<f64> =
            self.model().rules().iter().map(|rule| rule.log_weight(assignment)).collect();
        let finite: f64 = log_rules.iter().filter(|log_rule| log_rule.is_finite()).sum();
        let n_excluding = log_rules.iter().filter(|log_rule| !log_rule.is_finite()).count();
        let without = log_rules.iter().map(|log_rule| match (n_excluding, log_rule.is_finite()) {
            (0, _) => log_beliefs + finite - log_rule,
            (1, false) => log_beliefs + finite,
            _ => f64::NEG_INFINITY,
        });
        let log_sum = if n_excluding == 0 { log_beliefs + finite } else { f64::NEG_INFINITY };
        Sums { log_sum, without: without.collect() }
    }

    fn tree_without(&self, rule: RuleId) -> Result<&JunctionTree> {
        let compile = || {
            let model = self.model().edit().retain_rules(|other| other != rule).build()?;
            JunctionTree::compile_within(&model, self.limits)
        };
        self.without[rule.index()].get_or_init(compile).as_ref().map_err(Clone::clone)
    }
}

/// The logarithm of a sum over assignments, with all rules and without each.
struct Sums {
    log_sum: f64,
    without: Vec<f64>,
}

fn log_share(part: f64, all: f64) -> f64 {
    if part == f64::NEG_INFINITY { IMPOSSIBLE } else { (part - all).min(0.0) }
}

fn largest_change(with: &[f64], without: &[f64]) -> f64 {
    with.iter().zip(without).map(|(with, without)| (with - without).abs()).fold(0.0, f64::max)
}
