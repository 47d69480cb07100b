//! `prsl learn --report`.

use prsl::Model;
use quick_xml::Reader;
use quick_xml::events::Event;

use crate::learn::twins;

/// The names of all elements of a page that is well-formed and needs nothing from elsewhere.
fn elements(page: &str) -> Vec<String> {
    let mut reader = Reader::from_str(page);
    let mut names = Vec::new();
    loop {
        match reader.read_event().expect("well-formed") {
            Event::Start(tag) | Event::Empty(tag) => {
                assert!(tag.attributes().all(|attribute| attribute.is_ok()), "{tag:?}");
                names.push(tag.name().as_ref().to_owned());
            }
            Event::Eof => break,
            _ => {}
        }
    }
    let outside = page.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
    assert!(!outside.contains("http") && !outside.contains("url(") && !outside.contains("@import"));
    assert!(!names.iter().any(|name| ["script", "img", "link"].contains(&name.as_str())));
    names
}

#[test]
fn a_report_tells_what_was_learned_in_words() {
    let folder = twins(200);
    let run = folder.prsl("learn beliefs.csv truth.csv --cv 2 --report out/told -o learned.prsl");
    assert!(
        run.stdout.ends_with("written to learned.prsl, with a report in out/told/report.html\n"),
        "{run}"
    );
    let page = folder.read("out/told/report.html");
    let names = elements(&page);
    assert_eq!(names.iter().filter(|name| *name == "svg").count(), 2);
    let model = Model::read(&folder.read("learned.prsl")).expect("a model");
    assert!(!model.rules().is_empty(), "{model}");
    for rule in model.rule_ids() {
        let sentence = model.rule_sentence(rule);
        assert!(page.contains(&sentence) && run.stdout.contains(&sentence), "{sentence}\n{page}");
        let text = model.rule_text(rule).replace('>', "&gt;");
        assert!(page.contains(&text), "{page}");
    }
    for combination in model.typical() {
        assert!(page.contains(&model.combination_sentence(combination)), "{page}");
    }
    for figure in ["learning", "reliability"] {
        let svg = folder.read(&format!("out/told/{figure}.svg"));
        assert!(page.contains(&svg), "{figure}");
    }
    assert!(!page.contains("NaN") && !page.contains("your rules"), "{page}");
    for title in
        ["Likelihood", "Cross-validation", "Learned rules", "Path", "Learning curve", "Reliability", "Scores"]
    {
        assert!(page.contains(&format!("<h2>{title}</h2>")), "{title}");
    }
}

#[test]
fn a_report_names_the_rules_of_the_base_and_escapes_what_is_named() {
    let base = "label \"<b>&left\"\nlabel right\n\nfixed rule 0.9 \"a < b\": \"<b>&left\" -> right\n";
    let folder = twins(60);
    for file in ["beliefs.csv", "truth.csv"] {
        let text = folder.read(file).replace("left", "<b>&left");
        std::fs::write(folder.path(file), text).expect("a file");
    }
    std::fs::write(folder.path("base.prsl"), base).expect("a file");
    folder.prsl("learn beliefs.csv truth.csv --base base.prsl --cv 0 --report told -o learned.prsl").done();
    let page = folder.read("told/report.html");
    assert!(!elements(&page).iter().any(|name| name == "b"));
    assert!(page.contains("if &quot;&lt;b&gt;&amp;left&quot; then right, 0.9"), "{page}");
    assert!(page.contains("fixed rule 0.9 &quot;a &lt; b&quot;:"), "{page}");
    assert!(page.contains("calibrated beliefs, your rules"), "{page}");
}

/// Calibrated rows were refused as rows of another model.
#[test]
fn the_report_of_a_calibrated_model_was_refused() {
    let folder = twins(60);
    folder.prsl("learn beliefs.csv truth.csv --cv 0 --calibrate platt --report told -o learned.prsl").done();
    assert!(folder.read("learned.prsl").contains("calibrate left platt"));
    assert!(folder.read("told/report.html").contains("2 calibrators"));
}

#[test]
fn a_report_without_a_folder_is_refused_before_learning() {
    let folder = twins(20);
    let run = folder.prsl("learn beliefs.csv truth.csv --report truth.csv/told -o learned.prsl");
    assert_ne!(run.code, 0, "{run}");
    insta::assert_snapshot!(run);
    assert!(!folder.path("learned.prsl").exists());
}

/// The paper's recipe has a validation set, steps and no path.
#[test]
fn a_report_of_the_papers_recipe() {
    let folder = twins(100);
    folder
        .prsl("learn beliefs.csv truth.csv --recipe paper --steps 100 --report told -o learned.prsl")
        .done();
    let page = folder.read("told/report.html");
    elements(&page);
    assert!(page.contains("validation rows") && !page.contains("<h2>Path</h2>"), "{page}");
    assert!(folder.read("told/learning.svg").contains("step"));
}
