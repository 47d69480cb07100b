//! Bootstrap intervals: scores of resampled rows, several samples side by side.

use std::sync::atomic::{AtomicUsize, Ordering};

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::evaluation::{Evaluation, Row};
use super::{CALIBRATION_BINS, Metric, N_METRICS, reliability};

/// Settings of the bootstrap: rows are resampled with replacement and scored again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bootstrap {
    /// The number of replicates.
    pub replicates: usize,
    /// The coverage: the share of replicates whose scores lie in the interval, before it is shifted to the score.
    pub confidence: f64,
    /// Seed of the random numbers.
    pub seed: u64,
}

impl Default for Bootstrap {
    /// 1,000 replicates and 95 % intervals.
    fn default() -> Self {
        Self { replicates: 1000, confidence: 0.95, seed: 1 }
    }
}

/// The intervals of an [`Evaluation`]'s scores.
#[derive(Clone, Debug, PartialEq)]
pub struct Intervals {
    values: [Option<[f64; 2]>; N_METRICS],
}

impl Intervals {
    /// Lower and upper end; `None` if there is no score.
    pub fn get(&self, metric: Metric) -> Option<[f64; 2]> {
        self.values[metric as usize]
    }
}

/// Number of samples that are scored side by side.
const LANES: usize = 16;
/// How often a row is drawn in each of these samples. A row is drawn at most as often as there are rows. Among more than
/// 255 rows, the probability of more than 255 draws is below 1e-500, so that a byte is enough.
type Draws = [u8; LANES];
/// All scores of each of N samples.
type Values<const N: usize> = [[Option<f64>; N_METRICS]; N];

pub(super) fn intervals(
    evaluation: &Evaluation,
    settings: &Bootstrap,
    observe: &(dyn Fn(f64) + Sync),
) -> Intervals {
    let replicates = replicates(evaluation, settings, observe);
    let scores = evaluation.scores();
    let one = |metric: Metric| {
        let values = replicates.iter().filter_map(|values| values[metric as usize]).collect();
        let [low, high] = interval(values, scores.get(metric)?, settings.confidence)?;
        let [least, most] = metric.range();
        Some([low.max(least), high.min(most)])
    };
    Intervals { values: Metric::ALL.map(one) }
}

/// Number of rows of the resamples for the calibration error, as a power of the number of rows.
///
/// The error is a sum of absolute values, most of them near 0. There the usual bootstrap overestimates the variance: the
/// differences in a resample vary by chance around differences that are there by chance already. In smaller resamples the
/// former outweigh the latter (the "m out of n" bootstrap; Bickel, Götze and van Zwet, 1997).
const FEW: f64 = 2.0 / 3.0;

/// All scores of every resample. Calibration errors are scaled, because they are those of fewer rows: they vary as much as
/// those of all rows, but have another mean.
pub(super) fn replicates(
    evaluation: &Evaluation,
    settings: &Bootstrap,
    observe: &(dyn Fn(f64) + Sync),
) -> Vec<[Option<f64>; N_METRICS]> {
    let orders = Orders::new(evaluation);
    let blocks = settings.replicates.div_ceil(LANES);
    let n = evaluation.rows.len();
    let few = (n as f64).powf(FEW).ceil();
    let scale = (few / n.max(1) as f64).sqrt();
    let n_done = AtomicUsize::new(0);
    let block = |block: usize| {
        let draws = draw(n, n, settings.seed, 2 * block as u64);
        let mut values =
            values(evaluation, &orders, &|row| weights(&draws[row], evaluation.rows[row].weight));
        drop(draws);
        let draws = draw(n, few as usize, settings.seed, 2 * block as u64 + 1);
        let errors = calibration_errors(evaluation, &|row| weights(&draws[row], evaluation.rows[row].weight));
        for (values, error) in values.iter_mut().zip(errors) {
            values[Metric::ExpectedCalibrationError as usize] = error.map(|error| scale * error);
        }
        observe((n_done.fetch_add(1, Ordering::Relaxed) + 1) as f64 / blocks as f64);
        values
    };
    let places: Vec<usize> = (0..blocks).collect();
    let at_once = places.chunks(blocks_at_once(n, evaluation.n_labels()));
    let blocks: Vec<Values<LANES>> =
        at_once.flat_map(|places| places.par_iter().map(|&place| block(place)).collect::<Vec<_>>()).collect();
    blocks.as_flattened()[..settings.replicates].to_vec()
}

