//! Typical combinations: label sets that occur more often than the rules say.
//!
//! A label set s that occurs N times where E are expected gets the weight exp(a + b ln(N / E)), b >= 0. Two parameters
//! serve all label sets. A row's own occurrence is left out of N, so that rare sets do not explain themselves.
//!
//! Label sets are counted in complete rows. The two parameters are fitted to all rows, because complete rows may be few.
//! With S(y) = 1 + Σₛ wₛ [y = s], the likelihood of what is known of a row, K, is multiplied by
//!
//! ```text
//! (1 + Σ over s that agree with K of wₛ P(s | x) / P(K | x)) / (1 + Σₛ wₛ P(s | x))                        (1)
//! ```
//!
//! If all labels are known, the numerator is 1 + w of the row's own label set.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use rayon::prelude::*;

use super::data::Known;
use super::fit::{Evaluation, minimize};
use super::problem::{Compiled, Problem};
use super::question::Question;
use crate::assignment::Assignment;
use crate::infer::expectations::CHUNK;

/// Maximum number of probabilities of combinations in rows. Beyond it the rarest combinations are left out.
const MAX_CELLS: usize = 1 << 24;
/// Maximum number of rows that the two parameters are fitted to.
const MAX_ROWS: usize = 20_000;
/// Smallest curvature of the two parameters, which keeps steps finite.
const MIN_CURVATURE: f64 = 1e-3;
/// Largest magnitude of the two parameters.
const MAX_PARAMETER: f64 = 20.0;

/// Combinations with their weights.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Combinations {
    pub(crate) list: Vec<(Vec<usize>, f64)>,
    /// Gain in log-likelihood, in nats.
    pub(crate) gain: f64,
}

/// One label set.
struct Entry {
    categories: Vec<usize>,
    count: f64,
    expected: f64,
}

/// Label sets with their probability in every row.
struct Table {
    entries: Vec<Entry>,
    /// Row by row: P(s | x) by the rules.
    probabilities: Vec<f64>,
    /// Row by row: what is known.
    known: Vec<Given>,
    weights: Vec<f64>,
}

/// What is known of a row.
enum Given {
    /// All labels: the position of the row's label set, if it is one of the entries.
    Own(Option<usize>),
    /// Some labels: the entries that agree with them, and P(s | x) / P(K | x) of each.
    Agreeing(Vec<(usize, f64)>),
}

/// The value of the two parameters.
struct Value {
    value: f64,
    gradient: [f64; 2],
    curvature: [f64; 2],
}

impl Evaluation for Value {
    fn value(&self) -> f64 {
        self.value
    }
    fn gradient(&self) -> &[f64] {
        &self.gradient
    }
    fn curvature(&self) -> &[f64] {
        &self.curvature
    }
}

/// Learns combinations beside fitted rules.
pub(crate) fn learn(
    problem: &Problem,
    compiled: &mut Compiled,
    parameters: &[f64],
    seed: u64,
) -> Combinations {
    let Some(table) = Table::new(problem, compiled, parameters, seed) else {
        return Combinations::default();
    };
    let bounds = [(-MAX_PARAMETER, MAX_PARAMETER), (0.0, MAX_PARAMETER)];
    let (at, best) =
        minimize(vec![-1.0, 1.0], &bounds, None, 1e-9, |at| table.value([at[0], at[1]]), || true);
    if -best.value <= table.price() {
        return Combinations::default();
    }
    let weight = |entry: &Entry| (entry.categories.clone(), entry.weight([at[0], at[1]], 0.0));
    Combinations { list: table.entries.iter().map(weight).collect(), gain: -best.value }
}

impl Entry {
    /// The weight, with some occurrences left out. A combination that is then no more frequent than expected would not have
    /// been chosen, so it has none. Otherwise rows would gain from having been seen when combinations were chosen.
    fn weight(&self, [a, b]: [f64; 2], left_out: f64) -> f64 {
        let count = self.count - left_out;
        if count <= self.expected { 0.0 } else { (a + b * (count / self.expected).ln()).exp() }
    }
}

impl Table {
    /// The price of all combinations together: ½ ln n nats for each of the two parameters.
    fn price(&self) -> f64 {
        self.weights.iter().sum::<f64>().ln()
    }

