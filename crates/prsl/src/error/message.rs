//! Parts of sentences that several messages share.

use crate::diagnostic::{Diagnostics, quoted};

/// `1 row`, `2 rows`
pub(super) fn counted(n: usize, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

/// `is 1 row`, `are 2 rows`
pub(super) fn there_are(n_rows: usize) -> String {
    format!("{} {}", if n_rows == 1 { "is" } else { "are" }, counted(n_rows, "row", "rows"))
}

/// The suggestion of a similar name.
pub(super) fn did_you_mean(name: &Option<String>) -> String {
    name.as_ref().map_or_else(String::new, |name| format!("; did you mean {}?", quoted(name)))
}

/// Advice for a number that is probably in percent.
pub(super) fn percent_advice(value: f64) -> &'static str {
    if value > 1.0 && value <= 100.0 { "; divide it by 100 if it is in percent" } else { "" }
}

/// Advice for a belief that does not sum to 1; priors are corrected in the model.
pub(super) fn normalize_advice(what: &str) -> &'static str {
    if what == "belief" { "; correct it, or ask for normalization" } else { "" }
}

/// Line and column, if known.
pub(super) fn place(line: usize, column: usize) -> String {
    if line == 0 { String::new() } else { format!(" (line {line}, column {column})") }
}

/// All errors of a formula, each as a sentence that quotes it.
pub(super) fn formula_message(diagnostics: &Diagnostics) -> String {
    let source = quoted(diagnostics.source());
    let sentences: Vec<_> = diagnostics
        .list()
        .iter()
        .map(|d| match &d.help {
            Some(help) => format!("{} in rule {source}; {help}", d.message),
            None => format!("{} in rule {source}", d.message),
        })
        .collect();
    sentences.join("; ")
}

/// The difference between the labels of two models.
pub(super) fn foreign(given: usize, wanted: usize, label: Option<&str>) -> String {
    match label {
        Some(label) => format!("label {} differs from the engine's label in its place", quoted(label)),
        None => format!("they have {}, the engine has {wanted}", counted(given, "label", "labels")),
    }
}

/// Maximum number of rules that a message names. Most conflicts have two or three.
const MAX_NAMED: usize = 10;

/// The rules that exclude every assignment.
pub(super) fn conflict(rules: &[String]) -> String {
    match rules {
        [] => "the evidence excludes itself".to_owned(),
        [rule] => format!("rule {} excludes everything that the evidence allows", quoted(rule)),
        rules => {
            let mut named: Vec<_> = rules.iter().take(MAX_NAMED).map(quoted).collect();
            if rules.len() > MAX_NAMED {
                named.push(format!("and {} more", rules.len() - MAX_NAMED));
            }
            format!("rules {} together exclude everything that the evidence allows", named.join(", "))
        }
    }
}
