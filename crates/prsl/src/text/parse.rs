//! Tokens to a model.
//!
//! A statement begins with its keyword at the start of a line and ends where the next one begins, so rules may
//! run over several lines. Each statement is read on its own: one that fails does not hide errors of the others.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::calibrator;
use super::expression::Expression;
use super::lex::{self, Kind, Sign, Token};
use super::{Document, MAX_BYTES};
use crate::calibrate::Calibrator;
use crate::combination::{self, Combination};
use crate::diagnostic::{Diagnostic, Diagnostics, nearest};
use crate::error::{Error, Result};
use crate::expectation::{Comparison, Condition, Expectation, Given};
use crate::formula::{Atom, Formula};
use crate::label::{CategoryId, Label, LabelId};
use crate::model::{Model, check_label};
use crate::names::{Bare, Names};
use crate::noisy_or::{Inhibition, NoisyOr};
use crate::rule::{Body, Rule};

/// The words that begin a statement.
pub(super) const STATEMENTS: [&str; 7] =
    ["label", "calibrate", "fixed", "rule", "noisy_or", "typical", "expect"];
/// A combination in which every label is `no`, where nothing is called like this.
pub(super) const NONE: &str = "none";
/// The words that cannot be names unless quoted.
pub(super) const RESERVED: [&str; 14] = [
    "not", "and", "or", "xor", "in", "of", "true", "false", "at_least", "at_most", "exactly", "prior",
    "latent", "from",
];
/// A text with more errors than this is probably not a model at all.
const MAX_ERRORS: usize = 200;
/// How many names are compared with misspelt ones in one text, before suggestions are no longer worth the time.
const MAX_COMPARISONS: usize = 200_000;

pub(super) type Parsed<T> = std::result::Result<T, Diagnostic>;

