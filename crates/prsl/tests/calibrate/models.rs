//! Models with calibrators are read, written and edited, and calibrate the beliefs of their rows.

use proptest::prelude::*;
use prsl::calibrate::{Calibrate, Calibrator};
use prsl::{BeliefMatrix, Document, Error, Evidence, Model, lint};

use crate::{apply, belief, calibrator};

fn model_with(calibrator: Calibrator) -> Model {
    Model::builder()
        .label("odd name", ["a", "b", "c"])
        .binary_label("alarm")
        .rule("a -> alarm", 0.9)
        .calibrator("odd name", calibrator)
        .calibrator("alarm", Calibrator::Platt { slope: -0.1, intercept: 1.0 / 3.0 })
        .build()
        .unwrap()
}

proptest! {
    #[test]
    fn models_with_calibrators_survive_text_and_json(calibrator in calibrator()) {
        let model = model_with(calibrator);
        let text = model.to_string();
        prop_assert_eq!(&Model::parse(&text).unwrap(), &model);
        prop_assert_eq!(&Document::format(&text).unwrap(), &text);
        let json = model.to_json();
        prop_assert_eq!(&Model::from_json(&json).unwrap(), &model);
        prop_assert_eq!(Model::from_json(&json).unwrap().to_json(), json);
        prop_assert_eq!(&model.edit().build().unwrap(), &model);
    }

    #[test]
    fn a_row_is_completed_then_calibrated_once(calibrator in calibrator(), belief in belief(3), x in 0.0..=1.0f64) {
        let model = model_with(calibrator.clone());
        let id = model.find_label("odd name").unwrap();
        let row = |evidence: Evidence| model.row(&evidence).unwrap()[..3].to_vec();
        let given = row(Evidence::new().belief("odd name", belief.clone()));
        let raw = model.without_calibrators().row(&Evidence::new().belief("odd name", belief)).unwrap();
        prop_assert_eq!(&given, &apply(&calibrator, &raw[..3]));
        let partly = row(Evidence::new().partial_belief("odd name", [Some(x), None, None]));
        let completed = model.without_calibrators().row(&Evidence::new().partial_belief("odd name", [Some(x), None, None])).unwrap();
        prop_assert_eq!(&partly, &apply(&calibrator, &completed[..3]));
        prop_assert_eq!(row(Evidence::new().observe("odd name", "b")), [0.0, 1.0, 0.0]);
        prop_assert_eq!(row(Evidence::new()), [1.0 / 3.0; 3]);
        prop_assert_eq!(model.calibrator(id), &calibrator);
    }
}

#[test]
fn calibrators_read_as_they_are_written() {
    let text = "\
label hands: high, centered, low
label alarm
label fire

calibrate hands confusion [8 1 0; 1 7.5 2; 0 0 9]
calibrate alarm platt 1.2 -0.3
calibrate fire isotonic [0:0.01 0.3:0.2 1:0.9; 0:0.1 1:0.99]
";
    let model = Model::parse(text).unwrap();
    assert_eq!(model.to_string(), text);
    let loose = text.replace("; ", ";\n  ").replace(':', " : ").replace("hands :", "hands:");
    assert_eq!(Document::format(&Model::parse(&loose).unwrap().to_string()).unwrap(), text);
    assert!(Document::format(&loose).unwrap().contains("[0:0.01 0.3:0.2 1:0.9;\n    0:0.1 1:0.99]"));
    insta::assert_snapshot!(model.to_json());
    let document = Document::parse(&text.replace("1.2 -0.3", "-1 0")).unwrap();
    let notes: Vec<String> =
        lint::check(&document).iter().map(|finding| finding.render("m.prsl", document.source())).collect();
    insta::assert_snapshot!(notes.join("\n"));
}

