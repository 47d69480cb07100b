//! Model files that change while requests run.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use prsl::{Evidence, Model};
use prsl_server::{Service, Settings};
use serde_json::{Value, json};

use crate::server::{Server, WAREHOUSE};

/// The worked example with another probability of its first rule.
fn variant(number: usize) -> String {
    WAREHOUSE.replace("rule 0.8 ", &format!("rule {} ", 0.5 + number as f64 / 1000.0))
}

/// Replaces a file at once, as careful programs do.
fn replace(server: &Server, text: &str) {
    let part = server.folder.path().join("part");
    std::fs::write(&part, text).expect("a file");
    std::fs::rename(part, server.file("warehouse")).expect("a renamed file");
}

/// Looks twice: a file is read when it has not changed between two looks.
fn refresh(server: &Server) {
    server.service.refresh();
    server.service.refresh();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_file_replaced_a_hundred_times_under_load_never_gives_a_mixed_answer() {
    let server = Arc::new(Server::new(&[("warehouse", &variant(0))], Settings::default()));
    let evidence = Evidence::new().belief("feet", [0.3, 0.7]);
    // What each version must answer, by its text.
    let expected = |number: usize| {
        let model = Model::parse(&variant(number)).expect("a model");
        model.infer(&evidence).expect("possible").marginals()[0]
    };
    let expected: Vec<f64> = (0..=100).map(expected).collect();
    let is_over = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..4)
        .map(|_| {
            let (server, is_over) = (Arc::clone(&server), Arc::clone(&is_over));
            tokio::spawn(async move {
                let mut seen: Vec<(String, f64)> = Vec::new();
                while !is_over.load(Ordering::Relaxed) {
                    let rows = vec![json!({"feet": {"gait": 0.3, "standing": 0.7}}); 20];
                    let answer =
                        server.ask("/api/v1/predict", json!({"model": "warehouse", "rows": rows})).await;
                    let first = &answer["rows"][0];
                    let all = answer["rows"].as_array().expect("rows");
                    assert!(all.len() == 20 && all.iter().all(|row| row == first), "a mixed answer");
                    let walking = first["marginals"]["activity"]["walking"].as_f64().expect("a number");
                    seen.push((answer["version"].as_str().expect("a version").to_owned(), walking));
                }
                seen
            })
        })
        .collect();
    for number in 1..=100 {
        let server = Arc::clone(&server);
        let work = move || {
            replace(&server, &variant(number));
            refresh(&server);
        };
        tokio::task::spawn_blocking(work).await.expect("it reloads");
    }
    let last =
        server.ask("/api/v1/predict", json!({"model": "warehouse", "beliefs": {"feet": [0.3, 0.7]}})).await;
    is_over.store(true, Ordering::Relaxed);
    assert_eq!(last["rows"][0]["marginals"]["activity"]["walking"].as_f64(), Some(expected[100]));
    let mut by_version: HashMap<String, f64> = HashMap::new();
    for client in clients {
        for (version, walking) in client.await.expect("no client panics") {
            assert!(expected.contains(&walking), "{walking} is no version's answer");
            assert_eq!(*by_version.entry(version).or_insert(walking), walking);
        }
    }
    assert!(by_version.len() > 1, "the load saw one version only");
}

async fn state(server: &Server) -> Value {
    let answer = server.get("/readyz").await;
    assert_eq!(answer.status, 200);
    answer.json()
}

#[tokio::test]
async fn a_broken_file_keeps_the_old_model_and_shows_in_readyz() {
    let server = Server::warehouse();
    assert_eq!(state(&server).await["status"], "ready");
    let before = server.get("/api/v1/models/warehouse").await.json();
    for broken in ["label a\nrule 0.9: b", "", "\u{0}", "{\"format\": 3}"] {
        replace(&server, broken);
        refresh(&server);
        if broken.is_empty() {
            continue; // an empty text is a model without labels
        }
        let now = state(&server).await;
        assert_eq!(now["status"], "degraded", "{broken:?}");
        assert_eq!(now["models"][0]["ready"], true);
        assert!(
            now["models"][0]["failure"].as_str().is_some_and(|failure| failure.contains("warehouse.prsl"))
        );
    }
    replace(&server, "label a\nrule 0.9: b");
    refresh(&server);
    replace(&server, WAREHOUSE);
    refresh(&server);
    assert_eq!(state(&server).await["status"], "ready");
    assert_eq!(server.get("/api/v1/models/warehouse").await.json(), before);
}

#[tokio::test]
async fn a_file_that_is_still_being_written_waits() {
    let server = Server::warehouse();
    server.service.refresh();
    std::fs::write(server.file("warehouse"), "label a\n").expect("a file");
    server.service.refresh();
    assert_eq!(server.get("/api/v1/models/warehouse").await.json()["text"], WAREHOUSE);
    server.service.refresh();
    assert_eq!(server.get("/api/v1/models/warehouse").await.json()["text"], "label a\n");
}

#[tokio::test]
async fn files_of_the_folder_come_and_go() {
    let server = Server::warehouse();
    std::fs::write(server.folder.path().join("other.json"), Model::parse("label a").unwrap().to_json())
        .unwrap();
    std::fs::write(server.folder.path().join("notes.txt"), "no model").unwrap();
    refresh(&server);
    assert_eq!(server.service.model_names(), ["other", "warehouse"]);
    std::fs::remove_file(server.file("warehouse")).unwrap();
    refresh(&server);
    assert_eq!(server.service.model_names(), ["other"]);
}

#[test]
fn models_named_at_the_start_must_be_valid_and_have_different_names() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("a.prsl"), "label a\n").unwrap();
    std::fs::write(path("a.json"), Model::parse("label a").unwrap().to_json()).unwrap();
    std::fs::write(path("broken.prsl"), "label a\nrule 0.9: b\n").unwrap();
    let open = |names: &[&str]| {
        let paths: Vec<_> = names.iter().map(|name| path(name)).collect();
        Service::open(&paths, None, Settings::default()).map(|service| service.model_names())
    };
    assert_eq!(open(&["a.prsl"]).unwrap(), ["a"]);
    assert!(open(&["a.prsl", "a.json"]).unwrap_err().to_string().contains("are both called `a`"));
    assert!(open(&["broken.prsl"]).unwrap_err().to_string().contains("unknown category `b`"));
    assert!(open(&["absent.prsl"]).unwrap_err().to_string().starts_with("cannot read `"));
}

#[tokio::test]
async fn a_model_named_at_the_start_stays_when_its_file_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.prsl");
    std::fs::write(&path, "label a\n").unwrap();
    let service = Service::open(std::slice::from_ref(&path), None, Settings::default()).unwrap();
    std::fs::remove_file(&path).unwrap();
    service.refresh();
    service.refresh();
    assert_eq!(service.model_names(), ["a"]);
    std::fs::write(&path, "label b\n").unwrap();
    service.refresh();
    service.refresh();
    assert_eq!(service.model_names(), ["a"]);
}