/// Reads a whole model text.
pub(super) fn document(source: &str) -> Result<Document> {
    if source.len() > MAX_BYTES {
        return Err(Error::TooLarge { bytes: source.len(), limit: MAX_BYTES });
    }
    let (mut tokens, mut errors) = lex::tokens(source);
    tokens.retain(|token| token.kind != Kind::Comment);
    let unreadable: Vec<Range<usize>> = errors.iter().map(|error| error.span.clone()).collect();
    let statements = statements(&tokens);
    // What could not be read as a token has been reported; what its absence breaks need not be.
    let readable = |statement: &[Token]| {
        let start = statement[0].span.start;
        let end = tokens
            [tokens.partition_point(|t| t.span.start <= statement[statement.len() - 1].span.start)]
        .span
        .start;
        let next = unreadable.partition_point(|hole| hole.start < start);
        unreadable.get(next).is_none_or(|hole| end <= hole.start)
    };

    let mut labels: Vec<Label> = Vec::new();
    let mut label_spans = Vec::new();
    let mut first_declared: HashMap<String, usize> = HashMap::new();
    for statement in statements.iter().filter(|statement| keyword(statement) == Some("label")) {
        let mut cursor = Cursor::new(statement, None);
        let (label, result) = label(&mut cursor);
        if let Err(error) = result
            && readable(statement)
        {
            errors.push(error);
        }
        let Some(label) = label else { continue };
        match first_declared.entry(label.name().to_owned()) {
            std::collections::hash_map::Entry::Occupied(first) => {
                let first = first_in_line(source, *first.get(), errors.len());
                errors.push(
                    Diagnostic::new(
                        statement[1].span.clone(),
                        format!("label `{}` is declared twice", label.name()),
                    )
                    .with_help(format!("the first declaration is {first}; rename or remove one of them")),
                );
            }
            std::collections::hash_map::Entry::Vacant(slot) => {
                slot.insert(statement[0].span.start);
                label_spans.push(span_of(statement));
                labels.push(label);
            }
        }
    }

    let names = Names::new(&labels);
    let mut rules: Vec<Rule> = Vec::new();
    let mut rule_spans: Vec<Range<usize>> = Vec::new();
    let mut rule_names: HashMap<String, usize> = HashMap::new();
    let mut calibrators: HashMap<LabelId, (Calibrator, usize)> = HashMap::new();
    let mut typical = Typical::default();
    let mut expectations = Vec::new();
    let mut expectation_spans = Vec::new();
    let mut comparisons = MAX_COMPARISONS;
    for statement in &statements {
        let mut cursor = Cursor::new(statement, Some(&names));
        cursor.comparisons = Cell::new(comparisons);
        let result = match keyword(statement) {
            Some("label") => continue,
            Some("calibrate") => calibrator::statement(&mut cursor).and_then(|(label, calibrator)| {
                match calibrators.insert(label, (calibrator, statement[0].span.start)) {
                    Some((_, first)) => {
                        let name = names.labels()[label.index()].name();
                        let first = first_in_line(source, first, errors.len());
                        let message = format!("label `{name}` is calibrated twice");
                        Err(Diagnostic::new(statement[1].span.clone(), message)
                            .with_help(format!("the first calibrator is {first}; remove one of them")))
                    }
                    None => Ok(()),
                }
            }),
            Some("expect") => {
                cursor.advance();
                expectation_statement(&mut cursor).map(|expectation| {
                    expectations.push(expectation);
                    expectation_spans.push(span_of(statement));
                })
            }
            Some("typical") => typical
                .make_room(labels.len(), &cursor)
                .and_then(|()| typical_statement(&mut cursor))
                .and_then(|combination| typical.add(combination, span_of(statement), source, errors.len())),
            Some("fixed" | "rule" | "noisy_or") => rule_statement(&mut cursor).and_then(|(rule, name_span)| {
                if let (Some(name), Some(span)) = (rule.name(), name_span)
                    && let Some(first) = rule_names.insert(name.to_owned(), statement[0].span.start)
                {
                    let first = first_in_line(source, first, errors.len());
                    return Err(Diagnostic::new(span, format!("two rules are named `{name}`"))
                        .with_help(format!("the first is {first}; rename one of them")));
                }
                rules.push(rule);
                rule_spans.push(span_of(statement));
                Ok(())
            }),
            _ => Err(cursor.expected(
                "a line that begins with `label`, `calibrate`, `rule`, `noisy_or`, `fixed`, `typical` or `expect`",
            )),
        };
        comparisons = cursor.comparisons.get();
        if readable(statement) {
            errors.append(&mut cursor.errors);
            errors.extend(result.err());
        }
    }

    if !errors.is_empty() {
        return Err(Error::Text(Diagnostics::new(source, limited(errors))));
    }
    for (label, (calibrator, _)) in calibrators {
        let label = &mut labels[label.index()];
        *label = label.clone().with_calibrator(calibrator);
    }
    let model = Model::from_parts(labels, rules, expectations)?.with_typical(typical.list)?;
    let document = Document::from_parts(source.to_owned(), model, label_spans, rule_spans, expectation_spans);
    Ok(document.with_typical_spans(typical.spans))
}

/// Reads a formula that stands alone.
pub(crate) fn formula(source: &str, names: &Names<'_>) -> Result<Formula> {
    alone(source, names, |cursor| cursor.formula(), Error::Formula)
}

/// Reads an expectation that stands alone, without its keyword.
pub(crate) fn expectation(source: &str, names: &Names<'_>) -> Result<Expectation> {
    alone(source, names, expectation_statement, Error::Text)
}

/// Reads the categories of a combination that stand alone.
pub(crate) fn combination(source: &str, names: &Names<'_>) -> Result<Vec<usize>> {
    alone(source, names, combined_categories, Error::Text)
}

