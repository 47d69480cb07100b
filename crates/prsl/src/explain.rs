//! Why the answer is what it is: which rule moved which category, from what to what.

mod display;

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};

use serde::Serialize;

use crate::belief::{BeliefMatrix, Normalize};
use crate::error::{Error, Result};
use crate::evidence::Evidence;
use crate::infer::{Cost, ExplanationEngine, JunctionTree, Limits, SearchLimits};
use crate::label::LabelId;
use crate::lint::Table;
use crate::model::Model;
use crate::names::Names;
use crate::noisy_or::NoisyOr;
use crate::posterior::{MostProbable, Posterior};
use crate::rule::{Body, Rule, RuleId};
use crate::text::print;

/// A change of probability below this is not worth a line: it does not show in three decimals.
pub const MOVED: f64 = 0.0005;

/// Differences up to this may be nothing but rounding.
const ROUNDING: f64 = 1e-9;

/// Explains answers: a compiled model that tells for each instance what every rule did to it.
///
/// ```
/// use prsl::{Evidence, Explainer, Model};
///
/// let model = Model::parse("label weather: sun, rain\nlabel ground: dry, wet\nrule 0.95: wet <- rain")?;
/// let explainer = Explainer::compile(&model)?;
/// let explanation =
///     explainer.explain(&Evidence::new().belief("weather", [0.1, 0.9]).belief("ground", [0.7, 0.3]))?;
/// let rule = &explanation.rules[0];
/// assert!(rule.conflict); // a wet ground is improbable, and rain is not
/// let wet = &rule.influence("ground").unwrap().categories[1];
/// assert_eq!(format!("{:.3} {:.3}", wet.without.unwrap(), wet.with.unwrap()), "0.300 0.744");
/// # Ok::<(), prsl::Error>(())
/// ```
pub struct Explainer {
    tree: JunctionTree,
    /// Whoever finds joint explanations, or why nobody does.
    joint: Result<ExplanationEngine, String>,
    /// What each rule says, and the range of its weights: the same for every row.
    rules: Vec<(String, [f64; 2])>,
}

impl Explainer {
    /// Compiles within the default limits.
    pub fn compile(model: &Model) -> Result<Self> {
        Self::compile_within(model, Limits::default())
    }

    /// Compiles, or says what it would take if that is more than the limits allow.
    ///
    /// Marginals take a plan; joint explanations are found by whatever [`ExplanationEngine`] chooses. Where even that is
    /// too costly, explanations go without them and say so in [`Explanation::joint_refused`].
    pub fn compile_within(model: &Model, limits: Limits) -> Result<Self> {
        let tree = JunctionTree::compile_within(model, limits)?;
        let joint = match ExplanationEngine::compile(model, limits, SearchLimits::default()) {
            Ok(joint) => Ok(joint),
            Err(refused @ Error::TooCostly { .. }) => Err(refused.to_string()),
            Err(error) => return Err(error),
        };
        tree.careful()?;
        let names = Names::new(model.labels());
        let mut scratch = vec![0; model.labels().len()];
        let fixed = |rule: &Rule| (print::body(&names, rule.body()), weight_range(model, rule, &mut scratch));
        let rules = model.rules().iter().map(fixed).collect();
        Ok(Self { tree, joint, rules })
    }

    /// The model it was compiled from.
    pub fn model(&self) -> &Model {
        self.tree.model()
    }

    /// What the plan for the marginals takes; it runs once for the answer, and once for each rule left out.
    pub fn cost(&self) -> Cost {
        self.tree.cost()
    }

    /// Explains one instance; an impossible one too.
    pub fn explain(&self, evidence: &Evidence) -> Result<Explanation> {
        Ok(self.explain_checked(&self.model().row(evidence)?))
    }

    /// Explains a row of completed beliefs; an impossible one too.
    pub fn explain_row(&self, row: &[f64]) -> Result<Explanation> {
        self.check(row)?;
        Ok(self.explain_checked(row))
    }

