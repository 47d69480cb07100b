use super::*;
use crate::diagnostic::Diagnostic;

/// One of every kind: [`Error::kind`] does not compile when a kind is missing from it, and the test fails when a kind
/// is missing from the list.
fn one_of_each() -> Vec<Error> {
    let text = || "weather".to_owned();
    let wrong = || Diagnostic::new(7..11, "unknown category `rian`").with_help("did you mean `rain`?");
    let suggestion = Some("rain".to_owned());
    vec![
        Error::Text(Diagnostics::new("wet <- rian", vec![wrong()])),
        Error::Formula(Diagnostics::new("wet <- rian", vec![wrong()])),
        Error::Json { message: "expected `,` or `}`".to_owned(), line: 4, column: 42 },
        Error::Version { found: 2, known: 1 },
        Error::TooLarge { bytes: 20 << 20, limit: 16 << 20 },
        Error::EmptyName { what: "a label".to_owned() },
        Error::DuplicateLabel { label: text() },
        Error::TooFewCategories { label: text(), n: 1 },
        Error::DuplicateCategory { label: text(), category: "rain".to_owned() },
        Error::Length { what: "belief", label: text(), given: 3, wanted: 2 },
        Error::NotAProbability { what: "belief", label: text(), category: "rain".to_owned(), value: -0.1 },
        Error::NotAProbability { what: "belief", label: text(), category: "rain".to_owned(), value: 85.0 },
        Error::Sum { what: "belief", label: text(), sum: 0.93 },
        Error::Sum { what: "prior", label: text(), sum: 0.93 },
        Error::ForeignRow { given: 2, wanted: 2, label: Some(text()) },
        Error::ForeignRow { given: 2, wanted: 3, label: None },
        Error::RowLength { what: "belief", each: "category", given: 3, wanted: 4 },
        Error::RowCount { what: "truths", given: 1, wanted: 2 },
        Error::UnknownRow { row: 4, n_rows: 2 },
        Error::ZeroBelief { label: text() },
        Error::Latent { label: text() },
        Error::GivenTwice { label: text() },
        Error::CategoryGivenTwice { label: text(), category: "rain".to_owned() },
        Error::unknown_label("wether", "", ["weather"]),
        Error::unknown_category("weather", "rian", " in rule `wet <- rian`", ["sun", "rain"]),
        Error::UnknownRule { rule: "rian".to_owned(), suggestion },
        Error::DuplicateRule { name: "wets".to_owned() },
        Error::RuleProbability { rule: "wet <- rain".to_owned(), value: 1.5 },
        Error::LearnedNote {
            rule: "wet <- rain".to_owned(),
            what: "broken",
            value: 5.0,
            wanted: "at most 3, the number of known rows".to_owned(),
        },
        Error::InhibitionProbability { rule: "wets".to_owned(), atom: "rain".to_owned(), value: f64::NAN },
        Error::RepeatedInhibition { rule: "wets".to_owned(), atom: "weather=rain".to_owned() },
        Error::EmptyNoisyOr { rule: "wets".to_owned() },
        Error::TooDeep { rule: "wets".to_owned(), depth: 300, limit: 256 },
        Error::Count { rule: "wets".to_owned(), n: 3, members: 2 },
        Error::EmptyAtom { rule: "wets".to_owned(), label: text() },
        Error::CombinationWeight { combination: "anger, sad".to_owned(), value: -1.0 },
        Error::DuplicateCombination { combination: "anger, sad".to_owned() },
        Error::IncompleteCombination { label: text() },
        Error::Impossible { rules: vec!["wet <- rain".to_owned()] },
        Error::Impossible { rules: vec!["wet <- rain".to_owned(), "dry <- rain".to_owned()] },
        Error::Setting { setting: "damping", value: 1.5, wanted: "a number from 0 to below 1" },
        Error::Examples { problem: "2 rows of truths for 3 rows of beliefs".to_owned() },
        Error::Sums { problem: "chunk 3 is summed twice".to_owned() },
        Error::NoStart { steps: 50_000 },
        Error::NoAssignment,
        Error::NothingToSimulate { n_rules: 3 },
        Error::Calibrator { label: text(), problem: CalibrationProblem::TwoCategories { n: 3 } },
        Error::Calibration(CalibrationProblem::Rows { what: "truths", given: 3, wanted: 4 }),
        Error::Calibration(CalibrationProblem::AloneOnly { method: "isotonic" }),
        Error::TooCostly {
            what: "exact inference".to_owned(),
            needed: "2.3 GiB for tables of 1.5e8 entries".to_owned(),
            limit: "1.0 GiB".to_owned(),
            advice: "raise the memory limit, or give the rules that tie many labels together fewer labels"
                .to_owned(),
        },
    ]
}

const N_KINDS: usize = 45;

#[test]
fn catalogue() {
    let errors = one_of_each();
    let kinds: std::collections::BTreeSet<&str> = errors.iter().map(Error::kind).collect();
    assert_eq!(kinds.len(), N_KINDS, "every kind of error is in the catalogue");
    let messages: Vec<String> = errors.iter().map(Error::to_string).collect();
    insta::assert_snapshot!(messages.join("\n"));
}
