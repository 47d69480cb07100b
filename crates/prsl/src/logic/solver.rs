//! Logic gates on top of a SAT solver. Each gate returns a literal that is true exactly if its condition holds.

use std::cell::Cell;

use batsat::{Callbacks, ClauseKind};
use rustsat::solvers::{Solve, SolveIncremental, SolverResult};
use rustsat::types::Clause;
pub(crate) use rustsat::types::Lit;

/// Maximum number of steps of one query, besides one per variable. Steps are counted instead of timed, so the same
/// model always has the same findings.
pub(crate) const STEPS_PER_QUESTION: u64 = 4_000_000;
/// Maximum number of steps of all queries, besides [`STEPS_PER_VARIABLE`].
const STEPS: u64 = 8_000_000;
/// Additional steps of all queries per variable. A variable is a category or a part of a rule.
const STEPS_PER_VARIABLE: u64 = 100;
/// Steps charged for a conflict. A decision is one step; analyzing a conflict takes about 100 times as long.
const STEPS_PER_CONFLICT: u64 = 100;

pub(super) struct Solver {
    solver: rustsat_batsat::Solver<Meter>,
    n_variables: u32,
    truth: Lit,
}

/// Counts the steps of the search, and stops it at the limit.
#[derive(Default)]
struct Meter {
    /// Steps left for this query.
    left: Cell<u64>,
    /// Steps taken by all queries.
    taken: Cell<u64>,
}

impl Meter {
    fn charge(&self, steps: u64) {
        self.left.set(self.left.get().saturating_sub(steps));
        self.taken.set(self.taken.get().saturating_add(steps));
    }
}

impl Callbacks for Meter {
    fn on_new_clause(&mut self, _: &[batsat::Lit], kind: ClauseKind) {
        if kind == ClauseKind::Learnt {
            self.charge(STEPS_PER_CONFLICT);
        }
    }

    fn stop(&self) -> bool {
        self.charge(1);
        self.left.get() == 0
    }
}

/// The answer of the solver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Yes,
    No,
    /// The search was stopped.
    Unknown,
}

impl Solver {
    pub(super) fn new() -> Self {
        let truth = Lit::positive(0);
        let mut this = Self { solver: rustsat_batsat::Solver::default(), n_variables: 1, truth };
        this.clause(&[truth]);
        this
    }

    /// Maximum number of steps of all queries.
    pub(super) fn budget(&self) -> u64 {
        STEPS + STEPS_PER_VARIABLE * u64::from(self.n_variables)
    }

    /// Number of steps taken.
    pub(super) fn taken(&self) -> u64 {
        self.meter().taken.get()
    }

    /// Charges steps for work outside the solver.
    pub(super) fn charge(&self, steps: u64) {
        self.meter().charge(steps);
    }

    /// Whether the step limit is reached.
    pub(super) fn is_spent(&self) -> bool {
        self.taken() >= self.budget()
    }

    fn meter(&self) -> &Meter {
        self.solver.batsat_ref().cb()
    }

    pub(super) fn variable(&mut self) -> Lit {
        self.n_variables += 1;
        Lit::positive(self.n_variables - 1)
    }

    pub(super) fn clause(&mut self, literals: &[Lit]) {
        let clause: Clause = literals.iter().copied().collect();
        self.solver.add_clause(clause).expect("the solver takes every clause");
    }

    pub(super) fn constant(&self, value: bool) -> Lit {
        if value { self.truth } else { !self.truth }
    }

    /// Conjunction.
    pub(super) fn all(&mut self, inputs: &[Lit]) -> Lit {
        let mut inputs: Vec<Lit> = inputs.iter().copied().filter(|&input| input != self.truth).collect();
        inputs.sort_unstable();
        inputs.dedup();
        // The two literals of a variable are neighbors in sorted order.
        let opposed = inputs.windows(2).any(|pair| pair[0] == !pair[1]);
        match inputs[..] {
            _ if opposed || inputs.contains(&!self.truth) => !self.truth,
            [] => self.truth,
            [input] => input,
            _ => {
                let gate = self.variable();
                for &input in &inputs {
                    self.clause(&[!gate, input]);
                }
                let mut clause: Vec<Lit> = inputs.iter().map(|&input| !input).collect();
                clause.push(gate);
                self.clause(&clause);
                gate
            }
        }
    }

    /// Disjunction.
    pub(super) fn any(&mut self, inputs: &[Lit]) -> Lit {
        let negated: Vec<Lit> = inputs.iter().map(|&input| !input).collect();
        !self.all(&negated)
    }

    /// Exclusive or.
    pub(super) fn either(&mut self, a: Lit, b: Lit) -> Lit {
        let (truth, falsity) = (self.truth, !self.truth);
        match (a, b) {
            _ if a == truth => !b,
            _ if b == truth => !a,
            _ if a == falsity => b,
            _ if b == falsity => a,
            _ if a == b => falsity,
            _ if a == !b => truth,
            _ => {
                let gate = self.variable();
                self.clause(&[!gate, a, b]);
                self.clause(&[!gate, !a, !b]);
                self.clause(&[gate, !a, b]);
                self.clause(&[gate, a, !b]);
                gate
            }
        }
    }

