//! The options of the recipes, and the learners that they make.

use anyhow::Result;
use clap::error::ErrorKind;
use prsl::Model;
use prsl::calibrate::{CalibrationMethod, Calibrator};
use prsl::learn::paper::{self, Gradients, PaperLearner};
use prsl::learn::{Calibrating, Learner};

use super::Arguments;
use super::warnings::warn;
use crate::arguments::usage;

/// Default share of rows in the validation set of the paper's recipe.
pub(super) const VALID_FRACTION: f64 = 0.1;
/// Default number of folds.
pub(super) const FOLDS: usize = 5;

/// The learning recipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Recipe {
    /// Readable rules, added one at a time while they gain more than they cost
    Clauses,
    /// Noisy-or rules about any labels, as in the paper
    Paper,
    /// Removed
    #[value(hide = true)]
    Thin,
}

/// A number, or `auto`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Count {
    Auto,
    Number(usize),
}

impl Count {
    pub(super) fn parse(text: &str) -> Result<Count, String> {
        match text {
            "auto" => Ok(Count::Auto),
            _ => text.parse().map(Count::Number).map_err(|_| "a number or `auto` is needed".to_owned()),
        }
    }

    fn number(self) -> Option<usize> {
        match self {
            Count::Auto => None,
            Count::Number(number) => Some(number),
        }
    }
}

/// The calibration of beliefs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Calibration(Calibrating);

impl std::str::FromStr for Calibration {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "joint" => Ok(Self(Calibrating::Joint)),
            "none" => Ok(Self(Calibrating::Given)),
            _ => {
                let method: Result<CalibrationMethod, _> = text.parse();
                let names = CalibrationMethod::ALL.map(CalibrationMethod::name).join(", ");
                let method = method.map_err(|_| format!("expected joint, none, or one of {names}"))?;
                Ok(Self(Calibrating::Alone(method)))
            }
        }
    }
}

/// Parses the price of a rule.
pub(super) fn parsimony(text: &str) -> Result<f64, String> {
    let number = match text {
        "predict" => Some(Learner::PREDICT),
        "explain" => Some(Learner::EXPLAIN),
        _ => text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0),
    };
    number.ok_or_else(|| "expected predict, explain, or a number of at least 0".to_owned())
}

/// Parses the number of folds.
pub(super) fn folds(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number: &usize| *number != 1);
    number.ok_or_else(|| "expected 0, or a number of at least 2".to_owned())
}

/// Options of earlier versions, which are only read to name their replacement.
#[derive(Debug, Clone, Default, clap::Args)]
pub(super) struct RemovedOptions {
    #[arg(long, hide = true, num_args = 0..=1, allow_hyphen_values = true, default_missing_value = "")]
    width: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, allow_hyphen_values = true, default_missing_value = "")]
    wide: Option<String>,
    #[arg(long, hide = true)]
    relearn: bool,
}

impl RemovedOptions {
    fn complaint(&self) -> Option<&'static str> {
        match self {
            Self { width: Some(_), .. } => Some(
                "--width was removed: rules are no longer about groups of labels; --parsimony sets how complex rules may be",
            ),
            Self { wide: Some(_), .. } => Some(
                "--wide was removed: any rule may be about many labels; --rules limits the number of rules",
            ),
            Self { relearn: true, .. } => Some(
                "--relearn was removed: --base keeps the rules of a model and learns others in addition to them",
            ),
            _ => None,
        }
    }
}

/// The kind of gradients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum GradientsChoice {
    /// Exact
    Exact,
    /// By loopy propagation; learning then exploits the errors of the approximation
    Loopy,
}

