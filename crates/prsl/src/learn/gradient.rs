//! The gradient of the likelihood of a model, as sums over chunks of rows.

use super::data::{Data, Fitted};
use super::examples::Examples;
use super::objective::Layout;
use super::problem::Problem;
use super::question::Question;
use super::sums::ChunkSums;
use crate::error::{Error, Result};
use crate::infer::Limits;
use crate::model::Model;

/// The log-likelihood of the known truths, with its derivatives in the weights of rules, as sums over chunks of rows.
///
/// The weight of a rule of probability p is ln(p / (1 − p)). Sums of different chunks can be merged in any order: the bits are
/// the same.
#[derive(Clone, Debug, PartialEq)]
pub struct GradientSum {
    /// For each chunk: number of rows, weight, log-likelihood, and the derivatives.
    sums: ChunkSums,
}

/// Number of sums before the derivatives.
const FIRST: usize = 3;

/// The gradient of a model on rows, chunk by chunk. Beliefs are calibrated by the model.
///
/// Rows of weight 0 or without any known truth do not count, and neither do rows whose truth the model excludes. Rules of
/// probability 0, 0.5 and 1 are fixed: their derivatives are 0. Typical combinations are ignored.
///
/// ```
/// use prsl::learn::{Examples, gradient};
/// use prsl::{BeliefMatrix, Limits, Model, Normalize, Truth};
///
/// let model = Model::parse("label rain\nlabel wet\nrule 0.9: rain -> wet")?;
/// let chunk = |number: u32, belief: f64| {
///     let mut beliefs = BeliefMatrix::new(&model);
///     beliefs.push(&[Some(belief), None, Some(0.5), None], Normalize::Never)?;
///     Ok(Examples::new(beliefs, vec![Truth::from_indices([Some(0), Some(0)])])?.as_chunk(number))
/// };
/// let rows: prsl::Result<Vec<Examples>> = vec![chunk(0, 0.7), chunk(1, 0.6)].into_iter().collect();
/// let rows = rows?;
/// let mut sum = gradient(&model, &rows[1], Limits::default())?;
/// sum.merge(gradient(&model, &rows[0], Limits::default())?)?;
/// // The rows agree with the rule, so a larger weight explains them better.
/// assert!(sum.derivatives()[0] > 0.0);
/// # Ok::<(), prsl::Error>(())
/// ```
pub fn gradient(model: &Model, rows: &Examples, limits: Limits) -> Result<GradientSum> {
    let n_rules = model.rules().len();
    let is_free = |rule: &usize| ![0.0, 0.5, 1.0].contains(&model.rules()[*rule].probability());
    let free_rules: Vec<usize> = (0..n_rules).filter(is_free).collect();
    let data = Data::new(model, rows, &vec![Fitted::No; model.labels().len()])?;
    let problem = Problem::new(model, data, free_rules.clone(), limits)?;
    let mut compiled = problem.compile(&[], &[])?;
    let parameters = problem.free_weights();
    problem.reweigh(&mut compiled.engine, &parameters);
    let question = Question::Gradient { rules: compiled.rules(), parameters };
    let layout = Layout::new(&problem, 0);
    let mut sums = ChunkSums::new(FIRST + n_rules);
    for (place, (chunk, n_used)) in problem.data.chunks.iter().enumerate() {
        let totals = problem.totals_of_chunk(chunk, *n_used);
        let found = problem.answer(&question, Some(&compiled.engine), place);
        let mut part = vec![totals[1], totals[2], totals[4] + found[0]];
        part.resize(FIRST + n_rules, 0.0);
        let derivatives = layout.derivatives(&free_rules, &found);
        free_rules.iter().zip(derivatives).for_each(|(rule, slope)| part[FIRST + rule] = slope);
        sums.merge(ChunkSums::of(chunk.number, part))?;
    }
    Ok(GradientSum { sums })
}

impl GradientSum {
    /// Adds the sums of other chunks. Returns an error if there is a chunk in both, or if they are of another model.
    pub fn merge(&mut self, other: Self) -> Result<()> {
        self.sums.merge(other.sums)
    }

    /// Number of rows.
    pub fn n_rows(&self) -> u64 {
        self.sums.total()[0] as u64
    }

    /// The sum of their weights.
    pub fn weight(&self) -> f64 {
        self.sums.total()[1]
    }

    /// The log-likelihood of the known truths.
    pub fn log_likelihood(&self) -> f64 {
        self.sums.total()[2]
    }

    /// For each rule, the derivative of the log-likelihood in its weight.
    pub fn derivatives(&self) -> Vec<f64> {
        self.sums.total().split_off(FIRST)
    }

    /// The sums of each chunk.
    pub fn sums(&self) -> &ChunkSums {
        &self.sums
    }

    /// The sums as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.sums.to_bytes()
    }

    /// Reads [`Self::to_bytes`]. Returns an error if the bytes are damaged.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let sums = ChunkSums::from_bytes(bytes)?;
        match sums.total().len() >= FIRST {
            true => Ok(Self { sums }),
            false => Err(Error::Sums { problem: "the sums are too few for a gradient".to_owned() }),
        }
    }
}
