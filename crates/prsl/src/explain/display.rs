//! Explanations as text for a terminal.

use std::fmt::{self, Write};

use unicode_width::UnicodeWidthStr;

use super::{
    Became, CategoryExplanation, Change, Explanation, Influence, JointExplanation, LabelExplanation,
};
use super::{MOVED, RuleExplanation, RuleKind};
use crate::label::{NO, YES};
use crate::text::print;

/// A change from here on gets an arrow.
const ARROW: f64 = 0.05;
/// Where lines end.
const WIDTH: usize = 96;
/// More labels or rules than this that did not move share a line.
const FEW: usize = 4;
/// The most labels that are told per rule.
const MANY: usize = 6;
/// Names longer than this do not widen their column.
const WIDEST_NAME: usize = 28;
/// Two explanations whose ln weights differ by less are equally probable as far as rounding can tell.
const TIE: f64 = 1e-9;

impl fmt::Display for Explanation {
    /// What the beliefs became, what each rule did, and what is most probable, in lines of less than 100 columns.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.possible {
            return self.impossible(f);
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
        let still = |label: &&LabelExplanation| label.largest_change().is_some_and(|change| change < MOVED);
        let n_still = self.labels.iter().filter(still).count();
        let shown: Vec<&LabelExplanation> =
            self.labels.iter().filter(|label| n_still <= FEW || !still(label)).collect();
        writeln!(f, "beliefs")?;
        let title = |label: &LabelExplanation| match &label.classifier {
            None => format!("{} (latent)", print::name(&label.name)),
            Some(classifier) if *classifier == label.name => print::name(&label.name),
            Some(classifier) => format!("{} (from {})", print::name(&label.name), print::name(classifier)),
        };
        let titles = column(shown.iter().map(|label| title(label)));
        let categories =
            column(shown.iter().flat_map(|label| &label.categories).map(|c| print::name(&c.name)));
        for label in &shown {
            let mut title = title(label);
            if title.width() > titles {
                writeln!(f, "  {title}")?;
                title.clear();
            }
            for category in &label.categories {
                let name = print::name(&category.name);
                write!(f, "  {}  {}  ", pad(&title, titles), pad(&name, categories))?;
                belief(f, category)?;
                title.clear();
            }
        }
        if n_still > FEW {
            let names = self.labels.iter().filter(still).map(|label| print::name(&label.name));
            let intro = format!("  {n_still} labels did not move: ");
            writeln!(f, "{intro}{}", shortened(names, WIDTH - intro.width()))?;
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
            if n_still > FEW && still(&rule) {
                continue;
            }
            statement(f, rule)?;
            moved(f, rule)?;
            match rule.agreement {
                Some(agreement) if rule.conflict => {
                    writeln!(f, "     CONFLICT: everything else says otherwise ({})", probability(agreement))?
                }
                Some(_) if rule.body.is_none() => writeln!(f, "     a probability of 0.5 says nothing")?,
                Some(agreement) => writeln!(f, "     agrees {}", probability(agreement))?,
                None => {}
            }
        }
        if n_still > FEW {
            let names = self.rules.iter().filter(still).map(|rule| match &rule.name {
                Some(name) => print::name(name),
                None => rule.number.to_string(),
            });
            let intro = format!("  {n_still} rules moved nothing: ");
            writeln!(f, "{intro}{}", shortened(names, WIDTH - intro.width()))?;
        }
        Ok(())
    }

    fn most_probable(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\nmost probable")?;
        if let Some(refused) = &self.joint_refused {
            return paragraph(f, "  not affordable: ", 4, refused);
        }
        let Some(best) = &self.best else { return Ok(()) };
        paragraph(f, &format!("  {:>8}  ", percent(best.probability)), 12, &self.choices(best))?;
        let Some(runner_up) = &self.runner_up else {
            return writeln!(f, "            nothing else is possible");
        };
        let differences: Vec<String> =
            self.runner_up_differences().iter().map(|choice| atom(&choice.label, &choice.category)).collect();
        let rank = match best.log_weight - runner_up.log_weight < TIE {
            true => "equally probable",
            false => "the runner-up",
        };
        let text = format!("{rank}, differs in {}", differences.join(", "));
        paragraph(f, &format!("  {:>8}  ", percent(runner_up.probability)), 12, &text)
    }

    /// The categories of a joint explanation; many yes/no labels at `no` are only counted.
    fn choices(&self, joint: &JointExplanation) -> String {
        let is_no = |label: &LabelExplanation, category: &str| {
            category == NO && label.categories.len() == 2 && label.categories[0].name == YES
        };
        let both = || self.labels.iter().zip(&joint.choices);
        let n_no = both().filter(|(label, choice)| is_no(label, &choice.category)).count();
        let mut texts: Vec<String> = both()
            .filter(|(label, choice)| n_no <= FEW || !is_no(label, &choice.category))
            .map(|(_, choice)| atom(&choice.label, &choice.category))
            .collect();
        if n_no > FEW && texts.is_empty() {
            return format!("all {n_no} labels at `no`");
        }
        if n_no > FEW {
            texts.push(format!("and `no` for the other {n_no} labels"));
        }
        if texts.is_empty() { "(no labels)".to_owned() } else { texts.join(", ") }
    }
}

