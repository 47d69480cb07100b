//! DOT: a graph of labels and rules for Graphviz.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::combination::Combination;
use crate::formula::{Formula, Node, NodeId};
use crate::label::{Label, LabelId};
use crate::model::Model;
use crate::names::Names;
use crate::noisy_or::NoisyOr;
use crate::rule::{Body, Rule};
use crate::syntax::print;

/// Length in characters at which the text of a rule is wrapped.
const WRAP: usize = 34;
/// Length in characters at which the text of a rule is cut off.
const CUT: usize = 240;
/// Maximum number of categories shown per label.
const MAX_CATEGORIES: usize = 12;
/// Maximum number of typical combinations shown.
const MAX_COMBINATIONS: usize = 8;

pub(super) fn write(model: &Model, row: &[f64]) -> String {
    let mut text = String::from(
        "digraph prsl {\n  \
           graph [rankdir=LR, nodesep=0.25, ranksep=0.9, bgcolor=white];\n  \
           node [fontname=\"Helvetica\", fontsize=11, shape=box];\n  \
           edge [fontname=\"Helvetica\", fontsize=9, color=\"#6b7280\", arrowsize=0.7];\n",
    );
    for (id, label) in model.label_ids().zip(model.labels()) {
        put(
            &mut text,
            format_args!("  l{} [{}];\n", id.index(), label_attributes(label, &row[model.block(id)])),
        );
    }
    let names = model.names();
    for (index, rule) in model.rules().iter().enumerate() {
        put(&mut text, format_args!("  r{index} [{}];\n", rule_attributes(names, rule)));
        for (label, edge) in edges(rule) {
            put(&mut text, format_args!("  {};\n", edge.text(label, index)));
        }
    }
    if !model.typical().is_empty() {
        put(&mut text, format_args!("  typical [{}];\n", typical_attributes(model, names)));
    }
    text.push_str("}\n");
    text
}

/// A note that lists the typical combinations of the largest weights.
fn typical_attributes(model: &Model, names: &Names) -> String {
    let mut sorted: Vec<&Combination> = model.typical().iter().collect();
    sorted.sort_by(|a, b| b.weight().total_cmp(&a.weight()));
    let mut lines = vec!["typical".to_owned()];
    for combination in sorted.iter().take(MAX_COMBINATIONS) {
        let weight = print::number(combination.weight());
        lines.extend(wrapped(&format!("{weight}: {}", print::combination(names, combination.categories()))));
    }
    if sorted.len() > MAX_COMBINATIONS {
        lines.push(format!("and {} more", sorted.len() - MAX_COMBINATIONS));
    }
    let lines: Vec<_> = lines.iter().map(|line| escaped(line)).collect();
    format!(
        "shape=note, style=filled, fillcolor=\"#fffbeb\", color=\"#92400e\", label=\"{}\"",
        lines.join("\\n")
    )
}

/// The label's name in bold, and below it the categories, with their probabilities unless all are equal.
fn label_attributes(label: &Label, belief: &[f64]) -> String {
    let uniform = belief.iter().all(|p| *p == belief[0]);
    let span = if uniform { "" } else { " colspan=\"2\"" };
    let mut rows = format!("<tr><td{span}><b>{}</b></td></tr>", html(label.name()));
    for (category, &p) in label.categories().iter().zip(belief).take(MAX_CATEGORIES) {
        // Graphviz does not accept empty cells.
        let shown = if uniform {
            String::new()
        } else {
            format!("<td align=\"right\"><font color=\"#6b7280\">{}</font></td>", short(p))
        };
        put(&mut rows, format_args!("<tr><td align=\"left\">{}</td>{shown}</tr>", html(category)));
    }
    if label.n_categories() > MAX_CATEGORIES {
        let more = label.n_categories() - MAX_CATEGORIES;
        put(&mut rows, format_args!("<tr><td align=\"left\"{span}>and {more} more</td></tr>"));
    }
    let style = if label.classifier().is_none() { "filled,dashed" } else { "filled" };
    format!(
        "style=\"{style}\", fillcolor=\"#eef2ff\", color=\"#3730a3\", \
         label=<<table border=\"0\" cellspacing=\"0\" cellpadding=\"1\">{rows}</table>>"
    )
}

/// The text of a rule and its probability.
fn rule_attributes(names: &Names, rule: &Rule) -> String {
    let p = rule.probability();
    let certainty = (2.0 * p - 1.0).abs();
    let (color, fill) = match p {
        p if p > 0.5 => ("#166534", "#f0fdf4"),
        p if p < 0.5 => ("#991b1b", "#fef2f2"),
        _ => ("#6b7280", "#f9fafb"),
    };
    let outline = if certainty == 1.0 { ", peripheries=2" } else { "" };
    let mut lines = wrapped(&print::body(names, rule.body()));
    if matches!(rule.body(), Body::NoisyOr(_)) {
        lines.insert(0, "noisy or".to_owned());
    }
    if let Some(name) = rule.name() {
        lines.insert(0, name.to_owned());
    }
    lines.push(short(p));
    let lines: Vec<_> = lines.iter().map(|line| escaped(line)).collect();
    format!(
        "style=\"rounded,filled\", fillcolor=\"{fill}\", color=\"{color}\", penwidth={:.2}{outline}, label=\"{}\"",
        0.75 + 2.0 * certainty,
        lines.join("\\n")
    )
}

