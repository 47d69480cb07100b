//! UAI: a Markov network with numbers instead of names.

use std::collections::HashMap;
use std::fmt::Write;

use super::network::{Piece, chain_of, choice, pieces};
use super::number;
use crate::error::Result;
use crate::infer::Limits;
use crate::model::Model;
use crate::syntax::print;

/// Scope and values, the last variable of the scope changing fastest.
struct Factor {
    /// In descending order. The format allows any order. Some readers treat the scope as a set, with the
    /// lowest variable changing fastest, and this order is right for them too.
    scope: Vec<usize>,
    values: Vec<f64>,
}

pub(super) fn write(model: &Model, row: &[f64], limits: Limits) -> Result<String> {
    let mut cardinalities: Vec<usize> = model.labels().iter().map(|label| label.n_categories()).collect();
    let mut factors: Vec<Factor> = model
        .label_ids()
        .map(|label| Factor { scope: vec![label.index()], values: row[model.block(label)].to_vec() })
        .collect();
    for piece in pieces(model, limits)? {
        match piece {
            Piece::Table(table) if table.scope.is_empty() && !cardinalities.is_empty() => {
                // A constant; readers expect a scope.
                factors.push(Factor { scope: vec![0], values: vec![table.weights[0]; cardinalities[0]] });
            }
            Piece::Table(table) => factors.push(Factor {
                scope: table.scope.iter().rev().map(|label| label.index()).collect(),
                values: table.weights,
            }),
            Piece::Chain(chain) => {
                for (step, (label, q)) in chain.links.iter().enumerate() {
                    let variable = cardinalities.len();
                    cardinalities.push(2);
                    let stays = q.iter().copied();
                    let fires = q.iter().map(|q| 1.0 - q);
                    factors.push(if step == 0 {
                        Factor { scope: vec![variable, label.index()], values: stays.chain(fires).collect() }
                    } else {
                        let never = q.iter().map(|_| 0.0);
                        let already = q.iter().map(|_| 1.0);
                        Factor {
                            scope: vec![variable, variable - 1, label.index()],
                            values: stays.chain(never).chain(fires).chain(already).collect(),
                        }
                    });
                }
                factors.push(Factor {
                    scope: vec![cardinalities.len() - 1],
                    values: vec![chain.silent, chain.fired],
                });
            }
        }
    }
    if let Some(choice) = choice(model, limits)? {
        let variable = cardinalities.len();
        let states = 0..choice.weights.len();
        cardinalities.push(states.len());
        for label in model.label_ids() {
            let categories = 0..model.label(label).n_categories();
            let entry = |(state, category)| f64::from(choice.admits(state, label, category));
            let all =
                states.clone().flat_map(|state| categories.clone().map(move |category| (state, category)));
            factors.push(Factor { scope: vec![variable, label.index()], values: all.map(entry).collect() });
        }
        factors.push(Factor { scope: vec![variable], values: choice.weights });
    }
    Ok(text(&cardinalities, &merged(factors)))
}

/// One factor for each scope: factors of the same scope are multiplied, because some readers reject a second one.
fn merged(factors: Vec<Factor>) -> Vec<Factor> {
    let mut merged: Vec<Factor> = Vec::new();
    let mut at: HashMap<Vec<usize>, usize> = HashMap::new();
    for factor in factors {
        let index = *at.entry(factor.scope.clone()).or_insert(merged.len());
        match merged.get_mut(index) {
            Some(first) => match product(&first.values, &factor.values) {
                Some(values) => first.values = values,
                None => merged.push(factor),
            },
            None => merged.push(factor),
        }
    }
    merged
}

/// The product of two tables, unless one of its entries underflows.
fn product(a: &[f64], b: &[f64]) -> Option<Vec<f64>> {
    a.iter()
        .zip(b)
        .map(|(&a, &b)| Some(a * b).filter(|product| product.is_normal() || a == 0.0 || b == 0.0))
        .collect()
}

/// The names of the variables and states, see [`Model::export_uai_names`].
pub(super) fn names(model: &Model) -> Result<String> {
    let mut text = String::new();
    let mut line = |kind: &str, variable: usize, state: usize, name: &str, category: &str| {
        writeln!(text, "{kind}\t{variable}\t{state}\t{name}\t{category}").expect("strings take all text");
    };
    for (variable, label) in model.labels().iter().enumerate() {
        for (state, category) in label.categories().iter().enumerate() {
            line("label", variable, state, &print::name(label.name()), &print::name(category));
        }
    }
    let mut variable = model.labels().len();
    for (rule, body) in model.rules().iter().enumerate() {
        let Some(chain) = chain_of(model, body) else { continue };
        for (label, _) in &chain.links {
            let name = format!("rule {} up to {}", rule + 1, print::name(model.label(*label).name()));
            line("auxiliary", variable, 0, &name, "silent");
            line("auxiliary", variable, 1, &name, "fired");
            variable += 1;
        }
    }
    if !model.typical().is_empty() {
        line("auxiliary", variable, 0, "typical", "other");
    }
    for (state, combination) in model.typical().iter().enumerate() {
        line("auxiliary", variable, state + 1, "typical", &model.combination_text(combination));
    }
    Ok(text)
}

fn text(cardinalities: &[usize], factors: &[Factor]) -> String {
    let mut text = format!("MARKOV\n{}\n{}\n{}\n", cardinalities.len(), joined(cardinalities), factors.len());
    for factor in factors {
        text.push_str(&format!("{} {}\n", factor.scope.len(), joined(&factor.scope)));
    }
    for factor in factors {
        // One line for each state of the variable that changes fastest: readable, and any white space will do.
        let width = factor.scope.last().map_or(1, |&variable| cardinalities[variable]);
        text.push_str(&format!("\n{}\n", factor.values.len()));
        for line in factor.values.chunks(width) {
            for &value in line {
                text.push(' ');
                text.push_str(&number(value));
            }
            text.push('\n');
        }
    }
    text
}

fn joined(numbers: &[usize]) -> String {
    numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(" ")
}