    /// Fits to the rows on which candidates are scored, and considers their label sets.
    fn new(problem: &Problem, compiled: &mut Compiled, parameters: &[f64], seed: u64) -> Option<Self> {
        let data = &problem.data;
        let assignment = |row: usize| -> Vec<usize> {
            (0..data.n_labels()).filter_map(|label| data.truth(row, label)).collect()
        };
        let is_complete = |row: &usize| data.known[*row] == Known::All;
        let (mut complete, mut partial): (Vec<usize>, Vec<usize>) =
            problem.rows_to_score(seed).into_iter().partition(is_complete);
        complete.truncate(MAX_ROWS);
        partial.truncate(MAX_ROWS - complete.len());
        let rows = [&complete[..], &partial].concat();
        let sets: BTreeSet<Vec<usize>> = complete.iter().map(|&row| assignment(row)).collect();
        let sets: Vec<Vec<usize>> = sets.into_iter().collect();
        let counts = problem.ask(None, &Question::LabelSets { sets: sets.clone() });
        // Combinations of the base stay as they are.
        let is_new = |set: &[usize]| problem.model.find_typical(&Assignment::from_indices(set)).is_none();
        let mut sets: Vec<(Vec<usize>, f64)> =
            sets.into_iter().zip(counts).filter(|(set, _)| is_new(set)).collect();
        sets.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        sets.truncate(MAX_CELLS / rows.len().max(1));
        let probabilities = problem.probabilities(compiled, parameters, &rows, &sets);
        let n = sets.len();
        let weights: Vec<f64> = rows.iter().map(|&row| data.weights[row]).collect();
        let of_complete: f64 = weights[..complete.len()].iter().sum();
        let scale = problem.totals.complete_weight / of_complete;
        let expected = |place: usize| -> f64 {
            scale * (0..complete.len()).map(|row| weights[row] * probabilities[row * n + place]).sum::<f64>()
        };
        let kept: Vec<(usize, f64)> = (0..n)
            .into_par_iter()
            .map(|place| (place, expected(place)))
            .filter(|&(place, expected)| expected > 0.0 && sets[place].1 > expected)
            .collect();
        if kept.is_empty() {
            return None;
        }
        let of_row = |row: usize| kept.iter().map(move |(place, _)| row * n + place);
        let of_kept: Vec<f64> = (0..rows.len()).flat_map(of_row).map(|cell| probabilities[cell]).collect();
        let entry = |&(place, expected): &(usize, f64)| Entry {
            categories: sets[place].0.clone(),
            count: sets[place].1,
            expected,
        };
        let entries: Vec<Entry> = kept.iter().map(entry).collect();
        let places: BTreeMap<&[usize], usize> =
            entries.iter().enumerate().map(|(place, entry)| (&entry.categories[..], place)).collect();
        let own = complete.iter().map(|&row| Given::Own(places.get(&assignment(row)[..]).copied()));
        let of_partial = of_kept[complete.len() * kept.len()..].chunks(kept.len());
        let logs = problem.log_known(compiled, parameters, &partial);
        let agreeing = partial.iter().zip(logs).zip(of_partial).map(|((&row, log), probabilities)| {
            let agrees = |entry: &Entry| {
                let known = |label: usize| data.truth(row, label);
                entry.categories.iter().enumerate().all(|(label, &c)| known(label).is_none_or(|it| it == c))
            };
            let agreeing = (0..entries.len()).filter(|&place| agrees(&entries[place]));
            Given::Agreeing(agreeing.map(|place| (place, probabilities[place] / log.exp())).collect())
        });
        let known = own.chain(agreeing).collect();
        Some(Self { known, entries, probabilities: of_kept, weights })
    }

    /// The negative gain in log-likelihood over no combinations, with its derivatives.
    fn value(&self, parameters: [f64; 2]) -> Value {
        let n = self.entries.len();
        let of_all: Vec<f64> = self.entries.iter().map(|entry| entry.weight(parameters, 0.0)).collect();
        let logs: Vec<f64> = self.entries.iter().map(|entry| (entry.count / entry.expected).ln()).collect();
        let chunks: Vec<Value> = (0..self.weights.len())
            .into_par_iter()
            .step_by(CHUNK)
            .map(|start| {
                let mut sum = Value { value: 0.0, gradient: [0.0; 2], curvature: [0.0; 2] };
                for row in start..self.weights.len().min(start + CHUNK) {
                    self.add_row(
                        row,
                        parameters,
                        &of_all,
                        &logs,
                        &self.probabilities[row * n..(row + 1) * n],
                        &mut sum,
                    );
                }
                sum
            })
            .collect();
        let mut total = Value { value: 0.0, gradient: [0.0; 2], curvature: [MIN_CURVATURE; 2] };
        for chunk in chunks {
            total.value += chunk.value;
            for i in 0..2 {
                total.gradient[i] += chunk.gradient[i];
                total.curvature[i] += chunk.curvature[i];
            }
        }
        total
    }

