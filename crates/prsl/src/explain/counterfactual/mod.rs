//! Counterfactuals: the smallest change of one label that makes a category the most probable one.

mod display;
mod search;
mod weights;

use serde::Serialize;

use super::conditional::{categories_of, observe_each};
use super::size;
use crate::belief::{BeliefMatrix, BeliefOrigin, Instance};
use crate::error::{Error, Result};
use crate::infer::{MarginalEngine, Stopped};
use crate::label::{CategoryId, LabelId};
use crate::notation::numbered;
use search::Search;
use weights::{Weights, exceeds};

/// The changes of one label alone that make a target category the most probable one of its label, the smallest first.
///
/// # Derivation
///
/// Let t be the target category of label T, and π the belief about another label X. With the belief left out, let W(c,
/// m) be the total weight of all assignments with X = c and T = m: beliefs about other labels, rules and typical
/// combinations. Then
///
/// ```text
/// P(T = m | x) = N(m) / Z,    N(m) = Σ_c π(c) W(c, m),    Z = Σ_m N(m)                             (1)
/// W(c, m) = Z(X = c) P(T = m | x, X = c)                                                           (2)
/// ```
///
/// So one inference per category of X, with that category observed, gives all W. The target is the most probable
/// category if N(t) > N(m) for all m ≠ t. Along a line of beliefs, both sides are linear, and each rival m allows an
/// interval of the line. The smallest change is the nearest end of their intersection:
///
/// ```text
/// π(s) = s [c] + (1 − s) ρ,   ρ = π(0) without c, divided by its sum                               (3)
/// g(s) = N(t) − N(m) = (1 − s) g(0) + s g(1) > 0                                                   (4)
/// ```
///
/// Each category c of X has such a line, on which the other categories keep their proportions. For two categories, the line
/// is the set of all beliefs. The change is measured by its total variation, |s − π(c)|. Equal numbers are ties: at the threshold
/// itself, the target is as probable as a rival. Checked in `thresholds_are_where_enumeration_changes_its_answer`.
///
/// # Choices
///
/// - A belief of a classifier changes along the lines. So does the prior of a label that has a classifier, because the
///   classifier could give a belief. A category with belief 1 of three or more only falls if another one rises.
/// - A latent label can only be observed.
/// - An observed label can be observed otherwise, or not be observed: then its belief is its prior.
/// - Beliefs of classifiers are calibrated before the rules apply. Distances are those of calibrated beliefs, which are comparable
///   between labels. [`BeliefChange::needed_given`] is the raw belief, if the calibrator has an inverse.
/// - If the row is impossible, the changes are those that make it possible, with the target as the most probable category.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct Counterfactuals {
    /// Whether an answer is approximate: by loopy propagation, or with lost digits.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub approximate: bool,
    /// Whether rules and evidence allow any assignment.
    pub possible: bool,
    /// The label.
    pub label: String,
    /// The target category.
    pub target: String,
    /// Its posterior probability; `None` if no assignment is possible.
    pub probability: Option<f64>,
    /// The most probable of the label's other categories.
    pub rival: Option<String>,
    /// The posterior probability of the rival.
    pub rival_probability: Option<f64>,
    /// Whether the target is the most probable category already. Then there are no changes. A tie does not count.
    pub already: bool,
    /// Every other label that can change the answer alone, by increasing distance; ties in the model's order.
    pub changes: Vec<LabelCounterfactual>,
    /// The smallest change of the label's own belief in the target, if the belief can change.
    pub own: Option<LabelCounterfactual>,
    /// The other labels, which cannot change the answer alone.
    pub unable: Vec<String>,
}

/// The changes of one label that make the target the most probable category. Each of them suffices alone.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct LabelCounterfactual {
    /// The label to change.
    pub label: String,
    /// The origin of its belief now.
    pub origin: BeliefOrigin,
    /// The observed category, if it is observed now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed: Option<String>,
    /// The smallest distance of the changes below: total variation between the belief now and the changed belief.
    pub distance: f64,
    /// The smallest change of its belief, if any suffices.
    pub belief: Option<BeliefChange>,
    /// The categories that suffice if they are observed, by decreasing belief.
    pub observations: Vec<ObservationChange>,
    /// The result if the label were not observed, if that suffices.
    pub unobserved: Option<UnobservedChange>,
}

