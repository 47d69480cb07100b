//! The beliefs of three sensors during a worker's shift: the data of the demo.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The true categories of activity, feet and hands, as positions.
const SHIFT: [[usize; 3]; 12] = [
    [0, 0, 2],
    [0, 0, 1],
    [1, 1, 1],
    [1, 1, 2],
    [2, 1, 0],
    [2, 1, 0],
    [1, 1, 1],
    [0, 0, 2],
    [0, 0, 1],
    [2, 1, 0],
    [1, 1, 2],
    [0, 0, 2],
];
/// The number of rows.
pub const N_ROWS: u64 = SHIFT.len() as u64;
/// Number of categories of each label.
const CATEGORIES: [usize; 3] = [3, 2, 3];
/// Log weight of the truth in each sensor's belief, before noise.
const TRUST: [f64; 3] = [1.5, 12.0, 5.0];
/// Half the width of the uniform noise on the log weight.
const NOISE: [f64; 3] = [0.9, 0.5, 0.5];
const SEED: u64 = 7;
/// The row without a belief of the shoe sensor.
const SILENT: usize = 6;
/// A colleague noted `walking` here, while the shoe sensor is sure that the worker stood.
const CONTRADICTION: usize = 8;

const HEADER: &str = "activity,activity=walking,activity=normal,activity=overhead,feet=gait,feet=standing,\
hands=high,hands=centered,hands=low\n";

/// The table of beliefs as CSV.
pub fn table() -> String {
    let mut random = ChaCha8Rng::seed_from_u64(SEED);
    let mut text = HEADER.to_owned();
    for (index, truth) in SHIFT.iter().enumerate() {
        let mut beliefs = [0, 1, 2].map(|label| belief(&mut random, label, truth[label]).join(","));
        let mut observed = "";
        if index == SILENT {
            beliefs[1] = ",".to_owned();
        }
        if index == CONTRADICTION {
            (observed, beliefs[0], beliefs[1]) = ("walking", ",,".to_owned(), "0,1".to_owned());
        }
        text.push_str(&format!("{observed},{}\n", beliefs.join(",")));
    }
    text
}

/// A sensor's belief in whole percents.
fn belief(random: &mut ChaCha8Rng, label: usize, truth: usize) -> Vec<String> {
    let weigh = |category: usize| {
        let noise = NOISE[label] * (2.0 * random.random::<f64>() - 1.0);
        noise.exp() * if category == truth { TRUST[label] } else { 1.0 }
    };
    let weights: Vec<f64> = (0..CATEGORIES[label]).map(weigh).collect();
    let sum: f64 = weights.iter().sum();
    let mut percents: Vec<u32> = weights.iter().map(|weight| (100.0 * weight / sum).round() as u32).collect();
    let others: u32 = (0..percents.len()).filter(|&category| category != truth).map(|c| percents[c]).sum();
    percents[truth] = 100 - others;
    percents.into_iter().map(|percent| (f64::from(percent) / 100.0).to_string()).collect()
}
