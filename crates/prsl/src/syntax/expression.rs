//! Reads formulas by operator precedence. Pending operators are on an explicit stack, so deep nesting causes no
//! recursion.

use std::ops::Range;

use super::cursor::{Cursor, Parsed};
use super::lex::{Kind, Sign};
use crate::diagnostic::Diagnostic;
use crate::formula::{Bound, Formula, MAX_DEPTH};

/// An operator whose right-hand side is not complete, or an open bracket.
enum Pending {
    Not,
    And(usize),
    Or(usize),
    Xor(usize),
    Implies,
    ImpliedBy,
    Iff,
    Paren,
    /// A count: its bound, its number, the span of the number, and how many members have been read.
    Count(Bound, usize, Range<usize>, usize),
}

impl Pending {
    /// How tightly it binds; 0 for brackets.
    fn strength(&self) -> usize {
        match self {
            Pending::Not => 6,
            Pending::And(_) => 5,
            Pending::Or(_) => 4,
            Pending::Xor(_) => 3,
            Pending::Implies | Pending::ImpliedBy => 2,
            Pending::Iff => 1,
            Pending::Paren | Pending::Count(..) => 0,
        }
    }
}

/// The state of reading one formula.
pub(super) struct Expression<'c, 't> {
    cursor: &'c mut Cursor<'t>,
    operands: Vec<Formula>,
    pending: Vec<Pending>,
    /// The number of pending brackets and negations.
    nesting: usize,
}

impl<'c, 't> Expression<'c, 't> {
    /// Reads the longest formula at the cursor.
    pub(super) fn read(cursor: &'c mut Cursor<'t>) -> Parsed<Formula> {
        let mut this = Self { cursor, operands: Vec::new(), pending: Vec::new(), nesting: 0 };
        loop {
            if !this.operand()? {
                continue;
            }
            // After an operand: closing brackets, up to the next operator or the end.
            loop {
                match this.operator()? {
                    After::Operand => break,
                    After::Operator => {}
                    After::End => return Ok(this.operands.pop().expect("one formula is left")),
                }
            }
        }
    }

    /// Reads one token of an operand. Returns whether the operand is complete.
    fn operand(&mut self) -> Parsed<bool> {
        match self.cursor.kind() {
            Kind::Sign(Sign::Not) => self.open(Pending::Not),
            Kind::Sign(Sign::OpenParen) => self.open(Pending::Paren),
            Kind::Word(word) => match word.as_str() {
                "not" => self.open(Pending::Not),
                "true" | "false" => {
                    self.operands.push(Formula::constant(word == "true"));
                    self.cursor.advance();
                    Ok(true)
                }
                "at_least" => self.count(Bound::AtLeast),
                "at_most" => self.count(Bound::AtMost),
                "exactly" => self.count(Bound::Exactly),
                "if" if self.cursor.is_unknown("if") => Err(self.conditional()),
                _ => self.atom(),
            },
            Kind::Quoted(_) => self.atom(),
            _ => Err(self.cursor.expected("a formula")),
        }
    }

    /// The error of `if a then b`.
    fn conditional(&self) -> Diagnostic {
        Diagnostic::new(self.cursor.span(), "`if` is not a part of the rule language")
            .with_help("`if a then b` is written `a -> b`")
    }

    fn atom(&mut self) -> Parsed<bool> {
        let atom = self.cursor.atom_formula()?;
        self.operands.push(atom);
        Ok(true)
    }

    fn open(&mut self, pending: Pending) -> Parsed<bool> {
        self.nesting += 1;
        if self.nesting > MAX_DEPTH {
            return Err(too_deep(self.cursor.span()));
        }
        self.pending.push(pending);
        self.cursor.advance();
        Ok(false)
    }

    /// `at_least N of {`. Returns whether it is complete, which an empty list is.
    fn count(&mut self, bound: Bound) -> Parsed<bool> {
        self.cursor.advance();
        let (n, span) = self.cursor.whole_number()?;
        if !self.cursor.eat_word("of") {
            return Err(self.cursor.expected("`of`"));
        }
        if self.cursor.sign() != Some(Sign::OpenBrace) {
            return Err(self.cursor.expected("`{`"));
        }
        self.open(Pending::Count(bound, n, span, 0))?;
        if self.cursor.sign() != Some(Sign::CloseBrace) {
            return Ok(false);
        }
        self.cursor.advance();
        self.close_count(0)?;
        Ok(true)
    }

