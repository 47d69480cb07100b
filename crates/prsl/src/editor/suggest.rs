//! What may be written at a position of a text.

use std::ops::Range;

use super::{KEYWORDS, Outline};
use crate::diagnostic::floor_char_boundary;
use crate::label::{CategoryId, LabelId};
use crate::notation::{MPE, NONE, name};
use crate::syntax::lex::{Kind, Sign};
use crate::text::can_end_statement;

/// Words of formulas.
const OF_FORMULAS: [&str; 11] =
    ["not", "and", "or", "xor", "in", "of", "true", "false", "at_least", "at_most", "exactly"];
/// Words behind the name and categories of a label.
const OF_LABELS: [&str; 3] = ["from", "latent", "prior"];

/// What may be written at a position of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Suggestions {
    /// The bytes before the position that a suggestion replaces: the beginning of a word.
    pub replaced: Range<usize>,
    /// The suggestions: names in the order of the text, and then keywords.
    pub list: Vec<Suggestion>,
}

/// A word that may be written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Suggestion {
    /// How it is written, in quotes if it needs them.
    pub text: String,
    /// What it is.
    pub kind: SuggestionKind,
}

/// What a suggested word is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SuggestionKind {
    /// A keyword.
    Keyword,
    /// A label.
    Label(LabelId),
    /// A category.
    Category(LabelId, CategoryId),
}

/// What a position admits.
enum Place {
    Nothing,
    Keywords(Vec<&'static str>),
    Labels,
    Categories(LabelId),
    /// Labels, categories and these words.
    Names(Vec<&'static str>),
}

impl Outline<'_> {
    /// What may be written at a byte position. Statements are suggested at the start of a line, categories behind
    /// `label=`, and names and words of formulas in rules and expectations.
    pub fn suggestions(&self, offset: usize) -> Suggestions {
        let offset = floor_char_boundary(self.source, offset);
        let next = self.tokens.partition_point(|token| token.span.start < offset);
        let last = next.checked_sub(1).map(|last| (last, &self.tokens[last]));
        let typed = last.filter(|(_, token)| offset <= token.span.end && is_name(&token.kind));
        let (at, replaced) = match typed {
            Some((at, token)) => (at, token.span.start..offset),
            None => (next, offset..offset),
        };
        // A comment ends at the end of its line, where one may still type.
        let is_inside = |comment: &Range<usize>| comment.start < offset && offset <= comment.end;
        let is_in_comment = self.comments.iter().any(is_inside);
        let is_in_other = typed.is_none() && last.is_some_and(|(_, token)| offset < token.span.end);
        let list = if is_in_comment || is_in_other {
            Vec::new()
        } else {
            self.listed(self.place(at, replaced.start))
        };
        Suggestions { replaced, list }
    }

    fn listed(&self, place: Place) -> Vec<Suggestion> {
        let keywords = |words: Vec<&'static str>| {
            words.into_iter().map(|word| Suggestion { text: word.to_owned(), kind: SuggestionKind::Keyword })
        };
        match place {
            Place::Nothing => Vec::new(),
            Place::Keywords(words) => keywords(words).collect(),
            Place::Labels => self.label_ids().map(|id| self.label(id)).collect(),
            Place::Categories(label) => {
                let n = self.labels()[label.index()].n_categories();
                (0..n).map(|category| self.category(label, CategoryId::new(category), false)).collect()
            }
            Place::Names(words) => {
                let named = self
                    .label_ids()
                    .flat_map(|id| std::iter::once(self.label(id)).chain(self.bare_categories(id)));
                named.chain(keywords(words)).collect()
            }
        }
    }

    /// What the token at this place, which begins at a byte position, may be.
    fn place(&self, at: usize, offset: usize) -> Place {
        let previous = at.checked_sub(1).map(|previous| &self.tokens[previous]);
        let is_complete = previous.is_none_or(|previous| can_end_statement(&previous.kind));
        let starts_line = previous.is_none_or(|it| self.source[it.span.end..offset].contains('\n'));
        if starts_line && is_complete {
            return Place::Keywords(KEYWORDS.statements.to_vec());
        }
        let start = self.statement_of(at.saturating_sub(1));
        if previous.is_some_and(|previous| expects_number(&previous.kind)) {
            return Place::Nothing;
        }
        match self.word(start) {
            Some("label") => match at - start {
                0 | 1 => Place::Nothing,
                _ if self.sign(at - 1).is_some() => Place::Nothing,
                _ if matches!(self.word(at - 1), Some("from" | "prior")) => Place::Nothing,
                _ => Place::Keywords(OF_LABELS.to_vec()),
            },
            Some("calibrate") => match at - start {
                1 => Place::Labels,
                2 => Place::Keywords(KEYWORDS.calibrators.to_vec()),
                _ => Place::Nothing,
            },
            Some("fixed") if at == start + 1 => Place::Keywords(vec!["rule", "noisy_or"]),
            Some("fixed" | "rule" | "noisy_or") if !self.has_colon(start..at) => Place::Nothing,
            Some("typical") if !self.has_colon(start..at) => Place::Nothing,
            statement => match self.qualifier(start, at) {
                Some(label) => Place::Categories(label),
                None => Place::Names(self.words_of(statement, at)),
            },
        }
    }

    /// The keywords that a statement admits beside names.
    fn words_of(&self, statement: Option<&str>, at: usize) -> Vec<&'static str> {
        let after = at.checked_sub(1).and_then(|previous| self.sign(previous));
        match statement {
            Some("noisy_or") => vec!["not", "in"],
            Some("typical") if after == Some(Sign::Colon) => vec!["not", NONE],
            Some("typical") => vec!["not", "in"],
            Some("expect") if after == Some(Sign::Then) => [&[MPE], &OF_FORMULAS[..]].concat(),
            _ => OF_FORMULAS.to_vec(),
        }
    }

    fn label_ids(&self) -> impl Iterator<Item = LabelId> + use<> {
        (0..self.labels().len()).map(LabelId::new)
    }

    fn label(&self, id: LabelId) -> Suggestion {
        Suggestion { text: name(self.labels()[id.index()].name()), kind: SuggestionKind::Label(id) }
    }

    /// The categories of a label. Those of yes/no labels are rarely named: the label itself means `yes`.
    fn bare_categories(&self, label: LabelId) -> impl Iterator<Item = Suggestion> {
        let declared = &self.labels()[label.index()];
        let n = if declared.is_binary() { 0 } else { declared.n_categories() };
        (0..n).map(move |category| self.category(label, CategoryId::new(category), true))
    }

    /// A category, with its label if it is to stand alone and its name means something else, too.
    fn category(&self, label: LabelId, category: CategoryId, is_alone: bool) -> Suggestion {
        let plain = self.labels()[label.index()].category(category);
        let text = match is_alone && !self.names.is_only_meaning(plain, label, category) {
            true => self.names.qualified(label, category),
            false => name(plain),
        };
        Suggestion { text, kind: SuggestionKind::Category(label, category) }
    }
}

/// Whether only a number can follow a token.
fn expects_number(kind: &Kind) -> bool {
    use Sign::{Greater, GreaterOrEqual, Less, LessOrEqual, PlusMinus, Tilde};
    matches!(kind, Kind::Sign(Greater | GreaterOrEqual | Less | LessOrEqual | PlusMinus | Tilde))
}

/// Whether a token is a name or a word, which may be completed.
fn is_name(kind: &Kind) -> bool {
    matches!(kind, Kind::Word(_) | Kind::Quoted(_))
}
