//! Hovers: a label with its categories and marginal, a rule with its sentence and the cost of inference.

use std::fmt::Write as _;

use prsl::editor::{Outline, name};
use prsl::{Engine, Label, LabelId, RuleId};
use unicode_width::UnicodeWidthStr;

use super::analysis::Understood;
use super::types::{Hover, MarkupContent};

/// Maximum number of categories that are listed.
const MAX_CATEGORIES: usize = 20;
/// Maximum number of characters of a line. Rules may have thousands.
const MAX_LINE: usize = 300;

/// The hover at a byte position, if there is something to tell. Without a model, it tells what a label declares.
pub fn at(text: &str, understood: Option<&Understood>, offset: usize, markdown: bool) -> Option<Hover> {
    let outline = Outline::new(text);
    let rule = || understood.and_then(|it| it.document.rule_at(offset).map(|rule| about_rule(it, rule)));
    let told = match outline.label_at(offset) {
        Some(label) => about_label(&outline.labels()[label.index()], label, understood),
        None => rule()?,
    };
    let told: String = told.lines().map(|line| shortened(line) + "\n").collect();
    let contents = match markdown {
        // Names may contain anything. In a block of code they are neither links nor pictures.
        true => {
            MarkupContent { kind: "markdown", value: format!("```text\n{}```", told.replace("```", "'''")) }
        }
        false => MarkupContent { kind: "plaintext", value: told },
    };
    Some(Hover { contents })
}

fn about_label(label: &Label, id: LabelId, understood: Option<&Understood>) -> String {
    let source = match label.classifier() {
        None => ", latent".to_owned(),
        Some(classifier) if classifier.name() == label.name() => String::new(),
        Some(classifier) => format!(", from {}", name(classifier.name())),
    };
    let mut told = format!("label {}{source}\n", name(label.name()));
    let categories = label.categories().iter().take(MAX_CATEGORIES);
    let names: Vec<String> = categories.map(|category| name(category)).collect();
    let width = names.iter().map(|name| name.width()).max().unwrap_or(0);
    match understood.map(|it| &it.posterior) {
        Some(Ok(posterior)) => {
            let approximately = if posterior.engine() == Engine::Loopy { ", approximately" } else { "" };
            let _ = writeln!(told, "without evidence{approximately}:");
            for (name, probability) in names.iter().zip(posterior.marginal(id)) {
                let _ = writeln!(told, "  {name}{:gap$}{probability:.4}", "", gap = width - name.width() + 2);
            }
        }
        unknown => {
            names.iter().for_each(|name| told.push_str(&format!("  {name}\n")));
            let reason = unknown.and_then(|result| result.as_ref().err());
            let _ = writeln!(told, "no marginal: {}", reason.map_or("the text has errors", String::as_str));
        }
    }
    match label.n_categories() - names.len() {
        0 => told,
        n_more => told + &format!("and {n_more} more categories\n"),
    }
}

fn about_rule(understood: &Understood, rule: RuleId) -> String {
    let sentence = understood.document.model().rule_sentence(rule);
    let cost = match &understood.inference {
        Ok(reason) => format!("inference by {reason}"),
        Err(reason) => format!("no inference: {reason}"),
    };
    format!("rule {}: {sentence}\n{cost}\n", rule.index() + 1)
}

/// A line of at most [`MAX_LINE`] characters.
fn shortened(line: &str) -> String {
    match line.char_indices().nth(MAX_LINE) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line.to_owned(),
    }
}
