//! `POST /api/v1/predict`: marginals and most probable assignments of rows.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use prsl::infer::RankedAssignments;
use prsl::{BeliefMatrix, MostProbable, Normalize, Posteriors, Status};

use super::beliefs::Beliefs;
use super::types::{Assigned, BestAssignment, Marginals, PredictRequest, PredictResponse, Query, RowAnswer};
use crate::batch::{Answers, Wanted, answer_rows};
use crate::input::Input;
use crate::problem::Problem;
use crate::served::Served;
use crate::service::Service;
use crate::work::{Lane, Watch};

/// Predict rows
///
/// The posterior of each row, given its beliefs and the rules of a model.
#[utoipa::path(
    post, path = "/api/v1/predict", tag = "answers", request_body = PredictRequest,
    responses(
        (status = 200, description = "The answers, in the order of the rows", body = PredictResponse),
        (status = "4XX", description = "The request cannot be answered", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "Too many requests; `Retry-After` says when to try again", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn predict(State(service): State<Service>, input: Input) -> Result<Response, Problem> {
    super::answer(service, Lane::Served, input, run).await
}

fn run(service: &Service, request: PredictRequest, watch: &Watch) -> Result<PredictResponse, Problem> {
    let served = service.catalog().find(&request.model)?;
    let top = request.top.unwrap_or(1);
    let rows = rows(request.beliefs, request.rows)?;
    check_size(service, &served, rows.len(), top)?;
    let normalize = if request.normalize { Normalize::Always } else { Normalize::Never };
    let rows = matrix(&served, rows, normalize)?;
    let wanted = Wanted {
        marginals: request.query != Query::Mpe,
        best: (request.query != Query::Marginals).then_some(top),
    };
    let answers = answer_rows(service, &served, &rows, wanted, watch)?;
    Ok(PredictResponse {
        model: served.name.clone(),
        version: served.version.clone(),
        engine: wanted.marginals.then(|| served.marginals.engine().name()),
        rows: answers.iter().flat_map(|answers| row_answers(&served, answers)).collect(),
    })
}

/// The rows of a request that has one of the two fields.
fn rows(beliefs: Option<Beliefs>, rows: Option<Vec<Beliefs>>) -> Result<Vec<Beliefs>, Problem> {
    match (beliefs, rows) {
        (Some(beliefs), None) => Ok(vec![beliefs]),
        (None, Some(rows)) => Ok(rows),
        _ => {
            let detail = "give either `beliefs`, for one row, or `rows`";
            Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "Rows", detail))
        }
    }
}

/// Returns an error if a request has too many rows, or asks for too many assignments.
pub(crate) fn check_size(
    service: &Service,
    served: &Served,
    n_rows: usize,
    top: usize,
) -> Result<(), Problem> {
    let limits = &service.settings().limits;
    let limit = limits.rows.min(limits.numbers / served.model().n_categories().max(1));
    if n_rows > limit {
        let detail =
            format!("the request has {n_rows} rows, more than the limit of {limit}; send fewer at a time");
        return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "RowLimit", detail));
    }
    if top == 0 || n_rows.saturating_mul(top) > limit || top > 1000 {
        let detail = format!(
            "`top` is {top} for {n_rows} rows; expected 1 to 1000, and at most {limit} assignments for all rows"
        );
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "Top", detail));
    }
    Ok(())
}

/// The completed and calibrated beliefs of all rows.
fn matrix(served: &Served, rows: Vec<Beliefs>, normalize: Normalize) -> Result<BeliefMatrix, Problem> {
    let mut matrix = BeliefMatrix::new(served.model());
    let is_single = rows.len() == 1;
    for (index, Beliefs(evidence)) in rows.iter().enumerate() {
        matrix.push_evidence_with(evidence, normalize).map_err(|error| match is_single {
            true => Problem::from(error),
            false => Problem::from(error).in_row(index + 1),
        })?;
    }
    Ok(matrix)
}

/// The answers of a chunk of rows.
pub(crate) fn row_answers(served: &Served, answers: &Answers) -> Vec<RowAnswer> {
    let row = |row: usize| RowAnswer {
        status: answers.status(row).name(),
        log_evidence: answers.posteriors.as_ref().map(|it| possible(it, row).map(|_| it.log_evidence(row))),
        marginals: answers.posteriors.as_ref().map(|it| {
            let values = possible(it, row)?.to_vec();
            Some(Marginals { model: served.model().clone(), values })
        }),
        best: answers.best.as_ref().map(|best| best_assignments(served, &best[row], answers, row)),
    };
    (0..answers.n_rows).map(row).collect()
}

fn possible(posteriors: &Posteriors, row: usize) -> Option<&[f64]> {
    posteriors.marginals(row)
}

fn best_assignments(
    served: &Served,
    found: &RankedAssignments,
    answers: &Answers,
    row: usize,
) -> Vec<BestAssignment> {
    let best = |best: &MostProbable| {
        let log_probability = answers.log_probability(row, best);
        BestAssignment {
            assignment: Assigned { model: served.model().clone(), assignment: best.assignment.clone() },
            probability: log_probability.map(f64::exp),
            log_probability,
            log_weight: best.log_weight,
            proven: best.is_optimal(),
            engine: best.engine.name(),
        }
    };
    found.iter().map(best).collect()
}

impl Answers {
    /// The status of a row: the worse of its marginals and its assignments.
    pub(crate) fn status(&self, row: usize) -> Status {
        let marginals = self.posteriors.as_ref().map_or(Status::Ok, |it| it.status(row));
        let best = self.best.as_ref().map_or(Status::Ok, |it| it[row].status(0));
        marginals.max(best)
    }
}
