//! Checks of typical combinations: those without effect, labels that they exclude unintentionally, and their number.

use super::Severity;
use super::report::Report;
use crate::combination::Combination;
use crate::diagnostic::quoted;
use crate::label::LabelId;
use crate::logic::{evaluation_steps, excludes, is_hard};
use crate::rule::RuleId;

/// Maximum number of steps for comparing combinations with hard rules.
const MAX_STEPS: u64 = 20_000_000;

/// Runs all of these checks.
pub(super) fn check(report: &mut Report<'_>) {
    let model = report.model();
    let hard: Vec<RuleId> = model.rule_ids().filter(|&rule| is_hard(model.rule(rule))).collect();
    let steps: u64 = hard.iter().map(|&rule| evaluation_steps(model.rule(rule))).sum();
    let n_compared = (MAX_STEPS / steps.max(1)) as usize;
    for (place, combination) in model.typical().iter().enumerate() {
        let is_excluded = |rule: &RuleId| excludes(model.rule(*rule), combination.categories());
        let compared: &[RuleId] = if place < n_compared { &hard } else { &[] };
        match compared.iter().copied().find(is_excluded) {
            Some(rule) => excluded(report, place, rule),
            None if combination.weight() == 0.0 => without_weight(report, place),
            None => {}
        }
    }
    if !hard.is_empty() && n_compared < model.typical().len() {
        let n_left = model.typical().len() - n_compared;
        let message = format!(
            "whether {} rules of probability 0 or 1 exclude {n_left} of {} combinations was not decided: that takes more than \
             {MAX_STEPS} steps",
            hard.len(),
            model.typical().len()
        );
        report.add(Severity::Warning, "not-decided", 0..0, message).help =
            Some("check a part of the combinations by itself".to_owned());
    }
    // Labels with a classifier are not reported: rare labels may be in no combination, but the classifier detects
    // them.
    let is_never_named = |id: &LabelId| {
        let label = model.label(*id);
        let is_named = |combination: &Combination| combination.categories()[id.index()] == 0;
        label.is_binary() && label.classifier().is_none() && !model.typical().iter().any(is_named)
    };
    for label in model.label_ids().filter(|_| !model.typical().is_empty()).filter(is_never_named) {
        never_named(report, label);
    }
}

/// Reports the number of combinations.
pub(super) fn count(report: &mut Report<'_>) {
    let typical = report.model().typical();
    let message = match typical {
        [] => return,
        [_] => "one combination is typical".to_owned(),
        many => {
            let largest = many.iter().map(Combination::weight).fold(0.0, f64::max);
            let largest = crate::notation::number(largest);
            format!("{} combinations are typical, the largest weight is {largest}", many.len())
        }
    };
    report.add(Severity::Note, "typical-combinations", 0..0, message);
}

fn excluded(report: &mut Report<'_>, place: usize, rule: RuleId) {
    let message = format!("this combination never counts: rule {} excludes it", report.quoted(rule));
    let related = report.related(rule, "this excludes it");
    let span = report.document().typical_span(place);
    let finding = report.add(Severity::Warning, "excluded-combination", span, message);
    finding.help = Some("remove it, or make what excludes it less certain".to_owned());
    finding.related = vec![related];
}

fn never_named(report: &mut Report<'_>, label: LabelId) {
    let name = report.model().label(label).name();
    let message = format!(
        "no typical combination names label {}, so that all of them speak for its being `no`",
        quoted(name)
    );
    let span = report.document().label_span(label);
    let finding = report.add(Severity::Note, "never-typical", span, message);
    finding.help =
        Some("write it into the combinations in which it is true, or leave combinations out".to_owned());
}

fn without_weight(report: &mut Report<'_>, place: usize) {
    let span = report.document().typical_span(place);
    let message = "this combination has weight 0, so it has no effect".to_owned();
    let finding = report.add(Severity::Warning, "no-effect", span, message);
    finding.help = Some("remove it, or give it another weight".to_owned());
}
