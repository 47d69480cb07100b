//! The objective against central differences and enumeration, and the counts of candidates against samples.

use std::collections::BTreeSet;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::candidates::{Candidate, Search, ShortList};
use super::data::{Data, Fitted};
use super::examples::Examples;
use super::feature::{Feature, Literal};
use super::fisher::{Added, Fisher, Matrix};
use super::gain::Counts;
use super::prices::Prices;
use super::problem::{Compiled, Problem};
use super::sheet::Sheet;
use crate::belief::{BeliefMatrix, Normalize};
use crate::infer::Limits;
use crate::infer::enumeration::Enumeration;
use crate::label::LabelId;
use crate::model::Model;
use crate::truth::Truth;

/// Expert rules of all kinds beside labels of two to four categories.
const BASE: &str = "
label a
label b
label c
label d
label e: x, y, z
label f: p, q, r, s
label g latent
rule 0.8: a -> b
rule 0.3: c <-> e=x
noisy_or 0.9: a 0.3, f=p 0.2
rule 1: d -> !(e=z)
rule 0.7: at_most 2 of {a, b, c, d}
";

fn random_rows(model: &Model, rng: &mut ChaCha8Rng) -> Examples {
    let (mut beliefs, mut truths) = (BeliefMatrix::new(model), Vec::new());
    for row in 0..30 {
        let mut cells = Vec::new();
        let mut truth = Vec::new();
        for label in model.labels() {
            let n = label.n_categories();
            let is_given = label.classifier().is_some() && !rng.random_bool(0.1);
            let values: Vec<f64> = (0..n).map(|_| rng.random_range(0.01..1.0)).collect();
            let total: f64 = values.iter().sum();
            cells.extend(values.iter().map(|value| is_given.then_some(value / total)));
            truth.push((row < 10 || rng.random_bool(0.6)).then(|| rng.random_range(0..n)));
        }
        if truth[3] == Some(0) && truth[4] == Some(2) {
            truth[4] = Some(0); // the hard rule
        }
        beliefs.push(&cells, Normalize::Always).unwrap();
        truths.push(Truth::from_indices(truth));
    }
    let weights = (0..30).map(|row| [1.0, 2.0, 0.5][row % 3]).collect();
    Examples::new(beliefs, truths).unwrap().with_weights(weights).unwrap()
}

fn random_feature(model: &Model, rng: &mut ChaCha8Rng) -> Feature {
    match rng.random_range(0..6) {
        0 => Feature::Fewer(rng.random_range(1..3)),
        1 => Feature::More(rng.random_range(1..3)),
        _ => {
            let mut labels: Vec<usize> = (0..model.labels().len()).collect();
            while labels.len() > rng.random_range(1..5) {
                labels.remove(rng.random_range(0..labels.len()));
            }
            let literal = |label: usize, rng: &mut ChaCha8Rng| {
                let n = model.labels()[label].n_categories();
                let mut categories: Vec<usize> = (0..n).filter(|_| rng.random_bool(0.5)).collect();
                if categories.is_empty() || categories.len() == n {
                    categories = vec![rng.random_range(0..n)];
                }
                Literal { label, categories }
            };
            Feature::Conjunction(labels.into_iter().map(|label| literal(label, rng)).collect())
        }
    }
}

/// Calibrators of all kinds.
fn kinds(seed: u64) -> [Fitted; 7] {
    let usual = Fitted::Usual;
    let last = if seed.is_multiple_of(2) { Fitted::Temperature } else { Fitted::Dirichlet };
    [usual, usual, Fitted::Temperature, Fitted::Dirichlet, usual, last, usual]
}

/// A problem with random rows, features and parameters.
fn random_problem(seed: u64) -> (Problem, Examples, Vec<Feature>, Vec<f64>) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let model = Model::parse(BASE).unwrap();
    let rows = random_rows(&model, &mut rng);
    let data = Data::new(&model, &rows, &kinds(seed)).unwrap();
    let problem = Problem::new(&model, data, vec![0, 1, 2], Limits::default()).unwrap();
    let features: Vec<Feature> = (0..5).map(|_| random_feature(&model, &mut rng)).collect();
    let mut parameters = [problem.data.identity(), problem.free_weights()].concat();
    parameters.iter_mut().for_each(|parameter| *parameter += rng.random_range(-0.5..0.5));
    parameters.extend(features.iter().map(|_| rng.random_range(0.0..3.0)));
    (problem, rows, features, parameters)
}

