//! What a branch of the search leaves open: independent components with their keys.
//!
//! Components with equal keys have equal values, whatever decisions led to them. So a key describes what is left of each
//! constraint, and not the constraint: the literals of hard clauses, the reduced diagrams of other formulas. Soft clauses
//! are described by their number, because their open literals follow from the domains.

use super::chart::{Restricted, restrict};
use super::domains::{Domains, Truth};
use super::problem::{Constraint, Effect, Problem, SlotId, VariableId};

/// Variables that open constraints connect.
#[derive(Debug, Default)]
pub(super) struct Component {
    pub(super) variables: Vec<VariableId>,
    pub(super) constraints: Vec<u32>,
    /// For each variable, the number of open constraints that contain it.
    pub(super) n_open: Vec<u32>,
    pub(super) key: Vec<u64>,
}

impl Component {
    /// Number of words of memory.
    pub(super) fn n_words(&self) -> usize {
        self.key.len() + self.variables.len() + self.constraints.len() / 2
    }
}

/// The effect of a branch, and what it leaves open.
#[derive(Debug, Default)]
pub(super) struct Residual {
    /// Weights of the constraints that the branch decided.
    pub(super) slots: Vec<SlotId>,
    /// Label variables that the branch decided, with their states.
    pub(super) terms: Vec<(VariableId, usize)>,
    /// Label variables without open constraints.
    pub(super) free: Vec<VariableId>,
    pub(super) components: Vec<Component>,
}

/// An open constraint.
struct Open {
    constraint: u32,
    /// Its open variables: a range of `Reducer::variables`.
    variables: std::ops::Range<usize>,
    /// Its description: a range of `Reducer::words`.
    words: std::ops::Range<usize>,
    /// For clauses, the open literals: a range of `Reducer::words`, and a Bloom filter of their variables.
    literals: std::ops::Range<usize>,
    filter: u64,
    is_hard_clause: bool,
    is_dropped: bool,
}

/// Buffers for [`Reducer::reduce`], which runs once per branch.
pub(super) struct Reducer<'p> {
    problem: &'p Problem,
    words: Vec<u64>,
    variables: Vec<VariableId>,
    open: Vec<Open>,
    /// For each constraint, whether it is open in the current branch.
    is_open: Vec<bool>,
    /// For each variable, the kept hard clauses that start with it, while clauses are dropped.
    by_first: Vec<Vec<usize>>,
    /// Union-find over variables.
    parents: Vec<VariableId>,
    /// For each variable, the index of its component, and the number of its open constraints.
    component_of: Vec<u32>,
    n_open: Vec<u32>,
}

const NONE: u32 = u32::MAX;

impl<'p> Reducer<'p> {
    pub(super) fn new(problem: &'p Problem) -> Self {
        let n = problem.n_states.len();
        Self {
            problem,
            words: Vec::new(),
            variables: Vec::new(),
            open: Vec::new(),
            is_open: vec![false; problem.constraints.len()],
            by_first: vec![Vec::new(); n],
            parents: vec![0; n],
            component_of: vec![NONE; n],
            n_open: vec![0; n],
        }
    }

    /// Decides and describes the constraints of a component after a branch, and splits it. Returns `None` if a decided
    /// constraint forbids the branch.
    pub(super) fn reduce(
        &mut self,
        domains: &mut Domains,
        variables: &[VariableId],
        constraints: &[u32],
    ) -> Option<Residual> {
        self.words.clear();
        self.variables.clear();
        self.open.clear();
        let mut residual = Residual::default();
        let is_possible = self.evaluate(domains, constraints, &mut residual);
        if is_possible {
            self.subsume(domains, &mut residual);
            self.split(domains, variables, &mut residual);
        }
        for &constraint in constraints {
            self.is_open[constraint as usize] = false;
        }
        is_possible.then_some(residual)
    }

    /// Evaluates all constraints. Causes come after the clauses that contain them.
    fn evaluate(&mut self, domains: &mut Domains, constraints: &[u32], residual: &mut Residual) -> bool {
        for &index in constraints {
            let (first_variable, first_word) = (self.variables.len(), self.words.len());
            let constraint = &self.problem.constraints[index as usize];
            let effect = match constraint {
                Constraint::Clause { .. } => self.evaluate_clause(domains, constraint),
                Constraint::Chart(chart) => match restrict(chart, domains, &mut self.words) {
                    Restricted::Decided(effect) => Some(effect),
                    Restricted::Open(variables) => {
                        self.variables.extend(variables);
                        None
                    }
                },
                Constraint::Cause(_) => self.evaluate_cause(domains, index, constraint),
            };
            match effect {
                Some(Effect::Forbidden) => return false,
                Some(effect) => {
                    self.variables.truncate(first_variable);
                    self.words.truncate(first_word);
                    if let Effect::Weight(slot) = effect {
                        residual.slots.push(slot);
                    }
                }
                None => self.push_open(domains, index, constraint, first_variable, first_word),
            }
        }
        true
    }

