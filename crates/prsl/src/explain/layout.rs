//! Numbers and lines of text for a terminal.

use std::fmt::{self, Write};

use unicode_width::UnicodeWidthStr;

use super::MOVED;
use crate::syntax::print;

/// Maximum width of a line in columns.
pub(super) const WIDTH: usize = 96;
/// Maximum width of a column of names. Longer names exceed their column.
const MAX_NAME_WIDTH: usize = 28;

/// Three decimals. Values that they would hide are written as `0`, `2e-7`, `>0.999` or `1`.
pub(super) fn probability(p: f64) -> String {
    match p {
        0.0 => "0".to_owned(),
        1.0 => "1".to_owned(),
        p if p < MOVED => format!("{p:.0e}"),
        p if p >= 1.0 - MOVED => ">0.999".to_owned(),
        p => format!("{p:.3}"),
    }
}

/// A percentage with one decimal, with the same exceptions.
pub(super) fn percent(p: f64) -> String {
    match p {
        0.0 | 1.0 => format!("{} %", 100.0 * p),
        p if p < MOVED => format!("{:.0e} %", 100.0 * p),
        p if p >= 1.0 - MOVED => ">99.9 %".to_owned(),
        p => format!("{:.1} %", 100.0 * p),
    }
}

/// A number of bits with three decimals. Values that they would hide are written as `0` or `2e-7`.
pub(super) fn bits(bits: f64) -> String {
    match bits {
        0.0 => "0".to_owned(),
        bits if bits < MOVED => format!("{bits:.0e}"),
        bits => format!("{bits:.3}"),
    }
}

/// Ten characters, one filled for each tenth.
pub(super) fn bar(p: f64) -> String {
    let filled = (10.0 * p).round() as usize;
    format!("{}{}", "█".repeat(filled), "·".repeat(10_usize.saturating_sub(filled)))
}

pub(super) fn column(texts: impl Iterator<Item = String>) -> usize {
    texts.map(|text| text.width()).filter(|&width| width <= MAX_NAME_WIDTH).max().unwrap_or(0)
}

pub(super) fn pad(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(text.width())))
}

pub(super) fn counted(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// `label=category`, quoted if necessary.
pub(super) fn atom(label: &str, category: &str) -> String {
    format!("{}={}", print::name(label), print::name(category))
}

/// Writes `  tell nothing: a, b, and 3 more`; nothing for an empty list.
pub(super) fn listed(f: &mut fmt::Formatter<'_>, what: &str, names: &[String]) -> fmt::Result {
    if names.is_empty() {
        return Ok(());
    }
    let intro = format!("  {what}: ");
    writeln!(f, "{intro}{}", shortened(names, WIDTH.saturating_sub(intro.width())))
}

/// As many names as fit, and the number of the others.
pub(super) fn shortened(names: &[String], width: usize) -> String {
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
pub(super) fn paragraph(f: &mut fmt::Formatter<'_>, heading: &str, indent: usize, text: &str) -> fmt::Result {
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
