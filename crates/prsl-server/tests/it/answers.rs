//! Answers of `/api/v1` agree with the library.

use prsl::{Evidence, Explainer, Model, RuleId};
use prsl_server::{Service, Settings};
use serde_json::{Value, json};

use crate::server::{Server, WAREHOUSE};

fn beliefs() -> Value {
    json!({
        "activity": {"walking": 0.1, "normal": 0.4, "overhead": 0.5},
        "feet": [0.05, 0.95],
        "hands": {"low": 0.2, "high": 0.5},
    })
}

fn evidence() -> Evidence {
    Evidence::new()
        .belief("activity", [0.1, 0.4, 0.5])
        .belief("feet", [0.05, 0.95])
        .partial_belief("hands", [Some(0.5), None, Some(0.2)])
}

fn warehouse() -> Model {
    Model::parse(WAREHOUSE).expect("a model")
}

#[tokio::test]
async fn a_row_has_the_posterior_of_the_library() {
    let request = json!({"model": "warehouse", "beliefs": beliefs(), "query": "both", "top": 2});
    let answer = Server::warehouse().ask("/api/v1/predict", request).await;
    let posterior = warehouse().infer(&evidence()).expect("possible");
    let row = &answer["rows"][0];
    assert_eq!(row["marginals"]["activity"]["overhead"].as_f64(), Some(posterior.marginals()[2]));
    assert_eq!(row["marginals"]["hands"]["low"].as_f64(), Some(posterior.marginals()[7]));
    assert_eq!(row["log_evidence"].as_f64(), Some(posterior.log_evidence()));
    assert_eq!((&row["status"], &answer["engine"]), (&json!("ok"), &json!("junction_tree")));
    let best = json!({"activity": "overhead", "feet": "standing", "hands": "high"});
    assert_eq!((&row["best"][0]["assignment"], row["best"][0]["proven"].as_bool()), (&best, Some(true)));
    assert_eq!(row["best"].as_array().map(Vec::len), Some(2));
    let labels: Vec<&String> = row["marginals"].as_object().expect("labels").keys().collect();
    assert_eq!(labels, ["activity", "feet", "hands"]);
}

#[tokio::test]
async fn observed_missing_and_partial_beliefs_are_as_in_a_table() {
    let text = "label rain prior 0.3\nlabel wet\nlabel season: dry, wet_season latent\nrule 0.9: rain -> wet";
    let server = Server::new(&[("weather", text)], Settings::default());
    let rows = json!([{"rain": 0.8, "wet": null}, {"wet": "yes"}, {"rain": {"no": 1}, "season": null}, {}]);
    let answer = server.ask("/api/v1/predict", json!({"model": "weather", "rows": rows})).await;
    let model = Model::parse(text).expect("a model");
    let evidence = [
        Evidence::new().belief("rain", [0.8]),
        Evidence::new().observe("wet", "yes"),
        Evidence::new().belief("rain", [0.0, 1.0]),
        Evidence::new(),
    ];
    for (row, evidence) in answer["rows"].as_array().expect("rows").iter().zip(evidence) {
        let expected = model.infer(&evidence).expect("possible").marginals()[0];
        assert_eq!(row["marginals"]["rain"]["yes"].as_f64(), Some(expected));
    }
}

#[tokio::test]
async fn an_impossible_row_is_a_result_and_the_others_are_answered() {
    let server = Server::warehouse();
    let rows = json!([{"activity": "walking", "feet": "standing"}, {"feet": "standing"}]);
    let request = json!({"model": "warehouse", "rows": rows, "query": "both"});
    let answer = server.ask("/api/v1/predict", request).await;
    let rows = &answer["rows"];
    assert_eq!(rows[0], json!({"status": "impossible", "log_evidence": null, "marginals": null, "best": []}));
    assert_eq!(rows[1]["status"], "ok");
    let metrics = server.get("/metrics").await.text();
    assert!(
        metrics.contains(
            "prsl_rows_total{model=\"warehouse\",engine=\"junction_tree\",status=\"impossible\"} 1"
        )
    );
    assert!(metrics.contains("prsl_http_requests_total{route=\"/api/v1/predict\",status=\"200\"} 1"));
}

#[tokio::test]
async fn errors_are_the_librarys_sentences_with_the_row() {
    let server = Server::warehouse();
    let ask =
        async |rows| server.refused("/api/v1/predict", json!({"model": "warehouse", "rows": rows})).await;
    assert_eq!(
        ask(json!([{}, {"feets": "gait"}])).await,
        (422, "row 2: unknown label `feets`; did you mean `feet`?".to_owned())
    );
    assert_eq!(
        ask(json!([{}, {"feet": {"gait": 0.5, "standing": 0.4}}])).await.1,
        "row 2: belief for label `feet` sums to 0.9, expected 1 within 1e-6; correct it, or ask for normalization"
    );
    assert_eq!(ask(json!([{"feets": null}, {}])).await.0, 422);
    let twice = r#"{"model": "warehouse", "beliefs": {"feet": "gait", "feet": "standing"}}"#;
    let answer = server.post("/api/v1/predict", twice).await;
    assert_eq!(answer.problem().1, "label `feet` is given twice in the evidence; keep one of the two");
    let both = json!({"model": "warehouse", "rows": [], "beliefs": {}});
    assert_eq!(server.refused("/api/v1/predict", both).await.0, 422);
    let unknown = json!({"model": "warehouse", "beliefs": {}, "querry": "mpe"});
    assert!(server.refused("/api/v1/predict", unknown).await.1.contains("unknown field `querry`"));
    let model = server.refused("/api/v1/predict", json!({"model": "warehose", "beliefs": {}})).await;
    assert_eq!(model, (404, "no model `warehose` is served; did you mean `warehouse`?".to_owned()));
}

