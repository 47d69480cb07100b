//! Prints formulas, rules, combinations and expectations in the rule language.

use crate::combination::named;
use crate::expectation::{Comparison, Condition, Expectation, Given};
use crate::formula::{Atom, Bound, Formula, Node, NodeId};
use crate::label::CategoryId;
use crate::names::{Bare, Names};
use crate::noisy_or::NoisyOr;
use crate::notation::{NONE, numbers};
pub(crate) use crate::notation::{name, number};
use crate::rule::{Body, Rule};

/// The statement of a rule: `rule 0.9 reach: normal -> hands in {centered, low}`, after `fixed` if it is fixed.
pub(crate) fn rule(names: &Names, rule: &Rule) -> String {
    let keyword = match rule.body() {
        Body::Formula(_) => "rule",
        Body::NoisyOr(_) => "noisy_or",
    };
    let called = rule.name().map_or_else(String::new, |called| format!(" {}", name(called)));
    let fixed = if rule.is_fixed() { "fixed " } else { "" };
    format!("{fixed}{keyword} {}{called}: {}", number(rule.probability()), body(names, rule.body()))
}

/// The text of a rule without keyword, probability and name.
pub(crate) fn body(names: &Names, body: &Body) -> String {
    match body {
        Body::Formula(formula) => self::formula(names, formula),
        Body::NoisyOr(noisy_or) => self::noisy_or(names, noisy_or),
    }
}

fn noisy_or(names: &Names, noisy_or: &NoisyOr) -> String {
    let terms: Vec<_> = noisy_or
        .inhibitions()
        .iter()
        .map(|i| format!("{} {}", atom(names, &Atom::new(i.label, i.category)), number(i.probability)))
        .collect();
    terms.join(", ")
}

/// An atom, without its label if the category is unique.
pub(crate) fn atom(names: &Names, atom: &Atom) -> String {
    let label = &names.labels()[atom.label().index()];
    let Some(category) = atom.single() else {
        let categories: Vec<_> = atom.categories().iter().map(|&c| name(label.category(c))).collect();
        return format!("{} in {{{}}}", name(label.name()), categories.join(", "));
    };
    let means_this = |bare: &str| names.is_only_meaning(bare, atom.label(), category);
    if label.is_binary() && category == CategoryId::new(0) && means_this(label.name()) {
        return name(label.name());
    }
    if !label.is_binary() && means_this(label.category(category)) {
        return name(label.category(category));
    }
    names.qualified(atom.label(), category)
}

/// How tightly a negation binds.
const NOT_STRENGTH: usize = 6;

/// How tightly the operator of a node binds.
fn strength(node: &Node) -> usize {
    match node {
        Node::Constant(_) | Node::Atom(_) | Node::Count(..) => 7,
        Node::Not(_) => NOT_STRENGTH,
        Node::And(_) => 5,
        Node::Or(_) => 4,
        Node::Xor(_) => 3,
        Node::Implies(..) | Node::ImpliedBy(..) => 2,
        Node::Iff(..) => 1,
    }
}

/// A formula with the parentheses it needs to be read back node for node.
pub(crate) fn formula(names: &Names, formula: &Formula) -> String {
    let nodes = formula.nodes();
    let mut texts: Vec<String> = Vec::with_capacity(nodes.len());
    for node in nodes {
        // Each text is used once, by its parent.
        let mut take = |id: &NodeId, parenthesize: bool| {
            let text = std::mem::take(&mut texts[id.index()]);
            if parenthesize { format!("({text})") } else { text }
        };
        let looser = |id: &NodeId| strength(&nodes[id.index()]) <= strength(node);
        let mut join = |ids: &[NodeId], operator: &str| {
            ids.iter().map(|id| take(id, looser(id))).collect::<Vec<_>>().join(operator)
        };
        let text = match node {
            Node::Constant(value) => value.to_string(),
            Node::Atom(leaf) => atom(names, leaf),
            Node::Not(child) => negation(names, &nodes[child.index()], take(child, false)),
            Node::And(children) => join(children, " & "),
            Node::Or(children) => join(children, " | "),
            Node::Xor(children) => join(children, " xor "),
            Node::Implies(condition, then) => {
                let chained = matches!(nodes[then.index()], Node::Implies(..));
                let condition = take(condition, looser(condition));
                format!("{condition} -> {}", take(then, looser(then) && !chained))
            }
            Node::ImpliedBy(then, condition) => {
                let chained = matches!(nodes[then.index()], Node::ImpliedBy(..));
                let then = take(then, looser(then) && !chained);
                format!("{then} <- {}", take(condition, looser(condition)))
            }
            Node::Iff(a, b) => join(&[*a, *b], " <-> "),
            Node::Count(bound, n, children) => {
                let members: Vec<_> = children.iter().map(|child| take(child, false)).collect();
                format!("{} {n} of {{{}}}", keyword(*bound), members.join(", "))
            }
        };
        texts.push(text);
    }
    texts.pop().expect("a formula has at least one node")
}

