//! Rule induction: clauses are added one at a time where the likelihood gains most.
mod candidates;
mod combinations;
mod data;
mod feature;
mod fit;
mod gain;
mod induction;
mod learner;
mod objective;
pub use learner::{ClauseLearned, ClauseLearner};
