//! The token, origins, headers and names of models.

use axum::body::Body;
use axum::http::{Method, Request, StatusCode, header};
use prsl_server::{Settings, Token, check_address};
use serde_json::{Value, json};

use crate::server::{Answer, Server, WAREHOUSE};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

fn protected() -> Server {
    let token = Some(Token::new(TOKEN).expect("long enough"));
    let settings = Settings { token, writable: true, local_host_only: false, ..Settings::default() };
    Server::new(&[("warehouse", WAREHOUSE)], settings)
}

async fn send(server: &Server, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
    let mut request =
        Request::builder().method(method).uri(path).header(header::CONTENT_TYPE, "application/json");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    server.send(request.body(Body::from("{}")).expect("a request")).await
}

/// All methods and paths of the description, and those beside it.
async fn routes(server: &Server) -> Vec<(String, String)> {
    let answer = send(server, "GET", "/openapi.json", &[("authorization", &format!("Bearer {TOKEN}"))]).await;
    let description = answer.json();
    let mut routes = Vec::new();
    for (path, item) in description["paths"].as_object().expect("paths") {
        let path = path.replace("{name}", "warehouse").replace("{model}", "warehouse");
        let methods = item.as_object().expect("methods").keys().map(|method| method.to_uppercase());
        routes.extend(methods.map(|method| (method, path.clone())));
    }
    let others =
        ["/", "/page/page.js", "/docs", "/docs/", "/docs/swagger-ui.css", "/openapi.json", "/nothing"];
    routes.extend(others.map(|path| ("GET".to_owned(), path.to_owned())));
    assert!(routes.len() > 20, "{routes:?}");
    routes
}

#[tokio::test]
async fn nothing_but_health_answers_without_the_token() {
    let server = protected();
    let health = ["/healthz", "/readyz", "/v2/health/live", "/v2/health/ready"];
    let basic = |password: &str| {
        use base64::Engine as _;
        format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(format!("any:{password}")))
    };
    let right = [format!("Bearer {TOKEN}"), format!("bearer {TOKEN}"), basic(TOKEN)];
    let shorter = &TOKEN[1..];
    let wrong = [
        String::new(),
        "Bearer".to_owned(),
        format!("Bearer {shorter}"),
        format!("Bearer {TOKEN}0"),
        TOKEN.to_owned(),
        format!("Token {TOKEN}"),
        basic(shorter),
        "Basic !!!".to_owned(),
    ];
    for (method, path) in routes(&server).await {
        if method == "DELETE" {
            continue; // below
        }
        let is_health = health.contains(&path.as_str());
        for token in &wrong {
            let answer = send(&server, &method, &path, &[("authorization", token)]).await;
            assert_eq!(answer.status == StatusCode::UNAUTHORIZED, !is_health, "{method} {path} {token}");
            assert!(!answer.text().contains(TOKEN) && !answer.text().contains("label activity"));
        }
        assert_eq!(send(&server, &method, &path, &[]).await.status == 401, !is_health, "{method} {path}");
        for token in &right {
            let answer = send(&server, &method, &path, &[("authorization", token)]).await;
            assert_ne!(answer.status, StatusCode::UNAUTHORIZED, "{method} {path}");
        }
    }
    assert_eq!(send(&server, "DELETE", "/api/v1/models/warehouse", &[]).await.status, 401);
    assert!(server.file("warehouse").exists());
}

#[tokio::test]
async fn readiness_without_the_token_has_no_details() {
    let server = protected();
    assert_eq!(server.get("/readyz").await.json(), json!({"status": "ready"}));
    let answer = send(&server, "GET", "/readyz", &[("authorization", &format!("Bearer {TOKEN}"))]).await;
    assert_eq!(answer.json()["models"][0]["name"], "warehouse");
}

#[tokio::test]
async fn a_refusal_says_how_to_send_the_token() {
    let answer = protected().get("/v2").await;
    let challenges: Vec<_> = answer.headers.get_all(header::WWW_AUTHENTICATE).iter().collect();
    assert_eq!(challenges.len(), 2);
    assert!(answer.problem().1.contains("Authorization: Bearer"));
}