#[tokio::test]
async fn an_explanation_is_that_of_the_library() {
    let server = Server::warehouse();
    let request = json!({"model": "warehouse", "beliefs": beliefs()});
    let answer = server.ask("/api/v1/explain", request).await;
    let explanation = Explainer::compile(&warehouse()).expect("small").explain(&evidence()).expect("its row");
    let mut expected: Value = serde_json::from_str(&explanation.to_json()).expect("JSON");
    expected["model"] = json!("warehouse");
    expected["version"] = answer["version"].clone();
    assert_eq!(answer, expected);
    let request = json!({"model": "warehouse", "beliefs": beliefs(), "label": "feet"});
    let answer = server.ask("/api/v1/explain", request).await;
    let influences = answer["rules"][0]["influences"].as_array().expect("a list");
    assert!(influences.iter().all(|influence| influence["label"] == "feet"));
    assert_eq!(
        server.refused("/api/v1/explain", json!({"model": "warehouse", "label": "feets"})).await.0,
        422
    );
}

#[tokio::test]
async fn changes_and_questions_are_those_of_the_library() {
    let server = Server::warehouse();
    let model = warehouse();
    let engine = prsl::Engines::new(&model).marginals().expect("small");
    let activity = model.find_label("activity").expect("a label");
    let normal = model.find_category(activity, "normal").expect("a category");
    let request =
        json!({"model": "warehouse", "beliefs": beliefs(), "label": "activity", "category": "normal"});
    let answer = server.ask("/api/v1/flip", request).await;
    let expected = engine.counterfactuals(&evidence(), activity, normal).expect("its row");
    assert_eq!(without_version(answer), serde_json::from_str::<Value>(&expected.to_json()).expect("JSON"));
    for (label, about) in [(json!("activity"), Some(activity)), (json!(null), None)] {
        let request = json!({"model": "warehouse", "beliefs": {"feet": "standing"}, "label": label});
        let answer = server.ask("/api/v1/next", request).await;
        let expected =
            engine.information_gains(&Evidence::new().observe("feet", "standing"), about).expect("its row");
        assert_eq!(
            without_version(answer),
            serde_json::from_str::<Value>(&expected.to_json()).expect("JSON")
        );
    }
    let unknown = json!({"model": "warehouse", "label": "activity", "category": "normale"});
    assert_eq!(
        server.refused("/api/v1/flip", unknown).await.1,
        "unknown category `normale` of label `activity`; did you mean `normal`?"
    );
}

fn without_version(mut answer: Value) -> Value {
    let map = answer.as_object_mut().expect("an object");
    assert_eq!(map.remove("model"), Some(json!("warehouse")));
    assert!(map.remove("version").is_some());
    answer
}

#[tokio::test]
async fn a_changed_model_answers_as_if_it_were_written_so() {
    let server = Server::warehouse();
    let rules = json!({"1": "off", "2": 0.7});
    let request = json!({"model": "warehouse", "beliefs": beliefs(), "rules": rules, "label": "activity"});
    let answer = server.ask("/api/v1/whatif", request).await;
    let edited = warehouse().edit().probability_at(RuleId::new(1), 0.7);
    let edited = edited.retain_rules(|rule| rule.index() != 0).build().expect("a model");
    let posterior = edited.infer(&evidence()).expect("possible");
    assert_eq!(answer["marginals"]["activity"]["normal"].as_f64(), Some(posterior.marginals()[1]));
    let numbers: Vec<_> = (0..2).map(|rule| &answer["explanation"]["rules"][rule]["number"]).collect();
    assert_eq!(numbers, [&json!(2), &json!(3)]);
    assert_eq!(answer["best"].as_array().map(Vec::len), Some(2));

    let by_text = json!({"text": edited.to_string(), "beliefs": beliefs()});
    let by_text = server.ask("/api/v1/whatif", by_text).await;
    assert_eq!(by_text["marginals"], answer["marginals"]);
    assert!(by_text.get("explanation").is_none());

    let impossible = json!({"model": "warehouse", "beliefs": {"activity": "walking", "feet": "standing"}});
    let impossible = server.ask("/api/v1/whatif", impossible).await;
    assert!(impossible["conflict"].as_str().expect("a sentence").contains("gait_is_walking"));
    let unknown = json!({"model": "warehouse", "rules": {"4": "off"}});
    assert_eq!(server.refused("/api/v1/whatif", unknown).await.1, "unknown rule `number 4`");
    let high = json!({"model": "warehouse", "rules": {"1": 1.5}});
    assert!(server.refused("/api/v1/whatif", high).await.1.contains("expected a number from 0 to 1"));
}

