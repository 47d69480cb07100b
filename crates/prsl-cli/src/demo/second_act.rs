//! The second act: learning from thousands of rows in addition to the three rules, and its gain.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Result;
use prsl::learn::{Learned, Learner};
use prsl::metrics::{Evaluation, Metric};
use prsl::{BeliefMatrix, LabelId, Model, RuleId, Truth};
use prsl_data::RowColumns;

use crate::arguments::TableOptions;
use crate::calibrate;
use crate::labeled::{self, Rows};
use crate::model::ModelFile;
use crate::progress::grouped;
use crate::style::{self, shell, styled};

use super::files::{Files, both};
use super::picture::{percent, prompt};
use super::warehouse;

/// Number of training rows.
const SHIFTS: usize = 3000;
/// Number of test rows.
const TOMORROW: usize = 1000;
/// Share of missing truths.
const MISSING: f64 = 0.2;
/// Seeds of the rows and of their missing truths.
const SEEDS: [u64; 2] = [301, 302];
/// Number of rules shown.
const SHOWN: usize = 6;
/// Position of the activity among the labels.
const ACTIVITY: usize = 0;

/// The learned model and its scores.
pub struct SecondAct<'a> {
    files: &'a Files,
    /// The three rules.
    pub base: Model,
    /// The rules learned in addition.
    pub learned: Learned,
    /// The frequency of each activity among the known truths.
    pub activities: Vec<f64>,
    /// The share of missing truths in training.
    missing: f64,
    scores: Vec<(&'static str, Score)>,
}

impl<'a> SecondAct<'a> {
    /// Writes the tables, learns, and scores.
    pub fn set_up(files: &'a Files) -> Result<Self> {
        write_tables(files)?;
        let base = ModelFile::read(&files.model)?.document.into_model();
        let Rows { examples, .. } = labeled::read_raw(
            &base,
            files.shifts.each_ref().map(PathBuf::as_path),
            &TableOptions::default(),
            RowColumns::default(),
        )?;
        let truths = examples.to_truths();
        let (activities, missing) = (frequencies(&base, &truths), share_missing(&truths));
        let learned = learner().learn(&base, &examples)?;
        files.write(&[(&files.learned, calibrate::text(&learned.model, &files.learned).as_bytes())])?;

        let only_calibrated = Learner { max_rules: Some(0), ..learner() };
        let calibrated = only_calibrated.learn(&base, &examples)?.model;
        let scores = [
            ("the sensors alone", &base.without_rules()?),
            ("with the three rules", &base),
            ("the same, sensors calibrated", &calibrated),
            ("with the learned rules, too", &learned.model),
        ];
        let scores = scores.map(|(name, model)| Ok((name, Score::of(model, &files.tomorrow)?)));
        let scores = scores.into_iter().collect::<Result<_>>()?;
        Ok(SecondAct { files, base, learned, activities, missing, scores })
    }

    /// The text of this act.
    pub fn show(&self) -> Result<String> {
        let mut text = String::new();
        self.introduce(&mut text)?;
        self.show_rules(&mut text)?;
        self.show_gains(&mut text)?;
        Ok(text)
    }

    fn introduce(&self, text: &mut String) -> Result<()> {
        writeln!(text, "{}\n", styled(style::STRONG, "Many shifts later: learning more rules"))?;
        writeln!(
            text,
            "An observer noted the truth of {} moments; {} of the notes are",
            grouped(SHIFTS as u64),
            percent(self.missing)
        )?;
        writeln!(
            text,
            "missing. The sun sometimes dazzles the camera, the wrist sensor slips, sensors fail, and all"
        )?;
        writeln!(text, "are overconfident.\n")?;
        Ok(())
    }

    fn show_rules(&self, text: &mut String) -> Result<()> {
        let command = format!("prsl learn {} \\", both(&self.files.shifts));
        let (base, output) = (shell(&self.files.model), shell(&self.files.learned));
        let rest = format!("    --base {base} --no-typical -o {output}");
        writeln!(text, "{}\n{}", prompt(&command), styled(style::STRONG, rest))?;
        let heading = "gain    learned rules, by their gain in log-likelihood, in nats";
        writeln!(text, "  {}", styled(style::FAINT, heading))?;
        let model = &self.learned.model;
        let rules = self.rules();
        for &(rule, gain) in rules.iter().take(SHOWN) {
            writeln!(
                text,
                "  {:<6}  {}",
                styled(style::GOOD, format!("{gain:<6.1}")),
                rule_line(model, rule)
            )?;
            writeln!(text, "          {}", styled(style::FAINT, model.rule_sentence(rule)))?;
        }
        if rules.len() > SHOWN {
            writeln!(text, "          and {} more", rules.len() - SHOWN)?;
        }
        writeln!(text)?;
        Ok(())
    }

    /// The learned rules with their gains, the largest first.
    fn rules(&self) -> Vec<(RuleId, f64)> {
        let model = &self.learned.model;
        let gain = |rule: RuleId| model.rule(rule).learned().map_or(0.0, |note| note.gain);
        let mut rules: Vec<(RuleId, f64)> =
            model.rule_ids().skip(self.learned.n_kept).map(|rule| (rule, gain(rule))).collect();
        rules.sort_by(|a, b| b.1.total_cmp(&a.1));
        rules
    }

