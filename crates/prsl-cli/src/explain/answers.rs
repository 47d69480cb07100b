//! `--flip` and `--next`: what would change the answer for a row, and what should be asked next.

use anyhow::{Result, bail};
use prsl::explain::{Counterfactuals, InformationGains};
use prsl::infer::MarginalEngine;
use prsl::{CategoryId, LabelId, Model};

use super::instance::Instance;

/// The question about a row, if it is not an explanation.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Asked {
    /// Show what would make this category the most probable one: the smallest change of each label
    #[arg(long, value_name = "LABEL=CATEGORY", conflicts_with = "next")]
    flip: Option<String>,
    /// Show which label should be observed next to learn most about this label, or about `all` labels
    #[arg(long, value_name = "LABEL|all")]
    next: Option<String>,
}

/// A question whose names are those of the model.
#[derive(Debug)]
pub enum Question {
    /// What makes the category the most probable one of the label?
    Flip(LabelId, CategoryId),
    /// What tells most about this label, or about all labels?
    Next(Option<LabelId>),
}

impl Asked {
    /// Looks up the names. Returns `None` if neither option is given.
    pub fn question(&self, model: &Model) -> Result<Option<Question>> {
        match (&self.flip, &self.next) {
            (Some(flip), _) => {
                let (label, category) = label_and_category(model, flip)?;
                Ok(Some(Question::Flip(label, category)))
            }
            (None, Some(next)) => Ok(Some(Question::Next(label_or_all(model, next)?))),
            (None, None) => Ok(None),
        }
    }
}

/// The answer to a question.
pub enum Answer {
    /// The answer to [`Question::Flip`].
    Flip(Counterfactuals),
    /// The answer to [`Question::Next`].
    Next(InformationGains),
}

impl Question {
    /// Answers for an instance.
    pub fn answer(&self, engine: &MarginalEngine, instance: &Instance) -> Result<Answer> {
        Ok(match (self, instance) {
            (&Question::Flip(label, category), Instance::Row(rows)) => {
                Answer::Flip(engine.counterfactuals_raw(rows, rows.n_rows() - 1, label, category)?)
            }
            (&Question::Flip(label, category), Instance::Given(evidence)) => {
                Answer::Flip(engine.counterfactuals(evidence, label, category)?)
            }
            (&Question::Next(about), Instance::Row(rows)) => {
                let calibrated = rows.select(&[rows.n_rows() - 1]).calibrated_by(engine.model())?;
                Answer::Next(engine.information_gains(&calibrated.row(0), about)?)
            }
            (&Question::Next(about), Instance::Given(evidence)) => {
                Answer::Next(engine.information_gains(evidence, about)?)
            }
        })
    }
}

impl Answer {
    /// The answer as text, with what matters or with `all` of it.
    pub fn text(&self, all: bool) -> String {
        match (self, all) {
            (Answer::Flip(found), false) => found.to_string(),
            (Answer::Flip(found), true) => format!("{found:#}"),
            (Answer::Next(found), false) => found.to_string(),
            (Answer::Next(found), true) => format!("{found:#}"),
        }
    }

    /// The answer as JSON.
    pub fn json(&self) -> String {
        match self {
            Answer::Flip(found) => found.to_json(),
            Answer::Next(found) => found.to_json(),
        }
    }
}

/// The label and the category of `LABEL=CATEGORY`. Names may contain `=`.
fn label_and_category(model: &Model, text: &str) -> Result<(LabelId, CategoryId)> {
    let splits = || text.match_indices('=').map(|(at, _)| (&text[..at], &text[at + 1..]));
    let known = splits().find(|(label, _)| model.find_label(label).is_ok());
    let Some((label, category)) = known.or_else(|| splits().next()) else {
        bail!("`--flip` has `{text}`, expected a label and a category: `--flip LABEL=CATEGORY`");
    };
    let label = model.find_label(label)?;
    Ok((label, model.find_category(label, category)?))
}

/// The label of this name. `all` means all labels, unless a label is called so.
fn label_or_all(model: &Model, name: &str) -> Result<Option<LabelId>> {
    match model.find_label(name) {
        Err(_) if name == "all" => Ok(None),
        found => Ok(Some(found?)),
    }
}
