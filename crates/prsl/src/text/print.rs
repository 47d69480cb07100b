//! Models to text that reads back as the same model, floats included.

use std::fmt;

use super::lex::is_identifier;
use super::parse::{NONE, RESERVED, STATEMENTS};
use crate::calibrate::Calibrator;
use crate::expectation::{Comparison, Condition, Expectation, Given};
use crate::formula::{Atom, Bound, Formula, Node};
use crate::label::{CategoryId, Label};
use crate::model::Model;
use crate::names::{Bare, Names};
use crate::noisy_or::NoisyOr;
use crate::rule::{Body, Rule};

impl fmt::Display for Model {
    /// The model in the text format.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Names::new(self.labels());
        for declared in self.labels() {
            writeln!(f, "label {}", label(declared))?;
        }
        let gap = |f: &mut fmt::Formatter<'_>, before: bool| if before { writeln!(f) } else { Ok(()) };
        let calibrated = || self.labels().iter().filter(|label| *label.calibrator() != Calibrator::Identity);
        gap(f, calibrated().next().is_some())?;
        for declared in calibrated() {
            writeln!(f, "calibrate {} {}", name(declared.name()), calibrator(declared.calibrator()))?;
        }
        gap(f, !self.labels().is_empty() && !self.rules().is_empty())?;
        for stated in self.rules() {
            writeln!(f, "{}", rule(&names, stated))?;
        }
        gap(f, !(self.labels().is_empty() || self.typical().is_empty()))?;
        for typical in self.typical() {
            let (weight, categories) = (number(typical.weight()), typical.categories());
            writeln!(f, "typical {weight}: {}", combination(&names, categories))?;
        }
        gap(f, !(self.labels().is_empty() || self.expectations().is_empty()))?;
        for expected in self.expectations() {
            writeln!(f, "expect {}", expectation(&names, expected))?;
        }
        Ok(())
    }
}

