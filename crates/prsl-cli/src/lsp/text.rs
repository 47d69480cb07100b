//! Positions in a text as the protocol counts them.

use std::ops;

use serde::{Deserialize, Serialize};

/// What the characters of a position count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Bytes.
    Utf8,
    /// Units of 16 bits, the default of the protocol.
    Utf16,
}

impl Encoding {
    /// The name of the encoding in the protocol.
    pub fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "utf-8",
            Self::Utf16 => "utf-16",
        }
    }

    /// The units of a text.
    fn units(self, text: &str) -> usize {
        match self {
            Self::Utf8 => text.len(),
            Self::Utf16 => text.chars().map(char::len_utf16).sum(),
        }
    }

    /// The bytes of the first units of a text. A position inside a character is that of its start.
    fn bytes(self, text: &str, units: usize) -> usize {
        let mut left = units;
        let fits = |c: char| {
            let size = if self == Self::Utf8 { c.len_utf8() } else { c.len_utf16() };
            left.checked_sub(size).map(|rest| left = rest).is_some()
        };
        let mut fits = fits;
        text.char_indices().find(|&(_, c)| !fits(c)).map_or(text.len(), |(at, _)| at)
    }
}

/// A position: line and character, both from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Position {
    line: u32,
    character: u32,
}

/// A range of positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Range {
    start: Position,
    end: Position,
}

/// The lines of a text.
pub struct Lines<'t> {
    text: &'t str,
    encoding: Encoding,
    starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    /// Finds the lines of a text. They end with `\n`, `\r\n` or `\r`.
    pub fn new(text: &'t str, encoding: Encoding) -> Self {
        let bytes = text.as_bytes();
        let ends =
            |at: &usize| bytes[*at] == b'\n' || (bytes[*at] == b'\r' && bytes.get(at + 1) != Some(&b'\n'));
        let starts = (0..bytes.len()).filter(ends).map(|end| end + 1);
        Self { text, encoding, starts: std::iter::once(0).chain(starts).collect() }
    }

    /// The position of a byte, which starts a character.
    pub fn position(&self, byte: usize) -> Position {
        let byte = byte.min(self.text.len());
        let line = self.starts.partition_point(|&start| start <= byte) - 1;
        let character = self.encoding.units(&self.text[self.starts[line]..byte]);
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Position { line: number(line), character: number(character) }
    }

    /// The range of some bytes.
    pub fn range(&self, bytes: ops::Range<usize>) -> Range {
        Range { start: self.position(bytes.start), end: self.position(bytes.end) }
    }

    /// The byte of a position. A position behind its line is the end of the line, and one behind the text is its end.
    pub fn byte(&self, position: Position) -> usize {
        let Some(&start) = self.starts.get(position.line as usize) else { return self.text.len() };
        let end = self.starts.get(position.line as usize + 1).map_or(self.text.len(), |&next| next);
        let line = self.text[start..end].trim_end_matches(['\r', '\n']);
        start + self.encoding.bytes(line, position.character as usize)
    }

    /// The bytes of a range.
    pub fn bytes(&self, range: Range) -> ops::Range<usize> {
        let start = self.byte(range.start);
        start..self.byte(range.end).max(start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Characters of one to four bytes, and all kinds of line ends.
    const TEXT: &str = "aé✓😀b\nx\r\n\ry\n";

    fn at(line: u32, character: u32) -> Position {
        Position { line, character }
    }

    #[test]
    fn positions_and_bytes_are_inverse() {
        for encoding in [Encoding::Utf8, Encoding::Utf16] {
            let lines = Lines::new(TEXT, encoding);
            for (byte, c) in TEXT.char_indices().chain([(TEXT.len(), ' ')]) {
                if c != '\n' {
                    assert_eq!(lines.byte(lines.position(byte)), byte, "{encoding:?}");
                }
            }
        }
    }

    #[test]
    fn characters_are_units_of_16_bits_or_bytes() {
        let b = TEXT.find('b').expect("it is there");
        assert_eq!(Lines::new(TEXT, Encoding::Utf16).position(b), at(0, 5));
        assert_eq!(Lines::new(TEXT, Encoding::Utf8).position(b), at(0, 10));
        let y = TEXT.find('y').expect("it is there");
        assert_eq!(Lines::new(TEXT, Encoding::Utf16).position(y), at(3, 0));
    }

    #[test]
    fn positions_beyond_a_line_or_inside_a_character_are_corrected() {
        let lines = Lines::new(TEXT, Encoding::Utf16);
        assert_eq!(lines.byte(at(0, 99)), TEXT.find('\n').expect("it is there"));
        assert_eq!(lines.byte(at(1, 99)), TEXT.find('\r').expect("it is there"));
        assert_eq!(lines.byte(at(99, 0)), TEXT.len());
        assert_eq!(lines.byte(at(0, 4)), TEXT.find('😀').expect("it is there"));
        let reversed = Range { start: at(1, 1), end: at(0, 0) };
        assert!(lines.bytes(reversed).is_empty());
    }
}
