//! Finds where the parts of a model are in a JSON text.

use std::ops::Range;

/// The spans of the elements of the array under a key of the outermost object. The text must be valid JSON.
pub(super) fn elements(json: &str, wanted: &str) -> impl Iterator<Item = Range<usize>> {
    let mut spans = Vec::new();
    let mut depth = 0;
    // The key that was read last in the outermost object, and where the current element of its array began.
    let mut key: Option<Range<usize>> = None;
    let mut start: Option<usize> = None;
    let mut at = 0;
    let bytes = json.as_bytes();
    let is_wanted = |key: &Option<Range<usize>>| {
        let text = key.clone().map(|span| &json[span]);
        text.and_then(|text| serde_json::from_str::<String>(text).ok()).is_some_and(|key| key == wanted)
    };
    while at < bytes.len() {
        let end = if bytes[at] == b'"' { string_end(bytes, at) } else { at + 1 };
        let closes = matches!(bytes[at], b']' | b',') && depth == 2;
        if closes && let Some(start) = start.take() {
            spans.push(start..at);
        }
        match bytes[at] {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            b'"' if depth == 1 => key = Some(at..end),
            _ => {}
        }
        // An element begins after the array's bracket or after a comma of the array.
        if depth == 2 && matches!(bytes[at], b'[' | b',') && is_wanted(&key) {
            let blank = bytes[at + 1..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            start = Some(at + 1 + blank).filter(|&start| bytes.get(start) != Some(&b']'));
        }
        at = end;
    }
    spans.into_iter().map(move |span: Range<usize>| span.start..span.start + json[span].trim_end().len())
}

/// The position after the closing quote of the string that begins at `at`.
fn string_end(bytes: &[u8], at: usize) -> usize {
    let mut end = at + 1;
    while end < bytes.len() && bytes[end] != b'"' {
        end += if bytes[end] == b'\\' { 2 } else { 1 };
    }
    end + 1
}
