//! The probabilistic rule stacking learner.
#![forbid(unsafe_code)]
