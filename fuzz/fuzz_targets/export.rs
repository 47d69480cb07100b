//! Any model in every export format: written or refused for its size, names and all.
#![no_main]

use libfuzzer_sys::fuzz_target;
use prsl::export::ExportFormat;
use prsl::{Error, Evidence, Model};

fuzz_target!(|text: &str| {
    let Ok(model) = Model::parse(text) else { return };
    // Tables up to a million entries are right, and too slow for thousands of runs a second.
    let entries = |rule: &prsl::Rule| -> f64 {
        rule.scope().iter().map(|&label| model.label(label).n_categories() as f64).product()
    };
    if model.rules().iter().map(entries).sum::<f64>() > 4096.0 {
        return;
    }
    for format in ExportFormat::ALL {
        match export(&model, format) {
            Ok(written) => assert!(written.ends_with('\n')),
            Err(Error::TooCostly { .. }) => {}
            Err(error) => panic!("{format:?}: {error}"),
        }
    }
    let names = model.export_uai_names().expect("small tables");
    assert!(names.lines().all(|line| line.split('\t').count() == 5), "{names}");
});

fn export(model: &Model, format: ExportFormat) -> prsl::Result<String> {
    model.export(&Evidence::new(), format)
}
