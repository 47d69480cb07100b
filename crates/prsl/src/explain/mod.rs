//! Explanations of answers: the posterior with and without each rule.
//!
//! [`Explainer::explain`] returns an [`Explanation`] of one instance:
//!
//! | part | content |
//! |---|---|
//! | [`LabelExplanation`] | the belief and the posterior of every category of a label |
//! | [`RuleExplanation`] | the agreement of a rule, whether it is in conflict, and its effect on each label |
//! | [`Influence`], [`Change`] | the posterior of a category with and without a rule |
//! | [`TypicalExplanation`] | the effect of all typical combinations together |
//! | [`NamedAssignment`] | the most probable assignment, and the second most probable one |
//!
//! Two more questions about an instance need only an engine for marginals:
//!
//! | method | answer |
//! |---|---|
//! | [`MarginalEngine::counterfactuals`] | [`Counterfactuals`]: what would change this answer, the smallest change of each label |
//! | [`MarginalEngine::information_gains`] | [`InformationGains`]: what should be asked next, in bits |
//!
//! The text form is for people, and `to_json` for programs.

mod assignment;
mod conditional;
mod counterfactual;
mod display;
mod information;
mod layout;
mod rules;

use std::cmp::Reverse;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use crate::belief::{BeliefMatrix, Instance, Row};
use crate::calibrator::Calibrator;
use crate::error::{Error, Result};
use crate::infer::engines::exact::{self, Exact};
use crate::infer::{AssignmentEngine, Cost, EngineChoice, Engines, Limits, Loopy, MarginalEngine};
use crate::label::LabelId;
use crate::model::Model;
use crate::posterior::Posterior;
use crate::rule::RuleId;
use crate::syntax::print;

pub use assignment::{Choice, NamedAssignment};
pub use counterfactual::{
    BeliefChange, CategoryBelief, Counterfactuals, LabelCounterfactual, ObservationChange, UnobservedChange,
};
pub use information::{InformationGain, InformationGains, PossibleAnswer};
pub use rules::{Became, Change, Influence, RuleExplanation, RuleKind};

use assignment::best_assignments;
use rules::{explain_rule, influences, largest_change, weight_range};

/// Minimum change of a probability that is reported. Smaller changes are invisible in three decimals.
pub(crate) const MOVED: f64 = 0.0005;

/// Differences up to this are treated as rounding errors.
const ROUNDING: f64 = 1e-9;

/// A compiled model that explains answers: for each instance, the effect of every rule.
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
    marginals: Marginals,
    /// The engine for most probable assignments, or the reason why there is none.
    joint: Result<AssignmentEngine, String>,
    /// What is the same for every row.
    rules: Vec<FixedRule>,
    /// The engine for marginals without typical combinations; `None` if there are none.
    without_typical: Option<MarginalEngine>,
}

/// The engine for marginals, with and without each rule.
enum Marginals {
    Exact(Exact),
    /// Approximate. The model without a rule is compiled for each rule and row.
    Loopy(Box<Loopy>),
}

impl fmt::Debug for Explainer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Explainer").field("cost", &self.cost()).finish_non_exhaustive()
    }
}

impl Explainer {
    /// Compiles within the default limits.
    pub fn compile(model: &Model) -> Result<Self> {
        Self::compile_within(model, Limits::default())
    }

    /// Compiles within these limits. Returns an error with the cost if it exceeds them.
    ///
    /// Marginals use a junction tree or a circuit, and most probable assignments the choice of [`AssignmentEngine`]. If the latter
    /// is too costly, explanations omit these assignments and give the reason in [`Explanation::joint_refused`].
    pub fn compile_within(model: &Model, limits: Limits) -> Result<Self> {
        Self::compile_with(&Engines::new(model).with_limits(limits).with_choice(EngineChoice::Exact))
    }

