//! Scores of a model on rows in chunks.

use super::examples::Examples;
use super::remote::{RemoteRows, ask_for_scores};
use super::sums::ChunkSums;
use crate::belief::BeliefMatrix;
use crate::error::{Error, Result};
use crate::infer::{EngineSettings, Engines, Limits};
use crate::metrics::joint_log_likelihoods;
use crate::model::Model;

/// The log-likelihood of an impossible truth, as in [`metrics`](crate::metrics): ln 1e-300.
const IMPOSSIBLE: f64 = -690.775_527_898_213_7;
/// Number of sums.
const WIDTH: usize = 7;

/// Scores of a model on rows with known truths, as sums over chunks. Rows count by their weights.
///
/// ```
/// use prsl::learn::{Examples, ScoreSum};
/// use prsl::{BeliefMatrix, Evidence, Limits, Model, Truth};
///
/// let model = Model::parse("label alarm")?;
/// let mut beliefs = BeliefMatrix::new(&model);
/// beliefs.push_evidence(&Evidence::new().belief("alarm", [0.8]))?;
/// let rows = Examples::new(beliefs, vec![Truth::from_indices([Some(0)])])?;
/// let scores = ScoreSum::of(&model, &rows, Limits::default())?;
/// assert_eq!(scores.joint_accuracy(), Some(1.0));
/// assert!((scores.log_likelihood().expect("exact") - 0.8f64.ln()).abs() < 1e-12);
/// # Ok::<(), prsl::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ScoreSum {
    /// For each chunk: scored rows; their weight; Σ ω ln P(truth); the weight of those with a known log-likelihood; the weight
    /// of those with a most probable assignment; of those where it is right; and the number of impossible rows.
    sums: ChunkSums,
}

impl ScoreSum {
    /// The scores of rows, chunk by chunk.
    pub fn of(model: &Model, rows: &Examples, limits: Limits) -> Result<Self> {
        let settings = EngineSettings { limits, ..EngineSettings::default() };
        let engines = Engines::new(model).with_settings(settings);
        let marginals = engines.marginals()?;
        let best = match engines.assignments() {
            Err(Error::TooCostly { .. }) => None,
            engine => Some(engine?),
        };
        let mut sums = ChunkSums::new(WIDTH);
        for chunk in rows.chunks() {
            let used: Vec<usize> = chunk.rows.clone().filter(|&row| rows.is_used(row)).collect();
            let rows = rows.select(&used);
            let beliefs = rows.beliefs_for(model)?;
            let best = best.as_ref().map(|engine| engine.best_batch(&beliefs)).transpose()?;
            let posteriors = marginals.infer_batch(&beliefs)?;
            let infer = |rows: &BeliefMatrix| marginals.infer_batch(rows);
            let truths = rows.to_truths();
            let joint = joint_log_likelihoods(&beliefs, &truths, &posteriors, infer)?;
            let mut part = vec![0.0; WIDTH];
            for (row, (truth, &weight)) in truths.iter().zip(rows.weights()).enumerate() {
                part[0] += 1.0;
                part[1] += weight;
                if let Some(log) = joint.as_ref().and_then(|joint| joint[row]) {
                    part[2] += weight * log.max(IMPOSSIBLE);
                    part[3] += weight;
                    part[6] += f64::from(u8::from(log == f64::NEG_INFINITY));
                }
                if let Some(best) = &best {
                    let is_right = best[row].as_ref().is_some_and(|best| {
                        truth.known().all(|(label, category)| best.assignment.category(label) == category)
                    });
                    part[4] += weight;
                    part[5] += if is_right { weight } else { 0.0 };
                }
            }
            sums.merge(ChunkSums::of(chunk.number, part))?;
        }
        Ok(Self { sums })
    }

    /// The scores of rows that are elsewhere.
    pub fn ask(model: &Model, rows: &mut dyn RemoteRows, limits: Limits) -> Result<Self> {
        Self::checked(ask_for_scores(model, rows, limits)?)
    }

    /// Adds the scores of other chunks. Returns an error if there is a chunk in both.
    pub fn merge(&mut self, other: Self) -> Result<()> {
        self.sums.merge(other.sums)
    }

    /// Number of rows with weight and a known truth.
    pub fn n_rows(&self) -> u64 {
        self.sums.total()[0] as u64
    }

    /// Mean joint log-likelihood of the known truths. An impossible truth counts as ln 1e-300. `None` without rows, or if exact
    /// inference is too costly.
    pub fn log_likelihood(&self) -> Option<f64> {
        let total = self.sums.total();
        (total[3] > 0.0).then(|| total[2] / total[3])
    }

    /// Share of rows whose most probable assignment is right. `None` without rows, or if it is too costly.
    pub fn joint_accuracy(&self) -> Option<f64> {
        let total = self.sums.total();
        (total[4] > 0.0).then(|| total[5] / total[4])
    }

    /// Number of rows whose truth has probability 0.
    pub fn n_impossible(&self) -> u64 {
        self.sums.total()[6] as u64
    }

    /// The scores as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.sums.to_bytes()
    }

    /// Reads [`Self::to_bytes`]. Returns an error if the bytes are damaged.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        Self::checked(ChunkSums::from_bytes(bytes)?)
    }

    fn checked(sums: ChunkSums) -> Result<Self> {
        match sums.total().len() {
            WIDTH => Ok(Self { sums }),
            n => Err(Error::Sums { problem: format!("{n} sums are no scores, expected {WIDTH}") }),
        }
    }
}
