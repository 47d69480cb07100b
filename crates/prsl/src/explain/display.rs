//! Explanations as text for a terminal.

use std::cmp::Reverse;
use std::fmt::{self, Write};

use unicode_width::UnicodeWidthStr;

use super::{Became, CategoryExplanation, Change, Explanation, Influence, LabelExplanation, NamedAssignment};
use super::{MOVED, RuleExplanation, RuleKind, size};
use crate::label::{NO, YES};
use crate::syntax::print;

/// Minimum change of a probability that is marked with an arrow.
const ARROW: f64 = 0.05;
/// Maximum width of a line in columns.
const WIDTH: usize = 96;
/// Maximum number of unchanged labels or rules with lines of their own. More of them share one line.
const MAX_UNCHANGED: usize = 4;
/// Maximum number of labels whose beliefs are shown, unless there are only slightly more.
const MAX_LABELS: usize = 20;
/// Maximum number of labels shown per rule.
const MAX_INFLUENCES: usize = 6;
/// Maximum width of a column of names. Longer names exceed their column.
const MAX_NAME_WIDTH: usize = 28;
/// Difference of log weights up to which two assignments are equally probable. It is larger than rounding errors.
const TIE: f64 = 1e-9;

impl fmt::Display for Explanation {
    /// Shows beliefs, the effect of each rule and the most probable assignment, in lines of less than 100 columns.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.possible {
            return self.impossible(f);
        }
        if self.approximate {
            writeln!(
                f,
                "approximate: the probabilities with and without each rule are by loopy propagation\n"
            )?;
        }
        self.beliefs(f)?;
        self.influential_rules(f)?;
        self.most_probable(f)
    }
}

impl Explanation {
    fn impossible(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let excluding: Vec<&RuleExplanation> = self.conflicts().collect();
        match excluding.len() {
            0 => writeln!(f, "nothing is possible: the evidence excludes itself")?,
            1 => writeln!(f, "nothing is possible: this rule excludes everything that the evidence allows")?,
            _ => writeln!(
                f,
                "nothing is possible: these rules together exclude everything that the evidence allows"
            )?,
        }
        for rule in excluding {
            statement(f, rule)?;
            let without = match rule.possible_without {
                true => "without it something would be possible",
                false => "without it still nothing would be possible: other rules conflict too",
            };
            writeln!(f, "     {without}")?;
        }
        writeln!(f)?;
        self.beliefs(f)
    }

    fn beliefs(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let change = |label: &LabelExplanation| label.largest_change().unwrap_or(1.0);
        let n_still = self.labels.iter().filter(|label| change(label) < MOVED).count();
        // If there are many labels, only those that changed most are shown.
        let mut sizes: Vec<u64> = self.labels.iter().map(|label| size(change(label))).collect();
        sizes.sort_unstable_by_key(|&size| Reverse(size));
        let least = sizes.get(MAX_LABELS).map_or(0, |&size| size + 1);
        let is_shown = |label: &&LabelExplanation| match change(label) {
            moved if moved < MOVED => n_still <= MAX_UNCHANGED,
            moved => {
                !self.possible || self.labels.len() <= MAX_LABELS + MAX_UNCHANGED || size(moved) >= least
            }
        };
        let shown: Vec<&LabelExplanation> = self.labels.iter().filter(is_shown).collect();
        writeln!(f, "beliefs")?;
        let titles = column(shown.iter().map(|label| title(label)));
        let categories = column(
            shown
                .iter()
                .flat_map(|label| shown_categories(label))
                .map(|category| print::name(&category.name)),
        );
        for label in &shown {
            let mut title = title(label);
            if title.width() > titles {
                writeln!(f, "  {title}")?;
                title.clear();
            }
            for category in shown_categories(label) {
                let name = print::name(&category.name);
                write!(f, "  {}  {}  ", pad(&title, titles), pad(&name, categories))?;
                belief(f, category)?;
                title.clear();
            }
        }
        let hidden = |still: bool| {
            let hides = move |label: &&LabelExplanation| (change(label) < MOVED) == still;
            self.labels.iter().filter(|label| !is_shown(label)).filter(hides)
        };
        let largest = hidden(false).map(change).fold(0.0, f64::max);
        for (still, what) in
            [(false, format!("moved by {largest:.3} or less")), (true, "did not move".into())]
        {
            let names: Vec<String> = hidden(still).map(|label| print::name(&label.name)).collect();
            if !names.is_empty() {
                let intro = format!("  {} {what}: ", counted(names.len(), "label"));
                writeln!(f, "{intro}{}", shortened(&names, WIDTH - intro.width()))?;
            }
        }
        if self.labels.is_empty() {
            writeln!(f, "  there are no labels")?;
        }
        Ok(())
    }

