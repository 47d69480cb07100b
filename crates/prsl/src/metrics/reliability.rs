//! Predicted probabilities against observed frequencies.

use super::evaluation::Evaluation;

/// Observed frequencies by predicted probability, over all classes.
#[derive(Clone, Debug, PartialEq)]
pub struct Reliability {
    /// Bins of equal width, from 0 to 1.
    pub bins: Vec<ReliabilityBin>,
}

/// The predictions with probabilities in a range, lower end included; the last bin includes its upper end.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ReliabilityBin {
    /// The number of predictions, whatever their weights.
    pub count: usize,
    /// The mean of their probabilities, 0 if there are none.
    pub probability: f64,
    /// The share of them that were true, 0 if there are none.
    pub frequency: f64,
}

impl Evaluation {
    /// Reliability of all known cells of all classes, in this many bins (at least one).
    ///
    /// ```
    /// use prsl::metrics::Evaluation;
    /// use prsl::{BeliefMatrix, Evidence, Model, Truth};
    ///
    /// let model = Model::parse("label fire\nlabel smoke")?;
    /// let mut rows = BeliefMatrix::new(&model);
    /// rows.push_evidence(&Evidence::new().belief("fire", [0.9]).belief("smoke", [0.8]))?;
    /// let truth = Truth::from_indices([Some(0), Some(1)]);
    /// let reliability = Evaluation::of(&model, &rows, &[truth])?.reliability(5);
    /// assert_eq!(reliability.bins[4].count, 2);
    /// assert!((reliability.bins[4].probability - 0.85).abs() < 1e-12);
    /// assert_eq!(reliability.bins[4].frequency, 0.5);
    /// # Ok::<(), prsl::Error>(())
    /// ```
    pub fn reliability(&self, n_bins: usize) -> Reliability {
        let mut bins = vec![ReliabilityBin::default(); n_bins.max(1)];
        let mut sums = vec![0.0; bins.len()];
        for (index, row) in self.rows.iter().enumerate() {
            for (_, probability, hit) in self.forecasts(index) {
                let place = bin(probability, bins.len());
                sums[place] += row.weight;
                bins[place].count += 1;
                bins[place].probability += row.weight * probability;
                bins[place].frequency += row.weight * f64::from(u8::from(hit));
            }
        }
        for (bin, sum) in bins.iter_mut().zip(sums).filter(|(bin, _)| bin.count > 0) {
            bin.probability /= sum;
            bin.frequency /= sum;
        }
        Reliability { bins }
    }

    /// The classes of a row whose truth is known: class, probability, and whether it was true.
    pub(super) fn forecasts(&self, row: usize) -> impl Iterator<Item = (usize, f64, bool)> {
        let probabilities = &self.probabilities[row * self.n_classes..(row + 1) * self.n_classes];
        let known = probabilities.iter().enumerate().filter(|(_, probability)| !probability.is_nan());
        known.map(move |(class, &probability)| {
            let cell = self.cells.get(row, self.label_of[class]);
            let truth = cell.truth.expect("a probability stands beside its truth");
            (class, probability, self.class_of[truth as usize] == Some(class))
        })
    }

    /// The labels of a row whose truth is known; none if the row is impossible.
    pub(super) fn forecast_labels(&self, row: usize) -> impl Iterator<Item = usize> {
        self.cells.row(row).enumerate().filter(|(_, cell)| cell.predicted.is_some()).map(|(label, _)| label)
    }
}

/// The bin of a probability.
pub(super) fn bin(probability: f64, n_bins: usize) -> usize {
    ((probability * n_bins as f64) as usize).min(n_bins - 1)
}