/// A name, in quotes where it needs them.
pub(crate) fn name(name: &str) -> String {
    let keyword = RESERVED.contains(&name) || STATEMENTS.contains(&name) || name == "mpe";
    if is_identifier(name) && !keyword {
        return name.to_owned();
    }
    let mut quoted = String::from('"');
    for c in name.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            c if c.is_control() || ('\u{2028}'..='\u{2029}').contains(&c) => {
                quoted.push_str(&format!("\\u{{{:x}}}", u32::from(c)));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// The shortest decimal that reads back as the same number.
pub(crate) fn number(number: f64) -> String {
    // `{}` never writes an exponent and `{:?}` always a fraction: take whichever people would write.
    if number == number.trunc() && number.abs() < 1e15 { format!("{number}") } else { format!("{number:?}") }
}

fn numbers(values: &[f64]) -> String {
    values.iter().map(|&value| number(value)).collect::<Vec<_>>().join(", ")
}

/// A label without its keyword: `feet: gait, standing prior 0.1, 0.9`.
pub(crate) fn label(label: &Label) -> String {
    let short_prior = label.prior().is_none_or(|prior| prior.len() == 2 && prior[1] == 1.0 - prior[0]);
    let mut text = name(label.name());
    if !(label.is_binary() && short_prior) {
        let categories: Vec<_> = label.categories().iter().map(|category| name(category)).collect();
        text.push_str(&format!(": {}", categories.join(", ")));
    }
    match label.classifier() {
        None => text.push_str(" latent"),
        Some(classifier) if classifier.name() != label.name() => {
            text.push_str(&format!(" from {}", name(classifier.name())));
        }
        Some(_) => {}
    }
    if let Some(prior) = label.prior() {
        let shown = if label.is_binary() && short_prior { &prior[..1] } else { prior };
        text.push_str(&format!(" prior {}", numbers(shown)));
    }
    text
}

/// A calibrator as in a model file: `platt 1.2 -0.3`.
pub(crate) fn calibrator(calibrator: &Calibrator) -> String {
    let row = |row: &[f64]| row.iter().map(|&value| number(value)).collect::<Vec<_>>().join(" ");
    let rows = |rows: Vec<String>| format!("[{}]", rows.join("; "));
    let numbers = match calibrator {
        Calibrator::Identity => return calibrator.kind().to_owned(),
        Calibrator::Temperature { temperature } => number(*temperature),
        Calibrator::Platt { slope, intercept } => row(&[*slope, *intercept]),
        Calibrator::Isotonic(isotonic) => rows(isotonic.maps().iter().map(|points| map(points)).collect()),
        Calibrator::Dirichlet(dirichlet) => {
            format!("{} [{}]", rows(dirichlet.weights().map(row).collect()), row(dirichlet.bias()))
        }
        Calibrator::Confusion(confusion) => {
            rows(confusion.matrix().iter().map(|counts| row(counts)).collect())
        }
    };
    format!("{} {numbers}", calibrator.kind())
}

/// A map of isotonic calibration: `0:0.01 0.3:0.2 1:0.9`.
fn map(points: &[(f64, f64)]) -> String {
    let point = |&(belief, value): &(f64, f64)| format!("{}:{}", number(belief), number(value));
    points.iter().map(point).collect::<Vec<_>>().join(" ")
}

/// A whole rule: `rule 0.9 reach: normal -> hands in {centered, low}`, with `fixed` in front if it is.
pub(crate) fn rule(names: &Names<'_>, rule: &Rule) -> String {
    let keyword = match rule.body() {
        Body::Formula(_) => "rule",
        Body::NoisyOr(_) => "noisy_or",
    };
    let called = rule.name().map_or_else(String::new, |called| format!(" {}", name(called)));
    let fixed = if rule.is_fixed() { "fixed " } else { "" };
    format!("{fixed}{keyword} {}{called}: {}", number(rule.probability()), body(names, rule.body()))
}

/// What a rule says.
pub(crate) fn body(names: &Names<'_>, body: &Body) -> String {
    match body {
        Body::Formula(formula) => self::formula(names, formula),
        Body::NoisyOr(noisy_or) => self::noisy_or(names, noisy_or),
    }
}

fn noisy_or(names: &Names<'_>, noisy_or: &NoisyOr) -> String {
    let terms: Vec<_> = noisy_or
        .inhibitions()
        .iter()
        .map(|i| format!("{} {}", atom(names, &Atom::new(i.label, i.category)), number(i.probability)))
        .collect();
    terms.join(", ")
}

/// An atom, bare where that is not ambiguous.
pub(crate) fn atom(names: &Names<'_>, atom: &Atom) -> String {
    let label = &names.labels()[atom.label().index()];
    let Some(category) = atom.single() else {
        let categories: Vec<_> = atom.categories().iter().map(|&c| name(label.category(c))).collect();
        return format!("{} in {{{}}}", name(label.name()), categories.join(", "));
    };
    let means_this = |bare: &str| matches!(names.bare(bare), Bare::Atom(meant) if meant == *atom);
    if label.is_binary() && category == CategoryId::new(0) && means_this(label.name()) {
        return name(label.name());
    }
    if !label.is_binary() && means_this(label.category(category)) {
        return name(label.category(category));
    }
    names.qualified(atom)
}

/// How tightly the operator of a node binds.
fn strength(node: &Node) -> usize {
    match node {
        Node::Constant(_) | Node::Atom(_) | Node::Count(..) => 7,
        Node::Not(_) => 6,
        Node::And(_) => 5,
        Node::Or(_) => 4,
        Node::Xor(_) => 3,
        Node::Implies(..) | Node::ImpliedBy(..) => 2,
        Node::Iff(..) => 1,
    }
}

/// A formula with the parentheses it needs to be read back node for node.
pub(crate) fn formula(names: &Names<'_>, formula: &Formula) -> String {
    let nodes = formula.nodes();
    let mut texts: Vec<String> = Vec::with_capacity(nodes.len());
    for node in nodes {
        // Each text is used once, by its parent.
        let mut take = |id: &crate::formula::NodeId, parenthesize: bool| {
            let text = std::mem::take(&mut texts[id.index()]);
            if parenthesize { format!("({text})") } else { text }
        };
        let looser = |id: &crate::formula::NodeId| strength(&nodes[id.index()]) <= strength(node);
        let mut join = |ids: &[crate::formula::NodeId], operator: &str| {
            ids.iter().map(|id| take(id, looser(id))).collect::<Vec<_>>().join(operator)
        };
        let text = match node {
            Node::Constant(value) => value.to_string(),
            Node::Atom(leaf) => atom(names, leaf),
            Node::Not(child) => match &nodes[child.index()] {
                Node::Atom(leaf) if leaf.single().is_some() => {
                    let positive = take(child, false);
                    // `!overhead`, but `hands!=high` where the category has to be qualified.
                    if positive == names.qualified(leaf) {
                        let label = &names.labels()[leaf.label().index()];
                        let category = leaf.single().expect("checked");
                        format!("{}!={}", name(label.name()), name(label.category(category)))
                    } else {
                        format!("!{positive}")
                    }
                }
                Node::Atom(_) => format!("!({})", take(child, false)),
                other => {
                    let parenthesize = strength(other) < strength(node);
                    format!("!{}", take(child, parenthesize))
                }
            },
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
                let bound = match bound {
                    Bound::AtLeast => "at_least",
                    Bound::AtMost => "at_most",
                    Bound::Exactly => "exactly",
                };
                let members: Vec<_> = children.iter().map(|child| take(child, false)).collect();
                format!("{bound} {n} of {{{}}}", members.join(", "))
            }
        };
        texts.push(text);
    }
    texts.pop().expect("a formula has at least one node")
}

/// The categories of a combination: all but the `no` of yes/no labels.
pub(crate) fn combination(names: &Names<'_>, categories: &[usize]) -> String {
    let labels = names.labels();
    let named = crate::combination::named(labels, categories);
    let texts: Vec<_> =
        named.into_iter().map(|(label, category)| atom(names, &Atom::new(label, category))).collect();
    match (&texts[..], labels) {
        ([], [first, ..]) if !matches!(names.bare(NONE), Bare::Unknown) => {
            format!("{}={}", name(first.name()), name(&first.categories()[categories[0]]))
        }
        ([], _) => NONE.to_owned(),
        (texts, _) => texts.join(", "),
    }
}

/// An expectation without its keyword.
pub(crate) fn expectation(names: &Names<'_>, expectation: &Expectation) -> String {
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
