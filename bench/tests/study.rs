//! A short simulation study: the paper's numbers, and a report with all its parts.

use std::path::Path;
use std::time::Duration;

use prsl_bench::document::{to_html, to_markdown};
use prsl_bench::study::headline::headlines;
use prsl_bench::study::report::{report, table_names};
use prsl_bench::study::{Draw, Measure, Measured, Method, golden_cases, own_cases, run};

const TINY: Draw = Draw { replications: 2, rows: 5, seed: 1 };

fn tiny() -> Vec<Measured> {
    [4, 6].into_iter().flat_map(|n_labels| run(&own_cases(n_labels, TINY), 2, Duration::ZERO)).collect()
}

#[test]
fn the_authors_models_give_the_papers_numbers() {
    for n_labels in [5, 10] {
        let measured = run(&golden_cases(n_labels), 2, Duration::ZERO);
        if measured.is_empty() {
            continue;
        }
        let headlines = headlines(&measured);
        assert!(headlines.len() >= 5, "{n_labels} labels: only {} numbers", headlines.len());
        for headline in headlines {
            assert!(headline.holds(), "{headline:?}");
        }
        for model in measured {
            assert_eq!(model.values[&Measure::Match(Method::BranchAndBound)], 1.0, "{}", model.name);
            assert_eq!(model.values[&Measure::Proven], 1.0, "{}", model.name);
        }
    }
}

#[test]
fn a_report_has_all_its_parts() {
    let blocks = report(&tiny(), TINY);
    let (markdown, page) = (to_markdown(&blocks), to_html(&blocks));
    for part in [
        "The paper's numbers and ours",
        "Own simulations",
        "How it was done",
        "Correlation",
        "branch and bound",
    ] {
        assert!(markdown.contains(part) && page.contains(part), "{part} is missing");
    }
    assert_eq!(page.matches("<svg").count(), 5);
    assert!(page.matches("class=\"median\"").count() > 20);
    assert!(!page.contains("NaN") && !page.contains("http"));
}

#[test]
fn the_same_seed_gives_the_same_numbers() {
    let numbers = |measured: Vec<Measured>| -> Vec<_> {
        let is_number = |measure: &Measure| !matches!(measure, Measure::Seconds(_));
        measured
            .into_iter()
            .map(|model| model.values.into_iter().filter(|(m, _)| is_number(m)).collect::<Vec<_>>())
            .collect()
    };
    assert_eq!(numbers(tiny()), numbers(tiny()));
}

#[test]
fn large_models_are_measured_without_exact_marginals() {
    let draw = Draw { replications: 1, rows: 1, seed: 1 };
    let measured = run(&own_cases(70, draw), 1, Duration::ZERO);
    let values = &measured[0].values;
    let is_exact = |measure: &Measure| matches!(measure, Measure::Correlation(_) | Measure::WorstError(_));
    assert!(!values.keys().any(is_exact));
    assert_eq!(values[&Measure::Proven], 1.0);
}

#[test]
fn every_table_has_a_place_in_the_documentation() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let pages: String =
        ["study.md", "paper.md"].map(|page| std::fs::read_to_string(docs.join(page)).unwrap()).concat();
    for name in table_names() {
        assert!(pages.contains(&format!("<!-- table: {name} -->\n")), "no place for `{name}`");
    }
}
