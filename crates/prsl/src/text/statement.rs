//! Reads single statements: labels, rules, typical combinations, expectations.

use std::collections::HashSet;
use std::ops::Range;

use crate::combination::Combination;
use crate::diagnostic::{Diagnostic, quoted};
use crate::expectation::Expectation;
use crate::label::{CategoryId, Label};
use crate::noisy_or::{Inhibition, NoisyOr};
use crate::rule::{Body, Rule};
use crate::syntax::cursor::{Cursor, Parsed};
use crate::syntax::lex::Sign;

/// `label NAME [: CATEGORY, ...] [from CLASSIFIER | latent] [prior NUMBER, ...]`
///
/// Returns the label even if the statement has an error, so that no errors are reported for the rules that use it.
pub(super) fn label(cursor: &mut Cursor<'_>) -> (Option<Label>, Parsed<()>) {
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

/// `[from CLASSIFIER | latent] [prior NUMBER, ...]`
fn label_settings(cursor: &mut Cursor<'_>, mut label: Label) -> Parsed<Label> {
    let whole = cursor.start();
    let mut expected = "`from`, `latent`, `prior` or the next line";
    if cursor.eat_word("latent") {
        label = label.latent();
        expected = "`prior` or the next line";
    } else if cursor.eat_word("from") {
        label = label.from_classifier(cursor.name("the classifier's name")?.0);
        expected = "`prior` or the next line";
    }
    let mut problem = whole..cursor.last_end();
    if cursor.eat_word("prior") {
        expected = "the next line";
        let (mut prior, span) = cursor.numbers("a prior probability")?;
        if let ([yes], true) = (&prior[..], label.is_binary()) {
            prior = vec![*yes, 1.0 - yes];
        }
        label = label.with_prior(prior);
        problem = span;
    }
    let is_late = cursor.is_word("from") || cursor.is_word("latent");
    cursor.finish(expected).map_err(|error| match is_late {
        true => error.with_help("a label is `from` a classifier or `latent`, and its `prior` comes last"),
        false => error,
    })?;
    label.check().map_err(|error| Diagnostic::new(problem, error.to_string()))?;
    Ok(label)
}

/// `[fixed] rule P [NAME]: FORMULA` or `[fixed] noisy_or P [NAME]: ATOM Q, ...`. Also returns the span of the name.
pub(super) fn rule(cursor: &mut Cursor<'_>) -> Parsed<(Rule, Option<Range<usize>>)> {
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
    match noisy {
        true => cursor.finish("`,` or the next line")?,
        false => finish_formula(cursor)?,
    }
    let rule = Rule::new(probability, body).fixed(is_fixed);
    Ok(match name {
        Some((name, span)) => (rule.named(name), Some(span)),
        None => (rule, None),
    })
}

/// Checks that a formula ends its statement.
fn finish_formula(cursor: &Cursor<'_>) -> Parsed<()> {
    let finished = cursor.finish("an operator or the next line");
    match cursor.sign() {
        Some(Sign::Comma) => finished.map_err(|error| {
            error.with_help(
                "join conditions by `&` and alternatives by `|`: `a, b <- c, d` is `a | b <- c & d`",
            )
        }),
        _ => finished,
    }
}

/// `ATOM Q, ...`
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
                let named = cursor.names().qualified(atom.label(), category);
                return Err(Diagnostic::new(
                    start..cursor.last_end(),
                    format!("{} is named twice", quoted(&named)),
                )
                .with_help("keep one of the two"));
            }
            inhibitions.push(Inhibition { label: atom.label(), category, probability });
        }
        if !cursor.eat(Sign::Comma) {
            return Ok(NoisyOr::new(inhibitions));
        }
    }
}

/// `typical W: CATEGORY, ...` or `typical W: none`
pub(super) fn typical(cursor: &mut Cursor<'_>) -> Parsed<Combination> {
    cursor.advance();
    let weight = cursor.weight("the combination's weight")?;
    cursor.expect_sign(Sign::Colon)?;
    Ok(Combination::new(weight, cursor.combination()?))
}

/// `expect [GIVEN, ...] => CONDITION`
pub(super) fn expectation(cursor: &mut Cursor<'_>) -> Parsed<Expectation> {
    cursor.advance();
    cursor.expectation()
}
