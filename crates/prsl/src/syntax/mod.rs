//! The rule language: reading and printing formulas, combinations and expectations.
//!
//! Names are looked up in the [`Names`] of a model. No other part of a model is needed. `text` reads the statements
//! of a model file.

mod combination;
pub(crate) mod cursor;
mod expectation;
mod expression;
pub(crate) mod lex;
pub(crate) mod print;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::error::{Error, Result};
use crate::expectation::{Expectation, Given};
use crate::formula::Formula;
use crate::names::Names;
use cursor::{Cursor, Parsed};
use lex::{Kind, Sign};

/// Maximum size of a model text, in bytes.
pub const MAX_BYTES: usize = 16 << 20;
/// Maximum number of errors listed. A text with more is probably not a model.
pub(crate) const MAX_ERRORS: usize = 200;

/// Reads a text that is a formula.
pub(crate) fn formula(source: &str, names: &Names) -> Result<Formula> {
    alone(source, names, |cursor| cursor.formula(), Error::Formula)
}

/// Reads a text that is an expectation, without the keyword.
pub(crate) fn expectation(source: &str, names: &Names) -> Result<Expectation> {
    alone(source, names, expectation::read, Error::Text)
}

/// Reads a text that is evidence: categories and beliefs, separated by commas.
pub(crate) fn evidence(source: &str, names: &Names) -> Result<Vec<Given>> {
    alone(source, names, expectation::evidence, Error::Text)
}

/// Reads a text that lists the categories of a combination.
pub(crate) fn combination(source: &str, names: &Names) -> Result<Vec<usize>> {
    alone(source, names, combination::read, Error::Text)
}

/// Applies `read` to a whole text. Returns all errors at once.
fn alone<T>(
    source: &str,
    names: &Names,
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

/// Sorts errors by position and summarizes those beyond [`MAX_ERRORS`].
pub(crate) fn limited(mut errors: Vec<Diagnostic>) -> Vec<Diagnostic> {
    errors.sort_by_key(|error| error.span.start);
    if errors.len() > MAX_ERRORS {
        let more = errors.len() - MAX_ERRORS;
        errors.truncate(MAX_ERRORS);
        let last = errors[MAX_ERRORS - 1].span.clone();
        errors.push(Diagnostic::new(last, format!("and {more} more errors")));
    }
    errors
}

/// Whether a text chains two implications without parentheses.
pub(crate) fn chains_implications(source: &str) -> bool {
    let (tokens, _) = lex::tokens(source);
    // For each open bracket, whether it contains an implication so far.
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
