//! Simulated training and test data: moments in a warehouse, and the beliefs of three sensors.
//!
//! The truth: a worker has a gait if and only if the worker walks. Hands are rarely high in normal work and mostly high
//! in overhead work, as the expert rules state. No rule states that hands are centered while walking, and rarely low in
//! overhead work.
//!
//! The sensors: each sometimes confuses two categories, with unchanged confidence. The sun sometimes dazzles the
//! camera, the wrist sensor slips down during a shift, and every sensor sometimes gives no belief.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The categories of activity, feet and hands.
const NAMES: [&[&str]; 3] =
    [&["walking", "normal", "overhead"], &["gait", "standing"], &["high", "centered", "low"]];
const LABELS: [&str; 3] = ["activity", "feet", "hands"];
/// Transition probabilities of the activity.
const NEXT: [[f64; 3]; 3] = [[0.86, 0.10, 0.04], [0.08, 0.86, 0.06], [0.05, 0.10, 0.85]];
/// Probabilities of the hands' positions, given the activity.
const HANDS: [[f64; 3]; 3] = [[0.03, 0.82, 0.15], [0.08, 0.50, 0.42], [0.76, 0.22, 0.02]];
/// Probability that the hands move while the activity stays.
const RESTLESS: f64 = 0.5;

/// Confusion probabilities of each sensor, by the truth.
const CONFUSION: [&[&[f64]]; 3] = [
    &[&[0.88, 0.08, 0.04], &[0.07, 0.83, 0.10], &[0.04, 0.19, 0.77]],
    &[&[0.91, 0.09], &[0.06, 0.94]],
    &[&[0.80, 0.17, 0.03], &[0.12, 0.76, 0.12], &[0.03, 0.22, 0.75]],
];
/// Answers of the dazzled camera, for any truth.
const GLARE: [f64; 3] = [0.3, 0.4, 0.3];
/// Minimum and maximum log weight of each sensor's reported category.
const SURENESS: [[f64; 2]; 3] = [[1.6, 4.0], [2.2, 5.0], [1.4, 3.6]];
/// Half the width of the uniform noise on log weights.
const NOISE: f64 = 0.6;
/// Probability that the camera becomes dazzled, and the number of rows.
const DAZZLED: (f64, [usize; 2]) = (0.003, [15, 45]);
/// Probability that a sensor stops giving beliefs, and the number of rows.
const SILENT: (f64, [usize; 2]) = (0.004, [3, 15]);
/// Number of rows of a shift; the wrist sensor is put on again for each shift.
const SHIFT: usize = 250;
/// Probability that the wrist sensor reports one position lower at the end of a shift.
const SLIP: f64 = 0.2;

/// A moment: the truth, and the sensors' beliefs in whole percents, or none.
pub struct Moment {
    /// The true categories of activity, feet and hands.
    pub truth: [usize; 3],
    /// The beliefs about them.
    pub beliefs: [Option<Vec<u32>>; 3],
}

/// Simulates `n` moments; the same seed gives the same ones.
pub fn moments(seed: u64, n: usize) -> Vec<Moment> {
    let mut warehouse = Warehouse {
        random: ChaCha8Rng::seed_from_u64(seed),
        truth: [0, 0, 1],
        row: 0,
        dazzled: 0,
        silent: [0; 3],
    };
    (0..n).map(|_| warehouse.next_moment()).collect()
}

/// The beliefs as CSV, of the labels from `first` on.
pub fn beliefs(moments: &[Moment], first: usize) -> String {
    let column = |label: usize| NAMES[label].iter().map(move |name| format!("{}={name}", LABELS[label]));
    let header: Vec<String> = (first..3).flat_map(column).collect();
    let mut text = header.join(",") + "\n";
    for moment in moments {
        let cells: Vec<String> = (first..3).map(|label| cells(moment, label)).collect();
        text.push_str(&(cells.join(",") + "\n"));
    }
    text
}