/// Options of the paper's recipe.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Options of --recipe paper")]
pub(super) struct PaperOptions {
    /// The share of rows in the validation set, drawn at random, unless one is given [default: 0.1]
    #[arg(long, value_name = "SHARE")]
    pub(super) valid_fraction: Option<f64>,
    /// The maximum number of optimizer steps for each number of rules [default: 1000]
    #[arg(long, value_name = "N")]
    steps: Option<usize>,
    /// The batch size [default: 20]
    #[arg(long, value_name = "N")]
    batch: Option<usize>,
    /// The learning rate [default: 0.001]
    #[arg(long, value_name = "R")]
    learning_rate: Option<f64>,
    /// The decay rates of ADAM's moments [default: 0.9,0.999]
    #[arg(long, value_name = "B1,B2", value_parser = betas)]
    betas: Option<[f64; 2]>,
    /// The lower bound of inhibition probabilities [default: 0.00001]
    #[arg(long, value_name = "Q")]
    clip: Option<f64>,
    /// The probability of learned rules [default: 0.999]
    #[arg(long, value_name = "P")]
    probability: Option<f64>,
    /// The maximum number of labels per rule [default: 5]
    #[arg(long, value_name = "N")]
    j0: Option<usize>,
    /// The hardness of the soft minimum of a label's inhibition probabilities [default: 20]
    #[arg(long, value_name = "A")]
    alpha: Option<f64>,
    /// The prior probability that this minimum is below 0.1 [default: 0.057]
    #[arg(long, value_name = "G")]
    gamma0: Option<f64>,
    /// The prior probability that this minimum is above 0.9 [default: 0.628]
    #[arg(long, value_name = "G")]
    gamma1: Option<f64>,
    /// The decay of this prior's weight per step [default: 0.98]
    #[arg(long, value_name = "L")]
    lambda: Option<f64>,
    /// The number that keeps the gradient of this prior finite [default: 0.0001]
    #[arg(long, value_name = "E")]
    epsilon: Option<f64>,
    /// The kind of gradients [default: exact]
    #[arg(long)]
    gradients: Option<GradientsChoice>,
    /// Learn exactly as printed: a constant learning rate, no early stopping, the rules of the last step
    #[arg(long)]
    literal: bool,
}

fn betas(text: &str) -> Result<[f64; 2], String> {
    let numbers: Option<Vec<f64>> = text.split(',').map(|part| part.trim().parse().ok()).collect();
    match numbers.as_deref() {
        Some(&[first, second]) => Ok([first, second]),
        _ => Err("expected two numbers, as in 0.9,0.999".to_owned()),
    }
}

impl PaperOptions {
    /// The name of the first option that was given.
    fn first_given(&self) -> Option<&'static str> {
        let options = [
            (self.valid_fraction.is_some(), "--valid-fraction"),
            (self.steps.is_some(), "--steps"),
            (self.batch.is_some(), "--batch"),
            (self.learning_rate.is_some(), "--learning-rate"),
            (self.betas.is_some(), "--betas"),
            (self.clip.is_some(), "--clip"),
            (self.probability.is_some(), "--probability"),
            (self.j0.is_some(), "--j0"),
            (self.alpha.is_some(), "--alpha"),
            (self.gamma0.is_some(), "--gamma0"),
            (self.gamma1.is_some(), "--gamma1"),
            (self.lambda.is_some(), "--lambda"),
            (self.epsilon.is_some(), "--epsilon"),
            (self.gradients.is_some(), "--gradients"),
            (self.literal, "--literal"),
        ];
        options.into_iter().find(|(is_given, _)| *is_given).map(|(_, name)| name)
    }
}

