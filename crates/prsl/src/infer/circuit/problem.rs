//! A model as a search problem: variables with finite domains, and constraints between them.
//!
//! Variables are the states of the labels that rules name, and the *causes* of noisy-or rules. A noisy-or rule fires if
//! at least one of its labels causes it, so it is a clause over binary cause variables:
//!
//! ```text
//! P(cause of rule k and label j is inhibited | lⱼ = m) = q_kj(m)       rule k fires = at least one cause is not inhibited
//! ```
//!
//! A label whose inhibition probabilities are all 0 or 1 needs no cause variable: it is a literal of the clause.

use std::collections::HashMap;

use crate::error::{Error, Result};
use crate::infer::factor::{Factor, Factors, Shape};
use crate::infer::semiring::Aim;
use crate::label::LabelId;
use crate::outcome::Outcome;
use crate::rule::RuleId;

/// Index of a variable.
pub(super) type VariableId = u32;

/// Index of a weight, see [`Slot`].
pub(super) type SlotId = u32;

/// Maximum number of entries of the table of a noisy-or rule in a circuit for maxima.
const MAX_TABLE: f64 = 1e5;

/// State of a cause variable: the label makes the rule fire. In state 0, its effect is inhibited.
pub(super) const CAUSED: usize = 1;

/// A weight of the circuit. Weights of rules are parameters, which can change without compiling again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Slot {
    /// The weight of a rule that has fired, or is silent.
    Rule { rule: RuleId, fired: bool },
    /// The weight of a noisy-or rule under a full assignment of its labels.
    Outcome { rule: RuleId, outcome: Outcome },
    /// A probability of a cause variable: q or 1 − q.
    Fixed(f64),
}

/// The effect of a decided constraint on the weight of an assignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// The assignment is impossible.
    Forbidden,
    /// The weight is 1.
    None,
    Weight(SlotId),
}

/// The states of a variable for which a clause fires.
#[derive(Clone, Debug)]
pub(super) struct Literal {
    pub(super) variable: VariableId,
    /// Bit set of states, one word per 64 states.
    pub(super) fires: Box<[u64]>,
}

/// A decision diagram over variables with a numbered result.
#[derive(Clone, Debug)]
pub(super) struct Chart {
    pub(super) levels: Vec<ChartLevel>,
    /// The index of the effect of each state after the last level.
    pub(super) results: Vec<usize>,
    pub(super) effects: Vec<Effect>,
}

#[derive(Clone, Debug)]
pub(super) struct ChartLevel {
    pub(super) variable: VariableId,
    pub(super) n_states: usize,
    pub(super) n_choices: usize,
    /// The next state, at `state * n_choices + choice`.
    pub(super) next: Vec<usize>,
}

/// The probability of a cause variable given its label.
#[derive(Clone, Debug)]
pub(super) struct Cause {
    pub(super) label: VariableId,
    pub(super) cause: VariableId,
    /// The clause that contains the cause; `None` if the cause is inhibited in all assignments.
    pub(super) clause: Option<usize>,
    /// For each state of the label, the effects of "inhibited" and "caused".
    pub(super) effects: Vec<[Effect; 2]>,
}

#[derive(Clone, Debug)]
pub(super) enum Constraint {
    /// Fires if any literal holds. The effects are those of silence and of firing.
    Clause {
        literals: Vec<Literal>,
        effects: [Effect; 2],
    },
    Chart(Chart),
    Cause(Cause),
}

impl Constraint {
    /// Whether some assignments of its variables are forbidden.
    pub(super) fn is_hard(&self) -> bool {
        match self {
            Self::Clause { effects, .. } => effects[0] == Effect::Forbidden,
            Self::Chart(chart) => chart.effects.contains(&Effect::Forbidden),
            Self::Cause(_) => true,
        }
    }

    pub(super) fn variables(&self) -> Vec<VariableId> {
        match self {
            Self::Clause { literals, .. } => literals.iter().map(|literal| literal.variable).collect(),
            Self::Chart(chart) => chart.levels.iter().map(|level| level.variable).collect(),
            Self::Cause(cause) => vec![cause.label, cause.cause],
        }
    }
}