    /// A number for each category, and a distribution for each label.
    fn check(&self, row: &[f64]) -> Result<()> {
        let model = self.model();
        if row.len() != model.n_categories() {
            // The first label that gets too few, or the last, which gets too many.
            let short = model.label_ids().find(|&label| model.block(label).end > row.len());
            if let Some(id) = short.or(model.label_ids().last()) {
                let (label, block) = (model.label(id).name().to_owned(), model.block(id));
                let given = row.len().saturating_sub(block.start);
                return Err(Error::Length { what: "belief", label, given, wanted: block.len() });
            }
            return Ok(()); // no labels at all: nothing to read
        }
        let cells: Vec<Option<f64>> = row.iter().copied().map(Some).collect();
        BeliefMatrix::new(model).push(&cells, Normalize::Never)
    }

    fn explain_checked(&self, row: &[f64]) -> Explanation {
        let model = self.model();
        let (posterior, conflict) = match self.tree.infer_row_or_conflict(row) {
            Ok(posterior) => (Some(posterior), Vec::new()),
            Err(conflict) => (None, conflict),
        };
        let without = self.tree.without_each_rule(row).expect("it was compiled to be careful");
        let rule = |rule: RuleId| {
            let without = without[rule.index()].as_deref();
            let fixed = &self.rules[rule.index()];
            explain_rule(model, rule, fixed, posterior.as_ref(), without, conflict.contains(&rule))
        };
        let mut joint = match (&self.joint, &posterior) {
            (Ok(engine), Some(posterior)) => joint_explanations(engine, row, posterior),
            _ => Vec::new(),
        }
        .into_iter();
        Explanation {
            possible: posterior.is_some(),
            log_evidence: posterior.as_ref().map(Posterior::log_evidence),
            labels: model.label_ids().map(|label| explain_label(model, row, &posterior, label)).collect(),
            rules: model.rule_ids().map(rule).collect(),
            best: joint.next(),
            runner_up: joint.next(),
            joint_refused: self.joint.as_ref().err().cloned(),
        }
    }
}

/// Why one instance got its answer: everything that is said of it, with and without each rule.
///
/// All fields have names in place of ids and serialize as they are; no number is infinite or NaN. The text form
/// ([`Display`](std::fmt::Display)) is for people: it begins with what moved most.
///
/// ```
/// use prsl::{Evidence, Explainer, Model};
///
/// let model = Model::parse("label a\nlabel b\nrule 1: a -> b\nrule 1 never: !(a & b)")?;
/// let explanation = Explainer::compile(&model)?.explain(&Evidence::new().observe("a", "yes"))?;
/// assert!(!explanation.possible);
/// let excluded: Vec<usize> = explanation.conflicts().map(|rule| rule.number).collect();
/// assert_eq!(excluded, [1, 2]);
/// # Ok::<(), prsl::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Explanation {
    /// Whether rules and evidence leave anything possible. If not, nothing is known after the rules: the
    /// conflicting rules are those with [`RuleExplanation::conflict`].
    pub possible: bool,
    /// ln Z: how probable it is, given the beliefs, that all rules hold; `None` if nothing is possible.
    pub log_evidence: Option<f64>,
    /// Every label, in the model's order.
    pub labels: Vec<LabelExplanation>,
    /// Every rule, in the model's order.
    pub rules: Vec<RuleExplanation>,
    /// The most probable joint explanation; of several equally probable ones, one of them.
    pub best: Option<JointExplanation>,
    /// The second most probable joint explanation, `None` if no other is possible.
    pub runner_up: Option<JointExplanation>,
    /// Why there are no joint explanations, if they are too costly for this model.
    pub joint_refused: Option<String>,
}

/// What the evidence and the rules say about one label.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct LabelExplanation {
    /// Its name.
    pub name: String,
    /// Whose belief it is; `None` for a latent label.
    pub classifier: Option<String>,
    /// Every category, in order.
    pub categories: Vec<CategoryExplanation>,
}

/// One category before and after the rules.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CategoryExplanation {
    /// Its name.
    pub name: String,
    /// The belief: the classifier's, the observation, or the prior.
    pub before: f64,
    /// The posterior, `None` if nothing is possible.
    pub after: Option<f64>,
}

/// What kind of rule it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RuleKind {
    /// A formula.
    Rule,
    /// A noisy-or.
    NoisyOr,
}

