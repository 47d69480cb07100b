//! The text format `.prsl`: rules that a domain expert can read, check and keep in version control.

mod calibrator;
mod format;
mod note;
mod parse;
mod print;
mod statement;

use std::ops::Range;

use crate::error::Result;
use crate::label::LabelId;
use crate::model::Model;
use crate::rule::RuleId;
pub use crate::syntax::MAX_BYTES;
pub(crate) use calibrator::KINDS as CALIBRATORS;
pub(crate) use parse::{can_end_statement, declared};

impl Model {
    /// Reads the text format. All errors of the text are returned at once.
    pub fn parse(text: &str) -> Result<Self> {
        Ok(Document::parse(text)?.into_model())
    }
}

/// A model with the text that it was read from, and the spans of its labels, rules, combinations and expectations.
///
/// ```
/// use prsl::{Document, RuleId};
///
/// let document = Document::parse("label a\nlabel b\n\nrule 0.9: a -> b  # often\n")?;
/// assert_eq!(&document.source()[document.rule_span(RuleId::new(0))], "rule 0.9: a -> b");
/// # Ok::<(), prsl::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    source: String,
    model: Model,
    label_spans: Vec<Range<usize>>,
    rule_spans: Vec<Range<usize>>,
    typical_spans: Vec<Range<usize>>,
    expectation_spans: Vec<Range<usize>>,
}

impl Document {
    /// Maximum size of a model text, in bytes.
    pub const MAX_BYTES: usize = MAX_BYTES;

    /// Reads a model text. All its errors are returned at once.
    pub fn parse(source: &str) -> Result<Self> {
        parse::document(source)
    }

    /// A model and the spans of its parts in a source text or JSON, in the order of the model.
    pub(crate) fn from_parts(
        source: String,
        model: Model,
        label_spans: Vec<Range<usize>>,
        rule_spans: Vec<Range<usize>>,
        expectation_spans: Vec<Range<usize>>,
    ) -> Self {
        let typical_spans = Vec::new();
        Self { source, model, label_spans, rule_spans, typical_spans, expectation_spans }
    }

    /// The same document with the spans of its combinations.
    pub(crate) fn with_typical_spans(self, typical_spans: Vec<Range<usize>>) -> Self {
        Self { typical_spans, ..self }
    }

    /// A model as the text that it prints as; an error if that has more than [`Self::MAX_BYTES`].
    pub fn of_model(model: &Model) -> Result<Self> {
        Self::parse(&model.to_string())
    }

    /// The text.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The model, without the text.
    pub fn into_model(self) -> Model {
        self.model
    }

    /// The span of the declaration of a label.
    pub fn label_span(&self, label: LabelId) -> Range<usize> {
        self.label_spans[label.index()].clone()
    }

    /// The span of a rule.
    pub fn rule_span(&self, rule: RuleId) -> Range<usize> {
        self.rule_spans[rule.index()].clone()
    }

    /// The rule at a byte position.
    ///
    /// ```
    /// use prsl::{Document, RuleId};
    ///
    /// let document = Document::parse("label a\nrule 0.9: a\nrule 0.8: a | a=no\n")?;
    /// assert_eq!(document.rule_at(25), Some(RuleId::new(1)));
    /// assert_eq!(document.rule_at(3), None);
    /// # Ok::<(), prsl::Error>(())
    /// ```
    pub fn rule_at(&self, offset: usize) -> Option<RuleId> {
        let next = self.rule_spans.partition_point(|span| span.start <= offset);
        let rule = next.checked_sub(1).filter(|&rule| offset <= self.rule_spans[rule].end)?;
        Some(RuleId::new(rule))
    }

    /// The span of a typical combination, given its position.
    pub fn typical_span(&self, combination: usize) -> Range<usize> {
        self.typical_spans[combination].clone()
    }

    /// The span of an expectation, given its position.
    pub fn expectation_span(&self, expectation: usize) -> Range<usize> {
        self.expectation_spans[expectation].clone()
    }
}
