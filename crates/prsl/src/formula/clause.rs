//! Formulas that are clauses: disjunctions of literals. Their messages take linear time.

use std::collections::BTreeMap;

use super::{Bound, Formula, Node, NodeId};
use crate::label::{CategoryId, LabelId};

/// A disjunction of literals: for each label, the categories that make it true.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Clause {
    /// `true` if the formula is this clause, `false` if it is its negation.
    pub(crate) positive: bool,
    /// Literals of the same label are merged.
    pub(crate) literals: BTreeMap<LabelId, Vec<CategoryId>>,
    /// Whether a literal is the constant `true`, so that the clause always holds.
    pub(crate) always: bool,
}

/// The formula as a clause or as the negation of one, if its syntax shows that it is one.
///
/// `a & b -> c | d`, `!(a & b)`, `at_least 1 of {a, b}` are clauses; `a & b` is the negation of one.
pub(crate) fn as_clause(formula: &Formula, n_categories: impl Fn(LabelId) -> usize) -> Option<Clause> {
    [true, false].into_iter().find_map(|positive| collect(formula, positive, &n_categories))
}

/// Collects literals from the root through all nodes that form a disjunction: `|`, `->`, and `&` under a negation. On
/// the stack, `true` stands for a node and `false` for its negation.
fn collect(formula: &Formula, positive: bool, n_categories: &impl Fn(LabelId) -> usize) -> Option<Clause> {
    let mut always = false;
    // For each label, which of its categories make the clause true.
    let mut fires: BTreeMap<LabelId, Vec<bool>> = BTreeMap::new();
    let mut stack: Vec<(NodeId, bool)> = vec![(formula.root(), positive)];
    while let Some((id, sign)) = stack.pop() {
        match (&formula.nodes()[id.index()], sign) {
            (Node::Constant(value), _) => always |= *value == sign,
            (Node::Atom(atom), _) => {
                let n = n_categories(atom.label());
                let united = fires.entry(atom.label()).or_insert_with(|| vec![false; n]);
                if sign {
                    atom.categories().iter().for_each(|category| united[category.index()] = true);
                } else {
                    let others = |(index, _): &(usize, &mut bool)| !atom.contains(CategoryId::new(*index));
                    united.iter_mut().enumerate().filter(others).for_each(|(_, fires)| *fires = true);
                }
            }
            (Node::Not(child), _) => stack.push((*child, !sign)),
            (Node::Or(children), true) | (Node::And(children), false) => {
                stack.extend(children.iter().map(|&child| (child, sign)));
            }
            (Node::Implies(condition, then) | Node::ImpliedBy(then, condition), true) => {
                stack.extend([(*condition, false), (*then, true)]);
            }
            (Node::Count(bound, n, children), _) => {
                let any = match (bound, sign) {
                    (Bound::AtLeast, true) => *n == 1,
                    (Bound::AtLeast, false) => *n == children.len(),
                    (Bound::AtMost, true) => n + 1 == children.len(),
                    (Bound::AtMost, false) => *n == 0,
                    (Bound::Exactly, _) => false,
                };
                if !any {
                    return None;
                }
                // At least one member is true (`at_least 1`, `!(at_most 0)`), or at least one is false.
                let member = matches!((bound, sign), (Bound::AtLeast, true) | (Bound::AtMost, false));
                stack.extend(children.iter().map(|&child| (child, member)));
            }
            _ => return None,
        }
    }
    let named = |fires: Vec<bool>| {
        let fires = fires.into_iter().enumerate().filter(|(_, fires)| *fires);
        fires.map(|(index, _)| CategoryId::new(index)).collect()
    };
    let literals = fires.into_iter().map(|(label, fires)| (label, named(fires))).collect();
    Some(Clause { positive, literals, always })
}
