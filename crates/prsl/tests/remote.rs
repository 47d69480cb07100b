//! Sums over rows that are elsewhere: the same bits for any split of the rows, and for any order of merging.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use prsl::learn::{
    Calibrating, ChunkSums, ChunkWorker, Examples, GradientSum, Learner, Progress, RemoteRows, ScoreSum,
    ViolationSum, chunk_of, gradient, n_chunks,
};
use prsl::{Assignment, BeliefMatrix, Error, Limits, Model, Result, Rule, Truth};
use prsl_testkit::planted::Planted;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Workers that share the chunks of some rows: each question goes to other workers, in another order.
struct Workers {
    chunks: Vec<Vec<u8>>,
    workers: Vec<ChunkWorker>,
    rng: ChaCha8Rng,
    n_asked: Arc<Mutex<usize>>,
    fails_at: usize,
}

impl Workers {
    fn new(rows: &Examples, keys: &[String], n_workers: usize, seed: u64) -> Self {
        let n_chunks = n_chunks(keys.len() as u64);
        let chunk = |number: u32| {
            let mut own: Vec<usize> =
                (0..keys.len()).filter(|&row| chunk_of(&keys[row], n_chunks) == number).collect();
            own.sort_by_key(|&row| &keys[row]);
            rows.select(&own).to_bytes(number)
        };
        Self {
            chunks: (0..n_chunks).map(chunk).collect(),
            // A small worker keeps no rows.
            workers: (0..n_workers).map(|at| ChunkWorker::new(if at == 0 { 0 } else { 1 << 30 })).collect(),
            rng: ChaCha8Rng::seed_from_u64(seed),
            n_asked: Arc::default(),
            fails_at: usize::MAX,
        }
    }
}

impl RemoteRows for Workers {
    fn ask(&mut self, question: &[u8]) -> Result<Vec<Vec<u8>>> {
        let mut n_asked = self.n_asked.lock().unwrap();
        *n_asked += 1;
        if *n_asked == self.fails_at {
            return Err(Error::Examples { problem: "the cluster is gone".to_owned() });
        }
        self.chunks.shuffle(&mut self.rng);
        let n_workers = self.workers.len();
        let answer =
            |chunk: &Vec<u8>| self.workers[self.rng.random_range(0..n_workers)].answer(question, chunk);
        self.chunks.iter().map(answer).collect()
    }
}

/// Rows with planted rules, unknown truths and weights, and their keys.
fn planted(n_rows: usize, missing: f64) -> (Examples, Vec<String>) {
    let (_, rows) = Planted { n_labels: 6, n_wide: 2, n_rules: 3, n_rows, missing, seed: 3 }.draw();
    let weights = (0..n_rows).map(|row| [1.0, 2.0, 0.5, 0.0][row % 4]).collect();
    let keys = (0..n_rows).map(|row| format!("row {}", row * 7919 % n_rows)).collect();
    (rows.with_weights(weights).unwrap(), keys)
}

fn learn_remotely(
    learner: &Learner,
    base: &Model,
    workers: Workers,
    progress: Progress,
) -> Result<prsl::learn::Learned> {
    learner.learn_remote(base, Box::new(workers), progress, &mut |_| ControlFlow::Continue(()))
}

#[test]
fn a_model_learned_from_remote_rows_has_the_same_bits() {
    // More rows than candidates are scored on, so that they are sampled.
    for (n_rows, missing, calibrate) in [
        (25_000, 0.0, Calibrating::Joint),
        (9_000, 0.2, Calibrating::Joint),
        (3_000, 0.1, Calibrating::Given),
    ] {
        let (rows, keys) = planted(n_rows, missing);
        let base = rows.model().edit().rule("l2 -> l3", 0.7).build().unwrap();
        let learner = Learner { calibrate, learn_probabilities: true, ..Learner::default() };
        let here = learner.learn(&base, &rows.by_keys(&keys).unwrap()).unwrap();
        let workers = Workers::new(&rows, &keys, 3, 5);
        let there = learn_remotely(&learner, &base, workers, Progress::default()).unwrap();
        assert!(here.model.rules().len() > base.rules().len());
        assert_eq!(here.model.to_string(), there.model.to_string());
        assert_eq!(here.log_likelihood.to_bits(), there.log_likelihood.to_bits());
        assert_eq!(here.beliefs_alone.to_bits(), there.beliefs_alone.to_bits());
        assert_eq!((here.path, here.n_impossible), (there.path, there.n_impossible));
    }
}

