//! Errors in a text with their positions, as plain values that each interface can show in its own way.

use std::fmt;
use std::ops::Range;

use unicode_width::UnicodeWidthStr;

/// One error in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diagnostic {
    /// Byte range in the source.
    pub span: Range<usize>,
    /// The message: a sentence in lower case without a full stop.
    pub message: String,
    /// Advice.
    pub help: Option<String>,
}

impl Diagnostic {
    /// A diagnostic without advice.
    pub fn new(span: Range<usize>, message: impl Into<String>) -> Self {
        Self { span, message: message.into(), help: None }
    }

    /// The same diagnostic with advice.
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Line and column of its start in `source`, both from 1; columns count characters.
    pub fn position(&self, source: &str) -> (usize, usize) {
        position(source, self.span.start)
    }

    /// The diagnostic with its line of `source` and a caret, as compilers show it.
    ///
    /// ```
    /// use prsl::lint::Diagnostic;
    ///
    /// let source = "label weather: sun, rain\nrule 0.9: rian\n";
    /// let diagnostic = Diagnostic::new(35..39, "unknown name `rian`").with_help("did you mean `rain`?");
    /// assert_eq!(diagnostic.render("error", "weather.prsl", source), "\
    /// error: unknown name `rian`
    ///  --> weather.prsl:2:11
    ///   |
    /// 2 | rule 0.9: rian
    ///   |           ^^^^
    ///   = help: did you mean `rain`?
    /// ");
    /// ```
    pub fn render(&self, severity: &str, file: &str, source: &str) -> String {
        self.render_at(severity, file, source, self.position(source))
    }

    /// Renders the diagnostic at a known line and column. Counting the lines of a large text for each of many
    /// diagnostics is slow.
    pub(crate) fn render_at(
        &self,
        severity: &str,
        file: &str,
        source: &str,
        (line_number, column): (usize, usize),
    ) -> String {
        let start = floor_char_boundary(source, self.span.start);
        let line_start = source[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let line_end = source[start..].find('\n').map_or(source.len(), |newline| start + newline);
        let line = source[line_start..line_end].trim_end_matches('\r');
        let end = floor_char_boundary(source, self.span.end)
            .clamp(start, line_start + line.len().max(start - line_start));

        let gutter = line_number.to_string();
        let blank = " ".repeat(gutter.len());
        let width = |text: &str| text.replace('\t', "    ").width();
        let (shown, indent) = window(line, start - line_start, width);
        // Only a part of a long line is shown and marked.
        let caret = width(&source[start..end]).min(shown.width().saturating_sub(indent)).max(1);
        let caret = "^".repeat(caret);
        let mut text = format!(
            "{severity}: {}\n{blank}--> {file}:{line_number}:{column}\n{blank} |\n{gutter} | {shown}\n{blank} | {}{caret}\n",
            self.message,
            " ".repeat(indent),
        );
        if let Some(help) = &self.help {
            text.push_str(&format!("{blank} = help: {help}\n"));
        }
        text
    }
}

/// All errors in a text, in order of position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostics {
    source: String,
    list: Vec<Diagnostic>,
}

impl Diagnostics {
    /// Sorts diagnostics by position. `source` is the text that they are about.
    pub fn new(source: impl Into<String>, mut list: Vec<Diagnostic>) -> Self {
        list.sort_by_key(|diagnostic| (diagnostic.span.start, diagnostic.span.end));
        Self { source: source.into(), list }
    }

    /// The diagnostics.
    pub fn list(&self) -> &[Diagnostic] {
        &self.list
    }

    /// The text they are about.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// All of them with their lines and carets.
    pub fn render(&self, file: &str) -> String {
        let rendered: Vec<_> = self.list.iter().map(|d| d.render("error", file, &self.source)).collect();
        rendered.join("\n")
    }
}

impl fmt::Display for Diagnostics {
    /// One line each: `2:11: unknown name `rian`; did you mean `rain`?`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, diagnostic) in self.list.iter().enumerate() {
            let (line, column) = diagnostic.position(&self.source);
            let newline = if index == 0 { "" } else { "\n" };
            write!(f, "{newline}{line}:{column}: {}", diagnostic.message)?;
            if let Some(help) = &diagnostic.help {
                write!(f, "; {help}")?;
            }
        }
        Ok(())
    }
}

/// The known name most similar to a misspelt one, if it is similar enough for a suggestion.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Maximum length of a name that is compared. The time is quadratic in the length.
    const MAX_LENGTH: usize = 100;
    let length = name.chars().count();
    if length > MAX_LENGTH {
        return None;
    }
    let allowed = (length / 3).clamp(1, 4);
    let lower = name.to_lowercase();
    known
        .into_iter()
        .filter(|candidate| candidate.chars().count().abs_diff(length) <= allowed && *candidate != name)
        .map(|candidate| (strsim::damerau_levenshtein(&lower, &candidate.to_lowercase()), candidate))
        .filter(|(distance, candidate)| *distance <= allowed && *distance < candidate.chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Maximum number of characters of a quotation in a message: about a line.
const LONGEST_QUOTE: usize = 80;

/// Returns a name, a rule or another quotation of at most [`LONGEST_QUOTE`] characters. Longer ones get an ellipsis in the
/// middle, because long names often differ at the end.
pub(crate) fn shortened(text: &str) -> String {
    const ELLIPSIS: &str = " ... ";
    if text.char_indices().nth(LONGEST_QUOTE).is_none() {
        return text.to_owned();
    }
    let n_kept = LONGEST_QUOTE - ELLIPSIS.len();
    let (start, _) = text.char_indices().nth(n_kept.div_ceil(2)).expect("the text is longer");
    let (end, _) = text.char_indices().rev().nth(n_kept / 2 - 1).expect("the text is longer");
    format!("{}{ELLIPSIS}{}", &text[..start], &text[end..])
}

/// Returns a quotation in backticks, shortened to a line. Messages quote names by this function.
pub(crate) fn quoted(text: impl AsRef<str>) -> String {
    format!("`{}`", shortened(text.as_ref()))
}

/// Line and column (in characters), both from 1.
pub(crate) fn position(source: &str, offset: usize) -> (usize, usize) {
    let before = &source[..floor_char_boundary(source, offset)];
    let line = before.bytes().filter(|&byte| byte == b'\n').count() + 1;
    let column = before[before.rfind('\n').map_or(0, |newline| newline + 1)..].chars().count() + 1;
    (line, column)
}

/// The start of the character at a byte position, or the end of the text.
pub(crate) fn floor_char_boundary(text: &str, offset: usize) -> usize {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}

/// The part of a long line around `at`, and the indentation of the caret in it.
fn window(line: &str, at: usize, width: impl Fn(&str) -> usize) -> (String, usize) {
    const MAX_LENGTH: usize = 160;
    if line.len() <= MAX_LENGTH {
        return (line.replace('\t', "    "), width(&line[..at]));
    }
    let from = floor_char_boundary(line, at.saturating_sub(MAX_LENGTH / 2));
    let to = floor_char_boundary(line, at + MAX_LENGTH / 2);
    let lead = if from > 0 { "..." } else { "" };
    let tail = if to < line.len() { "..." } else { "" };
    let shown = format!("{lead}{}{tail}", &line[from..to]).replace('\t', "    ");
    (shown, lead.len() + width(&line[from..at]))
}
