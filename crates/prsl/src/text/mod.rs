//! The text format `.prsl`: rules that a domain expert can read, check and keep in version control.

mod calibrator;
mod cursor;
mod expression;
mod format;
mod lex;
pub(crate) mod parse;
pub(crate) mod print;

use std::ops::Range;

pub use format::format;

use crate::error::Result;
use crate::label::LabelId;
use crate::model::Model;
use crate::rule::RuleId;

/// The largest model text that is read, in bytes.
pub const MAX_BYTES: usize = 16 << 20;

/// A model together with the text it was read from: where each label, rule, combination and expectation stands.
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
    /// Reads a model text; all its errors are reported at once.
    pub fn parse(source: &str) -> Result<Self> {
        parse::document(source)
    }

    /// A model and where its parts stand in a source of any form, in the model's order.
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

    /// The same document, with the places of its combinations.
    pub(crate) fn with_typical_spans(self, typical_spans: Vec<Range<usize>>) -> Self {
        Self { typical_spans, ..self }
    }

    /// A model as the text that it prints as; an error if that has more than [`MAX_BYTES`].
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

    /// Where a label is declared.
    pub fn label_span(&self, label: LabelId) -> Range<usize> {
        self.label_spans[label.index()].clone()
    }

    /// Where a rule stands.
    pub fn rule_span(&self, rule: RuleId) -> Range<usize> {
        self.rule_spans[rule.index()].clone()
    }

    /// Where the combination at a position among all combinations stands.
    pub fn typical_span(&self, combination: usize) -> Range<usize> {
        self.typical_spans[combination].clone()
    }

    /// Where the expectation at a position among all expectations stands.
    pub fn expectation_span(&self, expectation: usize) -> Range<usize> {
        self.expectation_spans[expectation].clone()
    }
}