/// Memory for draws in bytes, however many rows there are.
const DRAWS: usize = 64 << 20;
/// Beyond that, draws may take a byte per row for this many labels.
const LABELS_PER_BYTE: usize = 2;

/// Number of blocks that are drawn side by side. It bounds the memory of machines with many threads; results do not depend
/// on it.
fn blocks_at_once(n_rows: usize, n_labels: usize) -> usize {
    let bytes_per_block = (n_rows * size_of::<Draws>()).max(1);
    (DRAWS.max(n_rows * n_labels / LABELS_PER_BYTE) / bytes_per_block).max(1)
}

/// The interval of a score from those of the resamples: their quantiles, shifted so that their mean is the score.
///
/// Without the shift, the interval of the calibration error would lie above it: resampled rows repeat some rows, and so
/// seem to be calibrated worse.
pub(super) fn interval(mut values: Vec<f64>, score: f64, confidence: f64) -> Option<[f64; 2]> {
    values.sort_by(f64::total_cmp);
    let outside = (1.0 - confidence) / 2.0;
    let shift = score - mean(values.iter().copied())?;
    let [low, high] = [quantile(&values, outside)? + shift, quantile(&values, 1.0 - outside)? + shift];
    Some([low.min(score), high.max(score)])
}

/// How often each row is drawn in each sample of a block, with `n_drawn` draws.
fn draw(n_rows: usize, n_drawn: usize, seed: u64, block: u64) -> Vec<Draws> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(block);
    let mut draws = vec![[0_u8; LANES]; n_rows];
    for lane in 0..LANES {
        for _ in 0..n_drawn {
            let drawn = &mut draws[rng.random_range(0..n_rows)][lane];
            *drawn = drawn.saturating_add(1);
        }
    }
    draws
}

/// The weight of a row in each sample: its own weight, as often as it is drawn.
fn weights(draws: &Draws, weight: f64) -> [f64; LANES] {
    if weight == 1.0 {
        return draws.map(f64::from);
    }
    draws.map(|n| match n {
        // Here the product has the bits of the sum.
        0..=3 => f64::from(n) * weight,
        _ => (0..n).fold(0.0, |sum, _| sum + weight),
    })
}

/// The rows in the order of their log-likelihoods, for medians.
pub(super) struct Orders {
    joint: Vec<u32>,
    labels: Vec<u32>,
}

impl Orders {
    pub(super) fn new(evaluation: &Evaluation) -> Self {
        let rows = &evaluation.rows;
        let ordered = |value: &dyn Fn(&Row) -> Option<f64>| {
            let n_rows = u32::try_from(rows.len()).expect("fewer than 2^32 rows fit into memory");
            let value = |row: u32| value(&rows[row as usize]);
            let mut order: Vec<u32> = (0..n_rows).filter(|&row| value(row).is_some()).collect();
            let value = |row: u32| value(row).unwrap_or_default();
            order.sort_unstable_by(|&a, &b| value(a).total_cmp(&value(b)).then(a.cmp(&b)));
            order
        };
        Self { joint: ordered(&Row::joint), labels: ordered(&|row| Some(row.labels)) }
    }
}

/// All scores of weighted rows. `weights` returns the weight of a row in each sample.
pub(super) fn values<const N: usize>(
    evaluation: &Evaluation,
    orders: &Orders,
    weights: &impl Fn(usize) -> [f64; N],
) -> Values<N> {
    let mean = |value: &dyn Fn(&Row) -> Option<f64>| {
        ratios(evaluation, weights, &|row| value(row).map(|value| [value, 1.0]))
    };
    let share = |hit: bool| f64::from(u8::from(hit));
    let [micro, macro_average] = f1(evaluation, weights);
    let metrics = [
        mean(&|row| row.best_is_right.map(share)),
        mean(&|row| Some(share(row.n_wrong == 0))),
        ratios(evaluation, weights, &|row| Some([row.n_wrong, row.n_known].map(f64::from))),
        mean(&Row::joint),
        medians(&orders.joint, weights, &|row| evaluation.rows[row].joint().unwrap_or_default()),
        mean(&|row| Some(row.labels)),
        medians(&orders.labels, weights, &|row| evaluation.rows[row].labels),
        micro,
        macro_average,
        calibration_errors(evaluation, weights),
    ];
    std::array::from_fn(|lane| metrics.map(|metric| metric[lane]))
}