    /// Compiles by the choice of these engines. [`EngineChoice::Auto`] explains exactly if a junction tree or a circuit
    /// fits the limits and takes at most 2e9 multiply-adds per row and rule. Otherwise it uses loopy propagation, and the
    /// explanation says that it is approximate ([`Explanation::approximate`]). [`EngineChoice::Enumeration`] is the
    /// same as [`EngineChoice::Exact`].
    ///
    /// ```
    /// use prsl::infer::{EngineChoice, Engines};
    /// use prsl::{Evidence, Explainer, Model};
    ///
    /// let model = Model::parse("label weather: sun, rain\nlabel ground: dry, wet\nrule 0.95: wet <- rain")?;
    /// let explainer = Explainer::compile_with(&Engines::new(&model).with_choice(EngineChoice::Loopy))?;
    /// let explanation =
    ///     explainer.explain(&Evidence::new().belief("weather", [0.1, 0.9]).belief("ground", [0.7, 0.3]))?;
    /// assert!(explanation.approximate);
    /// let wet = &explanation.rules[0].influence("ground").unwrap().categories[1];
    /// assert_eq!(format!("{:.3} {:.3}", wet.without.unwrap(), wet.with.unwrap()), "0.300 0.744");
    /// # Ok::<(), prsl::Error>(())
    /// ```
    pub fn compile_with(engines: &Engines) -> Result<Self> {
        let model = engines.model();
        let marginals = match engines.choice() {
            EngineChoice::Loopy => Marginals::Loopy(engines.two_loopy()?),
            EngineChoice::Auto => match engines.affordable_exact()? {
                exact::Choice::Engine(engine, _) if engine.is_careful() => Marginals::Exact(engine),
                _ => Marginals::Loopy(engines.two_loopy()?),
            },
            EngineChoice::JunctionTree => Marginals::Exact(Exact::Tree(Arc::new(engines.tree()?))),
            EngineChoice::Circuit => Marginals::Exact(Exact::Circuit(engines.named_circuit()?)),
            EngineChoice::Exact | EngineChoice::Enumeration => Marginals::Exact(engines.require_exact()?.0),
        };
        if let Marginals::Exact(Exact::Tree(tree)) = &marginals {
            tree.careful()?;
        }
        let joint = match engines.assignments() {
            Ok(joint) => Ok(joint),
            Err(refused @ Error::TooCostly { .. }) => Err(refused.to_string()),
            Err(error) => return Err(error),
        };
        let names = model.names();
        let mut scratch = vec![0; model.labels().len()];
        let fixed = |id: RuleId| FixedRule {
            text: print::body(names, model.rule(id).body()),
            sentence: model.rule_sentence(id),
            agreement_range: weight_range(model, model.rule(id), &mut scratch),
        };
        let rules = model.rule_ids().map(fixed).collect();
        let without_typical = (!model.typical().is_empty())
            .then(|| engines.of(&model.without_typical()).marginals())
            .transpose()?;
        Ok(Self { marginals, joint, rules, without_typical })
    }

    /// The model that it was compiled from.
    pub fn model(&self) -> &Model {
        match &self.marginals {
            Marginals::Exact(engine) => engine.model(),
            Marginals::Loopy(loopy) => loopy.model(),
        }
    }

    /// The cost of the junction tree; `None` for other engines. Its plan runs once for the answer, and once for each rule
    /// that is left out.
    pub fn cost(&self) -> Option<Cost> {
        match &self.marginals {
            Marginals::Exact(Exact::Tree(tree)) => Some(tree.cost()),
            Marginals::Exact(Exact::Circuit(_)) | Marginals::Loopy(_) => None,
        }
    }

    /// Explains one instance, even if it is impossible. A row of a [`BeliefMatrix`] holds calibrated beliefs, so the raw ones
    /// are shown for an [`Evidence`](crate::Evidence) only; use [`Self::explain_raw`] for rows of raw beliefs.
    pub fn explain(&self, instance: &impl Instance) -> Result<Explanation> {
        let model = self.model();
        let raw = instance.raw_values(model)?;
        self.explain_row(&instance.values(model)?, raw.as_deref())
    }

    /// Explains a row of raw beliefs: a matrix for [`Model::without_calibrators`].
    ///
    /// ```
    /// use prsl::{BeliefMatrix, Evidence, Explainer, Model};
    ///
    /// let model = Model::parse("label alarm\ncalibrate alarm platt 2 0")?;
    /// let mut raw = BeliefMatrix::new(&model.without_calibrators());
    /// raw.push_evidence(&Evidence::new().belief("alarm", [0.8]))?;
    /// let explanation = Explainer::compile(&model)?.explain_raw(&raw, 0)?;
    /// let yes = &explanation.labels[0].categories[0];
    /// assert_eq!((yes.given, format!("{:.3}", yes.before)), (Some(0.8), "0.941".to_owned()));
    /// # Ok::<(), prsl::Error>(())
    /// ```
    pub fn explain_raw(&self, rows: &BeliefMatrix, row: usize) -> Result<Explanation> {
        let raw = rows.select(&[row]);
        let calibrated = raw.calibrated_by(self.model())?;
        self.explain_row(calibrated.values_of(0), Some(raw.values_of(0)))
    }

