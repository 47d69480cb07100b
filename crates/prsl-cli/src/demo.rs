//! `prsl demo`: a shift in a warehouse, to see what rules do and to have files to play with.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use anstyle::{AnsiColor, Color, Style};
use anyhow::{Context, Result, bail};
use prsl::{CategoryExplanation, Explainer, Explanation, LabelExplanation, Sampling};
use prsl_data::{BeliefOptions, BeliefReader, Format, TableReader, Target};

use crate::check::Report;
use crate::engines::Settings;
use crate::explain::explain;
use crate::model::ModelFile;
use crate::predict::{self, EngineKind, Prediction, QueryKind};
use crate::progress::Progress;
use crate::style::{self, shell, styled};
use crate::{output, shift};

/// The worked example of the paper.
const MODEL: &str = include_str!("../../../examples/warehouse.prsl");
/// A rule that is missing there.
const RULE: &str = "rule 0.9 hands_up: overhead -> high";

/// Show on a small example what rules do, and leave its files to play with
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  prsl demo
  prsl demo ~/warehouse

Writes warehouse.prsl, beliefs.csv and predictions.csv, and never over files that have been changed.")]
pub struct Arguments {
    /// The folder for the files; made if it is not there
    #[arg(value_name = "DIR", default_value = "demo")]
    folder: PathBuf,
}

