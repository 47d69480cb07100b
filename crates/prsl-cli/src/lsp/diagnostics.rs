//! Findings as diagnostics.

use prsl::lint::{Finding, Severity};

use super::server::Client;
use super::text::Lines;
use super::types::{Diagnostic, Location, PublishDiagnostics, RelatedInformation};

/// Maximum number of diagnostics of a document. Nobody reads more, and editors become slow.
const MAX_DIAGNOSTICS: usize = 500;

/// The diagnostics of a document: errors of its text, or findings about the model. Notes are not among them.
pub fn published(
    uri: &str,
    version: Option<i64>,
    text: &str,
    findings: &[Finding],
    client: &Client,
) -> PublishDiagnostics {
    let lines = Lines::new(text, client.encoding);
    let counted = findings.iter().filter(|finding| finding.counts());
    let diagnostics =
        counted.take(MAX_DIAGNOSTICS).map(|finding| diagnostic(uri, &lines, finding, client.related));
    PublishDiagnostics { uri: uri.to_owned(), version, diagnostics: diagnostics.collect() }
}

fn diagnostic(uri: &str, lines: &Lines<'_>, finding: &Finding, has_related: bool) -> Diagnostic {
    let related = finding.related.iter().filter(|_| has_related).map(|related| RelatedInformation {
        location: Location { uri: uri.to_owned(), range: lines.range(related.span.clone()) },
        message: related.message.clone(),
    });
    let message = std::iter::once(&finding.message).chain(&finding.why).chain(&finding.help);
    Diagnostic {
        range: lines.range(finding.span.clone()),
        severity: severity(finding.severity),
        code: finding.code,
        source: "prsl",
        message: message.cloned().collect::<Vec<_>>().join("\n"),
        related_information: related.collect(),
    }
}

/// The severity as a number of the protocol.
fn severity(severity: Severity) -> u8 {
    match severity {
        Severity::Error => 1,
        Severity::Warning => 2,
        _ => 3,
    }
}
