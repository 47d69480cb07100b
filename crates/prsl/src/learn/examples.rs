//! Rows to learn from: beliefs, and the truth as far as it is known.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::chunks::{Chunk, chunk_of, in_order, n_chunks};
use super::stored::StoredRows;
use super::watch::{Watch, never};
use crate::belief::{BeliefMatrix, BeliefOrigin, check_same_labels};
use crate::calibrate::{CalibrationData, CalibrationMethod};
use crate::calibrator::Calibrator;
use crate::diagnostic::quoted;
use crate::error::{Error, Result};
use crate::label::{CategoryId, Label, LabelId};
use crate::metrics::MAX_WEIGHT;
use crate::model::Model;
use crate::truth::Truth;

/// A classifier that believes less in something is sure of the opposite.
const SURE: f64 = 1e-6;
/// Operations on numbers that a calibrator takes for each row and category, about.
const FIT_WORK: usize = 1000;

/// Rows of beliefs with the categories that turned out to be true, as far as they are known.
///
/// A row takes 9 bytes for each label of two categories, beliefs and truth together, and 8 bytes for its weight. Clones share
/// the rows.
///
/// ```
/// use prsl::{BeliefMatrix, Evidence, Model, Truth};
/// use prsl::learn::Examples;
///
/// let model = Model::parse("label weather: sun, rain\nlabel ground: dry, wet")?;
/// let mut beliefs = BeliefMatrix::new(&model);
/// beliefs.push_evidence(&Evidence::new().belief("weather", [0.4, 0.6]).belief("ground", [0.7, 0.3]))?;
/// let examples = Examples::new(beliefs, vec![Truth::from_indices([Some(1), None])])?;
/// assert_eq!(examples.n_rows(), 1);
/// # Ok::<(), prsl::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Examples {
    rows: Arc<StoredRows>,
    weights: Arc<Vec<f64>>,
    chunks: Vec<Chunk>,
}

impl Examples {
    /// Beliefs as the classifiers gave them (not calibrated), and for every row the true category of each label.
    pub fn new(beliefs: BeliefMatrix, truths: Vec<Truth>) -> Result<Self> {
        if truths.len() != beliefs.n_rows() {
            let problem = format!("{} rows of truths for {} rows of beliefs", truths.len(), beliefs.n_rows());
            return Err(Error::Examples { problem });
        }
        let labels = beliefs.model().labels();
        for (row, truth) in truths.iter().enumerate() {
            if truth.n_labels() != labels.len() {
                let problem =
                    format!("row {} has {} truths for {} labels", row + 1, truth.n_labels(), labels.len());
                return Err(Error::Examples { problem });
            }
            for (label, category) in labels.iter().zip(truth.indices()) {
                if category.is_some_and(|category| category >= label.n_categories()) {
                    let problem = format!(
                        "the truth of row {} is no category of label {}",
                        row + 1,
                        quoted(label.name())
                    );
                    return Err(Error::Examples { problem });
                }
            }
        }
        let mut rows = StoredRows::new(beliefs.model());
        truths.iter().enumerate().for_each(|(row, truth)| rows.push(&beliefs, row, truth));
        let (weights, chunks) = (vec![1.0; truths.len()], in_order(truths.len()));
        Ok(Self { rows: Arc::new(rows), weights: Arc::new(weights), chunks })
    }

    /// No rows about the labels of a model, for [`Examples::append`].
    pub fn empty(model: &Model) -> Self {
        Self { rows: Arc::new(StoredRows::new(model)), weights: Arc::default(), chunks: Vec::new() }
    }

    /// The same rows, which count as much as these weights say: numbers from 0 to 1e15, at least one of them above 0.
    pub fn with_weights(self, weights: Vec<f64>) -> Result<Self> {
        let rows = self.with_weights_of_part(weights)?;
        if rows.n_rows() > 0 && rows.weights.iter().all(|weight| *weight == 0.0) {
            let problem = "all rows have weight 0, so that none of them counts; give some a weight above 0";
            return Err(Error::Examples { problem: problem.to_owned() });
        }
        Ok(rows)
    }

