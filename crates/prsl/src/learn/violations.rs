//! How often rules are violated, and how often a model expects it, as sums over chunks of rows.

use super::examples::Examples;
use super::gain::Counts;
use super::sums::ChunkSums;
use crate::belief::BeliefMatrix;
use crate::error::{Error, Result};
use crate::infer::{EngineChoice, Engines, Limits, MarginalEngine};
use crate::model::Model;
use crate::rule::Rule;

/// Number of sums for each rule.
const PER_RULE: usize = 3;

/// How often known truths violate rules, how often a model without these rules expects it, and what the rules would gain.
///
/// Sums of different chunks can be merged in any order: the bits are the same. The learner of clauses estimates gains with the
/// same formula, from samples; these sums are exact, and the rules may be of any kind.
///
/// ```
/// use prsl::learn::{Examples, ViolationSum};
/// use prsl::{BeliefMatrix, Evidence, Limits, Model, Truth};
///
/// let model = Model::parse("label rain\nlabel wet")?;
/// let candidates = Model::parse("label rain\nlabel wet\nrule 0.9: rain -> wet\nrule 0.9: wet -> rain")?;
/// let mut beliefs = BeliefMatrix::new(&model);
/// (0..100).try_for_each(|_| beliefs.push_evidence(&Evidence::new()))?;
/// // Rain and wet in half of the rows, wet alone in the others.
/// let truths = (0..100).map(|row| Truth::from_indices([Some(row % 2), Some(0)])).collect();
/// let sum = ViolationSum::of(&model, &candidates, &Examples::new(beliefs, truths)?, Limits::default())?;
/// assert_eq!(sum.broken(), [0.0, 50.0]);
/// assert!(sum.expected().iter().all(|expected| (expected - 25.0).abs() < 1e-9));
/// let gains = sum.gains();
/// assert!(gains[0] > 10.0 && gains[1] == 0.0);
/// # Ok::<(), prsl::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ViolationSum {
    /// For each chunk, the number of rows; then for each rule its violations, those expected, and their variance.
    sums: ChunkSums,
}

impl ViolationSum {
    /// The sums for the rules of `candidates`, whose labels are those of the model. A rule of probability below 0.5 is violated
    /// where its formula holds.
    ///
    /// Rows of weight 0 or without any known truth do not count, and neither do rows whose truth the model excludes. Where a
    /// rule has labels of unknown truth, its violations are those that the model expects given the known ones.
    pub fn of(model: &Model, candidates: &Model, rows: &Examples, limits: Limits) -> Result<Self> {
        if !model.without_calibrators().same_labels(&candidates.without_calibrators()) {
            let problem = "the candidates are about other labels than the model".to_owned();
            return Err(Error::Examples { problem });
        }
        let compile = |model: &Model| {
            Engines::new(model).with_choice(EngineChoice::Exact).with_limits(limits).marginals()
        };
        let alone = compile(model)?;
        let with_rule = |rule: &Rule| {
            let p = if rule.probability() < 0.5 { 0.0 } else { 1.0 };
            compile(&model.edit().add_rule(rule.clone().with_probability(p)).build()?)
        };
        let with = candidates.rules().iter().map(with_rule).collect::<Result<Vec<_>>>()?;
        let mut sums = ChunkSums::new(1 + PER_RULE * with.len());
        for chunk in rows.chunks() {
            let used: Vec<usize> = chunk.rows.clone().filter(|&row| rows.is_used(row)).collect();
            sums.merge(ChunkSums::of(chunk.number, of_chunk(model, (&alone, &with), &rows.select(&used))?))?;
        }
        Ok(Self { sums })
    }

    /// Adds the sums of other chunks. Returns an error if there is a chunk in both, or if they are of other rules.
    pub fn merge(&mut self, other: Self) -> Result<()> {
        self.sums.merge(other.sums)
    }

    /// Number of rows.
    pub fn n_rows(&self) -> u64 {
        self.sums.total()[0] as u64
    }

    /// For each rule, the weight of the rows that violate it.
    pub fn broken(&self) -> Vec<f64> {
        self.counts().map(|counts| counts.data).collect()
    }

    /// For each rule, the weight of violations that the model expects.
    pub fn expected(&self) -> Vec<f64> {
        self.counts().map(|counts| counts.expected).collect()
    }

    /// For each rule, the estimated gain in penalized log-likelihood if it were added with its best weight, in nats. Nothing is
    /// subtracted for its description.
    pub fn gains(&self) -> Vec<f64> {
        self.counts().map(|counts| counts.gain()).collect()
    }

    fn counts(&self) -> impl Iterator<Item = Counts> {
        let total = self.sums.total().split_off(1);
        let of_rule = |at| Counts { data: total[at], expected: total[at + 1], variance: total[at + 2] };
        (0..total.len()).step_by(PER_RULE).map(of_rule).collect::<Vec<_>>().into_iter()
    }

    /// The sums as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.sums.to_bytes()
    }

    /// Reads [`Self::to_bytes`]. Returns an error if the bytes are damaged.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let sums = ChunkSums::from_bytes(bytes)?;
        match sums.total().len() % PER_RULE {
            1 => Ok(Self { sums }),
            _ => Err(Error::Sums { problem: "the sums are not those of violated rules".to_owned() }),
        }
    }
}

/// The sums of a chunk. As a hard rule, a rule turns the evidence of a row Z into Z (1 − v), where v is the probability that
/// it is violated.
fn of_chunk(
    model: &Model,
    (alone, with): (&MarginalEngine, &[MarginalEngine]),
    rows: &Examples,
) -> Result<Vec<f64>> {
    let free = rows.beliefs_for(model)?;
    let mut known = free.clone();
    for (row, truth) in rows.truths().enumerate() {
        for (label, category) in truth.known() {
            known.observe(row, label, category)?;
        }
    }
    let log_evidence = |engine: &MarginalEngine, rows: &BeliefMatrix| -> Result<Vec<f64>> {
        let posteriors = engine.infer_batch(rows)?;
        Ok((0..rows.n_rows()).map(|row| posteriors.log_evidence(row)).collect())
    };
    let (base_free, base_known) = (log_evidence(alone, &free)?, log_evidence(alone, &known)?);
    let possible: Vec<usize> =
        (0..rows.n_rows()).filter(|&row| base_known[row] > f64::NEG_INFINITY).collect();
    let mut sums = vec![possible.len() as f64];
    for engine in with {
        let (with_free, with_known) = (log_evidence(engine, &free)?, log_evidence(engine, &known)?);
        // 1 − Z with the rule / Z
        let violated = |with: f64, base: f64| (-(with - base).exp_m1()).clamp(0.0, 1.0);
        let mut of_rule = [0.0; PER_RULE];
        for &row in &possible {
            let weight = rows.weights()[row];
            let expected = violated(with_free[row], base_free[row]);
            of_rule[0] += weight * violated(with_known[row], base_known[row]);
            of_rule[1] += weight * expected;
            of_rule[2] += weight * expected * (1.0 - expected);
        }
        sums.extend(of_rule);
    }
    Ok(sums)
}
