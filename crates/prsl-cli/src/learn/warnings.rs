//! Warnings about the rows and the learned model.

use anyhow::Result;
use prsl::learn::{Contradiction, Examples, contradictions};
use prsl::model::Node;
use prsl::{Document, Limits, Model, lint};

use super::Learning;
use crate::output;
use crate::progress::{counted, grouped};
use crate::style::{self, styled};

/// Maximum length of a rule in a warning, in characters.
const RULE_LENGTH: usize = 200;

/// Maximum number of failed expectations shown; the others are only counted.
const EXPECTATIONS: usize = 3;

/// Prints a warning.
pub(super) fn warn(message: &str) {
    output::complain(&format!("{}: {message}\n", styled(style::WARNING, "warning")));
}

/// Warns about labels with too few informative rows, and about rules that the rows contradict.
pub(super) fn before(base: &Model, train: &Examples) -> Result<()> {
    warn_about_labels(base, train);
    for contradiction in contradictions(base, train)? {
        warn(&contradicted(base, &contradiction));
    }
    Ok(())
}

/// Warns about rows that were not learned from, and about expectations that fail in the learned model.
pub(super) fn after(learning: &Learning, limits: Limits) -> Result<()> {
    let n_impossible = learning.n_impossible();
    if n_impossible > 0 {
        let rows = counted(n_impossible as u64, "row");
        let [is, was] = if n_impossible == 1 { ["is", "was"] } else { ["are", "were"] };
        warn(&format!("{rows} {is} excluded by rules of probability 0 or 1, and {was} not learned from"));
    }
    if learning.model().expectations().is_empty() {
        return Ok(());
    }
    let document = Document::of_model(learning.model())?;
    let findings = lint::check_within(&document, limits);
    let failed: Vec<_> = findings.iter().filter(|finding| finding.code == "failed-expectation").collect();
    for finding in failed.iter().take(EXPECTATIONS) {
        let text = &document.source()[finding.span.clone()];
        warn(&format!("`{text}` fails in the learned model: {}", finding.message));
    }
    if let Some(left) = failed.len().checked_sub(EXPECTATIONS).filter(|left| *left > 0) {
        let lines = counted(left as u64, "other `expect` line");
        let fail = if left == 1 { "fails" } else { "fail" };
        warn(&format!("{lines} {fail} in the learned model; `prsl check` shows all"));
    }
    Ok(())
}

fn warn_about_labels(model: &Model, train: &Examples) {
    let mut all: Vec<Vec<usize>> = model.labels().iter().map(|label| vec![0; label.n_categories()]).collect();
    for truth in train.truths() {
        truth.known().for_each(|(label, category)| all[label.index()][category.index()] += 1);
    }
    for (label, counts) in model.labels().iter().zip(all) {
        let seen: Vec<usize> = (0..counts.len()).filter(|&category| counts[category] > 0).collect();
        let name = label.name();
        match seen[..] {
            [] => warn(&format!("label `{name}` has no known truth in the rows to learn from")),
            [only] => {
                let only = &label.categories()[only];
                warn(&format!("label `{name}` is always `{only}` in the rows to learn from"));
            }
            _ => {}
        }
    }
}

/// A rule that the rows contradict, with the probability that they suggest.
fn contradicted(base: &Model, found: &Contradiction) -> String {
    let rule = base.rule(found.rule);
    let mut text = base.rule_text(found.rule);
    if text.chars().count() > RULE_LENGTH {
        text = text.chars().take(RULE_LENGTH).chain(['…']).collect();
    }
    let happens = if rule.probability() < 0.5 { "holds" } else { "is violated" };
    let root = rule.formula().map(|formula| &formula.nodes()[formula.root().index()]);
    let is_implication = matches!(root, Some(Node::Implies(..) | Node::ImpliedBy(..)));
    let condition = if is_implication { "its condition holds" } else { "its labels are known" };
    format!(
        "rule \"{text}\" {happens} in {:.0} % of the {} rows where {condition}; the data would say {:.2}",
        100.0 * found.broken / found.known,
        grouped(found.known.round() as u64),
        found.suggested,
    )
}