    /// The same for a part of some rows: all of its weights may be 0.
    pub fn with_weights_of_part(mut self, weights: Vec<f64>) -> Result<Self> {
        let n_rows = self.n_rows();
        if weights.len() != n_rows || weights.iter().any(|weight| !(*weight >= 0.0 && weight.is_finite())) {
            let problem = format!("{n_rows} rows need as many weights, finite and not below 0");
            return Err(Error::Examples { problem });
        }
        if let Some(row) = weights.iter().position(|weight| *weight > MAX_WEIGHT) {
            let problem = format!(
                "row {} has weight {:e}, more than {MAX_WEIGHT:e}; divide all weights by the same number",
                row + 1,
                weights[row]
            );
            return Err(Error::Examples { problem });
        }
        self.weights = Arc::new(weights);
        Ok(self)
    }

    /// Adds the rows of other examples. Returns an error if they are about other labels.
    pub fn append(&mut self, other: &Self) -> Result<()> {
        check_same_labels(other.model(), self.model())?;
        let rows = Arc::make_mut(&mut self.rows);
        (0..other.n_rows()).for_each(|row| rows.push_from(&other.rows, row));
        Arc::make_mut(&mut self.weights).extend_from_slice(&other.weights);
        self.chunks = in_order(self.n_rows());
        Ok(())
    }

    /// The same rows in chunks by their keys, one key for each row, so that learning does not depend on their order.
    ///
    /// Sums over rows are added chunk by chunk. A row's chunk depends on the text of its key and on the number of rows
    /// ([`chunk_of`]), and the rows of a chunk are in the order of their keys. Returns an error if two rows have the same key.
    ///
    /// ```
    /// use prsl::{BeliefMatrix, Evidence, Model, Truth};
    /// use prsl::learn::Examples;
    ///
    /// let mut beliefs = BeliefMatrix::new(&Model::parse("label alarm")?);
    /// let truths = [0, 1].map(|truth| Truth::from_indices([Some(truth)]));
    /// truths.iter().try_for_each(|_| beliefs.push_evidence(&Evidence::new()))?;
    /// let rows = Examples::new(beliefs, truths.to_vec())?;
    /// assert_eq!(rows.by_keys(&["b", "a"])?.to_truths(), [truths[1].clone(), truths[0].clone()]);
    /// assert!(rows.by_keys(&["a", "a"]).is_err());
    /// # Ok::<(), prsl::Error>(())
    /// ```
    pub fn by_keys<K: Ord + ToString>(&self, keys: &[K]) -> Result<Self> {
        let n_rows = self.n_rows();
        if keys.len() != n_rows {
            return Err(Error::Examples { problem: format!("{} keys for {n_rows} rows", keys.len()) });
        }
        let n_chunks = n_chunks(n_rows as u64);
        let chunks: Vec<u32> = keys.iter().map(|key| chunk_of(&key.to_string(), n_chunks)).collect();
        let mut order: Vec<usize> = (0..n_rows).collect();
        order.sort_by(|&a, &b| (chunks[a], &keys[a], a).cmp(&(chunks[b], &keys[b], b)));
        if let Some(&[first, second]) = order.windows(2).find(|pair| keys[pair[0]] == keys[pair[1]]) {
            let key = quoted(keys[first].to_string());
            let (first, second) = (first + 1, second + 1);
            let problem =
                format!("rows {first} and {second} have the key {key}; each row needs a key of its own");
            return Err(Error::Examples { problem });
        }
        let mut rows = self.select(&order);
        rows.chunks.clear();
        for (at, &row) in order.iter().enumerate() {
            match rows.chunks.last_mut().filter(|chunk| chunk.number == chunks[row]) {
                Some(chunk) => chunk.rows.end = at + 1,
                None => rows.chunks.push(Chunk { number: chunks[row], rows: at..at + 1 }),
            }
        }
        Ok(rows)
    }

    /// The same rows as one chunk of this number, in their order.
    pub fn as_chunk(mut self, number: u32) -> Self {
        self.chunks = vec![Chunk { number, rows: 0..self.n_rows() }];
        self
    }

