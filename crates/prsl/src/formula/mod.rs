//! Propositional formulas over categories.

mod ast;
mod clause;

pub use ast::{Atom, Bound, Formula, MAX_DEPTH, Node, NodeId};
pub(crate) use clause::{Clause, as_clause};
