//! The Open Inference Protocol, version 2, with its extension for binary tensors.

mod infer;
mod tensor;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use prsl::Label;
use serde::Serialize;
use utoipa::ToSchema;

pub(crate) use self::infer::__path_infer;
use crate::api::{json, written};
use crate::problem::Problem;
use crate::served::Served;
use crate::service::Service;

/// The routes.
pub(crate) fn routes() -> Router<Service> {
    Router::new()
        .route("/v2", get(server))
        .route("/v2/health/live", get(live))
        .route("/v2/health/ready", get(ready))
        .route("/v2/models/{model}", get(model))
        .route("/v2/models/{model}/ready", get(model_ready))
        .route("/v2/models/{model}/infer", post(infer::infer))
}

/// What the server is.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ServerMetadata {
    name: &'static str,
    version: &'static str,
    extensions: Vec<&'static str>,
}

/// The tensors of a model, and its labels.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ModelMetadata {
    name: String,
    /// The version that is served.
    versions: Vec<String>,
    platform: &'static str,
    /// One for each label, in the model's order. Absent ones take the label's prior.
    inputs: Vec<TensorMetadata>,
    outputs: Vec<TensorMetadata>,
    /// The labels with their categories, in the order of the tensors' columns.
    labels: Vec<LabelMetadata>,
}

/// A tensor. A size of -1 is the number of rows.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TensorMetadata {
    name: String,
    datatype: &'static str,
    shape: Vec<i64>,
}

/// A label with its categories, in order.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LabelMetadata {
    name: String,
    categories: Vec<String>,
}

/// What the server is
#[utoipa::path(
    get, path = "/v2", tag = "open inference protocol",
    responses((status = 200, description = "Name, version and extensions", body = ServerMetadata))
)]
pub(crate) async fn server() -> Result<Response, Problem> {
    let (name, version) = ("prsl", env!("CARGO_PKG_VERSION"));
    Ok(json(written(&ServerMetadata { name, version, extensions: vec!["binary_tensor_data"] })?))
}

/// Whether the process lives
#[utoipa::path(
    get, path = "/v2/health/live", tag = "open inference protocol", security(()),
    responses((status = 200, description = "It lives"))
)]
pub(crate) async fn live() -> StatusCode {
    StatusCode::OK
}

/// Whether requests are welcome
#[utoipa::path(
    get, path = "/v2/health/ready", tag = "open inference protocol", security(()),
    responses(
        (status = 200, description = "Requests are welcome"),
        (status = 503, description = "The service is about to end"),
    )
)]
pub(crate) async fn ready(State(service): State<Service>) -> StatusCode {
    if service.is_draining() { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK }
}

/// Whether a model is served
#[utoipa::path(
    get, path = "/v2/models/{model}/ready", tag = "open inference protocol",
    params(("model" = String, Path, description = "The name of the model")),
    responses(
        (status = 200, description = "The model is served"),
        (status = 404, description = "There is no such model", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn model_ready(
    State(service): State<Service>,
    Path(model): Path<String>,
) -> Result<StatusCode, Problem> {
    service.catalog().find(&model).map(|_| StatusCode::OK)
}

/// The tensors of a model
#[utoipa::path(
    get, path = "/v2/models/{model}", tag = "open inference protocol",
    params(("model" = String, Path, description = "The name of the model")),
    responses(
        (status = 200, description = "Inputs, outputs and labels", body = ModelMetadata),
        (status = 404, description = "There is no such model", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn model(
    State(service): State<Service>,
    Path(model): Path<String>,
) -> Result<Response, Problem> {
    let served = service.catalog().find(&model)?;
    Ok(json(written(&metadata(&served))?).into_response())
}

fn metadata(served: &Served) -> ModelMetadata {
    let labels = served.model().labels();
    let tensor = |name: String, datatype: &'static str, columns: Option<usize>| TensorMetadata {
        name,
        datatype,
        shape: std::iter::once(-1).chain(columns.map(|n| n as i64)).collect(),
    };
    let input = |label: &Label| tensor(label.name().to_owned(), "FP64", Some(label.n_categories()));
    let marginal = |label: &Label| tensor(marginal_name(label.name()), "FP64", Some(label.n_categories()));
    let others = [
        tensor("mpe".to_owned(), "BYTES", Some(labels.len())),
        tensor("log_evidence".to_owned(), "FP64", None),
        tensor("status".to_owned(), "BYTES", None),
        tensor("engine".to_owned(), "BYTES", None),
    ];
    let label = |label: &Label| LabelMetadata {
        name: label.name().to_owned(),
        categories: label.categories().to_vec(),
    };
    ModelMetadata {
        name: served.name.clone(),
        versions: vec![served.version.clone()],
        platform: "prsl",
        // Latent labels take no beliefs.
        inputs: labels.iter().filter(|label| label.classifier().is_some()).map(input).collect(),
        outputs: labels.iter().map(marginal).chain(others).collect(),
        labels: labels.iter().map(label).collect(),
    }
}

/// The name of the output with a label's marginals.
fn marginal_name(label: &str) -> String {
    format!("marginal.{label}")
}
