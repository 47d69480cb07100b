//! Models as JSON: lossless, strict, and with clear errors.

mod models;

use proptest::prelude::*;
use prsl::model::LearnedNote;
use prsl::{Document, Error, LabelId, Model, RuleId};

const EXAMPLE: &str = "\
label activity: walking, normal, overhead
label feet: gait, standing from shoe
label hands: high, centered, low latent
label alarm prior 0.1
label posture: upright, bent prior 0.9, 0.1

rule 0.8: high & standing -> overhead
rule 0.9 reach: normal -> hands in {centered, low}
noisy_or 0.999 lifts: overhead 0.07, high 0.2, gait 0.9
fixed rule 1: walking <-> gait
rule 0.94: bent -> !alarm  # learned: gain 12.3, broken 3 of 214, expected 41.2, sure

typical 3.5: walking, gait, centered, bent
typical 1e17: overhead, standing, high, alarm, upright

expect standing, high => overhead > 0.6
expect activity ~ (0.1, 0.4, 0.5) => mpe overhead, standing
";

fn message(json: &str) -> String {
    Model::from_json(json).map(|model| model.to_string()).expect_err(json).to_string()
}

/// A file with this text after the format and the version.
fn file(rest: &str) -> String {
    format!("{{\"format\": \"prsl\", \"version\": 2,\n{rest}}}")
}

#[test]
fn the_example_is_written_and_read() {
    let model = Model::parse(EXAMPLE).unwrap();
    let json = model.to_json();
    insta::assert_snapshot!(json);
    assert_eq!(Model::from_json(&json).unwrap(), model);
    assert_eq!(Model::parse("").unwrap(), Model::from_json(&Model::parse("").unwrap().to_json()).unwrap());
}

#[test]
fn either_form_is_read() {
    let model = Model::parse(EXAMPLE).unwrap();
    for text in [model.to_string(), model.to_json()] {
        for prefix in ["", "\u{feff}", "\n \t", "\u{feff}\r\n"] {
            assert_eq!(Model::read(&format!("{prefix}{text}")).unwrap(), model, "{prefix:?}");
        }
    }
    assert!(matches!(Model::read("lable a"), Err(Error::Text(_))));
    assert!(matches!(Model::read(" { lable"), Err(Error::Json { .. })));
}

#[test]
fn every_part_has_its_span_in_the_json() {
    let json = format!("\u{feff}{}", Model::parse(EXAMPLE).unwrap().to_json());
    let document = Document::read(&json).unwrap();
    assert_eq!(document.source(), json);
    assert_eq!(
        &json[document.label_span(LabelId::new(3))],
        r#"{"name": "alarm", "categories": ["yes", "no"], "prior": [0.1, 0.9]}"#
    );
    let rules: Vec<_> = (0..3).map(|index| &json[document.rule_span(RuleId::new(index))]).collect();
    assert_eq!(rules[0], r#"{"probability": 0.8, "formula": "high & standing -> overhead"}"#);
    assert!(rules[2].starts_with("{\"name\": \"lifts\"") && rules[2].ends_with("}]}"));
    assert_eq!(
        &json[document.typical_span(0)],
        r#"{"weight": 3.5, "categories": "walking, gait, centered, bent"}"#
    );
    assert_eq!(&json[document.expectation_span(0)], "\"standing, high => overhead > 0.6\"");
    // Braces, quotes and keys of the same name inside strings are not structure.
    let tricky = r#"{"version":2,"rules":[ {"formula":"\"]},\\\"\" | \"rules\"","probability":1e0} ,
        {"probability":1,"formula":"labels"}],"format":"prsl",
        "l\u0061bels":[{"name":"]},\"","categories":["yes","no"]},{"name":"rules","categories":["yes","no"]},
        {"categories":["yes","no"],"name":"labels"}]}"#;
    let document = Document::read(tricky).unwrap();
    assert_eq!(
        &tricky[document.rule_span(RuleId::new(0))],
        r#"{"formula":"\"]},\\\"\" | \"rules\"","probability":1e0}"#
    );
    assert_eq!(
        &tricky[document.label_span(LabelId::new(2))],
        r#"{"categories":["yes","no"],"name":"labels"}"#
    );
}

