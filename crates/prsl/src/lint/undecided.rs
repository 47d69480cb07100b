//! Questions that the SAT solver left open: decided by exact inference if that is affordable, and otherwise reported.

use super::Severity;
use super::engine::Engine;
use super::report::Report;
use super::rules::{Checked, report_contradiction, report_impossible};
use crate::diagnostic::quoted;
use crate::formula::Atom;
use crate::label::{CategoryId, LabelId};
use crate::syntax::print;

/// Decides open questions by inference, if there is an engine, and reports the rest.
pub(super) fn report(report: &mut Report<'_>, checked: Checked, engine: Option<&Engine<'_>>) {
    let open = checked.open;
    let is_new = |place: &usize| !open.impossible.contains(place);
    if open.contradiction || !open.categories.is_empty() {
        let categories = if open.contradiction {
            (0..report.model().n_categories()).filter(is_new).collect()
        } else {
            open.categories
        };
        match engine.and_then(|engine| engine.possibilities(&checked.hard)) {
            Some(possible) => decided(report, &checked.hard, &possible, &categories),
            None if open.contradiction => {
                contradiction(report, checked.hard.len(), open.steps, engine.is_some())
            }
            None => impossible(report, &categories, open.steps),
        }
    }
    if !open.rules.is_empty() && !open.contradiction {
        let message = format!(
            "whether {} of {} rules repeat others, follow from them or are excluded by them was not decided in {} steps",
            open.rules.len(),
            report.model().rules().len(),
            open.steps
        );
        add(report, message);
    }
}

/// Reports the results of inference, where `possible` tells which categories are possible.
fn decided(report: &mut Report<'_>, hard: &[crate::rule::RuleId], possible: &[bool], categories: &[usize]) {
    if !possible.contains(&true) {
        return report_contradiction(report, hard);
    }
    let model = report.model();
    let is_open = |place: &usize| categories.binary_search(place).is_ok();
    for label in model.label_ids() {
        let block = model.block(label);
        let places = block.clone().filter(is_open).filter(|&place| !possible[place]);
        let impossible: Vec<CategoryId> = places.map(|place| CategoryId::new(place - block.start)).collect();
        if !impossible.is_empty() {
            report_impossible(report, label, &impossible, hard);
        }
    }
}

fn contradiction(report: &mut Report<'_>, n_hard: usize, steps: u64, inference_was_asked: bool) {
    let inference = if inference_was_asked { ", and exact inference is too costly" } else { "" };
    let message = format!(
        "whether the {n_hard} rules of probability 0 or 1 contradict each other was not decided in {steps} steps{inference}"
    );
    add(report, message);
}

fn impossible(report: &mut Report<'_>, categories: &[usize], steps: u64) {
    let model = report.model();
    let of = |label: &LabelId| model.block(*label).contains(&categories[0]);
    let label = model.label_ids().find(of).expect("every category has a label");
    let category = CategoryId::new(categories[0] - model.block(label).start);
    let first = quoted(print::atom(report.names(), &Atom::new(label, category)));
    let message = match categories.len() {
        1 => format!("whether {first} is possible was not decided in {steps} steps"),
        n => format!(
            "whether {first} and {} other categories are possible was not decided in {steps} steps",
            n - 1
        ),
    };
    add(report, message);
}

fn add(report: &mut Report<'_>, message: String) {
    report.add(Severity::Warning, "not-decided", 0..0, message).help =
        Some("make some of these rules less certain, or check a part of them by itself".to_owned());
}
