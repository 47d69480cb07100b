//! Checks of well-formed models: contradictory rules, rules without effect, duplicates, combinations without effect,
//! and failed expectations.
//!
//! ```
//! use prsl::Document;
//! use prsl::lint::{self, Severity};
//!
//! let document = Document::parse("\
//! label weather: sun, rain
//! label ground: dry, wet
//! rule 1 wets: rain -> wet
//! rule 1: rain
//! rule 1: dry
//! ")?;
//! let findings = lint::check(&document);
//! assert_eq!(findings[0].code, "contradiction");
//! assert_eq!(findings[0].severity, Severity::Error);
//! assert_eq!(findings[0].related.len(), 2);
//! # Ok::<(), prsl::Error>(())
//! ```

mod calibrators;
mod combinations;
mod engine;
mod expectations;
mod implied;
mod outcomes;
mod probabilities;
mod reasons;
mod report;
mod rules;
mod shape;
mod summary;
mod table;
mod undecided;
mod witnesses;

use std::ops::Range;

use serde::Serialize;

pub use crate::diagnostic::{Diagnostic, Diagnostics, nearest};
use crate::infer::Limits;
use crate::text::Document;
use engine::Engine;
pub use implied::{Implied, implied};
pub use outcomes::{ExpectationOutcome, ExpectationResult, expectation_results};
use report::Report;
use rules::Checked;
pub use summary::{Summary, summarize};
pub(crate) use table::Table;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Severity {
    /// The model cannot be intended like this.
    Error,
    /// The model is probably not intended like this.
    Warning,
    /// Information; nothing is wrong.
    Note,
}

impl Severity {
    /// `error`, `warning` or `note`.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        }
    }
}

/// How a byte range is written in JSON.
#[cfg(feature = "openapi")]
#[derive(utoipa::ToSchema)]
#[allow(dead_code, reason = "it describes a range to readers of the API")]
struct Span {
    /// The first byte.
    start: usize,
    /// The byte after the last one.
    end: usize,
}

/// A result of the checks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct Finding {
    /// Its severity.
    pub severity: Severity,
    /// The kind of finding in kebab case, such as `duplicate-rule`.
    pub code: &'static str,
    /// Byte range in the document's source; empty if the finding is about the whole model.
    #[cfg_attr(feature = "openapi", schema(value_type = Span))]
    pub span: Range<usize>,
    /// Line of the span's start, from 1.
    pub line: usize,
    /// Column of the span's start in characters, from 1.
    pub column: usize,
    /// The message: a sentence in lower case without a full stop.
    pub message: String,
    /// Advice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// Why it is so, in at most two lines; only for failed expectations.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub why: Vec<String>,
    /// Other places that are relevant.
    pub related: Vec<Related>,
}

/// A place in the document that is relevant to a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct Related {
    /// Byte range in the document's source.
    #[cfg_attr(feature = "openapi", schema(value_type = Span))]
    pub span: Range<usize>,
    /// Line of the span's start, from 1.
    pub line: usize,
    /// Column of the span's start in characters, from 1.
    pub column: usize,
    /// The relevance of the place.
    pub message: String,
}

impl Finding {
    /// The finding of a syntax error in `source`, with the code `syntax`.
    pub fn of_syntax_error(error: &Diagnostic, source: &str) -> Self {
        let (line, column) = error.position(source);
        let Diagnostic { span, message, help } = error.clone();
        let (severity, why, related) = (Severity::Error, Vec::new(), Vec::new());
        Self { severity, code: "syntax", span, line, column, message, help, why, related }
    }

    /// Whether it is an error or a warning, not just a note.
    pub fn counts(&self) -> bool {
        self.severity != Severity::Note
    }