    /// At least `n` of the inputs, by a sequential counter: `reached[j]` means that at least j of the inputs so far
    /// hold. It takes n times the number of inputs; [`counter_size`] computes this in advance.
    pub(super) fn at_least(&mut self, n: usize, inputs: &[Lit]) -> Lit {
        if n > inputs.len() {
            return !self.truth;
        }
        if n > inputs.len() - n + 1 {
            // At least n inputs hold exactly if fewer than inputs − n + 1 of them are false.
            let negated: Vec<Lit> = inputs.iter().map(|&input| !input).collect();
            return !self.at_least(inputs.len() - n + 1, &negated);
        }
        let mut reached = vec![!self.truth; n + 1];
        reached[0] = self.truth;
        for &input in inputs {
            for j in (1..=n).rev() {
                let next = self.all(&[input, reached[j - 1]]);
                reached[j] = self.any(&[reached[j], next]);
            }
        }
        reached[n]
    }

    /// Adds the constraint that exactly one input holds, by a ladder: `below` means that one of the inputs so far
    /// holds.
    pub(super) fn state_exactly_one(&mut self, inputs: &[Lit]) {
        self.clause(inputs);
        let mut below = inputs[0];
        for &input in &inputs[1..] {
            self.clause(&[!below, !input]);
            let next = self.variable();
            self.clause(&[!below, next]);
            self.clause(&[!input, next]);
            below = next;
        }
    }

    /// Searches for an assignment with all of these literals.
    pub(super) fn solve(&mut self, literals: &[Lit]) -> Answer {
        if self.is_spent() {
            return Answer::Unknown;
        }
        let most = STEPS_PER_QUESTION + u64::from(self.n_variables);
        self.meter().left.set(most.min(self.budget() - self.taken()));
        self.charge(literals.len() as u64 / 4); // for passing the assumptions
        match self.solver.solve_assumps(literals) {
            Ok(SolverResult::Sat) => Answer::Yes,
            Ok(SolverResult::Unsat) => Answer::No,
            Ok(SolverResult::Interrupted) | Err(_) => Answer::Unknown,
        }
    }

    /// Whether a literal holds in the last assignment found.
    pub(super) fn holds(&self, literal: Lit) -> bool {
        self.solver.lit_val(literal).is_ok_and(|value| value.to_bool_with_def(false))
    }

    /// A subset of the last literals that is already unsatisfiable.
    pub(super) fn core(&mut self) -> Vec<Lit> {
        let clause = self.solver.core().unwrap_or_default();
        clause.into_iter().map(|literal| !literal).collect()
    }
}

/// Number of cells of the counter for `at_least n`.
pub(super) fn counter_size(n: usize, inputs: usize) -> usize {
    n.min(inputs.saturating_sub(n) + 1).saturating_mul(inputs)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that a gate over free inputs is true exactly if `expected` is.
    fn check(n: usize, gate: impl Fn(&mut Solver, &[Lit]) -> Lit, expected: impl Fn(&[bool]) -> bool) {
        let mut solver = Solver::new();
        let inputs: Vec<Lit> = (0..n).map(|_| solver.variable()).collect();
        let gate = gate(&mut solver, &inputs);
        for bits in 0..1_u32 << n {
            let values: Vec<bool> = (0..n).map(|i| bits >> i & 1 == 1).collect();
            let mut literals: Vec<Lit> =
                (0..n).map(|i| if values[i] { inputs[i] } else { !inputs[i] }).collect();
            literals.push(gate);
            assert_eq!(solver.solve(&literals) == Answer::Yes, expected(&values), "{values:?}");
            *literals.last_mut().expect("just pushed") = !gate;
            assert_eq!(solver.solve(&literals) == Answer::Yes, !expected(&values), "{values:?}");
        }
    }

    #[test]
    fn gates_agree_with_their_tables() {
        for n in 0..6 {
            check(n, |solver, inputs| solver.all(inputs), |values| values.iter().all(|&value| value));
            check(n, |solver, inputs| solver.any(inputs), |values| values.iter().any(|&value| value));
            for wanted in 0..=n + 1 {
                let count = |values: &[bool]| values.iter().filter(|&&value| value).count();
                check(n, |solver, inputs| solver.at_least(wanted, inputs), |values| count(values) >= wanted);
            }
        }
        check(2, |solver, inputs| solver.either(inputs[0], inputs[1]), |values| values[0] != values[1]);
        check(1, |solver, inputs| solver.either(inputs[0], inputs[0]), |_| false);
        check(1, |solver, inputs| solver.either(inputs[0], !inputs[0]), |_| true);
        check(1, |solver, inputs| solver.all(&[inputs[0], !inputs[0]]), |_| false);
    }

    #[test]
    fn exactly_one_leaves_as_many_choices_as_there_are_inputs() {
        let mut solver = Solver::new();
        let inputs: Vec<Lit> = (0..5).map(|_| solver.variable()).collect();
        solver.state_exactly_one(&inputs);
        let mut choices = 0;
        while solver.solve(&[]) == Answer::Yes {
            let chosen: Vec<Lit> = inputs.iter().copied().filter(|&input| solver.holds(input)).collect();
            assert_eq!(chosen.len(), 1);
            solver.clause(&[!chosen[0]]);
            choices += 1;
        }
        assert_eq!(choices, 5);
    }

    #[test]
    fn cores_name_only_what_was_asked() {
        let mut solver = Solver::new();
        let [a, b, c] = [0, 1, 2].map(|_| solver.variable());
        solver.clause(&[!a, !b]);
        assert_eq!(solver.solve(&[c, a, b]), Answer::No);
        let mut core = solver.core();
        core.sort_unstable();
        assert_eq!(core, [a, b]);
    }
}
