//! Parts of sentences: phrases, lists, names and numbers.

use crate::notation::{self, number};

/// The form of a part of a sentence, which decides where it needs parentheses.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// `overhead`, `not overhead`, `hands is high`
    Word,
    /// `a and b`
    And,
    /// `a or b`
    Or,
    /// `at most 1 of a, b and c`
    List,
    /// `if a then b`
    Sentence,
}

/// A part of a sentence.
#[derive(Clone)]
pub(super) struct Phrase {
    pub(super) text: String,
    pub(super) form: Form,
}

impl Phrase {
    pub(super) fn new(form: Form, text: impl Into<String>) -> Self {
        Self { text: text.into(), form }
    }

    /// The text, in parentheses unless it has one of these forms.
    pub(super) fn unless(&self, forms: &[Form]) -> String {
        if forms.contains(&self.form) { self.text.clone() } else { format!("({})", self.text) }
    }
}

/// A probability with two digits, or with more if it would be rounded to 0 or 1 otherwise.
pub(super) fn rounded(probability: f64) -> String {
    let is_certain = |value: f64| value == 0.0 || value == 1.0;
    let shown =
        |digits: usize| format!("{probability:.digits$}").parse::<f64>().expect("a number was written");
    let digits = (2..12).find(|&digits| is_certain(probability) || !is_certain(shown(digits)));
    number(shown(digits.unwrap_or(12)))
}

/// A factor with three significant digits.
pub(super) fn times(factor: f64) -> String {
    if factor < 1e6 {
        let digits = (2.0 - factor.log10().floor()).max(0.0) as usize;
        return number(format!("{factor:.digits$}").parse().expect("a number was written"));
    }
    format!("{factor:.2e}")
}

/// Joins phrases by `and` or `or`, depending on the form.
pub(super) fn joined(phrases: &[Phrase], form: Form) -> Phrase {
    let operator = if form == Form::And { " and " } else { " or " };
    let texts: Vec<String> = phrases.iter().map(|phrase| phrase.unless(&[Form::Word, form])).collect();
    Phrase::new(form, texts.join(operator))
}

/// `a, b and c`
pub(super) fn listed(texts: impl Iterator<Item = String>, last: &str) -> String {
    let mut texts: Vec<String> = texts.collect();
    match (texts.pop(), texts.is_empty()) {
        (None, _) => "nothing".to_owned(),
        (Some(only), true) => only,
        (Some(end), false) => format!("{} {last} {end}", texts.join(", ")),
    }
}

/// The words of the sentences. A name that equals one of them is put in quotes.
const WORDS: [&str; 15] = [
    "and", "but", "both", "either", "false", "if", "is", "neither", "nor", "not", "nothing", "of", "or",
    "then", "true",
];

/// A name, in quotes if it could be taken for a word of the sentence.
pub(super) fn plain(name: &str) -> String {
    let is_word = name.chars().all(|c| c.is_alphanumeric() || "_-.+/".contains(c));
    if is_word && !WORDS.contains(&name) {
        return name.to_owned();
    }
    let quoted = notation::name(name);
    if quoted == name { format!("\"{name}\"") } else { quoted }
}
