//! Models that are built instead of read have errors too.

use prsl::model::{Atom, Inhibition, LearnedNote};
use prsl::{Body, Document, Error, Formula, Model, NoisyOr, Rule, RuleId};

use crate::note;

#[test]
fn the_builder_reports_errors() {
    let base = || Model::builder().label("weather", ["sun", "rain"]).label("ground", ["dry", "wet"]);
    let wrong = [
        base().rule("wet <- rian", 0.9).build(),
        base().rule("wet <-", 0.9).build(),
        base().rule("wet <- rain", 1.5).build(),
        base().rule("wet <- rain", f64::NAN).build(),
        base().label("weather", ["a", "b"]).build(),
        base().label("empty", Vec::<String>::new()).build(),
        base().label("", ["a", "b"]).build(),
        base().label("twice", ["a", "a"]).build(),
        base().prior("weather", [0.5, 0.6]).build(),
        base().prior("weather", [0.5]).build(),
        base().prior("weather", [-0.5, 1.5]).build(),
        base().prior("whether", [0.5, 0.5]).build(),
        base().noisy_or([("weather", "rian", 0.5)], 1.0).build(),
        base().noisy_or([("weather", "rain", 2.0)], 1.0).build(),
        base().noisy_or([("weather", "rain", 0.5), ("weather", "rain", 0.2)], 1.0).build(),
        base().noisy_or([], 1.0).build(),
        base().named_rule("wets", "wet", 1.0).named_rule("wets", "wet", 1.0).build(),
        base().named_rule("wets", "wet", 1.0).remove_rule("wet").build(),
        base().rule("wet", 1.0).build().unwrap().edit().remove_label("ground").build(),
        base().expect("rain => wet > 2").build(),
        base().learned(note()).build(),
        base().rule("wet", 1.0).learned_at(RuleId::new(1), note()).build(),
        base().rule("wet", 1.0).learned(LearnedNote::new(-1.0, 0.0, 0.0, 0.0, true)).build(),
        base().rule("wet", 1.0).learned(LearnedNote::new(1.0, 0.0, f64::INFINITY, 0.0, true)).build(),
        base().named_rule("wets", "wet", 1.0).learned(LearnedNote::new(1.0, 4.0, 3.0, 0.0, true)).build(),
        base().rule("wet", 1.0).learned(LearnedNote::new(1.0, 4.0, 5.0, f64::NAN, true)).build(),
    ];
    let messages: Vec<String> = wrong.into_iter().map(|result| result.unwrap_err().to_string()).collect();
    insta::assert_snapshot!(messages.join("\n"));
}

#[test]
fn a_rule_with_an_unknown_category_is_an_error() {
    let [label, nowhere] = [0, 7].map(prsl::LabelId::new);
    let category = prsl::CategoryId::new(5);
    let base = || Model::builder().label("weather", ["sun", "rain"]);
    let formula = |atom: Atom| Rule::new(0.9, Body::Formula(Formula::atom(atom)));
    let noisy_or = |label, category| {
        Rule::new(0.9, Body::NoisyOr(NoisyOr::new([Inhibition { label, category, probability: 0.5 }])))
    };
    let wrong = [
        formula(Atom::new(label, category)),
        formula(Atom::new(nowhere, category)),
        formula(Atom::one_of(label, [])),
        formula(Atom::new(label, category)).with_probability(2.0),
        noisy_or(label, category),
        noisy_or(nowhere, category),
        formula(Atom::new(label, category)).named("wets"),
    ];
    let messages: Vec<String> =
        wrong.into_iter().map(|rule| base().add_rule(rule).build().unwrap_err().to_string()).collect();
    insta::assert_snapshot!(messages.join("\n"));
    let model = base().build().unwrap();
    assert!(matches!(model.find_category(nowhere, "sun"), Err(Error::UnknownLabel { .. })));
}

#[test]
fn a_model_that_prints_as_too_large_a_text_is_an_error() {
    let name = "n".repeat(9 << 20);
    let model = Model::builder().label("a", [name, "other".to_owned()]).build().unwrap();
    let model = model.edit().rule("!a=other", 0.9).rule("a=other", 0.9).build().unwrap();
    assert!(model.to_string().len() < Document::MAX_BYTES);
    let larger = model.edit().label("b", ["m".repeat(9 << 20), "rest".to_owned()]).build().unwrap();
    assert!(Document::of_model(&model).is_ok());
    assert!(matches!(Document::of_model(&larger), Err(Error::TooLarge { .. })));
}