    /// Renders the finding with its lines of `source` and carets, as compilers do.
    ///
    /// ```
    /// use prsl::{Document, lint};
    ///
    /// let document = Document::parse("label a prior 0.3\nlabel b prior 0.1\nrule 0.5: a -> b\n")?;
    /// let finding = &lint::check(&document)[0];
    /// assert_eq!(finding.render("model.prsl", document.source()), "\
    /// warning[no-effect]: rule `a -> b` has probability 0.5, so it has no effect
    ///  --> model.prsl:3:1
    ///   |
    /// 3 | rule 0.5: a -> b
    ///   | ^^^^^^^^^^^^^^^^
    ///   = help: remove it, or give it another probability
    /// ");
    /// # Ok::<(), prsl::Error>(())
    /// ```
    pub fn render(&self, file: &str, source: &str) -> String {
        let heading = format!("{}[{}]", self.severity.name(), self.code);
        let mut text = if self.span.is_empty() {
            let help = self.help.as_ref().map_or_else(String::new, |help| format!("  = help: {help}\n"));
            format!("{heading}: {}\n --> {file}\n{help}", self.message)
        } else {
            let help = self.help.clone();
            let diagnostic = Diagnostic { span: self.span.clone(), message: self.message.clone(), help };
            diagnostic.render_at(&heading, file, source, (self.line, self.column))
        };
        let margin = " ".repeat(self.line.to_string().len());
        self.why.iter().for_each(|why| text.push_str(&format!("{margin} = why: {why}\n")));
        for related in &self.related {
            let diagnostic = Diagnostic::new(related.span.clone(), related.message.clone());
            text.push_str(&diagnostic.render_at("note", file, source, (related.line, related.column)));
        }
        text
    }
}

/// Runs all checks of a model. Findings are in order of position; notes about the whole model come last.
///
/// ```
/// use prsl::{Document, lint};
///
/// let document = Document::parse("\
/// label weather: sun, rain
/// label ground: dry, wet
/// rule 0.9: rain -> wet
/// rule 0.8: dry -> sun
/// ")?;
/// let counting: Vec<_> = lint::check(&document).into_iter().filter(|finding| finding.counts()).collect();
/// assert_eq!(counting.len(), 1);
/// assert_eq!(counting[0].code, "duplicate-rule");
/// # Ok::<(), prsl::Error>(())
/// ```
pub fn check(document: &Document) -> Vec<Finding> {
    check_within(document, Limits::default())
}

/// The same with a memory limit for inference. Expectations that need more are not checked.
///
/// ```
/// use prsl::{Document, Limits, lint};
///
/// let document = Document::parse("label a prior 0.3\nlabel b prior 0.1\nrule 0.9: a -> b\nexpect => a > 0.5\n")?;
/// let codes = |limits| lint::check_within(&document, limits).into_iter().map(|finding| finding.code).collect::<Vec<_>>();
/// assert!(codes(Limits::default()).contains(&"failed-expectation"));
/// assert!(codes(Limits { memory: 1 }).contains(&"not-checked"));
/// # Ok::<(), prsl::Error>(())
/// ```
pub fn check_within(document: &Document, limits: Limits) -> Vec<Finding> {
    check_affordable(document, limits, f64::INFINITY)
}

/// The same with a limit on the work of all expectations together, in multiply-adds. Expectations beyond it are not
/// checked. The work is counted, so the findings do not depend on the machine.
///
/// ```
/// use prsl::{Document, Limits, lint};
///
/// let document = Document::parse("label a prior 0.3\nlabel b prior 0.1\nrule 0.9: a -> b\nexpect => a > 0.5\n")?;
/// let findings = lint::check_affordable(&document, Limits::default(), 1.0);
/// assert_eq!(findings[0].code, "not-checked");
/// # Ok::<(), prsl::Error>(())
/// ```
pub fn check_affordable(document: &Document, limits: Limits, work: f64) -> Vec<Finding> {
    let mut report = Report::new(document);
    let checked = without_inference(&mut report);
    let engine = Engine::new(document.model(), limits).with_work(work);
    undecided::report(&mut report, checked, Some(&engine));
    expectations::check(&mut report, &engine);
    report.into_findings()
}

/// Runs all checks that need no inference: no expectations, and no note about the cost of inference. For large models
/// this is much faster.
///
/// ```
/// use prsl::{Document, lint};
///
/// let document = Document::parse("label a prior 0.3\nrule 0.9: a\nexpect => a < 0.1\n")?;
/// assert_eq!(lint::check_rules(&document), []);
/// assert_eq!(lint::check(&document)[0].code, "failed-expectation");
/// # Ok::<(), prsl::Error>(())
/// ```
pub fn check_rules(document: &Document) -> Vec<Finding> {
    let mut report = Report::new(document);
    let checked = without_inference(&mut report);
    undecided::report(&mut report, checked, None);
    report.into_findings()
}

fn without_inference(report: &mut Report<'_>) -> Checked {
    let checked = rules::check(report);
    shape::check(report, &checked.constant);
    probabilities::check(report, &checked.constant);
    calibrators::check(report);
    combinations::check(report);
    combinations::count(report);
    checked
}