#[tokio::test]
async fn whatif_answers_all_questions_about_a_changed_model() {
    let server = Server::warehouse();
    let question = json!({"beliefs": beliefs(), "label": "activity", "flip": "normal", "next": true, "rows": [{}, beliefs()]});
    let with = |field: &str, value: Value| {
        let mut question = question.clone();
        question[field] = value;
        question
    };
    let answer = server.ask("/api/v1/whatif", with("model", json!("warehouse"))).await;
    let ask = |field: &str, value: &str| {
        let mut request = json!({"model": "warehouse", "beliefs": beliefs(), "label": "activity"});
        request[field] = json!(value);
        request
    };
    let flip = server.ask("/api/v1/flip", ask("category", "normal")).await;
    assert_eq!(answer["flip"]["own"], flip["own"]);
    let next = server.ask("/api/v1/next", ask("label", "activity")).await;
    assert_eq!(answer["next"]["gains"], next["gains"]);
    assert_eq!(answer["rows"][1]["marginals"], answer["marginals"]);
    assert_ne!(answer["rows"][0]["marginals"], answer["marginals"]);
    // The text of the same model gives the same answers.
    assert_eq!(server.ask("/api/v1/whatif", with("text", json!(WAREHOUSE))).await, answer);
    // `explain` has the effects on all labels.
    let mut all = with("model", json!("warehouse"));
    all["explain"] = json!(true);
    let all = server.ask("/api/v1/whatif", all).await;
    let n_labels = |answer: &Value| answer["explanation"]["rules"][0]["influences"].as_array().map(Vec::len);
    assert_eq!((n_labels(&answer), n_labels(&all)), (Some(1), Some(3)));
    let alone = json!({"model": "warehouse", "flip": "normal"});
    assert!(server.refused("/api/v1/whatif", alone).await.1.contains("`label`"));
}

#[tokio::test]
async fn without_a_model_the_example_is_served() {
    let service = Service::open(&[], None, Settings::default()).expect("a service");
    assert_eq!(service.model_names(), ["warehouse"]);
    service.refresh();
    assert_eq!(service.model_names(), ["warehouse"]);
}

#[tokio::test]
async fn findings_have_positions_and_expectations_have_outcomes() {
    let server = Server::warehouse();
    let answer = server.ask("/api/v1/check", json!({"text": "label a\nrule 0.9: b\n"})).await;
    assert_eq!(answer["valid"], false);
    let finding = &answer["findings"][0];
    assert_eq!((&finding["line"], &finding["column"]), (&json!(2), &json!(11)));
    assert_eq!((&finding["span"], &finding["code"]), (&json!({"start": 18, "end": 19}), &json!("syntax")));

    let text = "label a prior 0.3\nrule 0.5: a\nexpect => a < 0.5\nexpect => a > 0.5\n";
    let answer = server.ask("/api/v1/check", json!({"text": text})).await;
    assert_eq!(answer["valid"], true);
    let outcomes: Vec<_> = (0..2).map(|i| answer["expectations"][i]["outcome"].clone()).collect();
    assert_eq!(outcomes, ["passed", "failed"]);
    assert_eq!(answer["expectations"][1]["line"], 4);
    let codes: Vec<_> = answer["findings"].as_array().expect("a list").iter().map(|it| &it["code"]).collect();
    assert_eq!(codes, ["no-effect", "failed-expectation"]);
    let served = server.ask("/api/v1/check", json!({"model": "warehouse"})).await;
    assert_eq!(served["findings"], json!([]));
    let model = server.get("/api/v1/models/warehouse").await.json();
    assert_eq!((&served["labels"], &served["rules"]), (&model["labels"], &model["rules"]));
}

#[tokio::test]
async fn a_model_is_listed_with_its_parts() {
    let server = Server::warehouse();
    let list = server.get("/api/v1/models").await.json();
    assert_eq!((&list["models"][0]["name"], &list["writable"]), (&json!("warehouse"), &json!(false)));
    let answer = server.get("/api/v1/models/warehouse").await;
    let model = answer.json();
    assert_eq!(answer.headers["etag"], format!("\"{}\"", model["version"].as_str().expect("a version")));
    assert_eq!(model["text"], WAREHOUSE);
    assert_eq!(model["labels"][1]["categories"], json!(["gait", "standing"]));
    assert_eq!(model["labels"][1]["classifier"], "shoe_sensor");
    let rule = &model["rules"][1];
    assert_eq!(rule["sentence"], "if normal then centered or low, 0.9");
    assert_eq!((&rule["number"], &rule["labels"]), (&json!(2), &json!(["activity", "hands"])));
    let span =
        rule["start"].as_u64().expect("a byte") as usize..rule["end"].as_u64().expect("a byte") as usize;
    assert_eq!(&WAREHOUSE[span], "rule 0.9 reach: normal -> centered | low");
}
