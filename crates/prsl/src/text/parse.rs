//! Reads a model file: tokens to statements, statements to a model.
//!
//! A statement begins with its keyword at the start of a line, and ends where the next one begins. So rules may span
//! several lines. Each statement is read separately, so an error in one does not hide errors in others.

use std::cell::Cell;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use super::statement;
use super::{Document, MAX_BYTES, calibrator, note};
use crate::calibrator::Calibrator;
use crate::combination::{Combination, MAX_CATEGORIES};
use crate::diagnostic::{Diagnostic, Diagnostics, nearest, position, quoted};
use crate::error::{Error, Result};
use crate::expectation::Expectation;
use crate::label::LabelId;
use crate::model::Model;
use crate::names::Names;
use crate::notation::{RESERVED, STATEMENTS};
use crate::rule::{LearnedNote, Rule};
use crate::syntax::cursor::{Cursor, MAX_COMPARISONS, Parsed};
use crate::syntax::lex::{self, Kind, Sign, Token};
use crate::syntax::{MAX_ERRORS, limited};

/// Reserved words that a statement may end with.
const ENDING: [&str; 3] = ["true", "false", "latent"];

/// Reads a whole model file.
pub(super) fn document(source: &str) -> Result<Document> {
    if source.len() > MAX_BYTES {
        return Err(Error::TooLarge { bytes: source.len(), limit: MAX_BYTES });
    }
    let (mut tokens, errors) = lex::tokens(source);
    let notes = note::notes(source, &tokens);
    tokens.retain(|token| token.kind != Kind::Comment);
    let mut errors = Errors::new(source, &tokens, errors);
    let statements = statements(&tokens);
    let (mut names, label_spans) = read_labels(&statements, &mut errors);
    let contents = Contents::read(&statements, &names, notes, &mut errors);
    if !errors.list.is_empty() {
        return Err(Error::Text(Diagnostics::new(source, limited(errors.list))));
    }
    for (label, (calibrator, _)) in contents.calibrators {
        names.set_calibrator(label, calibrator);
    }
    let model = Model::of_names(Arc::new(names), contents.rules, contents.expectations)?
        .with_typical(contents.typical.list)?;
    let document = Document::from_parts(
        source.to_owned(),
        model,
        label_spans,
        contents.rule_spans,
        contents.expectation_spans,
    );
    Ok(document.with_typical_spans(contents.typical.spans))
}

/// The labels that a text declares, even if it has errors, and the tokens at which its statements begin. The last of the
/// tokens is the end; comments are not among them.
pub(crate) fn declared(source: &str, tokens: &[Token]) -> (Names, Vec<usize>) {
    let statements = statements(tokens);
    let (names, _) = read_labels(&statements, &mut Errors::new(source, tokens, Vec::new()));
    let starts = statements.iter().scan(0, |next, statement| {
        let start = *next;
        *next += statement.len();
        Some(start)
    });
    (names, starts.collect())
}

/// The errors found so far in a text.
struct Errors<'s> {
    source: &'s str,
    tokens: &'s [Token],
    /// Parts of the text that are not tokens, in order. They have been reported.
    unreadable: Vec<Range<usize>>,
    list: Vec<Diagnostic>,
}

impl<'s> Errors<'s> {
    /// Starts with the errors of the lexer.
    fn new(source: &'s str, tokens: &'s [Token], list: Vec<Diagnostic>) -> Self {
        let unreadable = list.iter().map(|error| error.span.clone()).collect();
        Self { source, tokens, unreadable, list }
    }

    /// Whether the lexer could read all of a statement. If not, other errors of the statement are not reported, since
    /// they may follow from the unreadable part.
    fn is_readable(&self, statement: &[Token]) -> bool {
        let (first, last) = (statement[0].span.start, statement[statement.len() - 1].span.start);
        let end = self.tokens[self.tokens.partition_point(|token| token.span.start <= last)].span.start;
        let next = self.unreadable.partition_point(|hole| hole.start < first);
        self.unreadable.get(next).is_none_or(|hole| end <= hole.start)
    }

    /// The line of an earlier statement, for messages.
    fn line_of(&self, offset: usize) -> String {
        // Counting the lines of a large text is slow, and errors beyond the limit are not shown.
        if self.list.len() < MAX_ERRORS {
            format!("in line {}", position(self.source, offset).0)
        } else {
            "further up".to_owned()
        }
    }
}