#[test]
fn a_calibrator_goes_with_its_classifier() {
    let model = model_with(Calibrator::Temperature { temperature: 2.0 });
    let id = model.find_label("odd name").unwrap();
    let calibrator = |model: Model| model.calibrator(id).kind();
    assert_eq!(calibrator(model.edit().unplug("odd name").build().unwrap()), "identity");
    assert_eq!(calibrator(model.edit().plug("odd name", "camera").build().unwrap()), "identity");
    assert_eq!(calibrator(model.edit().plug("odd name", "odd name").build().unwrap()), "temperature");
    assert_eq!(calibrator(model.edit().plug("alarm", "siren").build().unwrap()), "temperature");
    let platt = Calibrator::Platt { slope: 1.0, intercept: 0.0 };
    let error = model.edit().calibrator("odd name", platt.clone()).build().unwrap_err();
    insta::assert_snapshot!(error, @"calibrator of label `odd name`: `platt` is for labels of two categories, and this one has 3; use `dirichlet`");
    let error = model.edit().unplug("alarm").calibrator("alarm", platt).build().unwrap_err();
    insta::assert_snapshot!(error, @"calibrator of label `alarm`: the label is latent, so there are no beliefs to calibrate; remove `latent` or the calibrator");
}

#[test]
fn errors_in_texts_have_a_position() {
    let text = "\
label hands: high, centered, low
label alarm
label tired latent
calibrate alarm platt 1 0
calibrate alarm temperature 2
calibrate alram platt 1 0
calibrate hands platt 1 0
calibrate hands plat 1 0
calibrate hands sigmoid
calibrate hands
calibrate hands temperature 0
calibrate hands temperature 1 2
calibrate alarm platt 1
calibrate alarm platt nan 0
calibrate hands confusion [1 0; 0 1]
calibrate hands confusion [1 0 0; 0 1; 0 0 1]
calibrate hands confusion [1 0 0; 0 -1 0; 0 0 1]
calibrate hands dirichlet [1 0 0; 0 1 0; 0 0 1]
calibrate hands dirichlet [1 0 0; 0 1 0; 0 0 1] [0 0]
calibrate hands dirichlet [1 0 0; 0 1 0; 0 0 1] [0 0 0; 0]
calibrate hands isotonic [0:0 1:1; 0:0 1:1; 0:1 1:0]
calibrate hands isotonic [0:0 1:1; 0:0 1; 0:1 1:1]
calibrate hands isotonic [0:0 1:1; ; 0:1 1:1]
calibrate hands isotonic [0:0 1:1
calibrate tired platt 1 0
calibrate
";
    let Err(Error::Text(diagnostics)) = Model::parse(text) else { panic!("expected errors") };
    insta::assert_snapshot!(diagnostics.render("m.prsl"));
    let json = |calibrator: &str| {
        let label = format!(r#"{{"name": "a", "categories": ["x", "y"], "calibrator": {calibrator}}}"#);
        Model::from_json(&format!(r#"{{"format": "prsl", "version": 2, "labels": [{label}]}}"#))
            .unwrap_err()
            .to_string()
    };
    let messages = [
        json("null"),
        json(r#"["platt", 1, 0]"#),
        json(r#"{"kind": "plat", "slope": 1, "intercept": 0}"#),
        json(r#"{"kind": "platt", "slope": 1}"#),
        json(r#"{"kind": "platt", "slope": 1, "intercept": 0, "more": 1}"#),
        json(r#"{"kind": "temperature", "temperature": -1}"#),
        json(r#"{"kind": "confusion", "matrix": [[1, 0], [0]]}"#),
        json(r#"{"kind": "isotonic", "maps": [[[0, 0.1]]]}"#),
    ];
    insta::assert_snapshot!(messages.join("\n"));
}

#[test]
fn the_output_of_a_custom_calibrator_is_checked() {
    struct Broken;
    impl Calibrate for Broken {
        fn calibrate(&self, _: &[f64], out: &mut [f64]) {
            out.fill(f64::NAN);
        }
    }
    let model = Model::parse("label alarm").unwrap();
    let mut rows = BeliefMatrix::new(&model);
    rows.push_evidence(&Evidence::new()).unwrap();
    rows.push_evidence(&Evidence::new().belief("alarm", [0.3])).unwrap();
    let error = rows.calibrate(model.find_label("alarm").unwrap(), &Broken).unwrap_err();
    insta::assert_snapshot!(error, @"cannot calibrate: calibrated belief of row 2 is no distribution over the categories");
}