/// The truths as CSV; this share of them is missing.
pub fn truths(moments: &[Moment], missing: f64, seed: u64) -> String {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    random.set_stream(1); // missing values are independent of the data
    let mut text = LABELS.join(",") + "\n";
    for moment in moments {
        let name =
            |label: usize| if random.random_bool(missing) { "" } else { NAMES[label][moment.truth[label]] };
        text.push_str(&([0, 1, 2].map(name).join(",") + "\n"));
    }
    text
}

fn cells(moment: &Moment, label: usize) -> String {
    let cells: Vec<String> = match &moment.beliefs[label] {
        Some(percents) => percents.iter().map(|&percent| (f64::from(percent) / 100.0).to_string()).collect(),
        None => vec![String::new(); NAMES[label].len()],
    };
    cells.join(",")
}

/// The current state of the worker and the sensors.
struct Warehouse {
    random: ChaCha8Rng,
    truth: [usize; 3],
    row: usize,
    /// Number of rows for which the camera stays dazzled.
    dazzled: usize,
    /// Number of rows for which each sensor stays silent.
    silent: [usize; 3],
}

impl Warehouse {
    fn next_moment(&mut self) -> Moment {
        self.work();
        self.dazzled = self.spell(self.dazzled, DAZZLED);
        self.silent = self.silent.map(|rows| self.spell(rows, SILENT));
        let beliefs = [0, 1, 2].map(|label| self.sense(label));
        self.row += 1;
        Moment { truth: self.truth, beliefs }
    }

    /// Advances the worker by one moment.
    fn work(&mut self) {
        let [before, _, hands] = self.truth;
        let activity = self.draw(&NEXT[before]);
        let feet = usize::from(activity != 0);
        let moves = activity != before || self.random.random_bool(RESTLESS);
        self.truth = [activity, feet, if moves { self.draw(&HANDS[activity]) } else { hands }];
    }

    /// The remaining rows of a disturbance; a finished one may start again.
    fn spell(&mut self, rows: usize, (begins, [least, most]): (f64, [usize; 2])) -> usize {
        match rows {
            0 if self.random.random_bool(begins) => self.random.random_range(least..=most),
            _ => rows.saturating_sub(1),
        }
    }

    /// The belief of a sensor, if it gives one.
    fn sense(&mut self, label: usize) -> Option<Vec<u32>> {
        let recognized = self.recognized(label);
        let [least, most] = SURENESS[label];
        let sureness = self.random.random_range(least..most);
        let noise = |_| self.random.random_range(-NOISE..NOISE);
        let mut scores: Vec<f64> = NAMES[label].iter().map(noise).collect();
        scores[recognized] += sureness;
        (self.silent[label] == 0).then(|| percents(&scores, recognized))
    }

    /// The category that a sensor recognizes.
    fn recognized(&mut self, label: usize) -> usize {
        let confusion = CONFUSION[label][self.truth[label]];
        match label {
            0 if self.dazzled > 0 => self.draw(&GLARE),
            2 => {
                let recognized = self.draw(confusion);
                let slipped = SLIP * (self.row % SHIFT) as f64 / SHIFT as f64;
                if self.random.random_bool(slipped) { (recognized + 1).min(2) } else { recognized }
            }
            _ => self.draw(confusion),
        }
    }

    /// Draws a category by its probability.
    fn draw(&mut self, probabilities: &[f64]) -> usize {
        let mut left: f64 = self.random.random();
        let is_it = |probability: &f64| {
            left -= probability;
            left < 0.0
        };
        probabilities.iter().position(is_it).unwrap_or(probabilities.len() - 1)
    }
}

/// Converts scores to a belief in whole percents, none of them 0. The rounding difference is added to `recognized`.
fn percents(scores: &[f64], recognized: usize) -> Vec<u32> {
    let sum: f64 = scores.iter().map(|score| score.exp()).sum();
    let mut percents: Vec<u32> =
        scores.iter().map(|score| (100.0 * score.exp() / sum).round().max(1.0) as u32).collect();
    percents[recognized] = 0;
    percents[recognized] = 100 - percents.iter().sum::<u32>();
    percents
}

#[cfg(test)]
mod tests {
    use super::*;

    const N: usize = 4000;

