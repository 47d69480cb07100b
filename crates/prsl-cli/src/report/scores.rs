//! Sections about likelihoods and scores.

use prsl::learn::Fold;
use prsl::metrics::Metric;
use prsl_plot::escape;

use super::html::{cell, head, number, paragraph, section, table, tagged_row};
use crate::evaluate::{self, Scored};
use crate::learn::{Learning, Likelihood, Outcome, Validated};

/// The likelihoods of the beliefs alone, the base and the learned model.
pub(super) fn likelihoods(outcome: &Outcome<'_>) -> String {
    let lines = outcome.likelihoods();
    let has_training = lines.iter().any(|line| line.training.is_some());
    let has_validation = lines.iter().any(|line| line.validation.is_some());
    let first = lines.first();
    let row = |line: &Likelihood| {
        let mut cells = vec![cell(line.name)];
        if has_training {
            cells.extend(with_gain(line.training, first.and_then(|first| first.training)));
        }
        if has_validation {
            cells.extend(with_gain(line.validation, first.and_then(|first| first.validation)));
        }
        tagged_row(&cells)
    };
    let gain = "over the beliefs alone";
    let columns = [(has_training, "training rows"), (has_validation, "validation rows")];
    let columns = columns.into_iter().filter(|(is_shown, _)| *is_shown).flat_map(|(_, name)| [name, gain]);
    let names: Vec<&str> = [""].into_iter().chain(columns).collect();
    let note =
        "Mean joint log-likelihood: the log probability of all known labels of a row, mean over the rows.";
    section("Likelihood", &paragraph(note), &table(&head(&names), lines.iter().map(row)))
}

fn with_gain(value: Option<f64>, alone: Option<f64>) -> [String; 2] {
    let gain = value.zip(alone).map(|(value, alone)| value - alone).filter(|gain| *gain != 0.0);
    [
        number(value.map_or("-".to_owned(), |value| format!("{value:.4}"))),
        number(gain.map_or(String::new(), |gain| format!("{gain:+.4}"))),
    ]
}

/// The cross-validated scores, and those of each fold.
pub(super) fn cross_validation(validated: &Validated) -> String {
    let Some(sentence) = validated.sentence() else { return String::new() };
    let Validated::Done(scores) = validated else {
        return section("Cross-validation", &paragraph(&sentence), "");
    };
    let shown = |value: Option<f64>| number(value.map_or("-".to_owned(), |value| format!("{value:.4}")));
    let row = |(place, fold): (usize, &Fold)| {
        let counts = [number(place + 1), number(fold.n_rows), number(fold.n_rules)];
        tagged_row(&[counts.concat(), shown(fold.log_likelihood), shown(fold.joint_accuracy)])
    };
    let head = head(&["fold", "rows", "learned rules", "log-likelihood", "joint accuracy"]);
    let note = "Each fold is scored by a model that was learned from the other rows, so this estimates the scores on new \
                rows. The number after ± is the standard error of the mean over folds.";
    let table = table(&head, scores.folds.iter().enumerate().map(row));
    section("Cross-validation", &(paragraph(&sentence) + &paragraph(note)), &table)
}

/// All scores of the evaluated models, with bootstrap intervals.
pub(super) fn scores(outcome: &Outcome<'_>) -> String {
    let scored: Vec<&Scored> = outcome.evaluated.iter().map(|it| &it.scored).collect();
    let names: Vec<&str> = [""].into_iter().chain(outcome.evaluated.iter().map(|it| it.name)).collect();
    let row = |metric: Metric| {
        let score = |place: usize| score_cell(&scored, place, metric);
        tagged_row(&[vec![cell(evaluate::title(metric))], (0..scored.len()).map(score).collect()].concat())
    };
    let note = format!(
        "On the {} {}In brackets are 95 % bootstrap intervals (1,000 resamples).{}",
        evaluated_rows(outcome),
        match &outcome.learning {
            _ if outcome.valid.is_none() => "from which the model was learned: new rows will score lower. ",
            Learning::Paper(_) => "which also selected the step: new rows will score somewhat lower. ",
            Learning::Clauses(_) => "which were not used for learning. ",
        },
        match outcome.evaluated_rows().weights().iter().all(|weight| *weight == 1.0) {
            true => "",
            false => " Row weights are ignored here.",
        }
    );
    section("Scores", &paragraph(&note), &table(&head(&names), Metric::ALL.into_iter().map(row)))
}

/// The score of a model. It is highlighted if it is better than all others.
fn score_cell(scored: &[&Scored], place: usize, metric: Metric) -> String {
    let is_best =
        (0..scored.len()).all(|other| other == place || scored[place].is_better_than(scored[other], metric));
    let [score, interval] = scored[place].shown(metric, None);
    let class = if is_best { "number better" } else { "number" };
    let (score, interval) = (escape(&score), escape(&interval));
    format!("<td class=\"{class}\">{score}<br/><span class=\"soft\">{interval}</span></td>")
}

/// `validation rows,` or `training rows,`.
pub(super) fn evaluated_rows(outcome: &Outcome<'_>) -> &'static str {
    if outcome.valid.is_some() { "validation rows," } else { "training rows," }
}
