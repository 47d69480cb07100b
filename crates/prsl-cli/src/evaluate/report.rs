//! Scores as text and as JSON.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use prsl::metrics::{ClassScores, Evaluation, Intervals, LabelScores, Metric, Scores};
use prsl::{Engine, Model};
use serde::{Serialize, Serializer};

use super::parts::Part;
use crate::progress::grouped;
use crate::style::{self, styled};

/// Default number of decimals of scores.
pub const DIGITS: usize = 4;

/// Scores with their intervals.
pub struct Scored {
    scores: Scores,
    /// `None` if they are not asked for.
    intervals: Option<Intervals>,
}

impl Scored {
    /// The scores of these answers, with their intervals if they are asked for.
    pub fn new(evaluation: &Evaluation, intervals: Option<Intervals>) -> Scored {
        Scored { scores: evaluation.scores(), intervals }
    }

    /// A score; `None` if it is undefined.
    pub fn get(&self, metric: Metric) -> Option<f64> {
        self.scores.get(metric)
    }

    /// `0.6200` and `[0.5200, 0.7100]`, or `-`.
    pub fn shown(&self, metric: Metric, digits: Option<usize>) -> [String; 2] {
        let digits = digits.unwrap_or(DIGITS);
        let score = self.scores.get(metric).map_or("-".to_owned(), |score| format!("{score:.digits$}"));
        let interval = self.intervals.as_ref().and_then(|intervals| intervals.get(metric));
        [score, interval.map_or(String::new(), |[low, high]| format!("[{low:.digits$}, {high:.digits$}]"))]
    }

    /// Whether a score is better than the other one.
    pub fn is_better_than(&self, other: &Scored, metric: Metric) -> bool {
        match (self.scores.get(metric), other.scores.get(metric)) {
            (Some(score), Some(other)) if metric.higher_is_better() => score > other,
            (Some(score), Some(other)) => score < other,
            _ => false,
        }
    }
}

/// The object of `--format json`: the scores of the whole model, of each label, and of the model's parts.
#[derive(Serialize)]
pub struct Object<'a> {
    #[serde(flatten)]
    whole: Fields<'a>,
    parts: BTreeMap<&'static str, Fields<'a>>,
    labels: Vec<LabelFields<'a>>,
}

impl<'a> Object<'a> {
    /// The object of these parts, the whole model last.
    pub fn new(model: &'a Model, scored: &'a [(Part, Scored)], labels: &'a [LabelScores]) -> Self {
        let (whole, parts) = scored.split_last().expect("the model is the last part");
        Self {
            whole: Fields(&whole.1),
            parts: parts.iter().map(|(part, scored)| (part.key(), Fields(scored))).collect(),
            labels: labels.iter().map(|scores| LabelFields::new(model, scores)).collect(),
        }
    }
}

/// Scores by name; undefined ones are null.
struct Fields<'a>(&'a Scored);

impl Serialize for Fields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        let scores = &self.0.scores;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("rows", &scores.rows)?;
        for metric in Metric::ALL {
            map.serialize_entry(metric.name(), &scores.get(metric))?;
        }
        map.serialize_entry("engine", scores.engine.name())?;
        map.serialize_entry("not_converged", &scores.not_converged)?;
        map.serialize_entry("impossible", &scores.impossible)?;
        map.serialize_entry("intervals", &self.0.intervals.as_ref().map(ByName))?;
        map.end()
    }
}

struct ByName<'a>(&'a Intervals);

impl Serialize for ByName<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(Metric::ALL.map(|metric| (metric.name(), self.0.get(metric))))
    }
}

#[derive(Serialize)]
struct LabelFields<'a> {
    label: &'a str,
    known: usize,
    accuracy: Option<f64>,
    log_loss: Option<f64>,
    classes: Vec<ClassFields<'a>>,
}

#[derive(Serialize)]
struct ClassFields<'a> {
    category: &'a str,
    positives: usize,
    f1: Option<f64>,
    auc: Option<f64>,
    sensitivity: Option<f64>,
    specificity: Option<f64>,
}

impl<'a> LabelFields<'a> {
    fn new(model: &'a Model, scores: &'a LabelScores) -> Self {
        let class = |class: &'a ClassScores| ClassFields {
            category: &class.category,
            positives: class.positives,
            f1: class.f1,
            auc: class.auc,
            sensitivity: class.sensitivity,
            specificity: class.specificity,
        };
        Self {
            label: model.label(scores.label).name(),
            known: scores.known,
            accuracy: scores.accuracy,
            log_loss: scores.log_loss,
            classes: scores.classes.iter().map(class).collect(),
        }
    }
}

/// The name of a score for people.
pub fn title(metric: Metric) -> &'static str {
    match metric {
        Metric::JointAccuracy => "joint accuracy",
        Metric::JointAccuracyMarginals => "joint accuracy, label by label",
        Metric::HammingLoss => "Hamming loss (lower is better)",
        Metric::MeanJointLogLikelihood => "joint log-likelihood, mean",
        Metric::MedianJointLogLikelihood => "joint log-likelihood, median",
        Metric::MeanLabelLogLikelihood => "log-likelihood, label by label, mean",
        Metric::MedianLabelLogLikelihood => "log-likelihood, label by label, median",
        Metric::MicroF1 => "micro F1",
        Metric::MacroF1 => "macro F1",
        Metric::ExpectedCalibrationError => "calibration error (lower is better)",
        other => other.name(),
    }
}

