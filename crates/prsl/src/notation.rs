//! How names and numbers are written: in model files, in JSON and in messages.

/// Keywords that begin a statement.
pub(crate) const STATEMENTS: [&str; 7] =
    ["label", "calibrate", "fixed", "rule", "noisy_or", "typical", "expect"];
/// Words that are names only in quotes.
pub(crate) const RESERVED: [&str; 14] = [
    "not", "and", "or", "xor", "in", "of", "true", "false", "at_least", "at_most", "exactly", "prior",
    "latent", "from",
];
/// Begins the condition of an expectation about the most probable assignment. Elsewhere it is a name.
pub(crate) const MPE: &str = "mpe";
/// Stands for the combination in which every label is `no`, unless a label or category has this name.
pub(crate) const NONE: &str = "none";

/// Returns a name as it is written in a model file, in quotes where it needs them.
pub(crate) fn name(name: &str) -> String {
    let keyword = RESERVED.contains(&name) || STATEMENTS.contains(&name) || name == MPE;
    if is_identifier(name) && !keyword {
        return name.to_owned();
    }
    let mut quoted = String::from('"');
    for c in name.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            c if c.is_control() || ('\u{2028}'..='\u{2029}').contains(&c) => {
                quoted.push_str(&format!("\\u{{{:x}}}", u32::from(c)));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Returns the shortest decimal that reads back as the same number.
pub(crate) fn number(number: f64) -> String {
    // `{}` never writes an exponent, `{:?}` always writes a fraction.
    if number == number.trunc() && number.abs() < 1e15 { format!("{number}") } else { format!("{number:?}") }
}

/// Rounds to this many significant digits, but never coarser than to whole numbers.
pub(crate) fn significant(number: f64, digits: usize) -> f64 {
    let after_first = digits - 1;
    // NaN and infinity stay as they are.
    if !number.is_finite() || number.abs() >= 10_f64.powi(after_first as i32) {
        return number.round();
    }
    let rounded: f64 = format!("{number:.after_first$e}").parse().expect("a number was written");
    rounded + 0.0 // turns −0 into 0
}

/// Returns numbers separated by commas.
pub(crate) fn numbers(values: &[f64]) -> String {
    values.iter().map(|&value| number(value)).collect::<Vec<_>>().join(", ")
}

/// Returns what messages call a label or category whose id the model does not have.
pub(crate) fn numbered(index: usize) -> String {
    format!("number {}", index + 1)
}

/// Whether a name can be written without quotes, keywords aside.
pub(crate) fn is_identifier(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(starts_word) && chars.all(continues_word)
}

/// Whether a word that needs no quotes may begin with this character.
pub(crate) fn starts_word(c: char) -> bool {
    c == '_' || unicode_ident::is_xid_start(c)
}

/// Whether a word that needs no quotes may contain this character after the first.
pub(crate) fn continues_word(c: char) -> bool {
    c == '_' || unicode_ident::is_xid_continue(c)
}
