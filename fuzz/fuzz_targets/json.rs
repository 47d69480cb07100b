//! Any text as a model in JSON. It is read or refused. A model that was read is written and read back as itself, in
//! both forms.
#![no_main]

use libfuzzer_sys::fuzz_target;
use prsl::{Document, Model};

fuzz_target!(|text: &str| {
    match Model::from_json(text) {
        Ok(model) => {
            assert_eq!(Model::from_json(&model.to_json()).expect("written JSON is read"), model);
            assert_eq!(Model::parse(&model.to_string()).expect("a printed model is read"), model);
            let document = Document::read(text).expect("JSON is recognized");
            for rule in model.rule_ids() {
                assert!(text[document.rule_span(rule)].starts_with('{'));
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