/// What one rule did.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RuleExplanation {
    /// Its number, from 1.
    pub number: usize,
    /// Its name, if it has one.
    pub name: Option<String>,
    /// A formula or a noisy-or.
    pub kind: RuleKind,
    /// What it says, as in a model file.
    pub text: String,
    /// The probability p that it holds.
    pub probability: f64,
    /// Zₖ = P(rule holds | all other rules hold, evidence); `None` if nothing is possible.
    pub agreement: Option<f64>,
    /// F: how probable all else makes it that the formula is true (that the noisy-or fires).
    ///
    /// `None` if nothing is possible, and for a probability of ½, where the rule does not care.
    pub body_probability: Option<f64>,
    /// The least and the most that the agreement can be, whatever all else says: the smallest and the largest weight φ that the rule
    /// gives any assignment. For a formula these are p and 1 − p, unless it is always true or never.
    pub agreement_range: [f64; 2],
    /// Whether everything else speaks against the rule: it agrees less than halfway between the least and the most that it can.
    ///
    /// For a formula the threshold is ½. A rule of probability p asks for the body if p > ½, and for its opposite if p < ½. With
    /// F the probability of the body given all else,
    ///
    /// ```text
    /// Zₖ = p F + (1 − p)(1 − F) = ½ + 2 (p − ½)(F − ½)
    /// ```
    ///
    /// so all else finds what the rule asks for improbable (F < ½ for p > ½, F > ½ for p < ½) exactly where
    /// Zₖ < ½, for soft and hard rules alike. A noisy-or stays silent now and then though all its causes are present, so that
    /// the most it can reach may be far below ½. A rule of probability ½ never conflicts.
    /// If nothing is possible, it tells the members of a smallest set of rules that together exclude everything.
    pub conflict: bool,
    /// Whether anything is possible without this rule: always, if anything is possible with it.
    pub possible_without: bool,
    /// The largest change of any category's probability, wherever in the model.
    pub largest_change: Option<f64>,
    /// What it does to every label that it mentions, and to the others that it moves by [`MOVED`] or more.
    pub influences: Vec<Influence>,
}

/// What a rule does to one label.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Influence {
    /// The label.
    pub label: String,
    /// Whether the rule mentions it; if not, it was moved by way of other rules.
    pub mentioned: bool,
    /// Every category, in order.
    pub categories: Vec<Change>,
}

/// One category's posterior with and without a rule.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Change {
    /// The category.
    pub category: String,
    /// Its probability without the rule, `None` if nothing is possible without it.
    pub without: Option<f64>,
    /// Its probability with all rules, `None` if nothing is possible.
    pub with: Option<f64>,
    /// `with` − `without`.
    pub change: Option<f64>,
    /// The difference of the log-odds; `None` if it is infinite: see `became`. (Both are `None` in the rare case
    /// that the probability without the rule is too small for a number, and the one with it is not.)
    pub log_odds_change: Option<f64>,
    /// What the rule settled, if it did.
    pub became: Option<Became>,
}

/// A category that a rule put beyond doubt, as far as floating-point numbers can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Became {
    /// No other category is left.
    Certain,
    /// This category is excluded.
    Impossible,
}

/// One category for every label, and how probable they are together.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct JointExplanation {
    /// P(these categories | rules, evidence).
    pub probability: f64,
    /// ln of the product of its beliefs and rule weights, and of 1 + its weight as a typical combination.
    pub log_weight: f64,
    /// Whether it is proven that nothing else (but the best one, for the runner-up) is more probable.
    pub proven: bool,
    /// The weight of the typical combination that it is, if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub typical: Option<f64>,
    /// The category of every label, in the model's order.
    pub choices: Vec<Choice>,
}

/// The category of one label.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Choice {
    /// The label.
    pub label: String,
    /// Its category.
    pub category: String,
}

impl Explanation {
    /// What is said about the label called `name`.
    pub fn label(&self, name: &str) -> Option<&LabelExplanation> {
        self.labels.iter().find(|label| label.name == name)
    }

    /// The rules that everything else speaks against; if nothing is possible, those that exclude everything.
    pub fn conflicts(&self) -> impl Iterator<Item = &RuleExplanation> {
        self.rules.iter().filter(|rule| rule.conflict)
    }

