//! The reasons why an expectation failed, in two lines.

use super::engine::Engine;
use super::report::Report;
use crate::diagnostic::quoted;
use crate::formula::{Atom, Formula};
use crate::rule::RuleId;
use crate::syntax::print;

/// Minimum change of a probability that is reported. Smaller changes are invisible in three decimals.
const MOVED: f64 = 0.0005;
/// Maximum number of rules that are named.
const MAX_NAMED: usize = 3;

/// Tells how far the rules move the probability of an atom, and what it would be without those that matter most.
pub(super) fn of_marginal(report: &Report<'_>, engine: &Engine<'_>, row: &[f64], atom: &Atom) -> Vec<String> {
    let block = report.model().block(atom.label());
    let probability = |marginals: &[f64]| -> f64 {
        atom.categories().iter().map(|category| marginals[block.start + category.index()]).sum()
    };
    let Ok(with) = engine.marginals(row) else { return Vec::new() };
    let without = engine.marginals_without_each_rule(row);
    let without = without.map(|rules| rules.iter().map(|it| it.as_deref().map(probability)).collect());
    let name = quoted(print::atom(report.names(), atom));
    moved(report, &name, [probability(row), probability(&with)], without)
}

/// The same for a formula.
pub(super) fn of_formula(
    report: &Report<'_>,
    engine: &Engine<'_>,
    row: &[f64],
    formula: &Formula,
) -> Vec<String> {
    let (Ok(alone), Ok(with)) = (engine.probability_alone(row, formula), engine.probability(row, formula))
    else {
        return Vec::new();
    };
    let name = quoted(print::formula(report.names(), formula));
    moved(report, &name, [alone, with], engine.probabilities_without_each_rule(row, formula))
}

/// The probability without any rule and with all of them, and without each rule, if that is known.
fn moved(
    report: &Report<'_>,
    name: &str,
    [alone, with]: [f64; 2],
    without: Option<Vec<Option<f64>>>,
) -> Vec<String> {
    let is_moved = (with - alone).abs() >= MOVED;
    let first = match is_moved {
        true => format!("the rules move {name} from {alone:.3} to {with:.3}"),
        false => format!("the rules leave {name} at {with:.3}"),
    };
    let Some(without) = without else { return vec![first] };
    let mut changes: Vec<(RuleId, f64)> =
        report.model().rule_ids().zip(without).filter_map(|(rule, it)| Some((rule, it?))).collect();
    changes.retain(|(_, without)| (without - with).abs() >= MOVED);
    changes.sort_by(|a, b| (b.1 - with).abs().total_cmp(&(a.1 - with).abs()).then(a.0.cmp(&b.0)));
    let one = |(rule, without): &(RuleId, f64)| {
        format!("without {} it would be {without:.3}", report.quoted(*rule))
    };
    let named: Vec<String> = changes.iter().take(MAX_NAMED).map(one).collect();
    let second = match named.is_empty() {
        true => "no single rule changes it".to_owned(),
        false => named.join("; "),
    };
    vec![first, second]
}

/// Tells how much less probable the best assignment with the expected categories is, given the log weights of both under
/// every rule.
pub(super) fn of_assignment(
    report: &Report<'_>,
    log_ratio: f64,
    log_ratios_of_rules: &[(RuleId, f64)],
) -> Vec<String> {
    let times = |log_ratio: f64| match log_ratio.exp() {
        ratio if ratio < 100.0 => format!("{ratio:.1} times"),
        _ => "more than 100 times".to_owned(),
    };
    let first = format!("the best assignment that meets it is {} less probable", times(log_ratio));
    let mut rules = log_ratios_of_rules.to_vec();
    rules.retain(|(_, log_ratio)| *log_ratio >= MOVED);
    rules.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let one = |(rule, log_ratio): &(RuleId, f64)| {
        format!("{} makes it {} less probable", report.quoted(*rule), times(*log_ratio))
    };
    let named: Vec<String> = rules.iter().take(MAX_NAMED).map(one).collect();
    let second = match named.is_empty() {
        true => "no rule is against it; the beliefs are".to_owned(),
        false => named.join("; "),
    };
    vec![first, second]
}
