//! Models that requests write and delete.

use axum::body::Body;
use axum::http::{Request, header};
use prsl_server::{PostedLimits, RequestLimits, Service, Settings};
use serde_json::json;

use crate::server::{Answer, Server, WAREHOUSE};

fn writable() -> Server {
    Server::new(&[("warehouse", WAREHOUSE)], Settings { writable: true, ..Settings::default() })
}

async fn send(server: &Server, method: &str, name: &str, text: &str, if_match: Option<&str>) -> Answer {
    let request = Request::builder().method(method).uri(format!("/api/v1/models/{name}"));
    let mut request = request.header(header::CONTENT_TYPE, "application/json");
    if let Some(version) = if_match {
        request = request.header(header::IF_MATCH, version);
    }
    server.send(request.body(Body::from(json!({"text": text}).to_string())).expect("a request")).await
}

#[tokio::test]
async fn a_model_is_written_served_and_its_old_version_kept() {
    let server = writable();
    let texts = ["label a prior 0.3\n", "label a prior 0.4\n"];
    for text in texts {
        let answer = send(&server, "PUT", "new", text, None).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(std::fs::read_to_string(server.file("new")).unwrap(), text);
        assert_eq!(answer.json()["text"], text);
    }
    let answer = server.ask("/api/v1/predict", json!({"model": "new", "beliefs": {}})).await;
    assert_eq!(answer["rows"][0]["marginals"]["a"]["yes"], 0.4);
    let kept = server.folder.path().join(".versions/new/000001.prsl");
    assert_eq!(std::fs::read_to_string(kept).unwrap(), texts[0]);
    // A look at the files changes nothing.
    server.service.refresh();
    server.service.refresh();
    assert_eq!(server.get("/api/v1/models/new").await.json()["text"], texts[1]);

    assert_eq!(send(&server, "DELETE", "new", "", None).await.status, 204);
    assert!(!server.file("new").exists());
    assert_eq!(server.get("/api/v1/models/new").await.status, 404);
    let kept = server.folder.path().join(".versions/new/000002.prsl");
    assert_eq!(std::fs::read_to_string(kept).unwrap(), texts[1]);
    assert_eq!(send(&server, "DELETE", "new", "", None).await.status, 404);
}

#[tokio::test]
async fn a_model_with_errors_is_not_written() {
    let server = writable();
    let contradiction = "label a\nrule 1: a\nrule 1: !a\n";
    let failed = "label a prior 0.3\nexpect => a > 0.5\n";
    for text in ["label a\nrule 0.9: b\n", contradiction, failed] {
        let answer = send(&server, "PUT", "warehouse", text, None).await;
        assert_eq!(answer.problem().0, 422);
        let line = &answer.json()["findings"][0]["line"];
        assert!(line.as_u64().is_some_and(|line| line >= 2), "{}", answer.text());
    }
    assert_eq!(std::fs::read_to_string(server.file("warehouse")).unwrap(), WAREHOUSE);
    assert!(!server.folder.path().join(".versions").exists());
}

#[tokio::test]
async fn a_costly_model_is_not_written() {
    let posted = PostedLimits { work: 10.0, ..PostedLimits::default() };
    let limits = RequestLimits { posted, ..RequestLimits::default() };
    let server = Server::new(&[], Settings { writable: true, limits, ..Settings::default() });
    let answer = send(&server, "PUT", "warehouse", WAREHOUSE, None).await;
    assert!(answer.problem().1.starts_with("the model needs "), "{}", answer.text());
    assert!(!server.file("warehouse").exists());
}

#[tokio::test]
async fn a_change_of_somebody_else_is_not_overwritten() {
    let server = writable();
    let tag = server.get("/api/v1/models/warehouse").await.headers["etag"].to_str().unwrap().to_owned();
    assert_eq!(send(&server, "PUT", "warehouse", "label a\n", Some(&tag)).await.status, 200);
    assert_eq!(send(&server, "PUT", "warehouse", "label b\n", Some(&tag)).await.problem().0, 412);
    assert_eq!(send(&server, "DELETE", "warehouse", "", Some(&tag)).await.problem().0, 412);
    assert_eq!(server.get("/api/v1/models/warehouse").await.json()["text"], "label a\n");
}

#[tokio::test]
async fn models_are_read_only_unless_told_otherwise() {
    let server = Server::warehouse();
    assert_eq!(send(&server, "PUT", "warehouse", "label a\n", None).await.problem().0, 403);
    assert_eq!(send(&server, "DELETE", "warehouse", "", None).await.problem().0, 403);
    let settings = Settings { writable: true, ..Settings::default() };
    let refused =
        Service::open(&[server.file("warehouse")], None, settings.clone()).err().expect("no folder");
    assert!(refused.to_string().contains("--dir"));
    // A model that was named at the start is not in the folder.
    let other = tempfile::tempdir().unwrap();
    let service = Service::open(&[server.file("warehouse")], Some(other.path()), settings).unwrap();
    let app = prsl_server::app(service);
    let request = Request::delete("/api/v1/models/warehouse").body(Body::empty()).unwrap();
    assert_eq!(tower::ServiceExt::oneshot(app, request).await.unwrap().status(), 403);
    assert!(server.file("warehouse").exists());
}