#[test]
fn gradients_agree_with_central_differences() {
    for seed in 0..12 {
        let (problem, _, features, parameters) = random_problem(seed);
        let broken: Vec<f64> = features.iter().map(|feature| problem.broken(feature)).collect();
        let mut compiled = problem.compile(&features, &broken).unwrap();
        let point = problem.point(&mut compiled, &parameters);
        for place in 0..parameters.len() {
            let mut value = |step: f64| {
                let mut at = parameters.clone();
                at[place] += step;
                problem.point(&mut compiled, &at).value
            };
            let difference = (value(1e-5) - value(-1e-5)) / 2e-5;
            let gradient = point.gradient[place];
            assert!(
                (gradient - difference).abs() < 1e-5 * (1.0 + gradient.abs()),
                "seed {seed}, parameter {place}: {gradient} is not {difference}"
            );
        }
    }
}

#[test]
fn likelihoods_agree_with_enumeration() {
    for seed in 20..28 {
        let (problem, rows, features, parameters) = random_problem(seed);
        let broken: Vec<f64> = features.iter().map(|feature| problem.broken(feature)).collect();
        let mut compiled = problem.compile(&features, &broken).unwrap();
        let found = problem.point(&mut compiled, &parameters).log_likelihood;
        // The model with the same parameters, by enumeration.
        let mut builder = problem.model.without_calibrators().edit().retain_rules(|_| false);
        let n_calibration = problem.data.n_calibration_parameters;
        for (index, rule) in problem.model.rules().iter().enumerate() {
            let p = match problem.free_rules.iter().position(|&free| free == index) {
                Some(place) => 1.0 / (1.0 + (-parameters[n_calibration + place]).exp()),
                None => rule.probability(),
            };
            builder = builder.add_rule(rule.clone().with_probability(p));
        }
        for (feature, weight) in features.iter().zip(&parameters[problem.n_fixed()..]) {
            let p = 1.0 / (1.0 + (-weight).exp());
            builder = builder.add_rule(feature.rule(&problem.model, &problem.counted, p));
        }
        let oracle = Enumeration::compile(&builder.build().unwrap()).unwrap();
        assert_eq!(problem.data.n_rows(), rows.n_rows());
        let mut expected = 0.0;
        for row in 0..rows.n_rows() {
            let values = problem.values(&parameters, &[row]);
            let clamped = problem.clamped(&values, &[row]);
            let log = |values: &[f64]| oracle.infer_row(values).unwrap().log_evidence();
            expected += rows.weights()[row] * (log(&clamped) - log(&values));
        }
        assert!((found - expected).abs() < 1e-8, "seed {seed}: {found} is not {expected}");
    }
}

/// Rows of which all truths are known, with a compiled model.
fn complete_problem(seed: u64) -> (Problem, Vec<Feature>, Vec<f64>, Compiled) {
    let (problem, rows, features, parameters) = random_problem(seed);
    let truths = (0..rows.n_rows())
        .map(|row| {
            let truth = rows.truth(row);
            let known = |label: LabelId| truth.category(label).map_or(0, |category| category.index());
            let known: Vec<_> = problem.model.label_ids().map(|label| Some(known(label))).collect();
            Truth::from_indices(known)
        })
        .collect();
    let rows = Examples::new(rows.to_beliefs(), truths).unwrap();
    let data = Data::new(&problem.model, &rows, &kinds(seed)).unwrap();
    let problem = Problem::new(&problem.model, data, vec![0, 1, 2], Limits::default()).unwrap();
    let broken: Vec<f64> = features.iter().map(|feature| problem.broken(feature)).collect();
    let compiled = problem.compile(&features, &broken).unwrap();
    (problem, features, parameters, compiled)
}

