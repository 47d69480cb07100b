//! `/api/v1/models`: list, read, write and delete models.

use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use prsl::explain::RuleKind;
use prsl::lint::Severity;
use prsl::{Body, Document, LabelId, RuleId};

use super::check::checked;
use super::types::{LabelDetails, ModelDetails, ModelList, ModelSummary, PutRequest, RuleDetails};
use super::whatif::posted;
use super::{json, written};
use crate::catalog::is_model_name;
use crate::input::Input;
use crate::problem::Problem;
use crate::served::{Purpose, Served, Trust};
use crate::service::Service;
use crate::work::{Lane, Watch};

/// List the models
#[utoipa::path(
    get, path = "/api/v1/models", tag = "models",
    responses((status = 200, description = "The models that are served", body = ModelList))
)]
pub(crate) async fn list(State(service): State<Service>) -> Result<Response, Problem> {
    let summary = |served: &Served| ModelSummary {
        name: served.name.clone(),
        version: served.version.clone(),
        n_labels: served.model().labels().len(),
        n_rules: served.model().rules().len(),
        inference: served.marginals.reason().to_owned(),
    };
    let models = service.catalog().all().iter().map(|served| summary(served)).collect();
    Ok(json(written(&ModelList { models, writable: service.settings().writable })?))
}

