//! BIF: a Bayesian network whose rule nodes must be observed as true.

use std::collections::HashSet;
use std::fmt::Write;

use super::network::{Choice, Piece, Table, advance, choice, pieces};
use super::{complement, number};
use crate::error::Result;
use crate::infer::Limits;
use crate::label::LabelId;
use crate::model::Model;
use crate::syntax::print;

const KEYWORDS: [&str; 8] =
    ["network", "variable", "probability", "property", "type", "discrete", "default", "table"];

pub(super) fn write(model: &Model, row: &[f64], limits: Limits) -> Result<String> {
    let (pieces, choice) = (pieces(model, limits)?, choice(model, limits)?);
    let names = Identifiers::new(model, &pieces);
    let mut text = header(model, &names);
    for label in model.label_ids() {
        declare(&mut text, names.label(label), names.categories(label));
    }
    for (rule, piece) in pieces.iter().enumerate() {
        if let Piece::Chain(chain) = piece {
            for step in 0..chain.links.len() {
                declare(&mut text, &step_name(rule, step), &["silent".to_owned(), "fired".to_owned()]);
            }
        }
        declare(&mut text, &rule_name(rule), &["true".to_owned(), "false".to_owned()]);
    }
    if let Some(choice) = &choice {
        declare(&mut text, CHOICE, &choice_states(choice));
        for label in model.label_ids() {
            declare(&mut text, &choice_name(label), &["true".to_owned(), "false".to_owned()]);
        }
    }
    for label in model.label_ids() {
        let values: Vec<_> = row[model.block(label)].iter().map(|&value| number(value)).collect();
        put(&mut text, format_args!("\nprobability ( {} ) {{\n", names.label(label)));
        put(&mut text, format_args!("  table {};\n}}\n", values.join(", ")));
    }
    let mut assignment = vec![0; model.labels().len()];
    for (rule, piece) in pieces.iter().enumerate() {
        match piece {
            Piece::Table(table) => write_table(&mut text, model, &names, rule, table, &mut assignment),
            Piece::Chain(chain) => {
                for (step, (label, q)) in chain.links.iter().enumerate() {
                    let node = step_name(rule, step);
                    if step == 0 {
                        begin(&mut text, &node, &[names.label(*label)]);
                    } else {
                        begin(&mut text, &node, &[&step_name(rule, step - 1), names.label(*label)]);
                    }
                    for (category, &q) in names.categories(*label).iter().zip(q) {
                        if step == 0 {
                            entry(&mut text, &[category], q);
                        } else {
                            entry(&mut text, &["silent", category], q);
                            entry(&mut text, &["fired", category], 0.0);
                        }
                    }
                    text.push_str("}\n");
                }
                begin(&mut text, &rule_name(rule), &[&step_name(rule, chain.links.len() - 1)]);
                entry(&mut text, &["silent"], chain.silent);
                entry(&mut text, &["fired"], chain.fired);
                text.push_str("}\n");
            }
        }
    }
    if let Some(choice) = &choice {
        write_choice(&mut text, model, &names, choice);
    }
    Ok(text)
}

/// A node with one state per typical combination, and for every label a node that tells whether the label agrees with
/// it.
fn write_choice(text: &mut String, model: &Model, names: &Identifiers, choice: &Choice<'_>) {
    let values: Vec<_> = choice.probabilities().into_iter().map(number).collect();
    put(text, format_args!("\nprobability ( {CHOICE} ) {{\n  table {};\n}}\n", values.join(", ")));
    let states = choice_states(choice);
    for label in model.label_ids() {
        begin(text, &choice_name(label), &[CHOICE, names.label(label)]);
        for (category, name) in names.categories(label).iter().enumerate() {
            for (state, combination) in states.iter().enumerate() {
                entry(text, &[combination, name], f64::from(choice.admits(state, label, category)));
            }
        }
        text.push_str("}\n");
    }
}

fn choice_states(choice: &Choice<'_>) -> Vec<String> {
    let combinations = (1..choice.weights.len()).map(|state| format!("combination_{state}"));
    std::iter::once("other".to_owned()).chain(combinations).collect()
}

fn choice_name(label: LabelId) -> String {
    format!("{CHOICE}_{}", label.index() + 1)
}

fn write_table(
    text: &mut String,
    model: &Model,
    names: &Identifiers,
    rule: usize,
    table: &Table,
    assignment: &mut [usize],
) {
    let parents: Vec<&str> = table.scope.iter().map(|&label| names.label(label)).collect();
    begin(text, &rule_name(rule), &parents);
    if parents.is_empty() {
        let weight = table.weights[0];
        put(text, format_args!("  table {}, {};\n", number(weight), number(complement(weight))));
    } else {
        for &label in &table.scope {
            assignment[label.index()] = 0;
        }
        for &weight in &table.weights {
            let states: Vec<&str> = table
                .scope
                .iter()
                .map(|&label| names.categories(label)[assignment[label.index()]].as_str())
                .collect();
            entry(text, &states, weight);
            advance(model, &table.scope, assignment);
        }
    }
    text.push_str("}\n");
}

