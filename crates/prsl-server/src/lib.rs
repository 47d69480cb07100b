//! prsl over HTTP.
//!
//! [`Service`] holds the models, [`app`] is the router, and [`serve`] listens until it is told to end. Handlers only
//! convert: they parse a request, call the library on a worker thread, and write the answer.
//!
//! | module | content |
//! |---|---|
//! | `api` | `/api/v1`: predict, explain, whatif, check, models |
//! | `v2` | the Open Inference Protocol |
//! | `page` | the page at `/`, built from `web/` |
//! | `health`, `description` | health, metrics, the description of the API |
//! | `guard` | token, origin, security headers, log |
//! | `input`, `work`, `batch` | bodies within limits; queues, time limit and cancellation; rows in chunks |
//! | `catalog`, `posted`, `served` | models by name, reloaded when their files change; models of recent requests; compiled engines |
#![forbid(unsafe_code)]

mod api;
mod batch;
mod catalog;
mod description;
mod guard;
mod health;
mod input;
mod listen;
mod log;
mod measure;
mod page;
mod posted;
mod problem;
mod served;
mod service;
mod settings;
mod startup;
mod v2;
mod work;

use axum::Router;
use axum::http::{StatusCode, Uri};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use tower_http::catch_panic::CatchPanicLayer;

pub use catalog::EXAMPLE;
pub use listen::{check_address, run, serve};
pub use log::{LogFormat, start_log};
pub use service::Service;
pub use settings::{PostedLimits, RequestLimits, Settings, Token};
pub use startup::StartError;

use crate::problem::Problem;

/// The router of a service. Tests call it without a socket.
pub fn app(service: Service) -> Router {
    Router::new()
        .merge(page::routes())
        .merge(health::routes())
        .merge(api::routes())
        .merge(v2::routes())
        .merge(description::routes())
        .fallback(unknown_path)
        .method_not_allowed_fallback(wrong_method)
        .layer(CatchPanicLayer::custom(panicked))
        .layer(middleware::from_fn_with_state(service.clone(), guard::observe))
        .with_state(service)
}

async fn unknown_path(uri: Uri) -> Problem {
    let path: String = uri.path().chars().take(100).collect();
    Problem::new(
        StatusCode::NOT_FOUND,
        "UnknownPath",
        format!("there is nothing at `{path}`; `/docs` lists all paths"),
    )
}

async fn wrong_method() -> Problem {
    let detail = "this path does not take this method; `/docs` lists all paths with their methods";
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "Method", detail)
}

fn panicked(_: Box<dyn std::any::Any + Send>) -> Response {
    tracing::error!("a request panicked");
    Problem::internal().into_response()
}
