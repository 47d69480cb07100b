//! `prsl learn --report`: a self-contained page about the learned model.

use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use prsl::calibrate::Calibrator;
use prsl::learn::{Examples, Learned};
use prsl::metrics::{Bootstrap, Evaluation, Metric};
use prsl::model::Combination;
use prsl::{Document, Label, Limits, Model, RuleId};
use prsl_plot::escape;

use crate::evaluate::{self, Scored, Scorer};
use crate::progress::{counted, grouped};
use crate::{figures, output};

/// The name of the page.
pub const PAGE: &str = "report.html";
/// The names of the figures.
const FIGURES: [&str; 2] = ["learning.svg", "reliability.svg"];
/// Maximum number of rules shown; the others are only counted.
const RULES: usize = 100;
/// Maximum number of combinations shown; the others are only counted.
const COMBINATIONS: usize = 20;

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
    /// The base model.
    pub base: &'a Model,
    /// The learned model.
    pub learned: &'a Learned,
    /// The training set.
    pub train: &'a Examples,
    /// The validation set.
    pub valid: &'a Examples,
    /// The limits of inference.
    pub limits: Limits,
}

impl Report<'_> {
    /// Writes the page, and its figures beside it.
    pub fn write(&self, folder: &Path) -> Result<()> {
        let evaluations = self.evaluations()?;
        let shown: Vec<(&str, &Evaluation)> =
            evaluations.iter().rev().map(|(name, it)| (*name, it)).collect();
        let (learning, reliability) = (figures::learning(&self.learned.curve), figures::reliability(&shown));
        for (name, figure) in FIGURES.into_iter().zip([&learning, &reliability]) {
            output::write(figure, Some(&folder.join(name)))?;
        }
        let document = Document::of_model(&self.learned.model)?;
        let sections = [
            self.lead(),
            self.likelihoods(),
            self.learned_rules(&document),
            self.kept_rules(&document),
            self.combinations(&document),
            section("Learning curve", &learning_note(), &learning),
            section("Reliability", &reliability_note(), &reliability),
            self.scores(&evaluations),
        ];
        output::write(&page(&sections.concat()), Some(&folder.join(PAGE)))
    }

    /// Scores on the validation set: of the raw beliefs, of the base if it has rules or calibrators, and of the learned
    /// model.
    fn evaluations(&self) -> Result<Vec<(&'static str, Evaluation)>> {
        let raw = self.base.without_rules()?.without_calibrators();
        let mut models = vec![("beliefs alone", &raw)];
        if *self.base != raw {
            models.push(("your model", self.base));
        }
        models.push(("learned", &self.learned.model));
        let score = |(name, model): (&'static str, &Model)| {
            let rows = self.valid.beliefs().calibrated_by(model)?;
            Ok((name, Scorer::score(model, &rows, self.valid.truths(), self.limits)?))
        };
        models.into_iter().map(score).collect()
    }

    fn n_kept(&self) -> usize {
        self.learned.model.rules().len() - self.learned.gains.len()
    }

    fn lead(&self) -> String {
        let model = &self.learned.model;
        let is_calibrated = |label: &&Label| *label.calibrator() != Calibrator::Identity;
        let n_calibrated = model.labels().iter().filter(is_calibrated).count();
        let lead = format!(
            "Learned from {} about {}, with {} in the validation set: {}, {}, {}. The validation set selected the size \
             {}.",
            counted(self.train.n_rows() as u64, "row"),
            counted(model.labels().len() as u64, "label"),
            grouped(self.valid.n_rows() as u64),
            counted(self.learned.gains.len() as u64, "rule"),
            counted(model.typical().len() as u64, "typical combination"),
            counted(n_calibrated as u64, "calibrator"),
            self.learned.size,
        );
        format!("<h1>What was learned</h1>\n{}", paragraph(&lead))
    }

    fn likelihoods(&self) -> String {
        let learned = self.learned;
        let has_rules = !self.base.rules().is_empty();
        let rows = [
            ("beliefs alone", learned.beliefs_alone),
            (
                if has_rules { "calibrated beliefs, your rules" } else { "calibrated beliefs" },
                learned.base_alone,
            ),
            ("learned", learned.validation_before_rounding),
            ("learned, rounded as written", learned.validation),
        ];
        let row = |(name, value): &(&str, f64)| {
            let gain = value - learned.beliefs_alone;
            let gain = if gain == 0.0 { String::new() } else { format!("{gain:+.4}") };
            tagged_row(&[cell(name), number(format!("{value:.4}")), number(gain)])
        };
        let head = head(&["", "mean joint log-likelihood", "over the beliefs alone"]);
        let cost = learned.validation_before_rounding - learned.validation;
        let rounding = if cost > 0.0 {
            format!("Rounding numbers and removing weak parameters cost {cost:.4}.")
        } else {
            "Rounding numbers and removing weak parameters cost nothing.".to_owned()
        };
        let note = "The log probability of all known labels of a row, mean over the validation set.";
        let table = table(&head, rows.iter().map(row));
        section("Likelihood on the validation set", &paragraph(note), &(table + &paragraph(&rounding)))
    }

    fn learned_rules(&self, document: &Document) -> String {
        let gains = &self.learned.gains;
        if gains.is_empty() {
            let nothing = "None: rules did not improve the validation set.";
            return section("Learned rules", "", &paragraph(nothing));
        }
        let largest = gains.iter().fold(f64::MIN_POSITIVE, |largest, gain| gain.abs().max(largest));
        let rules = self.learned.model.rule_ids().skip(self.n_kept()).zip(gains).take(RULES);
        let row = |(rule, gain): (RuleId, &f64)| {
            let kind = if *gain < 0.0 { "bar loss" } else { "bar" };
            let width = 100.0 * gain.abs() / largest;
            let bar = format!(
                "<td class=\"bars\"><span class=\"{kind}\" style=\"width: {width:.1}%\"></span></td>"
            );
            tagged_row(&[number(format!("{gain:+.4}")), bar, rule_cell(document, rule)])
        };
        let note = "Sorted by gain: the loss of mean joint log-likelihood on the validation set without the rule. Below each sentence is \
                    the rule as it is written in the model.";
        let table = table(&head(&["gain", "", "rule"]), rules.map(row));
        section("Learned rules", &paragraph(note), &(table + &more(gains.len(), RULES)))
    }

    fn kept_rules(&self, document: &Document) -> String {
        if self.n_kept() == 0 {
            return String::new();
        }
        let rules = self.learned.model.rule_ids().take(self.n_kept().min(RULES));
        let table = table("", rules.map(|rule| tagged_row(&[rule_cell(document, rule)])));
        section("Your rules", "", &(table + &more(self.n_kept(), RULES)))
    }

    fn combinations(&self, document: &Document) -> String {
        let model = &self.learned.model;
        if model.typical().is_empty() {
            return String::new();
        }
        let mut strongest: Vec<(usize, &Combination)> = model.typical().iter().enumerate().collect();
        strongest.sort_by(|(_, a), (_, b)| b.weight().total_cmp(&a.weight()));
        let row = |(place, combination): &(usize, &Combination)| {
            let raw = &document.source()[document.typical_span(*place)];
            tagged_row(&[in_words(&model.combination_sentence(combination), raw)])
        };
        let table = table("", strongest.iter().take(COMBINATIONS).map(row));
        let note = "Combinations of all labels, with the factor by which they are more probable than the rules predict, strongest first.";
        section("Typical combinations", &paragraph(note), &(table + &more(strongest.len(), COMBINATIONS)))
    }

    fn scores(&self, evaluations: &[(&str, Evaluation)]) -> String {
        let bootstrap = Bootstrap::default();
        let scored: Vec<Scored> = evaluations.iter().map(|(_, it)| Scored::new(it, &bootstrap)).collect();
        let names: Vec<&str> = [""].into_iter().chain(evaluations.iter().map(|(name, _)| *name)).collect();
        let row = |metric: Metric| {
            let is_best = |place: usize| {
                (0..scored.len())
                    .all(|other| other == place || scored[place].is_better_than(&scored[other], metric))
            };
            let score = |place: usize| {
                let [score, interval] = scored[place].shown(metric);
                let class = if is_best(place) { "number better" } else { "number" };
                format!(
                    "<td class=\"{class}\">{}<br/><span class=\"soft\">{}</span></td>",
                    escape(&score),
                    escape(&interval)
                )
            };
            tagged_row(
                &[vec![cell(evaluate::title(metric))], (0..scored.len()).map(score).collect()].concat(),
            )
        };
        let unweighted = if self.valid.weights().iter().all(|weight| *weight == 1.0) {
            ""
        } else {
            " Row weights are ignored here."
        };
        let note = format!(
            "On the validation set, which also selected the size and the step: new rows will score somewhat lower. In brackets are \
             95 % bootstrap intervals (1,000 resamples).{unweighted}"
        );
        section("Scores", &paragraph(&note), &table(&head(&names), Metric::ALL.into_iter().map(row)))
    }
}

