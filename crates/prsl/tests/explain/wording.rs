//! Explanations read well, as text and as JSON.

use prsl::Evidence;

use crate::{explain, worked_example};

#[test]
fn the_worked_example_is_explained() {
    insta::assert_snapshot!(worked_example());
}

#[test]
fn every_rule_has_a_sentence() {
    for seed in 0..300 {
        let (model, _) = prsl_testkit::random_model(&prsl_testkit::RandomModel::default(), seed);
        for rule in model.rule_ids() {
            let sentence = model.rule_sentence(rule);
            assert!(
                !sentence.is_empty() && !sentence.contains("NaN") && !sentence.contains('\n'),
                "{sentence}"
            );
        }
        for combination in model.typical() {
            assert!(model.combination_sentence(combination).ends_with(" times"));
        }
    }
}

#[test]
fn the_worked_example_is_json() {
    insta::assert_snapshot!(rounded(&worked_example().to_json()));
}

/// Rounds numbers, because their last digits depend on the engine.
fn rounded(json: &str) -> String {
    let round = |line: &str| match line.split_once(": ") {
        Some((key, value)) => match value.trim_end_matches(',').parse::<f64>() {
            Ok(number) if value.contains('.') => {
                let comma = if value.ends_with(',') { "," } else { "" };
                format!("{key}: {}{comma}", (number * 1e9).round() / 1e9)
            }
            _ => line.to_owned(),
        },
        None => line.to_owned(),
    };
    json.lines().map(round).collect::<Vec<_>>().join("\n")
}

#[test]
fn certainty_ties_and_tiny_numbers_read_well() {
    let model = "
label \"two words\": \"so so\", fine
label a
label b
label c
rule 1: a -> b
rule 1: b -> a
rule 0.5 shrug: a -> c
rule 0: c & a
noisy_or 1: a=no 0.2, \"two words\"=fine 1e-200
";
    let evidence = Evidence::new()
        .belief("two words", [1e-300, 1.0 - 1e-300])
        .belief("a", [1e-200])
        .observe("b", "yes")
        .belief("c", [0.5]);
    insta::assert_snapshot!(explain(model, evidence));
}

#[test]
fn equally_probable_assignments_are_reported() {
    insta::assert_snapshot!(explain("label a\nlabel b\nrule 0.9: a xor b", Evidence::new()));
}

#[test]
fn large_models_are_summarized() {
    let mut model = String::new();
    for index in 1..=40 {
        model.push_str(&format!("label topic_{index} prior 0.02\n"));
    }
    for index in 1..=20 {
        model.push_str(&format!("rule 0.5: topic_{index} -> topic_{}\n", index + 1));
    }
    let all: Vec<String> = (1..=40).map(|index| format!("topic_{index}")).collect();
    model.push_str("rule 0.99: topic_1 -> topic_2\nrule 0.9: topic_2 -> topic_3 & topic_4\n");
    model.push_str(&format!("rule 0.99 some: {}\n", all.join(" | ")));
    insta::assert_snapshot!(explain(&model, Evidence::new().belief("topic_1", [0.93])));
}

#[test]
fn a_model_without_labels_or_rules_is_explained() {
    insta::assert_snapshot!(explain("", Evidence::new()));
    assert_eq!(explain("label a", Evidence::new()).rules.len(), 0);
}

#[test]
fn unproven_and_missing_assignments_are_reported() {
    let mut explanation = worked_example();
    explanation.best.as_mut().unwrap().proven = false;
    let shown = explanation.to_string();
    assert!(
        shown.contains("\n            the search was given up: something else may be more probable\n"),
        "{shown}"
    );
    (explanation.best, explanation.runner_up) = (None, None);
    explanation.joint_refused = Some("rule `wide` needs too much".to_owned());
    let shown = explanation.to_string();
    assert!(shown.contains("\nmost probable\n  not affordable: rule `wide` needs too much\n"), "{shown}");
}

#[test]
fn lines_fit_a_terminal() {
    let labels: Vec<String> = (0..30).map(|index| format!("a_rather_long_label_name_{index}")).collect();
    let mut text: String =
        labels.iter().map(|label| format!("label {label} from \"the very long classifier\"\n")).collect();
    text.push_str(&format!("rule 0.9: {}\n", labels.join(" & ")));
    text.push_str(&format!("rule 0.9 other: {}\n", labels.join(" | ")));
    let shown = explain(&text, Evidence::new().belief(labels[0].as_str(), [0.9])).to_string();
    assert!(shown.lines().all(|line| line.chars().count() < 100), "{shown}");
    assert!(shown.lines().all(|line| line.trim_end() == line), "{shown}");
}

#[test]
fn a_typical_combination_is_marked() {
    let model = "label anger\nlabel joy\nlabel sad\nrule 0.9 mood: joy -> !sad\ntypical 3: anger, sad\ntypical 1e17: joy";
    let evidence = Evidence::new().belief("anger", [0.7, 0.3]).observe("sad", "yes");
    insta::assert_snapshot!(explain(model, evidence));
    assert_eq!(explain(model, Evidence::new()).best.unwrap().typical, Some(1e17));
}

/// Of many categories, labels and rules only those that matter are shown, unless all are asked for.
#[test]
fn a_large_explanation_fits_on_a_screen() {
    let categories: Vec<String> = (0..30).map(|category| format!("c{category}")).collect();
    let mut text = format!("label code: {}\n", categories.join(", "));
    for label in 0..30 {
        text += &format!("label l{label}\nrule 0.{}: l{label} -> c{label}\n", 70 + label % 25);
    }
    text += "noisy_or 0.9: l1 0.2, code in {c2, c3} 0.4, l4=no 0.9\n";
    for typical in 0..50 {
        let labels: Vec<String> = (0..30)
            .map(|label| format!("l{label}={}", if label == typical % 30 { "yes" } else { "no" }))
            .collect();
        text += &format!(
            "typical 0.{}: code=c{}, {}\n",
            typical + 10,
            (typical * 7 + typical / 30) % 30,
            labels.join(", ")
        );
    }
    let explanation = explain(&text, Evidence::new().belief("l1", [0.8]).belief("l2", [0.9]));
    let shown = explanation.to_string();
    insta::assert_snapshot!(shown);
    assert!(shown.lines().count() <= 55, "{} lines", shown.lines().count());
    let all = format!("{explanation:#}");
    assert!(categories.iter().all(|category| all.contains(&format!(" {category} "))), "{all}");
    assert!(all.contains("rule 0.94"), "{all}");
}
