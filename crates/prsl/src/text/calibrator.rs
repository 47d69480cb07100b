//! Reads `calibrate` statements.

use crate::calibrator::{Calibrator, Confusion, Dirichlet, Isotonic};
use crate::diagnostic::{Diagnostic, nearest};
use crate::error::{CalibrationProblem, Error, Result};
use crate::label::LabelId;
use crate::syntax::cursor::{Cursor, Parsed};
use crate::syntax::lex::{Kind, Sign};

/// The kinds of calibrators.
pub(crate) const KINDS: [&str; 5] = ["platt", "temperature", "isotonic", "dirichlet", "confusion"];

/// `calibrate LABEL KIND NUMBERS`
///
/// | kind | numbers |
/// |---|---|
/// | `platt` | slope and intercept |
/// | `temperature` | one |
/// | `isotonic` | `[0:0.01 0.3:0.2 1:0.9; ...]`, points of one category after the other |
/// | `dirichlet` | `[1 0; 0 1] [0 0]`, weights row by row and bias |
/// | `confusion` | `[8 1; 2 9]`, row by row |
pub(super) fn statement(cursor: &mut Cursor<'_>) -> Parsed<(LabelId, Calibrator)> {
    cursor.advance();
    let (name, span) = cursor.name("the name of a label")?;
    let id = cursor.label_named(&name, span)?;
    let kind = kind(cursor)?;
    let start = cursor.span().start;
    let calibrator = numbers(cursor, kind)?;
    cursor.finish("the next line")?;
    let problem = |message: String| Diagnostic::new(start..cursor.last_end(), message);
    let calibrator = calibrator.map_err(|error| problem(reason(error)))?;
    let label = &cursor.names().labels()[id.index()];
    // The error of a label without categories has been reported.
    if label.n_categories() >= 2 {
        let calibrated = label.clone().with_calibrator(calibrator.clone());
        calibrated.check_calibrator().map_err(|cause| problem(cause.to_string()))?;
    }
    Ok((id, calibrator))
}

fn reason(error: Error) -> String {
    match error {
        Error::Calibration(problem) => problem.to_string(),
        other => other.to_string(),
    }
}

fn kind(cursor: &mut Cursor<'_>) -> Parsed<&'static str> {
    let Kind::Word(word) = cursor.kind() else { return Err(cursor.expected("a kind of calibrator")) };
    let Some(kind) = KINDS.into_iter().find(|kind| kind == word) else {
        let unknown = Diagnostic::new(cursor.span(), format!("unknown kind of calibrator `{word}`"));
        return Err(match nearest(word, KINDS) {
            Some(near) => unknown.with_help(format!("did you mean `{near}`?")),
            None => unknown.with_help(format!("the kinds are `{}`", KINDS.join("`, `"))),
        });
    };
    cursor.advance();
    Ok(kind)
}

/// Reads the numbers of a calibrator. The inner result is an error if they are not valid.
fn numbers(cursor: &mut Cursor<'_>, kind: &str) -> Parsed<Result<Calibrator>> {
    Ok(match kind {
        "platt" => {
            let (slope, intercept) = (cursor.number("the slope")?, cursor.number("the intercept")?);
            Ok(Calibrator::Platt { slope, intercept })
        }
        "temperature" => Ok(Calibrator::Temperature { temperature: cursor.number("the temperature")? }),
        "isotonic" => Isotonic::new(rows(cursor, point)?).map(Calibrator::Isotonic),
        "confusion" => Confusion::new(rows(cursor, number)?).map(Calibrator::Confusion),
        _ => {
            let (weights, bias) = (rows(cursor, number)?, rows(cursor, number)?);
            match &bias[..] {
                [bias] => Dirichlet::new(&weights, bias).map(Calibrator::Dirichlet),
                rows => {
                    let (given, wanted) = (rows.len(), 1);
                    Err(CalibrationProblem::Rows { what: "rows of biases", given, wanted }.into())
                }
            }
        }
    })
}

/// `[1 0; 0 1]`
fn rows<T>(cursor: &mut Cursor<'_>, read: fn(&mut Cursor<'_>) -> Parsed<T>) -> Parsed<Vec<Vec<T>>> {
    cursor.expect_sign(Sign::OpenBracket)?;
    let mut rows = vec![Vec::new()];
    while !cursor.eat(Sign::CloseBracket) {
        if cursor.eat(Sign::Semicolon) {
            rows.push(Vec::new());
        } else {
            rows.last_mut().expect("there is a first row").push(read(cursor)?);
        }
    }
    Ok(rows)
}

fn number(cursor: &mut Cursor<'_>) -> Parsed<f64> {
    cursor.number("a number, `;` or `]`")
}

/// `0.3:0.2`
fn point(cursor: &mut Cursor<'_>) -> Parsed<(f64, f64)> {
    let belief = cursor.number("a point such as 0.3:0.2, `;` or `]`")?;
    cursor.expect_sign(Sign::Colon)?;
    Ok((belief, cursor.number("the value at that belief")?))
}