/// Reads the labels, which all other statements refer to. Also returns the spans of their declarations.
fn read_labels(statements: &[&[Token]], errors: &mut Errors<'_>) -> (Names, Vec<Range<usize>>) {
    let mut names = Names::default();
    let mut spans: Vec<Range<usize>> = Vec::new();
    for statement in statements.iter().filter(|statement| keyword(statement) == Some("label")) {
        let (label, result) = statement::label(&mut Cursor::new(statement, None));
        if let Err(error) = result
            && errors.is_readable(statement)
        {
            errors.list.push(error);
        }
        let Some(label) = label else { continue };
        if let Some(first) = names.label(label.name()) {
            let first = errors.line_of(spans[first.index()].start);
            let message = format!("label {} is declared twice", quoted(label.name()));
            errors.list.push(
                Diagnostic::new(statement[1].span.clone(), message)
                    .with_help(format!("the first declaration is {first}; rename or remove one of them")),
            );
        } else {
            names.push(label);
            spans.push(span_of(statement));
        }
    }
    (names, spans)
}

/// Everything in a model file except its labels.
#[derive(Default)]
struct Contents {
    rules: Vec<Rule>,
    rule_spans: Vec<Range<usize>>,
    /// The notes about learned rules, by the end of the statement before each.
    notes: HashMap<usize, LearnedNote>,
    /// The offset of each named rule.
    rule_names: HashMap<String, usize>,
    /// The calibrator of each label, and the offset of its statement.
    calibrators: HashMap<LabelId, (Calibrator, usize)>,
    typical: Typical,
    expectations: Vec<Expectation>,
    expectation_spans: Vec<Range<usize>>,
}

impl Contents {
    fn read(
        statements: &[&[Token]],
        names: &Names,
        notes: HashMap<usize, LearnedNote>,
        errors: &mut Errors<'_>,
    ) -> Self {
        let mut contents = Self { notes, ..Self::default() };
        let mut comparisons = MAX_COMPARISONS;
        for statement in statements {
            let mut cursor = Cursor::new(statement, Some(names));
            cursor.comparisons = Cell::new(comparisons);
            let result = contents.read_statement(statement, &mut cursor, errors);
            comparisons = cursor.comparisons.get();
            if errors.is_readable(statement) {
                errors.list.append(&mut cursor.errors);
                errors.list.extend(result.err());
            }
        }
        contents
    }

    fn read_statement(
        &mut self,
        statement: &[Token],
        cursor: &mut Cursor<'_>,
        errors: &Errors<'_>,
    ) -> Parsed<()> {
        match keyword(statement) {
            Some("label") => Ok(()),
            Some("calibrate") => self.read_calibrator(statement, cursor, errors),
            Some("expect") => {
                self.expectations.push(statement::expectation(cursor)?);
                self.expectation_spans.push(span_of(statement));
                Ok(())
            }
            Some("typical") => {
                self.typical.make_room(cursor.names().labels().len(), cursor)?;
                self.typical.add(statement::typical(cursor)?, span_of(statement), errors)
            }
            Some("fixed" | "rule" | "noisy_or") => self.read_rule(statement, cursor, errors),
            _ => Err(cursor.expected(
                "a line that begins with `label`, `calibrate`, `rule`, `noisy_or`, `fixed`, `typical` or `expect`",
            )),
        }
    }

    fn read_calibrator(
        &mut self,
        statement: &[Token],
        cursor: &mut Cursor<'_>,
        errors: &Errors<'_>,
    ) -> Parsed<()> {
        let (label, calibrator) = calibrator::statement(cursor)?;
        let Some((_, first)) = self.calibrators.insert(label, (calibrator, statement[0].span.start)) else {
            return Ok(());
        };
        let name = cursor.names().labels()[label.index()].name();
        let first = errors.line_of(first);
        Err(Diagnostic::new(statement[1].span.clone(), format!("label {} is calibrated twice", quoted(name)))
            .with_help(format!("the first calibrator is {first}; remove one of them")))
    }