    fn influential_rules(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\nrules, the most influential first")?;
        if self.rules.is_empty() {
            writeln!(f, "  there are no rules")?;
        }
        let still = |rule: &&RuleExplanation| {
            !rule.conflict && rule.largest_change.is_none_or(|change| change < MOVED)
        };
        let n_still = self.rules.iter().filter(still).count();
        for rule in self.most_influential() {
            if n_still > MAX_UNCHANGED && still(&rule) {
                continue;
            }
            statement(f, rule)?;
            moved(f, rule)?;
            match rule.agreement {
                Some(agreement) if rule.conflict => writeln!(
                    f,
                    "     CONFLICT: everything else says otherwise (agrees {}{})",
                    probability(agreement),
                    at_best(rule)
                )?,
                Some(_) if rule.body_probability.is_none() => {
                    writeln!(f, "     a probability of 0.5 says nothing")?
                }
                Some(agreement) => writeln!(f, "     agrees {}", probability(agreement))?,
                None => {}
            }
        }
        if n_still > MAX_UNCHANGED {
            let names = self.rules.iter().filter(still).map(|rule| match &rule.name {
                Some(name) => print::name(name),
                None => rule.number.to_string(),
            });
            let intro = format!("  {n_still} rules moved nothing: ");
            let names: Vec<String> = names.collect();
            writeln!(f, "{intro}{}", shortened(&names, WIDTH - intro.width()))?;
        }
        Ok(())
    }

    fn most_probable(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\nmost probable")?;
        if let Some(refused) = &self.joint_refused {
            return paragraph(f, "  not affordable: ", 4, refused);
        }
        let Some(best) = &self.best else { return Ok(()) };
        let text = self.choices(best) + &typical(best);
        paragraph(f, &format!("  {:>8}  ", percent(best.probability)), 12, &text)?;
        if !best.proven {
            return writeln!(f, "            the search was given up: something else may be more probable");
        }
        let Some(runner_up) = &self.runner_up else {
            return writeln!(f, "            nothing else is possible");
        };
        let differences: Vec<String> =
            self.runner_up_differences().iter().map(|choice| atom(&choice.label, &choice.category)).collect();
        let rank = match best.log_weight - runner_up.log_weight < TIE {
            true => "equally probable: it differs in",
            false => "the runner-up differs in",
        };
        let text = format!("{rank} {}{}", differences.join(", "), typical(runner_up));
        paragraph(f, &format!("  {:>8}  ", percent(runner_up.probability)), 12, &text)
    }

    /// The categories of an assignment. If many yes/no labels are `no`, they are only counted.
    fn choices(&self, joint: &NamedAssignment) -> String {
        let is_no = |label: &LabelExplanation, category: &str| category == NO && is_yes_no(label);
        let both = || self.labels.iter().zip(&joint.choices);
        let n_no = both().filter(|(label, choice)| is_no(label, &choice.category)).count();
        let mut texts: Vec<String> = both()
            .filter(|(label, choice)| n_no <= MAX_UNCHANGED || !is_no(label, &choice.category))
            .map(|(_, choice)| atom(&choice.label, &choice.category))
            .collect();
        if n_no > MAX_UNCHANGED && texts.is_empty() {
            return format!("all {n_no} labels at `no`");
        }
        if n_no > MAX_UNCHANGED {
            texts.push(format!("and `no` for the other {n_no} labels"));
        }
        if texts.is_empty() { "(no labels)".to_owned() } else { texts.join(", ") }
    }
}