    fn add_row(
        &self,
        row: usize,
        parameters: [f64; 2],
        of_all: &[f64],
        logs: &[f64],
        probabilities: &[f64],
        sum: &mut Value,
    ) {
        let weight = self.weights[row];
        // Σ w P, Σ w P x and Σ w P x², where x = ln(N / E).
        let mut sums = [0.0; 3];
        for place in 0..of_all.len() {
            let share = of_all[place] * probabilities[place];
            sums[0] += share;
            sums[1] += share * logs[place];
            sums[2] += share * logs[place] * logs[place];
        }
        let mut own = None;
        if let Given::Own(Some(place)) = self.known[row] {
            let entry = &self.entries[place];
            let left_out = weight.min(1.0);
            let (x, w) = (logs[place], entry.weight(parameters, left_out));
            let new_x = if w > 0.0 { ((entry.count - left_out) / entry.expected).ln() } else { 0.0 };
            let (old, new) = (of_all[place] * probabilities[place], w * probabilities[place]);
            sums[0] += new - old;
            sums[1] += new * new_x - old * x;
            sums[2] += new * new_x * new_x - old * x * x;
            own = Some((w, new_x));
        }
        let total = 1.0 + sums[0].max(0.0);
        sum.value += weight * total.ln();
        sum.gradient[0] += weight * sums[0] / total;
        sum.gradient[1] += weight * sums[1] / total;
        sum.curvature[0] += weight * sums[0] / total / total;
        sum.curvature[1] += weight * sums[2] / total;
        let (w, x) = match &self.known[row] {
            Given::Own(_) => own.unwrap_or((0.0, 0.0)),
            Given::Agreeing(agreeing) => {
                let w: f64 = agreeing.iter().map(|&(place, ratio)| of_all[place] * ratio).sum();
                let x: f64 = agreeing.iter().map(|&(place, ratio)| of_all[place] * ratio * logs[place]).sum();
                (w, if w > 0.0 { x / w } else { 0.0 })
            }
        };
        sum.value -= weight * w.ln_1p(); // the numerator of (1)
        sum.gradient[0] -= weight * w / (1.0 + w);
        sum.gradient[1] -= weight * w / (1.0 + w) * x;
    }
}

impl Problem {
    /// The weight of the complete rows of a chunk with each label set.
    pub(super) fn label_sets_of_chunk(&self, sets: &[Vec<usize>], rows: Range<usize>) -> Vec<f64> {
        let places: BTreeMap<&[usize], usize> =
            sets.iter().enumerate().map(|(place, set)| (&set[..], place)).collect();
        let mut weights = vec![0.0; sets.len()];
        let mut set = Vec::with_capacity(self.data.n_labels());
        for row in self.complete_in(rows) {
            set.clear();
            set.extend((0..self.data.n_labels()).filter_map(|label| self.data.truth(row, label)));
            if let Some(&place) = places.get(&set[..]) {
                weights[place] += self.data.weights[row];
            }
        }
        weights
    }

    /// ln P(K | x) by the rules: of what is known of rows.
    fn log_known(&self, compiled: &mut Compiled, parameters: &[f64], rows: &[usize]) -> Vec<f64> {
        self.reweigh(&mut compiled.engine, parameters);
        let block = |rows: &[usize]| -> Vec<f64> {
            let values = self.values(parameters, rows);
            let weights = vec![1.0; rows.len()];
            let log_evidence =
                |values: &[f64]| compiled.engine.expectations(&self.rows(values, &weights)).log_evidence;
            let (given, free) = (log_evidence(&self.clamped(&values, rows)), log_evidence(&values));
            given.iter().zip(free).map(|(given, free)| given - free).collect()
        };
        rows.chunks(64 * CHUNK).flat_map(block).collect()
    }

    /// P(s | x) by the rules, row by row, for some label sets.
    fn probabilities(
        &self,
        compiled: &mut Compiled,
        parameters: &[f64],
        rows: &[usize],
        sets: &[(Vec<usize>, f64)],
    ) -> Vec<f64> {
        self.reweigh(&mut compiled.engine, parameters);
        let log_rules: Vec<f64> =
            sets.iter().map(|(set, _)| self.log_rules(&compiled.features, parameters, set)).collect();
        let width = self.data.width;
        let block = |rows: &[usize]| -> Vec<f64> {
            let values = self.values(parameters, rows);
            let weights = vec![1.0; rows.len()];
            let found = compiled.engine.expectations(&self.rows(&values, &weights));
            let of_row = |at: usize| -> Vec<f64> {
                let logs: Vec<f64> =
                    values[at * width..(at + 1) * width].iter().map(|value| value.ln()).collect();
                let log = |(set, log_rules): (&(Vec<usize>, f64), &f64)| {
                    let log: f64 =
                        self.data.blocks.iter().zip(&set.0).map(|(block, &c)| logs[block.start + c]).sum();
                    (log + log_rules - found.log_evidence[at]).exp()
                };
                sets.iter().zip(&log_rules).map(log).collect()
            };
            (0..rows.len()).into_par_iter().flat_map_iter(of_row).collect()
        };
        rows.chunks(64 * CHUNK).flat_map(block).collect()
    }
}