/// Reads something that stands alone: all of the text, or the errors in it.
fn alone<T>(
    source: &str,
    names: &Names<'_>,
    read: impl FnOnce(&mut Cursor<'_>) -> Parsed<T>,
    error: impl FnOnce(Diagnostics) -> Error,
) -> Result<T> {
    if source.len() > MAX_BYTES {
        return Err(Error::TooLarge { bytes: source.len(), limit: MAX_BYTES });
    }
    let (mut tokens, mut errors) = lex::tokens(source);
    tokens.retain(|token| token.kind != Kind::Comment);
    if errors.is_empty() {
        let mut cursor = Cursor::new(&tokens[..tokens.len() - 1], Some(names));
        let result = read(&mut cursor).and_then(|value| cursor.finish("the end").map(|()| value));
        errors = cursor.errors;
        match result {
            Ok(value) if errors.is_empty() => return Ok(value),
            Ok(_) => {}
            Err(diagnostic) => errors.push(diagnostic),
        }
    }
    Err(error(Diagnostics::new(source, limited(errors))))
}

/// Where the first of two of the same name stands; counting lines for more errors than are shown takes long.
fn first_in_line(source: &str, offset: usize, n_errors: usize) -> String {
    if n_errors < MAX_ERRORS {
        format!("in line {}", crate::diagnostic::position(source, offset).0)
    } else {
        "further up".to_owned()
    }
}

fn limited(mut errors: Vec<Diagnostic>) -> Vec<Diagnostic> {
    errors.sort_by_key(|error| error.span.start);
    if errors.len() > MAX_ERRORS {
        let more = errors.len() - MAX_ERRORS;
        errors.truncate(MAX_ERRORS);
        let last = errors[MAX_ERRORS - 1].span.clone();
        errors.push(Diagnostic::new(last, format!("and {more} more errors")));
    }
    errors
}

/// Cuts the tokens where a line begins with a statement's keyword.
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

fn keyword(statement: &[Token]) -> Option<&'static str> {
    match &statement.first()?.kind {
        Kind::Word(word) => STATEMENTS.into_iter().find(|keyword| keyword == word),
        _ => None,
    }
}

/// Whether the second token looks like a misspelt keyword where the first may end a statement.
fn misspelt_keyword(tokens: &[Token]) -> bool {
    let complete = matches!(
        tokens[0].kind,
        Kind::Word(_)
            | Kind::Quoted(_)
            | Kind::Number(_)
            | Kind::Sign(Sign::CloseBrace | Sign::CloseParen | Sign::CloseBracket)
    );
    match &tokens[1].kind {
        Kind::Word(word) => {
            complete && !RESERVED.contains(&word.as_str()) && nearest(word, STATEMENTS).is_some()
        }
        _ => false,
    }
}

fn span_of(statement: &[Token]) -> Range<usize> {
    statement[0].span.start..statement[statement.len() - 1].span.end
}