/// A change of a label's belief. The belief in one category moves, and all others keep their proportions.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct BeliefChange {
    /// The category whose belief moves.
    pub category: String,
    /// Its belief now, after calibration.
    pub before: f64,
    /// The threshold of its calibrated belief. Beyond it, in the direction of the change, the target is the most probable
    /// category.
    pub needed: f64,
    /// The target is the most probable category strictly between these two calibrated beliefs. One of them is `needed`,
    /// unless calibration keeps beliefs away from it. They are equal if only certainty suffices in floating-point numbers.
    pub range: [f64; 2],
    /// The total variation between the two beliefs, |needed − before|.
    pub distance: f64,
    /// Whether a calibrator applies to classifiers' beliefs about this label.
    pub calibrated: bool,
    /// The raw belief in the category now, if it is known, and if the label has a calibrator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub given: Option<f64>,
    /// The raw belief at the threshold, if the label has a calibrator and its inverse is known. All calibrators of two
    /// categories have one if they are monotone. Of those for more categories, only a temperature has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub needed_given: Option<f64>,
    /// The whole belief at the threshold, for every category in order. It is raw if `needed_given` is known, and
    /// calibrated otherwise.
    pub belief: Vec<CategoryBelief>,
}

/// The belief in one category.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct CategoryBelief {
    /// The category.
    pub category: String,
    /// The belief in it.
    pub belief: f64,
}

/// An observation that makes the target the most probable category.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct ObservationChange {
    /// The category to observe.
    pub category: String,
    /// The total variation between the belief now and the observation.
    pub distance: f64,
    /// The posterior probability of the category now; `None` if no assignment is possible.
    pub chance: Option<f64>,
    /// The probability of the target after the observation.
    pub probability: f64,
}

/// The result of not observing an observed label.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct UnobservedChange {
    /// The total variation between the observation and the prior.
    pub distance: f64,
    /// The probability of the target with the prior in place of the observation.
    pub probability: f64,
}

impl MarginalEngine {
    /// The changes of one label alone that make `target` the most probable category of `label`: what would change this
    /// answer. See [`Counterfactuals`] for their definition.
    ///
    /// A [`Row`](crate::Row) holds calibrated beliefs, so the raw beliefs now are known for an
    /// [`Evidence`](crate::Evidence) only. Use [`Self::counterfactuals_raw`] for rows of raw beliefs.
    ///
    /// ```
    /// use prsl::{Engines, Evidence, Model};
    ///
    /// let model = Model::parse("label weather: sun, rain\nlabel ground: dry, wet\nrule 0.95: wet <- rain")?;
    /// let engine = Engines::new(&model).marginals()?;
    /// let evidence = Evidence::new().belief("weather", [0.1, 0.9]).belief("ground", [0.7, 0.3]);
    /// let weather = model.find_label("weather")?;
    /// let found = engine.counterfactuals(&evidence, weather, model.find_category(weather, "sun")?)?;
    /// assert!(!found.already);
    /// let ground = found.changes[0].belief.as_ref().unwrap();
    /// assert_eq!(format!("{} {:.3}", ground.category, ground.needed), "dry 0.938");
    ///
    /// // Beyond the threshold the answer changes.
    /// let posterior = engine.infer(&Evidence::new().belief("weather", [0.1, 0.9]).belief("ground", [0.94, 0.06]))?;
    /// assert!(posterior.marginal(weather)[0] > 0.5);
    /// # Ok::<(), prsl::Error>(())
    /// ```
    pub fn counterfactuals(
        &self,
        instance: &impl Instance,
        label: LabelId,
        target: CategoryId,
    ) -> Result<Counterfactuals> {
        let row = instance.matrix(self.model())?;
        self.counterfactuals_of(&row, instance.raw_values(self.model())?.as_deref(), label, target)
    }