impl Arguments {
    /// Rejects removed options and those of the other recipe, and warns of options that are not recommended.
    pub(super) fn check(&self) -> Result<()> {
        let refuse = |message: String| Err(usage("learn", ErrorKind::ArgumentConflict, message));
        if self.recipe == Recipe::Thin {
            return refuse("--recipe thin was removed; use --recipe clauses, the default".to_owned());
        }
        if let Some(complaint) = self.removed.complaint() {
            return refuse(complaint.to_owned());
        }
        let is_paper = self.recipe == Recipe::Paper;
        if let Some(name) = self.paper.first_given().filter(|_| !is_paper) {
            return refuse(format!("{name} is an option of --recipe paper"));
        }
        let of_clauses = [
            (self.parsimony.is_some(), "--parsimony"),
            (self.cv.is_some_and(|folds| folds > 0), "--cv"),
            (self.learn_probabilities, "--learn-probabilities"),
            (self.calibration() == Calibrating::Joint, "--calibrate joint"),
        ];
        if let Some((_, name)) = of_clauses.into_iter().find(|(is_given, _)| is_paper && *is_given) {
            return refuse(format!("{name} is an option of --recipe clauses"));
        }
        if let Some(share) = self.paper.valid_fraction.filter(|share| !(*share > 0.0 && *share < 1.0)) {
            let message = format!("--valid-fraction is {share}, expected a number between 0 and 1");
            return Err(usage("learn", ErrorKind::InvalidValue, message));
        }
        if self.paper.gradients == Some(GradientsChoice::Loopy) {
            warn(
                "gradients by loopy propagation are those of an approximation, whose errors learning exploits; \
                 its log-likelihoods are approximate, too. Use exact gradients where you can",
            );
        }
        Ok(())
    }

    fn calibration(&self) -> Calibrating {
        let default = match self.recipe {
            Recipe::Paper => Calibrating::Given,
            _ => Calibrating::Joint,
        };
        self.calibrate.map_or(default, |Calibration(calibrate)| calibrate)
    }

    /// Whether the base's beliefs stay raw: no calibrators are given or learned.
    pub(super) fn is_raw(&self, base: &Model) -> bool {
        self.calibration() == Calibrating::Given
            && base.labels().iter().all(|label| *label.calibrator() == Calibrator::Identity)
    }

    /// The number of folds; 0 without cross-validation.
    pub(super) fn n_folds(&self) -> usize {
        match self.recipe {
            Recipe::Clauses => self.cv.unwrap_or(FOLDS),
            _ => 0,
        }
    }

    /// The learner of `--recipe clauses`.
    pub(super) fn learner(&self) -> Learner {
        Learner {
            parsimony: self.parsimony.unwrap_or(Learner::PREDICT),
            max_rules: self.rules.number(),
            typical: !self.no_typical,
            calibrate: self.calibration(),
            learn_probabilities: self.learn_probabilities,
            memory: self.memory.limits().memory,
            seed: self.seed,
        }
    }

    /// The learner of `--recipe paper`.
    pub(super) fn paper_learner(&self) -> PaperLearner {
        let (default, given) = (PaperLearner::default(), &self.paper);
        PaperLearner {
            rules: self.rules.number().map_or(default.rules, |number| vec![number]),
            steps: given.steps.unwrap_or(default.steps),
            patience: default.patience,
            batch: given.batch.unwrap_or(default.batch),
            learning_rate: given.learning_rate.unwrap_or(default.learning_rate),
            betas: given.betas.unwrap_or(default.betas),
            clip: given.clip.unwrap_or(default.clip),
            probability: given.probability.unwrap_or(default.probability),
            epsilon: given.epsilon.unwrap_or(default.epsilon),
            alpha: given.alpha.unwrap_or(default.alpha),
            labels_per_rule: given.j0.unwrap_or(default.labels_per_rule),
            gamma_0: given.gamma0.unwrap_or(default.gamma_0),
            gamma_1: given.gamma1.unwrap_or(default.gamma_1),
            lambda: given.lambda.unwrap_or(default.lambda),
            gradients: match given.gradients {
                Some(GradientsChoice::Loopy) => Gradients::Loopy,
                Some(GradientsChoice::Exact) | None => Gradients::Exact,
            },
            calibrate: match self.calibration() {
                Calibrating::Alone(method) => paper::Calibrating::Alone(method),
                _ => paper::Calibrating::Given,
            },
            literal: given.literal,
            memory: self.memory.limits().memory,
            seed: self.seed,
        }
    }
}
