//! Models drawn as in the paper's simulation study.

use prsl::infer::{Samples, Sampling};
use prsl::learn::Examples;
use prsl::simulate::Simulation;
use prsl::{BeliefMatrix, Engines, Model, Truth};

/// A model and rows for it, as [`Simulation`] draws them.
pub fn simulated(n_labels: usize, n_rules: usize, n_rows: usize, seed: u64) -> (Model, BeliefMatrix) {
    Simulation { n_labels, n_rules, n_rows, seed }.draw().expect("tests simulate what can be")
}

/// A simulated model, and rows whose truths are sampled from it.
pub fn sampled(n_labels: usize, n_rules: usize, n_rows: usize, seed: u64) -> (Model, Examples) {
    let (generator, beliefs) = simulated(n_labels, n_rules, n_rows, seed);
    let rows = with_truths(&generator, beliefs, seed);
    (generator, rows)
}

/// Rows with truths that are sampled from a model.
pub fn with_truths(generator: &Model, beliefs: BeliefMatrix, seed: u64) -> Examples {
    let sampler = Engines::new(generator).sampler().expect("tests sample what can be");
    let samples = sampler.sample_batch(&beliefs, &Sampling { n_samples: 1, seed, ..Sampling::default() });
    let samples = samples.expect("the rows are the model's").into_iter();
    let truth = |sample: prsl::Result<Option<Samples>>| {
        let samples = sample.expect("it can be sampled").expect("every row is possible");
        Truth::from(&samples[0])
    };
    let truths = samples.map(truth).collect();
    Examples::new(beliefs, truths).expect("every row has a truth")
}
