//! The effect of each rule: the posterior with and without it.

use std::collections::{BTreeMap, HashSet};

use serde::Serialize;

use super::{FixedRule, MOVED, ROUNDING};
use crate::label::LabelId;
use crate::lint::Table;
use crate::model::Model;
use crate::noisy_or::NoisyOr;
use crate::rule::{Body, Rule, RuleId};

/// The kind of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RuleKind {
    /// A formula.
    Rule,
    /// A noisy-or.
    NoisyOr,
}

/// The effect of one rule.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct RuleExplanation {
    /// Its number, from 1.
    pub number: usize,
    /// Its name, if it has one.
    pub name: Option<String>,
    /// A formula or a noisy-or.
    pub kind: RuleKind,
    /// Its statement, as in a model file.
    pub text: String,
    /// Its statement as a sentence, with its probability.
    pub sentence: String,
    /// The probability p that it holds.
    pub probability: f64,
    /// Zₖ = P(rule holds | all other rules hold, evidence); `None` if no assignment is possible.
    pub agreement: Option<f64>,
    /// F: the probability that the formula is true (that the noisy-or fires), given the evidence and all other rules.
    ///
    /// `None` if no assignment is possible, and for a rule of probability ½, which does not depend on F.
    pub body_probability: Option<f64>,
    /// The smallest and the largest possible agreement: the smallest and the largest weight φ that the rule gives any
    /// assignment. For a formula these are p and 1 − p, unless it is always true or always false.
    pub agreement_range: [f64; 2],
    /// Whether the evidence and the other rules contradict the rule: its agreement is below the middle of its range.
    ///
    /// For a formula, the threshold is ½. A rule of probability p supports its body if p > ½, and the opposite if p <
    /// ½. Let F be the probability of the body given the evidence and the other rules. Then
    ///
    /// ```text
    /// Zₖ = p F + (1 − p)(1 − F) = ½ + 2 (p − ½)(F − ½)
    /// ```
    ///
    /// So what the rule supports is improbable (F < ½ for p > ½, F > ½ for p < ½) exactly if Zₖ < ½, for soft and
    /// hard rules. A noisy-or may be silent even if all its causes are present, so its largest agreement may be far
    /// below ½. A rule of probability ½ never conflicts.
    ///
    /// If no assignment is possible, this marks a minimal set of rules that together exclude all assignments.
    pub conflict: bool,
    /// Whether any assignment is possible without this rule. This is always so if one is possible with it.
    pub possible_without: bool,
    /// The largest change of any category's probability in the whole model.
    pub largest_change: Option<f64>,
    /// The effect on every label that the rule mentions, and on other labels that it changes by 0.0005 or more.
    pub influences: Vec<Influence>,
}

/// The effect of a rule on one label.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct Influence {
    /// The label.
    pub label: String,
    /// Whether the rule mentions the label. If not, the effect is through other rules.
    pub mentioned: bool,
    /// Every category, in order.
    pub categories: Vec<Change>,
}

/// One category's posterior with and without a rule.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct Change {
    /// The category.
    pub category: String,
    /// Its probability without the rule; `None` if no assignment is possible without it.
    pub without: Option<f64>,
    /// Its probability with all rules; `None` if no assignment is possible.
    pub with: Option<f64>,
    /// `with` − `without`.
    pub change: Option<f64>,
    /// The difference of the log-odds; `None` if it is infinite, see `became`. Both are `None` in the rare case that
    /// only the probability without the rule underflows.
    pub log_odds_change: Option<f64>,
    /// Whether the rule made the category certain or impossible.
    pub became: Option<Became>,
}

/// A category that a rule made certain or impossible, in floating-point arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Became {
    /// No other category is possible.
    Certain,
    /// This category is excluded.
    Impossible,
}

impl RuleExplanation {
    /// The effect on the label called `label`; `None` if the rule neither mentions nor changes it.
    pub fn influence(&self, label: &str) -> Option<&Influence> {
        self.influences.iter().find(|influence| influence.label == label)
    }
}

