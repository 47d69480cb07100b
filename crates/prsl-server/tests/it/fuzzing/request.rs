//! A request of any bytes. The fuzz target `requests` uses this file too.

use std::sync::OnceLock;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use http_body_util::BodyExt;
use prsl_server::{PostedLimits, RequestLimits, Service, Settings, app};
use tower::ServiceExt;

/// Labels of every kind: yes/no, several categories, latent, with a prior and a calibrator.
const MODEL: &str = "label a prior 0.3\nlabel b: x, y, z\nlabel \"c d\" latent\ncalibrate a platt 2 0\n\
    rule 0.9: a -> x\nrule 1: x -> \"c d\"\nnoisy_or 0.8: a 0.2, y 0.3\n";

const PATHS: [&str; 8] = [
    "/api/v1/predict",
    "/api/v1/explain",
    "/api/v1/flip",
    "/api/v1/next",
    "/api/v1/whatif",
    "/api/v1/check",
    "/v2/models/m/infer",
    "/v2/models/m/infer",
];

fn router() -> &'static Router {
    static ROUTER: OnceLock<Router> = OnceLock::new();
    ROUTER.get_or_init(|| {
        let folder = std::env::temp_dir().join(format!("prsl-fuzz-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let file = folder.join("m.prsl");
        std::fs::write(&file, MODEL).expect("a file");
        // Small limits, so that an input takes far less than the fuzzer's time limit.
        let posted = PostedLimits { bytes: 4096, memory: 64 << 20, work: 1e7, ..PostedLimits::default() };
        let limits = RequestLimits { rows: 100, posted, ..RequestLimits::default() };
        let service = Service::open(&[file], None, Settings { limits, ..Settings::default() });
        let _ = std::fs::remove_dir_all(folder);
        app(service.expect("a service"))
    })
}

fn runtime() -> &'static tokio::runtime::Runtime {
    static RUNTIME: OnceLock<tokio::runtime::Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        let builder = &mut tokio::runtime::Builder::new_current_thread();
        builder.enable_time().max_blocking_threads(1).build().expect("a runtime")
    })
}

/// Sends any bytes as the body of a request; the first byte chooses the path. Panics at an error of the server's own.
pub fn send(input: &[u8]) {
    let Some((&first, body)) = input.split_first() else { return };
    let path = PATHS[usize::from(first) % PATHS.len()];
    let mut request = Request::post(path).header(header::CONTENT_TYPE, "application/json");
    // The last path has binary tensors after the JSON, which ends at the first byte 0.
    if usize::from(first) % PATHS.len() == 7
        && let Some(end) = body.iter().position(|&byte| byte == 0)
    {
        request = request.header("Inference-Header-Content-Length", end);
    }
    let request = request.body(Body::from(body.to_vec())).expect("a request");
    runtime().block_on(async {
        let response = router().clone().oneshot(request).await.expect("a router answers always");
        let status = response.status();
        let body = response.into_body().collect().await.expect("a whole body").to_bytes();
        assert!(!status.is_server_error(), "{status}");
        if status != StatusCode::OK {
            assert!(body.starts_with(b"{\"type\":"), "a problem");
        }
    });
}
