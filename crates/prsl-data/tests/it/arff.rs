//! Accepted and refused ARFF files.

use std::io::{self, Read};

use prsl_data::{ArffReader, ArffValue, AttributeKind, Error};

const HEADER: &str = "% a comment\n@RELATION 'two words'\n\n@Attribute x NUMERIC % a comment\n\
    @attribute 'it\\'s' {no, 'so so', \"yes\\n\"}\n@attribute text string\n@attribute day date \"yyyy-MM-dd\"\n@data\n";

fn rows(text: &str) -> Result<Vec<Vec<ArffValue>>, Error> {
    let mut file = ArffReader::new(io::Cursor::new(text.to_owned().into_bytes()), "t.arff")?;
    std::iter::from_fn(|| file.next_row().transpose()).collect()
}

fn message(text: &str) -> String {
    rows(text).expect_err("this file is wrong").to_string()
}

fn in_header(line: &str) -> String {
    message(&format!("@attribute a real\n{line}\n@data\n"))
}

fn in_data(line: &str) -> String {
    message(&format!("@attribute a real\n@attribute b {{no,yes}}\n@data\n\n{line}\n"))
}

fn text(text: &str) -> ArffValue {
    ArffValue::Text(text.to_owned())
}

#[test]
fn headers_name_the_attributes() {
    let file = ArffReader::new(HEADER.as_bytes(), "t.arff").unwrap();
    assert_eq!(file.relation(), "two words");
    let names: Vec<_> = file.attributes().iter().map(|attribute| attribute.name.as_str()).collect();
    assert_eq!(names, ["x", "it's", "text", "day"]);
    let nominal = ["no", "so so", "yes\n"].map(str::to_owned).to_vec();
    assert_eq!(file.attributes()[1].kind, AttributeKind::Nominal(nominal));
    assert_eq!(file.attributes()[3].kind, AttributeKind::Date(Some("yyyy-MM-dd".to_owned())));
}

#[test]
fn dense_rows_hold_a_value_for_each_attribute() {
    let data = "1.5e1, 'so so', \"a \\\"b\\\" \\u0041\\\\\", 2024-01-01 % done\r\n\n% nothing\n?\tno ? '?'\n";
    use ArffValue::{Missing, Nominal, Number};
    assert_eq!(
        rows(&format!("{HEADER}{data}")).unwrap(),
        [
            [Number(15.0), Nominal(1), text("a \"b\" A\\"), text("2024-01-01")],
            [Missing, Nominal(0), Missing, text("?")]
        ]
    );
}

#[test]
fn sparse_rows_contain_the_nonzero_values() {
    use ArffValue::{Missing, Nominal, Number};
    assert_eq!(
        rows(&format!("{HEADER}{{1 'so so', 2 word}}\n{{}}\n{{ 0 ? }}")).unwrap(),
        [
            [Number(0.0), Nominal(1), text("word"), text("")],
            [Number(0.0), Nominal(0), text(""), text("")],
            [Missing, Nominal(0), text(""), text("")]
        ]
    );
}

#[test]
fn malformed_headers_are_refused() {
    assert_eq!(message(""), "`t.arff`, line 1: the file ends without @data");
    assert_eq!(message("@relation r\n@data\n"), "`t.arff`, line 2: @data without any @attribute before it");
    assert_eq!(
        in_header("1,2"),
        "`t.arff`, line 2: `1,2` is not a header line, expected @relation, @attribute or @data"
    );
    assert_eq!(in_header("@attribute b"), "`t.arff`, line 2: @attribute needs a name and a type");
    assert_eq!(in_header("@attribute '' real"), "`t.arff`, line 2: @attribute needs a name and a type");
    assert_eq!(
        in_header("@attribute b relational"),
        "`t.arff`, line 2: attribute `b` is of type `relational`, \
         expected numeric, integer, real, string, date or {values}"
    );
    assert_eq!(in_header("@attribute a real"), "`t.arff`, line 2: attribute `a` is declared twice");
    assert_eq!(in_header("@attribute b {x,x}"), "`t.arff`, line 2: attribute `b`: it lists a value twice");
    assert_eq!(in_header("@attribute b {}"), "`t.arff`, line 2: attribute `b`: it lists no values");
    assert_eq!(
        in_header("@attribute b{x,y"),
        "`t.arff`, line 2: attribute `b`: its list of values is not closed with `}`"
    );
    assert_eq!(in_header("@attribute b 'real"), "`t.arff`, line 2: a quote is not closed on its line");
    assert_eq!(in_header("@attribute b real x"), "`t.arff`, line 2: unexpected `x`");
}

#[test]
fn malformed_rows_are_refused() {
    assert_eq!(in_data("1"), "`t.arff`, line 5: 1 values, expected 2, one for each attribute");
    assert_eq!(in_data("1,no,2"), "`t.arff`, line 5: 3 values, expected 2, one for each attribute");
    assert_eq!(in_data("x,no"), "`t.arff`, line 5: attribute `a`: `x` is not a number");
    assert_eq!(in_data("nan,no"), "`t.arff`, line 5: attribute `a`: `nan` is not a number");
    assert_eq!(in_data("1,maybe"), "`t.arff`, line 5: attribute `b`: `maybe` is not one of its values");
    let empty = "`t.arff`, line 5: a value is missing next to a comma; write `?` for an unknown value";
    for line in ["1,", ",no", "1,,no", "{0 1,}", "{,0 1}"] {
        assert_eq!(in_data(line), empty, "{line}");
    }
    assert_eq!(in_data("{2 1}"), "`t.arff`, line 5: `2` is not the number of an attribute, expected 0 to 1");
    assert_eq!(
        in_data("{-1 1}"),
        "`t.arff`, line 5: `-1` is not the number of an attribute, expected 0 to 1"
    );
    assert_eq!(
        in_data("{0 1, 0 1}"),
        "`t.arff`, line 5: attribute number 0 is given after 0, expected rising numbers"
    );
    assert_eq!(in_data("{0 1"), "`t.arff`, line 5: a sparse row is not closed with `}`");
    assert_eq!(in_data("{0"), "`t.arff`, line 5: a sparse row is not closed with `}`");
    assert_eq!(in_data("{0 1} {2}"), "`t.arff`, line 5: unexpected `{`");
    assert_eq!(in_data("1, 'no"), "`t.arff`, line 5: a quote is not closed on its line");
}

#[test]
fn endless_lines_and_other_encodings_are_refused() {
    let error = ArffReader::new("@attribute ".as_bytes().chain(io::repeat(b'x')), "t.arff").unwrap_err();
    assert_eq!(error.to_string(), "`t.arff`, line 1: a line of more than 16777216 bytes");
    let error = ArffReader::new(&b"@attribute a\xFF real\n"[..], "t.arff").unwrap_err();
    assert_eq!(
        error.to_string(),
        "`t.arff`, line 1: the line is not valid UTF-8; save the file in that encoding"
    );
}
