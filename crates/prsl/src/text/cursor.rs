//! A statement's tokens, read from left to right: signs, names, numbers and atoms.

use std::cell::Cell;
use std::collections::HashSet;
use std::ops::Range;

use super::expression::Expression;
use super::lex::{Kind, Sign, Token};
use super::parse::{RESERVED, STATEMENTS};
use crate::diagnostic::{Diagnostic, nearest, shortened};
use crate::formula::{Atom, Formula};
use crate::label::{CategoryId, Label, LabelId};
use crate::names::{Bare, Names};

/// How many names are compared with misspelt ones in one text, before suggestions are no longer worth the time.
pub(super) const MAX_COMPARISONS: usize = 200_000;

pub(super) type Parsed<T> = Result<T, Diagnostic>;

/// A place in the tokens of one statement.
pub(super) struct Cursor<'a> {
    tokens: &'a [Token],
    at: usize,
    names: Option<&'a Names<'a>>,
    /// Wrong names, which do not stop the statement from being read.
    pub(super) errors: Vec<Diagnostic>,
    /// How many more names may be compared with misspelt ones.
    pub(super) comparisons: Cell<usize>,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(tokens: &'a [Token], names: Option<&'a Names<'a>>) -> Self {
        Self { tokens, at: 0, names, errors: Vec::new(), comparisons: Cell::new(MAX_COMPARISONS) }
    }

    /// Where the statement begins in the text.
    pub(super) fn start(&self) -> usize {
        self.tokens[0].span.start
    }

    /// Whether all of it has been read.
    pub(super) fn is_done(&self) -> bool {
        self.at == self.tokens.len()
    }

    /// Whether there is time to compare a misspelt name with so many others.
    fn may_compare(&self, n: usize) -> bool {
        let left = self.comparisons.get().checked_sub(n);
        self.comparisons.set(left.unwrap_or(self.comparisons.get()));
        left.is_some()
    }

    pub(super) fn kind(&self) -> &'a Kind {
        self.tokens.get(self.at).map_or(&Kind::End, |token| &token.kind)
    }

    pub(super) fn span(&self) -> Range<usize> {
        let end = self.last_end();
        self.tokens.get(self.at).map_or(end..end, |token| token.span.clone())
    }

    pub(super) fn sign(&self) -> Option<Sign> {
        sign_of(self.kind())
    }

    pub(super) fn sign_after(&self) -> Option<Sign> {
        self.tokens.get(self.at + 1).and_then(|token| sign_of(&token.kind))
    }

    /// Where the last token that was read ends.
    pub(super) fn last_end(&self) -> usize {
        let last = self.at.min(self.tokens.len());
        self.tokens[..last].last().map_or(0, |token| token.span.end)
    }

    pub(super) fn advance(&mut self) {
        self.at += 1;
    }

    pub(super) fn eat(&mut self, sign: Sign) -> bool {
        let found = self.sign() == Some(sign);
        self.at += usize::from(found);
        found
    }

    pub(super) fn eat_word(&mut self, word: &str) -> bool {
        let found = matches!(self.kind(), Kind::Word(found) if found == word);
        self.at += usize::from(found);
        found
    }

    pub(super) fn expect_sign(&mut self, sign: Sign) -> Parsed<()> {
        if self.eat(sign) { Ok(()) } else { Err(self.expected(&format!("`{}`", sign.text()))) }
    }

    /// "expected ..., found ...", with a suggestion where a keyword is misspelt.
    pub(super) fn expected(&self, what: &str) -> Diagnostic {
        let found = match self.kind() {
            Kind::Word(word) | Kind::Quoted(word) => format!("`{}`", shortened(word)),
            Kind::Number(number) => format!("the number {number}"),
            Kind::Sign(sign) => format!("`{}`", sign.text()),
            Kind::Comment | Kind::End => "the end of the statement".to_owned(),
        };
        let diagnostic = Diagnostic::new(self.span(), format!("expected {what}, found {found}"));
        let starts_line = self.tokens.get(self.at).is_some_and(|token| token.starts_line);
        let known: &[&str] = if starts_line { &STATEMENTS } else { &RESERVED };
        match self.kind() {
            Kind::Word(word) if RESERVED.contains(&word.as_str()) && what.contains("name") => diagnostic
                .with_help(format!("`{word}` is a keyword; as a name it is written in double quotes")),
            Kind::Word(word) => match nearest(word, known.iter().copied()) {
                Some(near) => diagnostic.with_help(format!("did you mean `{near}`?")),
                None => diagnostic,
            },
            Kind::Number(_) if what.contains("name") || what.contains("category") => {
                diagnostic.with_help("a name that starts with a digit is written in double quotes")
            }
            _ => diagnostic,
        }
    }

    /// The same where only these keywords may stand.
    pub(super) fn expected_one_of(&self, keywords: &[&str]) -> Diagnostic {
        let quoted: Vec<String> = keywords.iter().map(|keyword| format!("`{keyword}`")).collect();
        let diagnostic = Diagnostic { help: None, ..self.expected(&quoted.join(" or ")) };
        let near = match self.kind() {
            Kind::Word(word) => nearest(word, keywords.iter().copied()),
            _ => None,
        };
        match near {
            Some(near) => diagnostic.with_help(format!("did you mean `{near}`?")),
            None => diagnostic,
        }
    }

    pub(super) fn finish(&self, what: &str) -> Parsed<()> {
        if self.at >= self.tokens.len() { Ok(()) } else { Err(self.expected(what)) }
    }

    pub(super) fn name(&mut self, what: &str) -> Parsed<(String, Range<usize>)> {
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

    pub(super) fn number(&mut self, what: &str) -> Parsed<f64> {
        match self.kind() {
            Kind::Number(number) => {
                self.advance();
                Ok(*number)
            }
            _ => Err(self.expected(what)),
        }
    }

    /// A number from 0 to 1.
    pub(super) fn probability(&mut self, what: &str) -> Parsed<f64> {
        let span = self.span();
        let number = self.number(what)?;
        if (0.0..=1.0).contains(&number) {
            // Minus zero is zero.
            return Ok(number + 0.0);
        }
        Err(Diagnostic::new(span, format!("{what} is {number}, expected a number from 0 to 1")))
    }

    /// A number of at least 0.
    pub(super) fn weight(&mut self, what: &str) -> Parsed<f64> {
        let span = self.span();
        // No keyword is near to a number.
        let number = self
            .number(&format!("{what}, a number of at least 0"))
            .map_err(|error| Diagnostic { help: None, ..error })?;
        if number >= 0.0 {
            return Ok(number + 0.0);
        }
        Err(Diagnostic::new(span, format!("{what} is {number}, expected a number of at least 0")))
    }

    pub(super) fn numbers(&mut self, what: &str) -> Parsed<(Vec<f64>, Range<usize>)> {
        let start = self.span().start;
        let mut numbers = vec![self.probability(what)?];
        while self.eat(Sign::Comma) {
            numbers.push(self.probability(what)?);
        }
        Ok((numbers, start..self.last_end()))
    }

    /// A whole number for a cardinality.
    pub(super) fn whole_number(&mut self) -> Parsed<(usize, Range<usize>)> {
        let span = self.span();
        let number = self.number("a whole number")?;
        if number >= 0.0 && number.fract() == 0.0 && number <= f64::from(u32::MAX) {
            return Ok((number as usize, span));
        }
        Err(Diagnostic::new(span, format!("expected a whole number, found {number}")))
    }

    pub(super) fn names(&self) -> &'a Names<'a> {
        self.names.expect("labels are read before anything that uses them")
    }

    pub(super) fn n_categories(&self, atom: &Atom) -> usize {
        self.names().labels()[atom.label().index()].n_categories()
    }

    pub(super) fn label_named(&self, name: &str, span: Range<usize>) -> Parsed<LabelId> {
        self.names().label(name).ok_or_else(|| {
            let diagnostic = Diagnostic::new(span, format!("unknown label `{name}`"));
            let names = self.names();
            let near = self.may_compare(names.labels().len()).then(|| names.nearest_label(name)).flatten();
            match near {
                Some(near) => diagnostic.with_help(format!("did you mean `{near}`?")),
                None => diagnostic.with_help("declare it first: `label NAME: CATEGORY, CATEGORY`"),
            }
        })
    }

    pub(super) fn formula(&mut self) -> Parsed<Formula> {
        Expression::read(self)
    }

    /// An atom as a formula; a wrong name is noted, and the rest of the statement still read.
    pub(super) fn atom_formula(&mut self) -> Parsed<Formula> {
        let before = self.at;
        match self.atom() {
            Ok((atom, false)) => Ok(Formula::atom(atom)),
            Ok((atom, true)) => Ok(Formula::atom(atom).not()),
            // A name was there, so whatever is wrong is its meaning.
            Err(error) if self.at > before && self.names.is_some() => {
                self.errors.push(error);
                self.skip_atom(before);
                Ok(Formula::constant(true))
            }
            Err(error) => Err(error),
        }
    }

    /// Moves past an atom that could not be understood.
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
    pub(super) fn plain_atom(&mut self) -> Parsed<Atom> {
        self.positive_atom(false)
    }

    /// The same, also where it is written with a negation: `!alarm`.
    pub(super) fn possibly_negated_atom(&mut self) -> Parsed<Atom> {
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

    /// `label=category`, `label!=category`, `label in {a, b}`, or a bare name; and whether it is negated.
    pub(super) fn atom(&mut self) -> Parsed<(Atom, bool)> {
        // `overhead = 0.7` in an expectation compares; only a name after the sign makes it part of the atom.
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
                        return Err(Diagnostic::new(span, format!("category `{category}` is listed twice"))
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
            let diagnostic =
                Diagnostic::new(span, format!("unknown category `{name}` of label `{}`", label.name()));
            let known = label.categories().iter().map(String::as_str);
            match self.may_compare(label.n_categories()).then(|| nearest(name, known)).flatten() {
                Some(near) => diagnostic.with_help(format!("did you mean `{near}`?")),
                None => diagnostic.with_help(format!("its categories are {}", listed(label))),
            }
        })
    }

    fn bare(&self, name: &str, span: Range<usize>) -> Parsed<Atom> {
        match self.names().bare(name) {
            Bare::Atom(atom) => Ok(atom),
            Bare::Ambiguous(meanings) => {
                let spelled: Vec<_> = meanings.iter().map(|meaning| format!("`{meaning}`")).collect();
                Err(Diagnostic::new(span, format!("`{name}` could mean several things"))
                    .with_help(format!("write {}", spelled.join(" or "))))
            }
            // Its declaration could not be read, which has been reported.
            Bare::Label(id) if self.names().labels()[id.index()].n_categories() == 0 => {
                Err(Diagnostic::new(span, format!("`{name}` is a label without categories"))
                    .with_help("correct its declaration first"))
            }
            Bare::Label(id) => {
                let label = &self.names().labels()[id.index()];
                let example = self.names().qualified(&Atom::new(id, CategoryId::new(0)));
                Err(Diagnostic::new(
                    span,
                    format!("`{name}` is a label with the categories {}", listed(label)),
                )
                .with_help(format!("say which one: `{example}`")))
            }
            Bare::Unknown => {
                let diagnostic = Diagnostic::new(span, format!("unknown category `{name}`"));
                let names = self.names();
                let near = self.may_compare(names.n_bare()).then(|| names.nearest_bare(name)).flatten();
                Err(match near {
                    Some(near) => diagnostic.with_help(format!("did you mean `{near}`?")),
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

pub(super) fn listed(label: &Label) -> String {
    let shown: Vec<_> = label.categories().iter().take(10).map(|category| format!("`{category}`")).collect();
    let rest = if label.n_categories() > 10 { ", ..." } else { "" };
    format!("{}{rest}", shown.join(", "))
}