impl Arguments {
    /// Writes the files, and shows what the subcommands make of them.
    pub fn run(self) -> Result<ExitCode> {
        let demo = Demo::set_up(&self.folder)?;
        output::print(&demo.show()?)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The files of the demo, and what the subcommands make of them.
struct Demo {
    model_path: PathBuf,
    beliefs_path: PathBuf,
    predictions_path: PathBuf,
    file: ModelFile,
    explanations: Vec<Explanation>,
}

impl Demo {
    fn set_up(folder: &Path) -> Result<Demo> {
        let [model_path, beliefs_path, predictions_path] =
            ["warehouse.prsl", "beliefs.csv", "predictions.csv"].map(|name| folder.join(name));
        let beliefs = shift::table();
        check_unchanged(&model_path, MODEL.as_bytes())?;
        check_unchanged(&beliefs_path, beliefs.as_bytes())?;
        fs::create_dir_all(folder).with_context(|| format!("cannot make folder `{}`", folder.display()))?;
        output::write(MODEL, Some(&model_path))?;
        output::write(&beliefs, Some(&beliefs_path))?;

        let file = ModelFile::read(&model_path)?;
        let predictions = predictions_of(&file, &beliefs_path)?;
        check_unchanged(&predictions_path, &predictions)?;
        Target::File(predictions_path.clone()).write_all(&predictions)?;

        let explainer = Explainer::compile(file.document.model())?;
        let explain_row = |row| explain(&explainer, beliefs_reader(&file, &beliefs_path)?, row);
        let explanations = (1..=shift::N_ROWS).map(explain_row).collect::<Result<_>>()?;
        Ok(Demo { model_path, beliefs_path, predictions_path, file, explanations })
    }

    fn show(&self) -> Result<String> {
        let mut text = String::new();
        self.introduce(&mut text)?;
        self.show_check(&mut text)?;
        self.show_predictions(&mut text)?;
        self.show_explanation(&mut text)?;
        self.invite(&mut text)?;
        Ok(text)
    }

    fn introduce(&self, text: &mut String) -> Result<()> {
        let model = self.file.document.model();
        writeln!(text, "\n{}\n", styled(style::STRONG, "A shift in the warehouse"))?;
        writeln!(
            text,
            "A camera guesses what a worker does, a shoe sensor what the feet do, a wrist sensor"
        )?;
        writeln!(
            text,
            "where the hands are. Each of them is wrong at times. Three rules know what goes together:\n"
        )?;
        for rule in model.rule_ids() {
            let probability = format!("{:<4}", model.rule(rule).probability());
            writeln!(text, "  rule {} {}", styled(style::NOTE, probability), model.rule_text(rule))?;
        }
        writeln!(text)?;
        Ok(())
    }

    fn show_check(&self, text: &mut String) -> Result<()> {
        let command = format!("prsl check {}", shell(&self.model_path));
        writeln!(text, "{}", prompt(&command))?;
        writeln!(text, "{}", indented(&Report::new(&self.file).text(&self.file)))?;
        Ok(())
    }

    fn show_predictions(&self, text: &mut String) -> Result<()> {
        let (model, beliefs) = (shell(&self.model_path), shell(&self.beliefs_path));
        let command = format!("prsl predict {model} {beliefs} -o {}", shell(&self.predictions_path));
        writeln!(text, "{}", prompt(&command))?;
        let heading = "row  camera                    shoe      wrist       with the rules";
        writeln!(text, "  {}", styled(style::FAINT, heading))?;
        for (index, explanation) in self.explanations.iter().enumerate() {
            writeln!(text, "  {:>3}  {}", index + 1, row(explanation))?;
        }
        let legend = ACTIVITIES.iter().zip(activity(&self.explanations[0]).categories.iter());
        let legend: Vec<_> = legend
            .map(|((glyph, style), category)| format!("{} {}", styled(*style, glyph), category.name))
            .collect();
        let mark = styled(style::WARNING, "!");
        writeln!(text, "       {}   {mark} the rules changed the camera's mind\n", legend.join("   "))?;
        if let Some(row) = self.impossible_row() {
            writeln!(
                text,
                "Row {row} cannot be: a colleague noted `walking`, but the shoe stood still, and a rule of"
            )?;
            writeln!(text, "probability 1 knows no exceptions. The other rows are answered all the same.\n")?;
        }
        Ok(())
    }

    fn show_explanation(&self, text: &mut String) -> Result<()> {
        let row = self.most_changed();
        writeln!(text, "{}", prompt(&self.explain_command(row)))?;
        writeln!(text, "{}", indented(&style::explanation(&self.explanations[row - 1].to_string())))?;
        Ok(())
    }

    fn invite(&self, text: &mut String) -> Result<()> {
        let (model, beliefs) = (shell(&self.model_path), shell(&self.beliefs_path));
        writeln!(text, "{}\n", styled(style::STRONG, "Your turn"))?;
        let strange: Vec<_> = self.overhead_without_high_hands().map(|row| row.to_string()).collect();
        writeln!(
            text,
            "Rows {} say overhead work, though the hands are not even high: nobody has written",
            strange.join(", ")
        )?;
        writeln!(text, "that rule yet. Open {model} in an editor, and add a line such as\n")?;
        writeln!(text, "  {}\n", styled(style::NOTE, RULE))?;
        writeln!(
            text,
            "Then see what it changes, and why. `check` will tell that some answers of the paper are not"
        )?;
        writeln!(text, "the same any more: the `expect` lines in the file are the tests of its rules.\n")?;
        writeln!(text, "  prsl check {model}")?;
        writeln!(text, "  prsl predict {model} {beliefs}")?;
        writeln!(text, "  {}", self.explain_command(strange.first().map_or("1", String::as_str)))?;
        Ok(())
    }

    fn explain_command(&self, row: impl std::fmt::Display) -> String {
        format!("prsl explain {} {} --row {row}", shell(&self.model_path), shell(&self.beliefs_path))
    }

    fn impossible_row(&self) -> Option<usize> {
        self.explanations.iter().position(|explanation| !explanation.possible).map(|index| index + 1)
    }

    /// Rows that the suggested rule is about.
    fn overhead_without_high_hands(&self) -> impl Iterator<Item = usize> {
        let strange = |explanation: &Explanation| {
            answer(activity(explanation)) == Some("overhead")
                && favorite(&explanation.labels[2]) != Some("high")
        };
        (1..).zip(&self.explanations).filter(move |(_, explanation)| strange(explanation)).map(|(row, _)| row)
    }

    /// The row where the rules moved the camera's belief most.
    fn most_changed(&self) -> usize {
        let moved = |index: &usize| {
            let categories = &activity(&self.explanations[*index]).categories;
            categories.iter().map(|c| (c.after.unwrap_or(c.before) - c.before).abs()).fold(0.0, f64::max)
        };
        let most = (0..self.explanations.len()).max_by(|a, b| moved(a).total_cmp(&moved(b)));
        most.map_or(1, |index| index + 1)
    }
}

/// Refuses to write over a file that holds something else.
fn check_unchanged(path: &Path, content: &[u8]) -> Result<()> {
    match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error).with_context(|| format!("cannot read `{}`", path.display())),
        Ok(found) if found == content => Ok(()),
        Ok(_) => bail!(
            "`{}` is there already and differs from the demo's; name another folder, as in `prsl demo demo2`",
            path.display()
        ),
    }
}

