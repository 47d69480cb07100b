//! Reads the categories of a typical combination.

use super::cursor::{Cursor, Parsed, listed};
use super::lex::Sign;
use crate::combination::completed;
use crate::diagnostic::{Diagnostic, quoted};
use crate::names::Bare;
use crate::notation::NONE;

/// The position of a category for every label. Yes/no labels that are not named are `no`.
pub(super) fn read(cursor: &mut Cursor<'_>) -> Parsed<Vec<usize>> {
    let labels = cursor.names().labels();
    let start = cursor.span().start;
    let is_none = matches!(cursor.names().bare(NONE), Bare::Unknown) && cursor.eat_word(NONE);
    let given = if is_none { vec![None; labels.len()] } else { named_categories(cursor)? };
    cursor.finish(if is_none { "the next line" } else { "`,` or the next line" })?;
    completed(labels, &given).map_err(|missing| {
        let label = &labels[missing.index()];
        let message = format!("the combination names no category of label {}", quoted(label.name()));
        Diagnostic::new(start..cursor.last_end(), message)
            .with_help(format!("only yes/no labels may be left out; add one of {}", listed(label)))
    })
}

/// `CATEGORY, ...`: for every label the position of its category, if it is named.
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
            return Err(Diagnostic::new(
                span,
                format!("several categories of label {} are left", quoted(name)),
            )
            .with_help("a combination has one category of each label"));
        };
        if given[atom.label().index()].replace(category.index()).is_some() {
            return Err(Diagnostic::new(
                span,
                format!("label {} is named twice in one combination", quoted(name)),
            )
            .with_help("keep one of the two"));
        }
        if !cursor.eat(Sign::Comma) {
            return Ok(given);
        }
    }
}
