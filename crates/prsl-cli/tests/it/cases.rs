//! Runs the cases of `tests/cases` with `predict` and `explain`.

use std::collections::HashMap;
use std::path::Path;

use serde_json::{Map, Value};

use crate::runner::Folder;

/// The lines of each section.
pub fn sections(text: &str) -> HashMap<&str, Vec<&str>> {
    let mut sections: HashMap<&str, Vec<&str>> = HashMap::new();
    let mut section = "";
    for line in text.lines() {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            section = name;
        } else if section == "model" || !(line.starts_with('#') || line.trim().is_empty()) {
            sections.entry(section).or_default().push(line);
        }
    }
    sections
}

/// One row of CSV with all columns of the model.
pub fn table(model: &prsl::Model, evidence: &[&str]) -> String {
    let given: HashMap<&str, &str> =
        evidence.iter().map(|line| line.rsplit_once(' ').expect("a column and a number")).collect();
    let columns: Vec<String> = model
        .labels()
        .iter()
        .flat_map(|label| {
            label.categories().iter().map(move |category| format!("{}={category}", label.name()))
        })
        .collect();
    assert!(given.keys().all(|name| columns.iter().any(|column| column == name)));
    let header: Vec<_> =
        columns.iter().map(|column| format!("\"{}\"", column.replace('"', "\"\""))).collect();
    let cells: Vec<_> =
        columns.iter().map(|column| given.get(column.as_str()).copied().unwrap_or("")).collect();
    format!("{}\n{}\n", header.join(","), cells.join(","))
}

pub fn object(folder: &Folder, arguments: &str) -> Map<String, Value> {
    let run = folder.prsl(arguments);
    assert_eq!(run.code, 0, "{run}");
    serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run}"))
}

/// Half a unit of the last digit written.
fn tolerance(text: &str) -> f64 {
    let (digits, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let decimals = digits.split_once('.').map_or(12, |(_, decimals)| decimals.len() as i32);
    0.501 * 10f64.powi(exponent.parse::<i32>().expect("an exponent") - decimals)
}

fn assert_near(name: &str, value: &Value, expected: &str) {
    let actual = value.as_f64().unwrap_or_else(|| panic!("{name} is {value}"));
    let difference = (actual - expected.parse::<f64>().expect("a number")).abs();
    assert!(difference <= tolerance(expected), "{name} is {actual}, not {expected}");
}

fn run(text: &str) {
    let sections = sections(text);
    let lines = |name: &str| sections.get(name).map_or(&[][..], Vec::as_slice);
    let source = lines("model").join("\n");
    let model = prsl::Model::parse(&source).expect("a model");
    let folder = Folder::new(&[("m.prsl", &source), ("b.csv", &table(&model, lines("evidence")))]);
    let marginals = object(&folder, "predict m.prsl b.csv --format jsonl");
    let best = object(&folder, "predict m.prsl b.csv --format jsonl --query mpe");
    let explanation = object(&folder, "explain m.prsl b.csv --row 1 --format json");
    let possible = lines("status") == ["possible"];
    let status = if possible { "ok" } else { "impossible" };
    assert_eq!((marginals["status"].as_str(), best["status"].as_str()), (Some(status), Some(status)));
    assert_eq!(explanation["possible"].as_bool(), Some(possible));
    for line in lines("marginals") {
        let (name, expected) = line.rsplit_once(' ').expect("a column and a number");
        assert_near(name, &marginals[name], expected);
    }
    for expected in lines("log_evidence") {
        assert_near("log_evidence", &marginals["log_evidence"], expected);
        assert_near("log_evidence", &explanation["log_evidence"], expected);
    }
    let chosen: Vec<String> = model
        .labels()
        .iter()
        .filter_map(|label| Some(format!("{}={}", label.name(), best[label.name()].as_str()?)))
        .collect();
    for line in lines("mpe") {
        assert!(chosen.iter().any(|chosen| chosen == line), "{line} is not in {chosen:?}");
    }
}

#[test]
fn every_case_has_its_answer() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases");
    let mut n_cases = 0;
    for entry in std::fs::read_dir(folder).expect("the cases") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "case") {
            println!("{}", path.display()); // shown if it fails
            run(&std::fs::read_to_string(&path).expect("a case"));
            n_cases += 1;
        }
    }
    assert!(n_cases >= 15, "only {n_cases} cases");
}
