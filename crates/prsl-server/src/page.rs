//! The page at `/`. Its files are built from `web/` and are part of the program.

use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Router;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use base64::Engine as _;

use crate::guard::CONTENT_SECURITY_POLICY;
use crate::problem::Problem;
use crate::service::Service;

/// The page. `{nonce}` stands for a number that is used once.
const PAGE: &str = include_str!("../page/index.html");

/// The other files: path, type and content.
const FILES: [(&str, &str, &str); 3] = [
    ("/page/page.js", "text/javascript; charset=utf-8", include_str!("../page/page/page.js")),
    ("/page/page.css", "text/css; charset=utf-8", include_str!("../page/page/page.css")),
    ("/page/icon.svg", "image/svg+xml", include_str!("../page/page/icon.svg")),
];

/// The routes of the page.
pub(crate) fn routes() -> Router<Service> {
    let mut router = Router::new().route("/", get(page));
    for (path, kind, content) in FILES {
        let answer =
            move || async move { ([(header::CONTENT_TYPE, HeaderValue::from_static(kind))], content) };
        router = router.route(path, get(answer));
    }
    router
}

/// The page with a fresh nonce. The editor inserts its styles with it, and no other inline style is allowed.
async fn page() -> Result<Response, Problem> {
    let nonce = nonce();
    let policy =
        CONTENT_SECURITY_POLICY.replace("style-src 'self'", &format!("style-src 'self' 'nonce-{nonce}'"));
    let policy = HeaderValue::from_str(&policy).map_err(|_| Problem::internal())?;
    let html = HeaderValue::from_static("text/html; charset=utf-8");
    let headers = [(header::CONTENT_TYPE, html), (header::CONTENT_SECURITY_POLICY, policy)];
    Ok((headers, PAGE.replace("{nonce}", &nonce)).into_response())
}

/// A text that nobody can guess, and that differs each time: SipHash of a counter, with random keys of this process.
fn nonce() -> String {
    static KEYS: OnceLock<[RandomState; 2]> = OnceLock::new();
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let keys = KEYS.get_or_init(|| [RandomState::new(), RandomState::new()]);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let bytes = keys.each_ref().map(|key| key.hash_one(number).to_le_bytes()).concat();
    base64::engine::general_purpose::STANDARD.encode(bytes)
}