/// `0.500 -> 0.703  #######... ↑`, or the belief alone if nothing is possible.
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

/// `moved activity=overhead 0.500 -> 0.703 (+0.87 log-odds)`, a line per label, what moved most first.
fn moved(f: &mut fmt::Formatter<'_>, rule: &RuleExplanation) -> fmt::Result {
    let mut changes: Vec<(&Influence, &Change, f64)> = rule
        .influences
        .iter()
        .filter_map(|influence| {
            let change = influence.largest()?;
            Some((influence, change, change.change?.abs())).filter(|(_, _, size)| *size >= MOVED)
        })
        .collect();
    changes.sort_by(|a, b| b.2.total_cmp(&a.2));
    for (influence, change, _) in changes.iter().take(MANY) {
        let (Some(without), Some(with)) = (change.without, change.with) else { continue };
        let how = match (change.became, change.log_odds_change) {
            (Some(Became::Certain), _) => " (certain)".to_owned(),
            (Some(Became::Impossible), _) => " (impossible)".to_owned(),
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
    match changes.len().saturating_sub(MANY) {
        0 if changes.is_empty() => writeln!(f, "     moved nothing"),
        0 => Ok(()),
        1 => writeln!(f, "     and 1 more label"),
        more => writeln!(f, "     and {more} more labels"),
    }
}

/// `label=category`, quoted where that is needed.
fn atom(label: &str, category: &str) -> String {
    format!("{}={}", print::name(label), print::name(category))
}

/// Three decimals; what they would hide is told apart: `0`, `2e-7`, `>0.999`, `1`.
fn probability(p: f64) -> String {
    match p {
        0.0 => "0".to_owned(),
        1.0 => "1".to_owned(),
        p if p < MOVED => format!("{p:.0e}"),
        p if p >= 1.0 - MOVED => ">0.999".to_owned(),
        p => format!("{p:.3}"),
    }
}

/// One decimal of a percentage, with the same care.
fn percent(p: f64) -> String {
    match p {
        0.0 | 1.0 => format!("{} %", 100.0 * p),
        p if p < MOVED => format!("{:.0e} %", 100.0 * p),
        p if p >= 1.0 - MOVED => ">99.9 %".to_owned(),
        p => format!("{:.1} %", 100.0 * p),
    }
}

/// Ten places, as many filled as there are tenths.
fn bar(p: f64) -> String {
    let filled = (10.0 * p).round() as usize;
    format!("{}{}", "█".repeat(filled), "·".repeat(10_usize.saturating_sub(filled)))
}

fn column(texts: impl Iterator<Item = String>) -> usize {
    texts.map(|text| text.width()).filter(|&width| width <= WIDEST_NAME).max().unwrap_or(0)
}

fn pad(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(text.width())))
}

/// As many names as fit, and how many do not.
fn shortened(names: impl Iterator<Item = String>, width: usize) -> String {
    let names: Vec<String> = names.collect();
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

/// Words after a heading, broken between words where the line gets too long, the rest indented.
fn paragraph(f: &mut fmt::Formatter<'_>, heading: &str, indent: usize, text: &str) -> fmt::Result {
    let mut line = heading.to_owned();
    let mut is_empty = true;
    for word in text.split(' ') {
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