    /// Reads an operator, or the token that ends the operand.
    fn operator(&mut self) -> Parsed<After> {
        let operator = match self.cursor.kind() {
            Kind::Sign(Sign::And) => Pending::And(2),
            Kind::Sign(Sign::Or) => Pending::Or(2),
            Kind::Sign(Sign::Xor) => Pending::Xor(2),
            Kind::Sign(Sign::Implies) => Pending::Implies,
            Kind::Sign(Sign::ImpliedBy) => Pending::ImpliedBy,
            Kind::Sign(Sign::Iff) => Pending::Iff,
            Kind::Word(word) if word == "and" => Pending::And(2),
            Kind::Word(word) if word == "or" => Pending::Or(2),
            Kind::Word(word) if word == "xor" => Pending::Xor(2),
            _ => return self.close(),
        };
        self.reduce_tighter_than(operator.strength())?;
        match (self.pending.last_mut(), operator) {
            (Some(Pending::And(n)), Pending::And(_))
            | (Some(Pending::Or(n)), Pending::Or(_))
            | (Some(Pending::Xor(n)), Pending::Xor(_)) => *n += 1,
            (Some(Pending::Iff), Pending::Iff) => {
                return Err(Diagnostic::new(self.cursor.span(), "`<->` cannot be chained").with_help(
                    "use parentheses: `(a <-> b) <-> c`, or `(a <-> b) & (b <-> c)` for all alike",
                ));
            }
            (Some(Pending::Implies), Pending::ImpliedBy) | (Some(Pending::ImpliedBy), Pending::Implies) => {
                return Err(Diagnostic::new(
                    self.cursor.span(),
                    "`->` and `<-` are mixed without parentheses",
                )
                .with_help("say which comes first: `(a -> b) <- c` or `a -> (b <- c)`"));
            }
            (Some(Pending::ImpliedBy), operator @ Pending::ImpliedBy) => {
                self.reduce()?;
                self.pending.push(operator);
            }
            (_, operator) => self.pending.push(operator),
        }
        self.cursor.advance();
        Ok(After::Operand)
    }

    /// A closing bracket, a comma between members, or the end of the formula.
    fn close(&mut self) -> Parsed<After> {
        self.reduce_tighter_than(0)?;
        match (self.pending.last_mut(), self.cursor.sign()) {
            (None, _) => Ok(After::End),
            (Some(Pending::Paren), Some(Sign::CloseParen)) => {
                self.pending.pop();
                self.nesting -= 1;
                self.cursor.advance();
                Ok(After::Operator)
            }
            (Some(Pending::Count(_, _, _, members)), Some(Sign::Comma)) => {
                *members += 1;
                self.cursor.advance();
                Ok(After::Operand)
            }
            (Some(Pending::Count(_, _, _, members)), Some(Sign::CloseBrace)) => {
                let members = *members + 1;
                self.cursor.advance();
                self.close_count(members)?;
                Ok(After::Operator)
            }
            (Some(Pending::Paren), _) => Err(self.cursor.expected("an operator or `)`")),
            _ => Err(self.cursor.expected("an operator, `,` or `}`")),
        }
    }

    fn close_count(&mut self, members: usize) -> Parsed<()> {
        let Some(Pending::Count(bound, n, span, _)) = self.pending.pop() else {
            unreachable!("only a pending count is closed")
        };
        self.nesting -= 1;
        if n > members {
            let plural = if members == 1 { "formula is" } else { "formulas are" };
            return Err(Diagnostic::new(span, format!("{n} of {members} cannot be counted"))
                .with_help(format!("{members} {plural} listed, so the number is at most {members}")));
        }
        let formulas = self.operands.split_off(self.operands.len() - members);
        self.push(Formula::count(bound, n, formulas))
    }

    /// Applies the pending operators that bind tighter than `strength`.
    fn reduce_tighter_than(&mut self, strength: usize) -> Parsed<()> {
        while self.pending.last().is_some_and(|pending| pending.strength() > strength) {
            self.reduce()?;
        }
        Ok(())
    }

    /// Applies the innermost pending operator to its operands.
    fn reduce(&mut self) -> Parsed<()> {
        let operator = self.pending.pop().expect("an operator is pending");
        let arity = match &operator {
            Pending::Not => 1,
            Pending::And(n) | Pending::Or(n) | Pending::Xor(n) => *n,
            _ => 2,
        };
        let mut operands = self.operands.split_off(self.operands.len() - arity);
        let mut two = || {
            let right = operands.pop().expect("two operands");
            (operands.pop().expect("two operands"), right)
        };
        let formula = match operator {
            Pending::Not => {
                self.nesting -= 1;
                operands.pop().expect("one operand").not()
            }
            Pending::And(_) => Formula::and(operands),
            Pending::Or(_) => Formula::or(operands),
            Pending::Xor(_) => Formula::xor(operands),
            Pending::Implies => {
                let (condition, then) = two();
                condition.implies(then)
            }
            Pending::ImpliedBy => {
                let (then, condition) = two();
                then.implied_by(condition)
            }
            Pending::Iff => {
                let (a, b) = two();
                a.iff(b)
            }
            Pending::Paren | Pending::Count(..) => unreachable!("brackets are closed, not applied"),
        };
        self.push(formula)
    }

    fn push(&mut self, formula: Formula) -> Parsed<()> {
        if formula.depth() > MAX_DEPTH {
            return Err(too_deep(self.cursor.span()));
        }
        self.operands.push(formula);
        Ok(())
    }
}

/// What is expected next.
enum After {
    Operand,
    Operator,
    End,
}

fn too_deep(span: Range<usize>) -> Diagnostic {
    Diagnostic::new(span, format!("the formula nests more than {MAX_DEPTH} levels deep"))
        .with_help("split it into several rules")
}
