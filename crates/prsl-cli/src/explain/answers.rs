//! `--flip` and `--next`: what would change the answer for a row, and what should be asked next.

use anyhow::{Result, bail};
use prsl::infer::MarginalEngine;
use prsl::{BeliefMatrix, CategoryId, LabelId, Model};

use crate::check::Format;
use crate::{output, style};

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

impl Question {
    /// Answers for a row of raw beliefs, and prints the answer.
    pub fn answer(
        &self,
        engine: &MarginalEngine,
        rows: &BeliefMatrix,
        row: usize,
        format: Format,
        all: bool,
    ) -> Result<()> {
        let (text, whole, json) = match *self {
            Question::Flip(label, category) => {
                let found = engine.counterfactuals_raw(rows, row, label, category)?;
                (found.to_string(), format!("{found:#}"), found.to_json())
            }
            Question::Next(about) => {
                let calibrated = rows.select(&[row]).calibrated_by(engine.model())?;
                let found = engine.information_gains(&calibrated.row(0), about)?;
                (found.to_string(), format!("{found:#}"), found.to_json())
            }
        };
        match format {
            Format::Text => output::print(&style::explanation(if all { &whole } else { &text })),
            Format::Json => output::write(&(json + "\n"), None),
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