    /// The rules, the one that moved anything most first; among equals in the model's order.
    pub fn most_influential(&self) -> Vec<&RuleExplanation> {
        let mut rules: Vec<&RuleExplanation> = self.rules.iter().collect();
        rules.sort_by_key(|rule| Reverse(size(rule.largest_change.unwrap_or(0.0))));
        rules
    }

    /// The choices of the runner-up that are not those of the best explanation.
    pub fn runner_up_differences(&self) -> Vec<&Choice> {
        let (Some(best), Some(runner_up)) = (&self.best, &self.runner_up) else { return Vec::new() };
        let both = runner_up.choices.iter().zip(&best.choices);
        both.filter(|(runner_up, best)| runner_up != best).map(|(runner_up, _)| runner_up).collect()
    }

    /// The explanation as JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("writing to memory does not fail")
    }
}

impl LabelExplanation {
    /// The largest change of any of its categories.
    pub fn largest_change(&self) -> Option<f64> {
        let changes = self.categories.iter().map(|category| Some((category.after? - category.before).abs()));
        changes.collect::<Option<Vec<f64>>>().map(|changes| changes.into_iter().fold(0.0, f64::max))
    }
}

impl RuleExplanation {
    /// What it does to the label called `label`; `None` if it neither mentions nor moves it.
    pub fn influence(&self, label: &str) -> Option<&Influence> {
        self.influences.iter().find(|influence| influence.label == label)
    }
}

impl Influence {
    /// The category that changed most; of two that changed equally, the one that gained.
    pub fn largest(&self) -> Option<&Change> {
        let changed = |change: &&Change| change.change.is_some();
        let size =
            |change: &Change| change.change.map_or(0.0, |d| d.abs() + if d > 0.0 { ROUNDING } else { 0.0 });
        self.categories.iter().rev().filter(changed).max_by(|a, b| size(a).total_cmp(&size(b)))
    }
}

