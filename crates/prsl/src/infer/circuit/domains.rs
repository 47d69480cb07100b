//! Domains of the variables during the search, and propagation of the hard constraints.

use std::collections::VecDeque;

use super::chart::support;
use super::problem::{Cause, Constraint, Effect, Literal, Problem, VariableId, n_words};

/// The states that are left for each variable, with a trail for undoing changes.
pub(super) struct Domains<'p> {
    problem: &'p Problem,
    /// The first word of each variable's bit set, and the number of words of all.
    starts: Vec<usize>,
    words: Vec<u64>,
    /// Changed words and their values before the change.
    trail: Vec<(usize, u64)>,
    /// For each variable, the hard clauses that watch one of its literals.
    watches: Vec<Vec<usize>>,
    /// For each clause, the positions of its two watched literals.
    watched: Vec<[usize; 2]>,
    /// For each variable, its hard constraints other than clauses.
    others: Vec<Vec<usize>>,
    /// Variables whose domains changed since the last propagation.
    changed: Vec<VariableId>,
    /// Hard constraints other than clauses that changes have reached, in the order of propagation. They take longer than
    /// clauses, so each waits until all clauses are propagated.
    waiting: VecDeque<usize>,
    is_waiting: Vec<bool>,
    /// Counted work, in units of about a nanosecond.
    pub(super) work: f64,
}

/// What a literal's states have in common with the domain of its variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Truth {
    False,
    Open,
    True,
}

/// No assignment of the remaining states satisfies the hard constraints.
#[derive(Debug)]
pub(super) struct Contradiction;

impl<'p> Domains<'p> {
    /// Full domains, restricted by propagation of all hard constraints.
    pub(super) fn new(problem: &'p Problem) -> Result<Self, Contradiction> {
        let mut starts = vec![0];
        let mut words = Vec::new();
        for &n in &problem.n_states {
            words.extend((0..n_words(n)).map(|word| match n - 64 * word {
                left if left >= 64 => u64::MAX,
                left => (1 << left) - 1,
            }));
            starts.push(words.len());
        }
        let n_variables = problem.n_states.len();
        let mut domains = Self {
            problem,
            starts,
            words,
            trail: Vec::new(),
            watches: vec![Vec::new(); n_variables],
            watched: vec![[0, 1]; problem.constraints.len()],
            others: vec![Vec::new(); n_variables],
            changed: Vec::new(),
            waiting: VecDeque::new(),
            is_waiting: vec![false; problem.constraints.len()],
            work: 0.0,
        };
        domains.watch()?;
        for (variable, excluded) in &problem.excluded {
            domains.restrict(*variable, |word, domain| domain & !excluded[word])?;
        }
        domains.changed.extend(0..n_variables as VariableId);
        domains.propagate()?;
        Ok(domains)
    }

    /// Sets up the watched literals, and restricts variables by clauses of one literal.
    fn watch(&mut self) -> Result<(), Contradiction> {
        if self.problem.is_impossible {
            return Err(Contradiction);
        }
        for (index, constraint) in self.problem.constraints.iter().enumerate().filter(|(_, it)| it.is_hard())
        {
            match constraint {
                Constraint::Clause { literals, .. } => match &literals[..] {
                    [] => return Err(Contradiction),
                    [only] => self.restrict(only.variable, |word, domain| domain & only.fires[word])?,
                    [first, second, ..] => {
                        self.watches[first.variable as usize].push(index);
                        self.watches[second.variable as usize].push(index);
                    }
                },
                other => {
                    for variable in other.variables() {
                        self.others[variable as usize].push(index);
                    }
                }
            }
        }
        Ok(())
    }

    pub(super) fn of(&self, variable: VariableId) -> &[u64] {
        &self.words[self.starts[variable as usize]..self.starts[variable as usize + 1]]
    }

    pub(super) fn n_left(&self, variable: VariableId) -> usize {
        self.of(variable).iter().map(|word| word.count_ones() as usize).sum()
    }

    pub(super) fn is_full(&self, variable: VariableId) -> bool {
        self.n_left(variable) == self.problem.n_states[variable as usize]
    }

    /// The only state that is left; `None` if there are several.
    pub(super) fn decided(&self, variable: VariableId) -> Option<usize> {
        let mut states = self.states(variable);
        let first = states.next();
        if states.next().is_some() { None } else { first }
    }

    pub(super) fn states(&self, variable: VariableId) -> impl Iterator<Item = usize> {
        states_of(self.of(variable))
    }

    pub(super) fn truth(&self, literal: &Literal) -> Truth {
        let (mut inside, mut outside) = (0, 0);
        for (domain, fires) in self.of(literal.variable).iter().zip(&literal.fires) {
            inside |= domain & fires;
            outside |= domain & !fires;
        }
        match (inside, outside) {
            (0, _) => Truth::False,
            (_, 0) => Truth::True,
            _ => Truth::Open,
        }
    }

    /// The current length of the trail, for [`Self::undo`].
    pub(super) fn mark(&self) -> usize {
        self.trail.len()
    }

    /// Undoes all changes since a mark.
    pub(super) fn undo(&mut self, mark: usize) {
        for (place, word) in self.trail.drain(mark..).rev() {
            self.words[place] = word;
        }
    }

    /// Decides a variable, and propagates.
    pub(super) fn decide(&mut self, variable: VariableId, state: usize) -> Result<(), Contradiction> {
        self.restrict(variable, |word, domain| {
            domain & if word == state / 64 { 1 << (state % 64) } else { 0 }
        })?;
        self.propagate()
    }

