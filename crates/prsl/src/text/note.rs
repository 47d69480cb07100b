//! Notes about how rules were learned, as comments behind the rules.

use std::collections::HashMap;

use crate::notation::number;
use crate::rule::LearnedNote;
use crate::syntax::lex::{Kind, Token};

/// The word that begins a note.
const MARK: &str = "learned:";

/// The note as a comment: `# learned: gain 12.3, broken 3 of 214, expected 41.2, sure`.
pub(super) fn comment(note: &LearnedNote) -> String {
    let [gain, broken, known, expected] = [note.gain, note.broken, note.known, note.expected].map(number);
    let sure = if note.sure { ", sure" } else { "" };
    format!("# {MARK} gain {gain}, broken {broken} of {known}, expected {expected}{sure}")
}

/// The notes of a text, each with the end of the token before it on its line.
pub(super) fn notes(source: &str, tokens: &[Token]) -> HashMap<usize, LearnedNote> {
    let trailing = tokens.windows(2).filter(|pair| pair[1].kind == Kind::Comment && !pair[1].starts_line);
    trailing.filter_map(|pair| Some((pair[0].span.end, read(&source[pair[1].span.clone()])?))).collect()
}

/// The note in a comment. `None` for any other comment, which includes notes with impossible numbers.
fn read(comment: &str) -> Option<LearnedNote> {
    let body = comment.strip_prefix('#')?.trim_start().strip_prefix(MARK)?;
    let parts: Vec<Vec<&str>> = body.split(',').map(|part| part.split_whitespace().collect()).collect();
    let (numbers, sure) = match &parts[..] {
        [numbers @ .., last] if last[..] == ["sure"] => (numbers, true),
        numbers => (numbers, false),
    };
    let [gain, broken, expected] = numbers else { return None };
    let (["gain", gain], ["broken", broken, "of", known], ["expected", expected]) =
        (&gain[..], &broken[..], &expected[..])
    else {
        return None;
    };
    let [gain, broken, known, expected] =
        [gain, broken, known, expected].map(|text| text.parse::<f64>().ok());
    let note = LearnedNote::new(gain?, broken?, known?, expected?, sure);
    note.problem().is_none().then_some(note)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_reads_back_as_it_is_written() {
        let numbers = [0.0, 5e-324, 0.1 + 0.2, 3.0, 999.96, 12_345.678, 1e15, 1.5e300, f64::MAX];
        for (at, &x) in numbers.iter().enumerate() {
            let note = LearnedNote::new(x, numbers[at / 2], x, x / 3.0, at % 2 == 0);
            assert_eq!(read(&comment(&note)), Some(note));
        }
        let note = LearnedNote::new(12.3, 3.0, 214.0, 41.2, false);
        assert_eq!(comment(&note), "# learned: gain 12.3, broken 3 of 214, expected 41.2");
        assert_eq!(read("#learned:gain  1.23e1 ,broken 3  of 214, expected 41.20"), Some(note));
    }

    #[test]
    fn malformed_notes_are_other_comments() {
        for text in [
            "",
            "#",
            "# learned:",
            "# learned: sure",
            "# learned by heart",
            "# Learned: gain 1, broken 0 of 3, expected 1",
            "## learned: gain 1, broken 0 of 3, expected 1",
            "# is learned: gain 1, broken 0 of 3, expected 1",
            "# learned: gain 1, broken 0 of 3",
            "# learned: gain 1, broken 0, expected 1",
            "# learned: broken 0 of 3, gain 1, expected 1",
            "# learned: gain 1, broken 0 of 3, expected 1,",
            "# learned: gain 1, broken 0 of 3, expected 1, sure, sure",
            "# learned: gain 1, broken 0 of 3, expected 1, unsure",
            "# learned: gain 1, broken 0 of 3, expected 1 # checked",
            "# learned: gain one, broken 0 of 3, expected 1",
            "# learned: gain 1 nat, broken 0 of 3, expected 1",
            "# learned: gain -1, broken 0 of 3, expected 1",
            "# learned: gain NaN, broken 0 of 3, expected 1",
            "# learned: gain 1, broken 0 of inf, expected 1",
            "# learned: gain 1e999, broken 0 of 3, expected 1",
            "# learned: gain 1, broken 4 of 3, expected 1",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
