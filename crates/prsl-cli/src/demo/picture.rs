//! Prompts, bars and other output.

use anstyle::{AnsiColor, Color, Style};

use crate::style::{self, styled};

/// How the categories of the activity are drawn.
const ACTIVITIES: [(char, Style); 3] = [
    ('█', Style::new().fg_color(Some(Color::Ansi(AnsiColor::Blue)))),
    ('▒', Style::new().fg_color(Some(Color::Ansi(AnsiColor::Green)))),
    ('▀', Style::new().fg_color(Some(Color::Ansi(AnsiColor::Magenta)))),
];
/// The length of a bar.
const BAR: usize = 10;

/// A command with its prompt.
pub fn prompt(command: &str) -> String {
    format!("{} {}", styled(style::FAINT, "$"), styled(style::STRONG, command))
}

/// The text with indented lines.
pub fn indented(text: &str) -> String {
    text.lines().map(|line| if line.is_empty() { "\n".to_owned() } else { format!("  {line}\n") }).collect()
}

/// The legend of a bar.
pub fn legend<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let entries = ACTIVITIES.iter().zip(names);
    let entries: Vec<_> =
        entries.map(|((glyph, style), name)| format!("{} {name}", styled(*style, glyph))).collect();
    entries.join("   ")
}

/// Probabilities as the segments of one bar.
pub fn bar(probabilities: &[f64]) -> String {
    let mut text = String::new();
    let (mut sum, mut drawn) = (0.0, 0);
    for (probability, (glyph, style)) in probabilities.iter().zip(ACTIVITIES) {
        sum += probability;
        let end = (sum * BAR as f64).round() as usize;
        text.push_str(&styled(style, glyph.to_string().repeat(end - drawn)));
        drawn = end;
    }
    text
}

/// One probability as a bar, the rest of it dotted.
pub fn gauge(probability: f64, style: Style) -> String {
    let filled = (probability * BAR as f64).round() as usize;
    format!("{}{}", styled(style, "█".repeat(filled)), styled(style::FAINT, "·".repeat(BAR - filled)))
}

/// A bar of the activity, and the most probable category.
pub fn activity(names: &[String], probabilities: &[f64]) -> String {
    let best = most_probable(probabilities);
    format!("{} {:<8} {:.2}", bar(probabilities), names[best], probabilities[best])
}

/// The position of the first maximum.
pub fn most_probable(probabilities: &[f64]) -> usize {
    (0..probabilities.len()).rev().max_by(|&a, &b| probabilities[a].total_cmp(&probabilities[b])).unwrap_or(0)
}

/// `62.4 %`.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}
