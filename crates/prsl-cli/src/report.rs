//! `prsl learn --report`: a self-contained page about the learned model.

mod html;
mod rules;
mod scores;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use prsl::Document;

use self::html::{page, paragraph, section};
use self::scores::evaluated_rows;
use crate::learn::{Learning, Outcome};
use crate::progress::{counted, grouped};
use crate::{figures, output};

/// The name of the page.
pub const PAGE: &str = "report.html";
/// The names of the figures.
const FIGURES: [&str; 2] = ["learning.svg", "reliability.svg"];

/// The files of a report in this folder.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    [PAGE].iter().chain(&FIGURES).map(|name| folder.join(name)).collect()
}

/// Creates the folder, before learning, so that an error does not lose its result.
pub fn prepare(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make folder `{}`", folder.display()))
}

/// The content of a report.
pub struct Report<'a> {
    /// The learned model with its scores.
    pub outcome: &'a Outcome<'a>,
}

impl Report<'_> {
    /// Writes the page, and its figures beside it.
    pub fn write(&self, folder: &Path) -> Result<()> {
        let outcome = self.outcome;
        let series = outcome.evaluated.iter().rev().map(|it| (it.name, it.reliability.clone()));
        let reliability = figures::reliability_diagram(series.collect());
        let (learning, path) = match &outcome.learning {
            Learning::Clauses(it) => (figures::additions(it.base_alone, &it.path), rules::path(it)),
            Learning::Paper(it) => (figures::steps(&it.curve), String::new()),
        };
        for (name, figure) in FIGURES.into_iter().zip([&learning, &reliability]) {
            output::write(figure, Some(&folder.join(name)))?;
        }
        let document = Document::of_model(outcome.model())?;
        let sections = [
            self.lead(),
            scores::likelihoods(outcome),
            scores::cross_validation(&outcome.validated),
            rules::learned(outcome, &document),
            path,
            section("Learning curve", &paragraph(self.curve_note()), &learning),
            rules::kept(outcome, &document),
            rules::combinations(&document),
            section("Reliability", &paragraph(&self.reliability_note()), &reliability),
            scores::scores(outcome),
        ];
        output::write(&page(&sections.concat()), Some(&folder.join(PAGE)))
    }

    fn lead(&self) -> String {
        let outcome = self.outcome;
        let validation = match outcome.valid {
            Some(valid) => {
                format!(", with {} in the validation set", grouped(valid.n_rows() as u64))
            }
            None => String::new(),
        };
        let lead = format!(
            "Learned from {} about {}{validation}: {}.",
            counted(outcome.train.n_rows() as u64, "row"),
            counted(outcome.model().labels().len() as u64, "label"),
            outcome.sizes(),
        );
        let stopped = match outcome.learning.is_stopped() {
            true => paragraph("Learning was stopped early: this is the best model so far."),
            false => String::new(),
        };
        format!("<h1>What was learned</h1>\n{}{stopped}", paragraph(&lead))
    }

    fn curve_note(&self) -> &'static str {
        match self.outcome.learning {
            Learning::Clauses(_) => {
                "Mean joint log-likelihood of the training rows after each addition of rules, without typical combinations."
            }
            Learning::Paper(_) => {
                "Training and validation set, step by step, for the selected number of rules. The model is that of the best step."
            }
        }
    }

    fn reliability_note(&self) -> String {
        let rows = evaluated_rows(self.outcome);
        format!("On the {rows} before and after learning. Calibrated probabilities lie on the diagonal.")
    }
}
