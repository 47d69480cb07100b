//! ProbLog: a logic program with probabilistic facts, the rules observed as evidence.

use std::fmt::Write;

use super::network::choice;
use super::{complement, number};
use crate::diagnostic;
use crate::error::{Error, Result};
use crate::formula::{Atom, Bound, Formula, Node};
use crate::infer::Limits;
use crate::label::{CategoryId, Label};
use crate::model::Model;
use crate::names::Names;
use crate::noisy_or::NoisyOr;
use crate::rule::{Body, Rule, RuleId};
use crate::syntax::print;

/// Maximum number of clauses for the counting formulas of one model.
const MAX_CLAUSES: usize = 1 << 20;
/// Minimum probability of choosing no combination. A smaller one loses digits, because ProbLog rounds to 15 decimals.
const MIN_PROBABILITY: f64 = 1e-6;

pub(super) fn write(model: &Model, row: &[f64]) -> Result<String> {
    let mut program = Program { model, text: String::new(), count_clauses: 0 };
    program.line("% The distribution of each label given that every rule holds.\n");
    for (id, label) in model.label_ids().zip(model.labels()) {
        program.label(label, &row[model.block(id)]);
    }
    let names = model.names();
    for id in model.rule_ids() {
        program.rule(names, id, model.rule(id))?;
    }
    program.typical(names)?;
    program.line("");
    for label in model.labels() {
        for category in label.categories() {
            program.line(&format!("query({}).", takes(label, category)));
        }
    }
    Ok(program.text)
}

struct Program<'m> {
    model: &'m Model,
    text: String,
    count_clauses: usize,
}

/// A goal or its negation.
#[derive(Clone)]
struct Goal {
    atom: String,
    positive: bool,
}

impl Goal {
    fn new(atom: impl Into<String>) -> Self {
        Self { atom: atom.into(), positive: true }
    }

    fn constant(value: bool) -> Self {
        Self { atom: "true".to_owned(), positive: value }
    }

    fn is_true(&self) -> bool {
        self.positive && self.atom == "true"
    }

    fn negated(&self) -> Self {
        Self { atom: self.atom.clone(), positive: !self.positive }
    }
}

impl std::fmt::Display for Goal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.atom.as_str(), self.positive) {
            ("true", false) => f.write_str("fail"),
            (atom, true) => f.write_str(atom),
            (atom, false) => write!(f, "\\+{atom}"),
        }
    }
}

