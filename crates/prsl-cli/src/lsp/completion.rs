//! Completion of keywords, labels and categories.

use prsl::Label;
use prsl::editor::{Outline, Suggestion, SuggestionKind};

use super::text::{Encoding, Lines, Position};
use super::types::{CompletionItem, CompletionList, TextEdit};

/// Maximum number of items in an answer. If there are more, those that begin with the typed word are listed.
const MAX_ITEMS: usize = 1000;
/// Maximum number of categories that describe a label.
const MAX_CATEGORIES: usize = 8;

/// What may be written at a position.
pub fn list(text: &str, position: Position, encoding: Encoding) -> CompletionList {
    let lines = Lines::new(text, encoding);
    let outline = Outline::new(text);
    let suggestions = outline.suggestions(lines.byte(position));
    let range = lines.range(suggestions.replaced.clone());
    let is_incomplete = suggestions.list.len() > MAX_ITEMS;
    let typed = text[suggestions.replaced].to_lowercase();
    let is_listed =
        |it: &Suggestion| !is_incomplete || plain(&it.text).to_lowercase().starts_with(plain(&typed));
    let listed = suggestions.list.into_iter().filter(is_listed).take(MAX_ITEMS).enumerate();
    let items = listed.map(|(index, Suggestion { text, kind, .. })| CompletionItem {
        label: text.clone(),
        kind: number(kind),
        detail: detail(outline.labels(), kind),
        sort_text: format!("{index:04}"),
        filter_text: plain(&text).to_owned(),
        text_edit: TextEdit { range, new_text: text },
    });
    CompletionList { is_incomplete, items: items.collect() }
}

/// A name without its quotes. People begin to type it without them.
fn plain(text: &str) -> &str {
    text.trim_matches('"')
}

/// The kind as a number of the protocol: a keyword, an enumeration or a member of one.
fn number(kind: SuggestionKind) -> u8 {
    match kind {
        SuggestionKind::Label(_) => 13,
        SuggestionKind::Category(..) => 20,
        _ => 14,
    }
}

/// The categories of a label, or the label of a category.
fn detail(labels: &[Label], kind: SuggestionKind) -> Option<String> {
    match kind {
        SuggestionKind::Label(label) => {
            let categories = labels[label.index()].categories();
            let shown = categories[..categories.len().min(MAX_CATEGORIES)].join(", ");
            Some(if categories.len() > MAX_CATEGORIES { shown + ", ..." } else { shown })
        }
        SuggestionKind::Category(label, _) => Some(labels[label.index()].name().to_owned()),
        _ => None,
    }
}
