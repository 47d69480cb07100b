//! Inference engines. A model is compiled once, and then answers any number of rows.
//!
//! Exact inference, as in section 3.5 of the paper, is [`JunctionTree`] or [`Circuit`]. [`Engines`] chooses an engine by its cost.
//!
//! | engine | answers | exact |
//! |---|---|---|
//! | [`JunctionTree`] | marginals, ln Z, samples | yes |
//! | [`Circuit`] | everything, for models with many hard rules | yes |
//! | [`MaxProductTree`] | most probable assignments | yes |
//! | [`BranchAndBound`] | most probable assignments of models of any treewidth | proven within a counted budget |
//! | [`Loopy`] | marginals and a likely assignment of large models | no |
//! | [`Gibbs`] | samples of large models | no |
//! | [`Enumeration`] | everything, for small models: the reference in tests | yes |
//!
//! All engines have the same verbs. `infer`, `agreement`, `best`, `top` and `sample` take one [`Instance`]: evidence by
//! name, or a row of a matrix. `infer_batch`, `best_batch`, `top_batch` and `sample_batch` take a
//! [`BeliefMatrix`](crate::BeliefMatrix).
//!
//! [`Engines`] compiles an engine for each kind of query. They share the factors of the model.
//!
//! | query | automatic choice |
//! |---|---|
//! | marginals, [`Engines::marginals`] | the cheaper of junction tree and circuit if a row takes at most 2e9 multiply-adds, else loopy propagation |
//! | most probable assignments, [`Engines::assignments`] | a small circuit if most rules are hard, a junction tree up to 2e4 multiply-adds a row, else branch and bound |
//! | joint samples, [`Engines::sampler`] | the cheaper of junction tree and circuit if it fits the memory, else Gibbs sampling |
//!
//! ```
//! use prsl::infer::{EngineChoice, Engines};
//! use prsl::{BeliefMatrix, Evidence, Model};
//!
//! let model = Model::parse("label weather: sun, rain\nlabel ground: dry, wet\nrule 0.95: wet <- rain")?;
//! let mut rows = BeliefMatrix::new(&model);
//! rows.push_evidence(&Evidence::new().belief("weather", [0.1, 0.9]).belief("ground", [0.7, 0.3]))?;
//! let engine = Engines::new(&model).with_choice(EngineChoice::Exact).marginals()?;
//! let posteriors = engine.infer_batch(&rows)?;
//! assert!((posteriors.marginals(0).expect("possible")[1] - 0.752).abs() < 5e-4);
//! # Ok::<(), prsl::Error>(())
//! ```

pub(crate) mod account;
mod arrangement;
pub(crate) mod branch_and_bound;
pub(crate) mod circuit;
pub(crate) mod counter;
pub(crate) mod diagram;
pub(crate) mod engines;
pub(crate) mod enumeration;
pub(crate) mod expectations;
pub(crate) mod factor;
pub(crate) mod gibbs;
pub(crate) mod junction_tree;
pub(crate) mod limits;
pub(crate) mod loopy;
pub(crate) mod max_product;
pub(crate) mod ordered;
pub(crate) mod ranking;
pub(crate) mod samples;
pub(crate) mod semiring;
pub(crate) mod typical;
pub(crate) mod weighted;

pub use branch_and_bound::{BranchAndBound, SearchLimits};
pub use circuit::{Circuit, CircuitSize, Gradient};
pub use engines::{
    AssignmentEngine, EngineChoice, EngineSettings, Engines, LogEvidence, MarginalEngine, Sampler,
};
pub use enumeration::Enumeration;
pub use gibbs::{Gibbs, GibbsSettings};
pub use junction_tree::JunctionTree;
pub use limits::{Cost, Limits};
pub use loopy::{Decoded, Loopy, LoopySettings, Schedule};
pub use max_product::MaxProductTree;
pub use samples::{Samples, Sampling};

pub use crate::belief::Instance;
pub use crate::posterior::{RankedAssignments, SearchEnd, Stopped};

use crate::error::Result;
use crate::model::Model;
use crate::posterior::Posterior;

impl Model {
    /// Compiles a suitable engine and answers one instance. For many instances, compile [`Engines`] once.
    pub fn infer(&self, instance: &impl Instance) -> Result<Posterior> {
        Engines::new(self).marginals()?.infer(instance)
    }
}
