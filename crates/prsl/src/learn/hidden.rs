//! Labels whose truth is never known although their classifiers speak: classifiers are taken at their word.
//!
//! A truth is drawn from each belief, and the belief itself gives way to what the classifier says on average. So what is learned
//! tells the label from the others, as it has to where the classifier is gone.

use std::borrow::Cow;

use rand::SeedableRng;
use rand::distr::Distribution;
use rand::distr::weighted::WeightedIndex;
use rand_chacha::ChaCha8Rng;

use super::examples::Examples;
use crate::belief::{BeliefMatrix, BeliefOrigin};
use crate::calibrator::Calibrate;
use crate::error::Result;
use crate::label::{CategoryId, LabelId};
use crate::model::Model;

/// The labels whose truth is never known, each with what its classifier says on average.
pub(crate) struct Hidden<'a> {
    model: &'a Model,
    usual: Vec<(LabelId, Vec<f64>)>,
}

impl<'a> Hidden<'a> {
    /// Those of a model, which has calibrators if they are to be applied.
    pub(crate) fn new(model: &'a Model, train: &Examples) -> Self {
        let usual = |label: LabelId| {
            let beliefs: Vec<Vec<f64>> =
                (0..train.n_rows()).filter_map(|row| belief(model, train.beliefs(), row, label)).collect();
            let mean = |category: usize| {
                beliefs.iter().map(|belief| belief[category]).sum::<f64>() / beliefs.len() as f64
            };
            let means = (0..model.label(label).n_categories()).map(mean).collect();
            (!beliefs.is_empty()).then_some((label, means))
        };
        let is_hidden = |label: &LabelId| train.n_seen(*label) == 0;
        Self { model, usual: model.label_ids().filter(is_hidden).filter_map(usual).collect() }
    }

    /// The rows with truths that are drawn, as they are where no label is hidden.
    pub(crate) fn draw<'e>(&self, examples: &'e Examples, seed: u64) -> Result<Cow<'e, Examples>> {
        if self.usual.is_empty() {
            return Ok(Cow::Borrowed(examples));
        }
        let (mut beliefs, mut truths) = (examples.beliefs().clone(), examples.truths().to_vec());
        for (label, usual) in &self.usual {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            rng.set_stream(label.index() as u64);
            for (row, truths) in truths.iter_mut().enumerate() {
                let Some(belief) = belief(self.model, examples.beliefs(), row, *label) else { continue };
                let drawn = WeightedIndex::new(belief).expect("a belief sums to 1").sample(&mut rng);
                truths.set(*label, Some(CategoryId::new(drawn)));
                beliefs.replace(row, *label, usual);
            }
        }
        Examples::new(beliefs, truths)?.with_weights(examples.weights().to_vec()).map(Cow::Owned)
    }
}

/// What the classifier of a label says about a row, calibrated, if it says something.
fn belief(model: &Model, rows: &BeliefMatrix, row: usize, label: LabelId) -> Option<Vec<f64>> {
    let given = rows.belief(row, label);
    let mut belief = vec![0.0; given.len()];
    model.label(label).calibrator().calibrate(given, &mut belief);
    (rows.origin(row, label) == BeliefOrigin::Classifier).then_some(belief)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::belief::Normalize;
    use crate::truth::Truth;

    #[test]
    fn truths_are_drawn_from_what_classifiers_say() {
        let model = Model::parse("label seen\nlabel hidden: a, b, c\nlabel unseen latent").unwrap();
        let mut beliefs = BeliefMatrix::new(&model);
        for row in 0..3000 {
            let hidden = match row % 3 {
                0 => [Some(1.0), None, None],
                1 => [Some(0.0), Some(0.5), Some(0.5)],
                _ => [None; 3],
            };
            let cells = [vec![Some(0.3), None], hidden.to_vec(), vec![None; 2]].concat();
            beliefs.push(&cells, Normalize::Never).unwrap();
        }
        let examples =
            Examples::new(beliefs, vec![Truth::from_indices([Some(0), None, None]); 3000]).unwrap();
        let drawn = Hidden::new(&model, &examples).draw(&examples, 1).unwrap();
        let hidden = LabelId::new(1);
        let mut counts = [0usize; 3];
        for row in 0..3000 {
            let truths = drawn.truths()[row].indices();
            assert_eq!([truths[0], truths[2]], [Some(0), None]);
            assert_eq!(
                drawn.beliefs().belief(row, LabelId::new(0)),
                examples.beliefs().belief(row, LabelId::new(0))
            );
            match row % 3 {
                0 => assert_eq!(truths[1], Some(0)),
                1 => counts[truths[1].unwrap()] += 1,
                _ => assert_eq!(truths[1], None),
            }
            if row % 3 < 2 {
                assert_eq!(drawn.beliefs().belief(row, hidden), [0.5, 0.25, 0.25]);
            }
        }
        assert!(counts[0] == 0 && counts[1].abs_diff(500) < 60, "{counts:?}");
    }
}
