//! CSV files with other delimiters, decimal commas and the index of a data frame.

use proptest::prelude::*;
use prsl::Model;
use prsl_data::{
    BeliefOptions, BeliefReader, Cell, CsvDialect, Error, Result, TableReader, TruthOptions, TruthReader,
};

fn model() -> Model {
    Model::parse("label hands: high, centered, low\nlabel alarm").expect("a model")
}

fn read(text: &str, dialect: CsvDialect) -> Result<Vec<Vec<f64>>> {
    let table = TableReader::csv_as(std::io::Cursor::new(text.to_owned()), "b.csv", dialect)?;
    let mut reader = BeliefReader::new(&model(), table, BeliefOptions::default())?;
    let mut rows = Vec::new();
    while let Some(chunk) = reader.next_chunk(2)? {
        rows.extend((0..chunk.n_rows()).map(|row| chunk.row(row).to_vec()));
    }
    Ok(rows)
}

fn german() -> CsvDialect {
    CsvDialect::new(';', ',').expect("a dialect")
}

fn message(text: &str, dialect: CsvDialect) -> String {
    read(text, dialect).expect_err(text).to_string()
}

#[test]
fn semicolons_and_decimal_commas_say_the_same_as_commas_and_points() {
    let plain = "hands=high,hands=low,alarm\n0.5,0.25,0.75\n1e-1,,yes\n";
    let german_text = "\"hands=high\";hands=low; alarm\n0,5;\"0,25\";0,75\n1e-1;;yes\n";
    let expected = read(plain, CsvDialect::default()).expect("beliefs");
    assert_eq!(read(german_text, german()).expect("beliefs"), expected);
    let tabs = plain.replace(',', "\t");
    assert_eq!(read(&tabs, CsvDialect::new('\t', '.').expect("a dialect")).expect("beliefs"), expected);
}

#[test]
fn truths_and_weights_have_decimal_commas_too() {
    let table = TableReader::csv_as("hands;alarm;w\nlow;1,0;2,5\n".as_bytes(), "t.csv", german()).unwrap();
    let columns = prsl_data::RowColumns::new(Some("w"), None);
    let mut truths =
        TruthReader::with_columns(&model(), table, TruthOptions::default(), columns).expect("truths");
    assert_eq!(truths.next_chunk(10).unwrap().unwrap(), [[Some(2), Some(0)]]);
    assert_eq!(truths.weights(), Some(&[2.5][..]));
}

#[test]
fn the_wrong_dialect_is_told() {
    let text = "hands=high;alarm\n0,5;0,7\n";
    let expected = "`b.csv`: the columns seem to be separated by `;`; ask for this delimiter";
    assert_eq!(message(text, CsvDialect::default()), expected);
    let tabs = text.replace(';', "\t");
    let expected = "`b.csv`: the columns seem to be separated by `\\t`; ask for this delimiter";
    assert_eq!(message(&tabs, CsvDialect::default()), expected);
    let expected = "`b.csv`, line 1 (header): `;` after the closing quote of column number 1; \
                    if it separates the columns, ask for this delimiter";
    assert_eq!(message("\"hands=high\";\"alarm\"\n0,5;0,7\n", CsvDialect::default()), expected);
    let semicolons = CsvDialect::new(';', '.').unwrap();
    let expected = "`b.csv`, row 1, column `hands=high`: `0,5` is not a number; its decimal sign is a comma, \
                    expected a point";
    assert_eq!(message(text, semicolons), expected);
    let expected = "`b.csv`, row 1, column `hands=high`: `0.5` is not a number; its decimal sign is a point, \
                    expected a comma";
    assert_eq!(message("hands=high;alarm\n0.5;0,7\n", german()), expected);
    for (delimiter, decimal) in [(',', ','), ('a', '.'), ('"', '.'), ('\n', '.'), ('é', '.'), (';', ';')] {
        assert!(matches!(CsvDialect::new(delimiter, decimal), Err(Error::Dialect { .. })), "{delimiter}");
    }
}

#[test]
fn the_index_of_a_data_frame_was_refused_as_a_column_without_a_name() {
    let expected = read("hands=high,alarm\n0.5,0.75\n", CsvDialect::default()).expect("beliefs");
    for header in [",hands=high,alarm", "Unnamed: 0,hands=high,alarm", "\"\",hands=high,alarm"] {
        let text = format!("{header}\n17,0.5,0.75\n");
        assert_eq!(read(&text, CsvDialect::default()).expect(header), expected);
    }
    // Saved, loaded and saved again.
    let twice = ",Unnamed: 0,hands=high,alarm\n0,17,0.5,0.75\n";
    assert_eq!(read(twice, CsvDialect::default()).expect("beliefs"), expected);
    let table = TableReader::csv(twice.as_bytes(), "b.csv").unwrap();
    assert_eq!(table.index_columns(), ["Unnamed: 0.1", "Unnamed: 0"]);
    // Only at the start, and never the only column.
    assert_eq!(message("alarm,\n0.5,1\n", CsvDialect::default()), "`b.csv`: column 2 has no name");
    assert_eq!(message("\"\"\n1\n", CsvDialect::default()), "`b.csv`: column 1 has no name");
    // A label of that name is a label.
    let model = Model::parse("label \"Unnamed: 0\"\nlabel a").expect("a model");
    let table = TableReader::csv("Unnamed: 0,a\n0.25,0.5\n".as_bytes(), "b.csv").unwrap();
    let mut reader = BeliefReader::new(&model, table, BeliefOptions::default()).unwrap();
    assert_eq!(reader.next_chunk(9).unwrap().unwrap().row(0)[..], [0.25, 0.75, 0.5, 0.5]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_read_or_refused_in_every_dialect(
        text in "[a,;|\t\"\r\n .0-9=]{0,60}",
        delimiter in prop::sample::select(vec![',', ';', '\t', '|']),
        comma in any::<bool>(),
    ) {
        let Ok(dialect) = CsvDialect::new(delimiter, if comma { ',' } else { '.' }) else { return Ok(()) };
        if let Err(error) = read(&text, dialect) {
            prop_assert!(!error.to_string().is_empty());
        }
    }

    #[test]
    fn cells_are_the_same_for_every_delimiter(cells in prop::collection::vec("[a-z0-9 ]{0,5}", 3..30)) {
        let n_rows = cells.len() / 3;
        let text = |delimiter: &str| {
            let rows: Vec<String> = cells.chunks_exact(3).map(|row| row.join(delimiter)).collect();
            format!("x{delimiter}y{delimiter}z\n{}\n", rows.join("\n"))
        };
        let read = |delimiter: char| {
            let dialect = CsvDialect::new(delimiter, '.').unwrap();
            let text = std::io::Cursor::new(text(&delimiter.to_string()));
            let mut table = TableReader::csv_as(text, "t.csv", dialect).unwrap();
            let chunk = table.read_chunk(n_rows + 1).unwrap();
            let chunk = chunk.expect("rows");
            let cell = |row, column| match chunk.cell(row, column) {
                Cell::Text(text) => text.to_owned(),
                _ => String::new(),
            };
            (0..chunk.n_rows()).flat_map(|row| [0, 1, 2].map(|column| cell(row, column))).collect::<Vec<_>>()
        };
        prop_assert_eq!(read(','), read(';'));
        prop_assert_eq!(read(','), read('\t'));
    }
}