/// A remark if an assignment is a typical combination, else an empty text.
fn typical(joint: &NamedAssignment) -> String {
    let weight = |weight: f64| format!(" (typical, weight {})", print::number(weight));
    joint.typical.map_or_else(String::new, weight)
}

/// The largest possible agreement of a noisy-or, if it is below its probability. A noisy-or may be silent even if all
/// its causes are present.
fn at_best(rule: &RuleExplanation) -> String {
    let [_, most] = rule.agreement_range;
    match most < rule.probability.max(1.0 - rule.probability) - MOVED {
        true => format!(" of at most {}", probability(most)),
        false => String::new(),
    }
}

/// The label and the source of its belief.
fn title(label: &LabelExplanation) -> String {
    let name = print::name(&label.name);
    match &label.classifier {
        None => format!("{name} (latent)"),
        Some(classifier) if *classifier == label.name => name,
        Some(classifier) => format!("{name} (from {})", print::name(classifier)),
    }
}

/// The categories to show. For a yes/no label, the first one suffices.
fn shown_categories(label: &LabelExplanation) -> &[CategoryExplanation] {
    if is_yes_no(label) { &label.categories[..1] } else { &label.categories }
}

fn is_yes_no(label: &LabelExplanation) -> bool {
    label.categories.iter().map(|category| category.name.as_str()).eq([YES, NO])
}

fn counted(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// `0.500 -> 0.703  #######... ↑`, or the belief alone if no assignment is possible.
fn belief(f: &mut fmt::Formatter<'_>, category: &CategoryExplanation) -> fmt::Result {
    let before = probability(category.before);
    let Some(after) = category.after else { return writeln!(f, "{before:>6}") };
    let change = after - category.before;
    let arrow = match change {
        change if change > ARROW => format!(" ↑ {change:+.3}"),
        change if change < -ARROW => format!(" ↓ {change:+.3}"),
        _ => String::new(),
    };
    let line = format!("{before:>6} -> {:<6}  {}{arrow}", probability(after), bar(after));
    writeln!(f, "{}", line.trim_end())
}

/// `  3  rule 0.8 overhead_work: high & standing -> overhead`
fn statement(f: &mut fmt::Formatter<'_>, rule: &RuleExplanation) -> fmt::Result {
    let kind = match rule.kind {
        RuleKind::Rule => "rule",
        RuleKind::NoisyOr => "noisy_or",
    };
    let name = rule.name.as_ref().map_or_else(String::new, |name| format!(" {}", print::name(name)));
    let p = print::number(rule.probability);
    paragraph(f, &format!("{:>3}  ", rule.number), 9, &format!("{kind} {p}{name}: {}", rule.text))
}

/// `moved activity=overhead 0.500 -> 0.703 (+0.87 log-odds)`, one line per label, the largest change first.
fn moved(f: &mut fmt::Formatter<'_>, rule: &RuleExplanation) -> fmt::Result {
    let mut changes: Vec<(&Influence, &Change, f64)> = rule
        .influences
        .iter()
        .filter_map(|influence| {
            let change = influence.largest()?;
            Some((influence, change, change.change?.abs())).filter(|(_, _, change)| *change >= MOVED)
        })
        .collect();
    changes.sort_by_key(|(_, _, change)| Reverse(size(*change)));
    for (influence, change, _) in changes.iter().take(MAX_INFLUENCES) {
        let (Some(without), Some(with)) = (change.without, change.with) else { continue };
        let how = match (change.became, change.log_odds_change) {
            (Some(Became::Certain), _) => " (now certain)".to_owned(),
            (Some(Became::Impossible), _) => " (now impossible)".to_owned(),
            (None, Some(difference)) if difference.abs() < 0.1 => format!(" ({difference:+.3} log-odds)"),
            (None, Some(difference)) => format!(" ({difference:+.2} log-odds)"),
            (None, None) => String::new(),
        };
        let indirectly = if influence.mentioned { "" } else { ", by way of other rules" };
        let what = format!(
            "{} {} -> {}{how}{indirectly}",
            atom(&influence.label, &change.category),
            probability(without),
            probability(with)
        );
        paragraph(f, "     moved ", 11, &what)?;
    }
    match changes.len().saturating_sub(MAX_INFLUENCES) {
        0 if changes.is_empty() => writeln!(f, "     moved nothing"),
        0 => Ok(()),
        more => writeln!(f, "     and {}", counted(more, "more label")),
    }
}

/// `label=category`, quoted if necessary.
fn atom(label: &str, category: &str) -> String {
    format!("{}={}", print::name(label), print::name(category))
}

/// Three decimals. Values that they would hide are written as `0`, `2e-7`, `>0.999` or `1`.
fn probability(p: f64) -> String {
    match p {
        0.0 => "0".to_owned(),
        1.0 => "1".to_owned(),
        p if p < MOVED => format!("{p:.0e}"),
        p if p >= 1.0 - MOVED => ">0.999".to_owned(),
        p => format!("{p:.3}"),
    }
}

/// A percentage with one decimal, with the same exceptions.
fn percent(p: f64) -> String {
    match p {
        0.0 | 1.0 => format!("{} %", 100.0 * p),
        p if p < MOVED => format!("{:.0e} %", 100.0 * p),
        p if p >= 1.0 - MOVED => ">99.9 %".to_owned(),
        p => format!("{:.1} %", 100.0 * p),
    }
}

/// Ten characters, one filled for each tenth.
fn bar(p: f64) -> String {
    let filled = (10.0 * p).round() as usize;
    format!("{}{}", "█".repeat(filled), "·".repeat(10_usize.saturating_sub(filled)))
}

fn column(texts: impl Iterator<Item = String>) -> usize {
    texts.map(|text| text.width()).filter(|&width| width <= MAX_NAME_WIDTH).max().unwrap_or(0)
}

fn pad(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(text.width())))
}