#[test]
fn a_failure_ends_learning_and_a_checkpoint_continues_it() {
    let (rows, keys) = planted(3_000, 0.0);
    let base = rows.model().clone();
    let learner = Learner { typical: false, ..Learner::default() };
    let expected =
        learn_remotely(&learner, &base, Workers::new(&rows, &keys, 2, 1), Progress::default()).unwrap();
    for fails_at in [1, 2, 3, 5, 30, 60] {
        let mut workers = Workers::new(&rows, &keys, 2, 1);
        workers.fails_at = fails_at;
        let mut last = Progress::default();
        let mut observe = |progress: &Progress| {
            if progress.n_rules() > last.n_rules() {
                last = progress.clone();
            }
            ControlFlow::Continue(())
        };
        let failed = learner.learn_remote(&base, Box::new(workers), Progress::default(), &mut observe);
        assert_eq!(failed.unwrap_err().to_string(), "the cluster is gone");
        let continued = learn_remotely(&learner, &base, Workers::new(&rows, &keys, 2, 2), last).unwrap();
        assert_eq!(continued.model.to_string(), expected.model.to_string());
    }
    // A checkpoint of other rows is refused.
    let mut progress = Progress::default();
    let workers = Box::new(Workers::new(&rows, &keys, 2, 1));
    let mut keep = |it: &Progress| {
        progress = it.clone();
        ControlFlow::Break(())
    };
    learner.learn_remote(&base, workers, Progress::default(), &mut keep).unwrap();
    let (others, keys) = planted(2_999, 0.0);
    let refused = learn_remotely(&learner, &base, Workers::new(&others, &keys, 2, 1), progress);
    assert!(refused.unwrap_err().to_string().starts_with("the checkpoint belongs to other rows"));
}

#[test]
fn calibrators_of_their_own_are_refused() {
    let (rows, keys) = planted(200, 0.0);
    let learner = Learner {
        calibrate: Calibrating::Alone(prsl::calibrate::CalibrationMethod::Platt),
        ..Learner::default()
    };
    let base = rows.model().clone();
    let refused = learn_remotely(&learner, &base, Workers::new(&rows, &keys, 1, 1), Progress::default());
    assert!(refused.unwrap_err().to_string().contains("one machine"));
}

/// Rows in chunks of a few, each as a chunk of its own.
fn small_chunks(n_rows: usize) -> (Model, Vec<Examples>) {
    let (planted, rows) =
        Planted { n_labels: 5, n_wide: 1, n_rules: 3, n_rows, missing: 0.3, seed: 9 }.draw();
    let builder = rows.model().edit();
    let model = planted.rules().iter().fold(builder, |builder, rule| builder.add_rule(rule.clone()));
    let model = model.build().unwrap();
    let all: Vec<usize> = (0..n_rows).collect();
    let chunks =
        all.chunks(7).zip(0..).map(|(rows_of, number)| rows.select(rows_of).as_chunk(number)).collect();
    (model, chunks)
}

#[test]
fn gradients_and_scores_merge_in_any_order() {
    let (model, chunks) = small_chunks(100);
    let gradients: Vec<GradientSum> =
        chunks.iter().map(|rows| gradient(&model, rows, Limits::default()).unwrap()).collect();
    let scores: Vec<ScoreSum> =
        chunks.iter().map(|rows| ScoreSum::of(&model, rows, Limits::default()).unwrap()).collect();
    let violations: Vec<ViolationSum> = chunks
        .iter()
        .map(|rows| ViolationSum::of(&model, &model, rows, Limits::default()).unwrap())
        .collect();
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut found = Vec::new();
    for _ in 0..10 {
        let (mut trees, mut others, mut counts) = (gradients.clone(), scores.clone(), violations.clone());
        while trees.len() > 1 {
            let part = trees.swap_remove(rng.random_range(0..trees.len()));
            let at = rng.random_range(0..trees.len());
            trees[at].merge(GradientSum::from_bytes(&part.to_bytes()).unwrap()).unwrap();
            let part = others.swap_remove(rng.random_range(0..others.len()));
            let at = rng.random_range(0..others.len());
            others[at].merge(ScoreSum::from_bytes(&part.to_bytes()).unwrap()).unwrap();
            let part = counts.swap_remove(rng.random_range(0..counts.len()));
            let at = rng.random_range(0..counts.len());
            counts[at].merge(ViolationSum::from_bytes(&part.to_bytes()).unwrap()).unwrap();
        }
        let (gradient, score) = (&trees[0], &others[0]);
        let bits: Vec<u64> = gradient.derivatives().iter().map(|slope| slope.to_bits()).collect();
        let log_likelihood = gradient.log_likelihood().to_bits();
        found.push((gradient.to_bytes(), bits, log_likelihood, score.to_bytes(), counts[0].to_bytes()));
    }
    assert!(found.windows(2).all(|pair| pair[0] == pair[1]));
    let mut twice = gradients[0].clone();
    assert!(twice.merge(gradients[0].clone()).unwrap_err().to_string().contains("chunk 0 is summed twice"));
}

/// The probability of a violation, and of anything, among the assignments that agree with a truth.
fn enumerated(model: &Model, beliefs: &BeliefMatrix, rule: &Rule, truth: &Truth) -> f64 {
    let sizes: Vec<usize> = model.labels().iter().map(|label| label.n_categories()).collect();
    let [mut broken, mut all] = [0.0; 2];
    for number in 0..sizes.iter().product() {
        let digit = |rest: &mut usize, size: &usize| {
            let digit = *rest % size;
            *rest /= size;
            Some(digit)
        };
        let indices: Vec<usize> = sizes.iter().scan(number, digit).collect();
        if truth.known().all(|(label, category)| indices[label.index()] == category.index()) {
            let assignment = Assignment::from_indices(indices);
            let weight = model.log_weight(&beliefs.row(0), &assignment).exp();
            let holds = rule.formula().unwrap().holds(&assignment);
            all += weight;
            broken += if holds == (rule.probability() < 0.5) { weight } else { 0.0 };
        }
    }
    broken / all
}

