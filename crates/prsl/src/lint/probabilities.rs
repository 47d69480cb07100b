//! Checks of probabilities: rules without effect, rules better stated as their negation, and labels without any rule.

use super::Severity;
use super::report::{Report, decimal};
use crate::diagnostic::{quoted, shortened};
use crate::formula::Node;
use crate::label::LabelId;
use crate::rule::{Body, RuleId};
use crate::syntax::print;

/// Maximum number of names in a message.
const LISTED: usize = 5;

/// Runs these checks. Constant rules are skipped, because they have been reported already.
pub(super) fn check(report: &mut Report<'_>, constant: &[bool]) {
    for rule in report.model().rule_ids().filter(|rule| !constant[rule.index()]) {
        probability(report, rule);
    }
    empty_model(report);
    unused_labels(report);
    uniform_priors(report);
}

fn empty_model(report: &mut Report<'_>) {
    if report.model().labels().is_empty() {
        let message = "the model has no labels, so there is nothing to answer".to_owned();
        report.add(Severity::Note, "empty-model", 0..0, message).help =
            Some("declare a label: `label NAME: CATEGORY, CATEGORY`".to_owned());
    }
}

fn probability(report: &mut Report<'_>, rule: RuleId) {
    let probability = report.model().rule(rule).probability();
    if probability == 0.5 {
        let message = format!("rule {} has probability 0.5, so it has no effect", report.quoted(rule));
        let finding = report.add_rule(Severity::Warning, "no-effect", rule, message);
        finding.help = Some("remove it, or give it another probability".to_owned());
    } else if probability < 0.5 {
        let certainty = if probability == 0.0 { "certainly" } else { "probably" };
        let (quoted, shown) = (report.quoted(rule), decimal(probability));
        let message = format!("rule {quoted} has probability {shown}: it is {certainty} false");
        let help = match negation(report, rule) {
            Some(negation) => format!(
                "if that is meant, `rule {}: {}` says so more clearly; otherwise raise the probability",
                decimal(1.0 - probability),
                shortened(&negation)
            ),
            None => "if that is not meant, raise the probability".to_owned(),
        };
        report.add_rule(Severity::Warning, "improbable-rule", rule, message).help = Some(help);
    }
}

/// The negation of a rule's formula, in its usual notation.
fn negation(report: &Report<'_>, rule: RuleId) -> Option<String> {
    let Body::Formula(formula) = report.model().rule(rule).body() else { return None };
    let nodes = formula.nodes();
    let Node::Not(child) = &nodes[formula.root().index()] else {
        return Some(print::formula(report.names(), &formula.clone().not()));
    };
    if let Node::Atom(atom) = &nodes[child.index()] {
        return Some(print::atom(report.names(), atom));
    }
    let text = print::formula(report.names(), formula);
    let inner = text.strip_prefix('!')?;
    Some(inner.strip_prefix('(').and_then(|inner| inner.strip_suffix(')')).unwrap_or(inner).to_owned())
}

fn unused_labels(report: &mut Report<'_>) {
    let model = report.model();
    // A combination has a category for every label.
    let mut used = vec![!model.typical().is_empty(); model.labels().len()];
    for label in model.rules().iter().flat_map(|rule| rule.scope()) {
        used[label.index()] = true;
    }
    for label in model.label_ids().filter(|label| !used[label.index()]) {
        let message = format!("no rule speaks about label {}", quoted(model.label(label).name()));
        report.add(Severity::Note, "unused-label", report.document().label_span(label), message);
    }
}

fn uniform_priors(report: &mut Report<'_>) {
    let model = report.model();
    let uniform: Vec<LabelId> =
        model.label_ids().filter(|&label| model.label(label).prior().is_none()).collect();
    let names: Vec<_> = uniform.iter().take(LISTED).map(|&label| quoted(model.label(label).name())).collect();
    let more = if uniform.len() > LISTED { ", ..." } else { "" };
    let message = match uniform.len() {
        0 => return,
        1 => format!("label {} has no prior", names[0]),
        n if n == model.labels().len() => "no label has a prior".to_owned(),
        n => format!("{n} labels have no prior: {}{more}", names.join(", ")),
    };
    let message =
        format!("{message}; where a row says nothing, every category is taken to be equally likely");
    report.add(Severity::Note, "uniform-prior", 0..0, message);
}
