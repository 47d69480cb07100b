//! Health, readiness and metrics.

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::api::types::{ModelReady, Ready};
use crate::api::{json, written};
use crate::catalog::ModelState;
use crate::guard::is_authorized;
use crate::problem::Problem;
use crate::service::Service;

/// The routes.
pub(crate) fn routes() -> Router<Service> {
    Router::new()
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
}

/// Whether the process lives
#[utoipa::path(
    get, path = "/healthz", tag = "health", security(()),
    responses((status = 200, description = "It lives", body = String, content_type = "text/plain"))
)]
pub(crate) async fn healthz() -> &'static str {
    "ok\n"
}

/// Whether requests are welcome
///
/// A file that cannot be served does not change the status, since its old version is served: `status` is `degraded`
/// then, and `models` has the reason.
#[utoipa::path(
    get, path = "/readyz", tag = "health", security(()),
    responses(
        (status = 200, description = "Requests are welcome", body = Ready),
        (status = 503, description = "The service is about to end", body = Ready),
    )
)]
pub(crate) async fn readyz(State(service): State<Service>, headers: HeaderMap) -> Result<Response, Problem> {
    let states = service.catalog().states();
    let status = match () {
        () if service.is_draining() => "draining",
        () if states.iter().any(|state| state.failure.is_some()) => "degraded",
        () => "ready",
    };
    let ready = |state: ModelState| ModelReady {
        ready: state.version.is_some(),
        name: state.name,
        version: state.version,
        failure: state.failure,
    };
    let models = is_authorized(&service, &headers).then(|| states.into_iter().map(ready).collect());
    let mut response = json(written(&Ready { status, models })?);
    if service.is_draining() {
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    }
    Ok(response)
}

/// Metrics for Prometheus
#[utoipa::path(
    get, path = "/metrics", tag = "health",
    responses((status = 200, description = "The metrics", body = String, content_type = "text/plain"))
)]
pub(crate) async fn metrics(State(service): State<Service>) -> Response {
    let in_work = service.workers().busy(&service.settings().limits);
    let text = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    ([(header::CONTENT_TYPE, text)], service.metrics().render(in_work)).into_response()
}
