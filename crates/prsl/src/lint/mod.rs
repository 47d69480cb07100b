//! What is questionable about a model that is well formed: rules that contradict each other, say nothing, or say it
//! twice, combinations that never count, and expectations that fail.
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
pub(crate) mod logic;
mod probabilities;
mod report;
mod rules;
mod shape;
mod solver;
mod table;
mod undecided;
mod witnesses;

use std::ops::Range;

use serde::Serialize;

use crate::diagnostic::Diagnostic;
use crate::infer::Limits;
use crate::text::Document;
use engine::Engine;
use report::Report;
use rules::Checked;
pub(crate) use table::Table;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The model cannot be meant like this.
    Error,
    /// The model is probably not meant like this.
    Warning,
    /// Worth knowing, and nothing wrong with it.
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

/// One thing that is questionable about a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// What kind of finding it is, in kebab case: `duplicate-rule`.
    pub code: &'static str,
    /// Bytes of the document's source that it is about; empty if it is about the whole model.
    pub span: Range<usize>,
    /// Line of the span's start, from 1.
    pub line: usize,
    /// Column of the span's start in characters, from 1.
    pub column: usize,
    /// What was found: a sentence in lower case without a full stop.
    pub message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// Other places that have to do with it.
    pub related: Vec<Related>,
}

/// A place that has to do with a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Related {
    /// Bytes of the document's source.
    pub span: Range<usize>,
    /// Line of the span's start, from 1.
    pub line: usize,
    /// Column of the span's start in characters, from 1.
    pub column: usize,
    /// What the place has to do with the finding.
    pub message: String,
}

impl Finding {
    /// Whether somebody should act on it; notes only inform.
    pub fn counts(&self) -> bool {
        self.severity != Severity::Note
    }

    /// The finding with its lines of `source` and carets, as compilers show it.
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
        for related in &self.related {
            let diagnostic = Diagnostic::new(related.span.clone(), related.message.clone());
            text.push_str(&diagnostic.render_at("note", file, source, (related.line, related.column)));
        }
        text
    }
}

/// Everything questionable about a model, in order of position; notes about the whole model come last.
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

/// The same with so much memory for inference: an expectation that takes more is not checked.
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
    let mut report = Report::new(document);
    let checked = without_inference(&mut report);
    let engine = Engine::new(document.model(), limits);
    undecided::report(&mut report, checked, Some(&engine));
    expectations::check(&mut report, &engine);
    report.into_findings()
}

/// Everything that is found without inference: no expectations, and nothing about what inference costs. For large
/// models this is much faster.
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