fn beliefs_reader(file: &ModelFile, beliefs: &Path) -> Result<BeliefReader> {
    let table = TableReader::open(beliefs)?;
    Ok(BeliefReader::new(file.document.model(), table, BeliefOptions::default())?)
}

/// The predictions as CSV.
fn predictions_of(file: &ModelFile, beliefs: &Path) -> Result<Vec<u8>> {
    let bytes = Shared::default();
    let (model, settings) = (file.document.model(), Settings::default());
    let (query, engine) = (QueryKind::Marginals, EngineKind::Auto);
    let prediction = Prediction {
        model,
        query: predict::compile(model, query, engine, &settings, None, Sampling::default())?,
        beliefs: beliefs_reader(file, beliefs)?,
        target: Target::Writer(Box::new(bytes.clone()), "the predictions".to_owned()),
        format: Format::Csv,
        verification: None,
    };
    prediction.run(Progress::new(false))?;
    Ok(bytes.0.lock().map_or_else(|_| Vec::new(), |bytes| bytes.clone()))
}

/// Bytes that are written in one place and read in another.
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

/// How the categories of the activity are drawn.
const ACTIVITIES: [(char, Style); 3] = [
    ('█', Style::new().fg_color(Some(Color::Ansi(AnsiColor::Blue)))),
    ('▒', Style::new().fg_color(Some(Color::Ansi(AnsiColor::Green)))),
    ('▀', Style::new().fg_color(Some(Color::Ansi(AnsiColor::Magenta)))),
];
const BAR: usize = 10;

fn prompt(command: &str) -> String {
    format!("{} {}", styled(style::FAINT, "$"), styled(style::STRONG, command))
}

/// The lines of a text moved to the right.
fn indented(text: &str) -> String {
    text.lines().map(|line| if line.is_empty() { "\n".to_owned() } else { format!("  {line}\n") }).collect()
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

/// Probabilities side by side, each a piece of one bar.
fn bar(probabilities: &[f64]) -> String {
    let mut text = String::new();
    let (mut sum, mut drawn) = (0.0, 0);
    for (probability, (glyph, style)) in probabilities.iter().zip(ACTIVITIES) {
        sum += probability;
        let end = (sum * BAR as f64).round() as usize;
        text.push_str(&styled(style, glyph.to_string().repeat(end - drawn)));
        drawn = end;
    }
    text
}

fn most_probable(probabilities: &[f64]) -> usize {
    (0..probabilities.len()).rev().max_by(|&a, &b| probabilities[a].total_cmp(&probabilities[b])).unwrap_or(0)
}

/// What a sensor believes in, if it believes anything.
fn favorite(label: &LabelExplanation) -> Option<&str> {
    let before: Vec<f64> = label.categories.iter().map(|category| category.before).collect();
    let best = most_probable(&before);
    let says_nothing = before.iter().all(|&belief| belief == before[best]);
    (!says_nothing).then_some(label.categories[best].name.as_str())
}

/// The most probable category under the rules, if anything is possible.
fn answer(label: &LabelExplanation) -> Option<&str> {
    let after: Option<Vec<f64>> = label.categories.iter().map(|category| category.after).collect();
    after.map(|after| label.categories[most_probable(&after)].name.as_str())
}

fn mind_changed(explanation: &Explanation) -> bool {
    let activity = activity(explanation);
    answer(activity).is_some_and(|answer| favorite(activity) != Some(answer))
}
