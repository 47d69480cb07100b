//! Any text as the formula of a builder's rule. It is read or refused. A formula that was read prints and reads back as
//! itself.
#![no_main]

use libfuzzer_sys::fuzz_target;
use prsl::{Assignment, Model, ModelBuilder, RuleId};

fn labels() -> ModelBuilder {
    Model::builder()
        .label("activity", ["walking", "normal", "overhead"])
        .label("feet", ["gait", "standing"])
        .label("hands", ["high", "low", "in", "1st", "größe"])
        .label("b", ["gait", "x y"])
        .binary_label("a")
        .binary_label("c")
}

fuzz_target!(|text: &str| {
    match labels().rule(text, 0.75).build() {
        Ok(model) => {
            let rule = RuleId::new(0);
            let printed = model.rule_text(rule);
            let again = labels().rule(printed.as_str(), 0.75).build().expect("a printed formula is read");
            assert_eq!(again, model, "{printed}");
            assert_eq!(Model::parse(&model.to_string()).expect("a printed model is read"), model);
            let weight = model.rule(rule).weight(&Assignment::from_indices([0; 6]));
            assert!(weight == 0.25 || weight == 0.75);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