/// As many names as fit, and the number of the others.
fn shortened(names: &[String], width: usize) -> String {
    let mut text = String::new();
    for (index, name) in names.iter().enumerate() {
        let more = format!(", and {} more", names.len() - index);
        if index > 0 && text.width() + 2 + name.width() + more.width() > width {
            return text + &more;
        }
        if index > 0 {
            text.push_str(", ");
        }
        text.push_str(name);
    }
    text
}

/// Splits the text at spaces, but not inside quoted names.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let (mut quoted, mut escaped) = (false, false);
    text.split(move |c| {
        quoted ^= c == '"' && !escaped;
        escaped = quoted && c == '\\' && !escaped;
        c == ' ' && !quoted
    })
}

/// Writes a heading and a text. Long lines are broken between words, and further lines are indented.
fn paragraph(f: &mut fmt::Formatter<'_>, heading: &str, indent: usize, text: &str) -> fmt::Result {
    let mut line = heading.to_owned();
    let mut is_empty = true;
    for word in words(text) {
        if !is_empty && line.width() + 1 + word.width() > WIDTH {
            writeln!(f, "{}", line.trim_end())?;
            line = " ".repeat(indent);
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.write_str(word)?;
        is_empty = false;
    }
    writeln!(f, "{}", line.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_names_stay_in_one_piece() {
        let text = r#"a -> "two words" | "a \"b\\" & c"#;
        assert_eq!(
            words(text).collect::<Vec<_>>(),
            ["a", "->", r#""two words""#, "|", r#""a \"b\\""#, "&", "c"]
        );
    }

    #[test]
    fn probabilities_are_never_rounded_to_0_or_1() {
        let shown = [0.0, 1e-300, 4e-4, 0.0005, 0.5, 0.9994, 0.9996, 1.0].map(probability);
        assert_eq!(shown, ["0", "1e-300", "4e-4", "0.001", "0.500", "0.999", ">0.999", "1"]);
        let shown = [0.0, 1e-300, 0.0005, 0.352, 0.9994, 0.9999, 1.0].map(percent);
        assert_eq!(shown, ["0 %", "1e-298 %", "0.1 %", "35.2 %", "99.9 %", ">99.9 %", "100 %"]);
    }
}
