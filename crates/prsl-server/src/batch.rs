//! Answers to many rows, chunk by chunk, so that a request can be cancelled.

use std::collections::BTreeMap;

use prsl::infer::{AssignmentEngine, RankedAssignments, Stopped};
use prsl::{BeliefMatrix, Engine, MostProbable, Posteriors};

use crate::problem::Problem;
use crate::served::Served;
use crate::service::Service;
use crate::work::Watch;

/// What is wanted of every row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// Marginals and ln Z.
    pub(crate) marginals: bool,
    /// This many most probable assignments.
    pub(crate) best: Option<usize>,
}

/// The answers of some rows.
pub(crate) struct Answers {
    /// Number of rows.
    pub(crate) n_rows: usize,
    /// The marginals, if wanted.
    pub(crate) posteriors: Option<Posteriors>,
    /// The assignments, if wanted.
    pub(crate) best: Option<Vec<RankedAssignments>>,
    /// ln Z, if the marginals do not have it.
    log_evidence: Option<Posteriors>,
}

impl Answers {
    /// ln of the probability of an assignment; `None` if the exact evidence is not known.
    pub(crate) fn log_probability(&self, row: usize, best: &MostProbable) -> Option<f64> {
        let exact = self.posteriors.as_ref().filter(|it| it.engine() != Engine::Loopy);
        let exact = exact.or(self.log_evidence.as_ref())?;
        if matches!(exact.stopped(row), Stopped::Imprecise { .. }) || !exact.is_possible(row) {
            return None;
        }
        // Rounding may give a probability slightly above 1.
        Some((best.log_weight - exact.log_evidence(row)).min(0.0))
    }
}

/// Multiply-adds of a chunk. They take a fraction of a second, so a cancelled request ends soon.
const CHUNK_WORK: f64 = 2e8;

/// Answers all rows. Returns an error if the request is cancelled, or takes too long.
pub(crate) fn answer_rows(
    service: &Service,
    served: &Served,
    rows: &BeliefMatrix,
    wanted: Wanted,
    watch: &Watch,
) -> Result<Vec<Answers>, Problem> {
    let assignments = wanted.best.map(|_| served.assignments()).transpose()?;
    let best_work = assignments.map_or(0.0, AssignmentEngine::work) * wanted.best.unwrap_or(0) as f64;
    let work = if wanted.marginals { served.marginals.work() } else { 0.0 } + best_work;
    // Rows are computed eight side by side.
    let chunk = ((CHUNK_WORK / work.max(1.0)) as usize / 8 * 8).clamp(8, 4096);
    let mut answers = Vec::new();
    for start in (0..rows.n_rows()).step_by(chunk) {
        watch.check()?;
        let end = (start + chunk).min(rows.n_rows());
        let is_whole = start == 0 && end == rows.n_rows();
        let part = if is_whole { None } else { Some(rows.slice(start..end)) };
        answers.push(answer_chunk(served, part.as_ref().unwrap_or(rows), wanted, assignments)?);
    }
    count(service, served, &answers);
    Ok(answers)
}

fn answer_chunk(
    served: &Served,
    rows: &BeliefMatrix,
    wanted: Wanted,
    assignments: Option<&AssignmentEngine>,
) -> Result<Answers, Problem> {
    let posteriors = wanted.marginals.then(|| served.marginals.infer_batch(rows)).transpose()?;
    let best = assignments.zip(wanted.best).map(|(engine, n)| engine.top_batch(rows, n)).transpose()?;
    let log_evidence = match (&posteriors, &best) {
        (None, Some(_)) => {
            served.log_evidence()?.map(|engine| engine.infer_batch(rows)).transpose()?.flatten()
        }
        _ => None,
    };
    Ok(Answers { n_rows: rows.n_rows(), posteriors, best, log_evidence })
}

/// Counts the rows by their status.
fn count(service: &Service, served: &Served, answers: &[Answers]) {
    let mut by_status = BTreeMap::new();
    for chunk in answers {
        for row in 0..chunk.n_rows {
            *by_status.entry(chunk.status(row)).or_insert(0) += 1;
        }
    }
    let engine = served.marginals.engine().name();
    for (status, n) in by_status {
        service.metrics().count_rows(&served.name, engine, status.name(), n);
    }
}
