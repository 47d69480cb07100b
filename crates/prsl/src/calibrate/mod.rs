//! Calibration: fits calibrators to rows of known truth, and evaluates them.

mod data;
mod fit;
pub(crate) mod minimize;
mod pool;

pub use crate::belief::BeliefOrigin;
pub use crate::calibrator::{Calibrate, Calibrator, Confusion, Dirichlet, Isotonic};
pub use crate::error::CalibrationProblem;
pub use data::CalibrationData;
pub use fit::CalibrationMethod;