impl Program<'_> {
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn clause(&mut self, head: &str, body: &[&Goal]) {
        let goals: Vec<String> =
            body.iter().filter(|goal| !goal.is_true()).map(|goal| goal.to_string()).collect();
        let body = if goals.is_empty() { "true".to_owned() } else { goals.join(", ") };
        self.line(&format!("{head} :- {body}."));
    }

    /// A fact and its negation for two categories, an annotated disjunction for more.
    fn label(&mut self, label: &Label, belief: &[f64]) {
        let [first, second] = label.categories() else {
            let choices: Vec<_> = label
                .categories()
                .iter()
                .zip(belief)
                .map(|(category, &p)| format!("{}::{}", number(p), takes(label, category)))
                .collect();
            return self.line(&format!("{}.", choices.join("; ")));
        };
        let (first, second) = (takes(label, first), takes(label, second));
        self.line(&format!("{}::{first}. {second} :- \\+{first}.", number(belief[0])));
    }

    fn rule(&mut self, names: &Names, id: RuleId, rule: &Rule) -> Result<()> {
        let n = id.index() + 1;
        self.line(&format!("\n% {}", print::rule(names, rule)));
        let holds = match rule.body() {
            Body::Formula(formula) => self.formula(id, formula)?,
            Body::NoisyOr(noisy_or) => self.noisy_or(n, noisy_or),
        };
        let p = rule.probability();
        for (p, goal) in [(p, holds.clone()), (complement(p), holds.negated())] {
            if p > 0.0 {
                self.line(&format!("{}::rule({n}) :- {goal}.", number(p)));
            }
        }
        self.line(&format!("evidence(rule({n}))."));
        Ok(())
    }

    /// Chooses a typical combination or none; the labels must agree with it.
    fn typical(&mut self, names: &Names) -> Result<()> {
        let model = self.model;
        let Some(choice) = choice(model, Limits::default())? else { return Ok(()) };
        let probabilities = choice.probabilities();
        if probabilities[0] < MIN_PROBABILITY {
            return Err(Error::TooCostly {
                what: "the model with typical combinations of such weights".to_owned(),
                needed: format!("a probability of {:.0e} for all others", probabilities[0]),
                limit: "15 decimals, to which ProbLog rounds".to_owned(),
                advice: "export to UAI or BIF, or lower the weights".to_owned(),
            });
        }
        let facts: Vec<_> = probabilities
            .iter()
            .enumerate()
            .map(|(state, &p)| format!("{}::combination({state})", number(p)))
            .collect();
        self.line(&format!("\n{}.", facts.join("; ")));
        self.line("typical :- combination(0).");
        for (index, combination) in model.typical().iter().enumerate() {
            let (weight, categories) = (print::number(combination.weight()), combination.categories());
            self.line(&format!("% typical {weight}: {}", print::combination(names, categories)));
            let mut goals = vec![Goal::new(format!("combination({})", index + 1))];
            goals.extend(model.labels().iter().zip(categories).map(|(label, &category)| {
                Goal::new(takes(label, label.category(CategoryId::new(category))))
            }));
            self.clause("typical", &goals.iter().collect::<Vec<_>>());
        }
        self.line("evidence(typical).");
        Ok(())
    }

    /// Each category fires unless it is inhibited.
    fn noisy_or(&mut self, rule: usize, noisy_or: &NoisyOr) -> Goal {
        let fires = format!("fires({rule})");
        for (index, inhibition) in noisy_or.inhibitions().iter().enumerate() {
            let label = self.model.label(inhibition.label);
            let inhibited = Goal::new(format!("inhibited({rule},{})", index + 1));
            self.line(&format!("{}::{inhibited}.", number(inhibition.probability)));
            let takes = Goal::new(takes(label, label.category(inhibition.category)));
            self.clause(&fires, &[&takes, &inhibited.negated()]);
        }
        Goal::new(fires)
    }

    /// Defines `node(rule,index)` for every operator, children first. Returns the goal of the whole formula.
    fn formula(&mut self, id: RuleId, formula: &Formula) -> Result<Goal> {
        let rule = id.index() + 1;
        let mut goals: Vec<Goal> = Vec::with_capacity(formula.nodes().len());
        for (index, node) in formula.nodes().iter().enumerate() {
            let head = format!("node({rule},{})", index + 1);
            let goal = match node {
                Node::Constant(value) => Goal::constant(*value),
                Node::Atom(atom) => self.atom(&head, atom),
                Node::Not(child) => goals[child.index()].negated(),
                Node::And(children) => {
                    let body: Vec<&Goal> = children.iter().map(|child| &goals[child.index()]).collect();
                    self.clause(&head, &body);
                    Goal::new(head)
                }
                Node::Or(children) => {
                    for child in children {
                        self.clause(&head, &[&goals[child.index()]]);
                    }
                    Goal::new(head)
                }
                Node::Xor(children) => {
                    let members: Vec<&Goal> = children.iter().map(|child| &goals[child.index()]).collect();
                    self.parity(rule, index + 1, &members)
                }
                Node::Implies(condition, then) => {
                    self.clause(&head, &[&goals[condition.index()].negated()]);
                    self.clause(&head, &[&goals[then.index()]]);
                    Goal::new(head)
                }
                Node::ImpliedBy(then, condition) => {
                    self.clause(&head, &[&goals[then.index()]]);
                    self.clause(&head, &[&goals[condition.index()].negated()]);
                    Goal::new(head)
                }
                Node::Iff(a, b) => {
                    let (a, b) = (&goals[a.index()], &goals[b.index()]);
                    self.clause(&head, &[a, b]);
                    self.clause(&head, &[&a.negated(), &b.negated()]);
                    Goal::new(head)
                }
                Node::Count(bound, n, children) => {
                    let members: Vec<&Goal> = children.iter().map(|child| &goals[child.index()]).collect();
                    self.count(id, index + 1, *bound, *n, &members)?
                }
            };
            goals.push(goal);
        }
        Ok(goals.pop().expect("a formula has at least one node"))
    }

    fn atom(&mut self, head: &str, atom: &Atom) -> Goal {
        let label = self.model.label(atom.label());
        let goal = |category: CategoryId| Goal::new(takes(label, label.category(category)));
        if let Some(category) = atom.single() {
            return goal(category);
        }
        for &category in atom.categories() {
            self.clause(head, &[&goal(category)]);
        }
        Goal::new(head)
    }

    /// `odd(rule,node,i)`: an odd number of the first i members holds.
    fn parity(&mut self, rule: usize, node: usize, members: &[&Goal]) -> Goal {
        let mut odd = Goal::constant(false);
        for (index, &member) in members.iter().enumerate() {
            if index == 0 {
                odd = member.clone();
                continue;
            }
            let head = format!("odd({rule},{node},{})", index + 1);
            self.clause(&head, &[&odd, &member.negated()]);
            self.clause(&head, &[&odd.negated(), member]);
            odd = Goal::new(head);
        }
        odd
    }

    fn count(&mut self, id: RuleId, node: usize, bound: Bound, n: usize, members: &[&Goal]) -> Result<Goal> {
        let most = match bound {
            Bound::AtLeast => n,
            Bound::AtMost | Bound::Exactly => n + 1,
        };
        self.count_clauses = self.count_clauses.saturating_add(most.saturating_mul(2 * members.len()));
        if self.count_clauses > MAX_CLAUSES {
            return Err(Error::TooCostly {
                what: format!("counting in rule {}", diagnostic::quoted(self.model.rule_name(id))),
                needed: format!("about {} clauses", self.count_clauses),
                limit: MAX_CLAUSES.to_string(),
                advice: "count fewer formulas at a time".to_owned(),
            });
        }
        let at_least = self.at_least(id.index() + 1, node, most, members);
        Ok(match bound {
            Bound::AtLeast => at_least[n].clone(),
            Bound::AtMost => at_least[n + 1].negated(),
            Bound::Exactly => {
                let head = format!("node({},{node})", id.index() + 1);
                self.clause(&head, &[&at_least[n], &at_least[n + 1].negated()]);
                Goal::new(head)
            }
        })
    }

    /// `at_least(rule,node,i,j)`: at least j of the first i members hold. Returns the goals for all members, by j.
    fn at_least(&mut self, rule: usize, node: usize, most: usize, members: &[&Goal]) -> Vec<Goal> {
        let mut before: Vec<Goal> = (0..=most).map(|j| Goal::constant(j == 0)).collect();
        for (index, &member) in members.iter().enumerate() {
            let mut after = vec![Goal::constant(true)];
            for j in 1..=most {
                if j > index + 1 {
                    after.push(Goal::constant(false));
                    continue;
                }
                let head = format!("at_least({rule},{node},{},{j})", index + 1);
                if j <= index {
                    self.clause(&head, &[&before[j]]);
                }
                self.clause(&head, &[&before[j - 1], member]);
                after.push(Goal::new(head));
            }
            before = after;
        }
        before
    }
}

/// The goal that a label takes a category.
fn takes(label: &Label, category: &str) -> String {
    format!("label({},{})", quoted(label.name()), quoted(category))
}

/// A name as a quoted atom.
fn quoted(name: &str) -> String {
    let mut text = String::from('\'');
    let mut chars = name.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            // ProbLog reads a backslash before the closing quote, even a doubled one, as an escaped quote.
            '\\' if chars.peek().is_none() => text.push_str("\\u005C"),
            '\\' => text.push_str("\\\\"),
            '\'' => text.push_str("\\'"),
            '\n' => text.push_str("\\n"),
            '\t' => text.push_str("\\t"),
            c if c.is_control() => {
                write!(text, "\\u{:04X}", u32::from(c)).expect("strings take all text");
            }
            c => text.push(c),
        }
    }
    text.push('\'');
    text
}
