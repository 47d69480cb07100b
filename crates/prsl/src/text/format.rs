//! `prsl fmt`: consistent white space around unchanged tokens and comments.

use std::fmt;

use super::Document;
use crate::error::Result;
use crate::notation::STATEMENTS;
use crate::syntax::lex::{self, Kind, Sign, Token};
use unicode_width::UnicodeWidthStr;

impl Document {
    /// Formats a model text. Statements start at the left margin, and continued lines are indented. There is at most
    /// one blank line in a row, and trailing comments of neighboring lines are aligned. Only white space changes:
    /// words, signs, names and numbers stay as they are. Formatting twice changes nothing.
    ///
    /// ```
    /// let text = "label a\nlabel b   # why\n\n\n\nrule 0.9 :a and   not(b)->a#twice";
    /// assert_eq!(prsl::Document::format(text)?, "\
    /// label a
    /// label b  # why
    ///
    /// rule 0.9: a and not (b) -> a  # twice
    /// ");
    /// # Ok::<(), prsl::Error>(())
    /// ```
    pub fn format(source: &str) -> Result<String> {
        Self::parse(source)?;
        let (tokens, _) = lex::tokens(source);
        let mut lines = lines(source, &tokens);
        align_comments(&mut lines);
        Ok(lines.iter().map(Line::to_string).collect())
    }
}

/// Maximum width of a line of code, in columns, with which comments of other lines are aligned. A rule may have
/// thousands of columns, and alignment with it would multiply the size of the text.
const MAX_ALIGNED_WIDTH: usize = 100;

/// One line of a formatted text.
#[derive(Default)]
pub(super) struct Line {
    code: String,
    comment: Option<String>,
    comment_gap: usize,
}

impl Line {
    /// A line of code with a trailing comment, if there is one.
    pub(super) fn new(code: String, comment: Option<String>) -> Self {
        Self { code, comment, comment_gap: 2 }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let code = self.code.trim_end();
        match &self.comment {
            Some(comment) => writeln!(f, "{code}{:gap$}{comment}", "", gap = self.comment_gap),
            None => writeln!(f, "{code}"),
        }
    }
}

/// The tokens in the author's lines, with new spaces.
fn lines(source: &str, tokens: &[Token]) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    let continuations = continuations(tokens);
    let mut previous: Option<&Token> = None;
    for (index, token) in tokens.iter().enumerate().take(tokens.len() - 1) {
        let text = source[token.span.clone()].to_owned();
        if token.starts_line {
            let gap = previous.map_or("", |previous| &source[previous.span.end..token.span.start]);
            if gap.bytes().filter(|&byte| byte == b'\n').count() > 1 {
                lines.push(Line::default());
            }
            let indent = if continuations[index] { "    " } else { "" };
            lines.push(Line { code: indent.to_owned(), ..Line::default() });
        }
        let line = lines.last_mut().expect("the first token starts a line");
        match token.kind {
            Kind::Comment => {
                line.comment_gap = if line.code.trim().is_empty() { line.code.len() } else { 2 };
                line.comment = Some(comment(&text));
            }
            _ => {
                if !token.starts_line && spaced(previous, token, tokens, index) {
                    line.code.push(' ');
                }
                line.code.push_str(&text);
            }
        }
        previous = Some(token);
    }
    lines
}

/// For each token, whether a line that begins with it continues a statement. That is so if the next line with code
/// does not begin with a keyword.
fn continuations(tokens: &[Token]) -> Vec<bool> {
    let begins = |token: &Token| match &token.kind {
        Kind::Word(word) => STATEMENTS.contains(&word.as_str()),
        Kind::End => true,
        _ => false,
    };
    let mut goes_on = false;
    let mut continuations = vec![false; tokens.len()];
    for (index, token) in tokens.iter().enumerate().rev() {
        if token.starts_line && token.kind != Kind::Comment {
            goes_on = !begins(token);
        }
        continuations[index] = goes_on && index > 0;
    }
    continuations
}

fn comment(text: &str) -> String {
    let body = text.trim_start_matches('#');
    let marks = &text[..text.len() - body.len()];
    if body.is_empty() || body.starts_with(' ') || body.starts_with('!') {
        text.to_owned()
    } else {
        format!("{marks} {body}")
    }
}

fn spaced(previous: Option<&Token>, token: &Token, tokens: &[Token], index: usize) -> bool {
    let before = previous.map(|previous| &previous.kind);
    match (before, &token.kind) {
        (_, Kind::Sign(Sign::Comma | Sign::Colon | Sign::CloseParen | Sign::CloseBrace)) => false,
        (_, Kind::Sign(Sign::CloseBracket | Sign::Semicolon)) => false,
        (Some(Kind::Sign(Sign::OpenParen | Sign::OpenBrace | Sign::OpenBracket | Sign::Not)), _) => false,
        // `0.3:0.2` is a point of an isotonic map.
        (Some(Kind::Sign(Sign::Colon)), Kind::Number(_)) => !is_number(tokens.get(index.wrapping_sub(2))),
        // `label=category` is an atom, `overhead = 0.7` is a comparison.
        (_, Kind::Sign(Sign::Equal | Sign::NotEqual)) => is_number(tokens.get(index + 1)),
        (Some(Kind::Sign(Sign::Equal | Sign::NotEqual)), kind) => matches!(kind, Kind::Number(_)),
        _ => true,
    }
}

fn is_number(token: Option<&Token>) -> bool {
    token.is_some_and(|token| matches!(token.kind, Kind::Number(_)))
}

/// Aligns trailing comments of consecutive lines, except those of lines wider than [`MAX_ALIGNED_WIDTH`].
pub(super) fn align_comments(lines: &mut [Line]) {
    let trailing = |line: &Line| line.comment.is_some() && !line.code.trim().is_empty();
    let mut start = 0;
    while start < lines.len() {
        let end = start + lines[start..].iter().take_while(|line| trailing(line)).count();
        let widths: Vec<usize> = lines[start..end].iter().map(|line| line.code.trim_end().width()).collect();
        let widest = widths.iter().copied().filter(|width| *width <= MAX_ALIGNED_WIDTH).max().unwrap_or(0);
        for (line, width) in lines[start..end].iter_mut().zip(widths) {
            line.comment_gap = widest.saturating_sub(width) + 2;
        }
        start = end.max(start + 1);
    }
}
