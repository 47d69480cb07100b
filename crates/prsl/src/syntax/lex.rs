//! The lexer: characters to tokens.

use std::ops::Range;

use crate::diagnostic::{Diagnostic, quoted};
use crate::notation::{continues_word, number, significant, starts_word};

/// One word, number or sign of a model text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) span: Range<usize>,
    /// Whether it is the first token of its line.
    pub(crate) starts_line: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    /// A word without quotes: a name or a keyword.
    Word(String),
    /// A name in double quotes, never a keyword.
    Quoted(String),
    Number(f64),
    Sign(Sign),
    Comment,
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sign {
    Colon,
    Comma,
    OpenParen,
    CloseParen,
    OpenBrace,
    CloseBrace,
    OpenBracket,
    CloseBracket,
    Semicolon,
    Equal,
    NotEqual,
    Not,
    And,
    Or,
    Xor,
    Implies,
    ImpliedBy,
    Iff,
    Tilde,
    Then,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
    PlusMinus,
}

impl Sign {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Sign::Colon => ":",
            Sign::Comma => ",",
            Sign::OpenParen => "(",
            Sign::CloseParen => ")",
            Sign::OpenBrace => "{",
            Sign::CloseBrace => "}",
            Sign::OpenBracket => "[",
            Sign::CloseBracket => "]",
            Sign::Semicolon => ";",
            Sign::Equal => "=",
            Sign::NotEqual => "!=",
            Sign::Not => "!",
            Sign::And => "&",
            Sign::Or => "|",
            Sign::Xor => "xor",
            Sign::Implies => "->",
            Sign::ImpliedBy => "<-",
            Sign::Iff => "<->",
            Sign::Tilde => "~",
            Sign::Then => "=>",
            Sign::Greater => ">",
            Sign::GreaterOrEqual => ">=",
            Sign::Less => "<",
            Sign::LessOrEqual => "<=",
            Sign::PlusMinus => "+-",
        }
    }
}

/// Longest spellings first, so that `<->` is not read as `<-` and `>`.
pub(crate) const SIGNS: [(&str, Sign); 34] = [
    ("<->", Sign::Iff),
    ("->", Sign::Implies),
    ("<-", Sign::ImpliedBy),
    ("=>", Sign::Then),
    (">=", Sign::GreaterOrEqual),
    ("<=", Sign::LessOrEqual),
    ("!=", Sign::NotEqual),
    ("+-", Sign::PlusMinus),
    ("\u{b1}", Sign::PlusMinus),
    (":", Sign::Colon),
    (",", Sign::Comma),
    ("(", Sign::OpenParen),
    (")", Sign::CloseParen),
    ("{", Sign::OpenBrace),
    ("}", Sign::CloseBrace),
    ("[", Sign::OpenBracket),
    ("]", Sign::CloseBracket),
    (";", Sign::Semicolon),
    ("=", Sign::Equal),
    ("≠", Sign::NotEqual),
    ("!", Sign::Not),
    ("¬", Sign::Not),
    ("&", Sign::And),
    ("∧", Sign::And),
    ("|", Sign::Or),
    ("∨", Sign::Or),
    ("⊕", Sign::Xor),
    ("→", Sign::Implies),
    ("←", Sign::ImpliedBy),
    ("↔", Sign::Iff),
    ("~", Sign::Tilde),
    ("⇒", Sign::Then),
    (">", Sign::Greater),
    ("<", Sign::Less),
];

/// All tokens of a text, with comments, and `End` as the last one. Unknown characters are reported as errors and
/// skipped.
pub(crate) fn tokens(source: &str) -> (Vec<Token>, Vec<Diagnostic>) {
    let mut lexer = Lexer { source, at: 0, tokens: Vec::new(), errors: Vec::new() };
    let mut starts_line = true;
    while let Some(c) = lexer.peek() {
        let start = lexer.at;
        if c.is_whitespace() || (c == '\u{feff}' && start == 0) {
            lexer.at += c.len_utf8();
            starts_line |= c == '\n';
            continue;
        }
        if let Some(kind) = lexer.token(c) {
            lexer.tokens.push(Token { kind, span: start..lexer.at, starts_line });
        }
        starts_line = false;
    }
    let end = source.len();
    lexer.tokens.push(Token { kind: Kind::End, span: end..end, starts_line: true });
    (lexer.tokens, lexer.errors)
}

struct Lexer<'a> {
    source: &'a str,
    at: usize,
    tokens: Vec<Token>,
    errors: Vec<Diagnostic>,
}

