//! Sections about rules and combinations.

use prsl::learn::{Addition, Learned};
use prsl::model::Combination;
use prsl::{Document, RuleId};
use prsl_plot::escape;

use super::html::{
    bar, cell, head, in_words, more, number, paragraph, rule_cell, section, table, tagged_row,
};
use crate::learn::{Learning, Outcome};

/// Maximum number of rules shown; the others are only counted.
const RULES: usize = 100;
/// Maximum number of combinations shown; the others are only counted.
const COMBINATIONS: usize = 20;

/// The learned rules, those of the largest gain first.
pub(super) fn learned(outcome: &Outcome<'_>, document: &Document) -> String {
    let rules = outcome.learned();
    if rules.is_empty() {
        return section("Learned rules", "", &paragraph("None: no rule gained more than its price."));
    }
    let shown = rules.iter().take(RULES);
    let (note, table) = match &outcome.learning {
        Learning::Clauses(_) => {
            let largest = rules.iter().map(|rule| outcome.gain(*rule)).fold(f64::MIN_POSITIVE, f64::max);
            let row = |rule: &RuleId| {
                let gain = outcome.gain(*rule);
                let is_sure = document.model().rule(*rule).learned().is_some_and(|note| note.sure);
                let sure = cell(if is_sure { "sure" } else { "" });
                let gain = [number(format!("{gain:.1}")), bar(gain / largest)];
                tagged_row(&[gain.concat(), sure, rule_cell(document, *rule)])
            };
            let note = "Sorted by gain: the log-likelihood of the training rows, in nats, that is lost without the rule \
                        when all other parameters are refitted. A rule is sure if its gain exceeds the length of its \
                        description. Below each sentence is the rule as it is written in the model.";
            (note, table(&head(&["gain", "", "", "rule"]), shown.map(row)))
        }
        Learning::Paper(_) => {
            let row = |rule: &RuleId| tagged_row(&[rule_cell(document, *rule)]);
            ("Below each sentence is the rule as it is written in the model.", table("", shown.map(row)))
        }
    };
    section("Learned rules", &paragraph(note), &(table + &more(rules.len(), RULES)))
}

/// The additions in their order, with the candidates that came next.
pub(super) fn path(learned: &Learned) -> String {
    if learned.path.is_empty() {
        return String::new();
    }
    let row = |(place, addition): (usize, &Addition)| {
        let rules: String =
            addition.rules.iter().map(|rule| format!("<code>{}</code>", escape(rule))).collect();
        let next = addition.runners_up.iter();
        let next: String =
            next.map(|(rule, gain)| format!("<code>{} ({gain:.1})</code>", escape(rule))).collect();
        tagged_row(&[
            number(place + 1),
            format!("<td>{rules}</td>"),
            number(format!("{:.1}", addition.gain)),
            number(format!("{:.1}", addition.price)),
            number(format!("{:.4}", addition.log_likelihood)),
            format!("<td>{next}</td>"),
        ])
    };
    let note = "The order in which rules were added, with their gain after refitting and their price, in nats. Rules that \
                concern different labels may be added together. The runners-up are the next candidates, with their \
                estimated gains.";
    let head = head(&["step", "rule", "gain", "price", "log-likelihood", "runners-up"]);
    let table = table(&head, learned.path.iter().enumerate().take(RULES).map(row));
    section("Path", &paragraph(note), &(table + &more(learned.path.len(), RULES)))
}

/// The rules of the base.
pub(super) fn kept(outcome: &Outcome<'_>, document: &Document) -> String {
    let rules = outcome.kept();
    let n_kept = rules.len();
    if n_kept == 0 {
        return String::new();
    }
    let table = table("", rules.take(RULES).map(|rule| tagged_row(&[rule_cell(document, rule)])));
    section("Your rules", "", &(table + &more(n_kept, RULES)))
}

/// The typical combinations.
pub(super) fn combinations(document: &Document) -> String {
    let model = document.model();
    if model.typical().is_empty() {
        return String::new();
    }
    let mut strongest: Vec<(usize, &Combination)> = model.typical().iter().enumerate().collect();
    strongest.sort_by(|(_, a), (_, b)| b.weight().total_cmp(&a.weight()));
    let row = |(place, combination): &(usize, &Combination)| {
        let raw = &document.source()[document.typical_span(*place)];
        tagged_row(&[in_words(&model.combination_sentence(combination), raw)])
    };
    let table = table("", strongest.iter().take(COMBINATIONS).map(row));
    let note = "Combinations of all labels, with the factor by which they are more probable than the rules predict, strongest first.";
    section("Typical combinations", &paragraph(note), &(table + &more(strongest.len(), COMBINATIONS)))
}
