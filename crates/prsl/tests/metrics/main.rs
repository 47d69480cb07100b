//! Scores agree with their definitions, implemented again as sums over all assignments.

mod coverage;
mod definitions;
mod errors;
mod evaluations;
mod examples;
mod labels;
mod weights;

use prsl::infer::{Enumeration, RankedAssignments};
use prsl::metrics::{Evaluation, Predictions};
use prsl::{Assignment, BeliefMatrix, CategoryId, Engine, Model, MostProbable, Posteriors, Row, Truth};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The log-likelihood of a truth of probability 0: ln 1e-300.
const IMPOSSIBLE: f64 = -690.775_527_898_213_7;

/// Truths of completely known, partly known and unknown rows.
fn random_truths(model: &Model, n_rows: usize, seed: u64) -> Vec<Truth> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let row = |row: usize| {
        let known = [1.0, 0.5, 0.0, 0.8][row % 4];
        let mut cell = |n| rng.random_bool(known).then(|| CategoryId::new(rng.random_range(0..n)));
        model.labels().iter().map(|label| cell(label.n_categories())).collect()
    };
    (0..n_rows).map(row).collect()
}

/// Answers for some rows, computed from all assignments.
struct Answers {
    posteriors: Posteriors,
    best: Vec<Option<MostProbable>>,
    joint: Vec<Option<f64>>,
}

impl Answers {
    fn new(model: &Model, rows: &BeliefMatrix, truths: &[Truth]) -> Self {
        let engine = Enumeration::compile(model).expect("small");
        let posteriors = engine.infer_batch(rows).expect("rows of the model");
        let top = engine.top_batch(rows, 1).expect("rows of the model");
        let best = top.into_iter().map(RankedAssignments::into_best).collect();
        let joint = (0..rows.n_rows()).map(|row| joint(model, &rows.row(row), &truths[row])).collect();
        Self { posteriors, best, joint }
    }

    fn predictions(&self) -> Predictions<'_> {
        let (best, joint) = (Some(&self.best[..]), Some(&self.joint[..]));
        Predictions { posteriors: &self.posteriors, best, joint, labels: None }
    }

    fn evaluate(&self, model: &Model, truths: &[Truth]) -> Evaluation {
        let mut evaluation = Evaluation::new(model, Engine::Enumeration);
        evaluation.add(self.predictions(), truths).expect("truths of the model");
        evaluation
    }
}

/// The log of the weight share of the assignments that agree with the known truths.
fn joint(model: &Model, row: &Row<'_>, truth: &Truth) -> Option<f64> {
    let sizes: Vec<usize> = model.labels().iter().map(|label| label.n_categories()).collect();
    let assignments = (0..sizes.iter().product()).map(|mut index: usize| {
        let digit = |&size: &usize| {
            let digit = index % size;
            index /= size;
            digit
        };
        Assignment::from_indices(sizes.iter().map(digit).collect::<Vec<_>>())
    });
    let agrees = |(known, category): (&Option<usize>, &usize)| known.is_none_or(|it| it == *category);
    let (mut all, mut agreeing) = (Vec::new(), Vec::new());
    for assignment in assignments {
        all.push(model.log_weight(row, &assignment));
        if truth.indices().iter().zip(assignment.indices()).all(agrees) {
            agreeing.push(*all.last().expect("just pushed"));
        }
    }
    let (all, agreeing) = (log_sum_exp(&all), log_sum_exp(&agreeing));
    let known = truth.n_known() > 0;
    known.then_some(if agreeing == f64::NEG_INFINITY { agreeing } else { agreeing - all })
}

/// ln Σ eˣ, −∞ if all terms are −∞ or there are none.
fn log_sum_exp(terms: &[f64]) -> f64 {
    let largest = terms.iter().copied().fold(f64::MIN, f64::max);
    largest + terms.iter().map(|term| (term - largest).exp()).sum::<f64>().ln()
}
