//! Models in requests stay compiled for the next question about the same text.

use prsl_server::{PostedLimits, RequestLimits, Settings};
use serde_json::{Value, json};

use crate::server::{Server, WAREHOUSE};

/// The number of models in requests that were compiled, and that were kept from an earlier request.
async fn counts(server: &Server) -> [u64; 2] {
    let metrics = server.get("/metrics").await.text();
    ["compiled", "kept"].map(|result| {
        let name = format!("prsl_posted_models_total{{result=\"{result}\"}} ");
        let found = metrics.lines().find_map(|line| line.strip_prefix(name.as_str()));
        found.map_or(0, |count| count.parse().expect("a number"))
    })
}

fn questions() -> Vec<Value> {
    let text = WAREHOUSE.replace("rule 0.8 ", "rule 0.75 ");
    vec![
        json!({"text": text, "beliefs": {"feet": [0.2, 0.8]}}),
        json!({"text": text, "beliefs": {"feet": [0.3, 0.7]}, "label": "activity", "flip": "normal", "next": true}),
        json!({"text": text, "beliefs": {"hands": "high"}, "explain": true}),
        json!({"text": text, "beliefs": {"feet": [0.2, 0.8]}, "rules": {"1": "off", "3": 0.9}, "explain": true}),
        json!({"model": "warehouse", "beliefs": {"feet": [0.2, 0.8]}, "rules": {"2": "off"}, "explain": true}),
    ]
}

#[tokio::test]
async fn a_kept_model_answers_as_a_new_one() {
    let kept = Server::warehouse();
    let posted = PostedLimits { kept: 0, ..PostedLimits::default() };
    let limits = RequestLimits { posted, ..RequestLimits::default() };
    let never = Server::new(&[("warehouse", WAREHOUSE)], Settings { limits, ..Settings::default() });
    for _ in 0..2 {
        for question in questions() {
            let expected = never.ask("/api/v1/whatif", question.clone()).await;
            assert_eq!(kept.ask("/api/v1/whatif", question).await, expected);
        }
    }
    // One model for the first three questions, and one for each of the others.
    assert_eq!(counts(&kept).await, [3, 7]);
    assert_eq!(counts(&never).await, [10, 0]);
}

#[tokio::test]
async fn a_kept_model_is_still_costed() {
    let text = WAREHOUSE.replace("rule 0.8 ", "rule 0.75 ");
    let engine = prsl::Engines::new(&prsl::Model::parse(&text).expect("a model")).marginals();
    // Enough for the posterior, but not for that without each of three rules.
    let work = 2.0 * engine.expect("an engine").work();
    let posted = PostedLimits { work, ..PostedLimits::default() };
    let limits = RequestLimits { posted, ..RequestLimits::default() };
    let server = Server::new(&[("warehouse", WAREHOUSE)], Settings { limits, ..Settings::default() });
    for _ in 0..2 {
        server.ask("/api/v1/whatif", json!({"text": text})).await;
        let (status, sentence) =
            server.refused("/api/v1/whatif", json!({"text": text, "explain": true})).await;
        assert!(status == 422 && sentence.starts_with("the model needs "), "{sentence}");
        let rows = json!({"text": text, "rows": vec![json!({}); 100]});
        assert_eq!(server.refused("/api/v1/whatif", rows).await.0, 422);
    }
    assert_eq!(counts(&server).await, [1, 5]);
}

#[tokio::test]
async fn a_changed_file_is_not_answered_by_a_kept_model() {
    let server = Server::new(&[("m", "label a prior 0.2\nlabel b\nrule 0.9: a -> b\n")], Settings::default());
    let question = json!({"model": "m", "rules": {"1": 0.8}});
    let before = server.ask("/api/v1/whatif", question.clone()).await;
    std::fs::write(server.file("m"), "label a prior 0.3\nlabel b\nrule 0.9: a -> b\n").expect("a file");
    server.service.refresh();
    server.service.refresh();
    let after = server.ask("/api/v1/whatif", question).await;
    assert_ne!(before["marginals"], after["marginals"]);
    assert_eq!(counts(&server).await, [2, 0]);
}
