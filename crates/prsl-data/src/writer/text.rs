//! Values as text: cells of CSV, and values of JSON.

use super::Column;

pub(super) fn separate(line: &mut String, index: usize) {
    if index > 0 {
        line.push(',');
    }
}

/// An empty cell in a table of one column is quoted, because readers skip empty lines.
pub(super) fn end_csv_line(line: &mut String) {
    if line.is_empty() {
        line.push_str("\"\"");
    }
    line.push('\n');
}

/// Fails with a number that is not finite.
pub(super) fn push_csv_cell(line: &mut String, column: &Column, row: usize) -> Result<(), f64> {
    match column {
        Column::Number(values) => values[row].map_or(Ok(()), |value| push_number(line, value)),
        Column::Integer(values) => {
            if let Some(value) = values[row] {
                line.push_str(&value.to_string());
            }
            Ok(())
        }
        Column::Text(values) => {
            if let Some(text) = &values[row] {
                push_csv_text(line, text);
            }
            Ok(())
        }
        Column::Boolean(values) => {
            if let Some(value) = values[row] {
                line.push_str(if value { "true" } else { "false" });
            }
            Ok(())
        }
    }
}

/// Fails with a number that is not finite.
pub(super) fn push_json_value(line: &mut String, column: &Column, row: usize) -> Result<(), f64> {
    match column {
        Column::Number(values) => {
            if let Some(value) = values[row] {
                return push_number(line, value);
            }
            line.push_str("null");
        }
        Column::Integer(values) => match values[row] {
            Some(value) => line.push_str(&value.to_string()),
            None => line.push_str("null"),
        },
        Column::Text(values) => match &values[row] {
            Some(text) => push_json_text(line, text),
            None => line.push_str("null"),
        },
        Column::Boolean(values) => line.push_str(match values[row] {
            Some(true) => "true",
            Some(false) => "false",
            None => "null",
        }),
    }
    Ok(())
}

/// The shortest decimal that reads back as the same number. Returns an error if the number is not finite.
fn push_number(line: &mut String, value: f64) -> Result<(), f64> {
    use std::fmt::Write;
    if !value.is_finite() {
        return Err(value);
    }
    write!(line, "{value:?}").expect("a string can always be extended");
    Ok(())
}

pub(super) fn push_csv_text(line: &mut String, text: &str) {
    if !text.contains([',', '"', '\n', '\r']) && text.trim_ascii().len() == text.len() {
        line.push_str(text);
        return;
    }
    line.push('"');
    line.push_str(&text.replace('"', "\"\""));
    line.push('"');
}

pub(super) fn push_json_text(line: &mut String, text: &str) {
    use std::fmt::Write;
    line.push('"');
    for char in text.chars() {
        match char {
            '"' => line.push_str("\\\""),
            '\\' => line.push_str("\\\\"),
            '\n' => line.push_str("\\n"),
            '\r' => line.push_str("\\r"),
            '\t' => line.push_str("\\t"),
            char if char < ' ' => {
                write!(line, "\\u{:04x}", u32::from(char)).expect("a string can be extended")
            }
            char => line.push(char),
        }
    }
    line.push('"');
}
