//! The words of one ARFF line.

use std::iter::Peekable;
use std::str::Chars;

use super::Parsed;
use crate::error::ArffProblem;

/// A word of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    Bare(String),
    Quoted(String),
    Comma,
    Open,
    Close,
}

impl Token {
    /// The error that this word is not allowed here.
    pub(super) fn unexpected(self) -> ArffProblem {
        let text = match self {
            Token::Bare(text) | Token::Quoted(text) => text,
            Token::Comma => ",".to_owned(),
            Token::Open => "{".to_owned(),
            Token::Close => "}".to_owned(),
        };
        ArffProblem::Unexpected { text }
    }
}

/// Splits a line into words: `,`, `{`, `}`, quoted text, and sequences of other characters up to a blank, `,`, `{` or
/// `}`.
pub(super) struct Lexer<'a> {
    chars: Peekable<Chars<'a>>,
    /// Whether a value may follow, and whether one must follow.
    place: Place,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Start,
    AfterValue,
    AfterComma,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(line: &'a str) -> Lexer<'a> {
        Lexer { chars: line.chars().peekable(), place: Place::Start }
    }

    /// The next word; `None` at the end of the line and before a comment.
    pub(super) fn next(&mut self) -> Parsed<Option<Token>> {
        while self.chars.next_if(|char| is_blank(*char)).is_some() {}
        let Some(&char) = self.chars.peek() else { return Ok(None) };
        let single = match char {
            '%' => return Ok(None),
            '\'' | '"' => return self.quoted().map(|text| Some(Token::Quoted(text))),
            ',' => Token::Comma,
            '{' => Token::Open,
            '}' => Token::Close,
            _ => return Ok(Some(Token::Bare(self.bare(ends_value)))),
        };
        self.chars.next();
        Ok(Some(single))
    }

    /// The next value or brace. Commas between values are checked and skipped. Blanks separate values too.
    pub(super) fn next_value(&mut self) -> Parsed<Option<Token>> {
        let mut token = self.next()?;
        if token == Some(Token::Comma) {
            if self.place != Place::AfterValue {
                return Err(ArffProblem::EmptyValue);
            }
            self.place = Place::AfterComma;
            token = self.next()?;
        }
        match token {
            None | Some(Token::Close | Token::Comma) if self.place == Place::AfterComma => {
                Err(ArffProblem::EmptyValue)
            }
            Some(Token::Open) => {
                self.place = Place::Start;
                Ok(token)
            }
            _ => {
                self.place = Place::AfterValue;
                Ok(token)
            }
        }
    }

    /// The next word as a name. An unquoted name may contain commas and `}`.
    pub(super) fn next_name(&mut self) -> Parsed<Option<String>> {
        while self.chars.next_if(|char| is_blank(*char)).is_some() {}
        match self.chars.peek() {
            None => Ok(None),
            Some('\'' | '"') => self.quoted().map(Some),
            Some(_) => Ok(Some(self.bare(|char| is_blank(char) || char == '{'))),
        }
    }

    /// Checks that only blanks and a comment follow.
    pub(super) fn end(&mut self) -> Parsed<()> {
        self.next()?.map_or(Ok(()), |token| Err(token.unexpected()))
    }

    fn bare(&mut self, ends: fn(char) -> bool) -> String {
        let mut text = String::new();
        while let Some(char) = self.chars.next_if(|char| !ends(*char)) {
            text.push(char);
        }
        text
    }

    fn quoted(&mut self) -> Parsed<String> {
        let mut text = String::new();
        let quote = self.chars.next();
        loop {
            match self.chars.next() {
                None => return Err(ArffProblem::UnterminatedQuote),
                Some('\\') => text.push(self.escape()?),
                char if char == quote => return Ok(text),
                Some(char) => text.push(char),
            }
        }
    }

    /// An escape sequence after its backslash: `\n`, `\r`, `\t`, `\u0041`, or any other character, which is kept.
    fn escape(&mut self) -> Parsed<char> {
        match self.chars.next().ok_or(ArffProblem::UnterminatedQuote)? {
            'n' => Ok('\n'),
            'r' => Ok('\r'),
            't' => Ok('\t'),
            'u' => Ok(self.code_point().unwrap_or('u')),
            char => Ok(char),
        }
    }

    /// Reads four hexadecimal digits, if they follow.
    fn code_point(&mut self) -> Option<char> {
        let mut ahead = self.chars.clone();
        let mut code = 0;
        for _ in 0..4 {
            code = code * 16 + ahead.next()?.to_digit(16)?;
        }
        let char = char::from_u32(code)?;
        self.chars = ahead;
        Some(char)
    }
}

fn is_blank(char: char) -> bool {
    char.is_ascii_whitespace()
}

fn ends_value(char: char) -> bool {
    is_blank(char) || matches!(char, ',' | '{' | '}')
}
