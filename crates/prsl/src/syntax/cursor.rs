//! A cursor over the tokens of one statement, which reads signs, names, numbers and atoms.

use std::cell::Cell;
use std::collections::HashSet;
use std::ops::Range;

use super::expression::Expression;
use super::lex::{Kind, Sign, Token};
use super::{combination, expectation};
use crate::diagnostic::{Diagnostic, nearest, quoted};
use crate::expectation::Expectation;
use crate::formula::{Atom, Formula};
use crate::label::{CategoryId, Label, LabelId};
use crate::names::{Bare, Names};
use crate::notation::{RESERVED, STATEMENTS};

/// Maximum number of comparisons of misspelt names with known ones in one text. Beyond it there are no suggestions,
/// which bounds the time.
pub(crate) const MAX_COMPARISONS: usize = 200_000;

/// The result of reading at the cursor.
pub(crate) type Parsed<T> = Result<T, Diagnostic>;

/// A position in the tokens of one statement.
pub(crate) struct Cursor<'a> {
    tokens: &'a [Token],
    at: usize,
    names: Option<&'a Names>,
    /// Errors of names. The rest of the statement is read nevertheless.
    pub(crate) errors: Vec<Diagnostic>,
    /// The number of comparisons of misspelt names that are left.
    pub(crate) comparisons: Cell<usize>,
}

impl<'a> Cursor<'a> {
    /// A cursor at the first token. Statements that declare labels are read without names.
    pub(crate) fn new(tokens: &'a [Token], names: Option<&'a Names>) -> Self {
        Self { tokens, at: 0, names, errors: Vec::new(), comparisons: Cell::new(MAX_COMPARISONS) }
    }

    /// The position of the statement in the text.
    pub(crate) fn start(&self) -> usize {
        self.tokens[0].span.start
    }

    /// Whether all tokens have been read.
    pub(crate) fn is_done(&self) -> bool {
        self.at == self.tokens.len()
    }

    /// Counts `n` comparisons of a misspelt name. Returns false if fewer are left.
    fn may_compare(&self, n: usize) -> bool {
        let left = self.comparisons.get().checked_sub(n);
        self.comparisons.set(left.unwrap_or(self.comparisons.get()));
        left.is_some()
    }

