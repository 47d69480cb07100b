//! The findings so far, and their common phrases.

use std::ops::Range;

use super::{Finding, Related, Severity};
use crate::diagnostic::quoted;
use crate::model::Model;
use crate::names::Names;
use crate::rule::RuleId;
use crate::syntax::print;
use crate::text::Document;

pub(super) struct Report<'d> {
    document: &'d Document,
    names: &'d Names,
    /// The offsets at which the lines of the source begin.
    lines: Vec<usize>,
    findings: Vec<Finding>,
}

impl<'d> Report<'d> {
    pub(super) fn new(document: &'d Document) -> Self {
        let newlines = document.source().match_indices('\n').map(|(newline, _)| newline + 1);
        let lines = std::iter::once(0).chain(newlines).collect();
        Self { document, names: document.model().names(), lines, findings: Vec::new() }
    }

    pub(super) fn model(&self) -> &'d Model {
        self.document.model()
    }

    pub(super) fn document(&self) -> &'d Document {
        self.document
    }

    pub(super) fn names(&self) -> &'d Names {
        self.names
    }

    /// Adds a finding. The caller may add advice and related places.
    pub(super) fn add(
        &mut self,
        severity: Severity,
        code: &'static str,
        span: Range<usize>,
        message: String,
    ) -> &mut Finding {
        let (line, column) = self.position(span.start);
        let (why, related) = (Vec::new(), Vec::new());
        self.findings.push(Finding { severity, code, span, line, column, message, help: None, why, related });
        self.findings.last_mut().expect("just added")
    }

    pub(super) fn add_rule(
        &mut self,
        severity: Severity,
        code: &'static str,
        rule: RuleId,
        message: String,
    ) -> &mut Finding {
        self.add(severity, code, self.document.rule_span(rule), message)
    }

    pub(super) fn related(&self, rule: RuleId, message: impl Into<String>) -> Related {
        let span = self.document.rule_span(rule);
        let (line, column) = self.position(span.start);
        Related { span, line, column, message: message.into() }
    }

    /// The rule's name or text, in backticks.
    pub(super) fn quoted(&self, rule: RuleId) -> String {
        let rule = self.model().rule(rule);
        let text = rule.name().map_or_else(|| print::body(self.names, rule.body()), str::to_owned);
        quoted(text)
    }

    /// "rule `a`", "rules `a` and `b`", or "5 rules".
    pub(super) fn listed(&self, rules: &[RuleId]) -> String {
        match rules {
            [] => "the labels alone".to_owned(),
            [rule] => format!("rule {}", self.quoted(*rule)),
            rules if rules.len() > 4 => format!("{} rules together", rules.len()),
            [first @ .., last] => {
                let first: Vec<_> = first.iter().map(|&rule| self.quoted(rule)).collect();
                format!("rules {} and {}", first.join(", "), self.quoted(*last))
            }
        }
    }

    /// Line and column (in characters), both from 1.
    fn position(&self, offset: usize) -> (usize, usize) {
        let line = self.lines.partition_point(|&start| start <= offset);
        let column = self.document.source()[self.lines[line - 1]..offset].chars().count() + 1;
        (line, column)
    }

    pub(super) fn into_findings(mut self) -> Vec<Finding> {
        self.findings.sort_by_key(|finding| {
            let span = &finding.span;
            (span.is_empty(), span.start, span.end, finding.severity, finding.code)
        });
        self.findings
    }
}

/// A probability rounded to hide binary fractions.
pub(super) fn decimal(number: f64) -> String {
    let rounded: f64 = format!("{number:.12}").parse().expect("a printed number can be read");
    let shown = if rounded == 0.0 || rounded == 1.0 { number } else { rounded };
    print::number(shown)
}
