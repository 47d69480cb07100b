//! Tokens to a model.
//!
//! A statement begins with its keyword at the start of a line and ends where the next one begins, so rules may
//! run over several lines. Each statement is read on its own: one that fails does not hide errors of the others.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::calibrator;
use super::cursor::{Cursor, MAX_COMPARISONS, Parsed, listed};
use super::lex::{self, Kind, Sign, Token};
use super::{Document, MAX_BYTES};
use crate::calibrate::Calibrator;
use crate::combination::{self, Combination};
use crate::diagnostic::{Diagnostic, Diagnostics, nearest};
use crate::error::{Error, Result};
use crate::expectation::{Comparison, Condition, Expectation, Given};
use crate::formula::{Atom, Formula, Node};
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
/// The reserved words that a statement may end in.
const ENDING: [&str; 3] = ["true", "false", "latent"];
/// A text with more errors than this is probably not a model at all.
const MAX_ERRORS: usize = 200;

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

/// Whether a text has two implications behind each other that no parentheses keep apart.
pub(crate) fn chains_implications(source: &str) -> bool {
    let (tokens, _) = lex::tokens(source);
    // For each bracket that is open, whether an implication has been there.
    let mut seen = vec![false];
    for token in tokens {
        match token.kind {
            Kind::Sign(Sign::OpenParen | Sign::OpenBrace) => seen.push(false),
            Kind::Sign(Sign::CloseParen | Sign::CloseBrace) => {
                seen.pop();
                if seen.is_empty() {
                    seen.push(false);
                }
            }
            Kind::Sign(Sign::Implies | Sign::ImpliedBy) => {
                let last = seen.last_mut().expect("the text itself is open");
                if std::mem::replace(last, true) {
                    return true;
                }
            }
            Kind::Sign(Sign::Iff | Sign::Comma | Sign::Colon) => {
                *seen.last_mut().expect("the text itself is open") = false;
            }
            _ => {}
        }
    }
    false
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

/// Whether the second token looks like a misspelt keyword where the first may end a statement and the third may go on with it.
fn misspelt_keyword(tokens: &[Token]) -> bool {
    let is_complete = match &tokens[0].kind {
        // A statement may end in a name or in one of these keywords, but not in an operator.
        Kind::Word(word) => !RESERVED.contains(&word.as_str()) || ENDING.contains(&word.as_str()),
        Kind::Quoted(_) | Kind::Number(_) => true,
        Kind::Sign(sign) => matches!(sign, Sign::CloseBrace | Sign::CloseParen | Sign::CloseBracket),
        _ => false,
    };
    // `rule3=yes` is an atom. No statement has a sign behind its keyword, but for expectations without evidence.
    let goes_on = match tokens.get(2).map(|token| &token.kind) {
        Some(Kind::Sign(sign)) => *sign == Sign::Then,
        _ => true,
    };
    match &tokens[1].kind {
        Kind::Word(word) => {
            is_complete
                && goes_on
                && !RESERVED.contains(&word.as_str())
                && nearest(word, STATEMENTS).is_some()
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
    let whole = cursor.start();
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
        let named: Vec<CategoryId> = match negated {
            false => atom.categories().to_vec(),
            true => {
                let all = (0..cursor.n_categories(&atom)).map(CategoryId::new);
                all.filter(|&category| !atom.contains(category)).collect()
            }
        };
        for category in named {
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
        if cursor.is_done() {
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
        let formula = cursor.formula()?;
        let comparison = comparison(cursor)?;
        match marginal(cursor, &formula) {
            Some(atom) => Condition::Marginal(atom, comparison),
            None => Condition::Formula(formula, comparison),
        }
    };
    cursor.finish("the next line")?;
    Ok(Expectation { given, condition })
}

/// The atom that a formula is, if it is one, or the negation of one that leaves a category.
fn marginal(cursor: &Cursor<'_>, formula: &Formula) -> Option<Atom> {
    match formula.nodes() {
        [Node::Atom(atom)] => Some(atom.clone()),
        [Node::Atom(atom), Node::Not(_)] => {
            let categories = (0..cursor.n_categories(atom)).map(CategoryId::new);
            let others = Atom::one_of(atom.label(), categories.filter(|&category| !atom.contains(category)));
            (!others.categories().is_empty()).then_some(others)
        }
        _ => None,
    }
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
