//! The description of the API (OpenAPI), and the page that shows it.

use axum::Router;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::{Modify, OpenApi};
use utoipa_swagger_ui::{Config, SwaggerUi};

use crate::service::Service;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "prsl",
        description = "Classifiers' beliefs times probabilistic rules: predictions, explanations and checks.",
        license(name = "MIT OR Apache-2.0")
    ),
    paths(
        crate::api::predict::predict, crate::api::explain::explain, crate::api::questions::flip,
        crate::api::questions::next,
        crate::api::whatif::whatif,
        crate::api::check::check, crate::api::models::list, crate::api::models::details,
        crate::api::models::put, crate::api::models::delete,
        crate::v2::server, crate::v2::live, crate::v2::ready, crate::v2::model, crate::v2::model_ready,
        crate::v2::infer,
        crate::health::healthz, crate::health::readyz, crate::health::metrics,
    ),
    modifiers(&TokenScheme),
    security(("token" = []))
)]
struct Description;

/// Describes the token.
struct TokenScheme;

impl Modify for TokenScheme {
    fn modify(&self, description: &mut utoipa::openapi::OpenApi) {
        let scheme = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
        description.components.get_or_insert_default().add_security_scheme("token", scheme);
    }
}

/// `/openapi.json` and `/docs`. The page and its scripts are part of the program.
pub(crate) fn routes() -> Router<Service> {
    let config = Config::from("/openapi.json").validator_url("none").use_base_layout();
    SwaggerUi::new("/docs").url("/openapi.json", Description::openapi()).config(config).into()
}