    fn read_rule(&mut self, statement: &[Token], cursor: &mut Cursor<'_>, errors: &Errors<'_>) -> Parsed<()> {
        let (rule, name_span) = statement::rule(cursor)?;
        if let (Some(name), Some(span)) = (rule.name(), name_span)
            && let Some(first) = self.rule_names.insert(name.to_owned(), statement[0].span.start)
        {
            let first = errors.line_of(first);
            return Err(Diagnostic::new(span, format!("two rules are named {}", quoted(name)))
                .with_help(format!("the first is {first}; rename one of them")));
        }
        let span = span_of(statement);
        self.rules.push(rule.with_learned(self.notes.remove(&span.end)));
        self.rule_spans.push(span);
        Ok(())
    }
}

/// The combinations read so far.
#[derive(Default)]
struct Typical {
    list: Vec<Combination>,
    spans: Vec<Range<usize>>,
    first_stated: HashMap<Vec<usize>, usize>,
    /// Categories of all statements, including those with errors.
    n_categories: usize,
}

impl Typical {
    /// Counts one more combination. Returns an error if there are too many for `n_labels` labels.
    fn make_room(&mut self, n_labels: usize, cursor: &Cursor<'_>) -> Parsed<()> {
        self.n_categories = self.n_categories.saturating_add(n_labels);
        if self.n_categories <= MAX_CATEGORIES {
            return Ok(());
        }
        let message = format!("more combinations than fit a model of {n_labels} labels");
        Err(Diagnostic::new(cursor.span(), message).with_help("keep those of the largest weights"))
    }

    /// Adds a combination. Returns an error if it was stated before.
    fn add(&mut self, combination: Combination, span: Range<usize>, errors: &Errors<'_>) -> Parsed<()> {
        if let Some(first) = self.first_stated.insert(combination.categories().to_vec(), span.start) {
            let first = errors.line_of(first);
            return Err(Diagnostic::new(span, "the same combination is stated twice")
                .with_help(format!("the first is {first}; keep one of the two")));
        }
        self.list.push(combination);
        self.spans.push(span);
        Ok(())
    }
}

/// Splits the tokens into statements, at lines that begin with a keyword.
fn statements(tokens: &[Token]) -> Vec<&[Token]> {
    let body = &tokens[..tokens.len() - 1];
    let begins = |index: usize| {
        keyword(&body[index..]).is_some() || (index > 0 && misspelt_keyword(&body[index - 1..]))
    };
    let mut starts: Vec<usize> =
        (0..body.len()).filter(|&index| body[index].starts_line && begins(index)).collect();
    if !body.is_empty() && starts.first() != Some(&0) {
        starts.insert(0, 0);
    }
    starts.push(body.len());
    starts.windows(2).map(|window| &body[window[0]..window[1]]).collect()
}

/// The keyword that a statement begins with.
fn keyword(statement: &[Token]) -> Option<&'static str> {
    match &statement.first()?.kind {
        Kind::Word(word) => STATEMENTS.into_iter().find(|keyword| keyword == word),
        _ => None,
    }
}

/// Whether the second of three tokens looks like a misspelt keyword.
///
/// The first must be able to end a statement, and the third to follow a keyword.
fn misspelt_keyword(tokens: &[Token]) -> bool {
    // `rule3=yes` is an atom. No keyword is followed by a sign, except in expectations without evidence.
    let goes_on = match tokens.get(2).map(|token| &token.kind) {
        Some(Kind::Sign(sign)) => *sign == Sign::Then,
        _ => true,
    };
    match &tokens[1].kind {
        Kind::Word(word) => {
            can_end_statement(&tokens[0].kind)
                && goes_on
                && !RESERVED.contains(&word.as_str())
                && nearest(word, STATEMENTS).is_some()
        }
        _ => false,
    }
}

/// Whether a statement may end in a token: in a name or in one of these keywords, but not in an operator.
pub(crate) fn can_end_statement(kind: &Kind) -> bool {
    match kind {
        Kind::Word(word) => !RESERVED.contains(&word.as_str()) || ENDING.contains(&word.as_str()),
        Kind::Quoted(_) | Kind::Number(_) => true,
        Kind::Sign(sign) => matches!(sign, Sign::CloseBrace | Sign::CloseParen | Sign::CloseBracket),
        _ => false,
    }
}

/// The span of a statement.
fn span_of(statement: &[Token]) -> Range<usize> {
    statement[0].span.start..statement[statement.len() - 1].span.end
}
