//! A service with models in a temporary folder, and a client that calls its router.

use std::path::PathBuf;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request, StatusCode, header};
use http_body_util::BodyExt;
use prsl_server::{Service, Settings, app};
use serde_json::Value;
use tempfile::TempDir;
use tower::ServiceExt;

/// The worked example of the paper.
pub const WAREHOUSE: &str = include_str!("../../../../examples/warehouse.prsl");

/// A service and its folder of models.
pub struct Server {
    pub service: Service,
    pub folder: TempDir,
    app: Router,
}

/// An answer.
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Server {
    /// Serves these models from a folder.
    pub fn new(models: &[(&str, &str)], settings: Settings) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for (name, text) in models {
            std::fs::write(folder.path().join(format!("{name}.prsl")), text).expect("a file");
        }
        let service = Service::open(&[], Some(folder.path()), settings).expect("a service");
        let app = app(service.clone());
        Self { service, folder, app }
    }

    /// Serves the worked example.
    pub fn warehouse() -> Self {
        Self::new(&[("warehouse", WAREHOUSE)], Settings::default())
    }

    /// The file of a model.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!("{name}.prsl"))
    }

    pub async fn send(&self, request: Request<Body>) -> Answer {
        let response = self.app.clone().oneshot(request).await.expect("a router answers always");
        let (parts, body) = response.into_parts();
        let body = body.collect().await.expect("a whole body").to_bytes().to_vec();
        Answer { status: parts.status, headers: parts.headers, body }
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send(Request::get(path).body(Body::empty()).expect("a request")).await
    }

    pub async fn post(&self, path: &str, json: impl Into<Body>) -> Answer {
        let request = Request::post(path).header(header::CONTENT_TYPE, "application/json");
        self.send(request.body(json.into()).expect("a request")).await
    }

    /// The JSON of a request that succeeds.
    pub async fn ask(&self, path: &str, json: Value) -> Value {
        let answer = self.post(path, json.to_string()).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
        answer.json()
    }

    /// The status and the sentence of a request that fails.
    pub async fn refused(&self, path: &str, json: Value) -> (u16, String) {
        self.post(path, json.to_string()).await.problem()
    }
}

impl Answer {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// The status and the sentence of a problem.
    pub fn problem(&self) -> (u16, String) {
        assert_eq!(self.headers[header::CONTENT_TYPE], "application/problem+json", "{}", self.text());
        let problem = self.json();
        assert_eq!(problem["status"], self.status.as_u16());
        assert_eq!(problem["detail"], problem["error"]);
        (self.status.as_u16(), problem["detail"].as_str().expect("a sentence").to_owned())
    }
}
