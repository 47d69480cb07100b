//! The labels that a text declares, and what the names in it mean.

use std::ops::Range;

use crate::label::{Label, LabelId};
use crate::names::{Bare, Names};
use crate::notation::RESERVED;
use crate::syntax::lex::{self, Kind, Sign, Token};
use crate::text::{self, Document};

/// The labels that a text declares, and the names in it. Unlike a [`Document`], it is there even if the text has errors.
///
/// If the text is a model, its labels have the same ids as in the model.
///
/// ```
/// use prsl::LabelId;
/// use prsl::editor::Outline;
///
/// let text = "label weather: sun, rain\nrule 0.9: rain -> wett";
/// let outline = Outline::new(text);
/// assert_eq!(outline.labels()[0].name(), "weather");
/// assert_eq!(outline.label_at(text.find("rain ->").unwrap()), Some(LabelId::new(0)));
/// assert_eq!(outline.label_at(text.find("wett").unwrap()), None);
/// ```
#[derive(Clone, Debug)]
pub struct Outline<'s> {
    pub(super) source: &'s str,
    /// All tokens but comments, and the end.
    pub(super) tokens: Vec<Token>,
    pub(super) comments: Vec<Range<usize>>,
    /// Positions among the tokens at which statements begin.
    statements: Vec<usize>,
    pub(super) names: Names,
}

impl<'s> Outline<'s> {
    /// The outline of a text. That of a text with more than [`Document::MAX_BYTES`] is empty.
    pub fn new(source: &'s str) -> Self {
        let source = if source.len() > Document::MAX_BYTES { "" } else { source };
        let (mut tokens, _) = lex::tokens(source);
        let comments = tokens.iter().filter(|token| token.kind == Kind::Comment);
        let comments = comments.map(|token| token.span.clone()).collect();
        tokens.retain(|token| token.kind != Kind::Comment);
        let (names, statements) = text::declared(source, &tokens);
        tokens.pop(); // the end
        Self { source, tokens, comments, statements, names }
    }

    /// The declared labels, in order.
    pub fn labels(&self) -> &[Label] {
        self.names.labels()
    }

    /// The label whose name is at a byte position, or the name of one of its categories. `None` if there is no name, or one
    /// without a meaning.
    pub fn label_at(&self, offset: usize) -> Option<LabelId> {
        let at = self.token_at(offset)?;
        let name = self.name(at)?;
        let start = self.statement_of(at);
        match self.word(start) {
            Some("label") => self.declared_at(start, at),
            Some("calibrate") => self.names.label(name).filter(|_| at == start + 1),
            Some("rule" | "noisy_or" | "fixed") if !self.has_colon(start..at) => None,
            _ => self.qualifier(start, at).or_else(|| self.bare(name, at)),
        }
    }

    /// The token at a byte position. A position between two tokens belongs to the second.
    fn token_at(&self, offset: usize) -> Option<usize> {
        let next = self.tokens.partition_point(|token| token.span.start <= offset);
        let at = next.checked_sub(1)?;
        (offset <= self.tokens[at].span.end).then_some(at)
    }

    /// The token at which the statement of a token begins.
    pub(super) fn statement_of(&self, at: usize) -> usize {
        let next = self.statements.partition_point(|&start| start <= at);
        next.checked_sub(1).map_or(0, |statement| self.statements[statement])
    }

    /// Whether there is a colon among these tokens.
    pub(super) fn has_colon(&self, tokens: Range<usize>) -> bool {
        tokens.clone().any(|at| self.sign(at) == Some(Sign::Colon))
    }

    /// A token that is a name.
    fn name(&self, at: usize) -> Option<&str> {
        match &self.tokens.get(at)?.kind {
            Kind::Word(word) if !RESERVED.contains(&word.as_str()) => Some(word),
            Kind::Quoted(name) => Some(name),
            _ => None,
        }
    }

    /// A token that is a word without quotes.
    pub(super) fn word(&self, at: usize) -> Option<&str> {
        match &self.tokens.get(at)?.kind {
            Kind::Word(word) => Some(word),
            _ => None,
        }
    }

    /// A token that is a sign.
    pub(super) fn sign(&self, at: usize) -> Option<Sign> {
        match &self.tokens.get(at)?.kind {
            Kind::Sign(sign) => Some(*sign),
            _ => None,
        }
    }

    /// The label that a `label` statement declares, if the token is its name or one of its categories.
    fn declared_at(&self, start: usize, at: usize) -> Option<LabelId> {
        let is_setting = (start..at).any(|at| matches!(self.word(at), Some("from" | "prior")));
        if at == start || is_setting {
            return None;
        }
        self.names.label(self.name(start + 1)?)
    }

    /// The label that is named before a token which is its category: `label=` or `label in {a, `.
    pub(super) fn qualifier(&self, start: usize, at: usize) -> Option<LabelId> {
        let before = |back: usize| at.checked_sub(back).filter(|&before| before > start);
        let named = |at: usize| self.names.label(self.name(at)?);
        match self.sign(before(1)?)? {
            Sign::Equal | Sign::NotEqual => named(before(2)?),
            Sign::OpenBrace | Sign::Comma => {
                let opened = (start..at).rev().find(|&at| self.sign(at) == Some(Sign::OpenBrace))?;
                let is_closed = (opened..at).any(|at| self.sign(at) == Some(Sign::CloseBrace));
                let is_set = opened >= 2 && self.word(opened - 1) == Some("in") && !is_closed;
                if is_set { named(opened - 2) } else { None }
            }
            _ => None,
        }
    }

    /// The label of a name in a formula or in evidence: the label itself, or that of its only category of this name.
    fn bare(&self, name: &str, at: usize) -> Option<LabelId> {
        let is_label = matches!(self.sign(at + 1), Some(Sign::Equal | Sign::NotEqual | Sign::Tilde))
            || self.word(at + 1) == Some("in");
        match self.names.bare(name) {
            _ if is_label && self.names.label(name).is_some() => self.names.label(name),
            Bare::Atom(atom) => Some(atom.label()),
            Bare::Label(label) => Some(label),
            Bare::Ambiguous(_) | Bare::Unknown => None,
        }
    }
}