    fn explain_row(&self, row: &[f64], raw: Option<&[f64]>) -> Result<Explanation> {
        let model = self.model();
        let (answer, without) = match &self.marginals {
            Marginals::Exact(engine) => {
                (engine.infer_row_or_conflict(row), engine.without_each_rule_of(row)?)
            }
            Marginals::Loopy(loopy) => (loopy.infer_row_or_conflict(row), without_each_rule(loopy, row)),
        };
        let (posterior, conflict) = match answer {
            Ok(posterior) => (Some(posterior), Vec::new()),
            Err(conflict) => (None, conflict),
        };
        let agreement = posterior.as_ref().and_then(|_| match &self.marginals {
            Marginals::Exact(engine) => engine.agreement_of(row).ok(),
            Marginals::Loopy(loopy) => loopy.agreement_of(row).ok(),
        });
        let rule = |rule: RuleId| {
            let without = without[rule.index()].as_deref();
            let fixed = &self.rules[rule.index()];
            let with = posterior.as_ref().map(Posterior::marginals);
            let agreement = agreement.as_ref().map(|agreement| agreement[rule.index()]);
            explain_rule(model, rule, fixed, [with, without], agreement, conflict.contains(&rule))
        };
        let mut joint = match (&self.joint, &posterior) {
            (Ok(engine), Some(posterior)) => best_assignments(engine, row, posterior),
            _ => Vec::new(),
        }
        .into_iter();
        Ok(Explanation {
            approximate: matches!(self.marginals, Marginals::Loopy(_)),
            possible: posterior.is_some(),
            log_evidence: posterior.as_ref().map(Posterior::log_evidence),
            labels: model
                .label_ids()
                .map(|label| explain_label(model, row, raw, &posterior, label))
                .collect(),
            rules: model.rule_ids().map(rule).collect(),
            typical: self.explain_typical(row, posterior.as_ref()),
            best: joint.next(),
            runner_up: joint.next(),
            joint_refused: self.joint.as_ref().err().cloned(),
        })
    }
}

/// What is the same for every row about a rule.
struct FixedRule {
    text: String,
    sentence: String,
    agreement_range: [f64; 2],
}

impl Explainer {
    fn explain_typical(&self, row: &[f64], posterior: Option<&Posterior>) -> Option<TypicalExplanation> {
        let model = self.model();
        let engine = self.without_typical.as_ref()?;
        let without = engine.infer(&Row::of(engine.model(), row)).ok();
        let (with, without) =
            (posterior.map(Posterior::marginals), without.as_ref().map(Posterior::marginals));
        let mut influences = influences(model, [with, without], &HashSet::new());
        influences.iter_mut().for_each(|influence| influence.mentioned = true); // they are about all labels
        let largest_change =
            with.zip(without).map(|(with, without)| largest_change(with, without, 0..with.len()));
        Some(TypicalExplanation { n: model.typical().len(), largest_change, influences })
    }
}

/// The reasons for the answer to one instance: its posterior with and without each rule.
///
/// Fields contain names instead of ids and can be serialized. No number is infinite or NaN. The text form
/// ([`Display`](std::fmt::Display)) shows the largest changes first.
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
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct Explanation {
    /// Whether loopy propagation answered: probabilities, agreements and ln Z are approximate then.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub approximate: bool,
    /// Whether rules and evidence allow any assignment. If not, there is no posterior, and
    /// [`RuleExplanation::conflict`] marks the rules in conflict.
    pub possible: bool,
    /// ln Z: the log probability that all rules hold, given the beliefs; `None` if no assignment is possible.
    pub log_evidence: Option<f64>,
    /// Every label, in the model's order.
    pub labels: Vec<LabelExplanation>,
    /// Every rule, in the model's order.
    pub rules: Vec<RuleExplanation>,
    /// The effect of all typical combinations together; `None` if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub typical: Option<TypicalExplanation>,
    /// The most probable assignment. Ties are broken arbitrarily, but always in the same way.
    pub best: Option<NamedAssignment>,
    /// The second most probable assignment; `None` if no other is possible.
    pub runner_up: Option<NamedAssignment>,
    /// The reason why most probable assignments are missing, if they are too costly for this model.
    pub joint_refused: Option<String>,
}

/// The effect of all typical combinations together.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct TypicalExplanation {
    /// Number of combinations.
    pub n: usize,
    /// The largest change of any category's probability.
    pub largest_change: Option<f64>,
    /// The effect on every label that they change by 0.0005 or more.
    pub influences: Vec<Influence>,
}

/// One label before and after the rules.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct LabelExplanation {
    /// Its name.
    pub name: String,
    /// The classifier whose belief it is; `None` for a latent label.
    pub classifier: Option<String>,
    /// Every category, in order.
    pub categories: Vec<CategoryExplanation>,
}