/// Variables, constraints and weights.
pub(super) struct Problem {
    /// Number of states of each variable.
    pub(super) n_states: Vec<usize>,
    /// The label of each variable; `None` for causes.
    pub(super) labels: Vec<Option<LabelId>>,
    pub(super) constraints: Vec<Constraint>,
    pub(super) slots: Vec<Slot>,
    /// Weights of all assignments: rules that are decided before the search.
    pub(super) always: Vec<SlotId>,
    /// States that hard rules exclude one variable at a time.
    pub(super) excluded: Vec<(VariableId, Box<[u64]>)>,
    /// Whether no assignment is possible.
    pub(super) is_impossible: bool,
}

/// Number of words of a bit set over `n` states.
pub(super) fn n_words(n: usize) -> usize {
    n.div_ceil(64)
}

/// Whether some inhibition probability of a label is neither 0 nor 1.
fn is_fractional(q: &[f64]) -> bool {
    q.iter().any(|&q| q != 0.0 && q != 1.0)
}

/// Whether the circuit for sums has variables other than labels, so that it cannot serve for maxima.
pub(super) fn has_causes(factors: &Factors) -> bool {
    factors.list.iter().any(|factor| match &factor.shape {
        Shape::RankOne(q) => q.iter().any(|(_, q)| is_fractional(q)),
        Shape::Logical(_) => false,
    })
}

fn bit_set(n: usize, contains: impl Fn(usize) -> bool) -> Box<[u64]> {
    let mut words = vec![0; n_words(n)];
    (0..n).filter(|&state| contains(state)).for_each(|state| words[state / 64] |= 1 << (state % 64));
    words.into()
}

impl Problem {
    /// Converts the rules of a model. For a maximum, a noisy-or rule is a table over its labels, because its causes must be
    /// summed out. One rule may be left out. Returns an error if a rule has no small decision diagram or table.
    pub(super) fn new(factors: &Factors, aim: Aim, without: Option<RuleId>) -> Result<Self> {
        let mut problem = Self {
            n_states: Vec::new(),
            labels: Vec::new(),
            constraints: Vec::new(),
            slots: Vec::new(),
            always: Vec::new(),
            excluded: Vec::new(),
            is_impossible: false,
        };
        let mut of_label: Vec<Option<VariableId>> = vec![None; factors.model.labels().len()];
        let mut scope: Vec<LabelId> = factors.list.iter().flat_map(|factor| factors.scope(factor)).collect();
        scope.sort_unstable();
        scope.dedup();
        for label in scope {
            let n_states = factors.states.representatives[label.index()].len();
            of_label[label.index()] = Some(problem.add_variable(n_states, Some(label)));
        }
        let variable = |label: LabelId| of_label[label.index()].expect("labels of rules are variables");
        for factor in factors.list.iter().filter(|factor| Some(factor.rule) != without) {
            match &factor.shape {
                Shape::RankOne(q) => {
                    let q = q.iter().map(|(label, q)| (variable(*label), q.as_slice())).collect();
                    problem.add_rank_one(factors, factor, q, aim)?;
                }
                Shape::Logical(_) => problem.add_logical(factors, factor, variable)?,
            }
        }
        Ok(problem)
    }

    fn add_variable(&mut self, n_states: usize, label: Option<LabelId>) -> VariableId {
        self.n_states.push(n_states);
        self.labels.push(label);
        (self.n_states.len() - 1) as VariableId
    }

    fn add_slot(&mut self, slot: Slot) -> SlotId {
        self.slots.push(slot);
        (self.slots.len() - 1) as SlotId
    }

    /// The effects of silence and of firing. Rules of probability 0 or 1 forbid one of them.
    fn effects(&mut self, factor: &Factor) -> [Effect; 2] {
        if factor.weights.contains(&0.0) {
            return factor.weights.map(|w| if w == 0.0 { Effect::Forbidden } else { Effect::None });
        }
        [false, true].map(|fired| Effect::Weight(self.add_slot(Slot::Rule { rule: factor.rule, fired })))
    }

