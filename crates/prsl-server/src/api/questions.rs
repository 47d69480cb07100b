//! `POST /api/v1/flip` and `POST /api/v1/next`: what would change the answer, and what to ask next.

use axum::extract::State;
use axum::response::Response;

use super::types::{FlipRequest, FlipResponse, NextRequest, NextResponse};
use crate::input::Input;
use crate::problem::Problem;
use crate::service::Service;
use crate::work::{Lane, Watch};

/// What would change the answer
///
/// For every label the smallest change of its belief, and the observations, that make a category the most probable one.
#[utoipa::path(
    post, path = "/api/v1/flip", tag = "answers", request_body = FlipRequest,
    responses(
        (status = 200, description = "The changes, smallest first", body = FlipResponse),
        (status = "4XX", description = "The request cannot be answered", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "Too many requests; `Retry-After` says when to try again", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn flip(State(service): State<Service>, input: Input) -> Result<Response, Problem> {
    super::answer(service, Lane::Served, input, run_flip).await
}

fn run_flip(service: &Service, request: FlipRequest, _: &Watch) -> Result<FlipResponse, Problem> {
    let served = service.catalog().find(&request.model)?;
    let label = served.model().find_label(&request.label)?;
    let category = served.model().find_category(label, &request.category)?;
    let counterfactuals = served.marginals.counterfactuals(&request.beliefs.0, label, category)?;
    service.count_row(&served, counterfactuals.possible);
    Ok(FlipResponse { model: served.name.clone(), version: served.version.clone(), counterfactuals })
}

/// What to ask next
///
/// For every label that is not observed the expected gain in information, in bits, from observing it.
#[utoipa::path(
    post, path = "/api/v1/next", tag = "answers", request_body = NextRequest,
    responses(
        (status = 200, description = "The gains, largest first", body = NextResponse),
        (status = "4XX", description = "The request cannot be answered", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "Too many requests; `Retry-After` says when to try again", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn next(State(service): State<Service>, input: Input) -> Result<Response, Problem> {
    super::answer(service, Lane::Served, input, run_next).await
}

fn run_next(service: &Service, request: NextRequest, _: &Watch) -> Result<NextResponse, Problem> {
    let served = service.catalog().find(&request.model)?;
    let about = request.label.as_deref().map(|label| served.model().find_label(label)).transpose()?;
    let gains = served.marginals.information_gains(&request.beliefs.0, about)?;
    service.count_row(&served, gains.possible);
    Ok(NextResponse { model: served.name.clone(), version: served.version.clone(), gains })
}
