//! The first act: a shift in a warehouse, with three rules.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

use anyhow::Result;
use prsl::explain::{CategoryExplanation, LabelExplanation};
use prsl::infer::EngineSettings;
use prsl::infer::Sampling;
use prsl::{Explainer, Explanation, Limits};
use prsl_data::{BeliefOptions, BeliefReader, Format, TableReader, Target};

use crate::check::Report;
use crate::explain::explain;
use crate::model::ModelFile;
use crate::predict::{self, EngineKind, Prediction, QueryKind};
use crate::progress::Progress;
use crate::style::{self, shell, styled};

use super::files::{Files, both};
use super::picture::{bar, indented, legend, most_probable, prompt};
use super::shift;

/// The worked example of the paper.
const MODEL: &str = prsl_server::EXAMPLE;
/// A rule that is missing there.
const RULE: &str = "rule 0.9 hands_up: overhead -> high";

/// The files, and the output of the subcommands.
pub struct FirstAct<'a> {
    files: &'a Files,
    file: ModelFile,
    explanations: Vec<Explanation>,
}

impl<'a> FirstAct<'a> {
    /// Writes the files, and runs the subcommands.
    pub fn set_up(files: &'a Files) -> Result<Self> {
        let beliefs = shift::table();
        files.write(&[(&files.model, MODEL.as_bytes()), (&files.beliefs, beliefs.as_bytes())])?;

        let file = ModelFile::read(&files.model)?;
        let predictions = predictions_of(&file, &files.beliefs)?;
        files.write(&[(&files.predictions, &predictions)])?;

        let explainer = Explainer::compile(file.document.model())?;
        let explain_row = |row| explain(&explainer, &mut beliefs_reader(&file, &files.beliefs)?, row);
        let explanations = (1..=shift::N_ROWS).map(explain_row).collect::<Result<_>>()?;
        Ok(FirstAct { files, file, explanations })
    }

    /// The text of this act.
    pub fn show(&self) -> Result<String> {
        let mut text = String::new();
        self.introduce(&mut text)?;
        self.show_check(&mut text)?;
        self.show_predictions(&mut text)?;
        self.show_explanation(&mut text)?;
        Ok(text)
    }

    fn introduce(&self, text: &mut String) -> Result<()> {
        let model = self.file.document.model();
        writeln!(text, "\n{}\n", styled(style::STRONG, "A shift in the warehouse"))?;
        writeln!(
            text,
            "A camera recognizes the activity of a worker, a shoe sensor the feet, and a wrist sensor"
        )?;
        writeln!(text, "the hands. Each of them is sometimes wrong. Three rules relate their labels:\n")?;
        for rule in model.rule_ids() {
            let probability = format!("{:<4}", model.rule(rule).probability());
            writeln!(text, "  rule {} {}", styled(style::NOTE, probability), model.rule_text(rule))?;
        }
        writeln!(text)?;
        Ok(())
    }

    fn show_check(&self, text: &mut String) -> Result<()> {
        let command = format!("prsl check {}", shell(&self.files.model));
        writeln!(text, "{}", prompt(&command))?;
        writeln!(text, "{}", indented(&Report::new(&self.file, Limits::default()).text(&self.file)))?;
        Ok(())
    }

    fn show_predictions(&self, text: &mut String) -> Result<()> {
        let (model, beliefs) = (shell(&self.files.model), shell(&self.files.beliefs));
        let command = format!("prsl predict {model} {beliefs} -o {}", shell(&self.files.predictions));
        writeln!(text, "{}", prompt(&command))?;
        let heading = "row  camera                    shoe      wrist       with the rules";
        writeln!(text, "  {}", styled(style::FAINT, heading))?;
        for (index, explanation) in self.explanations.iter().enumerate() {
            writeln!(text, "  {:>3}  {}", index + 1, row(explanation))?;
        }
        let names = activity(&self.explanations[0]).categories.iter().map(|category| category.name.as_str());
        let mark = styled(style::WARNING, "!");
        writeln!(text, "       {}   {mark} the rules changed the most probable activity", legend(names))?;
        writeln!(text, "       - the sensor gives no belief\n")?;
        if let Some(row) = self.impossible_row() {
            writeln!(
                text,
                "Row {row} is impossible: a colleague noted `walking`, but the shoe sensor is certain of standing,"
            )?;
            writeln!(
                text,
                "and a rule of probability 1 allows no exceptions. The other rows are not affected.\n"
            )?;
        }
        Ok(())
    }