#[test]
fn the_fisher_information_agrees_with_differences_of_gradients() {
    for seed in 40..44 {
        let (problem, features, parameters, mut compiled) = complete_problem(seed);
        // Estimates of many sheets of samples are averaged, because there are only 30 rows.
        const SHEETS: u64 = 60;
        let n = parameters.len();
        let mut estimate = vec![vec![0.0; n]; n];
        for stream in 0..SHEETS {
            let sheet = Sheet::draw(&problem, &mut compiled, &parameters, seed, stream);
            let fisher = Fisher::new(&problem, &sheet, &features[..3]).unwrap();
            let added: Vec<Added<'_>> =
                features[3..].iter().map(|feature| Added { feature, variance_ratio: 1.0 }).collect();
            for (sums, row) in estimate.iter_mut().zip(fisher.with(&added).rows) {
                sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += value / SHEETS as f64);
            }
        }
        let base = problem.data.n_calibration_parameters..problem.n_fixed();
        for place in (0..n).filter(|place| !base.contains(place)) {
            let mut gradient = |step: f64| {
                let mut at = parameters.clone();
                at[place] += step;
                problem.point(&mut compiled, &at).gradient
            };
            let (above, below) = (gradient(1e-4), gradient(-1e-4));
            for other in (0..n).filter(|other| !base.contains(other)) {
                let expected = (above[other] - below[other]) / 2e-4;
                let scale = (estimate[place][place] * estimate[other][other]).sqrt();
                let found = estimate[place][other];
                assert!(
                    (found - expected).abs() < 0.1 * scale,
                    "seed {seed}, parameters {place} and {other}: {found} is not {expected}"
                );
            }
        }
    }
}

#[test]
fn a_factored_matrix_solves_its_equations() {
    let matrix = Matrix { rows: vec![vec![4.0, 1.0, 2.0], vec![1.0, 3.0, 0.5], vec![2.0, 0.5, 0.0]] };
    let factor = matrix.factor(&[true, false, true], &[9.0, 9.0, 5.0]);
    let mut b = [6.0, 7.0, 8.0];
    factor.solve(&mut b);
    // 4 x + 2 z = 6 and 2 x + 5 z = 8, where 5 stands for the unknown diagonal.
    assert!((b[0] - 0.875).abs() < 1e-12 && b[1] == 0.0 && (b[2] - 1.25).abs() < 1e-12, "{b:?}");
}

fn search<'a>(prices: &'a Prices, tried: &'a BTreeSet<Feature>) -> Search<'a> {
    Search { prices, parsimony: 0.01, unary: &[], learned: &[], tried, n_sure: 0 }
}

#[test]
fn candidates_have_the_gains_of_their_counts() {
    for seed in 60..66 {
        let (problem, features, parameters, mut compiled) = complete_problem(seed);
        let sizes: Vec<usize> = problem.data.blocks.iter().map(|block| block.len()).collect();
        let prices = Prices::new(&sizes, &[], 100.0);
        let sheet = Sheet::draw(&problem, &mut compiled, &parameters, seed, 0);
        let tried = features.iter().cloned().collect();
        let mut short_list = ShortList::default();
        let search = search(&prices, &tried);
        let found = sheet.candidates(&search, &mut short_list);
        assert!(found.len() > 20, "{} candidates", found.len());
        for candidate in &found {
            // Each violation is counted sample by sample.
            let mut counts = Counts::default();
            for row in 0..sheet.n_rows() {
                let n = |words: &[Vec<u32>]| sheet.violations(&candidate.feature, words, row).count_ones();
                counts.add(sheet.weights[row], n(&sheet.data), n(&sheet.model));
            }
            let gain = counts.gain();
            assert!(
                (candidate.gain - gain).abs() < 1e-9,
                "{:?}: {} is not {gain}",
                candidate.feature,
                candidate.gain
            );
        }
        // The short list has the same candidates while the model stays the same.
        let again = sheet.candidates(&search, &mut short_list);
        let features = |list: &[Candidate]| list.iter().map(|it| it.feature.clone()).collect::<Vec<_>>();
        assert_eq!(features(&found), features(&again));
    }
}

#[test]
fn no_literal_of_a_candidate_adds_little() {
    let mut n_long = 0;
    for seed in 60..80 {
        let (problem, _, parameters, mut compiled) = complete_problem(seed);
        let sizes: Vec<usize> = problem.data.blocks.iter().map(|block| block.len()).collect();
        let prices = Prices::new(&sizes, &[], 100.0);
        let sheet = Sheet::draw(&problem, &mut compiled, &parameters, seed, 0);
        let tried = BTreeSet::new();
        let found = sheet.candidates(&search(&prices, &tried), &mut ShortList::default());
        for candidate in &found {
            let Feature::Conjunction(literals) = &candidate.feature else { continue };
            for place in (0..literals.len()).filter(|_| literals.len() > 2) {
                let mut others = literals.clone();
                others.remove(place);
                let shorter = Feature::Conjunction(others);
                let net = sheet.counts_of(&shorter).gain() - 0.01 * prices.of(&shorter);
                assert!(net < 0.8 * candidate.net(), "{:?} without literal {place}", candidate.feature);
                n_long += 1;
            }
        }
    }
    assert!(n_long > 20, "{n_long}");
}