#[test]
fn floats_keep_their_bits() {
    for p in [5e-324, 0.1 + 0.2, 1.0 - f64::EPSILON / 2.0, 1e-17, -0.0, 1.0 / 3.0, 2.225_073_858_507_201e-308]
    {
        let model = Model::builder()
            .add_label(prsl::Label::binary("a").with_prior([p, 1.0 - p]))
            .rule("a", p)
            .noisy_or([("a", "no", p)], 1.0)
            .build()
            .unwrap();
        let read = Model::from_json(&model.to_json()).unwrap();
        assert_eq!(read.rules()[0].probability().to_bits(), p.to_bits(), "{p:?}");
        assert_eq!(read.labels()[0].prior().unwrap()[0].to_bits(), p.to_bits());
        let prsl::Body::NoisyOr(noisy_or) = read.rules()[1].body() else { panic!("a noisy-or") };
        assert_eq!(noisy_or.inhibitions()[0].probability.to_bits(), p.to_bits());
    }
}

#[test]
fn newer_versions_are_recognized_whatever_follows() {
    for json in [
        r#"{"format": "prsl", "version": 3, "labels": "elsewhere"}"#,
        r#"{"labels": {"a": [1]}, "version": 3, "format": "prsl"}"#,
        r#"{"version": 3, "format": "prsl", "cut": [1, 2"#,
    ] {
        assert_eq!(Model::from_json(json), Err(Error::Version { found: 3, known: 2 }), "{json}");
    }
}

/// A model as version 1 wrote it, before rules had notes about learning.
const VERSION_1: &str = r#"{
  "format": "prsl",
  "version": 1,
  "labels": [
    {"name": "activity", "categories": ["walking", "normal", "overhead"]},
    {"name": "feet", "categories": ["gait", "standing"], "classifier": "shoe"},
    {"name": "alarm", "categories": ["yes", "no"], "prior": [0.1, 0.9], "calibrator": {"kind": "platt", "slope": 1.2, "intercept": -0.3}}
  ],
  "rules": [
    {"probability": 0.8, "formula": "standing -> overhead"},
    {"name": "lifts", "probability": 0.999, "fixed": true, "noisy_or": [{"label": "activity", "category": "overhead", "inhibition": 0.07}, {"label": "feet", "category": "gait", "inhibition": 0.9}]}
  ],
  "typical": [
    {"weight": 3.5, "categories": "walking, gait, alarm"}
  ],
  "expectations": [
    "standing => overhead > 0.4"
  ]
}
"#;

#[test]
fn version_1_is_read_and_written_as_version_2() {
    let model = Model::from_json(VERSION_1).unwrap();
    assert_eq!(
        model.to_string(),
        "\
label activity: walking, normal, overhead
label feet: gait, standing from shoe
label alarm prior 0.1

calibrate alarm platt 1.2 -0.3

rule 0.8: standing -> overhead
fixed noisy_or 0.999 lifts: overhead 0.07, gait 0.9

typical 3.5: walking, gait, alarm

expect standing => overhead > 0.4
"
    );
    assert!(model.rules().iter().all(|rule| rule.learned().is_none()));
    assert_eq!(model.to_json(), VERSION_1.replace("\"version\": 1", "\"version\": 2"));
}

#[test]
fn notes_are_rounded_when_they_are_read() {
    let json = file(
        r#""labels": [{"name": "a", "categories": ["yes", "no"]}], "rules": [{"probability": 0.9, "formula": "a",
        "learned": {"gain": 12.34567, "broken": 2.99999, "known": 21476.3, "expected": 1e-7, "sure": false}}]"#,
    );
    let model = Model::from_json(&json).unwrap();
    let note = LearnedNote::new(12.35, 3.0, 21_476.0, 1e-7, false);
    assert_eq!(model.rule(RuleId::new(0)).learned(), Some(&note));
    assert_eq!(Model::parse(&model.to_string()).unwrap(), model);
    assert_eq!(Model::from_json(&model.to_json()).unwrap(), model);
}

