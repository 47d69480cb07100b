//! The routes of `/api/v1`: requests in JSON become calls of the library.

pub(crate) mod beliefs;
pub(crate) mod check;
pub(crate) mod explain;
pub(crate) mod models;
pub(crate) mod predict;
pub(crate) mod questions;
pub(crate) mod types;
pub(crate) mod whatif;

use axum::Router;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::input::Input;
use crate::problem::Problem;
use crate::service::Service;
use crate::work::{Lane, Watch};

/// The routes of `/api/v1`.
pub(crate) fn routes() -> Router<Service> {
    Router::new()
        .route("/api/v1/predict", post(predict::predict))
        .route("/api/v1/explain", post(explain::explain))
        .route("/api/v1/flip", post(questions::flip))
        .route("/api/v1/next", post(questions::next))
        .route("/api/v1/whatif", post(whatif::whatif))
        .route("/api/v1/check", post(check::check))
        .route("/api/v1/models", get(models::list))
        .route("/api/v1/models/{name}", get(models::details).put(models::put).delete(models::delete))
}

/// Reads a request, answers it and writes the answer, all on a worker.
pub(crate) async fn answer<R, A>(
    service: Service,
    lane: Lane,
    input: Input,
    answer: impl FnOnce(&Service, R, &Watch) -> Result<A, Problem> + Send + 'static,
) -> Result<Response, Problem>
where
    R: DeserializeOwned,
    A: Serialize,
{
    input.require_json()?;
    let shared = service.clone();
    let job = move |watch: &Watch| {
        let request = serde_json::from_slice(&input.body)?;
        let answer = answer(&shared, request, watch)?;
        drop(input); // its share of the memory for bodies covers the parsed rows
        written(&answer)
    };
    service.workers().run(lane, job).await.map(json)
}

/// A value as JSON.
pub(crate) fn written(value: &impl Serialize) -> Result<Vec<u8>, Problem> {
    serde_json::to_vec(value).map_err(|error| {
        tracing::error!(%error, "an answer cannot be written");
        Problem::internal()
    })
}

/// A response with a JSON body.
pub(crate) fn json(body: Vec<u8>) -> Response {
    let json = HeaderValue::from_static("application/json");
    (StatusCode::OK, [(header::CONTENT_TYPE, json)], body).into_response()
}