    /// The same for a row of raw beliefs: a matrix for [`Model::without_calibrators`](crate::Model::without_calibrators).
    ///
    /// ```
    /// use prsl::{BeliefMatrix, Engines, Evidence, Model};
    ///
    /// let model = Model::parse("label alarm\ncalibrate alarm platt 1 -1\nlabel fire\nrule 0.9: alarm <-> fire")?;
    /// let mut raw = BeliefMatrix::new(&model.without_calibrators());
    /// raw.push_evidence(&Evidence::new().belief("alarm", [0.5]))?;
    /// let fire = model.find_label("fire")?;
    /// let yes = model.find_category(fire, "yes")?;
    /// let found = Engines::new(&model).marginals()?.counterfactuals_raw(&raw, 0, fire, yes)?;
    /// let alarm = found.changes[0].belief.as_ref().unwrap();
    /// assert_eq!((alarm.given, format!("{:.3} {:.3}", alarm.before, alarm.needed)), (Some(0.5), "0.269 0.500".to_owned()));
    /// assert!((alarm.needed_given.unwrap() - 0.731).abs() < 5e-4); // calibrated, it is one half
    /// # Ok::<(), prsl::Error>(())
    /// ```
    pub fn counterfactuals_raw(
        &self,
        rows: &BeliefMatrix,
        row: usize,
        label: LabelId,
        target: CategoryId,
    ) -> Result<Counterfactuals> {
        if row >= rows.n_rows() {
            return Err(Error::UnknownRow { row, n_rows: rows.n_rows() });
        }
        let raw = rows.select(&[row]);
        let calibrated = raw.calibrated_by(self.model())?;
        self.counterfactuals_of(&calibrated, Some(raw.values_of(0)), label, target)
    }

    fn counterfactuals_of(
        &self,
        row: &BeliefMatrix,
        raw: Option<&[f64]>,
        label: LabelId,
        target: CategoryId,
    ) -> Result<Counterfactuals> {
        let model = self.model();
        row.check_label(label)?;
        let declared = model.label(label);
        if target.index() >= declared.n_categories() {
            return Err(Error::unknown_category(declared.name(), &numbered(target.index()), "", []));
        }
        let now = self.infer_batch(row)?;
        let marginal = now.marginals(0).map(|marginals| &marginals[model.block(label)]);
        let rival = marginal.map(|marginal| most_probable_except(marginal, target.index()));
        let mut found = Counterfactuals {
            approximate: now.stopped(0) != Stopped::Exact,
            possible: now.is_possible(0),
            label: declared.name().to_owned(),
            target: declared.category(target).to_owned(),
            probability: marginal.map(|marginal| marginal[target.index()]),
            rival: rival.map(|rival| declared.categories()[rival].clone()),
            rival_probability: marginal.zip(rival).map(|(marginal, rival)| marginal[rival]),
            already: marginal
                .zip(rival)
                .is_some_and(|(marginal, rival)| exceeds(marginal[target.index()], marginal[rival])),
            changes: Vec::new(),
            own: None,
            unable: Vec::new(),
        };
        if found.already {
            return Ok(found);
        }
        let search = Search { row, raw, now: now.marginals(0), label, target: target.index() };
        found.approximate |= !self.search(&search, &mut found)?;
        Ok(found)
    }

    /// Adds the changes of every label. Returns whether all answers are exact.
    fn search(&self, search: &Search<'_>, found: &mut Counterfactuals) -> Result<bool> {
        let model = self.model();
        let observations: Vec<_> =
            model.label_ids().flat_map(|label| categories_of(search.row, label)).collect();
        let block = model.block(search.label);
        let mut weights = Weights::new(search.target);
        let is_exact = observe_each(self, search.row, &observations, |conditional| {
            let id = conditional.label;
            weights.push(conditional.log_evidence, conditional.marginals.map(|all| &all[block.clone()]));
            if weights.n_categories() < model.label(id).n_categories() {
                return;
            }
            let complete = std::mem::replace(&mut weights, Weights::new(search.target));
            let change = search.changes_of(id, &complete.scaled());
            match change {
                change if id == search.label => found.own = change,
                Some(change) => found.changes.push(change),
                None => found.unable.push(model.label(id).name().to_owned()),
            }
        })?;
        found.changes.sort_by_key(|change| size(change.distance));
        Ok(is_exact)
    }
}

/// The most probable category other than `target`. Labels have at least two categories.
fn most_probable_except(marginal: &[f64], target: usize) -> usize {
    let others = (0..marginal.len()).rev().filter(|&category| category != target);
    others.max_by(|&a, &b| marginal[a].total_cmp(&marginal[b])).unwrap_or(target)
}

impl Counterfactuals {
    /// The changes of the label called `label`, if it can change the answer.
    pub fn change(&self, label: &str) -> Option<&LabelCounterfactual> {
        self.changes.iter().chain(&self.own).find(|change| change.label == label)
    }

    /// The counterfactuals as JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("writing to memory does not fail")
    }
}
