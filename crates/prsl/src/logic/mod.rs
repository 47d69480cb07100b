//! A model's rules as propositional logic, and queries about them.
//!
//! Only rules of probability 0 or 1 exclude assignments. Let Q(y) be the silence of a rule. Then φ(y) = p (1 − Q) +
//! (1 − p) Q is 0 exactly if
//!
//! ```text
//! p = 1 and Q = 1:  the rule cannot be true, `possible` is false
//! p = 0 and Q = 0:  the rule cannot be false, `certain` is true
//! ```
//!
//! For a formula, `possible` and `certain` are the same. For a noisy-or, `possible` means "a category with q < 1 is
//! present", and `certain` means "a category with q = 0 is present".

mod possible;
mod solver;

pub(crate) use possible::{Possible, conflict, impossible, named};
pub(crate) use solver::{Lit, STEPS_PER_QUESTION};

use solver::{Answer, Solver, counter_size};

use crate::formula::{Atom, Bound, Formula, Node};
use crate::label::LabelId;
use crate::model::Model;
use crate::noisy_or::NoisyOr;
use crate::rule::{Body, Rule, RuleId};

/// Maximum number of gates of all rules. Rules beyond it are not encoded.
const MAX_GATES: usize = 1_000_000;

/// The truth of a rule under an assignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Truth {
    /// Q < 1.
    pub(crate) possible: bool,
    /// Q = 0.
    pub(crate) certain: bool,
}

impl Truth {
    pub(crate) fn of(rule: &Rule, assignment: &[usize]) -> Self {
        match rule.body() {
            Body::Formula(formula) => {
                let holds = formula.holds_at(assignment);
                Self { possible: holds, certain: holds }
            }
            Body::NoisyOr(noisy_or) => {
                let present = |below: f64| {
                    noisy_or
                        .inhibitions()
                        .iter()
                        .any(|i| i.probability <= below && assignment[i.label.index()] == i.category.index())
                };
                // The largest number below 1.
                Self { possible: present(1.0_f64.next_down()), certain: present(0.0) }
            }
        }
    }
}

/// Whether a rule gives an assignment the weight 0.
pub(crate) fn excludes(rule: &Rule, assignment: &[usize]) -> bool {
    is_hard(rule) && {
        let truth = Truth::of(rule, assignment);
        if rule.probability() == 1.0 { !truth.possible } else { truth.certain }
    }
}

/// Number of solver steps charged for evaluating a rule. A step takes about as long as 16 nodes.
pub(crate) fn evaluation_steps(rule: &Rule) -> u64 {
    1 + rule.n_parts() as u64 / 16
}

/// Whether a rule can exclude assignments.
pub(crate) fn is_hard(rule: &Rule) -> bool {
    rule.probability() == 1.0 || rule.probability() == 0.0
}

/// The literals of a rule.
#[derive(Clone, Copy)]
struct Literals {
    possible: Lit,
    certain: Lit,
    /// Assuming this literal activates a hard rule.
    selector: Lit,
}

/// The result of a query about hard rules and literals.
pub(crate) enum Outcome {
    /// An assignment that satisfies all of them.
    Assignment(Vec<usize>),
    /// A subset of the rules that, with the literals, excludes every assignment.
    Conflict(Vec<RuleId>),
    Unknown,
}

pub(crate) struct Logic<'m> {
    model: &'m Model,
    solver: Solver,
    /// A literal for each category of the model.
    categories: Vec<Lit>,
    rules: Vec<Option<Literals>>,
}

impl<'m> Logic<'m> {
    pub(crate) fn new(model: &'m Model) -> Self {
        let mut solver = Solver::new();
        let categories = categories(model, &mut solver);
        let mut this = Self { model, solver, categories, rules: Vec::new() };
        let mut gates = 0_usize;
        for rule in model.rules() {
            let size = size(rule);
            let fits = gates.saturating_add(size) <= MAX_GATES;
            gates += if fits { size } else { 0 };
            let literals = fits.then(|| this.literals(rule));
            this.rules.push(literals);
        }
        this
    }

    /// Whether a rule was small enough to be encoded.
    pub(crate) fn knows(&self, rule: RuleId) -> bool {
        self.rules[rule.index()].is_some()
    }

    /// Number of steps taken, and the maximum.
    pub(crate) fn steps(&self) -> (u64, u64) {
        (self.solver.taken(), self.solver.budget())
    }

    /// Whether the step limit is reached.
    pub(crate) fn is_spent(&self) -> bool {
        self.solver.is_spent()
    }

    /// Charges steps for work outside the solver.
    pub(crate) fn charge(&self, steps: u64) {
        self.solver.charge(steps);
    }

    /// The literal that a rule is possible.
    pub(crate) fn possible(&self, rule: RuleId) -> Lit {
        self.known(rule).possible
    }

    /// The literal that a rule is certain.
    pub(crate) fn certain(&self, rule: RuleId) -> Lit {
        self.known(rule).certain
    }

    /// The literal that a category is present, given by its index among all labels.
    pub(crate) fn category(&self, index: usize) -> Lit {
        self.categories[index]
    }

    /// A literal that is true exactly if two rules differ in truth.
    pub(crate) fn differ(&mut self, a: RuleId, b: RuleId) -> Lit {
        let (a, b) = (self.possible(a), self.possible(b));
        self.solver.either(a, b)
    }

