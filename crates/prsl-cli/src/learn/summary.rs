//! The summary of a run of learning.

use std::fmt::Write as _;
use std::time::Duration;

use super::{Arguments, Learning, Outcome};
use crate::progress::{counted, grouped};
use crate::style::{self, styled};
use crate::{output, report};

/// Maximum number of rules shown; the others are only counted.
const RULES: usize = 20;

impl Arguments {
    /// The sizes of data and model, the log-likelihoods, and the rules.
    pub(super) fn summary(&self, outcome: &Outcome<'_>, duration: Duration) -> String {
        let mut text = String::new();
        let validated = match (&outcome.learning, outcome.valid) {
            (Learning::Paper(_), Some(valid)) => {
                format!(", validated on {},", grouped(valid.n_rows() as u64))
            }
            _ => String::new(),
        };
        let _ = writeln!(
            text,
            "{} from {}{validated} in {:.1} s: {}",
            styled(style::NOTE, "learned"),
            counted(outcome.train.n_rows() as u64, "row"),
            duration.as_secs_f64(),
            outcome.sizes(),
        );
        if outcome.learning.is_stopped() {
            let stopped = styled(style::WARNING, "stopped");
            let _ = writeln!(text, "{stopped} early, as requested: this is the best model so far");
        }
        text.push_str(&likelihoods(outcome));
        text.push_str(&rules(outcome));
        let _ = write!(text, "\nwritten to {}", output::name(&self.output));
        if let Some(folder) = &self.report {
            let _ = write!(text, ", with a report in {}", folder.join(report::PAGE).display());
        }
        text.push('\n');
        text
    }
}

/// A table with columns for the training and the validation set, and the cross-validation.
fn likelihoods(outcome: &Outcome<'_>) -> String {
    let lines = outcome.likelihoods();
    let has_training = lines.iter().any(|line| line.training.is_some());
    let has_validation = lines.iter().any(|line| line.validation.is_some());
    let column = |is_shown: bool, text: String| if is_shown { format!(" {text:>11}") } else { String::new() };
    let row = |name: &str, training: String, validation: String| {
        let (training, validation) = (column(has_training, training), column(has_validation, validation));
        format!("  {name:<32}{training}{validation}\n")
    };
    let number = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.4}"));
    let heading = row("mean joint log-likelihood", "training".to_owned(), "validation".to_owned());
    let mut text = format!("\n{}", styled(style::FAINT, heading.trim_end_matches('\n'))) + "\n";
    for line in &lines {
        text.push_str(&row(line.name, number(line.training), number(line.validation)));
    }
    if let Some(sentence) = outcome.validated.sentence() {
        let _ = writeln!(text, "  {sentence}");
    }
    text
}

/// The learned rules as sentences, those of the largest gain first.
fn rules(outcome: &Outcome<'_>) -> String {
    let rules = outcome.learned();
    if rules.is_empty() {
        return String::new();
    }
    let has_gains = matches!(outcome.learning, Learning::Clauses(_));
    let heading = if has_gains { "gain  learned rules, in nats" } else { "learned rules" };
    let indent = if has_gains { "    " } else { "" };
    let mut text = format!("\n  {indent}{}\n", styled(style::FAINT, heading));
    for &rule in rules.iter().take(RULES) {
        let gain = if has_gains { format!("{:>8.1}  ", outcome.gain(rule)) } else { String::new() };
        let _ = writeln!(text, "  {gain}{}", outcome.model().rule_sentence(rule));
    }
    if let Some(left) = rules.len().checked_sub(RULES).filter(|left| *left > 0) {
        let _ = writeln!(text, "  and {} more in the model", grouped(left as u64));
    }
    text
}
