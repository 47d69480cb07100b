//! Checks of the author's expectations, and the engine used for them.

use super::engine::Engine;
use super::reasons;
use super::report::Report;
use super::{Finding, Severity};
use crate::diagnostic::quoted;
use crate::error::Error;
use crate::expectation::{Comparison, Condition, Expectation};
use crate::formula::Atom;
use crate::label::CategoryId;
use crate::rule::RuleId;
use crate::syntax::print;

/// Difference of log weights up to which assignments are equally probable. It is larger than rounding errors.
const TIE: f64 = 1e-9;

/// Runs all of these checks.
pub(super) fn check(report: &mut Report<'_>, engine: &Engine<'_>) {
    let model = report.model();
    let message = match engine.reason() {
        Ok(reason) => format!("inference: {reason}"),
        Err(error) => error.to_string(),
    };
    report.add(Severity::Note, "inference-cost", 0..0, message);
    for (index, expectation) in model.expectations().iter().enumerate() {
        match failure(report, engine, expectation) {
            Ok(None) => {}
            Ok(Some(Failure { message, why })) => {
                add(report, Severity::Error, "failed-expectation", index, message).why = why;
            }
            Err(error) => {
                let message = format!("this expectation was not checked: {error}");
                add(report, Severity::Warning, "not-checked", index, message);
            }
        }
    }
}

fn add<'r>(
    report: &'r mut Report<'_>,
    severity: Severity,
    code: &'static str,
    expectation: usize,
    message: String,
) -> &'r mut Finding {
    report.add(severity, code, report.document().expectation_span(expectation), message)
}

/// A failed expectation: what was expected and found, and the reasons.
struct Failure {
    message: String,
    why: Vec<String>,
}

/// The failure of an expectation, if any; an error if it could not be checked.
fn failure(
    report: &Report<'_>,
    engine: &Engine<'_>,
    expectation: &Expectation,
) -> Result<Option<Failure>, Error> {
    let model = report.model();
    let row = model.row(&model.expectation_evidence(expectation))?;
    let outcome = match &expectation.condition {
        Condition::Marginal(atom, comparison) => marginal(report, engine, &row, atom, *comparison),
        Condition::Formula(formula, comparison) => {
            let found = engine.probability(&row, formula)?;
            let why = || reasons::of_formula(report, engine, &row, formula);
            Ok((!comparison.admits(found)).then(|| (telling(found, *comparison), why())))
        }
        Condition::Mpe(atoms) => mpe(report, engine, &row, atoms),
    };
    match outcome {
        Ok(found) => Ok(found.map(|(found, why)| {
            let message = format!("expected {}, found {found}", wanted(report, expectation));
            Failure { message, why }
        })),
        Err(error @ Error::Impossible { .. }) => {
            let message = format!("expected {}, found that {error}", wanted(report, expectation));
            Ok(Some(Failure { message, why: Vec::new() }))
        }
        Err(error) => Err(error),
    }
}

/// What was found instead, and why.
type Found = (String, Vec<String>);

/// The marginal, if it violates the comparison.
fn marginal(
    report: &Report<'_>,
    engine: &Engine<'_>,
    row: &[f64],
    atom: &Atom,
    comparison: Comparison,
) -> Result<Option<Found>, Error> {
    let marginals = engine.marginals(row)?;
    let block = &marginals[report.model().block(atom.label())];
    let found: f64 = atom.categories().iter().map(|category| block[category.index()]).sum();
    let why = || reasons::of_marginal(report, engine, row, atom);
    Ok((!comparison.admits(found)).then(|| (telling(found, comparison), why())))
}

/// Formats a number with enough digits to show that it violates the comparison.
fn telling(number: f64, comparison: Comparison) -> String {
    (4..17)
        .map(|digits| format!("{number:.digits$}"))
        .find(|text| text.parse().is_ok_and(|shown| !comparison.admits(shown)))
        .unwrap_or_else(|| format!("{number:?}"))
}

/// The categories of the most probable assignment, unless it satisfies all atoms. If several assignments are equally
/// probable, one of them has to.
fn mpe(
    report: &Report<'_>,
    engine: &Engine<'_>,
    row: &[f64],
    atoms: &[Atom],
) -> Result<Option<Found>, Error> {
    let model = report.model();
    let best = engine.best(row)?;
    let meets = |atom: &Atom| atom.contains(best.assignment.category(atom.label()));
    if atoms.iter().all(meets) {
        return Ok(None);
    }
    let mut agreeing = row.to_vec();
    for atom in atoms {
        for (category, index) in model.block(atom.label()).enumerate() {
            if !atom.contains(CategoryId::new(category)) {
                agreeing[index] = 0.0;
            }
        }
    }
    let expected = engine.best(&agreeing).ok();
    if expected.as_ref().is_some_and(|tied| tied.log_weight >= best.log_weight - TIE) {
        return Ok(None);
    }
    let why = match expected {
        Some(expected) => {
            let log_ratio = |rule: RuleId| {
                let rule = model.rule(rule);
                rule.log_weight(&best.assignment) - rule.log_weight(&expected.assignment)
            };
            let of_rules: Vec<_> = model.rule_ids().map(|rule| (rule, log_ratio(rule))).collect();
            reasons::of_assignment(report, best.log_weight - expected.log_weight, &of_rules)
        }
        None => vec!["the hard rules exclude every assignment that meets it".to_owned()],
    };
    let found: Vec<String> = atoms
        .iter()
        .map(|atom| {
            let category = best.assignment.category(atom.label());
            quoted(print::atom(report.names(), &Atom::new(atom.label(), category)))
        })
        .collect();
    Ok(Some((found.join(", "), why)))
}

/// An expectation in words: "`overhead` > 0.6", "`overhead`, `standing` in the most probable assignment".
fn wanted(report: &Report<'_>, expectation: &Expectation) -> String {
    let name = |atom: &Atom| print::atom(report.names(), atom);
    match &expectation.condition {
        Condition::Marginal(atom, comparison) => {
            format!("{} {}", quoted(name(atom)), print::comparison(*comparison))
        }
        Condition::Formula(formula, comparison) => {
            let formula = quoted(print::formula(report.names(), formula));
            format!("{formula} {}", print::comparison(*comparison))
        }
        Condition::Mpe(atoms) => {
            let atoms: Vec<_> = atoms.iter().map(|atom| quoted(name(atom))).collect();
            format!("{} in the most probable assignment", atoms.join(", "))
        }
    }
}
