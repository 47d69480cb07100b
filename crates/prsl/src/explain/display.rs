//! Explanations as text for a terminal.

use std::cmp::Reverse;
use std::fmt;

use unicode_width::UnicodeWidthStr;

use super::layout::{WIDTH, atom, bar, column, counted, pad, paragraph, percent, probability, shortened};
use super::{Became, CategoryExplanation, Change, Explanation, Influence, LabelExplanation, NamedAssignment};
use super::{MOVED, RuleExplanation, RuleKind, TypicalExplanation, size};
use crate::label::{NO, YES};
use crate::syntax::print;

/// Minimum change of a probability that is marked with an arrow.
const ARROW: f64 = 0.05;
/// Maximum number of unchanged labels or rules with lines of their own. More of them share one line.
const MAX_UNCHANGED: usize = 4;
/// Maximum number of labels whose beliefs are shown, unless there are only slightly more.
const MAX_LABELS: usize = 10;
/// Maximum number of rules that are shown.
const MAX_RULES: usize = 6;
/// Maximum number of labels shown per rule.
const MAX_INFLUENCES: usize = 3;
/// Maximum number of categories shown per label, unless there is only one more.
const MAX_CATEGORIES: usize = 4;
/// Difference of log weights up to which two assignments are equally probable. It is larger than rounding errors.
const TIE: f64 = 1e-9;