    /// The accuracy of a sensor's most probable category, over the rows with a belief.
    fn accuracy(moments: &[Moment], label: usize) -> f64 {
        let says = moments.iter().filter_map(|moment| Some((moment, moment.beliefs[label].as_ref()?)));
        let is_right: Vec<bool> = says
            .map(|(moment, percents)| {
                percents[moment.truth[label]] == *percents.iter().max().expect("categories")
            })
            .collect();
        is_right.iter().filter(|is_right| **is_right).count() as f64 / is_right.len() as f64
    }

    #[test]
    fn beliefs_are_distributions() {
        for moment in moments(1, N) {
            for (label, percents) in moment.beliefs.iter().enumerate() {
                let Some(percents) = percents else { continue };
                assert_eq!(percents.len(), NAMES[label].len());
                assert_eq!(percents.iter().sum::<u32>(), 100);
                assert!(percents.iter().all(|&percent| percent > 0), "{percents:?}");
            }
        }
    }

    #[test]
    fn sensors_are_right_more_often_than_not_and_wrong_at_times() {
        let moments = moments(1, N);
        for (label, expected) in [(0, 0.7..0.85), (1, 0.85..0.97), (2, 0.65..0.8)] {
            let accuracy = accuracy(&moments, label);
            assert!(expected.contains(&accuracy), "{}: {accuracy}", LABELS[label]);
        }
    }

    #[test]
    fn sensors_are_overconfident() {
        let moments = moments(1, N);
        for label in 0..3 {
            let favorites: Vec<f64> = moments
                .iter()
                .filter_map(|moment| moment.beliefs[label].as_ref()?.iter().max())
                .map(|&percent| f64::from(percent) / 100.0)
                .collect();
            let sureness = favorites.iter().sum::<f64>() / favorites.len() as f64;
            assert!(sureness > accuracy(&moments, label), "{}: {sureness}", LABELS[label]);
        }
    }

    #[test]
    fn sensors_fall_silent_at_times() {
        let moments = moments(1, N);
        for label in 0..3 {
            let silent = moments.iter().filter(|moment| moment.beliefs[label].is_none()).count() as f64;
            assert!((0.01..0.1).contains(&(silent / N as f64)), "{}: {silent}", LABELS[label]);
        }
    }

    #[test]
    fn truths_follow_the_expert_rules_and_further_regularities() {
        let moments = moments(1, N);
        let share = |truth: fn(&[usize; 3]) -> bool, given: fn(&[usize; 3]) -> bool| {
            let given = moments.iter().map(|moment| &moment.truth).filter(|truth| given(truth));
            given.clone().filter(|it| truth(it)).count() as f64 / given.count() as f64
        };
        assert!(moments.iter().all(|moment| (moment.truth[0] == 0) == (moment.truth[1] == 0)));
        assert!(share(|truth| truth[0] == 2, |truth| truth[1] == 1 && truth[2] == 0) > 0.75);
        assert!(share(|truth| truth[2] != 0, |truth| truth[0] == 1) > 0.9);
        assert!(share(|truth| truth[2] == 1, |truth| truth[0] == 0) > 0.75); // no rule states this
        assert!(share(|truth| truth[2] == 2, |truth| truth[0] == 2) < 0.05);
    }

    #[test]
    fn some_truths_are_missing() {
        let moments = moments(1, N);
        let text = truths(&moments, 0.2, 2);
        let cells: Vec<&str> = text.lines().skip(1).flat_map(|line| line.split(',')).collect();
        let missing = cells.iter().filter(|cell| cell.is_empty()).count() as f64 / cells.len() as f64;
        assert_eq!(cells.len(), 3 * N);
        assert!((0.19..0.21).contains(&missing), "{missing}");
        assert!(!truths(&moments, 0.0, 2).contains(",,"));
    }

    #[test]
    fn tables_have_the_requested_columns() {
        let moments = moments(1, 5);
        assert!(beliefs(&moments, 0).starts_with("activity=walking,activity=normal,activity=overhead,feet="));
        assert!(beliefs(&moments, 1).starts_with("feet=gait,feet=standing,hands=high,"));
        assert_eq!(beliefs(&moments, 0).lines().count(), 6);
    }
}