/// Read a model
///
/// Its text, labels and rules. The `ETag` is its version.
#[utoipa::path(
    get, path = "/api/v1/models/{name}", tag = "models",
    params(("name" = String, Path, description = "The name of the model")),
    responses(
        (status = 200, description = "The model", body = ModelDetails),
        (status = 404, description = "There is no such model", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn details(
    State(service): State<Service>,
    Path(name): Path<String>,
) -> Result<Response, Problem> {
    let served = service.catalog().find(&name)?;
    let job = move |_: &Watch| Ok((written(&model_details(&served))?, served));
    let (body, served) = service.workers().run(Lane::Served, job).await?;
    Ok(tagged(json(body), &served))
}

/// Write a model
///
/// The text is checked, its plan is costed, and then the file is replaced at once. The old version is kept. `If-Match`
/// makes sure that nobody else has changed the model since it was read.
#[utoipa::path(
    put, path = "/api/v1/models/{name}", tag = "models", request_body = PutRequest,
    params(
        ("name" = String, Path, description = "The name of the model: letters, digits, `_`, `-` and `.`"),
        ("If-Match" = Option<String>, Header, description = "The version that the change is based on"),
    ),
    responses(
        (status = 200, description = "The model, which is served now", body = ModelDetails),
        (status = "4XX", description = "The model cannot be written", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "Too many requests", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn put(
    State(service): State<Service>,
    Path(name): Path<String>,
    input: Input,
) -> Result<Response, Problem> {
    check_writable(&service, &name)?;
    input.require_json()?;
    let shared = service.clone();
    let job = move |watch: &Watch| {
        let request: PutRequest = serde_json::from_slice(&input.body)?;
        let served = written_model(&shared, &name, &request.text, watch)?;
        let served = shared.catalog().put(served, if_match(&input.headers).as_deref())?;
        tracing::info!(model = name, version = served.version, "the model was written");
        Ok((written(&model_details(&served))?, served))
    };
    let (body, served) = service.workers().run(Lane::Posted, job).await?;
    Ok(tagged(json(body), &served))
}

/// Delete a model
///
/// The old version is kept in the folder, but not served.
#[utoipa::path(
    delete, path = "/api/v1/models/{name}", tag = "models",
    params(
        ("name" = String, Path, description = "The name of the model"),
        ("If-Match" = Option<String>, Header, description = "The version that is to be deleted"),
    ),
    responses(
        (status = 204, description = "The model is not served any more"),
        (status = "4XX", description = "The model cannot be deleted", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn delete(
    State(service): State<Service>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    check_writable(&service, &name)?;
    let shared = service.clone();
    let job = move |_: &Watch| {
        shared.catalog().delete(&name, if_match(&headers).as_deref())?;
        tracing::info!(model = name, "the model was deleted");
        Ok(())
    };
    service.workers().run(Lane::Posted, job).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Returns an error unless requests may write models, and this is a name of one.
fn check_writable(service: &Service, name: &str) -> Result<(), Problem> {
    if !service.settings().writable {
        let detail = "models cannot be changed; start the service with `--writable`";
        return Err(Problem::new(StatusCode::FORBIDDEN, "ReadOnly", detail));
    }
    if !is_model_name(name) {
        let detail = "a model's name has letters, digits, `_`, `-` and `.`, does not begin with `.`, and is at most 100 long";
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "ModelName", detail));
    }
    Ok(())
}

/// The model of a text that is to be written. Returns an error if it has errors, or if its plan is too costly.
fn written_model(service: &Service, name: &str, text: &str, watch: &Watch) -> Result<Served, Problem> {
    let document = posted(service, text)?;
    let limits = service.settings().limits.posted;
    Served::compile_posted(document.clone(), limits, Purpose::Predict)?;
    watch.check()?;
    let mut findings = checked(&document, limits)?.findings;
    findings.retain(|finding| finding.severity == Severity::Error);
    if let Some(first) = findings.first() {
        let detail = format!("the model has errors: line {}: {}", first.line, first.message);
        let problem = Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "Findings", detail);
        return Err(problem.with_findings(findings));
    }
    watch.check()?;
    Ok(Served::compile_ahead(name, document, Trust::Owner(service.settings().memory))?)
}

/// The version in `If-Match`, if it is given.
fn if_match(headers: &HeaderMap) -> Option<String> {
    let given = headers.get(header::IF_MATCH)?.to_str().unwrap_or("");
    Some(given.trim().trim_matches('"').to_owned())
}

fn tagged(mut response: Response, served: &Served) -> Response {
    if let Ok(tag) = HeaderValue::from_str(&format!("\"{}\"", served.version)) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response
}

fn model_details(served: &Served) -> ModelDetails {
    let model = served.model();
    ModelDetails {
        name: served.name.clone(),
        version: served.version.clone(),
        text: served.document.source().to_owned(),
        inference: served.marginals.reason().to_owned(),
        labels: all_labels(&served.document),
        rules: all_rules(&served.document),
        n_typical: model.typical().len(),
        n_expectations: model.expectations().len(),
    }
}

/// The labels of a document, in order.
pub(crate) fn all_labels(document: &Document) -> Vec<LabelDetails> {
    document.model().label_ids().map(|label| label_details(document, label)).collect()
}

/// The rules of a document, in order.
pub(crate) fn all_rules(document: &Document) -> Vec<RuleDetails> {
    document.model().rule_ids().map(|rule| rule_details(document, rule)).collect()
}

fn label_details(document: &Document, id: LabelId) -> LabelDetails {
    let label = document.model().label(id);
    let kind = label.calibrator().kind();
    LabelDetails {
        index: id.index(),
        name: label.name().to_owned(),
        categories: label.categories().to_vec(),
        prior: label.prior_or_uniform(),
        has_prior: label.prior().is_some(),
        classifier: label.classifier().map(|classifier| classifier.name().to_owned()),
        calibrator: (kind != "identity").then(|| kind.to_owned()),
    }
}

fn rule_details(document: &Document, id: RuleId) -> RuleDetails {
    let (model, span) = (document.model(), document.rule_span(id));
    let rule = model.rule(id);
    RuleDetails {
        number: id.index() + 1,
        name: rule.name().map(str::to_owned),
        kind: if matches!(rule.body(), Body::NoisyOr(_)) { RuleKind::NoisyOr } else { RuleKind::Rule },
        text: model.rule_text(id),
        sentence: model.rule_sentence(id),
        probability: rule.probability(),
        labels: rule.scope().into_iter().map(|label| model.label(label).name().to_owned()).collect(),
        fixed: rule.is_fixed(),
        learned: rule.learned().is_some(),
        start: span.start,
        end: span.end,
    }
}