/// Tables for people: every score of every part, the best one highlighted, and the scores of each label. Scores have this
/// many decimals.
pub fn text(
    model: &Model,
    scored: &[(Part, Scored)],
    labels: [&[LabelScores]; 2],
    digits: Option<usize>,
) -> String {
    let (_, whole) = scored.last().expect("the model is the last part");
    let mut text = format!("{}\n\n", heading(&whole.scores));
    let n_columns = Metric::ALL.iter().map(|&metric| whole.shown(metric, digits)[1].len()).max().unwrap_or(0);
    let titles = scored.iter().map(|(part, _)| (*part).title().to_owned());
    let mut lines = vec![[String::new()].into_iter().chain(titles).collect::<Vec<String>>()];
    for metric in Metric::ALL {
        let score = |place: usize| {
            let is_best = (0..scored.len())
                .all(|other| other == place || scored[place].1.is_better_than(&scored[other].1, metric));
            let [score, interval] = scored[place].1.shown(metric, digits);
            let score = emphasized(format!("{score:>8}"), is_best);
            if place + 1 == scored.len() { format!("{score}  {interval:>n_columns$}") } else { score }
        };
        let scores = (0..scored.len()).map(score);
        lines.push([title(metric).to_owned()].into_iter().chain(scores).collect());
    }
    text += &columns(&lines);
    text.push('\n');
    text += &by_label(model, labels, digits.unwrap_or(3));
    if whole.intervals.is_some() {
        let _ = writeln!(text, "\nIn brackets: 95 % bootstrap intervals (1,000 resamples of the rows).");
    }
    if scored.iter().any(|(part, _)| *part == Part::Calibrated) && !model.rules().is_empty() {
        text += "Calibrators that were fitted beside rules may be wrong without them.\n";
    }
    text + &remarks(&whole.scores)
}

/// Maximum number of lines of the table of labels.
const MAX_LINES: usize = 60;

/// The scores of each label, of the beliefs as they are given and of the whole model.
fn by_label(model: &Model, [given, whole]: [&[LabelScores]; 2], digits: usize) -> String {
    let number = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.digits$}"));
    let header = ["label", "known", "true", "log loss", "F1", "AUC", "sensitivity", "specificity"];
    let mut lines = vec![header.map(str::to_owned).to_vec()];
    for (given, whole) in given.iter().zip(whole) {
        let label = model.label(whole.label);
        let mut first = [
            grouped(whole.known as u64),
            format!("{} -> {}", number(given.log_loss), number(whole.log_loss)),
        ];
        for (before, class) in given.classes.iter().zip(&whole.classes) {
            let name = match label.is_binary() {
                true => label.name().to_owned(),
                false => format!("{}={}", label.name(), class.category),
            };
            let [known, loss] = std::mem::take(&mut first);
            let change = |a: Option<f64>, b: Option<f64>| format!("{} -> {}", number(a), number(b));
            lines.push(vec![
                name,
                known,
                grouped(class.positives as u64),
                loss,
                change(before.f1, class.f1),
                change(before.auc, class.auc),
                change(before.sensitivity, class.sensitivity),
                change(before.specificity, class.specificity),
            ]);
        }
    }
    let n_left = lines.len().saturating_sub(MAX_LINES + 1);
    lines.truncate(MAX_LINES + 1);
    let mut text = columns(&lines);
    if n_left > 0 {
        let _ = writeln!(text, "and {n_left} more; `--format json` has all of them");
    }
    text + "Before the arrow: beliefs as given. After it: the whole model.\n"
}

/// Lines of cells in columns, the first to the left and all others to the right.
pub fn columns(lines: &[Vec<String>]) -> String {
    let n = lines.iter().map(Vec::len).max().unwrap_or(0);
    let cell = |line: &Vec<String>, column: usize| line.get(column).map_or(0, |cell| style::width(cell));
    let widths: Vec<usize> =
        (0..n).map(|column| lines.iter().map(|line| cell(line, column)).max().unwrap_or(0)).collect();
    let mut text = String::new();
    for line in lines {
        let mut out = String::new();
        for (column, (cell, width)) in line.iter().zip(&widths).enumerate() {
            let gap = " ".repeat(width.saturating_sub(style::width(cell)));
            match column {
                0 => out += &format!("{cell}{gap}"),
                _ => out += &format!("  {gap}{cell}"),
            }
        }
        text += out.trim_end();
        text.push('\n');
    }
    text
}

fn emphasized(text: String, is_better: bool) -> String {
    if is_better { styled(style::GOOD, text) } else { text }
}

fn heading(scores: &Scores) -> String {
    let rows = counted(scores.rows);
    let unknown = match scores.rows - scores.scored_rows {
        0 => String::new(),
        n => format!(", {} of them without any known truth", grouped(n as u64)),
    };
    let engine = scores.engine.name().replace('_', " ");
    styled(style::STRONG, format_args!("{rows}{unknown}; {engine}"))
}

/// Notes below the table.
fn remarks(scores: &Scores) -> String {
    let mut text = String::new();
    let mut tell = |n: usize, what: &str| {
        if n > 0 {
            let _ = writeln!(text, "{} {what}", styled(style::WARNING, counted(n)));
        }
    };
    tell(
        scores.impossible,
        "impossible: the truth has probability 0, or rules and beliefs contradict each other",
    );
    tell(scores.not_converged, "not converged, or imprecise");
    if scores.engine == Engine::Loopy {
        let note = styled(style::NOTE, "note");
        let _ = writeln!(text, "{note}: no joint log-likelihood, which takes exact inference");
    }
    text
}

fn counted(rows: usize) -> String {
    if rows == 1 { "1 row".to_owned() } else { format!("{} rows", grouped(rows as u64)) }
}
