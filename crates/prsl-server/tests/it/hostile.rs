//! Models in requests are costed before they run.

use std::fmt::Write as _;

use prsl_server::{PostedLimits, RequestLimits, Settings};
use serde_json::json;

use crate::server::Server;

/// Labels in a grid whose neighbors differ, which no junction tree of any use covers.
fn grid(side: usize) -> String {
    let mut text = String::new();
    for y in 0..side {
        for x in 0..side {
            let _ = writeln!(text, "label l{x}_{y}");
        }
    }
    for y in 0..side {
        for x in 1..side {
            let _ = writeln!(
                text,
                "rule 0.7: l{x}_{y} xor l{}_{y}\nrule 0.7: l{y}_{x} xor l{y}_{}",
                x - 1,
                x - 1
            );
        }
    }
    text
}

fn small() -> Server {
    let posted = PostedLimits { bytes: 100_000, memory: 32 << 20, work: 1e7, ..PostedLimits::default() };
    let limits = RequestLimits { posted, ..RequestLimits::default() };
    Server::new(&[], Settings { limits, ..Settings::default() })
}

#[tokio::test]
async fn a_text_that_is_too_large_is_refused() {
    let server = small();
    let text = "label a\n".to_owned() + &"#".repeat(100_000);
    for path in ["/api/v1/check", "/api/v1/whatif"] {
        let (status, sentence) = server.refused(path, json!({"text": text})).await;
        assert!(status == 413 && sentence.contains("more than the limit of 100000"), "{sentence}");
    }
}

#[tokio::test]
async fn an_explanation_with_too_much_work_is_refused_and_the_answer_alone_is_not() {
    let server = small();
    let text = grid(30);
    let answer = server.ask("/api/v1/whatif", json!({"text": text})).await;
    assert_eq!(answer["engine"], "loopy");
    let (status, sentence) = server.refused("/api/v1/whatif", json!({"text": text, "label": "l0_0"})).await;
    assert_eq!(status, 422);
    assert!(sentence.starts_with("the model needs ") && sentence.contains("multiply-adds"), "{sentence}");
}

#[tokio::test]
async fn expectations_with_too_much_work_are_refused() {
    let server = small();
    let text = grid(20) + &"expect => l0_0 > 0.5\n".repeat(200);
    let (status, sentence) = server.refused("/api/v1/check", json!({"text": text})).await;
    assert!(status == 422 && sentence.starts_with("the model needs "), "{sentence}");
}

#[tokio::test]
async fn rules_that_no_engine_can_handle_are_refused() {
    let server = small();
    let mut text: String = (0..1000).map(|label| format!("label x{label}\n")).collect();
    let terms: Vec<String> = (0..4000).map(|i| format!("(x{} & x{})", i % 1000, i * 7 % 997)).collect();
    let _ = writeln!(text, "rule 0.9: {}", terms.join(" | "));
    let (status, sentence) = server.refused("/api/v1/whatif", json!({"text": text})).await;
    assert!(status == 422 && sentence.contains("more than the limit"), "{sentence}");
}