/// Σ numerator / Σ denominator over the rows that have them.
fn ratios<const N: usize>(
    evaluation: &Evaluation,
    weights: &impl Fn(usize) -> [f64; N],
    of: &dyn Fn(&Row) -> Option<[f64; 2]>,
) -> [Option<f64>; N] {
    let [mut numerators, mut denominators] = [[0.0; N]; 2];
    for (index, row) in evaluation.rows.iter().enumerate() {
        if let Some([numerator, denominator]) = of(row) {
            let weights = weights(index);
            add(&mut numerators, &weights, numerator);
            add(&mut denominators, &weights, denominator);
        }
    }
    std::array::from_fn(|lane| ratio(numerators[lane], denominators[lane]))
}

fn ratio(numerator: f64, denominator: f64) -> Option<f64> {
    (denominator > 0.0).then(|| numerator / denominator)
}

fn add<const N: usize>(sums: &mut [f64; N], weights: &[f64; N], value: f64) {
    for (sum, weight) in sums.iter_mut().zip(weights) {
        *sum += weight * value;
    }
}

/// The value in the middle of the total weight, or the mean of the two beside it. The rows are in the order of their values.
fn medians<const N: usize>(
    ordered: &[u32],
    weights: &impl Fn(usize) -> [f64; N],
    value: &dyn Fn(usize) -> f64,
) -> [Option<f64>; N] {
    let [mut totals, mut below] = [[0.0; N]; 2];
    let ordered = || ordered.iter().map(|&row| row as usize);
    ordered().for_each(|row| add(&mut totals, &weights(row), 1.0));
    let mut middle = [[0.0; N]; 2];
    for row in ordered() {
        let before = below;
        add(&mut below, &weights(row), 1.0);
        for lane in 0..N {
            let half = totals[lane] / 2.0;
            if before[lane] < half && half <= below[lane] {
                middle[0][lane] = value(row);
            }
            if before[lane] <= half && half < below[lane] {
                middle[1][lane] = value(row);
            }
        }
    }
    std::array::from_fn(|lane| (totals[lane] > 0.0).then(|| (middle[0][lane] + middle[1][lane]) / 2.0))
}

/// Micro and macro average of 2 hits / (predicted + actual) over classes.
fn f1<const N: usize>(
    evaluation: &Evaluation,
    weights: &impl Fn(usize) -> [f64; N],
) -> [[Option<f64>; N]; 2] {
    let mut hits = vec![[0.0; N]; evaluation.n_classes];
    let mut counts = hits.clone(); // predicted + actual
    let class = |place: Option<u32>| evaluation.class_of[place? as usize];
    for row in 0..evaluation.rows.len() {
        let weights = weights(row);
        for cell in evaluation.cells.row(row) {
            for class in [class(cell.truth), class(cell.predicted)].into_iter().flatten() {
                add(&mut counts[class], &weights, 1.0);
            }
            if let Some(class) = class(cell.truth).filter(|_| cell.truth == cell.predicted) {
                add(&mut hits[class], &weights, 1.0);
            }
        }
    }
    let micro = std::array::from_fn(|lane| {
        let sum = |counts: &[[f64; N]]| counts.iter().map(|counts| counts[lane]).sum::<f64>();
        ratio(2.0 * sum(&hits), sum(&counts))
    });
    let macro_average = std::array::from_fn(|lane| {
        mean(hits.iter().zip(&counts).filter_map(|(hits, counts)| ratio(2.0 * hits[lane], counts[lane])))
    });
    [micro, macro_average]
}

