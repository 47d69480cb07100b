//! A model's rules as propositional logic, and what may be asked about them.
//!
//! A rule of probability 1 excludes every assignment of weight 0, and so does one of probability 0; nothing else
//! does. With Q(y) the probability that a rule stays silent, φ(y) = p (1 − Q) + (1 − p) Q is 0 exactly where
//!
//! ```text
//! p = 1 and Q = 1:  the rule cannot be true, `possible` is false
//! p = 0 and Q = 0:  the rule cannot be false, `certain` is true
//! ```
//!
//! For a formula `possible` and `certain` are the same. For a noisy-or, `possible` is "a category with q < 1" and
//! `certain` is "a category with q = 0".

pub(crate) use super::solver::STEPS_PER_QUESTION;
use super::solver::{Answer, Lit, Solver, counter_size};
use crate::formula::{Atom, Bound, Formula, Node};
use crate::label::LabelId;
use crate::model::Model;
use crate::noisy_or::NoisyOr;
use crate::rule::{Body, Rule, RuleId};

/// Gates that the rules may take together; larger rules are left out.
const MAX_GATES: usize = 1_000_000;

/// What an assignment makes of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Truth {
    /// Q < 1.
    pub(crate) possible: bool,
    /// Q = 0.
    pub(crate) certain: bool,
}

impl Truth {
    pub(super) fn of(rule: &Rule, assignment: &[usize]) -> Self {
        match rule.body() {
            Body::Formula(formula) => {
                let holds = formula.holds(assignment);
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
pub(super) fn excludes(rule: &Rule, assignment: &[usize]) -> bool {
    is_hard(rule) && {
        let truth = Truth::of(rule, assignment);
        if rule.probability() == 1.0 { !truth.possible } else { truth.certain }
    }
}

/// Steps of the search that evaluating a rule is worth: a step takes about as long as 16 nodes.
pub(super) fn evaluation_steps(rule: &Rule) -> u64 {
    1 + rule.n_parts() as u64 / 16
}

/// Whether a rule excludes assignments altogether.
pub(crate) fn is_hard(rule: &Rule) -> bool {
    rule.probability() == 1.0 || rule.probability() == 0.0
}

/// The literals of a rule.
#[derive(Clone, Copy)]
struct Literals {
    possible: Lit,
    certain: Lit,
    /// Assumed, it makes a hard rule exclude what it excludes.
    selector: Lit,
}

/// What was found out about a set of hard rules and some literals.
pub(crate) enum Outcome {
    /// An assignment that satisfies them all.
    Assignment(Vec<usize>),
    /// Some of the rules that, with the literals, already exclude everything.
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

    /// Steps that have been taken, and that may be.
    pub(super) fn steps(&self) -> (u64, u64) {
        (self.solver.taken(), self.solver.budget())
    }

    /// Whether no steps are left.
    pub(super) fn is_spent(&self) -> bool {
        self.solver.is_spent()
    }

    /// Counts work that is not the search's own.
    pub(super) fn charge(&self, steps: u64) {
        self.solver.charge(steps);
    }

    /// That a rule may be true.
    pub(super) fn possible(&self, rule: RuleId) -> Lit {
        self.known(rule).possible
    }

    /// That a rule is certainly true.
    pub(super) fn certain(&self, rule: RuleId) -> Lit {
        self.known(rule).certain
    }

    /// That a category, counted over all labels, is present.
    pub(crate) fn category(&self, index: usize) -> Lit {
        self.categories[index]
    }

    /// That two rules are of different opinions.
    pub(super) fn differ(&mut self, a: RuleId, b: RuleId) -> Lit {
        let (a, b) = (self.possible(a), self.possible(b));
        self.solver.either(a, b)
    }

    /// Whether anything satisfies these hard rules and literals.
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

    /// A part of a conflict that is minimal: without any one of its rules it would be none.
    pub(crate) fn minimal(&mut self, conflict: Vec<RuleId>, also: &[Lit]) -> Vec<RuleId> {
        let mut rules = conflict;
        let mut needed = 0;
        while needed < rules.len() {
            let mut others = rules.clone();
            others.remove(needed);
            match self.ask(&others, also) {
                // Rules that were needed before are needed still, so they are all in the smaller conflict.
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

    /// A literal that is true exactly when the formula is: one gate a node, children first.
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

/// One literal a category, of which exactly one a label holds; two categories share a variable.
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

/// About how many gates a rule takes.
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
