//! Scores of each label by itself.

use super::cells::Cell;
use super::evaluation::Evaluation;
use crate::label::LabelId;

/// The scores of one label over the rows in which its truth is known.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LabelScores {
    /// The label.
    pub label: LabelId,
    /// Number of rows in which its truth is known.
    pub known: usize,
    /// Share of them in which the most probable category is right; `None` without any.
    pub accuracy: Option<f64>,
    /// The mean of −ln P(truth); a probability of 0 counts as 1e-300.
    pub log_loss: Option<f64>,
    /// Yes for a yes/no label, else every category against all others.
    pub classes: Vec<ClassScores>,
}

/// The scores of one class: a category against all others.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ClassScores {
    /// The category.
    pub category: String,
    /// Number of rows in which it is true.
    pub positives: usize,
    /// 2 hits / (predicted + true); `None` if it is neither predicted nor true.
    pub f1: Option<f64>,
    /// Area under the ROC curve: the share of pairs in which the row where it is true has the higher posterior. Ties count
    /// one half. `None` if there are no such pairs. Impossible rows have no posterior and do not count.
    pub auc: Option<f64>,
    /// Share of the rows in which it is true that predict it.
    pub sensitivity: Option<f64>,
    /// Share of the rows in which it is not true that do not predict it. An impossible row predicts nothing, and counts as
    /// wrong.
    pub specificity: Option<f64>,
}

impl Evaluation {
    /// The scores of each label by itself.
    ///
    /// ```
    /// use prsl::metrics::Evaluation;
    /// use prsl::{BeliefMatrix, Evidence, Model, Truth};
    ///
    /// let model = Model::parse("label fire")?;
    /// let mut rows = BeliefMatrix::new(&model);
    /// for belief in [0.9, 0.6, 0.7, 0.2] {
    ///     rows.push_evidence(&Evidence::new().belief("fire", [belief]))?;
    /// }
    /// let truths = [0, 0, 1, 1].map(|truth| Truth::from_indices([Some(truth)])); // fire in the first two rows
    /// let fire = &Evaluation::of(&model, &rows, &truths)?.label_scores()[0];
    /// assert_eq!(fire.accuracy, Some(0.75));
    /// assert_eq!(fire.classes[0].auc, Some(0.75)); // 0.6 is below 0.7
    /// assert_eq!((fire.classes[0].sensitivity, fire.classes[0].specificity), (Some(1.0), Some(0.5)));
    /// # Ok::<(), prsl::Error>(())
    /// ```
    pub fn label_scores(&self) -> Vec<LabelScores> {
        let cells = |label: usize| {
            let rows = self.rows.iter().enumerate();
            rows.map(move |(index, row)| (self.cells.get(index, label), row.weight))
                .filter(|(cell, _)| cell.truth.is_some())
        };
        let label = |id: LabelId| {
            let sum = |of: &dyn Fn(&Cell) -> f64| -> f64 {
                cells(id.index()).map(|(cell, weight)| weight * of(&cell)).sum()
            };
            let known = sum(&|_| 1.0);
            let classes = self.model().block(id).enumerate().filter_map(|(category, place)| {
                let name = self.model().label(id).categories()[category].clone();
                Some(self.class_scores(id.index(), place as u32, self.class_of[place]?, name))
            });
            LabelScores {
                label: id,
                known: cells(id.index()).count(),
                accuracy: share(sum(&|cell| f64::from(u8::from(cell.truth == cell.predicted))), known),
                log_loss: share(self.log_losses[id.index()], known),
                classes: classes.collect(),
            }
        };
        self.model().label_ids().map(label).collect()
    }

    fn class_scores(&self, label: usize, place: u32, class: usize, category: String) -> ClassScores {
        // The weights of the rows in which the class is true and not true, and of those that predict it.
        let (mut sums, mut predicted, mut silent) = ([0.0; 2], [0.0; 2], 0.0);
        let (mut positives, mut ranked) = (0, Vec::new());
        for (index, row) in self.rows.iter().enumerate() {
            let cell = self.cells.get(index, label);
            let Some(truth) = cell.truth else { continue };
            let kind = usize::from(truth != place);
            positives += usize::from(kind == 0);
            sums[kind] += row.weight;
            match cell.predicted {
                Some(category) if category == place => predicted[kind] += row.weight,
                None if kind == 1 => silent += row.weight,
                _ => {}
            }
            let probability = self.probabilities[index * self.n_classes + class];
            if !probability.is_nan() {
                ranked.push((probability, index));
            }
        }
        let [yes, no] = sums;
        ClassScores {
            category,
            positives,
            f1: share(2.0 * predicted[0], predicted[0] + predicted[1] + yes),
            auc: auc(&mut ranked, |row| {
                (self.cells.get(row, label).truth == Some(place), self.rows[row].weight)
            }),
            sensitivity: share(predicted[0], yes),
            specificity: share(no - predicted[1] - silent, no),
        }
    }
}

fn share(part: f64, all: f64) -> Option<f64> {
    (all > 0.0).then(|| part / all)
}

/// The area under the receiver operating characteristic, by ranks. The rows have probabilities. `of_row` returns whether
/// the class is true, and the weight.
fn auc(ranked: &mut [(f64, usize)], of_row: impl Fn(usize) -> (bool, f64)) -> Option<f64> {
    ranked.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let ([mut positives, mut negatives], mut wins) = ([0.0; 2], 0.0);
    for tied in ranked.chunk_by(|a, b| a.0 == b.0) {
        let sum = |wanted: bool| -> f64 {
            let rows = tied.iter().map(|(_, row)| of_row(*row));
            rows.filter(|(is_true, _)| *is_true == wanted).map(|(_, weight)| weight).sum()
        };
        let (positive, negative) = (sum(true), sum(false));
        wins += positive * (negatives + negative / 2.0);
        positives += positive;
        negatives += negative;
    }
    share(wins, positives * negatives)
}