#[tokio::test]
async fn names_are_never_paths() {
    let server = protected();
    std::fs::write(server.folder.path().join("secret.txt"), "secret").expect("a file");
    let authorization = format!("Bearer {TOKEN}");
    for name in [
        "..%2f..%2fetc%2fpasswd",
        "%2e%2e%2fsecret.txt",
        "..",
        "%2e%2e",
        ".versions",
        "warehouse%2f..%2fwarehouse",
        "warehouse.prsl",
        "warehouse%00",
        "%2fetc%2fpasswd",
        "C:%5cmodel",
        "~root",
        "a%20b",
    ] {
        for path in [format!("/api/v1/models/{name}"), format!("/v2/models/{name}")] {
            let answer = send(&server, "GET", &path, &[("authorization", &authorization)]).await;
            assert!(matches!(answer.status.as_u16(), 400 | 404), "{path}: {}", answer.status);
        }
        if name.starts_with("warehouse.prsl") {
            continue; // a valid name of a new model
        }
        for method in [Method::PUT, Method::DELETE] {
            let path = format!("/api/v1/models/{name}");
            let request =
                Request::builder().method(method).uri(&path).header(header::AUTHORIZATION, &authorization);
            let request = request.header(header::CONTENT_TYPE, "application/json");
            let answer =
                server.send(request.body(Body::from(r#"{"text": "label a"}"#)).expect("a request")).await;
            assert!(matches!(answer.status.as_u16(), 400 | 404 | 405 | 422), "{path}: {}", answer.status);
        }
    }
    let mut files: Vec<_> =
        std::fs::read_dir(server.folder.path()).unwrap().map(|it| it.unwrap().file_name()).collect();
    files.sort();
    assert_eq!(files, ["secret.txt", "warehouse.prsl"]);
}

#[tokio::test]
async fn pages_of_other_sites_are_refused() {
    let server = Server::warehouse();
    let rebound = [("host", "rebound.example.org:8080")];
    assert_eq!(send(&server, "GET", "/api/v1/models", &rebound).await.problem().0, 403);
    assert_eq!(send(&server, "GET", "/api/v1/models", &[("host", "localhost:8080")]).await.status, 200);
    let cross = [("host", "localhost"), ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "cors")];
    assert_eq!(send(&server, "POST", "/api/v1/predict", &cross).await.problem().0, 403);
    let link = [("host", "localhost"), ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")];
    assert_eq!(send(&server, "GET", "/", &link).await.status, 200);
}

#[tokio::test]
async fn every_answer_has_the_security_headers_and_an_id() {
    let server = Server::warehouse();
    for path in ["/", "/docs/", "/healthz", "/nothing", "/api/v1/models", "/metrics"] {
        let answer = server.get(path).await;
        let policy = answer.headers["content-security-policy"].to_str().expect("a policy");
        assert!(policy.starts_with("default-src 'none'; script-src 'self'"), "{path}");
        assert!(
            !policy.contains("http:") && !policy.contains("https:") && !policy.contains("unsafe"),
            "{path}"
        );
        assert_eq!(answer.headers["x-content-type-options"], "nosniff");
        assert_eq!(answer.headers["x-frame-options"], "DENY");
        assert!(answer.headers.contains_key("x-request-id"), "{path}");
        assert!(!answer.headers.contains_key("access-control-allow-origin"));
    }
    let answer = send(&server, "GET", "/healthz", &[("x-request-id", "from-gateway-1")]).await;
    assert_eq!(answer.headers["x-request-id"], "from-gateway-1");
}

#[tokio::test]
async fn pages_use_nothing_from_elsewhere() {
    let server = Server::warehouse();
    for path in ["/", "/docs/", "/docs/swagger-initializer.js"] {
        let text = server.get(path).await.text();
        assert!(!text.contains("http://") && !text.contains("https://"), "{path}: {text}");
        assert!(!text.contains("<style") && !text.contains("onclick"), "{path}");
    }
}

#[tokio::test]
async fn the_page_has_a_fresh_nonce_for_styles() {
    let server = Server::warehouse();
    let mut nonces = Vec::new();
    for _ in 0..2 {
        let answer = server.get("/").await;
        let policy = answer.headers["content-security-policy"].to_str().expect("a policy").to_owned();
        let (_, nonce) = policy.split_once("style-src 'self' 'nonce-").expect("a nonce");
        let (nonce, _) = nonce.split_once('\'').expect("its end");
        assert!(answer.text().contains(&format!("<meta name=\"nonce\" content=\"{nonce}\">")));
        assert!(nonce.len() >= 22 && !answer.text().contains("{nonce}"));
        nonces.push(nonce.to_owned());
    }
    assert_ne!(nonces[0], nonces[1]);
}

#[tokio::test]
async fn every_file_of_the_page_is_served() {
    let server = Server::warehouse();
    let page = server.get("/").await.text();
    for (path, kind) in [
        ("page/page.js", "text/javascript"),
        ("page/page.css", "text/css"),
        ("page/icon.svg", "image/svg+xml"),
    ] {
        assert!(page.contains(&format!("\"./{path}\"")), "{page}");
        let answer = server.get(&format!("/{path}")).await;
        assert_eq!(answer.status, 200);
        assert!(answer.headers["content-type"].to_str().expect("a type").starts_with(kind));
    }
}

#[test]
fn other_machines_need_a_token() {
    let (open, local) = ("0.0.0.0:80".parse().unwrap(), "127.0.0.1:80".parse().unwrap());
    let without = Settings::default();
    assert!(check_address(local, &without, false).is_ok() && check_address(open, &without, true).is_ok());
    let refused = check_address(open, &without, false).unwrap_err().to_string();
    assert!(refused.contains("--token-file") && refused.contains("--no-auth"), "{refused}");
    let with = Settings { token: Token::new(TOKEN).ok(), ..Settings::default() };
    assert!(check_address(open, &with, false).is_ok());
}

#[tokio::test]
async fn the_description_names_every_schema_that_it_uses() {
    let description = Server::warehouse().get("/openapi.json").await.json();
    let schemas = description["components"]["schemas"].as_object().expect("schemas");
    let mut wanted = Vec::new();
    references(&description, &mut wanted);
    assert!(wanted.len() > 20);
    for reference in wanted {
        let name = reference.strip_prefix("#/components/schemas/").expect("a schema");
        assert!(schemas.contains_key(name), "{name}");
    }
}

fn references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            found.extend(map.get("$ref").and_then(Value::as_str).map(str::to_owned));
            map.values().for_each(|value| references(value, found));
        }
        Value::Array(list) => list.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}
