//! Errors as answers: problem details (RFC 9457) with the library's sentence.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use prsl::lint::Finding;
use serde::Serialize;
use utoipa::ToSchema;

/// An error as the answer to a request. It is boxed, because it is much larger than most answers.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(transparent)]
pub struct Problem(Box<ProblemDetails>);

/// Problem details with members of our own.
#[derive(Clone, Debug, Serialize, ToSchema)]
struct ProblemDetails {
    /// Always `about:blank`: `title` and `status` say what kind of problem it is.
    #[serde(rename = "type")]
    kind: &'static str,
    /// The meaning of the status.
    title: &'static str,
    /// The HTTP status.
    status: u16,
    /// The kind of error as an identifier, such as `UnknownLabel`.
    code: &'static str,
    /// A sentence: what was given, what was expected, and where.
    detail: String,
    /// The same sentence, where clients of the Open Inference Protocol look for it.
    error: String,
    /// The row that it is about, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    row: Option<usize>,
    /// All errors of a model text, with their positions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    findings: Vec<Finding>,
    /// Seconds after which another attempt makes sense.
    #[serde(skip)]
    retry_after: Option<u32>,
}

impl Problem {
    /// A problem with this status and sentence.
    pub(crate) fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        Self(Box::new(ProblemDetails {
            kind: "about:blank",
            title: status.canonical_reason().unwrap_or("Error"),
            status: status.as_u16(),
            code,
            error: detail.clone(),
            detail,
            row: None,
            findings: Vec::new(),
            retry_after: None,
        }))
    }

    /// An error of ours, without details.
    pub(crate) fn internal() -> Self {
        let detail = "the service failed; its log has the reason under the id of this request";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "Internal", detail)
    }

    /// The service is busy.
    pub(crate) fn busy(detail: impl Into<String>) -> Self {
        let mut problem = Self::new(StatusCode::SERVICE_UNAVAILABLE, "Busy", detail);
        problem.0.retry_after = Some(1);
        problem
    }

    /// A model that is not served.
    pub(crate) fn unknown_model(name: &str, known: &[String]) -> Self {
        let nearest = prsl::lint::nearest(name, known.iter().map(String::as_str));
        let hint = nearest.map_or_else(String::new, |nearest| format!("; did you mean `{nearest}`?"));
        // A name in a message is at most as long as a name may be.
        let shown: String = name.chars().take(100).collect();
        Self::new(StatusCode::NOT_FOUND, "UnknownModel", format!("no model `{shown}` is served{hint}"))
    }

    /// The same problem about one row, from 1.
    pub(crate) fn in_row(mut self, row: usize) -> Self {
        self.0.detail = format!("row {row}: {}", self.0.detail);
        self.0.error = self.0.detail.clone();
        self.0.row = Some(row);
        self
    }

    /// The same problem with findings about a model text.
    pub(crate) fn with_findings(mut self, findings: Vec<Finding>) -> Self {
        self.0.findings = findings;
        self
    }

    /// The syntax errors of a model text, or the problem itself if it is another one.
    pub(crate) fn into_syntax_findings(self) -> Result<Vec<Finding>, Self> {
        if self.0.findings.is_empty() { Err(self) } else { Ok(self.0.findings) }
    }

    /// The HTTP status.
    pub(crate) fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }
}

/// The HTTP status of an error of the library. All of them are about what the request brought.
fn status(error: &prsl::Error) -> StatusCode {
    match error {
        prsl::Error::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
        prsl::Error::ForeignRow { .. } => StatusCode::INTERNAL_SERVER_ERROR,
        _ => StatusCode::UNPROCESSABLE_ENTITY,
    }
}

impl From<prsl::Error> for Problem {
    fn from(error: prsl::Error) -> Self {
        let status = status(&error);
        if status.is_server_error() {
            tracing::error!(%error, "an error of the library that no request causes");
            return Self::internal();
        }
        let problem = Self::new(status, error.kind(), error.to_string());
        match error {
            prsl::Error::Text(diagnostics) => {
                let finding = |error| Finding::of_syntax_error(error, diagnostics.source());
                let findings: Vec<Finding> = diagnostics.list().iter().map(finding).collect();
                let n = findings.len();
                let first = findings.first().map_or_else(String::new, |finding| {
                    format!(": line {}: {}", finding.line, finding.message)
                });
                let more = if n > 1 { format!(" (and {} more)", n - 1) } else { String::new() };
                Self::new(status, problem.0.code, format!("the text is not a model{first}{more}"))
                    .with_findings(findings)
            }
            _ => problem,
        }
    }
}

/// A body that is not JSON, or not the JSON that was expected.
impl From<serde_json::Error> for Problem {
    fn from(error: serde_json::Error) -> Self {
        let status = match error.classify() {
            serde_json::error::Category::Data => StatusCode::UNPROCESSABLE_ENTITY,
            _ => StatusCode::BAD_REQUEST,
        };
        Self::new(status, "Body", format!("the body is not the expected JSON: {error}"))
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = self.status();
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let json = HeaderValue::from_static("application/problem+json");
        let mut response = (status, [(header::CONTENT_TYPE, json)], body).into_response();
        if let Some(seconds) = self.0.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}
