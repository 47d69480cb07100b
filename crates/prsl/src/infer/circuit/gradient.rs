//! Derivatives of ln Z, without compiling again.

use super::Circuit;
use crate::belief::Instance;
use crate::error::{Error, Result};
use crate::infer::factor::Factor;
use crate::log_space::log_add_exp;
use crate::logic::impossible;

/// ln Z of an instance and its derivatives, see [`Circuit::gradient`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Gradient {
    /// ln Z without typical combinations.
    pub log_evidence: f64,
    /// The derivative in the logarithm of each belief. It is the marginal of the category.
    pub log_beliefs: Vec<f64>,
    /// The derivative in the probability of each rule; `None` for rules of probability 0 and 1, whose violations are not in
    /// the circuit.
    pub probabilities: Vec<Option<f64>>,
}

impl Circuit {
    /// ln Z and its derivatives in beliefs and probabilities of rules, without compiling again. Typical combinations are
    /// ignored.
    ///
    /// `probabilities` has one number per rule, in place of those of the model. Rules of probability 0 and 1 must keep
    /// theirs, and all others must be strictly between 0 and 1.
    ///
    /// ```text
    /// ∂ ln Z / ∂ ln πⱼ(m) = P(lⱼ = m)      ∂ ln Z / ∂ w(outcome of rule k) = P(outcome of rule k) / w(outcome)
    /// ```
    ///
    /// Checked in `gradients_agree_with_central_differences`.
    pub fn gradient(&self, instance: &impl Instance, probabilities: &[f64]) -> Result<Gradient> {
        let row = &instance.values(self.model())?[..];
        let weights = self.weights(probabilities)?;
        let constants = self.sums.layout.constants(&weights);
        let answer = self.sums.one_with(row, &constants);
        if answer.log_total == f64::NEG_INFINITY {
            return Err(impossible(self.model(), row));
        }
        let masses = self.sums.log_masses_of_rules(row, &constants);
        let derivative = |factor: &Factor| {
            let ([silent, fired], weights) = (masses[factor.rule.index()], weights[factor.rule.index()]);
            let log_sum = log_add_exp(silent, fired);
            let [silent, fired] = [silent - log_sum, fired - log_sum].map(f64::exp);
            let change = fired / weights[1] - silent / weights[0];
            (!self.is_hard(factor.rule)).then_some(if factor.is_negated { -change } else { change })
        };
        let mut log_beliefs = answer.masses;
        for label in self.model().label_ids() {
            let block = &mut log_beliefs[self.model().block(label)];
            let total: f64 = block.iter().sum();
            block.iter_mut().for_each(|mass| *mass /= total);
        }
        let probabilities = self.factors.list.iter().map(derivative).collect();
        Ok(Gradient { log_evidence: answer.log_total, log_beliefs, probabilities })
    }

    /// The weights of all rules for other probabilities.
    fn weights(&self, probabilities: &[f64]) -> Result<Vec<[f64; 2]>> {
        let refuse = |setting, value, wanted| Error::Setting { setting, value, wanted };
        if probabilities.len() != self.factors.list.len() {
            return Err(refuse("number of probabilities", probabilities.len() as f64, "one for each rule"));
        }
        let weights = |(factor, &p): (&Factor, &f64)| {
            let is_valid = match self.is_hard(factor.rule) {
                true => p == self.model().rule(factor.rule).probability(),
                false => p > 0.0 && p < 1.0,
            };
            let weights = if factor.is_negated { [p, 1.0 - p] } else { [1.0 - p, p] };
            match is_valid {
                true => Ok(weights),
                false => Err(refuse("probabilities", p, "0 or 1 as in the model, or strictly between them")),
            }
        };
        self.factors.list.iter().zip(probabilities).map(weights).collect()
    }
}
