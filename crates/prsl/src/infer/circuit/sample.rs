//! Joint samples: one pass upward, then a walk down for each sample.
//!
//! A walk draws one edge of the root, and of each node below it, in proportion to the edges' values. Labels that the drawn
//! edges leave free are drawn from their beliefs. All values are non-negative, so every draw is from a distribution.
//! Checked in `samples_have_the_distribution_of_enumeration`.

use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::Circuit;
use super::evaluator::Evaluator;
use super::sweep::Workspace;
use crate::assignment::Assignment;
use crate::belief::{BeliefMatrix, Instance, check_same_labels};
use crate::error::Result;
use crate::infer::samples::{Samples, Sampling, draw, draw_category, exponentiate};
use crate::infer::semiring::{LogSumProduct, Semiring, SumProduct};
use crate::label::LabelId;
use crate::logic::impossible;

impl Circuit {
    /// Independent joint samples from the posterior of an instance.
    ///
    /// ```
    /// use prsl::infer::{Circuit, Sampling};
    /// use prsl::{Evidence, Model};
    ///
    /// let model = Model::parse("label weather: sun, rain\nlabel ground: dry, wet\nrule 1: wet <- rain")?;
    /// let evidence = Evidence::new().observe("weather", "rain");
    /// let samples = Circuit::compile(&model)?.sample(&evidence, &Sampling { n_samples: 2, ..Sampling::default() })?;
    /// assert_eq!(samples, [[1, 1], [1, 1]]); // rain and wet
    /// # Ok::<(), prsl::Error>(())
    /// ```
    pub fn sample(&self, instance: &impl Instance, sampling: &Sampling) -> Result<Samples> {
        let row = &instance.values(self.model())?[..];
        self.sample_row(row, 0, sampling).ok_or_else(|| impossible(self.model(), row))
    }

    /// Samples for every row; `None` if the row is impossible.
    pub fn sample_batch(
        &self,
        rows: &BeliefMatrix,
        sampling: &Sampling,
    ) -> Result<Vec<Result<Option<Samples>>>> {
        check_same_labels(rows.model(), self.model())?;
        let sample = |row: usize| Ok(self.sample_row(rows.values_of(row), row, sampling));
        Ok((0..rows.n_rows()).into_par_iter().map(sample).collect())
    }

    /// The samples of one row; `None` if it is impossible.
    pub(crate) fn samples_of(&self, row: &[f64], sampling: &Sampling) -> Option<Samples> {
        self.sample_row(row, 0, sampling)
    }

    /// The samples of the row at a position of its table; `None` if it is impossible.
    fn sample_row(&self, row: &[f64], position: usize, sampling: &Sampling) -> Option<Samples> {
        match self.sums.cannot_underflow(row) {
            true => self.sample_in::<SumProduct>(row, position, sampling),
            false => self.sample_in::<LogSumProduct>(row, position, sampling),
        }
    }

    fn sample_in<S: Semiring>(&self, row: &[f64], position: usize, sampling: &Sampling) -> Option<Samples> {
        let (workspace, log_total) = self.sums.upward::<S>(row);
        if log_total == f64::NEG_INFINITY {
            return None;
        }
        let mixture = self.typical.mixture(row, log_total);
        let mut rng = sampling.generator(position);
        let sample = |_| {
            let combination = self.typical.sample(&mixture, &mut rng);
            let categories = combination.unwrap_or_else(|| self.sums.walk(&workspace, row, &mut rng));
            Assignment::from_indices(categories)
        };
        Some((0..sampling.n_samples).map(sample).collect())
    }
}

impl Evaluator<SumProduct> {
    /// Draws a category for every label.
    fn walk<S: Semiring>(
        &self,
        workspace: &Workspace<S, 1>,
        row: &[f64],
        rng: &mut ChaCha8Rng,
    ) -> Vec<usize> {
        let layout = &self.layout;
        let mut states: Vec<Option<usize>> = vec![None; self.model.labels().len()];
        let mut open = vec![layout.nodes.len() as u32 - 1];
        while let Some(node) = open.pop() {
            let range = &layout.nodes[node as usize];
            let first = range.start as usize;
            let mut weights: Vec<f64> =
                workspace.edges[first..range.end as usize].iter().map(|&[value]| value).collect();
            if !S::SCALED {
                exponentiate(&mut weights);
            }
            let edge = &layout.edges[first + draw(&weights, rng).expect("a walk meets possible nodes only")];
            open.extend_from_slice(
                &layout.children[edge.children.start as usize..edge.children.end as usize],
            );
            let mut entry = edge.terms as usize;
            while entry != 0 {
                let (label, state) = layout.label_of_state(layout.terms.items[entry] as usize);
                states[label.index()] = Some(state);
                entry = layout.terms.parents[entry] as usize;
            }
        }
        let category = |(label, state): (usize, &Option<usize>)| {
            let beliefs = &row[self.model.block(LabelId::new(label))];
            match state {
                Some(state) => draw_category(beliefs, &self.states.of_category[label], *state, rng),
                None => draw(beliefs, rng).expect("beliefs have a positive sum"),
            }
        };
        states.iter().enumerate().map(category).collect()
    }
}