impl Influence {
    /// The category that changed most. Of equal changes, an increase comes first.
    pub fn largest(&self) -> Option<&Change> {
        let changed = |change: &&Change| change.change.is_some();
        let size =
            |change: &Change| change.change.map_or(0.0, |d| d.abs() + if d > 0.0 { ROUNDING } else { 0.0 });
        self.categories.iter().rev().filter(changed).max_by(|a, b| size(a).total_cmp(&size(b)))
    }
}

impl Change {
    /// Compares the probabilities of a label's categories without and with a rule.
    fn new(category: &str, index: usize, without: Option<&[f64]>, with: Option<&[f64]>) -> Self {
        let mut change = Self {
            category: category.to_owned(),
            without: without.map(|without| without[index]),
            with: with.map(|with| with[index]),
            change: None,
            log_odds_change: None,
            became: None,
        };
        let (Some(without), Some(with)) = (without, with) else { return change };
        change.change = Some(with[index] - without[index]);
        let (before, after) = (log_odds(without, index), log_odds(with, index));
        if before == after {
            change.log_odds_change = Some(0.0); // both may be infinite
        } else {
            change.log_odds_change = Some(after - before).filter(|difference| difference.is_finite());
            change.became = match after {
                f64::INFINITY => Some(Became::Certain),
                f64::NEG_INFINITY => Some(Became::Impossible),
                _ => None,
            };
        }
        change
    }
}

/// The effect on every label in `scope`, and on other labels that change visibly, from the marginals with and without it.
pub(super) fn influences(
    model: &Model,
    [with, without]: [Option<&[f64]>; 2],
    scope: &HashSet<LabelId>,
) -> Vec<Influence> {
    let change = |label: LabelId| Some(largest_change(with?, without?, model.block(label)));
    let influence = |label: LabelId| {
        let block = || model.block(label);
        let categories = model.label(label).categories().iter().enumerate();
        let change = |(index, category): (usize, &String)| {
            Change::new(category, index, without.map(|w| &w[block()]), with.map(|w| &w[block()]))
        };
        Influence {
            label: model.label(label).name().to_owned(),
            mentioned: scope.contains(&label),
            categories: categories.map(change).collect(),
        }
    };
    model
        .label_ids()
        .filter(|&label| scope.contains(&label) || change(label).is_some_and(|change| change >= MOVED))
        .map(influence)
        .collect()
}

/// Explains one rule by the marginals with and without it. `excludes` is whether it is in the conflict of an impossible
/// row.
pub(super) fn explain_rule(
    model: &Model,
    id: RuleId,
    fixed: &FixedRule,
    [with, without]: [Option<&[f64]>; 2],
    agreement: Option<f64>,
    excludes: bool,
) -> RuleExplanation {
    let rule = model.rule(id);
    let scope: HashSet<LabelId> = rule.scope().into_iter().collect();
    let agreement_range = fixed.agreement_range;
    RuleExplanation {
        number: id.index() + 1,
        name: rule.name().map(str::to_owned),
        kind: match rule.body() {
            Body::Formula(_) => RuleKind::Rule,
            Body::NoisyOr(_) => RuleKind::NoisyOr,
        },
        text: fixed.text.clone(),
        sentence: fixed.sentence.clone(),
        probability: rule.probability(),
        agreement,
        body_probability: agreement.and_then(|agreement| body_probability(rule.probability(), agreement)),
        agreement_range,
        conflict: excludes || agreement.is_some_and(|agreement| is_conflict(agreement, agreement_range)),
        possible_without: without.is_some(),
        largest_change: with.zip(without).map(|(with, without)| largest_change(with, without, 0..with.len())),
        influences: influences(model, [with, without], &scope),
    }
}

/// Whether an agreement is below the middle of its range. The tolerance is relative to the range.
fn is_conflict(agreement: f64, [least, most]: [f64; 2]) -> bool {
    agreement < 0.5 * (least + most) - ROUNDING * (most - least)
}

