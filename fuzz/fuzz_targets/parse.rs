//! Any text as a model. It is read, or refused with readable diagnostics. A model that was read prints, formats and
//! reads back as itself.
#![no_main]

use libfuzzer_sys::fuzz_target;
use prsl::{Document, Error, Model};

fuzz_target!(|text: &str| {
    match Document::parse(text) {
        Ok(document) => {
            let model = document.model();
            let printed = model.to_string();
            assert_eq!(&Model::parse(&printed).expect("a printed model is read"), model, "{printed}");
            let formatted = prsl::Document::format(text).expect("a model that is read is formatted");
            assert_eq!(&Model::parse(&formatted).expect("a formatted model is read"), model, "{formatted}");
            assert_eq!(prsl::Document::format(&formatted).expect("formatted once, formatted twice"), formatted);
            assert_eq!(&model.edit().build().expect("an unchanged model is rebuilt"), model);
            for rule in model.rule_ids() {
                assert!(text.is_char_boundary(document.rule_span(rule).end));
            }
        }
        Err(Error::Text(diagnostics)) => {
            assert!(!diagnostics.list().is_empty());
            diagnostics.render("fuzz.prsl");
            diagnostics.to_string();
        }
        Err(error) => panic!("a text error has a place in the text: {error}"),
    }
});