/// One category before and after the rules.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct CategoryExplanation {
    /// Its name.
    pub name: String,
    /// The belief as the classifier gave it, if it is known, and if the label has a calibrator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub given: Option<f64>,
    /// The belief that the rules start from: the classifier's after calibration, the observation, or the prior.
    pub before: f64,
    /// The posterior; `None` if no assignment is possible.
    pub after: Option<f64>,
}

impl Explanation {
    /// The explanation of the label called `name`.
    pub fn label(&self, name: &str) -> Option<&LabelExplanation> {
        self.labels.iter().find(|label| label.name == name)
    }

    /// The rules in conflict with the evidence and all other rules. If no assignment is possible, the rules that
    /// exclude all of them.
    pub fn conflicts(&self) -> impl Iterator<Item = &RuleExplanation> {
        self.rules.iter().filter(|rule| rule.conflict)
    }

    /// The rules by decreasing largest change; ties in the model's order.
    pub fn most_influential(&self) -> Vec<&RuleExplanation> {
        let mut rules: Vec<&RuleExplanation> = self.rules.iter().collect();
        rules.sort_by_key(|rule| Reverse(size(rule.largest_change.unwrap_or(0.0))));
        rules
    }

    /// The same explanation with the effects on one label only.
    ///
    /// ```
    /// use prsl::{Evidence, Explainer, Model};
    ///
    /// let model = Model::parse("label a\nlabel b\nrule 0.9: a -> b")?;
    /// let explanation = Explainer::compile(&model)?.explain(&Evidence::new().belief("a", [0.8]))?.about("b");
    /// assert!(explanation.rules[0].influence("a").is_none() && explanation.rules[0].influence("b").is_some());
    /// # Ok::<(), prsl::Error>(())
    /// ```
    pub fn about(mut self, label: &str) -> Self {
        let rules = self.rules.iter_mut().map(|rule| &mut rule.influences);
        let typical = self.typical.iter_mut().map(|typical| &mut typical.influences);
        rules.chain(typical).for_each(|influences| influences.retain(|influence| influence.label == label));
        self
    }

    /// The choices in which the runner-up differs from the best assignment.
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
    /// Whether a calibrator changed the belief that was given.
    pub fn is_calibrated(&self) -> bool {
        self.categories.iter().any(|category| category.given.is_some_and(|given| given != category.before))
    }

    /// The largest change of any of its categories.
    pub fn largest_change(&self) -> Option<f64> {
        let changes = self.categories.iter().map(|category| Some((category.after? - category.before).abs()));
        changes.collect::<Option<Vec<f64>>>().map(|changes| changes.into_iter().fold(0.0, f64::max))
    }
}

/// The marginals without each rule, by loopy propagation on the model without it; `None` if even that leaves nothing
/// possible.
fn without_each_rule(loopy: &Loopy, row: &[f64]) -> Vec<Option<Vec<f64>>> {
    let without = |rule: RuleId| {
        let model = loopy.model().edit().retain_rules(|other| other != rule).build();
        let model = model.expect("a model without one of its rules is valid");
        let loopy =
            Loopy::compile_with(&model, loopy.settings()).expect("the settings are those of the model");
        loopy.infer_row_or_conflict(row).ok().map(|posterior| posterior.marginals().to_vec())
    };
    // One after the other: only one of these engines is in memory at a time.
    loopy.model().rule_ids().map(without).collect()
}

fn explain_label(
    model: &Model,
    row: &[f64],
    raw: Option<&[f64]>,
    posterior: &Option<Posterior>,
    id: LabelId,
) -> LabelExplanation {
    let label = model.label(id);
    let before = &row[model.block(id)];
    let is_calibrated = *model.calibrator(id) != Calibrator::Identity;
    let given = raw.filter(|_| is_calibrated).map(|raw| &raw[model.block(id)]);
    let after = posterior.as_ref().map(|posterior| posterior.marginal(id));
    let category = |(index, name): (usize, &String)| CategoryExplanation {
        name: name.clone(),
        given: given.map(|given| given[index]),
        before: before[index],
        after: after.map(|after| after[index]),
    };
    LabelExplanation {
        name: label.name().to_owned(),
        classifier: label.classifier().map(|classifier| classifier.name().to_owned()),
        categories: label.categories().iter().enumerate().map(category).collect(),
    }
}

/// A change as a sort key. Changes that differ only by rounding are equal.
fn size(change: f64) -> u64 {
    (change.abs() / ROUNDING).round() as u64
}