    fn push_open(
        &mut self,
        domains: &mut Domains,
        index: u32,
        constraint: &Constraint,
        first_variable: usize,
        first_word: usize,
    ) {
        let variables = first_variable..self.variables.len();
        let filter = self.variables[variables.clone()].iter().fold(0, |all, it| all | 1 << (it % 64));
        let mut literals = 0..0;
        let mut words = first_word..self.words.len();
        let is_clause = matches!(constraint, Constraint::Clause { .. });
        let is_hard_clause = is_clause && constraint.is_hard();
        if is_clause {
            literals = words.clone();
            if !is_hard_clause {
                self.words.push(u64::from(index));
                words = self.words.len() - 1..self.words.len();
            }
        }
        domains.work += 4.0 * variables.len() as f64 + 10.0;
        self.is_open[index as usize] = true;
        let (constraint, is_dropped) = (index, false);
        self.open.push(Open { constraint, variables, words, literals, filter, is_hard_clause, is_dropped });
    }

    /// Appends the open literals of a clause to the buffers; returns its effect if it is decided.
    fn evaluate_clause(&mut self, domains: &mut Domains, constraint: &Constraint) -> Option<Effect> {
        let Constraint::Clause { literals, effects } = constraint else { unreachable!("a clause") };
        let mut is_silent = true;
        for literal in literals {
            match domains.truth(literal) {
                Truth::True => return Some(effects[1]),
                Truth::False => {}
                Truth::Open => {
                    is_silent = false;
                    self.variables.push(literal.variable);
                    self.words.push(u64::from(literal.variable));
                    let left = domains.of(literal.variable).iter().zip(&literal.fires);
                    self.words.extend(left.map(|(domain, fires)| domain & fires));
                }
            }
        }
        domains.work += 3.0 * literals.len() as f64;
        is_silent.then_some(effects[0])
    }

    fn evaluate_cause(&mut self, domains: &Domains, index: u32, constraint: &Constraint) -> Option<Effect> {
        let Constraint::Cause(cause) = constraint else { unreachable!("a cause") };
        let (label, value) = (domains.decided(cause.label), domains.decided(cause.cause));
        if let (Some(state), Some(value)) = (label, value) {
            return Some(cause.effects[state][value]);
        }
        let is_irrelevant = value.is_none() && cause.clause.is_none_or(|clause| !self.is_open[clause]);
        if is_irrelevant {
            return Some(Effect::None); // q + (1 − q)
        }
        self.words.push(1 << 63 | u64::from(index));
        self.words.push(match (label, value) {
            (Some(state), _) => 4 + state as u64,
            (_, Some(value)) => value as u64,
            _ => 2,
        });
        self.variables.extend(label.is_none().then_some(cause.label));
        self.variables.extend(value.is_none().then_some(cause.cause));
        None
    }

    /// Drops clauses that a hard clause implies. Soft ones among them have fired.
    ///
    /// The first variable of a clause that implies another one occurs in both, so it finds the candidates.
    fn subsume(&mut self, domains: &mut Domains, residual: &mut Residual) {
        let is_hard = |place: &usize| self.open[*place].is_hard_clause;
        let (mut order, soft): (Vec<usize>, Vec<usize>) =
            (0..self.open.len()).filter(|&it| !self.open[it].literals.is_empty()).partition(is_hard);
        order.sort_by_key(|&it| self.open[it].variables.len());
        let n_hard = order.len();
        order.extend(soft);
        let mut touched = Vec::new();
        for (rank, place) in order.into_iter().enumerate() {
            let (is_implied, n_compared) = self.is_implied(place);
            domains.work += 5.0 * (n_compared + self.open[place].variables.len()) as f64;
            let first = self.variables[self.open[place].variables.start];
            if !is_implied {
                if rank < n_hard {
                    self.by_first[first as usize].push(place);
                    touched.push(first);
                }
                continue;
            }
            self.open[place].is_dropped = true;
            let constraint = &self.problem.constraints[self.open[place].constraint as usize];
            if let Constraint::Clause { effects: [_, Effect::Weight(slot)], .. } = constraint {
                residual.slots.push(*slot);
            }
        }
        touched.into_iter().for_each(|variable| self.by_first[variable as usize].clear());
    }