    fn add_rank_one(
        &mut self,
        factors: &Factors,
        factor: &Factor,
        q: Vec<(VariableId, &[f64])>,
        aim: Aim,
    ) -> Result<()> {
        if aim == Aim::Maximum && q.iter().any(|(_, q)| is_fractional(q)) {
            return self.add_table(factors, factor, &q);
        }
        let effects = self.effects(factor);
        let clause = self.constraints.len();
        let must_be_silent = effects[1] == Effect::Forbidden;
        let mut literals = Vec::new();
        let mut causes = Vec::new();
        for (variable, q) in q {
            if !is_fractional(q) {
                let fires = bit_set(q.len(), |state| q[state] == 0.0);
                if must_be_silent {
                    self.excluded.push((variable, fires));
                } else if fires.iter().any(|&word| word != 0) {
                    literals.push(Literal { variable, fires });
                }
                continue;
            }
            let cause = self.add_variable(2, None);
            let fires = bit_set(2, |state| state == CAUSED);
            let clause = (!must_be_silent).then_some(clause);
            match clause {
                Some(_) => literals.push(Literal { variable: cause, fires }),
                None => self.excluded.push((cause, fires)),
            }
            let weights = q.iter().map(|&q| [q, 1.0 - q].map(|weight| self.fixed(weight))).collect();
            causes.push(Cause { label: variable, cause, clause, effects: weights });
        }
        if !must_be_silent {
            literals.sort_by_key(|literal| literal.variable);
            self.constraints.push(Constraint::Clause { literals, effects });
        }
        self.constraints.extend(causes.into_iter().map(Constraint::Cause));
        Ok(())
    }

    fn fixed(&mut self, weight: f64) -> Effect {
        match weight {
            0.0 => Effect::Forbidden,
            1.0 => Effect::None,
            _ => Effect::Weight(self.add_slot(Slot::Fixed(weight))),
        }
    }

    /// A noisy-or rule as a diagram with a weight for each value of ∏ q.
    fn add_table(&mut self, factors: &Factors, factor: &Factor, q: &[(VariableId, &[f64])]) -> Result<()> {
        if factor.table_size > MAX_TABLE {
            return Err(Error::TooCostly {
                what: format!("a circuit for maxima of rule `{}`", factors.model.rule_name(factor.rule)),
                needed: format!("a table of {:.1e} entries", factor.table_size),
                limit: format!("{MAX_TABLE:e}"),
                advice: "use branch and bound".to_owned(),
            });
        }
        let scope: Vec<LabelId> = factors.scope(factor);
        let outcomes = factors.entries(factor, &scope);
        let mut levels = Vec::new();
        let mut n_states = 1;
        for (variable, q) in q {
            let next = (0..n_states * q.len()).collect();
            levels.push(ChartLevel { variable: *variable, n_states, n_choices: q.len(), next });
            n_states *= q.len();
        }
        let mut effects: Vec<Effect> = Vec::new();
        let mut distinct: HashMap<[u64; 2], usize> = HashMap::new();
        let results = outcomes
            .into_iter()
            .map(|outcome| {
                *distinct.entry(outcome.bits()).or_insert_with(|| {
                    let is_possible = outcome.log_weight(factor.weights) > f64::NEG_INFINITY;
                    effects.push(match is_possible {
                        true => Effect::Weight(self.add_slot(Slot::Outcome { rule: factor.rule, outcome })),
                        false => Effect::Forbidden,
                    });
                    effects.len() - 1
                })
            })
            .collect();
        self.constraints.push(Constraint::Chart(Chart { levels, results, effects }));
        Ok(())
    }

    fn add_logical(
        &mut self,
        factors: &Factors,
        factor: &Factor,
        variable: impl Fn(LabelId) -> VariableId,
    ) -> Result<()> {
        let diagram = factors.require_diagram(factor)?;
        let effects = self.effects(factor);
        if let [accepts] = diagram.accepts[..] {
            // The formula is constant.
            match effects[usize::from(accepts)] {
                Effect::Forbidden => self.is_impossible = true,
                Effect::None => {}
                Effect::Weight(slot) => self.always.push(slot),
            }
            return Ok(());
        }
        let levels = diagram
            .levels
            .iter()
            .map(|level| ChartLevel {
                variable: variable(level.label),
                n_states: level.n_states,
                n_choices: level.n_choices,
                next: level.next.clone(),
            })
            .collect();
        let results = diagram.accepts.iter().map(|&accepts| usize::from(accepts)).collect();
        self.constraints.push(Constraint::Chart(Chart { levels, results, effects: effects.to_vec() }));
        Ok(())
    }
}
