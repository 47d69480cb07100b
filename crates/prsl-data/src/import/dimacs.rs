//! Formulas in conjunctive normal form, in the format DIMACS.

use std::collections::HashSet;
use std::io::Read;

use prsl::{Formula, Model};

use super::{Place, build, text_of, yes};
use crate::error::{ImportProblem, Result};

/// Maximum number of variables.
const MAX_VARIABLES: usize = 1_000_000;

/// Reads a formula in conjunctive normal form as hard rules. The variables are yes/no labels `x1`, `x2` and so on.
///
/// ```
/// let cnf = "c two clauses\np cnf 3 2\n1 -2 0\n2 3 0\n";
/// let model = prsl_data::import::dimacs(cnf.as_bytes(), "rules.cnf")?;
/// assert_eq!(model.to_string(), "\
/// label x1
/// label x2
/// label x3
///
/// rule 1: x1 | !x2
/// rule 1: x2 | x3
/// ");
/// # Ok::<(), prsl_data::Error>(())
/// ```
pub fn dimacs(reader: impl Read + Send + 'static, name: &str) -> Result<Model> {
    let text = text_of(reader, name)?;
    let mut parser = Parser::default();
    let mut last = Place::START;
    for (number, line) in (1..).zip(text.lines()) {
        if line.starts_with('c') {
            continue;
        }
        if line.trim_start().starts_with('%') {
            break; // files of SATLIB end so
        }
        last = Place { line: number, column: 1 };
        if line.trim_start().starts_with('p') {
            parser
                .header(line)
                .map_err(|(part, problem)| Place::of(number, line, part).error(name, problem))?;
            continue;
        }
        for word in line.split_ascii_whitespace() {
            parser.literal(word).map_err(|problem| Place::of(number, line, word).error(name, problem))?;
        }
    }
    let (n_variables, clauses) = parser.finish().map_err(|problem| last.error(name, problem))?;
    let names = (1..=n_variables).map(|variable| format!("x{variable}"));
    build(name, names, clauses.iter().map(|clause| (1.0, disjunction(clause))))
}

#[derive(Default)]
struct Parser {
    /// The numbers of variables and of clauses, once the header has been read.
    sizes: Option<[usize; 2]>,
    clauses: Vec<Vec<i64>>,
    /// The literals of the current clause.
    open: Vec<i64>,
}

impl Parser {
    /// `p cnf VARIABLES CLAUSES`. An error has the part of the line that it is about.
    fn header<'l>(&mut self, line: &'l str) -> std::result::Result<(), (&'l str, ImportProblem)> {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let first = words[0];
        if self.sizes.is_some() {
            return Err((first, ImportProblem::SecondHeader));
        }
        let [_, "cnf", variables, clauses] = words[..] else {
            return Err((first, ImportProblem::BadHeader));
        };
        let number = |word: &'l str| {
            let not_a_number = || (word, ImportProblem::NotAWholeNumber { text: word.to_owned() });
            word.parse::<usize>().map_err(|_| not_a_number())
        };
        let (n_variables, n_clauses) = (number(variables)?, number(clauses)?);
        if n_variables > MAX_VARIABLES {
            return Err((variables, ImportProblem::TooManyVariables { limit: MAX_VARIABLES }));
        }
        self.sizes = Some([n_variables, n_clauses]);
        Ok(())
    }

    fn literal(&mut self, word: &str) -> std::result::Result<(), ImportProblem> {
        let Some([n_variables, _]) = self.sizes else { return Err(ImportProblem::NoHeader) };
        let literal: i64 =
            word.parse().map_err(|_| ImportProblem::NotAWholeNumber { text: word.to_owned() })?;
        if literal == 0 {
            self.clauses.push(std::mem::take(&mut self.open));
            return Ok(());
        }
        if literal.unsigned_abs() > n_variables as u64 {
            return Err(ImportProblem::NoVariable { text: word.to_owned(), n_variables });
        }
        self.open.push(literal);
        Ok(())
    }

    /// The number of variables, and the clauses.
    fn finish(self) -> std::result::Result<(usize, Vec<Vec<i64>>), ImportProblem> {
        let Some([n_variables, expected]) = self.sizes else { return Err(ImportProblem::NoHeader) };
        if !self.open.is_empty() {
            return Err(ImportProblem::OpenClause);
        }
        let found = self.clauses.len();
        if found != expected {
            return Err(ImportProblem::ClauseCount { found, expected });
        }
        Ok((n_variables, self.clauses))
    }
}

/// A clause; each literal counts once.
fn disjunction(clause: &[i64]) -> Formula {
    let mut seen = HashSet::new();
    let literals = clause.iter().filter(|&&literal| seen.insert(literal));
    Formula::or(literals.map(|&literal| {
        let variable = yes(literal.unsigned_abs() as usize - 1);
        if literal > 0 { variable } else { variable.not() }
    }))
}
