#![doc = include_str!("../docs/crate.md")]
#![doc = ""]
#![doc = include_str!("../docs/language.md")]
#![forbid(unsafe_code)]

mod assignment;
mod belief;
pub mod calibrate;
mod calibrator;
mod combination;
mod diagnostic;
mod distribution;
pub mod editor;
mod error;
mod evidence;
mod expectation;
pub mod explain;
pub mod export;
mod formula;
pub mod infer;
mod json;
mod label;
pub mod learn;
pub mod lint;
mod log_space;
mod logic;
pub mod metrics;
pub mod model;
mod names;
mod noisy_or;
mod notation;
mod outcome;
mod posterior;
mod rule;
mod sentence;
pub mod simulate;
mod syntax;
mod text;
mod truth;

pub use assignment::Assignment;
pub use belief::{BeliefMatrix, Normalize, Row};
pub use error::{Error, Result};
pub use evidence::Evidence;
pub use explain::{Explainer, Explanation};
pub use formula::Formula;
pub use infer::{BranchAndBound, Engines, JunctionTree, Limits, Loopy};
pub use label::{CategoryId, Label, LabelId};
pub use model::{Model, ModelBuilder};
pub use noisy_or::NoisyOr;
pub use posterior::{Engine, MostProbable, Posterior, Posteriors, Status};
pub use rule::{Body, Rule, RuleId};
pub use text::Document;
pub use truth::Truth;