fn learning_note() -> String {
    paragraph(
        "Training and validation set, step by step, for the selected size. The model is that of the best step.",
    )
}

fn reliability_note() -> String {
    paragraph(
        "On the validation set, before and after learning. Calibrated probabilities lie on the diagonal.",
    )
}

/// A rule as a sentence, and as text.
fn rule_cell(document: &Document, rule: RuleId) -> String {
    in_words(&document.model().rule_sentence(rule), &document.source()[document.rule_span(rule)])
}

fn in_words(sentence: &str, raw: &str) -> String {
    format!("<td>{}<code>{}</code></td>", escape(sentence), escape(raw))
}

/// The note about items that are not shown.
fn more(n: usize, shown: usize) -> String {
    match n.saturating_sub(shown) {
        0 => String::new(),
        left => paragraph(&format!("And {} more in the model.", grouped(left as u64))),
    }
}

fn page(body: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>What was learned</title>\n\
         <style>\n{}</style>\n</head>\n<body>\n<main>\n{body}</main>\n</body>\n</html>\n",
        include_str!("report.css")
    )
}

fn section(title: &str, note: &str, content: &str) -> String {
    format!("<h2>{}</h2>\n{note}{content}", escape(title))
}

fn paragraph(text: &str) -> String {
    format!("<p>{}</p>\n", escape(text))
}

fn table(head: &str, rows: impl Iterator<Item = String>) -> String {
    format!("<table>\n{head}<tbody>\n{}</tbody>\n</table>\n", rows.collect::<String>())
}

/// The column headings: aligned right over numbers, and left over rules and names.
fn head(names: &[&str]) -> String {
    let name = |name: &&str| {
        let class = if ["", "rule"].contains(name) { "" } else { " class=\"number\"" };
        format!("<th scope=\"col\"{class}>{}</th>", escape(name))
    };
    format!("<thead><tr>{}</tr></thead>\n", names.iter().map(name).collect::<String>())
}

fn tagged_row(cells: &[String]) -> String {
    format!("<tr>{}</tr>\n", cells.concat())
}

fn cell(text: &str) -> String {
    format!("<td>{}</td>", escape(text))
}

fn number(text: impl Display) -> String {
    format!("<td class=\"number\">{text}</td>")
}