#[test]
fn errors_are_reported_clearly() {
    let labels = r#""labels": [{"name": "weather", "categories": ["sun", "rain"]}]"#;
    let rules = |rules: &str| file(&format!("{labels},\n\"rules\": [\n  {rules}\n]"));
    let learned = |note: &str| {
        rules(&format!(r#"{{"name": "wets", "probability": 1, "formula": "rain", "learned": {note}}}"#))
    };
    let typical = |typical: &str| file(&format!("{labels},\n\"typical\": [\n  {typical}\n]"));
    let wrong = [
        String::new(),
        "[]".to_owned(),
        "{}".to_owned(),
        r#"{"format": "prsl", "labels": []}"#.to_owned(),
        r#"{"version": 2, "labels": []}"#.to_owned(),
        r#"{"format": "onnx", "version": 7}"#.to_owned(),
        r#"{"format": "prsl", "version": 0, "labels": []}"#.to_owned(),
        r#"{"format": "prsl", "version": "1", "labels": []}"#.to_owned(),
        r#"{"format": 1, "version": 2, "labels": []}"#.to_owned(),
        r#"{"format": "prsl", "version": 2, "version": 2, "labels": []}"#.to_owned(),
        file(""),
        file(r#""lables": []"#),
        file(r#""labels": [["a", ["x", "y"]]]"#),
        file(r#""labels": [], "rules": {}"#),
        file(r#""labels": [{"name": "a", "categories": ["x", "y"], "colour": 1}]"#),
        file(r#""labels": [{"name": "a", "categories": ["x", 2]}]"#),
        file(r#""labels": [{"name": "a", "categories": ["x"]}]"#),
        file(r#""labels": [{"name": "a", "categories": ["x", "y"], "prior": null}]"#),
        file(r#""labels": [{"name": "a", "categories": ["x", "y"], "prior": [0.5, 0.6]}]"#),
        file(r#""labels": [{"name": "a", "categories": ["x", "y"], "prior": [0.5, NaN]}]"#),
        file(
            r#""labels": [{"name": "a", "categories": ["x", "y"]}, {"name": "a", "categories": ["x", "y"]}]"#,
        ),
        rules(r#"{"probability": 1e999, "formula": "rain"}"#),
        rules(r#"{"probability": -Infinity, "formula": "rain"}"#),
        rules(r#"{"probability": 1.5, "formula": "rain"}"#),
        rules(r#"{"probability": "high", "formula": "rain"}"#),
        rules(r#"{"probability": 1}"#),
        rules(r#"{"probability": 1, "formula": "rain", "fixed": "yes"}"#),
        rules(r#"{"probability": 1, "formula": "rain", "fixed": null}"#),
        rules(r#"{"probability": 1, "formula": "rain", "noisy_or": []}"#),
        rules(r#"{"probability": 1, "noisy_or": []}"#),
        rules(r#"{"probability": 1, "noisy_or": [["weather", "rain", 0]]}"#),
        rules(r#"{"probability": 1, "formula": "rain"}, {"probability": 1, "formula": "rian & snow"}"#),
        rules(
            r#"{"probability": 1, "formula": "rain"}, {"name": "wets", "probability": 1, "formula": "rain &"}"#,
        ),
        rules(
            r#"{"probability": 1, "noisy_or": [{"label": "whether", "category": "rain", "inhibition": 0}]}"#,
        ),
        rules(
            r#"{"probability": 1, "noisy_or": [{"label": "weather", "category": "rian", "inhibition": 0}]}"#,
        ),
        rules(r#"{"probability": 1, "noisy_or": [{"label": "weather", "category": "rain"}]}"#),
        rules(
            r#"{"name": "r", "probability": 1, "formula": "rain"}, {"name": "r", "probability": 1, "formula": "sun"}"#,
        ),
        learned(r#"{"gain": -0.1, "broken": 3, "known": 214, "expected": 41.2, "sure": true}"#),
        learned(r#"{"gain": 12.3, "broken": 3, "known": -214, "expected": 41.2, "sure": true}"#),
        learned(r#"{"gain": 12.3, "broken": 215, "known": 214, "expected": 41.2, "sure": true}"#),
        learned(r#"{"gain": 12.3, "broken": 3, "known": 214, "expected": 1e999, "sure": true}"#),
        learned(r#"{"gain": NaN, "broken": 3, "known": 214, "expected": 41.2, "sure": true}"#),
        learned(r#"{"gain": 12.3, "broken": 3, "known": 214, "expected": 41.2}"#),
        learned(r#"{"gain": 12.3, "broken": 3, "known": 214, "expected": 41.2, "sure": 1}"#),
        learned(r#"{"gain": 12.3, "broken": 3, "known": 214, "expected": 41.2, "sure": true, "price": 2}"#),
        learned("[12.3, 3, 214, 41.2, true]"),
        learned("null"),
        typical(r#"{"weight": -1, "categories": "rain"}"#),
        typical(r#"{"weight": 1e999, "categories": "rain"}"#),
        typical(r#"{"weight": 1, "categories": "rian"}"#),
        typical(r#"{"weight": 1, "categories": "none"}"#),
        typical(r#"{"weight": 1, "categories": ["rain"]}"#),
        typical(r#"{"weight": 1, "categories": "rain"}, {"weight": 2, "categories": "weather=rain"}"#),
        file(&format!(r#"{labels}, "expectations": ["rain => sun < 0.1", "rain => sun"]"#)),
        file(&format!("{labels}, \"rules\": [")),
        format!("{} x", file(labels)),
    ];
    let messages: Vec<_> = wrong.iter().map(|json| format!("{json}\n  {}", message(json))).collect();
    insta::assert_snapshot!(messages.join("\n"));
}

#[test]
fn every_truncation_is_an_error() {
    let json = Model::parse(EXAMPLE).unwrap().to_json();
    for end in (0..json.trim_end().len()).filter(|&end| json.is_char_boundary(end)) {
        assert!(matches!(Model::from_json(&json[..end]), Err(Error::Json { .. })), "{}", &json[..end]);
    }
}

#[test]
fn oversized_and_deeply_nested_texts_are_refused() {
    let large = format!("{{{}", " ".repeat(Document::MAX_BYTES));
    assert!(matches!(Model::read(&large), Err(Error::TooLarge { .. })));
    for deep in ["[".repeat(1_000_000), "{\"a\":".repeat(1_000_000)] {
        for key in ["labels", "version", "format", "later"] {
            assert!(matches!(
                Model::from_json(&file(&format!("\"{key}\": {deep}"))),
                Err(Error::Json { .. })
            ));
        }
    }
    let formula = "!".repeat(100_000);
    let json = file(&format!(r#""labels": [], "rules": [{{"probability": 1, "formula": "{formula}"}}]"#));
    assert!(message(&json).contains("rule 1: the formula nests more than 256 levels deep"));
}

#[test]
fn the_published_schema_is_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schema/model-v2.schema.json");
    let schema = Model::json_schema();
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(path, &schema).unwrap();
    }
    let published = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        published == schema,
        "the schema has changed; run this test with UPDATE_SCHEMA=1 and look at the difference"
    );
}

proptest! {
    #[test]
    fn random_models_survive_both_forms(model in models::model(6)) {
        let json = model.to_json();
        let from_json = Model::from_json(&json).unwrap();
        prop_assert_eq!(&from_json, &model);
        prop_assert_eq!(from_json.to_json(), json);
        let from_text = Model::parse(&from_json.to_string()).unwrap();
        prop_assert_eq!(&from_text, &model);
        prop_assert_eq!(from_text.to_json(), model.to_json());
    }

    #[test]
    fn damaged_json_never_panics(at in any::<prop::sample::Index>(), byte in 0x20_u8..0x7f) {
        let mut json = Model::parse(EXAMPLE).unwrap().to_json().into_bytes();
        let at = at.index(json.len());
        json[at] = byte;
        let _ = Document::read(&String::from_utf8(json).unwrap());
    }
}