/// `label NAME [: CATEGORY, ...] [from CLASSIFIER | latent] [prior NUMBER, ...]`
///
/// Returns what is known of the label even when the statement has an error, so that the rules that use it are
/// not reported too.
fn label(cursor: &mut Cursor<'_>) -> (Option<Label>, Parsed<()>) {
    cursor.advance();
    let name = match cursor.name("a name for the label") {
        Ok((name, _)) => name,
        Err(error) => return (None, Err(error)),
    };
    let mut categories = Vec::new();
    let mut result = Ok(());
    if cursor.eat(Sign::Colon) {
        loop {
            match cursor.name("a category") {
                Ok((category, _)) => categories.push(category),
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
            if !cursor.eat(Sign::Comma) {
                break;
            }
        }
    }
    let declared = !categories.is_empty() || result.is_err();
    let label = if declared { Label::new(name, categories) } else { Label::binary(name) };
    match result.and_then(|()| label_settings(cursor, label.clone())) {
        Ok(label) => (Some(label), Ok(())),
        Err(error) => (Some(label), Err(error)),
    }
}

fn label_settings(cursor: &mut Cursor<'_>, mut label: Label) -> Parsed<Label> {
    let whole = cursor.tokens[0].span.start;
    if cursor.eat_word("latent") {
        label = label.latent();
    } else if cursor.eat_word("from") {
        label = label.from_classifier(cursor.name("the classifier's name")?.0);
    }
    let mut problem = whole..cursor.last_end();
    if cursor.eat_word("prior") {
        let (mut prior, span) = cursor.numbers("a prior probability")?;
        if let ([yes], true) = (&prior[..], label.is_binary()) {
            prior = vec![*yes, 1.0 - yes];
        }
        label = label.with_prior(prior);
        problem = span;
    }
    cursor.finish("`from`, `latent`, `prior` or the next line")?;
    check_label(&label).map_err(|error| Diagnostic::new(problem, error.to_string()))?;
    Ok(label)
}

/// `[fixed] rule P [NAME]: FORMULA` or `[fixed] noisy_or P [NAME]: ATOM Q, ...`; also the span of the name.
fn rule_statement(cursor: &mut Cursor<'_>) -> Parsed<(Rule, Option<Range<usize>>)> {
    let is_fixed = cursor.eat_word("fixed");
    let noisy = cursor.eat_word("noisy_or");
    if !noisy && !cursor.eat_word("rule") {
        return Err(cursor.expected_one_of(&["rule", "noisy_or"]));
    }
    let probability = cursor.probability("the rule's probability")?;
    let name = match cursor.sign() {
        Some(Sign::Colon) => None,
        _ => Some(cursor.name("`:` or a name for the rule")?),
    };
    cursor.expect_sign(Sign::Colon)?;
    let body = if noisy { Body::NoisyOr(inhibitions(cursor)?) } else { Body::Formula(cursor.formula()?) };
    cursor.finish(if noisy { "`,` or the next line" } else { "an operator or the next line" })?;
    let rule = Rule::new(probability, body).fixed(is_fixed);
    Ok(match name {
        Some((name, span)) => (rule.named(name), Some(span)),
        None => (rule, None),
    })
}

fn inhibitions(cursor: &mut Cursor<'_>) -> Parsed<NoisyOr> {
    let mut inhibitions: Vec<Inhibition> = Vec::new();
    let mut seen = HashSet::new();
    loop {
        let start = cursor.span().start;
        let (atom, negated) = cursor.atom()?;
        let probability = cursor.probability("the inhibition probability")?;
        let n_categories = cursor.n_categories(&atom);
        for category in (0..n_categories).map(CategoryId::new) {
            if atom.contains(category) == negated {
                continue;
            }
            if !seen.insert((atom.label(), category)) {
                let named = cursor.names().qualified(&Atom::new(atom.label(), category));
                return Err(Diagnostic::new(start..cursor.last_end(), format!("`{named}` is named twice"))
                    .with_help("keep one of the two"));
            }
            inhibitions.push(Inhibition { label: atom.label(), category, probability });
        }
        if !cursor.eat(Sign::Comma) {
            return Ok(NoisyOr::new(inhibitions));
        }
    }
}

/// The combinations read so far.
#[derive(Default)]
struct Typical {
    list: Vec<Combination>,
    spans: Vec<Range<usize>>,
    first_stated: HashMap<Vec<usize>, usize>,
    /// Categories of all statements, wrong ones too.
    n_categories: usize,
}

impl Typical {
    /// That one more combination of so many labels is not too much.
    fn make_room(&mut self, n_labels: usize, cursor: &Cursor<'_>) -> Parsed<()> {
        self.n_categories = self.n_categories.saturating_add(n_labels);
        if self.n_categories <= combination::MAX_CATEGORIES {
            return Ok(());
        }
        let message = format!("more combinations than fit a model of {n_labels} labels");
        Err(Diagnostic::new(cursor.span(), message).with_help("keep those of the largest weights"))
    }

    fn add(
        &mut self,
        combination: Combination,
        span: Range<usize>,
        source: &str,
        n_errors: usize,
    ) -> Parsed<()> {
        if let Some(first) = self.first_stated.insert(combination.categories().to_vec(), span.start) {
            let first = first_in_line(source, first, n_errors);
            return Err(Diagnostic::new(span, "the same combination is stated twice")
                .with_help(format!("the first is {first}; keep one of the two")));
        }
        self.list.push(combination);
        self.spans.push(span);
        Ok(())
    }
}

/// `typical W: CATEGORY, ...` or `typical W: none`
fn typical_statement(cursor: &mut Cursor<'_>) -> Parsed<Combination> {
    cursor.advance();
    let weight = cursor.weight("the combination's weight")?;
    cursor.expect_sign(Sign::Colon)?;
    Ok(Combination::new(weight, combined_categories(cursor)?))
}

/// The category of every label; of yes/no labels that are not named, `no`.
fn combined_categories(cursor: &mut Cursor<'_>) -> Parsed<Vec<usize>> {
    let labels = cursor.names().labels();
    let start = cursor.span().start;
    let is_none = matches!(cursor.names().bare(NONE), Bare::Unknown) && cursor.eat_word(NONE);
    let given = if is_none { vec![None; labels.len()] } else { named_categories(cursor)? };
    cursor.finish(if is_none { "the next line" } else { "`,` or the next line" })?;
    combination::completed(labels, &given).map_err(|missing| {
        let label = &labels[missing.index()];
        let message = format!("the combination names no category of label `{}`", label.name());
        Diagnostic::new(start..cursor.last_end(), message)
            .with_help(format!("only yes/no labels may be left out; add one of {}", listed(label)))
    })
}

/// `CATEGORY, ...`: the category of every label that is named.
fn named_categories(cursor: &mut Cursor<'_>) -> Parsed<Vec<Option<usize>>> {
    let labels = cursor.names().labels();
    let mut given = vec![None; labels.len()];
    loop {
        if cursor.at == cursor.tokens.len() {
            return Err(cursor.expected("a category, a label or `none`"));
        }
        let start = cursor.span().start;
        let atom = cursor.possibly_negated_atom()?;
        let span = start..cursor.last_end();
        let name = labels[atom.label().index()].name();
        let Some(category) = atom.single() else {
            return Err(Diagnostic::new(span, format!("several categories of label `{name}` are left"))
                .with_help("a combination has one category of each label"));
        };
        if given[atom.label().index()].replace(category.index()).is_some() {
            return Err(Diagnostic::new(span, format!("label `{name}` is named twice in one combination"))
                .with_help("keep one of the two"));
        }
        if !cursor.eat(Sign::Comma) {
            return Ok(given);
        }
    }
}

/// `[GIVEN, ...] => CONDITION`
fn expectation_statement(cursor: &mut Cursor<'_>) -> Parsed<Expectation> {
    let mut given: Vec<Given> = Vec::new();
    let mut seen = HashSet::new();
    while !cursor.eat(Sign::Then) {
        if !given.is_empty() {
            cursor.expect_sign(Sign::Comma)?;
        }
        let start = cursor.span().start;
        let next = self::given(cursor)?;
        if !seen.insert(next.label()) {
            let name = cursor.names().labels()[next.label().index()].name();
            return Err(Diagnostic::new(start..cursor.last_end(), format!("label `{name}` is given twice"))
                .with_help("keep one of the two"));
        }
        given.push(next);
    }
    let condition = if cursor.eat_word("mpe") {
        let mut atoms = vec![cursor.plain_atom()?];
        while cursor.eat(Sign::Comma) {
            atoms.push(cursor.plain_atom()?);
        }
        Condition::Mpe(atoms)
    } else {
        let atom = cursor.plain_atom()?;
        Condition::Marginal(atom, comparison(cursor)?)
    };
    cursor.finish("the next line")?;
    Ok(Expectation { given, condition })
}

/// `CATEGORY`, `label=category`, or `label ~ (p1, p2, ...)`
fn given(cursor: &mut Cursor<'_>) -> Parsed<Given> {
    let start = cursor.span().start;
    if cursor.sign_after() == Some(Sign::Tilde) {
        let (name, span) = cursor.name("a label")?;
        cursor.advance();
        let label = cursor.label_named(&name, span)?;
        let declared = &cursor.names().labels()[label.index()];
        if declared.classifier().is_none() {
            return Err(Diagnostic::new(start..cursor.last_end(), Error::Latent { label: name }.to_string()));
        }
        cursor.expect_sign(Sign::OpenParen)?;
        let (mut belief, span) = cursor.numbers("a belief")?;
        cursor.expect_sign(Sign::CloseParen)?;
        if let ([yes], true) = (&belief[..], declared.is_binary()) {
            belief = vec![*yes, 1.0 - yes];
        }
        // A belief has to be what a prior has to be, in its own words.
        check_label(&declared.clone().with_prior(belief.clone()))
            .map_err(|error| Diagnostic::new(span, error.to_string().replacen("prior", "belief", 1)))?;
        return Ok(Given::Belief(label, belief));
    }
    let atom = cursor.plain_atom()?;
    match atom.single() {
        Some(category) => Ok(Given::Observed(atom.label(), category)),
        None => Err(Diagnostic::new(start..cursor.last_end(), "evidence names one category of a label")
            .with_help("write one category, or a belief such as `label ~ (0.5, 0.5, 0)`")),
    }
}

fn comparison(cursor: &mut Cursor<'_>) -> Parsed<Comparison> {
    let sign = cursor.sign();
    let compare = match sign {
        Some(Sign::Greater) => Comparison::Greater as fn(f64) -> Comparison,
        Some(Sign::GreaterOrEqual) => Comparison::GreaterOrEqual,
        Some(Sign::Less) => Comparison::Less,
        Some(Sign::LessOrEqual) => Comparison::LessOrEqual,
        Some(Sign::Equal) => |value| Comparison::Near { value, tolerance: 0.0 },
        _ => return Err(cursor.expected("`>`, `>=`, `<`, `<=` or `=` and a probability")),
    };
    cursor.advance();
    let value = cursor.probability("a probability")?;
    if sign != Some(Sign::Equal) {
        return Ok(compare(value));
    }
    if !cursor.eat(Sign::PlusMinus) {
        return Err(cursor
            .expected("`+-` and a tolerance")
            .with_help("say how near the probability has to be: `= 0.7034 +- 0.00005`"));
    }
    Ok(Comparison::Near { value, tolerance: cursor.probability("a tolerance")? })
}

/// A place in the tokens of one statement.
pub(super) struct Cursor<'a> {
    tokens: &'a [Token],
    at: usize,
    names: Option<&'a Names<'a>>,
    /// Wrong names, which do not stop the statement from being read.
    pub(super) errors: Vec<Diagnostic>,
    /// How many more names may be compared with misspelt ones.
    comparisons: Cell<usize>,
}

