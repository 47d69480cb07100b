//! The TextMate grammar has the words and signs of the library. The tests of `web/` and `python/` run grammars on models.

use std::collections::BTreeSet;

use prsl::editor::{KEYWORDS, signs};
use serde_json::Value;

const GRAMMAR: &str = include_str!("../../../../editors/vscode/syntaxes/prsl.tmLanguage.json");

/// The expression of a part of the grammar.
fn expression(part: &str) -> String {
    let grammar: Value = serde_json::from_str(GRAMMAR).expect("JSON");
    let found = grammar["repository"][part]["match"].as_str();
    found.unwrap_or_else(|| panic!("the grammar has no part `{part}`")).to_owned()
}

/// The words of the last group in the expression of a part: `...(rule|noisy_or)\b`.
fn words(part: &str) -> BTreeSet<String> {
    let expression = expression(part);
    let group = expression.strip_suffix(")\\b").and_then(|rest| rest.rsplit_once('('));
    let (_, words) = group.unwrap_or_else(|| panic!("`{expression}` does not end with a group of words"));
    words.split('|').map(str::to_owned).collect()
}

fn expected(words: &[&str]) -> BTreeSet<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

#[test]
fn every_keyword_is_in_the_grammar() {
    assert_eq!(words("statement"), expected(KEYWORDS.statements));
    assert_eq!(words("calibrate"), expected(KEYWORDS.calibrators));
    let reserved = ["logic", "count", "constant", "setting"].map(words);
    assert_eq!(reserved.into_iter().flatten().collect::<BTreeSet<_>>(), expected(KEYWORDS.reserved));
    assert_eq!(KEYWORDS.contextual, ["mpe", "none"]);
    assert!(expression("mpe").ends_with("(mpe)\\b") && expression("none").contains("(none)"));
}

#[test]
fn every_sign_is_in_the_grammar_in_its_order() {
    let escaped = |sign: &str| -> String {
        let special = |c: char| "+|(){}[]".contains(c);
        sign.chars().flat_map(|c| special(c).then_some('\\').into_iter().chain([c])).collect()
    };
    let is_punctuation = |sign: &&str| ":,(){}[];".contains(sign);
    let (punctuation, operators): (Vec<&str>, Vec<&str>) = signs().partition(is_punctuation);
    let alternatives = |signs: Vec<&str>| signs.into_iter().map(escaped).collect::<Vec<_>>().join("|");
    assert_eq!(expression("operator"), alternatives(operators));
    assert_eq!(expression("punctuation"), alternatives(punctuation));
}