    fn show_explanation(&self, text: &mut String) -> Result<()> {
        let row = self.most_changed();
        writeln!(text, "{}", prompt(&self.explain_command(row)))?;
        writeln!(text, "{}", indented(&style::explanation(&self.explanations[row - 1].to_string())))?;
        Ok(())
    }

    /// Suggestions for the reader, for example about the row that is `strained` most.
    pub fn invite(&self, strained: usize) -> Result<String> {
        let mut text = String::new();
        self.suggest_rule(&mut text)?;
        self.suggest_commands(&mut text, strained)?;
        Ok(text)
    }

    fn suggest_rule(&self, text: &mut String) -> Result<()> {
        let (model, beliefs) = (shell(&self.files.model), shell(&self.files.beliefs));
        writeln!(text, "{}\n", styled(style::STRONG, "Your turn"))?;
        let strange: Vec<_> = self.overhead_without_high_hands().map(|row| row.to_string()).collect();
        writeln!(
            text,
            "In rows {} of the first shift, the posterior is overhead work, but the hands are not high.",
            strange.join(", ")
        )?;
        writeln!(text, "No rule excludes that yet. Open {model} in an editor, and add a line such as\n")?;
        writeln!(text, "  {}\n", styled(style::NOTE, RULE))?;
        writeln!(
            text,
            "Then predict and explain again. `check` will report that some answers of the paper have"
        )?;
        writeln!(text, "changed: the `expect` lines in the file are the tests of its rules.\n")?;
        writeln!(text, "  prsl check {model}")?;
        writeln!(text, "  prsl predict {model} {beliefs}")?;
        writeln!(text, "  {}", self.explain_command(strange.first().map_or("1", String::as_str)))?;
        Ok(())
    }

    fn suggest_commands(&self, text: &mut String, strained: usize) -> Result<()> {
        let files = self.files;
        let (learned, strain) = (shell(&files.learned), shell(&files.strain));
        let (tomorrow, unseen) = (both(&files.tomorrow), shell(&files.without_camera));
        writeln!(text, "\nMore about the learned model, the added label, and the day without the camera:\n")?;
        writeln!(text, "  prsl evaluate {learned} {tomorrow}")?;
        writeln!(text, "  prsl plot {learned} --what graph -o {}", shell(&files.graph))?;
        writeln!(text, "  prsl explain {strain} {} --row {}", shell(&files.tomorrow[0]), strained + 1)?;
        writeln!(text, "  prsl evaluate {learned} {unseen} {}", shell(&files.tomorrow[1]))?;
        Ok(())
    }

    fn explain_command(&self, row: impl std::fmt::Display) -> String {
        format!("prsl explain {} {} --row {row}", shell(&self.files.model), shell(&self.files.beliefs))
    }

    fn impossible_row(&self) -> Option<usize> {
        self.explanations.iter().position(|explanation| !explanation.possible).map(|index| index + 1)
    }

    /// Rows that the suggested rule affects.
    fn overhead_without_high_hands(&self) -> impl Iterator<Item = usize> {
        let strange = |explanation: &Explanation| {
            answer(activity(explanation)) == Some("overhead")
                && favorite(&explanation.labels[2]) != Some("high")
        };
        (1..).zip(&self.explanations).filter(move |(_, explanation)| strange(explanation)).map(|(row, _)| row)
    }

