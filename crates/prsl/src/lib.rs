#![doc = include_str!("../docs/crate.md")]
#![doc = ""]
#![doc = include_str!("../docs/language.md")]
#![forbid(unsafe_code)]

mod belief;
mod calibrate;
mod combination;
mod diagnostic;
mod error;
mod evidence;
mod expectation;
mod explain;
mod export;
mod formula;
mod infer;
mod json;
mod label;
pub mod learn;
pub mod lint;
pub mod log_space;
pub mod metrics;
mod model;
mod names;
mod noisy_or;
mod posterior;
mod rule;
mod sentence;
pub mod simulate;
mod text;

pub use belief::{BeliefMatrix, BeliefOrigin, Normalize, SUM_TOLERANCE};
pub use calibrate::{
    CALIBRATION_ERROR_BINS, CONFUSION_ROWS, Calibrate, CalibrationData, CalibrationMethod,
    CalibrationProblem, Calibrator, Confusion, DIRICHLET_RIDGE, Dirichlet, FOLDS, INTERCEPT_RIDGE,
    ISOTONIC_ROWS, Isotonic, MAX_PARAMETER, RIDGE, SMOOTH,
};
pub use combination::Combination;
pub use diagnostic::{Diagnostic, Diagnostics, nearest};
pub use error::{Error, Result};
pub use evidence::Evidence;
pub use expectation::{Comparison, Condition, Expectation, Given};
pub use explain::{
    Became, CategoryExplanation, Change, Choice, Explainer, Explanation, Influence, JointExplanation,
    LabelExplanation, MOVED, RuleExplanation, RuleKind,
};
pub use export::{ExportFormat, export, export_uai_names, export_within};
pub use formula::{Atom, Bound, Formula, MAX_DEPTH, Node, NodeId};
pub use infer::engines;
pub use infer::{
    BranchAndBound, Cost, Decoded, Enumeration, ExplanationEngine, Gibbs, GibbsSettings, JunctionTree,
    Limits, Loopy, LoopySettings, MAX_EXPLANATION_WORK, MAX_WORK, MarginalEngine, MaxProductTree, Sampler,
    Samples, Sampling, Schedule, SearchLimits,
};
pub use json::json_schema;
pub use label::{CategoryId, Classifier, Label, LabelId, NO, YES};
pub use model::{Model, ModelBuilder};
pub use noisy_or::{Inhibition, NoisyOr};
pub use posterior::{
    Engine, MostProbable, Posterior, Posteriors, RankedExplanations, SearchEnd, Status, Stopped,
};
pub use rule::{Body, Rule, RuleId};
pub use text::{Document, MAX_BYTES, format};
