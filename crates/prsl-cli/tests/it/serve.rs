//! `prsl serve`: the real command, over sockets.

mod cases;
mod client;
mod document;
mod shutdown;

use std::io::{BufRead, BufReader};

use serde_json::json;

use self::client::Server;
use crate::runner::{Folder, WAREHOUSE};

#[test]
fn it_says_where_it_listens_and_logs_without_secrets() {
    let token = "0123456789abcdef0123456789abcdef";
    let folder = Folder::new(&[("warehouse.prsl", WAREHOUSE), ("token", token)]);
    let mut server = Server::start(folder, "warehouse.prsl --token-file token --log json");
    assert_eq!(server.get("/healthz").body, b"ok\n");
    assert_eq!(server.get("/v2").status, 401);
    let authorization = format!("Bearer {token}");
    let body = json!({"model": "warehouse", "beliefs": {"feet": "standing"}}).to_string();
    let headers = [("Authorization", authorization.as_str()), ("X-Request-Id", "gateway-7")];
    let answer = server.send("POST", "/api/v1/predict?key=hidden", &headers, body.as_bytes());
    assert_eq!(answer.status, 200, "{answer:?}");
    let log = server.stop();
    assert!(
        log.contains("\"request_id\":\"gateway-7\"") && log.contains("\"path\":\"/api/v1/predict\""),
        "{log}"
    );
    assert!(!log.contains(token) && !log.contains("hidden") && !log.contains("standing"), "{log}");
    assert!(log.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()), "{log}");
}

#[test]
fn it_refuses_to_start_with_a_sentence() {
    let folder =
        Folder::new(&[("a.prsl", "label a\n"), ("broken.prsl", "label a\nrule 0.9: b\n"), ("short", "abc")]);
    for (arguments, code, part) in [
        ("serve broken.prsl", 3, "unknown category `b`"),
        ("serve absent.prsl", 3, "cannot read `absent.prsl`"),
        ("serve a.prsl --addr 0.0.0.0:0", 3, "`--token-file`"),
        ("serve a.prsl --token-file short", 3, "at least 16"),
        ("serve a.prsl --writable", 2, "--dir"),
        ("serve a.prsl --addr 203.0.113.1:1 --no-auth", 3, "cannot listen on 203.0.113.1:1"),
        ("serve --dir absent", 3, "cannot read `absent`"),
    ] {
        let run = folder.prsl(arguments);
        assert_eq!(run.code, code, "{run}");
        assert!(run.stderr.contains(part), "{run}");
    }
}

#[test]
fn without_a_model_it_serves_the_example() {
    let server = Server::start(Folder::new(&[]), "");
    assert_eq!(server.get("/api/v1/models/warehouse").json()["text"], WAREHOUSE);
    let page = server.get("/");
    assert!(page.status == 200 && String::from_utf8_lossy(&page.body).contains("page/page.js"));
}

#[cfg(target_os = "linux")]
#[test]
fn without_a_browser_it_prints_the_address_of_the_page() {
    let folder = Folder::warehouse();
    let mut command = folder.command("serve warehouse.prsl --open --addr 127.0.0.1:0");
    let command = command.env("PATH", folder.path(".")).stderr(std::process::Stdio::null());
    let mut process = command.stdout(std::process::Stdio::piped()).spawn().expect("the command starts");
    let mut lines = BufReader::new(process.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
    let listening = lines.next().unwrap_or_default();
    let told = lines.next().unwrap_or_default();
    process.kill().and_then(|()| process.wait()).expect("it ends");
    let address = listening.strip_prefix("listening on ").and_then(|rest| rest.split(',').next());
    let address = address.unwrap_or_else(|| panic!("`{listening}` names no address"));
    assert_eq!(told, format!("no browser could be started; open {address}/ in one"));
}

#[test]
fn a_changed_file_is_served_without_a_restart() {
    let server = Server::start(Folder::warehouse(), "warehouse.prsl");
    let text = WAREHOUSE.replace("rule 0.8 ", "rule 0.7 ");
    std::fs::write(server.folder.path("warehouse.prsl"), &text).expect("a file");
    let model = || server.get("/api/v1/models/warehouse").json();
    while model()["text"] != text {
        std::thread::yield_now();
    }
    std::fs::write(server.folder.path("warehouse.prsl"), "label a\nrule 0.9: b\n").expect("a file");
    while server.get("/readyz").json()["status"] != "degraded" {
        std::thread::yield_now();
    }
    assert_eq!(model()["text"], text);
}
