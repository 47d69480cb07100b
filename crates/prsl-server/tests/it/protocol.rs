//! The Open Inference Protocol, in JSON and binary.

use axum::body::Body;
use axum::http::{Request, StatusCode};
use serde_json::{Value, json};

use crate::server::{Answer, Server};

const INFER: &str = "/v2/models/warehouse/infer";

fn output<'a>(answer: &'a Value, name: &str) -> &'a Value {
    let outputs = answer["outputs"].as_array().expect("a list");
    outputs.iter().find(|output| output["name"] == name).unwrap_or_else(|| panic!("no output `{name}`"))
}

#[tokio::test]
async fn tensors_have_the_numbers_of_predict() {
    let server = Server::warehouse();
    let rows = json!([{"feet": [0.05, 0.95]}, {}, {"feet": {"gait": 0.25}}]);
    let request = json!({"model": "warehouse", "rows": rows, "query": "both"});
    let predicted = server.ask("/api/v1/predict", request).await;
    let data = json!([0.05, 0.95, null, null, 0.25, null]);
    let inputs = json!([{"name": "feet", "shape": [3, 2], "datatype": "FP64", "data": data}]);
    let inferred = server.ask(INFER, json!({"id": "7", "inputs": inputs})).await;
    assert_eq!((&inferred["id"], &inferred["model_version"]), (&json!("7"), &predicted["version"]));
    for row in 0..3 {
        let marginals = &predicted["rows"][row]["marginals"]["hands"];
        for (index, category) in ["high", "centered", "low"].iter().enumerate() {
            assert_eq!(output(&inferred, "marginal.hands")["data"][row * 3 + index], marginals[category]);
        }
        let log_evidence = &output(&inferred, "log_evidence")["data"][row];
        assert_eq!(*log_evidence, predicted["rows"][row]["log_evidence"]);
        let best = &predicted["rows"][row]["best"][0]["assignment"];
        assert_eq!(output(&inferred, "mpe")["data"][row * 3], best["activity"]);
    }
    assert_eq!(output(&inferred, "mpe")["shape"], json!([3, 3]));
    assert_eq!(output(&inferred, "status")["data"], json!(["ok", "ok", "ok"]));
    assert_eq!(output(&inferred, "engine")["data"][0], "junction_tree");
    // One list for each row is the same.
    let inputs = json!([{"name": "feet", "shape": [1, 2], "datatype": "FP32", "data": [[0.25, null]]}]);
    let outputs = json!([{"name": "marginal.feet"}]);
    let nested = server.ask(INFER, json!({"inputs": inputs, "outputs": outputs})).await;
    assert_eq!(nested["outputs"].as_array().map(Vec::len), Some(1));
    assert_eq!(output(&nested, "marginal.feet")["data"][0], output(&inferred, "marginal.feet")["data"][4]);
}

async fn binary(server: &Server, json: &Value, tensors: &[u8]) -> Answer {
    let json = json.to_string();
    let request = Request::post(INFER).header("Inference-Header-Content-Length", json.len());
    let body = [json.as_bytes(), tensors].concat();
    server.send(request.body(Body::from(body)).expect("a request")).await
}

fn feet(size: usize) -> Value {
    let parameters = json!({"binary_data_size": size});
    json!([{"name": "feet", "shape": [2, 2], "datatype": "FP64", "parameters": parameters}])
}

#[tokio::test]
async fn binary_tensors_have_the_bits_of_json() {
    let server = Server::warehouse();
    let numbers = [0.05, 0.95, f64::NAN, f64::NAN];
    let tensor: Vec<u8> = numbers.iter().flat_map(|number: &f64| number.to_le_bytes()).collect();
    let request = json!({"inputs": feet(32), "parameters": {"binary_data_output": true}});
    let answer = binary(&server, &request, &tensor).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    let length: usize = answer.headers["inference-header-content-length"].to_str().unwrap().parse().unwrap();
    let (head, mut rest) = answer.body.split_at(length);
    let head: Value = serde_json::from_slice(head).expect("JSON");
    let data = json!([0.05, 0.95, null, null]);
    let inputs = json!([{"name": "feet", "shape": [2, 2], "datatype": "FP64", "data": data}]);
    let expected = server.ask(INFER, json!({"inputs": inputs})).await;
    for (output, expected) in
        head["outputs"].as_array().unwrap().iter().zip(expected["outputs"].as_array().unwrap())
    {
        let size = output["parameters"]["binary_data_size"].as_u64().expect("a size") as usize;
        let (bytes, after) = rest.split_at(size);
        rest = after;
        assert_eq!((&output["name"], &output["shape"]), (&expected["name"], &expected["shape"]));
        let numbers: Vec<f64> =
            bytes.chunks(8).filter_map(|x| Some(f64::from_le_bytes(x.try_into().ok()?))).collect();
        if output["datatype"] == "FP64" {
            assert_eq!(json!(numbers), expected["data"]);
        } else {
            let first = expected["data"][0].as_str().expect("a text");
            assert_eq!(bytes[..4], (first.len() as u32).to_le_bytes());
            assert_eq!(&bytes[4..4 + first.len()], first.as_bytes());
        }
    }
    assert!(rest.is_empty());
}

