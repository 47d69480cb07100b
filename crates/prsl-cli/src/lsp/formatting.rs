//! Formatting, as by `prsl fmt`.

use prsl::Document;

use super::text::{Encoding, Lines};
use super::types::TextEdit;

/// The edits that format a text; `None` if it has errors, which the diagnostics show.
///
/// There is at most one edit. It leaves out what both texts begin and end with, so that editors keep the cursor.
pub fn edits(text: &str, encoding: Encoding) -> Option<Vec<TextEdit>> {
    let formatted = Document::format(text).ok()?;
    if formatted == text {
        return Some(Vec::new());
    }
    let start = common_lines(text.split_inclusive('\n'), formatted.split_inclusive('\n'));
    let (old, new) = (&text[start..], &formatted[start..]);
    let end = common_lines(old.split_inclusive('\n').rev(), new.split_inclusive('\n').rev());
    let range = Lines::new(text, encoding).range(start..text.len() - end);
    Some(vec![TextEdit { range, new_text: new[..new.len() - end].to_owned() }])
}

/// The bytes of the first lines that two lists of lines have in common.
fn common_lines<'t>(first: impl Iterator<Item = &'t str>, second: impl Iterator<Item = &'t str>) -> usize {
    first.zip(second).take_while(|(first, second)| first == second).map(|(line, _)| line.len()).sum()
}