    /// Searches for an assignment that satisfies these hard rules and literals.
    pub(crate) fn ask(&mut self, hard: &[RuleId], also: &[Lit]) -> Outcome {
        let mut literals: Vec<Lit> = also.to_vec();
        literals.extend(hard.iter().map(|&rule| self.known(rule).selector));
        match self.solver.solve(&literals) {
            Answer::Yes => Outcome::Assignment(self.assignment()),
            Answer::No => {
                let core: std::collections::HashSet<Lit> = self.solver.core().into_iter().collect();
                let guilty = hard.iter().copied().filter(|&rule| core.contains(&self.known(rule).selector));
                Outcome::Conflict(guilty.collect())
            }
            Answer::Unknown => Outcome::Unknown,
        }
    }

    /// A minimal part of a conflict: without any of its rules, it is no conflict.
    pub(crate) fn minimal(&mut self, conflict: Vec<RuleId>, also: &[Lit]) -> Vec<RuleId> {
        let mut rules = conflict;
        let mut needed = 0;
        while needed < rules.len() {
            let mut others = rules.clone();
            others.remove(needed);
            match self.ask(&others, also) {
                // Rules already known to be necessary are in every smaller conflict.
                Outcome::Conflict(smaller) => rules = smaller,
                _ => needed += 1,
            }
        }
        rules
    }

    fn known(&self, rule: RuleId) -> Literals {
        self.rules[rule.index()].expect("only rules that are known are asked about")
    }

    fn assignment(&self) -> Vec<usize> {
        let present = |label: LabelId| {
            let block = &self.categories[self.model.block(label)];
            block.iter().position(|&category| self.solver.holds(category)).unwrap_or(0)
        };
        self.model.label_ids().map(present).collect()
    }

    fn literals(&mut self, rule: &Rule) -> Literals {
        let (possible, certain) = match rule.body() {
            Body::Formula(formula) => {
                let holds = self.formula(formula);
                (holds, holds)
            }
            Body::NoisyOr(noisy_or) => {
                (self.fires(noisy_or, |q| q < 1.0), self.fires(noisy_or, |q| q == 0.0))
            }
        };
        let selector = self.solver.variable();
        if rule.probability() == 1.0 {
            self.solver.clause(&[!selector, possible]);
        } else if rule.probability() == 0.0 {
            self.solver.clause(&[!selector, !certain]);
        }
        Literals { possible, certain, selector }
    }

    fn fires(&mut self, noisy_or: &NoisyOr, select: impl Fn(f64) -> bool) -> Lit {
        let named: Vec<Lit> = noisy_or
            .inhibitions()
            .iter()
            .filter(|i| select(i.probability))
            .map(|i| self.categories[self.model.block(i.label).start + i.category.index()])
            .collect();
        self.solver.any(&named)
    }

    /// A literal that is true exactly if the formula is. It takes one gate per node, children first.
    fn formula(&mut self, formula: &Formula) -> Lit {
        let mut literals: Vec<Lit> = Vec::with_capacity(formula.nodes().len());
        for node in formula.nodes() {
            let inputs: Vec<Lit> = node.children().iter().map(|child| literals[child.index()]).collect();
            let solver = &mut self.solver;
            let literal = match node {
                Node::Constant(value) => solver.constant(*value),
                Node::Atom(atom) => self.atom(atom),
                Node::Not(_) => !inputs[0],
                Node::And(_) => solver.all(&inputs),
                Node::Or(_) => solver.any(&inputs),
                Node::Xor(_) => {
                    let start = solver.constant(false);
                    inputs.iter().fold(start, |odd, &input| solver.either(odd, input))
                }
                Node::Implies(condition, then) | Node::ImpliedBy(then, condition) => {
                    solver.any(&[!literals[condition.index()], literals[then.index()]])
                }
                Node::Iff(a, b) => !solver.either(literals[a.index()], literals[b.index()]),
                Node::Count(bound, n, _) => count(solver, *bound, *n, &inputs),
            };
            literals.push(literal);
        }
        literals.pop().expect("a formula has at least one node")
    }

    fn atom(&mut self, atom: &Atom) -> Lit {
        let block = self.model.block(atom.label());
        let named: Vec<Lit> = atom
            .categories()
            .iter()
            .map(|category| self.categories[block.start + category.index()])
            .collect();
        self.solver.any(&named)
    }
}

fn count(solver: &mut Solver, bound: Bound, n: usize, inputs: &[Lit]) -> Lit {
    match bound {
        Bound::AtLeast => solver.at_least(n, inputs),
        Bound::AtMost => !solver.at_least(n + 1, inputs),
        Bound::Exactly => {
            let (enough, too_many) = (solver.at_least(n, inputs), solver.at_least(n + 1, inputs));
            solver.all(&[enough, !too_many])
        }
    }
}

/// One literal per category, exactly one of which holds per label. Two categories share a variable.
fn categories(model: &Model, solver: &mut Solver) -> Vec<Lit> {
    let mut categories = Vec::with_capacity(model.n_categories());
    for label in model.labels() {
        if label.n_categories() == 2 {
            let first = solver.variable();
            categories.extend([first, !first]);
        } else {
            let block: Vec<Lit> = (0..label.n_categories()).map(|_| solver.variable()).collect();
            solver.state_exactly_one(&block);
            categories.extend(block);
        }
    }
    categories
}

/// The approximate number of gates of a rule.
fn size(rule: &Rule) -> usize {
    match rule.body() {
        Body::NoisyOr(noisy_or) => noisy_or.inhibitions().len(),
        Body::Formula(formula) => formula
            .nodes()
            .iter()
            .map(|node| match node {
                Node::Atom(atom) => atom.categories().len(),
                Node::Count(_, n, members) => {
                    counter_size(*n, members.len()).saturating_add(counter_size(n + 1, members.len()))
                }
                node => 1 + node.children().len(),
            })
            .fold(0, usize::saturating_add),
    }
}