#[test]
fn violations_agree_with_enumeration() {
    let (model, chunks) = small_chunks(40);
    let [mut base, mut candidates] = [0, 1].map(|_| model.edit().retain_rules(|_| false));
    for (place, rule) in model.rules().iter().enumerate() {
        match place {
            0 => base = base.add_rule(rule.clone()),
            1 => candidates = candidates.add_rule(rule.clone().with_probability(0.3)),
            _ => candidates = candidates.add_rule(rule.clone()),
        }
    }
    let (base, candidates) = (base.build().unwrap(), candidates.build().unwrap());
    let mut expected = vec![[0.0; 2]; candidates.rules().len()];
    let mut sums = Vec::new();
    for rows in &chunks {
        sums.push(ViolationSum::of(&base, &candidates, rows, Limits::default()).unwrap());
        for row in 0..rows.n_rows() {
            let (beliefs, truth) = (rows.beliefs_of(row..row + 1), rows.truth(row));
            for (rule, [broken, free]) in candidates.rules().iter().zip(&mut expected) {
                *broken += enumerated(&base, &beliefs, rule, &truth);
                *free += enumerated(&base, &beliefs, rule, &Truth::unknown(base.labels().len()));
            }
        }
    }
    let sum = sums.into_iter().reduce(|mut sum, other| sum.merge(other).map(|()| sum).unwrap()).unwrap();
    assert_eq!(sum.n_rows(), 40);
    for ((found, free), wanted) in sum.broken().iter().zip(sum.expected()).zip(&expected) {
        assert!(
            (found - wanted[0]).abs() < 1e-9 && (free - wanted[1]).abs() < 1e-9,
            "{found} {free} {wanted:?}"
        );
    }
    let other = Model::parse("label a").unwrap();
    let refused = ViolationSum::of(&base, &other, &chunks[0], Limits::default()).unwrap_err();
    assert!(refused.to_string().contains("other labels"), "{refused}");
}

#[test]
fn the_public_gradient_agrees_with_central_differences() {
    let (model, chunks) = small_chunks(60);
    let sum = |model: &Model| {
        let mut sums = chunks.iter().map(|rows| gradient(model, rows, Limits::default()).unwrap());
        let mut sum = sums.next().unwrap();
        sums.for_each(|part| sum.merge(part).unwrap());
        sum
    };
    let shifted = |place: usize, step: f64| {
        let mut builder = model.edit().retain_rules(|_| false);
        for (at, rule) in model.rules().iter().enumerate() {
            let p = rule.probability();
            let weight = (p / (1.0 - p)).ln() + if at == place { step } else { 0.0 };
            builder = builder.add_rule(rule.clone().with_probability(1.0 / (1.0 + (-weight).exp())));
        }
        sum(&builder.build().unwrap()).log_likelihood()
    };
    let derivatives = sum(&model).derivatives();
    assert!(derivatives.iter().any(|slope| slope.abs() > 0.1), "{derivatives:?}");
    for (place, slope) in derivatives.iter().enumerate() {
        let difference = (shifted(place, 1e-5) - shifted(place, -1e-5)) / 2e-5;
        assert!(
            (slope - difference).abs() < 1e-5 * (1.0 + slope.abs()),
            "{place}: {slope} is not {difference}"
        );
    }
}

proptest! {
    #[test]
    fn sums_survive_their_byte_form(parts in prop::collection::btree_map(any::<u32>(), prop::array::uniform3(any::<u64>()), 0..6)) {
        let mut sums = ChunkSums::new(3);
        for (chunk, bits) in parts {
            sums.merge(ChunkSums::of(chunk, bits.map(f64::from_bits).to_vec())).unwrap();
        }
        prop_assert_eq!(ChunkSums::from_bytes(&sums.to_bytes()).unwrap().to_bytes(), sums.to_bytes());
    }

    #[test]
    fn damaged_bytes_are_refused_or_read(mut bytes in prop::collection::vec(any::<u8>(), 0..200), at in 0_usize..200, prefix in any::<bool>()) {
        // Neither panics, whatever the bytes are. Rows have a checksum, so that no damaged ones are read.
        if prefix {
            bytes.splice(..0, *b"prslsum1");
        }
        let _ = ChunkSums::from_bytes(&bytes);
        let (rows, _) = planted(3, 0.3);
        prop_assert!(Examples::from_bytes(&bytes, rows.model()).is_err());
        let mut good = rows.to_bytes(4);
        let at = 12 + at % (good.len() - 12);
        good[at] ^= 1;
        prop_assert!(Examples::from_bytes(&good, rows.model()).is_err());
        prop_assert!(Examples::from_bytes(&good[..at], rows.model()).is_err());
    }
}