    /// Replaces each word of a domain by a subset.
    fn restrict(
        &mut self,
        variable: VariableId,
        subset: impl Fn(usize, u64) -> u64,
    ) -> Result<(), Contradiction> {
        let mut is_changed = false;
        let mut is_empty = true;
        for (word, place) in (self.starts[variable as usize]..self.starts[variable as usize + 1]).enumerate()
        {
            let (before, after) = (self.words[place], subset(word, self.words[place]));
            is_empty &= after == 0;
            if after != before {
                self.trail.push((place, before));
                self.words[place] = after;
                is_changed = true;
            }
        }
        if is_changed {
            self.changed.push(variable);
        }
        if is_empty { Err(Contradiction) } else { Ok(()) }
    }

    fn propagate(&mut self) -> Result<(), Contradiction> {
        let result = self.propagate_all();
        if result.is_err() {
            self.changed.clear();
            self.waiting.drain(..).for_each(|constraint| self.is_waiting[constraint] = false);
        }
        result
    }

    fn propagate_all(&mut self) -> Result<(), Contradiction> {
        loop {
            while let Some(variable) = self.changed.pop() {
                self.propagate_clauses(variable)?;
                for &constraint in &self.others[variable as usize] {
                    if !std::mem::replace(&mut self.is_waiting[constraint], true) {
                        self.waiting.push_back(constraint);
                    }
                }
            }
            let Some(constraint) = self.waiting.pop_front() else { return Ok(()) };
            self.is_waiting[constraint] = false;
            let problem = self.problem;
            match &problem.constraints[constraint] {
                Constraint::Cause(cause) => self.propagate_cause(cause)?,
                Constraint::Chart(chart) => {
                    let supported = support(chart, self);
                    for (level, supported) in chart.levels.iter().zip(supported) {
                        self.restrict(level.variable, |word, domain| domain & supported[word])?;
                    }
                }
                Constraint::Clause { .. } => unreachable!("clauses are watched"),
            }
        }
    }

    /// Propagates the clauses that watch a variable.
    fn propagate_clauses(&mut self, variable: VariableId) -> Result<(), Contradiction> {
        let problem = self.problem;
        let watching = std::mem::take(&mut self.watches[variable as usize]);
        let mut kept = Vec::with_capacity(watching.len());
        let mut result = Ok(());
        for (place, &clause) in watching.iter().enumerate() {
            let Constraint::Clause { literals, .. } = &problem.constraints[clause] else {
                unreachable!("only clauses are watched")
            };
            match self.visit(clause, literals, variable) {
                Ok(true) => kept.push(clause),
                Ok(false) => {}
                Err(contradiction) => {
                    kept.extend_from_slice(&watching[place..]);
                    result = Err(contradiction);
                    break;
                }
            }
        }
        self.work += 10.0 * watching.len() as f64;
        // A variable has one literal in a clause, so no clause moves its watch to the variable it left.
        self.watches[variable as usize] = kept;
        result
    }

    /// Restores the watch of a clause after a domain changed. Returns whether the clause still watches the variable.
    fn visit(
        &mut self,
        clause: usize,
        literals: &[Literal],
        variable: VariableId,
    ) -> Result<bool, Contradiction> {
        let [a, b] = self.watched[clause];
        let (mine, other) = if literals[a].variable == variable { (a, b) } else { (b, a) };
        if self.truth(&literals[mine]) != Truth::False || self.truth(&literals[other]) == Truth::True {
            return Ok(true);
        }
        self.work += 2.0 * literals.len() as f64;
        let is_free =
            |place: usize| place != mine && place != other && self.truth(&literals[place]) != Truth::False;
        if let Some(place) = (0..literals.len()).find(|&place| is_free(place)) {
            self.watched[clause] = [place, other];
            self.watches[literals[place].variable as usize].push(clause);
            return Ok(false);
        }
        let other = &literals[other];
        self.restrict(other.variable, |word, domain| domain & other.fires[word])?;
        Ok(true)
    }

    /// Removes states of a label that its decided cause forbids, and the other way round.
    fn propagate_cause(&mut self, cause: &Cause) -> Result<(), Contradiction> {
        self.work += 10.0 * cause.effects.len() as f64;
        let is_possible = |value: usize| {
            self.states(cause.label).any(|state| cause.effects[state][value] != Effect::Forbidden)
        };
        let possible = u64::from(is_possible(0)) | u64::from(is_possible(1)) << 1;
        self.restrict(cause.cause, |_, domain| domain & possible)?;
        let Some(value) = self.decided(cause.cause) else { return Ok(()) };
        self.restrict(cause.label, |word, domain| {
            let is_possible =
                |bit: &u32| cause.effects[64 * word + *bit as usize][value] != Effect::Forbidden;
            (0..64).filter(|bit| domain >> bit & 1 == 1).filter(is_possible).map(|bit| 1 << bit).sum()
        })
    }
}

/// The states in a bit set, in order.
pub(super) fn states_of(words: &[u64]) -> impl Iterator<Item = usize> {
    words.iter().enumerate().flat_map(|(word, &bits)| {
        let mut left = bits;
        std::iter::from_fn(move || {
            (left != 0).then(|| {
                let bit = left.trailing_zeros() as usize;
                left &= left - 1;
                64 * word + bit
            })
        })
    })
}
