//! SIGTERM under load.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::json;

use super::client::{Connection, Server};
use crate::runner::Folder;

/// The number of clients.
const CLIENTS: usize = 16;

/// What a client saw.
#[derive(Default)]
struct Seen {
    answered: usize,
    /// Requests on an open connection that was closed without an answer.
    lost: usize,
}

/// Sends requests until the server ends the connection, or until clients open no more of them. `keeps` reuses connections.
fn load(address: &str, keeps: bool, total: &AtomicUsize, is_ending: &AtomicBool) -> Seen {
    let rows = vec![json!({"feet": {"gait": 0.3, "standing": 0.7}}); 50];
    let body = json!({"model": "warehouse", "rows": rows, "query": "both"}).to_string();
    let mut seen = Seen::default();
    // A gateway opens no more connections once `/readyz` says that the service ends.
    while !is_ending.load(Ordering::Relaxed) {
        let mut connection = Connection::open(address).expect("connections are accepted");
        loop {
            let sent = connection.send("POST", "/api/v1/predict", &[], body.as_bytes());
            let answer = sent.and_then(|()| connection.receive());
            let Ok(answer) = answer else {
                seen.lost += 1;
                break;
            };
            assert_eq!(answer.status, 200, "{answer:?}");
            assert_eq!(answer.json()["rows"].as_array().map(Vec::len), Some(50));
            seen.answered += 1;
            total.fetch_add(1, Ordering::Relaxed);
            if !keeps || answer.header("connection") == Some("close") {
                break;
            }
        }
    }
    seen
}

#[test]
fn sigterm_under_load_loses_no_accepted_request() {
    let mut server = Server::start(Folder::warehouse(), "warehouse.prsl --log json");
    let (total, is_ending) = (AtomicUsize::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let (address, total, is_ending) = (server.address.as_str(), &total, &is_ending);
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| scope.spawn(move || load(address, client % 2 == 0, total, is_ending)))
            .collect();
        while total.load(Ordering::Relaxed) < 200 {
            std::thread::yield_now();
        }
        server.terminate();
        is_ending.store(true, Ordering::Relaxed);
        let seen: Vec<Seen> =
            clients.into_iter().map(|client| client.join().expect("no client panics")).collect();
        let answered: usize = seen.iter().map(|seen| seen.answered).sum();
        let lost: usize = seen.iter().map(|seen| seen.lost).sum();
        assert!(answered >= 200);
        assert_eq!(lost, 0, "of {answered} answered ones");
    });
    let log = server.wait();
    assert!(log.contains("\"message\":\"ended\""), "{log}");
}

#[test]
fn an_idle_connection_does_not_delay_the_end() {
    let mut server = Server::start(Folder::warehouse(), "warehouse.prsl --log json");
    let mut idle = Connection::open(&server.address).expect("a connection");
    idle.send("GET", "/healthz", &[], b"").expect("a request");
    assert_eq!(idle.receive().expect("an answer").status, 200);
    let log = server.stop();
    assert!(!log.contains("did not end in time"), "{log}");
}
