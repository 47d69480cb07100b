//! The expected information gain from observing a label: what should be asked next.

use std::cmp::Reverse;
use std::fmt;

use serde::Serialize;
use unicode_width::UnicodeWidthStr;

use super::conditional::{Conditional, categories_of, observe_each};
use super::layout::{WIDTH, bits, column, counted, listed, pad, probability, shortened};
use super::{MOVED, size};
use crate::belief::{BeliefMatrix, BeliefOrigin, Instance};
use crate::error::Result;
use crate::infer::{MarginalEngine, Stopped};
use crate::label::{CategoryId, LabelId};
use crate::syntax::print;

/// Gains up to this many bits are rounding errors and become 0.
const NO_GAIN: f64 = 1e-12;

/// Maximum number of labels shown in the text form.
const MAX_SHOWN: usize = 12;

/// The expected information gain from observing each label of a row, the largest first.
///
/// All entropies are in bits. Let X be a label that is not observed, and H(Y | x) the entropy of the posterior of Y.
///
/// ```text
/// gain about one label Y  =  H(Y | x) − Σ_c P(X = c | x) H(Y | x, X = c)  =  I(X; Y | x)       (1)
/// gain about all labels   =  Σ_Y I(X; Y | x)  =  H(X | x) + Σ_{Y ≠ X} I(X; Y | x)              (2)
/// ```
///
/// Equation (1) is the value of information of X for Y, with entropy as the loss (Howard, 1966; Lindley, 1956). Equation
/// (2) is the expected reduction of the sum of all labels' entropies. The entropy of the joint distribution is no good
/// measure here: observing X always reduces it by H(X | x), so it ignores what X tells about other labels.
/// [`InformationGain::entropy`] has this number.
///
/// Both are exact, with one inference per category of each label that is not observed. Loopy propagation approximates them.
/// Checked in `gains_agree_with_the_enumerated_joint`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct InformationGains {
    /// Whether an answer is approximate: by loopy propagation, or with lost digits.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub approximate: bool,
    /// Whether rules and evidence allow any assignment. If not, there are no gains.
    pub possible: bool,
    /// The label of interest; `None` for all labels.
    pub label: Option<String>,
    /// The entropy of the label of interest, or the sum over all labels: the largest possible gain. `None` if no
    /// assignment is possible.
    pub entropy: Option<f64>,
    /// Every other label that is not observed, by decreasing gain; ties in the model's order. If the gain is about all labels,
    /// these are all labels that are not observed.
    pub gains: Vec<InformationGain>,
    /// The observed labels, which need not be asked.
    pub observed: Vec<String>,
}

/// The expected information gain from observing one label.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct InformationGain {
    /// The label to observe.
    pub label: String,
    /// The expected gain in bits, never negative.
    pub gain: f64,
    /// The entropy of the label itself in bits.
    pub entropy: f64,
    /// Every possible answer, in the order of the categories.
    pub answers: Vec<PossibleAnswer>,
}

/// One possible answer to the question for a label.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct PossibleAnswer {
    /// The observed category.
    pub category: String,
    /// Its posterior probability now.
    pub probability: f64,
    /// The entropy that is left after this observation, of the label of interest or of all labels.
    pub entropy: f64,
}

impl MarginalEngine {
    /// The expected information gain from observing each label that is not observed: what should be asked next.
    ///
    /// The gain is about the label `about`, or about all labels if it is `None`; see [`InformationGains`].
    ///
    /// ```
    /// use prsl::{Engines, Evidence, Model};
    ///
    /// let model = Model::parse("label rain\nlabel wet\nlabel alarm\nrule 0.95: rain -> wet")?;
    /// let engine = Engines::new(&model).marginals()?;
    /// let gains = engine.information_gains(&Evidence::new(), Some(model.find_label("wet")?))?;
    /// assert_eq!(gains.gains[0].label, "rain");
    /// assert!((gains.gains[0].gain - 0.175).abs() < 5e-4);
    /// assert_eq!(gains.gains[1].gain, 0.0); // no rule connects the alarm with `wet`
    /// # Ok::<(), prsl::Error>(())
    /// ```
    pub fn information_gains(
        &self,
        instance: &impl Instance,
        about: Option<LabelId>,
    ) -> Result<InformationGains> {
        let model = self.model();
        let row = instance.matrix(model)?;
        if let Some(label) = about {
            row.check_label(label)?;
        }
        let is_observed = |label: &LabelId| row.origin(0, *label) == BeliefOrigin::Observed;
        let (observed, open): (Vec<LabelId>, Vec<LabelId>) = model.label_ids().partition(is_observed);
        let now = self.infer_batch(&row)?;
        let name = |label: LabelId| model.label(label).name().to_owned();
        let mut gains = InformationGains {
            approximate: now.stopped(0) != Stopped::Exact,
            possible: now.is_possible(0),
            label: about.map(name),
            entropy: None,
            gains: Vec::new(),
            observed: observed.into_iter().map(name).collect(),
        };
        let Some(now) = now.marginals(0) else { return Ok(gains) };
        let interest = Interest { row: &row, about };
        let entropy = interest.entropy(now);
        gains.entropy = Some(entropy);
        let asked: Vec<LabelId> = open.into_iter().filter(|&label| Some(label) != about).collect();
        gains.approximate |= !interest.ask(self, now, &asked, &mut gains.gains)?;
        for gain in &mut gains.gains {
            let left: f64 = gain.answers.iter().map(|answer| answer.probability * answer.entropy).sum(); // (1), (2)
            gain.gain = Some(entropy - left).filter(|&bits| bits > NO_GAIN).unwrap_or(0.0);
        }
        gains.gains.sort_by_key(|gain| Reverse((size(gain.gain), gain.gain > 0.0)));
        Ok(gains)
    }
}