/// The negation of a node, given the text of the node itself.
fn negation(names: &Names, negated: &Node, text: String) -> String {
    match negated {
        Node::Atom(leaf) => match leaf.single() {
            // `!overhead`, but `hands!=high` if the category has to be qualified.
            Some(category) if text == names.qualified(leaf.label(), category) => {
                let label = &names.labels()[leaf.label().index()];
                format!("{}!={}", name(label.name()), name(label.category(category)))
            }
            Some(_) => format!("!{text}"),
            None => format!("!({text})"),
        },
        other if strength(other) < NOT_STRENGTH => format!("!({text})"),
        _ => format!("!{text}"),
    }
}

fn keyword(bound: Bound) -> &'static str {
    match bound {
        Bound::AtLeast => "at_least",
        Bound::AtMost => "at_most",
        Bound::Exactly => "exactly",
    }
}

/// The categories of a combination: all but the `no` of yes/no labels.
pub(crate) fn combination(names: &Names, categories: &[usize]) -> String {
    let labels = names.labels();
    let texts: Vec<_> = named(labels, categories)
        .into_iter()
        .map(|(label, category)| atom(names, &Atom::new(label, category)))
        .collect();
    match (&texts[..], labels) {
        ([], [first, ..]) if !matches!(names.bare(NONE), Bare::Unknown) => {
            format!("{}={}", name(first.name()), name(&first.categories()[categories[0]]))
        }
        ([], _) => NONE.to_owned(),
        (texts, _) => texts.join(", "),
    }
}

/// An expectation without its keyword.
pub(crate) fn expectation(names: &Names, expectation: &Expectation) -> String {
    let given: Vec<_> = expectation
        .given
        .iter()
        .map(|given| match given {
            Given::Observed(label, category) => atom(names, &Atom::new(*label, *category)),
            Given::Belief(label, belief) => {
                format!("{} ~ ({})", name(names.labels()[label.index()].name()), numbers(belief))
            }
        })
        .collect();
    let condition = match &expectation.condition {
        Condition::Marginal(marginal, comparison) => {
            format!("{} {}", atom(names, marginal), self::comparison(*comparison))
        }
        Condition::Formula(stated, comparison) => {
            format!("{} {}", formula(names, stated), self::comparison(*comparison))
        }
        Condition::Mpe(atoms) => {
            let atoms: Vec<_> = atoms.iter().map(|stated| atom(names, stated)).collect();
            format!("mpe {}", atoms.join(", "))
        }
    };
    let given = if given.is_empty() { String::new() } else { format!("{} ", given.join(", ")) };
    format!("{given}=> {condition}")
}

/// `> 0.6`
pub(crate) fn comparison(comparison: Comparison) -> String {
    match comparison {
        Comparison::Greater(x) => format!("> {}", number(x)),
        Comparison::GreaterOrEqual(x) => format!(">= {}", number(x)),
        Comparison::Less(x) => format!("< {}", number(x)),
        Comparison::LessOrEqual(x) => format!("<= {}", number(x)),
        Comparison::Near { value, tolerance } => format!("= {} +- {}", number(value), number(tolerance)),
    }
}
