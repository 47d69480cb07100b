//! Parts of the page, as HTML.

use std::fmt::Display;

use prsl::{Document, RuleId};
use prsl_plot::escape;

use crate::progress::grouped;

/// A rule as a sentence, and as text.
pub(super) fn rule_cell(document: &Document, rule: RuleId) -> String {
    in_words(&document.model().rule_sentence(rule), &document.source()[document.rule_span(rule)])
}

/// A sentence, and below it the text of the model.
pub(super) fn in_words(sentence: &str, raw: &str) -> String {
    format!("<td>{}<code>{}</code></td>", escape(sentence), escape(raw))
}

/// A bar of this share of the column.
pub(super) fn bar(share: f64) -> String {
    let width = 100.0 * share;
    format!("<td class=\"bars\"><span class=\"bar\" style=\"width: {width:.1}%\"></span></td>")
}

/// The note about items that are not shown.
pub(super) fn more(n: usize, shown: usize) -> String {
    match n.saturating_sub(shown) {
        0 => String::new(),
        left => paragraph(&format!("And {} more in the model.", grouped(left as u64))),
    }
}

pub(super) fn page(body: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>What was learned</title>\n\
         <style>\n{}</style>\n</head>\n<body>\n<main>\n{body}</main>\n</body>\n</html>\n",
        include_str!("../report.css")
    )
}

pub(super) fn section(title: &str, note: &str, content: &str) -> String {
    format!("<h2>{}</h2>\n{note}{content}", escape(title))
}

pub(super) fn paragraph(text: &str) -> String {
    format!("<p>{}</p>\n", escape(text))
}

pub(super) fn table(head: &str, rows: impl Iterator<Item = String>) -> String {
    format!("<table>\n{head}<tbody>\n{}</tbody>\n</table>\n", rows.collect::<String>())
}

/// The column headings: aligned right over numbers, and left over rules and names.
pub(super) fn head(names: &[&str]) -> String {
    let name = |name: &&str| {
        let class = if ["", "rule", "runners-up"].contains(name) { "" } else { " class=\"number\"" };
        format!("<th scope=\"col\"{class}>{}</th>", escape(name))
    };
    format!("<thead><tr>{}</tr></thead>\n", names.iter().map(name).collect::<String>())
}

pub(super) fn tagged_row(cells: &[String]) -> String {
    format!("<tr>{}</tr>\n", cells.concat())
}

pub(super) fn cell(text: &str) -> String {
    format!("<td>{}</td>", escape(text))
}

pub(super) fn number(text: impl Display) -> String {
    format!("<td class=\"number\">{text}</td>")
}
