//! Every figure is well-formed and self-contained, and has a title and a description.

use prsl::Model;
use prsl::metrics::{Reliability, ReliabilityBin};
use prsl_plot::{Bar, BarChart, LearningCurve, ReliabilityDiagram, RuleGraph, Series};
use prsl_testkit::simulated;
use quick_xml::Reader;
use quick_xml::events::Event;

fn check(svg: &str) {
    let mut reader = Reader::from_str(svg);
    let mut names = Vec::new();
    loop {
        match reader.read_event().expect("well-formed") {
            Event::Start(tag) | Event::Empty(tag) => {
                let name = tag.name().as_ref().to_owned();
                assert!(tag.attributes().all(|attribute| attribute.is_ok()), "{svg}");
                names.push(name);
            }
            Event::Eof => break,
            _ => {}
        }
    }
    assert_eq!(names[..3], ["svg", "title", "desc"]);
    assert!(!names.iter().any(|name| ["script", "image", "use", "foreignObject"].contains(&name.as_str())));
    let outside = svg.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
    assert!(!outside.contains("http") && !outside.contains("url(") && !outside.contains("@import"));
    assert!(!svg.contains("NaN") && !svg.contains("inf\""), "{svg}");
    assert!(svg.contains("prefers-color-scheme: dark"));
}

const AWKWARD: &str = "<script>alert(\"&\")</script>\u{1}\n";

#[test]
fn reliability_diagrams() {
    let bin = |count, probability, frequency| ReliabilityBin { count, probability, frequency };
    let some = Reliability { bins: vec![bin(100_000, 0.01, 0.02), bin(0, 0.0, 0.0), bin(1, 0.9, 1.0)] };
    for bins in [vec![], vec![bin(0, 0.0, 0.0)]] {
        let series = vec![(AWKWARD.to_owned(), Reliability { bins }), ("b".to_owned(), some.clone())];
        check(&ReliabilityDiagram { title: AWKWARD.to_owned(), series }.to_svg());
    }
    check(&ReliabilityDiagram { title: "nothing".to_owned(), series: vec![] }.to_svg());
}

#[test]
fn learning_curves() {
    let curve = |points: Vec<(f64, f64)>, best| LearningCurve {
        title: AWKWARD.to_owned(),
        x_label: "step".to_owned(),
        y_label: AWKWARD.to_owned(),
        series: vec![Series { name: AWKWARD.to_owned(), points }],
        best,
    };
    check(&curve(vec![], None).to_svg());
    check(&curve(vec![(0.0, f64::NEG_INFINITY), (1.0, f64::NAN), (2.0, -3.0)], Some(2.0)).to_svg());
    let marked = curve(vec![(0.0, -3.0), (10.0, -2.0)], Some(10.0)).to_svg();
    assert!(marked.contains("best step: 10, -2.0000"));
    check(&marked);
}

#[test]
fn bar_charts() {
    let bar = |value| Bar { name: AWKWARD.repeat(9), value };
    let chart = |bars| BarChart { title: AWKWARD.to_owned(), x_label: "gain".to_owned(), bars };
    check(&chart(vec![]).to_svg());
    check(&chart(vec![bar(Some(f64::NAN)), bar(Some(-1e-9)), bar(None), bar(Some(7.0))]).to_svg());
    let many = chart(vec![bar(Some(1.0)); 500]).to_svg();
    assert!(many.contains("and 480 with less"));
    check(&many);
}

#[test]
fn rule_graphs() {
    for (n_labels, n_rules) in [(0, 0), (1, 0), (5, 5), (20, 20), (100, 100)] {
        let (model, _) = simulated(n_labels, n_rules, 0, 1);
        let graph = RuleGraph { title: AWKWARD.to_owned(), model: &model };
        check(&graph.to_svg());
        assert_eq!(graph.to_svg(), graph.to_svg());
    }
    let text = "label \"<b> & \\\"c\\\"\"\nlabel hidden latent\nlabel a\nrule 0: a\nrule 0.5: hidden -> a\nrule 1: true\n";
    let model = Model::parse(text).expect("a model");
    check(&RuleGraph { title: "awkward".to_owned(), model: &model }.to_svg());
}