/// The role of a label in a rule.
#[derive(Clone, Copy, Default)]
struct Edge {
    /// The label is part of the condition.
    condition: bool,
    /// The label is part of the conclusion.
    conclusion: bool,
    /// The label makes a noisy-or fire with this probability.
    strength: Option<f64>,
}

impl Edge {
    /// Conditions are left of the rule, all other labels right of it.
    fn text(self, label: LabelId, rule: usize) -> String {
        let label = label.index();
        match (self.condition, self.conclusion, self.strength) {
            (true, false, _) => format!("l{label} -> r{rule}"),
            (false, true, _) => format!("r{rule} -> l{label}"),
            (true, true, _) => format!("l{label} -> r{rule} [dir=both]"),
            (_, _, Some(strength)) => {
                format!("l{label} -> r{rule} [dir=none, penwidth={:.2}]", 0.5 + 2.0 * strength)
            }
            (false, false, None) => format!("l{label} -> r{rule} [dir=none]"),
        }
    }
}

/// The labels of a rule with their roles: condition, conclusion or neither.
fn edges(rule: &Rule) -> BTreeMap<LabelId, Edge> {
    match rule.body() {
        Body::NoisyOr(noisy_or) => noisy_or_edges(noisy_or),
        Body::Formula(formula) => formula_edges(formula),
    }
}

fn noisy_or_edges(noisy_or: &NoisyOr) -> BTreeMap<LabelId, Edge> {
    let mut edges: BTreeMap<LabelId, Edge> = BTreeMap::new();
    for inhibition in noisy_or.inhibitions() {
        let strength = &mut edges.entry(inhibition.label).or_default().strength;
        *strength = Some(strength.unwrap_or(0.0).max(1.0 - inhibition.probability));
    }
    edges
}

fn formula_edges(formula: &Formula) -> BTreeMap<LabelId, Edge> {
    let mut edges: BTreeMap<LabelId, Edge> = BTreeMap::new();
    let (condition, conclusion) = match &formula.nodes()[formula.root().index()] {
        Node::Implies(condition, then) | Node::ImpliedBy(then, condition) => (Some(*condition), Some(*then)),
        _ => (None, None),
    };
    for label in formula.scope() {
        edges.insert(label, Edge::default());
    }
    for label in labels_below(formula, condition) {
        edges.entry(label).or_default().condition = true;
    }
    for label in labels_below(formula, conclusion) {
        edges.entry(label).or_default().conclusion = true;
    }
    edges
}

fn labels_below(formula: &Formula, node: Option<NodeId>) -> Vec<LabelId> {
    let mut stack: Vec<NodeId> = node.into_iter().collect();
    let mut labels = Vec::new();
    while let Some(id) = stack.pop() {
        match &formula.nodes()[id.index()] {
            Node::Atom(atom) => labels.push(atom.label()),
            node => stack.extend(node.children()),
        }
    }
    labels
}

/// A number with at most three significant decimals.
fn short(p: f64) -> String {
    let rounded = format!("{p:.3}");
    match rounded.parse::<f64>() {
        Ok(value) if (value == 0.0 || value == 1.0) && value != p => format!("{p:e}"),
        _ => rounded.trim_end_matches('0').trim_end_matches('.').to_owned(),
    }
}

/// The text in lines of about [`WRAP`] characters, broken at spaces.
fn wrapped(text: &str) -> Vec<String> {
    let cut: String = text.chars().take(CUT).collect();
    let mut lines = vec![String::new()];
    for word in cut.split(' ') {
        let line = lines.last_mut().expect("there is a line");
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > WRAP {
            lines.push(word.to_owned());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    if cut.len() < text.len() {
        lines.last_mut().expect("there is a line").push_str(" ...");
    }
    lines
}

/// A quoted string of the language: only quotes and backslashes are escaped.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            // HTML entities are interpreted even here.
            '&' => escaped.push_str("&amp;"),
            '"' | '\\' => escaped.extend(['\\', c]),
            c => escaped.push(visible(c)),
        }
    }
    escaped
}

/// The text within an HTML-like label.
fn html(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            c => escaped.push(visible(c)),
        }
    }
    escaped
}

/// Line breaks become spaces, and other control characters a replacement mark.
fn visible(c: char) -> char {
    match c {
        '\n' | '\r' | '\t' => ' ',
        c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => '\u{fffd}',
        c => c,
    }
}

fn put(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments).expect("strings take all text");
}
