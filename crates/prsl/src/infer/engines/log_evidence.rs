//! ln Z for queries of most probable assignments.

use super::exact::{Choice, Exact};
use super::{EngineChoice, Engines, MAX_WORK, MarginalEngine};
use crate::belief::BeliefMatrix;
use crate::error::Result;
use crate::posterior::{Engine, Posteriors};

/// Maximum multiply-adds per row for computing ln Z unless it is requested. This takes less than a millisecond, about
/// as long as branch and bound.
const MAX_SUM_WORK: f64 = 1e6;

/// An engine for ln Z, for queries without exact marginals. The probability of an assignment needs ln Z.
#[derive(Debug)]
pub struct LogEvidence {
    engine: Option<Exact>,
    reason: String,
}

impl LogEvidence {
    pub(super) fn beside(engines: &Engines, marginals: Option<&MarginalEngine>) -> Result<Option<Self>> {
        Ok(match marginals {
            Some(marginals) if marginals.engine() != Engine::Loopy => None,
            Some(marginals) if marginals.is_automatic() => Some(Self::none("the marginals are not exact")),
            _ => {
                let is_exact = !matches!(engines.choice, EngineChoice::Auto | EngineChoice::Loopy);
                Some(Self::compile(engines, if is_exact { MAX_WORK } else { MAX_SUM_WORK })?)
            }
        })
    }

    /// Compiles an exact engine if a row takes at most `max_work` multiply-adds.
    fn compile(engines: &Engines, max_work: f64) -> Result<Self> {
        match engines.exact_within(max_work)? {
            Choice::Engine(engine, _) => {
                let reason = engine.cost();
                Ok(Self { engine: Some(engine), reason })
            }
            Choice::Refused(why, _) if max_work < MAX_WORK => Ok(Self::none(format_args!(
                "{why}; to compute it, use the exact engine or query marginals too"
            ))),
            Choice::Refused(why, _) => Ok(Self::none(why)),
        }
    }

    /// No ln Z, for this reason.
    fn none(reason: impl std::fmt::Display) -> Self {
        Self { engine: None, reason: format!("none: {reason}") }
    }

    /// ln Z of every row; `None` if it is too expensive.
    pub fn infer_batch(&self, rows: &BeliefMatrix) -> Result<Option<Posteriors>> {
        self.engine.as_ref().map(|engine| engine.infer_batch(rows)).transpose()
    }

    /// The engine that answers and the reason, or the reason why there is none.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// An estimate of the number of multiplications per row.
    pub fn work(&self) -> f64 {
        self.engine.as_ref().map_or(0.0, Exact::work)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Model;

    #[test]
    fn the_probability_of_an_assignment_is_computed_where_it_is_cheap_or_asked_for() {
        let model = Model::parse("label a\nlabel b\nrule 0.9: a -> b").expect("a model");
        let mut rows = BeliefMatrix::new(&model);
        rows.push_evidence(&crate::Evidence::new()).expect("a row");
        let within = |work| LogEvidence::compile(&Engines::new(&model), work).expect("a small tree");
        let cheap = within(MAX_SUM_WORK);
        assert!(cheap.reason().starts_with("junction tree: "), "{}", cheap.reason());
        assert!(cheap.infer_batch(&rows).expect("its rows").is_some() && cheap.work() > 1.0);
        let slow = within(1.0);
        assert!(slow.infer_batch(&rows).expect("its rows").is_none() && slow.work() == 0.0);
        let reason = slow.reason();
        assert!(reason.starts_with("none: exact inference needs "), "{reason}");
        assert!(reason.ends_with("; to compute it, use the exact engine or query marginals too"), "{reason}");
    }
}
