//! Findings in brief: one line each, and one line for several of the same kind about the same label.

use std::collections::{BTreeMap, HashMap};

use super::{Finding, Severity};
use crate::diagnostic::quoted;
use crate::label::LabelId;
use crate::rule::RuleId;
use crate::text::Document;

/// Minimum number of findings of one kind that become one line.
const MIN_GROUP: usize = 3;

/// One line about one or several findings.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// The severity of its findings.
    pub severity: Severity,
    /// The kind of its findings.
    pub code: &'static str,
    /// The first line of the source that it is about; `None` if it is about the whole model.
    pub line: Option<usize>,
    /// The number of findings.
    pub n_findings: usize,
    /// The message: a sentence in lower case without a full stop.
    pub message: String,
    /// Why it is so, in at most two lines; only for failed expectations.
    pub why: Vec<String>,
}

impl Summary {
    fn of_one(finding: &Finding) -> Self {
        Self {
            severity: finding.severity,
            code: finding.code,
            line: (!finding.span.is_empty()).then_some(finding.line),
            n_findings: 1,
            message: finding.message.clone(),
            why: finding.why.clone(),
        }
    }

    /// A line about findings of the same kind, in order of position. `about` is the label that their rules share.
    fn of_several(findings: &[&Finding], about: Option<&str>) -> Self {
        let (first, n) = (findings[0], findings.len());
        let rules = || format!("{n} rules about {}", quoted(about.unwrap_or_default()));
        let message = match (first.code, about) {
            ("implied-rule", Some(_)) => {
                format!(
                    "{} already follow from other rules, so they have no effect: {}",
                    rules(),
                    lines(findings)
                )
            }
            ("contradicted-rule", Some(_)) => format!(
                "{} can never be true because of other rules, so they have no effect: {}",
                rules(),
                lines(findings)
            ),
            ("duplicate-rule", Some(_)) => {
                format!("{} say the same as other rules: {}", rules(), lines(findings))
            }
            _ => {
                format!("{} (and {} more findings like it: {})", first.message, n - 1, lines(&findings[1..]))
            }
        };
        Self { n_findings: n, message, ..Self::of_one(first) }
    }

    /// `model.prsl:3: warning[no-effect]: rule ...`.
    ///
    /// ```
    /// use prsl::{Document, lint};
    ///
    /// let document = Document::parse("label a prior 0.3\nlabel b prior 0.1\nrule 0.5: a -> b\n")?;
    /// let summaries = lint::summarize(&document, &lint::check(&document));
    /// assert_eq!(
    ///     summaries[0].render("model.prsl"),
    ///     "model.prsl:3: warning[no-effect]: rule `a -> b` has probability 0.5, so it has no effect"
    /// );
    /// # Ok::<(), prsl::Error>(())
    /// ```
    pub fn render(&self, file: &str) -> String {
        let line = self.line.map_or_else(String::new, |line| format!(":{line}"));
        format!("{file}{line}: {}[{}]: {}", self.severity.name(), self.code, self.message)
    }
}

/// Summarizes the findings of a document, one line each, in order of position. Three or more findings of the same kind
/// become one line; findings about rules also need a label that all of these rules are about. Errors have a line each.
///
/// ```
/// use prsl::{Document, lint};
///
/// let text = "label a prior 0.3\nlabel b prior 0.1\nlabel c prior 0.1\nlabel d prior 0.1\n\
///             rule 1: a -> b\nrule 1: b -> c\nrule 1: c -> d\nrule 1: a -> c\nrule 1: a -> d\nrule 1: a -> c | d\n";
/// let document = Document::parse(text)?;
/// let summaries = lint::summarize(&document, &lint::check_rules(&document));
/// assert_eq!(summaries.len(), 1);
/// assert_eq!(
///     summaries[0].message,
///     "3 rules about `a` already follow from other rules, so they have no effect: lines 8, 9, 10"
/// );
/// # Ok::<(), prsl::Error>(())
/// ```
pub fn summarize(document: &Document, findings: &[Finding]) -> Vec<Summary> {
    let model = document.model();
    let starts: HashMap<usize, RuleId> =
        model.rule_ids().map(|rule| (document.rule_span(rule).start, rule)).collect();
    // The findings of each kind, about rules and about other places.
    let mut kinds: BTreeMap<(Severity, &str, bool), Vec<usize>> = BTreeMap::new();
    let mut summaries: Vec<(usize, Summary)> = Vec::new();
    for (index, finding) in findings.iter().enumerate() {
        if finding.severity == Severity::Error || finding.span.is_empty() {
            summaries.push((index, Summary::of_one(finding)));
        } else {
            let is_rule = starts.contains_key(&finding.span.start);
            kinds.entry((finding.severity, finding.code, is_rule)).or_default().push(index);
        }
    }
    for ((_, _, is_rule), indices) in kinds {
        let groups = if is_rule {
            let scope = |index: &usize| model.rule(starts[&findings[*index].span.start]).scope();
            by_label(&indices.iter().map(scope).collect::<Vec<_>>(), model.labels().len())
        } else if indices.len() >= MIN_GROUP {
            vec![(None, (0..indices.len()).collect())]
        } else {
            (0..indices.len()).map(|place| (None, vec![place])).collect()
        };
        for (label, places) in groups {
            let members: Vec<&Finding> = places.iter().map(|&place| &findings[indices[place]]).collect();
            let summary = match members[..] {
                [only] => Summary::of_one(only),
                _ => Summary::of_several(&members, label.map(|label| model.label(label).name())),
            };
            summaries.push((indices[places[0]], summary));
        }
    }
    summaries.sort_by_key(|(index, _)| *index);
    summaries.into_iter().map(|(_, summary)| summary).collect()
}

/// Groups rules, given by their labels, around the labels that most of the remaining rules share. Rules that are in no
/// group of at least [`MIN_GROUP`] stay alone.
fn by_label(scopes: &[Vec<LabelId>], n_labels: usize) -> Vec<(Option<LabelId>, Vec<usize>)> {
    let mut rules_of = vec![Vec::new(); n_labels];
    for (rule, scope) in scopes.iter().enumerate() {
        scope.iter().for_each(|label| rules_of[label.index()].push(rule));
    }
    let mut n_left: Vec<usize> = rules_of.iter().map(Vec::len).collect();
    let mut is_left = vec![true; scopes.len()];
    let mut groups = Vec::new();
    // The first of several labels with the most rules.
    while let Some(label) = (0..n_labels).rev().max_by_key(|&label| n_left[label])
        && n_left[label] >= MIN_GROUP
    {
        let group: Vec<usize> = rules_of[label].iter().copied().filter(|&rule| is_left[rule]).collect();
        for &rule in &group {
            is_left[rule] = false;
            scopes[rule].iter().for_each(|label| n_left[label.index()] -= 1);
        }
        groups.push((Some(LabelId::new(label)), group));
    }
    groups.extend((0..scopes.len()).filter(|&rule| is_left[rule]).map(|rule| (None, vec![rule])));
    groups
}

/// `line 3`, or `lines 3, 5, 8`.
fn lines(findings: &[&Finding]) -> String {
    let lines: Vec<String> = findings.iter().map(|finding| finding.line.to_string()).collect();
    format!("line{} {}", if lines.len() == 1 { "" } else { "s" }, lines.join(", "))
}