/// The labels whose entropy matters.
struct Interest<'a> {
    row: &'a BeliefMatrix,
    about: Option<LabelId>,
}

impl Interest<'_> {
    /// The entropy of the label of interest, or the sum over all labels, from all marginals.
    fn entropy(&self, marginals: &[f64]) -> f64 {
        let model = self.row.model();
        match self.about {
            Some(label) => entropy(&marginals[model.block(label)]),
            None => model.label_ids().map(|label| entropy(&marginals[model.block(label)])).sum(),
        }
    }

    /// Adds all possible answers for each of the labels `asked`. Returns whether all of them are exact.
    fn ask(
        &self,
        engine: &MarginalEngine,
        now: &[f64],
        asked: &[LabelId],
        gains: &mut Vec<InformationGain>,
    ) -> Result<bool> {
        let model = self.row.model();
        let mut observations = Vec::new();
        for &label in asked {
            let marginal = &now[model.block(label)];
            let is_possible = |observation: &(LabelId, CategoryId)| marginal[observation.1.index()] > 0.0;
            observations.extend(categories_of(self.row, label).into_iter().filter(is_possible));
            gains.push(InformationGain {
                label: model.label(label).name().to_owned(),
                gain: 0.0,
                entropy: entropy(marginal),
                answers: Vec::new(),
            });
        }
        let mut place = 0;
        observe_each(engine, self.row, &observations, |Conditional { label, category, marginals, .. }| {
            while asked[place] != label {
                place += 1;
            }
            let probability = now[model.block(label)][category.index()];
            // Loopy propagation may exclude a category that it held for possible. It leaves no uncertainty then.
            let entropy = marginals.map_or(0.0, |marginals| self.entropy(marginals));
            let category = model.label(label).category(category).to_owned();
            gains[place].answers.push(PossibleAnswer { category, probability, entropy });
        })
    }
}

/// The entropy of a distribution in bits.
fn entropy(distribution: &[f64]) -> f64 {
    distribution.iter().filter(|&&p| p > 0.0).map(|&p| -p * p.log2()).fold(0.0, |sum, bits| sum + bits)
}

impl InformationGains {
    /// The gain from observing the label called `label`.
    pub fn gain(&self, label: &str) -> Option<&InformationGain> {
        self.gains.iter().find(|gain| gain.label == label)
    }

    /// The gains as JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("writing to memory does not fail")
    }
}

impl fmt::Display for InformationGains {
    /// Shows the largest gains, and counts the other labels. The alternate form (`{:#}`) shows all labels.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let about = self.label.as_deref().map_or_else(|| "all labels".to_owned(), print::name);
        let Some(entropy) = self.entropy else {
            return writeln!(f, "nothing is possible, so no answer tells anything about {about}");
        };
        if self.approximate {
            writeln!(f, "approximate: not all probabilities are exact\n")?;
        }
        let sum = if self.label.is_none() { " (sum of entropies)" } else { "" };
        writeln!(f, "uncertainty about {about} now: {} bits{sum}\n", bits(entropy))?;
        writeln!(f, "expected gain in bits from observing one label, the largest first")?;
        writeln!(f, "(each answer with its probability, and the bits that it leaves)")?;
        // Labels without a gain are the last ones.
        let n_above = |least: f64| self.gains.iter().filter(|gain| gain.gain > least).count();
        let n_telling = n_above(0.0);
        let n_shown = if f.alternate() { n_telling } else { n_above(MOVED).min(MAX_SHOWN) };
        let names = column(self.gains[..n_shown].iter().map(|gain| print::name(&gain.label)));
        for gain in &self.gains[..n_shown] {
            gain.line(f, names)?;
        }
        if n_telling > n_shown {
            let more = counted(n_telling - n_shown, "more label");
            writeln!(f, "  {more} with gains of {} or less", bits(self.gains[n_shown].gain))?;
        }
        let silent: Vec<String> =
            self.gains[n_telling..].iter().map(|gain| print::name(&gain.label)).collect();
        listed(f, "tell nothing", &silent)?;
        let observed: Vec<String> = self.observed.iter().map(|label| print::name(label)).collect();
        listed(f, "observed already", &observed)?;
        if self.gains.is_empty() && self.observed.is_empty() {
            writeln!(f, "  there is no other label")?;
        }
        Ok(())
    }
}

impl InformationGain {
    /// `   0.312  feet  gait 0.007: 0, standing 0.993: 0.871`
    fn line(&self, f: &mut fmt::Formatter<'_>, names: usize) -> fmt::Result {
        let answer = |answer: &PossibleAnswer| {
            let category = print::name(&answer.category);
            format!("{category} {}: {}", probability(answer.probability), bits(answer.entropy))
        };
        let heading = format!("  {:>6}  {}  ", bits(self.gain), pad(&print::name(&self.label), names));
        let answers: Vec<String> = self.answers.iter().map(answer).collect();
        let width = WIDTH.saturating_sub(heading.width());
        writeln!(f, "{heading}{}", shortened(&answers, width))
    }
}