    /// The current token, or [`Kind::End`].
    pub(crate) fn kind(&self) -> &'a Kind {
        self.tokens.get(self.at).map_or(&Kind::End, |token| &token.kind)
    }

    /// The span of the current token.
    pub(crate) fn span(&self) -> Range<usize> {
        let end = self.last_end();
        self.tokens.get(self.at).map_or(end..end, |token| token.span.clone())
    }

    /// The current token, if it is a sign.
    pub(crate) fn sign(&self) -> Option<Sign> {
        sign_of(self.kind())
    }

    /// The token after the current one, if it is a sign.
    pub(crate) fn sign_after(&self) -> Option<Sign> {
        self.tokens.get(self.at + 1).and_then(|token| sign_of(&token.kind))
    }

    /// The end of the last token that was read.
    pub(crate) fn last_end(&self) -> usize {
        let last = self.at.min(self.tokens.len());
        self.tokens[..last].last().map_or(0, |token| token.span.end)
    }

    /// Moves to the next token.
    pub(crate) fn advance(&mut self) {
        self.at += 1;
    }

    /// Moves past a sign, if it is the current token. Returns whether it is.
    pub(crate) fn eat(&mut self, sign: Sign) -> bool {
        let found = self.sign() == Some(sign);
        self.at += usize::from(found);
        found
    }

    /// Whether the current token is this word.
    pub(crate) fn is_word(&self, word: &str) -> bool {
        matches!(self.kind(), Kind::Word(found) if found == word)
    }

    /// Moves past a word, if it is the current token. Returns whether it is.
    pub(crate) fn eat_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        self.at += usize::from(found);
        found
    }

    /// Moves past a sign, which must be the current token.
    pub(crate) fn expect_sign(&mut self, sign: Sign) -> Parsed<()> {
        if self.eat(sign) { Ok(()) } else { Err(self.expected(&format!("`{}`", sign.text()))) }
    }

    /// The error "expected ..., found ...", with a suggestion if the current token looks like a misspelt keyword.
    pub(crate) fn expected(&self, what: &str) -> Diagnostic {
        let found = match self.kind() {
            Kind::Word(word) | Kind::Quoted(word) => quoted(word),
            Kind::Number(number) => format!("the number {number}"),
            Kind::Sign(sign) => format!("`{}`", sign.text()),
            Kind::Comment | Kind::End => "the end of the statement".to_owned(),
        };
        let diagnostic = Diagnostic::new(self.span(), format!("expected {what}, found {found}"));
        if let Some(help) = self.foreign_notation() {
            return diagnostic.with_help(help);
        }
        let starts_line = self.tokens.get(self.at).is_some_and(|token| token.starts_line);
        let known: &[&str] = if starts_line { &STATEMENTS } else { &RESERVED };
        match self.kind() {
            Kind::Word(word) if RESERVED.contains(&word.as_str()) && what.contains("name") => diagnostic
                .with_help(format!("`{word}` is a keyword; as a name it is written in double quotes")),
            Kind::Word(word) => match nearest(word, known.iter().copied()) {
                Some(near) => diagnostic.with_help(format!("did you mean {}?", quoted(near))),
                None => diagnostic,
            },
            Kind::Number(_) if what.contains("name") || what.contains("category") => {
                diagnostic.with_help("a name that starts with a digit is written in double quotes")
            }
            _ => diagnostic,
        }
    }

    /// Advice if the current token is written as in another language.
    fn foreign_notation(&self) -> Option<String> {
        match self.kind() {
            Kind::Sign(Sign::Then) => {
                Some("an implication is written `a -> b`; `=>` is for `expect`".to_owned())
            }
            Kind::Sign(Sign::Comma) | Kind::Number(_) => {
                let decimal = self.decimal_comma();
                decimal.map(|decimal| format!("numbers have a decimal point: {decimal}"))
            }
            _ => None,
        }
    }

    /// The number with a decimal comma at the current token, which is the comma or the digits after it, as it should be
    /// written.
    fn decimal_comma(&self) -> Option<String> {
        let comma = if self.sign() == Some(Sign::Comma) { self.at } else { self.at.checked_sub(1)? };
        let tokens = self.tokens.get(comma.checked_sub(1)?..comma + 2)?;
        let [Kind::Number(whole), Kind::Sign(Sign::Comma), Kind::Number(digits)] =
            [&tokens[0].kind, &tokens[1].kind, &tokens[2].kind]
        else {
            return None;
        };
        let touches = tokens.windows(2).all(|pair| pair[0].span.end == pair[1].span.start);
        let is_whole = |number: f64| number.fract() == 0.0 && (0.0..1e15).contains(&number);
        let width = tokens[2].span.len();
        (touches && is_whole(*whole) && is_whole(*digits)).then(|| format!("{whole}.{digits:0>width$}"))
    }

    /// The same where one of these keywords must follow.
    pub(crate) fn expected_one_of(&self, keywords: &[&str]) -> Diagnostic {
        let listed: Vec<String> = keywords.iter().map(|keyword| format!("`{keyword}`")).collect();
        let diagnostic = Diagnostic { help: None, ..self.expected(&listed.join(" or ")) };
        let near = match self.kind() {
            Kind::Word(word) => nearest(word, keywords.iter().copied()),
            _ => None,
        };
        match near {
            Some(near) => diagnostic.with_help(format!("did you mean {}?", quoted(near))),
            None => diagnostic,
        }
    }

    /// Checks that all tokens have been read. The error says what else is expected.
    pub(crate) fn finish(&self, what: &str) -> Parsed<()> {
        if self.at >= self.tokens.len() { Ok(()) } else { Err(self.expected(what)) }
    }

    /// A name and its span.
    pub(crate) fn name(&mut self, what: &str) -> Parsed<(String, Range<usize>)> {
        let span = self.span();
        let name = match self.kind() {
            Kind::Word(word) if !RESERVED.contains(&word.as_str()) => word.clone(),
            Kind::Quoted(name) if name.is_empty() => {
                return Err(
                    Diagnostic::new(span, "a name is empty").with_help("give it at least one character")
                );
            }
            Kind::Quoted(name) => name.clone(),
            _ => return Err(self.expected(what)),
        };
        self.advance();
        Ok((name, span))
    }

    /// A number.
    pub(crate) fn number(&mut self, what: &str) -> Parsed<f64> {
        match self.kind() {
            Kind::Number(number) => {
                self.advance();
                Ok(*number)
            }
            _ => Err(self.expected(what)),
        }
    }

    /// A number from 0 to 1.
    pub(crate) fn probability(&mut self, what: &str) -> Parsed<f64> {
        let span = self.span();
        let number = self.number(what)?;
        if (0.0..=1.0).contains(&number) {
            // -0 becomes 0.
            return Ok(number + 0.0);
        }
        self.at -= 1;
        let help = self.foreign_notation();
        self.at += 1;
        let diagnostic = Diagnostic::new(span, format!("{what} is {number}, expected a number from 0 to 1"));
        Err(Diagnostic { help, ..diagnostic })
    }

    /// A number of at least 0.
    pub(crate) fn weight(&mut self, what: &str) -> Parsed<f64> {
        let span = self.span();
        // The suggestion of a keyword does not help where a number is expected.
        let number = self
            .number(&format!("{what}, a number of at least 0"))
            .map_err(|error| Diagnostic { help: None, ..error })?;
        if number >= 0.0 {
            return Ok(number + 0.0);
        }
        Err(Diagnostic::new(span, format!("{what} is {number}, expected a number of at least 0")))
    }

    /// Probabilities separated by commas, and their span.
    pub(crate) fn numbers(&mut self, what: &str) -> Parsed<(Vec<f64>, Range<usize>)> {
        let start = self.span().start;
        let mut numbers = vec![self.probability(what)?];
        while self.eat(Sign::Comma) {
            numbers.push(self.probability(what)?);
        }
        Ok((numbers, start..self.last_end()))
    }

    /// A whole number for a cardinality.
    pub(crate) fn whole_number(&mut self) -> Parsed<(usize, Range<usize>)> {
        let span = self.span();
        let number = self.number("a whole number")?;
        if number >= 0.0 && number.fract() == 0.0 && number <= f64::from(u32::MAX) {
            return Ok((number as usize, span));
        }
        Err(Diagnostic::new(span, format!("expected a whole number, found {number}")))
    }

    /// The names of the model.
    pub(crate) fn names(&self) -> &'a Names {
        self.names.expect("labels are read before anything that uses them")
    }

    /// Whether no label or category has this name.
    pub(crate) fn is_unknown(&self, name: &str) -> bool {
        self.names.is_none_or(|names| matches!(names.bare(name), Bare::Unknown))
    }

    /// The number of categories of the label of an atom.
    pub(crate) fn n_categories(&self, atom: &Atom) -> usize {
        self.names().labels()[atom.label().index()].n_categories()
    }

    /// The label of a name that was read at `span`.
    pub(crate) fn label_named(&self, name: &str, span: Range<usize>) -> Parsed<LabelId> {
        self.names().label(name).ok_or_else(|| {
            let diagnostic = Diagnostic::new(span, format!("unknown label {}", quoted(name)));
            let names = self.names();
            let near = self.may_compare(names.labels().len()).then(|| names.nearest_label(name)).flatten();
            match near {
                Some(near) => diagnostic.with_help(format!("did you mean {}?", quoted(near))),
                None => diagnostic.with_help("declare it first: `label NAME: CATEGORY, CATEGORY`"),
            }
        })
    }

    /// The longest formula at the cursor.
    pub(crate) fn formula(&mut self) -> Parsed<Formula> {
        Expression::read(self)
    }

    /// The categories of a combination, up to the end of the statement.
    pub(crate) fn combination(&mut self) -> Parsed<Vec<usize>> {
        combination::read(self)
    }

    /// An expectation without its keyword, up to the end of the statement.
    pub(crate) fn expectation(&mut self) -> Parsed<Expectation> {
        expectation::read(self)
    }

    /// An atom as a formula. An unknown name becomes an error of the cursor, and reading continues.
    pub(crate) fn atom_formula(&mut self) -> Parsed<Formula> {
        let before = self.at;
        match self.atom() {
            Ok((atom, false)) => Ok(Formula::atom(atom)),
            Ok((atom, true)) => Ok(Formula::atom(atom).not()),
            // A name was read, so that the error is about its meaning.
            Err(error) if self.at > before && self.names.is_some() => {
                self.errors.push(error);
                self.skip_atom(before);
                Ok(Formula::constant(true))
            }
            Err(error) => Err(error),
        }
    }

    /// Moves past an atom with an unknown name.
    fn skip_atom(&mut self, start: usize) {
        self.at = start + 1;
        if self.eat(Sign::Equal) || self.eat(Sign::NotEqual) {
            self.at += usize::from(matches!(self.kind(), Kind::Word(_) | Kind::Quoted(_) | Kind::Number(_)));
        } else if self.eat_word("in") && self.eat(Sign::OpenBrace) {
            while !self.is_done() && !self.eat(Sign::CloseBrace) {
                self.advance();
            }
        }
    }

    /// An atom that is not negated.
    pub(crate) fn plain_atom(&mut self) -> Parsed<Atom> {
        self.positive_atom(false)
    }

    /// An atom that may be negated: `!alarm`. The negation becomes the atom of the other categories.
    pub(crate) fn possibly_negated_atom(&mut self) -> Parsed<Atom> {
        let mut negate = false;
        while self.eat(Sign::Not) || self.eat_word("not") {
            negate = !negate;
        }
        self.positive_atom(negate)
    }

    fn positive_atom(&mut self, negate: bool) -> Parsed<Atom> {
        let start = self.span().start;
        let (atom, negated) = self.atom()?;
        if negated == negate {
            return Ok(atom);
        }
        let others = (0..self.n_categories(&atom)).map(CategoryId::new).filter(|&c| !atom.contains(c));
        let atom = Atom::one_of(atom.label(), others.collect::<Vec<_>>());
        if atom.categories().is_empty() {
            return Err(Diagnostic::new(start..self.last_end(), "no category is left"));
        }
        Ok(atom)
    }

    /// `label=category`, `label!=category`, `label in {a, b}` or a bare name. Also returns whether it is negated.
    pub(crate) fn atom(&mut self) -> Parsed<(Atom, bool)> {
        // `overhead = 0.7` in an expectation is a comparison. The sign is part of the atom only if a name follows.
        let numeric = matches!(self.tokens.get(self.at + 2).map(|token| &token.kind), Some(Kind::Number(_)));
        let qualifier = self.sign_after();
        let in_set =
            matches!(self.tokens.get(self.at + 1).map(|t| &t.kind), Some(Kind::Word(word)) if word == "in");
        let (name, span) = self.name("a category, a label or `(`")?;
        match qualifier {
            Some(sign @ (Sign::Equal | Sign::NotEqual)) if !(numeric && sign == Sign::Equal) => {
                self.advance();
                let label = self.label_named(&name, span)?;
                let (category, span) = self.name("a category")?;
                let category = self.category_named(label, &category, span)?;
                Ok((Atom::new(label, category), sign == Sign::NotEqual))
            }
            _ if in_set => {
                self.advance();
                self.expect_sign(Sign::OpenBrace)?;
                let label = self.label_named(&name, span)?;
                let mut categories = HashSet::new();
                loop {
                    let (category, span) = self.name("a category")?;
                    let id = self.category_named(label, &category, span.clone())?;
                    if !categories.insert(id) {
                        return Err(Diagnostic::new(
                            span,
                            format!("category {} is listed twice", quoted(&category)),
                        )
                        .with_help("keep one of the two"));
                    }
                    if !self.eat(Sign::Comma) {
                        break;
                    }
                }
                self.expect_sign(Sign::CloseBrace)?;
                Ok((Atom::one_of(label, categories), false))
            }
            _ => self.bare(&name, span).map(|atom| (atom, false)),
        }
    }

    fn category_named(&self, label: LabelId, name: &str, span: Range<usize>) -> Parsed<CategoryId> {
        let found = self.names().category(label, name);
        let label = &self.names().labels()[label.index()];
        found.ok_or_else(|| {
            let diagnostic = Diagnostic::new(
                span,
                format!("unknown category {} of label {}", quoted(name), quoted(label.name())),
            );
            let known = label.categories().iter().map(String::as_str);
            match self.may_compare(label.n_categories()).then(|| nearest(name, known)).flatten() {
                Some(near) => diagnostic.with_help(format!("did you mean {}?", quoted(near))),
                None => diagnostic.with_help(format!("its categories are {}", listed(label))),
            }
        })
    }

    fn bare(&self, name: &str, span: Range<usize>) -> Parsed<Atom> {
        match self.names().bare(name) {
            Bare::Atom(atom) => Ok(atom),
            Bare::Ambiguous(meanings) => {
                let spelled: Vec<_> = meanings.iter().map(quoted).collect();
                Err(Diagnostic::new(span, format!("{} could mean several things", quoted(name)))
                    .with_help(format!("write {}", spelled.join(" or "))))
            }
            // Its declaration has an error, which has been reported.
            Bare::Label(id) if self.names().labels()[id.index()].n_categories() == 0 => {
                Err(Diagnostic::new(span, format!("{} is a label without categories", quoted(name)))
                    .with_help("correct its declaration first"))
            }
            Bare::Label(id) => {
                let label = &self.names().labels()[id.index()];
                let example = self.names().qualified(id, CategoryId::new(0));
                Err(Diagnostic::new(
                    span,
                    format!("{} is a label with the categories {}", quoted(name), listed(label)),
                )
                .with_help(format!("say which one: {}", quoted(&example))))
            }
            Bare::Unknown => {
                let diagnostic = Diagnostic::new(span, format!("unknown category {}", quoted(name)));
                let names = self.names();
                let near = self.may_compare(names.n_bare()).then(|| names.nearest_bare(name)).flatten();
                Err(match near {
                    Some(near) => diagnostic.with_help(format!("did you mean {}?", quoted(near))),
                    None => {
                        diagnostic.with_help("declare it as a category of a label, or as a label of its own")
                    }
                })
            }
        }
    }
}

fn sign_of(kind: &Kind) -> Option<Sign> {
    match kind {
        Kind::Sign(sign) => Some(*sign),
        _ => None,
    }
}

/// The first categories of a label, for messages.
pub(crate) fn listed(label: &Label) -> String {
    let shown: Vec<_> = label.categories().iter().take(10).map(quoted).collect();
    let rest = if label.n_categories() > 10 { ", ..." } else { "" };
    format!("{}{rest}", shown.join(", "))
}
