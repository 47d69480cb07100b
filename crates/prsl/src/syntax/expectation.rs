//! Reads expectations: evidence, and a condition on the posterior.

use std::collections::HashSet;

use super::cursor::{Cursor, Parsed};
use super::lex::Sign;
use crate::diagnostic::{Diagnostic, quoted};
use crate::error::Error;
use crate::expectation::{Comparison, Condition, Expectation, Given};
use crate::formula::{Atom, Formula, Node};
use crate::label::CategoryId;
use crate::notation::MPE;

/// `[GIVEN, ...] => CONDITION`
pub(super) fn read(cursor: &mut Cursor<'_>) -> Parsed<Expectation> {
    let given = all_given(cursor, |cursor| cursor.eat(Sign::Then))?;
    let condition = if cursor.eat_word(MPE) {
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

/// `GIVEN, ...` up to the end of the text.
pub(super) fn evidence(cursor: &mut Cursor<'_>) -> Parsed<Vec<Given>> {
    all_given(cursor, |cursor| cursor.is_done())
}

/// `GIVEN, ...` up to the `end`.
fn all_given(cursor: &mut Cursor<'_>, end: impl Fn(&mut Cursor<'_>) -> bool) -> Parsed<Vec<Given>> {
    let mut given: Vec<Given> = Vec::new();
    let mut seen = HashSet::new();
    while !end(cursor) {
        if !given.is_empty() {
            cursor.expect_sign(Sign::Comma)?;
        }
        let start = cursor.span().start;
        let next = self::given(cursor)?;
        if !seen.insert(next.label()) {
            let name = cursor.names().labels()[next.label().index()].name();
            return Err(Diagnostic::new(
                start..cursor.last_end(),
                format!("label {} is given twice", quoted(name)),
            )
            .with_help("keep one of the two"));
        }
        given.push(next);
    }
    Ok(given)
}

/// The atom that a formula consists of. The negation of an atom is the atom of the other categories, if there are any.
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

/// `CATEGORY`, `label=category`, `!LABEL`, or `label ~ (p1, p2, ...)`
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
        // Messages about beliefs advise to normalize the data, which does not help in a model file.
        declared
            .check_distribution("prior", &belief)
            .map_err(|error| Diagnostic::new(span, error.to_string().replacen("prior", "belief", 1)))?;
        return Ok(Given::Belief(label, belief));
    }
    let atom = cursor.possibly_negated_atom()?;
    match atom.single() {
        Some(category) => Ok(Given::Observed(atom.label(), category)),
        None => Err(Diagnostic::new(start..cursor.last_end(), "evidence names one category of a label")
            .with_help("write one category, or a belief such as `label ~ (0.5, 0.5, 0)`")),
    }
}

/// `> P`, `>= P`, `< P`, `<= P` or `= P +- TOLERANCE`
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
