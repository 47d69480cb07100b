//! `POST /api/v1/check`: findings about a model, with positions.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use prsl::infer::Engines;
use prsl::lint::{self, Finding};
use prsl::{Document, Limits};

use super::models::{all_labels, all_rules};
use super::types::{CheckRequest, CheckResponse};
use super::whatif::posted;
use crate::input::Input;
use crate::problem::Problem;
use crate::served::check_work;
use crate::service::Service;
use crate::settings::PostedLimits;
use crate::work::{Lane, Watch};

/// Check a model
///
/// Contradictions, rules without effect, duplicates and failed expectations of a posted text, or of a model that is
/// served. A text that is not a model is no error: its syntax errors are findings.
#[utoipa::path(
    post, path = "/api/v1/check", tag = "models", request_body = CheckRequest,
    responses(
        (status = 200, description = "The findings", body = CheckResponse),
        (status = "4XX", description = "The request cannot be answered", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "Too many requests; `Retry-After` says when to try again", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn check(State(service): State<Service>, input: Input) -> Result<Response, Problem> {
    super::answer(service, Lane::Posted, input, run).await
}

fn run(service: &Service, request: CheckRequest, _: &Watch) -> Result<CheckResponse, Problem> {
    let limits = service.settings().limits.posted;
    match (&request.text, &request.model) {
        (Some(text), None) => match posted(service, text) {
            Ok(document) => checked(&document, limits),
            Err(problem) => problem.into_syntax_findings().map(not_a_model),
        },
        (None, Some(name)) => checked(&service.catalog().find(name)?.document, limits),
        _ => Err(Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "Model",
            "give either `text`, or `model`, a name",
        )),
    }
}

fn not_a_model(findings: Vec<Finding>) -> CheckResponse {
    CheckResponse {
        valid: false,
        inference: None,
        findings,
        notes: Vec::new(),
        expectations: Vec::new(),
        labels: Vec::new(),
        rules: Vec::new(),
    }
}

/// The findings about a model. Its plan is costed first: every expectation runs it once.
pub(crate) fn checked(document: &Document, limits: PostedLimits) -> Result<CheckResponse, Problem> {
    let memory = Limits { memory: limits.memory };
    let n_expectations = document.model().expectations().len();
    if n_expectations > 0
        && let Ok(engine) = Engines::new(document.model()).with_limits(memory).marginals()
    {
        check_work(engine.work() * n_expectations as f64, limits)?;
    }
    let findings = lint::check_affordable(document, memory, limits.work);
    let expectations = lint::expectation_results(document, &findings);
    let (findings, notes): (Vec<_>, Vec<_>) = findings.into_iter().partition(Finding::counts);
    let cost = notes.iter().find(|note| note.code == "inference-cost");
    let inference = cost.and_then(|note| note.message.strip_prefix("inference: ")).map(str::to_owned);
    let (labels, rules) = (all_labels(document), all_rules(document));
    Ok(CheckResponse { valid: true, inference, findings, notes, expectations, labels, rules })
}