impl fmt::Display for Explanation {
    /// Shows the beliefs and rules that changed most and the most probable assignment, in lines of less than 100 columns.
    /// The alternate form (`{:#}`) shows all labels, categories and rules.
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
            statement(f, rule, None)?;
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
        let all = f.alternate();
        let is_shown = |label: &&LabelExplanation| match change(label) {
            _ if all => true,
            moved if moved < MOVED => n_still <= MAX_UNCHANGED,
            moved => {
                !self.possible || self.labels.len() <= MAX_LABELS + MAX_UNCHANGED || size(moved) >= least
            }
        };
        let shown: Vec<&LabelExplanation> = self.labels.iter().filter(is_shown).collect();
        let has_given = shown.iter().any(|label| label.is_calibrated());
        let arrows = if has_given { " (as given => calibrated -> posterior)" } else { "" };
        writeln!(f, "beliefs{arrows}")?;
        let titles = column(shown.iter().map(|label| title(label)));
        let categories = column(
            shown
                .iter()
                .flat_map(|label| shown_categories(label, all))
                .map(|category| print::name(&category.name)),
        );
        for label in &shown {
            self.label_lines(f, label, [titles, categories], has_given)?;
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

    /// The lines of one label. `widths` are those of the columns of titles and of categories.
    fn label_lines(
        &self,
        f: &mut fmt::Formatter<'_>,
        label: &LabelExplanation,
        widths: [usize; 2],
        has_given: bool,
    ) -> fmt::Result {
        let mut title = title(label);
        if title.width() > widths[0] {
            writeln!(f, "  {title}")?;
            title.clear();
        }
        let shown = shown_categories(label, f.alternate());
        for category in &shown {
            let name = print::name(&category.name);
            write!(f, "  {}  {}  ", pad(&title, widths[0]), pad(&name, widths[1]))?;
            belief(f, category, has_given)?;
            title.clear();
        }
        let n_left = label.categories.len() - shown.len();
        if n_left == 0 || is_yes_no(label) {
            return Ok(());
        }
        write!(f, "  {}  {}  ", pad("", widths[0]), pad(&format!("{n_left} others"), widths[1]))?;
        belief(f, &others(label, &shown), has_given)
    }

    fn influential_rules(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\nrules, the most influential first")?;
        if self.rules.is_empty() && self.typical.is_none() {
            writeln!(f, "  there are no rules")?;
        }
        let all = f.alternate();
        let moves = |rule: &RuleExplanation| {
            rule.conflict || rule.largest_change.is_some_and(|change| change >= MOVED)
        };
        let is_shown =
            |place: usize, rule: &RuleExplanation| all || rule.conflict || (place < MAX_RULES && moves(rule));
        let mut typical = self.typical.as_ref();
        for (place, rule) in self.most_influential().into_iter().enumerate() {
            let is_next = |it: &&TypicalExplanation| {
                it.largest_change.unwrap_or(0.0) > rule.largest_change.unwrap_or(0.0)
            };
            if let Some(it) = typical.take_if(|it| is_next(&&**it)) {
                combinations(f, it)?;
            }
            if is_shown(place, rule) {
                self.influential_rule(f, rule)?;
            }
        }
        if let Some(it) = typical {
            combinations(f, it)?;
        }
        let ranked = self.most_influential();
        let hidden = ranked.iter().enumerate().filter(|(place, rule)| !is_shown(*place, rule));
        let (moving, still): (Vec<_>, Vec<_>) = hidden.map(|(_, rule)| *rule).partition(|rule| moves(rule));
        if let Some(first) = moving.first() {
            let largest = first.largest_change.unwrap_or(0.0);
            writeln!(f, "  {} moved something by {largest:.3} or less", counted(moving.len(), "more rule"))?;
        }
        if !still.is_empty() {
            writeln!(f, "  {} moved nothing", counted(still.len(), "rule"))?;
        }
        Ok(())
    }

    fn influential_rule(&self, f: &mut fmt::Formatter<'_>, rule: &RuleExplanation) -> fmt::Result {
        statement(f, rule, rule.agreement.filter(|_| !rule.conflict && rule.body_probability.is_some()))?;
        moved(f, &rule.influences)?;
        match rule.agreement {
            Some(agreement) if rule.conflict => writeln!(
                f,
                "     CONFLICT: everything else says otherwise (agrees {}{})",
                probability(agreement),
                at_best(rule)
            ),
            Some(_) if rule.body_probability.is_none() => {
                writeln!(f, "     a probability of 0.5 says nothing")
            }
            Some(_) | None => Ok(()),
        }
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

/// The categories to show. For a yes/no label, the first one suffices. Of many categories, those with the largest
/// probability, before or after.
fn shown_categories(label: &LabelExplanation, all: bool) -> Vec<&CategoryExplanation> {
    let categories = &label.categories;
    if is_yes_no(label) {
        return vec![&categories[0]];
    }
    if all || categories.len() <= MAX_CATEGORIES + 1 {
        return categories.iter().collect();
    }
    let largest = |category: &CategoryExplanation| category.before.max(category.after.unwrap_or(0.0));
    let mut places: Vec<usize> = (0..categories.len()).collect();
    places.sort_by_key(|&place| Reverse(size(largest(&categories[place]))));
    places.truncate(MAX_CATEGORIES);
    places.sort_unstable();
    places.into_iter().map(|place| &categories[place]).collect()
}

/// All categories that are not shown, as one.
fn others(label: &LabelExplanation, shown: &[&CategoryExplanation]) -> CategoryExplanation {
    let rest = |value: &dyn Fn(&CategoryExplanation) -> Option<f64>| -> Option<f64> {
        let shown: Option<f64> = shown.iter().map(|category| value(category)).sum();
        shown.map(|shown| (1.0 - shown).max(0.0))
    };
    CategoryExplanation {
        name: String::new(),
        given: rest(&|category| category.given).filter(|_| label.is_calibrated()),
        before: rest(&|category| Some(category.before)).unwrap_or(0.0),
        after: rest(&|category| category.after),
    }
}

fn is_yes_no(label: &LabelExplanation) -> bool {
    label.categories.iter().map(|category| category.name.as_str()).eq([YES, NO])
}

/// `0.500 -> 0.703  #######... ↑`, or the belief alone if no assignment is possible. Before them is the belief as it was
/// given, if any label has one.
fn belief(f: &mut fmt::Formatter<'_>, category: &CategoryExplanation, has_given: bool) -> fmt::Result {
    match category.given {
        Some(given) => write!(f, "{:>6} => ", probability(given))?,
        None if has_given => write!(f, "          ")?,
        None => {}
    }
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

/// The effect of typical combinations.
fn combinations(f: &mut fmt::Formatter<'_>, typical: &TypicalExplanation) -> fmt::Result {
    writeln!(f, "     {}, all together", counted(typical.n, "typical combination"))?;
    moved(f, &typical.influences)
}

/// `  3  rule 0.8 overhead_work: high & standing -> overhead (agrees 0.713)`. The causes of a noisy-or are hard to read, so it is a
/// sentence.
fn statement(f: &mut fmt::Formatter<'_>, rule: &RuleExplanation, agreement: Option<f64>) -> fmt::Result {
    let kind = match rule.kind {
        RuleKind::Rule => "rule",
        RuleKind::NoisyOr => "noisy_or",
    };
    let name = rule.name.as_ref().map_or_else(String::new, |name| format!(" {}", print::name(name)));
    let p = print::number(rule.probability);
    let text = match rule.kind {
        RuleKind::NoisyOr => format!("{kind}{name}: {}", rule.sentence),
        RuleKind::Rule => format!("{kind} {p}{name}: {}", rule.text),
    };
    let agrees = agreement.map_or_else(String::new, |it| format!(" (agrees {})", probability(it)));
    paragraph(f, &format!("{:>3}  ", rule.number), 9, &(text + &agrees))
}

/// `moved activity=overhead: 0.703 instead of 0.500 (+0.87 log-odds)`, one line per label, the largest change first.
fn moved(f: &mut fmt::Formatter<'_>, influences: &[Influence]) -> fmt::Result {
    let most = if f.alternate() { usize::MAX } else { MAX_INFLUENCES };
    let mut changes: Vec<(&Influence, &Change, f64)> = influences
        .iter()
        .filter_map(|influence| {
            let change = influence.largest()?;
            Some((influence, change, change.change?.abs())).filter(|(_, _, change)| *change >= MOVED)
        })
        .collect();
    changes.sort_by_key(|(_, _, change)| Reverse(size(*change)));
    for (influence, change, _) in changes.iter().take(most) {
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
            "{}: {} instead of {}{how}{indirectly}",
            atom(&influence.label, &change.category),
            probability(with),
            probability(without)
        );
        paragraph(f, "     moved ", 11, &what)?;
    }
    match changes.len().saturating_sub(most) {
        0 if changes.is_empty() => writeln!(f, "     moved nothing"),
        0 => Ok(()),
        more => writeln!(f, "     and {}", counted(more, "more label")),
    }
}
