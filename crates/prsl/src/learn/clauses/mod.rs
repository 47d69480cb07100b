//! Rule induction: clauses are added one at a time where the likelihood gains most.
mod candidates;
mod combinations;
mod data;
mod feature;
mod fit;
mod gain;
mod induction;
mod learner;
mod notes;
mod objective;
mod priors;
pub use learner::{Addition, Calibrating, Learned, Learner, Phase, Progress};
