//! Colors, for terminals only: the streams of [`crate::output`] remove them elsewhere.

use std::path::Path;

use anstyle::{AnsiColor, Color, Style};
use clap::builder::Styles;
use unicode_width::UnicodeWidthStr;

const fn color(color: AnsiColor) -> Style {
    Style::new().fg_color(Some(Color::Ansi(color)))
}

/// Errors.
pub const ERROR: Style = color(AnsiColor::Red).bold();
/// Warnings.
pub const WARNING: Style = color(AnsiColor::Yellow).bold();
/// Notes.
pub const NOTE: Style = color(AnsiColor::Cyan).bold();
/// Success.
pub const GOOD: Style = color(AnsiColor::Green).bold();
/// Emphasis.
pub const STRONG: Style = Style::new().bold();
/// Less important text.
pub const FAINT: Style = Style::new().dimmed();
/// Line numbers and the like.
pub const MARGIN: Style = color(AnsiColor::Blue).bold();
/// The help of the command line.
pub const HELP: Styles = Styles::styled()
    .header(color(AnsiColor::Green).bold())
    .usage(color(AnsiColor::Green).bold())
    .literal(color(AnsiColor::Cyan).bold())
    .placeholder(color(AnsiColor::Cyan));

/// The text in a style.
pub fn styled(style: Style, text: impl std::fmt::Display) -> String {
    format!("{style}{text}{style:#}")
}

/// Number of columns of a text, colors aside.
pub fn width(text: &str) -> usize {
    anstream::adapter::strip_str(text).to_string().width()
}

/// Diagnostics and findings rendered by the library, in color.
pub fn diagnostics(rendered: &str) -> String {
    let mut caret = ERROR;
    let mut painted = String::new();
    for line in rendered.lines() {
        if let Some(style) = heading(line) {
            caret = style;
        }
        painted.push_str(&diagnostic_line(line, caret));
        painted.push('\n');
    }
    painted
}

/// A finding on one line, in color: `model.prsl:3: warning[no-effect]: rule ...`.
pub fn summary(line: &str) -> String {
    let start = [": error[", ": warning[", ": note["].iter().filter_map(|mark| line.find(mark)).min();
    let Some(start) = start.map(|colon| colon + 2) else { return line.to_owned() };
    let end = line[start..].find(": ").map_or(line.len(), |end| start + end);
    let style = heading(&line[start..]).unwrap_or(STRONG);
    format!("{}{}{}", &line[..start], styled(style, &line[start..end]), &line[end..])
}

/// The style of a line such as `warning[no-effect]: rule ...`.
fn heading(line: &str) -> Option<Style> {
    let styles = [("error", ERROR), ("warning", WARNING), ("note", NOTE)];
    styles.into_iter().find(|(word, _)| line.starts_with(word)).map(|(_, style)| style)
}

fn diagnostic_line(line: &str, caret: Style) -> String {
    if let (Some(style), Some((head, message))) = (heading(line), line.split_once(": ")) {
        return format!("{}{}", styled(style, head), styled(STRONG, format_args!(": {message}")));
    }
    let margin = line.find(|c: char| !(c == ' ' || c.is_ascii_digit())).unwrap_or(line.len());
    let rest = &line[margin..];
    for mark in ["-->", "|", "="] {
        let Some(after) = rest.strip_prefix(mark) else { continue };
        let is_caret = mark == "|" && !after.is_empty() && after.chars().all(|c| c == ' ' || c == '^');
        let after = match after.strip_prefix(" help:") {
            Some(help) => format!("{}{help}", styled(STRONG, " help:")),
            None if is_caret => styled(caret, after),
            None => after.to_owned(),
        };
        return format!("{}{after}", styled(MARGIN, format_args!("{}{mark}", &line[..margin])));
    }
    line.to_owned()
}

/// An explanation rendered by the library, in color.
pub fn explanation(rendered: &str) -> String {
    const UP: Style = color(AnsiColor::Green);
    const DOWN: Style = color(AnsiColor::Red);
    let mut painted = String::new();
    for line in rendered.lines() {
        let marks = [("↑", UP), ("↓", DOWN), ("CONFLICT", ERROR)];
        let mark = marks.iter().find_map(|(mark, style)| Some((line.find(mark)?, style)));
        let line = match mark {
            Some((start, style)) => format!("{}{}", &line[..start], styled(*style, &line[start..])),
            None if line.is_empty() || line.starts_with(' ') => line.to_owned(),
            None => styled(STRONG, line),
        };
        painted.push_str(&line);
        painted.push('\n');
    }
    painted
}

/// A path as it is typed in a shell.
pub fn shell(path: &Path) -> String {
    let path = path.display().to_string();
    let plain = |c: char| c.is_alphanumeric() || "/._-+,:@%=".contains(c);
    if !path.is_empty() && path.chars().all(plain) {
        path
    } else {
        format!("'{}'", path.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_quoted_where_a_shell_needs_it() {
        assert_eq!(shell(Path::new("demo/beliefs-1.csv")), "demo/beliefs-1.csv");
        assert_eq!(shell(Path::new("my rules.prsl")), "'my rules.prsl'");
        assert_eq!(shell(Path::new("Ann's.prsl")), r"'Ann'\''s.prsl'");
    }

    #[test]
    fn colors_change_nothing_but_colors() {
        let rendered = "error: unknown name `rian`\n --> w.prsl:2:11\n  |\n2 | rule 0.9: rian\n  |           ^^^^\n  = help: did you mean `rain`?\n";
        let painted = diagnostics(rendered);
        assert_ne!(painted, rendered);
        assert_eq!(anstream::adapter::strip_str(&painted).to_string(), rendered);
        let rendered = "beliefs\n  a  yes 0.1 -> 0.2 ↑ +0.1\n\n  CONFLICT: everything else\n";
        let painted = explanation(rendered);
        assert_ne!(painted, rendered);
        assert_eq!(anstream::adapter::strip_str(&painted).to_string(), rendered);
    }
}
