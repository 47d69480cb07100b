//! Parts of messages: names on one line, lists and suggestions.

/// The candidate most similar to `name`, if any is similar.
pub(crate) fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const LONGEST: usize = 100; // comparing takes time quadratic in the length
    if name.len() > LONGEST {
        return None;
    }
    prsl::lint::nearest(name, candidates.into_iter().filter(|candidate| candidate.len() <= LONGEST))
}

/// `; did you mean ...?`, or nothing.
pub(crate) fn did_you_mean(suggestion: Option<&str>) -> String {
    suggestion.map(|name| format!("; did you mean `{}`?", shown(name))).unwrap_or_default()
}

/// Texts that other programs use for missing values, in lower case.
const MISSING_CODES: [&str; 13] =
    ["na", "n/a", "#n/a", "nan", "null", "none", "nil", "?", "-", "--", ".", "missing", "unknown"];

/// Whether a text probably stands for a missing value.
pub(crate) fn is_missing_code(text: &str) -> bool {
    MISSING_CODES.iter().any(|code| text.eq_ignore_ascii_case(code))
}

pub(super) fn missing_advice(text: &str) -> &'static str {
    if is_missing_code(text) {
        "; if it stands for a missing value, leave the cell empty or list it as such"
    } else {
        ""
    }
}

/// The decimal sign of a text that looks like a number.
pub(super) fn decimal_sign(text: &str) -> Option<char> {
    let sign = text.chars().find(|c| matches!(c, '.' | ','))?;
    let is_number = text.matches(['.', ',']).count() == 1 && text.replace(sign, ".").parse::<f64>().is_ok();
    is_number.then_some(sign)
}

pub(super) fn decimal_advice(text: &str) -> &'static str {
    match decimal_sign(text) {
        Some(',') => "; its decimal sign is a comma, expected a point",
        Some(_) => "; its decimal sign is a point, expected a comma",
        None => "",
    }
}

/// The text on one line, shortened to fit in a message.
pub(crate) fn shown(text: &str) -> String {
    const LONGEST: usize = 60;
    let mut short: String = text.chars().take(LONGEST).flat_map(char::escape_debug).collect();
    if text.chars().nth(LONGEST).is_some() {
        short.push('…');
    }
    short.replace("\\'", "'").replace("\\\"", "\"")
}

/// Names in backticks, one after the other.
pub(crate) fn listed(names: &[String], separator: &str) -> String {
    names.iter().map(|name| format!("`{}`", shown(name))).collect::<Vec<_>>().join(separator)
}

/// The same with the first and the last names only, if there are many.
pub(super) fn listed_few(names: &[String], separator: &str) -> String {
    const ENDS: [usize; 2] = [4, 2];
    match names.len().checked_sub(ENDS[0] + ENDS[1]).filter(|left| *left > 1) {
        None => listed(names, separator),
        Some(left) => {
            let [first, last] = [&names[..ENDS[0]], &names[names.len() - ENDS[1]..]];
            let [first, last] = [first, last].map(|names| listed(names, separator));
            format!("{first}{separator}{left} others{separator}{last}")
        }
    }
}

/// Columns with suggestions; only the first ones if there are many.
pub(super) fn suggested(columns: &[(String, Option<String>)]) -> String {
    const MAX_LISTED: usize = 20;
    let one = |(name, suggestion): &(String, Option<String>)| match suggestion {
        Some(suggestion) => format!("`{}` (did you mean `{}`?)", shown(name), shown(suggestion)),
        None => format!("`{}`", shown(name)),
    };
    let names = columns.iter().take(MAX_LISTED).map(one).collect::<Vec<_>>().join(", ");
    match columns.len().saturating_sub(MAX_LISTED) {
        0 => names,
        more => format!("{names} and {more} more"),
    }
}

pub(super) fn unknown(columns: &[(String, Option<String>)]) -> String {
    format!("{} {}", if columns.len() == 1 { "column" } else { "columns" }, suggested(columns))
}

pub(super) fn only(columns: &[(String, Option<String>)]) -> String {
    if columns.is_empty() { String::new() } else { format!(", which are {}", suggested(columns)) }
}

pub(super) fn cells(n: usize) -> String {
    if n == 1 { "1 cell".to_owned() } else { format!("{n} cells") }
}

/// A number unchanged, or a name in backticks.
pub(super) fn shown_column(column: &str) -> String {
    if column.bytes().all(|byte| byte.is_ascii_digit()) {
        format!("number {column}")
    } else {
        format!("`{}`", shown(column))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_finds_typos_and_nothing_else() {
        assert_eq!(nearest("rian", ["sun", "rain"]), Some("rain"));
        assert_eq!(nearest("Rain", ["sun", "rain"]), Some("rain"));
        assert_eq!(nearest("snow", ["sun", "rain"]), None);
        assert_eq!(nearest("x", ["y"]), None);
    }

    #[test]
    fn shown_text_stays_on_one_line_and_short() {
        assert_eq!(shown("it's \"a\"\nb"), "it's \"a\"\\nb");
        assert_eq!(shown(&"x".repeat(1000)).chars().count(), 61);
    }
}
