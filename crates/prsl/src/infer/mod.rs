//! Engines: a model is compiled once and answers many rows.

pub(crate) mod branch_and_bound;
pub(crate) mod choice;
pub(crate) mod diagram;
pub mod engines;
pub(crate) mod enumeration;
pub(crate) mod factor;
pub(crate) mod gibbs;
pub(crate) mod junction_tree;
pub(crate) mod loopy;
pub(crate) mod mpe;
pub(crate) mod ordered;
pub(crate) mod outcome;
pub(crate) mod possible;
pub(crate) mod sampler;
pub(crate) mod semiring;
pub(crate) mod typical;

pub use branch_and_bound::{BranchAndBound, SearchLimits};
pub use choice::{ExplanationEngine, MAX_EXPLANATION_WORK, MAX_WORK, MarginalEngine};
pub use enumeration::Enumeration;
pub use gibbs::{Gibbs, GibbsSettings};
pub use junction_tree::{Cost, JunctionTree, Limits};
pub use loopy::{Decoded, Loopy, LoopySettings, Schedule};
pub use mpe::MaxProductTree;
pub use sampler::{Sampler, Samples, Sampling};

use crate::error::Result;
use crate::evidence::Evidence;
use crate::model::Model;
use crate::posterior::Posterior;

impl Model {
    /// Compiles the model and asks it one question, exactly; for many questions compile a [`JunctionTree`].
    pub fn infer(&self, evidence: &Evidence) -> Result<Posterior> {
        JunctionTree::compile(self)?.infer(evidence)
    }
}
