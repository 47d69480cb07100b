//! The outcome of every expectation, taken from the findings.

use std::collections::HashMap;
use std::ops::Range;

use serde::Serialize;

use super::Finding;
#[cfg(feature = "openapi")]
use super::Span;
use crate::text::Document;

/// The outcome of one expectation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct ExpectationResult {
    /// Its number, from 1.
    pub number: usize,
    /// Its text, as its author wrote it.
    pub text: String,
    /// Byte range in the document's source.
    #[cfg_attr(feature = "openapi", schema(value_type = Span))]
    pub span: Range<usize>,
    /// Line of the span's start, from 1.
    pub line: usize,
    /// Column of the span's start in characters, from 1.
    pub column: usize,
    /// Whether it is met.
    pub outcome: ExpectationOutcome,
    /// What was expected and what was found, unless it passed.
    pub message: Option<String>,
}

/// Whether an expectation is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ExpectationOutcome {
    /// The model answers as expected.
    Passed,
    /// The model answers otherwise.
    Failed,
    /// The answer is too costly within the limits.
    NotChecked,
}

/// The outcome of every expectation of a document, given the findings of [`check_within`](super::check_within).
///
/// ```
/// use prsl::lint::{self, ExpectationOutcome};
/// use prsl::Document;
///
/// let document = Document::parse("label a prior 0.3\nexpect => a < 0.5\nexpect => a > 0.5\n")?;
/// let results = lint::expectation_results(&document, &lint::check(&document));
/// assert_eq!(results[0].outcome, ExpectationOutcome::Passed);
/// assert_eq!((results[1].outcome, results[1].line), (ExpectationOutcome::Failed, 3));
/// # Ok::<(), prsl::Error>(())
/// ```
pub fn expectation_results(document: &Document, findings: &[Finding]) -> Vec<ExpectationResult> {
    let outcome = |code: &str| match code {
        "failed-expectation" => Some(ExpectationOutcome::Failed),
        "not-checked" => Some(ExpectationOutcome::NotChecked),
        _ => None,
    };
    let found =
        |finding: &Finding| Some((finding.span.start, (outcome(finding.code)?, finding.message.clone())));
    let mut found: HashMap<usize, (ExpectationOutcome, String)> = findings.iter().filter_map(found).collect();
    let source = document.source();
    let newlines = source.match_indices('\n').map(|(newline, _)| newline + 1);
    let lines: Vec<usize> = std::iter::once(0).chain(newlines).collect();
    let result = |index: usize| {
        let span = document.expectation_span(index);
        let line = lines.partition_point(|&start| start <= span.start);
        let (outcome, message) = match found.remove(&span.start) {
            Some((outcome, message)) => (outcome, Some(message)),
            None => (ExpectationOutcome::Passed, None),
        };
        ExpectationResult {
            number: index + 1,
            text: source[span.clone()].to_owned(),
            line,
            column: source[lines[line - 1]..span.start].chars().count() + 1,
            span,
            outcome,
            message,
        }
    };
    (0..document.model().expectations().len()).map(result).collect()
}