#[tokio::test]
async fn wrong_tensors_are_refused_with_a_sentence() {
    let server = Server::warehouse();
    let tensor = |name: &str, shape: Value, datatype: &str, data: Value| json!({"inputs": [{"name": name, "shape": shape, "datatype": datatype, "data": data}]});
    for (request, part) in [
        (tensor("feets", json!([1, 2]), "FP64", json!([1, 0])), "did you mean `feet`?"),
        (tensor("feet", json!([1, 3]), "FP64", json!([1, 0, 0])), "expected [rows, 2]"),
        (tensor("feet", json!([2]), "FP64", json!([1, 0])), "expected [rows, 2]"),
        (tensor("feet", json!([1, 2]), "INT64", json!([1, 0])), "is neither FP64 nor FP32"),
        (tensor("feet", json!([1, 2]), "FP64", json!([1])), "has 1 numbers, expected 2"),
        (tensor("feet", json!([1, 2]), "FP64", json!([[[1, 0]]])), "nests deeper"),
        (tensor("feet", json!([1, 2]), "FP64", json!([1, 1])), "row 1: belief for label `feet` sums to 2"),
        (tensor("feet", json!([u64::MAX, 2]), "FP64", json!([1, 1])), "more than the limit of 10000"),
        (json!({"inputs": [{"name": "feet", "shape": [1, 2], "datatype": "FP64"}]}), "has neither"),
        (json!({"inputs": [], "outputs": [{"name": "marginal.feets"}]}), "is unknown"),
    ] {
        let (status, sentence) = server.refused(INFER, request).await;
        assert!((400..500).contains(&status) && sentence.contains(part), "{status} {sentence}");
    }
    let short = binary(&server, &json!({"inputs": feet(32)}), &[0; 31]).await;
    assert_eq!(
        short.problem(),
        (422, "input `feet` has 32 bytes after the JSON, and only 31 are left".to_owned())
    );
    let request = Request::post(INFER).header("Inference-Header-Content-Length", "99");
    let answer = server.send(request.body(Body::from("{}")).expect("a request")).await;
    assert_eq!(answer.problem().0, 400);
    let latent = "label a latent\nlabel b\nrule 0.9: a -> b";
    let server = Server::new(&[("warehouse", latent)], prsl_server::Settings::default());
    let (status, sentence) = server.refused(INFER, tensor("a", json!([1, 2]), "FP64", json!([1, 0]))).await;
    assert!(status == 422 && sentence.contains("is latent"), "{sentence}");
}

#[tokio::test]
async fn impossible_rows_are_null() {
    let server =
        Server::new(&[("warehouse", "label a\nrule 1: a\nrule 1: !a")], prsl_server::Settings::default());
    let answer = server.ask(INFER, json!({"inputs": []})).await;
    assert_eq!(output(&answer, "marginal.a")["data"], json!([null, null]));
    assert_eq!(output(&answer, "log_evidence")["data"], json!([null]));
    assert_eq!(output(&answer, "mpe")["data"], json!([""]));
    assert_eq!(output(&answer, "status")["data"], json!(["impossible"]));
}

#[tokio::test]
async fn metadata_lists_labels_in_the_order_of_columns() {
    let server = Server::warehouse();
    let model = server.get("/v2/models/warehouse").await.json();
    assert_eq!(model["inputs"][0], json!({"name": "activity", "datatype": "FP64", "shape": [-1, 3]}));
    assert_eq!(model["labels"][1], json!({"name": "feet", "categories": ["gait", "standing"]}));
    assert_eq!(server.get("/v2").await.json()["extensions"], json!(["binary_tensor_data"]));
    for (path, status) in [
        ("/v2/health/live", 200),
        ("/v2/health/ready", 200),
        ("/v2/models/warehouse/ready", 200),
        ("/v2/models/other/ready", 404),
        ("/v2/models/other", 404),
    ] {
        assert_eq!(server.get(path).await.status, status, "{path}");
    }
}