/// The name of the node of the typical combinations. Below it and each label is another node, to be observed as true.
const CHOICE: &str = "T";

/// The comment at the top of the file: its purpose, and the original name of each identifier.
fn header(model: &Model, names: &Identifiers) -> String {
    let mut text = String::from(
        "// Labels are roots and every rule is a node below its labels.\n\
         // Observe every rule node (R_1, R_2, ...) as true: the labels' distributions are then those of the model.\n",
    );
    for (id, label) in model.label_ids().zip(model.labels()) {
        let renamed = |identifier: &str, name: &str| {
            if identifier == name {
                identifier.to_owned()
            } else {
                format!("{identifier} is {}", print::name(name))
            }
        };
        let categories: Vec<_> =
            names.categories(id).iter().zip(label.categories()).map(|(a, b)| renamed(a, b)).collect();
        let shown = renamed(names.label(id), label.name());
        put(&mut text, format_args!("// {shown}: {}\n", categories.join(", ")));
    }
    let printer = model.names();
    for (index, rule) in model.rules().iter().enumerate() {
        put(&mut text, format_args!("// {}: {}\n", rule_name(index), print::rule(printer, rule)));
    }
    if !model.typical().is_empty() {
        text.push_str(
            "// Observe T_1, T_2, ... as true too: one for each label, below the typical combinations.\n",
        );
    }
    for (index, combination) in model.typical().iter().enumerate() {
        let (weight, combined) = (print::number(combination.weight()), combination.categories());
        let combined = print::combination(printer, combined);
        put(&mut text, format_args!("// combination_{}: typical {weight}: {combined}\n", index + 1));
    }
    text.push_str("network prsl {\n}\n");
    text
}

fn declare(text: &mut String, name: &str, states: &[String]) {
    put(text, format_args!("variable {name} {{\n  type discrete [ {} ] ", states.len()));
    put(text, format_args!("{{ {} }};\n}}\n", states.join(", ")));
}

fn begin(text: &mut String, node: &str, parents: &[&str]) {
    match parents {
        [] => put(text, format_args!("\nprobability ( {node} ) {{\n")),
        parents => put(text, format_args!("\nprobability ( {node} | {} ) {{\n", parents.join(", "))),
    }
}

fn entry(text: &mut String, states: &[&str], first: f64) {
    let states = states.join(", ");
    put(text, format_args!("  ({states}) {}, {};\n", number(first), number(complement(first))));
}

fn put(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments).expect("strings take all text");
}

fn rule_name(rule: usize) -> String {
    format!("R_{}", rule + 1)
}

fn step_name(rule: usize, step: usize) -> String {
    format!("R_{}_step_{}", rule + 1, step + 1)
}

/// Distinct names that the format allows.
struct Identifiers {
    labels: Vec<String>,
    categories: Vec<Vec<String>>,
}

impl Identifiers {
    fn new(model: &Model, pieces: &[Piece]) -> Self {
        let mut taken = HashSet::new();
        for (rule, piece) in pieces.iter().enumerate() {
            taken.insert(rule_name(rule).to_ascii_lowercase());
            if let Piece::Chain(chain) = piece {
                taken.extend((0..chain.links.len()).map(|step| step_name(rule, step).to_ascii_lowercase()));
            }
        }
        if !model.typical().is_empty() {
            taken.insert(CHOICE.to_ascii_lowercase());
            taken.extend(model.label_ids().map(|label| choice_name(label).to_ascii_lowercase()));
        }
        let labels = model.labels().iter().map(|label| identifier(label.name(), &mut taken)).collect();
        let categories = model
            .labels()
            .iter()
            .map(|label| {
                let mut taken = HashSet::new();
                label.categories().iter().map(|category| identifier(category, &mut taken)).collect()
            })
            .collect();
        Self { labels, categories }
    }

    fn label(&self, label: LabelId) -> &str {
        &self.labels[label.index()]
    }

    fn categories(&self, label: LabelId) -> &[String] {
        &self.categories[label.index()]
    }
}

/// `name` in ASCII letters, digits and `_`, beginning with a letter, and different from all others regardless of case.
fn identifier(name: &str, taken: &mut HashSet<String>) -> String {
    let mut base: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).take(100).collect();
    let keyword = KEYWORDS.contains(&base.to_ascii_lowercase().as_str());
    if keyword || !base.starts_with(|c: char| c.is_ascii_alphabetic()) {
        base.insert_str(0, "x_");
    }
    let mut candidate = base.clone();
    let mut n = 1;
    while !taken.insert(candidate.to_ascii_lowercase()) {
        n += 1;
        candidate = format!("{base}_{n}");
    }
    candidate
}
