//! What every request passes: the token, the origin, security headers, the log and the metrics.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;

use crate::problem::Problem;
use crate::service::Service;

/// The header with the id of a request, in both directions.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Paths that need no token, for load balancers.
const HEALTH: [&str; 4] = ["/healthz", "/readyz", "/v2/health/live", "/v2/health/ready"];

/// Scripts, styles and images come from the service itself. Nothing may be embedded elsewhere.
pub(crate) const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    img-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'";

/// Headers of every answer.
const SECURITY_HEADERS: [(HeaderName, &str); 7] = [
    (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (header::CACHE_CONTROL, "no-store"),
];

/// Gives the request an id, answers it, and writes the answer to the log and the metrics.
///
/// The log has the method, the path, the status and the time: no bodies, no queries and no headers, so no secrets.
pub(crate) async fn observe(State(service): State<Service>, request: Request, next: Next) -> Response {
    let start = Instant::now();
    let id = request_id(request.headers());
    let method = request.method().clone();
    let path = request.uri().path().to_owned();
    let route = request.extensions().get::<MatchedPath>().map_or("none", MatchedPath::as_str).to_owned();
    let mut response = match admit(&service, &request) {
        Ok(()) => next.run(request).await,
        Err(problem) => refused(problem),
    };
    let (status, time) = (response.status(), start.elapsed());
    service.metrics().count_request(&route, status.as_u16(), time);
    let milliseconds = (time.as_secs_f64() * 1e6).round() / 1e3;
    let (status_code, request_id) = (status.as_u16(), id.to_str().unwrap_or(""));
    if status == StatusCode::INTERNAL_SERVER_ERROR {
        tracing::error!(request_id, %method, path, status = status_code, milliseconds, "request");
    } else {
        tracing::info!(request_id, %method, path, status = status_code, milliseconds, "request");
    }
    let headers = response.headers_mut();
    for (name, value) in SECURITY_HEADERS {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    headers.insert(REQUEST_ID, id);
    if service.is_draining() {
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// Returns an error unless the request may be answered.
fn admit(service: &Service, request: &Request) -> Result<(), Problem> {
    let (settings, headers) = (service.settings(), request.headers());
    if is_cross_site(headers) || (settings.local_host_only && !is_local_host(headers)) {
        let detail = "the request comes from a page of another site, which is not allowed";
        return Err(Problem::new(StatusCode::FORBIDDEN, "CrossSite", detail));
    }
    if HEALTH.contains(&request.uri().path()) || is_authorized(service, headers) {
        return Ok(());
    }
    let detail =
        "a token is needed; send it as `Authorization: Bearer TOKEN`, or as the password of any user";
    Err(Problem::new(StatusCode::UNAUTHORIZED, "Token", detail))
}

/// Whether the request carries the token, or none is needed.
pub(crate) fn is_authorized(service: &Service, headers: &HeaderMap) -> bool {
    let Some(token) = &service.settings().token else { return true };
    let given = headers.get(header::AUTHORIZATION).and_then(|given| given.to_str().ok()).unwrap_or("");
    let (scheme, given) = given.split_once(' ').unwrap_or((given, ""));
    if scheme.eq_ignore_ascii_case("bearer") {
        return token.is(given.trim().as_bytes());
    }
    // Browsers send the password that a person has typed.
    let decoded = base64::engine::general_purpose::STANDARD.decode(given.trim()).unwrap_or_default();
    let password = decoded.iter().position(|&byte| byte == b':').map(|colon| &decoded[colon + 1..]);
    scheme.eq_ignore_ascii_case("basic") && password.is_some_and(|password| token.is(password))
}

/// Whether a browser says that a page of another site sent the request.
fn is_cross_site(headers: &HeaderMap) -> bool {
    let site = headers.get("sec-fetch-site").and_then(|site| site.to_str().ok());
    let mode = headers.get("sec-fetch-mode").and_then(|mode| mode.to_str().ok());
    // Following a link from another site is harmless.
    matches!(site, Some("cross-site" | "same-site")) && mode != Some("navigate")
}

/// Whether the `Host` header names this machine, or is absent.
fn is_local_host(headers: &HeaderMap) -> bool {
    let Some(host) = headers.get(header::HOST) else { return true };
    let Ok(host) = host.to_str() else { return false };
    let without_port = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let name = without_port.trim_start_matches('[').trim_end_matches(']');
    let is_local = name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    is_local || name.eq_ignore_ascii_case("localhost")
}

fn refused(problem: Problem) -> Response {
    let needs_token = problem.status() == StatusCode::UNAUTHORIZED;
    let mut response = problem.into_response();
    if needs_token {
        let challenge = HeaderValue::from_static("Basic realm=\"prsl\", charset=\"UTF-8\"");
        response
            .headers_mut()
            .append(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"prsl\""));
        response.headers_mut().append(header::WWW_AUTHENTICATE, challenge);
    }
    response
}

/// The id that the gateway gave, if it is short and harmless in a log, or else a new one.
fn request_id(headers: &HeaderMap) -> HeaderValue {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let is_plain = |id: &&HeaderValue| {
        let is_allowed = |&byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        (1..=128).contains(&id.len()) && id.as_bytes().iter().all(is_allowed)
    };
    if let Some(id) = headers.get(REQUEST_ID).filter(is_plain) {
        return id.clone();
    }
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let id = format!("{:016x}-{number}", process_id());
    HeaderValue::from_str(&id).unwrap_or(HeaderValue::from_static("none"))
}

/// A random number that tells the ids of this process from those of others.
fn process_id() -> u64 {
    static ID: std::sync::OnceLock<u64> = std::sync::OnceLock::new();
    *ID.get_or_init(|| RandomState::new().build_hasher().finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: &'static str, value: &str) -> HeaderMap {
        let value = HeaderValue::from_str(value).expect("a header");
        HeaderMap::from_iter([(HeaderName::from_static(name), value)])
    }

    #[test]
    fn only_names_of_this_machine_are_local() {
        for local in ["localhost", "localhost:8080", "127.0.0.1:8080", "127.0.0.1", "[::1]:8080", "[::1]"] {
            assert!(is_local_host(&headers("host", local)), "{local}");
        }
        for other in ["example.org", "localhost.example.org:8080", "10.0.0.1", "", "0.0.0.0"] {
            assert!(!is_local_host(&headers("host", other)), "{other}");
        }
    }

    #[test]
    fn ids_of_the_gateway_stay_unless_they_could_forge_the_log() {
        assert_eq!(request_id(&headers("x-request-id", "abc-1")), "abc-1");
        for odd in ["a b", "\"quoted\"", &"a".repeat(129)] {
            assert_ne!(request_id(&headers("x-request-id", odd)), odd);
        }
        assert_ne!(request_id(&HeaderMap::new()), request_id(&HeaderMap::new()));
    }
}
