//! Learning: rules, calibrators and typical combinations from rows whose truths are known, all or in part.
//!
//! The default recipe is rule induction ([`Learner`]; Della Pietra, Della Pietra and Lafferty, "Inducing features of random
//! fields", 1997). A rule `p: clause` multiplies an assignment that violates the clause by (1 − p) / p. With w = ln(p / (1 −
//! p)) the model is log-linear in the violations v of its rules:
//!
//! ```text
//! P(y | x)  ∝  ∏ⱼ πⱼ(yⱼ) · exp(−Σₖ wₖ vₖ(y)) · S(y)
//! ```
//!
//! Rules are added one at a time where the likelihood gains most, until no rule pays for its description.
//!
//! | module | content |
//! |---|---|
//! | `stored`, `examples` | rows in little memory, and as users give them |
//! | `chunks`, `data` | fixed chunks of rows, and rows in the form that learning needs |
//! | `sums`, `gradient`, `scores` | sums over chunks, which add up to the same bits in any order |
//! | `question`, `remote` | what is asked of all rows, and rows that are elsewhere |
//! | `feature` | violations of clauses and count rules |
//! | `sheet`, `candidates`, `triples` | samples of the model as bits, and all candidates |
//! | `gain`, `prices` | what each candidate would gain, and what it costs |
//! | `chance` | whether the gains are more than chance explains |
//! | `problem`, `objective`, `fisher`, `fit` | base and rows; the penalized likelihood with its gradient and Hessian; L-BFGS |
//! | `induction`, `refine` | the loop that adds rules, and corrects earlier additions |
//! | `softening` | clauses of which one inhibition probability is a number |
//! | `combinations`, `notes`, `priors` | what follows when no rule pays any more |
//! | `learner` | settings, progress and the result |
//! | `calibration` | calibrators beside rules that are given |
//! | `cross_validation` | scores on rows that were not learned from |
//! | `contradictions` | expert rules that the rows contradict |
//! | [`paper`] | the recipe of the paper: noisy-or rules by ADAM |

mod calibration;
mod candidates;
mod chance;
mod chunks;
mod combinations;
mod contradictions;
mod cross_validation;
mod data;
mod examples;
mod feature;
mod fisher;
mod fit;
mod gain;
mod gradient;
mod induction;
mod learner;
mod notes;
mod objective;
pub mod paper;
mod prices;
mod priors;
mod problem;
mod question;
mod refine;
mod remote;
mod scores;
mod sheet;
mod softening;
mod stored;
mod sums;
#[cfg(test)]
mod tests;
mod triples;
mod violations;
mod watch;

pub use calibration::Calibrated;
pub use chunks::{chunk_of, n_chunks};
pub use contradictions::{Contradiction, contradictions};
pub use cross_validation::{CrossValidation, Estimate, Fold};
pub use examples::Examples;
pub use gradient::{GradientSum, gradient};
pub use learner::{Addition, Calibrating, Learned, Learner, Phase, Progress};
pub use remote::{ChunkWorker, RemoteRows};
pub use scores::ScoreSum;
pub use sums::ChunkSums;
pub use violations::ViolationSum;
pub use watch::TimeLimit;