impl Lexer<'_> {
    fn peek(&self) -> Option<char> {
        self.source[self.at..].chars().next()
    }

    fn eat_while(&mut self, accept: impl Fn(char) -> bool) {
        let rest = &self.source[self.at..];
        self.at += rest.find(|c| !accept(c)).unwrap_or(rest.len());
    }

    fn token(&mut self, c: char) -> Option<Kind> {
        let start = self.at;
        let rest = &self.source[start..];
        if c == '#' {
            self.eat_while(|c| c != '\n');
            // Trailing white space, such as a carriage return, is not part of a comment.
            self.at = start + self.source[start..self.at].trim_end().len();
            return Some(Kind::Comment);
        }
        if c == '"' {
            return self.quoted();
        }
        let negative = c == '-' && rest[1..].starts_with(|c: char| c.is_ascii_digit() || c == '.');
        if c.is_ascii_digit() || negative || (c == '.' && rest[1..].starts_with(|c: char| c.is_ascii_digit()))
        {
            return self.number();
        }
        if starts_word(c) {
            self.eat_while(continues_word);
            return Some(Kind::Word(self.source[start..self.at].to_owned()));
        }
        if let Some((spelling, sign)) = SIGNS.iter().find(|(spelling, _)| rest.starts_with(spelling)) {
            self.at += spelling.len();
            return Some(Kind::Sign(*sign));
        }
        self.at += c.len_utf8();
        let message = format!("unexpected character `{}`", c.escape_debug());
        self.errors.push(Diagnostic::new(start..self.at, message).with_help(
            "names with other characters than letters, digits and `_` are written in double quotes",
        ));
        None
    }

    fn number(&mut self) -> Option<Kind> {
        let start = self.at;
        let bytes = self.source.as_bytes();
        let digits = |mut at: usize| {
            while bytes.get(at).is_some_and(u8::is_ascii_digit) {
                at += 1;
            }
            at
        };
        let mut end = digits(start + usize::from(bytes[start] == b'-'));
        if bytes.get(end) == Some(&b'.') {
            end = digits(end + 1);
        }
        if matches!(bytes.get(end), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
            let exponent = digits(end + 1 + sign);
            if exponent > end + 1 + sign {
                end = exponent;
            }
        }
        self.at = end;
        if bytes.get(end) == Some(&b'%') {
            return self.percentage(start);
        }
        let before = self.at;
        self.eat_while(continues_word);
        let text = &self.source[start..self.at];
        if self.at > before {
            self.errors.push(
                Diagnostic::new(start..self.at, format!("{} is neither a number nor a name", quoted(text)))
                    .with_help(format!(
                        "a name that starts with a digit is written in double quotes: \"{text}\""
                    )),
            );
            return None;
        }
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Some(Kind::Number(number)),
            Ok(_) => {
                self.errors
                    .push(Diagnostic::new(start..self.at, format!("number {} is too large", quoted(text))));
                None
            }
            Err(_) => {
                self.errors
                    .push(Diagnostic::new(start..self.at, format!("{} is not a number", quoted(text))));
                None
            }
        }
    }

    /// Reports a percentage, which ends at a percent sign.
    fn percentage(&mut self, start: usize) -> Option<Kind> {
        let percent: Option<f64> = self.source[start..self.at].parse().ok();
        self.at += 1;
        let message = format!("{} is a percentage", quoted(&self.source[start..self.at]));
        // Rounding hides the binary fraction of 0.07 * 100.
        let share = percent.map(|percent| significant(percent / 100.0, 15)).filter(|it| it.is_finite());
        let help =
            share.map_or("write a number from 0 to 1".to_owned(), |it| format!("write {}", number(it)));
        self.errors.push(Diagnostic::new(start..self.at, message).with_help(help));
        None
    }

    fn quoted(&mut self) -> Option<Kind> {
        let start = self.at;
        self.at += 1;
        let mut name = String::new();
        while let Some(c) = self.peek() {
            let at = self.at;
            self.at += c.len_utf8();
            match c {
                '"' => return Some(Kind::Quoted(name)),
                '\n' => {
                    self.at = at;
                    break;
                }
                '\\' => match self.escape() {
                    Some(escaped) => name.push(escaped),
                    None => {
                        let message = "unknown escape in a quoted name";
                        self.errors.push(Diagnostic::new(at..self.at.max(at + 1), message).with_help(
                            "the escapes are \\\" \\\\ \\n \\r \\t and \\u{...} with a hexadecimal number",
                        ));
                    }
                },
                _ => name.push(c),
            }
        }
        self.errors.push(
            Diagnostic::new(start..self.at, "the quoted name does not end on its line")
                .with_help("close it with a double quote"),
        );
        None
    }

    fn escape(&mut self) -> Option<char> {
        let c = self.peek().filter(|&c| c != '\n')?;
        self.at += c.len_utf8();
        match c {
            '"' | '\\' => Some(c),
            'n' => Some('\n'),
            'r' => Some('\r'),
            't' => Some('\t'),
            'u' => {
                let rest = self.source[self.at..].strip_prefix('{')?;
                let digits = &rest[..rest.find('}').filter(|&length| (1..=6).contains(&length))?];
                let code = u32::from_str_radix(digits, 16).ok()?;
                self.at += digits.len() + 2;
                char::from_u32(code)
            }
            _ => None,
        }
    }
}
