//! Any bytes as rules of other programs: a model that reads back as itself, or a readable error.
#![no_main]

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use prsl::Model;
use prsl_data::{MulanLabels, TableReader, import};

fuzz_target!(|bytes: &[u8]| {
    let reader = || Cursor::new(bytes.to_vec());
    let base = Model::parse("label a\nlabel b: x, y").expect("a model");
    let results = [
        import::r(reader(), "fuzz", None, 0.5),
        import::r(reader(), "fuzz", Some(&base), 0.5),
        import::dimacs(reader(), "fuzz"),
        TableReader::csv(reader(), "fuzz").and_then(import::taxonomy),
        MulanLabels::new(reader(), "fuzz").and_then(|labels| import::mulan(&labels)),
    ];
    for result in results {
        match result {
            Ok(model) => assert_eq!(Model::parse(&model.to_string()).expect("a model text"), model),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
});
