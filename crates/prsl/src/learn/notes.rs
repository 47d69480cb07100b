//! What the data say about rules: notes on learned ones, and expert rules that they contradict.

use std::ops::Range;

use super::feature::Feature;
use super::fisher::{Fisher, Matrix};
use super::fit::minimize;
use super::induction::{Induction, State};
use super::objective::Point;
use super::problem::{Compiled, Problem};
use super::question::Question;
use super::softening::Softened;
use crate::infer::weighted::Weighted;

/// Predicted decrease of the objective at which a refit without a rule ends, in nats.
const TOLERANCE: f64 = 0.02;

/// How a learned rule fares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Note {
    /// Its features.
    pub(crate) rule: Softened,
    /// Loss of penalized log-likelihood without the rule, others refitted, in nats.
    pub(crate) gain: f64,
    /// Weight of the rows that break the rule.
    pub(crate) broken: f64,
    /// Weight of the rows where the condition holds and all labels of the rule are known.
    pub(crate) known: f64,
    /// Weight of those rows that the model without the rule expects to break it.
    pub(crate) expected: f64,
    /// Whether the gain exceeds the price at parsimony 1.
    pub(crate) sure: bool,
}

impl Induction<'_> {
    /// The parameters without the features at some places, others refitted.
    pub(crate) fn without(
        &self,
        state: &State,
        compiled: &mut Compiled,
        hessian: Option<&Matrix>,
        places: &[usize],
        goes_on: &mut dyn FnMut() -> bool,
    ) -> (Vec<f64>, Point) {
        let mut bounds = self.problem.bounds(state.features.len());
        places.iter().for_each(|place| bounds[self.problem.n_fixed() + place] = (0.0, 0.0));
        let evaluate = |at: &[f64]| self.problem.point(compiled, at);
        minimize(state.parameters.clone(), &bounds, hessian, TOLERANCE, evaluate, goes_on)
    }

    /// The notes on all learned rules. `goes_on` ends refits early; the gains are then upper bounds.
    pub(crate) fn notes(
        &self,
        state: &State,
        compiled: &mut Compiled,
        goes_on: &mut dyn FnMut(usize) -> bool,
    ) -> Vec<Note> {
        let sheet = self.draw(state, compiled);
        let fisher = Fisher::new(self.problem, &sheet, &state.features);
        let hessian = fisher.as_ref().map(Fisher::matrix);
        let tallies = self.problem.ask(None, &Question::Tallies { features: state.features.clone() });
        let mut notes = Vec::new();
        for (number, rule) in self.prices.rules(&state.features).into_iter().enumerate() {
            let rule = self.heavier_first(rule, state);
            let places: Vec<usize> = rule.places().collect();
            let (at, without) = self.without(state, compiled, hessian, &places, &mut || goes_on(number));
            let tally = &tallies[3 * rule.rule..3 * (rule.rule + 1)];
            let (known, broken, n_rows) = (tally[0], tally[1], tally[2] as usize);
            let expected = match n_rows == self.problem.n_rows() {
                true => without.expected[rule.rule],
                false => self.problem.expected(compiled, &at, rule.rule),
            };
            let gain = without.value - state.value;
            let sure = gain > self.prices.of_places(&state.features, &places);
            notes.push(Note { rule, gain, broken, known, expected, sure });
        }
        notes
    }

    /// The same rule. Of a pair, the clause of the larger weight is softened by the other.
    fn heavier_first(&self, rule: Softened, state: &State) -> Softened {
        let weight = |place: usize| state.parameters[self.problem.n_fixed() + place];
        match rule.softening {
            Some(other) if weight(other) > weight(rule.rule) => {
                Softened { rule: other, softening: Some(rule.rule) }
            }
            _ => rule,
        }
    }

    /// What the features at some places cost beside the others, in nats.
    pub(crate) fn price(&self, features: &[Feature], places: &[usize]) -> f64 {
        self.parsimony * self.prices.of_places(features, places)
    }
}

impl Problem {
    /// Among rows of a chunk with known labels: the weight of those where the condition of a rule holds, of those that break
    /// it, and the number of rows.
    pub(super) fn tally_of_chunk(&self, feature: &Feature, rows: Range<usize>) -> [f64; 3] {
        let labels = feature.labels(&self.counted);
        let (mut known, mut broken, mut n_rows) = (0.0, 0.0, 0.0);
        let conclusion = feature.conclusion(&self.model);
        for row in rows.filter(|&row| self.knows(row, &labels)) {
            let category = |label: usize| self.data.truth(row, label).expect("it is known");
            let is_condition = |feature: &Feature| match feature {
                Feature::Conjunction(literals) => literals
                    .iter()
                    .enumerate()
                    .filter(|(place, _)| Some(*place) != conclusion)
                    .all(|(_, literal)| literal.holds(category(literal.label))),
                _ => true,
            };
            n_rows += 1.0;
            if is_condition(feature) {
                known += self.data.weights[row];
            }
            if feature.is_violated(category, &self.counted) {
                broken += self.data.weights[row];
            }
        }
        [known, broken, n_rows]
    }

    fn knows(&self, row: usize, labels: &[usize]) -> bool {
        labels.iter().all(|&label| self.data.truth(row, label).is_some())
    }

    /// The expected violations of a learned rule among rows that know its labels.
    fn expected(&self, compiled: &mut Compiled, parameters: &[f64], place: usize) -> f64 {
        let (rules, parameters) = (compiled.rules(), parameters.to_vec());
        self.ask(Some(compiled), &Question::Expected { rules, place, parameters })[0]
    }

    /// The same among the rows of a chunk.
    pub(super) fn expected_of_chunk(
        &self,
        engine: &Weighted,
        feature: &Feature,
        place: usize,
        parameters: &[f64],
        rows: Range<usize>,
    ) -> f64 {
        let labels = feature.labels(&self.counted);
        let rows: Vec<usize> = rows.filter(|&row| self.knows(row, &labels)).collect();
        let values = self.values(parameters, &rows);
        let weights: Vec<f64> = rows.iter().map(|&row| self.data.weights[row]).collect();
        engine.expectations(&self.rows(&values, &weights)).violated[self.model.rules().len() + place]
    }
}