impl Change {
    /// From the probabilities of a label's categories without and with a rule.
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

impl JointExplanation {
    fn new(model: &Model, found: MostProbable, log_evidence: f64) -> Self {
        let choice = |(label, &category): (&crate::Label, &usize)| Choice {
            label: label.name().to_owned(),
            category: label.categories()[category].clone(),
        };
        Self {
            probability: (found.log_weight - log_evidence).exp().min(1.0),
            log_weight: found.log_weight,
            proven: found.is_optimal(),
            typical: model.find_typical(&found.assignment).map(|place| model.typical()[place].weight()),
            choices: model.labels().iter().zip(&found.assignment).map(choice).collect(),
        }
    }
}

/// The best and the second best. A search that is stopped before it has found anything possible has none.
fn joint_explanations(
    engine: &ExplanationEngine,
    row: &[f64],
    posterior: &Posterior,
) -> Vec<JointExplanation> {
    let found = engine.top(row, 2).into_iter().filter(|found| found.log_weight.is_finite());
    found.map(|found| JointExplanation::new(engine.model(), found, posterior.log_evidence)).collect()
}

fn explain_label(model: &Model, row: &[f64], posterior: &Option<Posterior>, id: LabelId) -> LabelExplanation {
    let label = model.label(id);
    let before = &row[model.block(id)];
    let after = posterior.as_ref().map(|posterior| posterior.marginal(id));
    let category = |(index, name): (usize, &String)| CategoryExplanation {
        name: name.clone(),
        before: before[index],
        after: after.map(|after| after[index]),
    };
    LabelExplanation {
        name: label.name().to_owned(),
        classifier: label.classifier().map(|classifier| classifier.name().to_owned()),
        categories: label.categories().iter().enumerate().map(category).collect(),
    }
}

fn explain_rule(
    model: &Model,
    id: RuleId,
    (text, agreement_range): &(String, [f64; 2]),
    posterior: Option<&Posterior>,
    without: Option<&[f64]>,
    excludes: bool,
) -> RuleExplanation {
    let rule = model.rule(id);
    let scope: HashSet<LabelId> = rule.scope().into_iter().collect();
    let with = posterior.map(Posterior::marginals);
    let agreement = posterior.map(|posterior| posterior.agreement(id));
    let change = |label: LabelId| Some(largest_change(with?, without?, model.block(label)));
    let influences = model
        .label_ids()
        .filter(|&label| scope.contains(&label) || change(label).is_some_and(|change| change >= MOVED))
        .map(|label| {
            let block = || model.block(label);
            let categories = model.label(label).categories().iter().enumerate();
            Influence {
                label: model.label(label).name().to_owned(),
                mentioned: scope.contains(&label),
                categories: categories
                    .map(|(index, category)| {
                        Change::new(category, index, without.map(|w| &w[block()]), with.map(|w| &w[block()]))
                    })
                    .collect(),
            }
        })
        .collect();
    RuleExplanation {
        number: id.index() + 1,
        name: rule.name().map(str::to_owned),
        kind: match rule.body() {
            Body::Formula(_) => RuleKind::Rule,
            Body::NoisyOr(_) => RuleKind::NoisyOr,
        },
        text: text.clone(),
        probability: rule.probability(),
        agreement,
        body_probability: agreement.and_then(|agreement| body_probability(rule.probability(), agreement)),
        agreement_range: *agreement_range,
        conflict: excludes || agreement.is_some_and(|agreement| is_conflict(agreement, *agreement_range)),
        possible_without: without.is_some(),
        largest_change: with.zip(without).map(|(with, without)| largest_change(with, without, 0..with.len())),
        influences,
    }
}

/// Whether an agreement is nearer to the least than to the most that it can be; the distance is in parts of that range.
fn is_conflict(agreement: f64, [least, most]: [f64; 2]) -> bool {
    agreement < 0.5 * (least + most) - ROUNDING * (most - least)
}

/// The smallest and the largest weight that a rule gives any assignment.
///
/// φ = p + (1 − 2p) Q is linear in Q, and Q = ∏ q of a noisy-or is smallest where every label has its smallest q. A formula whose
/// labels have too many assignments to try them all is taken to be true for some and false for others.
fn weight_range(model: &Model, rule: &Rule, scratch: &mut [usize]) -> [f64; 2] {
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

/// The smallest and the largest probability that a noisy-or stays silent.
fn silence_range(model: &Model, noisy_or: &NoisyOr) -> [f64; 2] {
    // For each label how many categories are named, the smallest and the largest q of them.
    let mut named: BTreeMap<LabelId, (usize, f64, f64)> = BTreeMap::new();
    for i in noisy_or.inhibitions() {
        let (n, least, most) = named.entry(i.label).or_insert((0, 1.0, 0.0));
        (*n, *least, *most) = (*n + 1, least.min(i.probability), most.max(i.probability));
    }
    let product = |[least, most]: [f64; 2], (label, (n, smallest, largest)): (LabelId, (usize, f64, f64))| {
        // Categories that are not named never fire.
        let largest = if n < model.label(label).n_categories() { 1.0 } else { largest };
        [least * smallest, most * largest]
    };
    named.into_iter().fold([1.0, 1.0], product)
}

/// How large a change is, for sorting: what differs by rounding alone is equal.
fn size(change: f64) -> u64 {
    (change.abs() / ROUNDING).round() as u64
}

fn largest_change(with: &[f64], without: &[f64], range: std::ops::Range<usize>) -> f64 {
    range.map(|index| (with[index] - without[index]).abs()).fold(0.0, f64::max)
}

/// F from Zₖ = (1 − p) + (2p − 1) F, where that keeps digits.
fn body_probability(probability: f64, agreement: f64) -> Option<f64> {
    let slope = 2.0 * probability - 1.0;
    (slope.abs() > 1e-6).then(|| ((agreement - (1.0 - probability)) / slope).clamp(0.0, 1.0))
}

/// ln p − ln(1 − p) of one category, with 1 − p as the sum of the others: near 1 that keeps its digits.
fn log_odds(distribution: &[f64], index: usize) -> f64 {
    let others: f64 = (0..distribution.len()).filter(|&other| other != index).map(|o| distribution[o]).sum();
    distribution[index].ln() - others.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_settles_a_category_without_infinite_numbers() {
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
