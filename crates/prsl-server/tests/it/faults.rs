//! Broken, oversized and slow requests get an answer of the 4xx kind within the limits.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{Request, header};
use http_body_util::StreamBody;
use hyper::body::Frame;
use prsl_server::{RequestLimits, Settings};
use serde_json::json;

use crate::server::{Server, WAREHOUSE};

const POSTS: [&str; 7] = [
    "/api/v1/predict",
    "/api/v1/explain",
    "/api/v1/flip",
    "/api/v1/next",
    "/api/v1/whatif",
    "/api/v1/check",
    "/v2/models/warehouse/infer",
];

fn limited(limits: RequestLimits) -> Server {
    Server::new(&[("warehouse", WAREHOUSE)], Settings { limits, ..Settings::default() })
}

/// A body that sends its bytes and then waits forever, or repeats them forever.
struct Drip {
    bytes: Bytes,
    repeats: bool,
    sent: bool,
}

impl hyper::body::Body for Drip {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.sent && !self.repeats {
            return Poll::Pending;
        }
        self.sent = true;
        Poll::Ready(Some(Ok(Frame::data(self.bytes.clone()))))
    }
}

#[tokio::test]
async fn malformed_bodies_are_refused() {
    let server = Server::warehouse();
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    let deep_belief =
        format!("{{\"model\": \"warehouse\", \"beliefs\": {}1{}}}", "{\"a\":".repeat(5000), "}".repeat(5000));
    for path in POSTS {
        for (what, body) in [
            ("empty", Vec::new()),
            ("truncated", br#"{"model": "warehouse", "beliefs": {"feet": "#.to_vec()),
            ("not UTF-8", b"{\"model\": \"\xff\xfe\"}".to_vec()),
            ("deep", deep.clone().into_bytes()),
            ("deep belief", deep_belief.clone().into_bytes()),
            ("other JSON", b"[1, 2, 3]".to_vec()),
            ("null", b"null".to_vec()),
            ("numbers", br#"{"model": 1e999, "inputs": 3, "text": []}"#.to_vec()),
        ] {
            let (status, _) = server.post(path, body).await.problem();
            assert!(matches!(status, 400 | 422), "{path} {what}: {status}");
        }
    }
}

#[tokio::test]
async fn oversized_bodies_are_refused_with_and_without_a_length() {
    let server = limited(RequestLimits { body_bytes: 1000, ..RequestLimits::default() });
    for path in POSTS {
        assert_eq!(server.post(path, "x".repeat(1001)).await.problem().0, 413, "{path}");
        let endless = Drip { bytes: Bytes::from_static(b"[1, "), repeats: true, sent: false };
        assert_eq!(server.post(path, Body::new(endless)).await.problem().0, 413, "{path}");
    }
    let claimed = Request::post(POSTS[0]).header(header::CONTENT_LENGTH, 1_u64 << 40);
    let claimed = claimed.body(Body::empty()).expect("a request");
    assert_eq!(server.send(claimed).await.problem().0, 413);
}

#[tokio::test]
async fn bodies_beyond_the_memory_for_all_of_them_wait_elsewhere() {
    let limits = RequestLimits { body_bytes: 8192, buffered_bytes: 8192, ..RequestLimits::default() };
    let server = std::sync::Arc::new(limited(limits));
    let slow = Drip { bytes: Bytes::from_static(b"{"), repeats: false, sent: false };
    let shared = std::sync::Arc::clone(&server);
    let first = tokio::spawn(async move { shared.post(POSTS[0], Body::new(slow)).await.status });
    // The first request has the memory while it waits for the rest of its body.
    tokio::task::yield_now().await;
    let request = json!({"model": "warehouse", "beliefs": {}}).to_string();
    let refused = server.post(POSTS[0], Body::from(request.clone())).await;
    assert_eq!((refused.problem().0, &refused.headers["retry-after"]), (503, &"1".parse().unwrap()));
    first.abort();
    assert!(first.await.is_err());
    assert_eq!(server.post(POSTS[0], request).await.status, 200);
}

#[tokio::test]
async fn slow_bodies_are_refused() {
    let server = limited(RequestLimits { body_time: Duration::from_millis(20), ..RequestLimits::default() });
    for path in POSTS {
        let slow = Drip { bytes: Bytes::from_static(b"{\"model\": "), repeats: false, sent: false };
        assert_eq!(server.post(path, Body::new(slow)).await.problem().0, 408, "{path}");
    }
}

#[tokio::test]
async fn bodies_that_break_off_are_refused() {
    let server = Server::warehouse();
    let broken = [Ok(Frame::data(Bytes::from_static(b"{"))), Err(std::io::Error::other("gone"))];
    let body = Body::new(StreamBody::new(Frames(broken.into_iter().collect())));
    assert_eq!(server.post(POSTS[0], body).await.problem().0, 400);
}

/// Frames one after the other.
struct Frames(std::collections::VecDeque<Result<Frame<Bytes>, std::io::Error>>);

impl futures_core::Stream for Frames {
    type Item = Result<Frame<Bytes>, std::io::Error>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.pop_front())
    }
}

#[tokio::test]
async fn too_many_rows_or_assignments_are_refused() {
    let wide = limited(RequestLimits { numbers: 80, ..RequestLimits::default() });
    let request = json!({"model": "warehouse", "rows": vec![json!({}); 11]});
    assert!(wide.refused("/api/v1/predict", request).await.1.contains("more than the limit of 10;"));
    let server = limited(RequestLimits { rows: 10, ..RequestLimits::default() });
    let rows = |n: usize, top: usize| json!({"model": "warehouse", "rows": vec![json!({}); n], "query": "mpe", "top": top});
    assert_eq!(server.refused("/api/v1/predict", rows(11, 1)).await.0, 413);
    assert_eq!(server.refused("/api/v1/predict", rows(10, 2)).await.0, 422);
    assert_eq!(server.refused("/api/v1/predict", rows(1, 0)).await.0, 422);
    let answer = server.ask("/api/v1/predict", rows(10, 1)).await;
    assert_eq!(answer["rows"].as_array().map(Vec::len), Some(10));
}

#[tokio::test]
async fn work_that_takes_too_long_is_refused() {
    let server = limited(RequestLimits { time: Duration::ZERO, ..RequestLimits::default() });
    let (status, sentence) =
        server.refused("/api/v1/predict", json!({"model": "warehouse", "beliefs": {}})).await;
    assert!(matches!(status, 422 | 503), "{status} {sentence}");
}

#[tokio::test]
async fn other_media_types_methods_and_paths_are_refused() {
    let server = Server::warehouse();
    for path in &POSTS[..6] {
        let request = Request::post(*path).header(header::CONTENT_TYPE, "text/plain");
        let answer = server.send(request.body(Body::from("{}")).expect("a request")).await;
        assert_eq!(answer.problem().0, 415, "{path}");
        assert_eq!(server.get(path).await.problem().0, 405, "{path}");
    }
    assert_eq!(server.get("/api/v2").await.problem().0, 404);
}
