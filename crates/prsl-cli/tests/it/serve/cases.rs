//! The cases of `tests/cases` through the server: the same bits as on the command line.

use std::path::Path;

use prsl::Model;
use serde_json::{Map, Value, json};

use super::client::Server;
use crate::cases::{object, sections, table};
use crate::runner::Folder;

/// The evidence of a case as `/api/v1` takes it.
fn beliefs(model: &Model, evidence: &[&str]) -> Value {
    let mut beliefs = Map::new();
    for line in evidence {
        let (column, number) = line.rsplit_once(' ').expect("a column and a number");
        let number: f64 = number.parse().expect("a number");
        let (label, category) = split(model, column);
        beliefs.entry(label).or_insert_with(|| json!({}))[category] = json!(number);
    }
    Value::Object(beliefs)
}

/// The evidence of a case as tensors.
fn tensors(model: &Model, evidence: &[&str]) -> Value {
    let beliefs = beliefs(model, evidence);
    let given = model.labels().iter().filter(|label| beliefs.get(label.name()).is_some());
    let tensor = |label: &prsl::Label| {
        let data: Vec<&Value> =
            label.categories().iter().map(|category| &beliefs[label.name()][category]).collect();
        json!({"name": label.name(), "shape": [1, data.len()], "datatype": "FP64", "data": data})
    };
    given.map(tensor).collect()
}

/// The label and the category of a column.
fn split(model: &Model, column: &str) -> (String, String) {
    let categories = |label: &prsl::Label| {
        let (label, categories) = (label.name().to_owned(), label.categories().to_vec());
        categories.into_iter().map(move |category| (label.clone(), category))
    };
    let mut all = model.labels().iter().flat_map(categories);
    all.find(|(label, category)| *column == format!("{label}={category}")).expect("a column of the model")
}

fn run(server: &Server, name: &str, text: &str) {
    let sections = sections(text);
    let lines = |name: &str| sections.get(name).map_or(&[][..], Vec::as_slice);
    let source = lines("model").join("\n");
    let model = Model::parse(&source).expect("a model");
    let folder = Folder::new(&[("m.prsl", &source), ("b.csv", &table(&model, lines("evidence")))]);
    let marginals = object(&folder, "predict m.prsl b.csv --format jsonl");
    let best = object(&folder, "predict m.prsl b.csv --format jsonl --query mpe");
    let explained = object(&folder, "explain m.prsl b.csv --row 1 --format json");

    let beliefs = beliefs(&model, lines("evidence"));
    let request = json!({"model": name, "beliefs": beliefs, "query": "both"});
    let row = server.post("/api/v1/predict", &request).json()["rows"][0].clone();
    assert_eq!(row["status"], marginals["status"]);
    assert_eq!(row["log_evidence"], marginals["log_evidence"]);
    let inferred = json!({"inputs": tensors(&model, lines("evidence"))});
    let inferred = server.post(&format!("/v2/models/{name}/infer"), &inferred).json();
    let outputs = inferred["outputs"].as_array().unwrap_or_else(|| panic!("{inferred}"));
    let output =
        |name: &str| &outputs.iter().find(|output| output["name"] == name).expect("an output")["data"];
    assert_eq!(output("log_evidence")[0], marginals["log_evidence"]);
    assert_eq!(output("status")[0], marginals["status"]);
    for (index, label) in model.labels().iter().enumerate() {
        let chosen = &row["best"][0]["assignment"][label.name()];
        assert_eq!(*chosen, best[label.name()], "{}", label.name());
        assert_eq!(output("mpe")[index].as_str().filter(|text| !text.is_empty()), chosen.as_str());
        for (place, category) in label.categories().iter().enumerate() {
            let expected = &marginals[&format!("{}={category}", label.name())];
            let actual = row["marginals"].get(label.name()).map_or(&Value::Null, |label| &label[category]);
            assert_eq!(actual, expected, "{}={category}", label.name());
            assert_eq!(output(&format!("marginal.{}", label.name()))[place], *expected);
        }
    }
    let mut explanation = server.post("/api/v1/explain", &json!({"model": name, "beliefs": beliefs})).json();
    let explanation = explanation.as_object_mut().expect("an object");
    assert!(explanation.remove("model").is_some() && explanation.remove("version").is_some());
    assert_eq!(*explanation, explained);
}

#[test]
fn every_case_has_the_bits_of_the_command_line() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases");
    let mut texts = Vec::new();
    for entry in std::fs::read_dir(cases).expect("the cases") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "case") {
            let name = path.file_stem().and_then(|name| name.to_str()).expect("a name").to_owned();
            texts.push((name, std::fs::read_to_string(&path).expect("a case")));
        }
    }
    let folder = Folder::new(&[]);
    for (name, text) in &texts {
        let source = sections(text)["model"].join("\n");
        std::fs::write(folder.path(&format!("{name}.prsl")), source).expect("a file");
    }
    let server = Server::start(folder, "--dir .");
    assert!(texts.len() >= 15, "only {} cases", texts.len());
    for (name, text) in &texts {
        println!("{name}"); // shown if it fails
        run(&server, name, text);
    }
}
