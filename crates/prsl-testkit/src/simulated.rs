//! Models drawn as in the paper's simulation study.

use prsl::{BeliefMatrix, Body, CategoryId, Inhibition, Label, LabelId, Model, NoisyOr, Normalize, Rule};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Labels with 2 to 4 categories; noisy-or rules over 2 to 5 categories drawn without replacement, their inhibition
/// probabilities with density 2(1 − x); beliefs uniform on the simplex.
pub fn simulated(n_labels: usize, n_rules: usize, n_rows: usize, seed: u64) -> (Model, BeliefMatrix) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let sizes: Vec<usize> = (0..n_labels).map(|_| rng.random_range(2..=4)).collect();
    let mut builder = Model::builder();
    for (label, &size) in sizes.iter().enumerate() {
        let categories = (0..size).map(|category| format!("L{label}_{category}"));
        builder = builder.add_label(Label::new(format!("L{label}"), categories));
    }
    let all: Vec<(usize, usize)> =
        sizes.iter().enumerate().flat_map(|(label, &size)| (0..size).map(move |c| (label, c))).collect();
    for _ in 0..n_rules {
        let mut drawn = all.clone();
        drawn.shuffle(&mut rng);
        drawn.truncate(rng.random_range(2..=5));
        let inhibitions = drawn.iter().map(|&(label, category)| Inhibition {
            label: LabelId::new(label),
            category: CategoryId::new(category),
            probability: 1.0 - rng.random::<f64>().sqrt(),
        });
        builder =
            builder.add_rule(Rule::new(1.0, Body::NoisyOr(NoisyOr::new(inhibitions.collect::<Vec<_>>()))));
    }
    let model = builder.build().expect("simulated models are valid");
    let mut rows = BeliefMatrix::new(&model);
    for _ in 0..n_rows {
        let cells: Vec<Option<f64>> = all.iter().map(|_| Some(-(1.0 - rng.random::<f64>()).ln())).collect();
        rows.push(&cells, Normalize::Always).expect("simulated rows are valid");
    }
    (model, rows)
}
