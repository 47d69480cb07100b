//! Learning: rules, calibrators and typical combinations from rows whose truth is known, all or in part.
//!
//! [`Learner`] climbs the joint log-likelihood of [`Examples`] by exact gradients: rules live in the cliques of a thin tree, so that
//! one pass over a row gives ln Z, all marginals and the derivative in every number, at any number of labels.

mod adam;
mod calibration;
mod candidates;
mod climb;
mod clique_tree;
mod examples;
mod factor;
mod halves;
mod hidden;
mod learner;
mod loopy;
mod mass;
mod objective;
mod old_paper;
mod outer;
pub mod paper;
mod readable;
mod regularizer;
mod scopes;
mod sweep;
mod table;
mod task;
mod typical;
mod watch;
mod wide;

pub use climb::{LOOK, Look};
pub use examples::Examples;
pub use learner::{Calibrating, Gradients, Learned, Learner, Progress};
pub use old_paper::Paper;
pub use task::Size;
