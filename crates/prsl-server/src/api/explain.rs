//! `POST /api/v1/explain`: the effect of each rule on one row.

use axum::extract::State;
use axum::response::Response;
use prsl::{Error, Explanation};

use super::types::{ExplainRequest, ExplainResponse};
use crate::input::Input;
use crate::problem::Problem;
use crate::served::Served;
use crate::service::Service;
use crate::work::{Lane, Watch};

/// Explain a row
///
/// The posterior with and without each rule, the agreement of every rule, and the rules in conflict.
#[utoipa::path(
    post, path = "/api/v1/explain", tag = "answers", request_body = ExplainRequest,
    responses(
        (status = 200, description = "The explanation, even if the row is impossible", body = ExplainResponse),
        (status = "4XX", description = "The request cannot be answered", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "Too many requests; `Retry-After` says when to try again", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn explain(State(service): State<Service>, input: Input) -> Result<Response, Problem> {
    super::answer(service, Lane::Served, input, run).await
}

fn run(service: &Service, request: ExplainRequest, _: &Watch) -> Result<ExplainResponse, Problem> {
    let served = service.catalog().find(&request.model)?;
    let explanation = explanation(&served, &request.beliefs.0, request.label.as_deref())?;
    service.count_row(&served, explanation.possible);
    Ok(ExplainResponse { model: served.name.clone(), version: served.version.clone(), explanation })
}

/// The explanation of a row, or of its effects on one label.
pub(crate) fn explanation(
    served: &Served,
    evidence: &prsl::Evidence,
    label: Option<&str>,
) -> Result<Explanation, Error> {
    if let Some(label) = label {
        served.model().find_label(label)?;
    }
    let explanation = served.explainer()?.explain(evidence)?;
    Ok(match label {
        Some(label) => explanation.about(label),
        None => explanation,
    })
}