impl<'a> Cursor<'a> {
    fn new(tokens: &'a [Token], names: Option<&'a Names<'a>>) -> Self {
        Self { tokens, at: 0, names, errors: Vec::new(), comparisons: Cell::new(MAX_COMPARISONS) }
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

    fn sign_after(&self) -> Option<Sign> {
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
            Kind::Word(word) | Kind::Quoted(word) => format!("`{word}`"),
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
    fn expected_one_of(&self, keywords: &[&str]) -> Diagnostic {
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
    fn probability(&mut self, what: &str) -> Parsed<f64> {
        let span = self.span();
        let number = self.number(what)?;
        if (0.0..=1.0).contains(&number) {
            // Minus zero is zero.
            return Ok(number + 0.0);
        }
        Err(Diagnostic::new(span, format!("{what} is {number}, expected a number from 0 to 1")))
    }

    /// A number of at least 0.
    fn weight(&mut self, what: &str) -> Parsed<f64> {
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

    fn numbers(&mut self, what: &str) -> Parsed<(Vec<f64>, Range<usize>)> {
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

    fn n_categories(&self, atom: &Atom) -> usize {
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

    fn formula(&mut self) -> Parsed<Formula> {
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
            while self.at < self.tokens.len() && !self.eat(Sign::CloseBrace) {
                self.advance();
            }
        }
    }

    /// An atom that is not negated.
    fn plain_atom(&mut self) -> Parsed<Atom> {
        self.positive_atom(false)
    }

    /// The same, also where it is written with a negation: `!alarm`.
    fn possibly_negated_atom(&mut self) -> Parsed<Atom> {
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
    fn atom(&mut self) -> Parsed<(Atom, bool)> {
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

fn listed(label: &Label) -> String {
    let shown: Vec<_> = label.categories().iter().take(10).map(|category| format!("`{category}`")).collect();
    let rest = if label.n_categories() > 10 { ", ..." } else { "" };
    format!("{}{rest}", shown.join(", "))
}