    fn show_gains(&self, text: &mut String) -> Result<()> {
        writeln!(
            text,
            "Scores on the {} moments of the next day, which were not used for learning:\n",
            grouped(TOMORROW as u64)
        )?;
        let heading =
            format!("{:30}{:>18}{:>18}{:>18}", "", "all labels right", "activity right", "log-likelihood");
        writeln!(text, "  {}", styled(style::FAINT, heading))?;
        for (index, (name, score)) in self.scores.iter().enumerate() {
            let [all, activity, log_likelihood] = score.cells();
            let line = format!("{name:30}{all:>18}{activity:>18}{log_likelihood:>18}");
            let is_last = index + 1 == self.scores.len();
            writeln!(text, "  {}", if is_last { styled(style::GOOD, line) } else { line })?;
        }
        writeln!(text)?;
        Ok(())
    }
}

/// The scores on the test rows.
struct Score {
    all: f64,
    activity: f64,
    log_likelihood: f64,
}

impl Score {
    fn of(model: &Model, [beliefs, truth]: &[PathBuf; 2]) -> Result<Score> {
        let (rows, truths) = read(model, beliefs, truth)?;
        let scores = Evaluation::of(model, &rows, &truths)?.scores();
        let get = |metric| scores.get(metric).unwrap_or(f64::NAN);
        Ok(Score {
            all: get(Metric::JointAccuracy),
            activity: accuracy_of_activity(model, &rows, &truths)?,
            log_likelihood: get(Metric::MeanJointLogLikelihood),
        })
    }

    fn cells(&self) -> [String; 3] {
        [percent(self.all), percent(self.activity), format!("{:.3}", self.log_likelihood)]
    }
}

/// The share of rows with the right activity.
pub fn accuracy_of_activity(model: &Model, rows: &BeliefMatrix, truths: &[Truth]) -> Result<f64> {
    let only_activity = |truth: &Truth| {
        let (activity, mut only) = (LabelId::new(ACTIVITY), Truth::unknown(truth.n_labels()));
        only.set(activity, truth.category(activity));
        only
    };
    let truths: Vec<Truth> = truths.iter().map(only_activity).collect();
    let scores = Evaluation::of(model, rows, &truths)?.scores();
    Ok(scores.get(Metric::JointAccuracyMarginals).unwrap_or(f64::NAN))
}

/// Rows with their truths, calibrated by a model.
pub fn read(model: &Model, beliefs: &Path, truth: &Path) -> Result<(BeliefMatrix, Vec<Truth>)> {
    let Rows { examples, .. } =
        labeled::read(model, [beliefs, truth], &TableOptions::default(), RowColumns::default())?;
    Ok((examples.to_beliefs(), examples.to_truths()))
}

fn write_tables(files: &Files) -> Result<()> {
    let shifts = warehouse::moments(SEEDS[0], SHIFTS);
    let tomorrow = warehouse::moments(SEEDS[1], TOMORROW);
    let tables = [
        (&files.shifts[0], warehouse::beliefs(&shifts, 0)),
        (&files.shifts[1], warehouse::truths(&shifts, MISSING, SEEDS[0])),
        (&files.tomorrow[0], warehouse::beliefs(&tomorrow, 0)),
        (&files.tomorrow[1], warehouse::truths(&tomorrow, 0.0, SEEDS[1])),
        (&files.without_camera, warehouse::beliefs(&tomorrow, 1)),
    ];
    let contents: Vec<(&Path, &[u8])> =
        tables.iter().map(|(path, table)| (path.as_path(), table.as_bytes())).collect();
    files.write(&contents)
}

/// Rules only: a combination names every label, so no label could be added later.
fn learner() -> Learner {
    Learner { typical: false, ..Learner::default() }
}

fn share_missing(truths: &[Truth]) -> f64 {
    let n_cells: usize = truths.iter().map(Truth::n_labels).sum();
    let n_known: usize = truths.iter().map(Truth::n_known).sum();
    (n_cells - n_known) as f64 / n_cells as f64
}

/// The frequency of each activity among the known truths.
fn frequencies(model: &Model, truths: &[Truth]) -> Vec<f64> {
    let mut counts = vec![0; model.labels()[ACTIVITY].n_categories()];
    truths.iter().filter_map(|truth| truth.indices()[ACTIVITY]).for_each(|category| counts[category] += 1);
    let sum: i32 = counts.iter().sum();
    counts.into_iter().map(|count| f64::from(count) / f64::from(sum)).collect()
}

/// `rule 0.94: overhead -> standing`.
fn rule_line(model: &Model, rule: RuleId) -> String {
    format!("rule {}: {}", model.rule(rule).probability(), model.rule_text(rule))
}

/// `overhead, standing, high`.
pub fn named(model: &Model, assignment: &[usize]) -> String {
    let names = model.labels().iter().zip(assignment).map(|(label, &at)| label.categories()[at].as_str());
    names.collect::<Vec<_>>().join(", ")
}