    /// Whether a kept hard clause implies the clause at a place, and the number of clauses that were compared.
    fn is_implied(&self, place: usize) -> (bool, usize) {
        let clause = &self.open[place];
        let mut n_compared = 0;
        for variable in &self.variables[clause.variables.clone()] {
            for &other in &self.by_first[*variable as usize] {
                n_compared += 1;
                let other = &self.open[other];
                if other.filter & !clause.filter == 0
                    && other.variables.len() <= clause.variables.len()
                    && self.implies(other, clause)
                {
                    return (true, n_compared);
                }
            }
        }
        (false, n_compared)
    }

    /// Whether every literal of `a` implies a literal of `b`. Literals are sorted by variable.
    fn implies(&self, a: &Open, b: &Open) -> bool {
        let (a_words, b_words) = (&self.words[a.literals.clone()], &self.words[b.literals.clone()]);
        let (mut i, mut j) = (0, 0);
        while i < a_words.len() {
            let n = super::problem::n_words(self.problem.n_states[a_words[i] as usize]);
            while j < b_words.len() && b_words[j] != a_words[i] {
                j += 1 + super::problem::n_words(self.problem.n_states[b_words[j] as usize]);
            }
            if j >= b_words.len() {
                return false;
            }
            if (1..=n).any(|word| a_words[i + word] & !b_words[j + word] != 0) {
                return false;
            }
            i += 1 + n;
            j += 1 + n;
        }
        true
    }

    /// Groups the open constraints into components with keys, and lists the variables that are decided or free.
    fn split(&mut self, domains: &mut Domains, variables: &[VariableId], residual: &mut Residual) {
        self.unite_open(variables);
        let components = &mut residual.components;
        for &variable in variables {
            if self.n_open[variable as usize] == 0 {
                if self.problem.labels[variable as usize].is_some() {
                    match domains.decided(variable) {
                        Some(state) => residual.terms.push((variable, state)),
                        None => residual.free.push(variable),
                    }
                }
                continue;
            }
            let root = self.root(variable) as usize;
            if self.component_of[root] == NONE {
                self.component_of[root] = components.len() as u32;
                components.push(Component::default());
            }
            let component = &mut components[self.component_of[root] as usize];
            component.variables.push(variable);
            component.n_open.push(self.n_open[variable as usize]);
            component.key.push(u64::from(variable));
            if !domains.is_full(variable) {
                component.key.push(u64::MAX);
                component.key.extend(domains.of(variable));
            }
        }
        self.describe(components);
        domains.work += 5.0 * (self.words.len() + 3 * variables.len()) as f64;
    }

    /// Counts the open constraints of each variable, and unites the variables that they connect.
    fn unite_open(&mut self, variables: &[VariableId]) {
        for &variable in variables {
            self.parents[variable as usize] = variable;
            self.component_of[variable as usize] = NONE;
            self.n_open[variable as usize] = 0;
        }
        for place in 0..self.open.len() {
            if self.open[place].is_dropped {
                continue;
            }
            let range = self.open[place].variables.clone();
            let first = self.variables[range.start];
            for at in range {
                let variable = self.variables[at];
                self.n_open[variable as usize] += 1;
                self.unite(first, variable);
            }
        }
    }

    /// Adds the open constraints to their components. Keys list them by description, so that they do not depend on the
    /// numbers of hard constraints.
    fn describe(&mut self, components: &mut [Component]) {
        let mut order: Vec<(u32, usize)> = Vec::with_capacity(self.open.len());
        for place in 0..self.open.len() {
            if self.open[place].is_dropped {
                continue;
            }
            let root = self.root(self.variables[self.open[place].variables.start]);
            let component = self.component_of[root as usize];
            components[component as usize].constraints.push(self.open[place].constraint);
            order.push((component, place));
        }
        let description = |place: usize| {
            let open = &self.open[place];
            (open.literals.is_empty(), open.is_hard_clause, &self.words[open.words.clone()])
        };
        order.sort_by(|a, b| a.0.cmp(&b.0).then_with(|| description(a.1).cmp(&description(b.1))));
        for (component, place) in order {
            let open = &self.open[place];
            let key = &mut components[component as usize].key;
            key.push(u64::MAX - 1 - u64::from(open.is_hard_clause));
            key.extend_from_slice(&self.words[open.words.clone()]);
        }
    }

    fn root(&mut self, variable: VariableId) -> VariableId {
        let mut at = variable;
        while self.parents[at as usize] != at {
            self.parents[at as usize] = self.parents[self.parents[at as usize] as usize];
            at = self.parents[at as usize];
        }
        at
    }

    fn unite(&mut self, a: VariableId, b: VariableId) {
        let (a, b) = (self.root(a), self.root(b));
        self.parents[a.max(b) as usize] = a.min(b);
    }
}