/// The mean over classes of Σ_bins |Σ (probability − hit)| / known cells.
fn calibration_errors<const N: usize>(
    evaluation: &Evaluation,
    weights: &impl Fn(usize) -> [f64; N],
) -> [Option<f64>; N] {
    let mut gaps = vec![[[0.0; N]; CALIBRATION_BINS]; evaluation.n_classes];
    let mut known = vec![[0.0; N]; evaluation.n_labels()];
    for row in 0..evaluation.rows.len() {
        let weights = weights(row);
        for label in evaluation.forecast_labels(row) {
            add(&mut known[label], &weights, 1.0);
        }
        for (class, probability, hit) in evaluation.forecasts(row) {
            let bin = reliability::bin(probability, CALIBRATION_BINS);
            add(&mut gaps[class][bin], &weights, probability - f64::from(u8::from(hit)));
        }
    }
    std::array::from_fn(|lane| {
        let error = |gaps: &[[f64; N]; CALIBRATION_BINS]| gaps.iter().map(|gap| gap[lane].abs()).sum::<f64>();
        mean(
            gaps.iter()
                .zip(&evaluation.label_of)
                .filter_map(|(gaps, &label)| ratio(error(gaps), known[label][lane])),
        )
    })
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, n) = values.fold((0.0, 0), |(sum, n), value| (sum + value, n + 1));
    (n > 0).then(|| sum / f64::from(n))
}

/// The quantile of sorted values, with linear interpolation; `None` if there are no values.
fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let position = share * sorted.len().checked_sub(1)? as f64;
    let (below, above) = (sorted[position.floor() as usize], sorted[position.ceil() as usize]);
    Some(below + (above - below) * position.fract())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_count_rows_as_often_as_they_are_drawn() {
        let values = [-2.0, -1.0, -3.0];
        let median = |weights: [f64; 3]| medians(&[2, 0, 1], &|row| [weights[row]], &|row| values[row])[0];
        assert_eq!(median([1.0, 1.0, 1.0]), Some(-2.0));
        assert_eq!(median([1.0, 1.0, 0.0]), Some(-1.5));
        assert_eq!(median([0.0, 0.0, 3.0]), Some(-3.0));
        assert_eq!(median([1.0, 2.0, 1.0]), Some(-1.5));
        assert_eq!(median([0.25, 0.5, 0.25]), Some(-1.5));
        assert_eq!(median([0.25, 0.75, 0.25]), Some(-1.0));
        assert_eq!(medians(&[], &|_| [1.0], &|_| 0.0)[0], None);
    }

    #[test]
    fn samples_are_as_large_as_what_they_are_drawn_from() {
        let draws = draw(100, 100, 7, 3);
        for lane in 0..LANES {
            assert_eq!(draws.iter().map(|draws| u32::from(draws[lane])).sum::<u32>(), 100);
        }
        assert_eq!(draws, draw(100, 100, 7, 3));
        assert_ne!(draws, draw(100, 100, 7, 4));
        assert_ne!(draws, draw(100, 100, 8, 3));
        assert!(draw(0, 0, 7, 3).is_empty());
    }

    #[test]
    fn a_weight_counts_as_often_as_its_row_is_drawn() {
        let draws: Draws = std::array::from_fn(|lane| lane as u8);
        for weight in [1.0, 0.1, 2.5, 1e15 / 3.0] {
            let expected = draws.map(|n| (0..n).fold(0.0, |sum, _| sum + weight));
            assert_eq!(weights(&draws, weight), expected, "{weight}");
        }
    }

    #[test]
    fn draws_take_a_bounded_share_of_the_memory() {
        assert_eq!(blocks_at_once(1_000_000, 100), 4);
        assert_eq!(blocks_at_once(10_000_000, 100), 3);
        assert_eq!(blocks_at_once(10_000_000, 3), 1);
        assert_eq!(blocks_at_once(0, 3), DRAWS);
        assert!(blocks_at_once(60_000, 3) >= 63, "all blocks of 1,000 replicates");
    }

    #[test]
    fn a_row_takes_40_bytes_and_16_for_each_block_of_samples() {
        assert_eq!((size_of::<Row>(), size_of::<Draws>()), (40, 16));
    }
}