    /// The row in which the rules changed the camera's belief most.
    fn most_changed(&self) -> usize {
        let moved = |index: &usize| {
            let categories = &activity(&self.explanations[*index]).categories;
            categories.iter().map(|c| (c.after.unwrap_or(c.before) - c.before).abs()).fold(0.0, f64::max)
        };
        let most = (0..self.explanations.len()).max_by(|a, b| moved(a).total_cmp(&moved(b)));
        most.map_or(1, |index| index + 1)
    }
}

fn beliefs_reader(file: &ModelFile, beliefs: &Path) -> Result<BeliefReader> {
    let table = TableReader::open(beliefs)?;
    Ok(BeliefReader::new(file.document.model(), table, BeliefOptions::default())?)
}

/// The predictions as CSV.
fn predictions_of(file: &ModelFile, beliefs: &Path) -> Result<Vec<u8>> {
    let bytes = Shared::default();
    let (model, settings) = (file.document.model(), EngineSettings::default());
    let (query, engine) = (QueryKind::Marginals, EngineKind::Auto);
    let prediction = Prediction {
        model,
        query: predict::compile(model, query, engine, &settings, None, Sampling::default())?,
        beliefs: beliefs_reader(file, beliefs)?,
        target: Target::Writer(Box::new(bytes.clone()), "the predictions".to_owned()),
        format: Some(Format::Csv),
        digits: None,
        verification: None,
        marks: false,
    };
    prediction.run(Progress::new(false))?;
    Ok(bytes.0.lock().map_or_else(|_| Vec::new(), |bytes| bytes.clone()))
}

/// A shared buffer for output.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no writer panics").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn activity(explanation: &Explanation) -> &LabelExplanation {
    &explanation.labels[0]
}

/// A row of the picture: the activity before, the other sensors, the activity after.
fn row(explanation: &Explanation) -> String {
    let before: Vec<f64> = activity(explanation).categories.iter().map(|category| category.before).collect();
    let sensors: Vec<_> = explanation.labels[1..]
        .iter()
        .map(|label| format!("{:<9}", favorite(label).unwrap_or("-")))
        .collect();
    let after: Option<Vec<f64>> =
        activity(explanation).categories.iter().map(|category| category.after).collect();
    let after = match after {
        Some(after) => picture(&activity(explanation).categories, &after, mind_changed(explanation)),
        None => styled(style::ERROR, "impossible"),
    };
    let before = picture(&activity(explanation).categories, &before, false);
    format!("{before}  {}   {after}", sensors.join(" "))
}

/// A bar, and the most probable category.
fn picture(categories: &[CategoryExplanation], probabilities: &[f64], changed: bool) -> String {
    let best = most_probable(probabilities);
    let name = format!("{:<8} {:.2}", categories[best].name, probabilities[best]);
    let name = if changed {
        format!("{}  {}", styled(style::WARNING, name), styled(style::WARNING, "!"))
    } else {
        name
    };
    format!("{} {name}", bar(probabilities))
}

/// The most probable category of a sensor, if it gives a belief.
fn favorite(label: &LabelExplanation) -> Option<&str> {
    let before: Vec<f64> = label.categories.iter().map(|category| category.before).collect();
    let best = most_probable(&before);
    let says_nothing = before.iter().all(|&belief| belief == before[best]);
    (!says_nothing).then_some(label.categories[best].name.as_str())
}

/// The most probable category of the posterior, if the row is possible.
fn answer(label: &LabelExplanation) -> Option<&str> {
    let after: Option<Vec<f64>> = label.categories.iter().map(|category| category.after).collect();
    after.map(|after| label.categories[most_probable(&after)].name.as_str())
}

fn mind_changed(explanation: &Explanation) -> bool {
    let activity = activity(explanation);
    answer(activity).is_some_and(|answer| favorite(activity) != Some(answer))
}