/// The smallest and the largest weight that a rule gives any assignment.
///
/// φ = p + (1 − 2p) Q is linear in Q. Q = ∏ q of a noisy-or is smallest if every label has its smallest q. A formula
/// with too many assignments for a complete table is assumed to be true for some and false for others.
pub(super) fn weight_range(model: &Model, rule: &Rule, scratch: &mut [usize]) -> [f64; 2] {
    let p = rule.probability();
    let silences = match rule.body() {
        Body::NoisyOr(noisy_or) => silence_range(model, noisy_or),
        Body::Formula(_) => {
            let table = Table::new(model, rule, scratch);
            let is_mixed = !table.complete || table.rows.windows(2).any(|pair| pair[0] != pair[1]);
            match table.rows.first() {
                Some(truth) if !is_mixed => [f64::from(u8::from(!truth.possible)); 2],
                _ => [0.0, 1.0],
            }
        }
    };
    let [a, b] = silences.map(|silence| p * (1.0 - silence) + (1.0 - p) * silence);
    [a.min(b), a.max(b)]
}

/// The smallest and the largest silence of a noisy-or.
fn silence_range(model: &Model, noisy_or: &NoisyOr) -> [f64; 2] {
    // For each label: the number of named categories, their smallest q and their largest q.
    let mut named: BTreeMap<LabelId, (usize, f64, f64)> = BTreeMap::new();
    for i in noisy_or.inhibitions() {
        let (n, least, most) = named.entry(i.label).or_insert((0, 1.0, 0.0));
        (*n, *least, *most) = (*n + 1, least.min(i.probability), most.max(i.probability));
    }
    let product = |[least, most]: [f64; 2], (label, (n, smallest, largest)): (LabelId, (usize, f64, f64))| {
        // Categories that are not named have q = 1.
        let largest = if n < model.label(label).n_categories() { 1.0 } else { largest };
        [least * smallest, most * largest]
    };
    named.into_iter().fold([1.0, 1.0], product)
}

pub(super) fn largest_change(with: &[f64], without: &[f64], range: std::ops::Range<usize>) -> f64 {
    range.map(|index| (with[index] - without[index]).abs()).fold(0.0, f64::max)
}

/// F from Zₖ = (1 − p) + (2p − 1) F; `None` near p = ½, where the division loses digits.
fn body_probability(probability: f64, agreement: f64) -> Option<f64> {
    let slope = 2.0 * probability - 1.0;
    (slope.abs() > 1e-6).then(|| ((agreement - (1.0 - probability)) / slope).clamp(0.0, 1.0))
}

/// ln p − ln(1 − p) of one category. 1 − p is the sum of the other probabilities, which keeps its digits if p is
/// close to 1.
fn log_odds(distribution: &[f64], index: usize) -> f64 {
    let others: f64 = (0..distribution.len()).filter(|&other| other != index).map(|o| distribution[o]).sum();
    distribution[index].ln() - others.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_decides_a_category_without_infinite_numbers() {
        let change = |without: [f64; 2], with: [f64; 2]| Change::new("c", 0, Some(&without), Some(&with));
        assert_eq!(change([0.5, 0.5], [1.0, 0.0]).became, Some(Became::Certain));
        assert_eq!(change([0.5, 0.5], [0.0, 1.0]).became, Some(Became::Impossible));
        assert_eq!(change([0.5, 0.5], [1.0, 0.0]).log_odds_change, None);
        assert_eq!(change([1.0, 0.0], [1.0, 0.0]).log_odds_change, Some(0.0));
        assert_eq!(change([0.0, 1.0], [0.0, 1.0]).became, None);
        assert_eq!(change([0.0, 1.0], [1e-300, 1.0]).log_odds_change, None);
        let near = change([0.5, 0.5], [1.0, 1e-300]).log_odds_change.unwrap();
        assert!((near - 300.0 * 10f64.ln()).abs() < 1e-9);
    }

    #[test]
    fn the_body_follows_from_the_agreement() {
        for p in [0.0, 0.2, 0.500_01, 0.9, 1.0] {
            for body in [0.0, 0.3, 0.5, 1.0] {
                let agreement: f64 = p * body + (1.0 - p) * (1.0 - body);
                assert!((body_probability(p, agreement).unwrap() - body).abs() < 1e-10);
            }
        }
        assert_eq!(body_probability(0.5, 0.5), None);
    }
}
