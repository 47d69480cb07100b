//! The rule language: accepted and refused texts, error messages, and printed models that read back unchanged.

mod builder;
mod errors;
mod learned_notes;
mod texts;

use prsl::lint::Diagnostics;
use prsl::model::LearnedNote;
use prsl::{Document, Error, Model};

const LABELS: &str = "\
label activity: walking, normal, overhead
label feet: gait, standing
label hands: high, centered, low
label alarm prior 0.1
label posture: upright, bent prior 0.9, 0.1
";

fn model(rules: &str) -> Model {
    Model::parse(&format!("{LABELS}{rules}")).unwrap_or_else(|error| panic!("{rules}: {error}"))
}

fn diagnostics(text: &str) -> Diagnostics {
    match Document::parse(text) {
        Err(Error::Text(diagnostics)) => diagnostics,
        other => panic!("expected errors for {text:?}, found {other:?}"),
    }
}

fn note() -> LearnedNote {
    LearnedNote::new(12.3, 3.0, 214.0, 41.2, true)
}
