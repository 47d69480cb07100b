//! The example of the README equals that of the crate page, which is a doc test.

use prsl::Document;

/// The lines of the first fenced block that opens with `fence`, hidden lines left out.
fn block(text: &str, fence: &str) -> Vec<String> {
    text.lines()
        .skip_while(|line| *line != fence)
        .skip(1)
        .take_while(|line| *line != "```")
        .filter(|line| !line.starts_with("# "))
        .map(str::to_owned)
        .collect()
}

const README: &str = include_str!("../../../README.md");

#[test]
fn the_readme_example_is_the_one_that_is_tested() {
    let tested = block(include_str!("../docs/crate.md"), "```");
    assert!(tested.len() > 10);
    assert_eq!(block(README, "```rust"), tested);
}

#[test]
fn the_models_in_the_documentation_pass_their_own_tests() {
    let language = block(include_str!("../docs/language.md"), "```text").join("\n");
    for text in [
        block(README, "```text").join("\n"),
        language,
        include_str!("../../../examples/warehouse.prsl").to_owned(),
    ] {
        let document = Document::parse(&text).unwrap();
        let findings: Vec<_> =
            prsl::lint::check(&document).into_iter().filter(|finding| finding.counts()).collect();
        assert!(findings.is_empty(), "{findings:?} in\n{text}");
    }
}