    /// A hash of all rows.
    pub(crate) fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash_rows(&mut hasher);
        self.weights.iter().for_each(|weight| weight.to_bits().hash(&mut hasher));
        self.chunks.iter().for_each(|chunk| (chunk.number, chunk.rows.end).hash(&mut hasher));
        hasher.finish()
    }

    /// The chunks of the rows.
    pub(crate) fn chunks(&self) -> &[Chunk] {
        &self.chunks
    }

    /// The model whose labels they are about.
    pub fn model(&self) -> &Model {
        self.rows.model()
    }

    /// How many rows there are.
    pub fn n_rows(&self) -> usize {
        self.rows.n_rows()
    }

    /// The beliefs of some rows as they were given.
    ///
    /// # Panics
    ///
    /// If there are no such rows.
    pub fn beliefs_of(&self, rows: Range<usize>) -> BeliefMatrix {
        self.rows.matrix(rows)
    }

    /// All beliefs as they were given. They take twice the memory that they take here.
    pub fn to_beliefs(&self) -> BeliefMatrix {
        self.beliefs_of(0..self.n_rows())
    }

    /// The true category of each label in a row, where it is known.
    ///
    /// # Panics
    ///
    /// If there is no such row.
    pub fn truth(&self, row: usize) -> Truth {
        self.rows.truth_of(row)
    }

    /// The truths of all rows, one after the other.
    pub fn truths(&self) -> impl ExactSizeIterator<Item = Truth> + '_ {
        (0..self.n_rows()).map(|row| self.truth(row))
    }

    /// The truths of all rows. They take many times the memory that they take here.
    pub fn to_truths(&self) -> Vec<Truth> {
        self.truths().collect()
    }

    /// The true category of a label in a row, if it is known.
    pub(crate) fn category(&self, row: usize, label: LabelId) -> Option<CategoryId> {
        self.rows.truth(row, label.index()).map(CategoryId::new)
    }

    /// How many truths of a row are known.
    pub fn n_known(&self, row: usize) -> usize {
        self.rows.n_known(row)
    }

    /// The rows with a known truth and a weight above 0.
    pub(crate) fn used(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.n_rows()).filter(|&row| self.is_used(row))
    }

    /// Hashes all beliefs, then all truths.
    pub(crate) fn hash_rows(&self, hasher: &mut impl Hasher) {
        let mut values = vec![0.0; self.model().n_categories()];
        for row in 0..self.n_rows() {
            self.rows.values_into(row, &mut values);
            values.iter().for_each(|value| value.to_bits().hash(hasher));
        }
        self.n_rows().hash(hasher);
        self.truths().for_each(|truth| truth.hash(hasher));
    }

    /// Where the belief of a row about a label is from.
    pub(crate) fn origin(&self, row: usize, label: LabelId) -> BeliefOrigin {
        self.rows.origin(row, label.index())
    }

    /// The rows themselves.
    pub(crate) fn stored(&self) -> &Arc<StoredRows> {
        &self.rows
    }

    /// The weights, shared.
    pub(crate) fn shared_weights(&self) -> &Arc<Vec<f64>> {
        &self.weights
    }

    /// How much each row counts.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// Whether learning uses a row: if it has weight, and some truth is known.
    pub(crate) fn is_used(&self, row: usize) -> bool {
        self.weights[row] > 0.0 && self.n_known(row) > 0
    }

    /// How many categories of a label are true in some row.
    pub(crate) fn n_seen(&self, label: LabelId) -> usize {
        let seen: BTreeSet<CategoryId> =
            (0..self.n_rows()).filter_map(|row| self.category(row, label)).collect();
        seen.len()
    }

    /// A model about the same labels with a calibrator for each classifier, fitted to the rows where the truth is known, each label by
    /// itself.
    ///
    /// Where at most one category was ever true, a calibrator would be sure of it: there beliefs are only kept from 0 and 1.
    pub fn calibrated(&self, model: &Model, method: CalibrationMethod) -> Result<Model> {
        self.calibrated_while(model, method, &mut Watch::new(&mut never()))
    }

    /// The same for as many labels as the watch allows.
    pub(crate) fn calibrated_while(
        &self,
        model: &Model,
        method: CalibrationMethod,
        watch: &mut Watch,
    ) -> Result<Model> {
        let mut builder = model.edit();
        for id in model.label_ids().filter(|id| model.label(*id).classifier().is_some()) {
            let label = model.label(id);
            let calibrator = match self.n_seen(id) {
                0 | 1 => cautious(label),
                _ => {
                    let (beliefs, truths, weights) = self.of_label(id);
                    let data = CalibrationData::new(label.n_categories(), &beliefs, &truths, Some(&weights))?;
                    data.fit(method.suited_to(label.n_categories()))?
                }
            };
            builder = builder.calibrator(label.name(), calibrator);
            if !watch.goes_on(self.n_rows() * label.n_categories() * FIT_WORK) {
                break;
            }
        }
        builder.build()
    }

    /// Whether the classifier of a label is ever sure of a category.
    pub(crate) fn is_sure(&self, label: LabelId) -> bool {
        let mut says = vec![0.0; self.model().label(label).n_categories()];
        (0..self.n_rows()).any(|row| {
            self.rows.belief_into(row, label.index(), &mut says);
            says.iter().any(|belief| *belief < SURE)
        })
    }

    /// These rows only, in this order.
    pub fn select(&self, rows: &[usize]) -> Self {
        let mut selected = StoredRows::new(self.model());
        rows.iter().for_each(|&row| selected.push_from(&self.rows, row));
        let weights = rows.iter().map(|&row| self.weights[row]).collect();
        Self { rows: Arc::new(selected), weights: Arc::new(weights), chunks: in_order(rows.len()) }
    }

    /// A classifier's beliefs about one label with their truths and weights. Other rows are left out, as by
    /// [`CalibrationData::of_label`].
    ///
    /// ```
    /// use prsl::{BeliefMatrix, Evidence, LabelId, Model, Truth};
    /// use prsl::learn::Examples;
    ///
    /// let model = Model::parse("label alarm")?;
    /// let mut beliefs = BeliefMatrix::new(&model);
    /// beliefs.push_evidence(&Evidence::new())?; // a prior
    /// beliefs.push_evidence(&Evidence::new().belief("alarm", [0.75]))?;
    /// let rows = Examples::new(beliefs, vec![Truth::from_indices([Some(0)]); 2])?;
    /// let (beliefs, truths, weights) = rows.of_label(LabelId::new(0));
    /// assert_eq!((beliefs, truths.len(), weights), (vec![0.75, 0.25], 1, vec![1.0]));
    /// # Ok::<(), prsl::Error>(())
    /// ```
    pub fn of_label(&self, label: LabelId) -> (Vec<f64>, Vec<Option<CategoryId>>, Vec<f64>) {
        let (mut beliefs, mut truths, mut weights) = (Vec::new(), Vec::new(), Vec::new());
        let mut belief = vec![0.0; self.model().label(label).n_categories()];
        for row in 0..self.n_rows() {
            let truth = self.category(row, label);
            if truth.is_some() && self.origin(row, label) == BeliefOrigin::Classifier {
                self.rows.belief_into(row, label.index(), &mut belief);
                beliefs.extend_from_slice(&belief);
                truths.push(truth);
                weights.push(self.weights[row]);
            }
        }
        (beliefs, truths, weights)
    }

    /// Takes a share of the rows apart, drawn at random: the others, and these.
    pub fn split(&self, share: f64, seed: u64) -> (Self, Self) {
        let (others, apart) = Self::split_rows(self.n_rows(), share, seed);
        (self.select(&others), self.select(&apart))
    }

    /// The rows of [`Self::split`], for this number of rows.
    pub fn split_rows(n_rows: usize, share: f64, seed: u64) -> (Vec<usize>, Vec<usize>) {
        let mut apart: Vec<usize> = (0..n_rows).collect();
        apart.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
        let n_apart = (share * n_rows as f64).round() as usize;
        let mut others = apart.split_off(n_apart.min(n_rows));
        apart.sort_unstable();
        others.sort_unstable();
        (others, apart)
    }
}

/// A model about the same labels in which classifiers that are ever sure of a category, without being calibrated, are kept
/// from 0 and 1.
pub(crate) fn cautious_model(model: &Model, is_sure: impl Fn(LabelId) -> bool) -> Result<Model> {
    let mut builder = model.edit();
    for id in model.label_ids() {
        let label = model.label(id);
        if label.classifier().is_some() && *label.calibrator() == Calibrator::Identity && is_sure(id) {
            builder = builder.calibrator(label.name(), cautious(label));
        }
    }
    builder.build()
}

/// A calibrator that only keeps beliefs from 0 and 1.
fn cautious(label: &Label) -> Calibrator {
    if label.n_categories() == 2 {
        Calibrator::Platt { slope: 1.0, intercept: 0.0 }
    } else {
        Calibrator::Temperature { temperature: 1.0 }
    }
}
