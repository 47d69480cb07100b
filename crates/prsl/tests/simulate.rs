//! Random models as in the paper's simulation study.

use prsl::calibrate::BeliefOrigin;
use prsl::simulate::{RowSimulation, Simulation};
use prsl::{Assignment, BeliefMatrix, Body, Engines, Error, JunctionTree, LabelId, Model, NoisyOr};
use prsl_testkit::simulated;

/// A hash of a model and its rows (FNV-1a).
fn fingerprint((model, rows): &(Model, BeliefMatrix)) -> u64 {
    let numbers = rows.values().iter().flat_map(|value| value.to_bits().to_le_bytes());
    let bytes = model.to_string().into_bytes().into_iter().chain(numbers);
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[test]
fn seeds_give_the_same_models_as_before() {
    let (model, rows) = simulated(3, 2, 2, 7);
    insta::assert_snapshot!(format!("{model}\n{:?}\n{:?}", rows.row(0), rows.row(1)));
    let models = [simulated(10, 10, 5, 1), simulated(30, 30, 100, 2), simulated(1, 4, 3, 3)];
    insta::assert_snapshot!(format!("{:x?}", models.each_ref().map(fingerprint)));
}

#[test]
fn drawn_models_have_the_distributions_of_the_paper() {
    let (model, rows) = Simulation { n_labels: 300, n_rules: 3000, n_rows: 200, seed: 4 }.draw().unwrap();
    let sizes: Vec<usize> = model.labels().iter().map(|label| label.n_categories()).collect();
    assert!(sizes.iter().all(|size| (2..=4).contains(size)));
    let bodies: Vec<&NoisyOr> = model
        .rules()
        .iter()
        .map(|rule| match rule.body() {
            Body::NoisyOr(noisy_or) if rule.probability() == 1.0 => noisy_or,
            other => panic!("{other:?}"),
        })
        .collect();
    assert!(bodies.iter().all(|body| (2..=5).contains(&body.inhibitions().len())));
    // About 10,500 inhibition probabilities of mean 1/3 and second moment 1/6. Their standard errors are 0.0023 and
    // 0.0019.
    let q: Vec<f64> = bodies.iter().flat_map(|body| body.inhibitions()).map(|i| i.probability).collect();
    let mean = |power: i32| q.iter().map(|q| q.powi(power)).sum::<f64>() / q.len() as f64;
    assert!((mean(1) - 1.0 / 3.0).abs() < 0.01, "{}", mean(1));
    assert!((mean(2) - 1.0 / 6.0).abs() < 0.008, "{}", mean(2));
    // A component of a uniform distribution over three categories also has mean 1/3 and second moment 1/6.
    let ternary = model.label_ids().filter(|label| sizes[label.index()] == 3);
    let beliefs: Vec<f64> = ternary
        .flat_map(|label| (0..rows.n_rows()).map(move |row| (row, label)))
        .map(|(row, label)| rows.row(row)[model.block(label).start])
        .collect();
    let mean = |power: i32| beliefs.iter().map(|b| b.powi(power)).sum::<f64>() / beliefs.len() as f64;
    assert!((mean(1) - 1.0 / 3.0).abs() < 0.01, "{}", mean(1));
    assert!((mean(2) - 1.0 / 6.0).abs() < 0.008, "{}", mean(2));
}

#[test]
fn models_above_the_limits_are_refused() {
    let of = |n_labels, n_rules, n_rows| Simulation { n_labels, n_rules, n_rows, seed: 1 }.draw();
    assert_eq!(of(0, 2, 1), Err(Error::NothingToSimulate { n_rules: 2 }));
    assert!(of(0, 0, 3).is_ok());
    for (n_labels, n_rules, n_rows) in [(usize::MAX, 1, 1), (1, usize::MAX, 1), (1, 1, usize::MAX)] {
        assert!(matches!(of(n_labels, n_rules, n_rows), Err(Error::TooCostly { .. })));
    }
}

#[test]
fn models_with_many_rules_are_drawn_without_shuffling_all_categories_for_each() {
    let simulation = Simulation { n_labels: 200_000, n_rules: 200_000, n_rows: 0, seed: 1 };
    let (model, _) = simulation.draw().unwrap();
    for rule in model.rules() {
        let Body::NoisyOr(noisy_or) = rule.body() else { panic!("{rule:?}") };
        let named: std::collections::HashSet<_> =
            noisy_or.inhibitions().iter().map(|i| (i.label, i.category)).collect();
        assert!((2..=5).contains(&named.len()) && named.len() == noisy_or.inhibitions().len());
    }
}

const WEATHER: &str = "\
label storm prior 0.1
label sky: clear, cloudy, rain prior 0.5, 0.3, 0.2
label ground: dry, wet
label mood: good, bad latent
rule 0.95: storm -> rain
rule 0.9: rain <-> wet
rule 1: storm -> sky != clear
rule 0.8: rain | storm -> bad
";

fn rows_for(text: &str, simulation: RowSimulation) -> prsl::Result<(Vec<Assignment>, BeliefMatrix)> {
    simulation.draw(&Engines::new(&Model::parse(text)?).sampler()?)
}

/// Of all categories that the model gives a probability near p, the share p is true. Each bin of 10,000 rows has
/// thousands of categories, so 0.03 is more than three standard errors.
#[test]
fn simulated_rows_are_calibrated() {
    let simulation = RowSimulation { n_rows: 10_000, missing: 0.2, ..RowSimulation::default() };
    let (truths, beliefs) = rows_for(WEATHER, simulation).unwrap();
    let model = beliefs.model().clone();
    let posteriors = JunctionTree::compile(&model).unwrap().infer_batch(&beliefs).unwrap();
    let mut bins = [(0.0, 0.0, 0.0); 5];
    for (row, truth) in truths.iter().enumerate() {
        let marginals = posteriors.marginals(row).unwrap();
        for label in model.label_ids() {
            for (category, &probability) in marginals[model.block(label)].iter().enumerate() {
                let bin = &mut bins[((probability * 5.0) as usize).min(4)];
                let is_true = truth.category(label).index() == category;
                *bin = (bin.0 + 1.0, bin.1 + probability, bin.2 + f64::from(u8::from(is_true)));
            }
        }
    }
    for (n, expected, found) in bins {
        assert!(n > 1000.0 && (expected / n - found / n).abs() < 0.03, "{bins:?}");
    }
}

#[test]
fn simulated_rows_have_gaps_rules_and_a_prefix() {
    let simulation = RowSimulation { n_rows: 1000, missing: 0.3, ..RowSimulation::default() };
    let (truths, beliefs) = rows_for(WEATHER, simulation).unwrap();
    assert!(truths.iter().all(|truth| truth.indices()[..2] != [0, 0]));
    let n_missing =
        (0..1000).filter(|&row| beliefs.origin(row, LabelId::new(0)) == BeliefOrigin::Prior).count();
    assert!((230..370).contains(&n_missing), "{n_missing}"); // almost five standard deviations
    assert!((0..1000).all(|row| beliefs.origin(row, LabelId::new(3)) == BeliefOrigin::Prior)); // latent
    let (first, fewer) = rows_for(WEATHER, RowSimulation { n_rows: 10, ..simulation }).unwrap();
    assert_eq!((first[..].to_vec(), fewer), (truths[..10].to_vec(), beliefs.slice(0..10)));
}

#[test]
fn settings_of_simulated_rows_are_checked() {
    let refused = |text, simulation| rows_for(text, simulation).unwrap_err().to_string();
    let default = RowSimulation::default();
    let messages = [
        refused("label a", RowSimulation { strength: -1.0, ..default }),
        refused("label a", RowSimulation { strength: f64::NAN, ..default }),
        refused("label a", RowSimulation { missing: 1.5, ..default }),
        refused("label a", RowSimulation { n_rows: usize::MAX, ..default }),
        refused("label a\ncalibrate a platt 1.2 0", default),
        refused("label a\nrule 1: a\nrule 1 no: !a", default),
    ];
    insta::assert_snapshot!(messages.join("\n"));
}
